# SPDX-License-Identifier: Apache-2.0
"""What is put on record of a measurement's conditions: whatever may move its figure leaves a trace there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.plans import OneTrial, PlanOfTrial
from tests.unit.golden import Golden
from tests.unit.made_settings import alone
from tests.unit.simulated import Gateway
from tests.unit.test_accepted_ports import written

from natgauge.analysis.derived import comparable
from natgauge.comparisons.request import (
    ComparedGateway,
    CompareOptions,
    gateway_inputs,
    read_gateways,
    traffic_of_rules,
    with_usual_options,
)
from natgauge.errors import UsageError
from natgauge.gateways.preparation import DeviceSettings
from natgauge.gateways.recipe import load
from natgauge.host import machine
from natgauge.inputs.input import Input, inputs_of
from natgauge.inputs.question import DeviceOptions
from natgauge.labs import kinds
from natgauge.labs.contract import DeviceCores
from natgauge.measurements.measure import parameters_of
from natgauge.measurements.record import Conditions, gateway_parameters, make, record, with_receiver, without_search
from natgauge.procedures import procedures, throughput
from natgauge.procedures.kit.results import Measurement, make_result
from natgauge.records.measurement import Result
from natgauge.records.parameters import OF_HOST, OWN_TIMEOUT, Parameters, describe, descriptions
from natgauge.setup.cell import inputs_of_part, place_inputs
from natgauge.tester.own_rates import HighestRates
from natgauge.trial.bench import Bench, Ready
from natgauge.trial.question import ask
from natgauge.words import Verdict

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
    device_cores=DeviceCores.of((1,)),
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
    assert (parameters.device["gateway"], parameters.device["table_size"]) == ("nftables-nat44", 4096)


def test_what_the_host_had_before_is_recorded_and_alone_no_difference() -> None:
    device = replace(DEVICE, of_host={"hash_size": 1024}, own_timeout=120)
    recorded = record(replace(CONDITIONS, device=device)).device
    assert (recorded[OF_HOST], recorded[OWN_TIMEOUT]) == ({"hash_size": 1024}, 120)
    assert not {OF_HOST, OWN_TIMEOUT} & set(record(CONDITIONS).device)
    other = replace(DEVICE, of_host={"hash_size": 512})
    assert not comparable(result(device=device), result(device=other))


def test_all_that_is_recorded_of_any_metric_is_described() -> None:
    for procedure in procedures().values():
        own = {setting.name for setting in procedure.inputs()}
        run = procedure.settings(connections=1000, placement="isolated")
        device = replace(DEVICE, of_host={"hash_size": 1024}, own_timeout=120)
        for _, name, _ in record(replace(CONDITIONS, settings=run, device=device)).items():
            assert name in own or name in descriptions()
            assert describe(name).label


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"settings": settings(trial_seconds=60.0)}, {"trial_seconds"}),
        ({"settings": settings(loss_tolerance=0.01)}, {"loss_tolerance"}),
        (
            # Two settings have no effect with these goals, so that their result has none.
            {"settings": settings(search="mlrsearch", goals="ndr-pdr")},
            {"search", "goals", "confirm", "loss_verifications"},
        ),
        ({"settings": settings(frame_timeout_seconds=0.1)}, {"frame_timeout_seconds"}),
        ({"settings": settings(foreground_share=0.9)}, {"foreground_share"}),
        ({"settings": settings(order="increasing")}, {"order"}),
        ({"settings": settings(directions="up")}, {"directions"}),
        ({"settings": settings(connections=2000)}, {"connections"}),
        ({"traffic": traffic(source_ports="1024-2047")}, {"source_port_count"}),
        ({"traffic": traffic(frame_size=128)}, {"frame_size"}),
        ({"traffic": traffic(frame_sizes="64:7,594:4,1518:1")}, {"frame_size", "frame_sizes"}),
        ({"traffic": traffic(down_frame_sizes="594:1")}, {"frame_size", "frame_sizes", "down_frame_sizes"}),
        ({"chosen": {"ring": 128}}, {"ring"}),
        ({"lab_kind": "wire", "chosen": {"ring": 512, "ports": ["a", "b"]}}, {"lab_kind", "ports"}),
        ({"emulated": True}, {"emulated"}),
        ({"device_cores": DeviceCores.of((1, 2))}, {"device_cores"}),
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
        {"sender_cpus": (3,), "device_cores": DeviceCores.of((2,))},
        {"traffic": traffic(source_addresses="10.0.0.9")},
        {"settings": settings(repeat=20, profile="quick", connection_rate=1e5)},
        {"rates": HighestRates(6e6, 5e6)},
        {"recipe": RECIPE.model_copy(update={"origin": Path("/elsewhere/gateway.toml")})},
    ],
    ids=["seed", "lab's name", "which cores", "which address", "repetitions", "tester's rates", "recipe's path"],
)
def test_what_moves_no_figure_keeps_nothing_from_being_compared(changed: dict[str, Any]) -> None:
    assert comparable(result(), result(**changed)) == []


#: Options of each kind of lab, among them all that move figures and are recorded only where they are chosen.
LAB_OPTIONS: dict[str, dict[str, Any]] = {
    "netns": {"placement": "isolated", "ring": 9},
    "wire": {
        "initiator_port": "ngnone0",
        "initiator_gateway": "02:00:00:00:00:01",
        "responder_port": "ngnone1",
        "responder_gateway": "02:00:00:00:00:02",
        "allow_addresses": True,
        "device_timeout": 30,
    },
    "vm": {"guest_files": str(Path(__file__).parents[2] / "examples")},
    "ssh": {
        "ssh_host": "root@192.0.2.1",
        "device_inside": "a",
        "device_outside": "b",
        "initiator_port": "ngnone0",
        "responder_port": "ngnone1",
        "allow_addresses": True,
    },
}
#: What is chosen of traffic and device, because it is recorded only where it is chosen.
CHOSEN = {
    "subscribers": 10,
    "table_size": 1 << 20,
    "hash_size": 1 << 18,
    "timeouts": 200,
    "udp_timeout": 300,
    "emptying": "restart",
}
#: Of gateways that log.
LOGGED = {"logging": "conntrack-events", "log_tolerance": 0.01}
#: In place of one frame size.
MIXED = {"frame_sizes": "104:7,594:1", "down_frame_sizes": "104:1"}
#: Only where the gateway takes tags, as one on a wire may.
VLANS = {"initiator_vlan": "100", "responder_vlan": "9.200"}


def moving(inputs: Iterable[Input]) -> set[str]:
    """Names of the parameters of those inputs that move figures."""
    return {one.parameter for one in inputs if one.moves_figures}


def settings_of(gateway: str, wishes: DeviceOptions) -> DeviceSettings:
    """What a device of ours reads back when it was given these."""
    return DeviceSettings(
        gateway,
        ("1",),
        1000,
        wishes.named(),
        emptying=wishes.emptying,
        logging=wishes.logging,
        log_tolerance=wishes.log_tolerance or 0.0,
    )


def recorded(gateway: str, choices: dict[str, Any]) -> set[str]:
    """Names of the parameters of a measurement with these choices; what a device of ours reads back is all it has."""
    question = ask("throughput", gateway, choices)
    bench = Bench(question.cell)
    wishes = question.cell.device
    device = settings_of(gateway, wishes) if bench.lab.devices else None
    planned = bench.plan("throughput", {})
    measurer: Any = SimpleNamespace(server=None)
    return set(parameters_of(bench, Ready(planned, measurer, device, HighestRates(1, 1)), machine.facts()).flat())


@pytest.mark.parametrize(("metric", "kept"), [("subscribers", 120), ("throughput", None)])
def test_how_long_the_device_keeps_what_left_is_recorded_of_a_result_that_rests_on_it(
    metric: str, kept: int | None
) -> None:
    question = ask(metric, RECIPE.name, {})
    bench = Bench(question.cell)
    measurer: Any = SimpleNamespace(server=None, timeout_seconds=30, replied_timeout_seconds=120)
    ready = Ready(bench.plan(metric, question.settings), measurer, None, HighestRates(1, 1))
    assert parameters_of(bench, ready, machine.facts()).device.get("forgets_after_seconds") == kept


@pytest.mark.parametrize("kind", kinds.kinds())
def test_every_input_of_a_lab_that_moves_figures_is_recorded(kind: str) -> None:
    options = inputs_of(kinds.get(kind).options, "place")
    several: dict[str, Any] = {} if kind == "wire" else {"outside_addresses": 4}
    missing = moving([*options, *inputs_of_part("lab")]) - recorded(
        RECIPE.name, {"lab": kind, **several, **LAB_OPTIONS.get(kind, {})}
    )
    # A device on a wire has addresses of its own.
    assert missing == ({"outside_addresses"} if kind == "wire" else set())


def test_every_input_of_traffic_and_device_that_moves_figures_is_recorded() -> None:
    """The number of subscribers was not."""
    inputs = [*inputs_of_part("traffic"), *inputs_of_part("device")]
    all_of_map_e = recorded("map-e", CHOSEN) | recorded("map-e", MIXED)
    assert moving(inputs) - all_of_map_e - recorded(RECIPE.name, LOGGED) == set(VLANS)
    # Nobody chooses the others of a device that is not ours.
    wire = {"lab": "wire", **LAB_OPTIONS["wire"], "table_size": 1 << 20, **VLANS}
    assert moving(inputs) - recorded(RECIPE.name, wire) - set(MIXED) - set(LOGGED) == {
        "subscribers", "hash_size", "timeouts", "udp_timeout", "emptying", "psid_length", "psid_offset",
    }  # fmt: skip


def tagged() -> Bench:
    """A device on a wire whose frames have VLAN tags."""
    return Bench(ask("throughput", RECIPE.name, {"lab": "wire", **LAB_OPTIONS["wire"], **VLANS}).cell)


def test_every_input_of_a_gateway_compared_by_slices_that_moves_figures_is_recorded() -> None:
    bench = Bench(ask("throughput", "map-e", CHOSEN).cell)
    wishes = bench.cell.device
    device = settings_of("map-e", wishes)
    found = gateway_parameters(bench, device, {}).flat()
    # All gateways have the same lab, and an input of its kind is refused. Slices do not wait for late frames.
    of_labs = set(place_inputs())
    inputs = [one for one in gateway_inputs().values() if one.name not in of_labs]
    mixed = gateway_parameters(Bench(ask("throughput", "map-e", MIXED).cell), device, {}).flat()
    pool = gateway_parameters(Bench(ask("throughput", RECIPE.name, {"outside_addresses": 4}).cell), device, {}).flat()
    logging = Bench(ask("throughput", RECIPE.name, LOGGED).cell)
    logged = gateway_parameters(logging, settings_of(RECIPE.name, logging.cell.device), {}).flat()
    vlans = gateway_parameters(tagged(), None, {}).flat()
    assert moving(inputs) - set(found) - set(mixed) - set(pool) - set(logged) - set(vlans) == {"grace_seconds"}


def test_gateways_of_a_comparison_log_each_in_its_own_way() -> None:
    names = ["nftables-nat44", "nftables-nat44:logging=conntrack-events"]
    compared = read_gateways(names, {}, unlike=False)
    assert [one.question.cell.device.logging for one in compared] == [None, "conntrack-events"]


def ports_of(gateways: list[ComparedGateway]) -> list[str | None]:
    """The ports that the frames of each gateway go to."""
    return [gateway.question.cell.traffic.destination_ports for gateway in gateways]


def test_gateways_that_are_compared_have_the_same_traffic(in_an_empty_folder: Path, golden: Golden) -> None:
    assert in_an_empty_folder.is_dir()
    mine, other = written("mine"), written("other", 'udp = "53"')
    # The baseline's rules accept everything.
    plain = read_gateways(["nftables-nat44", mine], {}, unlike=False)
    assert ports_of(plain) == ["443", "443"]
    assert traffic_of_rules(plain) is None
    # A change of the ports: both have the traffic of the base, and this is said.
    unlike = read_gateways([mine, other], {}, unlike=False)
    assert ports_of(unlike) == ["443", "443"]
    golden(traffic_of_rules(unlike) or "")
    # The user's own go first, for all or for one.
    named = read_gateways([mine, other], {"destination_ports": "9"}, unlike=False)
    assert ports_of(named) == ["9", "9"]
    assert traffic_of_rules(named) is None
    own = read_gateways([mine, f"{other}:destination_ports=53"], {}, unlike=False)
    assert ports_of(own) == ["443", "53"]
    assert traffic_of_rules(own) is None
    assert "--destination-ports 443" in unlike[1].alone("up", "shared")


@pytest.mark.usefixtures("in_an_empty_folder")
def test_ports_of_a_recipe_make_the_number_of_connections() -> None:
    """As where a user names ports."""
    assert Bench(ask("subscribers", written("mine"), {}).cell).traffic.connections == 64_512


@pytest.mark.parametrize(
    "settings",
    [
        "frame-size=512,connections=1000,udp-timeout=100",
        "lab=wire,initiator_gateway=10.0.0.1,empty-command=empty a,table-of=b",
        "lab=wire,initiator_gateway=2001:db8::1,empty_command=nft flush table ip a, ip b,sender_cores=1",
    ],
    ids=["written as options", "a comma before a word with a dash that is no setting", "colons and commas"],
)
def test_settings_of_a_gateway_may_have(settings: str, golden: Golden) -> None:
    (_, one) = read_gateways(["nftables-nat44", f"nftables-nat44:{settings}"], {}, unlike=False)
    cell = one.question.cell
    golden([cell.traffic.frame_size, cell.traffic.connections, cell.device.named(), cell.kind_options])


def test_slices_open_connections_in_one_order(golden: Golden) -> None:
    """Another order was accepted, and the engine's request had the permutation."""
    gateways = read_gateways(["nftables-nat44", "iptables-nat44"], {"order": "increasing"}, unlike=False)
    assert with_usual_options(CompareOptions(), gateways).by == "rates"
    with golden.raises(UsageError):
        with_usual_options(CompareOptions(by="slices"), gateways)


