# SPDX-License-Identifier: Apache-2.0
"""Results as text: a verdict in words, and the table RFC 9693 section 6 gives as its example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from natgauge.analysis.contrast import better, bounds
from natgauge.analysis.loads import LOADS, by_load
from natgauge.measurer import Verdict
from natgauge.notes import count_of
from natgauge.procedures.kit.result.table_octets import OCTETS_PER_CONNECTION
from natgauge.records.doubts import FUNCTIONAL
from natgauge.records.measurement import SHARE_OF_LINK, FigureSummary, Result
from natgauge.reports.find_results import read_summary
from natgauge.reports.rows import (
    CACHES,
    IN_ALL,
    UNIT_IN_ALL,
    Cell,
    doubt_words,
    filling,
    number,
    printed,
    ranged,
    unit_of,
    unit_of_frames,
    whole,
)
from natgauge.reports.sheet import Sheet, findings, sheet
from natgauge.table_memory import LEAST_CONNECTIONS
from natgauge.tables import aligned
from natgauge.words import LimitedBy

#: Every caller that shows a result reads it first, so `read_summary` is exported here.
__all__ = ["SeriesRow", "read_summary", "render", "table", "verdict"]

#: Text for each limit of a result.
_LIMITS: Final[Mapping[LimitedBy, str]] = {
    "device": "the device",
    "table": "the device's connection tracking table, which was full",
    "port pool": "the outside ports the device may give out",
    "tester": "the tester, not the device: the device may do better",
    "host": "disturbances of this host, not the device",
    "server": "the real server behind the device, which may do more",
    "time": "the time that the measurement was given: the answer is undecided",
}

#: Reported parameters of each link.
_OF_LINKS: Final = ("media", "link_speeds", "port_drivers", "flow_control")

#: One load or step of a series.
SeriesRow = Mapping[str, Cell]

#: The most rows of a series that are shown; the results folder has all.
_MOST_ROWS: Final = 24
#: Metrics that fill the connection tracking table; for others the memory of a connection is no answer.
_FILLING: Final = frozenset({"connection-rate", "validated-connection-rate", "table-capacity", "tear-down-rate"})
#: Ends of names of columns for one direction, which are not shown; the worse direction has its own column.
_DIRECTIONS: Final = ("_from_initiator", "_from_responder")


def verdict(result: Result) -> str:
    """Return the result as text: value, uncertainty, and limit."""
    lines = [headline(result), *(f"  {sentence}" for sentence in sentences(result))]
    if result.doubts:
        lines.append(f"  Doubts: {doubt_words(result)}.")
    lines += [f"  Finding: {text}." for text in findings(result)]
    lines += [f"  Note: {note}." for note in notes_of(result)]
    return "\n".join([*lines, *_series(result)])


def headline(result: Result) -> str:
    """Return device, metric and median; for a throughput also the rate of all directions together.

    "at most" precedes a time or cost that something other than the device made larger.
    """
    bound = "at most " if better(result.metric) == "lower" and bounds(result)[0] < result.median else ""
    line = f"{result.dut}: {result.metric} {bound}{number(result.median)} {unit_of(result)}"
    if IN_ALL in result.figures:
        line += f", {number(result.figures[IN_ALL].median)} {UNIT_IN_ALL}"
    return f"{line} ({FUNCTIONAL})" if result.functional else line


def sentences(result: Result) -> list[str]:
    """Return sentences on uncertainty, conditions, limit, and outcomes of the trials."""
    return [
        _certainty(result),
        *_latency(result),
        *_deletions(result),
        *_memory(result),
        _conditions(result),
        *_link(result),
        f"Limited by {_LIMITS[result.limited_by]}.",
        f"Trials: {_trials(result.trials)}.",
    ]


def notes_of(result: Result) -> list[str]:
    """Return the notes; several contradictions become one line."""
    contradictions = count_of(result.notes, "contradictions")
    if contradictions < 2:
        return list(map(str, result.notes))
    text = (
        f"{contradictions} contradictions: loads that passed and failed when they were tried again; the majority "
        "counts (--json and the results folder name each)"
    )
    return [*(str(note) for note in result.notes if note.word != "contradictions"), text]


def _series(result: Result) -> list[str]:
    """Return the table of a series: by load, or that of the repetition whose value is nearest to the median."""
    values = result.values
    loads = by_load(result) if len(values) > 1 else None
    series: Sequence[SeriesRow]
    if loads is None:
        nearest = min(range(len(values)), key=lambda at: abs(values[at] - result.median))
        series = result.repetitions[nearest].series
        which = "" if len(values) == 1 else f" of repetition {nearest + 1} of {len(values)}, the nearest to the median"
    else:
        series = [
            {loads.column: load, **{name: ranged(summary) for name, summary in figures.items()}}
            for load, figures in loads.at.items()
        ]
        which = f", medians of {len(values)} repetitions with their range"
    if not series:
        return []
    step = -(-len(series) // _MOST_ROWS)
    each = "" if step == 1 else f"; one in {step} of {len(series):,} rows, and the last"
    shown = series[::step] if (len(series) - 1) % step == 0 else [*series[::step], series[-1]]
    return [f"  Series{which}{each}{rates_of(series, result)}:", *(f"    {line}" for line in _series_lines(shown))]


def rates_of(series: Sequence[SeriesRow], result: Result) -> str:
    """Return the unit of the rates in a series over loads, for its title; "" for other series."""
    over_loads = bool(series) and not series[0].keys().isdisjoint(LOADS)
    return f" (rates: {unit_of_frames(result)})" if over_loads else ""


def _series_lines(series: Sequence[SeriesRow]) -> list[str]:
    """Return aligned lines with a column for each name, in the order of first appearance."""
    names = series_names(series)
    heads = [name.replace("_", " ") for name in names]
    cells = [heads, *([series_cell(row.get(name)) for name in names] for row in series)]
    return aligned(cells, right=range(len(names)))


def series_names(series: Sequence[SeriesRow]) -> list[str]:
    """Return the names of a series' shown columns, in the order of first appearance; without single directions."""
    return list(dict.fromkeys(name for row in series for name in row if not name.endswith(_DIRECTIONS)))


