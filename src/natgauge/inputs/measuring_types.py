# SPDX-License-Identifier: Apache-2.0
"""Types of inputs with a form of their own: lists of cores, loads, repetitions, errors of searches, frame sizes.

Lists of cores are written as the kernel writes them. Values for each device of a chain are here, too. Loads are shares.
Mixes of frame sizes are sizes with weights, such as 64:7,594:4,1518:1 (RFC 6985 names such mixes).
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from natgauge.errors import UsageError
from natgauge.inputs.input import InputType, Share, Text, of_value, plain_number, positive, share_in, share_of, wrong

#: No machine has this many cores.
MOST_CORES: Final = 4096
_CORES_PART: Final = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")
#: Begins the value of one device of a chain, as "ce=".
_DEVICE_VALUE: Final = re.compile(r"([a-z0-9]{1,16})=(.*)")
_NEXT_DEVICE: Final = re.compile(r",(?=[a-z0-9]{1,16}=)")


@dataclass(frozen=True)
class CoreList(InputType):
    """Cores, as the kernel writes lists of them: "0,2-3"."""

    metavar: str = "CORES"
    annotation: str = "str | int | Sequence[int]"

    def take(self, name: str, value: object) -> tuple[int, ...]:
        """The cores in ascending order, from a text, a number or a sequence of numbers."""
        if isinstance(value, Sequence) and not isinstance(value, str):
            value = ",".join(map(str, value))
        return parse_cores(Text().take(name, value), spoken_name=name)

    def write(self, value: Any) -> str:
        """Return the cores as a list with commas: "0,2,3"."""
        return format_cores(value)


def parse_cores(text: str, spoken_name: str = "cores") -> tuple[int, ...]:
    """Return the cores, ascending, of a list as the kernel writes it: "0", "0,2", "0-3,8"."""
    cores: list[int] = []
    where = f'{spoken_name} "{text}"'.lstrip()
    for part in text.strip().split(","):
        match = _CORES_PART.fullmatch(part.strip())
        if match is None:
            raise UsageError(f'{where}: "{part}" is neither a core nor a range of cores; write e.g. 0,2-3')
        first = int(match[1])
        last = int(match[2]) if match[2] else first
        if last < first:
            raise UsageError(f'{where}: range "{part}" is reversed; write {last}-{first}')
        cores.extend(range(first, last + 1))
    if len(set(cores)) != len(cores):
        raise UsageError(f"{where}: a core is named twice; name each once")
    return tuple(sorted(cores))


def format_cores(cores: Iterable[int]) -> str:
    """Write cores as a plain list with commas, e.g. "0,2,3"."""
    return ",".join(str(core) for core in cores)


@dataclass(frozen=True)
class DeviceCoreList(InputType):
    """Cores of all devices together, "0,2-3", or of each device of a chain by its name, "ce=2-3,pe=4,5"."""

    metavar: str = "CORES"
    annotation: str = "str | int | Sequence[int] | dict[str, str]"

    def take(self, name: str, value: object) -> CoreChoice:
        """The cores, from a text, a number, a sequence of numbers, or any of these for each device by its name."""
        if isinstance(value, Mapping):
            value = self.write({device: CoreList().take(f"{name} of {device}", each) for device, each in value.items()})
        named = by_device(name, value) if isinstance(value, str) else None
        if named is None:
            return CoreList().take(name, value)
        return {device: parse_cores(cores, spoken_name=f"{name} of {device}") for device, cores in named.items()}

    def write(self, value: Any) -> str:
        """Return the cores as a list with commas, or such a list for each device: "ce=2,3,pe=4"."""
        if not isinstance(value, Mapping):
            return format_cores(value)
        return ",".join(f"{device}={format_cores(cores)}" for device, cores in value.items())


#: Cores of all devices together, or of each device of a chain by its name.
CoreChoice = tuple[int, ...] | Mapping[str, tuple[int, ...]]


def cores_in(cores: CoreChoice | None) -> tuple[int, ...]:
    """Return every core of a choice once, ascending; empty without a choice."""
    if isinstance(cores, Mapping):
        return tuple(sorted({core for each in cores.values() for core in each}))
    return cores or ()


def by_device(name: str, text: str) -> dict[str, str] | None:
    """Read values of a chain's devices, "ce=A,pe=B", by device; None where the text names no device."""
    if _DEVICE_VALUE.match(text.strip()) is None:
        return None
    values: dict[str, str] = {}
    for part in _NEXT_DEVICE.split(text.strip()):
        device, _, value = part.partition("=")
        if device in values or not value.strip():
            fault = "is named twice; name it once" if device in values else "has no value; write one after the ="
            raise UsageError(f'{name} "{text}": device {device} {fault}'.lstrip())
        values[device] = value.strip()
    return values


