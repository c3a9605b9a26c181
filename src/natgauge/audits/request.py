# SPDX-License-Identifier: Apache-2.0
"""The request for an audit: gateway, lab, profile and the longest wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from natgauge.errors import UsageError
from natgauge.inputs.input import Input, chosen, in_range, inputs_of, spoken, wrong
from natgauge.inputs.question import Cell
from natgauge.setup.cell import cell_of, inputs_of_part, place_inputs

#: Inputs of the traffic that an audit has.
_TRAFFIC: Final = ("source_addresses", "destination_addresses")
#: Inputs of lab and device that only trials take.
_OF_TRIALS: Final = frozenset({"seed", "grace_seconds", "power_command", "log_tolerance"})
#: UDP mappings should live for 5 minutes (RFC 4787 REQ-5c); a tenth more shows that they do.
_USUAL_WAIT_SECONDS: Final = 330.0
#: Open TCP connections must live for 7440 s (RFC 5382 REQ-5).
LONG_WAIT_SECONDS: Final = 7600.0
#: Source ports from 1024 on.
_EVERY_PORT: Final = 64_512


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditOptions:
    """Options of an audit."""

    profile: Literal["all", "cgn", "home", "nat64"] = chosen(
        "all", "Requirements to examine: all, or those for one kind of gateway"
    )
    wait: float = chosen(
        _USUAL_WAIT_SECONDS,
        "Longest wait for time-outs, which are all measured in the same wait; 0 measures none",
        "s",
        (0.0, 86_400.0),
    )
    long: bool = chosen(False, "Wait long enough for the 2 h 4 min of RFC 5382 for open TCP connections")
    mappings: int = chosen(
        _EVERY_PORT,
        "Most flows that one inside host opens, to see what the gateway does with many mappings and without room",
        "flows",
        partial(in_range, lowest=0, highest=_EVERY_PORT),
    )
    fail_on: Literal["must", "should"] | None = chosen(
        None, "Exit with status 12 if the gateway fails a requirement of this level or of a stricter one"
    )


def traffic_inputs() -> tuple[Input, ...]:
    """Return the inputs of the traffic that an audit has."""
    return tuple(input_ for input_ in inputs_of_part("traffic") if input_.name in _TRAFFIC)


def lab_inputs() -> tuple[Input, ...]:
    """Return the inputs of every lab that an audit has."""
    return tuple(input_ for input_ in inputs_of_part("lab") if input_.name not in _OF_TRIALS)


def device_inputs() -> tuple[Input, ...]:
    """Return the inputs of the device. An audit does not raise its time-outs, as a measurement does."""
    words = "UDP time-out of the device"
    return tuple(
        replace(input_, help=words, default_text="that it has") if input_.name == "udp_timeout" else input_
        for input_ in inputs_of_part("device")
        if input_.name not in _OF_TRIALS
    )


def audit_request(gateway: str | Path, choices: Mapping[str, object]) -> tuple[Cell, AuditOptions]:
    """Return gateway, lab and addresses, and the options, of names and values; None = not chosen."""
    own = {input_.name: input_ for input_ in inputs_of(AuditOptions)}
    cell, left = cell_of(gateway, choices)
    known = {*own, *(input_.name for input_ in (*traffic_inputs(), *lab_inputs(), *device_inputs())), *place_inputs()}
    for name, value in choices.items():
        if value is not None and name not in known:
            raise UsageError(f"{spoken(name)}: audit has no such option; leave it out")
    options = AuditOptions(**{name: own[name].take(value) for name, value in left.items()})
    if options.long and options.wait < LONG_WAIT_SECONDS:
        if left.get("wait") is not None:
            raise wrong("wait", f"{options.wait:g} s, but long waits {LONG_WAIT_SECONDS:g} s; leave one of them out")
        options = replace(options, wait=LONG_WAIT_SECONDS)
    return cell, options


def conditions(cell: Cell, options: AuditOptions) -> dict[str, Any]:
    """Return the choices on which a verdict may depend, by name, as JSON has them."""
    traffic = {name: getattr(cell.traffic, name) for name in _TRAFFIC}
    lab = cell.lab
    place = {"lab_kind": lab.lab, "nat64_prefix": lab.nat64_prefix, "outside_addresses": lab.outside_addresses}
    return {**place, **traffic, **asdict(cell.device), "mappings": options.mappings}
