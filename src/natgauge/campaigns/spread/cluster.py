# SPDX-License-Identifier: Apache-2.0
"""Workers of this machine: as many as asked for with a scheduler of their own, or one at a scheduler elsewhere."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any, Final

from distributed import Nanny, Scheduler, Security, SpecCluster
from distributed.core import Status

from natgauge.campaigns.bench_protocol import MakeBench
from natgauge.campaigns.spread import Where
from natgauge.campaigns.spread.coordinator import Team, address_of, connected
from natgauge.campaigns.spread.resources import Offer, reserved, shares
from natgauge.campaigns.spread.worker import OwnCores
from natgauge.errors import HostError, in_a_line
from natgauge.host import machine
from natgauge.labs import upkeep

_START_SECONDS: Final = 60
#: A trial lasts about as long at most where nobody asked for longer ones.
_STOP_SECONDS: Final = 15.0
#: Only this machine's root may reach the workers.
_HERE: Final = "127.0.0.1"


@contextmanager
def team(
    where: Where, labs: Sequence[str], *, make_bench: MakeBench | None = None, host_name: bool = False
) -> Iterator[Team]:
    """The workers that `--on` names.

    Args:
        where: as `natgauge.campaigns.spread.where` reads it.
        labs: that workers which are started here have.
        make_bench: makes benches on workers that are started here; None = those in labs.
        host_name: whether the workers' names are told.

    Raises:
        UsageError: there are not so many cores.
        HostError: no scheduler or nobody is there, a core is another worker's, or a worker is of another version.
    """
    with ExitStack() as made:
        scheduler: Any = where.scheduler
        if where.workers:
            scheduler = made.enter_context(_here(where.workers, labs, make_bench))
        client = made.enter_context(connected(where.text, scheduler))
        if where.workers:
            client.wait_for_workers(where.workers, timeout=_START_SECONDS)
        revive = partial(_revive, scheduler, where.workers) if where.workers else None
        found = Team(client, where.text, host_name=host_name, revive=revive)
        if where.workers:
            made.callback(_let_end, found)
        yield found


def _revive(cluster: SpecCluster, number: int) -> None:
    """Start those workers again whose watchers have given up; of those that still stand none is started."""

    def start() -> None:
        # The cluster forgets a watcher when its worker leaves the scheduler. One whose worker never came there stays.
        for name, nanny in list(cluster.workers.items()):
            if nanny.status in (Status.closed, Status.failed):
                del cluster.workers[name]
        cluster.scale(number)

    # What it knows of its workers belongs to its own thread.
    if cluster.loop is not None:
        cluster.loop.add_callback(start)


def _let_end(found: Team) -> None:
    """What was broken off is undone by whoever did it, if that does not take too long."""
    until = time.monotonic() + _STOP_SECONDS
    while time.monotonic() < until and found.busy():
        time.sleep(0.1)


@contextmanager
def _here(number: int, labs: Sequence[str], make_bench: MakeBench | None) -> Iterator[SpecCluster]:
    """A scheduler and workers on this machine, each with as many cores; they end with this process."""
    facts = machine.facts()
    # Whoever reaches a worker runs what he likes as root, so other users of this machine must not.
    security = Security.temporary()
    with ExitStack() as held:
        folder = held.enter_context(TemporaryDirectory(prefix="natgauge-dask-", ignore_cleanup_errors=True))
        found = [held.enter_context(reserved(f"local-{cores[0]}", cores, labs)) for cores in shares(number)]
        for offer in found:
            held.callback(undo, offer)
        options = {"security": security, "protocol": "tls://", "host": _HERE, "dashboard_address": f"{_HERE}:0"}
        cluster = _started(
            scheduler={"cls": Scheduler, "options": {**options, "port": 0, "dashboard": False}},
            workers={
                offer.name: {
                    "cls": Nanny,
                    "options": {**options, **_worker(offer, facts, make_bench), "local_directory": folder},
                }
                for offer in found
            },
            security=security,
            silence_logs=logging.CRITICAL,
            name="natgauge",
        )
        held.callback(cluster.close, timeout=_START_SECONDS)
        yield cluster


def _started(**given: Any) -> SpecCluster:
    """A cluster that stands.

    Raises:
        HostError: one of its processes ended before it did.
    """
    try:
        return SpecCluster(**given)
    except (OSError, RuntimeError, TimeoutError) as error:
        raise HostError(f"workers: those of this machine did not come up ({in_a_line(error)}); try again") from error


def _worker(offer: Offer, facts: Any, make_bench: MakeBench | None) -> dict[str, Any]:
    """What Dask is told of a worker. It does one thing at a time, and its memory is the gateway's business."""
    return {
        "name": offer.name,
        "nthreads": 1,
        "resources": offer.resources(facts),
        "memory_limit": 0,
        "dashboard": False,
        "silence_logs": logging.CRITICAL,
        "plugins": (OwnCores(offer, make_bench),),
        # Dask looks a hundred times a second at what a task does: nobody reads that, it takes time on the measuring
        # core, and where a thread starts at that moment CPython 3.11 may stand still for ever (its issue 106883).
        "config": {"distributed.worker.profile.enabled": False},
    }


def undo(offer: Offer) -> None:
    """Take down what a worker that was killed left of its labs."""
    own = {offer.lab_name(name) for name in offer.labs}
    left = {one.name for one in upkeep.status() if one.state == "left behind"}
    upkeep.clean(own & left)


def serve(where: Where, offer: Offer, told: Callable[[str], None]) -> None:
    """Be a worker at a scheduler, started again whenever it dies, until the scheduler ends.

    Raises:
        HostError: no scheduler answers there, or it is gone.
    """
    with connected(where.text, where.scheduler):
        pass
    facts = machine.facts()
    undo(offer)
    try:
        asyncio.run(_serve(where, offer, facts, told))
    except (OSError, TimeoutError) as error:
        raise HostError(f"workers: {offer.name} cannot join {where.text}: {in_a_line(error)}") from error
    finally:
        undo(offer)
    raise HostError(f"workers: the scheduler at {where.text} is gone; start it, then this worker again")


async def _serve(where: Where, offer: Offer, facts: Any, told: Callable[[str], None]) -> None:
    security = Security()
    address = address_of(where.scheduler, security)
    with TemporaryDirectory(prefix="natgauge-dask-", ignore_cleanup_errors=True) as folder:
        async with Nanny(address, security=security, local_directory=folder, **_worker(offer, facts, None)) as nanny:
            told(f"worker {offer.name} waits for work of {where.text}")
            await nanny.finished()
