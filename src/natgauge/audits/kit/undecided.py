# SPDX-License-Identifier: Apache-2.0
"""Reasons to end an examination without a verdict."""

from __future__ import annotations


class NotSeenError(Exception):
    """An examination cannot reach a verdict; the text is the reason, without a full stop."""


class NotApplicableError(Exception):
    """A requirement does not apply to this gateway; the text is the reason, without a full stop."""
