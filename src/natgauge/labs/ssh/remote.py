# SPDX-License-Identifier: Apache-2.0
"""Another machine used by one lab: reached over OpenSSH, locked, changed by commands, and restored; its devices.

Scripts run there with the system's `ssh`, which has the user's keys, hosts and jumps. `ssh` prompts for nothing
(`BatchMode`), and refuses a machine whose host key is unknown or has changed. The machine needs a POSIX `/bin/sh`; the
login shell may be any with `exec`.

One natgauge at a time uses a machine, whichever tester it runs on. The lock is a symbolic link on that machine, which
names the lab. A command runs only while the link is this lab's, and is recorded there while it runs. To release the
machine, this process (or `natgauge lab clean` after a kill) first removes the link, then ends running commands, and
only then undoes the changes: so no command can make further changes during the release.
"""

from __future__ import annotations

import os
import re
import select
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import IO, Final

from natgauge import device_work, file_access
from natgauge.bounded_output import BoundedOutput
from natgauge.device_work import ObjectCaches
from natgauge.errors import BrokenError, HostError
from natgauge.host.capabilities import memory_octets
from natgauge.host.settings import MachineSetting
from natgauge.inputs.input import wrong
from natgauge.labs.common.namespaces import inside
from natgauge.labs.common.processes import all_processes, end_processes
from natgauge.labs.common.shell import SNIPPET_VARIABLES, last_words, run_shell, title
from natgauge.labs.contract import CommandResult

#: How long a machine may take to answer at all, and then to let us in.
_CONNECT_SECONDS: Final = 10
_LOGIN_SECONDS: Final = 30.0
#: A machine that is silent for three of these is gone.
_ALIVE_SECONDS: Final = 3
#: `ssh` ends with this status when it could not reach the far side or lost it (ssh(1)).
LOST: Final = 255
#: The socket of a lab's connection, in the lab's folder.
CONTROL: Final = "ssh"
_GREETING: Final = "natgauge-connected"

_OPTIONS: Final = (
    "BatchMode=yes", "StrictHostKeyChecking=yes", f"ConnectTimeout={_CONNECT_SECONDS}", "ConnectionAttempts=1",
    f"ServerAliveInterval={_ALIVE_SECONDS}", "ServerAliveCountMax=3", "LogLevel=ERROR", "RequestTTY=no",
    "RemoteCommand=none", "ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes", "PermitLocalCommand=no",
    "ControlPersist=no", "UpdateHostKeys=no",
)  # fmt: skip

#: What `ssh` says, and what that means to the user; {host} and {said} are filled in.
_MEANINGS: Final[tuple[tuple[str, str], ...]] = (
    (
        r"REMOTE HOST IDENTIFICATION HAS CHANGED|host key for .* has changed",
        "its host key has changed; when that is right, forget the old one with ssh-keygen -R and log in once by hand",
    ),
    (r"Host key verification failed|host key is known for", "its host key is not known here; log in once by hand"),
    (
        r"Permission denied",
        "refuses our key, or asks for a password, which nobody is here to type; see to it that ssh logs in with a key",
    ),
    (r"Could not resolve|Name or service not known", "there is no host of this name; see to the name and its spelling"),
    (r"Connection refused", "refuses connections; see that sshd runs there, and on this port"),
    (r"timed out|No route to host|Network is unreachable", "does not answer; see to its address and the way there"),
)


@dataclass(frozen=True, slots=True)
class SshHost:
    """Another machine as `ssh` finds it.

    Attributes:
        destination: as `ssh` takes it: a name of the user's ssh_config, [user@]host, or ssh://[user@]host[:port].
        config: the user's ssh_config; None = as ssh finds it.
        netns: namespace of ours from which the machine is reached; None = where we are.
    """

    destination: str
    config: str | None = None
    netns: str | None = None

    def checked(self) -> SshHost:
        """Return this host after a check."""
        if not re.fullmatch(r"[A-Za-z0-9_\[][^\s]*", self.destination):
            raise wrong(
                "ssh_host",
                f"{self.destination!r} is none; write [user@]host, ssh://[user@]host:port or a name of your ssh_config",
            )
        if self.config is not None and not os.access(self.config, os.R_OK):
            raise wrong("ssh_config", f"{self.config} cannot be read; name a file as ssh_config(5) describes it")
        return self

    def __str__(self) -> str:
        return self.destination


