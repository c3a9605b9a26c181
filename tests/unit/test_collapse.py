# SPDX-License-Identifier: Apache-2.0
"""A gateway that collapses: it is brought back before the next trial, or named; dead data paths; silent controls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests import simulated_lab
from tests.simulated_lab import Measured
from tests.unit.counted import arrivals, change_counts, change_each, make_counts, make_outcome
from tests.unit.fake_engine import FakeEngine
from tests.unit.simulated import Gateway
from tests.unit.test_measurer import SETTINGS, Isolated, Recorder, no_time
from tests.unit.test_measurer_trials import PLAN, measurer

from natgauge.agreement.generated import Progress, TrialRequest, TrialResult
from natgauge.doubts import find
from natgauge.errors import BrokenError, HostError, NatgaugeError, UnreachableError
from natgauge.procedures import stability
from natgauge.procedures.kit.result.results import Attempt, Measurement, make_result, verdict_counts
from natgauge.records.parameters import Parameters
from natgauge.trial.lab_measurer import RECHECK_SECONDS

N = 1000
#: Connections/s above which the gateway collapses.
MOST = 100_000.0


def rate_of(truth: Gateway, **others: Any) -> Measured:
    return simulated_lab.measure("connection-rate", truth, **{"connections": N, **others})


def one_trial(**truth: Any) -> tuple[Measured, Any]:
    """A measurement of many trials; the second is the first one whose verdict is not PASS."""
    found = rate_of(Gateway(**truth), invalid_repeats=0)
    return found, next(trial for trial in found.trials if trial["verdict"] != "PASS")


def gone_for_good(command: str, trials: int) -> str:
    return "start failed" if command == "start" and trials else ""


def test_after_a_collapse_the_gateway_is_started_anew_for_the_next_trial() -> None:
    found = rate_of(Gateway(collapses_above=MOST))
    assert found.document["trials"]["COLLAPSED"] == 3
    assert found.notes("ended because the device collapsed 3 times")
    assert {"collapsed", "ended early"} <= found.words()
    assert 0 < found.median <= MOST
    followers = [
        after["remarks"]
        for before, after in zip(found.trials, found.trials[1:], strict=False)
        if before["verdict"] == "COLLAPSED"
    ]
    assert len(followers) >= 2
    assert all("the device was restarted before this trial" in str(remarks) for remarks in followers)
    assert found.commands.count("start") >= 1 + len(followers)


def test_a_gateway_that_does_not_come_back_bounds_the_answer_where_it_collapsed_and_nowhere_else() -> None:
    """Trials that were never begun counted as loads too high, and added zeros as further repetitions."""
    found = rate_of(Gateway(collapses_above=MOST, says=gone_for_good), repeat=3)
    begun = [trial for trial in found.trials if trial["request"] is not None]
    (collapsed,) = [trial["plan"]["phase1_rate"] for trial in begun if trial["verdict"] == "COLLAPSED"]
    passed = max(trial["plan"]["phase1_rate"] for trial in begun if trial["verdict"] == "PASS")
    assert [(one["value"], one["upper"]) for one in found.repetitions] == [(passed, collapsed)]
    unbegun = [trial for trial in found.trials if trial["request"] is None]
    assert unbegun
    for trial in unbegun:
        assert (trial["verdict"], trial["limited_by"], trial["result"]) == ("COLLAPSED", "device", None)
        assert "did not come back" in trial["reason"]
        assert "start failed" in trial["reason"]
    assert found.notes("repetitions after 1 of 3")
    (doubt,) = [doubt["text"] for doubt in found.document["doubts"] if doubt["word"] == "collapsed"]
    assert f"collapsed in 1 of {len(begun)} trials; 1 more could not begin" in doubt


def test_a_gateway_that_is_gone_before_anything_passed_is_an_error() -> None:
    with pytest.raises(BrokenError, match=r"had collapsed and did not come back \(.*start failed\)"):
        rate_of(Gateway(collapses_above=0.0, says=gone_for_good))


def dead_path(phase: int) -> Callable[[int, Any], Any]:
    """No frame of a phase comes back of trials above `MOST`, though the controls answer."""

    def alters(_number: int, trial: Any) -> Any:
        if trial.plan.phase1_rate <= MOST and phase == 1:
            return trial
        phase1 = change_counts(trial.phase1, received=0) if phase == 1 else trial.phase1
        return change_each(trial, lambda _one: {"received": 0}, phase1=phase1, stored=phase1.received_frames)

    return alters


@pytest.mark.parametrize(("alive", "verdict"), [(False, "COLLAPSED"), (True, "FAIL")])
def test_a_trial_of_which_nothing_came_back_is_followed_by_single_frames(verdict: str, *, alive: bool) -> None:
    """Seen: a gateway whose controls answer, but which forwards nothing any more, only failed."""
    asked = []

    def probed(trials: int) -> bool:
        asked.append(trials)
        return alive or not trials or len(asked) > 2

    _, bad = one_trial(alters=dead_path(1), probed=probed)
    assert bad["verdict"] == verdict
    assert ("forwards nothing" in bad["reason"]) == (not alive)
    assert len(asked) > 1


@pytest.mark.parametrize("names_traffic", [True, False])
def test_a_gateway_that_forwards_nothing_is_told_with_what_its_rules_name_of_the_traffic(
    tmp_path: Path, *, names_traffic: bool
) -> None:
    """A list of bogons dropped the test traffic, and the error was "a rule or a route of the device"."""
    recipe = tmp_path / "simulated.toml"
    network = "198.18.0.0/15" if names_traffic else "203.0.113.0/24"
    own = simulated_lab.NAT44.read_text().replace("[verbs]", f'[environment]\nBOGONS = "{network}"\n\n[verbs]')
    recipe.write_text(own)
    with pytest.raises(BrokenError, match="does not forward") as found:
        simulated_lab.measure("connection-rate", Gateway(probed=lambda _trials: False), gateway=recipe, connections=N)
    assert ("rules name 198.18.0.0/15, " in str(found.value)) == names_traffic


@pytest.mark.parametrize("alive", [True, False])
def test_a_phase_2_of_which_nothing_came_back_is_followed_by_single_frames(*, alive: bool) -> None:
    truth = Gateway(alters=dead_path(2), probed=lambda trials: alive or not trials)
    asked: dict[str, Any] = {"connections": N, "connection_rate": 1e4}
    if alive:
        assert simulated_lab.measure("frame-loss", truth, **asked).document["trials"]["FAIL"]
    else:
        with pytest.raises(BrokenError, match="collapsed"):
            simulated_lab.measure("frame-loss", truth, **asked)


def test_a_gateway_that_took_the_carrier_with_it_collapsed_and_comes_back() -> None:
    down: list[int] = []

    def probed(trials: int) -> bool:
        if trials and not down:
            down.append(trials)
            raise UnreachableError("natgauge-engine: initiator.interface: ng0i: is down or has no carrier")
        return True

    found, bad = one_trial(alters=dead_path(1), probed=probed)
    assert bad["verdict"] == "COLLAPSED"
    after = found.trials[found.trials.index(bad) + 1]
    assert "was restarted" in str(after["remarks"])


def silent(from_trial: int) -> Callable[[str, int], str]:
    """The controls of a gateway fail from a trial on, but it can be started."""

    def says(command: str, trials: int) -> str:
        return "ssh: connection lost" if trials >= from_trial and command in {"empty", "count", "check"} else ""

    return says


def test_controls_that_are_silent_are_no_collapse_while_single_frames_come_back() -> None:
    """Seen: "forwards nothing any more", though not a single frame had been sent."""
    truth = Gateway(says=silent(3), probed=lambda _trials: True)
    with pytest.raises(BrokenError, match="the device's controls failed in 5 trials in a row, although it forwards"):
        rate_of(truth, invalid_repeats=9)
    assert len(truth.plans) == 3


def test_silent_controls_do_not_hide_a_dead_path() -> None:
    found = rate_of(Gateway(says=silent(3), probed=lambda trials: trials < 3))
    first = next(trial for trial in found.trials if trial["verdict"] != "PASS")
    assert first["verdict"] == "COLLAPSED"
    assert "no longer answers its controls" in first["reason"]
    assert "forwards nothing" in first["reason"]
    assert first["command_failures"] == 4


@pytest.mark.parametrize(("alive", "verdict"), [(False, "COLLAPSED"), (True, "FAIL")])
def test_a_table_that_cannot_be_emptied_after_a_trial_does_not_hide_whether_the_path_is_dead(
    verdict: str, *, alive: bool
) -> None:
    sticks: list[int] = []

    def becomes(gateway: Gateway, plan: Any) -> None:
        if plan.phase1_rate > MOST and not sticks:
            sticks.append(len(gateway.plans))
            gateway.sticky = 5

    def probed(trials: int) -> bool:
        return alive or not sticks or trials > sticks[0] + 1

    _, bad = one_trial(alters=dead_path(1), becomes=becomes, probed=probed)
    assert bad["verdict"] == verdict
    assert ("although it answers its controls" in bad["reason"]) == (not alive)


@pytest.mark.parametrize("error", [BrokenError("engine: SIGKILL"), HostError("engine: no memory")])
def test_an_engine_that_breaks_before_single_frames_were_sent_says_nothing_of_the_gateway(error: NatgaugeError) -> None:
    def probed(trials: int) -> bool:
        if trials:
            raise error
        return True

    _, bad = one_trial(alters=dead_path(1), probed=probed)
    assert (bad["verdict"], bad["limited_by"]) == ("INVALID", "host")
    assert str(error) in bad["reason"]
    assert "forwards nothing" not in bad["reason"]


def test_a_command_that_fails_now_and_then_is_tried_again_and_counted() -> None:
    """Seen: "4 commands failed and were tried again", of one command whose fourth try was the last one."""
    failures = iter(["no answer"] * 2)

    def says(command: str, trials: int) -> str:
        return next(failures, "") if command == "count" and trials == 3 else ""

    found = rate_of(Gateway(says=says))
    (failed,) = [trial for trial in found.trials if trial["command_failures"]]
    assert failed["command_failures"] == 2
    assert "2 tries of commands to the device failed, the last one with: " in str(failed["remarks"])
    assert found.slept[:2] == [0.1, 0.5]


def test_a_trial_of_which_something_came_back_is_followed_by_nothing() -> None:
    asked = []

    def probed(trials: int) -> bool:
        asked.append(trials)
        return True

    found = rate_of(Gateway(establishes=MOST, probed=probed))
    assert found.document["trials"]["FAIL"]
    assert asked == [0]


class Crashing(FakeEngine):
    """Before a gateway without controls, which forwards nothing in some requests, and is not reached in others.

    Attributes:
        silent: numbers of the requests, from 1, of which nothing comes back; each takes the Initiator's link down.
        lossy: numbers of those that lose a few frames, with the link.
        away: numbers of those that reach no gateway.
        downs: how often the link went down.
    """

    def __init__(self, silent: Iterable[int] = (), away: Iterable[int] = (), lossy: Iterable[int] = ()) -> None:
        super().__init__()
        self.silent, self.away, self.lossy = frozenset(silent), frozenset(away), frozenset(lossy)
        self.downs = 0

    def __call__(self, request: TrialRequest, *others: Any) -> TrialResult:
        """Answer one request."""
        number = len(self.requests) + 1
        if number in self.away:
            self.requests.append(request)
            raise UnreachableError("natgauge-engine: initiator.interface: eth1: is down or has no carrier")
        self.dead, self.lost = number in self.silent, 10 * (number in self.lossy)
        self.downs += self.dead or bool(self.lost)
        return super().__call__(request, *others)


@pytest.mark.parametrize(
    ("silent", "lossy", "verdict"),
    [({1, 2}, (), "COLLAPSED"), ({1}, (), "INVALID"), ({2}, {1}, "COLLAPSED"), ((), {1}, "INVALID")],
)
def test_a_gateway_that_crashed_and_took_the_link_down_is_no_disturbance_of_the_host(
    silent: Iterable[int], lossy: Iterable[int], verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each such trial was INVALID by the link, and tried again."""
    engine = Crashing(silent, lossy=lossy)
    monkeypatch.setattr(
        "natgauge.trial.trial_run.carrier_losses", lambda _netns, port: engine.downs if port == "ng0i" else 0
    )
    trial = measurer(engine, place=Isolated()).measure(PLAN)
    assert trial.readings.link_losses == {"Initiator": 1}
    assert trial.verdict == verdict
    assert len(engine.requests) == 2


