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
#: By chance, all of so many flows keep their parity in one case of 65536.
_TAKEN_FLOWS: Final = 16
#: Both ends of both ranges, without port 0.
_SOURCES: Final = (500, 1023, 1024, 65535)


def _examine_range(examiner: Examiner, transport: Transport) -> RequirementFinding:
    remote = examiner.remote()
    pairs = [
        (port, examiner.open(transport, examiner.endpoint(port=port), remote, "I1").mapped.port) for port in _SOURCES
    ]
    met = all((inside < _WELL_KNOWN) == (outside < _WELL_KNOWN) for inside, outside in pairs)
    return judged(met, ", ".join(f"{inside} became {outside}" for inside, outside in pairs))


def _taken(examiner: Examiner, transport: Transport) -> list[tuple[int, int]]:
    """Return inside and outside ports of flows whose inside port another host uses towards the same remote endpoint."""
    remote, pairs = examiner.remote(), list[tuple[int, int]]()
    for index in range(_TAKEN_FLOWS):
        port = examiner.endpoint().port + index % 2
        examiner.open(transport, examiner.endpoint(0, port), remote, "I1")
        pairs.append((port, examiner.open(transport, examiner.endpoint(1, port), remote, "I2").mapped.port))
    return pairs


def _examine_parity(examiner: Examiner, transport: Transport) -> RequirementFinding:
    """Look at ports that are free, and at ports that another inside host uses."""
    free = examiner.once(ports, transport).pairs
    taken = _taken(examiner, transport) if len(examiner.hosts("initiator")) > 1 else []
    kept, kept_taken = (sum(inside % 2 == outside % 2 for inside, outside in pairs) for pairs in (free, taken))
    words = f"{kept} of {len(free)} flows kept the parity of their port"
    if taken:
        words += f", and {kept_taken} of {len(taken)} while another host used the same port"
    return judged(kept == len(free) and kept_taken == len(taken), words)


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
