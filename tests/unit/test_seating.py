# SPDX-License-Identifier: Apache-2.0
"""Positions of gateways, plain forwarding and cables in a round."""

from __future__ import annotations

from natgauge.paired.ratios import RoundPlace, Seat, Seating


def test_gateways_of_one_kind_share_forwarding_and_cable() -> None:
    seating = Seating([Seat("a", [4]), Seat("b", [4])])
    assert seating.labels == ["a", "b", "plain forwarding", "cable"]
    assert seating.places == [RoundPlace("a", (0,), (3,), (2,)), RoundPlace("b", (1,), (3,), (2,))]


def test_a_gateway_of_two_kinds_has_references_of_each_and_one_that_only_forwards_is_one() -> None:
    seating = Seating([Seat("nat64", [6, 4]), Seat("router", [4], forwards=True)], lambda kind: f"linux-ipv{kind}")
    assert seating.labels == ["nat64", "router", "linux-ipv6", "cable", "cable"]
    assert seating.forwarding == {6: 2, 4: 1}
    assert seating.places == [RoundPlace("nat64", (0,), (3, 4), (2, 1)), RoundPlace("router", (1,), (4,), (1,))]


def test_plain_forwarding_has_all_kinds_and_its_own_cables() -> None:
    assert Seating([Seat("nat64", [6, 4])]).plain() == RoundPlace("plain forwarding", (1, 2), (3, 4), (1, 2))
