# SPDX-License-Identifier: Apache-2.0
"""Plans: those of examples/ and of published tables; what a plan says before it is measured."""

from __future__ import annotations

import math
import re
from functools import cache, partial
from pathlib import Path

import pytest
from tests.unit.conftest import Ran
from tests.unit.golden import Golden
from tools import site_files

from natgauge.campaigns.cells import PlannedCell, points
from natgauge.campaigns.estimate import estimate, of_cell
from natgauge.campaigns.plan import parse, read
from natgauge.cli import run
from natgauge.gateways import support
from natgauge.gateways.recipe import available
from natgauge.host.machine import as_if
from natgauge.labs import netns
from natgauge.published.model import SIZES, Kind, Size, Table, names, plan_text, sources, table
from natgauge.toml_text import parse as parse_toml
from natgauge.trial.bench import Bench

EXAMPLES = Path(__file__).parents[2] / "examples"
LARGE = 32
#: Printed plans among the examples.
PRINTED = sorted(path.stem for path in EXAMPLES.glob("scalability-draft-*.toml"))
PLANNED = [name for name in names() if not table(name).missing]
#: Columns, from 0, that a plan leaves out.
LEFT_OUT = {"csit-nat44-tcp-cps": {3, 4}, "nat64-paper-table-22": {4, 5}}
#: Tables whose publication says that the source ports begin at 1.
FROM_PORT_1 = [
    "nat64-paper-figure-2",
    *(f"nat64-paper-table-{number}" for number in (*range(4, 17), 22)),
    "v6ops-mail-table-1",
]
REFUSED = [name for name in names() if table(name).missing]


def cells_of(name: str, cores: int = LARGE) -> tuple[PlannedCell, ...]:
    with as_if(cores):
        return points(read(EXAMPLES / f"{name}.toml"), name)


@cache
def published_cells(name: str, *, size: Size = "full") -> tuple[PlannedCell, ...]:
    """The cells of a printed plan, on a machine with as many cores as its comments name."""
    one = table(name)
    text = plan_text(one, size=size)
    document, cores = parse_toml(text), re.search(r"^#   natgauge plan check --cores (\d+) ", text, re.MULTILINE)
    assert cores is not None
    with as_if(int(cores[1])):
        return points(parse({"name": name, **document}, name), name)


