# SPDX-License-Identifier: Apache-2.0
"""What is read of a device beside its frames: energy, memory of a connection, work of its cores, and hot spots."""

from __future__ import annotations

import csv
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.plans import OneTrial, PlanOfTrial
from tests.unit.counted import arrivals, change_counts
from tests.unit.fake_engine import FakeEngine
from tests.unit.fake_measurer import SETTINGS
from tests.unit.golden import Golden
from tests.unit.made_results import made
from tests.unit.simulated import Gateway, reading
from tests.unit.simulated_kinds import Policed
from tests.unit.test_churn import all_came, lost_of
from tests.unit.test_churn import made as churned
from tests.unit.test_measurer_trials import PLAN, measurer
from tests.unit.test_procedure_cost import gateway, measured

from natgauge.device_work import CoreWork, ObjectCache, octets_per_connection, total
from natgauge.device_work import read as read_caches
from natgauge.errors import BrokenError, HostError
from natgauge.host import machine
from natgauge.host.sampling import PROGRAM, Sampling, Stack
from natgauge.host.sampling import read as read_stacks
from natgauge.labs.ssh.lab import read_work
from natgauge.metrics.metric import (
    MICROJOULES_PER_CONNECTION,
    MICROJOULES_PER_FRAME,
    OCTETS_PER_CONNECTION,
    WATTS,
)
from natgauge.paired.slices import HotSpot, RoundPlan, TimedRound
from natgauge.procedures import get
from natgauge.procedures.kit.procedure import make_settings
from natgauge.procedures.kit.results import Attempt, Measurement, idle_cores, imbalance, with_device_figures
from natgauge.readings import Energy, EnergyOfTrial
from natgauge.reports import csv_table
from natgauge.reports.text import verdict
from natgauge.trial.rounds import LEAST_SAMPLES, MOST_FUNCTIONS, hot_spots
from natgauge.trial.trial_run import since
from natgauge.words import Verdict


@dataclass(slots=True)
class Meter:
    """Shows these texts in turn, each after some seconds, and the last one from then on."""

    texts: list[str]
    seconds: float = 10.0
    now: float = 0.0

    def __call__(self) -> str:
        self.now += self.seconds
        return self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]

    def clock(self) -> float:
        return self.now


def read(*texts: str) -> Energy:
    meter = Meter(list(texts))
    with EnergyOfTrial(meter, clock=meter.clock) as metered:
        pass
    return metered.energy()


def test_a_counter_of_energy_is_read_before_and_after() -> None:
    assert read("1000 J", "1250.5 J\n") == Energy(250.5, 10.0)


def test_of_a_power_the_readings_within_the_trial_count() -> None:
    meter = Meter(["20 W", "60 W", "70 W", "20 W"])
    with EnergyOfTrial(meter, clock=meter.clock) as metered:
        metered._read()
        metered._read()
    assert metered.energy() == Energy(65.0 * 30.0, 30.0)


def test_a_trial_without_a_reading_within_it_has_no_power_for_the_device_is_idle_before_and_after() -> None:
    assert read("20 W", "30 W").joules is None


def test_a_reading_that_ends_after_the_trial_may_be_of_an_idle_device() -> None:
    meter = Meter(["20 W", "60 W", "20 W", "20 W"])
    with EnergyOfTrial(meter, clock=meter.clock) as metered:
        metered._read()
    # As of a slow command, for which the end of the trial waits.
    metered._shown.insert(2, replace(metered._shown[-1], number=21.0))
    assert metered.energy() == Energy(60.0 * 20.0, 20.0)


@pytest.mark.parametrize(
    ("texts", "joules"),
    [
        (("1000 J", "1001 J"), None),
        (("1000 J", "1009 J"), None),
        (("1000 J", "1010 J"), 10.0),
        (("1000.0 J", "1001.0 J"), 1.0),
        (("1000.25 J", "1009 J"), None),
        (("1.23456e+06 J", "1.23465e+06 J"), None),
        (("1.23456e+06 J", "1.23466e+06 J"), 100.0),
        (("7 J", "7 J"), None),
    ],
)
def test_an_energy_of_fewer_than_ten_of_the_last_digit_is_not_known(
    texts: tuple[str, str], joules: float | None
) -> None:
    assert read(*texts).joules == joules


