# SPDX-License-Identifier: Apache-2.0
"""An external device, which natgauge does not control: the user's commands empty it, or trials use new connections."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from natgauge.agreement.generated import Progress, StreamCounts, TrialRequest, TrialResult
from natgauge.agreement.trial import all_connections
from natgauge.errors import BrokenError, NatgaugeError, NotEmptyError, UsageError
from natgauge.gateways.recipe import Recipe
from natgauge.labs.common.shell import run_of_user
from natgauge.labs.contract import ExternalDevice, Lab
from natgauge.measurer import Ability
from natgauge.procedures.kit.settings import TrialSettings
from natgauge.setup.traffic import Range, TrafficPlan
from natgauge.trial.fresh_ports import FreshTuples, Ledger
from natgauge.trial.lab_measurer import LabMeasurer
from natgauge.trial.protocols import DeviceControl
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
