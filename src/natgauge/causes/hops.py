# SPDX-License-Identifier: Apache-2.0
"""Where the frames of a trial were lost, hop by hop, from the counters in its record, and the cause that follows.

The cause of a failed trial follows from its hops and the limit of the device's table; whoever shows it calls
this module. Losses of connections are also counted for each inside host: where each kept the same number in phase 1,
the device has a limit for each host.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Any, Final, Literal, get_args

from natgauge.causes.cause import FULL, Cause, Certainty, CounterFacts, Hop, counters, facts_of
from natgauge.figure_text import with_noun
from natgauge.late_delays import LateDelays, merged
from natgauge.words import WRONG_FRAMES, enumerated

# Hosts

#: Hosts that are named; of more, only their number.
_MOST_NAMES: Final = 4
#: Share by which the numbers of connections that hosts keep may differ, where each host has the same limit.
_TOLERANCE: Final = 0.002
#: Ports of the widest range that may be blocks of one host; wider ones are those of an outside address.
_WIDEST_BLOCKS: Final = 1 << 15
#: Chances that a loss by share leaves numbers as equal: below the first, the limit is seen; below the second, a guess.
_SEEN, _GUESS = 0.01, 0.1

# Hops

#: Hops between the receipt of a packet by IP and its sending.
_INSIDE: Final = ("header", "conntrack", "routing")
_NOT_SENT: Final = "received, but not sent"
_WITHOUT_ENTRY: Final = "without entry"
_ANSWERED: Final = "answered SYNs"
_TUN_FULL: Final = "tun full"
_TUN_KEPT: Final = "tun kept"
#: Disciplines that drop what filters tell them to.
_INGRESS: Final = ("ingress", "clsact")
#: What gateways report by short names: counters of `conntrack -S`, which the kernel's replace, and of softwires.
_REPORTED: Final = ("conntrack", "softwire")
#: Share of a counter's events that another one must have, to say what the first one means.
_CASE_SHARE: Final = 0.5
#: Ends of the names of a lab's places, and the counter of each.
_PLACES: Final = {"card ring": "card ring", "received": "received", "sent": "sent", "backlog": "softnet dropped"}
#: Fields of a trial's result: of a port, and of a stream, of frames that came late or wrong.
_PORT: Final = ("refused", "redirect_errors", "tx_dropped", "rx_dropped")
#: Those of frames that a port could not send.
_NOT_OUT: Final = frozenset({"refused", "tx_dropped"})
_ERRORS: Final = ("too_big", "icmp_errors")
#: Frames of one host that opens more than its share: their loss fails no trial.
_FLOOD: Final = "flood"
#: Intended frames that had no connection.
_UNSENT: Final = ("skipped", "unopened")
#: Frames that arrived, but not in time.
LATE: Final = "late"
WRONG: Final = (LATE, *WRONG_FRAMES)
#: Device (empty = the tester), place (empty = the whole device), name of a counter.
_Key = tuple[str, str, str]
_Network = Mapping[str, Mapping[str, int]]

# The table

#: Share of the table's limit at which the table counts as full: per-CPU counters and eviction leave a little room.
_FULL_SHARE: Final = 0.999
#: Once it was full, Linux removes connections that are not assured from this share of the limit on (`gc_worker`), and
#: counts none of them; a next trial may feel it.
_CLEARED_SHARE: Final = 0.95
#: From this share of the frames on, failed entries are no accident of two cores.
_PORTS_SHARE: Final = 0.01
_LARGER: Final = "--table-size, a shorter --udp-timeout"
_NOT_ENTERED: Final = "conntrack insert_failed"
#: Causes by counters that may be a limit for each host: what refuses says nothing of whose connections it counts.
_MAY_LIMIT_HOSTS: Final = frozenset({"rule", "process", "gateway", "not known"})


@dataclass(frozen=True, slots=True)
class HostPorts:
    """Outside ports of one address that an inside host used; the block that they are of may have some more."""

    address: str
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.address}, ports {self.first} to {self.last}"

    def overlaps(self, other: HostPorts) -> bool:
        """Whether another range has ports between these."""
        return self.address == other.address and self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True)
class HostCounts:
    """Connections of one inside host: those that phase 1 opened, and those that arrived, with their outside ports.

    No ports = none arrived, or not known.
    """

    address: str
    connections: int
    stored: int
    outside: tuple[HostPorts, ...] = ()


@dataclass(frozen=True, slots=True)
class HostLosses:
    """Connections of each inside host in phase 1, and the gateway's pool in words; empty = not known, or no loss."""

    hosts: tuple[HostCounts, ...] = ()
    pool: str = ""

    @property
    def losing(self) -> tuple[HostCounts, ...]:
        """Hosts that lost connections."""
        return tuple(host for host in self.hosts if host.stored < host.connections)

    @property
    def words(self) -> str:
        """The hosts that lost connections, such as "10.0.0.2 and 10.0.0.3 of 4 inside hosts"; empty = not known."""
        losing = self.losing
        if not losing:
            return ""
        are_named = len(losing) <= _MOST_NAMES and len(losing) < len(self.hosts)
        who = enumerated([host.address for host in losing]) if are_named else f"{len(losing)}"
        return f"{who} of {with_noun(len(self.hosts), 'inside hosts')}"

    @property
    def have_blocks(self) -> bool:
        """Whether most lost connections are of hosts that share an address, but none of its ranges of ports."""
        lost = sum(host.connections - host.stored for host in self.losing)
        own = sum(host.connections - host.stored for host in self.losing if self._has_block(host))
        return own > lost / 2

    def _has_block(self, host: HostCounts) -> bool:
        others = [each for other in self.hosts if other is not host for each in other.outside]
        return (
            any(each.address == own.address for each in others for own in host.outside)
            and all(own.last - own.first < _WIDEST_BLOCKS for own in host.outside)
            and not any(each.overlaps(own) for each in others for own in host.outside)
        )

    @property
    def block(self) -> str:
        """A host that lost connections, with the outside ports that it used; empty = not known.

        The block itself may have more: a port may be reserved, or its frame lost.
        """
        host = next((host for host in self.losing if host.outside), None)
        return "" if host is None else f"{host.address} used {', and '.join(map(str, host.outside))}"

    @property
    def limit(self) -> tuple[int, Literal["seen", "guess"]] | None:
        """The number of connections that each losing host kept, and how sure it is that the number is a limit.

        A loss by share, by rate or by a full table leaves numbers that differ by chance. The gateway may limit some of
        the hosts only.
        """
        losing = self.losing
        most = max((host.stored for host in losing), default=0)
        room = max(1.0, _TOLERANCE * most)
        apart = most - min((host.stored for host in losing), default=0)
        if len(losing) < 2 or not most or apart > room:
            return None
        opened = sum(host.connections for host in losing)
        share = sum(host.stored for host in losing) / opened
        deviation = math.sqrt(opened / len(losing) * share * (1 - share))
        chance = min(1.0, (2 * apart + 1) / (math.sqrt(2 * math.pi) * deviation)) ** (len(losing) - 1)
        return None if chance > _GUESS else (most, "seen" if chance <= _SEEN else "guess")


