# SPDX-License-Identifier: Apache-2.0
"""Options that are procedures' settings: made from their fields, so a new setting needs no edit here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import click

from natgauge import procedures
from natgauge.procedures.kit.procedure import Parameter
from natgauge.procedures.kit.settings import DECIDED_ELSEWHERE

#: Other ways to write an option.
_ALSO: Final = {"directions": ("--direction",), "frame_timeout_seconds": ("--frame-timeout",)}

_Function = Callable[..., Any]


def parameters() -> Iterator[tuple[Parameter, list[str]]]:
    """Every setting of any procedure once, with the metrics that have it."""
    found: dict[str, tuple[Parameter, list[str]]] = {}
    for metric, procedure in procedures.procedures().items():
        for parameter in procedure.parameters():
            if parameter.name not in DECIDED_ELSEWHERE:
                found.setdefault(parameter.name, (parameter, []))[1].append(metric)
    yield from found.values()


def names() -> list[str]:
    """Names of all these settings."""
    return [parameter.name for parameter, _ in parameters()]


def options(function: _Function) -> _Function:
    """Add one option for each setting; what was not given stays None."""
    for parameter, metrics in reversed(list(parameters())):
        option = f"--{parameter.name.replace('_', '-')}"
        function = click.option(
            option,
            *_ALSO.get(parameter.name, ()),
            parameter.name,
            type=parameter.read_as,
            metavar=None if "bool" in parameter.kind else _metavar(parameter),
            help=_help(parameter, metrics),
        )(function)
    return function


def _metavar(parameter: Parameter) -> str:
    return {"s": "SECONDS", "share": "SHARE"}.get(parameter.unit, "N" if parameter.kind == "int" else "VALUE")


def _help(parameter: Parameter, metrics: list[str]) -> str:
    text = parameter.help[:1].upper() + parameter.help[1:]
    if len(metrics) < len(procedures.procedures()):
        text += f" ({', '.join(metrics)})"
    return f"{text}." if parameter.default is None else f"{text}.  [default: {parameter.default}]"
