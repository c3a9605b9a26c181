# SPDX-License-Identifier: Apache-2.0
"""Real results in every report, and the command that a page prints to measure again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

import natgauge
from natgauge.analysis.derived import comparable
from natgauge.cli import run
from natgauge.procedures.kit import delays
from natgauge.reports.html.page import page
from natgauge.stored.find_results import find
from natgauge.stored.frames import load
from natgauge.trial.question import command_again


@pytest.fixture(scope="module", autouse=True)
def stalls_repeat_no_trial() -> Iterator[None]:
    """Keep the first trial of each load even when a busy host moved its delays: these tests judge no delay."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delays, "MOST_STALLED", 0)
        yield


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Delays of a few frames: a result with a series, and trials with buckets."""
    folder = tmp_path_factory.mktemp("results")
    natgauge.measure(
        "latency", "nftables-nat44", results=folder, lab_name="reports", connections=100, repeat=2, trial_seconds=0.2,
        loads="100%,50%", connection_rate=10_000.0, throughput_rate=10_000.0, seed=5, grace_seconds=0.1,
    )  # fmt: skip
    return folder


def test_a_real_result_is_drawn_and_framed_whole(results: Path) -> None:
    found = find([results])
    shown = page(found, command_again)
    assert "Delays: share of the frames that took longer" in shown
    loaded = load(results)
    assert loaded.measurements["value"].to_list() == list(found.results[0].values)
    assert f"{loaded.trials.height:,} trials: " in shown
    assert sum(found.results[0].trials.values()) == loaded.trials.height
    assert loaded.trials["up_received_frames"].sum() > 0


@pytest.mark.soak  # unit/test_inputs.py asks the same by the command of any question
@pytest.mark.slow("measures twice, each time in two labs, and each delay with the tester's own")
def test_the_command_on_the_page_measures_the_same_again(results: Path, tmp_path: Path) -> None:
    (first,) = find([results]).results
    words = shlex.split(str(first.parameter("command")))
    assert run([*words[1:], "--lab-name", "reports", "--results", str(tmp_path)]) == 0
    (second,) = find([tmp_path]).results
    assert comparable(first, second) == []
    assert second.parameter("seed") == 5
    # Two repetitions tell nothing, and that is what is said.
    assert run(["diff", str(results), str(tmp_path)]) == 5
