# SPDX-License-Identifier: Apache-2.0
"""The second opinion: its search, the true figures of its gateway, how it reads other testers, and its table."""

from __future__ import annotations

import os
import subprocess
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest
from benchmarks.second_opinion import __main__ as program
from benchmarks.second_opinion import siitperf, table, testers
from benchmarks.second_opinion.gateway import Limits
from benchmarks.second_opinion.questions import questions
from benchmarks.second_opinion.search import Range, Trial, highest
from tests import simulated_lab
from tests.plans import with_trials
from tests.unit.golden import Golden
from tests.unit.simulated import Gateway

LIMITS = Limits(rate=4000, burst=40)
RATES = Range(0, 8000, 40, tries=3)
SIITPERF = siitperf.Siitperf(Path("siitperf-tp"), Path("library"), sender=1, receiver=0)


def cliff(at: float, rejected: frozenset[int] = frozenset()) -> Any:
    """A device that loses a frame of every trial above `at`, and a tester that rejects its trials at some loads."""
    return lambda load: Trial(load, 1000, 1000 if load <= at else 999, load not in rejected, 0, 0)


def test_the_search_finds_a_cliff_to_within_its_error() -> None:
    value, trials = highest(cliff(4040.4), RATES)
    assert 4040.4 - 40 <= value <= 4040.4
    assert len(trials) == 8
    # The exact size of a table; and where nothing passes, the lower bound.
    assert highest(cliff(1000), Range(500, 2000, 1, tries=1))[0] == 1000
    assert highest(cliff(-1), Range(0, 100, 1, tries=1))[0] == 0


def test_a_trial_that_its_tester_rejects_is_repeated_and_then_counts_as_failed() -> None:
    value, trials = highest(cliff(4040.4, frozenset({4000})), RATES)
    assert [trial.load for trial in trials[:4]] == [4000, 4000, 4000, 2000]
    assert value < 4000


def test_a_repetition_that_its_tester_accepts_counts() -> None:
    answers = iter(
        [
            Trial(4000, 10, 9, valid=False, connections=0, refused=0),
            Trial(4000, 10, 10, valid=True, connections=0, refused=0),
        ]
    )
    assert highest(lambda _: next(answers), Range(0, 8000, 4000, tries=3))[0] == 4000


def test_true_rates_include_the_bucket() -> None:
    assert LIMITS.opening_rate(4000) == pytest.approx(4000 / 0.99)
    # At this rate the frames beyond the limit just fill the bucket.
    rate = LIMITS.opening_rate(4000)
    assert 4000 - LIMITS.rate * 4000 / rate == pytest.approx(LIMITS.burst)
    assert LIMITS.forwarding_rate(2) == 4020


def test_counts_of_siitperf_are_read_with_the_phases_that_it_rejects() -> None:
    counts = siitperf.read(
        "Preliminary frames received: 1000\nForward frames received: 399\n"
        "Warning: Reverse sending exceeded the 1.0 seconds limit, the test is invalid.\nReverse frames received: 400\n"
    )
    assert counts.received == {"Preliminary": 1000, "Forward": 399, "Reverse": 400}
    assert counts.invalid == ("Reverse",)


def test_siitperf_gets_as_many_ports_as_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(siitperf, "_mac", lambda _port, _netns: "02:00:00:00:00:01")
    opening = siitperf.Opening(1000, 2000, first_port=10_000, destination_port=9000)
    text = siitperf.configuration(opening, siitperf.Forwarding(400, 1, up=True, down=False))
    settings = dict(line.split(maxsplit=1) for line in text.splitlines())
    assert int(settings["Fwd-sport-max"]) - int(settings["Fwd-sport-min"]) + 1 == 1000
    assert (settings["Forward"], settings["Reverse"]) == ("1", "0")


