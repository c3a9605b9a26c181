# SPDX-License-Identifier: Apache-2.0
"""Reports, made only from stored results."""
