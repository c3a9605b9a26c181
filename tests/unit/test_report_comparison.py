# SPDX-License-Identifier: Apache-2.0
"""Comparisons in every form of `natgauge report`: words, table, comment, CSV; and folders that hold several kinds."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.conftest import Ran
from tests.unit.golden import Golden
from tests.unit.made_comparisons import BASELINE, CONTROL, compared, compared_by_rates, estimate, gateway
from tests.unit.made_results import keep as keep_made
from tests.unit.made_results import made
from tests.unit.pages import unmarked

from natgauge.known_doubts import Grade
from natgauge.notes import Note, NoteWord
from natgauge.records.comparison import ComparisonRecord, RatioEstimate, SearchLimit
from natgauge.records.measurement import Result
from natgauge.records.store import Store
from natgauge.reports import comparison
from natgauge.reports.collected import Stored, StoredComparison, StoredResults
from natgauge.reports.heading import heading
from natgauge.reports.html.figures import forest_figures, looks_of
from natgauge.reports.html.page import page
from natgauge.stored.find_results import find
from natgauge.stored.frames import load
from natgauge.trial.question import command_again
from natgauge.words import Quantity

EACH = "in each direction"
NOTED = compared(
    [estimate(), estimate("third", 0.9, 0.88, 0.92, quantity="new")],
    notes=[Note("ended early", "4 rounds were measured, then an error: gone"), Note("device", "the chains differ")],
)


def keep(folder: Path, record: ComparisonRecord) -> Path:
    folder.mkdir(parents=True)
    store = Store(folder)
    store.write_plan({})
    store.write_comparison(record.document())
    return folder


def keep_result(folder: Path, **changed: Any) -> Path:
    folder.mkdir(parents=True)
    store = Store(folder)
    store.write_plan({})
    keep_made(store, made([1.0], **changed))
    return folder


def unsure(order: str) -> list[str]:
    """The gateways of which the order says that it is not sure which costs less."""
    return re.findall("which of (.*?) costs less is not sure", order)


def order_of(record: ComparisonRecord) -> str:
    """The sentence that puts the gateways into an order."""
    return next(
        one.text for one in comparison.sentences(record) if one.leads and ": " in one.text and "against" in one.text
    )


QUANTITIES: tuple[Quantity, ...] = ("new", "up", "down")
#: Three gateways: the order of both others is sure of the first two frames alone.
THREE = compared(
    [
        estimate(name, ratio, ratio - 0.01, ratio + 0.01 + (0.2 if quantity == "down" else 0), quantity=quantity)
        for name, ratio in (("docker-nat44", 1.3), ("firewalld-nat44", 1.5))
        for quantity in QUANTITIES
    ]
)
UNDECIDED = estimate("a", 1.02, 1.01, 1.03, verdict="undecided")
OFF, LIKE = [estimate(CONTROL, 1.03, 1.02, 1.05)], estimate("a", 1.001, 0.998, 1.003, verdict="no difference")
DEAR_NEW = [estimate(name, 1.5, 1.4, 1.6, quantity="new") for name in ("a", "b")]
CHEAP, DEAR = estimate("a", 0.8, 0.7, 0.9, verdict="costs less"), estimate("b", 1.3, 1.2, 1.4)
GRAVE = (Note("log dropped", "x", grade="answer"),)
#: What the sentences of a comparison say, and of which gateways each of them leaves open which costs less.
SENTENCES: dict[str, tuple[ComparisonRecord, list[str]]] = {
    # Whether `a` costs more than the baseline is undecided, and so is whether `b` does; both are farther apart.
    "no order surer than the verdicts": (
        compared([UNDECIDED, estimate("b", 1.15, 1.12, 1.18)], OFF),
        [f"{BASELINE} and a"],
    ),
    "no order where the control is off": (
        compared([UNDECIDED, estimate("b", 1.07, 1.06, 1.08)], OFF),
        [f"{BASELINE}, a and b"],
    ),
    # `a` overlaps both others; of neighbours alone, `b` and `c` do not.
    "what surely costs less does so than all that follow": (
        compared(
            [
                estimate("a", 1.3, 0.9, 1.9, verdict="undecided"),
                estimate("b", 1.42, 1.40, 1.45),
                estimate("c", 1.55, 1.5, 1.6),
            ]
        ),
        [f"{BASELINE}, a, b and c"],
    ),
    "no difference smaller than the control's": (compared([LIKE], [estimate(CONTROL, 1.004, 1.002, 1.006)]), []),
    "no difference beside an unknown control": (compared([LIKE], [estimate(CONTROL, None, None, None)]), []),
    # The answer has its doubt and its unit, and no sentence says it again.
    "several gateways in order in one line, with doubtful neighbours": (
        compared(
            [estimate("dear", 1.42, 1.4, 1.45), estimate("alike", 1.0, 0.99, 1.01), estimate("dearer", 1.46, 1.43, 1.5)]
        ),
        [f"alike and {BASELINE}", "dear and dearer"],
    ),
    # Seen: 70 words in the first line, on three frames. A reader asked which lines have 95 % intervals, and how much.
    "each cost in a line with its order and its own certainty": (THREE, ["docker-nat44 and firewalld-nat44"]),
    "what is open beside what is sure": (
        compared(
            [
                *(estimate(name, quantity="new") for name in ("a", "b")),
                *(estimate(name, None, 0.9, 1.2, quantity="up") for name in ("a", "b")),
            ]
        ),
        ["a and b", f"{BASELINE}, a and b"],
    ),
    "which gateway is surely the cheapest": (compared([*DEAR_NEW, CHEAP, DEAR]), ["a and b"]),
    "no cheapest that is not sure": (
        compared([*DEAR_NEW, estimate("a", 1.0, 0.99, 1.01, verdict="no difference"), DEAR]),
        ["a and b", f"a and {BASELINE}"],
    ),
    "none sure where a doubt could change each cost": (
        compared([*DEAR_NEW, CHEAP, DEAR], notes=GRAVE),
        [f"{BASELINE}, a and b", f"a, {BASELINE} and b"],
    ),
    "no order of two gateways": (compared([estimate("dear", 1.42, 1.4, 1.45)]), []),
}


@pytest.mark.parametrize("what", SENTENCES)
def test_the_sentences_of_a_comparison_say(what: str, golden: Golden) -> None:
    record, open_ = SENTENCES[what]
    every = comparison.sentences(record)
    assert every[0].leads
    found = [names for one in every for names in unsure(one.text)]
    assert found == open_
    golden([f"{one.certainty or '-'}: {one.text}" for one in every])


def test_a_short_table_of_several_gateways_has_few_notes() -> None:
    record, _ = SENTENCES["several gateways in order in one line, with doubtful neighbours"]
    assert len(comparison.sheet(record, short=True).notes) <= 3 < len(comparison.sheet(record).notes)


@pytest.mark.parametrize("doubted", [BASELINE, "other"])
def test_a_cost_by_rates_is_only_seen_beside_a_doubt_that_could_change_it(doubted: str) -> None:
    """The page said "Sure" next to "Could change the answer"."""

    def certainties(grade: Grade, quantity: Quantity, **changed: Any) -> set[str | None]:
        every = [estimate(), estimate("third", 1.0, 0.99, 1.01, verdict="no difference")]
        plain = compared(every, by="rates", slices=None, forwarding_nanoseconds={}, **changed)
        doubts = {quantity: (Note("idle cores", "x", grade=grade),)}
        gateways = [
            one.model_copy(update={"doubts": doubts}) if one.label == doubted else one for one in plain.gateways
        ]
        record = plain.model_copy(update={"gateways": tuple(gateways)})
        said = [one for one in comparison.sentences(record) if one.certainty is not None]
        assert {one.doubts for one in said if one.certainty == "seen"} <= {("idle cores",)}
        return {one.certainty for one in said if "other" in one.text or "No cost is" in one.text}

    assert certainties("answer", "up") == {"seen"}
    assert certainties("answer", "up", fail_above=0.5, decided=True, above=False) == {"seen"}
    assert certainties("interval", "up") == certainties("answer", "new") == {"sure"}


@pytest.mark.parametrize("word", ["log dropped", "other traffic"])
def test_a_doubt_of_the_comparison_makes_no_answer_sure_in_any_form(tmp_path: Path, ran: Ran, word: NoteWord) -> None:
    """By slices doubts are in the notes, and all was "Sure" beside "logs had no room for messages"."""

    def record(grade: Grade | None) -> ComparisonRecord:
        notes = () if grade is None else (Note(word, "own text", grade=grade),)
        every = [estimate(), estimate("third", 1.0, 0.99, 1.01, verdict="no difference")]
        own = compared(every, notes=notes, fail_above=0.5, decided=True, above=False)
        below = {
            name: tuple(one.model_copy(update={"above": False}) for one in estimates)
            for name, estimates in (("estimates", own.estimates), ("control", own.control))
        }
        return own.model_copy(update=below)

    grades: tuple[tuple[Grade | None, str], ...] = ((None, "sure"), ("interval", "sure"), ("answer", "seen"))
    for grade, certainty in grades:
        own, is_grave = record(grade), grade == "answer"
        said = [one for one in comparison.sentences(own) if one.certainty is not None]
        assert {(one.certainty, one.doubts) for one in said} == {(certainty, (word,) if is_grave else ())}
        assert (word in comparison.comment(own).splitlines()[0]) is is_grave
        folder = str(keep(tmp_path / str(grade), own))
        (found,) = json.loads(ran(["report", "--format", "json", folder]).out)["comparisons"]
        assert {one["certainty"] for one in found["answers"]} - {None} == {certainty}
        for form in (comparison.text(own), comparison.comment(own), " ".join(comparison.sheet(own).below)):
            assert form.count("own text") == (grade is not None)
        assert any(word in doubt for doubt in comparison.sheet(own).doubts) is is_grave


def test_the_order_says_less_only_where_no_doubt_could_change_it() -> None:
    dear = [estimate("a", 1.2, 1.19, 1.21), estimate("b", 1.5, 1.49, 1.51)]
    plain = compared(dear, by="rates", slices=None, forwarding_nanoseconds={})
    every = [f"{BASELINE}, a and b"]
    assert unsure(order_of(plain)) == []
    doubts: dict[Quantity, tuple[Note, ...]] = {"up": (Note("idle cores", "x", grade="answer"),)}
    for label, names in ((BASELINE, every), ("a", every), ("b", every), (CONTROL, [])):
        own = [one.model_copy(update={"doubts": doubts}) if one.label == label else one for one in plain.gateways]
        assert unsure(order_of(plain.model_copy(update={"gateways": tuple(own)}))) == names
    noted = plain.model_copy(update={"notes": (Note("log dropped", "x", grade="answer"),)})
    assert unsure(order_of(noted)) == every


@pytest.mark.parametrize(("searches", "limited"), [(3, False), (4, True), (5, True)])
def test_a_rate_of_which_half_of_the_searches_ended_at_something_else_is_a_bound(
    searches: int,
    limited: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    limit = SearchLimit(
        gateway="nat", quantity="new", limited_by="the tester", searches=searches, of=8, at_least=1_000_000.0
    )
    text = comparison.text(compared_by_rates([limit]))
    assert ("Rates of nat: new at least" in text) is limited
    # Bits of a bound are bounds as well.
    assert ("bit/s on the wire, at least " in text) is limited


@pytest.mark.parametrize(
    ("quantity", "said"),
    [
        ("new", "new 20.1 k connections/s (13.5 Mbit/s on the wire, 7.40 Mbit/s of IP packets)"),
        ("up", "up 20.1 k frames/s (13.5 Mbit/s on the wire, 7.40 Mbit/s of IP packets)"),
        ("both", f"both 20.1 k frames/s {EACH} (13.5 Mbit/s on the wire, 7.40 Mbit/s of IP packets {EACH})"),
    ],
)
def test_a_rate_of_a_comparison_has_its_unit_and_direction(quantity: Quantity, said: str) -> None:
    known = gateway("nat", "compared", rates={quantity: 20_100.0})
    made = compared([estimate("nat", quantity=quantity)])
    record = compared_by_rates(gateways=(made.gateways[0], known, made.gateways[-1]))
    assert f"Rates of nat: {said}." in comparison.text(record)
    limit = SearchLimit(gateway="nat", quantity=quantity, limited_by="the tester", searches=1, of=1, at_least=20_100.0)
    assert said.partition(" (")[0].removeprefix(quantity) in limit.text


def test_a_stored_comparison_is_found_as_it_was_written(tmp_path: Path) -> None:
    folder = keep(tmp_path / "one", NOTED)
    for where in (folder, tmp_path):
        found = find([where])
        assert [(one.folder, one.record) for one in found.comparisons] == [(folder, NOTED)]
        assert (found.stored, found.unended) == ((), ())


def test_a_folder_holds_measurements_and_comparisons(tmp_path: Path, ran: Ran, golden: Golden) -> None:
    keep(tmp_path / "a", NOTED)
    keep_result(tmp_path / "b")
    (tmp_path / "c").mkdir()
    Store(tmp_path / "c").write_plan({})
    shown = ran(["report", str(tmp_path)])
    # The costs are a few lines, and the table of results can be long.
    assert shown.out.index("baseline") < shown.out.index("throughput")
    assert f"{tmp_path / 'c'}: left out" in shown.err
    golden(ran(["report", "--format", "csv", str(tmp_path)], 2).err)


def test_a_comparison_of_an_older_schema_is_refused_in_one_line(tmp_path: Path, ran: Ran, golden: Golden) -> None:
    folder = keep(tmp_path / "a", NOTED)
    path = folder / "comparison.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": "natgauge-comparison-1"}))
    error = ran(["report", str(folder)], 2).err
    assert error.count("\n") == 1
    golden(error)


def test_the_table_has_the_baseline_first_and_the_control_last() -> None:
    lines = comparison.sheet(NOTED).lines
    assert [line.heading for line in lines[1:]] == [
        f"{BASELINE} (baseline)", f"{BASELINE} (baseline)", "other", "third", CONTROL, CONTROL,
    ]  # fmt: skip
    assert lines[3].cells == ("from inside", "+10.0 %", "+9.0 to +11.0 %", "costs more", "550", "1.4")
    assert lines[4].cells[:4] == ("new connection", "-10.0 %", "-12.0 to -8.0 %", "costs less")


def test_a_change_that_is_small_beside_an_interval_with_none_in_it_has_no_more_digits() -> None:
    """Seen: "+0.02 %" above "-0.1 %" in one column."""
    shown = [estimate("a", ratio, low, 1.004) for ratio, low in ((1.0002, 0.997), (0.9991, 0.997), (1.0002, 1.0001))]
    assert [comparison.change(one, one.ratio or 0) for one in shown] == ["0.0 %", "-0.1 %", "+0.02 %"]


def test_the_table_of_three_gateways_fits_80_columns(golden: Golden) -> None:
    """Seen: "Columns 1 to 3 of 6"."""
    tables = []
    for brief, below in ((True, "\nns: "), (False, "\nCosts are ")):
        said = comparison.text(THREE, brief=brief, width=80)
        tables.append(said.partition("\n\n")[2].partition(below)[0])
    table, of_all = tables
    assert table == of_all
    assert max(map(len, table.splitlines())) <= 80
    assert re.split("  +", table.splitlines()[0]) == ["gateway", "change", "interval", "verdict", "ns", "x forwarding"]
    golden(table)


def test_a_page_with_costs_and_rates_of_the_same_gateways_says_why_costs_are_finer() -> None:
    """A reader asked which of both to believe."""

    def said(record: ComparisonRecord, *results: Result) -> bool:
        stored = tuple(Stored(Path(f"results/{at}"), one) for at, one in enumerate(results))
        collected = StoredResults(stored, (), (StoredComparison(Path("results/c"), record),))
        return "costs are finer" in text_of(page(collected, command_again))

    rates = [made([rate] * 3, parameters={"gateway": name}) for name, rate in ((BASELINE, 1000.0), ("other", 900.0))]
    assert said(NOTED, *rates)
    assert not said(NOTED, rates[0])
    assert not said(NOTED, *(made([1.0], metric="latency", unit="us", parameters={"gateway": name}) for name in "ab"))
    assert not said(compared(by="rates", slices=None, forwarding_nanoseconds={}), *rates)


@pytest.mark.parametrize(
    ("size", "mix", "said"),
    [
        (64, None, "64 octets, placement"),
        (128, None, "128 octets, but 64 octets for costs,"),
        (
            None,
            "64:7,594:4,1518:1",
            "frames of 64, 594 and 1,518 octets (7:4:1), but 64 octets for costs,",
        ),
    ],
)
def test_the_head_says_which_figures_have_which_frames(size: int | None, mix: str | None, said: str) -> None:
    """Seen: "64 octets, frames of 64, 594 and 1,518 octets", of which the first were those of costs."""
    record = compared(parameters={"frame_size": 64})
    result = made([1000.0], parameters={"frame_size": size, **({} if mix is None else {"frame_sizes": mix})})
    collected = StoredResults((Stored(Path("a"), result),), (), (StoredComparison(Path("c"), record),))
    assert f", {said}" in heading(collected, ()).conditions
    table = made([1000.0], metric="table-capacity", unit="connections", parameters={"frame_size": 64})
    several = replace(collected, stored=(*collected.stored, Stored(Path("b"), table)))
    named = "for frames per second without loss, 64 octets for connections held at once and costs,"
    assert (named in heading(several, ()).conditions) == (size != 64)


def test_a_comment_mentions_nobody_and_links_nowhere() -> None:
    """Labels of gateways are the author's of the pull request."""
    said = comparison.comment(compared([estimate("./@team_a/https://x.y", 1.42, 1.4, 1.45)]))
    assert "@team" not in said
    assert "://" not in said


