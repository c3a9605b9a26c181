# SPDX-License-Identifier: Apache-2.0
"""An audit names each behaviour of NATs whose behaviour is known, also where frames are lost, and none wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from ipaddress import IPv4Address
from itertools import product
from random import Random
from typing import get_args

import pytest
from tests.unit.simulated_nat import Behaviour, Dependence, examiner_of

from natgauge.audits.kit.classes import are_random, filtering, hairpinning, mapping, ports
from natgauge.audits.kit.flows import TRANSPORTS
from natgauge.audits.kit.hosts import LEAST_ALLOWANCE, RESERVED, TEAM, Flows, InsideHosts, hosts_needed
from natgauge.audits.kit.observations import NotSeenError
from natgauge.audits.requirements import requirements
from natgauge.audits.runner import classes, examine
from natgauge.records.audit import AuditVerdict
from natgauge.words import Transport

DEPENDENCES: tuple[Dependence, ...] = get_args(Dependence)
#: Runs with other pseudorandom choices.
SEEDS = (1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (2, 3)))
#: A frame in seven is lost.
LOSSY = {"none lost": lambda _: False, "some lost": lambda frame: frame % 7 == 3}


def as_query(kind: Dependence) -> Dependence:
    """The class as ICMP shows it: queries have no remote port."""
    return "address-dependent" if kind == "address and port-dependent" else kind


@pytest.mark.parametrize(
    ("port_rule", "losing"),
    [("preserving", "none lost"), ("contiguous", "none lost"), ("random", "none lost"), ("random", "some lost")],
)
@pytest.mark.parametrize(("mapped", "filtered"), list(product(DEPENDENCES, DEPENDENCES)))
@pytest.mark.parametrize("seed", SEEDS)
def test_mapping_and_filtering_are_named(
    mapped: Dependence, filtered: Dependence, port_rule: str, losing: str, seed: int
) -> None:
    for transport in TRANSPORTS:
        behaviour = Behaviour(mapping=mapped, filtering=filtered, ports=port_rule, loses=LOSSY[losing])  # type: ignore[arg-type]
        examiner = examiner_of(behaviour, seed=seed, transport=transport)
        of_query = as_query if transport == "icmp" else lambda kind: kind
        assert mapping(examiner).kind == of_query(mapped), transport
        assert filtering(examiner) == of_query(filtered), transport


@pytest.mark.parametrize(("rule", "size"), [("of a range", 128), ("of a range", 1008), ("drawn", 128)])
@pytest.mark.parametrize("mapped", ["address-dependent", "address and port-dependent"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_port_that_another_flow_of_the_host_has_shows_the_class_of_mapping(
    mapped: Dependence, rule: str, size: int, seed: int
) -> None:
    """Linux gives an inside endpoint one port of a range until another flow to a remote endpoint has that port."""
    for transport in TRANSPORTS:
        behaviour = Behaviour(mapping=mapped, ports=rule, port_range=size)  # type: ignore[arg-type]
        seen = mapping(examiner_of(behaviour, seed=seed, transport=transport))
        assert seen.kind == (as_query(mapped) if transport == "icmp" else mapped), transport
        assert seen.alone == "endpoint-independent"
        assert seen.words.endswith("; without another flow on the same port: endpoint-independent")


def test_one_inside_host_is_enough_to_show_that_another_flow_gets_its_port() -> None:
    behaviour = Behaviour(mapping="address and port-dependent", ports="of a range", port_range=1008)
    assert mapping(examiner_of(behaviour, inside_hosts=1)).kind == "address and port-dependent"


@pytest.mark.parametrize(("size", "flows"), [(64, range(36, 45)), (128, range(48, 49)), (64_512, range(16, 17))])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_clash_is_looked_for_until_it_is_likely_and_none_leaves_mapping_endpoint_independent(
    size: int, flows: range, seed: int
) -> None:
    """Ports of a wide range are drawn too seldom twice; only a gateway that keeps ports of it would show itself."""
    for transport in TRANSPORTS:
        behaviour = Behaviour(port_range=size, parity=False)
        seen = mapping(examiner_of(behaviour, seed=seed, transport=transport))
        assert seen.kind == "endpoint-independent", transport
        assert seen.further in flows
        assert seen.words.endswith(f"; none of {seen.further} further flows had the outside port of another one")


@pytest.mark.parametrize("rule", ["preserving", "contiguous", "offset", "workers"])
def test_ports_that_nobody_draws_are_not_tried_for_long(rule: str) -> None:
    assert 16 <= mapping(examiner_of(Behaviour(ports=rule))).further <= 40  # type: ignore[arg-type]


# An endpoint of mappings that serve all remote endpoints cannot be shared.
@pytest.mark.parametrize(
    ("rule", "mapped"),
    [
        *product(["preserving", "contiguous", "random"], DEPENDENCES),
        ("overloading", "address-dependent"),
        ("overloading", "address and port-dependent"),
    ],
)
@pytest.mark.parametrize("losing", LOSSY)
@pytest.mark.parametrize("seed", SEEDS)
def test_ports_are_named(rule: str, mapped: Dependence, losing: str, seed: int) -> None:
    for transport in TRANSPORTS:
        behaviour = Behaviour(ports=rule, mapping=mapped, loses=LOSSY[losing])  # type: ignore[arg-type]
        assert ports(examiner_of(behaviour, seed=seed, transport=transport)).kind == rule, transport


@pytest.mark.parametrize("rule", ["offset", "workers"])
@pytest.mark.parametrize("seed", SEEDS)
def test_ports_that_can_be_computed_are_not_called_random(rule: str, seed: int) -> None:
    for transport in TRANSPORTS:
        examiner = examiner_of(Behaviour(ports=rule), seed=seed, transport=transport)  # type: ignore[arg-type]
        assert ports(examiner).kind == "predictable", transport


@pytest.mark.parametrize("seed", range(4))
def test_a_part_of_the_inside_port_that_is_kept_makes_no_random_port_predictable(seed: int) -> None:
    """Such a port is one of 63 ranges, which are chosen at random: the tester's own order does not show in it."""
    assert ports(examiner_of(Behaviour(ports="last bits"), seed=seed)).kind == "random"


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("workers", [4, 6, 8, 12])
def test_ports_that_a_few_workers_count_are_not_called_random(workers: int, seed: int) -> None:
    assert ports(examiner_of(Behaviour(ports="workers", workers=workers), seed=seed)).kind != "random"


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [128, 256, 64_512])
def test_random_ports_of_a_block_are_called_random(size: int, seed: int) -> None:
    outside = Random(seed).sample(range(1024, 1024 + size), 64)  # noqa: S311 - a simulation
    assert are_random([(30_000 + 389 * index, port) for index, port in enumerate(outside)]) is True


