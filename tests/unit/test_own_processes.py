# SPDX-License-Identifier: Apache-2.0
"""The guard of unit tests: a mistake in one of them ends no process of the machine."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from natgauge.labs.common import processes


def test_a_process_of_others_gets_no_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "ancestry", frozenset)
    with pytest.raises(AssertionError, match=f"to process {os.getppid()}, which it did not start"):
        processes.end_processes([os.getppid()])


def test_an_own_process_is_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        assert processes.end_processes([process.pid]) == (process.pid,)
