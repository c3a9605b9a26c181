# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.labs.burnt_core`: whether a busy host changes the answer (root, two cores, up to 20 minutes).

A router loses a frame now and then by chance: at 20,000 frames/s in trials of 20 s about every second half of a trial
loses one, so a trial passes by luck and no rate cures it. Its throughput is measured as it is, and while something else
takes the device's core for 6 ms of every 200 ms at real-time priority. What stalls excuse must not change the answer:
both have to agree within the doubt they tell.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import click
from tests.labs.burner import burning
from tests.labs.known_answers.devices import RECIPES
from tests.labs.program import begins
from tests.plans import with_trials

import natgauge
from natgauge.errors import NatgaugeError
from natgauge.host.cpus import usable_cpus
from natgauge.procedures.kit.result.results import Attempt
from natgauge.records.measurement import Result
from natgauge.tester.highest import HighestRates
from natgauge.trial import bench

ROUTER = str(RECIPES / "loses-now-and-then.toml")
BURNT_MS, EVERY_MS = 6, 200
#: What ends the search, in frames/s: half of the frames of a trial of 20 s are then what the router loses one of.
TOP_RATE, TRIAL_SECONDS = 20_000.0, 20.0


@dataclass(frozen=True, slots=True)
class Told:
    """What an answer says.

    Attributes:
        lower: of the interval that it leaves, in frames/s.
        upper: the same; infinite where the answer has no upper bound.
        text: for a reader.
    """

    lower: float
    upper: float
    text: str

    def agrees(self, other: Told) -> bool:
        """Whether one and the same rate is in both intervals."""
        return self.lower <= other.upper and other.lower <= self.upper


def told_by(answer: Result) -> Told:
    """The interval between the bounds of the search, beside every doubt."""
    (one,) = with_trials(answer)
    doubts = "; ".join(f"{doubt['word']}: {doubt['text']}" for doubt in answer.document()["doubts"])
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in answer.trials.items() if count)
    upper = float("inf") if one.upper is None else one.upper
    trials = "\n".join(f"    {_line(attempt)}" for attempt in one.attempts)
    return Told(one.value, upper, f"{one.value:,.0f} to {upper:,.0f} frames/s; {verdicts}; {doubts}\n{trials}")


def _line(attempt: Attempt) -> str:
    outcome = attempt.outcome
    lost = sum(counts.lost for counts in outcome.phase2.values())
    short = ", short" if attempt.short else ""
    return (
        f"{attempt.load:,.0f} frames/s{short}: {outcome.verdict}, {lost} lost, {outcome.excused_frames} of them excused"
    )


def measured(folder: Path, cpus: Sequence[int], most_seconds: float) -> Told:
    """The throughput, with the device on the second of these CPUs."""
    sender, device = cpus
    answer = natgauge.measure(
        "throughput",
        ROUTER,
        results=folder,
        placement="isolated",
        lab_name="burnt-core",
        sender_cores=str(sender),
        cores=str(device),
        stateless=True,
        directions="up",
        connections=1000,
        trial_seconds=TRIAL_SECONDS,
        error="10%",
        repeat=1,
        most_seconds=most_seconds,
    )
    return told_by(answer)


def main() -> int:
    """Measure both ways; 0 when the answers agree."""
    parser = argparse.ArgumentParser(description="Whether a busy host changes the answer.")
    parser.add_argument("--most-seconds", type=float, default=600.0, help="for each answer (default %(default)s)")
    most_seconds = parser.parse_args().most_seconds
    cpus = usable_cpus()[:2]
    if not begins("burnt core", cores=2):
        return 3
    answers = []
    with (
        tempfile.TemporaryDirectory(prefix="natgauge-burnt-core-") as folder,
        # The tester can do far more; what matters is that nothing is searched above this rate.
        mock.patch.object(bench, "highest_rates", return_value=HighestRates(TOP_RATE, TOP_RATE)),
    ):
        for name, burner in (("as it is", nullcontext()), ("with a burner", burning(cpus[1], BURNT_MS, EVERY_MS))):
            began = time.monotonic()
            with burner:
                try:
                    answers.append(measured(Path(folder), cpus, most_seconds))
                except NatgaugeError as error:
                    click.echo(f"{name}: not measured: {error}")
                    return 1
            click.echo(f"{name}, {time.monotonic() - began:.0f} s: {answers[-1].text}")
    agree = answers[0].agrees(answers[1])
    click.echo("The answers agree within what they tell." if agree else "The answers DISAGREE.")
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
