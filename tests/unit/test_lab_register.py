# SPDX-License-Identifier: Apache-2.0
"""The register: written before anything is made, one user at a time, undone in reverse."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from contextvars import Context
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import get_args

import pytest
from tests.unit.golden import Golden
from tests.unit.made_machine import undoing

from natgauge.cleaning import cleanup
from natgauge.errors import BrokenError, HostError, UsageError
from natgauge.labs.common import locks, marks, namespaces
from natgauge.labs.common import register as registers
from natgauge.labs.common.register import Register
from natgauge.labs.common.undoing import Decision, Gone


def hold(root: Path, told: Connection) -> None:
    """Use lab x, which has set the knob, until it is killed; at a signal begin a process for a moment."""

    def begins(*_: object) -> None:
        if not os.fork():
            time.sleep(0.7)
            os._exit(0)

    register = registers.Register.begin("x", "netns", {"a": 1})
    register.directory.mkdir()
    register.record("directory", path=str(_made()))
    _made().mkdir()
    register.set_global(root / "knob", "changed")
    signal.signal(signal.SIGUSR1, begins)
    told.send("ready")
    time.sleep(60)


def _register_of(items: str, *, name: str = "x") -> str:
    head = f'"version": 1, "name": "{name}", "kind": "netns", "kept": false, "user": "u", "settings": {{}}'
    return f'{{{head}, "items": {items}}}'


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands for /proc/sys and the file system."""
    monkeypatch.setattr(locks, "RUN", tmp_path / "run")
    directory = tmp_path / "root"
    directory.mkdir()
    monkeypatch.setattr(registers, "GLOBAL_ROOTS", (f"{directory}/",))
    return directory


@pytest.fixture
def holder(root: Path) -> Iterator[ForkProcess]:
    """A process that uses lab x; as it is forked, it has what the test replaced."""
    (root / "knob").write_text("before\n")
    here, there = Pipe()
    process = ForkProcess(target=hold, args=(root, there))
    process.start()
    there.close()
    assert here.recv() == "ready"
    yield process
    process.kill()
    process.join()
    here.close()


def done(decisions: Iterable[Decision]) -> list[str]:
    """The lines of these decisions once they are carried out."""
    lines: list[str] = []
    cleanup.carry_out(list(decisions), lines.append)
    return lines


def _begin(name: str = "x") -> Register:
    return Register.begin(name, "netns", {})


def _content(name: str = "x") -> dict[str, object]:
    content = json.loads((locks.folder("labs") / f"{name}.json").read_text())
    assert isinstance(content, dict)
    return content


def _made() -> Path:
    """The folder that the holder makes."""
    return locks.directory_of("x") / "made"


def _title() -> str:
    """The first line on lab x, which was left behind."""
    return f"took down lab x, left behind by {registers.user_name()}"


def _left() -> list[str]:
    """All files and folders below /run/natgauge, without its subfolders."""
    return sorted(path.name for path in locks.RUN.glob("*/*"))


def test_what_will_be_made_is_in_the_file_at_once_and_undoing_leaves_nothing(root: Path) -> None:
    register = _begin()
    folder = register.directory
    register.record("directory", path=str(folder))
    assert _content()["items"] == [{"what": "directory", "path": str(folder)}]
    folder.mkdir()
    register.record("directory", path=f"{folder}/never-made")
    assert undoing(register) == [f"deleted directory {folder}"]
    register.release()
    assert _left() == [path.name for path in root.iterdir()] == []


def test_a_second_user_is_refused_and_told_who_the_first_is(holder: ForkProcess, golden: Golden) -> None:
    with golden.raises(HostError):
        _begin()
    (lab,) = cleanup.status()
    assert (lab.name, lab.state, lab.pid) == ("x", "in use", holder.pid)
    assert cleanup.clean({"x"}) == []


@pytest.mark.parametrize("is_starting", [False, True])
def test_what_a_killed_user_left_is_found_and_undone_once_a_process_that_it_was_starting_has_ended(
    holder: ForkProcess, root: Path, *, is_starting: bool
) -> None:
    if is_starting:
        # Like a process between fork and exec, the child has the lock's file open.
        os.kill(holder.pid or 0, signal.SIGUSR1)
        children = Path(f"/proc/{holder.pid}/task/{holder.pid}/children")
        while not children.read_text():
            time.sleep(0.01)
    holder.kill()
    holder.join()
    if not is_starting:
        (lab,) = cleanup.status()
        assert (lab.state, lab.pid, lab.changed) == ("left behind", None, {f"{root}/knob": "before"})
    assert cleanup.clean({"x"}) == [_title(), f"restored {root}/knob to before", f"deleted directory {_made()}"]
    assert cleanup.clean({"x"}) == []
    assert [path.name for path in root.iterdir()] == ["knob"]
    assert cleanup.status() == []


