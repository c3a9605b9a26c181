# SPDX-License-Identifier: Apache-2.0
"""What /proc says of a process. Any user can give a process a name that is no UTF-8, so nothing here expects text.

A process is given by its folder in /proc.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

_INTERFACE: Final = re.compile(r"^iff:\t(\S+)$", re.MULTILINE)


def name_of(process: Path) -> str:
    """Return the name of a process, with "\N{REPLACEMENT CHARACTER}" for octets that are no UTF-8."""
    return _text(process / "comm").strip()


def has_variable(process: Path, name: str, value: str) -> bool:
    """Whether a process was started with a variable of this value; False where it may not be looked into."""
    with suppress(OSError):
        return os.fsencode(f"{name}={value}") in (process / "environ").read_bytes().split(b"\0")
    return False


def fields_after_name(process: Path) -> list[str]:
    """Return the fields of `stat` from the state on (proc_pid_stat(5) counts it as the third)."""
    # The name in parentheses may hold anything, so what follows is counted from the last one.
    return _text(process / "stat").rpartition(")")[2].split()


def open_files(process: Path) -> Iterator[tuple[Path, Path]]:
    """Yield each open file of a process, in its folder `fd`, with its target; what cannot be read is left out."""
    with suppress(OSError):
        for file in (process / "fd").iterdir():
            with suppress(OSError):
                yield file, file.readlink()


def tun_of(file: Path, target: Path) -> str | None:
    """Return the TUN or TAP interface of an open file; None = it has none.

    Args:
        target: its target, whatever its name: a container may have the device node elsewhere.
    """
    # Of sockets, pipes and what else has no place in a file system there are many.
    if not target.is_absolute():
        return None
    found = _INTERFACE.search(_text(file.parents[1] / "fdinfo" / file.name))
    return None if found is None else found[1]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
