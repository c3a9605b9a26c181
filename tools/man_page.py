# SPDX-License-Identifier: Apache-2.0
"""Makes natgauge(1) of what click knows of the command line (man(7)).

All subcommands stand on one page. (click-man wants a page for each and misses subcommands that are imported late.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from inspect import cleandoc
from typing import Final

import click
import cloup

from natgauge import cli
from natgauge.cli import measure
from natgauge.cli.say import EXIT_STATUSES
from natgauge.host.programs import VARIABLE

#: Letters that roff takes for something else (groff_char(7)).
_SPECIAL: Final = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "^": "\\(ha", "~": "\\(ti"}
_CODE: Final = re.compile(r"`([^`]+)`")


def page(version: str) -> str:
    """The whole page in roff.

    Args:
        version: of natgauge, for the foot of the page.
    """
    context = cloup.Context(cli.app, info_name="natgauge", **cli.app.context_settings)
    return "\n".join([f'.TH NATGAUGE 1 "" "natgauge {_plain(version)}" "User Commands"', *_sections(context)]) + "\n"


def _sections(context: click.Context) -> Iterator[str]:
    purpose = _paragraphs(context.command)[0].rstrip(".")
    yield from (".SH NAME", f"natgauge \\- {_text(purpose[:1].lower() + purpose[1:])}")
    yield from (".SH SYNOPSIS", _usage(context), ".SH OPTIONS", *_options(context), ".SH COMMANDS")
    for below in _subcommands(context):
        yield from (f".SS {_plain(below.command_path)}", _usage(below))
        for paragraph in _paragraphs(below.command):
            yield from (".PP", _text(paragraph))
        yield from _grouped(below)
    yield ".SH EXIT STATUS"
    for status in EXIT_STATUSES:
        where = f" ({', '.join(f'natgauge {command}' for command in status.commands)})" if status.commands else ""
        yield from (".TP", f".B {status.number}", _text(f"{status.meaning}{where}"))
    yield from (".SH ENVIRONMENT", ".TP", f".B {VARIABLE}", "Folder of natgauge\\(aqs own compiled programs.")
    yield from (".SH SEE ALSO", ".BR ip (8),", ".BR nft (8),", ".BR conntrack (8)")


def _subcommands(context: click.Context) -> Iterator[click.Context]:
    """All commands below, each before those below it."""
    if not isinstance(context.command, click.Group):
        return
    for name in context.command.list_commands(context):
        command = context.command.get_command(context, name)
        if command is not None and not command.hidden:
            below = cloup.Context(command, info_name=name, parent=context)
            yield below
            yield from _subcommands(below)


def _usage(context: click.Context) -> str:
    pieces = " ".join(context.command.collect_usage_pieces(context))
    return f"\\fB{_plain(context.command_path)}\\fR {_plain(pieces)}"


def _grouped(context: click.Context) -> Iterator[str]:
    """A command's options under their headings."""
    groups = _option_groups(context)
    if context.parent is not None and context.parent.command is measure.command:
        groups = [group for group in groups if group.title not in measure.SHARED]
    if context.command is measure.command:
        first = next(_subcommands(context))
        groups = [group for group in _option_groups(first) if group.title in measure.SHARED]
        yield from (".PP", "Every metric has its own settings, and these options:")
    for group in groups:
        yield from (".PP", f"\\fI{_plain(group.title)}\\fR", *_options(context, group.options))
    grouped = {parameter.name for group in _option_groups(context) for parameter in group.options}
    yield from _options(context, [each for each in context.command.get_params(context) if each.name not in grouped])


def _option_groups(context: click.Context) -> list[cloup.OptionGroup]:
    return context.command.option_groups if isinstance(context.command, cloup.Command) else []


def _options(context: click.Context, parameters: Iterable[click.Parameter] | None = None) -> Iterator[str]:
    for parameter in context.command.get_params(context) if parameters is None else parameters:
        record = parameter.get_help_record(context)
        if record is not None and isinstance(parameter, click.Option):
            written, text = record
            yield from (".TP", " ".join(map(_bold_name, written.split())), _text(text))


def _bold_name(word: str) -> str:
    """An option's name in bold; its value and what stands between them as they are."""
    return f"\\fB{_plain(word)}\\fR" if word.startswith("-") else _plain(word)


def _paragraphs(command: click.Command) -> list[str]:
    # What stands behind a form feed is not for users (click's own rule).
    text = cleandoc(command.help or "").partition("\f")[0]
    return [" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text)]


def _text(text: str) -> str:
    """Running text; what stands in backticks gets bold."""
    return _CODE.sub(r"\\fB\1\\fR", _plain(" ".join(text.split())))


def _plain(text: str) -> str:
    """Text that roff shows as it is."""
    text = "".join(_SPECIAL.get(letter, letter) for letter in text)
    return f"\\&{text}" if text.startswith(".") else text