def test_a_new_run_undoes_what_a_killed_one_left(holder: ForkProcess, root: Path) -> None:
    holder.kill()
    holder.join()
    register = _begin()
    assert (root / "knob").read_text() == "before"
    assert not _made().exists()
    register.release()


def test_between_two_labs_of_a_process_no_other_process_takes_their_name(root: Path) -> None:
    """Seen: a measurement took the lab of a campaign between two of its cells, and the campaign ended."""

    def taken_elsewhere() -> bool:
        return Context().run(locks.Lock("x").try_take)

    with locks.kept(), locks.kept():
        for _ in range(2):
            register = _begin()
            register.undo()
            register.release()
            assert not taken_elsewhere()
            assert locks.Lock("x").is_held()
        assert locks.holders() == {os.getpid()}
    assert list(locks.folder("labs").iterdir()) == []
    with locks.kept():
        _begin().release()
        # Somebody deletes all files of natgauge, and another process takes the name.
        locks.Lock("x").path.unlink()
        other = locks.Lock("x")
        assert Context().run(other.try_take)
        with pytest.raises(locks.InUseError):
            _begin()
        other.release()
    without = _begin()
    without.release()
    assert taken_elsewhere()
    assert (root.parent / "run" / "labs" / "x.lock").exists()


def test_a_kept_lab_is_not_made_anew_but_can_be_reopened(root: Path, golden: Golden) -> None:
    register = _begin()
    register.record("directory", path=f"{root}/a")
    register.keep()
    register.release()
    assert [lab.state for lab in cleanup.status()] == ["kept"]
    with pytest.raises(UsageError, match="natgauge lab down x"):
        _begin()
    again = Register.reopen("x")
    again.require_kept("netns")
    with golden.raises(UsageError):
        again.require_kept("cable")
    again.release()
    assert cleanup.take_down("x") == []
    assert cleanup.status() == []


@pytest.mark.parametrize("last", ["a", "b"])
def test_globals_come_back_in_reverse_and_the_last_of_two_labs_restores_what_the_first_found(
    root: Path, last: str
) -> None:
    knob, other = root / "knob", root / "other"
    knob.write_text("1\n")
    other.write_text("2")
    labs = {name: _begin(name) for name in "ab"}
    labs["a"].set_global(knob, 10)
    labs["a"].set_global(other, 20)
    labs["a"].set_global(knob, 2)
    labs["b"].set_global(knob, 3)
    first = "a" if last == "b" else "b"
    restored = f"restored {other} to 2"
    assert undoing(labs[first]) == ([restored] if first == "a" else [])
    assert knob.read_text() == "3"
    assert undoing(labs[last]) == [*([restored] if last == "a" else []), f"restored {knob} to 1"]
    assert (knob.read_text(), other.read_text()) == ("1", "2")
    for lab in labs.values():
        lab.release()


def test_a_setting_with_its_old_value_is_not_written_and_what_is_none_is_refused(root: Path, golden: Golden) -> None:
    (root / "knob").write_text("1")
    register = _begin()
    register.remember_global(root / "knob", "1")
    for path in ("/etc/passwd", f"{root}/../x"):
        with pytest.raises(UsageError, match="can be remembered"):
            register.remember_global(path, "1")
    with golden.raises(HostError):
        register.set_global(root / "absent", 5)
    assert undoing(register) == []
    register.release()


def test_what_cannot_be_undone_stays_written_down(root: Path, golden: Golden) -> None:
    register = _begin()
    register.directory.mkdir()
    obstacle = register.directory / "obstacle"
    obstacle.write_text("a file, so it cannot be deleted as a directory")
    register.record("directory", path=str(obstacle))
    (root / "knob").write_text("1")
    register.set_global(root / "knob", "2")
    with golden.raises(BrokenError):
        register.undo()
    register.release()
    assert (root / "knob").read_text() == "1"
    assert _content()["items"] == [{"what": "directory", "path": str(obstacle)}]
    obstacle.unlink()
    assert cleanup.clean({"x"}) == [_title()]
    assert cleanup.status() == []


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"version": 99}',
        '{"version": true}',
        '{"version": 1}',
        _register_of("7"),
        _register_of('["x"]'),
        _register_of('[{"what": "bogus"}]'),
        _register_of('[{"what": "namespace"}]'),
        _register_of('[{"what": "namespace", "name": 5}]'),
        _register_of('[{"what": "namespace", "name": "../x"}]'),
        _register_of('[{"what": "directory", "path": null}]'),
        _register_of('[{"what": "global", "path": "/proc/sys/x", "value": 1}]'),
        _register_of("[]", name="other"),
    ],
)
def test_a_register_that_cannot_be_read_is_refused(root: Path, text: str, golden: Golden) -> None:
    assert root.exists()
    (locks.made_folder("labs") / "x.json").write_text(text)
    with golden.raises(HostError):
        _begin()
    assert _left() == ["x.json"]


