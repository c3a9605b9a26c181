# SPDX-License-Identifier: Apache-2.0
"""The page, as text and in a real browser: all of it there, drawn, quiet, and nobody asked for anything."""

from __future__ import annotations

import html
import json
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, get_args

import pytest
from tests.absent import absent
from tests.plans import PlanOfTrial
from tests.unit.browser import CHROMIUM, Browser
from tests.unit.golden import Golden
from tests.unit.made_campaign import bell, campaign, rate, trial
from tests.unit.made_comparisons import compared, estimate
from tests.unit.made_results import keep, kept, made
from tests.unit.pages import lines_of as lines_of_page
from tests.unit.pages import unmarked
from tests.unit.simulated import Gateway

from natgauge.cli import run
from natgauge.delays import Delays
from natgauge.doubt_words import DoubtWord
from natgauge.errors import BrokenError
from natgauge.figure_text import at_least, at_most
from natgauge.measurements.record import make
from natgauge.measurer import Ability
from natgauge.notes import Grade, Note
from natgauge.procedures import latency
from natgauge.records.audit import AuditedRequirement, AuditEvidence, AuditRecord, BehaviourClasses
from natgauge.records.campaign import CAMPAIGN_SCHEMA
from natgauge.records.measurement import Result
from natgauge.records.parameters import Parameters
from natgauge.records.store import JOURNAL_SCHEMA, Store, write_document
from natgauge.reports.answers import answers
from natgauge.reports.graded_doubts import explained, mark
from natgauge.reports.html import charts
from natgauge.reports.html.charts import limit_of, load_limit
from natgauge.reports.html.evidence import LoadDelays
from natgauge.reports.html.figures import FigureGroup, forest_figures, looks_of, question_figures
from natgauge.reports.html.page import _tables_of_metrics, page
from natgauge.reports.main_figure import in_cell, median, repetitions
from natgauge.reports.sheet import lines_of
from natgauge.stored.find_results import find
from natgauge.trial.question import command_again
from natgauge.trials import Direction

MOST_OCTETS = 3_000_000
DELAYS = bell(12_000, 1)
TRIED = {"search_top_phase1_rate": 1.5e5}
FIGURES = [
    "New connections per second against cores (connections/s)",
    "New connections per second against connections (connections/s)",
    "Frames per second without loss (frames/s in each direction)",
    "Loss against load",
    "Delay of a frame (us)",
    "Delays: share of the frames that took longer",
]
PANELS = len(FIGURES)


def groups_of(results: Sequence[Result]) -> list[FigureGroup]:
    return question_figures(results, [()] * len(results), looks_of(results, []))


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


def sent_at(rate: float) -> dict[str, Any]:
    """A trial of 500 timed frames in each direction, sent at this rate."""
    found = trial(delays=[(1000, 1010, 500)])
    for counts in found["result"]["phase2"].values():
        counts["intended_rate"] = rate
    return found


def page_at(folder: Path) -> Path:
    """Where the page of a folder is, in it."""
    path = folder / "page.html"
    assert run(["report", "--html", str(path), str(folder)]) == 0
    return path


def page_of(folder: Path) -> str:
    return page_at(folder).read_text()


def text_of(written: Path) -> str:
    """What a reader sees, marks taken away."""
    return " ".join(lines_on(written))


def lines_on(written: Path) -> list[str]:
    return lines_of_page(written.read_text())


def test_the_page_is_one_file_of_bearable_size_that_names_nothing_outside(written: Path) -> None:
    found = written.read_text()
    assert len(found.encode()) <= MOST_OCTETS
    # Names of XML's own vocabularies are no addresses that anybody asks.
    addresses = set(re.findall(r"""(?:https?:)?//[^\s"'<)]+""", re.sub(r'xmlns(:\w+)?="[^"]+"', "", found)))
    assert {one for one in addresses if "." in one} == set()
    assert re.findall(r"""(?:src|href)="(?!#|data:)[^"]+""", found) == []
    assert "default-src 'none'" in found


@pytest.mark.parametrize("results", [8, pytest.param(100, marks=pytest.mark.soak)])
def test_a_large_campaign_still_makes_a_page_of_bearable_size(results: int, tmp_path: Path) -> None:
    for number in range(results):
        folder = tmp_path / f"{number:02}"
        folder.mkdir()
        store = Store(folder)
        timed = number % 4 == 0
        result = latency_of(number) if timed else rate(f"nat-{number % 7}", 1e5 + number, 1 + number % 3, 10**5)
        keep(store, result)
        for each in range(30):
            passed = timed or not each
            store.add_trial(trial(delays=DELAYS if timed else ()) if passed else trial("INVALID", reason="x" * 120))
    found = find([tmp_path])
    shown = page(found, command_again)
    assert len(shown.encode()) <= MOST_OCTETS
    # Nothing is left out: every result has its mark, spread over as many figures as it takes.
    for one in found.results:
        assert re.search(rf'aria-label="{one.gateway}[^"]*median {re.escape(median(one))} ', shown)
    assert shown.count("took longer than") > 0
    assert shown.count(", latency</figcaption>") == results // 4


def test_answers_come_first_with_the_figure_of_the_question_then_results_and_the_evidence(
    written: Path, golden: Golden
) -> None:
    titles = re.findall(r"<h2>([^<]+)</h2>", written.read_text())
    golden(titles)


def test_the_answers_of_the_page_are_those_of_the_records(folder: Path, written: Path) -> None:
    shown = text_of(written)
    found = find([folder]).results
    for sentence in (one for one in answers(found) if not one.unlike):
        assert sentence.text in shown


def test_doubts_that_could_change_the_answer_are_words_and_others_wait_behind_a_click(
    tmp_path: Path, golden: Golden
) -> None:
    words = {"taking turns": "half of the core", "wide spread": "12 % of the median", "table inferred": "of the rules"}
    doubts = [{"word": word, "text": text} for word, text in words.items()]
    Store(tmp_path).write_summary(made([1.0], doubts=doubts).document())
    shown = page_of(tmp_path).partition('<section id="results">')[0]
    open_, *folded = shown.split("<details><summary>")
    assert [word for word, text in words.items() if text in open_] == ["taking turns"]
    golden([part.partition("</summary>")[0] for part in folded])


def test_a_page_names_a_doubt_once_and_leaves_causes_that_another_names_to_the_evidence(tmp_path: Path) -> None:
    """Seen: sixteen lines of doubts stood on the first screen, several of them with one word."""
    spread = [Note("wide spread", "by 12 %"), Note("disturbed trials", "3 of 40 trials were disturbed")]
    grades: tuple[Grade, ...] = ("information", "answer")
    for at, grade in enumerate(grades):
        doubts = [asdict(each) for each in (Note("throughput doubted", "t", grade=grade), *spread)]
        folder = tmp_path / str(at)
        folder.mkdir()
        Store(folder).write_summary(made([1.0], doubts=doubts, parameters={"gateway": f"nat-{at}"}).document())
    shown, _, evidence = page_of(tmp_path).partition('<section id="results">')
    assert shown.count("<b>throughput doubted</b>") == 1
    lines = lines_of_page(shown)
    assert "Could change the answer: nat-1 (throughput)" in lines
    assert "For information: nat-0 (throughput)" in lines
    assert "disturbed trials" not in shown
    assert evidence.count("<b>disturbed trials</b>") == 2


