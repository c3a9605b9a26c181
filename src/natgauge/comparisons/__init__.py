# SPDX-License-Identifier: Apache-2.0
"""Comparing gateways that are up at once, in slices that alternate: ratios that the host's own moods do not move."""
