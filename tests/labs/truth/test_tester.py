# SPDX-License-Identifier: Apache-2.0
"""The whole tester against devices of known truth: what it reports is what was done, to the frame."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import pytest

from natgauge import trials
from natgauge.labs.addresses import INSIDE, OUTSIDE
from natgauge.labs.calibration import Mode, Tally, calibrator, forwarder
from natgauge.labs.netns import NetnsLab
from natgauge.trials import StreamCounts, TrialRequest, TrialResult

Family = Literal["ipv4", "ipv6"]
Where = Literal["phase 1", "initiator", "responder"]

CONNECTIONS = 3000
FRAMES = 10_007
#: Divides neither number, so that the last chosen frame always has a successor.
EVERY = 7
RATE = 50_000.0
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


#: The stack spreads flows over an interface's queues by hash, and each queue is emptied by itself, so frames of different
#: flows overtake each other. With a queue for each CPU they do not, and what is out of order was made so.
ONE_QUEUE_PER_CPU = """
for interface in "{inside}" "{outside}"; do
    cpu=0
    while [ -e "/sys/class/net/$interface/queues/tx-$cpu" ] && [ "$cpu" -lt "$(nproc --all)" ]; do
        printf '%x' "$((1 << cpu))" > "/sys/class/net/$interface/queues/tx-$cpu/xps_cpus" || exit 1
        cpu=$((cpu + 1))
    done
done
"""


@pytest.fixture(scope="module", params=["ipv4", "ipv6"])
def lab(request: pytest.FixtureRequest) -> Iterator[NetnsLab]:
    """A NAT of the kernel between the tester's ports."""
    if os.geteuid():
        pytest.skip("root is needed")
    family: Family = request.param
    with NetnsLab(f"truth-{family}", initiator_family=family, responder_family=family) as made:
        device = made.devices[0]
        for snippet in (MASQUERADE, ONE_QUEUE_PER_CPU):
            words = {"family": "ip" if family == "ipv4" else "ip6", "inside": device.inside, "outside": device.outside}
            answer = device.run(snippet.format(**words))
            assert answer.status == 0, answer.stderr
        yield made


def trial(lab: NetnsLab, *, phase2: bool = True, **choices: Any) -> TrialResult:
    """Run one trial through the NAT; the tables on both sides are empty before."""
    lab.devices[0].run("conntrack -F")
    return trials.run(trial_request(lab, phase2=phase2, **choices))


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


def counted(stream: StreamCounts | None) -> Counted:
    assert stream is not None
    assert stream.offered_frames == stream.intended_frames
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
    assert result.phase2
    streams: dict[Where, StreamCounts | None] = {
        "phase 1": result.phase1,
        "initiator": result.phase2.initiator,
        "responder": result.phase2.responder,
    }
    return {where: counted(stream) for where, stream in streams.items()}


UNTOUCHED: dict[Where, Counted] = {
    "phase 1": Counted(CONNECTIONS),
    "initiator": Counted(FRAMES),
    "responder": Counted(FRAMES),
}


def test_without_a_calibrators_doing_all_is_received(lab: NetnsLab) -> None:
    """And nothing but the frames of the trial is taken for one by the calibrator."""
    device = lab.devices[0]
    with (
        calibrator(device.netns, device.outside, "drop", every=10**9) as outside,
        calibrator(device.netns, device.inside, "drop", every=10**9) as inside,
    ):
        result = trial(lab)
        assert outside() == Tally(CONNECTIONS + FRAMES, 0)
        assert inside() == Tally(FRAMES, 0)
    assert all_streams(result) == UNTOUCHED
    assert result.state_table.stored == CONNECTIONS


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


@pytest.mark.parametrize(("mode", "where"), DOINGS)
def test_what_the_device_did_is_found_to_the_frame(lab: NetnsLab, mode: Mode, where: Where) -> None:
    device = lab.devices[0]
    private = str(INSIDE[lab.families[0]].host(0)) if mode == "untranslated" else None
    choices: dict[str, Any] = {"every": EVERY, "source": private, "octet": 13, "bits": 0x10}
    interface = device.inside if where == "responder" else device.outside
    offset = CONNECTIONS if where == "initiator" else 0
    frames = CONNECTIONS if where == "phase 1" else FRAMES
    acted = frames // EVERY
    with calibrator(device.netns, interface, mode, offset=offset, **choices) as tally:
        result = trial(lab, phase2=where != "phase 1")
        assert tally() == Tally(offset + frames, acted)
    expected = effect(mode, frames, acted)
    if where == "phase 1":
        assert counted(result.phase1) == expected
        assert result.state_table.stored == expected.received
    else:
        assert all_streams(result) == UNTOUCHED | {where: expected}


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
        pytest.param(-1, 0x01, id="UDP checksum"),
        pytest.param(-7, 0x01, id="source port"),
        pytest.param(-5, 0x01, id="destination port"),
    ],
)
def test_damage_is_found_wherever_it_is(lab: NetnsLab, octet: int, bits: int) -> None:
    device = lab.devices[0]
    with calibrator(
        device.netns, device.outside, "damage", every=EVERY, offset=CONNECTIONS, octet=octet, bits=bits
    ) as tally:
        result = trial(lab)
        acted = tally().acted
    assert acted == FRAMES // EVERY
    assert all_streams(result) == UNTOUCHED | {"initiator": Counted(FRAMES - acted, damaged=acted)}


