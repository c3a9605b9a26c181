# SPDX-License-Identifier: Apache-2.0
"""What natgauge prints of stored results, plans and wrong command lines, and its help, as a whole: a file per surface.

`tests/golden/inputs/` has the inputs and the command lines. Its results are the documents of one measurement,
comparison or audit of each kind, measured in network namespaces, so that these files have each figure that is printed.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import shutil
import tomllib
from pathlib import Path

import click
import pytest
from tests.unit.golden import FOLDER, Golden
from tests.unit.pages import lines_of
from tests.unit.test_man_page import commands

from natgauge.cli import app, run
from natgauge.errors import NatgaugeError

INPUTS = FOLDER / "inputs"
COMMANDS = tomllib.loads((INPUTS / "commands.toml").read_text())
LINES = [(surface, line) for surface, lines in COMMANDS.items() for line in lines]
_KIND = re.compile(r"natgauge-(summary|comparison|audit)-\d+")
_CAMPAIGN = "campaign-"
#: Surfaces of command lines that are wrong.
REFUSED = {"refusals", "questions"}
#: A folder that is not there.
NOWHERE = "/nowhere/for/programs"
#: Characters of a line of a table with a column for each figure.
WIDE = 600


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working folder of the command lines."""
    folder = tmp_path_factory.mktemp("inputs")
    for name in ("plans", "gateways", "trials"):
        shutil.copytree(INPUTS / name, folder / name)
    for path in sorted((INPUTS / "results").iterdir()):
        kind = _KIND.fullmatch(json.loads(path.read_text())["schema"])
        assert kind is not None
        own = [folder / path.stem, *([folder / "campaign" / path.stem] if path.stem.startswith(_CAMPAIGN) else [])]
        for place in own:
            place.mkdir(parents=True)
            shutil.copy(path, place / f"{kind[1]}.json")
    return folder


@pytest.fixture
def nothing_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question that is not refused is refused for this, before a lab is made, in words that no surface has."""
    monkeypatch.setenv("NATGAUGE_PATH", NOWHERE)


@pytest.fixture
def folder(inputs: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(inputs)
    return inputs


@pytest.mark.usefixtures("four_cores", "nothing_is_made")
@pytest.mark.parametrize(("surface", "line"), LINES, ids=[f"{surface}: {line}" for surface, line in LINES])
def test_what_a_command_prints(
    surface: str, line: str, folder: Path, golden: Golden, capsys: pytest.CaptureFixture[str]
) -> None:
    before = listed(folder)
    page = Path("page.html")
    words = [*shlex.split(line), *(["--html", str(page)] if surface == "page" else [])]
    status = run(words)
    shown = capsys.readouterr()
    golden(f"exit status {status}{at_of(words) if surface == 'questions' else ''}")
    if surface in REFUSED:
        assert (status, shown.out, shown.err.startswith("natgauge: ")) == (2, "", True)
        assert NOWHERE not in shown.err, "it is not refused"
    elif surface == "page":
        golden(lines_of(page.read_text()))
        page.unlink()
    else:
        golden(readable(shown.out, json_document="--json" in words))
    golden(shown.err)
    assert listed(folder) == before


def listed(folder: Path) -> list[tuple[str, list[str], list[str]]]:
    """All that is in a folder; a path for each file takes ten times as long."""
    return [(place, sorted(folders), sorted(files)) for place, folders, files in sorted(os.walk(folder))]


def at_of(words: list[str]) -> str:
    """The input that a refusal names for programs."""
    with pytest.raises((NatgaugeError, click.ClickException)) as refused:
        app.main(words, prog_name="natgauge", standalone_mode=False)
    if isinstance(refused.value, NatgaugeError):
        return f" at {refused.value.at}" if refused.value.at else ""
    parameter = getattr(refused.value, "param", None)
    return f" at {parameter.name}" if parameter else ""


def readable(printed: str, *, json_document: bool) -> str:
    """JSON and wide tables of values, with a line for each value or column."""
    if json_document:
        return json.dumps(json.loads(printed), indent=1)
    # A caption is a paragraph in one line.
    if all(len(line) < WIDE or line.startswith("\\caption") for line in printed.splitlines()):
        return printed
    return "\n".join(" | ".join(column) for column in zip(*csv.reader(printed.splitlines()), strict=True))


#: An option in a remedy, without those of other programs and of commands that are named in full.
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
COMMAND = re.compile(r'"(?:natgauge|git|docker) [^"]*"|natgauge \w[^;]*|git show [^;]*|docker run [^;]*')


@pytest.mark.usefixtures("four_cores", "nothing_is_made", "folder")
@pytest.mark.parametrize("line", [line for surface, line in LINES if surface in REFUSED])
def test_a_refusal_names_only_options_that_its_command_has(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Seen: the lab of a campaign was in use, and `natgauge run` named an option of `natgauge measure`."""
    run(shlex.split(line))
    refusal = COMMAND.sub("", capsys.readouterr().err)
    options = {option for each in command_of(line).params for option in (*each.opts, *each.secondary_opts)}
    assert {name for name in OPTION.findall(refusal) if name not in shlex.split(line)} <= options


def command_of(line: str) -> click.Command:
    """The command that a line calls, without its options."""
    command: click.Command = app
    for word in shlex.split(line):
        if isinstance(command, click.Group):
            command = command.get_command(click.Context(command), word) or command
    return command


@pytest.mark.parametrize("surface", ["help"])
def test_the_help_of_every_command(
    surface: str, golden: Golden, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert surface
    monkeypatch.setenv("COLUMNS", "100")
    for path, _ in commands():
        assert run([*path.split()[1:], "--help"]) == 0
        golden(capsys.readouterr().out)


def test_every_stored_result_is_shown_and_every_surface_has_commands() -> None:
    words = {word for lines in COMMANDS.values() for line in lines for word in line.split()}
    assert {path.stem for path in (INPUTS / "results").iterdir()} <= words | {
        path.stem for path in (INPUTS / "results").glob(f"{_CAMPAIGN}*")
    }
    assert all(COMMANDS.values())
