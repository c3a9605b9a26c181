# SPDX-License-Identifier: Apache-2.0
"""Measurement series among results: a column for each value of a parameter, a block for each set of other values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from pydantic import JsonValue

from natgauge.analysis.comparing import comparable
from natgauge.analysis.scalability import AXES
from natgauge.errors import UsageError
from natgauge.records.measurement import Result
from natgauge.records.parameters import describe, is_fact, shown
from natgauge.reports.rows import whole

#: Parameters that have a shorter name on the command line.
_SHORT: Final[Mapping[str, str]] = {"cores": "device_cores"}
#: The number of cores; 0 where nobody knows it.
_CORES: Final = "device_cores"
#: Words for a value of these parameters; other values follow the parameter's label.
_IN_WORDS: Final[Mapping[str, str]] = {"device_cores": "{} cores", "connections": "{} connections", "gateway": "{}"}


@dataclass(frozen=True, slots=True)
class SeriesBlock:
    """Results of one metric and one device that differ in the parameter of the columns.

    Attributes:
        others: values that distinguish the block from others of this metric and device, by name of the parameter.
    """

    metric: str
    gateway: str
    others: Mapping[str, JsonValue]
    at: Mapping[str, int]

    @property
    def name(self) -> str:
        """Metric, device and distinguishing values, as text."""
        of = f" of {self.gateway}" if self.gateway else ""
        return ", ".join([f"{self.metric}{of}", *(in_words(name, value) for name, value in self.others.items())])


def parameter_of(against: str, results: Sequence[Result]) -> str:
    """Return the name of the parameter that the user named as on the command line, such as "cores" or "frame-size"."""
    name = _SHORT.get(against, against.replace("-", "_"))
    for result in results:
        if name == _CORES and not result.device_cores:
            raise UsageError(
                f"report: --against {against}: nobody knows how many a result of {result.metric} of "
                f"{result.gateway} had; leave it out"
            )
    if all(result.parameter(name) is None for result in results):
        differing = ", ".join(_differing(results)) or "no parameter that moves a figure"
        raise UsageError(
            f"report: --against {against}: no result has such a parameter; name one in which the results differ "
            f"({differing}), or metrics"
        )
    return name


def columns_of(name: str, results: Sequence[Result]) -> list[str]:
    """Return the texts of a parameter's values, each once: numbers in rising order, then others as they appear."""
    values = {text_of(result.parameter(name)): result.parameter(name) for result in results}
    return sorted(values, key=lambda text: _place(values[text]))


def blocks_of(name: str, against: str, results: Sequence[Result]) -> list[SeriesBlock]:
    """Return the blocks of results, in the order of their first results.

    Where two results of a metric and a device have the same value, a parameter in which they differ makes a block for
    each of its values: first the number of cores, connections and hosts.
    """
    subjects: dict[tuple[str, str], list[int]] = {}
    for at, result in enumerate(results):
        subjects.setdefault((result.metric, "" if name == "gateway" else result.gateway), []).append(at)
    blocks = []
    for (metric, gateway), every in subjects.items():
        names = _distinguishing(name, against, [results[at] for at in every])
        by_block: dict[tuple[str, ...], dict[str, int]] = {}
        for at in every:
            key = tuple(text_of(results[at].parameter(other)) for other in names)
            by_block.setdefault(key, {})[text_of(results[at].parameter(name))] = at
        for at_column in by_block.values():
            first = results[next(iter(at_column.values()))]
            blocks.append(SeriesBlock(metric, gateway, {other: first.parameter(other) for other in names}, at_column))
    return blocks


def text_of(value: JsonValue) -> str:
    """Return a parameter's value as the heading of a column."""
    return whole(value) if isinstance(value, int) and not isinstance(value, bool) else shown(value)


def in_words(name: str, value: JsonValue) -> str:
    """Return a parameter's value with what it is, such as "2 cores" or "directions up"."""
    text = text_of(value)
    if name in _IN_WORDS and value is not None:
        return _IN_WORDS[name].removesuffix("s" if value == 1 else "").format(text)
    described = describe(name)
    # A share has no unit.
    unit = "" if value is None or described.unit == "share" else described.unit
    return f"{described.label} {text} {unit}".rstrip()


def _distinguishing(name: str, against: str, results: Sequence[Result]) -> list[str]:
    """Names of the parameters that keep results with the same value of `name` apart."""
    names: list[str] = []
    for first, second in combinations(results, 2):
        if any(first.parameter(each) != second.parameter(each) for each in (name, *names)):
            continue
        differing_names = [difference.name for difference in comparable(first, second)]
        if not differing_names:
            raise UsageError(
                f"report: --against {against}: two results of {first.metric} of {first.gateway} have "
                f"{in_words(name, first.parameter(name))} and differ in no parameter that moves the figure; name "
                "folders of one measurement series, or leave out --against"
            )
        axes = [axis.parameter for axis in AXES]
        names.append(min(differing_names, key=lambda each: (each not in axes, is_fact(each))))
    return names


def _differing(results: Sequence[Result]) -> list[str]:
    """Names of the parameters in which results of one metric and device differ, as on the command line."""
    texts = dict.fromkeys(
        difference.name
        for first, second in combinations(results, 2)
        if (first.metric, first.gateway) == (second.metric, second.gateway)
        for difference in comparable(first, second)
        if not is_fact(difference.name) or difference.name in _SHORT.values()
    )
    short = {name: word for word, name in _SHORT.items()}
    return [short.get(name, name.replace("_", "-")) for name in texts]


def _place(value: JsonValue) -> tuple[int, float]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return 0, float(value)
    return (2, 0.0) if value is None else (1, 0.0)
