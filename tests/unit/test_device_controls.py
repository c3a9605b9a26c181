# SPDX-License-Identifier: Apache-2.0
"""Commands to a device: what they print is bounded, one that fails is asked again, and one starts a device anew."""

from __future__ import annotations

import random
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.plans import OneTrial, PlanOfTrial
from tests.unit.fake_engine import PORT, FakeEngine
from tests.unit.fake_measurer import FakeLab, FakeTable, Isolated, Recorder, measurer, with_phase2
from tests.unit.golden import Golden
from tests.unit.simulated import Gateway as Simulated
from tests.unit.simulated import reading
from tests.unit.test_external import Clock, external
from tests.unit.test_trials import RESULT, STREAM

from natgauge import bounded_output
from natgauge.agreement.generated import Progress, TrialResult
from natgauge.bounded_output import MOST_OCTETS, BoundedOutput
from natgauge.device_work import ObjectCaches
from natgauge.errors import BrokenError, HostError, NotEmptyError, UsageError
from natgauge.gateways.gateway import Gateway
from natgauge.gateways.recipe import load
from natgauge.gateways.recipe_model import Process
from natgauge.inputs.question import DeviceOptions
from natgauge.labs.common import port_options
from natgauge.labs.common.port_options import BootCommand, PortOptions
from natgauge.labs.common.shell import run_shell
from natgauge.labs.contract import CommandResult, LabCounters
from natgauge.labs.ssh.remote import LOST, Remote, RemoteDevice, RemoteMachine, SshHost
from natgauge.measurements.record import make
from natgauge.procedures import connection_rate
from natgauge.procedures.kit.results import MeasurementResult
from natgauge.records.parameters import Parameters
from natgauge.trial import forwarding
from natgauge.trial.controls import MOST_SECONDS, PAUSES, CommandRetries, SilentControlsError
from natgauge.trial.external import ExternalControls
from natgauge.trial.lab_measurer import MOST_SILENT, RECHECK_SECONDS, LabMeasurer
from natgauge.trial.trial_run import Own, RestartInTrial, signs_of
from natgauge.words import Verdict

PLAN = PlanOfTrial(1000, 500.0)
#: What the engine that stands in for one forwards, frames/s.
TRUTH = 150_000.0


# Retries of commands


def failing(times: int, error: Exception) -> Callable[[], str]:
    left = [error] * times

    def command() -> str:
        if left:
            raise left.pop()
        return "answer"

    return command


@pytest.mark.parametrize("times", range(len(PAUSES) + 1))
def test_a_command_that_fails_is_tried_again_after_a_pause(times: int) -> None:
    waited: list[float] = []
    asking = CommandRetries(waited.append)
    assert asking(failing(times, BrokenError("lost"))) == "answer"
    assert waited == [*PAUSES[:times]]
    assert asking.failures == ["lost"] * times


@pytest.mark.parametrize("error", [UsageError("not ours"), NotEmptyError("3 connections are left")])
def test_what_the_device_answers_is_not_asked_again(error: Exception) -> None:
    asking = CommandRetries(lambda _: None)
    with pytest.raises(type(error)):
        asking(failing(1, error))
    assert asking.failures == []


def test_a_command_that_fails_however_often_says_why_and_one_that_hangs_is_not_asked_for_minutes() -> None:
    with pytest.raises(SilentControlsError, match=r"^lost$"):
        CommandRetries(lambda _: None)(failing(len(PAUSES) + 1, BrokenError("lost")))
    now = [0.0]

    def hangs() -> None:
        now[0] += MOST_SECONDS + 1
        raise BrokenError("did not end within 31 s")

    with pytest.raises(SilentControlsError):
        CommandRetries(lambda _: None, lambda: now[0])(hangs)
    assert now[0] == MOST_SECONDS + 1


# Over ssh


@dataclass
class Connection:
    """An ssh connection that is lost during the commands with these numbers, from 1."""

    lost: frozenset[int]
    scripts: list[str] = field(default_factory=list)

    def run(self, script: str, _seconds: float) -> CommandResult:
        self.scripts.append(script)
        if len(self.scripts) in self.lost:
            return CommandResult(LOST, "", "client_loop: send disconnect: Broken pipe", 0.1)
        return CommandResult(0, "natgauge-answer 0 1 1\n\nnatgauge-output\n1000\n", "", 0.1)

    def close(self) -> None: ...


