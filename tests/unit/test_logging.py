# SPDX-License-Identifier: Apache-2.0
"""Logs of gateways: compared in trials, judged, and declared by recipes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.plans import OneTrial, PlanOfTrial
from tests.unit.counted import change_trial
from tests.unit.fake_engine import FakeEngine
from tests.unit.golden import Golden
from tests.unit.test_log_join import EVENTS, entry, record
from tests.unit.test_measurer import AROUND, SETTINGS, FakeLab, FakeTable, Recorder
from tests.unit.test_verdicts import CLEAN, lossy

from natgauge.agreement.generated import TrialRequest, TrialResult
from natgauge.cli import run
from natgauge.comparisons.request import read_gateways
from natgauge.errors import BrokenError, NatgaugeError, OverrunError, UsageError
from natgauge.gateways.logging_ways import LoggingWay
from natgauge.gateways.recipe import available, load
from natgauge.gateways.ways import logged
from natgauge.host.cpus import as_if
from natgauge.inputs.question import TrafficOptions
from natgauge.labs.contract import CommandResult
from natgauge.log_counts import LogCounts, LogError
from natgauge.procedures.kit.result.device_figures import with_device_figures
from natgauge.procedures.kit.result.results import Attempt, Measurement
from natgauge.setup.setup import Setup
from natgauge.setup.traffic import make_plan
from natgauge.trial import connection_log
from natgauge.trial.bench import Bench
from natgauge.trial.connection_log import ConnectionLog, LogFile
from natgauge.trial.lab_measurer import MOST_SILENT, LabMeasurer
from natgauge.trial.question import ask
from natgauge.trials import Phase2Plan
from natgauge.verdicts import Limits, judge
from natgauge.words import Verdict

# The verdict


def verdict(log: LogCounts, tolerance: float = 0.0, **others: Any) -> OneTrial:
    return judge(change_trial(CLEAN, log=log, placement="shared", **others), Limits(log_tolerance=tolerance))


LACKING = LogCounts(connections=100_000, records=99_000, octets=12_000_000, lost=1000)


def test_a_trial_whose_log_lacks_a_connection_fails_for_its_log(golden: Golden) -> None:
    assert verdict(replace(LACKING, lost=0)).verdict is Verdict.PASS
    failed = verdict(replace(LACKING, lost=1))
    assert (failed.verdict, failed.limited_by, failed.failed_phase) == (Verdict.FAIL, "log", 1)
    golden(failed.reason)
    assert failed.cause is not None
    assert (failed.cause.kind, failed.cause.certainty, failed.cause.counter) == ("log", "seen", "")


def test_a_wrong_record_fails_a_trial_too_and_a_duplicate_is_a_remark(golden: Golden) -> None:
    failed = verdict(replace(LACKING, lost=0, wrong=2))
    assert (failed.verdict, failed.limited_by) == (Verdict.FAIL, "log")
    odd = verdict(replace(LACKING, lost=0, duplicate=3, late=2, unparsed=1, unparsed_line="Ö?", outside_named=False))
    assert odd.verdict is Verdict.PASS
    golden("\n".join([failed.reason, *odd.remarks]))


def test_stalls_that_explain_all_missing_records_spoil_a_trial_and_those_that_explain_some_do_not(
    golden: Golden,
) -> None:
    excused = verdict(replace(LACKING, excused=1000))
    assert (excused.verdict, excused.limited_by, excused.excused) == (Verdict.INVALID, "host", True)
    golden(excused.reason)
    assert verdict(replace(LACKING, excused=999)).verdict is Verdict.FAIL
    assert verdict(replace(LACKING, excused=999), 0.001).verdict is Verdict.INVALID
    assert verdict(replace(LACKING, excused=1000, wrong=1)).verdict is Verdict.FAIL


def test_a_tolerated_share_of_the_log_may_be_missing_and_is_told(golden: Golden) -> None:
    passed = verdict(LACKING, 0.01)
    assert passed.verdict is Verdict.PASS
    failed = verdict(LACKING, 0.0099)
    golden("\n".join([*passed.remarks, failed.reason]))


def test_dropped_records_of_the_socket_are_the_evidence(golden: Golden) -> None:
    failed = verdict(LACKING, faults={"log_drops": 990})
    assert failed.cause is not None
    # A message of IPFIX has several records, that of a block many connections: 990 are no number of these.
    assert (failed.cause.counter, failed.cause.frames, failed.cause.lost) == ("log_drops", 0, 1000)
    golden(f"{failed.reason}\n{failed.cause.words}\n{failed.cause.remedy}")


@pytest.mark.parametrize("log", [{"log": LACKING}, {"log_error": LogError("dropped", "tester")}], ids=list)
def test_lost_frames_come_before_a_log_that_lacks_records_or_was_not_compared(log: dict[str, Any]) -> None:
    failed = judge(change_trial(CLEAN, **log, placement="shared", phase1=lossy(10)), Limits())
    assert (failed.verdict, failed.limited_by) == (Verdict.FAIL, "device")


def figures_of(trials: Mapping[float, LogCounts]) -> Mapping[str, float]:
    """Figures of a search that ended at 500, of the logs of its trials by their loads."""
    attempts = tuple(Attempt(load, short=False, outcome=verdict(log, 0.001)) for load, log in trials.items())
    repetition = Measurement(value=500.0, upper=800.0, limited_by="log", trials={}, attempts=attempts)
    return with_device_figures(repetition).figures


def test_a_lucky_trial_above_the_answer_decides_no_figure() -> None:
    answer, lucky = (replace(LACKING, records=100_000, lost=0, wrong=wrong) for wrong in (3, 0))
    assert figures_of({500.0: answer, 800.0: LACKING, 900.0: lucky})["log_wrong"] == 3


def test_the_figures_are_those_of_the_deciding_trial() -> None:
    whole = replace(LACKING, records=100_010, lost=0, duplicate=10, delay_p50_ms=0.5, delay_p999_ms=4.0)
    figures = figures_of({400.0: whole, 500.0: replace(whole, wrong=3), 800.0: LACKING})
    assert {name: value for name, value in figures.items() if name.startswith("log_")} == {
        "log_records_per_connection": 1.0001,
        "log_octets_per_connection": 120.0,
        "log_delay_p50_ms": 0.5,
        "log_delay_p999_ms": 4.0,
        "log_lost_percent": 0.0,
        "log_wrong": 3.0,
    }


# A trial with a log


@dataclass
class LogDevice:
    """Runs snippets in a folder of this machine."""

    folder: Path
    here: bool = True
    ran: list[str] = field(default_factory=list)

    @property
    def machine(self) -> Any:
        return SimpleNamespace(has_tester_files=self.here)

    @property
    def environment(self) -> dict[str, str]:
        return {"NG_WORK": str(self.folder)}

    def run(self, snippet: str, **_others: object) -> CommandResult:
        self.ran.append(snippet)
        made = subprocess.run(
            ["/bin/sh", "-euc", snippet], env={"PATH": "/usr/bin:/bin", **self.environment}, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        return CommandResult(made.returncode, made.stdout, made.stderr, 0.0)


@dataclass
class LoggingEngine(FakeEngine):
    """Writes the list of connections, while the device logs them through `filtered`."""

    log: Path = Path()
    filtered: Callable[[list[str]], list[str]] = list

    def __call__(self, request: TrialRequest, *others: Any) -> TrialResult:
        if request.connections_file is not None:
            entries = [entry(number) for number in range(request.connections)]
            Path(request.connections_file).write_bytes(b"".join(entries))
        lines = self.filtered([record(number) for number in range(request.connections)])
        with self.log.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)
        return super().__call__(request, *others)


#: Seconds, in place of whole ones.
QUIET = 0.4


@pytest.fixture
def logging(tmp_path: Path, clock: Clock) -> Callable[..., LabMeasurer]:
    def made(filtered: Callable[[list[str]], list[str]] = list, *, here: bool = True, tolerance: float = 0.0) -> Any:
        (tmp_path / EVENTS.records).write_text("a line of an earlier trial\n")
        engine = LoggingEngine(log=tmp_path / EVENTS.records, filtered=filtered)
        device: Any = LogDevice(tmp_path, here)
        table: Any = FakeTable(engine)
        way = EVENTS.model_copy(update={"quiet_seconds": QUIET})
        log = ConnectionLog(device, "conntrack-events", way, 2.0, tolerance, sleep=clock.sleep)
        traffic = make_plan(TrafficOptions(connections=200), AROUND)
        return LabMeasurer(
            place=FakeLab(), device=table, traffic=traffic, settings=SETTINGS, recorder=Recorder(),
            runner=engine, log=log,
        )  # fmt: skip

    return made


PLAN = PlanOfTrial(200, 1000.0)


@pytest.mark.parametrize("here", [True, False], ids=["on this machine", "on another one"])
def test_a_trial_is_compared_with_its_own_log(logging: Callable[..., LabMeasurer], *, here: bool) -> None:
    measurer = logging(here=here)
    trial = measurer.measure(PLAN)
    log = trial.readings.log
    assert (trial.verdict, trial.reason) == (Verdict.PASS, "")
    assert log is not None
    assert (log.connections, log.records, log.is_odd) == (200, 200, False)
    assert (log.delay_p50_ms is not None) is here
    recorder: Any = measurer.recorder
    assert recorder.trials[-1]["log"]["records"] == 200
    assert "connections_file" not in {name for name, value in recorder.trials[-1]["request"].items() if value}


def test_a_log_that_lacks_each_hundredth_record_is_found_and_tolerated_up_to_its_share(
    logging: Callable[..., LabMeasurer],
) -> None:
    def dropping(lines: list[str]) -> list[str]:
        return [line for number, line in enumerate(lines, 1) if number % 100]

    trial = logging(dropping).measure(PLAN)
    assert (trial.verdict, trial.limited_by) == (Verdict.FAIL, "log")
    assert trial.readings.log is not None
    assert trial.readings.log.lost == 2
    assert logging(dropping, tolerance=0.01).measure(PLAN).verdict is Verdict.PASS


class Clock:
    """Time that passes only while a log sleeps, with what comes later."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, Callable[[], None]]] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        come, self._due = (
            [do for at, do in self._due if at <= self.now],
            [one for one in self._due if one[0] > self.now],
        )
        for do in come:
            do()

    def later(self, seconds: float, do: Callable[[], None]) -> None:
        self._due.append((self.now + seconds, do))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    own = Clock()
    monkeypatch.setattr(connection_log, "time", own)
    return own


