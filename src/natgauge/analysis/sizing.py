# SPDX-License-Identifier: Apache-2.0
"""How many subscribers a gateway carries, by what was measured of it: plain arithmetic on results.

Each limit was measured alone. What a gateway carries when all of them are used at once is not known from them; it is
at most what follows here. Blocks of ports are arithmetic: a subscriber without a block opens no connection.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from pydantic import ValidationError

from natgauge.analysis.contrast import Span, left_range
from natgauge.analysis.derived import of_host
from natgauge.analysis.unit_frames import bits_of_unit, drawn_frames, frames_of, mix_of
from natgauge.ethernet import FRAME_OVERHEAD
from natgauge.figure_text import exact, in_full
from natgauge.metrics import declared
from natgauge.metrics.catalogue import FORGETS
from natgauge.metrics.metric import Resource
from natgauge.port_blocks import PortBlocks
from natgauge.records.measurement import Result
from natgauge.records.parameters import OWN_TIMEOUT
from natgauge.words import OF_PORTS, OUTSIDE_PORTS, Verdict

#: Kinds of gateways that keep the port: a connection takes no port of an outside address.
_KEEP_PORTS: Final = frozenset({"routing", "nptv6", "siit", "softwire"})
#: Kinds of gateways that keep no connections, unless a result says how the table of its gateway is emptied.
_KEEP_NONE: Final = _KEEP_PORTS | {"map-t-br", "map-e-br", "lwaftr", "b4", "dns64", "dns"}
#: Kinds of gateways whose subscribers have a set of the ports of a shared address each.
_SHARE_SETS: Final = frozenset(
    {"lw4o6", "map-e", "map-t", "map-t-br", "map-e-br", "lwaftr", "map-t-ce", "map-e-ce", "lwb4"}
)
#: Parameters of a gateway that keeps connections: how natgauge, or somebody else, has them forgotten.
_FORGETTING: Final = ("emptying", "empty_command", "device_timeout")

#: What can end it: a resource that a metric measures, the ports of the outside addresses, or the blocks or sets of them
#: that subscribers have.
Ended = Literal["new connections", "open connections", "outside ports", "port blocks", "frames"]
Fits = Literal["carries", "does not carry", "cannot tell"]
#: How subscribers use the directions: both are as busy, or one is idle.
Use = Literal["both ways", "one way"]
#: Why a result is left out: its metric says nothing of subscribers, or counts those of a profile, all that they take at
#: once; nothing of its resource is asked for; its gateway keeps no connections, so that they are no limit; its rate
#: counts frames of which some opened no connection; part of its frames were only routed; their size is not known.
Unused = Literal[
    "other metric", "own profile", "not asked", "no limit", "drawn frames", "routed frames", "unknown size"
]
#: Resources that only a gateway which keeps connections runs out of.
_OF_CONNECTIONS: Final[tuple[Resource, ...]] = ("new connections", "open connections")
#: Parameters that the results of a group have in common.
_OF_GROUP: Final = ("cpu", "outside_addresses", "psid_length", "psid_offset", "logging", "log_tolerance")
#: Limits that follow from what the cores do in a second.
OF_CORES: Final[tuple[Ended, ...]] = ("new connections", "frames")
#: A table with so many times the connections of a measurement is clearly fuller.
_FULLER: Final = 1.5


@dataclass(frozen=True, slots=True)
class Subscribers:
    """How many subscribers are asked for, and what each of them takes at the busiest time; None = nothing is said.

    Each has open connections, opens `new` a second, and moves megabits a second of IP packets in the busier direction.

    Attributes:
        kept: T, seconds for which the gateway keeps a connection after its last frame; None = not known.
        mean_frame: mean octets of a frame with FCS, without VLAN tags; None = the frames are as those of the result.
        outside_addresses: IPv4 addresses that the gateway translates to.
    """

    number: int
    connections: float | None = None
    new: float | None = None
    megabits: float | None = None
    mean_frame: int | None = None
    outside_addresses: int | None = None
    kept: float | None = None

    @property
    def entries(self) -> float | None:
        """Entries of the table that each takes, or takes at least (`may_take_more`); None = nothing is said of them.

        As in the metric subscribers: its open connections, or as many as it opens within T, if these are more.
        """
        return max((some for some in (self.connections, self.opened) if some is not None), default=None)

    @property
    def opened(self) -> float | None:
        """Connections that each opens within T; None = nothing is said of them."""
        return None if self.new is None or self.kept is None else float(exact(self.new) * exact(self.kept))

    @property
    def least_entries(self) -> float:
        """Entries of the table that all take, or take at least; 0 = nothing is said of them."""
        # Without a connection nobody moves bits.
        each = self.entries if self.entries is not None else float(self.megabits is not None)
        return float(exact(each) * self.number)

    @property
    def may_take_more(self) -> bool:
        """Whether a subscriber may take more entries: it opens connections, and T is not known."""
        return self.new is not None and self.kept is None

    def needs(self) -> tuple[Resource, ...]:
        """Resources of which something is needed."""
        wanted: Mapping[Resource, float | None] = {
            "new connections": self.new, "open connections": self.entries, "frames": self.megabits,
        }  # fmt: skip
        return tuple(resource for resource, each in wanted.items() if each is not None)


@dataclass(frozen=True, slots=True)
class SubscriberLimit:
    """One limit of a gateway; where `is_least`, a subscriber may take more than `each`, because T is not known.

    Attributes:
        each: what one subscriber takes, > 0, in `unit`.
        measured: range in which another run is expected; its upper end is infinite where only a bound is known.
        result: the result that says so; None = the arithmetic of ports and of their blocks.
        frame_octets: octets of a frame of the subscribers with FCS, without VLAN tags; None where it is no limit of
            frames.
        busier_share: share of the frames of the measurement that went in its busier direction, above 0 to 1; None where
            it is no limit of frames.
    """

    ended: Ended
    unit: str
    each: float
    measured: Span
    result: Result | None = None
    frame_octets: float | None = None
    busier_share: float | None = None
    is_least: bool = False

    @property
    def is_of_one(self) -> bool:
        """Whether one subscriber alone exceeds it: its blocks have fewer ports than it has connections."""
        return self.ended == "port blocks" and self.unit == "connections"

    @property
    def subscribers(self) -> Span:
        """Range of the number of subscribers that reaches the limit.

        The other direction of a subscriber has anything between no frame and as many as the busier one, and the gateway
        carries as many frames of both together as were measured; of the busier direction surely no more than of that.
        """
        if self.busier_share is None:
            return self._of(self.measured)
        return Span(self.both_ways.lower, self.one_way.upper)

    def used(self, use: Use | None) -> Span:
        """Range of the number of subscribers that reaches the limit, if they use the directions so; None = anyhow."""
        if self.busier_share is None or use is None:
            return self.subscribers
        return self.both_ways if use == "both ways" else self.one_way

    @property
    def both_ways(self) -> Span:
        """Range of the number of subscribers whose directions are both as busy, of a limit of frames."""
        most = min(1.0, 1 / (2 * (self.busier_share or 1.0)))
        return self._of(Span(most * self.measured.lower, most * self.measured.upper))

    @property
    def one_way(self) -> Span:
        """Range of the number of subscribers whose other direction is idle, of a limit of frames."""
        return self._of(Span(self.measured.lower, self.measured.upper / (self.busier_share or 1.0)))

    def _of(self, carried: Span) -> Span:
        # 33 connections are 30 times 1.1 of them; of floats, less.
        lower, upper = (float(exact(end) / exact(self.each)) for end in (carried.lower, carried.upper))
        return Span(0.0 if self.is_least else lower, upper)

    def of_all(self, number: int) -> float:
        """What so many subscribers take, in `unit`."""
        return float(exact(self.each) * number)

    @property
    def is_of_settings(self) -> bool:
        """Whether it is the table's limit as the gateway was set, and nobody measured how many connections it keeps."""
        return self.ended == "open connections" and self.result is None

    def fits(self, number: int) -> Fits:
        """Whether this number of subscribers stays below the limit."""
        most = self.subscribers
        return "carries" if number <= most.lower else "does not carry" if number > most.upper else "cannot tell"


