# SPDX-License-Identifier: Apache-2.0
"""Ratios over commits: series, order, marks, and all forms."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.golden import FOLDER, Golden

from natgauge.analysis.history import Dated, HistorySeries, history
from natgauge.analysis.ratio_verdicts import verdict_of
from natgauge.cli import run
from natgauge.errors import UsageError
from natgauge.records.comparison import ComparisonRecord
from natgauge.reports.collected import StoredComparison
from natgauge.reports.history import dated, groups, sentences

STORED = json.loads((FOLDER / "inputs" / "results" / "comparison.json").read_text())
DAY = 86_400.0
FIRST = 1_790_000_000.0
#: Standard deviation of the logarithm of a ratio of which nothing changes.
SIGMA = 0.004


def record(
    ratio: float, day: int, *, width: float = 0.004, commit: str | None = None, **changed: Any
) -> dict[str, Any]:
    """A comparison of one gateway and quantity on a day."""
    document: dict[str, Any] = json.loads(json.dumps(STORED))
    ends = (ratio * (1 - width), ratio * (1 + width))
    estimate = document["estimates"][0]
    estimate |= {"ratio": ratio, "low": ends[0], "high": ends[1], "level": 0.95, "text": "said"}
    estimate |= {"half_width": ratio * width / max(1.0, ratio), "above": None}
    estimate["verdict"] = verdict_of(*ends, 1.0, document["resolve"])
    control = {**estimate, "gateway": document["control"][0]["gateway"], "ratio": 1.0, "low": 0.999, "high": 1.001}
    control |= {"half_width": 0.001, "verdict": "no difference"}
    kept = {estimate["gateway"], document["gateways"][0]["label"], control["gateway"]}
    compared = [one for one in document["gateways"] if one["label"] in kept]
    document |= {"estimates": [estimate], "control": [control], "gateways": compared, "notes": []}
    document |= {"began": FIRST + day * DAY, "commit": commit, "results": None}
    document |= {"decided": estimate["verdict"] != "undecided", "above": None, "fail_above": None}
    place = changed.pop("place", {})
    for gateway in compared:
        gateway["parameters"]["place"] |= place
    baseline = changed.pop("baseline_device", {})
    compared[0]["parameters"]["device"] |= baseline
    return {**document, **changed}


def points(documents: Sequence[dict[str, Any]], margin: float = 0.0) -> list[HistorySeries]:
    stored = [
        StoredComparison(Path(f"results/{at}"), ComparisonRecord.from_document(one)) for at, one in enumerate(documents)
    ]
    return history(dated(stored), margin)


def test_a_comparison_in_doubt_marks_no_change() -> None:
    ratios = [1.10, 1.101, 1.25, 1.10]
    for grade, changes in (("answer", 0), ("interval", 2)):
        notes = [{"word": "log dropped", "text": "x", "count": 1, "value": None, "grade": grade}]
        (series,) = points([record(ratio, day, notes=notes if day == 2 else []) for day, ratio in enumerate(ratios)])
        assert len(series.changes) == changes


def test_a_change_is_marked_where_it_happened_and_only_there() -> None:
    ratios = [1.10, 1.101, 1.099, 1.25, 1.251, 1.25, 1.10, 1.10]
    (series,) = points([record(ratio, day) for day, ratio in enumerate(ratios)])
    marks = [(at, point.change) for at, point in enumerate(series.points) if point.change]
    assert marks == [(3, "costs more"), (6, "costs less")]
    assert series.points[3].factor == pytest.approx(1.25 / 1.10, rel=0.01)


@pytest.mark.parametrize("began", [1e300, -1e300, -1.0, 253_402_300_800.0, None])
def test_a_moment_that_no_date_has_is_refused(began: float | None) -> None:
    with pytest.raises(UsageError, match="began"):
        ComparisonRecord.from_document(record(1.1, 0, began=began))


def test_the_last_moment_that_dates_have_is_one() -> None:
    found = ComparisonRecord.from_document(record(1.1, 0, began=253_402_300_799.0))
    (at,) = dated([StoredComparison(Path("results/0"), found)])
    assert at.date == datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


@pytest.mark.parametrize("date", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"])
def test_a_commit_of_a_date_that_utc_has_not_is_a_name(date: str) -> None:
    found = ComparisonRecord.from_document(record(1.1, 0, commit=f"abc@{date}"))
    (at,) = dated([StoredComparison(Path("results/0"), found)])
    assert (at.commit, at.date) == (f"abc@{date}", datetime.fromtimestamp(FIRST, UTC))


def test_no_mark_vanishes_when_points_are_added() -> None:
    documents = [record(1.1 if day < 4 else 1.13, day) for day in range(40)]
    seen = [
        [at for at, point in enumerate(points(documents[:number])[0].points) if point.change] for number in range(1, 41)
    ]
    assert seen[-1] == [4]
    assert all(seen[number] == seen[-1] for number in range(5, 40))


def test_the_intervals_of_later_points_are_wider_and_hold_the_margin_and_the_control() -> None:
    plain = points([record(1.1, 0), record(1.1, 1)])[0].points
    assert plain[0].low > plain[1].low
    assert plain[0].high < plain[1].high
    wide = points([record(1.1, 0)], margin=0.19)[0].points[0]
    assert wide.high / plain[0].high == pytest.approx(1 / 0.9)
    assert plain[0].low / wide.low == pytest.approx(1 / 0.9)
    apart = record(1.1, 0)
    apart["control"][0] |= {"ratio": 1.05, "low": 1.04, "high": 1.06}
    assert points([apart])[0].points[0].high / plain[0].high == pytest.approx(1.06)


def test_a_point_whose_control_has_no_interval_marks_nothing() -> None:
    apart = record(1.5, 2)
    apart["control"][0] |= {"ratio": None, "low": None, "high": None, "half_width": None, "verdict": "undecided"}
    (series,) = points([record(1.1, 0), record(1.1, 1), apart])
    assert not series.changes
    assert (series.points[2].low, series.points[2].high) == (0, math.inf)


@pytest.mark.parametrize(
    "changed",
    [
        {"place": {"kernel": "7.0"}},
        {"place": {"cpu": "another"}},
        {"place": {"natgauge": "9.9.9"}},
        {"baseline_device": {"gateway_sha256": "0123"}},
        {"by": "rates", "slices": None},
    ],
    ids=str,
)
def test_what_is_set_up_otherwise_is_no_point_of_the_same_line(changed: dict[str, Any]) -> None:
    first, second = points([record(1.1, 0), record(2.0, 1, **changed)])
    assert [len(series.points) for series in (first, second)] == [1, 1]
    assert not second.changes
    again = points([record(1.1, 0), record(2.0, 1, **changed), record(1.1, 2)])
    assert [len(series.points) for series in again] == [2, 1]


def test_points_are_in_the_order_of_their_commits_where_these_have_dates() -> None:
    documents = [
        record(1.3, 9, commit="later@2026-10-03T10:00:00+02:00"),
        record(1.1, 10, commit="earlier@2026-10-01T10:00:00Z"),
        record(1.2, 11, commit="between@2026-10-02T10:00:00-05:00"),
    ]
    (series,) = points(documents)
    assert [point.at.commit for point in series.points] == ["earlier", "between", "later"]


def folders(tmp_path: Path, documents: Sequence[dict[str, Any]]) -> Path:
    for at, document in enumerate(documents):
        folder = tmp_path / "history" / f"2026-10-0{at + 1}-120000-compare-mine"
        folder.mkdir(parents=True)
        (folder / "comparison.json").write_text(json.dumps(document))
    return tmp_path / "history"


CHANGED = [(1.1, "a1"), (1.1, "b2"), (1.3, "c3"), (1.3, None)]


def test_every_form_has_the_points_and_the_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    documents = [record(ratio, day, commit=commit) for day, (ratio, commit) in enumerate(CHANGED)]
    words = ["report", "--history", str(folders(tmp_path, documents))]
    for form in ("text", "markdown", "latex", "draft"):
        assert run([*words, "--format", form]) == 0
        golden(capsys.readouterr().out)
    assert run([*words, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [(one["commit"], one["change"]) for one in document["points"]] == [
        ("a1", None), ("b2", None), ("c3", "costs more"), (None, None),
    ]  # fmt: skip
    assert run([*words, "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["change"] for row in rows] == ["", "", "costs more", ""]
    assert float(rows[2]["corrected_low"]) < float(rows[2]["low"]) < 1.3
    page = tmp_path / "page.html"
    assert run([*words, "--html", str(page), "--svg", str(tmp_path / "figures")]) == 0
    assert page.read_text().count("<svg") == 1
    assert "▲" in page.read_text()
    assert "1 change in 4 comparisons" in page.read_text()
    assert len(list((tmp_path / "figures").glob("*.svg"))) == 1


def test_a_folder_that_is_named_twice_is_one_point(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = folders(tmp_path, [record(1.1, 0)])
    assert run(["report", "--history", str(folder), str(next(folder.iterdir())), "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["points"]) == 1


def test_paths_of_written_files_are_no_part_of_a_printed_history(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["report", "--history", str(folders(tmp_path, [record(1.1, 0)])), "--html", str(tmp_path / "page.html")]
    assert run([*words, "--format", "json"]) == 0
    said = capsys.readouterr()
    assert len(json.loads(said.out)["points"]) == 1
    assert said.err == f"{tmp_path / 'page.html'}\n"
    assert run(words) == 0
    assert capsys.readouterr() == (f"{tmp_path / 'page.html'}\n", "")


def test_an_unknown_end_marks_nothing() -> None:
    unknown = record(5.0, 2)
    unknown["estimates"][0] |= {"low": None, "high": None, "half_width": None, "verdict": "undecided"}
    (series,) = points([record(1.1, 0), record(1.1, 1), unknown, record(1.1, 3)])
    assert not series.changes


def test_an_unknown_end_is_drawn_to_the_edge_with_an_arrow_and_what_is_not_drawn_is_counted() -> None:
    half, unknown = record(1.1, 1), record(1.1, 2)
    half["estimates"][0] |= {"high": None, "half_width": None, "verdict": "undecided"}
    unknown["estimates"][0] |= {"low": None, "high": None, "ratio": None, "half_width": None, "verdict": "undecided"}
    (group,) = groups(points([record(1.1, 0), half, unknown]), 0.0)
    assert group.caption.endswith("An arrow marks an unknown end. Not drawn: 1 without a known ratio.")
    (figure,) = group.figures
    layers = figure.spec["layer"]
    (ends,) = [layer["data"]["values"] for layer in layers if layer["mark"].get("strokeWidth") == 3]
    (top,) = {layer["encoding"]["y"]["scale"]["domain"][1] for layer in layers if "y" in layer["encoding"]}
    assert [row["high"] == top for row in ends] == [False, True]
    assert [row["low"] < row["y"] for row in ends] == [True, True]
    (arrow,) = [layer for layer in layers if layer["mark"].get("text") == "↑"]
    assert [row["x"] for row in arrow["data"]["values"]] == [2]


def test_bad_input_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    good = str(folders(tmp_path, [record(1.1, 0)]))
    (tmp_path / "empty").mkdir()
    for words in (
        ["--history", str(tmp_path / "empty")],
        ["--history", str(tmp_path / "absent")],
        ["--history", good, "--against", "cores"],
        ["--history", good, "--junit", "x.xml"],
        ["--history", good, "--margin", "100%"],
        ["--history", good, "--margin", "much"],
        ["--history", good, "--html", str(tmp_path)],
        [good, "--margin", "5%"],
    ):
        assert run(["report", *words]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        golden(line.replace(str(tmp_path), "."))


def test_the_sentences_begin_with_the_series_that_changed() -> None:
    quiet = record(1.1, 0, place={"kernel": "7.0"})
    documents = [quiet, *(record(ratio, day + 1) for day, (ratio, _) in enumerate(CHANGED))]
    first, second = sentences(points(documents))
    assert "1 change in 4 comparisons" in first.text
    assert "no change is marked in 1 comparison" in second.text


def test_points_keep_their_folder() -> None:
    (series,) = points([record(1.1, 0)])
    at: Dated = series.points[0].at
    assert at.folder == "results/0"


def test_comparisons_without_an_interval_are_counted() -> None:
    unknown = record(1.1, 1)
    unknown["estimates"][0] |= {"low": None, "high": None, "ratio": None}
    (sentence,) = sentences(points([record(1.1, 0), unknown]))
    assert "2 comparisons, of which 1 has no interval" in sentence.text
