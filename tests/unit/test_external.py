# SPDX-License-Identifier: Apache-2.0
"""Trials on a device that is not ours begin without connections of earlier ones, or are refused."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tests.plans import PlanOfTrial
from tests.unit.fake_engine import FakeEngine
from tests.unit.fake_measurer import AROUND, SETTINGS, FakeLab, Recorder
from tests.unit.golden import Golden
from tests.unit.made_results import grouped
from tests.unit.simulated import Gateway
from tests.unit.test_measurer_verbs import WIRE, check

from natgauge.agreement.generated import TrialRequest
from natgauge.errors import BrokenError, HostError, UsageError
from natgauge.inputs.question import TrafficOptions
from natgauge.labs.contract import CommandResult, ExternalDevice
from natgauge.measurements.record import make
from natgauge.measurer import Ability
from natgauge.notes import known
from natgauge.procedures import throughput
from natgauge.setup.traffic import Range, make_plan
from natgauge.trial import external as external_device
from natgauge.trial.controls import Silent
from natgauge.trial.external import (
    SPARE_SECONDS,
    ExternalControls,
    ExternalMeasurer,
    FreshTuples,
    Ledger,
    Use,
    abilities,
)
from natgauge.trials import Phase2Plan

TIMEOUT = 30
NAT = "nftables-nat44"


@dataclass
class Clock(Silent):
    """Time that passes only while somebody sleeps; notes what the observer is told."""

    now: float = 10_000.0
    told: list[str] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def stage(self, text: str) -> None:
        self.told.append(text)


def tuples(clock: Clock, connections: int = 1000, **others: Any) -> FreshTuples:
    given: dict[str, Any] = {"method": "new-tuples", "ledger": Ledger(None), "clock": clock, "sleep": clock.sleep}
    return FreshTuples(make_plan(TrafficOptions(connections=connections), AROUND), TIMEOUT, **{**given, **others})


def use(fresh: FreshTuples, observer: Clock) -> Range:
    """One trial of no duration; its destination ports."""
    traffic = fresh.next()
    with fresh.used(traffic.destination_ports, traffic.connections, 0.0, observer):
        return traffic.destination_ports


class Conntrack(FakeEngine):
    """An engine before a device that knows for how long it remembers which tuples; notes when it is asked, counts."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.device_clock = clock
        self.at: list[float] = []
        self.known: dict[tuple[int, int], float] = {}
        self.new: list[int] = []

    def __call__(self, request: TrialRequest, *others: Any) -> Any:
        """A trial whose connections are source and destination ports, in order."""
        sources, ports = request.initiator.source_ports, request.initiator.destination_ports
        assert ports.last >= ports.first
        opened = [
            (sources.first + number % (sources.last - sources.first + 1), ports.first + number // 64_512)
            for number in range(request.connections)
        ]
        now = self.device_clock.now
        self.at.append(now)
        self.new.append(sum(self.known.get(one, 0.0) <= now for one in opened))
        self.device_clock.now += 0.5
        self.known.update(dict.fromkeys(opened, self.device_clock.now + TIMEOUT))
        return super().__call__(request, *others)


def external(engine: FakeEngine, fresh: FreshTuples | None, observer: Clock, **others: Any) -> ExternalMeasurer:
    return ExternalMeasurer(
        place=FakeLab(),
        device=others.pop("device", None),
        traffic=make_plan(TrafficOptions(connections=1000), AROUND),
        settings=replace(SETTINGS, first_mark=1),
        recorder=others.pop("recorder", Recorder()),
        observer=observer,
        runner=engine,
        fresh=fresh,
    )


@pytest.mark.parametrize("method", ["new-tuples", "wait", "no-wait"])
def test_every_connection_of_every_trial_is_new_to_the_device(method: Any) -> None:
    """Published once: plain forwarding taken for the opening of connections, from the second trial on."""
    clock = Clock()
    engine, recorder = Conntrack(clock), Recorder()
    subject = external(engine, tuples(clock, method=method), clock, recorder=recorder)
    subject.check_forwarding()
    for _ in range(5):
        subject.measure(PlanOfTrial(1000, 1000.0, Phase2Plan(100.0, 100.0, 0.1)))
    assert engine.new == [8, 1000, 1000, 1000, 1000, 1000]
    # What is recorded is what was sent.
    ports = [one["request"]["initiator"]["destination_ports"] for one in recorder.trials]
    assert ports == [plain.model_dump() for plain in (one.initiator.destination_ports for one in engine.requests[1:])]
    assert bool(clock.told) == (method == "wait")


def test_each_trial_has_as_many_source_ports_as_ever_and_the_next_destination_ports() -> None:
    clock = Clock()
    fresh = tuples(clock, 100_000)
    assert [use(fresh, clock) for _ in range(3)] == [Range(1, 2), Range(3, 4), Range(5, 6)]
    assert fresh.next().source_ports == fresh.traffic.source_ports
    assert clock.told == []


@pytest.mark.parametrize("method", ["new-tuples", "no-wait"])
def test_when_the_ports_run_out_the_first_ones_are_waited_for_with_a_count_down_or_refused(
    method: str, golden: Golden
) -> None:
    clock = Clock()
    # All 65,535 ports are three slices.
    fresh = tuples(clock, 64_512 * 21_845, method=method)
    assert use(fresh, clock) == Range(1, 21_845)
    clock.now += 10
    assert [use(fresh, clock), use(fresh, clock)] == [Range(21_846, 43_690), Range(43_691, 65_535)]
    if method == "no-wait":
        with golden.raises(UsageError):
            use(fresh, clock)
        return
    assert use(fresh, clock) == Range(1, 21_845)
    assert clock.now == 10_000 + TIMEOUT + SPARE_SECONDS
    assert [told.split()[1] for told in clock.told] == ["21", "16", "11", "6", "1"]
    golden(clock.told[0])


@pytest.mark.parametrize("others", [{"sliced": False}, {"method": "wait"}])
def test_named_ports_and_who_wants_an_empty_table_wait_the_time_out_out(others: dict[str, Any]) -> None:
    clock = Clock()
    fresh = tuples(clock, **others)
    assert use(fresh, clock) == use(fresh, clock) == Range(1, 1)
    assert clock.now == 10_000 + TIMEOUT + SPARE_SECONDS


@pytest.mark.parametrize(
    ("gateway", "next_ports"), [(NAT, Range(2, 2)), ("pasta-nat44", Range(1, 1)), ("gvproxy-nat44", Range(1, 1))]
)
def test_a_device_that_reuses_no_outside_port_for_another_destination_gets_no_further_ones(
    gateway: str, next_ports: Range
) -> None:
    """Of gvproxy, each connection of an earlier trial has a port of its own until the time-out."""
    bench, _ = check("connection-rate", gateway, **WIRE, device_timeout=TIMEOUT, connections=1000)
    subject = external_device.measurer(
        bench.lab,
        bench.recipe,
        named_ports=False,
        place=FakeLab(),
        traffic=make_plan(TrafficOptions(connections=1000), AROUND),
        settings=SETTINGS,
        recorder=Recorder(),
        runner=FakeEngine(),
    )
    assert subject.fresh is not None
    subject.fresh.ledger = Ledger(None, [Use(1, 1, 0.0, 1000)])
    assert subject.fresh.next().destination_ports == next_ports


def test_a_table_whose_limit_is_known_is_never_asked_for_more_than_it_has_room_for() -> None:
    clock = Clock()
    fresh = tuples(clock, table_limit=2500)
    use(fresh, clock)
    clock.now += 5
    assert [use(fresh, clock), clock.now] == [Range(2, 2), 10_005]
    assert [use(fresh, clock), clock.now] == [Range(3, 3), 10_000 + TIMEOUT + SPARE_SECONDS]


def test_a_later_measurement_knows_what_an_earlier_one_used(tmp_path: Path) -> None:
    clock, file = Clock(), tmp_path / "x.uses"
    use(tuples(clock, ledger=Ledger(file)), clock)
    path = Ledger.of("a", 0.0).path
    assert path is not None
    assert path.name == "a.uses"
    assert Ledger.read(file, clock.now).uses == [Use(1, 1, 10_000.0, 1000)]


def test_a_later_measurement_knows_what_a_killed_trial_used(tmp_path: Path) -> None:
    clock, file = Clock(), tmp_path / "x.uses"
    trial = ExitStack()
    trial.enter_context(tuples(clock, ledger=Ledger(file)).used(Range(1, 2), 1000, 100.0, clock))
    # It was killed before the next one began, or long ago; no trial lasts for longer than it can.
    assert Ledger.read(file, clock.now + 7).uses == [Use(1, 2, 10_007.0, 1000)]
    assert Ledger.read(file, clock.now + 700).uses == [Use(1, 2, 10_100.0, 1000)]
    later = tuples(clock, ledger=Ledger.read(file, clock.now))
    assert use(later, clock) == Range(3, 3)
    assert clock.now == 10_000
    clock.now += 9
    trial.close()
    assert Ledger.read(file, clock.now).uses == [Use(1, 2, 10_009.0, 1000)]


@pytest.mark.parametrize(
    "text",
    [
        None,
        '{"boot": "another", "uses": [[1, 1, 5.0, 1000]]}',
        # One that cannot be read says nothing.
        "no ledger",
        "[[1, 1, 5.0, 1000]]",
        '{"uses": []}',
        "7",
    ],
)
@pytest.mark.parametrize("up", [12.0, 90_000.0])
def test_the_first_use_of_a_boot_or_container_waits_for_what_another_one_may_have_opened(
    tmp_path: Path, up: float, text: str | None
) -> None:
    clock, file = Clock(now=up), tmp_path / "x.uses"
    if text is not None:
        file.write_text(text)
    fresh = tuples(clock, ledger=Ledger.read(file, clock.now))
    # What was made ready meanwhile is no longer waited for.
    clock.now += 10
    assert use(fresh, clock) == Range(1, 1)
    assert clock.now == up + TIMEOUT + SPARE_SECONDS
    assert [told.split()[1] for told in clock.told] == ["21", "16", "11", "6", "1"]
    # The second measurement of this boot knows what the first one used.
    assert use(tuples(clock, ledger=Ledger.read(file, clock.now)), clock) == Range(2, 2)
    assert clock.now == up + TIMEOUT + SPARE_SECONDS


def test_two_containers_that_know_nothing_of_each_other_share_no_four_tuples(tmp_path: Path, golden: Golden) -> None:
    clock = Clock()
    engine = Conntrack(clock)
    for name in ("one", "other"):
        fresh = tuples(clock, ledger=Ledger.read(tmp_path / name, clock.now))
        subject = external(engine, fresh, clock)
        for _ in range(2):
            subject.measure(PlanOfTrial(1000, 1000.0))
    assert engine.new == [1000] * 4
    golden(clock.told[0])


def test_who_wants_no_waiting_is_refused_at_the_first_use_but_not_once_it_was_waited_out(tmp_path: Path) -> None:
    clock, file = Clock(), tmp_path / "x.uses"
    for seconds in (0, TIMEOUT / 2):
        clock.now += seconds
        with pytest.raises(UsageError, match="the next ones will be in"):
            use(tuples(clock, method="no-wait", ledger=Ledger.read(file, clock.now)), clock)
    clock.now += TIMEOUT / 2 + SPARE_SECONDS
    assert use(tuples(clock, method="no-wait", ledger=Ledger.read(file, clock.now)), clock) == Range(1, 1)


def test_no_trial_begins_whose_use_cannot_be_stored(tmp_path: Path) -> None:
    clock = Clock()
    fresh = tuples(clock, ledger=Ledger(tmp_path / "none" / "x.uses"))
    with pytest.raises(HostError, match=r"none/x\.uses: cannot be written"), fresh.used(Range(1, 1), 1, 1.0, clock):
        pytest.fail("it began")


def counting(tmp_path: Path, left: int = 0) -> ExternalControls:
    """A device that is a file: its octets are connections."""
    table = tmp_path / "table"
    table.write_text("x" * 5)
    return ExternalControls(f"head -c {left} /dev/zero > {table}", f"stat -c %s {table}")


def test_a_device_is_emptied_and_counted_by_the_users_commands(tmp_path: Path) -> None:
    device, clock = counting(tmp_path), Clock()
    assert device.count() == 5
    assert abilities(ExternalDevice(empty_command="a", count_command="b")) == {Ability.EMPTY_TIMED, Ability.WATCH_COUNT}
    assert abilities(ExternalDevice(empty_command="a")) == {Ability.EMPTY_TIMED}
    assert abilities(ExternalDevice(timeout=5)) == abilities(None) == frozenset()
    subject = external(FakeEngine(), None, clock, device=device)
    assert {Ability.EMPTY_TIMED, Ability.WATCH_COUNT} <= subject.abilities
    assert not {Ability.RESTART, Ability.RESTART_IN_TRIAL} & subject.abilities
    torn = subject.empty_timed()
    assert (torn.count_before, torn.count_after) == (5, 0)
    assert torn.seconds > 0
    (tmp_path / "table").write_text("x")
    device.empty()
    assert device.count() == 0


@pytest.mark.parametrize(
    "device",
    [
        lambda _: ExternalControls("echo no route >&2; exit 5"),
        lambda path: counting(path, left=3),
        lambda _: ExternalControls("true", "echo many"),
    ],
)
def test_commands_that_do_not_do_it_are_named(
    device: Callable[[Path], ExternalControls], tmp_path: Path, golden: Golden
) -> None:
    with golden.raises(BrokenError):
        device(tmp_path).empty()


@pytest.mark.parametrize("metric", ["table-capacity", "tear-down-rate", "expiry", "connection-rate"])
def test_with_commands_all_that_needs_an_empty_table_can_be_measured(metric: str) -> None:
    told = {
        "empty_command": "true",
        "count_command": "echo 0",
        "table_size": 200_000,
        "pool": "203.0.113.1-203.0.113.9",
    }
    bench, planned = check(metric, NAT, **WIRE, **told)
    assert planned.procedure.metric == metric
    assert str(bench.address_plan.pool) == "203.0.113.1-203.0.113.9"
    assert bench.lab.parameters()["fresh_trials"] == "empty-command"


def test_a_plain_router_needs_nothing_and_is_told_nothing(golden: Golden) -> None:
    lab = check("connection-rate", "linux-ipv4", **WIRE)[0].lab
    assert lab.parameters()["ports"] == ["one", "two"]
    assert lab.external is not None
    assert lab.external.parameters() == {}
    with golden.raises(UsageError):
        check("connection-rate", "linux-ipv4", **WIRE, device_timeout=5)


def test_the_result_says_that_the_table_was_not_emptied(golden: Golden) -> None:
    settings = throughput.ThroughputSettings(connections=1000, placement="shared", repeat=1, connection_rate=100_000.0)
    found = throughput.PROCEDURE.measure(Gateway(forwards=400_000.0, placement="shared"), settings)
    told = {"fresh_trials": "new-tuples", "device_timeout": 60}
    words = {doubt.word: doubt.text for doubt in make(found, grouped(told)).doubts}
    golden(words["table not emptied"])
    known = make(found, grouped({**told, "table_size": 9000})).doubts
    assert "full" not in next(doubt.text for doubt in known if doubt.word == "table not emptied")
    assert "table not emptied" not in {doubt.word for doubt in make(found, grouped({"fresh_trials": "wait"})).doubts}


@pytest.mark.parametrize("top", [1_700_000.0, 4_000_000.0])
def test_the_result_says_that_the_testers_rate_is_not_known_and_whether_it_came_near_the_highest_tried(
    top: float, golden: Golden
) -> None:
    settings = throughput.ThroughputSettings(connections=1000, placement="shared", repeat=1, connection_rate=100_000.0)
    found = throughput.PROCEDURE.measure(Gateway(forwards=800_000.0, placement="shared"), settings)
    doubts = {doubt.word: doubt.text for doubt in make(found, grouped({"search_top_phase2_rate": top})).doubts}
    golden(doubts["tester unknown"])
    assert "tester unknown" not in {doubt.word for doubt in make(found, grouped({})).doubts}
    # The self-test has a cable of its own, and names no ports.
    assert "--sender-cores" in known("tester unknown").remedy
    assert "selftest" not in known("tester unknown").remedy


def test_commands_have_time_for_the_largest_table_that_a_trial_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []

    def run(_command: str, seconds: float, _name: str, **_: object) -> CommandResult:
        given.append(seconds)
        return CommandResult(0, "0", "", 0.0)

    monkeypatch.setattr(external_device, "run_of_user", run)
    subject = external(FakeEngine(), None, Clock(), device=ExternalControls("true", "echo 0"))
    subject.empty_timed()
    assert set(given) == {120.0}
    for connections in (1000, 400):
        subject.request(PlanOfTrial(connections * 100_000, 1e6))
    given.clear()
    subject.empty_timed()
    assert set(given) == {1120.0}, "100 M connections"


@pytest.mark.parametrize("method", ["new-tuples", "wait"])
def test_whether_a_device_still_forwards_is_asked_at_once(method: Any) -> None:
    """A device that crashed had the time-out to come back before the single frames were sent."""
    clock = Clock()
    engine = Conntrack(clock)
    subject = external(engine, tuples(clock, method=method), clock)
    plan = PlanOfTrial(1000, 1000.0)
    assert subject.measure(plan).verdict == "PASS"
    engine.dead = True
    assert subject.measure(plan).verdict == "COLLAPSED"
    engine.dead = False
    assert subject.measure(plan).verdict == "PASS"
    # A trial, a dead one and its single frames, the check and a trial.
    waited = [after - before - 0.5 for before, after in zip(engine.at, engine.at[1:], strict=False)]
    pause = TIMEOUT + SPARE_SECONDS if method == "wait" else 0.0
    assert waited == [pause, 0.0, 0.0, pause]
    assert engine.new[-1] == 1000


def test_a_connection_of_tcp_that_the_device_remembers_is_not_opened_again() -> None:
    clock = Clock()
    engine = Conntrack(clock)
    traffic = make_plan(TrafficOptions(connections=1000, transport="tcp"), AROUND)
    subject = external(engine, replace(tuples(clock, method="wait"), traffic=traffic), clock)
    engine.dead = True
    subject.measure(PlanOfTrial(1000, 1000.0))
    assert engine.at[1] - engine.at[0] == 0.5 + TIMEOUT + SPARE_SECONDS
