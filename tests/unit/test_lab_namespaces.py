# SPDX-License-Identifier: Apache-2.0
"""How a namespace is deleted: no process may hold it any more."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pyroute2 import netns

from natgauge.labs.common import cleanup, locks, namespaces
from natgauge.labs.common.threads import NoThreadError, in_thread


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

    def deleted(_action: Callable[[], None], name: str) -> None:
        done.append(name)

    (tmp_path / "ng-lab-dut").touch()
    monkeypatch.setattr(namespaces, "path_of", lambda name: tmp_path / name)
    monkeypatch.setattr(namespaces, "_is_namespace", lambda _name: True)
    monkeypatch.setattr(namespaces, "is_marked", lambda _name: True)
    monkeypatch.setattr(namespaces, "processes", lambda _name: tuple(running))
    monkeypatch.setattr(namespaces, "end_processes", end)
    monkeypatch.setattr(namespaces, "in_thread", deleted)
    namespaces.delete(["ng-lab-dut"])
    assert done == [[1], [2], "natgauge-delete"]


def test_where_no_thread_can_be_started_the_error_says_so_and_deleting_does_without(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    removed: list[str] = []
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(NoThreadError, match="no further thread can be started; allow more processes"):
        in_thread(lambda: None)
    (tmp_path / "ng-lab-dut").touch()
    monkeypatch.setattr(namespaces, "path_of", lambda name: tmp_path / name)
    monkeypatch.setattr(namespaces, "_is_namespace", lambda _name: True)
    monkeypatch.setattr(namespaces, "is_marked", lambda _name: True)
    monkeypatch.setattr(namespaces, "processes", lambda _name: ())
    monkeypatch.setattr(netns, "remove", lambda name, _libc: removed.append(name))
    namespaces.delete(["ng-lab-dut"])
    assert removed == ["ng-lab-dut"]


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
