# SPDX-License-Identifier: Apache-2.0
"""The same rows in every form, and results found wherever they lie."""

from __future__ import annotations

import csv
import html
import io
import itertools
import json
import re
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from tests.simulated_lab import measure
from tests.unit.conftest import Ran, Reported
from tests.unit.golden import Golden
from tests.unit.made_comparisons import compared, estimate
from tests.unit.made_corpus import by_rates
from tests.unit.made_results import kept, made
from tests.unit.pages import lines_of
from tests.unit.simulated import Gateway

from natgauge import Result
from natgauge.cli import run

FIGURES = ("typical_latency_us", "worst_case_latency_us")
#: Words with which each form has all rows.
WHOLE = {"text": ("-v",), "markdown": ("-v",), "latex": ("-v",), "csv": (), "draft": ()}
DOUBTS = [{"word": "single repetition", "text": "one"}, {"word": "wide spread", "text": "wide"}]


def results(number: int, **parameters: Any) -> list[Result]:
    return [
        made(
            [100_000.0 * (each + 1), 101_000.0 * (each + 1)],
            median=100_500.0 * (each + 1),
            metric="validated-connection-rate",
            unit="connections/s",
            doubts=DOUBTS,
            parameters={"gateway": f"gateway-{each}", "connections": 10**each, **parameters},
        )
        for each in range(number)
    ]


def folder(path: Path, result: Result) -> Path:
    """A results folder of this name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    (own,) = kept(path.with_name(f"{path.name}-made"), result).iterdir()
    own.rename(path)
    path.with_name(f"{path.name}-made").rmdir()
    return path


@pytest.fixture
def said(tmp_path: Path, ran: Ran, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Report results in a form, on a wide terminal."""
    monkeypatch.setenv("COLUMNS", "400")
    numbers = itertools.count()

    def of(form: str, *results: Result, words: tuple[str, ...] = ()) -> str:
        place = tmp_path / f"said-{next(numbers)}"
        folders = [str(kept(place / str(at), one)) for at, one in enumerate(results)]
        text: str = ran(["report", *folders, "--format", form, *words]).out
        return text

    return of


def table_of(text: str) -> list[list[str]]:
    """The rows of cells of the only table of a text."""
    _, _, table = text.partition("\n\n")
    return [re.split(" {2,}", line.strip()) for line in table.partition("\n\n")[0].splitlines()]


@pytest.mark.parametrize("number", [1, 2, 3, 7])
def test_no_line_of_a_draft_is_longer_than_it_allows(number: int, said: Callable[..., str]) -> None:
    lines = said("draft", *results(number)).splitlines()
    assert max(map(len, lines)) <= 72
    assert [line for line in lines if line != line.rstrip()] == []


@pytest.mark.parametrize("form", ["text", "markdown", "latex", "csv"])
def test_every_form_has_delays_with_and_without_the_frames_that_were_due_in_stalls(
    form: str, golden: Golden, said: Callable[..., str]
) -> None:
    figures = {
        "typical_latency_us": 10.0,
        "worst_case_latency_us": 25_017.0,
        "worst_case_latency_without_stalls_us": 11.25,
    }
    found = said(form, made([10.0], metric="latency", unit="us", figures=figures), words=WHOLE[form])
    if form == "csv":
        (row,) = csv.DictReader(io.StringIO(found))
        found = "\n".join(f"{name}: {cell}" for name, cell in row.items() if cell)
    (worst, without) = (line for line in found.splitlines() if "worst case latency" in line)
    golden([worst, without])
    assert "25.0 k" in worst or "25017" in worst
    assert "11.2" in without
    if form != "csv":
        assert "stalls" not in said(form, made([1.0]), words=WHOLE[form])


