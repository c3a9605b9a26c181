# SPDX-License-Identifier: Apache-2.0
"""Keywords of `natgauge.audit`, for type checkers and editors.

Made of the descriptions of inputs by `python -m tools.described`; a test holds that it is up to date.
"""

from __future__ import annotations

from typing import Literal

from natgauge.setup.keywords import SetupKeywords


class AuditKeywords(SetupKeywords, total=False):
    """Options of `natgauge.audit`; None = not chosen."""

    profile: Literal["all", "cgn", "home", "nat64"] | None
    wait: float | None
    long: bool | None
    mappings: int | None
    fail_on: Literal["must", "should"] | None
    lab_name: str | None
    nat64_prefix: str | None
    power_command: str | None
