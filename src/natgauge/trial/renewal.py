# SPDX-License-Identifier: Apache-2.0
"""A new lab for each repetition, where that takes a fraction of a second.

Repetitions in one lab share its place in memory and, with one seed, one permutation of the four tuples. They show how a
figure varies within that lab, but not how it varies between labs. So each has a seed of its own, too.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Final, Generic, Self, TypeVar

from natgauge.inputs.question import Cell
from natgauge.labs import kinds
from natgauge.trial.bench import Bench, Ready
from natgauge.trial.lab_measurer import LabMeasurer

_SEED_OCTETS: Final = 8


def seed_of_repetition(seed: int, number: int) -> int:
    """Return the seed of a repetition, from 1; a measurement's seed always gives the same sequence, of 0 to 2**64 - 1.

    The first repetition has the measurement's seed itself. So a measurement with the seed of any repetition repeats
    that repetition.
    """
    if number == 1:
        return seed
    digest = hashlib.blake2b(f"{seed} {number}".encode(), digest_size=_SEED_OCTETS).digest()
    return int.from_bytes(digest, "big")


def in_repetition(cell: Cell, seed: int | None, number: int) -> Cell:
    """Return the cell with the seed of this repetition; `seed` of the measurement, None = each bench draws its own."""
    if seed is None:
        return cell
    return replace(cell, lab=replace(cell.lab, seed=seed_of_repetition(seed, number)))


BenchT = TypeVar("BenchT", bound=Bench)


class FreshLabs(Generic[BenchT]):
    """Successive benches of one device; the procedures of the last one are `ready`.

    As a context manager it makes the first one, and removes the last one.

    Attributes:
        has_lab: whether a lab exists now; False also where the lab of a further repetition could not be made.
    """

    def __init__(
        self,
        bench_of: Callable[[int], BenchT],
        start: Callable[[BenchT], Sequence[Ready]],
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Make no lab yet.

        `bench_of` plans the bench of a repetition, from 1. `start` starts the device of a new bench, and makes the
        procedures ready that run on it: at least one, always the same. `now` returns seconds since the epoch.
        """
        self._bench_of, self._start, self._now = bench_of, start, now
        self._conducted: list[tuple[int, int, float]] = []
        self._made = ExitStack()
        self._labs = 0
        self.ready: Sequence[Ready] = ()
        self.has_lab = False

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            undo.push(self.__exit__)
            self._set_up(1)
            undo.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self.has_lab = False
        self._made.__exit__(*exception)  # type: ignore[arg-type] # handed on as it came

    def _set_up(self, number: int) -> None:
        before, self.bench = self.ready, self._bench_of(number)
        self._made.enter_context(self.bench)
        self.ready = self._start(self.bench)
        for now, earlier in zip(self.ready, before, strict=False):
            now.measurer.continue_after(earlier.measurer)
        self._labs += 1
        self.has_lab = True
        self._note()

    def begin(self, number: int) -> LabMeasurer:
        """Begin a repetition, from 1, in a new lab, unless there is the lab of the first one or one that must stay."""
        if number > 1 and self.has_lab and self._renewable:
            self.leave()
        if not self.has_lab:
            self._set_up(number)
        elif number > 1:
            self._note()
        return self.ready[0].measurer

    def leave(self) -> None:
        """Remove the lab; the next repetition makes another one."""
        self.has_lab = False
        self._made.close()

    def _note(self) -> None:
        self._conducted.append((self._labs, self.bench.seed, round(self._now(), 3)))

    def conduct(self, repetitions: int) -> Mapping[str, Any]:
        """Return parameters of the first `repetitions` repetitions; one that the time limit cut off has no value."""
        counted = self._conducted[:repetitions]
        return {
            "labs": len({lab for lab, _, _ in counted}),
            "seeds": [seed for _, seed, _ in counted],
            "begun": [began for _, _, began in counted],
        }

    @property
    def _renewable(self) -> bool:
        lab = self.bench.lab
        return kinds.get(self.bench.cell.lab.lab).quick and not lab.is_reused
