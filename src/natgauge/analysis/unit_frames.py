# SPDX-License-Identifier: Apache-2.0
"""What one unit of a rate consists of: its frames, the tester's own work, a log's work, the device that limits a chain.

A unit is a connection, a transaction, a query or a frame of the throughput: a rate in connections/s is no rate of
frames where a connection has several messages. What a link carries, and how often the tester's receivers run, follows
from the frames, and so do the bits of a rate. A link also carries what is sent beside the frames of the value: openings
of a mixed load, and broadcasts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Literal, get_args

from pydantic import JsonValue

from natgauge.ethernet import (
    ANSWER_OCTETS,
    BETWEEN_FRAMES,
    BROADCAST_EVERY,
    FRAME_OVERHEAD,
    IP_HEADER,
    OPENING_OCTETS,
    SEGMENT_OCTETS,
    frames_of_new,
    tag_octets,
    theoretical_maximum,
)
from natgauge.metrics import declared
from natgauge.metrics.catalogue import FLOOD, NEW_SHARE, SUBSCRIBER_RATES, THROUGHPUT
from natgauge.metrics.metric import CONNECTIONS_PER_SECOND, IN_ALL, LOST_PERCENT_AT, Counted
from natgauge.records.parameters import Parameters
from natgauge.statistics.summary import FigureSummary, summarize
from natgauge.words import DRAWN, SENDING, Query, Side, enumerated, sending

_SIDES: Final[tuple[Side, ...]] = get_args(Side)
#: A side's share of the frames of the throughput that is no other than the other side's.
_EVEN: Final = 0.5
#: Parameters that are mixes of frame sizes, and their form.
MIXES: Final = ("frame_sizes", "down_frame_sizes")
_MIX: Final = re.compile(r"\d{1,9}:\d{1,9}(?:,\d{1,9}:\d{1,9})*", re.ASCII)
#: Units that count the frames of a direction.
_OF_DIRECTIONS: Final = frozenset({"frames/s", "frames"})


@dataclass(frozen=True, slots=True)
class UnitFrame:
    """A frame of one unit of a rate.

    Attributes:
        octets: octets with FCS on the link of each side, of a mix of sizes the mean; a side is missing where they are
            not known.
        share: number of such frames in a unit, above 0; 1, except with unequal rates of both directions, of a
            subscriber, and of frames beside those of the value.
    """

    name: str
    sender: Side
    octets: Mapping[Side, float]
    share: float = 1.0


def frames_of(metric: str, parameters: Parameters) -> tuple[UnitFrame, ...]:
    """Return the frames of one unit of a metric's value, in their order; empty where the value is no rate of them."""
    counted = declared(metric).counts
    return () if counted is None else _OF_UNIT[counted](parameters)


def asked_by_dns64(query: object, aaaa_share: float = 0.0) -> float:
    """Return the queries, 1 to 2, that a DNS64 server asks for a name that it does not know (RFC 6147 section 5.1).

    A query of type A is handed on; one of type AAAA may need both, unless the name has such a record (`aaaa_share`).
    """
    return 1.0 if query == "a" else 2.0 - aaaa_share


def queries_of_far_side(parameters: Parameters) -> float:
    """Return the queries that reach the far side for each one of the resolution rate: 0 to 2.

    A gateway passes each on, a server of its own data none, and a DNS64 server asks for names that it does not know.
    """
    kind = parameters.get("kind")
    if kind != "dns64":
        return 0.0 if kind == "dns" else 1.0
    aaaa, cached = (
        float(share) if isinstance(share := parameters.get(name), int | float) else 0.0
        for name in ("aaaa_share", "cached_share")
    )
    return (1 - cached) * asked_by_dns64(parameters.get("query"), aaaa)


def received_frames(metric: str, parameters: Parameters) -> float:
    """Return the frames of one unit of a metric's value that the tester receives; 0 where it is no rate of frames.

    It receives all that it sent, unless the device answers itself: then the answer, and what the device asks.
    """
    if declared(metric).counts == "queries":
        return 1.0 + queries_of_far_side(parameters)
    return sum(frame.share for frame in frames_of(metric, parameters))


