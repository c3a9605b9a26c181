# SPDX-License-Identifier: Apache-2.0
"""`natgauge demo`: a first result in under two minutes, without hardware."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import cloup

from natgauge.cli.parameters import results_option, verbose_option
from natgauge.cli.say import say, wrapped
from natgauge.tables import columns

if TYPE_CHECKING:
    from natgauge.records.measurement import Result

_GATEWAY: Final = "nftables-nat44"
#: Coarse and short, so that both metrics fit into two minutes; the summary says how coarse.
_COMMON: Final = {"connections": 100_000, "lab_name": "demo", "repeat": 3, "error": "5%", "invalid_repeats": 4}
_TRIAL_SECONDS: Final = 0.5


@cloup.command("demo", short_help="A first result, without hardware.", params=[results_option(), verbose_option()])
def command(results: Path, verbose: bool) -> None:
    """Measure the kernel's own NAT44 in namespaces: connection rate, then throughput."""
    from natgauge.campaigns.estimate import likely_of
    from natgauge.cli.progress import ProgressDisplay
    from natgauge.measurements.measure import answer
    from natgauge.trial.question import ask

    def measured(metric: str, **settings: Any) -> Result:
        question = ask(metric, _GATEWAY, {**_COMMON, **settings})
        with ProgressDisplay(verbose=verbose, likely=likely_of(question)) as display:
            return answer(question, display, results=results)

    rate = measured("connection-rate")
    known = {"connection_rate": rate.median} if rate.median else {}
    answers = [rate, measured("throughput", trial_seconds=_TRIAL_SECONDS, **known)]
    found = {str(each.folder): each for each in answers}
    for part in shown(found, verbose=verbose, width=columns()):
        say()
        say(wrapped(part))


def shown(found: Mapping[str, Result], *, verbose: bool = False, width: int | None = None) -> Iterator[str]:
    """Yield what the demo prints: each result, then the table of all."""
    from natgauge.reports.sheet import sheet
    from natgauge.reports.text import render, verdict

    for folder, result in found.items():
        yield f"{verdict(result, brief=not verbose, width=width)}\n  Evidence: {folder}"
    # Each result has its doubts already.
    yield render(replace(sheet(list(found.values())), doubts=()), width)
