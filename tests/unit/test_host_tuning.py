# SPDX-License-Identifier: Apache-2.0
"""Settings of the tester's and the device's machine: looked at, set for measuring, put back; on made-up machines."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NoReturn

import pytest
from pyroute2.ethtool.ioctl import IoctlEthtool, NotSupportedError
from pyroute2.netlink.exceptions import NetlinkError
from tests.unit import fake_ethtool
from tests.unit.golden import Golden
from tests.unit.made_machine import Made, MadeMachine

from natgauge.cleaning import cleanup
from natgauge.cli import run
from natgauge.errors import HostError, UsageError
from natgauge.host import capabilities, ethtool
from natgauge.host.ethtool import Part
from natgauge.host.tuning import recorded, tuner
from natgauge.host.tuning.contract import TunedMachine
from natgauge.host.tuning.recorded import settings_of
from natgauge.host.tuning.tuner import KNOBS
from natgauge.host.uplinks import uplinks
from natgauge.labs.common import locks
from natgauge.labs.wire.lab import port_lock, used_ports


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


@pytest.fixture
def at_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    """Which is taken for this machine."""
    made = Made(tmp_path)
    monkeypatch.setattr(tuner, "TunedMachine", lambda: made.machine)
    for function in (tuner.tune, tuner.restore):
        monkeypatch.setitem(function.__kwdefaults__ or {}, "path", made.path)
    monkeypatch.setattr(tuner.read, "__defaults__", (made.path,))
    monkeypatch.setattr(capabilities, "missing", lambda *_: ())
    monkeypatch.setattr(cleanup, "status", list)
    monkeypatch.setattr(locks, "RUN", tmp_path / "run-of-locks")
    return made


def test_what_is_found_what_is_better_and_why(made: Made, golden: Golden) -> None:
    looked = {(one.name, one.key): one for one in tuner.check(["eth1"], machine=made.machine)}
    better = {key: (one.value, one.better) for key, one in looked.items() if one.better is not None}
    golden(better)
    assert looked["rss", "eth1 udp6"].state == "ok"
    # The driver does not let go of it.
    assert looked["offloads", "eth1 rx-gro-hw"].state == "ok"
    assert "50 us" in looked["coalescing", "eth1"].what
    assert all(one.cause and one.source for one in looked.values())
    # Without names every port with a card is looked at; a veth has none.
    assert {one.key.split()[0] for one in tuner.check(machine=made.machine)} >= {"eth0", "eth1"}
    assert not [one for one in tuner.check(machine=made.machine) if one.key.startswith("veth")]


def test_what_a_port_is_set_to_is_told_for_the_record_of_a_result(made: Made, golden: Golden) -> None:
    told = settings_of("eth1", made.machine)
    golden(told)
    tuner.tune(["eth1"], machine=made.machine, path=made.path)
    changed = settings_of("eth1", made.machine)
    assert {name for name in told if changed[name] != told[name]} == set(told)


def test_everything_is_set_and_put_back_as_it_was_found(made: Made) -> None:
    before = made.state()
    done = made.tune("eth1")
    assert {one.done for one in done.values()} == {"set"}
    assert made.ports["eth1"]["pause"] == {"autoneg": "off", "rx": "off", "tx": "off"}
    assert made.ports["eth0"] == before["eth0"]
    assert not [one for one in tuner.check(["eth1"], machine=made.machine) if one.better is not None]
    # A second time nothing is left to set, and what was found first is still known.
    assert made.tune("eth1") == {}
    back = made.restore()
    assert {one.done for one in back.values()} == {"restored"}
    assert list(back) == list(done)
    assert made.state() == before
    assert not made.path.exists()
    assert made.restore() == {}


def test_without_ports_only_the_machine_is_set(made: Made) -> None:
    before = made.state()
    assert {knob for knob, _ in made.tune()} == {"smt", "governor"}
    assert {port: made.ports[port] for port in made.ports} == {port: before[port] for port in made.ports}


def test_every_knob_is_behind_the_same_contract(made: Made) -> None:
    assert len({knob.name for knob in KNOBS}) == len(KNOBS)
    for knob in KNOBS:
        (first, *_) = [one for one in knob.find(made.machine, ["eth1"]) if one.better]
        assert knob.read(made.machine, first.key) == first.value
        knob.put(made.machine, first.key, str(first.better))
        assert knob.read(made.machine, first.key) == first.better
        knob.put(made.machine, first.key, str(first.value))
        assert knob.read(made.machine, first.key) == first.value


class _KilledError(BaseException):
    """As a signal that nobody can catch, for this process."""


def test_killed_at_any_moment_everything_is_put_back(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each change, and after it before it is noted what the driver made of it."""
    before = made.state()
    moments = 0
    write, tell = TunedMachine.write, MadeMachine.set_port

    def until(limit: int) -> int:
        """Tune, killed at this moment; how many there were."""
        passed = 0

        def moment() -> None:
            nonlocal passed
            passed += 1
            if passed == limit:
                raise _KilledError

        def around(act: Any) -> Any:
            def done(*arguments: Any) -> None:
                moment()
                act(*arguments)
                moment()

            return done

        with monkeypatch.context() as patched:
            patched.setattr(TunedMachine, "write", around(write))
            patched.setattr(MadeMachine, "set_port", around(tell))
            with suppress(_KilledError):
                made.tune("eth1")
        return passed

    moments = until(0)
    made.restore()
    assert made.state() == before
    assert moments == 2 * 13
    for limit in range(1, moments + 1):
        until(limit)
        assert made.state() != before or limit == 1
        assert not tuner.UNDONE & {one.done for one in made.restore().values()}
        assert made.state() == before, limit


