# SPDX-License-Identifier: Apache-2.0
"""A results folder that contradicts itself is refused with both values; every folder that natgauge writes is read."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pytest
from tests.labs.storms.stored import STORED, figures_of
from tests.labs.storms.storm import Tally
from tests.unit.golden import Golden
from tests.unit.made_comparisons import CONTROL, compared, estimate
from tests.unit.made_corpus import corpus, linked
from tests.unit.made_results import kept_as, made
from tests.unit.mutants import replaced

from natgauge import Result
from natgauge.cli import run


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    with mock.patch("os.fsync"):
        return {path.name: path for path in corpus(tmp_path_factory.mktemp("corpus") / "all")}


def refusal(folder: Path) -> str:
    """The line with which `natgauge report` refuses a folder; empty where it reads it."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as said:
        status = run(["report", str(folder)])
    assert status in {0, 2}
    return said.getvalue().removeprefix("natgauge: ").rstrip("\n") if status else ""


def test_folders_of_every_kind_are_read_as_they_were_written(folders: dict[str, Path]) -> None:
    # One of them is that of a measurement which failed, and has no result to report.
    (failed,) = (path for path in folders.values() if refusal(path))
    assert (failed / "failure.json").exists()


def changed(folder: Path, name: str, change: Callable[[Any], None]) -> str:
    """Change a file, look what `report` says, and change it back."""
    path = folder / name
    before = path.read_bytes()
    lines = path.suffix == ".jsonl"
    document = [json.loads(line) for line in before.splitlines()] if lines else json.loads(before)
    change(document)
    path.write_text("".join(json.dumps(line) + "\n" for line in document) if lines else json.dumps(document))
    try:
        return refusal(folder)
    finally:
        path.write_bytes(before)


@pytest.mark.parametrize(
    ("folder", "name", "change"),
    [
        ("timed", "summary.json", lambda it: it.update(median=120.0)),
        ("timed", "summary.json", lambda it: it.update(mean=-5)),
        ("timed", "summary.json", lambda it: it.update(p1=1e300)),
        ("timed", "summary.json", lambda it: it.update(standard_deviation=-1.0)),
        ("timed", "summary.json", lambda it: it["median_interval"].update(coverage=0.99)),
        ("timed", "summary.json", lambda it: it["trials"].update(PASS=9999)),
        ("timed", "summary.json", lambda it: it.update(disturbed=2)),
        ("timed", "summary.json", lambda it: it.update(limited_by="table")),
        ("timed", "summary.json", lambda it: it.update(metric="pdv")),
        ("timed", "measurements.jsonl", lambda it: it[0].update(value=1.0)),
        ("timed", "measurements.jsonl", lambda it: it.pop()),
        ("timed", "plan.json", lambda it: it.update(connections=5)),
        ("sampled", "trials.jsonl", lambda it: it.pop()),
        ("sampled", "summary.json", lambda it: it["figures"]["full_seconds"].update(median=0.0026)),
        ("sampled", "summary.json", lambda it: it["figures"]["full_seconds"].update(count=6)),
        ("slices", "comparison.json", lambda it: it.update(rounds=40)),
        ("slices", "comparison.json", lambda it: it["slices"].update(interrupted=40)),
        ("slices", "comparison.json", lambda it: it["estimates"][0].update(nanoseconds=1.0)),
        ("slices", "comparison.json", lambda it: it["estimates"][0].update(blocks=1)),
        ("slices", "comparison.json", lambda it: it["estimates"][1].update(low=1.0)),
        ("audit", "audit.json", lambda it: it["requirements"][0]["evidence"]["frames"].append("x")),
        ("audit", "audit.json", lambda it: it["timeouts"].update({"UDP, one frame out": [40.0, 31.4]})),
        ("audit", "audit.json", lambda it: it["requirements"][0]["evidence"].update(file="/etc/x")),
        ("audit", "audit.json", lambda it: it["requirements"].append(it["requirements"][0])),
        ("timed", "summary.json", lambda it: it.update(unit="ms")),
        ("timed", "summary.json", lambda it: it.update(metric="speed")),
        ("timed", "trials.jsonl", lambda it: it[1].update(verdict="PASS")),
        ("timed", "trials.jsonl", lambda it: it[0].update(verdict="FAIL")),
        ("timed", "trials.jsonl", lambda it: it[0].update(trial=2)),
        ("timed", "trials.jsonl", lambda it: it.extend(it[:])),
        ("timed", "trials.jsonl", lambda it: it.append({**it[0], "trial": 3})),
        ("timed", "trials.jsonl", lambda it: it[0].update(verdict="FAIL", reason="x")),
        ("timed", "trials.jsonl", lambda it: it.clear()),
        ("slices", "comparison.json", lambda it: it["estimates"][0].update(verdict="costs less")),
        ("slices", "comparison.json", lambda it: it.update(decided=not it["decided"])),
        ("slices", "comparison.json", lambda it: it.update(above=True)),
        ("rates", "comparison.json", lambda it: it["estimates"][0].update(ratio=1.2501)),
        ("rates", "comparison.json", lambda it: it["estimates"][0].update(verdict="no difference")),
        ("rates", "comparison.json", lambda it: it["estimates"][0].update(blocks=7)),
        ("rates", "comparison.json", lambda it: it["estimates"][0].update(nanoseconds=1.0)),
        ("rates", "comparison.json", lambda it: it["gateways"][1]["rates"].update(new=1e6)),
        ("rates", "comparison.json", lambda it: it["baseline_costs"][0].update(nanoseconds=1.0)),
        ("rates", "comparison.json", lambda it: it.update(rounds=1)),
        ("rates", "rounds.jsonl", lambda it: it[0]["rates"].pop("nat")),
        ("rates", "rounds.jsonl", lambda it: it.clear()),
        ("rates", "rounds.jsonl", lambda it: it[0]["passed"].pop("nat")),
        ("rates", "trials.jsonl", lambda it: it[1].update(gateway="x")),
        ("slices", "rounds.jsonl", lambda it: it.pop()),
        ("slices", "rounds.jsonl", lambda it: it[0]["result"]["blocks"][0].update(ns=[1])),
    ],
)
def test_a_contradiction_is_refused_with_file_field_and_both_values(
    folder: str, name: str, change: Callable[[Any], None], folders: dict[str, Path], golden: Golden
) -> None:
    said = changed(folders[folder], name, change)
    golden(said)
    assert str(folders[folder]) in said
    assert said.endswith(("measure again", "measure again."))


