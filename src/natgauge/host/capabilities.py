# SPDX-License-Identifier: Apache-2.0
"""What this process may do and how much it may use: its capabilities and limits, and the refusal where one lacks.

Capabilities: those of Linux that natgauge needs (capabilities(7)). Limits: control groups (cgroups(7)), memory, open
files and threads (setrlimit(2)). A limit of a group holds for all groups below it. So all groups from this process's
own to the top of its mount are read; a container does not see those above its own.
"""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from natgauge.errors import HostError, can_start_threads

#: Number of the inode of the machine's own user namespace (include/uapi/linux/nsfs.h).
_INITIAL_USER_NAMESPACE: Final = 0xEFFFFFFD


class Capability(NamedTuple):
    """A capability: its bit (include/uapi/linux/capability.h), and what natgauge needs it for."""

    bit: int
    use: str


CAPABILITIES: Final = {
    "CAP_SYS_ADMIN": Capability(21, "network namespaces and their /sys"),
    "CAP_NET_ADMIN": Capability(12, "interfaces, routes and XDP programs on ports"),
    "CAP_BPF": Capability(39, "the frame programs and their maps"),
    "CAP_PERFMON": Capability(38, "tracing of frames that a port accepts"),
    "CAP_SYS_NICE": Capability(23, "priorities above other load, which would otherwise look like the device's"),
    "CAP_KILL": Capability(5, "ending the processes of a device"),
    "CAP_SYS_PTRACE": Capability(19, "finding the processes of a device that run as another user"),
    "CAP_NET_RAW": Capability(13, "packet sockets, for ARP, neighbour discovery and audits"),
}
#: Of ports that exist already.
PORTS: Final = ("CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_BPF", "CAP_PERFMON", "CAP_SYS_NICE")
#: Of every lab, and everything that is measured in one.
MEASURING: Final = ("CAP_SYS_ADMIN", *PORTS, "CAP_KILL")
#: Of some gateways only.
PROCESSES: Final = ("CAP_SYS_PTRACE",)
USER_NAMESPACE: Final = (
    "this process is in a user namespace, as in a rootless container; a user namespace cannot measure, because the "
    "kernel gives it no power over this machine: run natgauge as the machine's root, or in a container that has it"
)


def missing(*names: str) -> tuple[str, ...]:
    """Return the capabilities of `names` that are not in this process's effective set."""
    status = Path("/proc/self/status").read_text()
    match = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)
    effective = int(match[1], 16) if match else 0
    return tuple(name for name in names if not effective >> CAPABILITIES[name].bit & 1)


def in_user_namespace() -> bool:
    """Whether this process's capabilities are those of a user namespace, which do not count for the machine itself."""
    try:
        return Path("/proc/self/ns/user").stat().st_ino != _INITIAL_USER_NAMESPACE
    except OSError:  # a kernel without user namespaces
        return False


def require(purpose: str, *names: str) -> None:
    """Refuse at once when a capability is missing."""
    absent = missing(*names)
    if absent:
        raise HostError(f"{purpose} needs {described(absent)}, which this process lacks; {remedy(absent)}")
    if in_user_namespace():
        raise HostError(f"{purpose}: {USER_NAMESPACE}")


def described(names: tuple[str, ...]) -> str:
    """Return names of capabilities; with their uses, unless nearly all are missing, as for an ordinary user."""
    if len(names) > len(CAPABILITIES) // 2:
        return ", ".join(names)
    return ", ".join(f"{name} ({CAPABILITIES[name].use})" for name in names)


def remedy(names: tuple[str, ...]) -> str:
    """Return what gives a process the missing capabilities."""
    if in_user_namespace():
        return "a user namespace cannot measure: run natgauge as the machine's root"
    return f"run it as root, e.g. with sudo; in a container: {container_options(names)}"


def container_options(names: tuple[str, ...]) -> str:
    """Return the options of docker and podman that add capabilities."""
    return " ".join(f"--cap-add {name.removeprefix('CAP_')}" for name in names)


