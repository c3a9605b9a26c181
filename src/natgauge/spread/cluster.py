# SPDX-License-Identifier: Apache-2.0
"""Workers of this machine: `--on local:N` with a scheduler of their own, `natgauge worker`, `natgauge scheduler`."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import urlsplit

from distributed import Nanny, Scheduler, Security, SpecCluster, Status, Worker
from tornado.ioloop import PeriodicCallback

from natgauge import cleaning
from natgauge.errors import HostError, in_a_line
from natgauge.host import machine
from natgauge.interruption import SIGNALS
from natgauge.measurements.measure import MakeBench
from natgauge.spread import Where
from natgauge.spread.access import local_address
from natgauge.spread.coordinator import Workers, connected
from natgauge.spread.worker import NatgaugeWorker, Offer, reserved, shares

_START_SECONDS: Final = 60
#: Interval between two looks for workers that died during their start.
REVIVE_SECONDS: Final = 5.0
_HERE: Final = "127.0.0.1"


class ClosedScheduler(Scheduler):
    """A scheduler without HTTP pages: Dask opens a port for these, which takes no certificate, whatever is set."""

    def start_http_server(self, *_args: Any, **_options: Any) -> None:
        """Open no port."""


class ClosedWorker(Worker):
    """A worker without HTTP pages."""

    def start_http_server(self, *_args: Any, **_options: Any) -> None:
        """Open no port."""


def address_of(where: Where, security: Security) -> str:
    """Return a scheduler's address with Dask's protocol: "host:8786" becomes "tls://host:8786"."""
    return f"{_protocol(security)}://{where.scheduler}"


def listening(address: str, security: Security) -> dict[str, Any]:
    """Options of a scheduler, nanny or worker that listens at this address of the machine alone."""
    # Dask puts a port behind it.
    host = f"[{address}]" if ":" in address else address
    return {"security": security, "protocol": _protocol(security), "host": host, "dashboard": False}


def _protocol(security: Security) -> str:
    return "tls" if security.require_encryption else "tcp"


@contextmanager
def workers_at(
    where: Where,
    labs: Sequence[str],
    security: Security,
    *,
    make_bench: MakeBench | None = None,
    host_name: bool = False,
) -> Iterator[Workers]:
    """The workers that `--on` names."""
    with ExitStack() as made:
        if where.workers:
            scheduler: Any = made.enter_context(_here(where.workers, labs, make_bench, security))
        else:
            scheduler = address_of(where, security)
            local_address(where, security, "client")
        client = made.enter_context(connected(where.text, scheduler, security))
        if where.workers:
            try:
                client.wait_for_workers(where.workers, timeout=_START_SECONDS)
            except TimeoutError as error:
                raise _not_up(error) from error
        yield Workers(client, where.text, host_name=host_name)


def _revive(cluster: SpecCluster) -> None:
    """Restart workers that died during their start: their nannies give them up, and Dask leaves it at that."""
    # The cluster drops a nanny only when its worker leaves the scheduler, so not one whose worker never got there.
    for name, nanny in list(cluster.workers.items()):
        if nanny.status in (Status.closed, Status.failed):
            del cluster.workers[name]
    cluster.scale(len(cluster.worker_spec))


@contextmanager
def _here(number: int, labs: Sequence[str], make_bench: MakeBench | None, security: Security) -> Iterator[SpecCluster]:
    """A scheduler and workers on this machine, each with the same number of cores; they end with this process."""
    facts = machine.facts()
    options = listening(_HERE, security)
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
                scheduler={"cls": ClosedScheduler, "options": {**options, "port": 0}},
                workers=workers,
                security=security,
                silence_logs=logging.CRITICAL,
                name="natgauge",
            )
        except (OSError, RuntimeError, TimeoutError) as error:
            raise _not_up(error) from error
        held.callback(_close, cluster)
        # The cluster may be changed in its own thread only.
        reviving = PeriodicCallback(partial(_revive, cluster), REVIVE_SECONDS * 1000)
        loop: Any = cluster.loop
        loop.add_callback(reviving.start)
        held.callback(loop.add_callback, reviving.stop)
        yield cluster


def _close(cluster: SpecCluster) -> None:
    # All that came home is kept by now. What does not close in time ends with this process, and hides no error.
    with suppress(TimeoutError):
        cluster.close(timeout=_START_SECONDS)


def _not_up(error: Exception) -> HostError:
    return HostError(f"workers: those of this machine did not come up ({in_a_line(error)}); try again")


def _worker(offer: Offer, facts: Any, make_bench: MakeBench | None) -> dict[str, Any]:
    """Options of a Dask worker. It runs one task at a time, and the gateway needs its memory."""
    return {
        "name": offer.name,
        "worker_class": ClosedWorker,
        "nthreads": 1,
        "resources": offer.resources(facts),
        "memory_limit": 0,
        "silence_logs": logging.CRITICAL,
        "plugins": (NatgaugeWorker(offer, make_bench),),
        # Dask samples a task's stack a hundred times a second: nobody reads that, it takes time on the measuring core,
        # and where a thread starts at that moment CPython 3.11 may hang for ever (its issue 106883).
        "config": {"distributed.worker.profile.enabled": False},
    }


def undo(offer: Offer) -> None:
    """Take down labs that a killed worker left behind."""
    own = {offer.lab_name(name) for name in offer.labs}
    left = {lab.name for lab in cleaning.status() if lab.state == "left behind"}
    cleaning.clean(own & left)


def serve(where: Where, security: Security, offer: Offer, say: Callable[[str], None]) -> None:
    """Be a worker at a scheduler, restarted whenever it dies, until the scheduler ends."""
    # Only from this address can the scheduler be reached, so it is where the worker listens, and nowhere else.
    options = listening(local_address(where, security, "worker"), security)
    facts = machine.facts()
    undo(offer)
    waits = f"worker {offer.name} waits for work of {where.text}"
    try:
        run(_serve(where, options, _worker(offer, facts, None), lambda: say(waits)))
    except (OSError, RuntimeError) as error:
        raise HostError(f"workers: {offer.name} cannot join {where.text}: {_cause(error)}") from error
    finally:
        undo(offer)
    raise HostError(f"workers: the scheduler at {where.text} is gone; start it, then this worker again")


async def _serve(
    where: Where, options: Mapping[str, Any], worker: Mapping[str, Any], ready: Callable[[], None]
) -> None:
    address = address_of(where, options["security"])
    with TemporaryDirectory(prefix="natgauge-dask-", ignore_cleanup_errors=True) as folder:
        async with Nanny(address, local_directory=folder, **options, **worker) as nanny:
            ready()
            await nanny.finished()


def schedule(where: Where, security: Security, say: Callable[[str], None]) -> None:
    """Be a scheduler until a signal."""
    parts = urlsplit(f"//{where.scheduler}")
    options = {**listening(str(parts.hostname), security), "port": parts.port}
    try:
        # Dask says only that it failed to start.
        for family, *_, address in socket.getaddrinfo(parts.hostname, parts.port, type=socket.SOCK_STREAM):
            with socket.create_server(address[:2], family=family):
                pass
        run(_schedule(options, lambda: say(f"scheduler {where.text} waits for workers and campaigns")))
    except (OSError, RuntimeError) as error:
        raise HostError(
            f"scheduler: cannot listen at {where.text}: {_cause(error)}; name an address of this machine, and a free "
            "port"
        ) from error


def _cause(error: Exception) -> str:
    """Return the reason in a line; Dask's own exceptions often say only that something failed to start."""
    return in_a_line(error.__cause__ if isinstance(error.__cause__, Exception) else error)


