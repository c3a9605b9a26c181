# SPDX-License-Identifier: Apache-2.0
"""The tester's own machine as the machine of devices: its memory and its global settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from natgauge import table_memory
from natgauge.errors import HostError
from natgauge.host.memory import memory_octets
from natgauge.host.settings import LocalSetting, Remembers
from natgauge.table_memory import ObjectCaches


class ThisMachine:
    """The machine of every device in a namespace of the tester's host."""

    system: str = os.uname().sysname
    has_tester_files: bool = True

    def __init__(self, memory: Callable[[], Remembers]) -> None:
        """Take the way to the `memory` that stores global settings before their change; a lab has it once it is up."""
        self._memory = memory

    def free_octets(self) -> int:
        """Return MemAvailable in octets."""
        octets = memory_octets("MemAvailable")
        if octets is None:
            raise HostError("/proc/meminfo: has no MemAvailable; natgauge needs Linux 6.6 or later")
        return octets

    def object_caches(self) -> ObjectCaches:
        """Return the kernel's object caches; empty where they are not readable."""
        with suppress(OSError):
            return table_memory.read(Path("/proc/slabinfo").read_text(encoding="ascii"))
        return {}

    def setting(self, name: str, paths: Sequence[str], module: str | None) -> LocalSetting:
        """Return a global setting; nothing is changed yet."""
        return LocalSetting(name, paths, module=module, memory=self._memory)