def test_records_of_frames_before_a_trial_are_waited_for_and_are_none_of_the_trial(
    logging: Callable[..., LabMeasurer], tmp_path: Path, clock: Clock
) -> None:
    def earlier() -> None:
        with (tmp_path / EVENTS.records).open("a") as file:
            file.writelines(f"{record(number)}\n" for number in range(100))

    measurer = logging(lambda lines: lines[1:])
    clock.later(QUIET / 4, earlier)
    log = measurer.measure(PLAN).readings.log
    assert log is not None
    assert (log.lost, log.duplicate) == (1, 0)


@pytest.mark.parametrize("periods", [None, 2])
def test_ends_of_connections_that_the_emptied_table_had_are_none_of_the_trial(
    logging: Callable[..., LabMeasurer], tmp_path: Path, periods: int | None, clock: Clock
) -> None:
    """Seen: octets for each connection of two records, where a gateway logs begin and end, and the end came late."""
    measurer = logging()
    assert measurer.device is not None
    emptied = measurer.device.empty

    def ends() -> None:
        with (tmp_path / EVENTS.records).open("a") as file:
            file.writelines("end of it\n" for _ in range(200))

    def empty() -> None:
        emptied()
        clock.later(QUIET / 2, ends)

    measurer.device.empty = empty  # type: ignore[method-assign]
    phase2 = None if periods is None else Phase2Plan(100.0, 100.0, 0.1, periods=periods)
    plan = PlanOfTrial(200, 1000.0, phase2)
    for _ in range(3):
        trial = measurer.measure(plan) if periods is None else measurer.periods(plan, lambda _: True)[-1].outcome
        log = trial.readings.log
        assert log is not None
        assert (log.records, log.unparsed) == (200, 0)


