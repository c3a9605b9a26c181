# SPDX-License-Identifier: Apache-2.0
"""A gateway's own processes: shell text starts, watches and ends them on the machine that runs the device's snippets.

The parent of each process is a shell that exits with the process and writes down how it ended. So natgauge learns of an
end at once and reliably, also on another machine and after the system has reused the process number.
"""

from __future__ import annotations

import re
import shlex
import signal
from typing import Annotated, Final

from pydantic import Field

from natgauge.duts.recipe_model import RecipeTable, Snippet
from natgauge.labs.common.shell import last_words

#: Lines of its log that are brought home when it has ended.
_LAST_LINES: Final = 5
_SAID_LENGTH: Final = 200
_MARK: Final = "natgauge-end "


class Process(RecipeTable):
    """A program that runs for as long as its gateway.

    Attributes:
        name: name of its files in the device's private directory: NAME.pid, NAME.log.
        command: shell text that starts it in the foreground; the last command replaces the shell.
        ready_seconds: longest time until the gateway is ready (the verb `check`).
        stop_seconds: longest time from SIGTERM to its end; then it is killed.
        noise: lines of its log that do not explain its end, an extended regular expression (frames of a stack).
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,32}$")]
    command: Snippet
    ready_seconds: Annotated[int, Field(ge=1, le=600)] = 10
    stop_seconds: Annotated[int, Field(ge=1, le=600)] = 5
    noise: Annotated[str, Field(pattern=r"^[^\n]+$")] | None = None

    @property
    def start(self) -> str:
        """Shell text that starts the program with core dumps enabled, and returns at once."""
        # Its log is its own: the shell above it has a word for each signal, too.
        run = f"exec > {self.name}.log 2>&1 < /dev/null\necho $$ > {self.name}.pid\nexec {self.command.strip()}"
        watch = f'/bin/sh -euc {shlex.quote(run)} && status=0 || status=$?\necho "$status" > {self.name}.end'
        # A shell of its own, not a part of this one: in that mksh would keep the caller's output open, and who reads it
        # would wait until all has ended.
        return f"""
cd "$NG_WORK"
rm -f {self.name}.pid {self.name}.end
ulimit -c unlimited 2> /dev/null || true
/bin/sh -euc {shlex.quote(watch)} > /dev/null 2>&1 &
"""

    @property
    def status_command(self) -> str:
        """Shell text that prints nothing while it runs, and else what `ended` reads."""
        words = "grep ." if self.noise is None else f"grep -Ev {shlex.quote(f'^[[:space:]]*$|{self.noise}')}"
        return f"""
cd "$NG_WORK"
if [ ! -e {self.name}.end ]; then
    if [ ! -s {self.name}.pid ] || kill -0 "$(cat {self.name}.pid)" 2> /dev/null; then exit; fi
fi
echo "{_MARK}$(cat {self.name}.end 2> /dev/null)"
core=$(ls -t core* 2> /dev/null | head -n 1)
if [ -n "$core" ]; then echo "$NG_WORK/$core"; else cat /proc/sys/kernel/core_pattern 2> /dev/null || echo core; fi
{words} {self.name}.log 2> /dev/null | tail -n {_LAST_LINES} || true
"""

    @property
    def stop(self) -> str:
        """Shell text that ends it and leaves none of its files; succeeds also when there is none."""
        return f"""
cd "$NG_WORK" 2> /dev/null || exit 0
if [ -s {self.name}.pid ] && [ ! -e {self.name}.end ]; then
    pid=$(cat {self.name}.pid)
    kill "$pid" 2> /dev/null || true
    tries={self.stop_seconds * 10}
    while kill -0 "$pid" 2> /dev/null || [ ! -e {self.name}.end ]; do
        if [ "$tries" -eq 0 ]; then kill -s KILL "$pid" 2> /dev/null || true; fi
        if [ "$tries" -le -20 ]; then
            if kill -0 "$pid" 2> /dev/null; then echo "{self.name}, process $pid, does not end" >&2; exit 1; fi
            break
        fi
        tries=$((tries - 1))
        sleep 0.1
    done
fi
rm -f {self.name}.pid {self.name}.end {self.name}.log
"""

    def ended(self, text: str) -> str | None:
        """Return how the process ended, in words, from the output of `look`; None while it runs."""
        lines = text.splitlines()
        if not lines or not lines[0].startswith(_MARK.strip()):
            return None
        status = lines[0].removeprefix(_MARK.strip()).strip()
        core = lines[1] if len(lines) > 1 else ""
        output = last_words("\n".join(lines[2:]))
        last = f"; it last said: {output[:_SAID_LENGTH]}" if output else "; it said nothing"
        return f"{self.name} {_how(status, core)}{last}"


def _how(status: str, core: str) -> str:
    """Return the end of a process in words: a shell reports a signal as 128 + its number."""
    if not re.fullmatch(r"\d+", status):
        return "is gone, and nobody saw how"
    number = int(status)
    if number <= 128:
        return f"ended with exit status {number}"
    try:
        name = signal.Signals(number - 128).name
    except ValueError:
        name = f"signal {number - 128}"
    if name not in _DUMPING:
        return f"was ended by {name}"
    if core.startswith("/"):
        return f"was ended by {name} (core dump: {core})"
    where = "core dump handed to " + core[1:].strip() if core.startswith("|") else f"no core dump found; pattern {core}"
    return f"was ended by {name} ({where})"


#: Signals that dump core unless something is done about them (signal(7)).
_DUMPING: Final = frozenset(
    {"SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGSEGV", "SIGXCPU", "SIGSYS"}
)
