# SPDX-License-Identifier: Apache-2.0
"""The folder of a test says which privilege it needs: unit none, frames CAP_BPF, labs root."""

from __future__ import annotations

import functools
import gc
import json
import os
import signal
import sys
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import settings
from tests.unit import golden

HERE = Path(__file__).parent
#: Names the file into which the figures of the run are written, for tools/run_tests.py.
FIGURES = "NATGAUGE_TEST_FIGURES"

# How long an example takes says something of the machine, never of the code: timing decides no test.
settings.register_profile("natgauge", deadline=None)
settings.load_profile("natgauge")
PRIVILEGED = {"frames": "loads BPF programs", "labs": "makes network namespaces"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(golden.WRITE, action="store_true", help="write the texts of these tests into tests/golden")


def pytest_configure() -> None:
    """Make tests independent of the shell that starts them.

    A shell starts background processes deaf to Ctrl-C; tests that press it must be heard all the same.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # The width of the terminal that starts the tests decides no test.
    os.environ["COLUMNS"] = "100"
    # Users have outputs that are written line by line or later; a failed one shows a second time as Python ends.
    os.environ.pop("PYTHONUNBUFFERED", None)
    # To compile all tests takes longer than to collect them, and tests start natgauge hundreds of times.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


@functools.cache
def _folders(path: Path) -> tuple[str, ...]:
    return path.relative_to(HERE).parts


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without looking for garbage: all that is made meanwhile stays until the end of the run.

    Neither then nor later does a look for cycles visit these objects, which took half of the time of the collection.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        # Looks at each 700 new objects took a fourteenth of the time of the unit tests.
        gc.set_threshold(50_000, 20, 100)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write golden files where that was the purpose of the run."""
    golden.end(session.config)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what needs root where there is none; CI runs as root, so nothing is skipped there."""
    golden.begin(config, items)
    if os.geteuid() == 0:
        return
    for item in items:
        folder = item.path.relative_to(HERE).parts[0]
        if folder in PRIVILEGED:
            item.add_marker(pytest.mark.skip(reason=f"tests/{folder} {PRIVILEGED[folder]}: run `sudo make test`"))


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark unit tests as calm, and give tests of labs one more try.

    A host may stand still for longer than a lab can bear. The tests of what figures are worth (`truth`) have one try,
    because two would make one failure in a hundred out of one in ten. A test that hung has used up its time.
    """
    folders = _folders(item.path)
    if folders[0] != "labs" and item.get_closest_marker("alone"):
        raise pytest.UsageError(f"{item.nodeid}: marked alone; tools/run_tests.py runs such tests of tests/labs only")
    if folders[0] == "unit":
        item.add_marker(pytest.mark.calm)
    if folders[0] == "labs" and folders[1] != "truth" and not item.config.option.usepdb:
        item.add_marker(pytest.mark.flaky(reruns=1, rerun_except="from pytest-timeout"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show why lab tests were tried again, and how many: a failure that is rare is a failure all the same."""
    retries = terminalreporter.stats.get("rerun", [])
    for report in retries:
        terminalreporter.section(f"failed at first: {report.nodeid}")
        terminalreporter.write_line(report.longreprtext)
    terminalreporter.write_line(f"retries of lab tests: {len(retries)}")
    if file := os.environ.get(FIGURES):
        Path(file).write_text(json.dumps(_figures(terminalreporter.stats)))


def _figures(stats: Mapping[str, Sequence[pytest.TestReport]]) -> dict[str, int | list[str]]:
    """Count the outcomes of a run; a test that breaks while it is set up or cleaned up has failed."""
    failed = [*stats.get("failed", []), *stats.get("error", [])]
    return {
        "passed": len(stats.get("passed", [])),
        "failed": len(failed),
        "skipped": len(stats.get("skipped", [])),
        "retries": [report.nodeid for report in stats.get("rerun", [])],
        "failures": [report.nodeid for report in failed],
    }
