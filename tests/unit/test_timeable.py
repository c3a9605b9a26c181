# SPDX-License-Identifier: Apache-2.0
"""One list of reasons why frames cannot be timed, for costs and for comparisons by slices."""

from __future__ import annotations

import pytest
from tests.unit.golden import Golden

from natgauge.gateways.recipe import load
from natgauge.trial.rounds import reasons_not_timed
from natgauge.words import Placement


def reasons(recipe: str, placement: Placement = "shared", cpus: tuple[int, ...] = (0,)) -> list[str]:
    return reasons_not_timed("x", placement, cpus, own_processes=load(recipe).own_processes)


@pytest.mark.parametrize("recipe", ["nftables-nat44", "jool-nat64"])
def test_a_gateway_in_the_senders_context_on_one_core_can_be_timed(recipe: str) -> None:
    assert reasons(recipe) == []
    assert reasons(recipe, cpus=()) == []


@pytest.mark.parametrize(
    ("recipe", "placement", "cpus"),
    [
        ("nftables-nat44", "isolated", (0,)),
        ("nftables-nat44", "external", (0,)),
        ("nftables-nat44", "shared", (0, 1)),
        ("tayga-nat64", "shared", (0,)),
        # In the guest of `--lab vm`.
        ("jool-nat64", "external", (0,)),
    ],
)
def test_each_reason_names_the_gateway(
    recipe: str, placement: Placement, cpus: tuple[int, ...], golden: Golden
) -> None:
    (found,) = reasons(recipe, placement, cpus)
    golden(found)


def test_all_reasons_are_told_at_once() -> None:
    found = reasons("tayga-nat64", "isolated", (0, 1))
    assert [one.split()[1] for one in found] == ["works", "placement", "cores"]
    # No placement helps a gateway with processes of its own.
    assert "use --placement" not in found[1]