def test_a_comparison_by_rates_keeps_what_its_gateways_may_choose_of_the_traffic() -> None:
    """Order and grace were left out, although a gateway's name may be followed by either."""
    runs = [traffic(order="increasing"), traffic(frame_sizes="64:1,65:1", down_frame_sizes="64:1"), tagged().traffic]
    several = replace(CONDITIONS, chosen={**CONDITIONS.chosen, "outside_addresses": 4})
    every = [*(replace(CONDITIONS, traffic=run) for run in runs), several]
    kept = {name for run in every for name in without_search(record(run)).flat()}
    assert not moving([*inputs_of_part("traffic"), *inputs_of_part("lab")]) - kept - {"subscribers"}


def test_a_result_of_echo_requests_is_not_called_one_of_the_rfc() -> None:
    notes = {transport: result(traffic=traffic(transport=transport)).notes for transport in ("udp", "icmp")}
    assert [note.word for note in notes["icmp"] if note not in notes["udp"]] == ["method"]


@pytest.mark.parametrize(("subscribers", "told"), [(1, None), (10, 10)])
def test_a_single_subscriber_is_comparable_with_a_device_that_has_none(subscribers: int, told: int | None) -> None:
    bench = Bench(ask("throughput", "map-e", {"subscribers": subscribers, "connections": 1000}).cell)
    found = result(traffic=bench.traffic)
    assert found.parameter("subscribers") == told
    assert ("subscribers" in {one.name for one in comparable(result(), found)}) == (told is not None)


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
    parameters: Parameters = record(replace(CONDITIONS, device=None, device_cores=DeviceCores()))
    assert set(parameters.device) == {"gateway", "title", "kind", "responder_family", "recipe_digest"}
    assert parameters.place["device_cores"] is None


