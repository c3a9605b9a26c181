# SPDX-License-Identifier: Apache-2.0
"""The error of a device that collapsed and did not come back."""

from __future__ import annotations

from natgauge.errors import BrokenError


class GoneError(BrokenError):
    """The device collapsed and did not come back, before anything could be said of it."""
