# SPDX-License-Identifier: Apache-2.0
"""Subscribers that share IPv4 addresses, each with a set of their ports: arithmetic of RFC 7597 section 5.1."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from natgauge.gateways.recipe_model import Number, RecipeTable
from natgauge.port_blocks import PortBlocks

#: Ports below are the system's (RFC 6335 section 6): no subscriber is given a set that has any (RFC 7596 section 5.1).
FIRST_PORT: Final = 1024
_PORT_BITS: Final = 16
#: With so many bits the first range, which belongs to no set, is that of the ports below `FIRST_PORT`.
_MOST_OFFSET: Final = 6
#: Bits of an IPv6 address before its interface identifier.
_PREFIX_BITS: Final = 64


class PortSets(RecipeTable):
    """Division of addresses and ports into sets. Subscriber 0 has the first set of the first address, and so on.

    Attributes:
        first_host: number of the first shared address in the network, from 1; hosts before it are no subscribers.
        psid_length: bits of a port that identify its set, "k", 0 to 16.
        psid_offset: bits of a port before these, "a", 0 to 15.
        most_subscribers: most subscribers that the devices serve; None = the number of sets.
        rule_prefix: rule IPv6 prefix of MAP, followed by the embedded address bits (RFC 7597 section 5).
        relay: IPv6 address of the BR, lwAFTR or AFTR, to which subscribers tunnel IPv4.
    """

    network: str
    first_host: Annotated[int, Field(ge=1, le=255)] = 1
    psid_length: Annotated[int, Field(ge=0, le=16)]
    psid_offset: Annotated[int, Field(ge=0, le=15)] = 0
    most_subscribers: Number | None = None
    fixed: bool = False
    rule_prefix: str = "2001:db8::/40"
    relay: str = "2001:db8:ffff::1"  # as in the examples of RFC 7597 appendix A

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.psid_length + self.psid_offset > _PORT_BITS:
            raise ValueError(
                f"psid_length {self.psid_length} and psid_offset {self.psid_offset} are more than the 16 bits of a "
                "port: no port is left for a set"
            )
        try:
            network = self.addresses
        except ValueError:
            raise ValueError(f"network {self.network}: is no IPv4 network; write for example 198.18.0.0/16") from None
        if network.num_addresses < 3 + self.first_host or not self.per_address:
            raise ValueError(f"network {self.network}, psid_length {self.psid_length}: has no set for anybody")
        try:
            ipaddress.IPv6Network(self.rule_prefix)
        except ValueError:
            raise ValueError(
                f"rule_prefix {self.rule_prefix}: is no IPv6 prefix; write for example 2001:db8::/40"
            ) from None
        try:
            ipaddress.IPv6Address(self.relay)
        except ValueError:
            raise ValueError(f"relay {self.relay}: is no IPv6 address; write for example 2001:db8:ffff::1") from None
        return self

    def chosen(self, length: int | None, offset: int | None) -> Self:
        """Return these sets with another length or offset of the PSID; None = as they are."""
        if (length, offset) in ((None, None), (self.psid_length, self.psid_offset)):
            return self
        if self.fixed:
            raise ValueError(f"the devices know only sets of {self}; leave both out")
        if (offset or 0) > _MOST_OFFSET:
            raise ValueError(
                f"psid_offset {offset}: sets would have ports below {FIRST_PORT} (RFC 7597 section 5.1); use 0 to "
                f"{_MOST_OFFSET}"
            )
        wanted = {"psid_length": length, "psid_offset": offset}
        chosen = {name: value for name, value in wanted.items() if value is not None}
        return type(self)(**{**self.model_dump(), **chosen})

    @property
    def addresses(self) -> ipaddress.IPv4Network:
        """Network of the outside addresses that subscribers share (RFC 7597 section 5.1: rule IPv4 prefix)."""
        return ipaddress.IPv4Network(self.network)

    @property
    def prefix(self) -> ipaddress.IPv6Network:
        """The rule IPv6 prefix of MAP."""
        return ipaddress.IPv6Network(self.rule_prefix)

    @property
    def embedded_bits(self) -> int:
        """Number of embedded address bits of MAP: those of the IPv4 suffix, then the PSID."""
        return 32 - self.addresses.prefixlen + self.psid_length

    @property
    def has_map_addresses(self) -> bool:
        """Whether prefix and embedded address bits end before the interface identifier (RFC 7597 section 5.2)."""
        return self.prefix.prefixlen + self.embedded_bits <= _PREFIX_BITS

    @property
    def fitting_prefix(self) -> ipaddress.IPv6Network:
        """The rule IPv6 prefix, cut to where MAP addresses would fit. Behind a relay, nobody sees an address of it."""
        length = min(self.prefix.prefixlen, _PREFIX_BITS - self.embedded_bits)
        return self.prefix.supernet(new_prefix=length)

    def refuse_long_rule(self) -> None:
        """Refuse a rule without MAP addresses."""
        if not self.has_map_addresses:
            raise ValueError(
                f"rule_prefix {self.rule_prefix}: {self.embedded_bits} embedded address bits after it make more than 64"
            )

    def map_address(self, subscriber: int) -> ipaddress.IPv6Address:
        """Return the MAP address of a subscriber, 0 .. `most` - 1 (RFC 7597 section 6)."""
        address, psid = self.of(subscriber)
        suffix = (int(address) - int(self.addresses.network_address)) << self.psid_length | psid
        upper = suffix << _PREFIX_BITS - self.prefix.prefixlen - self.embedded_bits
        return self.prefix.network_address + (upper << _PREFIX_BITS | int(address) << _PORT_BITS | psid)

    @property
    def ports(self) -> int:
        """Number of ports of a set (RFC 7597 section 5.1); with an offset, ports of the first range are left out."""
        ranges = (1 << self.psid_offset) - (1 if self.psid_offset else 0)
        return ranges << (_PORT_BITS - self.psid_offset - self.psid_length)

    @property
    def first(self) -> int:
        """The first PSID that is given out: without an offset, the lowest sets have the system's ports."""
        return 0 if self.psid_offset else -(-FIRST_PORT // self.ports)

    @property
    def per_address(self) -> int:
        """Number of subscribers that share an address."""
        return (1 << self.psid_length) - self.first

    @property
    def shared_addresses(self) -> int:
        """Number of outside addresses whose sets are given out."""
        return self.addresses.num_addresses - 1 - self.first_host

    @property
    def blocks(self) -> PortBlocks:
        """The same sets as blocks, one for each subscriber: their number and size, not which ports they have."""
        return PortBlocks(size=self.ports, first_port=(1 << _PORT_BITS) - self.per_address * self.ports)

    @property
    def most(self) -> int:
        """Largest possible number of subscribers."""
        sets = self.shared_addresses * self.per_address
        return sets if self.most_subscribers is None else min(sets, self.most_subscribers)

    def of(self, subscriber: int) -> tuple[ipaddress.IPv4Address, int]:
        """Address and PSID of a subscriber, 0 .. `most` - 1."""
        address, psid = divmod(subscriber, self.per_address)
        return self.addresses[self.first_host + address], self.first + psid

    def psid(self, port: int) -> int | None:
        """The set a port, 0 to 65535, is in; None where its offset bits leave it out of all."""
        if self.psid_offset and not port >> (_PORT_BITS - self.psid_offset):
            return None
        return port >> (_PORT_BITS - self.psid_offset - self.psid_length) & ((1 << self.psid_length) - 1)

    def environment(self, subscribers: int) -> Mapping[str, str]:
        """Return the variables that describe the port sets to snippets."""
        return {
            "NG_SUBSCRIBERS": str(subscribers),
            "NG_SHARED_NETWORK4": self.network,
            "NG_SHARED_ADDRESS4": str(self.of(0)[0]),
            "NG_PSID_LENGTH": str(self.psid_length),
            "NG_PSID_OFFSET": str(self.psid_offset),
            "NG_PSID_FIRST": str(self.first),
            "NG_RULE_PREFIX6": str(self.fitting_prefix),
            "NG_RELAY6": self.relay,
            **self._of_first_customer(),
        }

    def _of_first_customer(self) -> dict[str, str]:
        """Return the MAP address and the end-user prefix of subscriber 0 (RFC 7597 sections 5 and 6)."""
        if not self.has_map_addresses:
            return {}
        length = self.prefix.prefixlen + self.embedded_bits
        address = self.map_address(0)
        return {
            "NG_CUSTOMER_ADDRESS6": str(address),
            "NG_CUSTOMER_PREFIX6": str(ipaddress.IPv6Network((address, length), strict=False)),
        }

    def __str__(self) -> str:
        return f"{self.ports} ports (PSID length {self.psid_length}, offset {self.psid_offset})"
