# SPDX-License-Identifier: Apache-2.0
"""Another machine for the `ssh` lab: a namespace with Debian's sshd in it, two veths from the tester's ports to it."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest

from natgauge.labs.common import namespaces
from natgauge.labs.common.links import End, VethCable, make, prepare_namespace
from natgauge.labs.common.locks import RUN

SSHD = "/usr/sbin/sshd"
#: Names of labs on it.
LABS = ("sshlab", "sshkill", "second", "sshpair")
PORT = 22022
_SECONDS = 10.0
#: Of a test function. The module before it may keep the machine for as long again, and that is no fault of the test.
TIMEOUT = pytest.mark.timeout(600, func_only=True)
#: The limit of the host's connections: of machines in namespaces, too, and read-only there.
LIMIT = Path("/proc/sys/net/netfilter/nf_conntrack_max")
#: Seconds to wait for what another test gives back.
PATIENCE = 30.0
#: Seconds to wait for the machine: longer than any module keeps it.
MOST_WAITING = 1800.0


def await_room(connections: int) -> None:
    """Wait while another test's measurement has lowered the host's limit."""
    deadline = time.monotonic() + PATIENCE
    while int(LIMIT.read_text()) < 2 * connections and time.monotonic() < deadline:
        time.sleep(0.05)


@dataclass
class FarMachine:
    """A machine that is reached by ssh and nothing else.

    Attributes:
        name: of its namespace.
        tester: namespace of the tester's ports.
        folder: keys, settings and logs.
        holder: what stays of it when its sshd is gone: a process that does nothing in its namespaces, that of mounts
            among them, where namespaces made over there have their names.
        sshd: the server.
        chosen: what a user gives for it, as keywords of `natgauge.measure`.
    """

    name: str
    tester: str
    folder: Path
    holder: subprocess.Popen[bytes]
    sshd: subprocess.Popen[bytes]
    chosen: dict[str, Any]

    def interfaces(self) -> set[str]:
        """Names of what is in its own namespace."""
        return _interfaces(self.name)

    def cut(self) -> None:
        """Lose every connection to it, and let none be made any more."""
        members = subprocess.run(
            ["pgrep", "-P", str(self.sshd.pid)], check=False, capture_output=True, text=True
        ).stdout.split()
        self.sshd.kill()
        self.sshd.wait()
        for pid in members:
            os.kill(int(pid), signal.SIGKILL)

    def drop(self) -> None:
        """Lose every connection to it; others can be made at once."""
        members = subprocess.run(
            ["pgrep", "-P", str(self.sshd.pid)], check=False, capture_output=True, text=True
        ).stdout.split()
        for pid in members:
            os.kill(int(pid), signal.SIGKILL)

    def listen(self) -> None:
        """Let it be reached again after `cut`."""
        self.sshd = _serve(self.name, self.holder, self.folder)

    def left(self) -> list[str]:
        """What a lab left there: namespaces, files, interfaces that are gone."""
        strays = [f"namespace {name}" for name in namespaces.names() if name.startswith("natgauge-")]
        strays += [str(path) for path in Path("/var/run").glob("natgauge-device*")]
        return strays + [f"no {name}" for name in ("far0", "far1") if name not in self.interfaces()]


def _interfaces(netns: str) -> set[str]:
    listed = subprocess.run(["ip", "-n", netns, "-o", "link"], check=True, capture_output=True, text=True).stdout
    return {line.split(":")[1].strip().partition("@")[0] for line in listed.splitlines()}


@contextmanager
def far_machine(name: str, folder: Path) -> Iterator[FarMachine]:
    """Its namespace is <name>-far, its interfaces far0 (Initiator) and far1, the tester's ports port0 and port1.

    It waits for one that another test process has: a machine is used by one natgauge at a time, as a file there says,
    and all of these have the files of this machine. A module that uses it has the mark `TIMEOUT`.

    Raises:
        TimeoutError: another process has had it for `MOST_WAITING` seconds.
    """
    with (Path(tempfile.gettempdir()) / "natgauge-far-machine.lock").open("w") as lock:
        _take(lock)
        yield from _far_machine(name, folder)


def _take(lock: IO[str]) -> None:
    deadline = time.monotonic() + MOST_WAITING
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                message = f"{lock.name}: another process has had the far machine for {MOST_WAITING:.0f} s"
                raise TimeoutError(message) from None
            time.sleep(0.1)
        else:
            return


def _make_namespace(netns: str) -> None:
    """Make a namespace that is somebody else's: `natgauge lab clean`, also in another process, leaves it alone."""
    namespaces.create(netns)
    namespaces.remove_mark(netns)
    namespaces.inside(netns, lambda: prepare_namespace(forwards=False))


