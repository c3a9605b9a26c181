# SPDX-License-Identifier: Apache-2.0
"""The version of natgauge that runs, from the package that was installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Final


def _installed() -> str:
    try:
        return version("natgauge")
    except PackageNotFoundError:
        # Used from a checkout that was never installed.
        return "0+unknown"


VERSION: Final = _installed()
