# SPDX-License-Identifier: Apache-2.0
"""`python -m benchmarks.churn`: hours of connections that come and go, at half of what a gateway carries.

The mixed load of a gateway is measured first. Then trials at half of it follow each other: nothing may be lost, the
gateway's own count must be the expected one within 1 %, and the memory of natgauge and its engine must stay what it
was. Root, two cores. The page's name ends in `churn`.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, Self

import psutil

import natgauge
from benchmarks import machine
from benchmarks.command import day, heading, is_root, options, write
from natgauge.readings import MOST_DEVIATION, Churn
from natgauge.records.store import Memory
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask
from natgauge.trials import Phase2Plan, Trial, TrialPlan
from natgauge.words import Verdict

Place = Literal["shared", "isolated"]
#: Connections that are open, and new ones for each frame.
OPEN: Final = 100_000
SHARE: Final = 0.01
#: After this many seconds a gateway forgets a connection.
FORGETS: Final = 60
SOURCE_PORTS: Final = 64_512
#: Memory may grow by this share after the first trial.
CONSTANT: Final = 0.02
_MIB: Final = 1 << 20


class MemoryWatch(threading.Thread):
    """The most resident memory of this process and of natgauge's programs that it started, in octets, by second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._ended = threading.Event()
        self.most: Counter[str] = Counter()

    def run(self) -> None:
        """Read until the end."""
        while not self._ended.wait(1.0):
            here = psutil.Process()
            for process in (here, *here.children(recursive=True)):
                try:
                    name = "natgauge" if process == here else process.name()
                    # A command of a recipe comes and goes.
                    if name.startswith("natgauge"):
                        self.most[name] = max(self.most[name], process.memory_info().rss)
                except psutil.Error:
                    # It has ended meanwhile.
                    continue

    def taken(self) -> dict[str, int]:
        """Return what was seen since the last call."""
        seen, self.most = dict(self.most), Counter()
        return seen

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()


@dataclass(frozen=True, slots=True)
class Stretch:
    """One trial: what it lost, the gateway's count next to the expected one, and the most memory of each process."""

    seconds: float
    verdict: str
    reason: str
    opened: int
    lost: int
    count: int | None
    expected: float | None
    memory: Mapping[str, int]

    @property
    def deviation(self) -> float | None:
        """Difference of the count from the expected one, as a share of that."""
        return None if self.count is None or not self.expected else self.count / self.expected - 1

    @property
    def holds(self) -> bool:
        """Whether nothing was lost, and the count is the expected one."""
        off = self.deviation
        return self.verdict == Verdict.PASS and not self.lost and off is not None and abs(off) <= MOST_DEVIATION


def stretch_of(trial: Trial, seconds: float, memory: Mapping[str, int]) -> Stretch:
    """Return what a trial shows."""
    read, openings = trial.readings.count_in_churn, trial.openings
    return Stretch(
        seconds,
        str(trial.verdict),
        trial.reason,
        openings.received_frames if openings is not None else 0,
        sum(each.lost for each in trial.streams),
        None if read is None else read.count,
        None if read is None else read.expected,
        memory,
    )


def grown(stretches: Sequence[Stretch]) -> float:
    """Return the largest growth of a process's memory after the first trial, as a share of what it was then."""
    first, last = stretches[0].memory, stretches[-1].memory
    return max((last[name] / first[name] - 1 for name in first if name in last), default=0.0)


def answer(gateway: str, placement: Place) -> float:
    """Measure the mixed load of a gateway, frames/s of each direction."""
    result = natgauge.measure(
        "mixed-load", gateway=gateway, connections=OPEN, placement=placement, new_share=SHARE, destination_ports="1-8"
    )
    return result.median


def run(gateway: str, placement: Place, rate: float, seconds: float, each: float) -> list[Stretch]:
    """Run trials of `each` seconds at this rate until so many seconds have passed in those that counted."""
    fresh = 2 * SHARE * rate
    held = math.ceil(OPEN + fresh * FORGETS)
    ports = math.ceil((OPEN + fresh * each) / SOURCE_PORTS) + 1
    chosen = {
        "connections": held,
        "destination_ports": f"1-{ports}",
        "placement": placement,
        "udp_timeout": FORGETS,
        # Linux keeps entries whose time is over until it comes by; a full table drops new connections meanwhile.
        "table_size": 2 * held,
        "lab_name": "churn",
    }
    churn = Churn(fresh)
    plan = TrialPlan(OPEN, OPEN / 4.0, Phase2Plan(rate, rate, each, churn=churn))
    found: list[Stretch] = []
    with MemoryWatch() as watch, Bench(ask("connection-rate", gateway, chosen).cell) as bench:
        measurer = bench.ready(bench.plan("connection-rate", {}), Memory()).measurer
        ends = time.monotonic() + 2 * seconds
        while sum(one.seconds for one in found if one.verdict != Verdict.INVALID) < seconds and time.monotonic() < ends:
            found.append(stretch_of(measurer.measure(plan), each, watch.taken()))
            print(found[-1], flush=True)
    return found


def page(found: Sequence[Stretch], rate: float, gateway: str, described: Mapping[str, Any]) -> str:
    """The page of all trials."""
    load = (
        f"`{gateway}`: {rate:,.0f} frames/s of each direction, {2 * SHARE * rate:,.0f} new connections/s, {OPEN:,} "
        f"open, forgotten after {FORGETS} s. Memory grew by {grown(found):+.2%} at most after the first trial."
    )
    lines = [
        *heading("Churn at half of the answer", described),
        load,
        "",
        "| s | verdict | opened | frames lost | count | expected | difference | memory (MiB) |",
        "|--:|---|--:|--:|--:|--:|--:|---|",
    ]
    for one in found:
        off = "" if one.deviation is None else f"{one.deviation:+.2%}"
        memory = ", ".join(f"{name} {octets / _MIB:.1f}" for name, octets in sorted(one.memory.items()))
        expected = "" if one.expected is None else f"{one.expected:,.0f}"
        count = "" if one.count is None else f"{one.count:,}"
        cells = (f"{one.seconds:g}", one.verdict, f"{one.opened:,}", f"{one.lost:,}", count, expected, off, memory)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def main(arguments: list[str] | None = None) -> int:
    """Measure the answer, run at half of it, and write the page."""
    parser = options(__doc__, "churn")
    parser.add_argument("--gateway", default="nftables-nat44", help="default %(default)s")
    parser.add_argument("--placement", default="isolated", choices=("isolated", "shared"), help="default %(default)s")
    parser.add_argument("--seconds", type=float, default=3600.0, help="of all trials together (default %(default)g)")
    parser.add_argument("--each", type=float, default=300.0, help="of one trial (default %(default)g)")
    parser.add_argument("--rate", type=float, help="frames/s of each direction; default half of the mixed load")
    chosen = parser.parse_args(arguments)
    if not is_root("churn"):
        return 3
    described = machine.describe()
    rate = chosen.rate or answer(chosen.gateway, chosen.placement) / 2
    found = run(chosen.gateway, chosen.placement, rate, chosen.seconds, min(chosen.each, chosen.seconds))
    text = page(found, rate, chosen.gateway, described)
    print(text)
    write(
        chosen.results,
        f"{day(described)}-{chosen.name}",
        text,
        {"machine": described, "rate": rate, "trials": list(map(asdict, found))},
    )
    counted = [one for one in found if one.verdict != Verdict.INVALID]
    return 0 if counted and all(one.holds for one in counted) and grown(found) <= CONSTANT else 4


if __name__ == "__main__":
    sys.exit(main())
