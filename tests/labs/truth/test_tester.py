# SPDX-License-Identifier: Apache-2.0
"""The whole tester against devices of known truth: what it reports is what was done, to the frame."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import pytest
from pyroute2 import IPRoute
from tests.labs.calibration import Held, Mode, Tally, TimerError, calibrator, forwarder

from natgauge.agreement.generated import StreamCounts, TrialRequest, TrialResult
from natgauge.agreement.process import run
from natgauge.agreement.trial import phase1_of
from natgauge.labs.common import namespaces
from natgauge.labs.common.addresses import INSIDE, OUTSIDE
from natgauge.labs.common.device import NamespaceDevice
from natgauge.labs.netns.lab import NetnsLab

Family = Literal["ipv4", "ipv6"]
Where = Literal["phase 1", "initiator", "responder"]

CONNECTIONS = 3000
FRAMES = 4_999
#: Divides neither number, so that the last chosen frame always has a successor.
EVERY = 7
#: Octet of the UDP checksum that a calibrator damages, counted from the start of the payload.
LAST_OF_CHECKSUM = -1
RATE = 50_000.0
ATTEMPTS = 3
CPUS = sorted(os.sched_getaffinity(0))

MASQUERADE = """
nft -f - <<END
table {family} nat {{
    chain postrouting {{
        type nat hook postrouting priority srcnat
        oifname "{outside}" masquerade
    }}
}}
END
"""


@pytest.fixture(scope="module", params=["ipv4", "ipv6"])
def lab(request: pytest.FixtureRequest) -> Iterator[NetnsLab]:
    """A NAT of the kernel between the tester's ports."""
    if os.geteuid():
        pytest.skip("root is needed")
    family: Family = request.param
    with NetnsLab(f"truth-{family}", initiator_family=family, responder_family=family) as made:
        device = made.devices[0]
        words = {"family": "ip" if family == "ipv4" else "ip6", "inside": device.inside, "outside": device.outside}
        answer = device.run(MASQUERADE.format(**words))
        assert answer.status == 0, answer.stderr
        yield made


def of_family(family: Family) -> pytest.MarkDecorator:
    """For this family; `make soak` has the other one, whose frames are judged and timed in the same way."""
    (other,) = {"ipv4", "ipv6"} - {family}
    return pytest.mark.parametrize(
        "lab", [family, pytest.param(other, marks=pytest.mark.soak)], indirect=True, scope="module"
    )


def device_of(lab: NetnsLab) -> NamespaceDevice:
    (device,) = lab.devices
    assert isinstance(device, NamespaceDevice)
    return device


@contextmanager
def nothing_done() -> Iterator[Callable[[], Tally]]:
    """A device as it is."""
    yield lambda: Tally(0, 0)


def trial(
    lab: NetnsLab,
    doing: Callable[[], AbstractContextManager[Callable[[], Tally]]] = nothing_done,
    *,
    phase2: bool = True,
) -> tuple[TrialResult, Tally]:
    """Run one trial through the NAT, and say what was done meanwhile; the tables on both sides are empty before.

    A trial in which the tester's own ports or cables lost frames is none: the host was too busy for it. It is repeated.
    """
    device = device_of(lab)
    for _ in range(ATTEMPTS):
        device.run("conntrack -F")
        before = overrun(lab)
        with doing() as tally:
            result = run(trial_request(lab, phase2=phase2))
            done = tally()
        if overrun(lab) == before and all(one.offered_frames == one.intended_frames for one in streams_of(result)):
            return result, done
    pytest.fail(f"the tester's own ports or cables lost frames in {ATTEMPTS} trials; is the host idle?")


def overrun(lab: NetnsLab) -> dict[str, int]:
    """Frames that found a full ring at the other end of a cable."""
    return {place: frames for place, frames in lab.dropped().items() if place.endswith(" sent")}


def streams_of(result: TrialResult) -> list[StreamCounts]:
    phase2 = result.phase2
    streams = (result.phase1, phase2.initiator if phase2 else None, phase2.responder if phase2 else None)
    return [stream for stream in streams if stream]


