# SPDX-License-Identifier: Apache-2.0
"""Restart of a device at a given time of a trial, while the engine runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Self

from natgauge.agreement import Progress
from natgauge.errors import BrokenError
from natgauge.measurer import Restart


class RestartInTrial:
    """Calls `act` at a given time of phase 2. Use it as a context manager around the engine's run.

    When the `with` block ends, for any reason, `act` has ended or will not begin: nothing else may use the device
    during `act`.
    """

    def __init__(self, act: Callable[[], None], seconds: float) -> None:
        """Prepare the restart; the time starts when `look` sees phase 2.

        Args:
            seconds: time of the restart after the start of phase 2, >= 0.
        """
        self._act = act
        self._timer = threading.Timer(seconds, self._restart)
        self._timer.daemon = True
        self._phase2_began = 0.0
        self._restarted: Restart | None = None
        self._error: Exception | None = None

    @property
    def said(self) -> str:
        """Error message of a device that did not become ready again; empty where it did."""
        return str(self._error) if isinstance(self._error, BrokenError) else ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        if self._timer.ident is None:
            return
        try:
            self._timer.join()
        except BaseException:
            # A second Ctrl-C: the device must not be undone while it is being started.
            self._timer.join()
            raise

    def take(self, progress: Progress) -> None:
        """Start the time when phase 2 begins: the engine reports that at once."""
        if progress.phase == "phase2" and self._timer.ident is None:
            self._phase2_began = time.monotonic()
            self._timer.start()

    def ended(self) -> Restart:
        """Return the times of the restart, also of a failed restart (see `said`); valid after the `with` block."""
        if self._error is not None and not self.said:
            raise self._error
        if self._restarted is None:
            raise BrokenError("trial: the device was not restarted, because phase 2 was over before or never began")
        return self._restarted

    def _restart(self) -> None:
        began = self._seconds()
        try:
            self._act()
        except Exception as error:  # noqa: BLE001 - it is raised again where the trial is judged
            self._error = error
        self._restarted = Restart(began, self._seconds())

    def _seconds(self) -> float:
        return time.monotonic() - self._phase2_began
