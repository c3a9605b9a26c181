# SPDX-License-Identifier: Apache-2.0
"""ICMP errors from outside: RFC 4787 section 8, RFC 5382 section 7.4, RFC 5508 section 4.2."""

from __future__ import annotations

from typing import Final

from natgauge.audits.kit.errors import ERROR_KINDS, ErrorKind, error_down
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Transport
from natgauge.audits.kit.requirement import Requirement, RequirementFinding, judged


def _faults(examiner: Examiner, transport: Transport) -> dict[ErrorKind, str]:
    """Return what is wrong with each kind of error at the inside; nothing where all is right."""
    found: dict[ErrorKind, str] = {}
    for kind in ERROR_KINDS:
        flow = examiner.established(transport, examiner.endpoint(), examiner.remote(), "I1")
        seen = error_down(examiner, flow, kind)
        if seen is None:
            found[kind] = "was dropped"
        elif seen.source != flow.inside:
            found[kind] = f"quotes the source {seen.source} instead of {flow.inside}"
        elif seen.outer_destination != flow.inside.address:
            found[kind] = f"went to {seen.outer_destination} instead of {flow.inside.address}"
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
    flow = examiner.established(transport, examiner.endpoint(), examiner.remote(), "I1")
    third = examiner.host(1, "responder")
    seen = error_down(examiner, flow, "host unreachable", sender=third, words=" as a router would")
    words = "was dropped" if seen is None else "was delivered"
    return judged(seen is not None, f"an ICMP error from another address than the remote host's {words}")


_UNREACHABLE: Final = "ICMP Destination Unreachable is translated"
REQUIREMENTS: Final = (
    Requirement(4787, "REQ-12a", "SHOULD", "ICMP errors of any source are let through", ("udp",), _examine_source),
    Requirement(4787, "REQ-12b", "SHOULD", _UNREACHABLE, ("udp",), _examine_unreachable),
    Requirement(5382, "REQ-9", "SHOULD", _UNREACHABLE, ("tcp",), _examine_unreachable),
    Requirement(
        5508,
        "REQ-4",
        "MUST",
        "ICMP errors from outside arrive with the quoted packet as the host sent it",
        ("udp", "tcp", "icmp"),
        _examine,
    ),
)
