# SPDX-License-Identifier: Apache-2.0
"""How a namespace is deleted: no process may hold it any more."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pyroute2 import netns
from tests.unit.golden import Golden

from natgauge.cleaning import cleanup
from natgauge.errors import BrokenError
from natgauge.labs.common import device, locks, marks, namespaces
from natgauge.labs.common.device import ThisMachine
from natgauge.labs.common.processes import NoThreadError, in_thread


def test_a_process_that_was_started_while_others_were_ended_is_ended_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A shell that is ended in the middle of a snippet may have begun a daemon, which would hold the namespace."""
    alive = {1: [2], 2: []}
    running = [1]
    done: list[object] = []

    def end(pids: Sequence[int]) -> None:
        done.append(list(pids))
        for pid in pids:
            running.remove(pid)
            running.extend(alive[pid])

    def deleted(_action: Callable[[], list[str]], name: str) -> list[str]:
        done.append(name)
        return []

    (tmp_path / "ng-lab-gateway").touch()
    monkeypatch.setattr(namespaces, "path_of", lambda name: tmp_path / name)
    monkeypatch.setattr(namespaces, "_is_namespace", lambda _name: True)
    monkeypatch.setattr(namespaces, "is_marked", lambda _name: True)
    monkeypatch.setattr(namespaces, "processes", lambda _name: tuple(running))
    monkeypatch.setattr(namespaces, "end_processes", end)
    monkeypatch.setattr(namespaces, "in_thread", deleted)
    namespaces.delete(["ng-lab-gateway"])
    assert done == [[1], [2], "natgauge-delete"]


def test_where_no_thread_can_be_started_the_error_says_so_and_deleting_does_without(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, golden: Golden
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    removed: list[str] = []
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with golden.raises(NoThreadError):
        in_thread(lambda: None)
    (tmp_path / "ng-lab-gateway").touch()
    monkeypatch.setattr(namespaces, "path_of", lambda name: tmp_path / name)
    monkeypatch.setattr(namespaces, "_is_namespace", lambda _name: True)
    monkeypatch.setattr(namespaces, "is_marked", lambda _name: True)
    monkeypatch.setattr(namespaces, "processes", lambda _name: ())
    monkeypatch.setattr(netns, "remove", lambda name, _libc: removed.append(name))
    namespaces.delete(["ng-lab-gateway"])
    assert removed == ["ng-lab-gateway"]


def test_namespaces_are_listed_before_the_registers_are_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A lab that is made between the two looks is in the registers, and its namespaces are not in the list."""
    looks: list[str] = []

    def names() -> tuple[str, ...]:
        looks.append("namespaces")
        return ()

    def registered() -> list[str]:
        looks.append("registers")
        return []

    monkeypatch.setattr(locks, "RUN", tmp_path)
    monkeypatch.setattr(namespaces, "names", names)
    monkeypatch.setattr(namespaces, "all_processes", tuple)
    monkeypatch.setattr(cleanup, "registered", registered)
    cleanup.clean(strays=True)
    assert looks[0] == "namespaces"
    assert looks.count("namespaces") == 1


def test_a_recipe_that_removes_the_private_directory_of_its_device_is_told_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, golden: Golden
) -> None:
    monkeypatch.setattr(device, "inside", lambda _name, function: function())
    monkeypatch.setattr(device, "within", lambda _name, _pids: ())
    monkeypatch.setattr(device, "_see_own_sysfs", lambda: None)
    monkeypatch.setattr(os, "setpriority", lambda *_: None)
    work = tmp_path / "gateway"
    work.mkdir()
    machine = ThisMachine(memory=None)  # type: ignore[arg-type]
    gateway = device.NamespaceDevice("gateway", "ng-x-gateway", "inside", "outside", {"NG_WORK": str(work)}, machine)
    assert gateway.run('cd /; rmdir "$NG_WORK"').status == 0
    with golden.raises(BrokenError):
        gateway.run("true")


def test_a_process_that_has_the_number_of_one_that_ended_keeps_its_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = ThisMachine(memory=None)  # type: ignore[arg-type]
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as found:
        monkeypatch.setattr(device, "frame_processes", lambda *_: {found.pid: "sleep"})
        group = Path(f"/proc/{found.pid}/autogroup")
        try:
            if not group.exists() or not group.read_text():
                pytest.skip("this kernel groups no tasks by session")
            gateway = device.NamespaceDevice("gateway", "ng-x-gateway", "inside", "outside", {}, machine, nice=7)
            # It was seen when another process had the number.
            gateway._running[found.pid] = "1"
            gateway._write_ranks([])
            assert group.read_text().endswith(" nice 0\n")
            assert gateway._running == {}
            # One that is seen now is one of the device's.
            assert gateway.frame_processes() == ("sleep",)
            assert group.read_text().endswith(" nice 7\n")
        finally:
            found.kill()


def test_an_ordinary_file_with_a_copied_mark_is_not_natgauges(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A kill while a namespace is made leaves an empty file of its name, which begins with natgauge's prefix."""
    monkeypatch.setattr(locks, "RUN", tmp_path / "run")
    monkeypatch.setattr(namespaces, "_RUN", tmp_path)
    for name, content in (("ng-x-gateway", ""), ("ng-y-gateway", "of others"), ("plain", "")):
        marks.write(name, marks.cookie())
        (tmp_path / name).write_text(content)
    assert [name for name in ("ng-x-gateway", "ng-y-gateway", "plain") if namespaces.is_marked(name)] == [
        "ng-x-gateway"
    ]
