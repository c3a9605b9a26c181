# SPDX-License-Identifier: Apache-2.0
"""New four tuples for each trial of an external device: destination ports, and when they may be used again.

By RFC 9693 section 4.4 every trial begins with an empty table. Where the table cannot be emptied, a trial uses
connections that no trial of the last T seconds used, T being the device's time-out. Each trial has its own range of
destination ports and all source ports. So section 4.1 (many source ports, few destination ports) is observed, and a
device that assigns outside ports per remote endpoint has all of them free in each trial.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from natgauge import files, foreign
from natgauge.errors import HostError, UsageError
from natgauge.host.private_folder import FILE_MODE, boot, unwritable
from natgauge.labs.common import locks
from natgauge.labs.contract import FreshTrials
from natgauge.setup.traffic import LAST_PORT, Range, TrafficPlan
from natgauge.trial.observer import Observer

#: Seconds added to the time-out: the device's clock and the tester's may differ.
SPARE_SECONDS: Final = 1.0
#: Uses are stored for at least these seconds: the next measurement may have a longer time-out.
REMEMBERED_SECONDS: Final = 3600.0
#: Seconds between two messages of the count-down.
_REPORT_EVERY_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Use:
    """Destination ports that a trial used: `ended` in seconds of the monotonic clock, `connections` opened at most.

    While the trial runs, `ended` is the latest time at which it can end.
    """

    first: int
    last: int
    ended: float
    connections: int

    @property
    def is_guess(self) -> bool:
        """Whether nothing is stored of the ports' use, so another natgauge may have used them."""
        return not self.connections

    def meets(self, ports: Range) -> bool:
        """Whether both ranges have a port in common."""
        return self.first <= ports.last and ports.first <= self.last


@dataclass(slots=True)
class Ledger:
    """Uses of a pair of tester ports, oldest first, including earlier measurements of this boot.

    Attributes:
        path: file that stores the uses; None = in memory only.
    """

    path: Path | None
    uses: list[Use] = field(default_factory=list)

    @classmethod
    def of(cls, name: str, now: float) -> Ledger:
        """Return the ledger of a pair of ports by name; `now` on the monotonic clock."""
        return cls.read(locks.folder("uses") / f"{name}.uses", now)

    @classmethod
    def read(cls, path: Path, now: float) -> Ledger:
        """Read a ledger's file; nobody else writes it, because the reader has the ports.

        A trial whose end is later than `now` was killed, and ended with its natgauge. Without a file of this boot that
        can be read, any port may have been used until `now`: each container has its own /run, and the same trial of
        another one opens the same four tuples.
        """
        anything = [Use(1, LAST_PORT, now, 0)]
        try:
            stored = json.loads(foreign.read_text(path, foreign.MEMORY))
            uses = [Use(*entry) for entry in stored["uses"]] if stored["boot"] == boot() else anything
            uses = sorted((replace(use, ended=min(use.ended, now)) for use in uses), key=lambda use: use.ended)
        except (OSError, UsageError, ValueError, TypeError, KeyError):
            uses = anything
        return cls(path, uses)

    def begin(self, use: Use, since: float) -> None:
        """Store a use before its trial, and drop uses that ended before `since`.

        Raises HostError where it cannot: the next measurement would not know of it after a kill.
        """
        self.uses = [old for old in self.uses if old.ended > since]
        self.uses.append(use)
        self.store()

    def end(self, now: float) -> None:
        """Store that the last trial ended `now`; where that fails, the latest end that was planned stays stored."""
        self.uses[-1] = replace(self.uses[-1], ended=now)
        with suppress(HostError):
            self.store()

    def store(self) -> None:
        """Write the file; raises HostError where it cannot be written."""
        if self.path is None:
            return
        if self.path.parent == locks.folder("uses"):
            locks.made_folder("uses")
        uses = [[use.first, use.last, use.ended, use.connections] for use in self.uses]
        try:
            files.replace(self.path, json.dumps({"boot": boot(), "uses": uses}), mode=FILE_MODE)
        except OSError as error:
            raise unwritable(self.path, error) from error


@dataclass(slots=True)
class FreshTuples:
    """Assigns destination ports to each trial, and waits until the device has forgotten earlier connections.

    Attributes:
        timeout: T, seconds after which the device has forgotten a connection.
        sliced: whether trials may have other destination ports: False where the user named them, or where the device
            reuses no outside port for another destination (RFC 4787 section 4.1): earlier connections keep theirs.
        table_limit: connections that the device can hold; those of earlier trials count until T is over. None = not
            known.
        clock: monotonic clock, seconds.
        sleep: waits the given seconds.
    """

    traffic: TrafficPlan
    timeout: float
    method: FreshTrials
    ledger: Ledger
    sliced: bool = True
    table_limit: int | None = None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def next(self) -> TrafficPlan:
        """Return the traffic of the next trial: the destination ports after the last ones used, or from 1 again."""
        ports = self.traffic.destination_ports
        if not self.sliced or self.method == "wait" or not self.ledger.uses:
            return self.traffic
        first = self.ledger.uses[-1].last + 1
        if first + ports.count - 1 > LAST_PORT:
            first = 1
        return replace(self.traffic, destination_ports=Range(first, first + ports.count - 1))

    @contextmanager
    def used(
        self, ports: Range, connections: int, seconds: float, observer: Observer, *, reuses: bool = False
    ) -> Iterator[None]:
        """Wait until the device has forgotten these four tuples; the block, of at most `seconds`, uses them.

        Their use is stored before and after the block: a kill in between leaves the first. With `reuses` the device may
        remember them, and only needs room.
        """
        self._wait(self._ready_at(ports, connections, reuses=reuses), observer)
        now = self.clock()
        kept = max(REMEMBERED_SECONDS, self.timeout + SPARE_SECONDS)
        self.ledger.begin(Use(ports.first, ports.last, now + seconds, connections), now - kept)
        try:
            yield
        finally:
            self.ledger.end(self.clock())

    def _ready_at(self, ports: Range, connections: int, *, reuses: bool = False) -> float:
        """Return the time at which the device has forgotten these four tuples, and has room for the connections."""
        every = self.method == "wait"
        forgotten = [
            (use.ended + self.timeout + SPARE_SECONDS, use.connections, not reuses and (every or use.meets(ports)))
            for use in self.ledger.uses
        ]
        ready = max((at for at, _, must in forgotten if must), default=-math.inf)
        if self.table_limit is None:
            return ready
        left = sum(held for at, held, _ in forgotten if at > max(ready, self.clock()))
        for at, held, _ in sorted(forgotten):
            if at <= max(ready, self.clock()):
                continue
            if left + connections <= self.table_limit:
                break
            ready, left = at, left - held
        return ready

    def _wait(self, until: float, observer: Observer) -> None:
        left = until - self.clock()
        if left <= 0:
            return
        # What is guessed counts from its first reading, also for who is refused or ends before the wait does.
        self.ledger.store()
        if self.method == "no-wait":
            raise UsageError(
                f"fresh trials: no four tuples are left that the device has forgotten, the next ones will be in "
                f"{left:.0f} s; allow waiting (--fresh-trials new-tuples), or give an --empty-command",
                at="fresh_trials",
            )
        # Who measures for the first time knows of no earlier connections.
        guessed = any(use.is_guess and use.ended + self.timeout + SPARE_SECONDS >= until for use in self.ledger.uses)
        what = "what another natgauge may have opened before" if guessed else "earlier connections"
        while (left := until - self.clock()) > 0:
            observer.stage(f"waiting {math.ceil(left)} s until the device has forgotten {what}")
            self.sleep(min(left, _REPORT_EVERY_SECONDS))
