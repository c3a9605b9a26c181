# SPDX-License-Identifier: Apache-2.0
"""Two runs held against each other: intervals by published critical values, and words that no noise can make."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.unit.conftest import Ran
from tests.unit.golden import Golden
from tests.unit.made_results import in_turns, made, with_interval

from natgauge import Result
from natgauge.cli import run

FIRST = (1000.0, 1010.0, 990.0, 1005.0, 995.0)


def result(values: Sequence[float], *, error: float = 0.0, limited_by: str = "device", **changed: Any) -> Result:
    """A search's result: each value with an upper bound `error` above it, unless something else limited."""
    turns = {**in_turns(len(values)), **changed.pop("parameters", {})}
    plain = made(values, parameters=turns, **changed).document()
    for one in plain["repetitions"]:
        one |= {"limited_by": limited_by}
        if limited_by == "device" and error:
            one |= {"upper": one["value"] + error, "error": one["value"] + error - one["value"]}
    errors = [one["error"] for one in plain["repetitions"]]
    plain |= {"limited_by": limited_by, "error": None if None in errors else max(errors)}
    return with_interval(Result.from_document(plain))


def times(factor: float, values: Sequence[float] = FIRST) -> list[float]:
    return [value * factor for value in values]


def stored(path: Path, *results: Result) -> str:
    """A folder with a folder of each of these, which has its summary alone."""
    for number, one in enumerate(results):
        folder = path / str(number)
        folder.mkdir(parents=True)
        (folder / "summary.json").write_text(json.dumps(one.document()))
    return str(path)


