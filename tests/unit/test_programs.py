# SPDX-License-Identifier: Apache-2.0
"""Which of several programs of one name natgauge starts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from natgauge.cli import run
from natgauge.errors import UsageError
from natgauge.gateways.recipe import available
from natgauge.host import programs
from natgauge.host.programs import find_of_devices


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


def test_a_folder_that_is_none_never_lets_another_program_or_gateway_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = _program(tmp_path / "built")
    for variable, use in (
        (programs.VARIABLE, lambda: programs.find("natgauge-engine")),
        (programs.PATH_VARIABLE, lambda: find_of_devices("sh")),
        ("NATGAUGE_GATEWAYS", available),
    ):
        with monkeypatch.context() as patch:
            for wrong in (tmp_path / "bilt", built):
                patch.setenv(variable, f"{built.parent}:{wrong}")
                with pytest.raises(UsageError, match=f"^{variable}: {wrong} is no folder; correct it, or unset"):
                    use()
            # Undoing goes on, and so does what asks for nothing there.
            assert programs.search_path()
            assert run(["--help"]) == run(["measure", "--help"]) == 0
            patch.setenv(variable, f":{built.parent}:")
            use()
