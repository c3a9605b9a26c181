# SPDX-License-Identifier: Apache-2.0
"""`compare` by rates: simulated gateways of known rates are searched in turn, and their ratio is found or left open."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.simulated_lab import Simulation, simulated
from tests.simulated_lab.lab import CLOCK, LABS, SimulatedLab
from tests.unit.conftest import Ran
from tests.unit.counted import change_counts, change_trial
from tests.unit.golden import Golden
from tests.unit.made_comparisons import compared_by_rates
from tests.unit.simulated import LONG_STALL, Gateway

import natgauge
from natgauge.cli import run
from natgauge.comparisons import by_rates, request
from natgauge.comparisons.request import CompareOptions
from natgauge.errors import BrokenError, HostError, UsageError
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.time_budget import TimeUpError
from natgauge.records.comparison import RatioEstimate, SearchLimit
from natgauge.reports.comparison import text
from natgauge.stored.find_results import find
from natgauge.words import Quantity, SearchLimitedBy

#: One gateway twice, as the comparison calls it.
FIRST, SECOND = "simulated:lab=simulated", "simulated:lab=simulated (2)"
NAMES = [FIRST, FIRST]
ASKED = ["compare", *NAMES, "--by", "rates", "--connections", "20000", "--seed", "7"]
#: The same for `natgauge.compare`.
CHOSEN: dict[str, Any] = {"by": "rates", "connections": 20_000, "seed": 7}
ONE_AT_A_TIME = ["simulated-machine:lab=simulated,hash_size=1024", "simulated-machine:lab=simulated,hash_size=65536"]


#: Time for the fewest rounds that make an interval, in seconds.
SIX_ROUNDS = 625.0


def disturbed(_number: int, trial: Any) -> Any:
    """The host takes the core away in each trial above 18,000 connections/s."""
    if trial.plan.phase1_rate <= 18_000:
        return trial
    phase1 = change_counts(trial.phase1, received=trial.phase1.received_frames - 1)
    return change_trial(trial, cpus=(LONG_STALL,), phase1=phase1)


class World:
    """What each gateway is, in the order in which they were named; the last one is the first one again."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.gateways: list[dict[str, Any]] = [{}, {}, {}]
        self.started: list[Gateway] = []
        self.most_at_once = 0
        self.receiver_seconds = 1e-9
        simulation.start = self.start

    def compare(self, *gateways: dict[str, Any], names: list[str] = NAMES, **asked: Any) -> natgauge.Compared:
        """Compare new connections of a baseline and another gateway; none = those that are known."""
        if gateways:
            self.gateways = [*gateways, gateways[0]]
        return natgauge.compare(*names, **{**CHOSEN, "quantities": "new", **asked})

    def start(self, lab: str) -> Gateway:
        """The gateway of a lab, whose name ends with its number."""
        given = self.gateways[int(lab.rpartition("-")[2]) % len(self.gateways)]
        known = {"establishes": 20_000.0, "forwards": 50_000.0, "seed": len(self.started), **given}
        self.started.append(Gateway(receiver_seconds=self.receiver_seconds, **known))
        self.most_at_once = max(self.most_at_once, len(LABS))
        return self.started[-1]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[World]:
    """Gateways of known rates in simulated labs."""
    monkeypatch.chdir(tmp_path)
    # Each round takes 100 s, at its end.
    seconds, real = [0.0], by_rates.ByRates.round

    def timed_round(*arguments: Any) -> None:
        real(*arguments)
        seconds[0] += 100.0

    monkeypatch.setattr(by_rates.ByRates, "round", timed_round)
    clock = SimpleNamespace(monotonic=lambda: seconds[0], time=time.time)
    monkeypatch.setattr("natgauge.comparisons.compare.time", clock)
    with simulated() as simulation:
        yield World(simulation)
        assert not LABS


def known(figure: RatioEstimate) -> tuple[float, float]:
    """Both ends of an interval."""
    assert figure.low is not None
    assert figure.high is not None
    return figure.low, figure.high


