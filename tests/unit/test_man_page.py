# SPDX-License-Identifier: Apache-2.0
"""The man page tells everything the command line takes, in roff that nothing complains of."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Iterator

import click
import pytest
from tests.absent import absent
from tools import man_page

from natgauge.cli import app


@functools.cache
def page() -> str:
    """The page, which is made where it is tested: not by each process that collects tests."""
    return man_page.page("1.2.3")


def commands(command: click.Command = app, path: str = "natgauge") -> Iterator[tuple[str, click.Command]]:
    """Every command with what is typed to reach it."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands(below, f"{path} {name}")


def part_about(path: str) -> str:
    """The part of the page that is about one command."""
    shown = path.replace("-", "\\-")
    begin = ".SH OPTIONS\n" if path == "natgauge" else f".SS {shown}\n"
    assert page().count(begin) == 1
    return page().partition(begin)[2].partition("\n.S")[0]


@pytest.mark.parametrize(("path", "command"), list(commands()), ids=[path for path, _ in commands()])
def test_each_option_and_argument_of_each_command_is_told(path: str, command: click.Command) -> None:
    part = part_about(path)
    if path.startswith("natgauge measure "):
        part += part_about("natgauge measure")
    assert "\\fB\\-h,\\fR \\fB\\-\\-help\\fR" in part
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            for name in parameter.opts:
                assert "\\fB" + name.replace("-", "\\-") in part
        else:
            assert parameter.make_metavar(click.Context(command)) in part


def test_the_page_names_the_version_and_the_exit_statuses() -> None:
    assert page().startswith('.TH NATGAUGE 1 "" "natgauge 1.2.3" ')
    assert ".B 2\nwrong arguments or a wrong plan\n" in page().partition(".SH EXIT STATUS\n")[2]


@pytest.mark.parametrize(
    ("text", "roff"),
    [
        (".so a line", "\\&.so a line"),
        ("'tis", "\\(aqtis"),
        ("back\\slash", "back\\eslash"),
        ("see `a-b`", "see \\fBa\\-b\\fR"),
        ("two\n lines", "two lines"),
    ],
)
def test_letters_that_mean_something_to_roff_are_shown(text: str, roff: str) -> None:
    assert man_page._text(text) == roff


@pytest.mark.skipif(absent("groff"), reason="there is no groff here")
def test_groff_has_no_warning() -> None:
    command = ["groff", "-man", "-ww", "-Tutf8", "-Kutf8"]
    done = subprocess.run(command, input=page(), capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "natgauge - measure NAT gateways" in done.stdout
