# SPDX-License-Identifier: Apache-2.0
"""The workers of `--on` as the place where a campaign's repetitions are measured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from natgauge.campaigns.campaign import Means
from natgauge.campaigns.plan import Plan
from natgauge.inputs.question import LabOptions
from natgauge.measurements.prepared import MakeBench
from natgauge.spread import need_dask, where


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
    """Plan the cells for the workers, and connect to these; see `natgauge.campaigns.campaign.Place`.

    Args:
        on: `dask://HOST:PORT` = workers at that scheduler, `local:N` = N on this machine.
        certificates: folder with the certificates for that scheduler; None = those that Dask's configuration names.
        make_bench: makes benches on workers that are started here; None = benches in labs.
    """
    place = where(on)
    need_dask()
    # Dask takes seconds to load.
    from natgauge.spread.access import client_of  # noqa: PLC0415
    from natgauge.spread.cluster import workers_at  # noqa: PLC0415
    from natgauge.spread.coordinator import Coordinator  # noqa: PLC0415

    security = client_of(place, certificates, insecure=insecure)
    labs = [plan.lab.get("lab_name", LabOptions().lab_name)]
    with workers_at(place, labs, security, make_bench=make_bench, host_name=host_name) as workers:
        cells = workers.plan_cells(plan, file)
        yield Means(cells, lambda session, points: Coordinator(workers, session, points).run(), workers.machines)
