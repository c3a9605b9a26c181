# SPDX-License-Identifier: Apache-2.0
"""Global settings of another machine: written down before they change, and undone by what was written down."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.unit.golden import Golden
from tests.unit.test_remote_facts import GOOD, TEXT

from natgauge.errors import BrokenError, HostError
from natgauge.labs.contract import CommandResult
from natgauge.labs.netns.lab import NetnsLab
from natgauge.labs.ssh import layout as layouts
from natgauge.labs.ssh import segment as segments
from natgauge.labs.ssh.facts import read
from natgauge.labs.ssh.layout import layout
from natgauge.labs.ssh.openssh import SshHost
from natgauge.labs.ssh.remote import RemoteDevice, RemoteMachine
from natgauge.labs.ssh.segment import Segment, SystemWork


class Here:
    """A machine that is this one."""

    host = SshHost("far")

    def __init__(self) -> None:
        self.fails: HostError | None = None

    def run(
        self, snippet: str, _seconds: float, *, variables: Mapping[str, str] | None = None, netns: str | None = None
    ) -> CommandResult:
        assert netns in {None, "natgauge-x-gateway"}
        if self.fails:
            raise self.fails
        done = subprocess.run(
            ["/bin/sh", "-eu", "-c", snippet], capture_output=True, text=True, check=False, env=dict(variables or {})
        )
        return CommandResult(done.returncode, done.stdout, done.stderr, 0.0)


class Bootable(Here):
    """One that a lab takes, and that forgets all of it when it is booted."""

    forgotten: Callable[[], None] | None = None

    def take(self) -> None:
        """Nobody else wants it."""

    def ask(self, _script: str) -> str:
        """What every script is told."""
        return "Linux\n"


@pytest.fixture
def log() -> list[tuple[str, str]]:
    """What was written down."""
    return []


@pytest.fixture
def machine(log: list[tuple[str, str]]) -> RemoteMachine:
    here: Any = Here()
    return RemoteMachine(here, lambda undo, says: log.append((undo, says)))


def undone(log: list[tuple[str, str]]) -> None:
    for undo, _ in reversed(log):
        subprocess.run(["/bin/sh", "-eu", "-c", undo], check=True)


def test_a_setting_is_read_written_and_restored(
    machine: RemoteMachine, log: list[tuple[str, str]], tmp_path: Path, golden: Golden
) -> None:
    paths = [tmp_path / "max", tmp_path / "buckets"]
    for path, value in zip(paths, (100, 50), strict=True):
        path.write_text(f"{value}\n")
    setting = machine.setting("table", [str(path) for path in paths], None)
    assert setting.available()
    assert setting.read() == 50
    assert setting.values() == dict(zip(paths, (100, 50), strict=True))
    setting.write(700)
    setting.write(900)
    assert setting.values() == dict.fromkeys(paths, 900)
    # The first value counts, however often it was set.
    golden([says for _, says in log])
    undone(log)
    assert [path.read_text() for path in paths] == ["100\n", "50\n"]


def test_files_of_one_name_in_several_folders_are_all_read_and_restored(
    machine: RemoteMachine, log: list[tuple[str, str]], tmp_path: Path
) -> None:
    paths = [tmp_path / folder / "max" for folder in "ab"]
    for path, value in zip(paths, (100, 900), strict=True):
        path.parent.mkdir()
        path.write_text(f"{value}\n")
    setting = machine.setting("table", [str(path) for path in paths], None)
    assert setting.read() == 100
    setting.write(1000)
    paths[0].write_text("300\n")
    assert "was 1000" in setting.found_changed()
    undone(log)
    assert [path.read_text() for path in paths] == ["100\n", "900\n"]


def test_a_value_is_written_down_before_it_changes(machine: RemoteMachine, tmp_path: Path) -> None:
    path = tmp_path / "max"
    path.write_text("100\n")
    seen: list[str] = []
    machine._remember = lambda _undo, _says: seen.append(path.read_text())
    machine.setting("table", [str(path)], None).write(7)
    assert seen == ["100\n"]


def test_a_setting_that_is_not_there_or_refuses_is_told_in_one_line(
    machine: RemoteMachine, tmp_path: Path, golden: Golden
) -> None:
    setting = machine.setting("table", [str(tmp_path / "none")], "no_such_module_of_anybody")
    assert not setting.available()
    with golden.raises(HostError):
        setting.read()
    (tmp_path / "text").write_text("words\n")
    with pytest.raises(HostError, match="cannot be read"):
        machine.setting("table", [str(tmp_path / "text")], None).read()
    # A number that nobody may change.
    with golden.raises(HostError):
        machine.setting("table", ["/proc/sys/kernel/cap_last_cap"], None).write(5)
    with golden.raises(HostError):
        setting.write(5)


def test_free_memory_is_that_machines(machine: RemoteMachine) -> None:
    assert machine.free_octets() > 0


def test_object_caches_are_that_machines_and_a_machine_that_is_gone_does_not_answer(
    machine: RemoteMachine, golden: Golden
) -> None:
    if os.access("/proc/slabinfo", os.R_OK):
        assert any(cache.objects for cache in machine.object_caches().values())
    here: Any = Here()
    here.fails = HostError("ssh host far: refuses connections")
    with golden.raises(HostError):
        RemoteMachine(here, lambda *_: None).object_caches()


def test_a_machine_that_is_gone_is_a_device_that_does_not_answer(golden: Golden) -> None:
    here: Any = Here()
    device = RemoteDevice(
        "gateway", "natgauge-x-gateway", "a", "b", {"A": "1"}, here, RemoteMachine(here, lambda *_: None)
    )
    assert device.run('echo "$A$B"', environment={"B": "2"}).stdout == "12\n"
    here.fails = HostError("ssh host far: refuses connections")
    with golden.raises(BrokenError):
        device.run("true")


def test_a_chain_has_the_machines_interfaces_at_its_ends_only() -> None:
    names = ("ce", "pe")
    plan = NetnsLab("x", initiator_family="ipv4", responder_family="ipv4", devices=names)
    laid = layout("x", names, plan.cables, ("ens1", "ens2"))
    assert laid.namespaces == ("natgauge-x-ce", "natgauge-x-pe")
    assert [[end.interface for end in pair] for pair in laid.ends] == [["ens1", "outside"], ["inside", "ens2"]]


def test_neighbour_limits_are_raised_again_after_a_reboot_of_the_machine(
    log: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = tmp_path / "gc_thresh3"
    limit.write_text("1024\n")
    facts = read(TEXT)
    work = SystemWork(lambda _: "", lambda _: facts, lambda *_: "true", lambda *_: "true")
    monkeypatch.setattr(segments, "work_of", lambda _system: work)
    monkeypatch.setattr(layouts, "DIRECTORY", str(tmp_path / "device"))
    plan = NetnsLab("x", initiator_family="ipv4", responder_family="ipv4")
    here: Any = Bootable()

    def remember(undo: str, says: str) -> None:
        log.append((undo, says))

    laid = layout("x", ("gateway",), plan.cables, GOOD)
    segment = Segment(here, laid, (), RemoteMachine(here, remember), remember, None, {str(limit): 4000})
    segment.lay(1500, None, tunes=False)
    assert limit.read_text() == "4000\n"
    limit.write_text("1024\n")
    here.forgotten()
    assert limit.read_text() == "4000\n"
    undone(log)
    assert limit.read_text() == "1024\n"
