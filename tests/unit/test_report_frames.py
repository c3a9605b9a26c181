# SPDX-License-Identifier: Apache-2.0
"""Results folders as data frames and Parquet files: every trial, repetition and value of a series once."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import polars as pl
import pytest
from tests.unit.made_campaign import campaign
from tests.unit.made_corpus import doubted
from tests.unit.made_results import keep

from natgauge.cli import run
from natgauge.errors import UsageError
from natgauge.records.measurement import Result
from natgauge.records.store import Store
from natgauge.stored.find_results import find
from natgauge.stored.frames import load


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return campaign(tmp_path_factory.mktemp("campaign"))


def test_trials_are_all_there_with_their_counts_and_the_whole_json(folder: Path) -> None:
    trials = load(folder).trials
    assert trials.height == 4 * len(find([folder]).stored)
    assert set(trials["verdict"]) == {"PASS", "FAIL", "INVALID"}
    assert trials["disturbed"].sum() == trials.height // 2
    (first,) = trials.head(1).to_dicts()
    assert (first["trial"], first["connections"], first["failed_phase"]) == (1, 100, None)
    assert (first["up_intended_rate"], first["down_received_frames"], first["phase1_offered_frames"]) == (5e4, 100, 100)
    assert json.loads(first["result"])["phase1"]["received_frames"] == 100


def test_measurements_are_the_repetitions_of_each_result(folder: Path) -> None:
    measurements = load(folder).measurements
    results = find([folder]).results
    assert measurements["value"].to_list() == [value for one in results for value in one.values]
    assert measurements.filter(pl.col("metric") == "connection-rate")["connections"].n_unique() == 4
    medians = measurements.group_by("folder", maintain_order=True).agg(pl.col("value").median())["value"].to_list()
    assert medians == [one.median for one in results]
    assert json.loads(measurements["parameters"][0])["device"]["gateway"] == results[0].gateway


def test_series_have_a_row_for_each_value(folder: Path) -> None:
    series = load(folder).series
    lost = series.filter((pl.col("name") == "lost_percent") & (pl.col("repetition") == 2))
    wanted = next(one for one in find([folder]).results if one.metric == "frame-loss")
    assert lost["number"].to_list() == [row["lost_percent"] for row in wanted.repetitions[1].series]
    assert lost["row"].to_list() == list(range(1, lost.height + 1))


def test_kinds_of_columns_do_not_depend_on_what_is_there(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    document = find([folder]).stored[0].result.document()
    for part in (document, *document["repetitions"]):
        part["trials"] = {}
    keep(Store(tmp_path / "empty"), Result.from_document(document))
    (tmp_path / "empty" / "trials.jsonl").write_text("")
    assert load(tmp_path / "empty").trials.schema == load(folder).trials.schema


def test_parquet_files_hold_the_same(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = tmp_path / "new" / "frames"
    assert run(["report", "--parquet", str(where), str(folder)]) == 0
    names = ["trials", "measurements", "series", "estimates"]
    assert capsys.readouterr().out.splitlines() == [str(where / f"{name}.parquet") for name in names]
    loaded = load(folder)
    for name in names:
        assert pl.read_parquet(where / f"{name}.parquet").equals(getattr(loaded, name))


def test_a_doubt_that_was_removed_is_missed(tmp_path: Path) -> None:
    result = doubted(tmp_path / "x")
    assert load(result).trials.height == 1
    document = json.loads((result / "summary.json").read_text())
    (result / "summary.json").write_text(json.dumps({**document, "doubts": []}))
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
    one = find([folder]).stored[0]
    for name in ("summary.json", "measurements.jsonl"):
        shutil.copy(one.folder / name, broken)
    assert "trials.jsonl" in refused(broken, tmp_path / "out")
    (broken / "trials.jsonl").write_text("{}\n")
    assert f"{broken / 'trials.jsonl'}:1" in refused(broken, tmp_path / "out")
    with pytest.raises(UsageError):
        load(tmp_path / "nowhere")
    monkeypatch.setitem(sys.modules, "polars", None)
    assert "pip install 'natgauge[frames]'" in refused(folder, tmp_path / "out")