def over_ssh(connection: Any, folder: Path) -> Gateway:
    remote = Remote(SshHost("root@router"), "tester:lab:1", folder / "control")
    remote._connection = connection
    device = RemoteDevice("gateway", "ns", "a", "b", {}, RemoteMachine(remote, lambda _undo, _said: None))
    return Gateway(load("nftables-nat44"), device, DeviceOptions())


def test_a_count_whose_connection_is_lost_is_asked_again_over_a_new_one(tmp_path: Path) -> None:
    """docs/labs.md says so; the gateway stayed broken, and the trial was a collapse."""
    connection = Connection(frozenset({1}))
    gateway = over_ssh(connection, tmp_path)
    asking = CommandRetries(lambda _: None)
    assert asking(gateway.count) == 1000
    assert len(asking.failures) == 1
    # What the lost command may still do over there is ended before it is run again.
    counts = [number for number, script in enumerate(connection.scripts) if "nf_conntrack_count" in script]
    kills = [number for number, script in enumerate(connection.scripts) if "run.1" in script and "KILL" in script]
    assert counts[0] < kills[0] < counts[1]


# Trials


@dataclass
class Forgetful(FakeTable):
    """A device of which commands fail by chance, or those of some trials however often they are asked.

    Attributes:
        chance: that a command fails.
        deaf: numbers of engine runs after which nothing is answered.
        restarts: how often it was started anew.
    """

    engine: FakeEngine
    chance: float = 0.0
    deaf: frozenset[int] = frozenset()
    restarts: int = 0
    failed: int = 0

    def __post_init__(self) -> None:
        super().__init__(self.engine)
        self.random = random.Random(20261123)  # noqa: S311 - a simulation, nothing secret
        self.seen = 0

    def _answers(self) -> None:
        if len(self.engine.requests) in self.deaf or self.random.random() < self.chance:
            self.failed += 1
            raise BrokenError("count command: failed with exit status 255")

    def empty(self) -> None:
        self._answers()
        self.seen = len(self.engine.requests)

    def count(self) -> int:
        self._answers()
        return self.engine.requests[-1].connections if len(self.engine.requests) > self.seen else 0

    def found_changed(self) -> str:
        return ""

    def confirm_ready(self) -> None:
        self._answers()

    def faults(self) -> Mapping[str, int]:
        self._answers()
        return {}

    def restart(self) -> None:
        self.restarts += 1


def rate_of(meter: LabMeasurer) -> MeasurementResult:
    settings = connection_rate.ConnectionRateSettings(
        connections=1000, placement="isolated", repeat=1, frame_timeout_seconds=0.01
    )
    return connection_rate.PROCEDURE.measure(meter, settings)


@cache
def undisturbed() -> MeasurementResult:
    """The rate of a device whose commands never fail."""
    return rate_of(meter_of()[0])


def meter_of(**others: Any) -> tuple[LabMeasurer, Forgetful]:
    engine = FakeEngine(capacity=TRUTH)
    device = Forgetful(engine, **others)
    meter = measurer(engine, device=device)
    meter.place = Isolated()
    return meter, device


@pytest.mark.parametrize("chance", [0.05, 0.1, 0.25])
def test_controls_that_fail_by_chance_change_no_answer_and_are_counted(chance: float, golden: Golden) -> None:
    meter, device = meter_of(chance=chance)
    wanted, found = undisturbed(), rate_of(meter)
    assert (found.summary.median, found.error, found.limited_by) == (wanted.summary.median, wanted.error, "device")
    assert found.trials[Verdict.COLLAPSED] == device.restarts == 0
    assert device.failed > 0
    outcomes = [attempt.outcome for one in found.measurements for attempt in one.attempts]
    assert sum(outcome.command_failures for outcome in outcomes) == device.failed
    golden(found.notes)


@pytest.mark.parametrize("trial", [1, 2, 4, 9])
def test_a_trial_after_which_nothing_is_answered_is_invalid_and_repeated(trial: int, golden: Golden) -> None:
    """Each was a load too high: 49,609 or 99,219 connections/s for 1,000,000, limited by the device."""
    # The single frames that follow are an engine run, too; after them it answers again.
    meter, device = meter_of(deaf=frozenset({trial}))
    found = rate_of(meter)
    assert found.summary.median == undisturbed().summary.median
    assert (found.trials[Verdict.INVALID], found.trials[Verdict.COLLAPSED], device.restarts) == (1, 0, 0)
    (invalid,) = (
        attempt.outcome
        for one in found.measurements
        for attempt in one.attempts
        if attempt.outcome.verdict is Verdict.INVALID
    )
    assert invalid.limited_by == "host"
    golden(invalid.reason)
    assert "collapsed" not in {doubt.word for doubt in make(found, Parameters()).doubts}