def test_the_cores_of_a_device_that_is_not_ours_are_recorded_as_the_user_states_them() -> None:
    stated = record(replace(CONDITIONS, device=None, device_cores=DeviceCores(8)))
    assert (stated.place["device_cores"], stated.place["device_cpus"]) == (8, [])
    two, four = (result(lab_kind="ssh", placement="external", device_cores=DeviceCores(count)) for count in (2, 4))
    assert [one.name for one in comparable(two, four)] == ["device_cores"]


def test_on_ports_that_no_cable_of_veths_is_like_the_testers_own_rates_are_not_known() -> None:
    """They were published as those of the ports."""
    parameters = record(replace(CONDITIONS, rates=HighestRates(5e6, 4e6, own_ports=False))).flat()
    assert (parameters["tester_highest_phase1_rate"], parameters["tester_highest_phase2_rate"]) == (None, None)
    assert (parameters["search_top_phase1_rate"], parameters["search_top_phase2_rate"]) == (5e6, 4e6)
    assert "search_top_phase1_rate" not in record(CONDITIONS).flat()


class _Raised(Gateway):
    """A gateway whose time-out natgauge raises for the second trial."""

    def measure(self, plan: PlanOfTrial) -> OneTrial:
        outcome = Gateway.measure(self, plan)
        return replace(outcome, raised_timeout=40 if len(self.plans) > 1 else None)