class Refusing(FakeEngine):
    """Before a server that answers a request in one way: with nothing, with refusals of all queries, or right.

    Attributes:
        ways: what comes back of each request, in order; the last one goes on.
    """

    def __init__(self, *ways: str) -> None:
        super().__init__()
        self.ways = ways

    def __call__(self, request: TrialRequest, *others: Any) -> TrialResult:
        """Answer one request."""
        way = self.ways[min(len(self.requests), len(self.ways) - 1)]
        self.dead = way != "right"
        result = super().__call__(request, *others)
        if way != "refused" or result.phase2 is None:
            return result
        sides = {"initiator": result.phase2.initiator, "responder": result.phase2.responder}
        refused = {
            side: change_counts(counts, messages=[arrivals("response", 0, counts.offered_frames)])
            for side, counts in sides.items()
            if counts is not None
        }
        return result.model_copy(update={"phase2": result.phase2.model_copy(update=refused)})


@pytest.mark.parametrize(
    ("ways", "verdict"),
    [(("refused",), "FAIL"), (("nothing", "refused"), "FAIL"), (("nothing",), "COLLAPSED")],
)
def test_a_server_that_refuses_all_queries_is_overloaded_and_no_collapse(ways: tuple[str, ...], verdict: str) -> None:
    """Single queries were refused as well, so it had collapsed, and was started again."""
    engine = Refusing(*ways)
    settings = replace(SETTINGS, translated=False)
    trial = measurer(engine, place=Isolated(), settings=settings).measure(replace(PLAN, stateless=True))
    assert trial.verdict == verdict
    assert len(engine.requests) == 1 + ("nothing" in ways)


