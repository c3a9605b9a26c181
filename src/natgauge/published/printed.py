# SPDX-License-Identifier: Apache-2.0
"""Published tables as text and JSON: printed figures, sources, hardware, and figures recomputed by natgauge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from natgauge.errors import UsageError
from natgauge.published import plans
from natgauge.published.load import sources, table
from natgauge.published.model import Derived, PublishedRow, Table
from natgauge.published.recompute import Agreement, Check, computed, degradations, judged
from natgauge.records.measurement import Result
from natgauge.tables import aligned

#: Warning next to every published figure.
THEIRS: Final = "Published, on their hardware; not measured here"

#: Heading of the rows that natgauge computes.
OURS: Final = "Not printed there; computed by natgauge of the printed medians"

_AGREEMENTS: Final[tuple[Agreement, ...]] = ("same", "rounding", "slip", "differs")
_MIND: Final = "Mind the unit: natgauge's throughput is of each direction; the lines above say what theirs counts."
#: Ratios that are computed for each axis where a table does not print them: kind, label, digits.
_RATIOS: Final[dict[str, tuple[tuple[Derived, str, int], ...]]] = {
    "cores": (("relative-scale-up", "relative scale-up", 3), ("to-previous", "median / previous median", 2)),
    "connections": (("to-previous", "median / previous median", 2),),
}

#: Quantity, label, values, digits.
Computed = tuple[str, str, tuple[float | None, ...], int]


def listing(tables: Sequence[Table]) -> str:
    """One line per table, with "plan" where `natgauge published --plan` prints one."""
    return "\n".join(
        aligned([(table.name, "no plan" if plans.needs(table) else "plan", table.title) for table in tables])
    )


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
        **table.model_dump(mode="json", by_alias=True, exclude={"plan", "shape"}),
        "plan": None if plans.needs(table) else plans.command(table, size="full"),
        "plan_needs": [missing.model_dump(mode="json") for missing in table.plan.missing],
        "rows": [{**row.model_dump(mode="json", by_alias=True), "values": _values(table, row)} for row in table.rows],
        "document": known.documents[table.source].model_dump(mode="json"),
        "hardware": known.machines[table.machine].model_dump(mode="json"),
        "computed": [
            {"quantity": quantity, "label": label, "values": list(values)}
            for quantity, label, values, _ in _computed(table)
        ],
    }


def checked(tables: Sequence[Table]) -> list[Check]:
    """Recompute every derived figure of these tables."""
    return [check for table in tables for check in judged(table)]


def check_lines(tables: Sequence[Table]) -> str:
    """Return a line per recomputed row, a line per misprint, and the totals."""
    checks = checked(tables)
    rows = [
        (row, _counted(Counter(check.agreement for check in figures)))
        for row, figures in groupby(checks, key=lambda check: (check.table, check.row, check.rule))
    ]
    lines = aligned([(*row, counted) for row, counted in rows])
    lines += [f"Slip in {table.name}: {slip}." for table in tables for slip in slips(table)]
    derived = Counter(check.agreement for check in checks if check.is_derived)
    ordered = Counter(check.agreement for check in checks if not check.is_derived)
    return "\n".join(
        [
            *lines,
            f"Derived figures: {derived.total()}: {_counted(derived)}.",
            f"Medians between their extremes: {ordered.total()}: {_counted(ordered)}.",
        ]
    )


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
        unit = quantity.unit if quantity.times == 1 else f"{quantity.times:,} {quantity.unit}"
        counted = f", {quantity.directions}" if quantity.directions else ""
        yield name, f"{quantity.metric} of {quantity.device}; 1 = {unit}{counted}"
    if missing := plans.needs(table):
        yield "no plan", missing
    else:
        others = "or with --small for two cores, or with --small --lab vm for a guest"
        yield "plan", f"{plans.command(table, size='full')}, {others}"


def computed_rows(table: Table) -> list[tuple[str, list[str]]]:
    """Return the label and cells of each row that natgauge computes of a table's printed medians."""
    return [(f"{quantity}: {label}", _shown(values, digits)) for quantity, label, values, digits in _computed(table)]


def _computed(table: Table) -> list[Computed]:
    rates = [
        name
        for name, quantity in table.quantities.items()
        if quantity.unit.endswith("/s") and table.row("median", name)
    ]
    ratios: list[Computed] = []
    for name in rates:
        for kind, label, digits in _RATIOS.get(table.axis, ()):
            if table.row(kind, name) is None:
                ratios.append((name, label, computed(table, kind, name), digits))
        if table.axis == "connections":
            ratios.append((name, "degradation from the first column (%)", degradations(table, name), 1))
    return ratios


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
    """Labels with columns of figures."""
    return aligned([(label, *cells) for label, cells in rows], right=range(1, 1 + len(rows[0][1])))


def _counted(counts: Counter[Agreement]) -> str:
    return ", ".join(f"{counts[agreement]} {agreement}" for agreement in _AGREEMENTS if counts[agreement])
