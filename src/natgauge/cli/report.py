# SPDX-License-Identifier: Apache-2.0
"""`natgauge report`: tables, a page and data frames from stored results; ratios over commits with `--history`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import cloup

from natgauge import file_access
from natgauge.cli.names import AGAINST, PUBLISHED
from natgauge.cli.parameters import SHARE
from natgauge.cli.say import COLOURS, document, say, say_copies, wrapped
from natgauge.errors import UsageError
from natgauge.tables import columns

if TYPE_CHECKING:
    from natgauge.analysis.history import HistorySeries
    from natgauge.records.measurement import Result
    from natgauge.reports.answers import Sentence
    from natgauge.reports.collected import StoredResults
    from natgauge.reports.heading import OwnWords
    from natgauge.reports.html.drawings import Form
    from natgauge.reports.sheet import Sheet


#: Share by which two comparisons of the same gateways may differ.
_MARGIN: Final = 0.03
_FORMS: Final = ("text", "csv", "json", "draft", "latex", "markdown")
#: Forms with answers in words.
_FOR_PEOPLE: Final = frozenset({"text", "markdown"})
#: Papers have those that compare, what these leave out, and why they are not sure, below the table.
_WITH_ANSWERS: Final = _FOR_PEOPLE | {"latex"}
#: Forms without words of the user's own.
_FOR_PROGRAMS: Final = frozenset({"csv", "json"})


@dataclass(frozen=True, kw_only=True, slots=True)
class _Wanted:
    """What the user asks for by options."""

    form: str | None
    against: str | None
    published: tuple[str, ...]
    like: str | None
    beside: bool
    html: Path | None
    parquet: Path | None
    svg: Path | None
    pdf: Path | None
    bare: bool
    junit: Path | None
    history: bool
    verbose: bool
    margin: float | None

    @property
    def prints(self) -> bool:
        """Whether tables are printed, and not only files written."""
        files = (self.html, self.parquet, self.svg, self.pdf, self.junit)
        return self.form is not None or self.like is not None or all(to is None for to in files)

    @property
    def printed(self) -> list[str]:
        """The options whose documents go to standard output: a table, a page, JUnit's XML."""
        files = {"--html": self.html, "--junit": self.junit}
        streams = [
            f"{name} {to}" for name, to in files.items() if to is not None and file_access.is_standard_output(to)
        ]
        return [*streams, *([f"--format {self.form or 'text'}"] if self.prints else [])]

    @property
    def drawn(self) -> Mapping[Form, Path]:
        """The folders that figures are written into, by the form of their files."""
        folders: tuple[tuple[Form, Path | None], ...] = (("svg", self.svg), ("pdf", self.pdf))
        return {form: folder for form, folder in folders if folder is not None}

    def refuse_contradictions(self) -> None:
        """Refuse options that contradict each other."""
        if len(self.printed) > 1:
            raise UsageError(
                f"report: {self.printed[0]}: standard output is taken by {self.printed[1]}, too, and has room for one "
                "document; name a file for one of them"
            )
        if self.published and self.form not in (None, "text"):
            raise UsageError(
                f"report: --published {self.published[0]}: requires the format text; leave out --format {self.form}, "
                f'or use "natgauge published {self.published[0]} --json"'
            )
        if self.like is None and self.beside:
            raise UsageError("report: --beside: prints published rows in the table of --like; add --like NAME")
        if self.like is not None and (self.against or self.published):
            other = "--against" if self.against else "--published"
            raise UsageError(
                f"report: --like {self.like}: has the shape of the published table; leave out {other}, or use --beside"
            )
        if self.bare and not self.drawn:
            raise UsageError(
                "report: --bare: is for figures as files; add --svg FOLDER or --pdf FOLDER, or leave it out"
            )
        if self.against and self.form == "csv":
            raise UsageError("report: --against turns tables for people, csv has one line per result; leave one out")


