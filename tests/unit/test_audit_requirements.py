# SPDX-License-Identifier: Apache-2.0
"""Each requirement is met by a NAT that behaves, and failed by exactly the NATs that do not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from ipaddress import IPv6Address
from itertools import cycle
from random import Random
from typing import Any, Literal, NamedTuple

import pytest
from tests.unit import simulated_nat
from tests.unit.made_audits import record, requirement
from tests.unit.simulated_nat import OUTSIDE, Behaviour, examiner_of
from tests.unit.simulated_nat64 import INSIDE, Nat64

from natgauge.audits.audit import exit_status
from natgauge.audits.kit import crowd
from natgauge.audits.kit.classes import MAPPING_FLOWS, PortsSeen, hairpinned
from natgauge.audits.kit.crowd import Crowd
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Flow
from natgauge.audits.kit.hosts import RESERVED, Flows
from natgauge.audits.kit.observations import NotApplicableError, NotSeenError
from natgauge.audits.kit.packets import SYN, Endpoint, ErrorMessage, Packet, TcpSegment, read_packet
from natgauge.audits.kit.timers import ESTABLISHED, TIMERS, UDP_BOTH, UDP_OUT, TimerKind, idle_times, watch
from natgauge.audits.request import LONG_WAIT_SECONDS, audit_request
from natgauge.audits.requirements import NO_FLOWS, TABLE, Requirement, packets, port_rules, requirements, unknown
from natgauge.audits.runner import classes, examine
from natgauge.port_blocks import PortBlocks
from natgauge.records.audit import AuditedRequirement, AuditVerdict
from natgauge.words import Side

#: Long enough for all time-outs but that of open TCP connections.
WAIT = 330.0
#: Requirements that no frame shows.
OUT_OF_SIGHT = {f"RFC{rfc}-{name}" for rfc, name, *_ in TABLE} | {"RFC7857-2.1-separate"}
#: Runs with other pseudorandom choices.
SEEDS = (1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (2, 3)))
#: Behaviour that moves time-outs.
TIMED = (
    "udp_seconds",
    "icmp_seconds",
    "transitory_seconds",
    "closed_seconds",
    "established_seconds",
    "reset_seconds",
    "errors_refresh_queries",
    "query_errors_kill",
)
#: Behaviour that leaves no room for further flows, and what shows only there.
LIMITS = ("host_ports", "host_sessions", "room", "blocks", "port_range")
FILLING = {one.key for one in requirements() if one.strain} - {"RFC4787-REQ-11"}
TIMED_REQUIREMENTS = {one.key for one in requirements() if one.timers}
#: What another source than that of the mapping fails, and what errors fail that are dropped or quote another packet.
EXTERNAL_SOURCE = {"RFC4787-REQ-9a", "RFC5382-REQ-8a", "RFC5508-REQ-7"}
ERRORS_TRANSLATED = {"RFC4787-REQ-12b", "RFC5382-REQ-9", "RFC5508-REQ-4"}
#: Blocks of each host that are computed, and blocks of those that ask for one.
COMPUTED = Behaviour(host_ports=1200, blocks=PortBlocks(size=1200, first_port=2224, deterministic=True))
ON_DEMAND = Behaviour(blocks=PortBlocks(size=1000))


def to_second(packet: Packet) -> bool:
    """Whether a packet goes to or comes from the second remote host."""
    return OUTSIDE + 2 in (packet.source, packet.destination)


def of_host(number: int) -> Callable[[Packet], bool]:
    """Whether an inside host, from 1 on, sends a packet."""
    return lambda packet: packet.source == INSIDE + number


def has_error(packet: Packet, *, but: tuple[int, int] = (0, 0), octets: int | None = None) -> bool:
    """Whether a packet has an ICMP error of another type and code, that quotes so many octets (None = any number)."""
    error = packet.segment
    if not isinstance(error, ErrorMessage):
        return False
    return (error.kind, error.code) != but and octets in (None, len(error.quoted))


def has_source_port(port: int) -> Callable[[Packet], bool]:
    return lambda packet: packet.sender is not None and packet.sender.port == port


def is_large_fragment(packet: Packet) -> bool:
    return packet.is_fragment and len(packet.payload) > 1000


#: Behaviour that differs from the right one, and the requirements that it fails ("transport" left out: all of them).
WRONG: dict[str, tuple[Behaviour, set[str]]] = {
    "mapping by address and port": (
        Behaviour(mapping="address and port-dependent"),
        {"RFC4787-REQ-1", "RFC5382-REQ-1", "RFC5508-REQ-1a"},
    ),
    "filtering by address": (Behaviour(filtering="address-dependent"), {"RFC6888-REQ-7"}),
    "filtering by address and port": (
        Behaviour(filtering="address and port-dependent"),
        {"RFC4787-REQ-8", "RFC5382-REQ-3", "RFC6888-REQ-7"},
    ),
    "overloading": (
        Behaviour(ports="overloading", mapping="address and port-dependent"),
        {"RFC4787-REQ-1", "RFC4787-REQ-3", "RFC4787-REQ-11", "RFC5382-REQ-1", "RFC5382-REQ-7", "RFC5508-REQ-1a"},
    ),
    "contiguous": (
        Behaviour(ports="contiguous", parity=False),
        {"RFC4787-REQ-3a", "RFC4787-REQ-4", "RFC6888-REQ-15", "RFC7857-9"},
    ),
    "ports with a constant offset": (Behaviour(ports="offset"), {"RFC6888-REQ-15", "RFC7857-9"}),
    "two workers that count ports": (
        Behaviour(ports="workers"),
        {"RFC4787-REQ-3a", "RFC4787-REQ-4", "RFC6888-REQ-15", "RFC7857-9"},
    ),
    "no parity": (Behaviour(parity=False), {"RFC4787-REQ-4"}),
    "no hairpinning": (Behaviour(hairpinning="none"), {"RFC4787-REQ-9", "RFC5382-REQ-8"}),
    "hairpinning with internal source": (
        Behaviour(hairpinning="internal source"),
        EXTERNAL_SOURCE,
    ),
    "hairpinning with the address of its LAN": (
        Behaviour(hairpinning="source on the LAN"),
        EXTERNAL_SOURCE,
    ),
    "hairpinning with another port": (
        Behaviour(hairpinning="another port"),
        EXTERNAL_SOURCE,
    ),
    "arbitrary pooling": (Behaviour(addresses=4, paired=False), {"RFC4787-REQ-2", "RFC6888-REQ-2", "RFC7857-4-paired"}),
    "pooling by remote host": (
        Behaviour(addresses=4, paired_by_remote=True, mapping="address-dependent"),
        {"RFC4787-REQ-1", "RFC5382-REQ-1", "RFC5508-REQ-1a", "RFC4787-REQ-2", "RFC6888-REQ-2", "RFC7857-4-paired"},
    ),
    "pooling by transport": (Behaviour(addresses=4, paired_by_transport=True), {"RFC6888-REQ-2"}),
    "UDP 30 s": (Behaviour(udp_seconds=30.0), {"RFC4787-REQ-5", "RFC4787-REQ-5c"}),
    "UDP 180 s": (Behaviour(udp_seconds=180.0), {"RFC4787-REQ-5c"}),
    "no outbound refresh": (
        Behaviour(udp_seconds=180.0, refreshes_outbound=False),
        {"RFC4787-REQ-5c", "RFC4787-REQ-6"},
    ),
    "no inbound refresh": (Behaviour(udp_seconds=180.0, refreshes_inbound=False), {"RFC4787-REQ-5c"}),
    "ICMP 20 s": (Behaviour(icmp_seconds=20.0), {"RFC5508-REQ-2"}),
    "TCP 60 s": (Behaviour(transitory_seconds=60.0), {"RFC5382-REQ-5", "RFC7857-2.1", "RFC7857-2.2"}),
    "closed TCP 10 s": (Behaviour(closed_seconds=10.0), {"RFC7857-2.1"}),
    "open TCP 200 s": (Behaviour(established_seconds=200.0), {"RFC5382-REQ-5-established", "RFC7857-2"}),
    "half-open TCP as long as open": (
        Behaviour(established_at_once=True, established_seconds=300.0),
        {"RFC5382-REQ-5-established", "RFC7857-2"},
    ),
    "reset TCP 10 s": (Behaviour(reset_seconds=10.0), {"RFC7857-2.2"}),
    "resets dropped": (Behaviour(resets_pass=False), {"RFC7857-2.2-translated"}),
    "ICMP errors from inside refresh": (
        Behaviour(udp_seconds=180.0, errors_refresh=True),
        {"RFC4787-REQ-5c", "RFC7857-7.1"},
    ),
    "one mapping for all protocols": (Behaviour(separate_mappings=False), {"RFC7857-5"}),
    "one mapping for all protocols, kept port": (Behaviour(separate_mappings=False, ports="preserving"), {"RFC7857-5"}),
    "mappings of UDP admit TCP": (Behaviour(separate_protocols=False), {"RFC7857-6"}),
    "one filter for all protocols": (
        Behaviour(separate_filters=False, filtering="address-dependent"),
        {"RFC6888-REQ-7", "RFC7857-6"},
    ),
    "identification kept, with DF": (Behaviour(sets_dont_fragment=True), set()),
    "identification kept": (Behaviour(new_identification=False), {"RFC7857-10"}),
    "ports given again at once": (
        Behaviour(ports="preserving", port_held_seconds=0.0, udp_seconds=180.0),
        {"RFC4787-REQ-5c", "RFC6888-REQ-8"},
    ),
    "ports held": (Behaviour(ports="preserving", udp_seconds=180.0), {"RFC4787-REQ-5c"}),
    "limited hosts": (Behaviour(host_ports=1600), set()),
    "limited sessions": (Behaviour(host_sessions=1800), set()),
    "code 1 only": (Behaviour(host_ports=1600, refusal_codes=(1,)), set()),
    "no ICMP error about refused flows": (
        Behaviour(host_ports=1600, refusal_codes=()),
        {"RFC5508-REQ-8", "RFC6888-REQ-11b"},
    ),
    "code 13 only": (Behaviour(host_ports=1600, refusal_codes=(13,)), {"RFC6888-REQ-11b"}),
    "refused frames untranslated": (Behaviour(host_ports=1600, refused_leak=True), {"RFC6888-REQ-11a"}),
    "one host takes all": (Behaviour(room=1460), set()),
    "old mappings make room": (Behaviour(room=600, evicts=True), {"RFC6888-REQ-11d"}),
    "a computed block that is another one": (replace(COMPUTED, misplaced=50), {"RFC7422-2"}),
    "a host without a computed block": (replace(COMPUTED, unserved=51), {"RFC7422-2"}),
    "blocks that are taken away": (replace(ON_DEMAND, takes_blocks=True), {"RFC6888-REQ-11d-blocks"}),
    "no fragments": (Behaviour(fragments="none"), {"RFC4787-REQ-14"}),
    "fragments in order": (Behaviour(fragments="in order"), {"RFC4787-REQ-14"}),
    "ICMP error ends a mapping": (Behaviour(icmp_kills=True), {"RFC4787-REQ-12", "RFC5382-REQ-10"}),
    "ICMP errors dropped": (
        Behaviour(errors="dropped"),
        ERRORS_TRANSLATED,
    ),
    "quoted packet to another host": (
        Behaviour(errors="another destination"),
        ERRORS_TRANSLATED,
    ),
    "Fragmentation Needed dropped": (
        Behaviour(errors="too big dropped"),
        ERRORS_TRANSLATED,
    ),
    "ICMP error of the inside ends a mapping": (
        Behaviour(inside_errors_kill=True),
        {"RFC4787-REQ-12", "RFC5382-REQ-10"},
    ),
    "ICMP errors of the inside untranslated": (Behaviour(inside_errors_from=INSIDE + 1), {"RFC5508-REQ-5"}),
    "quoted packet as outside": (
        Behaviour(errors="inner as outside"),
        {"RFC4787-REQ-12b", "RFC5382-REQ-9", "RFC5508-REQ-3b", "RFC5508-REQ-4"},
    ),
    "ICMP errors of the remote host only": (Behaviour(error_source_filtered=True), {"RFC4787-REQ-12a"}),
    "checksums of ICMP errors unchecked": (Behaviour(error_checksum_verified=False), {"RFC5508-REQ-3"}),
    "quoted headers unchecked": (Behaviour(quoted_header_verified=False), {"RFC5508-REQ-3a"}),
    "ICMP extensions dropped": (Behaviour(extensions_pass=False), {"RFC5508-REQ-3d"}),
    "no ICMP errors of the inside": (Behaviour(errors_from_inside=False), {"RFC5508-REQ-5", "RFC5508-REQ-7"}),
    "no hairpinned ICMP errors": (Behaviour(hairpins_errors=False), {"RFC5508-REQ-7"}),
    "no error for packets that are too big": (Behaviour(frag_needed=False), {"RFC4787-REQ-13"}),
    "fragments sent out of order": (Behaviour(fragments_in_order=False), {"RFC4787-REQ-13a-order"}),
    "no fragmentation": (Behaviour(fragments_too_big=False), {"RFC4787-REQ-13a"}),
    "ports written into later fragments": (
        Behaviour(writes_into_fragments=True),
        {"RFC4787-REQ-13a", "RFC4787-REQ-14"},
    ),
    "no Time Exceeded": (Behaviour(ttl_errors=False), {"RFC5508-REQ-10a"}),
    "ICMP errors of the gateway after 0.5 s": (Behaviour(error_seconds=0.5), set()),
    "no simultaneous open": (Behaviour(simultaneous_open=False), {"RFC5382-REQ-2a"}),
    "reset for an unsolicited SYN": (Behaviour(unsolicited_syn="reset"), {"RFC5382-REQ-4"}),
    "ICMP error for an unsolicited SYN": (Behaviour(unsolicited_syn="error"), {"RFC5382-REQ-4"}),
    "late ICMP error for an unsolicited SYN": (Behaviour(unsolicited_syn="late error"), set()),
    "invalid segments untranslated": (
        Behaviour(invalid_leaks=True),
        {one.key for one in requirements() if one.rfc == 1918},
    ),
    "no ICMP queries": (Behaviour(queries="dropped"), {"RFC5508-REQ-1"}),
    "no replies to ICMP queries": (Behaviour(queries="replies dropped"), {"RFC5508-REQ-1"}),
    "room for few fragments": (Behaviour(fragment_room=64), {"RFC4787-REQ-14a"}),
    "FINs dropped": (Behaviour(fins_pass=False), {"RFC5382-REQ-2"}),
    "quoted segments checked": (Behaviour(quoted_segment_verified=True), {"RFC5508-REQ-3c"}),
    "ICMP errors refresh a query": (Behaviour(errors_refresh_queries=True), {"RFC5508-REQ-6"}),
    "ICMP errors end a query": (Behaviour(query_errors_kill=True), {"RFC5508-REQ-6"}),
    "two hosts share a port to one remote host": (
        Behaviour(ports="overloading", overlaps=True),
        {"RFC4787-REQ-3", "RFC5382-REQ-7", "RFC7857-3"},
    ),
    "a second address where the first is full": (Behaviour(addresses=2, host_ports=800, spills=True), {"RFC7857-4"}),
    "NAT64": (Behaviour(nat64=Nat64()), set()),
    "NAT64 without checksums": (Behaviour(nat64=Nat64(adds_checksum=False)), {"RFC6146-3.4-checksum"}),
    "NAT64 with DF": (Behaviour(nat64=Nat64(largest_without_df=0)), {"RFC7915-5.1-DF"}),
    "NAT64 without DF": (Behaviour(nat64=Nat64(largest_without_df=65535)), {"RFC7915-5.1-DF", "RFC4787-REQ-13"}),
    "NAT64 with the MTU of IPv4": (Behaviour(nat64=Nat64(added_to_mtu=0)), {"RFC7915-4.2-MTU"}),
    "NAT64 that cuts nothing": (Behaviour(nat64=Nat64(least_mtu=65535)), {"RFC7915-4-1280"}),
    "PCP refuses": (Behaviour(pcp="refuses"), {"RFC6888-REQ-9"}),
    "PCP opens nothing": (Behaviour(pcp="opens nothing"), {"RFC6888-REQ-9"}),
    "PCP without deletion": (Behaviour(pcp="ignores deletion"), {"RFC6887-15-delete"}),
    "PCP without end": (Behaviour(pcp="never ends"), {"RFC6887-15-lifetime"}),
    "PCP for others": (Behaviour(pcp="any address"), {"RFC6887-8.2-address"}),
    "no PCP": (Behaviour(pcp="none"), set()),
    "application level gateway": (Behaviour(alg=True), {"RFC4787-REQ-10", "RFC5382-REQ-6"}),
    # Right in the first case that is looked at, and wrong in another one.
    "mapping of another host by address and port": (
        Behaviour(elsewhere=Behaviour(mapping="address and port-dependent"), is_elsewhere=of_host(2)),
        {"RFC4787-REQ-1", "RFC5382-REQ-1", "RFC5508-REQ-1a"},
    ),
    "filter for one remote host": (
        Behaviour(
            elsewhere=Behaviour(filtering="address-dependent"), is_elsewhere=lambda packet: packet.source == OUTSIDE + 3
        ),
        {"RFC6888-REQ-7"},
    ),
    "hairpinning one way": (
        Behaviour(elsewhere=Behaviour(hairpinning="none"), is_elsewhere=of_host(1)),
        {"RFC4787-REQ-9", "RFC5382-REQ-8"},
    ),
    "hairpinning for two hosts": (
        Behaviour(elsewhere=Behaviour(hairpinning="none"), is_elsewhere=of_host(3)),
        {"RFC4787-REQ-9", "RFC5382-REQ-8"},
    ),
    "hairpinning with internal source for one host": (
        Behaviour(elsewhere=Behaviour(hairpinning="internal source"), is_elsewhere=of_host(3)),
        EXTERNAL_SOURCE - {"RFC5508-REQ-7"},
    ),
    "pooling by source port": (
        Behaviour(addresses=4, paired_by_port=True),
        {"RFC4787-REQ-2", "RFC6888-REQ-2", "RFC7857-4-paired"},
    ),
    "no data after a FIN of the outside": (Behaviour(half_closed_passes=False), {"RFC5382-REQ-2"}),
    "reset for a SYN to a port that is filtered": (
        Behaviour(unsolicited_syn="reset of a port in use", filtering="address-dependent"),
        {"RFC5382-REQ-4", "RFC6888-REQ-7"},
    ),
    "large fragments dropped": (
        Behaviour(elsewhere=Behaviour(fragments="none"), is_elsewhere=is_large_fragment),
        {"RFC4787-REQ-14"},
    ),
    "ICMP errors that quote little dropped": (
        Behaviour(elsewhere=Behaviour(errors="dropped"), is_elsewhere=partial(has_error, octets=28)),
        ERRORS_TRANSLATED,
    ),
    "one kind of ICMP errors of the inside": (
        Behaviour(elsewhere=Behaviour(errors_from_inside=False), is_elsewhere=partial(has_error, but=(3, 3))),
        {"RFC5508-REQ-5"},
    ),
    "most kinds of ICMP errors of the inside end a mapping": (
        Behaviour(elsewhere=Behaviour(inside_errors_kill=True), is_elsewhere=partial(has_error, but=(3, 3))),
        {"RFC4787-REQ-12", "RFC5382-REQ-10"},
    ),
    "any port where a port below 1024 is taken": (Behaviour(ports="preserving", ranges=False), {"RFC4787-REQ-3a"}),
    "NAT64 with DF above 1280 octets": (Behaviour(nat64=Nat64(largest_without_df=1280)), {"RFC7915-5.1-DF"}),
    "no ICMP queries to one remote host": (
        Behaviour(elsewhere=Behaviour(queries="dropped"), is_elsewhere=to_second),
        {"RFC5508-REQ-1"},
    ),
}


@pytest.fixture(autouse=True)
def _fewer_lone_fragments(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Send a tenth of an audit's lone fragments: no simulated NAT has room for so many; `make soak` sends them all."""
    if request.node.get_closest_marker("soak") is None:
        monkeypatch.setattr(packets, "_LONE", 100)


