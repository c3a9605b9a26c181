# SPDX-License-Identifier: Apache-2.0
"""Figures as files of their own: the page's figures, complete without the page."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from tests.unit.golden import Golden
from tests.unit.made_corpus import by_rates
from tests.unit.made_results import kept, made

from natgauge.cli import run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for at, gateway in enumerate(("jool-nat64", "tayga-nat64"), start=1):
        for connections in (1000, 10_000):
            varied = {"gateway": gateway, "connections": connections, "device_cores": 1}
            result = made([1e5 * at + connections] * 2, parameters=varied)
            kept(tmp_path / "results", result)
    by_rates(tmp_path / "results" / "compared")
    return tmp_path / "results"


def test_each_figure_is_a_drawing_that_needs_no_page(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", str(folder), "--svg", str(tmp_path / "svg"), "--pdf", str(tmp_path / "pdf")]) == 0
    paths = [Path(line) for line in capsys.readouterr().out.splitlines()]
    drawings, printable = (sorted(path for path in paths if path.suffix == end) for end in (".svg", ".pdf"))
    assert [path.stem for path in drawings] == [path.stem for path in printable]
    assert len(drawings) >= 2
    for path in drawings:
        text = path.read_text()
        assert ET.fromstring(text).tag.endswith("svg")  # noqa: S314 - drawn here
        assert "var(" not in text
    assert all(path.read_bytes().startswith(b"%PDF") for path in printable)
    (of_lines,) = (words_of(path) for path in drawings if path.name == "throughput-against-connections.svg")
    assert {"jool-nat64", "tayga-nat64", "connections"} <= {*of_lines}


def test_names_that_look_like_colours_of_the_page_are_drawn_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gateways = ("var(--nothing)", "x var(--ink)")
    for gateway in gateways:
        for connections in (1000, 10_000):
            varied = {"gateway": gateway, "connections": connections, "device_cores": 1}
            result = made([1e5 + connections] * 2, parameters=varied)
            kept(tmp_path / "results", result)
    words = ["--title", "of var(--s1)", "--note", "var(--note)"]
    assert run(["report", str(tmp_path / "results"), "--svg", str(tmp_path / "svg"), *words]) == 0
    capsys.readouterr()
    (path,) = (tmp_path / "svg").iterdir()
    said = " ".join(words_of(path))
    # Seen: the user's title was put before that of the only figure.
    assert "of var(--s1)" in said
    assert "against connections" not in said
    for drawn in (*gateways, "var(--note)"):
        assert drawn in said


def test_the_legend_of_a_file_has_the_gateways_of_its_chart_each_in_its_own_colour(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ten gateways of two kinds, in turns: by their places in the whole, two of one chart had one colour."""
    kinds = {"nat44": [f"inner-{at}" for at in range(5)], "nat64": [f"outer-{at}" for at in range(5)]}
    for gateways in zip(*kinds.values(), strict=True):
        for kind, gateway in zip(kinds, gateways, strict=True):
            for connections in (1000, 10_000):
                varied = {"gateway": gateway, "kind": kind, "connections": connections, "device_cores": 1}
                result = made([1e5 + connections] * 2, parameters=varied)
                kept(tmp_path / "results", result)
    assert run(["report", str(tmp_path / "results"), "--svg", str(tmp_path / "svg")]) == 0
    capsys.readouterr()
    every = {*kinds["nat44"], *kinds["nat64"]}
    legends = []
    for path in (tmp_path / "svg").iterdir():
        said = words_of(path)
        assert not [word for word in said if word.partition(" / ")[0] in every - {word}]
        legends.append(every & {*said})
    assert sorted(map(sorted, legends)) == sorted(kinds.values())


def words_of(path: Path) -> list[str]:
    """The texts of a drawing, in the order in which they are drawn."""
    return [text for text in ET.fromstring(path.read_text()).itertext() if text.strip()]  # noqa: S314 - drawn here


def marks_of(said: str) -> list[str]:
    """What the words of a drawing say of its marks."""
    return re.findall(r"(?:† may|\* a doubt)[^.]*\.", said)


