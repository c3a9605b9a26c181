# SPDX-License-Identifier: Apache-2.0
"""Two comparisons compared: the ratio of both ratios, what keeps them from being compared, and what it means."""

from __future__ import annotations

import json
import math
import random
import statistics
from pathlib import Path
from typing import Any

import pytest
from tests.unit.conftest import Ran
from tests.unit.golden import Golden
from tests.unit.made_comparisons import CONTROL, compared, compared_by_rates, estimate, gateway
from tests.unit.test_report_comparison import keep, keep_result

from natgauge.errors import UsageError
from natgauge.known_doubts import Grade
from natgauge.notes import Note
from natgauge.records.comparison import ComparisonRecord
from natgauge.reports.difference import Diff, diff, text
from natgauge.statistics.interval import ConfidenceInterval, MedianEstimate
from natgauge.statistics.rounds import student_t
from natgauge.statistics.two_samples import ratio_of


def normal(mean: float, error: float) -> MedianEstimate:
    """An estimate whose logarithm is normal, with its interval of 95 %."""
    half = 1.959964 * error
    interval = ConfidenceInterval(math.exp(mean - half), math.exp(mean + half), 0.95)
    return MedianEstimate(math.exp(mean), interval, 100)


def test_two_normal_estimates_make_the_exact_interval_of_their_difference() -> None:
    found = ratio_of(normal(0.1, 0.03), normal(0.4, 0.04))
    assert found.value == pytest.approx(math.exp(0.3))
    # The standard errors 0.03 and 0.04 make one of 0.05.
    assert found.lower == pytest.approx(math.exp(0.3 - 1.959964 * 0.05))
    assert found.upper == pytest.approx(math.exp(0.3 + 1.959964 * 0.05))
    assert (found.interval.coverage, found.number) == (0.95, 100)


def test_each_end_comes_of_the_ends_that_pull_it_there() -> None:
    first = MedianEstimate(1.0, ConfidenceInterval(0.5, 1.0, 0.95), 10)
    second = MedianEstimate(1.0, ConfidenceInterval(1.0, 4.0, 0.9), 20)
    found = ratio_of(first, second)
    # Only a lower first and a higher second are possible, and both make the ratio larger.
    assert found.lower == pytest.approx(1.0)
    assert found.upper == pytest.approx(math.exp(math.hypot(math.log(4), math.log(2))))
    assert found.interval.coverage == 0.9


def sampled(source: random.Random, mean: float, spread: float, number: int) -> MedianEstimate:
    """An estimate from a sample of logarithms, with Student's interval."""
    logs = [source.gauss(mean, spread) for _ in range(number)]
    middle = statistics.fmean(logs)
    half = student_t(0.05, number - 1) * statistics.stdev(logs) / math.sqrt(number)
    interval = ConfidenceInterval(math.exp(middle - half), math.exp(middle + half), 0.95)
    return MedianEstimate(math.exp(middle), interval, number)


@pytest.mark.parametrize(
    ("spreads", "numbers"), [((0.01, 0.01), (5, 5)), ((0.01, 0.1), (8, 5)), ((0.2, 0.01), (3, 12))]
)
def test_the_interval_contains_the_true_ratio_as_often_as_it_says(
    spreads: tuple[float, float], numbers: tuple[int, int]
) -> None:
    source = random.Random(11)  # noqa: S311 - no secret
    covered = 0
    for _ in range(2000):
        first = sampled(source, 0.2, spreads[0], numbers[0])
        second = sampled(source, 0.5, spreads[1], numbers[1])
        covered += math.exp(0.3) in ratio_of(first, second).interval
    # 95 %, less three standard errors of 2,000 draws.
    assert covered / 2000 >= 0.935


def changed(first: ComparisonRecord, second: ComparisonRecord, **how: Any) -> Diff:
    return diff([first], [second], **how)


BEFORE = compared()
SLOWER = compared([estimate("other", 1.21, 1.2, 1.22)])
FASTER = compared([estimate("other", 1.0, 0.99, 1.01)])


def with_device(**parameters: Any) -> ComparisonRecord:
    """The same comparison, whose compared gateway has these parameters."""
    first, _, control = BEFORE.gateways
    return compared(gateways=(first, gateway("other", "compared", parameters), control))