def headline(*estimates: RatioEstimate, above: bool = True) -> str:
    """The first line of a comment that was asked about 3 %."""
    return comparison.comment(compared(estimates, fail_above=0.03, above=above)).splitlines()[0]


def test_a_comment_begins_with_the_costs_above_the_limit_and_says_them_once(golden: Golden) -> None:
    """The heading and the first sentence said "more than 3 % above", and neither said what or how much."""
    dear = estimate("other", 1.213, 1.2, 1.23, quantity="new").model_copy(update={"above": True})
    alike = estimate("other", 1.0, 0.99, 1.01, verdict="no difference").model_copy(update={"above": False})
    least = estimate("third", None, 1.5, None).model_copy(update={"above": True})
    golden(headline(alike, dear))
    assert ("21.3 %" in headline(alike, dear), "third" in headline(alike, dear)) == (True, False)
    several = headline(dear, least)
    golden(several)
    assert several.index("third") < several.index("50") < several.index("other") < several.index("21.3")
    golden(headline(alike, above=False))
    said = comparison.comment(compared([alike, dear], fail_above=0.03, above=True))
    assert (said.count("limit"), said.count("3 % above")) == (1, 0)


def test_an_interval_within_the_limit_answers_the_question_though_its_verdict_is_undecided(golden: Golden) -> None:
    """The question was answered, and the comment said that nothing could be told."""

    def said(*estimates: RatioEstimate, control: list[RatioEstimate] | None = None) -> list[tuple[str, str | None]]:
        record = compared(estimates, control, fail_above=0.03)
        return [(one.text, one.certainty) for one in comparison.sentences(record, of_limit=False)]

    one = estimate("other", 1.004, 0.984, 1.025, verdict="undecided", above=False)
    two = estimate("third", 1.01, 0.96, 1.06, verdict="undecided")
    open_end = estimate("fourth", None, 0.0, 1.02, above=False)
    found = said(one, two, open_end)
    assert [certainty for _, certainty in found] == ["sure", "cannot tell", "sure"]
    (noisy,) = said(one, control=[estimate(CONTROL, 1.003, 1.001, 1.004)])[:1]
    # The noise that the control shows is part of it.
    assert ("2.5 %" in found[0][0].partition("(")[0], "2.5 %" in noisy[0].partition("(")[0]) == (True, False)
    assert noisy[1] == "sure"
    golden([text for text, _ in (*found, noisy)])
    record = compared([one, two], fail_above=0.03)
    assert [line.cells[3] for line in comparison.sheet(record).lines[2:4]] == ["undecided", "undecided"]


