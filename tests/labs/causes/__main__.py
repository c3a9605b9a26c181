# SPDX-License-Identifier: Apache-2.0
"""Prints the table of causes, row by row, of all gateways or of those that are named (root)."""

from __future__ import annotations

import sys
from collections import Counter

from tests.labs.causes.gateways import named
from tests.labs.causes.table import markdown, table


def main() -> int:
    """Print the table; 1 where a cause is wrong, or not known more often than it may be."""
    sys.stdout.write(f"{markdown([])}\n")
    outcomes: Counter[str] = Counter()
    for finding in table(named(*sys.argv[1:])):
        sys.stdout.write(f"{finding}\n")
        sys.stdout.flush()
        outcomes[finding.outcome] += 1
    sys.stdout.write(f"\n{dict(outcomes)}\n")
    return int(outcomes["wrong"] > 0 or outcomes["not known"] > 1)


if __name__ == "__main__":
    raise SystemExit(main())
