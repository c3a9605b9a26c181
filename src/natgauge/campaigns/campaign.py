# SPDX-License-Identifier: Apache-2.0
"""Begin a campaign in a new folder, or resume the one in a folder.

`campaign.json`: the plan as it was read, and natgauge's version. `plan.toml`: the plan's text. `environment.json`: the
machine. `journal.jsonl`: a line for every event. `results/`: one folder for each measurement that has ended. A campaign
that ended with an error before its first trial leaves no folder: nobody has to resume it.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from natgauge import cleaning
from natgauge.campaigns import plan as plans
from natgauge.campaigns.cells import CellMeasurement, PlannedCell, points
from natgauge.campaigns.estimate import checked_estimate, repetitions
from natgauge.campaigns.journal import Journal, entries
from natgauge.campaigns.run import CellRunner, Session, run_here
from natgauge.campaigns.state import CampaignState
from natgauge.errors import NatgaugeError, UsageError, fault, unwritable
from natgauge.gateways.recipe import digest
from natgauge.host import machine
from natgauge.labs.common import locks
from natgauge.measurements.measure import LabBench, MakeBench
from natgauge.measurements.record import moving_facts
from natgauge.records.campaign import LEAST_ESTIMATE, MOST_ESTIMATE, CampaignCell, CampaignMeasurement, CampaignRecord
from natgauge.records.parameters import describe
from natgauge.records.record import read_document, read_record
from natgauge.records.store import (
    CAMPAIGN,
    ENVIRONMENT,
    ENVIRONMENT_SCHEMA,
    JOURNAL,
    PLAN_TEXT,
    RESULTS,
    TRACEBACK,
    Store,
    plain,
    refuse_name,
    write_document,
    write_text,
)
from natgauge.setup.setup import check_host
from natgauge.trial.controls import Observer, Silent
from natgauge.version import exact_version

#: What a campaign writes beside its journal before its first trial; the last one first, so that what is left never
#: looks like one, nor its plan like a user's.
_FILES: Final = (CAMPAIGN, PLAN_TEXT, ENVIRONMENT)
#: Events of the journal from which on there is something to keep: what was measured, or why it could not be.
_KEPT: Final = frozenset({"trial", "repetition", "result", "broken", "device-failed"})


@dataclass(frozen=True, slots=True)
class Means:
    """A plan's cells, what measures them, and the facts of each machine that does, at least one."""

    cells: Sequence[PlannedCell]
    runner: CellRunner
    machines: Sequence[Mapping[str, Any]]


