# SPDX-License-Identifier: Apache-2.0
"""Signals that ask natgauge to end: when they do so, and what they leave to do."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from natgauge.errors import EndedBySignal

#: Ctrl-C, a request to end, and a terminal that was closed.
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_blocks: Final[list[object]] = []


@contextmanager
def uninterrupted() -> Iterator[None]:
    """What a first signal raises within the block, or within a function with this decorator, is raised at its end.

    For what undoes, which nobody would try again. A second signal does what its handler does: that of the command line
    warns, and a third one ends the process. An error of the block is a note on what the signal raises. Signals reach
    the main thread alone, so in others nothing happens; nor does it in a block within another one, which ends later.
    """
    if threading.current_thread() is not threading.main_thread() or _blocks:
        yield
        return
    with _noted() as raised:
        _blocks.append(raised)
        try:
            yield
        except Exception as error:
            if not raised:
                raise
            raised[0].add_note(str(error))
        finally:
            _blocks.clear()
    if raised:
        raise raised[0]


@contextmanager
def _noted() -> Iterator[list[BaseException]]:
    """Put what the handler of the first signal raises into a list, in place of raising it."""
    raised: list[BaseException] = []
    # Neither those that are ignored, nor those that end the process.
    handlers = {number: handler for number in SIGNALS if callable(handler := signal.getsignal(number))}

    def note(number: int, frame: FrameType | None) -> None:
        try:
            handlers[signal.Signals(number)](number, frame)
        except BaseException as error:
            if raised:
                raise
            raised.append(error)

    try:
        for number in handlers:
            signal.signal(number, note)
        yield raised
    finally:
        for number, handler in handlers.items():
            # The first signal may have changed what the next one does.
            if signal.getsignal(number) is note:
                signal.signal(number, handler)


@contextmanager
def leaves(text: str) -> Iterator[None]:
    """A signal that ends the block says this of what is left to do, in place of that everything is undone."""
    try:
        yield
    except EndedBySignal as error:
        error.add_note(text)
        raise
