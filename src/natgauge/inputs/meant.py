# SPDX-License-Identifier: Apache-2.0
"""Values as people write them, in the form that natgauge reads, for the end of a refusal."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

_NUMBER: Final = re.compile(r"([+-]?\d[\d_,' ]*(?:\.\d+)?(?:e\+?\d{1,2})?)\s*([a-zµ]*)", re.IGNORECASE)
_THOUSANDS: Final = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
_SECONDS: Final = {
    "": Decimal(1), "ms": Decimal("0.001"), "s": Decimal(1), "sec": Decimal(1), "m": Decimal(60), "min": Decimal(60),
    "h": Decimal(3600),
}  # fmt: skip
#: No number that was meant has more digits.
_LARGEST: Final = 10**15


def number(text: str, *, seconds: bool = False, whole: bool = False) -> str:
    """Return "; write NUMBER" for a number with a unit or with separators; empty where none was meant.

    Of a time in seconds "m" means minutes, and not millions; `whole`: only whole numbers will do.
    """
    match = _NUMBER.fullmatch(text.strip())
    units = _SECONDS if seconds else _THOUSANDS
    factor = units.get(match[2].lower()) if match else None
    if match is None or factor is None:
        return ""
    meant = Decimal(re.sub(r"[_,' ]", "", match[1])) * factor
    if abs(meant) > _LARGEST or (whole and meant != int(meant)):
        return ""
    return f"; write {int(meant):_}" if meant == int(meant) else f"; write {meant.normalize():f}"
