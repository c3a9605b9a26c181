# SPDX-License-Identifier: Apache-2.0
"""Paired timing of devices in rounds, by alternating slices or by rates: plan of a round, ratios, void rounds."""