@pytest.mark.parametrize("every", [2, 3, 100, FRAMES])
def test_loss_is_found_whether_frequent_or_a_single_frame(lab: NetnsLab, every: int) -> None:
    device = lab.devices[0]
    with calibrator(device.netns, device.outside, "drop", every=every, offset=CONNECTIONS):
        result = trial(lab)
    assert all_streams(result) == UNTOUCHED | {"initiator": Counted(FRAMES - FRAMES // every)}


def test_a_device_that_stops_forwarding_is_found(lab: NetnsLab) -> None:
    device = lab.devices[0]
    with calibrator(device.netns, device.outside, "stop-after", every=1234, offset=CONNECTIONS) as tally:
        result = trial(lab)
        assert tally() == Tally(CONNECTIONS + FRAMES, FRAMES - 1234)
    assert all_streams(result) == UNTOUCHED | {"initiator": Counted(1234)}


# --- delay: a forwarder in the device's place, a bridge between the two cables

#: The issue's own bound on how far the tester's delays may be from the forwarder's.
TOLERANCE = 20e-6


def bridged(lab: NetnsLab, **choices: Any) -> TrialResult:
    """A trial whose frames go straight from port to port, so each port is the other's gateway."""
    macs = [namespace_mac(port.netns, port.interface) for port in (lab.responder, lab.initiator)]
    request = trial_request(lab, phase2=True, translated=False)
    stream = {"rate": 1000.0, "frames": 2000}
    changes: dict[str, Any] = {
        "initiator": {"gateway": {"mac": macs[0]}},
        "responder": {"gateway": {"mac": macs[1]}},
        "connections": 500,
        "phase1": {"rate": 1000.0, "grace_ms": 200},
        "phase2": {"initiator": stream, "responder": stream, "grace_ms": 200},
        "record_delays": True,
        "senders": {"cpus": CPUS[:1], "batch": 1},
    }
    document = request.model_dump(exclude_none=True)
    for name, value in (changes | choices).items():
        document[name] = document[name] | value if name in ("initiator", "responder") else value
    return trials.run(TrialRequest.model_validate(document))


def namespace_mac(netns: str | None, interface: str) -> str:
    from pyroute2 import IPRoute

    from natgauge.labs import namespaces

    def ask() -> str:
        with IPRoute() as routes:
            (link,) = routes.link("get", ifname=interface)
            return str(link.get_attr("IFLA_ADDRESS"))

    return namespaces.inside(netns, ask)


def median(stream: StreamCounts) -> float:
    """Seconds; of the nearest rank's bucket the middle."""
    assert stream.delay
    passed = 0
    for lower, upper, frames in stream.delay.buckets:
        passed += frames
        if passed * 2 >= stream.delay.frames:
            return (lower + upper) / 2e9
    raise AssertionError("no frame has a delay")


@pytest.mark.parametrize("delay_us", [0, 100, 1000, 10_000])
def test_delay_is_found_within_the_forwarders_own_timer_error(lab: NetnsLab, delay_us: int) -> None:
    device = lab.devices[0]
    with forwarder(device.netns, device.inside, device.outside, delay_us, cpu=CPUS[-1]) as running:
        result = bridged(lab)
        held = running.stop()
    assert (held.refused, held.failed, held.kept) == (0, 0, 0)
    assert held.timer_error
    assert result.phase2
    for stream in (result.phase2.initiator, result.phase2.responder):
        assert stream
        assert stream.delay
        print(delay_us, held.timer_error, stream.delay.minimum_ns, median(stream), stream.delay.sum_ns/stream.delay.frames, stream.delay.maximum_ns)
        assert counted(stream) == Counted(2000)
        assert (stream.delay.frames, stream.delay.negative) == (2000, 0)
        assert abs(stream.delay.minimum_ns / 1e9 - delay_us / 1e6 - held.timer_error.minimum) <= TOLERANCE
        assert abs(median(stream) - delay_us / 1e6 - held.timer_error.median) <= TOLERANCE
