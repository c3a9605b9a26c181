# SPDX-License-Identifier: Apache-2.0
"""Results in words: the series as a small table, and many contradictions in one line."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.golden import Golden
from tests.unit.made_results import grouped, made
from tests.unit.simulated import Gateway

from natgauge.known_doubts import Grade, known
from natgauge.measurements.making import make
from natgauge.notes import Note
from natgauge.procedures import enumeration_orders, frame_loss, latency
from natgauge.procedures.kit.result.results import MeasurementResult
from natgauge.records.store import plain
from natgauge.reports import csv_table, markdown, pivot
from natgauge.reports.answers import one
from natgauge.reports.collected import Stored, StoredResults
from natgauge.reports.heading import heading
from natgauge.reports.main_figure import median
from natgauge.reports.rows import rows
from natgauge.reports.sheet import Sheet, SheetRow, sheet
from natgauge.reports.text import SeriesRow, doubt_lines, render, series_rows, verdict
from natgauge.reports.text import table as text_of
from natgauge.subscriber_profiles import load as load_profile
from natgauge.tables import wrapped

ROWS: list[dict[str, float | str | None]] = [
    {"load_percent": 100.0, "rate": 198_303.0, "lost_percent": 12.34567, "verdict": "FAIL"},
    {"load_percent": 50.0, "rate": 99_151.5, "lost_percent": 0.0, "note": "quiet"},
]

QUIET: dict[str, float | str | None] = {"offered_percent": 50.0, "offered_rate": 5e5, "lost_percent": 0.0}


def shown(
    values: Sequence[float], median: float, series: Sequence[Sequence[SeriesRow]], notes: Sequence[Note] = ()
) -> str:
    return verdict(
        made(values, median=median, series=series, metric="frame-loss", unit="%", notes=plain(notes)),
    )


def told(result: MeasurementResult) -> str:
    return verdict(make(result, grouped({"gateway": "x"})))


def series_of(text: str) -> list[str]:
    """The lines of the series, without its heading."""
    lines = text.splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("  Series"))
    return lines[begin + 1 :]


def test_the_series_has_a_column_for_each_name_and_a_line_for_each_row(golden: Golden) -> None:
    golden(series_of(shown([1.0], 1.0, [ROWS])))


def test_sentences_of_a_series_that_is_too_wide_are_below_their_rows(golden: Golden) -> None:
    reason = "phase 1: 1 of 65537 frames lost (0.002%); the device's table held 65536 connections of at most 65536"
    series: list[SeriesRow] = [
        {"stage": "C0", "connections": 30_000, "decided": "safe", "why": ""},
        {"stage": "binary", "connections": 65_537, "decided": "unsafe", "why": reason},
    ]
    result = made([1.0], median=1.0, series=[series], metric="table-capacity", unit="connections")
    narrow = verdict(result, width=70).split("  Series:\n")[1].splitlines()
    assert [line.split() for line in narrow[:3]] == [
        ["stage", "connections", "decided"], ["C0", "30,000", "safe"], ["binary", "65,537", "unsafe"],
    ]  # fmt: skip
    golden(" ".join(line.strip() for line in narrow[3:]))
    assert all(len(line) <= 70 and line.startswith(" " * 8) for line in narrow[3:])
    golden(verdict(result, width=200).split("  Series:\n")[1].splitlines()[2])


def test_the_series_is_of_the_repetition_nearest_to_the_median_and_says_so(golden: Golden) -> None:
    series = [[{"rate": 1.0}], [{"rate": 2.0}], [{"rate": 3.0}]]
    text = shown([10.0, 30.0, 22.0], 22.0, series)
    golden(text)
    assert series_of(text)[1].split() == ["3"]
    assert "  Series:" in shown([10.0], 10.0, series[:1])
    assert "Series" not in shown([10.0], 10.0, [[]])


@pytest.mark.parametrize(("rows", "lines"), [(24, 24), (25, 13), (1201, 25)])
def test_a_long_series_is_thinned_and_keeps_both_ends(rows: int, lines: int, golden: Golden) -> None:
    text = shown([1.0], 1.0, [[{"seconds": float(number)} for number in range(rows)]])
    golden(text)
    cells = [line.strip() for line in series_of(text)[1:]]
    assert (len(cells), cells[0], cells[-1]) == (lines, "0", f"{rows - 1:,}")


def test_directions_are_left_to_the_results_and_the_worst_of_them_shown() -> None:
    asked = latency.LatencySettings(
        connections=1000, placement="isolated", repeat=1, connection_rate=1e5, throughput_rate=1e5, trial_seconds=0.1
    )
    head, *rows = series_of(told(latency.PROCEDURE.measure(Gateway(), asked)))
    assert "typical latency us" in head
    assert "from initiator" not in head
    assert [row.split()[0] for row in rows] == ["100", "90", "50", "10"]
    assert max(len(line) for line in [head, *rows]) <= 132


def test_the_frame_loss_curve_and_the_orders_are_shown() -> None:
    curve = frame_loss.FrameLossSettings(
        connections=1000, placement="isolated", repeat=1, connection_rate=1e5, full_rate=1e6
    )
    head, *rows = series_of(told(frame_loss.PROCEDURE.measure(Gateway(forwards=5e5), curve)))
    assert head.split()[:4] == ["offered", "percent", "offered", "rate"]
    assert rows[0].split()[:3] == ["100", "1,000,000", "50"]
    orders = enumeration_orders.EnumerationOrdersSettings(connections=1000, placement="isolated", repeat=1)
    names = [
        row.split()[0]
        for row in series_of(told(enumeration_orders.PROCEDURE.measure(Gateway(four_tuples=1000), orders)))[1:]
    ]
    assert names == ["permutation", "increasing", "decreasing", "with-replacement"]


def contradictions(number: int) -> list[Note]:
    return [
        Note("contradictions", f"{rate}000 frames/s passed 2 and failed 1 times; the majority counts")
        for rate in range(number)
    ]


def test_a_note_that_is_a_doubt_is_no_note_once_more() -> None:
    """Each contradiction is a note; they have one doubt together."""
    other = Note("settings", "trials of 0.5 s; RFC 2544 section 24 requires 60 s")
    text = shown([1.0], 1.0, [], [*contradictions(4), other])
    assert [line for line in text.splitlines() if "Note: " in line] == [f"  Note: {other}."]


LOSSES: list[list[dict[str, float | str | None]]] = [
    [{"offered_percent": 100.0, "offered_rate": 1e6, "lost_percent": lost}, {**QUIET, "lost_percent": less}]
    for lost, less in ((50.0, 0.0), (48.0, 2.0), (52.0, 1.0))
]


def test_a_series_over_loads_is_summarized_over_all_repetitions(golden: Golden) -> None:
    text = shown([50.0, 48.0, 52.0], 50.0, LOSSES)
    golden(text)
    head, *rows = series_of(text)[:3]
    assert head.split() == ["offered", "percent", "offered", "rate", "lost", "percent"]
    assert [" ".join(row.split()) for row in rows] == [
        "100 1,000,000 50.0 (48.0 to 52.0)",
        "50 500,000 1.0 (0.0 to 2.0)",
    ]


def test_every_form_has_the_loss_at_each_load_with_its_range() -> None:
    result = made(
        [50.0, 48.0, 52.0],
        median=50.0,
        series=LOSSES,
        metric="frame-loss",
        unit="%",
        parameters={"placement": "isolated"},
    )
    label = "loss at 50 % of the highest load"
    for form in (text_of([result]), markdown.render(sheet([result]))):
        (line,) = (line for line in form.splitlines() if label in line)
        assert "1.0 (0.0 to 2.0)" in line
        assert "loss at 100 %" not in form, "the value of the result is this loss"
    columns = dict(zip(*csv.reader(io.StringIO(csv_table.table([result]))), strict=True))
    assert [columns[f"{label}{of} (%)"] for of in ("", ", minimum", ", maximum")] == ["1.0", "0.0", "2.0"]


def test_the_deletions_of_one_repetition_are_its_spread(golden: Golden) -> None:
    figures: dict[str, float | Sequence[float]] = {
        "full_seconds": [0.2, 0.3, 0.25],
        "empty_seconds": [0.01, 0.01, 0.02],
        "difference_seconds": 0.24,
    }
    result = made([1e6], metric="tear-down-rate", unit="connections/s", figures=figures)
    golden(verdict(result))
    rows = dict(line.split("  ", 1) for line in text_of([result]).splitlines())
    assert rows["emptying a full table (s)"].strip() == "0.250 (0.200 to 0.300)"
    assert rows["deletion of the connections (s)"].strip() == "0.24"


@pytest.mark.parametrize(
    ("metric", "settings", "held"),
    [
        ("subscribers", {}, 4370),
        ("mixed-load", {"life_seconds": 0.5}, 4370),
        # N are open at every rate.
        ("mixed-load", {}, 1_000_000),
    ],
)
def test_connections_that_no_trial_had_are_not_its_sessions(metric: str, settings: dict[str, float], held: int) -> None:
    """Seen: 1,000,000 sessions, which were the four tuples that a few thousand connections were drawn from."""
    given = {"connections": 1_000_000, "hash_size": 1000, "table_size": 2_000_000, **settings}
    result = made([100.0], metric=metric, figures={"open_connections": 4370.4}, parameters=given)
    found = {row.label: row.cells[0] for row in rows([result])}
    assert found["number of sessions"] == held
    assert found["sessions per hash"] == held / 1000
    assert found["table limit per session"] == 2_000_000 / held
    head = heading(StoredResults((Stored(Path("a"), result),), ()), [])
    assert f"{held:,} connections" in head.conditions
    assert f"  {held:,} connections, " in verdict(result)


def test_a_number_of_subscribers_says_what_each_of_them_takes() -> None:
    """Seen: "x carries 810 subscribers", whatever a subscriber was."""
    profile = str(load_profile("household"))
    given = {"subscriber_profile": profile}
    result = made([810.0], metric="subscribers", unit="subscribers", parameters=given)
    each = f"(each: {profile.partition(' down')[0]} down)"
    assert one(result).text.startswith(f"x carries 810 subscribers {each} without losing a frame or a new connection")
    head = heading(StoredResults((Stored(Path("a"), result),), ()), [])
    assert f"subscribers {each}" in head.conditions
    # Frames have the words that they have elsewhere, where their rates are known.
    rated = made([810.0], metric="subscribers", parameters={**given, "subscriber_rates": {"up": 23.4, "down": 382.0}})
    assert "new/s, 23.4 frames/s from inside, 382 from outside)" in one(rated).text
    throughput = made([810.0], parameters=given)
    assert "each:" not in one(throughput).text


def test_that_nothing_failed_is_said_only_of_searches() -> None:
    """Orders of enumeration have the setting, and search no share; a repetition of three had no upper bound."""

    def said(uppers: Sequence[float | None], **changed: Any) -> str:
        plain = made([1e6] * len(uppers), **{"limited_by": "tester", "parameters": {"error": "1%"}, **changed})
        every = tuple(replace(one, upper=upper) for one, upper in zip(plain.repetitions, uppers, strict=True))
        error = None if None in uppers else 1e4
        text = verdict(plain.model_copy(update={"repetitions": every, "error": error}))
        return next(line for line in text.splitlines() if line.startswith("  Median of"))

    assert "; no rate failed;" in f"{said([None] * 3).removesuffix('.')};"
    assert "; no rate failed in 1 of 3 repetitions" in said([None, 1.01e6, 1.01e6])
    assert "; error of the search 10 k frames/s" in said([1.01e6] * 3)
    capacity = {"metric": "table-capacity", "unit": "connections", "parameters": {"capacity_error": 1}}
    assert "; no number of connections failed" in said([None] * 3, **capacity)
    orders = said([None] * 3, metric="enumeration-orders", unit="%", limited_by="device")
    commands = said([None] * 3, metric="tear-down-rate", unit="connections/s", limited_by="host", parameters={})
    assert "failed" not in orders + commands


def test_mean_and_deviation_have_rows_where_there_are_several_repetitions() -> None:
    several, single = text_of([made([1.0, 3.0], median=2.0, standard_deviation=1.414)]), text_of([made([1.0])])
    assert [word in several for word in ("mean", "standard deviation", "minimum")] == [True, True, False]
    assert not any(word in single for word in ("mean", "standard deviation", "minimum"))
    many = text_of([made([1.0] * 99 + [2.0], median=1.0)])
    assert "maximum" in many, "with 100 repetitions the 99th percentile is another value"


@pytest.mark.parametrize(
    ("metric", "unit", "limited_by"),
    [
        ("cost", "x forwarding", "tester"),
        ("cost", "x forwarding", "device"),
        ("reset", "ms", "host"),
        ("throughput", "frames/s", "tester"),
    ],
)
def test_the_first_line_is_the_answer_and_says_where_it_is_a_bound(
    metric: str, unit: str, limited_by: str, golden: Golden
) -> None:
    first, *_ = verdict(made([0.05], metric=metric, unit=unit, limited_by=limited_by)).splitlines()
    assert first.startswith("x ")
    golden(first)


DOUBTED = (
    Note("INVALID trials", "3 of 20 trials were INVALID and not counted"),
    Note("wide spread", "the repetitions spread over 30 %"),
    Note("unreliable", "the times spread over more than their difference"),
)
NOTED = (
    Note("settings", "trials of 0.5 s; RFC 2544 section 24 requires 60 s"),
    Note("device", "the device kept 3 connections too many"),
)


def test_a_series_has_no_column_without_a_value() -> None:
    series: list[SeriesRow] = [{"load": 1.0, "why": "", "rate": 0.0}, {"load": 2.0, "why": None, "rate": 0.0}]
    assert series_rows(series) == [["load", "rate"], ["1", "0"], ["2", "0"]]


def test_in_brief_only_doubts_that_could_change_the_answer_have_a_text_and_come_first_with_what_to_do(
    golden: Golden,
) -> None:
    lines = verdict(made([1.0, 1.1], doubts=plain(DOUBTED), notes=plain(NOTED)), brief=True).splitlines()
    golden(lines[2])
    golden(lines[3:4])
    golden([line for line in lines if "Note" in line])
    assert not [line for line in lines if "Trials:" in line]


def test_in_full_every_doubt_and_note_has_its_text(golden: Golden) -> None:
    text = verdict(made([1.0, 1.1], doubts=plain(DOUBTED), notes=plain(NOTED)))
    golden(text)
    assert "  Trials: " in text


def test_of_several_results_each_doubt_is_named_once_with_its_number(golden: Golden) -> None:
    results = [made([1.0], doubts=plain(DOUBTED[:1])), made([1.0], doubts=plain(DOUBTED)), made([1.0])]
    golden(doubt_lines(results, brief=True)[1:])


def test_in_brief_causes_that_a_wide_spread_names_are_with_it_alone_unless_a_result_without_it_has_them() -> None:
    """Seen: disturbed, excused and INVALID trials stood as causes in the text, and once more as doubts."""
    spread = made([1.0], doubts=plain(DOUBTED[:2]))
    assert doubt_lines([spread], brief=True) == ["Widens intervals: wide spread (possible causes: INVALID trials)."]
    in_full = doubt_lines([spread])
    assert "For information: INVALID trials: 3 of 20 trials were INVALID and not counted." in in_full
    assert doubt_lines([spread, made([1.0], doubts=plain(DOUBTED[:1]))], brief=True) == [
        "Widens intervals: wide spread (1 of 2 results).",
        "For information: INVALID trials (2 of 2 results).",
    ]
    # Below a table the text of the spread names them.
    assert sheet([spread]).doubts == ("* Widens intervals: wide spread: the repetitions spread over 30 %.",)


def test_the_text_of_a_doubt_that_several_results_have_is_an_example_where_they_have_other_ones() -> None:
    """Seen: after a campaign the numbers of one gateway seemed to be those of all."""
    queues = [Note("queues", f"by up to {share} %", grade="answer") for share in (20, 20, 30)]
    alike, other = [
        [made([1.0], parameters={"gateway": f"nat-{at}"}, doubts=plain([queues[at]])) for at in pair]
        for pair in ((0, 1), (1, 2))
    ]
    remedy = known("queues").remedy
    assert doubt_lines(alike) == [f"Could change the answer: queues (2 of 2 results): by up to 20 %. {remedy}"]
    assert doubt_lines(other) == [
        "Could change the answer: queues (2 of 2 results), for example of throughput of nat-1: by up to 20 %. " + remedy
    ]


def test_a_doubt_of_several_grades_is_told_once_in_the_gravest_with_the_results_of_each() -> None:
    """Seen: a word stood under "could change the answer", and again "for information"."""
    grades: tuple[Grade, ...] = ("information", "answer", "interval")
    all_of_them: tuple[Grade, ...] = (*grades, "information")
    results = [made([1.0], doubts=plain([Note("other traffic", "t", grade=grade)])) for grade in all_of_them]
    line, *others = doubt_lines(results, brief=True)
    assert not others
    assert line.startswith(
        "Could change the answer: other traffic (1 of 4 results), about the interval (1 of 4 results), "
        "for information (2 of 4 results): t. "
    )


def test_below_a_table_a_doubt_has_its_own_text_for_each_column_and_equal_ones_are_one_line(golden: Golden) -> None:
    undecided = [[{"word": "undecided", "text": text}] for text in ("between 1 and 2", "between 3 and 4")]
    every = [*undecided, undecided[0], [{"word": "queues", "text": "by 2%"}], []]
    found = sheet(
        [made([1.0], parameters={"gateway": f"nat-{at}"}, doubts=each) for at, each in enumerate(every)]
    ).doubts
    golden(found)


def widest(text: str) -> int:
    return max(map(len, text.splitlines()))


LONG = "a-gateway-with-a-name-of-sixty-letters-which-is-longer-than-any"


@pytest.mark.parametrize("number", [1, 2, 7, 40])
def test_tables_of_many_gateways_with_long_names_and_rates_of_six_orders_of_magnitude_fit(number: int) -> None:
    results = [
        made(
            [12.5 * 10 ** (at % 7), 13.5 * 10 ** (at % 7)],
            median=13.0 * 10 ** (at % 7),
            parameters={"gateway": f"{LONG}{at}"},
        )
        for at in range(number)
    ]
    for width in (60, 80, 100):
        shown = text_of(results, width)
        assert widest(shown) <= width
        for result in results:
            assert median(result) in shown
    assert text_of(results, 100_000) == text_of(results)


@pytest.mark.parametrize("number", [1, 2, 40])
def test_the_matrix_of_many_gateways_with_long_names_fits(number: int) -> None:
    results = [
        made([10.0**size], metric=metric, parameters={"gateway": f"{LONG}{at}"})
        for at in range(number)
        for metric in ("throughput", "connection-rate", "validated-connection-rate")
        for size in [at % 7]
    ]
    shown = render(pivot.of_metrics(results), 100)
    assert widest(shown) <= 100
    assert shown.count("1 M") >= 3 * (number // 7)


def test_sentences_are_broken_between_words_with_the_rest_below_and_lines_that_fit_stay() -> None:
    text = wrapped(f"{'word ' * 30}\n  {LONG} {'and ' * 20}\n  a  table   stays", 60)
    lines = text.splitlines()
    assert widest(text.replace(LONG, "")) <= 60
    assert {line[:2] for line in lines[1:3]} == {"  "}
    assert LONG in text
    assert lines[-1] == "  a  table   stays"


def test_a_table_that_is_too_wide_is_turned_before_it_is_cut() -> None:
    head = SheetRow("median of", tuple(f"metric-{at} (connections/s)" for at in range(6)))
    rows = [SheetRow(gateway, ("1,000,000",) * 6) for gateway in ("nftables-nat44", "linux-ipv4")]
    lines = render(Sheet((head, *rows), ("All: x.",)), 100).splitlines()
    assert lines[0].split() == ["median", "of", "nftables-nat44", "linux-ipv4"]
    assert lines[1].split() == ["metric-0", "(connections/s)", "1,000,000", "1,000,000"]
    assert (len(lines), lines[-1]) == (8, "All: x.")


def test_a_series_that_is_too_wide_has_its_columns_in_several_tables() -> None:
    row: dict[str, float | str | None] = {f"a_long_name_of_a_column_{at}": 10.0**at for at in range(9)}
    text = verdict(made([1.0], series=[[row] * 30]), width=100)
    series = text[text.index("  Series") :]
    assert widest(series) <= 100
    assert "100,000,000" in series
