# SPDX-License-Identifier: Apache-2.0
"""`natgauge status`: how far a campaign is, also while it runs."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import cloup

from natgauge.cli.say import json_object, say
from natgauge.figure_text import at_least, at_most, duration, number, with_noun
from natgauge.file_access import is_there
from natgauge.interval_text import readings, readings_of, resolved
from natgauge.records.store import SUMMARY
from natgauge.tables import aligned, columns
from natgauge.words import listed

if TYPE_CHECKING:
    from natgauge.campaigns.state import CampaignStatus, MeasurementStatus

#: The most values of a measurement that are printed one by one.
_MOST_VALUES: Final = 3


@cloup.command("status", short_help="Show the progress of a campaign.")
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each campaign, one per line.")
def command(folders: tuple[Path, ...], as_json: bool) -> None:
    """Print the progress of the campaign in DIR, which may be running, or of several."""
    from natgauge.campaigns.state import status

    for campaign in map(status, folders):
        if as_json:
            json_object("status", campaign)
        else:
            say("\n".join(lines(campaign)))


def lines(campaign: CampaignStatus) -> list[str]:
    """The status of a campaign, in words."""
    done = sum(each.done for each in campaign.measurements)
    left = sum(each.left for each in campaign.measurements)
    cells = len({each.cell for each in campaign.measurements})
    how = "running" if campaign.runs else "not running" if left else "ended"
    causes: dict[str, list[str]] = {}
    for each in campaign.measurements:
        if each.broken:
            causes.setdefault(each.broken, []).append(f"{each.measurement} of {each.cell}")
    broken = f", {with_noun(sum(map(len, causes.values())), 'measurements')} broke" if causes else ""
    time = f", about {duration(campaign.seconds_left)}" if left and campaign.seconds_left is not None else ""
    more = f", {left} left at most{time}" if left else ""
    trials = f"{with_noun(campaign.trials, 'trials')}{' so far' if left else ''}"
    counted = f"{with_noun(cells, 'cells')}, {with_noun(done, 'repetitions')} done{more}; {trials}"
    text = [f"{campaign.name}: {how}{broken}; {counted}"]
    if campaign.now is not None and left:
        text.extend(
            f"  {'now' if campaign.runs else 'stopped in'}: {_now(trial)}" for trial in (*campaign.beside, campaign.now)
        )
    rows = [
        (f"{each.cell} {each.measurement}", _measurement(each) + _doubt(campaign, each))
        for each in campaign.measurements
    ]
    table = [f"  {line}" for line in aligned(rows)]
    if max(map(len, table)) > columns():
        # Long names of gateways: what was measured follows in a line of its own.
        table = [f"{'  ' * (1 + at)}{cell}" for row in rows for at, cell in enumerate(row)]
    text.extend(table)
    text.extend(f"  broken: {listed(names)}: {cause}" for cause, names in causes.items())
    return text


def _now(now: Any) -> str:
    from natgauge.procedures.kit.runner import Bounds, units_of

    phase2 = now["plan"]["phase2"]
    rates = (0, 0) if phase2 is None else (phase2["initiator_rate"], phase2["responder_rate"])
    of_load, of_bounds = units_of(now["metric"], *rates)
    bounds = now["bounds"]
    known = Bounds(bounds["lower"], bounds["upper"]).text(of_bounds)
    left = "" if bounds["trials_left"] is None else f", about {with_noun(bounds['trials_left'], 'trials')} left"
    return (
        f"{now['cell']} {now['measurement']}, repetition {now['repetition']}: {now['metric']} trial {now['trial']} at "
        f"{number(now['load'])} {of_load}{f', {known}' if known else ''}{left}"
    )


def _measurement(measurement: MeasurementStatus) -> str:
    if measurement.broken and not measurement.done:
        return "broken"
    unit = f"{measurement.unit} {measurement.sending}".rstrip()
    parts = [f"{_values(measurement)} {unit}"] if measurement.values else []
    if measurement.cut_off:
        bounds = ", ".join(_between(*each) for each in measurement.cut_off_bounds)
        cut = f"{measurement.cut_off} cut off by {'its' if measurement.cut_off == 1 else 'their'} time"
        parts.append(f"{cut}, {bounds} {unit}" if bounds else cut)
    text = f": {'; '.join(parts)}" if parts else ""
    return f"{'broken, ' if measurement.broken else ''}{measurement.done} of {measurement.most_repetitions}{text}"


def _doubt(campaign: CampaignStatus, measurement: MeasurementStatus) -> str:
    """What the report says instead of the values, for doubts that could change the answer; empty where it says them."""
    # Bounds say by themselves that the value is none.
    if not measurement.folder or measurement.cut_off or any(measurement.bounds):
        return ""
    summary = campaign.folder / measurement.folder / SUMMARY
    if not is_there(summary):
        return ""
    # Only results need the views of results.
    from natgauge.records.measurement import Result
    from natgauge.records.record import read_record
    from natgauge.reports.main_figure import stated_number, statement_of

    result = read_record(summary, Result)
    said = statement_of(result)
    bound = "" if said.is_median else f": {stated_number(result)}"
    return f", in doubt{bound}" if bound or said.doubtful else ""


def _values(measurement: MeasurementStatus) -> str:
    """Up to three values; of more, their median and range. Of bounds the median, too, is no less than is written."""
    values, bounds = measurement.values, measurement.bounds
    if len(values) <= _MOST_VALUES:
        return ", ".join(map(_value, values, readings_of(values), bounds))
    median, low, high = statistics.median(values), min(values), max(values)
    # The digits of the sentences, which have the same median.
    middle = _value(median, resolved(median, low, high), any(bounds))
    return middle if low == high else f"median {middle}, all {readings(low, high)}{' or more' if any(bounds) else ''}"


def _between(lower: float, upper: float | None) -> str:
    return f"at least {at_least(lower)}" if upper is None else f"{at_least(lower)} to {at_most(upper)}"


def _value(value: float, text: str, is_bound: bool) -> str:
    return f"at least {at_least(value)}" if is_bound else text