@pytest.mark.parametrize("texts", [("61.5",), ("x W",), ("",), ("-5 W",), ("5 W", "6 J"), ("1e999 W",)])
def test_what_is_no_reading_is_named(texts: tuple[str, ...], golden: Golden) -> None:
    with golden.raises((HostError, BrokenError)):
        read(*texts)


def test_a_meter_whose_count_begins_again_leaves_the_trial_without_energy() -> None:
    """RAPL counts to 262 kJ; the trial in which it wrapped ended the measurement."""
    energy = read("262140 J", "9 J")
    assert (energy.joules, energy.seconds) == (None, 10.0)
    assert energy.why_unknown == "the count of energy began again (from 262140 to 9 J); measure again"


def test_a_reading_that_fails_after_others_leaves_the_trial_without_energy() -> None:
    energy = read("1000 J", "no meter")
    assert energy.joules is None
    assert energy.why_unknown.startswith("a reading failed (power command: printed 'no meter'; print a power, ")
    meter = Meter(["no meter", "1000 J"])
    with EnergyOfTrial(meter, clock=meter.clock, is_proven=True) as metered:
        pass
    assert metered.energy().joules is None


def test_a_command_that_fails_once_costs_one_trial_its_energy(tmp_path: Path) -> None:
    count = tmp_path / "readings"
    count.write_text("0")
    command = f'n=$(($(cat {count}) + 1)); echo $n > {count}; [ $n != 3 ] || exit 1; echo "$((n * 500)) J"'
    subject = measurer(FakeEngine(), settings=replace(SETTINGS, power_command=command))
    read_ones = [subject.measure(PLAN).readings.energy for _ in range(3)]
    assert [energy and energy.joules for energy in read_ones] == [500, None, 500]


@pytest.fixture
def counter(tmp_path: Path) -> str:
    """A command that counts 500 J more at each reading."""
    count = tmp_path / "joules"
    count.write_text("0")
    return f'n=$(($(cat {count}) + 500)); echo $n > {count}; echo "$n J"'


def test_a_trial_has_the_energy_that_the_users_command_counted(counter: str) -> None:
    trial = measurer(FakeEngine(), settings=replace(SETTINGS, power_command=counter)).measure(PLAN)
    energy = trial.readings.energy
    assert energy is not None
    assert energy.joules == 500
    assert energy.seconds > 0
    assert measurer(FakeEngine()).measure(PLAN).readings.energy is None


@pytest.mark.parametrize("command", ["exit 3", "echo 5", "echo no meter >&2; exit 1"])
def test_a_command_that_fails_ends_the_measurement_in_one_line(command: str, golden: Golden) -> None:
    with golden.raises(HostError):
        measurer(FakeEngine(), settings=replace(SETTINGS, power_command=command)).measure(PLAN)


def test_a_meter_that_was_read_in_an_earlier_lab_may_fail_in_the_next_one(tmp_path: Path) -> None:
    """The first reading of a new lab ended the measurement, although the command had worked for hours."""
    shown = tmp_path / "shown"
    shown.write_text("1000 J")
    settings = replace(SETTINGS, power_command=f"cat {shown}")
    earlier, later = (measurer(FakeEngine(), settings=settings) for _ in range(2))
    earlier.measure(PLAN)
    later.continue_after(earlier)
    shown.unlink()
    energy = later.measure(PLAN).readings.energy
    assert energy is not None
    assert energy.joules is None
    assert "a reading failed" in energy.why_unknown


