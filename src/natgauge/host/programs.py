# SPDX-License-Identifier: Apache-2.0
"""Where natgauge's own compiled programs are."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from natgauge.errors import HostError

#: Names a directory that holds the programs, for those who keep them elsewhere.
VARIABLE = "NATGAUGE_PROGRAMS"
#: Names folders, separated by colons, in which devices on this machine find programs first: a gateway built by oneself.
PATH_VARIABLE = "NATGAUGE_PATH"

_SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def find(name: str) -> Path:
    """Find a compiled program of natgauge, e.g. "natgauge-engine".

    Looked for beside the Python interpreter (where the wheel puts it), in $NATGAUGE_PROGRAMS, in target/release of the
    checkout, then in PATH.

    Raises:
        HostError: it is nowhere.
    """
    for candidate in _candidates(name):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    raise HostError(
        f"program {name}: not found beside {sys.executable}, in ${VARIABLE}, in target/release or in PATH; "
        'build it with "make setup"'
    )


def search_path() -> str:
    """Where a device's snippets find programs: $NATGAUGE_PATH, the system's folders, and last natgauge's own."""
    # Snippets run in a directory of their own.
    named = [str(Path(folder).absolute()) for folder in os.environ.get(PATH_VARIABLE, "").split(os.pathsep) if folder]
    try:
        own = [str(find("natgauge-softwire").parent)]
    except HostError:
        own = []
    return os.pathsep.join([*named, _SYSTEM, *own])


def _candidates(name: str) -> Iterator[Path]:
    # Not resolved: in a virtual environment the interpreter is a symbolic link, and the programs lie beside the link.
    yield Path(sys.executable).parent / name
    if directory := os.environ.get(VARIABLE):
        yield Path(directory) / name
    yield Path(__file__).resolve().parents[3] / "target" / "release" / name
    if found := shutil.which(name):
        yield Path(found)
