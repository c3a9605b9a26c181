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
    OF_CORES,
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
from natgauge.analysis.unit_frames import bits_of_unit, mix_of
from natgauge.errors import UsageError
from natgauge.figure_text import at_least, at_most, exact, in_full, in_percent, number, with_noun
from natgauge.interval_text import Way, in_bits, percent
from natgauge.metrics import metrics
from natgauge.metrics.metric import Resource
from natgauge.notes import Note
from natgauge.plain_text import capital
from natgauge.records.measurement import FUNCTIONAL, Result
from natgauge.reports import criterion
from natgauge.reports.graded_doubts import explained, graded, mark
from natgauge.reports.rows import own_share
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
#: The heads of the table, before those of the gateways.
_AT_MOST: Final = "subscribers at most"
_NEEDED: Final = "needed by all"
#: The gateway in a command that holds for several.
_ANY_GATEWAY: Final = "GATEWAY"
#: The most gateways that are columns of the page's table; of more each is a row.
_MOST_COLUMNS: Final = 4
#: Units of bits/s, the largest first.
_PREFIXES: Final = ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s"))
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


def text(found: Sequence[Sizing], asked: Subscribers, given: Sequence[Result] = (), width: int = 100) -> str:
    """Return the answers, one table, and what they rest on; of the results given, which are left out.

    Args:
        width: where a table with a column for each gateway is wider, each gateway is a row, if that is narrower.
    """
    said, left = answer_of(found), _left_out(given, asked)
    by_gateway, by_limit = (_aligned(table) for table in (said.table, transposed(said.table)))
    fits = max(map(len, by_gateway)) <= max(width, *map(len, by_limit))
    parts = [
        [said.question],
        *said.verdicts,
        by_gateway if fits else by_limit,
        [*said.sentences, *_doubts(found)],
        [f"Not used: {left}."] if left else [],
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _aligned(table: Sequence[Sequence[str]]) -> list[str]:
    return aligned(table, right=range(1, len(table[0])))


def document(found: Sequence[Sizing], asked: Subscribers, given: Sequence[Result] = ()) -> dict[str, Any]:
    """Return the answers as JSON objects; an end, and a number of cores, that is not known is null."""
    frames = _frames_of_all(found)
    wire = frames and frames.wire
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
        "all": {
            "megabits": None if asked.megabits is None else asked.number * asked.megabits,
            "wire_megabits": wire and asked.number * wire / 1e6,
            "frames_per_second": frames and asked.number * frames.each,
            "mean_frame": frames and frames.octets,
        },
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
        "text": " ".join(_told([sizing])),
        "functional": any(result.functional for result in sizing.results),
        "missing": list(sizing.missing),
        "no_limit": list(sizing.no_limit),
        "not_looked_at": list(sizing.not_looked_at),
        "cores": None if (cores := sizing.cores_for(asked.number)) is None else _ends(cores),
        "tester_share": _most_share(sizing),
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
        "doubts": [
            {"metric": result.metric, "word": doubt.word, "grade": doubt.grade, "text": doubt.text}
            for result in sizing.results
            for doubt in result.doubts
        ],
    }


def _ends(span: Span) -> list[float | None]:
    return [span.lower, finite(span.upper)]


@dataclass(frozen=True, slots=True)
class SizeAnswer:
    """What results say of subscribers, without their doubts; the question is with the sum of all of them.

    Attributes:
        verdicts: of gateways with the same answer the lines: the answer, what ends it first, then each of several.
        table: the head, and a row for each limit; behind its name and the need of all is a cell for each gateway.
    """

    title: str
    question: str
    verdicts: tuple[tuple[str, ...], ...]
    table: tuple[tuple[str, ...], ...]
    sentences: tuple[str, ...]

    @property
    def page_table(self) -> tuple[tuple[str, ...], ...]:
        """The table with as many columns as a page has room for."""
        return self.table if len(self.table[0]) - 2 <= _MOST_COLUMNS else transposed(self.table)


