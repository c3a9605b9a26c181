# SPDX-License-Identifier: Apache-2.0
"""ICMP: errors from both sides, errors that the gateway itself makes, and queries.

RFC 4787 sections 8 and 10, RFC 5382 sections 7.4 and 7.5, RFC 5508 sections 3 to 5 and 7.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import product
from typing import Final

from natgauge.audits.kit.datagrams import (
    ERROR_KINDS,
    QUOTED_OCTETS,
    Carried,
    ErrorKind,
    ErrorSeen,
    carry,
    error_about,
    pass_error,
    provoked,
    received,
    send_error,
)
from natgauge.audits.kit.examiner import PATIENCE_SECONDS, Examiner, NotApplicableError, NotSeenError, UntranslatedError
from natgauge.audits.kit.hosts import Flows
from natgauge.audits.kit.packets import Endpoint, Packet, checksum, is_same, lone_packet
from natgauge.audits.requirements import Finding, requires

#: Flows of an examination with an error of each kind.
_OF_EACH_KIND: Final = Flows(len(ERROR_KINDS) + 1)
#: Two options of IPv4 that do nothing, and the end of the list.
_OPTIONS: Final = b"\x01\x01\x00\x00"
#: Length to which the quoted packet is padded before extensions (RFC 4884 section 4.6).
_QUOTED_OCTETS: Final = 128
_FLOWS: Final = Flows(3)
_NONE_DELIVERED: Final = "the gateway delivers no ICMP error of this kind at all"
#: An extension structure with one object, an MPLS label (RFC 4884 section 7, RFC 4950), and its checksum.
_OBJECT: Final = b"\x00\x08\x01\x01\x00\x01\x01\x40"
_EXTENSIONS: Final = b"\x20\x00" + checksum(b"\x20\x00\x00\x00" + _OBJECT).to_bytes(2, "big") + _OBJECT


def _faults(examiner: Examiner) -> dict[ErrorKind, str]:
    """Return what is wrong with each kind of error at the inside; nothing where all is right.

    An error between other hosts that quotes no more than it must is looked at where the first one is right. An outside
    router of IPv6 must quote what fits (RFC 4443 section 2.4), which is the whole packet.
    """
    found: dict[ErrorKind, str] = {}
    for kind in ERROR_KINDS:
        fault = _fault(examiner, kind)
        if not fault and _is_ipv4_outside(examiner) and (fault := _fault(examiner, kind, is_short=True)):
            fault = f"that quotes {QUOTED_OCTETS} octets behind the IP header {fault}"
        if fault:
            found[kind] = fault
    return found


def _is_ipv4_outside(examiner: Examiner) -> bool:
    return examiner.host(0, "responder").version == 4


def _fault(examiner: Examiner, kind: ErrorKind, *, is_short: bool = False) -> str:
    """Return what is wrong with an error of this kind at the inside; empty = nothing."""
    flow = examiner.flow(turn=int(is_short))
    # Of ICMP, both ends of the quoted query have its identifier.
    written = replace(flow.written, port=flow.inside.port) if flow.transport == "icmp" else flow.written
    seen = send_error(examiner, flow, kind, is_short=is_short)
    if seen is None:
        return "was dropped"
    if seen.source != flow.inside:
        return f"quotes the source {seen.source} instead of {flow.inside}"
    if seen.destination != written:
        return f"quotes the destination {seen.destination} instead of {written}"
    if seen.packet.destination != flow.inside.address:
        return f"went to {seen.packet.destination} instead of {flow.inside.address}"
    return "" if seen.numbers_kept else "has another type or code"


@requires(
    "ICMP Destination Unreachable is translated",
    (4787, "REQ-12b", "SHOULD", "udp"),
    (5382, "REQ-9", "SHOULD", "tcp"),
    flows=_OF_EACH_KIND,
)
def _examine_unreachable(examiner: Examiner) -> Finding:
    # Fragmentation Needed is type 3 code 4 of IPv4; IPv6 has Packet Too Big, a type of its own.
    kinds: tuple[ErrorKind, ...] = ("port unreachable", "host unreachable", "too big")
    return _judge_errors(examiner, *(kinds if _is_ipv4_outside(examiner) else kinds[:2]))


@requires(
    "ICMP errors from outside arrive with the quoted packet as the host sent it",
    (5508, "REQ-4", "MUST", "udp", "tcp", "icmp"),
    flows=_OF_EACH_KIND,
)
def _examine_outside(examiner: Examiner) -> Finding:
    return _judge_errors(examiner, *ERROR_KINDS)


def _judge_errors(examiner: Examiner, *kinds: ErrorKind) -> Finding:
    faults = examiner.once(_faults)
    wrong = [f"{kind} {faults[kind]}" for kind in kinds if kind in faults]
    quoted = "a whole one and its beginning" if _is_ipv4_outside(examiner) else "a whole one"
    right = f"delivered with the inner packet as the host sent it, {quoted}: {', '.join(kinds)}"
    return not wrong, "; ".join(wrong) or right


@requires("ICMP errors of any source are let through", (4787, "REQ-12a", "SHOULD", "udp"), flows=_FLOWS)
def _examine_any_source(examiner: Examiner) -> Finding:
    if send_error(examiner, examiner.flow(), "host unreachable") is None:
        raise NotSeenError(_NONE_DELIVERED)
    flow = examiner.flow()
    third = examiner.host(1, "responder")
    error = error_about(received(flow, up=False), third, "host unreachable")
    seen = pass_error(examiner, error, "host unreachable", note="as a router would")
    words = "was dropped" if seen is None else "was delivered"
    return seen is not None, f"an ICMP error from another address than the remote host's {words}"


@requires(
    "ICMP errors from the inside arrive with the quoted packet as the outside sent it",
    (5508, "REQ-5", "MUST", "udp", "tcp"),
    flows=_OF_EACH_KIND,
)
def _examine_inside(examiner: Examiner) -> Finding:
    """Send errors of each kind from the inside; that about a port at which nothing listens is the usual one."""
    for turn, kind in enumerate(ERROR_KINDS):
        flow = examiner.flow(turn=turn)
        seen = send_error(examiner, flow, kind, up=True)
        if seen is None:
            return False, f"an ICMP error ({kind}) of the inside host was dropped"
        words = f"an ICMP error ({kind}) came from {seen.packet.source}"
        if seen.destination != flow.mapped:
            return False, f"{words} and quotes the destination {seen.destination} instead of {flow.mapped}"
        source, sides = seen.packet.source, examiner.network.sides
        if examiner.is_inside(source) or source == sides["initiator"].gateway:
            return False, f"{words} instead of an outside address of the gateway"
        # RFC 5508 wants an address of the gateway's own, not that of the mapping.
        if source not in (*examiner.inside.used, sides["responder"].gateway):
            raise NotSeenError(f"{words}, which no flow showed to be an address of the gateway")
        if not seen.numbers_kept:
            return False, f"{words} with another type or code"
    return True, f"delivered with an outside source and destination in the inner packet: {', '.join(ERROR_KINDS)}"


@requires(
    "ICMP errors do not end a mapping",
    (4787, "REQ-12", "MUST", "udp"),
    (5382, "REQ-10", "MUST", "tcp"),
    flows=Flows(2 * len(ERROR_KINDS)),
)
def _examine_kept(examiner: Examiner) -> Finding:
    ended = list[str]()
    for turn, (up, kind) in enumerate(product((False, True), ERROR_KINDS)):
        flow = examiner.flow(turn=turn)
        send_error(examiner, flow, kind, up=up)
        if not examiner.passes(flow, up=False):
            ended.append(f"{kind} from inside" if up else kind)
    if ended:
        return False, f"frames from outside stopped after the ICMP error {', '.join(ended)}"
    return True, f"the mapping stayed after each ICMP error from outside and from inside: {', '.join(ERROR_KINDS)}"


def _send(
    examiner: Examiner, words: str, error_of: Callable[[Packet], Packet], *, damaged_too: bool = False
) -> tuple[Endpoint, ErrorSeen | None, str]:
    """Send an ICMP error that is special, after one that is not.

    Args:
        damaged_too: whether an error that arrives with a wrong checksum of its own was let through.

    Returns:
        The inside endpoint of the flow, the error as it arrives (None = it was dropped), and both in words.
    """
    if send_error(examiner, examiner.flow(), "port unreachable") is None:
        raise NotSeenError(_NONE_DELIVERED)
    # An error may end a mapping, so the verdict gets one of its own.
    flow, words = examiner.flow(), f"an error {words}"
    with examiner.network.damaged_too() if damaged_too else nullcontext():
        seen = pass_error(examiner, error_of(received(flow, up=False)), "port unreachable", note=words)
    said = "dropped" if seen is None else f"delivered, with the quoted source {seen.source}"
    return flow.inside, seen, f"{words} was {said}"


def _about(packet: Packet, *, quoted: bytes | None = None, rest: int = 0) -> Packet:
    return error_about(packet, packet.destination, "port unreachable", quoted=quoted, rest=rest)


def _broken(octets: bytes, place: int) -> bytes:
    return octets[:place] + bytes((octets[place] ^ 0xFF,)) + octets[place + 1 :]


def _with_broken(packet: Packet, place: int) -> Packet:
    return replace(packet, payload=_broken(packet.payload, place))


def _refuse_ipv6(examiner: Examiner) -> None:
    if not _is_ipv4_outside(examiner):
        raise NotApplicableError("the outside uses IPv6, whose header has neither checksum nor options")


@requires("errors with a wrong checksum are dropped", (5508, "REQ-3", "SHOULD", "udp"), flows=_FLOWS)
def _examine_checksum(examiner: Examiner) -> Finding:
    words = "with a wrong checksum"
    _, seen, said = _send(examiner, words, lambda packet: _with_broken(_about(packet), 2), damaged_too=True)
    return seen is None, said


@requires("errors that quote a wrong IP checksum are dropped", (5508, "REQ-3a", "SHOULD", "udp"), flows=_FLOWS)
def _examine_header(examiner: Examiner) -> Finding:
    _refuse_ipv6(examiner)
    words = "that quotes an IP header with a wrong checksum"
    _, seen, said = _send(
        examiner, words, lambda packet: _about(packet, quoted=_broken(packet.octets(), 10)), damaged_too=True
    )
    return seen is None, said


@requires("IP options of the quoted packet are passed over", (5508, "REQ-3b", "MUST", "udp"), flows=_FLOWS)
def _examine_options(examiner: Examiner) -> Finding:
    """Quote a packet with options, which move its ports."""
    _refuse_ipv6(examiner)
    words = "that quotes IP options"
    inside, seen, said = _send(examiner, words, lambda packet: _about(replace(packet, options=_OPTIONS)))
    return seen is not None and seen.source == inside, said


@requires("the checksum of the quoted segment is not verified", (5508, "REQ-3c", "SHOULD", "udp"), flows=_FLOWS)
def _examine_segment(examiner: Examiner) -> Finding:
    words = "that quotes a wrong UDP checksum"
    _, seen, said = _send(examiner, words, lambda packet: _about(_with_broken(packet, 6)))
    return seen is not None, said


@requires(
    "padding and ICMP extensions are no part of the quoted segment", (5508, "REQ-3d", "MUST", "udp"), flows=_FLOWS
)
def _examine_extensions(examiner: Examiner) -> Finding:
    if not _is_ipv4_outside(examiner):
        raise NotSeenError("not examined over IPv6")

    def extended(packet: Packet) -> Packet:
        quoted = packet.octets().ljust(_QUOTED_OCTETS, b"\0") + _EXTENSIONS
        return _about(packet, quoted=quoted, rest=(_QUOTED_OCTETS // 4) << 16)

    _, seen, said = _send(examiner, "with ICMP extensions", extended)
    return seen is not None, said


#: MTU of the gateway's outside link during the examination; IPv6 needs 1280.
_MTU: Final = 1300
_DATA_OCTETS: Final = 1380


@requires(
    "ICMP queries and their replies pass", (5508, "REQ-1", "MUST", "icmp"), flows=Flows(2), needs_forwarding=False
)
def _examine_query(examiner: Examiner) -> Finding:
    """Send a query and its reply between the first hosts of both sides, and between the second ones."""
    seen = list[str]()
    for turn in range(2):
        met, words = _query(examiner, turn)
        if not met:
            return False, words
        seen.append(words)
    return True, "; ".join(seen)


def _query(examiner: Examiner, turn: int) -> Finding:
    """Send a query and its reply; new flows by UDP show that the gateway serves the host that sent the query."""
    inside, outside = (turn % len(examiner.hosts(side)) for side in ("initiator", "responder"))
    try:
        flow = examiner.open(examiner.endpoint(inside), examiner.remote(outside))
    except UntranslatedError:
        raise
    except NotSeenError:
        if "icmp" in examiner.forwarded and not turn:
            # This query was lost, or the gateway refuses further mappings of this host.
            raise
        # Raises if UDP does not pass either.
        examiner.flow("udp", turn=turn)
        examiner.control()
        remote = examiner.host(outside, "responder")
        return False, f"queries to {remote} were dropped, while UDP of the same host passed"
    words = f"a query to {flow.remote.address} passed, with the identifier {flow.mapped.port} outside"
    packet = lone_packet("icmp", *flow.ends(up=False), examiner.tag(), up=False)
    if examiner.deliver(packet, up=False, wanted=lambda seen: is_same(seen, packet)) is None:
        return False, f"{words}; its reply was dropped"
    return True, f"{words}, and its reply"


@requires("ICMP Time Exceeded is made", (5508, "REQ-10a", "MUST", "udp"), flows=Flows(2))
def _examine_ttl(examiner: Examiner) -> Finding:
    packet = replace(examiner.flow().datagram(examiner.tag(), up=True), ttl=1)
    since = examiner.mark
    seen = provoked(examiner, packet, "time exceeded", "a TTL of 1 does not allow to forward it")
    if seen is not None:
        return True, f"Time Exceeded from {seen.packet.source} for a packet with TTL 1"
    for frame in examiner.network.arrived(since, "responder"):
        if is_same(frame.packet, packet):
            examiner.network.received(frame)
            raise NotApplicableError("the gateway forwards a packet with TTL 1, and must report only what it discards")
    return False, f"no Time Exceeded for a packet with TTL 1 within {PATIENCE_SECONDS:g} s"


@requires("packets that are too big get an ICMP error", (4787, "REQ-13", "MUST", "udp"), flows=Flows(2))
def _examine_refused(examiner: Examiner) -> Finding:
    packet = examiner.flow().datagram(secrets.token_bytes(_DATA_OCTETS), up=True, dont_fragment=True)
    with _narrowed(examiner):
        since = examiner.mark
        seen = provoked(examiner, packet, "too big", "it may not be fragmented")
        _refuse_whole(examiner, since)
    if seen is None:
        return False, f"no ICMP error for a packet above the outside MTU of {_MTU} within {PATIENCE_SECONDS:g} s"
    mtu = seen.message.rest & 0xFFFF
    return True, f"ICMP error with MTU {mtu} from {seen.packet.source} for a packet above the outside MTU of {_MTU}"


def _cut(examiner: Examiner) -> Carried:
    """Send a packet that may be fragmented to a link that is too narrow for it."""
    flow = examiner.flow()
    if flow.inside.address.version == 6:
        raise NotApplicableError("the inside uses IPv6, whose routers fragment nothing")
    with _narrowed(examiner):
        since = examiner.mark
        carried = carry(examiner, flow, _DATA_OCTETS, up=True, note="it may be fragmented")
        _refuse_whole(examiner, since)
    return carried


def _fragments(carried: Carried) -> Finding:
    """Whether fragments are in order, and both in words."""
    offsets = [part.offset for part in carried.packets]
    ordered = offsets == sorted(offsets)
    return ordered, f"{len(offsets)} fragments{'' if ordered else ', out of order'}"


@requires("packets that may be fragmented are", (4787, "REQ-13a", "MUST", "udp"), flows=Flows(2))
def _examine_cut(examiner: Examiner) -> Finding:
    carried = examiner.once(_cut)
    if not carried.packets:
        return False, f"a packet that may be fragmented {carried}"
    return True, _fragments(carried)[1]


@requires("fragments are sent in order", (4787, "REQ-13a-order", "SHOULD", "udp"), flows=Flows(2))
def _examine_order(examiner: Examiner) -> Finding:
    carried = examiner.once(_cut)
    if not carried.packets:
        raise NotSeenError(f"a packet that may be fragmented {carried}")
    return _fragments(carried)


def _narrowed(examiner: Examiner) -> AbstractContextManager[None]:
    if examiner.narrow is None:
        raise NotSeenError("natgauge cannot change the MTU of this gateway's outside link")
    return examiner.narrow(_MTU)


def _refuse_whole(examiner: Examiner, since: int) -> None:
    """Refuse a verdict where the link takes more than the MTU that was set."""
    if any(len(frame.packet.octets()) > _MTU for frame in examiner.network.arrived(since, "responder")):
        raise NotSeenError(f"the gateway's outside link passed more than the MTU of {_MTU} that was set")