def is_of_frames(metric: str, parameters: Parameters) -> bool:
    """Whether a metric's value counts frames of one direction, and not connections or queries of several messages."""
    counted = declared(metric).counts
    return counted in ("frames", "load") or (counted != "subscriber" and len(frames_of(metric, parameters)) == 1)


def drawn_frames(metric: str, parameters: Parameters) -> float | None:
    """Return the frames of a phase 1 that drew their four tuples, of which a value counts each, whatever it opened.

    None where each frame has opened a connection, or the value counts something else.
    """
    if declared(metric).counts != "opening" or parameters.get("order") != DRAWN:
        return None
    number = parameters.get("draws") or parameters.get("connections")
    return float(number) if isinstance(number, int | float) else None


def counted_unit(metric: str, unit: str, parameters: Parameters) -> str:
    """Return the unit of a value, `unit`, and of drawn frames what it counts, whatever they opened."""
    return unit if drawn_frames(metric, parameters) is None else "frames/s of drawn four tuples"


def unit_with_direction(metric: str, unit: str, parameters: Parameters) -> str:
    """Return the unit of a value, as `counted_unit`; that of frames and of their rate includes the direction."""
    counted = counted_unit(metric, unit, parameters)
    return f"{counted} {sending_of(parameters)}" if counted in _OF_DIRECTIONS else counted


def sending_of(parameters: Parameters) -> str:
    """Return where the frames of a rate of phase 2 come from, in words."""
    return sending(parameters.get("directions"), is_balanced=parameters.get("down_share") in (None, _EVEN))


def frames_in_all(rate: float, figures: Mapping[str, FigureSummary], parameters: Parameters) -> float:
    """Return the frames/s of all directions and kinds; `rate` itself where the figures do not name a sum.

    Of a load of several kinds also what opens its connections, what closes those of TCP, and the flood beside it cross
    the device.
    """
    total = figures.get(IN_ALL)
    return rate if total is None else total.median + _of_connections(figures, parameters) + _of_flood(figures)


def highest_value(top: float, rate: float, figures: Mapping[str, FigureSummary], parameters: Parameters) -> float:
    """Return the rate, in the unit of `rate`, > 0, at which a load of the same kinds has `top` frames/s in all.

    A flood has as many frames at every rate, and so have new connections that the user gave a rate.
    """
    constant = _of_flood(figures)
    if parameters.get("new_rate") is not None:
        constant += _of_connections(figures, parameters)
    return rate * (top - constant) / (frames_in_all(rate, figures, parameters) - constant)


def _of_connections(figures: Mapping[str, FigureSummary], parameters: Parameters) -> float:
    """Frames/s of connections that come and leave beside the frames of a load."""
    opened = figures.get(CONNECTIONS_PER_SECOND)
    is_tcp = parameters.get("transport") == "tcp"
    return 0.0 if opened is None else opened.median * frames_of_new(is_tcp=is_tcp)


def _of_flood(figures: Mapping[str, FigureSummary]) -> float:
    flood = figures.get(FLOOD)
    return 0.0 if flood is None else flood.median


def sends_data(metric: str, parameters: Parameters) -> bool:
    """Whether frames of the chosen size are sent: TCP connections that are only opened or closed have none."""
    return parameters.get("transport") != "tcp" or declared(metric).sends_data


def most_units(
    metric: str, parameters: Parameters, figures: Mapping[str, FigureSummary] = MappingProxyType({})
) -> float | None:
    """Return the most units/s that the lab's links carry; None where speeds or octets are not known, or no frames.

    A link carries the frames of each direction by themselves, so its busier direction decides, and of the links the
    slower one (RFC 2544 section 26.1; RFC 5180 appendix A.1). What is sent beside the frames of the value takes its
    part of the link.

    Args:
        figures: figures of the result: a flood has the rate that was measured without it.
    """
    frames, speeds = frames_of(metric, parameters), parameters.get("link_speeds")
    if not frames or not isinstance(speeds, list) or len(speeds) != len(_SIDES):
        return None
    every = [*frames, *_beside(metric, parameters)]
    constant = _openings(parameters, _of_flood(figures) + (_fixed_new(metric, parameters) or 0.0))
    most = [
        _most_on(speed, side, *([frame for frame in each if frame.sender == sender] for each in (every, constant)))
        for side, speed in zip(_SIDES, speeds, strict=True)
        for sender in _SIDES
        if any(frame.sender == sender for frame in every)
    ]
    known = [units for units in most if units is not None]
    return min(known) if len(known) == len(most) else None


