# SPDX-License-Identifier: Apache-2.0
"""Where the frames of a trial were lost, hop by hop, from the counters in its record; counters.toml has their hops."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict

#: The way of a frame. The hops between those of the tester belong to a device; "gateway" has causes of its own.
Hop = Literal["tester out", "ring", "softnet", "header", "conntrack", "routing", "rules", "gateway", "out", "tester in"]
#: Hops between the receipt of a packet by IP and its sending.
_INSIDE: Final = ("header", "conntrack", "routing")
_NOT_SENT: Final = "received, but not sent"
#: Ends of the names of a lab's places, and the counter of each.
_PLACES: Final = {"card ring": "card ring", "received": "received", "sent": "sent", "backlog": "softnet dropped"}
#: Fields of a trial's result: of a port, and of a stream.
_PORT: Final = ("refused", "redirect_errors", "tx_dropped", "rx_dropped")
_WRONG: Final = ("late", "damaged", "untranslated", "mistranslated")

#: Device (empty = the tester), place (empty = the whole device), name of a counter.
_Key = tuple[str, str, str]
_Network = Mapping[str, Mapping[str, int]]


class CounterFacts(BaseModel):
    """A row of counters.toml, which explains the fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    hop: Hop
    meaning: str
    knob: str
    contains: tuple[str, ...] = ()
    loses: bool = True
    own: bool = False


@dataclass(frozen=True, slots=True)
class HopCounter:
    """A counter that rose: its place, and the number of events that no counter has which it contains, > 0."""

    name: str
    place: str
    count: int

    @property
    def facts(self) -> CounterFacts:
        """Its row of the table."""
        return facts_of(self.name)

    @property
    def lost(self) -> int:
        """Number of lost frames."""
        return self.count if self.facts.loses else 0


@dataclass(frozen=True, slots=True)
class HopLoss:
    """A hop of one device (empty = the tester), and its counters that rose."""

    hop: Hop
    device: str
    counters: tuple[HopCounter, ...]

    @property
    def lost(self) -> int:
        """Number of lost frames of all its counters."""
        return sum(counter.lost for counter in self.counters)


@dataclass(frozen=True, slots=True)
class TrialHops:
    """All hops of a trial.

    Attributes:
        sent: frames that the tester intended to send, in all phases and directions.
        lost: frames of these that did not arrive right and in time.
        hops: from the sending to the receiving tester; of a device whose kernel was not read, those with counters.
        has_kernel_counters: whether the record has counters of the devices' kernels.
    """

    sent: int
    lost: int
    hops: tuple[HopLoss, ...]
    has_kernel_counters: bool

    @property
    def losing(self) -> HopLoss | None:
        """The hop that lost the most frames; None = no frame was lost, or most of them are in no counter."""
        most = max(self.hops, key=lambda hop: hop.lost)
        return most if self.lost and most.lost and most.lost >= self.without_counter else None

    @property
    def without_counter(self) -> int:
        """Number of lost frames that are in no counter."""
        return max(0, self.lost - sum(hop.lost for hop in self.hops))


@cache
def facts_of(name: str) -> CounterFacts:
    """Return the facts about a counter; a counter that the table lacks is the gateway's own."""
    row = _table().get(name.replace("Ext", "").replace("Ip6", "Ip").replace("Udp6", "Udp"))
    meaning, knob = "the gateway refused the frame, for a cause of its own", "see the gateway's documentation"
    return row or CounterFacts(name=name, hop="gateway", meaning=meaning, knob=knob)


@cache
def _table() -> Mapping[str, CounterFacts]:
    text = resources.files(__package__).joinpath("counters.toml").read_text(encoding="utf-8")
    return {row["name"]: CounterFacts(**row) for row in tomllib.loads(text)["counters"]}


