# SPDX-License-Identifier: Apache-2.0
"""Devices of known truth do exactly what they say: which frames, what is in them, and how often, without the tester."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import pytest
from tests.labs.calibration import PROGRAM, Mode, Tally, calibrator, forwarder

from natgauge.errors import UsageError
from natgauge.host import programs
from natgauge.labs.common import namespaces

if TYPE_CHECKING:
    from tests.labs.datagrams import Datagram
    from tests.labs.truth.conftest import Programs, Wire

pytestmark = pytest.mark.waits

EVERY = 5
OFFSET = 3
COUNT = 48
#: With these, the frames number 7, 12, ... 47 are chosen.
CHOSEN = range(OFFSET + EVERY - 1, COUNT, EVERY)
SEEN_ALL = Tally(COUNT, len(CHOSEN))

both_families = pytest.mark.parametrize("family", [4, 6])


@both_families
def test_without_a_calibrator_all_frames_pass_unchanged(wire: Wire, family: int) -> None:
    sent = wire.datagrams(COUNT, family=family)
    assert wire.through(sent) == sent


def swapped(sent: Sequence[Datagram]) -> list[Datagram]:
    """Each chosen one behind its successor, which the last one does not have yet."""
    received = list(sent)
    for number in CHOSEN[:-1]:
        received[number : number + 2] = reversed(received[number : number + 2])
    return received[:-1]


def damaged(one: Datagram, octet: int, bits: int) -> Datagram:
    payload = bytearray(one.payload)
    payload[octet] ^= bits
    return one.differs(payload=bytes(payload), checksums_right=False)


def leaked(one: Datagram, source: str, source_port: int | None = None) -> Datagram:
    return one.differs(source=ip_address(source), source_port=source_port or one.source_port)


#: What becomes of a chosen frame, of each mode with its choices, in IPv4, IPv6, or both.
ONE_BY_ONE: list[tuple[tuple[int, ...], Mode, dict[str, Any], Callable[..., Datagram]]] = [
    *(((4, 6), "damage", {"octet": octet, "bits": bits}, damaged) for octet, bits in ((0, 255), (17, 1), (39, 128))),
    *(((4,), "untranslated", {"source": "10.1.2.3", **port}, leaked) for port in ({}, {"source_port": 54321})),
    *(((6,), "untranslated", {"source": "fd00::1234:5678", **port}, leaked) for port in ({}, {"source_port": 54321})),
    ((4, 6), "mistranslate", {}, lambda one: one.differs(destination_port=one.destination_port ^ 1)),
]
#: What is received of all that was sent.
OF_ALL: list[tuple[Mode, Callable[[Sequence[Datagram]], list[Datagram]]]] = [
    ("drop", lambda sent: [one for one in sent if one.number not in CHOSEN]),
    ("duplicate", lambda sent: [one for one in sent for _ in range(1 + (one.number in CHOSEN))]),
    ("swap", swapped),
]


@both_families
@pytest.mark.parametrize(("mode", "effect"), OF_ALL, ids=[mode for mode, _ in OF_ALL])
def test_every_kth_frame_is_lost_doubled_or_late_and_no_other(
    wire: Wire, family: int, mode: Mode, effect: Callable[[Sequence[Datagram]], list[Datagram]]
) -> None:
    # Sizes differ, so that the one frame really takes the other's place.
    sent = [
        one.differs(payload=one.payload + b"x" * (one.number % 7 * 100)) for one in wire.datagrams(COUNT, family=family)
    ]
    with calibrator(wire.device, "d1", mode, every=EVERY, offset=OFFSET) as tally:
        assert wire.through(sent) == effect(sent)
        assert tally() == SEEN_ALL


@pytest.mark.parametrize(
    ("family", "mode", "choices", "effect"),
    [pytest.param(family, *rest, id=f"{rest[0]} {rest[1]} {family}") for of, *rest in ONE_BY_ONE for family in of],
)
def test_every_kth_frame_is_changed_and_no_other(
    wire: Wire, family: int, mode: Mode, choices: dict[str, Any], effect: Callable[..., Datagram]
) -> None:
    """Damage leaves the checksum as it was; what is leaked or goes elsewhere has a right one."""
    sent = wire.datagrams(COUNT, family=family)
    with calibrator(wire.device, "d1", mode, every=EVERY, offset=OFFSET, **choices) as tally:
        received = wire.through(sent)
        assert tally() == SEEN_ALL
    assert received == [effect(one, **choices) if one.number in CHOSEN else one for one in sent]


def test_a_frame_that_waits_for_its_successor_leaves_with_the_next_test_frame(wire: Wire) -> None:
    first, second, third = wire.datagrams(3)
    with calibrator(wire.device, "d1", "swap", every=2) as tally:
        assert wire.through([first]) == [first]
        assert wire.through([second]) == []
        assert wire.through([third]) == [third, second]
        assert tally() == Tally(3, 1)


@both_families
def test_swap_of_every_second_frame_changes_places_in_pairs(wire: Wire, family: int) -> None:
    sent = wire.datagrams(7, family=family)
    with calibrator(wire.device, "d1", "swap", every=2) as tally:
        assert [datagram.number for datagram in wire.through(sent)] == [0, 2, 1, 4, 3, 6, 5]
        assert tally() == Tally(7, 3)


def test_damage_reaches_the_headers(wire: Wire) -> None:
    sent = wire.datagrams(4)
    with calibrator(wire.device, "d1", "damage", every=4, octet=-7, bits=0x02):  # low octet of the source port
        received = wire.through(sent)
    assert received == [*sent[:3], sent[3].differs(source_port=sent[3].source_port ^ 2, checksums_right=False)]


def test_damage_beyond_the_frame_is_not_counted_as_done(wire: Wire) -> None:
    sent = wire.datagrams(4, payload_octets=40)
    with calibrator(wire.device, "d1", "damage", every=1, octet=40) as tally:
        assert wire.through(sent) == sent
        assert tally() == Tally(4, 0)


def test_untranslated_leaves_frames_of_the_other_family_alone(wire: Wire) -> None:
    sent = wire.datagrams(4, family=6)
    with calibrator(wire.device, "d1", "untranslated", every=1, source="10.0.0.2") as tally:
        assert wire.through(sent) == sent
        assert tally() == Tally(4, 0)


def test_mistranslate_never_makes_port_0(wire: Wire) -> None:
    sent = [one.differs(destination_port=1) for one in wire.datagrams(1)]
    with calibrator(wire.device, "d1", "mistranslate", every=1):
        assert wire.through(sent) == [sent[0].differs(destination_port=2)]


def test_a_checksum_that_becomes_0_is_sent_as_ffff(wire: Wire) -> None:
    """RFC 768: 0 stands for no checksum. The last octets make the new sum 0xffff, so its complement 0."""
    sent = wire.datagrams(1)[0]
    for guess in range(0x10000):
        made = sent.differs(payload=sent.payload[:-2] + guess.to_bytes(2, "big"))
        if made.differs(destination_port=made.destination_port ^ 1).frame("00" * 6, "00" * 6)[40:42] == b"\xff\xff":
            break
    else:
        pytest.fail("no such payload")
    with calibrator(wire.device, "d1", "mistranslate", every=1):
        (received,) = wire.through([made])
    assert received == made.differs(destination_port=made.destination_port ^ 1)
    assert received.checksums_right


@both_families
def test_stop_after_lets_so_many_frames_leave_and_then_none(wire: Wire, family: int) -> None:
    sent = wire.datagrams(COUNT, family=family)
    with calibrator(wire.device, "d1", "stop-after", every=10, offset=OFFSET) as tally:
        assert wire.through(sent) == sent[: OFFSET + 10]
        assert tally() == Tally(COUNT, COUNT - OFFSET - 10)


def test_only_udp_of_a_test_frames_length_is_counted(wire: Wire) -> None:
    short = [one.differs(payload=one.payload[:17]) for one in wire.datagrams(3)]  # 14 + 20 + 8 + 17 octets
    shortest = [one.differs(payload=one.payload[:18]) for one in wire.datagrams(3)]
    with calibrator(wire.device, "d1", "drop", every=1) as tally:
        assert wire.through(short) == short
        subprocess.run(
            ["ip", "netns", "exec", wire.device, "ping", "-c", "1", "-W", "0.1", "-s", "100", "198.19.0.2"],
            check=False,
            capture_output=True,
        )
        assert tally() == Tally(0, 0)
        assert wire.through(shortest) == []
        assert tally() == Tally(3, 3)


def test_frames_of_the_other_direction_are_left_alone(wire: Wire) -> None:
    sent = wire.datagrams(4)
    with calibrator(wire.device, "d0", "drop", every=1) as tally:
        assert wire.through(sent) == sent
        assert tally() == Tally(0, 0)


def test_counting_starts_anew_and_nothing_stays_behind(wire: Wire, loaded: Callable[..., Programs]) -> None:
    watch = loaded("natgauge_truth")
    for _ in range(2):
        with calibrator(wire.device, "d1", "drop", every=1) as tally:
            ours = watch.new()
            assert ours
            assert tally() == Tally(0, 0)
            wire.through(wire.datagrams(2))
            assert tally() == Tally(2, 2)
        watch.await_unloaded(ours)


def test_a_calibrator_goes_with_its_interface(loaded: Callable[..., Programs]) -> None:
    watch = loaded("natgauge_truth")
    name = f"truth-{os.getpid()}-short"
    namespaces.create(name)
    try:
        subprocess.run(["ip", "-n", name, "link", "add", "a0", "type", "veth", "peer", "name", "a1"], check=True)
        subprocess.run(
            [programs.find(PROGRAM), "attach", "--netns", name, "--interface=a0", "--mode=drop", "--every=1"],
            check=True,
        )
        ours = watch.new()
        assert ours
        subprocess.run(["ip", "-n", name, "link", "delete", "a0"], check=True)
        watch.await_unloaded(ours)
    finally:
        namespaces.delete([name])


def test_a_second_calibrator_on_an_interface_is_refused(wire: Wire) -> None:
    with calibrator(wire.device, "d1", "drop", every=1):
        with (
            pytest.raises(UsageError, match="has a calibrator already"),
            calibrator(wire.device, "d1", "drop", every=2),
        ):
            pytest.fail("it was taken")
        assert wire.through(wire.datagrams(2)) == []


# --- the forwarder of known delay: the device's two interfaces become a bridge, past its routing

DELAY_US = 3000


def _hand_over(wire: Wire, count: int, gap_seconds: float) -> tuple[list[Datagram], list[int], list[Datagram]]:
    sent = wire.datagrams(count)
    with wire.capture(wire.right, "r0") as capture:
        times = wire.send_datagrams(sent, gap_seconds)
        return sent, times, capture.datagrams()


def test_every_frame_is_held_at_least_so_long_and_hardly_longer(wire: Wire) -> None:
    with forwarder(wire.device, "d0", "d1", DELAY_US) as running:
        sent, times, received = _hand_over(wire, 200, 0.0005)
        held = running.stop()
    assert [one.differs() for one in received] == sent
    assert (held.frames, held.refused, held.failed, held.kept, held.jittered) == (200, 0, 0, 0, 0)
    assert held.timer_error
    assert 0 <= held.timer_error.minimum <= held.timer_error.mean <= held.timer_error.maximum
    assert held.timer_error.p99 <= held.timer_error.maximum
    delays = sorted(one.arrived - start for one, start in zip(received, times, strict=True))
    assert delays[0] >= DELAY_US * 1000
    # The way there and back again takes some microseconds here; half a millisecond would be another thing.
    assert delays[len(delays) // 2] < DELAY_US * 1000 + held.timer_error.mean * 1e9 + 500_000


def test_jitter_holds_every_kth_frame_longer_so_that_later_ones_overtake(wire: Wire) -> None:
    with forwarder(wire.device, "d0", "d1", DELAY_US, jitter_us=100_000, every=10) as running:
        _, times, received = _hand_over(wire, 40, 0.0)
        held = running.stop()
    assert (held.frames, held.jittered) == (40, 4)
    longer = [one.number for one in received if one.arrived - times[one.number] >= (DELAY_US + 100_000) * 1000]
    assert longer == [9, 19, 29, 39]
    assert [one.number for one in received][-4:] == longer


def test_frames_pass_unchanged_the_other_way_too(wire: Wire) -> None:
    with forwarder(wire.device, "d1", "d0", 100) as running, wire.capture(wire.right, "r0") as capture:
        sent = wire.datagrams(20, family=6, payload_octets=1400 // 8)
        wire.send_datagrams(sent)
        assert [one.differs() for one in capture.datagrams()] == sent
        assert running.stop().frames == 20


def test_a_forwarder_that_saw_nothing_has_no_timer_error(wire: Wire) -> None:
    with forwarder(wire.device, "d0", "d1", 100, cpu=0) as running:
        held = running.stop()
    assert held.frames == 0
    assert held.timer_error is None


def test_frames_still_held_at_the_end_are_told(wire: Wire) -> None:
    with forwarder(wire.device, "d0", "d1", 20_000_000) as running:
        wire.send_datagrams(wire.datagrams(5))
        held = running.stop()
    assert (held.frames, held.kept) == (0, 5)


def test_a_forwarder_dies_with_its_parent_and_leaves_nothing(wire: Wire, loaded: Callable[..., Programs]) -> None:
    watch = loaded("natgauge_holder")
    started = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)\n"
        "print(child.stdout.readline(), flush=True)\n"
        "time.sleep(600)\n"
    )
    command = [
        str(programs.find(PROGRAM)),
        "hold",
        "--netns",
        wire.device,
        "--inside=d0",
        "--outside=d1",
        "--delay-us=1",
    ]
    with subprocess.Popen([sys.executable, "-c", started, *command], stdout=subprocess.PIPE) as parent:
        assert parent.stdout
        assert b"ready" in parent.stdout.readline()
        ours = watch.new()
        assert ours
        parent.send_signal(signal.SIGKILL)
    watch.await_unloaded(ours)
