# SPDX-License-Identifier: Apache-2.0
"""What runs beside the journal: visits are handed to Dask, and what they tell is written down here.

Which worker visits which cell, and when, is Dask's to decide, by resources and priorities; that a worker died, too.
What a visit told before belongs to the campaign, and whoever makes it again goes on from there or begins its repetition
anew.
"""

from __future__ import annotations

import json
import pickle
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import dask
from distributed import Client, Future, KilledWorker, Queue, Security

from natgauge.campaigns.cell_run import pending
from natgauge.campaigns.cells import MOST_CELLS, PlannedCell, each, whole
from natgauge.campaigns.plan import Plan
from natgauge.campaigns.run import Session, most_rounds
from natgauge.campaigns.spread import resources
from natgauge.campaigns.spread.worker import Message, RecordedCall, Task, WorkerView, is_busy, look, visit
from natgauge.duts.recipe import digest
from natgauge.errors import HostError, NatgaugeError, in_a_line
from natgauge.version import VERSION

_CONNECT_SECONDS: Final = "5s"
_LISTEN_SECONDS: Final = 0.5
#: A scheduler that takes longer to say whether there is a message is gone.
_ANSWER_SECONDS: Final = 60.0
#: What was put into a queue before a visit ended is there.
_LAST_SECONDS: Final = 5.0
_LONELY_SECONDS: Final = 10.0
#: How often it is looked whether somebody is gone.
_REVIVE_SECONDS: Final = 5.0
#: Packages that must be of one version on all sides, as Dask has it.
_ALIKE: Final = ("dask", "distributed")


def address_of(scheduler: str, security: Security) -> str:
    """A scheduler's address with Dask's protocol."""
    return f"{'tls' if security.require_encryption else 'tcp'}://{scheduler}"


@contextmanager
def connected(text: str, scheduler: str | Any) -> Iterator[Client]:
    """A client of a scheduler, or of a cluster.

    Raises:
        HostError: nobody answers there.
    """
    security = Security()
    address = address_of(scheduler, security) if isinstance(scheduler, str) else scheduler
    kept = {"security": security} if isinstance(scheduler, str) else {}
    try:
        client = Client(address, timeout=_CONNECT_SECONDS, set_as_default=False, name="natgauge", **kept)
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        raise HostError(
            f"workers: no Dask scheduler answers at {text} ({in_a_line(error)}); start one there with: dask scheduler"
        ) from None
    try:
        yield client
    finally:
        with suppress(OSError, TimeoutError):
            client.close(timeout=_CONNECT_SECONDS)


@dataclass(slots=True)
class _Away:
    """A visit that somebody makes.

    Attributes:
        point: the cell.
        round_number: of the round.
        future: Dask's.
        attempt: the one that is listened to; empty = none.
        heard: messages of it.
        begun: attempts since a repetition ended.
        worker: that makes it.
        ended: whether it has said its last word.
    """

    point: PlannedCell
    round_number: int
    future: Future[Any]
    attempt: str = ""
    heard: int = 0
    begun: int = 0
    worker: str = ""
    ended: bool = False


