# SPDX-License-Identifier: Apache-2.0
"""Values that are demanded of a result: verdicts, exit statuses, and what is refused before anything starts."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import pytest
from tests.simulated_lab import NAT44, Simulation, simulated
from tests.unit.conftest import Ran
from tests.unit.golden import Golden
from tests.unit.made_results import delays, kept_as, made
from tests.unit.simulated import Gateway

import natgauge
from natgauge import Result
from natgauge.cli import run
from natgauge.errors import UsageError

FORWARDS = 500_000


@pytest.fixture
def gateways() -> Iterator[Simulation]:
    with simulated() as simulation:
        simulation.start = lambda _lab: Gateway(forwards=FORWARDS)
        yield simulation


def words(folder: Path, metric: str, *options: str) -> list[str]:
    lab = ["--lab", "simulated", "--gateway", str(NAT44), "--results", str(folder), "--seed", "1"]
    return ["measure", metric, *lab, "--connections", "1000", *options]


def result_of(folder: Path) -> Any:
    """The stored document of the only result."""
    (path,) = folder.glob("*/summary.json")
    return json.loads(path.read_text())


#: From a result to its threshold as it is stored, and `text`: what `natgauge report` says of it.
Judge: TypeAlias = Callable[[Result], Any]


@pytest.fixture
def judge(tmp_path: Path, ran: Ran) -> Judge:
    folders = (tmp_path / f"judged-{number}" for number in itertools.count())

    def of(result: Result) -> Any:
        folder = kept_as(next(folders), result)
        threshold = json.loads((folder / "summary.json").read_text())["threshold"]
        answers = json.loads(ran(["report", str(folder), "--format", "json"]).out)["answers"]
        begins = f"{threshold['verdict'].capitalize()}: {result.metric} of "
        (text,) = (one["text"] for one in answers if one["text"].startswith(begins))
        return SimpleNamespace(**threshold, text=text.removesuffix("."))

    return of


@pytest.mark.usefixtures("gateways")
@pytest.mark.parametrize(
    "expected", [("200k", "met", 0), ("0.9M", "not met", 13), ("498_000", "cannot tell", 5)], ids=lambda case: case[0]
)
def test_the_verdict_is_in_the_record_in_every_view_and_in_the_exit_status(
    expected: tuple[str, str, int], tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    threshold, verdict, status = expected
    assert run(words(tmp_path, "throughput", "--at-least", threshold)) == status
    text = capsys.readouterr().out.splitlines()[1]
    golden(text)
    assert result_of(tmp_path)["threshold"]["verdict"] == verdict
    shown = ["report", str(tmp_path)]
    for form in ("text", "markdown", "csv", "latex", "draft"):
        assert run([*shown, "--format", form]) == 0
        said = f"{verdict.capitalize()}: throughput of " if form == "latex" else verdict
        assert said in capsys.readouterr().out
    assert run([*shown, "--format", "json"]) == 0
    assert text.strip() in [one["text"] for one in json.loads(capsys.readouterr().out)["answers"]]
    page, tests = tmp_path / "page.html", tmp_path / "tests.xml"
    assert run([*shown, "--html", str(page), "--junit", str(tests)]) == 0
    # It is on the first screen, above what is drawn.
    above, drawn, _ = page.read_text().replace("\N{NO-BREAK SPACE}", " ").partition('class="headline"')
    assert drawn
    assert f"{text.strip()}</li>" in above
    assert f'failures="{int(status == 13)}" errors="0" skipped="{int(status == 5)}"' in tests.read_text()


@pytest.mark.usefixtures("gateways")
def test_a_delay_is_demanded_to_be_at_most_so_long(tmp_path: Path) -> None:
    assert run(words(tmp_path / "1", "latency", "--throughput-rate", "1000", "--at-most", "1M")) == 0
    assert run(words(tmp_path / "2", "latency", "--throughput-rate", "1000", "--at-most", "0.001")) == 13


@pytest.mark.usefixtures("gateways")
def test_a_single_repetition_tells_nothing(tmp_path: Path) -> None:
    assert run(words(tmp_path, "throughput", "--at-least", "200k", "--repeat", "1")) == 5


def test_no_repetition_changes_a_rate_of_0_without_connections_which_has_no_bound_of_another_unit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seen: 0 to 3,130 frames/s, the lowest connection rate that failed; after `--repeat 3` the remedy was the same."""
    with simulated() as simulation:
        simulation.start = lambda _lab: Gateway(table_size=500)
        assert run(words(tmp_path, "throughput", "--at-least", "1000", "--repeat", "3")) == 13
    assert "--repeat" not in capsys.readouterr().out
    found = result_of(tmp_path)
    assert [(one["value"], one["upper"]) for one in found["repetitions"]] == [(0, None)]
    assert [found["threshold"][name] for name in ("verdict", "lower", "upper")] == ["not met", 0, 0]


