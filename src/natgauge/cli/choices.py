# SPDX-License-Identifier: Apache-2.0
"""Options of the command line made of described choices, so a new choice needs no edit here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click

from natgauge.options import Option

_Function = Callable[..., Any]


def options(described: Iterable[Option]) -> Callable[[_Function], _Function]:
    """Add one option for each choice; what was not given stays None."""

    def decorate(function: _Function) -> _Function:
        for one in reversed(list(described)):
            function = _option(one)(function)
        return function

    return decorate


def only_in(option: Option, kinds: Iterable[str]) -> Option:
    """The same, with the kinds that have it in its help."""
    return option.with_help(f"{option.help} ({', '.join(kinds)})")


def _option(one: Option) -> Callable[[_Function], _Function]:
    name = f"--{one.name.replace('_', '-')}"
    text = f"{one.help}." + (f"  [default: {one.default}]" if one.default else "")
    if one.kind is bool:
        return click.option(name, one.name, is_flag=True, default=None, help=text)
    kind = click.Choice(one.words) if one.words else one.kind
    return click.option(name, one.name, type=kind, metavar=one.metavar or None, help=text)
