# SPDX-License-Identifier: Apache-2.0
"""A shell command run to its end, timed, and killed with all it started in the foreground when it takes too long."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from natgauge.bounded_output import BoundedOutput, size_in_words
from natgauge.errors import BrokenError, HostError, NatgaugeError
from natgauge.host import process_files
from natgauge.labs.contract import CommandResult

#: Variables of every snippet of a device beside PATH. No name server answers in a lab's namespace, and a program that
#: asks one for the host's name as it starts (Knot DNS does) would wait 10 s; one question and one second must do.
SNIPPET_VARIABLES: Final = {"LC_ALL": "C", "RES_OPTIONS": "timeout:1 attempts:1"}


def run_shell(
    start: Callable[[int, int], subprocess.Popen[bytes]], timeout: float, command: str
) -> CommandResult | None:
    """Return the result of a command; None when it did not end in time and was killed.

    Args:
        start: starts the command in a session of its own, with these descriptors for its output and its errors.
    """
    with BoundedOutput() as out, BoundedOutput() as err:
        begin = time.perf_counter()
        process = start(out.fileno(), err.fileno())
        try:
            # Without the polling of `Popen.wait`, which would add up to 50 ms to what is measured.
            if ended := process_files.ends(process.pid, timeout):
                process.wait()
        finally:
            if process.returncode is None:
                # With what it started in the foreground.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        seconds = time.perf_counter() - begin
        if full := next((stream for stream in (out, err) if stream.is_full), None):
            raise BrokenError(
                f"{command} printed more than {size_in_words(full.most)}, and no more is stored; let it print less, "
                "for example by > /dev/null"
            )
        return CommandResult(process.returncode, out.text(), err.text(), seconds) if ended else None


def run_of_user(  # noqa: PLR0913 - one argument per choice, the rare ones by keyword
    command: str,
    timeout: float,
    name: str,
    environment: Mapping[str, str] | None = None,
    *,
    error: type[NatgaugeError] = HostError,
    remedy: str = "see that it asks nothing",
) -> CommandResult:
    """Run a shell command of the user on this host, as `run_shell`, and return the result of one that succeeded.

    `error` is raised where it failed, or did not end within `timeout` seconds.
    """
    own: dict[str, Any] = {"stdin": subprocess.DEVNULL, "env": environment, "start_new_session": True}

    def start(out: int, err: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(["/bin/sh", "-c", command], stdout=out, stderr=err, **own)

    result = run_shell(start, timeout, name)
    if result is None:
        raise error(f"{name}: did not end within {timeout:g} s; {remedy}")
    if result.status:
        said = f": {result.said[:200]}" if result.said else ""
        raise error(f"{name}: failed with exit status {result.status}{said}")
    return result


def title(snippet: str) -> str:
    """The first line of a snippet that says something."""
    return next((line.strip() for line in snippet.splitlines() if line.strip()), "")[:60]


def last_words(output: str) -> str:
    """The last line that says something; empty when none does."""
    return next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "")