def test_a_known_ratio_lies_in_the_interval_that_is_told(world: World, ran: Ran) -> None:
    world.gateways[1] = {"establishes": 16_000.0, "forwards": 40_000.0}
    document = json.loads(ran([*ASKED, "--json"]).out)
    assert (document["by"], document["rounds"]) == ("rates", 8)
    assert [one["parameters"]["place"]["placement"] for one in document["gateways"]] == ["isolated"] * 3
    assert [figure["quantity"] for figure in document["estimates"]] == ["new", "both"]
    for figure in document["estimates"]:
        assert figure["verdict"] == "costs more"
        assert figure["low"] <= 1.25 <= figure["high"]
        # Each search leaves two bounds that are 2 % apart, and queues may have raised each rate by 1 or 2 %.
        assert figure["high"] / figure["low"] < 1.09
        assert figure["ratio_to_forwarding"] is None
    assert document["estimates"][0]["nanoseconds"] == pytest.approx(1e9 / 16_000, rel=0.02)
    assert document["estimates"][1]["nanoseconds"] == pytest.approx(1e9 / 80_000, rel=0.02)
    assert document["gateways"][0]["rates"]["both"] == pytest.approx(50_000, rel=0.02)
    rounds = [json.loads(line) for line in (Path(document["results"]) / "rounds.jsonl").read_text().splitlines()]
    assert len(rounds) == 8
    assert all(low < high for one in rounds for each in one["rates"].values() for low, high in each.values())


def test_a_loss_at_every_rate_can_be_tolerated(world: World, golden: Golden) -> None:
    """A translator that writes a checksum of 0 loses such a share in the next one, and has no zero-loss rate."""
    with pytest.raises(BrokenError):
        world.compare({"loses_share": 0.001}, {"establishes": 16_000.0})
    found = world.compare(loss_tolerance="0.2%", most_seconds=SIX_ROUNDS).result
    low, high = known(found.estimates[0])
    assert low <= 1.25 <= high
    golden(text(found))


def test_the_same_gateway_twice_shows_no_difference(world: World, ran: Ran, golden: Golden) -> None:
    out = ran([*ASKED, "--quantities", "new"]).out
    golden(out)
    assert {gateway.establishes for gateway in world.started} == {20_000.0}


def test_time_for_too_few_rounds_says_how_many_an_interval_takes(world: World, golden: Golden) -> None:
    """At 99.9 % a median of eight ratios has no interval either, though a first look is taken at them."""
    for level, least in (("95%", 6), ("99.9%", 11)):
        found = world.compare(level=level, most_seconds=500.0).result
        assert found.rounds < least
        assert found.estimates[0].low is None
        golden(found.notes[-1].text)


def test_a_rate_that_was_mostly_not_the_gateways_own_is_a_bound_whatever_limited(golden: Golden) -> None:
    ended: dict[SearchLimitedBy, int] = {"the tester": 2, "the time": 1}
    limits = tuple(
        SearchLimit(gateway="nat", quantity="new", limited_by=by, searches=searches, of=5, at_least=9.0)
        for by, searches in ended.items()
    )
    golden(text(compared_by_rates(limits)))
    golden(text(compared_by_rates(limits[:1])))


def test_each_round_has_labs_and_a_seed_of_its_own(world: World) -> None:
    found = world.compare(most_seconds=300.0)
    rounds = found.result.rounds
    assert len(world.started) == 3 * rounds
    lines = (found.folder / "trials.jsonl").read_text().splitlines()
    seeds = list(dict.fromkeys(json.loads(line)["request"]["seed"] for line in lines))
    assert (len(seeds), seeds[0], world.most_at_once) == (rounds, 7, 3)
    assert rounds > 1


def test_noise_makes_the_interval_wider_and_keeps_the_truth_in_it(world: World) -> None:
    found = world.compare(
        {"noise": 0.05}, {"noise": 0.05, "establishes": 16_000.0}, most_seconds=1000.0, resolve="0.1%"
    )
    (figure,) = found.result.estimates
    low, high = known(figure)
    assert low <= 1.25 <= high
    # Without noise it is below 1.09.
    assert high / low > 1.09
    assert (figure.verdict, found.result.decided, found.exit_status) == ("costs more", True, 0)


def test_six_rounds_make_an_interval_where_there_is_no_time_for_eight(world: World) -> None:
    found = world.compare(most_seconds=SIX_ROUNDS).result
    assert (found.rounds, found.notes) == (6, ())
    assert found.estimates[0].low is not None


def with_trials_that_take_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the comparison's clock be that of the simulated trials."""
    clock = SimpleNamespace(monotonic=CLOCK.monotonic, time=time.time)
    monkeypatch.setattr("natgauge.comparisons.compare.time", clock)