def share_of_link(
    metric: str, values: Sequence[float], parameters: Parameters, figures: Mapping[str, FigureSummary]
) -> FigureSummary | None:
    """Return the share of the rate that the links carry at most, where that is known (RFC 2544 section 26.1)."""
    most = most_units(metric, parameters, figures)
    return summarize([value / most for value in values]) if most else None


def most_frames(parameters: Parameters) -> float | None:
    """Return the most frames/s of each direction that sends, which the lab's links carry, whatever the value counts.

    Where the parameters do not say which directions send, both may.
    """
    both = {} if "directions" in parameters.flat() else {"directions": "both"}
    return most_units(THROUGHPUT.name, parameters.with_settings(both))


def _most_on(speed: JsonValue, side: Side, frames: Sequence[UnitFrame], constant: Sequence[UnitFrame]) -> float | None:
    """The most units/s of which the link of a side carries these frames, beside others a second; None = not known."""
    if not isinstance(speed, int) or any(side not in frame.octets for frame in (*frames, *constant)):
        return None
    taken = sum(frame.share / theoretical_maximum(speed, frame.octets[side]) for frame in constant)
    octets, number = _octets(frames, side)
    return max(0.0, 1 - taken) * theoretical_maximum(speed, octets / number) / number


def _beside(metric: str, parameters: Parameters) -> Sequence[UnitFrame]:
    """Frames that are sent with each unit of the value, and are no part of it."""
    counted, modifiers = declared(metric).counts, parameters.get("modifiers")
    if counted == "load" and _fixed_new(metric, parameters) is None:
        share = parameters.get("new_share")
        return _openings(parameters, 2 * (share if isinstance(share, int | float) else NEW_SHARE))
    if counted == "subscriber":
        return _openings(parameters, _of_subscriber(parameters).get("new", 0.0))
    if counted != "frames" or modifiers not in ("broadcast", "both"):
        return ()
    least, others = _least(parameters), BROADCAST_EVERY - 1
    return [
        UnitFrame("broadcast", frame.sender, least, frame.share / others) for frame in frames_of(metric, parameters)
    ]


def _fixed_new(metric: str, parameters: Parameters) -> float | None:
    """New connections/s beside every value; None where they are as many as go with it."""
    new = parameters.get("new_rate") if declared(metric).counts == "load" else None
    return float(new) if isinstance(new, int | float) else None


def _openings(parameters: Parameters, number: float) -> Sequence[UnitFrame]:
    """The frames that open so many connections, and that close as many by TCP."""
    if not number:
        return ()
    if parameters.get("transport") != "tcp":
        return (UnitFrame("opening", "initiator", _least(parameters), number),)
    every = (*_handshake(parameters), *_closing(parameters, "fin"))
    return [replace(frame, share=number * frame.share) for frame in every]


def _of_throughput(parameters: Parameters) -> tuple[UnitFrame, ...]:
    directions = parameters.get("directions")
    down = parameters.get("down_share")
    share = down if isinstance(down, float) and directions not in ("up", "down") else _EVEN
    up, back = (
        UnitFrame(frame.name, frame.sender, _with_background(frame.octets, parameters), frame.share)
        for frame in _both(parameters, 2 * (1 - share), 2 * share)
    )
    # Without a word on the directions nothing is known but one.
    return (up, back) if directions == "both" else (back,) if directions == "down" else (up,)


