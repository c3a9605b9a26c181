# SPDX-License-Identifier: Apache-2.0
"""The whole tool, end to end, with the real engine: what a measurement gives, keeps and leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.labs.program import own
from tests.labs.rough import slow_tester

import natgauge
from natgauge import cleaning
from natgauge.errors import HostError
from natgauge.labs.common import namespaces
from natgauge.labs.netns.lab import NetnsLab
from natgauge.records.record import read_lines
from natgauge.records.store import MEASUREMENT_SCHEMA, TRIAL_SCHEMA
from natgauge.stored.find_results import read_summary
from natgauge.tester.own_rates import cable_name
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask

MACHINE_SETTINGS = (
    Path("/proc/sys/net/netfilter/nf_conntrack_max"),
    Path("/sys/module/nf_conntrack/parameters/hashsize"),
)
CONNECTIONS = 1000
#: A rough search is enough to see that everything fits together.
QUICK: dict[str, Any] = {"connections": CONNECTIONS, "repeat": 1, "error": "50%", "confirm": False}


NAME = own("e2e")
#: Labs of these tests; other ones may come and go at the same time.
OURS = {NAME, cable_name()}


def sharing_the_machine() -> bool:
    """Whether other tests run beside these, whose interfaces come and go."""
    return "PYTEST_XDIST_WORKER" in os.environ


def left_behind() -> dict[str, object]:
    """What a measurement must not change."""
    return {
        "namespaces": [name for name in namespaces.names() if name.startswith(tuple(f"ng-{lab}-" for lab in OURS))],
        "interfaces": [] if sharing_the_machine() else sorted(path.name for path in Path("/sys/class/net").iterdir()),
        "labs": [lab.name for lab in cleaning.status() if lab.name in OURS],
    }


def machine_settings() -> dict[str, str] | None:
    """Settings that all namespaces share; None while somebody else's lab may change them."""
    if any(lab.name not in OURS for lab in cleaning.status()):
        return None
    return {str(path): path.read_text() for path in MACHINE_SETTINGS if path.exists()}


@pytest.fixture
def untouched() -> Iterator[None]:
    """The host is as it was when the test ends."""
    before, settings = left_behind(), machine_settings()
    yield
    assert left_behind() == before
    after = machine_settings()
    assert settings is None or after is None or after == settings


@pytest.fixture
def slow() -> Iterator[None]:
    """A search ends at once: it may go no higher than a slow tester."""
    with slow_tester():
        yield


def valid_trials(folder: Path) -> list[dict[str, Any]]:
    trials = list(read_lines(folder / "trials.jsonl", TRIAL_SCHEMA))
    assert [trial["trial"] for trial in trials] == list(range(1, len(trials) + 1))
    return [trial for trial in trials if trial["verdict"] == "PASS"]


@pytest.mark.usefixtures("untouched", "slow")
def test_the_results_folder_tells_everything(tmp_path: Path) -> None:
    answer = natgauge.measure(
        "connection-rate", "nftables-nat44", results=tmp_path, lab_name=NAME, seed=7, **(QUICK | {"repeat": 2})
    )
    names = {path.name for path in answer.folder.iterdir()}
    assert names == {
        "plan.json",
        "recipe.json",
        "environment.json",
        "trials.jsonl",
        "rounds.jsonl",
        "measurements.jsonl",
        "summary.json",
    }
    plan = json.loads((answer.folder / "plan.json").read_text())
    assert (plan["gateway"], plan["connections"], plan["seed"]) == ("nftables-nat44", CONNECTIONS, 7)
    environment = json.loads((answer.folder / "environment.json").read_text())
    assert environment["machine"]["kernel"] == os.uname().release
    device = environment["device"]
    assert any("nftables" in line for line in device["version"])
    assert device["knobs"]["table_size"] >= CONNECTIONS
    assert device["connections_per_bucket"] == pytest.approx(CONNECTIONS / device["knobs"]["hash_size"])
    values = [line["value"] for line in read_lines(answer.folder / "measurements.jsonl", MEASUREMENT_SCHEMA)]
    assert values == list(answer.values)
    assert len(values) == 2
    assert json.loads((answer.folder / "summary.json").read_text()) == answer.document()
    parameters = read_summary(answer.folder).parameters
    shown = parameters.flat()
    conducted: dict[str, Any] = {name: shown.pop(name) for name in ("labs", "seeds", "begun")}
    assert plan == {"schema": "natgauge-plan-1", "metric": "connection-rate", **shown}
    assert (conducted["labs"], conducted["seeds"][0], len(set(conducted["seeds"]))) == (2, 7, 2)
    assert conducted["begun"] == sorted(conducted["begun"])
    assert parameters.place["kernel"] == os.uname().release
    assert parameters.device["version"] == device["version"]
    assert parameters.device["table_size"] == device["knobs"]["table_size"]
    counted = sum(answer.document()["trials"].values())
    assert counted == len(list(read_lines(answer.folder / "trials.jsonl", TRIAL_SCHEMA)))


