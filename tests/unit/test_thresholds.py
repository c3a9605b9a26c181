# SPDX-License-Identifier: Apache-2.0
"""Values that are demanded of a result: verdicts, exit statuses, and what is refused before anything starts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.simulated_lab import NAT44, Simulation, simulated
from tests.unit.golden import Golden
from tests.unit.made_results import made
from tests.unit.simulated import Gateway

import natgauge
from natgauge.analysis.between_runs import judged
from natgauge.analysis.contrast import contrast, median_interval_of
from natgauge.cli import run
from natgauge.cli.exit_statuses import status_of
from natgauge.errors import UsageError
from natgauge.metrics import declared
from natgauge.notes import Note
from natgauge.records.measurement import Result
from natgauge.reports.answers import threshold_of
from natgauge.words import LimitedBy

FORWARDS = 500_000


@pytest.fixture
def gateways() -> Iterator[Simulation]:
    with simulated() as simulation:
        simulation.start = lambda _lab: Gateway(forwards=FORWARDS)
        yield simulation


def words(folder: Path, metric: str, *options: str) -> list[str]:
    lab = ["--lab", "simulated", "--gateway", str(NAT44), "--results", str(folder), "--seed", "1"]
    return ["measure", metric, *lab, "--connections", "1000", *options]


def result_of(folder: Path) -> Result:
    (path,) = folder.glob("*/summary.json")
    return Result.from_document(json.loads(path.read_text()))


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
    stored = result_of(tmp_path).threshold
    assert stored is not None
    assert stored.verdict == verdict
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
    assert [(one.value, one.upper) for one in found.repetitions] == [(0, None)]
    assert found.threshold is not None
    assert (found.threshold.verdict, found.threshold.lower, found.threshold.upper) == ("not met", 0, 0)


def test_no_range_of_another_run_is_behind_the_reason_why_there_is_none() -> None:
    """Seen: "(one repetition has no spread; give --repeat 3 or more); another run is expected to have 990 to 1,010"."""

    def said(*values: float) -> str:
        result = made(values, parameters={"at_least": 500.0, "error": "1%", "repeat": len(values)})
        return threshold_of(result.model_copy(update={"threshold": judged(result)}))

    assert said(1000.0).endswith("direction (one repetition has no spread; give --repeat 3 or more)")
    assert said(1000.0, 1001.0).endswith("; another run is expected to have 989 to 1,012")


@pytest.mark.parametrize("at_most", [0.5, 4.0])
def test_a_campaign_that_has_not_ended_meets_and_misses_nothing_in_any_view(at_most: float) -> None:
    """The first line said "Met", and JUnit that it was skipped."""
    so_far = [{"word": "incomplete", "text": "x", "value": 10.0}]
    delays = delays_of(1.0, 1.1, 1.2, metric="ipdv", doubts=so_far, at_most=at_most)
    delays = delays.model_copy(update={"threshold": judged(delays)})
    assert delays.threshold is not None
    assert delays.threshold.verdict == "cannot tell"
    assert threshold_of(delays).endswith(" (3 of 10 repetitions so far)")
    assert status_of([delays]) == 5


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
    values: list[float], at_most: float, ends: str
) -> None:
    """Seen: "Not met: at most 10,050; another run is expected to have 10.05 k to 10.06 k"."""
    delays = delays_of(*values, metric="ipdv", at_most=at_most)
    text = threshold_of(delays.model_copy(update={"threshold": judged(delays)}))
    assert text.endswith(f" another run is expected to have {ends}")


def test_more_repetitions_are_asked_for_only_where_fewer_were() -> None:
    def reason(repeat: int) -> str:
        judgement = judged(made([1e6], parameters={"at_least": 5e5, "error": "1%", "repeat": repeat}))
        assert judgement is not None
        assert judgement.verdict == "cannot tell"
        return judgement.reason

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
    threshold = result_of(tmp_path).threshold
    assert threshold is not None
    assert threshold.value == 50.0


def test_python_and_the_command_line_refuse_alike(golden: Golden) -> None:
    with golden.raises(UsageError):
        natgauge.measure("throughput", NAT44, at_most=5.0)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Result:
    folder = tmp_path_factory.mktemp("measured")
    with simulated() as simulation:
        simulation.start = lambda _lab: Gateway(forwards=FORWARDS)
        run(words(folder, "throughput", "--at-least", "200k"))
    return result_of(folder)


def verdict(result: Result, at_least: float, *doubts: str, **changed: Any) -> str:
    notes = tuple(replace(Note(word, ""), grade="answer") for word in doubts)  # type: ignore[arg-type]
    parameters = result.parameters.with_settings({"at_least": at_least})
    found = judged(result.model_copy(update={"parameters": parameters, "doubts": notes, **changed}))
    assert found is not None
    return found.verdict


def limited(result: Result, limit: LimitedBy) -> dict[str, Any]:
    every = tuple(replace(one, limited_by=limit) for one in result.repetitions)
    return {"limited_by": limit, "repetitions": every}


def test_a_rate_that_the_tester_limited_meets_what_it_reached_and_misses_nothing(measured: Result) -> None:
    tester = limited(measured, "tester")
    assert verdict(measured, 900_000) == "not met"
    assert verdict(measured, 900_000, **tester) == "cannot tell"
    assert verdict(measured, 900_000, "tester limited") == "cannot tell"
    assert verdict(measured, 200_000, "tester limited", **tester) == "met"


def delays_of(*values: float, metric: str = "latency", more: Any = None, doubts: Any = (), **parameters: Any) -> Result:
    """Delays with the figures that each real result has: the ends of the bucket of its percentile."""
    figures = {declared(metric).value_figure: list(values), "timed_frames": [1e5] * len(values), **(more or {})}
    for name, share in zip(declared(metric).sampled_between or (), (0.997, 1.003), strict=False):
        figures[name] = [value * share for value in values]
    return made(values, metric=metric, unit="us", figures=figures, doubts=list(doubts), parameters=parameters)


def test_two_repetitions_alone_meet_and_miss_nothing() -> None:
    """Another run's median leaves the range of two repetitions more often than not."""
    for number, found in ((2, {"cannot tell"}), (3, {"met", "not met"})):
        delays = delays_of(*[10.0, 11.0, 12.0][:number])
        given = [delays.parameters.with_settings({"at_most": at_most}) for at_most in (5.0, 20.0)]
        judgements = [judged(delays.model_copy(update={"parameters": parameters})) for parameters in given]
        assert {one.verdict for one in judgements if one is not None} == found
    for condition in ({"error": "5%"}, {"hypervisor": "kvm", "device_cpus": [1]}):
        judgement = judged(delays_of(10.0, 11.0, at_most=20.0, **condition))
        assert judgement is not None
        assert judgement.verdict == "met"


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
def test_a_time_that_stalls_or_the_tester_may_have_lengthened_is_not_sure_to_miss(
    metric: str, figures: dict[str, Any], doubts: list[Any], notes: list[int], lower: float
) -> None:
    """Thresholds, `diff` and rankings said "Not met", "Worse" and "sure" of what the host did."""
    given = [{"word": word, "text": "x", "value": value} for word, value in doubts]
    delays = delays_of(100.0, 102.0, 101.0, metric=metric, more=figures, doubts=given, at_most=90.0)
    repetitions = [
        replace(one, notes=(Note("frames in stalls", "x"),) if at in notes else ())
        for at, one in enumerate(delays.repetitions)
    ]
    delays = delays.model_copy(update={"repetitions": tuple(repetitions)})
    found = judged(delays)
    assert found is not None
    assert found.lower == pytest.approx(lower, abs=0.11)
    assert found.verdict == ("not met" if lower > 90 else "cannot tell")
    interval = median_interval_of(metric, delays.repetitions, delays.doubts)
    assert interval is not None
    assert (interval.lower < 90) == (lower < 90)
    others = delays_of(70.0, 71.0, 72.0, metric=metric, gateway="other")
    assert contrast(others, delays).differs == (lower > 90)
    # What is short enough with all of it is short enough.
    short = judged(delays.model_copy(update={"parameters": delays.parameters.with_settings({"at_most": 110.0})}))
    assert short is not None
    assert short.verdict == "met"


