# SPDX-License-Identifier: Apache-2.0
"""The results folder: complete lines, schema versions, refusals."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.counted import make_counts

from natgauge.errors import UsageError
from natgauge.records.reading import read_lines
from natgauge.records.store import TRIAL_SCHEMA, Store, plain
from natgauge.trials import Direction
from natgauge.words import Verdict

NOW = datetime(2026, 11, 21, 8, 0, 0, tzinfo=UTC)


def test_two_runs_in_one_second_get_folders_of_their_own(tmp_path: Path) -> None:
    first = Store.create(tmp_path / "deep" / "results", "throughput", "nftables-nat44", now=NOW)
    second = Store.create(tmp_path / "deep" / "results", "throughput", "nftables-nat44", now=NOW)
    assert first.folder.name == "2026-11-21-080000-throughput-nftables-nat44"
    assert second.folder != first.folder


def test_a_path_through_a_file_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="--results"):
        Store.create(tmp_path / "file" / "results", "throughput", "x", now=NOW)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_every_trial_is_one_whole_line_with_its_schema_and_number(tmp_path: Path) -> None:
    store = Store.create(tmp_path, "throughput", "x", now=NOW)
    counts = make_counts(intended=3, offered=3, received=2)
    store.add_trial({"verdict": Verdict.INVALID, "counts": {Direction.INITIATOR: counts}})
    store.add_trial({"verdict": Verdict.PASS})
    lines = list(read_lines(store.folder / "trials.jsonl", TRIAL_SCHEMA))
    assert [line["trial"] for line in lines] == [1, 2]
    assert lines[0]["verdict"] == "INVALID"
    assert lines[0]["counts"]["initiator"]["received_frames"] == 2


def test_a_line_cut_off_by_a_crash_is_left_out(tmp_path: Path) -> None:
    store = Store.create(tmp_path, "throughput", "x", now=NOW)
    store.add_trial({"verdict": Verdict.PASS})
    path = store.folder / "trials.jsonl"
    path.write_text(path.read_text() + '{"schema": "natgauge-tr')
    assert len(list(read_lines(path, TRIAL_SCHEMA))) == 1


@pytest.mark.parametrize(
    "line", ["{}", '{"schema": "natgauge-trial-1"}', '{"schema": "natgauge-trial-9"}', "nonsense", "[]"]
)
def test_lines_of_another_schema_are_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "trials.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(UsageError, match=r"trials\.jsonl:1"):
        list(read_lines(path, TRIAL_SCHEMA))


def test_a_figure_that_is_no_number_is_never_written(tmp_path: Path) -> None:
    store = Store.create(tmp_path, "throughput", "x", now=NOW)
    with pytest.raises(ValueError, match="JSON"):
        store.add_trial({"rate": float("nan")})


def test_a_discarded_folder_goes_with_those_made_for_it_and_no_others(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "deep" / "results", "throughput", "x", now=NOW)
    store.write_plan({"connections": 1})
    plan = {"schema": "natgauge-plan-1", "metric": "throughput", "gateway": "x", "connections": 1}
    assert json.loads((store.folder / "plan.json").read_text()) == plan
    store.discard()
    assert list(tmp_path.iterdir()) == []
    kept = Store.create(tmp_path / "results", "throughput", "x", now=NOW)
    Store.create(tmp_path / "results", "throughput", "x", now=NOW).discard()
    assert list((tmp_path / "results").iterdir()) == [kept.folder]


def test_paths_sets_and_mappings_become_json(tmp_path: Path) -> None:
    assert plain({Verdict.PASS: (tmp_path, {1})}) == {"PASS": [str(tmp_path), [1]]}
