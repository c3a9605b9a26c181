# SPDX-License-Identifier: Apache-2.0
"""The redirect floor on a real cable: its frames arrive, and the tester's own afterwards as before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from natgauge.tester.cable import CableLab, FrameKind
from natgauge.tester.own_rates import FloorTester, cable_name
from natgauge.words import Quantity

pytestmark = pytest.mark.alone
SMALL, LARGE = FrameKind("ipv4", 64, delays=False), FrameKind("ipv6", 1518, delays=True)
SEGMENT = FrameKind("ipv4", 88, delays=False, transport="tcp")
#: Each direction and each kind of frames once; `make soak` has the other pairs.
PAIRS = [(SMALL, "up"), (LARGE, "down"), (SEGMENT, "both")]
OTHERS = [(LARGE, "up"), (SMALL, "down"), (SMALL, "both"), (LARGE, "both")]


@pytest.fixture(scope="module")
def cable() -> Iterator[CableLab]:
    """One for all tests."""
    with CableLab(cable_name()) as made:
        yield made


@pytest.mark.parametrize(
    ("kind", "quantity"), [*PAIRS, *(pytest.param(*pair, marks=pytest.mark.soak) for pair in OTHERS)]
)
def test_no_frame_of_either_is_lost_and_the_floor_is_faster(
    kind: FrameKind, quantity: Quantity, cable: CableLab
) -> None:
    # It breaks when a frame is lost.
    share = FloorTester(cable, 0, connections=5000, quantity=quantity).share(kind, rounds=3)
    assert 0 < share.low <= share.share <= share.high < 1
    assert share.floor_frames_per_second > 100_000
