# SPDX-License-Identifier: Apache-2.0
"""What an audit has observed: values that several verdicts share, the frames that decide a verdict, or why none can."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from natgauge.audits.kit.capture import CapturedFrame
from natgauge.audits.kit.network import Network, PortTraffic
from natgauge.words import Transport

_T = TypeVar("_T")


class NotSeenError(Exception):
    """An examination cannot reach a verdict; the text is the reason, without a full stop."""


class FloodError(NotSeenError):
    """Other traffic flooded the tester's ports during an examination."""


class AloneError(NotSeenError):
    """No two inside hosts had one outside address, so nothing shows what the gateway does when they compete."""


class UntranslatedError(NotSeenError):
    """The gateway sent a flow's first frame on with its inside source: that is routing, and shows nothing of a NAT."""


class NotApplicableError(Exception):
    """A requirement does not apply to this gateway; the text is the reason, without a full stop."""


@dataclass(eq=False)
class Observations:
    """Values that were observed once, and the evidence of the verdict.

    Attributes:
        transport: transport of the verdict, and of flows for which no other one is named.
        floods: how often other traffic at the tester's ports kept the examiner from a verdict.
    """

    network: Network
    transport: Transport = "udp"
    floods: int = field(default=0, kw_only=True)
    _seen: dict[tuple[Any, ...], tuple[Any, range]] = field(default_factory=dict, kw_only=True)
    _used: set[tuple[Any, ...]] = field(default_factory=set, kw_only=True)
    _cited: set[int] = field(default_factory=set, kw_only=True)
    _begun: int = field(default=0, kw_only=True)
    #: Outside ports that the present look has given, by host and transport, where only some may be used.
    _given: set[tuple[int, Transport, int]] = field(default_factory=set, kw_only=True)

    @property
    def mark(self) -> int:
        """Number of frames so far."""
        return len(self.network.frames)

    def once(self, function: Callable[..., _T], *arguments: Any) -> _T:
        """Return the function's value for this transport and these arguments; it is called only once."""
        key = (function, self.transport, arguments)
        if key not in self._seen:
            first = self.mark
            value: Any
            try:
                value = self.undisturbed(lambda: function(self, *arguments))
            except FloodError:
                raise
            except NotSeenError as error:
                value = error
            self._seen[key] = (value, range(first, self.mark))
        value, frames = self._seen[key]
        self._used.add(key)
        self.cite(frames)
        if isinstance(value, NotSeenError):
            raise type(value)(*value.args)
        seen: _T = value
        return seen

    def forget(self, since: int) -> None:
        """Call again, when asked, the functions whose values the verdict has used, or came after `since` frames."""
        self._seen = {
            key: (value, frames)
            for key, (value, frames) in self._seen.items()
            if frames.start < since and key not in self._used
        }

    def undisturbed(self, look: Callable[[], _T]) -> _T:
        """Return what a function sees."""
        before, outer, self._given = self.network.load(), self._given, set()
        try:
            seen = look()
        except NotSeenError:
            self._refuse_flood(before)
            raise
        finally:
            self._given = outer
        self._refuse_flood(before)
        return seen

    def _refuse_flood(self, before: PortTraffic) -> None:
        if flood := self.network.load().flood(before):
            self.floods += 1
            raise FloodError(flood)

    def begin(self, transport: Transport) -> None:
        """Begin a verdict: frames from now on, and frames that are cited, are its evidence if they have a sentence."""
        self.transport, self._given = transport, set()
        self.network.forget()
        self._begun, self._cited, self._used = self.mark, set(), set()

    def cite(self, numbers: Iterable[int]) -> None:
        """Add earlier frames to the evidence."""
        self._cited.update(numbers)

    def evidence(self) -> tuple[CapturedFrame, ...]:
        """Return the frames that decided the verdict, in order."""
        frames = self.network.frames
        numbers = sorted(self._cited | set(range(self._begun, len(frames))))
        return tuple(frames[number] for number in numbers if frames[number].is_told)
