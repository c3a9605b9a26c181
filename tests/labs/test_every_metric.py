# SPDX-License-Identifier: Apache-2.0
"""Every metric with nothing but a gateway: an answer or one line, never a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from natgauge.procedures import procedures

pytestmark = pytest.mark.slow

#: What a measurement of twenty seconds may take with its lab, the check of the tester's own rate and its last trial.
SECONDS = 150
USED_UP = "give more --most-seconds (0 = no end)"


@pytest.mark.parametrize("placement", ["shared", "isolated"])
@pytest.mark.parametrize("metric", sorted(procedures()))
def test_a_metric_with_nothing_but_a_gateway_is_answered_or_refused_in_one_line(
    metric: str, placement: str, tmp_path: Path
) -> None:
    if placement == "isolated" and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("an isolated device needs a core of its own")
    asked = [
        "--dut",
        "nftables-nat44",
        "--profile",
        "quick",
        "--connections",
        "2000",
        "--placement",
        placement,
        "--most-seconds",
        "20",
    ]
    kept = ["--lab-name", "every", "--results", str(tmp_path / "results")]
    process = subprocess.Popen(
        [sys.executable, "-c", "from natgauge.cli import main; main()", "measure", metric, *asked, *kept],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        shown, said = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        # It undoes what it made.
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS)
        raise
    assert "Traceback" not in said
    assert "fault of natgauge" not in said
    # A host that is never quiet may use up the time before anything can be said.
    foreseen = {0, 2, 4} if said.rstrip().endswith(USED_UP) else {0, 2}
    assert process.returncode in foreseen, said
    assert list(tmp_path.glob("**/*traceback*")) == []
    if process.returncode:
        assert shown == ""
        assert len([line for line in said.splitlines() if line.startswith("natgauge: ")]) == 1
    else:
        assert shown
