# SPDX-License-Identifier: Apache-2.0
"""Comparisons in every form of `natgauge report`: words, table, CSV, page; and folders that hold several kinds."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.unit.conftest import Ran, Report
from tests.unit.golden import Golden
from tests.unit.made_comparisons import BASELINE, CONTROL, answered, compared, compared_by_rates, estimate, gateway
from tests.unit.made_results import kept_as, made
from tests.unit.pages import unmarked, words_of

EACH = "in each direction"
NOTED = compared(
    [estimate(), estimate("third", 0.9, 0.88, 0.92, quantity="new")],
    notes=[
        {"word": "ended early", "text": "4 rounds were measured, then an error: gone"},
        {"word": "device", "text": "the chains differ"},
    ],
)
BY_RATES: dict[str, Any] = {"by": "rates", "slices": None, "forwarding_nanoseconds": {}}


def keep(folder: Path, record: Any) -> Path:
    return kept_as(folder, answered(record))


@pytest.fixture
def report(report: Report) -> Report:
    """Of comparisons, with the answers that a stored one must have; measurements have none to be judged."""

    def of(*records: Any, **how: Any) -> str:
        return report(*(one if hasattr(one, "metric") else answered(one) for one in records), **how)

    return of


def answers_of(report: Report, record: Any) -> list[Any]:
    """The sentences of a comparison, each with its certainty and its doubts."""
    (found,) = json.loads(report(record, asked=["--format", "json"]))["comparisons"]
    answers: list[Any] = found["answers"]
    return answers


def unsure(order: str) -> list[str]:
    """The gateways of which the order says that it is not sure which costs less."""
    return re.findall("which of (.*?) costs less is not sure", order)


QUANTITIES: tuple[Any, ...] = ("new", "up", "down")
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
GRAVE = [{"word": "log dropped", "text": "x", "grade": "answer"}]
#: What the sentences of a comparison say, and of which gateways each of them leaves open which costs less.
SENTENCES: dict[str, tuple[Any, list[str]]] = {
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
    "no difference beside a control that shows no noise": (
        compared([LIKE], [estimate(CONTROL, None, 0.0, None)], **BY_RATES),
        [],
    ),
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
def test_the_sentences_of_a_comparison_say(what: str, report: Report, golden: Golden) -> None:
    record, open_ = SENTENCES[what]
    every = answers_of(report, record)
    assert [names for one in every for names in unsure(one["text"])] == open_
    golden([f"{one['certainty'] or '-'}: {one['text']}" for one in every])


def test_the_first_sentence_leads_and_a_short_table_of_several_gateways_has_few_notes(report: Report) -> None:
    record, _ = SENTENCES["several gateways in order in one line, with doubtful neighbours"]
    first, *_ = answers_of(report, record)
    text, markdown = report(record), report(record, asked=["--format", "markdown"])
    assert text.splitlines()[0] == first["text"]
    below = text.partition("\n\nFrame from inside\n")[2].splitlines()[5:]
    in_full = markdown.rpartition("|\n\n")[2].splitlines()
    assert 0 < len(below) <= 3 < len(in_full)


@pytest.mark.parametrize("doubted", [BASELINE, "other"])
def test_a_cost_by_rates_is_only_seen_beside_a_doubt_that_could_change_it(doubted: str, report: Report) -> None:
    """The page said "Sure" next to "Could change the answer"."""

    def certainties(grade: str, quantity: str, **changed: Any) -> set[str | None]:
        every = [estimate(), estimate("third", 1.0, 0.99, 1.01)]
        plain = compared(every, **BY_RATES, **changed)
        doubts = {quantity: [{"word": "idle cores", "text": "x", "grade": grade}]}
        gateways = [
            gateway(one.label, one.role, doubts=doubts) if one.label == doubted else one for one in plain.gateways
        ]
        said = answers_of(report, compared(every, gateways=gateways, **BY_RATES, **changed))
        seen = [one["doubts"] for one in said if one["certainty"] == "seen"]
        assert seen == [["idle cores"]] * len(seen)
        return {one["certainty"] for one in said if "other" in one["text"] or "No cost is" in one["text"]} - {None}

    assert certainties("answer", "up") == {"seen"}
    assert certainties("answer", "up", fail_above=0.5) == {"seen"}
    assert certainties("interval", "up") == certainties("answer", "new") == {"sure"}


@pytest.mark.parametrize("word", ["log dropped", "other traffic"])
def test_a_doubt_of_the_comparison_makes_no_answer_sure_in_any_form(word: str, report: Report) -> None:
    """By slices doubts are in the notes, and all was "Sure" beside "logs had no room for messages"."""

    def record(grade: str | None) -> Any:
        notes = [] if grade is None else [{"word": word, "text": "own text", "grade": grade}]
        return compared([estimate(), estimate("third", 1.0, 0.99, 1.01)], notes=notes, fail_above=0.5)

    for grade, certainty in ((None, "sure"), ("interval", "sure"), ("answer", "seen")):
        own = record(grade)
        said = [one for one in answers_of(report, own) if one["certainty"] is not None]
        assert said
        assert [(one["certainty"], one["doubts"]) for one in said] == [
            (certainty, [word] if grade == "answer" else [])
        ] * len(said)
        for form in ("text", "markdown"):
            shown = report(own, asked=["--format", form])
            assert shown.count("own text") == (grade is not None)
            assert ("Could change the answer: " + word in shown) is (grade == "answer")


def test_the_order_says_less_only_where_no_doubt_could_change_it(report: Report) -> None:
    dear = [estimate("a", 1.2, 1.19, 1.21), estimate("b", 1.5, 1.49, 1.51)]
    plain = compared(dear, **BY_RATES)
    grave = [{"word": "idle cores", "text": "x", "grade": "answer"}]

    def open_(**changed: Any) -> list[str]:
        said = answers_of(report, compared(dear, **BY_RATES, **changed))
        return [names for one in said for names in unsure(one["text"])]

    every = [f"{BASELINE}, a and b"]
    assert open_() == []
    for label, names in ((BASELINE, every), ("a", every), ("b", every), (CONTROL, [])):
        own = [
            gateway(one.label, one.role, doubts={"up": grave}) if one.label == label else one for one in plain.gateways
        ]
        assert open_(gateways=own) == names
    assert open_(notes=GRAVE) == every


@pytest.mark.parametrize(("searches", "limited"), [(3, False), (4, True), (5, True)])
def test_a_rate_of_which_half_of_the_searches_ended_at_something_else_is_a_bound(
    searches: int,
    limited: bool,  # noqa: FBT001 - a parameter of the test
    report: Report,
) -> None:
    limit: dict[str, Any] = {"gateway": "nat", "quantity": "new", "limited_by": "the tester"}
    limits: list[Any] = [{**limit, "searches": searches, "of": 8, "at_least": 1_000_000.0}]
    text = report(compared_by_rates(limits))
    assert "Rates of nat: new " in text
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
def test_a_rate_of_a_comparison_has_its_unit_and_direction(quantity: Any, said: str, report: Report) -> None:
    known = gateway("nat", "compared", rates={quantity: 20_100.0})
    one = estimate("nat", None, None, None, quantity=quantity, ratio_to_forwarding=None)
    plain = compared([one])
    own = (plain.gateways[0], known, plain.gateways[-1])
    assert f"Rates of nat: {said}." in report(compared([one], gateways=own, **BY_RATES))


def test_a_stored_comparison_is_found_as_it_was_written(tmp_path: Path, ran: Ran) -> None:
    folder = keep(tmp_path / "one", NOTED)
    for where in (folder, tmp_path):
        document = json.loads(ran(["report", str(where), "--format", "json"]).out)
        assert [one["record"] for one in document["comparisons"]] == [NOTED.document()]
        assert (document["table"], document["no_result"]) == (None, [])


def test_a_folder_holds_measurements_and_comparisons(tmp_path: Path, ran: Ran, golden: Golden) -> None:
    keep(tmp_path / "a", NOTED)
    kept_as(tmp_path / "b", made([1.0]))
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "plan.json").write_text('{"schema": "natgauge-plan-1"}')
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


def test_the_table_has_the_baseline_first_and_the_control_last(report: Report) -> None:
    table = [line.strip("| ").split(" | ") for line in report(NOTED, asked=["--format", "markdown"]).splitlines()]
    lines = [cells for cells in table if len(cells) > 5][2:]
    assert [line[0] for line in lines] == [
        f"{BASELINE} (baseline)", f"{BASELINE} (baseline)", "other", "third", CONTROL, CONTROL,
    ]  # fmt: skip
    assert lines[2][1:] == ["from inside", "+10.0 %", "+9.0 to +11.0 %", "costs more", "550", "1.4"]
    assert lines[3][1:5] == ["new connection", "-10.0 %", "-12.0 to -8.0 %", "costs less"]


def test_a_change_that_is_small_beside_an_interval_with_none_in_it_has_no_more_digits(report: Report) -> None:
    """Seen: "+0.02 %" above "-0.1 %" in one column."""
    shown = [
        estimate(name, ratio, low, 1.004)
        for name, ratio, low in (("a", 1.0002, 0.997), ("b", 0.9991, 0.997), ("c", 1.0002, 1.0001))
    ]
    lines = [re.split("  +", line) for line in report(compared(shown)).splitlines()]
    changes = {cells[0]: cells[1] for cells in lines if cells[0] in {"a", "b", "c"}}
    assert changes == {"a": "0.0 %", "b": "-0.1 %", "c": "+0.02 %"}


def test_the_table_of_three_gateways_fits_80_columns(report: Report, golden: Golden) -> None:
    """Seen: "Columns 1 to 3 of 6"."""
    table = report(THREE, width=80).partition("\n\n")[2].partition("\nns: ")[0]
    assert max(map(len, table.splitlines())) <= 80
    assert re.split("  +", table.splitlines()[0]) == ["gateway", "change", "interval", "verdict", "ns", "x forwarding"]
    golden(table)


@pytest.fixture
def page(report: Report, tmp_path: Path) -> Report:
    """The page of these records."""

    def of(*records: Any) -> str:
        report(*records, asked=["--html", str(tmp_path / "page.html")])
        return (tmp_path / "page.html").read_text()

    return of


def test_a_page_with_costs_and_rates_of_the_same_gateways_says_why_costs_are_finer(page: Report) -> None:
    """A reader asked which of both to believe."""

    def said(*records: Any) -> bool:
        return "costs are finer" in words_of(page(*records))

    rates = [made([rate] * 3, parameters={"gateway": name}) for name, rate in ((BASELINE, 1000.0), ("other", 900.0))]
    assert said(NOTED, *rates)
    assert not said(NOTED, rates[0])
    assert not said(NOTED, *(made([1.0], metric="latency", unit="us", parameters={"gateway": name}) for name in "ab"))
    assert not said(compared(**BY_RATES), *rates)


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
def test_the_head_says_which_figures_have_which_frames(
    size: int | None, mix: str | None, said: str, page: Report
) -> None:
    """Seen: "64 octets, frames of 64, 594 and 1,518 octets", of which the first were those of costs."""
    record = compared(parameters={"frame_size": 64})
    result = made([1000.0], parameters={"frame_size": size, **({} if mix is None else {"frame_sizes": mix})})
    assert f", {said}" in words_of(page(record, result))
    table = made([1000.0], metric="table-capacity", unit="connections", parameters={"frame_size": 64})
    named = "for frames per second without loss, 64 octets for connections held at once and costs,"
    assert (named in words_of(page(record, result, table))) == (size != 64)


def test_an_interval_within_the_limit_answers_the_question_though_its_verdict_is_undecided(
    report: Report, golden: Golden
) -> None:
    """The question was answered, and the comment said that nothing could be told."""

    def said(*estimates: Any, control: Any = None) -> list[tuple[str, str]]:
        every = answers_of(report, compared(estimates, control, fail_above=0.03))
        # The first one is the answer to the limit.
        own = [(one["text"], one["certainty"]) for one in every]
        return [one for one in own if one[0].startswith(("Within the limit", "Cannot tell whether a frame"))]

    one = estimate("other", 1.004, 0.984, 1.025)
    two = estimate("third", 1.01, 0.96, 1.06)
    open_end = estimate("fourth", None, 0.0, 1.02)
    found = [said(each)[0] for each in (one, two, open_end)]
    assert [certainty for _, certainty in found] == ["sure", "cannot tell", "sure"]
    (noisy,) = said(one, control=[estimate(CONTROL, 1.003, 1.001, 1.004)])
    # The noise that the control shows is part of it.
    assert ("2.5 %" in found[0][0].partition("(")[0], "2.5 %" in noisy[0].partition("(")[0]) == (True, False)
    assert noisy[1] == "sure"
    golden([text for text, _ in (*found, noisy)])
    table = report(compared([one, two], fail_above=0.03), asked=["--format", "markdown"]).splitlines()
    assert [line.split(" | ")[4] for line in table if line.startswith(("| other ", "| third "))] == ["undecided"] * 2


def test_every_form_says_which_traffic_was_measured(report: Report, golden: Golden) -> None:
    """A comment said nowhere that its frames were UDP, nor to which port they went."""
    new = [estimate(quantity="new")]
    udp = {"connections": 64_512, "transport": "udp", "destination_ports": "443-443"}
    octets = {"frame_octets": {"initiator": 64, "responder": 64}}

    def said(record: Any) -> list[str]:
        found = []
        for form in ("text", "markdown"):
            lines = report(record, asked=["--format", form]).replace("\\", "").splitlines()
            own = [line.removeprefix("- ").strip() for line in lines]
            found.append([line for line in own if line.startswith(("Measured for", "With TCP"))])
        assert found[0] == found[1]
        return found[0]

    assert len(said(compared(parameters={**udp, **octets}))) == 1
    golden(said(compared(parameters={**udp, **octets})))
    six = {"initiator": 84, "responder": 64}
    golden(said(compared(new, parameters={**udp, "transport": "tcp", "destination_ports": "1-2", "frame_octets": six})))
    golden(said(compared(new, parameters={"connections": 9, "transport": "icmp", "frame_sizes": "64:7,594:4"})))
    mixed = compared(new, parameters={**udp, **octets})
    other = gateway("other", "compared", {**udp, **octets, "transport": "tcp"})
    golden(said(mixed.model_copy(update={"gateways": (mixed.gateways[0], other, mixed.gateways[2])})))


def test_every_form_has_every_note_once(report: Report, golden: Golden) -> None:
    for form in ("text", "draft", "latex", "markdown"):
        shown = " ".join(report(NOTED, asked=["--format", form]).split())
        golden(shown, passing=r"\d{4}-\d\d-\d\d(?!-)")
        assert [shown.count(note) for note in ("ended early: 4 rounds were measured", "the chains differ")] == [1, 1]


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
def test_an_interval_says_which_of_its_ends_is_known(
    low: float | None, high: float | None, told: str, report: Report
) -> None:
    shown = report(compared([estimate("other", None, low, high)]), asked=["--format", "markdown"])
    (cells,) = (line.split(" | ") for line in shown.splitlines() if line.startswith("| other "))
    assert cells[2:4] == ["-", told]


# The page


def test_the_page_of_a_comparison_has_sentences_table_figure_and_parameters(
    page: Report, report: Report, golden: Golden
) -> None:
    shown = unmarked(page(NOTED))
    golden(re.findall(r"<h2>([^<]+)</h2>", shown))
    seen = words_of(shown)
    table = [line for line in report(NOTED, asked=["--format", "markdown"]).splitlines() if line.startswith("| ")]
    assert len(table) == 8
    for line in table[2:]:
        assert all(cell in seen for cell in line.strip("| ").split(" | "))
    for sentence in (*(one["text"] for one in answers_of(report, NOTED)), "the chains differ", "place: kernel 6.18"):
        assert sentence in seen
    assert "Repeat this" not in seen


class Drawn:
    """A drawing of ratios: its axis and its marks, whose places are read as ratios."""

    def __init__(self, path: Path) -> None:
        text = path.read_text()
        axis = re.search(r"for a (\w+) scale with values from ([\d.]+)(m?) to ([\d.]+)(m?)", text)
        assert axis
        self.scale = axis[1]
        self.low, self.high = (float(axis[at]) / (1000 if axis[at + 1] else 1) for at in (2, 4))
        self.marks = re.findall(
            r'<(\w+) aria-label="([^"]*)" role="graphics-symbol" aria-roledescription="(\w+)[^"]*"'
            r'[^>]*?transform="translate\((-?[\d.]+),-?[\d.]+\)"(?: x2="([\d.]+)")?[^>]*>([^<]*)',
            text,
        )

    def ratio(self, at: float) -> float:
        share = at / 340
        return (
            self.low * (self.high / self.low) ** share
            if self.scale == "log"
            else self.low + share * (self.high - self.low)
        )

    def points(self) -> list[tuple[float, float, float]]:
        """The ratio of each point, and the ends of its stroke."""
        strokes = {label: (float(x), float(x) + float(x2)) for _, label, kind, x, x2, _ in self.marks if float(x2 or 0)}
        points = [(label, float(x)) for _, label, kind, x, _, _ in self.marks if kind == "point"]
        ends = ((at, *strokes[label]) for label, at in points)
        return [(self.ratio(at), self.ratio(low), self.ratio(high)) for at, low, high in ends]

    def uprights(self) -> list[float]:
        return [
            self.ratio(float(x)) for tag, _, kind, x, x2, _ in self.marks if (tag, kind, x2) == ("line", "rule", "0")
        ]

    def names(self, kind: str) -> list[tuple[str, str]]:
        """What is written at each mark of this kind, and the gateway that it is of."""
        return [(text, label.split(",")[0]) for _, label, own, _, _, text in self.marks if own == kind and "," in label]


def drawn(report: Report, record: Any, folder: Path) -> list[Drawn]:
    """The drawings of a comparison."""
    report(record, asked=["--svg", str(folder)])
    return [Drawn(path) for path in sorted(folder.glob("*.svg"))]


def rows_of(shown: str) -> list[list[list[str]]]:
    """The rows of the table of data of each figure of a page."""
    tables = re.findall(r'<details class="data">(.*?)</details>', shown, re.DOTALL)
    return [
        [[words_of(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)] for row in table.split("<tr>")[2:]]
        for table in tables
    ]


def test_a_forest_plot_has_each_ratio_around_1_on_a_logarithmic_axis(
    report: Report, page: Report, tmp_path: Path
) -> None:
    record = compared([estimate(), estimate("third", 0.5, 0.48, 0.52)], fail_above=0.03)
    (one,) = drawn(report, record, tmp_path / "figures")
    assert one.scale == "log"
    assert one.low < 0.48
    assert one.high > 1.11
    wanted = [(0.5, 0.48, 0.52), (1.1, 1.09, 1.11), (1.0, 0.995, 1.005)]
    assert [each for point in one.points() for each in point] == pytest.approx([each for own in wanted for each in own])
    assert one.uprights() == pytest.approx([1.0, 1.03])
    (rows,) = rows_of(page(record))
    assert [row[2] for row in rows] == ["-50.0 %", "+10.0 %", "0.0 %"]


def test_an_open_interval_ends_at_the_edge_with_an_arrow_and_no_interval_is_no_row(
    report: Report, page: Report, tmp_path: Path
) -> None:
    every = [estimate("a", None, 0.97, None), estimate("b", None, 0, 1.2), estimate("c", None, None, None)]
    record = compared(every, control=[])
    (one,) = drawn(report, record, tmp_path / "figures")
    assert {name for _, name in one.names("rule")} == {"a", "b"}
    assert [mark for mark in one.names("text") if mark[0] in "←→"] == [("←", "b"), ("→", "a")]
    (rows,) = rows_of(page(record))
    assert [row[0] for row in rows] == ["a", "b", "c"]
    unknown = compared([estimate("c", None, None, None)], control=[])
    assert rows_of(page(unknown)) == []


def test_ratios_that_one_figure_cannot_show_are_spread_over_several(page: Report) -> None:
    every = [estimate(f"gateway {number}", 1 + number / 100, 1.0, 1.5) for number in range(30)]
    assert [len(rows) for rows in rows_of(page(compared(every)))] == [15, 16]


def test_a_card_has_no_cell_without_a_value(page: Report) -> None:
    """Seen on a phone: "vs. baseline: -, interval: -, verdict: -" for each frame of the baseline."""
    written = page(NOTED)
    cells = re.findall(r'<td data-head="(?:vs. baseline|interval|verdict)"(.*?)>(.*?)</td>', written)
    assert {of for of, text in cells if text == "-"} == {' class="none"'}
    assert {of for of, text in cells if text != "-"} == {""}
    assert ".cards td.none { display: none; }" in written
