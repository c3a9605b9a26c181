# SPDX-License-Identifier: Apache-2.0
"""What the real measurer does beyond trials: timed emptying, watching the count, restarting; and who can do it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest
from tests.plans import PlanOfTrial
from tests.unit.fake_engine import FakeEngine
from tests.unit.fake_measurer import SETTINGS, FakeTable
from tests.unit.fake_measurer import measurer as made_measurer
from tests.unit.golden import Golden
from tests.unit.made_cable import FakeCable, FloorEngine

from natgauge.delays import Delays
from natgauge.errors import BrokenError, UsageError
from natgauge.gateways.limits import DeviceDemand, choose, refuse_unfit
from natgauge.gateways.recipe import load
from natgauge.inputs.question import DeviceOptions
from natgauge.measurer import Ability
from natgauge.paired.slices import RoundPlan, TimedRound
from natgauge.tester.cable import CableTester, FrameKind
from natgauge.tester.own_rates import FloorTester
from natgauge.trial.bench import Bench
from natgauge.trial.lab_measurer import DEVICE_ABILITIES, TESTER_ABILITIES, LabMeasurer
from natgauge.trial.planned import Planned
from natgauge.trial.question import ask
from natgauge.trials import Direction, Phase2Plan
from natgauge.words import TcpState


class Played(FakeTable):
    """A device that is played by a recipe, with a table of its own."""

    empties = True
    counts = True

    def __init__(self, engine: FakeEngine) -> None:
        super().__init__(engine)
        self.holds = [400, 300, 0, 0]
        self.restarts = 0

    def count(self) -> int:
        return self.holds.pop(0)

    def empty_timed(self) -> float:
        return 0.25

    def restart(self) -> None:
        self.restarts += 1
        self.holds = [0] * 10


def measurer(device: Any, **others: Any) -> LabMeasurer:
    engine = FakeEngine(**others)
    own = device(engine) if device else None
    return made_measurer(engine, device=own, settings=replace(SETTINGS, first_mark=1))


def test_a_device_that_is_played_gives_all_abilities_and_a_foreign_one_the_testers_own() -> None:
    assert set(Ability) == TESTER_ABILITIES | DEVICE_ABILITIES | {
        Ability.OWN_DELAYS,
        Ability.BACKGROUND,
        Ability.COSTS,
        Ability.REAL_SERVER,
    }
    assert measurer(Played).abilities == TESTER_ABILITIES | DEVICE_ABILITIES
    assert measurer(None).abilities == TESTER_ABILITIES
    assert Ability.RESTART_IN_TRIAL not in TESTER_ABILITIES


def test_a_device_without_a_count_or_a_table_has_fewer() -> None:
    class Mute(Played):
        empties = False
        counts = False

    assert measurer(Mute).abilities == TESTER_ABILITIES | {Ability.RESTART, Ability.RESTART_IN_TRIAL}


def test_a_restarted_device_must_forward(golden: Golden) -> None:
    subject = measurer(Played)
    subject.restart()
    assert isinstance(subject.device, Played)
    assert subject.device.restarts == 1
    with golden.raises(BrokenError):
        measurer(Played, lost=8).restart()


def test_the_testers_own_delay_is_taken_at_all_directions_together(golden: Golden) -> None:
    asked: list[tuple[float, float, bool]] = []
    batches: list[int] = []

    def own(rate: float, seconds: float, *, batch: int, variation: bool) -> Delays:
        asked.append((rate, seconds, variation))
        batches.append(batch)
        return Delays(1, 2e-6, 2e-6, 2e-6, 0, ((2e-6, 2.01e-6, 1),))

    subject = measurer(None)
    subject.own = own
    assert subject.abilities == TESTER_ABILITIES | {Ability.OWN_DELAYS}
    plan = PlanOfTrial(10, 10.0, Phase2Plan(1000.0, 1000.0, 60.0))
    found = subject.own_delays(plan)
    subject.own_delays(replace(plan, record_variation=True))
    assert (set(found), asked) == (set(Direction), [(2000.0, 2.0, False), (2000.0, 2.0, True)])
    assert set(subject.own_delays(PlanOfTrial(10, 10.0, Phase2Plan(0.0, 1000.0, 0.5)))) == {Direction.RESPONDER}
    # 64 frames left together on the cable, and in a trial in `shared` placement fewer, or each alone.
    fast = PlanOfTrial(10, 10.0, Phase2Plan(1e6, 1e6, 60.0))
    subject.own_delays(fast)
    subject.own_delays(replace(fast, single_frames=True))
    assert batches == [1, 1, 1, subject.request(fast).senders.batch, 1]
    assert batches[3] > 1
    with golden.raises(UsageError):
        measurer(None).own_delays(PlanOfTrial(10, 10.0))


def test_the_cable_is_asked_for_delays_and_variation_and_must_give_some(golden: Golden) -> None:
    engine = FakeEngine(delays_ns=(2_000, 2_500))
    cable = CableTester(FakeCable(), (0,), engine)
    found = cable.delays(FrameKind("ipv4", 64, delays=True, variation=True), 50_000.0, 0.5, 64)
    assert found.variation is not None
    assert (found.variation.minimum, found.variation.maximum) == (-500e-9, 500e-9)
    engine.delays_ns = None
    with golden.raises(BrokenError):
        cable.delays(FrameKind("ipv4", 64, delays=True), 50_000.0, 0.5, 8)
    varied, plain = engine.requests
    assert (varied.record_variation, plain.record_delays, plain.record_variation) == (True, True, False)
    assert plain.senders.batch == 8
    assert plain.phase2 is not None
    assert plain.phase2.initiator is not None
    assert (plain.phase2.initiator.frames, plain.connections) == (25_000, 25_000)


def test_the_floor_is_of_as_many_connections_and_rounds_as_are_named() -> None:
    engine = FloorEngine()
    FloorTester(FakeCable(), 3, engine, connections=5000).share(FrameKind("ipv6", 84, delays=True), rounds=3)
    assert [request.contestants[0].trial.connections for request in engine.requests] == [5000] * 3


def test_what_is_not_ours_is_not_told_to_do_anything(golden: Golden) -> None:
    for act in (measurer(None).restart, measurer(None).empty_timed, lambda: measurer(None).watch_count(1, 1)):
        with golden.raises(UsageError):
            act()


WIRE = {
    "lab": "wire",
    "initiator_port": "one",
    "initiator_gateway": "10.0.0.1",
    "responder_port": "two",
    "responder_gateway": "198.19.0.1",
}


def check(metric: str, gateway: str, **choices: object) -> tuple[Bench, Planned]:
    """A bench and a procedure on it, as far as they are refused without touching anything."""
    question = ask(metric, gateway, choices)
    bench = Bench(question.cell)
    return bench, bench.plan(question.metric, question.settings)


@pytest.mark.parametrize(
    ("metric", "choices"),
    [
        *((metric, WIRE) for metric in ("reset", "tear-down-rate", "expiry")),
        # A gateway without a table.
        *((metric, {"gateway": "linux-ipv4"}) for metric in ("table-capacity", "tear-down-rate", "expiry")),
        ("throughput", {"stateless": True}),
        ("throughput", {"stateless": True, "gateway": "tayga-nat64"}),
        ("throughput", {**WIRE, "initiator_gateway": "2001:2::1", "stateless": True, "gateway": "tayga-siit"}),
    ],
)
def test_what_a_device_cannot_do_or_be_told_is_refused_before_anything_starts(
    metric: str, choices: dict[str, Any], golden: Golden
) -> None:
    with golden.raises(UsageError):
        check(metric, **{"gateway": "nftables-nat44", **choices})


@pytest.mark.parametrize(
    ("metric", "choices"),
    [
        *((metric, {**WIRE, "device_timeout": 120}) for metric in ("ipdv", "system-recovery", "throughput")),
        # A command of the user resets what is not ours; a device of ours can be restarted in a trial.
        ("reset", {**WIRE, "reset_kind": "power", "reset_command": "true", "device_timeout": 120}),
        ("reset", {"placement": "shared"}),
        ("throughput", {"stateless": True, "gateway": "linux-ipv6"}),
        ("connection-rate", {"gateway": "tayga-siit"}),
    ],
)
def test_what_tester_and_device_can_do_is_not_refused(metric: str, choices: dict[str, Any]) -> None:
    assert check(metric, **{"gateway": "nftables-nat44", **choices})[1].procedure.metric == metric


def test_a_stateless_translator_is_measured_without_state_where_its_mapping_is_known() -> None:
    bench, _ = check("throughput", "tayga-siit", stateless=True)
    assert str(bench.traffic.mapped_addresses) == "198.18.0.2"


def test_source_addresses_and_ports_of_a_plan_are_counted_where_each_has_an_outside_port() -> None:
    ranges = {"source_addresses": "2001:2::2-2001:2::5", "source_ports": "1024-26023", "destination_ports": "1-4"}
    with pytest.raises(UsageError, match="100000 source addresses x ports need up to 100000 outside ports"):
        check("connection-rate", "jool-nat64", connections=100_000, **ranges)
    check("connection-rate", "jool-nat64", connections=64_000, **ranges)


def test_source_addresses_and_ports_on_a_wire_are_compared_with_a_pool_that_is_known() -> None:
    """A translator with several outside addresses was refused, because one was assumed."""
    wire = {**WIRE, "initiator_gateway": "2001:2::1", "device_timeout": 120, "connections": 100_000}
    ranges = {"source_addresses": "2001:2::2-2001:2::5", "source_ports": "1024-26023", "destination_ports": "1-4"}
    check("connection-rate", "jool-nat64", **wire, **ranges)
    check("connection-rate", "jool-nat64", **wire, **ranges, pool="203.0.113.1-203.0.113.2")
    with pytest.raises(UsageError, match="1 outside address has 64512"):
        check("connection-rate", "jool-nat64", **wire, **ranges, pool="203.0.113.1-203.0.113.1")


def test_a_time_out_of_other_frames_than_udp_is_named_as_theirs() -> None:
    with pytest.raises(UsageError, match="ICMP time-out 1 s is not longer"):
        check("connection-rate", "nftables-nat44", transport="icmp", udp_timeout=1)


def test_a_table_that_is_to_be_filled_is_neither_raised_nor_refused(golden: Golden) -> None:
    recipe = load("nftables-nat44")
    plan = DeviceDemand(connections=1_000_000, phase1_seconds=1.0, remote_endpoints=1000)
    small = {"table_size": 65_536}
    with golden.raises(UsageError):
        refuse_unfit(recipe, plan, small)
    filling = replace(plan, fills_table=True)
    refuse_unfit(recipe, filling, small)
    assert choose(recipe, plan, DeviceOptions(), small)["table_size"] > 1_000_000
    assert "table_size" not in choose(recipe, filling, DeviceOptions(), small)
    assert choose(recipe, filling, DeviceOptions(table_size=70_000), small)["table_size"] == 70_000


def test_the_space_of_four_tuples_is_what_draws_are_drawn_from() -> None:
    bench, planned = check("enumeration-orders", "nftables-nat44", connections=10)
    assert getattr(planned.settings, "four_tuples", None) == bench.traffic.space >= 64_512


def test_connections_that_are_to_expire_get_no_longer_time_outs_than_they_need() -> None:
    expiring, others = (check(name, "nftables-nat44")[1].demand for name in ("expiry", "pdv"))
    assert expiring.needed_seconds < 10 < others.needed_seconds


class Rounds:
    """Rounds of slices that end as they are told."""

    def __init__(self, *, fault: str = "", breaks: bool = False) -> None:
        self.fault = fault
        self.breaks = breaks

    def round(self, _measurer: LabMeasurer, _plan: RoundPlan) -> TimedRound:
        if self.breaks:
            raise BrokenError("the engine was interrupted")
        return TimedRound((), {0: self.fault} if self.fault else {}, 0, 0)


ROUND = RoundPlan(1000, {"up": 1})


def test_frames_are_timed_only_where_something_stands_beside() -> None:
    subject = measurer(Played)
    with pytest.raises(UsageError, match="timing the frames"):
        subject.costs(ROUND)
    subject.slice_rounds = Rounds(fault="lost")
    assert Ability.COSTS in subject.abilities
    assert subject.costs(ROUND).faults == {0: "lost"}
    assert not subject.collapsed


@pytest.mark.parametrize("breaks", [False, True])
def test_a_device_that_did_not_outlive_slices_is_started_anew(breaks: bool) -> None:  # noqa: FBT001
    class Gone(Played):
        def confirm_ready(self) -> None:
            raise BrokenError("no answer")

    subject = measurer(Gone)
    subject.slice_rounds = Rounds(fault="lost", breaks=breaks)
    if breaks:
        with pytest.raises(BrokenError, match="interrupted"):
            subject.costs(ROUND)
    else:
        subject.costs(ROUND)
    assert subject.collapsed
    subject.slice_rounds = Rounds()
    subject.costs(ROUND)
    assert isinstance(subject.device, Gone)
    assert (subject.device.restarts, subject.collapsed) == (1, False)


def test_each_state_has_a_time_out_of_its_own_or_none() -> None:
    knobs = load("nftables-nat44").carrying("tcp").knobs
    files = {
        state: [path.rpartition("_timeout_")[2] for path in timeout.paths]
        for state in get_args(TcpState)
        if (timeout := knobs.in_state(state).udp_timeout) is not None
    }
    assert files == {
        "established": ["established", "unacknowledged", "max_retrans"],
        "half-open": ["syn_sent", "syn_recv"],
        "fin": ["time_wait"],
        "rst": ["close"],
    }


def test_queries_go_to_port_53_over_1600_connections_unless_told_otherwise() -> None:
    cell = ask("resolution-rate", "nftables-nat44", {}).cell
    assert (cell.traffic.destination_ports, cell.traffic.connections) == ("53", 1600)
    own = ask("resolution-rate", "nftables-nat44", {"source_ports": "2000-2999"}).cell
    assert (own.traffic.destination_ports, own.traffic.connections) == ("53", None)
    # The draft's number is the same for every technology: a customer has 2048 ports.
    for gateway in ("map-t", "map-e", "lw4o6", "ds-lite", "464xlat-tayga"):
        assert Bench(ask("resolution-rate", gateway, {}).cell).traffic.connections == 1600
    smaller = ask("resolution-rate", "map-t", {"psid_length": 6}).cell
    assert (smaller.traffic.destination_ports, smaller.traffic.connections) == ("53", None)
    assert Bench(smaller).traffic.connections == 512
    several = ask("resolution-rate", "map-t", {"psid_length": 6, "subscribers": 2}).cell
    assert several.traffic.connections == 1600
    other = ask("throughput", "nftables-nat44", {}).cell
    assert (other.traffic.destination_ports, other.traffic.connections) == (None, None)
