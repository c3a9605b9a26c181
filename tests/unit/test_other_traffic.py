# SPDX-License-Identifier: Apache-2.0
"""Frames that are not the test's are a doubt with their share, unless few; and impossible counts decide nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plans import OneTrial, PlanOfTrial
from tests.unit.counted import arrivals, change_trial, make_counts, make_outcome
from tests.unit.fake_engine import CLEAN
from tests.unit.golden import Golden
from tests.unit.simulated import Gateway
from tests.unit.test_churn import lost_of
from tests.unit.test_churn import made as churned
from tests.unit.test_flood import with_flood

from natgauge.agreement.generated import StreamTally
from natgauge.doubts import find
from natgauge.errors import BrokenError
from natgauge.notes import Note
from natgauge.other_traffic import OtherTraffic, other_traffic_note
from natgauge.procedures import connection_rate
from natgauge.procedures.kit.result.results import MeasurementResult
from natgauge.records.parameters import Parameters
from natgauge.trial import forwarding
from natgauge.trial.rounds import fault_of
from natgauge.words import Verdict

QUIET = OtherTraffic(0, 100_000, 2.0)


@pytest.mark.parametrize(
    ("seen", "doubted"),
    [
        (QUIET, False),
        (OtherTraffic(100, 100_000, 2.0), False),
        (OtherTraffic(101, 100_000, 2.0), True),
        # A switch, a router and ARP for others on a link of which the test uses little.
        (OtherTraffic(20, 8, 0.3), False),
        (OtherTraffic(200, 1000, 10.0), False),
        (OtherTraffic(201, 1000, 10.0), True),
        # A device that forges as many frames as it loses.
        (OtherTraffic(90, 180, 0.5), True),
        (OtherTraffic(30, 0, 0.5), True),
    ],
)
def test_more_than_a_thousandth_is_doubted_and_what_is_usual_on_a_link_is_not(
    seen: OtherTraffic,
    doubted: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    assert seen.is_doubted == doubted
    assert bool(other_traffic_note([QUIET, seen], "trials")) == doubted


def test_the_doubt_has_the_worst_trial_and_the_number_of_trials(golden: Golden) -> None:
    (note,) = other_traffic_note([QUIET, OtherTraffic(500, 100_000, 1.0), OtherTraffic(25_000, 100_000, 1.0)], "trials")
    assert note.word == "other traffic"
    golden(note.text)
    assert (note.count, note.value, note.grade) == (2, 0.25, "answer")


def test_a_small_share_widens_the_interval_only() -> None:
    (note,) = other_traffic_note([OtherTraffic(500, 100_000, 1.0)], "rounds")
    assert note.grade == "interval"


class Busy(Gateway):
    """A gateway on whose link others send, too."""

    def __init__(self, foreign: int, verdict: Verdict | None = None) -> None:
        super().__init__(establishes=50_000.0)
        self._foreign, self._verdict = foreign, verdict

    def measure(self, plan: PlanOfTrial) -> OneTrial:
        """Measure as usual, with other traffic in trials with this verdict."""
        outcome = super().measure(plan)
        if self._verdict not in (None, outcome.verdict):
            return outcome
        return change_trial(outcome, foreign=self._foreign)


def doubts_of(gateway: Gateway) -> list[Note]:
    settings = connection_rate.ConnectionRateSettings(connections=100_000, placement="isolated", repeat=1)
    found: MeasurementResult = connection_rate.PROCEDURE.measure(gateway, settings)
    return [doubt for doubt in find(found, Parameters()) if doubt.word == "other traffic"]


@pytest.mark.parametrize("verdict", [None, Verdict.PASS, Verdict.FAIL])
def test_a_result_has_the_doubt_whether_its_trials_passed_or_failed(verdict: Verdict | None) -> None:
    assert len(doubts_of(Busy(5000, verdict))) == 1


def test_foreign_frames_are_a_share_of_all_frames_that_the_tester_sent() -> None:
    """Of 1,000 handshakes, 2,900 frames were sent; the flood beside them was left out."""
    handshakes = [arrivals("syn", 950), arrivals("syn-ack", 950), arrivals("ack", 940)]
    first = make_counts(1000, 1000, 940, messages=handshakes)
    assert make_outcome(phase1=first, foreign=29).other_traffic.share == 0.01
    flooded = with_flood(churned(foreign=9), lost_of(1000, 999))
    assert flooded.other_traffic.offered == churned().other_traffic.offered + 1000


def test_a_result_without_other_traffic_or_with_it_in_invalid_trials_only_has_no_doubt() -> None:
    assert doubts_of(Busy(100)) == []
    assert doubts_of(Busy(5000, Verdict.INVALID)) == []


@given(offered=st.integers(0, 10**9), received=st.integers(0, 10**9))
def test_the_number_of_lost_frames_is_never_negative(offered: int, received: int) -> None:
    assert make_counts(offered, offered, received).lost == max(0, offered - received)


def _stream(made: int, received: int) -> StreamTally:
    return StreamTally.model_validate({"made_frames": made, "received_frames": received, **CLEAN})


@pytest.mark.parametrize(("received", "fault"), [(8, False), (7, True), (9, True)])
def test_a_round_is_void_unless_just_the_frames_that_were_made_came_back(
    received: int,
    fault: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    right = _stream(8, 8)
    others = {"refused_frames": 0, "damaged_unmarked": 0, "stored": 8, "remapped": 0}
    counts: Any = SimpleNamespace(new=right, initiator=_stream(8, received), responder=right, **others)
    assert bool(fault_of(counts, 8, None)) == fault


def test_a_device_that_returns_more_than_was_sent_is_refused_before_the_first_trial(golden: Golden) -> None:
    stream = make_counts(8, 8, 635)
    ports = SimpleNamespace(initiator=SimpleNamespace(device_signs=None), responder=SimpleNamespace(device_signs=None))
    result: Any = SimpleNamespace(phase1=stream, phase2=None, ports=ports)
    with golden.raises(BrokenError):
        forwarding.whole(result, last=True, faults={})