@pytest.fixture
def moving(made: Made, monkeypatch: pytest.MonkeyPatch) -> Made:
    """A machine whose kernel moves interrupts: from threads that go to the others, and to all cores with new queues."""
    write, tell = TunedMachine.write, MadeMachine.set_port

    def move(cores: str) -> None:
        for number in (30, 31):
            (made.root / f"proc/irq/{number}/smp_affinity_list").write_text(f"{cores}\n")

    def written(machine: TunedMachine, path: str, value: str) -> None:
        write(machine, path, value)
        if path.endswith("smt/control") and value == "off":
            move("0-1")

    def told(machine: MadeMachine, port: str, part: Part, values: Mapping[str, str]) -> None:
        tell(machine, port, part, values)
        if part == "queues":
            move("0-3")

    monkeypatch.setattr(TunedMachine, "write", written)
    monkeypatch.setattr(MadeMachine, "set_port", told)
    move("2-3")
    return made


def test_interrupts_that_threads_and_queues_move_are_put_back_after_these(moving: Made) -> None:
    before = moving.state()
    assert {"smt", "queues", "rss", "irq-affinity"} <= {knob for knob, _ in moving.tune("eth1")}
    back = moving.restore()
    assert {one.done for one in back.values()} == {"restored"}
    assert moving.state() == before
    knobs = list(dict.fromkeys(knob for knob, _ in back))
    assert (knobs[0], knobs[-1]) == ("smt", "irq-affinity")
    assert knobs.index("queues") < knobs.index("rss")
    assert not moving.path.exists()


def test_interrupts_of_cards_that_are_not_tuned_are_put_back_with_the_threads(moving: Made) -> None:
    before = moving.state()
    moving.tune()
    assert moving.state()["proc/irq/30/smp_affinity_list"] == "0-1"
    moving.restore()
    assert moving.state() == before