@pytest.mark.parametrize(("names", "shares"), [(NAMES, (0.0, 0.5)), (ONE_AT_A_TIME, (0.9,))])
def test_the_time_ends_the_first_round_too_in_one_line_with_the_time_that_is_enough(
    world: World, monkeypatch: pytest.MonkeyPatch, golden: Golden, names: list[str], shares: tuple[float, ...]
) -> None:
    """160 s took 361 s: six searches of a minute each."""
    asked = {**CHOSEN, "resolve": "0.1%"}
    with_trials_that_take_time(monkeypatch)
    # One that is over after a round.
    alone = natgauge.compare(*names, **{**asked, "most_seconds": 500.0})
    round_seconds = json.loads((alone.folder / "comparison.json").read_text())["seconds"] / alone.result.rounds
    for share in shares:
        given = max(share * round_seconds, 1.0)
        began = CLOCK.monotonic()
        with pytest.raises(BrokenError, match="ended in the first round") as ended:
            natgauge.compare(*names, **{**asked, "most_seconds": given})
        # A trial that fits ends with the wait for its last frames.
        assert CLOCK.monotonic() - began <= given + 1
        golden(str(ended.value))
    enough = float(str(ended.value).partition("--most-seconds ")[2].split()[0])
    began = CLOCK.monotonic()
    found = natgauge.compare(*names, **{**asked, "most_seconds": enough}).result
    assert CLOCK.monotonic() - began <= enough + 1
    assert found.rounds >= 6
    assert all(each.low is not None for each in found.estimates)
    assert world.started


@pytest.mark.parametrize("number", [2, 3])
def test_fewer_gateways_are_advised_where_there_are_some_and_no_longer_time_than_may_be_given(
    world: World, monkeypatch: pytest.MonkeyPatch, golden: Golden, number: int
) -> None:
    with_trials_that_take_time(monkeypatch)
    world.gateways = [{"establishes": 20.0}] * (number + 1)
    with golden.raises(BrokenError):
        world.compare(names=[FIRST] * number, connections=10**7, most_seconds=1.0)


