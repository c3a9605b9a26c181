# SPDX-License-Identifier: Apache-2.0
"""Convert the engine's raw integers to the counts, delays and facts that procedures and verdicts use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from natgauge.agreement import Cpu, DelayCounts, StreamCounts, TrialResult, VariationCounts, phase1_of
from natgauge.measurer import Delays, Direction, Variation
from natgauge.other_traffic import OtherTraffic

#: Stolen time is read from /proc/stat, whose grain is 10 ms: one tick is the least that can be seen.
STOLEN_BOUND_NS = 10_000_000


def phase2_streams(result: TrialResult) -> dict[Direction, StreamCounts]:
    """Return the engine's counts of each active direction; empty without phase 2."""
    if result.phase2 is None:
        return {}
    both = {Direction.INITIATOR: result.phase2.initiator, Direction.RESPONDER: result.phase2.responder}
    return {direction: stream for direction, stream in both.items() if stream is not None}


def streams_of(result: TrialResult) -> dict[Direction | None, StreamCounts]:
    """Return the engine's counts of phase 1 (key None) and of each active direction of phase 2."""
    phase1: dict[Direction | None, StreamCounts] = {} if result.phase1 is None else {None: result.phase1}
    return phase1 | dict(phase2_streams(result).items())


def received_in_all(streams: Mapping[Direction | None, StreamCounts]) -> int:
    """Return the number of correctly received frames of all streams."""
    return sum(stream.received_frames for stream in streams.values())


def other_traffic_of(result: TrialResult) -> OtherTraffic:
    """Return the foreign frames at both of the tester's ports, next to all offered frames."""
    offered = sum(stream.offered_frames for stream in streams_of(result).values())
    foreign = result.ports.initiator.foreign + result.ports.responder.foreign
    return OtherTraffic(foreign, offered, result.wall_ns / 1e9)


def delays_of(delay: DelayCounts) -> Delays | None:
    """Delays in seconds; None when no frame was timed."""
    if not delay.frames or delay.minimum_ns is None or delay.maximum_ns is None or delay.sum_ns is None:
        return None
    return Delays(
        frames=delay.frames,
        minimum=delay.minimum_ns / 1e9,
        maximum=delay.maximum_ns / 1e9,
        mean=delay.sum_ns / delay.frames / 1e9,
        negative=delay.negative,
        buckets=_buckets(delay.buckets),
        variation=_variation(delay.variation),
        due_in_stalls=delay.due_in_stalls,
    )


def _variation(counts: VariationCounts | None) -> Variation | None:
    if counts is None or not counts.pairs or counts.minimum_ns is None or counts.maximum_ns is None:
        return None
    return Variation(counts.pairs, counts.minimum_ns / 1e9, counts.maximum_ns / 1e9, _buckets(counts.buckets))


def _buckets(buckets: Sequence[tuple[int, int, int]]) -> tuple[tuple[float, float, int], ...]:
    return tuple((lower / 1e9, upper / 1e9, frames) for lower, upper, frames in buckets)


def delays_by_direction(result: TrialResult, together: int | None = None) -> dict[Direction, Delays]:
    """Return the delays of phase 2 by direction, or those of phase 1 when there was no phase 2.

    Args:
        together: frames that a stall can delay where the sender's core does the device's work: one batch, because
            nothing is sent during the stall. None = all frames due during the stall.
    """
    streams = phase2_streams(result) or {Direction.INITIATOR: phase1_of(result)}
    delays = {direction: delays_of(stream.delay) for direction, stream in streams.items() if stream.delay is not None}
    known = {direction: delays for direction, delays in delays.items() if delays is not None}
    if together is None:
        return known
    most = together * sum(cpu.stalls for cpu in result.cpus)
    return {
        direction: replace(delays, due_in_stalls=None if (due := delays.due_in_stalls) is None else min(due, most))
        for direction, delays in known.items()
    }


def is_disturbed(cpu: Cpu) -> bool:
    """Whether the CPU was taken away: the engine counts only stalls that are longer than the trial's bound."""
    return cpu.stalls > 0 or cpu.stolen_ns >= STOLEN_BOUND_NS


def lost_seconds(cpu: Cpu) -> float:
    """Return the CPU's seconds without work: the larger of its stalls and of what the hypervisor admits."""
    return max(cpu.stalled_ns, cpu.stolen_ns) / 1e9


def device_stalled_seconds(result: TrialResult) -> float:
    """Return the sum of the device's longest stalls since phase 2 began, in seconds."""
    stalls = [stall for cpu in result.cpus if cpu.role == "watched" for stall in cpu.longest_stalls]
    return sum(stall.to_ns - stall.from_ns for stall in stalls if stall.phase == "phase2") / 1e9
