# SPDX-License-Identifier: Apache-2.0
"""The same rows in every form, and results found wherever they lie."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from tests.unit.golden import Golden
from tests.unit.made_corpus import by_rates
from tests.unit.made_results import grouped, keep, kept, made

from natgauge.cli import run
from natgauge.known_doubts import known, known_doubts
from natgauge.measurements.making import make
from natgauge.procedures.kit.result.results import Measurement, make_result
from natgauge.records.measurement import Result
from natgauge.records.store import Store
from natgauge.reports import csv_table, draft, latex, markdown, text
from natgauge.reports.answers import answers
from natgauge.reports.pivot import of_metrics
from natgauge.reports.sheet import lines_of, sheet
from natgauge.stored.find_results import find

FIGURES = ("typical_latency_us", "worst_case_latency_us")
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
    Store(path).write_summary(result.document())
    return path


@pytest.mark.parametrize("number", [1, 2, 3, 7])
def test_no_line_of_a_draft_is_longer_than_it_allows(number: int) -> None:
    lines = draft.render(sheet(results(number))).splitlines()
    assert max(map(len, lines)) <= 72
    assert [line for line in lines if line != line.rstrip()] == []


def test_every_form_has_delays_with_and_without_the_frames_that_were_due_in_stalls(golden: Golden) -> None:
    figures = {"worst_case_latency_us": 25_017.0, "worst_case_latency_without_stalls_us": 11.25}
    shown = [made([10.0], metric="latency", unit="us", figures=figures)]
    plain = "\n".join(" ".join((line.heading, *line.cells)) for line in lines_of(shown))
    for form in (plain, markdown.render(sheet(shown)), latex.render(sheet(shown)), csv_table.table(shown)):
        said = re.sub(r"[,\\]|\.0$", "", form)
        golden(said)
        assert "25.0 k" in said or "25017" in said
        assert "11.2" in said
    assert "stalls" not in markdown.render(sheet([made([1.0])]))


def test_every_form_has_the_medians_of_both_latencies(golden: Golden) -> None:
    """RFC 8219 section 7.2: both are medians over all repetitions; that of one repetition is another figure."""
    each = [(10.0, 80.0), (12.0, 33.0), (11.0, 25.0)]
    measured = make_result(
        "latency", "us", {"repeat": 3},
        [
            Measurement(typical, None, "device", {}, figures=dict(zip(FIGURES, (typical, worst), strict=True)))
            for typical, worst in each
        ],
    )  # fmt: skip
    result = make(measured, grouped({"gateway": "x"}))
    golden(text.verdict(result))
    for form in (text, markdown, latex, draft):
        (line,) = (line for line in form.render(sheet([result])).splitlines() if "worst case latency" in line)
        assert re.findall(r"\b\d+\b", line) == ["33", "25", "80"]
    columns = dict(zip(*csv.reader(io.StringIO(csv_table.table([result]))), strict=True))
    assert columns["worst case latency (us)"] == "33.0"
    assert columns["worst case latency, minimum (us)"] == "25.0"
    assert columns["worst case latency, maximum (us)"] == "80.0"


def test_a_single_repetition_is_not_called_a_median(golden: Golden) -> None:
    figures = dict(zip(FIGURES, (10.0, 25.0), strict=True))
    said = text.verdict(made([10.0], metric="latency", unit="us", figures=figures))
    golden(said)
    assert "RFC 1242" not in text.verdict(made([10.0]))


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
def test_a_draft_has_every_cell_of_the_text_whole(number: int, least: int) -> None:
    shown = [*results(number - 1), made([1.0], parameters={"gateway": "a" * 90, "version": ["x 1", "y 2"]})]
    tables = rows_of_draft(draft.render(sheet(shown)))
    assert len(tables) >= least
    wanted = [[cell.replace(" ", "") for cell in (line.heading, *line.cells)] for line in lines_of(shown)]
    assert all([row[0] for row in rows] == [row[0] for row in wanted] for rows in tables)
    columns = [column for rows in tables for column in list(zip(*rows, strict=True))[1:]]
    assert columns == list(zip(*wanted, strict=True))[1:]
    assert max(map(len, draft.render(sheet(shown)).splitlines())) <= 72


def cells_of(form: str, found: str) -> list[list[str]]:
    """The cells of a table, marks of the form taken away."""
    if form == "markdown":
        lines = [line for line in found.splitlines() if line.startswith("|") and "---" not in line]
        return [[re.sub(r"\\(.)", r"\1", cell.strip()) for cell in line[1:-1].split(" | ")] for line in lines]
    lines = [line for line in found.splitlines() if line.endswith(r" \\")]
    return [[re.sub(r"\\(.)", r"\1", cell) for cell in line.removesuffix(r" \\").split(" & ")] for line in lines]


@pytest.mark.parametrize(("last", "gaps"), [({"placement": "isolated"}, (1, 0)), ({}, (0, 1))])
def test_a_paper_has_what_its_comparisons_leave_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], last: dict[str, Any], gaps: tuple[int, int]
) -> None:
    """Seen: the order of gateways under different conditions, without a word on these."""
    shared = {"kind": "nat44", "placement": "shared"}
    every = [("a", shared), *([] if last else [("b", shared)]), ("c", {"frame_size": 1518, **shared, **last})]
    results = [
        made([3e5 + at] * 6, parameters={"gateway": gateway, **given}) for at, (gateway, given) in enumerate(every)
    ]
    said = answers(results)
    assert (sum(bool(one.unlike) for one in said), sum(one.is_gap for one in said)) == gaps
    for result in results:
        (tmp_path / result.gateway).mkdir()
        folder(tmp_path / result.gateway, result)
    assert run(["report", "--format", "latex", str(tmp_path)]) == 0
    found = capsys.readouterr().out
    for one in said:
        is_kept = one.certainty is not None or bool(one.unlike) or one.is_gap
        assert (latex.plain(one.text) in found) is is_kept


@pytest.mark.parametrize("form", ["markdown", "latex"])
def test_each_form_has_the_rows_of_the_text(form: str) -> None:
    shown = results(2)
    view = {"markdown": markdown, "latex": latex}[form]
    found = view.render(sheet(shown))
    units = {line.heading: f" ({line.unit})" for line in lines_of(shown) if line.unit and form == "latex"}
    assert cells_of(form, found) == [
        [f"{line.heading}{units.get(line.heading, '')}", *line.cells] for line in lines_of(shown)
    ]
    assert ("median" in units) == (form == "latex")
    whole = sheet(shown)
    for sentence in whole.below if form == "markdown" else (*(whole.in_paper or ()), *whole.notes):
        assert sentence in re.sub(r"\\(.)", r"\1", found)


def test_markdown_is_read_by_others_as_the_same_cells_and_notes() -> None:
    shown = results(2, version=["x | y", "*z* <b> `c`"])
    page = MarkdownIt("commonmark").enable("table").render(markdown.render(sheet(shown)))
    cells = [html.unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", page)]
    assert cells == [cell for line in lines_of(shown) for cell in (line.heading, *line.cells)]
    assert [html.unescape(note) for note in re.findall(r"<li>(.*?)</li>", page)] == [*sheet(shown).below]


def test_a_table_of_a_paper_floats_with_caption_machine_and_label(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {"profile": "quick", "error": "10%"}
    where = folder(tmp_path, *results(1, cpu="EPYC 9_4", kernel="6.1", begun=[1_795_696_870.0], **settings))
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
        folder(tmp_path, *results(1, gateway=gateway, connections=connections, destination_port_count=connections))
        (tmp_path / "summary.json").rename(tmp_path / f"{number}.json")
        (tmp_path / f"r{number}").mkdir()
        (tmp_path / f"{number}.json").rename(tmp_path / f"r{number}" / "summary.json")
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
        result_folder = tmp_path / f"{gateway}-{connections}"
        result_folder.mkdir(parents=True)
        folder(result_folder, result)
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
    for more, said in (([], {"queues"}), (["-v"], set(words))):
        assert run(["report", "--format", "latex", "--against", "connections", str(where), *more]) == 0
        found = capsys.readouterr().out
        notes = [line for line in found.splitlines() if line.startswith(r"\par{\footnotesize")]
        assert {word for word in words if any(latex.plain(known(word).plainly) in note for note in notes)} == said
        assert more or len(notes) == 1
        # The same mark and the same bound in both tables.
        medians = [row for row in cells_of("latex", found) if "median" in row[0] and "previous" not in row[0]]
        assert len(medians) == 2
        assert all(", at most " in cell and "textdagger" in cell for row in medians for cell in row[1:]), medians


def test_in_a_full_table_no_sign_has_another_meaning_than_in_a_short_one() -> None:
    """Seen: "±" was where another run is expected, and with -v the opposite."""
    times = {"octets_per_connection": [383.9, 384.0, 384.1]}
    series = [made([1e5, 1.1e5, 1.2e5], metric="connection-rate", unit="connections/s", figures=times)]
    assert not [cell for line in lines_of(series) for cell in line.cells if "±" in cell]
    assert "±" in of_metrics(series).lines[1].cells[0]


def test_tables_of_one_paper_have_labels_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A reference led to the last of them. A title of the user's is that of all."""
    for number in (1, 2):
        by_rates(tmp_path / f"compared-{number}")
        path = tmp_path / f"compared-{number}" / "comparison.json"
        document = json.loads(path.read_text())
        # One with the same beginning would be a copy.
        path.write_text(json.dumps({**document, "began": document["began"] + number}))
    (tmp_path / "measured").mkdir()
    folder(tmp_path / "measured", *results(1))
    for words, labels in (
        ([], None),
        (["--title", "Mine"], ["tab:mine", "tab:mine-2", "tab:mine-3"]),
    ):
        assert run(["report", "--format", "latex", str(tmp_path), *words]) == 0
        found = re.findall(r"^\\label\{(.*)\}$", capsys.readouterr().out, re.MULTILINE)
        assert len(found) == len(set(found)) == 3
        assert labels is None or found == labels


