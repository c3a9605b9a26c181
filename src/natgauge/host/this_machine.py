# SPDX-License-Identifier: Apache-2.0
"""The machine we run on, as devices on it see it: its memory and its global settings."""

from __future__ import annotations

import os
from collections.abc import Sequence

from natgauge.errors import HostError
from natgauge.host.machine import memory_octets
from natgauge.host.settings import LocalSetting, Remembers


class ThisMachine:
    """The machine of every device that lives in a namespace here.

    Attributes:
        system: what it runs, as `uname -s` calls it.
    """

    system: str = os.uname().sysname

    def __init__(self, memory: Remembers) -> None:
        """`memory` writes global settings down before they change, and restores them."""
        self._memory = memory

    def free_octets(self) -> int:
        """MemAvailable.

        Raises:
            HostError: this kernel does not tell.
        """
        octets = memory_octets("MemAvailable")
        if octets is None:
            raise HostError("/proc/meminfo: has no MemAvailable; natgauge needs Linux 6.6 or later")
        return octets

    def setting(self, name: str, paths: Sequence[str], module: str | None) -> LocalSetting:
        """A global setting; nothing is touched yet."""
        return LocalSetting(name, paths, module=module, memory=self._memory)
