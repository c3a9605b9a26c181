# SPDX-License-Identifier: Apache-2.0
"""TCP connections: opening and reset (RFC 5382 sections 4.2 and 4.3, RFC 7857 section 2.2), and segments of none.

A gateway that tracks TCP connections finds some segments invalid. Linux does not translate such a segment. It forwards
the segment as it is, with its private source address (RFC 1918 section 3), unless a rule drops it (`ct state invalid
drop`).
"""

from __future__ import annotations

import secrets
from functools import partial
from ipaddress import IPv4Address, IPv4Network
from typing import Final, Literal

from natgauge.audits.kit.examiner import Examiner, NotSeenError, UntranslatedError
from natgauge.audits.kit.hosts import Flows
from natgauge.audits.kit.packets import (
    ACK,
    FIN,
    PSH,
    RST,
    SYN,
    Endpoint,
    ErrorMessage,
    Flow,
    Packet,
    SequenceNumber,
    TcpSegment,
    is_tcp,
    make_packet,
)
from natgauge.audits.kit.timers import BELOW
from natgauge.audits.requirements import Finding, requires
from natgauge.words import Address

#: A gateway must not answer an unsolicited SYN for 6 s.
_SILENT_SECONDS: Final = 6.0
#: Bits in which these ports differ from one that a connection has: its own, which may be filtered, and others.
_OTHER_PORTS: Final = (0, 1, 2, 4)
_PRIVATE: Final = tuple(IPv4Network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))
#: Farther away than any window with a usual scale factor.
_OUT_OF_WINDOW: Final = 1 << 29
_DATA: Final = b"of no connection"
#: State of a connection in the gateway.
_State = Literal["unknown", "open", "closed"]
#: Name, first part of the requirement, state of the connection, and flags of the segment.
_CASES: Final[tuple[tuple[str, str, _State, int], ...]] = (
    ("mid-stream", "data of an unknown connection", "unknown", PSH | ACK),
    ("ACK", "an ACK of an unknown connection", "unknown", ACK),
    ("SYN-ACK", "a SYN and ACK of an unknown connection", "unknown", SYN | ACK),
    ("FIN", "a FIN of an unknown (expired) connection", "unknown", FIN | ACK),
    ("RST", "a reset of an unknown connection", "unknown", RST),
    ("window", "data out of the window", "open", PSH | ACK),
    ("RST-window", "a reset with a wrong sequence number", "open", RST),
    ("TIME-WAIT", "a SYN for a closed connection", "closed", SYN),
)


@requires("all valid sequences of TCP packets pass", (5382, "REQ-2", "MUST", "tcp"), flows=Flows(2))
def _examine_sequences(examiner: Examiner) -> Finding:
    """Let the inside close first, and then another connection's outside; the other end still has data to send."""
    for turn, up in enumerate((True, False)):
        flow = examiner.flow(turn=turn)
        if not examiner.passes(flow, up=True) or not examiner.passes(flow, up=False):
            return False, f"data over an open connection of {flow.inside} to {flow.remote} did not pass"
        dropped = examiner.close(flow, up=up, half=True)
        if dropped:
            return False, f"{dropped} did not pass"
    changed = "" if flow.up.written == flow.up.seen else "; the gateway changes sequence numbers"
    return True, (
        "handshake, data both ways and both FINs passed, of a connection that the inside closed first, and of one that "
        f"the outside closed first{changed}"
    )


@requires("resets of TCP connections pass", (7857, "2.2-translated", "MUST", "tcp"), flows=Flows(3))
def _examine_reset(examiner: Examiner) -> Finding:
    passed = [examiner.sends(examiner.flow(), RST | ACK, up=up) is not None for up in (True, False)]
    words = ["passed" if one else "was dropped" for one in passed]
    return all(passed), f"a reset from inside {words[0]}, and one from outside {words[1]}"


@requires("simultaneous open passes", (5382, "REQ-2a", "MUST", "tcp"), flows=Flows(2))
def _examine_simultaneous(examiner: Examiner) -> Finding:
    """Both ends send SYN, then both send SYN and ACK (RFC 9293 figure 7)."""
    flow = examiner.open(examiner.endpoint(), examiner.remote())
    if examiner.syn(flow, SYN) is None:
        return False, "the SYN of the outside host was dropped"
    for up, name in ((True, "inside"), (False, "outside")):
        if not examiner.sends(flow, SYN | ACK, up=up, back=1):
            return False, f"the SYN and ACK of the {name} did not pass"
    passed = examiner.passes(flow, up=True) and examiner.passes(flow, up=False)
    return passed, f"data {'passed' if passed else 'did not pass'} after SYN, SYN, SYN and ACK, SYN and ACK"


