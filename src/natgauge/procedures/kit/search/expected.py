# SPDX-License-Identifier: Apache-2.0
"""Where a search will end, as far as slices tell: a core that needs so long for a frame does no more of them a second.

It is no answer: slices are not paced, and they are over in a second. So it only says where to look first; trials decide
everything, wherever it points.
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
#: Blocks whose median is taken.
BLOCKS: Final = 32


def expected_rate(runner: TrialRunner, settings: TrialSettings, quantity: Quantity) -> float | None:
    """Frames/s, all directions together, that the device should do; None where slices cannot tell.

    Args:
        runner: of the measurement.
        settings: of the measurement.
        quantity: which frames.

    Raises:
        HostError: nothing can be measured on this host.
    """
    measurer = runner.measurer
    if settings.placement != "shared" or Ability.COSTS not in measurer.abilities or runner.budget.left == 0:
        return None
    connections = min(settings.connections, MOST_CONNECTIONS)
    frames = min(FRAMES, connections // 2 - LEAD_FRAMES)
    if frames < LEAST_FRAMES:
        return None
    blocks = min(BLOCKS, connections // connections_of_block(frames)) if quantity == "new" else BLOCKS
    try:
        found = measurer.costs(CostPlan(connections, {quantity: blocks}, frames=frames, alone=True))
    except (BrokenError, UsageError):
        # What is wrong with the device trials will tell, and better.
        return None
    if found.fault:
        return None
    return 1e9 / statistics.median(block.device for block in found.blocks)
