# SPDX-License-Identifier: Apache-2.0
"""Results beside each other: how a gateway scales with its cores, and what is left of plain forwarding."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from natgauge.results.comparing import Difference, comparable
from natgauge.results.model import Result

#: What a scale-up is about; a device on the senders' cores has as many as they have.
_CORES: Final = frozenset({"device_cores", "cores"})
_CORES_SHARED: Final = _CORES | {"sender_cores"}
#: What the share of forwarding is about: all that belongs to the device.
_DEVICE: Final = frozenset({"device"})


@dataclass(frozen=True, slots=True)
class Comparison:
    """What comparing one result with the others came to.

    Attributes:
        value: None where there is nothing to compare with.
        reference: what it was compared with.
        doubt: why there is none although a result of that kind is there; empty where there is no such reason.
    """

    value: float | None = None
    reference: Result | None = None
    doubt: str = ""


def relative_scale_up(performance: float, cores: int, one_core: float) -> float:
    """S(n) = P(n) / (n * P(1)): 1 when n cores do n times as much as one (RFC 9693 section 5.2).

    Args:
        performance: P(n), a rate.
        cores: n, at least 1.
        one_core: P(1), > 0, in the same unit.
    """
    return performance / (cores * one_core)


def percent_of_forwarding(performance: float, forwarding: float) -> float:
    """What a gateway leaves of the rate at which the same machine merely forwards, > 0, in percent."""
    return 100 * performance / forwarding


def scale_up(result: Result, results: Sequence[Result]) -> Comparison:
    """The relative scale-up against the same device on one core."""
    cores = result.device_cores
    if cores < 2 or not _is_rate(result):
        return Comparison()

    def is_reference(other: Result) -> bool:
        return other.dut == result.dut and other.device_cores == 1

    about = _CORES_SHARED if result.placement == "shared" else _CORES
    return _compare(result, results, is_reference, about, lambda one: relative_scale_up(result.median, cores, one))


def of_forwarding(result: Result, results: Sequence[Result]) -> Comparison:
    """The share of plain forwarding, in percent."""
    if _routes(result) or not _is_rate(result):
        return Comparison()
    return _compare(result, results, _routes, _DEVICE, lambda most: percent_of_forwarding(result.median, most))


def _routes(result: Result) -> bool:
    return result.parameters.device.get("kind") == "routing"


def _is_rate(result: Result) -> bool:
    return result.unit.endswith("/s")


def _compare(
    result: Result,
    results: Sequence[Result],
    is_reference: Callable[[Result], bool],
    about: Collection[str],
    compute: Callable[[float], float],
) -> Comparison:
    """Hold a result against the first one it is comparable with; where none is, the nearest says why."""
    candidates = [
        (number, other, comparable(result, other, except_for=about))
        for number, other in enumerate(results, start=1)
        if other is not result and other.metric == result.metric and is_reference(other)
    ]
    if not candidates:
        return Comparison()
    number, other, differences = min(candidates, key=lambda candidate: len(candidate[2]))
    if not differences and other.median > 0:
        return Comparison(compute(other.median), other)
    why = _told(differences) if differences else "its median is 0"
    return Comparison(doubt=f"not compared with column {number}, {other.dut}: {why}")


def _told(differences: Sequence[Difference]) -> str:
    return "; ".join(map(str, differences))
