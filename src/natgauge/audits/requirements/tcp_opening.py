# SPDX-License-Identifier: Apache-2.0
"""Opening and reset of TCP connections: RFC 5382 sections 4.2 and 4.3, RFC 7857 section 2.2."""

from __future__ import annotations

from typing import Final

from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.hosts import Flows
from natgauge.audits.kit.packets import ACK, RST, SYN, Endpoint, ErrorMessage, Packet, TcpSegment, make_packet
from natgauge.audits.kit.requirement import Finding, requires
from natgauge.audits.kit.unseen import NotSeenError

#: A gateway must not answer an unsolicited SYN for 6 s.
_SILENT_SECONDS: Final = 6.0


@requires("all valid sequences of TCP packets pass", (5382, "REQ-2", "MUST", "tcp"), flows=Flows(2))
def _examine_sequences(examiner: Examiner) -> Finding:
    flow = examiner.flow()
    if not examiner.passes(flow, up=True) or not examiner.passes(flow, up=False):
        return False, "data over an open connection did not pass"
    dropped = examiner.close(flow)
    if dropped:
        return False, f"{dropped} did not pass"
    changed = "" if flow.up.written == flow.up.seen else "; the gateway changes sequence numbers"
    return True, f"handshake, data both ways and both FINs passed{changed}"


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
    known, network = examiner.flow(), examiner.network
    source = examiner.remote(1)
    target = Endpoint(known.mapped.address, known.mapped.port ^ 1)
    since, began = examiner.mark, network.now()
    examiner.send(make_packet(source, target, TcpSegment(SYN, 1)), up=False, note="unsolicited")

    def answers(packet: Packet) -> bool:
        if isinstance(packet.segment, ErrorMessage):
            return packet.destination == source.address
        return isinstance(packet.segment, TcpSegment) and packet.receiver == source

    answer = network.wait("responder", answers, _SILENT_SECONDS, since=since)
    if answer is None:
        if network.arrived(since, "initiator"):
            raise NotSeenError("the unsolicited SYN was delivered to an inside host")
        examiner.control()
        return True, f"no answer to an unsolicited SYN for {_SILENT_SECONDS:g} s"
    seen = answer.packet.segment
    reset = isinstance(seen, TcpSegment) and bool(seen.flags & RST)
    what = "a reset" if reset else "an ICMP error" if isinstance(seen, ErrorMessage) else "a segment"
    return False, f"{what} from {answer.packet.source} after {network.now() - began:.2f} s"