def test_every_form_has_the_medians_of_both_latencies(
    golden: Golden, said: Callable[..., str], reported: Reported
) -> None:
    """RFC 8219 section 7.2: both are medians over all repetitions; that of one repetition is another figure."""
    each = {"typical_latency_us": [10.0, 12.0, 11.0], "worst_case_latency_us": [80.0, 33.0, 25.0]}
    result = made([10.0, 12.0, 11.0], metric="latency", unit="us", figures=each)
    for form in ("text", "markdown", "latex", "draft"):
        (line,) = (
            line
            for line in said(form, result, words=WHOLE[form]).splitlines()
            if line.strip("| ").startswith("worst case latency")
        )
        assert re.findall(r"\b\d+\b", line) == ["33", "25", "80"]
    columns = dict(zip(*csv.reader(io.StringIO(said("csv", result))), strict=True))
    assert columns["worst case latency (us)"] == "33.0"
    assert columns["worst case latency, minimum (us)"] == "25.0"
    assert columns["worst case latency, maximum (us)"] == "80.0"
    golden(lines_of(evidence_of(reported(result, html=True))))


def test_both_latencies_are_medians_of_those_of_the_repetitions() -> None:
    turns = itertools.count(1)

    def slower(gateway: Gateway, _plan: object) -> None:
        gateway.delays = [next(turns) * part * 1e-6 for part in range(1, 1001)]

    measured = measure("latency", Gateway(becomes=slower), repeat=3, connections=1000)
    for name in FIGURES:
        each = [one["figures"][name] for one in measured.repetitions]
        figure = measured.document["figures"][name]
        assert len(set(each)) > 1
        assert [figure[end] for end in ("median", "minimum", "maximum")] == [
            statistics.median(each),
            min(each),
            max(each),
        ]


def test_a_single_repetition_is_not_called_a_median(golden: Golden, reported: Reported) -> None:
    figures = dict(zip(FIGURES, (10.0, 25.0), strict=True))
    shown = made([10.0], metric="latency", unit="us", figures=figures)
    golden(lines_of(evidence_of(reported(shown, html=True))))
    assert "RFC 1242" not in evidence_of(reported(made([10.0]), html=True))


def evidence_of(page: str) -> str:
    """What a page says of its only result."""
    evidence = page.partition('id="result-1">')[2]
    assert evidence
    return evidence.partition("<p>The folder holds no trials")[0]


def rows_of_draft(found: str) -> list[list[list[str]]]:
    """The rows of each table; broken cells are put together again, without blanks."""
    tables: list[list[list[str]]] = []
    for line in found.splitlines():
        if line.startswith("+="):
            # The rule above the heading opens a table, the one below it goes on with it.
            if not tables or len(tables[-1]) > 1:
                tables.append([])
            tables[-1].append([])
        elif line.startswith("+-"):
            tables[-1].append([])
        elif line.startswith("| "):
            cells = [cell.replace(" ", "") for cell in line[2:-2].split(" | ")]
            row = tables[-1][-1]
            tables[-1][-1] = [one + more for one, more in zip(row, cells, strict=True)] if row else cells
    return [[row for row in rows if row] for rows in tables]


@pytest.mark.parametrize(("number", "least"), [(1, 1), (7, 2)])
def test_a_draft_has_every_cell_of_the_text_whole(number: int, least: int, said: Callable[..., str]) -> None:
    shown = [*results(number - 1), made([1.0], parameters={"gateway": "a" * 90, "version": ["x 1", "y 2"]})]
    draft = said("draft", *shown)
    tables = rows_of_draft(draft)
    assert len(tables) >= least
    wanted = [[cell.replace(" ", "") for cell in row] for row in cells_of("markdown", said("markdown", *shown))]
    assert len(wanted) > 10
    assert all([row[0] for row in rows] == [row[0] for row in wanted] for rows in tables)
    columns = [column for rows in tables for column in list(zip(*rows, strict=True))[1:]]
    assert columns == list(zip(*wanted, strict=True))[1:]
    assert max(map(len, draft.splitlines())) <= 72


def cells_of(form: str, found: str) -> list[list[str]]:
    """The cells of a table, marks of the form taken away."""
    if form == "markdown":
        lines = [line for line in found.splitlines() if line.startswith("|") and "---" not in line]
        return [[re.sub(r"\\(.)", r"\1", cell.strip()) for cell in line[1:-1].split(" | ")] for line in lines]
    lines = [line for line in found.splitlines() if line.endswith(r" \\")]
    return [[re.sub(r"\\(.)", r"\1", cell) for cell in line.removesuffix(r" \\").split(" & ")] for line in lines]


def in_latex(text: str) -> str:
    """A text with the marks of LaTeX for what is no letter in it."""
    return text.replace("%", r"\%").replace("±", r"$\pm$")