def test_a_log_that_nothing_comes_to_between_trials_is_emptied_without_a_long_wait(
    logging: Callable[..., LabMeasurer], clock: Clock
) -> None:
    measurer, waits = logging(), []
    for _ in range(4):
        began = clock.now
        measurer.measure(PLAN)
        waits.append(clock.now - began)
    assert min(waits[:2]) > QUIET > max(waits[2:])


def test_a_log_with_two_lines_for_each_connection_is_awaited_to_its_end(
    logging: Callable[..., LabMeasurer], tmp_path: Path, clock: Clock
) -> None:
    """A gateway that logs begin and end, and writes both in batches: half of the log had as many lines as wanted."""

    def in_batches(lines: list[str]) -> list[str]:
        def rest() -> None:
            with (tmp_path / EVENTS.records).open("a") as file:
                file.writelines(f"{line}\nend of it\n" for line in lines[half:])

        half = len(lines) // 2
        clock.later(QUIET / 2, rest)
        return [each for line in lines[:half] for each in (line, "end of it")]

    log = logging(in_batches).measure(PLAN).readings.log
    assert log is not None
    assert (log.lost, log.records) == (0, 200)


def test_of_several_periods_the_last_has_the_log(logging: Callable[..., LabMeasurer]) -> None:
    plan = PlanOfTrial(200, 1000.0, Phase2Plan(100.0, 100.0, 0.1, periods=3))
    periods = logging(lambda lines: lines[1:]).periods(plan, lambda _: True)
    logs = [period.outcome.readings.log for period in periods]
    assert [log and log.lost for log in logs] == [None, None, 1]