@dataclass(slots=True)
class Metered(Gateway):
    """A gateway that takes 40 W, and 1 mJ for each frame."""

    seconds: float = 10.0

    def measure(self, plan: PlanOfTrial) -> OneTrial:
        outcome = Gateway.measure(self, plan)
        frames = outcome.phase1.received_frames + sum(counts.received_frames for counts in outcome.phase2.values())
        return reading(outcome, energy=Energy(40 * self.seconds + 1e-3 * frames, self.seconds))


@pytest.mark.parametrize(
    ("metric", "name"), [("throughput", MICROJOULES_PER_FRAME), ("connection-rate", MICROJOULES_PER_CONNECTION)]
)
def test_a_result_has_the_energy_of_a_frame_or_a_connection_at_the_highest_load_that_passed(
    metric: str, name: str
) -> None:
    procedure = get(metric)
    measured = procedure.measure(Metered(), procedure.settings(connections=10_000, placement="isolated", repeat=2))
    attempts = measured.measurements[0].attempts
    best = max(each.load for each in attempts if each.outcome.verdict == "PASS")
    deciding = [each.outcome for each in attempts if each.outcome.verdict == "PASS" and each.load == best]
    frames = sum(
        one.phase1.received_frames + sum(counts.received_frames for counts in one.phase2.values()) for one in deciding
    )
    expected = (400 * len(deciding) + 1e-3 * frames) / frames * 1e6
    assert measured.measurements[0].figures[name] == pytest.approx(expected)
    assert measured.measurements[0].figures[WATTS] == pytest.approx(40 + 1e-4 * frames / len(deciding))


@dataclass(slots=True)
class ShortlyMetered(Gateway):
    """A gateway whose trials of less than a second are too short for its meter."""

    def measure(self, plan: PlanOfTrial) -> OneTrial:
        """The same trial, with its energy where it is known."""
        short = isinstance(plan, PlanOfTrial) and plan.connections / plan.phase1_rate < 1
        why = "no reading fell into the trial; make trials longer (--trial-seconds, or more --connections)"
        energy = Energy(None, 0.3, why) if short else Energy(20.0, 1.0)
        return reading(Gateway.measure(self, plan), energy=energy)


def test_a_result_says_why_the_power_of_short_trials_is_not_known_and_has_none_of_a_lower_load(golden: Golden) -> None:
    procedure = get("connection-rate")
    chosen = procedure.settings(connections=10_000, placement="isolated", repeat=2)
    measured = procedure.measure(ShortlyMetered(), chosen)
    known = [each.outcome.readings.energy for each in measured.measurements[0].attempts]
    assert any(energy is not None and energy.joules for energy in known)
    assert not {WATTS, MICROJOULES_PER_CONNECTION} & set(measured.figures)
    (note,) = [note for note in measured.notes if "power" in note.text]
    golden(note.text)


@dataclass(slots=True)
class MeteredPolicer(Policed):
    """A gateway that takes a watt for each connection of a trial."""

    def measure(self, plan: PlanOfTrial) -> OneTrial:
        return reading(Policed.measure(self, plan), energy=Energy(plan.connections, 1.0))


def test_a_trial_of_fewer_connections_says_nothing_of_the_power_of_all() -> None:
    """A quarter of them passes at a higher rate than all: the trial that shows a bucket was taken for the answer."""
    procedure = get("connection-rate")
    chosen = procedure.settings(connections=10_000, placement="isolated", repeat=1)
    (measured,) = procedure.measure(MeteredPolicer(), chosen).measurements
    assert any(note.word == "bucket" for note in measured.notes)
    assert measured.figures[WATTS] == 10_000


