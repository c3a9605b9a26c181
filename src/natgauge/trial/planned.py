# SPDX-License-Identifier: Apache-2.0
"""A procedure with settings that a bench can perform, and what is refused before it: queries, memory, waits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from natgauge import procedures
from natgauge.errors import HostError, UsageError
from natgauge.ethernet import QUERY_OCTETS
from natgauge.figure_text import in_full
from natgauge.gateways.limits import DeviceDemand, octets_needed, refuse_short_memory
from natgauge.gateways.recipe import Recipe, load
from natgauge.host.capabilities import ControlGroups
from natgauge.inputs.input import wrong
from natgauge.inputs.question import MIXES, Cell, Question, TrafficOptions
from natgauge.labs.contract import Device
from natgauge.measurer import Ability
from natgauge.procedures.kit.procedure import Procedure, make_settings
from natgauge.procedures.kit.settings import Profile, TrialSettings
from natgauge.words import DEFAULT_CONNECTIONS, TESTER

#: Port of DNS servers (RFC 1035 section 4.2.1).
_DNS_PORT: Final = 53
#: Of the tester's own state table with IPv4 (bpf/shared.h); IPv6 takes more.
_OCTETS_PER_CONNECTION: Final = 8
_LONGEST_GRACE_SECONDS: Final = 60.0
#: Least grace of a profile, in seconds, whatever suffices in the lab.
_LEAST_GRACE: Final[Mapping[Profile, float]] = {"rfc": 2.0}


@dataclass(frozen=True, slots=True)
class Planned:
    """One procedure with settings that its bench can perform."""

    procedure: Procedure[Any]
    settings: TrialSettings
    demand: DeviceDemand
    chosen: Mapping[str, Any] = field(default_factory=dict)


def refuse_unlike_metric(question: Question) -> None:
    """Refuse options that the metric has no use for, before anything looks at their values or asks the gateway.

    Settings that are wrong themselves are refused with the plan of the procedure.
    """
    procedure, traffic = procedures.get(question.metric), question.cell.traffic
    try:
        settings = make_settings(
            procedure,
            procedure.taken(question.settings),
            connections=traffic.connections or DEFAULT_CONNECTIONS,
            placement="shared",
            order=traffic.order,
            four_tuples=traffic.connections or DEFAULT_CONNECTIONS,
        )
    except UsageError:
        return
    refuse_unlike(procedure.metric, settings, question.cell)


@contextmanager
def frames_of_profile(question: Question) -> Iterator[None]:
    """Name the file in refusals of the frame sizes that follow from a subscriber's profile: nobody gave an option."""
    try:
        yield
    except UsageError as error:
        settings = procedures.get(question.metric).settings
        if error.at not in {"frame_size", *MIXES} or error.at not in settings.traffic_of(question.settings):
            raise
        profile = question.settings.get("subscriber", getattr(settings, "subscriber", ""))
        raise UsageError(f"subscriber: {profile}: {error}", at="subscriber") from None


def refuse_unlike(metric: str, settings: TrialSettings, cell: Cell) -> None:
    """Refuse options of the cell that a metric with these settings has no use for."""
    traffic = cell.traffic
    has_tags = settings.query is not None and traffic.responder_vlan is not None
    if has_tags and (settings.far_side != TESTER or load(cell.gateway).answers_queries):
        raise wrong("responder_vlan", "a server behind the gateway, or a gateway that is one, has none; leave it out")
    _refuse_transport(metric, settings, traffic)
    if cell.lab.power_command is not None and settings.needs() & {Ability.PERIODS, Ability.COSTS}:
        raise wrong("power_command", f"{metric} reads no power meter; leave it out")
    if settings.query is None:
        return
    if traffic.frame_size is not None:
        raise UsageError(
            f"frame size: {traffic.frame_size}, but {metric} sends DNS queries, which have {QUERY_OCTETS['ipv4']} "
            f"octets over IPv4 and {QUERY_OCTETS['ipv6']} over IPv6; leave it out",
            at="frame_size",
        )
    _refuse_sizes(traffic, f"{metric} sends DNS queries, whose sizes are those of their names", *MIXES)


def refuse_unused(settings: TrialSettings, choices: Mapping[str, object]) -> None:
    """Refuse settings that the user chose, and that nothing takes beside the others."""
    for name, why in settings.unused.items():
        if (value := choices.get(name)) is not None:
            raise wrong(name, f"{in_full(value)}, but {why}; leave it out")


