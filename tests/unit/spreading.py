# SPDX-License-Identifier: Apache-2.0
"""Campaigns on workers that are separate processes, with simulated gateways."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import dask
import pytest
from tests.plans import OneTrial, PlanOfTrial
from tests.unit.campaigning import PLAN, Benches, Simulated, campaign
from tests.unit.simulated import Gateway

from natgauge import spread
from natgauge.campaigns.campaign import RunOrder, run
from natgauge.campaigns.journal import entries
from natgauge.campaigns.state import CampaignState
from natgauge.inputs.question import Cell
from natgauge.labs.common import locks
from natgauge.spread import access, cluster, workers_of
from natgauge.spread.worker import Offer, core_groups
from natgauge.trial.controls import Observer

#: Two cells, of which one has a setting of the whole machine.
SMALL = PLAN.replace("[1000, 2000]", "[1000]")
WORKERS = min(2, len(core_groups()))
ON = f"local:{WORKERS}"
#: A trial takes so long, so that workers can be killed in one.
TRIAL_SECONDS = 0.02


class Slow(Gateway):
    """A gateway whose trials take a moment."""

    def measure(self, plan: PlanOfTrial) -> OneTrial:
        time.sleep(TRIAL_SECONDS)
        return super().measure(plan)


def _gateway(_cell: Cell) -> Gateway:
    return Slow(establishes=30_000, forwards=60_000)


def make_bench(cell: Cell, observer: Observer) -> Simulated:
    """A bench of a simulated gateway."""
    return Benches(gateway=_gateway)(cell, observer)


def deadly(cell: Cell, observer: Observer) -> Simulated:
    """The same, but one device kills the worker."""
    if cell.gateway == "nftables-nat44":
        os.kill(os.getpid(), signal.SIGKILL)
    return make_bench(cell, observer)


@pytest.fixture(autouse=True)
def own_run(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Locks need no privilege there, and workers are killed on purpose."""
    monkeypatch.setattr(locks, "RUN", tmp_path_factory.mktemp("run"))
    # What it takes for its settings is there once it is loaded.
    spread.need_dask()
    with dask.config.set({"distributed.scheduler.allowed-failures": 1000}):
        yield


def spread_out(
    folder: Path, observer: Any = None, *, plan: str = SMALL, on: str | None = ON, bench: Any = make_bench, **order: Any
) -> CampaignState:
    """Run the plan on workers, or go on with it."""
    path, out = folder / "small.toml", folder / "out"
    path.write_text(plan)
    resume = (out / "campaign.json").exists()
    elsewhere = None if on is None else partial(workers_of, on, make_bench=bench)
    return run(RunOrder(plan=path, out=out, resume=resume, elsewhere=elsewhere, **order), observer, make_bench=bench)[1]


def work(address: str, certificates: Path, waits: Callable[[str], None]) -> None:
    """Be a worker, which needs no privileges as long as it measures nothing, until its scheduler ends."""
    where = spread.where(address)
    offer = Offer(name="one", cores=(0,), labs=("default",), machine_wide=False)
    cluster.serve(where, access.security_of("worker", where, certificates, insecure=False), offer, waits)


def counted_once(folder: Path) -> None:
    """Each repetition has ended once, and its results folder has each of its trials once."""
    happened = list(entries(folder / "out"))
    ended = Counter(
        (one["cell"], one["measurement"], one["repetition"]) for one in happened if one["event"] == "repetition"
    )
    assert set(ended.values()) == {1}
    known: dict[tuple[str, str], dict[int, int]] = {}
    for one in happened:
        if one["event"] == "repetition":
            trials = known.setdefault((one["cell"], one["measurement"]), {})
            trials[one["repetition"]] = one["stored"]["trials"] - sum(trials.values())
    for (cell, measurement), trials in known.items():
        lines = (folder / "out" / "results" / f"{cell}-{measurement}" / "trials.jsonl").read_text().splitlines()
        told = Counter(json.loads(line)["repetition"] for line in lines)
        assert told == trials


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The campaign as one machine does it."""
    folder = tmp_path_factory.mktemp("alone")
    campaign(folder, Benches(), plan=SMALL)
    return folder