def audited(behaviour: Behaviour, seed: int = 1) -> tuple[AuditedRequirement, ...]:
    """Examine a NAT for all requirements; time-outs only where they are not those of a NAT that behaves."""
    return _audited(behaviour, seed)


@cache
def _audited(behaviour: Behaviour, seed: int) -> tuple[AuditedRequirement, ...]:
    return tuple(examined(behaviour, seed))


def examined(
    behaviour: Behaviour, seed: int = 1, asked: Iterable[Requirement] | None = None, **keep: Any
) -> Iterator[AuditedRequirement]:
    """Examine a NAT for these requirements (None = all); `keep` receives the frames of each verdict."""
    asked = list(requirements() if asked is None else asked)
    examiner = examiner_of(behaviour, seed=seed)
    if behaviour == Behaviour() or is_timed(behaviour):
        # `make soak` has other seeds.
        times = some_idle_times if seed == 1 and behaviour != Behaviour() else idle_times
        watched = {name for one in asked for name in one.timers}
        examiner.timers.update(watch(examiner, [kind for kind in TIMERS if kind.name in watched], WAIT, times=times))
    if behaviour == Behaviour() or is_limited(behaviour):
        return examine(examiner, asked, **keep)
    # A NAT without limits only takes long to fill.
    examiner.mappings = 64
    return examine(examiner, [one for one in asked if one.key not in FILLING], **keep)


