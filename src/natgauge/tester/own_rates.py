# SPDX-License-Identifier: Apache-2.0
"""The tester measured on a cable without a device: its highest rates, for each measurement and as a check of itself.

The highest rates for the frames of a measurement are measured once per host and setting. They are the upper limits of
all searches (RFC 9004 and RFC 9971 require measuring the tester first).

The self-test has its rates of sending, receiving, judging and recording. A device's figure means nothing unless the
tester alone is clearly faster. Its rate is compared with the redirect floor: a program that only redirects frames, and
a receiver that only drops them. The floor uses the tester's ports and core, in slices of a millisecond that alternate
with the tester's. So the ratio is stable although both rates vary.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import secrets
import statistics
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from natgauge import file_access
from natgauge.agreement.generated import (
    Block,
    ComparisonRequest,
    ComparisonResult,
    Contestant,
    InitiatorStream,
    Phase1,
    Phase2,
    Slices,
    TrialLimits,
)
from natgauge.agreement.process import compare
from natgauge.delays import Delays
from natgauge.errors import BrokenError, UsageError
from natgauge.ethernet import IP_HEADER, LEAST_OCTETS, QUERY_OCTETS
from natgauge.host import programs
from natgauge.host.machine import check_cpus, cpu_model, facts, usable_cpus
from natgauge.paired.slices import LEAD_FRAMES
from natgauge.statistics.rounds import estimate_over_rounds
from natgauge.tester.cable import (
    LEAST_CONNECTIONS,
    MOST_CONNECTIONS,
    Cable,
    CableFigures,
    CableLab,
    CableTester,
    FloorShare,
    FrameKind,
    untranslated_request,
)
from natgauge.words import FAMILIES, QUANTITIES, Quantity, Transport

#: Number of measurements on a host that is always disturbed, after which the best is stored permanently.
_DISTURBED_ENOUGH: Final = 3
#: Facts about the machine that settings change, and the speed of the tester with them.
_SETTINGS: Final = ("kernel_parameters", "clock_source", "governor", "smt", "mitigations")
_JIT: Final = Path("/proc/sys/net/core/bpf_jit_enable")
#: The most frames of a loss check.
_MOST_FRAMES: Final = 2**40 - 1
#: Further frame sizes of the full self-test, octets with FCS (RFC 2544 section 9).
_FURTHER_SIZES: Final = (512, 1518)

# The floor

#: N: a state table of 0.8 MB.
CONNECTIONS: Final = 100_000
#: Frames of one slice: each sending call costs some 10 us, which must be negligible.
SLICE_FRAMES: Final = 4_096
#: Blocks of a round; each has two slices of the tester and two of the floor.
BLOCKS: Final = 40
#: Rounds; the programs are loaded again for each, because their place in memory affects the rate.
ROUNDS: Final = 4
#: Error probability of the confidence interval.
ALPHA: Final = 0.05
#: For a round of slices, and for what is beside it.
_SECONDS: Final = 120.0
_SLACK_SECONDS: Final = 15.0


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
    phase1, phase2, disturbed = _remembered(known.get(key))
    if phase1 and not 0 < disturbed < _DISTURBED_ENOUGH:
        return HighestRates(phase1, phase2)
    with CableLab(cable_name()) as cable:
        tester = CableTester(cable, tuple(sender_cpus), connections=number)
        now1, now2 = tester.highest(profile, max)
    phase1, phase2 = max(phase1, now1), max(phase2, now2)
    disturbed = disturbed + 1 if tester.disturbed else 0
    _write_cache({**known, key: [phase1, phase2, disturbed]})
    return HighestRates(phase1, phase2)


def own_delays(profile: FrameKind, sender_cpus: Sequence[int], rate: float, seconds: float, batch: int) -> Delays:
    """Return the tester's own delays, measured on a cable at `rate` frames/s; `batch`: frames that leave together."""
    with CableLab(cable_name()) as cable:
        return CableTester(cable, tuple(sender_cpus)).delays(profile, rate, seconds, batch)


