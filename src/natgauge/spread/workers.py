# SPDX-License-Identifier: Apache-2.0
"""The workers at a Dask scheduler: which there are, their versions and resources, and what they are asked for.

Every request to the scheduler has a time limit, so a scheduler that hangs ends the campaign with an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future as Ended
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

from distributed import Client, Future, Security

from natgauge.campaigns.cells import PlannedCell, points
from natgauge.campaigns.plan import Plan
from natgauge.errors import HostError, NatgaugeError
from natgauge.host.cpus import as_if
from natgauge.spread import resources
from natgauge.spread.resources import Resources
from natgauge.spread.worker import Made, RepetitionTask, WorkerMachine, look, measure
from natgauge.system_errors import in_a_line
from natgauge.version import exact_version

_CONNECT_SECONDS: Final = 5.0
#: A scheduler that takes longer to answer is gone.
ANSWER_SECONDS: Final = 60.0
#: Packages that must be of one version on all sides.
_SAME_VERSION: Final = ("natgauge", "dask", "distributed", "python")

T = TypeVar("T")


@contextmanager
def connected(text: str, scheduler: str | Any, security: Security) -> Iterator[Client]:
    """A client of a scheduler."""
    try:
        client = Client(scheduler, timeout=_CONNECT_SECONDS, set_as_default=False, name="natgauge", security=security)
    except (OSError, ValueError, TypeError) as error:
        raise HostError(f"workers: no Dask scheduler answers at {text} ({in_a_line(error)})") from None
    try:
        yield client
    finally:
        with suppress(OSError):
            client.close(timeout=_CONNECT_SECONDS)


class Workers:
    """The workers of natgauge at a scheduler.

    Attributes:
        machines: facts of the workers' machines, without duplicates; empty until cells are planned.
        needs: resources of each cell, by the cell's name; empty until cells are planned.
        counts: numbers of cores of each cell; empty until cells are planned.
    """

    def __init__(self, client: Client, text: str, *, host_name: bool) -> None:
        """Refuse workers that cannot take part."""
        self.client = client
        self.text = text
        self.host_name = host_name
        self.machines: list[Mapping[str, Any]] = []
        self.needs: dict[str, Resources] = {}
        self.counts: dict[str, dict[str, int]] = {}
        self._refuse_versions()

    def unreachable(self, error: BaseException) -> HostError:
        """The error for a scheduler that is gone."""
        return HostError(
            f"workers: the scheduler at {self.text} is gone ({type(error).__name__}); all that came home is kept: "
            "start it again, then go on with --resume"
        )

    def submit(
        self, key: str, task: RepetitionTask, wanted: Resources, priority: int, then: Callable[[Ended[Made]], None]
    ) -> Future[Made]:
        """Have a repetition measured.

        Args:
            then: is called in another thread, when the repetition's lines are here or cannot be had.
        """
        future = self.client.submit(measure, task, key=key, pure=False, resources=wanted, priority=priority)
        # A worker may die with the lines: then Dask has them made again, and this goes on waiting.
        gathered: Any = self.client.gather(future, asynchronous=True)
        loop: Any = self.client.loop
        asyncio.run_coroutine_threadsafe(gathered, loop.asyncio_loop).add_done_callback(then)
        return future

    def _ask(self, request: Callable[[], Awaitable[T]]) -> T:
        """Run one of the client's coroutines in the client's loop, for `ANSWER_SECONDS` at most."""

        async def answer() -> T:
            return await request()

        try:
            response: T = self.client.sync(answer, callback_timeout=ANSWER_SECONDS)
        except OSError as error:
            raise self.unreachable(error) from error
        return response

    def _every(self) -> dict[str, dict[str, Any]]:
        """Return the scheduler's information on each worker, by address; workers of other programs are left out."""
        scheduler: Any = self.client.scheduler
        every = self._ask(lambda: scheduler.identity(n_workers=-1))["workers"]
        return {address: worker for address, worker in every.items() if resources.is_ours(worker["resources"])}

    def offers(self) -> list[Resources]:
        """Resources of each worker that is there now."""
        return [worker["resources"] for worker in self._every().values()]

    def _refuse_versions(self) -> None:
        workers = self._every()
        if not workers:
            raise HostError(
                f"workers: none is at {self.text}; start one on each machine that is to measure: "
                f"natgauge worker {self.text}, with the certificates of the scheduler"
            )
        versions: Any = self.client.get_versions
        answers = self._ask(versions)
        here = {**answers["client"]["packages"], "natgauge": exact_version()}
        sides = {"the scheduler": {**answers["scheduler"]["packages"], "natgauge": exact_version()}}
        for address, worker in workers.items():
            packages = answers["workers"].get(address, answers["client"])["packages"]
            own = resources.version_of(worker["resources"])
            sides[f"worker {worker['name']}"] = {**packages, "natgauge": own}
        for who, packages in sides.items():
            for package in _SAME_VERSION:
                mine, its = _version(package, here), _version(package, packages)
                if mine != its:
                    raise HostError(
                        f"workers: {who} at {self.text} has {package} {its}, here is {mine}: they would not "
                        "understand each other; install the same version there, and start it again"
                    )

    def plan_cells(self, plan: Plan, where: str) -> tuple[PlannedCell, ...]:
        """Every cell of the plan, planned for the cores of all workers together; nothing is touched."""
        places = self._places()
        # Loads and times move; machines that are alike are one.
        self.machines = [*{resources.likeness(place.facts, 0): place.facts for place in reversed(places)}.values()][
            ::-1
        ]
        kept = frozenset[tuple[str, str]]().union(*(place.kept for place in places))
        offered = self.offers()
        with as_if(resources.named_cores(offered)):
            cells = points(plan, where)
            self.needs = {cell.name: resources.needs(plan, cell, kept) for cell in cells}
        self.counts = {cell.name: resources.core_counts(plan, cell) for cell in cells}
        for cell in cells:
            self.refuse_lacking(cell, self.needs[cell.name], offered)
        return cells

    def _places(self) -> list[WorkerMachine]:
        """Return the machine of each worker; a worker that dies meanwhile is left out."""
        workers = self._every()
        run: Any = self.client.run
        options = {"host_name": self.host_name, "workers": list(workers), "on_error": "return"}
        found = self._ask(lambda: run(look, **options))
        for address, place in found.items():
            if isinstance(place, HostError):
                raise HostError(f"workers: {workers[address]['name']} at {self.text} cannot measure: {place}")
            if isinstance(place, Exception) and not isinstance(place, OSError):
                raise place
        if places := [place for place in found.values() if isinstance(place, WorkerMachine)]:
            return places
        raise HostError(f"workers: all at {self.text} died while they were looked at; start them, and try again")

    def refuse_lacking(self, cell: PlannedCell, wanted: Resources, offered: list[Resources]) -> None:
        """Refuse a cell for which no worker offers enough."""
        if lacks := self.lacking(cell, wanted, offered):
            raise HostError(f"workers: {lacks}")

    def lacking(self, cell: PlannedCell, wanted: Resources, offered: list[Resources]) -> str:
        """Return what a cell needs and none of the workers has, at least one; empty = one of them has all of it."""
        if any(resources.satisfied(wanted, worker_offer) for worker_offer in offered):
            return ""
        return (
            f"cell {cell.name}: {resources.lacking(wanted, offered)} (at {self.text}); start one that has, "
            "see: natgauge worker --help"
        )


def of_worker(error: NatgaugeError, worker: str) -> NatgaugeError:
    """Return the same error with the worker's name."""
    return type(error)(f"worker {worker}: {error}")


def _version(package: str, packages: Mapping[str, Any]) -> str:
    """Return a package's version; for Python only two numbers, which decide whether the other side can unpickle."""
    version = str(packages.get(package))
    return ".".join(version.split(".")[:2]) if package == "python" else version
