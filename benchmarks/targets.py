# SPDX-License-Identifier: Apache-2.0
"""What the tester is to reach on this machine, each as a paired ratio: `python -m benchmarks.targets` (root).

What is compared takes turns within milliseconds (slices), or within seconds where only whole trials tell it. Figures
are medians of the pairs' ratios with intervals (95 %), wider where rounds disagree, so they stand where rates do not.
Writes a page and a JSON file into benchmarks/results/.
"""

from __future__ import annotations

import os
import random
import secrets
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from benchmarks import command, machine, tester
from benchmarks.place import Place
from benchmarks.tester import Load
from natgauge.agreement import generated
from natgauge.agreement.process import compare
from natgauge.agreement.trial import nominal_seconds
from natgauge.errors import BrokenError, NatgaugeError
from natgauge.labs.netns.lab import GRACE_SECONDS
from natgauge.paired.ratios import work_of_block
from natgauge.paired.slices import LEAD_FRAMES
from natgauge.statistics.rounds import LEAST_ROUNDS, estimate_over_rounds
from natgauge.statistics.summary import MedianEstimate, median_estimate
from natgauge.tester.cable import CableLab, FrameKind
from natgauge.tester.own_rates import SLICE_FRAMES, FloorTester
from natgauge.trial.rounds import TimedFrames, fault_of, over_cable

ALPHA: Final = 0.05
CONNECTIONS: Final = 100_000
FEW: Final = 1_000
MANY: Final = 30_000_000
#: Blocks of a round: it is where programs and tables come to lie in memory that differs, not the blocks of one round.
BLOCKS: Final = 20
#: Opening 30 million connections takes half a minute: rounds of these are few and long.
MANY_BLOCKS: Final = 120
ROUND_SECONDS: Final = 300.0
#: Of sending, in trials of one and two senders.
TRIAL_SECONDS: Final = 0.5
#: Of a trial whose fixed cost is asked for.
SHORT: Final = Load(connections=10_000, frames=100_000, rate=1e6, grace_ms=round(GRACE_SECONDS * 1000))
KINDS: Final[tuple[tuple[str, FrameKind, float], ...]] = (
    ("IPv4 64, both ways", FrameKind("ipv4", 64, delays=False), 0.75),
    ("IPv6 84, both ways", FrameKind("ipv6", 84, delays=False), 0.70),
    ("IPv4 64, both ways, every frame timed", FrameKind("ipv4", 64, delays=True), 0.55),
)


@dataclass(frozen=True, slots=True)
class Target:
    """A figure that is wanted, and what was found.

    Attributes:
        name: what was measured.
        wanted: the bound.
        bound: which side of it is good.
        median: of the values; a ratio, or seconds where the name says so.
        low: end of the median's interval; None where there were too few values.
        high: the other end.
        values: how many.
        remark: what else must be known.
    """

    name: str
    wanted: float
    bound: command.Bound
    median: float
    low: float | None
    high: float | None
    values: int
    remark: str

    @property
    def reached(self) -> bool:
        """Whether the median keeps the bound."""
        return command.keeps(self.median, self.bound, self.wanted)


@dataclass(frozen=True, slots=True)
class Settings:
    """How often: `rounds` of slices, `pairs` of trials; `cpu` is the one core."""

    rounds: int
    pairs: int
    cpu: int


def _target(name: str, bound: command.Bound, wanted: float, rounds: Sequence[Sequence[float]], remark: str) -> Target:
    """Of rounds of slices."""
    values = [value for one in rounds for value in one]
    return Target(name, wanted, bound, *_with_interval(estimate_over_rounds(rounds, ALPHA), values), remark)


def _of_trials(name: str, bound: command.Bound, wanted: float, values: Sequence[float], remark: str) -> Target:
    """Of whole trials, which are no rounds of blocks: each has programs of its own."""
    return Target(name, wanted, bound, *_with_interval(median_estimate(values, ALPHA), values), remark)


def _with_interval(
    found: MedianEstimate | None, values: Sequence[float]
) -> tuple[float, float | None, float | None, int]:
    """Median, its interval's ends, and how many values."""
    if found is None:
        return statistics.median(values), None, None, len(values)
    return found.value, found.lower, found.upper, found.number


