# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.labs.invalid_share`: how many trials this machine spoils, as it is (needs root; about 10 minutes).

Measures throughput and frame loss of a NAT and of a router that drops every 1,000th frame, `isolated`, with the quick
profile and all else as a user has it. For every measurement it tells the verdicts of its trials, why each INVALID one
was, and which loads of a series have no figure. No more than a tenth of the trials may be INVALID, and no series may
have a hole.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from tests.labs.known_answers.devices import RECIPES
from tests.labs.program import begins

import natgauge
from natgauge.errors import NatgaugeError
from natgauge.procedures.frame_loss import COARSEST_STEP, shares_of
from natgauge.records.measurement import Result
from natgauge.records.record import read_lines
from natgauge.records.store import TRIAL_SCHEMA
from natgauge.words import Verdict

NAT, ROUTER = "nftables-nat44", str(RECIPES / "drops-every-1000th.toml")
MEASUREMENTS = tuple(itertools.product((NAT, ROUTER), ("throughput", "frame-loss")))
MOST_INVALID = 0.1
LAB_NAME = "invalid-share"


@dataclass(frozen=True, slots=True)
class Found:
    """One measurement.

    Attributes:
        what: device and metric.
        verdicts: how many trials ended with each.
        causes: of the INVALID ones, with figures left out.
        holes: loads of the series, in % of the highest, between first and last that have no figure.
        told: its value, or why there is none.
    """

    what: str
    verdicts: Mapping[str, int]
    causes: Mapping[str, int]
    holes: tuple[float, ...]
    told: str

    @property
    def invalid_share(self) -> float:
        """Of all trials."""
        return self.verdicts.get(Verdict.INVALID, 0) / max(1, sum(self.verdicts.values()))

    @property
    def good(self) -> bool:
        """Whether few enough trials were INVALID, and no figure is missing."""
        return self.invalid_share <= MOST_INVALID and not self.holes and bool(self.verdicts)

    def lines(self) -> Iterable[str]:
        counted = ", ".join(f"{count} {verdict}" for verdict, count in sorted(self.verdicts.items()))
        holes = f"; no figure at {', '.join(f'{load:g} %' for load in self.holes)}" if self.holes else ""
        mark = "  " if self.good else "! "
        yield f"{mark}{self.what}: {counted} ({self.invalid_share:.0%} INVALID){holes}; {self.told}"
        for cause, count in sorted(self.causes.items()):
            yield f"      {count} INVALID: {cause}"


def cause_of(trial: Mapping[str, Any]) -> str:
    """Why a trial says nothing of the device, without the figures, so that causes can be counted."""
    return re.sub(r"\d[\d.]*", "N", f"{trial['limited_by']}: {trial['reason']}")


def holes_in(loads: Iterable[float], step: float = COARSEST_STEP) -> tuple[float, ...]:
    """The loads, in %, that a series of frame loss skips, down to its last one."""
    known = {round(load, 6) for load in loads}
    if not known:
        return ()
    due = itertools.takewhile(lambda load: load >= min(known), (round(100 * share, 6) for share in shares_of(step)))
    return tuple(load for load in due if load not in known)


def measured(recipe: str, metric: str, folder: Path) -> Found:
    """One measurement, as a user would ask for it."""
    what = f"{metric} of {Path(recipe).stem}"
    try:
        answer = natgauge.measure(
            metric, recipe, results=folder, profile="quick", placement="isolated", lab_name=LAB_NAME
        )
    except NatgaugeError as error:
        return Found(what, {}, {}, (), f"not measured: {error}")
    return found_in(what, answer)


def found_in(what: str, answer: Result) -> Found:
    """What a measurement's trials came to."""
    trials = list(read_lines(answer.folder / "trials.jsonl", TRIAL_SCHEMA))
    rows = [row for one in answer.repetitions for row in one.series]
    told = "; ".join(f"{doubt['word']}: {doubt['text']}" for doubt in answer.document()["doubts"])
    return Found(
        what,
        Counter(trial["verdict"] for trial in trials),
        Counter(cause_of(trial) for trial in trials if trial["verdict"] == Verdict.INVALID),
        holes_in(float(row["offered_percent"] or 0) for row in rows if "offered_percent" in row),
        f"{answer.median:,.4g} {answer.unit} ({told})",
    )


def main() -> int:
    """Measure each so many times; 0 when all were good."""
    parser = argparse.ArgumentParser(description="How many trials this machine spoils, as it is.")
    parser.add_argument("--runs", type=int, default=3, help="of all four measurements (default %(default)s)")
    runs = parser.parse_args().runs
    if not begins("invalid share"):
        return 3
    good = True
    with tempfile.TemporaryDirectory(prefix="natgauge-invalid-share-") as folder:
        for run in range(1, runs + 1):
            click.echo(f"Run {run}")
            for recipe, metric in MEASUREMENTS:
                began = time.monotonic()
                found = measured(recipe, metric, Path(folder))
                click.echo("\n".join([*found.lines(), f"      took {time.monotonic() - began:.0f} s"]))
                good = good and found.good
    click.echo("All good." if good else "Not good: see the lines with a !")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
