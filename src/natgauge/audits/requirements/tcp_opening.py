# SPDX-License-Identifier: Apache-2.0
"""Opening and reset of TCP connections: RFC 5382 sections 4.2 and 4.3, RFC 7857 section 2.2."""

from __future__ import annotations

from typing import Final

from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Endpoint, SequenceNumber, Transport, destination_of, number_after_syn
from natgauge.audits.kit.packets import ACK, RST, SYN, ErrorMessage, Packet, TcpSegment, read_segment
from natgauge.audits.kit.requirement import Requirement, RequirementFinding, fails, judged, meets
from natgauge.audits.kit.undecided import NotSeenError

#: A gateway must not answer an unsolicited SYN for 6 s.
_SILENT_SECONDS: Final = 6.0


def _examine_sequences(examiner: Examiner, transport: Transport) -> RequirementFinding:
    flow = examiner.flow(transport)
    if not examiner.passes(flow, up=True, name="I1") or not examiner.passes(flow, up=False, name="S1"):
        return fails("data over an open connection did not pass")
    dropped = examiner.close(flow, named=True)
    if dropped:
        return fails(f"{dropped} did not pass")
    changed = "" if flow.up.written == flow.up.seen else "; the gateway changes sequence numbers"
    return meets(f"handshake, data both ways and both FINs passed{changed}")


def _examine_reset(examiner: Examiner, transport: Transport) -> RequirementFinding:
    passed = [
        examiner.sends(examiner.flow(transport), RST | ACK, up=up, name=f"a reset of {name}") is not None
        for up, name in ((True, "I1"), (False, "S1"))
    ]
    words = ["passed" if one else "was dropped" for one in passed]
    return judged(all(passed), f"a reset from inside {words[0]}, and one from outside {words[1]}")


def _examine_simultaneous(examiner: Examiner, transport: Transport) -> RequirementFinding:
    """Both ends send SYN, then both send SYN and ACK (RFC 9293 figure 7)."""
    flow = examiner.open(transport, examiner.endpoint(), examiner.remote(), "I1")
    number = int.from_bytes(examiner.tag()[-4:], "big") % 2**31
    segment = TcpSegment(flow.remote.own.port, flow.mapped.port, SYN, number)

    def send(_tag: bytes) -> None:
        examiner.down(flow.remote.own, flow.mapped, segment, "S1 sends SYN, too")

    def wanted(packet: Packet, _tag: bytes) -> bool:
        seen = read_segment(packet)
        return isinstance(seen, TcpSegment) and seen.flags == SYN and destination_of(packet) == flow.inside

    arrival = examiner.delivered(send, "initiator", wanted, "the gateway delivers the SYN")
    if arrival is None:
        return fails("the SYN of the outside host was dropped")
    flow.down = SequenceNumber(number + 1, number_after_syn(arrival.packet))
    for up, name in ((True, "I1"), (False, "S1")):
        if not examiner.sends(flow, SYN | ACK, up=up, name=f"SYN and ACK of {name}", back=1):
            return fails(f"the SYN and ACK of {name} did not pass")
    passed = examiner.passes(flow, up=True, name="I1") and examiner.passes(flow, up=False, name="S1")
    return judged(passed, f"data {'passed' if passed else 'did not pass'} after SYN, SYN, SYN and ACK, SYN and ACK")


def _examine_unsolicited(examiner: Examiner, transport: Transport) -> RequirementFinding:
    known = examiner.flow(transport)
    source = examiner.remote(1).own
    target = Endpoint(known.mapped.address, known.mapped.port ^ 1)
    since, began = examiner.mark, examiner.network.now()
    segment = TcpSegment(source.port, target.port, SYN, 1)
    examiner.down(source, target, segment, f"{source} sends an unsolicited SYN to {target}")

    def answers(packet: Packet) -> bool:
        seen = read_segment(packet)
        if isinstance(seen, ErrorMessage):
            return packet.destination == source.address
        return isinstance(seen, TcpSegment) and destination_of(packet) == source

    answer = examiner.network.wait(
        "responder", answers, _SILENT_SECONDS, since=since, sentence="the gateway answers the SYN"
    )
    if answer is None:
        if any(arrival.side == "initiator" for arrival in examiner.network.arrivals[since:]):
            raise NotSeenError("the unsolicited SYN was delivered to an inside host")
        examiner.control()
        return meets(f"no answer to an unsolicited SYN for {_SILENT_SECONDS:g} s")
    seen = read_segment(answer.packet)
    reset = isinstance(seen, TcpSegment) and bool(seen.flags & RST)
    what = "a reset" if reset else "an ICMP error" if isinstance(seen, ErrorMessage) else "a segment"
    return fails(f"{what} from {answer.packet.source} after {answer.seconds - began:.2f} s")


REQUIREMENTS: Final = (
    Requirement(5382, "REQ-2", "MUST", "all valid sequences of TCP packets pass", ("tcp",), _examine_sequences),
    Requirement(5382, "REQ-2a", "MUST", "simultaneous open passes", ("tcp",), _examine_simultaneous),
    Requirement(5382, "REQ-4", "MUST", "no answer to an unsolicited SYN for 6 s", ("tcp",), _examine_unsolicited),
    Requirement(7857, "2.2-translated", "MUST", "resets of TCP connections pass", ("tcp",), _examine_reset),
)
