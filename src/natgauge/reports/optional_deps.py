# SPDX-License-Identifier: Apache-2.0
"""Optional libraries of some reports: imported on demand; a missing library is reported in one line."""

from __future__ import annotations

import importlib
from typing import Any

from natgauge.errors import HostError


def need(module: str, extra: str, what: str) -> Any:
    """Import an optional module."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise HostError(
            f"report: {what} needs the Python package {module.partition('.')[0]}, which is not installed: "
            f"pip install 'natgauge[{extra}]'"
        ) from error
