# SPDX-License-Identifier: Apache-2.0
"""Paired timing of devices in alternating slices: plan of a round, ratios of work, void rounds."""
