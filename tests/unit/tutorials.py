# SPDX-License-Identifier: Apache-2.0
"""What a reader of a tutorial does: saves files and types commands, one after the other."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest
from tools.tutorials import steps, typed

from natgauge.cli import run

#: Exit statuses of what was done: a comparison's gateway costs more or the time ended first, and a gateway that does
#: not carry the subscribers. Others end with 0.
_DONE: Final = {"compare": {0, 10, 11}, "size": {0, 1}}


#: Other programs that a reader types.
_OTHERS: Final = {"git", "cp"}
_GIT: Final = ("git", "-c", "user.name=t", "-c", "user.email=t@example.org")


def _type(program: str, words: Sequence[str]) -> None:
    """Run another program; before one of git's, what there is was committed, as the page says."""
    if program == "git" and not Path(".git").exists():
        for before in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "rules"]):
            subprocess.run([*_GIT, *before], check=True)
    # A file that is there is no failure of `cp -n`, whatever its exit status is.
    subprocess.run([program, *words], check=program == "git", capture_output=True)


def follow(page: Path, capsys: pytest.CaptureFixture[str], chosen: Callable[[list[str]], bool]) -> int:
    """Do the steps of a tutorial in the current folder, and return the number of commands that were run.

    Args:
        page: the tutorial.
        capsys: catches what the commands print.
        chosen: whether to run a command, from its words without `natgauge`.
    """
    commands = 0
    for name, text in steps(page):
        if name:
            Path(name).write_text(text)
            continue
        (program, *words), to = typed(text, Path.cwd())
        if program in _OTHERS:
            if chosen(words):
                _type(program, words)
            continue
        assert program == "natgauge"
        if not chosen(words):
            continue
        capsys.readouterr()
        status = run(words)
        shown = capsys.readouterr()
        ended = f"{text}: status {status}: {shown.out}{shown.err}"
        assert status in (_DONE.get(words[0], {0})), ended
        assert shown.out
        if to is not None:
            Path(to).write_text(shown.out)
        commands += 1
    return commands
