# SPDX-License-Identifier: Apache-2.0
"""Plans: refused as a whole before anything is touched, one line per fault with the key's path."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

import pytest
from tests.unit.campaigning import SUBSCRIBER, Benches
from tests.unit.conftest import Ran
from tests.unit.golden import Golden

from natgauge.campaigns import campaign
from natgauge.campaigns.cells import PlannedCell, points
from natgauge.campaigns.estimate import CELL_RUN_SECONDS, estimate, repetitions
from natgauge.campaigns.keys import evaluate
from natgauge.campaigns.plan import PlanError, at_path, parse, read
from natgauge.cli import run
from natgauge.durations import likely
from natgauge.errors import UsageError
from natgauge.gateways.recipe import Recipe, load
from natgauge.host import limits
from natgauge.host.cpus import as_if, usable_cpus
from natgauge.procedures import procedures
from natgauge.spread.resources import MACHINE_WIDE, needs
from natgauge.trial.server import ALONE_SECONDS

EXAMPLE = Path(__file__).parents[2] / "examples" / "laptop.toml"
pytestmark = pytest.mark.usefixtures("four_cores")

RIGHT: dict[str, Any] = {
    "name": "right",
    "gateways": ["nftables-nat44", "linux-ipv4"],
    "profile": "quick",
    "repetitions": 3,
    "lab": {"placement": "isolated"},
    "traffic": {"frame_size": 128},
    "device": {"hash_size": "2^ceil(log2(N))", "udp_timeout": 400},
    "series": {"connections": [1000, 5000], "directions": ["both", "up"]},
    "measure": [{"metric": "table-capacity"}, {"metric": "throughput"}, {"metric": "connection-rate", "error": "5%"}],
}


FEW_AND_MANY: dict[str, Any] = {
    "series": {},
    "traffic": {},
    "point": [{"name": "few", "connections": 1000}, {"name": "many", "connections": 9000}],
}
CONNECTION_RATE: dict[str, Any] = {
    "gateways": ["nftables-nat44"], "series": {}, "device": {}, "traffic": {"connections": 4096},
    "measure": [{"metric": "connection-rate"}],
}  # fmt: skip
#: Formulas of N and of 2N that fill a name.
LONG = {"hash_size": "N" + "-0" * 95, "table_size": "N+N" + "-0" * 90}
WIRE: dict[str, Any] = {
    "lab": "wire", "initiator_port": "a", "initiator_gateway": "10.0.0.1", "responder_port": "b",
    "responder_gateway": "198.19.0.1", "device_timeout": 30, "reboot_command": "boot $NG_CORES",
}  # fmt: skip
SSH: dict[str, Any] = {
    "lab": "ssh", "boot_seconds": 60.0, "boot_command": "boot $NG_CORES", "ssh_host": "root@router",
    "device_inside": "x", "device_outside": "y", "initiator_port": "a",
    "responder_port": "b",
}  # fmt: skip
#: A gateway whose knobs are left alone.
ONE: dict[str, Any] = {"gateways": ["nftables-nat44"], "device": {}, "measure": RIGHT["measure"][1:]}
SEVERAL: dict[str, Any] = {
    **CONNECTION_RATE,
    "traffic": {},
    "measure": [{"metric": "connection-rate"}, {"metric": "validated-connection-rate"}],
}
#: Of the second cell one result would be in the folder of the first one's.
ONE_FOLDER: list[dict[str, Any]] = [{"name": "a", "connections": 1000}, {"name": "a-validated", "connections": 2000}]
NAT64_PREFIX: dict[str, Any] = {**CONNECTION_RATE, "traffic": {}, "lab": {"nat64_prefix": "64:ff9b::/96"}}
#: Metrics, and a rate or a time of theirs.
RATES = {
    "throughput": "connection_rate", "frame-loss": "full_rate", "latency": "throughput_rate",
    "table-capacity": "download_rate", "pdv": "frame_timeout_seconds",
}  # fmt: skip


def without(lab: dict[str, Any], command: str) -> dict[str, Any]:
    """A lab in which nothing changes the number of cores."""
    return {name: value for name, value in lab.items() if name not in (command, "boot_seconds")}


def test_a_recipe_that_other_cells_look_at_is_read_once_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan of 17 gateways read 776 recipes for 100 cells, to see which devices have its knobs."""
    read_ones: list[str] = []

    def counted(device: str) -> Recipe:
        read_ones.append(device)
        return load(device)

    monkeypatch.setattr("natgauge.campaigns.cells.load", counted)
    gateways = ["linux-ipv4", "linux-ipv6", "nftables-nat44"]
    series = {"connections": [1000, 2000, 3000, 4000]}
    planned = cells(gateways=gateways, series=series, measure=[{"metric": "throughput"}])
    assert len(planned) == 12
    # Each cell reads its own recipe; the others are read once for those that have not all knobs of the plan.
    assert len(read_ones) <= len(planned) + len(gateways)


