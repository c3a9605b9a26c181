# SPDX-License-Identifier: Apache-2.0
"""Call stacks of the kernel on a core, sampled by perf."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple, Self

from natgauge.errors import HostError, in_a_line

PROGRAM: Final = "perf"
#: Samples per second. A prime number, so that the samples do not coincide with periodic events, e.g. 1000 per second.
_FREQUENCY: Final = 4999
#: What perf runs: it ends with its input, which the kernel closes however natgauge ends, and perf ends with it.
_WORKLOAD: Final = "cat"
_READY_SECONDS: Final = 5.0
_END_SECONDS: Final = 20.0
_TIME: Final = re.compile(r"\s*(\d+\.\d+):")
_FRAME: Final = re.compile(r"\s+[0-9a-f]+ (\S+)")


class Stack(NamedTuple):
    """A sample: seconds of the monotonic clock, and the functions on the stack, the innermost first."""

    seconds: float
    functions: tuple[str, ...]


class Sampling:
    """Samples of one core, taken while the `with` block lasts."""

    def __init__(self, cpu: int) -> None:
        perf = shutil.which(PROGRAM)
        if perf is None:
            raise HostError(f"{PROGRAM}: is not installed; run: apt-get install linux-perf")
        self.stacks: list[Stack] = []
        self._program = perf
        self._cpu = cpu
        self._made = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as made:
            folder = Path(made.enter_context(tempfile.TemporaryDirectory(prefix="natgauge-perf-")))
            self._samples, output = folder / "samples", folder / "said"
            # Every machine has the clock's event, also virtual machines without counters.
            options = ["-q", "-e", "cpu-clock", "-F", str(_FREQUENCY), "-g", "-k", "CLOCK_MONOTONIC"]
            options += ["-C", str(self._cpu)]
            with output.open("wb") as words:
                self._process = subprocess.Popen(
                    [self._program, "record", *options, "-o", str(self._samples), "--", _WORKLOAD],
                    stdin=subprocess.PIPE,
                    stdout=words,
                    stderr=words,
                )
            made.callback(self._end)
            end = time.monotonic() + _READY_SECONDS
            while not (self._samples.exists() and self._samples.stat().st_size):
                if self._process.poll() is not None or time.monotonic() > end:
                    message = in_a_line(output.read_text(errors="replace")) or "it says nothing"
                    raise HostError(f"{PROGRAM}: does not sample core {self._cpu}: {message}")
                time.sleep(0.01)
            self._made = made.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        with self._made:
            self._end()
            if exception[0] is None:
                self.stacks = self._read()

    def _end(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _read(self) -> list[Stack]:
        command = [self._program, "script", "-i", str(self._samples), "-F", "time,ip,sym"]
        message = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace")
        if message.returncode:
            raise HostError(f"{PROGRAM}: cannot read its own samples: {in_a_line(message.stderr)}")
        return list(read(message.stdout))


def read(text: str) -> Iterator[Stack]:
    """Parse the output of `perf script -F time,ip,sym`."""
    for block in text.split("\n\n"):
        lines = block.strip("\n").splitlines()
        if not lines or (began := _TIME.match(lines[0])) is None:
            continue
        frames = (match[1] for line in lines[1:] if (match := _FRAME.match(line)))
        yield Stack(float(began[1]), tuple(frames))