def transposed(table: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Return a table whose rows are its columns."""
    return tuple(zip(*table, strict=True))


def answer_of(found: Sequence[Sizing]) -> SizeAnswer:
    """Return the answer on all gateways, of which there is at least one."""
    asked = found[0].asked
    gateways = list(dict.fromkeys(sizing.results[0].gateway for sizing in found))
    subscribers = with_noun(in_full(asked.number), "subscribers")
    title = (
        f"Does {gateways[0]} carry {subscribers}?" if len(gateways) == 1 else f"Which gateway carries {subscribers}?"
    )
    return SizeAnswer(
        title,
        f"{_question(asked)}{_sum(found)}.",
        tuple(tuple(_told(group)) for group in _alike(found)),
        tuple(_table(found)),
        (*_merged(found), *_of_tester(found), *_of_marks(found)),
    )


def _names(found: Sequence[Sizing]) -> list[str]:
    """The names of gateways; those of one name have what distinguishes them, too."""
    firsts = [sizing.results[0] for sizing in found]
    facts = [
        (
            with_noun(first.device_cores, "cores") if first.device_cores else "cores not known",
            f"placement {first.placement}",
            _logging(first).removeprefix(", ") or "no log",
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


def _alike(found: Sequence[Sizing]) -> list[list[Sizing]]:
    """Gateways by their answers: those of a group have the same, but for their numbers and names."""
    groups: dict[tuple[object, ...], list[Sizing]] = {}
    for sizing in found:
        first = _first(sizing)
        shape = (
            _verdict([sizing], ""),
            _reasons(sizing, _ANY_GATEWAY),
            first and (first.ended, first.is_of_one, _of_cores(sizing, first) is None),
        )
        groups.setdefault(shape, []).append(sizing)
    return list(groups.values())


def _told(group: Sequence[Sizing]) -> list[str]:
    """The answer on gateways with the same answer, as lines: the verdict, the reason, and of several each gateway."""
    names, several = _names(group), len(group) > 1
    gateway = _ANY_GATEWAY if several else _given_gateway(group[0].results[0])
    before, behind = _reasons(group[0], gateway)
    firsts = [_first(sizing) for sizing in group]
    of_cores = [
        None if first is None else _of_cores(sizing, first, name, brief=at > 0)
        for at, (sizing, first, name) in enumerate(zip(group, firsts, names, strict=True))
    ]
    plain = ["" if first is None else _at(first) for first in firsts]
    known = "known limit" if group[0].missing or group[0].not_looked_at else "limit"
    first, lines = firsts[0], list[str]()
    limit = "no limit is known" if first is None else f"the first {known} is {first.ended}"
    if several and of_cores[0] is not None:
        first_line, *others = (f"{said}." for said in of_cores)
        lines = [capital(first_line), *(f"{name}: {said}" for name, said in zip(names[1:], others, strict=True))]
    elif several and len(set(plain)) > 1:
        lines = [f"{name}: {said}." for name, said in zip(names, plain, strict=True)]
    elif first is not None:
        limit += f": {of_cores[0]}" if of_cores[0] else f"{': ' if first.is_of_one else ', '}{plain[0]}"
    return [_verdict(group, enumerated(names)), f"{capital('; '.join([*before, limit, *behind]))}.", *lines]


def _first(sizing: Sizing) -> SubscriberLimit | None:
    """The limit that is stated as the first; None = no limit is known."""
    # A limit of which only a lower bound is known may come first in the table, and be none.
    deciding = _deciding(sizing)
    return next(iter(deciding or sizing.limits), None)


def _deciding(sizing: Sizing) -> list[SubscriberLimit]:
    """The limits from which the answer follows."""
    number = sizing.asked.number
    return [limit for limit in sizing.limits if limit.fits(number) == sizing.fits(number)]


def _of_cores(sizing: Sizing, limit: SubscriberLimit, name: str = "", *, brief: bool = False) -> str | None:
    """How many subscribers the cores of a gateway carry, and how many cores all need; None where that is no answer."""
    asked, needed = sizing.asked, sizing.cores_for(sizing.asked.number)
    is_of_cores = limit.ended in OF_CORES and limit.result is not None and limit.result.device_cores
    if limit.fits(asked.number) == "carries" or not is_of_cores or needed is None or not limit.subscribers.lower:
        return None
    cores = sizing.results[0].device_cores
    idle = limit.busier_share is not None and math.isfinite(limit.measured.upper)
    both = _span(limit.both_ways if idle else limit.subscribers)
    most = in_full(math.floor(limit.subscribers.upper)) if idle else ""
    if brief:
        return f"{both}{f', up to {most}' if idle else ''}; {_cores_in_words(needed)} {_noun_of_cores(needed)}"
    carries = f"one core of {name} carries" if cores == 1 else f"{in_full(cores)} cores of {name} carry"
    said = f"{carries} at most {both} of them"
    said += f" if both directions are as busy, up to {most} if one is idle" if idle else ""
    # As many cores as it has may be enough: what is needed lies within the doubt.
    about = "about " if needed.lower > cores else ""
    need = f"{about}{_cores_in_words(needed)} such {_noun_of_cores(needed)}"
    return f"{said}; {in_full(asked.number)} need {need}, if cores add up (not measured)"


def _cores_in_words(needed: Span) -> str:
    if math.isinf(needed.upper):
        return f"{in_full(needed.lower)} or more"
    return " to ".join(dict.fromkeys(map(in_full, (needed.lower, needed.upper))))


def _noun_of_cores(needed: Span) -> str:
    return "core" if needed.upper == 1 else "cores"


def _merged(found: Sequence[Sizing]) -> Iterator[str]:
    """Yield the sentences on gateways, each once; those that do not hold for all have the names of theirs."""
    given = [_given_gateway(sizing.results[0]) for sizing in found]
    gateway = given[0] if len(set(given)) == 1 else _ANY_GATEWAY
    for part in (_changes, _facts):
        said: dict[str, list[tuple[str, str]]] = {}
        for name, sizing, own in zip(_names(found), found, given, strict=True):
            every = zip(part(sizing, gateway, found), part(sizing, own, found), strict=True)
            for general, of_one in every:
                said.setdefault(general, []).append((name, of_one))
        for general, of in said.items():
            # A command for one gateway alone names it.
            ours = of[0][1] if len(of) == 1 else general
            yield ours if len(of) == len(found) else f"{enumerated([name for name, _ in of])}: {ours}"


def _changes(sizing: Sizing, gateway: str, found: Sequence[Sizing]) -> Iterator[str]:  # noqa: ARG001 - as `_facts`
    """Yield what to change, and what to measure."""
    asked = sizing.asked
    for limit in sizing.limits:
        fits = limit.fits(asked.number)
        # An end that is not known is no limit; where the table's own is not passed, more is to be measured.
        is_known = limit.measured.upper not in (math.inf, sizing.table_limit) and not limit.is_least
        if fits == "does not carry" or (fits == "cannot tell" and is_known):
            yield f"To change: {limit.ended}: {_remedy(limit, sizing)}."
    yield from _larger_capacity(sizing, gateway)
    if sizing.fits(asked.number) == "does not carry":
        # Otherwise the first lines say it.
        yield from _to_measure(sizing, gateway)


def _facts(sizing: Sizing, gateway: str, found: Sequence[Sizing]) -> Iterator[str]:  # noqa: ARG001 - as `_changes`
    """Yield what the numbers rest on."""
    asked = sizing.asked
    if sizing.no_limit:
        yield f"A gateway that keeps no connections has no limit of {' and '.join(sizing.no_limit)}."
    yield from _entries(sizing)
    yield from _shared_ports(sizing)
    addresses = addresses_for(sizing)
    if addresses is not None and asked.outside_addresses is None:
        yield f"Outside addresses: at least {in_full(addresses)}, {_if_taken(sizing)}."
    yield from _chosen_frames(sizing, found)
    if sizing.larger_frames:
        yield "No throughput was measured with frames as large as the mean: larger frames may cost more."
    yield "Each limit was measured alone: where all are used at once, at most this number is carried."


def _to_measure(sizing: Sizing, gateway: str) -> Iterator[str]:
    """Yield what no result measured, with what is known of it, and the command that does."""
    for need, command in _commands(sizing, gateway).items():
        limit = _configured(sizing, need)
        yield f"Not measured: {need}{f'; {limit}' if limit else ''}. To measure: {command}."


def _configured(sizing: Sizing, need: Resource) -> str:
    """The limit of the table as it was set, of which nobody measured how many connections it keeps; or empty."""
    holds = sizing.table_limit if need == "open connections" else None
    return "" if holds is None else f"{in_full(holds)} is the configured limit"


def _entries(sizing: Sizing) -> Iterator[str]:
    """Yield the entries of a subscriber that opens connections, and why they are as many."""
    asked = sizing.asked
    if asked.entries is None or asked.new is None or "open connections" in sizing.no_limit:
        return
    opened, entries = f"{in_full(asked.new)} new/s", with_noun(in_full(asked.entries), "entries")
    if asked.kept is None:
        yield (
            f"Table: each takes at least {entries}; {opened} may fill more, but no result says for how long the "
            "gateway keeps them (--device-timeout)."
        )
        return
    kept = f"{opened}, each kept {in_full(asked.kept)} s after its last frame"
    if asked.connections is None:
        yield f"Table: each takes {entries}: {kept}."
        return
    given = with_noun(in_full(asked.connections), "open connections")
    if asked.entries == asked.opened:
        yield f"Table: {kept}, fills {entries} for each subscriber, not only the {given} that you gave."
    else:
        yield f"Table: {entries} for each subscriber, the {given}: {kept}, fills only {in_full(asked.opened)}."


def _entries_of_all(asked: Subscribers) -> int:
    return math.ceil(exact(asked.entries or 0) * asked.number)


def _larger_capacity(sizing: Sizing, gateway: str) -> Iterator[str]:
    """Yield the command that measures whether the table keeps the connections of all, where it was not tried so far."""
    needed = _entries_of_all(sizing.asked)
    for limit in sizing.limits:
        by_ranges = limit.result is not None and limit.result.limited_by == "ranges"
        if by_ranges and limit.ended == "open connections" and limit.measured.lower < needed:
            yield f"To know more: {_capacity_command(sizing, gateway)}."


def _capacity_command(sizing: Sizing, gateway: str) -> str:
    needed, holds = _entries_of_all(sizing.asked), sizing.table_limit
    command = f"natgauge measure table-capacity --gateway {_options(sizing, gateway)}"
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
    # How many cores are needed is in the table.
    cores = "more cores" if sizing.cores_for(number) is not None else "more or faster cores"
    return _REMEDIES[limit.ended].format(cores=cores, entries=with_noun(in_full(entries), "connections"))


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


def _verdict(group: Sequence[Sizing], names: str) -> str:
    """Whether they are carried by gateways with the same answer, with what was measured otherwise or not looked at."""
    sizing, one = group[0], len(group) == 1
    first, asked = sizing.results[0], sizing.asked
    gateways = f"{names} ({_cores(first)}{_logging(first)})"
    subscribers, fits = with_noun(in_full(asked.number), "subscribers"), sizing.fits(asked.number)
    said = f"{gateways} {'does' if one else 'do'} not carry {subscribers}"
    carry = "carries" if one else "carry"
    if fits == "cannot tell":
        said = f"Cannot tell whether {gateways} {carry} {subscribers}"
    elif fits == "carries":
        several = len(set(asked.needs()).difference(sizing.no_limit)) > 1
        alone = f"No limit of {gateways}, each measured alone, is exceeded by {subscribers}"
        said = alone if several else f"{gateways} {carry} {subscribers}"
    unusual = "; ".join(filter(None, map(_unusual, sizing.limits)))
    said += f"; measured: {unusual}" if unusual else ""
    said += f"; not looked at: {' and '.join(sizing.not_looked_at)}" if sizing.not_looked_at else ""
    return f"{said}{f' ({FUNCTIONAL})' if any(result.functional for result in sizing.results) else ''}."


def _reasons(sizing: Sizing, gateway: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Why it cannot be told, which is said before the first limit; and why something was not looked at."""
    fits = sizing.fits(sizing.asked.number)
    before = (f"why: {' and '.join(_unknown(sizing, gateway))}",) if fits == "cannot tell" else ()
    unseen = " and ".join(sizing.not_looked_at)
    return before, (_NOT_LOOKED_AT.format(unseen),) if unseen else ()


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


def _question(asked: Subscribers) -> str:
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


def _frames_of(sizing: Sizing) -> _Frames | None:
    """The frames of a subscriber as the throughput of a gateway has them; None where there is none."""
    used, asked = _of_frames(sizing), sizing.asked
    if used is None or used.result is None or asked.megabits is None:
        return None
    bits, octets = bits_of_unit(used.result.metric, used.result.parameters), used.frame_octets or 0
    if bits is None:
        return None
    mean = " on average" if mix_of(used.result.parameters) or asked.mean_frame is not None else ""
    words = f"{_figure(octets)} octets{without_tags(used.result)}{mean}"
    return _Frames(
        used.each, octets, words, 1e6 * asked.megabits + used.each * (bits.wire - bits.packets) / bits.frames
    )


def _frames_of_all(found: Sequence[Sizing]) -> _Frames | None:
    """The frames of a subscriber; None where gateways were measured with different ones, or with none."""
    every = {frames for sizing in found if (frames := _frames_of(sizing)) is not None}
    return every.pop() if len(every) == 1 else None


def _sum(found: Sequence[Sizing]) -> str:
    """The bits and frames of all subscribers together, as the end of the question; empty without bits."""
    asked, frames = found[0].asked, _frames_of_all(found)
    if asked.megabits is None:
        return ""
    together = "together " if asked.number > 1 else ""
    said = f": {together}{in_bits(number(1e6 * asked.megabits * asked.number))} of IP packets in the busier direction"
    if frames is not None:
        wire = in_bits(number(frames.wire * asked.number))
        said += f" ({wire} on the wire), {_frames_in_words(frames, asked)}"
    return said


def _frames_in_words(frames: _Frames, asked: Subscribers) -> str:
    return f"{with_noun(number(frames.each * asked.number), 'frames/s')} of {frames.in_words}"


def _of_frames(sizing: Sizing) -> SubscriberLimit | None:
    return next((limit for limit in sizing.limits if limit.ended == "frames"), None)


def _chosen_frames(sizing: Sizing, found: Sequence[Sizing]) -> list[str]:
    """How the throughput was measured, and of several which was used, and why."""
    used, asked = _of_frames(sizing), sizing.asked
    if used is None or used.result is None:
        return []
    busier, sizes = used.busier_share or 1.0, sizes_in_words(used.result)
    ways = {
        1.0: f"frames of {sizes} one way",
        0.5: f"as many frames from inside as from outside, of {sizes}",
    }
    way = ways.get(busier, f"frames of {sizes}, {in_percent(busier)} of them in the busier direction")
    said, frames = [f"The measurement sent {way}."], _frames_of(sizing)
    if frames is not None and _frames_of_all(found) is None:
        wire = in_bits(number(frames.wire * asked.number))
        said.append(f"All together are {_frames_in_words(frames, asked)} ({wire} on the wire).")
    if not sizing.other_frames:
        return said
    why = "they are the largest" if sizing.larger_frames else "they are the next to --mean-frame that are not smaller"
    if asked.mean_frame is None:
        why = "a mix is nearest to what subscribers send" if mix_of(used.result.parameters) else "it carries the least"
        why += "; --mean-frame chooses others"
    others = " and ".join(sizing.other_frames)
    return [*said, f"The throughput with frames of {sizes} was used, not that of {others}: {why}."]


def _of_tester(found: Sequence[Sizing]) -> Iterator[str]:
    """Yield that rates contain the tester's own work, where it was done on the device's cores, with its share."""
    names, shares = list[str](), list[float]()
    for name, sizing in zip(_names(found), found, strict=True):
        rates = [result for result in _rates(sizing) if result.placement == "shared"]
        names += [name] if rates else []
        shares += [share for result in rates if (share := own_share(result)) is not None]
    if names:
        ends = dict.fromkeys(percent(end(shares), width=1).removesuffix(" %") for end in (min, max) if shares)
        part = f" ({' to '.join(ends)} % of the time)" if shares else ""
        of = "" if len(names) == len(found) else f" ({enumerated(names)})"
        yield (
            f"Placement shared{of}: the rates contain the tester's own work{part}, so that the gateway by itself "
            "carries somewhat more."
        )


def _rates(sizing: Sizing) -> list[Result]:
    """The results of limits that follow from what the cores do."""
    return [limit.result for limit in sizing.limits if limit.result is not None and limit.ended in OF_CORES]


def _most_share(sizing: Sizing) -> float | None:
    return max((share for result in _rates(sizing) if (share := own_share(result)) is not None), default=None)


def _graves(result: Result | None) -> list[Note]:
    """The doubts of a result that could change the answer."""
    return [] if result is None else [doubt for doubt in result.doubts if doubt.grade == "answer"]


def _of_marks(found: Sequence[Sizing]) -> list[str]:
    """What the marks in the table mean, with the doubts; none where no figure has a mark."""
    said = explained([_graves(limit.result) for sizing in found for limit in sizing.limits])
    return [said] if said else []


def _doubts(found: Sequence[Sizing]) -> list[str]:
    """The doubts that could change the answers, in one line; none where there are none.

    What is not carried whatever a doubt leaves has its mark in the table alone.
    """
    deciding = [
        (f"{result.metric} of {name}", _graves(result))
        for name, sizing in zip(_names(found), found, strict=True)
        if sizing.fits(sizing.asked.number) != "does not carry"
        for result in {id(limit.result): limit.result for limit in _deciding(sizing) or sizing.limits}.values()
        if result is not None and _graves(result)
    ]
    lines = graded(
        deciding,
        lambda having: f" ({', '.join(having)})",
        brief=True,
        # The command for these subscribers is among the sentences.
        instead={_OF_RANGES: ""} if any(said for one in found for said in _larger_capacity(one, _ANY_GATEWAY)) else {},
    )
    return [" ".join(lines)] if lines else []


def _unknown(sizing: Sizing, gateway: str) -> list[str]:
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
            f"(natgauge measure subscribers --subscriber PROFILE --gateway {_options(sizing, gateway)})"
        )
    return said + _unmeasured(sizing, gateway)


