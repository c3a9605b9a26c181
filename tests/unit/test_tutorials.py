# SPDX-License-Identifier: Apache-2.0
"""The commands of the tutorials that measure nothing; tests/labs/test_tutorials.py runs all of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.tutorials import follow
from tools.tutorials import PAGES

#: Commands that need no privilege and no result.
WITHOUT_LAB = {"gateways", "published", "plan"}


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_each_command_without_a_lab_ends_well(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert follow(page, capsys, lambda words: words[0] in WITHOUT_LAB) >= 1


def test_there_is_a_tutorial_for_each_reader() -> None:
    assert [page.stem for page in PAGES] == ["tutorial-author", "tutorial-operator", "tutorial-researcher"]