@dataclass(frozen=True, slots=True)
class Sizing:
    """What results of one gateway, on one machine, say of subscribers.

    Of `missing` resources no result says anything, and `no_limit` are those without a limit; with `larger_frames` than
    any throughput was measured with, frames may cost more.

    Attributes:
        results: those that say something, in their order.
        limits: the tightest of each resource; the one that ends it first comes first.
        other_frames: frames of the throughputs that did not decide, as `sizes_in_words`, the shortest first.
        other_tables: numbers of connections in the table of rates that were left out, the smallest first.
        blocks: blocks of ports that its subscribers have; None = they share all ports, or their blocks are not known.
        table_limit: entries that its table holds at most, as it was set; None = not known.
    """

    #: With the T of the results where the question has none.
    asked: Subscribers
    results: tuple[Result, ...]
    limits: tuple[SubscriberLimit, ...]
    missing: tuple[Resource, ...]
    larger_frames: bool
    other_frames: tuple[str, ...] = ()
    other_tables: tuple[int, ...] = ()
    no_limit: tuple[Resource, ...] = ()
    blocks: PortBlocks | None = None
    table_limit: float | None = None

    def fits(self, number: int) -> Fits:
        """Whether this number of subscribers is carried: every need was measured, and stays below its limit.

        Nobody can tell where new connections and frames may need more together than the cores have.
        """
        every = {limit.fits(number) for limit in self.limits}
        if "does not carry" in every:
            return "does not carry"
        is_open = self.missing or "cannot tell" in every or self.most_of_cores(number) > 1
        return "cannot tell" if is_open else "carries"

    @property
    def not_looked_at(self) -> tuple[Resource, ...]:
        """Resources that subscribers take and nothing was asked of: connections fill a table for an unknown T."""
        asked = self.asked
        is_open = asked.may_take_more and asked.entries is None and "new connections" not in self.no_limit
        return ("open connections",) if is_open else ()

    def most_of_cores(self, number: int) -> float:
        """Return the share of the same cores that new connections and frames of subscribers take together, at most.

        Each takes as much of the cores as of its own limit. 0 = not both are limits; infinite where one is not known.
        """
        least = [limit.subscribers.lower for limit in self.limits if limit.ended in OF_CORES]
        if len(least) < len(OF_CORES):
            return 0.0
        return sum(number / end for end in least) if all(least) else math.inf

    @property
    def with_fewer(self) -> dict[Ended, float]:
        """Limits of cores that were measured with clearly fewer connections than the table has then, with their number.

        A fuller table can make a frame slower. What another result measured with as many is known.
        """
        needed, found = self.asked.least_entries, dict[Ended, float]()
        for limit in self.limits if any(map(keeps_connections, self.results)) else ():
            if limit.ended in OF_CORES and limit.result is not None:
                alike = [one for one in self.results if _is_alike(one, limit.result)]
                most = max((held for one in alike if (held := one.number("connections"))), default=math.inf)
                if needed >= _FULLER * most:
                    found[limit.ended] = most
        return found

    def cores_for(self, number: int, use: Use | None = None) -> Span | None:
        """Return how many cores like those of the measurement so many subscribers need, if cores add up.

        They need as many as for new connections or for frames alone, and no more than for both one after the other; the
        upper end is infinite where one of both is not known. None = no limit of cores, or their number, is known.
        """
        limits = [limit for limit in self.limits if limit.ended in OF_CORES]
        cores = self.results[0].device_cores
        if not limits or not cores:
            return None
        ends = [limit.used(use) for limit in limits]
        least = max(number / end.upper if end.upper else math.inf for end in ends)
        most = sum(number / end.lower if end.lower else math.inf for end in ends)
        if any(resource in OF_CORES for resource in self.missing):
            most = math.inf
        # Without the last digits of a float, which are those of its arithmetic.
        lower, upper = (float(f"{cores * share:.12g}") for share in (least, most))
        return Span(*(float(math.ceil(end)) if math.isfinite(end) else end for end in (max(1.0, lower), upper)))


