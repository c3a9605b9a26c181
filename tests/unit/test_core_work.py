# SPDX-License-Identifier: Apache-2.0
"""Work of each core of a device: its figures and doubts, and why it is not known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.unit.made_settings import stored_alone
from tests.unit.simulated import Gateway
from tests.unit.simulated_kinds import OnCores

PLACE = {"device_cores": 4, "placement": "external"}


@pytest.mark.parametrize(
    ("shares", "ratio", "idle", "words"),
    [
        ((0.25, 0.25, 0.25, 0.25), 1.0, 0, {}),
        ((0.37, 0.21, 0.21, 0.21), 1.48, 0, {}),
        ((0.4, 0.2, 0.2, 0.2), 1.6, 0, {"uneven cores": 1.6}),
        ((1.0, 0.0, 0.0, 0.0), 4.0, 3, {"idle cores": 3.0}),
        ((0.8, 0.2, 0.0, 0.0), 3.2, 2, {"idle cores": 2.0, "uneven cores": 1.6}),
    ],
)
@pytest.mark.parametrize("metric", ["throughput", "connection-rate"])
def test_uneven_and_idle_cores_are_figures_and_doubts(
    metric: str, shares: tuple[float, ...], ratio: float, idle: int, words: Mapping[str, float]
) -> None:
    measured = stored_alone(metric, OnCores(shares=shares), repeat=2, around=PLACE)
    assert measured.figures["core_imbalance"].median == pytest.approx(ratio)
    assert measured.figures["idle_cores"].median == idle
    found = {one.word: one.value for one in measured.doubts if one.word in {"uneven cores", "idle cores"}}
    assert found == {word: pytest.approx(value) for word, value in words.items()}


def test_a_lab_that_does_not_know_the_work_of_its_cores_has_neither_figure() -> None:
    measured = stored_alone("connection-rate", Gateway(), around=PLACE)
    assert not {"core_imbalance", "idle_cores"} & set(measured.figures)
    assert not {"uneven cores", "idle cores"} & {one.word for one in measured.doubts}


@pytest.mark.parametrize(
    ("place", "device", "reason"),
    [
        ({"placement": "shared"}, Gateway(), "in shared placement each core forwards what the sender on the same core"),
        ({"placement": "external", "lab_kind": "wire"}, Gateway(), "natgauge does not reach a device on a wire"),
        ({"placement": "external", "lab_kind": "ssh"}, Gateway(), "the device's machine did not report its work"),
        ({"placement": "isolated"}, OnCores(shares=(1e-5, 1e-5)), "the deciding trials had too few frames"),
        ({"placement": "isolated"}, OnCores(), None),
        ({"placement": "shared", "device_cores": 1}, Gateway(), None),
    ],
)
def test_a_result_says_why_the_spread_over_several_cores_is_not_known(
    place: Mapping[str, Any], device: Gateway, reason: str | None
) -> None:
    result = stored_alone("connection-rate", device, connections=20_000, around={"device_cores": 2, **place})
    said = [note.text for note in result.notes if "spread of the frames" in note.text]
    assert len(said) == (reason is not None)
    assert not reason or f"over the device's 2 cores is not known: {reason}" in said[0]