def _is_untold(limit: SubscriberLimit) -> bool:
    """Whether it is that of blocks whose number is not known."""
    return limit.ended == "port blocks" and limit.result is not None


def _unmeasured(sizing: Sizing, gateway: str) -> list[str]:
    said = [(need, _configured(sizing, need), command) for need, command in _commands(sizing, gateway).items()]
    return [
        f"no result says how many {need} it has{f', and {limit}' if limit else ''} ({command})"
        for need, limit, command in said
    ]


def _commands(sizing: Sizing, gateway: str) -> dict[Resource, str]:
    """The commands that measure what no result says."""
    given = _options(sizing, gateway)
    commands = {need: f"natgauge measure {_metrics_of(need)[0]} --gateway {given}" for need in sizing.missing}
    if "open connections" in commands:
        commands["open connections"] = _capacity_command(sizing, gateway)
    return commands


def _options(sizing: Sizing, gateway: str) -> str:
    """The gateway and its log as a command line takes them."""
    result = sizing.results[0]
    way, tolerance = result.parameter("logging"), result.number("log_tolerance")
    # Without them, the result would be of another group (`sizings`).
    logging = "" if way is None else f" --logging {shlex.quote(str(way))}"
    return f"{gateway}{logging}{f' --log-tolerance {tolerance:.10g}' if tolerance else ''}"


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
    """The number of subscribers that a limit ends."""
    if limit.is_of_one:
        return f"a subscriber has at most {with_noun(in_full(limit.measured.upper), 'connections')}"
    known = limit.subscribers.lower > 0 or math.isfinite(limit.subscribers.upper)
    if limit.busier_share is not None and math.isfinite(limit.measured.upper):
        most = in_full(math.floor(limit.subscribers.upper))
        both = _subscribers(limit.both_ways)
        return f"at {both} if both directions are as busy, up to {most} if one is idle"
    return f"at {_subscribers(limit.subscribers)}" if known else "not known"


