# SPDX-License-Identifier: Apache-2.0
"""Statistics that need no distribution: confidence intervals, their coverage, and interim analyses."""
