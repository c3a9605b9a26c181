# SPDX-License-Identifier: Apache-2.0
"""The commands of the tutorials, one after the other, as a reader types them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from natgauge.cli import run

pytestmark = pytest.mark.alone

TUTORIALS = sorted((Path(__file__).parents[2] / "docs").glob("tutorial-*.md"))
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SAVED = re.compile(r"[Ss]ave (?:it|this plan) as `([\w.-]+)`")
#: Exit statuses of a comparison: no gateway costs more, one does, the time ended first. Others end with 0.
COMPARED = {0, 10, 11}


def steps(text: str) -> Iterator[tuple[str, str]]:
    """The name and text of each file that a reader saves, and the commands, each as ("", command)."""
    before = 0
    for block in FENCE.finditer(text):
        if block[1] == "sh":
            yield from (("", line) for line in block[2].splitlines())
        else:
            (name,) = SAVED.findall(text[before : block.start()])
            yield name, block[2]
        before = block.end()


@pytest.mark.slow("measures what a tutorial measures")
@pytest.mark.parametrize("page", TUTORIALS, ids=[page.stem for page in TUTORIALS])
def test_each_command_of_a_tutorial_ends_well(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = 0
    for name, text in steps(page.read_text()):
        if name:
            Path(name).write_text(text)
            continue
        words = shlex.split(text)
        words, to = (words[:-2], words[-1]) if ">" in words else (words, None)
        assert words[0] == "natgauge"
        capsys.readouterr()
        status = run(words[1:])
        shown = capsys.readouterr()
        assert status in (COMPARED if words[1] == "compare" else {0}), f"{text}: {shown.err}"
        assert shown.out
        if to is not None:
            Path(to).write_text(shown.out)
        commands += 1
    assert commands >= 4
