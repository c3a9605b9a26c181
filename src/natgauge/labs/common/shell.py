# SPDX-License-Identifier: Apache-2.0
"""A shell command run to its end, timed, and killed with all it started in the foreground when it takes too long."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO

from natgauge import files
from natgauge.labs.contract import CommandResult

#: Octets kept of each stream of a command: its beginning.
_KEPT_OCTETS = 4 * 1024 * 1024


def run_shell(start: Callable[[IO[bytes], IO[bytes]], subprocess.Popen[bytes]], timeout: float) -> CommandResult | None:
    """Return the result of a command; None when it did not end in time and was killed.

    Args:
        start: starts the command in a session of its own, with these files for its output and its errors.
        timeout: time limit in seconds, > 0.
    """
    # Files, not pipes: a daemon started by the command would hold a pipe open for ever.
    with files.in_memory() as out, files.in_memory() as err:
        begin = time.perf_counter()
        process = start(out, err)
        try:
            ended = _wait(process, timeout)
        finally:
            _kill_group(process)
        seconds = time.perf_counter() - begin
        return CommandResult(process.returncode, _text(out), _text(err), seconds) if ended else None


def title(snippet: str) -> str:
    """The first line of a snippet that says something."""
    return next((line.strip() for line in snippet.splitlines() if line.strip()), "")[:60]


def last_words(output: str) -> str:
    """The last line that says something; empty when none does."""
    return next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "")


def _wait(process: subprocess.Popen[bytes], timeout: float) -> bool:
    """Wait for the end without the polling of `Popen.wait`, which would add up to 50 ms to what is measured."""
    handle = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        if not poll.poll(timeout * 1000):
            return False
    finally:
        os.close(handle)
    process.wait()
    return True


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a command that has not ended, with what it started in the foreground."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(_KEPT_OCTETS).decode(errors="replace")
