# SPDX-License-Identifier: Apache-2.0
"""`natgauge report --history`: ratios of stored comparisons over commits or dates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from natgauge import outputs
from natgauge.cli.say import document, say, say_copies, wrapped
from natgauge.errors import UsageError

if TYPE_CHECKING:
    from natgauge.analysis.history import HistorySeries
    from natgauge.reports.heading import OwnWords
    from natgauge.reports.html.drawings import Form

#: Share by which two comparisons of the same gateways may differ.
_MARGIN: Final = 0.03


def show(
    folders: Sequence[Path],
    form: str | None,
    *,
    html: Path | None,
    drawn: Mapping[Form, Path],
    bare: bool,
    margin: float | None,
    others: Mapping[str, object],
    own: OwnWords,
) -> None:
    """Print the history of all comparisons of these folders, or write it into files."""
    from natgauge.analysis.history import history
    from natgauge.reports.history import dated
    from natgauge.stored import find_results

    wrong = next((name for name, value in others.items() if value), None)
    if wrong is not None:
        raise UsageError(f"report: --{wrong}: is not for --history; leave one of both out")
    share = _MARGIN if margin is None else margin
    if not 0 <= share < 1:
        raise UsageError(f"report: --margin {share:g} is not from 0 to below 1 (100%); give a share such as 5%")
    collected = find_results.find(folders, as_labelled=True)
    say_copies(collected)
    comparisons = collected.comparisons
    if not comparisons:
        raise UsageError("report: --history: the folders hold no comparison; name results of natgauge compare")
    every = history(dated(comparisons), share)
    prints = form is not None or (html is None and not drawn)
    to_stream = html is not None and outputs.is_standard_output(html)
    say_written(_write(every, share, own, html, drawn, bare=bare), beside=prints or to_stream)
    if prints:
        _show(every, share, own, form or "text")


def _write(
    every: Sequence[HistorySeries],
    margin: float,
    own: OwnWords,
    html: Path | None,
    drawn: Mapping[Form, Path],
    *,
    bare: bool,
) -> list[Path]:
    """Write the page and the figures; return the paths of the files."""
    from natgauge.reports import history as views

    written: list[Path] = []
    if html is not None:
        from natgauge.reports.html import page

        text = page.history_page(views.TITLE, views.sentences(every), views.groups(every, margin), own)
        outputs.write(html, text, what="report", remedy="name a file in a folder of yours")
        written += [] if outputs.is_stream(html) else [html]
    for kind, folder in drawn.items():
        from natgauge.reports.html import drawings

        written += drawings.write(views.groups(every, margin), folder, kind, own, bare=bare)
    return written


def say_written(paths: Sequence[Path], *, beside: bool) -> None:
    """Print the paths of written files, on standard error where a document is printed `beside` them."""
    for path in paths:
        say(path, err=beside)


def _show(every: Sequence[HistorySeries], margin: float, own: OwnWords, form: str) -> None:
    from natgauge.reports import draft, latex, markdown
    from natgauge.reports import history as views
    from natgauge.reports.text import answered
    from natgauge.tables import columns

    sheet, sentences = views.sheet(every, margin), views.sentences(every)
    if form == "json":
        document(views.document(every, margin))
        return
    if form == "csv":
        say(views.csv_table(every))
        return
    text = draft.plain(sheet) if form == "draft" else latex.render(sheet, own.title or views.TITLE)
    if form == "markdown":
        text = "\n".join([*(f"- {markdown.escaped(one.text)}" for one in sentences), "", markdown.render(sheet)])
    elif form == "text":
        text = wrapped(answered(sentences, sheet, columns()))
    say(own.above(form, text))
