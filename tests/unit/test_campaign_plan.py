# SPDX-License-Identifier: Apache-2.0
"""Plans: refused as a whole before anything is touched, one line per fault with the key's path."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import pytest
from tests.plans import PlanOfTrial
from tests.unit import listed
from tests.unit.campaigning import (
    SUBSCRIBER,
    Benches,
    Dies,
    Killed,
    campaign,
    events,
    quick_disk,
    simulated_benches,
)
from tests.unit.conftest import Ran
from tests.unit.golden import Golden
from tests.unit.mutants import document
from tests.unit.simulated import Gateway

from natgauge.cli import run
from natgauge.errors import BrokenError, EndedBySignal

__all__ = ["quick_disk", "simulated_benches"]

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "src" / "natgauge" / "gateways" / "recipes"
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


class Looks(Gateway):
    """Of each trial it is known what it would be."""

    def __init__(self, cell: Any) -> None:
        super().__init__()
        self.cell = cell
        self.connections: int | None = None

    def measure(self, plan: PlanOfTrial) -> NoReturn:
        self.connections = plan.connections
        raise BrokenError("enough is known")


@dataclass
class Planned:
    """Plans that differ from the right one.

    Attributes:
        folder: they are in it, each in the place of the one before.
    """

    folder: Path
    ran: Ran
    campaigns: list[Path] = field(default_factory=list)

    def written(self, **changed: Any) -> str:
        path = self.folder / "x.toml"
        path.write_text(document({**RIGHT, **changed}), encoding="utf-8")
        return str(path)

    def faults(self, **changed: Any) -> list[str]:
        """What is wrong with the plan."""
        lines = self.ran(["plan", "check", self.written(**changed)], 2).err.splitlines()
        assert lines
        return [line.removeprefix("natgauge: ").replace(str(self.folder / "x.toml"), "x.toml") for line in lines]

    def checked(self, **changed: Any) -> list[str]:
        """The lines of `natgauge plan check`."""
        return list(self.ran(["plan", "check", self.written(**changed)]).out.splitlines())

    def trials(self, **changed: Any) -> int:
        """How many trials the plan is said to take."""
        (line,) = [line for line in self.checked(**changed) if line.startswith("  trials ")]
        return int(re.findall(r"about ([\d,]+) with", line)[0].replace(",", ""))

    def cells(self, **changed: Any) -> dict[str, tuple[Any, int | None]]:
        """The cells as they are measured, by name, with the connections of their first trials, which fail."""
        looks: list[Looks] = []

        def gateway(cell: Any) -> Gateway:
            looks.append(Looks(cell))
            return looks[-1]

        self.campaigns.append(self.folder / f"campaign-{len(self.campaigns)}")
        self.campaigns[-1].mkdir()
        for file in (path for path in self.folder.iterdir() if path.is_file()):
            shutil.copy(file, self.campaigns[-1])
        campaign(self.campaigns[-1], Benches(gateway=gateway), plan=document({**RIGHT, **changed}))
        names = [line["cell"] for line in events(self.campaigns[-1], "broken")]
        every = list(zip(names, looks, strict=True))
        return {name: (look.cell, look.connections) for name, look in reversed(every)}

    @property
    def kept(self) -> Any:
        """What the last campaign keeps of its plan."""
        return json.loads((self.campaigns[-1] / "out" / "campaign.json").read_text())


@pytest.fixture
def plan(tmp_path: Path, ran: Ran) -> Planned:
    return Planned(tmp_path, ran)


def test_a_recipe_that_other_cells_look_at_is_read_once_for_them(
    plan: Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan of 17 gateways read 776 recipes for 100 cells, to see which devices have its knobs."""
    read_ones: list[str] = []
    opened = os.open

    def counted(path: Any, *given: Any, **options: Any) -> int:
        if Path(path).parent.name == "recipes":
            read_ones.append(Path(path).stem)
        return opened(path, *given, **options)

    monkeypatch.setattr(os, "open", counted)
    numbers = []
    for gateways in (
        ["linux-ipv4", "nftables-nat44"],
        ["linux-ipv4", "nftables-nat44", "linux-ipv6", "iptables-nat44"],
    ):
        read_ones.clear()
        series = {"connections": [1000, 2000, 3000, 4000]}
        said = plan.checked(gateways=gateways, series=series, measure=[{"metric": "throughput"}])
        assert f": {4 * len(gateways)} cells, " in said[0]
        numbers.append(len(read_ones))
    # Each cell reads its own recipe; the others are read once for those that have not all knobs of the plan.
    assert 0 < numbers[1] <= 2.1 * numbers[0], numbers


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
def test_cells_have(what: str, plan: Planned, golden: Golden) -> None:
    found = plan.cells(**CELLS[what])
    golden([described(one, *found[one["name"]]) for one in plan.kept["cells"]])


