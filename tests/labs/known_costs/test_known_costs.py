# SPDX-License-Identifier: Apache-2.0
"""Comparison finds how long a device is busy, where that is known. `python -m tests.labs.known_costs` asks for more."""

from __future__ import annotations

import pytest
from tests.labs.known_costs.__main__ import found_ns

from natgauge.host.cpus import idlest_core, usable_cpus

#: In ns; long beside the noise of some seconds.
WANTED = 500


@pytest.mark.alone
@pytest.mark.slow
def test_the_time_that_a_program_takes_is_found() -> None:
    ((known, found, low, high),) = found_ns(8.0, (WANTED,), idlest_core(usable_cpus()))
    assert low <= found <= high
    assert found == pytest.approx(known, rel=0.1)
