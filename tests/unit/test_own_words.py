# SPDX-License-Identifier: Apache-2.0
"""Title, day, machine and the user's own words above a report; its ratios as one table; a single bar's neighbour."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from tests.unit.conftest import Ran, Reported
from tests.unit.made_campaign import rate
from tests.unit.made_results import kept, made
from tests.unit.pages import lines_of, tables_of

from natgauge import Result
from natgauge.cli import run

HOSTILE = "<b>Box & co</b> [x](y) 50% _a_ $b$"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return stored(tmp_path)


def stored(tmp_path: Path, begun: float = 1_795_696_870.0) -> Path:
    """A folder with a result that began then, s since 1970."""
    result = made(
        [100e3, 104e3, 101e3],
        metric="connection-rate",
        unit="connections/s",
        parameters={
            "gateway": "x",
            "title": "A gateway of mine",
            "begun": [begun],
            "natgauge": "1",
            "cpu": "EPYC",
            "kernel": "6.1",
        },
    )
    # A folder's name has a day, too.
    (folder,) = kept(tmp_path / "made", result).iterdir()
    return folder.rename(tmp_path / "one")


def page_of(folder: Path, *words: str) -> str:
    path = folder / "page.html"
    assert run(["report", str(folder), "--html", str(path), *words]) == 0
    return path.read_text()


def test_a_page_begins_with_gateway_metric_day_and_machine(folder: Path) -> None:
    lines = lines_of(page_of(folder))
    assert lines[1] == "A gateway of mine: new connections per second"
    assert "2026-11-26" in lines[2]
    assert "EPYC, Linux 6.1" in lines[2]


@pytest.mark.parametrize("begun", [1e300, -1e300, -1.0, 253_402_300_800.0])
def test_a_moment_that_no_date_has_is_left_out(tmp_path: Path, begun: float) -> None:
    lines = lines_of(page_of(stored(tmp_path, begun)))
    assert "Measured on EPYC, Linux 6.1" in lines[2]


def test_own_words_are_text_in_every_form(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--title", HOSTILE, "--note", f"first\nline\n\n{HOSTILE}"]
    page = page_of(folder, *words)
    assert f"<h1>{html.escape(HOSTILE, quote=False)}</h1>" in page
    assert page.count('<p class="note">') == 2
    assert "<b>Box" not in page
    capsys.readouterr()
    for form, title in (("text", HOSTILE), ("markdown", r"# \<b\>Box & co\</b\> \[x\](y) 50% \_a\_ \$b\$")):
        assert run(["report", str(folder), "--format", form, *words]) == 0
        shown = capsys.readouterr().out.splitlines()
        assert shown[0] == title
        assert "first line" in shown[2]
    assert run(["report", str(folder), "--format", "latex", *words]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "first line"
    plain = r"\textless{}b\textgreater{}Box \& co\textless{}/b\textgreater{} [x](y) 50\% \_a\_ \$b\$"
    (caption,) = (line for line in shown if line.startswith(r"\caption"))
    assert caption.startswith(rf"\caption{{{plain}. Measured on 2026-11-26, on EPYC")


def test_a_mix_of_sizes_is_said_in_words_and_no_size_of_it_is_that_of_all_frames(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seen: "64 octets" in the head of results of a mix, which was written "64:7,594:4,1518:1"."""
    traffic = {"frame_size": 64, "frame_sizes": "64:7,594:4,1518:1", "directions": "both"}
    kept(tmp_path, made([1.0, 1.0, 1.0], parameters=traffic))
    said = "64, 594 and 1,518 octets (7:4:1)"
    page = page_of(tmp_path)
    head = page.partition("</header>")[0]
    assert f"frames of {said}" in head
    assert run(["report", str(tmp_path), "-v"]) == 0
    shown = capsys.readouterr().out
    assert said in shown
    for text in (head, shown):
        assert ":7,594" not in text
        assert ", 64 octets," not in text
    assert not [line for line in shown.splitlines() if line.startswith("frame size")]
    # Programs have what was set.
    assert run(["report", str(tmp_path), "--format", "csv"]) == 0
    assert "64:7,594:4,1518:1" in capsys.readouterr().out


def test_figures_as_files_have_the_title_and_the_note(folder: Path, tmp_path: Path) -> None:
    assert run(["report", str(folder), "--svg", str(tmp_path / "svg"), "--title", "Box & co", "--note", "mine"]) == 0
    (drawing,) = (tmp_path / "svg").iterdir()
    # What the only figure is of stands at its axis.
    assert ">Box &amp; co<" in drawing.read_text()
    assert ">mine<" in drawing.read_text()
    # Seen: a paper's figure did not say when, where and with what it was measured.
    words = " ".join(re.findall(r">([^<]+)<", drawing.read_text()))
    assert re.search(r"Measured on\s+2026-11-26,\s+on EPYC,\s+Linux 6\.1;\s+natgauge\s+1\.", words)


@pytest.mark.parametrize("form", ["text", "markdown", "latex"])
def test_nothing_is_above_where_nothing_was_given(form: str, folder: Path, ran: Ran) -> None:
    words = ["report", str(folder), "--format", form]
    plain = ran(words).out
    first, *_ = plain.splitlines()
    assert first.strip()
    assert ran([*words, "--note", " \n\n "]).out == plain
    assert 'class="note"' not in page_of(folder, "--note", " \n\n ")


def test_many_ratios_are_one_table_and_few_are_sentences(reported: Reported) -> None:
    many = [
        rate(name, base * cores, cores, 1000) for name, base in (("a", 1e5), ("b", 2e5), ("c", 3e5)) for cores in (1, 2)
    ]
    page = reported(*many, html=True)
    ((head, *rows),) = tables_of(page, "Ratios")
    assert {row[0] for row in rows} == {"a", "b", "c"}
    assert {len(row) for row in (head, *rows)} == {2}
    # What a table says, no sentence says; what leads, no table says.
    assert "2 cores instead of 1" in head[1]
    assert "2 cores instead of 1" not in page.partition('<section id="results">')[0].replace(head[1], "")
    (leading,) = re.findall('<li class="[^"]* lead">(.*)', page)
    assert "c opens most connections" in leading
    few = reported(*many[:4], html=True)
    assert tables_of(few, "Ratios") == []
    (sentence,) = (line for line in lines_of(few) if line.startswith("With 2 cores instead of 1"))
    assert "a reaches 1.98 times" in sentence
    assert "b 1.95 times" in sentence


def test_a_single_gateway_is_drawn_next_to_the_limit_of_the_tester(reported: Reported) -> None:
    def bars(*results: Result) -> list[str]:
        drawing = reported(*results, html=True).partition("<svg")[2].partition("</svg>")[0]
        return re.findall(r"<tspan[^>]*>([^<]*)<", drawing)[::2]

    limit = {"tester_highest_phase1_rate": 4e5, "directions": "both"}
    one = made([1e5], metric="connection-rate", unit="connections/s", parameters={"gateway": "x", **limit})
    other = made([2e5], metric="connection-rate", unit="connections/s", parameters={"gateway": "y", **limit})
    assert bars(one) == ["x", "tester's own limit"]
    assert set(bars(one, other)) == {"x", "y"}
    far = made([1.0], metric="connection-rate", unit="connections/s", parameters={"gateway": "x", **limit})
    assert bars(far) == ["x"]
