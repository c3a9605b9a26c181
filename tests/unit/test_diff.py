# SPDX-License-Identifier: Apache-2.0
"""Two runs held against each other: intervals by published critical values, and words that no noise can make."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from dataclasses import replace
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
    plain, held = result(FIRST), 0

    def drawn(factor: float) -> Result:
        values = [factor * chance.paretovariate(3) for _ in range(5)]
        own = tuple(replace(one, value=value) for one, value in zip(plain.repetitions, values, strict=True))
        return plain.model_copy(update={"repetitions": own, "median": sorted(values)[2]})

    for _ in range(2000):
        found = contrast(drawn(1.0), drawn(1.7))
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


LATENCY: dict[str, Any] = {"metric": "latency", "unit": "us"}
LOSS: dict[str, Any] = {"metric": "frame-loss", "unit": "%"}
EXPIRY: dict[str, Any] = {"metric": "expiry", "unit": "connections/s"}
RESET: dict[str, Any] = {"metric": "reset", "unit": "ms"}
COST: dict[str, Any] = {"metric": "cost", "unit": "x forwarding"}
CAPACITY: dict[str, Any] = {"metric": "table-capacity", "unit": "connections"}
NONE, SOME = result([0.0] * 5, **LOSS), result([2.0, 3.0, 2.5, 2.2, 2.7], **LOSS)
FEW_LOSSES, LATER = made([0.0, 1.0, 1.0, 1.0], **LOSS), made([1.01, 1.01, 1.01, 1.02], **LOSS)


def undecided(values: Sequence[float], *, own: bool = False, error: float = 0.0, **changed: Any) -> Result:
    """A result with that doubt; `own`: it is a note of each repetition, whose value is a lower bound then."""
    doubt = {"word": "undecided", "text": "x", "grade": "answer"}
    document = result(values, error=error, doubts=[doubt], **changed).document()
    for one in document["repetitions"]:
        one.update({"notes": [doubt]} if own else {})
    return Result.from_document(document)


def doubted(word: str, values: Sequence[float], **changed: Any) -> Result:
    return result(values, doubts=[{"word": word, "text": "x", "grade": "answer"}], **changed)


WORSE, BETTER, SAME, UNKNOWN = "worse", "better", "no difference seen", "cannot tell"
STATUSES = {WORSE: 1, "changed": 1, BETTER: 0, SAME: 0, UNKNOWN: 5}
#: Two results, the margin, what is said of the second one, and what keeps natgauge from saying more.
OUTCOMES: dict[str, tuple[Result, Result, float, str, str]] = {
    "less": (result(FIRST), result(times(0.9)), 0, WORSE, ""),
    "more": (result(FIRST), result(times(1.1)), 0, BETTER, ""),
    "a little more": (result(FIRST), result(times(1.001)), 0, SAME, ""),
    "as much": (result(FIRST), result(FIRST), 0, SAME, ""),
    "noise may hide much": (result([800.0, 900.0, 1000.0, 1100.0]), result([950.0] * 4), 0, SAME, ""),
    "noise hides little": (
        result([949.0, 950.0, 951.0, 952.0]), result([948.0, 950.0, 951.0, 953.0]), 0, SAME, ""
    ),
    "less time is better": (result(FIRST, **LATENCY), result(times(0.8), **LATENCY), 0, BETTER, ""),
    "more time is worse": (result(times(0.8), **LATENCY), result(FIRST, **LATENCY), 0, WORSE, ""),
    "neither is better": (result(FIRST, **EXPIRY), result(times(0.8), **EXPIRY), 0, "changed", ""),
    # Every search ended in the same step; the next one is 5 % higher.
    "within the step of a search": (result([1000.0] * 5, error=50.0), result([970.0] * 5, error=50.0), 0, SAME, ""),
    "beyond the step of a search": (result([1000.0] * 5, error=5.0), result([970.0] * 5, error=5.0), 0, WORSE, ""),
    **{
        f"{by}: {name}": (first, second, 0, said, "limits" if said == UNKNOWN else "")
        for by in ("tester", "host")
        for bound in [result(FIRST, limited_by=by)]
        for name, first, second, said in (
            ("more than a lower bound", bound, result(times(1.5)), UNKNOWN),
            ("less than a lower bound", bound, result(times(0.5)), WORSE),
            ("a lower bound of more", result(times(0.5)), bound, BETTER),
            ("a lower bound of less", result(times(1.5)), bound, UNKNOWN),
        )
    },
    # A doubt leaves the end that it says, and no other: of a lower bound the other, lower figure is surely lower.
    **{
        f"{word} of the {('first', 'second')[at]}": (
            doubted(word, FIRST) if at == 0 else result(FIRST),
            doubted(word, times(0.9)) if at == 1 else result(times(0.9)),
            0, said, reason,
        )
        for word, at, said, reason in (
            ("real server", 1, UNKNOWN, "limits"), ("uneven cores", 1, UNKNOWN, "limits"),
            ("one address pair", 1, UNKNOWN, "limits"), ("taking turns", 1, UNKNOWN, "limits"),
            ("real server", 0, WORSE, ""), ("flow control", 0, UNKNOWN, "limits"), ("flow control", 1, WORSE, ""),
            ("unreliable", 0, UNKNOWN, "doubts"), ("drift", 1, UNKNOWN, "doubts"), ("collapsed", 1, UNKNOWN, "doubts"),
        )
    },
    "a time that the host lengthened": (
        doubted("host limited", FIRST, limited_by="host", **RESET), result(times(2.0), **RESET), 0, WORSE, ""
    ),
    # Asking for tolerance made a run fail: a difference of losses passed for worse beyond any margin.
    "losses without a margin": (FEW_LOSSES, LATER, 0.0, UNKNOWN, "one lab each"),
    "losses with a margin": (FEW_LOSSES, LATER, 0.1, SAME, ""),
    "losses with a wide margin": (FEW_LOSSES, LATER, 0.5, SAME, ""),
    "losses beyond any margin": (
        made([0.0] * 4, **LOSS), made([2.0, 2.1, 2.2, 2.1], **LOSS), 0.5, WORSE, ""
    ),
    **{
        f"too few: {first} and {second}": (
            result(FIRST[:first]), result(times(0.1)[:second]), 0, UNKNOWN, "few repetitions"
        )
        for first, second in ((1, 1), (3, 3), (2, 5))
    },
    "nothing and nothing": (NONE, NONE, 0, SAME, ""),
    "nothing and something": (NONE, SOME, 0, WORSE, ""),
    **{
        f"{of['metric']}: {name}": (first, second, 0, said, "limits" if said == UNKNOWN else "")
        for of, by in ((RESET, "host"), (COST, "tester"))
        for bound in [result(FIRST, limited_by=by, **of)]
        for name, first, second, said in (
            ("more than an upper bound", bound, result(times(2.0), **of), WORSE),
            ("less than an upper bound", bound, result(times(0.5), **of), UNKNOWN),
            ("an upper bound of less", result(times(2.0), **of), bound, BETTER),
        )
    },
    # Excused frames leave a range: 1.8 % to 2.1 % of the frames were lost, and 2 % are no more than that.
    "within a range of losses": (result([1.8] * 5, error=0.3, **LOSS), result([2.0] * 5, **LOSS), 0, SAME, ""),
    "beyond a range of losses": (result([1.8] * 5, error=0.3, **LOSS), result([2.2] * 5, **LOSS), 0, WORSE, ""),
    "losses without a range": (result([1.8] * 5, **LOSS), result([2.0] * 5, **LOSS), 0, WORSE, ""),
    "a lower bound against a zero": (
        result(FIRST, limited_by="tester"), result([0.0, *times(1.2)[1:]]), 0, UNKNOWN, "limits"
    ),
    "within the margin": (result(FIRST), result(times(0.9)), 0.2, SAME, ""),
    "beyond the margin": (result(FIRST), result(times(0.9)), 0.05, WORSE, ""),
    # An undecided figure without bounds proves nothing; bounds already express the doubt.
    "undecided, less": (undecided(FIRST, **LATENCY), result(times(0.5), **LATENCY), 0, UNKNOWN, "doubts"),
    "undecided, more": (undecided(FIRST, **LATENCY), result(times(2.0), **LATENCY), 0, UNKNOWN, "doubts"),
    "undecided with bounds": (undecided(FIRST, error=5.0), result(times(0.5), error=5.0), 0, WORSE, ""),
    "undecided connections are a lower bound, less": (
        undecided(FIRST, own=True, **CAPACITY), result(times(0.5), **CAPACITY), 0, WORSE, ""
    ),
    "undecided connections are a lower bound, more": (
        undecided(FIRST, own=True, **CAPACITY), result(times(1.5), **CAPACITY), 0, UNKNOWN, "limits"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OUTCOMES)
def test_the_outcome_is_what_no_noise_can_make(name: str, golden: Golden) -> None:
    first, second, margin, said, reason = OUTCOMES[name]
    found = diff([first], [second], margin=margin)
    (line,) = found.lines
    assert (line.outcome, line.conclusion.reason, found.exit_status) == (said, reason, STATUSES[said])
    assert line.contrast is not None
    golden([line.conclusion.why, interval_of(line.contrast)])


@pytest.mark.parametrize("margin", [-0.1, 1.0, float("nan")])
def test_a_margin_that_is_no_share_is_refused(margin: float) -> None:
    with pytest.raises(UsageError, match="margin"):
        diff([result(FIRST)], [result(times(0.9))], margin=margin)


def test_zeros_have_a_difference_and_no_ratio() -> None:
    found = contrast(NONE, SOME)
    assert (found.kind, found.value) == ("difference", 2.5)
    open_ended = contrast(result(FIRST, limited_by="tester"), result([0.0, *times(1.2)[1:]]))
    assert (open_ended.kind, open_ended.interval.lower) == ("difference", -math.inf)


def answer(first: Sequence[Result], second: Sequence[Result], **asked: Any) -> str:
    return text(diff(first, second, **asked)).splitlines()[0]


def test_the_first_line_is_what_changed_most_and_surely_with_its_interval_and_unit(golden: Golden) -> None:
    """It was the head of a table."""
    same, slower, slowest, few = result(FIRST), result(times(0.9)), result(times(0.5)), result(times(0.1)[:3])
    golden(answer([same, result(FIRST, **LATENCY)], [slower, result(times(3.0), **LATENCY)]))
    # A larger change that is not sure comes behind.
    rates: dict[str, Any] = {"metric": "connection-rate", "unit": "connections/s"}
    golden(answer([same, result(FIRST[:3], **rates)], [slowest, result(few.values, **rates)]))
    golden(answer([same], [same]))
    golden(answer([same], [few]))
    golden(answer([result(FIRST, limited_by="tester")], [slower]))
    golden(answer([same], [result(times(0.8), parameters={"kernel": "6.1"})]))
    golden(answer([NONE], [SOME]))


def test_the_answer_begins_with_what_decides_the_exit_status() -> None:
    """It began with "Better", and the command ended with 1."""
    found = diff([result(FIRST), result(FIRST, **LATENCY)], [result(times(3.0)), result(times(1.5), **LATENCY)])
    assert {line.outcome for line in found.lines} == {"better", "worse"}
    assert found.exit_status == 1
    assert text(found).startswith("Worse")


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