@pytest.mark.parametrize(("owner", "method"), [(TunedMachine, "write"), (MadeMachine, "set_port")])
@pytest.mark.parametrize(("act", "is_late"), [("tune", True), ("restore", True), ("restore", False)])
def test_killed_before_or_when_threads_or_queues_had_moved_the_interrupts_these_are_put_back(  # noqa: PLR0917
    moving: Made,
    monkeypatch: pytest.MonkeyPatch,
    owner: type[TunedMachine],
    method: str,
    act: str,
    is_late: bool,  # noqa: FBT001 - a parameter
) -> None:
    before = moving.state()
    whole = getattr(owner, method)

    def killed(*arguments: Any) -> None:
        if is_late:
            whole(*arguments)
        raise _KilledError

    if act == "restore":
        moving.tune("eth1")
    with monkeypatch.context() as patched:
        patched.setattr(owner, method, killed)
        with pytest.raises(_KilledError):
            _ = moving.tune("eth1") if act == "tune" else moving.restore()
    assert moving.state() != before
    assert not tuner.UNDONE & {one.done for one in moving.restore().values()}
    assert moving.state() == before


def test_what_a_port_had_that_is_not_there_is_kept_until_it_is_forgotten_by_force(made: Made) -> None:
    """It may be in another namespace, or its driver may come back."""
    before = made.state()
    made.tune("eth1")
    port, elsewhere = made.root / "sys/class/net/eth1", made.root / "elsewhere"
    port.rename(elsewhere)
    back = made.restore()
    assert {key.split()[0] for (_, key), one in back.items() if one.done == "failed"} == {"eth1"}
    assert {one.done for (_, key), one in back.items() if not key.startswith("eth1")} == {"restored"}
    assert "--force" in back["pause", "eth1"].text
    elsewhere.rename(port)
    assert {one.done for one in made.restore().values()} == {"restored"}
    assert made.state() == before
    made.tune("eth1")
    port.rename(elsewhere)
    assert {one.done for one in made.restore(force=True).values()} == {"restored", "gone"}
    assert not made.path.exists()


def test_a_port_below_the_one_with_the_default_route_is_left_alone(made: Made) -> None:
    """A bond, a bridge or a VLAN above it has the route."""
    made.change("eth0", uplink=False)
    made.change("eth1", uplink=True)
    before = made.state()
    with pytest.raises(UsageError, match="port eth1: has the default route"):
        made.tune("eth1")
    assert made.state() == before
    looked = [one for one in tuner.check(["eth0", "eth1"], machine=made.machine) if one.better is not None]
    mends = {(one.key.split()[0], one.mend) for one in looked if one.key.startswith("eth")}
    assert mends == {("eth1", None), ("eth0", "natgauge host tune --ports eth0")}


@pytest.mark.parametrize(
    ("most", "now", "better"),
    [
        ({"rx": 8, "tx": 8, "combined": 8}, {"rx": 0, "tx": 0, "combined": 2}, "combined 4"),
        ({"rx": 8, "tx": 8, "combined": 8}, {"rx": 2, "tx": 2, "combined": 0}, "rx 4 tx 4"),
        ({"rx": 8, "tx": 8, "combined": 0}, {"rx": 2, "tx": 2, "combined": 0}, "rx 4 tx 4"),
        ({"rx": 0, "tx": 0, "combined": 8}, {"rx": 0, "tx": 0, "combined": 2}, "combined 4"),
    ],
)
def test_queues_of_the_kind_that_a_port_has_are_changed_and_no_others(
    made: Made, most: dict[str, int], now: dict[str, int], better: str
) -> None:
    """A driver that could have both kinds refuses them together."""
    made.change("eth1", **{"most queues": most, "queues": now})
    before = made.state()
    assert made.tune("eth1")["queues", "eth1"].text.endswith(f"-> {better}")
    made.restore()
    assert made.state() == before


@pytest.mark.parametrize(("most", "better"), [(8, 4), (4, 2), (2, 1)])
def test_queues_of_a_driver_that_runs_programs_with_half_of_them_stop_there(made: Made, most: int, better: int) -> None:
    """Tuned to all queues, an ENA refused every XDP program."""
    (made.root / "sys/class/net/eth1/device/uevent").write_text("DRIVER=ena\nPCI_ID=1D0F:EC20\n")
    made.change("eth1", **{"most queues": {"combined": most}, "queues": {"combined": most}})
    looked = {(one.name, one.key): one for one in tuner.check(["eth1"], machine=made.machine)}
    assert looked["queues", "eth1"].better == f"combined {better}"


