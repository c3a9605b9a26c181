# SPDX-License-Identifier: Apache-2.0
"""`python -m benchmarks.audits FOLDER NAME ... [-- OPTION ...]`: audit several gateways, and print their tables.

A gateway that has an audit in its folder FOLDER/NAME is not audited again, so a run that was stopped continues. Three
audits run at the same time, because an audit mostly waits. The tables are in Markdown: that of `natgauge report`
without requirements that were not seen of any gateway, and the time-outs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from benchmarks.command import is_root
from natgauge.records.audit import AuditRecord
from natgauge.stored import find_results

_AT_ONCE: Final = 3
_NATGAUGE: Final = str(Path(sys.executable).with_name("natgauge"))


def found(folder: Path, names: Sequence[str]) -> list[Path]:
    """Return the newest results folder of each gateway that has one."""
    audits = (sorted((folder / name).glob("*/audit.json")) for name in names)
    return [each[-1].parent for each in audits if each]


def audit(folder: Path, names: Sequence[str], chosen: Sequence[str]) -> None:
    """Audit the gateways that have no results yet; what an audit says is in FOLDER/NAME.txt."""
    labs = list(range(_AT_ONCE))

    def run(name: str) -> None:
        lab = labs.pop()
        place = ["--lab-name", f"audits-{os.getpid()}-{lab}", "--results", str(folder / name)]
        with (folder / f"{name}.txt").open("wb") as said:
            subprocess.run(
                [_NATGAUGE, "audit", "--gateway", name, *place, *chosen], check=False, stdout=said, stderr=said
            )
        labs.append(lab)

    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(run, [name for name in names if not found(folder, [name])]))


def timeouts(records: Sequence[AuditRecord]) -> Iterator[str]:
    """Yield the lines of the table of time-outs."""
    yield "| ".join(("| kind of mapping ", *(f"{one.gateway} " for one in records), ""))
    yield "| --- " * (len(records) + 1) + "|"
    for kind in dict.fromkeys(kind for one in records for kind in one.timeouts):
        cells = (_words(*one.timeouts.get(kind, (None, None))) for one in records)
        yield f"| {kind} | {' | '.join(cells)} |"


def _words(alive: float | None, dead: float | None) -> str:
    if alive is None or dead is None:
        return "not seen" if alive == dead else f"less than {dead:.1f}" if alive is None else f"more than {alive:.0f}"
    return f"{alive:.1f} to {dead:.1f}"


def main(arguments: Sequence[str]) -> int:
    """Audit, and print the tables."""
    if not is_root("audits"):
        return 3
    named = list(arguments)
    chosen = named[named.index("--") + 1 :] if "--" in named else []
    folder, *names = named[: len(named) - len(chosen) - bool(chosen)]
    audit(Path(folder), names, chosen)
    folders = found(Path(folder), names)
    command = [_NATGAUGE, "report", *map(str, folders), "--format", "markdown"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    unseen = [line for line in printed if line.startswith("| RFC") and {*line.split(" | ")[1:]} == {"not seen"}]
    print("\n".join(line for line in printed if line not in unseen))
    print("\nNot seen of any gateway:", ", ".join(line[2:].partition(",")[0] for line in unseen), end=".\n\n")
    print("\n".join(timeouts([one.record for one in find_results.find(folders).audits])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