def trial_request(lab: NetnsLab, *, phase2: bool, translated: bool = True, **choices: Any) -> TrialRequest:
    family, _ = lab.families
    source, destination = str(INSIDE[family].host(0)), str(OUTSIDE[family].host(0))
    pool = str(OUTSIDE[family].device.ip)
    ports = [
        {"interface": port.interface, "netns": port.netns, "family": family}
        | {"gateway": {"mac": port.gateway_mac, "address": port.gateway_address}}
        for port in (lab.initiator, lab.responder)
    ]
    stream = {"rate": RATE, "frames": FRAMES}
    document: dict[str, Any] = {
        "mark": 0x7E57,
        "seed": 1,
        "initiator": ports[0]
        | {
            "source_addresses": {"first": source, "last": source},
            "source_ports": {"first": 1024, "last": 65535},
            "destination_addresses": {"first": destination, "last": destination},
            "destination_ports": {"first": 1, "last": 2},
        },
        "responder": ports[1] | {"addresses": {"first": destination, "last": destination}},
        "translation": {"source": "translated", "pool": {"first": pool, "last": pool}}
        if translated
        else {"source": "unchanged"},
        "connections": CONNECTIONS,
        "order": "permutation",
        "frame": {"size": 100, "side": "initiator"},
        "phase1": {"rate": RATE, "grace_ms": 200},
        "gap_ms": 50,
        "phase2": {"initiator": stream, "responder": stream, "grace_ms": 200} if phase2 else None,
        "senders": {"cpus": lab.sender_cpus[:1]},
    }
    return TrialRequest.model_validate(document | choices)


@dataclass(frozen=True, slots=True)
class Counted:
    """What the tester says of the frames of a stream."""

    received: int
    duplicates: int = 0
    reordered: int = 0
    late: int = 0
    damaged: int = 0
    untranslated: int = 0
    mistranslated: int = 0


def counted(stream: StreamCounts) -> Counted:
    return Counted(
        stream.received_frames,
        stream.duplicates,
        stream.reordered,
        stream.late,
        stream.damaged,
        stream.untranslated,
        stream.mistranslated,
    )


def all_streams(result: TrialResult) -> dict[Where, Counted]:
    streams: tuple[Where, ...] = ("phase 1", "initiator", "responder")
    return dict(zip(streams, map(counted, streams_of(result)), strict=True))


UNTOUCHED: dict[Where, Counted] = {
    "phase 1": Counted(CONNECTIONS),
    "initiator": Counted(FRAMES),
    "responder": Counted(FRAMES),
}


def test_without_a_calibrators_doing_all_is_received(lab: NetnsLab) -> None:
    result, _ = trial(lab)
    assert all_streams(result) == UNTOUCHED
    assert result.state_table.stored == CONNECTIONS


def test_a_calibrator_takes_nothing_for_a_test_frame_that_is_none(lab: NetnsLab) -> None:
    device = device_of(lab)
    _, outside = trial(lab, partial(calibrator, device.netns, device.outside, "drop", every=10**9))
    assert outside == Tally(CONNECTIONS + FRAMES, 0)
    _, inside = trial(lab, partial(calibrator, device.netns, device.inside, "drop", every=10**9))
    assert inside == Tally(FRAMES, 0)


def effect(mode: Mode, frames: int, acted: int) -> Counted:
    """What must be found of so many frames when so many were acted on."""
    if mode == "duplicate":
        return Counted(frames, duplicates=acted)
    if mode == "swap":
        return Counted(frames, reordered=acted)
    rest = Counted(frames - acted)
    if mode == "damage":
        return replace(rest, damaged=acted)
    if mode == "untranslated":
        return replace(rest, untranslated=acted)
    return replace(rest, mistranslated=acted) if mode == "mistranslate" else rest


#: In which way, and where. The Responder's frames have a public source, which no device could leak.
DOINGS: list[tuple[Mode, Where]] = [
    (mode, where)
    for where in ("phase 1", "initiator", "responder")
    for mode in ("drop", "duplicate", "swap", "damage", "untranslated", "mistranslate")
    if (mode, where) != ("untranslated", "responder")
]


#: Each in one family, in turn; `make soak` has the other one.
IN_FAMILIES = [
    pytest.param(family, *doing, marks=() if number % 2 == turn else pytest.mark.soak)
    for turn, family in enumerate(("ipv4", "ipv6"))
    for number, doing in enumerate(DOINGS)
]


@pytest.mark.parametrize(("lab", "mode", "where"), IN_FAMILIES, indirect=["lab"], scope="module")
def test_what_the_device_did_is_found_to_the_frame(lab: NetnsLab, mode: Mode, where: Where) -> None:
    device = device_of(lab)
    private = str(INSIDE[lab.families[0]].host(0)) if mode == "untranslated" else None
    interface = device.inside if where == "responder" else device.outside
    offset = CONNECTIONS if where == "initiator" else 0
    frames = CONNECTIONS if where == "phase 1" else FRAMES
    acted = frames // EVERY
    choices: dict[str, Any] = {"every": EVERY, "offset": offset, "source": private, "octet": 13, "bits": 0x10}
    doing = partial(calibrator, device.netns, interface, mode, **choices)
    result, done = trial(lab, doing, phase2=where != "phase 1")
    assert done == Tally(offset + frames, acted)
    expected = effect(mode, frames, acted)
    if where == "phase 1":
        assert counted(phase1_of(result)) == expected
        assert result.state_table.stored == expected.received
    else:
        assert all_streams(result) == UNTOUCHED | {where: expected}


