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
    "quick": {
        "latency": {"loads": "100%,50%"},
        "frame-loss": {"step": 0.1},
        "tear-down-rate": {"sample": 3},
        "system-recovery": {"trial_seconds": 1.0, "after_seconds": 1.0},
        "reset": {"trial_seconds": 12.0},
        "back-to-back": {"burst_seconds": 0.5},
        "table-capacity": {"rate_error": 0.2},
    },
    "standard": {
        "throughput": {"search": "mlrsearch", "goals": "ndr-pdr", "trial_seconds": 1.0, "repeat": 1},
        "frame-loss": {"step": 0.05, "repeat": 3},
        "reset": {"trial_seconds": 30.0, "before_seconds": 5.0, "repeat": 5},
        "system-recovery": {"trial_seconds": 10.0, "after_seconds": 10.0},
        "tear-down-rate": {"repeat": 3},
        "expiry": {"repeat": 3},
        "table-capacity": {"repeat": 3},
        "enumeration-orders": {"repeat": 3},
    },
    "rfc": {
        # RFC 8219 section 7.2: 500 tags of a stream of 120 s, at the throughput.
        "latency": {"loads": "100%", "way": "rfc8219", "trial_seconds": 120.0},
        # RFC 9004 section 5: 50 repetitions.
        "back-to-back": {"repeat": 50, "burst_seconds": 2.0},
        # RFC 6201 section 4: 15 s before the reset.
        "reset": {"trial_seconds": 60.0, "before_seconds": 15.0},
        "system-recovery": {"trial_seconds": 60.0, "after_seconds": 60.0},
        # RFC 9693 section 6: ten experiments; the pseudo code of section 4.9 to the letter.
        "connection-rate": {"repeat": 10},
        "validated-connection-rate": {"repeat": 10},
        "throughput": {"repeat": 10},
        "frame-loss": {"repeat": 1, "step": 0.05},
        "tear-down-rate": {"repeat": 10},
        "expiry": {"repeat": 10},
        "table-capacity": {"method": "full", "repeat": 10},
        "enumeration-orders": {"repeat": 10},
    },
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
