# SPDX-License-Identifier: Apache-2.0
"""What the tester itself can do with the frames of a measurement: measured on a cable once per host and setting.

Every measurement takes its search's ceiling from here (RFC 9004 and the MLRsearch draft ask for the tester first).
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from natgauge.host import programs
from natgauge.host.machine import cpu_model
from natgauge.labs.cable import CableLab
from natgauge.measurer import Delays
from natgauge.tester.cable import CableTester, FrameKind


def cable_name() -> str:
    """Every process has a cable of its own: measurements in different labs may go on at one time."""
    return f"selftest-{os.getpid()}"


@dataclass(frozen=True, slots=True)
class HighestRates:
    """The tester's own highest rates of one profile, frames/s, all directions together."""

    phase1: float
    phase2: float


def highest_rates(profile: FrameKind, sender_cpus: Sequence[int]) -> HighestRates:
    """The tester's own highest rates, measured in seconds once per host and setting, then remembered.

    The best of a few trials counts, and disturbed ones are not remembered: as a search's ceiling, a figure that a busy
    moment made too low would be in the way.
    Remembered below $XDG_CACHE_HOME (or ~/.cache) and measured anew when kernel, CPU, engine or setting change.

    Raises:
        HostError: a capability, the engine or a CPU is missing.
        BrokenError: the cable passed nothing, or the engine broke.
    """
    key = _cache_key(profile, sender_cpus)
    known = _read_cache()
    if (found := _rates_from(known.get(key))) is not None:
        return found
    with CableLab(cable_name()) as cable:
        tester = CableTester(cable, tuple(sender_cpus))
        rates = HighestRates(*tester.highest(profile, max))
    if not tester.disturbed:
        _write_cache({**known, key: [rates.phase1, rates.phase2]})
    return rates


def own_delays(profile: FrameKind, sender_cpus: Sequence[int], rate: float, seconds: float) -> Delays:
    """What the tester itself adds to every delay, measured on a cable of its own at this rate.

    Raises:
        HostError: a capability, the engine or a CPU is missing.
        BrokenError: no frame was timed, or the engine broke.
    """
    with CableLab(cable_name()) as cable:
        return CableTester(cable, tuple(sender_cpus)).delays(profile, rate, seconds)


def _rates_from(entry: object) -> HighestRates | None:
    if isinstance(entry, list) and len(entry) == 2 and all(isinstance(rate, float) and rate > 0 for rate in entry):
        return HighestRates(entry[0], entry[1])
    return None


def _cache_key(profile: FrameKind, sender_cpus: Sequence[int]) -> str:
    """Everything a highest rate depends on."""
    engine = hashlib.sha256(programs.find("natgauge-engine").read_bytes()).hexdigest()[:16]
    parts = (platform.node(), platform.release(), cpu_model(), engine, *map(str, sender_cpus))
    timed = "variation" if profile.variation else "delays" if profile.delays else "no delays"
    return "|".join((*parts, profile.family, str(profile.frame_size), timed))


def _cache_path() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "natgauge" / "selftest.json"


def _read_cache() -> dict[str, object]:
    """What is remembered; nothing when it cannot be read, for it can be measured again."""
    try:
        document = json.loads(_cache_path().read_text())
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _write_cache(entries: dict[str, object]) -> None:
    path = _cache_path()
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(entries, indent=2))
        partial.replace(path)
