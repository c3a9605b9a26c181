# SPDX-License-Identifier: Apache-2.0
"""`.ci/run`: every target runs, the last line is the count of tests, and the exit status says whether all is well."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "run"
#: Stands for make: a target prints the file of its name, and fails where there is one that says so.
MAKE = """#!/bin/sh
echo "$1" >> ran
cat "$1.printed" 2> /dev/null
test -e "$1.fails" || exit 0
echo "make: *** [Makefile:1: $1] Error 1" >&2
exit 2
"""


class Clone:
    """A repository whose make does what a test says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "clone"
        (self.folder / ".ci").mkdir(parents=True)
        shutil.copy(SCRIPT, self.folder / ".ci")
        self.programs = folder / "bin"
        self.programs.mkdir()
        (self.programs / "make").write_text(MAKE)
        (self.programs / "make").chmod(0o755)

    def target(self, name: str, printed: str, *, fails: bool = False) -> None:
        """Say what a target prints and whether it fails."""
        (self.folder / f"{name}.printed").write_text(printed)
        if fails:
            (self.folder / f"{name}.fails").touch()

    def run(self) -> tuple[int, list[str]]:
        """The exit status, and the lines of standard output and standard error as they come."""
        done = subprocess.run(
            [self.folder / ".ci" / "run"],
            env=os.environ | {"PATH": f"{self.programs}:{os.environ['PATH']}"},
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert (self.folder / "ran").read_text().split() == ["check", "try-install", "test"]
        return done.returncode, done.stdout.splitlines()


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def test_the_count_of_tests_that_pass_is_the_last_line(clone: Clone) -> None:
    clone.target("test", "== unit\n7 passed, 0 failed, 1 skipped\n")
    status, lines = clone.run()
    assert (status, lines[-1]) == (0, "7 passed, 0 failed, 1 skipped")
    assert "== unit" in lines


def test_the_count_of_tests_that_fail_comes_after_what_make_says(clone: Clone) -> None:
    clone.target("test", "1 passed, 0 failed in the first part\n6 passed, 1 failed, 0 skipped\n", fails=True)
    status, lines = clone.run()
    assert (status, lines[-1]) == (1, "6 passed, 1 failed, 0 skipped")
    assert "make: *** [Makefile:1: test] Error 1" in lines


def test_tests_that_never_began_count_as_one_failure(clone: Clone) -> None:
    clone.target("check", "9 passed, 0 failed, 0 skipped\n")
    clone.target("test", "error: no compiler\n", fails=True)
    status, lines = clone.run()
    assert (status, lines[-1]) == (1, "0 passed, 1 failed, 0 skipped")


def test_a_target_before_the_tests_decides_the_exit_status_too(clone: Clone) -> None:
    clone.target("check", "", fails=True)
    clone.target("test", "7 passed, 0 failed, 1 skipped\n")
    status, lines = clone.run()
    assert (status, lines[-1]) == (1, "7 passed, 0 failed, 1 skipped")