def hosts_of(trial: Mapping[str, Any]) -> HostLosses:
    """Return the losses of each inside host from the record of a trial."""
    counts: Sequence[Mapping[str, Any]] = (trial["result"].get("state_table") or {}).get("by_source") or ()
    addresses = ((trial.get("request") or {}).get("initiator") or {}).get("source_addresses") or {}
    if not counts or "first" not in addresses:
        return HostLosses()
    first, step = ip_address(addresses["first"]), addresses.get("step") or 1
    hosts = tuple(_host(str(first + at * step), host) for at, host in enumerate(counts))
    return HostLosses(hosts, _pool(trial))


def _pool(trial: Mapping[str, Any]) -> str:
    """Return the gateway's outside addresses in words; empty = not known."""
    pool = ((trial.get("request") or {}).get("translation") or {}).get("pool")
    return f"{pool['first']} to {pool['last']}" if pool else ""


def _host(address: str, counts: Mapping[str, Any]) -> HostCounts:
    outside = tuple(HostPorts(str(one["address"]), one["first"], one["last"]) for one in counts.get("outside") or ())
    return HostCounts(address, counts["connections"], counts["stored"], outside)


@dataclass(frozen=True, slots=True)
class HopCounter:
    """A counter that rose.

    Attributes:
        place: part of the device, such as an interface; empty = the whole device.
        count: events that no counter has which it contains, > 0.
        case: counter that rose as well and decides the meaning; empty = none.
    """

    name: str
    place: str
    count: int
    case: str = ""

    @property
    def facts(self) -> CounterFacts:
        """Its row of the table, in the case that was seen."""
        return facts_of(self.name).given(self.case)

    @property
    def lost(self) -> int:
        """Number of events that are lost frames. It may exceed the frames: a frame may be lost in several pieces."""
        return self.count if self.facts.loses else 0


