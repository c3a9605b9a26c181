# SPDX-License-Identifier: Apache-2.0
"""The range of a first line: what another run on the same machine may give, not only what these gave."""

from __future__ import annotations

import itertools
import json
import random
import re
import statistics
from pathlib import Path
from typing import Any

import pytest
from tests.unit.conftest import Ran, Reported
from tests.unit.golden import Golden
from tests.unit.made_results import in_turns, kept, made, searched
from tests.unit.pages import lines_of, tables_of, words_of

from natgauge import Result

GUEST = {"hypervisor": True, "device_cpus": [0]}
VALUES = [100_000.0, 104_000.0, 102_000.0]


def measured(
    values: list[float] = VALUES, metric: str = "throughput", unit: str = "frames/s", **parameters: Any
) -> Result:
    return made(values, metric=metric, unit=unit, parameters={**GUEST, **parameters})


def first_of(result: Result, reported: Reported) -> str:
    sentence: str = reported(result)["answers"][0]["text"]
    return sentence


def evidence_of(page: str) -> list[list[str]]:
    """What a page says of each result."""
    every = [lines_of(each) for each in page.split('<details class="result"')[1:]]
    assert every
    return every


def verdicts(results: list[Result], reported: Reported) -> list[str]:
    """The verdicts on the thresholds of results."""
    rows = {row["row"]: row["cells"] for row in reported(*results)["table"]["rows"]}
    return [cell.rpartition(": ")[2] for cell in rows["threshold"]]


def has_range(low: float, high: float, of: Any, reported: Reported, step: float = 1) -> bool:
    """Whether these are the ends of the range, to a step: a threshold beyond one of them is met, or is not told."""
    demands = ("at_least", low - step), ("at_least", low + step), ("at_most", high + step), ("at_most", high - step)
    asked = [of(**{setting: value}) for setting, value in demands]
    return verdicts(asked, reported) == ["met", "cannot tell", "met", "cannot tell"]


#: Results, and whether another sitting of the machine may give something else.
DRIFTING = [
    (measured(begun=[0.0, 5.0, 10.0]), True),
    (measured(), True),
    (measured(hypervisor=False), False),
    (measured(hypervisor=None), False),
    (measured(device_cpus=None), False),
    (measured(begun=[1.0, 5.0, 600.0]), True),
    (measured(begun=[2.0, 5.0, 602.0]), False),
    (measured(metric="cost", unit="x forwarding"), False),
    (measured(metric="table-capacity", unit="connections"), False),
    (measured(metric="latency", unit="us"), True),
]


def test_a_figure_drifts_that_a_guest_measured_of_its_own_speed_in_minutes(reported: Reported) -> None:
    every = evidence_of(reported(*(result for result, _ in DRIFTING), html=True))
    said = [[line for line in lines if line.startswith("Median of 3 repetitions")] for lines in every]
    assert ["; drift of a virtual machine 10 %." in line for (line,) in said] == [drifts for _, drifts in DRIFTING]


def test_the_range_has_the_drift_and_the_sentence_below_names_it(golden: Golden, reported: Reported) -> None:
    assert ": ± 13 % in another run (3 repetitions and the search error)" in first_of(measured(error="1%"), reported)
    assert has_range(89_948, 114_450, lambda **asked: measured(error="1%", **asked), reported)
    ((_, *lines),) = evidence_of(reported(measured(error="1%"), html=True))
    golden([line for line in lines if line.startswith("Median")])


def test_without_drift_and_search_the_range_is_that_of_the_repetitions(reported: Reported) -> None:
    assert ": ± 2.0 % in another run (3 repetitions);" in first_of(measured(hypervisor=False), reported)
    assert "drift" not in str(evidence_of(reported(measured(hypervisor=False), html=True)))


@pytest.mark.parametrize(("asked", "width"), [("5%", 5_100), ("3000", 3_000), (None, 0)])
def test_the_error_of_the_search_widens_each_end(asked: str | None, width: float, reported: Reported) -> None:
    def of(**demanded: Any) -> Result:
        return measured(hypervisor=False, error=asked, **demanded)

    assert has_range(100_000 - width, 104_000 + width, of, reported)


