# SPDX-License-Identifier: Apache-2.0
"""A doubt that widens an interval widens it, and one that could change the answer stands in the first line.

Doubts of a rate that is measured first reach every metric whose rates are shares of it.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from tests import simulated_lab
from tests.unit.campaigning import Benches, Dies, Killed, asked, campaign, events, summaries
from tests.unit.conftest import Report
from tests.unit.golden import Golden
from tests.unit.made_results import in_turns, kept_as, made, with_interval
from tests.unit.pages import words_of
from tests.unit.simulated import Gateway
from tests.unit.test_rare_loss import LosesAFew

from natgauge import Result
from natgauge.cli import run
from natgauge.errors import BrokenError

VALUES = [99.0, 100.0, 101.0, 102.0]


def doubt(word: str, value: float | None = None, grade: str | None = None) -> dict[str, Any]:
    return {"word": word, "text": "x", "value": value, "grade": grade}


def rate(values: list[float], gateway: str, *doubts: dict[str, Any], later: float = 0.0, **given: Any) -> Result:
    turns = {**in_turns(len(values)), **given.pop("parameters", {})}
    turns["begun"] = [begun + later for begun in turns["begun"]]
    return made(
        values,
        median=sum(sorted(values)[1:3]) / 2,
        metric="connection-rate",
        unit="connections/s",
        parameters={"gateway": gateway, **turns},
        doubts=list(doubts),
        **given,
    )


#: The only line of `natgauge diff --json` of two results.
Contrast: TypeAlias = Callable[[Result, Result], Any]


@pytest.fixture
def contrast(tmp_path: Path) -> Contrast:
    numbers = itertools.count()

    def of(first: Result, second: Result) -> Any:
        folder = tmp_path / f"pair-{next(numbers)}"
        folders = [str(kept_as(folder / name, one)) for name, one in (("a", first), ("b", second))]
        with redirect_stdout(io.StringIO()) as printed:
            run(["diff", *folders, "--about", "device", "--json"])
        (line,) = json.loads(printed.getvalue())["comparisons"]
        return line

    return of


def differs(line: Any) -> bool:
    """Whether the interval of a ratio contains no 1."""
    lower, upper = line["lower"], line["upper"]
    return bool(lower > 1 or (upper is not None and upper < 1))


def test_a_limit_of_the_tester_is_no_bound_of_a_value_of_which_neither_side_is_better(
    report: Report, contrast: Contrast
) -> None:
    """A ratio whose denominator the tester limited is too high, and one whose numerator it limited too low."""
    limited = made([83.0, 84.0], metric="enumeration-orders", unit="%", limited_by="tester")
    good = made([50.0, 50.5], metric="enumeration-orders", unit="%")
    first, *_ = report(limited).splitlines()
    assert "least" not in first
    assert "(doubtful)" in first
    assert not differs(contrast(good, limited))
    assert not differs(contrast(limited, good))


def caption_of(drawing: str) -> str:
    """The words below the title of a drawing."""
    (found,) = re.findall(r"Subtitle text '([^\"]*)'", drawing)
    return " ".join(found.split())


def test_captions_of_a_page_and_of_files_say_what_the_doubts_of_marked_figures_say(
    report: Report, tmp_path: Path, golden: Golden
) -> None:
    """Seen: "* wide interval" next to intervals of 15 %, with and without the mark."""
    results = [rate(VALUES, "a", doubt("drift")), rate(VALUES, "b", doubt("queues", 0.02), later=10.0)]
    report(*results, asked=["--html", str(tmp_path / "page.html"), "--svg", str(tmp_path / "svg")])
    page = (tmp_path / "page.html").read_text()
    (marks,) = set(
        re.findall(r"† may be another value: [^.]*\. \* a doubt about its interval: [^.]*\.", words_of(page))
    )
    golden(marks)
    below = [words_of(each) for each in re.findall(r'<p class="quiet">(.*?)</p>', page, re.DOTALL)]
    assert [text.split()[0] for text in below if marks in text] == ["Bars", "Below", "Each"]
    (drawing,) = (tmp_path / "svg").iterdir()
    assert marks in caption_of(drawing.read_text())
    table, *_ = re.findall(r'<details class="data">(.*?)</details>', page, re.DOTALL)
    medians = [re.findall(r"<td>(.*?)</td>", row)[0] for row in table.split("<tr>")[2:]]
    assert [words_of(median)[-1] for median in medians] == ["†", "*"]


def test_a_caption_of_lines_has_the_marks_of_the_ends_that_it_names(report: Report, tmp_path: Path) -> None:
    parameters = [{"device_cores": cores} for cores in (1, 2)]
    over = [
        rate(VALUES, "a", parameters=parameters[0]),
        rate(VALUES, "a", doubt("drift"), parameters=parameters[1], later=10.0),
    ]
    report(*over, asked=["--html", str(tmp_path / "page.html")])
    page = (tmp_path / "page.html").read_text()
    (drawn, *_) = re.findall(r'<div class="chart" role="img" aria-label="([^"]*)"', page)
    assert "† with 2 cores" in drawn
    assert "† with 1 " not in drawn


def test_bars_of_a_metric_without_a_better_side_have_no_best(report: Report, tmp_path: Path, golden: Golden) -> None:
    results = [made([each], metric="enumeration-orders", unit="%") for each in (83.0, 50.0)]
    report(*results, asked=["--svg", str(tmp_path / "svg")])
    (drawing,) = (tmp_path / "svg").iterdir()
    golden(caption_of(drawing.read_text()))


@pytest.mark.parametrize(
    ("fast", "slow", "sure"),
    [
        ([], [], True),
        ([doubt("queues", 0.04)], [], True),
        ([doubt("queues", 0.6, "answer")], [], False),
        ([doubt("short trials", 0.6, "answer")], [], False),
        ([], [doubt("tester on device cores", 0.35, "answer")], False),
    ],
)
def test_a_share_that_explains_a_difference_leaves_nothing_sure(
    fast: list[dict[str, Any]], slow: list[dict[str, Any]], *, sure: bool, report: Report, contrast: Contrast
) -> None:
    """A gateway of 200,000/s behind a deep ring was surely 1.39 times as fast as one of 240,000/s."""
    pair = [rate([1.39 * value for value in VALUES], "a", *fast), rate(VALUES, "b", *slow, later=10.0)]
    first, *_ = json.loads(report(*pair, asked=["--format", "json"]))["answers"]
    assert first["certainty"] == ("sure" if sure else "cannot tell")
    line = contrast(pair[1], pair[0])
    assert differs(line) is sure
    assert (line["outcome"] == "no difference seen") is not sure


def test_queues_before_a_simulated_gateway_are_in_its_interval_and_its_first_line(golden: Golden) -> None:
    gateway = Gateway(establishes=200_000, queue=4096)
    found = simulated_lab.measure("connection-rate", gateway, connections=10_000, repeat=6)
    assert found.median > 300_000
    interval = found.document["median_interval"]
    assert interval["lower"] < 200_000 < interval["upper"]
    first, *others = found.said.splitlines()
    golden(first)
    golden([line for line in others if "queues" in line or "Bottleneck" in line])


def searched(values: list[float], uppers: list[float | None], *doubts: dict[str, Any], limited_by: str) -> Result:
    document = made(
        values, metric="subscribers", unit="subscribers", limited_by=limited_by, doubts=list(doubts)
    ).document()
    for one, upper in zip(document["repetitions"], uppers, strict=True):
        one |= {"upper": upper, "error": None if upper is None else upper - one["value"]}
    errors = [one["error"] for one in document["repetitions"]]
    document["error"] = None if None in errors else max(errors)
    return with_interval(Result.from_document(document))


def bound_of(report: Report, result: Result) -> tuple[float, float, bool]:
    """Between what a figure lies, as CSV has it, and whether its sentence calls it doubtful."""
    (line,) = csv.DictReader(io.StringIO(report(result, asked=["--format", "csv"])))
    bound, median = line["bound"], float(line["median"])
    doubtful = "(doubtful)" in report(result).splitlines()[0]
    if bound.startswith(">= "):
        return float(bound[3:]), math.inf, doubtful
    if bound.startswith("<= "):
        return 0.0, float(bound[3:]), doubtful
    lower, _, upper = bound.partition(" to ")
    return (float(lower), float(upper), doubtful) if upper else (median, median, doubtful)


#: Doubts that two bounds say, that a known share bounds, and that leave the lower end.
UNSURE = [doubt("undecided"), doubt("queues", 0.25, "answer"), doubt("taking turns")]


@pytest.mark.parametrize(
    ("result", "lower", "upper"),
    [
        (searched([508, 686, 708], [510, 690, 710], doubt("rare loss"), limited_by="device"), 508, math.inf),
        (searched([508, 686, 708], [None] * 3, limited_by="tester"), 508, math.inf),
        (searched([508, 686, 708], [510, 690, 710], doubt("queues", 0.25, "answer"), limited_by="device"), 0, 710),
        (searched([508, 686, 708], [510, 690, 710], limited_by="time"), 504, 712),
        (searched([508, 686, 708], [510, 690, 710], doubt("names not cached"), limited_by="time"), 508, math.inf),
        (searched([508, 686, 708], [510, 690, None], limited_by="time"), 508, math.inf),
        (searched([508, 686, 708], [510, 690, 710], doubt("undecided"), limited_by="device"), 504, 712),
        (searched([508, 686, 708], [510, 690, 710], *UNSURE, limited_by="device"), 508 / 1.25, math.inf),
        (searched([508, 686, 708], [510, 690, 710], *UNSURE[:2], limited_by="device"), 0, 710),
        (searched([508, 686, 708], [510, 690, 710], *UNSURE[1:], limited_by="device"), 508 / 1.25, math.inf),
        (searched([508, 686, 708], [510, 690, 710], UNSURE[0], UNSURE[2], limited_by="device"), 508, math.inf),
    ],
)
def test_no_repetition_is_outside_of_the_bounds_of_the_first_line(
    result: Result, lower: float, upper: float, report: Report
) -> None:
    """Seen: "at least 686 subscribers: 508 to 708 in 3 repetitions"; the median was called a bound."""
    *ends, doubtful = bound_of(report, result)
    assert ends == pytest.approx([lower, upper])
    assert not doubtful


def test_the_same_doubts_say_the_same_whatever_ended_one_of_the_repetitions(report: Report) -> None:
    """Seen: "at least 114 k" where the host ended one of them, and "132.7 k (doubtful)" where the device ended all."""
    of_device = searched([508, 686], [510, 690], *UNSURE, limited_by="device")
    document = of_device.document()
    document["repetitions"][1]["limited_by"] = "host"
    of_both = with_interval(Result.from_document(document))
    lower, *others = bound_of(report, of_device)
    assert lower == pytest.approx(508 / 1.25)
    assert others == [math.inf, False]
    assert bound_of(report, of_both) == (lower, *others)


def test_a_repetition_without_an_upper_end_has_no_bounds_that_could_say_a_doubt(report: Report) -> None:
    result = searched([508, 686, 708], [510, None, 710], *UNSURE, limited_by="device")
    assert bound_of(report, result) == (686, 686, True)


def test_nothing_is_certain_of_a_rate_that_may_be_lower_of_which_a_repetition_may_be_higher(report: Report) -> None:
    """A repetition without an upper end leaves no "at most"."""
    hidden = doubt("rare loss", grade="interval")
    result = searched([508, 686, 708], [510, 690, 710], doubt("queues", 0.25, "answer"), hidden, limited_by="device")
    assert bound_of(report, result) == (686, 686, True)


def test_a_lone_frame_that_made_the_upper_bound_is_tried_again_where_bounds_are_not_confirmed() -> None:
    lost = Gateway(establishes=300_000, rare_loss=0.15, seed=4)
    found = simulated_lab.measure("connection-rate", lost, connections=10_000, repeat=4, confirm=False, error="5%")
    grave = [each for each in found.document["doubts"] if each["grade"] == "answer"]
    assert found.median > 0.94 * 300_000 or grave


def test_a_doubt_of_several_repetitions_widens_once(contrast: Contrast) -> None:
    """Five repetitions with a bucket of 40 % each had a lower bound of a third of the value."""
    other = rate(VALUES, "b", later=10.0)
    several = [doubt("bucket", share, "answer") for share in (0.4, 0.38, 0.4, 0.39)]
    lines = [contrast(rate(VALUES, "a", *own), other) for own in ([several[0]], several, [])]
    once, often, none = [(line["value"], line["lower"], line["upper"]) for line in lines]
    assert once == often != none


@pytest.mark.parametrize("word", ["rare loss", "late at every rate", "link limited"])
def test_a_rate_that_something_hides_has_no_upper_end_in_a_ratio(word: str, contrast: Contrast) -> None:
    """A gateway of 119,069/s with rare loss had "2.03 times (1.88 to 23.1)" against it by one of 142,882/s."""
    halves = [value / 2 for value in VALUES]
    pair = (rate(halves, "a", doubt(word)), rate(VALUES, "b", later=10.0))
    line = contrast(*pair)
    assert line["lower"] == 0
    assert not differs(line)
    assert differs(contrast(rate(halves, "a"), pair[1]))


def test_a_number_of_connections_that_was_kept_and_is_undecided_above_is_a_lower_bound(report: Report) -> None:
    told = doubt("undecided", grade="answer")
    document = made([1000.0, 1100.0], metric="table-capacity", unit="connections", doubts=[told]).document()
    for one in document["repetitions"]:
        one["notes"] = [told]
    assert bound_of(report, with_interval(Result.from_document(document))) == (1000.0, math.inf, False)


#: Its tester limits the throughput, not the device.
FASTER_THAN_THE_TESTER: dict[str, Any] = {"forwards": 1e9, "ceiling": 4e6}


def doubted(metric: str, gateway: Gateway, word: str = "throughput doubted", **others: Any) -> list[str]:
    """What a measurement says of this doubt."""
    given = {"connection_rate": 1e5, "connections": 1000, **others}
    found = simulated_lab.measure(metric, gateway, **given)
    return [each["text"] for each in found.document["doubts"] if each["word"] == word]


@pytest.mark.parametrize("probability", [5e-7, 2e-6])
def test_a_latency_at_a_throughput_far_too_low_says_so(probability: float) -> None:
    """Seen: "100 % is 90,625 frames/s" of a device of 1,000,000, without a doubt."""
    far_too_low = 0
    for seed in range(10):
        gateway = LosesAFew(probability=probability, seed=seed)
        try:
            texts = doubted("latency", gateway, loads="100%")
        except BrokenError as error:
            # A throughput of 0 leaves no latency.
            assert "loss at every rate" in str(error)  # noqa: PT017 - only some seeds end so
            continue
        phase2 = gateway.plans[-1].phase2
        if phase2 is not None and phase2.initiator_rate < 500_000:
            far_too_low += 1
            assert any("rare loss" in text for text in texts)
    assert far_too_low > 3


@pytest.mark.parametrize(
    ("metric", "placement"),
    [("latency", "isolated"), ("pdv", "isolated"), ("ipdv", "isolated"), ("frame-loss", "shared")],
)
def test_every_metric_of_shares_names_the_doubts_of_its_throughput(metric: str, placement: Any) -> None:
    (text,) = doubted(metric, Gateway(placement=placement, **FASTER_THAN_THE_TESTER))
    assert "tester limited" in text
    assert "single repetition" not in text


def test_delays_of_first_packets_name_the_doubts_of_their_connection_rate() -> None:
    def said(given: float | None, **truth: Any) -> dict[str, str]:
        gateway = Gateway(**{**FASTER_THAN_THE_TESTER, "establishes": 1e9, **truth})
        found = simulated_lab.measure("first-packet-delay", gateway, connections=1000, connection_rate=given)
        return {one["word"]: one["text"] for one in found.document["doubts"]}

    slow_tester = said(None)
    assert "the connection rate was measured first" in slow_tester["connection rate doubted"]
    assert "tester limited" in slow_tester["connection rate doubted"]
    assert "throughput doubted" not in slow_tester
    assert "connection rate doubted" not in said(1e5)
    assert "connection rate doubted" not in said(None, establishes=100, forwards=1e6, ceiling=16e6)


def test_bursts_whose_corrected_buffer_time_rests_on_a_doubted_throughput_say_so() -> None:
    gateway = LosesAFew(probability=2e-6, queue=512, ring=512, seed=3)
    (text,) = doubted("back-to-back", gateway)
    assert "rare loss" in text


def test_a_throughput_without_doubts_and_one_that_was_given_leave_none() -> None:
    assert doubted("latency", Gateway(forwards=3e5)) == []
    assert doubted("latency", Gateway(**FASTER_THAN_THE_TESTER), throughput_rate=1e6) == []


#: Of the second repetition alone the tester limits the throughput.
PLAN = """
name = "small"
gateways = ["linux-ipv4"]
repetitions = 2
seed = 5
traffic = { connections = 1000 }

[[measure]]
metric = "pdv"
connection_rate = 100_000
"""


def test_repetitions_that_are_joined_keep_the_doubts_of_each_throughput(tmp_path: Path) -> None:
    """Also those of a campaign that is gone on with, whose journal has them."""

    def doubts_of(folder: Path, after: int | None) -> list[str]:
        numbers = itertools.count()
        benches = Benches(lambda _: Gateway(**(FASTER_THAN_THE_TESTER if next(numbers) else {"forwards": 3e5})))
        folder.mkdir()
        if after is not None:
            benches.killed = Dies(after)
            with pytest.raises(Killed):
                campaign(folder, benches, plan=PLAN)
            assert len(events(folder, "repetition")) == 1
            benches.killed = Dies()
        campaign(folder, benches, plan=PLAN)
        (result,) = summaries(folder).values()
        return [doubt.text for doubt in result.doubts if doubt.word == "throughput doubted"]

    (text,) = doubts_of(tmp_path / "whole", None)
    assert "tester limited" in text
    first = asked(tmp_path / "whole")["linux-ipv4-pdv", 1]
    assert doubts_of(tmp_path / "killed", len(first) + 1) == [text]