def printed(one: Table, kind: Kind) -> list[int]:
    """The numbers of the first row of a kind, known slips put right where connections are what ports make."""
    row = next(row for row in one.rows if row.kind == kind)
    return [round(number.value) for number in row.numbers() if number is not None]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_every_plan_is_right_where_it_is_meant_for(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    large = path.stem in PRINTED and not path.stem.endswith("-small")
    assert run(["plan", "check", "--cores", str(LARGE if large else 2), str(path)]) == 0
    assert run(["plan", "show", "--cores", str(LARGE if large else 2), str(path)]) == 0
    assert path.stem in PRINTED or f'name = "{path.stem}"' in path.read_text(encoding="utf-8")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", PRINTED)
def test_examples_of_published_tables_are_what_the_command_prints(name: str, ran: Ran) -> None:
    small = ["--small"] if name.endswith("-small") else []
    printed_plan = ran(["published", "--plan", *small, name.removesuffix("-small")]).out
    example = (EXAMPLES / f"{name}.toml").read_text(encoding="utf-8")
    assert example == f"# SPDX-License-Identifier: Apache-2.0\n{printed_plan}"


@pytest.mark.parametrize("name", PLANNED)
def test_the_full_plan_of_a_table_has_all_its_columns_and_no_trial_that_the_device_outlives(name: str) -> None:
    one, found = table(name), published_cells(name)
    left_out = LEFT_OUT.get(name, set())
    if one.axis != "none":
        assert len(found) == len({cell.device for cell in found}) * (one.width - len(left_out))
    taken = estimate(found)
    assert (taken.cut, taken.outlasting) == (0, ())


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", PLANNED)
def test_a_plan_names_each_cell_of_its_table_once_and_measures_it_with_the_settings_of_its_column(
    name: str, size: Size
) -> None:
    one, columns = table(name), table(name).shape.columns
    found = [
        (cell, planned, measurement)
        for planned in published_cells(name, size=size)
        for measurement in planned.measurements
        for cell in measurement.published
    ]
    left_out = LEFT_OUT.get(name, set())
    if one.axis == "cores" and size != "full":
        left_out = {at for at, cores in enumerate(printed(one, "cores")) if cores > 2}
    wanted = {(name, at + 1, quantity) for at in range(one.width) if at not in left_out for quantity in one.quantities}
    assert {(cell.table, cell.column, cell.quantity) for cell, _, _ in found} == wanted
    assert len(found) == len(wanted)
    for cell, planned, measurement in found:
        quantity, at = one.quantities[cell.quantity], cell.column - 1
        own = quantity.own or sources().figures.get(quantity.metric)
        metric = columns["metric"][at] if "metric" in columns else own.metric if own else quantity.metric
        assert measurement.metric == metric
        devices = (columns["device"][at],) if "device" in columns else sources().recipes.get(quantity.device)
        assert devices is None or planned.device in devices
        if "directions" in columns:
            assert measurement.settings["directions"] == columns["directions"][at]
        if one.axis == "cores":
            lab = planned.cell.kind_options
            cores = (
                getattr(lab, "cores_each", None)
                or getattr(lab, "guest_cores", None)
                or len(getattr(lab, "cores", None) or ())
            )
            assert cores == printed(one, "cores")[at]
        if one.axis == "connections" and size == "full" and one.row("source-ports"):
            ports = [
                int(each.value)
                for kind in ("source-ports", "destination-ports")
                if (row := one.corrected(*one.slips).row(kind)) and (each := row.numbers()[at])
            ]
            assert planned.connections == math.prod(ports)


@pytest.mark.parametrize("size", ["small", "guest"])
@pytest.mark.parametrize("name", PLANNED)
def test_a_smaller_plan_of_a_table_keeps_its_shape_and_takes_minutes(name: str, size: Size) -> None:
    one, full, small = table(name), published_cells(name), published_cells(name, size=size)
    assert {cell.cell.lab.lab for cell in small} == {"vm" if size == "guest" else "netns"}
    assert {cell.device for cell in small} == {cell.device for cell in full}
    assert [measurement.metric for measurement in small[0].measurements] == [
        measurement.metric for measurement in full[0].measurements
    ]
    if one.axis == "cores":
        assert {cell.values["cores"] for cell in small} == {1, 2}
    else:
        assert len(small) == len(full)
        ratios = [big.connections / little.connections for big, little in zip(full, small, strict=True)]
        # Numbers of ports are rounded; a guest has few of them.
        assert max(ratios) == pytest.approx(min(ratios), rel=0.25 if size == "guest" else 0.01)
    if one.row("table-size") is not None:
        # Plain forwarding has no table.
        assert all((cell.cell.device.table_size or math.inf) >= cell.connections for cell in small)
    taken = estimate(small)
    assert taken.seconds < 20 * 60
    assert (taken.device_octets or 0) < 2**30
    assert taken.cut == 0


@pytest.mark.parametrize("name", [name for name in PLANNED if table(name).row("error", "cps")])
def test_every_column_of_a_connection_rate_has_the_printed_error_and_experiments(name: str) -> None:
    one = table(name)
    left_out = LEFT_OUT.get(name, set())
    errors = [error for at, error in enumerate(printed(one, "error")) if at not in left_out]
    experiments = printed(one, "experiments") if one.row("experiments") else [10] * len(errors)
    found = [
        (measurement.settings["error"], measurement.repeat)
        for cell in published_cells(name)
        for measurement in cell.measurements
        if measurement.metric == "connection-rate"
    ]
    if name == "nat64-paper-table-22":
        # Its columns are devices and metrics; those of OpenBSD PF are left out.
        assert found == [(400, 10), (50, 10)]
    elif name == "scalability-draft-figure-11":
        # Its columns are values of alpha, and the last one has no validation.
        assert found == [(100, 10)]
    else:
        assert found == list(zip(errors, experiments, strict=True))


def test_a_throughput_that_adds_both_directions_has_half_of_the_printed_error() -> None:
    found = published_cells("nat64-paper-table-15")
    errors = {one.settings["directions"]: one.settings["error"] for one in found[0].measurements}
    assert printed(table("nat64-paper-table-15"), "error") == [100, 100, 100]
    assert errors == {"up": 100, "both": 50, "down": 100}


def test_bucket_counts_follow_from_a_printed_share_of_the_table() -> None:
    found = published_cells("v6ops-mail-table-1")
    assert [cell.cell.device.table_size for cell in found] == printed(table("v6ops-mail-table-1"), "table-size")
    assert [cell.cell.device.hash_size for cell in found] == [2**17, 2**21, 2**24, 2**26]


def has_no_jool(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine has every program, and every kernel module but those of Jool."""
    monkeypatch.setattr(support, "lacking", partial(
        support.lacking, has=lambda name: not name.startswith("jool"), find=lambda program: program
    ))  # fmt: skip


def test_plans_of_what_runs_here_are_written_into_a_folder(
    tmp_path: Path, ran: Ran, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    """Table 22 has columns of tayga, which runs here, and of Jool, which does not."""
    has_no_jool(monkeypatch)
    folder = tmp_path / "new" / "plans"
    said = ran(["published", "--plan", "--small", "--here", "--into", str(folder)])
    of_jool = {
        name
        for name in PLANNED
        if {cell.device for cell in published_cells(name)} <= {"jool-nat64", "464xlat-jool", "map-t-jool"}
    }
    written = {name: folder / f"{name}-small.toml" for name in PLANNED if name not in of_jool}
    assert "nat64-paper-table-22" in written
    assert said.out.splitlines() == [str(path) for path in written.values()]
    assert {*folder.iterdir()} == {*written.values()}
    for name, path in written.items():
        assert path.read_text(encoding="utf-8") == plan_text(table(name), size="small")
    left_out = said.err.splitlines()
    assert len(left_out) == len(names()) - len(written)
    golden(left_out)


def test_plans_of_what_runs_in_the_guest_have_the_tables_of_jool(tmp_path: Path, ran: Ran, golden: Golden) -> None:
    """Only Jool's branch for MAP-T is in no package of the guest."""
    said = ran(["published", "--plan", "--small", "--lab", "vm", "--here", "--into", str(tmp_path)])
    written = {name: tmp_path / f"{name}-guest.toml" for name in PLANNED if name != "scalability-draft-figure-17"}
    assert said.out.splitlines() == [str(path) for path in written.values()]
    for name, path in written.items():
        assert path.read_text(encoding="utf-8") == plan_text(table(name), size="guest")
        assert run(["plan", "check", "--cores", "2", str(path)]) == 0
    golden(said.err.splitlines())


def test_a_table_of_a_device_that_does_not_run_here_is_refused_in_one_line(
    ran: Ran, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    has_no_jool(monkeypatch)
    said = ran(["published", "--plan", "--here", "nat64-paper-table-11"], 3)
    assert said.out == ""
    golden(said.err)
    assert run(["published", "--plan", "--here", "nat64-paper-table-12"]) == 0


def test_named_tables_without_any_plan_are_an_error_and_others_of_them_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ran: Ran
) -> None:
    refused, written = REFUSED[0], PLANNED[0]
    assert run(["published", "--plan", "--into", str(tmp_path), refused]) in {2, 3}
    said = capsys.readouterr()
    assert (said.out, len(said.err.splitlines()), list(tmp_path.iterdir())) == ("", 1, [])
    assert "left out" not in said.err
    for named in ([refused, written], [written, refused]):
        said = ran(["published", "--plan", "--into", str(tmp_path), *named])
        assert said.out == f"{tmp_path / f'{written}.toml'}\n"
        assert said.err.endswith("; left out\n")


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path, ran: Ran) -> None:
    (tmp_path / "file").write_text("")
    assert (
        "published: --into: cannot write"
        in ran(["published", "--plan", "--into", str(tmp_path / "file"), "nat64-paper-table-12"], 2).err
    )


def test_the_list_and_the_view_say_whether_there_is_a_plan(ran: Ran, golden: Golden) -> None:
    listed = {line.split()[0]: line.split()[1] for line in ran(["published"]).out.splitlines()}
    assert listed == {name: "no" if name in REFUSED else "plan" for name in names()}
    shown = ran(["published", "nat64-paper-table-6", "nat64-paper-table-17"]).out
    assert "natgauge published --plan nat64-paper-table-6, or with --small" in shown
    golden(shown)


def test_the_site_says_for_every_table_whether_it_has_a_plan() -> None:
    page = site_files.generated()["published/README.md"]
    rows = [line.removesuffix(" |").split(" | ") for line in page.splitlines() if line.startswith("| [")]
    told = {cells[0].removeprefix("| [").split("]")[0]: cells[3] for cells in rows}
    assert {name for name, words in told.items() if words.startswith("no plan: needs ")} == {*REFUSED}
    assert told.keys() - {name for name, words in told.items() if words.startswith("plan")} == {*REFUSED}
    assert told["nat64-paper-table-23"].startswith("plan. The UDP time-out is 200 s instead of 100 s")


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("small", [[], ["--small"]])
def test_a_table_without_a_plan_is_refused_with_the_row_and_its_requirement(
    name: str, small: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (missing,) = table(name).missing
    assert run(["published", "--plan", *small, name]) == {"natgauge": 2, "host": 3}[missing.lacks]
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == f'natgauge: published: --plan {name}: row "{missing.row}" needs {missing.needs}\n'


@pytest.mark.parametrize("name", [name for name in PLANNED if "device" in table(name).shape.columns])
def test_the_devices_of_a_plan_have_columns_in_the_tables_shape(name: str) -> None:
    """The plan of Table 22 measured tayga before iptables, and its shape had columns of tayga before nftables."""
    assert {cell.device for cell in published_cells(name)} <= {*table(name).shape.columns["device"]}


def test_every_device_of_the_tables_that_has_recipes_names_existing_ones() -> None:
    devices = {quantity.device for name in PLANNED for quantity in table(name).quantities.values()}
    known = sources().recipes
    assert {recipe for recipes in known.values() for recipe in recipes} <= {*available()}
    assert {*known} <= devices


def test_a_laptop_is_done_within_a_quarter_of_an_hour() -> None:
    with as_if(2):
        found = points(read(EXAMPLES / "laptop.toml"))
        assert estimate(found).seconds < 13 * 60
    assert {point.device for point in found} == {"nftables-nat44", "iptables-nat44", "linux-ipv4"}
    assert len({point.connections for point in found}) == 2
    assert {point.values["cores"] for point in found} == {1, 2}


@pytest.mark.parametrize("figure", [4, 5])
def test_sessions_and_tear_down_have_the_parameters_of_figures_4_and_5(figure: int) -> None:
    theirs = table(f"scalability-draft-figure-{figure}")
    ours = published_cells(f"scalability-draft-figure-{figure}")
    ports = list(zip(printed(theirs, "source-ports"), printed(theirs, "destination-ports"), strict=True))
    with as_if(LARGE):
        made = [Bench(point.cell).traffic for point in ours]
    assert [(one.source_ports.count, one.destination_ports.count) for one in made] == ports
    assert [point.connections for point in ours] == [sources * others for sources, others in ports]
    assert [point.cell.device.table_size for point in ours] == printed(theirs, "table-size")
    assert [point.cell.device.hash_size for point in ours] == printed(theirs, "hash-size")
    for point, experiments in zip(ours, printed(theirs, "experiments"), strict=True):
        # An experiment of figure 5 empties one full and one empty table; one repetition has all of them.
        made_of = [
            measurement.settings.get("sample") if figure == 5 else measurement.repeat
            for measurement in point.measurements
        ]
        assert set(made_of) == {experiments}
    if figure == 5:
        assert {measurement.repeat for point in ours for measurement in point.measurements} == {1}
    metrics = {4: ["connection-rate", "throughput"], 5: ["tear-down-rate"]}[figure]
    assert [measurement.metric for measurement in ours[0].measurements] == metrics


def test_scale_up_has_the_parameters_of_figure_2() -> None:
    theirs = table("scalability-draft-figure-2")
    ours = published_cells("scalability-draft-figure-2")
    cores = printed(theirs, "cores")
    assert [(point.device, point.values["cores"]) for point in ours] == [
        (device, number) for device in ("iptables-nat44", "linux-ipv4") for number in cores
    ]
    for point, number in zip(ours[: len(cores)], cores, strict=True):
        with as_if(LARGE):
            made = Bench(point.cell).traffic
        assert isinstance(point.cell.kind_options, netns.NetnsOptions)
        assert len(point.cell.kind_options.cores or ()) == number
        assert {made.source_ports.count} == set(printed(theirs, "source-ports"))
        assert {made.destination_ports.count} == set(printed(theirs, "destination-ports"))
        assert {point.connections} == set(printed(theirs, "connections"))
        assert {point.cell.device.table_size} == set(printed(theirs, "table-size"))
        assert {point.cell.device.hash_size} == set(printed(theirs, "hash-size"))
        assert {measurement.repeat for measurement in point.measurements} == set(printed(theirs, "experiments"))
        assert [measurement.metric for measurement in point.measurements] == ["connection-rate", "throughput"]
    # Of forwarding they print the throughput only.
    assert {measurement.metric for point in ours[len(cores) :] for measurement in point.measurements} == {"throughput"}


def test_orders_have_the_frames_of_all_four_columns_of_table_23() -> None:
    theirs = table("nat64-paper-table-23")
    divisors: dict[Size, int] = {"full": 1, "small": 40, "guest": 800}
    for size, divisor in divisors.items():
        cells = published_cells("nat64-paper-table-23", size=size)
        planned = [one.planned.settings for cell in cells for one in cell.measurements]
        assert [one.order for one in planned] == ["increasing", "with-replacement", "with-replacement", "permutation"]
        assert [divisor * one.phase1_frames for one in planned] == printed(theirs, "phase-1-frames")


@pytest.mark.parametrize("size", SIZES)
def test_iptables_of_table_22_has_the_tables_and_the_time_out_of_table_12(size: Size) -> None:
    """Its columns without validation are the second ones of Tables 12 and 6."""
    found = [cell for cell in published_cells("nat64-paper-table-22", size=size) if cell.device.startswith("tayga")]
    other = published_cells("nat64-paper-table-12", size=size)[1]
    assert [cell.connections for cell in found] == [other.connections]
    for name in ("table_size", "hash_size", "udp_timeout"):
        assert [getattr(cell.cell.device, name) for cell in found] == [getattr(other.cell.device, name)], name


@pytest.mark.parametrize("size", ["small", "guest"])
def test_fewer_draws_have_the_time_out_of_table_23(size: Size) -> None:
    cells = published_cells("nat64-paper-table-23", size=size)
    assert {cell.cell.device.udp_timeout for cell in cells} == set(printed(table("nat64-paper-table-23"), "timeout"))
    assert "time-out" not in plan_text(table("nat64-paper-table-23"), size=size)


def test_csit_has_as_many_cores_as_its_testbeds() -> None:
    labs = [cell.cell.kind_options for cell in published_cells("csit-nat44-tcp-cps")]
    (most,) = {len(getattr(lab, "cores", None) or ()) for lab in labs}
    assert f"or {most} physical cores" in sources().machines["csit-2n-x710"].device


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", PLANNED)
def test_a_plan_says_who_answers_queries_and_who_shares_cores(name: str, size: Size) -> None:
    text = plan_text(table(name), size=size)
    assert ('far_side = "tester"' in text) == ("The tester answers the queries" in text)
    assert "have cores of their own" not in text or "cores_each" in text


@pytest.mark.parametrize("name", FROM_PORT_1)
def test_a_full_plan_says_where_its_source_ports_begin_and_what_limits_a_frame(name: str) -> None:
    text = plan_text(table(name), size="full")
    assert "The source ports begin at 1024; in the publication they begin at 1." in text
    searches = 'connection-rate"' in text or 'metric = "throughput"' in text
    assert ("A frame that takes longer than 20 ms counts as lost" in " ".join(text.split())) == searches


def test_alpha_has_the_values_of_figure_11_and_a_failed_validation_fails_its_trial() -> None:
    theirs = table("scalability-draft-figure-11")
    (cell,) = published_cells("scalability-draft-figure-11")
    validated = [one for one in cell.measurements if one.metric == "validated-connection-rate"]
    heading = next(row for row in theirs.rows if row.kind == "heading")
    assert [one.settings["alpha"] for one in validated] == [f"{float(each):.0%}" for each in heading.cells[:-1]]
    assert {one.settings["failed_validation"] for one in validated} == {"fail"}
    assert {one.repeat for one in cell.measurements} == set(printed(theirs, "experiments"))
    assert cell.connections == printed(theirs, "connections")[0]


def test_capacity_has_the_parameters_of_figure_6() -> None:
    theirs = table("scalability-draft-figure-6")
    (point,) = published_cells("scalability-draft-figure-6")
    (measurement,) = point.measurements
    told = " ".join(theirs.conditions)
    assert f"{point.cell.device.table_size:,}" in told
    assert point.cell.device.hash_size == point.cell.device.table_size
    # In the order in which they are printed there.
    given = [str(measurement.settings[name]) for name in ("capacity_error", "alpha", "beta", "gamma")]
    assert re.findall(r"= ([\d.]+)", told)[-4:] == given
    first, _, _, _, tried, _ = next(row for row in theirs.rows if row.kind == "median").numbers()
    assert first is not None
    assert tried is not None
    assert (measurement.settings["safe_connections"], point.connections) == (first.value, tried.value)
    assert f"{measurement.repeat} experiments" in told


def test_sessions_reach_three_million_and_the_hash_table_follows() -> None:
    found = cells_of("sessions", 2)
    assert (found[0].connections, found[-1].connections) == (10_000, 3_160_000)
    for point in found:
        assert point.cell.device.hash_size is not None
        assert point.connections <= point.cell.device.hash_size < 2 * point.connections
    assert (estimate(found).device_octets or 0) < 2 * 2**30


def test_one_plan_has_six_technologies_with_as_many_subscribers() -> None:
    found = points(read(EXAMPLES / "six-technologies.toml"))
    kinds = {cell.recipe.kind for cell in found}
    assert kinds == {"nat44", "464xlat", "map-t", "map-e", "ds-lite", "lw4o6", "nat64"}
    traffic = [Bench(cell.cell).traffic for cell in found]
    assert {plan.subscribers for plan in traffic} == {plan.sources for plan in traffic} == {5000}


# What a plan alone says before it is measured: doubts of its figures, placements, settings of the whole machine.

TWO = ("nftables-nat44", "docker-nat44")
MIXED = ("nftables-nat44", "openvswitch-nat44")


def written(folder: Path, gateways: tuple[str, ...], connections: str, lab: str = "", metric: str = "") -> Path:
    """A plan of the connection rate, or of another metric."""
    path = folder / "plan.toml"
    path.write_text(
        f"gateways = {[*gateways]}\nprofile = 'quick'\nrepetitions = 4\n[lab]\n{lab}\n"
        f"[series]\nconnections = [{connections}]\n[[measure]]\nmetric = '{metric or 'connection-rate'}'\n"
    )
    return path


def checked(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What `plan check` says of it, without time and memory."""
    assert run(["plan", "check", str(path)]) == 0
    return "\n".join(capsys.readouterr().out.splitlines()[4:]).replace(str(path), "plan.toml")


def numbers(said: str) -> list[int]:
    """The numbers of connections to take."""
    return [int(number.replace(",", "")) for number in re.findall(r"([\d,]+) connections make that", said)]


@pytest.mark.parametrize("gateways", [TWO, ("openvswitch-nat44",)], ids=["kernel", "process"])
def test_a_plan_whose_queues_will_raise_the_rate_says_how_many_connections_to_take(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], gateways: tuple[str, ...], golden: Golden
) -> None:
    """Seen: after six minutes the report said "up to 71.5 %" of each figure, and "at most" in each cell."""
    lab = 'placement = "isolated"'
    said = checked(written(tmp_path, gateways, "10_000, 20_000", lab), capsys)
    golden(said)
    (enough,) = numbers(said)
    assert enough > 20_000
    assert checked(written(tmp_path, gateways, str(enough), lab), capsys) == ""


def test_trials_that_are_too_short_for_the_tester_are_told_with_the_number_that_is_enough(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden, ran: Ran
) -> None:
    """Seen: "3 to 8 min" for 1,000 connections and "9 to 22 s" for 10,000: the first were refused, at any length."""
    path = written(tmp_path, TWO, "1_000, 10_000")
    said = checked(path, capsys)
    golden(said)
    enough = int(re.findall(r"choose at least ([\d,]+) connections", said)[0].replace(",", ""))
    assert enough < 10_000
    few, many = (of_cell(cell).seconds for cell in points(read(path))[:2])
    assert few < 2 * many
    assert ran(["plan", "show", str(path)]).out.count("no result: ") == 2
    assert checked(written(tmp_path, TWO, str(enough)), capsys) == ""


def test_a_plan_that_mixes_placements_says_so_and_names_the_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden, ran: Ran
) -> None:
    path = written(tmp_path, MIXED, "130_000")
    said = checked(path, capsys)
    golden(said)
    assert 'placement = "isolated"' in said
    shown = ran(["plan", "show", str(path)]).out
    assert (shown.count(", shared"), shown.count(", isolated")) == (1, 1)
    assert checked(written(tmp_path, MIXED, "130_000", 'placement = "isolated"'), capsys) == ""


def test_a_device_that_would_take_turns_with_the_tester_is_told_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    golden(checked(written(tmp_path, MIXED, "60_000", 'placement = "shared"', "throughput"), capsys))


def test_frames_that_are_too_few_for_a_worst_case_are_told_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    golden(checked(written(tmp_path, TWO, "50", metric="first-packet-delay"), capsys))
    assert checked(written(tmp_path, TWO, "5_000", metric="first-packet-delay"), capsys) == ""


def test_settings_of_the_whole_machine_that_a_plan_sets_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    """Seen: three waits of a run for a table size of another one, of which the plan's check had said nothing."""
    path = written(tmp_path, TWO, "60_000")
    assert checked(path, capsys) == ""
    path.write_text(f"{path.read_text()}[device]\nhash_size = 65536\nudp_timeout = 60\n")
    golden(checked(path, capsys))


@pytest.mark.parametrize("gateways", [TWO, ("openvswitch-nat44",), MIXED], ids=["kernel", "process", "both"])
def test_the_plan_of_the_template_has_no_doubts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], gateways: tuple[str, ...]
) -> None:
    """Seen: its 1,000 and 10,000 connections gave nothing but bounds, and both placements in one table."""
    assert run(["plan", "new", *(word for name in gateways for word in ("--gateway", name))]) == 0
    path = tmp_path / "new.toml"
    path.write_text(capsys.readouterr().out)
    assert checked(path, capsys) == ""
