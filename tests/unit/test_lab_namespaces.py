# SPDX-License-Identifier: Apache-2.0
"""How a namespace is deleted: no process may hold it any more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from natgauge.labs.common import namespaces


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
