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
from tests.unit.made_results import grouped, in_turns, made
from tests.unit.simulated import Gateway

from natgauge.comparisons.compare import log_notes
from natgauge.measurements.record import make
from natgauge.notes import Grade, Note, known
from natgauge.procedures import enumeration_orders, frame_loss, latency
from natgauge.procedures.kit.results import Measurement, MeasurementResult, make_result
from natgauge.records.measurement import Result
from natgauge.records.store import plain
from natgauge.reports import csv_table, markup, pivot
from natgauge.reports.answers import one
from natgauge.reports.collected import Stored, StoredResults
from natgauge.reports.heading import heading
from natgauge.reports.main_figure import median
from natgauge.reports.rows import rows
from natgauge.reports.sheet import Sheet, SheetRow, sheet
from natgauge.reports.text import SeriesRow, doubt_lines, render, series_rows, verdict
from natgauge.reports.text import table as text_of
from natgauge.subscriber_profiles import load as load_profile
from natgauge.tables import aligned, wrapped
from natgauge.words import Verdict

ROWS: list[dict[str, float | str | None]] = [
    {"load_percent": 100.0, "rate": 198_303.0, "lost_percent": 12.34567, "verdict": "FAIL"},
    {"load_percent": 50.0, "rate": 99_151.5, "lost_percent": 0.0, "note": "quiet"},
]

QUIET: dict[str, float | str | None] = {"offered_percent": 50.0, "offered_rate": 5e5, "lost_percent": 0.0}


LOSSES: list[list[dict[str, float | str | None]]] = [
    [{"offered_percent": 100.0, "offered_rate": 1e6, "lost_percent": lost}, {**QUIET, "lost_percent": less}]
    for lost, less in ((50.0, 0.0), (48.0, 2.0), (52.0, 1.0))
]
DOUBTED = (
    Note("INVALID trials", "3 of 20 trials were INVALID and not counted"),
    Note("wide spread", "the repetitions spread over 30 %"),
    Note("unreliable", "the times spread over more than their difference"),
)
NOTED = (
    Note("settings", "trials of 0.5 s; RFC 2544 section 24 requires 60 s"),
    Note("device", "the device kept 3 connections too many"),
)
DELETED = made(
    [1e6], metric="tear-down-rate", unit="connections/s",
    figures={"full_seconds": [0.2, 0.3, 0.25], "empty_seconds": [0.01, 0.01, 0.02], "difference_seconds": 0.24},
)  # fmt: skip


def told(result: MeasurementResult) -> str:
    return verdict(make(result, grouped({"gateway": "x"})))


def series_of(text: str) -> list[str]:
    """The lines of the series, without its heading."""
    lines = text.splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("  Series"))
    return lines[begin + 1 :]


def lossy(values: Sequence[float], series: Sequence[Sequence[SeriesRow]], notes: Sequence[Note] = ()) -> Result:
    return made(values, series=series, metric="frame-loss", unit="%", notes=plain(notes))


def searched(uppers: Sequence[float | None], value: float = 1e6, **changed: Any) -> Result:
    """Repetitions of a search with these upper bounds."""
    one = made([value] * len(uppers), **{"limited_by": "tester", "parameters": {"error": "1%"}, **changed})
    every = tuple(replace(each, upper=upper) for each, upper in zip(one.repetitions, uppers, strict=True))
    return one.model_copy(update={"repetitions": every, "error": None if None in uppers else 1e4})


def doubt(word: str, value: float | None = None, grade: str | None = None) -> dict[str, Any]:
    return {"word": word, "text": "x", "value": value, "grade": grade}


def doubted(*doubts: dict[str, Any], upper: float | None = None, value: float = 100.0, **changed: Any) -> Result:
    """A rate of four repetitions that took turns, with these doubts."""
    parameters = {"gateway": "a", **in_turns(4)}
    found = made(
        [value] * 4,
        metric="connection-rate",
        unit="connections/s",
        parameters=parameters,
        doubts=list(doubts),
        **changed,
    )
    bounds = tuple(replace(one, upper=upper) for one in found.repetitions)
    return found if upper is None else found.model_copy(update={"repetitions": bounds})