@cache
def wrong_audited(name: str, seed: int) -> tuple[AuditedRequirement, ...]:
    """Examine a NAT for what it fails, and for every third other requirement; `make soak`: for all, with other seeds.

    Each requirement is thus examined with a third of the NATs that do not fail it. A NAT of which only its limit is
    told is examined for all, because each examination leaves less room for the next; another limited one for what
    fills it.
    """
    behaviour, failed = WRONG[name]
    if seed != 1 or name in AT_TIMES or (is_limited(behaviour) and not failed):
        return audited(behaviour, seed)
    asked = failed | (FILLING if is_limited(behaviour) else set())
    numbered = enumerate(requirements(), start=list(WRONG).index(name))
    return tuple(examined(behaviour, seed, [one for number, one in numbered if one.key in asked or number % 3 == 0]))


def some_idle_times(kind: TimerKind, wait: float) -> list[float]:
    """Every other of an audit's idle times, with the last one: wrong time-outs are far from what is required."""
    return idle_times(kind, wait)[::-2][::-1]


def is_timed(behaviour: Behaviour) -> bool:
    """Whether its time-outs are not those of a NAT that behaves."""
    return any(getattr(behaviour, name) != getattr(Behaviour(), name) for name in TIMED)


def is_limited(behaviour: Behaviour) -> bool:
    """Whether it leaves no room for further flows at some time."""
    return any(getattr(behaviour, name) != getattr(Behaviour(), name) for name in LIMITS)


def right() -> tuple[AuditedRequirement, ...]:
    return audited(Behaviour())


def keys(found: Iterable[AuditedRequirement], verdict: AuditVerdict) -> set[str]:
    return {one.key for one in found if one.verdict == verdict}


def of(*keys: str) -> list[Requirement]:
    """These requirements, for UDP where it is one of their transports."""
    chosen = [one for one in requirements() if one.key in keys]
    return [replace(one, transports=("udp",)) if "udp" in one.transports else one for one in chosen]


def test_a_nat_that_behaves_fails_nothing() -> None:
    assert keys(right(), "fails") == set()
    reasons = {one.key: one.measured for one in right() if one.verdict == "not seen"}
    assert reasons.keys() >= {"RFC5382-REQ-5-established", *OUT_OF_SIGHT}  # needs 2 hours
    limits = {"RFC5508-REQ-8", *(f"RFC6888-REQ-{name}" for name in ("4", "5", "8", "11a", "11b", "11d", "14"))}
    assert reasons.keys() - OUT_OF_SIGHT - {"RFC5382-REQ-5-established"} == limits
    assert "none was refused" in reasons["RFC6888-REQ-4"]


#: What a NAT fails only if the ports that an examination draws fill its first address before another examination.
AT_TIMES: dict[str, set[str]] = {"a second address where the first is full": {"RFC6888-REQ-2"}}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", WRONG)
def test_exactly_the_requirements_that_it_fails_are_named(name: str, seed: int) -> None:
    surely = WRONG[name][1]
    assert surely <= keys(wrong_audited(name, seed), "fails") <= surely | AT_TIMES.get(name, set())


#: Behaviour in which a requirement can be met that is not seen of a NAT without limits.
LIMITED: dict[str, tuple[Behaviour, set[str]]] = {
    "limited hosts": (
        Behaviour(host_ports=1600),
        {f"RFC6888-{name}" for name in ("REQ-4", "REQ-11a", "REQ-11b", "REQ-11d", "REQ-14")} | {"RFC5508-REQ-8"},
    ),
    "limited sessions": (Behaviour(host_sessions=1800), {"RFC6888-REQ-5"}),
    "ports held": (Behaviour(ports="preserving", udp_seconds=180.0), {"RFC6888-REQ-8"}),
    "computed blocks": (COMPUTED, {"RFC7422-2"}),
    "blocks on demand": (ON_DEMAND, {"RFC6888-REQ-11d-blocks"}),
    "overlapping ports": (Behaviour(ports="overloading", mapping="address and port-dependent"), {"RFC7857-3"}),
    "two addresses": (Behaviour(addresses=2, host_ports=1600), {"RFC4787-REQ-2", "RFC6888-REQ-2"}),
    "two addresses with few ports": (Behaviour(addresses=2, port_range=900), {"RFC7857-4"}),
}


