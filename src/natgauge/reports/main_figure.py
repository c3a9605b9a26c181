# SPDX-License-Identifier: Apache-2.0
"""The figure of a result for people: what a passing trial had to do, what doubts and limits do to it, its interval.

A tolerance, goals of MLRsearch and another transport change what a figure means, so they stand in the same sentence as
the figure. "Without loss" is said only of a search whose passing trials lost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, get_args

from natgauge import interval_text
from natgauge.analysis.contrast import (
    better,
    bounds,
    drift,
    expected_range,
    is_searched,
    left,
    possible_range,
    spans,
    widened_by_doubts,
)
from natgauge.analysis.unit_frames import frames_of, is_of_frames, mix_in_words, mix_of, sends_data
from natgauge.ethernet import IP_HEADER, LEAST_OCTETS
from natgauge.figure_text import at_least, at_most, number, of_whole, with_noun
from natgauge.metrics import declared
from natgauge.metrics.catalogue import PRESETS, SUBSCRIBER_RATES, Preset, criterion
from natgauge.notes import Note, NoteWord, known, known_doubts, words_of
from natgauge.records.measurement import FUNCTIONAL, Result
from natgauge.records.parameters import TRANSPORT_NAMES
from natgauge.reports.graded_doubts import mark
from natgauge.words import NO_DEVICE, OF_SPEED, SENDING, SIDES, LimitedBy

#: Open connections, new ones, and frames up and down begin the words of a profile of subscribers.
_TERMS: Final = 4
#: Octets that the shortest frame has more over IPv6, and over IPv6 in a tunnel.
_LONGER: Final = (0, IP_HEADER["ipv6"] - IP_HEADER["ipv4"], IP_HEADER["ipv6"])


def clause(result: Result, *, sized: bool) -> str:
    """Return the end of a sentence with the value: criterion of a passing trial, transport, and sizes of the frames.

    Args:
        sized: whether sizes are named where they are not the least ones, or where no frame has the chosen size.
    """
    frames, criterion = frames_clause(result, sized=sized), condition(result)
    # A relative clause ends a sentence; what is said behind it would belong to it.
    return f"{frames}{criterion}" if criterion.startswith(",") else f"{criterion}{frames}"


def terms(result: Result) -> str:
    """Return what each of the subscribers that a value counts takes, as the end of a phrase; empty of other values.

    Transport and sizes, which end the words of a profile, are those of `frames_clause`.
    """
    profile = result.parameter("subscriber_profile") if declared(result.metric).counts == "subscriber" else None
    if profile is None:
        return ""
    words, rates = str(profile).split(", "), result.parameter(SUBSCRIBER_RATES)
    if isinstance(rates, dict) and {"up", "down"} <= rates.keys():
        frames = [f"{number(rates[way])}{unit} {SENDING[way]}" for way, unit in (("up", " frames/s"), ("down", ""))]
        words = [*words[: _TERMS - len(frames)], *frames]
    return f" (each: {', '.join(words[:_TERMS])})"


def frames_clause(result: Result, *, sized: bool) -> str:
    """Return the part of `clause` on transport and sizes of the frames; arguments as there."""
    by = transport(result)
    return f"{f' by {by}' if by else ''}{_sizes(result) if sized else ''}"


def _sizes(result: Result) -> str:
    """Sizes of the frames where a reader would not expect them, as the end of a sentence."""
    if sends_data(result.metric, result.parameters):
        return _unusual_sizes(result)
    octets = {frame.octets[frame.sender] for frame in frames_of(result.metric, result.parameters)}
    sizes = " and ".join(f"{size}" for size in sorted(octets, reverse=True))
    return f" (segments of {sizes} octets)" if octets else ""


def unusual_frames(result: Result, *, sized: bool) -> str:
    """Return what is unusual of the frames, as the end of a sentence: transport, sizes, and others among them.

    Empty where all are of the transport that the metric always has, under test, and of the least size; sizes
    count where `sized`.
    """
    by, foreground = transport(result), result.number("foreground_share") or 1.0
    sizes = _unusual_sizes(result) if sized and sends_data(result.metric, result.parameters) else ""
    others = "" if foreground == 1 else f", {percent(1 - foreground)} of the frames native IPv6"
    return f"{f' by {by}' if by else ''}{sizes}{others}"


def _unusual_sizes(result: Result) -> str:
    """Sizes of frames with data that are not the least ones, as the end of a sentence."""
    if mix := mix_in_words(result.parameters):
        return f" in {mix}"
    size, own = result.number("frame_size"), result.parameter("transport")
    least = next((octets for one, octets in LEAST_OCTETS.items() if one == own), LEAST_OCTETS["udp"])
    usual = {None, *(least + longer for longer in _LONGER)}
    return "" if size in usual or result.parameter("query") else f" in {size:,.0f}-octet frames"


def condition(result: Result) -> str:
    """Return the part of `clause` on what a passing trial had to do."""
    criterion = declared(result.metric).criterion
    lost, goal = tolerance(result), goals(result)
    if goal is not None:
        return f" by MLRsearch ({goal})"
    limit = result.number("frame_timeout_seconds")
    within = " in time" if limit is None else f" within {limit:g} s"
    if not lost:
        return criterion.strict.format(within=within)
    return criterion.tolerant.format(lost=percent(lost), kept=percent(1 - lost), within=within)


def tolerance(result: Result) -> float | None:
    """Return the share of its frames that a passing trial may lose; None where that is none."""
    return result.number("loss_tolerance") or None


def most_lost(result: Result) -> str:
    """Return the most that passing trials may lose, as the beginning of a phrase."""
    lost = tolerance(result)
    return "no loss" if lost is None else f"no more than {percent(lost)} lost"


def goals(result: Result) -> str | None:
    """Return the goal of MLRsearch that gives the value; None where a passing trial loses nothing."""
    preset = next((one for one in get_args(Preset) if one == result.parameter("goals")), None)
    seconds = result.number("trial_seconds")
    if result.parameter("search") != "mlrsearch" or preset is None or seconds is None:
        return None
    first = PRESETS[preset][0]
    strict = not first.loss_ratio and not first.exceed_ratio
    return None if strict else criterion(first, seconds)


def transport(result: Result) -> str | None:
    """Return the transport of the frames; None where it is the one that the metric always has."""
    usual = declared(result.metric).traffic.get("transport", "udp")
    own = result.parameter("transport")
    if own in (None, usual):
        return None
    return next((name for one, name in TRANSPORT_NAMES.items() if one == own), str(own))


def frames_in_words(result: Result) -> str:
    """Return the frames of the measurement with their sizes, as a part of a sentence; empty where nothing is known.

    A TCP connection that is only opened or closed sends no frame of the chosen size.
    """
    parameters = result.parameters
    size = parameters.get("frame_size")
    if sends_data(result.metric, parameters):
        side = SIDES.get(str(parameters.get("frame_side")), SIDES["initiator"])
        if mix := mix_of(parameters):
            return f"frames of {mix} on the {side}"
        return f"{size}-octet frames on the {side}" if size is not None else ""
    frames = frames_of(result.metric, parameters)
    sizes = ", ".join(f"{frame.octets[frame.sender]} ({frame.name})" for frame in frames)
    return f"segments of {sizes} octets with FCS on the sender's side" if frames else "segments without data"


def counts_units(result: Result) -> bool:
    """Whether the theoretical maximum of the links counts units of the value, and not frames of one direction."""
    frames = frames_of(result.metric, result.parameters)
    return bool(frames) and not is_of_frames(result.metric, result.parameters)


def percent(share: float) -> str:
    """Return a share as percents, with all digits that it was given with."""
    return f"{100 * share:.10g}%"


#: Doubts of a rate that leave one of its ends certain.
_AT_LEAST: Final = words_of(lambda doubt: doubt.leaves == "at least")
_AT_MOST: Final = words_of(lambda doubt: doubt.leaves == "at most")
#: Doubts that two bounds say by themselves.
OF_BOUNDS: Final = words_of(lambda doubt: doubt.leaves == "bounds")
#: Doubts whose shares the bounds contain.
_SHARES: Final = words_of(lambda doubt: doubt.share == "too high")

#: Bottlenecks in words.
_BOTTLENECKS: Final[Mapping[LimitedBy, str]] = {
    "device": "the device",
    "table": "the device's connection tracking table, which was full",
    "port pool": "the pool of outside ports",
    "port block": "the port block of a subscriber",
    "log": "the device's log, which lacked connections",
    "tester": "the tester, not the device",
    "host": "disturbances of this host, not the device",
    "server": "the real server, not the device",
    "time": "the available time",
    "ranges": "the ranges of the measurement, not the device",
    "new connections": "the device's rate of new connections",
    "frames": "the device's rate of frames",
}


@dataclass(frozen=True, slots=True)
class Stated:
    """What the first line of a result says of the device's true value.

    Attributes:
        upper: nor more than this; both ends are the median where the line gives the median itself.
    """

    lower: float
    upper: float
    doubtful: bool

    @property
    def is_median(self) -> bool:
        """Whether the line gives the median."""
        return self.lower == self.upper


def statement_of(result: Result) -> Stated:
    """Return what the first line says: the median, or the bounds that another limit or grave doubts leave.

    A bound alone is that of all repetitions, because a lower one beside them would contradict "at least"; between two
    bounds another run is expected, as within an interval. The value of a
    search is its lower bound, so a bound from above is the search's upper one. Both contain the shares by which doubts
    of any grade may have made the rate too high or too low.
    """
    grave, (least, most) = _grave(result), bounds(result)
    if least != most:
        return _limited(result, grave)
    if _may_be_moved(result) and grave:
        lower, upper = ends(result)
        # Bounds say these by themselves, unless a repetition has none.
        rest = grave - (OF_BOUNDS - set(left(result).unknown))
        raising = rest & _AT_LEAST
        if raising and rest - raising <= _of_shares(result) and lower > 0:
            return Stated(lower, math.inf, doubtful=False)
        if rest <= _AT_MOST and math.isfinite(upper):
            return Stated(*_in_another_run(result, 0.0 if rest else lower, upper), doubtful=False)
    # A figure of an emulated machine has a stamp of its own.
    return Stated(result.median, result.median, doubtful=bool(grave) and not result.functional)


def in_summary(result: Result) -> tuple[Note, ...]:
    """Return the doubts of a summary: not those that only move an end of the value that others leave open."""
    said = statement_of(result)
    if not _may_be_moved(result) or said.is_median:
        return result.doubts
    is_open = {"too low": math.isinf(said.upper), "too high": said.lower <= 0}
    return tuple(
        doubt for doubt in result.doubts if doubt.grade == "answer" or not is_open.get(known(doubt.word).share, False)
    )


def ends(result: Result) -> tuple[float, float]:
    """Return the lowest and the highest true value that the repetitions allow, with what hides a part of it."""
    # The median's limits are two of these values.
    (least, most), every = bounds(result), spans(result, seen=True)
    return min(least, *(span.lower for span in every)), max(most, *(span.upper for span in every))


def _limited(result: Result, grave: AbstractSet[NoteWord]) -> Stated:
    """What is left between two bounds, of which doubts may move each."""
    lower, upper = ends(result)
    upper = math.inf if grave & _AT_LEAST and better(result.metric) == "higher" else upper
    if lower <= 0 and math.isinf(upper):
        return Stated(result.median, result.median, doubtful=True)
    rest = grave - _AT_LEAST - _of_shares(result) - OF_BOUNDS
    return Stated(*_in_another_run(result, lower, upper), doubtful=bool(rest) and not result.functional)


def _in_another_run(result: Result, lower: float, upper: float) -> tuple[float, float]:
    """Widen two bounds to where another run is expected, as intervals are; one bound alone is of these repetitions."""
    if lower <= 0 or math.isinf(upper):
        return lower, upper
    least, most = possible_range(result)
    return (min(lower, least), max(upper, most)) if least > 0 and math.isfinite(most) else (lower, upper)


def _of_shares(result: Result) -> set[NoteWord]:
    """Words of the doubts that are known to have made the rate too high by no more than a share."""
    return {doubt.word for doubt in result.doubts if doubt.word in _SHARES and doubt.value is not None}


def _may_be_moved(result: Result) -> bool:
    """Whether doubts may have moved the value one way, as those of a rate, or of a number that is carried at a rate."""
    return better(result.metric) == "higher" and bool(result.median)


def mark_in_words(result: Result) -> str:
    """Return the end of a sentence with a value of an emulated machine, or one that may be higher and lower."""
    return stamp(result) or (" (doubtful)" if statement_of(result).doubtful else "")


def stamp(result: Result) -> str:
    """Return what belongs to each value of an emulated machine; empty for other values."""
    return f" ({FUNCTIONAL})" if result.functional else ""


def missing(result: Result) -> str:
    """Return the end of a figure that lacks repetitions: " (2 of 3 repetitions)"; empty where none is missing."""
    done, planned = len(result.repetitions), result.planned_repetitions
    return f" ({done} of {planned} repetitions)" if done < planned else ""


def bottleneck(result: Result) -> str:
    """Return what limited a result, as a noun: what a grave doubt names, and its cause with the word of a guess.

    A loss has a cause; a link, single lost frames and a delay are one.
    """
    # A stored cause is of the device: it says nothing where the tester or the host came first.
    cause = result.cause.words if result.cause is not None and result.limited_by not in NO_DEVICE else ""
    grave = _grave(result)
    # The doubts about the ports come last, and no device does more than the link carries.
    doubt = next((doubt for word, doubt in reversed([*known_doubts().items()]) if word in grave and doubt.limit), None)
    if doubt is None:
        limit = _BOTTLENECKS[result.limited_by]
        both = cause not in {"", limit} and result.limited_by in OF_SPEED - {"device"}
        return f"{limit}: {cause}" if both else cause or limit
    if doubt.has_cause and cause and result.cause is not None and result.cause.kind != "not known":
        return f"{doubt.limit}: {cause}"
    return doubt.limit


def _grave(result: Result) -> set[NoteWord]:
    """Words of the doubts that could change the answer."""
    return {doubt.word for doubt in result.doubts if doubt.grade == "answer"}


@dataclass(frozen=True, slots=True)
class Interval:
    """The interval that is printed with a median.

    Attributes:
        is_expected: whether another run on the same machine is expected in it; else it is only the range of the
            repetitions, because a limit or a doubt leaves no such range.
    """

    low: float
    high: float
    is_expected: bool


def interval_of(result: Result) -> Interval:
    """Return the interval of a result's median; both ends are equal where there is nothing to make one of."""
    stated = statement_of(result)
    expected = expected_range(result) if stated.is_median and not stated.doubtful else None
    low, high = expected or (result.minimum, result.maximum)
    return Interval(low, high, expected is not None)