def hops_of(trial: Mapping[str, Any]) -> TrialHops:
    """Return the hops of a trial from its record, as `trials.jsonl` has it, with a result."""
    result, network = trial["result"], trial.get("network_counters")
    streams = [stream for stream in (result.get("phase1"), *(result.get("phase2") or {}).values()) if stream]
    sent = sum(stream["intended_frames"] - (stream.get("skipped") or 0) for stream in streams)
    lost = max(0, sent - sum(stream["received_frames"] for stream in streams))
    names = [*(network or {}), *(place.split()[0] for place in trial.get("dropped") or {})]
    names += [cause.split()[0] for cause in trial.get("device_faults") or {} if " " in cause]
    devices = list(dict.fromkeys(names)) or ["gateway"]
    read = dict([*_of_tester(trial, streams, devices), *_of_devices(trial, network or {}, devices[0])])
    events = {key: count for key, count in read.items() if count > 0}
    _make_disjoint(events)
    for device, counts in (network or {}).items():
        counted = {key: count for key, count in events.items() if facts_of(key[2]).loses}
        inside = sum(count for key, count in counted.items() if key[0] == device and _is_inside(facts_of(key[2])))
        not_sent = _not_sent(counts, arrived=lost < sent) - inside
        events[device, "", _NOT_SENT] = max(0, min(not_sent, lost - sum(counted.values())))
    found = [(device, HopCounter(name, place, count)) for (device, place, name), count in events.items() if count > 0]
    first, *between, last = get_args(Hop)
    way = [(first, ""), *((hop, device) for device in (*devices, "") for hop in between), (last, "")]
    hops = [
        HopLoss(hop, device, tuple(each for where, each in found if (each.facts.hop, where) == (hop, device)))
        for hop, device in way
    ]
    known = [each for each in hops if each.counters or each.hop in (first, last) or each.device in (network or {})]
    return TrialHops(sent, lost, tuple(known), bool(network))


def _of_tester(
    trial: Mapping[str, Any], streams: Sequence[Mapping[str, Any]], devices: Sequence[str]
) -> Iterator[tuple[_Key, int]]:
    """Yield the counters of the tester's ports, and the frames that arrived wrong, by the device if there is only one.

    A tap refuses frames for which its queue has no room, and counts frames as dropped that receivers took.
    """
    tap, device = trial.get("taps"), devices[0] if len(devices) == 1 else ""
    for side, port in trial["result"]["ports"].items():
        for name in ("refused",) if tap else _PORT:
            key = (device, f"{side} port", "queue full") if tap else ("", f"{side} port", name)
            yield key, port.get(name) or 0
    for name in _WRONG:
        yield ("" if name == "late" else device, "", name), sum(stream.get(name) or 0 for stream in streams)


def _of_devices(trial: Mapping[str, Any], network: _Network, first: str) -> Iterator[tuple[_Key, int]]:
    """Yield the counters that the gateway reports, those of its kernel, and those of the lab's places."""
    for cause, count in (trial.get("device_faults") or {}).items():
        device, _, own = cause.rpartition(" ")
        # Linux reports counters of `conntrack -S`, which the kernel's counters replace.
        yield (device or first, "", f"conntrack {own}" if f"conntrack {own}" in _table() else own), count
    for device, counts in network.items():
        yield from (((device, "", name), n) for name, n in counts.items() if facts_of(name).hop != "gateway")
    for place, count in (trial.get("dropped") or {}).items():
        device, _, where = place.partition(" ")
        end = next((each for each in _PLACES if where.endswith(each)), where)
        yield (device, where.removesuffix(end).strip(), _PLACES.get(end, end)), count


def _make_disjoint(events: dict[_Key, int]) -> None:
    """Take from each counter the events of the counters that it contains."""
    for (device, _, inner), count in tuple(events.items()):
        left = count
        for key in [key for key in events if key[0] == device and facts_of(inner).name in facts_of(key[2]).contains]:
            taken = min(left, events[key])
            events[key] -= taken
            left -= taken


def _is_inside(facts: CounterFacts) -> bool:
    """Whether each event is a packet that IP received, and neither sent nor took for its own."""
    return facts.hop in _INSIDE and not facts.own


def _not_sent(counts: Mapping[str, int], *, arrived: bool) -> int:
    """Return the packets that IP received to forward, and did not send.

    Args:
        counts: counters of the device's kernel.
        arrived: whether frames arrived. If so, a kernel that counts no sent packets is older than Linux 6.7.
    """

    def total(*names: str) -> int:
        return sum(counts.get(name, 0) for name in names)

    sent = total("IpOutTransmits", "Ip6OutTransmits")
    forwarded = sent - total("IpOutRequests", "Ip6OutRequests")
    if not sent and arrived:
        forwarded = total("IpForwDatagrams", "Ip6OutForwDatagrams")
    return total("IpInReceives", "Ip6InReceives") - total("IpInDelivers", "Ip6InDelivers") - forwarded
