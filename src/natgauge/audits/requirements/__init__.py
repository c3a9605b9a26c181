# SPDX-License-Identifier: Apache-2.0
"""Requirements: one module for each behaviour that the RFCs require, with one examination for all of them.

RFC 4787 (UDP), RFC 5382 (TCP) and RFC 5508 (ICMP) often require the same behaviour of their transports. So an
examination declares with `requires` all of the RFCs that require the behaviour.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator

from natgauge.audits.kit.requirement import DECLARED, NO_FLOWS, Requirement, unseen
from natgauge.errors import did_you_mean


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
