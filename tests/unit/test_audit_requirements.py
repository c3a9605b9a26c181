# SPDX-License-Identifier: Apache-2.0
"""Each requirement is met by a NAT that behaves, and failed by exactly the NATs that do not."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import cache, partial
from random import Random
from typing import Any, Literal, NamedTuple

import pytest
from tests.unit import simulated_nat
from tests.unit.made_audits import record, requirement
from tests.unit.simulated_audits import FILLING, KEYS, OUT_OF_SIGHT, QUICK, TIMED, SimulatedAudit
from tests.unit.simulated_nat import (
    COMPUTED,
    ON_DEMAND,
    OUTSIDE,
    Behaviour,
    has_error,
    has_source_port,
    is_large_fragment,
    of_host,
    to_second,
)
from tests.unit.simulated_nat64 import INSIDE, Nat64

from natgauge.audits.audit import exit_status
from natgauge.audits.kit.hosts import LEAST_ALLOWANCE
from natgauge.audits.request import audit_request

#: Runs with other pseudorandom choices.
SEEDS = (1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (2, 3)))

#: Behaviour that moves time-outs.
MOVING_TIMES = (
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

#: What another source than that of the mapping fails, and what errors fail that are dropped or quote another packet.
EXTERNAL_SOURCE = {"RFC4787-REQ-9a", "RFC5382-REQ-8a", "RFC5508-REQ-7"}

ERRORS_TRANSLATED = {"RFC4787-REQ-12b", "RFC5382-REQ-9", "RFC5508-REQ-4"}

#: Private addresses that leave.
LEAKS = {key for key in KEYS if key.startswith("RFC1918-")}
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
        LEAKS,
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


@cache
def audited(behaviour: Behaviour, seed: int) -> tuple[Any, ...]:
    """Examine a NAT for all requirements; time-outs only where they are not those of a NAT that behaves."""
    # `make soak` has other seeds.
    return tuple(examined(behaviour, seed, whole=seed != 1))


def examined(
    behaviour: Behaviour, seed: int = 1, asked: Collection[str] = KEYS, *, whole: bool = False, **keep: Any
) -> list[Any]:
    """Examine a NAT for these requirements; `keep` receives the frames of each verdict.

    `whole`: with all frames and idle times of an audit.
    """
    audit = SimulatedAudit(behaviour, seed=seed, whole=whole)
    audit.told = behaviour == Behaviour() or len(asked) == 1 or bool(keep)
    if behaviour == Behaviour() or is_timed(behaviour):
        audit.watch_for(*asked, half=not whole and behaviour != Behaviour())
    if behaviour != Behaviour() and not is_limited(behaviour):
        # A NAT without limits only takes long to fill.
        audit.know(mappings=64)
        asked = [key for key in asked if key not in FILLING]
    return audit.judge(*asked, every=True, **keep)


@cache
def wrong_audited(name: str, seed: int) -> tuple[Any, ...]:
    """Examine a NAT for what it fails, and for every sixth other requirement; `make soak`: for all, with other seeds.

    Each requirement is thus examined with a sixth of the NATs that do not fail it. A NAT of which only its limit is
    told is examined for all, because each examination leaves less room for the next; another limited one for what
    fills it.
    """
    behaviour, failed = WRONG[name]
    if seed != 1 or name in AT_TIMES or (is_limited(behaviour) and not failed):
        return audited(behaviour, seed)
    return in_part(list(WRONG).index(name), behaviour, failed | (FILLING if is_limited(behaviour) else set()))


def in_part(number: int, behaviour: Behaviour, asked: Collection[str]) -> tuple[Any, ...]:
    """Examine the NAT with this number for these requirements and for every sixth other one."""
    others = {key for place, key in enumerate(KEYS, start=number) if place % 6 == 0}
    return tuple(examined(behaviour, asked=[key for key in KEYS if key in asked or key in others]))


def is_timed(behaviour: Behaviour) -> bool:
    """Whether its time-outs are not those of a NAT that behaves."""
    return any(getattr(behaviour, name) != getattr(Behaviour(), name) for name in MOVING_TIMES)


def is_limited(behaviour: Behaviour) -> bool:
    """Whether it leaves no room for further flows at some time."""
    return any(getattr(behaviour, name) != getattr(Behaviour(), name) for name in LIMITS)


def right() -> tuple[Any, ...]:
    return audited(Behaviour(), 1)


def keys(found: Iterable[Any], verdict: str) -> set[str]:
    return {one.key for one in found if one.verdict == verdict}


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


@cache
def limited_audited(name: str) -> tuple[Any, ...]:
    """Examine such a NAT for what it meets, for what fills it, and in part for the rest; for all if need be."""
    behaviour, met = LIMITED[name]
    # The ports of an address are used up by one examination after the other.
    if (behaviour, set()) in WRONG.values() or behaviour.addresses > 1:
        return audited(behaviour, 1)
    return in_part(list(LIMITED).index(name), behaviour, met | (FILLING if is_limited(behaviour) else set()))


@pytest.mark.parametrize("name", LIMITED)
def test_what_only_some_nats_can_show_is_met_by_them(name: str) -> None:
    _, met = LIMITED[name]
    assert not met & keys(right(), "meets")
    assert met <= keys(limited_audited(name), "meets")


#: Requirements that no gateway can fail, with the reason.
NEVER_FAILED = {
    "RFC4787-REQ-6a": "frames from outside may refresh a mapping, and need not",
    "RFC6888-REQ-4": "a gateway may have the setting and not use it",
    "RFC6888-REQ-5": "a gateway may have the setting and not use it",
    "RFC6888-REQ-8-blocks": "takes two minutes, for which these audits do not wait: it has a test of its own",
    "RFC6888-REQ-14": "without blocks of ports, only the log shows how much is logged",
}


def test_each_requirement_has_a_nat_that_meets_it_and_one_that_fails_it() -> None:
    every = [*(wrong_audited(name, 1) for name in WRONG), *map(limited_audited, LIMITED)]
    failed = set().union(*(keys(found, "fails") for found in every))
    met = keys(right(), "meets").union(*(keys(found, "meets") for found in every))
    visible = {*KEYS} - OUT_OF_SIGHT
    assert visible - failed == NEVER_FAILED.keys()
    # It is met after 2 hours and 4 minutes: see the test of the time-out of open connections.
    assert visible - met == {"RFC5382-REQ-5-established", "RFC6888-REQ-8-blocks"}


@pytest.mark.parametrize(("seconds", "verdict"), [(7440.0, "meets"), (7300.0, "fails")])
def test_the_time_out_of_open_connections_is_met_or_failed_after_two_hours(seconds: float, verdict: str) -> None:
    audit = SimulatedAudit(Behaviour(established_seconds=seconds)).watch("TCP, established", wait=7600.0)
    (one,) = audit.judge("RFC5382-REQ-5-established")
    assert one.verdict == verdict, one.measured


def test_a_gateway_that_shares_ports_of_a_range_among_flows_of_a_host_fails_what_is_asked_of_mapping() -> None:
    wanted = ("RFC4787-REQ-1", "RFC5382-REQ-1", "RFC4787-REQ-11", "RFC4787-REQ-3", "RFC5382-REQ-7")
    behaviour = Behaviour(mapping="address and port-dependent", ports="of a range", port_range=1008)
    found = {one.key: one for one in SimulatedAudit(behaviour).judge(*wanted)}
    assert found.keys() == {*wanted}
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
    found = SimulatedAudit(behaviour, seed=seed).judge("RFC4787-REQ-3", "RFC5382-REQ-7")
    assert {one.verdict for one in found} == {verdict}, [one.measured for one in found]


@pytest.mark.parametrize("seed", SEEDS)
def test_hosts_with_one_outside_endpoint_by_chance_are_compared_to_one_remote_endpoint_too(seed: int) -> None:
    """Only a gateway whose mappings depend on the remote endpoint keeps both hosts apart."""
    (both,) = SimulatedAudit(Behaviour(overlaps=True, port_range=64), seed=seed).judge("RFC7857-3")
    assert both.verdict == "fails", both.measured
    apart = Behaviour(mapping="address and port-dependent", ports="drawn", port_range=64)
    (different,) = SimulatedAudit(apart, seed=seed).judge("RFC7857-3")
    assert different.verdict == "meets", different.measured


@pytest.mark.parametrize(("outside_hosts", "named"), [(1, 0), (3, 2)])
def test_remote_hosts_to_which_a_session_was_refused_are_named(outside_hosts: int, named: int) -> None:
    (one,) = SimulatedAudit(Behaviour(host_sessions=1800), outside_hosts=outside_hosts).judge("RFC6888-REQ-5")
    assert (one.verdict, one.measured.count(str(OUTSIDE)[:-1])) == ("meets", named), one.measured
    assert " 0 " not in one.measured


@pytest.mark.parametrize(("addresses", "inside_hosts"), [(1, 1), (256, 39)])
def test_where_no_two_hosts_compete_free_ports_decide_and_the_verdict_says_so(
    addresses: int, inside_hosts: int
) -> None:
    lonely = SimulatedAudit(Behaviour(ports="preserving", addresses=addresses), inside_hosts=inside_hosts)
    (alone,), (competing,) = (
        audit.judge("RFC4787-REQ-3a") for audit in (lonely, SimulatedAudit(Behaviour(ports="preserving")))
    )
    assert (alone.verdict, competing.verdict) == ("meets", "meets"), alone.measured
    said = "only ports were examined that no other host used"
    assert (said in alone.measured, said in competing.measured) == (True, False)


def test_what_a_gateway_does_not_translate_is_not_seen() -> None:
    """Routing meets most of what is asked of a NAT; only that a private address leaves is a fault."""
    routed = SimulatedAudit(Behaviour(untranslated=("tcp", "icmp"), unserved_leave=True))
    seen = routed.classes()
    assert [seen[each].filtering for each in ("udp", "tcp", "icmp")] == ["endpoint-independent", None, None]
    every = routed.judge(*QUICK, every=True)
    found = [one for one in every if one.transport != "udp"]
    assert {one.key for one in found if one.verdict == "fails"} == LEAKS
    # Without an answer of a PCP server some do not apply.
    assert {one.verdict for one in found if one.rfc != 1918} <= {"not seen", "not applicable"}
    assert any(one.measured.startswith("the gateway does not translate TCP: ") for one in found)
    free = {(one.key, one.transport): one.verdict for one in right()}
    still = [one for one in every if one.transport == "udp" and one.verdict != "not seen"]
    assert still
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
    verdict: str
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
        replace(BY_REMOTE, ports="drawn", host_ports=256), "RFC6888-REQ-4", "meets"
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
    found = SimulatedAudit(case.behaviour, inside_hosts=case.inside_hosts).judge(*case.keys.split())
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
def test_a_port_that_two_hosts_have_is_judged_for_each_protocol(behaviour: Behaviour, verdict: str, said: str) -> None:
    found = SimulatedAudit(behaviour).judge("RFC7857-3", every=True)
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
    (one,) = SimulatedAudit(behaviour, seed=seed).judge("RFC6888-REQ-4")
    assert one.verdict == verdict, one.measured


@pytest.mark.parametrize("limit", [100, LEAST_ALLOWANCE, 1000])
def test_a_limit_of_flows_for_each_host_hides_no_other_requirement(limit: int) -> None:
    limited = SimulatedAudit(Behaviour(host_flows=limit))
    assert [found.mapping for found in limited.classes().values()] == ["endpoint-independent"] * 3
    limited.told = False
    found = limited.judge(*QUICK, every=True)
    free = {(one.key, one.transport): one.verdict for one in right()}
    assert not [one for one in found if one.verdict != free[one.key, one.transport]]


def test_a_failure_that_takes_nearly_all_flows_of_a_host_is_seen_twice_by_as_many_hosts() -> None:
    """Ports keep their parity until another host uses them."""
    kept = Behaviour(ports="overloading", mapping="address and port-dependent", parity=False)
    audit = SimulatedAudit(replace(kept, host_flows=LEAST_ALLOWANCE))
    audit.classes()
    audit.told = False
    (one,) = audit.judge("RFC4787-REQ-4")
    assert one.verdict == "fails", one.measured


@pytest.mark.parametrize(
    ("addresses", "leave"),
    [(1, False), (4, True), *(pytest.param(*pair, marks=pytest.mark.soak) for pair in ((1, True), (4, False)))],
)
def test_inside_hosts_that_a_gateway_does_not_serve_change_no_verdict(addresses: int, leave: bool) -> None:  # noqa: FBT001
    """It has rules for five hosts, drops the frames of the others, or sends them on untranslated."""
    seen = []
    for served in (None, 5):
        limited = Behaviour(addresses=addresses, udp_seconds=170.0, host_ports=1600, served_hosts=served)
        audit = SimulatedAudit(replace(limited, unserved_leave=leave))
        audit.told = False
        audit.watch(half=True)
        seen.append(audit.judge(*KEYS, every=True))
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
    found = SimulatedAudit(wrong, inside_hosts=inside_hosts).judge(*COMPETING, every=True)
    failed = {"RFC4787-REQ-1", "RFC5382-REQ-1", "RFC5508-REQ-1a", "RFC4787-REQ-3", "RFC5382-REQ-7", "RFC7857-10"}
    if inside_hosts == 24:
        assert keys(found, "fails") == failed
    else:
        assert keys(found, "meets") | keys(found, "fails") == set()
        assert all("outside address" in one.measured for one in found)


def test_a_pool_whose_hosts_share_addresses_is_examined_like_one_address() -> None:
    found = SimulatedAudit(Behaviour(addresses=4)).judge(*COMPETING, every=True)
    assert keys(found, "meets") >= {"RFC4787-REQ-1", "RFC5382-REQ-1", "RFC4787-REQ-3", "RFC7857-10"}


def test_a_time_out_that_is_too_long_to_wait_for_is_reported_as_it_is_set() -> None:
    audit = SimulatedAudit(configured={"nf_conntrack_tcp_timeout_established": 432_000})
    (one,) = audit.watch("TCP, established", wait=5.0).judge("RFC5382-REQ-5-established")
    assert one.verdict == "not seen"
    assert "nf_conntrack_tcp_timeout_established is set to 432000 s" in one.measured


@pytest.mark.parametrize(
    ("frame_seconds", "said"), [(0.05, "none was refused"), (0.5, "this host did not use the flows from before for")]
)
def test_flows_that_expire_while_a_slow_host_fills_a_gateway_are_no_failure(
    frame_seconds: float, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulated_nat, "_FRAME_SECONDS", frame_seconds)
    (found,) = SimulatedAudit(Behaviour(udp_seconds=30.0)).judge("RFC6888-REQ-11d")
    assert (found.verdict, said in found.measured) == ("not seen", True), found.measured


def losing(seed: int, share: float) -> Behaviour:
    """A NAT that meets all requirements, and drops this share of all frames at random."""
    return Behaviour(loses=lambda frame: Random(f"{seed} {frame}").random() < share)  # noqa: S311 - frames, no secrets


# Seen with 6: one lost frame made another class of filtering, and so a MUST that was failed.
@pytest.mark.parametrize(
    "seed", [1, 2, 6, *(pytest.param(one, marks=pytest.mark.soak) for one in (3, 4, 5, *range(7, 31)))]
)
def test_a_nat_that_loses_frames_at_random_fails_nothing(seed: int) -> None:
    found = examined(losing(seed, 0.07), seed)
    assert keys(found, "fails") == set()
    assert len(keys(found, "meets")) > 0.9 * len(keys(right(), "meets") - FILLING - TIMED)


def test_a_gateway_need_not_let_frames_from_outside_refresh_a_mapping() -> None:
    (one,) = examined(Behaviour(udp_seconds=180.0, refreshes_inbound=False), asked=["RFC4787-REQ-6a"])
    assert one.verdict == "not applicable", one.measured
    assert "which is permitted" in one.measured
    assert one.evidence.frames


def test_ports_whose_filter_is_strict_may_be_given_again() -> None:
    behaviour = Behaviour(ports="preserving", filtering="address-dependent", udp_seconds=180.0)
    (one,) = examined(behaviour, asked=["RFC6888-REQ-8"])
    assert one.verdict == "not applicable", one.measured


def test_each_verdict_has_its_frames() -> None:
    for one in right():
        if one.verdict in ("meets", "fails"):
            assert one.evidence.frames, (one.key, one.transport)
            assert all(one.evidence.frames), (one.key, one.transport)


def test_a_gateway_that_forwards_nothing_is_not_seen() -> None:
    audit = SimulatedAudit(Behaviour(forwards=False))
    found = audit.judge(*KEYS, every=True)
    assert {one.verdict for one in found} == {"not seen"}
    assert all("did not arrive outside" in one.measured for one in found)
    classes = [named.model_dump() for named in SimulatedAudit(Behaviour(forwards=False)).classes().values()]
    assert len(classes) == 3
    assert not any(one for named in classes for one in named.values())


@pytest.mark.parametrize(
    ("answers", "said"), [("SYN-ACK", "the gateway itself answered with SYN and ACK"), ("reset", "a reset came back")]
)
def test_a_gateway_that_answers_a_syn_itself_is_named(answers: Any, said: str) -> None:
    of_tcp, of_others = ({one.key for one in right() if (one.transport == "tcp") == is_tcp} for is_tcp in (True, False))
    found = SimulatedAudit(Behaviour(answers_syn=answers)).judge(*(of_tcp - of_others))
    assert {one.verdict for one in found} == {"not seen"}
    assert all(said in one.measured for one in found)


def test_a_gateway_that_discards_nothing_needs_no_time_exceeded() -> None:
    (one,) = SimulatedAudit(Behaviour(forwards_expired=True)).judge("RFC5508-REQ-10a")
    assert one.verdict == "not applicable", one.measured
    assert "the gateway forwards a packet with TTL 1" in one.measured
    assert any(frame.startswith("the outside receives UDP") for frame in one.evidence.frames)


def test_a_gateway_that_changes_sequence_numbers_drops_no_syn_that_it_delivers() -> None:
    audit = SimulatedAudit(Behaviour(sequence_offset=123_456_789))
    keys = ("RFC5382-REQ-3", "RFC5382-REQ-8", "RFC5382-REQ-8a", "RFC6888-REQ-7")
    found = audit.judge_of("tcp", *keys)
    assert [one.verdict for one in found] == ["meets"] * len(keys), [one.measured for one in found]
    assert audit.classes()["tcp"].filtering == "endpoint-independent"


def test_without_a_second_address_the_reason_is_said() -> None:
    found = SimulatedAudit(inside_hosts=1, outside_hosts=1).judge(*KEYS, every=True)
    without = {one.key: one.measured for one in found if one.verdict == "not seen"}
    assert "needs 2 addresses on the initiator's side" in without["RFC4787-REQ-9"]
    assert "needs 2 addresses on the responder's side" in without["RFC4787-REQ-8"]


def test_an_answer_to_a_syn_that_is_read_after_six_seconds_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host stood still when the six seconds ended, and read the answer of 6.5 s with what came in time."""
    audit = SimulatedAudit(Behaviour(unsolicited_syn="late error"))
    receive = audit.nat.receive
    monkeypatch.setattr(audit.nat, "receive", lambda until: receive(until + 0.6))
    (one,) = audit.judge("RFC5382-REQ-4")
    assert one.verdict == "meets", one.measured


def test_flows_without_an_answer_that_make_room_for_new_ones_are_a_failure() -> None:
    """Linux with a full table ends flows that had no answer: it keeps the flows from before, and refuses none."""
    audit = SimulatedAudit(Behaviour(room=600, evicts=True, evicts_answered=False)).watch("UDP, one frame out")
    (one,) = audit.judge("RFC6888-REQ-11d")
    assert one.verdict == "fails", one.measured
    assert "4 of 4 flows from before still passed, and 4 of the first 4" in one.measured


def brief(key: str, behaviour: Behaviour, *, is_set: bool, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The verdict on a NAT whose time-out is 2 s, which was set or measured, by a host that sends slowly."""
    audit = SimulatedAudit(replace(behaviour, udp_seconds=2.0))
    if is_set:
        audit.know(knobs={"udp_timeout": 2})
    else:
        audit.watch("UDP, one frame out", "UDP, one frame each way", wait=60.0)
    monkeypatch.setattr(simulated_nat, "_FRAME_SECONDS", 0.005)
    (one,) = audit.judge(key)
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
    audit = SimulatedAudit(replace(ON_DEMAND, block_seconds=6.0, filtering=filtered), wait=200.0)
    (one,) = audit.judge("RFC6888-REQ-8-blocks")
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
