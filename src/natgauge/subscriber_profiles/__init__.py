# SPDX-License-Identifier: Apache-2.0
"""Subscriber profiles: what one subscriber asks of a gateway at the busiest time, as TOML files with their sources.

A profile is a file of the user, or the name of a file in this folder. No RFC defines any.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from natgauge import file_access, toml_text
from natgauge.errors import UsageError, about, did_you_mean, shown
from natgauge.ethernet import BETWEEN_FRAMES, FRAME_OVERHEAD, LARGEST_FRAME, LEAST_OCTETS, ONE_PAGE
from natgauge.figure_text import in_full, number, with_noun
from natgauge.inputs.input import Input, Text, chosen, in_range, inputs_of, one_of, positive
from natgauge.inputs.measuring_types import SizeMix, read_mix

#: Octets that bits are counted of: the IP packet, or the frame with its FCS, preamble and gap (RFC 5180 appendix A.1).
BitsOf = Literal["ip", "wire"]

#: The table of the file.
_TABLE: Final = "subscriber"
#: A connection that leaves sooner than this, in seconds, has no time for an answer.
ROUND_TRIP_SECONDS: Final = 0.01
#: Bits and frames of the same direction may differ by this share, for both are rounded.
_ROUNDED: Final = 0.01
#: The least and the most of anything that one subscriber may take: with less or more, numbers that follow from it are
#: larger than a float holds.
_LEAST: Final = 1e-9
_MOST: Final = 1e12
_FOLDER: Final = Path(__file__).parent
_SIZE: Final = r"\s*\d{1,9}\s*"
_FORM: Final = "one size is 594, sizes with equal shares are [64, 1518]"
_KIND: Final = file_access.FileKind("subscriber", "name a profile, or the file of one", 1 << 20)


def _of_one(name: str, value: float) -> None:
    """Refuse what no subscriber takes each second; 0 is possible."""
    in_range(name, value, 0, _MOST)
    if 0 < value < _LEAST:
        raise UsageError(f"{name}: {value!r} is next to nothing; give 0, or at least {_LEAST:g}")


def _open(name: str, value: float) -> None:
    """Refuse a number of connections that no subscriber has."""
    positive(name, value, "connections")
    in_range(name, value, _LEAST, _MOST, "connections")


class _SizesType(Text):
    """Frame sizes, such as 594, [64, 1518] or "64:7,594:4,1518:1"; those without weights are equally frequent."""

    def take(self, name: str, value: object) -> Any:
        every = value if isinstance(value, list) else [value]
        if not every or any(isinstance(each, bool) or not isinstance(each, int | float | str) for each in every):
            raise UsageError(f"{name}: {shown(value)} is no frame size; {_FORM}")
        text = ",".join(map(str, every))
        is_single = isinstance(value, list) or "," not in text
        if is_single and all(re.fullmatch(_SIZE, each, re.ASCII) for each in text.split(",")):
            text = ",".join(f"{int(each)}:1" for each in text.split(","))
        try:
            return read_mix(text, single=_FORM)
        except ValueError as error:
            raise UsageError(f"{name}: {error}") from None


@dataclass(frozen=True, kw_only=True)
class Subscriber:
    """What one subscriber takes.

    Attributes:
        connections: open at a time, as a gateway's table counts them; above 0.
        new_per_second: connections that it opens a second; the oldest leave as often.
        up_frames_per_second: frames of open connections; with bits and a size they follow from these.
        up_frame_sizes: octets with FCS on the Initiator's side; None = as down, or the least.
        source: where the numbers were published; empty = not said.
    """

    connections: float = chosen(MISSING, "open connections", "connections", _open)
    new_per_second: float = chosen(MISSING, "new connections", "connections/s", _of_one)
    up_frames_per_second: float | None = chosen(None, "sent frames", "frames/s", _of_one)
    down_frames_per_second: float | None = chosen(None, "received frames", "frames/s", _of_one)
    up_bits_per_second: float | None = chosen(None, "sent bits", "bit/s", _of_one)
    down_bits_per_second: float | None = chosen(None, "received bits", "bit/s", _of_one)
    up_frame_sizes: SizeMix | None = chosen(None, "sizes", "octets", type=_SizesType())
    down_frame_sizes: SizeMix | None = chosen(None, "sizes", "octets", type=_SizesType())
    bits: BitsOf = chosen("ip", "layer of the bits")
    transport: Literal["udp", "tcp"] = chosen("udp", "transport", check=partial(one_of, allowed=("udp", "tcp")))
    source: str = chosen("", "source")

    def __post_init__(self) -> None:
        """Refuse what contradicts itself."""
        for way in ("up", "down"):
            self._refuse_sizes(way)
            self._refuse_unlike(way)
        if self.bits != "ip" and self.up_bits_per_second is None and self.down_bits_per_second is None:
            raise _wrong("bits", f"{self.bits}, but no key has bits; leave it out, or add up_bits_per_second")
        if not (self.new_per_second or self.up or self.down):
            raise _wrong("new_per_second", "0, and there are no frames; a subscriber opens connections or has frames")
        if self.connections < self.new_per_second * ROUND_TRIP_SECONDS:
            raise _wrong(
                "connections",
                f"{in_full(self.connections)} with {with_noun(in_full(self.new_per_second), 'new connections/s')} live "
                f"{number(1000 * self.life)} ms, shorter than a round trip of {1000 * ROUND_TRIP_SECONDS:g} ms; give "
                f"at least {number(self.new_per_second * ROUND_TRIP_SECONDS)}",
            )

    def __str__(self) -> str:
        """Return all that a trial takes of it."""
        sizes = " and ".join(dict.fromkeys(map(written, self.sizes)))
        size = "least frames" if None in self.sizes else f"{sizes} octets"
        return (
            f"{in_full(self.connections)} connections, {in_full(self.new_per_second)} new/s, "
            f"{number(self.up)} frames/s up, {number(self.down)} down, {size}, {self.transport}"
        )

    def _refuse_sizes(self, way: str) -> None:
        """Refuse sizes that frames of no family have; the family and the ports are known later."""
        sizes, least = getattr(self, f"{way}_frame_sizes"), LEAST_OCTETS[self.transport]
        for size in () if sizes is None else sizes.sizes:
            if size < least:
                over = "TCP over " if self.transport == "tcp" else ""
                what = f"small; the least with {over}IPv4 is {least}"
            elif size > LARGEST_FRAME:
                what = f"large: {ONE_PAGE}; the most is {LARGEST_FRAME}"
            else:
                continue
            raise _wrong(f"{way}_frame_sizes", f"{size} octets is too {what} (FCS included)")

    def _refuse_unlike(self, way: str) -> None:
        bits, frames, size = (
            getattr(self, f"{way}_{name}") for name in ("bits_per_second", "frames_per_second", "frame_sizes")
        )
        if bits is None:
            return
        if size is None:
            raise _wrong(f"{way}_bits_per_second", f"{in_full(bits)} bit/s of frames of no size; add {way}_frame_sizes")
        carried = bits if frames is None else frames * self._bits(size)
        if abs(carried - bits) > _ROUNDED * max(bits, carried):
            raise _wrong(
                f"{way}_bits_per_second",
                f"{in_full(bits)} bit/s, but {number(frames, 6)} frames/s of {number(size.mean, 6)} octets have "
                f"{number(carried, 6)} bit/s ({self.bits}); leave one of both out",
            )

    def _bits(self, sizes: SizeMix) -> float:
        return 8 * (sizes.mean - FRAME_OVERHEAD if self.bits == "ip" else sizes.mean + BETWEEN_FRAMES)

    def _frames(self, way: str) -> float:
        frames, bits, size = (
            getattr(self, f"{way}_{name}") for name in ("frames_per_second", "bits_per_second", "frame_sizes")
        )
        return float(frames) if frames is not None else bits / self._bits(size) if bits is not None else 0.0

    @property
    def up(self) -> float:
        """Frames/s that it sends over open connections."""
        return self._frames("up")

    @property
    def down(self) -> float:
        """Frames/s that it receives over open connections."""
        return self._frames("down")

    @property
    def life(self) -> float:
        """Seconds for which a connection is open; infinite where none is new."""
        return self.connections / self.new_per_second if self.new_per_second else math.inf

    @property
    def sizes(self) -> tuple[SizeMix | None, SizeMix | None]:
        """Sizes of the frames of each direction; None = the least. A direction without sizes has those of the other."""
        return self.up_frame_sizes or self.down_frame_sizes, self.down_frame_sizes or self.up_frame_sizes

    def frames_of_trials(self, tags: int) -> dict[str, object]:
        """Return the options of the traffic that its frames are: one size, a mix, or a mix for each direction.

        `tags`: octets of VLAN tags, which its frame sizes do not contain.
        """
        up, down = (None if mix is None else mix.longer(tags) for mix in self.sizes)
        if up is None or (up == down and len(up.shares) == 1):
            return {"frame_size": None if up is None else up.sizes[0]}
        return {"frame_sizes": str(up), **({} if up == down else {"down_frame_sizes": str(down)})}


def profiles() -> tuple[str, ...]:
    """Names of the profiles that come with natgauge."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