def test_a_log_that_never_comes_is_refused_before_the_first_trial(
    logging: Callable[..., LabMeasurer], golden: Golden
) -> None:
    with pytest.raises(BrokenError) as nothing:
        logging(lambda _: []).check_forwarding()
    with pytest.raises(BrokenError) as rubbish:
        logging(lambda lines: ["<134>Nov 26 17:00:00 gateway NAT"] * len(lines)).check_forwarding()
    golden(f"{nothing.value}\n{rubbish.value}")
    logging(lambda lines: lines[:1]).check_forwarding()


def test_a_log_that_cannot_be_read_is_no_verdict_on_the_device(logging: Callable[..., LabMeasurer]) -> None:
    def gone(lines: list[str]) -> list[str]:
        measurer.log.device.folder = Path("/nonexistent")  # type: ignore[union-attr]
        return lines

    measurer = logging(gone)
    trial = measurer.measure(PLAN)
    assert (trial.verdict, trial.limited_by) == (Verdict.INVALID, "host")
    assert "connections.log" in trial.reason
    assert "controls" not in trial.reason


@dataclass
class Unread:
    """A collector whose records nobody can read."""

    error: NatgaugeError

    def empty(self) -> None: ...

    def size(self) -> int:
        return 0

    def text(self) -> str:
        """Refuse, as a collector does that ended or dropped messages."""
        raise self.error

    def confirm_unhindered(self) -> None: ...


OVERRUN = "logging ipfix: natgauge's own socket dropped 7 messages"


def unread(measurer: LabMeasurer, error: NatgaugeError) -> LabMeasurer:
    assert measurer.log is not None
    measurer.log.collector = Unread(error)
    return measurer


def test_a_log_that_is_lost_for_good_ends_the_search_with_its_own_error(logging: Callable[..., LabMeasurer]) -> None:
    measurer = unread(logging(), BrokenError("logging ipfix: natgauge's own collector ended"))
    for _ in range(MOST_SILENT - 1):
        assert measurer.measure(PLAN).limited_by == "host"
    with pytest.raises(BrokenError, match=r"^in 5 trials in a row the log was not compared; the last one: logging "):
        measurer.measure(PLAN)


def test_a_rate_that_natgauges_own_collector_cannot_follow_is_too_fast_for_the_tester(
    logging: Callable[..., LabMeasurer],
) -> None:
    """Five such trials ended a search with the advice to look at the gateway's controls."""
    measurer = unread(logging(), OverrunError(OVERRUN))
    for _ in range(MOST_SILENT + 1):
        trial = measurer.measure(PLAN)
        assert (trial.verdict, trial.limited_by, trial.reason) == (Verdict.INVALID, "tester", OVERRUN)
        assert trial.readings.device_error == ""


class Hindered(LogFile):
    """A log whose writer had to wait for natgauge."""

    def confirm_unhindered(self) -> None:
        """Refuse, as a collector does whose socket was full."""
        raise OverrunError(OVERRUN)


def test_records_that_are_missing_where_the_writer_waited_for_natgauge_are_no_verdict_on_the_device(
    logging: Callable[..., LabMeasurer],
) -> None:
    """Seen: FAIL, limited by the log, for what natgauge's own thread was too slow to take."""

    def hindered(measurer: LabMeasurer) -> LabMeasurer:
        assert measurer.log is not None
        measurer.log.collector = Hindered(measurer.log.device, "nfct-syslog", EVENTS.records)
        return measurer

    trial = hindered(logging(lambda lines: lines[1:])).measure(PLAN)
    assert (trial.verdict, trial.limited_by, trial.reason) == (Verdict.INVALID, "tester", OVERRUN)
    assert hindered(logging()).measure(PLAN).verdict is Verdict.PASS
    assert hindered(logging(lambda lines: lines[1:], tolerance=0.01)).measure(PLAN).verdict is Verdict.PASS