def test_no_range_of_another_run_is_behind_the_reason_why_there_is_none(judge: Judge) -> None:
    """Seen: "(one repetition has no spread; give --repeat 3 or more); another run is expected to have 990 to 1,010"."""

    def said(*values: float) -> str:
        text: str = judge(made(values, parameters={"at_least": 500.0, "error": "1%", "repeat": len(values)})).text
        return text

    assert said(1000.0).endswith("direction (one repetition has no spread; give --repeat 3 or more)")
    assert said(1000.0, 1001.0).endswith("; another run is expected to have 989 to 1,012")


@pytest.mark.parametrize("at_most", [0.5, 4.0])
def test_a_campaign_that_has_not_ended_meets_and_misses_nothing_in_any_view(
    at_most: float, judge: Judge, tmp_path: Path, ran: Ran
) -> None:
    """The first line said "Met", and JUnit that it was skipped."""
    so_far = [{"word": "incomplete", "text": "x", "value": 10.0}]
    result = delays(1.0, 1.1, 1.2, metric="ipdv", doubts=so_far, at_most=at_most)
    found = judge(result)
    assert found.verdict == "cannot tell"
    assert found.text.endswith(" (3 of 10 repetitions so far)")
    ran(["report", str(kept_as(tmp_path / "one", result)), "--junit", str(tmp_path / "tests.xml")])
    assert 'failures="0" errors="0" skipped="1"' in (tmp_path / "tests.xml").read_text()


@pytest.mark.parametrize("forwards", [1e6, 1e3])
def test_a_measurement_that_its_user_ended_meets_and_misses_nothing(
    forwards: float, gateways: Simulation, tmp_path: Path, ran: Ran
) -> None:
    def interrupted(_gateway: Gateway, period: int) -> None:
        if period == 30:
            raise KeyboardInterrupt

    gateways.start = lambda _lab: Gateway(forwards=forwards, ages=interrupted)
    rates = ["--throughput-rate", "1_000_000", "--connection-rate", "1_000_000"]
    said = ran(words(tmp_path, "stability", "--hours", "0.03", "--repeat", "3", *rates, "--at-most", "50"), 5).out
    assert "Cannot tell: stability of simulated at most 50 % (doubts: ended early)." in said
    assert result_of(tmp_path)["median"] == (0 if forwards == 1e6 else 100)


@pytest.mark.parametrize(
    ("values", "at_most", "ends"),
    [
        ([10051.0, 10052.0, 10053.0], 10050.0, "10,051 to 10,053"),
        ([1000.0, 1000.2, 999.96], 999.9, "999.96 to 1,000.20"),
        ([10000.0, 10020.0, 10046.0], 9999.0, "10.00 k to 10.05 k"),
        ([5.0004, 5.0004, 5.0004], 5.0002, "5.0004"),
        ([10049.9999, 10040.0, 10030.0], 10049.99, "10.03 k to 10.05 k"),
        ([10050.0, 10040.0, 10030.0], 10050.0, "10.03 k to 10.05 k"),
        ([0.0, 0.0, 0.0004], 0.0003, "0.00000 to 0.00040"),
    ],
)
def test_the_range_beside_a_verdict_is_on_the_side_of_the_threshold_that_decided(
    values: list[float], at_most: float, ends: str, judge: Judge
) -> None:
    """Seen: "Not met: at most 10,050; another run is expected to have 10.05 k to 10.06 k"."""
    found = judge(delays(*values, metric="ipdv", at_most=at_most))
    assert found.text.endswith(f" another run is expected to have {ends}")


def test_more_repetitions_are_asked_for_only_where_fewer_were(judge: Judge) -> None:
    def reason(repeat: int) -> str:
        found = judge(made([1e6], parameters={"at_least": 5e5, "error": "1%", "repeat": repeat}))
        assert found.verdict == "cannot tell"
        said: str = found.reason
        return said

    assert reason(1) == "one repetition has no spread; give --repeat 3 or more"
    assert reason(3) == "one repetition has no spread; 3 were asked for, and the doubts say what ended them"