@dataclass(frozen=True, slots=True)
class Stroke:
    """What is drawn at a median: its interval, or the bounds that are left; an end that is not known is open."""

    low: float
    high: float
    open_low: bool = False
    open_high: bool = False


def stroke_of(result: Result) -> Stroke:
    """Return the stroke of a result; the open end of a bound is where the repetitions end."""
    interval, stated = interval_of(result), statement_of(result)
    if stated.is_median:
        return Stroke(interval.low, interval.high)
    low, high = stated.lower, stated.upper
    return Stroke(
        low if low > 0 else min(interval.low, high),
        high if math.isfinite(high) else max(interval.high, low),
        open_low=low <= 0,
        open_high=math.isinf(high),
    )


def median(result: Result) -> str:
    """Return the median with the digits that its interval resolves."""
    return value(result, result.median)


def value(result: Result, figure: float) -> str:
    """Return a figure in the unit of the result, such as one repetition, with the digits of its median."""
    interval = interval_of(result)
    half = (interval.high - interval.low) / 2
    if not half and (len(result.repetitions) == 1 or not interval.is_expected):
        return of_whole(figure, 100) if result.unit == "%" else number(figure)
    text = interval_text.resolved(figure, figure - half, figure + half)
    # A share that is not all is not written as that.
    is_misleading = result.unit == "%" and figure < 100 and text.partition(".")[0] == "100"
    return of_whole(figure, 100) if is_misleading else text


