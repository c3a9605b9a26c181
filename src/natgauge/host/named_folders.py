# SPDX-License-Identifier: Apache-2.0
"""Folders that environment variables name."""

from __future__ import annotations

import os
from pathlib import Path

from natgauge.errors import UsageError


def named_folders(variable: str) -> list[Path]:
    """Return the folders that an environment variable names, separated like PATH; none where it is not set.

    One that is no folder is refused: what should be there would be found elsewhere, and be something else.
    """
    folders = [Path(folder) for folder in os.environ.get(variable, "").split(os.pathsep) if folder]
    for folder in folders:
        if not _is_folder(folder):
            raise UsageError(f"{variable}: {folder} is no folder; correct it, or unset {variable}", at=variable)
    return folders


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False