@pytest.mark.parametrize(
    "asked",
    [
        ("throughput", ["--at-most", "5"]),
        ("latency", ["--at-least", "5"]),
        ("enumeration-orders", ["--at-least", "5"]),
        ("throughput", ["--at-least", "5%"]),
        ("throughput", ["--at-least", "much"]),
        ("throughput", ["--at-least", "-1"]),
        ("throughput", ["--at-least", "nan"]),
        ("throughput", ["--at-least", ""]),
        ("throughput", ["--at-least", "1e400"]),
    ],
    ids=lambda asked: f"{asked[0]} {' '.join(asked[1])}",
)
def test_a_threshold_that_a_metric_has_not_is_refused_before_anything_starts(
    asked: tuple[str, list[str]],
    gateways: Simulation,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    golden: Golden,
) -> None:
    made: list[str] = []
    gateways.enters = made.append
    metric, options = asked
    assert run(words(tmp_path / "results", metric, *options)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    golden(line)
    assert not made
    assert not (tmp_path / "results").exists()


@pytest.mark.usefixtures("gateways")
def test_a_share_may_have_its_percent_sign(tmp_path: Path) -> None:
    assert run(words(tmp_path, "frame-loss", "--full-rate", "1000", "--at-most", "50%")) in (0, 5, 13)
    assert result_of(tmp_path)["threshold"]["value"] == 50.0


def test_python_and_the_command_line_refuse_alike(golden: Golden) -> None:
    with golden.raises(UsageError):
        natgauge.measure("throughput", NAT44, at_most=5.0)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("measured")
    with simulated() as simulation:
        simulation.start = lambda _lab: Gateway(forwards=FORWARDS)
        run(words(folder, "throughput", "--at-least", "200k"))
    return result_of(folder)


#: The verdict on the result where this is demanded of it, and something else limited it or these doubts are there.
Verdict: TypeAlias = Callable[..., str]


@pytest.fixture
def verdict(measured: Any, judge: Judge) -> Verdict:
    def of(at_least: float, *doubts: str, limited_by: str = "device") -> str:
        document = json.loads(json.dumps(measured))
        document["parameters"]["settings"]["at_least"] = at_least
        document["doubts"] = [{"word": word, "text": "", "grade": "answer"} for word in doubts]
        for one in (document, *document["repetitions"]):
            one["limited_by"] = limited_by
        found: str = judge(Result.from_document(document)).verdict
        return found

    return of


def test_a_rate_that_the_tester_limited_meets_what_it_reached_and_misses_nothing(verdict: Verdict) -> None:
    assert verdict(900_000) == "not met"
    assert verdict(900_000, limited_by="tester") == "cannot tell"
    assert verdict(900_000, "tester limited") == "cannot tell"
    assert verdict(200_000, "tester limited", limited_by="tester") == "met"


def test_two_repetitions_alone_meet_and_miss_nothing(judge: Judge) -> None:
    """Another run's median leaves the range of two repetitions more often than not."""
    for number, found in ((2, ["cannot tell"] * 2), (3, ["not met", "met"])):
        values = [10.0, 11.0, 12.0][:number]
        assert [judge(delays(*values, at_most=at_most)).verdict for at_most in (5.0, 20.0)] == found
    # The error of a search and the drift of a virtual machine widen their range.
    assert judge(delays(10.0, 11.0, at_most=20.0, hypervisor="kvm", device_cpus=[1])).verdict == "met"
    verdicts = [
        judge(made([10.0, 11.0], parameters={"at_least": 5.0, **asked})).verdict for asked in ({}, {"error": "5%"})
    ]
    assert verdicts == ["cannot tell", "met"]


@pytest.mark.parametrize(
    ("metric", "figures", "doubts", "notes", "lower"),
    [
        ("latency", {"typical_latency_without_stalls_us": [60.0, 61.0, 62.0]}, [], [], 59.82),
        ("pdv", {"pdv_without_stalls_us": [60.0, 61.0, 62.0]}, [], [], 59.82),
        ("ipdv", {"ipdv_spread_without_stalls_us": [60.0, 61.0, 62.0]}, [], [], 60.0),
        ("first-packet-delay", {"first_typical_without_stalls_us": [60.0, 61.0, 62.0]}, [], [], 59.82),
        # How far stalls moved it is not known of the second repetition.
        ("latency", {}, [], [1], 0.0),
        # Stalls that were too short to be seen.
        ("pdv", {}, [("frames in stalls", 0.0)], [], 0.0),
        # Of the median they say nothing.
        ("latency", {}, [("frames in stalls", None)], [], 99.7),
        ("latency", {}, [("batches", 30.0)], [], 69.7),
        ("latency", {}, [("batches", 200.0)], [], 0.0),
        # A record of before has no number.
        ("latency", {}, [("batches", None)], [], 0.0),
    ],
)
def test_a_time_that_stalls_or_the_tester_may_have_lengthened_is_not_sure_to_miss(  # noqa: PLR0917 - one per column
    metric: str,
    figures: dict[str, Any],
    doubts: list[Any],
    notes: list[int],
    lower: float,
    judge: Judge,
    tmp_path: Path,
    ran: Ran,
) -> None:
    """Thresholds, `diff` and rankings said "Not met", "Worse" and "sure" of what the host did."""
    given = [{"word": word, "text": "x", "value": value} for word, value in doubts]

    def made_slow(at_most: float) -> Result:
        document = delays(
            100.0, 102.0, 101.0, metric=metric, more=figures, doubts=given, at_most=at_most, gateway="slow"
        ).document()
        for at in notes:
            document["repetitions"][at]["notes"] = [{"word": "frames in stalls", "text": "x"}]
        return Result.from_document(document)

    slow = made_slow(90.0)
    found = judge(slow)
    assert found.lower == pytest.approx(lower, abs=0.11)
    assert found.verdict == ("not met" if lower > 90 else "cannot tell")
    quick = delays(70.0, 71.0, 72.0, metric=metric, gateway="other", at_most=90.0)
    first, second = (kept_as(tmp_path / name, one) for name, one in (("quick", quick), ("slow", slow)))
    interval = json.loads((second / "summary.json").read_text())["median_interval"]
    assert (interval["lower"] < 90) == (lower < 90)
    (line,) = json.loads(ran(["diff", str(first), str(second), "--about", "device", "--json"], 5).out)["comparisons"]
    assert (line["lower"] > 1) == (lower > 90)
    # What is short enough with all of it is short enough.
    assert judge(made_slow(110.0)).verdict == "met"


def test_an_undecided_figure_without_bounds_meets_and_misses_nothing(judge: Judge) -> None:
    doubt = {"word": "undecided", "text": "x", "grade": "answer"}
    for at_most in (5.0, 20.0):
        result = made([10.0, 11.0, 12.0], metric="latency", unit="us", doubts=[doubt], parameters={"at_most": at_most})
        assert judge(result).verdict == "cannot tell"


@pytest.mark.parametrize(("at_least", "expected"), [(900.0, "met"), (1100.0, "cannot tell")])
def test_a_number_of_connections_or_more_meets_what_was_kept_and_misses_nothing(
    at_least: float, expected: str, judge: Judge
) -> None:
    """The capacity was 1,000 or more, and 1,100 counted as not met."""
    doubt = {"word": "undecided", "text": "1,000 or more", "grade": "answer"}
    document = made(
        [1000.0] * 3,
        metric="table-capacity",
        unit="connections",
        doubts=[doubt],
        parameters={"at_least": at_least},
    ).document()
    for one in document["repetitions"]:
        one["notes"] = [doubt]
    assert judge(Result.from_document(document)).verdict == expected


def test_a_doubt_that_could_change_the_answer_leaves_no_verdict(verdict: Verdict) -> None:
    assert verdict(200_000) == "met"
    assert verdict(200_000, "drift") == "cannot tell"
    assert verdict(900_000, "drift") == "cannot tell"
    assert verdict(200_000, "flow control") == "cannot tell"
    assert verdict(900_000, "flow control") == "not met"


PLAN = """
gateways = ["{gateway}"]
seed = 1
repetitions = 3
lab = {{ lab = "simulated" }}
traffic = {{ connections = 1000 }}
series = {{ frame_size = [128, 256] }}
[[measure]]
metric = "throughput"
{threshold}
"""


def planned(tmp_path: Path, threshold: str) -> str:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN.format(gateway=NAT44, threshold=threshold))
    return str(path)


