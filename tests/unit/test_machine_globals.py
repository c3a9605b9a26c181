# SPDX-License-Identifier: Apache-2.0
"""What a lab shares with its machine: settings that several labs change or rely on, names, and namespaces."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context
from pathlib import Path

import pytest
from pyroute2 import netns
from tests.unit.golden import Golden
from tests.unit.made_machine import Memory, undoing

from natgauge import cleaning, file_access
from natgauge.errors import BrokenError, HostError, UsageError
from natgauge.host import settings
from natgauge.host.settings import Announced, Announcement, LocalSetting, reliance_kept, turn
from natgauge.labs.common import device, links, locks, namespaces, processes
from natgauge.labs.common import register as registers
from natgauge.labs.common.device import ThisMachine
from natgauge.labs.common.processes import NoThreadError, in_thread
from natgauge.labs.common.register import Register, registered, value_set
from natgauge.labs.netns import lab as netns_lab
from natgauge.labs.netns.lab import NetnsLab

#: A lab of another container: it has a /run of its own. Each line on its input is a command.
OTHER = """
import sys
from pathlib import Path
from natgauge.labs.common import locks
from natgauge.labs.common import register as registers
locks.RUN, registers.GLOBAL_ROOTS = Path(sys.argv[1]), (sys.argv[2],)
register = registers.Register.begin("x", "netns", {})
register.set_global(sys.argv[3], sys.argv[4])
print("set", flush=True)
sys.stdin.readline()
done = []
register.undo(done.append)
print(*done, *register.left, sep="; ", flush=True)
"""
NOBODY = 65534
#: The first line of cleaning on a lab that was left behind.
TITLE = f"took down lab x, left behind by {registers.user_name()}"


@pytest.fixture
def knob(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A global setting of the machine."""
    monkeypatch.setattr(locks, "RUN", tmp_path / "run")
    root = tmp_path / "root"
    root.mkdir()
    monkeypatch.setattr(registers, "GLOBAL_ROOTS", (f"{root}/",))
    (root / "knob").write_text("1\n")
    return root / "knob"


