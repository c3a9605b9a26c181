# SPDX-License-Identifier: Apache-2.0
"""Labs of this machine made up: their registers and locks, in a folder of the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from natgauge.labs.common import locks
from natgauge.labs.common.register import Register


@pytest.fixture
def own_labs(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the registers; those of this machine are not seen."""
    monkeypatch.setattr(locks, "RUN", tmp_path_factory.mktemp("run"))
    return locks.folder("labs")


def is_used(name: str) -> bool:
    """Whether another process has a lab of this name, or would find it taken."""
    return locks.Lock(name).is_held()


@contextmanager
def used(name: str) -> Iterator[None]:
    """This process has a lab of this name, and then none."""
    lock = locks.Lock(name)
    lock.take()
    try:
        yield
    finally:
        lock.rest()


def left_behind(name: str, *, kept: bool = False) -> Path:
    """A lab as a killed process leaves it: its register, its directory, and nobody who holds its lock."""
    register = Register.begin(name, "netns", {})
    register.record("directory", path=str(register.directory))
    register.directory.mkdir()
    if kept:
        register.keep()
    register.release()
    return register.directory