def test_a_number_behind_a_label_is_not_that_of_another_title() -> None:
    shown = sheet(results(1))
    found = latex.document([latex.render(shown, title) for title in ("x", "x 2", "x", "x")])
    assert re.findall(r"\\label\{(.*)\}", found) == ["tab:x", "tab:x-2", "tab:x-3", "tab:x-4"]


def doubted(gateway: str, median: float, *doubts: tuple[str, str, float | None]) -> Result:
    named = [{"word": word, "text": text, "value": value, "grade": "answer"} for word, text, value in doubts]
    values = [0.9 * median, median, 1.1 * median]
    return made(values, metric="connection-rate", unit="connections/s", doubts=named, parameters={"gateway": gateway})


def test_below_a_table_of_a_paper_each_doubt_is_once_and_nothing_says_what_to_do() -> None:
    """Seen: a paragraph for each repetition, each with what the person at the keyboard should do."""
    shown = of_metrics(
        [
            doubted("x", 1e5, ("bucket", "takes 3,918 at once", 0.5), ("bucket", "takes 3,909 at once", 0.7)),
            doubted(
                "y", 2e5, ("loss at every rate", "800 frames were lost", None), ("undecided", "give more --time", None)
            ),
            doubted(
                "z", 3e5, ("loss at every rate", "900 frames were lost", None), ("bucket", "takes 12 at once", 0.6)
            ),
            made([4e5], metric="connection-rate", unit="connections/s", parameters={"gateway": "w"}),
        ]
    )
    found = latex.render(shown, "Rates")
    below = found.partition(r"\end{tabular}")[2]
    assert [below.count(known(word).plainly) for word in ("bucket", "loss at every rate", "undecided")] == [1, 1, 1]
    assert not [word for word in ("bucket", "loss at every rate", "undecided") if f"{word} (" in below]
    assert r"; too high by up to 50 to 70 \%)" in below
    assert not [word for word in ("--", "-{}-", "Measure", "Use more", "Find") if word in below]
    assert "Use more connections" in text.render(shown)
    (caption,) = re.findall(r"^\\caption\{(.*)\}$", found, re.MULTILINE)
    assert "Brackets are the range of the repetitions, and" in caption
    assert "no confidence intervals" in caption
    assert r"\textdagger{} may be another value (see below)." in caption
    plainly = latex.render(of_metrics([made([4e5])]), "Rates")
    assert r"\caption{Rates.}" in plainly


