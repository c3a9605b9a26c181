# SPDX-License-Identifier: Apache-2.0
"""Gateways that are processes: waited for, watched, ended, found; what /proc says of a process."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.absent import absent
from tests.unit.golden import Golden
from tests.unit.made_machine import Memory
from tests.unit.made_results import grouped

from natgauge.analysis.unit_frames import own_work
from natgauge.errors import BrokenError, UsageError
from natgauge.gateways import gateway as driver
from natgauge.gateways.gateway import Gateway
from natgauge.gateways.limits import DeviceDemand
from natgauge.gateways.recipe import Recipe, load
from natgauge.gateways.recipe_model import Process
from natgauge.gateways.toml_layers import BUILT_IN
from natgauge.host import knobs, process_files
from natgauge.labs.common import processes
from natgauge.labs.common.device import NamespaceDevice, ThisMachine
from natgauge.labs.contract import CommandResult
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask

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


IN_ITS_LOG = f"{WAY}start = 'true'\n".replace("connections.log", "nat.log")


@pytest.mark.parametrize(
    "added",
    [
        # The second one took the file with the number of the first one, which nobody watched or ended then.
        [SECOND.format("process", "nat"), SECOND.format("process", "nat")],
        [SECOND.format("process", "nat"), WAY, SECOND.format("logging.mine.process", "nat")],
        # That of the recipe's own fragment.
        [SECOND.format("process", "log")],
        [WAY, SECOND.format("logging.mine.process", "log"), SECOND.format("logging.mine.process", "log")],
        # Of that file natgauge keeps the last part only: a gateway seemed not to log the connections before.
        [IN_ITS_LOG, SECOND.format("process", "nat")],
        [IN_ITS_LOG, SECOND.format("logging.mine.process", "nat")],
    ],
)
def test_two_processes_of_one_name_and_records_in_the_log_of_one_are_refused(
    added: list[str], tmp_path: Path, golden: Golden
) -> None:
    text = (BUILT_IN / "nftables-nat44.toml").read_text().replace("nftables-nat44", "mine")
    (tmp_path / "mine.toml").write_text("\n".join([text, *added]))
    with golden.raises(UsageError) as refused:
        load(tmp_path / "mine.toml")
    assert "\n" not in str(refused.value)


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


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_what_a_process_forked_ends_when_the_gateway_is(how: str, device: HereDevice, forking: Recipe) -> None:
    gateway = Gateway(forking, device)
    gateway.prepare(PLAN)
    gateway.start()
    pid = worker(device)
    assert not gone(pid)
    if how == "killed":
        os.kill(int((device.work / "mine.pid").read_text()), signal.SIGKILL)
        assert soon_gone(pid)
    gateway.stop()
    assert soon_gone(pid)


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


# What /proc says of a process, whatever name its user gave it.

_SET_NAME, _GET_NAME = 15, 16  # prctl(2)
ODD = b") \xff 9 \xfe"


@pytest.fixture
def oddly_named() -> Iterator[int]:
    """This process has a name with a parenthesis and octets that are no UTF-8; its number."""
    assert threading.current_thread() is threading.main_thread()
    libc, before = ctypes.CDLL(None), ctypes.create_string_buffer(16)
    libc.prctl(_GET_NAME, before, 0, 0, 0)
    libc.prctl(_SET_NAME, ODD, 0, 0, 0)
    yield os.getpid()
    libc.prctl(_SET_NAME, before, 0, 0, 0)


def test_a_name_may_hold_any_octets(oddly_named: int) -> None:
    assert process_files.name_of(Path("/proc/self")) == ") \ufffd 9 \ufffd"
    assert processes.name_of(oddly_named) == ") \ufffd 9 \ufffd"


def test_what_follows_an_odd_name_is_read_all_the_same(oddly_named: int) -> None:
    assert processes.parent_of(oddly_named) == os.getppid()
    assert os.getppid() in processes.ancestry()
    assert process_files.began(Path(f"/proc/{oddly_named}")).isdecimal()


def test_an_odd_name_on_the_machine_hides_no_program(tmp_path: Path) -> None:
    """Any user could end `natgauge host check` with a traceback."""
    remarks = []
    # The second one has ended since it was listed.
    for pid, name in ((7, b"\xff\xfe\n"), (8, None), (9, b"irqbalance\n")):
        process = tmp_path / "proc" / str(pid)
        process.mkdir(parents=True)
        if name is not None:
            (process / "comm").write_bytes(name)
        remarks.append(knobs._balanced(knobs.TunedMachine(tmp_path)))
    assert [bool(remark) for remark in remarks] == [False, False, True]


def test_open_files_are_yielded_with_their_targets(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("w") as file:
        own = Path("/proc/self")
        found = {int(each.name): target for each, target in process_files.open_files(own)}
        assert found[file.fileno()] == path
        assert process_files.tun_of(own / "fd" / str(file.fileno()), path) is None
    assert list(process_files.open_files(tmp_path / "ended")) == []


def test_the_interface_of_a_tun_device_is_that_of_its_open_file(tmp_path: Path) -> None:
    for folder in ("fd", "fdinfo"):
        (tmp_path / folder).mkdir()
    (tmp_path / "fdinfo" / "5").write_text("pos:\t0\nflags:\t02\niff:\ttun0\n")
    (tmp_path / "fdinfo" / "6").write_text("pos:\t0\n")
    for node in ("/dev/net/tun", "/jail/tun"):
        assert [process_files.tun_of(tmp_path / "fd" / number, Path(node)) for number in "56"] == ["tun0", None]
    assert process_files.tun_of(tmp_path / "fd" / "5", Path("socket:[1]")) is None


def test_a_variable_of_a_process_is_compared_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "environ").write_bytes(b"A=1\0NG_WORK=/run/lab/gateway2\0X=\xff\0")
    asked = ("/run/lab/gateway2", "/run/lab/gateway", "")
    assert [process_files.has_variable(tmp_path, "NG_WORK", value) for value in asked] == [True, False, False]
    assert not process_files.has_variable(tmp_path / "ended", "NG_WORK", "")


# The guard of unit tests: a mistake in one of them ends no process of the machine.


def test_a_process_of_others_gets_no_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "ancestry", frozenset)
    with pytest.raises(AssertionError, match=f"to process {os.getppid()}, which it did not start"):
        processes.end_processes([os.getppid()])


def test_an_own_process_is_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        assert processes.end_processes([process.pid]) == (process.pid,)


# A gateway that turns out to be a process: the lab is made again with the placement of such gateways.


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Placements of the labs that were made; every device turns out to be a process, and there are two cores."""
    placements: list[str] = []

    def enter(bench: Bench) -> Bench:
        placements.append(bench.lab.placement)
        return bench

    monkeypatch.setattr("natgauge.labs.netns.usable_cpus", lambda: (0, 1))
    monkeypatch.setattr(Bench, "__enter__", enter)
    monkeypatch.setattr(NamespaceDevice, "frame_processes", lambda _: ("nat",))
    return placements


def found(choices: Mapping[str, Any]) -> Any:
    """The settings after the device was started and looked at."""
    bench = Bench(ask("connection-rate", "nftables-nat44", {"connections": 1000, **choices}).cell)
    planned = bench.plan("connection-rate", {"error": "7%"})
    assert not planned.settings.own_processes
    bench.__enter__()
    bench.processes = ("nat",)
    return bench._moved(planned).settings


def test_where_natgauge_chose_the_placement_it_chooses_again(made: list[str]) -> None:
    settings = found({})
    assert made == ["shared", "isolated"]
    assert (settings.placement, settings.own_processes, settings.error.share) == ("isolated", True, 0.07)


def test_a_placement_that_the_user_chose_stays(made: list[str]) -> None:
    settings = found({"placement": "shared"})
    assert made == ["shared"]
    assert (settings.placement, settings.own_processes) == ("shared", True)


def test_the_testers_own_work_is_not_taken_from_the_rate_of_a_process() -> None:
    known = {"placement": "shared", "tester_highest_phase2_rate": 1e6, "sender_cores": 1}
    assert own_work("throughput", 1e5, grouped(known)) is not None
    assert own_work("throughput", 1e5, grouped({**known, "own_processes": True})) is None