def cells(**changed: Any) -> tuple[PlannedCell, ...]:
    return points(parse({**copy.deepcopy(RIGHT), **changed}, "x.toml"), "x.toml")


def faults(**changed: Any) -> list[str]:
    with pytest.raises(PlanError) as refused:
        cells(**changed)
    assert not [fault for fault in refused.value.faults if "\n" in fault]
    return refused.value.faults


#: What the cells of a plan have, and what the plan says otherwise than the right one.
CELLS: dict[str, dict[str, Any]] = {
    "devices times series, and settings in the series as measurements": {"measure": RIGHT["measure"][1:]},
    "first what a metric builds on, and last what may end the device": {
        **CONNECTION_RATE,
        "measure": [
            {"metric": metric}
            for metric in (
                *("table-capacity", "tear-down-rate", "latency", "throughput"),
                *("expiry", "connection-rate", "frame-loss"),
            )
        ],
    },
    "formulas of their connections, where the device has the knob": {
        "measure": RIGHT["measure"][2:],
        "series": {"connections": [1000, 5000]},
        "device": {"hash_size": "2*N"},
    },
    "formulas of the connections that ranges make": {
        **CONNECTION_RATE,
        "traffic": {},
        "series": {"source_ports": ["1024-2023", "1024-3023"]},
        "device": {"hash_size": "2^ceil(log2(N))"},
    },
    "a NAT64 prefix where the gateway has one": {**NAT64_PREFIX, "gateways": ["nftables-nat44", "tayga-nat64"]},
    "keys that change together, with repetitions and a name of their own": {
        "measure": [{"metric": "connection-rate"}],
        "gateways": ["nftables-nat44"],
        "series": {"frame_size": [64, 256]},
        "traffic": {},
        "point": [
            {"name": "few", "source_ports": "1024-1123", "destination_ports": "1-10"},
            {"source_ports": "1024-1223", "destination_ports": "1-20", "repetitions": 7},
        ],
    },
    "measurements of some devices": {
        "measure": [{"metric": "throughput"}, {"metric": "connection-rate", "gateways": ["nftables-nat44"]}]
    },
    "measurements of some points": {
        **FEW_AND_MANY,
        "gateways": ["nftables-nat44"],
        "measure": [{"metric": "connection-rate"}, {"metric": "throughput", "points": ["few"]}],
    },
    "two measurements that differ in anything": {
        "measure": [{"metric": "throughput", "repeat": number} for number in (1, 2)],
        "series": {},
    },
    # The number is not limited by the cores of the tester's machine.
    **{
        f"the device's cores wherever it is: {lab['lab']}": {**ONE, "lab": lab, "series": {"cores": [1, 48]}}
        for lab in ({"lab": "vm"}, SSH, WIRE)
    },
}


@pytest.mark.parametrize("what", CELLS)
def test_cells_have(what: str, golden: Golden) -> None:
    golden([described(point) for point in cells(**CELLS[what])])


