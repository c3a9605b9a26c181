# SPDX-License-Identifier: Apache-2.0
"""The tester measured on a cable of its own: what it can send, receive, judge and record with no device in between.

A figure about a device means nothing unless the tester alone does clearly better, so every measurement takes its
search's ceiling from here and marks what comes near it (RFC 9004 and the MLRsearch draft ask for the same order: the
tester first).
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import secrets
import statistics
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from natgauge.counts import delays_of, stalls_of
from natgauge.errors import BrokenError, UsageError
from natgauge.host import programs
from natgauge.host.cpus import check_cpus, usable_cpus
from natgauge.host.machine import cpu_model
from natgauge.labs import addresses
from natgauge.labs.cable import CableLab
from natgauge.labs.contract import Port
from natgauge.measurer import Delays
from natgauge.trials import (
    AddressRange,
    Frame,
    GatewaySide,
    InitiatorSide,
    InitiatorStream,
    Phase1,
    Phase2,
    PortRange,
    ResponderSide,
    Senders,
    StreamCounts,
    Translation,
    TrialRequest,
    TrialResult,
    phase1_of,
    run,
)
from natgauge.words import Family

#: Rate asked for when the highest is sought: beyond what any core does, within what the engine accepts.
BEYOND_REACH: Final = 60_000_000.0
#: Connections of the cable's trials: their state table (8 MB) is larger than a core's own caches, as in real use.
CONNECTIONS: Final = 1_000_000
#: Share of the highest rate at which no frame may be lost.
SAFE_SHARE: Final = 0.9
#: Nominal seconds of sending in each trial.
TRIAL_SECONDS: Final = 0.5
MAXIMUM_FRAMES: Final = 2**40 - 1
_REPEATS: Final = 3
_GRACE_MS: Final = 50

#: Frame sizes of the full self-test, octets with FCS (RFC 2544 section 9; IPv6's least is 84).
SIZES: Final[dict[Family, tuple[int, ...]]] = {"ipv4": (64, 512, 1518), "ipv6": (84, 512, 1518)}

Runner = Callable[[TrialRequest], TrialResult]


class Cable(Protocol):
    """Two tester ports joined without a device."""

    initiator: Port
    responder: Port


@dataclass(frozen=True, slots=True)
class FrameKind:
    """What the frames of one cell are like; `frame_size` in octets with FCS.

    `delays`: every frame is timed; `variation`: and held against the one before.
    """

    family: Family
    frame_size: int
    delays: bool
    variation: bool = False


@dataclass(frozen=True, slots=True)
class CableFigures:
    """What the tester did on the cable.

    Attributes:
        family: of both ends.
        frame_size: octets with FCS.
        delays: whether every frame was timed.
        frames_per_second: highest rate of phase 2, one direction: median over repeats of offered frames / sending time.
        phase1_frames_per_second: the same for phase 1 (each frame a new connection).
        rate_at_90_percent: intended rate of the loss check.
        frames_at_90_percent: offered frames of the loss check.
        lost_at_90_percent: of these, frames that were not received.
        worst_lag_ns: largest time a frame of the loss check left after it was due.
        mean_lag_ns: the mean of that.
    """

    family: Family
    frame_size: int
    delays: bool
    frames_per_second: float
    phase1_frames_per_second: float
    rate_at_90_percent: float
    frames_at_90_percent: int
    lost_at_90_percent: int
    worst_lag_ns: int | None
    mean_lag_ns: int | None


@dataclass(frozen=True, slots=True)
class SelfTest:
    """The whole self-test.

    Attributes:
        cable: one entry per family, size and timing.
        clock_source: the kernel's.
        sender_cpus: the tester's sending CPUs.
    """

    cable: tuple[CableFigures, ...]
    clock_source: str
    sender_cpus: tuple[int, ...]


def run_selftest(
    *,
    frames_at_90: int | None = None,
    sender_cpus: Sequence[int] | None = None,
    quick: bool = False,
    told: Callable[[CableFigures], None] | None = None,
) -> SelfTest:
    """Measure the tester on a cable of its own.

    Args:
        frames_at_90: frames of each loss check; by default what 0.5 s hold.
        sender_cpus: CPUs to send from; by default the first usable one.
        quick: only the least frame size of each family.
        told: called with each cell as it is done.

    Raises:
        UsageError: `frames_at_90` below 1 or above 2**40 - 1, or a CPU that cannot be used.
        HostError: a capability, the engine or a CPU is missing.
        BrokenError: the cable passed nothing, or the engine broke.
    """
    if frames_at_90 is not None and not 1 <= frames_at_90 <= MAXIMUM_FRAMES:
        raise UsageError(f"frames at 90 %: {frames_at_90} is outside of 1 to {MAXIMUM_FRAMES}")
    cpus = check_cpus(usable_cpus()[:1] if sender_cpus is None else sender_cpus, "sender cores")
    programs.find("natgauge-engine")
    figures: list[CableFigures] = []
    clock = ""
    with CableLab(cable_name()) as cable:
        tester = CableTester(cable, cpus)
        for profile in _profiles(quick=quick):
            figures.append(tester.figures(profile, frames_at_90))
            clock = tester.clock_source
            if told is not None:
                told(figures[-1])
    return SelfTest(tuple(figures), clock, cpus)


def cable_name() -> str:
    """Every process has a cable of its own: measurements in different labs may go on at one time."""
    return f"selftest-{os.getpid()}"


def _profiles(*, quick: bool) -> list[FrameKind]:
    return [
        FrameKind(family, size, delays)
        for family, sizes in SIZES.items()
        for size in (sizes[:1] if quick else sizes)
        for delays in (False, True)
    ]


class CableTester:
    """Runs the trials of the self-test on one cable.

    Attributes:
        clock_source: the kernel's, as the last trial told; empty before the first.
        disturbed: whether in any trial so far a CPU was taken away.
    """

    def __init__(self, cable: Cable, sender_cpus: tuple[int, ...], runner: Runner = run) -> None:
        """`runner` performs a trial; the tests hand in their own."""
        self._cable = cable
        self._cpus = sender_cpus
        self._run = runner
        self.clock_source = ""
        self.disturbed = False

    def figures(self, profile: FrameKind, frames_at_90: int | None = None) -> CableFigures:
        """All figures of one profile."""
        phase1, phase2 = self.highest(profile)
        rate = SAFE_SHARE * phase2
        frames = frames_at_90 if frames_at_90 is not None else max(1, int(rate * TRIAL_SECONDS))
        check = self._sent(self._trial(profile, rate, frames))
        return CableFigures(
            family=profile.family,
            frame_size=profile.frame_size,
            delays=profile.delays,
            frames_per_second=phase2,
            phase1_frames_per_second=phase1,
            rate_at_90_percent=rate,
            frames_at_90_percent=check.offered_frames,
            lost_at_90_percent=check.offered_frames - check.received_frames,
            worst_lag_ns=check.worst_lag_ns,
            mean_lag_ns=check.mean_lag_ns,
        )

    def highest(
        self, profile: FrameKind, pick: Callable[[Iterable[float]], float] = statistics.median
    ) -> tuple[float, float]:
        """Highest rates of phase 1 and of phase 2, frames/s: the medians of a few trials, or what `pick` takes."""
        guess = _rate_of(self._sent(self._trial(profile, BEYOND_REACH, CONNECTIONS)))
        frames = max(CONNECTIONS, int(guess * TRIAL_SECONDS))
        results = [self._trial(profile, BEYOND_REACH, frames) for _ in range(_REPEATS)]
        phase1 = pick([_rate_of(phase1_of(result)) for result in results])
        phase2 = pick([_rate_of(self._sent(result)) for result in results])
        return phase1, phase2

    def delays(self, profile: FrameKind, rate: float, seconds: float) -> Delays:
        """One-way delays on the cable at this rate, in frames/s, over so many seconds.

        Raises:
            BrokenError: no frame was timed.
        """
        request = self._request(profile, rate, max(1, round(rate * seconds)))
        # Few connections: only phase 2 matters, and phase 1 must not take longer than it.
        few = request.model_copy(update={"connections": max(1, min(CONNECTIONS, round(rate * seconds)))})
        counts = self._sent(self._run(few))
        found = None if counts.delay is None else delays_of(counts.delay)
        if found is None:
            raise BrokenError("selftest: the cable gave no delays, though they were asked for")
        return found

    def _sent(self, result: TrialResult) -> StreamCounts:
        if result.phase2 is None or result.phase2.initiator is None:
            raise BrokenError("selftest: the engine left phase 2 out of its result")
        return result.phase2.initiator

    def _trial(self, profile: FrameKind, rate: float, frames: int) -> TrialResult:
        result = self._run(self._request(profile, rate, frames))
        self.clock_source = result.clock.source
        self.disturbed |= any(cpu.disturbed for cpu in stalls_of(result))
        if phase1_of(result).received_frames == 0:
            raise BrokenError(
                "selftest: no frame came through the tester's own cable; run `natgauge doctor` and look at the port "
                f"counters: refused {result.ports.initiator.refused}, "
                f"redirect errors {result.ports.initiator.redirect_errors}"
            )
        return result

    def _request(self, profile: FrameKind, rate: float, frames: int) -> TrialRequest:
        source = str(addresses.INSIDE[profile.family].host(0))
        destination = str(addresses.OUTSIDE[profile.family].host(0))
        one, other = self._cable.initiator, self._cable.responder
        return TrialRequest(
            mark=secrets.randbelow(0xFFFF_FFFF) + 1,
            seed=secrets.randbits(64),
            initiator=InitiatorSide(
                interface=one.interface,
                netns=one.netns,
                family=profile.family,
                gateway=GatewaySide(mac=one.gateway_mac, address=one.gateway_address),
                source_addresses=AddressRange(first=source, last=source),
                source_ports=PortRange(first=1024, last=65535),
                destination_addresses=AddressRange(first=destination, last=destination),
                destination_ports=PortRange(first=1, last=-(-CONNECTIONS // 64512)),
            ),
            responder=ResponderSide(
                interface=other.interface,
                netns=other.netns,
                family=profile.family,
                gateway=GatewaySide(mac=other.gateway_mac, address=other.gateway_address),
                addresses=AddressRange(first=destination, last=destination),
            ),
            translation=Translation(source="unchanged"),
            connections=CONNECTIONS,
            frame=Frame(size=profile.frame_size, side="initiator"),
            phase1=Phase1(rate=rate, grace_ms=_GRACE_MS),
            gap_ms=10,
            phase2=Phase2(initiator=InitiatorStream(rate=rate, frames=frames), grace_ms=_GRACE_MS),
            record_delays=profile.delays,
            record_variation=profile.variation,
            senders=Senders(cpus=self._cpus),
        )


def _rate_of(counts: StreamCounts) -> float:
    """Offered frames over the time of sending them."""
    if not counts.sending_ns:
        raise BrokenError("selftest: the engine gave no time of sending")
    return counts.offered_frames * 1e9 / counts.sending_ns


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
