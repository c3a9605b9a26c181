# SPDX-License-Identifier: Apache-2.0
"""Settings of a measurement, from what the user chose, what its profile says, and what traffic and lab decide."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, get_args

from natgauge.inputs.checks import one_of
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.repetitions import SettingsT
from natgauge.procedures.kit.settings import COMMON, Profile
from natgauge.words import Order, Placement


def make_settings(  # noqa: PLR0913 - what is decided elsewhere, each by its name
    procedure: Procedure[SettingsT],
    chosen: Mapping[str, Any],
    *,
    connections: int,
    placement: Placement,
    own_processes: bool = False,
    order: Order,
    four_tuples: int,
) -> SettingsT:
    """Return the settings: what the user chose, as `Procedure.taken` returns it, and the profile's for all others."""
    values = with_profile(procedure, chosen)
    if "four_tuples" in {item.name for item in dataclasses.fields(procedure.settings)}:
        values["four_tuples"] = four_tuples
    settings = procedure.settings(
        connections=connections, placement=placement, own_processes=own_processes, order=order, **values
    )
    seconds = None if "most_seconds" in chosen else _more_time(procedure, values)
    return settings if seconds is None else dataclasses.replace(settings, most_seconds=seconds)


def with_profile(procedure: Procedure[Any], choices: Mapping[str, object]) -> dict[str, Any]:
    """Return the given settings, with values of their profile for all other settings."""
    named = choices.get("profile", "default")
    one_of("profile", str(named), get_args(Profile))
    profile: Profile = next(profile for profile in get_args(Profile) if profile == named)
    names = {item.name for item in dataclasses.fields(procedure.settings)}
    defaults = {**COMMON[profile], **procedure.profiles.get(profile, {})}
    return {**{name: value for name, value in defaults.items() if name in names}, **choices}


def _more_time(procedure: Procedure[Any], values: Mapping[str, Any]) -> float | None:
    """A profile's time is for its own trials; longer ones, and more repetitions, get as much more."""
    usual: dict[str, Any] = {item.name: item.default for item in dataclasses.fields(procedure.settings)}
    usual |= with_profile(procedure, {"profile": values.get("profile", "default")})
    if usual["most_seconds"] is None:
        return None
    share = 1.0
    for name in ("trial_seconds", "repeat"):
        chosen, other = values.get(name), usual.get(name)
        if isinstance(chosen, int | float) and isinstance(other, int | float):
            share *= max(1.0, chosen / other)
    return usual["most_seconds"] * share if share > 1 else None
