# SPDX-License-Identifier: Apache-2.0
"""What a full table did with further connections, in a sentence made of the counts of one trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FullTable:
    """Counts of phase 1 of a trial that filled the table; `counters` are the device's own, by its own names."""

    offered: int
    forwarded: int
    held: int
    counters: Mapping[str, int]

    @property
    def thrown_out(self) -> int:
        """Connections that were forwarded, and were in the table no more afterwards."""
        return max(self.forwarded - self.held, 0)

    def __str__(self) -> str:
        """Return the sentence, without a full stop."""
        refused, thrown_out = max(self.offered - self.forwarded, 0), self.thrown_out
        parts = [f"{refused:,} {'was' if refused == 1 else 'were'} refused"] if refused else []
        ones = "one was" if thrown_out == 1 else "ones were"
        parts += [f"{thrown_out:,} working {ones} thrown out"] if thrown_out else []
        counted = ", ".join(f"{number:,} x {name}" for name, number in sorted(self.counters.items()) if number)
        said = " and ".join(parts) or "none was refused or thrown out"
        by_itself = f" (the device counted {counted})" if counted else ""
        return f"of {self.offered:,} connections offered to a table that holds {self.held:,}, {said}{by_itself}"
