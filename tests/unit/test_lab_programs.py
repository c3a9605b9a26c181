# SPDX-License-Identifier: Apache-2.0
"""Finding the compiled programs."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from tests.unit.golden import Golden

from natgauge.errors import HostError
from natgauge.host import programs


def _program(directory: Path, name: str = "natgauge-test-program") -> Path:
    directory.mkdir(exist_ok=True)
    path = directory / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path, Path]:
    beside, named, path = tmp_path / "bin", tmp_path / "named", tmp_path / "path"
    named.mkdir()
    monkeypatch.setattr(sys, "executable", str(beside / "python"))
    monkeypatch.setenv(programs.VARIABLE, str(named))
    monkeypatch.setenv("PATH", str(path))
    # What the user names comes first.
    return named, beside, path


def test_the_nearest_place_wins(places: tuple[Path, Path, Path]) -> None:
    for place in reversed(places):
        expected = _program(place)
        assert programs.find("natgauge-test-program") == expected


def test_a_file_that_cannot_be_run_is_passed_over(places: tuple[Path, Path, Path]) -> None:
    _program(places[0]).chmod(0o644)
    expected = _program(places[1])
    assert programs.find("natgauge-test-program") == expected


@pytest.mark.usefixtures("places")
def test_a_missing_program_names_what_mends_it(golden: Golden) -> None:
    with golden.raises(HostError):
        programs.find("natgauge-test-program")


@pytest.mark.usefixtures("places")
def test_devices_find_what_a_user_built_before_all_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, other = _program(tmp_path / "own", "sh"), _program(tmp_path / "other", "natgauge-test-program")
    assert shutil.which("sh", path=programs.search_path()) not in (None, str(own))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(programs.PATH_VARIABLE, f"own::{other.parent}")
    path = programs.search_path()
    assert shutil.which("sh", path=path) == str(own)
    assert shutil.which("natgauge-test-program", path=path) == str(other)
    assert all(Path(folder).is_absolute() for folder in path.split(":")), "snippets run in another folder"
