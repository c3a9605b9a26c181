# SPDX-License-Identifier: Apache-2.0
"""Audits for people: classes of behaviour, and a line for each requirement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from natgauge.records.audit import AuditRecord
from natgauge.reports.sheet import Sheet, SheetRow
from natgauge.tables import aligned


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