def resource_of(result: Result) -> Resource | None:
    """The resource that a result measured; None where it says nothing of subscribers."""
    return declared(result.metric).resource


def _is_alike(result: Result, other: Result) -> bool:
    """Whether results measured the same resource, and frames of the same sizes."""
    resource = resource_of(other)
    return resource_of(result) == resource and (resource != "frames" or sizes_in_words(result) == sizes_in_words(other))


def keeps_connections(result: Result) -> bool:
    """Whether the gateway of a result keeps connections, as far as its record says."""
    is_emptied = any(result.parameter(name) is not None for name in _FORGETTING)
    return is_emptied or result.parameter("kind") not in _KEEP_NONE


def gives_blocks(result: Result) -> bool:
    """Whether subscribers of the gateway of a result have blocks or sets of ports, as far as its record says."""
    is_told = result.parameter("port_blocks") is not None or result.parameter("kind") in _SHARE_SETS
    return is_told or any(repetition.limited_by == "port block" for repetition in result.repetitions)


def blocks_of(result: Result) -> PortBlocks | None:
    """The blocks that a result records; None where it records none, or none that this version knows."""
    try:
        return PortBlocks.model_validate(result.parameter("port_blocks"))
    except ValidationError:
        return None


def hosts_of(result: Result) -> int:
    """Inside hosts of a measurement; one where its record names none."""
    return int(result.number("source_address_count") or 1)