def test_what_somebody_else_changed_is_told_and_left_alone(made: Made) -> None:
    before = made.state()
    made.tune("eth1")
    governor = made.root / "sys/devices/system/cpu/cpu2/cpufreq/scaling_governor"
    governor.write_text("schedutil\n")
    back = made.restore()
    assert back["governor", "cpu2"].done == "changed"
    for word in ("schedutil", "performance", "powersave"):
        assert word in back["governor", "cpu2"].text
    assert {one.done for key, one in back.items() if key != ("governor", "cpu2")} == {"restored"}
    assert governor.read_text() == "schedutil\n"
    assert [one.key for one in tuner.read(made.path)] == ["cpu2"]
    assert made.restore(force=True)["governor", "cpu2"].done == "restored"
    assert made.state() == before


def test_what_was_put_back_by_hand_or_is_gone_is_no_fault(made: Made) -> None:
    made.tune()
    (made.root / "sys/devices/system/cpu/smt/control").write_text("on")
    shutil.rmtree(made.root / "sys/devices/system/cpu/cpu3/cpufreq")
    back = made.restore()
    assert back["smt", "machine"].done == "as found"
    assert back["governor", "cpu3"].done == "gone"
    assert not made.path.exists()


def test_what_a_driver_refuses_is_told_and_the_rest_is_set(made: Made) -> None:
    made.change("eth1", refuses="pause", deaf="coalescing")
    done = made.tune("eth1")
    assert done["pause", "eth1"].done == "failed"
    assert "Operation not supported" in done["pause", "eth1"].text
    assert done["coalescing", "eth1"].done == "failed"
    assert {one.done for (knob, _), one in done.items() if knob not in {"pause", "coalescing"}} == {"set"}
    assert not [one for one in tuner.read(made.path) if one.knob in {"pause", "coalescing"}]


def test_interrupts_that_have_gone_or_of_queues_that_are_apart_are_left_alone(made: Made) -> None:
    for number, core in ((30, 1), (31, 0)):
        (made.root / f"proc/irq/{number}/smp_affinity_list").write_text(f"{core}\n")
    assert not [one for one in tuner.check(["eth1"], machine=made.machine) if one.name == "irq-affinity" and one.better]
    (made.root / "proc/irq/30/smp_affinity_list").write_text("0-3\n")
    (made.root / "proc/irq/31/smp_affinity_list").unlink()
    (made.root / "proc/irq/31/smp_affinity_list").mkdir()
    assert {key for knob, key in made.tune("eth1") if knob == "irq-affinity"} == {"eth1 irq 30"}


def test_interrupts_named_after_the_card_are_found(made: Made, tmp_path: Path) -> None:
    card = tmp_path / "root/sys/devices/0000:05:00.0"
    card.mkdir(parents=True)
    shutil.rmtree(made.root / "sys/class/net/eth0/device")
    (made.root / "sys/class/net/eth0/device").symlink_to(card)
    looked = tuner.check(["eth0"], machine=made.machine)
    assert [one.key for one in looked if one.name == "irq-affinity"] == ["eth0 irq 33"]


def test_a_program_that_moves_interrupts_is_named_and_one_that_ends_meanwhile_passed_over(made: Made) -> None:
    (made.root / "proc/77").mkdir()
    (made.root / "proc/77/comm").write_text("irqbalance\n")
    (made.root / "proc/78/comm").mkdir(parents=True)
    told = [one.what for one in tuner.check(["eth1"], machine=made.machine) if one.name == "irq-affinity"]
    assert told
    assert all("systemctl stop irqbalance" in one for one in told)


