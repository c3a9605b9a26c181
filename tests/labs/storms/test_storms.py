# SPDX-License-Identifier: Apache-2.0
"""Each storm with a moderate count; `python -m tests.labs.storms NAME --full` uses the full count."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.labs.moments import Moments
from tests.labs.storms import STORMS
from tests.labs.storms.storm import Storm

pytestmark = [
    pytest.mark.soak,
    # A storm has a /run of its own, so other natgauges do not know which settings of the machine it relies on.
    pytest.mark.alone,
    pytest.mark.slow("starts natgauge many times and disturbs it"),
    pytest.mark.timeout(1800, func_only=True),
]
ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("storm", STORMS, ids=[storm.name for storm in STORMS])
def test_what_must_hold_in_a_storm_holds(storm: Storm, moments: Moments) -> None:
    if why := storm.missing():
        pytest.skip(why)
    command = [sys.executable, "-m", "tests.labs.storms", storm.name, f"--seed={moments.randrange(2**32)}"]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    sys.stdout.write(done.stdout)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