@pytest.mark.parametrize(("device", "raised"), [(_Raised(establishes=3e5), 40), (Gateway(establishes=3e5), None)])
def test_a_result_has_the_time_out_of_before_and_the_one_that_its_trials_had(
    device: Gateway, raised: int | None
) -> None:
    """Seen: a time-out that natgauge had raised in a trial was in no field of the result."""
    asked = record(replace(CONDITIONS, device=replace(DEVICE, knobs={**DEVICE.knobs, "udp_timeout": 30})))

    def of(gateway: Gateway) -> Result:
        return make(alone("connection-rate", gateway, connections=20_000, placement="shared"), asked)

    found = of(device)
    assert (found.parameters.device["udp_timeout"], found.parameters.device.get("raised_udp_timeout")) == (30, raised)
    assert not list(comparable(found, of(Gateway(establishes=3e5))))


def test_a_mix_is_recorded_with_its_means_and_with_the_least_frame_which_opens_connections() -> None:
    found = record(replace(CONDITIONS, traffic=replace(traffic(frame_sizes="64:1,1518:1"), frame_size=64)))
    assert found.get("mean_frame_octets") == {way: {"initiator": 791, "responder": 791} for way in ("up", "down")}
    assert found.get("least_frame_octets") == {"initiator": 64, "responder": 64}
    assert record(CONDITIONS).get("least_frame_octets") is None
