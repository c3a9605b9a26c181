# SPDX-License-Identifier: Apache-2.0
"""Results as data: read back as they were written, refused in one line where they are none, doubted where need be."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.counted import make_counts, make_outcome
from tests.unit.golden import Golden
from tests.unit.made_results import doubted_for, grouped, made
from tests.unit.made_settings import alone, stored_alone
from tests.unit.simulated import Gateway
from tests.unit.test_doubtful import doubt, rate

from natgauge.analysis.contrast import left_range
from natgauge.cli import run
from natgauge.doubts import find
from natgauge.doubts.doubt import count_of
from natgauge.measurements.record import make
from natgauge.metrics import metrics
from natgauge.notes import Note, words_of
from natgauge.procedures import procedures
from natgauge.procedures.kit.queues import LONGEST_WAIT_SECONDS
from natgauge.procedures.kit.results import Attempt, Measurement, disturbed_note, make_result, verdict_counts
from natgauge.procedures.tear_down_rate import tear_down
from natgauge.records.measurement import Result
from natgauge.records.parameters import GROUPS, Parameters, describe, descriptions
from natgauge.records.store import Store
from natgauge.reports import csv_table
from natgauge.reports.graded_doubts import graded
from natgauge.reports.main_figure import in_summary
from natgauge.reports.rows import rows
from natgauge.reports.text import table, verdict
from natgauge.stored.find_results import read_summary
from natgauge.words import LimitedBy, Verdict

Change = Callable[[dict[str, Any]], object]

ONE_PASSED = {Verdict.PASS: 1, Verdict.INVALID: 0}


def measured(
    values: list[float],
    *,
    limited_by: LimitedBy = "device",
    trials: dict[Verdict, int] | None = None,
    error: float = 1.0,
    metric: str = "throughput",
    parameters: Parameters | None = None,
    **each: Any,
) -> Result:
    """A result of these repetitions; what else is given each of them has."""
    counts = dict.fromkeys(Verdict, 0) | {Verdict.PASS: 3, Verdict.FAIL: 2} | (trials or {})
    repetitions = [Measurement(value, value + error, limited_by, counts, **each) for value in values]
    unit = procedures()[metric].unit
    return make(make_result(metric, unit, {}, repetitions), parameters or Parameters())


def tried(value: float, upper: float | None, *kinds: tuple[int, str, dict[str, bool]], notes: Any = ()) -> Measurement:
    """A repetition with so many trials of each verdict, each of which is `excused` or `disturbed`."""
    none = make_counts(intended=0, offered=0, received=0)
    attempts = tuple(
        Attempt(1.0, short=False, outcome=make_outcome(verdict, "" if verdict == "PASS" else "why", none, **how))
        for number, verdict, how in kinds
        for _ in range(number)
    )
    return Measurement(value, upper, "device", verdict_counts(attempts), attempts=attempts, notes=notes)


EXCUSED = {"excused": True}


def stored(folder: Path, change: Change = lambda _: None) -> Path:
    document = made([3.0, 1.0, 2.0], median=2.0, parameters={"seed": 7}).document()
    change(document)
    store = Store(folder)
    store._write("summary.json", document)
    return folder


def test_repetitions_that_were_limited_otherwise_than_most_are_told(golden: Golden) -> None:
    """Two of five were the tester's, and nothing said so."""
    gateway = Gateway(establishes=1e6, ceiling=1.12e6, noise=0.06, seed=1)
    result = stored_alone("connection-rate", gateway, connections=100_000, repeat=5)
    limits = Counter(one.limited_by for one in result.repetitions)
    assert set(limits) == {"device", "tester"}
    (doubt,) = (doubt for doubt in result.doubts if doubt.word == "several limits")
    golden(doubt.text)


