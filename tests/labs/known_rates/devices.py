# SPDX-License-Identifier: Apache-2.0
"""nftables NAT44 that lets a known number of frames a second leave: by a rule, or behind a deep queue."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.labs.known_answers.devices import FRAME_OCTETS
from tests.labs.nat44 import variant, with_rules

#: Frames that may leave at once. As many for all, so that they raise each rate over N frames by the same factor,
#: 1 / (1 - BURST / N): no ratio changes by that.
BURST: Final = 200
#: Frames that wait where a queue is: a fifth of a second of the slower device, which no frame is given.
QUEUE: Final = 4096
_QUEUE_BEHIND_IT: Final = """
[verbs]
start = "tc qdisc replace dev $NG_OUTSIDE root tbf rate {bits}bit burst {burst}b limit {limit}b"
stop = "tc qdisc del dev $NG_OUTSIDE root || true"
"""


def policing(folder: Path, rate: int) -> Path:
    """Drops what is beyond this rate, in frames/s."""
    return with_rules(folder, f"drops-beyond-{rate}", f"limit rate over {rate}/second burst {BURST} packets drop")


def queueing(folder: Path, rate: int) -> Path:
    """Lets frames wait that are beyond this rate, in frames/s, and drops what finds the queue full."""
    burst, limit = (frames * FRAME_OCTETS for frames in (BURST, QUEUE))
    queue = _QUEUE_BEHIND_IT.format(bits=rate * FRAME_OCTETS * 8, burst=burst, limit=limit)
    return variant(folder, f"queues-beyond-{rate}", queue)
