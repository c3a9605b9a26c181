# SPDX-License-Identifier: Apache-2.0
"""Requirements: one module for each behaviour that the RFCs require, with one examination for all of them.

RFC 4787 (UDP), RFC 5382 (TCP) and RFC 5508 (ICMP) often require the same behaviour of their transports. So a module
has `REQUIREMENTS`, one for each of the RFCs.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re

from natgauge.audits.kit.requirement import Requirement
from natgauge.errors import UsageError, did_you_mean


@functools.cache
def requirements() -> tuple[Requirement, ...]:
    """Every requirement, in order of RFC and name."""
    modules = (importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__))
    found: list[Requirement] = [requirement for module in modules for requirement in module.REQUIREMENTS]
    return tuple(sorted(found, key=_place))


def _place(requirement: Requirement) -> tuple[object, ...]:
    """Order of numbers as numbers, so that REQ-10 follows REQ-9."""
    parts = re.findall(r"\d+|[a-z]+", requirement.name.lower())
    return (requirement.rfc, *((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts))


def known(key: str) -> Requirement:
    """Return the requirement with this key, such as "RFC4787-REQ-8".

    Raises:
        UsageError: there is none.
    """
    every = {requirement.key: requirement for requirement in requirements()}
    if key not in every:
        raise UsageError(f"requirement: {key!r} is unknown; {did_you_mean(key, every)}")
    return every[key]
