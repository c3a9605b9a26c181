# SPDX-License-Identifier: Apache-2.0
"""What each step of a frame costs: `python -m benchmarks.steps` (root, half a minute).

Each step of the frame programs' own source is a program of its own, which BPF_PROG_RUN runs many times with the plan of
a real request. The time of a program without a step is taken off. A processor overlaps steps that do not wait for each
other, so together they take less than the sum.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, get_args

from benchmarks import machine
from benchmarks.command import day, heading, is_root, options, write
from benchmarks.floor import HERE, compile_bpf
from natgauge.agreement.generated import InitiatorStream, Phase1, Phase2, ResponderStream
from natgauge.host import programs
from natgauge.labs.contract import Port
from natgauge.tester.cable import untranslated_request
from natgauge.words import Family

RUNS: Final = 1_000_000
REPETITIONS: Final = 9
CONNECTIONS: Final = 100_000
LEAST: Final[dict[Family, int]] = {"ipv4": 64, "ipv6": 84}
#: Steps of steps.bpf.c that contain another one.
PARTS: Final = {"tuple_and_mark": "tuple", "parse_and_confirm": "parse"}


def _plan(family: Family) -> bytes:
    """The plan of a request for both directions of a cable, as the frame programs read it."""
    ports = [Port(name, None, "02:00:00:00:00:01", None) for name in ("a", "b")]
    request = untranslated_request(
        ports[0],
        ports[1],
        family=family,
        frame_size=LEAST[family],
        connections=CONNECTIONS,
        phase1=Phase1(rate=1e6),
        phase2=Phase2(initiator=InitiatorStream(rate=1e6, frames=1), responder=ResponderStream(rate=1e6, frames=1)),
        sender_cpus=(0,),
    )
    command = [str(programs.find("natgauge-engine")), "--plan"]
    return subprocess.run(command, check=True, input=request.to_json().encode(), stdout=subprocess.PIPE).stdout


def measured(cpu: int) -> dict[str, dict[Family, float]]:
    """Nanoseconds of each step, median of the repetitions; of `nothing` the whole time."""
    found: dict[str, dict[Family, float]] = defaultdict(dict)
    with TemporaryDirectory() as name:
        folder = Path(name)
        steps = compile_bpf("steps.bpf.c", folder, "-mcpu=v3", "-Wno-address-of-packed-member")
        runner = folder / "steps"
        subprocess.run(["cc", "-O2", "-o", runner, HERE / "steps.c", "-lbpf"], check=True)
        for family in get_args(Family):
            (folder / family).write_bytes(_plan(family))
            command = ["taskset", "-c", str(cpu), runner, steps, folder / family, str(RUNS)]
            runs = [
                subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
                for _ in range(REPETITIONS)
            ]
            for lines in zip(*runs, strict=True):
                step = lines[0].split()[0]
                taken = statistics.median(float(line.split()[1]) for line in lines)
                found[step][family] = taken - found.get("nothing", {}).get(family, 0)
    return found


def page(found: Mapping[str, Mapping[Family, float]], described: Mapping[str, Any]) -> str:
    """The page of all steps."""
    lines = heading("Steps of a frame", described)
    lines += [
        f"Nanoseconds above the {found['nothing']['ipv4']:.1f} of a program that does nothing; N = {CONNECTIONS:,}.",
        "",
    ]
    lines += ["| Step | " + " | ".join(LEAST) + " |", "|---|" + "--:|" * len(LEAST)]
    for step, taken in found.items():
        if step != "nothing":
            within = f" (of it {PARTS[step]})" if step in PARTS else ""
            name = step.replace("_", " ")
            lines.append(f"| {name}{within} | " + " | ".join(f"{taken[family]:.1f}" for family in LEAST) + " |")
    return "\n".join([*lines, ""])


def main() -> int:
    """Measure, print, and write the page."""
    arguments = options(__doc__, "steps").parse_args()
    if not is_root("steps"):
        return 3
    described = machine.describe()
    found = measured(arguments.cpu)
    text = page(found, described)
    print(text)
    write(arguments.results, f"{day(described)}-{arguments.name}", text, {"machine": described, "steps": found})
    return 0


if __name__ == "__main__":
    sys.exit(main())
