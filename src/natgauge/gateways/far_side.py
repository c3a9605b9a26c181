# SPDX-License-Identifier: Apache-2.0
"""Real servers that answer the tester's DNS queries behind a gateway: one TOML file each in `servers/`, and their zone.

A server is run like a gateway's process (`natgauge.gateways.gateway`), and its file has the form of a recipe.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from pathlib import Path
from typing import Annotated, ClassVar, Final, Self

from pydantic import Field, ValidationError

from natgauge.embedding import embedded
from natgauge.errors import UsageError, did_you_mean
from natgauge.gateways.recipe import LONGEST_NAME, LONGEST_TITLE, NAME, Recipe, broken_rule
from natgauge.gateways.recipe_model import (
    Emptying,
    GatewayLimits,
    Knobs,
    Module,
    Process,
    RecipeTable,
    RequiredPrograms,
    System,
    Verbs,
)
from natgauge.gateways.toml_layers import BUILT_IN, frozen, layered
from natgauge.words import TESTER, Address, Query

#: The zone that the tester asks for (engine/src/dns.rs).
ZONE_NAME: Final = "test"
#: The one right answer to each: of the blocks for benchmarks (RFC 2544 section C.2.2, RFC 5180 section 8).
ADDRESS4: Final = "198.18.0.53"
ADDRESS6: Final = "2001:2::53"


class Server(RecipeTable):
    """One server. It runs on the tester's machine, and has neither connections, nor limits, nor knobs.

    Attributes:
        verbs: snippets that start, check and stop it; there is neither `empty` nor `count`.
    """

    stateful: ClassVar[bool] = False
    system: ClassVar[System] = "Linux"
    rules_from: ClassVar[str | None] = None
    modules: ClassVar[tuple[Module, ...]] = ()
    limits: ClassVar[GatewayLimits] = GatewayLimits()
    emptyings: ClassVar[Mapping[str, Emptying]] = {}
    knobs: ClassVar[Knobs] = Knobs()

    name: Annotated[str, Field(pattern=NAME, max_length=LONGEST_NAME)]
    title: Annotated[str, Field(min_length=1, max_length=LONGEST_TITLE)]
    extends: tuple[str, ...] = ()
    environment: dict[str, str] = Field(default_factory=dict)
    needs: tuple[RequiredPrograms, ...] = ()
    process: Annotated[tuple[Process, ...], Field(min_length=1)]
    verbs: Verbs
    origin: Path

    def with_variables(self, variables: Mapping[str, str]) -> Self:
        """Return a copy whose snippets have these variables in addition."""
        return self.model_copy(update={"environment": {**self.environment, **variables}})


#: All that a device can run; a server has what a gateway has, without connections and knobs.
Playable = Recipe | Server


def available() -> dict[str, Path]:
    """Files of natgauge's own servers by name, sorted."""
    return {path.stem: path for path in sorted((BUILT_IN / "servers").glob("*.toml"))}


def load(name_or_path: str) -> Server:
    """Read one server, by a name of `available()`, or a file: anything with a "/" in it or ".toml" at its end."""
    known = available()
    is_path = "/" in name_or_path or name_or_path.endswith(".toml")
    if not is_path and name_or_path not in known:
        raise UsageError(
            f'far side "{name_or_path}": unknown; {did_you_mean(name_or_path, [TESTER, *known])}', at="far_side"
        )
    path = Path(name_or_path) if is_path else known[name_or_path]
    try:
        return Server.model_validate({**frozen(layered(path)), "origin": path})
    except ValidationError as error:
        raise UsageError(broken_rule(path, error)) from None


def zone(*, with_aaaa: bool = True) -> str:
    """The zone as a server reads it (RFC 1035 section 5): wildcards answer whatever name is asked for.

    No trial is as long as the time to live, so what a device keeps in its cache does not expire within one.

    Args:
        with_aaaa: whether all names have an AAAA record; otherwise those below `withaaaa` alone have one.
    """
    lines = textwrap.dedent(f"""\
        $ORIGIN {ZONE_NAME}.
        $TTL 3600
        @ SOA ns hostmaster 1 3600 600 86400 3600
        @ NS ns
        ns A {ADDRESS4}
        *.natgauge A {ADDRESS4}
        *.withaaaa A {ADDRESS4}
        *.withaaaa AAAA {ADDRESS6}
    """)
    return lines + (f"*.natgauge AAAA {ADDRESS6}\n" if with_aaaa else "")


def variables(addresses: Iterable[Address], *, with_aaaa: bool = True) -> dict[str, str]:
    """Return what the snippets of a program that answers queries at these addresses know of them."""
    listened = " ".join(map(str, addresses))
    return {"NG_ADDRESSES": listened, "NG_ZONE_NAME": ZONE_NAME, "NG_ZONE": zone(with_aaaa=with_aaaa)}


def right_answers(recipe: Recipe, prefix: IPv6Network) -> dict[Query, Address]:
    """Return the one right address that a device answers each type of query with; empty = it answers none itself.

    Args:
        prefix: of a DNS64, with which it makes IPv6 addresses of IPv4 addresses (RFC 6147 section 5.1.7).
    """
    if not recipe.answers_queries:
        return {}
    known = IPv4Address(ADDRESS4)
    made = embedded(prefix, known) if recipe.asks_server else IPv6Address(ADDRESS6)
    return {"a": known, "aaaa": made}
