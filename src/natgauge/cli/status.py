# SPDX-License-Identifier: Apache-2.0
"""`natgauge status`: how far a campaign is, also while it runs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import cloup

if TYPE_CHECKING:
    from natgauge.campaigns.status import CampaignStatus, MeasurementStatus


@cloup.command("status", short_help="Show the progress of a campaign.")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(folder: Path, as_json: bool) -> None:
    """Print the progress of the campaign in DIR, which may be running."""
    from natgauge.campaigns.status import status

    found = status(folder)
    if as_json:
        import json

        from natgauge.records.store import plain

        click.echo(json.dumps(plain(found), allow_nan=False))
        return
    click.echo("\n".join(lines(found)))


def lines(found: CampaignStatus) -> list[str]:
    """The status of a campaign, in words."""
    from natgauge.cli.progress import duration
    from natgauge.tables import aligned

    done = sum(one.done for one in found.measurements)
    left = sum(one.left for one in found.measurements)
    cells = len({one.cell for one in found.measurements})
    how = "running" if found.runs else "not running" if left else "ended"
    time = f", about {duration(found.seconds_left)}" if left and found.seconds_left is not None else ""
    counted = f"{cells} cells, {done} repetitions done, {left} left at most{time}"
    text = [f"{found.name}: {how}; {counted}; {found.trials} trials so far"]
    if found.now is not None and left:
        text.extend(f"  {'now' if found.runs else 'stopped in'}: {_now(one)}" for one in (*found.beside, found.now))
    rows = [(f"{one.cell} {one.measurement}", _measurement(one)) for one in found.measurements]
    text.extend(f"  {line}" for line in aligned(rows))
    causes = Counter(one.broken for one in found.measurements if one.broken)
    text.extend(f"  broken ({count} measurements): {cause}" for cause, count in causes.items())
    return text


def _now(now: Any) -> str:
    bounds = now["bounds"]
    between = ""
    if bounds["lower"] is not None or bounds["upper"] is not None:
        ends = ["?" if bounds[end] is None else f"{bounds[end]:,.0f}" for end in ("lower", "upper")]
        between = f", between {ends[0]} and {ends[1]}"
    left = "" if bounds["trials_left"] is None else f", about {bounds['trials_left']} trials left"
    return (
        f"{now['cell']} {now['measurement']}, repetition {now['repetition']}: {now['metric']} trial {now['trial']} at "
        f"{now['load']:,.0f}{between}{left}"
    )


def _measurement(one: MeasurementStatus) -> str:
    if one.broken and not one.done:
        return "broken"
    values = ", ".join(f"{value:,.0f}" if value >= 100 else f"{value:.3g}" for value in one.values)
    parts = [f"{values} {one.unit}"] if values else []
    parts += [f"{one.cut_off} cut off by their time"] if one.cut_off else []
    text = f": {'; '.join(parts)}" if parts else ""
    return f"{'broken, ' if one.broken else ''}{one.done} of {one.most_repetitions}{text}"