def described(kept: Any, cell: Any, connections: int | None) -> str:
    """A cell in a line: its values, what its device and its lab have, and its measurements."""
    options = cell.kind_options
    own = {
        "connections": connections, "hash_size": cell.device.hash_size,
        "frame_size": cell.traffic.frame_size, "nat64_prefix": cell.lab.nat64_prefix,
        "cores": getattr(options, "guest_cores", None) or getattr(options, "device_cores", None),
    }  # fmt: skip
    measured = [f"{one['name']} {one['repetitions']}" for one in kept["measurements"]]
    return f"{kept['name']} {kept['values']}: {own}; {', '.join(measured)}"


#: Of N = 100,000, within the sizes that a table may have.
FORMULAS = {
    "2^ceil(log2(N))": 131072,
    "N*4//3": 133333,
    "max(N, 2^20) + 1": 1048577,
    "N": 100000,
    "floor(N/7)": 14285,
    # Whole numbers stay whole, however large.
    "3^40 - 12157665459056828000": 100_801,
    "2^0.5 * 2^0.5 // 1 * 1024": 2048,
}


def test_formulas(plan: Planned) -> None:
    cells = plan.cells(
        **{**ONE, "measure": [{"metric": "throughput"}]},
        traffic={"connections": 100_000}, series={}, lab={},
        point=[{"name": f"p{at}", "hash_size": formula} for at, formula in enumerate(FORMULAS)],
    )  # fmt: skip
    sizes = {name.rpartition("-p")[2]: cell.device.hash_size for name, (cell, _) in cells.items()}
    assert sizes == {str(at): value for at, value in enumerate(FORMULAS.values())}


NO_FORMULAS = [
    "N/3", "-N", "1/0", "log2(0)", "M", "N.real", "__import__('os')", "9^9^9", "2^(2^10)", "[N][0]",
    "N if N else 1", "True", "'a'", "", "N;N", "1e999", "min(N, key=N)", "(" * 150, "N" * 300, "lambda: N", "1j",
]  # fmt: skip


def test_what_is_no_formula_is_refused_in_one_line(plan: Planned) -> None:
    found = plan.faults(**{**CONNECTION_RATE, "series": {"hash_size": NO_FORMULAS}})
    assert [fault.partition(": ")[2].partition(": ")[0] for fault in found] == [
        f"series.hash_size[{at}]" for at in range(len(NO_FORMULAS))
    ]
    assert all("formula" in fault and len(fault) < 400 for fault in found), found


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
        # The error begins with the name of its key, and with that of the metric.
        {**CONNECTION_RATE, "measure": [{"metric": "subscribers", "subscriber": "nowhere.toml"}]},
        {**CONNECTION_RATE, "gateways": ["linux-ipv4"], "measure": [{"metric": "table-capacity"}]},
    ],
)
def test_every_fault_is_one_line_with_its_keys_path(changed: dict[str, Any], plan: Planned, golden: Golden) -> None:
    changed = {"measure": RIGHT["measure"][1:], **changed}
    if "series" in changed and "frame_size" in changed["series"] and len(changed["series"]) > 1:
        changed["traffic"] = {}
    golden(plan.faults(**changed))


