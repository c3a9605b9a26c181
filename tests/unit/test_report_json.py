# SPDX-License-Identifier: Apache-2.0
"""`report --format json`: one object with everything that the tables show, figures in full."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.made_corpus import by_rates
from tests.unit.made_results import keep, made

from natgauge.cli import run
from natgauge.records.store import Store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for gateway, rate in (("a", 123_456.789), ("b", 2e5)):
        result = made([rate, rate * 1.01], parameters={"gateway": gateway, "directions": "both"})
        keep(Store.create(tmp_path / "results", result.metric, gateway), result)
    return tmp_path / "results"


def test_it_has_each_figure_in_full_with_its_row_and_column(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", str(folder), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["comparisons"], document["audits"]) == ("natgauge-report-1", [], [])
    assert document["table"]["columns"] == ["a", "b"]
    cells = {row["row"]: row["cells"] for row in document["table"]["rows"]}
    assert cells["minimum" if "minimum" in cells else "1st percentile"][0] == 123_456.789
    assert all(len(row) == 2 for row in cells.values())
    assert all(answer["text"] for answer in document["answers"])


def test_comparisons_and_results_are_in_one_object(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    by_rates(tmp_path / "results" / "compared")
    assert run(["report", str(folder), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["comparisons"][0]["record"]["schema"] == "natgauge-comparison-5"
    assert document["table"] is not None


def test_a_table_in_another_shape_keeps_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", str(folder), "--format", "json", "--against", "metrics"]) == 0
    table = json.loads(capsys.readouterr().out)["table"]
    assert [row["row"] for row in table["rows"]] == ["a", "b"]
    assert len(table["columns"]) == 1
