# SPDX-License-Identifier: Apache-2.0
"""The answer on gateways: whether they carry the subscribers, what limits them, what to change; what it rests on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from natgauge.analysis.sizing import (
    OF_CORES,
    Ended,
    Sizing,
    SubscriberLimit,
    Subscribers,
    addresses_for,
    hosts_of,
    least_blocks,
    log_ended,
    may_be_of_hosts,
    sizes_in_words,
)
from natgauge.analysis.unit_frames import mix_of
from natgauge.figure_text import in_full, in_percent, number, with_noun
from natgauge.interval_text import in_bits, percent
from natgauge.notes import Note
from natgauge.plain_text import capital
from natgauge.records.measurement import FUNCTIONAL, Result
from natgauge.reports import main_figure
from natgauge.reports.graded_doubts import explained, graded
from natgauge.reports.labels import grouped
from natgauge.reports.rows import own_share
from natgauge.reports.sizing.words import (
    AS_MANY,
    NONE_UP,
    SUBJECTS,
    configured_limit,
    cores_needed,
    cores_of,
    emptier_table,
    ended_at,
    entries_of_all,
    frames_in_words,
    frames_of,
    frames_of_all,
    limit_of_frames,
    log_of,
    names_of,
    shown,
    span_in_words,
    table_needed,
)
from natgauge.words import OUTSIDE_PORTS, enumerated

#: Why resources that subscribers take were not looked at.
_NOT_LOOKED_AT: Final = "No result says for how long the gateway keeps connections (--device-timeout)."

#: Places of limits, in their order.
_ORDINALS: Final = ("first", "second", "third", "fourth", "fifth")


def groups_by_answer(found: Sequence[Sizing]) -> list[list[Sizing]]:
    """Gateways by their answers: those of a group have the same, but for their numbers and names."""
    groups: dict[tuple[object, ...], list[Sizing]] = {}
    for sizing in found:
        limits = [(limit.ended, limit.is_of_settings, limit.is_of_one) for limit in _ends(sizing)]
        first = sizing.results[0]
        answer = (sizing.fits(sizing.asked.number), cores_of(first), log_of(first), bool(_cores(sizing)))
        said = (_why(sizing), _not_measured(sizing), _unsaid(sizing), _beside_cores(sizing), table_needed(sizing))
        shape = (*answer, _conditions(sizing), *said, *limits)
        groups.setdefault(shape, []).append(sizing)
    return list(groups.values())


def which_carry(found: Sequence[Sizing]) -> list[str]:
    """Which of several gateways carry all, as a line."""
    number = found[0].asked.number
    names = grouped((sizing.fits(number), name) for name, sizing in zip(names_of(found), found, strict=True))
    yes, no, unknown = (enumerated(names.get(fits, [])) for fits in ("carries", "does not carry", "cannot tell"))
    of_all, untold = f"all {in_full(number)}" if number > 1 else "it", f"cannot tell of {unknown}"
    if yes:
        stay = f"{capital(of_all)} {'stay' if number > 1 else 'stays'} within each known limit of {yes}"
        return [f"{stay}{f', not of {no}' if no else ''}{f'; {untold}' if unknown else ''}."]
    if not unknown:
        return [f"{'Neither' if len(found) == 2 else 'None'} carries {of_all}."]
    refuse = "do not carry" if len(names.get("does not carry", [])) > 1 else "does not carry"
    return [f"{capital(untold)}{f'; {no} {refuse} {of_all}' if no else ''}."]


def answer_lines(group: Sequence[Sizing], *, is_whole: bool = False) -> list[str]:
    """The answer on gateways with the same answer, as lines: the verdict, cores, why, and what limits them.

    `is_whole` is whether no other gateway has another answer.
    """
    return [
        f"{_verdict(group, is_whole=is_whole)}{_conditions(group[0])}.",
        *_cores_of_all(group),
        *_beside_cores(group[0]),
        *_why(group[0]),
        f"{_limits(group)}.",
        *_unsaid(group[0]),
    ]


def _limits(group: Sequence[Sizing]) -> str:
    """What limits first, and what else does not carry all; numbers that differ between gateways are in the table."""
    every, leads = [_ends(sizing) for sizing in group], _is_of_cores(group[0])
    if not every[0]:
        return "No limit is known"
    said, places = list[str](), Counter[bool]()
    for at, limits in enumerate(zip(*every, strict=True)):
        first, is_of_cores = limits[0], limits[0].ended in OF_CORES
        numbers = {_at(limit, sizing) for limit, sizing in zip(limits, group, strict=True)}
        # The verdict has those of the first limit.
        number = "" if len(numbers) > 1 or (leads and not at) else numbers.pop()
        if first.is_of_settings:
            number = f"{number or ', by its configured limit'} (whether memory lets it grow was not measured)"
        # With the cores that all need, those limits are left that more cores do not raise.
        with_all = leads and not is_of_cores
        place, is_first = _ORDINALS[places[with_all]], not places[with_all]
        places[with_all] += 1
        lead = "with as many cores as all need, " if with_all and is_first else ""
        measured = " of what was measured" if not at and _is_open(group[0]) else ""
        is_on_cores = not at and is_of_cores and group[0].results[0].device_cores
        cores = f" on {_cores_of(group[0].results[0])}" if is_on_cores else ""
        said.append(f"{lead}{SUBJECTS[first.ended]} are the {place}{' limit' * is_first}{measured}{cores}{number}")
    lacking = _not_measured(group[0])
    return capital("; ".join([*said, f"{lacking} were not measured"] if lacking else said))


def _at(limit: SubscriberLimit, sizing: Sizing) -> str:
    """The number of subscribers that a limit ends, as it follows its name."""
    ended = ended_at(limit)
    is_number = not limit.is_of_one and ended != "not known"
    settings = "" if sizing.table_limit is None else f" with the configured limit of {in_full(sizing.table_limit)}"
    return f"{f', at {ended}' if is_number else f': {ended}'}{settings if limit.is_of_settings else ''}"


def _is_open(sizing: Sizing) -> bool:
    """Whether a limit that nobody looked at could come before those that are known."""
    is_refused = sizing.fits(sizing.asked.number) == "does not carry"
    return bool(_not_measured(sizing) if is_refused else sizing.missing) or bool(sizing.not_looked_at)


def _not_measured(sizing: Sizing) -> str:
    """What was not measured and has no known limit either, where no other line of the answer says it."""
    known = [limit.ended for limit in sizing.limits]
    lacking = [shown(need) for need in sizing.missing if need not in known]
    return enumerated(lacking) if sizing.fits(sizing.asked.number) == "does not carry" else ""


def _ends(sizing: Sizing) -> list[SubscriberLimit]:
    """The limit that is stated as the first, and the others that do not carry all; empty = no limit is known."""
    # A limit of which only a lower bound is known may come first in the table, and be none.
    deciding = _deciding_limits(sizing)
    is_refused = sizing.fits(sizing.asked.number) == "does not carry"
    return deciding if is_refused else list(deciding or sizing.limits)[:1]


def first_metric(sizing: Sizing) -> str | None:
    """The metric of the result that limits first; None = no result does."""
    return next((limit.result.metric for limit in _ends(sizing) if limit.result is not None), None)


def _deciding_limits(sizing: Sizing) -> list[SubscriberLimit]:
    """The limits from which the answer follows."""
    number = sizing.asked.number
    return [limit for limit in sizing.limits if limit.fits(number) == sizing.fits(number)]


def _cores(sizing: Sizing) -> str:
    """How many cores all need where the first limit is one of cores that does not carry them; or empty."""
    limit = next(iter(_ends(sizing)), None)
    if limit is None or limit.ended not in OF_CORES or limit.result is None or not limit.subscribers.lower:
        return ""
    return "" if limit.fits(sizing.asked.number) == "carries" else cores_needed(sizing)


def _is_of_cores(sizing: Sizing) -> bool:
    """Whether the verdict is for how many subscribers the cores do the work: they do it for some, and not for all."""
    return sizing.fits(sizing.asked.number) == "does not carry" and bool(_cores(sizing))


def _beside_cores(sizing: Sizing) -> tuple[str, ...]:
    """What the number of cores that all need does not contain, as lines; none where that number is not said."""
    return (*emptier_table(sizing), *_used_alone(sizing)) if _cores(sizing) else ()


def _used_alone(sizing: Sizing) -> list[str]:
    """That limits were not used together, as a line; none where there is one."""
    several = len(sizing.asked.needs()) - len(sizing.no_limit) > 1
    return ["Each limit was measured alone: used together, they may carry fewer."] if several else []


def _cores_of_all(group: Sequence[Sizing]) -> list[str]:
    """How many cores all subscribers need, as a line; none where that is not known or not asked."""
    if not all(map(_cores, group)):
        return []
    number = group[0].asked.number
    cores = [sizing.cores_for(number, "both ways") for sizing in group]
    noun = "core" if all(own is not None and own.upper == 1 for own in cores) else "cores"
    parts = grouped(zip(map(cores_needed, group), names_of(group), strict=True))
    # The first of several has the words of its numbers.
    needs = [needed.format(*((f" {noun}", f" {NONE_UP}") if not at else ("", ""))) for at, needed in enumerate(parts)]
    of = [f" with {enumerated(names)}" for names in parts.values()] if len(group) > 1 else [""]
    said = [f"{needed}{names}" for needed, names in zip(needs, of, strict=True)]
    need = f"All {in_full(number)} need" if number > 1 else "It needs"
    table = table_needed(group[0])
    also = f", and a table of {table}" if table else ""
    return [f"{need} {', '.join(said)}, if cores add up (not measured){also}."]


def _verdict(group: Sequence[Sizing], *, is_whole: bool) -> str:
    """Whether they are carried by gateways with the same answer, or how many of them are."""
    sizing, one = group[0], len(group) == 1
    first, asked, names = sizing.results[0], sizing.asked, enumerated(names_of(group))
    if _is_of_cores(sizing):
        return _carried(group, is_whole=is_whole)
    gateways = f"{names} ({cores_of(first)}{log_of(first)})"
    subscribers, fits = with_noun(in_full(asked.number), "subscribers"), sizing.fits(asked.number)
    carry = "carries" if one else "carry"
    if fits == "cannot tell":
        return f"Cannot tell whether {gateways} {carry} {subscribers}"
    if fits == "does not carry":
        return f"{gateways} {'does' if one else 'do'} not carry {subscribers}"
    several = len(set(asked.needs()).difference(sizing.no_limit)) > 1
    alone = f"No limit of {gateways}, each measured alone, is exceeded by {subscribers}"
    return alone if several else f"{gateways} {carry} {subscribers}"


def _carried(group: Sequence[Sizing], *, is_whole: bool) -> str:
    """That the cores of gateways do not carry all, and for how many they do the work that ends first."""
    limits, first = [_ends(sizing)[0] for sizing in group], group[0].results[0]
    work, number = limits[0].ended, group[0].asked.number
    numbers = (span_in_words(limit.used("both ways")) for limit in limits)
    parts = grouped(zip(numbers, names_of(group), strict=True))
    none = is_whole and len(group) > 1 and number > 1
    of = " subscribers" if none else f" of {with_noun(f'the {in_full(number)}' if number > 1 else '1', 'subscribers')}"
    said = [
        f"{enumerated(names)} of {carried}"
        if at
        else f"{enumerated(names)} {'carry' if len(names) > 1 else 'carries'} the {work} of {carried}{of}"
        for at, (carried, names) in enumerate(parts.items())
    ]
    log, ways = log_of(first), f", {AS_MANY}" if limits[0].busier_share is not None else ""
    lead = f"On {_cores_of(first)}{log}{',' if log else ''}"
    refused = f" {'neither' if len(group) == 2 else 'none'} carries all {in_full(number)}:" if none else ""
    return f"{lead}{refused} {', '.join(said)}{ways}"


def _cores_of(first: Result) -> str:
    return "one core" if first.device_cores == 1 else cores_of(first)


def _conditions(sizing: Sizing) -> str:
    """What was measured otherwise than subscribers expect, or not looked at, as the end of the verdict."""
    unusual = "; ".join(filter(None, map(_unusual, sizing.limits)))
    said = f"; measured: {unusual}" if unusual else ""
    said += f"; not looked at: {enumerated(list(map(shown, sizing.not_looked_at)))}" if sizing.not_looked_at else ""
    return f"{said}{f' ({FUNCTIONAL})' if any(result.functional for result in sizing.results) else ''}"


def _why(sizing: Sizing) -> tuple[str, ...]:
    """Why it cannot be told, as a line; empty where it can."""
    fits = sizing.fits(sizing.asked.number)
    return (f"Why: {' and '.join(_unknown(sizing))}.",) if fits == "cannot tell" else ()


def _unsaid(sizing: Sizing) -> tuple[str, ...]:
    """What a reader of the answer has to know of it: what was not looked at, and a table that was emptier."""
    unseen = (_NOT_LOOKED_AT,) if sizing.not_looked_at else ()
    return (*unseen, *(emptier_table(sizing) if sizing.fits(sizing.asked.number) == "carries" else ()))


def _unusual(limit: SubscriberLimit) -> str:
    """A limit that was measured with other connections, or by another criterion, than subscribers expect; or empty."""
    result = limit.result
    if result is None:
        return ""
    state = ", half-open" if result.parameter("state") == "half-open" else ""
    transport = main_figure.transport(result)
    is_strict = main_figure.tolerance(result) is None and main_figure.goals(result) is None
    lost = "" if is_strict else main_figure.condition(result)
    said = f"{f' by {transport}' if transport else ''}{state}{lost}"
    return f"{shown(limit.ended)}{said}" if said else ""


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
    # That of blocks whose number is not known.
    untold = [limit for limit in open_ones if limit.ended == "port blocks" and limit.result is not None]
    # A table that nobody filled is among the resources that no result measured.
    kept = [one for one in open_ones if one.is_least]
    own_words = [*untold, *kept, *(one for one in open_ones if one.is_of_settings)]
    within = [shown(one.ended) for one in open_ones if one not in own_words and one.result not in (*of_hosts, *of_log)]
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
        share = percent(together, "up", width=1)
        said.append(f"new connections and frames together may take {share} of the same cores")
    limits = {need: configured_limit(sizing, need) for need in sizing.missing}
    said += [f"{shown(need)} were not measured{f', and {limit}' if limit else ''}" for need, limit in limits.items()]
    return said


#: What to change where a limit is too low.
_REMEDIES: Final[Mapping[Ended, str]] = {
    "new connections": "{cores}, or fewer rules that each new connection passes",
    "open connections": "a table for {entries} (nf_conntrack_max of Linux gateways), if memory allows, or "
    "shorter time-outs",
    "outside ports": "more outside addresses (--outside-addresses)",
    "port blocks": "more outside addresses (--outside-addresses), or smaller blocks",
    "frames": "{cores}, or a faster path (such as a flowtable of nftables)",
}
#: Placements of gateways that natgauge gives interfaces of the kernel's own.
_WITHOUT_CARD: Final = frozenset[str]({"shared", "isolated"})
#: The doubt of a capacity that more connections would raise.
_OF_RANGES: Final = "range limited"


def sentences_of(found: Sequence[Sizing]) -> Iterator[str]:
    """Yield the sentences on gateways, each once; those that do not hold for all have the names of theirs.

    Last come those on the tester's own work, and on the marks in the table.
    """
    for part in (_changes, partial(_facts, found=found)):
        named = zip(names_of(found), found, strict=True)
        said = grouped((sentence, name) for name, sizing in named for sentence in part(sizing))
        for sentence, names in said.items():
            of = "" if len(names) == len(found) else f" ({enumerated(names)})"
            yield f"{sentence.removesuffix('.')}{of}."
    yield from _own_work(found)
    if marks := explained([grave_doubts(limit, sizing.asked) for sizing in found for limit in sizing.limits]):
        yield marks


def _changes(sizing: Sizing) -> Iterator[str]:
    number = sizing.asked.number
    for limit in sizing.limits:
        fits = limit.fits(number)
        # An end that is not known is no limit; where the table's own is not passed, more is to be measured.
        is_known = limit.measured.upper not in (math.inf, sizing.table_limit) and not limit.is_least
        if fits == "does not carry" or (fits == "cannot tell" and is_known):
            yield f"To raise the limit of {shown(limit.ended)}: {_remedy(limit, sizing)}."


def _facts(sizing: Sizing, found: Sequence[Sizing]) -> Iterator[str]:
    """Yield what the numbers rest on."""
    asked = sizing.asked
    if sizing.no_limit:
        yield f"A gateway that keeps no connections has no limit of {enumerated(list(map(shown, sizing.no_limit)))}."
    yield from _entries(sizing)
    yield from _shared_ports(sizing)
    addresses = addresses_for(sizing)
    if addresses is not None and asked.outside_addresses is None:
        yield f"Outside addresses: at least {in_full(addresses)}, {_if_taken(sizing)}."
    yield from _chosen_frames(sizing, found)
    yield from _chosen_tables(sizing)
    # Of what is carried, and beside a number of cores, the answer says it.
    beside = _beside_cores(sizing)
    yield from [] if beside or sizing.fits(asked.number) == "carries" else emptier_table(sizing)
    if sizing.larger_frames:
        yield "No throughput was measured with frames as large as the mean: larger frames may cost more."
    if not beside and not all(one.fits(asked.number) == "carries" for one in found):
        yield from _used_alone(sizing)


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
        yield f"Table: {kept}, fills at least {entries} for each subscriber, not only your {given}."
    else:
        yield f"Table: {entries} for each subscriber, the {given}: {kept}, fills only {in_full(asked.opened)}."


def _remedy(limit: SubscriberLimit, sizing: Sizing) -> str:
    number = sizing.asked.number
    # Of blocks whose number is known it cannot be told only where a subscriber may have too few ports.
    too_few = limit.ended == "port blocks" and (limit.is_of_one or limit.fits(number) == "cannot tell")
    entries, result = entries_of_all(sizing.asked), limit.result
    is_table = sizing.table_limit is not None and sizing.table_limit < entries
    if limit.ended == "open connections" and not is_table and result is not None and result.limited_by == "device":
        return "find what refuses them (natgauge explain)"
    if limit.ended != "port blocks" and not is_table and result is not None and result.limited_by == "log":
        return "a faster program that writes the log, whose records were lost (natgauge explain)"
    if too_few:
        return "larger blocks, or more blocks for each subscriber"
    # How many cores are needed is in the table.
    cores = "more cores" if sizing.cores_for(number) is not None else "more or faster cores"
    return _REMEDIES[limit.ended].format(cores=cores, entries=with_noun(in_full(entries), "entries"))


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
        return f"if each table entry needs a port of its own ({in_full(OUTSIDE_PORTS)} an address)"
    each = least_blocks(blocks, sizing.asked)
    taken = f"{in_full(each)} blocks" if each > 1 else "a block"
    ports = with_noun(in_full(blocks.size), "ports")
    return f"as each subscriber takes {taken} of {ports} ({in_full(blocks.per_address)} an address)"


#: Which use of the directions was not measured, by the share of the frames in the busier direction.
_CALCULATED: Final[Mapping[float, str]] = {
    0.5: "If no frames go up, cores carry at least as many down, and at most twice as many (calculated, not measured).",
    1.0: "If as many frames go up as down, cores carry half as many down (calculated, not measured).",
}


def _chosen_frames(sizing: Sizing, found: Sequence[Sizing]) -> list[str]:
    """How the throughput was measured, and of several which was used, and why."""
    used, asked = limit_of_frames(sizing), sizing.asked
    if used is None or used.result is None:
        return []
    busier, sizes = used.busier_share or 1.0, sizes_in_words(used.result)
    ways = {
        1.0: f"frames of {sizes} one way",
        0.5: f"as many frames from inside as from outside, of {sizes}",
    }
    way = ways.get(busier, f"frames of {sizes}, {in_percent(busier)} of them in the busier direction")
    said, frames = [f"Measured with {way}."], frames_of(sizing)
    if math.isfinite(used.measured.upper):
        both = "What cores carry with as many frames up as down, or none up, is calculated from that."
        said.append(_CALCULATED.get(busier, both))
    if frames is not None and frames_of_all(found) is None:
        wire = in_bits(number(frames.wire * asked.number))
        said.append(f"All together are {frames_in_words(frames, asked)} ({wire} on the wire).")
    if not sizing.other_frames:
        return said
    why = "they are the largest" if sizing.larger_frames else "they are the next to --mean-frame that are not smaller"
    if asked.mean_frame is None:
        why = "a mix is nearest to what subscribers send" if mix_of(used.result.parameters) else "it carries the least"
        why += "; --mean-frame chooses others"
    others = " and ".join(sizing.other_frames)
    return [*said, f"The throughput with frames of {sizes} was used, not that of {others}: {why}."]


def _chosen_tables(sizing: Sizing) -> list[str]:
    """Of rates with several numbers of connections in the table, which were left out, and why."""
    if not sizing.other_tables:
        return []
    others, needed = enumerated(list(map(in_full, sizing.other_tables))), in_full(sizing.asked.least_entries)
    why = f"the next number from {needed} up counts, or the largest"
    return [f"Rates with {others} entries in the table were not used: {why}."]


def _own_work(found: Sequence[Sizing]) -> Iterator[str]:
    """Yield what is in the rates, and what is not: the tester's own work, with its share, and that of a card."""
    rates = list(zip(names_of(found), map(_rates, found), strict=True))
    shared = [(name, [one for one in own if one.placement == "shared"]) for name, own in rates]
    if names := [name for name, own in shared if own]:
        shares = [share for _, own in shared for one in own if (share := own_share(one)) is not None]
        ends = dict.fromkeys(percent(end(shares), width=1).removesuffix(" %") for end in (min, max) if shares)
        part = f" ({' to '.join(ends)} % of the time)" if shares else ""
        yield (
            f"The rates contain the tester's own work{part}, so the gateway alone carries somewhat more (placement "
            f"shared{_of(names, found)})."
        )
    if virtual := [name for name, own in rates if any(one.placement in _WITHOUT_CARD for one in own)]:
        of = _of(virtual, found)
        yield f"No frame{of} went through a network card, whose driver takes time of the cores, too (not measured)."


