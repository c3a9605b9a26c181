# SPDX-License-Identifier: Apache-2.0
"""Mappings and filters of one protocol serve no other: RFC 7857 sections 5 and 6."""

from __future__ import annotations

from typing import Final

from natgauge.audits.kit.classes import filtering
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.hosts import Flows
from natgauge.audits.kit.packets import Endpoint
from natgauge.audits.kit.requirement import Finding, requires
from natgauge.audits.kit.rivals import compete
from natgauge.audits.kit.unseen import NotSeenError

#: By chance, UDP and TCP have one port in all of these tries in less than one case of 10^6, with 1000 ports for a host.
_TRIES: Final = 2


@requires("UDP and TCP of one inside endpoint have two mappings", (7857, "5", "SHOULD", "udp"), flows=Flows(2 * _TRIES))
def _examine_mapping(examiner: Examiner) -> Finding:
    """Open UDP and TCP from one inside endpoint, whose port another host has already for UDP to this remote endpoint.

    A gateway that keeps ports must then change the port for UDP. It has no reason to change the port for TCP, unless
    both protocols have one mapping.
    """
    seen: list[tuple[Endpoint, Endpoint]] = []
    for _ in range(_TRIES):
        inside, remote = examiner.endpoint(), examiner.remote()
        flow = examiner.open(inside, remote, "udp")
        rival = compete(examiner, flow, remote)
        udp, tcp = rival.mapped, examiner.open(rival.inside, remote, "tcp").mapped
        if udp.port == inside.port:
            raise NotSeenError("UDP kept a port that another host had, so TCP would have the same port in any case")
        seen.append((udp, tcp))
    shared = all(udp == tcp for udp, tcp in seen)
    return not shared, f"one inside endpoint had {seen[-1][0]} for UDP and {seen[-1][1]} for TCP"


@requires("mappings and filters of UDP admit no TCP", (7857, "6", "SHOULD", "tcp"), flows=Flows(4))
def _examine_filter(examiner: Examiner) -> Finding:
    """Let a SYN try to enter where only UDP has gone out.

    If all outside endpoints may enter a mapping, the SYN goes to the mapping of UDP. Otherwise it goes to a mapping of
    TCP, from an outside endpoint that only UDP admitted.
    """
    if examiner.once(filtering) == "endpoint-independent":
        flow = examiner.flow("udp")
        source, where = flow.remote, "to the outside endpoint of a UDP mapping"
    else:
        inside, admitted = examiner.endpoint(), examiner.remote(0)
        examiner.established(inside, admitted, "udp")
        flow = examiner.established(inside, examiner.remote(1), "tcp")
        source, where = admitted, "from an outside endpoint that UDP had admitted"
    entered = examiner.enters(source, flow.mapped, flow.inside)
    return not entered, f"a SYN {where} was {'delivered' if entered else 'dropped'}"
