# SPDX-License-Identifier: Apache-2.0
"""The `ssh` lab against a real sshd: made, used, undone; killed, cut off, refused; nothing is left over there."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.absent import absent
from tests.labs.far import LABS, PORT, SSHD, TIMEOUT, FarMachine, await_room, far_machine, unchanged
from tests.labs.nat44 import variant
from tests.labs.rough import decided, settings_of, slow_tester
from tests.labs.trying import passing
from tests.plans import PlanOfTrial

import natgauge
from natgauge import cleaning
from natgauge.agreement.generated import Progress
from natgauge.errors import BrokenError, HostError, NatgaugeError, UsageError
from natgauge.host import recorded
from natgauge.labs import kinds, ssh
from natgauge.labs.common import namespaces
from natgauge.labs.common.links import MTU
from natgauge.labs.contract import Lab, LabNeeds
from natgauge.labs.ssh import remote
from natgauge.labs.ssh.remote import Connection, SshHost
from natgauge.procedures import procedures
from natgauge.procedures.kit.runner import Event
from natgauge.records.record import read_lines
from natgauge.records.store import TRIAL_SCHEMA, Memory
from natgauge.trial import controls
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask

pytestmark = [
    TIMEOUT,
    pytest.mark.slow("measures over ssh, kills the far side's sshd and waits until its end is noticed"),
    pytest.mark.skipif(absent(SSHD), reason="openssh-server is not installed: make test installs it"),
]
NAT = "nftables-nat44"
CONNECTIONS = 500
#: These take the slow tester 0.3 s, in which something can happen to the machine.
LASTING = 1500
QUICK: dict[str, Any] = {"connections": CONNECTIONS, "seed": 5, "lab_name": "sshlab", "grace_seconds": 0.3}
NEED = LabNeeds(families=("ipv4", "ipv4"), far_settings=recorded)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FarMachine]:
    """One for all tests, which search no higher than the tester is said to reach."""
    with far_machine("sshfar", tmp_path_factory.mktemp("far")) as machine, slow_tester():
        yield machine


@pytest.fixture
def far(machine: FarMachine) -> Iterator[FarMachine]:
    """The machine, on which nothing may be left, whatever the test did."""
    with unchanged(machine):
        yield machine


@contextmanager
def written(file: Path, text: str) -> Iterator[None]:
    """A file of the machine with another text in it."""
    right = file.read_text()
    file.write_text(text)
    try:
        yield
    finally:
        file.write_text(right)


def place(far: FarMachine, **others: Any) -> ssh.SshOptions:
    chosen = {**far.chosen, **others}
    del chosen["lab"]
    return ssh.SshOptions(**chosen)


def lab_on(far: FarMachine, need: LabNeeds = NEED, **others: Any) -> Lab:
    lab: Lab = kinds.get("ssh").plan("sshlab", place(far, **others), need)
    return lab


def own_labs() -> list[cleaning.LabStatus]:
    """Others may stand beside them."""
    return [lab for lab in cleaning.status() if lab.name in LABS]


def trials_of(folder: Path) -> list[dict[str, Any]]:
    return list(read_lines(folder / "trials.jsonl", TRIAL_SCHEMA))


def test_a_snippet_runs_in_the_device_over_there_and_is_killed_when_it_takes_too_long(
    far: FarMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The way to this machine is short: a command that outlasts its time is given up soon.
    monkeypatch.setattr(remote, "_SLACK_SECONDS", 0.5)
    with lab_on(far) as lab:
        (device,) = lab.devices
        assert set(far.interfaces()) == {"lo"}
        said = device.run('ip -o -4 addr show "$NG_INSIDE"; pwd; echo "$NG_CPUS"; echo wrong >&2; exit 3')
        assert said.status == 3
        assert "10.0.0.1/16" in said.stdout
        assert said.stdout.splitlines()[1] == str(Path(device.environment["NG_WORK"]).resolve())
        assert said.stderr == "wrong\n"
        assert device.run("sleep 0.2").seconds >= 0.2
        # What a gateway sets is the device's, not the machine's.
        assert device.run("cat /proc/sys/net/ipv4/ip_forward").stdout == "1\n"
        own = ["ip", "netns", "exec", far.name, "cat", "/proc/sys/net/ipv4/ip_forward"]
        assert subprocess.run(own, check=True, capture_output=True, text=True).stdout == "0\n"
        assert device.machine.free_octets() > 0
        # A snippet that takes too long is killed over there.
        with pytest.raises(BrokenError, match=r"did not end within 0\.5 s"):
            device.run("sleep 987", timeout=0.5)
        found = subprocess.run(["pgrep", "-fx", "sleep 987"], check=False, capture_output=True, text=True)
        assert found.stdout == ""
        assert device.run("echo on").stdout == "on\n"
    assert far.left() == []
    assert own_labs() == []


def test_the_devices_cores_are_the_processors_online_and_no_others_are_promised(far: FarMachine) -> None:
    online = os.sysconf("SC_NPROCESSORS_ONLN")
    with lab_on(far, device_cores=online) as lab:
        assert lab.device_cores.count == online
        assert len(lab.device_cores.numbers) == online
        # They are another machine's: no core of the tester is watched for them.
        assert lab.device_cpus == ()
    with pytest.raises(UsageError, match=rf"^device cores: {online + 1} asked for, ssh host \S+ has {online} online"):
        lab_on(far, device_cores=online + 1).__enter__()
    assert far.left() == []


@contextmanager
def processors(far: FarMachine, folder: Path) -> Iterator[str]:
    """A boot command that lets the machine answer with $NG_CORES processors; a moment later, and after it was away."""
    online = folder / "online"
    mount = f"nsenter --target={far.holder.pid} --mount mount --bind {online} /sys/devices/system/cpu/online"
    script = folder / "boot.sh"
    # A machine that is booted knows nothing of the lab any more.
    script.write_text(
        f"rm -rf /var/run/natgauge-device*; pkill -KILL -P {far.sshd.pid}\n"
        f'( sleep 1; echo "0-$((NG_CORES - 1))" > {online}; {mount} ) > /dev/null 2>&1 &\n'
    )
    try:
        yield f"sh {script}"
    finally:
        away = ["nsenter", f"--target={far.holder.pid}", "--mount", "umount", "/sys/devices/system/cpu/online"]
        subprocess.run(away, check=False, capture_output=True)


def test_the_machine_is_booted_with_other_processors_than_it_has(far: FarMachine, tmp_path: Path) -> None:
    online = os.sysconf("SC_NPROCESSORS_ONLN")
    with processors(far, tmp_path) as command:
        chosen: dict[str, Any] = {"device_cores": online + 1, "boot_command": command, "boot_settle_seconds": 0.1}
        with lab_on(far, **chosen) as lab:
            assert lab.device_cores.count == online + 1
            told = lab.parameters()
            assert (told["boot_command"], told["boot_settle_seconds"]) == (command, 0.1)
            assert told["boot_took_seconds"] >= 1
        # It has that number already.
        with lab_on(far, **chosen) as lab:
            assert lab.parameters()["boot_took_seconds"] is None
    assert far.left() == []


def test_a_machine_that_does_not_come_back_with_the_processors_is_given_up_in_one_line(far: FarMachine) -> None:
    online = os.sysconf("SC_NPROCESSORS_ONLN")
    wrong = rf"^boot command: the device was not back 1 s after 'true' began \(it has {online} processors online, not"
    with pytest.raises(HostError, match=wrong):
        lab_on(far, device_cores=online + 1, boot_command="true", boot_seconds=1.0).__enter__()
    assert far.left() == []
    assert own_labs() == []
    with pytest.raises(UsageError, match=r"^boot command: the number of processors is missing; give --device-cores N"):
        lab_on(far, boot_command="true")


def test_the_machines_queues_are_recorded_set_and_restored(far: FarMachine) -> None:
    def queues() -> str:
        asked = ["ip", "netns", "exec", far.name, "ethtool", "-l", "far0"]
        return subprocess.run(asked, check=True, capture_output=True, text=True).stdout

    before = queues()
    with lab_on(far) as lab:
        found = lab.parameters()
        assert [bool(one) for one in found["device_queues"]] == [True, True]
        # No driver of virtual cables has a flow hash to choose.
        assert found["device_flow_hash"] == [None, None]
        assert "tune_device" not in found
    assert queues() == before
    with lab_on(far, tune_device=True) as lab:
        tuned = lab.parameters()
        assert tuned["tune_device"]
        assert "device_remarks" not in tuned, tuned["device_remarks"]
    assert queues() == before


def planned(far: FarMachine, gateway: str = NAT, **others: Any) -> Bench:
    """A bench of the device over there."""
    await_room(LASTING)
    return Bench(ask("connection-rate", gateway, {**QUICK, **far.chosen, **others}).cell)


def test_a_chain_is_laid_over_there_with_a_pool_at_its_last_device(far: FarMachine) -> None:
    with planned(far, "464xlat-tayga", connections=200, outside_addresses=4) as bench:
        local = [device.run("ip route show table local type local").stdout for device in bench.lab.devices]
        assert ["198.19.128.0/30" in table for table in local] == [False, True]
        measurer = bench.ready(bench.plan("connection-rate", {}), Memory()).measurer
        # The test requires that the chain works, whatever its speed: frames may be late.
        passing(measurer, PlanOfTrial(200, 1_000.0, frame_timeout_seconds=0.5))


def test_the_counts_of_a_measurement_are_exact(far: FarMachine, tmp_path: Path) -> None:
    trials = measured(far, tmp_path)
    passed = [trial for trial in trials if trial["verdict"] == "PASS"]
    assert passed
    assert all(trial["device_count_before"] == 0 for trial in trials)
    assert all(trial["device_count_after"] == CONNECTIONS for trial in passed)
    online = os.sysconf("SC_NPROCESSORS_ONLN")
    for trial in passed if online > 1 else ():
        assert len(trial["core_work"]) == online
        assert sum(one["frames"] for one in trial["core_work"].values()) >= CONNECTIONS
        assert all(one["busy_seconds"] >= 0 for one in trial["core_work"].values())
    plan = json.loads(next(tmp_path.glob("*connection-rate*/plan.json")).read_text())
    assert (plan["lab_kind"], plan["placement"], plan["emulated"]) == ("ssh", "external", False)
    assert plan["device_kernel"] == os.uname().release


#: A restart under load; the count of the device over there is asked for by the connection rate.
MECHANISMS = ("reset",)
#: Cost is of devices that work in the sender's context, and an overload of rough rates loses nothing; traffic of DNS is
#: tested elsewhere, and expiry takes a minute.
OTHERS = sorted(set(procedures()) - {"cost", "connection-rate", "system-recovery", *MECHANISMS})
#: Traffic and times that a metric wants; a restart over SSH takes a second while the host stalls.
OWN: Mapping[str, Mapping[str, Any]] = {
    "resolution-rate": {"destination_ports": "53"},
    "expiry": {"udp_timeout": 12},
    "reset": {"trial_seconds": 3.0},
}


@pytest.mark.parametrize("metric", [*MECHANISMS, *(pytest.param(one, marks=pytest.mark.soak) for one in OTHERS)])
def test_a_metric_is_answered(metric: str, far: FarMachine, tmp_path: Path) -> None:
    trials = measured(far, tmp_path, metric=metric, **OWN.get(metric, {}))
    ended = [trial for trial in trials if trial["verdict"] == decided(metric)]
    assert {trial["device_count_before"] for trial in ended} == {0}


class Cutting:
    """Does something to the machine as soon as frames of the n-th trial flow."""

    def __init__(self, act: Callable[[], None], trial: int = 2) -> None:
        self.act, self.trial, self.acted = act, trial, threading.Event()
        self.now = 0

    def stage(self, text: str) -> None: ...

    def event(self, event: Event) -> None:
        self.now = event.trial

    def running(self, _: Progress) -> None:
        if self.now >= self.trial and not self.acted.is_set():
            self.acted.set()
            self.act()


def measured(
    far: FarMachine, folder: Path, gateway: str = NAT, metric: str = "connection-rate", observer: Cutting | None = None,
    **others: Any,
) -> list[dict[str, Any]]:  # fmt: skip
    """The trials of a rough measurement, which is always answered."""
    asked = {**settings_of(metric), **QUICK, **others}
    await_room(asked["connections"])
    return trials_of(natgauge.measure(metric, gateway, results=folder, observe=observer, **far.chosen, **asked).folder)


def test_a_connection_lost_in_mid_trial_is_made_again(far: FarMachine, tmp_path: Path) -> None:
    observer = Cutting(far.drop, trial=1)
    trials = measured(far, tmp_path, observer=observer, repeat=2, connections=LASTING)
    assert observer.acted.is_set()
    assert len(trials) > observer.trial
    assert "PASS" in {trial["verdict"] for trial in trials[observer.trial :]}
    # A search on a slow host has trials of fewer connections, too.
    passed = [trial for trial in trials if trial["verdict"] == "PASS"]
    assert [trial["device_count_after"] for trial in passed] == [trial["plan"]["connections"] for trial in passed]


@pytest.mark.soak  # a connection that is lost and made again is of `make test`
def test_a_machine_lost_in_mid_trial_ends_the_measurement_and_the_next_one_cleans_up(
    far: FarMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sshd is killed while frames flow, with every connection to it, and comes back later."""
    # The machine stays away: each command is tried twice, not four times.
    monkeypatch.setattr(controls, "PAUSES", (0.1,))
    observer = Cutting(far.cut)
    try:
        with pytest.raises(NatgaugeError) as caught:
            measured(far, tmp_path, observer=observer, repeat=3, connections=LASTING)
        assert observer.acted.is_set(), caught.value
        assert "\n" not in str(caught.value)
        (folder,) = tmp_path.glob("*connection-rate*")
        told = [f"{trial['verdict']}: {trial['reason']}" for trial in trials_of(folder)]
        collapsed = any(one.startswith("COLLAPSED") for one in told)
        assert collapsed != ("ssh" in str(caught.value)), (told, caught.value)
        # Nothing can be undone over there, so it stays written down here.
        assert [(lab.name, lab.state) for lab in own_labs()] == [("sshlab", "left behind")]
        assert far.left() != []
    finally:
        if observer.acted.is_set():
            far.listen()
    with planned(far) as bench:
        # It proves that frames come through.
        bench.ready(bench.plan("connection-rate", {}), Memory())
    assert far.left() == []
    assert own_labs() == []


