# SPDX-License-Identifier: Apache-2.0
"""The answer on gateways: whether they carry the subscribers, why that cannot be told, and what ends it first."""

from __future__ import annotations

import math
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
    commands_for,
    configured_limit,
    cores_in_words,
    cores_of,
    ended_at,
    given_gateway,
    log_of,
    names_of,
    noun_of_cores,
    options_of,
    span_in_words,
)
from natgauge.words import enumerated

#: Why resources that subscribers take were not looked at.
_NOT_LOOKED_AT: Final = (
    "no result says for how long the gateway keeps them, so {} were not looked at (--device-timeout)"
)


def groups_by_answer(found: Sequence[Sizing]) -> list[list[Sizing]]:
    """Gateways by their answers: those of a group have the same, but for their numbers and names."""
    groups: dict[tuple[object, ...], list[Sizing]] = {}
    for sizing in found:
        first = _first(sizing)
        shape = (
            _verdict([sizing], ""),
            _reasons(sizing, ANY_GATEWAY),
            first and (first.ended, first.is_of_one, _of_cores(sizing, first) is None),
        )
        groups.setdefault(shape, []).append(sizing)
    return list(groups.values())


def answer_lines(group: Sequence[Sizing]) -> list[str]:
    """The answer on gateways with the same answer, as lines: the verdict, the reason, and of several each gateway."""
    names, several = names_of(group), len(group) > 1
    gateway = ANY_GATEWAY if several else given_gateway(group[0].results[0])
    before, behind = _reasons(group[0], gateway)
    firsts = [_first(sizing) for sizing in group]
    of_cores = [
        None if first is None else _of_cores(sizing, first, name, brief=at > 0)
        for at, (sizing, first, name) in enumerate(zip(group, firsts, names, strict=True))
    ]
    plain = ["" if first is None else ended_at(first) for first in firsts]
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
    deciding = deciding_limits(sizing)
    return next(iter(deciding or sizing.limits), None)


def deciding_limits(sizing: Sizing) -> list[SubscriberLimit]:
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
    both = span_in_words(limit.both_ways if idle else limit.subscribers)
    most = in_full(math.floor(limit.subscribers.upper)) if idle else ""
    if brief:
        return f"{both}{f', up to {most}' if idle else ''}; {cores_in_words(needed)} {noun_of_cores(needed)}"
    carries = f"one core of {name} carries" if cores == 1 else f"{in_full(cores)} cores of {name} carry"
    said = f"{carries} at most {both} of them"
    said += f" if both directions are as busy, up to {most} if one is idle" if idle else ""
    # As many cores as it has may be enough: what is needed lies within the doubt.
    about = "about " if needed.lower > cores else ""
    need = f"{about}{cores_in_words(needed)} such {noun_of_cores(needed)}"
    return f"{said}; {in_full(asked.number)} need {need}, if cores add up (not measured)"


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


def _reasons(sizing: Sizing, gateway: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Why it cannot be told, which is said before the first limit; and why something was not looked at."""
    fits = sizing.fits(sizing.asked.number)
    before = (f"why: {' and '.join(_unknown(sizing, gateway))}",) if fits == "cannot tell" else ()
    unseen = " and ".join(sizing.not_looked_at)
    return before, (_NOT_LOOKED_AT.format(unseen),) if unseen else ()


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
    return [
        f"no result says how many {need} it has{f', and {limit}' if limit else ''} ({command})"
        for need, limit, command in said
    ]
