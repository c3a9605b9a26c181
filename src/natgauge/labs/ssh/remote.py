# SPDX-License-Identifier: Apache-2.0
"""Another machine used by one lab: locked, changed by commands, and finally restored; its devices.

One natgauge at a time uses a machine, whichever tester it runs on. The lock is a symbolic link on that machine, which
names the lab. A command runs only while the link is this lab's, and is recorded there while it runs. To release the
machine, this process (or `natgauge lab clean` after a kill) first removes the link, then ends running commands, and
only then undoes the changes: so no command can make further changes during the release.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final

from natgauge import table_memory
from natgauge.errors import BrokenError, HostError
from natgauge.host.limits import memory_octets
from natgauge.host.settings import MachineSetting
from natgauge.labs.common.shell import SNIPPET_VARIABLES, title
from natgauge.labs.contract import CommandResult
from natgauge.labs.ssh.openssh import LOST, Connection, SshHost, explained, run_once
from natgauge.table_memory import ObjectCaches

#: The machine's folder with the files of the lab; the lock is next to it. Empty after a reboot, as what was made is.
DIRECTORY: Final = "/var/run/natgauge-device"
_LOCK: Final = f"{DIRECTORY}.lock"
_CLOSING: Final = f"{DIRECTORY}.closing"
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

#: Seconds in addition to the snippet's own time limit, for the connection and the transfer of its output.
_SLACK_SECONDS: Final = 5.0
UNDO_SECONDS: Final = 120.0
_ANSWER: Final = re.compile(r"^natgauge-answer (\d+) (\S*) (\S*)\n", re.MULTILINE)
#: Between the errors and the output of a snippet, which may be long and are cut at their ends.
_BETWEEN: Final = "\nnatgauge-output\n"
_NOT_OURS: Final = "natgauge-not-ours"
_TAKEN: Final = "natgauge-taken"
_GIVEN_BACK: Final = "natgauge-given-back"
#: Prints the start time of a process, which distinguishes it from a later one of the same number: field 22 of `stat`
#: (proc_pid_stat(5)). It prints nothing where there is no such process, or no such file, as on BSD.
_START_OF: Final = (
    'start_of() { { read -r stat < "/proc/$1/stat" && set -- ${stat##*) } && echo "${20}"; } 2> /dev/null || true; }\n'
)
#: Nanoseconds since 1970; a `date` without them prints something else.
_CLOCK: Final = re.compile(r"\d{19}")


class Remote:
    """A machine that a lab works on over a lasting connection.

    Attributes:
        token: what the lock there says while the lab has the machine; no other lab, and no other machine, ever has it.
        forgotten: called when the machine has nothing of the lab any more (it was rebooted); it makes there again
            what must be there, by commands of its own. None = that is an error.
    """

    def __init__(self, host: SshHost, token: str, control: Path) -> None:
        """Nothing is done yet. The token is "TESTER:LAB:DIGITS:NUMBER", without blanks and slashes."""
        self.host = host
        self.forgotten: Callable[[], None] | None = None
        self.token = token
        self._connection = Connection(host, control)
        self._numbers = count(1)

    def ask(self, script: str, seconds: float = 30.0) -> str:
        """Return the output of a script that only reads; the machine need not be locked."""
        result = self._connection.run(_grouped(f"PATH={PATH}; LC_ALL=C; export PATH LC_ALL\n{script}"), seconds)
        if result.status:
            raise BrokenError(f"ssh host {self.host}: cannot be looked at ({result.said or result.status})")
        return result.stdout

    def take(self) -> None:
        """Take the machine for this lab, and make the lab's directory there."""
        # A link is made at once or not at all, with what it says; `ln` would follow one to a directory.
        script = (
            f"PATH={PATH}; export PATH\n"
            f"for lock in {_LOCK} {_CLOSING}; do\n"
            '    holder=$(readlink "$lock") || continue\n'
            f'    [ "$holder" = {self.token} ] || {{ echo "{_TAKEN} $holder"; exit; }}\n'
            "done\n"
            f"ln -s {self.token} {_LOCK} 2> /dev/null; holder=$(readlink {_LOCK}) || exit 3\n"
            f'[ "$holder" = {self.token} ] || {{ echo "{_TAKEN} $holder"; exit; }}\n'
            f"umask 077; mkdir -p {DIRECTORY} || exit 3\n"
        )
        result = self._connection.run(_grouped(script), 30.0)
        if _TAKEN in result.stdout:
            holder = result.stdout.split(_TAKEN, 1)[1].strip()
            if holder.rpartition(":")[0] == self.token.rpartition(":")[0]:
                raise HostError(
                    f"ssh host {self.host}: is taken by this lab already, by another name or way; give all of its "
                    "devices, which must be neighbours in the chain, the same --ssh-host and --ssh-netns"
                )
            tester, _, lab = holder.partition(":")
            raise HostError(
                f"ssh host {self.host}: is used by natgauge on {tester} (lab {lab.partition(':')[0]}); wait until that "
                f'has ended; if it was killed, run "natgauge lab clean" there, or, if {tester} was rebooted since, '
                f"reboot {self.host}"
            )
        if result.status == LOST:
            raise HostError(f"{explained(self.host, result.stderr)}; the connection was lost")
        if result.status:
            raise HostError(f"ssh host {self.host}: {DIRECTORY} cannot be made ({result.said}); log in as root there")

    def run(
        self, snippet: str, seconds: float, *, variables: Mapping[str, str] | None = None, netns: str | None = None
    ) -> CommandResult:
        """Run a POSIX shell snippet (`sh -eu`) on the machine with `variables`, PATH and `SNIPPET_VARIABLES` only.

        The result's seconds are those of the machine, where its `date` is precise enough; else they include the
        connection.
        """
        number = next(self._numbers)
        script = wrapped(snippet, self.token, number, {"PATH": PATH, **SNIPPET_VARIABLES, **(variables or {})}, netns)
        try:
            result = self._connection.run(script, seconds + _SLACK_SECONDS)
        except BrokenError:
            self._kill(number)
            raise BrokenError(
                f"ssh host {self.host}: snippet {title(snippet)!r} did not end within {seconds:g} s and was killed"
            ) from None
        if _NOT_OURS in result.stdout and not _ANSWER.search(result.stdout):
            forgotten, self.forgotten = self.forgotten, None
            if forgotten is None:
                raise BrokenError(f"ssh host {self.host}: has forgotten the lab; was it rebooted, or cleaned?")
            try:
                forgotten()
                return self.run(snippet, seconds, variables=variables, netns=netns)
            finally:
                self.forgotten = forgotten
        answer = _unwrapped(result)
        if answer is None:
            # What it began may go on over there, and must not act when the snippet is run again.
            self._kill(number)
            raise BrokenError(f"{explained(self.host, result.stderr)}; the connection was lost")
        return answer

    def close(self) -> None:
        """Close the connection to the machine."""
        self._connection.close()

    def _kill(self, number: int) -> None:
        """End a command whose result is no longer needed, and its children in the foreground."""
        try:
            self._connection.run(_grouped(f"PATH={PATH}\n{_kill_running(str(number))}"), 20.0)
        except (BrokenError, HostError):
            # It is written down over there, and is ended when the machine is given back.
            return


