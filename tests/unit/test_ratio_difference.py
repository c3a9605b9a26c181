# SPDX-License-Identifier: Apache-2.0
"""Two comparisons compared: the ratio of both ratios, what keeps them from being compared, and what it means."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.conftest import Ran
from tests.unit.golden import Golden
from tests.unit.made_comparisons import CONTROL, answered, compared, compared_by_rates, estimate, gateway
from tests.unit.made_results import kept_as, made


class Diffs:
    """Stores two comparisons, and lets `natgauge diff` compare the second with the first."""

    def __init__(self, folder: Path, ran: Ran) -> None:
        self._folder, self._ran, self._number = folder, ran, 0

    def __call__(self, first: Any, second: Any, asked: str = "", status: int = 5) -> Any:
        """What the command printed, `.out` and `.err`."""
        self._number += 1
        runs = zip("ab", (first, second), strict=True)
        folders = [str(kept_as(self._folder / f"{self._number}{at}", answered(one))) for at, one in runs]
        return self._ran(["diff", *folders, *asked.split()], status)

    def lines(self, first: Any, second: Any, asked: str, status: int) -> Any:
        """Its ratios, as programs read them."""
        document = json.loads(self(first, second, f"--json {asked}", status).out)
        assert document["exit_status"] == status
        return document["ratios"]


@pytest.fixture
def diff(tmp_path: Path, ran: Ran) -> Diffs:
    return Diffs(tmp_path, ran)


BEFORE = compared()
SLOWER = compared([estimate("other", 1.21, 1.2, 1.22)])
FASTER = compared([estimate("other", 1.0, 0.99, 1.01)])


def with_device(**parameters: Any) -> Any:
    """The same comparison, whose compared gateway has these parameters."""
    first, _, control = BEFORE.gateways
    return compared(gateways=(first, gateway("other", "compared", parameters), control))


def with_baseline(**parameters: Any) -> Any:
    _, other, control = BEFORE.gateways
    return compared(gateways=(gateway(BEFORE.baseline.label, "baseline", parameters), other, control))


TRIPLE = [estimate("other", 3.0, 2.9, 3.1)]
OTHER_VERSION, OTHER_BASELINE = with_device(version=["x 2"]), with_baseline(version=["x 2"])
OTHER_KERNEL = compared(parameters={"kernel": "7.0"})
#: What follows a comparison, how both are compared, and what comes of it: outcome, reason and exit status.
CHANGES: dict[str, tuple[Any, str, tuple[str, str, int]]] = {
    "nothing": (BEFORE, "--margin 0.0", ("no difference seen", "", 0)),
    "more than the margin": (SLOWER, "--margin 0.05", ("worse", "", 1)),
    "less by more than the margin": (FASTER, "--margin 0.05", ("better", "", 0)),
    "no more than the margin": (SLOWER, "--margin 0.2", ("no difference seen", "", 0)),
    "no margin: a matter of two sittings": (SLOWER, "", ("cannot tell", "one sitting each", 5)),
    "a margin of 0": (SLOWER, "--margin 0.0", ("cannot tell", "one sitting each", 5)),
    "a control that differs from 1 is a margin": (
        compared([estimate("other", 1.21, 1.2, 1.22)], [estimate(CONTROL, 1.1, 1.08, 1.12)]),
        "--margin 0.001",
        ("cannot tell", "control", 5),
    ),
    "a control without an interval": (
        compared(TRIPLE, [estimate(CONTROL, None, None, None)]),
        "--margin 0.03",
        ("cannot tell", "control", 5),
    ),
    "no control": (compared(TRIPLE, []), "--margin 0.03", ("cannot tell", "control", 5)),
    "a control of which one end is not known": (
        compared(TRIPLE, [estimate(CONTROL, None, 1.2, None)]),
        "--margin 0.05",
        ("cannot tell", "control", 5),
    ),
    "a ratio that is not known": (compared([estimate("other", None, 0.97, None)]), "", ("cannot tell", "limits", 5)),
    "another version": (OTHER_VERSION, "", ("not compared", "set up differently", 5)),
    "another version that is asked for": (OTHER_VERSION, "--about version", ("no difference seen", "", 0)),
    "another device that is asked for": (OTHER_VERSION, "--about device", ("no difference seen", "", 0)),
    # That of the baseline is never compared.
    "another version of the baseline": (
        OTHER_BASELINE,
        "--about version",
        ("not compared", "set up differently", 5),
    ),
    "another baseline": (OTHER_BASELINE, "--about device", ("not compared", "set up differently", 5)),
    "another kernel": (OTHER_KERNEL, "", ("not compared", "set up differently", 5)),
    "another kernel that is asked for": (OTHER_KERNEL, "--about kernel", ("no difference seen", "", 0)),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_comes_of(what: str, diff: Diffs, golden: Golden) -> None:
    after, how, (outcome, reason, status) = CHANGES[what]
    (line,) = diff.lines(BEFORE, after, how, status)
    assert (line["outcome"], line["reason"] or "") == (outcome, reason)
    ratio = None if line["value"] is None else round(line["value"], 9)
    golden([line["why"], f"control {line['control_margin']}, ratio {ratio}", *map(str, line["about"])])


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
    first: Any, second: Any, diff: Diffs, golden: Golden
) -> None:
    status = 0 if first.estimates[0].level == 0.99 else 5
    golden(diff(first, second, status=status).out.splitlines()[0])


@pytest.mark.parametrize(
    "second", [compared_by_rates(), compared(baseline="linux-ipv4"), compared([estimate("third")])]
)
def test_what_makes_no_sense_is_refused_in_one_line(second: Any, diff: Diffs, golden: Golden) -> None:
    said = diff(BEFORE, second, status=2).err
    golden(said)
    assert said.count("\n") == 1


def test_estimates_that_one_comparison_lacks_are_named(diff: Diffs, golden: Golden) -> None:
    more = compared([estimate(), estimate("third")])
    golden(diff(more, BEFORE).out)
    golden(diff(BEFORE, more).out)


def test_a_name_that_is_no_parameter_is_refused(diff: Diffs, golden: Golden) -> None:
    golden(diff(BEFORE, BEFORE, "--about weather", 2).err)


# The command


def test_the_command_compares_two_stored_comparisons(tmp_path: Path, ran: Ran) -> None:
    one, other = (str(kept_as(tmp_path / name, record)) for name, record in (("a", BEFORE), ("b", SLOWER)))
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
    one, other = kept_as(tmp_path / "a", BEFORE), kept_as(tmp_path / "b", made())
    for pair in ([one, other], [other, one]):
        error = ran(["diff", *map(str, pair)], 2).err
        assert error.count("\n") == 1
        golden(error)


def test_several_comparisons_of_one_run_are_refused(tmp_path: Path, ran: Ran, golden: Golden) -> None:
    for at, place in enumerate(("a/1", "a/2", "b")):
        kept_as(tmp_path / place, BEFORE.model_copy(update={"began": BEFORE.began + at}))
    golden(ran(["diff", str(tmp_path / "a"), str(tmp_path / "b")], 2).err)


def test_runs_with_both_kinds_are_compared_in_both(tmp_path: Path, ran: Ran) -> None:
    for name, record in (("a", BEFORE), ("b", SLOWER)):
        kept_as(tmp_path / name / "1", record)
        kept_as(tmp_path / name / "2", made())
    document = json.loads(ran(["diff", str(tmp_path / "a"), str(tmp_path / "b"), "--margin", "5%", "--json"], 1).out)
    assert (len(document["comparisons"]), len(document["ratios"]), document["exit_status"]) == (1, 1, 1)


def test_a_comparison_next_to_results_that_only_one_run_has_is_named(tmp_path: Path, ran: Ran, golden: Golden) -> None:
    kept_as(tmp_path / "a" / "1", BEFORE)
    folders = [str(kept_as(tmp_path / name / "2", made()).parent) for name in "ab"]
    golden(ran(["diff", *folders, "--margin", "5%"], 5).out.splitlines()[-1])
    document = json.loads(ran(["diff", *reversed(folders), "--margin", "5%", "--json"], 5).out)
    (alone,) = document["only_second"]
    assert (alone["gateway"], alone["quantity"], document["only_first"]) == ("other", "up", [])


def test_doubts_of_a_comparison_leave_no_change_sure(diff: Diffs) -> None:
    cheap, dear = estimate("other", 1.1, 1.09, 1.11), estimate("other", 1.5, 1.49, 1.51)
    for grade, outcomes in (("answer", ["cannot tell"] * 2), ("interval", ["worse", "better"])):
        doubted = compared([dear], notes=[{"word": "log dropped", "text": "x", "grade": grade}])
        pairs = (compared([cheap]), doubted), (doubted, compared([cheap]))
        for pair, outcome in zip(pairs, outcomes, strict=True):
            status = {"worse": 1, "better": 0}.get(outcome, 5)
            (line,) = diff.lines(*pair, "--margin 0.01", status)
            assert line["outcome"] == outcome
            assert (line["reason"] == "doubts") is (grade == "answer")
