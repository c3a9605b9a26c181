# SPDX-License-Identifier: Apache-2.0
"""Loss of a few frames in a million bounds a search by chance: it is told, and no overload is taken for it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests import simulated_lab
from tests.plans import CountsOfStream
from tests.unit.conftest import Ran
from tests.unit.counted import change_counts, change_trial
from tests.unit.golden import Golden
from tests.unit.made_results import kept, made
from tests.unit.simulated import Gateway

from natgauge import Result


@dataclass(slots=True)
class LosesAFew(Gateway):
    """Loses each frame with the same small probability."""

    probability: float = 5e-6

    def _stream(self, *given: Any, **others: Any) -> CountsOfStream:
        counts = Gateway._stream(self, *given, **others)
        # Poisson, by the distances between losses: there are few of them.
        lost, left = 0, self.probability * counts.offered_frames
        while (left := left + math.log(1 - self._random.random())) > 0:
            lost += 1
        return change_counts(counts, received=max(counts.received_frames - lost, 0))


def result_of(metric: str, gateway: Gateway, **others: Any) -> Result:
    return simulated_lab.measure(metric, gateway, **{"connections": 100_000, "most_seconds": 0, **others}).result


def words(result: Result) -> set[str]:
    return {doubt.word for doubt in result.doubts}


def test_an_answer_far_too_low_for_a_few_lost_frames_says_so(golden: Golden) -> None:
    """16,884, 18,520 and 5,536 connections/s were told of a device of 1,000,000, limited by the device."""
    results = [result_of("connection-rate", LosesAFew(seed=seed)) for seed in range(10)]
    far_too_low = [result for result in results if result.median < 500_000]
    assert len(far_too_low) > 3
    assert all(words(result) & {"rare loss", "loss at every rate"} for result in far_too_low)
    rare = [doubt.text for result in far_too_low for doubt in result.doubts if doubt.word == "rare loss"]
    assert rare
    golden(rare)


# The goals change where the search goes on, not what is said of where it ended.
@pytest.mark.parametrize("goals", ["rfc2544", pytest.param("ndr-pdr", marks=pytest.mark.soak)])
def test_mlrsearch_says_so_too(goals: str) -> None:
    """It is the search of the profile `standard`."""
    results = [
        result_of(
            "throughput", LosesAFew(seed=seed), search="mlrsearch", goals=goals, connections=1000, connection_rate=1e5
        )
        for seed in range(10)
    ]
    far_too_low = [result for result in results if result.median < 500_000]
    assert len(far_too_low) > 3
    for result in far_too_low:
        (doubt,) = (doubt for doubt in result.doubts if doubt.word == "rare loss")
        # Goals take the place of a tolerance, which is refused beside them.
        assert doubt.text.endswith("; --loss-tolerance needs --search binary")


@pytest.mark.parametrize(
    ("word", "option"), [("rare loss", "--loss-tolerance"), ("loss at every rate", "--log-tolerance")]
)
def test_what_tolerates_a_loss_is_told_beside_it_for_any_search(
    word: str, option: str, tmp_path: Path, ran: Ran
) -> None:
    """Other searches than MLRsearch, and metrics that have no other search, tolerate it."""
    folder = kept(tmp_path / "of", made(doubts=[{"word": word, "text": "1 of 100 was lost", "grade": "answer"}]))
    told = json.loads(ran(["report", str(folder), "--format", "json"]).out)["doubts"]
    (remedy,) = [one["remedy"] for one in told if one["word"] == word]
    assert option in remedy
    assert "--search" not in remedy


#: Noise of a device, and placement: two pairs, and for `make soak` all.
_FIRST = {(0.0, "isolated"), (0.2, "shared")}
_PLACES = [
    pytest.param(noise, placement, marks=[] if (noise, placement) in _FIRST else [pytest.mark.soak])
    for noise in (0.0, 0.02, 0.2)
    for placement in ("shared", "isolated")
]


@pytest.mark.parametrize(("noise", "placement"), _PLACES)
@pytest.mark.parametrize("cliff", [3_000.0, 30_000.0, 3e6])
@pytest.mark.parametrize(
    ("metric", "others"),
    [
        ("connection-rate", {}),
        ("throughput", {}),
        ("throughput", {"search": "mlrsearch", "goals": "rfc2544"}),
        ("throughput", {"search": "mlrsearch", "goals": "ndr-pdr"}),
    ],
)
def test_an_overloaded_device_is_not_taken_for_one(
    metric: str, others: dict[str, str], cliff: float, noise: float, placement: Any
) -> None:
    gateway = Gateway(establishes=cliff, forwards=cliff, noise=noise, placement=placement, seed=5)
    assert "rare loss" not in words(result_of(metric, gateway, **others))


@pytest.mark.parametrize("queue", [64, 512, 16_384])
def test_a_queue_that_takes_up_most_of_a_short_trial_is_not_taken_for_one(queue: int) -> None:
    gateway = Gateway(establishes=250_000, queue=queue)
    assert "rare loss" not in words(result_of("connection-rate", gateway, connections=20_000))


def test_a_rare_loss_is_one_of_all_frames_that_were_due(golden: Golden) -> None:
    """Ten frames were not sent, for their connections had not been opened."""

    def alters(_number: int, trial: Any) -> Any:
        counts = trial.phase2["responder"]
        if trial.plan.phase2.initiator_rate <= 3e5:
            return trial
        sent = counts.intended_frames - 10
        changed = change_counts(counts, offered=sent, received=sent, unopened=10)
        return change_trial(trial, phase2={**trial.phase2, "responder": changed})

    given: dict[str, Any] = {"connections": 1000, "connection_rate": 1e5}
    found = simulated_lab.measure("throughput", Gateway(alters=alters), **given)
    (text,) = [doubt.text for doubt in found.result.doubts if doubt.word == "rare loss"]
    due = sum(counts["intended_frames"] for counts in found.trials[-1]["result"]["phase2"].values() if counts)
    assert text.startswith(f"10 of {due:,} frames were lost in 1 of 1 failed trial")
    golden(text)
