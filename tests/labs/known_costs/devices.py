# SPDX-License-Identifier: Apache-2.0
"""Plain forwarding with a program on its interface that is busy for a known time, calibrated alone."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
from pathlib import Path
from typing import Final

_SOURCE: Final = Path(__file__).with_name("busy.bpf.c")
#: Loops of the two programs that tell how long one loop takes.
_MANY: Final = 4_000
_REPEATS: Final = 20_000
_RUNS: Final = 9
_RECIPE: Final = """
name = "{name}"
title = "Linux IPv4 forwarding, busy for {loops} loops a frame"
kind = "routing"
initiator_family = "ipv4"
responder_family = "ipv4"
stateful = false
source = "unchanged"
extends = ["linux-ipv4"]

[verbs]
start = \"\"\"
tc qdisc replace dev $NG_OUTSIDE clsact
tc filter replace dev $NG_OUTSIDE egress pref 1 handle 1 bpf da obj {program} sec tc
\"\"\"
stop = \"\"\"
tc qdisc del dev $NG_OUTSIDE clsact || true
\"\"\"
"""


def program(folder: Path, loops: int) -> Path:
    """The compiled program."""
    target = folder / f"busy-{loops}.o"
    include = f"-I/usr/include/{os.uname().machine}-linux-gnu"
    options = ["-O2", "-g", "-target", "bpf", "-mcpu=v3", f"-DLOOPS={loops}", include]
    subprocess.run(["clang", *options, "-c", str(_SOURCE), "-o", str(target)], check=True)
    return target


def recipe(folder: Path, name: str, loops: int) -> Path:
    """Plain forwarding whose frames from the Initiator are held up by so many loops."""
    path = folder / f"{name}.toml"
    path.write_text(_RECIPE.format(name=name, loops=loops, program=program(folder, loops)))
    return path


def loop_ns(folder: Path, cpu: int) -> float:
    """How long one loop takes on this core, by itself."""
    long, short = (_run_ns(program(folder, loops), cpu) for loops in (_MANY, 0))
    return (long - short) / _MANY


def _run_ns(compiled: Path, cpu: int) -> float:
    """Mean time of one run of a program, median of some calls, as the kernel tells it."""
    pinned = Path(f"/sys/fs/bpf/natgauge-{os.getpid()}")
    frame = compiled.with_suffix(".frame")
    frame.write_bytes(bytes(64))
    subprocess.run(["bpftool", "prog", "load", str(compiled), str(pinned), "type", "classifier"], check=True)
    try:
        return statistics.median(_call(pinned, frame, cpu) for _ in range(_RUNS))
    finally:
        pinned.unlink()


def _call(pinned: Path, frame: Path, cpu: int) -> float:
    command = ["taskset", "-c", str(cpu), "bpftool", "prog", "run", "pinned", str(pinned)]
    command += ["data_in", str(frame), "repeat", str(_REPEATS)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.search(r"duration \(average\): (\d+)ns", said)
    assert found is not None, said
    return float(found[1])
