# SPDX-License-Identifier: Apache-2.0
"""Frames over the tester's own cable at 90 % of its highest rate: nothing can lose one there, so any loss is false.

The receivers are those of every trial: each frame is checked and counted once. Trials are judged like those of a device
in `shared` placement. An INVALID trial (the host took the core away) does not count, and is repeated.
"""

from __future__ import annotations

import statistics
import time
from typing import Final

from tests.labs.storms.storm import Storm, Tally
from tests.plans import OneTrial, PlanOfTrial

from natgauge.agreement import generated, process
from natgauge.host.machine import usable_cpus
from natgauge.tester.cable import BEYOND_REACH, SAFE_SHARE, CableLab, untranslated_request
from natgauge.trial.trial_run import judged
from natgauge.trials import Phase2Plan, phase2_of
from natgauge.verdicts import Limits
from natgauge.words import Verdict

CONNECTIONS: Final = 10_000
#: Seconds of sending of one trial, and of the trials for the highest rate.
TRIAL_SECONDS: Final = 60.0
_HIGHEST_SECONDS: Final = 2.0
_HIGHEST_TRIALS: Final = 5
#: Rate of phase 1, connections/s: only phase 2 matters.
_PHASE1_RATE: Final = 100_000.0
_GRACE_MS: Final = 300
#: Trials of which none counts, after which the host is said to be too busy.
_MOST_INVALID: Final = 20


class _Cable:
    """Trials on one cable, sent from the last core that this process may use."""

    def __init__(self, lab: CableLab) -> None:
        self._lab = lab
        self._cpus = (usable_cpus()[-1],)

    def run(self, rate: float, frames: int) -> tuple[generated.TrialRequest, generated.TrialResult]:
        """Send `frames` of each direction at `rate` frames/s of both directions together."""
        request = untranslated_request(
            self._lab.initiator,
            self._lab.responder,
            family="ipv4",
            frame_size=64,
            connections=CONNECTIONS,
            phase1=generated.Phase1(rate=_PHASE1_RATE, grace_ms=_GRACE_MS),
            phase2=generated.Phase2(
                initiator=generated.InitiatorStream(rate=rate / 2, frames=frames),
                responder=generated.ResponderStream(rate=rate / 2, frames=frames),
                grace_ms=_GRACE_MS,
            ),
            sender_cpus=self._cpus,
        )
        # A core that is shared sends more slowly than it should.
        return request, process.run(request, seconds=10 * TRIAL_SECONDS)

    def highest(self) -> float:
        """The highest rate of both directions together, frames/s: the median of a few trials."""
        frames = 1_000_000
        rates = []
        for _ in range(1 + _HIGHEST_TRIALS):
            counts = phase2_of(self.run(BEYOND_REACH, frames)[1]).values()
            rates.append(sum(each.received_frames for each in counts) / max(each.sending_seconds for each in counts))
            frames = max(frames, int(rates[0] * _HIGHEST_SECONDS / 2))
        return statistics.median(rates[1:])


def _make(tally: Tally) -> None:
    lost = invalid = 0
    began = time.monotonic()
    with CableLab("storm") as lab:
        cable = _Cable(lab)
        highest = cable.highest()
        rate = SAFE_SHARE * highest
        tally.notes.append(f"{rate:,.0f} frames/s, 90 % of {highest:,.0f}, both directions together, on one core")
        reasons: list[str] = []
        while tally.goes_on and invalid < _MOST_INVALID:
            frames = min(int(rate * TRIAL_SECONDS / 2), -(-(tally.most - tally.count) // 2))
            request, result = cable.run(rate, frames)
            seconds = frames / (rate / 2)
            plan = PlanOfTrial(CONNECTIONS, _PHASE1_RATE, Phase2Plan(rate / 2, rate / 2, seconds))
            outcome = judged(OneTrial(plan, request, result, placement="shared"), Limits())
            counts = phase2_of(result).values()
            offered = sum(each.offered_frames for each in counts)
            missing = offered - sum(each.received_frames for each in counts)
            if outcome.verdict is Verdict.INVALID:
                invalid += 1
                tally.notes.append(f"INVALID: {outcome.reason}; {missing} lost")
                continue
            tally.saw(f"frames of trials that were {outcome.verdict}", offered)
            lost += missing
            if outcome.verdict is not Verdict.PASS:
                reasons.append(outcome.reason)
            if missing:
                tally.blame([f"{missing} of {offered:,} frames lost: {outcome.verdict}: {outcome.reason}"])
        tally.notes += [f"FAIL without a lost frame: {reason}" for reason in reasons]
    tally.notes.append(f"{lost} frames lost in trials that count; {invalid} trials were INVALID and repeated")
    tally.notes.append(f"{tally.count / (time.monotonic() - began):,.0f} frames/s over the whole time")
    if invalid >= _MOST_INVALID:
        tally.blame([f"{invalid} trials were INVALID: this host is too busy"])


FRAMES: Final = (
    Storm(
        name="frames",
        started="trials of 60 s over the tester's own cable, both directions, 64 octets",
        disturbed="90 % of the highest rate of one core",
        holds="no frame is lost in a trial that counts (PASS or FAIL)",
        unit="frames",
        full=10**10,
        soak=3 * 10**8,
        make=_make,
    ),
)