class Diffs:
    """Stores two runs, and lets `natgauge diff` compare the second with the first."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder, self._capsys, self._number = folder, capsys, 0
        self.status = 0

    def ended(self, first: Sequence[Result], second: Sequence[Result], *asked: str) -> tuple[int, str, str]:
        """Exit status, output and errors of the command."""
        self._number += 1
        runs = zip("ab", (first, second), strict=True)
        self.status = run(["diff", *(stored(self._folder / f"{self._number}{at}", *one) for at, one in runs), *asked])
        printed = self._capsys.readouterr()
        return self.status, printed.out, printed.err

    def text(self, first: Sequence[Result], second: Sequence[Result], *asked: str) -> str:
        _, printed, errors = self.ended(first, second, *asked)
        assert not errors
        return printed

    def document(self, first: Sequence[Result], second: Sequence[Result], *asked: str) -> Any:
        return json.loads(self.text(first, second, "--json", *asked))

    def line(self, first: Result, second: Result, *asked: str) -> Any:
        """The only comparison of two results, as programs read it."""
        (line,) = self.document([first], [second], *asked)["comparisons"]
        return line


@pytest.fixture
def diff(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Diffs:
    return Diffs(tmp_path, capsys)


def test_a_ratio_is_of_the_medians_and_its_interval_of_all_pairs(diff: Diffs) -> None:
    found = diff.line(result([100.0, 110.0, 120.0, 130.0]), result([200.0, 220.0, 240.0, 260.0]))
    assert (found["kind"], found["value"]) == ("ratio", 2.0)
    # Four and four: only the smallest and the largest pair reach 95 %.
    assert (found["lower"], found["upper"]) == (200 / 130, 260 / 100)
    assert found["coverage"] == pytest.approx(1 - 2 / 70)


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
    return with_interval(Result.from_document(document))


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
def test_the_outcome_is_what_no_noise_can_make(name: str, diff: Diffs, golden: Golden) -> None:
    first, second, margin, said, reason = OUTCOMES[name]
    answer, *others = diff.text([first], [second], "--margin", str(margin)).splitlines()
    begins = f"{said.capitalize()} ({reason}): " if reason else f"{said.capitalize()}: "
    assert (answer[: len(begins)], diff.status) == (begins, STATUSES[said])
    golden([answer, *(line for line in others if line.startswith(f"Line 1: {said}"))])


@pytest.mark.parametrize("margin", ["-0.1", "1.0", "nan"])
def test_a_margin_that_is_no_share_is_refused(margin: str, diff: Diffs) -> None:
    status, _, errors = diff.ended([result(FIRST)], [result(times(0.9))], "--margin", margin)
    assert (status, errors.count("\n")) == (2, 1)
    assert "margin" in errors


def test_zeros_have_a_difference_and_no_ratio(diff: Diffs) -> None:
    found = diff.line(NONE, SOME)
    assert (found["kind"], found["value"]) == ("difference", 2.5)
    open_ended = diff.line(result(FIRST, limited_by="tester"), result([0.0, *times(1.2)[1:]]))
    assert (open_ended["kind"], open_ended["lower"]) == ("difference", None)


def test_the_first_line_is_what_changed_most_and_surely_with_its_interval_and_unit(diff: Diffs, golden: Golden) -> None:
    """It was the head of a table."""
    same, slower, slowest, few = result(FIRST), result(times(0.9)), result(times(0.5)), result(times(0.1)[:3])
    # A larger change that is not sure comes behind.
    rates: dict[str, Any] = {"metric": "connection-rate", "unit": "connections/s"}
    for first, second in (
        ([same, result(FIRST, **LATENCY)], [slower, result(times(3.0), **LATENCY)]),
        ([same, result(FIRST[:3], **rates)], [slowest, result(few.values, **rates)]),
        ([same], [same]),
        ([same], [few]),
        ([result(FIRST, limited_by="tester")], [slower]),
        ([same], [result(times(0.8), parameters={"kernel": "6.1"})]),
        ([NONE], [SOME]),
    ):
        golden(diff.text(first, second).splitlines()[0])


def test_the_answer_begins_with_what_decides_the_exit_status(diff: Diffs) -> None:
    """It began with "Better", and the command ended with 1."""
    both = ([result(FIRST), result(FIRST, **LATENCY)], [result(times(3.0)), result(times(1.5), **LATENCY)])
    assert {line["outcome"] for line in diff.document(*both)["comparisons"]} == {"better", "worse"}
    assert diff.text(*both).startswith("Worse")
    assert diff.status == 1


def test_set_ups_that_differ_are_refused_by_name_and_allowed_when_asked_for(diff: Diffs, golden: Golden) -> None:
    first = result(FIRST, parameters={"kernel": "6.1"})
    second = result(times(0.8), parameters={"kernel": "6.18"})
    line = diff.line(first, second)
    assert (line["outcome"], line["value"], diff.status) == ("not compared", None, 5)
    assert "kernel 6.1 against 6.18" in diff.text([first], [second])
    for about in ("kernel", "place"):
        allowed = diff.text([first], [second], "--about", about)
        assert diff.status == 1
        golden(allowed)
    status, _, errors = diff.ended([first], [second], "--about", "kernle")
    assert (status, "'kernle'" in errors) == (2, True)


def test_results_of_two_runs_are_paired_by_how_they_were_set_up(diff: Diffs) -> None:
    first = [result(times(number), parameters={"connections": number}) for number in (1, 10, 100)]
    second = [result(times(number), parameters={"connections": number}) for number in (100, 10, 7)]

    def pairs(*asked: str) -> list[tuple[float, float, str]]:
        found = diff.document(first, second, *asked)["comparisons"]
        return [(*(line[run]["median"] / 1000 for run in ("first", "second")), line["outcome"]) for line in found]

    alike = [(10, 10, SAME), (100, 100, SAME)]
    assert pairs() == [(1, 7, "not compared"), *alike]
    assert pairs("--about", "connections") == [(1, 7, BETTER), *alike]


def test_figures_of_an_emulated_machine_are_held_against_nothing(diff: Diffs, tmp_path: Path, ran: Ran) -> None:
    stamp = [{"word": "functional", "text": "functional, not performance: the device ran on an emulated machine"}]
    emulated = [
        result(times(factor), parameters={"emulated": True}, doubts=stamp, limited_by="device") for factor in (1.0, 0.8)
    ]
    for first, second in ((emulated[0], emulated[1]), (result(FIRST), emulated[1])):
        line = diff.line(first, second, "--about", "place", "--margin", "5%")
        found = (line["outcome"], line["reason"], line["value"], diff.status)
        assert found == ("not compared", "functional", None, 5)
    told = diff.line(emulated[0], emulated[1])
    assert (told["reason"], told["value"], told["first"]["doubts"]) == ("functional", None, ["functional"])
    assert "functional, not performance" in diff.text(emulated[:1], emulated[1:])
    assert diff.status == 5
    folder = stored(tmp_path / "x", emulated[0])
    for form in ("text", "markdown", "latex", "csv"):
        assert "functional" in ran(["report", folder, "--format", form]).out
    ran(["report", folder, "--html", str(tmp_path / "page.html")])
    assert "functional, not performance" in (tmp_path / "page.html").read_text()


def test_what_was_varied_on_purpose_is_compared_and_all_that_grew_with_it_is_named(diff: Diffs, golden: Golden) -> None:
    fewer = {"connections": 3000, "source_port_count": 300, "table_size": 6000, "hash_size": 3000}
    more = {"connections": 30000, "source_port_count": 3000, "table_size": 60000, "hash_size": 30000}
    first, second = result(FIRST, parameters=fewer), result(times(0.8), parameters=more)
    diff.text([first], [second])
    assert diff.status == 5
    said = diff.text([first], [second], "--across", "connections")
    assert (said.split(":")[0], diff.status) == ("Worse", 1)
    golden(said)
    # What does not grow with it still keeps them apart.
    other = result(times(0.8), parameters={**more, "kernel": "6.1"})
    line = diff.line(first, other, "--across", "connections")
    assert (line["outcome"], line["why"]) == ("not compared", "kernel 6.18 against 6.1")
    assert diff.line(first, other, "--across", "connections", "--across", "kernel")["outcome"] == "worse"


def test_a_metric_of_one_run_only_is_told(diff: Diffs, golden: Golden) -> None:
    first = [result(FIRST), result(FIRST, metric="connection-rate", unit="connections/s")]
    golden(diff.text(first, first[:1]))
    assert diff.status == 5
    status, _, errors = diff.ended(first[:1], first[1:])
    assert status == 2
    golden(errors)


@pytest.mark.parametrize(("factor", "status"), [(1.0, 0), (1.2, 0), (0.8, 1)])
def test_the_command_ends_with_what_continuous_integration_wants_to_know(
    factor: float, status: int, diff: Diffs
) -> None:
    both = [result(FIRST)], [result(times(factor))]
    assert "throughput" in diff.text(*both)
    assert diff.status == status
    printed = diff.document(*both)
    assert printed["exit_status"] == diff.status == status
    assert printed["comparisons"][0]["value"] == pytest.approx(factor)


def test_drawn_frames_are_no_connections_for_a_program_either(diff: Diffs) -> None:
    drawn: dict[str, Any] = {
        "metric": "connection-rate",
        "unit": "connections/s",
        "parameters": {"order": "with-replacement"},
    }
    line = diff.line(result(FIRST, **drawn), result(times(0.8), **drawn))
    assert line["unit"] == "frames/s of drawn four tuples"


@pytest.mark.parametrize("again", ["a", "b/../a", "link", "a/0"])
def test_a_result_is_not_compared_with_itself_however_it_is_named(again: str, tmp_path: Path, ran: Ran) -> None:
    first = stored(tmp_path / "a", result(FIRST))
    stored(tmp_path / "b", result(FIRST))
    (tmp_path / "link").symlink_to("a")
    (line,) = ran(["diff", first, str(tmp_path / again)], 2).err.splitlines()
    assert line.startswith(f"natgauge: diff: {first}/0")
    assert line.endswith("is on both sides and cannot differ from itself; name another run")


def test_an_end_that_is_not_bounded_is_null_in_json(diff: Diffs) -> None:
    line = diff.line(result(FIRST), result(FIRST, limited_by="tester"))
    assert (line["outcome"], line["upper"], diff.status) == ("cannot tell", None, 5)
