# SPDX-License-Identifier: Apache-2.0
"""`natgauge diff` of real campaigns: the same gateway twice, and gateways slowed by rules that only count.

All are cells of one campaign, so that their repetitions take turns and a slow minute falls on all of them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.labs.test_compare import recipe

from natgauge.cli import run

pytestmark = [pytest.mark.slow, pytest.mark.alone]

NAME = "e2e-diff"
#: Four repetitions on both sides are the fewest that an interval of 95 % can be made of.
PLAN = f"""
name = "slowed"
devices = ["nftables-nat44", "./same.toml", "./forty.toml", "./thousand.toml"]
profile = "quick"
repetitions = 4

[lab]
lab_name = "{NAME}"
placement = "shared"

[traffic]
connections = 5_000

[[measure]]
metric = "throughput"
connection_rate = 50_000
trial_seconds = 0.2
error = "10%"
"""


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the results."""
    folder = tmp_path_factory.mktemp("slowed")
    for name, rules in (("same", 0), ("forty", 40), ("thousand", 1000)):
        recipe(folder, name, *["counter"] * rules)
    (folder / "plan.toml").write_text(PLAN)
    assert run(["run", str(folder / "plan.toml"), "--out", str(folder / "out")]) == 0
    return folder / "out" / "results"


def diff(campaign: Path, capsys: pytest.CaptureFixture[str], second: str, *options: str) -> tuple[dict[str, Any], int]:
    """What is found of a gateway against plain nftables, and the exit status."""
    folders = [str(campaign / f"{name}-throughput") for name in ("nftables-nat44", second)]
    capsys.readouterr()
    status = run(["diff", *folders, "--about", "device", "--json", *options])
    (line,) = json.loads(capsys.readouterr().out)["comparisons"]
    return line, status


def test_the_same_gateway_twice_is_no_difference(campaign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Of twenty such lines one would be wrong by chance; beyond this margin none is.
    line, status = diff(campaign, capsys, "same", "--margin", "20%")
    assert (line["outcome"], status) == ("no difference seen", 0), line
    assert line["lower"] < 1 < line["upper"] or 0.8 < line["value"] < 1.25, line


def test_a_much_slower_gateway_is_found_with_its_share(campaign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line, status = diff(campaign, capsys, "thousand")
    assert (line["outcome"], status) == ("worse", 1), line
    assert line["lower"] <= line["value"] <= line["upper"] < 0.7, line


def test_a_somewhat_slower_gateway_is_found_or_the_noise_is_named(
    campaign: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line, status = diff(campaign, capsys, "forty")
    if status == 1:
        assert line["outcome"] == "worse", line
        assert line["upper"] < 1, line
    else:
        assert (line["outcome"], status) == ("no difference seen", 0), line
        # They cost a gateway 29 % more time for each frame (docs/reports.md), which with
        # the tester's own work is a tenth of the rate at least: noise that hides it is named with its size.
        assert line["lower"] < 0.9, line
        assert "there may be a fall of up to" in line["why"], line
