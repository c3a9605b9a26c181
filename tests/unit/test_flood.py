# SPDX-License-Identifier: Apache-2.0
"""What a host that floods takes from the others, of simulated gateways of known truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.plans import PlanOfTrial
from tests.unit.counted import change_counts, make_counts
from tests.unit.fake_engine import FakeEngine
from tests.unit.simulated import reading
from tests.unit.test_churn import PLAN, all_came, judged, lost_of, made, with_flood
from tests.unit.test_measurer_trials import measurer, phase2_of
from tests.unit.test_procedure_subscribers import NEW_BOUND, Mixed, measure, profile

from natgauge.churn import CountInChurn
from natgauge.doubts import find
from natgauge.errors import UsageError
from natgauge.notes import Note
from natgauge.power import Energy
from natgauge.procedures.kit.measure.floods import beside_flood
from natgauge.procedures.kit.result.results import Attempt, Measurement
from natgauge.records.parameters import Parameters
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask
from natgauge.trials import Trial
from natgauge.words import LimitedBy, Verdict


@dataclass(slots=True)
class Flooded(Mixed):
    """A gateway whose limits are of all hosts together, or of each host.

    Attributes:
        per_host: whether `opens` and `table_size` are of each host.
        busy: whether each opening, those of the flood included, takes the time of a frame.
    """

    per_host: bool = False
    busy: bool = False

    def trial(self, plan: PlanOfTrial) -> Trial:
        """A trial in which the flood takes from the others what it shares with them."""
        trial = Mixed.trial(self, plan)
        churn = None if plan.phase2 is None else plan.phase2.churn
        if plan.phase2 is None or churn is None or not churn.flood_per_second or trial.openings is None:
            return trial
        assert trial.result is not None
        assert trial.result.phase2 is not None
        seconds, fresh, flood = plan.phase2.seconds, churn.new_per_second, churn.flood_per_second
        sent, number = int(flood * seconds), trial.openings.intended_frames
        of_all = fresh if self.per_host else fresh + flood
        room = self.table_size - plan.connections
        own = flood if self.per_host else of_all
        table = self.table_size if self.per_host else room
        came = int(sent * min(1.0, self.opens / own, table / (own * seconds)))
        opened = int(number * min(1.0, self.opens / of_all, max(0, room) / (of_all * seconds)))
        work = plan.phase2.initiator_rate + plan.phase2.responder_rate + fresh + flood
        busy = min(1.0, self.carries / work) if self.busy else 1.0

        def counts(intended: int, received: float) -> Any:
            return make_counts(intended, intended, int(received), nominal_seconds=seconds, sending_seconds=seconds)

        streams: dict[str, Any] = {
            "openings": counts(number, opened * busy),
            "flood": counts(sent, came * busy),
        }
        for way in ("initiator", "responder"):
            stream = getattr(trial.result.phase2, way)
            kept = stream.intended_frames * busy if self.busy else stream.received_frames
            streams[way] = change_counts(stream, received=int(kept))
        result = trial.result.model_copy(update={"phase2": trial.result.phase2.model_copy(update=streams)})
        held = min(self.table_size, plan.connections + opened + (0 if self.per_host else came))
        return reading(replace(trial, result=result), count_in_churn=CountInChurn(seconds, held))


def each_limited() -> Flooded:
    """A gateway whose hosts may open 1,000 connections/s each."""
    return Flooded(opens=1000, per_host=True)


def plan(metric: str, gateway: str, chosen: dict[str, Any]) -> None:
    """Plan a measurement; nothing is started."""
    question = ask(metric, gateway, chosen)
    Bench(question.cell).plan(question.metric, question.settings)


def medians(found: Any) -> dict[str, float]:
    return {name: figure.median for name, figure in found.figures.items()}


def test_with_a_limit_for_each_host_the_others_lose_nothing() -> None:
    found = measure("mixed-load", each_limited(), four_tuples=500_000, new_share=0.05, flood_share=0.9)
    figures = medians(found)
    assert found.summary.median == pytest.approx(10_000, rel=0.006)
    assert figures["load_without_flood"] == pytest.approx(10_000, rel=0.006)
    assert figures["kept_share"] == pytest.approx(1, abs=0.006)
    assert figures["kept_least_share"] <= 1 <= figures["kept_most_share"]
    assert figures["flood_per_second"] == pytest.approx(9 * 1000, rel=0.006)
    assert (figures["new_lost_beside_flood_percent"], figures["frames_lost_beside_flood_percent"]) == (0, 0)
    assert figures["flood_lost_percent"] == pytest.approx(100 * (1 - 1 / 9), rel=0.01)


def test_a_limit_of_all_hosts_together_is_used_up_by_the_flood() -> None:
    found = measure("mixed-load", Flooded(opens=1000), four_tuples=500_000, new_share=0.05, flood_share=0.5)
    figures = medians(found)
    assert found.summary.median == 0
    assert (figures["kept_share"], figures["load_without_flood"] > 9900) == (0, True)
    assert figures["new_lost_beside_flood_percent"] == pytest.approx(50, abs=0.5)


def test_a_table_that_the_flood_fills_has_no_room_for_the_others() -> None:
    chosen: dict[str, Any] = {"connections": 10_000, "four_tuples": 200_000, "new_rate": 1000.0, "flood_share": 0.9}
    found = measure("mixed-load", Flooded(table_size=20_000, carries=100_000), **chosen)
    figures = medians(found)
    # 10,000 entries are left for 20,000 openings in 2 s.
    assert figures["new_lost_beside_flood_percent"] == pytest.approx(50, abs=0.5)
    assert (found.summary.median, found.limited_by) == (0, "table")
    apart = measure("mixed-load", Flooded(table_size=20_000, carries=100_000, per_host=True), **chosen)
    assert medians(apart)["kept_share"] == pytest.approx(1, abs=0.006)


def test_a_flood_that_takes_time_costs_the_others_that_time() -> None:
    truth = Flooded(carries=100_000, counts_openings=True, busy=True)
    found = measure("mixed-load", truth, connections=50_000, four_tuples=200_000, new_rate=1000.0, flood_share=0.9)
    figures = medians(found)
    assert figures["load_without_flood"] == pytest.approx(49_500, rel=0.006)
    assert found.summary.median == pytest.approx(45_000, rel=0.006)
    assert figures["kept_least_share"] <= 45_000 / 49_500 <= figures["kept_most_share"]
    assert figures["kept_most_share"] - figures["kept_least_share"] < 0.025


def test_subscribers_beside_a_flood_are_counted_too(tmp_path: Path) -> None:
    file = profile(tmp_path, *NEW_BOUND)
    found = measure("subscribers", each_limited(), subscriber=file, flood_share=0.8)
    assert found.summary.median == pytest.approx(1000, rel=0.006)
    assert medians(found)["kept_share"] == pytest.approx(1, abs=0.006)
    assert medians(found)["flood_per_second"] == pytest.approx(4000, rel=0.006)


def test_a_host_opens_no_more_than_it_has_four_tuples(golden: Any) -> None:
    found = measure("mixed-load", each_limited(), four_tuples=150_000, new_share=0.05, flood_share=0.99)
    assert medians(found)["flood_per_second"] == 75_000
    golden([note.text for note in found.notes if note.word in {"search", "method"}])


def test_a_request_has_the_flood_and_its_losses_fail_no_trial() -> None:
    engine = FakeEngine()
    assert PLAN.phase2 is not None
    assert PLAN.phase2.churn is not None
    churn = replace(PLAN.phase2.churn, flood_per_second=500.0)
    measurer(engine).measure(replace(PLAN, phase2=replace(PLAN.phase2, churn=churn)))
    asked = phase2_of(engine).churn
    assert asked is not None
    assert asked.flood_per_second == 500
    assert judged(with_flood(made(), lost_of(1000, 999))).verdict is Verdict.PASS
    unsent = make_counts(1000, 900, 900, nominal_seconds=2.0, sending_seconds=2.0)
    assert judged(with_flood(made(), unsent)).limited_by == "tester"


def test_a_flood_may_fill_the_table_after_it_was_read() -> None:
    trial = made(
        openings=lost_of(200, 100),
        count_in_churn=CountInChurn(2.0, 900),
        network_counters={"gateway": {"conntrack drop": 100}},
    )
    assert judged(trial, table_limit=2000).limited_by == "device"
    assert judged(with_flood(trial, all_came(1000)), table_limit=2000).limited_by == "table"


class Counting(Flooded):
    """Its kernel counts the entries that could not be made for the flood."""

    __slots__ = ()

    def trial(self, plan: PlanOfTrial) -> Trial:
        """The same trial, with the counter."""
        trial = Flooded.trial(self, plan)
        lost = 0 if trial.flood is None else trial.flood.lost
        return reading(trial, network_counters={"gateway": {"conntrack insert_failed": lost}})


def test_what_a_flood_alone_lost_is_no_limit_of_the_others() -> None:
    """Its counter made the port pool the bottleneck, so nothing asked whether frames or connections ended it."""
    truth = Counting(opens=1000, per_host=True)
    found = measure("mixed-load", truth, four_tuples=500_000, new_share=0.05, flood_share=0.9)
    assert found.summary.median == pytest.approx(10_000, rel=0.006)
    assert found.limited_by == "new connections"


def test_a_flood_before_devices_whose_subscribers_share_addresses_is_refused() -> None:
    with pytest.raises(UsageError) as refused:
        plan("mixed-load", "lw4o6", {"flood_share": 0.5})
    assert refused.value.at == "flood_share"


def known_loads(alone: Measurement, beside: Measurement, tried: Sequence[Attempt] = ()) -> Measurement:
    """What is told of a load of 100 without a flood and one of 50 beside it."""
    return beside_flood(alone, tried, beside, wanted=1.0, flood=1.0)


def ended(value: float, upper: float | None, by: LimitedBy, *notes: Note) -> Measurement:
    return Measurement(value, upper, by, {}, notes=notes)


def test_a_load_that_the_tester_ended_leaves_no_least_share_and_a_doubt_says_so(golden: Any) -> None:
    """0.21 was told as the least share of a device of which nobody knows what it carries without the flood."""
    truth = Flooded(opens=12_000, ceiling=210_000)
    found = measure("mixed-load", truth, four_tuples=500_000, new_share=0.05, flood_share=0.5)
    figures = medians(found)
    assert found.limited_by == "new connections"
    assert figures["load_without_flood"] == pytest.approx(100_000)
    assert figures["kept_share"] == pytest.approx(0.2, rel=0.01)
    assert "kept_least_share" not in figures
    assert figures["kept_most_share"] > 0.2
    golden([str(doubt) for doubt in find(found, Parameters()) if doubt.word == "tester limited"])
    assert {doubt.grade for doubt in found.notes if doubt.word == "tester limited"} == {"interval"}


def test_what_is_not_sure_of_the_load_without_the_flood_is_told_with_the_share(golden: Any) -> None:
    """They were doubts of the first search, and with the first search they were dropped."""
    rare, twice = Note("rare loss", "3 frames of a million were lost"), Note("contradictions", "90 passed and failed")
    known = known_loads(ended(100.0, 101.0, "device", rare, twice), ended(50.0, 50.5, "device"))
    golden([f"{note} ({note.grade})" for note in known.notes])
    # What few lost frames ended may be far too low.
    assert "kept_least_share" not in known.figures
    assert known.figures["kept_most_share"] == pytest.approx(0.505)


def test_each_bound_of_the_share_is_that_of_a_search_that_the_device_ended() -> None:
    known = known_loads(ended(100.0, 125.0, "device"), ended(50.0, None, "tester"))
    assert (known.figures["kept_least_share"], known.figures["kept_share"]) == (0.4, 0.5)
    assert "kept_most_share" not in known.figures
    undecided = known_loads(ended(100.0, 125.0, "host"), ended(50.0, 60.0, "time"))
    assert "kept_least_share" not in undecided.figures
    assert undecided.figures["kept_most_share"] == 0.6


def test_what_the_others_lose_beside_a_flood_is_counted_as_verdicts_count_it() -> None:
    """2,000 of 4,000 frames came back, and 1,000 were never sent: their connections were not opened."""
    outcome = made(down=make_counts(4000, 3000, 2000, unopened=1000))
    phase2 = outcome.counted.phase2
    assert phase2 is not None
    beside = phase2.model_copy(update={"initiator": None, "flood": lost_of(1000, 999)})
    outcome = replace(
        outcome, result=outcome.counted.model_copy(update={"phase2": beside}), verdict=Verdict.FAIL, limited_by="device"
    )
    tried = Attempt(100.0, short=False, outcome=outcome, is_aside=True)
    known = known_loads(ended(100.0, 101.0, "device"), ended(50.0, 50.5, "device"), [tried])
    assert known.figures["frames_lost_beside_flood_percent"] == 50


class Metered(Flooded):
    """Its meter shows as many watts as the Initiator sends frames/s, and 1 kW more where there is no flood."""

    __slots__ = ()

    def trial(self, plan: PlanOfTrial) -> Trial:
        trial, phase2 = Flooded.trial(self, plan), plan.phase2
        if phase2 is None:
            return trial
        flooded = phase2.churn is not None and phase2.churn.flood_per_second
        watts = phase2.initiator_rate + (0 if flooded else 1000)
        return reading(trial, energy=Energy(watts * phase2.seconds, phase2.seconds))


def test_the_power_beside_a_flood_is_that_of_the_load_that_passes_beside_it() -> None:
    """It was that of the load that passes without it: there the loads are higher."""
    truth = Metered(carries=100_000, counts_openings=True, busy=True)
    found = measure("mixed-load", truth, connections=50_000, four_tuples=200_000, new_rate=1000.0, flood_share=0.9)
    assert medians(found)["load_without_flood"] > found.summary.median
    assert medians(found)["watts"] == pytest.approx(found.summary.median)


def test_half_of_a_load_that_failed_is_no_load_that_passed() -> None:
    """Its trials tell what ended the search; the power of half of the frames was told as that of all."""
    truth = Metered(carries=100_000, counts_openings=True)
    found = measure("mixed-load", truth, connections=50_000, four_tuples=200_000, new_share=0.01)
    (repetition,) = found.measurements
    asides = [each for each in repetition.attempts if each.is_aside]
    assert [each.outcome.verdict for each in asides] == [Verdict.FAIL, Verdict.PASS]
    assert {each.load > repetition.value for each in asides} == {True}
    assert medians(found)["watts"] == pytest.approx(found.summary.median + 1000)
    # They are trials all the same.
    assert sum(found.trials.values()) == len(repetition.attempts)
