# SPDX-License-Identifier: Apache-2.0
"""Campaigns on workers that are processes: their results are those of one machine, and faults are refused."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import distributed
import pytest
from tests.unit.campaigning import PLAN, asked, quick_disk, results
from tests.unit.spreading import WORKERS, alone, counted_once, make_bench, own_run, spread_out

from natgauge import spread
from natgauge.campaigns.journal import entries
from natgauge.campaigns.plan import parse, read
from natgauge.cli import run as command_line
from natgauge.errors import HostError, UsageError
from natgauge.spread import access, resources, workers
from natgauge.spread.cluster import ClosedScheduler, listening, workers_at
from natgauge.spread.worker import WorkerMachine
from natgauge.spread.workers import Workers

__all__ = ["alone", "own_run", "quick_disk"]


@pytest.mark.slow("starts worker processes, each of which imports Dask")
def test_many_workers_do_what_one_machine_does(alone: Path, tmp_path: Path) -> None:
    spread_out(tmp_path)
    assert results(tmp_path) == results(alone)
    assert asked(tmp_path) == asked(alone)
    counted_once(tmp_path)
    begun = [one for one in entries(tmp_path / "out") if one["event"] == "repetition"]
    assert {one["worker"]["beside"] for one in begun} == {WORKERS - 1}
    visits = {one["worker"] for one in entries(tmp_path / "out") if one["event"] == "visit"}
    assert visits == {one["worker"]["name"] for one in begun}
    # The hash table of connections is the whole machine's, so one worker has all cells that have one.
    assert len({one["worker"]["name"] for one in begun if one["cell"].startswith("nftables")}) == 1


def local(labs: list[str]) -> AbstractContextManager[Workers]:
    """A worker of this machine, with these labs."""
    where = spread.where("local:1")
    return workers_at(where, labs, access.client_of(where, None, insecure=False), make_bench=make_bench)


@pytest.mark.slow("starts worker processes, each of which imports Dask")
def test_a_lab_that_no_worker_has_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN + '\n[lab]\nlab_name = "rack"\n')
    plan = read(path).model_copy(update={"seed": 1})
    with local(["attic"]) as found:
        with pytest.raises(HostError, match=r'no worker has lab "rack", they have attic .* natgauge worker'):
            found.plan_cells(plan, "plan")
        assert found.plan_cells(read(path).model_copy(update={"seed": 1, "lab": {"lab_name": "attic"}}), "plan")
        several = plan.model_copy(update={"lab": {"lab_name": "attic", "placement": "isolated", "cores": "0,1"}})
        with pytest.raises(UsageError, match=r"plan: .*cores"):
            found.plan_cells(several, "plan")


def die(*_: Any, **__: Any) -> None:
    """Be a worker that is killed while it plans the cells."""
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow("starts worker processes, each of which imports Dask")
def test_a_worker_that_dies_while_it_plans_the_cells_is_no_fault_of_natgauge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    plan = read(path).model_copy(update={"seed": 1})
    with local(["lab"]) as found:
        monkeypatch.setattr(workers, "look", die)
        with pytest.raises(HostError, match=r"all at local:1 died while they were looked at"):
            found.plan_cells(plan, "plan")


def samples(*, dask_worker: distributed.Worker) -> bool:
    """Whether Dask takes samples of what a worker does."""
    return "profile" in dask_worker.periodic_callbacks


@pytest.mark.slow("starts worker processes, each of which imports Dask")
def test_nobody_samples_workers_while_they_measure() -> None:
    with local(["lab"]) as found:
        assert list(found.client.run(samples).values()) == [False]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Certificates of scheduler and campaign."""
    access.make_certificates(tmp_path / "certificates")
    return tmp_path / "certificates"


@pytest.fixture
def scheduler(folder: Path) -> Iterator[str]:
    """One without workers of ours, as `--on` names it."""
    named = {
        f"tls_{role}_{part}": str(folder / f"{role}{ending}.pem")
        for role in ("scheduler", "client")
        for part, ending in (("cert", ""), ("key", "-key"))
    }
    security = distributed.Security(require_encryption=True, tls_ca_file=str(folder / "ca.pem"), **named)
    with distributed.SpecCluster(
        scheduler={"cls": ClosedScheduler, "options": {**listening("127.0.0.1", security), "port": 0}},
        security=security,
        silence_logs=50,
    ) as cluster:
        yield cluster.scheduler_address.replace("tls://", "dask://")


