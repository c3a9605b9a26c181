# SPDX-License-Identifier: Apache-2.0
"""Paired comparisons of gateways: a state of the host that lasts cancels in the ratio of two gateways.

By slices (`by_slices`) all gateways run at the same time on one core, and slices of a fraction of a millisecond
alternate between them. By rates (`by_rates`) the gateways are searched one after another within a round of minutes;
where the labs allow it, all of them are up during the round.
"""