def test_every_form_says_which_traffic_was_measured(golden: Golden) -> None:
    """A comment said nowhere that its frames were UDP, nor to which port they went."""
    new = [estimate(quantity="new")]
    udp = {"connections": 64_512, "transport": "udp", "destination_ports": "443-443"}
    octets = {"frame_octets": {"initiator": 64, "responder": 64}}

    def said(record: ComparisonRecord) -> list[str]:
        notes = [note for note in comparison.sheet(record).notes if note.startswith(("Measured for", "With TCP"))]
        assert all(note in markdown_of(record) for note in notes)
        return notes

    def markdown_of(record: ComparisonRecord) -> str:
        return comparison.comment(record).replace("\\", "")

    assert len(said(compared(parameters={**udp, **octets}))) == 1
    golden(said(compared(parameters={**udp, **octets})))
    six = {"initiator": 84, "responder": 64}
    golden(said(compared(new, parameters={**udp, "transport": "tcp", "destination_ports": "1-2", "frame_octets": six})))
    golden(said(compared(new, parameters={"connections": 9, "transport": "icmp", "frame_sizes": "64:7,594:4"})))
    mixed = compared(new, parameters={**udp, **octets})
    other = gateway("other", "compared", {**udp, **octets, "transport": "tcp"})
    golden(said(mixed.model_copy(update={"gateways": (mixed.gateways[0], other, mixed.gateways[2])})))


