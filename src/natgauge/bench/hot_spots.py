# SPDX-License-Identifier: Apache-2.0
"""In which functions of the kernel a device's work is done, from sampled stacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from natgauge.host.sampling import Stack
from natgauge.paired.slices import HotSpot

#: On the stack of whatever happens to a frame from its reception by the device on, and of nothing that the tester does.
RECEIVES: Final = "netif_receive_skb"
#: So many functions are told.
MOST: Final = 20
#: With fewer samples even the first of them would be a matter of chance.
LEAST_SAMPLES: Final = 200


def hot_spots(stacks: Sequence[Stack], seconds: float | None = None) -> tuple[HotSpot, ...]:
    """The functions in which most samples of the device's work were taken, most first; none where samples are too few.

    Args:
        stacks: of its core, in the order of time.
        seconds: only the last so many of its work count; None = all.
    """
    own = [stack for stack in stacks if any(RECEIVES in function for function in stack.functions)]
    if own and seconds is not None:
        own = [stack for stack in own if stack.seconds >= own[-1].seconds - seconds]
    if len(own) < LEAST_SAMPLES:
        return ()
    found = Counter(stack.functions[0] for stack in own)
    return tuple(HotSpot(function, number / len(own)) for function, number in found.most_common(MOST))
