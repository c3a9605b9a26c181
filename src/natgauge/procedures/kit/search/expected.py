# SPDX-License-Identifier: Apache-2.0
"""Expected result of a search, estimated from slices: the time per frame of a core limits its frames per second.

The estimate is not a result: slices are not paced, and they last a second in total. It only chooses where the search
starts; trials alone decide the result.
"""

from __future__ import annotations

import statistics
from typing import Final

from natgauge.errors import BrokenError, UsageError
from natgauge.measurer import Ability
from natgauge.paired.slices import LEAD_FRAMES, LEAST_FRAMES, CostPlan, connections_of_block
from natgauge.procedures.kit.runner import TrialRunner
from natgauge.procedures.kit.settings import TrialSettings
from natgauge.words import Quantity

#: No more connections than these are opened for it: with more of them the device may be slower.
MOST_CONNECTIONS: Final = 200_000
#: Frames of one slice: no cable is timed with them, so the cost of the call itself must be small.
FRAMES: Final = 512
#: Number of blocks; the rate follows from their median.
BLOCKS: Final = 32


def expected_rate(runner: TrialRunner, settings: TrialSettings, quantity: Quantity) -> float | None:
    """Return the expected rate of the device, frames/s of all directions together; None where slices cannot be used."""
    measurer = runner.measurer
    if settings.placement != "shared" or Ability.COSTS not in measurer.abilities or runner.budget.left == 0:
        return None
    connections = min(settings.connections, MOST_CONNECTIONS)
    frames = min(FRAMES, connections // 2 - LEAD_FRAMES)
    if frames < LEAST_FRAMES:
        return None
    blocks = min(BLOCKS, connections // connections_of_block(frames)) if quantity == "new" else BLOCKS
    try:
        cost_round = measurer.costs(CostPlan(connections, {quantity: blocks}, frames=frames, alone=True))
    except (BrokenError, UsageError):
        # Trials report a fault of the device better than slices do.
        return None
    if cost_round.fault:
        return None
    return 1e9 / statistics.median(block.device for block in cost_round.blocks)
