# SPDX-License-Identifier: Apache-2.0
"""Memory of this machine that is left for a lab."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from natgauge.host.control_groups import ControlGroups


def memory_octets(name: str, text: str | None = None) -> int | None:
    """Return a value of /proc/meminfo, or of `text` like it, in octets, e.g. "MemAvailable"; None where missing."""
    if text is None:
        with suppress(OSError):
            text = Path("/proc/meminfo").read_text()
    match = re.search(rf"^{name}:\s+(\d+) kB$", text or "", re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def available_octets() -> int | None:
    """Return the octets that this process may still take, by the machine and by its memory limits; None = not known."""
    bounds = (memory_octets("MemAvailable"), ControlGroups().memory_left())
    return min((octets for octets in bounds if octets is not None), default=None)