def with_baseline(**parameters: Any) -> ComparisonRecord:
    _, other, control = BEFORE.gateways
    return compared(gateways=(gateway(BEFORE.baseline.label, "baseline", parameters), other, control))


TRIPLE = [estimate("other", 3.0, 2.9, 3.1)]
OTHER_VERSION, OTHER_BASELINE = with_device(version=["x 2"]), with_baseline(version=["x 2"])
OTHER_KERNEL = compared(parameters={"kernel": "7.0"})
#: What follows a comparison, how both are compared, and what comes of it: outcome, reason and exit status.
CHANGES: dict[str, tuple[ComparisonRecord, dict[str, Any], tuple[str, str, int]]] = {
    "nothing": (BEFORE, {"margin": 0.0}, ("no difference seen", "", 0)),
    "more than the margin": (SLOWER, {"margin": 0.05}, ("worse", "", 1)),
    "less by more than the margin": (FASTER, {"margin": 0.05}, ("better", "", 0)),
    "no more than the margin": (SLOWER, {"margin": 0.2}, ("no difference seen", "", 0)),
    "no margin: a matter of two sittings": (SLOWER, {}, ("cannot tell", "one sitting each", 5)),
    "a margin of 0": (SLOWER, {"margin": 0.0}, ("cannot tell", "one sitting each", 5)),
    "a control that differs from 1 is a margin": (
        compared([estimate("other", 1.21, 1.2, 1.22)], [estimate(CONTROL, 1.1, 1.08, 1.12)]),
        {"margin": 0.001},
        ("cannot tell", "control", 5),
    ),
    "a control without an interval": (
        compared(TRIPLE, [estimate(CONTROL, None, None, None)]),
        {"margin": 0.03},
        ("cannot tell", "control", 5),
    ),
    "no control": (compared(TRIPLE, []), {"margin": 0.03}, ("cannot tell", "control", 5)),
    "a control of which one end is not known": (
        compared(TRIPLE, [estimate(CONTROL, None, 1.2, None)]),
        {"margin": 0.05},
        ("cannot tell", "control", 5),
    ),
    "a ratio that is not known": (compared([estimate("other", None, 0.97, None)]), {}, ("cannot tell", "limits", 5)),
    "another version": (OTHER_VERSION, {}, ("not compared", "set up differently", 5)),
    "another version that is asked for": (OTHER_VERSION, {"about": ["version"]}, ("no difference seen", "", 0)),
    "another device that is asked for": (OTHER_VERSION, {"about": ["device"]}, ("no difference seen", "", 0)),
    # That of the baseline is never compared.
    "another version of the baseline": (
        OTHER_BASELINE,
        {"about": ["version"]},
        ("not compared", "set up differently", 5),
    ),
    "another baseline": (OTHER_BASELINE, {"about": ["device"]}, ("not compared", "set up differently", 5)),
    "another kernel": (OTHER_KERNEL, {}, ("not compared", "set up differently", 5)),
    "another kernel that is asked for": (OTHER_KERNEL, {"about": ["kernel"]}, ("no difference seen", "", 0)),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_comes_of(what: str, golden: Golden) -> None:
    after, how, outcome = CHANGES[what]
    found = changed(BEFORE, after, **how)
    (line,) = found.lines
    assert (line.outcome, line.conclusion.reason, found.exit_status) == outcome
    ratio = None if line.contrast is None else round(line.contrast.value, 9)
    golden([line.conclusion.why, f"control {line.control}, ratio {ratio}", *map(str, line.about)])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        # The interval is that of the comparisons, whatever their level.
        (compared([estimate(level=0.99)]), compared([estimate(level=0.99)])),
        (BEFORE, compared([estimate("other", None, 0.97, None)])),
        (compared([estimate("other", None, 0.97, None)]), BEFORE),
    ],
)
def test_the_answer_has_the_level_of_the_comparisons_and_no_figure_for_a_ratio_that_is_not_known(
    first: ComparisonRecord, second: ComparisonRecord, golden: Golden
) -> None:
    golden(text(changed(first, second)).splitlines()[0])


@pytest.mark.parametrize(
    "second", [compared_by_rates(), compared(baseline="linux-ipv4"), compared([estimate("third")])]
)
def test_what_makes_no_sense_is_refused_in_one_line(second: ComparisonRecord, golden: Golden) -> None:
    with pytest.raises(UsageError) as raised:
        changed(BEFORE, second)
    golden(str(raised.value))
    assert "\n" not in str(raised.value)


