# SPDX-License-Identifier: Apache-2.0
"""Pooling of outside addresses, and a gateway without room: RFC 4787 4.1, RFC 5508 6, RFC 6888 3, RFC 7857 4."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from natgauge.audits.kit.crowd import CROWD, OLDER, Crowd, exhausted, open_all
from natgauge.audits.kit.examiner import Examiner, NotApplicableError, NotSeenError
from natgauge.audits.kit.hosts import TEAM, Flows
from natgauge.audits.requirements import CGN, Finding, requires
from natgauge.figure_text import with_noun
from natgauge.words import Address, Transport

#: An arbitrary choice among two addresses is the same for all of so many flows in one case of 2^31.
_FLOWS: Final = 32
_TEXT: Final = "all flows of an inside host have one outside address"
#: Destination Unreachable with the codes of RFC 6888 (host) and RFC 5508 (prohibited); RFC 7915 translates them so.
_HOST_UNREACHABLE: Final = {(3, 1), (1, 0)}
_PROHIBITED: Final = {(3, 13), (1, 1)}
#: Sessions of one mapping.
_SESSIONS: Final = 2048
#: Declares what a carrier-grade NAT without room for another mapping has to do.
_when_full: Final = partial(requires, flows=CROWD, profiles=CGN, strain=2)


def _hosts(examiner: Examiner) -> tuple[Address, ...]:
    """Return the hosts of a team; where blocks are computed, hosts whose blocks may be of different addresses."""
    every = examiner.every_host
    if examiner.blocks is None or not examiner.blocks.sizes.deterministic:
        return examiner.hosts("initiator")
    return every[:: max(1, len(every) // TEAM)][:TEAM]


def _addresses(examiner: Examiner, transport: Transport) -> dict[str, set[str]]:
    """Return the outside addresses of the flows of each inside host.

    The flows come from even and odd ports, and go to all outside hosts in turn.
    """
    remotes, seen = len(examiner.hosts("responder")), dict[str, set[str]]()
    for host in _hosts(examiner):
        own = seen[str(host)] = set()
        for turn in range(_FLOWS):
            inside = replace(examiner.spare() if turn // remotes % 2 else examiner.endpoint(), address=host)
            remote = examiner.remote(turn % remotes, transport=transport, again=True)
            own.add(str(examiner.open(inside, remote, transport).mapped.address))
    return seen


def _compared(examiner: Examiner, *transports: Transport) -> Finding:
    """Compare the outside addresses of each host, which must be one for all of these transports together."""
    every = [examiner.once(_addresses, transport) for transport in transports]
    seen = {host: set().union(*(one[host] for one in every)) for host in every[0]}
    if len(set().union(*seen.values())) == 1:
        number = max(examiner.pool, len(examiner.inside.used))
        if number > 1:
            raise NotSeenError(
                f"all flows of {with_noun(len(seen), 'inside hosts')} had one of {number} outside addresses"
            )
        raise NotApplicableError("all flows of all inside hosts had one outside address")
    words = "; ".join(f"{host} had {', '.join(sorted(outside))}" for host, outside in seen.items())
    to = f"to {len(examiner.hosts('responder'))} remote hosts"
    return all(len(outside) == 1 for outside in seen.values()), f"{_FLOWS} flows each {to}: {words}"


@requires(_TEXT, (4787, "REQ-2", "SHOULD", "udp"), (7857, "4-paired", "SHOULD", "tcp"), flows=Flows(_FLOWS))
def _examine_pooling(examiner: Examiner) -> Finding:
    return _compared(examiner, examiner.transport)


@requires(_TEXT, (6888, "REQ-2", "MUST", "udp", "tcp"), flows=Flows(2 * _FLOWS), profiles=CGN)
def _examine_all(examiner: Examiner) -> Finding:
    return _compared(examiner, *(("udp",) if examiner.transport == "udp" else ("udp", "tcp")))


@requires(
    "a host whose address has no port left gets no second address", (7857, "4", "SHOULD", "udp"), flows=CROWD, strain=2
)
def _examine_full(examiner: Examiner) -> Finding:
    if not _examine_pooling(examiner)[0]:
        raise NotApplicableError("the gateway does not give each inside host one outside address")
    seen = examiner.once(exhausted)
    number = len(seen.addresses)
    if number == 1 and not _refused(examiner).is_full:
        raise NotSeenError(f"{seen.words}; nothing shows that its outside address had no port left")
    return number == 1, f"{seen.words}; the flows of the one host had {number} outside addresses"


def _refused(examiner: Examiner) -> Crowd:
    seen = examiner.once(exhausted)
    if not seen.refused:
        raise NotSeenError(f"{seen.words}; none was refused")
    return seen


@_when_full("the outside ports of a host can be limited", (6888, "REQ-4", "MUST", "udp"))
def _examine_limit(examiner: Examiner) -> Finding:
    seen = _refused(examiner)
    if not seen.is_fair:
        raise NotSeenError(f"{seen.words}; a limit for each host can be a setting that this gateway does not use")
    if not seen.is_lasting:
        raise NotSeenError(
            f"{seen.words}; the one host opened more flows later: it had reached no limit, or flows had expired"
        )
    if not seen.is_shared:
        raise NotSeenError(f"{seen.words} at another outside address, which the flows of the one host do not use up")
    opened, _ = open_all(examiner, seen.elsewhere(examiner))
    if not set(opened.values()) <= set(seen.mapped.values()):
        raise NotSeenError(f"{seen.words}; the one host still got other outside ports to other remote endpoints")
    outside = len(examiner.hosts("responder"))
    return True, f"{seen.words}; the one host got no other outside port to {outside} remote hosts, either"


@_when_full("packets without a mapping are dropped", (6888, "REQ-11a", "MUST", "udp"))
def _examine_dropped(examiner: Examiner) -> Finding:
    seen = _refused(examiner)
    words = "sent on untranslated" if seen.leaked else "dropped"
    return not seen.leaked, f"{seen.words}; refused frames were {words}"


@_when_full("existing mappings stay when there is no room", (6888, "REQ-11d", "MUST", "udp"))
def _examine_kept(examiner: Examiner) -> Finding:
    seen = examiner.once(exhausted)
    words = f"{seen.words}; {seen.kept} of {OLDER} flows from before still passed"
    if seen.evicted:
        words += f", and {seen.evicted} of the first {OLDER} of the one host were gone before their time-out"
    return not seen.lost, words


@_when_full("a host without a mapping gets ICMP code 1", (6888, "REQ-11b", "SHOULD", "udp"))
def _examine_host_unreachable(examiner: Examiner) -> Finding:
    return _answered(examiner, _HOST_UNREACHABLE)


@requires("a host without a mapping gets ICMP code 13", (5508, "REQ-8", "SHOULD", "udp"), flows=CROWD, strain=2)
def _examine_prohibited(examiner: Examiner) -> Finding:
    """RFC 6888 REQ-11 is another form of this requirement. It prefers code 1, after which TCP tries again."""
    met, words = _answered(examiner, _PROHIBITED)
    if not met and _answered(examiner, _HOST_UNREACHABLE)[0]:
        is_ipv4 = (3, 1) in examiner.once(exhausted).errors
        which = "which" if is_ipv4 else "which is code 1 as RFC 7915 translates it, which"
        raise NotApplicableError(f"{words}, {which} RFC 6888 REQ-11 prefers to code 13")
    return met, words


def _answered(examiner: Examiner, wanted: set[tuple[int, int]]) -> Finding:
    seen = _refused(examiner)
    errors = ", ".join(f"a type {kind} code {code}" for kind, code in sorted(seen.errors))
    return bool(seen.errors & wanted), f"a host that was refused received {errors or 'no'} ICMP error"


@requires(
    "the state of a mapping and of a host can be limited",
    (6888, "REQ-5", "SHOULD", "udp"),
    flows=Flows(_SESSIONS + 1, are_many=True),
    profiles=CGN,
    strain=1,
)
def _examine_sessions(examiner: Examiner) -> Finding:
    examiner.relieve("udp", for_many=True)
    inside = examiner.flow().inside
    opened, refused = open_all(examiner, [(inside, examiner.remote()) for _ in range(_SESSIONS)])
    if not refused:
        raise NotSeenError(f"{_SESSIONS} sessions of one inside endpoint were opened; no limit was reached")
    words = f"after {len(opened)} sessions of one inside endpoint, one more was refused"
    outside = examiner.hosts("responder")[1:]
    if open_all(examiner, [(inside, examiner.remote(1 + index)) for index in range(len(outside))])[0]:
        raise NotSeenError(f"{words}, but not to another remote host")
    words += f", also to {', '.join(map(str, outside))}" if outside else ""
    if not open_all(examiner, [(examiner.endpoint(1), examiner.remote(again=True))])[0]:
        raise NotSeenError(f"{words}, and so was another host: the gateway may have no room")
    return True, f"{words}, while another host opened a flow"