@pytest.mark.parametrize("content", ["", "1", None], ids=["empty", "begun", "whole"])
def test_a_mark_that_was_being_written_goes_with_its_lab(root: Path, content: str | None) -> None:
    register = _begin()
    register.record("namespace", name="ng-x-gateway")
    register.release()
    folder = locks.made_folder("namespaces")
    for name in ("ng-x-gateway", "ng-x-gateway2"):
        (folder / f"{name}.1.new").write_text(marks.cookie() if content is None else content)
    assert root.exists()
    assert marks.names() == ()
    cleanup.clean({"x"})
    assert [path.name for path in folder.iterdir()] == ["ng-x-gateway2.1.new"]


def test_what_killed_runs_wrote_of_no_lab_goes_once_nobody_holds_a_lock(root: Path) -> None:
    assert root.exists()
    partial: dict[locks.Subfolder, str] = {
        "guests": "kvm", "namespaces": "ng-x-gateway", "settings": "0a", "uses": "a.uses",
    }  # fmt: skip
    paths = [locks.made_folder(name) / f"{of}.1.new" for name, of in partial.items()]
    for path in paths:
        path.write_text("")
        path.with_name("precious").write_text("of others")
    lock = locks.Lock("port", "a port")
    lock.take()
    assert done(cleanup._of_partial(Gone())) == []
    lock.release()
    assert sorted(done(cleanup._of_partial(Gone()))) == [f"deleted {path}" for path in paths]
    assert all(path.with_name("precious").exists() for path in paths)


def test_a_run_killed_in_a_write_or_before_it_made_anything_leaves_files_that_are_cleaned(root: Path) -> None:
    folder = locks.made_folder("labs")
    for name in ("x.lock", "x.json.1.new"):
        (folder / name).write_text("1")
    assert done(cleanup._of_files(Gone())) == [f"deleted {folder}/x.json.1.new", f"deleted {folder}/x.lock"]
    assert _left() == []
    register = _begin()
    register.record("directory", path=f"{root}/a")
    register.release()
    (folder / "x.json.1.new").write_text('{"version":')
    assert [lab.name for lab in cleanup.status()] == ["x"]
    cleanup.clean({"x"})
    assert _left() == []


def skip_unless_init_adopts(orphan: int) -> None:
    parent = Path(f"/proc/{orphan}/stat").read_text().rpartition(")")[2].split()[1]
    if parent != "1" and Path(f"/proc/{parent}/comm").read_text().strip() not in cleanup._INIT_NAMES:
        pytest.skip("this machine hands orphans to a process that is neither init nor systemd")


def test_a_program_of_natgauges_whose_parent_is_gone_is_an_orphan(monkeypatch: pytest.MonkeyPatch) -> None:
    started = subprocess.run(
        ["/bin/sh", "-c", "/bin/sleep 60 >/dev/null 2>&1 & echo $!"], capture_output=True, text=True, check=True
    )
    pid = int(started.stdout)
    with subprocess.Popen(["/bin/sleep", "60"]) as child:
        try:
            skip_unless_init_adopts(pid)
            monkeypatch.setattr(cleanup, "PROGRAMS", (Path(f"/proc/{pid}/exe").readlink().name,))
            assert cleanup._is_orphan(pid)
            # Its parent, this test, lives.
            assert not cleanup._is_orphan(child.pid)
            assert not cleanup._is_orphan(os.getpid())
            monkeypatch.setattr(cleanup, "PROGRAMS", ("natgauge-engine",))
            assert not cleanup._is_orphan(pid)
        finally:
            os.kill(pid, signal.SIGKILL)
            child.kill()


#: A process whose first thread has ended while another one works: so an engine looks that gives back its memory.
ENDING = """
import ctypes, os, platform, signal, threading
exit_thread = {"x86_64": 60, "aarch64": 93}[platform.machine()]
libc = ctypes.CDLL(None)
if os.fork() == 0:
    libc.prctl(15, b"ng-ending-test")
    threading.Thread(target=signal.pause).start()
    print(os.getpid(), flush=True)
    libc.syscall(exit_thread, 0)
"""


