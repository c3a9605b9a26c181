# SPDX-License-Identifier: Apache-2.0
"""Folders of campaigns that were refused, or killed, before their first trial: nobody has to resume them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from natgauge.campaigns.journal import Journal, entries
from natgauge.errors import NatgaugeError
from natgauge.records.store import CAMPAIGN, ENVIRONMENT, JOURNAL

#: All that a campaign writes before its first trial; the last one first, so that what is left never looks like one.
_FILES: Final = (CAMPAIGN, ENVIRONMENT, JOURNAL)
#: Events of the journal from which on there is something to keep.
_MEASURED: Final = frozenset({"trial", "repetition", "result"})


def is_unused(folder: Path) -> bool:
    """Whether a folder is empty, or has a campaign without a trial, and nothing else."""
    if not folder.is_dir() or {path.name for path in folder.iterdir()} - {*_FILES}:
        return False
    return not (folder / JOURNAL).exists() or not any(line.get("event") in _MEASURED for line in entries(folder))


def discard(folder: Path) -> None:
    """Remove the files of a campaign whose folder is unused."""
    with Journal(folder):
        for name in _FILES if is_unused(folder) else ():
            (folder / name).unlink(missing_ok=True)


@contextmanager
def left_unless_used(folder: Path) -> Iterator[None]:
    """Remove what was made, folders above it included, if an error ends the block before the first trial."""
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        yield
    except NatgaugeError:
        with suppress(NatgaugeError, OSError):
            discard(folder)
            for path in made:
                path.rmdir()
        raise
