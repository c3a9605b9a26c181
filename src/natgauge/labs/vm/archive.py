# SPDX-License-Identifier: Apache-2.0
"""Archives of files that a guest's kernel unpacks when it boots: cpio in the "newc" format.

The kernel unpacks several archives one after the other (Documentation/driver-api/early-userspace/buffer-format.rst).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ArchivedFile:
    """One file, folder or symbolic link of an archive.

    Attributes:
        content: content of a file, or the target of a symbolic link; empty for a folder.
    """

    name: str
    mode: int
    content: bytes = b""

    def packed(self) -> bytes:
        """Return the entry's octets: thirteen fields of eight hex digits; name and content padded to four octets."""
        name = self.name.encode()
        fields = [0, self.mode, 0, 0, 1, 0, len(self.content), 0, 0, 0, 0, len(name) + 1, 0]
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + name + b"\0"
        return head + b"\0" * (-len(head) % 4) + self.content + b"\0" * (-len(self.content) % 4)


def archive(entries: Iterable[ArchivedFile]) -> bytes:
    """Return an archive of these entries. A folder must come before what is in it."""
    return b"".join(entry.packed() for entry in (*entries, ArchivedFile("TRAILER!!!", 0)))
