# SPDX-License-Identifier: Apache-2.0
"""Procedures: which trials answer one question. Each knows a measurer only, no lab, no device, no engine.

Each module in this folder has a `PROCEDURE` of the metric of the same name, which `natgauge.metrics` declares; nothing
else has to be edited to add one. What procedures are made of is in `kit`.
"""

from __future__ import annotations

import functools
import importlib
import operator
import pkgutil
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from natgauge.errors import UsageError

if TYPE_CHECKING:
    from natgauge.procedures.kit.procedure import Procedure


@functools.cache
def procedures() -> Mapping[str, Procedure[Any]]:
    """Every procedure by its metric's name, in alphabetical order."""
    modules = (importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__))
    known: list[Procedure[Any]] = [module.PROCEDURE for module in modules if hasattr(module, "PROCEDURE")]
    return {procedure.metric: procedure for procedure in sorted(known, key=operator.attrgetter("metric"))}


def get(metric: str) -> Procedure[Any]:
    """The procedure that measures this metric."""
    procedure = procedures().get(metric)
    if procedure is None:
        raise UsageError(f"metric: {metric!r} is unknown; choose one of {', '.join(procedures())}")
    return procedure
