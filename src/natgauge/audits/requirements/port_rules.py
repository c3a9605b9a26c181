# SPDX-License-Identifier: Apache-2.0
"""Ranges, parity, predictability and blocks of ports.

RFC 4787 section 4.2, RFC 6888 sections 3 and 5, RFC 7422 section 2, RFC 7857 section 9.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from natgauge.audits.kit.classes import OVERLOADING_FLOWS, PORT_FLOWS, are_random, entropy_of, filtering, ports
from natgauge.audits.kit.crowd import Wish, may_have_expired, open_all
from natgauge.audits.kit.datagrams import quoting
from natgauge.audits.kit.examiner import AloneError, Examiner, NotApplicableError, NotSeenError, compete
from natgauge.audits.kit.hosts import Flows, HostBlocks
from natgauge.audits.kit.packets import Endpoint, Flow
from natgauge.audits.kit.timers import least_udp
from natgauge.audits.requirements import CGN, NAT64, NO_FLOWS, Finding, requires
from natgauge.figure_text import with_noun
from natgauge.words import Address

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


#: Mappings that are inverted, of all hosts together.
_MAPPINGS: Final = 60_000
#: Inside ports all over the range: the step has no common divisor with their number.
_FIRST_PORT, _PORTS, _STEP = 1024, 64_512, 389
#: Hosts that are named.
_NAMED: Final = 3
#: Hosts that have a block before the pool is full.
_HOLDERS: Final = 4
#: RFC 6888 REQ-8: for so long a port is not given again.
_HELD_SECONDS: Final = 120.0
#: Declares what a gateway with blocks of ports has to do.
_of_blocks: Final = partial(requires, flows=NO_FLOWS, profiles=CGN, strain=2)


def _blocks(examiner: Examiner, *, deterministic: bool) -> HostBlocks:
    blocks = examiner.blocks
    if blocks is None or blocks.sizes.deterministic != deterministic:
        kind = "computed blocks" if deterministic else "blocks that hosts get on demand"
        raise NotApplicableError(f"the recipe names no {kind} (`limits.port_blocks`)")
    return blocks


# The RFC describes what others agree on and requires nothing; the recipe says that the gateway does it.
@_of_blocks("each inside host has the outside ports that the arithmetic gives", (7422, "2", "SHOULD", "udp"))
def _examine_map(examiner: Examiner) -> Finding:
    """Compare the outside endpoints of many flows of all hosts with the block of each host."""
    blocks, hosts = _blocks(examiner, deterministic=True), examiner.every_host
    each = math.ceil(min(_MAPPINGS, examiner.mappings) / len(hosts))
    # Half of a block stays free: a gateway that looks for a free port gives up when there are few.
    remotes = [examiner.remote() for _ in range(0, each, max(1, blocks.sizes.size // 2))]
    total, strays, idle = 0, dict[Wish, Endpoint](), list[str]()
    for host in hosts:
        known = examiner.inside.opened(host)
        ports = (_FIRST_PORT + number * _STEP % _PORTS for number in range(each))
        wishes = [(Endpoint(host, port), remotes[number % len(remotes)]) for number, port in enumerate(ports)]
        opened, _ = open_all(examiner, wishes)
        total += len(opened)
        strays.update({wish: mapped for wish, mapped in opened.items() if not blocks.has(host, mapped)})
        # A host that was served before may have reached its limit.
        if not opened and not known:
            idle.append(f"{host} opened no flow")
    first: dict[Address, Wish] = {}
    for wish in strays:
        first.setdefault(wish[0].address, wish)
    for wish in [*first.values()][:_NAMED]:
        # Once more for the evidence.
        with suppress(NotSeenError):
            examiner.open(*wish)
    faults = [f"{host} had {strays[wish]}, its block is {blocks.of(host)}" for host, wish in first.items()] + idle
    inside = with_noun(f"{len(hosts):,}", "inside hosts")
    if not total and not faults:
        raise NotSeenError(f"none of {inside} served before opened another flow")
    words = f"of {with_noun(f'{total:,}', 'mappings')} of {inside}, {len(strays):,} lay outside of the host's block"
    more = f"; {len(faults) - _NAMED} more hosts" if len(faults) > _NAMED else ""
    return not faults, "; ".join([words, *faults[:_NAMED]]) + more


@dataclass(frozen=True, slots=True)
class _Full:
    """A gateway without a free block: flows of hosts that had one before others came, and of others that got none.

    The others came after `since` frames, `at` a time in s, and got the outside endpoints `given`.
    """

    flows: tuple[Flow, ...]
    refused: tuple[Wish, ...]
    since: int
    at: float
    given: tuple[Endpoint, ...]

    @property
    def opened(self) -> int:
        """How many hosts of the others got a block."""
        return len(self.given)


def _fill(examiner: Examiner) -> _Full:
    """Open a flow of more hosts than there are blocks."""
    blocks, hosts = _blocks(examiner, deterministic=False), examiner.every_host
    if len(hosts) <= blocks.number:
        raise NotSeenError(
            f"there are {blocks.number:,} blocks, the audit has {with_noun(f'{len(hosts):,}', 'inside hosts')}"
        )
    holders = [Endpoint(host, examiner.endpoint().port) for host in hosts[-_HOLDERS:]]
    flows = tuple(examiner.established(inside, examiner.remote(again=True)) for inside in holders)
    since, remote, at = examiner.mark, examiner.remote(), examiner.network.now()
    # Hosts of earlier examinations may have reached their own limit.
    others = hosts[:-_HOLDERS]
    fresh = [host for host in others if not examiner.inside.opened(host)] or others
    opened, refused = open_all(examiner, [(Endpoint(host, examiner.endpoint().port), remote) for host in fresh])
    return _Full(flows, tuple(refused), since, at, tuple(opened.values()))


@_of_blocks("hosts keep their blocks when none is free for another host", (6888, "REQ-11d-blocks", "MUST", "udp"))
def _examine_full_pool(examiner: Examiner) -> Finding:
    """Hosts that have a block must not suffer from others that find none."""
    full = _fill(examiner)
    ends = [inside for inside, _ in full.refused]
    errors = {
        f"type {error.kind} code {error.code}"
        for frame in examiner.network.arrived(full.since, "initiator")
        if (error := quoting(frame.packet, ends)) is not None
    }
    idle = examiner.network.now() - full.at
    kept = sum(examiner.passes(flow, up=False) and examiner.passes(flow, up=True) for flow in full.flows)
    again = _more_of(examiner, full)
    served, suffers = f"{full.opened + _HOLDERS:,} hosts opened a flow", kept < _HOLDERS or again < _HOLDERS
    if not full.refused and not suffers:
        raise NotSeenError(f"{served}, none was refused")
    if suffers and may_have_expired(idle, least_udp(examiner)):
        raise NotSeenError(f"{served}; the flows from before were idle for {idle:.0f} s, so they may have expired")
    answer = f"ICMP errors of {' and '.join(sorted(errors))}" if errors else "no ICMP error"
    return not suffers, (
        f"{served}, the next {len(full.refused)} were refused and received {answer}; of {_HOLDERS} hosts from before, "
        f"{kept} kept their flow and {again} opened another one"
    )


def _more_of(examiner: Examiner, full: _Full) -> int:
    """Open another flow of each host that has a block; how many opened one."""
    remote = examiner.remote()
    ends = [Endpoint(flow.inside.address, examiner.endpoint().port) for flow in full.flows]
    return len(open_all(examiner, [(end, remote) for end in ends])[0])


@_of_blocks(
    "a port block is not given to another host for 120 s after its host's last new flow",
    (6888, "REQ-8-blocks", "SHOULD", "udp"),
)
def _examine_release(examiner: Examiner) -> Finding:
    """Let hosts with a block use their flows, and see when a host that was refused gets a block, and whose.

    A block whose host is not known, from an earlier examination, decides nothing. Ports whose filter depends on the
    remote address may be given again at once (RFC 6888 REQ-8, exception C).
    """
    sizes = _blocks(examiner, deterministic=False).sizes
    filtered = examiner.once(filtering)
    full = _fill(examiner)
    if not full.refused:
        raise NotSeenError(f"{full.opened + _HOLDERS:,} hosts opened a flow, none was refused")
    if not _more_of(examiner, full):
        raise NotSeenError("hosts with a block opened no other flow")

    def block(end: Endpoint) -> tuple[Address, int]:
        return end.address, (end.port - sizes.first_port) // sizes.size

    began, longest = examiner.network.now(), min(examiner.wait, _HELD_SECONDS)
    # The last new flow of a host was no earlier than this.
    new_at = {block(end): full.at for end in full.given} | {block(flow.mapped): began for flow in full.flows}
    left = list(full.refused)
    while left and examiner.network.now() - began < longest:
        # Each flow is used, so that it stays open.
        kept = {block(flow.mapped): flow for flow in full.flows if examiner.passes(flow, up=True)}
        served, _ = open_all(examiner, left)
        now = examiner.network.now()
        left = [wish for wish in left if wish not in served]
        for (inside, _), end in served.items():
            before = new_at.get(block(end))
            if before is None or (seconds := now - before) >= _HELD_SECONDS:
                continue
            used = kept.get(block(end))
            still = f", which {used.inside.address} still used" if used is not None else ""
            words = f"{inside.address} got a block at most {seconds:.0f} s after its last new flow{still}"
            if filtered != "endpoint-independent":
                raise NotApplicableError(f"{words}; ports with filtering that is {filtered} may be given again at once")
            return False, words
    if longest < _HELD_SECONDS:
        raise NotSeenError(f"no block was given again within {longest:g} s; needs a --wait of {_HELD_SECONDS:g} s")
    if not left:
        raise NotSeenError("hosts that had been refused got blocks of hosts whose last flow is not known")
    return True, f"within {longest:g} s no block was given again after its last new flow"
