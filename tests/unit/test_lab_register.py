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
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from tests.unit.conftest import Ran
from tests.unit.golden import Golden
from tests.unit.made_labs import USER, Machine

Cleaned: TypeAlias = Callable[[], list[str]]

#: The first line on lab x, which was left behind.
TITLE = f"took down lab x, left behind by {USER}"


def hold(machine: Machine, told: Connection) -> None:
    """Use lab x, which has set the knob, until it is killed; at a signal begin a process for a moment."""

    def begins(*_: object) -> None:
        if not os.fork():
            time.sleep(0.7)
            os._exit(0)

    made = made_by(machine)
    machine.use("x", made, (machine.root / "knob", 2))
    made.mkdir(parents=True)
    signal.signal(signal.SIGUSR1, begins)
    told.send("ready")
    time.sleep(60)


def made_by(machine: Machine) -> Path:
    """The folder that the holder makes."""
    return machine.labs / "x" / "made"


def register_of(items: str, *, name: str = "x") -> str:
    head = f'"version": 1, "name": "{name}", "kind": "netns", "kept": false, "user": "u", "settings": {{}}'
    return f'{{{head}, "items": {items}}}'


@pytest.fixture
def holder(machine: Machine) -> Iterator[ForkProcess]:
    """A process that uses lab x; as it is forked, it has what the test replaced."""
    (machine.root / "knob").write_text("before\n")
    here, there = Pipe()
    process = ForkProcess(target=hold, args=(machine, there))
    process.start()
    there.close()
    assert here.recv() == "ready"
    yield process
    process.kill()
    process.join()
    here.close()


@pytest.fixture
def cleaned(ran: Ran) -> Cleaned:
    """What cleaning says, line by line."""
    return lambda: str(ran(["lab", "clean"]).out).splitlines()


def labs(ran: Ran) -> list[dict[str, Any]]:
    """What is told of each lab."""
    found: list[dict[str, Any]] = json.loads(ran(["lab", "status", "--json"]).out)["labs"]
    return found


def items(machine: Machine) -> list[dict[str, str]]:
    """What is written down of lab x."""
    found: list[dict[str, str]] = json.loads((machine.labs / "x.json").read_text())["items"]
    return found


def test_what_will_be_made_is_in_the_file_at_once_and_undoing_leaves_nothing(machine: Machine, ran: Ran) -> None:
    folder = machine.labs / "x"
    let_go = machine.use("x", folder, folder / "never-made")
    assert items(machine) == [{"what": "directory", "path": str(path)} for path in (folder, folder / "never-made")]
    folder.mkdir()
    let_go()
    assert ran(["lab", "down", "x"]).out == f"deleted directory {folder}\n"
    assert machine.left() == [path.name for path in machine.root.iterdir()] == []


def test_a_second_user_is_refused_and_told_who_the_first_is(
    holder: ForkProcess, ran: Ran, cleaned: Cleaned, golden: Golden
) -> None:
    golden(ran(["lab", "up", "x"], status=3).err)
    (lab,) = labs(ran)
    assert (lab["name"], lab["state"], lab["pid"]) == ("x", "in use", holder.pid)
    assert cleaned() == ["nothing to clean"]


@pytest.mark.parametrize("is_starting", [False, True])
def test_what_a_killed_user_left_is_found_and_undone_once_a_process_that_it_was_starting_has_ended(
    holder: ForkProcess, machine: Machine, ran: Ran, cleaned: Cleaned, *, is_starting: bool
) -> None:
    if is_starting:
        # Like a process between fork and exec, the child has the lock's file open.
        os.kill(holder.pid or 0, signal.SIGUSR1)
        children = Path(f"/proc/{holder.pid}/task/{holder.pid}/children")
        while not children.read_text():
            time.sleep(0.01)
    holder.kill()
    holder.join()
    knob = machine.root / "knob"
    if not is_starting:
        (lab,) = labs(ran)
        assert (lab["state"], lab["pid"], lab["changed"]) == ("left behind", None, {str(knob): "before"})
    folders = [f"deleted directory {made_by(machine)}", f"deleted directory {made_by(machine).parent}"]
    assert cleaned() == [TITLE, f"restored {knob} to before", *folders]
    assert cleaned() == ["nothing to clean"]
    assert [path.name for path in machine.root.iterdir()] == ["knob"]
    assert labs(ran) == []