@pytest.mark.parametrize("connections", [(1000, 10_000), (1000,)])
def test_a_drawing_in_a_paper_says_its_unit_its_interval_and_its_doubts(
    connections: tuple[int, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    """A series has an axis of values without a title on the page, and bars have one below them."""
    doubts = ([{"word": "rare loss", "text": "rare"}], [{"word": "wide spread", "text": "wide"}])
    for gateway, own in zip(("jool-nat64", "tayga-nat64"), doubts, strict=True):
        for number in connections:
            varied = {"gateway": gateway, "connections": number, "device_cores": 1}
            result = made([1e5 + number, 1.1e5] * 2, parameters=varied, doubts=own)
            kept(tmp_path / "results", result)
    assert run(["report", str(tmp_path / "results"), "--svg", str(tmp_path / "svg")]) == 0
    (path,) = (tmp_path / "svg").iterdir()
    drawn = words_of(path)
    capsys.readouterr()
    said = " ".join(drawn)
    # Once in the title, once at the axis.
    assert said.count("(frames/s in each direction)") == 2
    assert "another run on this machine is expected" in said
    marks = marks_of(said)
    assert [mark[0] for mark in marks] == ["†", "*"]
    golden(marks)
    assert "jool-nat64" in said
    signs = [word[-1] for word in drawn if word[-1] in "†*" and len(word) < 30]
    assert sorted(signs) == sorted("†*" * len(connections))


@pytest.mark.parametrize("connections", [(1000, 10_000), (1000,)])
def test_a_file_has_the_doubts_and_conditions_of_what_it_draws_and_of_nothing_else(
    connections: tuple[int, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    """Seen: each file named the doubts of all gateways, and why those that it lacks are not on its axis."""
    doubts = {"nat44": [{"word": "rare loss", "text": "rare"}], "nat64": [{"word": "queues", "text": "queues"}]}
    for kind, own in doubts.items():
        for number in connections:
            varied = {"gateway": f"of-{kind}", "kind": kind, "connections": number, "device_cores": 1}
            result = made([1e5 + number, 1.1e5] * 2, parameters=varied, doubts=own)
            kept(tmp_path / "results", result)
    words = ["--title", "Mine"]
    assert run(["report", str(tmp_path / "results"), "--svg", str(tmp_path / "svg"), *words]) == 0
    capsys.readouterr()
    drawn = [" ".join(words_of(path)) for path in (tmp_path / "svg").iterdir()]
    every = {kind: said for said in drawn for kind in doubts if f"of-{kind}" in said}
    assert len(drawn) == 2
    assert every.keys() == doubts.keys()
    for kind, said in sorted(every.items()):
        assert f"Mine: {kind}" in said
        (mark,) = marks_of(said)
        assert mark[0] == {"nat44": "†", "nat64": "*"}[kind]
        golden(mark)
        assert "not on one axis" not in said
        assert "different conditions" not in said
    page = tmp_path / "page.html"
    assert run(["report", str(tmp_path / "results"), "--html", str(page)]) == 0
    assert "not on one axis" in page.read_text()


def test_a_bare_drawing_has_its_words_in_a_text_beside_it(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seen: seven lines within a picture that has a caption in a paper."""
    words = ["--title", "Mine", "--note", "Some words."]
    assert run(["report", str(folder), "--svg", str(tmp_path / "whole"), *words]) == 0
    assert run(["report", str(folder), "--svg", str(tmp_path / "bare"), "--bare", *words]) == 0
    capsys.readouterr()
    name = "throughput-against-connections"
    whole, bare = (set(words_of(tmp_path / kind / f"{name}.svg")) for kind in ("whole", "bare"))
    assert bare < whole
    assert {"jool-nat64", "tayga-nat64", "connections"} < bare
    caption = (tmp_path / "bare" / f"{name}.txt").read_text()
    lost = " ".join(words_of(tmp_path / "whole" / f"{name}.svg")).split()
    assert {"Mine:", "Some", "medians."} < set(lost)
    # The text also says what the caption of a table says: the gateways and the conditions.
    title, *_ = caption.split("\n\n")
    assert title.endswith(": jool-nat64 and tayga-nat64.")
    conditions = "2 repetitions, 1,000 to 10,000 connections, 1 core"
    assert (conditions in caption, conditions in " ".join(lost)) == (True, False)
    assert not list((tmp_path / "whole").glob("*.txt"))
    # Seen: "5 % of their median" in a caption, of which LaTeX left out what follows "%".
    assert run(["report", str(folder), "--pdf", str(tmp_path / "bare"), "--bare", "--note", "5 % of it."]) == 0
    capsys.readouterr()
    plain, latex = ((tmp_path / "bare" / f"{name}.{end}").read_text() for end in ("txt", "tex"))
    # LaTeX's captions take no paragraphs.
    assert "\n\n" in plain
    assert "\n\n" not in latex
    assert ("\n\n5 % of it.\n\n" in plain, " 5 \\% of it. " in latex) == (True, True)
    assert run(["report", str(folder), "--bare"]) == 2


def test_files_have_names_that_further_results_leave(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seen: "1-new-connections-per-second-against-connections-connections-s.svg" in a paper."""
    assert run(["report", str(folder), "--svg", str(tmp_path / "first")]) == 0
    one = made([1.0], metric="latency", unit="us", parameters={"gateway": "x"})
    kept(folder, one)
    assert run(["report", str(folder), "--svg", str(tmp_path / "second")]) == 0
    capsys.readouterr()
    names = [{path.name for path in (tmp_path / kind).iterdir()} for kind in ("first", "second")]
    assert "throughput-against-connections.svg" in names[0]
    assert names[1] - names[0] == {"latency.svg"}
    assert names[0] < names[1]


def test_a_legend_has_the_signs_of_the_plot(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Seen: two circles in the legend of circles and squares."""
    assert run(["report", str(folder), "--svg", str(tmp_path / "svg")]) == 0
    capsys.readouterr()
    drawn = ET.parse(tmp_path / "svg" / "throughput-against-connections.svg")  # noqa: S314 - drawn here
    symbols = [
        path.get("d", "")
        for part in drawn.iter()
        if "role-legend-symbol" in part.get("class", "")
        for path in part.iter()
        if path.get("d")
    ]
    assert ["A" in path for path in symbols] == [True, False], symbols


def test_what_cannot_be_drawn_or_written_is_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert run(["report", str(folder), "--svg", str(tmp_path / "file")]) in {2, 3}
    assert len(capsys.readouterr().err.splitlines()) == 1