#: Doubts that could change the answer, and that only widen its interval.
QUEUES, TAKING_TURNS = doubt("queues", 0.2, "answer"), doubt("taking turns")
DEEP_QUEUES = doubt("queues", 0.25, "answer")
CAPACITY: dict[str, Any] = {
    "metric": "table-capacity", "unit": "connections", "parameters": {"capacity_error": 1}
}  # fmt: skip
CARRIED: dict[str, Any] = {"metric": "subscribers", "unit": "subscribers"}
#: Results, of which the printed words are stored as a whole.
VERDICTS: dict[str, Result] = {
    "a series has a column for each name and a line for each row": lossy([1.0], [ROWS]),
    "the series is of the repetition nearest to the median": lossy(
        [10.0, 30.0, 22.0], [[{"rate": 1.0}], [{"rate": 2.0}], [{"rate": 3.0}]]
    ),
    "the series of one repetition": lossy([10.0], [[{"rate": 1.0}]]),
    "a series without a row": lossy([10.0], [[]]),
    **{
        f"a series of {number} rows is thinned and keeps both ends": lossy(
            [1.0], [[{"seconds": float(second)} for second in range(number)]]
        )
        for number in (24, 25, 1201)
    },
    # Each contradiction is a note; they have one doubt together.
    "a note that is a doubt is no note once more": lossy(
        [1.0], [], [*(Note("contradictions", f"{rate}000 frames/s passed 2 and failed 1 times") for rate in range(4)),
                    NOTED[0]],
    ),
    "a series over loads is summarized over all repetitions": lossy([50.0, 48.0, 52.0], LOSSES),
    "the deletions of one repetition are its spread": DELETED,
    "no rate failed": searched([None] * 3),
    "no rate failed in one repetition": searched([None, 1.01e6, 1.01e6]),
    "the error of a search": searched([1.01e6] * 3),
    "no number of connections failed": searched([None] * 3, **CAPACITY),
    # Orders of enumeration have the setting, and search no share.
    "orders search nothing": searched([None] * 3, metric="enumeration-orders", unit="%", limited_by="device"),
    "commands search nothing": searched(
        [None] * 3, metric="tear-down-rate", unit="connections/s", limited_by="host", parameters={}
    ),
    **{
        f"{metric} limited by the {by}": made([0.05], metric=metric, unit=unit, limited_by=by)
        for metric, unit, by in (
            ("cost", "x forwarding", "tester"), ("cost", "x forwarding", "device"), ("reset", "ms", "host"),
            ("throughput", "frames/s", "tester"),
        )
    },
    "in full every doubt and note has its text": made([1.0, 1.1], doubts=plain(DOUBTED), notes=plain(NOTED)),
    # A rate of 0 and a delay are doubtful in no direction.
    "a rate of 0": doubted(doubt("late at every rate"), value=0.0),
    "a delay": made([5.0] * 3, metric="latency", unit="us", doubts=[doubt("tester unknown", grade="answer")]),
    "a metric without a sentence of its own": made(
        [5.0] * 3, metric="unheard-of", unit="%", doubts=[doubt("undecided")]
    ),
    # Seen: "at least 96 subscribers", where queues may have raised that number by a quarter.
    "subscribers that queues may have raised": (
        made([100.0], doubts=[DEEP_QUEUES, doubt("tester limited")], limited_by="tester", **CARRIED)
    ),
}  # fmt: skip
#: Results, of which the words in brief are stored: the first line says what a grave doubt leaves.
BRIEF: dict[str, Result] = {
    "doubts that could change the answer come first": made([1.0, 1.1], doubts=plain(DOUBTED), notes=plain(NOTED)),
    "numbers of doubts that widen": doubted(doubt("queues", 0.018), doubt("tester on device cores", 0.027)),
    "no doubt": doubted(),
    "rare loss": doubted(doubt("rare loss")),
    "link limited": doubted(doubt("link limited")),
    "queues": doubted(QUEUES),
    "queues and rare loss": doubted(QUEUES, doubt("rare loss")),
    "collapsed": doubted(doubt("collapsed")),
    "drift": doubted(doubt("drift")),
    "queues that only widen": doubted(doubt("queues", 0.02)),
    # Values of searches are lower bounds: "at most" with one was below the true rate.
    "bounds, queues": doubted(QUEUES, doubt("tester on device cores", 0.04), upper=120.0),
    "bounds, rare loss": doubted(doubt("rare loss"), doubt("queues", 0.04), upper=120.0),
    "bounds, the tester": doubted(doubt("tester limited"), DEEP_QUEUES, upper=120.0, limited_by="tester"),
    "bounds, the time and queues": doubted(doubt("time used up"), DEEP_QUEUES, upper=120.0, limited_by="time"),
    "bounds, the time and a loss": doubted(doubt("time used up"), doubt("rare loss"), upper=120.0, limited_by="time"),
    "bounds, the time and drift": doubted(doubt("time used up"), doubt("drift"), upper=120.0, limited_by="time"),
    "bounds, undecided": doubted(doubt("undecided"), upper=120.0, limited_by="time"),
    "bounds, subscribers": searched(
        [103.0], 100.0, doubts=[DEEP_QUEUES], limited_by="device", parameters={}, **CARRIED
    ),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_one_result_in_words(name: str, golden: Golden) -> None:
    golden(verdict(VERDICTS[name]))


@pytest.mark.parametrize("name", BRIEF)
def test_one_result_in_brief(name: str, golden: Golden) -> None:
    golden(verdict(BRIEF[name], brief=True))


@pytest.mark.parametrize(("number", "lines"), [(24, 24), (25, 13), (1201, 25)])
def test_a_long_series_is_thinned_and_keeps_both_ends(number: int, lines: int) -> None:
    text = verdict(VERDICTS[f"a series of {number} rows is thinned and keeps both ends"])
    cells = [line.strip() for line in series_of(text)[1:]]
    assert (len(cells), cells[0], cells[-1]) == (lines, "0", f"{number - 1:,}")


def test_deletions_have_rows_of_their_spread() -> None:
    rows = dict(line.split("  ", 1) for line in text_of([DELETED]).splitlines())
    assert rows["emptying a full table (s)"].strip() == "0.250 (0.200 to 0.300)"
    assert rows["deletion of the connections (s)"].strip() == "0.24"


def test_below_a_table_the_number_of_a_doubt_stands_next_to_its_word(golden: Golden) -> None:
    both = [
        made([99.0, 100.0, 101.0, 102.0], metric="connection-rate", unit="connections/s",
             parameters={"gateway": name, **in_turns(4)}, doubts=[doubt("queues", share)])
        for name, share in (("a", 0.011), ("b", 0.023))
    ]  # fmt: skip
    golden(text_of(both))


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
    for form in (text_of([result]), markup.render_markdown(sheet([result]))):
        (line,) = (line for line in form.splitlines() if label in line)
        assert "1.0 (0.0 to 2.0)" in line
        assert "loss at 100 %" not in form, "the value of the result is this loss"
    columns = dict(zip(*csv.reader(io.StringIO(csv_table.table([result]))), strict=True))
    assert [columns[f"{label}{of} (%)"] for of in ("", ", minimum", ", maximum")] == ["1.0", "0.0", "2.0"]


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


def test_mean_and_deviation_have_rows_where_there_are_several_repetitions() -> None:
    several, single = text_of([made([1.0, 3.0], median=2.0, standard_deviation=1.414)]), text_of([made([1.0])])
    assert [word in several for word in ("mean", "standard deviation", "minimum")] == [True, True, False]
    assert not any(word in single for word in ("mean", "standard deviation", "minimum"))
    many = text_of([made([1.0] * 99 + [2.0], median=1.0)])
    assert "maximum" in many, "with 100 repetitions the 99th percentile is another value"


def test_a_series_has_no_column_without_a_value() -> None:
    series: list[SeriesRow] = [{"load": 1.0, "why": "", "rate": 0.0}, {"load": 2.0, "why": None, "rate": 0.0}]
    assert series_rows(series) == [["load", "rate"], ["1", "0"], ["2", "0"]]


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


def test_columns_are_aligned_left_or_right() -> None:
    rows = [("name", "frames/s", "verdict"), ("nftables-nat44", "1,000", "no"), ("x", "12", "")]
    assert aligned(rows, right={1}) == [
        "name            frames/s  verdict",
        "nftables-nat44     1,000  no",
        "x                     12",
    ]


def test_no_figure_is_wrapped_or_cut_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    row = ["1,234,567,890"] * 12
    assert aligned([row]) == ["  ".join(row)]


def test_what_looks_like_a_mark_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert aligned([("[red]x[/red]", ":warning: 3.5 'a'")]) == ["[red]x[/red]  :warning: 3.5 'a'"]


def test_no_rows_are_no_lines() -> None:
    assert aligned([]) == []


def rate(**given: Any) -> Result:
    one = Measurement(5e5, 5e5, "device", {Verdict.PASS: 1, Verdict.INVALID: 0})
    measured = make_result("connection-rate", "connections/s", {}, [one, one])
    return make(measured, grouped({"placement": "shared", **given}))


def log_notes_of(result: Result) -> list[str]:
    return [note.text for note in result.notes if note.word == "device" and "write the log" in note.text]


def test_a_shared_figure_says_that_it_leaves_out_what_writes_the_log() -> None:
    """The programs have every core in this placement, and the rate was said to be that of one."""
    way: dict[str, Any] = {"logging": "conntrack-events", "log_tolerance": 0.0}
    (text,) = log_notes_of(rate(**way))
    assert text.startswith("placement shared: programs that write the log (conntrack-events) run on any core")
    assert log_notes_of(rate()) == []
    assert log_notes_of(rate(**{**way, "placement": "isolated"})) == []


def test_a_comparison_names_the_gateways_whose_logs_cost_more_than_it_says() -> None:
    plain, logged = grouped({"placement": "shared"}), grouped({"placement": "shared", "logging": "nflog-ulogd"})
    (note,) = log_notes({"nat": plain, "nat:log": logged, "nat again": plain})
    assert note.text.startswith("nat:log: placement shared: programs that write the log (nflog-ulogd)")
    assert log_notes({"nat:log": logged, "nat": plain, "again": logged}) == [Note("device", note.text)]