@of_family("ipv4")
@pytest.mark.parametrize(
    ("octet", "bits"),
    [
        pytest.param(0, 0xFF, id="run mark"),
        pytest.param(3, 0x01, id="run mark's end"),
        pytest.param(4, 0x01, id="connection, still a valid one"),
        pytest.param(7, 0x80, id="connection, far beyond the last"),
        pytest.param(8, 0x01, id="sequence"),
        pytest.param(12, 0x80, id="sender"),
        pytest.param(17, 0x80, id="sending time"),
        pytest.param(18, 0x01, id="padding"),
        pytest.param(LAST_OF_CHECKSUM, 0x01, id="UDP checksum"),
        pytest.param(-7, 0x01, id="source port"),
        pytest.param(-5, 0x01, id="destination port"),
    ],
)
def test_damage_is_found_wherever_it_is(lab: NetnsLab, octet: int, bits: int) -> None:
    device = device_of(lab)
    choices: dict[str, Any] = {"every": EVERY, "offset": CONNECTIONS, "octet": octet, "bits": bits}
    result, done = trial(lab, partial(calibrator, device.netns, device.outside, "damage", **choices))
    assert done.acted == FRAMES // EVERY
    found = all_streams(result)
    # Over IPv4 a checksum of 1 that loses its last bit means "no checksum" (RFC 768): 1 of 65,536 frames is then valid.
    may_be_valid = 1 if octet == LAST_OF_CHECKSUM and lab.families[1] == "ipv4" else 0
    valid = done.acted - found["initiator"].damaged
    assert 0 <= valid <= may_be_valid
    assert found == UNTOUCHED | {"initiator": Counted(FRAMES - done.acted + valid, damaged=done.acted - valid)}


