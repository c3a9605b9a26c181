# SPDX-License-Identifier: Apache-2.0
"""What a procedure can be told, and the checks that keep impossible settings out: one rule, one line."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeVar, get_args

from natgauge.errors import UsageError
from natgauge.measurer import Ability, Measurer
from natgauge.words import MAXIMUM_CONNECTIONS, Order, Placement

Profile = Literal["default", "quick", "standard", "rfc"]
VerbT = TypeVar("VerbT")
SettingsT = TypeVar("SettingsT", bound="TrialSettings")
#: How often to repeat; "auto" = until the median is known well enough (see `natgauge.procedures.rates.repeat`).
Repeat = int | Literal["auto"]

MOST_REPETITIONS = 1000
#: `repeat` "auto" ends after so many at the latest: RFC 8219 section 7.2 wants 20 of its own measurements.
MOST_AUTO_REPETITIONS = 20
#: A per-frame limit longer than this is no limit: the receivers close before.
LONGEST_TIMEOUT_SECONDS = 60.0


def in_range(name: str, value: float, lowest: float, highest: float, unit: str = "") -> None:
    """Refuse a number outside of lowest to highest (both allowed), NaN and infinity included.

    Raises:
        UsageError: it is outside.
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not lowest <= value <= highest:
        spaced = f" {unit}" if unit else ""
        raise UsageError(f"{name}: {value!r} is outside of {_plain(lowest)} to {_plain(highest)}{spaced}")


def whole(name: str, value: int, lowest: int, highest: int, unit: str = "") -> None:
    """Refuse anything but a whole number from lowest to highest.

    Raises:
        UsageError: it is none, or outside.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"{name}: {value!r} is not a whole number")
    in_range(name, value, lowest, highest, unit)


def positive(name: str, value: float, unit: str) -> None:
    """Refuse zero, negative numbers, NaN and infinity.

    Raises:
        UsageError: it is one of them.
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not (math.isfinite(value) and value > 0):
        raise UsageError(f"{name}: {value!r} is not a finite number of {unit} above 0")


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Refuse a word that is not in the list.

    Raises:
        UsageError: it is not.
    """
    if value not in allowed:
        raise UsageError(f"{name}: {value!r} is unknown; choose one of {', '.join(allowed)}")


def _plain(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else f"{number:g}"


@dataclass(frozen=True, slots=True)
class SearchError:
    """The error of a search (RFC 9693 section 6 reports it): the most by which upper and lower bound may differ.

    Attributes:
        share: of the upper bound, or None; 1e-6 to 0.5.
        rate: in frames/s, or None; above 0. Exactly one of the two is given.
    """

    share: float | None = None
    rate: float | None = None

    def __post_init__(self) -> None:
        """Refuse what no search can reach."""
        if (self.share is None) == (self.rate is None):
            raise UsageError("error: give either a share of the result, such as 1%, or a rate, such as 1000")
        if self.share is not None:
            in_range("error (share)", self.share, 1e-6, 0.5)
        if self.rate is not None:
            positive("error", self.rate, "frames/s")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read "1%" (a share of the result) or "1000" (frames/s).

        Raises:
            UsageError: it is neither, or out of range.
        """
        percent = text.strip().endswith("%")
        try:
            value = float(text.strip().removesuffix("%"))
        except ValueError:
            raise UsageError(f"error: {text!r} is neither a share such as 1% nor a rate such as 1000") from None
        return cls(share=value / 100) if percent else cls(rate=value)

    def width(self, upper: float) -> float:
        """The most, in frames/s, that the lower bound may lie below this upper bound."""
        return self.rate if self.rate is not None else (self.share or 0.0) * upper

    def __str__(self) -> str:
        """As `parse` reads it."""
        return f"{self.rate:g}" if self.rate is not None else f"{(self.share or 0.0) * 100:g}%"


def about(text: str, unit: str = "") -> dict[str, str]:
    """What the user is told about a setting; kept in the field's metadata."""
    return {"help": text, "unit": unit}