def test_options_and_upright_lines_are_no_dashes_in_latex() -> None:
    assert latex.plain("--at-least 1 | -") == r"-{}-at-least 1 \textbar{} -"


def test_marks_tell_the_grades_of_doubts_apart_and_are_explained_below() -> None:
    grave = [{"word": "rare loss", "text": "rare"}]
    known = [{"word": "disturbed trials", "text": "a few"}]
    shown = [made([1e5], metric=metric, doubts=doubts, parameters={"gateway": "x"}) for metric, doubts in (
        ("throughput", grave), ("connection-rate", DOUBTS), ("frame-loss", known),
    )]  # fmt: skip
    matrix = of_metrics(shown)
    assert [cell[-1] for cell in matrix.lines[1].cells] == ["†", "*", "k"]
    assert [line.split()[0] for line in matrix.doubts] == ["†", "*", "*", "For"]
    assert r"\textdagger{}" in latex.render(matrix)


@pytest.mark.parametrize("inner", ["", "results"])
def test_a_folder_of_results_folders_is_as_good_as_each_of_them(inner: str, tmp_path: Path) -> None:
    made_ones = results(3)
    for number, one in enumerate(made_ones):
        path = tmp_path / inner / f"cell-{number}"
        path.mkdir(parents=True)
        folder(path, one)
    (tmp_path / inner / "notes").mkdir()
    found = find([tmp_path])
    assert found.results == made_ones
    assert [one.folder.name for one in found.stored] == ["cell-0", "cell-1", "cell-2"]
    assert found.unended == ()