class Dying(FakeEngine):
    """Before a gateway that forwards a share of the frames of each period, and takes the Initiator's link down once.

    Attributes:
        shares: of the periods, in order.
        refused: whether the Initiator's port refuses what is sent to a link that is down.
        downs: how often the link went down.
    """

    def __init__(self, shares: Iterable[float], *, refused: bool = True) -> None:
        super().__init__()
        self.shares, self.refused, self.downs = iter(shares), refused, 0

    def __call__(
        self, request: TrialRequest, progress: Callable[[Progress], None] | None = None, *_others: object
    ) -> TrialResult:
        """Answer one request."""

        def tell(line: Progress) -> None:
            if line.period is not None:
                line = line.model_copy(update={"period": self._damaged(line.period)})
            if progress is not None:
                progress(line)

        return self._damaged(super().__call__(request, tell))

    def _damaged(self, result: TrialResult) -> TrialResult:
        share = next(self.shares, 1.0)
        if share == 1 or result.phase2 is None:
            return result
        self.downs = 1
        sides = {"initiator": result.phase2.initiator, "responder": result.phase2.responder}
        streams = {side: counts for side, counts in sides.items() if counts is not None}
        came = {side: int(share * counts.received_frames) for side, counts in streams.items()}
        missing = streams["initiator"].offered_frames - came["initiator"] if self.refused else 0
        left = {side: counts.offered_frames - missing * (side == "initiator") for side, counts in streams.items()}
        changed = {
            side: change_counts(counts, received=came[side], offered=left[side]) for side, counts in streams.items()
        }
        port = result.ports.initiator.model_copy(update={"refused": missing})
        ports = result.ports.model_copy(update={"initiator": port})
        phase2 = result.phase2.model_copy(update=changed)
        return result.model_copy(update={"phase2": phase2, "ports": ports})


