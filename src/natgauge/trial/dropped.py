# SPDX-License-Identifier: Apache-2.0
"""Why a device's rules drop the test traffic: what its recipe and the rules that run on it say, without a guess."""

from __future__ import annotations

import shlex
from collections.abc import Container, Iterator, Mapping
from typing import Final

from natgauge.errors import BrokenError
from natgauge.gateways.accepted_ports import AcceptedPorts, accepted_ports
from natgauge.gateways.recipe import Recipe
from natgauge.gateways.rule_names import IN_WORDS, NETWORK, edited, lost
from natgauge.labs.contract import Device
from natgauge.setup.traffic import TrafficPlan
from natgauge.words import Transport, listed

_TRANSPORTS: Final[tuple[Transport, ...]] = ("tcp", "udp", "icmp")


def causes(recipe: Recipe, traffic: TrafficPlan, accepted: AcceptedPorts | None) -> list[str]:
    """Return what surely is wrong, each with what to do; empty = nobody knows.

    Args:
        accepted: what the rules accept that run on the device; None = not known.
    """
    gone = lost(recipe)
    found = [*_lost(recipe, gone)]
    if accepted is None:
        return found
    # Rules for a lost interface accept nothing: that is no second cause.
    if not found or traffic.transport not in accepted.refused or accepted.sources.get(traffic.transport):
        found += _not_accepted(recipe, traffic, accepted, gone)
    return found


def accepted_by(device: Device) -> AcceptedPorts | None:
    """Return what the nftables rules of a running device accept; None = it has none, or nobody can ask."""
    try:
        printed = device.run("nft --json list ruleset")
        return accepted_ports(printed.stdout, device.inside, device.outside) if not printed.status else None
    except (BrokenError, ValueError, KeyError):
        return None


def _lost(recipe: Recipe, gone: Container[str]) -> Iterator[str]:
    """Yield a sentence for each name that the recipe replaces, and that its rules no longer have: `gone`."""
    for edits, files in edited(recipe):
        for own, variable in edits.items():
            if own in gone:
                again = _again(recipe, edits, [*files], gone)
                yield (
                    f"the recipe puts the lab's {IN_WORDS.get(variable, variable)} in the place of {own}, which no "
                    f"rule of {listed([*files])} names any more; make the recipe again{again}"
                )


def _again(recipe: Recipe, edits: Mapping[str, str], files: list[str], gone: Container[str]) -> str:
    """The command that makes a recipe beside its only file of rules again; empty = it is not known."""
    names = {variable: own for own, variable in edits.items() if own not in gone}
    if len(files) != 1 or recipe.length > 1 or recipe.origin.stem != recipe.name:
        return ""
    rules = recipe.origin.parent / files[0]
    sides = f"--inside {shlex.quote(names.get('NG_INSIDE', 'NAME'))} --outside "
    sides += shlex.quote(names.get("NG_OUTSIDE", "NAME"))
    made = f"natgauge gateways new {recipe.name} --from-nft {shlex.quote(str(rules))} {sides} --beside"
    return f": rm {shlex.quote(str(recipe.origin))} && {made}"


def _not_accepted(recipe: Recipe, traffic: TrafficPlan, accepted: AcceptedPorts, gone: Container[str]) -> Iterator[str]:
    """Yield why forward chains do not accept the test traffic."""
    transport, ports = traffic.transport, traffic.destination_ports
    if transport in accepted.refused:
        sources = accepted.sources.get(transport)
        if sources:
            kept = [own for edits, _ in edited(recipe) for own, variable in edits.items() if variable == NETWORK]
            also = "".join(f"; other rules name {own}, which the recipe replaces" for own in kept if own not in gone)
            yield f"the forward chain accepts {transport.upper()} only from {listed(sources)}, which no lab has{also}"
            return
        others = [other for other in _TRANSPORTS if other not in accepted.refused | accepted.unknown]
        yield f"the forward chain accepts no {transport.upper()} to the outside" + "".join(
            f"; it accepts {other.upper()}{_to(accepted, other)}: choose --transport {other}" for other in others[:1]
        )
    elif (let := accepted.ports.get(transport)) and not any(
        first <= ports.last and ports.first <= last for first, last in let
    ):
        yield (
            f"the forward chain accepts {transport.upper()} only{_to(accepted, transport)}: choose them by "
            "--destination-ports, or for every command by destination_ports in the recipe (docs/recipes.md#limits)"
        )


def _to(accepted: AcceptedPorts, transport: Transport) -> str:
    """The ports of a transport that are accepted; empty = all that anybody needs."""
    texts = [f"{first}" if first == last else f"{first}-{last}" for first, last in accepted.ports.get(transport, ())]
    return f" to port{'' if len(texts) == 1 and '-' not in texts[0] else 's'} {listed(texts)}" if texts else ""
