# SPDX-License-Identifier: Apache-2.0
"""Profiles: named sets of defaults. The user's own values take precedence; every result contains the profile's name.

* `default`: the defaults of the procedures' settings.
* `quick`: seconds, for continuous integration; wide bounds, one repetition.
* `standard`: minutes; repetitions continue until the confidence interval of the median is narrow enough.
* `rfc`: exactly the durations, repetitions and errors that the RFCs require.

The first three have a time limit, after which a measurement reports what it has. `rfc` has no time limit.

This module contains values for any metric that has a setting of the name; exceptions are in the metric's own module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from natgauge.inputs.measuring_types import SearchError

Profile = Literal["default", "quick", "standard", "rfc"]
#: Settings by name, of each profile that has something to say.
Defaults = Mapping[Profile, Mapping[str, object]]

COMMON: Final[Defaults] = {
    "default": {},
    "quick": {
        "repeat": 1,
        "trial_seconds": 0.5,
        "error": SearchError(share=0.05),
        "confirm": False,
        "most_seconds": 60.0,
    },
    "standard": {"repeat": "auto", "trial_seconds": 5.0, "error": SearchError(share=0.005), "most_seconds": 1800.0},
    "rfc": {
        "repeat": 20,
        "trial_seconds": 60.0,
        "error": SearchError(share=0.001),
        # RFC 2544 section 23: so long the device settles before the next trial.
        "settle_seconds": 5.0,
        "most_seconds": None,
    },
}