def test_what_lies_next_to_a_fault_is_right(plan: Planned) -> None:
    alike = [{"name": "product", "hash_size": "2*N"}, {"hash_size": "2+N"}]
    assert len(plan.cells(**CONNECTION_RATE, point=alike)) == 2
    assert len(plan.cells(**SEVERAL, point=[ONE_FOLDER[0], {**ONE_FOLDER[1], "name": "b"}])) == 2
    plan.cells(**CONNECTION_RATE, point=[{"name": "short", **LONG}])
    assert [cell["name"] for cell in plan.kept["cells"]] == ["nftables-nat44-short"]
    for lab, command in ((WIRE, "reboot_command"), (SSH, "boot_command")):
        plan.cells(**ONE, lab=without(lab, command), series={"cores": [2]})
        assert [cell["values"] for cell in plan.kept["cells"]] == [{"cores": 2}]


def test_all_faults_are_told_at_once(plan: Planned) -> None:
    found = plan.faults(
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


def test_the_frames_of_a_subscriber_are_those_of_its_own_profile(plan: Planned, tmp_path: Path) -> None:
    text = "[subscriber]\nconnections = 1\nnew_per_second = 1\nup_frames_per_second = 1\nup_frame_sizes = 200\n"
    file = tmp_path / "mine.toml"
    of_profile: dict[str, Any] = {
        "gateways": ["nftables-nat44"], "series": {}, "device": {}, "lab": {},
        "measure": [{"metric": "subscribers", "subscriber": str(file), "error": "5%"}],
    }  # fmt: skip
    for transport in ("udp", "tcp"):
        file.write_text(f"{text}transport = '{transport}'\n")
        for traffic in ({}, {"frame_size": 200}):
            ((cell, _),) = plan.cells(**of_profile, traffic=traffic).values()
            assert (cell.traffic.frame_size, cell.traffic.transport) == (200, transport)
    (fault,) = plan.faults(**of_profile, traffic={"frame_size": 594})
    assert fault.startswith("x.toml: traffic.frame_size: 594, but the profile")
    # After another measurement it was measured with the frames of that one.
    (fault,) = plan.faults(**{**of_profile, "measure": [{"metric": "throughput"}, *of_profile["measure"]]})
    assert fault.startswith("x.toml: measure[1]: subscribers: its frames follow from its profile")


def test_a_profile_whose_frames_a_gateway_cannot_have_is_the_fault_of_its_measurement(
    plan: Planned, tmp_path: Path
) -> None:
    file = tmp_path / "own.toml"
    file.write_text(
        "[subscriber]\nconnections = 20\nnew_per_second = 1\nup_frames_per_second = 1\nup_frame_sizes = 64\n"
    )
    measured = {"metric": "subscribers", "subscriber": str(file)}
    # A formula asks for the connections of the cell.
    for device in ({}, {"hash_size": "2^ceil(log2(N))"}):
        (fault,) = plan.faults(gateways=["jool-nat64"], traffic={}, device=device, series={}, measure=[measured])
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


def test_a_plan_is_the_same_from_whichever_folder_it_is_read(
    simulated_benches: Benches, tmp_path: Path, ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen: a campaign could not be resumed from another folder, for its gateways had changed."""
    recipe = (RECIPES / "linux-ipv4.toml").read_text()
    (tmp_path / "mine.toml").write_text(recipe.replace('name = "linux-ipv4"', 'name = "mine"'))
    text = 'gateways = ["./mine.toml", "linux-ipv6"]\n[[measure]]\nmetric = "connection-rate"\n'
    (tmp_path / "x.toml").write_text(f'{text}gateways = ["./mine.toml"]\n[[measure]]\nmetric = "throughput"\n')
    (tmp_path / "deeper").mkdir()
    simulated_benches.killed = Dies(3, by=EndedBySignal(signal.SIGINT))
    ran(["run", "x.toml", "--only", "mine"], 130)
    kept = json.loads(Path("results/x/campaign.json").read_text())["plan"]
    assert (kept["gateways"], kept["measure"][0]["gateways"]) == (["mine.toml", "linux-ipv6"], ["mine.toml"])
    monkeypatch.chdir("deeper")
    simulated_benches.killed = Dies()
    for plan in ("../x.toml", str(tmp_path / "x.toml")):
        assert run(["run", plan, "--only", "mine", "--resume", "--out", "../results/x"]) == 0
    assert {Path(str(device)).name for device, _ in simulated_benches.cells} == {"mine.toml"}
    assert len(list((tmp_path / "results" / "x" / "results").iterdir())) == 2


@pytest.mark.parametrize("part", ['[series]\nsubscriber = ["mine.toml"]', 'subscriber = "mine.toml"'])
def test_the_profile_of_a_subscriber_is_beside_the_plan_from_whichever_folder_it_is_read(
    part: str, simulated_benches: Benches, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was looked for in the folder in which natgauge was started, where another one may be."""
    plans = tmp_path / "plans"
    plans.mkdir()
    (plans / "mine.toml").write_text(f"{SUBSCRIBER}up_frame_sizes = 200\n")
    (tmp_path / "mine.toml").write_text(f"{SUBSCRIBER}up_frame_sizes = 300\n")
    (plans / "x.toml").write_text(f'gateways = ["nftables-nat44"]\n[[measure]]\nmetric = "subscribers"\n{part}\n')
    sizes = []

    def gateway(cell: Any) -> Gateway:
        sizes.append(cell.traffic.frame_size)
        raise EndedBySignal(signal.SIGINT)

    simulated_benches.gateway = gateway
    for folder, more in ((tmp_path, []), (plans, ["--resume"])):
        monkeypatch.chdir(folder)
        plan = os.path.relpath(plans / "x.toml")
        assert run(["run", plan, "--out", str(tmp_path / "out"), *more]) == 130
    assert sizes == [200, 200]


def test_the_configuration_of_ssh_is_beside_the_plan(plan: Planned, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("Host router\n")
    ((cell, _),) = plan.cells(
        **ONE, lab={**SSH, "device_cores": 2, "ssh_config": "hosts"}, series={}, traffic={}
    ).values()
    assert cell.kind_options.ssh_config == str(plan.campaigns[-1] / "hosts")
    assert plan.kept["plan"]["lab"]["ssh_config"] == "hosts"


def test_the_file_of_a_server_is_beside_the_plan(plan: Planned) -> None:
    """It was looked for in the folder in which natgauge was started."""
    asked = {"metric": "resolution-rate", "far_side": "mine.toml", "connection_rate": 1e5}
    (fault,) = plan.faults(**{**ONE, "measure": [asked]}, series={}, traffic={"destination_ports": "53"})
    assert f"{plan.folder / 'mine.toml'}: cannot be read" in fault


def test_a_plan_for_another_machine_is_checked_as_if_this_were_it(tmp_path: Path, ran: Ran, golden: Golden) -> None:
    path = tmp_path / "x.toml"
    path.write_text(
        'gateways = ["nftables-nat44"]\n[lab]\nplacement = "isolated"\ncores = 64\n[[measure]]\nmetric = "throughput"\n'
    )
    said = ran(["plan", "check", str(path)], 2).err
    golden(said)
    ran(["plan", "check", "--cores", "65", str(path)])
    ran(["plan", "check", "--cores", "0", str(path)], 2)
    assert ran(["plan", "check", str(path)], 2).err == said


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
    lab: dict[str, Any], left_out: str, plan: Planned
) -> None:
    """Seen: a plan whose guests boot for most of its time was said to take minutes."""
    said = plan.checked(lab=lab, series={"connections": [1000, 5000]}, **ONE)
    (time,) = [line for line in said if line.startswith("  time ")]
    assert re.fullmatch(rf"  time +likely [0-9]+ (s|min|to [0-9]+ (s|min)){re.escape(left_out)}", time)


def test_a_plan_of_more_memory_than_there_is_says_so(
    tmp_path: Path, ran: Ran, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    read = Path.read_text

    def has(kibibytes: int) -> None:
        def read_text(path: Path, *given: Any, **options: Any) -> str:
            told = path == Path("/proc/meminfo")
            return f"MemAvailable: {kibibytes} kB\n" if told else read(path, *given, **options)

        monkeypatch.setattr(Path, "read_text", read_text)

    path = tmp_path / "x.toml"
    path.write_text(
        'gateways = ["nftables-nat44"]\n[traffic]\nconnections = 1000000\n[[measure]]\nmetric = "throughput"\n'
    )
    for mebibytes in (100, 100_000):
        has(mebibytes * 1024)
        golden(ran(["plan", "check", str(path)]).out)
    # Nobody knows how much another machine has.
    has(1)
    assert "available here" not in ran(["plan", "check", "--cores", "4", str(path)]).out


def test_the_table_limits_what_the_estimate_finds(plan: Planned) -> None:
    """With a table of no end the search for its capacity would end at its first step."""
    capacity = [{"metric": "table-capacity"}]
    common: dict[str, Any] = {"gateways": ["nftables-nat44"], "measure": capacity, "series": {}}
    found = [plan.trials(**common, traffic={"connections": 8000}, device={"table_size": size}) for size in (8000, 4000)]
    assert found[0] < found[1]


def test_a_new_plan_is_right(tmp_path: Path, ran: Ran) -> None:
    path = tmp_path / "new.toml"
    path.write_text(ran(["plan", "new", "--gateway", "tayga-nat64", "--metric", "latency"]).out)
    # Seen: a placement that was named kept gateways of processes from their own default.
    assert "placement" not in tomllib.loads(path.read_text())["lab"]
    shown = [line.split()[0] for line in ran(["plan", "show", str(path)]).out.splitlines()]
    assert [name.partition("-connections")[0] for name in shown] == ["tayga-nat64", "latency"] * 2
    ran(["plan", "new", "--gateway", "nothing"], 2)


@pytest.mark.parametrize("metric", listed.metrics())
def test_every_metric_is_estimated(metric: str, plan: Planned) -> None:
    placement = "shared" if metric == "cost" else "isolated"
    plain = {**CONNECTION_RATE, "measure": [{"metric": metric}], "lab": {"placement": placement}}
    once = plan.trials(**plain)
    assert once >= 3
    assert re.search(r"likely [1-9]\d*( to \d+)? (s|min)\b", plan.checked(**plain)[2])
    assert plan.trials(**plain, repetitions=6) == 2 * once


def test_the_layout_of_the_file_is_no_part_of_the_plan(tmp_path: Path) -> None:
    text = document({**RIGHT, **CONNECTION_RATE})
    benches = Benches(killed=Dies(3))
    with pytest.raises(Killed):
        campaign(tmp_path, benches, plan=text)
    benches.killed = Dies(2)
    # It goes on, where a plan of another meaning would be refused.
    with pytest.raises(Killed):
        campaign(tmp_path, benches, plan="\n".join(reversed(text.splitlines())))


def test_the_plan_of_the_documentation_is_right_and_takes_what_it_says(
    tmp_path: Path, ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs" / "campaigns.md").read_text(encoding="utf-8")
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
    simulated_benches: Benches, tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden, ran: Ran
) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(RFC.format(profile="rfc", connections=1_600_000_000) + "\n[device]\nudp_timeout = 2430\n")
    (said,) = ran(["plan", "check", str(path)], 2).err.splitlines()
    # `natgauge run` has the same rule, and makes no folder.
    assert ran(["run", str(path), "--out", str(tmp_path / "out")], 2).err == f"{said}\n"
    assert not (tmp_path / "out").exists()
    assert not simulated_benches.cells
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


def test_of_very_many_faults_the_first_ones_are_named(plan: Planned, golden: Golden) -> None:
    faults = plan.faults(**{f"k{number}": 1 for number in range(1000)})
    assert len(faults) == 51
    golden(faults[-1])
