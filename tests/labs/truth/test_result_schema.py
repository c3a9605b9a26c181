# SPDX-License-Identifier: Apache-2.0
"""Every line the engine really prints keeps the published schema."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.labs.truth.test_tester import trial_request

from natgauge.host import programs
from natgauge.labs.netns.lab import NetnsLab

SCHEMA = json.loads((Path(__file__).parents[3] / "trial" / "result-1.schema.json").read_text())


@pytest.mark.parametrize(
    "choices",
    [
        {"phase2": False, "record_delays": True},
        {"phase2": True, "record_delays": True, "record_variation": True, "record_loss_times": True},
        {"phase2": False, "record_receiver_time": True},
        {"phase2": True, "phase1": None, "stateless": True},
    ],
    ids=["phase 1 alone", "everything recorded", "receivers timed", "stateless"],
)
def test_every_line_keeps_the_published_schema(choices: dict[str, Any]) -> None:
    if os.geteuid():
        pytest.skip("root is needed")
    with NetnsLab("truth-schema", initiator_family="ipv4", responder_family="ipv4") as lab:
        asked = trial_request(lab, translated=False, **choices)
        command = [str(programs.find("natgauge-engine"))]
        done = subprocess.run(command, input=asked.to_json(), capture_output=True, check=True, text=True, timeout=60)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["event"] for line in lines if line["event"] != "progress"] == ["result"]
    for line in lines:
        assert [error.message for error in Draft202012Validator(SCHEMA).iter_errors(line)] == []