@pytest.mark.usefixtures("gateways")
def test_a_plan_demands_a_value_of_its_cells_and_another_one_is_another_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    out = str(tmp_path / "out")
    assert run(["run", planned(tmp_path, 'at_least = "900k"'), "--out", out]) == 13
    assert run(["report", out, "--format", "markdown"]) == 0
    assert capsys.readouterr().out.count("at least 900,000: not met") == 2
    assert run(["run", planned(tmp_path, "at_least = 200_000"), "--out", out, "--resume"]) == 2
    golden(capsys.readouterr().err.replace(str(tmp_path), "."))
    assert run(["run", planned(tmp_path, 'at_least = "900k"'), "--out", out, "--resume"]) == 13


def test_a_plan_with_a_threshold_that_its_metric_has_not_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    with simulated():
        for threshold in ("at_most = 5", 'at_least = "much"', "at_least = -1", "at_least = true"):
            assert run(["plan", "check", planned(tmp_path, threshold)]) == 2
            golden(capsys.readouterr().err.replace(str(tmp_path), "."))


def test_a_verdict_that_does_not_follow_from_its_repetitions_is_refused(
    measured: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    document = json.loads(json.dumps(measured))
    document["threshold"]["verdict"] = "not met"
    (tmp_path / "summary.json").write_text(json.dumps(document))
    assert run(["report", str(tmp_path)]) == 2
    golden(capsys.readouterr().err.replace(str(tmp_path), "."))
