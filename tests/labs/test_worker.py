# SPDX-License-Identifier: Apache-2.0
"""`natgauge worker` at a scheduler: a real campaign is killed, then its worker, and all is measured and undone."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.labs.kills import children, faults
from tests.labs.program import command_line, small_plan
from tests.unit import strangers

from natgauge import cleaning
from natgauge.campaigns.journal import entries
from natgauge.campaigns.state import status
from natgauge.host.machine import usable_cpus
from natgauge.labs.common import namespaces
from natgauge.records.store import JOURNAL

pytestmark = [
    pytest.mark.soak,  # test_spread.py kills workers of simulated gateways, test_lab_netns.py kills labs
    pytest.mark.slow("a worker is killed and restarts in the middle of a campaign"),
]

NAME = "e2e-worker"
PLAN = small_plan("worker", NAME, ["linux-ipv4"], 2_000, throughput=False)
PATIENCE_SECONDS = 120.0


@pytest.fixture
def campaign_options(tmp_path: Path) -> Iterator[tuple[str, ...]]:
    """Where the scheduler is and with which certificates, as the documentation starts it."""
    assert natgauge(tmp_path, "certificates", "own").wait(PATIENCE_SECONDS) == 0
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"dask://127.0.0.1:{free.getsockname()[1]}"
    process = natgauge(tmp_path, "scheduler", address, "--certificates", "own")
    try:
        wait_for(tmp_path, "scheduler.log", b"waits for workers", process)
        yield address, "--certificates", "own"
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def natgauge(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """Start it; what it says is in a log."""
    with (folder / f"{arguments[0]}.log").open("a") as log:
        return subprocess.Popen(command_line(arguments), cwd=folder, stdout=log, stderr=log)


def wait_for(folder: Path, name: str, said: bytes, process: subprocess.Popen[bytes], times: int = 1) -> None:
    """Until a file has this in it `times` times."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not (folder / name).exists() or (folder / name).read_bytes().count(said) < times:
        assert process.poll() is None, (folder / f"{Path(name).stem}.log").read_text()
        assert time.monotonic() < until
        time.sleep(0.05)


def test_campaign_and_worker_are_killed_and_all_is_measured_and_undone(
    tmp_path: Path, campaign_options: tuple[str, ...]
) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    core = usable_cpus()[-1]
    own = f"{NAME}-c{core}"
    trial = b'"event":"trial"'
    worker = natgauge(tmp_path, "worker", *campaign_options, "--cores", str(core), "--lab", NAME, "--name", "one")
    try:
        wait_for(tmp_path, "worker.log", b"worker one waits for work", worker)
        # Nanny and worker run programs as root, for nobody without a certificate.
        ports = strangers.listening([worker.pid])
        assert [host for host, _ in ports] == ["127.0.0.1"] * 2
        assert {port: strangers.answered(port) for port in ports} == {port: [] for port in ports}
        run = natgauge(tmp_path, "run", "plan.toml", "--out", "out", "--on", *campaign_options)
        wait_for(tmp_path, f"out/{JOURNAL}", trial, run)
        # The worker ends the run that nobody waits for any more, and is free for the session that follows.
        run.kill()
        run.wait()
        before = (tmp_path / "out" / JOURNAL).read_bytes().count(trial)
        run = natgauge(tmp_path, "run", "plan.toml", "--out", "out", "--on", *campaign_options, "--resume")
        wait_for(tmp_path, f"out/{JOURNAL}", trial, run, before + 1)
        for victim in children(worker.pid):
            os.kill(victim, signal.SIGKILL)
        assert run.wait(PATIENCE_SECONDS) == 0, (tmp_path / "run.log").read_text()
    finally:
        worker.terminate()
        ended = worker.wait(PATIENCE_SECONDS)
    assert ended == 128 + signal.SIGTERM
    assert list(faults(tmp_path / "out")) == []
    assert [(one.done, one.broken) for one in status(tmp_path / "out").measurements] == [(2, "")]
    begun = [one for one in entries(tmp_path / "out") if one["event"] == "repetition"]
    assert {(one["worker"]["name"], *one["worker"]["cores"]) for one in begun} == {("one", core)}
    assert {one["parameters"]["place"]["lab"] for one in begun} == {own}
    # Two repetitions were lost, one with the campaign and one with the worker, and neither is in the journal.
    visits = [one for one in entries(tmp_path / "out") if one["event"] == "visit"]
    assert len(visits) == 4
    assert [one["repetition"] for one in begun] == [1, 2]
    assert [name for name in namespaces.names() if name.startswith(f"ng-{own}-")] == []
    assert own not in [lab.name for lab in cleaning.status()]
