# SPDX-License-Identifier: Apache-2.0
"""One list of reasons why frames cannot be timed, for costs and for comparisons by slices."""

from __future__ import annotations

import re

import pytest

from natgauge.bench.timeable import reasons_not_timed
from natgauge.duts.recipe import load
from natgauge.words import Placement


def reasons(recipe: str, placement: Placement = "shared", cpus: tuple[int, ...] = (0,)) -> list[str]:
    return reasons_not_timed("x", load(recipe), placement, cpus)


def test_a_gateway_in_the_senders_context_on_one_core_can_be_timed() -> None:
    assert reasons("nftables-nat44") == []
    assert reasons("nftables-nat44", cpus=()) == []


@pytest.mark.parametrize(
    ("recipe", "placement", "cpus", "reason"),
    [
        ("nftables-nat44", "isolated", (0,), "placement isolated: .*; use --placement shared$"),
        ("nftables-nat44", "external", (0,), "placement external: .*cannot be timed$"),
        ("nftables-nat44", "shared", (0, 1), "cores 0,1: costs are those of one core"),
        ("jool-nat64", "shared", (0,), "goes from ipv6 to ipv4"),
    ],
)
def test_each_reason_names_the_gateway(recipe: str, placement: Placement, cpus: tuple[int, ...], reason: str) -> None:
    (found,) = reasons(recipe, placement, cpus)
    assert re.search(f"^x: {reason}", found)


def test_all_reasons_are_told_at_once() -> None:
    found = reasons("tayga-nat64", "isolated", (0, 1))
    assert [one.split()[1] for one in found] == ["placement", "works", "goes", "cores"]
