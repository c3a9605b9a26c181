# SPDX-License-Identifier: Apache-2.0
"""Data frames of results folders, for notebooks."""

from __future__ import annotations

from pathlib import Path

from natgauge.reports.frames import Frames, frames_of
from natgauge.stored.find_results import find


def load(*folders: str | Path) -> Frames:
    """Read results folders, folders that hold several, or campaigns."""
    return frames_of(find([Path(folder) for folder in folders]))
