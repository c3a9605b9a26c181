# SPDX-License-Identifier: Apache-2.0
"""What all tests on real labs share: how fast the tester itself is plays no part in most of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from natgauge.bench import bench
from natgauge.tester.highest import HighestRates

#: Beyond what a device of these tests does, and fast enough to be offered.
RATES = HighestRates(2e6, 2e6)


@pytest.fixture(autouse=True, scope="session")
def no_search_for_the_testers_own_rates() -> Iterator[None]:
    """They are measured by tests that start the command line, in processes of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench, "highest_rates", lambda *_: RATES)
        yield