def may_be_of_hosts(result: Result, asked: Subscribers) -> bool:
    """Whether a limit of each inside host may have ended a capacity: fewer hosts than subscribers, no full table.

    A device that collapsed did so with the connections of all of them.
    """
    is_of_device = resource_of(result) == "open connections" and result.limited_by == "device"
    return is_of_device and not result.trials.get(Verdict.COLLAPSED) and hosts_of(result) < asked.number


def log_ended(result: Result) -> bool:
    """Whether its log ended a capacity: every connection was kept, so the table has room for more."""
    return resource_of(result) == "open connections" and result.limited_by == "log"


def least_blocks(blocks: PortBlocks, asked: Subscribers) -> int:
    """Least number of blocks that a subscriber takes, at least one.

    Where connections to several remote endpoints may share a port, one block may do.
    """
    return blocks.each_for(asked.entries or 1) if blocks.counts_connections else 1


def why_unused(result: Result, asked: Subscribers) -> Unused | None:
    """Return why a result says nothing of the subscribers; None = it does."""
    resource = resource_of(result)
    if resource is None:
        return "own profile" if declared(result.metric).counts == "subscriber" else "other metric"
    if resource not in asked.needs():
        return "not asked"
    if resource in _OF_CONNECTIONS:
        is_drawn = drawn_frames(result.metric, result.parameters) is not None
        return "no limit" if not keeps_connections(result) else "drawn frames" if is_drawn else None
    if (result.number("foreground_share") or 1.0) < 1:
        return "routed frames"
    return None if _octets(result) else "unknown size"


def table_limit(result: Result) -> float | None:
    """Entries that the gateway's table holds at most, as found or as the user set or stated it; None = not known.

    For most metrics natgauge raises the limit above the connections of its trials, so that it is not the gateway's own.
    """
    found = of_host("table_size", result.parameters)
    if isinstance(found, int):
        return float(found)
    metric = declared(result.metric)
    is_own = metric.resource == "open connections" or metric.counts == "subscriber"
    return result.number("table_size") if is_own or result.parameter("placement") == "external" else None


def with_asked(results: Sequence[Result], asked: Subscribers) -> list[list[tuple[Result, Subscribers]]]:
    """Return groups of results with the question, which has the longest T that a result of the group records.

    A group has one gateway, machine, cores, placement, way of logging, outside addresses and PSID.
    """
    groups: dict[tuple[object, ...], list[Result]] = {}
    for result in results:
        place = (result.gateway, result.placement, result.device_cores, *map(result.parameter, _OF_GROUP))
        groups.setdefault(place, []).append(result)
    return [[(result, _with_kept(asked, group)) for result in group] for group in groups.values()]


