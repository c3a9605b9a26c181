# SPDX-License-Identifier: Apache-2.0
"""A real campaign that is killed at random moments, and gone on with until nothing is left to do."""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from tests.labs.hosts import until
from tests.labs.kills import Killed, clean, faults
from tests.labs.moments import Moments
from tests.labs.program import command_line, small_plan

from natgauge import cleaning
from natgauge.campaigns.journal import entries
from natgauge.campaigns.state import status
from natgauge.labs.common import locks, namespaces
from natgauge.records.store import JOURNAL
from natgauge.spread.worker import core_groups
from natgauge.stored.find_results import read_summary

NAME = "e2e-campaign"
LIMIT = Path("/proc/sys/net/netfilter/nf_conntrack_max")
DEVICES = ("nftables-nat44", "linux-ipv4")
MANY = pytest.param(10, marks=[pytest.mark.soak, pytest.mark.alone])


def run(folder: Path, *options: str) -> subprocess.Popen[str]:
    """Start `natgauge run`."""
    command = command_line(["run", "plan.toml", "--out", "out", *options])
    with (folder / "log").open("a") as log:
        return subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, text=True)


def begun(folder: Path) -> int:
    """Trials that have begun."""
    path = folder / "out" / JOURNAL
    return path.read_bytes().count(b'"event":"trial"') if path.exists() else 0


@pytest.mark.slow("runs a campaign of four repetitions or more, in several sessions")
@pytest.mark.soak
@pytest.mark.parametrize("kills", [1, MANY])
def test_killed_at_random_moments_each_repetition_counts_once(kills: int, tmp_path: Path, moments: Moments) -> None:
    # A session that is killed once is in its first cell: a second one would not be touched.
    devices = DEVICES[:kills]
    (tmp_path / "plan.toml").write_text(small_plan("killed", NAME, devices, 10_000))
    before = LIMIT.read_text()
    pids: set[str] = set()
    try:
        for number in range(kills):
            resumed = ["--resume"] if (tmp_path / "out" / "campaign.json").exists() else []
            known = begun(tmp_path)
            process = run(tmp_path, *resumed)
            pids.add(str(process.pid))
            # A session that got nothing done would prove little: some trials first, then any moment.
            while process.poll() is None and begun(tmp_path) < known + moments.randint(1, 8):
                with suppress(subprocess.TimeoutExpired):
                    process.wait(moments.uniform(0.0, 0.3))
            process.kill()
            assert process.wait() == -signal.SIGKILL, f"{moments.told}, kill {number}: {(tmp_path / 'log').read_text()}"
            # A program that the session was starting has its journal until it is the program.
            until(lambda: not status(tmp_path / "out").runs, 1.0)
            assert not status(tmp_path / "out").runs
        assert run(tmp_path, "--resume").wait() == 0, f"{moments.told}: {(tmp_path / 'log').read_text()}"
        assert LIMIT.read_text() == before
        assert [name for name in namespaces.names() if name.startswith(f"ng-{NAME}-")] == []
        # A session names some labs after its process: the tester's cables, plain forwarding next to a device.
        left = [path.name for path in locks.RUN.glob("*/*") if {*path.stem.split("-")} & pids]
        assert left == [], f"{moments.told}: {(tmp_path / 'log').read_text()}"
    finally:
        if any(lab.name == NAME for lab in cleaning.status()):
            cleaning.take_down(NAME)
    found = status(tmp_path / "out")
    assert not found.runs
    assert [(one.done, one.left, one.broken) for one in found.measurements] == [(2, 0, "")] * 2 * len(devices)
    happened = list(entries(tmp_path / "out"))
    events = Counter(entry["event"] for entry in happened)
    told = f"{moments.told}: {events}"
    assert events["session"] == kills + 1, told
    assert events["repetition"] == 4 * len(devices), told
    assert list(faults(tmp_path / "out")) == [], told
    counted = [sum(read_summary(tmp_path / "out" / one.folder).trials.values()) for one in found.measurements]
    assert 0 < sum(counted) <= events["trial"], told


@pytest.mark.soak
@pytest.mark.alone
@pytest.mark.slow("runs a campaign whose workers start anew after each kill")
def test_real_workers_that_are_killed_lose_nothing_and_nothing_counts_twice(tmp_path: Path, moments: Moments) -> None:
    """`python -m tests.labs.kills --workers 2` does so a hundred times."""
    killed = Killed(moments, most=10, workers=min(2, len(core_groups())))
    try:
        killed.run(tmp_path)
    finally:
        clean()
    assert (killed.kills, killed.faults) == (10, []), moments.told
    assert killed.trials > 0
    assert [name for name in namespaces.names() if name.startswith("ng-kills-")] == []
