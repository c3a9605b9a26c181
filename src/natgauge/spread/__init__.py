# SPDX-License-Identifier: Apache-2.0
"""Campaigns spread over several workers by Dask.distributed.

A repetition is one Dask future, and its result is the lines for the journal. `coordinator.py`: the campaign's side,
which has the journal, asks the scheduler, and plans cells. `worker.py`: what a worker offers and a cell needs, as
Dask's resources, and the tasks that run on a worker. `cluster.py`: workers on this machine, `natgauge worker`,
`natgauge scheduler`. `access.py`: certificates for these, made and checked, and so who may connect.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from natgauge.errors import HostError, UsageError
from natgauge.inputs.question import LabOptions

if TYPE_CHECKING:
    from natgauge.campaigns.campaign import Means
    from natgauge.campaigns.plan import Plan
    from natgauge.measurements.measure import MakeBench

#: Dask's usual port of a scheduler.
PORT: Final = 8786


def need_dask() -> Any:
    """Import the module `distributed`; that takes seconds."""
    # Level of Dask's own messages. Dask reads it when it is imported, also in its workers.
    os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "critical")
    try:
        importlib.import_module("cryptography")
        return importlib.import_module("distributed")
    except ImportError as error:
        raise HostError(
            f"workers: the Python package {error.name or 'distributed'} is not installed: pip install 'natgauge[dask]'"
        ) from error


def scheduler_at(text: str) -> Where:
    """Read `dask://HOST:PORT`."""
    found = where(text)
    if not found.scheduler:
        raise UsageError(f"workers: {text!r} is no Dask scheduler; write dask://HOST:{PORT}")
    return found


@dataclass(frozen=True, slots=True)
class Where:
    """The value of `--on`: `HOST:PORT` of a scheduler or, where that is empty, how many workers to start here."""

    text: str
    scheduler: str = ""
    workers: int = 0


def where(text: str) -> Where:
    """Read `dask://HOST:PORT` or `local:N`."""
    kind, _, rest = text.partition(":")
    if kind == "local" and rest.isascii() and rest.isdigit() and int(rest) > 0:
        return Where(text, workers=int(rest))
    if kind == "dask":
        try:
            parts = urlsplit(text)
            host, port = parts.hostname, PORT if parts.port is None else parts.port
        except ValueError:
            host, port = None, PORT
        if host and port and not parts.path.strip("/"):
            return Where(text, scheduler=f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    raise UsageError(
        f"workers: {text!r} is neither a Dask scheduler nor workers of this machine; write dask://HOST:{PORT} or "
        "local:N"
    )


@contextmanager
def workers_of(  # noqa: PLR0913 - the options of --on, each by its name
    on: str,
    plan: Plan,
    file: str,
    *,
    host_name: bool,
    certificates: Path | None = None,
    insecure: bool = False,
    make_bench: MakeBench | None = None,
) -> Iterator[Means]:
    """Plan the cells for the workers, and connect to these; see `natgauge.campaigns.campaign.WhereMeasured`.

    Args:
        certificates: folder with the certificates for that scheduler; None = those that Dask's configuration names.
    """
    place = where(on)
    need_dask()
    # Dask takes seconds to load, and not all that serves workers knows campaigns.
    from natgauge.campaigns.campaign import Means  # noqa: PLC0415
    from natgauge.spread.access import client_of  # noqa: PLC0415
    from natgauge.spread.cluster import workers_at  # noqa: PLC0415
    from natgauge.spread.coordinator import Coordinator  # noqa: PLC0415

    security = client_of(place, certificates, insecure=insecure)
    labs = [plan.lab.get("lab_name", LabOptions().lab_name)]
    with workers_at(place, labs, security, make_bench=make_bench, host_name=host_name) as workers:
        cells = workers.plan_cells(plan, file)
        yield Means(cells, lambda session, points: Coordinator(workers, session, points).run(), workers.machines)
