# SPDX-License-Identifier: Apache-2.0
"""Limits of this process (setrlimit(2), cgroups(7)) that every lab and measurement needs, checked before anything."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Final

from natgauge.errors import HostError
from natgauge.system_errors import can_start_threads

#: Oldest kernel natgauge is made for: the last one whose veth could lose frames in bursts is 6.1.
LEAST_KERNEL: Final = (6, 6)
#: Every kernel has this folder in its /sys.
_SYS: Final = Path("/sys/devices")
#: Open files of a process that has a lab and an engine, and that of the largest ones.
LEAST_FILES: Final = 64
_MANY_FILES: Final = 4096
#: Threads that natgauge has at the same time as its main thread, with the first ones of the engine.
LEAST_THREADS: Final = 6


def refuse_lacking() -> None:
    """Refuse a process without /sys, or with too few open files or threads; raise its own limit of files if it may."""
    if not _SYS.exists():
        raise HostError("/sys: is not mounted, as in a chroot; mount it: mount -t sysfs sysfs /sys")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MANY_FILES if hard == resource.RLIM_INFINITY else min(hard, _MANY_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    if soft != resource.RLIM_INFINITY and soft < LEAST_FILES:
        raise HostError(
            f"open files: this process may have {soft} at once, and {LEAST_FILES} are needed; raise the limit: "
            "ulimit -n 1024"
        )
    if not can_start_threads(LEAST_THREADS):
        raise HostError(
            f"processes: this process may not have {LEAST_THREADS} more threads; raise the limit: ulimit -u, or "
            "pids.max of the control group (docker: --pids-limit)"
        )
