# SPDX-License-Identifier: Apache-2.0
"""`natgauge run`: a whole campaign, from its beginning or from where it stopped."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import cloup

from natgauge.cli.names import LAB
from natgauge.cli.say import say, status_of, wrapped
from natgauge.cli.several_machines import access_options, warn
from natgauge.errors import FaultError, NatgaugeError, UsageError
from natgauge.figure_text import duration

if TYPE_CHECKING:
    from natgauge.campaigns.campaign import RunOrder
    from natgauge.campaigns.state import CampaignStatus
    from natgauge.records.measurement import Result

#: Exit statuses of errors.
_ERRORS: Final = (2, 3, 4)


@cloup.command("run", short_help="Run or resume a campaign.")
@click.argument("plans", nargs=-1, required=True, metavar="PLAN...", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of the campaign; of several plans, the folder that gets a campaign's folder for each.  [default: "
    "results/<name of the plan>]",
)
@click.option("--resume", is_flag=True, help="Resume the campaign in that folder; of several plans, all that began.")
@click.option(
    "--only",
    multiple=True,
    metavar="CELL",
    help="Run only this cell, or the cells that match a pattern such as 'nft*'; repeatable.",
)
@click.option("--retry-broken", is_flag=True, help="With --resume: repeat the measurements that are marked broken.")
@click.option("--lab-name", type=LAB, metavar="NAME", help="Name of the lab, in place of the plan's lab_name.")
@click.option(
    "--on",
    metavar="WHERE",
    help="Workers: local:N (N on this machine), or dask://HOST:PORT (those of `natgauge scheduler`).",
)
@access_options
@click.option("--host-name", is_flag=True, help="Store the host's name in the folder, which may be published.")
@click.option("-v", "--verbose", is_flag=True, help="Print every trial, and all doubts in full.")
def command(
    plans: tuple[Path, ...],
    out: Path | None,
    *,
    resume: bool,
    only: Sequence[str],
    retry_broken: bool,
    lab_name: str | None,
    on: str | None,
    certificates: Path | None,
    insecure: bool,
    host_name: bool,
    verbose: bool,
) -> int:
    """Measure all cells of PLAN, a TOML file (see `natgauge plan`), or those of several plans, one after the other.

    After Ctrl-C, a crash or a power cut, the same command with --resume continues; repetitions that were under way
    begin again. `natgauge status DIR` shows the progress. With --on, several workers measure in parallel, each on its
    own cores (see `natgauge worker`). The exit status is 4 if a measurement broke, otherwise 13 if a threshold of the
    plan is not met, or 5 if that cannot be told, or 0, also if an answer is 0. Of several plans, one that ends with an
    error does not end the others.
    """
    from natgauge.campaigns import campaign
    from natgauge.campaigns.plan import PlanError
    from natgauge.cli import plan as complaints

    order = campaign.RunOrder(
        plan=plans[0],
        out=out,
        resume=resume,
        only=only,
        retry_broken=retry_broken,
        host_name=host_name,
        lab_name=lab_name,
        elsewhere=_elsewhere(on, certificates, insecure=insecure),
    )
    values = {"--out": out, "--lab-name": lab_name, "--on": on, "--certificates": certificates}
    words = [word for name, value in values.items() if value is not None for word in (name, str(value))]
    words += [word for cell in only for word in ("--only", cell)]
    switches = {"--insecure": insecure, "--host-name": host_name, "--verbose": verbose}
    words += [name for name, is_on in switches.items() if is_on]
    warn(insecure=insecure and on is not None)
    statuses = [0]
    errors: list[NatgaugeError] = []
    try:
        for each in campaign.orders(plans, order):
            try:
                statuses.append(_run(each, verbose=verbose))
            except NatgaugeError as error:
                # An error before the campaign began is one of this host, and the other plans would have it, too.
                if len(plans) == 1 or not error.begun:
                    raise
                say(f"natgauge: {each.plan}: {error}", err=True)
                statuses.append(error.exit_status)
                errors.append(error)
    except PlanError as error:
        return complaints.complain(error)
    except BaseException as error:
        _say_way_on(order, plans, words, [error])
        raise
    _say_way_on(order, plans, words, errors)
    # An error weighs more than a verdict.
    return max(statuses, key=lambda status: (status in _ERRORS, status))


def _say_way_on(
    order: RunOrder, plans: Sequence[Path], options: Sequence[str], errors: Sequence[BaseException]
) -> None:
    """Print the command that goes on after errors or a signal, where another session may go on.

    After a signal everything is undone, and nothing is lost. What --retry-broken began again is no longer broken.
    """
    from natgauge.campaigns import campaign

    is_signal = not all(isinstance(error, Exception) for error in errors)
    # Of several plans, those that have not begun begin.
    goes_on = len(plans) > 1 or campaign.has_begun(order)
    if not is_signal and not (goes_on and any(map(_can_go_on, errors))):
        return
    done = "" if is_signal or len(plans) > 1 else f"stopped after {_done(order)}; "
    how = "continue" if goes_on else "begin again"
    words = [*map(str, plans), *options, *(["--resume"] if goes_on else [])]
    say(f"natgauge: {done}{how} with: natgauge run {shlex.join(words)}", err=True)


def _can_go_on(error: BaseException) -> bool:
    """Whether a campaign that an error ended goes on where its reason is gone: no question is wrong, nor natgauge."""
    return isinstance(error, NatgaugeError) and error.begun and not isinstance(error, UsageError | FaultError)


def _done(order: RunOrder) -> str:
    from natgauge.campaigns.state import status

    every = status(order.folder).measurements
    done = sum(each.done for each in every)
    return f"{done} of {done + sum(each.left for each in every)} repetitions"


def _elsewhere(on: str | None, certificates: Path | None, *, insecure: bool) -> partial[Any] | None:
    """What finds the workers that measure; None = this process measures."""
    if on is not None:
        from natgauge.spread import workers_of

        return partial(workers_of, on, certificates=certificates, insecure=insecure)
    if insecure or certificates is not None:
        option = "--insecure" if insecure else "--certificates"
        raise UsageError(f"{option}: belongs to --on dask://HOST:PORT; add that, or leave it out")
    return None


def _run(order: RunOrder, *, verbose: bool) -> int:
    """Run a campaign, print its end, and return the exit status: 4 where a measurement broke."""
    from natgauge.campaigns import campaign
    from natgauge.campaigns.state import status
    from natgauge.cli.progress import ProgressDisplay
    from natgauge.stored.find_results import find

    began = time.monotonic()
    # Hours of trials are thousands of lines in a log; each turn of a cell is one, with the time that is left.
    with ProgressDisplay(verbose=verbose, plain_trials=False) as display:
        folder, state = campaign.run(order, display)
    campaign_status = status(folder, state)
    say(wrapped(_ended(campaign_status, verbose=verbose)))
    say(f"  Time: {duration(time.monotonic() - began)}")
    if any(measurement.broken for measurement in campaign_status.measurements):
        return 4
    ended = any(measurement.folder for measurement in campaign_status.measurements)
    # Cells that --only left out may have results of some repetitions; those that follow decide.
    return status_of(result for result in find([folder]).results if result.is_complete) if ended else 0


def _ended(campaign_status: CampaignStatus, *, verbose: bool) -> str:
    """Return the answers that the results give, their doubts, and the status of the campaign."""
    from natgauge.cli.status import lines

    shown = lines(campaign_status)
    if any(measurement.folder for measurement in campaign_status.measurements):
        from natgauge.notes import GRADES
        from natgauge.reports.answers import answers, not_sure
        from natgauge.reports.text import doubt_lines
        from natgauge.stored.find_results import find

        results = find([campaign_status.folder]).results
        found = answers(results)
        sentences = [*(sentence.text for sentence in found), *filter(None, [not_sure(found, listed=True)])]
        # Words alone of what changes nothing help nobody here; the report has them.
        grades = GRADES if verbose else GRADES[:-1]
        shown = [*sentences, *doubt_lines(results, brief=not verbose, grades=grades), *shown]
        against = _varied(campaign_status.folder, results)
        words = ["natgauge", "report", *(["--against", against] if against else []), str(campaign_status.folder)]
        shown.append(f"  Tables: {shlex.join(words)}")
    return "\n".join(shown)


def _varied(folder: Path, results: Sequence[Result]) -> str:
    """The plan's own series as `report --against` takes it; empty where there is none, or it makes no table."""
    from natgauge.records.campaign import CampaignRecord
    from natgauge.records.record import read_record
    from natgauge.records.store import CAMPAIGN
    from natgauge.reports import pivot

    series = read_record(folder / CAMPAIGN, CampaignRecord).plan.get("series")
    for name, values in series.items() if isinstance(series, dict) else ():
        against = str(name).replace("_", "-")
        if isinstance(values, list) and len(values) > 1:
            with suppress(UsageError):
                if len(pivot.sheet(results, against).lines[0].cells) > 1:
                    return against
    return ""