def _with_background(octets: Mapping[Side, float], parameters: Parameters) -> Mapping[Side, float]:
    """Mean octets of frames of which a share is native IPv6 with the same payload (`background_octets` of the engine).

    Of a packet that is translated, or taken out of a tunnel, the side with IPv4 has that payload and one header.
    """
    share, families = parameters.get("foreground_share"), {side: parameters.get(f"{side}_family") for side in _SIDES}
    if not isinstance(share, int | float) or share >= 1 or len(octets) < len(_SIDES) or None in families.values():
        return octets
    tags = {side: tag_octets(parameters.get(f"{side}_vlan")) for side in _SIDES}
    plain: Side = next((side for side in _SIDES if families[side] == "ipv4"), "initiator")
    longer = IP_HEADER["ipv6"] - IP_HEADER["ipv4"] if families[plain] == "ipv4" else 0
    native = octets[plain] - tags[plain] + longer
    return {side: share * each + (1 - share) * (native + tags[side]) for side, each in octets.items()}


def _subscriber(parameters: Parameters) -> tuple[UnitFrame, ...]:
    rates = _of_subscriber(parameters)
    return tuple(frame for frame in _both(parameters, rates.get("up", 0.0), rates.get("down", 0.0)) if frame.share)


def _both(parameters: Parameters, up: float, down: float) -> tuple[UnitFrame, UnitFrame]:
    """So many frames of each direction."""
    return (
        UnitFrame("frame", "initiator", _of_frames(parameters, "up"), up),
        UnitFrame("frame", "responder", _of_frames(parameters, "down"), down),
    )


def _of_subscriber(parameters: Parameters) -> Mapping[str, float]:
    """What one subscriber takes a second: "up" and "down" frames, and "new" connections; empty = not known."""
    rates = parameters.get(SUBSCRIBER_RATES)
    found = rates.items() if isinstance(rates, dict) else ()
    return {name: float(rate) for name, rate in found if isinstance(rate, int | float) and rate > 0}


def _queries(parameters: Parameters) -> tuple[UnitFrame, ...]:
    more = next((ANSWER_OCTETS[query] for query in get_args(Query) if query == parameters.get("query")), 0)
    sizes = _of_frames(parameters)
    answer = {side: octets + more for side, octets in sizes.items()}
    return UnitFrame("query", "initiator", sizes), UnitFrame("answer", "responder", answer)


def _opening(parameters: Parameters) -> tuple[UnitFrame, ...]:
    if parameters.get("transport") == "tcp":
        return _handshake(parameters)
    return (UnitFrame("frame", "initiator", _of_frames(parameters)),)


def _transaction(parameters: Parameters) -> tuple[UnitFrame, ...]:
    request = parameters.get("request_octets")
    data = request if isinstance(request, int) else 0
    syn, syn_ack, _ = _handshake(parameters)
    opened = (syn, syn_ack, _segment(parameters, "ACK", "initiator", data))
    response = _segment(parameters, "response", "responder", data)
    return (*opened, response, *_closing(parameters, parameters.get("close")))


def _handshake(parameters: Parameters) -> tuple[UnitFrame, UnitFrame, UnitFrame]:
    more = OPENING_OCTETS - SEGMENT_OCTETS
    syn, syn_ack = _segment(parameters, "SYN", "initiator", more), _segment(parameters, "SYN-ACK", "responder", more)
    return syn, syn_ack, _segment(parameters, "ACK", "initiator")


def _closing(parameters: Parameters, way: JsonValue) -> tuple[UnitFrame, ...]:
    """The segments that close a connection in this way."""
    if way == "rst":
        return (_segment(parameters, "reset", "initiator"),)
    if way != "fin":
        return ()
    fin, fin_ack = _segment(parameters, "FIN", "initiator"), _segment(parameters, "FIN-ACK", "responder")
    return fin, fin_ack, _segment(parameters, "ACK", "initiator")


def _segment(parameters: Parameters, name: str, sender: Side, more: int = 0) -> UnitFrame:
    """A TCP segment with `more` octets than one without data."""
    sizes = _of_sides(parameters.get("segment_octets"))
    families = {side: parameters.get(f"{side}_family") for side in _SIDES}
    longer = IP_HEADER["ipv6"] - IP_HEADER["ipv4"]
    plain = {side: SEGMENT_OCTETS + (longer if families[side] == "ipv6" else 0) for side in _SIDES}
    return UnitFrame(name, sender, {side: octets + more for side, octets in (sizes or plain).items()})


