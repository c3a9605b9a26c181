# SPDX-License-Identifier: Apache-2.0
"""What to change, and what the numbers rest on; each sentence once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from natgauge.analysis.sizing import (
    OF_CORES,
    Ended,
    Sizing,
    SubscriberLimit,
    Subscribers,
    addresses_for,
    least_blocks,
    sizes_in_words,
)
from natgauge.analysis.unit_frames import mix_of
from natgauge.figure_text import in_full, in_percent, number, with_noun
from natgauge.interval_text import in_bits, percent
from natgauge.notes import Note
from natgauge.records.measurement import Result
from natgauge.reports.graded_doubts import explained, graded
from natgauge.reports.rows import own_share
from natgauge.reports.sizing.question import frames_in_words, frames_of, frames_of_all, limit_of_frames
from natgauge.reports.sizing.verdict import beside_cores, deciding_limits, used_alone
from natgauge.reports.sizing.words import emptier_table, entries_of_all, names_of, shown
from natgauge.words import OUTSIDE_PORTS, enumerated

#: What to change where a limit is too low.
_REMEDIES: Final[Mapping[Ended, str]] = {
    "new connections": "{cores}, or fewer rules that each new connection passes",
    "open connections": "a table for {entries} (nf_conntrack_max of Linux gateways), if memory allows, or "
    "shorter time-outs",
    "outside ports": "more outside addresses (--outside-addresses)",
    "port blocks": "more outside addresses (--outside-addresses), or smaller blocks",
    "frames": "{cores}, or a faster path (such as a flowtable of nftables)",
}
#: What to change where not the table ended open connections.
_NO_TABLE: Final = "find what refuses them (natgauge explain)"
#: What to change where the log ended it, and not the gateway.
_OF_LOG: Final = "a faster program that writes the log, whose records were lost (natgauge explain)"
#: What to change where a subscriber has more connections than its blocks have ports.
_LARGER_BLOCKS: Final = "larger blocks, or more blocks for each subscriber"
#: Placements of gateways that natgauge gives interfaces of the kernel's own.
_WITHOUT_CARD: Final = frozenset[str]({"shared", "isolated"})
#: The doubt of a capacity that more connections would raise.
_OF_RANGES: Final = "range limited"


def sentences_of(found: Sequence[Sizing]) -> Iterator[str]:
    """Yield the sentences on gateways, each once; those that do not hold for all have the names of theirs."""
    for part in (_changes, _facts):
        said: dict[str, list[str]] = {}
        for name, sizing in zip(names_of(found), found, strict=True):
            for sentence in part(sizing, found):
                said.setdefault(sentence, []).append(name)
        for sentence, names in said.items():
            of = "" if len(names) == len(found) else f" ({enumerated(names)})"
            yield f"{sentence.removesuffix('.')}{of}."


def _changes(sizing: Sizing, found: Sequence[Sizing]) -> Iterator[str]:  # noqa: ARG001 - as `_facts`
    """Yield what to change."""
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
    beside = beside_cores(sizing)
    yield from [] if beside or sizing.fits(asked.number) == "carries" else emptier_table(sizing)
    if sizing.larger_frames:
        yield "No throughput was measured with frames as large as the mean: larger frames may cost more."
    if not beside and not all(one.fits(asked.number) == "carries" for one in found):
        yield from used_alone(sizing)


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
        return _NO_TABLE
    if limit.ended != "port blocks" and not is_table and result is not None and result.limited_by == "log":
        return _OF_LOG
    if too_few:
        return _LARGER_BLOCKS
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


def own_work(found: Sequence[Sizing]) -> Iterator[str]:
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


def meaning_of_marks(found: Sequence[Sizing]) -> list[str]:
    """What the marks in the table mean, with the doubts; none where no figure has a mark."""
    said = explained([grave_doubts(limit, sizing.asked) for sizing in found for limit in sizing.limits])
    return [said] if said else []


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
    limits = deciding_limits(sizing) or sizing.limits
    every = [(limit.result, grave_doubts(limit, sizing.asked)) for limit in limits]
    return {id(result): (result, doubts) for result, doubts in every if result is not None and doubts}


def grave_doubts(limit: SubscriberLimit, asked: Subscribers) -> list[Note]:
    """The doubts of a limit's result that could change the answer: more connections change none that says "carries"."""
    doubts = [] if limit.result is None else [doubt for doubt in limit.result.doubts if doubt.grade == "answer"]
    return [one for one in doubts if one.word != _OF_RANGES or limit.fits(asked.number) != "carries"]