def test_a_single_repetition_has_a_range_where_something_widens_it(golden: Golden, reported: Reported) -> None:
    assert ": ± 10 % in another run (1 repetition)" in first_of(measured([1e5]), reported)
    golden(first_of(measured([1e5], hypervisor=False), reported))
    # Seen: "± 1.0 % in another run (1 repetition)", which is the error of its search alone.
    alone = measured([1e5], hypervisor=False, error="1%")
    assert ": ± 1.0 % by the search error (1 repetition);" in first_of(alone, reported)
    assert "± 1.0 % by the search error (1 repetition)" in glance_of(alone, reported)


def glance_of(result: Result, reported: Reported) -> str:
    """The cell of the only result in the page's table of medians."""
    page = reported(result, html=True)
    (name,) = re.findall('aria-label="([^"]* at a glance)"', page)
    ((_, (_, cell)),) = tables_of(page, name)
    return words_of(cell)


@pytest.mark.parametrize(
    ("word", "share", "widens"),
    [
        ("queues", 0.05, True),
        ("tester on device cores", 0.05, True),
        # The error is wider.
        ("queues", 0.005, False),
        ("queues", None, False),
        ("unexpected count", 0.05, False),
    ],
)
def test_a_doubt_that_widens_the_range_of_a_search_is_named_with_its_error(
    word: str, share: float | None, *, widens: bool, golden: Golden, reported: Reported
) -> None:
    """Seen: "- 5 % + 1 % by the search error" of a search with an error of 1 %."""
    doubts = [{"word": word, "text": "x", "grade": "interval", "value": share}]
    said = first_of(made([1e5], unit="frames/s", parameters={"error": "1%"}, doubts=doubts), reported)
    assert ("by the search error and its doubts" in said) is widens
    golden(said)


def in_cell(result: Result, folder: Path, ran: Ran) -> str:
    """The figure of the only result in the table of medians, without marks."""
    text: str = ran(["report", str(kept(folder, result)), "--against", "metrics", "--format", "markdown"]).out
    return next(line for line in text.splitlines() if line.startswith("| x |")).split(" | ")[1]


def test_the_range_of_a_share_in_percent_is_no_percent_of_it(tmp_path: Path, ran: Ran, reported: Reported) -> None:
    """Seen: "loses 50 % of the frames: ± 4 %", which is read as 46 to 54 %, and was 48 to 52 %."""
    lost = made([48.0, 50.0, 52.0], metric="frame-loss", unit="%")
    said = first_of(lost, reported)
    assert "50.0 % of the frames at the highest load: 48.0 to 52.0 in another run (3 repetitions)" in said
    assert "±" not in said
    assert in_cell(lost, tmp_path, ran).startswith("50.0 (48.0 to 52.0)")


@pytest.mark.parametrize(("middle", "text"), [(10.0, "10.0"), (1.0, "1.00"), (0.1, "0.100")])
def test_only_a_share_of_a_hundred_percent_is_taken_for_all(middle: float, text: str, tmp_path: Path, ran: Ran) -> None:
    """Seen: 10 % lost the digits that its interval resolves, as 100 % does."""
    lost = made([0.9 * middle, middle, 1.1 * middle], metric="frame-loss", unit="%")
    assert in_cell(lost, tmp_path, ran).startswith(f"{text} (")


def test_a_bound_has_no_range_but_the_values_of_its_repetitions(golden: Golden, reported: Reported) -> None:
    result = made([1e5, 1.1e5], metric="throughput", unit="frames/s", limited_by="tester", parameters=GUEST)
    golden(first_of(result, reported))


def test_the_range_of_the_repetitions_has_the_repetitions_as_its_ends(reported: Reported) -> None:
    """Seen: "at least 508 subscribers: 500 to 710 in 3 repetitions", of 508, 686 and 708."""
    result = made([508.0, 686.0, 708.0], metric="subscribers", unit="subscribers", limited_by="tester")
    assert ": 508 to 708 in 3 repetitions" in first_of(result, reported)
    assert "508 to 708 in 3 repetitions" in glance_of(result, reported)


def test_a_range_does_not_fall_below_zero(reported: Reported) -> None:
    asked: list[tuple[dict[str, Any], str]] = [
        ({"at_least": 0.0}, "met"),
        ({"at_least": 1.0}, "cannot tell"),
        ({"at_most": 1009.0}, "cannot tell"),
        ({"at_most": 1011.0}, "met"),
    ]
    results = [measured([0.0, 10.0, 5.0], error="1000", **demanded) for demanded, _ in asked]
    assert verdicts(results, reported) == [verdict for _, verdict in asked]


