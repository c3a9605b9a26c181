# SPDX-License-Identifier: Apache-2.0
"""In `shared` placement the tester's own work is in each rate: they say how much; shares of forwarding are bounds."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.golden import Golden
from tests.unit.made_results import grouped, made

from natgauge.analysis.scalability import of_forwarding
from natgauge.comparisons.compare import log_notes
from natgauge.measurements.making import make
from natgauge.notes import Note
from natgauge.procedures.kit.result.results import Measurement, make_result
from natgauge.records.measurement import Result
from natgauge.reports.answers import answers
from natgauge.reports.html.references import limit_of
from natgauge.reports.rows import own_share
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


def log_notes_of(result: Result) -> list[str]:
    return [note.text for note in result.notes if note.word == "device" and "write the log" in note.text]


def test_a_shared_figure_says_that_it_leaves_out_what_writes_the_log() -> None:
    """The programs have every core in this placement, and the rate was said to be that of one."""
    way: dict[str, Any] = {"logging": "conntrack-events", "log_tolerance": 0.0}
    (text,) = log_notes_of(result("connection-rate", "connections/s", 500_000.0, **way))
    assert text.startswith("placement shared: programs that write the log (conntrack-events) run on any core")
    assert log_notes_of(result("connection-rate", "connections/s", 500_000.0)) == []
    assert log_notes_of(result("connection-rate", "connections/s", 500_000.0, **way, placement="isolated")) == []


def test_a_comparison_names_the_gateways_whose_logs_cost_more_than_it_says() -> None:
    plain, logged = grouped({"placement": "shared"}), grouped({"placement": "shared", "logging": "nflog-ulogd"})
    (note,) = log_notes({"nat": plain, "nat:log": logged, "nat again": plain})
    assert note.text.startswith("nat:log: placement shared: programs that write the log (nflog-ulogd)")
    assert log_notes({"nat:log": logged, "nat": plain, "again": logged}) == [Note("device", note.text)]


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


@pytest.mark.parametrize(
    ("placement", "rate", "bound"), [("shared", 560.0, "<="), ("isolated", 560.0, ""), ("shared", 1300.0, ">=")]
)
def test_a_share_of_forwarding_that_contains_the_testers_work_is_a_bound(
    placement: str, rate: float, bound: str, golden: Golden
) -> None:
    """0.56 of plain forwarding was told as exact, where the device's own frames cost 2.5 times as much."""
    forwarding, nat = (
        made([value] * 4, parameters={"gateway": gateway, "kind": kind, "placement": placement})
        for gateway, kind, value in (("linux-ipv4", "routing", 1000.0), ("nat", "nat44", rate))
    )
    share = of_forwarding(nat, [forwarding, nat])
    assert share.value == pytest.approx(rate / 10)
    assert share.bound == bound
    told = " ".join(sentence.text for sentence in answers([forwarding, nat]))
    golden(told)


#: As many openings as frames of one direction: of 3 frames, two are over open connections.
MIXED = {"frames_per_second_total": 2e6, "connections_per_second": 1e6}


def mixed(
    metric: str = "mixed-load", figures: dict[str, float] = MIXED, unit: str = "frames/s", **given: Any
) -> Result:
    one = Measurement(1e6, 1.01e6, "device", {Verdict.PASS: 1, Verdict.INVALID: 0}, figures=figures)
    return make(make_result(metric, unit, {}, [one, one]), grouped({**TOPS, **given}))


def noted(result: Result, word: str) -> float | None:
    return next((note.value for note in (*result.notes, *result.doubts) if note.word == word), None)


def test_the_testers_work_for_openings_is_in_a_rate_of_frames_beside_them() -> None:
    """A third of the frames was left out, and so was a third of the tester's work."""
    result = mixed(placement="shared")
    assert noted(result, "tester") == pytest.approx(3e6 / 6.5e6)
    assert own_share(result) == pytest.approx(3e6 / 6.5e6)


@pytest.mark.parametrize(
    ("figures", "transport", "frames"),
    [(MIXED, "udp", 3e6), ({**MIXED, "flood_per_second": 5e5}, "udp", 3.5e6), (MIXED, "tcp", 8e6)],
)
def test_the_receivers_run_for_each_frame_that_opens_or_closes_a_connection_too(
    figures: dict[str, float], transport: str, frames: float
) -> None:
    given: dict[str, Any] = {"placement": "isolated", "device_cores": 4, "receiver_ns": 100.0, "transport": transport}
    result = mixed("subscribers", figures, "subscribers", **given)
    assert noted(result, "tester on device cores") == pytest.approx(100e-9 * frames / 4)


def test_a_load_near_the_highest_that_was_tried_is_so_with_its_openings(golden: Golden) -> None:
    tops: dict[str, Any] = {
        "tester_highest_phase1_rate": None,
        "tester_highest_phase2_rate": None,
        "search_top_phase2_rate": 3.2e6,
    }
    result = mixed(placement="external", **tops)
    golden([str(doubt) for doubt in result.doubts if doubt.word == "tester unknown"])


@pytest.mark.parametrize(
    ("figures", "given", "limit"),
    [
        ({"frames_per_second_total": 2e6}, {}, 3.25e6),
        (MIXED, {}, 6.5e6 / 3),
        (MIXED, {"new_rate": 1e6}, 5.5e6 / 2),
        ({**MIXED, "flood_per_second": 5e5}, {}, 2e6),
    ],
)
def test_the_testers_limit_of_a_mixed_load_is_where_all_its_frames_are_the_testers_most(
    figures: dict[str, float], given: dict[str, Any], limit: float
) -> None:
    drawn = limit_of(mixed(figures=figures, directions="both", **given))
    assert drawn is not None
    assert drawn.value == pytest.approx(limit)
    assert limit_of(mixed(figures=figures, **given)) == drawn