def _of(names: Sequence[str], found: Sequence[Sizing]) -> str:
    """The names of gateways after what holds for them; empty where it holds for all."""
    return "" if len(names) == len(found) else f" of {enumerated(names)}"


def _rates(sizing: Sizing) -> list[Result]:
    """The results of limits that follow from what the cores do."""
    return [limit.result for limit in sizing.limits if limit.result is not None and limit.ended in OF_CORES]


def most_share(sizing: Sizing) -> float | None:
    """The largest share of the time that is the tester's own work; None = not known."""
    return max((share for result in _rates(sizing) if (share := own_share(result)) is not None), default=None)


def doubt_lines(found: Sequence[Sizing]) -> list[str]:
    """The doubts that could change the answers, in one line; none where there are none.

    What is not carried whatever a doubt leaves has its mark in the table alone.
    """
    deciding = [
        (f"{result.metric} of {name}", doubts)
        for name, sizing in zip(names_of(found), found, strict=True)
        if sizing.fits(sizing.asked.number) != "does not carry"
        for result, doubts in _doubted(sizing).values()
    ]
    # The command for these subscribers is below.
    lines = graded(deciding, lambda having: f" ({', '.join(having)})", brief=True, instead={_OF_RANGES: ""})
    return [" ".join(lines)] if lines else []


def _doubted(sizing: Sizing) -> dict[int, tuple[Result, list[Note]]]:
    """The results of the limits that decide, each once, with the doubts that could change the answer."""
    limits = _deciding_limits(sizing) or sizing.limits
    every = [(limit.result, grave_doubts(limit, sizing.asked)) for limit in limits]
    return {id(result): (result, doubts) for result, doubts in every if result is not None and doubts}


def grave_doubts(limit: SubscriberLimit, asked: Subscribers) -> list[Note]:
    """The doubts of a limit's result that could change the answer: more connections change none that says "carries"."""
    doubts = [] if limit.result is None else [doubt for doubt in limit.result.doubts if doubt.grade == "answer"]
    return [one for one in doubts if one.word != _OF_RANGES or limit.fits(asked.number) != "carries"]