def test_frames_that_were_excused_are_no_search_error_and_take_nothing_off_the_lower_end(
    tmp_path: Path, ran: Ran, reported: Reported
) -> None:
    """Of 3,600 periods 1 failed and 180 were INVALID: at least 0.0278 % fail, and "0.0 %: 0.0 to 5.1" was printed."""
    loss = searched([0.5] * 3, 0.7, metric="frame-loss", unit="%")
    assert "0.50 to 1.20 in another run (3 repetitions)" in first_of(loss, reported)
    value, highest = 100 / 3420, 100 * 181 / 3600
    ends = {"failed_percent_lowest": [100 / 3600] * 3, "failed_percent_highest": [highest] * 3}
    failing = searched(
        [value] * 3, highest - value, metric="stability", unit="%", figures=ends, parameters={"at_most": 0.0}
    )
    said = first_of(failing, reported)
    assert "fails in 0.0292 % of the judged periods at constant load: 0.0277 to 5.1" in said
    assert in_cell(failing, tmp_path, ran).startswith("0.0292 (0.0277 to 5.1)")
    assert verdicts([failing], reported) == ["not met"]


def test_a_range_that_reaches_down_to_0_is_no_agreement(reported: Reported) -> None:
    """The wider the doubt was, the narrower was what was printed."""
    few = searched([1.0], 1.0, metric="subscribers", unit="subscribers", parameters={"error": "1%"})
    assert "no interval" not in first_of(few, reported)
    assert "0 to 2" in first_of(few, reported)
    # A doubt leaves no range to expect, but repetitions that a search left open do not agree either.
    grave = [{"word": "drift", "text": "x"}]
    loss = searched([0.5] * 3, 0.7, metric="frame-loss", unit="%", doubts=grave)
    assert ": 3 repetitions, no interval" in first_of(loss, reported)


def test_ranges_of_runs_on_a_host_that_drifts_overlap(tmp_path: Path, ran: Ran) -> None:
    """Standard deviations as measured: 3.3 % within a sitting, 5.3 % between sittings."""
    chance = random.Random(7)  # noqa: S311 - made up
    folders = []
    for number in range(120):
        host = chance.gauss(300_000, 0.053 * 300_000)
        values = [chance.gauss(host, 0.033 * host) for _ in range(3)]
        parameters = {**GUEST, "gateway": f"run-{number}", "error": "5%", "at_least": 1e9}
        run = made(values, median=statistics.median(values), parameters=parameters)
        folders.append(str(kept(tmp_path / str(number), run)))
    ran(["report", *folders, "--junit", str(tmp_path / "tests.xml")])
    said = (tmp_path / "tests.xml").read_text()
    ranges = [tuple(map(float, ends)) for ends in re.findall("expected to have ([0-9]+) k to ([0-9]+) k", said)]
    assert len(ranges) == 120
    pairs = [pair for at in range(0, 120, 6) for pair in itertools.combinations(ranges[at : at + 6], 2)]
    overlapping = sum(one[0] <= other[1] and other[0] <= one[1] for one, other in pairs)
    assert overlapping >= 0.98 * len(pairs)
    narrow = sum(high - low < 0.35 * 300 for low, high in ranges)
    assert narrow >= 0.9 * len(ranges), "a range that contains everything says nothing"


def in_bucket(lower: float, upper: float) -> Result:
    """Four repetitions of a latency whose median is in this bucket."""
    typical = (lower + upper) / 2
    figures = {
        "typical_latency_us": typical, "worst_case_latency_us": 200.0,
        "typical_latency_lowest_us": lower, "typical_latency_highest_us": upper,
    }  # fmt: skip
    each = {name: [value] * 4 for name, value in figures.items()}
    return made([typical] * 4, metric="latency", unit="us", figures=each, parameters={"at_most": 100.2, **in_turns(4)})