@pytest.mark.parametrize(("last", "gaps"), [({"placement": "isolated"}, (1, 0)), ({}, (0, 1))])
def test_a_paper_has_what_its_comparisons_leave_out(
    last: dict[str, Any], gaps: tuple[int, int], said: Callable[..., str], reported: Reported
) -> None:
    """Seen: the order of gateways under different conditions, without a word on these."""
    shared = {"kind": "nat44", "placement": "shared"}
    every = [("a", shared), *([] if last else [("b", shared)]), ("c", {"frame_size": 1518, **shared, **last})]
    shown = [
        made([3e5 + at] * 6, parameters={"gateway": gateway, **given}) for at, (gateway, given) in enumerate(every)
    ]
    answers = reported(*shown)["answers"]
    unlike, left_out = (
        [one["text"] for one in answers if one["text"].startswith(begin)]
        for begin in ("Under different conditions", "Not compared with the others")
    )
    assert (len(unlike), len(left_out)) == gaps
    found = said("latex", *shown)
    for one in answers:
        is_kept = one["certainty"] is not None or one["text"] in (*unlike, *left_out)
        assert (in_latex(one["text"]) in found) is is_kept


@pytest.mark.parametrize("form", ["markdown", "latex"])
def test_each_form_has_the_rows_of_the_text(form: str, golden: Golden, said: Callable[..., str]) -> None:
    shown = results(2)
    rows = table_of(said("text", *shown, words=("-v",)))
    assert rows[0] == ["gateway", "gateway-0", "gateway-1"]
    assert len(rows) > 10
    units = {"median", "1st percentile", "99th percentile", "mean", "standard deviation"} if form == "latex" else set()
    found = said(form, *shown, words=("-v",))
    assert cells_of(form, found) == [
        [f"{heading} (connections/s)" if heading in units else heading, *cells] for heading, *cells in rows
    ]
    # Below it each doubt is, too; in a paper in words of its own.
    last = {"markdown": "| doubts |", "latex": r"\end{tabular}"}[form]
    golden(found.partition(last)[2].splitlines()[1:])


