# SPDX-License-Identifier: Apache-2.0
"""This machine: its cores and the check of a choice of them, its kernel, CPU, memory, clock, versions.

RFC 9693 section 6 requires these facts in the report of a result.
"""

from __future__ import annotations

import functools
import os
import platform
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from natgauge.errors import UsageError
from natgauge.host.capabilities import ControlGroups, available_octets, memory_octets, text_of
from natgauge.inputs.measuring_types import format_cores, parse_cores
from natgauge.version import exact_version

#: Seconds of observation to find the least busy core: 20 ticks of /proc/stat.
_IDLE_WATCH_SECONDS: Final = 0.2
#: Least share of the highest speed that a core of the fastest kind has: equal cores may have different turbo speeds.
_ALIKE: Final = 0.9

_ONLINE = Path("/sys/devices/system/cpu/online")
_ISOLATED = Path("/sys/devices/system/cpu/isolated")
#: Cores that a plan for another machine assumes; None = the cores of this machine.
_assumed: ContextVar[tuple[int, ...] | None] = ContextVar("assumed cores", default=None)


def online_cpus() -> tuple[int, ...]:
    """Cores the kernel runs on now, ascending."""
    if (pretended := _assumed.get()) is not None:
        return pretended
    try:
        return parse_cores(_ONLINE.read_text())
    except OSError:
        return tuple(range(os.cpu_count() or 1))


def usable_cpus() -> tuple[int, ...]:
    """Online cores this process may be pinned to (cpusets and taskset narrow them), ascending."""
    if (pretended := _assumed.get()) is not None:
        return pretended
    return tuple(sorted(os.sched_getaffinity(0) & set(online_cpus())))


@contextmanager
def as_if(cores: int | Sequence[int] | None) -> Iterator[None]:
    """Plan as if this machine had these cores; a number N = 0 to N - 1, None = its own. Never for trials."""
    token = _assumed.set(None if cores is None else tuple(range(cores) if isinstance(cores, int) else cores))
    try:
        yield
    finally:
        _assumed.reset(token)


def check_cpus(cpus: Sequence[int], what: str, at: str = "") -> tuple[int, ...]:
    """Refuse a choice of cores that this process cannot use."""
    if not cpus:
        raise UsageError(f"{what}: none chosen; name at least one of {format_cores(usable_cpus())}", at=at)
    if len(set(cpus)) != len(cpus):
        raise UsageError(f"{what} {format_cores(cpus)}: a core is named twice; name each once", at=at)
    usable = usable_cpus()
    for cpu in cpus:
        if cpu not in usable:
            raise UsageError(
                f"{what}: core {cpu} cannot be used here; choose from {format_cores(usable)}{_way_to(cpu)}", at=at
            )
    return tuple(cpus)


def _way_to(cpu: int) -> str:
    """Return how to use a core that `isolcpus=` takes from every process; empty = it does not take this one."""
    try:
        isolated = parse_cores(_ISOLATED.read_text())
    except (OSError, UsageError):
        return ""
    every = format_cores(online_cpus())
    return f", or start natgauge with taskset -c {every}, because isolcpus= isolates it" if cpu in isolated else ""


def idlest_core(cpus: Sequence[int], seconds: float = _IDLE_WATCH_SECONDS) -> int:
    """Return the core of the fastest kind that idles most during `seconds`; the first of equals."""
    before = _idle_ticks()
    time.sleep(seconds)
    after = _idle_ticks()
    return max(fastest_of(cpus), key=lambda cpu: (after.get(cpu, 0) - before.get(cpu, 0), -cpu))


def fastest_of(cpus: Sequence[int], root: Path = Path("/")) -> tuple[int, ...]:
    """Return the cores of the fastest kind, of performance and efficiency cores for example.

    These are all cores where the kernel does not report how fast each is (cpu_capacity, or its highest clock speed).
    """
    for name in ("cpu_capacity", "cpufreq/cpuinfo_max_freq"):
        speeds = {cpu: _number_in(root / f"{_CPUS}/cpu{cpu}/{name}".lstrip("/")) for cpu in cpus}
        if speeds and all(speeds.values()):
            least = _ALIKE * max(speeds.values())
            return tuple(cpu for cpu in cpus if speeds[cpu] >= least)
    return tuple(cpus)


def _number_in(file: Path) -> int:
    """Return the number in a file; 0 where there is none."""
    with suppress(OSError, ValueError):
        return int(file.read_text())
    return 0


def _idle_ticks() -> dict[int, int]:
    """Return the idle ticks of each core since boot (proc_stat(5): the fourth and fifth figure of its line)."""
    lines = Path("/proc/stat").read_text().splitlines()
    cores = [line.split() for line in lines if line.startswith("cpu") and not line.startswith("cpu ")]
    return {int(words[0].removeprefix("cpu")): int(words[4]) + int(words[5]) for words in cores}


#: Folder of the descriptions, patterns of their files in it, and shell text that prints them for `caches_in`.
_CPUS: Final = "/sys/devices/system/cpu"
_CACHE_FILES: Final = tuple(f"cpu[0-9]*/cache/index*/{name}" for name in ("level", "type", "size", "shared_cpu_list"))
CACHES_SCRIPT: Final = f"cd {_CPUS} 2> /dev/null && grep -s . {' '.join(_CACHE_FILES)} || :"

_CACHE_LINE: Final = re.compile(r"^cpu(\d+)/cache/(index\w+)/(\w+):(.+)$", re.MULTILINE)
_CACHE_SIZE: Final = re.compile(r"(\d+)([KMG]?)")
_UNITS: Final = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


@functools.cache
def caches_of(cores: tuple[int, ...]) -> Mapping[str, int]:
    """Return the caches of cores of this machine, as `caches_in` does; no machine changes them, so it is read once."""
    lines = []
    for pattern in _CACHE_FILES:
        for path in Path(_CPUS).glob(pattern):
            with suppress(OSError):
                lines.append(f"{path.relative_to(_CPUS)}:{path.read_text(encoding='ascii').strip()}")
    return caches_in("\n".join(lines), cores)


def caches_in(text: str, cores: Sequence[int]) -> dict[str, int]:
    """Octets of all different data caches that these cores use, by level, such as "L2"; empty = not known."""
    every: dict[tuple[int, str], dict[str, str]] = {}
    for core, index, name, value in _CACHE_LINE.findall(text):
        every.setdefault((int(core), index), {})[name] = value.strip()
    # Cores that share a cache give the same list of cores for it.
    different: dict[tuple[str, str], int] = {}
    for (core, _), cache in every.items():
        size = _CACHE_SIZE.fullmatch(cache.get("size", ""))
        if core in cores and size and cache.get("level") and cache.get("type") in ("Data", "Unified"):
            shared = cache.get("shared_cpu_list", str(core))
            different[f"L{cache['level']}", shared] = int(size[1]) * _UNITS[size[2]]
    levels = sorted({level for level, _ in different})
    return {level: sum(octets for (of, _), octets in different.items() if of == level) for level in levels}


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
