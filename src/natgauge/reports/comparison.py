# SPDX-License-Identifier: Apache-2.0
"""Results beside each other: how a gateway scales with its cores, and what is left of plain forwarding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

Document = Mapping[str, Any]

#: What two results must share to be compared, beside what the comparison is about.
_SHARED: Final = ("connections", "frame_size", "frame_side", "directions")


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


def rows(documents: Sequence[Document]) -> list[tuple[str, list[str]]]:
    """Rows of a table with one column per result; "-" where there is nothing to compare with."""
    cores = [_cores(document) for document in documents]
    return [
        ("device cores", [str(count) if count else "-" for count in cores]),
        ("relative scale-up", [_scale_up(document, documents) for document in documents]),
        ("percent of forwarding", [_of_forwarding(document, documents) for document in documents]),
    ]


def _cores(document: Document) -> int:
    return len(document["parameters"].get("device_cpus") or ())


def _scale_up(document: Document, documents: Sequence[Document]) -> str:
    def is_reference(other: Document) -> bool:
        return other["parameters"]["dut"] == document["parameters"]["dut"] and _cores(other) == 1

    cores, one = _cores(document), _reference(document, documents, is_reference)
    return f"{relative_scale_up(document['median'], cores, one):.3f}" if cores > 1 and one else "-"


def _of_forwarding(document: Document, documents: Sequence[Document]) -> str:
    def is_reference(other: Document) -> bool:
        return other["parameters"].get("kind") == "routing" and _cores(other) == _cores(document)

    forwarding = _reference(document, documents, is_reference)
    if not forwarding or document["parameters"].get("kind") == "routing":
        return "-"
    return f"{percent_of_forwarding(document['median'], forwarding):.1f}"


def _reference(
    document: Document, documents: Sequence[Document], is_reference: Callable[[Document], bool]
) -> float | None:
    """Median of the first result that this one can be compared with; None = there is none."""
    found = (other for other in documents if is_reference(other) and _conditions(other) == _conditions(document))
    return next((float(other["median"]) for other in found), None)


def _conditions(document: Document) -> tuple[object, ...]:
    parameters = document["parameters"]
    return (document["metric"], document["placement"], *(parameters.get(name) for name in _SHARED))
