# SPDX-License-Identifier: Apache-2.0
"""natgauge, the redirect floor and the packaged generators in turns of a second: `python -m benchmarks.side_by_side`.

Rates move with the host within the minute, ratios to what was measured right before and after do not. So every turn of
a generator stands between two rounds of natgauge and the floor, themselves in slices that alternate, over the same veth
on the same core, and is held against the floor there. Writes a page and a JSON file into benchmarks/results/ (root).
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks import command, machine, peers
from benchmarks.floor import compile_bpf
from benchmarks.place import INITIATOR, RESPONDER, TESTER, Place
from natgauge.errors import NatgaugeError
from natgauge.labs.contract import Port
from natgauge.statistics.rounds import estimate_over_rounds
from natgauge.statistics.summary import median_estimate
from natgauge.tester.cable import FrameKind
from natgauge.tester.own_rates import SLICE_FRAMES, FloorPair, FloorTester
from natgauge.words import Quantity

ALPHA: Final = 0.05
BLOCKS: Final = 20
#: Of natgauge, the least frames of each family.
V4, V6 = FrameKind("ipv4", 64, delays=False), FrameKind("ipv6", 84, delays=False)
V4_TIMED = FrameKind("ipv4", 64, delays=True)
#: What `both` does of each frame; a generator sends one fixed frame one way and looks at none.
OURS: Final = "every frame different, received, judged, counted"


@dataclass(frozen=True, slots=True)
class Own:
    """A row of natgauge's own: frames, how many connections, which way."""

    kind: FrameKind
    connections: int
    quantity: Quantity
    target: float | None = None

    @property
    def name(self) -> str:
        """As the table shows it."""
        timed = ", every frame timed" if self.kind.delays else ""
        family = {"ipv4": "IPv4", "ipv6": "IPv6"}[self.kind.family]
        ways = {"both": "both ways", "up": "one way"}.get(self.quantity, self.quantity)
        return f"natgauge, {family} {self.kind.frame_size}, {ways}, N = {self.connections:,}{timed}"


