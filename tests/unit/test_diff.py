# SPDX-License-Identifier: Apache-2.0
"""Two runs held against each other: intervals by published critical values, and words that no noise can make."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.unit.golden import Golden
from tests.unit.made_results import in_turns, made, with_interval

from natgauge.analysis.contrast import contrast
from natgauge.cli import run
from natgauge.errors import UsageError
from natgauge.metrics import metrics
from natgauge.records.measurement import Result
from natgauge.records.store import Store
from natgauge.reports.difference import diff, document, interval_of, text
from natgauge.statistics.two_samples import shift_coverage

FIRST = (1000.0, 1010.0, 990.0, 1005.0, 995.0)


def result(values: Sequence[float], *, error: float = 0.0, limited_by: str = "device", **changed: Any) -> Result:
    """A search's result: each value with an upper bound `error` above it, unless something else limited."""
    middle = sorted(values)[len(values) // 2]
    turns = {**in_turns(len(values)), **changed.pop("parameters", {})}
    plain = made(values, median=middle, parameters=turns, **changed).document()
    for one in plain["repetitions"]:
        one |= {"limited_by": limited_by}
        if limited_by == "device" and error:
            one |= {"upper": one["value"] + error, "error": one["value"] + error - one["value"]}
    errors = [one["error"] for one in plain["repetitions"]]
    plain |= {"limited_by": limited_by, "error": None if None in errors else max(errors)}
    return with_interval(Result.from_document(plain))


def times(factor: float, values: Sequence[float] = FIRST) -> list[float]:
    return [value * factor for value in values]


def outcome(first: Result, second: Result, **asked: Any) -> str:
    (line,) = diff([first], [second], **asked).lines
    return line.outcome


@pytest.mark.parametrize(("number", "critical"), [(4, 0), (5, 2), (6, 5), (8, 13), (10, 23), (20, 127)])
def test_the_ranks_are_those_of_the_published_critical_values_of_mann_and_whitney(number: int, critical: int) -> None:
    assert shift_coverage(number, number, critical + 1) >= 0.95
    assert shift_coverage(number, number, critical + 2) < 0.95


def test_the_interval_holds_the_true_ratio_as_often_as_it_says_whatever_the_distribution() -> None:
    chance = random.Random(9693)  # noqa: S311 - a simulation
    held = 0
    for _ in range(2000):
        first, second = ([factor * chance.paretovariate(3) for _ in range(5)] for factor in (1.0, 1.7))
        found = contrast(result(first), result(second))
        held += 1.7 in found.interval
    # 0.968 is the exact coverage of five and five; 0.95 is four standard deviations below it.
    assert held / 2000 > 0.95
    assert found.interval.coverage == pytest.approx(0.968, abs=0.001)
    assert held / 2000 < 0.985


def test_a_ratio_is_of_the_medians_and_its_interval_of_all_pairs() -> None:
    found = contrast(result([100.0, 110.0, 120.0, 130.0]), result([200.0, 220.0, 240.0, 260.0]))
    assert (found.kind, found.value) == ("ratio", 2.0)
    # Four and four: only the smallest and the largest pair reach 95 %.
    assert (found.interval.lower, found.interval.upper) == (200 / 130, 260 / 100)
    assert found.interval.coverage == pytest.approx(1 - 2 / 70)


@pytest.mark.parametrize(
    ("factor", "said"), [(0.9, "worse"), (1.1, "better"), (1.001, "no difference seen"), (1.0, "no difference seen")]
)
def test_what_lies_outside_of_the_noise_is_told_and_what_it_covers_is_not(factor: float, said: str) -> None:
    assert outcome(result(FIRST), result(times(factor))) == said


def answer(first: Sequence[Result], second: Sequence[Result], **asked: Any) -> str:
    return text(diff(first, second, **asked)).splitlines()[0]


def test_the_first_line_is_what_changed_most_and_surely_with_its_interval_and_unit(golden: Golden) -> None:
    """It was the head of a table."""
    same, slower, slowest, few = result(FIRST), result(times(0.9)), result(times(0.5)), result(times(0.1)[:3])
    latency: dict[str, Any] = {"metric": "latency", "unit": "us"}
    golden(answer([same, result(FIRST, **latency)], [slower, result(times(3.0), **latency)]))
    # A larger change that is not sure comes behind.
    rates: dict[str, Any] = {"metric": "connection-rate", "unit": "connections/s"}
    golden(answer([same, result(FIRST[:3], **rates)], [slowest, result(few.values, **rates)]))
    golden(answer([same], [same]))
    golden(answer([same], [few]))
    golden(answer([result(FIRST, limited_by="tester")], [slower]))
    golden(answer([same], [result(times(0.8), parameters={"kernel": "6.1"})]))
    loss: dict[str, Any] = {"metric": "frame-loss", "unit": "%"}
    golden(answer([result([0.0] * 5, **loss)], [result([2.0, 3.0, 2.5, 2.2, 2.7], **loss)]))


def test_the_answer_begins_with_what_decides_the_exit_status() -> None:
    """It began with "Better", and the command ended with 1."""
    latency: dict[str, Any] = {"metric": "latency", "unit": "us"}
    found = diff([result(FIRST), result(FIRST, **latency)], [result(times(3.0)), result(times(1.5), **latency)])
    assert {line.outcome for line in found.lines} == {"better", "worse"}
    assert found.exit_status == 1
    assert text(found).startswith("Worse")


def test_noise_that_may_hide_much_is_named_with_its_size(golden: Golden) -> None:
    wide = [800.0, 900.0, 1000.0, 1100.0]
    (line,) = diff([result(wide)], [result([950.0] * 4)]).lines
    assert line.outcome == "no difference seen"
    golden(line.conclusion.why)
    (line,) = diff([result([949.0, 950.0, 951.0, 952.0])], [result([948.0, 950.0, 951.0, 953.0])]).lines
    assert (line.outcome, line.conclusion.why) == ("no difference seen", "")


def test_of_times_and_losses_less_is_better() -> None:
    first, second = (result(values, metric="latency", unit="us") for values in (FIRST, times(0.8)))
    assert outcome(first, second) == "better"
    assert outcome(second, first) == "worse"


def test_a_metric_that_is_neither_good_nor_bad_has_changed() -> None:
    first, second = (result(values, metric="expiry", unit="connections/s") for values in (FIRST, times(0.8)))
    assert outcome(first, second) == "changed"
    assert diff([first], [second]).exit_status == 1


def test_repetitions_that_agree_to_the_last_digit_are_no_surer_than_their_search() -> None:
    """Every search ended in the same step; the next one is 5 % higher."""
    first, second = (result([value] * 5, error=50.0) for value in (1000.0, 970.0))
    assert outcome(first, second) == "no difference seen"
    first, second = (result([value] * 5, error=5.0) for value in (1000.0, 970.0))
    assert outcome(first, second) == "worse"


@pytest.mark.parametrize("limited_by", ["tester", "host"])
def test_a_figure_that_is_a_lower_bound_only_proves_no_rise_above_it(limited_by: str) -> None:
    bound = result(times(1.0), limited_by=limited_by)
    assert outcome(bound, result(times(1.5))) == "cannot tell"
    assert outcome(bound, result(times(0.5))) == "worse"
    assert outcome(result(times(0.5)), bound) == "better"
    assert outcome(result(times(1.5)), bound) == "cannot tell"
    assert "the bottleneck was " in diff([bound], [result(times(1.5))]).lines[0].conclusion.why


@pytest.mark.parametrize(
    ("word", "at", "said", "reason"),
    [
        ("real server", 1, "cannot tell", "limits"),
        ("uneven cores", 1, "cannot tell", "limits"),
        ("one address pair", 1, "cannot tell", "limits"),
        ("taking turns", 1, "cannot tell", "limits"),
        # Of a lower bound the other, lower figure is surely lower.
        ("real server", 0, "worse", ""),
        ("flow control", 0, "cannot tell", "limits"),
        ("flow control", 1, "worse", ""),
        ("unreliable", 0, "cannot tell", "doubts"),
        ("drift", 1, "cannot tell", "doubts"),
        ("collapsed", 1, "cannot tell", "doubts"),
    ],
)
def test_a_doubt_that_could_change_the_answer_leaves_the_end_that_it_says_and_no_other(
    word: str, at: int, said: str, reason: str
) -> None:
    doubts = [{"word": word, "text": "x", "grade": "answer"}]
    both = [result(times(factor), doubts=doubts if at == side else []) for side, factor in enumerate((1.0, 0.9))]
    (line,) = diff(both[:1], both[1:]).lines
    assert (line.outcome, line.conclusion.reason) == (said, reason)
    if reason:
        assert word in line.conclusion.why
        assert diff(both[:1], both[1:]).exit_status == 5


def test_a_doubt_that_says_which_limit_a_time_had_leaves_its_upper_end() -> None:
    doubts = [{"word": "host limited", "text": "x", "grade": "answer"}]
    common: dict[str, Any] = {"metric": "reset", "unit": "ms"}
    bound = result(FIRST, limited_by="host", doubts=doubts, **common)
    assert outcome(bound, result(times(2.0), **common)) == "worse"


def test_a_margin_of_a_difference_is_a_share_of_the_larger_median() -> None:
    """Asking for tolerance made a run fail: a difference of losses passed for worse beyond any margin."""
    common: dict[str, Any] = {"metric": "frame-loss", "unit": "%"}
    first, second = made([0.0, 1.0, 1.0, 1.0], **common), made([1.01, 1.01, 1.01, 1.02], **common)
    assert [outcome(first, second, margin=margin) for margin in (0.0, 0.1, 0.5)] == [
        "cannot tell", "no difference seen", "no difference seen"
    ]  # fmt: skip
    assert outcome(made([0.0] * 4, **common), made([2.0, 2.1, 2.2, 2.1], **common), margin=0.5) == "worse"


@pytest.mark.parametrize("numbers", [(1, 1), (3, 3), (2, 5)])
def test_too_few_repetitions_are_told_honestly(numbers: tuple[int, int], golden: Golden) -> None:
    first, second = result(FIRST[: numbers[0]]), result(times(0.1)[: numbers[1]])
    found = diff([first], [second])
    (line,) = found.lines
    assert (line.outcome, found.exit_status) == ("cannot tell", 5)
    golden(line.conclusion.why)


def test_zeros_have_a_difference_and_no_ratio() -> None:
    common: dict[str, Any] = {"metric": "frame-loss", "unit": "%"}
    none, some = result([0.0] * 5, **common), result([2.0, 3.0, 2.5, 2.2, 2.7], **common)
    assert outcome(none, none) == "no difference seen"
    assert outcome(none, some) == "worse"
    assert contrast(none, some).kind == "difference"
    assert contrast(none, some).value == 2.5


@pytest.mark.parametrize(
    ("limited_by", "metric", "unit"), [("host", "reset", "ms"), ("tester", "cost", "x forwarding")]
)
def test_a_time_or_cost_that_something_else_made_larger_is_an_upper_bound(
    limited_by: str, metric: str, unit: str
) -> None:
    common: dict[str, Any] = {"metric": metric, "unit": unit}
    bound = result(FIRST, limited_by=limited_by, **common)
    assert outcome(bound, result(times(2.0), **common)) == "worse"
    assert outcome(bound, result(times(0.5), **common)) == "cannot tell"
    assert outcome(result(times(2.0), **common), bound) == "better"
    assert interval_of(contrast(bound, result(FIRST, **common))).endswith(" to more")


def test_shares_of_lost_frames_with_bounds_differ_only_beyond_them() -> None:
    """Excused frames leave a range: 1.8 % to 2.1 % of the frames were lost, and 2 % are no more than that."""
    common: dict[str, Any] = {"metric": "frame-loss", "unit": "%"}
    ranged, exact = result([1.8] * 5, error=0.3, **common), result([2.0] * 5, **common)
    assert outcome(ranged, exact) == "no difference seen"
    assert outcome(ranged, result([2.2] * 5, **common)) == "worse"
    assert outcome(result([1.8] * 5, **common), exact) == "worse"


def test_a_lower_bound_against_a_zero_has_no_end_either() -> None:
    found = contrast(result(FIRST, limited_by="tester"), result([0.0, *times(1.2)[1:]]))
    assert (found.kind, found.interval.lower) == ("difference", -math.inf)
    assert outcome(result(FIRST, limited_by="tester"), result([0.0, *times(1.2)[1:]])) == "cannot tell"
    assert interval_of(found).startswith("less to ")


def test_a_margin_covers_small_changes() -> None:
    first, second = result(times(1.0)), result(times(0.9))
    assert outcome(first, second, margin=0.2) == "no difference seen"
    assert outcome(first, second, margin=0.05) == "worse"
    for margin in (-0.1, 1.0, float("nan")):
        with pytest.raises(UsageError, match="margin"):
            diff([first], [second], margin=margin)


def test_set_ups_that_differ_are_refused_by_name_and_allowed_when_asked_for(golden: Golden) -> None:
    first = result(FIRST, parameters={"kernel": "6.1"})
    second = result(times(0.8), parameters={"kernel": "6.18"})
    found = diff([first], [second])
    (line,) = found.lines
    assert (line.outcome, line.contrast, found.exit_status) == ("not compared", None, 5)
    assert "kernel 6.1 against 6.18" in text(found)
    for about in ("kernel", "place"):
        allowed = diff([first], [second], about=[about])
        assert allowed.exit_status == 1
        golden(text(allowed))
    with pytest.raises(UsageError, match="'kernle'"):
        diff([first], [second], about=["kernle"])


def test_results_of_two_runs_are_paired_by_how_they_were_set_up() -> None:
    first = [result(times(number), parameters={"connections": number}) for number in (1, 10, 100)]
    second = [result(times(number), parameters={"connections": number}) for number in (100, 10, 7)]
    found = diff(first, second)
    assert [line.outcome for line in found.lines].count("no difference seen") == 2
    pairs = [(line.first, line.second) for line in found.lines]
    numbers = [tuple(one.number("connections") for one in both) for both in pairs]
    assert numbers == [(1, 7), (10, 10), (100, 100)]
    about = diff(first, second, about=["connections"])
    assert [line.second.number("connections") for line in about.lines] == [7, 10, 100]


def test_figures_of_an_emulated_machine_are_held_against_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stamp = [{"word": "functional", "text": "functional, not performance: the device ran on an emulated machine"}]
    emulated = [
        result(times(factor), parameters={"emulated": True}, doubts=stamp, limited_by="device") for factor in (1.0, 0.8)
    ]
    for first, second in ((emulated[0], emulated[1]), (result(FIRST), emulated[1])):
        found = diff([first], [second], about=["place"], margin=0.05)
        (line,) = found.lines
        assert (line.outcome, line.conclusion.reason, line.contrast, found.exit_status) == (
            "not compared",
            "functional",
            None,
            5,
        )
    folders = [stored(tmp_path / name, one) for name, one in zip("ab", emulated, strict=True)]
    assert run(["diff", *folders]) == 5
    assert "functional, not performance" in capsys.readouterr().out
    assert run(["diff", "--json", *folders]) == 5
    (told,) = json.loads(capsys.readouterr().out)["comparisons"]
    assert (told["reason"], told["value"], told["first"]["doubts"]) == ("functional", None, ["functional"])
    for form in ("text", "markdown", "latex", "csv"):
        assert run(["report", folders[0], "--format", form]) == 0
        assert "functional" in capsys.readouterr().out
    assert run(["report", folders[0], "--html", str(tmp_path / "page.html")]) == 0
    assert "functional, not performance" in (tmp_path / "page.html").read_text()


def test_what_was_varied_on_purpose_is_compared_and_all_that_grew_with_it_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    fewer = {"connections": 3000, "source_port_count": 300, "table_size": 6000, "hash_size": 3000}
    more = {"connections": 30000, "source_port_count": 3000, "table_size": 60000, "hash_size": 30000}
    first, second = result(FIRST, parameters=fewer), result(times(0.8), parameters=more)
    assert diff([first], [second]).exit_status == 5
    folders = [stored(tmp_path / "a", first), stored(tmp_path / "b", second)]
    assert run(["diff", *folders, "--across", "connections"]) == 1
    said = capsys.readouterr().out
    assert "worse" in said
    golden(said)
    # What does not grow with it still keeps them apart.
    other = result(times(0.8), parameters={**more, "kernel": "6.1"})
    (line,) = diff([first], [other], across=["connections"]).lines
    assert (line.outcome, line.conclusion.why) == ("not compared", "kernel 6.18 against 6.1")
    assert outcome(first, other, across=["connections", "kernel"]) == "worse"


def test_a_metric_of_one_run_only_is_told(golden: Golden) -> None:
    first = [result(FIRST), result(FIRST, metric="connection-rate", unit="connections/s")]
    found = diff(first, first[:1])
    assert found.exit_status == 5
    golden(text(found))
    with golden.raises(UsageError):
        diff(first[:1], first[1:])


def test_a_metric_has_a_best_gateway_where_it_says_which_values_are_better() -> None:
    assert {name for name, metric in metrics().items() if metric.best and metric.better is None} == set()
    assert any(metric.better is None for metric in metrics().values())


def stored(path: Path, *results: Result) -> str:
    for number, one in enumerate(results):
        folder = path / str(number)
        folder.mkdir(parents=True)
        Store(folder).write_summary(one.document())
    return str(path)


@pytest.mark.parametrize(("factor", "status"), [(1.0, 0), (1.2, 0), (0.8, 1)])
def test_the_command_ends_with_what_continuous_integration_wants_to_know(
    factor: float, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = stored(tmp_path / "a", result(FIRST)), stored(tmp_path / "b", result(times(factor)))
    assert run(["diff", first, second]) == status
    assert "throughput" in capsys.readouterr().out
    assert run(["diff", "--json", first, second]) == status
    printed = json.loads(capsys.readouterr().out)
    assert printed["exit_status"] == status
    assert printed["comparisons"][0]["value"] == pytest.approx(factor)


def test_drawn_frames_are_no_connections_for_a_program_either() -> None:
    drawn: dict[str, Any] = {
        "metric": "connection-rate",
        "unit": "connections/s",
        "parameters": {"order": "with-replacement"},
    }
    compared = document(diff([result(FIRST, **drawn)], [result(times(0.8), **drawn)]))
    assert [line["unit"] for line in compared["comparisons"]] == ["frames/s of drawn four tuples"]


@pytest.mark.parametrize("again", ["a", "b/../a", "link", "a/0"])
def test_a_result_is_not_compared_with_itself_however_it_is_named(
    again: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = stored(tmp_path / "a", result(FIRST))
    stored(tmp_path / "b", result(FIRST))
    (tmp_path / "link").symlink_to("a")
    assert run(["diff", first, str(tmp_path / again)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"natgauge: diff: {first}/0")
    assert line.endswith("is on both sides and cannot differ from itself; name another run")


def test_an_end_that_is_not_bounded_is_null_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = stored(tmp_path / "a", result(FIRST)), stored(tmp_path / "b", result(FIRST, limited_by="tester"))
    assert run(["diff", "--json", first, second]) == 5
    (line,) = json.loads(capsys.readouterr().out)["comparisons"]
    assert (line["outcome"], line["upper"]) == ("cannot tell", None)


def undecided(values: Sequence[float], *, own: bool = False, error: float = 0.0, **changed: Any) -> Result:
    """A result with that doubt; `own`: it is a note of each repetition, whose value is a lower bound then."""
    doubt = {"word": "undecided", "text": "x", "grade": "answer"}
    document = result(values, error=error, doubts=[doubt], **changed).document()
    for one in document["repetitions"]:
        one.update({"notes": [doubt]} if own else {})
    return Result.from_document(document)


def test_an_undecided_figure_without_bounds_proves_nothing() -> None:
    common: dict[str, Any] = {"metric": "latency", "unit": "us"}
    for factor in (0.5, 2.0):
        (line,) = diff([undecided(FIRST, **common)], [result(times(factor), **common)]).lines
        assert (line.outcome, line.conclusion.reason) == ("cannot tell", "doubts")
    # Bounds already express the doubt.
    assert outcome(undecided(FIRST, error=5.0), result(times(0.5), error=5.0)) == "worse"


def test_an_undecided_number_of_connections_is_a_lower_bound() -> None:
    common: dict[str, Any] = {"metric": "table-capacity", "unit": "connections"}
    bound = undecided(FIRST, own=True, **common)
    assert outcome(bound, result(times(0.5), **common)) == "worse"
    (line,) = diff([bound], [result(times(1.5), **common)]).lines
    assert (line.outcome, line.conclusion.reason) == ("cannot tell", "limits")
    assert "undecided" in line.conclusion.why