@dataclass(frozen=True, slots=True)
class HopLoss:
    """A hop of one device (empty = the tester), and its counters that rose."""

    hop: Hop
    device: str
    counters: tuple[HopCounter, ...]

    @property
    def lost(self) -> int:
        """Number of events of all its counters that are lost frames."""
        return sum(counter.lost for counter in self.counters)


@dataclass(frozen=True, slots=True)
class TrialHops:
    """All hops of a trial.

    Attributes:
        hops: from the sending to the receiving tester; of a device whose kernel was not read, those with counters.
        sent: frames of the test, as are the lost ones; those of a flood are not.
        late_delays: delays of the late frames; None = no frame was late, or they are not known.
        flood_lost: frames of a flood that were lost, >= 0; the counters have them, too.
        aside: counters of late and wrong frames that none of the phase has which failed the trial.
    """

    sent: int
    lost: int
    hops: tuple[HopLoss, ...]
    has_kernel_counters: bool
    hosts: HostLosses
    late_delays: LateDelays | None
    flood_lost: int
    aside: frozenset[str]

    @property
    def losing(self) -> HopLoss | None:
        """The hop that lost the most frames; None = no frame was lost, or most of them are in no counter."""
        kept = ((hop, tuple(each for each in hop.counters if each.name not in self.aside)) for hop in self.hops)
        most = max((replace(hop, counters=own) for hop, own in kept), key=lambda hop: hop.lost, default=None)
        return most if most is not None and self.lost and most.lost and most.lost >= self.without_counter else None

    @property
    def without_counter(self) -> int:
        """Number of lost frames that are in no counter."""
        return max(0, self.lost - sum(hop.lost for hop in self.hops))

    def lost_at(self, hop: HopLoss) -> int:
        """Return the number of frames that a hop lost: never more than were lost, whatever its counters count."""
        return min(hop.lost, self.lost)


