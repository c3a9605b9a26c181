# SPDX-License-Identifier: Apache-2.0
"""The answer on gateways: whether they carry the subscribers, why that cannot be told, and what ends it first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from natgauge.analysis.sizing import OF_CORES, Sizing, SubscriberLimit, hosts_of, log_ended, may_be_of_hosts
from natgauge.figure_text import in_full, with_noun
from natgauge.interval_text import percent
from natgauge.plain_text import capital
from natgauge.records.measurement import FUNCTIONAL
from natgauge.reports import criterion
from natgauge.reports.sizing.words import (
    ANY_GATEWAY,
    SUBJECTS,
    commands_for,
    configured_limit,
    cores_needed,
    cores_of,
    emptier_table,
    ended_at,
    given_gateway,
    log_of,
    names_of,
    options_of,
)
from natgauge.words import enumerated

#: Why resources that subscribers take were not looked at.
_NOT_LOOKED_AT: Final = "No result says for how long the gateway keeps connections (--device-timeout)."


def groups_by_answer(found: Sequence[Sizing]) -> list[list[Sizing]]:
    """Gateways by their answers: those of a group have the same, but for their numbers and names."""
    groups: dict[tuple[object, ...], list[Sizing]] = {}
    for sizing in found:
        first = _first(sizing)
        shape = (
            _verdict([sizing], ""),
            _why(sizing, ANY_GATEWAY),
            _first_limit(sizing),
            first is not None and (first.is_of_one, not _cores(sizing)),
            _unsaid(sizing),
        )
        groups.setdefault(shape, []).append(sizing)
    return list(groups.values())


def answer_lines(group: Sequence[Sizing]) -> list[str]:
    """The answer on gateways with the same answer, as lines: the verdict, why, what ends it first, how many cores."""
    names, several = names_of(group), len(group) > 1
    gateway = ANY_GATEWAY if several else given_gateway(group[0].results[0])
    (limit, lacking), firsts = _first_limit(group[0]), [_first(sizing) for sizing in group]
    first, own = firsts[0], list[str]()
    ended = [None if one is None else ended_at(one) for one in firsts]
    cores = [_cores(sizing, brief=at > 0) for at, sizing in enumerate(group)]
    # Numbers of subscribers that differ are in the table.
    if first is not None and len(set(ended)) == 1:
        limit += f": {ended[0]}" if first.is_of_one or ended[0] == "not known" else f", at {ended[0]}"
    if several and any(cores):
        own = [f"{name}: {said}." for name, said in zip(names, cores, strict=True)]
    elif several and first is not None and first.is_of_one and len(set(ended)) > 1:
        own = [f"{name}: {said}." for name, said in zip(names, ended, strict=True)]
    elif any(cores):
        own = [f"{capital(cores[0])}."]
    return [
        _verdict(group, enumerated(names)),
        *_why(group[0], gateway),
        f"{limit}{lacking}.",
        *own,
        *_unsaid(group[0]),
    ]


def _first_limit(sizing: Sizing) -> tuple[str, str]:
    """What limits first of what was measured; and what was not measured, where no other line of the answer says it."""
    first = _first(sizing)
    if first is None:
        return "No limit is known", ""
    is_set = first.is_of_settings
    said = f"{capital(SUBJECTS[first.ended])}{', as the table is configured,' if is_set else ''} are the first limit"
    said += " of what was measured" if not is_set and (sizing.missing or sizing.not_looked_at) else ""
    names = ["they" if is_set and need == first.ended else need for need in sizing.missing]
    is_new = names and sizing.fits(sizing.asked.number) == "does not carry"
    return said, f"; {enumerated(names)} were not measured" if is_new else ""


def _first(sizing: Sizing) -> SubscriberLimit | None:
    """The limit that is stated as the first; None = no limit is known."""
    # A limit of which only a lower bound is known may come first in the table, and be none.
    deciding = deciding_limits(sizing)
    return next(iter(deciding or sizing.limits), None)


def deciding_limits(sizing: Sizing) -> list[SubscriberLimit]:
    """The limits from which the answer follows."""
    number = sizing.asked.number
    return [limit for limit in sizing.limits if limit.fits(number) == sizing.fits(number)]


def _cores(sizing: Sizing, *, brief: bool = False) -> str:
    """How many cores all need where the first limit is one of cores that does not carry them; or empty."""
    limit = _first(sizing)
    if limit is None or limit.ended not in OF_CORES or limit.result is None or not limit.subscribers.lower:
        return ""
    return "" if limit.fits(sizing.asked.number) == "carries" else cores_needed(sizing, brief=brief)


def _verdict(group: Sequence[Sizing], names: str) -> str:
    """Whether they are carried by gateways with the same answer, with what was measured otherwise or not looked at."""
    sizing, one = group[0], len(group) == 1
    first, asked = sizing.results[0], sizing.asked
    gateways = f"{names} ({cores_of(first)}{log_of(first)})"
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


def _why(sizing: Sizing, gateway: str) -> tuple[str, ...]:
    """Why it cannot be told, as a line; empty where it can."""
    fits = sizing.fits(sizing.asked.number)
    return (f"Why: {' and '.join(_unknown(sizing, gateway))}.",) if fits == "cannot tell" else ()


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
    transport = criterion.transport(result)
    is_strict = criterion.tolerance(result) is None and criterion.goals(result) is None
    lost = "" if is_strict else criterion.condition(result)
    said = f"{f' by {transport}' if transport else ''}{state}{lost}"
    return f"{limit.ended}{said}" if said else ""


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
            f"(natgauge measure subscribers --subscriber PROFILE --gateway {options_of(sizing, gateway)})"
        )
    return said + _unmeasured(sizing, gateway)


def _is_untold(limit: SubscriberLimit) -> bool:
    """Whether it is that of blocks whose number is not known."""
    return limit.ended == "port blocks" and limit.result is not None


def _unmeasured(sizing: Sizing, gateway: str) -> list[str]:
    said = [(need, configured_limit(sizing, need), command) for need, command in commands_for(sizing, gateway).items()]
    return [f"{need} were not measured{f', and {limit}' if limit else ''} ({command})" for need, limit, command in said]
