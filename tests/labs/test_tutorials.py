# SPDX-License-Identifier: Apache-2.0
"""The commands of the tutorials, one after the other, as a reader types them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.tutorials import follow
from tools.tutorials import PAGES

pytestmark = [pytest.mark.alone, pytest.mark.soak]


@pytest.mark.slow("measures what a tutorial measures")
@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_each_command_of_a_tutorial_ends_well(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert follow(page, capsys, lambda _words: True) >= 4
