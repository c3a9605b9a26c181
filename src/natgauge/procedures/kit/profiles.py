# SPDX-License-Identifier: Apache-2.0
"""Profiles: named sets of defaults. What the user gives goes before them; the profile's name is part of every result.

* `default`: what the procedures' settings say themselves.
* `quick`: seconds, for continuous integration; wide bounds, one repetition.
* `standard`: minutes; repeated until the median is known well enough.
* `rfc`: the durations, the repetitions and the errors that the RFCs want, to the letter.

The first three have an end, after which a measurement tells what it has; `rfc` takes as long as it takes.

Here stands what holds for any metric that has a setting of the name; what a metric wants otherwise is in its own file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from natgauge.inputs.types import SearchError

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
    "standard": {
        "repeat": "auto",
        "trial_seconds": 5.0,
        "error": SearchError(share=0.005),
        "most_seconds": 1800.0,
    },
    "rfc": {
        "repeat": 20,
        "trial_seconds": 60.0,
        "error": SearchError(share=0.001),
        # RFC 2544 section 23: so long the device settles before the next trial.
        "settle_seconds": 5.0,
        "most_seconds": None,
    },
}
