# SPDX-License-Identifier: Apache-2.0
"""The question: what each subscriber takes, and all of them together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from natgauge.analysis.sizing import Sizing, SubscriberLimit, Subscribers, without_tags
from natgauge.analysis.unit_frames import bits_of_unit, mix_of
from natgauge.figure_text import exact, in_full, number, with_noun
from natgauge.interval_text import in_bits
from natgauge.reports.sizing.words import figure_in_words
from natgauge.words import enumerated


def question_of(asked: Subscribers) -> str:
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


def frames_of(sizing: Sizing) -> _Frames | None:
    """The frames of a subscriber as the throughput of a gateway has them; None where there is none."""
    used, asked = limit_of_frames(sizing), sizing.asked
    if used is None or used.result is None or asked.megabits is None:
        return None
    bits, octets = bits_of_unit(used.result.metric, used.result.parameters), used.frame_octets or 0
    if bits is None:
        return None
    mean = " on average" if mix_of(used.result.parameters) or asked.mean_frame is not None else ""
    words = f"{figure_in_words(octets)} octets{without_tags(used.result)}{mean}"
    return _Frames(
        used.each, octets, words, 1e6 * asked.megabits + used.each * (bits.wire - bits.packets) / bits.frames
    )


def frames_of_all(found: Sequence[Sizing]) -> _Frames | None:
    """The frames of a subscriber; None where gateways were measured with different ones, or with none."""
    every = {frames for sizing in found if (frames := frames_of(sizing)) is not None}
    return every.pop() if len(every) == 1 else None


def sum_of_all(found: Sequence[Sizing]) -> str:
    """What all subscribers take together, as the end of the question; empty where one takes what each takes."""
    asked, frames = found[0].asked, frames_of_all(found)
    parts = list(_connections_of_all(found)) if asked.number > 1 else []
    if asked.megabits is not None:
        said = f"{in_bits(number(1e6 * asked.megabits * asked.number))} of IP packets in the busier direction"
        wire = "" if frames is None else f" ({in_bits(number(frames.wire * asked.number))} on the wire)"
        parts += [f"{said}{wire}", *([] if frames is None else [frames_in_words(frames, asked)])]
    return f": {'together ' if asked.number > 1 else ''}{', '.join(parts)}" if parts else ""


def _connections_of_all(found: Sequence[Sizing]) -> Iterator[str]:
    """Yield the connections that all open, and the entries of a table that they fill, as far as these are limits."""
    asked = found[0].asked
    if any(sizing.no_limit for sizing in found):
        return
    needed = {(sizing.asked.least_entries, sizing.asked.may_take_more) for sizing in found}
    if asked.entries is not None and len(needed) == 1:
        entries = with_noun(figure_in_words(asked.least_entries), "table entries")
        own = found[0].asked.entries
        why = f": those that it opens in {in_full(asked.kept)} s" if own == asked.opened and asked.kept else ""
        each = f" (at least {in_full(own)} each{why})" if own != asked.connections else ""
        yield f"{entries}{each}{' or more' * asked.may_take_more}"
    if asked.new is not None:
        yield f"{with_noun(figure_in_words(float(exact(asked.new) * asked.number)), 'new connections/s')}"


def frames_in_words(frames: _Frames, asked: Subscribers) -> str:
    """The frames/s of all subscribers together."""
    return f"{with_noun(number(frames.each * asked.number), 'frames/s')} of {frames.in_words}"


def limit_of_frames(sizing: Sizing) -> SubscriberLimit | None:
    """The limit of frames; None = no result says it."""
    return next((limit for limit in sizing.limits if limit.ended == "frames"), None)