def _subscribers(number: Span) -> str:
    """Return a number of subscribers, with other words for less than a whole one."""
    said = _span(number)
    return "less than 1 subscriber" if said == "0" else with_noun(said, "subscribers")


def _table(found: Sequence[Sizing]) -> Iterator[tuple[str, ...]]:
    """Yield the head, and a row for each limit, those that decide first; frames have one for each way of being used."""
    yield (_AT_MOST, _NEEDED, *_names(found))
    number = found[0].asked.number
    scale, unit = _prefix_of(found)
    every = [{cell.name: cell for cell in _cells(sizing, scale, unit)} for sizing in found]
    lacking = [{cell.of: cell for cell in _lacking(sizing, scale, unit)} for sizing in found]
    rows = {name: cell.of for cells in every for name, cell in cells.items()}
    rows |= {of: of for cells in lacking for of in cells if of not in rows.values()}
    for name, of in rows.items():
        shown = [cells.get(name) or lacks.get(of) for cells, lacks in zip(every, lacking, strict=True)]
        needed = dict.fromkeys(cell.needed for cell in shown if cell is not None and cell.name in (name, of))
        yield name, " or ".join(needed), *("-" if cell is None else cell.text for cell in shown)
    cores, limits = [sizing.cores_for(number) for sizing in found], [limit for one in found for limit in one.limits]
    if any(cores) and any(limit.ended in OF_CORES and limit.fits(number) != "carries" for limit in limits):
        yield "cores for all", "-", *("not known" if one is None else _cores_in_words(one) for one in cores)


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell of a gateway with the head of its row; `of` is the limit, and `needed` is what all subscribers need."""

    name: str
    of: str
    needed: str
    text: str


def _cells(sizing: Sizing, scale: float, unit: str) -> Iterator[_Cell]:
    """Yield the cells of the limits of a gateway; `scale` is that of the unit of bits/s."""
    asked = sizing.asked
    bits = 1e6 * (asked.megabits or 0) / scale
    for limit in sizing.limits:
        sign = mark(_graves(limit.result))
        if limit.busier_share is not None:
            both, all_bits = limit.both_ways, number(bits * asked.number)
            frames = f"{number(limit.of_all(asked.number))} {limit.unit}"
            yield _Cell("frames, both ways busy", limit.ended, frames, f"{_span(both)}{sign}")
            carried = _carried_bits(both.lower * bits, both.upper * bits)
            yield _Cell(f"the same in {unit}", limit.ended, all_bits, f"{carried}{sign}")
            yield _Cell("frames, one way idle", limit.ended, frames, f"{_span(limit.one_way)}{sign}")
            continue
        result, name = limit.result, str(limit.ended)
        resource = None if result is None else resource_of(result)
        if result is not None and resource == limit.ended and result.metric != _metrics_of(resource)[0]:
            name += f" ({result.metric})"
        needed = _needed(limit.ended, limit.of_all(asked.number), limit.unit, is_least=limit.is_least)
        yield _Cell(name, limit.ended, needed, f"{_span(limit.subscribers)}{sign}")


def _lacking(sizing: Sizing, scale: float, unit: str) -> Iterator[_Cell]:
    """Yield a cell for each resource that was not measured, or that is no limit of the gateway."""
    asked = sizing.asked
    amounts: Mapping[Resource, tuple[float | None, str]] = {
        "new connections": (asked.new, "connections/s"),
        "open connections": (asked.entries, "connections"),
        "frames": (None if asked.megabits is None else 1e6 * asked.megabits / scale, unit),
    }
    known = {limit.ended for limit in sizing.limits}
    for word, needs in (("not measured", sizing.missing), ("no limit", sizing.no_limit)):
        for need in needs:
            amount, of = amounts[need]
            if need not in known and amount is not None:
                is_least = need == "open connections" and asked.may_take_more
                needed = _needed(need, float(exact(amount) * asked.number), of, is_least=is_least)
                yield _Cell(need, need, needed, word)


def _needed(ended: Ended, amount: float, unit: str, *, is_least: bool) -> str:
    """What all need, without the words that the head of the row has."""
    if ended == "frames":
        return f"{number(amount)} {unit}"
    said = unit.removeprefix("connections") if ended in ("new connections", "open connections") else f" {unit}"
    return f"{_figure(amount)}{said}{' or more' if is_least else ''}"


def _prefix_of(found: Sequence[Sizing]) -> tuple[float, str]:
    """The unit of the largest bits/s in the table, and how many bits/s it is."""
    bits = 1e6 * (found[0].asked.megabits or 0)
    carried = [limit.both_ways.upper for one in found for limit in one.limits if limit.busier_share is not None]
    largest = bits * max([found[0].asked.number, *filter(math.isfinite, carried)])
    return next((each for each in _PREFIXES if each[0] <= largest), _PREFIXES[-1])


def _carried_bits(lower: float, upper: float) -> str:
    """Bits/s that are carried, rounded outward."""
    if lower <= 0 < upper < math.inf:
        return f"up to {at_most(upper)}"
    if math.isinf(upper):
        return f"{at_least(lower)} or more" if lower > 0 else "any number"
    return number(lower) if lower == upper else f"{at_least(lower)} to {at_most(upper)}"


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


def _ends_of(lower: float, upper: float) -> str:
    least, most = _figure(lower, "down"), "" if math.isinf(upper) else _figure(upper, "up")
    if not most:
        return f"{least} or more" if lower > 0 else "any number"
    if lower == upper:
        return _figure(lower)
    return f"{least} to {most}" if lower > 0 else f"up to {most}"


def _metrics_of(need: Resource) -> list[str]:
    return [metric.name for metric in metrics().values() if metric.resource == need]