def give_back(host: SshHost, token: str, undo: Sequence[str]) -> bool:
    """Undo what a lab made on a machine, in this order, and let go of it; nothing happens where it is not this lab's.

    Args:
        undo: shell snippets, each of which succeeds also when there is nothing to undo.
    """
    steps = "\n".join(f"( set -eu\n{snippet}\n) >&2 || failed=$((failed + 1))" for snippet in undo)
    script = (
        f"PATH={PATH}; LC_ALL=C; export PATH LC_ALL; cd /\n"
        f'if [ "$(readlink {_LOCK})" = {token} ]; then mv {_LOCK} {_CLOSING}; fi\n'
        f'[ "$(readlink {_CLOSING})" = {token} ] || exit 0\n'
        f"{_kill_running('*')}\n"
        f"failed=0\n{steps}\n"
        f'[ "$failed" = 0 ] || exit 4\n'
        f"rm -rf {DIRECTORY}\nrm -f {_CLOSING}\necho {_GIVEN_BACK}\n"
    )
    result = run_once(host, _grouped(script), UNDO_SECONDS)
    if result.status:
        raise BrokenError(f"ssh host {host}: not all could be undone ({result.said})")
    return _GIVEN_BACK in result.stdout


def wrapped(snippet: str, token: str, number: int, variables: Mapping[str, str], netns: str | None = None) -> str:
    """The script that runs a snippet over there: guarded, timed, its output kept apart from all else.

    Its output goes to files: what the snippet leaves running would otherwise hold the connection open.
    """
    out, err, running = (f"{DIRECTORY}/{kind}.{number}" for kind in ("out", "err", "run"))
    enter = [] if netns is None else ["ip", "netns", "exec", netns]
    values = [f"{name}={value}" for name, value in variables.items()]
    place = variables.get("NG_WORK", "/")
    command = shlex.join([*enter, "env", "-i", *values, "/bin/sh", "-eu", "-c", snippet])
    return _grouped(
        f"PATH={PATH}; export PATH; umask 022\n"
        f'{_START_OF}{{ echo "$$ $(start_of $$)" > {running}; }} 2> /dev/null\n'
        f'if [ "$(readlink {_LOCK})" != {token} ]; then rm -f {running}; echo {_NOT_OURS}; exit; fi\n'
        f"cd {shlex.quote(place)} || cd /\n"
        "began=$(date +%s%N)\n"
        f"{command} < /dev/null > {out} 2> {err} && status=0 || status=$?\n"
        "ended=$(date +%s%N)\n"
        # The connection may be lost; the snippet, which has ended, would have inherited this.
        "trap '' PIPE\n"
        'echo "natgauge-answer $status $began $ended"\n'
        f"cat {err}; printf '{_BETWEEN.encode('unicode_escape').decode()}'; cat {out}\n"
        f"rm -f {out} {err} {running}\n"
    )


