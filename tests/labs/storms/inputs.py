# SPDX-License-Identifier: Apache-2.0
"""Plans, gateways, servers and options with slips: each is read, or refused in one line that says what is where."""

from __future__ import annotations

import io
import os
import re
import shutil
import time
import tomllib
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.labs.storms.mutations import LONGEST
from tests.labs.storms.storm import Storm, Tally
from tests.unit.mutants import EXAMPLES, FOLDER, parsed, places
from tests.unit.mutants_of_inputs import mutant, typed

from natgauge import cli, procedures
from natgauge.campaigns.cells import points
from natgauge.campaigns.plan import Plan, read
from natgauge.errors import NatgaugeError, UsageError
from natgauge.gateways import far_side
from natgauge.gateways.recipe import Recipe, load
from natgauge.host.machine import as_if
from natgauge.inputs.input import Input
from natgauge.plain_text import one_line, visible
from natgauge.setup.cell import inputs_of_part, place_inputs
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask

#: Longest time for one mutant, in seconds; a usual one takes milliseconds.
MOST_SECONDS: Final = 5.0
#: One mutant of a file in this number is also given to the command line.
_ONE_IN: Final = 10
PARTS: Final = ("traffic", "lab", "device")
#: Where in a file something is: a line, its end, or an octet.
_PLACE: Final = re.compile(r"\bline \d+|\bend of document|\boctet \d+")


@dataclass(frozen=True)
class Kind:
    """One kind of files that people write.

    Attributes:
        name: in the storm's words.
        files: the committed files whose mutants are read.
        read: reads one.
        arguments: command that reads one, without the file; None = no command does only that.
        folder: folder of files that these name; None = they name none.
    """

    name: str
    files: tuple[Path, ...]
    read: Callable[[Path], object]
    arguments: tuple[str, ...] | None = None
    folder: Path | None = None


KINDS: Final = (
    Kind("plan", tuple(sorted(EXAMPLES.glob("*.toml"))), lambda path: points(read(path), str(path)), ("plan", "check")),
    Kind("gateway", tuple(sorted(FOLDER.glob("*.toml"))), load, ("gateways", "show")),
    Kind("part", tuple(sorted((FOLDER / "parts").glob("*.toml"))), load, ("gateways", "show")),
    Kind("server", tuple(far_side.available().values()), lambda path: far_side.load(str(path))),
)


def fault_of(line: str, path: Path, text: bytes, *, line_of_command: bool = False) -> str:
    """What a refusal of a file lacks; empty = nothing."""
    if visible(line) != line or "\n" in line:
        return "more than one line, or characters that a terminal obeys"
    if not 0 < len(line) < LONGEST:
        return f"{len(line)} characters"
    begin = "natgauge: " if line_of_command else ""
    named_file, _, rest = line.removeprefix(begin).removeprefix("plan: ").partition(".toml")
    if f"{named_file}.toml" != str(path):
        return "does not begin with the file"
    if not (_PLACE.search(rest) or "... (" in rest or any(key in rest for key in _keys(text))):
        return "names neither a key nor a line"
    return ""


def _keys(text: bytes) -> set[str]:
    """Keys of the document and those that it may have, as messages have them."""
    known = {*Plan.model_fields, *Recipe.model_fields, *far_side.Server.model_fields, *_of_questions()}
    with suppress(ValueError):
        table = tomllib.loads(text.decode())
        known |= {one_line(step) or '""' for place in places(table) for step in place if isinstance(step, str)}
    return known | {key.replace("_", " ") for key in known}


@cache
def _of_questions() -> frozenset[str]:
    """Keys of plans that are options of `natgauge measure`."""
    cell = (input_.name for part in PARTS for input_ in inputs_of_part(part))
    own = (input_.name for metric in procedures.procedures() for input_ in procedures.get(metric).own_inputs())
    return frozenset({*cell, *own, *place_inputs(), "metric"})


def refusal(read_it: Callable[[], object]) -> UsageError | None:
    """The error by which something was refused; None = it was read.

    Raises:
        AssertionError: it was refused with another exit status.
    """
    try:
        read_it()
    except NatgaugeError as error:
        refused = error
    else:
        return None
    assert isinstance(refused, UsageError), f"exit status {refused.exit_status}: {refused}"
    return refused


