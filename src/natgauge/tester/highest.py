# SPDX-License-Identifier: Apache-2.0
"""The tester's own highest rates for the frames of a measurement, measured on a cable once per host and setting.

They are the upper limits of all searches (RFC 9004 and RFC 9971 require measuring the tester first).
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
from typing import Final

from natgauge import files, foreign
from natgauge.delays import Delays
from natgauge.errors import UsageError
from natgauge.host import programs
from natgauge.host.machine import cpu_model, facts
from natgauge.tester.cable import LEAST_CONNECTIONS, MOST_CONNECTIONS, CableLab, CableTester, FrameKind

#: Number of measurements on a host that is always disturbed, after which the best is stored permanently.
DISTURBED_ENOUGH: Final = 3
#: Facts about the machine that settings change, and the speed of the tester with them.
_SETTINGS: Final = ("kernel_parameters", "clock_source", "governor", "smt", "mitigations")
_JIT: Final = Path("/proc/sys/net/core/bpf_jit_enable")


def cable_name() -> str:
    """Return a cable's name that no other process uses: measurements in different labs may run at the same time."""
    return f"selftest-{os.getpid()}"


@dataclass(frozen=True, slots=True)
class HighestRates:
    """The tester's own highest rates of one profile, frames/s, all directions together.

    Attributes:
        own_ports: whether the rates apply to the ports of the measurement; rates of a veth cable do not apply to a
            network card.
    """

    phase1: float
    phase2: float
    own_ports: bool = True


def highest_rates(profile: FrameKind, sender_cpus: Sequence[int], connections: int) -> HighestRates:
    """Return the tester's own highest rates with `connections`, measured once per host and setting, then stored.

    The best of a few trials counts, because a rate that a disturbance made too low would limit the searches. Where a
    trial was disturbed, the trials are repeated the next times, and the best of all counts. The rates are stored below
    $XDG_CACHE_HOME (or ~/.cache), and measured again when the kernel, the CPU, the engine, a setting of the
    machine or one of the measurement changes.
    """
    number = min(max(connections, LEAST_CONNECTIONS), MOST_CONNECTIONS)
    key = _cache_key(profile, sender_cpus, number)
    known = _read_cache()
    rates = _remembered(known.get(key))
    if rates is not None and not 0 < rates.disturbed < DISTURBED_ENOUGH:
        return rates.rates
    with CableLab(cable_name()) as cable:
        tester = CableTester(cable, tuple(sender_cpus), connections=number)
        phase1, phase2 = tester.highest(profile, max)
    disturbed = 0
    if tester.disturbed:
        disturbed = 1 if rates is None else rates.disturbed + 1
    if rates is not None:
        phase1, phase2 = max(phase1, rates.rates.phase1), max(phase2, rates.rates.phase2)
    _write_cache({**known, key: [phase1, phase2, disturbed]})
    return HighestRates(phase1, phase2)


@dataclass(frozen=True, slots=True)
class _Remembered:
    """Rates, and the number of their measurements, all disturbed; 0 = one measurement was undisturbed."""

    rates: HighestRates
    disturbed: int


def own_delays(profile: FrameKind, sender_cpus: Sequence[int], rate: float, seconds: float, batch: int) -> Delays:
    """Return the tester's own delays, measured on a cable at `rate` frames/s; `batch`: frames that leave together."""
    with CableLab(cable_name()) as cable:
        return CableTester(cable, tuple(sender_cpus)).delays(profile, rate, seconds, batch)


def _remembered(entry: object) -> _Remembered | None:
    """Read an entry of the cache; None where it is not of this version."""
    if not isinstance(entry, list) or len(entry) != 3 or not isinstance(entry[2], int):
        return None
    if not all(isinstance(rate, float) and rate > 0 for rate in entry[:2]):
        return None
    return _Remembered(HighestRates(entry[0], entry[1]), entry[2])


def _cache_key(profile: FrameKind, sender_cpus: Sequence[int], connections: int) -> str:
    engine = hashlib.sha256(programs.find("natgauge-engine").read_bytes()).hexdigest()[:16]
    parts = (platform.node(), platform.release(), cpu_model(), _machine_settings(), engine, *map(str, sender_cpus))
    timed = "variation" if profile.variation else "delays" if profile.delays else "no delays"
    words = () if profile.query is None else (f"queries of type {profile.query}",)
    words = words if profile.transport == "udp" else (*words, profile.transport)
    words = words if profile.close is None else (*words, f"{profile.request_octets} octets, {profile.close}")
    words = (*words, "half-open") if profile.half_open else words
    words = words if profile.frame_sizes is None else (*words, profile.frame_sizes)
    return "|".join((*parts, profile.family, str(profile.frame_size), timed, *words, f"{connections} connections"))


def _machine_settings() -> str:
    """Return a digest of the settings of this machine that change the tester's speed."""
    known = facts()
    settings: dict[str, object] = {name: known.get(name) for name in _SETTINGS}
    with suppress(OSError):
        settings["jit"] = _JIT.read_text().strip()
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]


def _cache_path() -> Path:
    # Without a home the path stays "~", where there is no cache.
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
    return Path(base) / "natgauge" / "selftest.json"


def _read_cache() -> dict[str, object]:
    """Read the cache; empty where it cannot be read, because the rates can be measured again."""
    try:
        document = json.loads(foreign.read_text(_cache_path(), foreign.MEMORY))
    except (UsageError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _write_cache(entries: dict[str, object]) -> None:
    path = _cache_path()
    if not path.is_absolute():
        return
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        files.replace(path, json.dumps(entries, indent=2))
