# SPDX-License-Identifier: Apache-2.0
"""Trials and counts for tests, of which only what is named happened: the one place that knows their types' fields."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final

from natgauge.agreement import (
    Clock,
    Cpu,
    FrameSizes,
    MessageCounts,
    Phase2Counts,
    PortCounters,
    Ports,
    Silence,
    StateTable,
    StreamCounts,
    TrialRequest,
    TrialResult,
    stream_of,
)
from natgauge.agreement.generated import LateDelay, Stall
from natgauge.late_delays import LateDelays
from natgauge.measurer import Direction, TrialOutcome, TrialPlan
from natgauge.one_trial import Trial
from natgauge.readings import NO_READINGS, Readings
from natgauge.words import Verdict

_EXAMPLE: Final = Path(__file__).parents[2] / "trial" / "examples" / "nat44-both-phases.json"
#: What no verdict reads of a trial.
_REQUEST: Final = TrialRequest.model_validate(json.loads(_EXAMPLE.read_text(encoding="utf-8")))
_CLOCK, _SIZES = Clock(source="tsc", steps=0), FrameSizes(initiator_octets=64, responder_octets=64)
_READINGS: Final = {field.name for field in fields(Readings)}


def make_trial(
    plan: TrialPlan,
    *,
    phase1: StreamCounts | None = None,
    phase2: Mapping[Direction, StreamCounts] | None = None,
    stored: int = 0,
    cpus: Sequence[Cpu] = (),
    ports: Mapping[str, PortCounters] | None = None,
    readings: Readings = NO_READINGS,
) -> Trial:
    """A trial of these counts; `phase1` is not counted in a stateless one."""
    table = StateTable(connections=plan.connections, stored=stored, remapped=0, octets=0)
    result = TrialResult(
        version=1,
        engine="none",
        mark=1,
        seed=1,
        phase1=phase1,
        phase2=_phase2(phase2 or {}),
        state_table=table,
        ports=_ports(ports or {}),
        cpus=cpus,
        clock=_CLOCK,
        start_to_first_frame_ns=0,
        wall_ns=0,
        frame=_SIZES,
    )
    return Trial(plan, _REQUEST, result, readings)


def change_trial(trial: Trial, **others: Any) -> Trial:
    """The same trial, but for what is named: as in `make_trial`, or a field of its plan or its readings."""
    read = {name: others.pop(name) for name in _READINGS & set(others)}
    plan = others.pop("plan", trial.plan)
    counted: dict[str, Any] = {name: others.pop(name) for name in ("phase1", "cpus") if name in others}
    if "phase2" in others:
        counted["phase2"] = _phase2(others.pop("phase2"))
    if "ports" in others:
        counted["ports"] = _ports(others.pop("ports"))
    if "stored" in others:
        counted["state_table"] = trial.result.state_table.model_copy(update={"stored": others.pop("stored")})
    return replace(
        trial,
        plan=replace(plan, **others),
        result=trial.result.model_copy(update=counted),
        readings=replace(trial.readings, **read),
    )


def make_outcome(verdict: str = "PASS", **parts: Any) -> TrialOutcome:
    """An outcome of which only what is named is known."""
    named = {"reason": "", "phase1": make_counts(0, 0, 0), **parts}
    return TrialOutcome(verdict=Verdict(verdict), **named)


def make_port(**counts: Any) -> PortCounters:
    """Counts of one of the tester's ports; the others are 0, or absent."""
    none = {name: 0 for name, field in PortCounters.model_fields.items() if field.is_required()}
    return PortCounters.model_validate(none | {"gateway_mac": "02:00:00:00:00:01"} | counts)


def make_cpu(role: Any, stalls: int, stalled_seconds: float, *, cpu: int = 0, **others: float) -> Cpu:
    """Disturbances of a CPU; `others` are its worst stall and its stolen time, in s."""
    return Cpu(
        cpu=cpu,
        role=role,
        stalls=stalls,
        stalled_ns=round(stalled_seconds * 1e9),
        worst_stall_ns=round(others.get("worst_stall_seconds", stalled_seconds) * 1e9),
        longest_stalls=[],
        stolen_ns=round(others.get("stolen_seconds", 0.0) * 1e9),
    )


def make_stall(phase: Any, seconds: float) -> Stall:
    """A stall of a CPU from the beginning of a phase."""
    return Stall(phase=phase, from_ns=0, to_ns=round(seconds * 1e9))


def make_counts(intended: int, offered: int, received: int, **others: Any) -> StreamCounts:
    """Counts of a stream; names as in `StreamCounts`, but times are in seconds (`nominal_seconds`)."""
    return stream_of(**_named({"intended": intended, "offered": offered, "received": received, **others}))


def change_counts(counts: StreamCounts, **others: Any) -> StreamCounts:
    """The same counts, but for what is named."""
    return counts.model_copy(update=_named(others))


def arrivals(name: Any, received: int, wrong: int = 0) -> MessageCounts:
    """Arrivals of one message."""
    return MessageCounts(name=name, received=received, wrong=wrong)


def _phase2(streams: Mapping[Direction, StreamCounts]) -> Phase2Counts | None:
    return Phase2Counts(**{direction.value: counts for direction, counts in streams.items()}) if streams else None


def _ports(ports: Mapping[str, PortCounters]) -> Ports:
    none = make_port()
    return Ports(initiator=ports.get("initiator", none), responder=ports.get("responder", none))


def _named(given: dict[str, Any]) -> dict[str, Any]:
    return dict(_field(name, value) for name, value in given.items())


def _field(name: str, value: Any) -> tuple[str, Any]:
    if name in {"intended", "offered", "received"}:
        return f"{name}_frames", value
    if name.endswith("_seconds"):
        return f"{name.removesuffix('_seconds')}_ns", round(value * 1e9)
    if name == "longest_silence" and value is not None:
        return name, Silence(from_ns=round(value[0] * 1e9), to_ns=round(value[1] * 1e9))
    if name == "messages":
        return name, list(value)
    if name == "late_delays":
        return "late_delay", value and _late(value)
    return name, value


def _late(delays: LateDelays) -> LateDelay:
    return LateDelay(
        minimum_ns=round(delays.least * 1e9),
        maximum_ns=round(delays.largest * 1e9),
        sum_ns=round(delays.mean * delays.frames * 1e9),
    )
