# SPDX-License-Identifier: Apache-2.0
"""Whether a gateway's limits are enough for a demand, before any trial: arithmetic, with the numbers in every refusal.

RFC 9693 section 4.4 sets the conditions: the table holds all connections, and no entry expires while it is needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from natgauge.errors import HostError, UsageError
from natgauge.figure_text import with_noun
from natgauge.inputs.input import wrong
from natgauge.inputs.question import DeviceOptions
from natgauge.words import TcpState, Transport

if TYPE_CHECKING:
    # What may be asked is known without what reads recipes.
    from natgauge.gateways.far_side import Playable
    from natgauge.gateways.port_sets import PortSets
    from natgauge.gateways.recipe_model import Knob
    from natgauge.port_blocks import PortBlocks

#: Octets left to the rest of the machine when a table is filled.
_RESERVED: Final = 256 * 1024 * 1024
#: Room in the table beyond the demanded connections, so that stray traffic does not push one of them out.
_SPARE_CONNECTIONS: Final = 1024
#: A time-out is chosen this much longer than needed: senders that catch up and busy machines stretch a trial.
_SPARE_FACTOR: Final = 2
SPARE_SECONDS: Final = 30


@dataclass(frozen=True, slots=True)
class DeviceDemand:
    """Demand of a measurement on the device: properties of its trials that decide the gateway's limits and time-outs.

    Attributes:
        connections: N, number of connections in phase 1, >= 1.
        held_at_least: number of connections for which the table must have room at every load; 0 = N.
        held_at_most: the same at the highest load, if memory allows; 0 = no more.
        remote_endpoints: Responder addresses times destination ports, >= 1.
        inside_endpoints: Initiator addresses times source ports, >= 1; None = not compared with the outside ports,
            because the outside addresses are not known.
        phase1_seconds: longest phase 1 of any trial, N / lowest rate, > 0.
        after_seconds: longest time from the end of phase 1 to the last frame that needs an entry: gap, phase 2 and the
            waiting for late frames; 0 when there is no phase 2.
        longest_seconds: longest trial that may become necessary, in s; 0 = no longer than the others. A time-out that
            natgauge chooses outlasts it as far as the knob allows, but a shorter one is not refused.
        fills_table: the measurement looks for the table's own limit, so that limit is neither raised nor refused as too
            small.
        sharing: number of gateways that run in parallel, each with `connections` connections, whose entries share the
            buckets of one table; of no meaning for a gateway that has a table of its own.
        port_sets: how the source addresses, each a subscriber, share outside addresses; None where they do not.
        expires: whether connections are to time out, so that a time-out that natgauge chooses is hardly longer than
            needed.
        as_found: whether the gateway keeps its own limits and time-outs, because its behaviour is examined.
        counts_hosts: False = where `fills_table`, there may be more inside hosts than port blocks.
    """

    connections: int
    phase1_seconds: float
    held_at_least: int = 0
    held_at_most: int = 0
    after_seconds: float = 0.0
    longest_seconds: float = 0.0
    source_addresses: int = 1
    remote_endpoints: int = 1
    inside_endpoints: int | None = None
    outside_addresses: int = 1
    fills_table: bool = False
    sharing: int = 1
    port_sets: PortSets | None = None
    as_found: bool = False
    counts_hosts: bool = False
    expires: bool = False
    transport: Transport = "udp"
    state: TcpState = "established"

    @property
    def least_held(self) -> int:
        """Number of connections that the table must hold, whatever the load."""
        return max(self.connections, self.held_at_least)

    @property
    def most_held(self) -> int:
        """Number of connections that a table of natgauge's choice holds."""
        return max(self.least_held, self.held_at_most)

    @property
    def needed_seconds(self) -> float:
        """Seconds for which an entry must live: phase 1, and phase 2 when there is one (RFC 9693 section 4.4)."""
        return self.phase1_seconds + self.after_seconds


def shares_table(recipe: Playable) -> bool:
    """Whether the gateway's entries are in a hash table that its whole machine has once."""
    return recipe.knobs.hash_size is not None and recipe.knobs.hash_size.scope == "machine"