def _takes_link(engine: Dying, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "natgauge.trial.trial_run.carrier_losses", lambda _netns, port: engine.downs if port == "ng0i" else 0
    )


@pytest.mark.parametrize(
    ("shares", "refused", "verdicts"),
    [
        ((1, 0.4, 0, 0, 1), True, ["PASS", "INVALID", "COLLAPSED", "COLLAPSED", "PASS"]),
        ((1, 0, 0.4, 1, 1), True, ["PASS", "COLLAPSED", "INVALID", "PASS", "PASS"]),
        # Once it forwards again, a later loss is none of the link.
        ((1, 0.4, 1, 0, 1), False, ["PASS", "INVALID", "PASS", "FAIL", "PASS"]),
    ],
)
def test_a_gateway_that_takes_the_link_down_collapsed_in_the_periods_from_which_nothing_came(
    shares: tuple[float, ...], verdicts: list[str], monkeypatch: pytest.MonkeyPatch, *, refused: bool
) -> None:
    """Such periods were INVALID: a router that was dead for the last 7 of 24 h failed in 0 % of its periods."""
    engine = Dying(shares, refused=refused)
    _takes_link(engine, monkeypatch)
    plan = replace(PLAN, phase2=PLAN.phase2 and replace(PLAN.phase2, periods=len(shares)))
    periods = measurer(engine, place=Isolated()).periods(plan, lambda _period: True)
    outcomes = [period.outcome for period in periods]
    assert [outcome.verdict for outcome in outcomes] == verdicts
    for outcome in outcomes:
        assert (outcome.limited_by == "device") == (outcome.verdict in {"COLLAPSED", "FAIL"})
        if outcome.verdict == "COLLAPSED":
            assert "no frame came back in the period" in outcome.reason
            # What a port refused because the gateway took its link down, the gateway lost.
            assert all(counts.lost == counts.intended_frames for counts in outcome.phase2.values())
            assert not outcome.excused_frames