def mix_text(mix: object, unit: str = " octets") -> str:
    """Return a mix that a record has as people read it: "64, 594 and 1,518 octets (7:4:1)"; no mix as it is."""
    text = str(mix)
    if _MIX.fullmatch(text) is None:
        return f"{text}{unit}"
    shares = [part.split(":") for part in text.split(",")]
    return f"{enumerated([f'{int(size):,}' for size, _ in shares])}{unit} ({':'.join(weight for _, weight in shares)})"


def mix_of(parameters: Parameters) -> str:
    """Return the mix of frame sizes in words; empty where all frames have one size."""
    up, down = parameters.get("frame_sizes"), parameters.get("down_frame_sizes")
    if up is None or down is None:
        return "" if up is None else mix_text(up)
    return f"{mix_text(up)} {SENDING['up']} and {mix_text(down)} {SENDING['down']}"


def own_size(parameters: Parameters) -> JsonValue:
    """Return the one size that all frames have; None of a mix, with which a result has the size of those that open."""
    return None if mix_of(parameters) else parameters.get("frame_size")


def mix_in_words(parameters: Parameters) -> str:
    """Return a mix of frame sizes by its mean on the link of the side that has these sizes; empty for one size."""
    if not mix_of(parameters):
        return ""
    side: Side = "responder" if parameters.get("frame_side") == "responder" else "initiator"
    ways = ("up",) if parameters.get("down_frame_sizes") is None else ("up", "down")
    means = [_of_frames(parameters, way).get(side) for way in ways]
    if None in means:
        return "a mix of frame sizes"
    said = (f"{mean:,.0f} octets{f' {SENDING[way]}' * (len(ways) > 1)}" for way, mean in zip(ways, means, strict=True))
    return f"a mix of frame sizes ({' and '.join(said)} on average)"


def _of_frames(parameters: Parameters, way: str = "up") -> Mapping[Side, float]:
    """Octets of a frame of a direction on the link of each side; empty where the result does not have them."""
    means, size = parameters.get("mean_frame_octets"), parameters.get("frame_size")
    if mix_of(parameters):
        # What records have of one size besides is not the mean.
        return _of_sides(means.get(way) if isinstance(means, dict) else None)
    known = _of_sides(means.get(way) if isinstance(means, dict) else parameters.get("frame_octets"))
    if not known and isinstance(size, int):
        return dict.fromkeys(_SIDES, size)
    return known


def _least(parameters: Parameters) -> Mapping[Side, float]:
    """Octets of the Initiator's shortest frame on the link of each side: it opens connections beside others."""
    # Without a mix all frames from the Initiator have one size.
    return _of_sides(parameters.get("least_frame_octets")) or _of_frames(parameters)


def _of_sides(sizes: JsonValue) -> dict[Side, float]:
    found = {side: sizes.get(side) for side in _SIDES} if isinstance(sizes, dict) else {}
    return {side: octets for side, octets in found.items() if isinstance(octets, int | float)}


#: Frames of a unit by what it consists of.
_OF_UNIT: Final[Mapping[Counted, Callable[[Parameters], tuple[UnitFrame, ...]]]] = {
    "opening": _opening,
    "frames": _of_throughput,
    "queries": _queries,
    "transaction": _transaction,
    "closing": lambda parameters: _closing(parameters, parameters.get("tear_down_by")),
    "load": lambda parameters: _both(parameters, 1.0, 1.0),
    "subscriber": _subscriber,
}


Way = Literal["one", "each", "busier"]


@dataclass(frozen=True, slots=True)
class Bits:
    """Bits of the frames of one unit in its busier direction, on one link: on the wire, and of their IP packets alone.

    Attributes:
        wire: with FCS, preamble and the least gap between frames (RFC 5180 appendix A.1).
        way: "one" = all frames of a unit go one way; "each" = the other direction has as many bits; "busier" = fewer.
        left_out: frames that are sent beside these, as the end of a sentence; empty = none are.
    """

    wire: float
    packets: float
    frames: float
    way: Way
    left_out: str = ""

    @property
    def frame_octets(self) -> float:
        """Mean octets with FCS of a frame, without VLAN tags."""
        return self.packets / self.frames / 8 + FRAME_OVERHEAD


