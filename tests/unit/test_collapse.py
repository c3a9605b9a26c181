# SPDX-License-Identifier: Apache-2.0
"""A gateway that collapses: it is brought back before the next trial, or named; dead data paths; silent controls."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest
from tests import simulated_lab
from tests.simulated_lab import Measured
from tests.unit.counted import arrivals, change_counts, change_each, change_trial, make_port
from tests.unit.fake_engine import FakeEngine
from tests.unit.fake_measurer import Recorder
from tests.unit.simulated import LONG_STALL, Gateway
from tests.unit.test_measurer_trials import PLAN, measurer

from natgauge.errors import BrokenError, HostError, NatgaugeError, UnreachableError

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


@pytest.mark.parametrize(
    ("silent", "lossy", "verdict"),
    [({1, 2}, (), "COLLAPSED"), ({1}, (), "INVALID"), ({2}, {1}, "COLLAPSED"), ((), {1}, "INVALID")],
)
def test_a_gateway_that_crashed_and_took_the_link_down_is_no_disturbance_of_the_host(
    silent: Collection[int], lossy: Collection[int], verdict: str
) -> None:
    """Each such trial was INVALID by the link, and tried again.

    The link goes down in the first trial above `MOST`, which is number 1; number 2 are the single frames after it.
    """
    sent: list[int] = []

    def alters(_number: int, trial: Any) -> Any:
        if trial.plan.phase1_rate <= MOST or sent:
            return trial
        sent.append(1)
        truth.downs += 1
        received = 0 if 1 in silent else trial.phase1.received_frames - 10 * (1 in lossy)
        return change_trial(trial, phase1=change_counts(trial.phase1, received=received), stored=received)

    def probed(_trials: int) -> bool:
        if sent == [1]:
            sent.append(2)
            return 2 not in silent
        return True

    truth = Gateway(alters=alters, probed=probed)
    found = rate_of(truth, invalid_repeats=0)
    bad = next(trial for trial in found.trials if trial["verdict"] != "PASS")
    assert bad["link_losses"] == {"Initiator": 1}
    assert bad["verdict"] == verdict
    assert sent == [1, 2]


@pytest.mark.parametrize(
    ("ways", "verdict"),
    [(("refused",), "FAIL"), (("nothing", "refused"), "FAIL"), (("nothing", "nothing", "right"), "COLLAPSED")],
)
def test_a_server_that_refuses_all_queries_is_overloaded_and_no_collapse(ways: tuple[str, ...], verdict: str) -> None:
    """Single queries were refused as well, so it had collapsed, and was started again.

    What comes back from the first trial above `MOST` queries/s on; the last way goes on.
    """
    sent: list[int] = []

    def alters(_number: int, trial: Any) -> Any:
        if not sent and trial.plan.phase2.initiator_rate <= MOST:
            return trial
        way = ways[min(len(sent), len(ways) - 1)]
        sent.append(trial.phase2["initiator"].intended_frames)
        if way == "right":
            return trial
        refused = way == "refused"
        return change_each(
            trial,
            lambda counts: {
                "received": 0,
                "messages": [arrivals("response", 0, counts.offered_frames)] if refused else [],
            },
        )

    asked: dict[str, Any] = {"gateway": simulated_lab.DNS64, "connections": N, "invalid_repeats": 0}
    found = simulated_lab.measure("resolution-rate", Gateway(alters=alters), **asked)
    bad = next(trial for trial in found.trials if trial["verdict"] != "PASS")
    assert bad["verdict"] == verdict
    # Eight single queries follow a trial of which nothing came back.
    assert (sent[1] == 8) == ("nothing" in ways)


def dying(*shares: float, refused: bool = True) -> Gateway:
    """It forwards these shares of the frames of the periods of a trial, and takes the Initiator's link down once.

    `refused`: whether the Initiator's port refuses what is sent to a link that is down.
    """
    left = list(shares)

    def alters(_number: int, trial: Any) -> Any:
        # A trial of phase 1 alone precedes them.
        share = 1.0 if trial.plan.phase2 is None else left.pop(0)
        if share == 1:
            return trial
        truth.downs = 1
        came = {side: int(share * counts.received_frames) for side, counts in trial.phase2.items()}
        missing = trial.phase2["initiator"].offered_frames - came["initiator"] if refused else 0
        changed = {
            side: change_counts(
                counts, received=came[side], offered=counts.offered_frames - missing * (side == "initiator")
            )
            for side, counts in trial.phase2.items()
        }
        return change_trial(trial, phase2=changed, ports={"initiator": make_port(refused=missing)})

    truth = Gateway(alters=alters)
    return truth


def stability(truth: Gateway, periods: int) -> Measured:
    asked: dict[str, Any] = {
        "connection_rate": 1e5,
        "throughput_rate": 2000.0,
        "trial_seconds": 0.5,
        "hours": 0.5 * periods / 3600,
    }
    return simulated_lab.measure("stability", truth, connections=N, **asked)


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
    shares: tuple[float, ...], verdicts: list[str], *, refused: bool
) -> None:
    """Such periods were INVALID: a router that was dead for the last 7 of 24 h failed in 0 % of its periods."""
    found = stability(dying(*shares, refused=refused), len(shares))
    assert [trial["verdict"] for trial in found.trials] == verdicts
    for trial, row in zip(found.trials, found.repetitions[0]["series"], strict=True):
        assert (trial["limited_by"] == "device") == (trial["verdict"] in {"COLLAPSED", "FAIL"})
        if trial["verdict"] == "COLLAPSED":
            assert "no frame came back in the period" in trial["reason"]
            # What a port refused because the gateway took its link down, the gateway lost.
            assert (row["lost_frames"], row["lost_percent"]) == (1000, 100)
            assert not trial["excused_frames"]


def test_a_gateway_that_dies_for_good_fails_in_the_rest_of_its_stability() -> None:
    found = stability(dying(1, 1, 0.4, *[0] * 7), 10)
    assert found.median == pytest.approx(700 / 9)
    assert found.figure("invalid_periods") == 1
    assert found.figure("worst_shortfall_percent") == 100
    assert found.document["trials"]["COLLAPSED"] == 7
    assert "collapsed" in found.words()


def gone(times: int, alters: Callable[[int, Any], Any] | None = None) -> Gateway:
    """A gateway that cannot be reached after three trials, so many times in a row."""
    left = [times]

    def becomes(gateway: Gateway, _plan: Any) -> None:
        if len(gateway.plans) == 3 and left[0]:
            left[0] -= 1
            raise UnreachableError("natgauge-engine: initiator.interface: ng0i: is down or has no carrier")

    return Gateway(becomes=becomes, alters=alters)


def collapsed(found: Measured) -> list[str]:
    return [doubt["text"] for doubt in found.document["doubts"] if doubt["word"] == "collapsed"]


def test_a_gateway_that_comes_back_for_a_moment_only_collapsed_and_the_trial_did_not_begin() -> None:
    """No trial collapsed that had begun."""
    found = rate_of(gone(2))
    unbegun = found.trials[3]
    assert (unbegun["verdict"], unbegun["limited_by"], unbegun["result"]) == ("COLLAPSED", "device", None)
    assert "can be reached no more (natgauge-engine: initiator.interface" in unbegun["reason"]
    assert collapsed(found) == ["1 of 4 trials could not begin, because the device forwarded nothing any more"]


@pytest.mark.parametrize("verdict", ["PASS", "INVALID"])
def test_a_gateway_that_was_gone_between_two_trials_is_a_doubt_although_no_trial_collapsed(verdict: str) -> None:
    """It crashed and was restarted, and only a remark in the record said so."""

    def alters(number: int, trial: Any) -> Any:
        if number != 3 or verdict == "PASS":
            return trial
        lossy = change_counts(trial.phase1, received=trial.phase1.received_frames - 1)
        return change_trial(trial, phase1=lossy, cpus=(LONG_STALL,))

    found = rate_of(gone(1, alters))
    assert found.trials[3]["verdict"] == verdict
    assert collapsed(found) == ["the device was gone 1 x between two trials, and came back"]
    assert collapsed(rate_of(gone(0, alters))) == []


# Of a gateway without controls no lab is simulated.

#: Pauses after which such a gateway is looked for again, in seconds.
RECHECKS = (1.0, 5.0, 20.0)


class Crashing(FakeEngine):
    """Before a gateway without controls, which forwards nothing in some requests, and is not reached in others.

    Attributes:
        silent: numbers of the requests, from 1, of which nothing comes back.
        away: numbers of those that reach no gateway.
    """

    def __init__(self, silent: Collection[int] = (), away: Collection[int] = ()) -> None:
        super().__init__()
        self.silent, self.away = silent, away

    def __call__(self, request: Any, *others: Any) -> Any:
        """Answer one request."""
        number = len(self.requests) + 1
        if number in self.away:
            self.requests.append(request)
            raise UnreachableError("natgauge-engine: initiator.interface: eth1: is down or has no carrier")
        self.dead = number in self.silent
        return super().__call__(request, *others)


def test_a_gateway_that_cannot_be_reached_any_more_is_waited_for() -> None:
    """The engine waits for a link and an answer to ARP before each trial, and its error ended the measurement."""
    slept: list[float] = []
    engine, recorder = Crashing(away={2, 3, 4}), Recorder()
    subject = measurer(engine, sleep=slept.append, recorder=recorder)
    assert subject.measure(PLAN).verdict == "PASS"
    back = subject.measure(PLAN)
    assert back.verdict == "PASS"
    assert "was not restarted, but answers and forwards again" in str(back.remarks)
    assert slept == [0.0, *RECHECKS[:2]]
    assert [one["verdict"] for one in recorder.trials] == ["PASS", "PASS"]
    assert back.gone_before
    assert not subject.measure(PLAN).gone_before


def test_a_dead_gateway_behind_a_switch_is_checked_before_it_gets_another_trial() -> None:
    slept: list[float] = []
    engine = Crashing(silent={2, 3, 4})
    subject = measurer(engine, sleep=slept.append)
    assert [subject.measure(PLAN).verdict for _ in range(3)] == ["PASS", "COLLAPSED", "PASS"]
    assert slept == [0.0, RECHECKS[0]]


def test_a_gateway_without_controls_that_stays_away_is_told_by_what_the_last_check_found() -> None:
    slept: list[float] = []
    engine = Crashing(away=range(2, 99))
    subject = measurer(engine, sleep=slept.append)
    gone = [subject.measure(PLAN) for _ in range(2)][-1]
    assert gone.verdict == "COLLAPSED"
    assert "did not come back (natgauge-engine: initiator.interface: eth1" in gone.reason
    assert slept == [0.0, *RECHECKS]
