# SPDX-License-Identifier: Apache-2.0
"""Gateways, numbers of subscribers and of cores, and commands in words."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from natgauge.analysis.contrast import Span
from natgauge.analysis.sizing import Ended, Sizing, SubscriberLimit, Subscribers
from natgauge.figure_text import at_least, at_most, exact, in_full, in_percent, number, with_noun
from natgauge.interval_text import Way
from natgauge.metrics import metrics
from natgauge.metrics.metric import Resource
from natgauge.plain_text import capital
from natgauge.records.measurement import Result
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
            with_noun(first.device_cores, "cores") if first.device_cores else "cores not known",
            f"placement {first.placement}",
            log_of(first).removeprefix(", ") or "no log",
            *(
                f"{words} {first.parameter(name)}"
                for name, words in (
                    ("cpu", "on"),
                    ("outside_addresses", "outside addresses"),
                    ("psid_length", "PSID length"),
                    ("psid_offset", "PSID offset"),
                )
            ),
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


def figure_in_words(value: float, way: Way = "near") -> str:
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
    least, most = figure_in_words(lower, "down"), "" if math.isinf(upper) else figure_in_words(upper, "up")
    if not most:
        return f"{least} or more" if lower > 0 else "any number"
    if lower == upper:
        return figure_in_words(lower)
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
    commands: dict[str, list[str]] = {}
    for sizing in found:
        for what, command in _commands(sizing):
            commands.setdefault(f"To measure {what}", []).append(command)
    return {what: list(dict.fromkeys(own)) for what, own in commands.items()}


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
    return f"{given_gateway(result)}{logging}{f' --log-tolerance {tolerance:.10g}' if tolerance else ''}"


def given_gateway(result: Result) -> str:
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
