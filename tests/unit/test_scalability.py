# SPDX-License-Identifier: Apache-2.0
"""Results of a series held against each other: every derived row, and why one is left out."""

from __future__ import annotations

import csv
import io
import itertools
import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.conftest import Ran, Reported
from tests.unit.golden import Golden
from tests.unit.made_results import kept, made, searched
from tests.unit.pages import tables_of, words_of

from natgauge import Result
from natgauge.analysis.derived import derived_rows

PREVIOUS = "median / previous median over "
WORSE = "degradation over "


RATE: dict[str, Any] = {"metric": "connection-rate", "unit": "connections/s"}
OPENED = "New connections per second"
DEVICE: dict[str, Any] = {"gateway": "nat", "kind": "nat44", "device_cores": 1}


def result(
    median: float,
    metric: str = "throughput",
    unit: str = "frames/s",
    limited_by: str = "device",
    doubted: str | None = None,
    **parameters: Any,
) -> Result:
    """A result of a device on one core, told apart by its parameters."""
    common = {"gateway": "nat", "kind": "nat44", "device_cores": 1, "source_address_count": 1}
    doubts = [] if doubted is None else [{"word": doubted, "text": "x", "grade": "answer"}]
    of: dict[str, Any] = {"metric": metric, "unit": unit, "limited_by": limited_by, "doubts": doubts}
    return made([median], parameters={**common, **parameters}, **of)


