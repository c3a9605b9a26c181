# SPDX-License-Identifier: Apache-2.0
"""Several gateways as one device: how they come and go, their cores, their machines, and the one that limits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tests.plans import OneTrial, PlanOfTrial
from tests.unit.counted import make_counts, make_trial
from tests.unit.golden import Golden
from tests.unit.made_results import doubted_for
from tests.unit.simulated import Gateway as Simulated
from tests.unit.simulated import reading
from tests.unit.test_churn import lost_of
from tests.unit.test_churn import made as churned
from tests.unit.test_recipe_contract import PLAN, FakeDevice

from natgauge.analysis.derived import scale_up
from natgauge.cli import run
from natgauge.comparisons.compare import length_notes
from natgauge.comparisons.request import read_gateways
from natgauge.device_work import CoreWork
from natgauge.errors import BrokenError, UsageError
from natgauge.gateways.gateway import Chain, Gateway
from natgauge.gateways.preparation import DeviceSettings
from natgauge.gateways.recipe import load
from natgauge.host import machine
from natgauge.inputs.measuring_types import DeviceCoreList, cores_in
from natgauge.labs import netns, ssh
from natgauge.labs.contract import DeviceCores, LabNeeds
from natgauge.labs.netns import lab as netns_lab
from natgauge.labs.netns.lab import NetnsLab
from natgauge.labs.ssh import remote
from natgauge.labs.ssh.facts import RemoteFacts
from natgauge.labs.ssh.lab import RemoteLab, numbered_apart
from natgauge.labs.ssh.remote import SshHost
from natgauge.measurements.record import chain_notes, make
from natgauge.metrics.metric import LOST_PERCENT_AT
from natgauge.procedures import get
from natgauge.procedures.kit.results import Attempt, Measurement, idle_cores, imbalance, with_device_figures
from natgauge.readings import Readings
from natgauge.records.measurement import Result
from natgauge.records.parameters import Parameters
from natgauge.reports.rows import rows
from natgauge.statistics.summary import FigureSummary
from natgauge.trial.question import ask, words
from natgauge.trial.trial_run import since
from natgauge.verdicts import Limits, judge
from natgauge.words import Verdict


class Part(Gateway):
    """A gateway whose table and faults are told, and which writes down what is done with it."""

    def __init__(self, name: str, holds: int, log: list[str], breaks: str = "") -> None:
        super().__init__(load("linux-ipv4"), FakeDevice(name=name))
        self.holds = holds
        self.log = log
        self.breaks = breaks

    def _note(self, what: str) -> None:
        self.log.append(f"{self.device.name} {what}")
        if self.breaks == what:
            raise BrokenError(f"{self.device.name}: out of order")

    def prepare(self, plan: Any) -> None:
        super().prepare(plan)
        self._note("prepare")

    def start(self) -> None:
        self._note("start")

    def stop(self) -> None:
        self._note("stop")

    def fit(self, plan: Any) -> None:
        assert plan
        self._note("fit")

    def empty(self) -> None:
        self._note("empty")

    def empty_timed(self) -> float:
        return float(self.holds)

    def count(self) -> int:
        return self.holds

    def faults(self) -> dict[str, int]:
        return {"drop": self.holds}

    def confirm_ready(self) -> None:
        self._note("confirm")

    def restart(self) -> None:
        self._note("restart")

    def restart_under_load(self) -> None:
        self._note("restart under load")


def chain(log: list[str], ce: int = 0, pe: int = 7, **others: Any) -> Chain:
    return Chain([Part("ce", ce, log), Part("pe", pe, log, **others)], holder=1)


def test_the_one_that_holds_the_state_is_asked_and_all_are_emptied_and_restarted(golden: Golden) -> None:
    log: list[str] = []
    device = chain(log)
    assert (device.count(), device.empty_timed()) == (7, 7.0)
    device.empty()
    device.restart()
    device.confirm_ready()
    device.restart_under_load()
    golden(log)


class Told(Part):
    """A gateway of a recipe of its own that tells its version."""

    def __init__(self, name: str, version: str) -> None:
        super().__init__(name, 0, [])
        self.recipe = load("linux-ipv4").model_copy(update={"name": name})
        self._told = version

    def version(self) -> tuple[str, ...]:
        return (self._told,)

    def settings(self) -> DeviceSettings:
        return DeviceSettings(self.recipe.name, self.version(), 1000, {})


def test_the_version_is_that_of_every_gateway_each_once_and_the_holders_first() -> None:
    parts = [Told("ce", "tayga 0.9.2"), Told("nat", "nftables v1.0.6"), Told("br", "tayga 0.9.2")]
    assert Chain(parts, holder=1).settings().version == ("nftables v1.0.6", "tayga 0.9.2")
    assert Chain(parts[:1]).settings().version == ("tayga 0.9.2",)


def test_all_are_checked_before_the_first_is_started_and_the_last_goes_first(golden: Golden) -> None:
    log: list[str] = []
    with chain(log) as device:
        device.start(PLAN)
        device.fit(PLAN)
    assert log == [
        *("ce prepare", "pe prepare", "ce start", "pe start", "ce fit", "pe fit", "pe stop", "ce stop"),
    ]
    # What was started is stopped when a later one does not come up.
    log.clear()
    with golden.raises(BrokenError), chain(log, breaks="start") as device:
        device.start(PLAN)
    assert log[-2:] == ["pe stop", "ce stop"]


def test_faults_of_several_bear_their_names_and_connections_where_none_may_be_are_strays() -> None:
    assert chain([], ce=2).faults() == {"ce drop": 2, "pe drop": 7}
    assert Chain([Part("gateway", 3, [])]).faults() == {"drop": 3}
    assert chain([]).strays() == {}
    assert chain([], ce=3).strays() == {"ce": 3}
    assert Chain([Part("gateway", 3, [])]).strays() == {}


@pytest.mark.parametrize(("strays", "verdict"), [({}, Verdict.PASS), ({"ce": 3}, Verdict.FAIL)])
def test_a_chain_that_keeps_state_where_it_must_not_fails(strays: Mapping[str, int], verdict: Verdict) -> None:
    sent = make_counts(intended=10, offered=10, received=10)
    read = Readings(count_after=10, strays=strays)
    judged = judge(
        make_trial(PlanOfTrial(10, 10.0), phase1=sent, stored=10, readings=read, placement="shared"), Limits()
    )
    assert judged.verdict is verdict
    assert judged.reason == ("the device keeps 3 connections at ce, which must hold none" if strays else "")


@pytest.mark.parametrize(
    "change",
    [
        ('recipe = "tayga-nat64"', 'recipe = "464xlat-tayga"'),
        ('recipe = "tayga-clat"', 'recipe = "linux-ipv4"'),
        ('recipe = "tayga-nat64"', 'recipe = "nowhere"'),
        ('device = "pe"', 'device = "ce"'),
        ("stateful = true", "stateful = false"),
        ('kind = "464xlat"', 'kind = "464xlat"\nextends = ["linux-ipv4"]'),
    ],
)
def test_a_chain_that_cannot_be_is_refused_in_one_line(change: tuple[str, str], tmp_path: Path, golden: Golden) -> None:
    good = load("464xlat-tayga").origin.read_text()
    path = tmp_path / "464xlat-tayga.toml"
    path.write_text(good.replace(*change))
    with pytest.raises(UsageError) as refusal:
        load(path)
    golden(str(refusal.value))
    assert "\n" not in str(refusal.value)


def test_the_page_on_gateways_has_a_chain_that_can_be_read(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text()
    (example,) = [text for text in re.findall(r"```toml\n(.*?)```", page, re.DOTALL) if "[[chain]]" in text]
    path = tmp_path / "464xlat-mine.toml"
    path.write_text(example)
    recipe = load(path)
    assert [part.device for part in recipe.chain] == ["ce", "pe"]
    assert recipe.holder == 1
    assert [one.verbs.start[-1] for one in recipe.of_devices(0)] == [
        part.recipe.verbs.start[-1] for part in load("464xlat-tayga").chain
    ]


def test_a_chain_logs_only_where_the_log_names_the_hosts_that_the_tester_knows() -> None:
    """Behind a CLAT the log of a NAT64 names addresses of the CLAT's prefix, of which the tester knows nothing."""
    assert load("jool-nat64").logging
    assert load("464xlat-jool").logging == {}
    assert load("ds-lite").logging.keys() == load("nftables-nat44").logging.keys()


