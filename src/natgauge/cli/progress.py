# SPDX-License-Identifier: Apache-2.0
"""Progress of a measurement on standard error: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import errno
import time
from contextlib import nullcontext, suppress
from types import TracebackType
from typing import Final, NoReturn, Self

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from natgauge.agreement.generated import Progress, StreamCounts
from natgauge.figure_text import duration, number
from natgauge.host.capabilities import ControlGroups
from natgauge.host.settings import waits_told
from natgauge.metrics import declared
from natgauge.plain_text import one_line, visible
from natgauge.procedures.kit.runner import Event, units_in
from natgauge.trials import Trial, TrialPlan
from natgauge.words import SENDING, Verdict

_COLOURS: Final = {
    Verdict.PASS: "green",
    Verdict.FAIL: "red",
    Verdict.INVALID: "yellow",
    Verdict.COLLAPSED: "bold red",
}
#: What a trial of a search says; that searches need trials that fail is no fault of the device.
_SEARCHED: Final = {
    Verdict.PASS: "ok",
    Verdict.INVALID: "disturbed",
    Verdict.COLLAPSED: "collapsed",
}
_REFRESHES_PER_SECOND: Final = 8
_PERIODS_A_LINE: Final = 100


class _Console(Console):
    """Leaves it to the command line what follows when nobody reads standard error; rich would end with a status 1."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError(errno.EPIPE, "nobody reads standard error")


