# SPDX-License-Identifier: Apache-2.0
"""Audits of two runs compared: each verdict and class that changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from natgauge.errors import UsageError
from natgauge.records.audit import AuditRecord
from natgauge.reports.audit import CLASSES
from natgauge.reports.difference import ALIKE, WORSE
from natgauge.tables import aligned


@dataclass(frozen=True, slots=True)
class VerdictChange:
    """A verdict or a class that changed.

    Attributes:
        gateway: name of the gateway.
        what: requirement, such as "RFC4787-REQ-8", or class, such as "mapping".
        transport: transport.
        before: in the first run; None = it was not examined.
        after: in the second run; None = it was not examined.
        measured: what the second run measured; empty for classes.
    """

    gateway: str
    what: str
    transport: str
    before: str | None
    after: str | None
    measured: str = ""

    @property
    def is_worse(self) -> bool:
        """Whether a requirement that was met is met no longer."""
        return self.before == "meets" and self.after == "fails"


@dataclass(frozen=True, slots=True)
class AuditDifference:
    """Audits of a second run compared with those of a first run.

    Attributes:
        gateways: names of the compared gateways, in the first run and in the second one.
        changes: every change.
    """

    gateways: tuple[tuple[str, str], ...]
    changes: tuple[VerdictChange, ...]

    @property
    def exit_status(self) -> int:
        """1 where a requirement that was met is met no longer; 0 otherwise."""
        return WORSE if any(change.is_worse for change in self.changes) else ALIKE


def difference(first: Sequence[AuditRecord], second: Sequence[AuditRecord]) -> AuditDifference:
    """Compare audits of the same gateways; single audits are compared whatever their gateways are.

    Raises:
        UsageError: the runs have no gateway in common.
    """
    if len(first) == len(second) == 1:
        pairs = [(first[0], second[0])]
    else:
        later = {record.gateway: record for record in second}
        pairs = [(record, later[record.gateway]) for record in first if record.gateway in later]
    if not pairs:
        raise UsageError("diff: the audits have no gateway in common; name two folders with audits of the same one")
    changes = tuple(change for before, after in pairs for change in _changes(before, after))
    return AuditDifference(tuple((before.gateway, after.gateway) for before, after in pairs), changes)


def _changes(before: AuditRecord, after: AuditRecord) -> Iterator[VerdictChange]:
    for transport in dict.fromkeys([*before.classes, *after.classes]):
        for name in CLASSES:
            old, new = (getattr(each.classes.get(transport), name, None) for each in (before, after))
            if old != new:
                yield VerdictChange(after.gateway, name, transport, old, new)
    old_ones, new_ones = ({(one.key, one.transport): one for one in each.requirements} for each in (before, after))
    for key, transport in dict.fromkeys([*old_ones, *new_ones]):
        old_one, new_one = old_ones.get((key, transport)), new_ones.get((key, transport))
        was, is_now = (None if one is None else one.verdict for one in (old_one, new_one))
        if was != is_now:
            measured = "" if new_one is None else new_one.measured
            yield VerdictChange(after.gateway, key, transport, was, is_now, measured)


def text(found: AuditDifference) -> str:
    """Return a line for each change, or that there is none."""
    names = ", ".join(before if before == after else f"{before} and {after}" for before, after in found.gateways)
    if not found.changes:
        return f"Audits of {names}: no verdict and no class changed"
    rows = [("gateway", "what", "transport", "before", "after", "measured")]
    rows += [
        (one.gateway, one.what, one.transport, one.before or "-", one.after or "-", one.measured)
        for one in found.changes
    ]
    return "\n".join([f"Audits of {names}:", *(f"  {line}" for line in aligned(rows))])


def document(found: AuditDifference) -> list[dict[str, Any]]:
    """Return plain JSON values of the changes."""
    return [asdict(change) for change in found.changes]
