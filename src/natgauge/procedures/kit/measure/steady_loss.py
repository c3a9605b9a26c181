# SPDX-License-Identifier: Apache-2.0
"""Loss of phase 1 that a slower one does not cure: a few frames at any rate, or a share of them.

A device that is overloaded at a rate, and still forwards a quarter of the frames, loses nothing at a quarter of that
rate. What a full queue loses of a burst becomes less with the rate as well. So a loss that is no smaller there has
another reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from natgauge.figure_text import in_percent, number
from natgauge.procedures.kit.search.permanent_loss import BELOW, MOST_MISSED
from natgauge.procedures.kit.settings import MOST_TOLERATED
from natgauge.trials import Trial
from natgauge.words import Verdict

#: So many failed trials, whose rates span this factor, show it.
LEAST_FAILED: Final = 3
SPAN: Final = 4.0
#: At the highest of these rates no more than this share may be lost.
MOST_LOST: Final = 1 - 1 / SPAN
#: The loss is no smaller where it is this part of the other one at least.
ALIKE: Final = 0.5


def _failed(outcome: Trial) -> bool:
    of_phase1 = outcome.verdict is Verdict.FAIL and outcome.failed_phase == 1
    return of_phase1 and outcome.limited_by == "device" and outcome.phase1.lost > 0


def _share(outcomes: Sequence[Trial]) -> float:
    due = sum(outcome.phase1.due_frames for outcome in outcomes)
    return sum(outcome.phase1.lost for outcome in outcomes) / due if due else 0.0


@dataclass(slots=True)
class SteadyLoss:
    """What phase 1 lost in the trials so far, by its rate."""

    _outcomes: list[Trial] = field(default_factory=list)

    def add(self, outcome: Trial) -> None:
        """Take a trial into account; of one that says nothing of the device only a phase 1 without a loss counts."""
        phase1 = outcome.phase1
        if phase1.due_frames and (outcome.verdict in {Verdict.PASS, Verdict.FAIL} or not phase1.lost):
            self._outcomes.append(outcome)

    @property
    def rates(self) -> tuple[float, float] | None:
        """The lowest and the highest rate, between which the loss is no smaller at lower ones; None = it may be."""
        rates = [outcome.plan.phase1_rate for outcome in self._outcomes if _failed(outcome)]
        if len(rates) < LEAST_FAILED or max(rates) < BELOW * SPAN * min(rates):
            return None
        slow, fast = (
            _share([outcome for outcome in self._outcomes if outcome.plan.phase1_rate == rate])
            for rate in (min(rates), max(rates))
        )
        return (min(rates), max(rates)) if ALIKE * fast <= slow and fast < MOST_LOST else None

    @property
    def may_pass(self) -> bool:
        """Whether a trial of as many connections as the last one may lose none of them by chance."""
        return _share(self._outcomes) * self._outcomes[-1].phase1.due_frames <= MOST_MISSED

    def words(self, unit: str) -> str:
        """Return the loss in words; empty where a slower phase 1 may help."""
        if self.rates is None:
            return ""
        lowest, highest = map(number, self.rates)
        share = in_percent(_share(self._outcomes))
        return f"phase 1 loses {share} of its frames at every rate from {lowest} to {highest} {unit}"

    @property
    def remedy(self) -> str:
        """What helps, in words."""
        zero = any(outcome.phase1.without_checksum for outcome in self._outcomes if _failed(outcome))
        helps = ["--zero-checksum accept"] if zero else []
        if _share(self._outcomes) < MOST_TOLERATED:
            helps.append("a --loss-tolerance above that")
        return f"a slower one is no remedy: give {', or '.join([*helps, 'fewer --connections'])}"
