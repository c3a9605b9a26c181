# SPDX-License-Identifier: Apache-2.0
"""A QEMU machine with network cards for the tester's ports: Debian's Linux 6.12, and this host's files, read-only.

So this very natgauge runs in it, with drivers that a namespace has not. Its processors are emulated: it shows that
something works, never how fast it is.
"""

from __future__ import annotations

import gzip
import itertools
import lzma
import os
import re
import shlex
import shutil
import stat
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.labs.program import command_line

from natgauge.errors import BrokenError
from natgauge.labs.common.namespaces import inside
from natgauge.labs.common.processes import end_processes
from natgauge.labs.common.shell import last_words
from natgauge.labs.vm.image import ArchivedFile, archive
from natgauge.labs.vm.lab import PROGRAM

HERE = Path(__file__).parent
#: The kernel's package is unpacked here once.
CACHE = Path("/var/cache/natgauge/test-machines")
PACKAGE = "linux-image-6.12-amd64"
#: Modules of the initial file system, without what they depend on.
FIRST = ("virtio_pci", "virtio_rng", "9pnet_virtio", "9p", "virtio_net", "vmxnet3", "e1000", "igb", "tun")
#: What the tests start in a machine finds its programs like the tests themselves.
PASSED_ON = ("PATH", "PYTHONPATH", "NATGAUGE_PROGRAMS")
#: A machine is up after half a minute on two busy cores.
BOOT_SECONDS = 240.0


@dataclass(frozen=True)
class Kernel:
    """Debian's Linux 6.12, unpacked."""

    folder: Path

    @property
    def release(self) -> str:
        """As `uname -r` prints it."""
        return next(path.name for path in (self.folder / "lib/modules").iterdir())

    @property
    def image(self) -> Path:
        """What QEMU boots."""
        return self.folder / "boot" / f"vmlinuz-{self.release}"

    def with_dependencies(self, names: Iterable[str]) -> list[Path]:
        """Return the files of these modules, each after those that it depends on; what is built in has no file."""
        found: dict[Path, None] = {}
        for name in names:
            command = ["modprobe", "-d", str(self.folder), "-S", self.release, "--show-depends", name]
            told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            found |= {Path(file): None for file in re.findall(r"^insmod (\S+)", told, re.MULTILINE)}
        return list(found)


def kernel() -> Kernel:
    """The newest Linux 6.12 of Debian, fetched and unpacked unless it already is."""
    asked = ["apt-cache", "depends", "--important", PACKAGE]
    listed = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    package = re.findall(r"Depends: (linux-image-\S+)", listed)[-1]
    folder = CACHE / package
    if not folder.exists():
        work = CACHE / f"{package}.part"
        work.mkdir(parents=True)
        subprocess.run(["apt-get", "download", package], cwd=work, check=True, capture_output=True)
        (fetched,) = work.glob("*.deb")
        subprocess.run(["dpkg-deb", "-x", fetched, work], check=True)
        fetched.unlink()
        subprocess.run(["depmod", "-b", work, next((work / "lib/modules").iterdir()).name], check=True)
        work.rename(folder)
    return Kernel(folder)


#: Its QEMU has the card igb (82576), which Debian 12's has not.
NEWER = "trixie"


def newer_qemu() -> tuple[str, ...]:
    """The QEMU of Debian 13, as the first words of a command; a root with it is made unless it already is.

    The root's own loader runs it, so it sees this host's files.

    Raises:
        CalledProcessError: the root cannot be made here; `stderr` has the reason.
    """
    root = CACHE / NEWER
    if not root.exists():
        work = CACHE / f"{NEWER}.part"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        script = f". tools/clean-root.sh; ROOT=$1; bootstrap qemu-system-x86 {NEWER}"
        isolated = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
        command = [*isolated, "bash", "-euo", "pipefail", "-c", script, "clean-root.sh", str(work)]
        subprocess.run(command, cwd=HERE.parents[1], check=True, capture_output=True, text=True)
        work.rename(root)
    libraries = root / "usr/lib/x86_64-linux-gnu"
    loaded = (
        str(libraries / "ld-linux-x86-64.so.2"),
        "--library-path",
        str(libraries),
        str(root / "usr/bin" / PROGRAM),
    )
    return (*loaded, *(word for place in _FIRMWARE for word in ("-L", str(root / place))))


