# SPDX-License-Identifier: Apache-2.0
"""Results as text: a verdict in words, and the table RFC 9693 section 6 gives as its example."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from natgauge.campaigns.store import SUMMARY_SCHEMA, read_document
from natgauge.errors import UsageError
from natgauge.procedures.kit.binary_search import CONTRADICTION
from natgauge.reports import comparison
from natgauge.reports.comparison import Document

Row = Mapping[str, float | str | None]

#: What limited a result, in words.
_LIMITS: Final = {
    "device": "the device",
    "table": "the device's connection tracking table, which was full",
    "port pool": "the outside ports the device may give out",
    "tester": "the tester, not the device: the device may do more",
    "host": "disturbances of this host, not the device",
}

#: The most rows of a series that are shown; the results folder has all.
_MOST_ROWS: Final = 24
#: Columns that stand for one direction; the worst of both has a column of its own.
_DIRECTIONS: Final = ("_from_initiator", "_from_responder")


def read_summary(folder: Path) -> Document:
    """The summary of one results folder.

    Raises:
        UsageError: the folder has none, or of another schema.
    """
    return read_document(folder / "summary.json", SUMMARY_SCHEMA)


def number(value: float) -> str:
    """A rate with as many digits as mean something: whole, in groups of three; small ones with decimals."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == 0 else f"{value:,.3g}"


def verdict(document: Document) -> str:
    """The result in words: how much, how sure, what limited it."""
    parameters = document["parameters"]
    lines = [f"{parameters['dut']}: {document['metric']} {number(document['median'])} {_unit(document)}"]
    figures = document.get("figures") or {}
    if "frames_per_second_total" in figures:
        lines[0] += f", {number(figures['frames_per_second_total'])} frames/s all directions together"
    lines.append(f"  {_certainty(document)}")
    lines.append(f"  {_conditions(document)}")
    lines.append(f"  Limited by {_LIMITS.get(document['limited_by'], document['limited_by'])}.")
    lines.append(f"  Trials: {_trials(document['trials'])}.")
    lines += [f"  Note: {note}." for note in _notes(document.get("notes", []))]
    return "\n".join([*lines, *_series(document)])


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


def _series(document: Document) -> list[str]:
    """The rows of the repetition whose value is nearest to the median, one below the other."""
    values, every = document["repetitions"], document.get("series") or []
    number = min(range(len(values)), key=lambda at: abs(values[at] - document["median"]))
    rows = every[number] if number < len(every) else []
    if not rows:
        return []
    step = -(-len(rows) // _MOST_ROWS)
    which = "" if len(values) == 1 else f" of repetition {number + 1} of {len(values)}, the nearest to the median"
    each = "" if step == 1 else f"; one in {step} of {len(rows):,} rows, and the last"
    shown = rows[::step] if (len(rows) - 1) % step == 0 else [*rows[::step], rows[-1]]
    return [f"  Series{which}{each}:", *(f"    {line}" for line in _aligned(shown))]


def _aligned(rows: Sequence[Row]) -> list[str]:
    """A column for each name, in the order they first come, as wide as its widest cell."""
    names = dict.fromkeys(name for row in rows for name in row if not name.endswith(_DIRECTIONS))
    cells = [[name.replace("_", " ") for name in names], *([_cell(row.get(name)) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True)) for line in cells]


def _cell(value: float | str | None) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else number(value)


def _unit(document: Document) -> str:
    """Rates of frames are always said to be of a direction or total."""
    unit = str(document["unit"])
    if document["metric"] != "throughput":
        return unit
    sides = {"both": "in each direction", "up": "from the Initiator", "down": "from the Responder"}
    return f"{unit} {sides.get(document['parameters'].get('directions', ''), '')}".rstrip()


def _certainty(document: Document) -> str:
    count = len(document["repetitions"])
    error = document["error"]
    if count == 1:
        spread = "One repetition"
    else:
        spread = f"Median of {count} repetitions, {number(document['minimum'])} to {number(document['maximum'])}"
        if document["median"]:
            widest = max(document["maximum"] - document["median"], document["median"] - document["minimum"])
            spread += f" (±{widest / document['median']:.1%})"
    if "error" not in document["parameters"] and "capacity_error" not in document["parameters"]:
        return f"{spread}."
    found = "no rate failed" if error is None else f"error of the search {number(error)}"
    return f"{spread}; {found}."


def _conditions(document: Document) -> str:
    parameters = document["parameters"]
    parts = [f"{parameters['connections']:,} connections"]
    if "frame_size" in parameters:
        parts.append(f"{parameters['frame_size']}-octet frames on the {parameters['frame_side'].capitalize()}'s side")
    if parameters.get("device_cpus"):
        parts.append(f"device on CPU {', '.join(map(str, parameters['device_cpus']))}")
    parts.append(f"placement {document['placement']}")
    return ", ".join(parts) + "."


def _trials(trials: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in trials.items() if count) or "none"


def _range_size(name: str) -> Callable[[Document], str]:
    return lambda document: str(document["parameters"].get(name, "-"))


def _percent_or_rate(document: Document) -> str:
    return "-" if document["error"] is None else number(document["error"])


def _ratio(above: str, below: str) -> Callable[[Document], str]:
    def cell(document: Document) -> str:
        parameters = document["parameters"]
        upper, lower = parameters.get(above), parameters.get(below)
        return f"{upper / lower:.2f}" if upper and lower else "-"

    return cell


#: Rows of the table: what RFC 9693 section 6 shows, and what else must be known to read the figures.
_ROWS: Final[Sequence[tuple[str, Callable[[Document], str]]]] = (
    ("device", _range_size("dut")),
    ("metric", lambda document: str(document["metric"])),
    ("placement", lambda document: str(document["placement"])),
    ("number of sessions", lambda document: f"{document['parameters']['connections']:,}"),
    ("source addresses", _range_size("source_address_count")),
    ("source ports", _range_size("source_port_count")),
    ("destination addresses", _range_size("destination_address_count")),
    ("destination ports", _range_size("destination_port_count")),
    ("frame size (octets)", _range_size("frame_size")),
    ("hash table size", _range_size("hash_size")),
    ("connection table limit", _range_size("table_size")),
    ("sessions per hash", _ratio("connections", "hash_size")),
    ("table limit per hash", _ratio("table_size", "hash_size")),
    ("number of experiments", lambda document: str(len(document["repetitions"]))),
    ("error of the search", _percent_or_rate),
    ("unit", lambda document: str(document["unit"])),
    ("median", lambda document: number(document["median"])),
    ("1st percentile", lambda document: number(document["p1"])),
    ("99th percentile", lambda document: number(document["p99"])),
    ("limited by", lambda document: str(document["limited_by"])),
)


def table(documents: Sequence[Document]) -> str:
    """One column per result, rows as in RFC 9693 section 6; rows that say nothing for any result are left out.

    Raises:
        UsageError: there are no results.
    """
    if not documents:
        raise UsageError("report: no results to show")
    rows = [(name, [cell(document) for document in documents]) for name, cell in _ROWS]
    rows += comparison.rows(documents)
    rows = [(name, cells) for name, cells in rows if any(cell != "-" for cell in cells)]
    first = max(len(name) for name, _ in rows)
    widths = [max(len(cells[column]) for _, cells in rows) for column in range(len(documents))]
    return "\n".join(
        f"{name:<{first}}  " + "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        for name, cells in rows
    )
