# SPDX-License-Identifier: Apache-2.0
"""Mixes of frame sizes: sizes with weights, such as 64:7,594:4,1518:1 (RFC 6985 names such mixes)."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass
from typing import Final

from natgauge.inputs.checks import wrong

#: The most sizes that the engine takes, and the most consecutive frames that have a mix's shares.
MOST_SIZES: Final = 8
MOST_WEIGHT: Final = 1000
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
    if len(read) > MOST_SIZES:
        raise ValueError(f"{text!r} has {len(read)} sizes; the most is {MOST_SIZES}")
    if (unweighted := next((size for size, weight in read if not weight), None)) is not None:
        raise ValueError(f"{text!r} has a weight of 0 for {unweighted} octets; leave that size out")
    common = math.gcd(*(weight for _, weight in read))
    mix = SizeMix(tuple((size, weight // common) for size, weight in read))
    if (total := sum(weight for _, weight in mix.shares)) > MOST_WEIGHT:
        raise ValueError(f"{text!r} has weights of {total} in all; the most is {MOST_WEIGHT}: use smaller ones")
    return mix
