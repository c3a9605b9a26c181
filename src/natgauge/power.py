# SPDX-License-Identifier: Apache-2.0
"""Energy that a device takes during a trial, from a power meter that a command of the user reads.

draft-ietf-bmwg-powerbench measures the power of a device under the loads of RFC 2544. A meter that counts energy is
read before and after a trial. The power that another meter shows is read throughout, because before and after the trial
the device is idle. A trial that is too short for its meter has no energy: what the meter shows then is an idle device,
or the rounding of its last digit. Nor has one in which a reading failed, or the count began again: RAPL counts to
262 kJ, which takes a busy server minutes.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, Self

from natgauge.errors import BrokenError, HostError

#: Between two readings of a power.
_PAUSE_SECONDS: Final = 0.5
#: A count of energy that grew by fewer of its last digits may be wrong by more than 10 %.
_LEAST_DIGITS: Final = 10
_FORM: Final = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*([WJ])\s*")

#: What to do where trials are too short.
_LONGER: Final = "make trials longer (--trial-seconds, or more --connections)"

#: Prints what the meter shows.
Meter = Callable[[], str]


@dataclass(frozen=True, slots=True)
class Energy:
    """Energy in a time: of a trial from before its first frame until the last ones have arrived.

    Attributes:
        joules: None = it is not known.
        seconds: > 0.
        why_unknown: why `joules` is None, and what to do, as the rest of a sentence; empty where it is known.
    """

    joules: float | None
    seconds: float
    why_unknown: str = ""


@dataclass(frozen=True, slots=True)
class _Shown:
    number: float
    unit: str
    at: float
    digit: float
    """What one more in the last printed digit is."""


@dataclass(slots=True)
class EnergyOfTrial:
    """Reads a meter during the `with` block.

    Attributes:
        is_proven: whether the meter has been read before: a reading that fails then leaves the trial without energy.
            HostError of the first one of all ends the measurement, because the command is wrong.
    """

    meter: Meter
    clock: Callable[[], float] = time.monotonic
    is_proven: bool = False
    _shown: list[_Shown] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _error: Exception | None = None
    _began: float = 0.0
    _ended: float = 0.0

    def __enter__(self) -> Self:
        self._began = self.clock()
        self._read_if_it_works()
        if self._shown and self._shown[0].unit == "W":
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._ended = self.clock()
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        if raised[0] is None and self._error is None:
            self._read_if_it_works()

    def energy(self) -> Energy:
        """Return the energy; valid after the `with` block."""
        if isinstance(self._error, HostError):
            why = f"a reading failed ({self._error}); see that the command answers each time"
            return Energy(None, self._ended - self._began, why)
        if self._error is not None:
            raise self._error
        first, last = self._shown[0], self._shown[-1]
        if len({shown.unit for shown in self._shown}) > 1:
            raise BrokenError("power command: printed W and J in one trial; print one of them")
        seconds = last.at - first.at
        if first.unit == "W":
            # The first one is that of an idle device, and so may be one that ended after the trial.
            within = [shown.number for shown in self._shown[1:-1] if shown.at <= self._ended]
            if not within:
                why = f"no reading fell into the trial (they are {_PAUSE_SECONDS:g} s apart); {_LONGER}"
                return Energy(None, seconds, why)
            return Energy(sum(within) / len(within) * seconds, seconds)
        joules = last.number - first.number
        if joules < 0:
            why = f"the count of energy began again (from {first.number:g} to {last.number:g} J); measure again"
            return Energy(None, seconds, why)
        # A meter that prints whole numbers at one reading and more at the other is as coarse as the first.
        if joules < _LEAST_DIGITS * max(first.digit, last.digit) * (1 - 1e-9):
            why = f"the count of energy grew by less than {_LEAST_DIGITS} of its last digits; {_LONGER}"
            return Energy(None, seconds, why)
        return Energy(joules, seconds)

    def _read_if_it_works(self) -> None:
        """Read the meter; where it has worked before, a failure is kept for the energy."""
        try:
            self._read()
        except HostError as error:
            if not self.is_proven:
                raise
            self._error = error
        self.is_proven = True

    def _read(self) -> None:
        said = self.meter()
        form = _FORM.fullmatch(said)
        if form is None or math.isinf(float(form[1])):
            shown = said.strip()[:60] or "nothing"
            raise HostError(f"power command: printed {shown!r}; print a power, such as 61.5 W, or an energy, 950 J")
        digit = float(Decimal((0, (1,), int(Decimal(form[1]).as_tuple().exponent))))
        self._shown.append(_Shown(float(form[1]), form[2], self.clock(), digit))

    def _watch(self) -> None:
        try:
            while not self._over.wait(_PAUSE_SECONDS):
                self._read()
        except Exception as error:  # noqa: BLE001 - it is raised again where the energy is asked for
            self._error = error