def test_rates_that_a_driver_rounds_are_still_ours(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    tell = MadeMachine.set_port

    def rounded(self: MadeMachine, port: str, part: Part, values: Mapping[str, str]) -> None:
        tell(self, port, part, {name: "3" if value == "4" else value for name, value in values.items()})

    monkeypatch.setattr(MadeMachine, "set_port", rounded)
    assert made.tune("eth1")["queues", "eth1"].text == "combined 2 -> combined 3"
    assert made.restore()["queues", "eth1"].done == "restored"


@pytest.mark.parametrize("ports", [["eth0"], ["eth9"], [""], ["../eth1"], ["-eth1"], ["eth1", "eth1"]])
def test_wrong_ports_are_refused_before_anything_is_touched(made: Made, ports: list[str], golden: Golden) -> None:
    before = made.state()
    with golden.raises(UsageError):
        made.tune(*ports)
    assert made.state() == before
    assert not made.path.exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"version": 1, "items": [{"knob": 1}]}', '{"version": 2, "items": []}'])
def test_a_damaged_file_is_refused_in_one_line_and_nothing_is_touched(made: Made, text: str) -> None:
    made.path.parent.mkdir(parents=True)
    made.path.write_text(text)
    before = made.state()
    for act in (made.tune, made.restore):
        with pytest.raises(HostError, match=r"found.json: (is damaged|version)") as refused:
            act()
        assert "\n" not in str(refused.value)
    assert made.state() == before


def test_only_one_process_changes_settings_at_a_time(made: Made, golden: Golden) -> None:
    with tuner.state(made.path), golden.raises(HostError):
        made.tune()


def test_a_virtual_machine_has_nothing_to_set(tmp_path: Path) -> None:
    made = Made(tmp_path)
    shutil.rmtree(made.root / "sys/devices/system/cpu")
    assert {(one.state, one.value) for one in tuner.check([], machine=made.machine)} == {("ok", None)}
    assert made.tune() == {}