def described(point: PlannedCell) -> str:
    """A cell in a line: its values, what its device and its lab have, and its measurements."""
    options = point.cell.kind_options
    own = {
        "connections": point.connections, "hash_size": point.cell.device.hash_size,
        "frame_size": point.cell.traffic.frame_size, "nat64_prefix": point.cell.lab.nat64_prefix,
        "cores": getattr(options, "guest_cores", None) or getattr(options, "device_cores", None),
    }  # fmt: skip
    measured = [f"{one.name} {one.repeat} of {one.most_repetitions}" for one in point.measurements]
    return f"{point.name} {dict(point.values)}: {own}; {', '.join(measured)}"


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("2^ceil(log2(N))", 131072),
        ("N*4//3", 133333),
        ("max(N, 2^20) + 1", 1048577),
        ("N", 100000),
        ("floor(N/7)", 14285),
        ("3^40", 12_157_665_459_056_928_801),
        ("2^0.5 * 2^0.5 // 1", 2),
    ],
)
def test_formulas(formula: str, value: int) -> None:
    assert evaluate(formula, 100_000) == value


@pytest.mark.parametrize(
    "formula",
    [
        "N/3", "-N", "1/0", "log2(0)", "M", "N.real", "__import__('os')", "9^9^9", "2^(2^10)", "[N][0]",
        "N if N else 1", "True", "'a'", "", "N;N", "1e999", "min(N, key=N)", "(" * 150, "N" * 300, "lambda: N", "1j",
    ],
)  # fmt: skip
def test_what_is_no_formula_is_refused_in_one_line(formula: str) -> None:
    with pytest.raises(UsageError, match="formula") as refused:
        evaluate(formula, 1000)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize(
    "changed",
    [
        {"colour": 1},
        {"profile": "fast"},
        {"gateways": []},
        {"gateways": ["nftables-nat4"]},
        {"gateways": ["linux-ipv4", "linux-ipv4"]},
        {"measure": [{}]},
        {"measure": [{"metric": "thruput"}]},
        {"measure": [{"metric": "throughput", "eror": 1}]},
        {"measure": [{"metric": "throughput", "error": "x"}]},
        {"measure": [{"metric": "throughput", "confirm": 1}]},
        {"lab": {"placment": "shared"}},
        {"lab": {"placement": "up"}},
        {"lab": {"empty_command": "x"}},
        {"traffic": {"frame_size": 10}},
        {"traffic": {"frame_size": "64"}},
        {"traffic": {"source_ports": "9-1"}},
        {"device": {"hash_size": "2^log(N)"}},
        {"device": {"udp_timeout": True}},
        {"series": {"connections": [0]}},
        {"series": {"connections": [1, 1]}},
        {"series": {"connections": []}},
        {"series": {"frame_size": [64]}},
        {"series": {"cores": [4096]}},
        {"series": {"cores": [0]}},
        {"series": {"burst_frames": [1]}},
        {"series": {"way": ["rfc8219"]}},
        {"series": {"connections": list(range(1, 1001)), "frame_size": list(range(64, 80))}},
        {"repetitions": 0},
        {"point": [{}]},
        {"point": [{"name": "a b", "order": "increasing"}]},
        {"point": [{"repetitions": 0, "order": "increasing"}]},
        {"point": [{"ordr": 1}]},
        {"point": [{"order": "up"}]},
        {"point": [{"frame_size": 64}]},
        {"point": [{"connections": 64}]},
        {"point": [{"order": "increasing"}] * 2},
        {"point": [{"order": "increasing"}, {"order": "decreasing", "table_size": 8192}]},
        {"point": [{"source_ports": "1024-1025", "destination_ports": "1-10"}]},
        {"published": "A"},
        {"point": [{"order": "increasing", "columns": [1]}]},
        {"published": "a", "point": [{"order": "increasing", "columns": [0]}]},
        {"published": "a", "measure": [{"metric": "throughput", "quantities": "x", "columns": [1]}]},
        {"published": "a", "measure": [{"metric": "throughput", "quantities": ["x"]}]},
        {"published": "a", "measure": [{"metric": "throughput", "columns": [1]}]},
        {"measure": [{"metric": "throughput", "gateways": []}]},
        {"measure": [{"metric": "throughput", "gateways": ["linux-ipv5"]}]},
        {"measure": [{"metric": "throughput", "gateways": 5}]},
        {"measure": [{"metric": "throughput", "gateways": ["linux-ipv4"]}]},
        {"measure": [{"metric": "throughput", "error": "5%"}] * 3},
        {"series": {"udp_timeout": [400]}, "device": {}},
        {"gateways": ["linux-ipv4"], "device": {"udp_timeout": 9}},
        {
            "gateways": ["bind9-dns64"],
            "series": {},
            "device": {},
            "traffic": {"frame_size": 10},
            "measure": [{"metric": "resolution-rate"}],
        },
        # Seen: a recipe was to be renamed.
        {**CONNECTION_RATE, "traffic": {}, "point": [{"name": "few", "connections": at} for at in (1000, 2000)]},
        {**CONNECTION_RATE, "point": [{"hash_size": "2*N"}, {"hash_size": "2+N"}]},
        {**CONNECTION_RATE, "series": {"hash_size": ["2*N", "N", "2+N"]}},
        # Seen: the second result replaced the first one, whose evidence was lost.
        {**SEVERAL, "point": ONE_FOLDER},
        # Seen: the first repetition was measured, and then could not be stored.
        {**CONNECTION_RATE, "point": [LONG]},
        NAT64_PREFIX,
        *(
            {**FEW_AND_MANY, "gateways": ["nftables-nat44"], "measure": [{"metric": "throughput", "points": named}]}
            for named in (["few", "mani"], "few", 7, ["few"])
        ),
        *(
            {"lab": lab, "series": {"cores": [cores]}}
            for lab, cores in (
                (SSH, "0-1"),
                ({**SSH, "device_cores": 2}, 2),
                ({"lab": "vm"}, 65),
                ({**SSH, "boot_command": " "}, 2),
                ({**SSH, "boot_seconds": 0.5}, 2),
            )
        ),
        # Each step would be measured on the same cores, and recorded with others.
        {**ONE, "lab": without(WIRE, "reboot_command"), "series": {"cores": [1, 2]}},
        {**ONE, "lab": without(SSH, "boot_command"), "series": {"cores": [1, 2]}},
        # Times that follow from them are more than a float holds: a traceback.
        *(
            {**CONNECTION_RATE, "traffic": {"frame_size": 128}, "lab": {}, "measure": [{"metric": metric, name: value}]}
            for value in (5e-324, 1e-310)
            for metric, name in RATES.items()
        ),
    ],
)
def test_every_fault_is_one_line_with_its_keys_path(changed: dict[str, Any], golden: Golden) -> None:
    changed = {"measure": RIGHT["measure"][1:], **changed}
    if "series" in changed and "frame_size" in changed["series"] and len(changed["series"]) > 1:
        changed["traffic"] = {}
    golden(faults(**changed))