def test_controls_that_are_silent_for_good_end_the_measurement_with_the_reason(golden: Golden) -> None:
    meter, device = meter_of(deaf=frozenset(range(3, 1000)))
    with golden.raises(BrokenError):
        rate_of(meter)
    assert device.restarts == 0
    assert isinstance(meter.recorder, Recorder)
    assert [trial["verdict"] for trial in meter.recorder.trials][-MOST_SILENT:] == ["INVALID"] * MOST_SILENT


def test_a_device_that_is_silent_before_a_trial_and_forwards_nothing_is_an_error(golden: Golden) -> None:
    meter, device = meter_of(deaf=frozenset({1}))
    meter.measure(PLAN)
    device.engine.dead = True
    device.deaf = frozenset({2})
    with golden.raises(BrokenError):
        meter.measure(PLAN)


# A device that is not ours


def test_a_count_command_that_ends_once_with_status_255_costs_no_trial(tmp_path: Path) -> None:
    """Every later trial was a collapse that was never run: 50,000 connections/s for 1,000,000, or 0."""
    engine = FakeEngine(capacity=TRUTH)
    once = tmp_path / "once"
    engine.answered.clear()
    # The first count after the first trial fails: before it there is one, of the emptied table.
    script = (
        f"n=$(cat {once} 2>/dev/null || echo 0); echo $((n + 1)) > {once}; [ $n != 1 ] || exit 255; "
        f"cat {tmp_path}/held 2>/dev/null || echo 0"
    )
    device = ExternalControls(f"echo 0 > {tmp_path}/held", script)

    def held(request: Any, *others: Any) -> Any:
        answer = engine(request, *others)
        (tmp_path / "held").write_text(str(request.connections))
        return answer

    meter = external(engine, None, Clock(), device=device)
    meter.runner, meter.place = held, Isolated()
    outcomes = [meter.measure(PLAN) for _ in range(3)]
    assert [outcome.verdict for outcome in outcomes] == [Verdict.PASS] * 3
    assert [outcome.command_failures for outcome in outcomes] == [1, 0, 0]


@dataclass
class Booting:
    """A device of somebody else: gone after its first trial, and back by itself after some looks."""

    engine: FakeEngine
    looks: int
    empties = True
    counts = True
    gone: bool = False
    seen: int = 0

    def empty(self) -> None:
        self.count()
        self.seen = len(self.engine.requests)

    def count(self) -> int:
        if self.gone:
            raise BrokenError("count command: failed with exit status 255")
        return self.engine.requests[-1].connections if len(self.engine.requests) > self.seen else 0

    def confirm_ready(self) -> None:
        """Each look brings it nearer."""
        self.looks -= 1
        if self.looks <= 0:
            self.gone = self.engine.dead = False
        self.count()

    def strays(self) -> Mapping[str, int]:
        return {}

    def object_caches(self) -> ObjectCaches:
        return {}

    outlive = ExternalControls.outlive
    found_changed = ExternalControls.found_changed
    faults = strays
    restart = ExternalControls.restart


@pytest.mark.parametrize("back", [True, False])
def test_a_device_that_nobody_can_restart_is_looked_at_again_before_it_is_given_up(*, back: bool) -> None:
    engine = FakeEngine()
    tries = (1 + len(RECHECK_SECONDS)) * (1 + len(PAUSES))
    device = Booting(engine, looks=tries if back else 10**6)

    def collapses(request: Any, *others: Any) -> Any:
        answer = engine(request, *others)
        if len(engine.requests) == 1:
            device.gone = engine.dead = True
        return answer

    meter = external(engine, None, Clock(), device=device)
    waited: list[float] = []
    meter.runner, meter.sleep = collapses, waited.append
    meter.asking.sleep = waited.append
    assert meter.measure(PLAN).verdict is Verdict.COLLAPSED
    outcome = meter.measure(PLAN)
    assert outcome.verdict is (Verdict.PASS if back else Verdict.COLLAPSED)
    assert outcome.begun is back
    assert set(RECHECK_SECONDS) <= set(waited)
    assert any("answers and forwards again" in remark for remark in outcome.remarks) == back