#: Where Debian's QEMU looks for firmware.
_FIRMWARE = ("usr/share/qemu", "usr/share/seabios", "usr/lib/ipxe/qemu")


def initrd(kernel: Kernel) -> bytes:
    """A file system with busybox and a few modules, which mounts the host's."""
    modules = kernel.with_dependencies(FIRST)
    programs = ["/bin/busybox", *re.findall(r"(/\S+) \(", _ldd("/bin/busybox"))]
    folders = _folders([*programs, *(f"/{one}/x" for one in _PLACES)])
    entries = [ArchivedFile(name, stat.S_IFDIR | 0o755) for name in folders]
    entries += [_program(path.lstrip("/"), Path(path)) for path in programs]
    entries += [ArchivedFile(f"modules/{path.name}", stat.S_IFREG | 0o644, _module(path)) for path in modules]
    order = "".join(f"{path.name}\n" for path in modules)
    entries.append(ArchivedFile("modules/order", stat.S_IFREG | 0o644, order.encode()))
    entries.append(_program("init", HERE / "machine_init.sh"))
    entries.append(_program("work.sh", HERE / "machine_work.sh"))
    return gzip.compress(archive(entries), 1)


def _program(name: str, file: Path) -> ArchivedFile:
    return ArchivedFile(name, stat.S_IFREG | 0o755, file.read_bytes())


_PLACES = ("proc", "dev", "root", "modules", "bin")


def _folders(paths: Iterable[str]) -> list[str]:
    found = {str(parent).lstrip("/") for path in paths for parent in Path(path).parents} - {""}
    return sorted(found)


def _ldd(program: str) -> str:
    return subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout


def _module(path: Path) -> bytes:
    return lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()


@dataclass(frozen=True)
class Card:
    """A network card of a machine.

    Attributes:
        name: of the interface in the machine.
        end: what it is connected to, as QEMU's -netdev has it, without an id.
        device: QEMU's device and its options.
    """

    name: str
    end: str
    device: str = "virtio-net-pci"


def tapped(name: str, tap: str, queues: int = 1, device: str = "virtio-net-pci") -> Card:
    """A card that is connected to a tap of the network."""
    several = f",mq=on,vectors={2 * queues + 2}" if queues > 1 and device.startswith("virtio") else ""
    end = f"tap,ifname={tap},script=no,downscript=no{f',queues={queues}' if queues > 1 else ''}"
    return Card(name, end, device + several)


def hubbed(name: str, hub: int, device: str = "virtio-net-pci") -> Card:
    """A card that is connected to all others of the same hub."""
    return Card(name, f"hubport,hubid={hub}", device)


@dataclass(frozen=True)
class Done:
    """A command that ended in a machine."""

    status: int
    out: str
    err: str


