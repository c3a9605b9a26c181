# SPDX-License-Identifier: Apache-2.0
"""Every knob of the machine, in the order in which they are set; restoring has the reverse order."""

from __future__ import annotations

from typing import Final

from natgauge.host.tuning.contract import TuningKnob
from natgauge.host.tuning.knobs.coalescing import Coalescing
from natgauge.host.tuning.knobs.energy_saving import EnergySaving
from natgauge.host.tuning.knobs.flow_hash import FlowHash
from natgauge.host.tuning.knobs.governor import Governor
from natgauge.host.tuning.knobs.irq_affinity import IrqAffinity
from natgauge.host.tuning.knobs.offloads import Offloads
from natgauge.host.tuning.knobs.pause import Pause
from natgauge.host.tuning.knobs.queues import Queues
from natgauge.host.tuning.knobs.smt import Smt

#: SMT first: cores that go have no governor to set and take no interrupts. Queues before what belongs to each queue.
KNOBS: Final[tuple[TuningKnob, ...]] = (
    Smt(),
    Governor(),
    Queues(),
    FlowHash(),
    Coalescing(),
    Pause(),
    Offloads(),
    EnergySaving(),
    IrqAffinity(),
)
