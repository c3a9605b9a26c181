# SPDX-License-Identifier: Apache-2.0
"""Blocks of outside ports: the arithmetic of RFC 7422 section 2; RFC 6888 section 3 where no block is free."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Final

from natgauge.audits.kit.crowd import Wish, open_all
from natgauge.audits.kit.errors import quoting
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.hosts import HostBlocks
from natgauge.audits.kit.observations import NotApplicableError, NotSeenError
from natgauge.audits.kit.packets import Endpoint
from natgauge.audits.kit.requirement import CGN, NO_FLOWS, Finding, requires
from natgauge.words import Address

#: Mappings that are inverted, of all hosts together.
_MAPPINGS: Final = 60_000
#: Inside ports all over the range: the step has no common divisor with their number.
_FIRST_PORT, _PORTS, _STEP = 1024, 64_512, 389
#: Hosts that are named.
_NAMED: Final = 3
#: Hosts that have a block before the pool is full.
_HOLDERS: Final = 4


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
    words = f"of {total:,} mappings of {len(hosts):,} inside hosts, {len(strays):,} lay outside of the host's block"
    more = f"; {len(faults) - _NAMED} more hosts" if len(faults) > _NAMED else ""
    return not faults, "; ".join([words, *faults[:_NAMED]]) + more


@requires(
    "hosts keep their blocks when none is free for another host",
    (6888, "REQ-11d-blocks", "MUST", "udp"),
    flows=NO_FLOWS,
    profiles=CGN,
    strain=2,
)
def _examine_full_pool(examiner: Examiner) -> Finding:
    """Open a flow of more hosts than there are blocks; those that have a block must not suffer from the others."""
    blocks, hosts = _blocks(examiner, deterministic=False), examiner.every_host
    if len(hosts) <= blocks.number:
        raise NotSeenError(f"there are {blocks.number:,} blocks, the audit has {len(hosts):,} inside hosts")
    holders = [Endpoint(host, examiner.endpoint().port) for host in hosts[-_HOLDERS:]]
    flows = [examiner.established(inside, examiner.remote()) for inside in holders]
    since, remote = examiner.mark, examiner.remote()
    # Hosts of earlier examinations may have reached their own limit.
    fresh = [host for host in hosts[:-_HOLDERS] if not examiner.inside.opened(host)]
    others = [Endpoint(host, examiner.endpoint().port) for host in fresh]
    opened, refused = open_all(examiner, [(inside, remote) for inside in others])
    ends = [inside for inside, _ in refused]
    errors = {
        f"type {error.kind} code {error.code}"
        for frame in examiner.network.arrived(since, "initiator")
        if (error := quoting(frame.packet, ends)) is not None
    }
    kept = sum(examiner.passes(flow, up=False) and examiner.passes(flow, up=True) for flow in flows)
    again, _ = open_all(examiner, [(Endpoint(inside.address, examiner.endpoint().port), remote) for inside in holders])
    served, suffers = f"{len(opened) + len(holders):,} hosts opened a flow", kept < _HOLDERS or len(again) < _HOLDERS
    if not refused and not suffers:
        raise NotSeenError(f"{served}, none was refused")
    answer = f"ICMP errors of {' and '.join(sorted(errors))}" if errors else "no ICMP error"
    return not suffers, (
        f"{served}, the next {len(refused)} were refused and received {answer}; of {_HOLDERS} hosts from before, "
        f"{kept} kept their flow and {len(again)} opened another one"
    )