@pytest.mark.usefixtures("slow")
def test_the_same_seed_gives_the_same_requests_but_for_the_run_mark(tmp_path: Path) -> None:
    cores = [min(os.sched_getaffinity(0))]
    first = [
        natgauge.measure(
            "connection-rate", "linux-ipv4", results=tmp_path, lab_name=NAME, seed=11, cores=cores, **QUICK
        )
        for _ in range(2)
    ]
    requests = [valid_trials(answer.folder)[0]["request"] for answer in first]
    marks = {request.pop("mark") for request in requests}
    assert len(marks) == 2
    # Where the search begins is measured, and how long a trial may take follows from it.
    for request in requests:
        assert request["phase1"].pop("rate") > 0
        assert request.pop("limits")
        assert request["senders"].pop("batch", 1) > 0
        assert request["senders"].pop("stall_ns", 1) > 0
    assert requests[0] == requests[1]


@pytest.mark.usefixtures("untouched", "slow")
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="an isolated device needs a core of its own")
def test_an_isolated_device_works_on_its_own_core(tmp_path: Path) -> None:
    answer = natgauge.measure(
        "connection-rate", "linux-ipv4", placement="isolated", results=tmp_path, lab_name=NAME, **QUICK
    )
    parameters = answer.document()["parameters"]["place"]
    assert parameters["placement"] == "isolated"
    assert not set(parameters["sender_cpus"]) & set(parameters["device_cpus"])
    requests = [trial["request"] for trial in read_lines(answer.folder / "trials.jsonl", TRIAL_SCHEMA)]
    assert requests[0]["watch_cpus"] == parameters["device_cpus"]
    assert parameters["ring"] == 512
    told = answer.document()["parameters"]["settings"]["frame_timeout_seconds"]
    assert told > 0
    assert {request["frame_timeout_ms"] for request in requests} == {told * 1000}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from natgauge.cli import main; main()", *arguments]


@pytest.mark.usefixtures("untouched")
def test_the_command_line_prints_one_object_and_shows_progress(tmp_path: Path) -> None:
    arguments = ["--connections", "1000", "--profile", "quick", "--error", "30%", "--lab-name", NAME, "--json"]
    done = subprocess.run(
        command("measure", "connection-rate", "--gateway", "nftables-nat44", *arguments),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["metric"], document["unit"]) == ("connection-rate", "connections/s")
    assert "trial 1:" in done.stderr
    assert "Traceback" not in done.stderr
    (folder,) = (tmp_path / "results").iterdir()
    assert json.loads((folder / "summary.json").read_text())["median"] == document["median"]


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.soak)]
)
def test_a_signal_in_the_middle_of_a_trial_undoes_everything(number: int, status: int, tmp_path: Path) -> None:
    asked = ["--trial-seconds", "60", "--connection-rate", "5000", "--grace-seconds", "0.1", "--lab-name", NAME]
    process = subprocess.Popen(
        command("measure", "throughput", "--gateway", "nftables-nat44", "--connections", str(CONNECTIONS), *asked),
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
    )
    # This file is made when the first trial begins, which takes seconds.
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("results/*/rounds.jsonl")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(number)
    process.wait(timeout=60)
    assert process.returncode == status
    # What was measured before stays.
    assert list((tmp_path / "results").iterdir())


def test_a_second_run_on_the_same_lab_is_refused_and_leaves_the_first_alone(tmp_path: Path) -> None:
    with NetnsLab(NAME, initiator_family="ipv4", responder_family="ipv4"):
        with pytest.raises(HostError, match=f"lab {NAME}: in use by process {os.getpid()}"):
            natgauge.measure("connection-rate", "linux-ipv4", results=tmp_path, lab_name=NAME, **QUICK)
        assert f"ng-{NAME}-tester" in namespaces.names()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("untouched", "slow")
def test_a_device_that_is_not_ours_is_measured_over_two_existing_ports(tmp_path: Path) -> None:
    with NetnsLab(NAME, initiator_family="ipv4", responder_family="ipv4") as lab:
        ports: dict[str, Any] = {}
        for side, port in (("initiator", lab.initiator), ("responder", lab.responder)):
            ports[f"{side}_port"] = port.interface
            ports[f"{side}_gateway"] = port.gateway_address
            ports[f"{side}_netns"] = port.netns
        answer = natgauge.measure(
            "connection-rate",
            "linux-ipv4",
            lab="wire",
            lab_name=f"{NAME}-wire",
            results=tmp_path,
            grace_seconds=0.2,
            **ports,
            **QUICK,
        )
    assert answer.document()["parameters"]["place"]["placement"] == "external"
    assert answer.document()["median"] > 0
    trials = valid_trials(answer.folder)
    assert trials
    # The engine found the device's address out by itself, and nobody asked the device for its count.
    assert all(trial["result"]["ports"]["initiator"]["gateway_mac"] for trial in trials)
    assert all(trial["device_count_after"] is None for trial in trials)


def test_a_device_with_processes_of_its_own_gets_cores_of_its_own_where_there_are_any() -> None:
    several = len(os.sched_getaffinity(0)) > 1
    for gateway, wanted in (("tayga-nat64", "isolated" if several else "shared"), ("nftables-nat44", "shared")):
        assert Bench(ask("pdv", gateway, {}).cell).lab.placement == wanted
        assert Bench(ask("pdv", gateway, {"placement": "shared"}).cell).lab.placement == "shared"
