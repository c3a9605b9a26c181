# SPDX-License-Identifier: Apache-2.0
"""Checks of the host: programs, a short trial, and what a container or a service manager may withhold."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from natgauge.agreement.generated import StreamCounts
from natgauge.errors import HostError
from natgauge.figure_text import with_noun
from natgauge.finding import Finding
from natgauge.gateways.support import has_module
from natgauge.host import capabilities, limits, programs
from natgauge.host.limits import ControlGroups
from natgauge.tester.cable import handful
from natgauge.tester.cable_lab import CableLab


def send_over_a_cable() -> StreamCounts:
    """Make a cable, send 1000 IPv4 frames over it at 100000 frames/s, and remove the cable."""
    # The name contains the process: two processes may probe a host at the same time.
    with CableLab(f"doctor-{os.getpid()}") as cable:
        return handful(cable.initiator, cable.responder, rate=100_000.0, grace_ms=50, seconds=20.0)


class NoText(Enum):
    """Why a file has no text."""

    ABSENT = "is not there"
    REFUSED = "cannot be read by this user"
    NO_SYS = "cannot be read, because /sys is not mounted"


_MENDS = {
    NoText.ABSENT: "natgauge doctor, on the machine itself, outside of containers",
    NoText.REFUSED: "sudo natgauge doctor",
    NoText.NO_SYS: "mount -t sysfs sysfs /sys",
}


@dataclass(frozen=True, slots=True)
class Host:
    """The host to check; tests use a simulated host.

    Attributes:
        prove: sends frames over a cable; None = not tried.
        gateways: names or paths of the gateways that it is checked for; empty = all.
    """

    root: Path = Path("/")
    release: str = field(default_factory=lambda: os.uname().release)
    prove: Callable[[], StreamCounts] | None = send_over_a_cable
    find: Callable[[str], str | None] = programs.find_of_devices
    has: Callable[[str], bool] = has_module
    gateways: tuple[str, ...] = ()

    def path(self, path: str) -> Path:
        """Return where a path of the host is."""
        return self.root / path.lstrip("/")

    def read(self, path: str) -> str | NoText:
        """Return the text of a file, stripped, or why there is none."""
        try:
            return self.path(path).read_text().strip()
        except (FileNotFoundError, NotADirectoryError):
            # Every kernel has this folder in its /sys.
            hidden = path.startswith("/sys/") and not self.path("/sys/devices").exists()
            return NoText.NO_SYS if hidden else NoText.ABSENT
        except (OSError, ValueError):
            return NoText.REFUSED


def unknown(name: str, path: str, why: NoText) -> Finding:
    """Return the finding of a check that could not read what it depends on."""
    return Finding(name, "warning", f"not known: {path} {why.value}", _MENDS[why])


def privileges(_host: Host) -> Iterator[Finding]:
    """Yield the finding on capabilities."""
    absent = capabilities.missing(*capabilities.MEASURING)
    if capabilities.in_user_namespace():
        yield Finding("capabilities", "missing", capabilities.USER_NAMESPACE, "sudo natgauge doctor")
    elif absent:
        what = f"this process lacks {capabilities.described(absent)}"
        mend = f"sudo natgauge doctor; in a container: {capabilities.container_options(absent)}"
        yield Finding("capabilities", "missing", what, mend)
    elif rare := capabilities.missing(*capabilities.PROCESSES):
        what = f"this process lacks {capabilities.described(rare)}, which a few gateways have"
        mend = f"sudo natgauge doctor; in a container: {capabilities.container_options(rare)}"
        yield Finding("capabilities", "warning", what, mend)
    else:
        yield Finding("capabilities", "ok", f"this process has {', '.join(capabilities.MEASURING)}")


def writable(host: Host) -> Iterator[Finding]:
    """Yield the finding on settings of the kernel, which Docker mounts read-only without --privileged."""
    try:
        read_only = os.statvfs(host.path("/proc/sys")).f_flag & os.ST_RDONLY
    except OSError as error:
        yield Finding("/proc/sys", "missing", f"/proc/sys: {error.strerror}", "mount -t proc proc /proc")
        return
    if read_only:
        what = "read-only, as in a container: a device cannot be made to forward"
        yield Finding("/proc/sys", "missing", what, "mount -o remount,rw /proc/sys, or docker run --privileged")
    else:
        yield Finding("/proc/sys", "ok", "can be written")


def process_limits(_host: Host) -> Iterator[Finding]:
    """Yield the finding on /sys, and on the limits of open files and threads."""
    try:
        limits.refuse_lacking()
    except HostError as error:
        yield Finding("limits", "missing", str(error), "natgauge doctor, in an environment that has it")
    else:
        yield Finding("limits", "ok", "enough open files and threads")


def kernel_threads(host: Host) -> Iterator[Finding]:
    """Yield the finding on the kernel's threads, which placement `isolated` gives a priority."""
    if capabilities.shows_kernel_threads(host.root):
        yield Finding("kernel threads", "ok", "/proc shows them")
    else:
        what = "a PID namespace, as a container has it, does not show them: placement isolated cannot be used"
        yield Finding("kernel threads", "warning", what, "docker run --pid=host; until then use --placement shared")


def quotas(host: Host) -> Iterator[Finding]:
    """Yield the findings on the limits of this process's control groups."""
    groups = ControlGroups(host.root)
    quota, memory, processes = groups.cpu_quota(), groups.memory_limit(), groups.most_processes()
    if quota is not None:
        stopped = groups.throttling()
        what = (
            f"a CPU quota permits {with_noun(f'{quota:g}', 'cores')}, and has stopped this group "
            f"{with_noun(stopped.times, 'times')}, for {stopped.seconds:.1f} s: trials that it stops are INVALID, and "
            "rates may be too low"
        )
        yield Finding("CPU quota", "warning", what, "remove the quota (docker: --cpus; Kubernetes: limits.cpu)")
    else:
        yield Finding("CPU quota", "ok", "there is none")
    bounds = [] if memory is None else [f"{memory >> 20} MiB of memory"]
    bounds += [] if processes is None else [f"{processes} processes and threads"]
    yield Finding("control group", "ok", f"permits {', '.join(bounds)}" if bounds else "sets no other limits")