def shares(settings: Settings) -> Iterator[Target]:
    """Of the redirect floor, rounds of all kinds in turn."""
    with CableLab(_name("share")) as cable:
        floor = FloorTester(cable, settings.cpu, connections=CONNECTIONS)
        seen: dict[FrameKind, list[list[float]]] = {kind: [] for _, kind, _ in KINDS}
        took: dict[FrameKind, list[int]] = {kind: [] for _, kind, _ in KINDS}
        for _ in range(settings.rounds):
            for _, kind, _ in KINDS:
                pairs = floor.round(kind, BLOCKS)
                seen[kind].append([pair.floor / pair.tester for pair in pairs])
                took[kind] += [pair.tester for pair in pairs]
    for name, kind, wanted in KINDS:
        rate = 2 * SLICE_FRAMES * 1e9 / statistics.median(took[kind])
        remark = f"{rate:,.0f} frames/s"
        yield _target(f"share of the floor, {name}, N = {CONNECTIONS:,}", "at least", wanted, seen[kind], remark)


def large_table(settings: Settings) -> Iterator[Target]:
    """What a frame costs where no cache holds the state table, beside one where every cache does."""
    rounds = []
    with CableLab(_name("many")) as many, CableLab(_name("few")) as few:
        for _ in range(max(LEAST_ROUNDS, settings.rounds // 6)):
            contestants = [
                over_cable(TimedFrames("ipv4", 64, connections), lab, settings.cpu).model_copy(update={"name": name})
                for name, lab, connections in (("many", many, MANY), ("few", few, FEW))
            ]
            blocks = _blocks(settings.cpu, contestants, MANY_BLOCKS)
            rounds.append([of_many / of_few for of_many, of_few in blocks])
    yield _target(
        f"cost of a frame, N = {MANY:,} / N = {FEW:,}", "at most", 1.25, rounds, "IPv4 64, both ways, on two cables"
    )


def own_share(settings: Settings) -> Iterator[Target]:
    """What making and judging a frame takes of the core that also forwards it."""
    with Place(forwards=True) as place, CableLab(_name("own")) as cable:
        load = Load(connections=CONNECTIONS)
        contestants = [
            generated.Contestant(name="linux-ipv4", trial=tester.request(place, load, settings.cpu)),
            over_cable(TimedFrames("ipv4", 64, CONNECTIONS), cable, settings.cpu),
        ]
        rounds = [_blocks(settings.cpu, contestants, BLOCKS, floor=1) for _ in range(settings.rounds)]
    whole = statistics.median(cable / device for one in rounds for device, cable, _ in one)
    yield _target(
        "natgauge's own share of the core, through linux-ipv4 (shared), IPv4 64, both ways",
        "at most",
        0.12,
        [[(cable - floor) / device for device, cable, floor in one] for one in rounds],
        f"(cable - floor) / forwarding; cable / forwarding, with the kernel's path of a frame, is {whole:.3f}",
    )


def two_senders(settings: Settings) -> Iterator[Target]:
    """Whole trials on a cable with two queues, one sender and two in turn."""
    others = sorted(os.sched_getaffinity(0) - {settings.cpu})
    if not others:
        return
    ratios, lost = [], 0
    with Place(forwards=False) as place:
        load = tester.for_seconds(place, Load(), settings.cpu, TRIAL_SECONDS)
        for _ in range(settings.pairs):
            rates = {}
            alone = random.choice((settings.cpu, others[0]))  # noqa: S311 - a choice, no secret
            for cpus in random.sample([(alone,), (others[0], settings.cpu)], 2):
                run = tester.run(place, load, *cpus)
                rates[len(cpus)] = run.rate
                lost += run.lost
            ratios.append(rates[2] / rates[1])
    remark = f"IPv4 64, both ways, whole trials of {2 * load.frames:,} frames; {lost:,} frames lost"
    yield _of_trials("two senders / one, cable", "at least", 1.9, ratios, remark)


def fixed_cost(settings: Settings) -> Iterator[Target]:
    """Seconds of a trial in which no frame is due, by the default grace between namespaces."""
    with Place(forwards=False) as place:
        request = tester.request(place, SHORT, settings.cpu)
        sending = nominal_seconds(request) - 2 * GRACE_SECONDS
        seconds = [tester.run(place, SHORT, settings.cpu).seconds - sending for _ in range(settings.pairs)]
    remark = f"wall time of the engine's process - {sending:.2f} s of sending and gap; grace {GRACE_SECONDS:g} s"
    yield _of_trials("a trial's fixed cost, s", "at most", 0.2, seconds, remark)


SECTIONS: Final[dict[str, Callable[[Settings], Iterator[Target]]]] = {
    "shares": shares,
    "large-table": large_table,
    "own-share": own_share,
    "two-senders": two_senders,
    "fixed-cost": fixed_cost,
}


def _blocks(
    cpu: int, contestants: Sequence[generated.Contestant], blocks: int, floor: int | None = None
) -> list[Sequence[float]]:
    """What each contestant, and the floor behind them, took for a frame in each block of frames both ways, ns.

    Raises:
        BrokenError: a frame was lost or wrong.
    """
    request = generated.ComparisonRequest(
        seed=secrets.randbits(64),
        cpu=cpu,
        contestants=tuple(contestants),
        floor=floor,
        slices=generated.Slices(frames=SLICE_FRAMES, lead=LEAD_FRAMES, new=0, up=0, down=0, both=blocks),
        limits=generated.TrialLimits(seconds=ROUND_SECONDS),
    )
    result = compare(request, seconds=ROUND_SECONDS + 15)
    for counts, contestant in zip(result.contestants, contestants, strict=True):
        if fault := fault_of(counts, contestant.trial.connections, None):
            raise BrokenError(f"targets: {counts.name}: {fault}")
    if result.floor is not None and result.floor.received_frames != result.floor.made_frames:
        raise BrokenError(f"targets: frames of the redirect floor were lost: {result.floor}")
    return [work_of_block(block.quantity, block.order, block.ns, SLICE_FRAMES).nanoseconds for block in result.blocks]


def _name(what: str) -> str:
    return f"targets-{os.getpid()}-{what}"


def page(described: dict[str, str | int | float], targets: Sequence[Target]) -> str:
    """Machine and table in Markdown."""
    parts = command.heading("What the tester is to reach", described)
    parts += ["| What | Wanted | Median | Interval (95 %) | Pairs | Reached | Remark |"]
    parts += ["|---|--:|--:|--:|--:|---|---|"]
    for one in targets:
        ends = "too few" if one.low is None else f"{one.low:.3f} to {one.high:.3f}"
        parts.append(
            f"| {one.name} | {one.bound} {one.wanted:g} | {one.median:.3f} | {ends} | {one.values} "
            f"| {'yes' if one.reached else 'no'} | {one.remark} |"
        )
    return "\n".join([*parts, ""])


def main() -> int:
    """Measure what was asked for and write it; 0 when all could be measured, whatever the figures are."""
    parser = command.options(__doc__, "targets")
    parser.add_argument("--rounds", type=int, default=12, help="of slices, of each figure (default 12)")
    parser.add_argument("--pairs", type=int, default=20, help="of trials (default 20)")
    parser.add_argument("--only", choices=SECTIONS, action="append", help="may be repeated; everything when absent")
    arguments = parser.parse_args()
    if not command.is_root("targets"):
        return 3
    settings = Settings(arguments.rounds, arguments.pairs, arguments.cpu)
    described = machine.describe()
    targets: list[Target] = []
    try:
        for section in arguments.only or SECTIONS:
            for one in SECTIONS[section](settings):
                print(page(described, [one]).splitlines()[-1], flush=True)
                targets.append(one)
    except NatgaugeError as error:
        print(f"targets: {error}", file=sys.stderr)
        return error.exit_status
    document = {
        "version": 1,
        "machine": described,
        "settings": asdict(settings),
        "targets": [asdict(one) | {"reached": one.reached} for one in targets],
    }
    name = f"{command.day(described)}-{arguments.name}"
    print(f"Written: {command.write(arguments.results, name, page(described, targets), document)} and the same as JSON")
    return 0


if __name__ == "__main__":
    sys.exit(main())