@dataclass
class Machine:
    """One machine; `with` boots it and ends it.

    Attributes:
        qemu: first words of the command that emulates it.
    """

    name: str
    netns: str
    folder: Path
    cards: Sequence[Card]
    cores: int = 2
    memory: int = 1536
    qemu: Sequence[str] = (PROGRAM,)
    _jobs: Iterator[int] = field(default_factory=itertools.count)
    _process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        try:
            self.await_boot()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def start(self) -> None:
        linux = kernel()
        self._exchange.mkdir(parents=True)
        (self._exchange / "modules").write_text(str(linux.folder))
        (self.folder / "initrd").write_bytes(initrd(linux))
        output = (self.folder / "qemu").open("wb")
        with output:
            self._process = inside(
                self.netns,
                lambda: subprocess.Popen(
                    self._command(linux), stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
                ),
            )

    def await_boot(self) -> None:
        """Wait for the machine, and name its cards."""
        assert self._process is not None
        deadline = time.monotonic() + BOOT_SECONDS
        while not (self._exchange / "ready").exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise BrokenError(f"machine {self.name}: does not come up: {self.said()}")
            time.sleep(0.1)
        for number, card in enumerate(self.cards):
            place = f"$(dirname $(grep -lx {_mac(self.name, number)} /sys/class/net/*/address))"
            quiet = f"echo 1 >/proc/sys/net/ipv6/conf/{card.name}/disable_ipv6"
            self.sh(f"ip link set dev $(basename {place}) name {card.name} && {quiet} && ip link set {card.name} up")

    def end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            end_processes([process.pid], patience=0.2)
            process.wait()

    def said(self) -> str:
        """The last words of the machine and of QEMU."""
        texts = [path.read_text(errors="replace") for path in (self.folder / "console", self.folder / "qemu")]
        return "; ".join(last_words(text) for text in texts if text)

    def run(self, script: str, seconds: float = 300.0) -> Done:
        """Run a shell script in the machine."""
        job = self._exchange / str(next(self._jobs))
        passed = [f"export {name}={shlex.quote(os.environ[name])}" for name in PASSED_ON if name in os.environ]
        text = "\n".join([*passed, "export HOME=/tmp PYTHONDONTWRITEBYTECODE=1", script, ""])
        job.with_suffix(".writing").write_text(text)
        job.with_suffix(".writing").rename(job.with_suffix(".job"))
        deadline = time.monotonic() + seconds
        status = job.with_suffix(".status")
        while not status.exists():
            if time.monotonic() > deadline:
                raise BrokenError(f"machine {self.name}: {script}: no answer in {seconds:g} s; it said: {self.said()}")
            time.sleep(0.05)
        out, err = (job.with_suffix(f".{one}").read_text(errors="replace") for one in ("out", "err"))
        return Done(int(status.read_text()), out, err)

    def sh(self, script: str, seconds: float = 300.0) -> str:
        """Run a shell script that must succeed; what it printed."""
        done = self.run(script, seconds)
        assert done.status == 0, f"{self.name}: {script}: {done.status}: {done.err}{done.out}"
        return done.out

    def natgauge(self, *words: str, seconds: float = 300.0) -> Done:
        """Run natgauge in the machine."""
        return self.run(shlex.join(command_line(words)), seconds)

    @property
    def _exchange(self) -> Path:
        return self.folder / "jobs"

    def _command(self, linux: Kernel) -> list[str]:
        command = [
            *(*self.qemu, "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-machine", "pc"),
            *("-accel", "tcg,thread=multi", "-cpu", "max", "-smp", str(self.cores), "-m", str(self.memory)),
            *("-kernel", str(linux.image), "-initrd", str(self.folder / "initrd")),
            *("-append", "console=ttyS0 quiet panic=-1 net.ifnames=0 clocksource=tsc tsc=reliable"),
            *("-serial", f"file:{self.folder / 'console'}", "-device", "virtio-rng-pci"),
            *_shared("files", Path("/"), ",readonly=on,multidevs=remap"),
            *_shared("jobs", self._exchange, ""),
        ]
        for number, card in enumerate(self.cards):
            device = f"{card.device},netdev=n{number},mac={_mac(self.name, number)}"
            kind, _, rest = card.end.partition(",")
            command += ["-netdev", f"{kind},id=n{number},{rest}", "-device", device]
        return command


def _shared(tag: str, folder: Path, options: str) -> list[str]:
    return ["-virtfs", f"local,path={folder},mount_tag={tag},security_model=none{options}"]


def _mac(machine: str, number: int) -> str:
    return f"02:6e:67:01:{sum(machine.encode()) % 256:02x}:{number:02x}"


@contextmanager
def network(name: str, cables: Mapping[str, Sequence[str]], queues: int = 1) -> Iterator[str]:
    """A namespace with taps; the taps of a cable are joined by a bridge, a tap alone is an interface of the namespace.

    Args:
        name: of the namespace.
        cables: taps by the name of their cable.
        queues: of each tap.
    """
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        several = " multi_queue" if queues > 1 else ""
        script = ["ip link set lo up"]
        for cable, taps in cables.items():
            if len(taps) > 1:
                script += [f"ip link add {cable} type bridge mcast_snooping 0", f"ip link set {cable} up"]
            for tap in taps:
                script.append(f"ip tuntap add {tap} mode tap{several}")
                script += [f"ip link set {tap} master {cable}"] if len(taps) > 1 else []
                script.append(f"ip link set {tap} txqueuelen 4096 up")
        script.append("for one in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 1 >$one; done")
        subprocess.run(["ip", "netns", "exec", name, "/bin/sh", "-euc", "\n".join(script)], check=True)
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)
