# SPDX-License-Identifier: Apache-2.0
"""Logs of gateways: compared in trials, judged, and declared by recipes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from tests.simulated_lab import NAT44, Measured, measure, simulated
from tests.unit.conftest import Ran
from tests.unit.counted import make_cpu, make_stall
from tests.unit.golden import Golden
from tests.unit.listed import recipe
from tests.unit.made_logs import START, record
from tests.unit.simulated import Gateway

import natgauge
from natgauge.errors import BrokenError, FaultError, UsageError

#: Connections of a trial, and the rate up to which a gateway's log is whole.
N, SLOW = 200, 1e5
#: What a gateway logs of the records of its connections.
Logs = Callable[[list[str], Any], Sequence[str | tuple[float, str]]]


def way(record: str, name: str = "mine") -> str:
    return f"""
[logging.{name}]
records = "connections.log"
record = '''{record}'''
start = "start-log"
check = "check-log"
stop = "stop-log"
"""


@pytest.fixture
def gateway(tmp_path: Path) -> Path:
    """A recipe that logs in two ways: whole records, and such without the outside address and port."""
    pattern = recipe("nftables-nat44")["logging"]["conntrack-events"]["record"]
    inside = re.sub(r"\(\?P<outside(_port)?>", "(?:", pattern)
    (tmp_path / NAT44.name).write_text(NAT44.read_text() + way(pattern) + way(inside, "inside"))
    return tmp_path / NAT44.name


@pytest.fixture
def logging(gateway: Path) -> Callable[..., Measured]:
    def of(
        logs: Logs = lambda records, _plan: records,
        metric: str = "connection-rate",
        *,
        truth: Any = None,
        **others: Any,
    ) -> Measured:
        device = Gateway(**{"establishes": 3e5, "placement": "shared", "logs": logs, **(truth or {})})
        choices = {"logging": "mine", "connections": N, "error": "50%", **others}
        return measure(metric, device, gateway=gateway, **choices)

    return of


def above(logs: Logs) -> Logs:
    """The log is whole up to `SLOW`, and this one above it."""
    return lambda records, plan: logs(records, plan) if plan.phase1_rate > SLOW else records


def without_last(records: list[str], _plan: Any) -> list[str]:
    return records[:-1]


def without_hundredth(records: list[str], _plan: Any) -> list[str]:
    return [line for number, line in enumerate(records, 1) if number % 100]


def of_verdict(found: Measured, verdict: str) -> list[Any]:
    trials = [trial for trial in found.trials if trial["verdict"] == verdict]
    assert trials
    return trials


class PlannedError(Exception):
    """Everything was accepted, and the lab would be made next."""


#: Refuses a measurement of a metric beside a log with these choices, or accepts it, and makes nothing.
Plan: TypeAlias = Callable[[str, Mapping[str, Any]], None]


@pytest.fixture
def plan(gateway: Path, tmp_path: Path) -> Iterator[Plan]:
    def enters(_lab: str) -> None:
        raise PlannedError

    def of(metric: str, chosen: Mapping[str, Any]) -> None:
        with pytest.raises(FaultError, match="PlannedError"):
            natgauge.measure(metric, gateway, lab="simulated", logging="mine", results=tmp_path / "results", **chosen)

    with simulated() as simulation:
        simulation.enters = enters
        yield of


# The verdict


def test_a_trial_whose_log_lacks_a_connection_fails_for_its_log(
    logging: Callable[..., Measured], golden: Golden
) -> None:
    found = logging(above(without_last))
    assert found.limited_by == "log"
    assert found.median <= SLOW < 1.5 * found.median
    failed, cause = of_verdict(found, "FAIL"), found.document["cause"]
    assert {(trial["limited_by"], trial["failed_phase"]) for trial in failed} == {("log", 1)}
    assert (cause["kind"], cause["certainty"], cause["counter"]) == ("log", "seen", "")
    golden(failed[0]["reason"])
    assert logging().limited_by == "device"


def test_a_wrong_record_fails_a_trial_too_and_a_duplicate_is_a_remark(
    logging: Callable[..., Measured], tmp_path: Path, golden: Golden
) -> None:
    swapped = record(3, seen=1024 + 4), record(4, seen=1024 + 3)
    failed = of_verdict(logging(above(lambda records, _: [*records[:3], *swapped, *records[5:]])), "FAIL")
    assert {(trial["limited_by"], trial["log"]["wrong"], trial["log"]["lost"]) for trial in failed} == {("log", 2, 0)}

    def odd(records: list[str], _plan: Any) -> list[str]:
        late = [record(number, at=START + 9.0) for number in (5, 6)]
        return [*records[:5], *late, *records[7:], *[records[0]] * 3, "Ö?"]

    found = logging(odd, logging="inside", place={"log": tmp_path / "connections.log"})
    (passed, *_), counts = of_verdict(found, "PASS"), ("duplicate", "late", "unparsed", "outside_named")
    assert found.limited_by == "device"
    assert [passed["log"][name] for name in counts] == [3, 2, 1, False]
    golden("\n".join([failed[0]["reason"], *passed["remarks"]]))


#: A core stood still from 10 to 19 ms of phase 1, in which each ms has a connection.
STALLED = make_cpu("sender", 1, 0.009).model_copy(
    update={"longest_stalls": [make_stall("phase1", 0.019).model_copy(update={"from_ns": 10_000_000})]}
)


@pytest.mark.parametrize(
    ("missing", "wrong", "tolerance", "verdict"),
    [
        (range(10, 20), 0, "0%", "INVALID"),
        ((*range(10, 20), 100), 0, "0%", "FAIL"),
        ((*range(10, 20), 100), 0, "0.5%", "INVALID"),
        (range(10, 20), 1, "0%", "FAIL"),
    ],
)
def test_stalls_that_explain_all_missing_records_spoil_a_trial_and_those_that_explain_some_do_not(
    missing: Sequence[int], wrong: int, tolerance: str, verdict: str, logging: Callable[..., Measured]
) -> None:
    def lacking(records: list[str], _plan: Any) -> list[str]:
        kept = [line for number, line in enumerate(records) if number not in missing]
        return [*kept, *[record(0, port=9)] * wrong]

    found = logging(above(lacking), truth={"cpus": (STALLED,)}, log_tolerance=tolerance)
    trials = [trial for trial in found.trials if trial["log"] and trial["log"]["lost"]]
    assert {(trial["verdict"], trial["log"]["excused"]) for trial in trials} == {(verdict, 10)}
    assert {trial["excused"] for trial in trials} == {verdict == "INVALID"}
    said = "which stalls can explain: 10 were due during or shortly after them" in trials[0]["reason"]
    assert said == (verdict == "INVALID")


def test_a_tolerated_share_of_the_log_may_be_missing_and_is_told(
    logging: Callable[..., Measured], golden: Golden
) -> None:
    (passed, *_) = of_verdict(logging(without_hundredth, log_tolerance="1%"), "PASS")
    (failed, *_) = of_verdict(logging(above(without_hundredth), log_tolerance="0.99%"), "FAIL")
    assert (passed["log"]["lost"], failed["log"]["lost"], failed["limited_by"]) == (2, 2, "log")
    golden("\n".join([*passed["remarks"], failed["reason"]]))


def test_dropped_records_of_the_socket_are_the_evidence(logging: Callable[..., Measured], golden: Golden) -> None:
    found = logging(above(without_hundredth), truth={"refused": {"log_drops": 990}})
    (failed, *_), cause = of_verdict(found, "FAIL"), found.document["cause"]
    # A message of IPFIX has several records, that of a block many connections: 990 are no number of these.
    assert (cause["counter"], cause["frames"], cause["lost"]) == ("log_drops", 0, 2)
    (bottleneck,) = (line.strip() for line in found.said.splitlines() if "Bottleneck: " in line)
    golden(f"{failed['reason']}\n{bottleneck}\n{cause['remedy']}")


def test_lost_frames_come_before_a_log_that_lacks_records(logging: Callable[..., Measured]) -> None:
    found = logging(above(without_last), truth={"establishes": SLOW, "placement": "isolated"})
    assert {(trial["limited_by"], trial["failed_phase"]) for trial in of_verdict(found, "FAIL")} == {("device", 1)}
    assert found.limited_by == "device"


# A trial with a log


@pytest.mark.parametrize("here", [True, False], ids=["on this machine", "on another one"])
def test_a_trial_is_compared_with_its_own_log(logging: Callable[..., Measured], tmp_path: Path, *, here: bool) -> None:
    place = {"log": tmp_path / "connections.log"} if here else {}
    for trial in of_verdict(logging(place=place), "PASS"):
        log, connections = trial["log"], trial["plan"]["connections"]
        assert (log["connections"], log["records"], log["lost"] + log["wrong"]) == (connections, connections, 0)
        # Another machine has another clock.
        assert log["delay_p50_ms"] == (pytest.approx(0.25, abs=1e-3) if here else None)
        assert trial["request"].get("connections_file") is None


def test_the_figures_are_those_of_the_deciding_trial(logging: Callable[..., Measured], tmp_path: Path) -> None:
    def odd(records: list[str], plan: Any) -> list[str]:
        return [*records, records[0]] if plan.phase1_rate <= SLOW else records[:-1]

    found = logging(odd, place={"log": tmp_path / "connections.log"}, log_tolerance="0.1%")
    figures = {name: found.figure(name) for name in found.document["figures"] if name.startswith("log_")}
    assert figures == {
        "log_records_per_connection": 1 + 1 / N,
        "log_octets_per_connection": pytest.approx(152.0, abs=2),
        "log_delay_p50_ms": pytest.approx(0.25, abs=1e-3),
        "log_delay_p999_ms": pytest.approx(0.25, abs=1e-3),
        "log_lost_percent": 0.0,
        "log_wrong": 0.0,
    }


def test_records_of_frames_before_a_trial_are_waited_for_and_are_none_of_the_trial(
    logging: Callable[..., Measured],
) -> None:
    def late(records: list[str], _plan: Any) -> Sequence[str | tuple[float, str]]:
        # Of the handful of frames that prove forwarding, after these have ended.
        return [*records, *((0.25, line) for line in records)] if len(records) == 8 else records[1:]

    found = logging(late, log_tolerance="2%")
    assert {(trial["log"]["lost"], trial["log"]["duplicate"]) for trial in of_verdict(found, "PASS")} == {(1, 0)}


@pytest.mark.parametrize("metric", ["connection-rate", "stability"])
def test_ends_of_connections_that_the_emptied_table_had_are_none_of_the_trial(
    metric: str, logging: Callable[..., Measured]
) -> None:
    """Seen: octets for each connection of two records, where a gateway logs begin and end, and the end came late."""
    rates = {"connection_rate": 1e5, "throughput_rate": 1e5, "hours": 2 / 3600} if metric == "stability" else {}
    options = {"logs_ends": 0.5}
    found = logging(metric=metric, truth=options, **rates, **({"error": None} if rates else {}))
    logs = [trial["log"] for trial in found.trials if trial["log"]]
    assert logs
    assert {(log["records"], log["unparsed"]) for log in logs} == {(log["connections"], 0) for log in logs}


def test_a_log_that_nothing_comes_to_between_trials_is_emptied_without_a_long_wait(
    logging: Callable[..., Measured],
) -> None:
    quiet, talking = logging(), logging(truth={"logs_ends": 0.01})
    trials = len(quiet.trials)
    assert trials == len(talking.trials) > 5
    # A second is the longest pause between two records.
    assert sum(talking.slept) > trials
    assert sum(quiet.slept) < trials / 2


def test_a_log_with_two_lines_for_each_connection_is_awaited_to_its_end(logging: Callable[..., Measured]) -> None:
    """A gateway that logs begin and end, and writes both in batches: half of the log had as many lines as wanted."""

    def in_batches(records: list[str], _plan: Any) -> Sequence[str | tuple[float, str]]:
        half = len(records) // 2
        first = [each for line in records[:half] for each in (line, "end of it")]
        return [*first, *((0.5, f"{line}\nend of it") for line in records[half:])]

    for trial in of_verdict(logging(in_batches), "PASS"):
        assert (trial["log"]["lost"], trial["log"]["records"]) == (0, trial["plan"]["connections"])


def test_of_several_periods_the_last_has_the_log(logging: Callable[..., Measured]) -> None:
    rates = {"connection_rate": 1e5, "throughput_rate": 1e5, "hours": 3 / 3600, "error": None, "log_tolerance": "1%"}
    found = logging(lambda records, _: records[1:] if len(records) > 8 else records, "stability", **rates)
    assert [trial["log"] and trial["log"]["lost"] for trial in found.trials][-3:] == [None, None, 1]


def test_a_log_that_never_comes_is_refused_before_the_first_trial(
    logging: Callable[..., Measured], golden: Golden
) -> None:
    for logs in (lambda _records, _: [], lambda records, _: ["<134>Nov 26 17:00:00 gateway NAT"] * len(records)):
        with golden.raises(BrokenError):
            logging(logs)
    few: Logs = lambda records, _: records[:1] if len(records) == 8 else records  # noqa: E731 - named by what it is
    assert logging(few).limited_by == "device"


@pytest.mark.parametrize("here", [True, False], ids=["on this machine", "on another one"])
def test_a_log_that_cannot_be_read_is_no_verdict_on_the_device(
    logging: Callable[..., Measured], tmp_path: Path, *, here: bool
) -> None:
    file, failed = tmp_path / "connections.log", list[str]()

    def logs(records: list[str], _plan: Any) -> list[str]:
        if not here or failed or len(records) == 8:
            return records
        failed.append("the file is gone")
        file.unlink()
        return []

    def says(snippet: str, trials: int) -> str:
        if here and snippet == "empty":
            file.touch()
        if here or trials < 4 or failed or not snippet.startswith("wc "):
            return ""
        failed.append(snippet)
        return "no such file"

    (trial,) = of_verdict(logging(logs, truth={"says": says}, place={"log": file} if here else {}), "INVALID")
    assert trial["limited_by"] == "host"
    assert "connections.log" in trial["reason"]
    assert "controls" not in trial["reason"]


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
    metric: str, refused: dict[str, Any], planned: dict[str, Any], plan: Plan
) -> None:
    """Seen: a search ended in its middle with the refusal of a trial, and there was no result."""
    with pytest.raises(UsageError, match=r"^logging: \d+ connections in a trial") as caught:
        plan(metric, refused)
    assert caught.value.at == "connections"
    plan(metric, planned)


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
    metric: str,
    refused: dict[str, Any],
    remedies: dict[str, Any],
    others: list[dict[str, Any]],
    *,
    plan: Plan,
    golden: Golden,
) -> None:
    """Seen: "choose fewer" of a load that opens all four tuples of the ranges, however few are open at first."""
    with pytest.raises(UsageError) as caught:
        plan(metric, refused)
    golden(str(caught.value))
    named = str(caught.value).partition("; choose ")[2].split(", or ")
    assert len(named) == len(remedies)
    for part, chosen in remedies.items():
        assert [part in words for words in named].count(True) == 1
        plan(metric, {**refused, **chosen})
    for chosen in others:
        with pytest.raises(UsageError):
            plan(metric, {**refused, **chosen})


# Recipes and inputs


def test_every_linux_nat44_of_ours_has_the_ways_and_each_reads_its_records(ran: Ran) -> None:
    names = [one["name"] for one in json.loads(ran(["gateways", "--json"]).out)["gateways"] if one["kind"] == "nat44"]
    of_linux = {name for name in names if "conntrack-log" in recipe(name)["extends"]}
    assert of_linux >= {"nftables-nat44", "iptables-nat44", "nftables-strict-nat44", "cgn-port-blocks"}
    for name in of_linux:
        assert {"conntrack-events", "nflog-ulogd", "nfct-ulogd", "nfct-syslog"} <= set(recipe(name)["logging"])


def test_a_gateway_with_its_log_starts_it_last_and_stops_it_first(logging: Callable[..., Measured]) -> None:
    commands = logging().commands
    assert commands.index("start-log") > commands.index("start")
    assert commands.index("stop-log") > commands.index("start-log")
    # Of what was started twice, the first stop is that before the first start.
    assert [word for word in commands if word in {"stop", "stop-log"}][-2:] == ["stop-log", "stop"]
    assert "check-log" in commands
    assert "start-log" not in logging(logging=None).commands
    way = recipe("nftables-nat44")["logging"]["nflog-ulogd"]
    assert [process["name"] for process in way["process"]] == ["log"]
    assert "natgauge_log" in way["stop"]
    assert "ulogd2" in {need["package"] for need in way["needs"]}


def test_the_command_line_takes_a_way_and_a_share(ran: Ran) -> None:
    asked = ["measure", "connection-rate", "--gateway", "linux-ipv4", "--logging", "ipfix"]
    assert len(ran(asked, status=2).err.splitlines()) == 1


WAY = {"records": "log", "record": "(?P<source>.)(?P<source_port>.)(?P<destination>.)", "start": "true"}


def shown_with(ran: Ran, way: Mapping[str, str | None], *, status: int = 0) -> Any:
    """What is said of a recipe with this way of logging."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in way.items() if value is not None]
    Path(NAT44.name).write_text("\n".join([NAT44.read_text(), "[logging.mine]", *lines]))
    return ran(["gateways", "show", f"./{NAT44.name}"], status=status)


@pytest.mark.usefixtures("in_an_empty_folder")
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
def test_a_way_that_breaks_a_rule_is_refused(broken: dict[str, str | None], ran: Ran, golden: Golden) -> None:
    assert "mine" in shown_with(ran, WAY).out
    (said,) = shown_with(ran, {**WAY, **broken}, status=2).err.splitlines()
    golden(said)
