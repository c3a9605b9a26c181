# SPDX-License-Identifier: Apache-2.0
"""Rules that accept by port: an audit goes to these ports; what needs more of them is not seen, and never wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import pytest
from tests.unit.simulated_nat import Behaviour, Dependence, examiner_of

from natgauge.audits.kit.classes import filtering, mapping
from natgauge.audits.requirements import requirements
from natgauge.audits.runner import classes, examine
from natgauge.records.audit import AuditVerdict
from natgauge.words import Transport

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