class ProgressDisplay:
    """A `Observer` that prints progress. Use it as a context manager around the measurement.

    On a terminal one line changes while the measurement runs, below a line with the part of the work, and disappears
    at the end; with `verbose` each trial is a line above them. Elsewhere each part is a plain line, and each trial with
    `verbose` or `plain_trials`. Work without trials has many parts: with `stage_seconds`, one of them is a plain line
    whenever that time has passed.
    """

    def __init__(
        self,
        console: Console | None = None,
        *,
        verbose: bool = False,
        plain_trials: bool = True,
        stage_seconds: float | None = None,
        likely: str = "",
    ) -> None:
        self._console = console if console is not None else _Console(stderr=True, highlight=False, soft_wrap=True)
        self._lines = verbose or (plain_trials and not self._console.is_terminal)
        self._live: Live | None = None
        # The estimate of a single measurement; those of campaigns are in their parts.
        self._likely = likely
        self._now: Event | None = None
        self._stage_seconds = stage_seconds
        self._stage_due = time.monotonic() + (stage_seconds or 0.0)
        self._stage = ""
        self._stages: list[str] = []
        # Each lab begins with the same parts, of which a plain line tells once.
        self._told: set[str] = set()
        self._advised = False
        # Verdict on the period before: of many periods, only those with another one are lines, and each 100th.
        self._period = Verdict.PASS

    def __enter__(self) -> Self:
        self._told_of_waits = waits_told(self.line)
        self._told_of_waits.__enter__()
        if self._console.is_terminal:
            self._live = Live(Text(""), console=self._console, refresh_per_second=_REFRESHES_PER_SECOND, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._told_of_waits.__exit__(None, None, None)
        if self._live is not None:
            # A terminal that was closed takes nothing more, and what ended the work must not be lost with that.
            with nullcontext() if kind is None else suppress(OSError):
                self._live.stop()

    def stage(self, text: str) -> None:
        """Print the part of the work that begins.

        Without a terminal it is printed with the first trial, so that a refused question prints only its error.
        """
        self._stage = text
        if self._live is not None:
            self._live.update(_cut(text))
        elif self._stage_seconds is not None:
            if time.monotonic() >= self._stage_due:
                self._stage_due = time.monotonic() + self._stage_seconds
                self._console.print(_plain(text))
        elif text not in self._told:
            self._told.add(text)
            self._stages.append(text)
            if self._now is not None:
                self._print_stages()

    def interim(self, text: str) -> None:
        """Print an interim result; on a terminal it is the live line, unless every trial is a line."""
        if self._live is not None and not self._lines:
            self._live.update(Group(_cut(self._stage), *map(_cut, text.splitlines())))
        else:
            self._console.print(_plain(text))

    def line(self, text: str) -> None:
        """Print a line that stays."""
        self._console.print(_plain(text))

    def running(self, progress: Progress) -> None:
        """Show the trial's progress on the live line."""
        self._show(f"{progress.seconds:.1f} s")

    def event(self, event: Event) -> None:
        """Update the live line when a trial starts; print a line when it ends."""
        self._print_stages()
        if self._now is None and self._likely and self._lines:
            self._console.print(_plain(f"{event.metric}: likely {self._likely}"))
        self._now = event
        if event.outcome is not None and event.outcome.verdict is Verdict.INVALID:
            self._advise()
        if event.outcome is None:
            self._period = Verdict.PASS
            self._show("")
        elif (event.period % _PERIODS_A_LINE and event.outcome.verdict is self._period) or not self._lines:
            self._show(_said(event, event.outcome))
        else:
            self._period = event.outcome.verdict
            self._console.print(_line(event, event.outcome))

    def _advise(self) -> None:
        """Say once what else may disturb trials in a container than other work."""
        if self._advised:
            return
        self._advised = True
        if group := ControlGroups().narrow_cpu_group():
            text = f"disturbed: the CPU group {group} has as much time as one process outside of it; give it more"
            self.line(f"{text} (podman: --cgroup-parent=/ --cpu-shares=262144; else: cpu.shares of it and its parents)")

    def _print_stages(self) -> None:
        while self._stages:
            self._console.print(_plain(self._stages.pop(0)))

    def _show(self, where: str) -> None:
        if self._live is None or self._now is None:
            return
        event = self._now
        left = "" if event.seconds_left is None else f"{duration(event.seconds_left)} left"
        whole = f"likely {self._likely}" if self._likely else ""
        measured = f"{event.metric} {event.repetition}/{event.repetitions}: {_load(event.plan)}"
        trial = f"trial {event.trial}" if not event.period else f"period {event.period}"
        # The end of the line is cut on a narrow terminal.
        parts = (measured, _searched(event), left or whole, trial, where)
        line = _cut(", ".join(part for part in parts if part))
        self._live.update(Group(_cut(self._stage), line) if self._stage else line)


def _plain(text: str) -> Text:
    """A text without anything that a terminal obeys."""
    return Text(visible(text))


def _cut(text: str) -> Text:
    """A line that a narrow terminal cuts instead of wrapping it."""
    return Text(one_line(text), no_wrap=True, overflow="ellipsis")


def _number(event: Event) -> str:
    trial = f"{event.metric} {event.repetition}/{event.repetitions} trial {event.trial}"
    if event.plan.phase2 is None or event.plan.phase2.periods == 1:
        return f"{trial}:"
    return f"{trial}, period {event.period} of {event.plan.phase2.periods}:"


def _line(event: Event, outcome: Trial) -> Text:
    line = Text(f"{_number(event)} ")
    line.append(f"{_said(event, outcome):<9}", style=_COLOURS[outcome.verdict])
    line.append(f" {describe(event.plan)}, {_figures(outcome)}")
    if outcome.reason:
        line.append(f" ({one_line(outcome.reason)})", style="dim")
    return line


def _said(event: Event, outcome: Trial) -> str:
    """The verdict; of a trial of a search, what it says of the load: a rate, or a number such as connections."""
    metric = declared(event.metric)
    if metric.better != "higher":
        return outcome.verdict
    is_number = not metric.unit.endswith("/s")
    return _SEARCHED.get(outcome.verdict, "too many" if is_number else "too fast")


def _searched(event: Event) -> str:
    _, unit = units_in(event.metric, event.plan)
    # Of a rate of frames the load, which is written before it, has the unit.
    return event.bounds.text("" if unit.startswith("frames/s") else unit).rstrip()


def describe(plan: TrialPlan) -> str:
    """Describe a trial in a few words."""
    return _load(plan) if plan.phase2 is None else f"{_load(plan)} for {plan.phase2.seconds:g} s"


def _load(plan: TrialPlan) -> str:
    if plan.phase2 is None:
        return f"{plan.connections:,} {plan.opened} at {number(plan.phase1_rate)}/s"
    up, down = plan.phase2.initiator_rate, plan.phase2.responder_rate
    if up and down and up != down:
        return f"{number(up)} frames/s {SENDING['up']} and {number(down)} {SENDING['down']}"
    which = SENDING["both" if up and down else "up" if up else "down"]
    return f"{number(max(up, down))} frames/s {which}"


def _figures(outcome: Trial) -> str:
    """Offered and received of the phase that decides: phase 2 when there was one."""
    counts: list[StreamCounts] = list(outcome.phase2.values()) or [outcome.phase1]
    offered, received = sum(each.offered_frames for each in counts), sum(each.received_frames for each in counts)
    return f"offered {offered:,}, received {received:,}"
