# SPDX-License-Identifier: Apache-2.0
"""Audits for people: classes of behaviour, and a line for each requirement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from natgauge.records.audit import AuditRecord, BehaviourClasses
from natgauge.reports.answers import Sentence, listed
from natgauge.reports.sheet import Sheet, SheetRow
from natgauge.reports.text import answered

#: Classes of behaviour, in the order of the tables.
CLASSES: Final = tuple(BehaviourClasses.model_fields)
#: Most frequent reasons that are named where an audit has no verdict; often one for each transport.
_REASONS: Final = 3


def text(record: AuditRecord, width: int | None = None) -> str:
    """Return the number of requirements that the gateway meets, the verdicts, and the classes of behaviour.

    Args:
        width: most characters of a line; None = any.
    """
    return f"{answered(sentences(record), sheet(record), width)}\nEvidence: {record.results}"


def sentences(record: AuditRecord) -> list[Sentence]:
    """Return the answer: how many requirements the gateway meets, and which it fails."""
    decided = [one for one in record.requirements if one.verdict in ("meets", "fails")]
    if not decided:
        reasons = Counter(one.measured for one in record.requirements if one.verdict == "not seen")
        return [
            Sentence(f"{record.gateway} has no verdict on any of {len(record.requirements)} requirements.", leads=True),
            *(Sentence(f"Reason for {number} of them: {reason}.") for reason, number in reasons.most_common(_REASONS)),
            *_doubts(record),
        ]
    met = sum(one.verdict == "meets" for one in decided)
    found = [Sentence(f"{record.gateway} meets {met} of {len(decided)} requirements that were examined.", leads=True)]
    for level in ("MUST", "SHOULD", "MAY"):
        failed = [f"{one.key} ({one.transport})" for one in decided if one.verdict == "fails" and one.level == level]
        if failed:
            found.append(Sentence(f"It fails {len(failed)} of level {level}: {listed(failed)}."))
    verdicts = Counter(one.verdict for one in record.requirements)
    left = [f"{verdicts[word]} {word}" for word in ("not seen", "not applicable") if verdicts[word]]
    if left:
        found.append(Sentence(f"No verdict on {len(record.requirements) - len(decided)} more: {', '.join(left)}."))
    return [*found, *_doubts(record)]


def _doubts(record: AuditRecord) -> list[Sentence]:
    return [Sentence(f"Doubt: {doubt}.") for doubt in record.doubts]


def sheet(record: AuditRecord) -> Sheet:
    """Return the table of an audit: a line for each requirement and transport."""
    lines = [SheetRow(record.gateway, ("level", "transport", "verdict", "requirement: what was measured"))]
    for one in record.requirements:
        declared = "" if not one.differs else f" (declared: {'meets' if one.declared else 'fails'})"
        name = f"RFC {one.rfc} {one.requirement}"
        lines.append(SheetRow(name, (one.level, one.transport, one.verdict + declared, f"{one.text}: {one.measured}")))
    classes = (
        f"{transport.upper()}: mapping {seen.mapping or 'not seen'}, filtering {seen.filtering or 'not seen'}, "
        f"ports {seen.ports or 'not seen'}, hairpinning {seen.hairpinning or 'not seen'}."
        for transport, seen in record.classes.items()
    )
    return Sheet(tuple(lines), tuple(classes))


def chart(records: Sequence[AuditRecord]) -> Sheet:
    """Return one table of several audits: a column for each gateway, a row for each class and requirement."""
    lines = [SheetRow("requirement", tuple(record.gateway for record in records))]
    for transport in ("udp", "tcp", "icmp"):
        for name in CLASSES:
            words = [getattr(record.classes.get(transport), name, None) for record in records]
            if any(words):
                lines.append(SheetRow(f"{name}, {transport.upper()}", tuple(word or "not seen" for word in words)))
    rows = dict.fromkeys((one.rfc, one.requirement, one.transport) for record in records for one in record.requirements)
    verdicts = [
        {(one.rfc, one.requirement, one.transport): one.verdict for one in record.requirements} for record in records
    ]
    heading = {(one.rfc, one.requirement): (one.level, one.text) for record in records for one in record.requirements}
    for rfc, requirement, transport in rows:
        level, what = heading[rfc, requirement]
        cells = tuple(found.get((rfc, requirement, transport), "-") for found in verdicts)
        lines.append(SheetRow(f"RFC {rfc} {requirement}, {transport.upper()} ({level}): {what}", cells))
    return Sheet(tuple(lines), tuple(_differing(records)))


def _differing(records: Sequence[AuditRecord]) -> Iterator[str]:
    """Yield a sentence for each verdict that is not as the recipe declares."""
    for record in records:
        for one in record.requirements:
            if one.differs:
                says = "meets" if one.declared else "fails"
                yield f"{record.gateway}: its recipe declares that it {says} {one.key}, but: {one.measured}."