@pytest.mark.parametrize(
    ("path", "told", "at", "line"),
    [
        (
            "measure[0].subscriber: ",
            "subscriber: x.toml: is none",
            "subscriber",
            "measure[0].subscriber: x.toml: is none",
        ),
        ("lab.nat64_prefix: ", "NAT64 prefix: no", "nat64_prefix", "lab.nat64_prefix: no"),
        ("series.cores[0]: ", "cores: 9", "cores", "series.cores[0]: 9"),
        ("gateways[0]: ", "guest cores: 9", "guest_cores", "gateways[0]: guest cores: 9"),
        ("", "cores: 9", "cores", "cores: 9"),
        ("measure[0]: ", "throughput: no", "", "measure[0]: throughput: no"),
    ],
)
def test_a_key_is_named_once_in_the_line_of_its_fault(path: str, told: str, at: str, line: str) -> None:
    assert at_path(path, UsageError(told, at=at)) == line


def test_what_lies_next_to_a_fault_is_right() -> None:
    alike = [{"name": "product", "hash_size": "2*N"}, {"hash_size": "2+N"}]
    assert len(cells(**CONNECTION_RATE, point=alike)) == 2
    assert len(cells(**SEVERAL, point=[ONE_FOLDER[0], {**ONE_FOLDER[1], "name": "b"}])) == 2
    (cell,) = cells(**CONNECTION_RATE, point=[{"name": "short", **LONG}])
    assert cell.name == "nftables-nat44-short"
    for lab, command in ((WIRE, "reboot_command"), (SSH, "boot_command")):
        (cell,) = cells(**ONE, lab=without(lab, command), series={"cores": [2]})
        assert cell.values == {"cores": 2}


