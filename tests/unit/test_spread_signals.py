# SPDX-License-Identifier: Apache-2.0
"""A signal ends a scheduler or worker whatever its event loop does at that moment."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from types import FrameType

import pytest

from natgauge.errors import EndedBySignal
from natgauge.spread import cluster


def second(_number: int, _frame: FrameType | None) -> None:
    """Handler of the signals that follow the first."""


def first(number: int, _frame: FrameType | None) -> None:
    """Handler of the first signal, as the command line has it."""
    signal.signal(signal.SIGTERM, second)
    raise EndedBySignal(number)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = signal.signal(signal.SIGTERM, first)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("times", [1, 2])
def test_a_signal_that_arrives_in_a_callback_ends_what_runs_after_its_undoing(times: int) -> None:
    undone = []

    async def main() -> None:
        asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGTERM)
        try:
            await asyncio.sleep(30)
        finally:
            for _ in range(times - 1):
                os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(0.01)
            undone.append("all")

    with pytest.raises(EndedBySignal):
        cluster.run(main())
    assert undone == ["all"]
    assert signal.getsignal(signal.SIGTERM) is second
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_without_a_signal_its_handlers_are_those_of_before_and_errors_are_raised() -> None:
    async def main() -> None:
        raise OSError("refused")

    with pytest.raises(OSError, match="refused"):
        cluster.run(main())
    assert signal.getsignal(signal.SIGTERM) is first
