# SPDX-License-Identifier: Apache-2.0
"""Results as CSV (RFC 4180): the rows of the report as columns, one line per result, figures in full."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from natgauge.records.measurement import Result
from natgauge.reports.rows import rows


def table(results: Sequence[Result]) -> str:
    """Return a heading, then one line per result; unknown values are empty.

    Raises:
        UsageError: there are no results.
    """
    shown = rows(results)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([row.heading for row in shown])
    writer.writerows(zip(*(row.cells for row in shown), strict=True))
    return text.getvalue().rstrip("\n")
