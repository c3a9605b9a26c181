# SPDX-License-Identifier: Apache-2.0
"""Checks of what a container or a service manager may withhold: privileges, writable settings, limits, quotas."""

from __future__ import annotations

import os
from collections.abc import Iterator

from natgauge.errors import HostError
from natgauge.finding import Finding
from natgauge.host import capabilities, limits
from natgauge.host.limits import ControlGroups
from natgauge.tester.finding import Host


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
        yield Finding(
            "kernel threads",
            "warning",
            "a PID namespace, as a container has it, does not show them: placement isolated cannot be used",
            "docker run --pid=host; until then use --placement shared",
        )


def quotas(host: Host) -> Iterator[Finding]:
    """Yield the findings on the limits of this process's control groups."""
    groups = ControlGroups(host.root)
    quota, memory, processes = groups.cpu_quota(), groups.memory_limit(), groups.most_processes()
    if quota is not None:
        stopped = groups.throttling()
        what = (
            f"a CPU quota permits {quota:g} cores, and has stopped this group {stopped.times} times, for "
            f"{stopped.seconds:.1f} s: trials that it stops are INVALID, and rates may be too low"
        )
        yield Finding("CPU quota", "warning", what, "remove the quota (docker: --cpus; Kubernetes: limits.cpu)")
    else:
        yield Finding("CPU quota", "ok", "there is none")
    bounds = [] if memory is None else [f"{memory >> 20} MiB of memory"]
    bounds += [] if processes is None else [f"{processes} processes and threads"]
    yield Finding("control group", "ok", f"permits {', '.join(bounds)}" if bounds else "sets no other limits")
