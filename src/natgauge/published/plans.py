# SPDX-License-Identifier: Apache-2.0
"""Plans that measure a published table again, made of the table's rows and its `[plan]` part.

A full plan has the table's numbers and needs a machine of many cores. A small plan has the same series with smaller
numbers: for two cores and at most 20 minutes. A guest plan has still smaller numbers, for a guest with a kernel of its
own (`--lab vm`) whose processors may be emulated: it shows that the device works, not how fast it is.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

from natgauge import toml_text
from natgauge.errors import HostError, UsageError
from natgauge.procedures import procedures
from natgauge.procedures.kit.measure.draws import DRAWN
from natgauge.published.cells import NOTHING, read
from natgauge.published.load import sources
from natgauge.published.model import Parameter, SmallPlan, Table

#: Keys by their part of the plan; every other key is a setting of a metric.
_PARTS: Final = {
    "lab": ("cores", "cores_each"),
    "traffic": (
        "source_addresses",
        "destination_addresses",
        "source_ports",
        "destination_ports",
        "connections",
        "order",
    ),
    "device": ("table_size", "hash_size", "udp_timeout", "emptying"),
}
_OF_CELL: Final = frozenset(key for keys in _PARTS.values() for key in keys)
#: The metric whose printed experiments are deletions within one repetition.
_TEAR_DOWN: Final = "tear-down-rate"
Size = Literal["full", "small", "guest"]
SIZES: Final[tuple[Size, ...]] = get_args(Size)


class _PlanSize(NamedTuple):
    """What a size of plans decides for every table."""

    options: str
    purpose: str
    place: str
    lab: Mapping[str, str]


_SIZES: Final[Mapping[Size, _PlanSize]] = {
    "full": _PlanSize(
        "",
        "with the parameters of the publication",
        "Tester and device have separate cores of one machine",
        # One core of the tester cannot make the millions of frames/s of the tables.
        {"placement": "isolated", "sender_cores": "0-7"},
    ),
    "small": _PlanSize(
        " --small",
        "for two cores: the same series with smaller numbers",
        "The device runs on the tester's core (shared placement)",
        {"placement": "shared"},
    ),
    "guest": _PlanSize(
        " --small --lab vm",
        "for a guest with a kernel of its own: the same series with much smaller numbers",
        "The device runs in a guest on the tester's machine",
        {"lab": "vm"},
    ),
}
#: Device cores in a plan that is not full, its deletions, and the repetitions of a small plan.
_SMALL_CORES: Final = 2
_SMALL_REPETITIONS: Final = 3
#: The emulated processors of a guest stop for tens of milliseconds, and are too slow for many trials.
_IN_GUEST: Final = {"error": "20%", "frame_timeout_seconds": 0.2, "connection_rate": 20_000}
#: Our recipes of Linux gateways accept no smaller hash table.
_LEAST_BUCKETS: Final = 1024
_FIRST_SOURCE_PORT: Final = 1024
_MILLION: Final = 1_000_000
AxisOfTable = Literal["cores", "connections", "draws"]
#: Characters of a line of comment.
_WIDTH: Final = 110


def text(table: Table, *, size: Size) -> str:
    """The plan of a table as TOML, with its commands in comments."""
    refuse(table)
    file = file_name(table, size=size)
    sentences = [
        f"{table.title}: {sources().documents[table.source].title}, {table.place}, {_SIZES[size].purpose}.",
        *(f"Differs from the publication: {sentence}" for sentence in differences(table, size=size)),
    ]
    commands = [
        f"{command(table, size=size)} > {file}",
        f"natgauge plan check --cores {cores(table, size=size)} {file}",
        f"sudo natgauge run {file}",
        f"natgauge report --like {table.name} --beside results/{Path(file).stem}",
    ]
    varied = against(table, size=size)
    if varied is not None:
        commands.append(f"natgauge report --against {varied} results/{Path(file).stem}")
    lines = [line for each in sentences for line in textwrap.wrap(each, _WIDTH, break_on_hyphens=False)]
    comments = [f"# {line}".rstrip() for line in (*lines, "", *(f"  {each}" for each in commands))]
    return "\n".join([*comments, toml_text.dump(document(table, size=size))])


def file_name(table: Table, *, size: Size) -> str:
    """Return the name of the file of a table's plan."""
    return f"{table.name}{'' if size == 'full' else f'-{size}'}.toml"


