# SPDX-License-Identifier: Apache-2.0
"""A gateway that turns out to be a process: the lab is made again with the placement of such gateways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.unit.made_results import grouped

from natgauge.analysis.own_work import own_work
from natgauge.labs.common.device import NamespaceDevice
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Placements of the labs that were made; every device turns out to be a process, and there are two cores."""
    placements: list[str] = []

    def enter(bench: Bench) -> Bench:
        placements.append(bench.lab.placement)
        return bench

    monkeypatch.setattr("natgauge.labs.netns.usable_cpus", lambda: (0, 1))
    monkeypatch.setattr(Bench, "__enter__", enter)
    monkeypatch.setattr(NamespaceDevice, "frame_processes", lambda _: ("nat",))
    return placements


def found(choices: Mapping[str, Any]) -> Any:
    """The settings after the device was started and looked at."""
    bench = Bench(ask("connection-rate", "nftables-nat44", {"connections": 1000, **choices}).cell)
    planned = bench.plan("connection-rate", {"error": "7%"})
    assert not planned.settings.own_processes
    bench.__enter__()
    bench.processes = ("nat",)
    return bench._moved(planned).settings


def test_where_natgauge_chose_the_placement_it_chooses_again(made: list[str]) -> None:
    settings = found({})
    assert made == ["shared", "isolated"]
    assert (settings.placement, settings.own_processes, settings.error.share) == ("isolated", True, 0.07)


def test_a_placement_that_the_user_chose_stays(made: list[str]) -> None:
    settings = found({"placement": "shared"})
    assert made == ["shared"]
    assert (settings.placement, settings.own_processes) == ("shared", True)


def test_the_testers_own_work_is_not_taken_from_the_rate_of_a_process() -> None:
    known = {"placement": "shared", "tester_highest_phase2_rate": 1e6, "sender_cores": 1}
    assert own_work("throughput", 1e5, grouped(known)) is not None
    assert own_work("throughput", 1e5, grouped({**known, "own_processes": True})) is None
