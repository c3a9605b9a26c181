# SPDX-License-Identifier: Apache-2.0
"""Figures of the device: spread over its cores, losses by device of a chain, memory, open connections, its log."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from natgauge.core_work import CoreWork, WorkByCore, total
from natgauge.log_counts import LOG_FIGURES
from natgauge.metrics.shared_figures import (
    CORE_IMBALANCE,
    ESTABLISHED,
    IDLE_CORES,
    LOST_PERCENT_AT,
    MICROJOULES_PER_CONNECTION,
    MICROJOULES_PER_FRAME,
    OCTETS_PER_CONNECTION,
    WATTS,
)
from natgauge.notes import Note
from natgauge.procedures.kit.result.results import Attempt, Measurement
from natgauge.trials import Trial
from natgauge.words import DRAWN, Verdict

#: Messages of a handshake: what opens, its answer, and the Initiator's reaction to the answer. A transaction has more.
_HANDSHAKE: Final = 3
#: A core is idle with less than this share of the mean frames and of the busiest core's time.
IDLE_SHARE: Final = 0.1
#: With fewer frames for each core, chance alone spreads them unevenly.
LEAST_FRAMES: Final = 100


def with_device_figures(measurement: Measurement) -> Measurement:
    """Return the repetition with those of these figures that the lab and the device report, or why one is missing."""
    deciding = measurement.deciding
    figures = {**_core_figures(deciding), **_lost_at(deciding), **_log_figures(deciding), **_energy(deciding)}
    measurement = measurement.adding(*_energy_note(deciding), **figures)
    # A connection takes as much memory at any load.
    reported = [attempt.outcome.readings.octets_per_connection for attempt in measurement.attempts]
    octets = tuple(value for value in reported if value is not None)
    if not octets:
        return measurement
    # Each trial is a value of the sample.
    sampled = replace(measurement, sample={**measurement.sample, OCTETS_PER_CONNECTION: octets})
    return sampled.adding(**{OCTETS_PER_CONNECTION: statistics.median(octets)})


def _core_figures(attempts: Sequence[Attempt]) -> Mapping[str, float]:
    """Return `CORE_IMBALANCE` and `IDLE_CORES` over the deciding trials together; empty where no work is known."""
    known = [attempt for attempt in attempts if attempt.outcome.readings.core_work]
    work = total(attempt.outcome.readings.core_work for attempt in _deciding(known))
    uneven = imbalance(work)
    return {} if uneven is None else {CORE_IMBALANCE: uneven, IDLE_CORES: float(len(idle_cores(work)))}


def imbalance(work: WorkByCore) -> float | None:
    """Return the frames of the busiest core divided by the mean of all cores, from 1 to the number of cores.

    Where devices of a chain have cores of their own, each device is taken by itself, and the largest value counts.
    None where no device has several cores, or where each has fewer than `LEAST_FRAMES` frames for each core.
    """
    known = [each for each in map(_imbalance, _by_devices(work)) if each is not None]
    return max(known, default=None)


def idle_cores(work: WorkByCore) -> list[int]:
    """Return the cores that did next to nothing (`IDLE_SHARE`), ascending; empty where `imbalance` is None."""
    return sorted(core for of_device in _by_devices(work) for core in _idle(of_device))


def _by_devices(work: WorkByCore) -> Iterable[WorkByCore]:
    groups: dict[str, dict[int, CoreWork]] = {}
    for core, of_core in work.items():
        groups.setdefault(of_core.devices, {})[core] = of_core
    return groups.values()


def _imbalance(work: WorkByCore) -> float | None:
    frames = sum(of_core.frames for of_core in work.values())
    if len(work) < 2 or frames < LEAST_FRAMES * len(work):
        return None
    return max(of_core.frames for of_core in work.values()) * len(work) / frames


def _idle(work: WorkByCore) -> list[int]:
    if _imbalance(work) is None:
        return []
    mean = sum(of_core.frames for of_core in work.values()) / len(work)
    longest = max(of_core.busy_seconds or 0.0 for of_core in work.values())
    return [
        core
        for core, of_core in work.items()
        if of_core.frames < IDLE_SHARE * mean
        and (of_core.busy_seconds is None or not longest or of_core.busy_seconds < IDLE_SHARE * longest)
    ]


def _log_figures(attempts: Sequence[Attempt]) -> Mapping[str, float]:
    """Return the figures of the log in the last deciding trial; empty where no log was compared."""
    known = [each for each in attempts if (log := each.outcome.readings.log) is not None and log.connections]
    deciding = _deciding(known) or known
    log = deciding[-1].outcome.readings.log if deciding else None
    if log is None:
        return {}
    return {figure.name: value for figure in LOG_FIGURES if (value := figure.of(log)) is not None}


def _deciding(known: Sequence[Attempt]) -> Sequence[Attempt]:
    """Return the trials of the highest load that passed; where none passed, those of the lowest load that failed."""
    for verdict, best in ((Verdict.PASS, max), (Verdict.FAIL, min)):
        loads = [attempt.load for attempt in known if attempt.outcome.verdict is verdict]
        if loads:
            return [attempt for attempt in known if attempt.outcome.verdict is verdict and attempt.load == best(loads)]
    return []


def _metered(attempts: Sequence[Attempt]) -> Sequence[Trial]:
    """Return the trials at the highest load that passed, of those in which a meter was read."""
    passed = [each for each in attempts if each.outcome.verdict is Verdict.PASS and each.outcome.readings.energy]
    return [attempt.outcome for attempt in _deciding(passed)]


def _energy(attempts: Sequence[Attempt]) -> Mapping[str, float]:
    """Return the power at the highest load that passed, and the energy of a frame or connection; empty = not known."""
    outcomes, joules, seconds = [], 0.0, 0.0
    for outcome in _metered(attempts):
        energy = outcome.readings.energy
        if energy is not None and energy.joules is not None:
            outcomes.append(outcome)
            joules += energy.joules
            seconds += energy.seconds
    opened = sum(outcome.phase1.received_frames for outcome in outcomes)
    sent = any(counts.received_frames for outcome in outcomes for counts in outcome.phase2.values())
    streams = (counts for outcome in outcomes for counts in (*outcome.streams, outcome.flood) if counts is not None)
    frames = sum(counts.received_messages for counts in streams)
    if not seconds or not opened + sent:
        return {}
    # Frames that draw their four tuples are more than the connections that they open.
    drawn = any(outcome.plan.order == DRAWN for outcome in outcomes)
    name, number = (MICROJOULES_PER_FRAME, frames) if sent or drawn else (MICROJOULES_PER_CONNECTION, opened)
    return {WATTS: joules / seconds, name: 1e6 * joules / number}


def _energy_note(attempts: Sequence[Attempt]) -> list[Note]:
    """Return a note where no trial at the highest load that passed has an energy."""
    read = [outcome.readings.energy for outcome in _metered(attempts)]
    why = [energy.why_unknown for energy in read if energy is not None]
    if not why or not all(why):
        return []
    return [Note("method", f"power and energy are not known: at the highest load that passed {why[-1]}")]


def _lost_at(attempts: Sequence[Attempt]) -> Mapping[str, float]:
    """Return the share of the lost frames that each device dropped, in percent, by the name of the figure.

    The deciding trials are those of the lowest load that the device failed. Their frames may be dropped at a place
    without a counter, so the sum may be less than 100. Two interfaces may count the same frame, so the shares are of
    the counted frames where these are more than the lost ones. Empty for a single device, and without lost frames.
    """
    outcomes = _deciding_drops(attempts)
    dropped: Counter[str] = Counter()
    for outcome in outcomes:
        dropped.update({place.split(" ")[0]: 0 for place in outcome.readings.dropped})
        for place, frames in outcome.readings.dropped.items():
            dropped[place.split(" ")[0]] += max(0, frames)
    lost = max(sum(map(_lost, outcomes)), dropped.total())
    if len(dropped) < 2 or not lost:
        return {}
    return {f"{LOST_PERCENT_AT}{device}": 100 * frames / lost for device, frames in dropped.items()}


def _lost(outcome: Trial) -> int:
    """Frames that were sent and did not come; a device drops none that nobody could send, and any of a flood."""
    streams = (counts for counts in (*outcome.streams, outcome.flood) if counts is not None)
    return sum(max(0, counts.offered_frames - counts.received_frames) for counts in streams)


def _deciding_drops(attempts: Sequence[Attempt]) -> list[Trial]:
    """Return the outcomes of the lowest load that the device failed with counters of drops."""
    failed = [
        attempt
        for attempt in attempts
        if attempt.outcome.verdict is Verdict.FAIL
        and attempt.outcome.limited_by == "device"
        and attempt.outcome.readings.dropped
        and _lost(attempt.outcome)
    ]
    lowest = min((attempt.load for attempt in failed), default=0.0)
    return [attempt.outcome for attempt in failed if attempt.load == lowest]


def with_handshakes(measurement: Measurement) -> Measurement:
    """Return the repetition with `ESTABLISHED`, if its connections open with a handshake."""
    known = [one.readings.established for one in measurement.passed if len(one.phase1.messages) >= _HANDSHAKE]
    counts = [count for count in known if count is not None]
    return measurement.adding(**{ESTABLISHED: float(counts[-1])}) if counts else measurement
