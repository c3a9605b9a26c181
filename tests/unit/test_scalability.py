# SPDX-License-Identifier: Apache-2.0
"""Results of a series held against each other: every derived row, and why one is left out."""

from __future__ import annotations

import csv
import io
from functools import cache
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.golden import Golden
from tests.unit.made_results import made

from natgauge.analysis.scalability import DerivedRow, derived_rows
from natgauge.metrics import figures
from natgauge.published import load
from natgauge.records.measurement import Result
from natgauge.reports import csv_table, latex, markdown
from natgauge.reports.answers import answers
from natgauge.reports.difference import diff, text
from natgauge.reports.html.figures import looks_of, question_figures
from natgauge.reports.pivot import of_metrics
from natgauge.reports.pivot import sheet as against_sheet
from natgauge.reports.rows import uncompared
from natgauge.reports.sheet import sheet
from natgauge.reports.text import table, verdict

PREVIOUS = "median / previous median over "
WORSE = "degradation over "


RATE: dict[str, Any] = {"metric": "connection-rate", "unit": "connections/s"}
DEVICE: dict[str, Any] = {"gateway": "nat", "kind": "nat44", "device_cores": 1}


def result(median: float, metric: str = "throughput", unit: str = "frames/s", **parameters: Any) -> Result:
    """A result of a device on one core, told apart by its parameters."""
    common = {"gateway": "nat", "kind": "nat44", "device_cores": 1, "source_address_count": 1}
    return made([median], metric=metric, unit=unit, parameters={**common, **parameters})


