# SPDX-License-Identifier: Apache-2.0
"""Devices timed next to each other in slices that alternate: what is asked, ratios of their work, void rounds."""
