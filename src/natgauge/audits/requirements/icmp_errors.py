# SPDX-License-Identifier: Apache-2.0
"""ICMP errors from both sides: RFC 4787 section 8, RFC 5382 sections 7.4 and 7.5, RFC 5508 sections 4.2 and 5."""

from __future__ import annotations

from typing import Final

from natgauge.audits.kit.errors import ERROR_KINDS, ErrorKind, error_down, error_up
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Transport
from natgauge.audits.kit.requirement import Requirement, RequirementFinding, fails, judged, meets


def _faults(examiner: Examiner, transport: Transport) -> dict[ErrorKind, str]:
    """Return what is wrong with each kind of error at the inside; nothing where all is right."""
    found: dict[ErrorKind, str] = {}
    for kind in ERROR_KINDS:
        flow = examiner.flow(transport)
        seen = error_down(examiner, flow, kind)
        if seen is None:
            found[kind] = "was dropped"
        elif seen.source != flow.inside:
            found[kind] = f"quotes the source {seen.source} instead of {flow.inside}"
        elif seen.packet.destination != flow.inside.address:
            found[kind] = f"went to {seen.packet.destination} instead of {flow.inside.address}"
        elif not seen.numbers_kept:
            found[kind] = "has another type or code"
    return found


def _examine(examiner: Examiner, transport: Transport) -> RequirementFinding:
    return _judged(examiner.once(_faults, transport), ERROR_KINDS)


def _examine_unreachable(examiner: Examiner, transport: Transport) -> RequirementFinding:
    return _judged(examiner.once(_faults, transport), ("port unreachable", "host unreachable"))


def _judged(faults: dict[ErrorKind, str], kinds: tuple[ErrorKind, ...]) -> RequirementFinding:
    wrong = [f"{kind} {faults[kind]}" for kind in kinds if kind in faults]
    return judged(
        not wrong, "; ".join(wrong) or f"delivered with the inner packet as the host sent it: {', '.join(kinds)}"
    )


def _examine_source(examiner: Examiner, transport: Transport) -> RequirementFinding:
    flow = examiner.flow(transport)
    third = examiner.host(1, "responder")
    seen = error_down(examiner, flow, "host unreachable", sender=third, words=" as a router would")
    words = "was dropped" if seen is None else "was delivered"
    return judged(seen is not None, f"an ICMP error from another address than the remote host's {words}")


def _examine_inside(examiner: Examiner, transport: Transport) -> RequirementFinding:
    flow = examiner.flow(transport)
    seen = error_up(examiner, flow, "port unreachable")
    if seen is None:
        return fails("an ICMP error of the inside host was dropped")
    if seen.destination != flow.mapped:
        return fails(f"it quotes the destination {seen.destination} instead of {flow.mapped}")
    if seen.packet.source != flow.mapped.address:
        return fails(f"it comes from {seen.packet.source} instead of {flow.mapped.address}")
    return judged(seen.numbers_kept, f"delivered from {seen.packet.source} with the quoted destination {flow.mapped}")


def _examine_kept(examiner: Examiner, transport: Transport) -> RequirementFinding:
    ended = []
    for kind in ERROR_KINDS:
        flow = examiner.flow(transport)
        error_down(examiner, flow, kind)
        if not examiner.passes(flow, up=False, name="S1"):
            ended.append(kind)
    if ended:
        return fails(f"frames from outside stopped after the ICMP error {', '.join(ended)}")
    return meets(f"the mapping stayed after each ICMP error: {', '.join(ERROR_KINDS)}")


_KEPT: Final = "ICMP errors do not end a mapping"
_WHOLE: Final = "ICMP errors from outside arrive with the quoted packet as the host sent it"
_INSIDE: Final = "ICMP errors from the inside arrive with the quoted packet as the outside sent it"
_UNREACHABLE: Final = "ICMP Destination Unreachable is translated"
REQUIREMENTS: Final = (
    Requirement(4787, "REQ-12", "MUST", _KEPT, ("udp",), _examine_kept),
    Requirement(4787, "REQ-12a", "SHOULD", "ICMP errors of any source are let through", ("udp",), _examine_source),
    Requirement(4787, "REQ-12b", "SHOULD", _UNREACHABLE, ("udp",), _examine_unreachable),
    Requirement(5382, "REQ-9", "SHOULD", _UNREACHABLE, ("tcp",), _examine_unreachable),
    Requirement(5382, "REQ-10", "MUST", _KEPT, ("tcp",), _examine_kept),
    Requirement(5508, "REQ-4", "MUST", _WHOLE, ("udp", "tcp", "icmp"), _examine),
    Requirement(5508, "REQ-5", "MUST", _INSIDE, ("udp", "tcp"), _examine_inside),
)
