# SPDX-License-Identifier: Apache-2.0
"""An audit ends at its time whatever arrives, and a flooded audit decides nothing and says so."""

from __future__ import annotations

import itertools
import socket
import struct
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.simulated_nat import Behaviour, examiner_of

from natgauge.audits.kit.network import ArrivedFrame, Missed, PortTraffic
from natgauge.audits.kit.observations import FloodError
from natgauge.audits.kit.sockets import PacketSockets, attach, program
from natgauge.audits.requirements import NO_FLOWS, Requirement
from natgauge.audits.runner import examine, forwards, other_traffic_doubt

MAC = b"\x02\0\0\0\0\x01"


class Endless:
    """A packet socket that always has another frame."""

    def __init__(self, clock: list[float]) -> None:
        self._clock = clock

    def recvmsg(self, *_most: int) -> tuple[bytes, list[Any]]:
        """Return a frame; reading it takes as long as the next one needs to arrive."""
        self._clock[0] += 1e-5
        return MAC, []


def ports_of(**sockets: Any) -> PacketSockets:
    port: Any = None
    ports = PacketSockets(port, port)
    ports._sockets = sockets  # type: ignore[assignment]
    return ports


def test_receiving_ends_at_its_time_although_frames_arrive_faster_than_they_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]
    monkeypatch.setattr("natgauge.audits.kit.sockets.time.monotonic", lambda: clock[0])
    ports = ports_of(initiator=Endless(clock), responder=Endless(clock))
    read = 0
    while ports.receive(0.3) is not None and clock[0] < 5.0:
        read += 1
    assert clock[0] < 0.5, "0.3 s, and what both queues hold then"
    assert read > 1000


def test_what_arrived_in_time_is_read_although_the_host_stood_still(monkeypatch: pytest.MonkeyPatch) -> None:
    left = [b"one", b"two"]

    def recvmsg(*_most: int) -> tuple[bytes, list[Any]]:
        if not left:
            raise BlockingIOError
        return left.pop(0), []

    monkeypatch.setattr("natgauge.audits.kit.sockets.time.monotonic", lambda: 100.0)
    ports = ports_of(initiator=SimpleNamespace(recvmsg=recvmsg))
    read = [ports.receive(1.0) for _ in range(3)]
    assert read == [ArrivedFrame("initiator", b"one"), ArrivedFrame("initiator", b"two"), None]


def run_filter(program: bytes, frame: bytes, *, vlan: bool) -> int:
    """Run classic BPF as the kernel does: a load beyond the frame ends it with 0."""
    steps = list(struct.iter_unpack("=HBBI", program))
    at = value = 0
    for _ in range(len(steps)):
        code, then, otherwise, k = steps[at]
        at += 1
        size = {0x20: 4, 0x28: 2, 0x30: 1}.get(code)
        if size is not None and k == 0xFFFFF000 + 48:
            value = int(vlan)
        elif size is not None and k + size > len(frame):
            return 0
        elif size is not None:
            value = int.from_bytes(frame[k : k + size], "big")
        elif code == 0x06:
            return int(k)
        else:
            holds = value == k if code == 0x15 else value >= k
            at += then if holds else otherwise
    raise AssertionError("the filter does not end")


def is_read(frame: bytes, *, vlan: bool) -> bool:
    """Whether an audit reads a frame: the rule, as it is written in the filter's docstring."""
    kind, ndp = frame[12:14], frame[20] == 58 and 133 <= frame[54] <= 137
    own = frame[:6] in (MAC, b"\xff" * 6)
    return not vlan and (kind == b"\x08\x06" or (kind == b"\x08\0" and own) or (kind == b"\x86\xdd" and (own or ndp)))


@given(
    to=st.sampled_from([MAC, b"\xff" * 6, b"\x33\x33\0\0\0\1", MAC[:5] + b"\2"]) | st.binary(min_size=6, max_size=6),
    kind=st.sampled_from([b"\x08\x00", b"\x86\xdd", b"\x08\x06", b"\x81\x00", b"\x88\xcc"]),
    header=st.sampled_from([58, 17, 6]),
    first=st.integers(0, 255),
    vlan=st.booleans(),
)
def test_the_filter_takes_what_an_audit_reads_and_its_opposite_counts_the_rest(
    to: bytes,
    kind: bytes,
    header: int,
    first: int,
    vlan: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    frame = to + bytes(6) + kind + bytes(6) + bytes([header]) + bytes(33) + bytes([first]) + bytes(9)
    taken, counted = (bool(run_filter(program(MAC, wanted=one), frame, vlan=vlan)) for one in (True, False))
    assert taken == is_read(frame, vlan=vlan)
    assert counted == (not taken)


def test_the_kernel_accepts_the_filter() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        attach(opened, MAC, wanted=True)


@pytest.mark.parametrize(
    ("sent", "arrived", "dropped", "seconds", "flooded"),
    [
        (10, 10, 0, 0.1, False),
        (1000, 2000, 0, 0.1, False),
        (0, 1000, 0, 0.0, False),
        (0, 1000 + 6000, 0, 6.0, False),
        (0, 1200, 0, 0.1, True),
        (10, 10, 1, 0.1, True),
        (0, 100_000, 0, 60.0, True),
    ],
)
def test_a_flood_is_frames_that_were_lost_or_far_more_than_the_audit_asked_for(
    sent: int,
    arrived: int,
    dropped: int,
    seconds: float,
    flooded: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    before = PortTraffic(5.0, 100, 200, 3)
    assert bool(PortTraffic(5.0 + seconds, 100 + sent, 200 + arrived, 3 + dropped).flood(before)) == flooded


def test_an_audit_without_other_traffic_has_no_doubt_and_its_verdict() -> None:
    looks = examiner_of(Behaviour())
    one = Requirement(4787, "REQ-0", "MUST", "no flow passes", ("udp",), lambda _: (False, "dropped"), NO_FLOWS)
    assert [found.verdict for found in examine(looks, [one])] == ["fails"]
    assert list(other_traffic_doubt(looks)) == []


def test_a_flooded_audit_decides_nothing_and_says_so() -> None:
    """The gateway dropped the frame, or the flood did: nobody can tell."""
    looks, lost = examiner_of(Behaviour()), itertools.count()
    looks.network.ports.missed = lambda: Missed(0, next(lost))  # type: ignore[method-assign]
    one = Requirement(4787, "REQ-0", "MUST", "no flow passes", ("udp",), lambda _: (False, "dropped"), NO_FLOWS)
    (found,) = examine(looks, [one])
    assert found.verdict == "not seen"
    assert "flooded" in found.measured
    assert not forwards(looks, "udp")
    (doubt,) = other_traffic_doubt(looks)
    assert (doubt.word, doubt.grade) == ("other traffic", "answer")


def test_what_was_looked_for_in_a_flood_is_looked_for_again_later() -> None:
    looks, floods = examiner_of(Behaviour()), itertools.chain([Missed()], itertools.repeat(Missed(0, 1)))
    looks.network.ports.missed = lambda: next(floods)  # type: ignore[method-assign]
    looked: list[int] = []

    def look(_examiner: object) -> int:
        looked.append(1)
        return len(looked)

    with pytest.raises(FloodError):
        looks.once(look)
    assert looks.once(look) == 2
    assert looks.once(look) == 2
