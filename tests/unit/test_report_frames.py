# SPDX-License-Identifier: Apache-2.0
"""Results folders as data frames and Parquet files: every trial, repetition and value of a series once."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from tests.unit.conftest import Ran
from tests.unit.made_campaign import campaign
from tests.unit.made_comparisons import CONTROL, compared, compared_by_rates, estimate
from tests.unit.made_corpus import doubted
from tests.unit.made_results import kept_as

from natgauge import Result
from natgauge.cli import run
from natgauge.errors import UsageError
from natgauge.stored.frames import load

NAMES = ["trials", "measurements", "series", "estimates"]


def written(folder: Path, where: Path) -> Any:
    """The data frames that the command writes of a folder, by their names."""
    assert run(["report", "--parquet", str(where), str(folder)]) == 0
    return SimpleNamespace(**{name: pl.read_parquet(where / f"{name}.parquet") for name in NAMES})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return campaign(tmp_path_factory.mktemp("campaign"))


@pytest.fixture(scope="module")
def frames(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return written(folder, tmp_path_factory.mktemp("frames"))


@pytest.fixture
def results(folder: Path) -> list[Any]:
    """The summaries of the folder, in order."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob("results/*/summary.json"))]


def test_trials_are_all_there_with_their_counts_and_the_whole_json(frames: Any, results: list[Any]) -> None:
    trials = frames.trials
    assert trials.height == 4 * len(results) > 0
    assert set(trials["verdict"]) == {"PASS", "FAIL", "INVALID"}
    assert trials["disturbed"].sum() == trials.height // 2
    (first,) = trials.head(1).to_dicts()
    assert (first["trial"], first["connections"], first["failed_phase"]) == (1, 100, None)
    assert (first["up_intended_rate"], first["down_received_frames"], first["phase1_offered_frames"]) == (5e4, 100, 100)
    assert json.loads(first["result"])["phase1"]["received_frames"] == 100


def test_measurements_are_the_repetitions_of_each_result(frames: Any, results: list[Any]) -> None:
    measurements = frames.measurements
    assert measurements["value"].to_list() == [each["value"] for one in results for each in one["repetitions"]]
    assert measurements.filter(pl.col("metric") == "connection-rate")["connections"].n_unique() == 4
    medians = measurements.group_by("folder", maintain_order=True).agg(pl.col("value").median())["value"].to_list()
    assert medians == [one["median"] for one in results]
    assert json.loads(measurements["parameters"][0])["device"]["gateway"] == "nat-a"


def test_series_have_a_row_for_each_value(frames: Any, results: list[Any]) -> None:
    series = frames.series
    lost = series.filter((pl.col("name") == "lost_percent") & (pl.col("repetition") == 2))
    (wanted,) = (one for one in results if one["metric"] == "frame-loss")
    assert lost["number"].to_list() == [row["lost_percent"] for row in wanted["repetitions"][1]["series"]]
    assert lost["row"].to_list() == list(range(1, lost.height + 1))


def test_estimates_of_comparisons_are_those_of_each_gateway_and_of_the_control(tmp_path: Path) -> None:
    every = [estimate(), estimate("third", 0.9, 0.88, 0.92, quantity="new")]
    kept_as(tmp_path / "results" / "a", compared(every, notes=[{"word": "ended early", "text": "gone"}]))
    kept_as(tmp_path / "results" / "b", compared_by_rates())
    frames = written(tmp_path / "results", tmp_path / "frames")
    found = frames.estimates
    assert found["gateway"].to_list() == ["other", "third", CONTROL, CONTROL, "nat", CONTROL]
    assert found["ratio"].to_list()[:2] == [1.1, 0.9]
    assert found["ratio"].to_list()[4] is None
    assert found["rate"].to_list() == [None, None, None, None, 10.0, None]
    assert json.loads(found["notes"][0])[0]["word"] == "ended early"
    assert json.loads(found["parameters"][0])["device"]["gateway"] == "other"
    assert frames.measurements.height == 0


def test_kinds_of_columns_do_not_depend_on_what_is_there(frames: Any, results: list[Any], tmp_path: Path) -> None:
    document = results[0]
    for part in (document, *document["repetitions"]):
        part["trials"] = {}
    kept_as(tmp_path / "empty", Result.from_document(document))
    (tmp_path / "empty" / "trials.jsonl").write_text("")
    none = written(tmp_path / "empty", tmp_path / "frames").trials
    assert (none.height, none.schema) == (0, frames.trials.schema)


def test_the_files_that_are_written_are_named(folder: Path, tmp_path: Path, ran: Ran) -> None:
    where = tmp_path / "new" / "frames"
    printed = ran(["report", "--parquet", str(where), str(folder)]).out.splitlines()
    assert printed == [str(where / f"{name}.parquet") for name in NAMES]


def test_what_is_loaded_is_what_is_written(folder: Path, frames: Any) -> None:
    loaded = load(folder)
    assert [name for name in NAMES if not getattr(loaded, name).equals(getattr(frames, name))] == []
    with pytest.raises(UsageError, match="nowhere"):
        load(folder / "nowhere")


def test_a_doubt_that_was_removed_is_missed(tmp_path: Path, ran: Ran) -> None:
    result = doubted(tmp_path / "x")
    assert written(result, tmp_path / "frames").trials.height == 1
    document = json.loads((result / "summary.json").read_text())
    (result / "summary.json").write_text(json.dumps({**document, "doubts": []}))
    assert "single repetition" in ran(["report", "--parquet", str(tmp_path / "frames"), str(result)], 2).err
    with pytest.raises(UsageError, match="single repetition"):
        load(result)


def test_what_is_damaged_missing_or_not_to_be_written_is_one_line(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(where: Path, to: Path) -> str:
        assert run(["report", "--parquet", str(to), str(where)]) in (2, 3)
        *_, line = capsys.readouterr().err.splitlines()
        return line

    (tmp_path / "file").write_text("")
    assert "cannot write" in refused(folder, tmp_path / "file")
    broken = tmp_path / "broken"
    broken.mkdir()
    one = next(folder.glob("results/*-latency"))
    for name in ("summary.json", "measurements.jsonl"):
        shutil.copy(one / name, broken)
    assert "trials.jsonl" in refused(broken, tmp_path / "out")
    (broken / "trials.jsonl").write_text("{}\n")
    assert f"{broken / 'trials.jsonl'}:1" in refused(broken, tmp_path / "out")
    assert "nowhere" in refused(tmp_path / "nowhere", tmp_path / "out")
    monkeypatch.setitem(sys.modules, "polars", None)
    assert "pip install 'natgauge[frames]'" in refused(folder, tmp_path / "out")
