# SPDX-License-Identifier: Apache-2.0
"""Metrics: one declaration each, a `Metric` in any module of this folder.

A metric is its declaration here and its procedure, of the same name, in `natgauge.procedures`; nothing else has to be
edited to add one. Whoever stores or shows a value asks the declaration, and does not know how the value is measured.
"""

from __future__ import annotations

import functools
import importlib
import operator
import pkgutil
from collections.abc import Mapping

from natgauge.metrics.metric import TESTER_RATES, DeclaredFigure, Metric


@functools.cache
def metrics() -> Mapping[str, Metric]:
    """Every metric by its name, in alphabetical order."""
    modules = (importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__))
    known = [value for module in modules for value in vars(module).values() if isinstance(value, Metric)]
    return {metric.name: metric for metric in sorted(known, key=operator.attrgetter("name"))}


def declared(name: str) -> Metric:
    """The metric of this name; one of which nothing is known where no module declares it.

    Args:
        name: name in a record, which may be of another version or made by somebody else.
    """
    return metrics().get(name) or Metric(name=name, unit="", summary="", source="", moved_by=TESTER_RATES)


def figures() -> Mapping[str, DeclaredFigure]:
    """Every declared figure by its name, those of one metric in their order."""
    return {figure.name: figure for metric in metrics().values() for figure in metric.figures}
