# SPDX-License-Identifier: Apache-2.0
"""Ranges, parity and predictability of ports: RFC 4787 section 4.2, RFC 6888 section 5, RFC 7857 section 9."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from natgauge.audits.kit.classes import OVERLOADING_FLOWS, PORT_FLOWS, are_random, entropy_of, ports
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.hosts import Flows
from natgauge.audits.kit.observations import AloneError, NotApplicableError, NotSeenError
from natgauge.audits.kit.packets import Endpoint
from natgauge.audits.kit.requirement import CGN, NAT64, Finding, requires
from natgauge.audits.kit.rivals import compete

_WELL_KNOWN: Final = 1024
#: So many changed ports show whether they are random. With them, an examination opens fewer flows than a host may have.
_TAKEN_FLOWS: Final = 48
#: Flows of an examination that looks at ports that are free, and at ports that another host uses.
_FREE_AND_TAKEN: Final = Flows(PORT_FLOWS + _TAKEN_FLOWS + OVERLOADING_FLOWS)
#: Flows of each of two hosts: by chance, all ports of the one are above those of the other in one case of 10^8.
_HOST_FLOWS: Final = 16
#: Ports in a row that may be the block of one host.
_BLOCK: Final = 4096
#: Both ends of both ranges, without port 0.
_SOURCES: Final = (500, 1023, 1024, 65535)
#: Remote endpoints of flows that show blocks of ports: a gateway can choose ports by them.
_REMOTES: Final = 4
_ONLY_FREE: Final = "only ports were examined that no other host used"


@requires("ports stay below 1024, or from 1024 on", (4787, "REQ-3a", "SHOULD", "udp"), flows=Flows(len(_SOURCES)))
def _examine_range(examiner: Examiner) -> Finding:
    """Look at ports that are free, and at those that were kept while another inside host asks for them."""
    remote, is_alone = examiner.remote(), len(examiner.hosts("initiator")) == 1
    flows = [examiner.open(examiner.endpoint(port=port), remote) for port in _SOURCES]
    pairs = [(flow.inside.port, flow.mapped.port) for flow in flows]
    kept = [flow for flow in flows if flow.mapped.port == flow.inside.port and _stay(pairs)]
    for flow in kept if not is_alone else ():
        try:
            pairs.append((flow.inside.port, compete(examiner, flow, remote).mapped.port))
        except AloneError:
            is_alone = True
    words = ", ".join(f"{inside} became {outside}" for inside, outside in pairs)
    return _stay(pairs), f"{words}; {_ONLY_FREE}" if kept and is_alone else words


def _stay(pairs: Sequence[tuple[int, int]]) -> bool:
    return all((inside < _WELL_KNOWN) == (outside < _WELL_KNOWN) for inside, outside in pairs)


def _free(examiner: Examiner) -> Sequence[tuple[int, int]]:
    return examiner.once(ports).pairs


def _taken(examiner: Examiner) -> list[tuple[int, int]]:
    """Return inside and outside ports of flows whose inside port another host uses towards the same remote endpoint."""
    remote, pairs = examiner.remote(), list[tuple[int, int]]()
    for index in range(_TAKEN_FLOWS):
        port = examiner.endpoint().port + index % 2
        flow = examiner.open(examiner.endpoint(0, port), remote)
        pairs.append((port, compete(examiner, flow, remote).mapped.port))
    return pairs


@requires("even ports stay even, odd ports odd", (4787, "REQ-4", "SHOULD", "udp"), flows=_FREE_AND_TAKEN)
def _examine_parity(examiner: Examiner) -> Finding:
    """Look at ports that are free, and at ports that another inside host uses."""
    words = list[str]()
    for function, when in ((_free, ""), (_taken, " while another host used the same port")):
        pairs = examiner.once(function)
        kept = sum(inside % 2 == outside % 2 for inside, outside in pairs)
        words.append(f"{kept} of {len(pairs)} flows kept the parity of their port{when}")
        if kept < len(pairs):
            return False, "; ".join(words)
    return True, "; ".join(words)


def _hard_to_guess(pairs: Sequence[tuple[int, int]], words: str) -> Finding:
    are = are_random(pairs)
    if are is None:
        raise NotSeenError(f"{len(pairs)} flows do not show whether ports are random ({words})")
    return are, words


@requires(
    "outside ports are hard to guess",
    (6888, "REQ-15", "SHOULD", "udp", "tcp"),
    flows=Flows(PORT_FLOWS + OVERLOADING_FLOWS),
    profiles=CGN | NAT64,
)
def _examine_guessing(examiner: Examiner) -> Finding:
    seen = examiner.once(ports)
    if seen.entropy is None:
        raise NotApplicableError(f"the gateway keeps the ports that hosts choose ({seen.words})")
    return _hard_to_guess(seen.pairs, seen.words)


@requires(
    "outside ports are hard to guess where they are not kept",
    (7857, "9", "SHOULD", "udp", "tcp"),
    flows=_FREE_AND_TAKEN,
)
def _examine_obscurity(examiner: Examiner) -> Finding:
    """A gateway that keeps ports has to hide only those that it must change (RFC 6056 section 4)."""
    if examiner.once(ports).entropy is not None:
        return _examine_guessing(examiner)
    changed = [pair for pair in examiner.once(_taken) if pair[0] != pair[1]]
    if len(changed) < _TAKEN_FLOWS // 2:
        raise NotApplicableError("the gateway keeps all ports that hosts choose")
    words = f"{len(changed)} ports that another host used became others, with"
    return _hard_to_guess(changed, f"{words} {entropy_of(changed):.1f} bits of entropy")


@requires(
    "ports are assigned so that logs are small",
    (6888, "REQ-14", "SHOULD", "udp"),
    flows=Flows(_HOST_FLOWS + 1),
    profiles=CGN,
)
def _examine_log(examiner: Examiner) -> Finding:
    """Look for a block of ports for each host: a line of a log for the block stands for all of its mappings."""
    outside = len(examiner.hosts("responder"))
    remotes = [examiner.remote(turn % outside) for turn in range(_REMOTES)]
    first = examiner.open(examiner.endpoint(), remotes[0])
    hosts = first.inside.address, compete(examiner, first, remotes[0]).inside.address
    seen: tuple[list[Endpoint], list[Endpoint]] = [], []
    for index in range(2 * _HOST_FLOWS):
        inside = Endpoint(hosts[index % 2], examiner.endpoint().port)
        seen[index % 2].append(examiner.open(inside, remotes[index // 2 % _REMOTES]).mapped)
    if len({end.address for ends in seen for end in ends}) > 1:
        raise NotSeenError("the flows of two hosts had several outside addresses, so blocks of ports do not show")
    (low, high), (other_low, other_high) = ((min(ends), max(ends)) for ends in seen)
    sizes = [max(ends).port - min(ends).port for ends in seen]
    if max(sizes) >= _BLOCK or not (high < other_low or other_high < low):
        raise NotSeenError("hosts have no blocks of ports; how much the gateway logs is in its own log only")
    words = f"each of two hosts had ports in a block of its own, to {_REMOTES} remote endpoints"
    return True, f"{words}: {low} to {high}, and {other_low} to {other_high}"