def test_the_devices_of_a_chain_are_shown(capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    assert run(["gateways", "show", "ds-lite"]) == 0
    shown = capsys.readouterr().out
    devices = [line.split()[1].rstrip(":") for line in shown.splitlines() if line.startswith("  device ")]
    assert devices == ["b4", "aftr", "nat"]
    golden([line for line in shown.splitlines() if line.startswith("  device ")])


FIGURE: dict[str, Any] = {
    "median": 781.2, "p1": 781.2, "p99": 781.2, "minimum": 781.2, "maximum": 781.2, "mean": 781.2,
    "standard_deviation": None, "count": 1,
}  # fmt: skip
CHAIN = LabNeeds(families=("ipv4", "ipv4"), devices=("ce", "pe"))


@pytest.fixture(autouse=True)
def _six_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (machine, netns, netns_lab):
        monkeypatch.setattr(module, "usable_cpus", lambda: (0, 1, 2, 3, 4, 5))


def planned(need: LabNeeds = CHAIN, **options: Any) -> NetnsLab:
    return netns.plan("x", netns.NetnsOptions(**options), need)


def refused(need: LabNeeds = CHAIN, **options: Any) -> str:
    with pytest.raises(UsageError) as refusal:
        planned(need, **options)
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


def test_cores_are_read_and_written_for_all_devices_or_for_each() -> None:
    read = DeviceCoreList().read
    assert read("cores", "0,2-3") == (0, 2, 3)
    assert read("cores", "ce=2-3,5,pe=4") == {"ce": (2, 3, 5), "pe": (4,)}
    assert DeviceCoreList().write({"ce": (2, 3, 5), "pe": (4,)}) == "ce=2,3,5,pe=4"
    assert DeviceCoreList().take("cores", [1, 2]) == (1, 2)
    assert cores_in({"ce": (2, 3), "pe": (3, 4)}) == (2, 3, 4)
    assert cores_in(None) == ()


def test_each_device_works_on_its_own_cores_in_isolated_placement() -> None:
    lab = planned(cores={"ce": (2, 3), "pe": (4, 5)})
    assert (lab.placement, lab.sender_cpus, lab.device_cpus) == ("isolated", (0,), (2, 3, 4, 5))
    assert [device.environment["NG_CPUS"] for device in lab.devices] == ["2,3", "4,5"]
    assert lab.device_cores.count == 2
    assert lab.parameters() == {
        "ring": 512,
        "cores_of_devices": "each its own",
        "cpus_of_devices": {"ce": (2, 3), "pe": (4, 5)},
    }
    assert NetnsLab("x", **lab.settings).settings == lab.settings
    # A real server gets none of them.
    assert lab.server_cpus == (1,)


def test_a_number_of_cores_for_each_device_takes_the_last_cores_in_the_order_of_the_chain() -> None:
    lab = planned(cores_each=2)
    assert (lab.placement, lab.sender_cpus, lab.cores_of) == ("isolated", (0,), {"ce": (2, 3), "pe": (4, 5)})
    assert planned(cores_each=1).device_cores.count == 1
    three = planned(replace(CHAIN, devices=("nat", "ce", "br")), cores_each=1)
    assert three.cores_of == {"nat": (3,), "ce": (4,), "br": (5,)}


def test_the_cores_of_a_single_device_are_the_same_whichever_way_they_are_named(golden: Golden) -> None:
    alone = LabNeeds(families=("ipv4", "ipv4"))
    labs = [
        planned(alone, placement="isolated", cores=(4, 5), sender_cores=(0,)),
        planned(alone, cores={"gateway": (4, 5)}, sender_cores=(0,)),
        planned(alone, cores_each=2, sender_cores=(0,)),
    ]
    assert [lab.settings for lab in labs] == [labs[0].settings] * 3
    assert labs[1].parameters() == {"ring": 512}
    golden(refused(alone, cores={"gateway": (4, 5)}, sender_cores=(4,)))


def test_unequal_and_shared_cores_are_recorded_by_device() -> None:
    unequal = planned(cores={"ce": (2,), "pe": (3, 4, 5)})
    assert unequal.device_cores.count == 4
    assert unequal.parameters()["cores_of_devices"] == {"ce": 1, "pe": 3}
    edge = planned(replace(CHAIN, devices=("nat", "ce", "br")), cores={"nat": (2,), "ce": (2,), "br": (3,)})
    assert edge.parameters()["cores_of_devices"] == {"nat and ce": 1, "br": 1}
    assert "cores_of_devices" not in planned(placement="isolated", cores=(2, 3)).parameters()


def test_a_device_shares_a_core_with_the_tester_only_where_both_are_named(golden: Golden) -> None:
    golden(refused(cores={"ce": (0, 1, 2), "pe": (3, 4, 5)}))
    lab = planned(cores={"ce": (0,), "pe": (1,)}, sender_cores=(0,))
    assert (lab.sender_cpus, lab.device_cpus) == ((0,), (0, 1))
    parameters = Parameters.grouped(
        place={"placement": "isolated", "cpus_of_devices": {"ce": [0], "pe": [1]}, "sender_cpus": [0]}
    )
    (doubt,) = doubted_for("taking turns", parameters)
    assert (doubt.word, doubt.text.startswith("ce took turns with the tester on a core")) == ("taking turns", True)


def test_the_command_line_and_comparisons_take_cores_by_device() -> None:
    question = ask("throughput", "464xlat-tayga", {"cores": "ce=2-3,pe=4", "placement": "isolated"})
    assert "--cores ce=2,3,pe=4" in " ".join(words(question))
    names = ("464xlat-tayga:cores=ce=2,pe=3,sender_cores=1", "464xlat-tayga:cores_each=1")
    first, second = read_gateways(names, {}, unlike=False)
    assert first.place_options == {"cores": {"ce": (2,), "pe": (3,)}, "sender_cores": (1,)}
    assert second.place_options == {"cores_each": 1}


def test_the_cores_of_each_device_are_judged_by_themselves() -> None:
    # The CE has one core and so the most frames for a core, which is not uneven.
    work = {0: CoreWork(3000, devices="ce"), **{core: CoreWork(1000, devices="pe") for core in (1, 2, 3)}}
    assert imbalance(work) == 1.0
    assert idle_cores(work) == []
    work[3] = CoreWork(10, devices="pe")
    assert imbalance(work) == pytest.approx(1000 * 3 / 2010)
    assert idle_cores(work) == [3]
    assert since({0: CoreWork(1, devices="ce")}, {0: CoreWork(5, devices="ce")}) == {0: CoreWork(4, devices="ce")}


@dataclass
class Losing(Simulated):
    """A gateway whose lab counts a share of the lost frames at each place."""

    places: Mapping[str, float] = field(default_factory=dict)

    def measure(self, plan: PlanOfTrial) -> OneTrial:
        """The same trial, with the frames that were dropped at each place."""
        outcome = Simulated.measure(self, plan)
        lost = sum(counts.lost for counts in (outcome.phase1, *outcome.phase2.values()))
        if outcome.verdict is not Verdict.FAIL:
            lost = 0
        return reading(outcome, dropped_after={place: int(lost * share) for place, share in self.places.items()})


def result_of(gateway: Simulated, **place: Any) -> Result:
    procedure = get("throughput")
    settings = procedure.settings(connections=1000, placement="isolated", repeat=2)
    measured = procedure.measure(gateway, settings)
    known = {"placement": "isolated", "sender_cpus": [0], "device_cpus": [1], "device_cores": 1, **place}
    parameters = Parameters.grouped(
        settings=measured.parameters, place=known, device={"gateway": "map-t", "kind": "map-t", "chain": ["ce", "pe"]}
    )
    return make(measured, parameters)


def told(result: Result) -> dict[str, Any]:
    return {row.label: row.cells[0] for row in rows([result])}


@pytest.mark.parametrize(
    ("places", "device"),
    [
        ({"ce inside card ring": 0.0, "pe inside card ring": 0.98, "pe inside received": 0.02}, "pe"),
        ({"ce inside card ring": 0.75, "pe inside card ring": 0.25}, "ce"),
        # Most frames were lost where nothing is counted.
        ({"ce inside card ring": 0.2, "pe inside card ring": 0.25}, None),
    ],
)
def test_the_device_that_dropped_the_deciding_frames_limits_the_chain(
    places: Mapping[str, float], device: str | None, golden: Golden
) -> None:
    result = result_of(Losing(places=places), cores_of_devices="each its own")
    assert told(result)["bottleneck device"] == device
    notes = [note.text for note in result.notes if "bottleneck of the chain" in note.text]
    assert len(notes) == (device is not None)
    golden(notes)
    assert {name for name in result.figures if name.startswith(LOST_PERCENT_AT)} == {
        f"{LOST_PERCENT_AT}ce",
        f"{LOST_PERCENT_AT}pe",
    }


def test_devices_on_the_same_cores_say_that_their_times_add_up(golden: Golden) -> None:
    def shared(**place: Any) -> list[str]:
        return [note.text for note in result_of(Simulated(), **place).notes if "shared their cores" in note.text]

    (text,) = shared()
    golden(text)
    assert shared(cores_of_devices="each its own") == []
    alone = result_of(Losing(places={"gateway inside card ring": 1.0}), chain=None)
    assert not [name for name in alone.figures if name.startswith(LOST_PERCENT_AT)]


def test_the_cost_of_a_chain_names_the_hop_of_plain_forwarding(golden: Golden) -> None:
    figures = {"up_forwarding_ns": FigureSummary(**FIGURE), "up_ns": FigureSummary(**FIGURE)}
    parameters = Parameters.grouped(place={"placement": "shared"}, device={"chain": ["ce", "pe"]})
    (note,) = chain_notes("x forwarding", figures, parameters)
    golden(note.text)
    assert not list(chain_notes("x forwarding", figures, Parameters()))


@pytest.mark.parametrize(
    ("devices", "said"),
    [
        ({"nat": 1, "other": 1}, None),
        ({"map-t": 2, "map-e": 2}, "every figure is of 2 devices in a row: each of them is a hop (plain forwarding"),
        ({"map-t": 2, "ds-lite": 3}, "the chains have unequal numbers of devices (map-t 2, ds-lite 3)"),
    ],
)
def test_a_comparison_of_chains_names_the_hop(devices: Mapping[str, int], said: str | None, golden: Golden) -> None:
    notes = length_notes(devices, {"up": 781.0})
    golden([note.text.startswith(said or "") and "up 781 ns" in note.text for note in notes])


def test_cores_of_each_device_are_an_axis_of_the_scale_up(golden: Golden) -> None:
    own = [result_of(Simulated(), cores_of_devices="each its own", device_cores=cores) for cores in (1, 2, 4)]
    assert [scale_up(result, own).value for result in own] == [None, pytest.approx(0.5), pytest.approx(0.25)]
    # Devices that shared one core are no reference for devices with cores of their own.
    shared = scale_up(own[1], [own[1], result_of(Simulated())])
    assert shared.value is None
    golden(shared.doubt)


def test_a_device_of_a_chain_drops_openings_and_no_frame_that_was_not_sent_for_a_lost_one() -> None:
    """Frames to connections that were not opened were lost frames of which nobody knew the place."""
    down = make_counts(4000, 3400, 3400, unopened=600)
    dropped = {"ce inside card ring": 150, "pe inside card ring": 50}
    failed = churned(
        down=down, openings=lost_of(200, 200), verdict=Verdict.FAIL, limited_by="device", dropped_after=dropped
    )
    repetition = Measurement(1.0, 2.0, "device", {}, attempts=(Attempt(2.0, short=False, outcome=failed),))
    assert with_device_figures(repetition).figures == {f"{LOST_PERCENT_AT}ce": 75, f"{LOST_PERCENT_AT}pe": 25}


PAIR = LabNeeds(families=("ipv4", "ipv4"), devices=("ce", "pe"))
THREE = LabNeeds(families=("ipv4", "ipv4"), devices=("nat", "ce", "br"))
CHOSEN: Mapping[str, Any] = {
    "ssh_host": "ce=root@a,pe=ssh://root@b:2222",
    "device_inside": "eth1",
    "device_outside": "ce=eth2,pe=eth3",
    "initiator_port": "ngnone0",
    "responder_port": "ngnone1",
}


def on_machines(need: LabNeeds = PAIR, **changes: Any) -> RemoteLab:
    return ssh.plan("x", ssh.SshOptions(**{**CHOSEN, **changes}), need)


def facts(cpus: tuple[int, ...], kernel: str = "6.1") -> RemoteFacts:
    return RemoteFacts(
        user=0, system="Linux", kernel=kernel, cpu="some", cpus=cpus, missing=(), namespaces=True, interfaces={},
        management=frozenset(),
    )  # fmt: skip


def test_each_device_is_on_its_own_machine() -> None:
    lab = on_machines()
    first, second = lab._segments
    assert [str(segment.host) for segment in lab._segments] == ["root@a", "ssh://root@b:2222"]
    assert (first.layout.names, first.layout.interfaces) == (("ce",), ("eth1", "eth2"))
    assert (second.layout.names, second.layout.interfaces) == (("pe",), ("eth1", "eth3"))
    # The link between the machines has the addresses of a link between devices.
    ce, pe = lab.devices
    for version in "46":
        assert ce.environment[f"NG_OUTSIDE_PEER{version}"] == pe.environment[f"NG_INSIDE_ADDRESS{version}"]
    assert [str(address) for address in first.layout.ends[0][1].addresses] == ["192.0.2.1/30", "2001:2:0:64::1/64"]
    assert [str(address) for address in second.layout.ends[0][0].addresses] == ["192.0.2.2/30", "2001:2:0:64::2/64"]
    assert "type veth" not in first.layout.make(facts((0,)))


def test_neighbouring_devices_share_a_machine() -> None:
    lab = on_machines(
        THREE,
        ssh_host="nat=root@a,ce=root@a,br=root@b",
        device_outside="eth2",
        device_inside="nat=eth1,ce=none,br=eth7",
    )
    first, second = lab._segments
    assert (first.layout.names, first.layout.interfaces) == (("nat", "ce"), ("eth1", "eth2"))
    assert (second.layout.names, second.layout.interfaces) == (("br",), ("eth7", "eth2"))
    assert first.layout.make(facts((0,))).count("type veth") == 1
    (alone,) = on_machines(THREE, ssh_host="root@a", device_outside="eth2", device_inside="eth1")._segments
    assert alone.layout.names == ("nat", "ce", "br")


@pytest.mark.parametrize(
    ("need", "changes", "said"),
    [
        (PAIR, {"ssh_host": "ce=root@a,aftr=root@b"}, "ssh host: aftr is no device; the chain has ce, pe"),
        (PAIR, {"ssh_host": "ce=root@a"}, "ssh host: pe has none; the chain has ce, pe, name one for each"),
        (PAIR, {"ssh_host": "ce=root@a,ce=root@b"}, "device ce is named twice"),
        (PAIR, {"device_outside": "ce=eth2"}, "device outside: pe has none"),
        (PAIR, {"device_inside": "eth2"}, "ssh host root@a: interface eth2 is named for both sides"),
        (PAIR, {"ssh_host": "ce=root@a,pe=-oX"}, "ssh host: '-oX' is none"),
        (THREE, {"ssh_host": "nat=root@a,ce=root@b,br=root@a", "device_outside": "eth2"}, "that are no neighbours"),
        (LabNeeds(families=("ipv4", "ipv4")), {}, "ssh host: ce is no device; the only device is gateway"),
    ],
)
def test_machines_that_cannot_be_are_refused_in_one_line(need: LabNeeds, changes: Mapping[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as error:
        on_machines(need, **changes)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_the_cores_and_facts_of_the_machines_are_recorded() -> None:
    lab = on_machines()
    assert lab.device_cores == DeviceCores()
    first, second = lab._segments
    first.facts, second.facts = facts((0, 1)), facts((0, 1))
    first.settings, second.settings = {"device_queues": ["2", "2"]}, {"device_queues": ["2", "2"]}
    known = lab.parameters()
    assert lab.device_cores == DeviceCores(2)
    assert (known["cores_of_devices"], known["device_kernel"], known["device_queues"]) == (
        "each its own",
        "6.1",
        ["2", "2"],
    )
    second.facts = facts((0, 1, 2, 3), "6.9")
    known = lab.parameters()
    assert lab.device_cores == DeviceCores(6)
    assert known["cores_of_devices"] == {"ce": 2, "pe": 4}
    assert known["device_kernel"] == {"ce": "6.1", "pe": "6.9"}


def test_cores_of_several_machines_are_judged_apart() -> None:
    work = numbered_apart(
        [("ce", {0: CoreWork(3000), 1: CoreWork(3000)}), ("pe", {core: CoreWork(1500) for core in range(4)})]
    )
    assert len(work) == 6
    assert imbalance(work) == 1.0


def test_what_was_done_on_each_machine_is_undone_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine that cannot be given back does not keep the other one."""
    given: list[tuple[str, str, list[str]]] = []

    def give_back(host: SshHost, token: str, undo: list[str]) -> bool:
        given.append((str(host), token, undo))
        if str(host) == "root@a":
            raise BrokenError("ssh host root@a: gone")
        return True

    monkeypatch.setattr(remote, "give_back", give_back)
    monkeypatch.setattr(remote, "end_orphans", lambda _control: None)
    lab = on_machines()
    settings = lab._settings()
    items = [{"undo": text, "says": text, "at": at} for text, at in (("x", "0"), ("y", "1"), ("z", "0"))]
    with pytest.raises(BrokenError, match="root@a: gone"):
        ssh.undo(tmp_path, settings, items)
    first, second = settings["tokens"]
    assert first != second, "one machine by two names is not taken twice"
    assert given == [("root@a", first, ["x", "z"]), ("ssh://root@b:2222", second, ["y"])]
