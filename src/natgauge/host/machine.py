# SPDX-License-Identifier: Apache-2.0
"""This machine: kernel, CPU, memory, clock, versions. RFC 9693 section 6 requires them in the report of a result."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from natgauge.host.cpus import online_cpus
from natgauge.host.limits import ControlGroups, available_octets, memory_octets, text_of
from natgauge.version import exact_version

_CPUINFO: Final = {"model name": "model", "cache size": "cache", "microcode": "microcode", "flags": "flags"}


#: Parameters of the kernel's command line that move figures, as `fnmatch` patterns; others may be private.
_MOVING: Final = (
    "isolcpus", "nohz", "nohz_full", "rcu_nocbs", "rcu_nocb_poll", "irqaffinity", "managed_irq", "maxcpus", "nr_cpus",
    "nosmt", "noht", "threadirqs", "preempt", "sched_*", "skew_tick", "numa", "numa_balancing", "numa_zonelist_order",
    "mitigations", "nopti", "pti", "kpti", "nospectre_*", "spectre_*", "spec_*", "l1tf", "l1d_flush", "mds", "tsx",
    "tsx_async_abort", "mmio_stale_data", "retbleed", "srbds", "gather_data_sampling", "reg_file_data_sampling",
    "indirect_target_selection", "tsa", "vmscape", "kvm*", "ssbd", "*.mitigations",
    "idle", "intel_idle.*", "processor.*", "cpuidle.*", "cpuidle_*", "haltpoll.*", "cpufreq.*",
    "intel_pstate", "amd_pstate", "amd_prefcore",
    "clocksource", "tsc", "hpet", "highres", "no_timer_check", "nmi_watchdog", "nowatchdog", "nosoftlockup",
    "watchdog*",
    "hugepages", "hugepagesz", "default_hugepagesz", "transparent_hugepage", "init_on_alloc", "init_on_free",
    "slab_nomerge", "slub_*", "page_alloc.*", "page_poison", "iommu", "iommu.*", "intel_iommu", "amd_iommu", "swiotlb",
    "pcie_aspm", "pci", "audit", "mem", "memmap", "nf_conntrack.*", "debug_*", "kasan*", "lockdep*",
)  # fmt: skip


def facts(*, host_name: bool = False) -> Mapping[str, object]:
    """Return the facts about this machine that may move a figure; unreadable facts are absent.

    Args:
        host_name: whether to include the machine's name, which moves no figure and may be private.
    """
    groups, cpu = ControlGroups(), _cpuinfo()
    facts: dict[str, object] = {
        "natgauge": exact_version(),
        "python": platform.python_version(),
        "host": platform.node() if host_name else None,
        "system": _system(),
        "kernel": platform.release(),
        "kernel_build": platform.version(),
        "architecture": platform.machine(),
        "cpu": {name: value for name, value in cpu.items() if name != "flags"},
        "cpus_online": list(online_cpus()),
        "hypervisor": "hypervisor" in cpu.get("flags", "").split(),
        "kernel_parameters": moving_parameters(text_of("/proc/cmdline")),
        "clock_source": text_of("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "governor": text_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "smt": text_of("/sys/devices/system/cpu/smt/active"),
        "mitigations": _mitigations(),
        "memory_octets": memory_octets("MemTotal"),
        "memory_available_octets": available_octets(),
        "memory_limit_octets": groups.memory_limit(),
        "cpu_quota": groups.cpu_quota(),
        "load_average": list(os.getloadavg()),
    }
    return {name: fact for name, fact in facts.items() if fact not in (None, "", {}, [])}


def moving_parameters(command_line: str) -> list[str]:
    """Return the parameters of a kernel's command line that move figures, unchanged.

    Args:
        command_line: text of /proc/cmdline; double quotes enclose one word, and words after "--" are not the kernel's.
    """
    words = re.findall(r'(?:[^\s"]|"[^"]*")+', command_line)
    words = words[: words.index("--")] if "--" in words else words
    # The kernel takes "-" and "_" in names for the same.
    names = [(word.strip('"').split("=", 1)[0].replace("-", "_"), word) for word in words]
    return [word for name, word in names if any(fnmatchcase(name, pattern) for pattern in _MOVING)]


def _system() -> str | None:
    match = re.search(r'^PRETTY_NAME="?([^"\n]+)', text_of("/etc/os-release"), re.MULTILINE)
    return match[1] if match else None


def _cpuinfo() -> dict[str, str]:
    first = text_of("/proc/cpuinfo").split("\n\n", 1)[0]
    pairs = (line.split(":", 1) for line in first.splitlines() if ":" in line)
    return {_CPUINFO[key.strip()]: value.strip() for key, value in pairs if key.strip() in _CPUINFO}


def cpu_model() -> str:
    """Return the CPU's name, or the architecture's where it has none."""
    return _cpuinfo().get("model") or platform.machine()


def _mitigations() -> dict[str, str]:
    """The kernel's answers to CPU faults; some cost a NAT a large part of its rate."""
    folder = Path("/sys/devices/system/cpu/vulnerabilities")
    mitigations = {path.name: text_of(path) for path in sorted(folder.glob("*"))} if folder.is_dir() else {}
    return {name: text for name, text in mitigations.items() if text and text != "Not affected"}
