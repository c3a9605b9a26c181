# SPDX-License-Identifier: Apache-2.0
"""An audit names each behaviour of NATs whose behaviour is known, also where frames are lost, and none wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from itertools import product
from typing import Any, get_args

import pytest
from tests.unit.simulated_audits import QUICK, SimulatedAudit
from tests.unit.simulated_nat import Behaviour, Dependence

DEPENDENCES: tuple[Dependence, ...] = get_args(Dependence)
#: Runs with other pseudorandom choices.
SEEDS = (1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (2, 3)))
#: A frame in seven is lost.
LOSSY = {"none lost": lambda _: False, "some lost": lambda frame: frame % 7 == 3}
#: What is asked of mapping, of UDP, TCP and queries.
OF_MAPPING = ("RFC4787-REQ-1", "RFC5382-REQ-1", "RFC5508-REQ-1a")


def as_query(kind: Dependence) -> Dependence:
    """The class as ICMP shows it: queries have no remote port."""
    return "address-dependent" if kind == "address and port-dependent" else kind


def shown(kind: Dependence) -> list[Dependence]:
    """The class as UDP, TCP and queries show it."""
    return [kind, kind, as_query(kind)]


def named(audit: SimulatedAudit, what: str) -> list[Any]:
    """The classes of one kind of UDP, TCP and queries."""
    classes = audit.classes()
    return [getattr(classes[transport], what) for transport in ("udp", "tcp", "icmp")]


@pytest.mark.parametrize(
    ("port_rule", "hairpins", "losing"),
    [
        ("preserving", "external source", "none lost"),
        ("contiguous", "internal source", "none lost"),
        ("random", "none", "none lost"),
        ("random", "external source", "some lost"),
    ],
)
@pytest.mark.parametrize(("mapped", "filtered"), list(product(DEPENDENCES, DEPENDENCES)))
@pytest.mark.parametrize("seed", SEEDS)
def test_all_classes_are_named(  # noqa: PLR0917 - each class, and what hides it
    mapped: Dependence, filtered: Dependence, port_rule: Any, hairpins: Any, losing: str, seed: int
) -> None:
    behaviour = Behaviour(
        mapping=mapped, filtering=filtered, ports=port_rule, hairpinning=hairpins, loses=LOSSY[losing]
    )
    classes = SimulatedAudit(behaviour, seed=seed).classes()
    assert [one.mapping for one in classes.values()] == shown(mapped)
    assert [one.filtering for one in classes.values()] == shown(filtered)
    assert [one.ports for one in classes.values()] == [port_rule] * 3
    if mapped == "endpoint-independent" and filtered != "address and port-dependent":
        assert [one.hairpinning for one in classes.values()] == [hairpins, hairpins, None]


@pytest.mark.parametrize(("hairpins", "filtered"), list(product(["internal source", "none"], DEPENDENCES[:2])))
@pytest.mark.parametrize("seed", SEEDS)
def test_hairpinning_is_named_where_frames_are_lost(hairpins: Any, filtered: Dependence, seed: int) -> None:
    behaviour = Behaviour(filtering=filtered, hairpinning=hairpins, loses=LOSSY["some lost"])
    assert named(SimulatedAudit(behaviour, seed=seed), "hairpinning") == [hairpins, hairpins, None]


# An endpoint of mappings that serve all remote endpoints cannot be shared.
@pytest.mark.parametrize(
    ("rule", "mapped", "losing"),
    [
        *product(["overloading"], DEPENDENCES[1:], LOSSY),
        *product(["preserving", "contiguous"], DEPENDENCES[:1], ["some lost"]),
    ],
)
@pytest.mark.parametrize("seed", SEEDS)
def test_ports_are_named(rule: Any, mapped: Dependence, losing: str, seed: int) -> None:
    behaviour = Behaviour(ports=rule, mapping=mapped, loses=LOSSY[losing])
    assert named(SimulatedAudit(behaviour, seed=seed), "ports") == [rule] * 3


@pytest.mark.parametrize(("rule", "size"), [("of a range", 128), ("of a range", 1008), ("drawn", 128)])
@pytest.mark.parametrize("mapped", ["address-dependent", "address and port-dependent"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_port_that_another_flow_of_the_host_has_shows_the_class_of_mapping(
    mapped: Dependence, rule: Any, size: int, seed: int
) -> None:
    """Linux gives an inside endpoint one port of a range until another flow to a remote endpoint has that port."""
    found = SimulatedAudit(Behaviour(mapping=mapped, ports=rule, port_range=size), seed=seed).judge(*OF_MAPPING)
    assert [one.measured.partition(":")[0] for one in found] == shown(mapped)
    for one in found:
        assert one.measured.endswith("; without another flow on the same port: endpoint-independent")


def test_one_inside_host_is_enough_to_show_that_another_flow_gets_its_port() -> None:
    behaviour = Behaviour(mapping="address and port-dependent", ports="of a range", port_range=1008)
    assert named(SimulatedAudit(behaviour, inside_hosts=1), "mapping") == shown("address and port-dependent")


def further_flows(audit: SimulatedAudit) -> list[int]:
    """How many flows were looked at for a clash of ports, of UDP, TCP and queries."""
    found = audit.judge(*OF_MAPPING)
    assert [one.measured.partition(":")[0] for one in found] == ["endpoint-independent"] * 3
    pattern = re.compile(r"; none of (\d+) further flows had the outside port of another one$")
    ends = [pattern.search(one.measured) for one in found]
    return [int(end[1]) for end in ends if end is not None]


@pytest.mark.parametrize(("size", "flows"), [(64, range(36, 45)), (128, range(48, 49)), (64_512, range(16, 17))])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_clash_is_looked_for_until_it_is_likely_and_none_leaves_mapping_endpoint_independent(
    size: int, flows: range, seed: int
) -> None:
    """Ports of a wide range are drawn too seldom twice; only a gateway that keeps ports of it would show itself."""
    found = further_flows(SimulatedAudit(Behaviour(port_range=size, parity=False), seed=seed))
    assert [number in flows for number in found] == [True] * 3, found


@pytest.mark.parametrize("rule", ["preserving", "contiguous", "offset", "workers"])
def test_ports_that_nobody_draws_are_not_tried_for_long(rule: Any) -> None:
    found = further_flows(SimulatedAudit(Behaviour(ports=rule)))
    assert [16 <= number <= 40 for number in found] == [True] * 3, found


@pytest.mark.parametrize("rule", ["offset", "workers"])
@pytest.mark.parametrize("seed", SEEDS)
def test_ports_that_can_be_computed_are_not_called_random(rule: Any, seed: int) -> None:
    assert named(SimulatedAudit(Behaviour(ports=rule), seed=seed), "ports") == ["predictable"] * 3


def ports_are_hard_to_guess(behaviour: Behaviour, seed: int) -> str:
    (found,) = SimulatedAudit(behaviour, seed=seed).judge("RFC6888-REQ-15")
    return found.verdict


@pytest.mark.parametrize("seed", range(4))
def test_a_part_of_the_inside_port_that_is_kept_makes_no_random_port_predictable(seed: int) -> None:
    """Such a port is one of 63 ranges, which are chosen at random: the tester's own order does not show in it."""
    assert ports_are_hard_to_guess(Behaviour(ports="last bits"), seed) == "meets"


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("workers", [4, 6, 8, 12])
def test_ports_that_a_few_workers_count_are_not_called_random(workers: int, seed: int) -> None:
    assert ports_are_hard_to_guess(Behaviour(ports="workers", workers=workers), seed) in ("fails", "not seen")


