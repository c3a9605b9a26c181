# SPDX-License-Identifier: Apache-2.0
"""Ranges, parity and predictability of ports: RFC 4787 sections 4.2.1 and 4.2.2, RFC 6888 section 4."""

from __future__ import annotations

from typing import Final

from natgauge.audits.kit.classes import ports
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Transport
from natgauge.audits.kit.requirement import Requirement, RequirementFinding, judged
from natgauge.audits.kit.undecided import NotApplicableError

_WELL_KNOWN: Final = 1024
#: Both ends of both ranges, without port 0.
_SOURCES: Final = (500, 1023, 1024, 65535)


def _examine_range(examiner: Examiner, transport: Transport) -> RequirementFinding:
    remote = examiner.remote()
    pairs = [
        (port, examiner.open(transport, examiner.endpoint(port=port), remote, "I1").mapped.port) for port in _SOURCES
    ]
    met = all((inside < _WELL_KNOWN) == (outside < _WELL_KNOWN) for inside, outside in pairs)
    return judged(met, ", ".join(f"{inside} became {outside}" for inside, outside in pairs))


def _examine_parity(examiner: Examiner, transport: Transport) -> RequirementFinding:
    seen = examiner.once(ports, transport)
    kept = sum(inside % 2 == outside % 2 for inside, outside in seen.pairs)
    return judged(kept == len(seen.pairs), f"{kept} of {len(seen.pairs)} flows kept the parity of their port")


def _examine_guessing(examiner: Examiner, transport: Transport) -> RequirementFinding:
    seen = examiner.once(ports, transport)
    if seen.entropy is None:
        raise NotApplicableError(f"the gateway keeps the ports that hosts choose ({seen.words})")
    return judged(seen.kind == "random", seen.words)


REQUIREMENTS: Final = (
    Requirement(
        4787, "REQ-3a", "SHOULD", "ports below 1024 and from 1024 on stay in their range", ("udp",), _examine_range
    ),
    Requirement(4787, "REQ-4", "SHOULD", "even ports stay even, odd ports odd", ("udp",), _examine_parity),
    Requirement(
        6888,
        "REQ-15",
        "SHOULD",
        "outside ports are hard to guess",
        ("udp", "tcp"),
        _examine_guessing,
        profiles=frozenset({"cgn", "nat64"}),
    ),
)