def _with_kept(asked: Subscribers, results: Sequence[Result]) -> Subscribers:
    if asked.kept is not None:
        return asked
    known = (result.number(name) for result in results for name in (FORGETS, OWN_TIMEOUT, "device_timeout"))
    return replace(asked, kept=max((seconds for seconds in known if seconds is not None), default=None))


def sizings(results: Sequence[Result], asked: Subscribers) -> list[Sizing]:
    """Return one for each group of `with_asked` of which a result says something, in order."""
    found = []
    for group in with_asked(results, asked):
        used = [result for result, own in group if why_unused(result, own) is None]
        if used:
            # What was measured holds for the table that it was measured with.
            tables = [one for one in used if resource_of(one) == "open connections"] or [one for one, _ in group]
            limits = map(table_limit, tables)
            found.append(_sizing(used, group[0][1], min((one for one in limits if one is not None), default=None)))
    return found


def addresses_for(sizing: Sizing) -> int | None:
    """Least number of outside addresses, if each connection has a port of its own, or each subscriber a block.

    None where connections take no port, where a subscriber has more connections than it may have ports, or where it has
    a block or a set of them whose size is not known.
    """
    asked = sizing.asked
    if sizing.blocks is not None:
        each = least_blocks(sizing.blocks, asked)
        hosts = sizing.blocks.hosts_of(each)
        return None if each > sizing.blocks.each or not hosts else math.ceil(asked.number / hosts)
    if asked.entries is None or not _takes_ports(sizing.results) or any(map(gives_blocks, sizing.results)):
        return None
    return math.ceil(asked.number * exact(asked.entries) / OUTSIDE_PORTS)


def takes_addresses(sizing: Sizing) -> bool:
    """Whether a limit follows from a number of outside addresses and no result: that of ports, or of their blocks."""
    return any(limit.result is None and limit.ended in ("outside ports", "port blocks") for limit in sizing.limits)


def _sizing(results: Sequence[Result], asked: Subscribers, holds: float | None) -> Sizing:
    of_size, larger = _with_frames(results, asked.mean_frame)
    sized = _with_tables(of_size, asked)
    hosts = max((hosts_of(one) for one in sized if resource_of(one) == "open connections"), default=0)
    # What fewer hosts kept says nothing of more, of which another result says it.
    least = [one for one in sized if not (may_be_of_hosts(one, asked) and hosts_of(one) < hosts)]
    # Where a log ended it, the table was not full: another result says more of the table.
    if any(resource_of(one) == "open connections" and not log_ended(one) for one in least):
        least = [one for one in least if not log_ended(one)]
    every = [limit for result in least for limit in _of_result(result, asked)]
    blocks = next((known for result in results if (known := blocks_of(result)) is not None), None)
    # How many ports subscribers leave unused in blocks of another size is not known.
    is_known = blocks is not None or not any(map(gives_blocks, results))
    every += _of_ports(asked) if _takes_ports(results) and is_known else ()
    every += _of_blocks(results, blocks, asked)
    none = () if any(map(keeps_connections, results)) else _OF_CONNECTIONS
    measured = {*none, *(limit.ended for limit in every)}
    missing = tuple(resource for resource in asked.needs() if resource not in measured)
    if "open connections" in missing and holds is not None and asked.entries is not None:
        every.append(_of_table(asked.entries, Span(0.0, holds), asked))
    tightest: dict[Ended, SubscriberLimit] = {}
    for limit in sorted(every, key=_order):
        tightest.setdefault(limit.ended, limit)
    no_limit = tuple(resource for resource in asked.needs() if resource in none)
    of_frames = sorted((result for result in results if resource_of(result) == "frames"), key=_octets)
    used = tightest.get("frames")
    others = dict.fromkeys(map(sizes_in_words, of_frames))
    if used is not None and used.result is not None:
        others.pop(sizes_in_words(used.result), None)
    tables = sorted({table for one in of_size if one not in sized and (table := _table(one)) is not None})
    limits = tuple(tightest.values())
    return Sizing(asked, tuple(sized), limits, missing, larger, tuple(others), tuple(tables), no_limit, blocks, holds)


