# SPDX-License-Identifier: Apache-2.0
"""The range of a first line: what another run on the same machine may give, not only what these gave."""

from __future__ import annotations

import itertools
import random
import statistics
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.golden import Golden
from tests.unit.made_results import made

from natgauge.analysis.between_runs import CONTAINS_DRIFT, DRIFT, drift, expected_range, judged, widened_by_doubts
from natgauge.analysis.contrast import contrast, median_interval_of
from natgauge.figure_text import number
from natgauge.notes import Note
from natgauge.records.measurement import Result
from natgauge.records.repetition import Repetition
from natgauge.reports import main_figure
from natgauge.reports.rows import Ranged, printed
from natgauge.reports.text import verdict
from natgauge.words import LimitedBy

GUEST = {"hypervisor": True, "device_cpus": [0]}
VALUES = [100_000.0, 104_000.0, 102_000.0]


def measured(values: list[float] = VALUES, metric: str = "throughput", **parameters: Any) -> Result:
    return made(values, metric=metric, unit="frames/s", parameters={**GUEST, **parameters})


@pytest.mark.parametrize(
    ("result", "share"),
    [
        (measured(begun=[0.0, 5.0, 10.0]), DRIFT),
        (measured(), DRIFT),
        (measured(hypervisor=False), 0.0),
        (measured(hypervisor=None), 0.0),
        (measured(device_cpus=None), 0.0),
        (measured(device_cpus=[]), 0.0),
        (measured(begun=[0.0, 5.0, CONTAINS_DRIFT]), 0.0),
        (measured(metric="cost"), 0.0),
        (measured(metric="table-capacity"), 0.0),
        (measured(metric="latency"), DRIFT),
        (measured(metric="a metric of tomorrow"), DRIFT),
    ],
)
def test_a_figure_drifts_that_a_guest_measured_of_its_own_speed_in_minutes(result: Result, share: float) -> None:
    assert drift(result) == share


def test_the_range_has_the_drift_and_the_sentence_below_names_it(golden: Golden) -> None:
    first, *others = verdict(measured(error="1%"), brief=True).splitlines()
    assert expected_range(measured(error="1%")) == pytest.approx((89_948, 114_450), abs=1)
    assert ": ± 13 % in another run (3 repetitions and the search error)" in first
    golden(others)


def test_without_drift_and_search_the_range_is_that_of_the_repetitions() -> None:
    lines = verdict(measured(hypervisor=False), brief=True)
    assert ": ± 2.0 % in another run (3 repetitions)" in lines
    assert "drift" not in lines


@pytest.mark.parametrize(("asked", "width"), [("5%", 5_100), ("3000", 3_000), ("much", 0), (None, 0)])
def test_the_error_of_the_search_widens_each_end(asked: str | None, width: float) -> None:
    found = expected_range(measured(hypervisor=False, error=asked))
    assert found == pytest.approx((100_000 - width, 104_000 + width))


def test_a_single_repetition_has_a_range_where_something_widens_it(golden: Golden) -> None:
    assert ": ± 10 % in another run (1 repetition)" in verdict(measured([1e5]))
    golden(verdict(measured([1e5], hypervisor=False)))
    # Seen: "± 1.0 % in another run (1 repetition)", which is the error of its search alone.
    searched = measured([1e5], hypervisor=False, error="1%")
    assert ": ± 1.0 % by the search error (1 repetition);" in verdict(searched)
    assert main_figure.spread(searched, named=False) == "± 1.0 % by the search error (1 repetition)"


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
    word: str, share: float | None, *, widens: bool, golden: Golden
) -> None:
    """Seen: "- 5 % + 1 % by the search error" of a search with an error of 1 %."""
    doubts = [{"word": word, "text": "x", "grade": "interval", "value": share}]
    result = made([1e5], unit="frames/s", parameters={"error": "1%"}, doubts=doubts)
    assert widened_by_doubts(result) == widens
    golden(main_figure.spread(result))


def test_the_range_of_a_share_in_percent_is_no_percent_of_it() -> None:
    """Seen: "loses 50 % of the frames: ± 4 %", which is read as 46 to 54 %, and was 48 to 52 %."""
    lost = made([48.0, 50.0, 52.0], metric="frame-loss", unit="%")
    assert "50.0 % of the frames at the highest load: 48.0 to 52.0 in another run (3 repetitions)" in verdict(lost)
    assert "±" not in verdict(lost)
    assert main_figure.within(lost) == "50.0 (48.0 to 52.0)"