def test_causes_that_the_printed_text_of_a_doubt_does_not_name_are_behind_it(tmp_path: Path) -> None:
    """Seen: the text was that of the first result, and the INVALID trials of the second were on no screen."""
    spread = {"word": "wide spread", "text": "by 12 %"}
    more = [{"word": word, "text": f"{word} of it"} for word in ("INVALID trials", "contradictions")]
    for at, doubts in enumerate(([spread], [{**spread, "text": "by 9 %; 2 of 40 trials were INVALID"}, *more])):
        (folder := tmp_path / str(at)).mkdir()
        Store(folder).write_summary(made([1.0], doubts=doubts, parameters={"gateway": f"nat-{at}"}).document())
    shown = page_of(tmp_path).partition('<section id="results">')[0]
    (line,) = (one for one in lines_of_page(shown) if "by 12 %" in one)
    assert "INVALID trials" in line
    assert "contradictions" in line


def test_every_row_of_the_text_is_on_the_page(folder: Path, written: Path) -> None:
    shown = text_of(written)
    for line in lines_of(find([folder]).results):
        assert line.heading in shown
        for cell in line.cells:
            assert cell in shown


def test_a_figure_at_a_glance_leads_to_its_result(folder: Path, written: Path) -> None:
    found = written.read_text()
    tables = re.findall(r'<table class="glance cards">.*?</table>', found, re.DOTALL)
    linked = re.findall(r'<a href="#(result-\d+)">([^<]+)</a>([^<]*)', "".join(tables))
    results = find([folder]).results
    # It has the mark that it has in the figures, and the text below says what the mark is.
    expected = [(f"result-{at}", median(one), mark(one.doubts)) for at, one in enumerate(results, start=1)]
    assert sorted((place, figure, sign.strip()) for place, figure, sign in linked) == sorted(expected)
    assert "*" in {sign for _, _, sign in expected}
    assert f"Click a median for its evidence. {explained(one.doubts for one in results)}" in text_of(written)
    for place, *_ in linked:
        assert found.count(f'id="{place}"') == 1


def test_figures_are_those_that_the_results_call_for_each_with_words_and_table(
    folder: Path, written: Path, golden: Golden
) -> None:
    found = written.read_text()
    drawn = re.findall(r'<div class="group[^>]*>\s*<h[23]>([^<]+)</h[23]>', found.partition("Every repetition")[0])
    golden(drawn)
    shown = text_of(written)
    for group in groups_of(find([folder]).results):
        for one in group.figures:
            assert f"{html.escape(one.finding)}" in found
            for row in one.data:
                assert len(row) == len(one.head)
                for cell in row:
                    assert cell in shown


def test_a_gateway_has_one_colour_throughout_the_page_and_plain_forwarding_is_grey() -> None:
    results = [
        rate(gateway, 1e5 * cores, cores, 1000, metric)
        for metric in ("connection-rate", "throughput")
        for gateway in ("a", "linux-ipv4", "b")
        for cores in (1, 2)
    ]
    legends = {group.legend for group in groups_of(results)}
    assert len(legends) == 1
    colours = {name: colour for name, colour, _ in legends.pop()}
    assert colours["linux-ipv4"] == "var(--muted)"
    assert len(set(colours.values())) == len(colours) == 3
    # Other gateways on the page and another order seldom change the colour of a gateway.
    assert looks_of([rate("b", 1e5, 1, 1000), rate("linux-ipv4", 1e5, 1, 1000)], [])["b"]["colour"] == colours["b"]


def test_eight_gateways_have_eight_colours() -> None:
    looks = looks_of([rate(f"gateway-{at}", 1e5, 1, 1000) for at in range(8)], [])
    assert len({look["colour"] for look in looks.values()}) == 8


def test_a_chart_over_cores_has_the_ideal_and_one_over_connections_a_band() -> None:
    cores = groups_of([rate("a", 1e5 * count, count, 1000) for count in (1, 2)])[0].figures[0].spec["layer"]
    assert any(layer["mark"].get("strokeDash") == [2, 3] for layer in cores)
    many = groups_of([rate("a", 1e5, 1, count) for count in (1000, 10_000)])[0].figures[0].spec["layer"]
    assert any(layer["mark"]["type"] == "area" for layer in many)
    assert many[0]["encoding"]["x"]["scale"]["type"] == "log"


@pytest.mark.parametrize("times", [1, 100])
def test_a_caption_says_which_axes_are_logarithmic(times: int) -> None:
    """Seen: the axis of values was logarithmic, and the caption named the other one alone."""
    group = groups_of([rate("a", 1e5 * value, 1, count) for value, count in ((1, 1000), (times, 10_000))])[0]
    drawn = next(
        layer["encoding"] for layer in group.figures[0].spec["layer"] if {"x", "y"} <= layer["encoding"].keys()
    )
    assert [drawn[name]["scale"]["type"] for name in "xy"] == ["log", "log" if times > 1 else "linear"]
    for caption in (group.caption, group.figures[0].caption):
        assert ("Both axes are logarithmic" in caption) == (times > 1)


def test_the_line_of_ideal_scaling_lies_within_a_logarithmic_axis() -> None:
    results = [rate(gateway, value, count, 1000) for gateway, value in (("a", 1e6), ("b", 1e4)) for count in (1, 8)]
    layers = groups_of(results)[0].figures[0].spec["layer"]
    (ideal,) = [layer for layer in layers if layer["mark"].get("strokeDash") == [2, 3]]
    scale = ideal["encoding"]["y"]["scale"]
    assert scale["type"] == "log"
    highest = max(row["y"] for row in ideal["data"]["values"])
    assert highest == pytest.approx(8e6, rel=0.05)
    assert highest < scale["domain"][1]


