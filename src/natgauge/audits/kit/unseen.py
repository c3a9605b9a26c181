# SPDX-License-Identifier: Apache-2.0
"""Why an examination has no verdict."""

from __future__ import annotations


class NotSeenError(Exception):
    """An examination cannot reach a verdict; the text is the reason, without a full stop."""


class FloodError(NotSeenError):
    """Other traffic flooded the tester's ports during an examination."""


class AloneError(NotSeenError):
    """No two inside hosts had one outside address, so nothing shows what the gateway does when they compete."""


class NotApplicableError(Exception):
    """A requirement does not apply to this gateway; the text is the reason, without a full stop."""
