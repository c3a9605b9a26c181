# SPDX-License-Identifier: Apache-2.0
"""Plans that measure a published table again: files of `plans/`, one for each table and size.

A full plan has the table's numbers and needs a machine of many cores. A small plan has the same series with smaller
numbers: for two cores and at most 20 minutes. A guest plan has still smaller numbers, for a guest with a kernel of its
own (`--lab vm`) whose processors may be emulated: it shows that the device works, not how fast it is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal, get_args

from natgauge import foreign
from natgauge.errors import HostError, UsageError
from natgauge.published.model import Table

Size = Literal["full", "small", "guest"]
SIZES: Final[tuple[Size, ...]] = get_args(Size)
_OPTIONS: Final[dict[Size, str]] = {"full": "", "small": " --small", "guest": " --small --lab vm"}
_FOLDER: Final = Path(__file__).parent / "plans"


def text(table: Table, *, size: Size) -> str:
    """The plan of a table as TOML, with its commands in comments."""
    if table.missing:
        kind = UsageError if any(each.lacks == "natgauge" for each in table.missing) else HostError
        raise kind(f"published: --plan {table.name}: {needs(table)}")
    # The first line is the licence of the file.
    return foreign.read_text(_FOLDER / file_name(table, size=size), foreign.TABLE).partition("\n")[2]


def file_name(table: Table, *, size: Size) -> str:
    """Return the name of the file of a table's plan."""
    return f"{table.name}{'' if size == 'full' else f'-{size}'}.toml"


def command(table: Table, *, size: Size) -> str:
    """Return the command line that prints the table's plan."""
    return f"natgauge published --plan{_OPTIONS[size]} {table.name}"


def needs(table: Table) -> str:
    """The requirements of a table that are not met, each with its row; empty for a table with a plan."""
    return "; ".join(f'row "{each.row}" needs {each.needs}' for each in table.missing)
