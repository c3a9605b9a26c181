# SPDX-License-Identifier: Apache-2.0
"""Audits of two runs: each verdict and class of behaviour in both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from natgauge.analysis.change import Change, Changes, Conclusion, Outcome, matched
from natgauge.errors import UsageError
from natgauge.records.audit import AuditRecord, BehaviourClasses

#: Outcomes of verdicts that became another one.
_JUDGED: Final[dict[tuple[str | None, str | None], Outcome]] = {
    ("meets", "fails"): "worse",
    ("fails", "meets"): "better",
}


@dataclass(frozen=True, slots=True)
class Examined:
    """One verdict or class of an audit.

    Attributes:
        what: requirement, such as "RFC4787-REQ-8", or class, such as "mapping"; empty = the whole audit.
        seen: verdict or class; None = it was not examined.
        measured: what was measured; empty for classes.
    """

    gateway: str
    what: str = ""
    transport: str = ""
    seen: str | None = None
    measured: str = ""


def changes(first: Sequence[AuditRecord], second: Sequence[AuditRecord]) -> Changes[Examined]:
    """Compare audits of the same gateways; single audits are compared whatever their gateways are."""
    single = len(first) == len(second) == 1
    pairs, *alone = matched(first, second, lambda record: single or record.gateway)
    if first and second and not pairs:
        raise UsageError("diff: the audits have no gateway in common; name two folders with audits of the same one")
    lines = tuple(change for pair in pairs for change in _changes(*pair))
    return Changes(lines, *(tuple(Examined(record.gateway) for record in records) for records in alone))


def _changes(first: AuditRecord, second: AuditRecord) -> list[Change[Examined]]:
    return [
        _change(before.get(key, Examined(first.gateway, *key)), after.get(key, Examined(second.gateway, *key)))
        for before, after in zip(_examined(first), _examined(second), strict=True)
        for key in {**before, **after}
    ]


def _examined(record: AuditRecord) -> tuple[dict[tuple[str, str], Examined], ...]:
    """Return the classes and the verdicts, each by name and transport."""
    classes = {
        (name, str(transport)): Examined(record.gateway, name, transport, getattr(each, name))
        for transport, each in record.classes.items()
        for name in BehaviourClasses.model_fields
    }
    verdicts = {
        (one.key, str(one.transport)): Examined(record.gateway, one.key, one.transport, one.verdict, one.measured)
        for one in record.requirements
    }
    return classes, verdicts


def _change(first: Examined, second: Examined) -> Change[Examined]:
    same: Outcome = "no difference seen" if first.seen == second.seen else "different"
    return Change(first, second, Conclusion(_JUDGED.get((first.seen, second.seen), same)))