def test_a_ratio_by_rates_that_is_changed_with_its_interval_contradicts_the_rounds(
    folders: dict[str, Path], tmp_path: Path, golden: Golden
) -> None:
    shutil.copytree(folders["rates"], tmp_path / "edited")
    path = tmp_path / "edited" / "comparison.json"
    document = json.loads(path.read_bytes())
    estimate = document["estimates"][0]
    for name in ("ratio", "low", "high"):
        estimate[name] *= 4
    estimate["half_width"] = half_width(estimate)
    path.write_text(json.dumps(document))
    golden(refusal(tmp_path / "edited"))


def half_width(estimate: Any) -> float:
    """Half of an interval as a share of its ratio, or of 1 where that is less."""
    share: float = (estimate["high"] - estimate["low"]) / 2 / max(estimate["ratio"], 1)
    return share


def test_a_doubt_that_follows_from_the_figures_cannot_be_removed(tmp_path: Path, golden: Golden) -> None:
    place = {"placement": "isolated", "device_cores": 1, "receiver_ns": 100.0, "cpu_quota": 1.5, "emulated": True}
    traffic = {"fresh_trials": "no-wait", "search_top_phase2_rate": 1e6}
    trials = {"PASS": 1, "INVALID": 1, "COLLAPSED": 1}
    plain = made([1e6], limited_by="tester", figures={"frames_per_second_total": 2e6}, parameters={**place, **traffic})
    document = {**plain.document(), "trials": trials}
    document["repetitions"][0]["trials"] = trials
    folder = kept_as(tmp_path / "x", Result.from_document(document))
    words = [doubt["word"] for doubt in json.loads((folder / "summary.json").read_text())["doubts"]]
    assert {"tester limited", "single repetition", "CPU quota", "functional", "INVALID trials", "collapsed"} <= {*words}
    assert not refusal(folder)
    for word in words:

        def without(record: Any, word: str = word) -> None:
            record["doubts"] = [each for each in record["doubts"] if each["word"] != word]

        golden(changed(folder, "summary.json", without))


