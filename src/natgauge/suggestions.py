# SPDX-License-Identifier: Apache-2.0
"""Known names that are close to an unknown one, for the end of a message."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The known names that are close to an unknown one, or else all of them, for the end of a message."""
    names = sorted(known)
    return _close(name, names) or f"there are {', '.join(names)}"


def listed_by(command: str, name: str, known: Iterable[str]) -> str:
    """The known names that are close to an unknown one, and the command that lists all, for the end of a message."""
    return f'{_close(name, sorted(known))} "{command}" lists them'.lstrip()


def _close(name: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, names, n=3)
    return f"did you mean {' or '.join(close)}?" if close else ""
