# SPDX-License-Identifier: Apache-2.0
"""How many subscribers gateways carry, in words, as a table, and as a document."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from natgauge.analysis.contrast import Span
from natgauge.analysis.sizing import (
    Ended,
    Sizing,
    SubscriberLimit,
    Subscribers,
    addresses_for,
    sizes_in_words,
    sizings,
)
from natgauge.analysis.unit_frames import mix_of
from natgauge.errors import UsageError
from natgauge.figure_text import in_full, number
from natgauge.interval_text import percent, span
from natgauge.metrics import metrics
from natgauge.metrics.metric import Resource
from natgauge.plain_text import capital
from natgauge.records.measurement import FUNCTIONAL, Result
from natgauge.reports.graded_doubts import graded
from natgauge.reports.labels import names_of
from natgauge.statistics.interval import finite
from natgauge.tables import aligned
from natgauge.words import OUTSIDE_PORTS

#: What to change where a limit is too low.
_REMEDIES: Final[Mapping[Ended, str]] = {
    "new connections": "more or faster cores, or fewer rules that each new connection passes",
    "open connections": "a larger table, if memory allows, or shorter time-outs",
    "outside ports": "more outside addresses (--outside-addresses)",
    "frames": "more or faster cores, or a faster path for frames of open connections",
}
_HEADINGS: Final = ("limit", "each subscriber", "all of them", "measured", "subscribers at most", "in use")


def sized(results: Sequence[Result], asked: Subscribers) -> list[Sizing]:
    """Return what these results say of the subscribers, a sizing for each gateway, machine and number of cores."""
    found = sizings(results, asked)
    if not found:
        wanted = " or ".join(name for need in asked.needs() for name in _metrics_of(need))
        have = ", ".join(dict.fromkeys(result.metric for result in results)) or "none"
        raise UsageError(f"size: needs results of {wanted}; these are {have}; measure one, or name its folder")
    return found


def exit_status(found: Sequence[Sizing], subscribers: int) -> int:
    """0 where every gateway carries them, 1 where one does not, 5 where it cannot be told of one."""
    fits = {sizing.fits(subscribers) for sizing in found}
    return 1 if "does not carry" in fits else 5 if "cannot tell" in fits else 0


def text(found: Sequence[Sizing], asked: Subscribers) -> str:
    """Return the answers, each with its table, then what they rest on."""
    return "\n\n".join("\n".join(_lines(sizing, asked)) for sizing in found)


def document(found: Sequence[Sizing], asked: Subscribers) -> dict[str, Any]:
    """Return the answers as JSON objects; an end that is not known is null."""
    return {
        "schema": "natgauge-size-1",
        "subscribers": asked.number,
        "each": {
            "connections": asked.connections,
            "new_per_second": asked.new,
            "megabits": asked.megabits,
            "mean_frame": asked.mean_frame,
        },
        "outside_addresses": asked.outside_addresses,
        "gateways": [_gateway(sizing, asked) for sizing in found],
    }


def _gateway(sizing: Sizing, asked: Subscribers) -> dict[str, Any]:
    first = sizing.results[0]
    return {
        "gateway": first.gateway,
        "placement": first.placement,
        "device_cores": first.device_cores,
        "answer": sizing.fits(asked.number),
        "text": _answer(sizing, asked),
        "functional": any(result.functional for result in sizing.results),
        "missing": list(sizing.missing),
        "least_outside_addresses": addresses_for(sizing, asked),
        "limits": [
            {
                "ended": limit.ended,
                "unit": limit.unit,
                "each": limit.each,
                "all": limit.each * asked.number,
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


def _lines(sizing: Sizing, asked: Subscribers) -> list[str]:
    rows = [_HEADINGS, *(_row(limit, asked) for limit in sizing.limits)]
    lines = [_answer(sizing, asked), "", *aligned(rows, right=range(1, len(_HEADINGS))), ""]
    lines += [
        f"To change: {limit.ended}: {_REMEDIES[limit.ended]}."
        for limit in sizing.limits
        # An end that is not known is no limit.
        if limit.fits(asked.number) != "carries" and math.isfinite(limit.measured.upper)
    ]
    addresses = addresses_for(sizing, asked)
    if addresses is not None and asked.outside_addresses is None:
        lines.append(
            f"Outside addresses: at least {in_full(addresses)}, if each open connection takes a port of its own "
            f"({in_full(OUTSIDE_PORTS)} an address)."
        )
    if sizing.fits(asked.number) == "does not carry":
        # Otherwise the first line says it.
        lines += [f"{capital(each)}." for each in _unmeasured(sizing)]
    lines += _chosen_frames(sizing, asked)
    if sizing.larger_frames:
        lines.append("No throughput was measured with frames as large as the mean: larger frames may cost more.")
    lines.append("Each limit was measured alone: at most this number is carried when all are used at once.")
    names = names_of(sizing.results)
    several = len(names) > 1
    return lines + graded(
        ((f"{result.metric} of {name}", result.doubts) for result, name in zip(sizing.results, names, strict=True)),
        lambda having: f" ({', '.join(having)})" if several else "",
        brief=True,
    )


def _answer(sizing: Sizing, asked: Subscribers) -> str:
    """The first line: whether they are carried, what ends it first, and at what number."""
    first = sizing.results[0]
    gateway = f"{first.gateway} ({_cores(first)})"
    stamp = f" ({FUNCTIONAL})" if any(result.functional for result in sizing.results) else ""
    subscribers = f"{in_full(asked.number)} subscribers with {_profile(sizing, asked)} each"
    fits = sizing.fits(asked.number)
    # A limit of which only a lower bound is known may come first in the table, and be none.
    deciding = [limit for limit in sizing.limits if limit.fits(asked.number) == fits]
    known = "known limit" if sizing.missing else "limit"
    at = f"the first {known} is {_at((deciding or sizing.limits)[0])}" if sizing.limits else "no limit is known"
    if fits == "cannot tell":
        why = " and ".join(_unknown(sizing, asked))
        return f"Cannot tell whether {gateway} carries {subscribers}: {why}; {at}{stamp}."
    return f"{gateway} {fits} {subscribers}; {at}{stamp}."


def _cores(result: Result) -> str:
    cores = result.device_cores
    return f"{cores} core{'' if cores == 1 else 's'}, placement {result.placement}"


def _profile(sizing: Sizing, asked: Subscribers) -> str:
    parts = [
        "" if asked.connections is None else f"{in_full(asked.connections)} open connections",
        "" if asked.new is None else f"{in_full(asked.new)} new ones/s",
        "" if asked.megabits is None else f"{in_full(asked.megabits)} Mbit/s{_in_frames(sizing, asked)}",
    ]
    said = [part for part in parts if part]
    return f"{', '.join(said[:-1])} and {said[-1]}" if len(said) > 1 else said[0]


def _in_frames(sizing: Sizing, asked: Subscribers) -> str:
    used = _of_frames(sizing)
    if used is None or used.frame_octets is None:
        return "" if asked.mean_frame is None else f" in frames of {number(asked.mean_frame)} octets"
    octets = f" in frames of {number(used.frame_octets)} octets"
    mix = None if used.result is None else mix_of(used.result.parameters)
    return f"{octets} (mix of {mix})" if mix and asked.mean_frame is None else octets


def _of_frames(sizing: Sizing) -> SubscriberLimit | None:
    return next((limit for limit in sizing.limits if limit.ended == "frames"), None)


def _chosen_frames(sizing: Sizing, asked: Subscribers) -> list[str]:
    """Which of several throughputs was used, and why."""
    used = _of_frames(sizing)
    if used is None or used.result is None or not sizing.other_frames:
        return []
    why = "they are the largest" if sizing.larger_frames else "they are the next to --mean-frame that are not smaller"
    if asked.mean_frame is None:
        why = "a mix is nearest to what subscribers send" if mix_of(used.result.parameters) else "it carries the least"
        why += "; --mean-frame chooses others"
    others = " and ".join(sizing.other_frames)
    frames = sizes_in_words(used.result)
    return [f"The throughput with frames of {frames} was used, not that of {others}: {why}."]


def _unknown(sizing: Sizing, asked: Subscribers) -> list[str]:
    open_ones = [limit.ended for limit in sizing.limits if limit.fits(asked.number) == "cannot tell"]
    said = [f"this number lies within the doubt of {', '.join(open_ones)}"] if open_ones else []
    return said + _unmeasured(sizing)


def _unmeasured(sizing: Sizing) -> list[str]:
    gateway = sizing.results[0].gateway
    return [
        f"no result says how many {need} it has (natgauge measure {_metrics_of(need)[0]} --gateway {gateway})"
        for need in sizing.missing
    ]


def _at(limit: SubscriberLimit) -> str:
    known = limit.subscribers.lower > 0 or math.isfinite(limit.subscribers.upper)
    return f"{limit.ended}, at {_span(limit.subscribers)} subscribers" if known else f"{limit.ended}, not known"


def _row(limit: SubscriberLimit, asked: Subscribers) -> tuple[str, ...]:
    needed = limit.each * asked.number
    least, most = (needed / end if end else math.inf for end in (limit.measured.upper, limit.measured.lower))
    return (
        limit.ended if limit.result is None else f"{limit.ended} ({limit.result.metric})",
        f"{number(limit.each)} {limit.unit}",
        f"{number(needed)} {limit.unit}",
        f"{_span(limit.measured)} {limit.unit}",
        _span(limit.subscribers),
        _used(least, most),
    )


def _used(least: float, most: float) -> str:
    """The share of a limit that is used, between these ends; 0 = the limit is not known from above."""
    ends = [percent(share, width=1) for share in (least, most) if math.isfinite(share)]
    if not least:
        return f"up to {ends[-1]}" if math.isfinite(most) else "not known"
    return " to ".join(dict.fromkeys(ends)) if math.isfinite(most) else f"{ends[0]} or more"


def _span(known: Span) -> str:
    return span(math.floor(known.lower), math.floor(known.upper) if math.isfinite(known.upper) else math.inf)


def _metrics_of(need: Resource) -> list[str]:
    return [metric.name for metric in metrics().values() if metric.resource == need]
