# SPDX-License-Identifier: Apache-2.0
"""Something else on the host: a process that takes a core again and again, at real-time priority."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_PROGRAM = """
import os, random, sys, time
cpu, burnt, pause, chance = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), sys.argv[4] == "chance"
draw = random.Random(cpu)
length = (lambda mean: draw.expovariate(1 / mean)) if chance else (lambda mean: mean)
os.sched_setaffinity(0, {cpu})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
print("burning", flush=True)
while True:
    end = time.monotonic() + length(burnt)
    while time.monotonic() < end:
        pass
    time.sleep(length(pause))
"""


@contextmanager
def burning(cpu: int, burnt_ms: float, every_ms: float, *, by_chance: bool = False) -> Iterator[None]:
    """Take this core for `burnt_ms` milliseconds of every `every_ms`, while the context lasts.

    By chance both are means: each time and each pause is drawn, of no memory.
    """
    times = [str(burnt_ms / 1000), str((every_ms - burnt_ms) / 1000), "chance" if by_chance else "clockwork"]
    burner = subprocess.Popen([sys.executable, "-c", _PROGRAM, str(cpu), *times], stdout=subprocess.PIPE)
    try:
        assert burner.stdout is not None
        assert burner.stdout.readline()
        yield
    finally:
        burner.kill()
        burner.communicate()
