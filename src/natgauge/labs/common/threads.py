# SPDX-License-Identifier: Apache-2.0
"""Functions called in a thread of their own, which may enter a namespace; the calling thread stays where it is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, TypeVar

from natgauge.errors import HostError

_INTERRUPTED_SECONDS: Final = 5.0
_T = TypeVar("_T")


class NoThreadError(HostError):
    """No further thread can be started."""


def in_thread(function: Callable[[], _T], name: str = "natgauge") -> _T:
    """Call `function` in a thread of its own and return what it returns, or raise what it raises."""
    outcome: Future[_T] = Future()

    def work() -> None:
        try:
            outcome.set_result(function())
        except BaseException as error:  # noqa: BLE001 - handed on to the caller, who sees it unchanged
            outcome.set_exception(error)

    thread = threading.Thread(target=work, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        raise NoThreadError(
            "no further thread can be started; allow more processes (ulimit -u, pids.max of the control group)"
        ) from error
    try:
        return outcome.result()
    except KeyboardInterrupt:
        # What the thread is making is about to be undone: let it finish first.
        thread.join(_INTERRUPTED_SECONDS)
        raise