@pytest.mark.parametrize("rule", ["source on the LAN", "another port"])
def test_only_the_outside_endpoint_of_its_mapping_is_the_external_source(rule: Any) -> None:
    """Masquerading on the LAN gives a hairpinned frame the address that the gateway has there."""
    audit = SimulatedAudit(Behaviour(hairpinning=rule))
    assert named(audit, "hairpinning") == ["another source", "another source", None]


def test_a_mapping_for_each_remote_endpoint_may_hairpin_with_another_port() -> None:
    audit = SimulatedAudit(Behaviour(hairpinning="another port", mapping="address and port-dependent"))
    assert named(audit, "hairpinning")[0] == "external source"


def test_one_inside_address_is_too_few_for_hairpinning() -> None:
    audit = SimulatedAudit(inside_hosts=1)
    assert named(audit, "hairpinning") == [None] * 3
    (one,) = audit.judge("RFC4787-REQ-9")
    assert re.search(r"needs 2 addresses on the initiator's side.*--source-addresses", one.measured)


def test_a_kept_port_is_no_class_of_ports_without_a_second_inside_address() -> None:
    audit = SimulatedAudit(Behaviour(ports="preserving"), inside_hosts=1)
    assert named(audit, "ports") == [None] * 3
    (one,) = audit.judge("RFC6888-REQ-15")
    assert "(preserving or overloading: 64 of 64 flows kept their port" in one.measured
    assert named(SimulatedAudit(inside_hosts=1), "ports") == ["random"] * 3


