# SPDX-License-Identifier: Apache-2.0
"""Parameter types for names, with shell completion of the known names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pkgutil import resolve_name
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from natgauge.errors import NatgaugeError


def _labs() -> Iterable[str]:
    from natgauge.cleaning import cleanup

    return [lab.name for lab in cleanup.status()]


def _against() -> Iterable[str]:
    from natgauge.records.parameters import descriptions

    moving = (name for name, parameter in descriptions().items() if parameter.moves_figures)
    return ["cores", "gateway", "metrics", *(name.replace("_", "-") for name in moving)]


def known_names(known: Callable[[], Iterable[str]], incomplete: str) -> list[CompletionItem]:
    """The known names that begin with what was typed; none where they cannot be listed."""
    try:
        return [CompletionItem(name) for name in known() if name.startswith(incomplete)]
    except (NatgaugeError, OSError):
        # A shell that completes has no place for a message; the command itself will report it.
        return []


class Names(click.types.StringParamType):
    """A text, with a list of known names for completion."""

    def __init__(self, known: Callable[[], Iterable[str]] | str, *, paths: bool = False) -> None:
        """Take the function that lists the names, or its place, which is imported when a shell completes."""
        self._known, self._paths = known, paths

    def shell_complete(self, _ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The known names that fit; files where the text looks like a path."""
        if self._paths and "/" in incomplete:
            return [CompletionItem(incomplete, type="file")]
        return known_names(resolve_name(self._known) if isinstance(self._known, str) else self._known, incomplete)


class WholeRange(click.IntRange):
    """A whole number within a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read a number; a refusal names the value, the range and the way to write it."""
        try:
            return int(super().convert(value, param, ctx))
        except click.BadParameter:
            upto = f"{self.min} to {self.max}" if self.max is not None else f"{self.min} or more"
            self.fail(f"{value!r} is no whole number of {upto}", param, ctx)


GATEWAY: Final = Names("natgauge.gateways.recipe:available", paths=True)
METRIC: Final = Names("natgauge.procedures:procedures")
LAB: Final = Names(_labs)
PUBLISHED: Final = Names("natgauge.published.load:names")
AGAINST: Final = Names(_against)