# Whole measurements of a simulated device


@dataclass(slots=True)
class Hiccup(Simulated):
    """Does not answer its controls after the trials with these numbers, from 0; it forwards.

    Attributes:
        silent_in: the numbers.
    """

    silent_in: frozenset[int] = frozenset()

    def _trial(self, plan: PlanOfTrial) -> OneTrial:
        trial = Simulated._trial(self, plan)
        if len(self.plans) not in self.silent_in:
            return trial
        lost = "ssh host pe: cannot be used (Broken pipe); the connection was lost"
        return reading(trial, device_error=lost, count_after=None, forwards=True)


@pytest.mark.parametrize("trial", [0, 1, 3])
def test_a_lost_count_in_any_trial_leaves_the_rate_as_it_is(trial: int) -> None:
    """49,609, 99,219 and 396,875 connections/s were published, with an error below 1 % and no doubt."""
    gateway = Hiccup(placement="external", silent_in=frozenset({trial}))
    settings = connection_rate.ConnectionRateSettings(connections=100_000, placement="external", repeat=1)
    result = make(connection_rate.PROCEDURE.measure(gateway, settings), Parameters())
    assert result.median == pytest.approx(1e6, rel=0.01)
    assert (result.trials[Verdict.COLLAPSED], result.trials[Verdict.INVALID]) == (0, 1)


NOTHING = {"resets": 0, "renumbered": 0, "restamped": 0}


def result(
    messages: dict[str, tuple[int, int]], initiator: dict[str, int] | None, responder: dict[str, int] | None
) -> TrialResult:
    """A trial with these arrivals (right ones, wrong ones) and signs at the two ports."""

    def port(signs: dict[str, int] | None) -> dict[str, Any]:
        return PORT if signs is None else {**PORT, "device_signs": {**NOTHING, **signs}}

    stream = {
        **STREAM,
        "received_frames": 0,
        "messages": [{"name": name, "received": right, "wrong": wrong} for name, (right, wrong) in messages.items()],
    }
    ports = {"initiator": port(initiator), "responder": port(responder)}
    return TrialResult.model_validate({**RESULT, "phase1": stream, "ports": ports})


ALL = {"syn": (8, 0), "syn-ack": (8, 0), "ack": (8, 0)}


@pytest.mark.parametrize(
    ("messages", "initiator", "responder", "said"),
    [
        (ALL, {}, {}, []),
        ({**ALL, "syn": (6, 0), "syn-ack": (6, 2)}, {}, {}, ["2 SYN-ACKs were not the Responder's"]),
        (
            {**ALL, "syn-ack": (16, 0)},
            {},
            {},
            ["8 more SYN-ACKs arrived than the Responder sent"],
        ),
        ({**ALL, "syn": (0, 0), "syn-ack": (0, 8)}, {}, {}, ["8 SYN-ACKs were not the Responder's"]),
        ({**ALL, "syn-ack": (5, 3)}, {}, {}, ["3 segments arrived with other sequence numbers"]),
        (dict.fromkeys(ALL, (0, 0)), {}, {"renumbered": 8}, ["8 segments arrived with other sequence numbers"]),
        ({"syn": (8, 0)}, {}, {}, []),
        (ALL, {"restamped": 8}, {}, ["8 SYN-ACKs arrived with other time stamps"]),
        (ALL, {"resets": 2}, {"resets": 1}, ["2 resets arrived at the Initiator", "1 resets arrived at the Responder"]),
    ],
)
def test_each_sign_says_what_the_gateway_does(
    messages: dict[str, tuple[int, int]], initiator: dict[str, int], responder: dict[str, int], said: list[str]
) -> None:
    signs = [str(sign) for sign in signs_of(result(messages, initiator, responder))]
    assert len(signs) == len(said)
    assert all(sign.startswith(start) for sign, start in zip(signs, said, strict=True)), signs


def test_other_transports_have_no_signs() -> None:
    assert signs_of(result({"datagram": (8, 0)}, None, None)) == ()


