# SPDX-License-Identifier: Apache-2.0
"""What the doctor finds, and the host on which it looks: "cannot be read" is no answer to "is it off?"."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Literal

from natgauge.gateways.support import Place
from natgauge.host import kernel, programs
from natgauge.tester.probe import CableProof, send_over_a_cable

State = Literal["ok", "warning", "missing"]


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
class Finding:
    """The outcome of one check.

    Attributes:
        state: "ok"; "warning": it works, but figures may be worse or doubtful; "missing": something cannot be done.
        mend: command that fixes it, or what to do where no command can; None when there is nothing to fix.
        packages: the Debian packages that fix it, in alphabetical order; empty when no package does.
        places: places that can run the gateway once its packages are installed; empty for other checks and for a recipe
            that violates a rule.
    """

    name: str
    state: State
    what: str
    mend: str | None = None
    packages: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()


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
    has: Callable[[str], bool] = kernel.has

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
