# SPDX-License-Identifier: Apache-2.0
"""Unexpected exceptions as errors for the user, in one line each; a traceback is written where natgauge is at fault."""

from __future__ import annotations

import errno
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from natgauge.errors import FaultError, HostError, NatgaugeError, UsageError
from natgauge.system_errors import FULL, in_a_line, of_host

#: Errors of paths that can be none, and of file systems that fail.
_OF_PATHS: Final = frozenset({errno.ENAMETOOLONG, errno.ELOOP})
_OF_DISKS: Final = frozenset({errno.EIO, errno.ESTALE})


def fault(error: Exception, places: Iterable[Path]) -> NatgaugeError:
    """Return a one-line error for an unexpected exception; write its traceback to the first writable place.

    A full disk is no fault of natgauge, wherever it shows, nor is a path that cannot be used, nor another refusal of
    the system: such errors have no traceback.
    """
    if isinstance(error, OSError) and error.errno in FULL:
        where = error.filename or "standard output or a temporary file"
        return HostError(f"{where}: cannot be written: {error.strerror}; make room, then try again")
    if (refused := of_host(error)) is not None:
        return refused
    if isinstance(error, OSError) and error.filename is not None and error.errno in (_OF_PATHS | _OF_DISKS):
        kind = UsageError if error.errno in _OF_PATHS else HostError
        where = error.filename if isinstance(error.filename, str) else repr(error.filename)
        return kind(f"{where}: cannot be used: {error.strerror}; name another path, or see that it may be used")
    line = f"a fault of natgauge, not of your question: {type(error).__name__}: {in_a_line(error)}; "
    text = "".join(traceback.format_exception(error))
    for place in places:
        try:
            # The name can be guessed, and the folder may be everybody's: a link that waits there is not followed.
            place.unlink(missing_ok=True)
            with place.open("x", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except OSError:
            continue
        return FaultError(f"{line}please report it with its traceback: {place}")
    return FaultError(f"{line}please report it; its traceback could be written nowhere")