def test_each_message_of_what_opens_closes_and_floods_is_a_frame() -> None:
    """8,000 frames of open connections were all; 1,000 + 200 connections have three messages each, 200 leave by 3."""
    opening = [arrivals(name, 200) for name in ("syn", "syn-ack", "ack")]
    closing = [arrivals(name, 200) for name in ("fin", "fin-ack", "last-ack")]
    trial = churned(openings=all_came(200, messages=opening), closings=all_came(200, messages=closing))
    result, phase2 = trial.counted, trial.counted.phase2
    assert phase2 is not None
    first = change_counts(trial.phase1, messages=[arrivals(one.name, 1000) for one in opening])
    flooded = phase2.model_copy(update={"flood": lost_of(1000, 700)})
    trial = replace(trial, result=result.model_copy(update={"phase1": first, "phase2": flooded}))
    passed = reading(replace(trial, verdict=Verdict.PASS), energy=Energy(100.0, 2.0))
    repetition = Measurement(1.0, 1.0, "device", {}, attempts=(Attempt(1.0, short=False, outcome=passed),))
    frames = 3 * 1000 + 8000 + 3 * 200 + 3 * 200 + 300
    figures = with_device_figures(repetition).figures
    assert figures == {WATTS: 50, MICROJOULES_PER_FRAME: pytest.approx(1e8 / frames)}


def test_an_energy_of_frames_that_drew_their_four_tuples_is_none_of_a_connection() -> None:
    """Some of them opened no connection, so a connection took more than was said."""
    procedure = get("connection-rate")
    settings = procedure.settings(connections=10_000, placement="isolated", order="with-replacement")
    figures = procedure.measure(Metered(), settings).figures
    assert MICROJOULES_PER_FRAME in figures
    assert MICROJOULES_PER_CONNECTION not in figures


#: Begin of /proc/slabinfo of Linux 6.18.
SLABINFO = """slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount>
nf_conntrack          96    160    256   16    1 : tunables    0    0    0 : slabdata     10     10      0
kmalloc-128        23169  27072    128   32    1 : tunables    0    0    0 : slabdata    846    846      0
"""
EMPTY = {"nf_conntrack": ObjectCache(96, 256), "kmalloc-128": ObjectCache(23169, 128)}


def grown(**objects: int) -> dict[str, ObjectCache]:
    sizes = {"nf_conntrack": 256, "kmalloc-128": 128, "filp": 192}
    every = {name.replace("_", "-", name.count("kmalloc")): number for name, number in objects.items()}
    return {
        name: ObjectCache(number + EMPTY.get(name, ObjectCache(0, 0)).objects, sizes[name])
        for name, number in every.items()
    }


def test_the_kernels_text_is_understood(golden: Golden) -> None:
    assert read_caches(SLABINFO) == EMPTY
    assert read_caches("") == {}
    golden(read_caches(""))


@pytest.mark.parametrize(
    ("after", "connections", "octets"),
    [
        (grown(nf_conntrack=20_000, kmalloc_128=20_000), 20_000, 384.0),
        # The rest of the machine makes and frees objects, too: half an object for each connection is not of the table.
        (grown(nf_conntrack=20_000, kmalloc_128=20_300, filp=9_000), 20_000, 256 + 1.015 * 128),
        (grown(nf_conntrack=20_000, kmalloc_128=39_900), 20_000, 256 + 1.995 * 128),
        # A process keeps the connections.
        (grown(kmalloc_128=300), 20_000, None),
        # Too few connections, or nothing readable.
        (grown(nf_conntrack=9_999), 9_999, None),
        ({}, 20_000, None),
    ],
)
def test_caches_of_which_a_connection_takes_whole_objects_are_its_memory(
    after: Mapping[str, ObjectCache], connections: int, octets: float | None
) -> None:
    found = octets_per_connection(EMPTY, after, connections, connections)
    assert found == (None if octets is None else pytest.approx(octets))


def test_connections_that_were_refused_leave_objects_that_belong_to_no_other_connection() -> None:
    """Of 24,000 connections 16,000 were kept, and the objects of the others were left out of the sum: 254 octets."""
    after = grown(nf_conntrack=16_000, kmalloc_128=24_000)
    assert octets_per_connection(EMPTY, after, 16_000, 24_000) is None
    assert octets_per_connection(EMPTY, after, 16_000, 16_000) is not None


