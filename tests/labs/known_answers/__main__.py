# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.labs.known_answers`: run the rows, and write the table into benchmarks/results/ (needs root)."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path

import click
from benchmarks import machine
from tests.labs.known_answers import table
from tests.labs.known_answers.devices import NotOnTimeError
from tests.labs.known_answers.harder_rows import EVERY_ROW

from natgauge.errors import NatgaugeError

RESULTS = Path(__file__).parents[3] / "benchmarks" / "results"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure devices of known truth, and write down what was found.")
    parser.add_argument(
        "rows",
        nargs="*",
        metavar="ROW",
        help=f"only these, and nothing is written: {', '.join(row.name for row in EVERY_ROW)}",
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder to write into (default %(default)s)")
    return parser.parse_args()


def main() -> int:
    """Run what was asked for; 0 when all was measured and is within its tolerance."""
    arguments = _arguments()
    if unknown := set(arguments.rows) - {row.name for row in EVERY_ROW}:
        click.echo(f"known answers: there is no row {', '.join(sorted(unknown))}", err=True)
        return 2
    if os.geteuid() != 0:
        click.echo("known answers: network namespaces and BPF need root", err=True)
        return 3
    # Ended from outside, it undoes what it made.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    described = machine.describe()
    findings: list[table.Finding] = []
    missing: list[str] = []
    began = time.monotonic()
    for row in EVERY_ROW:
        if arguments.rows and row.name not in arguments.rows:
            continue
        try:
            found = table.run(row)
        except (NatgaugeError, NotOnTimeError) as error:
            missing.append(f"- {row.name}: not measured: {error}")
            click.echo(missing[-1])
            continue
        findings += found
        click.echo("\n".join(map(str, found)))
    date = str(described["date"])[:10]
    within = sum(one.within for one in findings)
    page = [
        f"# Known answers of {date}",
        "",
        "Devices of known truth, measured by the whole tester in a lab of namespaces.",
        f"{within} of {len(findings)} figures are within their tolerance; {time.monotonic() - began:.0f} s.",
        "",
        *(f"- {name.replace('_', ' ')}: {text}" for name, text in described.items()),
        "",
        table.markdown(findings),
        "",
        *missing,
    ]
    click.echo(f"\n{within} of {len(findings)} within their tolerance, {len(missing)} rows not measured")
    if not arguments.rows:
        _write(arguments.results / f"{date}-known-answers.md", page)
    return 0 if within == len(findings) and not missing else 1


def _write(path: Path, page: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(page).rstrip() + "\n")
    click.echo(f"Written: {path}")


if __name__ == "__main__":
    sys.exit(main())
