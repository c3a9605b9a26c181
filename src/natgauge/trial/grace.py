# SPDX-License-Identifier: Apache-2.0
"""Wait for the last frames of a phase (RFC 2544 section 23)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from natgauge.errors import UsageError
from natgauge.procedures.kit.settings import Profile

LONGEST_SECONDS: Final = 60.0
#: Least seconds of a profile, whatever suffices in the lab.
_LEAST: Final[Mapping[Profile, float]] = {"rfc": 2.0}


def checked(chosen: float | None) -> float | None:
    """Check the user's wait, in seconds."""
    if chosen is not None and not 0 <= chosen <= LONGEST_SECONDS:
        raise UsageError(f"grace: {chosen:g} is outside of 0 to {LONGEST_SECONDS:g} s", at="grace_seconds")
    return chosen


def grace_of(chosen: float | None, labs: float, profile: Profile) -> float:
    """Return the wait in seconds: the user's, otherwise the lab's, but not less than the profile's."""
    return max(labs, _LEAST.get(profile, 0.0)) if chosen is None else chosen
