# SPDX-License-Identifier: Apache-2.0
"""Storms disturb natgauge many times, and each time the same must hold (`python -m tests.labs.storms`)."""

from typing import Final

from tests.labs.storms.faults import FAULTS
from tests.labs.storms.frames import FRAMES
from tests.labs.storms.hostile_frames import HOSTILE_FRAMES
from tests.labs.storms.inputs import INPUTS
from tests.labs.storms.kills import KILLS
from tests.labs.storms.mutations import MUTATIONS
from tests.labs.storms.stored import STORED
from tests.labs.storms.storm import Storm
from tests.labs.storms.surroundings import SURROUNDINGS

STORMS: Final[tuple[Storm, ...]] = (
    *KILLS,
    *MUTATIONS,
    *INPUTS,
    *STORED,
    *FAULTS,
    *SURROUNDINGS,
    *FRAMES,
    *HOSTILE_FRAMES,
)