@cloup.command("report", short_help="Print tables of results, write pages and data frames.")
@click.argument("folders", nargs=-1, required=True, metavar="FOLDER...", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMS),
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
    "--bare",
    is_flag=True,
    help="With --svg or --pdf: no title and no notes in the figure; a text of the same name has them, for the caption, "
    "and with --pdf a .tex for LaTeX.",
)
@click.option(
    "--junit",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write JUnit's XML instead, which jobs show as tests: failed MUSTs, costs above --fail-above and missed "
    "thresholds are failures.",
)
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Print all doubts in full, and of many gateways, or for a paper, the table of all parameters.",
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
def command(*, folders: tuple[Path, ...], title: str, note: str, **options: Any) -> None:
    """Print the table of RFC 9693 section 6, one column per result, and a table per comparison and audit.

    FOLDER is a results folder of a measurement, comparison or audit, a folder with several of them or with such
    folders, or a campaign's.
    """
    from natgauge.reports.heading import OwnWords
    from natgauge.stored import find_results

    wanted = _Wanted(**options)
    wanted.refuse_contradictions()
    own = OwnWords(title, note)
    _refuse_words(own, wanted)
    if wanted.history:
        _show_history(folders, wanted, own)
        return
    if wanted.margin is not None:
        raise UsageError("report: --margin: belongs to --history; add that, or leave it out")
    has_failed = wanted.html is not None or wanted.junit is not None
    collected = find_results.find(folders, failed=has_failed)
    _refuse(collected, wanted)
    for folder in collected.unended:
        left_out = "without result" if has_failed else "left out"
        say(f"natgauge: {folder}: {left_out}, because its measurement did not end", err=True)
    say_copies(collected)
    if wanted.html is None:
        _say_what_goes_on(collected)
    _write_files(collected, wanted, own)
    if wanted.prints:
        _print_tables(collected, wanted, own)


def _say_what_goes_on(collected: StoredResults) -> None:
    """Print which campaigns have not ended; their figures say it, too, but what has no figure does not."""
    from natgauge.campaigns.journal import is_written
    from natgauge.reports.failures import not_ended

    for folder in collected.campaigns:
        if text := not_ended(folder, runs=is_written(folder)):
            say(f"natgauge: {folder}: {text}", err=True)


def _print_tables(collected: StoredResults, wanted: _Wanted, own: OwnWords) -> None:
    """Print a table of measurements, one for each comparison, and those of audits, with an empty line between them."""
    form, like = wanted.form or "text", wanted.like
    if form == "json":
        from natgauge.reports import documents

        shape = None
        if like is not None:
            shape = _shaped(collected, like, beside=wanted.beside)
        elif wanted.against is not None:
            shape = _turned(collected.results, wanted.against)
        document(documents.document(collected, shape))
        return
    tables = []
    if collected.comparisons:
        tables.append(_compared(collected, form, own))
    if collected.stored:
        tables.append(_measured(collected, form, own, wanted))
    if collected.audits:
        tables.append(_audited(collected, form, own))
    if form == "latex":
        from natgauge.reports import markup

        text = markup.document(tables)
    else:
        text = "\n\n".join(tables)
    say(own.above(form, text), colours=COLOURS)


def _of_paper(results: Sequence[Result], against: str | None) -> Sheet:
    """The medians of the results alone: a paper has few rows."""
    from natgauge.reports import labels, pivot

    if against in (None, "metrics"):
        return pivot.of_metrics(results, () if against else labels.names_of(results))
    return pivot.of_medians(results, against)


def _turned(results: Sequence[Result], against: str, *, narrow: bool = False) -> Sheet:
    """The table of the results with a column for each value of a parameter, or for each metric."""
    from natgauge.reports import pivot

    return pivot.of_metrics(results) if against == "metrics" else pivot.sheet(results, against, narrow=narrow)


def _write_files(collected: StoredResults, wanted: _Wanted, own: OwnWords) -> None:
    written: list[Path] = []
    if wanted.html is not None:
        from natgauge.reports.html import page
        from natgauge.trial.question import command_again

        page.write(collected, wanted.html, command_again, own)
        written += _unless_stream(wanted.html)
    if wanted.junit is not None:
        from natgauge.reports import documents as tests

        tests.write_junit(collected, wanted.junit)
        written += _unless_stream(wanted.junit)
    if wanted.parquet is not None:
        from natgauge.reports import frames

        written += frames.write(collected, wanted.parquet)
    if wanted.drawn:
        from natgauge.reports.html import drawings, page

        groups, below = page.question_groups(collected), _below_figures(collected, bare=wanted.bare)
        for form, folder in wanted.drawn.items():
            written += drawings.write(groups, folder, form, own, below, bare=wanted.bare)
        # With --bare both forms have the same plain text.
        written = list(dict.fromkeys(written))
    _say_written(written, beside=bool(wanted.printed))


def _below_figures(collected: StoredResults, *, bare: bool) -> list[str]:
    """What a figure without its page lacks: day, machine, tool, and what has no result; in a text also conditions."""
    from natgauge.reports.failures import lacks_of, without_result
    from natgauge.reports.heading import heading

    head = heading(collected, ())
    made = head.sentence if bare else head.made
    return [*filter(None, [made]), *without_result(collected, lacks_of(collected), for_paper=True)]


def _say_written(paths: Sequence[Path], *, beside: bool) -> None:
    """Print the paths of written files, on standard error where a document is printed `beside` them."""
    for path in paths:
        say(path, err=beside)


