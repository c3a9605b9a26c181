# SPDX-License-Identifier: Apache-2.0
"""What all unit tests share.

They end no process but those that they started, whatever they make natgauge believe of the others. None ends with a
power failure, so none waits until the disk has all that was written.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from tests.unit.golden import golden

from natgauge.host import machine as this_machine
from natgauge.labs.common.processes import parent_of

if TYPE_CHECKING:
    from tests.unit.made_labs import Machine

__all__ = ["golden"]

#: What a command line printed, `.out` and `.err`, that ended with a status.
Ran: TypeAlias = Callable[..., Any]
#: What `natgauge report` says of records, as a document; with `html=True` the page.
Reported: TypeAlias = Callable[..., Any]
#: What `natgauge report` prints of records.
Report: TypeAlias = Callable[..., str]


@pytest.fixture
def ran(capsys: pytest.CaptureFixture[str]) -> Ran:
    """Run a command line of natgauge, which must end with this status."""
    from natgauge.cli import run  # noqa: PLC0415 - few tests need the command line

    def of(words: Sequence[str], status: int = 0) -> Any:
        assert run(list(words)) == status
        return capsys.readouterr()

    return of


@pytest.fixture
def reported(report: Report, tmp_path: Path) -> Reported:
    """Report records, each from a folder of its own, in this order."""

    def of(*records: Any, html: bool = False) -> Any:
        page = tmp_path / "reported.html"
        said = report(*records, asked=["--html", str(page)] if html else ["--format", "json"])
        return page.read_text() if html else json.loads(said)

    return of


@pytest.fixture
def report(tmp_path: Path, ran: Ran) -> Report:
    """Keep records, each in a folder whose name has no date, and report them in lines of so many characters."""
    from tests.unit.made_results import kept_as  # noqa: PLC0415 - few tests need stored records

    folders = (tmp_path / f"run-{number}" for number in itertools.count())

    def of(*records: Any, asked: Sequence[str] = (), width: int = 1000) -> str:
        folder = next(folders)
        for at, one in enumerate(records):
            kept_as(folder / f"{at:02}", one)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("COLUMNS", str(width))
            said: str = ran(["report", *asked, str(folder)]).out
        return said

    return of


@pytest.fixture(autouse=True, scope="session")
def the_disk_is_not_waited_for() -> Iterator[None]:
    """Each line of a journal waits for the disk, and so did the labs of the tests at the same time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _file: None)
        yield


@pytest.fixture(scope="session")
def stats() -> Any:
    """The statistics of scipy, which take a second to load: not for each process that collects tests."""
    return import_module("scipy.stats")


@pytest.fixture
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said of this machine's cores is the same on any machine."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    monkeypatch.setattr(this_machine, "online_cpus", lambda: (0, 1, 2, 3))


@pytest.fixture
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of a command line."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """One without labs, and without a network."""
    from tests.unit.made_labs import machine_in  # noqa: PLC0415 - few tests need it

    with machine_in(tmp_path) as made:
        yield made


@pytest.fixture(autouse=True)
def orphans(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Refuse a signal to a process that this one did not start.

    Returns:
        A set to which a test adds processes of its own whose parent has ended.
    """
    send = signal.pidfd_send_signal
    own: set[int] = set()

    def send_to_own(handle: int, number: int, *others: object) -> None:
        fields = dict(line.split(":", 1) for line in Path(f"/proc/self/fdinfo/{handle}").read_text().splitlines())
        pid = int(fields["Pid"])
        # A process that has ended has the number -1.
        if pid > 0 and pid not in own and not _is_own(pid):
            raise AssertionError(f"a unit test sends signal {number} to process {pid}, which it did not start")
        send(handle, number, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(signal, "pidfd_send_signal", send_to_own)
    return own


def _is_own(pid: int) -> bool:
    parent = parent_of(pid)
    while parent and parent != os.getpid():
        parent = parent_of(parent)
    return parent == os.getpid()