@pytest.mark.parametrize("name", LIMITED)
def test_what_only_some_nats_can_show_is_met_by_them(name: str) -> None:
    behaviour, met = LIMITED[name]
    assert not met & keys(right(), "meets")
    assert met <= keys(audited(behaviour), "meets")


#: Requirements that no gateway can fail, with the reason.
NEVER_FAILED = {
    "RFC4787-REQ-6a": "frames from outside may refresh a mapping, and need not",
    "RFC6888-REQ-4": "a gateway may have the setting and not use it",
    "RFC6888-REQ-5": "a gateway may have the setting and not use it",
    "RFC6888-REQ-8-blocks": "takes two minutes, for which these audits do not wait: it has a test of its own",
    "RFC6888-REQ-14": "without blocks of ports, only the log shows how much is logged",
}


def test_each_requirement_has_a_nat_that_meets_it_and_one_that_fails_it() -> None:
    every = [*(wrong_audited(name, 1) for name in WRONG), *(audited(behaviour) for behaviour, _ in LIMITED.values())]
    failed = set().union(*(keys(found, "fails") for found in every))
    met = keys(right(), "meets").union(*(keys(found, "meets") for found in every))
    visible = {one.key for one in requirements()} - OUT_OF_SIGHT
    assert visible - failed == NEVER_FAILED.keys()
    # It is met after 2 hours and 4 minutes: see the test of the time-out of open connections.
    assert visible - met == {"RFC5382-REQ-5-established", "RFC6888-REQ-8-blocks"}


@pytest.mark.parametrize(("seconds", "verdict"), [(7440.0, "meets"), (7300.0, "fails")])
def test_the_time_out_of_open_connections_is_met_or_failed_after_two_hours(seconds: float, verdict: str) -> None:
    examiner = examiner_of(Behaviour(established_seconds=seconds))
    examiner.timers.update(watch(examiner, [kind for kind in TIMERS if kind.name == ESTABLISHED], LONG_WAIT_SECONDS))
    (one,) = examine(examiner, [each for each in requirements() if each.name == "REQ-5-established"])
    assert one.verdict == verdict, one.measured


#: Behaviour in which examinations open the most flows; each of it is the one in which some do.
BUSY = ("NAT64", "UDP 30 s", "ports held", "two addresses", "filtering by address")


def test_each_examination_opens_as_many_flows_as_it_declares_at_most() -> None:
    most: dict[str, int] = {}
    few = [one for one in requirements() if not one.flows.are_many]
    for behaviour in (({**WRONG, **LIMITED})[name][0] for name in BUSY):
        for one in few:
            examiner = examiner_of(behaviour)
            if one.timers and one.flows.each and behaviour.udp_seconds < WAIT / 2:
                watched = [kind for kind in TIMERS if kind.name in one.timers]
                examiner.timers.update(watch(examiner, watched, WAIT))
            for transport in one.transports:
                examiner.begin(transport)
                before = {host: examiner.inside.opened(host) for host in examiner.inside.every}
                with suppress(NotSeenError, NotApplicableError):
                    one.examine(examiner)
                opened = (examiner.inside.opened(host) - number for host, number in before.items())
                most[one.key] = max(most.get(one.key, 0), *opened)
    # Where ports come from a narrow range, flows are opened until a clash of ports is likely.
    ranged = {one.key for one in few if one.flows == Flows(MAPPING_FLOWS)}
    assert {one.key: most[one.key] for one in few if most[one.key] > one.flows.each and one.key not in ranged} == {}
    # Nor does it declare twice as many.
    assert {one.key: most[one.key] for one in few if one.flows.each > 2 * most[one.key]} == {}


def test_a_gateway_that_shares_ports_of_a_range_among_flows_of_a_host_fails_what_is_asked_of_mapping() -> None:
    wanted = [one for one in requirements() if one.key in ("RFC4787-REQ-1", "RFC5382-REQ-1", "RFC4787-REQ-11")]
    wanted += of("RFC4787-REQ-3", "RFC5382-REQ-7")
    behaviour = Behaviour(mapping="address and port-dependent", ports="of a range", port_range=1008)
    found = {one.key: one for one in examine(examiner_of(behaviour), wanted)}
    assert {one.verdict for one in found.values()} == {"fails"}
    changes = "mapping is endpoint-independent, and address and port-dependent while another flow has the same port"
    assert found["RFC4787-REQ-11"].measured == changes


@pytest.mark.parametrize(("by_remote", "verdict"), [(False, "meets"), (True, "not seen")])
@pytest.mark.parametrize("seed", SEEDS)
def test_hosts_with_ranges_of_ports_of_their_own_have_no_port_together(
    seed: int,
    by_remote: bool,  # noqa: FBT001
    verdict: str,
) -> None:
    behaviour = Behaviour(mapping="address and port-dependent", host_ports=1200, host_ports_by_remote=by_remote)
    found = list(examine(examiner_of(behaviour, seed=seed), of("RFC4787-REQ-3", "RFC5382-REQ-7")))
    assert {one.verdict for one in found} == {verdict}, [one.measured for one in found]


def test_a_range_of_a_host_and_a_remote_host_is_none_of_the_host() -> None:
    """Both hosts have ranges apart, but that of the second one is elsewhere to the second remote host."""
    block = Behaviour(mapping="address and port-dependent", host_ports=1200)
    other = replace(block, host_ports=1500)
    moved = replace(block, elsewhere=other, is_elsewhere=lambda packet: of_host(32)(packet) and to_second(packet))
    for behaviour, verdict in ((block, "meets"), (moved, "not seen")):
        examiner = examiner_of(behaviour)
        for _ in range(10):
            examiner.inside.go_on(for_many=False)
        (one,) = examine(examiner, of("RFC4787-REQ-3"))
        assert one.verdict == verdict, one.measured


@pytest.mark.parametrize("seed", SEEDS)
def test_hosts_with_one_outside_endpoint_by_chance_are_compared_to_one_remote_endpoint_too(seed: int) -> None:
    """Only a gateway whose mappings depend on the remote endpoint keeps both hosts apart."""
    wanted = of("RFC7857-3")
    (both,) = examine(examiner_of(Behaviour(overlaps=True, port_range=64), seed=seed), wanted)
    assert both.verdict == "fails", both.measured
    apart = Behaviour(mapping="address and port-dependent", ports="drawn", port_range=64)
    (different,) = examine(examiner_of(apart, seed=seed), wanted)
    assert different.verdict == "meets", different.measured


def test_an_inside_endpoint_with_a_mapping_shows_no_limit_of_a_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """The crowd has the inside ports from which other examinations choose."""
    monkeypatch.setattr(crowd, "_FIRST_PORT", 20_000)
    examiner = examiner_of(Behaviour(host_ports=5000, port_range=60_000), inside_hosts=3)
    examiner.mappings = 3000
    (one,) = examine(examiner, of("RFC6888-REQ-4"))
    assert one.verdict == "meets", one.measured


@pytest.mark.parametrize(("outside_hosts", "named"), [(1, 0), (3, 2)])
def test_remote_hosts_to_which_a_session_was_refused_are_named(outside_hosts: int, named: int) -> None:
    (one,) = examine(examiner_of(Behaviour(host_sessions=1800), outside_hosts=outside_hosts), of("RFC6888-REQ-5"))
    assert (one.verdict, one.measured.count(str(OUTSIDE)[:-1])) == ("meets", named), one.measured
    assert " 0 " not in one.measured


@pytest.mark.parametrize(("addresses", "inside_hosts"), [(1, 1), (256, 39)])
def test_where_no_two_hosts_compete_free_ports_decide_and_the_verdict_says_so(
    addresses: int, inside_hosts: int
) -> None:
    wanted = of("RFC4787-REQ-3a")
    (alone,) = examine(
        examiner_of(Behaviour(ports="preserving", addresses=addresses), inside_hosts=inside_hosts), wanted
    )
    (competing,) = examine(examiner_of(Behaviour(ports="preserving")), wanted)
    assert (alone.verdict, competing.verdict) == ("meets", "meets"), alone.measured
    assert (port_rules._ONLY_FREE in alone.measured, port_rules._ONLY_FREE in competing.measured) == (True, False)


def test_errors_are_examined_on_a_link_whose_gateway_has_no_known_address() -> None:
    examiner = examiner_of(Behaviour())
    examiner.network.sides = {side: replace(link, gateway=None) for side, link in examiner.network.sides.items()}
    (one,) = examine(examiner, of("RFC5508-REQ-4"))
    assert one.verdict == "meets", one.measured


