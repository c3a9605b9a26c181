# SPDX-License-Identifier: Apache-2.0
"""Sizes of the data caches of some cores, by level: beyond them, an access to the connection tracking table costs more.

Linux describes the caches of each core in files (Documentation/ABI/testing/sysfs-devices-system-cpu). Guests see what
their hypervisor reports.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

#: Folder of the descriptions, patterns of their files in it, and shell text that prints them as `read` parses them.
_FOLDER: Final = "/sys/devices/system/cpu"
_FILES: Final = tuple(f"cpu[0-9]*/cache/index*/{name}" for name in ("level", "type", "size", "shared_cpu_list"))
SCRIPT: Final = f"cd {_FOLDER} 2> /dev/null && grep -s . {' '.join(_FILES)} || :"

_LINE: Final = re.compile(r"^cpu(\d+)/cache/(index\w+)/(\w+):(.+)$", re.MULTILINE)
_SIZE: Final = re.compile(r"(\d+)([KMG]?)")
_OCTETS: Final = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


def caches_of(cores: Sequence[int]) -> dict[str, int]:
    """Return the caches of cores of this machine, as `read` does."""
    lines = []
    for pattern in _FILES:
        for path in Path(_FOLDER).glob(pattern):
            with suppress(OSError):
                lines.append(f"{path.relative_to(_FOLDER)}:{path.read_text(encoding='ascii').strip()}")
    return read("\n".join(lines), cores)


def read(text: str, cores: Sequence[int]) -> dict[str, int]:
    """Octets of all different data caches that these cores use, by level, such as "L2"; empty = not known."""
    every: dict[tuple[int, str], dict[str, str]] = {}
    for core, index, name, value in _LINE.findall(text):
        every.setdefault((int(core), index), {})[name] = value.strip()
    # Cores that share a cache give the same list of cores for it.
    different: dict[tuple[str, str], int] = {}
    for (core, _), cache in every.items():
        size = _SIZE.fullmatch(cache.get("size", ""))
        if core in cores and size and cache.get("level") and cache.get("type") in ("Data", "Unified"):
            shared = cache.get("shared_cpu_list", str(core))
            different[f"L{cache['level']}", shared] = int(size[1]) * _OCTETS[size[2]]
    levels = sorted({level for level, _ in different})
    return {level: sum(octets for (of, _), octets in different.items() if of == level) for level in levels}
