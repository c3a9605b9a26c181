# SPDX-License-Identifier: Apache-2.0
"""Find the parameters on which two results differ and that move the figure; results without any are comparable."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from natgauge.records.measurement import Result
from natgauge.records.parameters import OF_HOST, Parameters, describe, differing, shown


@dataclass(frozen=True, slots=True)
class Difference:
    """One parameter that two results do not share; None = a result has no such value.

    Attributes:
        name: name of the parameter; "metric" or "unit" where the results differ in these.
        label: name for people, with its unit.
        first: value of the first result.
        second: value of the second result.
    """

    name: str
    label: str
    first: JsonValue
    second: JsonValue

    def __str__(self) -> str:
        """Return, for example, "trial seconds 2 against 60"; for tables only the entries that differ."""
        first, second = self.first, self.second
        if isinstance(first, dict) and isinstance(second, dict):
            names = [name for name in {**first, **second} if first.get(name) != second.get(name)]
            first, second = ({name: table.get(name) for name in names} for table in (first, second))
        return f"{self.label} {shown(first)} against {shown(second)}"


def comparable(first: Result, second: Result, *, except_for: Collection[str] = ()) -> list[Difference]:
    """Return the differences that forbid a comparison of two results; empty where they are comparable.

    Args:
        first: the first result.
        second: the second result.
        except_for: names of parameters, or of whole groups, that may differ.
    """
    differences = [
        Difference(name, name, mine, its)
        for name, mine, its in (("metric", first.metric, second.metric), ("unit", first.unit, second.unit))
        if mine != its
    ]
    return differences + different_parameters(first.parameters, second.parameters, first.metric, except_for=except_for)


def is_of_gateway(name: str, every: Sequence[Parameters]) -> bool:
    """Whether a parameter may differ where only the gateways do.

    It may not where repetitions differ in it, nor where it is a setting of a machine that had several values before.
    """
    before = [value for parameters in every if (value := of_host(name, parameters)) is not None]
    is_mixed = any(differing(parameters.get(name)) for parameters in every)
    return not is_mixed and all(value == before[0] for value in before)


def of_host(name: str, parameters: Parameters) -> JsonValue:
    """Return the value that a setting of the whole machine had before; None = the user chose it, or it is none."""
    found = parameters.get(OF_HOST)
    return found.get(name) if isinstance(found, dict) else None


def different_parameters(
    first: Parameters, second: Parameters, metric: str, *, except_for: Collection[str] = ()
) -> list[Difference]:
    """Return the parameters that move a figure of this metric and that two results do not share; see `comparable`."""
    differences = []
    mine, its = first.flat(), second.flat()
    groups = {name: group for parameters in (first, second) for group, name, _ in parameters.items()}
    for name, group in groups.items():
        described = describe(name)
        is_excepted = group in except_for and is_of_gateway(name, (first, second))
        if name in except_for or is_excepted or not described.moves_figure_of(metric):
            continue
        # A series of several devices or machines is like nothing, not even like another such series.
        if mine.get(name) != its.get(name) or differing(mine.get(name)):
            differences.append(Difference(name, described.heading, mine.get(name), its.get(name)))
    return differences
