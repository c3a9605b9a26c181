# SPDX-License-Identifier: Apache-2.0
"""The record of a trial, and the hops of its frames, which follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from natgauge.causes.hops import WRONG, TrialHops, hops_of
from natgauge.readings import Readings
from natgauge.trials import Trial

#: The verdict in a trial's record, and what else is known of a trial that did not begin.
_JUDGED: Final = (
    "verdict", "reason", "limited_by", "disturbed", "excused", "excused_frames", "command_failures", "raised_timeout",
    "remarks", "failed_phase", "cause",
)  # fmt: skip
#: Names of readings in a trial's record, where they are others.
_STORED_AS: Final = {
    "count_before": "device_count_before",
    "count_after": "device_count_after",
    "established": "device_established",
    "faults": "device_faults",
    "forwards": "forwards_afterwards",
}
#: Readings that other fields of the record contain, or the reason of the verdict, or a remark.
_UNSTORED: Final = frozenset(
    {
        "strays", "dropped_before", "dropped_after", "device_error", "unprobed", "free_octets", "log_error",
        "read_late_seconds",
    }
)  # fmt: skip
#: Counts of a stream that its hops follow from.
_COUNTED: Final = {
    "intended_frames": True,
    "skipped": True,
    "unopened": True,
    "received_frames": True,
    "background_received": True,
    "messages": True,
    **dict.fromkeys(WRONG, True),
}
_ASKED: Final = {"initiator": {"family", "source_addresses"}, "responder": {"family"}, "translation": {"pool"}}
_BOTH_COUNTED: Final = dict.fromkeys(("initiator", "responder", "openings", "closings", "flood"), _COUNTED)
_RESULT: Final[Any] = {"phase1": _COUNTED, "phase2": _BOTH_COUNTED, "ports": True, "state_table": {"by_source"}}


def record_of(trial: Trial, *, began: float, seconds: float) -> dict[str, object]:
    """Return the trial's record, as `trials.jsonl` stores it; `began` = start time, seconds since 1970."""
    judged = {name: getattr(trial, name) for name in _JUDGED}
    record = {**judged, "began": began, "seconds": seconds, "placement": trial.placement, "plan": trial.plan}
    if trial.result is not None:
        record |= {**_stored(trial.readings), "restart": trial.restart}
    return {**record, "request": trial.request, "result": trial.result}


def hops_in(trial: Trial) -> TrialHops:
    """Return the hops of a trial that began, from the same fields as those of its record."""
    request, result = trial.request, trial.result
    record: Mapping[str, Any] = {
        **_stored(trial.readings),
        "restart": trial.restart,
        "request": None if request is None else request.model_dump(include=_ASKED),
        "result": None if result is None else result.model_dump(include=_RESULT),
    }
    return hops_of(record)


def _stored(read: Readings) -> dict[str, object]:
    named = {field.name: getattr(read, field.name) for field in fields(read) if field.name not in _UNSTORED}
    return {"dropped": read.dropped, **{_STORED_AS.get(name, name): value for name, value in named.items()}}
