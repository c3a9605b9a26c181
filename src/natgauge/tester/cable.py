# SPDX-License-Identifier: Apache-2.0
"""Trials without a device that translates: on a cable between the tester's own two ports, or through a plain router."""

from __future__ import annotations

import secrets
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from natgauge.agreement.generated import (
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
)
from natgauge.agreement.process import run
from natgauge.agreement.trial import frame_of, phase1_of
from natgauge.delays import Delays
from natgauge.errors import BrokenError
from natgauge.host.machine import usable_cpus
from natgauge.inputs.question import USUAL_FRAMES, FrameOptions
from natgauge.labs.common.addresses import INSIDE, OUTSIDE
from natgauge.labs.common.base import FIRST_INDEX, INITIATOR_PORT, RESPONDER_PORT, MadeLab
from natgauge.labs.common.links import End, VethCable
from natgauge.labs.common.locks import check_name
from natgauge.labs.contract import Device, Port
from natgauge.trials import is_disturbed
from natgauge.words import Address, Close, Family, Placement, Query, Transport

#: Intended rate when the highest rate is measured: above that of any core, within the engine's limit.
BEYOND_REACH: Final = 60_000_000.0
#: Connections of the self-test's trials: their state table (8 MB) is larger than a core's own caches, as in real use.
CONNECTIONS: Final = 1_000_000
#: A trial with fewer frames ends after 1 to 2 ms, so that its first batch and the timer dominate.
LEAST_CONNECTIONS: Final = 10_000
#: More connections take longer, but do not slow the tester down further: no cache can hold their state table.
MOST_CONNECTIONS: Final = 10_000_000
#: Share of the highest rate at which no frame may be lost.
SAFE_SHARE: Final = 0.9
#: Frames that show whether a cable passes any.
HANDFUL: Final = 1000
#: Nominal seconds of sending in each trial.
TRIAL_SECONDS: Final = 0.5
_REPEATS: Final = 3
_GRACE_MS: Final = 50
_GAP_MS: Final = 10
_SOURCE_PORTS: Final = PortRange(first=1024, last=65535)
_MOST_DESTINATION_PORTS: Final = 65535


class Cable(Protocol):
    """Two tester ports joined without a device."""

    initiator: Port
    responder: Port


@dataclass(frozen=True, slots=True)
class FrameKind:
    """Properties of the frames of one cell; `frame_size` in octets with FCS.

    `delays`: every frame is timed. `variation`: delays of consecutive frames are subtracted. `query`: type of the DNS
    queries, which are answered; None = plain frames. `transport`: what the frames are. `close` and `request_octets`: as
    in `TrialPlan`, each connection is a transaction of phase 1. `half_open`: as in `TrialPlan`.
    `frame_sizes`: a mix, on links of the family, in place of the size.
    """

    family: Family
    frame_size: int
    delays: bool
    variation: bool = False
    query: Query | None = None
    transport: Transport = "udp"
    close: Close | None = None
    request_octets: int | None = None
    half_open: bool = False
    frame_sizes: str | None = None

    @property
    def frames(self) -> FrameOptions:
        """Their options in a request."""
        return FrameOptions(transport=self.transport, frame_sizes=self.frame_sizes)

    @property
    def phase1_only(self) -> bool:
        """Whether phase 1 is all that is measured, because frames of phase 2 are like those of phase 1."""
        return self.close is not None or self.half_open