def repetitions(result: Result) -> list[str]:
    """Return the value of each repetition, with the digits that the spread of all resolves."""
    if result.unit == "%":
        return [value(result, each) for each in result.values]
    return interval_text.readings_of(result.values)


def spread(result: Result, *, named: bool = True) -> str:
    """Return the interval in words, with the number of repetitions that it rests on.

    Where not `named`, a title says that an interval without words is another run's.
    """
    interval, count = interval_of(result), len(result.repetitions)
    planned = max(count, result.planned_repetitions)
    done = f"{count} of {planned} repetitions" if planned > count else with_noun(count, "repetitions")
    if interval.low == interval.high:
        return f"{done} agree" if count > 1 and _agree(result) else f"{done}, no interval"
    if interval.is_expected:
        text = margin(result, interval.low, interval.high)
        if count == 1 and is_searched(result) and not drift(result):
            # One repetition without a drift tells nothing of another run.
            return f"{text} by the search error{' and its doubts' if widened_by_doubts(result) else ''} ({done})"
        error = " and the search error" if is_searched(result) else ""
        return f"{text}{' in another run' if named else ''} ({done}{error})"
    return f"{_readings(result)} in {done}"


def margin(result: Result, low: float, high: float) -> str:
    """Return an interval of a result's median; of one in % by its ends, as `interval_text.with_ends` says."""
    if is_by_ends(result, low, high):
        return interval_text.span(low, high)
    return interval_text.margin(result.median, low, high)