@pytest.mark.parametrize("losing", LOSSY)
@pytest.mark.parametrize("filtered", ["endpoint-independent", "address-dependent"])
@pytest.mark.parametrize("rule", ["external source", "internal source", "none"])
@pytest.mark.parametrize("seed", SEEDS)
def test_hairpinning_is_named(rule: str, filtered: Dependence, losing: str, seed: int) -> None:
    transports: tuple[Transport, ...] = ("udp", "tcp")
    for transport in transports:
        behaviour = Behaviour(hairpinning=rule, filtering=filtered, loses=LOSSY[losing])  # type: ignore[arg-type]
        assert hairpinning(examiner_of(behaviour, seed=seed, transport=transport)) == rule


@pytest.mark.parametrize("rule", ["source on the LAN", "another port"])
@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_only_the_outside_endpoint_of_its_mapping_is_the_external_source(rule: str, transport: Transport) -> None:
    """Masquerading on the LAN gives a hairpinned frame the address that the gateway has there."""
    behaviour = Behaviour(hairpinning=rule)  # type: ignore[arg-type]
    assert hairpinning(examiner_of(behaviour, transport=transport)) == "another source"


def test_a_mapping_for_each_remote_endpoint_may_hairpin_with_another_port() -> None:
    behaviour = Behaviour(hairpinning="another port", mapping="address and port-dependent")
    assert hairpinning(examiner_of(behaviour)) == "external source"


def test_one_inside_address_is_too_few_for_hairpinning() -> None:
    with pytest.raises(NotSeenError, match=r"needs 2 addresses on the initiator's side.*--source-addresses"):
        hairpinning(examiner_of(Behaviour(), inside_hosts=1))


def test_a_gateway_that_forwards_nothing_is_not_judged() -> None:
    with pytest.raises(NotSeenError, match="did not arrive outside"):
        mapping(examiner_of(Behaviour(forwards=False)))


def test_a_kept_port_is_no_class_of_ports_without_a_second_inside_address() -> None:
    seen = ports(examiner_of(Behaviour(ports="preserving"), inside_hosts=1))
    assert (seen.kind, seen.overloads) == (None, False)
    assert seen.words.startswith("preserving or overloading: 64 of 64 flows kept their port")
    assert ports(examiner_of(Behaviour(ports="random"), inside_hosts=1)).kind == "random"


SEVERAL: Mapping[Transport, Sequence[int]] = {"udp": (443, 123, 53), "tcp": (443, 22, 80, 587)}
ONE: Mapping[Transport, Sequence[int]] = {"udp": (443,), "tcp": (443,)}


def lost(frame: int) -> bool:
    """A frame in seven is lost."""
    return frame % 7 == 3


@cache
def audited(
    ports: tuple[tuple[Transport, tuple[int, ...]], ...], *, told: bool, losing: bool = False
) -> dict[str, tuple[AuditVerdict, str]]:
    """Verdicts and reasons of a NAT that accepts only these ports; `told` = its recipe names them."""
    loses = lost if losing else lambda _: False
    examiner = examiner_of(Behaviour(filtering="address and port-dependent", accepts=ports, loses=loses))
    examiner.accepted = dict(ports) if told else {}
    classes(examiner)
    chosen = [one for one in requirements() if not one.strain and not one.timers]
    return {f"{one.key} {one.transport}": (one.verdict, one.measured) for one in examine(examiner, chosen)}


