# SPDX-License-Identifier: Apache-2.0
"""The host on which the doctor looks: "cannot be read" is no answer to "is it off?"."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from natgauge.finding import Finding
from natgauge.gateways.support import has_module
from natgauge.host import programs
from natgauge.tester.probe import CableProof, send_over_a_cable


class NoText(Enum):
    """Why a file has no text.

    Attributes:
        NO_SYS: /sys is not mounted, as in a chroot, so nothing is known of what would be in it.
    """

    ABSENT = "is not there"
    REFUSED = "cannot be read by this user"
    NO_SYS = "cannot be read, because /sys is not mounted"


_MENDS = {
    NoText.ABSENT: "natgauge doctor, on the machine itself, outside of containers",
    NoText.REFUSED: "sudo natgauge doctor",
    NoText.NO_SYS: "mount -t sysfs sysfs /sys",
}


@dataclass(frozen=True, slots=True)
class Host:
    """The host to check; tests use a simulated host.

    Attributes:
        prove: sends frames over a cable; None = not tried.
        find: returns the path of a program as devices find it; None = it is not installed.
    """

    root: Path = Path("/")
    release: str = field(default_factory=lambda: os.uname().release)
    prove: Callable[[], CableProof] | None = send_over_a_cable
    find: Callable[[str], str | None] = programs.find_of_devices
    has: Callable[[str], bool] = has_module

    def path(self, path: str) -> Path:
        """Return where a path of the host is."""
        return self.root / path.lstrip("/")

    def read(self, path: str) -> str | NoText:
        """Return the text of a file, stripped, or why there is none."""
        try:
            return self.path(path).read_text().strip()
        except (FileNotFoundError, NotADirectoryError):
            # Every kernel has this folder in its /sys.
            hidden = path.startswith("/sys/") and not self.path("/sys/devices").exists()
            return NoText.NO_SYS if hidden else NoText.ABSENT
        except (OSError, ValueError):
            return NoText.REFUSED


def unknown(name: str, path: str, why: NoText) -> Finding:
    """Return the finding of a check that could not read what it depends on."""
    return Finding(name, "warning", f"not known: {path} {why.value}", _MENDS[why])
