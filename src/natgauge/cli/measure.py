# SPDX-License-Identifier: Apache-2.0
"""`natgauge measure`: one metric of one gateway; each metric is a subcommand with its own settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import cloup

from natgauge import procedures
from natgauge.cli.parameters import gateway_option, grouped, json_option, option, results_option, verbose_option
from natgauge.cli.say import document, epilog, say, status_of, wrapped
from natgauge.errors import UsageError
from natgauge.inputs.input import Input, spoken, wrong
from natgauge.labs import kinds
from natgauge.metrics.metric import THRESHOLDS
from natgauge.procedures.kit.procedure import with_profile
from natgauge.setup.cell import inputs_of_part, place_inputs
from natgauge.tables import columns

if TYPE_CHECKING:
    from natgauge.procedures.kit.procedure import Procedure

#: Headings by the group of an input's parameter.
_HEADINGS: Final = {"traffic": "Traffic", "place": "Lab", "device": "Device"}
#: Headings of the options that every metric has.
SHARED: Final = (*_HEADINGS.values(), "Output")
_EXAMPLE: Final = "natgauge measure {metric} --gateway nftables-nat44"


def settings(procedure: Procedure[Any]) -> list[Input]:
    """The metric's own settings, with the defaults that it has where no profile is named."""
    usual = with_profile(procedure, {})
    return [
        dataclasses.replace(input_, default=usual[input_.name], default_text="") if input_.name in usual else input_
        for input_ in procedure.own_inputs()
    ]


def of_labs(of_all: Iterable[Input]) -> list[Input]:
    """Return the inputs of every lab, and those of the kinds of lab; those of only some labs name these labs."""
    labs = ", ".join(f"{name} ({kind.summary})" for name, kind in kinds.kinds().items())
    inputs = [
        dataclasses.replace(input_, help=f"{input_.help}: {labs}") if input_.name == "lab" else input_
        for input_ in of_all
    ]
    number = len(kinds.kinds())
    inputs += [
        input_ if len(having) == number else dataclasses.replace(input_, help=f"{input_.help} ({', '.join(having)})")
        for input_, having in place_inputs().values()
    ]
    return inputs


def options(procedure: Procedure[Any]) -> dict[str, list[click.Option]]:
    """All options of a metric's command, by heading."""
    own = f"Settings of {procedure.metric}"
    device: list[click.Option] = [gateway_option()]
    sections: dict[str, list[click.Option]] = {own: [], "Traffic": [], "Lab": [], "Device": device, "Search": []}
    for input_ in settings(procedure):
        sections[input_.section or own].append(option(input_))
    for input_ in (*inputs_of_part("traffic"), *of_labs(inputs_of_part("lab")), *inputs_of_part("device")):
        sections[_HEADINGS[input_.group]].append(option(input_))
    host_name = cloup.Option(
        ["--host-name"], is_flag=True, help="Store the host's name in the results folder, which may be published."
    )
    return {**sections, "Output": [results_option(), host_name, verbose_option(), json_option()]}


class _Metric(cloup.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; a setting that only other metrics have is refused by its name."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            having = _having(error.option_name)
            if not having:
                raise
            (name,) = {input_.name for input_, _ in having}
            if name in THRESHOLDS.values():
                raise wrong(name, procedures.get(str(self.name)).lacks(name)) from None
            metrics = ", ".join(metric for _, metric in having)
            raise UsageError(
                f"{spoken(name)}: the metric {self.name} has no such setting; leave it out, or choose one of {metrics}"
            ) from None


def _having(written: str) -> list[tuple[Input, str]]:
    return [
        (input_, metric)
        for metric, procedure in procedures.procedures().items()
        for input_ in procedure.own_inputs()
        if written in (input_.option, *input_.also)
    ]


@cache
def _command_of(metric: str) -> click.Command:
    procedure = procedures.get(metric)

    def measure_one(gateway: str, results: Path, host_name: bool, verbose: bool, as_json: bool, **choices: Any) -> int:
        from natgauge.campaigns.estimate import likely_of
        from natgauge.cli.progress import ProgressDisplay
        from natgauge.measurements.measure import answer
        from natgauge.trial.question import ask

        question = ask(metric, gateway, choices)
        with ProgressDisplay(verbose=verbose, likely=likely_of(question)) as display:
            result = answer(question, display, results=results, host_name=host_name)
        if as_json:
            document(result.document())
        else:
            from natgauge.reports.text import verdict

            text = verdict(result, brief=not verbose, width=columns())
            say(wrapped(f"{text}\n  Evidence: {result.folder}"))
        return status_of([result])

    return _Metric(
        metric,
        callback=measure_one,
        params=grouped(options(procedure)),
        help=f"Measure {procedure.declared.summary} ({procedure.declared.source}).",
        short_help=procedure.declared.summary,
        epilog=epilog("measure", _EXAMPLE.format(metric=metric)),
    )


class _Metrics(cloup.Group):
    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(procedures.procedures())

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        return _command_of(cmd_name) if cmd_name in procedures.procedures() else None

    def list_sections(self, ctx: click.Context, include_default_section: bool = True) -> list[cloup.Section]:
        del include_default_section
        return [cloup.Section("Metrics", {name: _command_of(name) for name in self.list_commands(ctx)})]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments up to the metric, which comes first."""
        if not ctx.resilient_parsing:
            if not args:
                raise UsageError("METRIC is missing; natgauge measure --help lists the metrics")
            if args[0].startswith("-") and args[0] not in ctx.help_option_names:
                name = args[0].partition("=")[0]
                raise UsageError(f"{name}: METRIC comes before the options; write natgauge measure METRIC {name}")
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        procedures.get(args[0])
        return super().resolve_command(ctx, args)


@cloup.group(
    "measure",
    cls=_Metrics,
    short_help="Measure one metric of one gateway.",
    options_metavar="",
    subcommand_metavar="METRIC [OPTIONS]",
    no_args_is_help=False,
    epilog=epilog("measure", _EXAMPLE.format(metric="connection-rate"), "natgauge measure throughput --help"),
)
def command() -> None:
    """Measure METRIC of one gateway.

    Progress is printed on standard error, the result on standard output. A results folder stores every trial.
    With -v every trial, note and doubt is printed, too.
    `natgauge measure METRIC --help` shows the settings of a metric.
    """
