# SPDX-License-Identifier: Apache-2.0
"""How long natgauge takes to go on with, and to show, a campaign whose trials have much evidence.

    python -m benchmarks.journals FOLDER [--megabytes 100]

A campaign of 100 measurements of simulated gateways is ended in the middle, gone on with, and shown. Each step prints
its processor time and its duration, and the last line the sizes of the files.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tests.unit.campaigning import PLAN, Benches, Dies, Killed, Recorded, Simulated

from natgauge.campaigns.campaign import RunOrder, run
from natgauge.inputs.question import Cell
from natgauge.measurements.measure import Prepared
from natgauge.trial.controls import Observer
from natgauge.trial.lab_measurer import Recorder
from natgauge.trial.planned import Planned

_SERIES: Final = "connections = [1000, 2000]"
#: With two gateways and two metrics, 100 measurements.
_CELLS_OF_GATEWAY: Final = 25
_MEASUREMENTS: Final = 4 * _CELLS_OF_GATEWAY
_MEGABYTE: Final = 1_000_000
#: Octets of one number of the evidence in JSON.
_NUMBER_OCTETS: Final = 11


class _Evidence:
    """Hands trials on to the recorder with as much evidence as a trial of a lab has."""

    def __init__(self, recorder: Recorder, octets: int) -> None:
        self._recorder = recorder
        self._numbers = [1_000_000_000 + number for number in range(octets // _NUMBER_OCTETS)]

    def add_trial(self, trial: Mapping[str, object]) -> None:
        more = {"began": time.time(), "request": {"numbers": self._numbers}}
        self._recorder.add_trial({**trial, **more})

    def add_round(self, comparison_round: Mapping[str, object]) -> None:
        self._recorder.add_round(comparison_round)


class _Bench(Simulated):
    """A bench whose trials have evidence."""

    octets = 0

    def prepare(self, planned: Planned, recorder: Recorder) -> Prepared:
        prepared = super().prepare(planned, recorder)
        assert isinstance(prepared.measurer, Recorded)  # noqa: S101 - the class above makes it
        prepared.measurer.recorder = _Evidence(recorder, self.octets)
        return prepared


class _Benches(Benches):
    """Makes these benches."""

    def __call__(self, cell: Cell, _observer: Observer) -> Simulated:
        return _Bench(self, cell)


@contextmanager
def _timed(what: str) -> Iterator[None]:
    """Print the processor time, of children too, and the duration."""
    begun, before = time.monotonic(), os.times()
    yield
    own = sum(after - earlier for after, earlier in zip(os.times()[:4], before[:4], strict=True))
    print(f"{what:<40} {own:8.2f} s of a processor {time.monotonic() - begun:8.2f} s", flush=True)


def _octets(folder: Path, pattern: str) -> int:
    return sum(path.stat().st_size for path in folder.rglob(pattern))


def _natgauge(*words: str) -> None:
    subprocess.run([str(Path(sys.executable).with_name("natgauge")), *words], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """Make the campaign, and time what reads it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the campaign is made; it must not exist")
    parser.add_argument("--megabytes", type=int, default=100, help="evidence of all trials")
    options = parser.parse_args()
    options.folder.mkdir(parents=True)
    plan, out = options.folder / "plan.toml", options.folder / "out"
    assert _SERIES in PLAN  # noqa: S101 - the plan of the tests
    plan.write_text(PLAN.replace(_SERIES, f"connections = {[1000 + more for more in range(_CELLS_OF_GATEWAY)]}"))

    counted = _Benches()
    run(RunOrder(plan=plan, out=options.folder / "counted"), make_bench=counted)
    trials = sum(counted.trials.values())
    _Bench.octets = options.megabytes * _MEGABYTE // trials
    print(f"{_MEASUREMENTS} measurements in two repetitions, {trials:,} trials")

    benches = _Benches(killed=Dies(trials // 2))
    with _timed("the first half, to the kill"), suppress(Killed):
        run(RunOrder(plan=plan, out=out), make_bench=benches)
    benches.killed = Dies()
    with _timed("--resume to the end, with 100 results"):
        run(RunOrder(plan=plan, out=out, resume=True), make_bench=benches)
    with _timed("--resume of the ended campaign"):
        run(RunOrder(plan=plan, out=out, resume=True), make_bench=benches)
    with _timed("natgauge status"):
        _natgauge("status", str(out))
    with _timed("natgauge report"):
        _natgauge("report", str(out))
    with _timed("natgauge report --html"):
        _natgauge("report", str(out), "--html", str(options.folder / "page.html"))
    sizes = {name: _octets(out, name) / _MEGABYTE for name in ("journal.jsonl", "trials.jsonl", "*")}
    print(", ".join(f"{name}: {size:,.0f} MB" for name, size in sizes.items()))


if __name__ == "__main__":
    main()
