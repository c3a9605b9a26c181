# SPDX-License-Identifier: Apache-2.0
"""What a passing trial had to do, and by which frames: words that belong to the answer, and rows of a table.

"Without loss" is said only of a search whose passing trials lost nothing. A tolerance, goals of MLRsearch and another
transport change what a figure means, so they stand in the same sentence as the figure.
"""

from __future__ import annotations

from typing import Final, get_args

from natgauge.analysis.unit_frames import frames_of, is_of_frames, mix_in_words, mix_of, sends_data
from natgauge.ethernet import IP_HEADER, LEAST_OCTETS
from natgauge.figure_text import number
from natgauge.metrics import declared
from natgauge.metrics.goals import PRESETS, Preset, criterion
from natgauge.metrics.loads import SUBSCRIBER_RATES
from natgauge.records.measurement import Result
from natgauge.records.parameters import TRANSPORT_NAMES
from natgauge.words import SENDING, SIDES

#: Open connections, new ones, and frames up and down begin the words of a profile of subscribers.
_TERMS: Final = 4
#: Octets that the shortest frame has more over IPv6, and over IPv6 in a tunnel.
_LONGER: Final = (0, IP_HEADER["ipv6"] - IP_HEADER["ipv4"], IP_HEADER["ipv6"])


def clause(result: Result, *, sized: bool = True) -> str:
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


def frames_clause(result: Result, *, sized: bool = True) -> str:
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


def unusual_frames(result: Result, *, sized: bool = True) -> str:
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
