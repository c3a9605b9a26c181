# SPDX-License-Identifier: Apache-2.0
"""`natgauge diff` of real results: gateways slowed by rules that only count, and the same gateway twice.

What the intervals are worth is found with simulated results (tests/unit/test_diff.py); here results are real.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.labs.nat44 import with_rules

import natgauge
from natgauge.cli import run

pytestmark = pytest.mark.alone

#: Four repetitions on both sides are the fewest that an interval of 95 % can be made of. A device that works in the
#: sender's context keeps no frame, so no phase waits long for the last ones. The difference is of several times, so a
#: rough search will do.
ASKED: dict[str, Any] = {
    "profile": "quick", "repeat": 4, "connections": 2_000, "connection_rate": 50_000.0, "trial_seconds": 0.1,
    "error": "30%", "confirm": False, "placement": "shared", "lab_name": "e2e-diff", "grace_seconds": 0.1,
}  # fmt: skip
PLAIN = "nftables-nat44"


def diff(folders: list[Path], capsys: pytest.CaptureFixture[str], *options: str) -> tuple[dict[str, Any], int]:
    """What is found of the second result against the first one, and the exit status."""
    capsys.readouterr()
    status = run(["diff", *map(str, folders), "--about", "device", "--json", *options])
    (line,) = json.loads(capsys.readouterr().out)["comparisons"]
    return line, status


@pytest.mark.soak
@pytest.mark.slow("four repetitions of a search for each of two gateways")
def test_a_much_slower_gateway_is_found_with_its_share(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slowed = with_rules(tmp_path, "thousand", *["counter"] * 1000)
    folders = [natgauge.measure("throughput", gateway, results=tmp_path, **ASKED).folder for gateway in (PLAIN, slowed)]
    line, status = diff(folders, capsys)
    assert (line["outcome"], status) == ("cannot tell", 5), line
    assert line["lower"] <= line["value"] <= line["upper"] < 0.7, line
    # The two did not take turns, so a difference counts only where it is larger than what labs and minutes make.
    assert diff(folders, capsys, "--margin", "20%")[1] == 1


#: Pairs of cells of the same gateway, and how many of them may differ at 95 %: four of eight do by chance in 0.04 %.
PAIRS, MOST_WRONG = 8, 3
#: All are cells of one campaign, so that their repetitions take turns and a slow minute falls on all of them.
PLAN = """
name = "same"
gateways = [{devices}]
profile = "quick"
repetitions = 4

[lab]
lab_name = "e2e-diff"
placement = "shared"

[traffic]
connections = 2_000

[[measure]]
metric = "throughput"
connection_rate = 50_000
trial_seconds = 0.1
error = "10%"
"""


@pytest.mark.soak
@pytest.mark.slow("repeats a search 64 times, each time on a new lab")
def test_the_same_gateway_twice_differs_no_more_often_than_the_level_allows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"same-{number}" for number in range(2 * PAIRS)]
    devices = ", ".join(f'"./{with_rules(tmp_path, name).name}"' for name in names)
    (tmp_path / "plan.toml").write_text(PLAN.format(devices=devices))
    assert run(["run", str(tmp_path / "plan.toml"), "--out", str(tmp_path / "out")]) == 0
    results = [tmp_path / "out" / "results" / f"{name}-throughput" for name in names]
    lines = [diff(results[at : at + 2], capsys)[0] for at in range(0, 2 * PAIRS, 2)]
    wrong = [line for line in lines if line["outcome"] != "no difference seen"]
    assert len(wrong) <= MOST_WRONG, wrong