def control_of(directory: Path, at: int) -> Path:
    """Return the path of the socket of the connection to machine `at`, from 0, of a lab."""
    return directory / (CONTROL if at == 0 else f"{CONTROL}{at}")


def run_once(host: SshHost, script: str, seconds: float) -> CommandResult:
    """Run a script on a machine over a connection of its own."""
    result = _run(host, ("-oControlPath=none", "-oControlMaster=no"), script, seconds)
    if result.status == LOST:
        raise HostError(explained(host, result.stderr))
    return result


class Connection:
    """A lasting connection that carries scripts without delay; made again when it was lost.

    It ends with this process, however that ends: the far side waits for the end of its input, which the kernel closes.
    """

    def __init__(self, host: SshHost, control: Path) -> None:
        """Nothing is done yet. `control`: where this connection alone makes the socket that calls of `ssh` share."""
        self.host = host
        self._control = control
        self._process: subprocess.Popen[bytes] | None = None

    def open(self) -> None:
        """Connect, unless there is a connection."""
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        # The connection of a run that was killed ends by itself a little later. Until then `ssh` would share it, and
        # lose what runs over it when it ends.
        end_orphans(self._control)
        with BoundedOutput() as errors:
            shares = ("-M", f"-oControlPath={self._control}")
            self._process = process = _start(
                self.host, shares, f"echo {_GREETING}; exec cat", (subprocess.PIPE, subprocess.PIPE, errors.fileno())
            )
            if not _greeted(process, _LOGIN_SECONDS):
                self.close()
                raise HostError(explained(self.host, errors.text()))

    def run(self, script: str, seconds: float) -> CommandResult:
        """Run a script; status 255 and no output of its own means that the connection was lost."""
        self.open()
        return _run(self.host, (f"-oControlPath={self._control}", "-oControlMaster=no"), script, seconds)

    def close(self) -> None:
        """End the connection; nothing happens when there is none."""
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        try:
            process.wait(1.0)
        except subprocess.TimeoutExpired:
            # The far side does not answer any more.
            process.kill()
            process.wait()
        self._control.unlink(missing_ok=True)


def end_orphans(control: Path) -> None:
    """End what a killed process left of a connection, so that no script of it arrives late.

    A natgauge of another container, whose processes may be visible here, has the path too, but in another /run.
    """
    pids = []
    for pid in all_processes():
        with suppress(OSError):
            arguments = Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
            if f"-oControlPath={control}" in arguments and _sees(pid, control.parent):
                pids.append(pid)
    end_processes(pids)


def _sees(pid: int, folder: Path) -> bool:
    """Whether a process finds the same folder as we do by its path. Raises OSError where it finds none."""
    return not folder.exists() or os.path.samestat(Path(f"/proc/{pid}/root{folder}").stat(), folder.stat())


def explained(host: SshHost, output: str) -> str:
    """Return an error of `ssh` as one line."""
    for pattern, meaning in _MEANINGS:
        if re.search(pattern, output):
            return f"ssh host {host}: {meaning}"
    return f"ssh host {host}: cannot be used ({last_words(output) or 'nothing was said'}); try it by hand: ssh {host}"


def _run(host: SshHost, options: Sequence[str], script: str, seconds: float) -> CommandResult:
    with file_access.in_memory() as text:
        text.write(script.encode())
        text.seek(0)
        # By standard input: no shell on the way sees it, and its length has no limit.
        result = run_shell(
            lambda out, err: _start(host, options, "exec /bin/sh -s", (text, out, err)), seconds, f"ssh host {host}: it"
        )
    if result is None:
        raise BrokenError(f"ssh host {host}: did not answer within {seconds:g} s")
    return result


