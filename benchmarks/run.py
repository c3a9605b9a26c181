# SPDX-License-Identifier: Apache-2.0
"""`make bench`: measure, print, and write a page and a JSON file into benchmarks/results/ (needs root).

Run it as `python -m benchmarks.run`; `--help` lists what can be left out or made larger.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import command, compare, floor, machine, report, required
from benchmarks.place import Place
from natgauge.errors import NatgaugeError

SECTIONS = ("rates", "start", "memory", "loss", "peers")


def _arguments() -> argparse.Namespace:
    parser = command.options(__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="of sending per repetition (default 2)")
    parser.add_argument("--repetitions", type=int, default=5, help="per figure (default 5)")
    parser.add_argument("--only", choices=SECTIONS, action="append", help="may be repeated; everything when absent")
    parser.add_argument("--full", action="store_true", help="1.6 billion connections, a billion frames (24 GiB, long)")
    return parser.parse_args()


def _figures(settings: required.Settings, chosen: set[str], *, full: bool) -> list[required.Figure]:
    figures = []
    for name, measure in required.sections(settings, full=full).items():
        if name not in chosen:
            continue
        for figure in measure():
            print(
                f"  {figure.name}: {figure.median:,.3f} {figure.unit}, {figure.bound} {figure.required:,.2f} required: "
                f"{'reached' if figure.met else 'NOT reached'} ({figure.remark})",
                flush=True,
            )
            figures.append(figure)
    return figures


def _rows(settings: required.Settings) -> list[compare.Row]:
    rows = []
    with TemporaryDirectory() as folder:
        sink = floor.compile_bpf("sink.bpf.c", Path(folder))
        for forwards in (False, True):
            with Place(forwards=forwards) as place:
                rows += compare.in_place(place, settings, sink)
    return rows


def main() -> int:
    """Measure what was asked for and write it; 0 when everything could be measured, whatever the figures are."""
    arguments = _arguments()
    if not command.is_root("benchmarks"):
        return 3
    settings = required.Settings(arguments.seconds, arguments.repetitions, arguments.cpu)
    chosen = set(arguments.only or SECTIONS)
    described = machine.describe()
    # This process watches and counts; it leaves the measured core alone.
    others = os.sched_getaffinity(0) - {settings.cpu}
    if others:
        os.sched_setaffinity(0, others)
    try:
        least = floor.measure(settings.cpu, settings.repetitions)
        described["floor_ns_per_frame"] = round(least.loop, 1)
        described["floor_frames_per_second"] = round(least.highest_rate)
        described["clock_reading_ns"] = round(least.clock, 1)
        figures = _figures(settings, chosen, full=arguments.full)
        rows = _rows(settings) if "peers" in chosen else []
    except NatgaugeError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return error.exit_status
    page = report.markdown(described, asdict(settings), rows, figures)
    name = f"{command.day(described)}-{re.sub(r'[^a-z0-9]+', '-', str(described['cpu']).lower()).strip('-')}"
    path = command.write(arguments.results, name, page, report.document(described, asdict(settings), rows, figures))
    print(f"\n{page}\nWritten: {path} and the same as JSON")
    return 0


if __name__ == "__main__":
    sys.exit(main())