def _refuse_transport(metric: str, settings: TrialSettings, traffic: TrafficOptions) -> None:
    """Refuse metrics whose frames cannot be those of the transport, and sizes that their frames cannot have."""
    transport = traffic.transport
    if settings.close is not None or settings.half_open:
        if transport != "tcp":
            does = "needs half-open" if settings.half_open else "closes"
            raise UsageError(f"transport: {transport}, but {metric} {does} TCP connections; choose tcp", at="transport")
        _refuse_sizes(
            traffic, f"the segments of {metric} have the sizes of their headers and requests", "frame_size", *MIXES
        )
    if transport == "tcp" and not settings.phase2_seconds:
        _refuse_sizes(traffic, f"{metric} only opens TCP connections, whose segments have no data", *MIXES)
    if transport == "tcp" and settings.always_draws:
        raise UsageError(
            f"transport: tcp, but {metric} draws four tuples with replacement, and a TCP connection is opened once; "
            "choose udp or icmp",
            at="transport",
        )
    if transport != "udp" and (settings.query is not None or Ability.BACKGROUND in settings.needs()):
        what = "DNS queries" if settings.query is not None else "native IPv6 in the background"
        raise UsageError(f"transport: {transport}, but {metric} sends {what} by UDP; leave it out", at="transport")


def _refuse_sizes(traffic: TrafficOptions, why: str, *names: str) -> None:
    for name in names:
        if (chosen := getattr(traffic, name)) is not None:
            raise wrong(name, f"{chosen}, but {why}; leave it out")


def refuse_unlike_queries(metric: str, first_port: int, last_port: int) -> None:
    """Refuse destination ports that no DNS server has."""
    if (first_port, last_port) != (_DNS_PORT, _DNS_PORT):
        raise UsageError(
            f"destination ports: {first_port}-{last_port}, but {metric} sends DNS queries; use {_DNS_PORT} alone, and "
            "no more connections than the other ranges hold",
            at="destination_ports",
        )


def refuse_large(
    recipe: Recipe, device: Device | None, demand: DeviceDemand, *, stores: bool, own_processes: bool
) -> None:
    """Refuse a demand that the device's machine, or the memory limit of natgauge's own control group, cannot hold.

    The entries of a kernel's connection tracking table count for no control group, but those of a process do. An
    external device is None.
    """
    needed = octets_needed(recipe, demand, {}, {})
    if device is not None:
        refuse_short_memory(recipe, demand, needed, device.machine.free_octets())
    left = ControlGroups().memory_left()
    charged = demand.least_held * _OCTETS_PER_CONNECTION if stores else 0
    if device is not None and device.machine.has_tester_files and own_processes:
        charged += needed
    if left is not None and charged > left:
        raise HostError(
            f"{recipe.name}: {demand.least_held} connections take {charged >> 20} MiB, and the memory limit of this "
            f"control group leaves {left >> 20} MiB; raise the limit (docker: --memory), or use fewer connections"
        )


def refuse_wrong_grace(chosen: float | None) -> None:
    """Refuse a wait of the user's, in seconds, that no trial can have."""
    if chosen is not None and not 0 <= chosen <= _LONGEST_GRACE_SECONDS:
        raise UsageError(f"grace: {chosen:g} is outside of 0 to {_LONGEST_GRACE_SECONDS:g} s", at="grace_seconds")


def grace_of(chosen: float | None, labs: float, settings: TrialSettings) -> float:
    """Return the wait in seconds: the user's, otherwise the lab's, but not less than the profile's.

    Nor less than the time for which a frame may be on its way: a frame in time that comes after the wait is lost.
    """
    if chosen is not None:
        return chosen
    return max(labs, _LEAST_GRACE.get(settings.profile, 0.0), settings.frame_timeout_seconds or 0.0)


def refuse_short_grace(chosen: float | None, settings: TrialSettings) -> None:
    """Refuse a wait of the user's that ends before a frame is late."""
    limit = settings.frame_timeout_seconds
    if chosen is not None and limit is not None and chosen < limit:
        raise UsageError(
            f"grace: {chosen:g} s, but a frame has {limit:g} s before it is late (frame timeout); give a grace of at "
            f"least {limit:g} s, or leave it out",
            at="grace_seconds",
        )
