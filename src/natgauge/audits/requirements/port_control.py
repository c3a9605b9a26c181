# SPDX-License-Identifier: Apache-2.0
"""Mappings that inside hosts ask for by PCP (RFC 6887), which RFC 6888 section 3 wants of carrier-grade NATs."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Final

from natgauge.audits.kit.examiner import Examiner, NotApplicableError, NotSeenError
from natgauge.audits.kit.hosts import Flows
from natgauge.audits.kit.packets import TCP, UDP, Endpoint, Packet, UdpSegment, make_packet
from natgauge.audits.requirements import CGN, Finding, requires
from natgauge.words import Address

#: Of a PCP server (RFC 6887 section 19.1).
_PORT: Final = 5351
#: Version 2, opcode MAP, requested lifetime, the client's address; the nonce, protocol, internal port, and no
#: suggestion of an external port and address (RFC 6887 sections 7.1 and 11.1).
_REQUEST: Final = struct.Struct("!BBHI16s12sB3xHH16s")
#: The same of an answer, with result code and lifetime, and with the assigned port and address (sections 7.2 and 11.1).
_ANSWER: Final = struct.Struct("!BBBBI4x12x12sB3xHH16s")
_VERSION, _MAP, _ANSWERED = 2, 1, 0x81
_SUCCESS: Final = 0
#: Result codes of a gateway that has no room, or of a host that has enough (RFC 6887 section 7.4).
_NO_ROOM: Final = frozenset({8, 10})
_ADDRESS_MISMATCH: Final = 12
#: Lifetimes that are asked for, in seconds: usual, and so short that the audit can wait for its end.
_LIFETIME, _SHORT = 3600, 2
_LONGEST_WAIT: Final = 10
#: That of the control frames.
_FLOWS: Final = Flows(1)
_TRIES: Final = 2
#: Wait for an answer after control frames that were sent behind the request have arrived.
_PATIENCE_SECONDS: Final = 0.3


class _NoServerError(NotSeenError):
    """The gateway does not answer PCP requests."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """Answer to a MAP request: result code, seconds of the mapping, and its outside endpoint."""

    result: int
    lifetime: int
    outside: Endpoint


@dataclass(frozen=True, slots=True)
class _Mapping:
    """A mapping that was asked for: its inside endpoint, the nonce of its requests, and the first answer."""

    inside: Endpoint
    nonce: bytes
    answer: _Answer

    def lets_in(self, examiner: Examiner) -> bool:
        """Whether a frame of a new outside host reaches the inside endpoint."""
        return examiner.enters(examiner.stranger(), self.answer.outside, self.inside)


def _ask(examiner: Examiner, inside: Endpoint, lifetime: int, nonce: bytes, client: Address | None = None) -> _Answer:
    """Ask for a mapping of an inside endpoint; `client` = address in the request, if it is not the endpoint's."""
    server = examiner.network.sides["initiator"].gateway
    if server is None:
        raise NotSeenError("the gateway's inside address is not known; name it in place of its MAC address")
    protocol = TCP if examiner.transport == "tcp" else UDP
    own = _octets(client or inside.address)
    head = _VERSION, _MAP, 0, lifetime, own, nonce
    request = _REQUEST.pack(*head, protocol, inside.port, 0, _octets(type(inside.address)(0)))
    packet = make_packet(inside, Endpoint(server, _PORT), UdpSegment(request))

    def wanted(seen: Packet) -> bool:
        answers = seen.sender == Endpoint(server, _PORT) and seen.receiver == inside
        data = seen.segment.data if isinstance(seen.segment, UdpSegment) else b""
        return answers and len(data) >= _ANSWER.size and data[1] == _ANSWERED

    since = examiner.mark
    for _ in range(_TRIES):
        examiner.send(packet, up=True, note=f"PCP MAP, lifetime {lifetime} s")
        examiner.control()
        frame = examiner.network.wait("initiator", wanted, _PATIENCE_SECONDS, since=since)
        segment = None if frame is None else frame.packet.segment
        if isinstance(segment, UdpSegment):
            _, _, _, result, assigned, *_, port, address = _ANSWER.unpack_from(segment.data)
            if result in _NO_ROOM and lifetime:
                raise NotSeenError(f"the gateway has no room for another mapping (PCP result code {result})")
            return _Answer(result, assigned, Endpoint(_address(address), port))
    raise _NoServerError(f"{server} does not answer PCP requests at UDP port {_PORT}; it may have another protocol")


