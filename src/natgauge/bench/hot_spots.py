# SPDX-License-Identifier: Apache-2.0
"""Kernel functions in which a device's work is done, from sampled stacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from natgauge.host.sampling import Stack
from natgauge.paired.slices import HotSpot

#: This function is on the stack of all processing of a frame by the device, and of no work of the tester.
RECEIVES: Final = "netif_receive_skb"
#: Number of reported functions.
MOST: Final = 20
#: With fewer samples even the most frequent function would be chance.
LEAST_SAMPLES: Final = 200


def hot_spots(stacks: Sequence[Stack], seconds: float | None = None) -> tuple[HotSpot, ...]:
    """Return the functions with most samples of the device's work, most first; none where samples are too few.

    Args:
        stacks: of the device's core, in the order of time.
        seconds: only this last part of the device's work counts; None = all.
    """
    own = [stack for stack in stacks if any(RECEIVES in function for function in stack.functions)]
    if own and seconds is not None:
        own = [stack for stack in own if stack.seconds >= own[-1].seconds - seconds]
    if len(own) < LEAST_SAMPLES:
        return ()
    found = Counter(stack.functions[0] for stack in own)
    return tuple(HotSpot(function, number / len(own)) for function, number in found.most_common(MOST))
