# SPDX-License-Identifier: Apache-2.0
"""In `shared` placement the tester's own work is in each rate: they say how much; shares of forwarding are bounds."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.golden import Golden
from tests.unit.made_results import grouped, made

from natgauge.analysis.scalability import of_forwarding
from natgauge.measurements.making import make
from natgauge.procedures.kit.result.results import Measurement, make_result
from natgauge.records.measurement import Result
from natgauge.reports.answers import answers
from natgauge.reports.text import table, verdict
from natgauge.words import Verdict

TOPS = {"tester_highest_phase1_rate": 5e6, "tester_highest_phase2_rate": 6.5e6, "sender_cores": 1}


def result(metric: str, unit: str, value: float, total: float | None = None, **given: Any) -> Result:
    figures = {} if total is None else {"frames_per_second_total": total}
    one = Measurement(value, value, "device", {Verdict.PASS: 1, Verdict.INVALID: 0}, figures=figures)
    return make(make_result(metric, unit, {}, [one, one]), grouped({"placement": "shared", **TOPS, **given}))


@pytest.mark.parametrize(
    ("metric", "unit", "value", "total"),
    [
        ("throughput", "frames/s", 360_000.0, 720_000.0),
        ("throughput", "frames/s", 1_675_471.0, 1_675_471.0),
        ("connection-rate", "connections/s", 500_000.0, None),
    ],
)
def test_a_shared_rate_says_what_of_it_is_the_testers_own_work(
    metric: str, unit: str, value: float, total: float | None, golden: Golden
) -> None:
    found = result(metric, unit, value, total)
    golden(next(note.text for note in found.notes if note.word == "tester"))
    golden(verdict(found, brief=True))
    assert "own work" in table([found])


@pytest.mark.parametrize(
    ("metric", "given"),
    [
        ("connection-rate", {"placement": "isolated"}),
        ("connection-rate", {"tester_highest_phase1_rate": None}),
        ("expiry", {}),
    ],
)
def test_nothing_is_said_where_the_testers_work_is_elsewhere_or_not_known(metric: str, given: dict[str, Any]) -> None:
    found = result(metric, "connections/s", 500_000.0, **given)
    assert "own work" not in verdict(found)


@pytest.mark.parametrize(("placement", "bound"), [("shared", "<="), ("isolated", "")])
def test_a_share_of_forwarding_that_contains_the_testers_work_is_an_upper_bound(
    placement: str, bound: str, golden: Golden
) -> None:
    """0.56 of plain forwarding was told as exact, where the device's own frames cost 2.5 times as much."""
    forwarding, nat = (
        made([value] * 4, parameters={"gateway": gateway, "kind": kind, "placement": placement})
        for gateway, kind, value in (("linux-ipv4", "routing", 1000.0), ("nat", "nat44", 560.0))
    )
    share = of_forwarding(nat, [forwarding, nat])
    assert share.value == pytest.approx(56.0)
    assert share.bound == bound
    told = " ".join(sentence.text for sentence in answers([forwarding, nat]))
    golden(told)