def test_a_doubt_whose_value_is_changed_is_refused(tmp_path: Path, golden: Golden) -> None:
    place = {"placement": "isolated", "device_cores": 1, "receiver_ns": 100.0}
    folder = kept_as(tmp_path / "x", made([1e6], figures={"frames_per_second_total": 2e6}, parameters=place))
    assert not refusal(folder)

    def less(record: Any) -> None:
        (doubt,) = (each for each in record["doubts"] if each["word"] == "tester on device cores")
        doubt["value"] /= 10

    golden(changed(folder, "summary.json", less))


def test_a_share_of_the_link_that_the_parameters_do_not_give_is_refused(tmp_path: Path, golden: Golden) -> None:
    folder = linked(tmp_path / "x")
    assert not refusal(folder)

    def of_64_octets_alone(record: Any) -> None:
        share = record["figures"]["share_of_theoretical_maximum"]
        value = share["median"]
        share.update({name: 1_288_000.0 / (1e9 / 8 / 84) for name, each in share.items() if each == value})

    golden(changed(folder, "summary.json", of_64_octets_alone))
    golden(changed(folder, "summary.json", lambda it: it["figures"].pop("share_of_theoretical_maximum")))


def test_a_sample_that_is_not_finite_is_refused_in_one_line(folders: dict[str, Path], golden: Golden) -> None:
    path = folders["sampled"] / "measurements.jsonl"
    before = path.read_text()
    path.write_text(before.replace("[0.002,", "[1e999,"))
    try:
        golden(refusal(folders["sampled"]))
    finally:
        path.write_text(before)


@pytest.mark.parametrize(
    ("by", "low", "is_read"), [("rates", 0.0, True), ("rates", None, False), ("slices", 0.0, False)]
)
def test_only_by_rates_a_gateway_may_differ_though_the_control_shows_no_noise(
    by: str, low: float | None, *, is_read: bool, tmp_path: Path
) -> None:
    own: dict[str, Any] = {} if by == "slices" else {"slices": None, "forwarding_nanoseconds": {}}
    folder = kept_as(tmp_path / "x", compared([estimate()], [estimate(CONTROL, None, low, None)], by=by, **own))
    said = refusal(folder)
    assert "verdict is costs more" in said if not is_read else not said


@pytest.mark.parametrize("method", ["rates", "slices"])
def test_a_ratio_inside_of_its_interval_is_that_of_the_rounds(
    method: str, folders: dict[str, Path], golden: Golden
) -> None:
    def a_little_more(record: Any) -> None:
        estimate = record["estimates"][0]
        estimate["ratio"] *= 1.001
        estimate["half_width"] = half_width(estimate)

    golden(changed(folders[method], "comparison.json", a_little_more))


def test_a_passed_trial_that_lost_frames_is_refused(folders: dict[str, Path], golden: Golden) -> None:
    def one_less(trials: Any) -> None:
        trials[0]["result"]["phase1"]["received_frames"] -= 1

    golden(changed(folders["timed"], "trials.jsonl", one_less))


def test_a_passed_trial_that_lost_more_than_tolerated_is_refused_with_the_fewest_frames(
    folders: dict[str, Path], golden: Golden
) -> None:
    def eleven_less(trials: Any) -> None:
        trials[0]["plan"]["loss_tolerance"] = 0.1
        trials[0]["result"]["phase1"]["received_frames"] -= 11

    golden(changed(folders["timed"], "trials.jsonl", eleven_less))


@pytest.mark.parametrize("junk", [b"", b"x", b'{"schema":"natgauge-trial-2"}'])
def test_trials_that_are_empty_or_cut_off_are_not_read_as_none(
    junk: bytes, folders: dict[str, Path], golden: Golden
) -> None:
    path = folders["timed"] / "trials.jsonl"
    before = path.read_bytes()
    path.write_bytes(junk)
    try:
        golden(refusal(folders["timed"]))
    finally:
        path.write_bytes(before)


