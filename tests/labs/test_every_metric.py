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

#: A measurement may last so long.
MOST_SECONDS = 12
#: With its lab, the check of the tester's own rate and its last trial.
SECONDS = 120
USED_UP = "give more --most-seconds (0 = no end)"


@pytest.mark.parametrize("metric", sorted(procedures()))
class TestShared:
    """A class for each placement, so that both are tried side by side."""

    def test_a_metric_with_nothing_but_a_gateway_is_answered_or_refused_in_one_line(
        self, metric: str, tmp_path: Path
    ) -> None:
        """As a user would ask."""
        try_out(metric, "shared", tmp_path)


@pytest.mark.parametrize("metric", sorted(procedures()))
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="an isolated device needs a core of its own")
class TestIsolated:
    """The same where the device has a core of its own."""

    def test_a_metric_with_nothing_but_a_gateway_is_answered_or_refused_in_one_line(
        self, metric: str, tmp_path: Path
    ) -> None:
        """As a user would ask."""
        try_out(metric, "isolated", tmp_path)


def try_out(metric: str, placement: str, folder: Path) -> None:
    """Ask for a metric as a user would, and look at what is said."""
    asked = f"--dut nftables-nat44 --profile quick --connections 10000 --placement {placement}".split()
    kept = f"--most-seconds {MOST_SECONDS} --lab-name every-{placement} --results results".split()
    process = subprocess.Popen(
        [sys.executable, "-c", "from natgauge.cli import main; main()", "measure", metric, *asked, *kept],
        cwd=folder,
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
    assert list(folder.glob("**/*traceback*")) == []
    if process.returncode:
        assert shown == ""
        assert len([line for line in said.splitlines() if line.startswith("natgauge: ")]) == 1
    else:
        assert shown
