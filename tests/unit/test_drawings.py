# SPDX-License-Identifier: Apache-2.0
"""Figures as files of their own: the page's figures, complete without the page."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from tests.unit.made_corpus import by_rates
from tests.unit.made_results import keep, made

from natgauge.cli import run
from natgauge.records.store import Store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for at, gateway in enumerate(("jool-nat64", "tayga-nat64"), start=1):
        for connections in (1000, 10_000):
            varied = {"gateway": gateway, "connections": connections, "device_cores": 1}
            result = made([1e5 * at + connections] * 2, parameters=varied)
            keep(Store.create(tmp_path / "results", result.metric, gateway), result)
    by_rates(tmp_path / "results" / "compared")
    return tmp_path / "results"


def test_each_figure_is_a_drawing_that_needs_no_page(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", str(folder), "--svg", str(tmp_path / "svg"), "--pdf", str(tmp_path / "pdf")]) == 0
    paths = [Path(line) for line in capsys.readouterr().out.splitlines()]
    drawings, printable = (sorted(path for path in paths if path.suffix == end) for end in (".svg", ".pdf"))
    assert [path.stem for path in drawings] == [path.stem for path in printable]
    assert len(drawings) >= 2
    for path in drawings:
        text = path.read_text()
        assert ET.fromstring(text).tag.endswith("svg")  # noqa: S314 - drawn here
        assert "var(" not in text
    assert all(path.read_bytes().startswith(b"%PDF") for path in printable)
    (of_lines,) = (path.read_text() for path in drawings if "frames-per-second" in path.name)
    assert "jool-nat64" in of_lines
    assert "tayga-nat64" in of_lines


def test_what_cannot_be_drawn_or_written_is_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert run(["report", str(folder), "--svg", str(tmp_path / "file")]) in {2, 3}
    assert len(capsys.readouterr().err.splitlines()) == 1