@pytest.mark.parametrize(("name", "value"), [("connections", -3), ("frame_size", -64), ("placement", "elsewhere")])
def test_a_parameter_that_no_input_accepts_is_refused_though_the_plan_has_it_too(
    name: str, value: object, folders: dict[str, Path], tmp_path: Path, golden: Golden
) -> None:
    shutil.copytree(folders["timed"], tmp_path / "edited")
    for file in ("summary.json", "plan.json"):
        path = tmp_path / "edited" / file
        document = json.loads(path.read_bytes())
        groups = [document] if file == "plan.json" else list(document["parameters"].values())
        for group in groups:
            group.update({name: value} if name in group else {})
        path.write_text(json.dumps(document))
    golden(refusal(tmp_path / "edited"))


@pytest.mark.parametrize(
    ("metrics", "unit", "parameters", "figures"),
    [
        (("latency", "pdv"), "us", {}, {"typical_latency_us": 12.0}),
        (("pdv", "ipdv"), "us", {}, {"pdv_us": 12.0}),
        (("ipdv", "latency"), "us", {}, {"ipdv_spread_us": 12.0}),
        (("validated-connection-rate", "connection-rate"), "connections/s", {"alpha": 0.5}, {}),
        (("connection-rate", "expiry"), "connections/s", {"confirm": True}, {}),
        (("stability", "frame-loss"), "%", {"hours": 1.0}, {}),
        (("reset", "system-recovery"), "ms", {"before_seconds": 1.0}, {}),
    ],
)
def test_a_metric_that_is_changed_in_all_files_has_settings_and_figures_of_another(
    metrics: tuple[str, str], unit: str, parameters: dict[str, Any], figures: dict[str, float], tmp_path: Path
) -> None:
    for name, refused in zip(metrics, (False, True), strict=True):
        result = made([12.0], metric=name, unit=unit, parameters=parameters, figures=figures)
        (tmp_path / "summary.json").write_text(json.dumps(result.document()))
        said = refusal(tmp_path)
        assert f"metric is {name}, but" in said if refused else not said


def test_values_that_are_changed_together_contradict_the_rounds(folders: dict[str, Path], golden: Golden) -> None:
    def ten_percent_less(record: Any) -> None:
        for name in ("ratio", "low", "high", "half_width"):
            record["estimates"][0][name] *= 0.9

    golden(changed(folders["slices"], "comparison.json", ten_percent_less))


def test_every_single_figure_of_a_record_is_refused_when_it_is_wrong(folders: dict[str, Path]) -> None:
    for name, file in (("timed", "summary.json"), ("slices", "comparison.json"), ("sampled", "summary.json")):
        path = folders[name] / file
        before = path.read_text()
        document = json.loads(before)
        for place in figures_of(file, document):
            value: Any = document
            for step in place:
                value = value[step]
            path.write_text(json.dumps(replaced(document, place, value * 10 + 1)))
            assert refusal(path.parent), place
        path.write_text(before)


def test_a_document_that_is_nested_too_deeply_is_one_line(folders: dict[str, Path], golden: Golden) -> None:
    deep: Any = 1
    for _ in range(80):
        deep = [deep]
    golden(changed(folders["timed"], "summary.json", lambda it: it["parameters"]["device"].update(x=deep)))


def test_a_count_that_no_data_frame_holds_is_one_line(
    folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    pytest.importorskip("polars")
    document = json.loads((folders["rates"] / "comparison.json").read_bytes())
    document["estimates"][0]["blocks"] = 2**63
    (tmp_path / "comparison.json").write_text(json.dumps(document))
    assert run(["report", str(tmp_path), "--parquet", str(tmp_path / "frames")]) == 2
    golden(capsys.readouterr().err)


def test_files_that_are_missing_contradict_nothing(folders: dict[str, Path], tmp_path: Path) -> None:
    for name in ("timed", "slices"):
        (tmp_path / name).mkdir()
        for file in ("summary.json", "comparison.json"):
            if (folders[name] / file).exists():
                (tmp_path / name / file).write_bytes((folders[name] / file).read_bytes())
        assert not refusal(tmp_path / name)


def test_a_sample_of_the_storm_of_odd_folders_finds_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally(300, Random(3), tmp_path)  # noqa: S311 - nothing secret
    STORED[0].make(tally)
    assert tally.faults == []
    assert tally.seen["refused, one wrong figure"] > 20
    assert tally.seen["refused, edited"] > 5
    assert run(["report", str(tmp_path / "corpus" / "timed")]) == 0
    assert "12.00 us" in capsys.readouterr().out
