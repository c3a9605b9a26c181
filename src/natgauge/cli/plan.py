# SPDX-License-Identifier: Apache-2.0
"""`natgauge plan`: check and show plans of campaigns without measuring, and print a template."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import cloup

from natgauge.cli.names import GATEWAY, METRIC, Commands, WholeRange
from natgauge.cli.say import say
from natgauge.figure_text import given, in_percent, with_noun
from natgauge.figure_text import number as written
from natgauge.host.capabilities import available_octets
from natgauge.host.machine import as_if
from natgauge.words import enumerated, listed

if TYPE_CHECKING:
    from natgauge.campaigns.cells import PlannedCell
    from natgauge.campaigns.estimate import Estimate, Foreseen
    from natgauge.campaigns.plan import PlanError

_FILE = click.Path(path_type=Path)
_TEMPLATE: Final = """\
# A campaign of natgauge. Names are those of the options of `natgauge measure`, with "_" for "-".
gateways = [{names}]
profile = "quick"  # default, quick, standard or rfc
repetitions = 4    # of each measurement; fewer make no difference sure
# seed = 1

[lab]
lab = "netns"
# Gateways in the kernel run "shared", those with processes "isolated": figures of both are not comparable.
{mixed}placement = "isolated"

{mixed}[traffic]
# frame_size = 128
# Above 64,512 connections natgauge adds destination ports, so that these change with N, too, unless they are given.
# Gateways that choose outside ports themselves need free ones: half of 64,512 for each destination port.
{mixed}destination_ports = "1-8"

# [device]
# A formula of N, the number of connections: + - * / // ^ min max ceil floor log2. It is of the whole machine.
# hash_size = "2^ceil(log2(N))"

# Every key with several values makes a series; each device is measured at each point of all series.
# Few connections make short trials: "isolated" needs 120,000 at 300,000/s; `natgauge plan check` says how many.
[series]
connections = [{connections}]

