# SPDX-License-Identifier: Apache-2.0
"""`natgauge completion`: the script that completes commands, options and names at the shell's TAB key.

The shell's script asks natgauge itself, by the variable _NATGAUGE_COMPLETE; click answers, with the names known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import click
from click.shell_completion import CompletionItem, get_completion_class

_VARIABLE: Final = "_NATGAUGE_COMPLETE"


def _gateways() -> Iterable[str]:
    from natgauge.duts.recipe import available

    return available()


def _metrics() -> Iterable[str]:
    from natgauge.procedures import procedures

    return procedures()


def _labs() -> Iterable[str]:
    from natgauge.labs import upkeep

    return [lab.name for lab in upkeep.status()]


def _published() -> Iterable[str]:
    from natgauge.published.load import names

    return names()


#: Command and parameter -> names that it takes.
_KNOWN: Final = {
    ("measure", "metric"): _metrics,
    ("measure", "dut"): _gateways,
    ("compare", "gateways"): _gateways,
    ("measure", "lab_name"): _labs,
    ("duts show", "name"): _gateways,
    ("plan new", "duts"): _gateways,
    ("plan new", "metrics"): _metrics,
    ("lab up", "dut"): _gateways,
    ("published", "names"): _published,
    ("report", "published"): _published,
    ("lab down", "name"): _labs,
}


class Names(click.types.StringParamType):
    """Text like any other, of which some is known beforehand."""

    def __init__(self, known: Callable[[], Iterable[str]]) -> None:
        """Take what lists the known names; it is asked when a shell wants them."""
        self._known = known

    def shell_complete(self, _ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The known names that begin like this; files where a gateway's name looks like a recipe's path."""
        from natgauge.errors import NatgaugeError

        if self._known is _gateways and "/" in incomplete:
            return [CompletionItem(incomplete, type="file")]
        try:
            return [CompletionItem(name) for name in self._known() if name.startswith(incomplete)]
        except (NatgaugeError, OSError):
            # At the TAB key there is no place for a message; the command itself will tell.
            return []


def teach(command: click.Command, path: str) -> click.Command:
    """Let a command's parameters, and those of all below it, complete the names they take.

    Args:
        command: it is changed and handed back.
        path: its name behind `natgauge`, e.g. "lab down".
    """
    for parameter in command.params:
        known = _KNOWN.get((path, parameter.name or ""))
        if known is not None:
            parameter.type = Names(known)
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            teach(below, f"{path} {name}")
    return command


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script that makes SHELL complete natgauge's commands, options and names.

    bash: natgauge completion bash > ~/.local/share/bash-completion/completions/natgauge

    zsh: natgauge completion zsh > a file named _natgauge in a folder of $fpath

    fish: natgauge completion fish > ~/.config/fish/completions/natgauge.fish
    """
    complete = get_completion_class(shell)
    if complete is None:
        raise click.UsageError(f"click {click.__version__} knows no completion for {shell}; update it")
    click.echo(complete(context.find_root().command, {}, "natgauge", _VARIABLE).source())
