# SPDX-License-Identifier: Apache-2.0
"""A frame with a wrong checksum counts as not delivered, as hosts drop it, and the verdict says so."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from tests.unit.simulated_nat import Behaviour, examiner_of
from tests.unit.simulated_nat64 import INSIDE

from natgauge.audits.kit.packets import Packet
from natgauge.audits.kit.sockets import is_partial
from natgauge.audits.requirements import requirements
from natgauge.audits.runner import examine
from natgauge.records.audit import AuditedRequirement

#: What the RFCs require of most frames, and what a NAT with wrong checksums met.
EVERY_DAY = ("RFC4787-REQ-1", "RFC4787-REQ-9", "RFC4787-REQ-12b", "RFC5382-REQ-2", "RFC5508-REQ-1", "RFC5508-REQ-4")
#: Place of the segment's checksum, by protocol.
_PLACES = {1: 2, 6: 16, 17: 6}


def header(_packet: Packet, octets: bytes) -> bytes:
    """Return the packet with a wrong header checksum."""
    return _inverted(octets, 10)


def segment(packet: Packet, octets: bytes) -> bytes:
    """Return the packet with a wrong checksum of its segment."""
    return octets if packet.offset else _inverted(octets, len(octets) - len(packet.payload) + _PLACES[packet.protocol])


def _inverted(octets: bytes, place: int) -> bytes:
    return octets[:place] + bytes(one ^ 0xFF for one in octets[place : place + 2]) + octets[place + 2 :]


def verdicts(behaviour: Behaviour, *keys: str) -> list[AuditedRequirement]:
    wanted = [one for one in requirements() if one.key in keys]
    return list(examine(examiner_of(behaviour), wanted))


@pytest.mark.parametrize("damages", [header, segment])
def test_a_nat_whose_checksums_are_wrong_meets_nothing_and_its_frames_are_counted(
    damages: Callable[[Packet, bytes], bytes],
) -> None:
    found = verdicts(Behaviour(damages=damages), *EVERY_DAY)
    assert {one.verdict for one in found} <= {"fails", "not seen"}
    assert all("came with a wrong checksum" in one.measured for one in found), [one.measured for one in found]


def test_wrong_checksums_of_errors_alone_are_errors_that_were_dropped() -> None:
    def errors(packet: Packet, octets: bytes) -> bytes:
        return segment(packet, octets) if packet.protocol == 1 else octets

    (one,) = verdicts(Behaviour(damages=errors), "RFC4787-REQ-12b")
    assert one.verdict == "fails"
    assert "port unreachable was dropped" in one.measured
    assert "frames came with a wrong checksum" in one.measured


def test_a_checksum_that_the_kernel_left_to_a_card_is_no_fault_of_the_gateway() -> None:
    behaviour = Behaviour(damages=segment, leaves_checksums=True)
    assert [one.verdict for one in verdicts(behaviour, "RFC4787-REQ-1", "RFC5382-REQ-2")] == ["meets", "meets"]


def test_a_datagram_in_fragments_is_looked_at_when_it_is_whole() -> None:
    def fragments(packet: Packet, octets: bytes) -> bytes:
        return segment(packet, octets) if packet.is_fragment else octets

    (one,) = verdicts(Behaviour(damages=fragments), "RFC4787-REQ-14")
    assert one.verdict == "fails"
    assert "in order: a datagram was dropped" in one.measured
    assert "frames came with a wrong checksum" in one.measured


def test_an_error_that_is_let_through_with_its_wrong_checksum_was_not_dropped() -> None:
    def errors(packet: Packet, octets: bytes) -> bytes:
        # The first error shows that errors pass; the NAT makes a right checksum for it.
        return segment(packet, octets) if packet.protocol == 1 and next(number) else octets

    number = iter((0, *(1,) * 100))
    (one,) = verdicts(Behaviour(damages=errors, error_checksum_verified=False), "RFC5508-REQ-3")
    assert one.verdict != "meets", one.measured


def test_a_segment_that_leaves_untranslated_is_a_leak_whatever_its_checksum() -> None:
    def untranslated(packet: Packet, octets: bytes) -> bytes:
        return segment(packet, octets) if packet.source == INSIDE + 1 and packet.protocol == 6 else octets

    leaks = {one.key for one in requirements() if one.rfc == 1918}
    found = verdicts(Behaviour(invalid_leaks=True, damages=untranslated), *leaks)
    assert {one.verdict for one in found} == {"fails"}


def test_the_kernel_says_of_a_frame_that_its_checksum_is_left_to_a_card() -> None:
    def told(status: int) -> list[tuple[int, int, bytes]]:
        return [(263, 8, struct.pack("=IIIHHHH", status, 60, 60, 0, 14, 0, 0))]

    assert is_partial(told(1 | 8))
    assert not is_partial(told(1 | 128))
    assert not is_partial([])
