# SPDX-License-Identifier: Apache-2.0
"""What a check of this machine found: one kind of finding for `natgauge doctor`, `probe` and `host check`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warning", "missing", "obstacle"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check.

    Attributes:
        state: "ok"; "warning": it works, but figures may be worse or doubtful; "missing": something cannot be done;
            "obstacle": a port cannot be used.
        mend: command that fixes it, or what to do where no command can; None where there is nothing to fix, or where
            the command would do harm.
        packages: the Debian packages that fix it, in alphabetical order; empty when no package does.
        places: places that can run a gateway once its packages are installed; empty for other checks.
        at: interface or setting that was looked at; None = the whole machine.
        cause: why it matters to figures; None = `what` says it.
        is_choice: whether an obstacle is the user's choice of port, not a fault of the host.
    """

    name: str
    state: State
    what: str
    mend: str | None = None
    packages: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    at: str | None = None
    cause: str | None = None
    is_choice: bool = False
