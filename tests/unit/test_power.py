# SPDX-License-Identifier: Apache-2.0
"""The energy of a device by a simulated meter: in a trial, in the figures of a result, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.plans import OneTrial, PlanOfTrial
from tests.unit.counted import arrivals, change_counts
from tests.unit.fake_engine import FakeEngine
from tests.unit.golden import Golden
from tests.unit.simulated import Gateway, reading
from tests.unit.simulated_kinds import Policed
from tests.unit.test_churn import all_came, lost_of
from tests.unit.test_churn import made as churned
from tests.unit.test_measurer import SETTINGS
from tests.unit.test_measurer_trials import PLAN, measurer

from natgauge.errors import BrokenError, HostError
from natgauge.metrics.shared_figures import MICROJOULES_PER_CONNECTION, MICROJOULES_PER_FRAME, WATTS
from natgauge.power import Energy, EnergyOfTrial
from natgauge.procedures import get
from natgauge.procedures.kit.result.device_figures import with_device_figures
from natgauge.procedures.kit.result.results import Attempt, Measurement
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
