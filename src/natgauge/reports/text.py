# SPDX-License-Identifier: Apache-2.0
"""Results as text: a verdict in words, and the table RFC 9693 section 6 gives as its example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from natgauge.campaigns.store import COMPARISON, PLAN, SUMMARY, read_document
from natgauge.errors import UsageError
from natgauge.measurer import Verdict
from natgauge.procedures.kit.binary_search import CONTRADICTION
from natgauge.reports.rows import number, rows, uncompared, whole
from natgauge.results.model import SUMMARY_SCHEMA, DoubtWord, Result
from natgauge.words import LimitedBy

#: What limited a result, in words.
_LIMITS: Final[Mapping[LimitedBy, str]] = {
    "device": "the device",
    "table": "the device's connection tracking table, which was full",
    "port pool": "the outside ports the device may give out",
    "tester": "the tester, not the device: the device may do more",
    "host": "disturbances of this host, not the device",
    "time": "the time that the measurement was given: the answer is undecided",
}

#: Doubts that are told whole: they say something of the device that its figure does not.
_FINDINGS: Final[frozenset[DoubtWord]] = frozenset({"wide spread"})

#: One load or step of a series.
SeriesRow = Mapping[str, float | str | None]

#: The most rows of a series that are shown; the results folder has all.
_MOST_ROWS: Final = 24
#: Columns that stand for one direction; the worst of both has a column of its own.
_DIRECTIONS: Final = ("_from_initiator", "_from_responder")


def read_summary(folder: Path) -> Result:
    """The result of one results folder.

    Raises:
        UsageError: it is none, its measurement did not end, or its summary is damaged or of another schema.
    """
    path = folder / SUMMARY
    try:
        there = path.is_file()
    except OSError as error:
        raise UsageError(
            f"report: {str(folder)!r} cannot be read ({error.strerror}); name the folder of a measurement"
        ) from error
    if not there:
        raise UsageError(f"report: {folder} holds no result: {_missing(folder)}; name the folder of a measurement")
    return Result.from_document(read_document(path, SUMMARY_SCHEMA), str(path))


def _missing(folder: Path) -> str:
    if not folder.is_dir():
        return "it is no folder" if folder.exists() else "there is no such folder"
    if (folder / COMPARISON).exists():
        return f"it is a comparison's, whose answer is in {COMPARISON}"
    if (folder / PLAN).exists():
        return f"it has no {SUMMARY}, for its measurement did not end"
    return f"it has no {SUMMARY}"


def verdict(result: Result) -> str:
    """The result in words: how much, how sure, what limited it."""
    lines = [f"{result.dut}: {result.metric} {number(result.median)} {_unit(result)}"]
    if "frames_per_second_total" in result.figures:
        lines[0] += f", {number(result.figures['frames_per_second_total'])} frames/s all directions together"
    lines.append(f"  {_certainty(result)}")
    lines.append(f"  {_conditions(result)}")
    lines.append(f"  Limited by {_LIMITS[result.limited_by]}.")
    lines.append(f"  Trials: {_trials(result.trials)}.")
    if result.doubts:
        lines.append(f"  Doubts: {_doubts(result)}.")
    lines += [f"  Finding: {doubt.text}." for doubt in result.doubts if doubt.word in _FINDINGS]
    lines += [f"  Note: {note}." for note in _notes(result.notes)]
    return "\n".join([*lines, *_series(result)])


def _notes(notes: Sequence[str]) -> list[str]:
    """The notes, with many contradictions in one line."""
    contradictions = [note for note in notes if note.startswith(CONTRADICTION)]
    if len(contradictions) < 2:
        return list(notes)
    told = (
        f"{len(contradictions)} contradictions: loads that passed and failed when they were tried again; the majority "
        "counts (--json and the results folder name each)"
    )
    return [*(note for note in notes if note not in contradictions), told]


def _series(result: Result) -> list[str]:
    """The rows of the repetition whose value is nearest to the median, one below the other."""
    values = result.values
    nearest = min(range(len(values)), key=lambda at: abs(values[at] - result.median))
    found = result.repetitions[nearest].series
    if not found:
        return []
    step = -(-len(found) // _MOST_ROWS)
    which = "" if len(values) == 1 else f" of repetition {nearest + 1} of {len(values)}, the nearest to the median"
    each = "" if step == 1 else f"; one in {step} of {len(found):,} rows, and the last"
    shown = found[::step] if (len(found) - 1) % step == 0 else [*found[::step], found[-1]]
    return [f"  Series{which}{each}:", *(f"    {line}" for line in _aligned(shown))]


def _aligned(series: Sequence[SeriesRow]) -> list[str]:
    """A column for each name, in the order they first come, as wide as its widest cell."""
    names = dict.fromkeys(name for row in series for name in row if not name.endswith(_DIRECTIONS))
    cells = [[name.replace("_", " ") for name in names], *([_cell(row.get(name)) for name in names] for row in series)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True)) for line in cells]


def _cell(value: float | str | None) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else number(value)


def _unit(result: Result) -> str:
    """Rates of frames are always said to be of a direction or total."""
    if result.metric != "throughput":
        return result.unit
    sides = {"both": "in each direction", "up": "from the Initiator", "down": "from the Responder"}
    return f"{result.unit} {sides.get(str(result.parameter('directions')), '')}".rstrip()


def _certainty(result: Result) -> str:
    count = len(result.repetitions)
    if count == 1:
        spread = "One repetition"
    else:
        spread = f"Median of {count} repetitions, {number(result.minimum)} to {number(result.maximum)}"
        if result.median:
            widest = max(result.maximum - result.median, result.median - result.minimum)
            spread += f" (±{widest / result.median:.1%})"
    if not {"error", "capacity_error"} & result.parameters.settings.keys():
        return f"{spread}."
    found = "no rate failed" if result.error is None else f"error of the search {number(result.error)}"
    return f"{spread}; {found}."


def _conditions(result: Result) -> str:
    parameters = result.parameters.flat()
    parts = [f"{whole(parameters.get('connections', '-'))} connections"]
    if "frame_size" in parameters:
        side = str(parameters.get("frame_side")).capitalize()
        parts.append(f"{parameters['frame_size']}-octet frames on the {side}'s side")
    cpus = parameters.get("device_cpus")
    if isinstance(cpus, list) and cpus:
        parts.append(f"device on CPU {', '.join(map(str, cpus))}")
    parts.append(f"placement {result.placement}")
    return ", ".join(parts) + "."


def _doubts(result: Result) -> str:
    return ", ".join(doubt.word for doubt in result.doubts)


def _trials(trials: Mapping[Verdict, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in trials.items() if count) or "none"


def table(results: Sequence[Result]) -> str:
    """One column per result, rows as in RFC 9693 section 6; rows that say nothing for any result are left out.

    Doubts, and why results are not compared, stand below.

    Raises:
        UsageError: there are no results.
    """
    shown = [(row.heading, row.printed) for row in rows(results) if row.label != "not compared"]
    shown = [(name, cells) for name, cells in shown if any(cell != "-" for cell in cells)]
    first = max(len(name) for name, _ in shown)
    widths = [max(len(cells[column]) for _, cells in shown) for column in range(len(results))]
    lines = [
        f"{name:<{first}}  " + "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        for name, cells in shown
    ]
    return "\n".join([*lines, *_below(results)])


def _below(results: Sequence[Result]) -> Iterator[str]:
    for number_, result in enumerate(results, start=1):
        where = f"Column {number_}, {result.dut}"
        if result.doubts:
            yield f"{where}: doubts: {_doubts(result)}."
        yield from (f"{where}: {why}." for why in uncompared(result, results))
