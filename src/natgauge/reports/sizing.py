# SPDX-License-Identifier: Apache-2.0
"""How many subscribers gateways carry, in words, as a table, and as a document."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from natgauge.analysis.contrast import Span
from natgauge.analysis.sizing import (
    Ended,
    Sizing,
    SubscriberLimit,
    Subscribers,
    Unused,
    addresses_for,
    hosts_of,
    keeps_connections,
    least_blocks,
    log_ended,
    may_be_of_hosts,
    resource_of,
    sizes_in_words,
    sizings,
    why_unused,
    with_asked,
    without_tags,
)
from natgauge.analysis.unit_frames import mix_of
from natgauge.errors import UsageError
from natgauge.figure_text import at_least, at_most, exact, in_full, in_percent, number, with_noun
from natgauge.interval_text import Way, percent
from natgauge.metrics import metrics
from natgauge.metrics.metric import Resource
from natgauge.plain_text import capital
from natgauge.records.measurement import FUNCTIONAL, Result
from natgauge.reports import criterion
from natgauge.reports.graded_doubts import graded
from natgauge.reports.labels import names_of
from natgauge.statistics.interval import finite
from natgauge.tables import aligned
from natgauge.words import MAXIMUM_CONNECTIONS, OUTSIDE_PORTS, enumerated

#: What to change where a limit is too low.
_REMEDIES: Final[Mapping[Ended, str]] = {
    "new connections": "{cores}, or fewer rules that each new connection passes",
    "open connections": "a table for {entries} (of Linux gateways nf_conntrack_max), if memory allows, or "
    "shorter time-outs",
    "outside ports": "more outside addresses (--outside-addresses)",
    "port blocks": "more outside addresses (--outside-addresses), or smaller blocks",
    "frames": "{cores}, or a faster path for frames of open connections",
}
#: What to change where not the table ended open connections.
_NO_TABLE: Final = "what refuses them (natgauge explain)"
#: What to change where the log ended it, and not the gateway.
_OF_LOG: Final = "what writes the log: its records were lost (natgauge explain)"
#: What to change where a subscriber has more connections than its blocks have ports.
_LARGER_BLOCKS: Final = "larger blocks, or more blocks for each subscriber"
#: Why resources that subscribers take were not looked at.
_NOT_LOOKED_AT: Final = (
    "no result says for how long the gateway keeps them, so {} were not looked at (--device-timeout)"
)
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
#: A table of this many times the connections has room for those of the system, too.
_ROOM: Final = 1.1
#: The doubt of a capacity that more connections would raise.
_OF_RANGES: Final = "range limited"
#: The gateway in a stored command; a path that a shell would read as more than a path is not taken.
_GIVEN: Final = re.compile(r" --gateway ([\w./][\w./+@=-]*)(?: |$)", re.ASCII)
#: Columns of the table: those that decide first.
_HEADINGS: Final = ("limit", "subscribers at most", "in use", "needed by all", "measured")
#: Smaller numbers have three significant digits, and all others each digit of the whole number.
_WHOLE: Final = 100


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
        wanted = " or ".join(name for need in needs for name in _metrics_of(need))
        have = _left_out(results, asked) or "none"
        raise UsageError(f"size: needs results of {wanted}; given: {have}; measure one, or name its folder")
    return found


def exit_status(found: Sequence[Sizing], subscribers: int) -> int:
    """0 where every gateway carries them, 1 where one does not, 5 where it cannot be told of one."""
    fits = {sizing.fits(subscribers) for sizing in found}
    return 1 if "does not carry" in fits else 5 if "cannot tell" in fits else 0


def text(found: Sequence[Sizing], asked: Subscribers, given: Sequence[Result] = ()) -> str:
    """Return the answers, each with its table, then what they rest on; of the results given, which are left out."""
    answers = ["\n".join(_lines(sizing)) for sizing in found]
    left = _left_out(given, asked)
    return "\n\n".join([f"{question(asked)}.", *answers, *([f"Not used: {left}."] if left else [])])


def document(found: Sequence[Sizing], asked: Subscribers, given: Sequence[Result] = ()) -> dict[str, Any]:
    """Return the answers as JSON objects; an end, and a number of cores, that is not known is null."""
    return {
        "schema": "natgauge-size-1",
        "subscribers": asked.number,
        "each": {
            "connections": asked.connections,
            "new_per_second": asked.new,
            "megabits": asked.megabits,
            "mean_frame": asked.mean_frame,
            "device_timeout": asked.kept,
        },
        "outside_addresses": asked.outside_addresses,
        "gateways": [_gateway(sizing) for sizing in found],
        "not_used": [
            {
                "metric": result.metric,
                "gateway": result.gateway,
                "result": result.results,
                "reason": _reason(result, why),
            }
            for result, why in _unused(given, asked)
        ],
    }


def _gateway(sizing: Sizing) -> dict[str, Any]:
    first, asked = sizing.results[0], sizing.asked
    return {
        "gateway": first.gateway,
        "placement": first.placement,
        "device_cores": first.device_cores or None,
        "logging": first.parameter("logging"),
        "log_tolerance": first.parameter("log_tolerance"),
        "answer": sizing.fits(asked.number),
        "text": f"{_verdict(sizing)} {_reason_of(sizing)}",
        "functional": any(result.functional for result in sizing.results),
        "missing": list(sizing.missing),
        "no_limit": list(sizing.no_limit),
        "not_looked_at": list(sizing.not_looked_at),
        "least_outside_addresses": addresses_for(sizing),
        "device_timeout": asked.kept,
        "entries_each": asked.entries,
        "table_limit": sizing.table_limit,
        "limits": [
            {
                "ended": limit.ended,
                "unit": limit.unit,
                "each": limit.each,
                "all": limit.of_all(asked.number),
                "measured": _ends(limit.measured),
                "subscribers": _ends(limit.subscribers),
                "answer": limit.fits(asked.number),
                "metric": limit.result.metric if limit.result else None,
                "result": limit.result.results if limit.result else None,
                "frames": sizes_in_words(limit.result) if limit.result and limit.frame_octets else None,
            }
            for limit in sizing.limits
        ],
    }


def _ends(span: Span) -> list[float | None]:
    return [span.lower, finite(span.upper)]


def _lines(sizing: Sizing) -> list[str]:
    answer, names = answer_of(sizing), names_of(sizing.results)
    several = len(names) > 1
    return [
        answer.verdict,
        answer.reason,
        "",
        *aligned([answer.head, *answer.rows], right=range(1, len(answer.head))),
        "",
        *answer.sentences,
        *graded(
            ((f"{result.metric} of {name}", result.doubts) for result, name in zip(sizing.results, names, strict=True)),
            lambda having: f" ({', '.join(having)})" if several else "",
            brief=True,
            # The command for these subscribers is among the sentences.
            instead={_OF_RANGES: ""} if any(_larger_capacity(sizing)) else {},
        ),
    ]


@dataclass(frozen=True, slots=True)
class SizeAnswer:
    """What results of one gateway say of subscribers, without their doubts; the question is that to all gateways."""

    question: str
    verdict: str
    reason: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    sentences: tuple[str, ...]


def answer_of(sizing: Sizing) -> SizeAnswer:
    """Return the answer on one gateway."""
    rows = tuple(row for limit in sizing.limits for row in _rows(limit, sizing.asked))
    asked = question(sizing.asked)
    return SizeAnswer(asked, _verdict(sizing), _reason_of(sizing), _HEADINGS, rows, tuple(_sentences(sizing)))


def _sentences(sizing: Sizing) -> Iterator[str]:
    asked = sizing.asked
    for limit in sizing.limits:
        fits = limit.fits(asked.number)
        # An end that is not known is no limit; where the table's own is not passed, more is to be measured.
        is_known = limit.measured.upper not in (math.inf, sizing.table_limit) and not limit.is_least
        if fits == "does not carry" or (fits == "cannot tell" and is_known):
            yield f"To change: {limit.ended}: {_remedy(limit, sizing)}."
    yield from _larger_capacity(sizing)
    if sizing.no_limit:
        yield f"The gateway keeps no connections: {' and '.join(sizing.no_limit)} are no limit."
    yield from _table(sizing)
    yield from _shared_ports(sizing)
    addresses = addresses_for(sizing)
    if addresses is not None and asked.outside_addresses is None:
        yield f"Outside addresses: at least {in_full(addresses)}, {_if_taken(sizing)}."
    if sizing.fits(asked.number) == "does not carry":
        # Otherwise the first line says it.
        yield from (f"{capital(each)}." for each in _unmeasured(sizing))
    yield from _chosen_frames(sizing)
    if sizing.larger_frames:
        yield "No throughput was measured with frames as large as the mean: larger frames may cost more."
    yield "Each limit was measured alone: at most this number is carried when all are used at once."


def _table(sizing: Sizing) -> Iterator[str]:
    """Yield the entries of a subscriber that opens connections, why they are as many, and the limit that is known."""
    asked, holds = sizing.asked, sizing.table_limit
    if asked.entries is None or asked.new is None or "open connections" in sizing.no_limit:
        return
    opened = f"{in_full(asked.new)} new/s"
    if asked.kept is None:
        why = f"{opened}; no result says for how long the gateway keeps them: --device-timeout"
    else:
        why = f"{opened}, kept {in_full(asked.kept)} s"
        if asked.connections is not None:
            open_ones = with_noun(in_full(asked.connections), "open ones")
            why = f"the larger of {open_ones} and {in_full(asked.opened)} of {why}"
    least = "at least " if asked.may_take_more else ""
    each, every = in_full(asked.entries), in_full(_entries_of_all(asked))
    said = f"Table: {least}{with_noun(each, 'connections')} each ({why}), {least}{every} for all"
    if holds is not None:
        most = in_full(math.floor(exact(holds) / exact(asked.entries)))
        said += f"; its limit is {in_full(holds)}: at most {with_noun(most, 'subscribers')}"
    yield f"{said}."


def _entries_of_all(asked: Subscribers) -> int:
    return math.ceil(exact(asked.entries or 0) * asked.number)


def _larger_capacity(sizing: Sizing) -> Iterator[str]:
    """Yield the command that measures whether the table keeps the connections of all, where it was not tried so far."""
    needed, holds = _entries_of_all(sizing.asked), sizing.table_limit
    for limit in sizing.limits:
        by_ranges = limit.result is not None and limit.result.limited_by == "ranges"
        if by_ranges and limit.ended == "open connections" and limit.measured.lower < needed:
            yield f"To know more: {_capacity_command(sizing.results[0], needed, holds)}."


def _capacity_command(result: Result, needed: int, holds: float | None) -> str:
    command = f"natgauge measure table-capacity --gateway {_options(result)}"
    if needed > MAXIMUM_CONNECTIONS:
        return command
    larger = f" --table-size {math.ceil(_ROOM * needed)}" if holds is not None and holds < needed else ""
    return f"{command} --connections {needed}{larger}"


def _remedy(limit: SubscriberLimit, sizing: Sizing) -> str:
    number = sizing.asked.number
    # Of blocks whose number is known it cannot be told only where a subscriber may have too few ports.
    too_few = limit.ended == "port blocks" and (limit.is_of_one or limit.fits(number) == "cannot tell")
    entries, result = _entries_of_all(sizing.asked), limit.result
    is_table = sizing.table_limit is not None and sizing.table_limit < entries
    if limit.ended == "open connections" and not is_table and result is not None and result.limited_by == "device":
        return _NO_TABLE
    if limit.ended != "port blocks" and not is_table and result is not None and result.limited_by == "log":
        return _OF_LOG
    if too_few:
        return _LARGER_BLOCKS
    return _REMEDIES[limit.ended].format(
        cores=_more_cores(limit, number), entries=with_noun(in_full(entries), "connections")
    )


def _more_cores(limit: SubscriberLimit, number: int) -> str:
    """The cores that so many subscribers need, as a multiple of those that were measured, where these are known."""
    cores, most = limit.result.device_cores if limit.result is not None else 0, limit.subscribers
    if not cores or not most.lower:
        return "more or faster cores"
    needed = [math.ceil(cores * number / end) for end in (most.upper, most.lower)]
    # As many cores as it has may be enough: what is needed lies within the doubt.
    several = " to ".join(dict.fromkeys(map(in_full, needed)))
    about = f"about {several}" if needed[0] > cores else f"up to {in_full(needed[-1])}"
    return f"{about} such cores instead of {cores}, if cores add up (measure it: cores in [series] of a plan)"


def _shared_ports(sizing: Sizing) -> list[str]:
    """What must hold where a subscriber has more connections than ports, of which several may share one."""
    blocks, connections = sizing.blocks, sizing.asked.entries or 0
    if blocks is None or blocks.counts_connections or connections <= blocks.size:
        return []
    return [
        f"A block has {with_noun(in_full(blocks.size), 'ports')}: a subscriber with "
        f"{with_noun(in_full(connections), 'connections')} needs several "
        "remote endpoints" + (f", or up to {blocks.each} blocks." if blocks.each > 1 else ".")
    ]


def _if_taken(sizing: Sizing) -> str:
    """What each subscriber, or each connection, takes of the outside addresses."""
    blocks = sizing.blocks
    if blocks is None:
        return f"if each open connection takes a port of its own ({in_full(OUTSIDE_PORTS)} an address)"
    each = least_blocks(blocks, sizing.asked)
    taken = f"{in_full(each)} blocks" if each > 1 else "a block"
    ports = with_noun(in_full(blocks.size), "ports")
    return f"as each subscriber takes {taken} of {ports} ({in_full(blocks.per_address)} an address)"


def _verdict(sizing: Sizing) -> str:
    """Whether they are carried, in one line, with what was measured otherwise or not looked at."""
    first, asked = sizing.results[0], sizing.asked
    gateway = f"{first.gateway} ({_cores(first)}{_logging(first)})"
    subscribers, fits = with_noun(in_full(asked.number), "subscribers"), sizing.fits(asked.number)
    said = f"{gateway} {fits} {subscribers}"
    if fits == "cannot tell":
        said = f"Cannot tell whether {gateway} carries {subscribers}"
    elif fits == "carries" and len(set(asked.needs()).difference(sizing.no_limit)) > 1:
        said = f"No limit of {gateway}, each measured alone, is exceeded by {subscribers}"
    unusual = "; ".join(filter(None, map(_unusual, sizing.limits)))
    said += f"; measured: {unusual}" if unusual else ""
    said += f"; not looked at: {' and '.join(sizing.not_looked_at)}" if sizing.not_looked_at else ""
    return f"{said}{f' ({FUNCTIONAL})' if any(result.functional for result in sizing.results) else ''}."


def _reason_of(sizing: Sizing) -> str:
    """Why it cannot be told, what ends it first and at what number, and why something was not looked at."""
    fits = sizing.fits(sizing.asked.number)
    # A limit of which only a lower bound is known may come first in the table, and be none.
    deciding = [limit for limit in sizing.limits if limit.fits(sizing.asked.number) == fits]
    known = "known limit" if sizing.missing or sizing.not_looked_at else "limit"
    said = [f"why: {' and '.join(_unknown(sizing))}"] if fits == "cannot tell" else []
    said.append(f"the first {known} is {_at((deciding or sizing.limits)[0])}" if sizing.limits else "no limit is known")
    said += [_NOT_LOOKED_AT.format(" and ".join(sizing.not_looked_at))] if sizing.not_looked_at else []
    return f"{capital('; '.join(said))}."


def _cores(result: Result) -> str:
    cores = result.device_cores
    known = with_noun(cores, "cores") if cores else "cores not known"
    return f"{known}, placement {result.placement}"


def _logging(result: Result) -> str:
    """How a gateway logs, as what follows its cores; empty where it keeps no log."""
    way, tolerance = result.parameter("logging"), result.number("log_tolerance")
    if way is None:
        return ""
    return f", logging {way}" + (f" that may lack {in_percent(tolerance)} of the connections" if tolerance else "")


def _unusual(limit: SubscriberLimit) -> str:
    """A limit that was measured with other connections, or by another criterion, than subscribers expect; or empty."""
    result = limit.result
    if result is None:
        return ""
    state = ", half-open" if result.parameter("state") == "half-open" else ""
    transport = criterion.transport(result)
    is_strict = criterion.tolerance(result) is None and criterion.goals(result) is None
    lost = "" if is_strict else criterion.condition(result)
    said = f"{f' by {transport}' if transport else ''}{state}{lost}"
    return f"{limit.ended}{said}" if said else ""


def question(asked: Subscribers) -> str:
    """What each of how many subscribers takes, as the title of the answers."""
    frames = "" if asked.mean_frame is None else f" in frames of {in_full(asked.mean_frame)} octets"
    parts = [
        "" if asked.connections is None else with_noun(in_full(asked.connections), "open connections"),
        "" if asked.new is None else with_noun(in_full(asked.new), "new connections/s"),
        "" if asked.megabits is None else f"{in_full(asked.megabits)} Mbit/s{frames}",
    ]
    return (
        f"{with_noun(in_full(asked.number), 'subscribers')}, each with {enumerated([part for part in parts if part])}"
    )


def _of_frames(sizing: Sizing) -> SubscriberLimit | None:
    return next((limit for limit in sizing.limits if limit.ended == "frames"), None)


def _chosen_frames(sizing: Sizing) -> list[str]:
    """How the throughput was measured, and of several which was used, and why."""
    used, asked = _of_frames(sizing), sizing.asked
    if used is None or used.result is None:
        return []
    busier = used.busier_share or 1.0
    ways = {1.0: "one way", 0.5: "as many both ways"}
    way = ways.get(busier, f"with {in_percent(busier)} of them in the busier direction")
    tags = without_tags(used.result)
    is_mix = mix_of(used.result.parameters) and asked.mean_frame is None
    mix = f" on average: {sizes_in_words(used.result)}" if is_mix else ""
    frames = f"{_figure(used.each)} frames/s of {_figure(used.frame_octets or 0)} octets{tags}{mix}"
    said = f"A subscriber takes {frames}. Frames were measured {way}."
    if not sizing.other_frames:
        return [said]
    why = "they are the largest" if sizing.larger_frames else "they are the next to --mean-frame that are not smaller"
    if asked.mean_frame is None:
        why = "a mix is nearest to what subscribers send" if mix_of(used.result.parameters) else "it carries the least"
        why += "; --mean-frame chooses others"
    others = " and ".join(sizing.other_frames)
    frames = sizes_in_words(used.result)
    return [said, f"The throughput with frames of {frames} was used, not that of {others}: {why}."]


def _unknown(sizing: Sizing) -> list[str]:
    asked = sizing.asked
    open_ones = [limit for limit in sizing.limits if limit.fits(asked.number) == "cannot tell"]
    of_hosts = [
        one.result
        for one in open_ones
        # That of blocks whose number is not known has the same result, and its own sentence.
        if one.ended == "open connections" and one.result is not None and may_be_of_hosts(one.result, asked)
    ]
    of_log = [one.result for one in open_ones if one.result is not None and log_ended(one.result)]
    untold = [limit for limit in open_ones if _is_untold(limit)]
    # A table that nobody filled is among the resources that no result measured.
    kept = [one for one in open_ones if one.is_least]
    own_words = [*untold, *kept, *(one for one in open_ones if one.is_of_settings)]
    within = [one.ended for one in open_ones if one not in own_words and one.result not in (*of_hosts, *of_log)]
    said = [f"this number lies within the doubt of {', '.join(within)}"] if within else []
    if kept:
        said.append(
            "no result says for how long it keeps connections without frames, which fill its table next to the open "
            "ones (give --device-timeout)"
        )
    said += [
        f"{result.metric}, which no full table ended, had {with_noun(in_full(hosts_of(result)), 'inside hosts')}, and "
        "more hosts may keep more (measure it again, with --source-addresses for as many hosts as subscribers)"
        for result in of_hosts
    ]
    said += [
        f"{result.metric} ended where the log lacked connections, and the table may hold more (measure it again, with "
        "a larger buffer of the log's program, or at a lower rate by a smaller --gamma)"
        for result in of_log
    ]
    if untold:
        said.append(
            "no result says how many port blocks it has, and more subscribers than were measured may get none (measure "
            "it again, with as many inside hosts)"
        )
    together = sizing.most_of_cores(asked.number)
    if not open_ones and together > 1:
        said.append(
            f"new connections and frames together may take {percent(together, 'up', width=1)} of the same cores "
            f"(natgauge measure subscribers --subscriber PROFILE --gateway {_options(sizing.results[0])})"
        )
    return said + _unmeasured(sizing)


def _is_untold(limit: SubscriberLimit) -> bool:
    """Whether it is that of blocks whose number is not known."""
    return limit.ended == "port blocks" and limit.result is not None


def _unmeasured(sizing: Sizing) -> list[str]:
    first = sizing.results[0]
    commands = {need: f"natgauge measure {_metrics_of(need)[0]} --gateway {_options(first)}" for need in sizing.missing}
    if "open connections" in commands:
        commands["open connections"] = _capacity_command(first, _entries_of_all(sizing.asked), sizing.table_limit)
    return [f"no result says how many {need} it has ({command})" for need, command in commands.items()]


def _options(result: Result) -> str:
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


def _unused(results: Sequence[Result], asked: Subscribers) -> list[tuple[Result, Unused]]:
    of = {id(result): own for group in with_asked(results, asked) for result, own in group}
    found = ((result, why_unused(result, of[id(result)])) for result in results)
    return [(result, why) for result, why in found if why is not None]


def _left_out(results: Sequence[Result], asked: Subscribers) -> str:
    """The results that say nothing of these subscribers, with the reason; empty where there are none."""
    several = len({result.gateway for result in results}) > 1
    names: dict[str, dict[str, None]] = {}
    for result, why in _unused(results, asked):
        name = f"{result.metric} of {result.gateway}" if several else result.metric
        names.setdefault(_reason(result, why), {})[name] = None
    return "; ".join(f"{', '.join(own)} ({reason})" for reason, own in names.items())


def _reason(result: Result, why: Unused) -> str:
    resource = resource_of(result)
    return f"no {_OPTIONS[resource]}" if why == "not asked" and resource is not None else _LEFT_OUT[why]


def _at(limit: SubscriberLimit) -> str:
    if limit.is_of_one:
        return f"{limit.ended}: a subscriber has at most {with_noun(in_full(limit.measured.upper), 'connections')}"
    known = limit.subscribers.lower > 0 or math.isfinite(limit.subscribers.upper)
    if limit.busier_share is not None and math.isfinite(limit.measured.upper):
        most = in_full(math.floor(limit.subscribers.upper))
        both = _subscribers(limit.both_ways)
        return f"{limit.ended}, at {both} if both directions are as busy, up to {most} if the other is idle"
    return f"{limit.ended}, at {_subscribers(limit.subscribers)}" if known else f"{limit.ended}, not known"


def _subscribers(number: Span) -> str:
    """Return a number of subscribers, with other words for less than a whole one."""
    said = _span(number)
    return "less than 1 subscriber" if said == "0" else with_noun(said, "subscribers")


def _rows(limit: SubscriberLimit, asked: Subscribers) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a limit; frames have one for each share of the other direction."""
    name = limit.ended if limit.result is None else f"{limit.ended} ({limit.result.metric})"
    if limit.is_of_settings:
        name += " (table limit)"
    if limit.busier_share is None:
        yield _row(name, limit, limit.subscribers, asked)
        return
    yield _row(f"{name}, both ways busy", limit, limit.both_ways, asked)
    yield _row(f"{name}, one way idle", limit, limit.one_way, asked)