def test_a_new_run_undoes_what_a_killed_one_left(
    holder: ForkProcess, machine: Machine, ran: Ran, golden: Golden
) -> None:
    holder.kill()
    holder.join()
    made = made_by(machine)
    assert made.is_dir()
    # This machine has no network for a lab of its own.
    golden(ran(["lab", "up", "x"], status=3).err)
    assert (machine.root / "knob").read_text() == "before"
    assert not made.exists()


def test_a_kept_lab_is_not_made_anew_but_can_be_reopened(machine: Machine, ran: Ran, golden: Golden) -> None:
    machine.leave("x", machine.root / "a", kept=True)
    assert [lab["state"] for lab in labs(ran)] == ["kept"]
    golden(ran(["lab", "up", "x"], status=2).err)
    assert ran(["lab", "down", "x"]).out == "lab x had nothing left to undo\n"
    assert labs(ran) == []


@pytest.mark.parametrize("last", ["a", "b"])
def test_globals_come_back_in_reverse_and_the_last_of_two_labs_restores_what_the_first_found(
    machine: Machine, ran: Ran, last: str
) -> None:
    knob, other = machine.root / "knob", machine.root / "other"
    knob.write_text("1\n")
    other.write_text("2")
    machine.leave("a", (knob, 10), (other, 20), (knob, 2))
    machine.leave("b", (knob, 3))
    first = "a" if last == "b" else "b"
    restored = f"restored {other} to 2"
    nothing = f"lab {first} had nothing left to undo"
    assert ran(["lab", "down", first]).out.splitlines() == ([restored] if first == "a" else [nothing])
    assert knob.read_text() == "3"
    expected = [*([restored] if last == "a" else []), f"restored {knob} to 1"]
    assert ran(["lab", "down", last]).out.splitlines() == expected
    assert (knob.read_text(), other.read_text()) == ("1", "2")


def test_what_cannot_be_undone_stays_written_down(machine: Machine, ran: Ran, cleaned: Cleaned, golden: Golden) -> None:
    folder = machine.labs / "x"
    obstacle, knob = folder / "obstacle", machine.root / "knob"
    knob.write_text("1")
    machine.leave("x", obstacle, (knob, 2))
    folder.mkdir()
    obstacle.write_text("a file, so it cannot be deleted as a directory")
    golden(ran(["lab", "down", "x"], status=4).err)
    assert knob.read_text() == "1"
    assert items(machine) == [{"what": "directory", "path": str(obstacle)}]
    obstacle.unlink()
    assert cleaned() == [TITLE, f"deleted directory {folder}"]
    assert labs(ran) == []


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"version": 99}',
        '{"version": true}',
        '{"version": 1}',
        register_of("7"),
        register_of('["x"]'),
        register_of('[{"what": "bogus"}]'),
        register_of('[{"what": "namespace"}]'),
        register_of('[{"what": "namespace", "name": 5}]'),
        register_of('[{"what": "namespace", "name": "../x"}]'),
        register_of('[{"what": "directory", "path": null}]'),
        register_of('[{"what": "global", "path": "/proc/sys/x", "value": 1}]'),
        register_of("[]", name="other"),
    ],
)
def test_a_register_that_cannot_be_read_is_refused(machine: Machine, text: str, ran: Ran, golden: Golden) -> None:
    (machine.folder("labs") / "x.json").write_text(text)
    golden(ran(["lab", "up", "x"], status=3).err)
    assert machine.left() == ["x.json"]