def of(ports: Mapping[Transport, Sequence[int]]) -> tuple[tuple[Transport, tuple[int, ...]], ...]:
    return tuple((name, tuple(each)) for name, each in ports.items())


@pytest.mark.parametrize("losing", [False, True])
@pytest.mark.parametrize(("ports", "least"), [(SEVERAL, 0.9), (ONE, 0.8)])
def test_what_is_seen_of_such_rules_is_what_is_seen_of_others(
    ports: Mapping[Transport, Sequence[int]], least: float, *, losing: bool
) -> None:
    plain, found = audited((), told=True, losing=losing), audited(of(ports), told=True, losing=losing)
    decided = {name for name, (verdict, _) in plain.items() if verdict in ("meets", "fails")}
    same = {name for name in decided if found[name][0] == plain[name][0]}
    others = {name: found[name] for name in decided - same}
    # Never another verdict: what cannot be told has a reason.
    assert {verdict for verdict, _ in others.values()} <= {"not seen"}, others
    assert len(same) >= least * len(decided), others
    if ports is ONE:
        assert any("destination_ports" in reason for _, reason in others.values())


def test_without_the_ports_nothing_is_seen() -> None:
    found = audited(of(SEVERAL), told=False)
    assert not [name for name, (verdict, _) in found.items() if verdict == "meets" and not name.endswith("icmp")]


@pytest.mark.parametrize("mapped", ["endpoint-independent", "address-dependent", "address and port-dependent"])
def test_classes_are_named_with_few_ports(mapped: Dependence) -> None:
    for transport in SEVERAL:
        examiner = examiner_of(Behaviour(mapping=mapped, filtering=mapped, accepts=of(SEVERAL)), transport=transport)
        examiner.accepted = SEVERAL
        assert examiner.once(mapping).kind == mapped
        assert examiner.once(filtering) == mapped


def test_control_frames_are_of_a_transport_that_the_gateway_has() -> None:
    examiner = examiner_of(Behaviour(untranslated=("udp",)), transport="tcp")
    examiner.control_by = "tcp"
    assert examiner.once(filtering) == "endpoint-independent"


HOSTS = tuple(IPv4Address("10.0.0.2") + index for index in range(5 * TEAM))
FIRST, SECOND, THIRD = HOSTS[:TEAM]
POOL = tuple(IPv4Address("198.18.0.10") + index for index in range(4))


def test_there_is_a_team_for_each_allowance_one_for_each_examination_with_many_flows_and_a_spare_one() -> None:
    few = [Flows(LEAST_ALLOWANCE), Flows(1)]
    assert hosts_needed(few) == 3 * TEAM
    many = [Flows(4, are_many=True)] * 3
    assert hosts_needed([*few, *many, Flows(5, are_many=True)]) == 5 * TEAM


def test_the_last_teams_are_left_for_many_flows() -> None:
    inside = InsideHosts(HOSTS)
    for _ in range(4 - RESERVED):
        assert inside.has_next("udp", for_many=False)
        inside.go_on(for_many=False)
    assert not inside.has_next("udp", for_many=False)
    for _ in range(RESERVED):
        assert inside.has_next("udp", for_many=True)
        inside.go_on(for_many=True)
    assert inside.team == HOSTS[-TEAM:]
    assert not inside.has_next("udp", for_many=True)


def test_a_transport_that_another_team_does_not_have_is_tried_with_no_further_one() -> None:
    inside = InsideHosts(HOSTS)
    inside.go_on(for_many=False)
    inside.go_back("icmp")
    assert inside.team == HOSTS[:TEAM]
    assert not inside.has_next("icmp", for_many=False)
    assert inside.has_next("udp", for_many=False)


def test_flows_are_lacking_where_a_new_host_would_have_enough() -> None:
    inside = InsideHosts(HOSTS)
    for _ in range(60):
        inside.opens(FIRST, POOL[0])
    assert not inside.lack(Flows(50))
    for _ in range(100):
        inside.opens(SECOND, POOL[0])
    inside.learn(SECOND)
    assert inside.allowance == 100
    assert inside.lack(Flows(50))
    assert not inside.lack(Flows(0))
    assert not inside.lack(Flows(101))
    inside.go_on(for_many=False)
    assert not inside.lack(Flows(100))


def test_a_host_that_never_had_a_flow_shows_no_limit() -> None:
    inside = InsideHosts(HOSTS)
    inside.opens(FIRST, FIRST)
    inside.learn(FIRST)
    assert inside.allowance is None


def test_rivals_are_those_with_the_address_then_those_with_none_known_and_last_those_that_were_refused() -> None:
    inside = InsideHosts(HOSTS[: 2 * TEAM])
    fourth, fifth, sixth = HOSTS[TEAM : 2 * TEAM]
    inside.opens(FIRST, POOL[0])
    inside.opens(SECOND, POOL[1])
    inside.opens(fourth, POOL[0])
    inside.is_refused(fourth)
    inside.opens(fifth, POOL[0])
    inside.is_refused(sixth)
    # The sixth host was refused, and never had a flow.
    assert inside.rivals(FIRST, POOL[0]) == (fifth, THIRD, SECOND, fourth)
