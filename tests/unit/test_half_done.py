# SPDX-License-Identifier: Apache-2.0
"""A campaign that has not ended is reported, and each figure says how many of its repetitions there are."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.unit.campaigning import (
    ONE_CONNECTION_RATE,
    Benches,
    Dies,
    Goes,
    Killed,
    campaign,
    not_ended,
    quick_disk,
    results,
    summaries,
)
from tests.unit.conftest import Ran
from tests.unit.golden import Golden

from natgauge.cli import run

__all__ = ["quick_disk"]

SO_FAR = "2 of 3 repetitions"
TWO_GATEWAYS = ONE_CONNECTION_RATE.replace('["linux-ipv4"]', '["linux-ipv4", "nftables-nat44"]')


@pytest.fixture(scope="module")
def made_half(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Path]:
    """The folder of a campaign that was killed so many trials before its end, made once for all tests."""

    @cache
    def made(plan: str, before_its_end: int) -> Path:
        folder, whole = tmp_path_factory.mktemp("half"), Benches()
        (folder / "whole").mkdir()
        campaign(folder / "whole", whole, plan=plan)
        with pytest.raises(Killed):
            campaign(folder, Benches(killed=Dies(sum(whole.trials.values()) - before_its_end)), plan=plan)
        return folder

    return made


@pytest.fixture
def killed(made_half: Callable[[str, int], Path], tmp_path: Path) -> Callable[..., Path]:
    """Have such a campaign in the folder of the test."""

    def copied(plan: str = ONE_CONNECTION_RATE, *, before_its_end: int = 1) -> Path:
        shutil.copytree(made_half(plan, before_its_end), tmp_path, dirs_exist_ok=True)
        return tmp_path / "out"

    return copied


def test_each_form_says_beside_the_figure_how_many_repetitions_it_has(
    tmp_path: Path, ran: Ran, golden: Golden, killed: Callable[..., Path]
) -> None:
    folder = killed()
    for form in ("text", "markdown", "latex", "draft"):
        told = ran(["report", str(folder), "--format", form])
        assert SO_FAR in told.out
        golden(told.out, passing=r"\d{4}-\d\d-\d\d(?!-)")
        golden(told.err)
    assert SO_FAR in ran(["report", str(folder), "--against", "metrics"]).out
    assert run(["report", str(folder), "--html", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    # In the answer, in the table of the metrics, and in the charts.
    assert page.count(SO_FAR) >= 3


def test_programs_read_both_numbers(ran: Ran, killed: Callable[..., Path]) -> None:
    folder = killed()
    (row,) = csv.DictReader(io.StringIO(ran(["report", str(folder), "--format", "csv"]).out))
    assert (row["number of experiments"], row["experiments planned"]) == ("2", "3")
    document = json.loads(ran(["report", str(folder), "--format", "json"]).out)
    rows = {each["row"]: each["cells"] for each in document["table"]["rows"]}
    assert (rows["number of experiments"], rows["experiments planned"]) == ([2], [3])
    assert [doubt["word"] for doubt in document["doubts"]] == ["incomplete"]


def test_a_measurement_that_has_ended_stands_beside_one_that_has_not(ran: Ran, killed: Callable[..., Path]) -> None:
    folder = killed(TWO_GATEWAYS)
    rows = {
        each["row"]: each["cells"]
        for each in json.loads(ran(["report", str(folder), "--format", "json"]).out)["table"]["rows"]
    }
    assert sorted(rows["number of experiments"]) == [2, 3]
    assert sorted(rows["experiments planned"], key=str) == [3, None]
    # In the order of the plan, whether they have ended or not.
    assert rows["gateway"] == ["linux-ipv4", "nftables-nat44"]


def test_programs_and_papers_read_what_has_no_result(
    tmp_path: Path,
    ran: Ran,
    killed: Callable[..., Path],
) -> None:
    """A table of the gateways that have results is read as one of all."""
    folder = killed(TWO_GATEWAYS, before_its_end=45)
    told = json.loads(ran(["report", str(folder), "--format", "json"]).out)
    rows = {each["row"]: each["cells"] for each in told["table"]["rows"]}
    (other,) = {"linux-ipv4", "nftables-nat44"} - {*rows["gateway"]}
    (missing,) = told["no_result"]
    assert (missing["gateway"], missing["measurement"], missing["folder"]) == (other, "connection-rate", str(folder))
    assert told["not_ended"] == {str(folder): not_ended(tmp_path)}
    own, without = csv.DictReader(io.StringIO(ran(["report", str(folder), "--format", "csv"]).out))
    assert own["doubts in full"] == "; ".join(f"{one['word']}: {one['text']}" for one in told["doubts"])
    assert (own["no result"], without["no result"]) == ("", missing["reason"])
    assert {name for name, cell in without.items() if cell} == {"gateway", "metric", "no result"}
    assert (without["gateway"], without["metric"]) == (other, "connection-rate")
    (said,) = (
        line for line in ran(["report", str(folder), "--format", "latex"]).out.splitlines() if "No result" in line
    )
    assert "1 of 2" in said


def test_a_copied_campaign_is_no_second_measurement(tmp_path: Path, ran: Ran, killed: Callable[..., Path]) -> None:
    """Seen: "run 1" and "run 2" of one measurement, with the certainty of two."""

    def reported(*folders: Path) -> tuple[Any, str]:
        told = ran(["report", "--format", "json", *map(str, folders)])
        return json.loads(told.out), told.err

    folder, copy = killed(TWO_GATEWAYS), tmp_path / "copy"
    shutil.copytree(folder, copy)
    campaign(tmp_path, Benches(), plan=TWO_GATEWAYS)
    alone, _ = reported(folder)
    for folders in ([folder, copy], [copy, folder]):
        found, said = reported(*folders)
        # One of both was copied before its last repetition.
        assert found["table"] == alone["table"]
        assert {Path(kept).parents[1] for kept in found["copies"].values()} == {folder}
        assert {Path(own).parents[1] for own in found["copies"]} == {copy}
        assert (len(found["copies"]), found["no_result"], found["not_ended"]) == (2, [], {})
        assert str(copy) in said
        assert said.count("\n") == 1
    # Another campaign of the same plan is another measurement.
    other = tmp_path / "other"
    other.mkdir()
    campaign(other, Benches(), plan=TWO_GATEWAYS)
    found, _ = reported(folder, other / "out")
    assert (len(found["table"]["rows"][0]["cells"]), found["copies"]) == (4, {})


def test_resumed_it_is_the_campaign_that_nobody_killed(tmp_path: Path, killed: Callable[..., Path]) -> None:
    folder = killed()
    campaign(tmp_path, Benches(), plan=ONE_CONNECTION_RATE)
    assert results(tmp_path) == results(tmp_path / "whole")
    assert [path.name for path in (folder / "results").iterdir()] == ["linux-ipv4-connection-rate"]
    (found,) = summaries(tmp_path).values()
    assert not found.doubts
    assert found.planned_repetitions == len(found.repetitions) == 3


def test_a_session_makes_the_figure_that_a_kill_left_out(tmp_path: Path, killed: Callable[..., Path]) -> None:
    folder = killed()
    (summary,) = (folder / "results").glob("*/summary.json")
    summary.unlink()
    campaign(tmp_path, Benches(), plan=ONE_CONNECTION_RATE, only=["linux*"])
    assert len(summaries(tmp_path)) == 1


def test_what_broke_after_some_repetitions_has_not_ended_and_is_broken_until_it_is_tried_again(
    tmp_path: Path, ran: Ran
) -> None:
    """Seen: it counted as ended, for its first repetition has a result; tried again, it was broken for ever."""
    campaign(tmp_path, Benches(gateway=Goes(1)), plan=ONE_CONNECTION_RATE)
    assert len(summaries(tmp_path)) == 1
    said = not_ended(tmp_path)
    assert said.startswith("1 of 1 measurement broke; ")
    assert said.endswith("--retry-broken")
    with pytest.raises(Killed):
        campaign(tmp_path, Benches(killed=Dies(3)), plan=ONE_CONNECTION_RATE, retry_broken=True)
    said = not_ended(tmp_path)
    assert said.startswith("1 of 1 measurement has not ended; ")
    assert said.endswith("--resume")
    words = {
        doubt["word"] for doubt in json.loads(ran(["report", str(tmp_path / "out"), "--format", "json"]).out)["doubts"]
    }
    # Seen: reports still had the result from before, and why it had broken.
    assert ("incomplete" in words, "ended early" in words) == (True, False)
    campaign(tmp_path, Benches(), plan=ONE_CONNECTION_RATE)
    assert not not_ended(tmp_path)


@pytest.mark.parametrize("half", ["empty", "no such", "begun", "killed at once", "plan alone"])
def test_a_folder_of_which_nothing_can_be_said_is_refused_in_one_line(
    half: str, tmp_path: Path, ran: Ran, golden: Golden
) -> None:
    folder = tmp_path / "folder"
    if half != "no such":
        folder.mkdir()
    if half in ("begun", "killed at once"):
        with pytest.raises(Killed):
            campaign(tmp_path, Benches(killed=Dies(1)), plan=ONE_CONNECTION_RATE)
        folder = tmp_path / "out"
    if half == "begun":
        (folder / "results").mkdir()
    if half == "plan alone":
        (folder / "plan.json").write_text('{"schema": "natgauge-plan-1"}')
    told = ran(["report", str(folder)], 2).err
    assert told.count("\n") == 1
    golden(told)


def test_a_journal_that_cannot_be_read_is_named(tmp_path: Path, killed: Callable[..., Path]) -> None:
    """Seen: the report said nothing of it, as if all had ended."""
    folder = killed()
    with (folder / "journal.jsonl").open("a") as file:
        file.write("[\n")
    said = not_ended(tmp_path)
    assert said.startswith(f"what has not ended or broke is not known: results: {folder / 'journal.jsonl'}:")