def sessions(median: float, connections: int, **parameters: Any) -> Result:
    """One whose ranges, table and buckets grow with its connections."""
    grown = {"source_port_count": connections // 10, "table_size": 2 * connections, "hash_size": connections}
    return result(median, **{"connections": connections, "destination_port_count": 10, **grown, **parameters})


def row(name: str, *results: Result) -> DerivedRow:
    (found,) = (each for each in derived_rows(results) if each.name == name)
    return found


def values(name: str, *results: Result) -> list[float | None]:
    return [comparison.value for comparison in row(name, *results).comparisons]


def doubts(name: str, *results: Result) -> list[str]:
    found = row(name, *results)
    return ["; ".join(uncompared([found], at, results)) for at in range(len(results))]


def published(name: str, kind: Any, series: str) -> list[float]:
    """A row of figures of a published table."""
    found = load.table(name).row(kind, series)
    assert found is not None
    return [number.value for number in found.numbers() if number is not None]


def test_a_series_over_cores_gives_the_published_rows() -> None:
    """Paper table 4, held in results of ours."""
    medians = published("nat64-paper-table-4", "median", "cps")
    series = [
        result(median, "connection-rate", "connections/s", device_cores=cores, sender_cores=cores)
        for median, cores in zip(medians, (1, 2, 4, 8, 16), strict=True)
    ]
    assert values(f"{PREVIOUS}cores", *series)[1:] == pytest.approx([1.59, 1.27, 1.08, 1.06], abs=0.005)
    assert values("relative scale-up", *series)[1:] == [
        median / (cores * medians[0]) for median, cores in zip(medians[1:], (2, 4, 8, 16), strict=True)
    ]


def test_a_series_over_sessions_gives_the_published_row_and_the_degradation() -> None:
    """Paper table 7, held in results of ours."""
    medians = published("nat64-paper-table-7", "median", "throughput")
    series = [sessions(median, count) for median, count in zip(medians, (400_000, 4_000_000, 40_000_000), strict=True)]
    assert values(f"{PREVIOUS}sessions", *series)[1:] == pytest.approx([0.71, 0.76], abs=0.005)
    assert values(f"{WORSE}sessions", *series) == [
        None, *(100 * (medians[0] - median) / medians[0] for median in medians[1:])
    ]  # fmt: skip


def test_more_hosts_with_as_many_sessions_are_a_series_of_their_own(golden: Golden) -> None:
    series = [
        result(8.0, source_address_count=1, source_port_count=100),
        result(6.0, source_address_count=10, source_port_count=10),
    ]
    assert values(f"{WORSE}hosts", *series) == [None, 25.0]
    assert values(f"{PREVIOUS}hosts", *series) == [None, 0.75]
    assert values(f"{WORSE}sessions", *series) == [None, None]
    golden(table(series))


def test_that_a_series_begins_with_more_than_one_flow_is_told_once(golden: Golden) -> None:
    series = [sessions(8.0, 1000), sessions(6.0, 10_000), sessions(5.0, 100_000)]
    said = [line for line in table(series).splitlines() if "RFC 8219" in line]
    (line,) = said
    golden(line)
    alone = [sessions(8.0, 1), sessions(6.0, 10_000)]
    assert "RFC 8219" not in table(alone)
    assert values(f"{WORSE}sessions", *alone) == [None, 25.0]


def test_a_step_that_was_measured_otherwise_is_not_skipped(golden: Golden) -> None:
    """The step before it would pass for the previous one."""
    series = [sessions(8.0, 1000), sessions(6.0, 10_000, ring=512), sessions(5.0, 100_000)]
    told = "not compared with column 2, nat: ring (frames) none against 512"
    assert values(f"{PREVIOUS}sessions", *series) == [None, None, None]
    golden(doubts(f"{PREVIOUS}sessions", *series)[2])
    assert values(f"{WORSE}sessions", *series) == [None, None, 37.5]
    reason = f"Column 3, nat: {PREVIOUS}sessions {told}."
    assert reason in table(series).splitlines()


def test_the_order_of_the_columns_changes_nothing() -> None:
    series = [sessions(8.0, 1000), sessions(6.0, 10_000), sessions(4.5, 100_000)]
    expected = {8.0: None, 6.0: 0.75, 4.5: 0.75}
    for order in permutations(series):
        found = zip(order, values(f"{PREVIOUS}sessions", *order), strict=True)
        assert {one.median: value for one, value in found} == expected


#: Parameters of a device, of addresses and of ports that a plan may vary beside the connections.
OTHERS: list[tuple[str, Any, Any]] = [
    ("hash_size", 1024, 65_536), ("udp_timeout", 30, 300), ("source_address_count", 1, 100),
    ("source_port_count", 100, 60_000),
]  # fmt: skip


def grid(other: str, few: Any, many: Any, **grown: Any) -> list[Result]:
    """A series over connections and another parameter: with more of the other, 3 and 4 times as much."""
    return [
        made([median] * 6, **RATE, parameters={**DEVICE, "connections": connections, other: value, **grown})
        for connections, value, median in (
            (1000, few, 100_000.0), (1000, many, 300_000.0), (100_000, few, 50_000.0), (100_000, many, 200_000.0),
        )
    ]  # fmt: skip


@pytest.mark.parametrize(("other", "few", "many"), OTHERS)
def test_a_series_over_two_parameters_pairs_only_points_that_agree_in_the_other(
    other: str, few: Any, many: Any
) -> None:
    results = grid(other, few, many)
    ratios = {100_000.0: None, 300_000.0: None, 50_000.0: 0.5, 200_000.0: 2 / 3}
    for order in permutations(results):
        found = zip(order, values(f"{PREVIOUS}sessions", *order), strict=True)
        assert {one.median: value for one, value in found} == pytest.approx(ratios)
        # Of the whole series neither the lowest nor the highest ratio is 2, of 200 k to 100 k.
        (grown,) = [sentence.text for sentence in answers(order) if sentence.certainty is not None]
        assert "0.50 to 0.67 times" in grown
        (group,) = question_figures(order, [()] * 4, looks_of(order, []))
        shown = {figure.title: {(row[1], row[2]) for row in figure.data} for figure in group.figures}
        assert sorted(map(sorted, shown.values())) == [
            [("1,000", "100,000"), ("100,000", "50,000")], [("1,000", "300,000"), ("100,000", "200,000")]
        ]  # fmt: skip
        assert len(shown) == 2


def test_of_several_devices_that_forward_the_most_alike_is_the_reference() -> None:
    gateways = [made([rate], **RATE, parameters={**DEVICE, "hash_size": size}) for rate, size in ((10.0, 1), (20.0, 2))]
    forwarding = [
        made([rate], **RATE, parameters={**DEVICE, **FORWARDS, "hash_size": size})
        for rate, size in ((40.0, 1), (50.0, 2))
    ]
    for order in permutations([*gateways, *forwarding]):
        found = zip(order, values("share of plain forwarding", *order), strict=True)
        assert {one.median: value for one, value in found} == {10.0: 25.0, 20.0: 40.0, 40.0: None, 50.0: None}


#: Two tables and a limit that grows with each, on one to three points of each, twice.
RUNS = [
    made(
        [1000.0 * (place + 7) * (run + 3)] * 6,
        **RATE,
        parameters={**DEVICE, "connections": connections, "hash_size": size, "table_size": 2 * size},
        results=f"{connections}-{size}-{run}",
    )
    for place, (connections, size) in enumerate(
        [(1000, 64), (1000, 128), (4000, 64), (4000, 128), (16_000, 64), (64_000, 128)]
    )
    for run in range(2)
]


@cache
def said(order: tuple[int, ...]) -> tuple[list[str], list[str]]:
    """Derived values and answers of these runs, whatever their order."""
    every = [RUNS[at] for at in order]
    cells = [
        str((one.results, one_row.name, each.value, each.doubt))
        for one_row in derived_rows(every)
        for one, each in zip(every, one_row.comparisons, strict=True)
    ]
    return sorted(cells), sorted(sentence.text for sentence in answers(every) if sentence.certainty is not None)


@settings(max_examples=12)
@given(st.permutations(range(12)))
def test_no_answer_and_no_ratio_depends_on_the_order_of_folders(order: list[int]) -> None:
    assert said(tuple(order)) == said(tuple(range(12)))


@settings(max_examples=25)
@given(st.lists(st.floats(min_value=1, max_value=1e8), min_size=2, max_size=5))
def test_the_last_degradation_follows_from_the_steps(medians: list[float]) -> None:
    series = [sessions(median, 10**power) for power, median in enumerate(medians)]
    steps = values(f"{PREVIOUS}sessions", *series)
    left = 1.0
    for step in steps[1:]:
        assert step is not None
        left *= step
    assert values(f"{WORSE}sessions", *series)[-1] == pytest.approx(100 * (1 - left), rel=1e-6, abs=1e-6)


def test_the_table_rounds_and_csv_does_not() -> None:
    series = [sessions(3.0, 1000, table_size=3000), sessions(1.0, 3000, table_size=2**16)]
    lines = table(series).splitlines()
    assert [line.split()[-2:] for line in lines if line.startswith(PREVIOUS)] == [["-", "0.333"]]
    assert [line.split()[-2:] for line in lines if line.startswith(WORSE)] == [["-", "66.7"]]
    assert [line.split()[-2:] for line in lines if line.startswith("table limit per session")] == [["3", "21.8"]]
    first, second = csv.DictReader(io.StringIO(csv_table.table(series)))
    assert first[f"{PREVIOUS}sessions"] == ""
    assert float(second[f"{PREVIOUS}sessions"]) == 1 / 3
    assert float(second[f"{WORSE}sessions (%)"]) == 100 * (3 - 1) / 3
    assert float(second["table limit per session"]) == 2**16 / 3000


def limited(values: list[float], by: str, upper: float | None = None, **parameters: Any) -> Result:
    """A rate that something else than the device limited."""
    plain = result(values[0], "connection-rate", "connections/s", **parameters).document()
    (one,) = plain["repetitions"]
    plain["repetitions"] = [{**one, "value": value, "limited_by": by, "upper": upper} for value in values]
    return Result.from_document({**plain, "limited_by": by})


FORWARDS: dict[str, Any] = {"gateway": "linux-ipv4", "kind": "routing"}


def doubted(median: float, word: str, **parameters: Any) -> Result:
    notes = [{"word": word, "text": "x", "grade": "answer"}]
    return Result.from_document({**result(median, **parameters).document(), "doubts": notes})


def scaled(median: float, cores: int, **parameters: Any) -> Result:
    return result(median, device_cores=cores, sender_cores=cores, **parameters)


def of_limits(nat: str, forwarding: str, rate: float, placement: str) -> list[Result]:
    """A gateway and plain forwarding, each limited by something."""
    return [
        made([value] * 4, parameters={"gateway": gateway, "kind": kind, "placement": placement}, limited_by=by)
        for gateway, kind, value, by in (("nat", "nat44", rate, nat), ("linux-ipv4", "routing", 1000.0, forwarding))
    ]


LATENCY: dict[str, Any] = {"metric": "latency", "unit": "us"}
EXPIRY: dict[str, Any] = {"metric": "expiry", "unit": "connections/s"}
ISOLATED = {"placement": "isolated"}
FEW, _, BESIDE, MORE = grid("hash_size", 1024, 65_536)
SHARE, SCALE = "share of plain forwarding", "relative scale-up"
MANY = Result.from_document({**sessions(6.0, 1000, **RATE).document(), "limited_by": "tester"})
#: A row, results, the value that one of them has there, and what it is a bound of; None = it has none.
COMPARED: dict[str, tuple[str, list[Result], int, float | None, str]] = {
    **{
        f"a device on another machine: {name}": (
            name,
            [
                result(median, placement="external", device_cores=cores, sender_cores=1,
                       device_queues=[f"combined {cores}"] * 2)
                for cores, median in ((1, 100.0), (2, 180.0))
            ],
            1, value, "",
        )
        for name, value in ((SCALE, 0.9), (f"{PREVIOUS}cores", 1.8))
    },
    "a time degrades the other way": (
        f"{WORSE}sessions", [sessions(10.0, 1, **LATENCY), sessions(25.0, 10, **LATENCY)], 1, 150.0, ""
    ),
    "what is neither better nor worse does not degrade": (
        f"{WORSE}sessions", [sessions(10.0, 1, **EXPIRY), sessions(5.0, 10, **EXPIRY)], 1, None, ""
    ),
    "what is neither better nor worse has a step": (
        f"{PREVIOUS}sessions", [sessions(10.0, 1, **EXPIRY), sessions(5.0, 10, **EXPIRY)], 1, 0.5, ""
    ),
    **{
        f"nothing is compared with nothing: {name}": (name, [sessions(0.0, 1000), sessions(6.0, 10_000)], 1, None, "")
        for name in (f"{PREVIOUS}sessions", f"{WORSE}sessions")
    },
    **{
        f"another series: {next(iter(changed))}": (
            f"{PREVIOUS}sessions", [sessions(8.0, 1000, **changed), sessions(6.0, 10_000)], 1, None, ""
        )
        for changed in ({"gateway": "other"}, {"metric": "latency"}, {"device_cores": 2})
    },
    "an unlike point is none where its own was not measured": (f"{PREVIOUS}sessions", [FEW, BESIDE, MORE], 2, None, ""),
    "a like point has its step": (f"{PREVIOUS}sessions", [FEW, BESIDE, MORE], 1, 0.5, ""),
    # What varies with the connections follows them where each has a value of its own.
    "what varies with the connections follows them": (f"{PREVIOUS}sessions", [FEW, MORE], 1, 2.0, ""),
    "a scale-up that the tester limited": (
        SCALE, [scaled(300_000.0, 1, **RATE), limited([580_000.0], "tester", device_cores=2, sender_cores=2)], 1,
        580 / 600, ">=",
    ),
    "a degradation that the tester limited": (f"{WORSE}sessions", [sessions(8.0, 1, **RATE), MANY], 1, 25.0, "<="),
    **{
        f"a scale-up with {word}": (
            SCALE, [scaled(1e6, 1), doubted(1.02e6, word, device_cores=2, sender_cores=2)], 1, 0.51, bound
        )
        for word, bound in (("link limited", ">="), ("rare loss", ">="), ("flow control", "<="), ("drift", ""))
    },
    "a share of forwarding that the link limited": (
        SHARE, [result(1e6), doubted(1.02e6, "link limited", **FORWARDS)], 0, 100 / 1.02, "<="
    ),
    "a share of what the link limited on both sides": (
        SHARE, [doubted(1e6, "link limited"), doubted(1.02e6, "link limited", **FORWARDS)], 0, None, ""
    ),
    "a share of what the tester limited on both sides": (
        SHARE, [limited([300_000.0], "tester"), limited([1_000_000.0], "tester", **FORWARDS)], 0, None, ""
    ),
    "a share of an undecided search": (
        SHARE, [result(300_000.0, **RATE), limited([500_000.0], "time", 2_000_000.0, **FORWARDS)], 0, None, ""
    ),
    # Without an upper bound only one side is open.
    "a share of an undecided search without an upper bound": (
        SHARE, [result(300_000.0, **RATE), limited([500_000.0], "time", **FORWARDS)], 0, 60.0, "<="
    ),
    "the error of a search is no limit": (
        SHARE,
        [
            limited([300_000.0], "device", 310_000.0, **ISOLATED),
            limited([1_000_000.0], "device", 1_010_000.0, **FORWARDS, **ISOLATED),
        ],
        0, 30.0, "",
    ),
    # The tester's part makes both rates more alike: below 100 % the device's share is lower, above it higher.
    # Seen: ">= 56" where the device alone may have 40 % of plain forwarding.
    **{
        f"{rate:.0f} limited by the {nat} of 1000 limited by the {forwarding}, {placement}": (
            SHARE, of_limits(nat, forwarding, rate, placement), 0,
            rate / 10 if placement == "isolated" or bound == ("<=" if rate < 1000 else ">=") else None,
            bound if placement == "isolated" or bound == ("<=" if rate < 1000 else ">=") else "",
        )
        for nat, forwarding, bound in (("tester", "device", ">="), ("device", "tester", "<="))
        for rate in (560.0, 1300.0)
        for placement in ("isolated", "shared")
    },
}  # fmt: skip


@pytest.mark.parametrize("name", COMPARED)
def test_a_derived_figure_is_a_value_a_bound_or_none(name: str, golden: Golden) -> None:
    of, results, at, value, bound = COMPARED[name]
    first, found = row(of, *results).comparisons[0], row(of, *results).comparisons[at]
    assert at == 0 or first.value is None, "the first point has none before it"
    assert (found.value, found.bound) == (None if value is None else pytest.approx(value), bound)
    of_forwarding = [one.text for one in answers(results) if "forwarding" in one.text or "only forwards" in one.text]
    golden([doubts(of, *results)[at], *(of_forwarding if of == SHARE else ())])
    assert found.doubt in table(results)


def forms(results: list[Result]) -> tuple[str, ...]:
    """Text, Markdown, CSV, LaTeX, and the answers in words."""
    drawn = " ".join(sentence.text for sentence in answers(results))
    return (
        table(results),
        markdown.render(sheet(results)),
        csv_table.table(results),
        latex.render(sheet(results)),
        drawn,
    )


@pytest.mark.parametrize("by", ["tester", "host", "server"])
def test_a_share_of_forwarding_that_the_tester_limited_is_at_most_that(by: str, golden: Golden) -> None:
    results = [result(300_000.0, **RATE), limited([1_000_000.0], by, **FORWARDS)]
    found = row("share of plain forwarding", *results).comparisons[0]
    assert (found.value, found.bound) == (30.0, "<=")
    text, marked, as_csv, as_latex, drawn = forms(results)
    assert "<= 30" in text
    assert "<= 30" in marked or "&lt;= 30" in marked
    assert "<= 30" in as_csv
    assert r"\textless{}= 30" in as_latex
    golden(drawn)


def test_the_middle_of_an_even_number_of_losses_is_the_mean_of_the_middle_two() -> None:
    """RFC 2330 section 11.3, as everywhere."""
    rows = [[{"offered_percent": 100.0, "offered_rate": 1000.0, "lost_percent": lost}] for lost in (1.0, 2.0, 4.0, 8.0)]
    losses = made(
        [1.0, 2.0, 4.0, 8.0],
        median=3.0,
        series=rows,
        metric="frame-loss",
        unit="%",
        parameters={"placement": "isolated"},
    )
    (group,) = question_figures([losses], [()], looks_of([losses], []))
    assert group.title == "Loss against load"
    assert "1,000 frames/s: 3" in str(group.figures[0].spec)


@pytest.mark.parametrize(
    ("directions", "said"),
    [("both", "in each direction"), ("up", "from inside"), ("down", "from outside")],
)
def test_no_form_says_frames_a_second_without_a_direction_and_each_has_the_sum(directions: str, said: str) -> None:
    """Papers print the sum of all directions; the RFCs' throughput is that of each."""
    results = [
        made(
            [median],
            unit="frames/s",
            figures={"frames_per_second_total": 2 * median},
            parameters={"gateway": "nat", "directions": directions, "device_cores": cores},
        )
        for median, cores in ((250_000.0, 1), (260_000.0, 2))
    ]
    printed = (*forms(results), text(diff(results[:1], results[1:], across=["device_cores"])), verdict(results[0]))
    for form in printed:
        told = form
        for other in (
            "frames/s all directions together",
            "all directions (frames/s)",
            "theoretical maximum (frames/s in",
            "highest rate without loss (frames/s of",
            "highest rate within the tolerated loss (frames/s of",
            # Labels of figures say what they are rates of.
            *(f"{figure.label} (frames/s" for figure in figures().values() if figure.label),
        ):
            told = told.replace(other, "")
        assert f"frames/s {said}" in told
        assert told.count("frames/s") == told.count(f"frames/s {said}"), form
    for form in printed[:4]:
        assert "all directions (frames/s)" in form
        assert any(text in form for text in ("500 k", "500000"))
    turned = " ".join(line.heading for line in against_sheet(results, "cores").lines)
    assert f"frames/s {said}" in turned
    glance = " ".join(cell for line in of_metrics(results[:1]).lines for cell in line.cells)
    assert f"frames/s {said}" in glance
