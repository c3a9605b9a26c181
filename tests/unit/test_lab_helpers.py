# SPDX-License-Identifier: Apache-2.0
"""Helpers of the lab tests: a machine that is waited for, and what programs beside them conclude."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.labs import far
from tests.labs.invalid_share import Found, cause_of, holes_in

LABS = Path(far.__file__).parent
MODULE = """
import time
import pytest

pytestmark = pytest.mark.timeout(0.2, func_only={func_only})

@pytest.fixture(scope="module")
def machine():
    time.sleep(0.5)

def test_with_it(machine):
    pass
"""


def test_waiting_for_a_machine_that_another_process_keeps_has_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(far, "MOST_WAITING", 0.1)
    with (tmp_path / "natgauge-far-machine.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with (
            pytest.raises(TimeoutError, match=r"natgauge-far-machine\.lock: another process"),
            far.far_machine("never", tmp_path),
        ):
            pass


def test_every_module_that_uses_the_machine_waits_outside_of_the_time_out_of_its_tests() -> None:
    users = [path for path in LABS.rglob("test_*.py") if "with far_machine(" in path.read_text()]
    assert len(users) >= 2
    marked = ("\n    TIMEOUT,\n", "\n@TIMEOUT\n")
    assert [path.name for path in users if not any(mark in path.read_text() for mark in marked)] == []


@pytest.mark.parametrize(("func_only", "status"), [(True, 0), (False, 1)])
def test_with_that_mark_a_fixture_may_take_longer_than_the_time_out(
    tmp_path: Path, status: int, *, func_only: bool
) -> None:
    (tmp_path / "test_waiting.py").write_text(MODULE.format(func_only=func_only))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "pytest_timeout", "-c", "/dev/null", "--rootdir", tmp_path, tmp_path],
        cwd=tmp_path,
        # No other plugin than that of the mark.
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == status, done.stdout
    assert far.TIMEOUT.kwargs == {"func_only": True}


@pytest.mark.parametrize(
    ("loads", "holes"),
    [
        ([100.0, 90.0, 80.0], ()),
        ([100.0, 80.0], (90.0,)),
        ([90.0, 70.0], (100.0, 80.0)),
        ([100.0, 90.0, 80.0, 70.0, 60.0, 50.0, 40.0, 30.0, 20.0, 10.0, 2.5], (5.0,)),
        ([], ()),
    ],
)
def test_a_hole_is_a_load_between_others_without_a_figure(loads: list[float], holes: tuple[float, ...]) -> None:
    assert holes_in(loads) == holes


@pytest.mark.parametrize(
    ("verdicts", "holes", "good"),
    [
        ({"PASS": 18, "INVALID": 2}, (), True),
        ({"PASS": 8, "INVALID": 2}, (), False),
        ({"PASS": 8}, (90.0,), False),
        ({}, (), False),
    ],
)
def test_few_invalid_trials_and_no_hole_are_good(
    verdicts: dict[str, int],
    holes: tuple[float, ...],
    good: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    found = Found("throughput of nat", verdicts, {}, holes, "40,000 frames/s")
    assert found.good is good
    assert next(iter(found.lines())).startswith("  " if good else "! ")


def test_causes_are_told_without_their_figures() -> None:
    one, other = (
        {"limited_by": "host", "reason": f"phase 2: {lost} of 40000 frames lost, CPU 1 stalled for {lost}.5 ms"}
        for lost in (3, 17)
    )
    assert cause_of(one) == cause_of(other) == "host: phase N: N of N frames lost, CPU N stalled for N ms"
