# SPDX-License-Identifier: Apache-2.0
"""Published tables as text and JSON: printed figures, sources, hardware, and figures recomputed by natgauge."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from natgauge.analysis import derived
from natgauge.errors import UsageError
from natgauge.published.model import Derived, PublishedRow, Table, needs, plan_command, sources, table
from natgauge.records.measurement import Result
from natgauge.tables import aligned

#: Warning next to every published figure.
THEIRS: Final = "Published, on their hardware; not measured here"

#: Heading of the rows that natgauge computes.
OURS: Final = "Not printed there; computed by natgauge of the printed medians"

#: "same": to the last printed digit; "rounding": the roundings of what it follows from explain the last digit; "slip":
#: differs as printed, but not once the known printing errors are corrected.
_AGREEMENTS: Final = ("same", "rounding", "slip")
_MIND: Final = "Mind the unit: natgauge's throughput is of each direction; the lines above say what theirs counts."
#: Ratios that are computed for each axis where a table does not print them: kind, label, digits.
_RATIOS: Final[dict[str, tuple[tuple[Derived | None, str, int], ...]]] = {
    "cores": (("relative-scale-up", "relative scale-up", 3), ("to-previous", "median / previous median", 2)),
    # RFC 8219 section 10.2.1, which begins with one flow.
    "connections": (
        ("to-previous", "median / previous median", 2),
        (None, "degradation from the first column (%)", 1),
    ),
}


def listing(tables: Sequence[Table]) -> str:
    """One line per table, with "plan" where `natgauge published --plan` prints one."""
    return "\n".join(aligned([(table.name, "no plan" if needs(table) else "plan", table.title) for table in tables]))


def view(table: Table) -> str:
    """Return a table as printed, with its source, recomputed rows, and its misprints."""
    lines = [f"{THEIRS}: {table.title}", *(f"  {line}" for line in aligned(list(conditions(table)))), ""]
    lines += [f"  {line}" for line in _figures([(row.label, row.cells) for row in table.rows])]
    if ours := computed_rows(table):
        lines += ["", f"  {OURS}:", *(f"  {line}" for line in _figures(ours))]
    lines += [f"  Slip: {slip}." for slip in slips(table)]
    return "\n".join(lines)


def document(table: Table) -> dict[str, Any]:
    """Return a table as plain JSON values."""
    known = sources()
    return {
        "measured": "by its authors, on their hardware",
        **table.model_dump(mode="json", by_alias=True, exclude={"outside", "missing", "shape"}),
        "plan": None if needs(table) else plan_command(table, size="full"),
        "plan_needs": [missing.model_dump(mode="json") for missing in table.missing],
        "rows": [{**row.model_dump(mode="json", by_alias=True), "values": _values(table, row)} for row in table.rows],
        "document": known.documents[table.source].model_dump(mode="json"),
        "hardware": known.machines[table.machine].model_dump(mode="json"),
        "computed": [
            {"quantity": quantity, "label": label, "values": list(values)}
            for quantity, label, values, _ in _computed(table)
        ],
    }


@cache
def checks(*names: str) -> list[dict[str, Any]]:
    """Every figure of these tables that follows from others, and its recomputed value, as a test of natgauge found."""
    every: list[dict[str, Any]] = json.loads(resources.files(__package__).joinpath("checks.json").read_text("utf-8"))
    return [check for name in names for check in every if check["table"] == name]


def check_lines(tables: Sequence[Table]) -> str:
    """Return a line per recomputed row, a line per misprint, and the totals."""
    found = checks(*(table.name for table in tables))
    rows = groupby(found, key=itemgetter("table", "row", "rule"))
    lines = aligned([(*row, _counted(list(figures))) for row, figures in rows])
    lines += [f"Slip in {table.name}: {slip}." for table in tables for slip in slips(table)]
    for what, is_order in (("Derived figures", False), ("Medians between their extremes", True)):
        figures = [check for check in found if check["rule"].endswith("in order") is is_order]
        lines.append(f"{what}: {len(figures)}: {_counted(figures)}.")
    return "\n".join(lines)


def tables_of(names: Sequence[str], results: Sequence[Result]) -> str:
    """Return published tables to print below natgauge's results, each clearly marked."""
    metrics = {result.metric for result in results}
    tables = [table(name) for name in names]
    for each in tables:
        published = {quantity.metric for quantity in each.quantities.values()}
        if not metrics & published:
            raise UsageError(
                f'published table "{each.name}": is of {", ".join(sorted(published))}, the results are of '
                f'{", ".join(sorted(metrics))}; "natgauge published" lists others'
            )
    return "\n\n".join([*map(view, tables), *([_MIND] if tables and "throughput" in metrics else [])])