def _grouped(script: str) -> str:
    """The shell has read all of it before it runs the first word: none is left for a command that reads its input."""
    return f"{{\n{script}\nexit\n}}\n"


def _kill_running(which: str) -> str:
    """Commands of this lab that run still; each is the leader of a session, as sshd makes it."""
    return (
        f"{_START_OF}for file in {DIRECTORY}/run.{which}; do\n"
        '    [ -s "$file" ] || continue\n'
        '    read -r leader since < "$file"\n'
        '    if [ "$(start_of "$leader")" = "$since" ] || [ -z "$since" ] || [ ! -e "/proc/$leader" ]; then\n'
        '        kill -s KILL -- "-$leader" 2> /dev/null || kill -s KILL "$leader" 2> /dev/null || true\n'
        "    fi\n"
        '    rm -f "$file"\n'
        "done"
    )


def _unwrapped(result: CommandResult) -> CommandResult | None:
    """Return the result of the snippet; None where the machine did not run it to its end."""
    match = _ANSWER.search(result.stdout)
    if match is None:
        return None
    err, _, out = result.stdout[match.end() :].partition(_BETWEEN)
    seconds = result.seconds
    if _CLOCK.fullmatch(match[2]) and _CLOCK.fullmatch(match[3]):
        # If the machine's clock was set during the run, the duration is impossible.
        over_there = (int(match[3]) - int(match[2])) / 1e9
        seconds = over_there if 0 <= over_there <= result.seconds else result.seconds
    return CommandResult(int(match[1]), out, err, seconds)


#: Records how to undo a change before it is made: the shell text, and the sentence to print then.
Remember = Callable[[str, str], None]


class RemoteMachine:
    """A machine locked by one lab, so no other natgauge changes its settings at the same time."""

    has_tester_files: bool = False

    def __init__(self, remote: Remote, remember: Remember) -> None:
        self.system = "Linux"
        self._remote = remote
        self._remember = remember

    def free_octets(self) -> int:
        """Return MemAvailable of the machine; on systems other than Linux, free and inactive memory."""
        if self.system != "Linux":
            octets = _of_pages(self._remote.run("vmstat -s", 30.0).stdout)
            if octets is None:
                raise HostError(f"ssh host {self._remote.host}: its `vmstat -s` prints no free pages")
            return octets
        octets = memory_octets("MemAvailable", self._remote.run("cat /proc/meminfo", 30.0).stdout)
        if octets is None:
            raise HostError(f"ssh host {self._remote.host}: its /proc/meminfo has no MemAvailable")
        return octets

    def object_caches(self) -> ObjectCaches:
        """Return the object caches of a Linux kernel; empty where they are not readable."""
        return table_memory.read(self._remote.run("cat /proc/slabinfo 2> /dev/null || :", 30.0).stdout)

    def setting(self, name: str, paths: Sequence[str], module: str | None) -> RemoteSetting:
        """A global setting of it; nothing is touched yet."""
        return RemoteSetting(self._remote, self._remember, name, paths, module)