@pytest.mark.parametrize("kills", [1, pytest.param(8, marks=pytest.mark.soak)])
def test_nothing_is_left_after_a_kill_at_any_moment(kills: int, far: FarMachine, tmp_path: Path) -> None:
    """The moments are random, from a seed, over making the lab, measuring and giving it back."""
    moments = random.Random(20261122)  # noqa: S311 - nothing secret
    asked = [
        "measure",
        "connection-rate",
        f"--gateway={NAT}",
        "--profile=quick",
        "--connections=500",
        "--most-seconds=3",
    ]
    options = [f"--{name.replace('_', '-')}={value}" for name, value in far.chosen.items()]
    for _ in range(kills):
        process = subprocess.Popen(
            [sys.executable, "-c", "from natgauge.cli import main; main()", *asked, "--lab-name=sshkill", *options],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(moments.uniform(0.3, 5.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
        cleaning.clean(set(LABS))
        assert far.left() == []
        assert own_labs() == []
    found = subprocess.run(["pgrep", "-f", str(far.folder / "config")], check=False, capture_output=True, text=True)
    deadline = time.monotonic() + 20
    while found.stdout and time.monotonic() < deadline:
        time.sleep(0.1)
        found = subprocess.run(["pgrep", "-f", str(far.folder / "config")], check=False, capture_output=True, text=True)
    assert found.stdout == ""


def test_the_connection_of_a_killed_run_ends_before_another_is_made(far: FarMachine, tmp_path: Path) -> None:
    """Its end would cost the run that shares it a command."""
    host, control = SshHost("far", str(far.folder / "config"), far.name), tmp_path / "ssh"
    left, made = Connection(host, control), Connection(host, control)
    left.open()
    assert left._process is not None
    try:
        made.open()
        assert left._process.wait(5.0) != 0
        assert made.run("echo here", 10.0).stdout == "here\n"
    finally:
        made.close()
        left.close()


def refused(far: FarMachine, tmp_path: Path, **others: Any) -> NatgaugeError:
    """What is said to a question that cannot be answered; nothing is left of it anywhere."""
    with pytest.raises(NatgaugeError) as caught:
        natgauge.measure("throughput", NAT, results=tmp_path, **{**far.chosen, **QUICK, **others})
    assert far.left() == []
    assert own_labs() == []
    assert "\n" not in str(caught.value)
    return caught.value


def test_hosts_that_cannot_be_used_are_refused_in_one_line(far: FarMachine, tmp_path: Path) -> None:
    assert "no host of this name" in str(refused(far, tmp_path, ssh_host="root@nowhere.invalid", ssh_config=None))
    assert "refuses connections" in str(refused(far, tmp_path, ssh_host="ssh://root@127.0.0.1:9"))
    assert "cannot be read" in str(refused(far, tmp_path, ssh_config=str(tmp_path / "none")))
    assert isinstance(refused(far, tmp_path, ssh_host="-oProxyCommand=false"), UsageError)


def test_a_host_key_that_is_not_known_or_has_changed_is_refused(far: FarMachine, tmp_path: Path) -> None:
    known = far.folder / "known"
    with written(known, ""):
        assert "host key is not known" in str(refused(far, tmp_path))
    with written(known, f"[127.0.0.1]:{PORT} {(far.folder / 'user.pub').read_text()}"):
        assert "host key has changed" in str(refused(far, tmp_path))


def test_a_machine_that_wants_a_password_is_refused(far: FarMachine, tmp_path: Path) -> None:
    with written(far.folder / "authorized", ""):
        assert "asks for a password" in str(refused(far, tmp_path))


def test_interfaces_that_cannot_be_taken_are_refused(far: FarMachine, tmp_path: Path) -> None:
    assert "far9 does not exist" in str(refused(far, tmp_path, device_inside="far9"))
    assert "by which the machine is reached" in str(refused(far, tmp_path, device_inside="lo"))
    assert "named for both" in str(refused(far, tmp_path, device_inside="far1"))
    assert "is no interface" in str(refused(far, tmp_path, device_inside="far0; reboot"))
    subprocess.run(["ip", "-n", far.name, "addr", "add", "192.0.2.1/24", "dev", "far0"], check=True)
    try:
        assert "carries IP address 192.0.2.1/24" in str(refused(far, tmp_path))
    finally:
        subprocess.run(["ip", "-n", far.name, "addr", "del", "192.0.2.1/24", "dev", "far0"], check=True)
    assert "port9" in str(refused(far, tmp_path, initiator_port="port9"))


def test_a_program_that_is_missing_over_there_is_named(far: FarMachine, tmp_path: Path) -> None:
    recipe = variant(tmp_path, "mine", '[[needs]]\nprograms = ["nobody-has-this"]\npackage = "nobodys"\n')
    with pytest.raises(
        HostError, match=r'"nobody-has-this" is missing on device gateway; run: apt-get install nobodys'
    ):
        natgauge.measure("throughput", recipe, results=tmp_path, **far.chosen, **QUICK)
    assert own_labs() == []


def test_a_machine_is_used_by_one_lab_at_a_time_and_its_interfaces_go_back_as_they_were_found(far: FarMachine) -> None:
    subprocess.run(["ip", "-n", far.name, "link", "set", "far1", "mtu", "3600"], check=True)
    before = subprocess.run(["ip", "-n", far.name, "-o", "link"], check=True, capture_output=True, text=True).stdout
    try:
        with lab_on(far) as lab:
            assert lab.devices[0].run("true").status == 0
            prepared = f"""
                for number in 0 1; do
                    ip link add more$number type veth peer name extra$number netns {far.name}
                    sysctl -qw net.ipv6.conf.more$number.disable_ipv6=1
                    ip link set more$number up
                    ip -n {far.name} link set extra$number up
                done"""
            subprocess.run(["ip", "netns", "exec", far.tester, "sh", "-euc", prepared], check=True)
            other = {"initiator_port": "more0", "responder_port": "more1"}
            options = place(far, device_inside="extra0", device_outside="extra1", **other)
            second = kinds.get("ssh").plan("second", options, NEED)
            with pytest.raises(HostError, match=r"is used by natgauge on .* \(lab sshlab\)"):
                second.__enter__()
            for port in other.values():
                subprocess.run(["ip", "-n", far.tester, "link", "del", port], check=True)
        after = subprocess.run(["ip", "-n", far.name, "-o", "link"], check=True, capture_output=True, text=True).stdout
    finally:
        subprocess.run(["ip", "-n", far.name, "link", "set", "far1", "mtu", str(MTU)], check=True)
    assert [line.split()[1:5] for line in after.splitlines()] == [line.split()[1:5] for line in before.splitlines()]
    if shutil.which("ethtool"):
        shown = subprocess.run(
            ["ip", "netns", "exec", far.name, "ethtool", "-k", "far0"], check=True, capture_output=True, text=True
        ).stdout
        assert "tx-checksumming: off" in shown  # as `make` had left it
    assert not namespaces.exists("natgauge-sshlab-gateway")
    assert own_labs() == []