@pytest.mark.parametrize(("second", "outcome"), [((100.4, 101.4), "no difference seen"), ((101.4, 102.4), "worse")])
def test_delays_in_neighbouring_buckets_may_be_equal(
    second: tuple[float, float], outcome: str, tmp_path: Path, ran: Ran
) -> None:
    """Of 100 us against 101 us "1.01 to 1.01, worse" was said, where the true ratio may be 1.0001."""
    folders = [str(kept(tmp_path / str(at), in_bucket(*ends))) for at, ends in enumerate(((99.6, 100.4), second))]
    (found,) = json.loads(ran(["diff", *folders, "--json"], status=0 if outcome != "worse" else 1).out)["comparisons"]
    assert found["outcome"] == outcome
    assert found["lower"] == pytest.approx(second[0] / 100.4)


@pytest.mark.parametrize(
    ("bucket", "verdict"), [((99.6, 100.4), "cannot tell"), ((98.6, 99.6), "met"), ((100.4, 101.4), "not met")]
)
def test_a_threshold_within_the_bucket_of_a_delay_is_neither_met_nor_missed(
    bucket: tuple[float, float], verdict: str, reported: Reported
) -> None:
    assert verdicts([in_bucket(*bucket)], reported) == [verdict]


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        ({"rate_lowest": 4e5, "rate_highest": 9e5}, "400 k to 900 k."),
        # An end that is not known is none.
        ({"rate_lowest": 4e5}, "400 k or more."),
        ({}, "700 k."),
    ],
)
def test_the_range_contains_what_the_sample_of_a_repetition_allows(
    figures: dict[str, float], said: str, reported: Reported
) -> None:
    each = {name: [value] * 4 for name, value in figures.items()}
    result = made([7e5] * 4, metric="tear-down-rate", unit="connections/s", figures=each, parameters={"at_least": 1.0})
    _, threshold, *_ = (one["text"] for one in reported(result)["answers"])
    assert threshold.partition(" is expected to have ")[2] == said
    # One repetition alone says nothing of another run.
    single = made([7e5], metric="tear-down-rate", unit="connections/s", figures=figures)
    assert ": 1 repetition, no interval" in first_of(single, reported)


#: Metric and unit, what limited each of six repetitions, their upper bound and notes, and the ends of the interval.
LIMITED: list[tuple[tuple[str, str], list[str], float | None, list[dict[str, str]], tuple[float, float | None]]] = [
    (("throughput", "frames/s"), ["device"] * 6, None, [], (1.0, 1.5)),
    # Rates that the tester ended, and undecided ones, have no upper end.
    (("throughput", "frames/s"), ["tester"] * 6, None, [], (1.0, None)),
    (("throughput", "frames/s"), ["time"] * 6, 1.6, [], (1.0, 1.6)),
    (
        ("table-capacity", "connections"), ["device"] * 6, None, [{"word": "undecided", "text": "100 or more"}],
        (1.0, None),
    ),
    # Times that something else made larger have no lower end.
    (("reset", "ms"), ["host"] * 6, None, [], (0.0, 1.5)),
    (("reset", "ms"), ["host"] * 5 + ["device"], None, [], (0.0, 1.5)),
    (("cost", "x forwarding"), ["tester"] * 6, None, [], (0.0, 1.5)),
    (("cost", "x forwarding"), ["tester"] * 5 + ["device"], None, [], (0.0, 1.5)),
]  # fmt: skip


@pytest.mark.parametrize("at", range(len(LIMITED)))
def test_an_interval_of_the_median_lacks_an_end_that_something_else_than_the_device_made(
    at: int, tmp_path: Path, ran: Ran
) -> None:
    (metric, unit), limits, upper, notes, ends = LIMITED[at]
    document = made([1.0, 1.1, 1.2, 1.3, 1.4, 1.5], metric=metric, unit=unit, limited_by=limits[0]).document()
    for one, by in zip(document["repetitions"], limits, strict=True):
        one |= {"limited_by": by, "upper": upper, "notes": notes, "error": upper and upper - one["value"]}
    document["error"] = upper and upper - 1.0
    (folder,) = kept(tmp_path, Result.from_document(document)).iterdir()
    stored = json.loads((folder / "summary.json").read_text())["median_interval"]
    assert (stored["lower"], stored["upper"], stored["coverage"]) == (*ends, 0.96875)
    # A folder with another interval than that of its repetitions is refused.
    ran(["report", str(folder)])