@pytest.mark.parametrize(("middle", "text"), [(10.0, "10.0"), (1.0, "1.00"), (0.1, "0.100")])
def test_only_a_share_of_a_hundred_percent_is_taken_for_all(middle: float, text: str) -> None:
    """Seen: 10 % lost the digits that its interval resolves, as 100 % does."""
    assert main_figure.median(made([0.9 * middle, middle, 1.1 * middle], metric="frame-loss", unit="%")) == text


def test_a_bound_has_no_range_but_the_values_of_its_repetitions(golden: Golden) -> None:
    result = made([1e5, 1.1e5], metric="throughput", unit="frames/s", limited_by="tester", parameters=GUEST)
    assert expected_range(result) is None
    golden(verdict(result))


def test_the_range_of_the_repetitions_has_the_repetitions_as_its_ends() -> None:
    """Seen: "at least 508 subscribers: 500 to 710 in 3 repetitions", of 508, 686 and 708."""
    result = made([508.0, 686.0, 708.0], metric="subscribers", unit="subscribers", limited_by="tester")
    assert main_figure.spread(result) == "508 to 708 in 3 repetitions"
    assert main_figure.within(result).endswith(" (508 to 708)")


def test_a_range_does_not_fall_below_zero() -> None:
    assert expected_range(measured([0.0, 10.0, 5.0], error="1000")) == pytest.approx((0, 1010), abs=1)


def searched(values: list[float], upper: float, **changed: Any) -> Result:
    plain = made(values, **changed).document()
    for one in plain["repetitions"]:
        one |= {"upper": upper, "error": upper - one["value"]}
    return Result.from_document({**plain, "error": upper - values[0]})


def test_frames_that_were_excused_are_no_search_error_and_take_nothing_off_the_lower_end() -> None:
    """Of 3,600 periods 1 failed and 180 were INVALID: at least 0.0278 % fail, and "0.0 %: 0.0 to 5.1" was printed."""
    loss = searched([0.5] * 3, 1.2, metric="frame-loss", unit="%")
    assert expected_range(loss) == pytest.approx((0.5, 1.2))
    assert main_figure.spread(loss) == "0.50 to 1.20 in another run (3 repetitions)"
    few = searched([100 / 3420] * 3, 100 * 181 / 3600, metric="stability", unit="%", parameters={"at_most": 0.0})
    ends = {"failed_percent_lowest": 100 / 3600, "failed_percent_highest": 100 * 181 / 3600}
    failing = few.model_copy(update={"repetitions": tuple(replace(one, figures=ends) for one in few.repetitions)})
    assert "fails in 0.0292 % of the judged periods at constant load: 0.0277 to 5.1" in verdict(failing)
    assert main_figure.within(failing) == "0.0292 (0.0277 to 5.1)"
    judgement = judged(failing)
    assert judgement is not None
    assert judgement.verdict == "not met"
    assert printed(Ranged(0.0292, 0.0, 5.1), number, ends=True) == "0.0292 (0.0 to 5.1)"


def test_a_range_that_reaches_down_to_0_is_no_agreement() -> None:
    """The wider the doubt was, the narrower was what was printed."""
    few = searched([1.0], 2.0, metric="subscribers", unit="subscribers", parameters={"error": "1%"})
    assert expected_range(few) == (0.0, 2.0)
    assert "no interval" not in main_figure.spread(few)
    # A doubt leaves no range to expect, but repetitions that a search left open do not agree either.
    grave = [{"word": "drift", "text": "x"}]
    assert main_figure.spread(searched([0.5] * 3, 1.2, metric="frame-loss", unit="%", doubts=grave)) == (
        "3 repetitions, no interval"
    )