def _of_pages(text: str) -> int | None:
    """Octets that can be had, of what vmstat(8) -s prints on OpenBSD and FreeBSD; None where it does not say."""
    pages = {
        what: int(number) for number, what in re.findall(r"^\s*(\d+) (bytes per page|pages \w+)$", text, re.MULTILINE)
    }
    if "bytes per page" not in pages or "pages free" not in pages:
        return None
    return pages["bytes per page"] * (pages["pages free"] + pages.get("pages inactive", 0))


class RemoteSetting(MachineSetting):
    """A global setting of another machine, which its lock keeps from other natgauge processes."""

    def __init__(self, remote: Remote, remember: Remember, name: str, paths: Sequence[str], module: str | None) -> None:
        super().__init__(name, paths, module, f" of ssh host {remote.host}")
        self._remote = remote
        self._remember_undo = remember
        self._remembered: set[Path] = set()

    def available(self) -> bool:
        """Whether the machine has the setting; a missing kernel module is loaded first."""
        condition = " && ".join(f"[ -e {shlex.quote(str(path))} ]" for path in self.paths)
        load = f"modprobe {shlex.quote(self.module)} 2> /dev/null" if self.module else "false"
        return self._remote.run(f"{{ {condition}; }} || {{ {load} && {condition}; }}", 30.0).status == 0

    def values(self) -> dict[Path, int]:
        """The present values by their files."""
        result = self._cat()
        if result.status and self.available():
            result = self._cat()
        if result.status:
            hint = f'try "modprobe {self.module}" there' if self.module else "use another kernel there"
            raise HostError(f"{self.name}: cannot be read ({result.said}); {hint}")
        try:
            values = [int(line) for line in result.stdout.split()]
            return dict(zip(self.paths, values, strict=True))
        except ValueError as error:
            raise HostError(f"{self.name}: cannot be read ({error})") from error

    def _remember(self, path: Path, value: int) -> None:
        if path in self._remembered:
            return
        quoted = shlex.quote(str(path))
        self._remember_undo(
            f'[ "$(cat {quoted})" = {value} ] || echo {value} > {quoted}',
            f"restored {path} of {self._remote.host} to {value}",
        )
        self._remembered.add(path)

    def _put(self, path: Path, value: int) -> None:
        result = self._remote.run(f"echo {value} > {shlex.quote(str(path))}", 60.0)
        if result.status:
            raise HostError(
                f"{self.name}: {path} cannot be set to {value} ({result.said}); log in as root there, outside of "
                "containers and network namespaces"
            )

    def _cat(self) -> CommandResult:
        return self._remote.run(f"cat {shlex.join(map(str, self.paths))}", 30.0)


@dataclass(slots=True)
class RemoteDevice:
    """A device on another machine (see `natgauge.labs.contract.Device`).

    Attributes:
        netns: the machine's namespace that is the device; None = the machine itself.
    """

    name: str
    netns: str | None
    inside: str
    outside: str
    environment: Mapping[str, str]
    remote: Remote = field(compare=False)
    machine: RemoteMachine = field(compare=False)

    def run(
        self, snippet: str, *, environment: Mapping[str, str] | None = None, timeout: float = 60.0
    ) -> CommandResult:
        """Run a POSIX shell snippet (`sh -eu`) in the device's place over there, in its private directory.

        `timeout` is in seconds of that machine. Programs that the snippet leaves running end with the lab.
        """
        variables = {**self.environment, **(environment or {})}
        try:
            return self.remote.run(snippet, timeout, variables=variables, netns=self.netns)
        except HostError as error:
            # For the driver of a gateway, the device does not answer.
            raise BrokenError(f"device {self.name}: {error}") from error

    def frame_processes(self) -> tuple[str, ...]:
        """Return nothing: no core of this machine works for the device, so nothing depends on it."""
        return ()
