# SPDX-License-Identifier: Apache-2.0
"""Trials and counts for tests, of which only what is named happened: the one place that knows their types' fields."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final

from natgauge.agreement.generated import (
    Cpu,
    DelayCounts,
    LateDelay,
    LostAfterStep,
    MessageCounts,
    Phase2Counts,
    PortCounters,
    Ports,
    Silence,
    SizeCounts,
    Stall,
    StreamCounts,
    TrialRequest,
    VariationCounts,
)
from natgauge.agreement.trial import result_of, stream_of
from natgauge.delays import Delays
from natgauge.late_delays import LateDelays
from natgauge.readings import NO_READINGS, Readings
from natgauge.trials import Direction, Trial, TrialPlan
from natgauge.words import Placement, Verdict

_EXAMPLE: Final = Path(__file__).parents[2] / "trial" / "examples" / "nat44-both-phases.json"
#: What no verdict reads of a trial.
_REQUEST: Final = TrialRequest.model_validate(json.loads(_EXAMPLE.read_text(encoding="utf-8")))
_READINGS: Final = {field.name for field in fields(Readings)}
_OWN: Final = {field.name for field in fields(Trial)} - {"plan", "result"}


def make_trial(
    plan: TrialPlan,
    *,
    phase1: StreamCounts | None = None,
    phase2: Mapping[Direction, StreamCounts] | None = None,
    stored: int = 0,
    cpus: Sequence[Cpu] = (),
    ports: Mapping[str, PortCounters] | None = None,
    readings: Readings = NO_READINGS,
    placement: Placement = "isolated",
) -> Trial:
    """A trial of these counts that nobody has judged; `phase1` is not counted in a stateless one."""
    result = result_of(plan.connections, stored, phase1, _phase2(phase2 or {}))
    result = result.model_copy(update={"ports": _ports(ports or {}), "cpus": cpus})
    return Trial(plan, _REQUEST, result, readings, placement=placement)


def change_trial(trial: Trial, **others: Any) -> Trial:
    """The same trial, but for what is named.

    It is a field of the trial, its plan or its readings; as in `make_trial`; or `delays` by direction, or `foreign`
    frames at the Initiator.
    """
    read = {name: others.pop(name) for name in _READINGS & set(others)}
    plan = others.pop("plan", trial.plan)
    own = {name: others.pop(name) for name in _OWN & set(others)}
    counted: dict[str, Any] = {name: others.pop(name) for name in ("phase1", "cpus") if name in others}
    if "foreign" in others:
        counted["ports"] = _ports({"initiator": make_port(foreign=others.pop("foreign"))})
    if "delays" in others:
        given = others.pop("delays")
        streams = others.pop("phase2", trial.phase2)
        others["phase2"] = {each: timed(counts, given.get(each)) for each, counts in streams.items()}
    if "phase2" in others:
        counted["phase2"] = _phase2(others.pop("phase2"))
    if "ports" in others:
        counted["ports"] = _ports(others.pop("ports"))
    if "stored" in others:
        counted["state_table"] = trial.counted.state_table.model_copy(update={"stored": others.pop("stored")})
    return replace(
        trial,
        plan=replace(plan, **others),
        result=trial.counted.model_copy(update=counted),
        readings=replace(trial.readings, **read),
        **own,
    )


def change_each(trial: Trial, change: Callable[[StreamCounts], Mapping[str, Any]], **others: Any) -> Trial:
    """The same trial, but for the counts of each direction of phase 2, as `change` says, and for what is named."""
    phase2 = {who: change_counts(one, **change(one)) for who, one in trial.phase2.items()}
    return change_trial(trial, phase2=phase2, **others)


def make_outcome(verdict: str = "PASS", reason: str = "", phase1: StreamCounts | None = None, **others: Any) -> Trial:
    """A trial with this verdict, of which only what is named is known; `others` as in `change_trial`."""
    counts = make_counts(0, 0, 0) if phase1 is None else phase1
    trial = make_trial(TrialPlan(max(1, counts.intended_frames), 1.0), phase1=counts)
    return change_trial(trial, verdict=Verdict(verdict), reason=reason, **others)


def timed(counts: StreamCounts, delays: Delays | None) -> StreamCounts:
    """The same counts, with these delays; None = no frame was timed."""
    return counts.model_copy(update={"delay": None if delays is None else _in_ns(delays)})


def _in_ns(delays: Delays) -> DelayCounts:
    variation = delays.variation
    return DelayCounts(
        frames=delays.frames,
        negative=delays.negative,
        due_in_stalls=delays.due_in_stalls,
        minimum_ns=round(delays.minimum * 1e9),
        maximum_ns=round(delays.maximum * 1e9),
        sum_ns=round(delays.mean * delays.frames * 1e9),
        buckets=_buckets(delays.buckets),
        variation=None
        if variation is None
        else VariationCounts(
            pairs=variation.pairs,
            minimum_ns=round(variation.minimum * 1e9),
            maximum_ns=round(variation.maximum * 1e9),
            buckets=_buckets(variation.buckets),
        ),
    )


def _buckets(buckets: Sequence[tuple[float, float, int]]) -> list[tuple[int, int, int]]:
    return [(round(lower * 1e9), round(upper * 1e9), frames) for lower, upper, frames in buckets]


def make_port(**counts: Any) -> PortCounters:
    """Counts of one of the tester's ports; the others are 0, or absent."""
    none = {name: 0 for name, field in PortCounters.model_fields.items() if field.is_required()}
    return PortCounters.model_validate(none | {"gateway_mac": "02:00:00:00:00:01"} | counts)


_NO_PORT: Final = make_port()


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
    """Counts of a stream; names as in `StreamCounts`, but times are in seconds (`nominal_seconds`).

    `sizes`: octets, frames made and received of each size; `lost_after_step`: frames and their latest times.
    """
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
    return Ports(initiator=ports.get("initiator", _NO_PORT), responder=ports.get("responder", _NO_PORT))


def _named(given: dict[str, Any]) -> dict[str, Any]:
    return dict(_field(name, value) for name, value in given.items())


#: Counts that are given as plain tuples.
_MADE: Final[dict[str, Callable[[Any], Any]]] = {
    "messages": list,
    "sizes": lambda each: [
        SizeCounts(octets=octets, made_frames=sent, received_frames=came) for octets, sent, came in each
    ],
    "lost_after_step": lambda lost: LostAfterStep(frames=lost[0], latest_ns=lost[1]),
}


def _field(name: str, value: Any) -> tuple[str, Any]:
    if name in {"intended", "offered", "received"}:
        return f"{name}_frames", value
    if name.endswith("_seconds"):
        return f"{name.removesuffix('_seconds')}_ns", round(value * 1e9)
    if name == "longest_silence" and value is not None:
        return name, Silence(from_ns=round(value[0] * 1e9), to_ns=round(value[1] * 1e9))
    if name in _MADE:
        return name, _MADE[name](value)
    if name == "late_delays":
        return "late_delay", value and _late(value)
    return name, value


def _late(delays: LateDelays) -> LateDelay:
    return LateDelay(
        minimum_ns=round(delays.least * 1e9),
        maximum_ns=round(delays.largest * 1e9),
        sum_ns=round(delays.mean * delays.frames * 1e9),
    )
