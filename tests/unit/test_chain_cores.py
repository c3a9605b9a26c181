# SPDX-License-Identifier: Apache-2.0
"""Cores of each device of a chain, and the device that limits the chain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from tests.plans import OneTrial, PlanOfTrial
from tests.unit.counted import make_counts
from tests.unit.golden import Golden
from tests.unit.made_results import doubted_for
from tests.unit.simulated import Gateway, reading
from tests.unit.test_churn import lost_of
from tests.unit.test_churn import made as churned

from natgauge.analysis.scalability import scale_up
from natgauge.comparisons.compare import length_notes
from natgauge.comparisons.request import read_gateways
from natgauge.core_work import CoreWork
from natgauge.errors import UsageError
from natgauge.host import cpus
from natgauge.inputs.cores import DeviceCoreList, cores_in
from natgauge.labs import netns
from natgauge.labs.contract import LabNeeds
from natgauge.labs.netns import lab as netns_lab
from natgauge.labs.netns.lab import NetnsLab
from natgauge.measurements.making import chain_notes, make
from natgauge.metrics.shared_figures import LOST_PERCENT_AT
from natgauge.procedures import get
from natgauge.procedures.kit.result.device_figures import idle_cores, imbalance, with_device_figures
from natgauge.procedures.kit.result.results import Attempt, Measurement
from natgauge.records.measurement import Result
from natgauge.records.parameters import Parameters
from natgauge.reports.rows import rows
from natgauge.statistics.figure import FigureSummary
from natgauge.trial.question import ask, words
from natgauge.trial.trial_run import since
from natgauge.words import Verdict

FIGURE: dict[str, Any] = {
    "median": 781.2, "p1": 781.2, "p99": 781.2, "minimum": 781.2, "maximum": 781.2, "mean": 781.2,
    "standard_deviation": None, "count": 1,
}  # fmt: skip
CHAIN = LabNeeds(families=("ipv4", "ipv4"), devices=("ce", "pe"))


@pytest.fixture(autouse=True)
def _six_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (cpus, netns, netns_lab):
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
class Losing(Gateway):
    """A gateway whose lab counts a share of the lost frames at each place."""

    places: Mapping[str, float] = field(default_factory=dict)

    def measure(self, plan: PlanOfTrial) -> OneTrial:
        """The same trial, with the frames that were dropped at each place."""
        outcome = Gateway.measure(self, plan)
        lost = sum(counts.lost for counts in (outcome.phase1, *outcome.phase2.values()))
        if outcome.verdict is not Verdict.FAIL:
            lost = 0
        return reading(outcome, dropped_after={place: int(lost * share) for place, share in self.places.items()})


def result_of(gateway: Gateway, **place: Any) -> Result:
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
        return [note.text for note in result_of(Gateway(), **place).notes if "shared their cores" in note.text]

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
    own = [result_of(Gateway(), cores_of_devices="each its own", device_cores=cores) for cores in (1, 2, 4)]
    assert [scale_up(result, own).value for result in own] == [None, pytest.approx(0.5), pytest.approx(0.25)]
    # Devices that shared one core are no reference for devices with cores of their own.
    shared = scale_up(own[1], [own[1], result_of(Gateway())])
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
