# SPDX-License-Identifier: Apache-2.0
"""The command line: one file per subcommand, which reads arguments, calls the rest of natgauge and prints.

Errors are one line on standard error. The exit statuses are in `say.py`; in every case all that was made has
been undone, or the line says what is left.
"""

from __future__ import annotations

import fcntl
import importlib
import io
import os
import select
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, Final

import click
import cloup

from natgauge.cli.names import COMPLETING, Commands
from natgauge.cli.say import epilog, say
from natgauge.errors import EndedBySignal, NatgaugeError, fault, shortened
from natgauge.interruption import SIGNALS

#: Heading of the help -> subcommands, each the function `command` in the module of the same name, unless `_PLACES` has
#: another place.
SECTIONS: Final = {
    "Measure": ("measure", "compare", "audit", "plan", "run", "status"),
    "Several machines": ("certificates", "scheduler", "worker"),
    "Results": ("report", "diff", "explain", "size", "published"),
    "Host": ("doctor", "probe", "selftest", "host", "lab"),
    "Learn": ("demo", "gateways", "completion"),
}
SUBCOMMANDS: Final = tuple(name for names in SECTIONS.values() for name in names)
#: Module and function of the others.
_PLACES: Final = {
    "run": ("campaign", "command"),
    "completion": ("names", "completion_command"),
    **{name: ("several_machines", f"{name}_command") for name in SECTIONS["Several machines"]},
}
#: Arguments whose answer needs no folder.
_HELP: Final = frozenset({"-h", "--help", "--version"})


class _PipeBrokeError(Exception):
    """Nobody reads a pipe: that of an output, or of a machine or a process that natgauge writes to."""

    def __init__(self, broken: BrokenPipeError) -> None:
        super().__init__(str(broken))
        self.broken = broken


@contextmanager
def _past_click() -> Iterator[None]:
    """Carry a broken pipe past click, which would end with the status 1 and say nothing."""
    try:
        yield
    except BrokenPipeError as error:
        raise _PipeBrokeError(error) from error


class _Subcommands(Commands):
    """Imports a subcommand when it is called for, so that `--help` and wrong arguments are answered at once."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(SUBCOMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUBCOMMANDS:
            return None
        module, name = _PLACES.get(cmd_name, (cmd_name, "command"))
        command = getattr(importlib.import_module(f"natgauge.cli.{module}"), name)
        return command if isinstance(command, click.Command) else None

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        with _past_click():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _past_click():
            return super().invoke(ctx)

    def list_sections(self, ctx: click.Context, include_default_section: bool = True) -> list[cloup.Section]:
        del include_default_section
        return [
            cloup.Section(title, {name: each for name in names if (each := self.get_command(ctx, name)) is not None})
            for title, names in SECTIONS.items()
        ]


def _width_of_help() -> int:
    """Return the most characters of a line of help: those of the terminal, within what can be read."""
    return min(max(shutil.get_terminal_size((80, 0)).columns - 1, 40), 110)


def _show_version(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from natgauge.version import exact_version

        say(f"natgauge {exact_version()}")
        ctx.exit()


@cloup.group(
    cls=_Subcommands,
    context_settings=cloup.Context.settings(
        help_option_names=["-h", "--help"],
        align_option_groups=False,
        formatter_settings=cloup.HelpFormatter.settings(width=_width_of_help(), col1_max_width=26),
    ),
    epilog=epilog("", "natgauge demo", "natgauge measure connection-rate --gateway nftables-nat44"),
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)
def app() -> None:
    """Measure NAT gateways the way RFC 9693 and RFC 8219 prescribe."""


def _raise_on_signal(number: int, _frame: FrameType | None) -> None:
    """The first signal begins the undoing, a second one must not break that off half way, a third one may."""
    _handle(_warn_on_signal)
    raise EndedBySignal(number)


def _warn_on_signal(_number: int, _frame: FrameType | None) -> None:
    _handle(signal.SIG_DFL)
    # A closed terminal sends a signal and cannot be written to; the signal may have come while a line was written.
    with suppress(OSError, ValueError, RuntimeError):
        say("natgauge: undoing what was made; once more ends at once (then run `natgauge lab clean`)", err=True)


def _handle(handler: Callable[[int, FrameType | None], object] | signal.Handlers) -> None:
    """Set what the next signal does; one that is ignored (nohup) stays so."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _open_streams() -> None:
    """Open /dev/null where standard input, output or error is closed: files opened later would take their places."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # Open until the process ends.
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        # As standard error does, it writes what its encoding does not have as escapes.
        sys.stdout.reconfigure(errors="backslashreplace")


def main() -> None:
    """Read the arguments of this process, do what they ask for, and exit."""
    _open_streams()
    try:
        _handle(_raise_on_signal)
        status = run(sys.argv[1:])
    except EndedBySignal as error:
        status = _complain(*_ended(error))
    finally:
        # Nothing is left to undo: a signal that comes while Python ends just ends it.
        _handle(signal.SIG_DFL)
    _drop_unwritten()
    sys.exit(status)


def _drop_unwritten() -> None:
    """Drop what an output did not take: Python would try again as it ends, and fail with a status of its own."""
    for number, stream in ((1, sys.__stdout__), (2, sys.__stderr__)):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return the exit status; errors are shown as one line on standard error."""
    try:
        message, status = _unusable(arguments) or _run(arguments)
    except Exception as error:  # noqa: BLE001 - whatever nobody foresaw ends in one line, too
        message, status = _fault(error)
    if message and _asks_for_comment(arguments):
        # What posts it has nothing else to post.
        with suppress(OSError, ValueError):
            from natgauge.reports.markup import escaped

            say(f"### natgauge: not compared\n\n- {escaped(message)}")
    return _complain(message, status)


