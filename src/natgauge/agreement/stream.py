# SPDX-License-Identifier: Apache-2.0
"""Bases of the types that are generated from the engine's schemas: of all, and of the counts of one stream.

From the engine's counts of a stream follow numbers that no result has, and times in seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from natgauge.late_delays import LateDelays
from natgauge.words import WRONG_FRAMES


class AgreementPart(BaseModel):
    """A part of the agreement with the engine: no unknown fields, immutable, only numbers that JSON can represent."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def to_json(self) -> str:
        """Return the part as one line of JSON; absent fields are left out."""
        return self.model_dump_json(exclude_none=True)


class WrongFigures(AgreementPart):
    """Base of the generated types that count frames in another form, whose fields the schema of results describes."""

    @property
    def wrong_frames(self) -> dict[str, int]:
        """Frames that arrived in another form than that of test frames: name of their count, and their number."""
        return {name: getattr(self, name) or 0 for name in WRONG_FRAMES}

    @property
    def wrong_in_words(self) -> dict[str, int]:
        """The same by what is said of such frames."""
        return {WRONG_FRAMES[name]: number for name, number in self.wrong_frames.items()}


class StreamFigures(WrongFigures):
    """Base of the generated `StreamCounts`."""

    if TYPE_CHECKING:
        offered_frames: int
        received_frames: int
        unopened: int | None
        late: int
        late_delay: Any
        messages: Sequence[Any]
        nominal_ns: int
        sending_ns: int
        final_lag_ns: int
        settled_lag_ns: int
        stalled_ns: int

    @property
    def due_frames(self) -> int:
        """Frames that should have returned: offered ones, and those of connections whose opening was lost."""
        return self.offered_frames + (self.unopened or 0)

    @property
    def lost(self) -> int:
        """Frames that did not return correctly: due - received, but at least 0."""
        return max(0, self.due_frames - self.received_frames)

    @property
    def wrong_content(self) -> int:
        """Messages that arrived, but do not say what they should, such as an answer without its address."""
        return sum(int(message.wrong) for message in self.messages)

    @property
    def arrived(self) -> int:
        """Frames that show that the way is open: received ones, and messages with wrong content."""
        return self.received_frames + self.wrong_content

    @property
    def received_messages(self) -> int:
        """Frames of what was received: each message of a connection or of a query is one."""
        return self.received_frames * max(1, len(self.messages))

    @property
    def sent_messages(self) -> int:
        """Frames that both sides sent: what was offered, and a reaction to each message that arrived but the last."""
        return self.offered_frames + sum(int(message.received) for message in self.messages[:-1])

    @property
    def nominal_seconds(self) -> float:
        """Duration of the sending as planned."""
        return self.nominal_ns / 1e9

    @property
    def sending_seconds(self) -> float:
        """Duration until one interval after the sending of the last frame."""
        return self.sending_ns / 1e9

    @property
    def busy_seconds(self) -> float:
        """Duration of the sending; in `shared` placement the device's work is included."""
        return max(self.nominal_seconds, self.sending_seconds, self.nominal_seconds + self.settled_lag_seconds)

    @property
    def final_lag_seconds(self) -> float:
        """Lateness of the last frame."""
        return self.final_lag_ns / 1e9

    @property
    def settled_lag_seconds(self) -> float:
        """Lateness at which the last frame's batch had been sent, and in `shared` placement processed by the device."""
        return self.settled_lag_ns / 1e9

    @property
    def stalled_seconds(self) -> float:
        """Sum of the senders' stalls in this phase that were longer than the bound."""
        return self.stalled_ns / 1e9

    def late_delays(self, limit: float | None) -> LateDelays | None:
        """Return the delays of the late frames, which had this time limit in s; None = none was late, or not known."""
        delay = self.late_delay
        if delay is None or not self.late:
            return None
        return LateDelays.measured(
            frames=self.late,
            minimum_ns=delay.minimum_ns,
            maximum_ns=delay.maximum_ns,
            sum_ns=delay.sum_ns,
            limit=limit,
            messages=max(1, len(self.messages)),
        )