def bits_of_unit(metric: str, parameters: Parameters) -> Bits | None:
    """Return the bits of one unit of a metric's value; None where it is no rate of frames with a known size.

    They are those on the Initiator's link, where its frames' octets are known, or else on the Responder's.
    """
    frames = frames_of(metric, parameters)
    side = next((side for side in _SIDES if frames and all(side in frame.octets for frame in frames)), None)
    if side is None:
        return None
    ways = [[frame for frame in frames if frame.sender == sender] for sender in _SIDES]
    busier, other = sorted((_octets(way, side) for way in ways), reverse=True)
    octets, number = busier
    way: Way = "each" if busier == other else "busier" if other[1] else "one"
    overhead = FRAME_OVERHEAD + tag_octets(parameters.get(f"{side}_vlan"))
    wire, packets = 8 * (octets + number * BETWEEN_FRAMES), 8 * (octets - number * overhead)
    return Bits(wire, packets, number, way, _left_out(metric, parameters))


def _left_out(metric: str, parameters: Parameters) -> str:
    """The frames of connections that come and leave beside those of a load, as the end of a sentence."""
    if declared(metric).counts not in ("load", "subscriber"):
        return ""
    if not _fixed_new(metric, parameters) and not _beside(metric, parameters):
        return ""
    return ", without openings and closings" if parameters.get("transport") == "tcp" else ", without openings"


def _octets(frames: Sequence[UnitFrame], side: Side) -> tuple[float, float]:
    return sum(frame.share * frame.octets[side] for frame in frames), sum(frame.share for frame in frames)


#: A device limits a chain if at least this share of the lost frames was dropped there, in percent.
LEAST_PERCENT: Final = 50.0


@dataclass(frozen=True, slots=True)
class OwnWork:
    """The tester's own work for a unit of a rate, and all work for it at the rate that was found, in ns."""

    own_ns: float
    whole_ns: float

    @property
    def share(self) -> float:
        """Share of the time that is the tester's, above 0."""
        return self.own_ns / self.whole_ns


def own_work(metric: str, rate: float, parameters: Parameters) -> OwnWork | None:
    """Return the tester's own work in a rate; None where it is done elsewhere, or is not known.

    A process of the device waits while the tester works, so the times of both do not add up.

    Args:
        rate: all directions together, per second.
    """
    known = declared(metric)
    # The rate of the tester by itself, where the searches of this metric end at the latest.
    alone = parameters.get(f"tester_highest_phase{known.phase}_rate") if known.is_bounded else None
    if parameters.get("placement") != "shared" or parameters.get("own_processes"):
        return None
    if not isinstance(alone, int | float) or rate <= 0 or alone <= 0:
        return None
    cores = parameters.get("sender_cores")
    number = cores if isinstance(cores, int) and cores > 0 else 1
    return OwnWork(1e9 * number / alone, 1e9 * number / rate)


def log_work(parameters: Parameters) -> str | None:
    """Return a sentence on programs that write a log on cores that no figure counts; None where there are none.

    In `shared` placement they have every core, because the device's is that of the sender.
    """
    way = parameters.get("logging")
    if not isinstance(way, str) or parameters.get("placement") != "shared":
        return None
    return (
        f"placement shared: programs that write the log ({way}) run on any core, and the figure leaves out what they "
        "take of other cores than the device's"
    )


def limiting_device(figures: Mapping[str, float]) -> tuple[str, float] | None:
    """Return the device that dropped most of the lost frames, and its share in percent; None = not known."""
    lost = ((share, name) for name, share in figures.items() if name.startswith(LOST_PERCENT_AT))
    share, name = max(lost, key=lambda each: each[0], default=(0.0, ""))
    return None if share < LEAST_PERCENT else (name.removeprefix(LOST_PERCENT_AT), share)
