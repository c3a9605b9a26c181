# SPDX-License-Identifier: Apache-2.0
"""ICMP errors from both sides: RFC 4787 section 8, RFC 5382 sections 7.4 and 7.5, RFC 5508 sections 4.2 and 5."""

from __future__ import annotations

from typing import Final

from natgauge.audits.kit.errors import ERROR_KINDS, ErrorKind, error_about, pass_error, received, send_error
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.hosts import Flows
from natgauge.audits.kit.requirement import Finding, requires

#: Flows of an examination with an error of each kind.
_OF_EACH_KIND: Final = Flows(len(ERROR_KINDS) + 1)


def _faults(examiner: Examiner) -> dict[ErrorKind, str]:
    """Return what is wrong with each kind of error at the inside; nothing where all is right."""
    found: dict[ErrorKind, str] = {}
    for kind in ERROR_KINDS:
        flow = examiner.flow()
        seen = send_error(examiner, flow, kind)
        if seen is None:
            found[kind] = "was dropped"
        elif seen.source != flow.inside:
            found[kind] = f"quotes the source {seen.source} instead of {flow.inside}"
        elif seen.packet.destination != flow.inside.address:
            found[kind] = f"went to {seen.packet.destination} instead of {flow.inside.address}"
        elif not seen.numbers_kept:
            found[kind] = "has another type or code"
    return found


@requires(
    "ICMP Destination Unreachable is translated",
    (4787, "REQ-12b", "SHOULD", "udp"),
    (5382, "REQ-9", "SHOULD", "tcp"),
    flows=_OF_EACH_KIND,
)
def _examine_unreachable(examiner: Examiner) -> Finding:
    return _examine(examiner, "port unreachable", "host unreachable")


@requires(
    "ICMP errors from outside arrive with the quoted packet as the host sent it",
    (5508, "REQ-4", "MUST", "udp", "tcp", "icmp"),
    flows=_OF_EACH_KIND,
)
def _examine_outside(examiner: Examiner) -> Finding:
    return _examine(examiner, *ERROR_KINDS)


def _examine(examiner: Examiner, *kinds: ErrorKind) -> Finding:
    faults = examiner.once(_faults)
    wrong = [f"{kind} {faults[kind]}" for kind in kinds if kind in faults]
    return not wrong, "; ".join(wrong) or f"delivered with the inner packet as the host sent it: {', '.join(kinds)}"


@requires("ICMP errors of any source are let through", (4787, "REQ-12a", "SHOULD", "udp"), flows=Flows(2))
def _examine_source(examiner: Examiner) -> Finding:
    flow = examiner.flow()
    third = examiner.host(1, "responder")
    error = error_about(received(flow, up=False), third, "host unreachable")
    seen = pass_error(examiner, error, "host unreachable", note="as a router would")
    words = "was dropped" if seen is None else "was delivered"
    return seen is not None, f"an ICMP error from another address than the remote host's {words}"


@requires(
    "ICMP errors from the inside arrive with the quoted packet as the outside sent it",
    (5508, "REQ-5", "MUST", "udp", "tcp"),
    flows=Flows(2),
)
def _examine_inside(examiner: Examiner) -> Finding:
    flow = examiner.flow()
    seen = send_error(examiner, flow, "port unreachable", up=True)
    if seen is None:
        return False, "an ICMP error of the inside host was dropped"
    if seen.destination != flow.mapped:
        return False, f"it quotes the destination {seen.destination} instead of {flow.mapped}"
    if seen.packet.source != flow.mapped.address:
        return False, f"it comes from {seen.packet.source} instead of {flow.mapped.address}"
    return seen.numbers_kept, f"delivered from {seen.packet.source} with the quoted destination {flow.mapped}"


@requires(
    "ICMP errors do not end a mapping",
    (4787, "REQ-12", "MUST", "udp"),
    (5382, "REQ-10", "MUST", "tcp"),
    flows=_OF_EACH_KIND,
)
def _examine_kept(examiner: Examiner) -> Finding:
    ended = []
    for kind in ERROR_KINDS:
        flow = examiner.flow()
        send_error(examiner, flow, kind)
        if not examiner.passes(flow, up=False):
            ended.append(kind)
    if ended:
        return False, f"frames from outside stopped after the ICMP error {', '.join(ended)}"
    return True, f"the mapping stayed after each ICMP error: {', '.join(ERROR_KINDS)}"