def command(table: Table, *, size: Size) -> str:
    """Return the command line that prints the table's plan."""
    return f"natgauge published --plan{_SIZES[size].options} {table.name}"


def against(table: Table, *, size: Size) -> str | None:
    """Return what varies between the results of a plan, as `natgauge report --against` takes it.

    Returns:
        The table's axis; without an axis the first key that differs between cells or settings, "metrics" or "device";
        None for a plan with one result.
    """
    if table.axis != "none":
        return table.axis
    plan = document(table, size=size)
    varying: list[str] = [key for part in (plan.get("series", {}), *plan.get("point", [])[:1]) for key in part]
    if keys := [key for key in varying if key in _OF_CELL or key in table.plan.columns]:
        return keys[0].replace("_", "-")
    if len({measure["metric"] for measure in plan["measure"]}) > 1:
        return "metrics"
    return "gateway" if len(plan["gateways"]) > 1 else None


def refuse(table: Table) -> None:
    """Refuse a table that has no plan."""
    missing = table.plan.missing
    if missing:
        kind = UsageError if any(each.lacks == "natgauge" for each in missing) else HostError
        raise kind(f"published: --plan {table.name}: {needs(table)}")


def needs(table: Table) -> str:
    """The requirements of a table that are not met, each with its row; empty for a table with a plan."""
    return "; ".join(f'row "{each.row}" needs {each.needs}' for each in table.plan.missing)


def differences(table: Table, *, size: Size) -> list[str]:
    """Differences of a plan from the publication, one sentence each."""
    smaller = (sentence for each in _smaller(table, size) for sentence in each.differs)
    return [*table.plan.differs, *smaller, f"{_SIZES[size].place}; the publication has a machine for each."]


def _smaller(table: Table, size: Size) -> tuple[SmallPlan, ...]:
    """Differences of a plan from the full one, in the order in which they apply."""
    return {"full": (), "small": (table.plan.small,), "guest": (table.plan.small, table.plan.guest)}[size]


def cores(table: Table, *, size: Size) -> int:
    """Cores that the machine of a plan needs."""
    if size != "full":
        return _SMALL_CORES
    numbers = (_parameter(table, "cores", column) for column in range(table.width))
    return (1 + (table.plan.own_cores or 1)) * max([1, *(number for number in numbers if number is not None)])


def axis_of(table: Table) -> AxisOfTable | None:
    """Return the axis along which columns grow; for a table without one the draws, where columns draw four tuples."""
    if table.axis != "none":
        return table.axis
    return "draws" if table.drawn else None


def axis_values(table: Table, *, size: Size) -> list[int | None]:
    """The value of a table's axis at each column of a plan; None where a column has none.

    Args:
        table: a table with an axis (`axis_of`); columns that a plan leaves out are included.
    """
    axis, columns = axis_of(table), range(table.width)
    if axis == "cores":
        return [_parameter(table, "cores", column) for column in columns]
    if axis == "draws":
        return [_draws(table, column, size=size) for column in columns]
    ports = (_ports(table, column, size=size) for column in columns)
    return [
        _connections(table, column, size=size) if each is None else math.prod(each)
        for column, each in zip(columns, ports, strict=True)
    ]


