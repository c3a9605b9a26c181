# SPDX-License-Identifier: Apache-2.0
"""Frame loss rate (RFC 2544 section 26.3): share of lost frames by rate; docs/method/frame-loss.md has the method.

Below the last step the rate is halved, so the series always reaches the device's own range. In `shared` placement an
overloaded device slows the sender down, and may lose frames, so the value contains what was not sent in time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from natgauge.errors import BrokenError
from natgauge.figure_text import number as written
from natgauge.inputs.input import chosen, paced
from natgauge.inputs.measuring_types import SearchError
from natgauge.metrics.catalogue import FRAME_LOSS, WITHIN_TOLERANCE, WITHOUT_LOSS
from natgauge.notes import Note
from natgauge.procedures.kit import rate_search
from natgauge.procedures.kit.frame_counts import lost_by_size, lost_share, shares_by_direction, shortfall, worst_percent
from natgauge.procedures.kit.held_connections import HeldConnections, ThroughputShareSettings, throughput_of
from natgauge.procedures.kit.phases import Phase1Settings, Phase2Settings
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.results import Measurement, tolerance_note
from natgauge.procedures.kit.runner import TimeUpError, TrialRunner, left_out
from natgauge.records.repetition import Row
from natgauge.trials import Trial, lag_tolerance
from natgauge.words import Verdict

#: RFC 2544 section 26.3: the granularity must be 10 % or finer.
COARSEST_STEP = 0.1
#: In `shared` placement the series starts at this multiple of the throughput.
SHARED_MULTIPLE = 2.0
#: The series ends here, whatever is lost: less than this share of 100 % is not worth a trial.
LEAST_SHARE = 0.001
LOSS_FREE_IN_A_ROW = 2


@dataclass(frozen=True, kw_only=True)
class FrameLossSettings(ThroughputShareSettings, Phase2Settings, Phase1Settings):
    """Settings of the frame loss rate.

    Without a full rate 100 % is the tester's highest rate, and in `shared` placement twice the throughput.
    """

    step: float = chosen(0.1, "step between loads, as a share of the highest load", "share", (0.01, COARSEST_STEP))
    full_rate: float | None = chosen(None, "load that counts as 100 %", "frames/s", partial(paced, unit="frames/s"))

    measures_loss = True

    @property
    def relative(self) -> bool:
        """Whether 100 % is a multiple of the throughput."""
        return self.full_rate is None and self.placement == "shared"

    @property
    def unused(self) -> dict[str, str]:
        """The throughput, where 100 % is no multiple of it."""
        full = "that of the tester" if self.full_rate is None else "the full rate"
        return super().unused | ({} if self.relative else {"throughput_rate": f"100 % is {full}"})


class _FrameLoss(HeldConnections[FrameLossSettings]):
    """The share lost over rates; the value is the one at 100 %, in %."""

    def __init__(self, runner: TrialRunner, settings: FrameLossSettings) -> None:
        super().__init__(runner, settings)
        self.full, self.meaning = self._full_rate()

    def _full_rate(self) -> tuple[float, str]:
        """The rate that is 100 %, in frames/s of each direction, and what it is."""
        settings = self.settings
        if settings.full_rate is not None:
            return settings.full_rate, "as asked for"
        top = rate_search.top_rate(self.runner.measurer) / settings.active
        if not settings.relative:
            return top, "the tester's own highest rate"
        if self.preparation.unavoidable and settings.throughput_rate is None:
            return top, "the tester's own highest rate: a device that loses a share at every rate has no throughput"
        rate = throughput_of(self, settings)
        # A device that loses a share at every rate has the throughput 0, and another rate in its place.
        is_other = not settings.throughput_rate and not self.runner.first[-1].summary.median
        what = "highest rate at which it lost no more than at every rate" if is_other else "throughput"
        return min(rate * SHARED_MULTIPLE, top), f"twice the {what}"

    def once(self, _known: float | None) -> Measurement:
        settings = self.settings
        rows: list[Row] = []
        mixed = False
        lossless: list[float] = []
        for share in shares_of(settings.step):
            rate = self.full * share
            plan = settings.plan(self.preparation.rate, rate, settings.trial_seconds)
            # The value is of the first trial; any later one may stay undecided, or be left out.
            try:
                outcome = self.at(rate, plan) if rows else self.must(rate, plan)
            except TimeUpError as error:
                if not rows:
                    raise
                self.repetition_notes.append(left_out(f"loads from {written(share)} of the highest down", error))
                break
            if outcome is None:
                continue
            if not outcome.phase2:
                # Nothing was offered, so there is no share (RFC 2544 section 26.3).
                if not rows:
                    raise BrokenError(f"{FRAME_LOSS.name}: no frame was offered at the highest rate: {outcome.reason}")
                text = f"loads of {written(rate)} {settings.rate_unit} and less are left out: {outcome.reason}"
                self.repetition_notes.append(Note("device", text))
                break
            if text := _slow_tester(outcome, rate, settings.rate_unit):
                # The value is of the first trial.
                self.repetition_notes.append(Note("tester" if rows else "tester limited", text))
            rows.append(_row(share, rate, outcome))
            mixed = mixed or any(counts.sizes for counts in outcome.phase2.values())
            lossless = [*lossless, rate] if outcome.verdict is Verdict.PASS else []
            if len(lossless) == LOSS_FREE_IN_A_ROW:
                break
        else:
            what = "within the tolerated loss" if settings.loss_tolerance else "without loss"
            text = f"there were no two trials in a row {what}, down to the lowest rate"
            self.repetition_notes.append(Note("device", text))
        name = WITHIN_TOLERANCE if settings.loss_tolerance else WITHOUT_LOSS
        figures = {name: lossless[0]} if lossless else {}
        quantity = "lost_percent" if settings.placement != "shared" else "shortfall_percent"
        value, most = float(rows[0][quantity] or 0.0), rows[0].get(f"{quantity}_most")
        notes = [*_shared_notes(settings, lossless), *_excused_notes(rows, quantity, settings.rate_unit, mixed=mixed)]
        measured = self.measurement(value, figures=figures, notes=notes, series=rows)
        return measured if most is None else replace(measured, upper=float(most))

    def notes(self, _measurements: Sequence[Measurement]) -> Sequence[Note]:
        full = f"100 % is {written(self.full)} {self.settings.rate_unit}, {self.meaning}"
        return [Note("throughput", full), *tolerance_note(self.settings.loss_tolerance)]


def shares_of(step: float) -> Iterator[float]:
    """Loads as shares of the highest: 1, then a step less each, below the last step halved, down to the least."""
    last = 1.0
    for number in itertools.count():
        share = 1 - number * step
        if share < step * (1 - 1e-9):
            break
        last = share
        yield share
    while (last := last / 2) >= LEAST_SHARE:
        yield last


def _shared_notes(settings: FrameLossSettings, lossless: Sequence[float]) -> list[Note]:
    if settings.placement != "shared":
        return []
    text = (
        "in shared placement a busy device slows the sender; the value is the share of the offered rate that was not "
        "forwarded: frames lost, and frames not sent in time"
    )
    method = Note("method", text)
    if not lossless:
        return [method]
    apart, advice = SearchError(share=settings.step), rate_search.length_of_trials(settings.trial_seconds).advice
    what = "the highest rate within the tolerated loss" if settings.loss_tolerance else "the highest rate without loss"
    return [method, *rate_search.late_note(settings.trial_seconds, lossless[0], apart, advice, what)]


def _slow_tester(outcome: Trial, rate: float, unit: str) -> str:
    """Say that the tester sent slower than it should, so that the device may lose more at the rate; else empty."""
    late = {
        counts.sending_seconds / counts.nominal_seconds
        for counts in outcome.phase2.values()
        if counts.final_lag_seconds > lag_tolerance(counts.nominal_seconds, outcome.plan.lag_share)
    }
    if outcome.placement == "shared" or not late:
        # There the share has the frames that were not sent in time, too.
        return ""
    return f"of {written(rate)} {unit} the tester sent {written(rate / max(late))}; at the whole rate more may be lost"


def _excused_notes(rows: Sequence[Row], quantity: str, unit: str, *, mixed: bool) -> list[Note]:
    """A doubt that names the range of the share at each load where frames were excused, of one size or `mixed` ones."""
    return [
        Note(
            "excused frames",
            f"at {written(row['offered_rate'])} {unit} the share is between {written(row[quantity])} % and "
            f"{written(most)} %: "
            "disturbances explain some of the lost frames, and the device may have lost a part of those itself"
            f"{'; their sizes are not known, so the shares of sizes are left out' if mixed else ''}",
        )
        for row in rows
        if (most := row.get(f"{quantity}_most")) is not None
    ]


def _row(share: float, rate: float, outcome: Trial) -> Row:
    excused = outcome.excused_by_direction
    row: dict[str, float | str | None] = {
        "offered_percent": round(share * 100, 6),
        "offered_rate": rate,
        "lost_percent": worst_percent(lost_share, outcome, excused),
        "shortfall_percent": worst_percent(shortfall, outcome, excused),
        "verdict": str(outcome.verdict),
    }
    for direction, share_lost in shares_by_direction(lost_share, outcome, excused).items():
        row[f"lost_percent_from_{direction.value}"] = 100 * share_lost
    for octets, share_lost in lost_by_size(outcome).items():
        row[f"lost_percent_of_{octets}_octets"] = 100 * share_lost
    if any(excused.values()):
        row["lost_percent_most"] = worst_percent(lost_share, outcome, {})
        row["shortfall_percent_most"] = worst_percent(shortfall, outcome, {})
    return row


PROCEDURE = Procedure(
    FRAME_LOSS,
    settings=FrameLossSettings,
    start=_FrameLoss,
    profiles={
        "quick": {"step": COARSEST_STEP},
        "standard": {"step": 0.05, "repeat": 3},
        "rfc": {"repeat": 1, "step": 0.05},
    },
)