def commanded(arguments: tuple[str, ...]) -> tuple[int, list[str]]:
    """Exit status and lines of standard error of a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = cli.run(arguments)
    return status, err.getvalue().splitlines()


class _Files:
    """Mutants of files, each in a folder of its own kind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.known = [(kind, path, parsed(path), path.read_bytes()) for kind in KINDS for path in kind.files]
        # Gateways name parts and fragments by their names.
        for inner in ("parts", "common"):
            shutil.copytree(FOLDER / inner, folder / inner)

    def try_one(self, chance: Random, number: int) -> str:
        """Read one mutant; returns what came of it.

        Raises:
            AssertionError: it was refused in another way than promised, or something was written.
        """
        kind, origin, table, text = self.known[chance.randrange(len(self.known))]
        mutated = mutant(table, text, chance)
        path = self.folder / origin.name
        path.write_bytes(mutated)
        try:
            before = _listing(self.folder)
            began = time.monotonic()
            error = refusal(lambda: kind.read(path))
            took = time.monotonic() - began
            assert took < MOST_SECONDS, f"took {took:.1f} s"
            if error is not None:
                lacks = fault_of(str(error), path, mutated)
                assert not lacks, f"{lacks}: {str(error)[:LONGEST]}"
            if number % _ONE_IN == 0 and kind.arguments is not None and error is not None:
                self._command(kind.arguments, path, mutated)
            assert _listing(self.folder) == before, "something was written"
        except Exception as fault:
            fault.add_note(kind.name)
            _keep(self.folder, number, mutated)
            raise
        finally:
            path.unlink()
        return f"{kind.name} {'read' if error is None else 'refused'}"

    def _command(self, arguments: tuple[str, ...], path: Path, text: bytes) -> None:
        status, lines = commanded((*arguments, str(path)))
        assert status == 2, f"{' '.join(arguments)}: exit status {status}: {lines[:3]}"
        # `plan check` shows every fault, each in a line; all others show one.
        assert lines, "nothing was said"
        assert len(lines) == 1 or arguments == ("plan", "check"), lines[:3]
        for line in lines:
            fault = fault_of(line, path, text, line_of_command=True)
            assert not fault or "more faults" in line, f"{fault}: {line}"


def _listing(folder: Path) -> list[tuple[str, int]]:
    return sorted((str(path), path.stat().st_mtime_ns) for path in folder.rglob("*"))


def _keep(folder: Path, number: int, text: bytes) -> None:
    kept = Path(os.environ.get("NATGAUGE_STORM_MUTANTS", folder.parent)) / f"inputs-{number}.toml"
    kept.write_bytes(text)


class _Options:
    """Options of `natgauge measure` with odd values, planned as the command plans them."""

    def __init__(self) -> None:
        self.gateways = ("nftables-nat44", "jool-nat64", "map-t", "464xlat-tayga", "linux-ipv4")
        cell = {input_.name: input_ for part in PARTS for input_ in inputs_of_part(part)}
        self.inputs: dict[str, dict[str, Input]] = {
            metric: {**cell, **{name: input_ for name, (input_, _) in place_inputs().items()}}
            | {input_.name: input_ for input_ in procedures.get(metric).own_inputs()}
            for metric in procedures.procedures()
        }

    def try_one(self, chance: Random) -> str:
        """Give one option an odd value, or two or three options.

        Raises:
            AssertionError: they were refused in another way than promised.
        """
        metric, gateway = chance.choice(sorted(self.inputs)), chance.choice(self.gateways)
        known = self.inputs[metric]
        names = chance.sample(sorted(known), chance.choice((1, 1, 2, 3)))
        texts = {name: typed(known[name].default, chance) for name in names}
        shown = f"{metric} --gateway {gateway} {texts!r}"

        def plan() -> None:
            values: dict[str, Any] = {name: known[name].read(text) for name, text in texts.items()}
            asked = ask(metric, gateway, values)
            Bench(asked.cell).plan(metric, asked.settings)

        began = time.monotonic()
        error = refusal(plan)
        took = time.monotonic() - began
        assert took < MOST_SECONDS, f"took {took:.1f} s: {shown}"
        if error is not None:
            line = str(error)
            assert visible(line) == line, f"more than one line, or characters that a terminal obeys: {line!r}"
            assert 0 < len(line) < LONGEST, f"{len(line)} characters: {shown[:LONGEST]}"
            assert error.at in {"", *known}, f"is about {error.at!r}, which is no option: {line}"
        return f"options {'planned' if error is None else 'refused'}"


def _mutate(tally: Tally) -> None:
    home = tally.folder / "files"
    home.mkdir()
    files, options = _Files(home), _Options()
    with as_if(2):
        while tally.goes_on:
            try:
                of_options = tally.chance.random() < 0.2
                tally.saw(options.try_one(tally.chance) if of_options else files.try_one(tally.chance, tally.count))
            except Exception as error:  # noqa: BLE001 - whatever it is, the mutant shows it again
                tally.saw("neither read nor refused as promised")
                of = ", ".join(getattr(error, "__notes__", ["options"]))
                tally.blame([f"{of}: {type(error).__name__}: {str(error)[:500]}"])


INPUTS: Final = (
    Storm(
        name="mutate-inputs",
        started="the readers of plans, gateways, servers and options, with all that are committed",
        disturbed="wrong types, nesting and numbers; keys removed, misspelled, moved, unknown, twice; words "
        "misspelled; control characters; cut, damaged and wrongly encoded text",
        holds="each is read, or refused in one printable line with file, key or line, and exit status 2; "
        f"no traceback, nothing written, each within {MOST_SECONDS:g} s",
        unit="mutants",
        full=10_000,
        soak=1_000,
        make=_mutate,
    ),
)
