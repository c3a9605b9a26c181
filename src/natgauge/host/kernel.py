# SPDX-License-Identifier: Apache-2.0
"""Modules of this machine's kernel, checked without loading any; its threads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_LISTS: Final = ("modules.dep", "modules.builtin")


def has(module: str, root: Path = Path("/")) -> bool:
    """Whether a module is loaded, built in, or installed for this kernel."""
    if (root / "sys/module" / module).exists():
        return True
    folder = root / "lib/modules" / os.uname().release
    return any(_named(line) == module for name in _LISTS for line in _lines(folder / name))


def shows_threads(root: Path = Path("/")) -> bool:
    """Whether /proc lists the kernel's own threads, by the numbers that this process can use for them.

    A PID namespace, as a container has it, has no numbers for them, and the kernel has no other way to reach a thread.
    """
    try:
        own = int((root / "proc/self").readlink().name)
        # Process 2 is the parent of all kernel threads, wherever they are visible.
        return own == os.getpid() and (root / "proc/2/comm").read_text().strip() == "kthreadd"
    except (OSError, ValueError):
        return False


def _named(line: str) -> str:
    """Return the module of a line "kernel/net/netfilter/nf_flow_table.ko.xz: ..."."""
    return line.partition(":")[0].rpartition("/")[2].partition(".")[0].strip().replace("-", "_")


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
