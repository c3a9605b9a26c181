# SPDX-License-Identifier: Apache-2.0
"""Delays of the frames of a trial that came late, and how they are said."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from natgauge.figure_text import at_least, at_most, in_full, number


@dataclass(frozen=True, slots=True)
class LateDelays:
    """Delays of late frames, from sending to arrival, in seconds.

    Attributes:
        frames: number of late frames, > 0.
        limit: time limit for a frame, > 0; None = the trial had none.
        messages: number of messages of a connection; of several, a delay is that of the connection, from the sending of
            the first to the arrival of the last, and so is the limit.
    """

    frames: int
    least: float
    largest: float
    mean: float
    limit: float | None = None
    messages: int = 1

    @classmethod
    def measured(  # noqa: PLR0913 - the engine's integers, by keyword
        cls, *, frames: int, minimum_ns: int, maximum_ns: int, sum_ns: int, limit: float | None, messages: int
    ) -> LateDelays:
        """Return the delays as the engine measured them; the limit is in seconds, None = there is none."""
        least, largest, mean = minimum_ns / 1e9, maximum_ns / 1e9, sum_ns / frames / 1e9
        return cls(frames, least, largest, mean, limit, messages)

    def __str__(self) -> str:
        """What is known of the delays, as a part of a sentence whose subject is the late frames, named before."""
        return f"{self.arrival}, {self.reason}"

    @property
    def arrival(self) -> str:
        """When the frames arrived."""
        if self.messages > 1:
            who, since = f"the last of a connection's {self.messages} messages arrived", "the first was sent"
        elif self.frames == 1:
            who, since = "it arrived", "it was sent"
        else:
            who, since = "they arrived", "they were sent"
        each = f"{number(1e3 * self.mean / self.messages)} ms for each message on average" if self.messages > 1 else ""
        if self.frames == 1:
            return f"{who} {number(1e3 * self.mean)} ms after {since}{f' ({each})' if each else ''}"
        span = (
            f"least {at_least(1e3 * self.least)}, largest {at_most(1e3 * self.largest)} ms{f'; {each}' if each else ''}"
        )
        return f"{who} {number(1e3 * self.mean)} ms on average after {since} ({span})"

    @property
    def limit_ms(self) -> str:
        """The time limit in milliseconds, with all its digits."""
        return "-" if self.limit is None else in_full(round(1e3 * self.limit, 6))

    @property
    def reason(self) -> str:
        """Why these frames are late, with the option to raise."""
        closed = "after the receivers had closed or behind too many later frames"
        if self.limit is None:
            return f"{closed}; a longer --grace-seconds keeps the receivers open"
        whose = f" for all {self.messages} together" if self.messages > 1 else ""
        limit = f"the time limit of {self.limit_ms} ms{whose}"
        if self.least > self.limit:
            return f"later than {limit}; raise --frame-timeout-seconds"
        if self.largest > self.limit:
            return f"later than {limit} (--frame-timeout-seconds) or {closed} (--grace-seconds)"
        return f"within {limit}, but {closed}; a longer --grace-seconds keeps the receivers open"


def merged(parts: Iterable[LateDelays | None]) -> LateDelays | None:
    """Return the delays of all late frames; None = those of some are not known, or none was late.

    Its time limit is the largest of theirs.
    """
    parts = list(parts)
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return None
    frames = sum(part.frames for part in known)
    limits = [part.limit for part in known if part.limit is not None]
    return LateDelays(
        frames=frames,
        least=min(part.least for part in known),
        largest=max(part.largest for part in known),
        mean=sum(part.mean * part.frames for part in known) / frames,
        limit=max(limits, default=None) if len(limits) == len(known) else None,
        messages=max(part.messages for part in known),
    )
