# SPDX-License-Identifier: Apache-2.0
"""Runs scripts on another machine with the system's `ssh`, which has the user's keys, hosts and jumps.

`ssh` prompts for nothing (`BatchMode`), and refuses a machine whose host key is unknown or has changed. The machine
needs a POSIX `/bin/sh`; the login shell may be any with `exec`.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from natgauge import files
from natgauge.bounded_output import BoundedOutput
from natgauge.errors import BrokenError, HostError
from natgauge.inputs.checks import wrong
from natgauge.labs.common.namespaces import inside
from natgauge.labs.common.processes import all_processes, end_processes
from natgauge.labs.common.shell import last_words, run_shell
from natgauge.labs.contract import CommandResult

#: How long a machine may take to answer at all, and then to let us in.
CONNECT_SECONDS: Final = 10
LOGIN_SECONDS: Final = 30.0
#: A machine that is silent for three of these is gone.
_ALIVE_SECONDS: Final = 3
#: `ssh` ends with this status when it could not reach the far side or lost it (ssh(1)).
LOST: Final = 255
#: The socket of a lab's connection, in the lab's folder.
CONTROL: Final = "ssh"
_GREETING: Final = "natgauge-connected"

_OPTIONS: Final = (
    "BatchMode=yes", "StrictHostKeyChecking=yes", f"ConnectTimeout={CONNECT_SECONDS}", "ConnectionAttempts=1",
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
        """Nothing is done yet.

        Args:
            control: where the socket is made that later calls of `ssh` share; no other connection has it.
        """
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
            if not _greeted(process, LOGIN_SECONDS):
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
    with files.in_memory() as text:
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