def test_what_a_gateway_does_not_translate_is_not_seen() -> None:
    """Routing meets most of what is asked of a NAT; only that a private address leaves is a fault."""
    routed = examiner_of(Behaviour(untranslated=("tcp", "icmp"), unserved_leave=True))
    wanted = [one for one in requirements() if not one.timers and not one.strain]
    seen = classes(routed)
    assert [seen[each].filtering for each in ("udp", "tcp", "icmp")] == ["endpoint-independent", None, None]
    found = [one for one in examine(routed, wanted) if one.transport != "udp"]
    assert {one.key for one in found if one.verdict == "fails"} == {one.key for one in wanted if one.rfc == 1918}
    # Without an answer of a PCP server some do not apply.
    assert {one.verdict for one in found if one.rfc != 1918} <= {"not seen", "not applicable"}
    assert any(one.measured.startswith("the gateway does not translate TCP: ") for one in found)
    free = {(one.key, one.transport): one.verdict for one in right()}
    still = [one for one in examine(routed, wanted) if one.transport == "udp" and one.verdict != "not seen"]
    assert not [one for one in still if one.verdict != free[one.key, "udp"]]


class Judged(NamedTuple):
    """What is found of some requirements, for UDP where they have it.

    Attributes:
        keys: of the requirements, with spaces between them.
        said: a part of what was measured.
        unsaid: what is no part of it.
        inside_hosts: None = those of an audit.
    """

    behaviour: Behaviour
    keys: str
    verdict: AuditVerdict
    said: str = ""
    unsaid: str = "\n"
    inside_hosts: int | None = None


BY_REMOTE = Behaviour(mapping="address and port-dependent")
TO_ONE = Behaviour(elsewhere=Behaviour(), is_elsewhere=to_second)
RENUMBERS = Behaviour(sequence_offset=123_456_789)
CODE_1 = Behaviour(host_ports=1600, refusal_codes=(1,))
JUDGED = {
    "ports of a wide range that two hosts have by chance": Judged(
        BY_REMOTE, "RFC4787-REQ-3 RFC5382-REQ-7 RFC7857-3", "not seen"
    ),
    "random ports of a narrow range": Judged(Behaviour(port_range=128, parity=False), "RFC4787-REQ-3", "meets"),
    "counted ports meet by chance only": Judged(
        replace(BY_REMOTE, ports="contiguous"), "RFC4787-REQ-3 RFC5382-REQ-7", "not seen"
    ),
    "a port that two hosts share to one remote host": Judged(
        WRONG["two hosts share a port to one remote host"][0],
        "RFC4787-REQ-3 RFC5382-REQ-7 RFC7857-3",
        "fails",
        "at one time, to one remote host",
    ),
    "both protocols keep the port that another host has": Judged(
        WRONG["two hosts share a port to one remote host"][0], "RFC7857-5", "not seen", "UDP kept a port that another"
    ),
    "ports of other hosts that are all kept": Judged(
        WRONG["two hosts share a port to one remote host"][0],
        "RFC7857-9",
        "not applicable",
        "the gateway keeps all ports that hosts choose",
    ),
    "no fragments that lone ones could stop": Judged(
        Behaviour(fragments="none"), "RFC4787-REQ-14a", "not seen", "delivers no fragments from outside at all"
    ),
    # Where the remote endpoint is a part of the choice, a host has ports all over (Jool does so).
    "ports that lie together": Judged(Behaviour(host_ports=1600), "RFC6888-REQ-14", "meets", "to 4 remote endpoints"),
    "ports that lie together towards one remote endpoint": Judged(
        Behaviour(host_ports=1600, host_ports_by_remote=True), "RFC6888-REQ-14", "not seen"
    ),
    "a limit of flows to one remote host": Judged(
        replace(TO_ONE, host_ports=1600),
        "RFC6888-REQ-4",
        "not seen",
        "still got other outside ports to other remote endpoints",
    ),
    "a limit of sessions to one remote host": Judged(replace(TO_ONE, host_sessions=1800), "RFC6888-REQ-5", "not seen"),
    "a limit of sessions leaves flows for what follows": Judged(
        Behaviour(host_sessions=900), "RFC6888-REQ-4 RFC6888-REQ-5 RFC6888-REQ-11d", "meets"
    ),
    # Its limit is one of ports: of a block, each port serves flows to several remote endpoints.
    "a port that a host has already is no further one": Judged(
        replace(BY_REMOTE, ports="drawn", host_ports=512), "RFC6888-REQ-4", "meets"
    ),
    "a full table limits no sessions of a host": Judged(Behaviour(room=1460), "RFC6888-REQ-5", "not seen"),
    "a full table shows no limit of a host": Judged(
        Behaviour(room=900), "RFC6888-REQ-4", "not seen", "another host was refused; a limit for each host can be a s"
    ),
    "a full table fills no address": Judged(Behaviour(addresses=2, room=900), "RFC7857-4", "not seen"),
    "a limit of each host fills no address": Judged(
        Behaviour(addresses=2, host_ports=1600),
        "RFC7857-4",
        "not seen",
        "nothing shows that its outside address had no port left",
    ),
    # A gateway that gives up old mappings for new ones refuses no flow.
    "an address that was never full": Judged(
        Behaviour(addresses=2, room=600, evicts=True), "RFC7857-4", "not seen", "none was refused"
    ),
    # It fails, although the port before it was kept, which shows nothing without another host.
    "a port that leaves its range beside a kept one": Judged(
        Behaviour(
            ports="preserving",
            elsewhere=Behaviour(ports="random", ranges=False),
            is_elsewhere=has_source_port(1023),
        ),
        "RFC4787-REQ-3a",
        "fails",
        inside_hosts=1,
    ),
    "a kept port without a second inside address": Judged(
        Behaviour(ports="preserving"),
        "RFC4787-REQ-1 RFC4787-REQ-4",
        "not seen",
        "needs 2 addresses on the initiator's side",
        inside_hosts=1,
    ),
    "a random port without a second inside address": Judged(Behaviour(), "RFC4787-REQ-1", "meets", inside_hosts=1),
    # Errors of outside routers are IPv4's, whatever the inside has: RFC 792 wants 8 octets behind the header.
    "a NAT64 that drops errors that quote no more than they must": Judged(
        Behaviour(
            nat64=Nat64(),
            elsewhere=Behaviour(nat64=Nat64(), errors="dropped"),
            is_elsewhere=partial(has_error, octets=28),
        ),
        " ".join(ERRORS_TRANSLATED),
        "fails",
    ),
    "data of a datagram that were changed": Judged(
        Behaviour(writes_into_fragments=True),
        "RFC4787-REQ-13a",
        "fails",
        "a packet that may be fragmented arrived with other data",
        "dropped",
    ),
    "queries of a gateway that is dead": Judged(Behaviour(forwards=False), "RFC5508-REQ-1", "not seen"),
    "queries that are dropped": Judged(
        Behaviour(queries="dropped"),
        "RFC5508-REQ-1",
        "fails",
        "queries to 198.19.0.2 were dropped, while UDP of the same host passed",
    ),
    "a refused flow needs no code 13 where it has code 1": Judged(
        CODE_1, "RFC5508-REQ-8", "not applicable", "code 1 ICMP error, which RFC 6888 REQ-11 prefers to code 13"
    ),
    "code 1 is the right one": Judged(CODE_1, "RFC6888-REQ-11b", "meets"),
    # A host on IPv6 gets type 1 code 0 (RFC 7915 section 4.2), while RFC 6888 speaks of type 3 code 1.
    "the code that a translator gives instead of code 1": Judged(
        replace(CODE_1, nat64=Nat64()),
        "RFC5508-REQ-8",
        "not applicable",
        "type 1 code 0 ICMP error, which is code 1 as RFC 7915 translates it, which RFC 6888",
    ),
    "errors of the gateway within a second": Judged(
        Behaviour(error_seconds=0.9), "RFC5508-REQ-10a RFC4787-REQ-13", "meets", unsaid="within 1 s"
    ),
    "errors of the gateway after a second": Judged(
        Behaviour(error_seconds=2.5), "RFC5508-REQ-10a RFC4787-REQ-13", "fails", "within 1 s"
    ),
    "a gateway that ends connections itself": Judged(
        Behaviour(ends_connections=True), "RFC5382-REQ-2 RFC5382-REQ-4", "meets"
    ),
    "sequence numbers that are kept": Judged(Behaviour(), "RFC5382-REQ-2", "meets", unsaid="changes sequence numbers"),
    "sequence numbers that are changed": Judged(
        RENUMBERS, "RFC5382-REQ-2", "meets", "the gateway changes sequence numbers"
    ),
    "a SYN with a changed number that a filter of UDP admits": Judged(
        replace(RENUMBERS, separate_protocols=False), "RFC7857-6", "fails"
    ),
}


