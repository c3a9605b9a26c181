# SPDX-License-Identifier: Apache-2.0
"""What the commands of this folder share: their options, that they need root, and where they write."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

HERE: Final = Path(__file__).parent
#: Which side of a bound is good.
Bound = Literal["at least", "at most"]


def keeps(value: float, bound: Bound, wanted: float) -> bool:
    """Whether a figure is on the good side of what is wanted."""
    return value >= wanted if bound == "at least" else value <= wanted


def options(what: str | None, name: str | None = None) -> argparse.ArgumentParser:
    """Options of them all: the one core and the folder; and how the files' names end, where `name` is the usual end."""
    parser = argparse.ArgumentParser(description=(what or "").splitlines()[0])
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)), help="the one core (default the last)")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="folder to write into")
    if name is not None:
        parser.add_argument("--name", default=name, help="how the files' names end (default %(default)s)")
    return parser


def is_root(program: str) -> bool:
    """Whether this is root; says what is missing where it is not."""
    if os.geteuid() == 0:
        return True
    print(f"{program}: network namespaces and BPF need root", file=sys.stderr)
    return False


def day(described: Mapping[str, Any]) -> str:
    """Of the run, as files and titles have it."""
    return str(described["date"])[:10]


def heading(title: str, described: Mapping[str, Any]) -> list[str]:
    """Title, day and machine, in Markdown."""
    lines = [f"# {title}, {day(described)}", ""]
    return [*lines, *(f"- {name.replace('_', ' ')}: {value}" for name, value in described.items()), ""]


def write(folder: Path, name: str, page: str, data: Mapping[str, Any]) -> Path:
    """Write `name`.md and `name`.json and return the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(data, indent=1) + "\n")
    path = folder / f"{name}.md"
    path.write_text(page)
    return path
