# SPDX-License-Identifier: Apache-2.0
"""Runs rows of the known-answer table, and writes down what was found."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from tests.labs.known_answers import starved
from tests.labs.known_answers.devices import ANY_METRIC, NotOnTimeError, Standing
from tests.labs.known_answers.rows import Evidence, Look, Margins, Row, Value
from tests.labs.trying import MOST_TRIALS
from tests.plans import PlanOfTrial

from natgauge.errors import BrokenError
from natgauge.procedures.kit.runner import ignore
from natgauge.words import Verdict

#: Whatever was disturbed is measured again until this time is over, in seconds.
PATIENCE = 30.0
#: A load that stays INVALID is given up after so many repeats, so that a busy host cannot hold up a row for minutes.
INVALID_REPEATS = 4
LIMITS_OF_THE_HOST = frozenset({"host", "tester"})


@dataclass(frozen=True, slots=True)
class Finding:
    """A figure beside the truth."""

    row: Row
    look: Look
    truth: Value
    found: Value
    margins: Margins

    @property
    def within(self) -> bool:
        if isinstance(self.truth, str) or isinstance(self.found, str):
            return self.truth == self.found
        below, above = self.margins
        return self.truth - below <= self.found <= self.truth + above

    def __str__(self) -> str:
        look = self.look
        cells = (
            self.row.device.words,
            _with_unit(self.truth, look.unit),
            f"{self.row.metric}: {look.figure}" if look.figure else self.row.metric,
            _with_unit(self.found, look.unit),
            _tolerance(self.margins, look.reason),
            "yes" if self.within else "**no**",
        )
        return f"| {' | '.join(cells)} |"


def run(row: Row) -> list[Finding]:
    """Measure, and hold every figure against the truth.

    What was disturbed is measured again: a device that was not on time itself, a single trial that is INVALID, a
    procedure that gives up because all trials are, and a wrong figure that is told to be limited by the host, or of a
    device whose core others had.

    Raises:
        NotOnTimeError: it was disturbed however often it was tried.
        NatgaugeError: it could not be measured.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return _once(row)
        except NotOnTimeError:
            if time.monotonic() > deadline:
                raise


def _once(row: Row) -> list[Finding]:
    metric = ANY_METRIC if row.trial is not None else row.metric.partition(",")[0]
    common = {} if row.trial is not None else {"repeat": 1, "invalid_repeats": INVALID_REPEATS}
    if row.whole is not None:
        evidence, share = row.whole(), 0.0
    else:
        with row.device.stand(metric, {**common, **row.settings}) as standing:
            waited = starved.watch()
            evidence = _measured(standing) if row.trial is None else _single(row.trial, row.answer, standing)
            share = waited()
    findings = [_finding(row, look, evidence) for look in row.looks]
    if not all(one.within for one in findings):
        figures = "; ".join(map(str, findings))
        excused = evidence.excused_frames
        if metric == "frame-loss" and excused:
            # Losses of the device itself, too, are excused where they fall into a stall.
            raise NotOnTimeError(f"stalls of the host explain {excused} lost frames: {figures}")
        if evidence.limited_by in LIMITS_OF_THE_HOST:
            raise NotOnTimeError(f"limited by the {evidence.limited_by}: {figures}")
        if share > starved.MOST_WAITED:
            raise NotOnTimeError(f"the device waited for its core for {share:.0%} of the time it wanted it: {figures}")
    return findings


def _single(trial: PlanOfTrial, answer: Verdict | None, standing: Standing) -> Evidence:
    # Another process may keep the core busy that sender and device share, which is late then without a stall.
    for _ in range(MOST_TRIALS if answer is Verdict.PASS else 1):
        outcome = standing.measurer.measure(trial)
        if outcome.verdict is not Verdict.FAIL:
            break
    if outcome.verdict is Verdict.INVALID and answer is not Verdict.INVALID:
        raise NotOnTimeError(outcome.reason)
    return Evidence(outcome, standing.tell())


def _measured(standing: Standing) -> Evidence:
    planned = standing.planned
    try:
        result = planned.procedure.measure(standing.measurer, planned.settings, ignore)
    except BrokenError as error:
        if standing.logbook.trials and standing.logbook.trials[-1]["verdict"] is Verdict.INVALID:
            raise NotOnTimeError(str(error)) from error
        raise
    return Evidence(result.measurements[-1].attempts[-1].outcome, standing.tell(), result)


def _finding(row: Row, look: Look, evidence: Evidence) -> Finding:
    truth = look.truth(evidence) if callable(look.truth) else look.truth
    margins = look.margins(evidence) if callable(look.margins) else look.margins
    return Finding(row, look, truth, look.found(evidence), margins)


def markdown(findings: Iterable[Finding]) -> str:
    """The whole table."""
    head = ["| device | truth | metric | found | tolerance | within |", "|---|--:|---|--:|---|---|"]
    return "\n".join([*head, *map(str, findings)])


def _with_unit(value: Value, unit: str) -> str:
    return f"{_number(value)} {unit}".strip()


def _tolerance(margins: Margins, reason: str) -> str:
    below, above = margins
    if below == above == 0:
        return "none"
    size = f"±{_number(below)}" if below == above else f"-{_number(below)} +{_number(above)}"
    return f"{size}: {reason}"


def _number(value: Value) -> str:
    if isinstance(value, str):
        return value
    if value == round(value):
        return f"{value:,.0f}"
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.4g}"