def test_what_was_run_is_stored_and_read_back_the_same(tmp_path: Path) -> None:
    measurement = alone("connection-rate", Gateway(establishes=500_000, noise=0.02), repeat=3)
    asked = Parameters.grouped(settings={"connections": 1000, "frame_timeout_seconds": None}, device={"gateway": "x"})
    found = make(measurement, asked, "here")
    assert found.parameters.settings["frame_timeout_seconds"] == LONGEST_WAIT_SECONDS
    assert found.parameters.traffic["connections"] == 1000
    assert found.parameters.device == {"gateway": "x"}
    assert found.values == measurement.values
    assert [one.error for one in found.repetitions] == [one.error for one in measurement.measurements]
    assert [one.trials for one in found.repetitions] == [dict(one.trials) for one in measurement.measurements]
    Store(tmp_path).write_summary(found.document())
    assert read_summary(tmp_path).document() == found.document()
    assert json.loads((tmp_path / "summary.json").read_text())["schema"] == "natgauge-summary-7"


WRONG: list[tuple[str, Change, str]] = [
    ("a field that nobody knows", lambda d: d.update(medain=1.0), "medain"),
    ("a field that is missing", lambda d: d.pop("unit"), "unit: Field required"),
    ("a group that nobody knows", lambda d: d["parameters"].update(weather={}), "parameters.weather"),
    ("a number that is a text", lambda d: d.update(median="2.0"), "median: '2.0': Input should be a valid number"),
    ("a word outside of its set", lambda d: d.update(limited_by="the moon"), "limited_by: 'the moon'"),
    ("a verdict that is none", lambda d: d.update(trials={"MAYBE": 1}), "trials.MAYBE"),
    ("a count below 0", lambda d: d["trials"].update(PASS=-1), "trials.PASS: -1"),
    ("no repetition", lambda d: d.update(repetitions=[]), "repetitions"),
    ("a broken repetition", lambda d: d["repetitions"][1].pop("limited_by"), "repetitions.1.limited_by"),
    ("an extreme of other repetitions", lambda d: d.update(maximum=9.0), "maximum 9"),
    ("a median that cannot be", lambda d: d.update(median=9.0), "median 9"),
    ("a name in two groups", lambda d: d["parameters"]["device"].update(seed=8), "'seed' is in two groups"),
    ("an earlier schema", lambda d: d.update(schema="natgauge-summary-6"), "natgauge-summary-6"),
    ("a note that is text", lambda d: d.update(notes=["x"]), "notes.0"),
    ("a note of an unknown word", lambda d: d.update(notes=[{"word": "x", "text": "x"}]), "notes.0.word"),
    ("no schema", lambda d: d.pop("schema"), "schema None"),
]


