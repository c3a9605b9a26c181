# SPDX-License-Identifier: Apache-2.0
"""Ranges of ports and addresses as the user writes them, "A" or "A-B", and which addresses may carry test traffic."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from natgauge.inputs.checks import wrong
from natgauge.labs.contract import Addresses
from natgauge.words import Address, Family, Network

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