def shows_kernel_threads(root: Path = Path("/")) -> bool:
    """Whether /proc lists the kernel's own threads, by the numbers that this process can use for them.

    A PID namespace, as a container has it, has no numbers for them, and the kernel has no other way to reach a thread.
    """
    try:
        own = int((root / "proc/self").readlink().name)
        # Process 2 is the parent of all kernel threads, wherever they are visible.
        return own == os.getpid() and (root / "proc/2/comm").read_text().strip() == "kthreadd"
    except (OSError, ValueError):
        return False


#: Limits of version 1 that mean "none": the largest multiple of a page size.
_NO_LIMIT: Final = 1 << 60
_UNLIMITED: Final = frozenset({"max", "-1"})
#: Weight of a process in the root group, and of a group that was given none (version 1).
_USUAL_SHARES: Final = 1024


@dataclass(frozen=True, slots=True)
class Throttling:
    """Times that a CPU quota stopped this process's groups since these were made."""

    times: int = 0
    seconds: float = 0.0

    def since(self, before: Throttling) -> Throttling:
        """Return what was added since an earlier reading."""
        return Throttling(max(self.times - before.times, 0), max(self.seconds - before.seconds, 0.0))


@dataclass(frozen=True, slots=True)
class ControlGroups:
    """The control groups of this process; tests use a simulated root."""

    root: Path = Path("/")

    def cpu_quota(self) -> float | None:
        """Cores whose time the CPU quota permits; None = there is no quota."""
        quotas = []
        for group in self._groups("cpu"):
            first, _, second = text_of(group / "cpu.max").partition(" ")
            quota, period = (first, second) if first else (text_of(group / "cpu.cfs_quota_us"), "")
            period = period or text_of(group / "cpu.cfs_period_us")
            with suppress(ValueError, ZeroDivisionError):
                if quota not in _UNLIMITED:
                    quotas.append(int(quota) / int(period))
        return min(quotas, default=None)

    def narrow_cpu_group(self) -> str:
        """Return this process's CPU group of version 1, if it has the time of one process outside; empty = it has not.

        Its parent, or it itself, has the usual weight in the root group, in which every process has that weight. Of a
        parent that a container does not see, nothing else is known.
        """
        for _, top, mounted, options in self._mounts():
            for controllers, own in self._memberships():
                if own == "/" or "cpu" not in controllers or "cpu" not in options:
                    continue
                shares = [_limit(group, "cpu.shares") for group in _upwards(mounted, own, top)]
                seen = shares if top != "/" else shares[:-1]
                hidden = len(PurePosixPath(own).parts) - 1 > len(seen)
                if hidden or any(share is not None and share <= _USUAL_SHARES for share in seen):
                    return own
        return ""

    def throttling(self) -> Throttling:
        """Return how often a CPU quota stopped this process's groups: the group that was stopped for longest."""
        found = [Throttling()]
        for group in self._groups("cpu"):
            stat = _table(text_of(group / "cpu.stat"))
            nanoseconds = stat.get("throttled_usec", 0) * 1000 or stat.get("throttled_time", 0)
            found.append(Throttling(stat.get("nr_throttled", 0), nanoseconds / 1e9))
        return max(found, key=lambda one: (one.seconds, one.times))

    def memory_limit(self) -> int | None:
        """Octets that the lowest memory limit permits; None = there is no limit."""
        return min((limit for limit, _ in self._memory()), default=None)

    def memory_left(self) -> int | None:
        """Octets that this process may still take by its limits, with what the kernel can drop; None = no limit."""
        return min((max(limit - used, 0) for limit, used in self._memory()), default=None)

    def most_processes(self) -> int | None:
        """Processes and threads that the lowest limit permits; None = there is no limit."""
        return min((limit for group in self._groups("pids") if (limit := _limit(group, "pids.max"))), default=None)

    def _memory(self) -> Iterator[tuple[int, int]]:
        """Yield the limit and the use of each group that has a limit, in octets."""
        for group in self._groups("memory"):
            for most, now in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
                if (limit := _limit(group, most)) is not None:
                    stat = _table(text_of(group / "memory.stat"))
                    dropped = stat.get("total_inactive_file", stat.get("inactive_file", 0))
                    yield limit, (_limit(group, now) or 0) - dropped

    def _memberships(self) -> list[tuple[list[str], str]]:
        """Return the controllers of each of this process's groups, of version 2 a single empty one, and its path."""
        lines = (line.split(":", 2) for line in text_of(self.root / "proc/self/cgroup").splitlines())
        return [(line[1].split(","), line[2]) for line in lines if len(line) == 3]

    def _groups(self, controller: str) -> Iterator[Path]:
        """Yield this process's group and all above it that can be seen, in both versions."""
        for kind, top, mounted, options in self._mounts():
            for controllers, own in self._memberships():
                in_both = controller in controllers and controller in options
                if not (in_both if kind == "cgroup" else controllers == [""]):
                    continue
                yield from _upwards(mounted, own, top)

    def _mounts(self) -> Iterator[tuple[str, str, Path, list[str]]]:
        """Yield the kind, the top, the folder and the options of each mounted hierarchy."""
        for line in text_of(self.root / "proc/self/mountinfo").splitlines():
            mount, _, source = line.partition(" - ")
            fields, kinds = mount.split(), source.split()
            if len(fields) > 4 and len(kinds) > 2 and kinds[0] in ("cgroup", "cgroup2"):
                yield kinds[0], fields[3], self.root / fields[4].lstrip("/"), kinds[2].split(",")