@pytest.fixture
def ending(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A program of ours that has no parent any more, and is ending."""
    monkeypatch.setattr(cleanup, "PROGRAMS", ("ng-ending-test",))
    started = subprocess.Popen([sys.executable, "-c", ENDING], stdout=subprocess.PIPE, text=True)
    assert started.stdout
    pid = int(started.stdout.readline())
    started.stdout.close()
    started.wait()
    # Its first thread ends a moment after it has printed.
    while "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]:
        os.sched_yield()
    yield pid
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def test_a_program_that_is_ending_is_waited_for(
    ending: int, orphans: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    orphans.add(ending)
    monkeypatch.setattr(namespaces, "all_processes", lambda: [ending])
    skip_unless_init_adopts(ending)
    assert not Path(f"/proc/{ending}/exe").exists()
    handle = os.pidfd_open(ending)
    try:
        assert done(cleanup._of_orphans()) == [f"ended process {ending}"]
        # A descriptor of a process can be read from its end on.
        assert select.select([handle], [], [], 0)[0] == [handle]
    finally:
        os.close(handle)
    assert done(cleanup._of_orphans()) == []


def test_a_program_that_has_ended_is_waited_for_until_it_is_off_the_list_of_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = subprocess.Popen(["/bin/true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    monkeypatch.setattr(cleanup, "_is_orphan", lambda pid: pid == process.pid)
    monkeypatch.setattr(namespaces, "all_processes", lambda: [process.pid])
    # While it is waited for, its parent does what the init process does for an orphan.
    monkeypatch.setattr(time, "sleep", lambda _seconds: process.wait())
    assert done(cleanup._of_orphans()) == []
    assert not Path(f"/proc/{process.pid}").exists()


def test_what_does_not_end_is_told_after_all_else_was_undone(
    holder: ForkProcess, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    holder.kill()
    holder.join()

    def stays(_pids: object) -> list[int]:
        raise BrokenError("process 7: did not end")

    monkeypatch.setattr(namespaces, "all_processes", lambda: [holder.pid])
    monkeypatch.setattr(cleanup, "_is_orphan", lambda pid: pid == holder.pid)
    monkeypatch.setattr(namespaces, "end_processes", stays)
    monkeypatch.setattr(namespaces, "names", tuple)
    with golden.raises(BrokenError):
        cleanup.clean()
    assert not _made().exists()
    assert _left() == []


def test_a_fifo_in_the_place_of_a_register_a_lock_or_a_mark_keeps_nobody_waiting(root: Path) -> None:
    assert root.exists()
    os.mkfifo(locks.made_folder("labs") / "x.lock")
    os.mkfifo(locks.made_folder("namespaces") / "ng-x-gateway")
    assert not locks.Lock("x").is_held()
    assert marks.read("ng-x-gateway") == ""
    os.mkfifo(locks.folder("labs") / "x.json")
    with pytest.raises(HostError, match="is a FIFO"):
        cleanup.status()


def test_what_is_no_lab_is_refused(root: Path, golden: Golden) -> None:
    assert root.exists()
    with golden.raises(UsageError):
        cleanup.take_down("x")
    assert _left() == []
    (locks.made_folder("labs") / "A b.json").write_text(_register_of("[]", name="A b"))
    with golden.raises(HostError):
        cleanup.status()


@pytest.mark.parametrize("name", get_args(locks.Subfolder))
def test_a_link_in_the_place_of_a_folder_never_leads_cleaning_elsewhere(root: Path, name: locks.Subfolder) -> None:
    (root / "precious").write_text("of others")
    (root / "folder").mkdir()
    locks.made_folder("labs").rmdir()
    locks.folder(name).symlink_to(root)
    with pytest.raises(HostError, match="is no folder"):
        cleanup.clean()
    assert sorted(path.name for path in root.iterdir()) == ["folder", "precious"]


def test_marks_behind_a_link_are_no_marks_and_a_file_that_is_no_mark_is_left(root: Path) -> None:
    (root / "precious").write_text("of others")
    folder = locks.made_folder("labs").parent / "namespaces"
    folder.symlink_to(root)
    assert marks.names() == ()
    marks.remove("precious")
    assert (root / "precious").exists()
    folder.unlink()
    (locks.made_folder("namespaces") / "precious").write_text("of others")
    marks.write("ng-own-gateway", marks.cookie())
    assert done(cleanup._of_marks(Gone())) == [f"deleted {folder}/ng-own-gateway"]
    assert [path.name for path in folder.iterdir()] == ["precious"]


@pytest.mark.parametrize("link", ["x", "x/gateway"])
def test_a_link_in_the_folder_of_a_lab_never_leads_cleaning_elsewhere(root: Path, link: str, golden: Golden) -> None:
    (root / "gateway" / "work").mkdir(parents=True)
    register = _begin()
    path = locks.folder("labs") / link
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(root / "gateway" if link == "x/gateway" else root)
    register.record("directory", path=str(register.directory / "gateway" / "work"))
    register.release()
    with golden.raises(BrokenError):
        cleanup.clean({"x"})
    assert (root / "gateway" / "work").is_dir()
