# SPDX-License-Identifier: Apache-2.0
"""The golden files: what they hold is what tests gave, and a text that differs, lacks or is left over is a failure."""

from __future__ import annotations

import platform
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.golden import FOLDER, Golden, read, shown, written

from natgauge.errors import UsageError

HERE = Path(__file__).parent


def test_a_file_that_is_written_is_read_back_the_same(tmp_path: Path) -> None:
    texts = {"test_a[1-2]": ["one\n\n  two", ""], "test_b": ["-", "test_c"]}
    (tmp_path / "x.txt").write_text(written(texts))
    assert read(tmp_path / "x.txt") == texts
    assert read(tmp_path / "none.txt") == {}


def test_a_text_that_differs_lacks_or_is_left_over_fails(tmp_path: Path) -> None:
    one = Golden("test_x", ["at TMP/x:\n  2 frames"], write=False, places={str(tmp_path): "TMP"})
    one(f"at {tmp_path}/x:\n  2 frames  \n")
    with pytest.raises(pytest.fail.Exception, match="more"):
        one("more")
    with pytest.raises(pytest.fail.Exception, match="other"):
        Golden("test_x", ["stored"], write=False, places={})("other")
    with pytest.raises(AssertionError, match="test_x"):
        Golden("test_x", ["stored"], write=False, places={}).ended()


def test_a_refusal_is_its_type_its_input_its_status_and_its_words() -> None:
    one = Golden("test_x", ["UsageError 2 at error: x"], write=False, places={})
    with one.raises(UsageError, at="error"):
        raise UsageError("x", at="error")
    assert shown(UsageError("y")) == "UsageError 2: y"


def test_what_passes_is_no_part_of_a_text() -> None:
    one = Golden("test_x", ["Time: ..., in MOMENT-x"], write=False, places={})
    one("Time: 0.25 s, in 2026-11-26-120000-x", passing=r"(?<=Time: )[\d.]+ s")


@pytest.mark.parametrize("word", [platform.release(), datetime.now(tz=UTC).date().isoformat()])
def test_a_text_that_is_right_only_here_or_today_is_refused_unless_it_is_of_stored_results(word: str) -> None:
    with pytest.raises(pytest.fail.Exception, match=re.escape(word)):
        Golden("test_x", [f"on {word}"], write=False, places={})(f"on {word}")
    Golden("test_x", [f"on {word}"], write=False, places={}, of_stored=True)(f"on {word}")


def test_every_stored_text_is_of_a_test() -> None:
    for file in FOLDER.rglob("*.txt"):
        module = "surfaces" if file.parent.name == "surfaces" else file.stem
        tests = set(re.findall(r"^def (test_\w+)", (HERE / f"test_{module}.py").read_text(), re.MULTILINE))
        assert {name.partition("[")[0] for name in read(file)} <= tests, file