def _far_machine(name: str, folder: Path) -> Iterator[FarMachine]:
    far, tester = f"{name}-far", f"{name}-here"
    sshd = holder = machine = None
    try:
        for netns in (far, tester):
            _make_namespace(netns)
        for at in range(2):
            ends = (End(tester, f"port{at}", f"02:00:00:00:0{at}:01"), End(far, f"far{at}", f"02:00:00:00:0{at}:02"))
            make(VethCable(ends, 100 + at))
        _keys(folder)
        # `ip netns exec` makes a namespace of mounts, which goes with the last process in it.
        holder = subprocess.Popen(["ip", "netns", "exec", far, "sleep", "infinity"], start_new_session=True)
        sshd = _serve(far, holder, folder)
        chosen = {
            "lab": "ssh",
            "ssh_host": "far",
            "ssh_config": str(folder / "config"),
            "ssh_netns": far,
            "device_inside": "far0",
            "device_outside": "far1",
            "initiator_port": "port0",
            "initiator_netns": tester,
            "responder_port": "port1",
            "responder_netns": tester,
        }
        machine = FarMachine(far, tester, folder, holder, sshd, chosen)
        yield machine
    finally:
        for process in (sshd if machine is None else machine.sshd, holder):
            if process is not None:
                process.kill()
                process.wait()
        namespaces.delete([tester, far])
        forget()


@dataclass
class FarPair:
    """Two machines in a row, each reached by ssh and nothing else; the second has a /run of its own.

    Attributes:
        names: of their namespaces, from the Initiator to the Responder.
        run: the second one's /run.
        chosen: what a user gives for them and the devices "ce" and "pe", as keywords of `natgauge.measure`.
    """

    names: tuple[str, str]
    run: Path
    chosen: dict[str, Any]

    def left(self) -> list[str]:
        """What a lab left there: namespaces, files, interfaces that are gone."""
        strays = [f"namespace {name}" for name in namespaces.names() if name.startswith("natgauge-")]
        strays += [str(path) for folder in (Path("/var/run"), self.run) for path in folder.glob("natgauge-device*")]
        return strays + [f"{name}: {sorted(seen)}" for name in self.names if (seen := _interfaces(name)) != _OF_PAIR]


_OF_PAIR = {"lo", "far0", "far1"}


@contextmanager
def far_pair(name: str, folder: Path) -> Iterator[FarPair]:
    """Machines <name>-one and <name>-two with interfaces far0 and far1; the ports of the tester are port0 and port1."""
    one, two, tester = f"{name}-one", f"{name}-two", f"{name}-here"
    run = folder / "run"
    processes: list[subprocess.Popen[bytes]] = []
    with (Path(tempfile.gettempdir()) / "natgauge-far-machine.lock").open("w") as lock:
        _take(lock)
        try:
            for netns in (one, two, tester):
                _make_namespace(netns)
            rows = (
                ((tester, "port0"), (one, "far0")),
                ((one, "far1"), (two, "far0")),
                ((two, "far1"), (tester, "port1")),
            )
            for at, ((left, before), (right, after)) in enumerate(rows):
                ends = (End(left, before, f"02:00:00:00:0{at}:01"), End(right, after, f"02:00:00:00:0{at}:02"))
                make(VethCable(ends, 100 + at))
            _keys(folder)
            (run / "sshd").mkdir(parents=True)
            for netns, first in ((one, ""), (two, f"mount --bind {run} /run; ")):
                holder = ["ip", "netns", "exec", netns, "sh", "-c", f"{first}exec sleep infinity"]
                processes.append(subprocess.Popen(holder, start_new_session=True))
                processes.append(_serve(netns, processes[-1], folder))
            chosen = {
                "lab": "ssh",
                "ssh_host": "ce=far,pe=far",
                "ssh_config": str(folder / "config"),
                "ssh_netns": f"ce={one},pe={two}",
                "device_inside": "far0",
                "device_outside": "far1",
                "initiator_port": "port0",
                "initiator_netns": tester,
                "responder_port": "port1",
                "responder_netns": tester,
            }
            yield FarPair((one, two), run, chosen)
        finally:
            for process in processes[::-1]:
                process.kill()
                process.wait()
            namespaces.delete([tester, two, one])
            forget()


