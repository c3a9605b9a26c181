# SPDX-License-Identifier: Apache-2.0
"""The bench on real labs: many procedures on one, a kept lab, a chain, and a kind of lab that was just thought of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.labs.program import own
from tests.labs.rough import SLOW_RATES, settings_of, slow_tester
from tests.labs.trying import decided, passing
from tests.plans import PlanOfTrial

import natgauge
from natgauge import cleaning, labs
from natgauge.agreement.generated import Progress
from natgauge.cli import run
from natgauge.errors import UsageError
from natgauge.gateways.gateway import Gateway
from natgauge.gateways.recipe import Recipe, load
from natgauge.inputs.question import DeviceOptions
from natgauge.labs import kinds
from natgauge.labs.common import namespaces
from natgauge.labs.contract import Device
from natgauge.labs.netns.lab import NetnsLab
from natgauge.records.store import Memory
from natgauge.tester.own_rates import HighestRates
from natgauge.trial.bench import Bench
from natgauge.trial.controls import Silent
from natgauge.trial.question import ask
from natgauge.trials import Phase2Plan
from natgauge.words import Verdict

NAME = own("e2e-bench")
#: A rough search is enough to see that everything fits together.
QUICK: dict[str, Any] = {"connections": 2000, "repeat": 1, "error": "50%", "confirm": False}
#: A search up to these rates ends soon, and a trial that fills the machine's table, too.
SOON_OVER = HighestRates(50_000.0, 50_000.0)
LIMIT = Path("/proc/sys/net/netfilter/nf_conntrack_max")


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """Nothing of ours is left."""
    yield
    if any(lab.name == NAME for lab in cleaning.status()):
        cleaning.take_down(NAME)
    assert [name for name in namespaces.names() if name.startswith(f"ng-{NAME}-")] == []


@pytest.fixture
def small_table() -> Iterator[None]:
    """The machine's table has room for few, and as much again when the test has ended."""
    before = LIMIT.read_text()
    LIMIT.write_text("20000")
    try:
        yield
        assert LIMIT.read_text() == "20000\n"
    finally:
        LIMIT.write_text(before)


def test_many_procedures_run_on_one_bench_and_the_device_is_started_once() -> None:
    metrics = ("connection-rate", "throughput", "connection-rate", "tear-down-rate")
    question = ask("connection-rate", "nftables-nat44", {"lab_name": NAME, "connections": 500})
    stages: list[str] = []
    starts: list[str] = []

    class Counted(Gateway):
        def start(self) -> None:
            starts.append(self.recipe.name)
            super().start()

    class Told:
        def stage(self, text: str) -> None:
            stages.append(text)

        def running(self, progress: object) -> None:
            """Not looked at."""

        def event(self, event: object) -> None:
            """Not looked at."""

    kept = Memory()
    bench = Bench(question.cell, Told(), play=Counted, rates=SLOW_RATES)
    planned = [bench.plan(metric, settings_of(metric)) for metric in metrics]
    with bench:
        found = [bench.ready(one, kept).run() for one in planned]
        assert LIMIT.exists()
    assert starts == ["nftables-nat44"]
    assert stages.count(f"making lab {NAME}") == 1
    assert tuple(one.metric for one in found) == metrics
    assert all(one.summary.median > 0 for one in found)
    for trial in kept.trials:
        assert trial["device_count_before"] == 0
        plan = trial["plan"]
        assert isinstance(plan, PlanOfTrial)
        assert trial["verdict"] is not Verdict.PASS or trial["device_count_after"] == plan.connections


@pytest.mark.alone
@pytest.mark.slow("opens more connections than the machine's table has room for")
@pytest.mark.usefixtures("small_table")
def test_a_kept_lab_is_measured_in_again_and_again_and_stays_as_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["lab", "up", NAME, "--gateway", "nftables-nat44"]) == 0
    found = LIMIT.read_text()
    question = {**QUICK, "lab_name": NAME, "results": tmp_path, "grace_seconds": 0.1}
    # Of the second gateway few: the limit had to be raised, and to go back, once.
    many = {"connections": int(found) + 1, "destination_ports": "1-9"}
    lab = namespaces.names()
    for gateway, more in (("nftables-nat44", many), ("iptables-nat44", {})):
        with slow_tester(SOON_OVER):
            answer = natgauge.measure("connection-rate", gateway, **question | more)
        assert answer.document()["median"] > 0
        assert namespaces.names() == lab
        assert LIMIT.read_text() == found, "what the measurement raised went back, though the lab stays"
    with pytest.raises(UsageError, match=f"lab {NAME}: is kept with placement shared, not isolated"):
        natgauge.measure("connection-rate", "nftables-nat44", placement="isolated", **question)
    capsys.readouterr()
    assert run(["lab", "status", "--json"]) == 0
    states = {lab["name"]: lab["state"] for lab in json.loads(capsys.readouterr().out)["labs"]}
    assert states[NAME] == "kept"
    assert run(["lab", "down", NAME]) == 0


