# SPDX-License-Identifier: Apache-2.0
"""The `vm` lab: the `ssh` lab, with one QEMU guest for the other machine and taps for the ports.

The guest has a command line, keys and a start, and a test tells whether this host's KVM works. It runs in the tester's
namespace, so deleting that ends it, and its taps go with it.
"""

from __future__ import annotations

import gzip
import os
import resource
import shutil
import stat
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from natgauge import file_access
from natgauge.bounded_output import MOST_OCTETS
from natgauge.errors import BrokenError, HostError
from natgauge.host import capabilities
from natgauge.host.capabilities import available_octets, text_of
from natgauge.host.private_files import FILE_MODE
from natgauge.inputs.input import wrong
from natgauge.interruption import uninterrupted
from natgauge.labs.common import locks
from natgauge.labs.common.base import make_namespace
from natgauge.labs.common.locks import directory_of
from natgauge.labs.common.namespaces import PREFIX, inside
from natgauge.labs.common.processes import end_processes
from natgauge.labs.common.register import Register
from natgauge.labs.common.shell import last_words
from natgauge.labs.contract import LabNeeds
from natgauge.labs.ssh.lab import ChosenMachine, RemoteLab
from natgauge.labs.ssh.remote import SshHost
from natgauge.labs.vm import image
from natgauge.labs.vm.image import ArchivedFile, Image, UserFiles, archive

Accelerator = Literal["kvm", "tcg"]

PROGRAM: Final = "qemu-system-x86_64"
#: Where the guest's sshd is reached, in the tester's namespace.
_SSH_PORT: Final = 22022
_READY: Final = "natgauge-guest-ready"
#: A guest with KVM is up in two seconds; one that is not by then never will be (seen where KVM is nested and broken).
_KVM_SECONDS: Final = 12.0
#: Ten seconds on an idle core, minutes on a host that runs other programs on all cores. A guest that ends is noticed.
_TCG_SECONDS: Final = 300.0
_KVM: Final = Path("/dev/kvm")
#: Memory that this host keeps for itself.
_RESERVED: Final = 512 * 1024**2
#: QEMU's own memory in addition to the guest's, more where it translates code.
_OWN: Final = 256 * 1024**2
_MACS: Final = ("02:6e:67:00:fe:01", "02:6e:67:00:fe:02", "02:6e:67:00:fe:03")


@dataclass(frozen=True, slots=True)
class Shape:
    """Processors and memory of a guest."""

    cores: int
    memory: int

    def checked(self) -> Shape:
        """Return this shape after a check."""
        if not 1 <= self.cores <= 64:
            raise wrong("guest_cores", f"{self.cores} is outside of 1 to 64")
        if not 384 <= self.memory <= 1024 * 1024:
            raise wrong("guest_memory", f"{self.memory} is outside of 384 to 1048576 MiB")
        return self

    def refuse_short_memory(self) -> None:
        """See that this host has room for it."""
        free = available_octets()
        needed = self.memory * 1024**2 + _OWN + _RESERVED
        if free is not None and needed > free:
            raise HostError(
                f"guest memory: {self.memory} MiB and {(_OWN + _RESERVED) >> 20} MiB in addition are needed, "
                f"{free >> 20} MiB are available; give the guest less"
            )