OWN: Final = (
    Own(V4, 100_000, "both", 0.75),
    Own(V6, 100_000, "both", 0.70),
    Own(V4_TIMED, 100_000, "both", 0.55),
    Own(V4, 1_000, "both"),
    Own(V4, 1_000_000, "both"),
    Own(V4, 100_000, "up"),
)
#: Beside which the generators' turns stand.
BESIDE: Final = OWN[-1]


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the table: frames/s, and the ratio to the floor with its interval (None: no floor beside it)."""

    name: str
    does: str
    frames_per_second: float | None
    share: float | None = None
    low: float | None = None
    high: float | None = None
    target: float | None = None
    problem: str = ""


@dataclass(slots=True)
class _Cable:
    initiator: Port
    responder: Port


def _cable(place: Place) -> _Cable:
    ends = place.ends
    return _Cable(
        Port(INITIATOR, TESTER, ends.initiator_gateway, None), Port(RESPONDER, TESTER, ends.responder_gateway, None)
    )


def _line(own: Own, rounds: Sequence[Sequence[FloorPair]]) -> Line:
    shares = [[pair.floor / pair.tester for pair in one] for one in rounds]
    found = estimate_over_rounds(shares, ALPHA)
    rate = 2 * SLICE_FRAMES * 1e9 / statistics.median(pair.tester for one in rounds for pair in one)
    if found is None:
        return Line(own.name, OURS, rate, problem="too few rounds", target=own.target)
    return Line(own.name, OURS, rate, found.value, found.lower, found.upper, own.target)


def _floor_rate(pairs: Sequence[FloorPair]) -> float:
    return 2 * SLICE_FRAMES * 1e9 / statistics.median(pair.floor for pair in pairs)


def beside(rates: Sequence[float], floors: Sequence[float]) -> tuple[float, float, float] | None:
    """A generator's rate / the floor's, with its interval: turn i stands between floors i and i + 1."""
    ratios = [rate / ((floors[at] + floors[at + 1]) / 2) for at, rate in enumerate(rates)]
    found = median_estimate(ratios, ALPHA)
    return None if found is None else (found.value, found.lower, found.upper)


def _peer(peer: peers.Peer, place: Place, tester: FloorTester, turns: int, sink: Path) -> Line:
    rates: list[float] = []
    floors = [_floor_rate(tester.round(BESIDE.kind, BLOCKS))]
    try:
        for _ in range(turns):
            rates.append(peers.delivered_rate(peer, place, tester.cpu, 0.5, sink))
            floors.append(_floor_rate(tester.round(BESIDE.kind, BLOCKS)))
    except peers.PeerError as error:
        return Line(peer.name, peer.note, None, problem=str(error))
    found = beside(rates, floors)
    if found is None:
        return Line(peer.name, peer.note, statistics.median(rates), problem="too few turns for an interval")
    return Line(peer.name, peer.note, statistics.median(rates), *found)


def _lines(cpu: int, rounds: int, turns: int) -> Iterator[Line]:
    with TemporaryDirectory() as folder, Place(forwards=False) as place:
        sink, cable = compile_bpf("sink.bpf.c", Path(folder)), _cable(place)
        testers = {own: FloorTester(cable, cpu, connections=own.connections, quantity=own.quantity) for own in OWN}
        seen: dict[Own, list[list[FloorPair]]] = {own: [] for own in OWN}
        for _ in range(rounds):
            for own, tester in testers.items():
                seen[own].append(tester.round(own.kind, BLOCKS))
        pairs = [pair for one in seen[OWN[0]] for pair in one]
        yield Line("redirect floor", "nothing: one program redirects, one drops", _floor_rate(pairs), 1.0, 1.0, 1.0)
        yield from (_line(own, seen[own]) for own in OWN)
        for peer in peers.PEERS:
            yield _peer(peer, place, testers[BESIDE], turns, sink)


def page(described: dict[str, str | int | float], lines: Sequence[Line]) -> str:
    """Machine and table in Markdown."""
    parts = command.heading("The tester beside the redirect floor", described)
    parts += ["| Generator | Frames/s, median | Of the floor | Interval (95 %) | Wanted | Each frame is |"]
    parts += ["|---|--:|--:|--:|--:|---|"]
    for line in lines:
        rate = "not measured" if line.frames_per_second is None else f"{line.frames_per_second:,.0f}"
        share, ends = "", line.problem
        if line.share is not None:
            share, ends = f"{line.share:.3f}", f"{line.low:.3f} to {line.high:.3f}"
        wanted = "" if line.target is None else f"{line.target:.2f}"
        parts.append(f"| {line.name} | {rate} | {share} | {ends} | {wanted} | {line.does} |")
    return "\n".join([*parts, ""])


def main() -> int:
    """Measure all and write it; 0 when natgauge could be measured."""
    parser = command.options(__doc__, "floor")
    parser.add_argument("--rounds", type=int, default=12, help="of each of natgauge's rows (default 12)")
    parser.add_argument("--turns", type=int, default=10, help="of each other generator (default 10)")
    arguments = parser.parse_args()
    if not command.is_root("side_by_side"):
        return 3
    described = machine.describe()
    lines: list[Line] = []
    try:
        for line in _lines(arguments.cpu, arguments.rounds, arguments.turns):
            print(page(described, [line]).splitlines()[-1], flush=True)
            lines.append(line)
    except NatgaugeError as error:
        print(f"side_by_side: {error}", file=sys.stderr)
        return error.exit_status
    document = {"machine": described, "rows": [asdict(line) for line in lines]}
    name = f"{command.day(described)}-{arguments.name}"
    print(f"Written: {command.write(arguments.results, name, page(described, lines), document)} and the same as JSON")
    return 0


if __name__ == "__main__":
    sys.exit(main())
