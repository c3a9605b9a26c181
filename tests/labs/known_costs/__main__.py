# SPDX-License-Identifier: Apache-2.0
"""What `compare` finds of programs that are busy for a known time: `python -m tests.labs.known_costs [SECONDS]`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.labs.known_costs.devices import loop_ns, recipe

import natgauge

#: Asked for, in ns.
WANTED = (20, 100, 500)
#: What even the first gateway is busy for, in ns: see busy.bpf.c.
BASE = 50


def found_ns(seconds: float, wanted: Sequence[int] = WANTED, cpu: int = 0) -> list[tuple[float, float, float, float]]:
    """Of each time: as calibrated, as found, and the ends of the interval, in ns."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before = loop_ns(folder, cpu)
        base = round(BASE / before)
        loops = [max(1, round(one / before)) for one in wanted]
        devices = [recipe(folder, f"busy-{one}-ns-more", base + each) for one, each in zip(wanted, loops, strict=True)]
        compared = natgauge.compare(
            recipe(folder, "busy", base),
            *devices,
            results=folder,
            quantities="up",
            connections=20_000,
            resolve="0.1%",
            most_seconds=seconds,
            core=cpu,
        )
        each_ns = (before + loop_ns(folder, cpu)) / 2
    first_ns = compared.document["baseline_costs"][0]["nanoseconds"]
    told = []
    for figure, number in zip(compared.figures, loops, strict=True):
        assert figure.ratio is not None
        assert figure.low is not None
        assert figure.high is not None
        told.append((number * each_ns, *((one - 1) * first_ns for one in (figure.ratio, figure.low, figure.high))))
    return told


if __name__ == "__main__":
    for known, found, low, high in found_ns(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0):
        told = f"known {known:6.1f} ns, found {found:6.1f} ({low:.1f} to {high:.1f}), {found / known - 1:+.1%}"
        print(told, flush=True)  # noqa: T201 - what it is for