def conditions(table: Table) -> Iterator[tuple[str, str]]:
    """Yield labels and texts: source, hardware, system, tester, conditions, quantities with units, and the plan."""
    known = sources()
    printed, machine = known.documents[table.source], known.machines[table.machine]
    yield "source", f"{printed.authors}: {printed.title}, {printed.date}, {table.place}; {printed.url}"
    yield from (("also in", place) for place in table.also_in)
    yield "hardware", machine.hardware
    yield "system", machine.device
    yield "tester", machine.tester
    yield from (("condition", condition) for condition in table.conditions)
    for name, quantity in table.quantities.items():
        added = f", {quantity.directions}" if quantity.directions else ""
        yield name, f"{quantity.metric} of {quantity.device}; 1 = {quantity.counted}{added}"
    if missing := needs(table):
        yield "no plan", missing
    else:
        others = "or with --small for two cores, or with --small --lab vm for a guest"
        yield "plan", f"{plan_command(table, size='full')}, {others}"


def computed_rows(table: Table) -> list[tuple[str, list[str]]]:
    """Return the label and cells of each row that natgauge computes of a table's printed medians."""
    return [(f"{quantity}: {label}", _shown(values, digits)) for quantity, label, values, digits in _computed(table)]


def _computed(table: Table) -> Iterator[tuple[str, str, tuple[float | None, ...], int]]:
    """Yield the quantity, the label, the values and their digits for each row that natgauge computes."""
    for name, quantity in table.quantities.items():
        row = table.row("median", name)
        if row is None or not quantity.unit.endswith("/s"):
            continue
        medians = [None if number is None else number.value for number in row.numbers()]
        for kind, label, digits in _RATIOS.get(table.axis, ()):
            if kind is None or table.row(kind, name) is None:
                yield name, label, tuple(_ratios(table, kind, medians)), digits


def _ratios(table: Table, kind: Derived | None, medians: Sequence[float | None]) -> Iterator[float | None]:
    """A derived figure of each column; None where there is nothing to compute."""
    cores = table.row("cores")
    numbers = [None if cores is None else cores.numbers()[column] for column in range(table.width)]
    for column, (median, number) in enumerate(zip(medians, numbers, strict=True)):
        other = medians[column - 1 if kind == "to-previous" else 0]
        if median is None or other is None or (column == 0 and kind != "relative-scale-up"):
            yield None
        elif kind == "relative-scale-up":
            yield None if number is None else derived.relative_scale_up(median, number.value, other)
        else:
            ratio = derived.times_previous(median, other)
            yield ratio if kind else derived.percent_degraded(other, median, "higher")


def _values(table: Table, row: PublishedRow) -> list[float | None] | None:
    """Return the cells as numbers, in the unit of their quantity; None for words."""
    per = table.quantities[row.quantity].times if row.quantity is not None and row.is_in_unit else 1
    return [None if each is None else each.times(per).value for each in row.numbers()] or None


def slips(table: Table) -> Iterator[str]:
    """Yield a sentence for each misprint of a table."""
    for slip in table.slips:
        for column, printed, right in zip(slip.columns, slip.printed, slip.right, strict=True):
            yield f"{slip.row}, column {column}: printed {printed}, right is {right}: {slip.why}"


def _shown(values: Sequence[float | None], digits: int) -> list[str]:
    return ["-" if value is None else f"{value:.{digits}f}" for value in values]


def _figures(rows: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    return aligned([(label, *cells) for label, cells in rows], right=range(1, 1 + len(rows[0][1])))


def _counted(checks: Sequence[Mapping[str, Any]]) -> str:
    counts = Counter(check["agreement"] for check in checks)
    return ", ".join(f"{counts[agreement]} {agreement}" for agreement in _AGREEMENTS if counts[agreement])
