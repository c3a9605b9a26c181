# SPDX-License-Identifier: Apache-2.0
"""What is shown while a measurement runs, on standard error: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from natgauge.campaigns.watch import SearchState
from natgauge.procedures.measurer import Counts, TrialOutcome, TrialPlan, Verdict
from natgauge.trials import Progress

_COLOURS: Final = {
    Verdict.PASS: "green",
    Verdict.FAIL: "red",
    Verdict.INVALID: "yellow",
    Verdict.COLLAPSED: "bold red",
}
_REFRESHES_PER_SECOND = 8


class ProgressDisplay:
    """A `Watch` for people. Use it as a context manager around the measurement."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console if console is not None else Console(stderr=True, highlight=False, soft_wrap=True)
        self._live: Live | None = None
        self._search: SearchState | None = None
        self._trial = ""
        self._trial_began = 0.0
        self._trials_done = 0
        self._trial_seconds = 0.0

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live = Live(Text(""), console=self._console, refresh_per_second=_REFRESHES_PER_SECOND, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def stage(self, text: str) -> None:
        """Say which part of the work begins."""
        self._console.print(Text(text, style="dim"))

    def trial_starts(self, number: int, plan: TrialPlan, seconds: float) -> None:
        """Remember what the live line says of the trial."""
        self._trial = f"trial {number}: {describe(plan)}"
        self._trial_began = time.monotonic()
        self._show(f"{self._trial}, about {seconds:.1f} s")

    def trial_runs(self, progress: Progress) -> None:
        """Bring the live line up to date."""
        self._show(
            f"{self._trial}; {progress.phase.replace('phase', 'phase ')} {progress.seconds:.1f} s, "
            f"sent {progress.made_frames:,} of {progress.intended_frames:,}, received {progress.received_frames:,}"
        )

    def trial_ends(self, number: int, outcome: TrialOutcome) -> None:
        """One line that stays for every trial."""
        self._trials_done += 1
        self._trial_seconds += time.monotonic() - self._trial_began
        line = Text(f"trial {number:3d} ")
        line.append(f"{outcome.verdict:<9}", style=_COLOURS[outcome.verdict])
        line.append(f" {self._trial.partition(': ')[2]}: {_figures(outcome)}")
        if outcome.reason:
            line.append(f" ({outcome.reason})", style="dim")
        self._console.print(line)

    def search(self, state: SearchState) -> None:
        """Take the search's new bounds into the live line."""
        self._search = state
        self._show(self._trial)

    def _show(self, text: str) -> None:
        if self._live is not None:
            self._live.update(Text("; ".join(part for part in (text, self._bounds(), self._left()) if part)))

    def _bounds(self) -> str:
        state = self._search
        if state is None:
            return ""
        upper = f"{state.upper:,.0f}" if state.upper is not None else "?"
        where = f"between {state.lower:,.0f} and {upper} {state.quantity}"
        return f"repetition {state.repetition}/{state.repetitions}, {where}"

    def _left(self) -> str:
        state = self._search
        if state is None or state.trials_left is None or not self._trials_done:
            return ""
        later = state.repetitions - state.repetition
        per_repetition = self._trials_done / max(1, state.repetition - 1) if state.repetition > 1 else state.trials_left
        seconds = (state.trials_left + later * per_repetition) * self._trial_seconds / self._trials_done
        return f"about {duration(seconds)} left"


def describe(plan: TrialPlan) -> str:
    """What a trial asks for, in a few words."""
    if plan.phase2 is None:
        return f"{plan.connections:,} connections at {plan.phase1_rate:,.0f}/s"
    rates = (plan.phase2.initiator_rate, plan.phase2.responder_rate)
    active = sum(rate > 0 for rate in rates)
    which = "each way" if active == 2 else ("up" if rates[0] > 0 else "down")
    return f"{max(rates):,.0f} frames/s {which} for {plan.phase2.seconds:g} s"


def _figures(outcome: TrialOutcome) -> str:
    """Offered and received of the phase that decides: phase 2 when there was one."""
    counts: list[Counts] = list(outcome.phase2.values()) or [outcome.phase1]
    offered, received = sum(each.offered for each in counts), sum(each.received for each in counts)
    return f"offered {offered:,}, received {received:,}"


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 90:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"