async def _schedule(options: Mapping[str, Any], ready: Callable[[], None]) -> None:
    async with ClosedScheduler(**options) as scheduler:
        ready()
        await scheduler.finished()


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end; a signal cancels it, so that it undoes what it made.

    asyncio logs, and then forgets, an exception that a signal's handler raises while a callback runs. So the handler
    is called by the event loop, and what it raises is raised here.
    """
    if threading.current_thread() is not threading.main_thread():
        asyncio.run(main)
        return
    handlers: dict[int, Any] = {number: signal.getsignal(number) for number in SIGNALS}
    raised = asyncio.run(_watched(main, handlers))
    if raised is not None:
        raise raised


async def _watched(main: Coroutine[Any, Any, None], handlers: dict[int, Any]) -> BaseException | None:
    """Run it; return what the handler of a signal raised."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(main)
    raised: list[BaseException] = []

    def end(number: int) -> None:
        before = {each: signal.getsignal(each) for each in handlers}
        try:
            handlers[number](number, None)
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is raised when all is undone
            raised.append(error)
            task.cancel()
        # The first signal may have changed what the next one does.
        after = {each: signal.getsignal(each) for each in handlers}
        handlers.update({each: now for each, now in after.items() if now is not before[each]})

    for number, handler in handlers.items():
        if callable(handler):
            loop.add_signal_handler(number, end, number)
    try:
        await task
    except BaseException:
        if not raised:
            raise
    finally:
        for number, handler in handlers.items():
            # The loop leaves the system's own handler.
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
    return raised[0] if raised else None