@dataclass(frozen=True)
class Shares(InputType):
    """Shares of a rate, each once, from the highest down: "100%,50%,10%" and "1,0.5,0.1" are the same.

    The value is the text with percent signs, which is how results store it; `shares` gives the numbers.
    """

    metavar: str = "SHARES"
    annotation: str = "str | Sequence[float]"

    def take(self, name: str, value: object) -> str:
        """The shares in percent, from the highest down ("100%,50%"), of a text or a sequence of numbers."""
        if isinstance(value, Sequence) and not isinstance(value, str):
            value = ",".join(map(str, value))
        return ",".join(Share().write(share) for share in shares(name, Text().take(name, value)))


def shares(name: str, text: str) -> tuple[float, ...]:
    """Read "100%,50%,10%" or "1,0.5,0.1": shares of a rate, each once, 0.1 to 100 %, highest first; 1 = 100 %."""
    shares_read = []
    for part in text.split(","):
        share = share_of(part)
        if share is None:
            raise UsageError(of_value(name, f"{text!r} is no list of shares such as 100%,50%,10%"))
        if not 0.001 <= share <= 1:
            raise UsageError(of_value(name, f"{part.strip()!r} is outside of 0.1% to 100%"))
        shares_read.append(share)
    if len(set(shares_read)) < len(shares_read):
        raise UsageError(of_value(name, f"{text!r} names a share twice"))
    return tuple(sorted(shares_read, reverse=True))


@dataclass(frozen=True)
class RepetitionCount(InputType):
    """A number of repetitions, or "auto"."""

    metavar: str = "N|auto"
    annotation: str = 'int | Literal["auto"]'

    def take(self, name: str, value: object) -> int | str:
        """The number, or "auto"; a number may be a text, as in TOML."""
        text = Text().take(name, value)
        if text == "auto":
            return text
        try:
            return int(text)
        except ValueError:
            raise UsageError(of_value(name, f"{text!r} is neither a number nor auto")) from None


