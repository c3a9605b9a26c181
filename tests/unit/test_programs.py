# SPDX-License-Identifier: Apache-2.0
"""Which of several programs of one name natgauge starts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from natgauge.host import programs


def _program(folder: Path) -> Path:
    folder.mkdir()
    made = folder / "natgauge-engine"
    made.write_text("#!/bin/sh\n")
    made.chmod(0o755)
    return made


def test_the_folder_that_the_user_names_comes_before_the_interpreters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed, built = _program(tmp_path / "installed"), _program(tmp_path / "built")
    monkeypatch.setattr(sys, "executable", str(installed.parent / "python"))
    monkeypatch.setenv(programs.VARIABLE, str(built.parent))
    assert programs.find("natgauge-engine") == built
    built.unlink()
    assert programs.find("natgauge-engine") == installed
