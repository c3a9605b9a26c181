# SPDX-License-Identifier: Apache-2.0
"""How a procedure presents itself: its metric, its settings and the function that measures."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from natgauge.measurer import Measurer
from natgauge.procedures.progress import Observer
from natgauge.procedures.results import MeasurementResult
from natgauge.procedures.settings import TrialSettings

SettingsT = TypeVar("SettingsT", bound=TrialSettings)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One setting as the user sees it; `default` is None and `required` True where one must be given."""

    name: str
    kind: str
    help: str
    unit: str
    default: Any
    required: bool


@dataclass(frozen=True, slots=True)
class Procedure(Generic[SettingsT]):
    """A measurement that can be asked for by name. A module of this package that has a `PROCEDURE` adds one.

    Attributes:
        metric: its name, as on the command line.
        unit: of its values.
        summary: one line.
        source: where the standards define it.
        settings: what it can be told.
        run: measures: `run(measurer, settings, observe)`. Raises NatgaugeError when a trial cannot be run at all.
    """

    metric: str
    unit: str
    summary: str
    source: str
    settings: type[SettingsT]
    run: Callable[[Measurer, SettingsT, Observer], MeasurementResult]

    def parameters(self) -> tuple[Parameter, ...]:
        """Every setting, in order."""
        return tuple(_parameter(item) for item in dataclasses.fields(self.settings))


def _parameter(item: dataclasses.Field[Any]) -> Parameter:
    required = item.default is dataclasses.MISSING
    return Parameter(
        name=item.name,
        kind=str(item.type),
        help=item.metadata.get("help", ""),
        unit=item.metadata.get("unit", ""),
        default=None if required else item.default,
        required=required,
    )