def _unless_stream(path: Path) -> list[Path]:
    return [] if file_access.is_stream(path) else [path]


def _refuse_words(own: OwnWords, wanted: _Wanted) -> None:
    """Refuse a title or a note that nothing would show."""
    form = wanted.form if wanted.prints else None
    shown = wanted.prints or any(to is not None for to in (wanted.html, wanted.svg, wanted.pdf))
    given = "--title" if own.title else "--note" if own.note else ""
    if given and (form in _FOR_PROGRAMS or not shown):
        where = f"--format {form}" if form in _FOR_PROGRAMS else "what is written"
        raise UsageError(
            f"report: {given}: {where} has no place for it; leave it out, or write a page with --html FILE"
        )


def _refuse(collected: StoredResults, wanted: _Wanted) -> None:
    """Refuse what comparisons have no table for."""
    if wanted.form == "csv" and sum(map(bool, (collected.stored, collected.comparisons, collected.audits))) > 1:
        raise UsageError(
            "report: --format csv: measurements, comparisons and audits have different columns; name folders of one "
            "kind"
        )
    if not collected.stored and (wanted.against or wanted.published or wanted.like):
        option = "--against" if wanted.against else "--published" if wanted.published else "--like"
        raise UsageError(f"report: {option} is for results of measurements, the folders hold none")


def _measured(collected: StoredResults, form: str, own: OwnWords, wanted: _Wanted) -> str:
    from natgauge.published.printed import tables_of
    from natgauge.reports import failures, pivot, text
    from natgauge.reports import sheet as sheets
    from natgauge.reports.answers import Sentence, answers, thresholds

    results, against = collected.results, wanted.against
    of = replace(collected, comparisons=(), audits=())
    if wanted.like is not None:
        return _rendered(form, _shaped(collected, wanted.like, beside=wanted.beside), of, own)
    lacks = failures.lacks_of(of)
    if form == "csv":
        from natgauge.reports import csv_table

        return csv_table.table(results, list(failures.missing_of(of, lacks)))
    of_many = against == "metrics" or (against is None and not wanted.verbose and pivot.is_for_many(results))
    if form in _FOR_PEOPLE and of_many:
        shown = replace(pivot.sheet_of_many(results, failures.broken_of(of, lacks)), leads=against is not None)
        if shown.leads:
            shown = replace(shown, doubts=pivot.doubts_of(results, informing=False))
    elif form == "latex" and not wanted.verbose:
        shown = _of_paper(results, against)
        shown = replace(shown, notes=(*(one.text for one in thresholds(results)), *shown.notes))
    else:
        shown = sheets.sheet(results) if against is None else _turned(results, against, narrow=form == "draft")
        if wanted.verbose and form in _FOR_PEOPLE:
            shown = replace(shown, doubts=pivot.doubts_of(results, each=True))
    if against is None and form == "draft":
        measured = text.render_draft(shown)
    else:
        sentences = []
        if form in _WITH_ANSWERS:
            without = failures.without_result(of, lacks, for_paper=form == "latex")
            sentences = [*answers(results), *(Sentence(text, is_gap=True) for text in without)]
        if shown.leads:
            # Its cells are the figures, and its last column their doubts.
            sentences = [one for one in sentences if one.certainty is not None or one.is_gap]
        measured = _answered(form, sentences, shown, of, own, brief=not wanted.verbose)
    others = tables_of(wanted.published, results)
    return f"Measured here:\n{measured}\n\n{others}" if others else measured


def _answered(
    form: str,
    sentences: Sequence[Sentence],
    shown: Sheet,
    collected: StoredResults,
    own: OwnWords,
    *,
    brief: bool = False,
) -> str:
    """Return the sheet of these records in a form; people have the answers above the table, text also the doubts.

    With `brief` the answers of a paper are comments behind its table, except for what restricts the table itself.
    """
    from natgauge.reports import markup
    from natgauge.reports.answers import not_sure
    from natgauge.reports.heading import heading
    from natgauge.reports.sheet import of_trials
    from natgauge.reports.text import answered

    measured = heading(collected, (), own).sentence
    if form == "text":
        return wrapped(answered(sentences, shown, columns(), measured))
    if form == "markdown":
        texts = [*(sentence.text for sentence in sentences), not_sure(sentences, listed=bool(shown.doubts)), measured]
        return markup.answered(list(filter(None, texts)), shown)
    if form == "latex":
        compared = [one for one in sentences if one.certainty is not None or one.unlike or one.is_gap]
        why = not_sure(compared, listed=bool(shown.doubts))
        for_text = [one for one in compared if brief and one.certainty is not None]
        restricting = [one for one in compared if one not in for_text]
        notes = [*(one.text for one in restricting), "" if for_text else why, *shown.notes]
        notes += [of_trials(collected.results)] if brief else []
        texts = [*(one.text for one in for_text), why if for_text else ""]
        shown = replace(shown, notes=tuple(filter(None, notes)), for_text=tuple(filter(None, texts)))
    return _rendered(form, shown, collected, own)