def hops_of(trial: Mapping[str, Any]) -> TrialHops:
    """Return the hops of a trial from its record, as `trials.jsonl` has it, with a result."""
    result, network = trial["result"], _spoken(trial)
    phase2 = result.get("phase2") or {}
    tested = (result.get("phase1"), *(counts for name, counts in phase2.items() if name != _FLOOD))
    streams = [stream for stream in tested if stream]
    sent, lost = _sent_and_lost(streams)
    floods = [flood] if (flood := phase2.get(_FLOOD)) else []
    flooded, flood_lost = _sent_and_lost(floods)
    arrived = sent - lost + flooded - flood_lost
    translated = sum(map(_translated, (*streams, *floods)))
    # What the machine of several devices counts is no device's.
    kernels = [device for device in network or {} if device]
    names = [*kernels, *(place.split()[0] for place in trial.get("dropped") or {})]
    names += [cause.split()[0] for cause in trial.get("device_faults") or {} if " " in cause]
    devices = list(dict.fromkeys(names)) or ["gateway"]
    read = dict([*_of_tester(trial, streams, devices), *_of_devices(trial, network or {}, devices)])
    events = {key: count for key, count in read.items() if count > 0}
    _make_disjoint(events)
    for device, counts in (network or {}).items():
        inside = sum(n for key, n in events.items() if key[0] == device and _is_inside(facts_of(key[2])))
        _add_rest(events, (device, "", _NOT_SENT), _not_sent(counts, arrived=arrived) - inside, lost + flood_lost)
        for place, kept in _tun_kept(counts, arrived=translated).items():
            _add_rest(events, (device, place, _TUN_KEPT), kept, lost + flood_lost)
    opened = result.get("phase1") or {}
    found = [
        (device, HopCounter(name, place, count, _case(name, count, events, opened)))
        for (device, place, name), count in events.items()
        if count > 0
    ]
    first, *between, last = get_args(Hop)
    way = [(first, ""), *((hop, device) for device in (*devices, "") for hop in between), (last, "")]
    hops = [
        HopLoss(hop, device, tuple(each for where, each in found if (each.facts.hop, where) == (hop, device)))
        for hop, device in way
    ]
    known = [each for each in hops if each.counters or each.hop in (first, last) or each.device in kernels]
    late = _late_delays(trial, streams)
    # Phase 2 may be overloaded by far where a frame or two failed phase 1.
    aside = {name for name in WRONG if not opened.get(name)} if trial.get("failed_phase") == 1 else ()
    return TrialHops(sent, lost, tuple(known), bool(network), hosts_of(trial), late, flood_lost, frozenset(aside))


