# SPDX-License-Identifier: Apache-2.0
"""The setup: a lab, its gateway, and the addresses between them, on which trials, comparisons and audits stand."""
