# SPDX-License-Identifier: Apache-2.0
"""A procedure with settings that a bench can perform, and what is refused before it: queries, memory, waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from natgauge.errors import HostError, UsageError
from natgauge.ethernet import QUERY_OCTETS
from natgauge.gateways.limits import DeviceDemand, octets_needed, refuse_short_memory
from natgauge.gateways.recipe import Recipe
from natgauge.host.limits import ControlGroups
from natgauge.labs.contract import Device
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.settings import Profile, TrialSettings

#: Port of DNS servers (RFC 1035 section 4.2.1).
PORT: Final = 53


def refuse_unlike_queries(metric: str, first_port: int, last_port: int, frame_size: int | None) -> None:
    """Refuse traffic that cannot consist of queries; `frame_size` None = not chosen."""
    if (first_port, last_port) != (PORT, PORT):
        raise UsageError(
            f"destination ports: {first_port}-{last_port}, but {metric} sends DNS queries; use {PORT} alone, and no "
            "more connections than the other ranges hold",
            at="destination_ports",
        )
    if frame_size is not None:
        raise UsageError(
            f"frame size: {frame_size}, but {metric} sends DNS queries, which have {QUERY_OCTETS['ipv4']} octets over "
            f"IPv4 and {QUERY_OCTETS['ipv6']} over IPv6; leave it out",
            at="frame_size",
        )


#: Of the tester's own state table with IPv4 (bpf/shared.h); IPv6 takes more.
_OCTETS_PER_CONNECTION: Final = 8


def refuse_large(  # noqa: PLR0913 - what is demanded, and of whom, by keyword
    recipe: Recipe,
    device: Device | None,
    demand: DeviceDemand,
    *,
    stores: bool,
    own_processes: bool,
    groups: ControlGroups | None = None,
) -> None:
    """Refuse a demand that the device's machine, or the memory limit of natgauge's own control group, cannot hold.

    The entries of a kernel's connection tracking table count for no control group, but those of a process do. An
    external device is None.
    """
    needed = octets_needed(recipe, demand, {}, {})
    if device is not None:
        refuse_short_memory(recipe, demand, needed, device.machine.free_octets())
    left = (groups or ControlGroups()).memory_left()
    charged = demand.connections * _OCTETS_PER_CONNECTION if stores else 0
    if device is not None and device.machine.has_tester_files and own_processes:
        charged += needed
    if left is not None and charged > left:
        raise HostError(
            f"{recipe.name}: {demand.connections} connections take {charged >> 20} MiB, and the memory limit of this "
            f"control group leaves {left >> 20} MiB; raise the limit (docker: --memory), or use fewer connections"
        )


LONGEST_SECONDS: Final = 60.0
#: Least seconds of a profile, whatever suffices in the lab.
_LEAST: Final[Mapping[Profile, float]] = {"rfc": 2.0}


def checked(chosen: float | None) -> float | None:
    """Check the user's wait, in seconds."""
    if chosen is not None and not 0 <= chosen <= LONGEST_SECONDS:
        raise UsageError(f"grace: {chosen:g} is outside of 0 to {LONGEST_SECONDS:g} s", at="grace_seconds")
    return chosen


def grace_of(chosen: float | None, labs: float, profile: Profile) -> float:
    """Return the wait in seconds: the user's, otherwise the lab's, but not less than the profile's."""
    return max(labs, _LEAST.get(profile, 0.0)) if chosen is None else chosen


@dataclass(frozen=True, slots=True)
class Planned:
    """One procedure with settings that its bench can perform."""

    procedure: Procedure[Any]
    settings: TrialSettings
    demand: DeviceDemand
    chosen: Mapping[str, Any] = field(default_factory=dict)
