# SPDX-License-Identifier: Apache-2.0
"""Campaigns: which trials and measurements are run on which device in which lab, and where their results are kept."""
