# SPDX-License-Identifier: Apache-2.0
"""What /proc says of a process, whatever name its user gave it."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from natgauge.host import process_files
from natgauge.host.tuning import knobs
from natgauge.labs.common import processes

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
    for pid, name in ((7, b"\xff\xfe\n"), (8, b"irqbalance\n")):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "comm").write_bytes(name)
    names = {knobs._name_of(tmp_path / pid) for pid in ("7", "8", "9")}
    assert names == {"\ufffd\ufffd", "irqbalance", ""}


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
