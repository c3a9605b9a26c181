# SPDX-License-Identifier: Apache-2.0
"""Workers, and campaigns over them, that are killed or broken off: on simulated gateways."""

from __future__ import annotations

import os
import re
import signal
import threading
from contextlib import suppress
from pathlib import Path

import dask
import pytest
from tests.labs.kills import children
from tests.labs.moments import Moments
from tests.unit.campaigning import quick_disk, results
from tests.unit.spreading import SMALL, alone, counted_once, deadly, own_run, spread_out

from natgauge.campaigns.journal import entries
from natgauge.campaigns.state import status
from natgauge.labs.common import locks
from natgauge.procedures.kit.runner import Event
from natgauge.spread import cluster
from natgauge.trial.controls import Silent

__all__ = ["alone", "own_run", "quick_disk"]

pytestmark = [pytest.mark.calm, pytest.mark.slow("workers are processes that restart after each kill")]


@pytest.fixture(autouse=True)
def searches_begin_fast() -> None:
    """They begin as usual: workers are processes of their own, and have to find what this process finds."""


@pytest.mark.soak
@pytest.mark.parametrize("most", [1, 4])
def test_workers_that_are_killed_cost_their_repetitions_and_nothing_counts_twice(
    most: int, alone: Path, tmp_path: Path, moments: Moments
) -> None:
    over, kills = threading.Event(), [0]

    def kill() -> None:
        # One that ends before all stand ends the session: that is not what is asked here.
        while not over.is_set() and not (tmp_path / "out" / "journal.jsonl").exists():
            over.wait(0.05)
        while not over.wait(moments.uniform(0.1, 1.5)) and kills[0] < most:
            for victim in moments.sample(there := [*children(os.getpid())], min(1, len(there))):
                with suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
                    kills[0] += 1

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        spread_out(tmp_path, plan=SMALL.replace("repetitions = 2", "repetitions = 4"))
    finally:
        over.set()
        killer.join()
    assert kills[0] > 0, moments.told
    counted_once(tmp_path)
    # A run that its worker did not end has left nothing in the journal.
    events = [one["event"] for one in entries(tmp_path / "out")]
    assert events.count("repetition") == 16, moments.told
    assert {(one.done, one.left, one.broken) for one in status(tmp_path / "out").measurements} == {(4, 0, "")}
    first = {key: value[0] for key, value in results(alone).items()}
    assert {key: value[0] for key, value in results(tmp_path).items()} == first, moments.told


@pytest.mark.soak  # unit/test_spread_coordinator.py loses workers without processes
def test_a_cell_that_kills_whoever_visits_it_is_broken_and_others_go_on(tmp_path: Path) -> None:
    plan = SMALL.replace("repetitions = 2", "repetitions = 1")
    with dask.config.set({"distributed.scheduler.allowed-failures": 1}):
        spread_out(tmp_path, plan=plan, bench=deadly)
    found = {(one.cell[:3], one.done): one.broken for one in status(tmp_path / "out").measurements}
    assert found["lin", 1] == ""
    # Three tries where the message that the first one began died with its worker: the coordinator saw one of two.
    assert re.fullmatch(r"the worker died in [23] tries, the last one was local-[01]", found["nft", 0])
    assert "nft" not in [one["cell"][:3] for one in entries(tmp_path / "out") if one["event"] == "repetition"]


@pytest.mark.soak  # the first test kills a worker, too
def test_a_worker_that_is_killed_while_it_starts_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask's nanny gives such a worker up; a campaign waited for it for ever."""
    monkeypatch.setattr(cluster, "REVIVE_SECONDS", 0.2)
    over, killed = threading.Event(), set[int]()

    def kill() -> None:
        while not over.is_set() and not (tmp_path / "out" / "journal.jsonl").exists():
            over.wait(0.05)
        # The one that works, and the next two as soon as they are there: the second of them is one that came back.
        while not over.is_set() and len(killed) < 3:
            for victim in {*children(os.getpid())} - killed:
                with suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
                    killed.add(victim)
            over.wait(0.01)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with dask.config.set({"distributed.deploy.lost-worker-timeout": "1s"}):
            spread_out(tmp_path, on="local:1")
    finally:
        over.set()
        killer.join()
    assert len(killed) == 3
    counted_once(tmp_path)


class _Ends(BaseException):
    """The campaign was ended from outside."""


class _EndsAfter(Silent):
    """Ends the campaign after `trials` trials."""

    def __init__(self, trials: int) -> None:
        self.left = trials

    def event(self, event: Event) -> None:
        self.left -= event.outcome is not None
        if self.left < 0:
            raise _Ends


@pytest.mark.soak  # unit/test_spread_coordinator.py goes on after a lost connection
def test_what_was_broken_off_is_gone_on_with_by_workers_or_without(alone: Path, tmp_path: Path) -> None:
    with pytest.raises(_Ends):
        spread_out(tmp_path, _EndsAfter(15))
    # Nothing of it is left: no worker, no core that is taken.
    assert [*children(os.getpid())] == []
    assert list(locks.RUN.glob("*/core.*")) == []
    before = (tmp_path / "out" / "journal.jsonl").read_bytes()
    with pytest.raises(_Ends):
        spread_out(tmp_path, _EndsAfter(5), only=["lin*"])
    spread_out(tmp_path, on=None)
    assert (tmp_path / "out" / "journal.jsonl").read_bytes().startswith(before)
    # All but the notes: they separate repetitions with other workers on the machine from those without.
    assert {name: one[:3] for name, one in results(tmp_path).items()} == {
        name: one[:3] for name, one in results(alone).items()
    }
    counted_once(tmp_path)