def _octets(address: Address) -> bytes:
    """Return an address as PCP writes it, IPv4 as ::ffff:0:0/96 (RFC 6887 section 5)."""
    return address.packed if address.version == 6 else bytes(10) + b"\xff\xff" + address.packed


def _address(octets: bytes) -> Address:
    address = IPv6Address(octets)
    return address.ipv4_mapped or address


@contextmanager
def _asked(examiner: Examiner, lifetime: int) -> Iterator[_Mapping]:
    """Ask for a mapping, and delete it when the `with` block ends, so that it takes no room from later examinations."""
    inside, nonce = examiner.endpoint(), examiner.tag() + bytes(4)
    answer = _ask(examiner, inside, lifetime, nonce)
    try:
        yield _Mapping(inside, nonce, answer)
    finally:
        if answer.result == _SUCCESS:
            _ask(examiner, inside, 0, nonce)


@contextmanager
def _open(examiner: Examiner, lifetime: int) -> Iterator[_Mapping]:
    """Likewise, a mapping that lets frames of any outside host in; a gateway that makes none has nothing to fail."""
    try:
        with _asked(examiner, lifetime) as mapping:
            if mapping.answer.result != _SUCCESS:
                raise NotApplicableError(f"the gateway refuses mappings (result code {mapping.answer.result})")
            if not mapping.lets_in(examiner):
                raise NotApplicableError("mappings that hosts ask for let nothing in")
            yield mapping
    except _NoServerError as error:
        raise NotApplicableError(str(error)) from None


@requires("hosts can control their mappings", (6888, "REQ-9", "MUST", "udp", "tcp"), flows=_FLOWS, profiles=CGN)
def _examine_control(examiner: Examiner) -> Finding:
    with _asked(examiner, _LIFETIME) as mapping:
        answer = mapping.answer
        if answer.result != _SUCCESS:
            return False, f"PCP refuses a mapping of {mapping.inside} (result code {answer.result})"
        words = f"PCP maps {mapping.inside} to {answer.outside} for {answer.lifetime} s of {_LIFETIME} s"
        entered = mapping.lets_in(examiner)
        return entered, f"{words}, and a frame from outside {'arrives' if entered else 'does not arrive'}"


@requires("a host can delete its mapping", (6887, "15-delete", "MUST", "udp"), flows=_FLOWS)
def _examine_deletion(examiner: Examiner) -> Finding:
    with _open(examiner, _LIFETIME) as mapping:
        deleted = _ask(examiner, mapping.inside, 0, mapping.nonce)
        entered = mapping.lets_in(examiner)
    words = f"result code {deleted.result} for a lifetime of 0, and a frame of a new outside host"
    return not entered, f"{words} {'still arrives' if entered else 'arrives no longer'}"


@requires("a mapping ends with its lifetime", (6887, "15-lifetime", "MUST", "udp"), flows=_FLOWS)
def _examine_lifetime(examiner: Examiner) -> Finding:
    with _open(examiner, _SHORT) as mapping:
        seconds = mapping.answer.lifetime
        if seconds > _LONGEST_WAIT:
            raise NotSeenError(f"the shortest lifetime is {seconds} s, the audit waits {_LONGEST_WAIT} s at most")
        examiner.network.pause(examiner.network.now() + seconds + 1)
        entered = mapping.lets_in(examiner)
    return not entered, f"a frame {'still' if entered else 'no longer'} arrives after the lifetime of {seconds} s"


@requires("nobody asks for another host", (6887, "8.2-address", "MUST", "udp"), flows=_FLOWS)
def _examine_address(examiner: Examiner) -> Finding:
    """The address in a request is another one than the packet's source, as behind a NAT in between."""
    with _open(examiner, _LIFETIME):
        answer = _ask(examiner, examiner.endpoint(), _LIFETIME, examiner.tag() + bytes(4), examiner.host(1))
    return answer.result == _ADDRESS_MISMATCH, f"result code {answer.result} for the address of another host"
