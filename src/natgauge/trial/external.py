# SPDX-License-Identifier: Apache-2.0
"""An external device, which natgauge does not control: the user's commands empty it, or trials use new connections.

By RFC 9693 section 4.4 every trial begins with an empty table. Where the table cannot be emptied, a trial uses
connections that no trial of the last T seconds used, T being the device's time-out. Each trial has its own range of
destination ports and all source ports. So section 4.1 (many source ports, few destination ports) is observed, and a
device that assigns outside ports per remote endpoint has all of them free in each trial.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from natgauge import file_access
from natgauge.agreement.generated import Progress, StreamCounts, TrialRequest, TrialResult
from natgauge.agreement.trial import all_connections
from natgauge.errors import BrokenError, HostError, NatgaugeError, NotEmptyError, UsageError
from natgauge.gateways.recipe import Recipe
from natgauge.host.private_files import FILE_MODE, boot, unwritable
from natgauge.labs.common import locks
from natgauge.labs.common.shell import run_of_user
from natgauge.labs.contract import ExternalDevice, FreshTrials, Lab
from natgauge.measurer import Ability
from natgauge.procedures.kit.settings import TrialSettings
from natgauge.setup.traffic import LAST_PORT, Range, TrafficPlan
from natgauge.trial.controls import DeviceControl, Observer
from natgauge.trial.lab_measurer import LabMeasurer
from natgauge.trial.requests import longest_seconds
from natgauge.trials import Direction, TrialPlan

#: A command reaches the device over a network.
_COMMAND_SECONDS: Final = 120.0
#: Emptying or walking 10^7 connections takes a Linux kernel 13 s; this leaves slower devices some room.
_SECONDS_PER_CONNECTION: Final = 10e-6
_EMPTY_TRIES: Final = 5
_RETRY_SECONDS: Final = 0.2
#: Abilities that no external device has: natgauge cannot restart it.
_NEVER: Final = frozenset({Ability.RESTART, Ability.RESTART_IN_TRIAL})
#: Seconds added to the time-out: the device's clock and the tester's may differ.
SPARE_SECONDS: Final = 1.0
#: Uses are stored for at least these seconds: the next measurement may have a longer time-out.
REMEMBERED_SECONDS: Final = 3600.0
#: Seconds between two messages of the count-down.
_REPORT_EVERY_SECONDS: Final = 5.0


@dataclass(slots=True)
class ExternalControls(DeviceControl):
    """Controls of an external device: the user's shell commands, run on the tester's host as the present user.

    Attributes:
        count_command: prints the device's number of connections; None = it is not known.
        most_connections: those of the largest trial so far, for which the commands have time.
    """

    empty_command: str
    count_command: str | None = None
    most_connections: int = 0

    empties = True

    @property
    def counts(self) -> bool:
        """Whether a command reports the number of connections."""
        return self.count_command is not None

    def empty(self) -> None:
        """Empty the table; where connections can be counted, check that none is left."""
        left: int | None = None
        for _ in range(_EMPTY_TRIES):
            self.empty_timed()
            left = self.count()
            if not left:
                return
            time.sleep(_RETRY_SECONDS)
        raise NotEmptyError(
            f"empty command: the count command says {left} after {_EMPTY_TRIES} times emptying; let it count the "
            "test's connections alone (UDP), and see whether there is other traffic"
        )

    def empty_timed(self) -> float:
        """Empty the table once, and return the command's seconds, the connection to the device included."""
        return run_of_user(self.empty_command, self._seconds, "empty command", error=BrokenError).seconds

    def count(self) -> int | None:
        """Return the number of connections; None where it is not known."""
        if self.count_command is None:
            return None
        result = run_of_user(self.count_command, self._seconds, "count command", error=BrokenError)
        output = result.stdout.strip()
        if not output.isdecimal():
            raise BrokenError(f"count command: printed {output[:60]!r} instead of one whole number")
        return int(output)

    @property
    def _seconds(self) -> float:
        return _COMMAND_SECONDS + self.most_connections * _SECONDS_PER_CONNECTION

    def confirm_ready(self) -> None:
        """Check that the device still answers, where there is a count command."""
        self.count()

    def restart(self) -> None:
        """Refuse the restart."""
        raise UsageError("natgauge does not control this device and cannot restart it; choose another metric")

    restart_under_load = restart


