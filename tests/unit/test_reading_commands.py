# SPDX-License-Identifier: Apache-2.0
"""Whoever reads results folders trusts none: each command and function refuses in one line what contradicts itself."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from unittest import mock

import pytest
from tests.unit.conftest import Ran
from tests.unit.golden import Golden
from tests.unit.made_corpus import by_rates, by_slices, doubted

from natgauge.cli import run

READING = {
    "report": ["report", "{folder}"],
    "csv": ["report", "{folder}", "--format", "csv"],
    "html": ["report", "{folder}", "--html", "{out}"],
    "parquet": ["report", "{folder}", "--parquet", "{out}"],
    "diff": ["diff", "{folder}", "{folder}"],
    "explain": ["explain", "{folder}"],
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound")
    with mock.patch("os.fsync"):
        doubted(folder / "doubted")
        by_slices(folder / "slices")
        by_rates(folder / "rates")
    return folder


def undoubted(folder: Path) -> None:
    summary = folder / "summary.json"
    summary.write_text(json.dumps({**json.loads(summary.read_text()), "doubts": []}))


def refused(words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    places = {"folder": str(folder), "out": str(folder.parent / "out")}
    assert run([word.format(**places) for word in words]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert not (folder.parent / "out").exists()
    (line,) = shown.err.splitlines()
    return line


@pytest.mark.parametrize("words", READING.values(), ids=READING)
def test_a_doubt_that_was_removed_is_missed(
    words: list[str], sound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    folder = shutil.copytree(sound / "doubted", tmp_path / "x")
    undoubted(folder)
    golden(refused(words, folder, capsys))


@pytest.mark.parametrize("words", READING.values(), ids=READING)
def test_repetitions_without_their_file_are_refused_where_trials_are_stored(
    words: list[str], sound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(sound / "doubted", tmp_path / "x")
    (folder / "measurements.jsonl").unlink()
    assert f"{folder / 'measurements.jsonl'} is missing" in refused(words, folder, capsys)


def test_a_summary_alone_is_read(sound: Path, tmp_path: Path, ran: Ran) -> None:
    shutil.copy(sound / "doubted" / "summary.json", tmp_path)
    assert ran(["report", str(tmp_path)]).out == ran(["report", str(sound / "doubted")]).out


@pytest.mark.parametrize("kind", ["slices", "rates"])
@pytest.mark.parametrize("factor", [0.5, 0.99, 1.01, 2])
def test_a_ratio_that_is_changed_with_its_interval_is_refused(
    kind: str, factor: float, sound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(sound / kind, tmp_path / "x")
    path = folder / "comparison.json"
    document = json.loads(path.read_text())
    for name in ("ratio", "low", "high"):
        document["estimates"][0][name] *= factor
    path.write_text(json.dumps(document))
    assert str(path) in refused(READING["report"], folder, capsys)


@pytest.mark.parametrize("words", READING.values(), ids=READING)
def test_a_folder_that_may_not_be_looked_into_is_named_in_one_line(
    words: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    golden: Golden,
) -> None:
    hidden = tmp_path / "x"
    hidden.mkdir()

    def lstat(path: Path) -> object:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "lstat", lstat)
    line = refused(words, hidden, capsys)
    assert line.startswith(f"natgauge: '{hidden}/")
    golden(line)


def test_a_folder_of_others_beside_results_one_level_below_does_not_refuse_them(
    sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ran: Ran
) -> None:
    shutil.copytree(sound / "doubted", tmp_path / "runs" / "mine")
    hidden = tmp_path / "runs" / "others"
    hidden.mkdir()
    own = Path.lstat

    def lstat(path: Path) -> object:
        if path.parent == hidden:
            raise PermissionError(13, "Permission denied", str(path))
        return own(path)

    monkeypatch.setattr(Path, "lstat", lstat)
    assert ran(["report", str(tmp_path)]).out == ran(["report", str(sound / "doubted")]).out
