# SPDX-License-Identifier: Apache-2.0
"""Parameters of subcommands: types of names with shell completion, and options made of the descriptions of inputs.

A new input needs no edit here. The script of `natgauge completion` asks natgauge itself, by the variable `COMPLETING`;
click answers with what the types of parameters complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Final

import click
import cloup
from click.shell_completion import CompletionItem, get_completion_class

from natgauge.cli.say import say
from natgauge.errors import NatgaugeError, UsageError, about, did_you_mean
from natgauge.inputs import measuring_types
from natgauge.inputs.input import Flag, Input, InputType, Share, spoken

#: Variable by which a shell asks for completions.
COMPLETING: Final = "_NATGAUGE_COMPLETE"


def _labs() -> Iterable[str]:
    from natgauge import cleaning

    return [lab.name for lab in cleaning.status()]


def _against() -> Iterable[str]:
    from natgauge.records.parameters import descriptions

    moving = (name for name, parameter in descriptions().items() if parameter.moves_figures)
    return ["cores", "gateway", "metrics", *(name.replace("_", "-") for name in moving)]


def _known_names(known: Callable[[], Iterable[str]], incomplete: str) -> list[CompletionItem]:
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
        return _known_names(self._list, incomplete)

    def knows(self, name: str) -> bool:
        """Whether it is one of the known names, as far as they can be listed."""
        return any(item.value == name for item in _known_names(self._list, name))

    def _list(self) -> Iterable[str]:
        known = resolve_name(self._known) if isinstance(self._known, str) else self._known
        return list(known())


class Commands(cloup.Group):
    """A group that says of an unknown command which one was meant: a name may be the argument of one of them."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of the first word."""
        name, path = args[0], ctx.command_path
        if self.get_command(ctx, name) is None and not ctx.resilient_parsing:
            known = self.list_commands(ctx)
            taking = next((each for each in known if _takes(self.get_command(ctx, each), name)), "")
            mend = f"write {path} {taking} {name}" if taking else did_you_mean(name, known)
            group = f"{ctx.info_name}: " if ctx.parent else ""
            raise UsageError(f"{group}there is no command {name}; {mend}")
        return super().resolve_command(ctx, args)


def _takes(command: click.Command | None, word: str) -> bool:
    """Whether the word is what the command requires: one known name, or one file that is there."""
    required = [each for each in (command.params if command else ()) if each.param_type_name == "argument"]
    if len(required) != 1 or not required[0].required or required[0].nargs != 1:
        return False
    wanted = required[0].type
    return wanted.knows(word) if isinstance(wanted, Names) else isinstance(wanted, click.Path) and Path(word).is_file()


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
_KIND: Final = Names("natgauge.labs.kinds:kinds")
PUBLISHED: Final = Names("natgauge.published.model:names")
AGAINST: Final = Names(_against)


@cloup.command("completion", short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion_command(context: click.Context, shell: str) -> None:
    """Print the script that makes SHELL complete natgauge's commands, options and names.

    bash: natgauge completion bash > ~/.local/share/bash-completion/completions/natgauge

    zsh: natgauge completion zsh > a file named _natgauge in a folder of $fpath

    fish: natgauge completion fish > ~/.config/fish/completions/natgauge.fish
    """
    complete = get_completion_class(shell)
    if complete is None:
        raise click.UsageError(f"click {click.__version__} knows no completion for {shell}; update it")
    say(complete(context.find_root().command, {}, "natgauge", COMPLETING).source())


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
            return {"labs": LAB, "kinds": _KIND}[self._of.names].shell_complete(ctx, param, incomplete)
        return _known_names(lambda: self._of.words, incomplete)


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
