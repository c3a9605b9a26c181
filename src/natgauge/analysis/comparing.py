# SPDX-License-Identifier: Apache-2.0
"""Which results may be held against each other: those that differ in nothing that moves the figure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pydantic import JsonValue

from natgauge.records.measurement import Result
from natgauge.records.parameters import Parameters, describe, differing, shown


@dataclass(frozen=True, slots=True)
class Difference:
    """One parameter that two results do not share; None = a result has no such value.

    Attributes:
        name: of the parameter; "metric" or "unit" where not even these agree.
        label: as people say it, with its unit.
        first: value of the first result.
        second: value of the second one.
    """

    name: str
    label: str
    first: JsonValue
    second: JsonValue

    def __str__(self) -> str:
        """As in "trial seconds 2 against 60"; of tables only what differs."""
        first, second = self.first, self.second
        if isinstance(first, dict) and isinstance(second, dict):
            names = [name for name in {**first, **second} if first.get(name) != second.get(name)]
            first, second = ({name: one.get(name) for name in names} for one in (first, second))
        return f"{self.label} {shown(first)} against {shown(second)}"


def comparable(first: Result, second: Result, *, except_for: Collection[str] = ()) -> list[Difference]:
    """What keeps two results from being held against each other; empty when nothing does.

    Args:
        first: one result.
        second: another one.
        except_for: names of parameters, or of whole groups, that the comparison is about.
    """
    found = [
        Difference(name, name, mine, its)
        for name, mine, its in (("metric", first.metric, second.metric), ("unit", first.unit, second.unit))
        if mine != its
    ]
    return found + different_parameters(first.parameters, second.parameters, first.metric, except_for=except_for)


def different_parameters(
    first: Parameters, second: Parameters, metric: str, *, except_for: Collection[str] = ()
) -> list[Difference]:
    """Return the parameters that move a figure of this metric and that two results do not share.

    Args:
        first: parameters of one result.
        second: those of another one.
        metric: of both.
        except_for: names of parameters, or of whole groups, that the comparison is about.
    """
    found = []
    mine, its = first.flat(), second.flat()
    groups = {name: group for parameters in (first, second) for group, name, _ in parameters.items()}
    for name, group in groups.items():
        described = describe(name)
        if name in except_for or group in except_for or not described.moves_figure_of(metric):
            continue
        # A series of several devices or machines is like nothing, not even like another such series.
        if mine.get(name) != its.get(name) or differing(mine.get(name)):
            found.append(Difference(name, described.heading, mine.get(name), its.get(name)))
    return found
