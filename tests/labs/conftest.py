# SPDX-License-Identifier: Apache-2.0
"""What all tests on real labs share: how fast the tester itself is plays no part in most of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.labs.moments import Moments

from natgauge.host.machine import idlest_core
from natgauge.labs.netns import lab as netns_lab
from natgauge.labs.netns.lab import NetnsLab
from natgauge.procedures.kit import rate_search
from natgauge.tester.own_rates import HighestRates
from natgauge.trial import bench, forwarding

HERE = Path(__file__).parent
#: Modules that take longest, longest first. A long module at the end would keep one process busy while the others have
#: nothing to do. Those that use the far machine wait for each other, so they are far apart: test_audit uses it late.
LONGEST = (
    "test_lab_ssh", "test_known_answers", "test_tester", "test_every_metric", "test_tcp", "test_chains",
    "test_gateways", "test_bench", "test_gateways_measured", "test_measure", "test_python_api", "test_lab_netns",
    "test_border_relay", "test_spread", "test_lab_ssh_pair", "test_receiver_time", "test_resolution", "test_far_side",
    "test_frame_sizes", "test_accepted_ports", "test_compare", "test_explain", "test_external", "test_reports",
    "test_campaign", "test_lost_controls", "test_worker", "test_metrics",
)  # fmt: skip

#: Beyond what a device of these tests does, and fast enough to be offered.
RATES = HighestRates(2e6, 2e6)


#: Of the first trial of a search, in seconds: every device here is fast enough for it.
FIRST_TRIAL_SECONDS = 0.2
#: Of the handful of frames that shows whether a device forwards, in frames/s: the sender keeps its core until the last.
HANDFUL_RATE = 800.0
#: To find the core that idles most: five ticks of its clock.
WATCH_SECONDS = 0.05
#: For the last frames of a phase: nothing on these hosts keeps a frame for as long.
GRACE_SECONDS = 0.1


@pytest.fixture(autouse=True)
def searches_begin_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search for a rate of connections begins with a trial of two seconds, for a device may be slow.

    The name is replaced in the module that reads it: a copy would stay as it was.
    """
    monkeypatch.setattr(rate_search, "FIRST_TRIAL_SECONDS", FIRST_TRIAL_SECONDS)


@pytest.fixture(autouse=True, scope="session")
def the_idlest_core_is_found_soon() -> Iterator[None]:
    """A lab that shares a core watches all of them first; what other tests do next changes which of them idles."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(netns_lab, "idlest_core", partial(idlest_core, seconds=WATCH_SECONDS))
        yield


@pytest.fixture(autouse=True)
def receivers_close_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each phase of a trial ends with a wait for the last frames; devices that hold frames for longer say so."""
    monkeypatch.setattr(NetnsLab, "grace_seconds", GRACE_SECONDS)


@pytest.fixture(autouse=True, scope="module")
def devices_are_seen_to_forward_soon() -> Iterator[None]:
    """A device of a user may look for its neighbours, and gets its first frames slowly; here each knows them soon.

    Unit tests may follow in this process; their devices know the handful by its rate.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forwarding, "_RATE", HANDFUL_RATE)
        yield


@pytest.fixture(autouse=True, scope="session")
def no_search_for_the_testers_own_rates() -> Iterator[None]:
    """They are measured by tests that start the command line, in processes of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench, "highest_rates", lambda *_: RATES)
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put labs before other tests, and the longest modules first: the short modules at the end fill the gaps.

    pytest-xdist keeps this order with --dist loadscope --no-loadscope-reorder.
    """
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: (HERE not in item.path.parents, places.get(item.path.stem, len(places))))


@pytest.fixture
def moments(request: pytest.FixtureRequest) -> Moments:
    """When something is killed; a test that fails shows the seed."""
    found = Moments.of_this_run()
    request.node.add_report_section("setup", "random moments", f"the same moments again: {found.told}")
    return found