@contextmanager
def other(knob: Path, run: Path, value: int) -> Iterator[subprocess.Popen[str]]:
    """A natgauge of another container, which has set the value; it restores it once its input ends."""
    command = [sys.executable, "-c", OTHER, str(run), f"{knob.parent}/", str(knob), str(value)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "set\n"
        try:
            yield process
        finally:
            process.kill()


def undone(process: subprocess.Popen[str]) -> str:
    """End a natgauge of another container; what it says."""
    return process.communicate("\n")[0].strip()


def begin(name: str = "x") -> Register:
    return Register.begin(name, "netns", {})


def lab(knob: Path, value: int, name: str = "x") -> Register:
    register = begin(name)
    register.set_global(knob, value)
    return register


def test_a_value_that_another_program_set_stays_and_is_told_with_the_first_one(knob: Path, golden: Golden) -> None:
    register = lab(knob, 2)
    knob.write_text("7\n")
    assert undoing(register) == []
    golden(register.left)
    register.release()
    assert knob.read_text() == "7\n"


@pytest.mark.parametrize("is_killed", [False, True])
def test_the_value_is_the_one_that_the_kernel_made_of_it_and_a_kill_before_it_is_confirmed_is_undone(
    knob: Path, golden: Golden, *, is_killed: bool
) -> None:
    """A hash size is rounded up: what is read back is natgauge's value."""
    register = Register.begin("x", "netns", {})
    register.remember_global(knob, "1")
    knob.write_text("512\n")
    if is_killed:
        register.release()
        golden(cleaning.clean({"x"}))
        return
    register.confirm_global(knob, "512")
    golden(undoing(register))
    register.release()


def test_of_two_labs_that_end_at_the_same_time_the_last_restores_the_first_value(knob: Path) -> None:
    one, two = begin(), lab(knob, 2, "y")
    one.make_directory(one.directory)
    one.set_global(knob, 3)
    done = []

    def tell(what: str) -> None:
        # The setting is left to the other lab, which ends while this one still removes its folder.
        done.append(what)
        two.undo(done.append)

    one.undo(tell)
    assert done == [f"deleted directory {one.directory}", f"restored {knob} to 1"]
    assert (knob.read_text(), value_set(str(knob))) == ("1", None)
    assert registered() == []


@pytest.mark.parametrize("is_last", [True, False])
def test_of_two_containers_the_last_restores_the_first_value_and_gets_its_own_back_before(
    knob: Path, tmp_path: Path, *, is_last: bool
) -> None:
    register = lab(knob, 2)
    with other(knob, tmp_path / "elsewhere", 3) as process:
        if is_last:
            assert undone(process) == f"restored {knob} to 2"
            assert undoing(register) == [f"restored {knob} to 1"]
        else:
            assert undoing(register) == []
            assert knob.read_text() == "3", "the other one relies on it"
            assert undone(process) == f"restored {knob} to 1"
        register.release()
    assert knob.read_text() == "1"


def test_a_killed_natgauge_of_another_container_is_replaced_by_the_one_that_runs(knob: Path, tmp_path: Path) -> None:
    with other(knob, tmp_path / "elsewhere", 3) as process:
        register = lab(knob, 4)
        process.kill()
        process.wait()
    assert undoing(register) == [f"restored {knob} to 1"]
    register.release()


def test_what_a_killed_lab_set_is_restored_only_when_nobody_relies_on_it_any_more(
    knob: Path, tmp_path: Path, golden: Golden
) -> None:
    killed = lab(knob, 2)
    killed.release()
    with other(knob, tmp_path / "elsewhere", 3) as process:
        with golden.raises(BrokenError):
            cleaning.clean({"x"})
        assert undone(process) == f"restored {knob} to 2"
    golden(cleaning.clean({"x"}))


def test_a_lab_that_relies_on_the_value_of_another_lab_keeps_it_and_shares_what_nobody_changed_with_none(
    knob: Path,
) -> None:
    second = Register.begin("y", "netns", {})
    second.share_global(knob, "1")
    assert second.length == 0
    first = lab(knob, 2)
    second.share_global(knob, "2")
    assert undoing(first) == []
    first.release()
    assert knob.read_text() == "2"
    assert undoing(second) == [f"restored {knob} to 1"]
    second.release()


def labs_of(monkeypatch: pytest.MonkeyPatch, knob: Path, **hosts: int) -> tuple[NetnsLab, ...]:
    """Labs by name that are up, whose devices need one neighbour limit of the machine: as large as they have hosts."""
    monkeypatch.setattr(netns_lab, "neighbour_limits", lambda _families, number: [(str(knob), number)])
    labs = tuple(
        NetnsLab(name, initiator_family="ipv4", responder_family="ipv4", hosts=number) for name, number in hosts.items()
    )
    for each in labs:
        each._register = Register.begin(each.name, "netns", {})
    return labs


def test_a_lab_for_whose_neighbours_another_one_made_room_keeps_it(knob: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = labs_of(monkeypatch, knob, x=9, y=4, z=9)
    for each in (first, second, third):
        each._fit()
    first.down()
    third.down()
    assert knob.read_text() == "9", "the second one relies on it"
    second.down()
    assert knob.read_text() == "1"


def test_room_that_its_lab_took_back_at_the_last_moment_is_made_again(
    knob: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = labs_of(monkeypatch, knob, x=9, y=4)
    first._fit()
    share = Register.share_global

    def late(register: Register, path: str | Path, value: str) -> None:
        first.down()
        share(register, path, value)

    monkeypatch.setattr(Register, "share_global", late)
    second._fit()
    assert knob.read_text() == "4"
    second.down()
    assert knob.read_text() == "1"


def test_limits_that_a_network_namespace_cannot_raise_are_refused_where_they_are_too_low(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "_limit_file", lambda family, number: f"{tmp_path}/absent/{family}/gc_thresh{number}")
    shown = {links._limit_file("ipv4", number): limit for number, limit in ((1, 128), (2, 512), (3, 1024))}
    monkeypatch.setattr(links, "_shown_neighbour_limits", lambda: shown)
    roomy = NetnsLab(initiator_family="ipv4", responder_family="ipv4", hosts=170)
    roomy._fit()
    narrow = NetnsLab(initiator_family="ipv4", responder_family="ipv4", hosts=300)
    with pytest.raises(HostError, match=r"gc_thresh3: is 1024, the tester's 300 addresses need 1200, .*--network host"):
        narrow._fit()
    # The machine's owner made room.
    shown |= dict.fromkeys(shown, 2000)
    narrow._fit()


def test_the_kernel_tells_its_neighbour_limits_in_every_network_namespace() -> None:
    told = links._shown_neighbour_limits()
    files = {path: int(Path(path).read_text()) for path in told if Path(path).exists()}
    assert told
    assert told | files == told


@pytest.mark.parametrize("path", ["/etc/hostname", "{root}/link"])
def test_a_register_never_makes_cleaning_write_elsewhere(knob: Path, tmp_path: Path, path: str) -> None:
    outside = tmp_path / "outside"
    outside.write_text("theirs")
    (knob.parent / "link").symlink_to(outside)
    damaged(knob, {"what": "global", "path": path.format(root=knob.parent), "value": "mine"})
    with pytest.raises(BrokenError, match="only files below"):
        cleaning.clean({"x"})
    assert outside.read_text() == "theirs"


@pytest.mark.parametrize("path", ["{tmp}/outside", "{run}/labs/x/../y", "{run}/labs"])
def test_a_register_never_makes_cleaning_delete_elsewhere(
    knob: Path, tmp_path: Path, path: str, golden: Golden
) -> None:
    for folder in (tmp_path / "outside", locks.made_folder("labs") / "y", locks.directory_of("x")):
        folder.mkdir()
    damaged(knob, {"what": "directory", "path": path.format(tmp=tmp_path, run=locks.RUN)})
    with golden.raises(BrokenError):
        cleaning.clean({"x"})
    assert (tmp_path / "outside").exists()
    assert (locks.folder("labs") / "y").exists()


def damaged(knob: Path, item: dict[str, str]) -> None:
    """Leave a register that somebody edited."""
    lab(knob, 2).release()
    path = locks.folder("labs") / "x.json"
    content = json.loads(path.read_text())
    content["items"] = [item]
    path.write_text(json.dumps(content))


def test_undoing_needs_no_room(knob: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    register = lab(knob, 2)
    register.record("directory", path=str(register.directory))
    register.directory.mkdir()

    def full(path: Path, *_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    with monkeypatch.context() as patch:
        patch.setattr(file_access, "replace", full)
        with golden.raises(HostError):
            register.record("directory", path="more")
        assert undoing(register) == [f"deleted directory {register.directory}", f"restored {knob} to 1"]
        register.release()
    assert [path.name for path in locks.RUN.glob("*/*")] == []


def test_a_lock_can_be_taken_without_room(knob: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    register = lab(knob, 2)
    register.release()
    real = os.open

    def full(path: str | Path, flags: int, *more: int) -> int:
        if flags & os.O_CREAT:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return real(path, flags, *more)

    monkeypatch.setattr(os, "open", full)
    golden(cleaning.clean({"x"}))


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_another_user_can_neither_hold_a_setting_nor_the_turn(knob: Path) -> None:
    """The names of announcements can be bound by everybody."""
    squatted = [
        Announced(settings._digest(str(knob)), "lowered", "", 1, 1, "squatted"),
        Announced("", "busy", "", 1, 1, "squatted"),
        Announced(settings._digest(str(knob)), "restores", "else", 1, 1, "squatted", "66", "77"),
    ]
    names = [f"\0{each.name}" for each in squatted]
    program = (
        f"import os, socket; os.setuid({NOBODY}); held = [socket.socket(socket.AF_UNIX) for _ in {names!r}]; "
        f"[each.bind(name) for each, name in zip(held, {names!r})]; print('bound', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as squatter:
        assert squatter.stdout
        assert squatter.stdout.readline() == "bound\n"
        assert settings.others(knob, ["lowered", "restores"]) == []
        register = lab(knob, 2)
        assert undoing(register) == [f"restored {knob} to 1"]
        register.release()
        squatter.communicate("\n")


def test_who_holds_the_turn_for_too_long_is_named(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    monkeypatch.setattr(settings, "TURN_SECONDS", 0.2)
    begun = time.monotonic()
    with turn(), golden.raises(HostError), turn():
        pass
    assert time.monotonic() - begun < 5


def test_an_announcement_is_read_as_it_was_made_and_fits_into_a_name(knob: Path) -> None:
    longest = "9" * settings._LONGEST_VALUE
    made = Announcement(knob, "restores", group=settings.group_of(knob.parent), first=longest, value=longest)
    try:
        assert settings.others(knob, ["restores"]) == [made.announced]
        assert settings.others(knob, ["restores"], own=[made]) == settings.others(knob, ["relies"]) == []
    finally:
        made.close()
    assert settings.others(knob, ["restores"]) == []


def test_neither_the_machines_own_namespace_nor_the_processes_that_natgauge_was_started_from_are_taken(
    monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    assert namespaces.end_processes([1, os.getpid(), os.getppid()]) == ()
    ended: list[object] = []
    monkeypatch.setattr(namespaces, "path_of", lambda _name: Path("/proc/self/ns/net"))
    monkeypatch.setattr(namespaces, "end_processes", ended.append)
    for unmarked in (False, True):
        with golden.raises(BrokenError):
            namespaces.delete(["ng-main"], unmarked=unmarked)
    assert ended == []


@pytest.fixture
def of_a_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A namespace of natgauge's is there, as far as it looks."""
    (tmp_path / "ng-lab-gateway").touch()
    monkeypatch.setattr(namespaces, "path_of", lambda name: tmp_path / name)
    monkeypatch.setattr(namespaces, "_is_namespace", lambda _name: True)
    monkeypatch.setattr(namespaces, "is_marked", lambda _name: True)


@pytest.mark.usefixtures("of_a_lab")
def test_a_process_that_was_started_while_others_were_ended_is_ended_too(monkeypatch: pytest.MonkeyPatch) -> None:
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

    monkeypatch.setattr(namespaces, "processes", lambda _name: tuple(running))
    monkeypatch.setattr(namespaces, "end_processes", end)
    monkeypatch.setattr(namespaces, "in_thread", deleted)
    namespaces.delete(["ng-lab-gateway"])
    assert done == [[1], [2], "natgauge-delete"]


@pytest.mark.usefixtures("of_a_lab")
def test_where_no_thread_can_be_started_the_error_says_so_and_deleting_does_without(
    monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    removed: list[str] = []
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with golden.raises(NoThreadError):
        in_thread(lambda: None)
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
    monkeypatch.setattr(cleaning, "registered", registered)
    cleaning.clean(strays=True)
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
        namespaces.write_mark(name, namespaces.cookie())
        (tmp_path / name).write_text(content)
    assert [name for name in ("ng-x-gateway", "ng-y-gateway", "plain") if namespaces.is_marked(name)] == [
        "ng-x-gateway"
    ]


# The right to use a name, what natgauge calls its own, and which processes nobody waits for.


@pytest.mark.usefixtures("knob")
def test_between_two_labs_of_a_process_no_other_process_takes_their_name() -> None:
    """Seen: a measurement took the lab of a campaign between two of its cells, and the campaign ended."""

    def taken_elsewhere() -> bool:
        return Context().run(locks.Lock("x").try_take)

    with locks.kept(), locks.kept():
        for _ in range(2):
            register = begin()
            register.undo()
            register.release()
            assert not taken_elsewhere()
            assert locks.Lock("x").is_held()
        assert locks.holders() == {os.getpid()}
    assert list(locks.folder("labs").iterdir()) == []
    with locks.kept():
        begin().release()
        # Somebody deletes all files of natgauge, and another process takes the name.
        locks.Lock("x").path.unlink()
        other = locks.Lock("x")
        assert Context().run(other.try_take)
        with pytest.raises(locks.InUseError):
            begin()
        other.release()
    without = begin()
    without.release()
    assert taken_elsewhere()
    assert (locks.folder("labs") / "x.lock").exists()


@pytest.mark.usefixtures("knob")
def test_a_lab_whose_register_is_damaged_is_not_made_and_its_name_stays_free() -> None:
    path = locks.made_folder("labs") / "x.json"
    path.write_text("{")
    with pytest.raises(HostError, match=r"x\.json: is damaged"):
        begin()
    assert [each.name for each in path.parent.iterdir()] == ["x.json"]


@pytest.mark.usefixtures("knob")
def test_a_kept_lab_is_never_made_anew_and_one_of_another_kind_is_not_used(golden: Golden) -> None:
    register = begin()
    register.keep()
    register.release()
    with pytest.raises(UsageError, match="natgauge lab down x"):
        begin()
    again = Register.reopen("x")
    again.require_kept("netns")
    with golden.raises(UsageError):
        again.require_kept("cable")
    again.release()


@pytest.mark.usefixtures("knob")
def test_a_holder_that_is_dead_is_not_named_as_if_it_lived(golden: Golden) -> None:
    lock = locks.Lock("x")
    lock.take()
    lock.path.write_text("4194304 77")
    assert lock.holder() is None
    other = locks.Lock("x")
    with golden.raises(HostError):
        other.take()
    lock.path.write_text(f"{os.getpid()} 77")
    assert lock.holder() is None, "the process that has this number now began later"
    lock.release()


def test_a_setting_with_its_old_value_is_not_written_and_what_is_none_is_refused(knob: Path, golden: Golden) -> None:
    register = begin()
    register.remember_global(knob, "1")
    for path in ("/etc/passwd", f"{knob.parent}/../x"):
        with pytest.raises(UsageError, match="can be remembered"):
            register.remember_global(path, "1")
    with golden.raises(HostError):
        register.set_global(knob.parent / "absent", 5)
    assert undoing(register) == []
    register.release()


@pytest.mark.usefixtures("knob")
def test_marks_behind_a_link_are_no_marks_and_a_fifo_is_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("of others")
    folder = locks.made_folder("labs").parent / "namespaces"
    folder.symlink_to(tmp_path)
    assert namespaces.mark_names() == ()
    namespaces.remove_mark("precious")
    assert (tmp_path / "precious").exists()
    folder.unlink()
    os.mkfifo(locks.made_folder("namespaces") / "ng-x-gateway")
    assert namespaces.read_mark("ng-x-gateway") == ""


def test_a_program_that_has_ended_is_waited_for_until_it_is_off_the_list_of_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines: list[str] = []
    process = subprocess.Popen(["/bin/true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    monkeypatch.setattr(cleaning, "_is_orphan", lambda pid: pid == process.pid)
    monkeypatch.setattr(namespaces, "all_processes", lambda: [process.pid])
    # While it is waited for, its parent does what the init process does for an orphan.
    monkeypatch.setattr(time, "sleep", lambda _seconds: process.wait())
    cleaning.carry_out(cleaning._of_orphans(), lines.append)
    assert lines == []
    assert not Path(f"/proc/{process.pid}").exists()
    assert cleaning.has_ended(process.pid)


@pytest.mark.parametrize(
    ("parent", "program", "command", "holds", "orphan"),
    [
        (1, "python3.11", b"/usr/bin/python3.11\0/usr/local/bin/natgauge\0measure", False, False),
        (1, "python3.11", b"python\0bench.py", True, False),
        (1, "python3.11", b"python\0supervisord", False, True),
        (1, "tini", b"tini\0--\0natgauge", False, True),
        # Its parent is outside of the container.
        (0, "tini", b"", False, False),
    ],
)
def test_the_first_process_of_a_container_may_be_natgauge(
    monkeypatch: pytest.MonkeyPatch, parent: int, *, program: str, command: bytes, holds: bool, orphan: bool
) -> None:
    real = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda self: command if str(self) == "/proc/1/cmdline" else real(self))
    seen = {0: None, 1: program}
    monkeypatch.setattr(cleaning, "_program_of", lambda pid: seen.get(pid, "natgauge-engine"))
    monkeypatch.setattr(processes, "parent_of", lambda _pid: parent)
    monkeypatch.setattr(locks, "holders", lambda: frozenset({1} if holds else ()))
    assert cleaning._is_orphan(4711) is orphan


# Whoever changes a setting that a gateway relies on is found; between labs it is kept.


class Shared(Memory):
    """The register of a lab in a container where another natgauge has set a value."""

    def __init__(self, value: str | None) -> None:
        super().__init__()
        self.value = value

    def value_set(self, _path: str | Path) -> str | None:
        return self.value


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The size of a table of this machine."""
    path = tmp_path / "nf_conntrack_max"
    path.write_text("1000\n")
    return path


@pytest.fixture(params=["set", "relied on"])
def setting(path: Path, request: pytest.FixtureRequest) -> Iterator[LocalSetting]:
    """It is 1000 when the gateway starts: natgauge has set it, or relies on what it found."""
    made = LocalSetting("table_size", [path], memory=Memory)
    if request.param == "set":
        path.write_text("900")
        made.write(1000)
    else:
        made.rely()
    yield made
    made.release()


def test_nothing_is_found_where_nothing_changed(setting: LocalSetting) -> None:
    assert setting.found_changed() == setting.found_changed() == ""


@pytest.mark.parametrize("value", [300, 4000])
def test_the_reason_has_the_setting_and_both_values_until_it_is_put_back(
    setting: LocalSetting, path: Path, value: int, golden: Golden
) -> None:
    path.write_text(str(value))
    for _ in range(2):
        reason = setting.found_changed()
        golden(reason)
        assert f"and is {value} now" in reason
    path.write_text("1000")
    assert setting.found_changed() == ""


def test_what_another_natgauge_of_this_container_raised_spoils_one_trial(path: Path) -> None:
    setting = LocalSetting("table_size", [path], memory=lambda: Shared("4000"))
    setting.rely()
    path.write_text("4000")
    assert "is 4000 now" in setting.found_changed()
    assert setting.found_changed() == ""
    setting.release()


def test_another_gateway_of_this_process_may_raise_it(setting: LocalSetting, path: Path) -> None:
    second = LocalSetting("table_size", [path], memory=Memory)
    Context().run(second.write, 4000)
    assert setting.found_changed() == second.found_changed() == ""
    second.release()


# A process that makes one lab after the other keeps its locks of the machine's settings between them.


def table(path: Path) -> LocalSetting:
    """As each gateway has one of its own; a lock of one is in the way of all others."""
    return LocalSetting("table_size", [path], memory=Memory)


@pytest.mark.parametrize("value", [2000, 500])
def test_between_two_labs_nobody_else_lowers_what_the_next_one_relies_on(
    path: Path, value: int, golden: Golden
) -> None:
    """Seen: another natgauge took a setting while the labs of a round were made again, and the comparison ended."""
    with reliance_kept():
        first = table(path)
        first.write(value)
        first.release()
        path.write_text("1000")
        other = table(path)
        # Another process has no part in what this one keeps.
        with golden.raises(HostError):
            elsewhere(other, 100)
        second = table(path)
        second.write(value)
        assert second.read() == value
        second.release()
    third = table(path)
    third.write(100)
    third.release()
    assert path.read_text() == "100"


def elsewhere(other: LocalSetting, value: int) -> None:
    """Write in a context of its own, as another process would."""
    Context().run(other.write, value)


def test_several_gateways_rely_on_one_setting_in_round_after_round(path: Path) -> None:
    with reliance_kept(), reliance_kept():
        for _ in range(3):
            gateways = [table(path) for _ in range(3)]
            gateways[0].write(2000)
            for gateway in gateways[1:]:
                gateway.rely()
            for gateway in reversed(gateways):
                gateway.release()
            with pytest.raises(HostError, match="relies on it"):
                elsewhere(table(path), 100)
    lowered = table(path)
    lowered.write(100)
    lowered.release()


def test_without_labs_that_follow_the_lock_ends_with_the_gateway(path: Path) -> None:
    first = table(path)
    first.write(2000)
    first.release()
    second = table(path)
    second.write(100)
    second.release()
