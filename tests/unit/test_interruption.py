# SPDX-License-Identifier: Apache-2.0
"""A first signal never breaks an undoing off, and what it leaves to do is said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from rich.console import Console
from rich.live import Live

from natgauge import cli
from natgauge.cli.progress import ProgressDisplay
from natgauge.errors import BrokenError, EndedBySignal, HostError
from natgauge.gateways.gateway import Gateway
from natgauge.interruption import SIGNALS, uninterrupted
from natgauge.labs import ssh
from natgauge.labs.common import locks
from natgauge.labs.common.processes import in_thread
from natgauge.labs.common.register import Register
from natgauge.labs.contract import LabNeeds
from natgauge.labs.netns.lab import NetnsLab


def second(_number: int, _frame: FrameType | None) -> None:
    """Handler of the signals that follow the first."""


def first(number: int, _frame: FrameType | None) -> None:
    """Handler of the first signal, as the command line has it."""
    for each in SIGNALS:
        signal.signal(each, second)
    raise EndedBySignal(number)


def send() -> None:
    """A signal to this process, whose handler runs before this returns."""
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = {number: signal.signal(number, first) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("times", [1, 2])
def test_what_undoes_is_done_before_a_signal_within_it_is_raised(times: int) -> None:
    done: list[str] = []

    @uninterrupted()
    def inner() -> None:
        for _ in range(times):
            send()
        done.append("inner")

    @uninterrupted()
    def outer() -> None:
        inner()
        done.append("outer")

    with pytest.raises(EndedBySignal) as ended:
        outer()
    assert (done, ended.value.number) == (["inner", "outer"], signal.SIGTERM)
    assert {signal.getsignal(number) for number in SIGNALS} == {second}


def test_without_a_signal_an_error_is_raised_and_the_handlers_are_those_of_before() -> None:
    with pytest.raises(BrokenError, match="gone"), uninterrupted():
        raise BrokenError("gone")
    assert {signal.getsignal(number) for number in SIGNALS} == {first}


def test_a_signal_that_nobody_catches_or_that_is_ignored_stays_so() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with uninterrupted():
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_second_signal_breaks_off_what_a_program_without_handlers_of_its_own_undoes() -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    done: list[int] = []

    @uninterrupted()
    def undo() -> None:
        for number in range(3):
            send()
            done.append(number)

    with pytest.raises(KeyboardInterrupt):
        undo()
    assert done == [0]
    assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler


def test_an_error_of_the_undoing_is_said_with_the_signal_and_not_that_everything_is_undone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def undo(_arguments: object) -> tuple[str, int]:
        with uninterrupted():
            send()
            raise BrokenError("lab x: stays; then run: natgauge lab clean")

    monkeypatch.setattr(cli.app, "main", lambda *_arguments, **_others: undo(None))
    assert cli.run(["lab", "status"]) == 143
    assert capsys.readouterr().err == "natgauge: ended by SIGTERM; lab x: stays; then run: natgauge lab clean\n"


def test_in_another_thread_signals_are_left_alone() -> None:
    seen: list[Any] = []

    def work() -> None:
        with uninterrupted():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [first]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for registers and locks of these tests alone."""
    monkeypatch.setattr(locks, "RUN", tmp_path / "run")
    return tmp_path


def ssh_lab() -> Any:
    """A lab of another machine, which nobody reaches."""
    options = ssh.SshOptions(
        ssh_host="root@a", device_inside="eth1", device_outside="eth2", initiator_port="ngnone0",
        responder_port="ngnone1",
    )  # fmt: skip
    return ssh.plan("x", options, LabNeeds(families=("ipv4", "ipv4")))


