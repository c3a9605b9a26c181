# SPDX-License-Identifier: Apache-2.0
"""Audits on the page: a row for each requirement, a column for each gateway, and a link to each capture."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from natgauge import foreign
from natgauge.records.audit import AuditedRequirement
from natgauge.reports import audit
from natgauge.reports.answers import listed
from natgauge.reports.collected import StoredAudit

#: A cell without a verdict.
_CELL: Final = {"kind": "", "said": "-", "href": "", "measured": ""}


def shown(stored: Sequence[StoredAudit], at: Path) -> dict[str, Any]:
    """Return the table of the audits, with links to captures from the folder of the page, `at`."""
    records = [each.record for each in stored]
    names = audit.names_of(records)
    rows = [
        (row.heading, [_cell(one, each.folder, at) for one, each in zip(row.verdicts, stored, strict=True)])
        for row in audit.rows_of(records)
    ]
    classes = [(line.heading, [_CELL | {"said": cell} for cell in line.cells]) for line in audit.classes(records)]
    return {
        "title": f"{'Audit' if len(records) == 1 else 'Audits'} of {listed(names)}",
        "head": ["requirement", *names],
        "rows": [*rows, *classes],
        "below": audit.chart(records).notes,
        "folders": [str(each.folder) for each in stored],
    }


def _cell(one: AuditedRequirement | None, folder: Path, at: Path) -> dict[str, Any]:
    if one is None:
        return _CELL
    return {
        "kind": one.verdict.replace(" ", "-"),
        "said": audit.said(one, marked=True),
        "href": _link(one, folder, at),
        "measured": one.measured,
    }


def _link(one: AuditedRequirement, folder: Path, at: Path) -> str:
    """The path of the capture from the folder of the page, as an address; empty where there is no capture."""
    capture = None if one.evidence.file is None else folder / one.evidence.file
    if capture is None or not foreign.is_there(capture):
        return ""
    return quote(os.path.relpath(capture, at))
