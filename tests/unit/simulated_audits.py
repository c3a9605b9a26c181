# SPDX-License-Identifier: Apache-2.0
"""Audits of simulated NATs: all of an audit but its lab and its packet sockets, for as much of it as a test wants.

Requirements and kinds of time-outs have the names that a record of an audit gives them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Self

import pytest
from tests.unit.simulated_nat import Behaviour, examiner_of

from natgauge.audits import audit
from natgauge.audits.audit import classes, examine
from natgauge.audits.kit import network
from natgauge.audits.kit.timers import TIMERS, TimerKind, idle_times, watch
from natgauge.audits.requirements import TABLE, packets, requirements
from natgauge.records.audit import AuditedRequirement, BehaviourClasses
from natgauge.trial.controls import Silent
from natgauge.words import Transport

#: Long enough for all time-outs but that of open TCP connections.
WAIT: Final = 330.0
#: Requirements, in the order of an audit's record.
KEYS: Final = tuple(dict.fromkeys(one.key for one in requirements()))
#: Those that fill the gateway, those that need time-outs, and those that no frame shows.
FILLING: Final = frozenset(one.key for one in requirements() if one.strain) - {"RFC4787-REQ-11"}
TIMED: Final = frozenset(one.key for one in requirements() if one.timers)
OUT_OF_SIGHT: Final = frozenset({f"RFC{rfc}-{name}" for rfc, name, *_ in TABLE} | {"RFC7857-2.1-separate"})
#: Those that need neither much room nor a wait.
QUICK: Final = tuple(dict.fromkeys(one.key for one in requirements() if not one.timers and not one.strain))
#: Kinds of UDP time-outs that nothing refreshes.
UDP: Final = tuple(kind.name for kind in TIMERS if kind.transport == "udp" and kind.refresh is None)
_RIGHT: Final = Behaviour()


class SimulatedAudit:
    """An audit of a NAT with this behaviour.

    Attributes:
        told: the evidence says what each frame is; without that an audit takes less time.
        nat: what takes and gives the frames.
    """

    told = True

    def __init__(
        self,
        behaviour: Behaviour = _RIGHT,
        *,
        seed: int = 1,
        inside_hosts: int | None = None,
        outside_hosts: int = 3,
        whole: bool = False,
        **known: Any,
    ) -> None:
        """Begin it.

        Args:
            inside_hosts: None = as many as an audit has.
            whole: send all of an audit's lone fragments, not a tenth of them, for which no NAT here has room.
            known: what else the audit knows of the gateway, as attributes of `natgauge.audits.kit.examiner.Examiner`.
        """
        self._examiner = examiner_of(behaviour, seed=seed, inside_hosts=inside_hosts, outside_hosts=outside_hosts)
        self._is_whole = whole
        self.nat = self._examiner.network.ports
        self._began = self._examiner.network.now()
        self.know(**known)

    def know(self, **known: Any) -> None:
        """Have it know something else of the gateway."""
        for name, value in known.items():
            assert hasattr(self._examiner, name)
            setattr(self._examiner, name, value)

    @property
    def seconds(self) -> float:
        """How long it took so far, by the clock of the NAT."""
        return self._examiner.network.now() - self._began

    def watch(self, *names: str, wait: float = WAIT, transport: Transport | None = None, half: bool = False) -> Self:
        """Measure time-outs of these kinds, none = of all; `half`: with every other of an audit's idle times."""
        kinds = [kind for kind in TIMERS if kind.name in names or (not names and transport in (None, kind.transport))]
        assert len(kinds) >= len(names)
        times = _every_other if half else idle_times
        self._examiner.timers.update(watch(self._examiner, kinds, wait, times=times))
        return self

    def bounds(self, name: str) -> tuple[Any, Any]:
        """The longest idle time after which a mapping of this kind was there, and the shortest after which one was not.

        None = there was none.
        """
        seen = self._examiner.timers[name]
        return seen.alive, seen.dead

    def told_watch(self, *keys: str, wait: float, timeout: float | None = None) -> list[str]:
        """Measure the time-outs of these requirements, none = of all, as an audit does; what it says meanwhile."""
        said: list[str] = []
        assert {*keys} <= {*KEYS}
        chosen = [one for one in requirements() if not keys or one.key in keys]
        audit._watch(self._examiner, chosen, wait, _Told(said), said.append, timeout=timeout)
        return said

    def watch_for(self, *keys: str, half: bool = False) -> None:
        """Measure the time-outs that these requirements need; `half` as of `watch`."""
        names = {name for one in requirements() if one.key in keys for name in one.timers}
        if names:
            self.watch(*names, half=half)

    def judge(self, *keys: str, every: bool = False, **keep: Any) -> list[AuditedRequirement]:
        """Examine it for these requirements: for UDP where it is one of their transports, otherwise for all of them.

        Args:
            every: for all transports in any case.
            keep: what receives the frames of each verdict.
        """
        chosen = [one for one in requirements() if one.key in keys]
        assert {one.key for one in chosen} == {*keys}
        if not every:
            chosen = [replace(one, transports=("udp",)) if "udp" in one.transports else one for one in chosen]
        return self._judged(chosen, **keep)

    def judge_of(self, transport: Transport, *keys: str) -> list[AuditedRequirement]:
        """Examine it for these requirements, for one transport alone."""
        assert {*keys} <= {*KEYS}
        return self._judged([replace(one, transports=(transport,)) for one in requirements() if one.key in keys])

    def _judged(self, chosen: Sequence[Any], **keep: Any) -> list[AuditedRequirement]:
        with pytest.MonkeyPatch.context() as patch:
            if not self._is_whole:
                patch.setattr(packets, "_LONE", 100)
            if not self.told:
                patch.setattr(network, "described", lambda _packet: "")
            return list(examine(self._examiner, chosen, **keep))

    def classes(self) -> Mapping[Transport, BehaviourClasses]:
        """Its classes of behaviour, by transport."""
        return classes(self._examiner)


class _Told(Silent):
    """Keeps what is said, in order."""

    def __init__(self, said: list[str]) -> None:
        self._said = said

    def stage(self, text: str) -> None:
        self._said.append(text)


def _every_other(kind: TimerKind, wait: float) -> list[float]:
    """Every other of an audit's idle times, with the last one: wrong time-outs are far from what is required."""
    return idle_times(kind, wait)[::-2][::-1]