def series_cell(value: Cell) -> str:
    """Return the text of a series' cell."""
    return "-" if value is None else printed(value, number)


def spread_of(result: Result) -> float | None:
    """Return the largest deviation of a repetition from the median, as a share of it; None where the median is 0."""
    furthest = max(result.maximum - result.median, result.median - result.minimum)
    return furthest / result.median if result.median else None


def _certainty(result: Result) -> str:
    count = len(result.repetitions)
    if count == 1:
        spread = "One repetition"
    else:
        spread = f"Median of {count} repetitions, {number(result.minimum)} to {number(result.maximum)}"
        if (furthest := spread_of(result)) is not None:
            spread += f" (±{furthest:.1%})"
    if not {"error", "capacity_error"} & result.parameters.settings.keys():
        return f"{spread}."
    certainty = "no rate failed" if result.error is None else f"error of the search {number(result.error)}"
    return f"{spread}; {certainty}."


def _latency(result: Result) -> Iterator[str]:
    """Both latencies of RFC 8219 section 7.2, and the definition of RFC 1242 that a report must state."""
    figures = [result.figures.get(name) for name in ("typical_latency_us", "worst_case_latency_us")]
    typical, worst = (None if summary is None else _spread(summary, "us") for summary in figures)
    if typical is None or worst is None:
        return
    count = len(result.repetitions)
    of = "" if count == 1 else f"; each is the median of {count} repetitions, with their range"
    yield f"Typical latency (median) {typical}, worst case latency (99.9th percentile) {worst}{of}."
    yield "Delays run from sending to arrival: latency of store and forward devices (RFC 1242 section 3.8)."


def _deletions(result: Result) -> Iterator[str]:
    """Times of emptying a full and an empty table, each deletion counted (RFC 9693 section 4.8)."""
    full, empty = result.figures.get("full_seconds"), result.figures.get("empty_seconds")
    if full is None or empty is None:
        return
    times = f"a full table in {_spread(full, 's')}, an empty one in {_spread(empty, 's')}"
    yield f"Medians of {full.count} deletions, with their range: {times}."


def _memory(result: Result) -> Iterator[str]:
    """Memory of a connection, and the number of connections that no cache of the device's cores holds any more."""
    octets = result.figures.get(OCTETS_PER_CONNECTION)
    if octets is None:
        if result.metric in _FILLING and (result.number("connections") or 0) >= LEAST_CONNECTIONS:
            yield "The device's memory for a connection is not known."
        return
    caches = result.parameter("device_caches")
    sizes = caches if isinstance(caches, dict) else {}
    levels = [(level, sizes[level], count) for level in CACHES if (count := filling(result, level)) is not None]
    beyond = "; ".join(
        f"{number(count)} connections fill the {level} cache of {_mib(size)}" for level, size, count in levels
    )
    trials = "1 trial" if octets.count == 1 else f"{octets.count} trials"
    yield (
        f"A connection takes {_spread(octets, 'octets')} of the memory of the device's kernel, by {trials}; "
        f"{beyond or 'the caches of its cores are not known'}."
    )


def _mib(octets: JsonValue) -> str:
    return f"{octets / 2**20:,.3g} MiB" if isinstance(octets, int | float) else str(octets)


def _spread(figure: FigureSummary, unit: str) -> str:
    """The median of a figure with its unit, and the range where there are several values."""
    return f"{printed(ranged(figure), number)} {unit}"


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


def _link(result: Result) -> Iterator[str]:
    """Yield the lab's links and their theoretical maximum (RFC 2544 section 26.1, RFC 8219 section 5.1)."""
    media, speeds, drivers, flows = (_each(result, name) for name in _OF_LINKS)
    if not media:
        return
    links = [
        f"{medium}, {whole(speed) + ' Mbit/s' if isinstance(speed, int) else 'speed not known'}, driver {driver}, "
        f"flow control {flow}"
        for medium, speed, driver, flow in zip(media, speeds, drivers, flows, strict=False)
    ]
    yield f"Links: {'; '.join(dict.fromkeys(links))}."
    most, share = result.number("theoretical_maximum"), result.figures.get(SHARE_OF_LINK)
    if most is None:
        yield "Their theoretical maximum is not known."
    else:
        part = "" if share is None else f"; the result is {share.median:.1%} of it"
        yield f"Their theoretical maximum is {number(most)} frames/s in each direction{part}."


def _each(result: Result, name: str) -> list[JsonValue]:
    value = result.parameter(name)
    return value if isinstance(value, list) else []


def _trials(trials: Mapping[Verdict, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in trials.items() if count) or "none"


def table(results: Sequence[Result]) -> str:
    """Return a column per result, with the rows of RFC 9693 section 6; rows without any value are left out.

    Doubts, and reasons why results are not compared, are below the table.

    Raises:
        UsageError: there are no results.
    """
    return render(sheet(results))


def render(shown: Sheet) -> str:
    """Return a sheet as text."""
    rows = [(line.heading, *line.cells) for line in shown.lines if line.cells]
    printed = iter(aligned(rows, right=range(1, shown.columns + 1)))
    lines = [next(printed) if line.cells else f"\n{line.heading}" for line in shown.lines]
    return "\n".join([*lines, *shown.below])