def _rendered(form: str, shown: Sheet, collected: StoredResults, own: OwnWords) -> str:
    """Return the sheet of these records in a form; text is as wide as the terminal, drafts have no frames."""
    from natgauge.reports import csv_table, markup, text
    from natgauge.reports.heading import caption

    if form == "text":
        return text.render(shown, columns())
    if form == "latex":
        return markup.render_latex(shown, *caption(collected, own))
    if form == "draft":
        return text.render_unframed(shown)
    return markup.render_markdown(shown) if form == "markdown" else csv_table.render(shown)


def _shaped(collected: StoredResults, name: str, *, beside: bool) -> Sheet:
    from natgauge.published import like

    return like.sheet(name, collected.results, beside=beside)


def _compared(collected: StoredResults, form: str, own: OwnWords) -> str:
    """A table for each comparison; CSV has one for all."""
    from natgauge.reports import comparison

    if form == "csv":
        return comparison.csv_table(collected.records)
    is_text = form == "text"
    tables = []
    for one in collected.comparisons:
        sheet = comparison.sheet(one.record, short=is_text, by_frame=is_text)
        of = replace(collected, stored=(), comparisons=(one,), audits=())
        tables.append(_answered(form, comparison.sentences(one.record), sheet, of, own))
    return "\n\n".join(tables)


def _audited(collected: StoredResults, form: str, own: OwnWords) -> str:
    """The table of an audit, or one table of several audits with a column for each gateway."""
    from natgauge.reports import audit

    records = [stored.record for stored in collected.audits]
    marked = form in ("text", "markdown")
    of = replace(collected, stored=(), comparisons=())
    return _answered(form, audit.answers(records), audit.table(records, marked=marked), of, own)


# Ratios of stored comparisons over commits or dates


def _show_history(folders: Sequence[Path], wanted: _Wanted, own: OwnWords) -> None:
    """Print the history of all comparisons of these folders, or write it into files."""
    from natgauge.analysis.history import history
    from natgauge.reports.history import dated
    from natgauge.stored import find_results

    others = ("against", "published", "like", "parquet", "junit")
    if wrong := next((name for name in others if getattr(wanted, name)), ""):
        raise UsageError(f"report: --{wrong}: is not for --history; leave one of both out")
    share = _MARGIN if wanted.margin is None else wanted.margin
    if not 0 <= share < 1:
        raise UsageError(f"report: --margin {share:g} is not from 0 to below 1 (100%); give a share such as 5%")
    collected = find_results.find(folders, as_labelled=True)
    say_copies(collected)
    if not collected.comparisons:
        raise UsageError("report: --history: the folders hold no comparison; name results of natgauge compare")
    every = history(dated(collected.comparisons), share)
    _say_written(_write_history(every, share, wanted, own), beside=bool(wanted.printed))
    if wanted.prints:
        _print_history(every, share, own, wanted.form or "text")


def _write_history(every: Sequence[HistorySeries], margin: float, wanted: _Wanted, own: OwnWords) -> list[Path]:
    """Write the page and the figures; return the paths of the files."""
    from natgauge.reports import history as views

    written: list[Path] = []
    if wanted.html is not None:
        from natgauge.reports.html import page

        text = page.history_page(views.TITLE, views.sentences(every), views.groups(every, margin), own)
        file_access.write(wanted.html, text, what="report", remedy="name a file in a folder of yours")
        written += _unless_stream(wanted.html)
    for form, folder in wanted.drawn.items():
        from natgauge.reports.html import drawings

        written += drawings.write(views.groups(every, margin), folder, form, own, bare=wanted.bare)
    return written


def _print_history(every: Sequence[HistorySeries], margin: float, own: OwnWords, form: str) -> None:
    from natgauge.reports import history as views
    from natgauge.reports import markup
    from natgauge.reports.text import answered, render_unframed

    sheet, sentences = views.sheet(every, margin), views.sentences(every)
    if form == "json":
        document(views.document(every, margin))
        return
    if form == "csv":
        say(views.csv_table(every))
        return
    text = render_unframed(sheet) if form == "draft" else markup.render_latex(sheet, own.title or views.TITLE)
    if form == "markdown":
        text = "\n".join([*(f"- {markup.escaped(one.text)}" for one in sentences), "", markup.render_markdown(sheet)])
    elif form == "text":
        text = wrapped(answered(sentences, sheet, columns()))
    say(own.above(form, text))