def test_a_search_that_the_time_of_the_comparison_cuts_short_says_nothing_of_a_gateway(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One failed load was told as no rate that passed, which has an infinite cost."""
    calls, real = itertools.count(1), Procedure.once

    def once(procedure: Procedure[Any], *arguments: Any) -> Any:
        found = real(procedure, *arguments)
        if next(calls) > 18:
            budget = arguments[-1]
            budget.refused = True
            ended = TimeUpError("1 s is left")
            ended.failed = 3e4
            raise ended
        return found

    monkeypatch.setattr(Procedure, "once", once)
    with_trials_that_take_time(monkeypatch)
    monkeypatch.setattr(by_rates, "SEARCH", {**by_rates.SEARCH, "most_seconds": 1e4})
    found = world.compare(resolve="0.1%", most_seconds=270.0)
    (figure,) = found.result.estimates
    assert found.result.rounds > 6
    assert (figure.blocks, figure.high is None) == (6, False)
    assert "passed no rate" not in figure.text


def test_a_first_round_whose_searches_all_have_their_bounds_is_kept(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trial that only confirms what is known lacked the time, and the round was thrown away."""
    real = Procedure.once

    def once(procedure: Procedure[Any], *arguments: Any) -> Any:
        found = real(procedure, *arguments)
        arguments[-1].refused = True
        return found

    monkeypatch.setattr(Procedure, "once", once)
    monkeypatch.setattr(by_rates, "SEARCH", {**by_rates.SEARCH, "most_seconds": 1e4})
    assert world.compare(most_seconds=SIX_ROUNDS).result.rounds >= 6


def test_a_later_round_that_takes_longer_than_those_before_has_what_the_time_leaves(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the seventh round on it is a hundred times slower, so that each trial takes as many times longer."""

    def start(lab: str) -> Gateway:
        world.gateways[1] = {"establishes": 200.0} if len(world.started) >= 18 else {}
        return world.start(lab)

    world.simulation.start = start
    with_trials_that_take_time(monkeypatch)
    began = CLOCK.monotonic()
    found = world.compare(resolve="0.1%", most_seconds=270.0)
    (figure,) = found.result.estimates
    assert CLOCK.monotonic() - began <= 271
    assert (found.result.rounds, figure.blocks) == (7, 6)
    low, high = known(figure)
    # The last round has no rate of the baseline, and so no ratio.
    assert low <= 1 <= high
    assert run(["report", str(found.folder)]) == 0


TESTER = {"real_ceiling": 12_000.0}


def test_of_two_gateways_that_are_both_faster_than_the_tester_nothing_is_known(
    world: World, ran: Ran, golden: Golden
) -> None:
    """20,000/s and 40,000/s: the tester does 12,000/s, so both seem alike."""
    world.gateways = [TESTER, {"establishes": 40_000.0, **TESTER}, TESTER]
    document = json.loads(ran([*ASKED, "--quantities", "new", "--most-seconds", str(SIX_ROUNDS), "--json"], 11).out)
    (figure,) = document["estimates"]
    assert (figure["verdict"], figure["ratio"], figure["low"], figure["high"]) == ("undecided", None, 0, None)
    golden(figure["text"])
    assert [limit["gateway"] for limit in figure["limits"]] == [FIRST, SECOND]
    for limit in figure["limits"]:
        assert limit["limited_by"] == "the tester"
        assert limit["searches"] == limit["of"] == document["rounds"]
        assert 11_000 < limit["at_least"] <= 12_000
    assert figure["nanoseconds"] is None
    assert document["baseline_costs"][0]["nanoseconds"] is None


@pytest.mark.parametrize("limited", [TESTER, {"alters": disturbed}])
def test_what_limits_both_gateways_never_lets_fail_above_pass(
    world: World, ran: Ran, limited: dict[str, Any], golden: Golden
) -> None:
    """The second one costs twice as much."""
    fast = {"establishes": 80_000.0, **limited}
    world.gateways = [fast, {"establishes": 40_000.0, **limited}, fast]
    out = ran([*ASKED, "--quantities", "new", "--most-seconds", str(SIX_ROUNDS), "--fail-above", "3%"], 11).out
    by = "tester" if limited is TESTER else "host"
    assert f"the bottleneck of {FIRST} was the {by} in" in out
    golden(out)


def test_a_gateway_as_fast_as_the_tester_leaves_one_end_open(world: World, golden: Golden) -> None:
    found = world.compare({}, {"establishes": 1e6, "real_ceiling": 30_000.0}, most_seconds=SIX_ROUNDS)
    (figure,) = found.result.estimates
    # No rate was found too high for it, so there is no end to how cheap it may be.
    assert figure.low == 0
    assert figure.high == pytest.approx(2 / 3, rel=0.05)
    assert (figure.verdict, figure.ratio) == ("costs less", None)
    golden(figure.text)
    assert (found.result.decided, found.exit_status) == (True, 0)


@pytest.mark.parametrize(
    ("baseline", "other", "status"),
    [
        # The candidate costs at least 2.9 times as much, whatever the baseline could do without the tester's limit.
        ({"establishes": 1e6, "real_ceiling": 60_000.0}, {}, ("costs more", 10)),
        # The candidate surely costs less, though nobody knows how much less.
        ({}, {"establishes": 1e6, "real_ceiling": 60_000.0}, ("costs less", 0)),
        # The candidate reaches half of the baseline's rate before the tester ends the search: it may cost as little.
        ({}, {"establishes": 1e6, "real_ceiling": 10_000.0}, ("undecided", 11)),
    ],
)
def test_with_one_end_open_the_known_end_decides_if_it_can(
    world: World, baseline: dict[str, Any], other: dict[str, Any], status: tuple[str, int]
) -> None:
    found = world.compare(baseline, other, most_seconds=SIX_ROUNDS, fail_above="3%")
    assert (found.result.estimates[0].verdict, found.exit_status) == status


@pytest.mark.parametrize(
    ("ceiling", "verdict", "status"),
    [
        # The candidate costs more than either copy.
        (60_000.0, "costs more", 10),
        # The tester ends the search of the copy below the candidate's rate.
        (15_000.0, "undecided", 11),
    ],
)
def test_a_control_that_says_nothing_is_no_perfect_one(world: World, ceiling: float, verdict: str, status: int) -> None:
    """A control whose interval was open at both ends was as expected, and any difference counted."""
    fast = {"establishes": 1e6, "real_ceiling": 60_000.0}
    world.gateways = [fast, {}, {**fast, "real_ceiling": ceiling}]
    found = world.compare(most_seconds=SIX_ROUNDS, fail_above="3%")
    (control,) = found.result.control
    assert (control.low, control.high) == (0, None)
    assert (found.result.estimates[0].verdict, found.exit_status) == (verdict, status)
    said = text(found.result)
    assert "does not show how far equal gateways differ (new connection, A/A control)" in said
    assert "as expected" not in said


def test_a_deep_queue_does_not_make_a_gateway_faster_than_one_that_is(world: World, golden: Golden) -> None:
    """200,000/s behind a queue of 4,096 frames against 240,000/s: seen as 39 % faster, N = 10,000."""
    slower = {"establishes": 200_000.0, "queue": 4096}
    asked: dict[str, Any] = {"most_seconds": 1500.0, "resolve": "4%"}
    with golden.raises(UsageError) as one:
        world.compare(slower, {"establishes": 240_000.0}, **asked, connections=10_000)
    enough = int(str(one.value).partition("choose at least ")[2].split()[0].replace(",", ""))
    assert 100_000 < enough < 1_000_000
    world.started.clear()
    found = world.compare(**asked, connections=enough)
    (figure,) = found.result.estimates
    low, high = known(figure)
    assert low <= 200 / 240 <= high
    assert (figure.verdict, found.result.decided) == ("costs less", True)


def test_with_fail_above_few_connections_are_no_reason_to_refuse(world: World) -> None:
    """In spite of queues that make 25 %, a gateway of a third of the rate surely costs more; one of 1.2 times may."""
    slower = {"establishes": 200_000.0, "queue": 4096}
    for other, status in ((60_000.0, 10), (240_000.0, 11)):
        world.started.clear()
        found = world.compare(
            slower, {"establishes": other}, connections=10_000, most_seconds=SIX_ROUNDS, fail_above="3%"
        )
        low, high = known(found.result.estimates[0])
        assert low <= 200_000 / other <= high
        assert found.exit_status == status


def test_doubts_of_each_gateway_are_those_that_measure_has(world: World, ran: Ran) -> None:
    world.receiver_seconds = 1e-6
    world.gateways[1] = {"establishes": 16_000.0, "forwards": 40_000.0, "disturbed": 0.3}
    document = json.loads(ran([*ASKED, "--json", "--most-seconds", "300"], 11).out)
    told = {
        one["label"]: {quantity: [doubt["word"] for doubt in found] for quantity, found in one["doubts"].items()}
        for one in document["gateways"]
    }
    assert list(told) == [FIRST, SECOND, f"{FIRST} (A/A control)"]
    # 1 us of 50 us a connection; 1 us of the 10 us of a frame, of which both directions have 50,000/s.
    assert told[FIRST] == {"new": ["tester on device cores"], "both": ["tester on device cores", "queues"]}
    assert "disturbed trials" in told[SECOND]["new"]
    (receivers,) = [one for one in document["gateways"][0]["doubts"]["new"] if one["word"] == "tester on device cores"]
    assert "1,000 ns of 5" in receivers["text"]


def test_figures_of_an_emulated_machine_are_compared_with_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setattr(SimulatedLab, "emulated", True)
    with golden.raises(UsageError):
        world.compare()
    assert world.started == []


def test_a_gateway_without_any_rate_ends_it_in_one_line(world: World, golden: Golden) -> None:
    with golden.raises(BrokenError):
        world.compare({}, {"passes": lambda _load: False})


def test_a_gateway_without_any_rate_in_some_rounds_never_lets_fail_above_pass(world: World, ran: Ran) -> None:
    """In every third round it loses all frames; in the others it is as fast as the baseline."""

    def start(lab: str) -> Gateway:
        spoiled = len(world.started) // 3 % 3 == 1
        world.gateways[1] = {"passes": lambda _load: False} if spoiled else {}
        return world.start(lab)

    world.simulation.start = start
    asked = [*ASKED, "--quantities", "new", "--most-seconds", "1000", "--fail-above", "10%", "--json"]
    document = json.loads(ran(asked, 11).out)
    (figure,) = document["estimates"]
    assert (figure["verdict"], figure["above"], figure["high"]) == ("undecided", None, None)
    assert 0.9 < figure["low"] < 1
    assert figure["blocks"] == document["rounds"] >= 8
    assert f"{SECOND} passed no rate in 3 of" in figure["text"]
    assert figure["text"] in ran(["report", document["results"]]).out
    rounds = Path(document["results"]) / "rounds.jsonl"
    lines = [json.loads(line) for line in rounds.read_text().splitlines()]
    rounds.write_text("".join(json.dumps({**line, "failed": {}}) + "\n" for line in lines))
    assert run(["report", document["results"]]) == 2


def test_a_search_that_runs_out_of_time_before_a_first_bound_is_void(
    world: World, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    def once(procedure: Procedure[Any], *_arguments: object) -> None:
        raise TimeUpError(f"{procedure.metric}: 60 s are over")

    monkeypatch.setattr(Procedure, "once", once)
    # Throughput needs the rate of phase 1, which is searched for first.
    with golden.raises(BrokenError):
        world.compare(quantities="both")
    assert len(world.started) == 3 * 3


def test_searches_that_are_void_in_turn_end_it_in_one_line(
    world: World, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    """No rate has three void searches in a row, and no round has both rates of a ratio."""
    real = by_rates.ByRates._search

    def search(method: by_rates.ByRates, rated: by_rates.RatedGateway, quantity: Quantity) -> str:
        number = len(rated.searched[quantity].rounds)
        if rated is not method._all[number % 2]:
            return real(method, rated, quantity)
        rated.searched[quantity].add_void()
        return "no rate passed"

    monkeypatch.setattr(by_rates.ByRates, "_search", search)
    with golden.raises(BrokenError):
        world.compare(most_seconds=86_400)
    assert len(world.started) == 9 * 3


def test_a_trial_that_an_earlier_loss_made_too_long_is_explained_by_that_loss(
    world: World, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    """The rate of phase 1 is half of the connection rate, which single lost frames sent down."""
    monkeypatch.setattr(by_rates, "SEARCH", {**by_rates.SEARCH, "most_seconds": 9})
    slow = {"passes": lambda load: load < 3_000}
    with golden.raises(BrokenError):
        world.compare(slow, slow, quantities="both")


@pytest.mark.parametrize("number", [2, 5])
def test_each_gateway_has_its_share_of_the_time(number: int) -> None:
    gateways = request.read_gateways(["tayga-nat64"] * number, {}, unlike=False)
    assert request.with_usual_options(CompareOptions(), gateways).most_seconds == 450 * number
    assert request.with_usual_options(CompareOptions(most_seconds=7.0), gateways).most_seconds == 7


def test_a_setting_of_the_whole_machine_may_differ_where_one_stands_at_a_time(
    world: World, ran: Ran, golden: Golden
) -> None:
    assert (
        f"Rates of {ONE_AT_A_TIME[1]}: new 2" in ran(["compare", *ONE_AT_A_TIME, *ASKED[3:], "--quantities", "new"]).out
    )
    assert (len(world.started), world.most_at_once) == (3 * 8, 1)
    with golden.raises(UsageError):
        natgauge.compare("nftables-nat44:hash_size=1024", "nftables-nat44:hash_size=65536", by="slices")


@pytest.mark.parametrize("names", [ONE_AT_A_TIME, NAMES])
@pytest.mark.parametrize("made", [3, 4, 7])
def test_a_lab_that_cannot_be_made_again_leaves_what_is_known(
    world: World, made: int, names: list[str], golden: Golden
) -> None:
    """Seen: an error in the middle of a further round threw away all rounds before it."""
    entered = itertools.count(1)

    def limited(_lab: str) -> None:
        number = next(entered)
        # Rounds differ, so that a search too many shows.
        world.gateways = [{"establishes": 20_000.0 - 1_000 * ((number - 1) // 3)}] * 3
        if number > made:
            raise HostError("hash_size: another natgauge on this machine relies on it")

    world.simulation.enters = limited
    found = world.compare(names=names)
    assert (found.result.decided, found.exit_status, found.result.rounds) == (False, 11, made // 3)
    golden(found.result.notes)
    (stored,) = find([found.folder]).comparisons
    assert stored.record.rounds == found.result.rounds
    assert world.started


@pytest.mark.parametrize("settings", ["connections=1000,connections=200000", "frame_size=64,frame-size=512"])
def test_a_setting_that_is_there_twice_is_refused(settings: str) -> None:
    with pytest.raises(UsageError, match=r"setting (connections|frame_size) is there twice; leave one out"):
        request.read_gateways(["nftables-nat44", f"nftables-nat44:{settings}"], {}, unlike=False)


@pytest.mark.parametrize(
    "settings",
    [
        "frame-size=512,connections=1000,udp-timeout=100",
        "lab=wire,initiator_gateway=10.0.0.1,empty-command=empty a,table-of=b",
        "lab=wire,initiator_gateway=2001:db8::1,empty_command=nft flush table ip a, ip b,sender_cores=1",
    ],
    ids=["written as options", "a comma before a word with a dash that is no setting", "colons and commas"],
)
def test_settings_of_a_gateway_may_have(settings: str, golden: Golden) -> None:
    (_, one) = request.read_gateways(["nftables-nat44", f"nftables-nat44:{settings}"], {}, unlike=False)
    cell = one.question.cell
    golden([cell.traffic.frame_size, cell.traffic.connections, cell.device.named(), cell.kind_options])
