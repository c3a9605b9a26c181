# SPDX-License-Identifier: Apache-2.0
"""What is put on record of a measurement's conditions: whatever may move its figure leaves a trace there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from natgauge.analysis.comparing import comparable
from natgauge.bench.bench import Bench
from natgauge.bench.question import ask
from natgauge.duts.device_settings import DeviceSettings
from natgauge.duts.recipe import load
from natgauge.host import machine
from natgauge.measurements.conditions import Conditions, record, with_receiver
from natgauge.measurer import Verdict
from natgauge.procedures import procedures, throughput
from natgauge.procedures.kit.result.results import Measurement, make_result
from natgauge.records.making import make
from natgauge.records.measurement import Result
from natgauge.records.parameters import Parameters, describe, descriptions
from natgauge.tester.highest import HighestRates

CPU: Any = machine.facts()["cpu"]
RECIPE = load("nftables-nat44")


def traffic(**options: Any) -> Any:
    return Bench(ask("throughput", RECIPE.name, {"connections": 1000, **options}).cell).traffic


def settings(**given: Any) -> throughput.ThroughputSettings:
    return throughput.ThroughputSettings(**{"connections": 1000, "placement": "isolated", **given})


DEVICE = DeviceSettings("nftables-nat44", ("nftables 1",), 1000, {"table_size": 4096, "hash_size": 1024})
CONDITIONS = Conditions(
    settings=settings(),
    recipe=RECIPE,
    traffic=traffic(),
    frame_octets={"initiator": 64, "responder": 64},
    lab_kind="netns",
    lab="default",
    chosen={"ring": 512},
    placement="isolated",
    emulated=False,
    sender_cpus=(0,),
    device_cpus=(1,),
    grace_seconds=0.3,
    seed=7,
    rates=HighestRates(5e6, 4e6),
    machine=machine.facts(),
    device=DEVICE,
)


def result(**changed: Any) -> Result:
    run = replace(CONDITIONS, **changed)
    measurement = Measurement(5.0, 6.0, "device", {Verdict.PASS: 1, Verdict.INVALID: 0})
    return make(make_result("throughput", "frames/s", run.settings.parameters(), [measurement]), record(run))


def test_the_groups_hold_what_belongs_to_them() -> None:
    parameters = record(CONDITIONS)
    assert parameters.settings["trial_seconds"] == 2.0
    assert parameters.traffic["connections"] == 1000
    assert parameters.traffic["foreground_share"] == 1.0
    assert parameters.place["ring"] == 512
    assert (parameters.place["device_cores"], parameters.place["device_cpus"]) == (1, [1])
    assert parameters.place["lab_kind"] == "netns"
    assert parameters.place["kernel"] == machine.facts()["kernel"]
    assert (parameters.device["dut"], parameters.device["table_size"]) == ("nftables-nat44", 4096)


def test_all_that_is_recorded_of_any_metric_is_described() -> None:
    for procedure in procedures().values():
        own = {setting.name for setting in procedure.inputs()}
        run = procedure.settings(connections=1000, placement="isolated")
        for _, name, _ in record(replace(CONDITIONS, settings=run)).items():
            assert name in own or name in descriptions()
            assert describe(name).label


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"settings": settings(trial_seconds=60.0)}, {"trial_seconds"}),
        ({"settings": settings(loss_tolerance=0.01)}, {"loss_tolerance"}),
        ({"settings": settings(search="mlrsearch", goals="ndr-pdr")}, {"search", "goals"}),
        ({"settings": settings(frame_timeout_seconds=0.1)}, {"frame_timeout_seconds"}),
        ({"settings": settings(foreground_share=0.9)}, {"foreground_share"}),
        ({"settings": settings(order="increasing")}, {"order"}),
        ({"settings": settings(directions="up")}, {"directions"}),
        ({"settings": settings(connections=2000)}, {"connections"}),
        ({"traffic": traffic(source_ports="1024-2047")}, {"source_port_count"}),
        ({"traffic": traffic(frame_size=128)}, {"frame_size"}),
        ({"chosen": {"ring": 128}}, {"ring"}),
        ({"lab_kind": "wire", "chosen": {"ring": 512, "ports": ["a", "b"]}}, {"lab_kind", "ports"}),
        ({"emulated": True}, {"emulated"}),
        ({"device_cpus": (1, 2)}, {"device_cores"}),
        ({"sender_cpus": (0, 3)}, {"sender_cores"}),
        ({"grace_seconds": 2.0}, {"grace_seconds"}),
        ({"machine": {**machine.facts(), "kernel": "5.0"}}, {"kernel"}),
        ({"machine": {**machine.facts(), "natgauge": "9"}}, {"natgauge"}),
        ({"machine": {**machine.facts(), "cpu": {**CPU, "model": "Z80"}}}, {"cpu"}),
        ({"machine": {**machine.facts(), "cpu": {**CPU, "microcode": "another"}}}, {"microcode"}),
        ({"machine": {**machine.facts(), "kernel_parameters": ["isolcpus=1", "nohz_full=1"]}}, {"kernel_parameters"}),
        ({"machine": {**machine.facts(), "cpus_online": [0, 9]}}, {"cpus_online"}),
        ({"chosen": {"ring": 512, "port_queues": ["combined 1", "combined 4"]}}, {"port_queues"}),
        ({"chosen": {"ring": 512, "port_irq_affinity": ["0, 1", "0, 1"]}}, {"port_irq_affinity"}),
        ({"device": replace(DEVICE, version=("nftables 2",))}, {"version"}),
        ({"device": replace(DEVICE, knobs={"table_size": 4096, "hash_size": 2048})}, {"hash_size"}),
        ({"device": replace(DEVICE, knobs={"table_size": 4096, "hash_size": 1024, "new": 1})}, {"new"}),
        ({"recipe": RECIPE.model_copy(update={"environment": {"EXTRA": "1"}})}, {"recipe_digest"}),
    ],
)
def test_each_choice_that_moves_a_figure_is_a_named_difference(changed: dict[str, Any], named: set[str]) -> None:
    found = {difference.name for difference in comparable(result(), result(**changed))}
    assert found == named


@pytest.mark.parametrize(
    "changed",
    [
        {"seed": 8},
        {"lab": "other"},
        {"sender_cpus": (3,), "device_cpus": (2,)},
        {"traffic": traffic(source_addresses="10.0.0.9")},
        {"settings": settings(repeat=20, profile="quick", connection_rate=1e5)},
        {"rates": HighestRates(6e6, 5e6)},
        {"recipe": RECIPE.model_copy(update={"origin": None})},
    ],
    ids=["seed", "lab's name", "which cores", "which address", "repetitions", "tester's rates", "recipe's path"],
)
def test_what_moves_no_figure_keeps_nothing_from_being_compared(changed: dict[str, Any]) -> None:
    assert comparable(result(), result(**changed)) == []


def test_nothing_waits_before_a_device_on_the_senders_core() -> None:
    for placement, told in (("shared", {}), ("isolated", {"ring": 9})):
        question = ask("throughput", RECIPE.name, {"placement": placement, "ring": 9})
        assert Bench(question.cell).lab.parameters() == told


def test_what_the_tester_takes_of_the_devices_cores_is_recorded_where_they_do_its_work() -> None:
    assert with_receiver(record(CONDITIONS), 82e-9).place["receiver_ns"] == pytest.approx(82)
    # Not measured is not nothing.
    assert with_receiver(record(CONDITIONS), None).place["receiver_ns"] is None
    assert "receiver_ns" not in with_receiver(record(replace(CONDITIONS, placement="shared")), None).flat()


def test_a_device_that_is_not_ours_has_no_version_and_no_knobs() -> None:
    parameters: Parameters = record(replace(CONDITIONS, device=None, device_cpus=()))
    assert set(parameters.device) == {"dut", "kind", "responder_family", "recipe_digest"}
    assert parameters.place["device_cores"] is None


def test_on_ports_that_no_cable_of_veths_is_like_the_testers_own_rates_are_not_known() -> None:
    """They were published as those of the ports."""
    parameters = record(replace(CONDITIONS, rates=HighestRates(5e6, 4e6, own_ports=False))).flat()
    assert (parameters["tester_highest_phase1_rate"], parameters["tester_highest_phase2_rate"]) == (None, None)
    assert (parameters["search_top_phase1_rate"], parameters["search_top_phase2_rate"]) == (5e6, 4e6)
    assert "search_top_phase1_rate" not in record(CONDITIONS).flat()
