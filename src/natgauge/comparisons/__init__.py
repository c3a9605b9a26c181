# SPDX-License-Identifier: Apache-2.0
"""Paired comparisons of gateways that run at the same time, so that disturbances of the host cancel in their ratios."""