def document(table: Table, *, size: Size) -> dict[str, Any]:
    """The plan of a table that has one, as a TOML document."""
    table = table.corrected(*table.slips)
    columns = _kept(table, size=size)
    cells = [_cell(table, column, size=size) for column in columns]
    experiments = [_experiments(table, column, size=size) for column in columns]
    measured = list(_measured(table, columns, size=size))
    varying = [key for key in cells[0] if any(cell[key] != cells[0][key] for cell in cells)]
    # Columns are points where more than one key of a cell changes, or where repetitions or settings change, too.
    of_cell = [key for key in varying if key in _OF_CELL]
    alike = len({*experiments}) == 1 and all(settings == each[0] for _, _, each in measured for settings in each)
    pointed = bool(of_cell) and (len(of_cell) > 1 or not alike)
    names = [_name(cell, of_cell) for cell in cells] if pointed else []
    series = [] if pointed else varying if alike else of_cell
    settings = [{key: cell[key] for key in varying if key not in _OF_CELL and key not in series} for cell in cells]
    devices = list(dict.fromkeys(device for _, recipes, _ in measured for device in recipes))
    plan: dict[str, Any] = {
        "gateways": devices,
        "profile": "rfc" if size == "full" else "quick",
        "repetitions": experiments[0],
        "lab": {**_SIZES[size].lab},
    }
    for part, keys in _PARTS.items():
        own = {key: cells[0][key] for key in keys if key in cells[0] and key not in varying}
        plan[part] = {**plan.get(part, {}), **own}
    plan["series"] = {key: [cell[key] for cell in cells] for key in series}
    # Columns of one cell, which differ in their settings, share a point.
    plan["point"] = [
        {
            "name": name,
            **{key: cell[key] for key in of_cell},
            **({} if times == experiments[0] else {"repetitions": times}),
        }
        for name, (cell, times) in dict(zip(names, zip(cells, experiments, strict=True), strict=False)).items()
    ]
    plan["measure"] = _merged(measured, devices, names, settings)
    return {key: value for key, value in plan.items() if value not in ({}, [])}


def settings_of(table: Table, metric: str) -> dict[str, Any]:
    """Return the settings of a metric in the full plan of a table that are equal in all columns, without the error."""
    measured = (given for given in table.plan.measure if given["metric"] == metric)
    given = {**table.plan.settings.get(metric, {}), **next(measured, {})}
    return {key: value for key, value in given.items() if key not in {"metric", "gateways", "error"}}


#: Metric, recipes, and the settings at each column.
_Measured = tuple[str, tuple[str, ...], tuple[dict[str, Any], ...]]


def _measured(table: Table, columns: Sequence[int], *, size: Size) -> Iterator[_Measured]:
    """The measurements of a plan."""
    for given in table.plan.measure:
        settings = {key: value for key, value in given.items() if key not in {"metric", "gateways"}}
        if size != "full":
            settings.pop("error", None)
        settings = _of_size(table, given["metric"], settings, size=size)
        yield given["metric"], given["gateways"], (settings,) * len(columns)
    if table.plan.measure:
        return
    for name, quantity in table.quantities.items():
        metric = quantity.metric
        if metric not in procedures():
            continue
        settings = _of_size(table, metric, table.plan.settings.get(metric, {}), size=size)
        own = []
        for column in columns:
            error = _error(table, name, column) if size == "full" else None
            added = {} if error is None else {"error": error}
            if (draws := _draws(table, column, size=size)) is not None:
                added["draws"] = draws
            experiments = _parameter(table, "experiments", column) if size == "full" else _SMALL_REPETITIONS
            if metric == _TEAR_DOWN and experiments is not None:
                added["sample"] = experiments
            own.append({**settings, **added})
        yield metric, sources().recipes[quantity.device], tuple(own)


