# SPDX-License-Identifier: Apache-2.0
"""Results beside each other, held against published ones.

draft-lencse-v6ops-transition-scalability-05 figures 2 and 8: medians in thousands a second on 1, 2, 4, 8 and 16 cores;
RFC 9693 table 1.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.made_results import made

from natgauge.reports.comparison import percent_of_forwarding, relative_scale_up
from natgauge.reports.text import table
from natgauge.results.model import Result

CORES = (1, 2, 4, 8, 16)


@pytest.mark.parametrize(
    ("medians", "published"),
    [
        ((223.5, 371.1, 708.7, 1341, 2383), (1, 0.830, 0.793, 0.750, 0.666)),
        ((414.9, 742.3, 1379, 2336, 4557), (1, 0.895, 0.831, 0.704, 0.686)),
        ((910.9, 1523, 3016, 5920, 11561), (1, 0.836, 0.828, 0.812, 0.793)),
        ((228.6, 358.5, 537.4, 569.9, 602.6), (1, 0.784, 0.588, 0.312, 0.165)),
        ((251.8, 405.7, 582.4, 604.1, 612.3), (1, 0.806, 0.578, 0.300, 0.152)),
    ],
)
def test_scale_up_is_as_published(medians: tuple[float, ...], published: tuple[float, ...]) -> None:
    found = [relative_scale_up(median, cores, medians[0]) for median, cores in zip(medians, CORES, strict=True)]
    assert found == pytest.approx(published, abs=0.001)


def test_the_share_of_forwarding_is_as_published() -> None:
    translated, forwarded = (414.9, 742.3, 1379, 2336, 4557), (910.9, 1523, 3016, 5920, 11561)
    found = [percent_of_forwarding(*pair) for pair in zip(translated, forwarded, strict=True)]
    # The published 48.8 is of unrounded medians.
    assert found == pytest.approx([45.5, 48.8, 45.7, 39.5, 39.4], abs=0.07)


def result(dut: str, median: float, cores: int, **parameters: Any) -> Result:
    kind = "routing" if dut.startswith("linux") else "nat44"
    common = {"dut": dut, "kind": kind, "device_cores": cores, "sender_cores": cores}
    return made([median], parameters={**common, **parameters})


def row(name: str, *results: Result) -> list[str] | None:
    lines = table(results).splitlines()
    return next((line.removeprefix(name).split() for line in lines if line.startswith(name)), None)


def test_the_table_compares_cores_and_plain_forwarding() -> None:
    columns = (result("nat", 400.0, 1), result("nat", 600.0, 2), result("linux-ipv4", 800.0, 1))
    assert row("device cores", *columns) == ["1", "2", "1"]
    assert row("relative scale-up", *columns) == ["-", "0.750", "-"]
    assert row("percent of forwarding", *columns) == ["50.0", "-", "-"]


def test_what_was_measured_otherwise_is_not_compared() -> None:
    assert row("relative scale-up", result("nat", 400.0, 1, connections=2000), result("nat", 600.0, 2)) is None
    assert row("percent of forwarding", result("nat", 4.0, 1), result("linux-ipv4", 8.0, 1, frame_size=84)) is None


@pytest.mark.parametrize(
    ("sessions", "hash_size", "printed"),
    [
        (400_000, 2**17, "3.05"),
        (4_000_000, 2**20, "3.81"),
        (40_000_000, 2**23, "4.77"),
        (400_000_000, 2**27, "2.98"),
    ],
)
def test_sessions_per_hash_are_those_of_rfc_9693_table_1(sessions: int, hash_size: int, printed: str) -> None:
    assert row("sessions per hash", result("nat", 1.0, 1, connections=sessions, hash_size=hash_size)) == [printed]