def test_an_undecided_figure_without_bounds_meets_and_misses_nothing() -> None:
    doubt = {"word": "undecided", "text": "x", "grade": "answer"}
    for at_most in (5.0, 20.0):
        delays = made([10.0, 11.0, 12.0], metric="latency", unit="us", doubts=[doubt], parameters={"at_most": at_most})
        judgement = judged(delays)
        assert judgement is not None
        assert judgement.verdict == "cannot tell"


@pytest.mark.parametrize(("at_least", "expected"), [(900.0, "met"), (1100.0, "cannot tell")])
def test_a_number_of_connections_or_more_meets_what_was_kept_and_misses_nothing(at_least: float, expected: str) -> None:
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
    judgement = judged(Result.from_document(document))
    assert judgement is not None
    assert judgement.verdict == expected


def test_a_doubt_that_could_change_the_answer_leaves_no_verdict(measured: Result) -> None:
    assert verdict(measured, 200_000) == "met"
    assert verdict(measured, 200_000, "drift") == "cannot tell"
    assert verdict(measured, 900_000, "drift") == "cannot tell"
    assert verdict(measured, 200_000, "flow control") == "cannot tell"
    assert verdict(measured, 900_000, "flow control") == "not met"


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
    measured: Result, tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    document = measured.document()
    document["threshold"]["verdict"] = "not met"
    (tmp_path / "summary.json").write_text(json.dumps(document))
    assert run(["report", str(tmp_path)]) == 2
    golden(capsys.readouterr().err.replace(str(tmp_path), "."))