def refused(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line with which `report` refuses a folder."""
    assert run(["report", str(path)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    (line,) = shown.err.splitlines()
    return line


@pytest.mark.parametrize(("change", "says"), [one[1:] for one in WRONG], ids=[one[0] for one in WRONG])
def test_a_summary_that_is_none_is_refused_in_one_line(
    change: Change, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused(stored(tmp_path, change), capsys)
    assert [each for each in (str(tmp_path / "summary.json"), says, "measure again") if each not in line] == []


@pytest.mark.parametrize(
    "octets",
    [b"", b"{", b'{"schema": "natgauge-summary-2", "med', b"\xff\xfe", b"[" * 100_000, b'{"schema": NaN}', b"[1]"],
    ids=["empty", "cut off", "cut off in a name", "no text", "deep", "no number", "a list"],
)
def test_a_damaged_file_is_refused_in_one_line(
    octets: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "summary.json").write_bytes(octets)
    line = refused(tmp_path, capsys)
    assert [each for each in (str(tmp_path / "summary.json"), "measure again") if each not in line] == []


@pytest.mark.parametrize(
    "make_folder",
    [
        lambda _: None,
        lambda path: path.write_text("{}"),
        lambda path: path.mkdir(),
        lambda path: (path.mkdir(), (path / "plan.json").write_text("{}")),
    ],
    ids=["nothing", "a file", "another folder", "a broken off measurement"],
)
def test_a_folder_that_is_no_result_is_refused_and_says_why(
    make_folder: Callable[[Path], object], tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    path = tmp_path / "x"
    make_folder(path)
    line = refused(path, capsys)
    assert str(path) in line
    golden(line)


def test_every_setting_of_every_procedure_is_described_with_its_unit() -> None:
    for procedure in procedures().values():
        for setting in procedure.inputs():
            described = describe(setting.name)
            assert described.name in descriptions() or described.unit == setting.unit
            assert described.group in GROUPS


def test_a_parameter_that_is_a_whole_number_has_all_its_digits() -> None:
    result = made([1.0], parameters={"connections": 2**53 + 1})
    assert result.number("connections") == 2**53 + 1


SIMULATED = [
    "connection-rate", "validated-connection-rate", "throughput", "frame-loss", "latency", "pdv", "enumeration-orders",
]  # fmt: skip


@pytest.mark.parametrize("placement", ["shared", "isolated", "external"])
@pytest.mark.parametrize("metric", SIMULATED)
def test_the_time_limits_told_are_those_of_the_trials(metric: str, placement: Any) -> None:
    gateway = Gateway(placement=placement)
    found = stored_alone(metric, gateway, connections=10_000)
    names = {"frame_timeout_seconds", "connection_rate_timeout_seconds"} & set(found.parameters.settings)
    assert {plan.frame_timeout_seconds for plan in gateway.plans} == {found.parameter(name) for name in names}


def words(result: Result) -> list[str]:
    return [doubt.word for doubt in result.doubts]


@pytest.mark.parametrize(
    ("values", "facts", "word"),
    [
        ([100.0], {}, "single repetition"),
        ([100.0, 101.0, 99.0], {}, None),
        ([100.0, 95.5], {"error": 3.0}, None),
        ([103.0, 100.0, 97.5], {"error": 3.0}, "wide spread"),
        ([100.0, 94.0], {}, "wide spread"),
        # Little, but more than the errors of their searches explain.
        ([100.0, 97.0], {"error": 0.1}, "wide spread"),
        ([100.0, 106.0, 100.0], {}, "wide spread"),
        ([100.0, 93.0, 100.0], {}, "wide spread"),
        ([0.0, 0.0, 5.0], {}, "wide spread"),
        ([100.0, 100.0], {"limited_by": "tester"}, "tester limited"),
        ([100.0, 100.0], {"limited_by": "host"}, "host limited"),
        ([100.0, 100.0], {"trials": {"INVALID": 4}}, "INVALID trials"),
        ([100.0, 100.0], {"limited_by": "ranges"}, "range limited"),
    ],
)
def test_what_makes_a_figure_doubtful_is_found_from_the_facts(
    values: list[float], facts: dict[str, Any], word: str | None, golden: Golden
) -> None:
    found = measured(values, **facts)
    assert words(found) == ([] if word is None else [word])
    golden([doubt.text for doubt in found.doubts])
    assert word is None or word in verdict(found)


@pytest.mark.parametrize(("kept", "is_all"), [(600_000.0, True), (500_000.0, False)])
def test_a_table_that_kept_all_that_was_asked_for_says_so(kept: float, *, is_all: bool) -> None:
    """Seen: "the ranges of the measurement ended the search", where 600,000 of 600,000 connections fitted."""
    full = [Measurement(kept, kept, "ranges", dict.fromkeys(Verdict, 0) | {Verdict.PASS: 3})] * 2
    asked = Parameters.grouped(traffic={"connections": 600_000})
    found = make(make_result("table-capacity", "connections", {}, full), asked)
    (doubt,) = found.doubts
    assert (doubt.word, "all 600,000 connections" in doubt.text) == ("range limited", is_all)
    assert left_range(found) == (kept, math.inf)


ON_DEVICE_CORES = {"placement": "isolated", "receiver_ns": 100.0, "device_cores": 2}


@pytest.mark.parametrize(
    ("changed", "limited_by", "doubted"),
    [
        ({}, "device", True),
        ({"device_cores": 1}, "time", True),
        ({"receiver_ns": 20.0}, "device", True),
        ({"receiver_ns": 19.9}, "device", False),
        ({}, "tester", False),
        ({}, "table", False),
        ({"receiver_ns": None}, "device", True),
        ({"placement": "shared", "receiver_ns": None}, "device", False),
        ({"placement": "external", "receiver_ns": None}, "device", False),
    ],
)
def test_what_the_tester_takes_of_an_isolated_devices_cores_is_told(
    changed: dict[str, Any], limited_by: LimitedBy, *, doubted: bool, golden: Golden
) -> None:
    """`isolated` figures were called absolute while the device's cores did the tester's receive work unsaid."""
    found = measured([1e6, 1e6], limited_by=limited_by, parameters=grouped({**ON_DEVICE_CORES, **changed}))
    texts = [doubt.text for doubt in found.doubts if doubt.word == "tester on device cores"]
    assert len(texts) == doubted
    golden(texts)
    for shown in (verdict(found), table([found])):
        assert all(text in shown for text in texts)
    assert ("tester on device cores" in csv_table.table([found])) == doubted


def test_all_directions_share_the_devices_cores(golden: Golden) -> None:
    both = measured(
        [1e6, 1e6], error=0.0, figures={"frames_per_second_total": 2e6}, parameters=grouped(ON_DEVICE_CORES)
    )
    golden(verdict(both))


@pytest.mark.parametrize("metric", sorted(procedures()))
def test_a_rate_that_is_told_too_low_is_one_of_frames(metric: str) -> None:
    found = measured([1e6, 1e6], metric=metric, parameters=grouped(ON_DEVICE_CORES))
    # Connections that are forgotten at a rate need no frame.
    rates = {"connections/s", "frames/s", "queries/s", "transactions/s"}
    of_frames = found.unit in rates and metric not in ("tear-down-rate", "expiry")
    assert ("too low" in verdict(found)) is of_frames


@pytest.mark.parametrize("metric", ["latency", "frame-loss", "enumeration-orders", "tear-down-rate"])
def test_where_the_figure_is_no_rate_of_frames_the_testers_time_alone_is_told(metric: str, golden: Golden) -> None:
    one = Measurement(5.0, None, "device", ONE_PASSED)
    golden(verdict(make(make_result(metric, "us", {}, [one, one]), grouped(ON_DEVICE_CORES))))


def test_what_an_emulated_device_did_is_stamped_whatever_else_is_doubtful(golden: Golden) -> None:
    plain = measured([100.0, 100.0], parameters=Parameters.grouped(place={"emulated": False}))
    assert not plain.functional
    assert "functional" not in verdict(plain)
    found = measured([100.0], parameters=Parameters.grouped(place={"emulated": True}))
    assert words(found) == ["functional", "single repetition"]
    assert found.functional
    first, *others = verdict(found).splitlines()
    assert "without loss (functional, not performance): " in first
    golden(others)
    assert found.document()["doubts"][0]["word"] == "functional"
    tester = measured([100.0], parameters=Parameters.grouped(place={"cpu": "QEMU TCG CPU version 2.5+"}))
    assert tester.functional
    golden(verdict(tester))


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"placement": "shared", "own_processes": True}, 1),
        ({"placement": "shared"}, 0),
        ({"placement": "isolated", "own_processes": True, "receiver_ns": 1.0, "device_cores": 1}, 0),
    ],
)
def test_a_process_that_takes_turns_with_the_sender_is_told(
    parameters: dict[str, Any], told: int, golden: Golden
) -> None:
    """Of tayga in `shared` placement 27 of 40 trials were INVALID, and the figure looked like any other."""
    found = measured([100.0, 100.0], parameters=Parameters.grouped(place=parameters))
    assert words(found).count("taking turns") == told
    golden(verdict(found))


@pytest.mark.parametrize("beside", [1, 3, None])
def test_a_machine_that_others_measured_on_is_told(beside: int | None, golden: Golden) -> None:
    place: dict[str, Any] = {"placement": "shared"} if beside is None else {"placement": "shared", "beside": beside}
    found = measured([100.0, 100.0], parameters=Parameters.grouped(place=place))
    told = [doubt.text for doubt in found.doubts if doubt.word == "machine shared"]
    assert len(told) == (beside is not None)
    golden(told)


def test_a_dip_that_only_some_repetitions_fall_into_is_a_finding(golden: Golden) -> None:
    """200,000/s fails, 207,000/s passes: one repetition in three found the dip; before, nobody was told of it."""
    gateway = Gateway(passes=lambda rate: rate <= 208_000 and not 180_000 <= rate <= 200_400)
    found = stored_alone("connection-rate", gateway, connections=100_000, repeat=8)
    assert min(found.values) < 180_000
    assert max(found.values) > 205_000
    assert "wide spread" in words(found)
    golden(next(doubt.text for doubt in found.doubts if doubt.word == "wide spread"))
    golden(verdict(found))


def test_disturbances_are_doubts() -> None:
    gateway = Gateway(establishes=500_000, placement="shared", disturbed=0.3)
    found = stored_alone("connection-rate", gateway, repeat=2)
    assert found.disturbed > 0
    assert "disturbed trials" in words(found)


def test_a_tear_down_rate_that_its_times_do_not_bear_out_is_doubted(golden: Golden) -> None:
    _, _, notes = tear_down(1000, [0.015, 0.018, 0.012], [0.013, 0.014, 0.012])
    one = Measurement(5e5, None, "device", ONE_PASSED, notes=tuple(notes))
    found = make(make_result("tear-down-rate", "connections/s", {}, [one, one]), Parameters())
    (doubt,) = found.doubts
    assert doubt.word == "unreliable"
    golden(doubt.text)
    assert "unreliable" in verdict(found)


def test_loads_that_passed_and_failed_are_a_doubt() -> None:
    one = Measurement(5.0, None, "device", ONE_PASSED, notes=(Note("contradictions", "5 passed and failed"),))
    (doubt,) = make(make_result("x", "frames/s", {}, [one, one]), Parameters()).doubts
    assert (doubt.word, doubt.text[:1]) == ("contradictions", "1")


@pytest.mark.parametrize(
    ("passed", "excused", "upper", "word"),
    [
        (30, 0, 7.0, None),
        (23, 7, 7.0, "excused trials"),
        (20, 10, 7.0, "excused trials"),
        (20, 11, 7.0, "undecided"),
        (0, 11, None, "undecided"),
    ],
)
def test_excused_trials_are_told_and_too_many_decide_nothing(
    passed: int, excused: int, upper: float | None, word: str | None, golden: Golden
) -> None:
    one = tried(5.0, upper, (passed, "PASS", {}), (excused, "INVALID", EXCUSED))
    found = make(make_result("x", "frames/s", {}, [one, one]), Parameters()).doubts
    told = [doubt for doubt in found if doubt.word in {"excused trials", "undecided"}]
    assert [doubt.word for doubt in told] == ([] if word is None else [word])
    golden(told)
    assert any("excused" in note.text for note in disturbed_note([one])) == bool(excused)


@pytest.mark.parametrize("brief", [False, True])
@pytest.mark.parametrize(("passed", "excused"), [(10, 3), (10, 9)])
def test_what_disturbances_did_to_trials_is_said_once(
    passed: int, excused: int, *, brief: bool, golden: Golden
) -> None:
    """Seen: 18 excused, 18 INVALID and 26 disturbed trials of 34 in three lines and two lists."""

    def lines_of(*kinds: tuple[int, str, dict[str, bool]]) -> list[str]:
        found = find(make_result("x", "frames/s", {}, [tried(5.0, 7.0, *kinds)] * 2), Parameters())
        assert {"INVALID trials", "disturbed trials"} <= {doubt.word for doubt in found}
        return graded([("a", found)], lambda _: "", brief=brief)

    stalled = {"disturbed": True}
    lines = lines_of((passed, "PASS", stalled), (excused, "INVALID", {**EXCUSED, **stalled}))
    golden("\n".join(lines))
    assert sum("trials" in line for line in lines) == 1
    # Where disturbances are not known of each excused trial, each number is said.
    others = lines_of((1, "PASS", stalled), (excused, "INVALID", EXCUSED))
    assert "INVALID trials" in "\n".join(others)


def test_a_wide_spread_names_every_doubt_that_is_one_of_its_causes() -> None:
    """A summary leaves these doubts out beside it, and has no other place for them."""
    kinds = (30, "PASS", {"disturbed": True}), (2, "INVALID", EXCUSED)
    both = [tried(value, value, *kinds, notes=(Note("contradictions", "x", 5),)) for value in (5.0, 7.0)]
    texts = {doubt.word: doubt.text for doubt in find(make_result("x", "frames/s", {}, both), Parameters())}
    assert words_of(lambda doubt: doubt.cause_of == "wide spread") <= texts.keys()
    # Excused trials are INVALID ones.
    causes = ("of 64 trials 60 were disturbed and 4 were INVALID", "loads passed")
    assert [cause for cause in causes if cause not in texts["wide spread"]] == []


UNDECIDED: Any = (1, "PASS", {}), (1, "INVALID", EXCUSED)


def test_the_interval_that_disturbances_leave_of_drawn_frames_is_one_of_frames() -> None:
    result = make_result("connection-rate", "connections/s", {}, [tried(5.0, 7.0, *UNDECIDED)] * 2)
    (doubt,) = (each for each in find(result, grouped({"order": "with-replacement"})) if each.word == "undecided")
    assert doubt.text.startswith("its searches leave between 5 and 7 frames/s of drawn four tuples: ")


@pytest.mark.parametrize(("directions", "of"), [("both", "in each direction"), ("up", "from inside")])
def test_the_first_line_contains_the_interval_that_disturbances_leave(directions: str, of: str) -> None:
    """Seen: 226 k frames/s in each direction in the first line, "and 225 k frames/s" in the doubt."""
    every = [tried(205_900.0, 225_100.0, *UNDECIDED), tried(206_000.0, 224_000.0, *UNDECIDED)]
    parameters = grouped({"directions": directions, "placement": "isolated"})
    result = make(make_result("throughput", "frames/s", {}, every), parameters)
    (doubt,) = (each for each in result.doubts if each.word == "undecided")
    assert doubt.text.startswith(f"its searches leave between 205 k and 226 k frames/s {of}: ")
    # Its lower end is where another run is expected, as that of an interval.
    assert f"between 186 k and 226 k frames/s {of}" in verdict(result).splitlines()[0]


def test_numbers_of_repetitions_that_differ_are_written_as_everywhere() -> None:
    """Seen: "connection table limit 2670672" in a doubt, and 2,670,672 in a table."""
    several = grouped({"table_size": {"several": [2_670_672, 262_144]}})
    (doubt,) = doubted_for("mixed", several)
    assert doubt.text.endswith("connection table limit 2,670,672, then 262,144")
    mixed = made([1e5], parameters={"table_size": several.get("table_size")})
    (row,) = (row for row in rows([mixed]) if row.label == "connection table limit")
    assert row.printed == ["several 2,670,672 262,144"]


@pytest.mark.parametrize(
    ("placement", "limit", "connections", "doubtful"),
    [("isolated", None, 1000, True), ("isolated", 0.0001, 100_000, False), ("shared", 0.02, 100_000, False)],
)
def test_short_trials_behind_a_queue_are_doubted(
    placement: Any, limit: float | None, connections: int, *, doubtful: bool
) -> None:
    gateway = Gateway(establishes=500_000, placement=placement)
    given: dict[str, Any] = {"connections": connections, "repeat": 2, "frame_timeout_seconds": limit}
    found = stored_alone("connection-rate", gateway, **given)
    assert ("queues" in words(found)) is doubtful


@pytest.mark.parametrize("value", ["x", -1, 1e300, 10**400, True, None, [1, "a"], {"a": {"b": 1}}])
def test_parameters_of_another_kind_are_shown_as_they_are(value: Any) -> None:
    names = ("connections", "hash_size", "device_cores", "device_cpus", "gateway", "placement", "error")
    odd, plain = made([1.0], parameters=dict.fromkeys(names, value)), made([1.0])
    assert verdict(odd)
    assert len(csv_table.table([odd, plain]).splitlines()) == 3
    assert len({len(line) for line in table([odd, plain]).splitlines() if not line.startswith("Column")}) == 1


def test_repetitions_that_drift_are_a_doubt_and_scattered_ones_are_none(golden: Golden) -> None:
    found = {doubt.word: doubt.text for doubt in measured([100.0 + number for number in range(10)]).doubts}
    assert "lag-1 autocorrelation 0.80" in found["autocorrelated"]
    golden(found["drift"])
    scattered = [100.0, 104.0, 101.0, 103.0, 100.0, 104.0, 101.0, 103.0, 100.0, 104.0]
    assert not {"autocorrelated", "drift"} & set(words(measured(scattered)))


@pytest.mark.parametrize(("repetitions", "drifts"), [(5, False), (6, True), (20, True)])
def test_repetitions_that_fall_with_time_are_a_doubt_from_six_on(
    repetitions: int, *, drifts: bool, golden: Golden
) -> None:
    found = measured([100.0 - number for number in range(repetitions)])
    texts = [one.text for one in found.doubts if one.word == "drift"]
    assert len(texts) == drifts
    golden(texts)


def test_each_further_figure_is_a_summary_over_the_repetitions_that_have_it() -> None:
    each = [{"C": 10.0, "alpha": 0.8}, {"C": 30.0, "alpha": 0.4}, {"C": 20.0}]
    measured = make_result("m", "x", {}, [Measurement(1.0, None, "device", {}, figures=figures) for figures in each])
    found = make(measured, grouped({})).figures
    assert (found["C"].median, found["C"].minimum, found["C"].maximum, found["C"].count) == (20, 10, 30, 3)
    assert (found["C"].mean, found["C"].standard_deviation) == (20, 10)
    # No trial was run with 0.6.
    assert (found["alpha"].median, found["alpha"].count) == (0.4, 2)


def test_experiments_that_the_time_left_out_were_planned_and_not_made() -> None:
    cut = made(
        [1e6],
        metric="tear-down-rate",
        unit="connections/s",
        figures={"full_seconds": [0.2, 0.3, 0.25, 0.2]},
        parameters={"sample": 10, "repeat": 1},
    )
    told = {row.label: row.printed for row in rows([cut])}
    assert (told["number of experiments"], told["experiments planned"]) == (["4"], ["10"])


def test_a_note_shows_its_word_where_it_is_a_reason_for_doubt(golden: Golden) -> None:
    golden(str(Note("undecided", "above 5 frames/s")))
    assert str(Note("method", "MLRsearch")) == "MLRsearch"


def test_counts_of_one_word_add_up() -> None:
    notes = [Note("contradictions", "a", 2), Note("trials", "b", 7), Note("contradictions", "c")]
    assert (count_of(notes, "contradictions"), count_of(notes, "undecided")) == (3, 0)


def test_a_metric_has_a_best_gateway_where_it_says_which_values_are_better() -> None:
    assert {name for name, metric in metrics().items() if metric.best and metric.better is None} == set()
    assert any(metric.better is None for metric in metrics().values())


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