@dataclass
class ExternalMeasurer(LabMeasurer):
    """Performs trials on an external device.

    Attributes:
        fresh: gives each trial four tuples that the device has forgotten; None = not needed, or the table is emptied.
    """

    fresh: FreshTuples | None = None
    reuses: bool = False

    @property
    def abilities(self) -> frozenset[Ability]:
        """Abilities in addition to plain trials with this device."""
        return super().abilities - _NEVER

    def request(self, plan: TrialPlan, traffic: TrafficPlan | None = None) -> TrialRequest:
        """Return the engine's request for a trial of this plan, with the next four tuples unless traffic is named."""
        if self.fresh is not None and traffic is None:
            self.traffic = self.fresh.next()
        if isinstance(self.device, ExternalControls):
            self.device.most_connections = max(self.device.most_connections, plan.connections)
        return super().request(plan, traffic)

    def check_subscribers(self) -> None:
        """Check them only where the device forgets connections between the trials."""
        if self.fresh is None:
            super().check_subscribers()

    def _run(self, request: TrialRequest, progress: Callable[[Progress], None]) -> TrialResult:
        if self.fresh is None:
            return super()._run(request, progress)
        named = request.initiator.destination_ports
        ports, connections = Range(named.first, named.last), all_connections(request)
        with self.fresh.used(ports, connections, longest_seconds(request), self.observer, reuses=self.reuses):
            return super()._run(request, progress)

    def _came_back(self) -> dict[Direction | None, StreamCounts]:
        with self._at_once():
            return super()._came_back()

    def _recheck(self, error: NatgaugeError, pauses: Sequence[float]) -> None:
        with self._at_once():
            super()._recheck(error, pauses)

    @contextmanager
    def _at_once(self) -> Iterator[None]:
        """Send the frames of the block without a wait: whether the device forwards also shows by what it remembers.

        A SYN of a connection that it remembers it may refuse.
        """
        self.reuses = self.traffic.transport != "tcp"
        try:
            yield
        finally:
            self.reuses = False


def abilities(external: ExternalDevice | None) -> frozenset[Ability]:
    """Return the abilities that the user's commands provide."""
    if external is None or external.empty_command is None:
        return frozenset()
    return frozenset({Ability.EMPTY_TIMED} | (set() if external.count_command is None else {Ability.WATCH_COUNT}))


def refuse_stale(lab: Lab, recipe: Recipe, metric: str, settings: TrialSettings) -> None:
    """Refuse trials that would reuse connections of earlier trials: they would measure plain forwarding."""
    external = lab.external or ExternalDevice()
    if not recipe.stateful or not settings.has_phase1 or external.empty_command is not None:
        return
    if settings.fills_table:
        raise UsageError(
            f"{metric}: natgauge does not control the device, and each trial needs its table empty; give "
            "--empty-command, a shell command on this host that empties it (RFC 9693 section 4.4)"
        )
    if external.timeout is None:
        raise UsageError(
            f"lab {lab.name}: {recipe.name} keeps connections, and from the second trial on none would be new; give "
            "--device-timeout, the seconds after which it forgets them, or --empty-command (RFC 9693 section 4.4)"
        )


def measurer(lab: Lab, recipe: Recipe, *, named_ports: bool, **arguments: Any) -> ExternalMeasurer:
    """Return the measurer of an external device."""
    external = lab.external
    if external is None or not recipe.stateful:
        return ExternalMeasurer(device=None, **arguments)
    if external.empty_command is not None:
        return ExternalMeasurer(device=ExternalControls(external.empty_command, external.count_command), **arguments)
    fresh = None
    if external.timeout is not None:
        ports = (f"{port.netns or ''}-{port.interface}" for port in (lab.initiator, lab.responder))
        fresh = FreshTuples(
            arguments["traffic"],
            external.timeout,
            external.fresh_trials,
            Ledger.of("-".join(ports), time.monotonic()),
            sliced=not named_ports and recipe.limits.reuses_ports,
            table_limit=arguments["settings"].table_limit,
        )
    return ExternalMeasurer(device=None, fresh=fresh, **arguments)


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
            stored = json.loads(file_access.read_text(path, file_access.MEMORY))
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
            file_access.replace(self.path, json.dumps({"boot": boot(), "uses": uses}), mode=FILE_MODE)
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

    def _ready_at(self, ports: Range, connections: int, *, reuses: bool) -> float:
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