def load(name: str) -> Subscriber:
    """Read a profile, by its name or the path of its file; UsageError, in one line, for what is none."""
    path = _FOLDER / f"{name}.toml" if name in profiles() else Path(name)
    if path.parent == Path() and not path.suffix and not _is_there(path):
        raise UsageError(
            f"subscriber: there is no profile {name!r}, and no such file; {did_you_mean(name, profiles())}",
            at="subscriber",
        )
    with about("subscriber"):
        text = file_access.read_text(path, _KIND)
    try:
        document = toml_text.parse(text)
    except ValueError as error:
        raise UsageError(f"subscriber: {path} is no TOML: {error}", at="subscriber") from None
    try:
        return _of(document)
    except UsageError as error:
        raise UsageError(f"subscriber: {path}: {error}", at="subscriber") from None


def _is_there(path: Path) -> bool:
    try:
        return file_access.is_there(path)
    except OSError:
        # No file has such a name.
        return False


def _of(document: Mapping[str, Any]) -> Subscriber:
    for key in document:
        if key != _TABLE:
            raise UsageError(f"{key}: unknown key; there is the table [{_TABLE}], and nothing else")
    table = document.get(_TABLE)
    if not isinstance(table, Mapping):
        raise UsageError(f"the table [{_TABLE}] is missing; write its keys below it")
    known = {input_.name: input_ for input_ in inputs_of(Subscriber)}
    for key in table:
        if key not in known:
            raise _wrong(key, f"unknown key; {did_you_mean(key, known)}")
    missing = next((each for name, each in known.items() if each.required and name not in table), None)
    if missing is not None:
        raise _wrong(missing.name, f"is missing; give the number of {missing.help}")
    return Subscriber(**_taken(table, known))


def _taken(table: Mapping[str, Any], known: Mapping[str, Input]) -> dict[str, Any]:
    values = dict(table)
    if str(values.get("transport")).lower() in {"udp", "tcp"}:
        values["transport"] = str(values["transport"]).lower()
    taken = {}
    for name, value in values.items():
        input_, where = known[name], f"{_TABLE}.{name}"
        taken[name] = input_.type.take(where, value)
        if input_.check is not None:
            input_.check(where, taken[name])
    return taken


def written(sizes: SizeMix | None) -> str:
    """Return the sizes as in a profile; one size has no weight."""
    return "least" if sizes is None else str(sizes.sizes[0] if len(sizes.shares) == 1 else sizes)


def _wrong(name: str, what: str) -> UsageError:
    return UsageError(f"{_TABLE}.{name}: {what}")
