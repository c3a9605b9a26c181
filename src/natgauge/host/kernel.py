# SPDX-License-Identifier: Apache-2.0
"""What this machine's kernel has, as far as it can be told without loading anything."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_LISTS: Final = ("modules.dep", "modules.builtin")


def has(module: str, root: Path = Path("/")) -> bool:
    """Whether a module is there: loaded, built in or installed for this kernel.

    Args:
        module: its name, with underscores.
        root: where /sys and /lib are.
    """
    if (root / "sys/module" / module).exists():
        return True
    folder = root / "lib/modules" / os.uname().release
    return any(_named(line) == module for name in _LISTS for line in _lines(folder / name))


def _named(line: str) -> str:
    """The module of a line "kernel/net/netfilter/nf_flow_table.ko.xz: ..."."""
    return line.partition(":")[0].rpartition("/")[2].partition(".")[0].strip().replace("-", "_")


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
