# SPDX-License-Identifier: Apache-2.0
"""Results in the shape of published tables: every small plan, run on simulated gateways, fills its own table."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from tests.unit.campaigning import Benches, Simulated, campaign
from tests.unit.golden import Golden
from tests.unit.made_results import made
from tests.unit.simulated import Gateway

from natgauge import procedures
from natgauge.errors import UsageError
from natgauge.gateways.preparation import DeviceSettings
from natgauge.inputs.question import Cell
from natgauge.measurements.measure import Prepared
from natgauge.measurements.record import gateway_parameters
from natgauge.measurer import Ability
from natgauge.published import like, model
from natgauge.published.model import Printed, Quantity, Table, names, plan_text, read, sources, table
from natgauge.records.measurement import PublishedCell, Result
from natgauge.records.parameters import GROUPS, Parameters
from natgauge.reports import csv_table, documents, markup, pivot, text
from natgauge.reports.collected import StoredResults
from natgauge.reports.sheet import Sheet
from natgauge.stored.find_results import find
from natgauge.trial.bench import Bench
from natgauge.trial.controls import Observer
from natgauge.trial.lab_measurer import Recorder
from natgauge.trial.planned import Planned

PLANNED = [name for name in names() if not table(name).missing]
#: Tables whose columns cannot be measured, and one without numbers.
UNMEASURED = {"nat64-paper-table-17", "scalability-draft-section-2-3"}
DRAWN = "nat64-paper-figure-2"
#: Tables that print no figure: these are drawn, or are in a dashboard.
DRAWN_ALONE = {DRAWN, "csit-nat44-tcp-cps"}
#: Truth of the simulated gateways on one core, per second; the search has an error of 5 %.
ESTABLISHES, FORWARDS = 100_000, 150_000
ABILITIES = frozenset({Ability.STATELESS, Ability.QUERIES, Ability.VARIATION, Ability.TAGGED_DELAYS})


class Conditioned(Simulated):
    """A bench whose results have the parameters of its place, traffic and device."""

    def prepare(self, planned: Planned, recorder: Recorder) -> Prepared:
        prepared = super().prepare(planned, recorder)
        bench, knobs = Bench(self.cell), self.cell.device
        sizes = {"table_size": knobs.table_size, "hash_size": knobs.hash_size, "udp_timeout": knobs.udp_timeout or 100}
        settings = DeviceSettings(
            gateway=bench.recipe.name, version=("x 1",), connections=bench.traffic.connections, files={}, found={},
            knobs={name: value for name, value in sizes.items() if value is not None},
        )  # fmt: skip
        recorded = gateway_parameters(bench, settings, {})
        groups = {group: {**getattr(prepared.parameters, group), **getattr(recorded, group)} for group in GROUPS}
        return replace(prepared, parameters=Parameters.grouped(**groups))


@dataclass
class ConditionedBenches(Benches):
    """Makes such benches; a gateway scales with its cores and is slower than plain forwarding."""

    def __call__(self, cell: Cell, _observer: Observer) -> Conditioned:
        return Conditioned(self, cell)


def simulated(cell: Cell) -> Gateway:
    cores = len(getattr(cell.kind_options, "cores", None) or (0,))
    speed = cores * (3.0 if str(cell.gateway).startswith("linux") else 1.0)
    return Gateway(
        placement="shared",
        establishes=ESTABLISHES * speed,
        forwards=FORWARDS * speed,
        ceiling=1e8,
        table_size=cell.device.table_size or 2**40,
        abilities=ABILITIES,
    )


@cache
def measured(name: str) -> tuple[Result, ...]:
    """The results of the small plan of a table."""
    with TemporaryDirectory() as folder:
        campaign(Path(folder), ConditionedBenches(simulated), plan=plan_text(table(name), size="small"))
        return tuple(find([Path(folder, "out")]).results)


def lines(shown: Sheet) -> dict[str, tuple[str, ...]]:
    return {line.heading: line.cells for line in shown.lines}


def value(cell: str) -> float:
    """The number of a cell, without its marks."""
    number = read(cell.rstrip("*†").removeprefix("<= ").removeprefix(">= "))
    assert number is not None
    return number.value


# Small plans, run on simulated gateways


def unmeasured(one: Table) -> set[int]:
    """Columns that the small plan of a table leaves out."""
    cores = one.row("cores")
    too_many = set() if cores is None else {at for at, cell in enumerate(cores.cells) if value(cell) > 2}
    # The lab has too few addresses for two columns of CSIT, and no recipe of the paper's OpenBSD has run.
    return too_many | {"csit-nat44-tcp-cps": {3, 4}, "nat64-paper-table-22": {4, 5}}.get(one.name, set())


@pytest.mark.parametrize("name", [name for name in PLANNED if name != DRAWN])
def test_the_results_of_a_small_plan_fill_the_table(name: str) -> None:
    one, shown = table(name), like.sheet(name, measured(name))
    found = lines(shown)
    assert [line.heading for line in shown.lines if line.heading != "in the column of"] == [
        row.label for row in one.rows
    ]
    empty = {at for row in one.rows for at, cell in enumerate(found[row.label]) if re.fullmatch(r"\([a-z]\)", cell)}
    # What is derived is left out, too, where doubts leave nothing of it.
    doubted = {note[:3] for note in shown.below if "doubts make it a bound" in note}
    derived = {at for row in one.rows for at, cell in enumerate(found[row.label]) if cell in doubted}
    assert empty - derived == unmeasured(one)
    assert not [note for note in shown.below if note.startswith("Not in the table")]
    # The rates are those of the gateways, in the unit of the table.
    for row in one.rows:
        quantity = one.quantities.get(row.quantity or "")
        if row.kind != "median" or quantity is None or quantity.metric not in {"connection-rate", "throughput"}:
            continue
        for at, cell in enumerate(found[row.label]):
            if at not in unmeasured(one):
                truth = (at + 1 if one.axis == "cores" else 1) * (3 if "packet forwarding" in quantity.device else 1)
                truth *= ESTABLISHES if quantity.metric == "connection-rate" else FORWARDS
                directions = one.shape.columns.get("directions", ["both"] * one.width)[at]
                truth *= 2 if quantity.directions is not None and directions == "both" else 1
                assert value(cell) * quantity.times == pytest.approx(truth, rel=0.07), (row.label, at)


#: What the last command of a small plan is against, where the table has no axis.
AGAINST = {
    DRAWN: "frame-size",
    "nat64-paper-table-8": "directions",
    "nat64-paper-table-9": None,
    "nat64-paper-table-10": None,
    "nat64-paper-table-15": "directions",
    "nat64-paper-table-22": "metrics",
    "nat64-paper-table-23": "order",
    "scalability-draft-figure-6": None,
    "scalability-draft-figure-11": "alpha",
    "v6ops-mail-forwarding": "gateway",
}


@pytest.mark.parametrize("name", PLANNED)
def test_the_commands_of_a_small_plan_end_with_a_table_of_what_varies(name: str) -> None:
    """Each result of the plan is in that table, and each value of what varies is a column of it."""
    one = table(name)
    varied = AGAINST[name] if one.axis == "none" else one.axis
    comments = [line for line in plan_text(one, size="small").splitlines() if line.startswith("#   natgauge report")]
    assert comments[0] == f"#   natgauge report --like {name} --beside results/{name}-small"
    if varied is None:
        assert len(comments) == len(measured(name)) == 1
        return
    assert comments[1:] == [f"#   natgauge report --against {varied} results/{name}-small"]
    if varied == "metrics":
        medians = [cell for line in pivot.of_metrics(measured(name)).lines[1:] for cell in line.cells]
    else:
        shown = pivot.sheet(measured(name), varied)
        assert len(shown.lines[0].cells) > 1
        medians = [cell for line in shown.lines if line.heading == "median" for cell in line.cells]
    assert len([cell for cell in medians if cell != "-"]) == len(measured(name))


def test_losses_are_in_rows_by_load_and_columns_by_frame_size(golden: Golden) -> None:
    """In shared placement 100 % is twice the throughput; the series ends after two loads without loss."""
    shown = like.sheet(DRAWN, measured(DRAWN), beside=True)
    found = lines(shown)
    assert found["frame size, IPv6/IPv4 (octets)"] == ("84/64", "1044/1024")
    assert found["100 %: median, published"] == ("drawn", "drawn")
    for kind in ("median", "minimum", "maximum"):
        cells = [found[f"{load} %: {kind}"] for load in range(100, 0, -10)]
        assert [value(cell) for cell in cells[0]] == pytest.approx([50, 50], rel=0.07)
        assert [value(cell) for cell in cells[3]] == pytest.approx([28.6, 28.6], rel=0.2)
        assert cells[-2:] == [("(a)", "(a)")] * 2
    (missing,) = [note for note in shown.below if note.startswith("(a)")]
    golden(missing)


def test_the_columns_of_a_small_plan_have_its_numbers_and_the_published_ones(golden: Golden) -> None:
    shown = like.sheet("nat64-paper-table-6", measured("nat64-paper-table-6"))
    golden([(line.heading, line.cells) for line in shown.lines[:2]])
    golden(shown.below)


def test_the_published_row_is_below_each_row(golden: Golden) -> None:
    one = table("nat64-paper-table-12")
    shown = like.sheet(one.name, measured(one.name), beside=True)
    assert [line.heading for line in shown.lines] == [
        heading for row in one.rows for heading in (row.label, f"{row.label}, published")
    ]
    assert lines(shown)["Median (cps), published"] == ("102,929", "98,680", "99,218")
    golden(shown.below)


# Results with the published figures


def spread(one: Table, name: str, column: int, *, quantity: Quantity) -> list[float] | None:
    """Ten values, or as many as were printed, with the printed minimum, median and maximum in the unit."""
    rows = [one.row(kind, name) for kind in ("minimum", "median", "maximum")]
    middle = rows[1] or one.row("deletion-time", name) or one.row("tear-down-rate", name) or one.row("connections")
    cells = ["-" if row is None else row.cells[column] for row in (rows[0], middle, rows[2])]
    numbers = [read(cell) for cell in cells]
    if numbers[1] is None:
        return None
    low, median, high = ((number or numbers[1]).value * quantity.times for number in numbers)
    experiments = one.row("experiments")
    many = 10 if experiments is None else int(value(experiments.cells[column]))
    return [low, *[median] * (many - 2), high]


def parameters_of(one: Table, column: int) -> dict[str, Any]:
    """Parameters of the results of a column."""
    found: dict[str, Any] = {"directions": "both", "order": "permutation", "udp_timeout": None}
    kinds = {
        "cores": "device_cores", "connections": "connections", "source-ports": "source_port_count",
        "destination-ports": "destination_port_count", "table-size": "table_size", "hash-size": "hash_size",
        "timeout": "udp_timeout",
    }  # fmt: skip
    for row in one.rows:
        if row.kind in kinds and row.cells[column] != "-":
            found[kinds[row.kind]] = int(value(row.cells[column]))
    if {"source_port_count", "destination_port_count"} <= found.keys():
        found["connections"] = found["source_port_count"] * found["destination_port_count"]
    for key, cells in one.shape.columns.items():
        if key not in {"metric", "device", "figure"}:
            is_share = key in {"alpha", "loss_tolerance"} and cells[column] != "-"
            found[key] = float(cells[column]) if is_share else cells[column]
    if column + 1 in one.drawn:
        found["draws"] = int(value(next(row for row in one.rows if row.kind == "phase-1-frames").cells[column]))
    return found


def as_published(name: str) -> list[Result]:
    """Results with the figures of a table."""
    one = table(name).corrected(*table(name).slips)
    shape, known = one.shape.columns, sources()
    values: dict[tuple[str, str, int], dict[str | None, list[float]]] = {}
    for at in range(one.width):
        for label, quantity in one.quantities.items():
            own = known.figures.get(quantity.metric)
            metric = shape["metric"][at] if "metric" in shape else own.metric if own else quantity.metric
            gateway = shape["device"][at] if "device" in shape else known.recipes.get(quantity.device, ("x",))[0]
            figure = shape["figure"][at] if "figure" in shape else own.figure if own else None
            found = spread(one, label, at, quantity=quantity)
            if found is not None:
                # All figures of one result are in one column, or they are in all of them.
                column = 0 if "figure" in shape else at
                values.setdefault((metric, gateway, column), {})[None if figure == "-" else figure] = found
    return [made_of(one, *key, figures) for key, figures in values.items()]


def made_of(one: Table, metric: str, gateway: str, column: int, figures: dict[str | None, list[float]]) -> Result:
    parameters = parameters_of(one, column) | {
        "gateway": gateway,
        "kind": "routing" if gateway.startswith("linux") else "nat44",
    }
    sides = 2 if parameters["directions"] == "both" else 1
    first = next(iter(figures.values()))
    own = [each / sides for each in figures["frames_per_second_total"]] if metric == "throughput" else figures.get(None)
    unit = procedures.get(metric).unit
    return made(
        own or first,
        median=sorted(own or first)[len(first) // 2],
        metric=metric,
        unit=unit,
        error=10.0,
        figures={figure: each for figure, each in figures.items() if figure is not None},
        parameters=parameters,
    )


@pytest.mark.parametrize("name", sorted({*names()} - UNMEASURED - DRAWN_ALONE))
def test_results_with_the_published_figures_print_the_published_table(name: str) -> None:
    one = table(name).corrected(*table(name).slips)
    shown = like.sheet(name, as_published(name))
    found = lines(shown)
    for row in one.rows:
        # Mean and deviation do not follow from the median; errors were not made.
        if row.kind in {"mean", "standard-deviation", "error", "text"}:
            continue
        if row.kind == "heading":
            assert found[row.label] == row.cells
            continue
        for cell, printed in zip(found[row.label], row.numbers(), strict=True):
            if printed is None:
                assert cell == "-"
            else:
                # Own figures have four digits; ratios are of medians that were rounded.
                nearly = Printed(value(cell), 0.002 * value(cell) + 2.1 * printed.half)
                assert nearly.bounds[0] <= printed.value <= nearly.bounds[1], (row.label, cell, printed)


# Cells without a result, marks, and results that do not fit


def rates(
    *connections: int, gateway: str = "jool-nat64", metric: str = "connection-rate", **changed: Any
) -> list[Result]:
    """Results of a series over connections."""
    parameters = changed.pop("parameters", {})
    return [
        made(
            [2e5],
            metric=metric,
            unit=procedures.get(metric).unit,
            parameters={"gateway": gateway, "connections": each, **parameters},
            **changed,
        )
        for each in connections
    ]


TABLE_6, TABLE_7, TABLE_23 = "nat64-paper-table-6", "nat64-paper-table-7", "nat64-paper-table-23"
MEDIANS, FRAMES = "Median (cps)", "Median (fps)"
LIMITED: dict[str, Any] = {"limited_by": "tester"}


def frames(connections: int, **parameters: Any) -> list[Result]:
    """A throughput of both directions."""
    figures = {"frames_per_second_total": 4e5}
    return rates(connections, metric="throughput", figures=figures, parameters={"directions": "both", **parameters})


def draws(number: int, **changed: Any) -> list[Result]:
    """A rate of drawn frames."""
    return rates(
        1000, gateway="iptables-nat44", parameters={"order": "with-replacement", "draws": number},
        figures={"connections_counted": number / 2}, **changed,
    )  # fmt: skip


def validated(connections: int, alpha: float, way: str = "fail") -> list[Result]:
    parameters = {"alpha": alpha, "failed_validation": way}
    return rates(connections, metric="validated-connection-rate", parameters=parameters)


def of_plan(published: str, column: int, quantity: str, result: Result) -> Result:
    """The result with the cells that its plan names."""
    cell = PublishedCell(table=published, column=column, quantity=quantity)
    return result.model_copy(update={"published": (cell,)})


def lost(placement: str) -> list[Result]:
    series = [[{"offered_percent": 100.0, "lost_percent": 5.0, "shortfall_percent": 9.0}]]
    parameters = {"gateway": "jool-nat64", "frame_size": 84, "directions": "both", "placement": placement}
    value = 5.0 if placement == "isolated" else 9.0
    return [made([value], metric="frame-loss", unit="%", series=series, parameters=parameters)]


#: A published table, results, and rows of what is printed; these and the notes below are stored.
SHEETS: dict[str, tuple[str, list[Result], list[str]]] = {
    "a cell without a result refers to the value that has none": (
        TABLE_6, rates(400_000), ["Number of connections", MEDIANS, "Source port numbers"]
    ),
    "a row without a result names its metric": (
        "scalability-draft-figure-2",
        [one for one in as_published("scalability-draft-figure-2") if one.metric == "connection-rate"],
        ["cps median", "throughput median"],
    ),
    # Median / previous median of the third column refers to the second one, which has no result.
    "a missing figure is not taken from another column": (
        TABLE_6, rates(400_000, 40_000_000), ["Median / previous median"]
    ),
    "a result is in the cells that its plan names whatever its numbers": (
        TABLE_6,
        [
            of_plan(of, 3 - at, "cps", one)
            for of in (TABLE_6, TABLE_7)
            for at, one in enumerate(rates(70, 900, gateway="my-nat", metric="throughput"))
        ],
        ["Number of connections", "in the column of"],
    ),
    # Its place among other numbers says nothing; a plan with `columns` does.
    "a result without such a plan is in the column with its settings or in none": (
        TABLE_6, rates(900, 4_000_000), [MEDIANS]
    ),
    "draws are in the columns of their number": (
        TABLE_23, [*draws(40_000_000), *draws(4_000_000)],
        ["Number of phase 1 frames", "Number of connections minimum"],
    ),
    "another device stands for the published one": (TABLE_6, rates(400_000, gateway="my-nat"), []),
    "a single repetition has no deviation": (
        "nat64-paper-table-2",
        rates(1, gateway="linux-ipv4", metric="throughput", figures={"frames_per_second_total": 4e5},
              parameters={"device_cores": 1, "directions": "both"}),
        ["Standard deviation", "Error (fps)"],
    ),
    "a figure with a doubt or another limit has a mark and the reason below": (
        TABLE_6,
        [
            *rates(400_000, doubts=[{"word": "queues", "text": "x"}]), *rates(4_000_000),
            *rates(40_000_000, **LIMITED),
        ],
        [MEDIANS],
    ),
    "a search of which no load was too high has no error": (
        TABLE_6, rates(400_000, limited_by="device", parameters={"error": "1%"}), []
    ),
    "a search of which no rate failed has no error": (
        TABLE_6, rates(400_000, parameters={"error": "1%"}, **LIMITED), []
    ),
    # CSIT counts a connection by its SYN-ACK; the loads that a search happened to try were printed as such a rate.
    "a rate that is counted more strictly than the published one is a lower bound": (
        "csit-nat44-tcp-cps",
        [made([100_000.0] * 3, metric="transaction-rate", unit="transactions/s", figures={"half_open_rate": 112_266.0},
              parameters={"connections": 64_512, "gateway": "nftables-nat44", "transport": "tcp"})],
        ["CPS NDR"],
    ),
    # The rate is a lower bound where the tester ended its search; times and counts beside it are what they are.
    "a bound is of the value and not of its times": (
        "nat64-paper-table-11",
        rates(400_000, metric="tear-down-rate", **LIMITED,
              figures={"full_seconds": 0.46, "empty_seconds": 0.3, "difference_seconds": 0.16}),
        ["Connection tear down rate (cps)", *(
            row.label for row in table("nat64-paper-table-11").rows if row.label.endswith("(s)")
        )],
    ),
    "a bound is of the value and not of its count": (
        TABLE_23, draws(4_000_000, **LIMITED), [MEDIANS, "Number of connections minimum"]
    ),
    "a sum of both directions has the bound of the value": (
        TABLE_7,
        rates(400_000, metric="throughput", parameters={"directions": "both"},
              figures={"frames_per_second_total": 4e5}, **LIMITED),
        [FRAMES],
    ),
    # RFC 2544 section 26.3 counts lost frames; in shared placement a busy device slows the sender as well.
    "a loss rate is of lost frames": (DRAWN, lost("isolated"), ["100 %: median"]),
    "a loss rate in shared placement is of missing frames": (DRAWN, lost("shared"), ["100 %: median"]),
    "results without loss fill their table": (
        "nat64-paper-table-12",
        rates(400_000, 4_000_000, gateway="tayga-iptables-nat64", parameters={"loss_tolerance": 0.0}), [MEDIANS],
    ),
    "results within a tolerance fill their table": (
        "nat64-paper-table-13",
        rates(400_000, 4_000_000, gateway="tayga-iptables-nat64", parameters={"loss_tolerance": 0.0001}), [MEDIANS],
    ),
    # Table 22 has alpha = 1 and fails a trial whose validation fails.
    "a validated rate is in the table with its alpha": (
        "nat64-paper-table-22",
        [*validated(4_000_000, 1.0), *validated(4_000_000, 0.8), *validated(4_000_000, 1.0, "repeat-slower")],
        [MEDIANS],
    ),
    # Figure 11 of the draft fails a trial whose validation fails; natgauge by default repeats it more slowly.
    "of two ways of measuring the one of the publication is in the table": (
        "scalability-draft-figure-11", [*validated(4_000_000, 0.6, "repeat-slower"), *validated(4_000_000, 0.6)],
        ["cps median"],
    ),
    "results that belong in no cell are named": (
        TABLE_6, [*rates(400_000), *rates(5, 6, metric="throughput")], [MEDIANS]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SHEETS)
def test_the_table_where(name: str, golden: Golden) -> None:
    published, results, labels = SHEETS[name]
    shown = like.sheet(published, results)
    found = lines(shown)
    golden([*(f"{label}: {' | '.join(found[label])}" for label in labels), *shown.below])


def test_parameters_that_the_publication_gives_outside_of_the_table_are_below_it(golden: Golden) -> None:
    golden(like.sheet("scalability-draft-figure-6", measured("scalability-draft-figure-6")).below)


def test_a_bound_stays_one_for_programs_that_read_the_table() -> None:
    shown = like.sheet("nat64-paper-table-6", [*rates(400_000), *rates(40_000_000, limited_by="tester")])
    (medians,) = [row for row in csv.reader(io.StringIO(csv_table.render(shown))) if row[0] == "Median (cps)"]
    assert medians[1:] == ["200000", "(a)", ">= 200000.0"]
    written = documents.document(StoredResults((), ()), shown)
    (cells,) = [row["cells"] for row in written["table"]["rows"] if row["row"] == "Median (cps)"]
    assert cells == [200_000.0, "(a)", {"bound": ">=", "value": 200_000.0}]


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"loss_tolerance": 0.01}, ", no more than 1% lost."),
        ({"search": "mlrsearch", "goals": "ndr-pdr", "trial_seconds": 1.0}, " by MLRsearch (ndr: "),
        ({"directions": "down"}, " (directions down)."),
        ({"transport": "tcp", "frame_size": 88}, " by TCP."),
        ({"frame_size": 1518}, " in 1,518-octet frames."),
        ({"foreground_share": 0.5}, ", 50% of the frames native IPv6."),
        ({"order": "increasing"}, ", order of four tuples increasing."),
        ({"down_share": 0.8}, ", down share 0.8."),
        ({"modifiers": "broadcast"}, ", modifiers broadcast."),
        ({"groups": 4}, ", groups 4."),
    ],
)
def test_a_result_by_another_criterion_or_of_other_frames_is_left_out_and_says_so(
    changed: dict[str, Any], named: str
) -> None:
    """Each of them filled a table of UDP without loss in both directions, without a mark."""
    usual, other = frames(400_000, loss_tolerance=0.0, foreground_share=1.0), frames(4_000_000, **changed)
    shown = like.sheet(TABLE_7, [*usual, *other])
    assert lines(shown)[FRAMES] == ("400,000", "(a)", "(a)")
    (left_out,) = [note for note in shown.below if note.startswith("Not in the table")]
    assert left_out.startswith(f"Not in the table: 1 of throughput of jool-nat64{named}")
    # A plan whose settings you changed still fills its table; what it changed is said.
    shown = like.sheet(TABLE_7, [of_plan(TABLE_7, 2, "throughput", other[0])])
    assert lines(shown)[FRAMES] == ("(a)", "400,000", "(a)")
    (said,) = [note for note in shown.below if note.startswith("throughput: ")]
    assert said.startswith(f"throughput: throughput of jool-nat64{named.removesuffix('.')}")


@pytest.mark.parametrize(
    ("name", "results"),
    [
        ("nat64-paper-table-6", rates(1, metric="pdv")),
        ("nat64-paper-table-8", rates(1, metric="throughput", parameters={"directions": "sideways"})),
        ("nat64-paper-table-6", rates(400_000, 400_000)),
        ("nat64-paper-table-6", [*rates(400_000, gateway="a"), *rates(4_000_000, gateway="b")]),
        ("nat64-paper-table-4", rates(1)),
        ("nat64-paper-table-17", rates(1, metric="throughput")),
        ("scalability-draft-section-2-3", rates(1)),
        ("scalability-draft-figure-11", validated(4_000_000, 0.6) * 2),
        *(
            (name, rates(400_000, 4_000_000, gateway="tayga-iptables-nat64", parameters={"loss_tolerance": tolerance}))
            for name, tolerance in (("nat64-paper-table-12", 0.0001), ("nat64-paper-table-13", 0.0))
        ),
    ],
)
def test_results_that_do_not_fit_are_refused_in_one_line(name: str, results: list[Result], golden: Golden) -> None:
    with pytest.raises(UsageError) as error:
        like.sheet(name, results)
    assert str(error.value).startswith(f"report: --like {name}: ")
    golden(str(error.value))
    assert "\n" not in str(error.value)


# Formats and the command


def in_csv(cell: str) -> str:
    """A cell of the table as CSV has it: figures in full, with the sign of a bound."""
    if bound := getattr(cell, "bound", ""):
        return f"{bound} {cell.value!r}"  # type: ignore[attr-defined] # a figure that is written
    value = getattr(cell, "value", cell)
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def test_every_format_has_every_cell() -> None:
    shown = like.sheet("scalability-draft-figure-2", measured("scalability-draft-figure-2"))
    rows = list(csv.reader(io.StringIO(csv_table.render(shown))))
    assert rows == [
        *([line.heading, *map(in_csv, line.cells)] for line in shown.lines),
        *(["note", note, "", "", "", ""] for note in shown.below),
    ]
    for form in (text.render, markup.render_markdown, markup.render_latex, text.render_unframed):
        said = re.sub(r"\\", "", form(shown)).replace("textless{}", "<").replace("&lt;", "<")
        assert all(cell in said for line in shown.lines for cell in line.cells)
    assert max(map(len, text.render_unframed(shown).splitlines())) <= 72


# Published tables as files


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("-", None),
        ("2^23", Printed(8_388_608.0)),
        ("1,341", Printed(1341.0, 0.5)),
        ("45.5", Printed(45.5, 0.05)),
        ("1.56M", Printed(1_560_000.0, 5_000.0)),
        ("(2,758,621)", Printed(2_758_621.0, 0.5)),
    ],
)
def test_a_cell_knows_how_coarsely_it_was_printed(cell: str, number: Printed | None) -> None:
    found = read(cell)
    assert (found is None) == (number is None)
    if found is not None and number is not None:
        assert (found.value, found.half) == pytest.approx((number.value, number.half))


GOOD = (Path(model.__file__).parent / "tables" / "nat64-paper-table-4.toml").read_text()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('outside = ["source-ports', 'outsite = ["source-ports'),
        ('outside = ["source-ports', 'outside = ["hats'),
        ("[quantities", '[shape]\ncolumns.order = ["increasing"]\n\n[quantities'),
        ("[quantities", '[[missing]]\nrow = "x"\nneeds = "y"\nlacks = "host"\n\n[quantities'),
        ('"208,984"', '"208984 cps"'),
        ('"208,984", ', ""),
        ('is = "median", quantity = "cps"', 'is = "median"'),
        ('quantity = "cps", cells = ["100"', 'quantity = "fps", cells = ["100"'),
        ('label = "Minimum (cps)"', 'label = "Median (cps)"'),
        ('is = "minimum"', 'is = "median"'),
        ('source = "nat64-paper"', 'source = "somewhere"'),
        ('axis = "cores"', 'axis = "hats"'),
        ('place = "Table 4"', "place = 4"),
        ("rows = [", "rows = "),
    ],
)
def test_a_file_that_is_no_table_is_refused_in_one_line(
    tmp_path: Path, before: str, after: str, golden: Golden
) -> None:
    assert before in GOOD
    path = tmp_path / "bad.toml"
    path.write_text(GOOD.replace(before, after, 1))
    with pytest.raises(UsageError) as refused:
        model.from_file(path)
    golden(str(refused.value))
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "slip",
    [
        'row = "No such"\ncolumns = [1]\nprinted = ["1"]\nright = ["2"]',
        'row = "Median (cps)"\ncolumns = [9]\nprinted = ["1"]\nright = ["2"]',
        'row = "Median (cps)"\ncolumns = [1]\nprinted = ["1"]\nright = ["2"]',
        'row = "Median (cps)"\ncolumns = [1]\nprinted = []\nright = ["2"]',
    ],
)
def test_a_slip_that_is_not_printed_is_refused(tmp_path: Path, slip: str, golden: Golden) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(f'{GOOD}\n[[slips]]\n{slip}\nwhy = "x"\n')
    with golden.raises(UsageError):
        model.from_file(path)
