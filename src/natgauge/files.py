# SPDX-License-Identifier: Apache-2.0
"""Files that are replaced whole or not at all, and files without a disk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO


def in_memory() -> BinaryIO:
    """Return an open file without a name, in memory: what a command prints is not lost on a disk without room."""
    return os.fdopen(os.memfd_create("natgauge"), "w+b")


def replace(path: Path, text: str) -> None:
    """Give a file new content; a kill or a crash at any moment leaves the old content or the new one.

    Raises:
        OSError: it cannot be written; the old content stays.
    """
    # Two processes may write the same file at once, so each has a partial file of its own.
    partial = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        with partial.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def remove(path: Path) -> None:
    """Remove a file and its partial files left by killed processes; do nothing where there are none.

    Raises:
        OSError: a file cannot be removed.
    """
    path.unlink(missing_ok=True)
    for partial in path.parent.glob(f"{path.name}.*.new"):
        partial.unlink(missing_ok=True)
