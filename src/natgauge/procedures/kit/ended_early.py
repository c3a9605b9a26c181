# SPDX-License-Identifier: Apache-2.0
"""Searches and series that ended before they had all they should have, for another reason than the time."""

from __future__ import annotations

from typing import Final

from natgauge.errors import BrokenError

#: How a note of it begins.
ENDED_EARLY: Final = "ended early: "


class GoneError(BrokenError):
    """The device collapsed and did not come back, before anything could be said of it."""
