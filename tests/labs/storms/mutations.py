# SPDX-License-Identifier: Apache-2.0
"""Requests, plans, recipes and journals with odd values and damaged octets: each is read, or refused in one line."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any, Final
from unittest import mock

from tests.labs.storms.storm import Storm, Tally
from tests.unit.campaigning import ONE_CONNECTION_RATE, PLAN, Benches, Dies, Killed, campaign
from tests.unit.mutants import EXAMPLES, FOLDER, document, mangled, mutant_of_several, parsed
from tests.unit.mutants import PLAN as WHOLE_PLAN

from natgauge.campaigns.cells import points
from natgauge.campaigns.plan import read
from natgauge.campaigns.state import status
from natgauge.errors import NatgaugeError, UsageError
from natgauge.gateways.recipe import load
from natgauge.host import programs
from natgauge.host.machine import as_if
from natgauge.records.store import JOURNAL

TRIAL: Final = Path(__file__).parents[3] / "trial" / "examples"
#: Longest line of a refusal, characters.
LONGEST: Final = 3000
#: One mutant in this number is also checked by a process of its own.
_ONE_IN: Final = 50
#: The campaign of one journal in this number is also resumed.
_RESUMED: Final = 5
#: Share of the mutants whose text is damaged; the others are well-formed documents with odd values.
_DAMAGED: Final = 0.4
#: Share of the mutants of plans that are of a plan with every part.
_WHOLE: Final = 0.3
_HOLDS: Final = "each is read, or refused in one line with exit status 2; no traceback, no panic"

#: A name without a suffix, and a text.
Mutant = tuple[str, bytes]
Read = Callable[[str, bytes], str]


def refused(read_it: Callable[[], object]) -> str:
    """Read something; return "read" or "refused".

    Raises:
        AssertionError: it was refused with another exit status, or with too many words or none.
    """
    try:
        read_it()
    except NatgaugeError as error:
        refusal = error
    else:
        return "read"
    assert isinstance(refusal, UsageError), f"exit status {refusal.exit_status}: {refusal}"
    assert 0 < len(str(refusal).strip()) < LONGEST, f"{len(str(refusal))} characters: {str(refusal)[:LONGEST]}"
    return "refused"


def _storm(name: str, what: str, full: int, samples: Callable[[Random], Callable[[], Mutant]], reader: Any) -> Storm:
    def make(tally: Tally) -> None:
        with reader(tally.folder) as read_mutant:
            draw = samples(tally.chance)
            while tally.goes_on:
                of, text = draw()
                try:
                    tally.saw(read_mutant(of, text))
                except Exception as error:  # noqa: BLE001 - whatever it is, the mutant shows it again
                    tally.saw("neither read nor refused")
                    # The text is as long as a file; its beginning rarely shows the fault.
                    kept = Path(os.environ.get("NATGAUGE_STORM_MUTANTS", tally.folder)) / f"{name}-{tally.count}"
                    kept.write_bytes(text)
                    tally.blame([f"{type(error).__name__}: {str(error)[:500]} ({kept})"])

    return Storm(
        name=f"mutate-{name}",
        started=what,
        disturbed="values removed and replaced by odd ones; octets, spans and lines changed, cut, repeated, exchanged",
        holds=_HOLDS,
        unit="mutants",
        full=full,
        soak=full // 10,
        make=make,
    )


# --- requests ---------------------------------------------------------------------------------------------------------


def _requests(chance: Random) -> Callable[[], Mutant]:
    paths = sorted(TRIAL.glob("*.json"))

    def draw() -> Mutant:
        path = chance.choice(paths)
        if chance.random() < _DAMAGED:
            return path.stem, mangled(path.read_bytes(), chance)
        mutant = mutant_of_several(json.loads(path.read_bytes()), chance)
        return path.stem, json.dumps(_shortened(mutant)).encode()

    return draw


def _shortened(value: Any) -> Any:
    """The value with integers of no more digits than Python writes."""
    if isinstance(value, dict):
        return {name: _shortened(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_shortened(inner) for inner in value]
    return 10**4000 if isinstance(value, int) and value > 10**4000 else value


@contextmanager
def _engine(_folder: Path) -> Iterator[Read]:
    """An engine that judges one request after the other, and one process for each of a sample of them."""
    program, number = str(programs.find("natgauge-engine")), 0
    judge = subprocess.Popen([program, "--check-lines"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert judge.stdin is not None
    assert judge.stdout is not None

    def judged(_name: str, text: bytes) -> str:
        nonlocal number
        number += 1
        assert judge.stdin is not None
        assert judge.stdout is not None
        judge.stdin.write(text.replace(b"\n", b" ") + b"\n")
        judge.stdin.flush()
        line = judge.stdout.readline().decode()
        assert line == "accepted\n" or (line.startswith("refused: ") and len(line) < LONGEST), line[:LONGEST]
        if number % _ONE_IN == 0:
            done = subprocess.run([program, "--check"], input=text, capture_output=True, check=False, timeout=60)
            said = done.stderr.decode()
            right = (0, "") if done.returncode == 0 else (2, said)
            assert (done.returncode, said) == right, f"{done.returncode}: {said[:LONGEST]}"
            assert done.returncode == 0 or (said.count("\n") == 1 and said.startswith("natgauge-engine: ")), said
        return "read" if line == "accepted\n" else "refused"

    try:
        yield judged
    finally:
        judge.communicate(timeout=60)


# --- plans and recipes ------------------------------------------------------------------------------------------------


def _files(paths: Sequence[Path]) -> Callable[[Random], Callable[[], Mutant]]:
    """Return what draws mutants of these files."""
    every = {path.stem: (parsed(path), path.read_bytes()) for path in paths}

    def samples(chance: Random) -> Callable[[], Mutant]:
        names = list(every)

        def draw() -> Mutant:
            name = chance.choice(names)
            table, text = every[name]
            if chance.random() < _DAMAGED:
                return name, mangled(text, chance)
            return name, document(mutant_of_several(table, chance)).encode()

        return draw

    return samples


def _plans(chance: Random) -> Callable[[], Mutant]:
    draw = _files(sorted(EXAMPLES.glob("*.toml")))(chance)

    def drawn() -> Mutant:
        if chance.random() < _WHOLE:
            return "whole", document(mutant_of_several(WHOLE_PLAN, chance)).encode()
        return draw()

    return drawn


@contextmanager
def _plan_reader(folder: Path) -> Iterator[Read]:
    def judged(_name: str, text: bytes) -> str:
        path = folder / "plan.toml"
        path.write_bytes(text)
        return refused(lambda: points(read(path)))

    with as_if(2):
        yield judged


@contextmanager
def _recipe_reader(folder: Path) -> Iterator[Read]:
    def judged(name: str, text: bytes) -> str:
        # A recipe has the name of its file.
        path = folder / f"{name}.toml"
        path.write_bytes(text)
        return refused(lambda: load(path))

    yield judged


# --- journals ---------------------------------------------------------------------------------------------------------


def _killed_campaign(folder: Path, plan: str, trials: int | None) -> bytes:
    """The journal of a campaign on simulated gateways that was killed after some trials; None = it has ended."""
    folder.mkdir()
    with suppress(Killed):
        campaign(folder, Benches(killed=Dies(trials)), plan=plan)
    return (folder / "out" / JOURNAL).read_bytes()


class _Journals:
    """Journals of two campaigns at several moments, and their folders."""

    def __init__(self, folder: Path) -> None:
        moments = (3, 8, None)
        self.places = [
            (folder / f"{name}-{trials}", plan, _killed_campaign(folder / f"{name}-{trials}", plan, trials))
            for name, plan in (("one", ONE_CONNECTION_RATE), ("small", PLAN))
            for trials in moments
        ]


def _mutated_lines(journal: bytes, chance: Random) -> bytes:
    """A journal in which the values of one line or several are odd."""
    lines = journal.splitlines()
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(lines))
        entry = json.loads(lines[at])
        lines[at] = json.dumps(_shortened(mutant_of_several(entry, chance)), separators=(",", ":")).encode()
    return b"\n".join([*lines, b""])


def _mutate_journals(tally: Tally) -> None:
    with mock.patch("os.fsync"):
        journals = _Journals(tally.folder)
        while tally.goes_on:
            folder, plan, journal = tally.chance.choice(journals.places)
            damaged = tally.chance.random() < _DAMAGED
            mutant = mangled(journal, tally.chance) if damaged else _mutated_lines(journal, tally.chance)
            (folder / "out" / JOURNAL).write_bytes(mutant)
            try:
                shown = refused(lambda out=folder / "out": status(out))  # type: ignore[misc]
                if tally.count % _RESUMED == 0:
                    run = refused(lambda to=folder, of=plan: campaign(to, Benches(), plan=of))  # type: ignore[misc]
                    tally.seen[f"{run} by `natgauge run --resume`"] += 1
                    assert shown in {run, "read"}, "status refuses the journal, and --resume goes on with it"
                tally.saw(f"{shown} by `natgauge status`")
            except Exception as error:  # noqa: BLE001 - whatever it is, the mutant shows it again
                tally.saw("neither read nor refused")
                kept = Path(os.environ.get("NATGAUGE_STORM_MUTANTS", tally.folder)) / f"journal-{tally.count}"
                kept.write_bytes(mutant)
                tally.blame([f"{type(error).__name__}: {str(error)[:500]} ({folder.name}, {kept})"])


MUTATIONS: Final = (
    _storm("requests", "the engine, with its worked examples as requests", 40_000, _requests, _engine),
    _storm("plans", "the reader of plans, with all examples", 15_000, _plans, _plan_reader),
    _storm(
        "recipes",
        "the reader of recipes, with all recipes",
        20_000,
        _files(sorted(FOLDER.glob("*.toml"))),
        _recipe_reader,
    ),
    Storm(
        name="mutate-journals",
        started="`natgauge status` and `natgauge run --resume` of campaigns on simulated gateways",
        disturbed="lines of the journal with odd values; octets, spans and lines changed, cut, repeated, exchanged",
        holds=_HOLDS,
        unit="mutants",
        full=15_000,
        soak=1_500,
        make=_mutate_journals,
    ),
)
