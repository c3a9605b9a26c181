# SPDX-License-Identifier: Apache-2.0
"""The `vm` lab with a real guest: built, booted, measured, killed; nothing is left of it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.labs.last_runs import record
from tests.labs.trying import decided, passing
from tests.plans import PlanOfTrial

import natgauge
from natgauge import cleaning, guest_building
from natgauge.doubts.neighbours import UNEVEN
from natgauge.errors import BrokenError, NatgaugeError
from natgauge.gateways.recipe import load
from natgauge.labs import kinds, vm
from natgauge.labs.common import namespaces
from natgauge.labs.contract import LabNeeds
from natgauge.labs.vm import image
from natgauge.labs.vm.lab import PROGRAM
from natgauge.procedures.kit.results import imbalance
from natgauge.records.record import read_lines
from natgauge.records.store import TRIAL_SCHEMA, Memory
from natgauge.trial.bench import Bench
from natgauge.trial.lab_measurer import LabMeasurer
from natgauge.trial.question import ask
from natgauge.trials import Phase2Plan
from natgauge.words import Verdict

pytestmark = [
    pytest.mark.slow("builds a guest and boots it in an emulator"),
    pytest.mark.skipif(
        "NATGAUGE_TEST_GUEST" not in os.environ, reason="a guest is built and emulated for minutes: make test-guest"
    ),
    pytest.mark.skipif(
        shutil.which(PROGRAM) is None or shutil.which("debootstrap") is None,
        reason="qemu-system-x86 or debootstrap is not installed: make test-guest installs them",
    ),
]
QUICK: dict[str, Any] = {
    "lab": "vm", "lab_name": "vmtest", "connections": 1000, "repeat": 1, "error": "20%", "seed": 5,
    # Of an emulated guest it is asked whether it works, not how fast: it may be late.
    "most_seconds": 20.0, "frame_timeout_seconds": 0.5,
}  # fmt: skip
#: Folder with Jool's branch mapt, built by its user: see docs/labs.md.
FILES = os.environ.get("NATGAUGE_TEST_GUEST_FILES")
USED_UP = "give more --most-seconds (0 = no end)"


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """Minutes where none was built yet."""
    guest_building.build(lambda _: None)


def own_labs() -> list[cleaning.LabStatus]:
    """Others may stand beside them."""
    return [lab for lab in cleaning.status() if lab.name == "vmtest"]


def left() -> list[str]:
    """What a guest left."""
    strays = [name for name in namespaces.names() if "vmtest" in name]
    strays += [lab.name for lab in own_labs()]
    strays += [str(path) for path in Path("/run/natgauge").glob("*/vmtest*")]
    found = subprocess.run(["pgrep", "-fl", "ng-vmtest|vmtest/initrd"], check=False, capture_output=True, text=True)
    return [*strays, *found.stdout.splitlines()]


@contextmanager
def logging_jool(way: str, **inputs: Any) -> Iterator[LabMeasurer]:
    """What measures Jool in a guest, with a log."""
    asked = {"lab": "vm", "lab_name": "vmtest", "connections": 1000, "logging": way, "seed": 5, **inputs}
    with Bench(ask("connection-rate", "jool-nat64", asked).cell) as bench:
        yield bench.ready(bench.plan("connection-rate", {}), Memory()).measurer


def test_a_guest_is_a_machine_of_its_own_and_goes_with_the_lab() -> None:
    lab = kinds.get("vm").plan(
        "vmtest",
        vm.VmOptions(guest_cores=2, guest_memory=512),
        LabNeeds(families=("ipv4", "ipv4"), devices=("one", "two")),
    )
    with lab:
        one, two = lab.devices
        assert one.run("uname -r").stdout.strip() == image.find().release
        assert one.environment["NG_CPUS"] == "0,1"
        assert 256 << 20 < two.machine.free_octets() < 512 << 20
        assert lab.parameters()["device_kernel"] == image.find().release
        # A setting of a kernel that is the guest's alone.
        setting = one.machine.setting("buckets", ["/sys/module/nf_conntrack/parameters/hashsize"], "nf_conntrack")
        own = Path("/sys/module/nf_conntrack/parameters/hashsize").read_text()
        setting.write(2048)
        assert setting.read() == 2048
        assert Path("/sys/module/nf_conntrack/parameters/hashsize").read_text() == own
        # An extension of iptables that is a link to the file of another one.
        masquerades = one.run("iptables -w -t nat -A POSTROUTING -j MASQUERADE")
        assert masquerades.status == 0, masquerades.said
    assert left() == []


def test_flows_are_spread_over_all_processors_of_a_guest() -> None:
    asked = {"lab": "vm", "lab_name": "vmtest", "guest_cores": 2, "guest_memory": 512, "connections": 2000, "seed": 3}
    with Bench(ask("throughput", "nftables-nat44", asked).cell) as bench:
        assert bench.lab.device_cores.count == 2
        assert bench.lab.parameters()["device_queues"] == ["combined 2", "combined 2"]
        measurer = bench.ready(bench.plan("throughput", {}), Memory()).measurer
        plan = PlanOfTrial(2000, 500.0, Phase2Plan(500.0, 0.0, 2.0), frame_timeout_seconds=1.0)
        spread = imbalance(passing(measurer, plan).readings.core_work)
    assert spread is not None
    assert spread < UNEVEN
    assert left() == []


def test_a_gateway_in_a_guest_is_audited(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"lab": "vm", "lab_name": "vmtest", "wait": 0.0, "mappings": 512}
    done = natgauge.audit("jool-nat64", results=tmp_path, **asked)
    verdicts = {(one.key, one.transport): one.verdict for one in done.record.requirements}
    assert done.record.classes["udp"].mapping == "endpoint-independent"
    assert verdicts["RFC6146-3.4-checksum", "udp"] == verdicts["RFC4787-REQ-9", "udp"] == "meets"
    assert left() == []


@pytest.mark.parametrize(
    "gateway",
    [
        "nftables-nat44",
        "jool-nat64",
        "jool-siit",
        "jool-clat",
        "tayga-iptables-nat64",
        "nftables-flowtable-nat44",
        "464xlat-jool",
        "ds-lite",
        "lw4o6-tunnels",
        "map-e-tunnels",
        pytest.param(
            "map-t-jool",
            marks=pytest.mark.skipif(FILES is None, reason="needs the user's own build in $NATGAUGE_TEST_GUEST_FILES"),
        ),
    ],
)
def test_a_gateway_in_a_guest_is_measured_and_its_result_stamped(gateway: str, tmp_path: Path) -> None:
    own_build: dict[str, Any] = {"guest_files": FILES} if gateway == "map-t-jool" else {}
    try:
        answer = natgauge.measure("connection-rate", gateway, results=tmp_path, **QUICK, **own_build)
    except BrokenError as error:
        assert str(error).rstrip().endswith(USED_UP), error  # noqa: PT017 - a busy machine may need longer
        folder, version = next(tmp_path.glob("*connection-rate*")), None
    else:
        folder = answer.folder
        place = answer.document()["parameters"]["place"]
        emulated = place["guest_accelerator"] == "tcg"
        assert place["emulated"] is emulated
        assert ("functional" in {doubt["word"] for doubt in answer.document()["doubts"]}) is emulated
        version = answer.document()["parameters"]["device"]["version"]
    trials = list(read_lines(folder / "trials.jsonl", TRIAL_SCHEMA))
    passed = [trial for trial in trials if trial["verdict"] == "PASS"]
    assert passed
    stateful = load(gateway).stateful
    assert all(trial["device_count_before"] == (0 if stateful else None) for trial in trials)
    assert all(trial["device_count_after"] == (trial["plan"]["connections"] if stateful else None) for trial in passed)
    assert left() == []
    if version:
        record(gateway, "guest", version)


@pytest.mark.parametrize("gateway", ["jool-nat64", "464xlat-jool"])
def test_jool_lists_every_connection_by_tcp_as_open_and_none_after_its_transaction(gateway: str) -> None:
    asked = {"lab": "vm", "lab_name": "vmtest", "connections": 1000, "transport": "tcp", "seed": 3}
    with Bench(ask("transaction-rate", gateway, asked).cell) as bench:
        measurer = bench.ready(bench.plan("transaction-rate", {}), Memory()).measurer
        # Both FINs of each connection have passed: Jool's transitory time-out.
        assert measurer.lingering_seconds == 240
        opened = passing(measurer, PlanOfTrial(1000, 500.0, frame_timeout_seconds=1.0))
        assert (opened.table_count, opened.readings.established) == (1000, 1000)
        closed = passing(measurer, PlanOfTrial(1000, 100.0, frame_timeout_seconds=1.0, request_octets=0, close="fin"))
        assert (closed.table_count, closed.readings.established) == (1000, 0)
    assert left() == []


@pytest.mark.parametrize(
    ("way", "transport"), [("session", "udp"), ("session", "tcp"), ("session", "icmp"), ("bib", "udp")]
)
def test_the_log_of_jool_is_complete_in_the_kernel_of_a_guest(way: str, transport: str) -> None:
    with logging_jool(way, transport=transport) as measurer:
        trial = passing(measurer, PlanOfTrial(1000, 500.0, Phase2Plan(500.0, 0.0, 0.5), frame_timeout_seconds=1.0))
    log = trial.readings.log
    assert log is not None
    assert (log.connections, log.records, log.is_odd, log.outside_named) == (1000, 1000, False, True)
    assert left() == []


def test_what_the_kernel_overwrites_before_it_is_read_is_missing_and_counted_and_nothing_after_it() -> None:
    plan = PlanOfTrial(5000, 1000.0, frame_timeout_seconds=1.0)
    with logging_jool("session", connections=5000) as measurer:
        assert measurer.log is not None
        # Who reads the kernel's log stands still for longer than its buffer has room (128 KiB).
        stands_still = """
        (
            until [ "$(grep -c 'Added session' "$NG_WORK/sessions.log")" -gt 100 ]; do sleep 0.1; done
            kill -s STOP $(pidof cat)
            sleep 4
            kill -s CONT $(pidof cat)
        ) > /dev/null 2>&1 &
        """
        assert measurer.log.device.run(stands_still).status == 0
        trial = decided(measurer, plan)
        log = trial.readings.log
        assert log is not None
        assert (trial.verdict, trial.limited_by) == (Verdict.FAIL, "log"), trial.reason
        assert log.lost > 1000
        assert trial.cause is not None
        assert (trial.cause.counter, trial.readings.faults["log_drops"]) == ("log_drops", log.lost)
        assert passing(measurer, plan).readings.faults["log_drops"] == 0


def test_jool_does_not_log_where_the_console_would_get_each_record_too() -> None:
    with logging_jool("session") as measurer:
        assert measurer.log is not None
        assert measurer.device is not None
        machine = measurer.log.device
        assert machine.run("echo 7 > /proc/sys/kernel/printk").status == 0
        with pytest.raises(NatgaugeError, match=r"kernel\.printk: 7: the console of this machine"):
            measurer.device.restart()
        assert machine.run("cut -f 1 /proc/sys/kernel/printk").stdout == "7\n"


def test_a_guest_has_the_users_files(tmp_path: Path) -> None:
    program = tmp_path / "usr/local/bin/mine"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho it runs\n")
    program.chmod(0o755)
    options = vm.VmOptions(guest_memory=512, guest_files=str(tmp_path))
    with kinds.get("vm").plan("vmtest", options, LabNeeds(families=("ipv4", "ipv4"))) as lab:
        assert lab.devices[0].run("mine").stdout.strip() == "it runs"
    assert left() == []


def test_nothing_is_left_of_a_guest_after_a_kill(tmp_path: Path) -> None:
    asked = [
        "measure",
        "connection-rate",
        "--gateway=nftables-nat44",
        "--lab=vm",
        "--lab-name=vmtest",
        "--connections=500",
    ]
    for seconds in (1.5, 6.0):
        process = subprocess.Popen(
            [sys.executable, "-c", "from natgauge.cli import main; main()", *asked],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ},
        )
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        process.wait()
        cleaning.clean({"vmtest"})
        assert left() == []
