# SPDX-License-Identifier: Apache-2.0
"""VLAN tags of test frames (IEEE 802.1Q): "100", behind a service tag "9.100", one for each source address "100+"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, get_args

from natgauge.ethernet import tag_octets
from natgauge.inputs.checks import wrong
from natgauge.inputs.question import FrameOptions
from natgauge.words import Side

#: VLANs 0 and 4095 are reserved.
LAST_VLAN: Final = 4094
_SIDES: Final[tuple[Side, ...]] = get_args(Side)
#: Octets by which a frame may exceed its port's MTU for its tags: every port takes one (kernel: xdp_ok_fwd_dev()).
MOST_BESIDE_MTU: Final = 4
_TEXT: Final = re.compile(r"(?:([1-9]\d{0,3})\.)?([1-9]\d{0,3})(\+?)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Vlan:
    """VLAN tags of one side.

    Attributes:
        first: of the tag next to the packet, 1 to 4094.
        service: of a tag before it; None = there is none.
        each_source: whether each source address has a VLAN of its own, from `first` on.
    """

    first: int
    service: int | None = None
    each_source: bool = False

    def __str__(self) -> str:
        return f"{self.first}" if self.service is None else f"{self.service}.{self.first}"


def parse_vlan(name: str, text: str) -> Vlan:
    """Return the tags that the input `name` has; UsageError where the text is none, or a number is out of range."""
    found = _TEXT.fullmatch(text)
    numbers = [int(number) for number in (found.groups()[:2] if found else ()) if number is not None]
    if found is None or not all(1 <= number <= LAST_VLAN for number in numbers):
        raise wrong(name, f"{text} is no VLAN; give 1 to {LAST_VLAN}, such as 100, or 9.100 behind a service tag")
    each = bool(found.group(3))
    if each and name != "initiator_vlan":
        raise wrong(name, f"{text}, but only source addresses have VLANs of their own; leave out the +")
    return Vlan(numbers[-1], numbers[0] if len(numbers) > 1 else None, each)


def vlans(frames: FrameOptions) -> dict[Side, Vlan]:
    """Return the tags of the sides that have some."""
    texts = {side: (f"{side}_vlan", getattr(frames, f"{side}_vlan")) for side in _SIDES}
    return {side: parse_vlan(name, text) for side, (name, text) in texts.items() if text is not None}


def octets_of_tags(frames: FrameOptions) -> dict[Side, int]:
    """Return the octets that the tags of each side's frames have."""
    found = vlans(frames)
    return {side: tag_octets(str(found[side])) if side in found else 0 for side in _SIDES}
