# SPDX-License-Identifier: Apache-2.0
"""Profiles: named sets of defaults. What the user gives goes before them; the profile's name is part of every result.

* `default`: what the procedures' settings say themselves.
* `quick`: seconds, for continuous integration; wide bounds, one repetition.
* `standard`: minutes; repeated until the median is known well enough.
* `rfc`: the durations, the repetitions and the errors that the RFCs want, to the letter.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final, get_args

from natgauge.procedures.procedure import Procedure
from natgauge.procedures.settings import Profile, SearchError, one_of

#: Any metric's settings of these names; a metric without the setting has no use for it.
COMMON: Final[Mapping[Profile, Mapping[str, object]]] = {
    "default": {},
    "quick": {
        "repeat": 1,
        "trial_seconds": 0.5,
        "error": SearchError(share=0.05),
        "confirm": False,
    },
    "standard": {
        "repeat": "auto",
        "trial_seconds": 5.0,
        "error": SearchError(share=0.005),
    },
    "rfc": {
        "repeat": 20,
        "trial_seconds": 60.0,
        "error": SearchError(share=0.001),
    },
}

#: What a metric wants otherwise.
OWN: Final[Mapping[Profile, Mapping[str, Mapping[str, object]]]] = {
    "default": {},
    "quick": {},
    "standard": {},
    "rfc": {},
}


def with_defaults(procedure: Procedure[Any], given: Mapping[str, object]) -> dict[str, object]:
    """The given settings, and those of their profile for all that was not given.

    Raises:
        UsageError: there is no such profile.
    """
    named = given.get("profile", "default")
    one_of("profile", str(named), get_args(Profile))
    profile: Profile = next(one for one in get_args(Profile) if one == named)
    known = {item.name for item in dataclasses.fields(procedure.settings)}
    defaults = {**COMMON[profile], **OWN[profile].get(procedure.metric, {})}
    return {**{name: value for name, value in defaults.items() if name in known}, **given}