def test_ranges_of_runs_on_a_host_that_drifts_overlap() -> None:
    """Standard deviations as measured: 3.3 % within a sitting, 5.3 % between sittings."""
    chance = random.Random(7)  # noqa: S311 - made up

    def run() -> tuple[float, float]:
        host = chance.gauss(300_000, 0.053 * 300_000)
        values = [chance.gauss(host, 0.033 * host) for _ in range(3)]
        result = made(values, median=statistics.median(values), parameters={**GUEST, "error": "5%"})
        return expected_range(result) or (0.0, 0.0)

    pairs = [pair for _ in range(100) for pair in itertools.combinations([run() for _ in range(6)], 2)]
    overlapping = sum(one[0] <= other[1] and other[0] <= one[1] for one, other in pairs)
    assert overlapping >= 0.98 * len(pairs)
    narrow = sum(high - low < 0.35 * 300_000 for pair in pairs for low, high in pair)
    assert narrow >= 0.9 * 2 * len(pairs), "a range that contains everything says nothing"


def in_bucket(lower: float, upper: float) -> Result:
    """Four repetitions of a latency whose median is in this bucket."""
    ends = {"typical_latency_lowest_us": lower, "typical_latency_highest_us": upper}
    return made([(lower + upper) / 2] * 4, metric="latency", unit="us", figures=ends, parameters={"at_most": 100.2})


def test_delays_in_neighbouring_buckets_may_be_equal() -> None:
    """Of 100 us against 101 us "1.01 to 1.01, worse" was said, where the true ratio may be 1.0001."""
    found = contrast(in_bucket(99.6, 100.4), in_bucket(100.4, 101.4))
    assert found.interval.lower == pytest.approx(1)
    assert not found.differs
    assert contrast(in_bucket(99.6, 100.4), in_bucket(101.4, 102.4)).differs


@pytest.mark.parametrize(
    ("bucket", "verdict"), [((99.6, 100.4), "cannot tell"), ((98.6, 99.6), "met"), ((100.4, 101.4), "not met")]
)
def test_a_threshold_within_the_bucket_of_a_delay_is_neither_met_nor_missed(
    bucket: tuple[float, float], verdict: str
) -> None:
    threshold = judged(in_bucket(*bucket))
    assert threshold is not None
    assert threshold.verdict == verdict


@pytest.mark.parametrize(
    ("figures", "known"),
    [
        ({"rate_lowest": 4e5, "rate_highest": 9e5}, (4e5, 9e5)),
        # An end that is not known is none.
        ({"rate_lowest": 4e5}, None),
        ({}, (7e5, 7e5)),
    ],
)
def test_the_range_contains_what_the_sample_of_a_repetition_allows(
    figures: dict[str, float], known: tuple[float, float] | None
) -> None:
    result = made([7e5], metric="tear-down-rate", unit="connections/s", figures=figures)
    found = expected_range(result)
    assert (found is None) == (known is None)
    if found is not None and known is not None:
        assert found[0] <= known[0] <= known[1] <= found[1]
        assert found[0] == pytest.approx(known[0], rel=0.2)


UNDECIDED = Note("undecided", "100 or more")


@pytest.mark.parametrize(
    ("metric", "limits", "upper", "notes", "ends"),
    [
        ("throughput", ["device"] * 6, None, (), (1.0, 1.5)),
        # Rates that the tester ended, and undecided ones, have no upper end.
        ("throughput", ["tester"] * 6, None, (), (1.0, None)),
        ("throughput", ["time"] * 6, 1.6, (), (1.0, 1.6)),
        ("table-capacity", ["device"] * 6, None, (UNDECIDED,), (1.0, None)),
        # Times that something else made larger have no lower end.
        ("latency", ["host"] * 6, None, (), (0.0, 1.5)),
        ("latency", ["host"] * 5 + ["device"], None, (), (0.0, 1.5)),
        ("cost", ["tester"] * 6, None, (), (0.0, 1.5)),
        ("cost", ["tester"] * 5 + ["device"], None, (), (0.0, 1.5)),
    ],
)
def test_an_interval_of_the_median_lacks_an_end_that_something_else_than_the_device_made(
    metric: str,
    limits: list[LimitedBy],
    upper: float | None,
    notes: tuple[Note, ...],
    ends: tuple[float, float | None],
) -> None:
    values = zip((1.0, 1.1, 1.2, 1.3, 1.4, 1.5), limits, strict=True)
    found = median_interval_of(metric, [Repetition(value, upper, by, {}, notes=notes) for value, by in values], ())
    assert found is not None
    assert (found.lower, found.upper) == ends