def test_all_faults_are_told_at_once() -> None:
    found = faults(
        colour=1,
        profile="fast",
        lab={"placement": "up", "x": 1},
        series={"connections": ["x", 5]},
        measure=[{"metric": "nothing"}, {"metric": "throughput", "nothing": 1}],
    )
    assert len(found) == 7


def test_a_wrong_measurement_hides_no_fault_of_others_and_of_gateways(tmp_path: Path, ran: Ran, golden: Golden) -> None:
    path = tmp_path / "x.toml"
    path.write_text(
        'gateways = ["nftables-nat44", "nftables-nat4", "linux-ipv4"]\n[lab]\nplacement = "shared"\n'
        "[traffic]\nconnections = 1000\n"
        '[[measure]]\nmetric = "throughput"\nerror = "0%"\n'
        '[[measure]]\nmetric = "throughput"\ngroup_seconds = 3.0\n'
        '[[measure]]\nmetric = "throughput"\ngroups = 2000\n'
        '[[measure]]\nmetric = "latency"\ndown_share = 0.1\ndirections = "up"\n'
    )
    golden(ran(["plan", "check", str(path)], 2).err)


def test_the_frames_of_a_subscriber_are_those_of_its_own_profile(tmp_path: Path) -> None:
    text = "[subscriber]\nconnections = 1\nnew_per_second = 1\nup_frames_per_second = 1\nup_frame_sizes = 200\n"
    file = tmp_path / "mine.toml"
    of_profile: dict[str, Any] = {
        "gateways": ["nftables-nat44"], "series": {}, "device": {}, "lab": {},
        "measure": [{"metric": "subscribers", "subscriber": str(file), "error": "5%"}],
    }  # fmt: skip
    for transport in ("udp", "tcp"):
        file.write_text(f"{text}transport = '{transport}'\n")
        for traffic in ({}, {"frame_size": 200}):
            (point,) = cells(**of_profile, traffic=traffic)
            assert (point.cell.traffic.frame_size, point.cell.traffic.transport) == (200, transport)
    (fault,) = faults(**of_profile, traffic={"frame_size": 594})
    assert fault.startswith("x.toml: traffic.frame_size: 594, but the profile")
    # After another measurement it was measured with the frames of that one.
    (fault,) = faults(**{**of_profile, "measure": [{"metric": "throughput"}, *of_profile["measure"]]})
    assert fault.startswith("x.toml: measure[1]: subscribers: its frames follow from its profile")


