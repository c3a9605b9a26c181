# SPDX-License-Identifier: Apache-2.0
"""Memory of a connection at the device: caches that grow with the table, sizes of processor caches, their report."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from tests.plans import OneTrial, PlanOfTrial
from tests.unit.golden import Golden
from tests.unit.made_results import made
from tests.unit.simulated import Gateway, reading

from natgauge.host import cpus
from natgauge.metrics.shared_figures import OCTETS_PER_CONNECTION
from natgauge.procedures import get
from natgauge.procedures.kit.procedure import make_settings
from natgauge.reports import csv_table
from natgauge.reports.text import verdict
from natgauge.table_memory import ObjectCache, octets_per_connection, read

#: Begin of /proc/slabinfo of Linux 6.18.
SLABINFO = """slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount>
nf_conntrack          96    160    256   16    1 : tunables    0    0    0 : slabdata     10     10      0
kmalloc-128        23169  27072    128   32    1 : tunables    0    0    0 : slabdata    846    846      0
"""
EMPTY = {"nf_conntrack": ObjectCache(96, 256), "kmalloc-128": ObjectCache(23169, 128)}


def grown(**objects: int) -> dict[str, ObjectCache]:
    sizes = {"nf_conntrack": 256, "kmalloc-128": 128, "filp": 192}
    every = {name.replace("_", "-", name.count("kmalloc")): number for name, number in objects.items()}
    return {
        name: ObjectCache(number + EMPTY.get(name, ObjectCache(0, 0)).objects, sizes[name])
        for name, number in every.items()
    }


def test_the_kernels_text_is_understood(golden: Golden) -> None:
    assert read(SLABINFO) == EMPTY
    assert read("") == {}
    golden(read(""))


@pytest.mark.parametrize(
    ("after", "connections", "octets"),
    [
        (grown(nf_conntrack=20_000, kmalloc_128=20_000), 20_000, 384.0),
        # The rest of the machine makes and frees objects, too: half an object for each connection is not of the table.
        (grown(nf_conntrack=20_000, kmalloc_128=20_300, filp=9_000), 20_000, 256 + 1.015 * 128),
        (grown(nf_conntrack=20_000, kmalloc_128=39_900), 20_000, 256 + 1.995 * 128),
        # A process keeps the connections.
        (grown(kmalloc_128=300), 20_000, None),
        # Too few connections, or nothing readable.
        (grown(nf_conntrack=9_999), 9_999, None),
        ({}, 20_000, None),
    ],
)
def test_caches_of_which_a_connection_takes_whole_objects_are_its_memory(
    after: Mapping[str, ObjectCache], connections: int, octets: float | None
) -> None:
    found = octets_per_connection(EMPTY, after, connections, connections)
    assert found == (None if octets is None else pytest.approx(octets))


def test_connections_that_were_refused_leave_objects_that_belong_to_no_other_connection() -> None:
    """Of 24,000 connections 16,000 were kept, and the objects of the others were left out of the sum: 254 octets."""
    after = grown(nf_conntrack=16_000, kmalloc_128=24_000)
    assert octets_per_connection(EMPTY, after, 16_000, 24_000) is None
    assert octets_per_connection(EMPTY, after, 16_000, 16_000) is not None


def cache(core: int, level: int, size: str, shared: str, kind: str = "Unified") -> list[str]:
    where = f"cpu{core}/cache/index{level}{kind}"
    facts = {"level": level, "type": kind, "size": size, "shared_cpu_list": shared}
    return [f"{where}/{name}:{value}" for name, value in facts.items()]


def test_processor_caches_are_summed_over_the_cores_that_have_their_own() -> None:
    lines = [
        line
        for core in range(4)
        for line in (
            *cache(core, 1, "48K", str(core), "Data"),
            *cache(core, 1, "64K", str(core), "Instruction"),
            *cache(core, 2, "2048K", str(core)),
            *cache(core, 3, "32M", "0-1" if core < 2 else "2-3"),
        )
    ]
    assert cpus.caches_in("\n".join(lines), (0, 1)) == {"L1": 98_304, "L2": 2 * 2**21, "L3": 2**25}
    assert cpus.caches_in("\n".join(lines), (1, 2)) == {"L1": 98_304, "L2": 2 * 2**21, "L3": 2 * 2**25}
    assert cpus.caches_in("", (0, 1)) == cpus.caches_in("\n".join(lines), ()) == {}


@dataclass(slots=True)
class _Remembering(Gateway):
    """Reports the memory of a connection in every trial, with a little noise."""

    def measure(self, plan: PlanOfTrial) -> OneTrial:
        outcome = Gateway.measure(self, plan)
        return reading(outcome, octets_per_connection=384.0 + len(self.plans) % 3)


def test_every_trial_of_a_repetition_is_a_value_of_the_figure() -> None:
    procedure, gateway = get("connection-rate"), _Remembering(establishes=3e5)
    settings = make_settings(
        procedure, {"repeat": 1}, connections=20_000, placement="shared", order="permutation", four_tuples=20_000
    )
    result = procedure.measure(gateway, settings)
    found = result.figures[OCTETS_PER_CONNECTION]
    assert found.count == len(gateway.plans)
    assert (found.minimum, found.maximum) == (384, 386)
    # The rate itself has no sample.
    assert not result.is_sampled


CACHES: dict[str, Any] = {"device_caches": {"L1": 49_152, "L2": 2**21, "L3": 2**25}, "connections": 1_000_000}


def test_the_report_has_the_memory_and_the_connections_that_fill_the_caches(golden: Golden) -> None:
    figures = {OCTETS_PER_CONNECTION: [384.0, 385.0, 384.0]}
    result = made([1e6], metric="connection-rate", unit="connections/s", figures=figures, parameters=CACHES)
    said = verdict(result)
    golden(said)
    columns = dict(zip(*csv.reader(io.StringIO(csv_table.table([result]))), strict=True))
    assert columns["memory of a connection (octets)"] == "384.0"
    assert float(columns["connections that fill the L2 cache"]) == pytest.approx(2**21 / 384)


def test_unknown_memory_is_said_to_be_unknown(golden: Golden) -> None:
    common: dict[str, Any] = {"unit": "connections/s"}
    golden(verdict(made([1e6], metric="connection-rate", parameters=CACHES, **common)))
    # Too few connections to show it; a metric that does not ask for it.
    golden(verdict(made([1e6], metric="connection-rate", **common)))
    golden(verdict(made([1e6], metric="throughput", parameters=CACHES, **common)))