def cache(core: int, level: int, size: str, shared: str, kind: str = "Unified") -> list[str]:
    where = f"cpu{core}/cache/index{level}{kind}"
    facts = {"level": level, "type": kind, "size": size, "shared_cpu_list": shared}
    return [f"{where}/{name}:{value}" for name, value in facts.items()]


def test_processor_caches_are_summed_over_the_cores_that_have_their_own() -> None:
    lines = [
        line
        for core in range(4)
        for line in (
            *cache(core, 1, "48K", str(core), "Data"),
            *cache(core, 1, "64K", str(core), "Instruction"),
            *cache(core, 2, "2048K", str(core)),
            *cache(core, 3, "32M", "0-1" if core < 2 else "2-3"),
        )
    ]
    assert machine.caches_in("\n".join(lines), (0, 1)) == {"L1": 98_304, "L2": 2 * 2**21, "L3": 2**25}
    assert machine.caches_in("\n".join(lines), (1, 2)) == {"L1": 98_304, "L2": 2 * 2**21, "L3": 2 * 2**25}
    assert machine.caches_in("", (0, 1)) == machine.caches_in("\n".join(lines), ()) == {}


@dataclass(slots=True)
class _Remembering(Gateway):
    """Reports the memory of a connection in every trial, with a little noise."""

    def measure(self, plan: PlanOfTrial) -> OneTrial:
        outcome = Gateway.measure(self, plan)
        return reading(outcome, octets_per_connection=384.0 + len(self.plans) % 3)


def test_every_trial_of_a_repetition_is_a_value_of_the_figure() -> None:
    procedure, gateway = get("connection-rate"), _Remembering(establishes=3e5)
    settings = make_settings(
        procedure, {"repeat": 1}, connections=20_000, placement="shared", order="permutation", four_tuples=20_000
    )
    result = procedure.measure(gateway, settings)
    found = result.figures[OCTETS_PER_CONNECTION]
    assert found.count == len(gateway.plans)
    assert (found.minimum, found.maximum) == (384, 386)
    # The rate itself has no sample.
    assert not result.is_sampled


def on_cores(*each: int) -> dict[int, CoreWork]:
    return {core: CoreWork(count) for core, count in enumerate(each)}


@pytest.mark.parametrize(
    ("work_of_cores", "ratio", "idle"),
    [
        (on_cores(500, 500), 1.0, []),
        (on_cores(1000, 0), 2.0, [1]),
        (on_cores(600, 200, 200, 200), 2.0, []),
        (on_cores(900, 900, 10, 10), 900 * 4 / 1820, [2, 3]),
        # A single core is always even, and a few frames say nothing.
        (on_cores(1000), None, []),
        (on_cores(199, 0), None, []),
        ({}, None, []),
        # A core without frames that worked all the same, for example for a gateway's process, is not idle.
        ({0: CoreWork(1000, 2.0), 1: CoreWork(0, 1.5)}, 2.0, []),
        ({0: CoreWork(1000, 2.0), 1: CoreWork(0, 0.1)}, 2.0, [1]),
    ],
)
def test_imbalance_is_the_busiest_core_by_the_mean(
    work_of_cores: Mapping[int, CoreWork], ratio: float | None, idle: list[int]
) -> None:
    assert imbalance(work_of_cores) == (None if ratio is None else pytest.approx(ratio))
    assert idle_cores(work_of_cores) == idle


def test_work_is_the_difference_of_two_readings_of_the_same_machine() -> None:
    before, after = {0: CoreWork(5, 1.0), 1: CoreWork(7)}, {0: CoreWork(9, 1.25), 1: CoreWork(7)}
    assert since(before, after) == {0: CoreWork(4, 0.25), 1: CoreWork(0)}
    # The machine was rebooted, or has other cores now.
    assert since(after, before) == {}
    assert since(before, {**after, 2: CoreWork(1)}) == {}
    assert since({}, after) == {}


