# SPDX-License-Identifier: Apache-2.0
"""The status of a campaign, from its folder alone: also while it runs, from another terminal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from natgauge.campaigns.journal import is_written
from natgauge.campaigns.journal_lines import RepetitionLine
from natgauge.campaigns.state import CampaignState
from natgauge.errors import UsageError
from natgauge.metrics import declared
from natgauge.procedures.kit.time_budget import TIME
from natgauge.records.campaign import CampaignCell, CampaignMeasurement, CampaignRecord
from natgauge.records.reading import read_record
from natgauge.records.store import CAMPAIGN, JOURNAL
from natgauge.words import NO_DEVICE, sending


@dataclass(frozen=True, slots=True)
class MeasurementStatus:
    """One measurement of one cell.

    Attributes:
        values: values of ended repetitions, without bounds from repetitions that a time limit cut off.
        unit: unit of the values; empty while there is none.
        folder: folder of the result; empty while there is none.
        broken: reason why the measurement cannot continue; empty = it can.
        bounds: of each value, whether it is only a lower bound, because not the device limited it.
        sending: directions of a rate of frames, in words; empty for other values.
        cut_off_bounds: lower and upper bound of each repetition of a rate that a time limit cut off; None = not known.
    """

    cell: str
    measurement: str
    done: int
    most_repetitions: int
    estimated_seconds: float
    values: tuple[float, ...]
    cut_off: int
    unit: str
    folder: str
    broken: str
    bounds: tuple[bool, ...]
    sending: str
    cut_off_bounds: tuple[tuple[float, float | None], ...] = ()

    @property
    def left(self) -> int:
        """Repetitions still to do, at most."""
        return 0 if self.broken or self.folder else max(self.most_repetitions - self.done, 0)


@dataclass(frozen=True, slots=True)
class CampaignStatus:
    """A campaign.

    Attributes:
        now: the trial that is running, or was when the campaign was killed; None = there is none.
        seconds_left: estimate from the plan and the repetitions so far; None while there is none.
    """

    name: str
    folder: Path
    runs: bool
    measurements: tuple[MeasurementStatus, ...]
    now: Mapping[str, Any] | None
    beside: tuple[Mapping[str, Any], ...]
    trials: int
    visits: int
    seconds_left: float | None


def status(folder: Path, state: CampaignState | None = None) -> CampaignStatus:
    """Read the status of a campaign; a session that has just ended knows the `state`."""
    if not (folder / CAMPAIGN).exists():
        raise UsageError(f"status: {folder} holds no campaign; name the folder that natgauge run has made")
    campaign = read_record(folder / CAMPAIGN, CampaignRecord)
    if state is None:
        state = CampaignState.of(folder) if (folder / JOURNAL).exists() else CampaignState()
    measurements = tuple(
        _measurement(state, cell, measurement) for cell in campaign.cells for measurement in cell.measurements
    )
    running = sorted(state.running.values(), key=lambda trial: float(trial["at"]))
    return CampaignStatus(
        name=campaign.name,
        folder=folder,
        runs=is_written(folder),
        measurements=measurements,
        now=running[-1] if running else None,
        beside=tuple(running[:-1]),
        trials=state.trials,
        visits=state.visits,
        seconds_left=_seconds_left(state, measurements),
    )


def _measurement(state: CampaignState, cell: CampaignCell, measurement: CampaignMeasurement) -> MeasurementStatus:
    known = state.measurement(cell.name, measurement.name)
    ended = known.ended
    every = [one for each in ended for one in each.result.measurements]
    complete = [one for one in every if one.limited_by != TIME]
    has_all = known.folder and not known.partial
    first = ended[0] if ended else None
    is_rate = first is not None and declared(first.result.metric).better == "higher"
    return MeasurementStatus(
        cell=cell.name,
        measurement=measurement.name,
        done=len(ended),
        most_repetitions=measurement.repetitions,
        estimated_seconds=measurement.estimated_seconds,
        values=tuple(one.value for one in complete),
        cut_off=len(every) - len(complete),
        unit=first.result.unit if first else "",
        folder=known.folder,
        # A device may break after some of its measurements have ended.
        broken="" if has_all else state.broken.cause(cell.name, cell.device, measurement.name),
        bounds=tuple(is_rate and one.limited_by in NO_DEVICE for one in complete),
        sending=_sending(first) if first else "",
        cut_off_bounds=tuple((one.value, one.upper) for one in every if is_rate and one.limited_by == TIME),
    )


def _sending(line: RepetitionLine) -> str:
    if line.result.unit not in ("frames", "frames/s"):
        return ""
    is_balanced = line.parameters.get("down_share") in (None, 0.5)
    return sending(line.parameters.get("directions"), is_balanced=is_balanced)


def _seconds_left(state: CampaignState, measurements: tuple[MeasurementStatus, ...]) -> float | None:
    """Scale the estimates by the time that the same measurement took in other cells, if it is known.

    What its repetitions took beside that, to make labs, does not grow with the estimate.
    As many workers go on as the last session had, each with a cell of its own: so no less is left than of one cell.
    """
    measured, estimated = defaultdict[str, float](float), defaultdict[str, float](float)
    around, number = defaultdict[str, float](float), defaultdict[str, int](int)
    for one in measurements:
        known = state.measurement(one.cell, one.measurement)
        around[one.measurement] += known.around
        number[one.measurement] += len(known.ended)
        for ended in known.ended:
            measured[one.measurement] += ended.seconds
            estimated[one.measurement] += one.estimated_seconds
    if not measured:
        return None
    usual = sum(measured.values()) / sum(estimated.values())
    times = {name: seconds / estimated[name] for name, seconds in measured.items()}
    left = defaultdict[str, float](float)
    for one in measurements:
        each = one.estimated_seconds * times.get(one.measurement, usual)
        left[one.cell] += one.left * (each + around[one.measurement] / max(number[one.measurement], 1))
    return max(sum(left.values()) / max(len(state.workers), 1), *left.values())
