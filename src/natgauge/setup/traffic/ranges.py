# SPDX-License-Identifier: Apache-2.0
"""Ports, addresses ("A" or "A-B") and VLAN tags as the user writes them; which addresses may carry test traffic.

VLAN tags (IEEE 802.1Q): "100", behind a service tag "9.100", one for each source address "100+".
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final, get_args

from natgauge.ethernet import tag_octets
from natgauge.inputs.checks import wrong
from natgauge.inputs.question import FrameOptions
from natgauge.labs.contract import Addresses
from natgauge.words import Address, Family, Network, Side

LAST_PORT = 65535

#: Ranges that may carry test traffic: benchmarking (RFC 2544, RFC 5180 as corrected by RFC 8219 section 14), private,
#: shared (RFC 6598), documentation and the well-known NAT64 prefix. Other addresses may be in use.
TEST_NETWORKS: tuple[Network, ...] = tuple(
    ipaddress.ip_network(text)
    for text in (
        "198.18.0.0/15",
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",
        "192.0.2.0/24",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "2001:2::/48",
        "2001:db8::/32",
        "fc00::/7",
        "64:ff9b::/96",
        "64:ff9b:1::/48",
    )
)


@dataclass(frozen=True, slots=True)
class Range:
    """Integers or addresses from `first` to `last`, both included."""

    first: int
    last: int

    @property
    def count(self) -> int:
        """Number of values in the range."""
        return self.last - self.first + 1


_PORTS = re.compile(r"^\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?$")


def parse_ports(name: str, text: str) -> Range:
    """Read "A" or "A-B"."""
    match = _PORTS.match(text)
    if match is None:
        raise wrong(name, f"{text!r} is not a port range; write A-B, for example 1024-65535")
    first = int(match[1])
    last = int(match[2]) if match[2] is not None else first
    for port in (first, last):
        if not 1 <= port <= LAST_PORT:
            raise wrong(name, f"port {port} in {text!r} is outside of 1 to {LAST_PORT}")
    if first > last:
        raise wrong(name, f"{text!r} is reversed; write the lower port first")
    return Range(first, last)


def parse_addresses(name: str, text: str, family: Family) -> Addresses:
    """Read "A" or "A-B" of one family."""
    parts = [part.strip() for part in text.split("-")]
    if len(parts) > 2 or not all(parts):
        raise wrong(name, f"{text!r} is not an address range; write A or A-B")
    first, last = _address(name, parts[0], family), _address(name, parts[-1], family)
    if int(first) > int(last):
        raise wrong(name, f"{text!r} is reversed; write the lower address first")
    if family == "ipv6" and int(first) >> 64 != int(last) >> 64:
        raise wrong(name, f"{text!r} differs in the upper 64 bits; both ends must share them")
    return Addresses(first, last)


def _address(name: str, text: str, family: Family) -> Address:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise wrong(name, f"{text!r} is not an IP address{meant_range(text)}") from None
    if address.version != (4 if family == "ipv4" else 6):
        raise wrong(name, f"{text} is IPv{address.version}, this side of the device uses {spoken(family)}")
    if not any(address in network for network in TEST_NETWORKS if network.version == address.version):
        raise wrong(
            name,
            f"{text} is not a test address; use a benchmarking (198.18.0.0/15, 2001:2::/48), private or "
            "documentation range",
        )
    return address


def spoken(family: Family) -> str:
    """Return a family's usual spelling."""
    return "IPv4" if family == "ipv4" else "IPv6"


def meant_range(text: str) -> str:
    """Return "; write FIRST-LAST" for a network; empty where none was meant."""
    if "/" not in text:
        return ""
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        return ""
    first, last = network.network_address, network.broadcast_address
    if network.num_addresses > 2:
        first, last = first + 1, last - (1 if network.version == 4 else 0)
    return f"; write {first}-{last}" if first != last else f"; write {first}"


#: VLANs 0 and 4095 are reserved.
LAST_VLAN: Final = 4094
_SIDES: Final[tuple[Side, ...]] = get_args(Side)
#: Octets by which a frame may exceed its port's MTU for its tags: every port takes one (kernel: xdp_ok_fwd_dev()).
MOST_BESIDE_MTU: Final = 4
_VLAN: Final = re.compile(r"(?:([1-9]\d{0,3})\.)?([1-9]\d{0,3})(\+?)", re.ASCII)


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
    found = _VLAN.fullmatch(text)
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
