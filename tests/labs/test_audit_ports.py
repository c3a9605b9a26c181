# SPDX-License-Identifier: Apache-2.0
"""The tester's ports of an audit on real packet sockets: what is read, what is only counted, and what is lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.labs.program import own

from natgauge.audits.kit.network import Missed, PacketSockets
from natgauge.tester.cable import CableLab

#: More frames than a queue has room for.
_FLOOD = 20_000


@pytest.fixture
def ports() -> Iterator[PacketSockets]:
    with CableLab(own("ports")) as cable, PacketSockets(cable.initiator, cable.responder) as opened:
        # Frames of the kernel's own (NDP of new links) come first.
        while opened.receive(opened.now() + 0.2) is not None:
            pass
        yield opened


def test_frames_of_others_are_counted_and_not_read(ports: PacketSockets) -> None:
    mac, before = ports.mac("initiator"), ports.missed()
    rest = ports.mac("responder") + b"\x08\x00" + bytes(46)
    arp = b"\xff" * 6 + ports.mac("responder") + b"\x08\x06" + bytes(46)
    others = [
        b"\x02\0\0\0\0\x99" + rest,
        mac + ports.mac("responder") + b"\x88\xcc" + bytes(46),
        mac + ports.mac("responder") + b"\x81\x00\x00\x07\x08\x00" + bytes(42),
    ]
    for octets in [*others, mac + rest, arp]:
        ports.send("responder", octets)
    until = ports.now() + 0.5
    arrived = [ports.receive(until) for _ in range(3)]
    seen = [frame and (frame.side, frame.octets) for frame in arrived]
    assert seen == [("initiator", mac + rest), ("initiator", arp), None]
    missed = ports.missed()
    assert Missed(missed.others - before.others, missed.dropped) == Missed(len(others), 0)


def test_frames_for_which_there_was_no_room_are_known(ports: PacketSockets) -> None:
    octets = ports.mac("initiator") + ports.mac("responder") + b"\x08\x00" + bytes(46)
    for _ in range(_FLOOD):
        ports.send("responder", octets)
    until, read = ports.now(), 0
    while ports.receive(until) is not None:
        read += 1
    assert 0 < read < _FLOOD
    assert read + ports.missed().dropped == _FLOOD
