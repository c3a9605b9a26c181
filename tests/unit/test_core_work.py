# SPDX-License-Identifier: Apache-2.0
"""Work of each core of a device: read, spread, idle; its figures and doubts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from pydantic import JsonValue
from tests.plans import OneTrial, PlanOfTrial
from tests.unit.made_settings import alone
from tests.unit.simulated import Gateway, reading

from natgauge import doubts
from natgauge.core_work import CoreWork, total
from natgauge.labs.ssh.segment import read_work
from natgauge.measurements.making import make
from natgauge.metrics.shared_figures import CORE_IMBALANCE, IDLE_CORES
from natgauge.procedures.kit.result.device_figures import idle_cores, imbalance
from natgauge.records.parameters import Parameters
from natgauge.trial.trial_run import since


def frames(*each: int) -> dict[int, CoreWork]:
    return {core: CoreWork(count) for core, count in enumerate(each)}


@pytest.mark.parametrize(
    ("work_of_cores", "ratio", "idle"),
    [
        (frames(500, 500), 1.0, []),
        (frames(1000, 0), 2.0, [1]),
        (frames(600, 200, 200, 200), 2.0, []),
        (frames(900, 900, 10, 10), 900 * 4 / 1820, [2, 3]),
        # A single core is always even, and a few frames say nothing.
        (frames(1000), None, []),
        (frames(199, 0), None, []),
        ({}, None, []),
        # A core without frames that worked all the same, for example for a gateway's process, is not idle.
        ({0: CoreWork(1000, 2.0), 1: CoreWork(0, 1.5)}, 2.0, []),
        ({0: CoreWork(1000, 2.0), 1: CoreWork(0, 0.1)}, 2.0, [1]),
    ],
)
def test_imbalance_is_the_busiest_core_by_the_mean(
    work_of_cores: Mapping[int, CoreWork], ratio: float | None, idle: list[int]
) -> None:
    assert imbalance(work_of_cores) == (None if ratio is None else pytest.approx(ratio))
    assert idle_cores(work_of_cores) == idle


def test_work_is_the_difference_of_two_readings_of_the_same_machine() -> None:
    before, after = {0: CoreWork(5, 1.0), 1: CoreWork(7)}, {0: CoreWork(9, 1.25), 1: CoreWork(7)}
    assert since(before, after) == {0: CoreWork(4, 0.25), 1: CoreWork(0)}
    # The machine was rebooted, or has other cores now.
    assert since(after, before) == {}
    assert since(before, {**after, 2: CoreWork(1)}) == {}
    assert since({}, after) == {}


def test_readings_of_several_cards_add_up() -> None:
    assert total([frames(1, 2), frames(10, 20)]) == frames(11, 22)
    assert total([{0: CoreWork(1, 0.5)}, {0: CoreWork(1, 0.5)}]) == {0: CoreWork(2, 1.0)}
    assert total([]) == {}


#: Of Linux 6.18 with processors 0 and 2 online; before Linux 5.10 the last four columns did not exist.
SOFTNET = """
0000a410 00000000 00000003 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000
00000010 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000002 00000000 00000000
"""  # noqa: E501 - as the kernel prints it
STAT = "cpu0 100 0 50 9000 7 0 50 0 30 0\ncpu2 1 1 1 9000 0 1 1 1 0 0\n"


@pytest.mark.parametrize("columns", [15, 11], ids=["today", "before Linux 5.10"])
def test_the_kernels_own_counts_are_read(columns: int) -> None:
    lines = "\n".join(" ".join(line.split()[:columns]) for line in SOFTNET.splitlines())
    found = read_work(f"== softnet{lines}\n== stat\n{STAT}", (0, 2))
    assert found == {0: CoreWork(0xA410, 2.0), 2: CoreWork(0x10, 0.06)}


def test_counts_of_another_form_are_refused() -> None:
    for text in ("== softnet\nzz 00\n== stat\n", f"== softnet{SOFTNET}== stat\ncpux 1 2 3 4 5 6 7 8\n"):
        with pytest.raises(ValueError, match="invalid literal"):
            read_work(text, (0, 2))


@dataclass(slots=True)
class OnCores(Gateway):
    """A gateway whose flow hash spreads the frames of each trial like this."""

    shares: tuple[float, ...] = field(default=(0.5, 0.5))

    def measure(self, plan: PlanOfTrial) -> OneTrial:
        """The same trial, with the frames of each core."""
        # Slots make another class of this one.
        outcome = Gateway.measure(self, plan)
        # A trial that fails says nothing of the spread at the rate that passed.
        shares = self.shares if outcome.verdict == "PASS" else self.shares[::-1]
        return reading(outcome, core_work=frames(*(round(1_000_000 * share) for share in shares)))


PLACE = Parameters.grouped(place={"device_cores": 4, "placement": "external"})


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
    measured = alone(metric, OnCores(shares=shares), repeat=2)
    assert measured.figures[CORE_IMBALANCE].median == pytest.approx(ratio)
    assert measured.figures[IDLE_CORES].median == idle
    found = {one.word: one.value for one in doubts.find(measured, PLACE) if one.word.endswith("cores")}
    assert found == {word: pytest.approx(value) for word, value in words.items()}


def test_a_lab_that_does_not_know_the_work_of_its_cores_has_neither_figure() -> None:
    measured = alone("connection-rate", Gateway())
    assert not {CORE_IMBALANCE, IDLE_CORES} & set(measured.figures)
    assert not [one for one in doubts.find(measured, PLACE) if one.word.endswith("cores")]


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
    place: Mapping[str, JsonValue], device: Gateway, reason: str | None
) -> None:
    measured = alone("connection-rate", device, connections=20_000)
    result = make(measured, Parameters.grouped(place={"device_cores": 2, **place}))
    said = [note.text for note in result.notes if "spread of the frames" in note.text]
    assert len(said) == (reason is not None)
    assert not reason or f"over the device's 2 cores is not known: {reason}" in said[0]
