# SPDX-License-Identifier: Apache-2.0
"""Each subscriber of a relay is tried, and those that are never served are named: relays made up here."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from tests.unit.golden import Golden

from natgauge.errors import BrokenError
from natgauge.gateways.port_sets import PortSets
from natgauge.trial.forwarding import Missing, check_each

SETS = PortSets(network="198.18.0.0/16", psid_length=6)


class Relay:
    """Serves each subscriber but those for which `fault` is true; counts trials and frames."""

    def __init__(self, fault: Callable[[int], bool], kind: str = "lost to the Responder") -> None:
        self.fault, self.kind = fault, kind
        self.trials = self.largest = 0

    def __call__(self, first: int, number: int) -> Missing:
        self.trials += 1
        self.largest = max(self.largest, number)
        missing = sum(self.fault(one) for one in range(first, first + number))
        return Missing(missing, (self.kind,) if missing else (), {"no_subscriber": missing} if missing else {})


def refusal(relay: Relay, number: int = 1000, most: int = 30_000) -> str:
    with pytest.raises(BrokenError) as caught:
        check_each(SETS, number, most, relay)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_relay_without_faults_takes_one_trial_for_each_part() -> None:
    for number, trials in ((1000, 1), (60_000, 2), (100_000, 4)):
        relay = Relay(lambda _: False)
        check_each(SETS, number, 30_000, relay)
        assert (relay.trials, relay.largest) == (trials, min(number, 30_000))


def test_a_forgotten_port_set_is_named_with_its_addresses_and_the_devices_own_count(golden: Golden) -> None:
    for one in (0, 70, 999):
        address, psid = SETS.of(one)
        said = refusal(Relay(lambda number, one=one: number == one))  # type: ignore[misc]
        assert f"subscriber {one} ({address}, PSID {psid}, {SETS.map_address(one)})" in said
        golden(said)


def test_of_many_the_first_three_are_named(golden: Golden) -> None:
    said = refusal(Relay(lambda number: number % 10 == 3, "mistranslated to the Initiator"))
    assert "100 of 1000 subscribers" in said
    assert [f"subscriber {one} (" in said for one in (3, 13, 23, 33)] == [True, True, True, False]
    golden(said)
    assert "; ...; look at" in said


def test_a_subscriber_beyond_the_first_part_is_found(golden: Golden) -> None:
    said = refusal(Relay(lambda number: number == 99_998), 100_000)
    golden(said)


def test_frames_lost_now_and_then_are_no_fault_of_a_subscriber() -> None:
    frames = itertools.count(1)
    check_each(SETS, 1000, 30_000, Relay(lambda _: next(frames) % 97 == 0))