def test_markdown_is_read_by_others_as_the_same_cells_and_notes(said: Callable[..., str]) -> None:
    shown = results(2, version=["x | y", "*z* <b> `c`"], title="*t* | <u>")
    page = MarkdownIt("commonmark").enable("table").render(said("markdown", *shown, words=("-v",)))
    cells = [html.unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", page)]
    text = said("text", *shown, words=("-v",))
    assert cells == [cell for row in table_of(text) for cell in row]
    notes = [html.unescape(note) for note in re.findall(r"<li>(.*?)</li>", page)]
    assert notes == text.partition("\n\n")[0].splitlines()


def test_a_table_of_a_paper_floats_with_caption_machine_and_label(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {"profile": "quick", "error": "10%"}
    where = folder(tmp_path / "one", *results(1, cpu="EPYC 9_4", kernel="6.1", begun=[1_795_696_870.0], **settings))
    for words, title in (
        ([], "New connections per second, each with a reply (RFC 9693 section 4.6) of gateway-0, in connections/s"),
        (["--title", "50 % & ½ ± 1."], r"50 \% \& ½ $\pm$ 1"),
    ):
        assert run(["report", "--format", "latex", "-v", str(where), *words]) == 0
        found = capsys.readouterr().out
        (caption,) = re.findall(r"^\\caption\{(.*)\}$", found, re.MULTILINE)
        assert caption.startswith(f"{title}. Measured on 2026-11-26, on EPYC 9\\_4, Linux 6.1")
        (label,) = re.findall(r"^\\label\{tab:([a-z0-9-]+)\}$", found, re.MULTILINE)
        assert label.strip("-") == label
        # Seen: the paper did not say with what, and how, its table was measured.
        assert r"; natgauge 1, profile quick, search error 10 \%." in caption
        assert r"median (connections/s) & 100" in found
        # Each environment ends in the order in which they begin, each row has the columns of its table.
        opened: list[str] = []
        for what, name in re.findall(r"\\(begin|end)\{(\w+)\}", found):
            opened = [*opened, name] if what == "begin" else opened[:-1] if opened[-1] == name else ["crossed"]
        assert opened == []
        (columns,) = re.findall(r"\\begin\{tabular\}\{(\w+)\}", found)
        assert {len(row) for row in cells_of("latex", found)} == {len(columns)}


def test_a_table_of_a_paper_has_a_median_for_each_result_and_every_row_only_by_v(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seen: 50 rows for six figures, whose ranges were others than those of the figure beside it."""
    for number in range(6):
        gateway, connections = f"g{number % 2}", 10 ** (number // 2)
        (one,) = results(1, gateway=gateway, connections=connections, destination_port_count=connections)
        folder(tmp_path / f"r{number}", one)
    said = {"of runs": "rackets are the range of the repetitions", "of values": "are of the measured values alone"}

    def shown(*words: str) -> tuple[list[list[str]], set[str]]:
        assert run(["report", "--format", "latex", str(tmp_path), *words]) == 0
        found = capsys.readouterr().out
        return cells_of("latex", found), {name for name, sentence in said.items() if sentence in found}

    series, ranges = shown("--against", "connections")
    assert [row[0] for row in series] == [
        "connections", "destination ports",
        "g0, median", "its 1st and 99th percentile", "g1, median", "its 1st and 99th percentile",
    ]  # fmt: skip
    assert {len(row) for row in series} == {4}
    assert all("pm" in cell or " to " in cell for row in series[2::2] for cell in row[1:]), series
    assert all(cell.count(", ") == 1 for row in series[3::2] for cell in row[1:]), series
    assert ranges == {"of runs"}
    matrix, ranges = shown()
    assert [len(matrix), ranges] == [7, {"of runs"}]
    for words in ([], ["--against", "connections"]):
        every, ranges = shown("-v", *words)
        assert len(every) > 15
        assert [row[0] for row in every if "percentile" in row[0]]
        assert ranges == {"of values"}


def rates_of(tmp_path: Path, **changed: Any) -> Path:
    """Results of two gateways at two numbers of connections, whose repetitions took turns on a virtual machine."""
    for at, (gateway, connections) in enumerate((name, n) for n in (1000, 9000) for name in ("a", "b")):
        parameters = {
            "gateway": gateway, "connections": connections, "device_cores": 1, "device_cpus": [1], "hypervisor": True,
            "error": "5%", "labs": 4, "begun": [float(100 * turn + at) for turn in range(4)], "kernel": "6.1",
            "version": ["Linux 6.1", f"software of {gateway} 1.2"], "placement": "shared",
        }  # fmt: skip
        rate = 3e5 if gateway == "a" else 2e5
        values = [rate * part for part in (0.99, 1.0, 1.01, 1.0)]
        own = {"metric": "connection-rate", "unit": "connections/s", **changed}
        result = made(values, parameters=parameters, **own)
        folder(tmp_path / f"{gateway}-{connections}", result)
    return tmp_path


def test_a_caption_names_the_quantity_as_its_standard_and_says_what_the_interval_is_made_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seen: "new connections per second" above, rows of "connection-rate", and "± 12 %" of an error of 5 %."""
    assert run(["report", "--format", "latex", "--against", "connections", str(rates_of(tmp_path))]) == 0
    found = capsys.readouterr().out
    (caption,) = re.findall(r"^\\caption\{(.*)\}$", found, re.MULTILINE)
    term = "Maximum connection establishment rate (RFC 9693 section 4.5) of a and b, in connections/s. "
    assert caption.startswith(term)
    assert "connection-rate" not in found.partition(r"\end{tabular}")[0]
    # The kernel is in the line on the machine.
    assert "Software of a: software of a 1.2; of b: software of b 1.2." in caption
    assert r"the search error (5 \% of the median) and the drift of a virtual machine (10 \% of that end)" in caption
    assert "took turns" in caption
    # Ratios are for the text: a table has its cells, and what restricts them.
    assert [line for line in found.splitlines() if " times the connection-rate of b" in line and line[:2] == "% "]
    assert not [line for line in found.splitlines() if "times" in line and line.startswith(r"\par")]


def test_a_table_of_a_paper_has_a_note_for_each_mark_and_no_other_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seen: five paragraphs below five rows, in words of natgauge."""
    words = {"queues": "answer", "wide spread": "interval", "disturbed trials": "information"}
    doubts = [{"word": word, "text": "x", "grade": grade} for word, grade in words.items()]
    where = rates_of(tmp_path, doubts=doubts)
    words_of_paper = {
        "queues": "frames waiting in queues may have raised the rate",
        "wide spread": r"repetitions differ by more than 5 \% of their median",
        "disturbed trials": "the machine disturbed trials",
    }
    for more, said in (([], {"queues"}), (["-v"], set(words))):
        assert run(["report", "--format", "latex", "--against", "connections", str(where), *more]) == 0
        found = capsys.readouterr().out
        notes = [line for line in found.splitlines() if line.startswith(r"\par{\footnotesize")]
        assert {word for word, plainly in words_of_paper.items() if any(plainly in note for note in notes)} == said
        assert more or len(notes) == 1
        # The same mark and the same bound in both tables.
        medians = [row for row in cells_of("latex", found) if "median" in row[0] and "previous" not in row[0]]
        assert len(medians) == 2
        assert all(", at most " in cell and "textdagger" in cell for row in medians for cell in row[1:]), medians


def test_in_a_full_table_no_sign_has_another_meaning_than_in_a_short_one(said: Callable[..., str]) -> None:
    """Seen: "±" was where another run is expected, and with -v the opposite."""
    times = {"octets_per_connection": [383.9, 384.0, 384.1]}
    series = made([1e5, 1.1e5, 1.2e5], metric="connection-rate", unit="connections/s", figures=times)
    short, full = (cells_of("latex", said("latex", series, words=words)) for words in ((), ("-v",)))
    assert "pm" in short[1][1]
    assert not [cell for row in full for cell in row if "pm" in cell]


def test_tables_of_one_paper_have_labels_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A reference led to the last of them. A title of the user's is that of all."""
    for number in (1, 2):
        by_rates(tmp_path / f"compared-{number}")
        path = tmp_path / f"compared-{number}" / "comparison.json"
        document = json.loads(path.read_text())
        # One with the same beginning would be a copy.
        path.write_text(json.dumps({**document, "began": document["began"] + number}))
    folder(tmp_path / "measured", *results(1))
    for words, labels in (
        ([], None),
        (["--title", "Mine"], ["tab:mine", "tab:mine-2", "tab:mine-3"]),
    ):
        assert run(["report", "--format", "latex", str(tmp_path), *words]) == 0
        found = re.findall(r"^\\label\{(.*)\}$", capsys.readouterr().out, re.MULTILINE)
        assert len(found) == len(set(found)) == 3
        assert labels is None or found == labels


def test_a_number_behind_a_label_is_not_that_of_another_title(tmp_path: Path, ran: Ran) -> None:
    records = [
        compared([estimate("nat")], baseline=baseline, began=1e9 + at)
        for at, baseline in enumerate(("x", "x 2", "x", "x"))
    ]
    folders = [str(kept(tmp_path / str(at), record)) for at, record in enumerate(records)]
    found = re.findall(r"\\label\{(.*)\}", ran(["report", *folders, "--format", "latex"]).out)
    assert found == [f"tab:costs-of-nat-compared-with-{name}" for name in ("x", "x-2", "x-3", "x-4")]


def doubted(gateway: str, median: float, *doubts: tuple[str, str, float | None]) -> Result:
    named = [{"word": word, "text": text, "value": value, "grade": "answer"} for word, text, value in doubts]
    values = [0.9 * median, median, 1.1 * median]
    return made(values, metric="connection-rate", unit="connections/s", doubts=named, parameters={"gateway": gateway})


def test_below_a_table_of_a_paper_each_doubt_is_once_and_nothing_says_what_to_do(
    golden: Golden, said: Callable[..., str]
) -> None:
    """Seen: a paragraph for each repetition, each with what the person at the keyboard should do."""
    shown = [
        doubted("x", 1e5, ("bucket", "takes 3,918 at once", 0.5), ("bucket", "takes 3,909 at once", 0.7)),
        doubted(
            "y", 2e5, ("loss at every rate", "800 frames were lost", None), ("undecided", "give more --time", None)
        ),
        doubted("z", 3e5, ("loss at every rate", "900 frames were lost", None), ("bucket", "takes 12 at once", 0.6)),
        made([4e5], metric="connection-rate", unit="connections/s", parameters={"gateway": "w"}),
    ]
    found = said("latex", *shown)
    below = [line for line in found.partition(r"\end{tabular}")[2].splitlines() if line.startswith(r"\par{")]
    golden(below)
    grave, _ = below
    # Each with the gateways that have it, in words for readers.
    assert [grave.count(names) for names in ("(x; z;", "(y; z)", "(y)")] == [1, 1, 1]
    assert not [word for word in ("bucket", "loss at every rate", "undecided") if f"{word} (" in grave]
    assert r"; too high by up to 50 to 70 \%)" in grave
    assert not [word for word in ("--", "-{}-", "Measure", "Use more", "Find") if word in "".join(below)]
    assert "Use more connections" in said("text", *shown, words=("--against", "metrics"))
    (caption,) = re.findall(r"^\\caption\{(.*)\}$", found, re.MULTILINE)
    assert "Brackets are the range of the repetitions, and" in caption
    assert "no confidence intervals" in caption
    assert r"\textdagger{} may be another value" in caption
    (plain,) = re.findall(
        r"^\\caption\{(.*)\}$", said("latex", made([4e5] * 6), words=("--title", "Rates")), re.MULTILINE
    )
    assert plain.startswith("Rates. Measured on ")
    assert plain.endswith("Software of x: x 1.")


def test_options_and_upright_lines_are_no_dashes_in_latex(said: Callable[..., str]) -> None:
    found = said("latex", made([1.0]), words=("--title", "--at-least 1 | -"))
    assert r"\caption{-{}-at-least 1 \textbar{} -. " in found


def test_marks_tell_the_grades_of_doubts_apart_and_are_explained_below(said: Callable[..., str]) -> None:
    grave = [{"word": "rare loss", "text": "rare"}]
    known = [{"word": "disturbed trials", "text": "a few"}]
    every = (
        ("throughput", "frames/s", 1e5, grave),
        ("connection-rate", "connections/s", 1e5, DOUBTS),
        ("frame-loss", "%", 10.0, known),
    )
    shown = [
        made([value] * 6, metric=metric, unit=unit, doubts=doubts, parameters={"gateway": "x"})
        for metric, unit, value, doubts in every
    ]
    matrix = said("text", *shown, words=("--against", "metrics"))
    row = next(line for line in matrix.splitlines() if line.startswith("x "))
    assert [cell[-1] for cell in re.split(" {2,}", row)[1:4]] == ["†", "*", "0"]
    assert [line[0] for line in matrix.splitlines() if line.startswith(("†", "*", "For "))] == ["†", "*"]
    assert r"\textdagger{}" in said("latex", *shown)


@pytest.mark.parametrize("inner", ["", "results"])
def test_a_folder_of_results_folders_is_as_good_as_each_of_them(inner: str, tmp_path: Path, ran: Ran) -> None:
    folders = [str(folder(tmp_path / inner / f"cell-{number}", one)) for number, one in enumerate(results(3))]
    (tmp_path / inner / "notes").mkdir()
    each, whole = (ran(["report", *places, "--format", "json"]) for places in (folders, [str(tmp_path)]))
    assert whole == each
    assert len(json.loads(whole.out)["table"]["columns"]) == 3
    assert whole.err == ""


def gateways_in(path: Path, ran: Ran) -> list[str]:
    """The gateways of the results, in their order."""
    rows = csv.DictReader(io.StringIO(ran(["report", "--format", "csv", str(path)]).out))
    return [row["gateway"] for row in rows]


def test_a_measurement_that_did_not_end_is_told_and_the_others_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "b").mkdir()
    folder(tmp_path / "a", results(1)[0])
    (tmp_path / "b" / "plan.json").write_text("{}")
    assert run(["report", "--format", "csv", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    own, without = csv.DictReader(io.StringIO(shown.out))
    assert (own["no result"], own["metric"]) == ("", "validated-connection-rate")
    # Of a plan that says nothing only the folder is known.
    assert {name: cell for name, cell in without.items() if cell}.keys() == {"metric", "no result"}
    assert without["metric"] == "b"
    (line,) = shown.err.splitlines()
    assert str(tmp_path / "b") in line
    assert "did not end" in line


def test_campaigns_beside_single_measurements_are_found_in_one_folder(tmp_path: Path, ran: Ran) -> None:
    one, other, third = results(3)
    for path, shown in (("a-single", one), ("b-campaign/results/x", other), ("b-campaign/results/y", third)):
        folder(tmp_path / path, shown)
    (tmp_path / "b-campaign" / "campaign.json").write_text("{}")
    assert gateways_in(tmp_path, ran) == ["gateway-0", "gateway-1", "gateway-2"]
    assert gateways_in(tmp_path / "b-campaign", ran) == ["gateway-1", "gateway-2"]


def test_results_of_a_campaign_come_as_its_plan_has_them(tmp_path: Path, ran: Ran) -> None:
    """By name, 100k and 10M come before 10k."""
    names = ["10k", "100k", "10M"]
    for name, one in zip(names, results(len(names)), strict=True):
        folder(tmp_path / "results" / f"{name}-throughput", one)
    cells = [{"name": name, "measurements": [{"name": "throughput"}]} for name in names]
    (tmp_path / "campaign.json").write_text(json.dumps({"cells": cells}))
    assert gateways_in(tmp_path, ran) == ["gateway-0", "gateway-1", "gateway-2"]
    (tmp_path / "campaign.json").write_text("[")
    assert gateways_in(tmp_path, ran) == ["gateway-1", "gateway-2", "gateway-0"]


def test_a_campaign_of_which_nothing_has_ended_is_refused_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    (tmp_path / "results" / "x").mkdir(parents=True)
    (tmp_path / "results" / "x" / "plan.json").write_text("{}")
    assert run(["report", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    golden(line)


@pytest.fixture
def two_results(tmp_path: Path) -> Path:
    for gateway, rate in (("a", 123_456.789), ("b", 2e5)):
        kept(tmp_path / "results", made([rate, rate * 1.01], parameters={"gateway": gateway, "directions": "both"}))
    return tmp_path / "results"


def test_json_has_each_figure_in_full_with_its_row_and_column(
    two_results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", str(two_results), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["comparisons"], document["audits"]) == ("natgauge-report-1", [], [])
    assert document["table"]["columns"] == ["a", "b"]
    cells = {row["row"]: row["cells"] for row in document["table"]["rows"]}
    assert cells["minimum" if "minimum" in cells else "1st percentile"][0] == 123_456.789
    assert all(len(row) == 2 for row in cells.values())
    assert all(answer["text"] for answer in document["answers"])


def test_comparisons_and_results_are_in_one_object(
    two_results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    by_rates(tmp_path / "results" / "compared")
    assert run(["report", str(two_results), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["comparisons"][0]["record"]["schema"] == "natgauge-comparison-5"
    assert document["table"] is not None


def test_json_of_a_table_in_another_shape_keeps_it(two_results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", str(two_results), "--format", "json", "--against", "metrics"]) == 0
    table = json.loads(capsys.readouterr().out)["table"]
    assert [row["row"] for row in table["rows"]] == ["a", "b"]
    assert len(table["columns"]) == 1


@pytest.mark.parametrize(
    "bounds", [{}, {"kept_most_share": 0.97}, {"kept_least_share": 0.93}], ids=["none", "most", "least"]
)
def test_programs_read_no_share_of_which_only_a_bound_is_known(
    bounds: dict[str, float], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seen: they had the bare ratio."""
    folder = kept(tmp_path, made([1e5], metric="mixed-load", figures={"kept_share": 0.95, **bounds}))
    assert run(["report", "--format", "csv", str(folder)]) == 0
    assert "0.95" not in capsys.readouterr().out


@pytest.mark.parametrize("metric", ["throughput", "mixed-load"])
def test_a_row_of_a_turned_table_has_one_name_for_programs_whatever_its_bits_leave_out(
    metric: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seen: "on the wire, busier direction, without openings (Gbit/s)" as a key."""
    results = [made([1e5], metric=metric, parameters={"connections": number}) for number in (1000, 2000)]
    assert run(["report", "--against", "connections", "--format", "json", str(kept(tmp_path, *results))]) == 0
    names = [row["row"] for row in json.loads(capsys.readouterr().out)["table"]["rows"]]
    assert "on the wire (Gbit/s)" in names
