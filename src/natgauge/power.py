# SPDX-License-Identifier: Apache-2.0
"""Energy that a device takes during a trial, from a power meter that a command of the user reads.

draft-ietf-bmwg-powerbench measures the power of a device under the loads of RFC 2544. A meter that counts energy is
read before and after a trial. The power that another meter shows is read throughout, because before and after the trial
the device is idle.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Self

from natgauge.errors import BrokenError, HostError

#: Between two readings of a power.
_PAUSE_SECONDS: Final = 0.5
_FORM: Final = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*([WJ])\s*")

#: Prints what the meter shows.
Meter = Callable[[], str]


@dataclass(frozen=True, slots=True)
class Energy:
    """Energy in a time: of a trial from before its first frame until the last ones have arrived.

    Attributes:
        seconds: > 0.
    """

    joules: float
    seconds: float


@dataclass(frozen=True, slots=True)
class _Shown:
    number: float
    unit: str
    at: float


@dataclass(slots=True)
class EnergyOfTrial:
    """Reads a meter during the `with` block."""

    meter: Meter
    clock: Callable[[], float] = time.monotonic
    _shown: list[_Shown] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _error: Exception | None = None

    def __enter__(self) -> Self:
        self._read()
        if self._shown[0].unit == "W":
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        if raised[0] is None and self._error is None:
            self._read()

    def energy(self) -> Energy:
        """Return the energy; valid after the `with` block."""
        if self._error is not None:
            raise self._error
        first, last = self._shown[0], self._shown[-1]
        if len({shown.unit for shown in self._shown}) > 1:
            raise BrokenError("power command: printed W and J in one trial; print one of them")
        if first.unit == "W":
            # The first and the last one are those of an idle device.
            within = self._shown[1:-1] or self._shown
            joules = sum(shown.number for shown in within) / len(within) * (last.at - first.at)
        else:
            joules = last.number - first.number
        if joules < 0:
            raise BrokenError(f"power command: the energy fell from {first.number:g} to {last.number:g} J in a trial")
        return Energy(joules, last.at - first.at)

    def _read(self) -> None:
        said = self.meter()
        form = _FORM.fullmatch(said)
        if form is None or math.isinf(float(form[1])):
            shown = said.strip()[:60] or "nothing"
            raise HostError(f"power command: printed {shown!r}; print a power, such as 61.5 W, or an energy, 950 J")
        self._shown.append(_Shown(float(form[1]), form[2], self.clock()))

    def _watch(self) -> None:
        try:
            while not self._over.wait(_PAUSE_SECONDS):
                self._read()
        except Exception as error:  # noqa: BLE001 - it is raised again where the energy is asked for
            self._error = error