#: Between the two devices there are the addresses of the chain's inner link.
ROUTES = {
    "ce": 'ip route replace default via "$NG_OUTSIDE_PEER4"',
    "pe": 'ip route replace 10.0.0.0/16 via "$NG_INSIDE_PEER4"',
}


class Flapping(Silent):
    """Has the link outside be down for 50 ms while frames of phase 2 flow, once armed: a busy host begins late."""

    def __init__(self, lab: NetnsLab) -> None:
        self._lab, self.is_armed, self._flaps = lab, False, Thread(target=self._flap)

    def running(self, progress: Progress) -> None:
        if self.is_armed and progress.phase == "phase2":
            self.is_armed = False
            self._flaps.start()

    def _flap(self) -> None:
        device = self._lab.devices[0]
        assert device.run(f"ip link set {device.outside} down; sleep 0.05; ip link set {device.outside} up").status == 0

    def end(self) -> None:
        assert not self.is_armed
        self._flaps.join()


def test_frames_lost_while_a_link_of_the_testers_own_was_down_are_not_held_against_the_device() -> None:
    question = ask("throughput", "linux-ipv4", {"lab_name": NAME, "placement": "isolated", "connections": 100})
    lab, kept = NetnsLab(NAME, initiator_family="ipv4", responder_family="ipv4", placement="isolated"), Memory()
    flapping = Flapping(lab)
    with Bench(question.cell, flapping, lab=lab) as bench:
        measurer = bench.ready(bench.plan(question.metric, {}), kept).measurer
        plan = PlanOfTrial(100, 1000.0, Phase2Plan(1000.0, 0.0, 2.0))
        passing(measurer, replace(plan, phase2=Phase2Plan(1000.0, 0.0, 0.2)))
        flapping.is_armed = True
        outcome = measurer.measure(plan)
        flapping.end()
    assert (outcome.verdict, outcome.limited_by, outcome.disturbed) == (Verdict.INVALID, "host", True), outcome.reason
    assert "the link of the Responder's port" in outcome.reason


@pytest.mark.parametrize(("first", "verdict"), [("linux-ipv4", Verdict.PASS), ("nftables-nat44", Verdict.FAIL)])
def test_of_a_chain_the_holder_is_asked_and_state_anywhere_else_is_a_fail(first: str, verdict: Verdict) -> None:
    """A router before a NAT44 keeps no connections, two NAT44s in a row keep them twice."""

    class Routed(Gateway):
        def start(self) -> None:
            super().start()
            assert self.device.run(ROUTES[self.device.name]).status == 0

    def play(recipe: Recipe, device: Device, wishes: DeviceOptions) -> Gateway:
        return Routed(load(first) if device.name == "ce" else recipe, device, wishes)

    question = ask("connection-rate", "nftables-nat44", {"connections": 500, "lab_name": NAME, "grace_seconds": 0.1})
    lab = NetnsLab(NAME, initiator_family="ipv4", responder_family="ipv4", devices=("ce", "pe"))
    bench, kept = Bench(question.cell, lab=lab, play=play, holder=1), Memory()
    with bench:
        measurer = bench.ready(bench.plan(question.metric, {}), kept).measurer
        until = passing if verdict is Verdict.PASS else decided
        outcome = until(measurer, PlanOfTrial(500, 5000.0, Phase2Plan(1000.0, 1000.0, 0.1)))
        assert bench.device is not None
        assert [gateway["gateway"] for gateway in bench.device.as_dict()["chain"]] == [first, "nftables-nat44"]
    assert (outcome.verdict, outcome.table_count) == (verdict, 500), outcome.reason
    if verdict is Verdict.FAIL:
        assert outcome.reason == "the device keeps 500 connections at ce, which must hold none"


def test_a_new_kind_of_lab_is_one_file_found_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = set(kinds.kinds())
    monkeypatch.setattr(labs, "__path__", [*labs.__path__, str(Path(__file__).parent / "kinds")])
    assert set(kinds.kinds()) - known == {"plain"}
    asked = {**QUICK, "lab": "plain", "results": tmp_path}
    with slow_tester():
        answer = natgauge.measure("connection-rate", "linux-ipv4", lab_name=NAME, hops=30, **asked)  # type: ignore[call-arg]
        emulated = natgauge.measure("connection-rate", "linux-ipv4", lab_name=NAME, emulated=True, **asked)  # type: ignore[call-arg]
    assert answer.document()["median"] > 0
    assert answer.document()["parameters"]["place"]["placement"] == "external"
    assert answer.document()["parameters"]["place"]["hops"] == 30
    assert answer.document()["doubts"][0]["word"] != "functional"
    assert emulated.document()["parameters"]["place"]["emulated"] is True
    assert emulated.document()["doubts"][0]["word"] == "functional"
    with pytest.raises(UsageError, match="ring: lab plain has no such option, lab netns has"):
        natgauge.measure("connection-rate", "linux-ipv4", ring=5, **asked)
    assert capsys.readouterr().out == ""
