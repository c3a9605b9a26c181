# SPDX-License-Identifier: Apache-2.0
"""What a passing trial had to do belongs to the figure: no view says "without loss" of a search that tolerates loss."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.simulated_lab import measure
from tests.unit.conftest import Ran, Reported
from tests.unit.golden import Golden
from tests.unit.made_results import kept, made
from tests.unit.simulated import Gateway

from natgauge import Result

measured = partial(measure, connections=10_000, seed=1)


def lossy(share: float) -> Gateway:
    return Gateway(establishes=5e5, forwards=2e5, loses_share=share)


def stored(metric: str, traffic: dict[str, Any]) -> Result:
    """What this traffic was measured with."""
    unit = "connections/s" if "connection" in metric else "frames/s"
    return made(
        [2e5] * 3, metric=metric, unit=unit, parameters={"directions": "both", "frame_side": "initiator", **traffic}
    )


def first_of(result: Result, reported: Reported) -> str:
    """The first sentence of a report."""
    sentence: str = reported(result)["answers"][0]["text"]
    return sentence


@pytest.mark.parametrize("metric", ["throughput", "connection-rate", "validated-connection-rate", "frame-loss"])
def test_no_view_says_without_loss_of_a_gateway_that_loses_at_every_rate(metric: str, tmp_path: Path, ran: Ran) -> None:
    found = measured(metric, lossy(0.01), loss_tolerance=0.05)
    assert found.median > 0
    report = ["report", str(kept(tmp_path, found.result))]
    forms = [["--format", form] for form in ("text", "csv", "markdown", "latex", "json")]
    table, *others = (ran([*report, *words]).out for words in (["-v"], *forms))
    for view in (found.said, table, *others):
        assert "without loss" not in view.replace("highest_rate_without_loss", "").replace("highest rate without", "")
        assert "no loss" not in view
    assert "5%" in found.answer
    assert re.search(r"a passing trial may lose +5%", table)


def test_a_gateway_that_may_lose_nothing_still_forwards_without_loss(golden: Golden) -> None:
    found = measured("throughput", lossy(0.0))
    golden(found.answer)
    assert "may lose" not in found.said


def test_the_loss_series_has_the_rate_within_its_tolerance_and_not_one_without_loss(golden: Golden) -> None:
    found = measured("frame-loss", lossy(0.004), loss_tolerance=0.005)
    assert "highest_rate_without_loss" not in found.document["figures"]
    assert found.figure("highest_rate_within_tolerance") == pytest.approx(200_000)
    golden(found.answer)
    golden([line for line in found.said.splitlines() if "rate" in line or "may lose" in line or "loss at" in line])


def test_a_stored_result_whose_rate_was_within_a_tolerance_is_not_called_lossless(
    golden: Golden, reported: Reported
) -> None:
    """Folders of earlier versions have one name for both."""
    old = made([97.9], metric="frame-loss", unit="%", figures={"highest_rate_without_loss": 2e5},
               parameters={"loss_tolerance": 0.005})  # fmt: skip
    said = first_of(old, reported)
    assert "no loss" not in said
    golden(said)


@pytest.mark.parametrize("asked", [{}, {"loss_tolerance": 0.0}, {"loss_tolerance": 0.01, "frame_timeout_seconds": 1.0}])
def test_the_share_of_answers_and_their_time_are_those_that_were_asked_for(
    asked: dict[str, Any], golden: Golden
) -> None:
    golden(measured("resolution-rate", lossy(0.0), **asked).answer)


@pytest.mark.parametrize(("goals", "lossless"), [("rfc2544", True), ("ndr-pdr", False)])
def test_goals_that_let_trials_lose_are_named_with_the_rate(goals: str, *, lossless: bool) -> None:
    said = measured("throughput", lossy(0.0), search="mlrsearch", goals=goals, error="5%").answer
    assert ("without loss" in said) is lossless
    assert ("by MLRsearch (ndr: no frame lost in at least 50 % of 21 trials of 2 s)" in said) is not lossless


def test_a_ranking_says_by_what_criterion_too(golden: Golden, reported: Reported) -> None:
    results = [made([values] * 4, parameters={"gateway": gateway, "loss_tolerance": 0.05}) for gateway, values in
               (("a", 200.0), ("b", 100.0))]  # fmt: skip
    golden(reported(*results)["answers"][0]["text"])


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
    metric: str, traffic: dict[str, Any], golden: Golden, reported: Reported
) -> None:
    golden(first_of(stored(metric, traffic), reported))


@pytest.mark.parametrize("sizes", [{"frame_size": 64}, {"frame_octets": {"initiator": 64, "responder": 64}}])
def test_a_mix_whose_mean_no_record_has_is_said_without_one(sizes: dict[str, Any], reported: Reported) -> None:
    """Seen: "64 octets on average", which was the size of frames that no mix has."""
    mix = {"frame_sizes": "64:7,594:4,1518:1", **sizes}
    said = first_of(stored("throughput", mix), reported)
    assert "in a mix of frame sizes: " in said
    assert "bit/s" not in said
    known = {"mean_frame_octets": {"up": {"initiator": 362.0, "responder": 362.0}}}
    assert "(362 octets on average)" in first_of(stored("throughput", {**mix, **known}), reported)


def test_a_connection_rate_by_tcp_names_no_frame_that_it_does_not_send(tmp_path: Path, ran: Ran) -> None:
    traffic = {"transport": "tcp", "frame_size": 88}
    text = ran(["report", str(kept(tmp_path, stored("connection-rate", traffic))), "-v"]).out
    assert "88-octet" not in text
    assert "by TCP (segments of 78 and 70 octets)" in text
    said = measured("connection-rate", lossy(0.0), transport="tcp", order="permutation").said
    assert "segments of 78 (SYN), 78 (SYN-ACK), 70 (ACK) octets with FCS on the sender's side" in said
    assert "88-octet" not in said


def test_results_of_two_transports_are_told_apart_by_their_transport(reported: Reported) -> None:
    pair = [stored("connection-rate", {"transport": transport, "frame_size": 88}) for transport in ("udp", "tcp")]
    texts = " ".join(each["text"] for each in reported(*pair)["answers"])
    assert "UDP frames" in texts
    assert "TCP frames" in texts


def test_frames_stand_next_to_the_value_and_clauses_behind_them(golden: Golden, reported: Reported) -> None:
    traffic = {"frame_size": 1518, "transport": "tcp", "loss_tolerance": 0.01}
    golden(first_of(stored("validated-connection-rate", traffic), reported))


def test_periods_of_repetitions_that_differ_are_a_range(golden: Golden, reported: Reported) -> None:
    result = made(
        [0.0] * 2, metric="stability", unit="%", figures={"judged_periods": [2.0, 11.0], "periods": [11.0, 11.0]}
    )
    golden(first_of(result, reported))
