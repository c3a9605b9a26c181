# SPDX-License-Identifier: Apache-2.0
"""A device that is not ours, in a measurement: emptied by the user's commands, or asked only for new connections."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any, Final

from natgauge.bench.fresh_ports import FreshTuples, Ledger
from natgauge.bench.lab_measurer import LabMeasurer
from natgauge.bench.ranges import Range
from natgauge.duts.recipe import Recipe
from natgauge.errors import BrokenError, NotEmptyError, UsageError
from natgauge.inputs.question import DeviceOptions
from natgauge.labs.common.shell import run_shell
from natgauge.labs.contract import CommandResult, ExternalDevice, Lab
from natgauge.measurer import Ability, TrialPlan
from natgauge.procedures.kit.settings import TrialSettings
from natgauge.trials import Progress, TrialRequest, TrialResult

#: A command reaches the device over a network, and emptying 10^7 connections takes a Linux kernel 13 s.
_COMMAND_SECONDS: Final = 120.0
_EMPTY_TRIES: Final = 5
_RETRY_SECONDS: Final = 0.2
#: Nobody can start a device that is not ours anew.
_NEVER: Final = frozenset({Ability.RESTART, Ability.RESTART_IN_TRIAL})


@dataclass(frozen=True, slots=True)
class ExternalControls:
    """Controls of a device that is not ours: shell commands of the user, run on the tester's host as who we are.

    Attributes:
        empty_command: makes it forget all connections.
        count_command: prints how many it has; None = nobody can tell.
    """

    empty_command: str
    count_command: str | None = None

    empties = True

    @property
    def counts(self) -> bool:
        """Whether a command tells its number of connections."""
        return self.count_command is not None

    def empty(self) -> None:
        """Empty its table; where it can be counted, see that nothing is left.

        Raises:
            BrokenError: the command fails.
            NotEmptyError: connections are left after several tries.
        """
        left: int | None = None
        for _ in range(_EMPTY_TRIES):
            _shell("empty command", self.empty_command)
            left = self.count()
            if not left:
                return
            time.sleep(_RETRY_SECONDS)
        raise NotEmptyError(
            f"empty command: the count command says {left} after {_EMPTY_TRIES} times emptying; let it count the "
            "test's connections alone (UDP), and see whether there is other traffic"
        )

    def empty_timed(self) -> float:
        """Empty its table once; seconds the command took, with the way to the device and back.

        Raises:
            BrokenError: the command fails.
        """
        return _shell("empty command", self.empty_command).seconds

    def count(self) -> int | None:
        """Its number of connections; None where nobody can tell.

        Raises:
            BrokenError: the command fails or prints something else.
        """
        if self.count_command is None:
            return None
        said = _shell("count command", self.count_command).stdout.strip()
        if not said.isdecimal():
            raise BrokenError(f"count command: printed {said[:60]!r} instead of one whole number")
        return int(said)

    def strays(self) -> Mapping[str, int]:
        """Not known."""
        return {}

    def faults(self) -> Mapping[str, int]:
        """Not known."""
        return {}

    def confirm_standing(self) -> None:
        """See that it still answers, as far as anything can be asked.

        Raises:
            BrokenError: it does not.
        """
        self.count()

    def restart(self) -> None:
        """Refused.

        Raises:
            UsageError: always.
        """
        raise UsageError("this device is not ours, so it cannot be started anew; choose another metric")

    restart_under_load = restart


@dataclass
class ExternalMeasurer(LabMeasurer):
    """Performs trials on a device that is not ours.

    Attributes:
        fresh: gives each trial four tuples that the device does not know; None = it needs none, or is emptied.
    """

    fresh: FreshTuples | None = None

    @property
    def abilities(self) -> frozenset[Ability]:
        """What it can do beyond plain trials with this device."""
        return super().abilities - _NEVER

    def request(self, plan: TrialPlan) -> TrialRequest:
        """The engine's request for a trial of this plan, with the four tuples that come next.

        Raises:
            UsageError: it is stateless, and the device is not.
        """
        if self.fresh is not None:
            self.traffic = self.fresh.next()
        return super().request(plan)

    def _run(self, request: TrialRequest, progress: Callable[[Progress], None]) -> TrialResult:
        if self.fresh is None:
            return super()._run(request, progress)
        ports = request.initiator.destination_ports
        with self.fresh.used(Range(ports.first, ports.last), request.connections, self.watch):
            return super()._run(request, progress)


def abilities(external: ExternalDevice | None) -> frozenset[Ability]:
    """What the user's commands make possible."""
    if external is None or external.empty_command is None:
        return frozenset()
    return frozenset({Ability.EMPTY_TIMED} | (set() if external.count_command is None else {Ability.WATCH_COUNT}))


