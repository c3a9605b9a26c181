# SPDX-License-Identifier: Apache-2.0
"""Searches for a rate, and the rules that bound how far their answers can be wrong."""