class Team:
    """Workers at a scheduler. As `natgauge.campaigns.run.Visits` it has them make all visits.

    Attributes:
        facts: of one worker's machine.
        machines: of all that differ.
    """

    def __init__(self, client: Client, text: str, *, host_name: bool, revive: Callable[[], None] | None = None) -> None:
        """Ask who is there.

        Args:
            client: of the scheduler.
            text: how messages call it.
            host_name: whether the workers' names are told.
            revive: starts those workers again that are gone for good; None = they are not ours to start.

        Raises:
            HostError: nobody is, or a worker is of another version.
        """
        self.facts: Mapping[str, Any] = {}
        self.machines: list[Mapping[str, Any]] = []
        self._client = client
        self._text = text
        self._host_name = host_name
        self._name = f"natgauge-{uuid.uuid4().hex}"
        self._plan: Plan | None = None
        self._needs: dict[str, resources.Resources] = {}
        self._away: dict[str, _Away] = {}
        self._places: dict[int, dict[str, int]] = {}
        self._lonely = 0.0
        self._revive = revive
        self._revived = time.monotonic()
        self._mute = False
        # As often as Dask itself would try a task on workers that die.
        self._most_attempts = 1 + int(dask.config.get("distributed.scheduler.allowed-failures"))
        self._refuse()
        self._number = len(self._workers())

    def _workers(self) -> dict[str, dict[str, Any]]:
        """Those of natgauge, by address."""
        every = self._client.scheduler_info(n_workers=-1)["workers"]
        return {where: one for where, one in every.items() if resources.is_ours(one["resources"])}

    def _offered(self) -> list[resources.Resources]:
        return [one["resources"] for one in self._workers().values()]

    def _refuse(self) -> None:
        workers = self._workers()
        if not workers:
            raise HostError(
                f"workers: none is at {self._text}; start one on each machine that is to measure: "
                f"natgauge worker {self._text}"
            )
        for one in workers.values():
            if (version := resources.version_of(one["resources"])) != VERSION:
                raise HostError(
                    f"workers: {one['name']} at {self._text} is natgauge {version}, this is {VERSION}: their figures "
                    "would not be of one kind; install the same one there, and start it again"
                )
        found: Any = self._client.get_versions()
        here = found["client"]["packages"]
        names = {where: f"worker {one['name']}" for where, one in workers.items()}
        there = {"the scheduler": found["scheduler"], **{names[at]: found["workers"][at] for at in names}}
        for who, told in there.items():
            for package in (*_ALIKE, "python"):
                mine, its = (_minor(package, packages.get(package)) for packages in (here, told["packages"]))
                if mine != its:
                    raise HostError(
                        f"workers: {who} at {self._text} has {package} {its}, here is {mine}: they would not "
                        "understand each other; install the same version there, and start it again"
                    )

    def points(self, plan: Plan, where: str) -> tuple[PlannedCell, ...]:
        """Every cell of the plan, each planned by a worker that can measure it; nothing is touched.

        Raises:
            PlanError: a cell cannot be measured by anyone.
            HostError: nobody has what a cell needs, or can measure at all.
        """
        # Only whether there are too many cells is asked here, where no cores are looked at.
        list(each(plan, where, only=""))
        workers, self._needs = self._workers(), {}
        looks = self._looks(plan, where, list(workers))
        for one in looks:
            if one.wrong:
                raise HostError(f"workers: {one.name} at {self._text} cannot measure: {one.wrong}")
            if all(resources.likeness(one.facts, 0) != resources.likeness(other, 0) for other in self.machines):
                self.machines.append(one.facts)
            self._needs = {**one.needs, **self._needs}
        self.facts = self.machines[0]
        # Who knows most cells speaks of their order, and of what nobody can do.
        best = max(looks, key=lambda one: len(one.needs))
        good = {name: cell for one in looks for name, cell in one.tried if isinstance(cell, PlannedCell)}
        cells = whole([(name, good.get(name, cell)) for name, cell in best.tried], where)
        every = [one["resources"] for one in workers.values()]
        for cell in cells:
            if not any(resources.satisfied(self._needs[cell.name], offered) for offered in every):
                self._refuse_lacking(cell, self._needs[cell.name], every)
        self._plan = plan
        return cells

    def _looks(self, plan: Plan, where: str, workers: list[str]) -> list[WorkerView]:
        """What each of these workers says of the plan; who dies meanwhile says nothing."""
        said: dict[str, WorkerView | Exception] = self._client.run(
            look, plan, where, host_name=self._host_name, workers=workers, on_error="return"
        )
        for one in said.values():
            if isinstance(one, Exception) and not isinstance(one, OSError):
                raise one
        if looks := [one for one in said.values() if isinstance(one, WorkerView)]:
            return looks
        raise HostError(f"workers: all at {self._text} died while they looked at the plan; start them, and try again")

    def _refuse_lacking(
        self, point: PlannedCell, wanted: resources.Resources, every: Sequence[resources.Resources]
    ) -> None:
        lacking = resources.lacking(wanted, every)
        raise HostError(
            f"workers: cell {point.name}: {lacking} (at {self._text}); start one that has, see: natgauge worker --help"
        )

    # While a campaign runs

    def __call__(self, session: Session, points: Sequence[PlannedCell]) -> None:
        """Have every visit made.

        Raises:
            HostError: a worker cannot do it, the scheduler is gone, or the journal cannot be written.
            NatgaugeError: a lab cannot be made.
        """
        with self._lost_scheduler():
            queue = Queue(self._name, client=self._client, maxsize=1)
            try:
                for point in points:
                    self._refuse_unlike(session, point)
                for point in points:
                    self._send(session, points, point)
                while self._away:
                    self._listen(session, queue)
                    self._revive_lost()
                    for away in list(self._away.values()):
                        if away.future.done():
                            self._over(session, points, away, queue)
            finally:
                self._stop(queue)

    @contextmanager
    def _lost_scheduler(self) -> Iterator[None]:
        try:
            yield
        except NatgaugeError:
            raise
        except OSError as error:
            raise HostError(
                f"workers: the scheduler at {self._text} is gone ({type(error).__name__}); all that came home is kept: "
                "start it again, then go on with --resume"
            ) from error

    def _stop(self, queue: Queue) -> None:
        """Nobody is listened to any more; a visit that still runs ends at its next line."""
        if not self._mute:
            with suppress(OSError, TimeoutError):
                self._client.cancel([away.future for away in self._away.values()], force=True)
                queue.close()
        self._away.clear()

    def busy(self) -> bool:
        """Whether a worker still visits a cell, as far as one can be asked."""
        if self._mute:
            return False
        # Who dies while he is asked visits nothing any more.
        told = self._client.run(is_busy, workers=list(self._workers()), on_error="ignore")
        return any(told.values())

    def _wanted(self, session: Session, point: PlannedCell) -> resources.Resources:
        """Repetitions of one result are all measured on machines that are alike."""
        wanted = self._needs[point.name]
        for asked in point.measurements:
            for one in session.state.measurement(point.name, asked.name).ended[:1]:
                worker, machine = one.begun.get("worker"), one.begun["machine"]
                alike = resources.likeness(machine, len(machine["cpus_online"])) if worker is None else worker["like"]
                return {**wanted, **resources.like(alike)}
        return wanted

    def _refuse_unlike(self, session: Session, point: PlannedCell) -> None:
        wanted, every = self._wanted(session, point), self._offered()
        left = any(pending(session.state, point, number) for number in range(1, most_rounds([point]) + 1))
        if left and every and not any(resources.satisfied(wanted, offered) for offered in every):
            self._refuse_lacking(point, wanted, every)

    def _send(self, session: Session, points: Sequence[PlannedCell], point: PlannedCell, begun: int = 0) -> None:
        """Hand the next visit of a cell to Dask; earlier rounds go first, in each the order that it has."""
        assert self._plan is not None  # noqa: S101 - cells come from `points`
        for number in range(1, most_rounds([point]) + 1):
            if pending(session.state, point, number):
                break
        else:
            return
        if number not in self._places:
            order = session.order(points, number)
            self._places[number] = {one.name: place for place, one in enumerate(order)}
        task = Task(
            plan=self._plan.model_copy(update={"seed": session.seed}),
            cell=point.name,
            recipe=digest(point.recipe),
            round_number=number,
            queue=self._name,
            host_name=self._host_name,
        )
        future = self._client.submit(
            visit,
            task,
            key=f"natgauge-visit-{uuid.uuid4().hex}",
            pure=False,
            resources=self._wanted(session, point),
            priority=-(number * MOST_CELLS + self._places[number][point.name]),
        )
        self._away[point.name] = _Away(point, number, future, begun=begun)

    def _listen(self, session: Session, queue: Queue) -> None:
        try:
            message = self._next(queue, _LISTEN_SECONDS)
        except TimeoutError:
            self._tell_lonely(session)
            return
        self._lonely = 0.0
        self._take(session, message)

    def _next(self, queue: Queue, seconds: float) -> Message:
        """The next message.

        Raises:
            TimeoutError: there is none for so long.
            ConnectionError: the scheduler does not even say so; it is asked nothing more.
        """
        until = time.monotonic() + seconds + _ANSWER_SECONDS
        try:
            message: Message = queue.get(timeout=seconds, callback_timeout=seconds + _ANSWER_SECONDS)
        except TimeoutError:
            if time.monotonic() >= until:
                self._mute = True
                raise ConnectionError from None
            raise
        return message

    def _revive_lost(self) -> None:
        """A worker that is killed while it starts is given up by whoever watches it: nobody else starts it again."""
        if self._revive is None or time.monotonic() - self._revived < _REVIVE_SECONDS:
            return
        self._revived = time.monotonic()
        if len(self._workers()) < self._number:
            self._revive()

    def _tell_lonely(self, session: Session) -> None:
        """Say so, where nobody is there; who comes back is given work again."""
        self._lonely += _LISTEN_SECONDS
        if self._lonely % _LONELY_SECONDS == 0 and not self._workers():
            session.watch.stage(f"no worker is at {self._text}; waiting for one")

    def _take(self, session: Session, message: Message) -> None:
        kind, cell, attempt, number, content = message
        away = self._away.get(cell)
        if kind == "begin":
            self._begin(session, away, attempt, content)
            return
        if away is None or attempt != away.attempt:
            # Somebody that the scheduler had given up; another one makes this visit.
            return
        if number <= away.heard:
            # Put twice, because the scheduler's word was late.
            return
        away.heard += 1
        if number != away.heard:
            # A message is missing, so none that follows it may count.
            away.attempt = ""
        elif kind == "line":
            self._write(session, away, json.loads(content))
        elif kind == "end":
            away.ended = True
        elif kind == "stage":
            session.watch.stage(f"{away.worker}: {content}")
        else:
            event = pickle.loads(content)  # noqa: S301 - by a worker that runs as root on its machine
            session.watch.event(replace(event, metric=f"{cell} {event.metric}"))

    @staticmethod
    def _write(session: Session, away: _Away, line: dict[str, Any]) -> None:
        event = line["event"]
        fields = {name: value for name, value in line.items() if name not in {"schema", "event", "at"}}
        session.note(event, sync=event != "trial", **fields)
        if event == "repetition-ended":
            away.begun = 0

    def _begin(self, session: Session, away: _Away | None, attempt: str, worker: str) -> None:
        """Answer a visit that begins; it is the one that counts from now on."""
        if away is not None:
            away.ended = True
        reply = Queue(f"{self._name}-{attempt}", client=self._client)
        answer = None
        if away is not None and away.begun < self._most_attempts and self._is_pending(session, away):
            away.attempt, away.heard, away.worker, away.begun = attempt, 0, worker, away.begun + 1
            away.ended = False
            session.note("visit", cell=away.point.name, round=away.round_number, worker=worker)
            told = f"cell {away.point.name}, round {away.round_number}: {session.left()}"
            session.watch.stage(f"{worker}: {told}")
            answer = self._answer(session, away, worker)
        try:
            reply.put(b"" if answer is None else pickle.dumps(answer))
        finally:
            reply.close()

    @staticmethod
    def _is_pending(session: Session, away: _Away) -> bool:
        return bool(pending(session.state, away.point, away.round_number))

    def _answer(self, session: Session, away: _Away, worker: str) -> RecordedCall:
        every = {one["name"]: one["resources"] for one in self._workers().values()}
        point = away.point
        return RecordedCall(
            measurements={
                (cell, name): known for (cell, name), known in session.state.measurements.items() if cell == point.name
            },
            broken=session.state.broken_devices.get(point.device) or session.state.broken_cells.get(point.name) or "",
            beside=resources.beside(every.get(worker, {}), list(every.values())),
        )

    def _over(self, session: Session, points: Sequence[PlannedCell], away: _Away, queue: Queue) -> None:
        """A visit has ended, however it did."""
        error = None if away.future.status == "finished" else self._why(away.future)
        if error is None:
            self._hear_out(session, away, queue)
        elif not isinstance(error, KilledWorker):
            if isinstance(error, NatgaugeError) and away.worker:
                raise type(error)(f"worker {away.worker}: {error}") from error
            # With the traceback that it has there.
            away.future.result()
        if away.begun >= self._most_attempts and self._is_pending(session, away):
            cause = f"{away.begun} visits in a row ended without a repetition, the last one on {away.worker}: "
            cause += "the worker died, or was not heard"
            session.note("broken", scope="cell", device=away.point.device, cell=away.point.name, cause=cause)
        del self._away[away.point.name]
        session.finish_all(away.point)
        self._send(session, points, away.point, away.begun)

    def _why(self, future: Future[Any]) -> BaseException:
        if future.status in ("cancelled", "lost"):
            raise ConnectionError
        error = future.exception()
        assert isinstance(error, BaseException)  # noqa: S101 - it has ended in one
        return error

    def _hear_out(self, session: Session, away: _Away, queue: Queue) -> None:
        """Take what is left of a visit's messages; other visits' come in between.

        What it returned is not asked for: that is lost with a worker that dies now, and Dask would visit again.
        """
        with suppress(TimeoutError):
            while not away.ended:
                self._take(session, self._next(queue, _LAST_SECONDS))


def _minor(package: str, version: Any) -> str:
    """Of Python the first two numbers, which decide what can be read back."""
    return ".".join(str(version).split(".")[:2]) if package == "python" else str(version)