def test_the_commands(at_the_command_line: Made, capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    made = at_the_command_line
    before = made.state()
    assert run(["host", "check", "--ports", "eth1"]) == 1
    shown = capsys.readouterr().out
    golden(shown)
    assert "RFC 2544 section 26.1" in shown
    assert run(["host", "tune", "--ports", "eth1"]) == 0
    capsys.readouterr()
    assert run(["host", "check", "--ports", "eth1"]) == 0
    assert "natgauge host restore" in capsys.readouterr().out
    assert run(["host", "check", "--ports", "eth1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {one["state"] for one in document["findings"]} == {"ok"}
    assert len(document["tuned"]) == len(tuner.read(made.path))
    (made.root / "sys/devices/system/cpu/smt/control").write_text("forceoff")
    assert run(["host", "restore"]) == 3
    golden(capsys.readouterr().out)
    assert run(["host", "restore", "--force"]) == 0
    assert made.state() == before
    assert run(["host", "restore"]) == 0
    golden(capsys.readouterr().out)
    assert run(["host", "tune", "--ports", "eth0"]) == 2
    assert run(["host", "tune", "--ports", "eth1,"]) == 2


@pytest.mark.parametrize("command", ["tune", "restore"])
@pytest.mark.parametrize("user", ["lab", "ports"])
def test_nothing_is_changed_under_a_lab_or_ports_in_use(  # noqa: PLR0917 - one argument per fixture
    user: str,
    command: str,
    at_the_command_line: Made,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    golden: Golden,
) -> None:
    """A lab of two ports has no register."""
    before = at_the_command_line.state()
    with ExitStack() as held:
        if user == "lab":
            used = cleanup.LabStatus("mine", "netns", "in use", os.getpid(), (), {})
            monkeypatch.setattr(cleanup, "status", lambda: [used])
        else:
            for lock in (locks.Lock("port-1-eth1"), port_lock("eth1", None)):
                lock.take()
                held.callback(lock.release)
            assert list(used_ports()) == [("eth1", f"process {os.getpid()}")]
        assert run(["host", command]) == 3
    golden(capsys.readouterr().err)
    assert at_the_command_line.state() == before
    assert list(used_ports()) == []


@pytest.mark.usefixtures("at_the_command_line")
def test_who_may_not_change_the_machine_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(capabilities, "missing", lambda *names: names)
    assert run(["host", "tune"]) == 3
    assert "CAP_SYS_ADMIN" in capsys.readouterr().err
    assert run(["host", "check"]) == 1


DEVICE_PORTS = ("eth1", "eth2")
#: A card with four of eight queues that hashes addresses alone, and one whose driver has nothing to choose.
CARDS: dict[str, Any] = {
    "eth1": {"most": {"combined": 8}, "queues": {"combined": 4}, "hash": {"udp4": "sd", "udp6": "sdfn"}},
    "eth2": {},
}


class Machine:
    """A device_machine with a stand-in for ethtool and for the folder of its processors."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "ethtool.json").write_text(json.dumps(CARDS))
        shutil.copy(fake_ethtool.__file__, folder / "fake.py")
        (folder / "ethtool").write_text(f'#!/bin/sh\n{sys.executable} -I -S {folder}/fake.py "$@" && echo\n')
        (folder / "ip").write_text("#!/bin/sh\n")
        for program in ("ethtool", "ip"):
            (folder / program).chmod(0o755)
        for cpu, governor in enumerate(("powersave", "performance")):
            place = folder / f"cpu{cpu}" / "cpufreq"
            place.mkdir(parents=True)
            (place / "scaling_governor").write_text(f"{governor}\n")
            (place / "scaling_available_governors").write_text("performance powersave\n")
        (folder / "online").write_text("0-1\n")

    def run(self, script: str, *options: str) -> str:
        """Run shell text there; the lab runs what changes something with `-eu`."""
        text = script.replace("/sys/devices/system/cpu", str(self.folder))
        path = f"{self.folder}:{os.environ['PATH']}"
        done = subprocess.run(
            ["/bin/sh", *options], input=text, env={"PATH": path}, capture_output=True, text=True, check=True
        )
        return done.stdout.replace(str(self.folder), "/sys/devices/system/cpu")

    def now(self) -> str:
        return self.run(recorded.script(DEVICE_PORTS))


@pytest.fixture
def device_machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


FOUND = {
    "device_governor": "performance, powersave",
    "device_queues": ["combined 4", None],
    "device_flow_hash": ["sd, sdfn", None],
}


def test_a_machine_without_such_settings_reports_none() -> None:
    assert recorded.values("", DEVICE_PORTS) == {
        "device_governor": None,
        "device_queues": [None, None],
        "device_flow_hash": [None, None],
    }
    assert list(recorded.changes("", DEVICE_PORTS)) == []


def test_they_are_set_for_measuring_and_restored(device_machine: Machine, golden: Golden) -> None:
    found = device_machine.now()
    assert recorded.values(found, DEVICE_PORTS) == FOUND
    changes = list(recorded.changes(found, DEVICE_PORTS))
    golden([what for what, _, _ in changes])
    for _, sets, _ in changes:
        device_machine.run(sets, "-eu")
    tuned = device_machine.now()
    assert recorded.values(tuned, DEVICE_PORTS) == {
        "device_governor": "performance",
        "device_queues": ["combined 2", None],
        "device_flow_hash": ["sdfn, sdfn", None],
    }
    assert list(recorded.changes(tuned, DEVICE_PORTS)) == []
    for _, _, undoes in reversed(changes):
        device_machine.run(undoes, "-eu")
    assert recorded.values(device_machine.now(), DEVICE_PORTS) == FOUND


def test_what_is_gone_is_not_restored(device_machine: Machine) -> None:
    """A core was taken away, and an interface was removed."""
    changes = list(recorded.changes(device_machine.now(), DEVICE_PORTS))
    shutil.rmtree(device_machine.folder / "cpu0")
    (device_machine.folder / "ip").write_text("#!/bin/sh\nexit 1\n")
    (device_machine.folder / "ethtool").write_text("#!/bin/sh\nexit 9\n")
    for _, _, undoes in changes:
        device_machine.run(undoes, "-eu")
    assert not (device_machine.folder / "cpu0").exists()


@pytest.mark.parametrize(
    ("part", "error", "reason"),
    [
        ("pause", NetlinkError(errno.EOPNOTSUPP), None),
        ("eee", NetlinkError(errno.EPROTONOSUPPORT), None),
        ("queues", NetlinkError(errno.ENOENT), None),
        ("offloads", NotSupportedError("eth1"), None),
        ("hash", OSError(errno.EOPNOTSUPP, "Operation not supported"), None),
        ("hash", OSError(errno.EINVAL, "Invalid argument"), None),
        ("pause", NetlinkError(errno.ENODEV), "No such device"),
        ("queues", NetlinkError(errno.EINVAL), "Invalid argument"),
        ("coalescing", NetlinkError(errno.EBUSY), "Device or resource busy"),
        ("hash", OSError(errno.EPERM, "Operation not permitted"), "Operation not permitted"),
    ],
)
def test_a_driver_that_does_not_know_a_part_has_nothing_of_it_and_any_other_error_is_one(
    monkeypatch: pytest.MonkeyPatch, part: Part, error: Exception, reason: str | None
) -> None:
    """`natgauge host restore` took every error for a setting that is gone, and forgot the old value."""

    def refuse(*_: object) -> NoReturn:
        raise error

    monkeypatch.setattr(ethtool, "_exchange", refuse)
    monkeypatch.setattr(ethtool, "ask", refuse)
    monkeypatch.setattr(IoctlEthtool, "get_features", refuse)
    if reason is None:
        assert ethtool.read("eth1", part) is None
        return
    with pytest.raises(HostError) as refused:
        ethtool.read("eth1", part)
    assert str(refused.value) == f"port eth1: {part} cannot be read ({reason})"


# Interfaces with the default route, and what is below them, in the words of netlink.


class Message(dict[str, Any]):
    """A message, or a nested attribute, as pyroute2 gives it."""

    def get_attr(self, name: str) -> Any:
        """Return an attribute; None = it has none of this name."""
        return self.get(name)


class Routes:
    """A kernel with a default route, and with interfaces above one another."""

    def __init__(self, route: dict[str, Any], *links: dict[str, Any]) -> None:
        self.route = Message(route)
        self.links = [Message(link) for link in links]

    def get_default_routes(self) -> list[Message]:
        return [self.route]

    def get_links(self) -> list[Message]:
        return self.links


CARDS = ({"index": 2, "IFLA_MASTER": 4}, {"index": 3, "IFLA_MASTER": 4})
BOND, VLAN = {"index": 4}, {"index": 5, "IFLA_LINK": 4}
VETH = {"index": 5, "IFLA_LINK": 2, "IFLA_LINKINFO": Message(IFLA_INFO_KIND="veth")}
FAR = {"index": 5, "IFLA_LINK": 2, "IFLA_LINK_NETNSID": 0}


@pytest.mark.parametrize(
    ("route", "links", "found"),
    [
        ({"RTA_OIF": 2}, [{"index": 2}, {"index": 3}], {2}),
        ({"RTA_OIF": 5}, [*CARDS, BOND, VLAN], {2, 3, 4, 5}),
        ({"RTA_OIF": 4}, [*CARDS, BOND, VLAN], {2, 3, 4}),
        ({"RTA_MULTIPATH": [{"oif": 2}, {"oif": 3}]}, [{"index": 2}, {"index": 3}], {2, 3}),
        ({"RTA_OIF": 5}, [{"index": 2}, VETH], {5}),
        ({"RTA_OIF": 5}, [{"index": 2}, FAR], {5}),
    ],
)
def test_a_port_below_a_bond_or_a_vlan_with_the_default_route_is_an_uplink(
    route: dict[str, Any], links: list[dict[str, Any]], found: set[int]
) -> None:
    assert uplinks(Routes(route, *links)) - {None} == found