@of_family("ipv6")
@pytest.mark.parametrize("every", [2, 3, 100, FRAMES])
def test_loss_is_found_whether_frequent_or_a_single_frame(lab: NetnsLab, every: int) -> None:
    device = device_of(lab)
    result, _ = trial(lab, partial(calibrator, device.netns, device.outside, "drop", every=every, offset=CONNECTIONS))
    assert all_streams(result) == UNTOUCHED | {"initiator": Counted(FRAMES - FRAMES // every)}


def test_a_device_that_stops_forwarding_is_found(lab: NetnsLab) -> None:
    device = device_of(lab)
    doing = partial(calibrator, device.netns, device.outside, "stop-after", every=1234, offset=CONNECTIONS)
    result, done = trial(lab, doing)
    assert done == Tally(CONNECTIONS + FRAMES, FRAMES - 1234)
    assert all_streams(result) == UNTOUCHED | {"initiator": Counted(1234)}


# --- delay: a forwarder in the device's place, a bridge between the two cables

#: The issue's own bound on how far the tester's delays may be from the forwarder's.
TOLERANCE = 20e-6
BRIDGED_CONNECTIONS = 148
BRIDGED_FRAMES = 1000
#: Of the forwarder's timer error, in seconds at p99.
CALM = 500e-6


def bridged(lab: NetnsLab, **choices: Any) -> TrialResult:
    """A trial whose frames go straight from port to port, so each port is the other's gateway."""
    macs = [namespace_mac(port.netns, port.interface) for port in (lab.responder, lab.initiator)]
    request = trial_request(lab, phase2=True, translated=False)
    stream = {"rate": 1000.0, "frames": BRIDGED_FRAMES}
    changes: dict[str, Any] = {
        "initiator": {"gateway": {"mac": macs[0]}},
        "responder": {"gateway": {"mac": macs[1]}},
        "connections": BRIDGED_CONNECTIONS,
        "phase1": {"rate": 1000.0, "grace_ms": 500},
        "phase2": {"initiator": stream, "responder": stream, "grace_ms": 500},
        "record_delays": True,
        "senders": {"cpus": CPUS[:1], "batch": 1},
    }
    document = request.model_dump(exclude_none=True)
    for name, value in (changes | choices).items():
        document[name] = document[name] | value if name in ("initiator", "responder") else value
    return run(TrialRequest.model_validate(document))


def namespace_mac(netns: str | None, interface: str) -> str:
    def ask() -> str:
        with IPRoute() as routes:
            (link,) = routes.link("get", ifname=interface)
            return str(link.get_attr("IFLA_ADDRESS"))

    return namespaces.inside(netns, ask)


def near_median(stream: StreamCounts, seconds: float) -> bool:
    """Whether the median delay is `seconds`, within the tolerance and what a bucket of the histogram leaves open."""
    assert stream.delay
    passed = 0
    for lower, upper, frames in stream.delay.buckets:
        passed += frames
        if passed * 2 >= stream.delay.frames:
            return lower / 1e9 - TOLERANCE <= seconds <= upper / 1e9 + TOLERANCE
    return False


def held_and_measured(lab: NetnsLab, delay_us: int, **choices: Any) -> tuple[Held, list[StreamCounts]]:
    """A trial through a forwarder; the two streams of phase 2."""
    device, trial_choices = (
        device_of(lab),
        {name: choices.pop(name) for name in ("frame_timeout_ms",) if name in choices},
    )
    with forwarder(device.netns, device.inside, device.outside, delay_us, cpu=CPUS[-1], **choices) as running:
        result = bridged(lab, **trial_choices)
        held = running.stop()
    assert (held.refused, held.failed, held.kept) == (0, 0, 0)
    _, *streams = streams_of(result)
    assert [stream.offered_frames for stream in streams] == [BRIDGED_FRAMES] * 2
    return held, streams


def is_calm(held: Held) -> bool:
    """Whether the forwarder had its CPU for itself: else its median says little of single frames."""
    return held.timer_error is not None and held.timer_error.p99 < CALM


#: `make soak` looks at these, too.
FURTHER_DELAYS = [pytest.param(delay_us, marks=pytest.mark.soak) for delay_us in (0, 1000, 10_000)]


@pytest.mark.alone
@of_family("ipv4")
@pytest.mark.parametrize("delay_us", [100, *FURTHER_DELAYS])
def test_delay_is_found_within_the_forwarders_own_timer_error(lab: NetnsLab, delay_us: int) -> None:
    for _ in range(ATTEMPTS):
        held, streams = held_and_measured(lab, delay_us)
        if not is_calm(held):
            continue
        for stream in streams:
            check_delays(stream, delay_us / 1e6, held.timer_error)
        return
    pytest.skip(f"another load left the forwarder no CPU for itself in {ATTEMPTS} trials")


def check_delays(stream: StreamCounts, held_seconds: float, error: TimerError | None) -> None:
    assert counted(stream) == Counted(BRIDGED_FRAMES)
    delay = stream.delay
    assert delay
    assert error
    assert (delay.frames, delay.negative) == (BRIDGED_FRAMES, 0)
    assert delay.minimum_ns is not None
    assert abs(delay.minimum_ns / 1e9 - held_seconds - error.minimum) <= TOLERANCE
    assert near_median(stream, held_seconds + error.median)


JITTER: dict[str, int] = {"jitter_us": 300_000, "every": 50}
LATE_NS = 150_000_000
#: Without those of phase 1: its frames, and one before of each port's own self-test, come first.
JITTERED_BEFORE = (BRIDGED_CONNECTIONS + 2) // JITTER["every"]


@pytest.mark.alone
@of_family("ipv4")
def test_every_frame_held_longer_is_found_in_the_histogram(lab: NetnsLab) -> None:
    held, streams = held_and_measured(lab, 1000, **JITTER)
    assert [stream.received_frames for stream in streams] == [BRIDGED_FRAMES] * 2
    delays = [stream.delay for stream in streams if stream.delay]
    longer = sum(frames for delay in delays for lower, _, frames in delay.buckets if lower > LATE_NS)
    assert longer == held.jittered - JITTERED_BEFORE > 0


@pytest.mark.alone
@of_family("ipv6")
def test_every_frame_past_the_timeout_is_late_and_not_received(lab: NetnsLab) -> None:
    held, streams = held_and_measured(lab, 1000, **JITTER, frame_timeout_ms=LATE_NS / 1e6)
    assert sum(stream.late for stream in streams) == held.jittered - JITTERED_BEFORE > 0
    assert all(stream.received_frames + stream.late == BRIDGED_FRAMES for stream in streams)
    longest_ns = 1000 * (1000 + JITTER["jitter_us"])
    for stream in streams:
        delay = stream.late_delay
        assert (delay is None) == (stream.late == 0)
        if delay is None:
            continue
        mean_ns = delay.sum_ns / stream.late
        assert longest_ns <= delay.minimum_ns <= mean_ns <= delay.maximum_ns < 2 * longest_ns