@dataclass(frozen=True, slots=True)
class SearchError:
    """The error of a search (RFC 9693 section 6 reports it): the most by which upper and lower bound may differ.

    Attributes:
        share: share of the upper bound, or None; 1e-6 to 0.5.
        rate: in frames/s, or None; at least 1. Exactly one of the two is given.
    """

    share: float | None = None
    rate: float | None = None

    def __post_init__(self) -> None:
        """Refuse what no search can reach."""
        if (self.share is None) == (self.rate is None):
            raise UsageError(
                "error: give either a share of the result, such as 1%, or a rate, such as 1000", at="error"
            )
        if self.share is not None:
            share_in("error", self.share, 1e-6, 0.5)
        if self.rate is not None:
            positive("error", self.rate, "frames/s")
            if self.rate < 1:
                raise UsageError(f"error: {self.rate:g} frames/s is below 1; give a share such as 1%", at="error")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read "1%" or "0.01" (a share of the result) or "1000" (frames/s); a number below 1 is a share."""
        value = share_of(text)
        if value is None or math.isnan(value):
            raise UsageError(f"error: {text!r} is neither a share such as 1% nor a rate such as 1000", at="error")
        return cls(share=value) if text.strip().endswith("%") or value < 1 else cls(rate=value)

    def width(self, upper: float) -> float:
        """The most, in frames/s, that the lower bound may lie below this upper bound."""
        return self.rate if self.rate is not None else (self.share or 0.0) * upper

    def __str__(self) -> str:
        """Return the error in the form that `parse` accepts."""
        if self.rate is None:
            return Share().write(self.share)
        return plain_number(self.rate)


@dataclass(frozen=True)
class ErrorOfSearch(InputType):
    """The error of a search: a share of the result such as 1%, or a rate such as 1000."""

    metavar: str = "SHARE|RATE"
    annotation: str = "float | str"

    def take(self, name: str, value: object) -> SearchError:
        """The error, from itself, a number or a text such as "2%" or "1000"; see `SearchError.parse`."""
        return value if isinstance(value, SearchError) else SearchError.parse(Text().take(name, value))


#: The most sizes that the engine takes, and the most consecutive frames that have a mix's shares.
_MOST_SIZES: Final = 8
_MOST_WEIGHT: Final = 1000
_SHARE: Final = re.compile(r"\s*(\d{1,9})\s*:\s*(\d{1,9})\s*", re.ASCII)
_FORM: Final = "write SIZE:WEIGHT,... with whole numbers, such as 64:7,594:4,1518:1"


@dataclass(frozen=True, slots=True)
class SizeMix:
    """A mix; equal mixes are equal.

    Attributes:
        shares: sizes in octets with FCS, each once and rising, with their weights, which have no common divisor.
    """

    shares: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        """Return the mix as in options and records."""
        return ",".join(f"{size}:{weight}" for size, weight in self.shares)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes, from the least on."""
        return tuple(size for size, _ in self.shares)

    @property
    def mean(self) -> float:
        """Mean octets with FCS of a frame."""
        return sum(size * weight for size, weight in self.shares) / sum(weight for _, weight in self.shares)

    def longer(self, octets: int) -> SizeMix:
        """Return the mix of the same frames on a link where each has more octets, or fewer."""
        return SizeMix(tuple((size + octets, weight) for size, weight in self.shares))


def parse_frame_sizes(name: str, text: str) -> SizeMix:
    """Read a mix; the sizes that family, transport and ports allow are checked by `setup.traffic`."""
    try:
        return read_mix(text)
    except ValueError as error:
        raise wrong(name, str(error)) from None


def read_mix(text: str, single: str = "one size is an input of its own (frame size)") -> SizeMix:
    """Read a mix; ValueError says what is wrong, and of sizes without weights `single`, how one is given."""
    parts = [_SHARE.fullmatch(part) for part in text.split(",")]
    read = [(int(part[1]), int(part[2])) for part in parts if part is not None]
    if len(read) < len(parts):
        one = re.fullmatch(r"[\d\s,]+", text, re.ASCII)
        what = f"names no weights; {single}" if one else "is no mix of frame sizes"
        raise ValueError(f"{text!r} {what}; {_FORM}")
    read.sort()
    twice = next((one for (one, _), (other, _) in itertools.pairwise(read) if one == other), None)
    if twice is not None:
        raise ValueError(f"{text!r} has {twice} octets twice; add their weights")
    if len(read) > _MOST_SIZES:
        raise ValueError(f"{text!r} has {len(read)} sizes; the most is {_MOST_SIZES}")
    if (unweighted := next((size for size, weight in read if not weight), None)) is not None:
        raise ValueError(f"{text!r} has a weight of 0 for {unweighted} octets; leave that size out")
    common = math.gcd(*(weight for _, weight in read))
    mix = SizeMix(tuple((size, weight // common) for size, weight in read))
    if (total := sum(weight for _, weight in mix.shares)) > _MOST_WEIGHT:
        raise ValueError(f"{text!r} has weights of {total} in all; the most is {_MOST_WEIGHT}: use smaller ones")
    return mix
