# SPDX-License-Identifier: Apache-2.0
"""Programs and scripts that natgauge runs: where programs are found, and a script's output in sections.

Programs are natgauge's own compiled ones and those of devices; variables name folders of them. Each section of an
output stands below a heading of its own.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from natgauge.errors import HostError, NatgaugeError, UsageError

#: Environment variable that names the folder of the programs; programs there are preferred to all others. It need not
#: have all of them: who builds one anew keeps the others.
VARIABLE = "NATGAUGE_PROGRAMS"
#: Names folders, separated by colons, in which devices on this machine find programs first: a gateway built by oneself.
PATH_VARIABLE = "NATGAUGE_PATH"

_SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def find(name: str) -> Path:
    """Find a compiled program of natgauge, e.g. "natgauge-engine".

    The search order is: $NATGAUGE_PROGRAMS, the directory of the Python interpreter (where the wheel installs it),
    target/release of the checkout, PATH.
    """
    for candidate in _candidates(name):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    raise HostError(f'{not_found(name)}; build it with "make setup"', at=name)


def not_found(name: str) -> str:
    """Return where a program was looked for in vain."""
    return f"program {name}: not found in ${VARIABLE}, next to {sys.executable}, in target/release or in PATH"


def search_path() -> str:
    """Return the search path of a device's snippets: $NATGAUGE_PATH, the system's folders, natgauge's own folders."""
    # Snippets run in a directory of their own. Their last ones undo something, so they run whatever is missing here.
    named = [str(Path(folder).absolute()) for folder in os.environ.get(PATH_VARIABLE, "").split(os.pathsep) if folder]
    try:
        own = [str(find("natgauge-softwire").parent)]
    except NatgaugeError:
        own = []
    return os.pathsep.join([*named, _SYSTEM, *own])


def find_of_devices(name: str) -> str | None:
    """Return the path of a program as the snippets of devices find it; None = it is not installed."""
    refuse_wrong_path()
    return shutil.which(name, path=search_path())


def refuse_wrong_path() -> None:
    """Refuse a $NATGAUGE_PATH that names something else than folders, with UsageError."""
    named_folders(PATH_VARIABLE)


def named_folders(variable: str) -> list[Path]:
    """Return the folders that an environment variable names, separated like PATH; none where it is not set.

    One that is no folder is refused: what should be there would be found elsewhere, and be something else.
    """
    folders = [Path(folder) for folder in os.environ.get(variable, "").split(os.pathsep) if folder]
    for folder in folders:
        if not os.path.isdir(folder):  # noqa: PTH112 - the other way raises where the system refuses to look
            raise UsageError(f"{variable}: {folder} is no folder; correct it, or unset {variable}", at=variable)
    return folders


def _candidates(name: str) -> Iterator[Path]:
    # The user's folder is first: a program that was just built replaces the installed one.
    yield from (folder / name for folder in named_folders(VARIABLE))
    # Not resolved: in a virtual environment the interpreter is a symbolic link, with the programs in its folder.
    yield Path(sys.executable).parent / name
    yield Path(__file__).resolve().parents[3] / "target" / "release" / name
    if path := shutil.which(name):
        yield Path(path)


#: Begins the heading of a section.
SECTION: Final = "== "


def sections_of(text: str) -> dict[str, list[str]]:
    """Lines that say something, by the heading above them; what a machine greets with before is passed over."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith(SECTION):
            lines = sections.setdefault(line.removeprefix(SECTION), [])
        elif line.strip():
            lines.append(line.rstrip())
    return sections
