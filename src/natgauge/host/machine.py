# SPDX-License-Identifier: Apache-2.0
"""This machine: kernel, CPU, memory, clock, versions; RFC 9693 section 6 wants all of it told with a result."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from natgauge.host.cpus import online_cpus
from natgauge.version import VERSION

_CPUINFO: Final = {"model name": "model", "cache size": "cache", "microcode": "microcode", "flags": "flags"}


def facts() -> Mapping[str, object]:
    """Facts about this machine; what cannot be read is absent."""
    facts: dict[str, object] = {
        "natgauge": VERSION,
        "python": platform.python_version(),
        "host": platform.node(),
        "system": _system(),
        "kernel": platform.release(),
        "kernel_build": platform.version(),
        "architecture": platform.machine(),
        "cpu": _cpu(),
        "cpus_online": list(online_cpus()),
        "hypervisor": "hypervisor" in _cpuinfo().get("flags", "").split(),
        "command_line": _read("/proc/cmdline"),
        "clock_source": _read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "smt": _read("/sys/devices/system/cpu/smt/active"),
        "mitigations": _mitigations(),
        "memory_octets": memory_octets("MemTotal"),
        "memory_available_octets": memory_octets("MemAvailable"),
        "load_average": list(os.getloadavg()),
    }
    return {name: fact for name, fact in facts.items() if fact not in (None, "", {})}


def _read(path: str) -> str | None:
    with suppress(OSError):
        return Path(path).read_text().strip()
    return None


def _system() -> str | None:
    match = re.search(r'^PRETTY_NAME="?([^"\n]+)', _read("/etc/os-release") or "", re.MULTILINE)
    return match[1] if match else None


def _cpuinfo() -> dict[str, str]:
    """Of the first CPU."""
    first = (_read("/proc/cpuinfo") or "").split("\n\n", 1)[0]
    pairs = (line.split(":", 1) for line in first.splitlines() if ":" in line)
    return {_CPUINFO[key.strip()]: value.strip() for key, value in pairs if key.strip() in _CPUINFO}


def cpu_model() -> str:
    """The CPU's name; the architecture's where it has none."""
    return _cpuinfo().get("model") or platform.machine()


def _cpu() -> dict[str, str]:
    return {name: value for name, value in _cpuinfo().items() if name != "flags"}


def _mitigations() -> dict[str, str]:
    """The kernel's answers to CPU faults; some cost a NAT a large part of its rate."""
    folder = Path("/sys/devices/system/cpu/vulnerabilities")
    found = {path.name: _read(str(path)) for path in sorted(folder.glob("*"))} if folder.is_dir() else {}
    return {name: text for name, text in found.items() if text and text != "Not affected"}


def memory_octets(name: str, text: str | None = None) -> int | None:
    """A figure of /proc/meminfo, or of `text` like it, in octets, e.g. of "MemAvailable"; None where there is none."""
    found = _read("/proc/meminfo") if text is None else text
    match = re.search(rf"^{name}:\s+(\d+) kB$", found or "", re.MULTILINE)
    return int(match[1]) * 1024 if match else None
