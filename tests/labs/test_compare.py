# SPDX-License-Identifier: Apache-2.0
"""`compare` with real gateways: a known difference is found, frames are judged, and nothing is left behind."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from tests.labs.external import external_nat
from tests.labs.nat44 import with_rules
from tests.labs.rough import slow_tester

import natgauge
from natgauge.comparisons import by_rates, compare
from natgauge.labs.common import namespaces

alone = pytest.mark.alone


def labs() -> list[str]:
    """Namespaces of comparisons of this process."""
    return [name for name in namespaces.names() if name.startswith(f"ng-compare-{os.getpid()}-")]


@alone
@pytest.mark.soak  # known_costs finds a real cost, and unit/test_comparison_statistics.py judges its intervals
@pytest.mark.slow("compares until the interval is narrow enough")
def test_twenty_rules_cost_more_than_none(tmp_path: Path) -> None:
    filtering = with_rules(tmp_path, "twenty-rules", *["counter"] * 20)
    found = natgauge.compare(
        "nftables-nat44",
        filtering,
        quantities="up",
        connections=20_000,
        fail_above="1%",
        most_seconds=60.0,
        results=tmp_path,
    )
    (figure,) = found.result.estimates
    assert figure.verdict == "costs more"
    assert (found.result.above, found.exit_status) == (True, 10)
    assert found.result.control[0].gateway == "nftables-nat44 (A/A control)"
    rounds = [json.loads(line) for line in (found.folder / "rounds.jsonl").read_text().splitlines()]
    assert len(rounds) == found.result.rounds
    for one in rounds:
        assert one["void"] == {}
        for block in one["result"]["blocks"]:
            # Two gateways, the first one again, plain forwarding, a cable: each twice.
            assert sorted(block["order"]) == [0, 1, 2, 3, 4]
            assert len(block["ns"]) == 10
        slices = one["request"]["slices"]
        assert slices["lead"] > 0
        for each in one["result"]["contestants"]:
            assert each["stored"] == 20_000
            # Those that lead a slice are judged as all others.
            made = 2 * len(one["result"]["blocks"]) * (slices["lead"] + slices["frames"])
            assert each["initiator"]["made_frames"] == each["initiator"]["received_frames"] == made
            # Each connection was answered before, so that it is an established one.
            assert each["responder"]["made_frames"] == each["responder"]["received_frames"] == 20_000
    assert labs() == []


@alone
def test_not_even_the_first_round_of_a_chain_is_void(tmp_path: Path) -> None:
    """Links within a chain lose frames until they know their neighbours; each round begins after that, in a new lab."""
    found = natgauge.compare(
        "ds-lite", "ds-lite", quantities="up", connections=2000, most_seconds=2.0, results=tmp_path
    )
    rounds = [json.loads(line) for line in (found.folder / "rounds.jsonl").read_text().splitlines()]
    assert [one["void"] for one in rounds] == [{}] * found.result.rounds


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches that end soon: nothing here depends on how near they come."""
    monkeypatch.setattr(by_rates, "SEARCH", {**by_rates.SEARCH, "error": "50%"})


@pytest.fixture
def once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparisons by rates that end after their first round, however long that is: nothing here depends on more."""
    monkeypatch.setattr(by_rates.ByRates, "first_analysis", 1)
    monkeypatch.setattr(compare, "is_narrow", lambda *_: True)


#: A question that few connections may answer: of a narrow interval they would be refused. A round fits into the time.
QUICKLY: Final[Mapping[str, Any]] = {
    "quantities": "new",
    "connections": 2000,
    "most_seconds": 120.0,
    "fail_above": "100%",
}


@pytest.mark.slow("searches three gateways whose processes start anew before each trial")
@pytest.mark.usefixtures("wide", "once")
def test_gateways_with_processes_are_compared_by_rates(tmp_path: Path) -> None:
    # A search that may go no higher than a slow tester ends at once; tests/labs/known_rates judges the rates.
    with slow_tester():
        found = natgauge.compare("tayga-nat64", "tayga-nat64", results=tmp_path, **QUICKLY)
    names = ["tayga-nat64", "tayga-nat64 (2)", "tayga-nat64 (A/A control)"]
    gateways = found.result.gateways
    assert (found.result.by, gateways[0].parameters.get("placement")) == ("rates", "isolated")
    assert [one.label for one in gateways] == names
    assert all(one.rates["new"] for one in gateways), found.result.notes
    # Of 2,000 connections, established in a fraction of a second, queues may have made a large part.
    for one in gateways:
        assert "queues" in [doubt.word for doubt in one.doubts["new"]]
    trials = [json.loads(line) for line in (found.folder / "trials.jsonl").read_text().splitlines()]
    assert {trial["gateway"] for trial in trials} == set(names)
    assert labs() == []


@pytest.mark.soak
@pytest.mark.slow("waits for a device on a wire to forget its connections")
@pytest.mark.usefixtures("wide", "once")
def test_gateways_behind_wires_are_compared_by_rates(tmp_path: Path) -> None:
    with external_nat("one", "nftables-nat44", 10) as (_, one), external_nat("two", "nftables-nat44", 10) as (_, two):
        more = {"device_timeout": 10, "grace_seconds": 0.3}
        names = [
            "nftables-nat44:" + ",".join(f"{name}={value}" for name, value in {**ports, **more}.items())
            for ports in (one, two)
        ]
        found = natgauge.compare(*names, results=tmp_path, **QUICKLY)
    assert found.result.by == "rates"
    assert [one.label for one in found.result.gateways] == [*names, f"{names[0]} (A/A control)"]
    assert all(one.rates["new"] for one in found.result.gateways), found.result.notes
