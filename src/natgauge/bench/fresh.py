# SPDX-License-Identifier: Apache-2.0
"""Four tuples that a device cannot know: which destination ports each trial has, and when they may be used again.

RFC 9693 section 4.4 has every trial begin with an empty table. Where nobody can empty it, a trial uses connections that
no trial of the last T seconds used, T being the device's time-out. Each trial has a range of destination ports of its
own, all source ports as ever: so section 4.1 (many source ports, few destination ports) is kept, and where outside
ports are given out per remote endpoint, each trial finds all of them free.
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

from natgauge import files
from natgauge.bench.ranges import LAST_PORT, Range
from natgauge.bench.traffic import TrafficPlan
from natgauge.bench.watch import Watch
from natgauge.errors import UsageError
from natgauge.labs.common.locks import RUN
from natgauge.labs.contract import FreshTrials

#: A device's clock and ours need not tick alike.
SPARE_SECONDS: Final = 1.0
#: Uses are remembered for at least so long: the next measurement may tell a longer time-out.
REMEMBERED_SECONDS: Final = 3600.0
#: Between two words of the count-down.
_TOLD_EVERY_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Use:
    """Destination ports that a trial used: `ended` in seconds of the monotonic clock, `connections` opened at most."""

    first: int
    last: int
    ended: float
    connections: int

    def meets(self, ports: Range) -> bool:
        """Whether any port is one of these."""
        return self.first <= ports.last and ports.first <= self.last


@dataclass(slots=True)
class Ledger:
    """The uses of one pair of ports, oldest first, also those by earlier measurements; forgotten at a reboot.

    Attributes:
        path: where they are kept; None = in memory only.
        uses: oldest first.
    """

    path: Path | None
    uses: list[Use] = field(default_factory=list)

    @classmethod
    def of(cls, name: str, now: float) -> Ledger:
        """What is known of the pair of ports of this name, now by the monotonic clock."""
        return cls.read(RUN / f"{name}.uses", now)

    @classmethod
    def read(cls, path: Path, now: float) -> Ledger:
        """What a file tells; nothing where it cannot be read. What lies after `now` is of another boot."""
        found: list[Use] = []
        with suppress(OSError, ValueError, TypeError):
            found = [Use(*entry) for entry in json.loads(path.read_text())]
        return cls(path, sorted((use for use in found if use.ended <= now), key=lambda use: use.ended))

    def add(self, use: Use, keep_seconds: float) -> None:
        """Remember a use, and forget those that ended longer ago than that."""
        self.uses = [old for old in self.uses if old.ended > use.ended - keep_seconds]
        self.uses.append(use)
        if self.path is not None:
            with suppress(OSError):
                self.path.parent.mkdir(parents=True, exist_ok=True)
                uses = [[old.first, old.last, old.ended, old.connections] for old in self.uses]
                files.replace(self.path, json.dumps(uses))


@dataclass(slots=True)
class FreshTuples:
    """Gives each trial destination ports of its own, and waits until the device has forgotten what it must.

    Attributes:
        traffic: of the first trial; all others have other destination ports.
        timeout: T, seconds after which the device has forgotten a connection.
        way: as `natgauge.labs.contract.Foreign` has it.
        ledger: of the pair of ports.
        sliced: whether trials may have other destination ports: False where the user named them, or where the device
            maps endpoint-independently (RFC 4787 section 4.1) and another destination makes no new mapping.
        table_limit: connections the device holds; earlier trials' ones count until T is over; None = not known.
        clock: seconds, monotonic.
        sleep: waits so many seconds.
    """

    traffic: TrafficPlan
    timeout: float
    way: FreshTrials
    ledger: Ledger
    sliced: bool = True
    table_limit: int | None = None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def next(self) -> TrafficPlan:
        """The traffic of the next trial: the destination ports that follow those used last, from 1 on again."""
        ports = self.traffic.destination_ports
        if not self.sliced or self.way == "wait" or not self.ledger.uses:
            return self.traffic
        first = self.ledger.uses[-1].last + 1
        if first + ports.count - 1 > LAST_PORT:
            first = 1
        return replace(self.traffic, destination_ports=Range(first, first + ports.count - 1))

    @contextmanager
    def used(self, ports: Range, connections: int, watch: Watch) -> Iterator[None]:
        """Wait until these four tuples are fresh; when the block ends, they are used.

        Args:
            ports: the destination ports, as `next` gave them.
            connections: that will be opened.
            watch: is told the count-down.

        Raises:
            UsageError: they are not fresh, and the user wants no waiting.
        """
        self._wait(self._ready_at(ports, connections), watch)
        try:
            yield
        finally:
            use = Use(ports.first, ports.last, self.clock(), connections)
            self.ledger.add(use, max(REMEMBERED_SECONDS, self.timeout + SPARE_SECONDS))

    def _ready_at(self, ports: Range, connections: int) -> float:
        """When the device has forgotten all of these, and has room for them."""
        every = self.way == "wait"
        forgotten = [
            (use.ended + self.timeout + SPARE_SECONDS, use.connections, every or use.meets(ports))
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

    def _wait(self, until: float, watch: Watch) -> None:
        left = until - self.clock()
        if left > 0 and self.way == "no-wait":
            raise UsageError(
                f"fresh trials: no four tuples are left that the device has forgotten, the next ones will be in "
                f"{left:.0f} s; allow waiting (--fresh-trials new-tuples), or give an --empty-command"
            )
        while (left := until - self.clock()) > 0:
            watch.stage(f"waiting {math.ceil(left)} s until the device has forgotten earlier connections")
            self.sleep(min(left, _TOLD_EVERY_SECONDS))
