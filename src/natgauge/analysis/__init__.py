# SPDX-License-Identifier: Apache-2.0
"""Conclusions from stored results: which are comparable, how much two differ, and what follows from a series."""