def test_readings_of_several_cards_add_up() -> None:
    assert total([on_cores(1, 2), on_cores(10, 20)]) == on_cores(11, 22)
    assert total([{0: CoreWork(1, 0.5)}, {0: CoreWork(1, 0.5)}]) == {0: CoreWork(2, 1.0)}
    assert total([]) == {}


#: Of Linux 6.18 with processors 0 and 2 online; before Linux 5.10 the last four columns did not exist.
SOFTNET = """
0000a410 00000000 00000003 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000
00000010 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000002 00000000 00000000
"""  # noqa: E501 - as the kernel prints it
STAT = "cpu0 100 0 50 9000 7 0 50 0 30 0\ncpu2 1 1 1 9000 0 1 1 1 0 0\n"


@pytest.mark.parametrize("columns", [15, 11], ids=["today", "before Linux 5.10"])
def test_the_kernels_own_counts_are_read(columns: int) -> None:
    lines = "\n".join(" ".join(line.split()[:columns]) for line in SOFTNET.splitlines())
    found = read_work(f"== softnet{lines}\n== stat\n{STAT}", (0, 2))
    assert found == {0: CoreWork(0xA410, 2.0), 2: CoreWork(0x10, 0.06)}


def test_counts_of_another_form_are_refused() -> None:
    for text in ("== softnet\nzz 00\n== stat\n", f"== softnet{SOFTNET}== stat\ncpux 1 2 3 4 5 6 7 8\n"):
        with pytest.raises(ValueError, match="invalid literal"):
            read_work(text, (0, 2))


CACHES: dict[str, Any] = {"device_caches": {"L1": 49_152, "L2": 2**21, "L3": 2**25}, "connections": 1_000_000}


def test_the_report_has_the_memory_and_the_connections_that_fill_the_caches(golden: Golden) -> None:
    figures = {OCTETS_PER_CONNECTION: [384.0, 385.0, 384.0]}
    result = made([1e6], metric="connection-rate", unit="connections/s", figures=figures, parameters=CACHES)
    said = verdict(result)
    golden(said)
    columns = dict(zip(*csv.reader(io.StringIO(csv_table.table([result]))), strict=True))
    assert columns["memory of a connection (octets)"] == "384.0"
    assert float(columns["connections that fill the L2 cache"]) == pytest.approx(2**21 / 384)


def test_unknown_memory_is_said_to_be_unknown(golden: Golden) -> None:
    common: dict[str, Any] = {"unit": "connections/s"}
    golden(verdict(made([1e6], metric="connection-rate", parameters=CACHES, **common)))
    # Too few connections to show it; a metric that does not ask for it.
    golden(verdict(made([1e6], metric="connection-rate", **common)))
    golden(verdict(made([1e6], metric="throughput", parameters=CACHES, **common)))


# perf ends the line of the time with a space.
PRINTED = (
    " 3628.231278: \n"
    "\tffffffff81601cb5 nf_conntrack_in\n"
    "\tffffffff815e6501 nf_hook_slow\n"
    "\tffffffff81f00000 __netif_receive_skb_list_core\n"
    "\n"
    " 3628.231478: \n"
    "\tffffffffc0001234 bpf_prog_6deef7357e7b4530_generate\n"
    "\tffffffff81f00001 bpf_test_run_xdp_live\n"
    "\n"
    "perf-exec: nothing to see\n"
)
RECEIVED = "netif_receive_skb_list_internal"


def of_device(function: str, number: int, begin: float = 0.0) -> list[Stack]:
    return [Stack(begin + at / 5000, (function, "ip_rcv", RECEIVED)) for at in range(number)]


def test_stacks_are_read_as_perf_prints_them() -> None:
    first, second = read_stacks(PRINTED)
    assert first == Stack(3628.231278, ("nf_conntrack_in", "nf_hook_slow", "__netif_receive_skb_list_core"))
    assert second.functions[0] == "bpf_prog_6deef7357e7b4530_generate"


