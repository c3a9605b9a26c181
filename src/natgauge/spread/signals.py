# SPDX-License-Identifier: Apache-2.0
"""Coroutines that a signal ends, as it ends the rest of natgauge."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Coroutine
from typing import Any, Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end; a signal cancels it, so that it undoes what it made.

    asyncio logs, and then forgets, an exception that a signal's handler raises while a callback runs. So the handler
    is called by the event loop, and what it raises is raised here.
    """
    if threading.current_thread() is not threading.main_thread():
        asyncio.run(main)
        return
    handlers: dict[int, Any] = {number: signal.getsignal(number) for number in _SIGNALS}
    raised = asyncio.run(_watched(main, handlers))
    if raised is not None:
        raise raised


async def _watched(main: Coroutine[Any, Any, None], handlers: dict[int, Any]) -> BaseException | None:
    """Run it; return what the handler of a signal raised."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(main)
    raised: list[BaseException] = []

    def end(number: int) -> None:
        before = {each: signal.getsignal(each) for each in handlers}
        try:
            handlers[number](number, None)
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is raised when all is undone
            raised.append(error)
            task.cancel()
        # The first signal may have changed what the next one does.
        after = {each: signal.getsignal(each) for each in handlers}
        handlers.update({each: now for each, now in after.items() if now is not before[each]})

    for number, handler in handlers.items():
        if callable(handler):
            loop.add_signal_handler(number, end, number)
    try:
        await task
    except BaseException:
        if not raised:
            raise
    finally:
        for number, handler in handlers.items():
            # The loop leaves the system's own handler.
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
    return raised[0] if raised else None
