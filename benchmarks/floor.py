# SPDX-License-Identifier: Apache-2.0
"""What no live-frames tester can beat on this machine: the kernel's own loop around programs that do nothing.

Frames are made one by one in that loop, so its time is part of every frame's. Between processors it differs by a factor
of three, by their speed and by what their flaws cost (`mitigations`), which puts every other figure in proportion.
"""

from __future__ import annotations

import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
FRAMES = 5_000_000


@dataclass(frozen=True, slots=True)
class Floor:
    """Medians in nanoseconds per frame.

    Attributes:
        loop: the loop and a program that drops at once.
        clock: one reading of the clock, which pacing and timing need.
    """

    loop: float
    clock: float

    @property
    def highest_rate(self) -> float:
        """Frames/s of the loop alone."""
        return 1e9 / self.loop


def compile_bpf(source: str, folder: Path, *flags: str) -> Path:
    """Compile one of this folder's BPF programs with clang, and with these flags beside the usual ones.

    Raises:
        subprocess.CalledProcessError: clang failed; it has said why.
    """
    target = folder / source.replace(".bpf.c", ".o")
    # Debian keeps asm/ below the machine's name, where clang for BPF does not look.
    include = subprocess.run(["cc", "-print-multiarch"], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
    command = ["clang", "-O2", "-g", "-target", "bpf", f"-I/usr/include/{include}", *flags, "-c"]
    subprocess.run([*command, HERE / source, "-o", target], check=True)
    return target


def measure(cpu: int, repetitions: int) -> Floor:
    """Run the loop on one core.

    Raises:
        subprocess.CalledProcessError: the compiler or the loop failed; it has said why.
    """
    with TemporaryDirectory() as name:
        folder = Path(name)
        programs = compile_bpf("floor.bpf.c", folder)
        runner = folder / "floor"
        subprocess.run(["cc", "-O2", "-o", runner, HERE / "floor.c", "-lbpf"], check=True)
        command = ["taskset", "-c", str(cpu), str(runner), str(programs), str(FRAMES)]
        runs = [_read(subprocess.run(command, check=True, capture_output=True, text=True)) for _ in range(repetitions)]
    loop = statistics.median(run["nothing"] for run in runs)
    return Floor(loop, statistics.median(run["read_clock"] for run in runs) - loop)


def _read(finished: subprocess.CompletedProcess[str]) -> dict[str, float]:
    return {name: float(value) for name, value in (line.split() for line in finished.stdout.splitlines())}
