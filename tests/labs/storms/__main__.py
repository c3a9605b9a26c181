# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.labs.storms [NAME...]`: disturb natgauge many times, and look whether it holds what it promises.

Without a name it lists the storms. Each storm prints its count, its seed and what it found. A storm has a /run of its
own, so that the labs of other programs of this machine are not touched (root).
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import click
from tests.labs.program import begins
from tests.labs.storms import STORMS
from tests.labs.storms.storm import Storm, Tally

#: Set in the process that has a /run of its own.
_APART: Final = "NATGAUGE_STORM_APART"
#: Its temporary files are in memory, not in /run, and no other storm waits for a lock there.
_TEMPORARY: Final = "/run/tmp"


def _apart() -> None:
    """Begin again with an empty /run in a namespace of mounts."""
    if _APART in os.environ:
        return
    own = f"mount -t tmpfs tmpfs {_TEMPORARY}"
    made = f'mount -t tmpfs -o mode=755,size=64m tmpfs /run && mkdir /run/netns {_TEMPORARY} && {own} && exec "$@"'
    again = [sys.executable, "-m", "tests.labs.storms", *sys.argv[1:]]
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", made, "sh", *again]
    os.execvpe(command[0], command, {**os.environ, _APART: "1", "TMPDIR": _TEMPORARY})  # noqa: S606 - it needs no shell


def _made(storm: Storm, seed: int, count: int, seconds: float, rows: Path | None) -> bool:
    """Make one storm and print what it found; return whether all that must hold held."""
    if why := storm.missing():
        click.echo(f"{storm.name}: not made: {why}")
        return True
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f"natgauge-storm-{storm.name}-") as folder:
        tally = Tally(count, random.Random(seed), Path(folder), began + seconds)  # noqa: S311 - any moment will do
        storm.make(tally)
    took = time.monotonic() - began
    click.echo("\n".join([*tally.lines(storm, took), f"  seed {seed}"]))
    if rows is not None:
        with rows.open("a") as file:
            file.write(tally.row(storm, took, seed) + "\n")
    if not tally.count:
        click.echo(f"! {storm.name}: nothing was disturbed")
    return bool(tally.count) and not tally.faults


def main() -> int:
    """Make the storms that are named; 0 when all that must hold held."""
    parser = argparse.ArgumentParser(description="Disturb natgauge many times, and look what it leaves and loses.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="storms; without a name all are listed")
    parser.add_argument("--full", action="store_true", help="use the full count of each storm, as before a release")
    parser.add_argument("--count", type=int, help="number of disturbances of each storm (default: that of make soak)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no disturbance begins later")
    parser.add_argument("--seed", type=int, help="of the random choices (default: another one each time)")
    parser.add_argument("--rows", type=Path, help="append a row of a table to this file")
    asked = parser.parse_args()
    known = {storm.name: storm for storm in STORMS}
    if unknown := [name for name in asked.names if name not in known]:
        parser.error(f"{unknown[0]}: unknown; there are {', '.join(known)}")
    if not asked.names:
        for storm in STORMS:
            click.echo(f"{storm.name:<16} {storm.full:>14,} (soak {storm.soak:,}) {storm.unit}: {storm.started}")
        return 0
    if not begins("storms"):
        return 3
    _apart()
    seed = random.randrange(2**32) if asked.seed is None else asked.seed  # noqa: S311 - any moment will do
    held = True
    for name in asked.names:
        storm = known[name]
        count = asked.count or (storm.full if asked.full else storm.soak)
        held &= _made(storm, seed, count, asked.seconds, asked.rows)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
