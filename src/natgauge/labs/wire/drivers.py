# SPDX-License-Identifier: Apache-2.0
"""Known properties of network drivers as ports of the tester, from drivers.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources

from pydantic import BaseModel, ConfigDict


class DriverFacts(BaseModel):
    """One driver.

    Attributes:
        most_mtu: largest MTU with an XDP program, in octets; None = not known.
        own_queue: whether a core sends through the transmit queue of its own number, and cannot send without one.
        further_queues: whether a program takes a further queue for each core. Without enough of them, the driver shares
            the present ones, of which there must not be more than cores.
        note: what else must be known; empty = nothing.
        if_refused: action where it refuses an XDP program; empty = none is known.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    takes: bool
    most_mtu: int | None = None
    own_queue: bool = False
    further_queues: bool = False
    note: str = ""
    if_refused: str = ""


def driver_facts(name: str) -> DriverFacts | None:
    """Return what is known of a driver; None = it is not in the table."""
    return _table().get(name)


@cache
def _table() -> Mapping[str, DriverFacts]:
    text = resources.files(__package__).joinpath("drivers.toml").read_text(encoding="utf-8")
    return {row["name"]: DriverFacts(**row) for row in tomllib.loads(text)["driver"]}