@requires("no answer to an unsolicited SYN for 6 s", (5382, "REQ-4", "MUST", "tcp"), flows=Flows(2))
def _examine_unsolicited(examiner: Examiner) -> Finding:
    """Send a SYN to several ports that no connection has: one can be lost, and another host's connection can have one.

    An answer that comes after the six seconds, or that is read then because the host stood still, breaks no rule.
    """
    known, network = examiner.flow(), examiner.network
    sources = [examiner.stranger(1) for _ in _OTHER_PORTS]
    since, began = examiner.mark, network.now()
    for source, bits in zip(sources, _OTHER_PORTS, strict=True):
        target = Endpoint(known.mapped.address, known.mapped.port ^ bits)
        examiner.send(make_packet(source, target, TcpSegment(SYN, 1)), up=False, note="unsolicited")

    def answers(packet: Packet) -> bool:
        if isinstance(packet.segment, ErrorMessage):
            return packet.destination == sources[0].address
        return isinstance(packet.segment, TcpSegment) and packet.receiver in sources

    answer = network.wait("responder", answers, _SILENT_SECONDS, since=since)
    seconds = network.now() - began
    if answer is None or seconds >= _SILENT_SECONDS * BELOW:
        delivered = {frame.packet.sender for frame in network.arrived(since, "initiator")}
        if delivered.issuperset(examiner.written(source) for source in sources):
            raise NotSeenError("each unsolicited SYN was delivered to an inside host")
        examiner.control()
        return True, f"no answer to an unsolicited SYN for {_SILENT_SECONDS:g} s"
    seen = answer.packet.segment
    reset = isinstance(seen, TcpSegment) and bool(seen.flags & RST)
    what = "a reset" if reset else "an ICMP error" if isinstance(seen, ErrorMessage) else "a segment"
    return False, f"{what} from {answer.packet.source} after {seconds:.2f} s"


def _stray_segment(examiner: Examiner, state: _State, flags: int) -> tuple[Flow, Packet]:
    """Return a segment that does not belong to its connection, whose state in the gateway is this one."""
    if state == "unknown":
        up, down = (SequenceNumber(number, number) for number in (1 + secrets.randbelow(2**31) for _ in range(2)))
        inside, remote = examiner.endpoint(), examiner.remote()
        flow = Flow("tcp", inside, remote, examiner.written(remote), inside, up=up, down=down)
    else:
        flow = examiner.flow("tcp")
    if state == "closed":
        examiner.close(flow)
    back = 0 if state == "unknown" else -_OUT_OF_WINDOW
    return flow, flow.tcp(flags, up=True, back=back, data=_DATA if flags & PSH else b"")


def _examine_stray(state: _State, flags: int, words: str, examiner: Examiner) -> Finding:
    try:
        outside = examiner.once(_outside)
    except UntranslatedError as error:
        # All segments leave so, whatever their state.
        return False, str(error)
    flow, packet = _stray_segment(examiner, state, flags)
    # A segment that leaves from a private address is a leak whatever its checksum.
    with examiner.network.damaged_too():
        frame = examiner.deliver(packet, up=True, wanted=lambda seen: is_tcp(seen, flow.remote, flags), note=words)
    if frame is None:
        return True, f"{words} was dropped"
    source = frame.packet.source
    leaks = source == flow.inside.address or (_is_private(source) and not _is_private(outside))
    return not leaks, f"{words} left from {frame.packet.sender}"


def _outside(examiner: Examiner) -> Address:
    return examiner.flow("tcp").mapped.address


def _is_private(address: Address) -> bool:
    return isinstance(address, IPv4Address) and any(address in network for network in _PRIVATE)


for _name, _words, _state, _flags in _CASES:
    # RFC 1918 is older than RFC 2119; its word is "should not".
    requires(
        f"{_words} does not leave from a private address",
        (1918, f"3-{_name}", "SHOULD", "tcp"),
        flows=Flows(3),
        needs_forwarding=False,
    )(partial(_examine_stray, _state, _flags, _words))
