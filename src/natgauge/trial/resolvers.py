# SPDX-License-Identifier: Apache-2.0
"""Devices that answer DNS queries themselves: how they are measured, and what cannot be measured of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from natgauge.errors import UsageError
from natgauge.gateways.recipe import Kind, Recipe
from natgauge.inputs.checks import percent, wrong
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.settings import TrialSettings
from natgauge.words import TESTER

#: What differs from the resolution rate through a gateway: every query is answered, within 1 s (RFC 8219 section 9.2),
#: and no connection has to be opened before.
_ANSWERED: Final[Mapping[str, Any]] = {"stateless": True, "loss_tolerance": 0.0, "frame_timeout_seconds": 1.0}
#: Shares of names and queries, by which the trials of a DNS64 server differ (RFC 8219 section 9.2).
SHARES: Final = ("aaaa_share", "cached_share")
#: Settings of each kind that the user did not choose. A DNS64 server asks an authoritative one (RFC 8219 section 9.1).
_SETTINGS: Final[Mapping[Kind, Mapping[str, Any]]] = {
    "dns64": {**_ANSWERED, "far_side": "knot"},
    "dns": {**_ANSWERED, "far_side": TESTER},
}


def settings_of(recipe: Recipe, procedure: Procedure[Any], chosen: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the user's settings, and those that the kind of device decides where the user did not.

    The metric must be one with queries.
    """
    if not recipe.answers_queries:
        return chosen
    if all(input_.name != "query" for input_ in procedure.own_inputs()):
        raise UsageError(
            f"{procedure.metric}: {recipe.name} answers DNS queries and forwards no frames; measure its resolution-rate"
        )
    return {**_SETTINGS[recipe.kind], **chosen}


def refuse(recipe: Recipe, settings: TrialSettings) -> None:
    """Refuse settings that a device cannot be measured with because it answers queries itself."""
    parameters = settings.parameters()
    for name in SHARES:
        if parameters.get(name) and not recipe.asks_server:
            raise wrong(name, f"{percent(parameters[name])}, but {recipe.name} is no DNS64 server; leave it out")
    if parameters.get("aaaa_share") and settings.query == "a":
        raise wrong("aaaa_share", "queries of type A have the same answer, whichever names have AAAA; leave it out")
    if not recipe.answers_queries:
        return
    if settings.has_phase1:
        raise UsageError(f"stateless: {recipe.name} keeps no connections; leave it out", at="stateless")
    if recipe.asks_server and settings.far_side == TESTER:
        raise UsageError(
            f"far side {TESTER}: {recipe.name} asks an authoritative server; choose knot or nsd", at="far_side"
        )
    if not recipe.asks_server and settings.far_side != TESTER:
        raise UsageError(
            f"far side {settings.far_side}: {recipe.name} asks no other server; leave it out", at="far_side"
        )
