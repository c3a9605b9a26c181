# SPDX-License-Identifier: Apache-2.0
"""A trial as a results folder stores it: the types of all that views read of it, so that no view meets another one.

A line has more fields than these; the engine's result is described by `trial/result-1.schema.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, JsonValue, TypeAdapter, ValidationError

from natgauge.causes.cause import Cause
from natgauge.errors import UsageError
from natgauge.records.record import StoredPart, first_fault
from natgauge.words import LimitedBy, Verdict

#: A count or a time of 64 bits, as the engine and the kernel have them.
_MOST: Final = 2**63 - 1
_Count = Annotated[int, Field(ge=0, le=_MOST)]
_Signed = Annotated[int, Field(ge=-_MOST, le=_MOST)]
#: Rates, and times in s; beyond this no tester and no clock exists.
_Rate = Annotated[float, Field(ge=0, le=1e15)]
#: A count of the gateway's kernel or of its own; unsigned ones have 64 bits.
_Counter = Annotated[int, Field(ge=-_MOST, lt=2**64)]

#: Reads a stored cause.
_CAUSE: Final = TypeAdapter(Cause)


def cause_in(stored: Mapping[str, Any]) -> Cause:
    """Return the cause that a trial's record has."""
    return _CAUSE.validate_python(stored)


def _is_cause(stored: dict[str, JsonValue]) -> dict[str, JsonValue]:
    cause_in(stored)
    return stored


class _Delays(StoredPart):
    buckets: list[Annotated[tuple[_Signed, _Signed, _Count], Field(strict=False)]] = Field(default_factory=list)


class _Stream(StoredPart):
    intended_frames: _Count
    intended_rate: _Rate | None = None
    offered_frames: _Count | None = None
    received_frames: _Count
    skipped: _Count | None = None
    unopened: _Count | None = None
    duplicates: _Count | None = None
    reordered: _Count | None = None
    late: _Count | None = None
    damaged: _Count | None = None
    fragments: _Count | None = None
    tagged: _Count | None = None
    untagged: _Count | None = None
    without_checksum: _Count | None = None
    untranslated: _Count | None = None
    mistranslated: _Count | None = None
    settled_lag_ns: _Signed | None = None
    delay: _Delays | None = None


class _Port(StoredPart):
    refused: _Count | None = None
    redirect_errors: _Count | None = None
    foreign: _Count | None = None
    tx_dropped: _Count | None = None
    rx_dropped: _Count | None = None
    too_big: _Count | None = None
    icmp_errors: _Count | None = None
    mistranslated_address: str | None = None
    mistranslated_port: _Count | None = None


class _Result(StoredPart):
    phase1: _Stream | None = None
    phase2: dict[str, _Stream | None] | None = None
    ports: dict[str, _Port] = Field(default_factory=dict)
    wall_ns: _Count | None = None


class _Phase2(StoredPart):
    initiator_rate: _Rate
    responder_rate: _Rate
    seconds: _Rate | None = None


class _Plan(StoredPart):
    connections: _Count
    phase1_rate: _Rate
    phase2: _Phase2 | None = None
    request_octets: _Count | None = None


class _Trial(StoredPart):
    trial: Annotated[int, Field(ge=1, le=_MOST)]
    verdict: Annotated[Verdict, Field(strict=False)]
    reason: str | None = None
    remarks: list[str] | None = None
    disturbed: bool | None = None
    limited_by: LimitedBy | None = None
    cause: Annotated[dict[str, JsonValue], AfterValidator(_is_cause)] | None = None
    placement: str | None = None
    gateway: str | None = None
    failed_phase: Annotated[int, Field(ge=1, le=2)] | None = None
    began: _Rate | None = None
    seconds: _Rate | None = None
    device_count_before: _Count | None = None
    device_count_after: _Count | None = None
    plan: _Plan | None = None
    request: dict[str, JsonValue] | None = None
    result: _Result | None = None
    network_counters: dict[str, dict[str, _Counter]] | None = None
    device_faults: dict[str, _Counter] | None = None
    dropped: dict[str, _Counter] | None = None
    taps: bool | None = None
    counts_taken: list[str] | None = None


def checked(trial: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Return a trial, a line of `trials.jsonl`, if every field that views read is one.

    Otherwise UsageError names the first wrong field, and where the line is: its file and number.
    """
    try:
        _Trial.model_validate(trial)
    except (ValidationError, RecursionError) as error:
        raise UsageError(
            f"results: {where} is no trial as natgauge writes them: {first_fault(error)}: it is damaged; leave the "
            "folder out, or measure again"
        ) from None
    return trial