@pytest.mark.parametrize("name", JUDGED)
def test_what_is_found_of_a_requirement_and_why(name: str) -> None:
    case = JUDGED[name]
    found = list(examine(examiner_of(case.behaviour, inside_hosts=case.inside_hosts), of(*case.keys.split())))
    assert len(found) == len(case.keys.split())
    for one in found:
        assert one.verdict == case.verdict, one.measured
        assert case.said in one.measured
        assert case.unsaid not in one.measured


@pytest.mark.parametrize(
    ("behaviour", "verdict", "said"),
    [
        (WRONG["two hosts share a port to one remote host"][0], "fails", "at one time, to one remote host"),
        (BY_REMOTE, "not seen", ""),
    ],
    ids=["shared", "by chance"],
)
def test_a_port_that_two_hosts_have_is_judged_for_each_protocol(
    behaviour: Behaviour, verdict: AuditVerdict, said: str
) -> None:
    found = list(examine(examiner_of(behaviour), [one for one in requirements() if one.key == "RFC7857-3"]))
    assert [one.verdict for one in found] == [verdict, verdict]
    assert all(said in one.measured for one in found)


@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize(
    ("behaviour", "verdict"),
    [
        # With few ports left, it refuses flows of one host, and then opens flows of another one.
        (Behaviour(parity=False, port_range=1200, port_tries=2), "not seen"),
        (Behaviour(parity=False, host_ports=1000, port_tries=4), "meets"),
    ],
)
def test_ports_that_are_found_by_chance_tell_a_limit_of_a_host_from_a_full_address(
    behaviour: Behaviour, verdict: str, seed: int
) -> None:
    (one,) = examine(examiner_of(behaviour, seed=seed), of("RFC6888-REQ-4"))
    assert one.verdict == verdict, one.measured


def test_hosts_are_kept_for_each_examination_that_opens_many_flows() -> None:
    assert len({one.flows for one in requirements() if one.flows.are_many}) == RESERVED


@pytest.mark.parametrize("limit", [100, 1000])
def test_a_limit_of_flows_for_each_host_hides_no_other_requirement(limit: int) -> None:
    wanted = [one for one in requirements() if not one.timers and not one.strain]
    limited = examiner_of(Behaviour(host_flows=limit))
    assert all(found.mapping == "endpoint-independent" for found in classes(limited).values())
    found = list(examine(limited, wanted))
    free = {(one.key, one.transport): one.verdict for one in right()}
    assert not [one for one in found if one.verdict != free[one.key, one.transport]]


@pytest.mark.parametrize(
    ("addresses", "leave"),
    [(1, False), (4, True), *(pytest.param(*pair, marks=pytest.mark.soak) for pair in ((1, True), (4, False)))],
)
def test_inside_hosts_that_a_gateway_does_not_serve_change_no_verdict(addresses: int, leave: bool) -> None:  # noqa: FBT001
    """It has rules for five hosts, drops the frames of the others, or sends them on untranslated."""
    seen = []
    for served in (None, 5):
        limited = Behaviour(addresses=addresses, udp_seconds=170.0, host_ports=1600, served_hosts=served)
        examiner = examiner_of(replace(limited, unserved_leave=leave))
        examiner.timers.update(watch(examiner, TIMERS, WAIT, times=some_idle_times))
        seen.append(list(examine(examiner, requirements())))
    every, few = ({(one.key, one.transport): one.verdict for one in found} for found in seen)
    # Of five hosts, two have one of four addresses; five are too few for hosts that opened no flow before.
    different = {key: (every[key], few[key]) for key in every if every[key] != few[key]}
    assert not {key: pair for key, pair in different.items() if "not seen" not in pair}, different
    assert len(different) <= (0 if addresses == 1 else 3), different


#: What two hosts show only while they compete for one outside address.
COMPETING = {
    *("RFC4787-REQ-1", "RFC5382-REQ-1", "RFC5508-REQ-1a", "RFC4787-REQ-3", "RFC5382-REQ-7"),
    *("RFC7857-3", "RFC7857-10", "RFC6888-REQ-14"),
}


@pytest.mark.parametrize("inside_hosts", [3, 24])
def test_behind_a_pool_nothing_is_met_because_no_two_hosts_had_one_address(inside_hosts: int) -> None:
    """Three hosts have three of four addresses; of 24 hosts, some share one."""
    wrong = Behaviour(addresses=4, ports="overloading", mapping="address and port-dependent", new_identification=False)
    wanted = [one for one in requirements() if one.key in COMPETING]
    found = list(examine(examiner_of(wrong, inside_hosts=inside_hosts), wanted))
    failed = {"RFC4787-REQ-1", "RFC5382-REQ-1", "RFC5508-REQ-1a", "RFC4787-REQ-3", "RFC5382-REQ-7", "RFC7857-10"}
    if inside_hosts == 24:
        assert keys(found, "fails") == failed
    else:
        assert keys(found, "meets") | keys(found, "fails") == set()
        assert all("outside address" in one.measured for one in found)


def test_a_pool_whose_hosts_share_addresses_is_examined_like_one_address() -> None:
    wanted = [one for one in requirements() if one.key in COMPETING]
    found = list(examine(examiner_of(Behaviour(addresses=4)), wanted))
    assert keys(found, "meets") >= {"RFC4787-REQ-1", "RFC5382-REQ-1", "RFC4787-REQ-3", "RFC7857-10"}


def test_hosts_that_open_no_more_flows_show_nothing_of_their_computed_blocks() -> None:
    examiner = examiner_of(replace(COMPUTED, host_flows=1))
    for host in examiner.every_host:
        examiner.open(Endpoint(host, 20_000), examiner.remote())
    (one,) = examine(examiner, [replace(each, needs_forwarding=False) for each in requirements() if each.rfc == 7422])
    assert one.verdict == "not seen"
    assert "opened another flow" in one.measured


def test_a_time_out_that_is_too_long_to_wait_for_is_reported_as_it_is_set() -> None:
    examiner = examiner_of(Behaviour())
    examiner.configured = {"nf_conntrack_tcp_timeout_established": 432_000}
    examiner.timers.update(watch(examiner, [kind for kind in TIMERS if kind.name == "TCP, established"], 5.0))
    (one,) = examine(examiner, [each for each in requirements() if each.name == "REQ-5-established"])
    assert one.verdict == "not seen"
    assert "nf_conntrack_tcp_timeout_established is set to 432000 s" in one.measured


def test_what_fills_the_gateway_is_examined_last() -> None:
    strain = {one.key: one.strain for one in requirements()}
    strains = [strain[one.key] for one in right()]
    assert strains == sorted(strains)
    assert strains[-1] == 2


@pytest.mark.parametrize(
    ("frame_seconds", "said"), [(0.05, "none was refused"), (0.5, "this host did not use the flows from before for")]
)
def test_flows_that_expire_while_a_slow_host_fills_a_gateway_are_no_failure(
    frame_seconds: float, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulated_nat, "_FRAME_SECONDS", frame_seconds)
    wanted = [one for one in requirements() if one.key == "RFC6888-REQ-11d"]
    (found,) = examine(examiner_of(Behaviour(udp_seconds=30.0)), wanted)
    assert (found.verdict, said in found.measured) == ("not seen", True), found.measured


def losing(seed: int, share: float) -> Behaviour:
    """A NAT that meets all requirements, and drops this share of all frames at random."""
    return Behaviour(loses=lambda frame: Random(f"{seed} {frame}").random() < share)  # noqa: S311 - frames, no secrets


@pytest.mark.parametrize("seed", [1, 2, 3, *(pytest.param(one, marks=pytest.mark.soak) for one in range(4, 11))])
def test_a_nat_that_loses_frames_at_random_fails_nothing(seed: int) -> None:
    found = tuple(examined(losing(seed, 0.07), seed))
    assert keys(found, "fails") == set()
    assert len(keys(found, "meets")) > 0.9 * len(keys(right(), "meets") - FILLING - TIMED_REQUIREMENTS)


def test_what_failed_once_and_was_met_once_is_not_seen() -> None:
    answers = iter([(False, "it was dropped"), (True, "it passed")])
    once = Requirement(4787, "once", "MUST", "something passes", ("udp",), lambda _: next(answers), NO_FLOWS)
    (found,) = examine(examiner_of(Behaviour()), [once])
    assert found.verdict == "not seen"
    assert found.measured == "failed once: it was dropped; not failed when examined again: it passed"