def _row(name: str, limit: SubscriberLimit, most: Span, asked: Subscribers) -> tuple[str, ...]:
    carried = limit.measured if limit.busier_share is None else Span(most.lower * limit.each, most.upper * limit.each)
    return (
        name,
        _span(most),
        _used(*(asked.number / end if end else math.inf for end in (most.upper, most.lower))),
        f"{_figure(limit.of_all(asked.number))} {limit.unit}",
        f"{_measured(carried)} {limit.unit}",
    )


def _used(least: float, most: float) -> str:
    """The share of a limit that is used, between these ends; 0 = the limit is not known from above."""
    full = percent(1.0, width=1)
    shown = [(share, percent(share, width=1)) for share in (least, most) if math.isfinite(share)]
    # A limit that is passed by little is passed.
    ends = [f"above {full}" if share > 1 and words == full else words for share, words in shown] or [f"above {full}"]
    if not least:
        return f"up to {ends[-1]}" if math.isfinite(most) else "not known"
    if math.isfinite(most):
        return " to ".join(dict.fromkeys(ends))
    return ends[0] if ends[0].startswith("above") else f"{ends[0]} or more"


def _figure(value: float, way: Way = "near") -> str:
    """A number as all of these answers have it: every digit of the whole number, and of small ones three in all."""
    # Without the last digits of a float, which are those of its arithmetic.
    value = float(f"{value:.12g}")
    if value < _WHOLE:
        return number(value) if way == "near" else at_least(value) if way == "down" else at_most(value)
    return in_full(round(value) if way == "near" else math.floor(value) if way == "down" else math.ceil(value))


def _span(known: Span) -> str:
    """Numbers of subscribers, none of which is more than is known."""
    lower = math.floor(known.lower)
    return _ends_of(lower, math.floor(known.upper) if math.isfinite(known.upper) else math.inf)


def _measured(known: Span) -> str:
    """What was measured, rounded outward: the printed range contains the true one."""
    return _ends_of(known.lower, known.upper)


def _ends_of(lower: float, upper: float) -> str:
    least, most = _figure(lower, "down"), "" if math.isinf(upper) else _figure(upper, "up")
    if not most:
        return f"{least} or more" if lower > 0 else "any number"
    if lower == upper:
        return _figure(lower)
    return f"{least} to {most}" if lower > 0 else f"up to {most}"


def _metrics_of(need: Resource) -> list[str]:
    return [metric.name for metric in metrics().values() if metric.resource == need]
