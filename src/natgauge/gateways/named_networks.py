# SPDX-License-Identifier: Apache-2.0
"""IPv4 networks that rules name: those of the test traffic, and those that are somewhere else."""

from __future__ import annotations

import re
from collections.abc import Collection
from ipaddress import IPv4Address, IPv4Network, summarize_address_range
from typing import Final

from natgauge.words import Address

_ADDRESS: Final = r"\d{1,3}(?:\.\d{1,3}){3}"
_NAMED: Final = re.compile(rf"(?<![\w.])({_ADDRESS})(?:/(\d+)|-({_ADDRESS}))?(?![\w/]|\.\d)")
#: A comment of rules, of shell and of TOML; a comment or a log's text that nftables stores with a rule.
_WORDS: Final = re.compile(r"\b(?:comment|prefix)\s+\"[^\"\n]*\"|#.*")


def without_words(text: str) -> str:
    """Return rules without comments and the texts of logs, which name addresses and interfaces that no rule uses."""
    return _WORDS.sub("", text)


def networks_in(text: str) -> dict[str, tuple[IPv4Network, ...]]:
    """Return the networks, addresses and ranges of addresses that rules name, as they are written there, each once.

    Everything (0.0.0.0/0) is none, and what is no network is left out.
    """
    found: dict[str, tuple[IPv4Network, ...]] = {}
    for each in _NAMED.finditer(without_words(text)):
        first, length, last = each.groups()
        try:
            if last is None:
                networks = [IPv4Network(f"{first}/{length or 32}", strict=False)]
            else:
                networks = [*summarize_address_range(IPv4Address(first), IPv4Address(last))]
        except ValueError:
            continue
        if all(network.prefixlen for network in networks):
            found[each[0]] = tuple(networks)
    return found


def having(text: str, addresses: Collection[Address]) -> list[str]:
    """Return what rules name that has one of these addresses."""
    return [
        name
        for name, networks in networks_in(text).items()
        if any(address in network for address in addresses for network in networks)
    ]
