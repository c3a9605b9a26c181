# SPDX-License-Identifier: Apache-2.0
"""`python -m benchmarks.published_tables FOLDER ...`: every published table, and what its plan gave on this machine.

Each folder contains campaigns of plans that `natgauge published --plan` printed. The page has one row for each table:
the command of the plan, the time of the campaign, and what is missing. After it each campaign is printed in the shape
of its table, with the published rows below ours (`natgauge report --like NAME --beside`).
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, get_args

from benchmarks import machine
from benchmarks.command import day, heading, options, write
from natgauge.campaigns import journal
from natgauge.campaigns.state import CampaignStatus, status
from natgauge.errors import UsageError
from natgauge.published import like
from natgauge.published.model import Size, names, needs, plan_command, plan_file, table
from natgauge.records.store import CAMPAIGN
from natgauge.reports import text
from natgauge.stored import find_results

_INTRODUCTION: Final = (
    "The plans are the small ones: the series and the shape of each table with smaller numbers. So our figures are "
    "next to the published ones to show the shape, and must not be compared with them: machine, system, tester and "
    "numbers of connections differ. Results in a guest have an emulated processor; they show that the table can be "
    "measured, and nothing about speed."
)
#: Widest table of the page, in characters.
_COLUMNS: Final = 140


@dataclass(frozen=True, slots=True)
class Ran:
    """A campaign of a published table.

    Attributes:
        folder: folder of the campaign.
        size: size of its plan.
        seconds: time from its first event to its last one, without pauses between sessions.
        ended: number of measurements with a result.
        broken: reasons why the other measurements have none, with their numbers; "" = it was not measured yet.
    """

    folder: Path
    size: Size
    seconds: float
    ended: int
    broken: Mapping[str, int]

    @classmethod
    def of(cls, campaign: CampaignStatus, size: Size) -> Ran:
        """Return a campaign with its time and its outcome."""
        return cls(
            campaign.folder,
            size,
            sum(sessions(campaign.folder)),
            sum(bool(each.folder) for each in campaign.measurements),
            Counter(each.broken for each in campaign.measurements if not each.folder),
        )

    @property
    def outcome(self) -> str:
        """How many measurements have a result, and why the others have none."""
        of_all = f"{self.ended} of {self.ended + sum(self.broken.values())} measurements"
        reasons = [f"{count}: {reason or 'not measured yet'}" for reason, count in self.broken.items()]
        return "; ".join([of_all, *reasons])


def sessions(folder: Path) -> Iterator[float]:
    """Seconds of each session of a campaign, from its first event to its last one."""
    times: list[list[float]] = []
    for entry in journal.entries(folder):
        if entry["event"] == "session":
            times.append([])
        times[-1].append(entry["at"])
    return (of_session[-1] - of_session[0] for of_session in times)


def ran(folders: Sequence[Path]) -> dict[str, list[Ran]]:
    """Campaigns in the folders, by the names of the published tables; a table without one has an empty list.

    Raises:
        UsageError: a campaign cannot be read.
    """
    sizes = [(name, size) for name in names() for size in get_args(Size)]
    plan = {Path(plan_file(table(name), size=size)).stem: (name, size) for name, size in sizes}
    found: dict[str, list[Ran]] = {name: [] for name in names()}
    for folder in folders:
        for campaign in sorted(path.parent for path in folder.glob(f"*/{CAMPAIGN}")):
            measured = status(campaign)
            if measured.name in plan:
                name, size = plan[measured.name]
                found[name].append(Ran.of(measured, size))
    return found


def rows(name: str, campaigns: Sequence[Ran]) -> Iterator[str]:
    """Rows of the page for one published table: one for each campaign, or one with the reason why there is none."""
    if not campaigns:
        missing = needs(table(name))
        plan = "" if missing else f"`{plan_command(table(name), size='small')}`"
        yield f"| {name} | {plan} | | {f'no plan: {missing}' if missing else 'not measured'} |"
    for each in campaigns:
        yield f"| {name} | `{plan_command(table(name), size=each.size)}` | {each.seconds:.0f} s | {each.outcome} |"


def page(folders: Sequence[Path], described: Mapping[str, Any]) -> str:
    """The page of all published tables.

    Raises:
        UsageError: a campaign cannot be read.
    """
    found = ran(folders)
    lines = [*heading("Published tables, measured here", described), _INTRODUCTION, ""]
    lines += ["| Table | Plan | Time | Outcome |", "|---|---|--:|---|"]
    for name, campaigns in found.items():
        lines += rows(name, campaigns)
    for name, campaigns in found.items():
        for each in (campaign for campaign in campaigns if campaign.ended):
            where = " in a guest" if each.size == "guest" else ""
            lines += ["", f"## {name}{where}", "", "```text"]
            sheet = like.sheet(name, find_results.find([each.folder]).results, beside=True)
            lines += [text.render(sheet, _COLUMNS).rstrip("\n"), "```"]
    return "\n".join([*lines, ""])


def main(arguments: list[str] | None = None) -> int:
    """Write the page; 3 where a campaign cannot be read."""
    parser = options(__doc__, "published-tables")
    parser.add_argument("folder", type=Path, nargs="+", help="folder with a folder for each campaign")
    chosen = parser.parse_args(arguments)
    described = machine.describe()
    try:
        made = page(chosen.folder, described)
    except UsageError as error:
        print(f"published_tables: {error}", file=sys.stderr)
        return 3
    path = write(chosen.results, f"{day(described)}-{chosen.name}", made, {"machine": described})
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