_Streams = tuple[IO[bytes] | int, int, int]


def _start(host: SshHost, options: Sequence[str], command: str, streams: _Streams) -> subprocess.Popen[bytes]:
    program = shutil.which("ssh")
    if program is None:
        raise HostError("ssh: is not installed here; run: apt-get install openssh-client")
    config = () if host.config is None else ("-F", host.config)
    settings = [f"-o{option}" for option in _OPTIONS]
    line = [program, "-T", *config, *settings, *options, "--", host.destination, command]
    return inside(
        host.netns,
        # Ctrl-C is for natgauge, which then undoes what was made over there.
        lambda: subprocess.Popen(line, stdin=streams[0], stdout=streams[1], stderr=streams[2], start_new_session=True),
    )


def _greeted(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether the far side says our word in time; what its login scripts print before is passed over."""
    assert process.stdout is not None  # noqa: S101 - it was asked for
    deadline, received = time.monotonic() + seconds, b""
    while (left := deadline - time.monotonic()) > 0:
        if not select.select([process.stdout], [], [], left)[0]:
            return False
        if not (more := os.read(process.stdout.fileno(), 4096)):
            process.wait(seconds)
            return False
        received += more
        if _GREETING.encode() + b"\n" in received:
            return True
        # A login script may print without end.
        received = received[-len(_GREETING) :]
    return False


#: The machine's folder with the files of the lab; the lock is next to it. Empty after a reboot, as what was made is.
DIRECTORY: Final = "/var/run/natgauge-device"
_LOCK: Final = f"{DIRECTORY}.lock"
_CLOSING: Final = f"{DIRECTORY}.closing"
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

#: Seconds in addition to the snippet's own time limit, for the connection and the transfer of its output.
_SLACK_SECONDS: Final = 5.0
_UNDO_SECONDS: Final = 120.0
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
    result = run_once(host, _grouped(script), _UNDO_SECONDS)
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
        self.remote = remote
        self._remember = remember

    def free_octets(self) -> int:
        """Return MemAvailable of the machine; on systems other than Linux, free and inactive memory."""
        if self.system != "Linux":
            octets = _of_pages(self.remote.run("vmstat -s", 30.0).stdout)
            if octets is None:
                raise HostError(f"ssh host {self.remote.host}: its `vmstat -s` prints no free pages")
            return octets
        octets = memory_octets("MemAvailable", self.remote.run("cat /proc/meminfo", 30.0).stdout)
        if octets is None:
            raise HostError(f"ssh host {self.remote.host}: its /proc/meminfo has no MemAvailable")
        return octets

    def object_caches(self) -> ObjectCaches:
        """Return the object caches of a Linux kernel; empty where they are not readable."""
        return device_work.read(self.remote.run("cat /proc/slabinfo 2> /dev/null || :", 30.0).stdout)

    def setting(self, name: str, paths: Sequence[str], module: str | None) -> RemoteSetting:
        """A global setting of it; nothing is touched yet."""
        return RemoteSetting(self.remote, self._remember, name, paths, module)


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
    machine: RemoteMachine = field(compare=False)

    def run(
        self, snippet: str, *, environment: Mapping[str, str] | None = None, timeout: float = 60.0
    ) -> CommandResult:
        """Run a POSIX shell snippet (`sh -eu`) in the device's place over there, in its private directory.

        `timeout` is in seconds of that machine. Programs that the snippet leaves running end with the lab.
        """
        variables = {**self.environment, **(environment or {})}
        try:
            return self.machine.remote.run(snippet, timeout, variables=variables, netns=self.netns)
        except HostError as error:
            # For the driver of a gateway, the device does not answer.
            raise BrokenError(f"device {self.name}: {error}") from error

    def frame_processes(self) -> tuple[str, ...]:
        """Return nothing: no core of this machine works for the device, so nothing depends on it."""
        return ()