def test_estimates_that_one_comparison_lacks_are_named(golden: Golden) -> None:
    more = compared([estimate(), estimate("third")])
    found = changed(more, BEFORE)
    golden(text(found))
    assert found.exit_status == 5
    golden(text(changed(BEFORE, more)))


def test_a_name_that_is_no_parameter_is_refused(golden: Golden) -> None:
    with golden.raises(UsageError):
        changed(BEFORE, BEFORE, about=["weather"])


# The command


def test_the_command_compares_two_stored_comparisons(tmp_path: Path, ran: Ran) -> None:
    one, other = (str(keep(tmp_path / name, record)) for name, record in (("a", BEFORE), ("b", SLOWER)))
    lines = ran(["diff", one, other, "--margin", "5%"], 1).out.splitlines()
    assert lines[0].startswith("Worse: ")
    (row,) = (line.split() for line in lines if line.startswith("other "))
    assert row == ["other", "from", "inside", "1.10", "1.21", "1.10", "1.08", "to", "1.12", "(95", "%)", "worse"]
    document = json.loads(ran(["diff", one, other, "--json"], 5).out)
    (line,) = document["ratios"]
    assert (document["schema"], document["exit_status"], document["comparisons"]) == ("natgauge-diff-1", 5, [])
    assert (line["gateway"], line["quantity"], line["outcome"]) == ("other", "up", "cannot tell")
    assert line["lower"] < line["value"] < line["upper"]


def test_a_comparison_is_not_compared_with_a_measurement(tmp_path: Path, ran: Ran, golden: Golden) -> None:
    one, other = keep(tmp_path / "a", BEFORE), keep_result(tmp_path / "b")
    for pair in ([one, other], [other, one]):
        error = ran(["diff", *map(str, pair)], 2).err
        assert error.count("\n") == 1
        golden(error)


def test_several_comparisons_of_one_run_are_refused(tmp_path: Path, ran: Ran, golden: Golden) -> None:
    for at, place in enumerate(("a/1", "a/2", "b")):
        keep(tmp_path / place, BEFORE.model_copy(update={"began": BEFORE.began + at}))
    golden(ran(["diff", str(tmp_path / "a"), str(tmp_path / "b")], 2).err)


def test_runs_with_both_kinds_are_compared_in_both(tmp_path: Path, ran: Ran) -> None:
    for name, record in (("a", BEFORE), ("b", SLOWER)):
        keep(tmp_path / name / "1", record)
        keep_result(tmp_path / name / "2")
    document = json.loads(ran(["diff", str(tmp_path / "a"), str(tmp_path / "b"), "--margin", "5%", "--json"], 1).out)
    assert (len(document["comparisons"]), len(document["ratios"]), document["exit_status"]) == (1, 1, 1)


def test_a_comparison_next_to_results_that_only_one_run_has_is_named(tmp_path: Path, ran: Ran, golden: Golden) -> None:
    keep(tmp_path / "a" / "1", BEFORE)
    folders = [str(keep_result(tmp_path / name / "2").parent) for name in "ab"]
    golden(ran(["diff", *folders, "--margin", "5%"], 5).out.splitlines()[-1])
    document = json.loads(ran(["diff", *reversed(folders), "--margin", "5%", "--json"], 5).out)
    (alone,) = document["only_second"]
    assert (alone["gateway"], alone["quantity"], document["only_first"]) == ("other", "up", [])


def test_doubts_of_a_comparison_leave_no_change_sure() -> None:
    cheap, dear = compared([estimate("other", 1.1, 1.09, 1.11)]), compared([estimate("other", 1.5, 1.49, 1.51)])
    grades: tuple[tuple[Grade, set[str]], ...] = (("answer", {"cannot tell"}), ("interval", {"worse", "better"}))
    for grade, outcomes in grades:
        doubted = dear.model_copy(update={"notes": (Note("log dropped", "x", grade=grade),)})
        for pair in ((cheap, doubted), (doubted, cheap)):
            (line,) = diff([pair[0]], [pair[1]], margin=0.01).ratios.lines
            assert line.outcome in outcomes
            assert (line.conclusion.reason == "doubts") is (grade == "answer")
