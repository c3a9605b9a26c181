# SPDX-License-Identifier: Apache-2.0
"""What a passing trial had to do belongs to the figure: no view says "without loss" of a search that tolerates loss."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.golden import Golden
from tests.unit.made_results import made
from tests.unit.made_settings import settings_of
from tests.unit.simulated import Gateway

from natgauge import procedures
from natgauge.analysis.unit_frames import bits_of_unit
from natgauge.measurements.making import make
from natgauge.measurer import Ability
from natgauge.records.measurement import Result
from natgauge.records.parameters import Parameters
from natgauge.reports import csv_table, latex, markdown
from natgauge.reports.answers import answers, one
from natgauge.reports.sheet import sheet
from natgauge.reports.text import table, verdict

QUERIES = frozenset({Ability.QUERIES})


def found(metric: str, gateway: Gateway, traffic: dict[str, Any] | None = None, **asked: Any) -> Result:
    """What a simulated gateway has, by a measurement with these settings."""
    procedure = procedures.get(metric)
    settings = settings_of(
        procedure,
        {"repeat": 3, **asked},
        connections=10_000,
        placement=gateway.placement,
        order="permutation",
        four_tuples=10_000,
    )
    measured = procedure.measure(gateway, settings, clock=gateway.clock)
    parameters = Parameters.grouped(
        settings=settings.as_run().parameters(),
        traffic={"connections": 10_000, **(traffic or {})},
        place={"placement": gateway.placement, "device_cores": 1},
        device={"gateway": "x", "kind": "nat44"},
    )
    return make(measured, parameters)


def lossy(share: float = 0.01, **given: Any) -> Gateway:
    return Gateway(establishes=5e5, forwards=2e5, loses_share=share, **given)


def every_view(result: Result) -> list[str]:
    shown = sheet([result])
    forms = (table([result]), csv_table.table([result]), markdown.render(shown), latex.render(shown))
    return [verdict(result, brief=True), verdict(result), *forms, *(each.text for each in answers([result]))]


@pytest.mark.parametrize("metric", ["throughput", "connection-rate", "validated-connection-rate", "frame-loss"])
def test_no_view_says_without_loss_of_a_gateway_that_loses_at_every_rate(metric: str) -> None:
    result = found(metric, lossy(0.01), loss_tolerance=0.05)
    assert result.median > 0
    for view in every_view(result):
        assert "without loss" not in view.replace("highest_rate_without_loss", "").replace("highest rate without", "")
        assert "no loss" not in view
    assert "5%" in verdict(result, brief=True).splitlines()[0]
    assert "5%" in table([result])


def test_a_gateway_that_may_lose_nothing_still_forwards_without_loss(golden: Golden) -> None:
    result = found("throughput", lossy(0.0))
    golden(verdict(result).splitlines()[0])
    assert "may lose" not in table([result])


def test_the_loss_series_has_the_rate_within_its_tolerance_and_not_one_without_loss(golden: Golden) -> None:
    result = found("frame-loss", lossy(0.004), loss_tolerance=0.005)
    assert "highest_rate_without_loss" not in result.figures
    assert result.figures["highest_rate_within_tolerance"].median == pytest.approx(200_000)
    golden(one(result).text)
    golden(table([result]))


def test_a_stored_result_whose_rate_was_within_a_tolerance_is_not_called_lossless(golden: Golden) -> None:
    """Folders of earlier versions have one name for both."""
    old = made([97.9], metric="frame-loss", unit="%", figures={"highest_rate_without_loss": 2e5},
               parameters={"loss_tolerance": 0.005})  # fmt: skip
    assert "no loss" not in one(old).text
    golden(one(old).text)


@pytest.mark.parametrize("asked", [{}, {"loss_tolerance": 0.0}, {"loss_tolerance": 0.01, "frame_timeout_seconds": 1.0}])
def test_the_share_of_answers_and_their_time_are_those_that_were_asked_for(
    asked: dict[str, Any], golden: Golden
) -> None:
    result = found("resolution-rate", lossy(0.0, abilities=QUERIES), **asked)
    golden(verdict(result).splitlines()[0])


@pytest.mark.parametrize(("goals", "lossless"), [("rfc2544", True), ("ndr-pdr", False)])
def test_goals_that_let_trials_lose_are_named_with_the_rate(goals: str, *, lossless: bool) -> None:
    result = found("throughput", lossy(0.0), repeat=1, search="mlrsearch", goals=goals, error="5%")
    first = verdict(result).splitlines()[0]
    assert ("without loss" in first) is lossless
    assert ("by MLRsearch (ndr: no frame lost in at least 50 % of 21 trials of 2 s)" in first) is not lossless


def test_a_ranking_says_by_what_criterion_too(golden: Golden) -> None:
    results = [made([values] * 4, parameters={"gateway": gateway, "loss_tolerance": 0.05}) for gateway, values in
               (("a", 200.0), ("b", 100.0))]  # fmt: skip
    golden(answers(results)[0].text)


@pytest.mark.parametrize(
    ("metric", "traffic"),
    [
        ("connection-rate", {"transport": "tcp", "frame_size": 88}),
        ("connection-rate", {"transport": "icmp", "frame_size": 64}),
        ("throughput", {"transport": "tcp", "frame_size": 88}),
        ("throughput", {"transport": "udp", "frame_size": 1518}),
        ("throughput", {"transport": "udp", "frame_size": 84}),
        ("throughput", {"frame_sizes": "64:7,594:4,1518:1", "mean_frame_octets": {"up": {"initiator": 361.83}}}),
        ("throughput", {"frame_sizes": "64:7,594:4,1518:1"}),
        (
            "throughput",
            {
                "frame_sizes": "64:1",
                "down_frame_sizes": "594:1,1518:1",
                "mean_frame_octets": {"up": {"initiator": 64.0}, "down": {"initiator": 1056.0}},
            },
        ),
    ],
)
def test_a_transport_and_sizes_that_are_not_usual_stand_in_the_first_line(
    metric: str, traffic: dict[str, Any], golden: Golden
) -> None:
    result = found(metric, lossy(0.0), {"frame_side": "initiator", **traffic})
    golden(verdict(result, brief=True).splitlines()[0])


@pytest.mark.parametrize("stored", [{"frame_size": 64}, {"frame_octets": {"initiator": 64, "responder": 64}}])
def test_a_mix_whose_mean_no_record_has_is_said_without_one(stored: dict[str, Any]) -> None:
    """Seen: "64 octets on average", which was the size of frames that no mix has."""
    mix = {"frame_sizes": "64:7,594:4,1518:1", "frame_side": "initiator"}
    result = found("throughput", lossy(0.0), {**mix, **stored})
    assert "average" not in verdict(result, brief=True)
    assert bits_of_unit("throughput", result.parameters) is None
    known = {"mean_frame_octets": {"up": {"initiator": 362.0, "responder": 362.0}}}
    assert "(362 octets on average)" in verdict(found("throughput", lossy(0.0), {**mix, **stored, **known}), brief=True)


def test_a_connection_rate_by_tcp_names_no_frame_that_it_does_not_send(golden: Golden) -> None:
    result = found("connection-rate", lossy(0.0), {"transport": "tcp", "frame_size": 88, "frame_side": "initiator"})
    text = verdict(result, brief=True)
    assert "88-octet" not in text
    golden(text)


def test_results_of_two_transports_are_told_apart_by_their_transport() -> None:
    pair = [made([100.0], metric="connection-rate", unit="connections/s",
                 parameters={"transport": transport, "connections": 1000, "frame_size": 88})
            for transport in ("udp", "tcp")]  # fmt: skip
    texts = " ".join(each.text for each in answers(pair))
    assert "UDP frames" in texts
    assert "TCP frames" in texts


def test_every_metric_says_what_its_value_is() -> None:
    """The first line of `enumeration-orders` was "x: enumeration-orders 95.2%"."""
    assert [one.metric for one in procedures.procedures().values() if not one.declared.does] == []


def test_frames_stand_next_to_the_value_and_clauses_behind_them(golden: Golden) -> None:
    result = found(
        "validated-connection-rate", lossy(0.0), {"frame_size": 1518, "transport": "tcp"}, loss_tolerance=0.01
    )
    golden(verdict(result).splitlines()[0])


def test_periods_of_repetitions_that_differ_are_a_range(golden: Golden) -> None:
    result = made(
        [0.0] * 2, metric="stability", unit="%", figures={"judged_periods": [2.0, 11.0], "periods": [11.0, 11.0]}
    )
    golden(one(result).text)
