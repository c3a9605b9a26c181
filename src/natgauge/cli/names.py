# SPDX-License-Identifier: Apache-2.0
"""Parameter types for names, with shell completion of the known names, and `natgauge completion`, its script.

The shell's script asks natgauge itself, by the variable `COMPLETING`; click answers with what the types of parameters
complete. Each start of natgauge loads this module, so it imports little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Final

import click
import cloup
from click.shell_completion import CompletionItem, get_completion_class

from natgauge.cli.say import say
from natgauge.errors import NatgaugeError, UsageError, did_you_mean

#: Variable by which a shell asks for completions.
COMPLETING: Final = "_NATGAUGE_COMPLETE"


def _labs() -> Iterable[str]:
    from natgauge import cleaning

    return [lab.name for lab in cleaning.status()]


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
        return known_names(self._list, incomplete)

    def knows(self, name: str) -> bool:
        """Whether it is one of the known names, as far as they can be listed."""
        return any(item.value == name for item in known_names(self._list, name))

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
KIND: Final = Names("natgauge.labs.kinds:kinds")
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