def facts(external: ExternalDevice | None, wishes: DeviceOptions) -> dict[str, int]:
    """What is known of the limits of a device that is not ours, by knob."""
    timeout = None if external is None else external.timeout
    every = {"table_size": wishes.table_size, "udp_timeout": timeout}
    return {name: value for name, value in every.items() if value is not None}


def refuse_settings(lab: Lab, recipe: Recipe, wishes: DeviceOptions) -> None:
    """Refuse what cannot be set, or need not be told, of a device that is not ours; its table's limit is a fact.

    Raises:
        UsageError: the first that is wrong.
    """
    if set(wishes.named()) - {"table_size"}:
        raise UsageError(
            f"lab {lab.name}: the device is not ours, so its table and time-outs cannot be set; leave them out, or "
            "tell what they are (--table-size, --device-timeout)"
        )
    given = {**wishes.named(), **({} if lab.external is None else lab.external.parameters())}
    if given and not recipe.stateful:
        name = min(given).replace("_", " ")
        raise UsageError(f"{name}: {recipe.name} keeps no connections, so nothing is to be forgotten; leave it out")


def refuse_stale(lab: Lab, recipe: Recipe, metric: str, settings: TrialSettings) -> None:
    """Refuse trials that would find connections of earlier ones: their rate would be one of plain forwarding.

    Raises:
        UsageError: nothing tells how they could be fresh.
    """
    external = lab.external or ExternalDevice()
    if not recipe.stateful or not settings.has_phase1 or external.empty_command is not None:
        return
    if settings.fills_table:
        raise UsageError(
            f"{metric}: the device is not ours, and each trial needs its table empty; give --empty-command, a shell "
            "command on this host that empties it (RFC 9693 section 4.4)"
        )
    if external.timeout is None:
        raise UsageError(
            f"lab {lab.name}: {recipe.name} keeps connections, and from the second trial on none would be new; give "
            "--device-timeout, the seconds after which it forgets them, or --empty-command (RFC 9693 section 4.4)"
        )


def measurer(lab: Lab, recipe: Recipe, *, named_ports: bool, **given: Any) -> ExternalMeasurer:
    """The measurer of a device that is not ours.

    Args:
        lab: where it stands.
        recipe: what it is.
        named_ports: whether the user named the destination ports.
        given: all else that `LabMeasurer` takes.
    """
    external = lab.external
    if external is None or not recipe.stateful:
        return ExternalMeasurer(device=None, **given)
    if external.empty_command is not None:
        return ExternalMeasurer(device=ExternalControls(external.empty_command, external.count_command), **given)
    fresh = None
    if external.timeout is not None:
        ports = (f"{port.netns or ''}-{port.interface}" for port in (lab.initiator, lab.responder))
        fresh = FreshTuples(
            given["traffic"],
            external.timeout,
            external.fresh_trials,
            Ledger.of("-".join(ports), time.monotonic()),
            sliced=not named_ports and recipe.limits.mapping != "endpoint-independent",
            table_limit=given["settings"].table_limit,
        )
    return ExternalMeasurer(device=None, fresh=fresh, **given)


def _shell(name: str, command: str) -> CommandResult:
    """What a command of the user did."""

    def start(out: IO[bytes], err: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["/bin/sh", "-c", command], stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )

    result = run_shell(start, _COMMAND_SECONDS)
    if result is None:
        raise BrokenError(f"{name}: did not end within {_COMMAND_SECONDS:.0f} s; see that it asks nothing")
    if result.status:
        last = f": {result.said[:200]}" if result.said else ""
        raise BrokenError(f"{name}: ended with status {result.status}{last}")
    return result
