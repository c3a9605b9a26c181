# SPDX-License-Identifier: Apache-2.0
"""Libraries that only some reports need: loaded when asked for, and named in one line where they are missing."""

from __future__ import annotations

import importlib
from typing import Any

from natgauge.errors import HostError


def need(module: str, extra: str, what: str) -> Any:
    """The module.

    Args:
        module: its name.
        extra: of natgauge, which brings it along.
        what: cannot be made without it.

    Raises:
        HostError: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise HostError(
            f"report: {what} needs the Python package {module.partition('.')[0]}, which is not installed: "
            f"pip install 'natgauge[{extra}]'"
        ) from error
