# SPDX-License-Identifier: Apache-2.0
"""Gateways that are processes: waited for, watched, ended."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.absent import absent
from tests.unit.golden import Golden
from tests.unit.made_machine import Memory

from natgauge.errors import BrokenError, UsageError
from natgauge.gateways import gateway as driver
from natgauge.gateways.gateway import Gateway
from natgauge.gateways.limits import DeviceDemand
from natgauge.gateways.processes import Process
from natgauge.gateways.recipe import Recipe, load
from natgauge.gateways.toml_layers import BUILT_IN
from natgauge.labs.common.device import ThisMachine
from natgauge.labs.contract import CommandResult

PLAN = DeviceDemand(connections=100_000, phase1_seconds=50, after_seconds=50, source_addresses=4, remote_endpoints=50)
#: Shells that a device may have as its /bin/sh.
SHELLS = ("dash", "busybox sh", "mksh")
MINE = """
name = "mine"
title = "A process of mine"
kind = "routing"
initiator_family = "ipv4"
responder_family = "ipv4"
stateful = false
source = "unchanged"

[[process]]
name = "mine"
command = '''{command}'''
stop_seconds = 1

[verbs]
start = 'rm -f "$NG_WORK/ready"'
check = 'cat "$NG_WORK/ready"'
version = "echo 1"
stop = 'rm -f "$NG_WORK/ready"'
"""


@dataclass
class HereDevice:
    """As `natgauge.labs.contract.Device`: this machine, and one of the shells that a device may have."""

    work: Path
    machine: ThisMachine
    environment: Mapping[str, str]
    shell: str
    name: str = "gateway"
    inside: str = "em1"
    outside: str = "em2"

    def frame_processes(self) -> tuple[str, ...]:
        return ()

    def run(
        self, snippet: str, *, environment: Mapping[str, str] | None = None, timeout: float = 60.0
    ) -> CommandResult:
        began = time.monotonic()
        done = subprocess.run(
            [*self.shell.split(), "-eu", "-c", snippet.replace("/bin/sh", self.shell)],
            env={"PATH": os.defpath, **self.environment, **(environment or {})},
            cwd=self.work,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )
        return CommandResult(done.returncode, done.stdout, done.stderr, time.monotonic() - began)


@pytest.fixture(params=SHELLS)
def device(request: pytest.FixtureRequest, tmp_path: Path) -> HereDevice:
    if absent(request.param.split(maxsplit=1)[0]):
        pytest.skip(f"{request.param} is not installed")
    work = tmp_path / "work"
    work.mkdir()
    seen = {"NG_WORK": str(work), "NG_INSIDE": "em1", "NG_OUTSIDE": "em2"}
    return HereDevice(work, ThisMachine(Memory), seen, request.param)


@pytest.fixture
def mine(tmp_path: Path) -> Callable[[str], Recipe]:
    """A recipe of one process."""

    def made(command: str) -> Recipe:
        (tmp_path / "mine.toml").write_text(MINE.format(command=command))
        return load(tmp_path / "mine.toml")

    return made


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_process_that_dies_while_it_is_waited_for_is_told_at_once(
    device: HereDevice, mine: Callable[[str], Recipe], golden: Golden
) -> None:
    gateway = Gateway(mine("sh -c 'echo no such card >&2; exit 3'"), device)
    gateway.prepare(PLAN)
    began = time.monotonic()
    with golden.raises(BrokenError):
        gateway.start()
    assert time.monotonic() - began < 5
    gateway.stop()
    assert list(device.work.iterdir()) == []


def test_a_process_is_waited_for_and_killed_when_it_does_not_end(
    device: HereDevice, mine: Callable[[str], Recipe]
) -> None:
    recipe = mine("sh -c 'trap \"\" TERM; sleep 0.3; echo up > ready; while :; do sleep 0.2; done'")
    gateway = Gateway(recipe, device)
    gateway.prepare(PLAN)
    gateway.start()
    pid = int((device.work / "mine.pid").read_text())
    assert not gone(pid)
    gateway.confirm_ready()
    began = time.monotonic()
    gateway.stop()
    assert 0.9 < time.monotonic() - began < 6
    assert gone(pid)
    assert list(device.work.iterdir()) == []


def test_a_process_that_was_killed_is_noticed(
    device: HereDevice, mine: Callable[[str], Recipe], golden: Golden
) -> None:
    recipe = mine("sleep 600")
    gateway = Gateway(recipe, device)
    gateway.prepare(PLAN)
    (device.work / "mine.end").write_text("0\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "_READY_SECONDS", 0.3)
        quick = gateway.recipe.process[0].model_copy(update={"ready_seconds": 1})
        gateway.recipe = recipe.model_copy(update={"process": (quick,)})
        with golden.raises(BrokenError):
            gateway.start()
    gateway.stop()
    again = Gateway(gateway.recipe, device)
    again.prepare(PLAN)
    device.run(quick.start)
    time.sleep(0.3)
    (device.work / "ready").write_text("")
    again.confirm_ready()
    os.kill(int((device.work / "mine.pid").read_text()), signal.SIGKILL)
    time.sleep(0.3)
    with golden.raises(BrokenError):
        again.confirm_ready()
    device.run(quick.stop)


@pytest.mark.parametrize(
    "told",
    [
        "",
        "natgauge-end 0\n|/usr/lib/systemd/systemd-coredump %P\n",
        "natgauge-end \ncore\nhello\n",
        "natgauge-end 139\n|/usr/lib/systemd/systemd-coredump %P\na\nb\n",
        "natgauge-end 134\ncore.%p\n",
        "natgauge-end 143\ncore\n",
        "natgauge-end 255\ncore\n",
    ],
)
def test_an_end_is_told_in_words(told: str, golden: Golden) -> None:
    golden(Process(name="p", command="p").ended(told))


def test_a_process_without_a_command_is_refused(tmp_path: Path, golden: Golden) -> None:
    (tmp_path / "mine.toml").write_text(MINE.format(command=""))
    with golden.raises(UsageError):
        load(tmp_path / "mine.toml")


SECOND = '[[{}]]\nname = "{}"\ncommand = "sleep 600"\n'
WAY = '[logging.mine]\nrecords = "connections.log"\nrecord = "(?P<source>.)(?P<source_port>.)(?P<destination>.)"\n'


@pytest.mark.parametrize(
    "added",
    [
        [SECOND.format("process", "nat"), SECOND.format("process", "nat")],
        [SECOND.format("process", "nat"), WAY, SECOND.format("logging.mine.process", "nat")],
        # That of the recipe's own fragment.
        [SECOND.format("process", "log")],
        [WAY, SECOND.format("logging.mine.process", "log"), SECOND.format("logging.mine.process", "log")],
    ],
)
def test_two_processes_of_one_name_are_refused(added: list[str], tmp_path: Path, golden: Golden) -> None:
    """The second one took the file with the number of the first one, which nobody watched or ended then."""
    text = (BUILT_IN / "nftables-nat44.toml").read_text().replace("nftables-nat44", "mine")
    (tmp_path / "mine.toml").write_text("\n".join([text, *added]))
    with golden.raises(UsageError) as refused:
        load(tmp_path / "mine.toml")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("process", ["process", "logging.mine.process"])
def test_records_in_the_log_of_a_process_are_refused(process: str, tmp_path: Path, golden: Golden) -> None:
    """Of that file natgauge keeps the last part only: a gateway seemed not to log the connections before."""
    text = (BUILT_IN / "nftables-nat44.toml").read_text().replace("nftables-nat44", "mine")
    way = f"{WAY}start = 'true'\n".replace("connections.log", "nat.log")
    (tmp_path / "mine.toml").write_text("\n".join([text, way, SECOND.format(process, "nat")]))
    with golden.raises(UsageError):
        load(tmp_path / "mine.toml")


def test_processes_of_two_ways_may_have_one_name_as_only_one_of_the_ways_runs(tmp_path: Path) -> None:
    text = (BUILT_IN / "nftables-nat44.toml").read_text().replace("nftables-nat44", "mine")
    (tmp_path / "mine.toml").write_text("\n".join([text, WAY, SECOND.format("logging.mine.process", "log")]))
    ways = load(tmp_path / "mine.toml").logging
    assert len(ways) > 2
    assert {process.name for way in ways.values() for process in way.process} == {"log"}


def worker(device: HereDevice) -> int:
    """Process number of a worker that a process forked; waited for."""
    deadline = time.monotonic() + 5
    while not (text := (device.work / "worker").read_text() if (device.work / "worker").exists() else "").strip():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return int(text)


def soon_gone(pid: int) -> bool:
    """Whether a process has ended within 2 s; one that nobody waited for has ended, too."""
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        if gone(pid) or Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def forking(mine: Callable[[str], Recipe]) -> Recipe:
    """A recipe of a process with a worker that does not end with it, as of kresd -f 2."""
    return mine("sh -c 'sleep 600 & echo $! > worker; echo up > ready; exec sleep 600'")


def test_what_a_process_forked_ends_when_the_gateway_is_stopped(device: HereDevice, forking: Recipe) -> None:
    gateway = Gateway(forking, device)
    gateway.prepare(PLAN)
    gateway.start()
    pid = worker(device)
    assert not gone(pid)
    gateway.stop()
    assert soon_gone(pid)


def test_what_a_process_forked_ends_when_the_process_is_killed(device: HereDevice, forking: Recipe) -> None:
    gateway = Gateway(forking, device)
    gateway.prepare(PLAN)
    gateway.start()
    pid = worker(device)
    os.kill(int((device.work / "mine.pid").read_text()), signal.SIGKILL)
    assert soon_gone(pid)
    gateway.stop()


def test_a_process_has_its_own_session_when_its_start_returns(
    device: HereDevice, mine: Callable[[str], Recipe]
) -> None:
    process = mine("sleep 600").process[0]
    device.run(process.start)
    pid = int((device.work / "mine.pid").read_text())
    assert os.getsid(pid) == pid
    device.run(process.stop)
    assert gone(pid)


def test_stopping_ends_nothing_of_another_group(device: HereDevice, mine: Callable[[str], Recipe]) -> None:
    process = mine("sleep 600").process[0]
    bystander = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        device.run(process.start)
        device.run(process.stop)
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()
