# SPDX-License-Identifier: Apache-2.0
"""Options of subcommands, made of the descriptions of inputs: a new input needs no edit here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import click
import cloup
from click.shell_completion import CompletionItem

from natgauge.cli.names import GATEWAY, KIND, LAB, known_names
from natgauge.errors import about
from natgauge.inputs import measuring_types
from natgauge.inputs.input import Flag, Input, InputType, Share, spoken


class ValueType(click.ParamType[Any]):
    """The type of an option whose value is read as inputs of a type are, such as a list of cores."""

    name = "value"

    def __init__(self, of: InputType) -> None:
        self._of = of

    def convert(self, value: Any, param: click.Parameter | None, _ctx: click.Context | None) -> Any:
        """Read a text; what the option is for checks its value."""
        name = "" if param is None else str(param.name)
        with about(name):
            return self._of.read(spoken(name), value) if isinstance(value, str) else value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The words that fit, or the names that are known."""
        if self._of.names is not None:
            return {"labs": LAB, "kinds": KIND}[self._of.names].shell_complete(ctx, param, incomplete)
        return known_names(lambda: self._of.words, incomplete)


CORES: Final = ValueType(measuring_types.CoreList())
SHARE: Final = ValueType(Share())


def option(described: Input) -> cloup.Option:
    """The option of an input; its value is None where it was not given."""
    default = f"  [default: {described.default_shown}]" if described.default_shown else ""
    help_text = f"{described.sentence}.{default}"
    if isinstance(described.type, Flag):
        # A flag that is on by default has a second switch, which turns it off.
        both = f"{described.option}/{described.option_off}"
        names = [both if described.default else described.option, described.name]
        return cloup.Option(names, is_flag=True, default=None, help=help_text)
    return cloup.Option(
        [described.option, *described.also, described.name],
        type=ValueType(described.type),
        metavar=described.type.metavar,
        help=help_text,
    )


def grouped(sections: Mapping[str, Iterable[click.Option]]) -> list[click.Parameter]:
    """The options of a command under their headings, in order."""
    parameters: list[click.Parameter] = []
    for title, options in sections.items():
        group = cloup.OptionGroup(title)
        for each in options:
            each.group = group  # type: ignore[attr-defined] # an attribute that cloup gives its options
            parameters.append(each)
    return parameters


def gateway_option() -> cloup.Option:
    """Return the option for the gateway that is measured."""
    return cloup.Option(
        ["--gateway"],
        required=True,
        type=GATEWAY,
        metavar="NAME",
        help="Gateway (see `natgauge gateways`), or the path of a recipe.",
    )


def results_option() -> cloup.Option:
    """Return the option for the folder of results."""
    return cloup.Option(
        ["--results"],
        type=click.Path(path_type=Path),
        default=Path("results"),
        show_default=True,
        help="Folder for results.",
    )


def json_option() -> cloup.Option:
    """Return the option for one JSON object instead of text."""
    return cloup.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object on standard output.")


def verbose_option() -> cloup.Option:
    """Return the option for every trial, note and doubt."""
    return cloup.Option(["-v", "--verbose"], is_flag=True, help="Print every trial, and all notes and doubts in full.")