def test_only_what_happens_to_received_frames_counts() -> None:
    tester = [Stack(0.0, ("bpf_prog_generate", "bpf_test_run_xdp_live"))] * 5000
    found = hot_spots([*tester, *of_device("nf_conntrack_in", 300), *of_device("veth_xmit", 100, 1.0)])
    assert found == (HotSpot("nf_conntrack_in", 0.75), HotSpot("veth_xmit", 0.25))


def test_opening_the_connections_is_no_part_of_what_standing_ones_cost() -> None:
    opening, standing = of_device("init_conntrack", 2000), of_device("nf_ct_get_tuple", 1000, begin=10.0)
    assert hot_spots([*opening, *standing], seconds=1.0) == (HotSpot("nf_ct_get_tuple", 1.0),)


def test_few_samples_say_nothing_and_many_functions_are_cut() -> None:
    assert hot_spots(of_device("nf_conntrack_in", LEAST_SAMPLES - 1)) == ()
    many = [stack for number in range(60) for stack in of_device(f"function_{number}", 10 + number)]
    assert len(hot_spots(many)) == MOST_FUNCTIONS


def test_the_cost_tells_them_for_each_quantity_from_a_round_that_is_not_timed(
    monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    simulated = gateway()
    usual = simulated.costs

    def costs(plan: RoundPlan) -> TimedRound:
        found = usual(plan)
        spots = (HotSpot("nf_conntrack_in", 0.125), HotSpot("veth_xmit", 0.06)) if plan.sampled else ()
        return replace(found, hot_spots=spots)

    monkeypatch.setattr(type(simulated), "costs", lambda _self, plan: costs(plan))
    told = measured(simulated, hot_spots=True, repeat=1, quantities="new,up")
    notes = [note.text for note in told.notes if note.text.startswith("hot spots of ")]
    golden(notes[0])
    assert len(notes) == 2
    sampled = [plan for plan in simulated.rounds if plan.sampled]
    assert [list(plan.blocks) for plan in sampled] == [["new"], ["up"]]
    assert all(plan.alone for plan in sampled)
    assert not any(plan.sampled for plan in simulated.rounds[2:])


def test_without_perf_it_is_refused_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, golden: Golden
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with golden.raises(HostError):
        Sampling(0)


def test_a_perf_that_cannot_sample_is_told_with_its_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, golden: Golden
) -> None:
    perf = tmp_path / PROGRAM
    perf.write_text("#!/bin/sh\necho 'Error: no permission' >&2; exit 1\n")
    perf.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with golden.raises(HostError), Sampling(0):
        pass


#: Samples as long as the command after "--" runs, as perf does, and notes that it has ended.
SAMPLING_PERF = """#!/bin/sh
[ "$1" = record ] || exit 0
while [ "$1" != -o ]; do shift || exit; done
file=$2
while [ "$1" != -- ]; do shift || exit; done
shift
trap '' INT
echo samples > "$file"
"$@"
echo "$file" > "$ENDED"
"""
SAMPLER = """
import time
from natgauge.host.sampling import Sampling
with Sampling(0):
    print("samples", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_perf_ends_with_natgauge_however_that_ends(tmp_path: Path, sent: signal.Signals) -> None:
    perf, ended = tmp_path / PROGRAM, tmp_path / "ended"
    perf.write_text(SAMPLING_PERF)
    perf.chmod(0o755)
    around = {**os.environ, "PATH": f"{tmp_path}:/usr/bin:/bin", "ENDED": str(ended), "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", SAMPLER], env=around, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as natgauge:
        assert natgauge.stdout is not None
        assert natgauge.stdout.readline() == b"samples\n"
        natgauge.send_signal(sent)
        natgauge.wait(30)
    end = time.monotonic() + 30
    while not ended.exists() and time.monotonic() < end:
        time.sleep(0.01)
    assert ended.exists()
