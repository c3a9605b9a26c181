# SPDX-License-Identifier: Apache-2.0
"""Audits for people: classes of behaviour, and a line for each requirement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from natgauge.records.audit import AuditRecord, BehaviourClasses
from natgauge.reports.sheet import Sheet, SheetRow
from natgauge.tables import aligned

#: Classes of behaviour, in the order of the tables.
CLASSES: Final = tuple(BehaviourClasses.model_fields)


def text(record: AuditRecord) -> str:
    """Return the classes by transport, the verdicts with what was measured, and their number."""
    return "\n".join(_lines(record))


def sheet(record: AuditRecord) -> Sheet:
    """Return the table of an audit: a line for each requirement and transport."""
    lines = [SheetRow(record.gateway, ("level", "transport", "verdict", "measured"))]
    for one in record.requirements:
        declared = "" if not one.differs else f" (declared: {'meets' if one.declared else 'fails'})"
        name = f"RFC {one.rfc} {one.requirement}"
        lines.append(SheetRow(name, (one.level, one.transport, one.verdict + declared, one.measured)))
    classes = (
        f"{transport.upper()}: mapping {seen.mapping or 'not seen'}, filtering {seen.filtering or 'not seen'}, "
        f"ports {seen.ports or 'not seen'}, hairpinning {seen.hairpinning or 'not seen'}."
        for transport, seen in record.classes.items()
    )
    return Sheet(tuple(lines), tuple(classes))


def _lines(record: AuditRecord) -> Iterator[str]:
    yield f"{record.gateway}: {record.title}"
    rows = [("", "mapping", "filtering", "ports", "hairpinning")]
    for transport, seen in record.classes.items():
        named = (seen.mapping, seen.filtering, seen.ports, seen.hairpinning)
        rows.append((transport.upper(), *(word or "not seen" for word in named)))  # type: ignore[arg-type] # four
    yield from (f"  {line}" for line in aligned(rows))
    yield ""
    head, *others = sheet(record).lines
    verdicts = [("requirement", *head.cells), *((row.heading, *row.cells) for row in others)]
    yield from (f"  {line}" for line in aligned(verdicts))
    yield ""
    counts = Counter(one.verdict for one in record.requirements)
    summary = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    musts = len(record.failed(level="must"))
    yield f"{len(record.requirements)} verdicts: {summary}; {musts} of the failed ones are MUST"
    yield f"  Evidence: {record.results}"


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