def test_a_comment_names_the_commit() -> None:
    assert ", commit ab12cd;" in comparison.comment(compared([estimate()], commit="ab12cd@2026-01-02T03:04:05+00:00"))
    assert "commit" not in comparison.comment(compared([estimate()]))


def test_a_comment_names_what_rules_match_that_no_lab_has(golden: Golden) -> None:
    """Only who made the recipe knew that a list of blocked networks was not tried; who read the comment did not."""

    def said(base: tuple[str, ...], change: tuple[str, ...], more: int = 0) -> list[str]:
        record = compared([estimate()])
        of_base, of_change, control = record.gateways
        of_base = of_base.model_copy(update={"unmatched": base})
        of_change = of_change.model_copy(update={"unmatched": change, "unmatched_more": more})
        own = comparison.comment(record.model_copy(update={"gateways": (of_base, of_change, control)}))
        return [line for line in own.splitlines() if line.startswith("- Rules ")]

    assert said((), ()) == []
    both = said(("203.0.113.0/24", "guests"), ("203.0.113.0/24", "guests"))
    unlike = said(("203.0.113.0/24",), ("203.0.113.0/24", "192.168.2.0/24"))
    many = said((), tuple(f"192.0.2.{number}" for number in range(20)), 80)
    assert [len(lines) for lines in (both, unlike, many)] == [1, 2, 1]
    assert "92 more" in many[0]
    golden("\n".join([*both, *unlike, *many]))


