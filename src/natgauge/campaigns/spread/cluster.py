# SPDX-License-Identifier: Apache-2.0
"""Workers of this machine: `--on local:N` with a scheduler of their own, and `natgauge worker` at any scheduler."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any, Final

from distributed import Nanny, Scheduler, Security, SpecCluster, Status

from natgauge.campaigns.bench_protocol import MakeBench
from natgauge.campaigns.spread import Where
from natgauge.campaigns.spread.coordinator import Coordinator
from natgauge.campaigns.spread.resources import Offer, reserved, shares
from natgauge.campaigns.spread.worker import NatgaugeWorker
from natgauge.campaigns.spread.workers import Workers, address_of, connected
from natgauge.errors import HostError, in_a_line
from natgauge.host import machine
from natgauge.labs.common import cleanup

_START_SECONDS: Final = 60
_HERE: Final = "127.0.0.1"


@contextmanager
def coordinator(
    where: Where, labs: Sequence[str], *, make_bench: MakeBench | None = None, host_name: bool = False
) -> Iterator[Coordinator]:
    """A coordinator of the workers that `--on` names.

    Args:
        where: as `natgauge.campaigns.spread.where` reads it.
        labs: names of the labs of workers that are started here.
        make_bench: makes benches on workers that are started here; None = benches in labs.
        host_name: whether results contain the workers' host names.

    Raises:
        UsageError: this machine has fewer cores than workers.
        HostError: there is no scheduler or no worker, another worker uses a core, or versions differ.
    """
    with ExitStack() as made:
        scheduler: Any = where.scheduler
        if where.workers:
            scheduler = made.enter_context(_here(where.workers, labs, make_bench))
        client = made.enter_context(connected(where.text, scheduler))
        revive = None
        if where.workers:
            revive = partial(_revive, scheduler, where.workers)
            try:
                client.wait_for_workers(where.workers, timeout=_START_SECONDS)
            except TimeoutError as error:
                raise _not_up(error) from error
        yield Coordinator(Workers(client, where.text, host_name=host_name), revive)


def _revive(cluster: SpecCluster, number: int) -> None:
    """Restart workers that died during their start, because Dask does not."""

    def start() -> None:
        # The cluster drops a nanny only when its worker leaves the scheduler, so not one whose worker never got there.
        for name, nanny in list(cluster.workers.items()):
            if nanny.status in (Status.closed, Status.failed):
                del cluster.workers[name]
        cluster.scale(number)

    # The cluster may be changed in its own thread only.
    if cluster.loop is not None:
        cluster.loop.add_callback(start)


@contextmanager
def _here(number: int, labs: Sequence[str], make_bench: MakeBench | None) -> Iterator[SpecCluster]:
    """A scheduler and workers on this machine, each with the same number of cores; they end with this process."""
    facts = machine.facts()
    # Any client of a worker runs code as root, so other users of this machine must not connect.
    options = {"security": Security.temporary(), "protocol": "tls://", "host": _HERE, "dashboard_address": f"{_HERE}:0"}
    with ExitStack() as held:
        folder = held.enter_context(TemporaryDirectory(prefix="natgauge-dask-", ignore_cleanup_errors=True))
        offers = [held.enter_context(reserved(f"local-{cores[0]}", cores, labs)) for cores in shares(number)]
        for offer in offers:
            held.callback(undo, offer)
        workers = {
            offer.name: {
                "cls": Nanny,
                "options": {**options, **_worker(offer, facts, make_bench), "local_directory": folder},
            }
            for offer in offers
        }
        try:
            cluster = SpecCluster(
                scheduler={"cls": Scheduler, "options": {**options, "port": 0, "dashboard": False}},
                workers=workers,
                security=options["security"],
                silence_logs=logging.CRITICAL,
                name="natgauge",
            )
        except (OSError, RuntimeError, TimeoutError) as error:
            raise _not_up(error) from error
        held.callback(cluster.close, timeout=_START_SECONDS)
        yield cluster


def _not_up(error: Exception) -> HostError:
    return HostError(f"workers: those of this machine did not come up ({in_a_line(error)}); try again")


def _worker(offer: Offer, facts: Any, make_bench: MakeBench | None) -> dict[str, Any]:
    """Options of a Dask worker. It runs one task at a time, and the gateway needs its memory."""
    return {
        "name": offer.name,
        "nthreads": 1,
        "resources": offer.resources(facts),
        "memory_limit": 0,
        "dashboard": False,
        "silence_logs": logging.CRITICAL,
        "plugins": (NatgaugeWorker(offer, make_bench),),
        # Dask samples a task's stack a hundred times a second: nobody reads that, it takes time on the measuring core,
        # and where a thread starts at that moment CPython 3.11 may hang for ever (its issue 106883).
        "config": {"distributed.worker.profile.enabled": False},
    }


def undo(offer: Offer) -> None:
    """Take down labs that a killed worker left behind."""
    own = {offer.lab_name(name) for name in offer.labs}
    left = {lab.name for lab in cleanup.status() if lab.state == "left behind"}
    cleanup.clean(own & left)


def serve(where: Where, offer: Offer, say: Callable[[str], None]) -> None:
    """Be a worker at a scheduler, restarted whenever it dies, until the scheduler ends.

    Raises:
        HostError: no scheduler answers there, or it is gone.
    """
    with connected(where.text, where.scheduler):
        pass
    facts = machine.facts()
    undo(offer)
    try:
        asyncio.run(_serve(where, offer, facts, say))
    except (OSError, TimeoutError) as error:
        raise HostError(f"workers: {offer.name} cannot join {where.text}: {in_a_line(error)}") from error
    finally:
        undo(offer)
    raise HostError(f"workers: the scheduler at {where.text} is gone; start it, then this worker again")


async def _serve(where: Where, offer: Offer, facts: Any, say: Callable[[str], None]) -> None:
    security = Security()
    address = address_of(where.scheduler, security)
    with TemporaryDirectory(prefix="natgauge-dask-", ignore_cleanup_errors=True) as folder:
        async with Nanny(address, security=security, local_directory=folder, **_worker(offer, facts, None)) as nanny:
            say(f"worker {offer.name} waits for work of {where.text}")
            await nanny.finished()
