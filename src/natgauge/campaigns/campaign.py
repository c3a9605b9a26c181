# SPDX-License-Identifier: Apache-2.0
"""A campaign as a folder: begun, or gone on with where it stopped.

`campaign.json` the plan, what it was read as and by which natgauge; `environment.json` the machine; `journal.jsonl`
everything that happened; `results/` one folder for each measurement that has ended.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from natgauge.bench.bench import check_host
from natgauge.bench.question import CellOptions
from natgauge.bench.watch import Silent, Watch
from natgauge.campaigns import plan as plans
from natgauge.campaigns import spread
from natgauge.campaigns.bench_protocol import LabBench, MakeBench
from natgauge.campaigns.cells import PlannedCell, points
from natgauge.campaigns.estimate import repetitions
from natgauge.campaigns.journal import Journal, entries
from natgauge.campaigns.run import CellRunner, LocalRunner, Session
from natgauge.campaigns.state import CampaignState
from natgauge.duts.recipe import digest
from natgauge.errors import NatgaugeError, UsageError, fault
from natgauge.host import machine
from natgauge.labs import upkeep
from natgauge.measurements.conditions import moving_facts
from natgauge.records.parameters import describe
from natgauge.records.store import (
    CAMPAIGN,
    ENVIRONMENT,
    ENVIRONMENT_SCHEMA,
    RESULTS,
    TRACEBACK,
    Store,
    read_document,
    write_document,
)
from natgauge.version import VERSION

CAMPAIGN_SCHEMA: Final = "natgauge-campaign-1"


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOrder:
    """What `natgauge run` is told.

    Attributes:
        plan: the plan's file.
        out: folder of the campaign; None = `results/<name of the plan>`.
        resume: whether to go on with the campaign in that folder.
        only: names or patterns of cells; empty = all.
        retry_broken: whether what broke is tried again.
        host_name: whether the host's name goes into what may be published.
        on: who measures: `dask://HOST:PORT`, the workers at that scheduler, or `local:N`, so many on this machine; None
            = this process.
    """

    plan: Path
    out: Path | None = None
    resume: bool = False
    only: Sequence[str] = ()
    retry_broken: bool = False
    host_name: bool = False
    on: str | None = None


def run(
    order: RunOrder, watch: Watch | None = None, *, make_bench: MakeBench | None = None
) -> tuple[Path, CampaignState]:
    """Run a campaign, or go on with one, until nothing is left to do.

    Args:
        order: what is to be done.
        watch: is told what happens.
        make_bench: makes benches; None = those in labs.

    Returns:
        The campaign's folder, and how it stands.

    Raises:
        UsageError: the plan or the folder is wrong; nothing was touched.
        HostError: this host cannot do it, or the disk is full; the campaign can be gone on with.
        BrokenError: a lab cannot be made.
        FaultError: a fault of natgauge; its traceback lies in the folder.
    """
    plan = plans.read(order.plan)
    folder = order.out or RESULTS / plan.name
    begun = _begun(folder, resume=order.resume)
    seed = secrets.randbelow(2**63) if plan.seed is None else plan.seed
    if begun is not None:
        seed = begun["seed"]
        _refuse_other(plan, begun, folder)
        if make_bench is None:
            _undo_left_behind(watch or Silent())
    with _measuring(order, plan.model_copy(update={"seed": seed}), make_bench) as way:
        if begun is None:
            _begin(folder, plan, way, seed)
        else:
            _refuse_other_recipes(way.cells, begun, folder)
            if order.on is None:
                _refuse_other_machine(folder, way.machines[0])
        with Journal(folder) as journal:
            session = Session(
                folder=folder,
                points=way.cells,
                seed=seed,
                journal=journal,
                state=CampaignState.of(entries(folder)),
                visits=way.visits,
                watch=watch or Silent(),
                only=order.only,
            )
            _run(session, retry_broken=order.retry_broken)
        return folder, session.state


@dataclass(frozen=True, slots=True)
class _Way:
    """How the cells are measured.

    Attributes:
        cells: of the plan.
        visits: makes visits of them.
        machines: facts of each that measures, at least one.
    """

    cells: Sequence[PlannedCell]
    visits: CellRunner
    machines: Sequence[Mapping[str, Any]]


@contextmanager
def _measuring(order: RunOrder, plan: plans.Plan, make_bench: MakeBench | None) -> Iterator[_Way]:
    """The cells, and who visits them; nothing is touched before a visit.

    Raises:
        UsageError: the plan or `--on` is wrong.
        HostError: this host cannot measure, or there is nobody who can.
    """
    if order.on is None:
        cells = points(plan, str(order.plan))
        if make_bench is None:
            check_host()
        facts = machine.facts(host_name=order.host_name)
        yield _Way(cells, LocalRunner(make_bench or partial(LabBench, machine.facts), facts), [facts])
        return
    where = spread.where(order.on)
    spread.need_dask()
    from natgauge.campaigns.spread.cluster import coordinator  # noqa: PLC0415 - Dask takes seconds to load

    labs = [plan.lab.get("lab_name", CellOptions().lab_name)]
    with coordinator(where, labs, make_bench=make_bench, host_name=order.host_name) as found:
        cells = found.plan_cells(plan, str(order.plan))
        yield _Way(cells, found, found.workers.machines)


def _undo_left_behind(watch: Watch) -> None:
    """Clean up behind a session that was killed; what cannot be undone is shown, and does not end the campaign."""
    try:
        done = upkeep.undo_left_behind()
    except NatgaugeError as error:
        watch.stage(f"what a killed run left stays: {error}")
        return
    if done:
        watch.stage(f"undoing what a killed run left: {', '.join(done)}")


def _run(session: Session, *, retry_broken: bool) -> None:
    session.note("session", natgauge=VERSION, only=list(session.only))
    if retry_broken:
        session.note("retried")
    how = "ended"
    try:
        session.run()
    except BaseException as error:
        how = str(error) if isinstance(error, NatgaugeError) else type(error).__name__.lstrip("_")
        if isinstance(error, Exception) and not isinstance(error, (NatgaugeError, BrokenPipeError)):
            raise fault(error, [session.folder / TRACEBACK]) from error
        raise
    finally:
        _note_end(session, how)


def _note_end(session: Session, how: str) -> None:
    """That the session is over, where the disk still takes it: the journal is whole without that, too."""
    try:
        session.note("session-ended", how=how)
    except NatgaugeError:
        return


def _begun(folder: Path, *, resume: bool) -> Mapping[str, Any] | None:
    """What was noted when the campaign in this folder began; None = it is to begin now.

    Raises:
        UsageError: there is one, or none, or it is of another version.
    """
    there = (folder / CAMPAIGN).exists()
    if resume:
        if not there:
            raise UsageError(
                f"--resume: {folder} holds no campaign; leave it out to begin one, or name its folder: --out"
            )
        return read_document(folder / CAMPAIGN, CAMPAIGN_SCHEMA)
    if there:
        raise UsageError(f"campaign: {folder} holds one already; go on with it by --resume, or name another: --out")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"campaign: {folder} is there and is no empty folder; name another: --out")
    return None


def _begin(folder: Path, plan: plans.Plan, way: _Way, seed: int) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"campaign: cannot make {folder}: {error.strerror}; name another: --out") from error
    others = {"other_machines": way.machines[1:]} if len(way.machines) > 1 else {}
    Store(folder).write_environment({"machine": way.machines[0], **others})
    # Last: a folder with this file holds a campaign that can be gone on with.
    write_document(
        folder / CAMPAIGN,
        {
            "schema": CAMPAIGN_SCHEMA,
            "natgauge": VERSION,
            "name": plan.name,
            "plan": plan.model_dump(mode="json", exclude_none=True),
            "sha256": plan.digest,
            "seed": seed,
            "recipes": _recipes(way.cells),
            "cells": [
                {
                    "name": point.name,
                    "device": point.device,
                    "values": point.values,
                    "measurements": _measurements(point),
                }
                for point in way.cells
            ],
        },
    )


def _measurements(point: PlannedCell) -> list[dict[str, Any]]:
    taken = repetitions(point)
    return [
        {"name": one.name, "repetitions": one.most_repetitions, "estimated_seconds": taken[one.name].seconds}
        for one in point.measurements
    ]


def _recipes(cells: Sequence[PlannedCell]) -> dict[str, str]:
    return {point.device: digest(point.recipe) for point in cells}


def _refuse_other(plan: plans.Plan, begun: Mapping[str, Any], folder: Path) -> None:
    """Figures of one campaign are measured one way, from its first repetition to its last."""
    if begun["natgauge"] != VERSION:
        raise UsageError(
            f"campaign: {folder} was begun by natgauge {begun['natgauge']}, this is {VERSION}, which may measure "
            "otherwise; go on with that one, or begin anew: --out"
        )
    if begun["sha256"] != plan.digest:
        now = plan.model_dump(mode="json", exclude_none=True)
        other = ", ".join(name for name in {**begun["plan"], **now} if begun["plan"].get(name) != now.get(name))
        raise UsageError(
            f"campaign: the plan is another one than when {folder} was begun ({other or 'its meaning'} changed); "
            "take the old plan, or begin anew: --out"
        )


def _refuse_other_recipes(cells: Sequence[PlannedCell], begun: Mapping[str, Any], folder: Path) -> None:
    for device, now in _recipes(cells).items():
        if begun["recipes"].get(device) != now:
            raise UsageError(
                f"campaign: the recipe {device} has changed since {folder} was begun; restore it, or begin anew: --out"
            )


def _refuse_other_machine(folder: Path, facts: Mapping[str, Any]) -> None:
    environment = read_document(folder / ENVIRONMENT, ENVIRONMENT_SCHEMA)
    if "other_machines" in environment:
        raise UsageError(
            f"campaign: {folder} was begun on several machines, so this one alone cannot go on with it; name them: --on"
        )
    before = environment["machine"]
    for name, was, now in _facts_that_move(before, facts):
        if was != now:
            raise UsageError(
                f"campaign: {name} is {now!r} now, it was {was!r} when {folder} was begun: its "
                "repetitions would not be of one machine; restore that, or begin anew: --out"
            )


def _facts_that_move(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    was, found = moving_facts(before), moving_facts(now)
    for name in found:
        yield describe(name).label, was[name], found[name]