def _of_size(table: Table, metric: str, full: Mapping[str, Any], *, size: Size) -> dict[str, Any]:
    """The settings of a metric in a plan, from those of the full plan."""
    known = {field.name for field in fields(procedures()[metric].settings)} if size == "guest" else {}
    settings = {**full, **{key: value for key, value in _IN_GUEST.items() if key in known}}
    for smaller in _smaller(table, size):
        settings |= smaller.settings.get(metric, {})
    return {key: value for key, value in settings.items() if value != NOTHING}


def _merged(
    measured: Sequence[_Measured], devices: Sequence[str], names: Sequence[str], columns: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """One entry for columns with the same settings, and for devices with the same entries."""
    merged: dict[str, tuple[dict[str, Any], list[str]]] = {}
    for metric, recipes, settings in measured:
        entries: dict[str, dict[str, Any]] = {}
        for column, (each, own) in enumerate(zip(settings, columns, strict=True)):
            entry = {"metric": metric, **own, **each}
            entries.setdefault(toml_text.dump(entry), {**entry, "points": []})["points"] += names[column : column + 1]
        for key, entry in entries.items():
            entry["points"] = list(dict.fromkeys(entry["points"]))
            if len(entry["points"]) == len(set(names)):
                del entry["points"]
            merged.setdefault(f"{key}{entry.get('points')}", (entry, []))[1].extend(recipes)
    return [
        {**entry, "gateways": recipes} if len(recipes) < len(devices) else entry for entry, recipes in merged.values()
    ]


def _kept(table: Table, *, size: Size) -> list[int]:
    """The columns of a plan, from 0."""
    left_out = {column for cells in table.plan.columns.values() for column, cell in enumerate(cells) if cell == NOTHING}
    if size != "full" and table.axis == "cores":
        left_out |= {
            column for column in range(table.width) if (_parameter(table, "cores", column) or 0) > _SMALL_CORES
        }
    return [column for column in range(table.width) if column not in left_out]


def _cell(table: Table, column: int, *, size: Size) -> dict[str, Any]:
    """The keys of a plan that one column decides."""
    traffic, share = _traffic(table, column, size=size)
    sizes = _sizes(table, column)
    if size != "full":
        least = {"hash_size": _LEAST_BUCKETS}
        sizes = {key: max(_power_of_two(entries * share), least.get(key, 1)) for key, entries in sizes.items()}
    set_cores = size == "full" or table.axis == "cores"
    cell = {
        # A small plan without a series over cores takes one core, and natgauge chooses its time-outs.
        _cores_key(table, size=size): _parameter(table, "cores", column) if set_cores else None,
        **traffic,
        **{key: _shown(entries) for key, entries in sizes.items()},
        "udp_timeout": _parameter(table, "timeout", column) if size == "full" else None,
        **{key: cells[column] for key, cells in table.plan.columns.items()},
    }
    return {key: value for key, value in cell.items() if value is not None}


def _cores_key(table: Table, *, size: Size) -> str:
    """The key with the number of cores."""
    return "cores_each" if size == "full" and table.plan.own_cores is not None else "cores"


def _traffic(table: Table, column: int, *, size: Size) -> tuple[dict[str, Any], float]:
    """Ranges of ports or a number of connections, and the share of the published connections."""
    ports, full = _ports(table, column, size=size), _ports(table, column, size="full")
    if ports is None or full is None:
        number, printed = (_connections(table, column, size=each) for each in (size, "full"))
        return {"connections": number}, 1.0 if not number or not printed else number / printed
    return {
        "source_ports": f"{_FIRST_SOURCE_PORT}-{_FIRST_SOURCE_PORT + ports[0] - 1}",
        "destination_ports": f"1-{ports[1]}",
    }, math.prod(ports) / math.prod(full)


def _connections(table: Table, column: int, *, size: Size) -> int | None:
    """Number of connections, where the publication does not give the numbers of ports; None where it has neither."""
    number = _parameter(table, "connections", column)
    if number is not None:
        for smaller in _smaller(table, size):
            number //= smaller.divide.get("connections", 1)
    return number


def _ports(table: Table, column: int, *, size: Size) -> tuple[int, int] | None:
    """Numbers of source and destination ports; None where the publication does not give them."""
    inner, outer = _parameter(table, "source-ports", column), _parameter(table, "destination-ports", column)
    if inner is None or outer is None:
        return None
    for smaller in _smaller(table, size):
        inner //= smaller.divide.get("source-ports", 1)
        outer //= smaller.divide.get("destination-ports", 1)
    return max(1, inner), outer


def _draws(table: Table, column: int, *, size: Size) -> int | None:
    """Draws of phase 1 at a column; None where it draws nothing, or the table does not print the number of frames."""
    orders, frames = table.plan.columns.get("order"), _parameter(table, "phase-1-frames", column)
    if orders is None or orders[column] != DRAWN or frames is None:
        return None
    return round(frames * _traffic(table, column, size=size)[1])


def _sizes(table: Table, column: int) -> dict[str, int]:
    """Sizes of the device's tables, as far as the publication gives them."""
    table_size, buckets = _parameter(table, "table-size", column), _parameter(table, "hash-size", column)
    times = table.plan.entries_per_bucket
    if times is not None and table_size is not None:
        buckets = table_size // times
    elif times is not None and buckets is not None:
        table_size = buckets * times
    return {key: size for key, size in (("table_size", table_size), ("hash_size", buckets)) if size is not None}


def _power_of_two(size: float) -> int:
    """The size, or the next power of two."""
    return 1 << math.ceil(math.log2(size))


def _shown(size: int) -> int | str:
    """A size, a power of two as in "2^23"."""
    return f"2^{size.bit_length() - 1}" if size.bit_count() == 1 else size


def _parameter(table: Table, name: Parameter, column: int) -> int | None:
    """A parameter at a column; None where the publication gives none."""
    row = table.row(name)
    cell = table.plan.parameters.get(name, NOTHING) if row is None else row.cells[column]
    return None if cell == NOTHING else _whole(cell)


def _whole(cell: str) -> int:
    printed = read(cell)
    return 0 if printed is None else round(printed.value)


def _error(table: Table, quantity: str, column: int) -> int | None:
    """The error of a search, of each direction; None where none is printed.

    The error of a throughput that adds both directions is printed for the sum. Where a table prints one error for all
    its quantities, it is that of each search.
    """
    row = table.row("error", quantity)
    if row is None:
        first = next((each for each in table.rows if each.kind == "error"), None)
        cell = table.plan.parameters.get("error", NOTHING) if first is None else first.cells[column]
        return None if cell == NOTHING else _whole(cell)
    directions = table.plan.columns.get("directions", ("both",) * table.width)[column]
    added = table.quantities[quantity].directions is not None and directions == "both"
    return _whole(row.cells[column]) // (2 if added else 1)


def _experiments(table: Table, column: int, *, size: Size) -> int:
    """Repetitions at a column; those of a tear-down rate are deletions within one repetition."""
    if any(quantity.metric == _TEAR_DOWN for quantity in table.quantities.values()):
        return 1
    return {"full": _parameter(table, "experiments", column) or 1, "small": _SMALL_REPETITIONS, "guest": 1}[size]


def _name(cell: Mapping[str, Any], varying: Sequence[str]) -> str:
    """Name of a point: its values, with the connections in place of the ranges of ports."""
    parts = [f"cores-{cell['cores']}"] if "cores" in varying else []
    connections = cell.get("connections", 0) if "connections" in varying else 0
    if {"source_ports", "destination_ports"} & {*varying}:
        first, last = cell["source_ports"].split("-")
        connections = (int(last) - int(first) + 1) * int(cell["destination_ports"].split("-")[1])
    if connections:
        parts.append(f"{connections / 1e6:g}M" if connections >= _MILLION else f"{connections / 1e3:g}k")
    return "-".join([*parts, *([cell["order"]] if "order" in varying else [])])
