# SPDX-License-Identifier: Apache-2.0
"""`natgauge report`: tables, a page and data frames from stored results."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import cloup

from natgauge.cli import over_commits
from natgauge.cli.generator import SHARE
from natgauge.cli.names import AGAINST, PUBLISHED
from natgauge.cli.say import COLOURS, document, say, wrapped
from natgauge.errors import UsageError

if TYPE_CHECKING:
    from natgauge.records.measurement import Result
    from natgauge.reports.answers import Sentence
    from natgauge.reports.collected import StoredResults
    from natgauge.reports.html.drawings import Form
    from natgauge.reports.own_words import OwnWords
    from natgauge.reports.sheet import Sheet

#: Form of a table -> the module of `natgauge.reports` that makes it.
_FORMS: Final[Mapping[str, str]] = {
    "text": "text",
    "csv": "csv_table",
    "json": "json_report",
    "draft": "draft",
    "latex": "latex",
    "markdown": "markdown",
}


#: Forms without words of the user's own.
_FOR_PROGRAMS: Final = frozenset({"csv", "json"})


@cloup.command("report", short_help="Print tables of results, write pages and data frames.")
@click.argument("folders", nargs=-1, required=True, metavar="FOLDER...", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(list(_FORMS)),
    help="Format of the table: text (the default), one line per result (csv), one object with all figures in full "
    "(json), 72 columns wide (draft), for a paper (latex), or for a job's summary (markdown).",
)
@click.option(
    "--against",
    type=AGAINST,
    metavar="NAME",
    help="Columns of the table: the values of a parameter that differs between the results (cores, connections, "
    "directions, frame-size, alpha, order, hash-size ...), with rows for each metric and device; or metrics: a column "
    "for each, with the median of each device.",
)
@click.option(
    "--published",
    type=PUBLISHED,
    multiple=True,
    metavar="NAME",
    help="Print this published table, too, which its authors measured on their hardware; `natgauge published` lists "
    "the tables.",
)
@click.option(
    "--like",
    type=PUBLISHED,
    metavar="NAME",
    help="Shape of the table: the rows, columns, units and order of this published table. A cell without result has a "
    "letter, with the reason below the table.",
)
@click.option("--beside", is_flag=True, help="With --like: print the published row below each row.")
@click.option(
    "--html",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write a self-contained page with charts instead; an existing file is replaced; - is standard output.",
)
@click.option(
    "--parquet",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Write data frames as Parquet files instead, for notebooks: trials, measurements, series, estimates.",
)
@click.option(
    "--svg",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Write each figure of the page as an SVG file instead, for papers and slides.",
)
@click.option("--pdf", metavar="FOLDER", type=click.Path(path_type=Path), help="The same as PDF files.")
@click.option(
    "--junit",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write JUnit's XML instead, which jobs show as tests: what a gateway MUST do and does not, and costs above "
    "--fail-above, are failures.",
)
@click.option(
    "--history",
    is_flag=True,
    help="Show the ratios of stored comparisons over their commits (natgauge compare --commit) or dates, and mark "
    "changes.",
)
@click.option(
    "--margin",
    type=SHARE,
    metavar="SHARE",
    help="With --history: share by which two runs of one gateway may differ on this machine.  [default: 3%]",
)
@click.option("--title", metavar="TEXT", default="", help="Title of the page, of each figure, or of the printed table.")
@click.option(
    "--note", metavar="TEXT", default="", help="Words of your own below the title; an empty line ends a paragraph."
)
def command(
    *,
    folders: tuple[Path, ...],
    form: str | None,
    against: str | None,
    published: tuple[str, ...],
    like: str | None,
    beside: bool,
    html: Path | None,
    parquet: Path | None,
    svg: Path | None,
    pdf: Path | None,
    junit: Path | None,
    history: bool,
    margin: float | None,
    title: str,
    note: str,
) -> None:
    """Print the table of RFC 9693 section 6, one column per result, and a table per comparison and audit.

    FOLDER is a results folder of a measurement, comparison or audit, a folder with several of them, or a campaign's.
    """
    from natgauge.reports.own_words import OwnWords
    from natgauge.stored import find_results

    _refuse_options(form=form, against=against, published=published, like=like, beside=beside)
    prints = form is not None or like is not None or all(to is None for to in (html, parquet, svg, pdf, junit))
    own = OwnWords(title, note)
    _refuse_words(own, form if prints else None, shown=prints or any(to is not None for to in (html, svg, pdf)))
    if history:
        others = {"against": against, "published": published, "like": like, "parquet": parquet, "junit": junit}
        drawn: dict[Form, Path | None] = {"svg": svg, "pdf": pdf}
        over_commits.show(folders, form, html=html, drawn=drawn, margin=margin, others=others, own=own)
        return
    if margin is not None:
        raise UsageError("report: --margin: belongs to --history; add that, or leave it out")
    collected = find_results.find(folders, failed=html is not None or junit is not None)
    _refuse(collected, form=form, against=against, published=published, like=like)
    for folder in collected.unended:
        left_out = "left out" if html is None and junit is None else "without result"
        say(f"natgauge: {folder}: {left_out}, because its measurement did not end", err=True)
    if html is None and junit is None:
        _say_what_goes_on(collected)
    _write_files(collected, own, html=html, parquet=parquet, svg=svg, pdf=pdf, junit=junit)
    if prints:
        _print_tables(collected, form or "text", own, against=against, published=published, like=like, beside=beside)


def _say_what_goes_on(collected: StoredResults) -> None:
    """Print which campaigns have not ended; their figures say it, too, but what has no figure does not."""
    from natgauge.reports.failures import not_ended

    for folder in collected.campaigns:
        if text := not_ended(folder):
            say(f"natgauge: {folder}: {text}", err=True)


def _print_tables(
    collected: StoredResults,
    form: str,
    own: OwnWords,
    *,
    against: str | None,
    published: tuple[str, ...],
    like: str | None,
    beside: bool,
) -> None:
    """Print a table of measurements, one for each comparison, and those of audits, with an empty line between them."""
    if form == "json":
        from natgauge.reports import json_report

        shape = None
        if like is not None:
            shape = _shaped(collected, like, beside=beside)
        elif against is not None:
            shape = _turned(collected.results, against)
        document(json_report.document(collected, shape))
        return
    tables = []
    if collected.stored and like is None:
        tables.append(_measured(collected, form, own, against, published))
    elif collected.stored and like is not None:
        of = replace(collected, comparisons=(), audits=())
        tables.append(_rendered(form, _shaped(collected, like, beside=beside), of, own))
    if collected.comparisons:
        tables.append(_compared(collected, form, own))
    if collected.audits:
        tables.append(_audited(collected, form, own))
    say(own.above(form, "\n\n".join(tables)), colours=COLOURS)


def _turned(results: Sequence[Result], against: str, *, narrow: bool = False) -> Sheet:
    """The table of the results with a column for each value of a parameter, or for each metric."""
    from natgauge.reports import pivot

    return pivot.of_metrics(results) if against == "metrics" else pivot.sheet(results, against, narrow=narrow)


def _write_files(
    collected: StoredResults,
    own: OwnWords,
    *,
    html: Path | None,
    parquet: Path | None,
    svg: Path | None,
    pdf: Path | None,
    junit: Path | None,
) -> None:
    if html is not None:
        from natgauge.reports.html import page
        from natgauge.trial.repeating import command_again

        page.write(collected, html, command_again, own)
        _say_unless_stream(html)
    if junit is not None:
        from natgauge.reports import junit as tests

        tests.write(collected, junit)
        _say_unless_stream(junit)
    written: list[Path] = []
    if parquet is not None:
        from natgauge.reports import frames

        written += frames.write(collected, parquet)
    drawn: tuple[tuple[Path | None, Form], ...] = ((svg, "svg"), (pdf, "pdf"))
    for folder, form in drawn:
        if folder is not None:
            from natgauge.reports.html import drawings, page

            written += drawings.write(page.question_groups(collected), folder, form, own)
    for path in written:
        say(path)


def _say_unless_stream(path: Path) -> None:
    from natgauge import outputs

    if not outputs.is_stream(path):
        say(path)


def _refuse_words(own: OwnWords, form: str | None, *, shown: bool) -> None:
    """Refuse a title or a note that nothing would show."""
    given = "--title" if own.title else "--note" if own.note else ""
    if given and (form in _FOR_PROGRAMS or not shown):
        where = f"--format {form}" if form in _FOR_PROGRAMS else "what is written"
        raise UsageError(
            f"report: {given}: {where} has no place for it; leave it out, or write a page with --html FILE"
        )


def _refuse_options(
    *,
    form: str | None,
    against: str | None,
    published: tuple[str, ...],
    like: str | None,
    beside: bool,
) -> None:

    if published and form not in (None, "text"):
        raise UsageError(
            f"report: --published {published[0]}: requires the format text; leave out --format {form}, or use "
            f'"natgauge published {published[0]} --json"'
        )
    if like is None and beside:
        raise UsageError("report: --beside: prints published rows in the table of --like; add --like NAME")
    if like is not None and (against or published):
        other = "--against" if against else "--published"
        raise UsageError(
            f"report: --like {like}: has the shape of the published table; leave out {other}, or use --beside"
        )
    if against and form == "csv":
        raise UsageError("report: --against turns tables for people, csv has one line per result; leave one out")


def _refuse(
    collected: StoredResults,
    *,
    form: str | None,
    against: str | None,
    published: tuple[str, ...],
    like: str | None,
) -> None:
    """Refuse what comparisons have no table for."""
    if form == "csv" and sum(map(bool, (collected.stored, collected.comparisons, collected.audits))) > 1:
        raise UsageError(
            "report: --format csv: measurements, comparisons and audits have different columns; name folders of one "
            "kind"
        )
    if not collected.stored and (against or published or like):
        option = "--against" if against else "--published" if published else "--like"
        raise UsageError(f"report: {option} is for results of measurements, the folders hold none")


def _measured(
    collected: StoredResults, form: str, own: OwnWords, against: str | None, published: tuple[str, ...]
) -> str:
    from natgauge.published.printed import tables_of
    from natgauge.reports import draft
    from natgauge.reports import sheet as sheets
    from natgauge.reports.answers import answers

    results = collected.results
    if form == "csv":
        return str(_view(form).table(results))
    shown = sheets.sheet(results) if against is None else _turned(results, against, narrow=form == "draft")
    if against is None and form == "draft":
        measured = draft.render(shown)
    else:
        of = replace(collected, comparisons=(), audits=())
        measured = _answered(form, answers(results) if form == "text" else (), shown, of, own)
    others = tables_of(published, results)
    return f"Measured here:\n{measured}\n\n{others}" if others else measured


def _answered(form: str, sentences: Sequence[Sentence], shown: Sheet, collected: StoredResults, own: OwnWords) -> str:
    """Return the sheet of these records in a form; text has the answers and the doubts above the table."""
    from natgauge.reports.text import answered
    from natgauge.tables import columns

    if form == "text":
        return wrapped(answered(sentences, shown, columns()))
    return _rendered(form, shown, collected, own)


def _rendered(form: str, shown: Sheet, collected: StoredResults, own: OwnWords) -> str:
    """Return the sheet of these records in a form; text is as wide as the terminal, drafts have no frames."""
    from natgauge.reports import draft, latex, text
    from natgauge.reports.heading import heading
    from natgauge.tables import columns

    if form == "text":
        return text.render(shown, columns())
    if form == "latex":
        head = heading(collected, (), own)
        return latex.render(shown, head.title, head.sentence)
    return draft.plain(shown) if form == "draft" else str(_view(form).render(shown))


def _view(form: str) -> Any:
    return importlib.import_module(f"natgauge.reports.{_FORMS[form]}")


def _shaped(collected: StoredResults, name: str, *, beside: bool) -> Sheet:
    from natgauge.published import like

    return like.sheet(name, collected.results, beside=beside)


def _compared(collected: StoredResults, form: str, own: OwnWords) -> str:
    """A table for each comparison; CSV has one for all."""
    from natgauge.reports import comparison

    if form == "csv":
        return comparison.csv_table(collected.records)
    return "\n\n".join(
        _answered(form, comparison.sentences(one.record), comparison.sheet(one.record), of, own)
        for one in collected.comparisons
        for of in [replace(collected, stored=(), comparisons=(one,), audits=())]
    )


def _audited(collected: StoredResults, form: str, own: OwnWords) -> str:
    """The table of an audit, or one table of several audits with a column for each gateway."""
    from natgauge.reports import audit

    records = [stored.record for stored in collected.audits]
    marked = form in ("text", "markdown")
    of = replace(collected, stored=(), comparisons=())
    return _answered(form, audit.answers(records), audit.table(records, marked=marked), of, own)