def test_a_log_that_was_not_compared_leaves_all_periods(logging: Callable[..., LabMeasurer]) -> None:
    """Hours of periods ended without a result, because the log was read after the last of them."""
    plan = PlanOfTrial(200, 1000.0, Phase2Plan(100.0, 100.0, 0.1, periods=3))
    periods = unread(logging(), OverrunError(OVERRUN)).periods(plan, lambda _: True)
    assert [period.outcome.verdict for period in periods] == [Verdict.PASS, Verdict.PASS, Verdict.INVALID]
    assert periods[-1].outcome.reason == OVERRUN


def test_trials_of_more_connections_than_are_compared_are_refused(
    logging: Callable[..., LabMeasurer], golden: Golden
) -> None:
    measurer = logging()
    with pytest.raises(UsageError) as refused:
        measurer.measure(PlanOfTrial(5_000_000, 1e6))
    assert refused.value.at == "connections"
    golden(str(refused.value))


MANY = {"connections": 5_000_000}
#: More four tuples than are compared.
WIDE = {"connections": 100_000, "destination_ports": "1-100"}


@pytest.mark.parametrize(
    ("metric", "refused", "planned"),
    [
        ("throughput", MANY, {"connections": 4_194_304}),
        ("table-capacity", MANY, {}),
        ("mixed-load", {**WIDE, "life_seconds": 300.0}, {**WIDE, "life_seconds": 20.0}),
        ("subscribers", {**MANY, "subscriber": "cgn-snapshot"}, {**MANY, "subscriber": "household"}),
        ("subscribers", {**MANY, "subscriber": "cgn-snapshot"}, {"source_addresses": "10.0.0.2-10.0.0.101"}),
        ("subscribers", {**MANY, "subscriber": "cgn-snapshot"}, {**MANY, "most_subscribers": 1000}),
    ],
)
def test_searches_that_may_open_more_connections_than_are_compared_are_refused_before_they_begin(
    metric: str, refused: dict[str, Any], planned: dict[str, Any]
) -> None:
    """Seen: a search ended in its middle with the refusal of a trial, and there was no result."""

    def plan(chosen: dict[str, Any]) -> None:
        question = ask(metric, "nftables-nat44", {"logging": "conntrack-events", **chosen})
        Bench(question.cell).plan(metric, question.settings)

    with pytest.raises(UsageError, match=r"^logging: \d+ connections in a trial") as caught:
        plan(refused)
    assert caught.value.at == "connections"
    plan(planned)


NARROW = {"destination_ports": "1-60"}
SHORT = {"trial_seconds": 0.01}
FEW = {"connections": 1000}
CGN = {**MANY, "subscriber": "cgn-snapshot"}


@pytest.mark.parametrize(
    ("metric", "refused", "remedies", "others"),
    [
        ("throughput", MANY, {"fewer connections": FEW}, []),
        (
            "mixed-load",
            {**WIDE, "new_share": 0.5, "trial_seconds": 5.0},
            {"ranges": NARROW, "--trial": SHORT, "--new-share": {"new_share": 0.01}},
            [FEW],
        ),
        (
            "mixed-load",
            {**WIDE, "life_seconds": 300.0},
            {"ranges": NARROW, "--life": {"life_seconds": 1.0}, "--new-share": {"new_share": 0.0001}},
            [FEW, SHORT],
        ),
        (
            "mixed-load",
            {**WIDE, "new_rate": 1e5, "trial_seconds": 60.0},
            {"--trial": SHORT, "--new-rate": {"new_rate": 1e4}},
            [FEW],
        ),
        ("mixed-load", MANY, {"fewer connections": FEW}, [SHORT, {"new_share": 0.0001}]),
        ("subscribers", CGN, {"ranges": {"connections": 4_000_000}, "--most": {"most_subscribers": 1000}}, [SHORT]),
        (
            "connection-rate",
            {**FEW, "order": "with-replacement", "draws": 5_000_000},
            {"fewer --draws": {"draws": 1000}},
            [{"connections": 10}],
        ),
        ("enumeration-orders", {**FEW, "draws": 5_000_000}, {"fewer --draws": {"draws": 1000}}, [{"connections": 10}]),
    ],
)
def test_each_remedy_of_a_search_with_too_many_connections_for_a_log_is_enough_by_itself(
    metric: str, refused: dict[str, Any], remedies: dict[str, Any], others: list[dict[str, Any]], golden: Golden
) -> None:
    """Seen: "choose fewer" of a load that opens all four tuples of the ranges, however few are open at first."""

    def plan(chosen: dict[str, Any]) -> None:
        question = ask(metric, "nftables-nat44", {"logging": "conntrack-events", **refused, **chosen})
        Bench(question.cell).plan(metric, question.settings)

    with pytest.raises(UsageError) as caught:
        plan({})
    golden(str(caught.value))
    named = str(caught.value).partition("; choose ")[2].split(", or ")
    assert len(named) == len(remedies)
    for part, chosen in remedies.items():
        assert [part in words for words in named].count(True) == 1
        plan(chosen)
    for chosen in others:
        with pytest.raises(UsageError):
            plan(chosen)


