# SPDX-License-Identifier: Apache-2.0
"""Facts that follow from the engine's raw integers: streams of a result, and what was taken away from CPUs."""

from __future__ import annotations

from collections.abc import Mapping

from natgauge.agreement.generated import Cpu, StreamCounts, TrialResult
from natgauge.trials import Direction, phase2_of

#: Stolen time is read from /proc/stat, whose grain is 10 ms: one tick is the least that can be seen.
STOLEN_BOUND_NS = 10_000_000


def streams_of(result: TrialResult) -> dict[Direction | None, StreamCounts]:
    """Return the engine's counts of phase 1 (key None) and of each active direction of phase 2."""
    phase1: dict[Direction | None, StreamCounts] = {} if result.phase1 is None else {None: result.phase1}
    return phase1 | dict(phase2_of(result).items())


def arrived_in_all(streams: Mapping[Direction | None, StreamCounts]) -> int:
    """Return the number of frames of all streams that arrived, also with wrong content."""
    return sum(stream.arrived for stream in streams.values())


def is_disturbed(cpu: Cpu) -> bool:
    """Whether the CPU was taken away: the engine counts only stalls that are longer than the trial's bound."""
    return cpu.stalls > 0 or cpu.stolen_ns >= STOLEN_BOUND_NS


def lost_seconds(cpu: Cpu) -> float:
    """Return the CPU's seconds without work: the larger of its stalls and of what the hypervisor admits."""
    return max(cpu.stalled_ns, cpu.stolen_ns) / 1e9
