# SPDX-License-Identifier: Apache-2.0
"""Reports: made from stored results only, at any time again."""
