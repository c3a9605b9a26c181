# SPDX-License-Identifier: Apache-2.0
"""Campaigns spread over workers: as if one machine had done all, whoever dies on the way; and what is refused."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import distributed
import pytest
from tests.unit.campaigning import PLAN, asked, quick_disk, results
from tests.unit.spreading import WORKERS, alone, counted_once, make_bench, own_run, spread_out

from natgauge.bench.watch import Silent
from natgauge.campaigns import spread
from natgauge.campaigns.journal import entries
from natgauge.campaigns.plan import read
from natgauge.campaigns.spread import coordinator, resources
from natgauge.campaigns.spread.cluster import team
from natgauge.campaigns.spread.worker import Message
from natgauge.cli import run as command_line
from natgauge.errors import HostError, UsageError

__all__ = ["alone", "own_run", "quick_disk"]


@pytest.mark.slow("starts worker processes, each of which imports Dask")
def test_many_workers_do_what_one_machine_does(alone: Path, tmp_path: Path) -> None:
    spread_out(tmp_path)
    assert results(tmp_path) == results(alone)
    assert asked(tmp_path) == asked(alone)
    counted_once(tmp_path)
    begun = [one for one in entries(tmp_path / "out") if one["event"] == "repetition"]
    assert {one["worker"]["beside"] for one in begun} == {WORKERS - 1}
    # The hash table of connections is the whole machine's, so one worker has all cells that have one.
    assert len({one["worker"]["name"] for one in begun if one["cell"].startswith("nftables")}) == 1


@pytest.mark.slow("starts worker processes, each of which imports Dask")
def test_a_lab_that_no_worker_has_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN + '\n[lab]\nlab_name = "rack"\n')
    plan = read(path).model_copy(update={"seed": 1})
    with team(spread.where("local:1"), ["attic"], make_bench=make_bench) as found:
        with pytest.raises(HostError, match=r'no worker has lab "rack", they have attic .* natgauge worker'):
            found.points(plan, "plan")
        assert found.points(read(path).model_copy(update={"seed": 1, "lab": {"lab_name": "attic"}}), "plan")
        several = plan.model_copy(update={"lab": {"lab_name": "attic", "placement": "isolated", "cores": "0,1"}})
        with pytest.raises(UsageError, match=r"plan: .*cores"):
            found.points(several, "plan")


def die(*_: Any, **__: Any) -> None:
    """Be a worker that is killed while it is asked something."""
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow("starts worker processes, each of which imports Dask")
def test_a_worker_that_dies_while_it_is_asked_is_no_fault_of_natgauge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    plan = read(path).model_copy(update={"seed": 1})
    with team(spread.where("local:1"), ["lab"], make_bench=make_bench) as found, monkeypatch.context() as patched:
        patched.setattr(coordinator, "is_busy", die)
        patched.setattr(coordinator, "look", die)
        with pytest.raises(HostError, match=r"all at local:1 died while they looked at the plan"):
            found.points(plan, "plan")
        assert not found.busy()


def samples(*, dask_worker: distributed.Worker) -> bool:
    """Whether Dask takes samples of what a worker does."""
    return "profile" in dask_worker.periodic_callbacks


@pytest.mark.slow("starts worker processes, each of which imports Dask")
def test_nobody_samples_workers_while_they_measure() -> None:
    with team(spread.where("local:1"), ["lab"], make_bench=make_bench) as found:
        assert list(found._client.run(samples).values()) == [False]


@pytest.fixture
def scheduler() -> Iterator[str]:
    """One without workers of ours, as `--on` names it."""
    with distributed.LocalCluster(
        n_workers=0, processes=False, protocol="tcp://", dashboard_address=None, silence_logs=50
    ) as cluster:
        yield cluster.scheduler_address.replace("tcp://", "dask://")


def test_a_scheduler_without_a_worker_is_told_and_nothing_is_made(
    scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(PLAN)
    assert command_line(["run", "small.toml", "--on", scheduler]) == 3
    told = capsys.readouterr().err
    assert f"none is at {scheduler}; start one on each machine that is to measure: natgauge worker {scheduler}" in told
    assert told.count("\n") == 1
    assert not (tmp_path / "results").exists()


def test_a_scheduler_that_is_not_there_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(coordinator, "_CONNECT_SECONDS", "300ms")
    (tmp_path / "small.toml").write_text(PLAN)
    assert command_line(["run", "small.toml", "--on", "dask://127.0.0.1:9"]) == 3
    told = capsys.readouterr().err
    assert "no Dask scheduler answers at dask://127.0.0.1:9" in told
    assert told.count("\n") == 1
    assert not (tmp_path / "results").exists()


def test_without_dask_its_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    (tmp_path / "small.toml").write_text(PLAN)
    for command in (["run", str(tmp_path / "small.toml"), "--on", "local:1"], ["worker", "dask://lab1"]):
        assert command_line(command) == 3
        assert "pip install 'natgauge[dask]'" in capsys.readouterr().err


class _Client:
    """A scheduler at which these workers are."""

    def __init__(self, *resources: resources.Resources, python: str = "3.11.0") -> None:
        self.workers = {
            f"tcp://w:{number}": {"name": f"w{number}", "resources": one} for number, one in enumerate(resources)
        }
        self.python = python

    def scheduler_info(self, **_: int) -> Any:
        return {"workers": self.workers}

    def get_versions(self) -> Any:
        here = {"packages": {"dask": "1", "distributed": "1", "python": "3.11.7.final.0"}}
        there = {"packages": {**here["packages"], "python": self.python}}
        return {"client": here, "scheduler": here, "workers": dict.fromkeys(self.workers, there)}


def test_a_worker_of_another_natgauge_is_refused() -> None:
    with pytest.raises(HostError, match=r"w1 at dask://a is natgauge 0\.0\.9, this is .*; install the same one there"):
        coordinator.Team(_Client({resources.WORKER: 1.0}, {"natgauge 0.0.9": 1.0}), "dask://a", host_name=False)  # type: ignore[arg-type]


def test_workers_that_are_none_of_ours_are_left_alone() -> None:
    assert coordinator.Team(_Client({resources.WORKER: 1.0}, {"GPU": 1.0}), "dask://a", host_name=False)  # type: ignore[arg-type]


def test_a_worker_of_another_python_is_refused() -> None:
    with pytest.raises(HostError, match=r"worker w0 at dask://a has python 3\.13, here is 3\.11"):
        coordinator.Team(_Client({resources.WORKER: 1.0}, python="3.13.1"), "dask://a", host_name=False)  # type: ignore[arg-type]


class _Journal:
    """A session as far as messages concern it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.watch = Silent()

    def note(self, event: str, *, sync: bool = True, **_: object) -> None:
        """One line."""
        del sync
        self.lines.append(event)


