# SPDX-License-Identifier: Apache-2.0
"""Blocks of outside ports: the arithmetic of RFC 7422 section 2; RFC 6888 section 3 where no block is free."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from natgauge.audits.kit.classes import filtering
from natgauge.audits.kit.crowd import Wish, may_have_expired, open_all
from natgauge.audits.kit.errors import quoting
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Flow
from natgauge.audits.kit.hosts import HostBlocks
from natgauge.audits.kit.observations import NotApplicableError, NotSeenError
from natgauge.audits.kit.packets import Endpoint
from natgauge.audits.kit.requirement import CGN, NO_FLOWS, Finding, requires
from natgauge.audits.kit.timers import least_udp
from natgauge.figure_text import with_noun
from natgauge.words import Address

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


def _blocks(examiner: Examiner, *, deterministic: bool) -> HostBlocks:
    blocks = examiner.blocks
    if blocks is None or blocks.sizes.deterministic != deterministic:
        kind = "computed blocks" if deterministic else "blocks that hosts get on demand"
        raise NotApplicableError(f"the recipe names no {kind} (`limits.port_blocks`)")
    return blocks


@requires(
    # The RFC describes what others agree on and requires nothing; the recipe says that the gateway does it.
    "each inside host has the outside ports that the arithmetic gives",
    (7422, "2", "SHOULD", "udp"),
    flows=NO_FLOWS,
    profiles=CGN,
    strain=2,
)
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

    @property
    def hosts(self) -> tuple[Address, ...]:
        """The hosts of the flows."""
        return tuple(flow.inside.address for flow in self.flows)


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


@requires(
    "hosts keep their blocks when none is free for another host",
    (6888, "REQ-11d-blocks", "MUST", "udp"),
    flows=NO_FLOWS,
    profiles=CGN,
    strain=2,
)
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
    opened, _ = open_all(examiner, [(Endpoint(host, examiner.endpoint().port), remote) for host in full.hosts])
    return len(opened)


@requires(
    "a port block is not given to another host for 120 s after its host's last new flow",
    (6888, "REQ-8-blocks", "SHOULD", "udp"),
    flows=NO_FLOWS,
    profiles=CGN,
    strain=2,
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
