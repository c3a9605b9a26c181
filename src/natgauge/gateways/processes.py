# SPDX-License-Identifier: Apache-2.0
"""A gateway's own processes: shell text starts, watches and ends them on the machine that runs the device's snippets.

The parent of each process is a shell that exits with the process and writes down how it ended. So natgauge learns of an
end at once and reliably, also on another machine and after the system has reused the process number. Where the machine
has setsid, a process has a group of its own, and what it forked into that group ends with it: a worker left behind
would answer beside the next server.
"""

from __future__ import annotations

import re
import shlex
import signal
from typing import Annotated, Final

from pydantic import Field

from natgauge.gateways.recipe_model import RecipeTable, Snippet
from natgauge.labs.common.shell import last_words

#: Lines of its log that are brought home when it has ended.
_LAST_LINES: Final = 5
_SAID_LENGTH: Final = 200
_MARK: Final = "natgauge-end "
#: Word behind the exit status where the core dump lacks its end.
_CUT: Final = "cut"
#: Octets of a part of the log, at most, and reads that fill it. A log has three parts: the last ones that were printed.
_PART_OCTETS: Final = 4096 * 1024
#: What the names of its files end in: its number, its end, the room for a core dump, and the parts of its log.
_FILES: Final = ("pid", "end", "most", "logging", "log", "log.1", "log.2")
#: Of a core dump, KiB at most, and the share of the room that the private directory has when the process starts.
_CORE_KIB: Final = 256 * 1024
_CORE_PART: Final = 4


