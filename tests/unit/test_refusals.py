# SPDX-License-Identifier: Apache-2.0
"""What the system refuses this process is told in one line: capabilities, files, threads, /sys; and so are numbers."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from tests.unit.conftest import Ran
from tests.unit.golden import Golden

#: A lab that is never made: the first thing that it does, to look for an idle core, is refused.
LAB_UP = ["lab", "up", "mine", "--placement", "shared"]
SHOW = ["gateways", "show", "linux-ipv4", "--json"]
#: The machine's own user namespace (include/uapi/linux/nsfs.h), and a bit of the kernel's list of capabilities.
OF_MACHINE, CAP_SYS_NICE = 0xEFFFFFFD, 23
Process = Callable[..., None]


def refusing(error: Exception) -> Callable[..., NoReturn]:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise error

    return refuse


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch, in_an_empty_folder: Path) -> Process:
    """Makes this process one with these capabilities and namespace, as far as /proc says it; it makes no lab."""
    assert in_an_empty_folder.is_dir()
    read, look = Path.read_text, Path.stat

    def of(*, lacks: int | None = None, namespace: int = OF_MACHINE) -> None:
        effective = (1 << 41) - 1 if lacks is None else ~(1 << lacks) & ((1 << 41) - 1)

        def read_text(path: Path, *args: Any, **options: Any) -> str:
            text = read(path, *args, **options)
            is_own = str(path) == "/proc/self/status"
            return re.sub(r"(?m)^CapEff:.*$", f"CapEff:\t{effective:016x}", text) if is_own else text

        def stat(path: Path, **options: Any) -> Any:
            return SimpleNamespace(st_ino=namespace) if str(path) == "/proc/self/ns/user" else look(path, **options)

        monkeypatch.setattr(Path, "read_text", read_text)
        monkeypatch.setattr(Path, "stat", stat)

    monkeypatch.setattr(time, "sleep", refusing(OSError(errno.EBUSY, "no lab is made here")))
    of()
    return of


@pytest.mark.usefixtures("process")
@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.EMFILE, "ulimit -n"),
        (errno.EAGAIN, "pids.max"),
        (errno.EROFS, "--privileged"),
        (errno.EPERM, "natgauge doctor"),
        (errno.ENOSPC, "make room"),
    ],
)
def test_a_refusal_of_the_system_has_its_remedy_and_no_traceback(
    number: int, remedy: str, monkeypatch: pytest.MonkeyPatch, ran: Ran, golden: Golden
) -> None:
    error = OSError(number, os.strerror(number), "/run/x")
    monkeypatch.setattr(time, "sleep", refusing(error))
    (said,) = ran(LAB_UP, status=3).err.splitlines()
    golden(said)
    assert remedy in said
    monkeypatch.setattr(json, "dumps", refusing(error))
    (said,) = ran(SHOW, status=3).err.splitlines()
    assert remedy in said
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    "error", [OSError(errno.EBADF, "x"), RuntimeError("can't start new thread"), ValueError("x")], ids=repr
)
def test_a_fault_of_natgauge_stays_one(
    error: Exception, monkeypatch: pytest.MonkeyPatch, ran: Ran, in_an_empty_folder: Path
) -> None:
    monkeypatch.setattr(json, "dumps", refusing(error))
    ran(SHOW, status=4)
    (traceback,) = in_an_empty_folder.iterdir()
    assert type(error).__name__ in traceback.read_text()


@pytest.mark.usefixtures("process")
def test_a_thread_that_cannot_be_made_is_the_hosts(monkeypatch: pytest.MonkeyPatch, ran: Ran, golden: Golden) -> None:
    monkeypatch.setattr(threading.Thread, "start", refusing(RuntimeError("whatever Python says")))
    golden(ran(LAB_UP, status=3).err)
    monkeypatch.setattr(json, "dumps", refusing(RuntimeError("can't start new thread")))
    golden(ran(SHOW, status=3).err)


@pytest.mark.usefixtures("process")
def test_few_open_files_are_refused_before_anything(monkeypatch: pytest.MonkeyPatch, ran: Ran, golden: Golden) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (20, 20))
    golden(ran(LAB_UP, status=3).err)


@pytest.mark.usefixtures("process")
def test_a_missing_sys_is_named(monkeypatch: pytest.MonkeyPatch, ran: Ran, golden: Golden) -> None:
    exists = Path.exists
    monkeypatch.setattr(Path, "exists", lambda path: not str(path).startswith("/sys/") and exists(path))
    golden(ran(LAB_UP, status=3).err)


def test_a_user_namespace_is_named_though_all_capabilities_are_there(
    process: Process, ran: Ran, golden: Golden
) -> None:
    process(namespace=OF_MACHINE + 1)
    golden(ran(LAB_UP, status=3).err)


def test_a_missing_capability_is_named_with_its_use_and_the_options_of_containers(process: Process, ran: Ran) -> None:
    process(lacks=CAP_SYS_NICE)
    (said,) = ran(LAB_UP, status=3).err.splitlines()
    assert re.search(r"needs CAP_SYS_NICE \(priorities .*in a container: --cap-add SYS_NICE$", said)


#: What people write for an option of a measurement, and the form that it has.
MEANT: dict[str, dict[str, str]] = {
    "linux-ipv4 --connections": {
        "1M": "1_000_000", "100k": "100_000", "1.5k": "1_500", "1e6": "1_000_000", "1,000": "1_000",
        # No number is meant, or none that may be one.
        **dict.fromkeys(("60s", "1.2345k", "many", "", "9e99"), "digits, such as 10"),
    },
    "linux-ipv4 --trial-seconds": {"60s": "60", "5m": "300", "250ms": "0.25", "1h": "3_600"},
    "linux-ipv4 --source-addresses": {
        "198.18.0.0/24": "198.18.0.1-198.18.0.254", "x/24": "", "198.18.0.1-": "A or A-B",
    },
    "linux-ipv6 --source-addresses": {"2001:2::/126": "2001:2::1-2001:2::3"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("words", "text", "form"), [(words, *one) for words, every in MEANT.items() for one in every.items()]
)
def test_a_number_time_or_network_as_people_write_it_has_its_form(words: str, text: str, form: str, ran: Ran) -> None:
    (said,) = ran(["measure", "throughput", "--gateway", *words.split(), text], status=2).err.splitlines()
    assert said.partition("; write ")[2] == form