{measures}"""
#: Numbers of connections whose trials are long enough: of gateways in the kernel, with processes, and of both together.
_CONNECTIONS: Final = {(False,): "10_000, 60_000", (True,): "40_000, 60_000", (False, True): "120_000, 240_000"}
_MEASURE: Final = '[[measure]]\nmetric = "{metric}"\n'

_cores_option = click.option(
    "--cores", type=WholeRange(1, 1024), metavar="N", help="Check the plan for a machine with N cores."
)


@cloup.group("plan", cls=Commands)
def command() -> None:
    """Check, show and create plans of campaigns."""


@command.command("check")
@click.argument("plan", type=_FILE)
@_cores_option
def check(plan: Path, cores: int | None) -> int:
    """Print errors in PLAN, one per line, or the time and memory that it requires; nothing is measured.

    Some errors show only when others are mended.
    """
    from natgauge.campaigns.cells import points
    from natgauge.campaigns.estimate import checked_estimate
    from natgauge.campaigns.plan import PlanError

    try:
        with as_if(cores):
            cells = _cells(plan)
            estimated = checked_estimate(cells, str(plan))
    except PlanError as error:
        status = complain(error)
        if error.rest is not None:
            try:
                with as_if(cores):
                    points(error.rest, str(plan))
            except PlanError as more:
                complain(more)
        return status
    say("\n".join(_estimated(plan, cells, estimated, here=cores is None)))
    return 0


@command.command("show")
@click.argument("plan", type=_FILE)
@_cores_option
def show(plan: Path, cores: int | None) -> int:
    """List the cells of PLAN and their measurements, in order."""
    from natgauge.campaigns.estimate import NO_RESULT, of_cell
    from natgauge.campaigns.plan import PlanError

    try:
        with as_if(cores):
            cells = [(cell, of_cell(cell)) for cell in _cells(plan)]
    except PlanError as error:
        return complain(error)
    for cell, estimated in cells:
        say(f"{cell.name}: about {with_noun(estimated.trials, 'trials')}, {estimated.likely}")
        for each in cell.measurements:
            times = f"up to {each.most_repetitions}" if isinstance(each.repeat, str) else str(each.repeat)
            settings = ", ".join(f"{name} {value}" for name, value in each.settings.items() if name != "repeat")
            placement = each.planned.settings.placement
            say(f"  {each.name} x {times}, {placement}{f': {settings}' if settings else ''}")
        for doubt in estimated.foreseen:
            if doubt.word == NO_RESULT:
                say(f"  {doubt.measurement}: {doubt.text}")
    return 0


@command.command("new")
@click.option(
    "--gateway", "gateways", multiple=True, type=GATEWAY, metavar="NAME", help="A gateway to measure; repeatable."
)
@click.option("--metric", "metrics", multiple=True, type=METRIC, metavar="NAME", help="A metric; repeatable.")
def new(gateways: Sequence[str], metrics: Sequence[str]) -> None:
    """Print a template of a plan."""
    from natgauge import procedures
    from natgauge.gateways.recipe import load

    names = gateways or ("nftables-nat44", "linux-ipv4")
    kinds = tuple(sorted({load(name).own_processes for name in names}))
    named = [procedures.get(name).metric for name in metrics or ("connection-rate", "throughput")]
    measures = "\n".join(_MEASURE.format(metric=metric) for metric in named)
    quoted = ", ".join(f'"{name}"' for name in names)
    mixed, connections = "" if len(kinds) > 1 else "# ", _CONNECTIONS[kinds]
    say(_TEMPLATE.format(names=quoted, mixed=mixed, connections=connections, measures=measures), nl=False)


def complain(error: PlanError) -> int:
    """Print every fault on standard error, and return the exit status."""
    for fault in error.faults:
        say(f"natgauge: {' '.join(fault.split())}", err=True)
    return error.exit_status


def _cells(plan: Path) -> Sequence[PlannedCell]:
    from natgauge.campaigns.cells import points
    from natgauge.campaigns.plan import read

    return points(read(plan), str(plan))


def _estimated(plan: Path, cells: Sequence[PlannedCell], estimated: Estimate, *, here: bool) -> list[str]:
    from natgauge.analysis.contrast import least_repetitions
    from natgauge.campaigns.estimate import ASSUMED_CONNECTIONS, ASSUMED_FRAMES
    from natgauge.statistics.summary import CONFIDENCE

    available = available_octets() if here else None
    short = available is not None and estimated.tester_octets + (estimated.device_octets or 0) > available
    scarce = f"; only {_mib(available)} MiB are available here" if available is not None and short else ""
    repetitions = sum(measurement.most_repetitions for cell in cells for measurement in cell.measurements)
    measurements = sum(len(cell.measurements) for cell in cells)
    assumed = f"devices of {written(ASSUMED_CONNECTIONS)} connections/s and {written(ASSUMED_FRAMES)} frames/s"
    device = "unknown" if estimated.device_octets is None else f"{_mib(estimated.device_octets)} MiB"
    memory = f"{_mib(estimated.tester_octets)} MiB on the tester, {device} on the device{scarce}"
    every = _counted(repetitions, "repetitions")
    cut = f"; {estimated.cut} of {every} are cut by --most-seconds" if estimated.cut else ""
    counted = (_counted(len(cells), "cells"), _counted(measurements, "measurements"), every)
    least = least_repetitions()
    few = [each for cell in cells for each in cell.measurements if each.most_repetitions < least]
    most = max((each.most_repetitions for each in few), default=0)
    of = "" if len(few) == measurements else f" of {listed(list(dict.fromkeys(each.name for each in few)))}"
    makes = f"{_counted(most, 'repetitions')}{of} {'makes' if most == 1 else 'make'} no difference sure"
    return [
        f"{plan}: {', '.join(counted)} at most",
        f"  trials  about {estimated.trials:,} with {assumed}; slower ones and disturbed hosts take more",
        f"  time    likely {estimated.likely}{cut}",
        f"  memory  {memory}",
        *([f"  sure    {makes}: {given(CONFIDENCE)} needs {least}"] if few and len(cells) > 1 else []),
        *_warnings(cells, estimated),
    ]


def _warnings(planned: Sequence[PlannedCell], estimated: Estimate) -> Iterator[str]:
    """Yield a line for what makes figures doubtful, or keeps them from being compared, before anything is measured."""
    from natgauge.procedures.kit.queues import GRAVE_SHARE

    placed: dict[str, list[str]] = {}
    for cell in planned:
        for measurement in cell.measurements:
            placed.setdefault(measurement.planned.settings.placement, []).append(cell.device)
    if len(placed) > 1:
        each = "; ".join(f"{placement}: {listed(list(dict.fromkeys(own)))}" for placement, own in placed.items())
        yield f'  places  {each}; figures of different placements are not comparable: give [lab] placement = "isolated"'
    alike: dict[tuple[str, str], list[Foreseen]] = {}
    for doubt in estimated.foreseen:
        alike.setdefault((doubt.word, doubt.measurement if doubt.share else ""), []).append(doubt)
    for every in alike.values():
        worst, names = max(every, key=lambda doubt: doubt.share), listed([*dict.fromkeys(d.measurement for d in every)])
        cells = len({doubt.cell for doubt in every})
        more = f" and {with_noun(cells - 1, 'more cells')}" if cells > 1 else ""
        enough = f"; {worst.enough} make that less than {in_percent(GRAVE_SHARE)}" if worst.enough else ""
        yield f"  doubt   {names} of {worst.cell}{more}: {worst.text}{enough}"
    if machine := sorted({name for cell in planned for name in _of_machine(cell)}):
        yield f"  waits   {enumerated(machine)}: of the whole machine; a run waits for others that rely on it"


def _of_machine(cell: PlannedCell) -> Iterator[str]:
    """Yield the settings of the whole machine that the plan itself sets."""
    wishes, knobs = cell.cell.device.named(), cell.recipe.knobs.named()
    yield from (name for name in wishes if name in knobs and knobs[name].scope == "machine")


def _counted(number: int, what: str) -> str:
    return with_noun(f"{number:,}", what)


def _mib(octets: int) -> str:
    return f"{octets / 2**20:,.1f}"
