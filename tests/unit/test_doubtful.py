# SPDX-License-Identifier: Apache-2.0
"""A doubt that widens an interval widens it, and one that could change the answer stands in the first line.

Doubts of a rate that is measured first reach every metric whose rates are shares of it.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.golden import Golden
from tests.unit.made_results import in_turns, made
from tests.unit.simulated import Gateway
from tests.unit.test_criterion import found as measured
from tests.unit.test_rare_loss import LosesAFew

from natgauge.analysis.contrast import contrast
from natgauge.campaigns.journal_lines import RepetitionLine
from natgauge.campaigns.run import join
from natgauge.errors import BrokenError
from natgauge.known_doubts import known
from natgauge.measurements.making import make
from natgauge.measurer import Ability
from natgauge.procedures import get
from natgauge.procedures.kit.result.results import MeasurementResult
from natgauge.records.measurement import Result
from natgauge.records.parameters import Parameters
from natgauge.records.store import plain
from natgauge.reports.answers import answers
from natgauge.reports.difference import diff, text
from natgauge.reports.doubtful import Stated, in_summary, stated
from natgauge.reports.html.figures import evidence_figures, looks_of, question_figures
from natgauge.reports.text import verdict

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


def test_a_limit_of_the_tester_is_no_bound_of_a_value_of_which_neither_side_is_better() -> None:
    """A ratio whose denominator the tester limited is too high, and one whose numerator it limited too low."""
    limited = made([83.0, 84.0], metric="enumeration-orders", unit="%", limited_by="tester")
    good = made([50.0, 50.5], metric="enumeration-orders", unit="%")
    assert "least" not in verdict(limited).splitlines()[0]
    assert "(doubtful)" in verdict(limited).splitlines()[0]
    assert 1.0 in contrast(good, limited).interval
    assert 1.0 in contrast(limited, good).interval


def test_captions_of_a_page_and_of_files_say_what_the_doubts_of_marked_figures_say() -> None:
    """Seen: "* wide interval" next to intervals of 15 %, with and without the mark."""
    results = [rate(VALUES, "a", doubt("drift")), rate(VALUES, "b", doubt("queues", 0.02), later=10.0)]
    (group,) = question_figures(results, [(), ()], looks_of(results, []))
    drift, queues = (known(word).plainly for word in ("drift", "queues"))
    marks = f"† may be another value: {drift}. * a doubt about its interval: {queues}."
    assert group.marks == marks
    (figure,) = group.figures
    assert marks in figure.caption
    assert [cells[1][-1] for cells in figure.data] == ["†", "*"]
    (repetitions,) = evidence_figures(results, looks_of(results, []))
    assert repetitions.marks == marks


def test_a_caption_of_lines_has_the_marks_of_the_ends_that_it_names() -> None:
    over = [rate(VALUES, "a", parameters={"device_cores": cores}) for cores in (1, 2)]
    doubted = over[1].model_copy(update={"doubts": rate(VALUES, "a", doubt("drift")).doubts})
    (group,) = question_figures([over[0], doubted], [(), ()], looks_of(over, []))
    assert "† with 2 cores" in group.figures[0].finding
    assert "† with 1 " not in group.figures[0].finding


@pytest.mark.parametrize(
    ("doubts", "left"),
    [
        # The value has no upper end.
        ([doubt("tester on device cores", 0.027), doubt("rare loss")], ["rare loss"]),
        ([doubt("tester on device cores", 0.027), doubt("link limited")], ["link limited"]),
        # It has one, or this doubt is the one that opens it.
        ([doubt("tester on device cores", 0.027)], ["tester on device cores"]),
        ([doubt("tester on device cores", 0.35, "answer")], ["tester on device cores"]),
        ([doubt("tester on device cores", 0.027), doubt("drift")], ["tester on device cores", "drift"]),
        # The other end is moved.
        ([doubt("queues", 0.02), doubt("rare loss")], ["queues", "rare loss"]),
    ],
)
def test_a_doubt_that_only_moves_an_open_end_is_not_in_a_summary(doubts: list[dict[str, Any]], left: list[str]) -> None:
    result = rate([100.0] * 4, "a", *doubts)
    assert [each.word for each in in_summary(result)] == left
    brief, in_full = (verdict(result, brief=brief) for brief in (True, False))
    assert [word for word in ("tester on device cores",) if word in brief] == [each for each in left if "cores" in each]
    assert "tester on device cores" in in_full or "queues" in left


def test_bars_of_a_metric_without_a_better_side_have_no_best(golden: Golden) -> None:
    results = [made([83.0], metric="enumeration-orders", unit="%"), made([50.0], metric="enumeration-orders", unit="%")]
    captions = [group.caption for group in question_figures(results, [(), ()], looks_of(results, []))]
    golden(captions)


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
    fast: list[dict[str, Any]], slow: list[dict[str, Any]], *, sure: bool
) -> None:
    """A gateway of 200,000/s behind a deep ring was surely 1.39 times as fast as one of 240,000/s."""
    pair = [rate([1.39 * value for value in VALUES], "a", *fast), rate(VALUES, "b", *slow, later=10.0)]
    assert answers(pair)[0].certainty == ("sure" if sure else "cannot tell")
    assert contrast(pair[1], pair[0]).differs is sure
    assert ("no difference seen" in text(diff([pair[1]], [pair[0]], about=["device"]))) is not sure


def test_queues_before_a_simulated_gateway_are_in_its_interval_and_its_first_line(golden: Golden) -> None:
    result = measured("connection-rate", Gateway(establishes=200_000, queue=4096), repeat=6)
    assert result.median > 300_000
    assert result.median_interval is not None
    assert result.median_interval.upper is not None
    assert result.median_interval.lower < 200_000 < result.median_interval.upper
    first, *others = verdict(result, brief=True).splitlines()
    golden(first)
    golden(others)


def searched(values: list[float], uppers: list[float | None], *doubts: dict[str, Any], limited_by: str) -> Result:
    result = made(values, metric="subscribers", unit="subscribers", limited_by=limited_by, doubts=list(doubts))
    ends = zip(result.repetitions, uppers, strict=True)
    return result.model_copy(update={"repetitions": tuple(replace(one, upper=upper) for one, upper in ends)})


#: Doubts that two bounds say, that a known share bounds, and that leave the lower end.
UNSURE = [doubt("undecided"), doubt("queues", 0.25, "answer"), doubt("taking turns")]


@pytest.mark.parametrize(
    ("result", "lower", "upper"),
    [
        (searched([508, 686, 708], [510, 690, 710], doubt("rare loss"), limited_by="device"), 508, math.inf),
        (searched([508, 686, 708], [None] * 3, limited_by="tester"), 508, math.inf),
        (searched([508, 686, 708], [510, 690, 710], doubt("queues", 0.25, "answer"), limited_by="device"), 0, 710),
        (searched([508, 686, 708], [510, 690, 710], limited_by="time"), 508, 710),
        (searched([508, 686, 708], [510, 690, None], limited_by="time"), 508, math.inf),
        (searched([508, 686, 708], [510, 690, 710], doubt("undecided"), limited_by="device"), 508, 710),
        (searched([508, 686, 708], [510, 690, 710], *UNSURE, limited_by="device"), 508 / 1.25, math.inf),
        (searched([508, 686, 708], [510, 690, 710], *UNSURE[:2], limited_by="device"), 0, 710),
        (searched([508, 686, 708], [510, 690, 710], *UNSURE[1:], limited_by="device"), 508 / 1.25, math.inf),
        (searched([508, 686, 708], [510, 690, 710], UNSURE[0], UNSURE[2], limited_by="device"), 508, math.inf),
    ],
)
def test_no_repetition_is_outside_of_the_bounds_of_the_first_line(result: Result, lower: float, upper: float) -> None:
    """Seen: "at least 686 subscribers: 508 to 708 in 3 repetitions"; the median was called a bound."""
    said = stated(result)
    assert (said.lower, said.upper) == pytest.approx((lower, upper))
    assert not said.doubtful


def test_the_same_doubts_say_the_same_whatever_ended_one_of_the_repetitions() -> None:
    """Seen: "at least 114 k" where the host ended one of them, and "132.7 k (doubtful)" where the device ended all."""
    of_device = searched([508, 686], [510, 690], *UNSURE, limited_by="device")
    first, second = of_device.repetitions
    of_both = of_device.model_copy(update={"repetitions": (first, replace(second, limited_by="host"))})
    assert stated(of_device) == stated(of_both)


def test_a_repetition_without_an_upper_end_has_no_bounds_that_could_say_a_doubt() -> None:
    result = searched([508, 686, 708], [510, None, 710], *UNSURE, limited_by="device")
    assert stated(result) == Stated(686, 686, doubtful=True)


def test_nothing_is_certain_of_a_rate_that_may_be_lower_of_which_a_repetition_may_be_higher() -> None:
    """A repetition without an upper end leaves no "at most"."""
    hidden = doubt("rare loss", grade="interval")
    result = searched([508, 686, 708], [510, 690, 710], doubt("queues", 0.25, "answer"), hidden, limited_by="device")
    assert stated(result) == Stated(686, 686, doubtful=True)


def test_a_lone_frame_that_made_the_upper_bound_is_tried_again_where_bounds_are_not_confirmed() -> None:
    lost = Gateway(establishes=300_000, rare_loss=0.15, seed=4)
    result = measured("connection-rate", lost, repeat=4, confirm=False, error="5%")
    grave = {doubt.word for doubt in result.doubts if doubt.grade == "answer"}
    assert result.median > 0.94 * 300_000 or grave


def test_a_doubt_of_several_repetitions_widens_once() -> None:
    """Five repetitions with a bucket of 40 % each had a lower bound of a third of the value."""
    one = contrast(rate(VALUES, "a", doubt("bucket", 0.4, "answer")), rate(VALUES, "b", later=10.0))
    several = [doubt("bucket", share, "answer") for share in (0.4, 0.38, 0.4, 0.39)]
    assert contrast(rate(VALUES, "a", *several), rate(VALUES, "b", later=10.0)) == one


@pytest.mark.parametrize("word", ["rare loss", "late at every rate", "link limited"])
def test_a_rate_that_something_hides_has_no_upper_end_in_a_ratio(word: str) -> None:
    """A gateway of 119,069/s with rare loss had "2.03 times (1.88 to 23.1)" against it by one of 142,882/s."""
    pair = (rate([value / 2 for value in VALUES], "a", doubt(word)), rate(VALUES, "b", later=10.0))
    assert contrast(*pair).interval.lower == 0
    assert not contrast(*pair).differs


def test_a_number_of_connections_that_was_kept_and_is_undecided_above_is_a_lower_bound() -> None:
    told = doubt("undecided", grade="answer")
    document = made([1000.0, 1100.0], metric="table-capacity", unit="connections", doubts=[told]).document()
    for one in document["repetitions"]:
        one["notes"] = [told]
    assert stated(Result.from_document(document)) == Stated(1000.0, math.inf, doubtful=False)


#: Its tester limits the throughput, not the device.
FASTER_THAN_THE_TESTER: dict[str, Any] = {"forwards": 1e9, "ceiling": 4e6, "abilities": frozenset({Ability.VARIATION})}


def measure(metric: str, gateway: Gateway, **others: Any) -> MeasurementResult:
    procedure = get(metric)
    given = {"repeat": 1, "connection_rate": 1e5, "connections": 1000, "placement": gateway.placement, **others}
    return procedure.measure(gateway, procedure.settings(**given))


def doubted(result: MeasurementResult) -> list[str]:
    return [doubt.text for doubt in make(result, Parameters()).doubts if doubt.word == "throughput doubted"]


@pytest.mark.parametrize("probability", [5e-7, 2e-6])
def test_a_latency_at_a_throughput_far_too_low_says_so(probability: float) -> None:
    """Seen: "100 % is 90,625 frames/s" of a device of 1,000,000, without a doubt."""
    far_too_low = 0
    for seed in range(10):
        try:
            result = measure("latency", LosesAFew(probability=probability, seed=seed), loads="100%")
        except BrokenError as error:
            # A throughput of 0 leaves no latency.
            assert "loss at every rate" in str(error)  # noqa: PT017 - only some seeds end so
            continue
        (throughput,) = result.first
        if throughput.summary.median < 500_000:
            far_too_low += 1
            assert any("rare loss" in text for text in doubted(result))
    assert far_too_low > 3


@pytest.mark.parametrize(
    ("metric", "placement"),
    [("latency", "isolated"), ("pdv", "isolated"), ("ipdv", "isolated"), ("frame-loss", "shared")],
)
def test_every_metric_of_shares_names_the_doubts_of_its_throughput(metric: str, placement: Any) -> None:
    (text,) = doubted(measure(metric, Gateway(placement=placement, **FASTER_THAN_THE_TESTER)))
    assert "tester limited" in text
    assert "single repetition" not in text


def test_delays_of_first_packets_name_the_doubts_of_their_connection_rate() -> None:
    slow_tester = Gateway(**FASTER_THAN_THE_TESTER, establishes=1e9)
    found = make(measure("first-packet-delay", slow_tester, connection_rate=None), Parameters())
    (doubt,) = [doubt for doubt in found.doubts if doubt.word == "connection rate doubted"]
    assert "the connection rate was measured first" in doubt.text
    assert "tester limited" in doubt.text
    assert not [doubt for doubt in found.doubts if doubt.word == "throughput doubted"]
    for other in (Gateway(establishes=100), Gateway(**FASTER_THAN_THE_TESTER, establishes=1e9)):
        given = None if other.establishes < 1e9 else 1e5
        found = make(measure("first-packet-delay", other, connection_rate=given), Parameters())
        assert not [doubt for doubt in found.doubts if doubt.word == "connection rate doubted"]


def test_bursts_whose_corrected_buffer_time_rests_on_a_doubted_throughput_say_so() -> None:
    gateway = LosesAFew(probability=2e-6, queue=512, ring=512, seed=3)
    (text,) = doubted(measure("back-to-back", gateway))
    assert "rare loss" in text


def test_a_throughput_without_doubts_and_one_that_was_given_leave_none() -> None:
    assert doubted(measure("latency", Gateway(forwards=3e5))) == []
    assert doubted(measure("latency", Gateway(**FASTER_THAN_THE_TESTER), throughput_rate=1e6)) == []


def test_repetitions_that_are_joined_keep_the_doubts_of_each_throughput() -> None:
    singles = [measure("pdv", Gateway(forwards=3e5)), measure("pdv", Gateway(**FASTER_THAN_THE_TESTER))]
    settings = get("pdv").settings
    both, one = (settings(connections=1000, placement="isolated", repeat=repeat) for repeat in (2, 1))
    (text,) = doubted(join(singles, both, one))
    assert "tester limited" in text


def test_a_campaign_that_is_gone_on_with_knows_the_doubts_of_the_throughput() -> None:
    measured = measure("pdv", Gateway(**FASTER_THAN_THE_TESTER))
    read = RepetitionLine.model_construct(measured=json.loads(json.dumps(plain(measured))))
    assert doubted(read.result) == doubted(measured)