def untranslated_request(  # noqa: PLR0913 - one argument per choice, all but the ports by keyword
    initiator: Port,
    responder: Port,
    *,
    family: Family,
    frame_size: int,
    connections: int,
    phase1: Phase1,
    phase2: Phase2 | None,
    sender_cpus: Sequence[int],
    record_delays: bool = False,
    record_variation: bool = False,
    frames: FrameOptions = USUAL_FRAMES,
    source: Address | None = None,
    destination: Address | None = None,
) -> TrialRequest:
    """Return the request for a trial whose frames are not translated; its mark and seed are random.

    Args:
        frame_size: octets with FCS.
        connections: N; over all source ports, then destination ports from 1 on, then source addresses.
        frames: options of the frames; ICMP has one number in place of destination ports.
        source: the Initiator's first address; None = as in natgauge's own labs.
        destination: the Responder's address; None = as in natgauge's own labs.
    """
    first = INSIDE[family].host(0) if source is None else source
    target = str(OUTSIDE[family].host(0) if destination is None else destination)
    targets = AddressRange(first=target, last=target)
    most = 1 if frames.transport == "icmp" else _MOST_DESTINATION_PORTS
    source_ports = _SOURCE_PORTS.last - _SOURCE_PORTS.first + 1
    ports = min(-(-connections // source_ports), most)
    sources = -(-connections // (source_ports * ports))
    return TrialRequest(
        mark=secrets.randbelow(0xFFFF_FFFF) + 1,
        seed=secrets.randbits(64),
        initiator=InitiatorSide(
            interface=initiator.interface,
            netns=initiator.netns,
            family=family,
            gateway=GatewaySide(mac=initiator.gateway_mac, address=initiator.gateway_address),
            source_addresses=AddressRange(first=str(first), last=str(first + sources - 1)),
            source_ports=_SOURCE_PORTS,
            destination_addresses=targets,
            destination_ports=PortRange(first=1, last=ports),
        ),
        responder=ResponderSide(
            interface=responder.interface,
            netns=responder.netns,
            family=family,
            gateway=GatewaySide(mac=responder.gateway_mac, address=responder.gateway_address),
            addresses=targets,
        ),
        translation=Translation(source="unchanged"),
        connections=connections,
        order="permutation",
        frame=Frame(size=frame_size, side="initiator", **frames.stated),
        phase1=phase1,
        gap_ms=0 if phase2 is None else _GAP_MS,
        phase2=phase2,
        record_delays=record_delays,
        record_variation=record_variation,
        senders=Senders(cpus=tuple(sender_cpus)),
    )


def handful(initiator: Port, responder: Port, *, rate: float, grace_ms: int, seconds: float) -> StreamCounts:
    """Send 1000 of the smallest IPv4 frames at `rate` frames/s over a cable, and return what the engine counted.

    The engine is ended after so many seconds.
    """
    request = untranslated_request(
        initiator,
        responder,
        family="ipv4",
        frame_size=64,
        connections=HANDFUL,
        phase1=Phase1(rate=rate, grace_ms=grace_ms),
        phase2=None,
        sender_cpus=usable_cpus()[:1],
    )
    return phase1_of(run(request, seconds=seconds))


@dataclass(frozen=True, slots=True)
class FloorShare:
    """The tester's rate compared with the redirect floor, in both directions (see `own_rates.py`).

    Attributes:
        floor_frames_per_second: rate from a program that only redirects to a program that only drops, median over
            blocks.
    """

    floor_frames_per_second: float
    share: float
    low: float
    high: float

    @property
    def floor_ns(self) -> float:
        """Time of a frame of the floor."""
        return 1e9 / self.floor_frames_per_second

    @property
    def own_ns(self) -> float:
        """The tester's own time of a frame: shares alone flatter slow processors, on which the floor takes longer."""
        return self.floor_ns / self.share - self.floor_ns


@dataclass(frozen=True, slots=True)
class CableFigures:
    """The tester's figures on the cable.

    Attributes:
        frame_size: octets with FCS.
        frames_per_second: highest rate of phase 2, one direction: median over repeats of offered frames / sending time.
        phase1_frames_per_second: the same for phase 1 (each frame a new connection).
        floor_frames_per_second: highest rate of frames that are only redirected and dropped, in slices, in both
            directions. It and the next five are None for queries, which have no slices.
        share_of_floor: the tester's own rate / the floor's, in alternating slices, in both directions, on the first
            sending CPU.
        floor_ns: without generator and receivers, whose part is `own_ns`. A share alone flatters slow processors.
        query: type of the DNS queries, each of which is answered; the received frames are then the answers.
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
    floor_frames_per_second: float | None = None
    share_of_floor: float | None = None
    share_of_floor_low: float | None = None
    share_of_floor_high: float | None = None
    floor_ns: float | None = None
    own_ns: float | None = None
    query: Query | None = None


@dataclass(slots=True)
class CableTester:
    """Runs the trials of the self-test on one cable.

    Attributes:
        connections: N of the trials for the highest rate; a larger state table makes them slower.
        clock_source: the kernel's clock source in the last trial; empty before the first.
    """

    cable: Cable
    sender_cpus: tuple[int, ...]
    runner: Callable[[TrialRequest], TrialResult] = run
    connections: int = CONNECTIONS
    clock_source: str = field(default="", init=False)
    disturbed: bool = field(default=False, init=False)

    def figures(
        self, kind: FrameKind, share: FloorShare | None = None, frames_at_90: int | None = None
    ) -> CableFigures:
        """Return all figures of one kind of frames; `share` of the floor is measured by `FloorTester`."""
        phase1, phase2 = self.highest(kind)
        rate = SAFE_SHARE * phase2
        frames = frames_at_90 if frames_at_90 is not None else max(1, int(rate * TRIAL_SECONDS))
        check = self._sent(kind, self._trial(kind, rate, frames))
        return CableFigures(
            family=kind.family,
            frame_size=kind.frame_size,
            delays=kind.delays,
            frames_per_second=phase2,
            phase1_frames_per_second=phase1,
            rate_at_90_percent=rate,
            frames_at_90_percent=check.offered_frames,
            lost_at_90_percent=max(0, check.offered_frames - check.received_frames),
            worst_lag_ns=check.worst_lag_ns,
            mean_lag_ns=check.mean_lag_ns,
            floor_frames_per_second=None if share is None else share.floor_frames_per_second,
            share_of_floor=None if share is None else share.share,
            share_of_floor_low=None if share is None else share.low,
            share_of_floor_high=None if share is None else share.high,
            floor_ns=None if share is None else share.floor_ns,
            own_ns=None if share is None else share.own_ns,
            query=kind.query,
        )

    def highest(
        self, kind: FrameKind, pick: Callable[[Iterable[float]], float] = statistics.median
    ) -> tuple[float, float]:
        """Return the highest rates of phases 1 and 2, frames/s: `pick` (by default the median) of a few trials.

        Where there is no phase 2, both are the rate of phase 1, in connections/s or transactions/s.
        """
        guess = _rate_of(self._sent(kind, self._trial(kind, BEYOND_REACH, self.connections)))
        frames = max(self.connections, int(guess * TRIAL_SECONDS))
        results = [self._trial(kind, BEYOND_REACH, frames) for _ in range(_REPEATS)]
        phase1 = pick([_rate_of(phase1_of(result)) for result in results])
        phase2 = pick([_rate_of(self._sent(kind, result)) for result in results])
        return phase1, phase2

    def delays(self, kind: FrameKind, rate: float, seconds: float, batch: int) -> Delays:
        """Return one-way delays on the cable at `rate` frames/s over `seconds`; up to `batch` frames leave together."""
        frames = max(1, round(rate * seconds))
        # Few connections, because only phase 2 matters and phase 1 must not take longer.
        request = self._request(kind, rate, frames, min(self.connections, frames))
        senders = request.senders.model_copy(update={"batch": batch})
        counts = self._sent(kind, self.runner(request.model_copy(update={"senders": senders})))
        delays = None if counts.delay is None else Delays.of(counts.delay)
        if delays is None:
            raise BrokenError("selftest: the cable gave no delays, although they were requested")
        return delays

    def _sent(self, kind: FrameKind, result: TrialResult) -> StreamCounts:
        if kind.phase1_only:
            return phase1_of(result)
        if result.phase2 is None or result.phase2.initiator is None:
            raise BrokenError("selftest: the engine left phase 2 out of its result")
        return result.phase2.initiator

    def _trial(self, kind: FrameKind, rate: float, frames: int) -> TrialResult:
        result = self.runner(self._request(kind, rate, frames))
        self.clock_source = result.clock.source
        self.disturbed |= any(map(is_disturbed, result.cpus))
        if phase1_of(result).received_frames == 0:
            raise BrokenError(
                "selftest: no frame came through the tester's own cable; run `natgauge doctor` and look at the port "
                f"counters: refused {result.ports.initiator.refused}, "
                f"redirect errors {result.ports.initiator.redirect_errors}"
            )
        return result

    def _request(self, kind: FrameKind, rate: float, frames: int, connections: int | None = None) -> TrialRequest:
        request = untranslated_request(
            self.cable.initiator,
            self.cable.responder,
            family=kind.family,
            frame_size=kind.frame_size,
            connections=self.connections if connections is None else connections,
            phase1=Phase1(rate=rate, grace_ms=_GRACE_MS),
            phase2=(
                None
                if kind.phase1_only
                else Phase2(initiator=InitiatorStream(rate=rate, frames=frames), grace_ms=_GRACE_MS)
            ),
            sender_cpus=self.sender_cpus,
            record_delays=kind.delays,
            record_variation=kind.variation,
            frames=kind.frames,
        )
        frame = request.frame.model_copy(update={"query": kind.query})
        frame = frame_of(frame, kind.close, kind.request_octets, half_open=kind.half_open)
        return request.model_copy(update={"frame": frame})


def _rate_of(counts: StreamCounts) -> float:
    if not counts.sending_ns:
        raise BrokenError("selftest: the engine gave no time of sending")
    return counts.offered_frames * 1e9 / counts.sending_ns


class CableLab(MadeLab):
    """Both ports in one namespace; each port's gateway is the other port."""

    kind = "cable"
    placement: Placement = "shared"
    devices: Sequence[Device] = ()

    def __init__(self, name: str = "cable", server_cpus: Sequence[int] = ()) -> None:
        """Plan the lab, with a real server at the Responder's port if it gets cores; nothing is made yet."""
        super().__init__(check_name(name), {})
        first, second = self._cables()[0].ends
        self.initiator = Port(first.interface, first.netns, second.mac, None)
        self.responder = Port(second.interface, second.netns, first.mac, None)
        self.server = self._home_of_server(first.mac, server_cpus) if server_cpus else None

    def _cables(self) -> Sequence[VethCable]:
        return (
            VethCable(
                (
                    End(self.tester, INITIATOR_PORT, "02:6e:67:00:ff:01"),
                    End(self.tester, RESPONDER_PORT, "02:6e:67:00:ff:02"),
                ),
                FIRST_INDEX,
            ),
        )