@dataclass(slots=True)
class Guest:
    """One guest; the constructor does not start it."""

    image: Image
    shape: Shape
    netns: str
    folder: Path
    taps: tuple[str, str]
    files: UserFiles = field(default_factory=UserFiles)
    process: subprocess.Popen[bytes] | None = None

    @property
    def config(self) -> Path:
        """An ssh_config by which `ssh guest` finds it."""
        return self.folder / "ssh_config"

    def prepare(self) -> None:
        """Make keys of this boot alone, and taps."""
        keys = self.folder / "natgauge"
        keys.mkdir(mode=0o700, exist_ok=True)
        for name in ("host", "user"):
            _run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(keys / name)])
        (keys / "authorized").write_text((keys / "user.pub").read_text())
        (keys / "known").write_text(f"[127.0.0.1]:{_SSH_PORT} {(keys / 'host.pub').read_text()}")
        added = archive(self._added(keys))
        # It contains the guest's keys.
        file_access.write_private(self.folder / "initrd", self.image.initrd.read_bytes() + gzip.compress(added, 1))
        self.config.write_text(
            f"Host guest\n    HostName 127.0.0.1\n    Port {_SSH_PORT}\n    User root\n    IdentityFile {keys}/user\n"
            "    IdentitiesOnly yes\n    IdentityAgent none\n    GlobalKnownHostsFile none\n"
            f"    UserKnownHostsFile {keys}/known\n"
        )
        for tap in self.taps:
            # More than a burst: what QEMU has not fetched yet waits here.
            several = " multi_queue" if self.shape.cores > 1 else ""
            script = f"ip tuntap add {tap} mode tap{several}; ip link set {tap} txqueuelen 4096 up"
            _run(["ip", "netns", "exec", self.netns, "/bin/sh", "-euc", script])

    def _added(self, keys: Path) -> list[ArchivedFile]:
        """Return what is added to the image: keys, readable by root alone, and the user's files."""
        own = {name: (keys / name).read_bytes() for name in ("host", "authorized")}
        if self.files.has_modules:
            # The guest then lists its modules and their dependencies at boot (init.sh).
            own["modules"] = b""
        entries = [ArchivedFile(f"natgauge/{name}", stat.S_IFREG | 0o600, content) for name, content in own.items()]
        return [ArchivedFile("natgauge", stat.S_IFDIR | 0o700), *entries, *self.files.entries]

    def boot(self, accelerator: Accelerator | None) -> Accelerator:
        """Start the guest and wait until it can be reached; None = with KVM where that works, else by emulation."""
        if accelerator == "kvm" and not os.access(_KVM, os.R_OK | os.W_OK):
            raise HostError("guest accelerator: kvm: this host has no /dev/kvm; leave it out, or choose tcg")
        if accelerator is None:
            if _kvm_works() is not False and self._up("kvm", _KVM_SECONDS):
                _remember_kvm(works=True)
                return "kvm"
            if _kvm_works() is None:
                _remember_kvm(works=False)
            accelerator = "tcg"
        seconds = _TCG_SECONDS if accelerator == "tcg" else _KVM_SECONDS
        if not self._up(accelerator, seconds):
            raise BrokenError(
                f"guest: did not come up with {accelerator} within {seconds:g} s; the last it said: {self._said()}"
            )
        return accelerator

    def end(self) -> None:
        """Kill QEMU if it runs, and wait for its end."""
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.wait()

    def command(self, accelerator: Accelerator) -> list[str]:
        """Return QEMU's command line."""
        shape = self.shape
        model = "host" if accelerator == "kvm" else "max"
        queues, several = _queues(shape.cores)
        cards = []
        for number, mac in enumerate(_MACS):
            is_tap = number < len(self.taps)
            end = (
                f"tap,id=n{number},ifname={self.taps[number]},script=no,downscript=no{queues}"
                if is_tap
                else f"user,id=n{number},restrict=on,hostfwd=tcp:127.0.0.1:{_SSH_PORT}-10.0.2.15:22"
            )
            card = f"virtio-net-pci,netdev=n{number},mac={mac},romfile={several if is_tap else ''}"
            cards += ["-netdev", end, "-device", card]
        return [
            *(PROGRAM, "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-machine", "pc"),
            *("-accel", accelerator if accelerator == "kvm" or shape.cores == 1 else "tcg,thread=multi", "-cpu", model),
            *("-smp", str(shape.cores), "-m", str(shape.memory)),
            *("-kernel", str(self.image.kernel), "-initrd", str(self.folder / "initrd")),
            # -1: a kernel that panics ends QEMU at once.
            *("-append", "console=ttyS0 quiet panic=-1 edd=off net.ifnames=0"),
            *("-serial", f"file:{self.folder / 'console'}", "-device", "virtio-rng-pci", *cards),
        ]

    def _up(self, accelerator: Accelerator, seconds: float) -> bool:
        if shutil.which(PROGRAM) is None:
            raise HostError(f"{PROGRAM}: is not installed here; run: apt-get install qemu-system-x86")
        console = self.folder / "console"
        console.unlink(missing_ok=True)
        with (self.folder / "qemu").open("w+b") as output:
            process = inside(
                self.netns,
                lambda: subprocess.Popen(
                    self.command(accelerator),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    # Ctrl-C is for natgauge, which then ends the guest.
                    start_new_session=True,
                    # Python ignores SIGXFSZ, and so does QEMU then: what goes beyond the limit is refused.
                    restore_signals=False,
                ),
            )
        # QEMU writes its console and its own messages, and no other file.
        with suppress(ProcessLookupError):
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (MOST_OCTETS, MOST_OCTETS))
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and process.poll() is None:
            if _READY in text_of(console):
                self.process = process
                return True
            time.sleep(0.05)
        if process.poll() is None:
            end_processes([process.pid], patience=0.2)
            process.wait()
        return False

    def _said(self) -> str:
        return last_words(text_of(self.folder / "console")) or last_words(text_of(self.folder / "qemu")) or "nothing"