def sessions(median: float, connections: int, **parameters: Any) -> Result:
    """One whose ranges, table and buckets grow with its connections."""
    grown = {"source_port_count": connections // 10, "table_size": 2 * connections, "hash_size": connections}
    return result(median, **{"connections": connections, "destination_port_count": 10, **grown, **parameters})


def bounds(name: str, said: Any) -> list[tuple[float | None, str]]:
    """The value of each result in a row of a report, and what it is a bound of."""
    rows = {row["row"]: row["cells"] for row in said["table"]["rows"]}
    # A report leaves out a row without any value.
    assert name in {row.name for row in derived_rows([])}
    cells = rows.get(name, [None] * len(said["table"]["columns"]))
    return [(cell["value"], cell["bound"]) if isinstance(cell, dict) else (cell, "") for cell in cells]


def values(name: str, said: Any) -> list[float | None]:
    return [value for value, _ in bounds(name, said)]


def published(name: str, kind: str, quantity: str, ran: Ran) -> list[float]:
    """A row of figures of a published table."""
    ((table,)) = json.loads(ran(["published", name, "--json"]).out)["tables"]
    (found,) = (row["values"] for row in table["rows"] if (row["is"], row["quantity"]) == (kind, quantity))
    return [value for value in found if value is not None]


def shown_as(form: str, results: list[Result], folder: Path, ran: Ran) -> str:
    folders = [str(kept(folder / str(at), one)) for at, one in enumerate(results)]
    text: str = ran(["report", *folders, "--format", form, *(["-v"] if form == "latex" else [])]).out
    return text


def test_a_series_over_cores_gives_the_published_rows(ran: Ran, reported: Reported) -> None:
    """Paper table 4, held in results of ours."""
    medians = published("nat64-paper-table-4", "median", "cps", ran)
    series = [
        result(median, "connection-rate", "connections/s", device_cores=cores, sender_cores=cores)
        for median, cores in zip(medians, (1, 2, 4, 8, 16), strict=True)
    ]
    said = reported(*series)
    assert values(f"{PREVIOUS}cores", said)[1:] == pytest.approx([1.59, 1.27, 1.08, 1.06], abs=0.005)
    assert values("relative scale-up", said)[1:] == [
        median / (cores * medians[0]) for median, cores in zip(medians[1:], (2, 4, 8, 16), strict=True)
    ]


def test_a_series_over_sessions_gives_the_published_row_and_the_degradation(ran: Ran, reported: Reported) -> None:
    """Paper table 7, held in results of ours."""
    medians = published("nat64-paper-table-7", "median", "throughput", ran)
    series = [sessions(median, count) for median, count in zip(medians, (400_000, 4_000_000, 40_000_000), strict=True)]
    said = reported(*series)
    assert values(f"{PREVIOUS}sessions", said)[1:] == pytest.approx([0.71, 0.76], abs=0.005)
    assert values(f"{WORSE}sessions", said) == [
        None, *(100 * (medians[0] - median) / medians[0] for median in medians[1:])
    ]  # fmt: skip


def test_derived_rows_have_a_value_or_the_doubt_that_keeps_it_away() -> None:
    series = [sessions(8.0, 1, ring=512), sessions(6.0, 10, ring=512), sessions(3.0, 100, ring=1024)]
    rows = {row.name: row for row in derived_rows(series)}
    for name, unit, found in ((f"{PREVIOUS}sessions", "", 0.75), (f"{WORSE}sessions", "%", 25.0)):
        (first, second, third), row = rows[name].comparisons, rows[name]
        assert row.unit == unit
        assert (first.value, first.doubt) == (None, "")
        assert (second.value, second.doubt) == (found, "")
        assert third.value is None
        assert "ring" in third.doubt


def test_more_hosts_with_as_many_sessions_are_a_series_of_their_own(
    golden: Golden, tmp_path: Path, ran: Ran, reported: Reported
) -> None:
    series = [
        result(8.0, source_address_count=1, source_port_count=100),
        result(6.0, source_address_count=10, source_port_count=10),
    ]
    said = reported(*series)
    assert values(f"{WORSE}hosts", said) == [None, 25.0]
    assert values(f"{PREVIOUS}hosts", said) == [None, 0.75]
    assert values(f"{WORSE}sessions", said) == [None, None]
    golden(shown_as("text", series, tmp_path, ran).partition("\n\n")[2])


def test_that_a_series_begins_with_more_than_one_flow_is_told_once(golden: Golden, reported: Reported) -> None:
    series = reported(sessions(8.0, 1000), sessions(6.0, 10_000), sessions(5.0, 100_000))
    (note,) = (note for note in series["notes"] if "RFC 8219" in note)
    golden(note)
    alone = reported(sessions(8.0, 1), sessions(6.0, 10_000))
    assert not [note for note in alone["notes"] if "RFC 8219" in note]
    assert values(f"{WORSE}sessions", alone) == [None, 25.0]


def test_a_step_that_was_measured_otherwise_is_not_skipped(
    tmp_path: Path, ran: Ran, reported: Reported, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step before it would pass for the previous one."""
    series = [sessions(8.0, 1000), sessions(6.0, 10_000, ring=512), sessions(5.0, 100_000)]
    said = reported(*series)
    assert values(f"{PREVIOUS}sessions", said) == [None, None, None]
    assert values(f"{WORSE}sessions", said) == [None, None, 37.5]
    monkeypatch.setenv("COLUMNS", "200")
    reason = f"Column 3, nat: {PREVIOUS}sessions not compared with column 2, nat: ring (frames) none against 512."
    assert reason in shown_as("text", series, tmp_path, ran).splitlines()


def test_the_order_of_the_columns_changes_nothing(reported: Reported) -> None:
    series = [sessions(8.0, 1000), sessions(6.0, 10_000), sessions(4.5, 100_000)]
    expected = {8.0: None, 6.0: 0.75, 4.5: 0.75}
    for order in permutations(series):
        found = zip(order, values(f"{PREVIOUS}sessions", reported(*order)), strict=True)
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
    other: str, few: Any, many: Any, reported: Reported
) -> None:
    results = grid(other, few, many)
    ratios = {100_000.0: None, 300_000.0: None, 50_000.0: 0.5, 200_000.0: 2 / 3}
    for order in itertools.islice(permutations(results), 0, None, 11):
        said = reported(*order)
        found = zip(order, values(f"{PREVIOUS}sessions", said), strict=True)
        assert {one.median: value for one, value in found} == pytest.approx(ratios)
        # Of the whole series neither the lowest nor the highest ratio is 2, of 200 k to 100 k.
        (grown,) = [one["text"] for one in said["answers"] if one["certainty"] is not None]
        assert "0.50 to 0.67 times" in grown
        figures = tables_of(reported(*order, html=True), f"Data of {OPENED} against connections (connections/s)")
        assert sorted([tuple(map(words_of, row[1:3])) for row in rows] for _, *rows in figures) == [
            [("1,000", "100,000"), ("100,000", "50,000")], [("1,000", "300,000"), ("100,000", "200,000")]
        ]  # fmt: skip


def test_of_several_devices_that_forward_the_most_alike_is_the_reference(reported: Reported) -> None:
    gateways = [made([rate], **RATE, parameters={**DEVICE, "hash_size": size}) for rate, size in ((10.0, 1), (20.0, 2))]
    forwarding = [
        made([rate], **RATE, parameters={**DEVICE, **FORWARDS, "hash_size": size})
        for rate, size in ((40.0, 1), (50.0, 2))
    ]
    for order in itertools.islice(permutations([*gateways, *forwarding]), 0, None, 11):
        found = zip(order, values("share of plain forwarding", reported(*order)), strict=True)
        assert {one.median: value for one, value in found} == {10.0: 25.0, 20.0: 40.0, 40.0: None, 50.0: None}


#: Two tables and a limit that grows with each, on one to three points of each, twice.
RUNS = [
    made(
        [1000.0 * (place + 7) * (run + 3) + place] * 6,
        **RATE,
        parameters={**DEVICE, "connections": connections, "hash_size": size, "table_size": 2 * size},
    )
    for place, (connections, size) in enumerate(
        [(1000, 64), (1000, 128), (4000, 64), (4000, 128), (16_000, 64), (64_000, 128)]
    )
    for run in range(2)
]


def said_of(order: list[int], reported: Reported) -> tuple[Any, list[str]]:
    """The rows by the median of their results and the answers of these runs, whatever their order."""
    said = reported(*(RUNS[at] for at in order))
    rows = {
        row["row"]: dict(zip([RUNS[at].median for at in order], row["cells"], strict=True))
        for row in said["table"]["rows"]
    }
    return (rows, said["notes"]), sorted(one["text"] for one in said["answers"] if one["certainty"] is not None)


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(order=st.permutations(range(12)))
def test_no_answer_and_no_ratio_depends_on_the_order_of_folders(order: list[int], reported: Reported) -> None:
    assert said_of(order, reported) == said_of(list(range(12)), reported)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(medians=st.lists(st.floats(min_value=1, max_value=1e8), min_size=2, max_size=5))
def test_the_last_degradation_follows_from_the_steps(medians: list[float], reported: Reported) -> None:
    said = reported(*(sessions(median, 10**power) for power, median in enumerate(medians)))
    left = 1.0
    for step in values(f"{PREVIOUS}sessions", said)[1:]:
        assert step is not None
        left *= step
    assert values(f"{WORSE}sessions", said)[-1] == pytest.approx(100 * (1 - left), rel=1e-6, abs=1e-6)


def test_the_table_rounds_and_csv_does_not(tmp_path: Path, ran: Ran) -> None:
    series = [sessions(3.0, 1000, table_size=3000), sessions(1.0, 3000, table_size=2**16)]
    lines = shown_as("text", series, tmp_path, ran).splitlines()
    assert [line.split()[-2:] for line in lines if line.startswith(PREVIOUS)] == [["-", "0.333"]]
    assert [line.split()[-2:] for line in lines if line.startswith(WORSE)] == [["-", "66.7"]]
    assert [line.split()[-2:] for line in lines if line.startswith("table limit per session")] == [["3", "21.8"]]
    first, second = csv.DictReader(io.StringIO(shown_as("csv", series, tmp_path / "again", ran)))
    assert first[f"{PREVIOUS}sessions"] == ""
    assert float(second[f"{PREVIOUS}sessions"]) == 1 / 3
    assert float(second[f"{WORSE}sessions (%)"]) == 100 * (3 - 1) / 3
    assert float(second["table limit per session"]) == 2**16 / 3000


def limited(value: float, by: str, upper: float | None = None, **parameters: Any) -> Result:
    """A rate that something else than the device limited."""
    of: dict[str, Any] = {**RATE, "limited_by": by, "parameters": {"source_address_count": 1, **DEVICE, **parameters}}
    return made([value], **of) if upper is None else searched([value], upper - value, **of)


FORWARDS: dict[str, Any] = {"gateway": "linux-ipv4", "kind": "routing"}


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
MANY = sessions(6.0, 1000, **RATE, limited_by="tester")
#: A row, results, the value that one of them has there, and what it is a bound of; None = it has none.
COMPARED: dict[str, tuple[str, list[Result], int, float | None, str]] = {
    **{
        f"a device on another machine: {name}": (
            name,
            [
                result(median, placement="external", lab_kind="wire", device_cores=cores, sender_cores=1,
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
        for changed in ({"gateway": "other"}, {"metric": "latency", "unit": "us"}, {"device_cores": 2})
    },
    "an unlike point is none where its own was not measured": (f"{PREVIOUS}sessions", [FEW, BESIDE, MORE], 2, None, ""),
    "a like point has its step": (f"{PREVIOUS}sessions", [FEW, BESIDE, MORE], 1, 0.5, ""),
    # What varies with the connections follows them where each has a value of its own.
    "what varies with the connections follows them": (f"{PREVIOUS}sessions", [FEW, MORE], 1, 2.0, ""),
    "a scale-up that the tester limited": (
        SCALE, [scaled(300_000.0, 1, **RATE), limited(580_000.0, "tester", device_cores=2, sender_cores=2)], 1,
        580 / 600, ">=",
    ),
    "a degradation that the tester limited": (f"{WORSE}sessions", [sessions(8.0, 1, **RATE), MANY], 1, 25.0, "<="),
    **{
        f"a scale-up with {word}": (
            SCALE, [scaled(1e6, 1), result(1.02e6, doubted=word, device_cores=2, sender_cores=2)], 1, 0.51, bound
        )
        for word, bound in (("link limited", ">="), ("rare loss", ">="), ("flow control", "<="), ("drift", ""))
    },
    "a share of forwarding that the link limited": (
        SHARE, [result(1e6), result(1.02e6, doubted="link limited", **FORWARDS)], 0, 100 / 1.02, "<="
    ),
    "a share of what the link limited on both sides": (
        SHARE, [result(1e6, doubted="link limited"), result(1.02e6, doubted="link limited", **FORWARDS)], 0, None, ""
    ),
    "a share of what the tester limited on both sides": (
        SHARE, [limited(300_000.0, "tester"), limited(1_000_000.0, "tester", **FORWARDS)], 0, None, ""
    ),
    "a share of an undecided search": (
        SHARE, [result(300_000.0, **RATE), limited(500_000.0, "time", 2_000_000.0, **FORWARDS)], 0, None, ""
    ),
    # Without an upper bound only one side is open.
    "a share of an undecided search without an upper bound": (
        SHARE, [result(300_000.0, **RATE), limited(500_000.0, "time", **FORWARDS)], 0, 60.0, "<="
    ),
    "the error of a search is no limit": (
        SHARE,
        [
            limited(300_000.0, "device", 310_000.0, **ISOLATED),
            limited(1_000_000.0, "device", 1_010_000.0, **FORWARDS, **ISOLATED),
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
def test_a_derived_figure_is_a_value_a_bound_or_none(name: str, golden: Golden, reported: Reported) -> None:
    of, results, at, value, bound = COMPARED[name]
    said = reported(*results)
    found = bounds(of, said)
    assert at == 0 or found[0] == (None, ""), "the first point has none before it"
    assert found[at] == (None if value is None else pytest.approx(value), bound)
    of_forwarding = [
        one["text"] for one in said["answers"] if "forwarding" in one["text"] or "only forwards" in one["text"]
    ]
    reasons = [note for note in said["notes"] if of in note and " not compared with " in note]
    golden([*reasons, *(of_forwarding if of == SHARE else ())])


@pytest.mark.parametrize("by", ["tester", "host", "server"])
def test_a_share_of_forwarding_that_the_tester_limited_is_at_most_that(
    by: str, golden: Golden, tmp_path: Path, ran: Ran, reported: Reported
) -> None:
    results = [result(300_000.0, **RATE), limited(1_000_000.0, by, **FORWARDS)]
    said = reported(*results)
    assert bounds(SHARE, said)[0] == (30.0, "<=")
    for form, shown in (("text", "<= 30"), ("markdown", r"<= 30"), ("csv", "<= 30"), ("latex", r"\textless{}= 30")):
        assert shown in shown_as(form, results, tmp_path / form, ran), form
    golden(" ".join(one["text"] for one in said["answers"]))


def test_the_middle_of_an_even_number_of_losses_is_the_mean_of_the_middle_two(reported: Reported) -> None:
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
    page = reported(losses, html=True)
    assert "<h2>Loss against load</h2>" in page
    assert "1,000 frames/s: 3" in page.partition("<svg")[2].partition("</svg>")[0]


@pytest.mark.parametrize(
    ("directions", "said"),
    [("both", "in each direction"), ("up", "from inside"), ("down", "from outside")],
)
def test_no_form_says_frames_a_second_without_a_direction_and_each_has_the_sum(
    directions: str, said: str, tmp_path: Path, ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Papers print the sum of all directions; the RFCs' throughput is that of each."""
    monkeypatch.setenv("COLUMNS", "200")
    folders = [
        str(
            kept(
                tmp_path / str(cores),
                made(
                    [median],
                    unit="frames/s",
                    figures={"frames_per_second_total": 2 * median},
                    parameters={"gateway": "nat", "directions": directions, "device_cores": cores},
                ),
            )
        )
        for median, cores in ((250_000.0, 1), (260_000.0, 2))
    ]
    printed = [ran(["report", *folders, "--format", form]).out for form in ("text", "markdown")]
    rows = csv.DictReader(io.StringIO(ran(["report", *folders, "--format", "csv"]).out))
    # Columns without a value are of other metrics.
    printed.append("\n".join(f"{name}: {cell}" for row in rows for name, cell in row.items() if cell))
    printed.append(ran(["report", *folders, "--format", "latex", "-v"]).out)
    printed.append(ran(["diff", *folders, "--across", "device_cores"], status=5).out)
    for form in printed:
        told = form
        for other in (
            "frames/s all directions together",
            "all directions (frames/s)",
            "theoretical maximum (frames/s in",
            "highest rate without loss (frames/s of",
            "highest rate within the tolerated loss (frames/s of",
        ):
            told = told.replace(other, "")
        assert f"frames/s {said}" in told
        assert told.count("frames/s") == told.count(f"frames/s {said}"), form
    for form in printed[:4]:
        assert "all directions (frames/s)" in form
        assert any(text in form for text in ("500 k", "500000"))
    for words in ([*folders, "--against", "cores"], [folders[0], "--against", "metrics"]):
        assert f"frames/s {said}" in ran(["report", *words]).out.partition("\n\n")[2]
