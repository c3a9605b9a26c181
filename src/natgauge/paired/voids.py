# SPDX-License-Identifier: Apache-2.0
"""Rounds that are void for a gateway: not all of its frames came back right, or its search found no rate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from natgauge.errors import BrokenError
from natgauge.notes import Note

#: A gateway that is void in this many rounds in a row ends the measurement.
MOST_VOID: Final = 3


@dataclass(slots=True)
class VoidRounds:
    """Notes void rounds, and counts those in a row.

    A message that ends the measurement begins with the command and ends with the remedy; `what` is void: "round" or
    "search".
    """

    command: str
    what: str
    remedy: str
    notes: list[Note] = field(default_factory=list)
    _in_a_row: dict[str, int] = field(default_factory=dict)

    def judge(self, gateway: str, why: str) -> None:
        """Take a round into account: `why` it is void, or empty; `gateway` is empty where there is only one.

        A gateway whose rounds are void `MOST_VOID` times in a row ends the measurement.
        """
        if not why:
            self._in_a_row.pop(gateway, None)
            return
        self._in_a_row[gateway] = self._in_a_row.get(gateway, 0) + 1
        if self._in_a_row[gateway] >= MOST_VOID:
            named = f"{gateway}: " if gateway else ""
            plural = "searches" if self.what == "search" else f"{self.what}s"
            raise BrokenError(f"{self.command}: {named}{why}, in {MOST_VOID} {plural} in a row; {self.remedy}")
        of = f" of {gateway}" if gateway else ""
        self.notes.append(Note("trials", f"a {self.what}{of} is void: {why}"))