def test_random_ports_are_hard_to_guess_although_two_hosts_share_them(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = tuple((30_000 + index, 1024 + index * index) for index in range(64))
    monkeypatch.setattr(port_rules, "ports", lambda *_: PortsSeen("overloading", pairs, overloads=True, entropy=6.0))
    found = examine(examiner_of(Behaviour()), [one for one in requirements() if one.key == "RFC6888-REQ-15"])
    assert {one.verdict for one in found} == {"meets"}


def test_a_gateway_need_not_let_frames_from_outside_refresh_a_mapping() -> None:
    (one,) = examined(Behaviour(udp_seconds=180.0, refreshes_inbound=False), asked=of("RFC4787-REQ-6a"))
    assert one.verdict == "not applicable", one.measured
    assert "which is permitted" in one.measured
    assert one.evidence.frames


def test_ports_that_may_be_random_or_not_are_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 63 steps, 16 are the same: so many are more than random ones, and fewer than those of a few that count."""
    outside = [*range(2000, 2017), *(2015 + number * (number + 1) // 2 for number in range(2, 49))]
    pairs = tuple((30_000 + index, port) for index, port in enumerate(outside))
    seen = PortsSeen(None, pairs, overloads=False, entropy=5.0)
    assert seen.words.startswith("predictable or random: 0 of 64 flows kept their port")
    monkeypatch.setattr(port_rules, "ports", lambda *_: seen)
    found = list(examine(examiner_of(Behaviour()), of("RFC6888-REQ-15", "RFC7857-9")))
    assert [one.verdict for one in found] == ["not seen", "not seen"]
    assert all("64 flows do not show whether ports are random" in one.measured for one in found)


def obscurity(changed: Callable[[int], int], monkeypatch: pytest.MonkeyPatch) -> Iterator[AuditedRequirement]:
    """Judge a gateway that keeps free ports, and changes each one that another host has as the function says."""
    free = tuple((port, port) for port in range(30_000, 30_064))
    monkeypatch.setattr(port_rules, "ports", lambda *_: PortsSeen("preserving", free, overloads=False, entropy=None))

    def compete(_: Examiner, flow: Flow, _remote: Endpoint) -> Flow:
        return replace(flow, mapped=replace(flow.mapped, port=changed(flow.inside.port)))

    monkeypatch.setattr(port_rules, "compete", compete)
    return examine(examiner_of(Behaviour(ports="preserving")), of("RFC7857-9"))


def test_changed_ports_next_to_those_of_other_hosts_are_no_random_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway keeps free ports, and where another host has one, it takes the next."""
    (found,) = obscurity(lambda port: port + 1, monkeypatch)
    assert found.verdict == "fails", found.measured


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("workers", [4, 8])
def test_changed_ports_that_a_few_workers_count_are_no_random_ones(
    workers: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, random = [1024 + 6000 * worker + 31 * worker**2 for worker in range(workers)], Random(seed)  # noqa: S311 - a simulation

    def counted(_: int) -> int:
        worker = random.randrange(workers)
        rows[worker] += 1
        return rows[worker]

    (found,) = obscurity(counted, monkeypatch)
    assert found.verdict in ("fails", "not seen"), found.measured


@pytest.mark.parametrize(("number", "verdict"), [(48, "meets"), (30, "not seen")])
def test_changed_ports_must_be_many_to_show_that_they_are_random(
    number: int, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(1).sample(range(1024, 1024 + 128), number)  # noqa: S311 - a simulation
    every = cycle([*random, *[None] * (48 - number)])
    (found,) = obscurity(lambda port: next(every) or port, monkeypatch)
    assert found.verdict == verdict, found.measured
    assert found.measured.startswith(f"{number} ports") or f"{number} flows do not show" in found.measured


def test_ports_whose_filter_is_strict_may_be_given_again() -> None:
    behaviour = Behaviour(ports="preserving", filtering="address-dependent", udp_seconds=180.0)
    (one,) = examined(behaviour, asked=of("RFC6888-REQ-8"))
    assert one.verdict == "not applicable", one.measured


def test_each_verdict_has_its_frames() -> None:
    for one in right():
        if one.verdict in ("meets", "fails"):
            assert one.evidence.frames, (one.key, one.transport)
            assert all(one.evidence.frames), (one.key, one.transport)


def test_no_two_requirements_have_one_key() -> None:
    pairs = [(one.key, transport) for one in requirements() for transport in one.transports]
    assert len(pairs) == len(set(pairs))


def test_each_requirement_that_waits_names_known_timers() -> None:
    names = {kind.name for kind in TIMERS}
    assert {name for one in requirements() for name in one.timers} <= names


def test_an_unknown_requirement_that_a_recipe_declares_is_not_seen_with_what_is_near() -> None:
    (one,) = examine(examiner_of(Behaviour()), list(unknown(["RFC4787-REQ-88", "RFC4787-REQ-8"])))
    assert (one.key, one.verdict) == ("RFC4787-REQ-88", "not seen")
    assert "natgauge knows no such requirement; did you mean RFC4787-REQ-8" in one.measured


def test_a_gateway_that_forwards_nothing_is_not_seen() -> None:
    found = list(examine(examiner_of(Behaviour(forwards=False)), requirements()))
    assert {one.verdict for one in found} == {"not seen"}
    assert all("did not arrive outside" in one.measured for one in found)
    found_classes = classes(examiner_of(Behaviour(forwards=False))).values()
    assert not any(one for named in found_classes for one in named.model_dump().values())


@pytest.mark.parametrize(
    ("answers", "said"), [("SYN-ACK", "the gateway itself answered with SYN and ACK"), ("reset", "a reset came back")]
)
def test_a_gateway_that_answers_a_syn_itself_is_named(answers: Any, said: str) -> None:
    tcp = [one for one in requirements() if one.transports == ("tcp",)]
    found = list(examine(examiner_of(Behaviour(answers_syn=answers)), tcp))
    assert {one.verdict for one in found} == {"not seen"}
    assert all(said in one.measured for one in found)


def test_a_gateway_that_discards_nothing_needs_no_time_exceeded() -> None:
    (one,) = examine(examiner_of(Behaviour(forwards_expired=True)), of("RFC5508-REQ-10a"))
    assert one.verdict == "not applicable", one.measured
    assert "the gateway forwards a packet with TTL 1" in one.measured
    assert any(frame.startswith("the outside receives UDP") for frame in one.evidence.frames)


def test_a_gateway_that_changes_sequence_numbers_drops_no_syn_that_it_delivers() -> None:
    examiner = examiner_of(Behaviour(sequence_offset=123_456_789))
    keys = ("RFC5382-REQ-3", "RFC5382-REQ-8", "RFC5382-REQ-8a", "RFC6888-REQ-7")
    wanted = [replace(one, transports=("tcp",)) for one in requirements() if one.key in keys]
    found = list(examine(examiner, wanted))
    assert [one.verdict for one in found] == ["meets"] * len(keys), [one.measured for one in found]
    assert classes(examiner)["tcp"].filtering == "endpoint-independent"


def test_without_a_second_address_the_reason_is_said() -> None:
    found = list(examine(examiner_of(Behaviour(), inside_hosts=1, outside_hosts=1), requirements()))
    without = {one.key: one.measured for one in found if one.verdict == "not seen"}
    assert "needs 2 addresses on the initiator's side" in without["RFC4787-REQ-9"]
    assert "needs 2 addresses on the responder's side" in without["RFC4787-REQ-8"]


def test_an_answer_to_a_syn_that_is_read_after_six_seconds_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host stood still when the six seconds ended, and read the answer of 6.5 s with what came in time."""
    examiner = examiner_of(Behaviour(unsolicited_syn="late error"))
    receive = examiner.network.ports.receive
    monkeypatch.setattr(examiner.network.ports, "receive", lambda until: receive(until + 0.6))
    (one,) = examine(examiner, of("RFC5382-REQ-4"))
    assert one.verdict == "meets", one.measured


def test_a_syn_that_is_lost_hides_no_gateway_that_answers_it(monkeypatch: pytest.MonkeyPatch) -> None:
    examiner = examiner_of(Behaviour(unsolicited_syn="reset"))
    send, lost = examiner.network.ports.send, list[bytes]()

    def losing(side: Side, octets: bytes) -> None:
        packet = read_packet(octets[14:])
        segment = None if packet is None else packet.segment
        is_first = side == "responder" and isinstance(segment, TcpSegment) and segment.flags == SYN and not lost
        if is_first:
            lost.append(octets)
        else:
            send(side, octets)

    monkeypatch.setattr(examiner.network.ports, "send", losing)
    (one,) = examine(examiner, of("RFC5382-REQ-4"))
    assert lost
    assert one.verdict == "fails", one.measured


def test_an_error_of_the_inside_may_come_from_any_outside_address_of_the_gateway() -> None:
    """RFC 5508 REQ-5 wants the NAT's own address, which need not be that of the mapping."""
    of_link = Behaviour(addresses=2, paired_by_transport=True, inside_errors_from=OUTSIDE)
    examiner = examiner_of(of_link)
    assert examiner.flow().mapped.address != OUTSIDE
    (linked,) = examine(examiner, of("RFC5508-REQ-5"))
    assert linked.verdict == "meets", linked.measured
    other = examiner_of(Behaviour(addresses=2, inside_errors_from=OUTSIDE + 256))
    assert other.flow().mapped.address == OUTSIDE
    (unknown,) = examine(other, of("RFC5508-REQ-5"))
    assert unknown.verdict == "not seen", unknown.measured
    assert other.open(other.endpoint(1), other.remote()).mapped.address == OUTSIDE + 256
    (used,) = examine(other, of("RFC5508-REQ-5"))
    assert used.verdict == "meets", used.measured


def test_hairpinned_errors_are_examined_with_mappings_that_are_there() -> None:
    examiner = examiner_of(Behaviour(udp_seconds=10.0))
    examiner.begin("udp")
    assert examiner.once(hairpinned).dropped is None
    examiner.network.pause(examiner.network.now() + 20.0)
    (one,) = examine(examiner, of("RFC5508-REQ-7"))
    assert one.verdict == "meets", one.measured


def test_extensions_of_errors_are_not_called_impossible_over_ipv6() -> None:
    (one,) = of("RFC5508-REQ-3d")
    examiner = examiner_of(Behaviour())
    sides = examiner.network.sides
    sides["responder"] = replace(sides["responder"], hosts=(IPv6Address("2001:db8:1::2"),))
    with pytest.raises(NotSeenError, match="not examined over IPv6"):
        one.examine(examiner)


def test_mappings_that_were_never_made_had_no_other_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Crowd, "grow", lambda *_: None)
    (one,) = examine(examiner_of(Behaviour()), of("RFC4787-REQ-11"))
    assert one.verdict == "not seen"
    assert one.measured.endswith("; no further mapping was made")


def test_packets_that_are_dropped_show_no_identification(monkeypatch: pytest.MonkeyPatch) -> None:
    examiner = examiner_of(Behaviour())
    send = examiner.network.ports.send

    def dropping(side: Side, octets: bytes) -> None:
        packet = read_packet(octets[14:])
        if packet is None or packet.identification != 4660:
            send(side, octets)

    monkeypatch.setattr(examiner.network.ports, "send", dropping)
    (one,) = examine(examiner, of("RFC7857-10"))
    assert one.verdict == "not seen", one.measured
    assert "was dropped, which shows no identification" in one.measured


PAIRED = ("RFC4787-REQ-2", "RFC6888-REQ-2", "RFC7857-4-paired", "RFC7857-4")


@pytest.mark.parametrize("known", ["a pool that was asked for", "an address of another host"])
def test_hosts_that_all_got_one_address_of_a_pool_show_nothing_of_it(known: str) -> None:
    """The gateway fills its first address first, or gives three hosts one address by chance."""
    examiner = examiner_of(Behaviour())
    if known == "a pool that was asked for":
        examiner.pool = 4
    else:
        examiner.inside.opens(examiner.every_host[-1], OUTSIDE + 256)
    found = list(examine(examiner, of(*PAIRED)))
    assert len(found) == len(PAIRED)
    assert {one.verdict for one in found} == {"not seen"}
    assert all("outside addresses" in one.measured for one in found)


def test_a_host_that_reached_its_own_limit_before_shows_no_full_address() -> None:
    examiner = examiner_of(Behaviour(addresses=2, host_flows=200))
    examiner.begin("udp")
    used_up = examiner.endpoint(1)
    for _ in range(166):
        examiner.open(replace(used_up, port=examiner.endpoint().port), examiner.remote())
    (one,) = examine(examiner, of("RFC7857-4"))
    assert one.verdict == "not seen", one.measured
    assert "another host was refused" in one.measured


def test_flows_without_an_answer_that_make_room_for_new_ones_are_a_failure() -> None:
    """Linux with a full table ends flows that had no answer: it keeps the flows from before, and refuses none."""
    examiner = examiner_of(Behaviour(room=600, evicts=True, evicts_answered=False))
    examiner.timers.update(watch(examiner, [kind for kind in TIMERS if kind.name == UDP_OUT], WAIT))
    (one,) = examine(examiner, of("RFC6888-REQ-11d"))
    assert one.verdict == "fails", one.measured
    assert "4 of 4 flows from before still passed, and 4 of the first 4" in one.measured


def brief(key: str, behaviour: Behaviour, *, is_set: bool, monkeypatch: pytest.MonkeyPatch) -> AuditedRequirement:
    """The verdict on a NAT whose time-out is 2 s, which was set or measured, by a host that sends slowly."""
    examiner = examiner_of(replace(behaviour, udp_seconds=2.0))
    if is_set:
        examiner.knobs = {"udp_timeout": 2}
    else:
        examiner.timers.update(watch(examiner, [kind for kind in TIMERS if kind.name in (UDP_OUT, UDP_BOTH)], 60.0))
    monkeypatch.setattr(simulated_nat, "_FRAME_SECONDS", 0.005)
    (one,) = examine(examiner, of(key))
    return one


@pytest.mark.parametrize("is_set", [True, False])
@pytest.mark.parametrize(
    ("key", "behaviour"), [("RFC6888-REQ-11d", Behaviour()), ("RFC6888-REQ-11d-blocks", ON_DEMAND)]
)
def test_flows_with_a_short_time_out_were_not_ended_to_make_room(
    key: str,
    behaviour: Behaviour,
    is_set: bool,  # noqa: FBT001 - a parameter of the test
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = brief(key, behaviour, is_set=is_set, monkeypatch=monkeypatch)
    assert one.verdict == "not seen", one.measured
    assert "so they may have expired" in one.measured


@pytest.mark.parametrize(
    ("filtered", "verdict"), [("endpoint-independent", "fails"), ("address-dependent", "not applicable")]
)
def test_blocks_of_ports_whose_filter_is_strict_may_be_given_again_at_once(
    filtered: simulated_nat.Dependence, verdict: str
) -> None:
    """RFC 6888 REQ-8 excepts them, as it does single ports."""
    examiner = examiner_of(replace(ON_DEMAND, block_seconds=6.0, filtering=filtered))
    examiner.wait = 200.0
    (one,) = examine(examiner, of("RFC6888-REQ-8-blocks"))
    assert one.verdict == verdict, one.measured
    assert "got a block at most" in one.measured


def test_long_is_a_wait_for_open_tcp_connections() -> None:
    assert audit_request("nftables-nat44", {"long": True})[1].wait == 7600.0
    assert audit_request("nftables-nat44", {"long": True, "wait": 8000.0})[1].wait == 8000.0


def test_levels_decide_what_fails() -> None:
    one = record(requirement("REQ-1", "fails"), requirement("REQ-2", "fails", level="SHOULD"), requirement("REQ-3"))
    assert [each.requirement for each in one.failed(level="must")] == ["REQ-1"]
    assert [each.requirement for each in one.failed(level="should")] == ["REQ-1", "REQ-2"]


@pytest.mark.parametrize(
    ("verdicts", "fail_on", "status"),
    [
        (["not seen", "not applicable"], "must", 5),
        (["not seen", "not seen"], None, 5),
        (["not applicable"], "must", 0),
        (["meets", "not seen"], "must", 0),
        (["fails", "not seen"], None, 0),
        (["fails", "not seen"], "must", 12),
    ],
)
def test_an_audit_that_saw_nothing_did_not_pass(
    verdicts: list[str], fail_on: Literal["must", "should"] | None, status: int
) -> None:
    """Seen: a gateway whose new rules forwarded nothing passed with --fail-on must."""
    of = [requirement(f"REQ-{number}", verdict) for number, verdict in enumerate(verdicts, start=1)]
    assert exit_status(record(*of), fail_on) == status


def test_an_audit_that_saw_only_queries_did_not_pass() -> None:
    """Seen: of 114 requirements 113 were not seen, one failed, and the exit status was 0."""
    query = requirement("REQ-1a", "fails", transport="icmp", level="SHOULD")
    unseen = requirement("REQ-1", "not seen")
    assert exit_status(record(unseen, query, requirement("REQ-2", "not seen", transport="tcp")), None) == 5
    assert exit_status(record(unseen, query, requirement("REQ-2", "meets", transport="tcp")), None) == 0
