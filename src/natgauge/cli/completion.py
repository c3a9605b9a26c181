# SPDX-License-Identifier: Apache-2.0
"""`natgauge completion`: the script that completes commands, options and names at the shell's TAB key.

The shell's script asks natgauge itself, by the variable _NATGAUGE_COMPLETE; click answers with what the types of
parameters complete.
"""

from __future__ import annotations

import click
import cloup
from click.shell_completion import get_completion_class

from natgauge.cli.names import COMPLETING
from natgauge.cli.say import say


@cloup.command("completion", short_help="Print the completion script of a shell.")
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
    say(complete(context.find_root().command, {}, "natgauge", COMPLETING).source())
