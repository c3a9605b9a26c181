# SPDX-License-Identifier: Apache-2.0
"""How each tester comes to its figure: natgauge by itself, the others by a search over their elementary trials."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import natgauge
from benchmarks.place import (
    DEVICE_INSIDE_ADDRESS,
    DEVICE_OUTSIDE_ADDRESS,
    INITIATOR,
    INITIATOR_ADDRESS,
    RESPONDER,
    RESPONDER_ADDRESS,
    TESTER,
)
from benchmarks.second_opinion import packaged
from benchmarks.second_opinion.gateway import COUNT, EMPTY, Gateway
from benchmarks.second_opinion.search import Range, Trial, highest
from benchmarks.second_opinion.siitperf import Forwarding, Opening, Siitperf
from natgauge.agreement.generated import StreamCounts
from natgauge.procedures.kit.results import Attempt, Measurement
from natgauge.words import Verdict

#: Duration of phase 2, in seconds.
SECONDS: Final = 1
#: Rate of phase 1 where it only prepares.
PREPARING_RATE: Final = 2000
FIRST_PORT, DESTINATION_PORT = 10_000, 9000


@dataclass(frozen=True, slots=True)
class Asked:
    """A figure with the number of trials behind it; the fields are those of `Turn`."""

    value: float | None
    trials: int
    invalid: int
    said: Sequence[str] = ()
    evidence: Sequence[Any] = ()


Tester = Callable[[Gateway], Asked]


def _searched(trial: Callable[[int], Trial], within: Range) -> Asked:
    value, trials = highest(trial, within)
    rejected = sum(not one.valid for one in trials)
    return Asked(value, len(trials), rejected, evidence=[asdict(one) for one in trials])


def _opening(connections: int, rate: int) -> Opening:
    return Opening(connections, rate, FIRST_PORT, DESTINATION_PORT)


def _attempt(attempt: Attempt) -> dict[str, Any]:
    """One trial of natgauge's search, as far as the other testers' trials have the same."""
    outcome = attempt.outcome
    counts: list[tuple[str, StreamCounts]] = [("phase 1", outcome.phase1), *outcome.phase2.items()]
    frames = {phase: {"sent": one.offered_frames, "received": one.received_frames} for phase, one in counts}
    return {"load": attempt.load, "verdict": outcome.verdict, "connections": outcome.table_count, **frames}


def by_natgauge(metric: str, sender: int, connections: int, **settings: Any) -> Tester:
    """Natgauge measures `metric` with `--lab wire`, sending on processor `sender`."""

    def ask(_: Gateway) -> Asked:
        with TemporaryDirectory(prefix="second-opinion-") as folder:
            result = natgauge.measure(
                metric,
                "nftables-nat44",
                lab="wire",
                initiator_port=INITIATOR,
                initiator_netns=TESTER,
                initiator_gateway=DEVICE_INSIDE_ADDRESS,
                responder_port=RESPONDER,
                responder_netns=TESTER,
                responder_gateway=DEVICE_OUTSIDE_ADDRESS,
                empty_command=EMPTY,
                count_command=COUNT,
                sender_cores=str(sender),
                source_addresses=INITIATOR_ADDRESS,
                destination_addresses=RESPONDER_ADDRESS,
                source_ports=f"{FIRST_PORT}-{FIRST_PORT + connections - 1}",
                destination_ports=str(DESTINATION_PORT),
                connections=connections,
                grace_seconds=0.3,
                repeat=1,
                results=Path(folder),
                **settings,
            )
        trials = result.trials
        said = [f"limited by: {result.limited_by}", *(doubt["text"] for doubt in result.document()["doubts"])]
        tried = [
            _attempt(attempt)
            for repetition in result.repetitions
            if isinstance(repetition, Measurement)
            for attempt in repetition.attempts
        ]
        return Asked(result.median, sum(trials.values()), trials.get(Verdict.INVALID, 0), said, tried)

    return ask


def opening_by_siitperf(siitperf: Siitperf, connections: int, within: Range) -> Tester:
    """Siitperf opens connections; phase 2 is left out."""

    def ask(gateway: Gateway) -> Asked:
        def trial(rate: int) -> Trial:
            gateway.empty()
            counts = siitperf.trial(_opening(connections, rate), Forwarding(1, 1, up=False, down=False))
            received = counts.received["Preliminary"]
            return Trial(rate, connections, received, not counts.invalid, gateway.count(), gateway.refused())

        return _searched(trial, within)

    return ask


def forwarding_by_siitperf(
    siitperf: Siitperf, connections: int, within: Range, *, up: bool = False, down: bool = False
) -> Tester:
    """Siitperf forwards over established connections; the direction that lost most decides."""
    directions = [*(["Forward"] if up else []), *(["Reverse"] if down else [])]

    def ask(gateway: Gateway) -> Asked:
        def trial(rate: int) -> Trial:
            gateway.empty()
            counts = siitperf.trial(_opening(connections, PREPARING_RATE), Forwarding(rate, SECONDS, up=up, down=down))
            received = min(counts.received[name] for name in directions)
            return Trial(rate, rate * SECONDS, received, not counts.invalid, gateway.count(), gateway.refused())

        return _searched(trial, within)

    return ask


def capacity_by_siitperf(siitperf: Siitperf, within: Range) -> Tester:
    """Siitperf opens each number of connections at a safe rate, then the Responder reads all of them once."""

    def ask(gateway: Gateway) -> Asked:
        def trial(connections: int) -> Trial:
            gateway.empty()
            reading = Forwarding(connections, 1, up=False, down=True)
            counts = siitperf.trial(_opening(connections, PREPARING_RATE), reading)
            received = min(counts.received["Preliminary"], counts.received["Reverse"])
            return Trial(connections, connections, received, not counts.invalid, gateway.count(), gateway.refused())

        return _searched(trial, within)

    return ask


def _trafgen_trial(gateway: Gateway, cpu: int, load: int, opening: Opening) -> Trial:
    gateway.empty()
    arrived, rate = packaged.trafgen(opening, gateway.ends.initiator_gateway, cpu)
    return Trial(
        load,
        opening.connections,
        arrived,
        valid=True,
        connections=gateway.count(),
        refused=gateway.refused(),
        rate=rate,
    )


def opening_by_trafgen(cpu: int, connections: int, within: Range) -> Tester:
    """Search for the rate that trafgen is asked for; the figure is the highest rate at which it sent without a loss."""

    def ask(gateway: Gateway) -> Asked:
        found = _searched(lambda rate: _trafgen_trial(gateway, cpu, rate, _opening(connections, rate)), within)
        passed = [one["rate"] for one in found.evidence if one["received"] >= one["sent"]]
        return replace(found, value=max(passed, default=0.0))

    return ask


def capacity_by_trafgen(cpu: int, within: Range) -> Tester:
    """Trafgen cannot validate connections, so the gateway's own count must agree."""

    def ask(gateway: Gateway) -> Asked:
        def trial(connections: int) -> Trial:
            found = _trafgen_trial(gateway, cpu, connections, _opening(connections, PREPARING_RATE))
            return replace(found, received=min(found.received, found.connections))

        return _searched(trial, within)

    return ask


def forwarding_by_iperf3(within: Range) -> Tester:
    """Iperf3 forwards datagrams from the Initiator's side over one connection."""

    def ask(gateway: Gateway) -> Asked:
        def trial(rate: int) -> Trial:
            gateway.empty()
            sent, arrived, seconds = packaged.iperf3(rate, SECONDS)
            valid = abs(sent / seconds / rate - 1) <= packaged.RATE_TOLERANCE
            return Trial(rate, sent, arrived, valid, gateway.count(), gateway.refused())

        with packaged.sockets():
            return _searched(trial, within)

    return ask
