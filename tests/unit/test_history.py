# SPDX-License-Identifier: Apache-2.0
"""Ratios over commits: series, order, marks, and all forms."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from tests.unit.conftest import Ran
from tests.unit.golden import Golden
from tests.unit.made_comparisons import BASELINE, CONTROL, answered, compared, estimate, gateway
from tests.unit.pages import unmarked

DAY = 86_400.0
FIRST = 1_790_000_000.0
#: From the documents of comparisons, and words of the command, to the points of each series.
Points: TypeAlias = Callable[..., list[list[Any]]]
UNKNOWN: dict[str, Any] = {"low": None, "high": None}


def record(ratio: float | None, day: int, control: Sequence[float | None] = (1.0, 0.999, 1.001), **changed: Any) -> Any:
    """The document of a comparison of one gateway and quantity on a day; ends of its interval and fields by name."""
    plain = ratio or 0.0
    ends = [changed.pop(end, plain * (1 + side)) for end, side in (("low", -0.004), ("high", 0.004))]
    fields = {"began": FIRST + day * DAY, "results": None, "rounds": 4, **changed}
    own = compared([estimate("mine", ratio, *ends)], [estimate(CONTROL, *control)], **fields)
    return answered(own).document()


def folders(tmp_path: Path, documents: Sequence[dict[str, Any]]) -> Path:
    parent = tmp_path / f"history-{len(list(tmp_path.iterdir()))}"
    for at, document in enumerate(documents):
        folder = parent / f"2026-10-{at + 1:02}-120000-compare-mine"
        folder.mkdir(parents=True)
        (folder / "comparison.json").write_text(json.dumps(document))
    return parent


@pytest.fixture
def points(tmp_path: Path, ran: Ran) -> Points:
    def of(documents: Sequence[dict[str, Any]], margin: str = "0") -> list[list[Any]]:
        words = ["report", "--history", str(folders(tmp_path, documents)), "--margin", margin, "--format", "json"]
        series: dict[int, list[Any]] = {}
        for point in json.loads(ran(words).out)["points"]:
            series.setdefault(point["series"], []).append(point)
        return list(series.values())

    return of


def changes(series: Sequence[Any]) -> list[tuple[int, str]]:
    """The points at which a change is marked, and which."""
    return [(at, point["change"]) for at, point in enumerate(series) if point["change"]]


def test_a_comparison_in_doubt_marks_no_change(points: Points) -> None:
    ratios = [1.10, 1.101, 1.25, 1.10]
    for grade, number in (("answer", 0), ("interval", 2)):
        notes = [{"word": "log dropped", "text": "x", "count": 1, "value": None, "grade": grade}]
        (series,) = points([record(ratio, day, notes=notes if day == 2 else []) for day, ratio in enumerate(ratios)])
        assert len(changes(series)) == number


def test_a_change_is_marked_where_it_happened_and_only_there(points: Points) -> None:
    ratios = [1.10, 1.101, 1.099, 1.25, 1.251, 1.25, 1.10, 1.10]
    (series,) = points([record(ratio, day) for day, ratio in enumerate(ratios)])
    assert changes(series) == [(3, "costs more"), (6, "costs less")]
    assert series[3]["factor"] == pytest.approx(1.25 / 1.10, rel=0.01)


def test_a_change_in_small_steps_is_marked_against_all_points_since_the_last_change(points: Points) -> None:
    steps = [1.1 * 1.006**day for day in range(8)]
    (series,) = points([record(ratio, day) for day, ratio in enumerate(steps)])
    (at, change), *_ = changes(series)
    assert (at > 1, change) == (True, "costs more")
    # No step alone is one.
    assert all(not changes(points([record(ratio, day) for ratio in steps[day : day + 2]])[0]) for day in range(7))


@pytest.mark.parametrize("began", [1e300, -1e300, -1.0, 253_402_300_800.0, None])
def test_a_moment_that_no_date_has_is_refused(began: float | None, tmp_path: Path, ran: Ran) -> None:
    folder = folders(tmp_path, [{**record(1.1, 0), "began": began}])
    assert "comparison.json: began: " in ran(["report", "--history", str(folder)], 2).err


def test_the_last_moment_that_dates_have_is_one(points: Points) -> None:
    ((point,),) = points([record(1.1, 0, began=253_402_300_799.0)])
    assert point["date"] == "9999-12-31T23:59:59+00:00"


@pytest.mark.parametrize("date", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"])
def test_a_commit_of_a_date_that_utc_has_not_is_a_name(date: str, points: Points) -> None:
    ((point,),) = points([record(1.1, 0, commit=f"abc@{date}")])
    assert (point["commit"], point["date"]) == (f"abc@{date}", datetime.fromtimestamp(FIRST, UTC).isoformat())


def test_no_mark_vanishes_when_points_are_added(points: Points) -> None:
    documents = [record(1.1 if day < 4 else 1.13, day) for day in range(40)]
    seen = {number: changes(points(documents[:number])[0]) for number in (5, 6, 7, 8, 14, 27, 40)}
    assert seen == {number: [(4, "costs more")] for number in seen}


def test_the_intervals_of_later_points_are_wider_and_hold_the_margin_and_the_control(points: Points) -> None:
    ((first, second),) = points([record(1.1, 0), record(1.1, 1)])
    assert first["corrected_low"] > second["corrected_low"]
    assert first["corrected_high"] < second["corrected_high"]
    ((wide,),) = points([record(1.1, 0)], margin="0.19")
    assert wide["corrected_high"] / first["corrected_high"] == pytest.approx(1 / 0.9)
    assert first["corrected_low"] / wide["corrected_low"] == pytest.approx(1 / 0.9)
    ((apart,),) = points([record(1.1, 0, (1.05, 1.04, 1.06))])
    assert apart["corrected_high"] / first["corrected_high"] == pytest.approx(1.06)


def test_a_point_whose_control_has_no_interval_marks_nothing(points: Points) -> None:
    (series,) = points([record(1.1, 0), record(1.1, 1), record(1.5, 2, (None, None, None))])
    assert not changes(series)
    assert (series[2]["corrected_low"], series[2]["corrected_high"]) == (0, None)


OTHER_BASELINE = (
    gateway(BASELINE, "baseline", {"gateway_sha256": "0123"}),
    gateway("mine", "compared"),
    gateway(CONTROL, "control"),
)


@pytest.mark.parametrize(
    "changed",
    [
        {"parameters": {"kernel": "7.0"}},
        {"parameters": {"cpu": "another"}},
        {"parameters": {"natgauge": "9.9.9"}},
        {"gateways": OTHER_BASELINE},
        {"by": "rates", "slices": None, "forwarding_nanoseconds": {}},
    ],
    ids=["kernel", "cpu", "natgauge", "baseline", "rates"],
)
def test_what_is_set_up_otherwise_is_no_point_of_the_same_line(changed: dict[str, Any], points: Points) -> None:
    first, second = points([record(1.1, 0), record(2.0, 1, **changed)])
    assert [len(series) for series in (first, second)] == [1, 1]
    assert not changes(second)
    again = points([record(1.1, 0), record(2.0, 1, **changed), record(1.1, 2)])
    assert [len(series) for series in again] == [2, 1]


def test_points_are_in_the_order_of_their_commits_where_these_have_dates(points: Points) -> None:
    documents = [
        record(1.3, 9, commit="later@2026-10-03T10:00:00+02:00"),
        record(1.1, 10, commit="earlier@2026-10-01T10:00:00Z"),
        record(1.2, 11, commit="between@2026-10-02T10:00:00-05:00"),
    ]
    (series,) = points(documents)
    assert [point["commit"] for point in series] == ["earlier", "between", "later"]


CHANGED = [(1.1, "a1"), (1.1, "b2"), (1.3, "c3"), (1.3, None)]


def test_every_form_has_the_points_and_the_change(tmp_path: Path, ran: Ran, golden: Golden) -> None:
    documents = [record(ratio, day, commit=commit) for day, (ratio, commit) in enumerate(CHANGED)]
    words = ["report", "--history", str(folders(tmp_path, documents))]
    for form in ("text", "markdown", "latex", "draft"):
        golden(ran([*words, "--format", form]).out)
    document = json.loads(ran([*words, "--format", "json"]).out)
    assert [(one["commit"], one["change"]) for one in document["points"]] == [
        ("a1", None), ("b2", None), ("c3", "costs more"), (None, None),
    ]  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(ran([*words, "--format", "csv"]).out)))
    assert [row["change"] for row in rows] == ["", "", "costs more", ""]
    assert float(rows[2]["corrected_low"]) < float(rows[2]["low"]) < 1.3
    page = tmp_path / "page.html"
    ran([*words, "--html", str(page), "--svg", str(tmp_path / "figures")])
    assert page.read_text().count("<svg") == 1
    assert "▲" in page.read_text()
    assert "1 change in 4 comparisons" in page.read_text()
    assert len(list((tmp_path / "figures").glob("*.svg"))) == 1


def test_a_folder_that_is_named_twice_is_one_point(tmp_path: Path, ran: Ran) -> None:
    folder = folders(tmp_path, [record(1.1, 0)])
    one = next(folder.iterdir())
    (point,) = json.loads(ran(["report", "--history", str(folder), str(one), "--format", "json"]).out)["points"]
    assert point["folder"] == str(one)


def test_paths_of_written_files_are_no_part_of_a_printed_history(tmp_path: Path, ran: Ran) -> None:
    words = ["report", "--history", str(folders(tmp_path, [record(1.1, 0)])), "--html", str(tmp_path / "page.html")]
    said = ran([*words, "--format", "json"])
    assert len(json.loads(said.out)["points"]) == 1
    assert said.err == f"{tmp_path / 'page.html'}\n"
    assert ran(words) == (f"{tmp_path / 'page.html'}\n", "")


def test_an_unknown_end_marks_nothing(points: Points) -> None:
    (series,) = points([record(1.1, 0), record(1.1, 1), record(5.0, 2, **UNKNOWN), record(1.1, 3)])
    assert not changes(series)


def test_an_unknown_end_is_drawn_to_the_edge_with_an_arrow_and_what_is_not_drawn_is_counted(
    tmp_path: Path, ran: Ran
) -> None:
    documents = [record(1.1, 0), record(1.1, 1, high=None), record(None, 2, **UNKNOWN)]
    words = ["report", "--history", str(folders(tmp_path, documents))]
    ran([*words, "--html", str(tmp_path / "page.html"), "--svg", str(tmp_path / "figures")])
    said = unmarked((tmp_path / "page.html").read_text())
    assert "An arrow marks an unknown end. Not drawn: 1 without a known ratio." in said
    (drawing,) = (tmp_path / "figures").glob("*.svg")
    drawn = drawing.read_text()
    ends = re.findall(r'<line [^>]*translate\([\d.]+,([\d.]+)\)" x2="0" y2="(-[\d.]+)"[^>]* stroke-width="3"', drawn)
    values = re.findall(r'aria-roledescription="point" transform="translate\([\d.]+,([\d.]+)\)', drawn)
    # From the lower end upwards: 0 is the edge, and a value lies above its lower end.
    assert [round(float(low) + float(up), 3) == 0 for low, up in ends] == [False, True]
    assert [float(low) > float(value) for (low, _), value in zip(ends, values, strict=True)] == [True, True]
    assert re.findall(r'<text aria-label="([\d-]+) [^>]*>↑</text>', drawn) == ["2026-09-22"]


def test_bad_input_is_one_line(tmp_path: Path, ran: Ran, golden: Golden) -> None:
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
        (line,) = ran(["report", *words], 2).err.splitlines()
        golden(line.replace(str(tmp_path), "."))


def answers(tmp_path: Path, ran: Ran, documents: Sequence[dict[str, Any]]) -> list[str]:
    words = ["report", "--history", str(folders(tmp_path, documents)), "--margin", "0", "--format", "json"]
    found: list[str] = json.loads(ran(words).out)["answers"]
    return found


def test_the_sentences_begin_with_the_series_that_changed(tmp_path: Path, ran: Ran) -> None:
    quiet = record(1.1, 0, parameters={"kernel": "7.0"})
    documents = [quiet, *(record(ratio, day + 1) for day, (ratio, _) in enumerate(CHANGED))]
    first, second = answers(tmp_path, ran, documents)
    assert "1 change in 4 comparisons" in first
    assert "no change is marked in 1 comparison" in second


def test_comparisons_without_an_interval_are_counted(tmp_path: Path, ran: Ran) -> None:
    (sentence,) = answers(tmp_path, ran, [record(1.1, 0), record(None, 1, **UNKNOWN)])
    assert "2 comparisons, of which 1 has no interval" in sentence
