# SPDX-License-Identifier: Apache-2.0
"""The cause of a failed trial from its hops and the limit of the device's table; whoever shows it calls this."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from natgauge.causes.cause import FULL, Cause, Certainty
from natgauge.causes.hops import HopCounter, HopLoss, TrialHops
from natgauge.causes.hosts import HostLosses

#: Share of the table's limit at which the table counts as full: per-CPU counters and eviction leave a little room.
FULL_SHARE: Final = 0.999
#: Once it was full, Linux removes connections that are not assured from this share of the limit on (`gc_worker`), and
#: counts none of them; a next trial may feel it.
CLEARED_SHARE: Final = 0.95
#: From this share of the frames on, failed entries are no accident of two cores.
PORTS_SHARE: Final = 0.01
_LARGER: Final = "--table-size, a shorter --udp-timeout"
_NOT_ENTERED: Final = "conntrack insert_failed"
#: Causes by counters that may be a limit for each host: what refuses says nothing of whose connections it counts.
_MAY_LIMIT_HOSTS: Final = frozenset({"rule", "process", "gateway", "not known"})


@dataclass(frozen=True, slots=True)
class TableState:
    """The device's connection tracking table after phase 1, or in a phase 2 that opens connections, too.

    Attributes:
        held: connections that it held, the most that was read; None = not known.
        limit: the most connections that it may hold; None = not known.
        opening: connections that were to be opened while it was read: it may have held as many more a moment later.
        offered: connections that phase 1 offered it, where it was read after that; None = not known.
    """

    held: int | None = None
    limit: int | None = None
    opening: int = 0
    offered: int | None = None

    @property
    def is_full(self) -> bool:
        """Whether the known limit was reached."""
        return self.held is not None and self.limit is not None and self.held >= FULL_SHARE * self.limit

    @property
    def has_room_for_all(self) -> bool:
        """Whether the known limit is enough for all connections that it was offered."""
        return self.offered is not None and self.limit is not None and self.offered <= self.limit

    @property
    def is_cleared(self) -> bool:
        """Whether it was so full that connections may have been removed from it to make room."""
        return self._may_exceed(CLEARED_SHARE) is True

    @property
    def has_room(self) -> bool:
        """Whether the known limit was surely not reached."""
        return self._may_exceed(FULL_SHARE) is False

    @property
    def was_never_full(self) -> bool:
        """Whether it surely was not full before it was read, when Linux may have removed connections again."""
        return self._may_exceed(CLEARED_SHARE) is False

    def _may_exceed(self, share: float) -> bool | None:
        """Whether the table may have reached this share of its limit; None = readings or limit are not known."""
        return None if self.held is None or self.limit is None else self.held + self.opening >= share * self.limit


def cause_of(hops: TrialHops, table: TableState, *, opens: bool) -> Cause:
    """Return the cause of a trial that failed, with the inside hosts that lost connections.

    Args:
        table: the device's table after phase 1.
        opens: whether frames were lost that were to open connections; others no table and no pool of ports refuses, so
            that these are guesses.
    """
    return _with_hosts(_by_counters(hops, table, opens=opens), hops.hosts)


def _with_hosts(cause: Cause, hosts: HostLosses) -> Cause:
    """Return the cause with the hosts that lost connections; a limit for each host is named by what they kept."""
    is_partial = 0 < len(hosts.losing) < len(hosts.hosts)
    if cause.limited_by in FULL - {"table"}:
        return _with_ports(cause, hosts, is_partial=is_partial)
    found = hosts.limit if cause.kind in _MAY_LIMIT_HOSTS else None
    if found is None:
        return replace(cause, hosts=hosts.words) if is_partial else cause
    number, certainty = found
    remedy = "the gateway's limit for each inside host (`ct count`, `connlimit`, ports for each host)"
    known: Cause = replace(cause, hosts=hosts.words, each_host=number)
    return replace(known, kind="host limit", certainty=certainty, remedy=remedy, frames=cause.frames or cause.lost)


def _with_ports(cause: Cause, hosts: HostLosses, *, is_partial: bool) -> Cause:
    """Return a cause of the outside ports: those of a host, where hosts have blocks of their own, or all of them."""
    if cause.kind == "port block" or hosts.have_blocks:
        remedy = "larger blocks, or more blocks for each subscriber"
        return replace(cause, kind="port block", hosts=hosts.words, place=hosts.block, remedy=remedy)
    return replace(cause, hosts=hosts.words if is_partial else "", place=cause.place or hosts.pool)


def _by_counters(hops: TrialHops, table: TableState, *, opens: bool) -> Cause:
    """Return the cause by counters and the limit of the table."""
    common = Cause("not known", lost=hops.lost, held=table.held, limit=table.limit)
    full = replace(common, kind="table", certainty="seen", remedy=_LARGER, frames=hops.lost)
    if opens and _was_full(hops, table):
        return _with(full, _of_table(hops))
    hop = hops.losing
    if not hops.lost:
        return common
    if hop is None:
        evicted = None if table.was_never_full else _of_table(hops)
        return common if evicted is None else _with(_named(common, evicted[1], hops), evicted)
    counter = max(hop.counters, key=lambda each: each.lost)
    named = _with(_named(common, counter, hops), (hop, counter))
    if named.kind == "forgotten" and hop.hop == "conntrack" and table.is_cleared:
        return _with(replace(full, certainty="guess", frames=named.frames), (hop, counter))
    # A host that floods and has used up its own share fills nothing for the others.
    if (named.kind == "table" and table.was_never_full) or (
        named.limited_by in FULL and counter.lost <= hops.flood_lost
    ):
        return _with(common, (hop, counter))
    if counter.name == _NOT_ENTERED and counter.lost < PORTS_SHARE * hops.sent:
        named = replace(named, kind="clash", certainty="guess")
    return replace(named, certainty="guess") if named.limited_by != "device" and not opens else named


def _was_full(hops: TrialHops, table: TableState) -> bool:
    """Whether the table was full and too small: for the connections that it was offered, or by a counter of its own."""
    return table.is_full and (not table.has_room_for_all or _of_table(hops) is not None)


def _named(cause: Cause, counter: HopCounter, hops: TrialHops) -> Cause:
    facts = counter.facts
    # Where a flood lost as many frames, the counter may have counted those alone.
    certainty: Certainty = "guess" if facts.guess or counter.lost <= hops.flood_lost else "seen"
    frames = min(counter.lost, cause.lost)
    return replace(cause, kind=facts.cause, certainty=certainty, remedy=facts.knob, frames=frames)


def _of_table(hops: TrialHops) -> tuple[HopLoss, HopCounter] | None:
    found = [(hop, each) for hop in hops.hops for each in hop.counters if each.facts.cause == "table"]
    return max(found, key=lambda each: each[1].count, default=None)


def _with(cause: Cause, found: tuple[HopLoss, HopCounter] | None) -> Cause:
    if found is None:
        return replace(cause, hop="conntrack") if cause.kind == "table" else cause
    hop, counter = found
    return replace(cause, hop=hop.hop, device=hop.device, place=counter.place, counter=counter.name)