@contextmanager
def unchanged(machine: FarMachine) -> Iterator[FarMachine]:
    """Fail a test that leaves something on the machine; what it left is removed, so that the next test does not."""
    try:
        yield machine
        assert machine.left() == []
    finally:
        forget()


def forget() -> None:
    """Undo what a failed test left: the tests after it would fail, too."""
    namespaces.delete([name for name in namespaces.names() if name.startswith("natgauge-")], unmarked=True)
    registers = [path for lab in LABS for path in RUN.glob(f"*/{lab}*")]
    for left in [*Path("/var/run").glob("natgauge-device*"), *registers]:
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left)
        else:
            left.unlink()


def _keys(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    folder.chmod(0o700)
    for name in ("host", "user"):
        key = folder / name
        if not key.exists():
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    public = (folder / "host.pub").read_text()
    (folder / "known").write_text(f"[127.0.0.1]:{PORT} {public}")
    (folder / "authorized").write_text((folder / "user.pub").read_text())
    (folder / "authorized").chmod(0o600)
    (folder / "config").write_text(
        f"Host far\n    HostName 127.0.0.1\n    Port {PORT}\n    User root\n    IdentityFile {folder}/user\n"
        f"    IdentitiesOnly yes\n    IdentityAgent none\n    UserKnownHostsFile {folder}/known\n"
        "    GlobalKnownHostsFile none\n"
    )
    # Root's own home on this machine may have a ~/.bashrc, which bash reads before each command that sshd starts and
    # which may take longer than the command.
    (folder / "sshd_config").write_text(
        f"Port {PORT}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\n"
        "PermitRootLogin yes\nStrictModes no\nUsePAM no\nPasswordAuthentication yes\n"
        f"KbdInteractiveAuthentication no\nPidFile {folder}/pid\nSetEnv HOME={folder}\n"
    )


def _serve(netns: str, holder: subprocess.Popen[bytes], folder: Path) -> subprocess.Popen[bytes]:
    # sshd wants it for the separation of privileges, and no service has made it here.
    Path("/run/sshd").mkdir(exist_ok=True, mode=0o755)
    # Before `ip` has become `sleep`, its namespaces are not yet those.
    while Path(f"/proc/{holder.pid}/comm").read_text() != "sleep\n":
        time.sleep(0.02)
    enter = ["nsenter", f"--target={holder.pid}", "--mount", "--net"]
    with (folder / "log").open("ab") as log:
        sshd = subprocess.Popen(
            [*enter, SSHD, "-D", "-e", "-f", str(folder / "sshd_config")],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            # Ctrl-C is for the test, which needs the machine to undo what it made there.
            start_new_session=True,
        )
    deadline = time.monotonic() + _SECONDS
    listening = f":{PORT} "
    while (
        listening
        not in subprocess.run(
            ["ip", "netns", "exec", netns, "ss", "-Hltn"], check=True, capture_output=True, text=True
        ).stdout
    ):
        if sshd.poll() is not None or time.monotonic() > deadline:
            raise AssertionError((folder / "log").read_text())
        time.sleep(0.02)
    return sshd
