# SPDX-License-Identifier: Apache-2.0
"""The question on subscribers, which results say something of it, and their gateways, numbers and commands in words."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from natgauge.analysis.contrast import Span
from natgauge.analysis.sizing import (
    Ended,
    Sizing,
    SubscriberLimit,
    Subscribers,
    Unused,
    keeps_connections,
    resource_of,
    sizings,
    why_unused,
    with_asked,
    without_tags,
)
from natgauge.analysis.unit_frames import bits_of_unit, mix_of
from natgauge.errors import UsageError
from natgauge.figure_text import at_least, at_most, exact, in_full, in_percent, number, with_noun
from natgauge.interval_text import Way, in_bits
from natgauge.metrics import metrics
from natgauge.metrics.metric import Resource
from natgauge.plain_text import capital
from natgauge.records.measurement import Result
from natgauge.reports.labels import grouped
from natgauge.words import MAXIMUM_CONNECTIONS, enumerated

#: Limits as subjects of sentences.
SUBJECTS: Final[Mapping[Ended, str]] = {
    "new connections": "new connections per second",
    "open connections": "table entries",
    "outside ports": "ports of the outside addresses",
    "port blocks": "port blocks",
    "frames": "frames per second",
}
#: How subscribers use the directions, where both are as busy, and where one is not.
AS_MANY, NONE_UP = "if as many frames go up as down", "if no frames go up"
#: Settings that tell gateways of one name apart, in words.
_SETTINGS: Final = {
    "cpu": "on",
    "outside_addresses": "outside addresses",
    "psid_length": "PSID length",
    "psid_offset": "PSID offset",
}
#: Smaller numbers have three significant digits, and all others each digit of the whole number.
_WHOLE: Final = 100
#: A table of this many times the connections has room for those of the system, too.
_ROOM: Final = 1.1
#: The gateway in a stored command; a path that a shell would read as more than a path is not taken.
_GIVEN: Final = re.compile(r" --gateway ([\w./][\w./+@=-]*)(?: |$)", re.ASCII)


def shown(ended: Ended) -> str:
    """A limit as people read it: connections that ended are in the table, too, next to the open ones."""
    return "table entries" if ended == "open connections" else ended


def names_of(found: Sequence[Sizing]) -> list[str]:
    """The names of gateways; those of one name have what distinguishes them, too."""
    firsts = [sizing.results[0] for sizing in found]
    facts = [
        (
            cores_of(first),
            f"placement {first.placement}",
            log_of(first).removeprefix(", ") or "no log",
            *(f"{words} {first.parameter(name)}" for name, words in _SETTINGS.items()),
        )
        for first in firsts
    ]
    named = []
    for first, own in zip(firsts, facts, strict=True):
        alike = [other for of, other in zip(firsts, facts, strict=True) if of.gateway == first.gateway]
        differing = [fact for at, fact in enumerate(own) if len({other[at] for other in alike}) > 1]
        named.append(", ".join([first.gateway, *differing]))
    return named


def cores_of(result: Result) -> str:
    """How many cores a gateway has."""
    cores = result.device_cores
    return with_noun(cores, "cores") if cores else "cores not known"


def log_of(result: Result) -> str:
    """How a gateway logs, as what follows its cores; empty where it keeps no log."""
    way, tolerance = result.parameter("logging"), result.number("log_tolerance")
    if way is None:
        return ""
    return f", logging {way}" + (f" that may lack {in_percent(tolerance)} of the connections" if tolerance else "")


def ended_at(limit: SubscriberLimit) -> str:
    """The number of subscribers that a limit ends."""
    if limit.is_of_one:
        return f"a subscriber has at most {with_noun(in_full(limit.measured.upper), 'connections')}"
    known = limit.subscribers.lower > 0 or math.isfinite(limit.subscribers.upper)
    if limit.busier_share is not None and math.isfinite(limit.measured.upper):
        most = in_full(math.floor(limit.subscribers.upper))
        return f"{_subscribers(limit.both_ways)} {AS_MANY}, up to {most} {NONE_UP}"
    return _subscribers(limit.subscribers) if known else "not known"


def _subscribers(number: Span) -> str:
    """Return a number of subscribers, with other words for less than a whole one."""
    said = span_in_words(number)
    return "less than 1 subscriber" if said == "0" else with_noun(said, "subscribers")


def _figure_in_words(value: float, way: Way = "near") -> str:
    """A number as all of these answers have it: every digit of the whole number, and of small ones three in all."""
    # Without the last digits of a float, which are those of its arithmetic.
    value = float(f"{value:.12g}")
    if value < _WHOLE:
        return number(value) if way == "near" else at_least(value) if way == "down" else at_most(value)
    return in_full(round(value) if way == "near" else math.floor(value) if way == "down" else math.ceil(value))


def span_in_words(known: Span) -> str:
    """Numbers of subscribers, none of which is more than is known."""
    lower = math.floor(known.lower)
    return _ends_of(lower, math.floor(known.upper) if math.isfinite(known.upper) else math.inf)


def _ends_of(lower: float, upper: float) -> str:
    least, most = _figure_in_words(lower, "down"), "" if math.isinf(upper) else _figure_in_words(upper, "up")
    if not most:
        return f"{least} or more" if lower > 0 else "any number"
    if lower == upper:
        return _figure_in_words(lower)
    return f"{least} to {most}" if lower > 0 else f"up to {most}"


def cores_in_words(needed: Span) -> str:
    """Numbers of cores, none of which is less than is needed."""
    if math.isinf(needed.upper):
        return f"{in_full(needed.lower)} or more"
    return " to ".join(dict.fromkeys(map(in_full, (needed.lower, needed.upper))))


def cores_needed(sizing: Sizing) -> str:
    """How many cores all subscribers need, by how they use the directions; empty where their number is not known.

    `{0}` is the place of the noun, and `{1}` that of the condition of the least number.
    """
    number = sizing.asked.number
    both, one = (sizing.cores_for(number, use) for use in ("both ways", "one way"))
    if both is None or one is None:
        return ""
    return f"{cores_in_words(both)}{{0}}{f' (at least {in_full(one.lower)}{{1}})' if one.lower < both.lower else ''}"


def table_needed(sizing: Sizing) -> str:
    """The table that all subscribers need where the one that was set is too small; or empty."""
    entries, holds, asked = entries_of_all(sizing.asked), sizing.table_limit, sizing.asked
    needed = f"{with_noun(in_full(entries), 'entries')}{' or more' * asked.may_take_more}"
    return needed if holds is not None and holds < entries else ""


def emptier_table(sizing: Sizing) -> list[str]:
    """What was measured with clearly fewer connections in the table than subscribers have, as a line; or none."""
    fewer, asked = sizing.with_fewer, sizing.asked
    if not fewer:
        return []
    had = enumerated(list(dict.fromkeys(in_full(number) for number in fewer.values())))
    needed = f"{in_full(asked.least_entries)}{' or more' if asked.may_take_more or asked.entries is None else ''}"
    measured = f"{capital(enumerated(list(fewer)))} were measured with {had} entries in the table"
    return [f"{measured}; with {needed} they can be slower (not measured)."]


def commands_of(found: Sequence[Sizing]) -> dict[str, list[str]]:
    """The commands that measure what no result says, by what they are for; one for each gateway."""
    commands = grouped(each for sizing in found for each in _commands(sizing))
    return {f"To measure {what}": list(dict.fromkeys(own)) for what, own in commands.items()}


def _commands(sizing: Sizing) -> Iterator[tuple[str, str]]:
    """Yield what a command for a gateway measures, and the command."""
    number, table = sizing.asked.number, shown("open connections")
    gateway = _options_of(sizing.results[0])
    for need in sizing.missing:
        is_table = need == "open connections"
        other = f"natgauge measure {metrics_of(need)[0]} --gateway {gateway}"
        yield shown(need), _capacity_command(sizing) if is_table else other
    if any(_would_know_more(limit, entries_of_all(sizing.asked)) for limit in sizing.limits):
        yield f"more {table}", _capacity_command(sizing)
    if sizing.most_of_cores(number) > 1 and all(limit.fits(number) == "carries" for limit in sizing.limits):
        yield (
            "new connections and frames together",
            f"natgauge measure subscribers --subscriber PROFILE --gateway {gateway}",
        )


def _options_of(result: Result) -> str:
    """The gateway and its log as a command line takes them."""
    way, tolerance = result.parameter("logging"), result.number("log_tolerance")
    # Without them, the result would be of another group (`sizings`).
    logging = "" if way is None else f" --logging {shlex.quote(str(way))}"
    return f"{_given_gateway(result)}{logging}{f' --log-tolerance {tolerance:.10g}' if tolerance else ''}"


def _given_gateway(result: Result) -> str:
    """The gateway as a command line takes it: its name, or the path of its recipe that was given.

    The name in a result may have the recipe's digest behind it, where there are several versions of the recipe.
    """
    name = result.gateway.partition(" ")[0]
    given = _GIVEN.search(str(result.parameter("command") or ""))
    is_known = given is not None and given[1].rpartition("/")[2].removesuffix(".toml") == name
    return given[1] if given is not None and is_known else shlex.quote(name)


def _capacity_command(sizing: Sizing) -> str:
    needed, holds = entries_of_all(sizing.asked), sizing.table_limit
    command = f"natgauge measure table-capacity --gateway {_options_of(sizing.results[0])}"
    if needed > MAXIMUM_CONNECTIONS:
        return command
    larger = f" --table-size {math.ceil(_ROOM * needed)}" if holds is not None and holds < needed else ""
    return f"{command} --connections {needed}{larger}"


def _would_know_more(limit: SubscriberLimit, needed: int) -> bool:
    """Whether it was not tried so far if the table keeps the connections of all."""
    by_ranges = limit.result is not None and limit.result.limited_by == "ranges"
    return by_ranges and limit.ended == "open connections" and limit.measured.lower < needed


def configured_limit(sizing: Sizing, need: Resource) -> str:
    """The limit of the table as it was set, of which nobody measured how many connections it keeps; or empty."""
    holds = sizing.table_limit if need == "open connections" else None
    return "" if holds is None else f"{in_full(holds)} is the configured limit"


def entries_of_all(asked: Subscribers) -> int:
    """Entries of the table that all subscribers take, or take at least."""
    return math.ceil(exact(asked.entries or 0) * asked.number)


def metrics_of(need: Resource) -> list[str]:
    """The metrics that measure a resource."""
    return [metric.name for metric in metrics().values() if metric.resource == need]


#: Options that ask for a resource.
_OPTIONS: Final[Mapping[Resource, str]] = {
    "new connections": "--new-each",
    "open connections": "--connections-each",
    "frames": "--mbit-each",
}
#: Why results are left out; those of which nothing is asked have the option instead.
_LEFT_OUT: Final[Mapping[Unused, str]] = {
    "other metric": "no measure of subscribers",
    "own profile": "its number is the answer for subscribers of its own profile",
    "no limit": "the gateway keeps no connections, so they are no limit",
    "drawn frames": "its frames drew their four tuples (order with-replacement), so some opened no connection",
    "routed frames": "native IPv6 among its frames, which is only routed",
    "unknown size": "the size of its frames is not known",
}


def sized(results: Sequence[Result], asked: Subscribers) -> list[Sizing]:
    """Return what these results say of the subscribers, a sizing for each gateway, machine and number of cores."""
    found = sizings(results, asked)
    if not found:
        keeps = not results or any(map(keeps_connections, results))
        if asked.megabits is None and not keeps:
            names = " and ".join(dict.fromkeys(result.gateway for result in results))
            raise UsageError(
                f"size: {names}: keeps no connections, so neither open nor new ones are a limit; give --mbit-each, and "
                "a result of throughput",
                at="mbit_each",
            )
        needs = asked.needs() if keeps else ("frames",)
        wanted = " or ".join(name for need in needs for name in metrics_of(need))
        have = left_out(results, asked) or "none"
        raise UsageError(f"size: needs results of {wanted}; given: {have}; measure one, or name its folder")
    return found


def unused_of(results: Sequence[Result], asked: Subscribers) -> list[tuple[Result, Unused]]:
    """The results that say nothing of these subscribers, with the reason."""
    of = {id(result): own for group in with_asked(results, asked) for result, own in group}
    found = ((result, why_unused(result, of[id(result)])) for result in results)
    return [(result, why) for result, why in found if why is not None]


def left_out(results: Sequence[Result], asked: Subscribers) -> str:
    """The results that say nothing of these subscribers, with the reason; empty where there are none."""
    several = len({result.gateway for result in results}) > 1
    names: dict[str, dict[str, None]] = {}
    for result, why in unused_of(results, asked):
        name = f"{result.metric} of {result.gateway}" if several else result.metric
        names.setdefault(reason_of(result, why), {})[name] = None
    return "; ".join(f"{', '.join(own)} ({reason})" for reason, own in names.items())


def reason_of(result: Result, why: Unused) -> str:
    """Why a result is left out, in words."""
    resource = resource_of(result)
    return f"no {_OPTIONS[resource]}" if why == "not asked" and resource is not None else _LEFT_OUT[why]


def question_of(asked: Subscribers) -> str:
    """What each of how many subscribers takes."""
    frames = "" if asked.mean_frame is None else f" in frames of {in_full(asked.mean_frame)} octets"
    parts = [
        "" if asked.connections is None else with_noun(in_full(asked.connections), "open connections"),
        "" if asked.new is None else with_noun(in_full(asked.new), "new connections/s"),
        "" if asked.megabits is None else f"{in_full(asked.megabits)} Mbit/s{frames}",
    ]
    each = " with" if asked.number == 1 else ", each with"
    subscribers = with_noun(in_full(asked.number), "subscribers")
    return f"{subscribers}{each} {enumerated([part for part in parts if part])}"


@dataclass(frozen=True, slots=True)
class _Frames:
    """Frames/s of a subscriber in the busier direction, their mean octets as words and number, and their bits/s."""

    each: float
    octets: float
    in_words: str
    wire: float


def frames_of(sizing: Sizing) -> _Frames | None:
    """The frames of a subscriber as the throughput of a gateway has them; None where there is none."""
    used, asked = limit_of_frames(sizing), sizing.asked
    if used is None or used.result is None or asked.megabits is None:
        return None
    bits, octets = bits_of_unit(used.result.metric, used.result.parameters), used.frame_octets or 0
    if bits is None:
        return None
    mean = " on average" if mix_of(used.result.parameters) or asked.mean_frame is not None else ""
    words = f"{_figure_in_words(octets)} octets{without_tags(used.result)}{mean}"
    return _Frames(
        used.each, octets, words, 1e6 * asked.megabits + used.each * (bits.wire - bits.packets) / bits.frames
    )


def frames_of_all(found: Sequence[Sizing]) -> _Frames | None:
    """The frames of a subscriber; None where gateways were measured with different ones, or with none."""
    every = {frames for sizing in found if (frames := frames_of(sizing)) is not None}
    return every.pop() if len(every) == 1 else None


def sum_of_all(found: Sequence[Sizing]) -> str:
    """What all subscribers take together, as the end of the question; empty where one takes what each takes."""
    asked, frames = found[0].asked, frames_of_all(found)
    parts = list(_connections_of_all(found)) if asked.number > 1 else []
    if asked.megabits is not None:
        said = f"{in_bits(number(1e6 * asked.megabits * asked.number))} of IP packets in the busier direction"
        wire = "" if frames is None else f" ({in_bits(number(frames.wire * asked.number))} on the wire)"
        parts += [f"{said}{wire}", *([] if frames is None else [frames_in_words(frames, asked)])]
    return f": {'together ' if asked.number > 1 else ''}{', '.join(parts)}" if parts else ""


def _connections_of_all(found: Sequence[Sizing]) -> Iterator[str]:
    """Yield the connections that all open, and the entries of a table that they fill, as far as these are limits."""
    asked = found[0].asked
    if any(sizing.no_limit for sizing in found):
        return
    needed = {(sizing.asked.least_entries, sizing.asked.may_take_more) for sizing in found}
    if asked.entries is not None and len(needed) == 1:
        entries = with_noun(_figure_in_words(asked.least_entries), "table entries")
        own = found[0].asked.entries
        why = f": those that it opens in {in_full(asked.kept)} s" if own == asked.opened and asked.kept else ""
        each = f" (at least {in_full(own)} each{why})" if own != asked.connections else ""
        yield f"{entries}{each}{' or more' * asked.may_take_more}"
    if asked.new is not None:
        yield f"{with_noun(_figure_in_words(float(exact(asked.new) * asked.number)), 'new connections/s')}"


def frames_in_words(frames: _Frames, asked: Subscribers) -> str:
    """The frames/s of all subscribers together."""
    return f"{with_noun(number(frames.each * asked.number), 'frames/s')} of {frames.in_words}"


def limit_of_frames(sizing: Sizing) -> SubscriberLimit | None:
    """The limit of frames; None = no result says it."""
    return next((limit for limit in sizing.limits if limit.ended == "frames"), None)
