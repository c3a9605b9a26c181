# SPDX-License-Identifier: Apache-2.0
"""Settings of a metric from choices as users write them, and what a procedure finds with a measurer alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from natgauge.measurements.record import make
from natgauge.measurer import Measurer
from natgauge.procedures import get, procedures
from natgauge.procedures.kit.procedure import Procedure, make_settings
from natgauge.procedures.kit.results import MeasurementResult
from natgauge.procedures.kit.settings import DECIDED_ELSEWHERE
from natgauge.records.measurement import Result
from natgauge.records.parameters import Parameters


def settings_of(procedure: Procedure[Any], choices: Mapping[str, object], **decided: Any) -> Any:
    """Read the choices, and make the settings of them and of what traffic and lab decide."""
    return make_settings(procedure, procedure.taken(choices), **decided)


def metrics_with(setting: str) -> list[str]:
    """Names of the metrics that have this setting."""
    return sorted(name for name, one in procedures().items() if setting in {each.name for each in fields(one.settings)})


def settings_for(metric: str, **choices: Any) -> Any:
    """Settings of a metric by its name, of 1,000 connections and in `isolated` placement unless chosen."""
    decided = {"connections": 1000, "placement": "isolated", "order": "permutation"}
    decided |= {name: choices.pop(name) for name in (DECIDED_ELSEWHERE | {"transport"}) & set(choices)}
    decided.setdefault("four_tuples", decided["connections"])
    return settings_of(get(metric), choices, **decided)


def alone(
    metric: str, measurer: Measurer, *, clock: Callable[[], float] | None = None, **choices: Any
) -> MeasurementResult:
    """Measure once, of 1,000 connections unless chosen, what no lab has: a measurer's trials count as they are.

    `clock`: seconds that have passed; None = those of this machine, in which simulated trials take next to none.
    """
    placed = {"placement": getattr(measurer, "placement", "isolated")}
    timed: dict[str, Any] = {} if clock is None else {"clock": clock}
    return get(metric).measure(measurer, settings_for(metric, **{"repeat": 1, **placed, **choices}), **timed)


def stored_alone(metric: str, measurer: Measurer, *, around: Mapping[str, Any] | None = None, **choices: Any) -> Result:
    """The same as a result with its doubts, and with parameters of what is around a measurer by their names."""
    return make(alone(metric, measurer, **choices), Parameters.grouped(place=around or {}))
