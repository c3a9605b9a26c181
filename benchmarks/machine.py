# SPDX-License-Identifier: Apache-2.0
"""The machine a figure was measured on."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path


def describe() -> dict[str, str | int | float]:
    """CPU model, cores, memory (GiB), kernel, clock source, distribution, date (UTC) and load before the run."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _cpu_model(),
        "cores": os.cpu_count() or 0,
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": platform.release(),
        "clock": _text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "mitigations": _mitigations(),
        "hypervisor": "yes" if " hypervisor" in _text("/proc/cpuinfo") else "no",
        "distribution": platform.freedesktop_os_release().get("PRETTY_NAME", "unknown"),
        "load_before": round(os.getloadavg()[0], 2),
    }


def _cpu_model() -> str:
    for line in _text("/proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def _mitigations() -> str:
    """Those that make calls dear; the others cost nothing here."""
    folder = Path("/sys/devices/system/cpu/vulnerabilities")
    names = ("spectre_v2", "retbleed", "spec_rstack_overflow", "indirect_target_selection")
    found = {name: _text(str(folder / name)) for name in names if (folder / name).exists()}
    return "; ".join(f"{name}: {text}" for name, text in found.items() if text != "Not affected") or "none needed"


def _text(path: str) -> str:
    return Path(path).read_text().strip()
