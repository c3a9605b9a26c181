# SPDX-License-Identifier: Apache-2.0
"""An audit names each behaviour of NATs whose behaviour is known, also where frames are lost, and none wrong."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import get_args

import pytest
from tests.unit.simulated_nat import Behaviour, Dependence, examiner_of

from natgauge.audits.kit.classes import are_random, filtering, hairpinning, mapping, ports
from natgauge.audits.kit.flows import TRANSPORTS
from natgauge.audits.kit.observations import NotSeenError
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