def _queues(cores: int) -> tuple[str, str]:
    """Return the options of a tap and of its card for a queue pair per processor; empty for a single processor.

    A queue pair needs two interrupt vectors, and the card two more, for its configuration and its control queue. The
    kernel puts all frames of a sending core into one queue of the tap (drivers/net/tun.c, tun_xdp_xmit), so the guest
    distributes the flows itself (`GuestLab`). QEMU's own flow hash (`rss=on`) is no help: when a queue that it chose is
    full, it stops reading the tap, and nothing makes it go on.
    """
    if cores == 1:
        return "", ""
    return f",queues={cores}", f",mq=on,vectors={2 * cores + 2}"


def _kvm_works() -> bool | None:
    """Return the result of an earlier start since this host was booted; None = there was none."""
    if not os.access(_KVM, os.R_OK | os.W_OK):
        return False
    with suppress(OSError):
        return _kvm_file().read_text() == "works"
    return None


def _remember_kvm(*, works: bool) -> None:
    # Where it cannot be stored, the next guest tries again.
    with suppress(HostError, OSError):
        locks.made_folder("guests")
        file_access.replace(_kvm_file(), "works" if works else "does not", mode=FILE_MODE)


def _kvm_file() -> Path:
    return locks.folder("guests") / "kvm"


def _run(command: list[str]) -> None:
    try:
        ended = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    except FileNotFoundError:
        raise HostError(f"{command[0]}: is not installed here") from None
    if ended.returncode:
        raise HostError(f"guest: {' '.join(command)}: {ended.stderr.strip() or ended.returncode}")


_TAPS: Final = ("ng0i", "ng0r")
#: The guest's interfaces at the other ends of the taps.
_INTERFACES: Final = ("eth0", "eth1")


class GuestLab(RemoteLab):
    """Devices in namespaces of a guest that is booted for the lab and ends with it."""

    kind: ClassVar[str] = "vm"

    def __init__(  # noqa: PLR0913 - each part of a guest by its name
        self,
        name: str,
        need: LabNeeds,
        *,
        shape: Shape,
        accelerator: Accelerator | None = None,
        sender_cpus: Sequence[int] | None = None,
        files: str | None = None,
    ) -> None:
        self._tester = f"{PREFIX}{name}-tester"
        folder = directory_of(name)
        super().__init__(
            name,
            need,
            machines=[ChosenMachine(SshHost("guest", str(folder / "ssh_config"), self._tester), _INTERFACES)],
            ports=((_TAPS[0], self._tester), (_TAPS[1], self._tester)),
            sender_cpus=sender_cpus,
        )
        self.initiator, self.responder = (replace(port, tap=True) for port in (self.initiator, self.responder))
        self._shape = shape.checked()
        # The guest keeps its files in memory.
        self._files = UserFiles() if files is None else image.read_user_files(files, (shape.memory << 20) // 2)
        self._wanted = accelerator
        self._accelerator: Accelerator = accelerator or "tcg"
        self._guest: Guest | None = None
        # If the user chose no accelerator, this is known only when the guest runs.
        self.emulated = self._accelerator == "tcg"

    def parameters(self) -> Mapping[str, Any]:
        """Return the guest's options, in addition to those of the `ssh` lab."""
        guest = {"guest_memory": self._shape.memory, "guest_accelerator": self._accelerator}
        files = {"guest_files": self._files.digest} if self._files.entries else {}
        return {**super().parameters(), **guest, **files}

    def _prepare(self, register: Register) -> None:
        capabilities.require("starting a guest", *capabilities.MEASURING)
        base_image = image.find()
        self._shape.refuse_short_memory()
        make_namespace(register, self._tester, forwards=False)
        self._guest = guest = Guest(base_image, self._shape, self._tester, register.directory, _TAPS, self._files)
        guest.prepare()
        self._accelerator = guest.boot(self._wanted)
        self.emulated = self._accelerator == "tcg"

    def _boot_machine(self) -> None:
        """Let the guest distribute flows over its processors by a hash of addresses and ports.

        That is receive packet steering (Documentation/networking/scaling.rst). A network card would do it itself.
        """
        if self._shape.cores > 1:
            queues = " ".join(f"/sys/class/net/{name}/queues/rx-*/rps_cpus" for name in _INTERFACES)
            (segment,) = self._segments
            segment.remote.ask(f"for queue in {queues}; do echo {mask_of(self._shape.cores)} > $queue || exit 1; done")

    @uninterrupted()
    def down(self) -> None:
        """End the guest, and give back what it needed; nothing happens when nothing is up."""
        guest, self._guest = self._guest, None
        if guest is not None:
            guest.end()
        super().down()

    def _remember(self, at: int, undo: str, says: str) -> None:
        """The guest ends with the lab, and all that was made in it."""


def mask_of(cores: int) -> str:
    """Return the first `cores` processors, 1 to 64, in the form of a kernel mask: groups of 32 bits."""
    mask = f"{(1 << cores) - 1:x}"
    return f"{mask[:-8]},{mask[-8:]}" if len(mask) > 8 else mask
