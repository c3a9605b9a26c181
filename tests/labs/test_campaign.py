# SPDX-License-Identifier: Apache-2.0
"""A real campaign that is killed at random moments, and gone on with until nothing is left to do."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from natgauge.campaigns.journal import JOURNAL, entries
from natgauge.campaigns.status import status
from natgauge.labs import namespaces, upkeep
from natgauge.reports.text import read_summary

pytestmark = [pytest.mark.slow, pytest.mark.alone]

NAME = "e2e-campaign"
KILLS = 3
LIMIT = Path("/proc/sys/net/netfilter/nf_conntrack_max")
PLAN = f"""
name = "killed"
devices = ["nftables-nat44", "linux-ipv4"]
profile = "quick"
repetitions = 2

[lab]
lab_name = "{NAME}"
placement = "shared"

[traffic]
connections = 10_000

[[measure]]
metric = "connection-rate"
error = "50%"

[[measure]]
metric = "throughput"
error = "50%"
trial_seconds = 0.2
"""


def run(folder: Path, *options: str) -> subprocess.Popen[str]:
    """Start `natgauge run`."""
    program = "import sys; from natgauge.cli import main; sys.argv[0] = 'natgauge'; main()"
    command = [sys.executable, "-c", program, "run", "plan.toml", "--out", "out", *options]
    with (folder / "log").open("a") as log:
        return subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, text=True)


def answered(folder: Path) -> int:
    path = folder / "out" / JOURNAL
    return path.read_bytes().count(b'"event":"answer"') if path.exists() else 0


def test_killed_at_random_moments_each_trial_counts_once(tmp_path: Path) -> None:
    seed = random.randrange(2**32)  # noqa: S311 - any moment will do
    moments = random.Random(seed)  # noqa: S311 - any moment will do
    (tmp_path / "plan.toml").write_text(PLAN)
    before = LIMIT.read_text()
    try:
        for number in range(KILLS):
            resumed = ["--resume"] if (tmp_path / "out" / "campaign.json").exists() else []
            known = answered(tmp_path)
            process = run(tmp_path, *resumed)
            # A session that got nothing done would prove little: some trials first, then any moment.
            while process.poll() is None and answered(tmp_path) < known + moments.randint(1, 8):
                with suppress(subprocess.TimeoutExpired):
                    process.wait(moments.uniform(0.0, 0.3))
            process.kill()
            assert process.wait() == -signal.SIGKILL, f"seed {seed}, kill {number}: {(tmp_path / 'log').read_text()}"
            assert not status(tmp_path / "out").runs
        assert run(tmp_path, "--resume").wait() == 0, f"seed {seed}: {(tmp_path / 'log').read_text()}"
        assert LIMIT.read_text() == before
        assert [name for name in namespaces.names() if name.startswith(f"ng-{NAME}-")] == []
    finally:
        if any(lab.name == NAME for lab in upkeep.status()):
            upkeep.take_down(NAME)
    found = status(tmp_path / "out")
    assert not found.runs
    assert [(one.done, one.left, one.broken) for one in found.measurements] == [(2, 0, "")] * 4
    happened = list(entries(tmp_path / "out"))
    events = Counter(entry["event"] for entry in happened)
    told = f"seed {seed}: {events}"
    assert events["session"] == KILLS + 1, told
    assert events["repetition"] == 8, told
    assert events["repetition-redone"] == 0, told
    # Only a trial that was running was lost.
    assert 0 <= events["trial"] - events["answer"] <= KILLS, told
    counted = [sum(read_summary(tmp_path / "out" / one.folder).trials.values()) for one in found.measurements]
    assert sum(counted) == events["answer"], told
