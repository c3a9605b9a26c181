# SPDX-License-Identifier: Apache-2.0
"""Print the Debian packages that `natgauge doctor --json`, on standard input, misses, one a line."""

from __future__ import annotations

import json
import sys


def packages(text: str) -> list[str]:
    """The packages that any finding names, each once, in alphabetical order."""
    return sorted({package for finding in json.loads(text)["findings"] for package in finding["packages"]})


if __name__ == "__main__":
    print(*packages(sys.stdin.read()), sep="\n")