Ports = tuple[tuple[str, tuple[int, ...]], ...]
SEVERAL: Ports = (("udp", (443, 123, 53)), ("tcp", (443, 22, 80, 587)))
ONE: Ports = (("udp", (443,)), ("tcp", (443,)))


@cache
def audited(ports: Any, *, told: bool, losing: bool = False) -> Mapping[str, tuple[str, str]]:
    """Verdicts and reasons of a NAT that accepts only these ports; `told` = its recipe names them."""
    loses = LOSSY["some lost" if losing else "none lost"]
    behaviour = Behaviour(filtering="address and port-dependent", accepts=ports, loses=loses)
    audit = SimulatedAudit(behaviour, accepted=dict(ports) if told else {})
    audit.told = False
    audit.classes()
    return {f"{one.key} {one.transport}": (one.verdict, one.measured) for one in audit.judge(*QUICK, every=True)}


@pytest.mark.parametrize("losing", [False, True])
@pytest.mark.parametrize(("ports", "least"), [(SEVERAL, 0.9), (ONE, 0.8)])
def test_what_is_seen_of_such_rules_is_what_is_seen_of_others(ports: Ports, least: float, *, losing: bool) -> None:
    plain, found = audited((), told=True, losing=losing), audited(ports, told=True, losing=losing)
    decided = {name for name, (verdict, _) in plain.items() if verdict in ("meets", "fails")}
    same = {name for name in decided if found[name][0] == plain[name][0]}
    others = {name: found[name] for name in decided - same}
    assert decided
    # Never another verdict: what cannot be told has a reason.
    assert {verdict for verdict, _ in others.values()} <= {"not seen"}, others
    assert len(same) >= least * len(decided), others
    if ports is ONE:
        assert any("destination_ports" in reason for _, reason in others.values())


def test_without_the_ports_nothing_is_seen() -> None:
    found = audited(SEVERAL, told=False)
    assert not [name for name, (verdict, _) in found.items() if verdict == "meets" and not name.endswith("icmp")]
    assert [name for name, (verdict, _) in found.items() if verdict == "meets"]


@pytest.mark.parametrize("mapped", DEPENDENCES)
def test_classes_are_named_with_few_ports(mapped: Dependence) -> None:
    behaviour: Any = Behaviour(mapping=mapped, filtering=mapped, accepts=SEVERAL)  # type: ignore[arg-type] # of literals
    classes = SimulatedAudit(behaviour, accepted=dict(SEVERAL)).classes()
    for transport in ("udp", "tcp"):
        assert (classes[transport].mapping, classes[transport].filtering) == (mapped, mapped), transport


def test_control_frames_are_of_a_transport_that_the_gateway_has() -> None:
    audit = SimulatedAudit(Behaviour(untranslated=("udp",)), control_by="tcp")
    assert named(audit, "filtering")[1] == "endpoint-independent"