def _upwards(mounted: Path, own: str, top: str) -> Iterator[Path]:
    """Yield the folders of group `own` and of those above it, up to `mounted`, where `top` is mounted."""
    path = PurePosixPath(own)
    visible = path.is_relative_to(top) and ".." not in path.parts
    below = path.relative_to(top) if visible else PurePosixPath()
    folder = mounted / below
    yield folder
    while folder != mounted:
        folder = folder.parent
        yield folder


def text_of(path: str | Path) -> str:
    """Return the text of a file, without blanks around it; empty where it cannot be read."""
    with suppress(OSError, ValueError):
        return Path(path).read_text(errors="replace").strip()
    return ""


def _limit(group: Path, name: str) -> int | None:
    text = text_of(group / name)
    with suppress(ValueError):
        if text not in _UNLIMITED and (number := int(text)) < _NO_LIMIT:
            return number
    return None


def _table(text: str) -> Mapping[str, int]:
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def memory_octets(name: str, text: str | None = None) -> int | None:
    """Return a value of /proc/meminfo, or of `text` like it, in octets, e.g. "MemAvailable"; None where missing."""
    if text is None:
        with suppress(OSError):
            text = Path("/proc/meminfo").read_text()
    match = re.search(rf"^{name}:\s+(\d+) kB$", text or "", re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def available_octets() -> int | None:
    """Return the octets that this process may still take, by the machine and by its memory limits; None = not known."""
    bounds = (memory_octets("MemAvailable"), ControlGroups().memory_left())
    return min((octets for octets in bounds if octets is not None), default=None)


#: Oldest kernel natgauge is made for: the last one whose veth could lose frames in bursts is 6.1.
LEAST_KERNEL: Final = (6, 6)
#: Every kernel has this folder in its /sys.
_SYS: Final = Path("/sys/devices")
#: Open files of a process that has a lab and an engine, and that of the largest ones.
_LEAST_FILES: Final = 64
_MANY_FILES: Final = 4096
#: Threads that natgauge has at the same time as its main thread, with the first ones of the engine.
_LEAST_THREADS: Final = 6


def refuse_lacking() -> None:
    """Refuse a process without /sys, or with too few open files or threads; raise its own limits as far as it may."""
    if not _SYS.exists():
        raise HostError("/sys: is not mounted, as in a chroot; mount it: mount -t sysfs sysfs /sys")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MANY_FILES if hard == resource.RLIM_INFINITY else min(hard, _MANY_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    if soft != resource.RLIM_INFINITY and soft < _LEAST_FILES:
        raise HostError(
            f"open files: this process may have {soft} at once, and {_LEAST_FILES} are needed; raise the limit: "
            "ulimit -n 1024 (docker, podman: --ulimit nofile=20000:20000)"
        )
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NPROC, (hard, hard))
    if not can_start_threads(_LEAST_THREADS):
        raise HostError(
            f"processes: this process may not have {_LEAST_THREADS} more threads; raise the limit: ulimit -u "
            "(docker, podman: --ulimit nproc=1000:1000), or pids.max of the control group (--pids-limit)"
        )