def _order(limit: SubscriberLimit) -> tuple[float, float]:
    """What comes first: the lower end; where nothing is known of it, the upper one."""
    most = limit.subscribers
    return most.lower or most.upper, most.upper


def _of_table(entries: float, measured: Span, asked: Subscribers, result: Result | None = None) -> SubscriberLimit:
    """The limit of the table, of subscribers with so many entries each."""
    return SubscriberLimit("open connections", "connections", entries, measured, result, is_least=asked.may_take_more)


def sizes_in_words(result: Result) -> str:
    """The size of the frames of a throughput, or the mix of their sizes; of tagged frames, whether with the tags."""
    if mix := mix_of(result.parameters):
        side = result.parameter("frame_side") or "initiator"
        return f"{mix}{' with VLAN tags' if result.parameter(f'{side}_vlan') else ''}"
    return f"{in_full(_octets(result))} octets{without_tags(result)}"


def without_tags(result: Result) -> str:
    """What follows the octets of frames that had tags, which are not counted; empty for frames that had none."""
    return " without VLAN tags" if result.parameter("initiator_vlan") else ""


def _with_frames(results: Sequence[Result], mean: int | None) -> tuple[list[Result], bool]:
    """Results without throughputs of other frames than subscribers have.

    With their mean size, those of the next larger frames count, or the largest where none is as large. Without it, a
    mix of sizes says more of them than frames of one size do.
    """
    of_frames = [result for result in results if resource_of(result) == "frames"]
    others = [result for result in results if resource_of(result) != "frames"]
    if mean is None or not of_frames:
        return [*others, *([one for one in of_frames if mix_of(one.parameters)] or of_frames)], False
    sizes = sorted(map(_octets, of_frames))
    chosen = next((size for size in sizes if size >= mean), sizes[-1])
    return [*others, *(one for one in of_frames if _octets(one) == chosen)], chosen < mean


def _with_tables(results: Sequence[Result], asked: Subscribers) -> list[Result]:
    """Results without rates of other tables than subscribers fill, where it is known how far they fill it.

    Of rates of one metric and the same frames those with the next larger number of connections count, or with the
    largest where none is as large. A rate without a number of connections always counts.
    """
    if asked.entries is None or asked.may_take_more or not any(map(keeps_connections, results)):
        return list(results)
    chosen = []
    for result in results:
        alike = [one for one in results if one.metric == result.metric and _is_alike(one, result)]
        tables = [table for one in alike if (table := _table(one)) is not None]
        most = max(tables, default=None)
        used = min((table for table in tables if table >= asked.least_entries), default=most)
        if resource_of(result) not in OF_CORES or _table(result) in (None, used):
            chosen.append(result)
    return chosen


def _table(result: Result) -> int | None:
    """Connections in the table of a measurement; None = not known."""
    number = result.number("connections")
    return None if number is None else int(number)


def _octets(result: Result) -> float:
    """Octets of a frame on the Initiator's link with FCS, without VLAN tags; 0 where they are not known."""
    bits = bits_of_unit(result.metric, result.parameters)
    return 0.0 if bits is None else bits.frame_octets