def _remembered(entry: object) -> tuple[float, float, int]:
    """Return the rates of an entry of the cache; 0 where it is not of this version.

    The last number is that of their measurements, all disturbed; 0 = one measurement was undisturbed.
    """
    if not isinstance(entry, list) or len(entry) != 3 or not isinstance(entry[2], int):
        return 0.0, 0.0, 0
    if not all(isinstance(rate, float) and rate > 0 for rate in entry[:2]):
        return 0.0, 0.0, 0
    return entry[0], entry[1], entry[2]


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
        document = json.loads(file_access.read_text(_cache_path(), file_access.MEMORY))
    except (UsageError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _write_cache(entries: dict[str, object]) -> None:
    path = _cache_path()
    if not path.is_absolute():
        return
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        file_access.replace(path, json.dumps(entries, indent=2))


@dataclass(frozen=True, slots=True)
class SelfTest:
    """The whole self-test.

    Attributes:
        cable: one entry per family, size and timing, and one per family of answered queries.
    """

    cable: tuple[CableFigures, ...]
    clock_source: str
    sender_cpus: tuple[int, ...]
    transport: Transport = "udp"


def run_selftest(
    *,
    frames_at_90: int | None = None,
    sender_cpus: Sequence[int] | None = None,
    quick: bool = False,
    transport: Transport = "udp",
    report: Callable[[CableFigures], None] | None = None,
) -> SelfTest:
    """Measure the tester on a cable of its own.

    Args:
        frames_at_90: frames of each loss check; default: the frames of 0.5 s.
        sender_cpus: CPUs to send from; by default the first usable CPU.
        quick: only the least frame size of each family.
        transport: what the frames are. TCP's frames of phase 2 are segments with data. DNS queries are measured with
            UDP only.
        report: called with the figures of each cell as it ends.

    Raises:
        UsageError: `frames_at_90` below 1 or above 2**40 - 1, or a CPU that cannot be used.
        HostError: a capability, the engine or a CPU is missing.
        BrokenError: the cable passed no frame, or the engine failed.
    """
    if frames_at_90 is not None and not 1 <= frames_at_90 <= _MOST_FRAMES:
        raise UsageError(f"frames at 90 %: {frames_at_90} is outside of 1 to {_MOST_FRAMES}")
    cpus = check_cpus(usable_cpus()[:1] if sender_cpus is None else sender_cpus, "sender cores", "sender_cores")
    programs.find("natgauge-engine")
    figures: list[CableFigures] = []
    clock = ""
    with CableLab(cable_name()) as cable:
        tester, floor = CableTester(cable, cpus), FloorTester(cable, cpus[0])
        for profile in _profiles(transport, quick=quick):
            share = floor.share(profile) if profile.query is None else None
            figures.append(tester.figures(profile, share, frames_at_90))
            clock = tester.clock_source
            if report is not None:
                report(figures[-1])
    return SelfTest(tuple(figures), clock, cpus, transport)


def _profiles(transport: Transport, *, quick: bool) -> list[FrameKind]:
    plain = [
        FrameKind(family, size, delays, transport=transport)
        for family in FAMILIES
        for least in (LEAST_OCTETS[transport] + IP_HEADER[family] - IP_HEADER["ipv4"],)
        for size in ((least,) if quick else (least, *_FURTHER_SIZES))
        for delays in (False, True)
    ]
    if transport != "udp":
        return plain
    return plain + [FrameKind(family, octets, delays=False, query="aaaa") for family, octets in QUERY_OCTETS.items()]


class FloorPair(NamedTuple):
    """Durations of the tester's and of the floor's two slices in one block, ns."""

    tester: int
    floor: int


@dataclass(frozen=True, slots=True)
class FloorTester:
    """Measures the floor on a cable."""

    cable: Cable
    cpu: int
    run: Callable[..., ComparisonResult] = compare
    connections: int = CONNECTIONS
    quantity: Quantity = "both"

    def share(self, kind: FrameKind, rounds: int = ROUNDS) -> FloorShare:
        """Return the tester's share of the floor for frames of this kind, over `rounds` rounds."""
        return share_of([self.round(kind) for _ in range(rounds)])

    def round(self, kind: FrameKind, blocks: int = BLOCKS) -> list[FloorPair]:
        """Run a round of `blocks` blocks."""
        result = self.run(self._request(kind, blocks), seconds=_SECONDS + _SLACK_SECONDS)
        _check(result)
        return [_pair(block) for block in result.blocks]

    def _request(self, kind: FrameKind, blocks: int) -> ComparisonRequest:
        # Slices are not paced, and phase 2 is not run: it says that its frames are the ones to be timed.
        rate = 1e6
        trial = untranslated_request(
            self.cable.initiator,
            self.cable.responder,
            family=kind.family,
            frame_size=kind.frame_size,
            connections=self.connections,
            phase1=Phase1(rate=rate),
            phase2=Phase2(initiator=InitiatorStream(rate=rate, frames=1)),
            sender_cpus=(self.cpu,),
            record_delays=kind.delays,
            record_variation=kind.variation,
            frames=kind.frames,
        )
        wanted = {quantity: blocks if quantity == self.quantity else 0 for quantity in QUANTITIES}
        return ComparisonRequest(
            seed=secrets.randbits(64),
            cpu=self.cpu,
            contestants=(Contestant(name="cable", trial=trial),),
            floor=0,
            slices=Slices(frames=SLICE_FRAMES, lead=LEAD_FRAMES, **wanted),
            limits=TrialLimits(seconds=_SECONDS),
        )


def share_of(rounds: list[list[FloorPair]]) -> FloorShare:
    """Return the share over all rounds."""
    shares = [[pair.floor / pair.tester for pair in pairs] for pairs in rounds]
    share = estimate_over_rounds(shares, ALPHA)
    if share is None:
        raise BrokenError("selftest: too few slices for an interval")
    floor = statistics.median(pair.floor for pairs in rounds for pair in pairs)
    return FloorShare(2 * SLICE_FRAMES * 1e9 / floor, share.value, share.lower, share.upper)


def _pair(block: Block) -> FloorPair:
    """Return the durations of a block, which visits the tester (0), the floor (1), then both in reverse order."""
    first, second, third, fourth = block.ns
    took = {block.order[0]: first + fourth, block.order[1]: second + third}
    return FloorPair(took[0], took[1])


def _check(result: ComparisonResult) -> None:
    (counts,) = result.contestants
    streams = (counts.new, counts.initiator, counts.responder)
    sent, received = (sum(getattr(stream, f"{what}_frames") for stream in streams) for what in ("made", "received"))
    if received != sent:
        raise BrokenError(f"selftest: {received} of the tester's {sent} frames came over its own cable")
    if result.floor is None or result.floor.received_frames != result.floor.made_frames:
        raise BrokenError(f"selftest: frames of the redirect floor were lost on the tester's own cable: {result.floor}")
