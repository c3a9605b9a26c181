# SPDX-License-Identifier: Apache-2.0
"""Doubts of a rate that is measured first reach every metric whose rates are shares of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.simulated import Gateway
from tests.unit.test_rare_loss import LosesAFew

from natgauge.campaigns.journal_lines import RepetitionLine
from natgauge.campaigns.run import join
from natgauge.errors import BrokenError
from natgauge.measurements.making import make
from natgauge.measurer import Ability
from natgauge.procedures import get
from natgauge.procedures.kit.result.results import MeasurementResult
from natgauge.records.parameters import Parameters
from natgauge.records.store import plain

#: Its tester limits the throughput, not the device.
FASTER_THAN_THE_TESTER: dict[str, Any] = {"forwards": 1e9, "ceiling": 4e6, "abilities": frozenset({Ability.VARIATION})}


def measure(metric: str, gateway: Gateway, **others: Any) -> MeasurementResult:
    procedure = get(metric)
    given = {"repeat": 1, "connection_rate": 1e5, "connections": 1000, "placement": gateway.placement, **others}
    return procedure.measure(gateway, procedure.settings(**given))


def doubted(result: MeasurementResult) -> list[str]:
    return [doubt.text for doubt in make(result, Parameters()).doubts if doubt.word == "throughput doubted"]


@pytest.mark.parametrize("probability", [5e-7, 2e-6])
def test_a_latency_at_a_throughput_far_too_low_says_so(probability: float) -> None:
    """Seen: "100 % is 90,625 frames/s" of a device of 1,000,000, without a doubt."""
    far_too_low = 0
    for seed in range(10):
        try:
            result = measure("latency", LosesAFew(probability=probability, seed=seed), loads="100%")
        except BrokenError as error:
            # A throughput of 0 leaves no latency.
            assert "loss at every rate" in str(error)  # noqa: PT017 - only some seeds end so
            continue
        (throughput,) = result.first
        if throughput.summary.median < 500_000:
            far_too_low += 1
            assert any("rare loss" in text for text in doubted(result))
    assert far_too_low > 3


@pytest.mark.parametrize(
    ("metric", "placement"),
    [("latency", "isolated"), ("pdv", "isolated"), ("ipdv", "isolated"), ("frame-loss", "shared")],
)
def test_every_metric_of_shares_names_the_doubts_of_its_throughput(metric: str, placement: Any) -> None:
    (text,) = doubted(measure(metric, Gateway(placement=placement, **FASTER_THAN_THE_TESTER)))
    assert "tester limited" in text
    assert "single repetition" not in text


def test_delays_of_first_packets_name_the_doubts_of_their_connection_rate() -> None:
    slow_tester = Gateway(**FASTER_THAN_THE_TESTER, establishes=1e9)
    found = make(measure("first-packet-delay", slow_tester, connection_rate=None), Parameters())
    (doubt,) = [doubt for doubt in found.doubts if doubt.word == "connection rate doubted"]
    assert "the connection rate was measured first" in doubt.text
    assert "tester limited" in doubt.text
    assert not [doubt for doubt in found.doubts if doubt.word == "throughput doubted"]
    for known in (Gateway(establishes=100), Gateway(**FASTER_THAN_THE_TESTER, establishes=1e9)):
        given = None if known.establishes < 1e9 else 1e5
        found = make(measure("first-packet-delay", known, connection_rate=given), Parameters())
        assert not [doubt for doubt in found.doubts if doubt.word == "connection rate doubted"]


def test_bursts_whose_corrected_buffer_time_rests_on_a_doubted_throughput_say_so() -> None:
    gateway = LosesAFew(probability=2e-6, queue=512, ring=512, seed=3)
    (text,) = doubted(measure("back-to-back", gateway))
    assert "rare loss" in text


def test_a_throughput_without_doubts_and_one_that_was_given_leave_none() -> None:
    assert doubted(measure("latency", Gateway(forwards=3e5))) == []
    assert doubted(measure("latency", Gateway(**FASTER_THAN_THE_TESTER), throughput_rate=1e6)) == []


def test_repetitions_that_are_joined_keep_the_doubts_of_each_throughput() -> None:
    singles = [measure("pdv", Gateway(forwards=3e5)), measure("pdv", Gateway(**FASTER_THAN_THE_TESTER))]
    settings = get("pdv").settings
    both, one = (settings(connections=1000, placement="isolated", repeat=repeat) for repeat in (2, 1))
    (text,) = doubted(join(singles, both, one))
    assert "tester limited" in text


def test_a_campaign_that_is_gone_on_with_knows_the_doubts_of_the_throughput() -> None:
    measured = measure("pdv", Gateway(**FASTER_THAN_THE_TESTER))
    read = RepetitionLine.model_construct(measured=json.loads(json.dumps(plain(measured))))
    assert doubted(read.result) == doubted(measured)
