# SPDX-License-Identifier: Apache-2.0
"""Files are replaced whole, and what a killed process left of one goes with it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from natgauge import files
from natgauge.system_errors import fault


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


def trap(tmp_path: Path, link: Path) -> Path:
    """A file of somebody, to which a link of another user leads."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    link.symlink_to(victim)
    return victim


def test_a_link_with_the_name_of_a_partial_file_is_not_followed(tmp_path: Path) -> None:
    victim = trap(tmp_path, tmp_path / f"found.json.{os.getpid()}.new")
    files.replace(tmp_path / "found.json", "new")
    assert (victim.read_text(), (tmp_path / "found.json").read_text()) == ("precious", "new")


def test_a_link_with_the_name_of_a_traceback_is_not_followed(tmp_path: Path) -> None:
    victim = trap(tmp_path, tmp_path / "traceback.txt")
    told = fault(ValueError("strange"), [tmp_path / "traceback.txt"])
    assert str(told).endswith(str(tmp_path / "traceback.txt"))
    assert victim.read_text() == "precious"
    assert "strange" in (tmp_path / "traceback.txt").read_text()


def test_a_private_file_is_its_owners_alone_also_where_a_link_or_a_public_file_was(tmp_path: Path) -> None:
    path = tmp_path / "key"
    victim = trap(tmp_path, path)
    files.write_private(path, b"secret")
    assert (victim.read_text(), path.read_bytes(), path.stat().st_mode & 0o777) == ("precious", b"secret", 0o600)
    path.chmod(0o644)
    files.write_private(path, b"other")
    assert path.stat().st_mode & 0o777 == 0o600