def _sent_and_lost(streams: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """Return the frames that streams sent and lost, without those that had no connection."""
    sent = sum(stream["intended_frames"] - sum(stream.get(name) or 0 for name in _UNSENT) for stream in streams)
    return sent, max(0, sent - sum(stream["received_frames"] for stream in streams))


def _translated(stream: Mapping[str, Any]) -> int:
    """Return the packets that the device translated for what arrived of a stream, at least.

    All messages of an exchange are packets, and native IPv6 in the background is only forwarded.
    """
    sent, lost = _sent_and_lost([stream])
    return (sent - lost - (stream.get("background_received") or 0)) * max(1, len(stream.get("messages") or ()))


def _late_delays(trial: Mapping[str, Any], streams: Sequence[Mapping[str, Any]]) -> LateDelays | None:
    """Return the delays of the late frames of all streams, as far as the record has them."""
    limit = (trial.get("plan") or {}).get("frame_timeout_seconds")
    return merged(
        LateDelays.measured(
            **stream["late_delay"],
            frames=stream["late"],
            limit=limit,
            messages=max(1, len(stream.get("messages") or ())),
        )
        if stream.get("late_delay")
        else None
        for stream in streams
        if stream.get("late")
    )


def _spoken(trial: Mapping[str, Any]) -> _Network | None:
    """Return the counters of the devices' kernels, of IPv6 only where the device speaks it.

    Interfaces on which IPv6 is switched off receive and discard what other hosts say by IPv6, such as the tester's.
    """
    network: _Network | None = trial.get("network_counters")
    request = trial.get("request") or {}
    if network is None or {request.get(side, {}).get("family") for side in ("initiator", "responder")} != {"ipv4"}:
        return network
    return {
        device: {name: n for name, n in counts.items() if counts.get("Ip6OutTransmits") or not name.startswith("Ip6")}
        for device, counts in network.items()
    }


def _add_rest(events: dict[_Key, int], key: _Key, count: int, lost: int) -> None:
    """Add events that follow from others, no more of them than lost frames that no other counter has."""
    counted = sum(count for (_, _, name), count in events.items() if facts_of(name).loses)
    events[key] = max(0, min(count, lost - counted))


def _case(name: str, count: int, events: Mapping[_Key, int], opened: Mapping[str, Any]) -> str:
    """Return the counter that rose as well and decides what `name` means; empty = none.

    Connections without an entry are counted after phase 1, so they are compared with the frames of that phase.
    """
    rose: Counter[str] = Counter()
    for (_, _, other), number in events.items():
        rose[facts_of(other).name] += number
    compared = {_WITHOUT_ENTRY: opened.get(name) or count}
    cases = [case.other for case in facts_of(name).cases]
    return next((other for other in cases if rose[other] >= _CASE_SHARE * compared.get(other, count)), "")


def _of_tester(
    trial: Mapping[str, Any], streams: Sequence[Mapping[str, Any]], devices: Sequence[str]
) -> Iterator[tuple[_Key, int]]:
    """Yield the counters of the tester's ports, and the frames that arrived wrong, by the device if there is only one.

    A tap refuses frames for which its queue has no room. It counts frames as dropped that receivers took, and so do
    some drivers (`counts_taken`). What a port did not send is not the tester's loss where the device's restart took the
    link down.
    """
    down = (trial.get("link_losses") or ()) if trial.get("restart") else ()
    tap, device = trial.get("taps"), devices[0] if len(devices) == 1 else ""
    taken = trial.get("counts_taken") or ()
    for side, port in trial["result"]["ports"].items():
        names = [name for name in _PORT if name != "rx_dropped" or side.capitalize() not in taken]
        names = [name for name in names if name not in _NOT_OUT or side.capitalize() not in down]
        for name in ("refused",) if tap else names:
            key = (device, f"{side} port", "queue full") if tap else ("", f"{side} port", name)
            yield key, port.get(name) or 0
        for name in _ERRORS:
            yield (device, f"{side} port", name), port.get(name) or 0
    for name in WRONG:
        place = _stray(trial) if name == "mistranslated" else ""
        yield ("" if name == LATE else device, place, name), sum(stream.get(name) or 0 for stream in streams)
    held, opened = trial.get("device_count_after"), trial["result"].get("phase1")
    yield (device, "", _ANSWERED), _answered((opened or {}).get("messages") or ())
    if held is not None and opened is not None and not trial.get("restart"):
        forwarded = sum(opened.get(name) or 0 for name in ("received_frames", "untranslated", "mistranslated"))
        yield (device, "", _WITHOUT_ENTRY), forwarded - held


def _answered(messages: Sequence[Mapping[str, Any]]) -> int:
    """Number of SYN-ACKs that the Responder did not send: it answers each SYN once, by a number that no proxy knows."""
    if len(messages) < 2 or messages[1]["name"] != "syn-ack":
        return 0
    syns, right, wrong = messages[0]["received"], messages[1]["received"], messages[1]["wrong"]
    return int(min(wrong, max(0, right + wrong - syns)))


def _stray(trial: Mapping[str, Any]) -> str:
    """Return the source of a mistranslated frame and the gateway's pool, as far as they are known."""
    ports = trial["result"]["ports"].values()
    seen = next((port for port in ports if port.get("mistranslated_address")), None)
    if seen is None:
        return ""
    source = f"source {seen['mistranslated_address']}, port {seen.get('mistranslated_port')}"
    return f"{source}; pool {pool}" if (pool := _pool(trial)) else source


def _of_devices(trial: Mapping[str, Any], network: _Network, devices: Sequence[str]) -> Iterator[tuple[_Key, int]]:
    """Yield the counters that the gateway reports, those of its kernel, and those of the lab's places."""
    for cause, count in (trial.get("device_faults") or {}).items():
        device, _, own = cause.rpartition(" ")
        named = (f"{kind} {own}" for kind in _REPORTED)
        yield (device or devices[0], "", next((name for name in named if name in counters()), own)), count
    for device, counts in network.items():
        for name, n in counts.items():
            yield from _of_kernel(device, name, n)
    for place, count in (trial.get("dropped") or {}).items():
        device, _, where = place.partition(" ")
        end = next((each for each in _PLACES if where.endswith(each)), where)
        yield (device, where.removesuffix(end).strip(), _PLACES.get(end, end)), count


def _of_kernel(device: str, name: str, count: int) -> Iterator[tuple[_Key, int]]:
    """Yield a counter of a device's kernel, if it counts lost frames."""
    kind, _, rest = name.partition(" ")
    if kind == "qdisc":
        place, _, discipline = rest.partition(" ")
        yield (device, place, "qdisc ingress" if discipline in _INGRESS else f"qdisc {discipline}"), count
    elif kind == "tun":
        place, _, what = rest.rpartition(" ")
        yield from [((device, place, _TUN_FULL), count)] if what == "dropped" else ()
    elif facts_of(name).name != name or name in counters():
        yield (device, "", name), count


def _tun_kept(counts: Mapping[str, int], *, arrived: int) -> dict[str, int]:
    """Return the packets that processes read from TUN interfaces and did not write back, by interface and process.

    `arrived` is the number of translated packets that arrived. A process that wrote fewer of them back sends them
    another way, as a switch does.
    """
    kept = {}
    for name, count in counts.items():
        kind, _, rest = name.partition(" ")
        place, _, way = rest.rpartition(" ")
        written = counts.get(f"tun {place} out", 0)
        if (kind, way) == ("tun", "in") and arrived <= written < count:
            kept[place] = count - written
    return kept


def _make_disjoint(events: dict[_Key, int]) -> None:
    """Take from each counter the events of the counters that it contains, the innermost first."""
    for device, place, inner in sorted(events, key=lambda key: _depth(facts_of(key[2]).name)):
        left = events[device, place, inner]
        # What a machine counts of its devices, they may count, too.
        own = [key for key in events if device in ("", key[0])]
        for key in [key for key in own if facts_of(inner).name in facts_of(key[2]).contains]:
            taken = min(left, events[key])
            events[key] -= taken
            left -= taken


def _depth(name: str) -> int:
    """Number of counters that contain one another, up to this one."""
    return 1 + max((_depth(inner) for inner in facts_of(name).contains), default=0)


def _is_inside(facts: CounterFacts) -> bool:
    """Whether each event is a packet that IP received, and neither sent nor took for its own."""
    return facts.loses and facts.hop in _INSIDE and not facts.own


def _not_sent(counts: Mapping[str, int], *, arrived: int) -> int:
    """Return the packets that IP received to forward, and did not send.

    Where frames arrived, a kernel that counts no sent packets is older than Linux 6.7. It counts forwarded ones, but
    not those that a translator such as Jool takes before and sends itself: what was not sent is not known then.
    """

    def total(*names: str) -> int:
        return sum(counts.get(name, 0) for name in names)

    received = total("IpInReceives", "Ip6InReceives") - total("IpInDelivers", "Ip6InDelivers")
    sent = total("IpOutTransmits", "Ip6OutTransmits")
    if sent or not arrived:
        return received - (sent - total("IpOutRequests", "Ip6OutRequests"))
    forwarded = total("IpForwDatagrams", "Ip6OutForwDatagrams")
    # What a flow table takes before IP, IP does not receive.
    return 0 if forwarded < arrived <= received else received - forwarded


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
        return self.held is not None and self.limit is not None and self.held >= _FULL_SHARE * self.limit

    @property
    def has_room_for_all(self) -> bool:
        """Whether the known limit is enough for all connections that it was offered."""
        return self.offered is not None and self.limit is not None and self.offered <= self.limit

    @property
    def is_cleared(self) -> bool:
        """Whether it was so full that connections may have been removed from it to make room."""
        return self._may_exceed(_CLEARED_SHARE) is True

    @property
    def has_room(self) -> bool:
        """Whether the known limit was surely not reached."""
        return self._may_exceed(_FULL_SHARE) is False

    @property
    def was_never_full(self) -> bool:
        """Whether it surely was not full before it was read, when Linux may have removed connections again."""
        return self._may_exceed(_CLEARED_SHARE) is False

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
    of_table, hop = _of_table(hops), hops.losing
    # Too small for the connections that it was offered, or by a counter of its own.
    if opens and table.is_full and (not table.has_room_for_all or of_table is not None):
        return _with(full, of_table)
    if not hops.lost:
        return common
    if hop is None:
        evicted = None if table.was_never_full else of_table
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
    if counter.name == _NOT_ENTERED and counter.lost < _PORTS_SHARE * hops.sent:
        named = replace(named, kind="clash", certainty="guess")
    return replace(named, certainty="guess") if named.limited_by != "device" and not opens else named


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
