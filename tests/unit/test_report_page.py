# SPDX-License-Identifier: Apache-2.0
"""The page, as text and in a real browser: all of it there, drawn, quiet, and nobody asked for anything."""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.unit.browser import CHROMIUM, Browser
from tests.unit.made_campaign import bell, campaign, rate, trial
from tests.unit.made_results import made
from tests.unit.simulated import Gateway

from natgauge.cli import run
from natgauge.errors import HostError
from natgauge.measurer import Ability, Delays, Direction, TrialPlan
from natgauge.procedures import latency
from natgauge.records.making import make
from natgauge.records.measurement import Result
from natgauge.records.parameters import Parameters
from natgauge.records.store import Store
from natgauge.reports.find_results import find
from natgauge.reports.html import charts
from natgauge.reports.html.figures import figures
from natgauge.reports.html.limits import limit_of, load_limit
from natgauge.reports.html.page import page
from natgauge.reports.html.timed import timed_of
from natgauge.reports.rows import number as printed
from natgauge.reports.sheet import lines_of

MOST_OCTETS = 6_000_000
DELAYS = bell(12_000, 1)
TRIED = {"search_top_phase1_rate": 1.5e5}
FIGURES = [
    "connection-rate: every repetition",
    "throughput: every repetition",
    "frame-loss: every repetition",
    "latency: every repetition",
    "connection-rate against device cores",
    "connection-rate against connections",
    "Loss against load",
    "Relative scale-up",
    "Percent of forwarding",
    "Distribution of delays, 13. x, latency",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return campaign(tmp_path_factory.mktemp("campaign"))


@pytest.fixture(scope="module")
def written(folder: Path) -> Path:
    path = folder / "report.html"
    assert run(["report", "--html", str(path), str(folder)]) == 0
    return path


def latency_of(number: int) -> Result:
    return made([10.0 + number], metric="latency", unit="us")


def text_of(written: Path) -> str:
    """What a reader sees, marks taken away."""
    body = re.sub(r"<(style|script|svg)\b.*?</\1>", " ", written.read_text(), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def test_the_page_is_one_file_of_bearable_size_that_names_nothing_outside(written: Path) -> None:
    found = written.read_text()
    assert len(found.encode()) <= MOST_OCTETS
    # Names of XML's own vocabularies are no addresses that anybody asks.
    addresses = set(re.findall(r"""(?:https?:)?//[^\s"'<)]+""", re.sub(r'xmlns(:\w+)?="[^"]+"', "", found)))
    assert {one for one in addresses if "." in one} == set()
    assert re.findall(r"""(?:src|href)="(?!#|data:)[^"]+""", found) == []
    assert "default-src 'none'" in found


@pytest.mark.parametrize("results", [8, pytest.param(24, marks=pytest.mark.soak)])
def test_a_large_campaign_still_makes_a_page_of_bearable_size(results: int, tmp_path: Path) -> None:
    for number in range(results):
        folder = tmp_path / f"{number:02}"
        folder.mkdir()
        store = Store(folder)
        timed = number % 4 == 0
        result = latency_of(number) if timed else rate(f"nat-{number % 7}", 1e5 + number, 1 + number % 3, 10**5)
        store.write_summary(result.document())
        for each in range(30):
            store.add_trial(trial(delays=DELAYS) if timed else trial("INVALID", reason="x" * 120, trial=each))
    found = find([tmp_path])
    shown = page(found)
    assert len(shown.encode()) <= MOST_OCTETS
    # Nothing is left out: every result has its mark, spread over as many figures as it takes.
    for number, one in enumerate(found.results, start=1):
        assert f'aria-label="{number}. {one.dut}, median: ' in shown
    assert len(re.findall(r"<b>Figure \d+\. Distribution of delays, ", shown)) == results // 4


def test_the_verdict_comes_first_then_figures_tables_parameters_trials_environment_and_commands(written: Path) -> None:
    titles = re.findall(r"<h2>([^<]+)</h2>", written.read_text())
    assert titles == [
        "Verdict", "Figures", "Tables", "Parameters", "Disturbed and invalid trials", "Environment", "Repeat this",
    ]  # fmt: skip


def test_every_row_of_the_text_is_on_the_page(folder: Path, written: Path) -> None:
    shown = text_of(written)
    for line in lines_of(find([folder]).results):
        assert line.heading in shown
        for cell in line.cells:
            assert cell in shown


def test_a_figure_at_a_glance_leads_to_its_result(folder: Path, written: Path) -> None:
    found = written.read_text()
    tables = re.findall(r'<table class="glance">.*?</table>', found, re.DOTALL)
    linked = re.findall(r'<a href="#(result-\d+)">([^<]+)</a>', "".join(tables))
    results = find([folder]).results
    assert sorted(linked) == sorted((f"result-{at}", printed(one.median)) for at, one in enumerate(results, start=1))
    for place, _ in linked:
        assert found.count(f'id="{place}"') == 1


def test_figures_are_those_that_the_results_call_for_each_with_words_and_table(folder: Path, written: Path) -> None:
    found = written.read_text()
    assert re.findall(r"<b>Figure \d+\. ([^<]+)\.</b>", found) == FIGURES
    shown = text_of(written)
    for number in range(1, len(FIGURES) + 1):
        assert f"Figure {number} as a table" in shown
    for one in figures(find([folder]).results):
        assert len(one.alternative) > 20
        assert one.data
        for row in one.data:
            assert len(row) == len(one.head)
            for cell in row:
                assert cell in shown


def test_every_repetition_is_a_point_and_hover_tells_its_value(folder: Path, written: Path) -> None:
    shown = written.read_text()
    for number, one in enumerate(find([folder]).results, start=1):
        for at in range(1, len(one.values) + 1):
            assert f'aria-label="{number}. {one.dut}, repetition {at}: ' in shown


def test_marks_of_one_drawing_never_name_those_of_another(written: Path) -> None:
    found = written.read_text()
    names = re.findall(r'\bid="([\w-]+)"', found)
    assert len(names) == len(set(names))
    assert set(re.findall(r"url\(#([\w-]+)\)", found)) <= set(names)


def test_what_results_say_is_text_and_no_mark(written: Path) -> None:
    found = written.read_text()
    assert "<script>alert" not in found
    assert "a sender stood still &lt;script&gt;alert(1)" in found
    assert "Made &lt;up&gt;" in found


def test_trials_that_were_disturbed_or_not_counted_are_told(written: Path) -> None:
    shown = text_of(written)
    assert "4 trials: 2 PASS, 1 FAIL, 1 INVALID; 2 disturbed." in shown
    assert "CPU 0 stood still for 3 ms" in shown
    assert "did not end: " in shown
    assert "99-unended" in shown


def test_a_folder_without_trials_says_so(tmp_path: Path) -> None:
    Store(tmp_path).write_summary(made([1.0]).document())
    shown = page(find([tmp_path]))
    assert "The folder holds no trials" in shown
    assert "No folder holds an environment" in shown


def test_the_limit_of_the_tester_is_of_each_direction_and_known_or_not() -> None:
    known = rate("x", 1e5, 1, 100, "throughput")
    limit, load = limit_of(known), load_limit(known)
    assert limit is not None
    assert (limit.value, limit.known) == (2e6, True)
    assert load == limit
    tried = made([1.0], metric="connection-rate", unit="connections/s", parameters={"search_top_phase1_rate": 5e6})
    limit = limit_of(tried)
    assert limit is not None
    assert (limit.value, limit.known, limit.label) == (5e6, False, "highest rate tried")
    unbounded = made([1.0], metric="expiry", unit="connections/s", parameters={"search_top_phase1_rate": 5e6})
    assert limit_of(unbounded) is None


class _Looped(Gateway):
    """Its tester knows its own delay."""

    def own_delays(self, plan: TrialPlan) -> dict[Direction, Delays]:
        """Both ways 3.21 us."""
        del plan
        own = 3.21e-6
        return dict.fromkeys(Direction, Delays(1, own, own, own, 0, ((own, own, 1),)))


def test_the_note_of_the_tester_s_own_delay_is_read_as_the_metric_writes_it() -> None:
    asked = latency.LatencySettings(
        connections=1000, placement="isolated", repeat=1, connection_rate=1e5, throughput_rate=1e5, trial_seconds=0.1
    )
    gateway = _Looped(abilities=frozenset({Ability.OWN_DELAYS}))
    limit = limit_of(make(latency.PROCEDURE.measure(gateway, asked), Parameters()))
    assert limit is not None
    assert (limit.value, limit.known) == (3.21, True)
    assert limit_of(make(latency.PROCEDURE.measure(Gateway(), asked), Parameters())) is None


def test_a_line_that_is_no_limit_is_not_called_one() -> None:
    """On a wire nobody knows the tester's limit: the line is where the search ended."""
    wire = [
        made([value], metric="connection-rate", unit="connections/s", parameters={"connections": number, **TRIED})
        for number, value in ((100, 1e5), (1000, 9e4))
    ]
    (curve,) = [one for one in figures(wire) if one.title.endswith("against connections")]
    assert "own limit" not in charts.drawn(curve.draw(720), "x")
    assert "highest rate tried" in charts.drawn(curve.draw(720), "x")
    assert all(row[-1] == "not known; 150,000 tried" for row in curve.data)


def test_the_connections_that_fill_a_cache_are_marked_where_they_are_drawn() -> None:
    caches = {"device_caches": {"L2": 2**21, "L3": 2**29}}
    series = [
        made(
            [value],
            metric="connection-rate",
            unit="connections/s",
            parameters={"connections": number, **caches},
            figures={"octets_per_connection": octets},
        )
        for number, value, octets in ((1000, 1e5, 400.0), (100_000, 9e4, 384.0))
    ]
    (curve,) = [one for one in figures(series) if one.title.endswith("against connections")]
    assert "table larger than the L2 cache: from 5,243 connections on." in curve.caption
    assert "L3" not in curve.caption, "1.4 million connections are beyond the axis"
    assert "table larger than the L2 cache" in charts.drawn(curve.draw(720), "x")


def test_percentiles_of_delays_are_by_nearest_rank_and_spoiled_trials_left_out() -> None:
    buckets = [(1000, 1010, 500), (2000, 2010, 400), (3000, 3010, 99), (9000, 9010, 1)]
    one, other = timed_of(trial(delays=buckets))
    assert (one.direction, other.direction, one.frames) == ("initiator", "responder", 1000)
    assert one.percentiles == {50.0: 1.005, 90.0: 2.005, 99.0: 3.005, 99.9: 3.005, 100.0: 9.005}
    assert [round(share, 6) for _, share in one.points] == [0.5, 0.1, 0.001, 0.0]
    assert list(timed_of(trial("INVALID", delays=buckets))) == []
    assert list(timed_of(trial())) == []


def test_the_page_has_the_command_that_each_result_was_measured_with(folder: Path) -> None:
    section = page(find([folder])).partition('<section id="again">')[2]
    assert "<code>natgauge measure connection-rate --dut nat-a --empty-command &#39;x &gt; y&#39;</code>" in section
    assert "<code>not stored</code>" in section


@pytest.mark.parametrize(
    "damage",
    [
        {"verdict": "MAYBE"},
        {"trial": None, "verdict": "INVALID"},
        {"plan": {"phase2": 7}, "verdict": "INVALID"},
        {"result": 7},
        {"result": {"phase2": {"initiator": {"delay": {"buckets": [[1, 2]]}}}}},
        {"result": {"phase2": {"initiator": {"delay": {"buckets": [[1, 2, 0]]}, "intended_rate": 1}}}},
    ],
    ids=str,
)
@pytest.mark.parametrize("form", ["--html", "--parquet"])
def test_a_damaged_trial_is_one_line_or_taken_as_it_is(
    form: str, damage: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "damaged"
    folder.mkdir()
    store = Store(folder)
    store.write_summary(latency_of(1).document())
    store.add_trial(trial())
    store._append("trials.jsonl", {"schema": "natgauge-trial-2", **trial(), "trial": 2, **damage})
    status = run(["report", form, str(tmp_path / "out"), str(folder)])
    errors = capsys.readouterr().err.splitlines()
    # Data frames keep what they do not read; what they do read must be of its kind.
    assert (status, len(errors)) in ([(2, 1)] if form == "--html" else [(2, 1), (0, 0)])
    assert all(f"{folder / 'trials.jsonl'}:2 is no trial" in line for line in errors)


def test_a_library_that_is_missing_is_one_line_with_the_command(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Python's own mark of a module that cannot be imported.
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(HostError, match=r"jinja2.*pip install 'natgauge\[report\]'"):
        page(find([folder]))
    assert run(["report", "--html", str(tmp_path / "x.html"), str(folder)]) == 3
    *_, line = capsys.readouterr().err.splitlines()
    assert "pip install 'natgauge[report]'" in line
    assert not (tmp_path / "x.html").exists()


@pytest.mark.parametrize(("place", "why"), [("", "it is a folder"), ("no/x.html", "there is no folder")])
def test_a_place_that_cannot_be_written_is_one_line(
    place: str, why: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", "--html", str(tmp_path / place), str(folder)]) == 2
    *_, line = capsys.readouterr().err.splitlines()
    assert "cannot write" in line
    assert why in line


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium: apt-get install chromium (tools/debian-packages.txt, test)")
    with Browser() as one:
        yield one


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "kind"), [(1280, "wide"), (390, "narrow")])
def test_a_browser_draws_all_figures_fits_them_in_and_has_nothing_to_complain_of(
    browser: Browser, written: Path, width: int, kind: str, scheme: Literal["light", "dark"]
) -> None:
    browser.said.clear()
    browser.asked.clear()
    browser.open(written, width, scheme)
    drawn = browser.ask(
        f"[...document.querySelectorAll('.chart.{kind} svg')].map((one) => one.getBoundingClientRect().width)"
    )
    assert len(drawn) == len(FIGURES)
    assert all(0.7 * min(width, 900) < one <= width for one in drawn)
    points = browser.ask(
        f"[...document.querySelectorAll('.chart.{kind} [aria-roledescription=point]')]"
        ".filter((one) => one.getBoundingClientRect().width > 0).length"
    )
    assert points > 100
    # Nothing makes the page wider than its window.
    assert browser.ask("document.documentElement.scrollWidth") <= width
    paper = browser.ask("getComputedStyle(document.body).backgroundColor")
    assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 27)"}[scheme]
    assert browser.asked == [written.as_uri()]
    assert browser.said == []


def test_labels_are_not_cut_off_by_the_edge_of_their_drawing(browser: Browser, written: Path) -> None:
    for width, kind in ((1280, "wide"), (390, "narrow")):
        browser.open(written, width)
        cut = browser.ask(
            f"[...document.querySelectorAll('.chart.{kind} svg')].flatMap((svg) => {{"
            "const box = svg.getBoundingClientRect();"
            "return [...svg.querySelectorAll('text')].filter((one) => {"
            "const its = one.getBoundingClientRect();"
            "return its.width && (its.left < box.left - 1 || its.right > box.right + 1);"
            "}).map((one) => one.textContent); })"
        )
        assert cut == []


def test_a_pointer_is_told_the_value(browser: Browser, written: Path) -> None:
    browser.open(written, 1280)
    place = browser.ask(
        "(() => { const one = document.querySelector('.chart.wide [aria-roledescription=point]');"
        "one.scrollIntoView({block: 'center', behavior: 'instant'}); const box = one.getBoundingClientRect();"
        "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
    )
    assert browser.ask("document.getElementById('tip').hidden") is True
    browser.point_at(*place)
    told = browser.ask("document.getElementById('tip').textContent")
    assert re.fullmatch(r"\d+\. [\w-]+, (repetition \d+|median): [\d,.]+ connections/s", told)
    browser.point_at(5, 5)
    assert browser.ask("document.getElementById('tip').hidden") is True


def test_a_figure_at_a_glance_unfolds_its_result(browser: Browser, written: Path) -> None:
    browser.open(written, 1280)
    folded = "document.getElementById('result-3').closest('details').open"
    assert browser.ask(folded) is False
    browser.ask("document.querySelector('.glance a[href=\"#result-3\"]').click()")
    # The page hears of its new address a moment later.
    assert browser.ask(f"new Promise((told) => setTimeout(() => told({folded}), 100))") is True


def test_the_page_is_printed_on_paper(browser: Browser, written: Path) -> None:
    browser.open(written, 1280, "dark")
    paper = browser.paper()
    assert paper.startswith(b"%PDF-")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", paper)) <= 40