def test_a_server_that_answers_everything_wrong_is_not_said_to_be_silent() -> None:
    """Of a server that refused each query, the check said that none of 8 frames came back, and no more."""
    refusing = result({"response": (0, 8)}, None, None)
    with pytest.raises(BrokenError, match=r"answers wrong: .*: 0 of 10 frames came back, .*8 with wrong content"):
        forwarding.whole(refusing, last=False, faults={})
    with pytest.raises(BrokenError, match=r"does not forward: .* 1 with wrong content"):
        forwarding.whole(result({"response": (0, 1)}, None, None), last=False, faults={})


def test_the_check_before_the_first_trial_names_the_behaviour() -> None:
    proxied = result({"syn": (0, 0), "syn-ack": (0, 8), "ack": (0, 0)}, {}, {})
    with pytest.raises(BrokenError, match=r"does not forward: .*the gateway answered SYNs itself, as a SYN proxy does"):
        forwarding.whole(proxied, last=True, faults={})


LIMIT = 65_536


@pytest.fixture(params=["own file system", "sealed"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How the limit is kept; an ordinary user has the second way only."""
    if request.param == "sealed":
        monkeypatch.setattr(bounded_output, "_of_own_file_system", lambda _: None)
    return str(request.param)


def started(script: str, out: int, err: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["/bin/sh", "-c", script], stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
    )


def ran(script: str, output: BoundedOutput) -> int:
    return started(script, output.fileno(), output.fileno()).wait()


@pytest.mark.usefixtures("way")
def test_what_fits_is_stored_as_it_is() -> None:
    with BoundedOutput(LIMIT) as output:
        assert ran("echo one; echo two >&2", output) == 0
        assert (output.text(), output.is_full) == ("one\ntwo\n", False)


@pytest.mark.usefixtures("way")
def test_more_than_the_limit_is_refused_to_the_program_and_not_stored() -> None:
    with BoundedOutput(LIMIT) as output:
        assert ran("head -c 1000000 /dev/zero", output) != 0
        assert output.is_full
        assert len(output.text()) <= LIMIT
    # A program that ignores the refusal ends as it would.
    with BoundedOutput(LIMIT) as output:
        assert ran("head -c 1000000 /dev/zero 2> /dev/null || true; exit 7", output) == 7


@pytest.mark.usefixtures("way")
def test_a_command_that_prints_too_much_is_refused_by_its_name_and_one_that_prints_less_is_not(golden: Golden) -> None:
    too_much = f"head -c {2 * MOST_OCTETS} /dev/zero || true"
    with golden.raises(BrokenError):
        run_shell(lambda out, err: started(too_much, out, err), 30, "device gateway: version")
    result = run_shell(lambda out, err: started("echo out; echo err >&2; exit 3", out, err), 30, "it")
    assert result is not None
    assert (result.status, result.stdout, result.stderr) == (3, "out\n", "err\n")


@pytest.fixture
def chatty(tmp_path: Path) -> Path:
    """The folder of a process that printed 20 MiB, then its last words, and ended."""
    process = Process(name="chatty", command="sh -c 'head -c 20971520 /dev/zero; echo; echo last words; exit 3'")
    environment = {"NG_WORK": str(tmp_path), "PATH": "/usr/bin:/bin"}
    subprocess.run(["/bin/sh", "-euc", process.start], env=environment, check=True)
    subprocess.run(
        ["/bin/sh", "-c", "while [ -e chatty.logging ] || [ ! -e chatty.end ]; do sleep 0.05; done"],
        cwd=tmp_path,
        check=True,
        timeout=60,
    )
    said = subprocess.run(
        ["/bin/sh", "-euc", process.status_command], env=environment, check=True, capture_output=True, text=True
    )
    (tmp_path / "ended").write_text(process.ended(said.stdout) or "")
    return tmp_path


def test_the_end_of_a_log_is_kept_and_its_size_is_bounded(chatty: Path, golden: Golden) -> None:
    logs = [chatty / name for name in ("chatty.log", "chatty.log.1", "chatty.log.2")]
    assert sum(log.stat().st_size for log in logs if log.exists()) <= 12 * 1024**2
    golden((chatty / "ended").read_text())


def test_a_core_dump_without_its_end_is_named(golden: Golden) -> None:
    process = Process(name="p", command="p")
    said = process.ended("natgauge-end 139 cut\n/run/core\na\n")
    golden(said)


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device is looked at without a pause."""
    monkeypatch.setattr(port_options, "_POLL_SECONDS", 0.01)


def command(text: str, seconds: float = 20.0, settle: float = 0.0) -> BootCommand:
    made = PortOptions(boot_seconds=seconds, boot_settle_seconds=settle).boot("boot command", text)
    assert made is not None
    return made


@pytest.mark.parametrize(("cores", "told"), [(4, "4"), (None, "none")])
def test_the_command_is_told_the_number_of_cores(tmp_path: Path, cores: int | None, told: str) -> None:
    command(f'printf "${{NG_CORES:-none}}" > {tmp_path}/cores').run(cores)
    assert (tmp_path / "cores").read_text() == told


def test_the_device_is_waited_for_and_then_left_alone() -> None:
    looks = iter(["it does not answer", "it has 8 processors online, not 4", ""])
    begun = time.monotonic()
    needed = command("true", settle=0.2).run(4, lambda: next(looks))
    assert next(looks, None) is None
    # The time to settle is no part of what the device needed.
    assert needed <= time.monotonic() - begun - 0.2


@pytest.mark.parametrize(
    ("text", "seconds"), [("sleep 60", 0.1), ("echo no power >&2; exit 3", 9.0), ("exit 3", 9.0), ("true", 0.1)]
)
def test_a_device_that_does_not_come_back_ends_in_one_line(text: str, seconds: float, golden: Golden) -> None:
    with golden.raises(HostError) as refused:
        command(text, seconds).run(2, lambda: "it is silent")
    assert "\n" not in str(refused.value)


def test_an_empty_command_is_refused(golden: Golden) -> None:
    with golden.raises(UsageError):
        command("  ")


# Restarts in a trial, and what the engine causes


def began_line(phase: str, seconds: float) -> Progress:
    counts = {"intended_frames": 0, "made_frames": 0, "received_frames": 0}
    return Progress.model_validate({"phase": phase, "seconds": seconds, **counts})


def test_a_second_ctrl_c_does_not_leave_a_device_half_started(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    began, waited_for = threading.Event(), threading.Event()

    def act() -> None:
        began.set()
        if waited_for.wait(10):
            done.append("back")

    timed = RestartInTrial(act, 0.0)
    real = timed._timer.join
    presses = iter([KeyboardInterrupt()])

    def join(timeout: float | None = None) -> None:
        if (pressed := next(presses, None)) is not None:
            raise pressed
        waited_for.set()
        real(timeout)

    monkeypatch.setattr(timed._timer, "join", join)
    timed.take(began_line("phase2", 0.0))
    began.wait(10)
    with pytest.raises(KeyboardInterrupt):
        timed.__exit__(None, None, None)
    assert done == ["back"]


def test_a_line_that_was_read_late_moves_no_restart() -> None:
    now = iter([100.0, *[112.0] * 9])
    with RestartInTrial(lambda: None, 1.0, lambda: next(now)) as timed:
        for phase, seconds in (("phase1", 0.0), ("phase2", 10.0)):
            timed.take(began_line(phase, seconds))
        # Phase 2 began at 110, so the restart is 1 s late by now, and is not put off by another one.
        timed._timer.join(10)
    assert timed.ended().began == 2.0


PERIODS = with_phase2(2000.0, 3000.0, 0.5, periods=3)


def test_what_the_engine_itself_causes_belongs_to_the_first_and_the_last_period(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two links that the engine takes down were taken from each period, and hid a link that went down by itself."""
    # One reading is only timed, before the trial.
    downs, drops = iter([0, 0, 1, 2, 3]), iter([0, 0, 2, 2, 5])

    class Counted(FakeLab):
        def counters(self) -> LabCounters:
            return LabCounters({"gateway inside received": next(drops)})

    monkeypatch.setattr(
        "natgauge.trial.trial_run.carrier_losses", lambda _netns, port: next(downs) if port == "ng0i" else 0
    )
    subject = measurer(FakeEngine(), place=Counted())
    subject.trial_run.own = Own({"gateway inside received": 2}, {"Initiator": 2})
    read = [period.outcome.readings for period in subject.periods(PERIODS, lambda _period: True)]
    assert [each.link_losses for each in read] == [{}, {"Initiator": 1}, {}]
    assert [each.dropped["gateway inside received"] for each in read] == [0, 0, 3]