def test_a_profile_whose_frames_a_gateway_cannot_have_is_the_fault_of_its_measurement(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(
        "[subscriber]\nconnections = 20\nnew_per_second = 1\nup_frames_per_second = 1\nup_frame_sizes = 64\n"
    )
    measured = {"metric": "subscribers", "subscriber": str(file)}
    # A formula asks for the connections of the cell.
    for device in ({}, {"hash_size": "2^ceil(log2(N))"}):
        (fault,) = faults(gateways=["jool-nat64"], traffic={}, device=device, series={}, measure=[measured])
        assert fault.startswith(f"x.toml: measure[0].subscriber: {file}: frame size: 64 octets")


@pytest.mark.parametrize(
    "text",
    [
        "gateways = [",
        "\x00",
        "gateways = 'x'",
        "[[gateways]]",
        "a" * 10_000,
        'gateways = ["./mine.toml"]\n[[measure]]\nmetric = "throughput"\n',
    ],
)
def test_a_file_that_is_no_plan_or_whose_recipe_is_missing_is_refused_in_a_line_for_each_fault_and_touches_nothing(
    tmp_path: Path, ran: Ran, text: str
) -> None:
    path = tmp_path / "x.toml"
    path.write_text(text)
    captured = ran(["plan", "check", str(path)], 2)
    assert captured.out == ""
    assert all(line.startswith(f"natgauge: {path}: ") for line in captured.err.splitlines())
    assert ("./mine" not in text) or f"gateways[0]: {tmp_path}/mine.toml" in captured.err
    assert run(["run", str(path), "--out", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()


def test_a_plan_is_the_same_from_whichever_folder_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen: a campaign could not be resumed from another folder, for its gateways had changed."""
    text = 'gateways = ["./mine.toml", "linux-ipv4"]\n[[measure]]\nmetric = "latency"\ngateways = ["./mine.toml"]\n'
    (tmp_path / "x.toml").write_text(f'{text}[[measure]]\nmetric = "throughput"\n')
    (tmp_path / "deeper").mkdir()
    monkeypatch.chdir(tmp_path)
    here = read(Path("x.toml"))
    monkeypatch.chdir("deeper")
    there = read(Path("../x.toml"))
    assert there.gateways == ["../mine.toml", "linux-ipv4"]
    assert here.digest == there.digest == read(tmp_path / "x.toml").model_copy(update={"repetitions": None}).digest
    assert here.content() == there.content() == here.model_dump(mode="json")


@pytest.mark.parametrize("part", ['[series]\nsubscriber = ["mine.toml"]', 'subscriber = "mine.toml"'])
def test_the_profile_of_a_subscriber_is_beside_the_plan_from_whichever_folder_it_is_read(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was looked for in the folder in which natgauge was started, where another one may be."""
    plans = tmp_path / "plans"
    plans.mkdir()
    (plans / "mine.toml").write_text(f"{SUBSCRIBER}up_frame_sizes = 200\n")
    (tmp_path / "mine.toml").write_text(f"{SUBSCRIBER}up_frame_sizes = 300\n")
    (plans / "x.toml").write_text(f'gateways = ["nftables-nat44"]\n[[measure]]\nmetric = "subscribers"\n{part}\n')
    found = set()
    for folder in (tmp_path, plans):
        monkeypatch.chdir(folder)
        plan = read(Path(os.path.relpath(plans / "x.toml")))
        (point,) = points(plan, "x.toml")
        found.add((point.cell.traffic.frame_size, plan.digest, *[one.name for one in point.measurements]))
    assert len(found) == 1
    assert next(iter(found))[0] == 200


def test_the_configuration_of_ssh_is_beside_the_plan(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("Host router\n")
    lab = {**SSH, "device_cores": 2, "ssh_config": "hosts"}
    plan = parse({**copy.deepcopy(RIGHT), **ONE, "lab": lab, "series": {}}, "x", tmp_path)
    (point,) = points(plan, "x")
    assert getattr(point.cell.kind_options, "ssh_config", None) == str(tmp_path / "hosts")
    assert plan.content()["lab"]["ssh_config"] == "hosts"


def test_a_plan_for_another_machine_is_checked_as_if_this_were_it(tmp_path: Path, ran: Ran, golden: Golden) -> None:
    path = tmp_path / "x.toml"
    path.write_text(
        'gateways = ["nftables-nat44"]\n[lab]\nplacement = "isolated"\ncores = 64\n[[measure]]\nmetric = "throughput"\n'
    )
    golden(ran(["plan", "check", str(path)], 2).err)
    before = usable_cpus()
    assert run(["plan", "check", "--cores", "65", str(path)]) == 0
    assert run(["plan", "check", "--cores", "0", str(path)]) == 2
    assert usable_cpus() == before


@pytest.mark.parametrize(
    ("lab", "left_out"),
    [
        ({"lab": "vm"}, ", without making labs (vm)"),
        ({**SSH, "device_cores": 2}, ", without making labs (ssh)"),
        (WIRE, ""),
        ({}, ""),
    ],
)
def test_an_estimate_says_which_labs_are_made_in_a_time_that_it_does_not_know(
    lab: dict[str, Any], left_out: str
) -> None:
    """Seen: a plan whose guests boot for most of its time was said to take minutes."""
    found = estimate(cells(lab=lab, series={"connections": [1000, 5000]}, **ONE))
    assert found.likely == likely(found.seconds, found.most_seconds) + left_out


def test_a_device_on_two_machines_is_two_devices() -> None:
    """They may be of different versions."""
    lab = {name: value for name, value in SSH.items() if name != "ssh_host"}
    point = [{"name": host, "ssh_host": f"root@{host}", "cores": 1} for host in ("a", "b")]
    found = cells(lab=lab, series={"connections": [1000, 5000]}, point=point, **ONE)
    assert [cell.one_device == found[0].one_device for cell in found] == [True, True, False, False]


def test_a_plan_of_more_memory_than_there_is_says_so(
    tmp_path: Path, ran: Ran, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    path = tmp_path / "x.toml"
    path.write_text(
        'gateways = ["nftables-nat44"]\n[traffic]\nconnections = 1000000\n[[measure]]\nmetric = "throughput"\n'
    )
    for mebibytes in (100, 100_000):
        monkeypatch.setattr(limits, "memory_octets", lambda _, octets=mebibytes * 2**20: octets)
        golden(ran(["plan", "check", str(path)]).out)
    # Nobody knows how much another machine has.
    monkeypatch.setattr(limits, "memory_octets", lambda _: 1)
    assert "available here" not in ran(["plan", "check", "--cores", "4", str(path)]).out


def test_the_table_limits_what_the_estimate_finds() -> None:
    """With a table of no end the search for its capacity would end at its first step."""
    capacity = [{"metric": "table-capacity"}]
    common: dict[str, Any] = {"gateways": ["nftables-nat44"], "measure": capacity, "series": {}}
    found = [
        estimate(cells(**common, traffic={"connections": 8000}, device={"table_size": size})).trials
        for size in (8000, 4000)
    ]
    assert found[0] < found[1]


def test_the_example_for_workers_has_cells_for_several_of_them() -> None:
    plan = read(EXAMPLE.with_name("spread.toml"))
    found = [needs(plan, point) for point in points(plan.model_copy(update={"seed": 1}))]
    assert [MACHINE_WIDE in one for one in found] == [True] * 3 + [False] * 6
    assert {one["cores"] for one in found} == {1.0}


def test_a_new_plan_is_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "new", "--gateway", "tayga-nat64", "--metric", "latency"]) == 0
    path = tmp_path / "new.toml"
    path.write_text(capsys.readouterr().out)
    # Seen: a placement that was named kept gateways of processes from their own default.
    assert "placement" not in read(path).lab
    assert [(point.device, point.measurements[0].name) for point in points(read(path))] == [
        ("tayga-nat64", "latency")
    ] * 2
    assert run(["plan", "new", "--gateway", "nothing"]) == 2


@pytest.mark.parametrize("metric", sorted(procedures()))
def test_every_metric_is_estimated(metric: str) -> None:
    placement = "shared" if metric == "cost" else "isolated"
    plain = {**CONNECTION_RATE, "measure": [{"metric": metric}], "lab": {"placement": placement}}
    (point,) = cells(**plain)
    once = estimate([point])
    assert once.trials >= 3
    assert 0 < once.seconds < 3600
    (more,) = cells(**plain, repetitions=6)
    assert estimate([more]).trials == 2 * once.trials


def test_a_server_is_measured_alone_once_for_all_repetitions() -> None:
    measure = [{"metric": "resolution-rate", "most_seconds": 600, "far_side": "knot"}]
    plain: dict[str, Any] = {"series": {}, "traffic": {"connections": 1000}, "device": {}, "measure": measure}
    with as_if(2):
        (point,) = cells(**plain, gateways=["nftables-nat44"], lab={"placement": "shared"}, repetitions=4)
        once = repetitions(point)["resolution-rate"].seconds
    assert 0 < once < ALONE_SECONDS
    assert estimate([point]).seconds == pytest.approx(4 * (once + CELL_RUN_SECONDS) + once)


def test_the_layout_of_the_file_is_no_part_of_the_plan() -> None:
    first = parse(RIGHT, "x")
    assert first.digest == parse(dict(reversed(RIGHT.items())), "y").digest
    assert first.digest != parse({**RIGHT, "repetitions": 4}, "x").digest


def test_the_plan_of_the_documentation_is_right_and_takes_what_it_says(
    tmp_path: Path, ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (EXAMPLE.parents[1] / "docs" / "campaigns.md").read_text(encoding="utf-8")
    (tmp_path / "first.toml").write_text(page.split("```toml\n")[1].split("```")[0])
    monkeypatch.chdir(tmp_path)
    assert ran(["plan", "check", "first.toml"]).out in page


RFC = """
gateways = ["jool-nat64"]
profile = "{profile}"
repetitions = 10

[traffic]
connections = {connections}

[[measure]]
metric = "connection-rate"
"""


def checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], profile: str, connections: int, more: str = ""
) -> list[str]:
    """The lines of `natgauge plan check`."""
    path = tmp_path / "plan.toml"
    path.write_text(RFC.format(profile=profile, connections=connections) + more)
    assert run(["plan", "check", str(path)]) == 0
    return capsys.readouterr().out.splitlines()


def test_memory_that_a_recipe_does_not_tell_is_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    (memory,) = (line for line in checked(tmp_path, capsys, "quick", 10_000) if line.startswith("  memory"))
    golden(memory)


def test_a_plan_whose_trials_outlast_a_time_out_of_the_user_alone_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden, ran: Ran
) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(RFC.format(profile="rfc", connections=1_600_000_000) + "\n[device]\nudp_timeout = 2430\n")
    (said,) = ran(["plan", "check", str(path)], 2).err.splitlines()
    # `natgauge run` has the same rule, and makes no folder.
    with pytest.raises(PlanError) as refused:
        campaign.run(campaign.RunOrder(plan=path, out=tmp_path / "out"), make_bench=Benches())
    assert [f"natgauge: {fault}" for fault in refused.value.faults] == [said]
    assert not (tmp_path / "out").exists()
    golden(said)
    # Seen: one that natgauge chooses was 2,430 s whatever N was, so that 1.6 billion connections ended after hours.
    assert checked(tmp_path, capsys, "rfc", 1_600_000_000)


def test_an_estimate_that_its_time_cuts_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    def time_of(profile: str, connections: int, more: str = "") -> str:
        lines = checked(tmp_path, capsys, profile, connections, more)
        return next(line for line in lines if line.startswith("  time"))

    golden(time_of("quick", 100_000_000, "most_seconds = 60"))
    assert "cut" not in time_of("quick", 100_000_000)
    assert "cut" not in time_of("quick", 10_000)
    assert "cut" not in time_of("rfc", 100_000_000)


def test_of_very_many_faults_the_first_ones_are_named(golden: Golden) -> None:
    faults = PlanError("p.toml", [f"k{number}: unknown key" for number in range(1000)]).faults
    assert len(faults) == 51
    golden(faults[-1])
