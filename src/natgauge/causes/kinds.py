# SPDX-License-Identifier: Apache-2.0
"""Words of causes: the hops of a frame's way, the kinds of causes, and what each kind is called."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final, Literal

#: The way of a frame. The hops between those of the tester belong to a device; "gateway" has causes of its own.
Hop = Literal["tester out", "ring", "softnet", "header", "conntrack", "routing", "rules", "gateway", "out", "tester in"]
#: Kinds of causes of lost, wrong or late frames.
Kind = Literal[
    "table", "hash chain", "port pool", "clash", "rule", "rate limit", "host limit", "process", "queue", "filter",
    "interface", "ring", "backlog", "header", "memory", "IPv6 off", "invalid", "no translation", "untracked",
    "forgotten", "route", "forwarding", "reverse path", "path mtu", "answers", "tag", "checksum", "pool address",
    "gateway", "tester", "late", "slow", "not known",
]  # fmt: skip
#: What a result is limited by where its frames were lost for a cause.
DeviceLimit = Literal["device", "table", "port pool"]
#: Limits that no lower rate cures.
FULL: Final = frozenset({"table", "port pool"})


@dataclass(frozen=True, slots=True)
class KindFacts:
    """A row of kinds.toml, which explains the fields."""

    limit: DeviceLimit = "device"
    words: str = ""


@cache
def kinds() -> Mapping[str, KindFacts]:
    """Return all kinds of causes by their names."""
    text = resources.files(__package__).joinpath("kinds.toml").read_text(encoding="utf-8")
    return {name: KindFacts(**row) for name, row in tomllib.loads(text)["kinds"].items()}