@pytest.mark.parametrize("content", ["", "1", None], ids=["empty", "begun", "whole"])
def test_a_mark_that_was_being_written_goes_with_its_lab(
    machine: Machine, content: str | None, ran: Ran, cleaned: Cleaned
) -> None:
    machine.leave("x", "ng-x-gateway")
    machine.mark("ng-x-gateway")
    folder = machine.run / "namespaces"
    whole = (folder / "ng-x-gateway").read_text()
    (folder / "ng-x-gateway").unlink()
    for name in ("ng-x-gateway", "ng-x-gateway2"):
        (folder / f"{name}.1.new").write_text(whole if content is None else content)
    # What is being written marks nothing, so the second one is not gone because of a namespace that is missing.
    assert ran(["lab", "down", "x"]).out == "lab x had nothing left to undo\n"
    assert [path.name for path in folder.iterdir()] == ["ng-x-gateway2.1.new"]
    assert cleaned() == [f"deleted {folder}/ng-x-gateway2.1.new"]


def test_what_killed_runs_wrote_of_no_lab_goes_once_nobody_holds_a_lock(machine: Machine, cleaned: Cleaned) -> None:
    partial = {"guests": "kvm", "namespaces": "ng-x-gateway", "settings": "0a", "uses": "a.uses"}
    paths = [machine.folder(name) / f"{of}.1.new" for name, of in partial.items()]
    for path in paths:
        path.write_text("")
        path.with_name("precious").write_text("of others")
    let_go = machine.lock("port", "a port")
    assert cleaned() == ["nothing to clean"]
    let_go()
    assert sorted(cleaned()) == [f"deleted {path}" for path in paths]
    assert all(path.with_name("precious").exists() for path in paths)


def test_a_run_killed_in_a_write_or_before_it_made_anything_leaves_files_that_are_cleaned(
    machine: Machine, ran: Ran, cleaned: Cleaned
) -> None:
    folder = machine.folder("labs")
    for name in ("x.lock", "x.json.1.new"):
        (folder / name).write_text("1")
    assert cleaned() == [f"deleted {folder}/x.json.1.new", f"deleted {folder}/x.lock"]
    assert machine.left() == []
    machine.leave("x", machine.root / "a")
    (folder / "x.json.1.new").write_text('{"version":')
    assert [lab["name"] for lab in labs(ran)] == ["x"]
    cleaned()
    assert machine.left() == []


def skip_unless_init_adopts(orphan: int) -> None:
    parent = Path(f"/proc/{orphan}/stat").read_text().rpartition(")")[2].split()[1]
    if parent != "1" and Path(f"/proc/{parent}/comm").read_text().strip() not in {"init", "systemd"}:
        pytest.skip("this machine hands orphans to a process that is neither init nor systemd")


def test_a_program_of_natgauges_whose_parent_is_gone_is_an_orphan(machine: Machine, ran: Ran) -> None:
    started = subprocess.run(
        ["/bin/sh", "-c", "/bin/sleep 60 >/dev/null 2>&1 & echo $!"], capture_output=True, text=True, check=True
    )
    pid = int(started.stdout)
    dry = ["lab", "clean", "--dry-run"]
    with subprocess.Popen(["/bin/sleep", "60"]) as child:
        try:
            skip_unless_init_adopts(pid)
            machine.programs[:] = [Path(f"/proc/{pid}/exe").readlink().name]
            # The parent of the child, this test, lives.
            machine.processes = [pid, child.pid, os.getpid()]
            assert ran(dry).out == f"would end process {pid}\n"
            machine.programs[:] = ["natgauge-engine"]
            assert ran(dry).out == "nothing to clean\n"
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
def ending(machine: Machine) -> Iterator[int]:
    """A program of ours that has no parent any more, and is ending."""
    machine.programs[:] = ["ng-ending-test"]
    started = subprocess.Popen([sys.executable, "-c", ENDING], stdout=subprocess.PIPE, text=True)
    assert started.stdout
    pid = int(started.stdout.readline())
    started.stdout.close()
    started.wait()
    try:
        skip_unless_init_adopts(pid)
        # Its first thread ends a moment after it has printed.
        while "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]:
            os.sched_yield()
        yield pid
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_a_program_that_is_ending_is_waited_for(
    ending: int, orphans: set[int], machine: Machine, cleaned: Cleaned
) -> None:
    orphans.add(ending)
    machine.processes = [ending]
    assert not Path(f"/proc/{ending}/exe").exists()
    handle = os.pidfd_open(ending)
    try:
        assert cleaned() == [f"ended process {ending}"]
        # A descriptor of a process can be read from its end on.
        assert select.select([handle], [], [], 0)[0] == [handle]
    finally:
        os.close(handle)
    assert cleaned() == ["nothing to clean"]