def heard(*messages: Message, attempt: str = "now") -> list[str]:
    """The lines that are written when these come from a cell whose visit of this name counts."""
    found: Any = coordinator.Team(_Client({resources.WORKER: 1.0}), "dask://a", host_name=False)  # type: ignore[arg-type]
    point: Any = None
    future: Any = None
    found._away["cell"] = coordinator._Away(point, 1, future, attempt=attempt)
    session = _Journal()
    for message in messages:
        found._take(session, message)
    return session.lines


def line(number: int, event: str, attempt: str = "now") -> Message:
    return "line", "cell", attempt, number, json.dumps({"schema": "s", "at": 1.0, "event": event})


def test_only_the_visit_that_counts_is_listened_to() -> None:
    assert heard(line(1, "a"), line(1, "x", "before"), line(2, "b")) == ["a", "b"]


def test_nothing_counts_after_a_message_that_is_missing() -> None:
    assert heard(line(1, "a"), line(3, "c"), line(4, "d")) == ["a"]


def test_what_was_put_twice_counts_once() -> None:
    assert heard(line(1, "a"), line(1, "a"), line(2, "b")) == ["a", "b"]


def test_whoever_visits_another_cell_is_no_concern() -> None:
    assert heard(("line", "other", "now", 1, "{}"), line(1, "a")) == ["a"]


class _Mute:
    """A queue of a scheduler that says nothing any more, or only that there is no message."""

    def __init__(self, waits: str) -> None:
        self._waits = waits

    def get(self, **seconds: float) -> Message:
        time.sleep(seconds[self._waits])
        raise TimeoutError


def test_a_scheduler_that_answers_no_more_is_gone_and_asked_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    found: Any = coordinator.Team(_Client({resources.WORKER: 1.0}), "dask://a", host_name=False)  # type: ignore[arg-type]
    # On a busy host the process may stand still for a while. The scheduler has answered all the same.
    monkeypatch.setattr(coordinator, "_ANSWER_SECONDS", 600.0)
    with pytest.raises(TimeoutError):
        found._next(_Mute("timeout"), 0.01)
    monkeypatch.setattr(coordinator, "_ANSWER_SECONDS", 0.05)
    with pytest.raises(ConnectionError):
        found._next(_Mute("callback_timeout"), 0.01)
    # Neither the client nor the queue has what this would need.
    assert not found.busy()
    found._stop(_Mute("timeout"))