# Recipes and inputs


def test_every_linux_nat44_of_ours_has_the_ways_and_each_reads_its_records() -> None:
    of_linux = {name for name in available() if "conntrack-log" in load(name).extends}
    assert of_linux >= {"nftables-nat44", "iptables-nat44", "nftables-strict-nat44", "cgn-port-blocks"}
    for name in of_linux:
        assert {"conntrack-events", "nflog-ulogd", "nfct-ulogd", "nfct-syslog"} <= load(name).logging.keys()


def test_a_gateway_with_its_log_starts_it_last_and_stops_it_first() -> None:
    plain = load("nftables-nat44")
    with_log = logged(plain, "nflog-ulogd")
    assert with_log.verbs.pieces("start")[: len(plain.verbs.start)] == plain.verbs.pieces("start")
    assert "natgauge_log" in with_log.verbs.pieces("stop")[0]
    assert [process.name for process in with_log.process] == ["log"]
    assert "ulogd2" in {need.package for need in with_log.needs}
    assert logged(plain, None) == plain
    # Its program handles no frames, so the gateway stays where it is.
    assert not plain.own_processes


@pytest.mark.parametrize(("placement", "cpus"), [("shared", "0,1,2,3"), ("isolated", None)])
def test_what_writes_a_log_keeps_off_the_core_of_a_sender_where_the_device_has_that(
    placement: str, cpus: str | None
) -> None:
    played: list[Any] = []

    def play(recipe: Any, *_: object) -> Any:
        played.append(recipe)

    choices = {"logging": "conntrack-events", "placement": placement, "connections": 1000}
    with as_if(4):
        setup = Setup(ask("connection-rate", "nftables-nat44", choices).cell, play=play)
        setup._gateways()
    assert [recipe.environment.get("NG_LOG_CPUS") for recipe in played] == [cpus]
    assert setup.lab.placement == placement


def test_gateways_of_a_comparison_log_each_in_its_own_way() -> None:
    names = ["nftables-nat44", "nftables-nat44:logging=conntrack-events"]
    compared = read_gateways(names, {}, unlike=False)
    assert [one.question.cell.device.logging for one in compared] == [None, "conntrack-events"]


def test_the_command_line_takes_a_way_and_a_share(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["measure", "connection-rate", "--gateway", "linux-ipv4", "--logging", "ipfix"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(
    "broken",
    [
        {"record": "("},
        {"record": "(?P<source>.)(?P<source_port>.)(?P<destination>.)(?P<subscriber>.)"},
        {"record": "(?P<source>.)(?P<destination>.)"},
        {"records": "/var/log/nat.log"},
        {"start": None},
        {"ignore": "("},
        {"ignore": ".*"},
        {"records": "ipfix", "record": None, "ignore": "x"},
    ],
    ids=str,
)
def test_a_way_that_breaks_a_rule_is_refused(broken: dict[str, Any], golden: Golden) -> None:
    whole = {"records": "log", "record": EVENTS.record, "start": "true"}
    LoggingWay.model_validate(whole)
    with pytest.raises(ValueError, match="LoggingWay") as refused:
        LoggingWay.model_validate({**whole, **broken})
    golden(str(refused.value).split("[type=")[0])
