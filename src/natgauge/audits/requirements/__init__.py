# SPDX-License-Identifier: Apache-2.0
"""Requirements: a module for each kind of behaviour; an examination serves all RFCs that require it.

RFC 4787 (UDP), RFC 5382 (TCP) and RFC 5508 (ICMP) often require the same behaviour of their transports. So an
examination declares with `requires` all of the RFCs that require the behaviour.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator
from typing import Final

from natgauge.audits.kit.requirement import CGN, DECLARED, EVERY_PROFILE, NO_FLOWS, Requirement, requires, unseen
from natgauge.errors import did_you_mean
from natgauge.records.audit import Level

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