def test_a_scheduler_without_a_worker_is_told_and_nothing_is_made(
    scheduler: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(PLAN)
    assert command_line(["run", "small.toml", "--on", scheduler, "--certificates", str(folder)]) == 3
    told = capsys.readouterr().err
    assert f"none is at {scheduler}; start one on each machine that is to measure: natgauge worker {scheduler}" in told
    assert told.count("\n") == 1
    assert not (tmp_path / "results").exists()


def test_a_scheduler_that_is_not_there_is_told(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(PLAN)
    assert command_line(["run", "small.toml", "--on", "dask://127.0.0.1:9", "--certificates", str(folder)]) == 3
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


class _Scheduler:
    """A scheduler at which these workers are, and its client."""

    def __init__(self, *offered: resources.Resources, python: str = "3.11.0", silent: bool = False) -> None:
        self.workers = {
            f"tcp://w:{number}": {"name": f"w{number}", "resources": one} for number, one in enumerate(offered)
        }
        self.python = python
        self.silent = silent
        self.scheduler = self

    def sync(self, request: Callable[[], Coroutine[Any, Any, Any]], *, callback_timeout: float) -> Any:
        """Run a coroutine within this time, as a client does."""
        return asyncio.run(asyncio.wait_for(request(), callback_timeout))

    async def identity(self, *, n_workers: int) -> Any:
        """Tell all its workers, or nothing ever."""
        assert n_workers == -1
        if self.silent:
            await asyncio.sleep(3600)
        return {"workers": self.workers}

    async def run(self, _function: Any, **_options: Any) -> Any:
        """Look at the machines, whose loads differ."""
        facts = {"kernel": "6.18", "cpu": {"model": "Made up"}}
        return {
            address: WorkerMachine({**facts, "load_average": [number]}, frozenset())
            for number, address in enumerate(self.workers)
        }

    async def get_versions(self) -> Any:
        here = {"packages": {"dask": "1", "distributed": "1", "python": "3.11.7.final.0"}}
        there = {"packages": {**here["packages"], "python": self.python}}
        return {"client": here, "scheduler": here, "workers": dict.fromkeys(self.workers, there)}


def offering(*offered: resources.Resources, **scheduler: Any) -> Any:
    """Workers that offer this."""
    client: Any = _Scheduler(*offered, **scheduler)
    return workers.Workers(client, "dask://a", host_name=False)


def test_a_worker_of_another_natgauge_is_refused() -> None:
    with pytest.raises(HostError, match=r"worker w1 at dask://a has natgauge 0\.0\.9, here is .*; .* the same version"):
        offering({resources.of_worker(): 1.0}, {"natgauge 0.0.9": 1.0})


def test_cells_are_planned_once_for_the_cores_of_all_workers_and_alike_machines_are_one() -> None:
    shares = [
        resources.Offer(name="w", cores=cores, labs=("default",), machine_wide=True).resources({})
        for cores in ((400, 401), (402, 403))
    ]
    found = offering(*shares, python="3.11.1")

    def planned(**lab: str) -> resources.Resources:
        cell = {"name": "one", "gateways": ["linux-ipv4"], "measure": [{"metric": "throughput"}], "seed": 1}
        (point,) = found.plan_cells(parse({**cell, "lab": {"placement": "isolated", **lab}}, "plan"), "plan")
        needed: resources.Resources = found.needs[point.name]
        return needed

    needs = planned(cores="403", sender_cores="402")
    assert (needs["core 402"], needs["core 403"]) == (1, 1)
    assert [one["load_average"] for one in found.machines] == [[0]]
    with pytest.raises(HostError, match="no worker has all it needs at once"):
        planned(cores="402", sender_cores="401")
    with pytest.raises(UsageError, match="core 0 cannot be used here; choose from 400,401,402,403"):
        planned(cores="0", sender_cores="401")


def test_workers_that_are_none_of_ours_are_left_alone() -> None:
    assert offering({resources.of_worker(): 1.0}, {"GPU": 1.0}).offers() == [{resources.of_worker(): 1.0}]


def test_a_worker_of_another_python_is_refused() -> None:
    with pytest.raises(HostError, match=r"worker w0 at dask://a has python 3\.13, here is 3\.11"):
        offering({resources.of_worker(): 1.0}, python="3.13.1")


def test_a_scheduler_that_answers_no_more_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "ANSWER_SECONDS", 0.05)
    with pytest.raises(HostError, match=r"the scheduler at dask://a is gone .* --resume"):
        offering({resources.of_worker(): 1.0}, silent=True)
