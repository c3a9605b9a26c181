# SPDX-License-Identifier: Apache-2.0
"""The interface of a requirement: its source, level, transports, and the examination that reaches a verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, NoReturn, TypeVar

from natgauge.audits.kit.examiner import Examiner, NotSeenError
from natgauge.records.audit import Level
from natgauge.words import Transport

#: Sets of requirements: carrier-grade NAT, home gateway, NAT64.
AuditProfile = Literal["cgn", "home", "nat64"]
EVERY_PROFILE: Final[frozenset[AuditProfile]] = frozenset({"cgn", "home", "nat64"})
CGN: Final[frozenset[AuditProfile]] = frozenset({"cgn"})
NAT64: Final[frozenset[AuditProfile]] = frozenset({"nat64"})

#: Whether the gateway meets the requirement, and what was measured: one sentence without a full stop.
Finding = tuple[bool, str]
Examination = Callable[[Examiner, Transport], Finding]
_Examination = TypeVar("_Examination", bound=Examination)
#: RFC, name in the RFC (such as "REQ-8" or "REQ-3a"), level, and the transports that it is examined for.
Source = tuple[int, str, Level, *tuple[Transport, ...]]


class NotApplicableError(Exception):
    """A requirement does not apply to this gateway; the text is the reason, without a full stop."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement of an RFC.

    Attributes:
        rfc: number of the RFC.
        name: name in the RFC.
        level: level of the requirement.
        text: the requirement in few words, without a full stop.
        transports: transports that it is examined for.
        examine: examines a gateway for one of the transports. It may raise `NotSeenError` and `NotApplicableError`.
        profiles: sets of requirements that it belongs to.
        strain: 0 = a few flows, 1 = many flows, 2 = flows until the gateway has no room; examined in this order.
        timers: names of the timers that must have been measured before (see `natgauge.audits.kit.timers`).
    """

    rfc: int
    name: str
    level: Level
    text: str
    transports: tuple[Transport, ...]
    examine: Examination
    profiles: frozenset[AuditProfile] = EVERY_PROFILE
    strain: Literal[0, 1, 2] = 0
    timers: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Name with the RFC, as a recipe declares it: "RFC4787-REQ-8"."""
        return f"RFC{self.rfc}-{self.name}"


#: Requirements of the modules that were imported.
DECLARED: Final[list[Requirement]] = []


def requires(
    text: str,
    *sources: Source,
    profiles: frozenset[AuditProfile] = EVERY_PROFILE,
    strain: Literal[0, 1, 2] = 0,
    timers: tuple[str, ...] = (),
) -> Callable[[_Examination], _Examination]:
    """Declare what a function examines: the same behaviour, which one RFC or several require.

    Args:
        text: the requirement in few words, without a full stop.
        sources: where it is required.
        profiles: see `Requirement`.
        strain: see `Requirement`.
        timers: see `Requirement`.
    """

    def declare(examine: _Examination) -> _Examination:
        for rfc, name, level, *transports in sources:
            one = Requirement(rfc, name, level, text, tuple(transports), examine, profiles, strain, timers)
            DECLARED.append(one)
        return examine

    return declare


def unseen(reason: str) -> Examination:
    """Return the examination of a requirement that no frame shows."""

    def examine(_examiner: Examiner, _transport: Transport) -> NoReturn:
        raise NotSeenError(reason)

    return examine
