# SPDX-License-Identifier: Apache-2.0
"""The plans of examples/: right, and where they mirror a published table, with its parameters."""

from __future__ import annotations

from pathlib import Path

import pytest

from natgauge.bench.bench import Bench
from natgauge.campaigns.cells import PlannedCell, points
from natgauge.campaigns.estimate import estimate
from natgauge.campaigns.plan import read
from natgauge.cli import run
from natgauge.host.cpus import as_if
from natgauge.labs import netns
from natgauge.published.load import table
from natgauge.published.model import Kind, Table

EXAMPLES = Path(__file__).parents[2] / "examples"
LARGE = 32


def cells_of(name: str, cores: int = LARGE) -> tuple[PlannedCell, ...]:
    with as_if(cores):
        return points(read(EXAMPLES / f"{name}.toml"), name)


def printed(one: Table, kind: Kind) -> list[int]:
    """The numbers of the first row of a kind, known slips put right where connections are what ports make."""
    row = next(row for row in one.rows if row.kind == kind)
    return [round(number.value) for number in row.numbers() if number is not None]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_every_plan_is_right_where_it_is_meant_for(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    large = path.stem.startswith("draft-") and not path.stem.endswith("-small")
    assert run(["plan", "check", "--cores", str(LARGE if large else 2), str(path)]) == 0
    assert run(["plan", "show", "--cores", str(LARGE if large else 2), str(path)]) == 0
    assert f'name = "{path.stem}"' in path.read_text(encoding="utf-8")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*small.toml")), ids=lambda path: path.stem)
def test_small_plans_take_minutes(path: Path) -> None:
    with as_if(2):
        taken = estimate(points(read(path)))
    assert taken.seconds < 6 * 60
    assert (taken.device_octets or 0) < 2**30


def test_a_laptop_is_done_within_a_quarter_of_an_hour() -> None:
    with as_if(2):
        found = points(read(EXAMPLES / "laptop.toml"))
        assert estimate(found).seconds < 13 * 60
    assert {point.device for point in found} == {"nftables-nat44", "iptables-nat44", "tayga-nat64", "linux-ipv4"}
    assert len({point.connections for point in found}) == 3
    assert {point.values["cores"] for point in found} == {1, 2}


@pytest.mark.parametrize("figure", [4, 5])
def test_sessions_and_tear_down_have_the_parameters_of_figures_4_and_5(figure: int) -> None:
    theirs = table(f"scalability-draft-figure-{figure}")
    ours = cells_of(f"draft-figure-{figure}")
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
    ours = cells_of("draft-figure-2")
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


def test_capacity_has_the_parameters_of_figure_6() -> None:
    theirs = table("scalability-draft-figure-6")
    (point,) = cells_of("draft-figure-6")
    (measurement,) = point.measurements
    told = " ".join(theirs.conditions)
    assert f"{point.cell.device.table_size:,}" in told
    assert point.cell.device.hash_size == point.cell.device.table_size
    # In the order in which they are printed there.
    given = (measurement.settings[name] for name in ("capacity_error", "alpha", "beta", "gamma"))
    assert "E = {}; alpha = {}; beta = {}; gamma = {}".format(*given) in told
    first, _, _, _, tried, _ = next(row for row in theirs.rows if row.kind == "median").numbers()
    assert first is not None
    assert tried is not None
    assert (measurement.settings["safe_connections"], point.connections) == (first.value, tried.value)
    assert f"{measurement.repeat} experiments" in told


def test_sessions_reach_twenty_million_and_the_hash_table_follows() -> None:
    found = cells_of("sessions", 2)
    assert (found[0].connections, found[-1].connections) == (10_000, 20_000_000)
    for point in found:
        assert point.cell.device.hash_size is not None
        assert point.connections <= point.cell.device.hash_size < 2 * point.connections
    assert (estimate(found).device_octets or 0) < 20 * 2**30
