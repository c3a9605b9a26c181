# SPDX-License-Identifier: Apache-2.0
"""The options by which scheduler, worker and `run` prove to each other who they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from natgauge.cli.say import say

Command = TypeVar("Command", bound=Callable[..., Any])


def access_options(command: Command) -> Command:
    """Add `--certificates` and `--insecure`."""
    for option in (
        click.option(
            "--insecure",
            is_flag=True,
            help="Go without certificates: whoever reaches the scheduler or a worker can run programs as root there.",
        ),
        click.option(
            "--certificates",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Folder made by `natgauge certificates`.  [default: what Dask's configuration names]",
        ),
    ):
        command = option(command)
    return command


def warn(*, insecure: bool) -> None:
    """Print what going without certificates means."""
    if insecure:
        say(
            "natgauge: WARNING: --insecure: without certificates every user and program, on any machine, that reaches "
            "the scheduler or a worker can run programs as root on all of these machines",
            err=True,
        )