def test_a_measurement_that_did_not_end_is_told_and_the_others_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
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


def test_campaigns_beside_single_measurements_are_found_in_one_folder(tmp_path: Path) -> None:
    one, other, third = results(3)
    for path, shown in (("a-single", one), ("b-campaign/results/x", other), ("b-campaign/results/y", third)):
        (tmp_path / path).mkdir(parents=True)
        folder(tmp_path / path, shown)
    (tmp_path / "b-campaign" / "campaign.json").write_text("{}")
    assert find([tmp_path]).results == [one, other, third]
    assert find([tmp_path / "b-campaign"]).results == [other, third]


def test_results_of_a_campaign_come_as_its_plan_has_them(tmp_path: Path) -> None:
    """By name, 100k and 10M come before 10k."""
    names = ["10k", "100k", "10M"]
    shown = results(len(names))
    for name, one in zip(names, shown, strict=True):
        (tmp_path / "results" / f"{name}-throughput").mkdir(parents=True)
        folder(tmp_path / "results" / f"{name}-throughput", one)
    cells = [{"name": name, "measurements": [{"name": "throughput"}]} for name in names]
    (tmp_path / "campaign.json").write_text(json.dumps({"cells": cells}))
    assert find([tmp_path]).results == shown
    (tmp_path / "campaign.json").write_text("[")
    assert find([tmp_path]).results == [shown[1], shown[2], shown[0]]


def test_a_campaign_of_which_nothing_has_ended_is_refused_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    (tmp_path / "results" / "x").mkdir(parents=True)
    (tmp_path / "results" / "x" / "plan.json").write_text("{}")
    assert run(["report", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    golden(line)


def test_every_doubt_has_words_for_readers_of_a_paper() -> None:
    for word, doubt in known_doubts().items():
        assert doubt.plainly, word
        assert not [part for part in ("--", "natgauge") if part in doubt.plainly], word
        assert len(doubt.plainly.split()) <= 18, word


@pytest.fixture
def two_results(tmp_path: Path) -> Path:
    for gateway, rate in (("a", 123_456.789), ("b", 2e5)):
        result = made([rate, rate * 1.01], parameters={"gateway": gateway, "directions": "both"})
        keep(Store.create(tmp_path / "results", result.metric, gateway), result)
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