def _signalled_first(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the first undoing of a step of a register be reached by a signal; return the steps that were undone."""
    undone: list[str] = []
    undo = Register._undo_step

    def signalled(register: Register, step: list[Any], *more: Any) -> str:
        send()
        undone.append(step[0]["what"])
        return undo(register, step, *more)

    monkeypatch.setattr(Register, "_undo_step", signalled)
    return undone


def test_a_first_signal_while_a_lab_is_taken_down_leaves_nothing_of_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = NetnsLab("x", initiator_family="ipv4", responder_family="ipv4")
    made = root / "run" / "labs" / "x"
    lab._register = register = Register.begin("x", "netns", {})
    register.make_directory(made)
    undone = _signalled_first(monkeypatch)
    with pytest.raises(EndedBySignal):
        lab.down()
    assert undone == ["directory"]
    assert not made.exists()
    assert Register.look("x") is None
    assert not locks.Lock("x").is_held()


def test_a_first_signal_while_other_machines_are_given_back_leaves_none_taken(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = ssh_lab()
    lab._register = register = Register.begin("x", "ssh", lab._settings())
    register.make_directory(root / "run" / "labs" / "x")
    monkeypatch.setattr(lab._segments[0].remote, "close", send)
    with pytest.raises(EndedBySignal):
        lab.down()
    assert Register.look("x") is None
    assert not locks.Lock("x").is_held()


def test_machines_that_cannot_be_given_back_after_a_signal_are_said_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = ssh_lab()

    def fail() -> None:
        raise HostError("ssh host root@a: gone")

    monkeypatch.setattr(lab, "down", fail)
    ended = EndedBySignal(signal.SIGTERM)
    lab.__exit__(EndedBySignal, ended, None)
    assert ended.__notes__ == ["ssh host root@a: gone"]


def test_a_thread_that_makes_something_is_waited_for_before_that_is_undone() -> None:
    made: list[str] = []

    def make() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.2)
        made.append("namespace")

    with pytest.raises(EndedBySignal):
        in_thread(make)
    assert made == ["namespace"]


def test_a_gateway_is_stopped_as_a_whole() -> None:
    gateway: Any = object.__new__(Gateway)
    released: list[str] = []

    class Knob:
        def release(self) -> None:
            send()
            released.append("one")

    gateway._begun, gateway._machine = False, {"a": Knob(), "b": Knob()}
    with pytest.raises(EndedBySignal):
        gateway.stop()
    assert released == ["one", "one"]


@pytest.mark.parametrize(
    ("replaced", "words", "said"),
    [
        ("host.tuner.tune", "host tune", "natgauge host restore puts back what tune set"),
        ("host.tuner.restore", "host restore", "natgauge host restore puts back what tune set"),
        ("cleaning.carry_out", "lab clean", "natgauge lab clean removes what is left"),
        ("cleaning.take_down", "lab down x", "natgauge lab status lists what is left"),
    ],
)
def test_what_was_done_before_a_signal_is_not_said_to_be_undone(
    replaced: str, words: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(f"natgauge.{replaced}", lambda *_arguments, **_options: send())
    monkeypatch.setattr("natgauge.host.capabilities.require", lambda *_: None)
    monkeypatch.setattr("natgauge.cli.host._refuse_labs_in_use", lambda: None)
    monkeypatch.setattr("natgauge.cleaning.decide", lambda **_: [])
    assert cli.run(words.split()) == 143
    assert capsys.readouterr().err == f"natgauge: ended by SIGTERM; {said}\n"


def test_a_closed_terminal_does_not_hide_the_signal_that_it_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    stop = Live.stop

    def fail(live: Live) -> None:
        stop(live)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Live, "stop", fail)
    with pytest.raises(EndedBySignal), ProgressDisplay(Console(force_terminal=True, quiet=True)):
        raise EndedBySignal(signal.SIGHUP)


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), RuntimeError("reentrant call"), ValueError()])
def test_a_warning_that_nobody_can_read_breaks_no_undoing_off(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **_options: object) -> None:
        raise error

    monkeypatch.setattr(cli, "say", fail)
    cli._warn_on_signal(signal.SIGHUP, None)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL


def test_a_signal_that_nohup_ignores_stays_ignored_after_another_one() -> None:
    """In a process of its own, which a second signal of another kind must not end."""
    script = """
import os, signal, sys
import natgauge.cleaning as cleanup
from natgauge import cli

signal.signal(signal.SIGHUP, signal.SIG_IGN)

def status():
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGHUP)
        print("undone")

cleanup.status = status
sys.argv = ["natgauge", "lab", "status"]
cli.main()
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (143, "undone\n")
    assert ended.stderr.splitlines()[-1] == "natgauge: ended by SIGTERM; everything is undone"


def test_without_a_terminal_work_without_trials_says_now_and_then_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, console = [100.0], Console(width=60)
    monkeypatch.setattr("natgauge.cli.progress.time.monotonic", lambda: clock[0])
    with console.capture() as shown, ProgressDisplay(console, stage_seconds=60.0) as display:
        for part in range(130):
            display.stage(f"part {part}")
            clock[0] += 1.0
    assert shown.get().splitlines() == ["part 60", "part 120"]


@pytest.mark.parametrize("verbose", [False, True])
def test_an_interim_result_is_on_the_live_line_unless_every_trial_is_a_line(*, verbose: bool) -> None:
    console = Console(force_terminal=True, width=60)
    with console.capture() as shown, ProgressDisplay(console, verbose=verbose) as display:
        display.interim("an interim result\nof two lines")
        display.stage("the next part")
    # Of the live line the last state alone is drawn at the end.
    assert ("an interim result\n" in shown.get()) == verbose
