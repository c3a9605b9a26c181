# SPDX-License-Identifier: Apache-2.0
"""Requirements: a module for each kind of behaviour, and what all of them are made of.

RFC 4787 (UDP), RFC 5382 (TCP) and RFC 5508 (ICMP) often require the same behaviour of their transports. So an
examination declares with `requires` all of the RFCs that require the behaviour.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, NoReturn

from natgauge.audits.kit.examiner import Examiner, NotSeenError
from natgauge.audits.kit.hosts import Flows
from natgauge.errors import did_you_mean
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


#: Requirements that no frame of an audit shows: RFC, name, level, text, and the reason.
TABLE: Final[tuple[tuple[int, str, Level, str, str], ...]] = (
    (4787, "REQ-7", "MUST", "inside and outside may have the same addresses", "needs a network with such addresses"),
    (4787, "REQ-10a", "SHOULD", "each application level gateway can be turned off", "needs a setting of the gateway"),
    (5508, "REQ-9", "MAY", "ICMP errors towards an interface can be turned off", "needs a setting of the gateway"),
    (5508, "REQ-11", "MAY", "other ICMP messages are dropped or handled", "both are permitted"),
    (6888, "REQ-1", "MUST", "each transport fulfils its own RFC", "see RFC 4787, RFC 5382 and RFC 5508"),
    (6888, "REQ-3", "SHOULD", "outside addresses of any number, with gaps", "needs a gateway with such addresses"),
    (6888, "REQ-6", "MUST", "translation can be turned off for destinations", "needs a setting of the gateway"),
    (6888, "REQ-10", "SHOULD", "the gateway can be managed", "needs the gateway's management interface"),
    (6888, "REQ-11c", "SHOULD", "the operator is notified of lacking room", "needs the gateway's management interface"),
    (6888, "REQ-12", "SHOULD", "destinations are not logged", "needs the gateway's log"),
    (6888, "REQ-13", "SHOULD", "ports are used as far as possible", "needs every port of all outside addresses in use"),
    (7857, "7", "SHOULD", "refused frames from outside refresh no mapping", "needs a policy that refuses sessions"),
    (7857, "8", "SHOULD", "hosts can ask for ports of the same parity", "the audit asks for single ports"),
    (7857, "12", "MUST", "Basic NAT hairpins ICMP queries", "needs a gateway that translates addresses only"),
)  # fmt: skip

for _rfc, _name, _level, _text, _reason in TABLE:
    requires(_text, (_rfc, _name, _level, "udp"), flows=NO_FLOWS, profiles=CGN if _rfc == 6888 else EVERY_PROFILE)(
        unseen(_reason)
    )
requires("opening and closing have time-outs of their own", (7857, "2.1-separate", "SHOULD", "tcp"), flows=NO_FLOWS)(
    unseen("needs two settings")
)


@functools.cache
def requirements() -> tuple[Requirement, ...]:
    """Every requirement, in order of RFC and name."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return tuple(sorted(DECLARED, key=lambda one: in_order(one.rfc, one.name)))


def in_order(rfc: int, name: str) -> tuple[object, ...]:
    """Key that sorts requirements with numbers as numbers, so that REQ-10 follows REQ-9."""
    parts = re.findall(r"\d+|[a-z]+", name.lower())
    return (rfc, *((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts))


def unknown(keys: Iterable[str]) -> Iterator[Requirement]:
    """Yield a requirement that is not seen for each key, such as "RFC4787-REQ-88", that natgauge does not know."""
    every = {requirement.key for requirement in requirements()}
    for key in keys:
        if key not in every:
            rfc, _, name = key.removeprefix("RFC").partition("-")
            reason = unseen(f"natgauge knows no such requirement; {did_you_mean(key, every)}")
            yield Requirement(int(rfc), name, "MAY", "declared by the recipe", ("udp",), reason, NO_FLOWS)
