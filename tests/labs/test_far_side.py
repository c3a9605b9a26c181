# SPDX-License-Identifier: Apache-2.0
"""Real servers behind real devices: each query reaches the server, which understands it, and its answer is judged."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import pytest
from tests.labs.program import own
from tests.labs.rough import slow_tester
from tests.labs.test_resolution import NAME, PLAN, N, asking, captured, every_one_answered, queries_of
from tests.labs.trying import decided, passing
from tests.plans import PlanOfTrial

import natgauge
from natgauge import cleaning
from natgauge.agreement.generated import Progress
from natgauge.errors import BrokenError
from natgauge.gateways import far_side
from natgauge.host.machine import usable_cpus
from natgauge.labs.common import namespaces
from natgauge.labs.common.device import NamespaceDevice
from natgauge.labs.common.locks import directory_of
from natgauge.procedures.kit.runner import Event
from natgauge.trial.bench import Bench
from natgauge.trial.lab_measurer import LabMeasurer
from natgauge.trials import Phase2Plan
from natgauge.words import Verdict

pytestmark = pytest.mark.skipif(len(usable_cpus()) < 2, reason="a server wants a core of its own")
#: Where a server has to keep up with the queries, it needs its core for itself.
alone, soak = pytest.mark.alone, pytest.mark.soak

SERVERS = sorted(far_side.available())
ONE_SERVER = ["knot", pytest.param("nsd", marks=soak)]
#: A gateway; `make soak` has the other pairs. Tests below have the other server.
PAIRS = [("nftables-nat44", "nsd")]
OTHERS = [
    ("map-t", "knot"),
    ("linux-ipv6", "knot"),
    ("linux-ipv6", "nsd"),
    ("nftables-nat44", "knot"),
    ("map-t", "nsd"),
]
RATE, QUERIES = 5_000.0, 1_500
#: A rate that any server keeps up with, on one core.
ASKED = replace(
    PLAN, phase1_rate=2_000.0, phase2=Phase2Plan(RATE, 0.0, QUERIES / RATE), loss_tolerance=0.0, handed_on=True
)
#: Each answer, right or wrong, is in one of these; a query that is none is in another one.
STATISTICS = {
    "knot": 'knotc -c "$NG_WORK/knot.conf" stats mod-stats | sed -n "s/.*response-code.\\(.*\\). = /\\1 /p"',
    "nsd": 'nsd-control -c "$NG_WORK/nsd.conf" stats_noreset | sed -n "s/^num.rcode.\\(.*\\)=/\\1 /p"',
}
EVERY = {
    "knot": 'knotc -c "$NG_WORK/knot.conf" stats mod-stats | sed -n "s/.*server-operation.query. = //p"',
    "nsd": 'nsd-control -c "$NG_WORK/nsd.conf" stats_noreset | sed -n "s/^num.queries=//p"',
}


def home(bench: Bench) -> NamespaceDevice:
    assert isinstance(bench.lab.server, NamespaceDevice)
    return bench.lab.server


def statistics(bench: Bench, server: str) -> tuple[int, dict[str, int]]:
    """Queries that the server says it had, and its answers by code; those it never gave are left out."""
    every = int(home(bench).run(EVERY[server]).stdout or 0)
    lines = home(bench).run(STATISTICS[server]).stdout.splitlines()
    return every, {name: int(number) for name, number in map(str.split, lines) if int(number)}


@pytest.fixture(scope="module")
def served(request: pytest.FixtureRequest) -> Iterator[tuple[str, Bench, LabMeasurer]]:
    """A server, the bench of a device before it, and the tester; one bench serves all tests of a pair."""
    gateway, server = request.param
    with asking(gateway, far_side=server, placement="shared", lab_name=own("served")) as (bench, measurer):
        yield server, bench, measurer


def on(*pairs: tuple[str, str], further: Sequence[tuple[str, str]] = ()) -> pytest.MarkDecorator:
    """For these devices and servers, in `make soak` for further ones."""
    named = [pytest.param(pair, id="-".join(pair)) for pair in pairs]
    more = [pytest.param(pair, id="-".join(pair), marks=soak) for pair in further]
    return pytest.mark.parametrize("served", [*named, *more], indirect=True, scope="module")


def test_every_server_of_the_folder_is_tried() -> None:
    assert set(STATISTICS) == set(SERVERS) == {"knot", "nsd"}


@alone
@on(*PAIRS, further=OTHERS)
def test_every_query_is_understood_and_every_answer_is_right(served: tuple[str, Bench, LabMeasurer]) -> None:
    server, bench, measurer = served
    for query in ("aaaa", "a"):
        before, _ = statistics(bench, server)
        trials = measurer.number
        outcome = passing(measurer, replace(ASKED, query=query))
        every_one_answered(outcome, QUERIES)
        had, answers = statistics(bench, server)
        assert answers == {"NOERROR": had}
        if measurer.number == trials + 1:
            assert had - before == N + QUERIES


@alone
@pytest.mark.parametrize("server", ONE_SERVER)
def test_an_answer_that_is_not_the_one_expected_is_not_counted(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(far_side, "ADDRESS6", "2001:2::54")
    with asking("nftables-nat44", far_side=server, placement="shared") as (_, measurer):
        outcome = decided(measurer, ASKED)
    counts = queries_of(outcome)
    # What it did not read in time, for others kept its core busy, is no answer at all.
    assert (outcome.verdict, counts.received_frames, counts.messages[0].received) == (Verdict.FAIL, 0, QUERIES)
    assert 0.9 * QUERIES < sum(message.wrong for message in counts.messages) <= QUERIES


@alone
@on(("nftables-nat44", "nsd"), further=[("nftables-nat44", "knot")])
def test_a_library_of_others_reads_each_query_and_the_servers_answer_to_it(
    served: tuple[str, Bench, LabMeasurer],
) -> None:
    plan = replace(ASKED, connections=50, phase1_rate=500.0, phase2=Phase2Plan(500.0, 0.0, 0.2))
    _, bench, measurer = served
    device = bench.lab.devices[0]
    assert isinstance(device, NamespaceDevice)
    seen = captured(device, lambda: passing(measurer, plan))
    asked = {dns.message.from_wire(one.payload).question[0].name: one for one in seen if one.destination_port == 53}
    answers = [one for one in seen if one.source_port == 53]
    assert len(answers) == len(asked) >= 150
    for one in answers:
        answer = dns.message.from_wire(one.payload)
        query = asked[answer.question[0].name]
        assert dns.message.from_wire(query.payload).is_response(answer)
        assert (answer.rcode(), answer.flags & dns.flags.AA) == (dns.rcode.NOERROR, dns.flags.AA)
        (record,) = answer.answer
        assert (record.name, record.rdtype) == (answer.question[0].name, dns.rdatatype.AAAA)
        assert [str(address) for address in record] == ["2001:2::53"]
        assert (one.destination, one.destination_port) == (query.source, query.source_port)
        assert one.checksums_right


@alone
@pytest.mark.slow("two searches: the server behind the device, and the server alone")
@pytest.mark.parametrize("server", ONE_SERVER)
def test_the_result_tells_the_server_its_version_and_what_it_does_alone(server: str, tmp_path: Path) -> None:
    # What a server loses now and then, because others had its core, makes no search longer.
    quick = {"profile": "quick", "trial_seconds": 0.2, "error": "50%", "confirm": False, "loss_tolerance": 0.05}
    asked: dict[str, Any] = {**quick, "connections": 500, "connection_rate": 50_000.0, "lab_name": NAME}
    with slow_tester():
        found = natgauge.measure(
            "resolution-rate", "nftables-nat44", far_side=server, placement="shared", results=tmp_path, **asked
        )
    place = found.document()["parameters"]["place"]
    assert found.document()["parameters"]["settings"]["far_side"] == server
    assert place["server_version"].split()[0] == {"knot": "knotd", "nsd": "NSD"}[server]
    assert place["server_alone"] > 1_000
    # Both are rates of one host in different seconds: of one order of magnitude, no more can be said.
    assert 1_000 < found.median < 10 * place["server_alone"]
    (doubt,) = [one["text"] for one in found.document()["doubts"] if one["word"] == "real server"]
    assert (
        f"{place['server_version']} answered and may have been the bottleneck: without the device it answered up to"
        in doubt
    )
    assert [name for name in namespaces.names() if name.startswith(f"ng-server-{os.getpid()}-")] == []
    trials = [json.loads(line) for line in (found.folder / "trials.jsonl").read_text().splitlines()]
    asking_trials = [trial for trial in trials if trial["plan"]["query"]]
    assert asking_trials
    assert all(trial["request"]["frame"]["handed_on"] for trial in asking_trials)


@alone
def test_what_a_server_does_not_read_in_time_is_the_servers() -> None:
    """It stands still for a part of the trial, so its sockets run over."""
    with asking("nftables-nat44", far_side="knot", placement="shared") as (bench, measurer):
        pid = int((Path(home(bench).environment["NG_WORK"]) / "knotd.pid").read_text())
        for seconds, number in ((1.2, signal.SIGSTOP), (1.6, signal.SIGCONT)):
            threading.Timer(seconds, os.kill, (pid, number)).start()
        outcome = measurer.measure(replace(ASKED, phase2=Phase2Plan(20_000.0, 0.0, 1.5)))
    assert (outcome.verdict, outcome.limited_by) == (Verdict.FAIL, "server"), outcome.reason
    counts = queries_of(outcome)
    assert counts.messages[0].received == counts.offered_frames
    assert any(remark.startswith("the server counted") and remark.endswith("x socket") for remark in outcome.remarks)
    assert "at the server's sockets" in outcome.reason


class Killing:
    """Kills a process as soon as frames flow."""

    def __init__(self) -> None:
        self.pid = 0

    def stage(self, text: str) -> None: ...

    def event(self, event: Event) -> None: ...

    def running(self, _: Progress) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            self.pid = 0


def test_a_server_that_dies_is_named_and_ends_the_measurement() -> None:
    observer = Killing()
    with asking("nftables-nat44", observer=observer, far_side="knot", placement="shared") as (bench, measurer):
        observer.pid = int((Path(home(bench).environment["NG_WORK"]) / "knotd.pid").read_text())
        plan = replace(ASKED, phase2=Phase2Plan(RATE, 0.0, 1.5))
        with pytest.raises(BrokenError, match=r"knot on device server: .*knotd was ended by SIGKILL") as error:
            measurer.measure(plan)
        assert "\n" not in str(error.value)


def processes_of(netns: str) -> list[str]:
    found = []
    for pid in namespaces.processes(netns):
        # Programs of snippets end while others are listed.
        with suppress(OSError):
            found.append(Path(f"/proc/{pid}/comm").read_text().strip())
    return found


def runs(pid: int) -> bool:
    """Whether it does more than wait for whoever adopted it to ask how it ended (proc_pid_stat(5))."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_nothing_is_left_of_a_killed_measurement(tmp_path: Path) -> None:
    asked = ["measure", "resolution-rate", "--gateway=nftables-nat44", "--placement=shared", "--far-side=knot"]
    process = subprocess.Popen(
        [sys.executable, "-c", "from natgauge.cli import main; main()", *asked, f"--lab-name={NAME}"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while "knotd" not in processes_of(f"ng-{NAME}-tester"):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        servers = namespaces.processes(f"ng-{NAME}-tester")
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    cleaning.clean({NAME})
    assert not namespaces.exists(f"ng-{NAME}-tester")
    assert not directory_of(NAME).exists()
    assert not any(map(runs, servers))


def test_a_lab_that_stays_keeps_nothing_of_a_server() -> None:
    with asking("linux-ipv6", far_side="nsd", placement="shared") as (bench, _):
        device = home(bench)
        told = device.run('ip -o address show dev "$NG_PORT"; cat "/proc/sys/net/ipv6/conf/$NG_PORT/disable_ipv6"')
        assert "2001:2:0:8000::2/128" in told.stdout
        assert told.stdout.endswith("0\n")
        bench._beside.close()
        after = device.run(
            'ip -o address show dev "$NG_PORT"; ip -6 route show default; ip neighbour show; ls "$NG_WORK"; '
            'cat "/proc/sys/net/ipv6/conf/$NG_PORT/disable_ipv6"'
        )
        assert after.stdout == "1\n"


@alone
@on(("nftables-nat44", "nsd"))
def test_plain_frames_do_not_reach_it(served: tuple[str, Bench, LabMeasurer]) -> None:
    server, bench, measurer = served
    before, _ = statistics(bench, server)
    plain = decided(measurer, PlanOfTrial(N, 5_000.0, Phase2Plan(2_000.0, 2_000.0, 0.5)))
    assert plain.verdict is Verdict.PASS, plain.reason
    assert statistics(bench, server)[0] == before
