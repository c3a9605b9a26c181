# SPDX-License-Identifier: Apache-2.0
"""`python -m benchmarks.connection_memory`: memory of a connection, next to what /proc/slabinfo says at that time.

One trial with an empty table for each number of connections, on an nftables NAT44 in a namespace. The figure is the
trial's `octets_per_connection`. The other figures are read outside of natgauge, before and after the trial: objects and
pages of the two caches that hold a connection of Linux, and all slabs of the machine. Root, one core; 10 million
connections take about 4 GiB and 2 minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from benchmarks import machine
from benchmarks.command import day, heading, is_root, options, write
from natgauge.errors import BrokenError
from natgauge.host.capabilities import memory_octets
from natgauge.records.store import Memory
from natgauge.tester.own_rates import HighestRates
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask
from natgauge.trials import TrialPlan

GATEWAY: Final = "nftables-nat44"
#: The entry, and its extension with the state of NAT.
CACHES: Final = ("nf_conntrack", "kmalloc-128")
CONNECTIONS: Final = (10_000, 100_000, 1_000_000)
#: Below what the gateway establishes in this lab.
RATE: Final = 150_000.0
#: The trial's own rate is far below the tester's highest one, so that one need not be measured.
_RATES: Final = HighestRates(5e6, 5e6, own_ports=True)
_PAGE: Final = 4096
#: Largest difference between the figure and that of slabinfo, as a share.
NEAR: Final = 0.02


@dataclass(frozen=True, slots=True)
class Slabs:
    """What the machine says of its slabs at one moment, in octets.

    Attributes:
        objects: objects in use of `CACHES`.
        pages: pages of `CACHES`.
        machine: pages of all caches (Slab of /proc/meminfo).
    """

    objects: int
    pages: int
    machine: int

    @classmethod
    def now(cls) -> Slabs:
        """Read the files of this machine (slabinfo(5), proc(5))."""
        rows = [line.split() for line in Path("/proc/slabinfo").read_text(encoding="ascii").splitlines()]
        caches = {row[0]: row for row in rows if row[0] in CACHES}
        # name, active_objs, num_objs, objsize, objperslab, pagesperslab ... slabdata active_slabs num_slabs
        return cls(
            objects=sum(int(row[1]) * int(row[3]) for row in caches.values()),
            pages=sum(int(row[14]) * int(row[5]) * _PAGE for row in caches.values()),
            machine=memory_octets("Slab") or 0,
        )


@dataclass(frozen=True, slots=True)
class ConnectionMemory:
    """Octets for each connection of one trial: by natgauge, and by each way of `Slabs`."""

    connections: int
    natgauge: float | None
    objects: float
    pages: float
    machine: float

    @property
    def difference(self) -> float | None:
        """Difference between the figure and the objects of slabinfo, as a share of the latter."""
        return None if self.natgauge is None else self.natgauge / self.objects - 1


def measured(connections: int, lab_name: str = "memory") -> ConnectionMemory:
    """Run one trial in a new lab.

    Raises:
        NatgaugeError: the trial could not be run, or left no connection.
    """
    chosen = {"connections": connections, "placement": "shared", "lab_name": lab_name, "connection_rate": RATE}
    with Bench(ask("throughput", GATEWAY, chosen).cell, rates=_RATES) as bench:
        ready = bench.ready(bench.plan("throughput", {"connection_rate": RATE}), Memory())
        before = Slabs.now()
        outcome = ready.measurer.measure(TrialPlan(connections, RATE))
        after = Slabs.now()
    # A disturbance of the host makes a trial INVALID, and changes no connection.
    if not outcome.table_count:
        raise BrokenError(f"{connections} connections: the device has none: {outcome.reason}")
    each = {
        name: (getattr(after, name) - getattr(before, name)) / outcome.table_count
        for name in (field.name for field in fields(Slabs))
    }
    return ConnectionMemory(connections, outcome.readings.octets_per_connection, **each)


def page(found: Sequence[ConnectionMemory], described: Mapping[str, Any]) -> str:
    """The page of all trials."""
    lines = heading("Memory of a connection", described)
    lines += [
        "| Connections | natgauge (octets) | objects of slabinfo | difference | pages of slabinfo | all slabs |",
        "|--:|--:|--:|--:|--:|--:|",
    ]
    for one in found:
        ours = "not known" if one.natgauge is None else f"{one.natgauge:.2f}"
        off = "" if one.difference is None else f"{one.difference:+.2%}"
        lines.append(
            f"| {one.connections:,} | {ours} | {one.objects:.2f} | {off} | {one.pages:.2f} | {one.machine:.2f} |"
        )
    return "\n".join([*lines, ""])


def main(arguments: list[str] | None = None) -> int:
    """Measure each number of connections, and write the page."""
    parser = options(__doc__, "octets-per-connection")
    parser.add_argument("connections", type=int, nargs="*", default=list(CONNECTIONS), help="default %(default)s")
    chosen = parser.parse_args(arguments)
    if not is_root("connection_memory"):
        return 3
    described = machine.describe()
    found = [measured(connections) for connections in chosen.connections]
    text = page(found, described)
    print(text)
    write(
        chosen.results,
        f"{day(described)}-{chosen.name}",
        text,
        {"machine": described, "trials": list(map(asdict, found))},
    )
    return 0 if all(one.difference is not None and abs(one.difference) <= NEAR for one in found) else 4


if __name__ == "__main__":
    sys.exit(main())
