# SPDX-License-Identifier: Apache-2.0
"""How long the receivers run, by the kernel, and that a measurement on a device's own cores tells it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.labs.known_rates.devices import policing
from tests.labs.rough import settings_of
from tests.labs.truth.test_tester import streams_of, trial_request

import natgauge
from natgauge.agreement import process
from natgauge.campaigns.campaign import RunOrder, run
from natgauge.figure_text import in_percent, number
from natgauge.labs.netns.lab import NetnsLab
from natgauge.stored.find_results import read_summary

PLAN = """
name = "timed"
gateways = ["linux-ipv4"]
profile = "quick"

[lab]
lab_name = "truth-campaign"
placement = "isolated"

[traffic]
connections = 1000

[[measure]]
metric = "throughput"
error = "50%"
trial_seconds = 0.2
"""


def test_every_frame_that_arrives_is_one_run_of_a_receiver_and_takes_longer_than_nothing() -> None:
    with NetnsLab("truth-timed", initiator_family="ipv4", responder_family="ipv4", placement="isolated") as lab:
        asked = trial_request(lab, phase2=True, translated=False, record_receiver_time=True)
        result = process.run(asked)
        untimed = process.run(asked.model_copy(update={"record_receiver_time": False}))
    arrived = sum(stream.received_frames + stream.duplicates for stream in streams_of(result))
    time = result.receiver_time
    assert time is not None
    assert 0 < arrived <= time.runs <= arrived + result.ports.initiator.foreign + result.ports.responder.foreign + 10
    assert time.empty_runs > 0
    assert time.runs_ns / time.runs > time.empty_runs_ns / time.empty_runs
    assert untimed.receiver_time is None


@pytest.mark.slow("searches up to a limit, on cores that other tests use")
def test_a_rate_on_the_devices_own_cores_says_what_the_tester_took_of_them(tmp_path: Path) -> None:
    # The search ends soon at a limit that it reaches on a busy host, too.
    gateway = policing(tmp_path, 50_000)
    choices = {**settings_of("throughput"), "placement": "isolated", "connections": 500, "grace_seconds": 0.1}
    choices["lab_name"] = "truth-receiver"
    document = natgauge.measure("throughput", gateway, directions="up", results=tmp_path, **choices).document()
    taken = document["parameters"]["place"]["receiver_ns"]
    assert taken > 0
    assert document["limited_by"] == "device"
    share = taken * 1e-9 * document["figures"]["frames_per_second_total"]["median"]
    share /= document["parameters"]["place"]["device_cores"]
    told = [doubt["text"] for doubt in document["doubts"] if doubt["word"] == "tester on device cores"]
    assert len(told) == (share >= 0.01)
    assert all(f"{number(taken)} ns of " in text and f"{in_percent(share)} too low" in text for text in told)


@pytest.mark.soak  # unit/test_own_part.py has campaigns of simulated devices, and the test above a real receiver
def test_a_campaign_says_what_the_tester_took_as_a_measurement_does(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    folder, _ = run(RunOrder(plan=plan, out=tmp_path / "out"))
    (found,) = map(read_summary, (folder / "results").iterdir())
    taken = found.number("receiver_ns")
    assert taken is not None
    assert taken > 0
    told = [doubt.text for doubt in found.doubts if doubt.word == "tester on device cores"]
    assert all(f"{number(taken)} ns of " in text for text in told)
    share = taken * 1e-9 * found.figures["frames_per_second_total"].median / found.device_cores
    assert len(told) == (found.limited_by == "device" and share >= 0.01)