def test_what_does_not_end_is_told_after_all_else_was_undone(
    holder: ForkProcess, ending: int, machine: Machine, ran: Ran, golden: Golden
) -> None:
    holder.kill()
    holder.join()
    machine.processes, machine.undying = [ending], True
    golden(ran(["lab", "clean"], status=4).err)
    assert not made_by(machine).exists()
    assert machine.left() == []


def test_a_fifo_in_the_place_of_a_register_a_lock_or_a_mark_keeps_nobody_waiting(
    machine: Machine, ran: Ran, cleaned: Cleaned, golden: Golden
) -> None:
    machine.leave("x", machine.root / "a")
    os.mkfifo(machine.labs / "x.lock")
    os.mkfifo(machine.folder("namespaces") / "ng-x-gateway")
    assert [lab["state"] for lab in labs(ran)] == ["left behind"]
    assert cleaned() == [TITLE]
    assert machine.left() == ["ng-x-gateway"]
    os.mkfifo(machine.labs / "x.json")
    golden(ran(["lab", "status"], status=3).err)


def test_what_is_no_lab_is_refused(machine: Machine, ran: Ran, golden: Golden) -> None:
    golden(ran(["lab", "down", "x"], status=2).err)
    assert machine.left() == []
    (machine.folder("labs") / "A b.json").write_text(register_of("[]", name="A b"))
    golden(ran(["lab", "status"], status=3).err)


@pytest.mark.parametrize("name", ["labs", "locks", "namespaces", "settings", "uses", "guests"])
def test_a_link_in_the_place_of_a_folder_never_leads_cleaning_elsewhere(
    machine: Machine, name: str, ran: Ran, golden: Golden
) -> None:
    (machine.root / "precious").write_text("of others")
    (machine.root / "folder").mkdir()
    machine.folder("labs").rmdir()
    (machine.run / name).symlink_to(machine.root)
    golden(ran(["lab", "clean"], status=3).err)
    assert sorted(path.name for path in machine.root.iterdir()) == ["folder", "precious"]


def test_a_file_that_is_no_mark_is_left(machine: Machine, cleaned: Cleaned) -> None:
    folder = machine.folder("namespaces")
    (folder / "precious").write_text("of others")
    machine.mark("ng-own-gateway")
    # A lab in use may be about to give a namespace this name.
    let_go = machine.lock("x")
    assert cleaned() == ["nothing to clean"]
    let_go()
    assert cleaned() == [f"deleted {folder}/ng-own-gateway"]
    assert [path.name for path in folder.iterdir()] == ["precious"]


def test_what_a_lab_left_that_was_made_meanwhile_is_not_deleted(machine: Machine, cleaned: Cleaned) -> None:
    folder = machine.folder("labs") / "x"
    folder.mkdir()
    machine.meanwhile = lambda: machine.leave("x", folder)
    assert cleaned() == []
    assert machine.left() == ["x", "x.json"]


@pytest.mark.parametrize("link", ["x", "x/gateway"])
def test_a_link_in_the_folder_of_a_lab_never_leads_cleaning_elsewhere(
    machine: Machine, link: str, ran: Ran, golden: Golden
) -> None:
    (machine.root / "gateway" / "work").mkdir(parents=True)
    machine.leave("x", machine.labs / "x" / "gateway" / "work")
    path = machine.labs / link
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(machine.root / "gateway" if link == "x/gateway" else machine.root)
    golden(ran(["lab", "clean"], status=4).err)
    assert (machine.root / "gateway" / "work").is_dir()
