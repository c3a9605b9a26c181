# SPDX-License-Identifier: Apache-2.0
"""natgauge, siitperf, trafgen and iperf3 measure one gateway in turns: `python -m benchmarks.second_opinion` (root).

Each turn is one whole measurement by one tester. The turns of the testers alternate, and their order reverses with
each repetition. Each turn is stored when it ends, so a run that stops can be continued. `--page` writes page and JSON
file from the stored turns.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import command, machine
from benchmarks.second_opinion import packaged, table
from benchmarks.second_opinion.gateway import Gateway, table_of
from benchmarks.second_opinion.questions import Question, questions
from benchmarks.second_opinion.siitperf import Siitperf, SiitperfError, built_library
from benchmarks.second_opinion.testers import Asked
from natgauge.errors import NatgaugeError


@dataclass(frozen=True, slots=True)
class Turn:
    """One measurement by one tester.

    Attributes:
        question: what was measured, a key of `questions()`.
        tester: who measured.
        repetition: from 0.
        value: the tester's figure; None if it gave none.
        seconds: duration of the turn.
        trials: number of trials.
        invalid: number of trials that the tester itself rejected.
        said: what the tester said of the figure: doubts, or the reason why there is none.
        evidence: the trials, where this folder searched.
    """

    question: str
    tester: str
    repetition: int
    value: float | None
    seconds: float
    trials: int
    invalid: int
    said: Sequence[str]
    evidence: Sequence[Any]


def _turns(asked: Mapping[str, Question], names: Sequence[str], repetitions: int) -> Iterator[tuple[int, str, str]]:
    for repetition in range(repetitions):
        for name in names:
            testers = list(asked[name].testers)
            for tester in testers[:: 1 if repetition % 2 == 0 else -1]:
                yield repetition, name, tester


def _take(question: Question, name: str, tester: str, repetition: int) -> Turn:
    began = time.monotonic()
    with Gateway(question.limits) as gateway, table_of(question.table):
        try:
            found = question.testers[tester](gateway)
        except (SiitperfError, packaged.PackagedError, NatgaugeError) as error:
            found = Asked(None, 0, 0, [str(error)])
    took = round(time.monotonic() - began, 1)
    return Turn(name, tester, repetition, found.value, took, found.trials, found.invalid, found.said, found.evidence)


def _arguments() -> argparse.Namespace:
    parser = command.options(__doc__, "second-opinion")
    parser.add_argument(
        "--receiver", type=int, default=0, help="processor of siitperf's receivers (default %(default)s)"
    )
    parser.add_argument(
        "--siitperf", type=Path, help="path of an existing siitperf-tp; without it siitperf is left out"
    )
    parser.add_argument("--store", type=Path, default=Path("second-opinion.jsonl"), help="turns (default %(default)s)")
    parser.add_argument("--only", action="append", help="a question; may be repeated; all when absent")
    parser.add_argument("--tester", action="append", help="a tester; may be repeated; all when absent")
    parser.add_argument("--repetitions", type=int, default=5, help="turns of each tester (default %(default)s)")
    parser.add_argument("--most-seconds", type=float, default=float("inf"), help="begin no turn after this time")
    parser.add_argument("--page", action="store_true", help="write page and JSON file from the stored turns")
    return parser.parse_args()


def _stored(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def main() -> int:
    """Take the turns that are not stored yet, or write the page; 0 when done."""
    arguments = _arguments()
    if not command.is_root("second_opinion"):
        return 3
    # SIGTERM must undo what a turn changed, as Ctrl-C does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    began = time.monotonic()
    with built_library() as library:
        siitperf = Siitperf(arguments.siitperf or Path("siitperf-tp"), library, arguments.cpu, arguments.receiver)
        asked = questions(siitperf, arguments.cpu)
        if arguments.page:
            described = machine.describe()
            turns = _stored(arguments.store)
            page, document = table.page(described, asked, turns), {"machine": described, "turns": turns}
            print(command.write(arguments.results, f"{command.day(described)}-{arguments.name}", page, document))
            return 0
        done = {(turn["repetition"], turn["question"], turn["tester"]) for turn in _stored(arguments.store)}
        for repetition, name, tester in _turns(asked, arguments.only or list(asked), arguments.repetitions):
            if (repetition, name, tester) in done or tester not in (arguments.tester or [tester]):
                continue
            if tester == "siitperf" and arguments.siitperf is None:
                continue
            if time.monotonic() - began > arguments.most_seconds:
                break
            turn = _take(asked[name], name, tester, repetition)
            with arguments.store.open("a") as store:
                store.write(json.dumps(asdict(turn)) + "\n")
            print(f"{name}, {tester}: {turn.value} of {asked[name].true} {turn.said} in {turn.seconds} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
