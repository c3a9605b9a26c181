# SPDX-License-Identifier: Apache-2.0
"""Files are replaced whole, and what a killed process left of one goes with it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from natgauge import files


def test_a_file_is_replaced_and_nothing_stays_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    for text in ("old", "näher"):
        files.replace(path, text)
        assert path.read_text(encoding="utf-8") == text
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "found.json"
    path.write_text("old")

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        files.replace(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_goes_with_the_partial_ones_of_killed_processes(tmp_path: Path) -> None:
    path, other = tmp_path / "a.json", tmp_path / "b.json"
    for one in (path, other, tmp_path / "a.json.123.new"):
        one.write_text("x")
    files.remove(path)
    files.remove(path)
    assert list(tmp_path.iterdir()) == [other]