def test_every_form_has_every_note_once(tmp_path: Path, ran: Ran, golden: Golden) -> None:
    folder = str(keep(tmp_path / "a", NOTED))
    for form in ("text", "draft", "latex", "markdown"):
        shown = " ".join(ran(["report", "--format", form, folder]).out.split())
        golden(shown, passing=r"\d{4}-\d\d-\d\d(?!-)")
    assert comparison.text(NOTED).count("ended early: 4 rounds were measured") == 1
    assert comparison.comment(NOTED).count("the chains differ") == 1


def test_csv_has_a_line_for_each_estimate_with_its_figures_in_full(tmp_path: Path, ran: Ran) -> None:
    exact = compared([estimate("other", 1.0123456789, 1.01, 1.02), estimate("third", None, 0.97, None)])
    rows = list(
        csv.DictReader(
            io.StringIO(
                ran(
                    ["report", "--format", "csv", str(keep(tmp_path / "a", exact)), str(keep(tmp_path / "b", NOTED))]
                ).out
            )
        )
    )
    assert len(rows) == 3 + 4
    assert (rows[0]["gateway"], rows[0]["ratio"], rows[0]["verdict"]) == ("other", "1.0123456789", "costs more")
    assert (rows[1]["ratio"], rows[1]["low"], rows[1]["high"]) == ("", "0.97", "")
    assert [row["role"] for row in rows[:3]] == ["compared", "compared", "control"]


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [
        (0.97, None, "-3.0 % or more"),
        (0, 1.2, "+20 % or less"),
        (None, None, "-"),
        (0, None, "-"),
        (0.97, 1.01, "-3.0 to +1.0 %"),
    ],
)
def test_an_interval_says_which_of_its_ends_is_known(low: float | None, high: float | None, told: str) -> None:
    assert comparison.interval(estimate("other", None, low, high)) == told


