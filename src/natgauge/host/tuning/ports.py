# SPDX-License-Identifier: Apache-2.0
"""Settings of a port that `natgauge host tune` changes, read for the record of a result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from natgauge.errors import HostError
from natgauge.host.tuning.contract import TunedMachine, TuningKnob
from natgauge.host.tuning.knobs.coalescing import Coalescing
from natgauge.host.tuning.knobs.flow_hash import FlowHash
from natgauge.host.tuning.knobs.irq_affinity import IrqAffinity
from natgauge.host.tuning.knobs.queues import Queues

_COALESCING: Final = Coalescing()
_KNOBS: Final[Mapping[str, TuningKnob]] = {
    "queues": Queues(),
    "flow_hash": FlowHash(),
    "coalescing": _COALESCING,
    "irq_affinity": IrqAffinity(),
}


def settings_of(port: str, machine: TunedMachine | None = None) -> Mapping[str, str | None]:
    """Return queues, flow hash, coalescing and interrupts of a port in the form of their knobs; None = not reported.

    Interrupt numbers change from boot to boot, so the record contains only the cores, in the order of the numbers.

    Args:
        machine: machine that has the port; None = this one.
    """
    place = machine or TunedMachine()
    return {name: _value(knob, place, port) for name, knob in _KNOBS.items()}


def _value(knob: TuningKnob, machine: TunedMachine, port: str) -> str | None:
    try:
        values = [setting.value for setting in knob.find(machine, [port]) if setting.value is not None]
        wait = _COALESCING.wait(machine, port) if knob is _COALESCING else None
    except HostError:
        return None
    return ", ".join([*values, *([f"rx-usecs {wait}"] if wait is not None else [])]) or None