def is_by_ends(result: Result, low: float, high: float) -> bool:
    """Whether an interval of a result's median is written by its ends, and not as "± 11 %"."""
    return result.unit == "%" or not interval_text.is_in_percent(result.median, low, high)


def _agree(result: Result) -> bool:
    """Whether the repetitions have one value, and no search leaves a higher one that the first line lacks."""
    if not statement_of(result).is_median:
        return True
    ends = [each.value if each.upper is None else each.upper for each in result.repetitions]
    return max(ends) <= result.minimum


def _readings(result: Result) -> str:
    """The lowest and the highest repetition."""
    return interval_text.readings(result.minimum, result.maximum, 100 if result.unit == "%" else math.inf)


def within(result: Result) -> str:
    """Return the median with its interval, in the shortest form."""
    interval = interval_of(result)
    if interval.low == interval.high:
        return median(result)
    if not interval.is_expected:
        return f"{median(result)} ({_readings(result)})"
    if result.unit == "%":
        return f"{median(result)} ({interval_text.span(interval.low, interval.high)})"
    return interval_text.within(result.median, interval.low, interval.high)


def stated_number(result: Result, scale: float = 1.0) -> str:
    """Return the median, or the bounds that are left where something else limited it, or a doubt is grave.

    Each is multiplied by `scale` before it is written.
    """
    stated = statement_of(result)
    if stated.is_median:
        return median(result) if scale == 1 else number(scale * result.median)
    least, most = stated_bounds(result, scale)
    if math.isinf(most):
        return f"at least {at_least(least)}"
    upper = at_most(most)
    return f"at most {upper}" if least <= 0 else f"between {at_least(least)} and {upper}"


def stated_bounds(result: Result, scale: float) -> tuple[float, float]:
    """The ends of what is stated; a product that is below one by an error of floats alone is not rounded down."""
    stated = statement_of(result)
    least, most = (float(f"{scale * end:.12g}") for end in (stated.lower, stated.upper))
    return least, most


def in_cell(result: Result) -> str:
    """Return the figure with its interval or the bounds that doubts leave, and the mark of its doubts."""
    return f"{in_short(result)}{stamp(result)}{mark(result.doubts)}{missing(result)}"


def in_short(result: Result) -> str:
    """Return the figure with its interval, or the bounds that doubts leave."""
    return within(result) if statement_of(result).is_median else with_bounds(result)


def with_bounds(result: Result) -> str:
    """Return the median with the bounds that doubts leave, such as "284 k, at most 317 k".

    Of a value that is only a bound itself, such as that of a limit of the tester, it has the bounds alone.
    """
    figure = median(result)
    if statement_of(result).is_median:
        return figure
    lower, upper = bounds(result)
    return stated_number(result) if lower != upper else f"{figure}, {stated_number(result)}"