@pytest.mark.parametrize("notes", [(), (Note("time used up", "2 rounds; an interval needs 6"),)], ids=["", "note"])
def test_a_comment_without_an_answer_begins_with_what_ended_the_rounds(notes: tuple[Note, ...], golden: Golden) -> None:
    open_one = estimate("other", 1.0, 0.9, 1.2).model_copy(update={"verdict": "undecided"})
    golden(comparison.comment(compared([open_one], notes=notes, decided=False)).splitlines()[2])


# The page


def page_of(*records: ComparisonRecord) -> str:
    stored = tuple(StoredComparison(Path(f"results/{at}"), one) for at, one in enumerate(records))
    return page(StoredResults((), (), stored), command_again)


def text_of(shown: str) -> str:
    """What a reader sees, marks taken away."""
    body = re.sub(r"<(style|script|svg)\b.*?</\1>", " ", shown, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def test_the_page_of_a_comparison_has_sentences_table_figure_and_parameters(golden: Golden) -> None:
    shown = page_of(NOTED)
    golden(re.findall(r"<h2>([^<]+)</h2>", unmarked(shown)))
    seen = text_of(unmarked(shown))
    for line in comparison.sheet(NOTED).lines:
        assert all(cell in seen for cell in (line.heading, *line.cells))
    for sentence in (*(one.text for one in comparison.sentences(NOTED)), "the chains differ", "place: kernel 6.18"):
        assert sentence in seen
    assert "Repeat this" not in seen


def test_a_forest_plot_has_each_ratio_around_1_on_a_logarithmic_axis() -> None:
    record = compared([estimate(), estimate("third", 0.5, 0.48, 0.52)], fail_above=0.03)
    (figure,) = forest_figures("", record, looks_of([], [record])).figures
    drawn = figure.spec
    low, high = next(
        layer["encoding"]["x"]["scale"]["domain"] for layer in drawn["layer"] if layer["encoding"].get("x2")
    )
    assert low < 0.48
    assert high > 1.11
    assert drawn["layer"][0]["encoding"]["x"]["scale"]["type"] == "log"
    points = [row for layer in drawn["layer"] if layer["mark"]["type"] == "point" for row in layer["data"]["values"]]
    assert [(row["value"], row["low"], row["high"]) for row in points] == [
        (0.5, 0.48, 0.52), (1.1, 1.09, 1.11), (1.0, 0.995, 1.005),
    ]  # fmt: skip
    uprights = [row["x"] for layer in drawn["layer"] for row in layer["data"]["values"] if "x" in row]
    assert set(uprights) == {1.0, 1.03}
    assert [row[2] for row in figure.data] == ["-50.0 %", "+10.0 %", "0.0 %"]


def test_an_open_interval_ends_at_the_edge_with_an_arrow_and_no_interval_is_no_row() -> None:
    every = [estimate("a", None, 0.97, None), estimate("b", None, 0, 1.2), estimate("c", None, None, None)]
    record = compared(every, control=[])
    (figure,) = forest_figures("", record, looks_of([], [record])).figures
    layers = figure.spec["layer"]
    drawn = {row["name"].split(",")[0] for layer in layers for row in layer["data"]["values"] if row.get("name")}
    assert drawn == {"a", "b"}
    arrows = [
        (layer["mark"]["text"], row["name"])
        for layer in layers
        if "text" in layer["mark"]
        for row in layer["data"]["values"]
    ]
    assert arrows == [("←", "b"), ("→", "a")]
    assert [row[0] for row in figure.data] == ["a", "b", "c"]
    unknown = compared([estimate("c", None, None, None)], control=[])
    assert forest_figures("", unknown, looks_of([], [unknown])).figures == ()


def test_ratios_that_one_figure_cannot_show_are_spread_over_several() -> None:
    every = [estimate(f"gateway {number}", 1 + number / 100, 1.0, 1.5) for number in range(30)]
    record = compared(every)
    found = forest_figures("", record, looks_of([], [record])).figures
    assert [len(one.data) for one in found] == [15, 16]


# Data frames


def test_estimates_of_comparisons_are_a_data_frame(tmp_path: Path) -> None:
    keep(tmp_path / "a", NOTED)
    keep(tmp_path / "b", compared_by_rates())
    found = load(tmp_path).estimates
    assert found["gateway"].to_list() == ["other", "third", CONTROL, CONTROL, "nat", CONTROL]
    assert found["ratio"].to_list()[:2] == [1.1, 0.9]
    assert found["ratio"].to_list()[4] is None
    assert found["rate"].to_list() == [None, None, None, None, 10.0, None]
    assert json.loads(found["notes"][0])[0]["word"] == "ended early"
    assert json.loads(found["parameters"][0])["device"]["gateway"] == "other"
    assert load(tmp_path).measurements.height == 0


def test_a_card_has_no_cell_without_a_value() -> None:
    """Seen on a phone: "vs. baseline: -, interval: -, verdict: -" for each frame of the baseline."""
    collected = StoredResults((), (), (StoredComparison(Path("results/c"), NOTED),))
    written = page(collected, command_again)
    cells = re.findall(r'<td data-head="(?:vs. baseline|interval|verdict)"(.*?)>(.*?)</td>', written)
    assert {of for of, text in cells if text == "-"} == {' class="none"'}
    assert {of for of, text in cells if text != "-"} == {""}
    assert ".cards td.none { display: none; }" in written
