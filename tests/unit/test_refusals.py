# SPDX-License-Identifier: Apache-2.0
"""What the system refuses this process is told in one line: capabilities, files, threads, /sys."""

from __future__ import annotations

import errno
import os
import resource
import threading
from pathlib import Path

import pytest
from tests.unit.golden import Golden

from natgauge import system_errors
from natgauge.errors import HostError
from natgauge.host import capabilities, limits
from natgauge.inputs.types import meant_number
from natgauge.setup.traffic.ranges import meant_range
from natgauge.system_errors import can_start_threads, fault, of_host
from natgauge.toml_text import parse


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
    tmp_path: Path, number: int, remedy: str, golden: Golden
) -> None:
    error = OSError(number, os.strerror(number), "/run/x")
    told = of_host(error, "lab a: cannot be made")
    assert told is not None
    golden(str(told))
    assert remedy in str(told)
    assert isinstance(fault(error, [tmp_path / "traceback"]), HostError)
    assert list(tmp_path.iterdir()) == []


def test_a_fault_of_natgauge_stays_one(tmp_path: Path) -> None:
    for error in (OSError(errno.EBADF, "x"), RuntimeError("can't start new thread"), ValueError("x")):
        assert of_host(error) is None
        assert fault(error, [tmp_path / "traceback"]).exit_status == 4


def test_a_thread_that_cannot_be_made_is_the_hosts(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    def refused(_: threading.Thread) -> None:
        message = "whatever Python says"
        raise RuntimeError(message)

    monkeypatch.setattr(threading.Thread, "start", refused)
    assert not can_start_threads(1)
    told = of_host(RuntimeError("can't start new thread"))
    assert told is not None
    golden(str(told))
    with golden.raises(HostError):
        limits.refuse_lacking()


def test_few_open_files_are_refused_before_anything(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (20, 20))
    with golden.raises(HostError):
        limits.refuse_lacking()


def test_a_missing_sys_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, golden: Golden) -> None:
    monkeypatch.setattr(limits, "_SYS", tmp_path / "devices")
    with golden.raises(HostError):
        limits.refuse_lacking()


def test_a_user_namespace_is_named_though_all_capabilities_are_there(
    monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setattr(capabilities, "missing", lambda *_: ())
    monkeypatch.setattr(capabilities, "in_user_namespace", lambda: True)
    with golden.raises(HostError):
        capabilities.require("measuring", *capabilities.MEASURING)


def test_a_missing_capability_is_named_with_its_use_and_the_options_of_containers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(capabilities, "missing", lambda *_: ("CAP_SYS_NICE",))
    monkeypatch.setattr(capabilities, "in_user_namespace", lambda: False)
    with pytest.raises(HostError, match=r"needs CAP_SYS_NICE \(priorities .*in a container: --cap-add SYS_NICE$"):
        capabilities.require("measuring", *capabilities.MEASURING)


@pytest.mark.parametrize(
    ("text", "form"),
    [("1M", "1_000_000"), ("100k", "100_000"), ("1.5k", "1_500"), ("1e6", "1_000_000"), ("1,000", "1_000")],
)
def test_a_number_as_people_write_it_has_its_form(text: str, form: str) -> None:
    assert meant_number(text, whole=True) == f"; write {form}"
    assert int(form) == int(float(form.replace("_", "")))


def test_times_have_units_and_counts_have_not() -> None:
    assert [meant_number(text, seconds=True) for text in ("60s", "5m", "250ms", "1h")] == [
        "; write 60",
        "; write 300",
        "; write 0.25",
        "; write 3_600",
    ]
    assert [meant_number(text, whole=True) for text in ("60s", "1.2345k", "many", "", "9e99")] == [""] * 5


def test_a_network_has_the_form_of_a_range() -> None:
    assert meant_range("198.18.0.0/24") == "; write 198.18.0.1-198.18.0.254"
    assert meant_range("2001:2::/126") == "; write 2001:2::1-2001:2::3"
    assert (meant_range("x/24"), meant_range("198.18.0.1")) == ("", "")


def test_a_byte_order_mark_is_no_part_of_a_document() -> None:
    assert parse('\ufeffname = "x"') == {"name": "x"}


def test_every_remedy_is_for_an_error_of_the_system() -> None:
    assert set(system_errors._REMEDIES) <= set(errno.errorcode)