def _entries(recipe: Playable, demand: DeviceDemand, connections: int) -> int:
    """Entries of so many connections of each gateway, in the table of this one."""
    sharing = demand.sharing if shares_table(recipe) else 1
    return connections * sharing * recipe.limits.entries_per_connection


def choose(recipe: Playable, demand: DeviceDemand, wishes: DeviceOptions, present: Mapping[str, int]) -> dict[str, int]:
    """Return values for the knobs, as an operator who expects this many connections would set them.

    A value that the user did not choose is never lowered: the table holds the connections and some spare ones, the hash
    table has at least one bucket for each entry (the kernel's own ratio), entries live twice as long as the
    longest trial.
    """
    for name, value in wishes.named().items():
        _check_wish(recipe, demand.state, name, value)
    if demand.as_found:
        return wishes.named()
    lasting = max(demand.needed_seconds, demand.longest_seconds)
    entries = _entries(recipe, demand, demand.most_held)
    barely, with_room = math.ceil(lasting) + 1, math.ceil(_SPARE_FACTOR * lasting) + SPARE_SECONDS
    chosen = {
        "table_size": demand.most_held + max(_SPARE_CONNECTIONS, demand.most_held // 16),
        "hash_size": 1 << (entries - 1).bit_length(),
        "udp_timeout": barely if demand.expires else with_room,
    }
    if demand.fills_table:
        del chosen["table_size"]
    knobs = recipe.knobs.in_state(demand.state).named()
    raised = {name: max(value, _within(knobs[name], chosen[name])) for name, value in present.items() if name in chosen}
    return {**raised, **wishes.named()}


def _check_wish(recipe: Playable, state: TcpState, name: str, value: int) -> None:
    knob = recipe.knobs.in_state(state).named().get(name)
    if knob is None or not knob.settable:
        of_state = "" if state == "established" else f" for TCP connections in the state {state}"
        raise wrong(name, f"{value}, but {recipe.name} has no such knob{of_state}; leave it out")
    if _within(knob, value) != value:
        upto = f"{knob.minimum} to {knob.maximum}" if knob.maximum else f"{knob.minimum} or more"
        raise wrong(name, f"{value} {knob.unit} is out of range for {recipe.name}; use {upto}")


def _within(knob: Knob, value: int) -> int:
    return max(knob.minimum, min(value, knob.maximum or value))


def refuse_unfit(recipe: Playable, demand: DeviceDemand, values: Mapping[str, int]) -> None:
    """Refuse a demand the gateway's limits are too small for."""
    _refuse_small_table(recipe, demand, values.get("table_size"))
    _refuse_short_timeout(recipe, demand, values.get("udp_timeout"))
    _refuse_small_pool(recipe, demand)
    most = recipe.limits.source_addresses
    if most is not None and demand.source_addresses > most:
        raise UsageError(
            f"{recipe.name}: {with_noun(demand.source_addresses, 'source addresses')} planned, it serves at most "
            f"{most}; use fewer addresses and more ports"
        )
    # Its remedy is more outside addresses, which serve no further host where hosts have a limit.
    _refuse_small_blocks(recipe, demand)


def _refuse_small_table(recipe: Playable, demand: DeviceDemand, size: int | None) -> None:
    needed = demand.least_held
    if size is not None and size < needed and not demand.fills_table:
        more = "" if needed == demand.connections else f", {needed} with those that a trial opens beyond them"
        fewer = "fewer connections" if not more else "open fewer"
        raise UsageError(
            f"{recipe.name}: {_connections(demand)} planned{more}, its table holds {size}; give a table size "
            f"of at least {needed} or {fewer} (RFC 9693 section 4.4)"
        )


def _refuse_short_timeout(recipe: Playable, demand: DeviceDemand, timeout: int | None) -> None:
    if timeout is not None and timeout <= demand.needed_seconds:
        phases = f"phase 1 of {demand.phase1_seconds:g} s"
        if demand.after_seconds:
            phases += f" and {demand.after_seconds:g} s of gap and phase 2"
        of_state = "" if demand.state == "established" else f" in the state {demand.state}"
        raise UsageError(
            f"{recipe.name}: {demand.transport.upper()} time-out {timeout} s{of_state} is not longer than {phases}; "
            f"give a time-out above {math.ceil(demand.needed_seconds)} s, fewer connections or a higher rate (RFC 9693 "
            "section 4.4)"
        )


def _refuse_small_pool(recipe: Playable, demand: DeviceDemand) -> None:
    """Outside ports are counted per remote endpoint or in all, after the gateway's mapping (RFC 9693 section 3.2)."""
    mapping = recipe.limits.mapping
    if mapping is None or recipe.limits.pool_ports is None:
        return
    first, last = recipe.limits.pool_ports
    ports = demand.outside_addresses * (last - first + 1)
    # The least that any mapping takes.
    needed = math.ceil(demand.connections / demand.remote_endpoints)
    endpoints = with_noun(demand.remote_endpoints, "remote endpoints")
    said = f"{_connections(demand)} to {endpoints} need {with_noun(needed, 'outside ports')}"
    remedy = "fewer connections"
    if mapping == "address-and-port-dependent":
        said += " each"
        least = with_noun(math.ceil(demand.connections / ports), "remote endpoints")
        remedy = f"at least {least} (destination addresses x ports)"
    elif demand.fills_table:
        # The end of the ports is a result as well.
        pass
    elif mapping == "each-connection":
        needed = demand.connections
        said = f"{needed} connections need an outside port each"
    elif demand.inside_endpoints is not None:
        # A source address and port has one outside port, whatever the destination. How many of them the connections
        # have depends on their order.
        needed = min(demand.connections, demand.inside_endpoints)
        said = f"{_connections(demand)} of {demand.inside_endpoints} source addresses x ports need up to "
        said += with_noun(needed, "outside ports")
        remedy = f"at most {ports} source addresses x ports, or fewer connections"
    if needed > ports:
        raise UsageError(f"{recipe.name}: {said}, {_outside(demand)} {ports}; use {remedy} (RFC 9693 section 3.2)")


def _refuse_small_blocks(recipe: Playable, demand: DeviceDemand) -> None:
    """Refuse more inside hosts than blocks, and more connections of a host than its blocks have ports.

    Where the number of connections is what is looked for, a host may have too many, and hosts may be too many unless
    each is one of those that are counted.
    """
    blocks = recipe.limits.port_blocks
    if blocks is None:
        return
    number = demand.outside_addresses * blocks.per_address
    looks_for_connections = demand.fills_table and not demand.counts_hosts
    if demand.source_addresses > number and not (looks_for_connections and not blocks.deterministic):
        raise UsageError(
            f"{recipe.name}: {_inside(demand, 'need')} a block of {with_noun(blocks.size, 'ports')} each, "
            f"{_outside(demand)} {number}; use fewer source addresses, more outside "
            f"addresses (--outside-addresses {math.ceil(demand.source_addresses / blocks.per_address)}), or a recipe "
            "with smaller blocks"
        )
    if demand.fills_table or demand.as_found:
        return
    endpoints = 1 if blocks.counts_connections else demand.remote_endpoints
    needed = math.ceil(demand.connections / (demand.source_addresses * endpoints))
    if needed > blocks.ports:
        where = "" if blocks.counts_connections else f" towards each of {with_noun(endpoints, 'remote endpoints')}"
        more = "" if blocks.counts_connections else " or destination ports"
        raise UsageError(
            f"{recipe.name}: {_connections(demand)} of {_inside(demand)} need {with_noun(needed, 'ports')} "
            f"of each{where}, a host has {blocks}; use at least "
            f"{with_noun(math.ceil(demand.connections / (endpoints * blocks.ports)), 'source addresses')}{more}, fewer "
            "connections, or a recipe with larger blocks"
        )
    if blocks.counts_connections:
        most = _most_of_host(demand, blocks, needed)
        if most > blocks.ports:
            raise UsageError(
                f"{recipe.name}: of {demand.connections} connections in pseudorandom order some of "
                f"{_inside(demand)} may have {most}, a host has {blocks}; give fewer "
                f"connections, or ports with which each host has no more than {blocks.ports} four tuples",
                at="source_ports",
            )
        _refuse_few_blocks(recipe, demand, blocks, blocks.each_for(most))


def _connections(demand: DeviceDemand) -> str:
    return with_noun(demand.connections, "connections")


def _inside(demand: DeviceDemand, verb: str = "") -> str:
    """The inside hosts, also as the subject of this verb."""
    return with_noun(
        demand.source_addresses, f"inside hosts {verb}".strip(), f"inside host {verb and f'{verb}s'}".strip()
    )


def _outside(demand: DeviceDemand) -> str:
    """The outside addresses, as the subject of what they have."""
    return with_noun(demand.outside_addresses, "outside addresses have", "outside address has")


def _most_of_host(demand: DeviceDemand, blocks: PortBlocks, mean: int) -> int:
    """Return the connections that one of the inside hosts may have by chance, `mean` where that is not known."""
    hosts = demand.source_addresses
    if demand.inside_endpoints is None:
        return mean
    four_tuples = demand.inside_endpoints * demand.remote_endpoints // hosts
    return blocks.most_of_host(demand.connections, hosts, four_tuples)


def _refuse_few_blocks(recipe: Playable, demand: DeviceDemand, blocks: PortBlocks, each: int) -> None:
    """Refuse more inside hosts than have room for so many blocks each, which are all of one address."""
    hosts = blocks.hosts_of(each)
    if demand.source_addresses > demand.outside_addresses * hosts:
        enough = math.ceil(demand.source_addresses / hosts) if hosts else 0
        more = f", more outside addresses (--outside-addresses {enough})" if enough else ""
        raise UsageError(
            f"{recipe.name}: {_connections(demand)} of {_inside(demand)} need {with_noun(each, 'blocks')} "
            f"of {with_noun(blocks.size, 'ports')} for each host, {_outside(demand)} them for "
            f"{with_noun(demand.outside_addresses * hosts, 'hosts')}; use fewer connections or source addresses"
            f"{more}, or a recipe with larger blocks"
        )


def within_memory(recipe: Playable, demand: DeviceDemand, free: int) -> DeviceDemand:
    """Return the demand with no more connections at the highest load than so many free octets hold.

    Each entry has up to two buckets, whose number is a power of two.
    """
    limits = recipe.limits
    entry = (limits.octets_per_connection or 0) + 2 * (limits.octets_per_bucket or 0)
    each = entry * _entries(recipe, demand, 1)
    if not recipe.stateful or not each:
        return demand
    most = max(demand.least_held, (free - _RESERVED) // each)
    return replace(demand, held_at_most=most) if most < demand.most_held else demand


def octets_needed(recipe: Playable, demand: DeviceDemand, values: Mapping[str, int], present: Mapping[str, int]) -> int:
    """Memory that the table of the demand takes at every load, in octets: entries, and buckets beyond the present ones.

    Entries of the gateways that share the table exist at once, and none of them yet when each gateway is prepared.
    """
    buckets = max(0, values.get("hash_size", 0) - present.get("hash_size", 0))
    entries = _entries(recipe, demand, demand.least_held) if recipe.stateful else 0
    return entries * (recipe.limits.octets_per_connection or 0) + buckets * (recipe.limits.octets_per_bucket or 0)


def refuse_short_memory(recipe: Playable, demand: DeviceDemand, needed: int, free: int) -> None:
    """Refuse a demand whose table would not fit: the kernel would end processes instead."""
    if needed and needed + _RESERVED > free:
        of = f" for each of {demand.sharing} gateways" if shares_table(recipe) and demand.sharing > 1 else ""
        raise HostError(
            f"{recipe.name}: a table of {demand.least_held} connections{of} takes {_mib(needed)} MiB in addition to "
            f"the {_mib(_RESERVED)} MiB left to the system, {_mib(free)} MiB are available; use fewer connections"
        )


def _mib(octets: int) -> int:
    return math.ceil(octets / 1024**2)
