# SPDX-License-Identifier: Apache-2.0
"""The folder of a test says which privilege it needs: unit none, frames CAP_BPF, labs root."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

HERE = Path(__file__).parent

# How long an example takes says something of the machine, never of the code: timing decides no test.
settings.register_profile("natgauge", deadline=None)
settings.load_profile("natgauge")
PRIVILEGED = {"frames": "loads BPF programs", "labs": "makes network namespaces"}


def pytest_configure() -> None:
    """A shell starts what it sends to the background deaf to Ctrl-C; tests that press it must be heard all the same."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs root where there is none; CI runs as root, so nothing is skipped there."""
    if os.geteuid() == 0:
        return
    for item in items:
        folder = item.path.relative_to(HERE).parts[0]
        if folder in PRIVILEGED:
            item.add_marker(pytest.mark.skip(reason=f"tests/{folder} {PRIVILEGED[folder]}: run `sudo make test`"))


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give tests of whole runs one more try: a host may stand still for longer than a lab can bear.

    Not those of what figures are worth (`truth`), where one in ten would become one in a hundred; nor one that hung:
    its time is used up.
    """
    folders = item.path.relative_to(HERE).parts
    if folders[0] == "labs" and folders[1] != "truth" and not item.config.option.usepdb:
        item.add_marker(pytest.mark.flaky(reruns=1, rerun_except="from pytest-timeout"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell why tests were run once more: a failure that comes seldom is one all the same."""
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.section(f"failed at first: {report.nodeid}")
        terminalreporter.write_line(report.longreprtext)