def test_a_gateway_that_dies_for_good_fails_in_the_rest_of_its_stability(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Dying((1, 1, 0.4, *[0] * 7))
    _takes_link(engine, monkeypatch)
    settings = stability.StabilitySettings(
        connections=1000, connection_rate=1e5, throughput_rate=2000.0, trial_seconds=0.5, hours=5 / 3600,
        placement="isolated",
    )  # fmt: skip
    subject = measurer(engine, place=Isolated())
    result = stability.PROCEDURE.measure(subject, settings)
    assert result.summary.median == pytest.approx(700 / 9)
    assert result.figures["invalid_periods"].median == 1
    assert result.figures["worst_shortfall_percent"].median == 100
    assert subject.collapsed


def test_a_gateway_that_cannot_be_reached_any_more_is_waited_for() -> None:
    """The engine waits for a link and an answer to ARP before each trial, and its error ended the measurement."""
    slept: list[float] = []
    engine, recorder = Crashing(away={2, 3, 4}), Recorder()
    subject = measurer(engine, sleep=slept.append, recorder=recorder)
    assert subject.measure(PLAN).verdict == "PASS"
    back = subject.measure(PLAN)
    assert back.verdict == "PASS"
    assert "was not restarted, but answers and forwards again" in str(back.remarks)
    assert slept == [0.0, *RECHECK_SECONDS[:2]]
    assert [one["verdict"] for one in recorder.trials] == ["PASS", "PASS"]
    assert back.gone_before
    assert not subject.measure(PLAN).gone_before


def test_a_gateway_that_comes_back_for_a_moment_only_collapsed() -> None:
    engine = Crashing(away={2, 4})
    subject = measurer(engine, sleep=no_time)
    assert subject.measure(PLAN).verdict == "PASS"
    gone = subject.measure(PLAN)
    assert (gone.verdict, gone.limited_by, gone.result) == ("COLLAPSED", "device", None)
    assert "can be reached no more (natgauge-engine: initiator.interface" in gone.reason
    assert subject.collapsed


def test_a_dead_gateway_behind_a_switch_is_checked_before_it_gets_another_trial() -> None:
    slept: list[float] = []
    engine = Crashing(silent={2, 3, 4})
    subject = measurer(engine, sleep=slept.append)
    assert [subject.measure(PLAN).verdict for _ in range(3)] == ["PASS", "COLLAPSED", "PASS"]
    assert slept == [0.0, RECHECK_SECONDS[0]]


def test_a_gateway_without_controls_that_stays_away_is_told_by_what_the_last_check_found() -> None:
    slept: list[float] = []
    engine = Crashing(away=range(2, 99))
    subject = measurer(engine, sleep=slept.append)
    gone = [subject.measure(PLAN) for _ in range(2)][-1]
    assert gone.verdict == "COLLAPSED"
    assert "did not come back (natgauge-engine: initiator.interface: eth1" in gone.reason
    assert slept == [0.0, *RECHECK_SECONDS]


def test_trials_that_could_not_begin_are_a_doubt_without_a_trial_that_collapsed() -> None:
    """The trial before them lost frames with the link, so it is INVALID."""
    outcomes = [make_outcome("INVALID", "the link went down"), make_outcome("COLLAPSED", "no frame could be sent")]
    attempts = tuple(Attempt(1000.0, short=False, outcome=outcome) for outcome in outcomes)
    repetition = Measurement(900.0, 1000.0, "device", verdict_counts(attempts), attempts=attempts)
    measured = make_result("connection-rate", "connections/s", {}, [repetition])
    (doubt,) = [each for each in find(measured, Parameters()) if each.word == "collapsed"]
    assert doubt.text == "1 of 2 trials could not begin, because the device forwarded nothing any more"


@pytest.mark.parametrize("verdict", ["PASS", "INVALID"])
def test_a_gateway_that_was_gone_between_two_trials_is_a_doubt_although_no_trial_collapsed(verdict: str) -> None:
    """It crashed and was restarted, and only a remark in the record said so."""

    def doubts(*, gone: bool) -> list[str]:
        sent = make_counts(1000, 1000, 1000)
        outcomes = [make_outcome(phase1=sent), make_outcome(verdict, phase1=sent, gone_before=gone)]
        attempts = tuple(Attempt(900.0, short=False, outcome=outcome) for outcome in outcomes)
        repetition = Measurement(900.0, 1000.0, "device", verdict_counts(attempts), attempts=attempts)
        measured = make_result("connection-rate", "connections/s", {}, [repetition])
        return [each.text for each in find(measured, Parameters()) if each.word == "collapsed"]

    assert doubts(gone=True) == ["the device was gone 1 x between two trials, and came back"]
    assert doubts(gone=False) == []
