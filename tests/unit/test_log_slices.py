# SPDX-License-Identifier: Apache-2.0
"""Logs of gateways whose frames are timed in slices: emptied before each round, and records that were dropped told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.golden import Golden
from tests.unit.test_comparison_requests import counts

from natgauge.notes import Note
from natgauge.paired.ratios import PairedRatios, Seat, Seating
from natgauge.paired.rounds import RoundSums, VoidRounds, disturbance_notes
from natgauge.paired.slices import RoundPlan, TimedRound
from natgauge.trial import rounds
from natgauge.trial.controls import CommandRetries
from natgauge.trial.rounds import TimedGateway, perform

PLAN = RoundPlan(1000, {"up": 1})


class LoggingGateway:
    """A gateway whose log drops some records in each round, and some more while its table is emptied."""

    empties = True

    def __init__(self, dropping: int | None) -> None:
        self.dropping, self.dropped = dropping, 100
        self.did: list[str] = []

    def empty(self) -> None:
        self.did.append("table emptied")
        self.dropped += 5

    def forget(self) -> None:
        self.did.append("log emptied")

    def count(self) -> int:
        return 1000

    def found_changed(self) -> str:
        return ""

    def faults(self) -> dict[str, int]:
        return {"insert_failed": 3} if self.dropping is None else {"log_drops": self.dropped}

    def timed(self, *, logs: bool = True) -> TimedGateway:
        measurer: Any = SimpleNamespace(
            device=self,
            log=self if logs else None,
            asking=CommandRetries(),
            number=0,
            settings=SimpleNamespace(udp_timeout=None),
            request=lambda _plan: None,
        )
        return TimedGateway("x", measurer, 1000)


def performed(*gateways: LoggingGateway, logs: bool = True) -> TimedRound:
    def compare(*_request: Any, **_seconds: Any) -> Any:
        for each in gateways:
            each.did.append("round")
            each.dropped += each.dropping or 0
        return SimpleNamespace(contestants=[counts()] * len(gateways), blocks=(), wall_ns=1)

    recorder: Any = SimpleNamespace(add_round=lambda _round: None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds, "compare", compare)
        patch.setattr(rounds, "Contestant", SimpleNamespace)
        patch.setattr(rounds, "ComparisonRequest", SimpleNamespace)
        return perform(PLAN, 0, [each.timed(logs=logs) for each in gateways], [], recorder)


def test_the_log_is_emptied_before_each_round_after_the_table() -> None:
    """Seen: a log in memory that grew by 200 octets for each connection of all rounds."""
    gateway = LoggingGateway(0)
    for _ in range(2):
        performed(gateway)
    assert gateway.did == ["table emptied", "log emptied", "round"] * 2
    plain = LoggingGateway(0)
    performed(plain, logs=False)
    assert plain.did == ["table emptied", "round"]


def test_a_round_has_the_records_that_each_log_dropped_in_it() -> None:
    found = performed(LoggingGateway(7), LoggingGateway(0), LoggingGateway(None))
    assert found.log_drops == {0: 7, 1: 0, 2: 0}
    assert performed(LoggingGateway(7), logs=False).log_drops == {}


def noted(*logs: dict[int, int]) -> list[Note]:
    seating = Seating([Seat("a", range(1)), Seat("b", range(1))])
    sums = RoundSums(
        VoidRounds("compare", "round", lambda _: "see"),
        seating,
        PairedRatios([seating.plain(), *seating.places], ("up",)),
    )
    for each in logs:
        sums.add(TimedRound((), {}, 0, 0, log_drops=each))
    return disturbance_notes([sums])[0]


def test_dropped_records_of_a_log_in_slices_are_a_doubt_and_a_log_that_dropped_none_is_a_note(golden: Golden) -> None:
    """Seen: a gateway whose log dropped a third of its records was cheaper, and natgauge said nothing of it."""
    some, none = noted({0: 0, 1: 2}, {0: 0, 1: 3}), noted({0: 0, 1: 0})
    assert [(note.word, note.grade, note.count) for note in (*some, *none)] == [
        ("log dropped", "answer", 5), ("method", None, 1)
    ]  # fmt: skip
    assert noted({}) == []
    golden([*some, *none])