def _asks_for_comment(arguments: Sequence[str]) -> bool:
    """Whether what is printed becomes the comment on a change."""
    return arguments[:1] == ["compare"] and not {"markdown", "--format=markdown"}.isdisjoint(arguments)


def _unusable(arguments: Sequence[str]) -> tuple[str, int] | None:
    """Return why no command can work with these arguments or from this folder, with the exit status."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            # No record could store the name, so a measurement would be lost at its end.
            return f"argument {argument}: is not UTF-8 text; rename the file or folder that it names", 2
    if fcntl.fcntl(1, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        return "standard output: is open for reading only; open it for writing (> in place of <)", 3
    if not _can_complete(os.environ.get(COMPLETING, "")):
        return f"{COMPLETING}: is set without COMP_WORDS and COMP_CWORD, which a shell sets with it; unset it", 2
    try:
        os.getcwd()  # noqa: PTH109 - only whether there is one
    except OSError as error:
        if _HELP.isdisjoint(arguments):
            return f"the working folder: {error.strerror}; it was removed: change to another folder (cd)", 3
    return None


def _can_complete(asked: str) -> bool:
    """Whether the variables are there that click reads for completions; fish gives a word for the number of a word."""
    number = os.environ.get("COMP_CWORD")
    is_number = number is not None and (number.isdecimal() or asked.startswith("fish"))
    return not asked.endswith("_complete") or ("COMP_WORDS" in os.environ and is_number)


def _run(arguments: Sequence[str]) -> tuple[str, int]:
    """Run a command; return why it ended, empty where it is done, and its exit status."""
    try:
        status = app.main(list(arguments), prog_name="natgauge", standalone_mode=False)
    except click.ClickException as error:
        return _refused(error)
    except NatgaugeError as error:
        folder = "" if error.evidence is None else shlex.quote(str(error.evidence))
        more = f"; natgauge explain {folder} shows the trials before it" if folder else ""
        # Notes are errors that followed the first one, for example while everything was undone.
        text = f"{error}{_another(arguments, error.another)}"
        errors = "; then: ".join([text, *getattr(error, "__notes__", ())])
        return f"{errors}{more}", error.exit_status
    except EndedBySignal as error:
        return _ended(error)
    except click.Abort:
        return "ended by SIGINT; everything is undone", 130
    except _PipeBrokeError as error:
        return ("", 141) if _has_lost_reader() else _fault(error.broken)
    return "", status if isinstance(status, int) else 0


def _has_lost_reader() -> bool:
    """Whether nobody reads what this process prints any more (`natgauge ... | head`)."""
    outputs = select.poll()
    for number in (1, 2):
        outputs.register(number, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in outputs.poll(0))


def _another(arguments: Sequence[str], name: str) -> str:
    """The option of the command by which the user chooses another value, as the end of an error; empty without one."""
    command: click.Command = app
    for word in arguments:
        if isinstance(command, click.Group):
            command = command.get_command(click.Context(command), word) or command
    options = [option for each in command.params if each.name == name for option in each.opts]
    return f", or choose another: {options[0]}" if name and options else ""


def _ended(error: EndedBySignal) -> tuple[str, int]:
    left = "; ".join(getattr(error, "__notes__", ())) or "everything is undone"
    return f"ended by {signal.Signals(error.number).name}; {left}", 128 + error.number


def _fault(error: Exception) -> tuple[str, int]:
    """A fault outside of a measurement, which has no results folder for the traceback."""
    name = f"natgauge-traceback-{datetime.now(UTC):%Y-%m-%d-%H%M%S}-{os.getpid()}.txt"
    known_fault = fault(error, _places_of(name))
    return str(known_fault), known_fault.exit_status


def _places_of(name: str) -> Iterator[Path]:
    """Yield files that may hold a traceback; neither folder has to exist."""
    for folder in (Path.cwd, tempfile.gettempdir):
        with suppress(OSError):
            yield Path(folder()) / name


def _refused(error: click.ClickException) -> tuple[str, int]:
    """Wrong arguments in one line; a group without a subcommand shows its help, as `--help` does."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        say(error.format_message(), err=True)
        return "", error.exit_code
    return error.format_message(), error.exit_code


def _complain(message: str, status: int) -> int:
    if not message:
        return status
    line = " ".join(shortened(message).split())
    # Nobody reads what a closed standard error would say.
    with suppress(OSError, ValueError):
        say(f"natgauge: {line}", err=True)
    return status