def test_the_cost_is_defined_before_the_figure_that_uses_it(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write_plan({})
    store.write_comparison(compared().document())
    text = page_of(tmp_path)
    assert 0 < text.index("(work of the device)") < text.index('class="chart"')


def test_a_cost_is_drawn_next_to_plain_forwarding_and_of_a_rate_alone_it_is_not_known() -> None:
    (cost,) = groups_of([made([1.6, 1.7, 1.65], metric="cost", unit="x forwarding", median=1.65)])
    rows = [row for layer in cost.figures[0].spec["layer"] for row in layer["data"]["values"] if "value" in row]
    assert {row["value"] for row in rows} == {1.65, 1.0}
    assert "Plain forwarding" not in cost.caption
    alone, plain = rate("nat", 1e5, 1, 1000), rate("linux-ipv4", 2e5, 1, 1000)
    (group,) = groups_of([alone])
    assert group.caption.endswith("Plain forwarding (gateway linux-ipv4) was not measured.")
    for known in ([alone, plain], [plain], [alone, rate("other", 1e5, 1, 1000)]):
        assert not [each for each in groups_of(known) if "was not measured" in each.caption]


def test_no_line_of_a_page_ends_within_a_figure(written: Path) -> None:
    text = html.unescape(unmarked(written.read_text()))
    sentences = re.findall(r'<li class="[^"]*">([^<]*)</li>', text)
    assert any("\u00a0%" in each and "±\u00a0" in each for each in sentences)
    assert not [each for each in sentences if re.search(r"± \d|\d (?:%|[kM]\b|[kM]?bit)", each)]


def test_charts_of_a_group_have_the_same_axes() -> None:
    results = [
        rate("a", 1e5 * cores * factor, cores, size) for factor, size in ((1, 1000), (3, 9000)) for cores in (1, 2)
    ]
    (group, *_) = groups_of(results)
    scales = [
        [layer["encoding"][axis]["scale"] for axis in "xy"] for one in group.figures for layer in one.spec["layer"]
    ]
    assert len(group.figures) == 2
    assert scales == scales[:1] * len(scales)
    assert scales[0][1]["domain"][1] > 6e5


def test_a_far_reference_is_cut_with_its_number_and_leaves_the_gateway_a_bar_that_can_be_read() -> None:
    """Seen: the tester's own limit was 20 times the gateway's rate, whose bar was a few points long."""

    def bars(limit: float) -> tuple[list[Any], float]:
        parameters = {"tester_highest_phase2_rate": limit, "directions": "up"}
        (group,) = groups_of([made([2e5], parameters=parameters)])
        layers = group.figures[0].spec["layer"]
        (values,) = [layer for layer in layers if layer["mark"]["type"] == "bar"]
        return values["data"]["values"], values["encoding"]["x"]["scale"]["domain"][1]

    (own, far), end = bars(4e6)
    assert own["value"] > end / 4
    assert (far["value"] <= end, far["open_high"], "4 M" in far["name"], "4 M" in far["tip"]) == (True,) * 4
    (_, near), _ = bars(4e5)
    assert (near["value"], near["open_high"]) == (4e5, False)


def test_marks_of_figures_link_the_doubts(tmp_path: Path) -> None:
    """Seen: "see the doubts with the answers", of which nobody knew where they are."""
    doubts = [{"word": "drift", "text": "it rose", "grade": "answer"}]
    kept(tmp_path, made([1.0, 2.0], doubts=doubts))
    shown = page_of(tmp_path)
    assert shown.count('<a href="#doubts">') >= 1
    assert shown.count('id="doubts"') == 1
    kept(tmp_path / "plain", made([1.0, 1.0]))
    assert "#doubts" not in page_of(tmp_path / "plain")


def test_bars_come_by_rank_and_six_orders_of_magnitude_on_a_logarithmic_axis() -> None:
    near = groups_of([made([value], parameters={"gateway": f"g{value}"}) for value in (1.0, 3.0, 2.0)])
    assert [row[0] for row in near[0].figures[0].data] == ["g3.0", "g2.0", "g1.0"]
    far = groups_of([made([10.0**power], parameters={"gateway": f"g{power}"}) for power in range(1, 8)])
    layer = far[0].figures[0].spec["layer"][0]
    assert (layer["mark"]["type"], layer["encoding"]["x"]["scale"]["type"]) == ("tick", "log")


def test_the_first_screen_has_costs_then_subscribers_and_then_what_explains_them(tmp_path: Path) -> None:
    """Seen: what was asked for, the subscribers, was drawn last, and the costs of rule sets below all rates."""
    for metric, unit in (("throughput", "frames/s"), ("connection-rate", "connections/s"), ("subscribers",) * 2):
        kept(tmp_path, made([1.0], metric=metric, unit=unit))
    kept(tmp_path, compared())
    shown = page_of(tmp_path)
    first, _, further = shown.partition('<section id="figures">')
    assert ["Cost of a frame" in part for part in (first, further.partition('<section id="records">')[0])] == [
        True,
        False,
    ]
    assert first.index("A frame from") < first.index("x carries")
    titles = re.findall("<h2>([^<]+)</h2>", unmarked(first))
    assert titles[:2] == [
        "Cost of a frame (work of the device), compared with nftables-nat44",
        "Subscribers (subscribers)",
    ]


def test_what_the_bars_of_a_chart_share_and_others_lack_is_its_title() -> None:
    results = [
        made([1.0], parameters={"gateway": gateway, "frame_size": size}) for size in (64, 84) for gateway in ("a", "b")
    ]
    figures = groups_of(results)[0].figures
    assert [one.title for one in figures] == ["64 octets", "84 octets"]
    names = [row["name"] for one in figures for row in one.spec["layer"][0]["data"]["values"]]
    assert names == ["a|1", "b|1", "a|1", "b|1"]
    assert [row[0] for row in figures[0].data] == ["a, 64 octets", "b, 64 octets"]


def test_every_repetition_is_a_point_and_hover_tells_its_value(folder: Path, written: Path) -> None:
    shown = written.read_text()
    for one in find([folder]).results:
        for at, value in enumerate(repetitions(one), start=1):
            assert re.search(rf'aria-label="{one.gateway}[^"]*, repetition {at}: {re.escape(value)} ', shown)


def test_marks_of_one_drawing_never_name_those_of_another(written: Path) -> None:
    found = written.read_text()
    names = re.findall(r'\bid="([\w-]+)"', found)
    assert len(names) == len(set(names))
    assert set(re.findall(r"url\(#([\w-]+)\)", found)) <= set(names)


def test_what_results_say_is_text_and_no_mark(written: Path) -> None:
    found = written.read_text()
    assert "<script>alert" not in found
    assert "&lt;script&gt;alert(1)" in found
    assert "Made &lt;up&gt;" in found


def test_trials_that_were_disturbed_or_not_counted_are_told(written: Path, golden: Golden) -> None:
    golden([line for line in lines_on(written) if "trials: " in line or "stood still" in line or "unended" in line])


def test_a_measurement_that_failed_says_what_happened_and_what_to_do(tmp_path: Path, golden: Golden) -> None:
    store = Store.create(tmp_path, "throughput", "nat")
    store.write_plan({"gateway": "nat", "command": "natgauge measure throughput --gateway nat"})
    store.add_trial(trial("FAIL", reason="12 of 5000 frames lost"))
    with pytest.raises(BrokenError), store.evidence():
        raise BrokenError("lab: the device ended; see its log")
    golden(lines_on(page_at(store.folder)))
    assert run(["report", str(store.folder)]) == 2, "there is no table of it"


def test_a_measurement_that_failed_before_its_plan_was_known_has_its_page(tmp_path: Path, golden: Golden) -> None:
    store = Store.create(tmp_path, "connection-rate", "mine")
    store.add_trial(trial("FAIL", reason="none of 8 frames came back"))
    command = "natgauge measure connection-rate --gateway ./mine.toml --seed 7"
    with pytest.raises(BrokenError) as raised, store.evidence(command):
        raise BrokenError("device does not forward: 0 of 8 frames came back")
    assert raised.value.evidence == store.folder
    golden(lines_on(page_at(tmp_path)))


def test_a_campaign_whose_measurements_broke_has_a_page_with_the_cause_and_the_command(
    tmp_path: Path, golden: Golden
) -> None:
    cells: list[dict[str, Any]] = [
        {"name": gateway, "device": gateway, "values": {}, "measurements": [
            {"name": "throughput", "repetitions": 2, "estimated_seconds": 1.0}
        ]}
        for gateway in ("nat", "other")
    ]  # fmt: skip
    record = {"natgauge": "1", "name": "made", "plan": {}, "sha256": "", "seed": 1, "recipes": {}, "cells": cells}
    write_document(tmp_path / "campaign.json", {"schema": CAMPAIGN_SCHEMA, **record})
    line = {"schema": JOURNAL_SCHEMA, "event": "broken", "scope": "device", "device": "nat", "cell": "nat"}
    (tmp_path / "journal.jsonl").write_text(json.dumps({**line, "cause": "nat is not installed"}) + "\n")
    golden(lines_on(page_at(tmp_path)))


def test_a_folder_of_all_kinds_is_one_page(tmp_path: Path, golden: Golden) -> None:
    kept(tmp_path, made([1.0]), compared())
    Store.create(tmp_path, "latency", "nat").write_plan({"gateway": "nat"})
    campaign(tmp_path / "campaign")
    shown = lines_on(page_at(tmp_path))
    golden(shown[: shown.index("Further figures")], passing=r"\d{4}-\d\d-\d\d(?!-)")


def test_a_folder_without_trials_says_so(tmp_path: Path, golden: Golden) -> None:
    (folder := tmp_path / "kept").mkdir()
    Store(folder).write_summary(made([1.0]).document())
    path = page_at(folder)
    golden(lines_on(path))


def test_evidence_is_named_from_the_page_or_alone(tmp_path: Path) -> None:
    """Seen: the private path of a comparison, twice, on a page that its reader got without the folder."""
    kept(tmp_path / "results", made([1.0]), compared(), audited())
    (elsewhere := tmp_path / "pages").mkdir()
    for place, head in ((tmp_path, "results/"), (tmp_path / "results", ""), (elsewhere, "")):
        shown = page(find([tmp_path / "results"]), command_again, place)
        named = re.findall(r"Evidence: <code>([^<]+)</code>", shown)
        assert sorted(named) == sorted(f"{head}{one.name}" for one in (tmp_path / "results").iterdir())
        assert str(tmp_path) not in shown
        assert "evidence: " not in shown


def test_a_page_names_the_standards_of_what_it_shows(tmp_path: Path) -> None:
    kept(tmp_path, audited())
    assert page_of(tmp_path).count("Requirements: RFC 4787.") == 1
    assert "Methods: " not in page_of(tmp_path)
    kept(tmp_path, made([1.0]))
    assert "Methods: RFC 9693, RFC 8219 and RFC 2544. Requirements: RFC 4787." in page_of(tmp_path)


def test_the_limit_of_the_tester_is_of_each_direction_and_known_or_not() -> None:
    known = rate("x", 1e5, 1, 100, "throughput")
    limit, load = limit_of(known), load_limit(known)
    assert limit is not None
    assert (limit.value, limit.known) == (2e6, True)
    assert load == limit
    both = limit_of(made([1.0], metric="mixed-load", parameters={"tester_highest_phase2_rate": 4e6}))
    assert both is not None
    assert both.value == 2e6
    tried = made([1.0], metric="connection-rate", unit="connections/s", parameters={"search_top_phase1_rate": 5e6})
    limit = limit_of(tried)
    assert limit is not None
    assert (limit.value, limit.known, limit.label) == (5e6, False, "highest rate tried")
    unbounded = made([1.0], metric="expiry", unit="connections/s", parameters={"search_top_phase1_rate": 5e6})
    assert limit_of(unbounded) is None


class _Looped(Gateway):
    """Its tester knows its own delay."""

    def own_delays(self, plan: PlanOfTrial) -> dict[Direction, Delays]:
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


def test_a_line_that_is_no_limit_is_not_called_one(golden: Golden) -> None:
    """On a wire nobody knows the tester's limit: the line is where the search ended."""
    wire = [
        made([value], metric="connection-rate", unit="connections/s", parameters={"connections": number, **TRIED})
        for number, value in ((100, 1e5), (1000, 9e4))
    ]
    (group,) = groups_of(wire)
    drawn = charts.drawn(group.figures[0].spec, "x")
    assert "own limit" not in drawn + group.caption
    assert "highest rate tried" in drawn
    golden(group.figures[0].data)


def test_the_connections_that_fill_a_cache_are_marked_where_they_are_drawn(golden: Golden) -> None:
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
    (curve,) = groups_of(series)[0].figures
    golden(curve.finding)
    assert "L3" not in curve.finding, "1.4 million connections are beyond the axis"
    assert "L2" in charts.drawn(curve.spec, "x")


def test_a_cache_that_gateways_fill_at_other_numbers_has_a_line_for_each() -> None:
    """Seen: the line of Open vSwitch's table, at 22 k connections, for nftables, too, which needs 87.4 k."""

    def marks(*octets: float | None) -> list[tuple[float, str, str]]:
        series = [
            made(
                [value],
                metric="connection-rate",
                unit="connections/s",
                parameters={"gateway": gateway, "connections": number, "device_caches": {"L3": 2**25}},
                figures={} if own is None else {"octets_per_connection": own},
            )
            for gateway, own in zip("ab", octets, strict=True)
            for number, value in ((1000, 2e5), (1_000_000, 1e5))
        ]
        (curve,) = groups_of(series)[0].figures
        layers = [layer for layer in curve.spec["layer"] if layer["mark"].get("strokeDash") == [5, 4]]
        return [
            (round(row["x"]), row["label"], layer["mark"]["color"])
            for layer in layers
            for row in layer["data"]["values"]
        ]

    (alike,) = marks(384.0, 390.0)
    assert alike == (86_037, "table fills the L3 cache", "var(--limit)")
    first, second = marks(384.0, 1535.0)
    assert [first[0], second[0]] == [21_860, 87_381]
    assert ["b " in first[1], "a " in second[1]] == [True, True]
    assert first[2] != second[2]
    # Of the other one nothing is known.
    ((_, label, _),) = marks(384.0, None)
    assert label.startswith("a ")


@pytest.mark.parametrize(("word", "end"), [("queues", "low"), ("rare loss", "high"), ("", "")])
def test_a_figure_says_of_a_doubtful_value_what_the_table_says(word: str, end: str) -> None:
    """Seen: a point at 284 k, whose cell said "at most 317 k"."""
    doubts = [{"word": word, "text": "x", "grade": "answer"}] if word else []
    series = [
        made([9e4, 1e5, 1.1e5], metric="connection-rate", unit="connections/s", doubts=doubts, parameters=own)
        for number in (1000, 9000)
        for own in [{"gateway": "x", "connections": number, "error": "5%"}]
    ]
    group = groups_of(series)[0]
    (curve,) = group.figures
    (rows,) = (
        layer["data"]["values"]
        for layer in curve.spec["layer"]
        if layer["mark"].get("strokeWidth") == 2 and layer["mark"]["type"] == "line"
    )
    cell = in_cell(series[0])
    for row in rows:
        assert row["hollow"] == bool(word)
        assert [way for way in ("low", "high") if row[f"open_{way}"]] == ([end] if end else [])
    assert ("only bounds are known" in group.caption) == bool(word)
    if word:
        closed = rows[0]["high" if end == "low" else "low"]
        assert cell == f"100 k, {f'at most {at_most(closed)}' if end == 'low' else f'at least {at_least(closed)}'}†"
        assert cell.removesuffix("†") in curve.data[0][2]


def test_names_stand_left_of_bars_and_ratios() -> None:
    bars = groups_of([made([value], parameters={"gateway": f"g{value}"}) for value in (1.0, 3.0)])[0].figures[0]
    ratios = forest_figures("", compared(), looks_of([], [compared()])).figures[0]
    for figure in (bars, ratios):
        (names,) = [one["mark"] for one in figure.spec["layer"] if one["encoding"].get("text") == {"field": "name"}]
        assert names["x"] < -7 * len("g1.0")


def test_ratios_of_all_quantities_have_one_axis() -> None:
    record = compared([estimate(), estimate("other", 3.0, 2.0, 4.0, quantity="new")])
    group = forest_figures("", record, looks_of([], [record]))
    (domain,) = {tuple(one.spec["layer"][0]["encoding"]["x"]["scale"]["domain"]) for one in group.figures}
    assert len(group.figures) == 2
    assert domain[0] < 1
    assert domain[1] > 4


def test_a_table_of_more_points_than_devices_has_a_row_for_each_point() -> None:
    (table,) = _tables_of_metrics([rate("a", 1e5, 1, 1000 * count) for count in range(1, 9)])
    assert (table.corner, table.head, len(table.rows)) == ("conditions", ("a",), 8)
    assert [entry.column for _, ((entry,),) in table.rows] == list(range(1, 9))


def test_percentiles_of_delays_are_by_nearest_rank_and_spoiled_trials_left_out() -> None:
    buckets = [(1000, 1010, 500), (2000, 2010, 400), (3000, 3010, 99), (9000, 9010, 1)]
    counts = LoadDelays()
    for each in (trial(delays=buckets), trial(delays=buckets), trial("INVALID", delays=[(1, 2, 9)]), trial()):
        counts.add(each)
    other, one = counts.distributions()
    assert (one.direction, other.direction, one.frames) == ("initiator", "responder", 2000)
    assert one.percentiles == {50.0: 1.005, 90.0: 2.005, 99.0: 3.005, 99.9: 3.005, 100.0: 9.005}
    assert [round(share, 6) for _, share in one.points] == [0.5, 0.1, 0.001, 0.0]


def test_a_loss_curve_goes_through_the_medians_of_rounds_that_have_throughputs_of_their_own() -> None:
    """100 % of a campaign in shared placement is twice a throughput that each round searches anew."""
    series = [
        [
            {"offered_percent": load, "offered_rate": full * load / 100, "shortfall_percent": lost + number}
            for load, lost in ((100.0, 40.0), (50.0, 0.0))
        ]
        for number, full in enumerate((1e6, 1.2e6, 8e5))
    ]
    parameters = {"placement": "shared", "directions": "up"}
    measured: dict[str, Any] = {"metric": "frame-loss", "unit": "%", "series": series}
    free = {"highest_rate_without_loss": [5e5, 6e5, 4e5]}
    (group,) = groups_of([made([40.0, 41.0, 42.0], parameters=parameters, figures=free, **measured)])
    (figure,) = group.figures
    (strokes,) = [
        layer["data"]["values"]
        for layer in figure.spec["layer"]
        if (layer["mark"]["type"], layer["mark"].get("strokeWidth")) == ("rule", 2)
    ]
    found = [tuple(row[name] for name in ("x", "y", "low", "high")) for row in strokes]
    assert found == [(5e5, 1.0, 0.0, 2.0), (1e6, 41.0, 40.0, 42.0)]
    # What passed is said as the answer says it, though a round lost some of it.
    assert "no loss up to 500 k frames/s ± 20 %, 41 % at " in figure.finding
    assert figure.head[2] == "offered load (frames/s from inside)"
    tolerant = {**parameters, "loss_tolerance": 0.005}
    (group,) = groups_of([made([40.0, 41.0, 42.0], parameters=tolerant, **measured)])
    assert "more than 0.5% lost at the lowest load, 41 % at " in group.figures[0].finding


def test_delays_of_a_load_are_one_line_of_rounds_that_have_throughputs_of_their_own() -> None:
    series = [
        [{"load_percent": load, "rate": full * load / 100, "typical_latency_us": 10.0} for load in (100.0, 50.0)]
        for full in (1e5, 1.1e5)
    ]
    result = made([10.0, 10.0], metric="latency", unit="us", series=series, parameters={"directions": "both"})
    counts = LoadDelays(result)
    for sent in (1e5, 1.1e5, 5e4, 5.5e4):
        counts.add(sent_at(sent))
    found = counts.distributions()
    assert [(one.percent, one.rates, one.direction, one.frames) for one in found] == [
        (load, rates, direction, 1000)
        for load, rates in ((100.0, (1e5, 1.1e5)), (50.0, (5e4, 5.5e4)))
        for direction in ("responder", "initiator")
    ]
    (figure,) = question_figures([result], [found], looks_of([result], []))[-1].figures
    assert figure.data[0][:3] == ("100", "100.0 k to 110.0 k frames/s", "from outside")
    assert {row["load"] for layer in figure.spec["layer"] for row in layer["data"]["values"]} == {
        "load 100 %",
        "load 50 %",
    }


def test_loads_that_look_alike_are_lines_of_their_own_and_more_than_six_are_two_charts() -> None:
    result, counts = latency_of(1), LoadDelays()
    for number in range(8):
        counts.add(sent_at(97_301.0 + number))
    figures = question_figures([result], [counts.distributions()], looks_of([result], []))[-1].figures
    assert [len(figure.data) for figure in figures] == [8, 8]
    for figure in figures:
        assert len({row["line"] for layer in figure.spec["layer"] for row in layer["data"]["values"]}) == 8


def test_labels_of_an_axis_of_small_values_have_no_prefix() -> None:
    few = [made([0.05], metric="frame-loss", unit="%", parameters={"gateway": gateway}) for gateway in "ab"]
    labels = re.findall(r">([\d.]+m?)</text>", charts.svg(groups_of(few)[0].figures[0].spec))
    assert {"0.01", "0.02", "0.04", "0.05"} & {*labels}
    assert not [label for label in labels if label.endswith("m")]


def test_the_page_has_the_command_that_each_result_was_measured_with(folder: Path) -> None:
    section = page_of(folder).partition('<section id="evidence">')[2]
    assert "<code>natgauge measure connection-rate --gateway nat-a --empty-command &#39;x &gt; y&#39;</code>" in section
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
    form: str, damage: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    folder = tmp_path / "damaged"
    folder.mkdir()
    store = Store(folder)
    keep(store, latency_of(1))
    store.add_trial(trial())
    store._append("trials.jsonl", {"schema": "natgauge-trial-2", **trial(), "trial": 2, **damage})
    status = run(["report", form, str(tmp_path / "out"), str(folder)])
    errors = capsys.readouterr().err.splitlines()
    # Data frames keep what they do not read; what they do read must be of its kind.
    assert (status, len(errors)) in ([(2, 1)] if form == "--html" else [(2, 1), (0, 0)])
    golden(errors)


def test_a_library_that_is_missing_is_one_line_with_the_command(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Python's own mark of a module that cannot be imported.
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert run(["report", "--html", str(tmp_path / "x.html"), str(folder)]) == 3
    *_, line = capsys.readouterr().err.splitlines()
    assert "pip install 'natgauge[report]'" in line
    assert not (tmp_path / "x.html").exists()


@pytest.mark.parametrize("place", ["", "no/x.html"])
def test_a_place_that_cannot_be_written_is_one_line(
    place: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    assert run(["report", "--html", str(tmp_path / place), str(folder)]) == 2
    *_, line = capsys.readouterr().err.splitlines()
    assert "cannot write" in line
    golden(line)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if absent(CHROMIUM):
        pytest.skip("no Chromium: apt-get install chromium (tools/debian-packages.txt, test)")
    with Browser() as one:
        yield one


#: Texts of charts that are cut off by their drawing, and elements that overlap the next one or leave the window.
CUT = """[...document.querySelectorAll('.chart svg')].flatMap((svg) => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter((one) => {
    const its = one.getBoundingClientRect();
    return its.width && (its.left < box.left - 1 || its.right > box.right + 1);
  }).map((one) => one.textContent);
})"""
WIDE = """[...document.querySelectorAll('h1, h2, h3, p, li, summary, figure, article, pre, .scroll')].filter((one) => {
  const box = one.getBoundingClientRect();
  return box.width && (box.left < -1 || box.right > innerWidth + 1);
}).map((one) => one.textContent.slice(0, 60))"""
OVERLAPPING = """[...document.querySelectorAll('.panels')].flatMap((panels) => {
  const boxes = [...panels.children].map((one) => one.getBoundingClientRect()).filter((box) => box.width);
  return boxes.flatMap((a, at) => boxes.slice(at + 1).filter((b) =>
    a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1));
}).length"""
#: Texts whose contrast with what is behind them is below WCAG 2.2's (1.4.3): 4.5, of large text 3. Signs of a legend
#: are graphics, and so are marks of charts: 3 (1.4.11), but for areas and lines of a grid, which carry no value.
FAINT = """(() => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (rgb) => {
    const [r, g, b] = rgb.map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (one) => {
    const [r, g, b, opaque = 1] = parts(getComputedStyle(one).backgroundColor);
    return opaque === 1 ? [r, g, b] : behind(one.parentElement);
  };
  const contrast = (one, colour) => {
    const [r, g, b, alpha = 1] = parts(colour), opaque = alpha * getComputedStyle(one).opacity;
    const back = behind(one.closest('svg')?.parentElement ?? one);
    const [ink, paper] = [light([r, g, b].map((c, at) => opaque * c + (1 - opaque) * back[at])), light(back)];
    return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  };
  const drawn = (one) => getComputedStyle(one).opacity > 0;
  const texts = [...document.querySelectorAll('body, body *:not(script, style)')].filter((one) =>
    [...one.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim()));
  const marks = [...document.querySelectorAll('.chart svg [aria-roledescription]:is(path, line)')].filter((one) =>
    /point|tick|bar|rule/.test(one.getAttribute('aria-roledescription')) && drawn(one));
  const found = [...texts.filter(drawn).map((one) => {
    const style = getComputedStyle(one), size = parseFloat(style.fontSize);
    const large = size >= 24 || size >= 18.66 && style.fontWeight >= 700;
    const least = large || one.ariaHidden === 'true' ? 3 : 4.5;
    return [one, one.closest('svg') ? style.fill : style.color, least];
  }), ...marks.map((one) => {
    const style = getComputedStyle(one);
    return [one, style.stroke === 'none' ? style.fill : style.stroke, 3];
  })];
  const bars = [...document.querySelectorAll('.answers li')];
  found.push(...bars.map((one) => [one, getComputedStyle(one).borderLeftColor, 3]));
  const faint = found.filter(([one, colour, least]) => colour !== 'none' && contrast(one, colour) < least);
  return [found.length, faint.map(([one, colour]) => `${one.tagName}.${one.className.baseVal ?? one.className} ` +
    `${colour} ${contrast(one, colour).toFixed(2)}: ${one.textContent.slice(0, 40)}`)];
})()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 900, 1600])
def test_a_browser_draws_all_figures_fits_them_in_and_has_nothing_to_complain_of(
    browser: Browser, written: Path, width: int, scheme: Literal["light", "dark"]
) -> None:
    browser.said.clear()
    browser.asked.clear()
    browser.open(written, width, scheme)
    drawn = browser.ask(
        "[...document.querySelectorAll('#answers .chart svg, #figures .chart svg')]"
        ".map((one) => one.getBoundingClientRect().width)"
    )
    assert len(drawn) == PANELS
    assert all(250 < one <= 560 for one in drawn)
    # Nothing makes the page wider than its window, is cut, or lies over something else.
    assert browser.ask("document.documentElement.scrollWidth") <= width
    assert browser.ask(CUT) == []
    assert browser.ask(WIDE) == []
    assert browser.ask(OVERLAPPING) == 0
    paper = browser.ask("getComputedStyle(document.body).backgroundColor")
    assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 27)"}[scheme]
    assert browser.asked == [written.as_uri()]
    assert browser.said == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_and_mark_has_the_contrast_that_wcag_requires(
    browser: Browser, written: Path, many: Path, scheme: Literal["light", "dark"]
) -> None:
    for path in (written, many):
        browser.open(path, 1280, scheme)
        browser.ask("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        seen, faint = browser.ask(FAINT)
        assert seen > 500
        assert faint == []


def sized(folder: Path, results: Sequence[Result], subscribers: int, connections: int) -> Path:
    """The page of `size` on these results."""
    for result in results:
        keep(Store.create(folder, result.metric, result.gateway), result)
    asked = ["--subscribers", str(subscribers), "--connections-each", str(connections), "--new-each", "2"]
    run(["size", str(folder), *asked, "--mbit-each", "1", "--html", str(folder / "size.html")])
    return folder / "size.html"


@pytest.mark.parametrize("width", [390, 800])
def test_what_decides_on_subscribers_is_seen_on_a_phone_without_scrolling_sideways(
    browser: Browser, tmp_path: Path, width: int
) -> None:
    """Seen: at 390 points the numbers of subscribers were beyond the edge of a table of six columns."""
    results = (
        made([812_345.0] * 3, parameters={"directions": "both", "frame_octets": {"initiator": 84}}),
        made([299_012.0, 310_000.0], metric="connection-rate", unit="connections/s"),
        made([262_144.0] * 3, metric="table-capacity", unit="connections", limited_by="table"),
    )
    browser.open(sized(tmp_path, results, 1200, 200), width)
    cells = browser.ask(
        "[...document.querySelectorAll('#answers .cards td')].map((one) => {"
        " const its = one.getBoundingClientRect(); return [one.dataset.head, its.left, its.right]; })"
    )
    # How many subscribers the gateway carries by each limit, and how many bits/s are theirs.
    assert [head for head, *_ in cells] == ["x"] * 5
    assert all(0 <= left < right <= width for _, left, right in cells)
    assert browser.ask("document.documentElement.scrollWidth") <= width
    assert browser.ask("document.querySelector('#answers .cards').getBoundingClientRect().top") < 500


@pytest.mark.parametrize("width", [390, 800])
def test_commands_are_whole_on_a_phone_and_no_line_ends_within_their_words(
    browser: Browser, tmp_path: Path, width: int
) -> None:
    """Seen: the options at the end of a command were beyond the edge."""
    alone = made([812_345.0] * 3, parameters={"directions": "both", "frame_octets": {"initiator": 84}})
    browser.open(sized(tmp_path, [alone], 60_000, 10), width)
    words = browser.ask(
        "[...document.querySelectorAll('pre.commands span')].map((one) => {"
        " const its = one.getBoundingClientRect();"
        " return [one.textContent, its.right, its.height / parseFloat(getComputedStyle(one).lineHeight)]; })"
    )
    assert "table-capacity" in [word for word, *_ in words]
    assert all(right <= width and lines == pytest.approx(1, abs=0.2) for _, right, lines in words)


def test_no_line_ends_within_a_name_and_a_copied_name_is_plain(browser: Browser, tmp_path: Path) -> None:
    """Seen: "docker-" at the end of a line and "nat44" on the next one."""
    long = "gateway-" * 7 + "nat44"
    for gateway in ("docker-nat44", long):
        kept(tmp_path, made([1.0], parameters={"gateway": gateway}))
    path = page_at(tmp_path)
    browser.open(path, 390)
    assert browser.ask("document.documentElement.scrollWidth") <= 390
    names = browser.ask(
        "Array.from({length: 60}, (_, step) => { document.body.style.maxWidth = `${240 + 5 * step}px`;"
        " return [...document.querySelectorAll('.name')].filter((one) => one.checkVisibility())"
        ".map((one) => [one.textContent, one.getClientRects().length]); }).flat()"
    )
    assert ["docker-nat44", 1] in names
    assert all(lines == 1 for _, lines in names)
    assert f'<span class="name">{long}' not in path.read_text()
    assert not re.findall(
        r"<(?:code|pre|title)>[^\n]*?<span class=.name.[^\n]*?</(?:code|pre|title)>", path.read_text()
    )


def test_figures_of_the_first_screen_have_headings_of_one_width(browser: Browser, tmp_path: Path) -> None:
    """Seen: beside a group of three figures, the heading of a single one was squeezed into three lines."""
    kept(tmp_path, made([1.0]))
    frames = [estimate(quantity=quantity) for quantity in ("new", "up", "down")]
    kept(tmp_path, compared(frames))
    path = page_at(tmp_path)
    for width in (800, 1400):
        browser.open(path, width)
        widths = browser.ask(
            "[...document.querySelectorAll('.headline h2')].map((one) => one.getBoundingClientRect().width)"
        )
        assert len(widths) > 1
        assert max(widths) == pytest.approx(min(widths))


def test_no_column_of_results_and_comparisons_is_lost_on_a_phone(browser: Browser, tmp_path: Path) -> None:
    """Seen: at 390 points the last columns of both tables were beyond the edge."""
    for connections in (50_000, 200_000, 800_000):
        parameters = {"connections": connections, "gateway": "nat"}
        result = made([286_012.0, 310_000.0], metric="connection-rate", unit="connections/s", parameters=parameters)
        keep(Store.create(tmp_path, result.metric, str(connections)), result)
    kept(tmp_path, compared())
    run(["report", str(tmp_path), "--html", str(tmp_path / "page.html")])
    browser.open(tmp_path / "page.html", 390)
    cells = browser.ask(
        "[...document.querySelectorAll('#records td, #results td')].filter((one) => one.checkVisibility())"
        ".map((one) => { const its = one.getBoundingClientRect(); return [one.dataset.head, its.left, its.right]; })"
    )
    assert {"verdict", "ns a frame", "x forwarding", "50,000 connections", "800,000 connections"} <= {
        head for head, *_ in cells
    }
    assert all(0 <= left < right <= 390 for _, left, right in cells)
    # The title of an axis is no wider than the axis.
    widths = browser.ask(
        "[...document.querySelectorAll('.headline .role-axis')].filter((one) => one.querySelector('.role-axis-title'))"
        ".map((one) => ['.role-axis-title', '.role-axis-domain'].map((part) =>"
        " one.querySelector(part).getBoundingClientRect().width))"
    )
    assert widths
    assert all(title <= axis for title, axis in widths if axis)


def test_the_first_screen_has_the_answers_and_beside_them_the_first_figure(browser: Browser, written: Path) -> None:
    browser.open(written, 1600)
    place = "document.querySelector('{}').getBoundingClientRect()"
    assert browser.ask(place.format(".answers .lead") + ".bottom") < 300
    assert browser.ask(place.format("#answers .chart") + ".bottom") < 900


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of forty gateways with names of sixty letters, two with all doubts, a comparison and an audit."""
    folders = tmp_path_factory.mktemp("many")
    for at in range(40):
        gateway = f"gateway-{at:02}-{'with-a-long-name-' * 3}"[:60]
        folder = folders / f"{at:02}"
        folder.mkdir()
        doubts = [{"word": word, "text": f"a text on {word}"} for word in get_args(DoubtWord)] if at < 2 else []
        Store(folder).write_summary(
            made([10.0 ** (1 + at / 7)], doubts=doubts, parameters={"gateway": gateway}).document()
        )
    kept(folders, compared(), audited())
    return page_at(folders)


def test_names_of_sixty_letters_forty_gateways_and_all_doubts_at_once_fit(browser: Browser, many: Path) -> None:
    for width in (360, 1600):
        browser.open(many, width)
        assert browser.ask("document.documentElement.scrollWidth") <= width
        assert browser.ask(CUT) == []
        assert browser.ask(WIDE) == []


def test_a_mark_near_the_end_of_an_axis_has_its_label_inside(browser: Browser, tmp_path: Path) -> None:
    for count in (1000, 10_000):
        more = {"device_caches": {"L2": 2**20, "L3": 4 * 2**20}, "connections": count}
        figures, unit = {"octets_per_connection": 500.0}, "connections/s"
        result = made([2e5], metric="connection-rate", unit=unit, parameters=more, figures=figures)
        (tmp_path / str(count)).mkdir()
        Store(tmp_path / str(count)).write_summary(result.document())
    path = page_at(tmp_path)
    assert "table fills the L3 cache" in path.read_text()
    browser.open(path, 360)
    assert browser.ask(CUT) == []


def test_a_pointer_is_told_the_value(browser: Browser, written: Path) -> None:
    browser.open(written, 1280)
    place = browser.ask(
        "(() => { const one = document.querySelector('.chart [aria-roledescription=point]');"
        "one.scrollIntoView({block: 'center', behavior: 'instant'}); const box = one.getBoundingClientRect();"
        "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
    )
    assert browser.ask("document.getElementById('tip').hidden") is True
    browser.point_at(*place)
    told = browser.ask("document.getElementById('tip').textContent")
    assert re.fullmatch(
        r"[\w-]+, \d cores?: [\d,.]+ k connections/s, (± [\d.]+ %|[\d,. k]+ to [\d,. k]+)"
        r" in another run \(\d repetitions and the search error\)",
        told,
    )
    browser.point_at(5, 5)
    assert browser.ask("document.getElementById('tip').hidden") is True


def test_a_figure_at_a_glance_unfolds_its_result(browser: Browser, written: Path) -> None:
    browser.open(written, 1280)
    folded = "document.getElementById('result-3').open"
    assert browser.ask(folded) is False
    browser.ask("document.querySelector('.glance a[href=\"#result-3\"]').click()")
    # The page hears of its new address a moment later.
    assert browser.ask(f"new Promise((told) => setTimeout(() => told({folded}), 100))") is True
    assert browser.ask("document.getElementById('result-3').getBoundingClientRect().height") > 100


def test_everything_that_a_pointer_can_do_a_keyboard_can(browser: Browser, written: Path) -> None:
    browser.open(written, 1280)
    # Links and summaries take the focus by themselves, and what scrolls has it given.
    assert browser.ask("[...document.querySelectorAll('.scroll')].every((one) => one.tabIndex === 0)") is True
    reached = browser.ask("document.querySelectorAll('.glance a').length")
    assert reached == 13
    # Values of a chart that a pointer shows are in its table, and its finding is its text alternative.
    assert browser.ask(
        "[...document.querySelectorAll('figure')].every((one) => one.querySelector('table') &&"
        "one.querySelector('.chart').getAttribute('aria-label').length > 15)"
    )


def test_the_page_is_printed_on_paper_with_two_columns_of_figures(browser: Browser, written: Path) -> None:
    browser.open(written, 1280, "dark")
    paper = browser.paper()
    assert paper.startswith(b"%PDF-")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", paper)) <= 12
    browser.call("Emulation.setEmulatedMedia", media="print")
    columns = browser.ask("getComputedStyle(document.querySelector('#figures .panels')).gridTemplateColumns")
    browser.call("Emulation.setEmulatedMedia", media="")
    assert len(columns.split()) == 2


def audited() -> AuditRecord:
    """An audit in which a gateway meets a requirement, fails one and was not seen in a third one."""
    verdicts: tuple[Literal["meets", "fails", "not seen"], ...] = ("meets", "fails", "not seen")
    return AuditRecord(
        gateway="nat",
        title="a gateway",
        profile="cgn",
        classes={
            "udp": BehaviourClasses(mapping="endpoint-independent", filtering=None, ports="random", hairpinning="none")
        },
        requirements=tuple(
            AuditedRequirement(
                rfc=4787, requirement=f"REQ-{at}", level="MUST", text="t", transport="udp", verdict=verdict,
                measured=f"measured {at}", evidence=AuditEvidence(file=None, frames=()),
            )
            for at, verdict in enumerate(verdicts, start=1)
        ),
        timeouts={}, wait_seconds=0, seconds=1, device=None, parameters={},
    )  # fmt: skip


def test_the_page_of_an_audit_has_the_machine_and_the_behaviour_above_the_verdicts(tmp_path: Path) -> None:
    store = Store.create(tmp_path, "audit", "nat")
    store.write_audit(audited().model_copy(update={"title": "Rules of a.conf: NAT44"}).document())
    store.write_environment({"machine": {"natgauge": "9.8", "kernel": "6.18", "cpu": {"model": "AMD EPYC"}}})
    shown = unmarked(page_of(tmp_path))
    assert "<h1>Audit of nat (Rules of a.conf: NAT44)</h1>" in shown
    assert ", on AMD EPYC, Linux 6.18<" in shown
    assert "measured by version 9.8" in shown
    assert shown.index("hairpinning</th>") < shown.index("✗ fails")


def test_an_audit_has_its_page_and_its_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    kept(tmp_path, audited())
    golden(lines_on(page_at(tmp_path)), passing=r"\d{4}-\d\d-\d\d(?!-)")
    capsys.readouterr()
    assert run(["report", str(tmp_path)]) == 0
    printed_text = capsys.readouterr().out
    golden(printed_text, passing=r"\d{4}-\d\d-\d\d(?!-)")
    assert "RFC 4787 REQ-2" in printed_text
    again = tmp_path.with_name("again")
    shutil.copytree(tmp_path, again)
    assert run(["diff", str(tmp_path), str(again)]) == 0
    golden(capsys.readouterr().out)