class Process(RecipeTable):
    """A program that runs for as long as its gateway.

    Attributes:
        name: name of its files in the device's private directory: NAME.pid, NAME.log (NAME.log.1 and NAME.log.2 are
            what it printed before).
        command: shell text that starts it in the foreground; the last command replaces the shell.
        handles_frames: whether frames go through it; false for a program that only instructs the kernel.
        noise: lines of its log that do not explain its end, an extended regular expression (frames of a stack).
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,32}$")]
    command: Snippet
    ready_seconds: Annotated[int, Field(ge=1, le=600)] = 10
    stop_seconds: Annotated[int, Field(ge=1, le=600)] = 5
    noise: Annotated[str, Field(pattern=r"^[^\n]+$")] | None = None
    handles_frames: bool = True

    @property
    def files(self) -> frozenset[str]:
        """Names of all its files in the device's private directory."""
        return frozenset(f"{self.name}.{kind}" for kind in _FILES)

    @property
    def start(self) -> str:
        """Shell text that starts the program with core dumps enabled, and returns when its number is known."""
        name = self.name
        # Its log is its own: the shell above it has a word for each signal, too.
        run = f"exec 2>&1 < /dev/null\necho $$ > {name}.pid\nexec {self.command.strip()}"
        watched = f"""
own=$(command -v setsid) || own=
$own /bin/sh -euc {shlex.quote(run)} && status=0 || status=$?
{self._end_group}
echo "$status" > {name}.end
"""
        # A shell of its own, not a part of this one: in that mksh would keep the caller's output open, and who reads it
        # would wait until all has ended. `ulimit` counts blocks of 512 octets (POSIX). It waits for the number: a
        # session has a priority of its own (autogroup), written to the processes that are there when this text ends.
        return f"""
cd "$NG_WORK"
rm -f {name}.pid {name}.end {name}.log {name}.log.1 {name}.log.2
room=$(df -Pk . 2> /dev/null | tail -n 1 | {{ read -r _ _ _ free _ && echo "$((free / {_CORE_PART}))"; }}) || room=
case $room in '' | *[!0-9]*) room={_CORE_KIB} ;; esac
if [ "$room" -gt {_CORE_KIB} ]; then room={_CORE_KIB}; fi
echo "$room" > {name}.most
ulimit -c "$((room * 2))" 2> /dev/null || true
: > {name}.logging
/bin/sh -euc {shlex.quote(f"{{ {watched}}} | {{ {self._log}}}")} > /dev/null 2>&1 &
tries=100
while [ ! -s {name}.pid ] && [ ! -e {name}.end ] && [ "$tries" -gt 0 ]; do tries=$((tries - 1)); sleep 0.02; done
"""

    @property
    def _end_group(self) -> str:
        """Shell text that kills what is left of the process's own group; its first process may just have ended.

        A group has the number of a process only if that process made it, and keeps the number as long as a member
        runs. So without a group of its own nothing is killed.
        """
        return f"""
group=$(cat {self.name}.pid 2> /dev/null) || group=
if [ "${{group:-0}}" -gt 1 ]; then kill -s KILL -- "-$group" 2> /dev/null || true; fi
"""

    @property
    def _log(self) -> str:
        """Shell text that stores the end of its input in the log, however long the input is.

        A log that cannot be written does not stop the process.
        """
        log = f"{self.name}.log"
        return f"""
while dd bs=4096 count={_PART_OCTETS // 4096} of={log} 2> /dev/null || {{ cat > /dev/null; false; }}; do
    if [ ! -s {log} ]; then
        if [ -e {log}.1 ]; then mv -f {log}.1 {log}; fi
        break
    fi
    if [ -e {log}.1 ]; then mv -f {log}.1 {log}.2; fi
    mv -f {log} {log}.1
done
rm -f {self.name}.logging
"""

    @property
    def _logged(self) -> str:
        """Shell text that waits until the log has all that an ended process printed.

        A process that it left behind may print for longer.
        """
        return f"""
tries=10
while [ -e {self.name}.logging ] && [ "$tries" -gt 0 ]; do tries=$((tries - 1)); sleep 0.1; done
"""

    @property
    def status_command(self) -> str:
        """Shell text that prints nothing while it runs, and else what `ended` reads."""
        name = self.name
        words = "grep ." if self.noise is None else f"grep -Ev {shlex.quote(f'^[[:space:]]*$|{self.noise}')}"
        # The kernel stops before the page that does not fit.
        return f"""
cd "$NG_WORK"
if [ ! -e {name}.end ]; then
    if [ ! -s {name}.pid ] || kill -0 "$(cat {name}.pid)" 2> /dev/null; then exit; fi
fi
{self._logged}
core=$(ls -t core* 2> /dev/null | head -n 1)
cut=
if [ -n "$core" ] && [ "$(du -k "$core" | cut -f 1)" -ge "$(($(cat {name}.most) - 64))" ]; then cut=" {_CUT}"; fi
echo "{_MARK}$(cat {name}.end 2> /dev/null)$cut"
if [ -n "$core" ]; then echo "$NG_WORK/$core"; else cat /proc/sys/kernel/core_pattern 2> /dev/null || echo core; fi
cat {name}.log.2 {name}.log.1 {name}.log 2> /dev/null | tr -d '\\000' | {words} | tail -n {_LAST_LINES} || true
"""

    @property
    def stop(self) -> str:
        """Shell text that ends it and its group, and leaves none of its files; succeeds also when there is none."""
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
    # Nobody else does it where the shell above it was killed.
    if [ ! -e {self.name}.end ]; then {self._end_group} fi
fi
{self._logged}
rm -f {self.name}.pid {self.name}.end {self.name}.most {self.name}.logging
rm -f {self.name}.log {self.name}.log.1 {self.name}.log.2
"""

    def ended(self, text: str) -> str | None:
        """Return how the process ended, in words, from the output of `status_command`; None while it runs."""
        lines = text.splitlines()
        if not lines or not lines[0].startswith(_MARK.strip()):
            return None
        status, _, cut = lines[0].removeprefix(_MARK.strip()).strip().partition(" ")
        core = lines[1] if len(lines) > 1 else ""
        output = last_words("\n".join(lines[2:]))
        last = f"; it last said: {output[:_SAID_LENGTH]}" if output else "; it said nothing"
        return f"{self.name} {_how(status, core, cut=cut == _CUT)}{last}"


def _how(status: str, core: str, *, cut: bool) -> str:
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
        lacking = ", without its end: there was no room for all of it" if cut else ""
        return f"was ended by {name} (core dump: {core}{lacking})"
    where = "core dump handed to " + core[1:].strip() if core.startswith("|") else f"no core dump found; pattern {core}"
    return f"was ended by {name} ({where})"


#: Signals that dump core unless something is done about them (signal(7)).
_DUMPING: Final = frozenset(
    {"SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGSEGV", "SIGXCPU", "SIGSYS"}
)
