# SPDX-License-Identifier: Apache-2.0
"""Kinds of trials: phases 1 and 2, held connections, delays, capacity, and metrics that another metric needs first."""