@dataclass(frozen=True, kw_only=True)
class TrialSettings:
    """What every stateful procedure needs (RFC 9693 sections 4.1 to 4.4, 6).

    Attributes:
        connections: N, 1 to 2**31.
        placement: where the device's work is done, as the lab says.
        order: how phase 1 enumerates the four tuples.
        repeat: repetitions of the whole measurement, 1 to 1000; "auto" = until the interval that holds the median is
            narrow.
        profile: the name of the set of defaults that the other settings come from (see `natgauge.procedures.profiles`).
        loss_tolerance: share of frames a passing trial may lose; 0 <= share <= 0.5.
        frame_timeout_seconds: a frame later than this is lost; None = no limit of its own.
        invalid_repeats: how often an INVALID trial is repeated before its load is given up; 0 to 1000.
    """

    connections: int = field(metadata=about("number of connections, N", "connections"))
    placement: Placement = field(metadata=about("where the device's work is done: shared, isolated or external"))
    order: Order = field(default="permutation", metadata=about("order in which phase 1 enumerates the four tuples"))
    repeat: Repeat = field(default=3, metadata=about("repetitions of the whole measurement, or auto", "repetitions"))
    profile: Profile = field(default="default", metadata=about("set of defaults: default, quick, standard or rfc"))
    loss_tolerance: float = field(default=0.0, metadata=about("share of frames a passing trial may lose", "share"))
    frame_timeout_seconds: float | None = field(
        default=None, metadata=about("a frame later than this counts as lost", "s")
    )
    invalid_repeats: int = field(
        default=10, metadata=about("repeats of an INVALID trial before its load is given up", "trials")
    )

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        whole("connections", self.connections, 1, MAXIMUM_CONNECTIONS)
        one_of("placement", self.placement, get_args(Placement))
        one_of("order", self.order, get_args(Order))
        if isinstance(self.repeat, str):
            one_of("repeat", self.repeat, ("auto",))
        else:
            whole("repeat", self.repeat, 1, MOST_REPETITIONS, "repetitions")
        one_of("profile", self.profile, get_args(Profile))
        in_range("loss tolerance", self.loss_tolerance, 0.0, 0.5)
        if self.frame_timeout_seconds is not None:
            positive("frame timeout", self.frame_timeout_seconds, "seconds")
            in_range("frame timeout", self.frame_timeout_seconds, 0.0, LONGEST_TIMEOUT_SECONDS, "s")
        whole("invalid repeats", self.invalid_repeats, 0, 1000, "trials")

    @property
    def most_repetitions(self) -> int:
        """The most repetitions there will be."""
        return MOST_AUTO_REPETITIONS if isinstance(self.repeat, str) else self.repeat

    def needs(self) -> frozenset[Ability]:
        """What the measurer must be able to do, beyond plain trials."""
        return frozenset()

    @property
    def phase2_seconds(self) -> float:
        """Nominal length of phase 2 as far as the settings decide it, in seconds; 0 = no trial has one."""
        return 0.0

    @property
    def times_frames(self) -> bool:
        """Whether delays are recorded, which costs the tester speed."""
        return False

    @property
    def fills_table(self) -> bool:
        """Whether the device's table is filled on purpose."""
        return False

    @property
    def waits_for_expiry(self) -> bool:
        """Whether connections are to time out, so that the device's time-outs are not made longer than need be."""
        return False

    def parameters(self) -> dict[str, Any]:
        """All settings as plain values, as they stand in a result."""
        values = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        return {name: str(value) if isinstance(value, SearchError) else value for name, value in values.items()}


@dataclass(frozen=True, kw_only=True)
class RateSettings(TrialSettings):
    """Settings of a procedure that searches for a rate.

    Attributes:
        error: the most by which the bounds of the result may differ.
        loss_verifications: how often a FAIL is tried again before it is believed (as RFC 9004 section 5 allows); a
            PASS among them counts. 0 = a FAIL is a FAIL; at most 100.
        confirm: try both final bounds a second time, and a third where the two differ.
    """

    error: SearchError = field(
        default=SearchError(share=0.01), metadata=about("error of the search, such as 1% or 1000 (frames/s)")
    )
    loss_verifications: int = field(default=0, metadata=about("repeats of a FAIL before it is believed", "trials"))
    confirm: bool = field(default=True, metadata=about("try both final bounds again"))

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        super().__post_init__()
        whole("loss verifications", self.loss_verifications, 0, 100, "trials")


def inner(kind: type[SettingsT], settings: TrialSettings, **others: Any) -> SettingsT:
    """Settings of a measurement that another one needs first: measured once, all that every procedure has as in there.

    Args:
        kind: of the inner measurement.
        settings: of the one that needs it.
        others: what is the inner measurement's alone.

    Raises:
        UsageError: a value of `others` is refused.
    """
    common = {item.name: getattr(settings, item.name) for item in dataclasses.fields(TrialSettings)}
    return kind(**{**common, "repeat": 1, **others})


def refuse_unable(able: frozenset[Ability], metric: str, settings: TrialSettings) -> None:
    """Refuse a measurement that needs what the tester cannot do here, before anything starts.

    Raises:
        UsageError: an ability is missing; all that are missing are named.
    """
    missing = sorted(settings.needs() - able)
    if missing:
        named = " and ".join(missing)
        raise UsageError(f"metric {metric}: this tester lacks {named}; choose another metric or setting")


def verb(measurer: Measurer, kind: type[VerbT]) -> VerbT:
    """The measurer as one that has this verb; abilities were checked before.

    Raises:
        TypeError: it claims an ability and has no such verb.
    """
    if not isinstance(measurer, kind):
        raise TypeError(f"{type(measurer).__name__} claims an ability and lacks the verb of {kind.__name__}")
    return measurer


def shares(name: str, text: str) -> tuple[float, ...]:
    """Read "100%,50%,10%" or "100,50,10": shares of a rate, each once, from the highest down; 1 = 100 %.

    Raises:
        UsageError: one is no number, outside of 0.1 to 100 %, or given twice.
    """
    found = []
    for part in text.split(","):
        try:
            percent = float(part.strip().removesuffix("%"))
        except ValueError:
            raise UsageError(f"{name}: {text!r} is no list of percentages such as 100%,50%,10%") from None
        in_range(name, percent, 0.1, 100, "%")
        found.append(percent / 100)
    if len(set(found)) < len(found):
        raise UsageError(f"{name}: {text!r} names a share twice")
    return tuple(sorted(found, reverse=True))


def read_texts(values: Mapping[str, object]) -> dict[str, object]:
    """Settings as the command line gives them, with texts read that stand for something else.

    Raises:
        UsageError: a text cannot be read.
    """
    read = dict(values)
    if isinstance(error := read.get("error"), str):
        read["error"] = SearchError.parse(error)
    repeat = read.get("repeat")
    if isinstance(repeat, str) and repeat != "auto":
        if not repeat.strip().lstrip("-").isdigit():
            raise UsageError(f"repeat: {repeat!r} is neither a number nor auto")
        read["repeat"] = int(repeat)
    return read