def _of_result(result: Result, asked: Subscribers) -> Iterator[SubscriberLimit]:
    resource, measured = resource_of(result), _range(result)
    if resource == "new connections" and asked.new is not None:
        yield SubscriberLimit("new connections", "connections/s", asked.new, measured, result)
    elif resource == "open connections" and asked.entries is not None:
        # How many subscribers the ports serve follows from the blocks.
        is_of_blocks = result.limited_by in OF_PORTS and gives_blocks(result)
        if is_of_blocks or may_be_of_hosts(result, asked) or log_ended(result):
            # The table has room for more.
            measured = Span(measured.lower, math.inf)
        elif result.limited_by == "port pool":
            had = result.number("outside_addresses") or 1
            share = (asked.outside_addresses or had) / had
            if share == 1:
                yield SubscriberLimit(
                    "outside ports", "connections", asked.entries, measured, result, is_least=asked.may_take_more
                )
            # The table has room for more. Of other addresses it is known only that fewer would have fewer ports.
            measured = Span(measured.lower * min(1.0, share), math.inf)
        holds = table_limit(result)
        if holds is not None and math.isinf(measured.upper):
            measured = Span(measured.lower, max(measured.lower, holds))
        yield _of_table(asked.entries, measured, asked, result)
    elif resource == "frames" and asked.megabits is not None:
        bits = bits_of_unit(result.metric, result.parameters)
        if bits is not None:
            octets = asked.mean_frame or bits.frame_octets
            each = asked.megabits * 1e6 / (8 * (octets - FRAME_OVERHEAD))
            carried = Span(measured.lower * bits.frames, measured.upper * bits.frames)
            busier = bits.frames / sum(frame.share for frame in frames_of(result.metric, result.parameters))
            yield SubscriberLimit("frames", "frames/s", each, carried, result, octets, busier)


def _takes_ports(results: Sequence[Result]) -> bool:
    return not any(result.parameter("kind") in _KEEP_PORTS for result in results)


def _of_ports(asked: Subscribers) -> Iterator[SubscriberLimit]:
    if asked.entries is not None and asked.outside_addresses is not None:
        ports = float(asked.outside_addresses * OUTSIDE_PORTS)
        yield SubscriberLimit("outside ports", "ports", asked.entries, Span(ports, ports), is_least=asked.may_take_more)


def _of_blocks(results: Sequence[Result], blocks: PortBlocks | None, asked: Subscribers) -> Iterator[SubscriberLimit]:
    """The limit of the blocks of a gateway that gives them, also where nothing of connections is asked."""
    giving = [result for result in results if gives_blocks(result)]
    if not giving:
        return
    addresses = asked.outside_addresses or next(filter(None, map(_addresses, giving)), None)
    if blocks is None or addresses is None:
        served, result = max(((_served(each, asked), each) for each in giving), key=lambda one: one[0])
        yield SubscriberLimit("port blocks", "subscribers", 1.0, Span(served, math.inf), result)
        return
    each = least_blocks(blocks, asked)
    if each > blocks.each:
        # No subscriber can have so many connections, however many blocks there are.
        ports = float(blocks.ports)
        yield SubscriberLimit("port blocks", "connections", asked.entries or 1, Span(ports, ports))
        return
    # With a port for each connection, of which some may be shared.
    most = blocks.each_for(asked.entries or 1)
    sure = 0 if asked.may_take_more or most > blocks.each else blocks.hosts_of(most)
    # In blocks, of which those are left out that are too few of their address for one more host.
    measured = Span(float(addresses * sure * each), float(addresses * blocks.hosts_of(each) * each))
    yield SubscriberLimit("port blocks", "blocks", each, measured)


def _addresses(result: Result) -> float | None:
    """Outside addresses of the gateway of a result; None where their number is not known."""
    if result.parameter("kind") in _SHARE_SETS:
        return result.number("shared_addresses")
    return result.number("outside_addresses") or 1


def _served(result: Result, asked: Subscribers) -> float:
    """Subscribers that the gateway of a result certainly had blocks for, each with as many connections as are asked."""
    hosts = result.number("source_address_count") or 0
    is_capacity = resource_of(result) == "open connections"
    held = _range(result).lower if is_capacity else result.number("connections") or 0
    # A host that got no block opened nothing.
    all_had = not (is_capacity and result.limited_by == "port pool")
    is_held = not asked.may_take_more and (asked.entries or 1) <= held / (hosts or 1)
    return hosts if all_had and is_held else 0.0


def _range(result: Result) -> Span:
    """The range in which another run is expected, or the bounds that limits and doubts leave of it."""
    lower, upper = left_range(result)
    return Span(max(0.0, lower), upper)