@pytest.mark.parametrize(
    ("directions", "lcores"),
    [
        ({"up": True, "down": False}, "0@0,1@1,2@0"),
        ({"up": False, "down": True}, "0@0,1@1,2@0,3@1,4@0"),
        ({"up": True, "down": True}, "0@0,1@1,2@0,3@0,4@1"),
    ],
)
def test_each_processor_polls_for_one_lcore_unless_two_directions_run(directions: dict[str, bool], lcores: str) -> None:
    arguments = SIITPERF._eal(siitperf.Forwarding(400, 1, **directions)).split()
    assert arguments[arguments.index("--lcores") + 1] == lcores


def test_turns_reverse_with_each_repetition() -> None:
    asked = questions(SIITPERF, 1)
    turns = list(program._turns(asked, ["capacity"], 2))
    first, second = ([tester for at, _, tester in turns if at == repetition] for repetition in (0, 1))
    assert first == second[::-1]
    assert set(first) == {"natgauge", "siitperf", "trafgen"}


def test_the_table_shows_spread_difference_and_testers_without_a_figure(golden: Golden) -> None:
    asked = questions(SIITPERF, 1)
    common = {"question": "capacity", "trials": 11, "invalid": 1, "seconds": 50.0, "said": [], "evidence": []}
    turns = [{**common, "tester": "natgauge", "value": value} for value in (990.0, 1000.0, 1010.0)]
    turns.append({**common, "tester": "siitperf", "value": None})
    page = table.page({"date": "2026-11-23"}, asked, turns)
    golden(page)


def test_a_trial_of_natgauge_is_stored_with_its_verdict_and_the_frames_of_each_phase() -> None:
    truth = Gateway(forwards=3e5, establishes=1e6)
    found = simulated_lab.measure("throughput", truth, connections=1000, connection_rate=1e5, trial_seconds=0.5)
    (repetition,) = with_trials(found.result)
    sides = {"phase 1": ("phase1",), "initiator": ("phase2", "initiator"), "responder": ("phase2", "responder")}
    stored = []
    for trial in found.trials:
        counts = {name: reduce(getitem, path, trial["result"]) for name, path in sides.items()}
        frames = {
            name: {"sent": one["offered_frames"], "received": one["received_frames"]} for name, one in counts.items()
        }
        load = trial["plan"]["phase2"]["initiator_rate"]
        stored.append({"load": load, "verdict": trial["verdict"], "connections": 1000, **frames})
    assert list(map(testers._attempt, repetition.attempts)) == stored
    failed = next(one for one in stored if one["verdict"] == "FAIL")
    assert failed["initiator"]["received"] < failed["initiator"]["sent"]


FAKE_EAL = """
#include <stdio.h>
int rte_eal_init(int argc, char **argv) { for (int i = 0; i < argc; i++) puts(argv[i]); return argc; }
"""
FAKE_PROGRAM = """
int rte_eal_init(int argc, char **argv);
int main(void) { char *argv[] = {"program", "-l", "0,1,2", "-n", "2", 0}; return rte_eal_init(5, argv); }
"""


@pytest.mark.parametrize(
    ("given", "seen"),
    [("--no-huge --lcores 0@1", "program -n 2 --no-huge --lcores 0@1"), (None, "program -l 0,1,2 -n 2")],
)
def test_the_shim_replaces_the_list_of_lcores_of_a_dpdk_program(tmp_path: Path, given: str | None, seen: str) -> None:
    (tmp_path / "eal.c").write_text(FAKE_EAL)
    (tmp_path / "program.c").write_text(FAKE_PROGRAM)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "libeal.so", "eal.c"], cwd=tmp_path, check=True)
    subprocess.run(["cc", "-o", "program", "program.c", "./libeal.so"], cwd=tmp_path, check=True)
    with siitperf.built_library() as library:
        environment = os.environ | {"LD_PRELOAD": str(library)} | ({"EAL_ARGUMENTS": given} if given else {})
        done = subprocess.run(["./program"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == seen.split()
