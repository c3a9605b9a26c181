# SPDX-License-Identifier: Apache-2.0
"""Files that are replaced whole or not at all, files for their owner alone, and files without a disk."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import BinaryIO


def in_memory() -> BinaryIO:
    """Return an open file without a name, in memory, for the input of a command."""
    return os.fdopen(os.memfd_create("natgauge"), "w+b")


def octets_of(content: str | bytes) -> bytes:
    """Return what is stored of a content: of a text its UTF-8, with lone surrogates as escapes."""
    return content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace")


def replace(path: Path, content: str | bytes, *, mode: int = 0o666) -> None:
    """Give a file new content; a kill or a crash at any moment leaves the old content or the new one.

    Lone surrogates, which UTF-8 does not have, are written out as escapes.
    """
    # Two processes may write the same file at once, so each has a partial file of its own.
    partial = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        with _new(partial, mode) as file:
            file.write(octets_of(content))
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def write_private(path: Path, content: bytes) -> None:
    """Write a file that nobody but its owner can read at any moment, in place of any that is there."""
    with _new(path, 0o600) as file:
        file.write(content)


def _new(path: Path, mode: int) -> BinaryIO:
    """Open a new file in place of any that is there; a link of another user with that name leads nowhere."""
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb")


def whole_name(name: str) -> str:
    """Return the name of the file that a partial file, which a killed process left, was to be; empty = it is none."""
    found = re.fullmatch(r"(.+)\.[0-9]+\.new", name)
    return found[1] if found else ""


def remove(path: Path) -> None:
    """Remove a file and its partial files left by killed processes; do nothing where there are none."""
    path.unlink(missing_ok=True)
    remove_partial(path)


def remove_partial(path: Path) -> None:
    """Remove the partial files of a file left by killed processes."""
    for partial in path.parent.glob(f"{path.name}.*.new"):
        partial.unlink(missing_ok=True)
