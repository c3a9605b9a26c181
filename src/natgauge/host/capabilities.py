# SPDX-License-Identifier: Apache-2.0
"""Linux capabilities that natgauge needs, and the refusal where this process lacks one (capabilities(7))."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final, NamedTuple

from natgauge.errors import HostError

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