class WhereMeasured(Protocol):
    """Where repetitions are measured: in this process, or by workers."""

    def __call__(self, plan: plans.Plan, file: str, *, host_name: bool) -> AbstractContextManager[Means]:
        """Plan the cells of the plan in a file for the machines that measure them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOrder:
    """Options of `natgauge run`.

    Attributes:
        out: folder of the campaign; None = `results/<name of the plan>`.
        only: names or patterns of cells; empty = all.
        lab_name: None = the plan's.
        elsewhere: what measures the campaign's repetitions; None = this process.
    """

    plan: Path
    out: Path | None = None
    resume: bool = False
    only: Sequence[str] = ()
    retry_broken: bool = False
    host_name: bool = False
    lab_name: str | None = None
    elsewhere: WhereMeasured | None = None

    def read(self) -> plans.Plan:
        """Read the plan."""
        plan = plans.read(self.plan)
        return plan if self.lab_name is None else plan.in_lab(self.lab_name)

    @property
    def folder(self) -> Path:
        """The folder of the campaign."""
        return self.out or RESULTS / self.read().name


def orders(plans_of: Sequence[Path], order: RunOrder) -> list[RunOrder]:
    """Return the order of each plan, at least one; nothing is touched.

    The campaigns of several plans are in folders of their own in `out`, named after the plans. With `resume`, a plan
    whose campaign has not begun begins.
    """
    if len(plans_of) == 1:
        return [replace(order, plan=plans_of[0])]
    if order.only:
        raise UsageError(f"--only: {order.only[0]}: names a cell of one plan, and {len(plans_of)} are given; give one")
    every: dict[str, RunOrder] = {}
    for path in plans_of:
        plan = replace(order, plan=path).read()
        if order.elsewhere is None:
            checked_estimate(points(plan, str(path)), str(path))
        if plan.name in every:
            raise UsageError(
                f"plan: {path} and {every[plan.name].plan} are both called {plan.name}; give one of them another name"
            )
        folder = (order.out or RESULTS) / plan.name
        each = replace(order, plan=path, out=folder, resume=order.resume and (folder / CAMPAIGN).exists())
        _begun(folder, path, resume=each.resume)
        every[plan.name] = each
    return list(every.values())


def has_begun(order: RunOrder) -> bool:
    """Whether the folder of an order holds a campaign; false where its plan cannot be read."""
    with suppress(NatgaugeError):
        return (order.folder / CAMPAIGN).exists()
    return False


def run(
    order: RunOrder, observer: Observer | None = None, *, make_bench: MakeBench | None = None
) -> tuple[Path, CampaignState]:
    """Run a campaign, or resume one, until nothing is left to measure; without `make_bench` on benches in labs."""
    plan = order.read()
    folder = order.out or RESULTS / plan.name
    begun = _begun(folder, order.plan, resume=order.resume)
    seed = secrets.randbelow(2**63) if plan.seed is None else plan.seed
    if begun is not None:
        seed = begun.seed
        _refuse_other(plan, begun, folder)
        if make_bench is None:
            _undo_left_behind(observer or Silent())
    seeded = plan.model_copy(update={"seed": seed})
    here: WhereMeasured = partial(_here, make_bench)
    with (order.elsewhere or here)(seeded, str(order.plan), host_name=order.host_name) as setup:
        begins: AbstractContextManager[None] = nullcontext()
        if begun is None:
            checked_estimate(setup.cells, str(order.plan))
            begins = _left_unless_used(folder)
        else:
            _refuse_other_inputs(setup.cells, begun, folder)
            if order.elsewhere is None:
                _refuse_other_machine(folder, setup.machines[0])
        with begins, _marked_as_begun():
            if begun is None:
                _make_folder(folder)
            with locks.kept(), Journal(folder) as journal:
                if begun is None:
                    _begin(journal, plan, setup, seed)
                session = Session(
                    folder=folder,
                    points=setup.cells,
                    seed=seed,
                    journal=journal,
                    state=CampaignState.of(folder),
                    runner=setup.runner,
                    observer=observer or Silent(),
                    only=order.only,
                )
                session.check()
                _run(session, retry_broken=order.retry_broken)
        return folder, session.state


@contextmanager
def _here(make_bench: MakeBench | None, plan: plans.Plan, file: str, *, host_name: bool) -> Iterator[Means]:
    """Plan the cells for this machine; labs are made by the cell runs."""
    cells = points(plan, file)
    if make_bench is None:
        check_host()
    facts = machine.facts(host_name=host_name)
    yield Means(cells, partial(run_here, make_bench or LabBench, facts), [facts])


def _undo_left_behind(observer: Observer) -> None:
    """Undo what killed sessions left; a failure to do so is reported, and does not end the campaign."""
    try:
        done = cleaning.undo_left_behind()
    except NatgaugeError as error:
        observer.stage(f"what a killed run left stays: {error}")
        return
    if done:
        observer.stage(f"undoing what a killed run left: {', '.join(done)}")


def _run(session: Session, *, retry_broken: bool) -> None:
    session.append_line("session", natgauge=exact_version(), only=list(session.only))
    how = "ended"
    try:
        if retry_broken:
            session.retry()
        session.run()
    except BaseException as error:
        how = str(error) if isinstance(error, NatgaugeError) else type(error).__name__.lstrip("_")
        if isinstance(error, Exception) and not isinstance(error, (NatgaugeError, BrokenPipeError)):
            raise fault(error, [session.folder / TRACEBACK]) from error
        raise
    finally:
        # The disk may be full; the journal is complete without this line.
        with suppress(NatgaugeError):
            session.append_line("session-ended", how=how)


def _begun(folder: Path, plan: Path, *, resume: bool) -> CampaignRecord | None:
    """Read `campaign.json` of the campaign to be resumed; None = a new campaign of the plan in a file begins."""
    exists = (folder / CAMPAIGN).exists()
    if resume:
        if not exists:
            raise UsageError(
                f"--resume: {folder} holds no campaign; leave it out to begin one, or name its folder: --out"
            )
        return read_record(folder / CAMPAIGN, CampaignRecord)
    if folder.exists():
        # What it would replace, and remove after an error, may be the only copy.
        kept = folder / PLAN_TEXT
        _refuse_used(folder, own=kept.exists() and kept.samefile(plan))
    return None


def _refuse_used(folder: Path, *, own: bool = False) -> None:
    """Refuse what is there, unless it is a folder that a campaign may begin in; `own`: the plan is in it."""
    if _is_unused(folder) and not own:
        return
    if (folder / CAMPAIGN).exists():
        raise UsageError(f"campaign: {folder} holds one already; go on with it by --resume, or name another: --out")
    raise UsageError(f"campaign: {folder} is there and is no empty folder; name another: --out")


def _make_folder(folder: Path) -> None:
    refuse_name(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error, what="campaign", remedy="name another: --out") from error


def _begin(journal: Journal, plan: plans.Plan, setup: Means, seed: int) -> None:
    """Write what a campaign begins with into the folder of a journal, which no other natgauge has open."""
    folder = journal.path.parent
    # Another natgauge may have measured there since this one looked.
    _discard(journal)
    others = {"other_machines": setup.machines[1:]} if len(setup.machines) > 1 else {}
    Store(folder).write_environment({"machine": setup.machines[0], **others})
    if plan.text:
        write_text(folder / PLAN_TEXT, plan.text)
    # Written last: a folder with this file has a campaign that can be resumed.
    record = CampaignRecord(
        natgauge=exact_version(),
        name=plan.name,
        plan=plan.content(exclude_none=True),
        sha256=plan.digest,
        seed=seed,
        recipes=_recipes(setup.cells),
        cells=tuple(map(_cell, setup.cells)),
    )
    write_document(folder / CAMPAIGN, record.document())


def _cell(point: PlannedCell) -> CampaignCell:
    estimates = repetitions(point)
    return CampaignCell(
        name=point.name,
        device=point.device,
        values=plain(point.values),
        measurements=tuple(
            CampaignMeasurement(
                name=measurement.name,
                repetitions=measurement.most_repetitions,
                estimated_seconds=min(max(estimates[measurement.name].seconds, LEAST_ESTIMATE), MOST_ESTIMATE),
                file_sha256=_of_file(measurement),
            )
            for measurement in point.measurements
        ),
    )


def _recipes(cells: Sequence[PlannedCell]) -> dict[str, str]:
    return {point.device: digest(point.recipe) for point in cells}


def _of_file(measurement: CellMeasurement) -> str:
    """SHA-256 of what the settings of a measurement have read of a file; empty = they name none."""
    content = measurement.planned.settings.of_file
    return hashlib.sha256(content.encode()).hexdigest() if content else ""


def _refuse_other(plan: plans.Plan, begun: CampaignRecord, folder: Path) -> None:
    """Refuse a plan or a natgauge that differs: all repetitions of a campaign are measured in the same way."""
    if begun.natgauge != exact_version():
        raise UsageError(
            f"campaign: {folder} was begun by natgauge {begun.natgauge}, this is {exact_version()}, which may measure "
            "otherwise; go on with that version, or begin a new campaign: --out"
        )
    plan = plan.begun_as(begun.plan)
    if begun.sha256 not in plan.digests:
        now = plan.content(exclude_none=True)
        other = ", ".join(name for name in {**begun.plan, **now} if begun.plan.get(name) != now.get(name))
        raise UsageError(
            f"campaign: the plan is another one than when {folder} was begun ({other or 'its meaning'} changed); "
            "take the old plan, or begin a new campaign: --out"
        )


def _refuse_other_inputs(cells: Sequence[PlannedCell], begun: CampaignRecord, folder: Path) -> None:
    for device, now in _recipes(cells).items():
        if begun.recipes.get(device) != now:
            raise UsageError(
                f"campaign: the recipe {device} has changed since {folder} was begun; restore it, or begin a new "
                "campaign: --out"
            )
    kept = {(cell.name, each.name): each.file_sha256 for cell in begun.cells for each in cell.measurements}
    for cell in cells:
        for measurement in cell.measurements:
            before = kept.get((cell.name, measurement.name))
            if before and before != _of_file(measurement):
                raise UsageError(
                    f"campaign: the file that {measurement.name} of cell {cell.name} names has changed since {folder} "
                    "was begun; restore it, or begin a new campaign: --out"
                )


def _refuse_other_machine(folder: Path, facts: Mapping[str, Any]) -> None:
    environment = read_document(folder / ENVIRONMENT, ENVIRONMENT_SCHEMA)
    if "other_machines" in environment:
        raise UsageError(
            f"campaign: {folder} was begun on several machines, so this one alone cannot go on with it; name them: --on"
        )
    before = moving_facts(environment["machine"])
    for name, now in moving_facts(facts).items():
        if before[name] != now:
            raise UsageError(
                f"campaign: {describe(name).label} is {now!r} now, it was {before[name]!r} when {folder} was begun: "
                "its repetitions would not be of one machine; restore that, or begin a new campaign: --out"
            )


def _is_unused(folder: Path) -> bool:
    """Whether a folder is empty, or has a campaign without a trial, and nothing else.

    A plan that natgauge wrote lies beside a journal and the facts of the machine; any other is the user's.
    """
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else {""}
    if names - {*_FILES, JOURNAL} or (PLAN_TEXT in names and not names >= {JOURNAL, ENVIRONMENT}):
        return False
    return not (folder / JOURNAL).exists() or not any(line.get("event") in _KEPT for line in entries(folder))


def _discard(journal: Journal) -> None:
    """Remove what is beside a journal, and its lines; a folder that is used is refused."""
    folder = journal.path.parent
    _refuse_used(folder)
    for name in _FILES:
        (folder / name).unlink(missing_ok=True)
    journal.clear()


@contextmanager
def _marked_as_begun() -> Iterator[None]:
    try:
        yield
    except NatgaugeError as error:
        error.begun = True
        raise


@contextmanager
def _left_unless_used(folder: Path) -> Iterator[None]:
    """Remove what was made, folders above it included, if an error ends the block before the first trial."""
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        yield
    except NatgaugeError:
        with suppress(NatgaugeError, OSError):
            with Journal(folder) as journal:
                _discard(journal)
                journal.path.unlink()
            for path in made:
                path.rmdir()
        raise
