# SPDX-License-Identifier: Apache-2.0
"""Signals before, between and after what a command does: no traceback, and the exit status that shells expect."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

#: A process that gets a signal while it loads the command line.
_LOADING = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.{first})

class Interrupted:
    def find_spec(self, name, path=None, target=None):
        if name == "natgauge.cli":
            os.kill(os.getpid(), signal.SIGINT)

from natgauge.entry import main
sys.meta_path.insert(0, Interrupted())
sys.argv = ["natgauge", "--version"]
main()
"""
#: A process that gets a signal when no command runs: before the first, or when the last has ended.
_BETWEEN = """
import os, signal, sys, time
from natgauge import cli

def run(arguments):
    os.kill(os.getpid(), signal.{name})
    time.sleep(5)

cli.run = run
cli.main()
"""
_AFTER = """
import os, signal
from natgauge import cli

class Last:
    def __del__(self):
        os.kill(os.getpid(), signal.{name})

last = Last()
cli.run = lambda arguments: 0
cli.main()
"""


def ended(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def test_the_command_begins_in_the_module_that_loads_nothing_before_it_looks_after_signals() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert project["project"]["scripts"]["natgauge"] == "natgauge.entry:main"
    loaded = ended("import sys, natgauge.entry; print(*sorted(n for n in sys.modules if n.startswith('natgauge')))")
    assert loaded.stdout.split() == ["natgauge", "natgauge.entry"]


def test_ctrl_c_while_the_command_line_is_loaded_ends_without_a_word() -> None:
    found = ended(_LOADING.format(first="default_int_handler"))
    assert (found.returncode, found.stdout, found.stderr) == (-signal.SIGINT, "", "")


def test_an_ignored_ctrl_c_stays_ignored_while_the_command_line_is_loaded() -> None:
    found = ended(_LOADING.format(first="SIG_IGN"))
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.startswith("natgauge ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_is_one_line_outside_of_a_command_and_none_while_python_ends(number: signal.Signals) -> None:
    told = f"natgauge: ended by {number.name}; everything is undone\n"
    for program, status, said in ((_BETWEEN, 128 + number, told), (_AFTER, -number, "")):
        first = f"import signal; signal.signal(signal.{number.name}, signal.SIG_DFL)\n"
        found = ended(first + program.format(name=number.name))
        assert (found.returncode, found.stderr) == (status, said)


def test_what_the_encoding_of_the_output_does_not_have_is_written_as_an_escape() -> None:
    program = "from natgauge import cli\nfrom natgauge.cli.say import say\ncli.run = lambda _: say('✗ fails…') or 0\n"
    found = subprocess.run(
        [sys.executable, "-c", f"{program}cli.main()"],
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        check=False,
    )
    assert (found.returncode, found.stdout, found.stderr) == (0, b"\\u2717 fails\\u2026\n", b"")
