# SPDX-License-Identifier: Apache-2.0
"""The interface of a requirement: its source, level, transports, and the examination that reaches a verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, NoReturn

from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.hosts import Flows
from natgauge.audits.kit.observations import NotSeenError
from natgauge.records.audit import Level
from natgauge.words import Transport

#: Sets of requirements: carrier-grade NAT, home gateway, NAT64.
AuditProfile = Literal["cgn", "home", "nat64"]
EVERY_PROFILE: Final[frozenset[AuditProfile]] = frozenset({"cgn", "home", "nat64"})
CGN: Final[frozenset[AuditProfile]] = frozenset({"cgn"})
NAT64: Final[frozenset[AuditProfile]] = frozenset({"nat64"})

#: Whether the gateway meets the requirement, and what was measured: one sentence without a full stop.
Finding = tuple[bool, str]
Examination = Callable[[Examiner], Finding]
#: RFC, name in the RFC (such as "REQ-8" or "REQ-3a"), level, and the transports that it is examined for.
Source = tuple[int, str, Level, *tuple[Transport, ...]]


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement of an RFC.

    Attributes:
        rfc: number of the RFC.
        name: name in the RFC.
        examine: examines a gateway for the examiner's transport. It may raise `NotSeenError` and `NotApplicableError`.
        strain: 0 = a few flows, 1 = many flows, 2 = flows until the gateway has no room; examined in this order.
    """

    rfc: int
    name: str
    level: Level
    text: str
    transports: tuple[Transport, ...]
    examine: Examination
    flows: Flows
    profiles: frozenset[AuditProfile] = EVERY_PROFILE
    strain: Literal[0, 1, 2] = 0
    timers: tuple[str, ...] = ()
    needs_forwarding: bool = True

    @property
    def key(self) -> str:
        """Name with the RFC, as a recipe declares it: "RFC4787-REQ-8"."""
        return f"RFC{self.rfc}-{self.name}"


#: What an examination needs that opens no flow: no frame shows the requirement, or its flows were opened before.
NO_FLOWS: Final = Flows(0)
#: Requirements of the modules that were imported.
DECLARED: Final[list[Requirement]] = []


def requires(  # noqa: PLR0913 - what examinations declare, each by its name
    text: str,
    *sources: Source,
    flows: Flows,
    profiles: frozenset[AuditProfile] = EVERY_PROFILE,
    strain: Literal[0, 1, 2] = 0,
    timers: tuple[str, ...] = (),
    needs_forwarding: bool = True,
) -> Callable[[Examination], Examination]:
    """Declare what a function examines: one behaviour, with each RFC that requires it.

    The other arguments are attributes of `Requirement`.
    """

    def declare(examine: Examination) -> Examination:
        for rfc, name, level, *transports in sources:
            rest = tuple(transports), examine, flows, profiles, strain, timers, needs_forwarding
            DECLARED.append(Requirement(rfc, name, level, text, *rest))
        return examine

    return declare


def unseen(reason: str) -> Examination:
    """Return the examination of a requirement that no frame shows."""

    def examine(_examiner: Examiner) -> NoReturn:
        raise NotSeenError(reason)

    return examine
