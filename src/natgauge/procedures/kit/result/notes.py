# SPDX-License-Identifier: Apache-2.0
"""Notes that several metrics have: each a list, empty where there is nothing to say."""

from __future__ import annotations

from collections.abc import Iterable

from natgauge.figure_text import in_percent, with_noun
from natgauge.notes import Note
from natgauge.procedures.kit.result.results import Measurement
from natgauge.procedures.kit.settings import TrialSettings
from natgauge.trials import Trial
from natgauge.words import Verdict


def disturbed_note(measurements: Iterable[Measurement]) -> list[Note]:
    """Return a note on the number of disturbed trials, and of those that failed because of it; empty if none."""
    outcomes: list[Trial] = [attempt.outcome for repetition in measurements for attempt in repetition.attempts]
    disturbed = sum(outcome.disturbed for outcome in outcomes)
    invalid = sum(outcome.verdict is Verdict.INVALID for outcome in outcomes)
    if not disturbed and not invalid:
        return []
    text = f"{disturbed} of {len(outcomes)} trials were disturbed, {invalid} were INVALID and not counted"
    notes = [Note("trials", text, disturbed + invalid)]
    if excused := sum(outcome.excused for outcome in outcomes):
        notes.append(Note("trials", excused_text(excused, len(outcomes)), excused))
    return notes


def command_failures_note(measurements: Iterable[Measurement]) -> list[Note]:
    """Return a note on the number of failed tries of commands to the device; empty if none."""
    times = [attempt.outcome.command_failures for repetition in measurements for attempt in repetition.attempts]
    if not (failed := sum(times)):
        return []
    trials = sum(map(bool, times))
    text = f"{failed} tries of commands to the device failed in {trials} of {len(times)} trials"
    return [Note("trials", text, failed)]


def excused_text(excused: int, trials: int) -> str:
    """Return a text on the number of excused trials and the reason."""
    return f"{excused} of {trials} trials were excused: disturbances explain why they failed"


def tolerance_note(share: float) -> list[Note]:
    """Return a note on the share of the frames that a passing trial may lose; RFC 9693 tolerates no loss."""
    if share == 0:
        return []
    return [Note("settings", f"up to {in_percent(share)} of the frames could be lost in a passing trial")]


def zero_checksum_note(settings: TrialSettings, measurements: Iterable[Measurement]) -> list[Note]:
    """Return a note on the number of frames without a checksum over IPv6, where they count as received."""
    if settings.zero_checksum != "accept":
        return []
    outcomes = [attempt.outcome for repetition in measurements for attempt in repetition.attempts]
    streams = [counts for outcome in outcomes for counts in (outcome.phase1, *outcome.phase2.values())]
    zero, received = (
        sum(counts.zero_checksums or 0 for counts in streams),
        sum(counts.received_frames for counts in streams),
    )
    text = f"{zero} of {received} received frames had a UDP checksum of 0 over IPv6, which RFC 8200 forbids"
    return [Note("settings", text, value=float(zero))]


def repetitions_note(settings: TrialSettings, wanted: int, source: str) -> list[Note]:
    """Return a note if there are fewer repetitions than the standard requires; `source` names standard and section."""
    if settings.most_repetitions >= wanted:
        return []
    repetitions = settings.most_repetitions
    text = f"{with_noun(repetitions, 'repetitions')}; {source} requires {wanted}"
    return [Note("repetitions", text)]
