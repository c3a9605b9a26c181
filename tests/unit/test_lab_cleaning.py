# SPDX-License-Identifier: Apache-2.0
"""/run/natgauge is private, and lab clean does what its dry run said, in whatever state a machine is left."""

from __future__ import annotations

import errno
import json
import os
import random
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.unit.golden import Golden

from natgauge.cleaning import cleanup
from natgauge.cli import lab, run
from natgauge.errors import HostError
from natgauge.host import capabilities
from natgauge.host.private_folder import HiddenLabsError, unwritable
from natgauge.host.tuning.tuner import Changed, read, state
from natgauge.labs.common import locks, machine_globals, marks, namespaces, processes
from natgauge.labs.common import register as registers
from natgauge.labs.common.locks import Lock
from natgauge.labs.common.register import Register, kept_settings

NAMES = ("a", "b", "c")
STATES = 60


class Machine:
    """A machine on which natgauge left things; ordinary files stand for namespaces.

    Attributes:
        run: /run/natgauge.
        netns: /run/netns.
        root: folder of the settings.
        protected: namespaces that must not be deleted.
    """

    def __init__(self, folder: Path) -> None:
        self.run, self.netns, self.root = folder / "run", folder / "netns", folder / "root"
        self.protected: set[str] = set()
        self._held: list[Lock] = []
        for made in (self.netns, self.root):
            made.mkdir()
        for knob in NAMES:
            (self.root / knob).write_text("1")

    def plant(self, chance: random.Random) -> None:
        """Leave things behind, several of which contradict each other."""
        plants: list[Callable[[random.Random], None]] = [
            self._lab,
            self._namespace,
            self._lock,
            self._folder,
            self._partial,
        ]
        for _ in range(chance.randint(0, 7)):
            chance.choice(plants)(chance)
        # Nobody makes a lab while there is a damaged register.
        self._damaged(chance)

    def release(self) -> None:
        """Let all labs in use go."""
        for lock in self._held:
            lock.release()

    def everything(self) -> dict[str, str]:
        """Every file with its content, and every folder."""
        found = [path for top in (self.run, self.netns, self.root) for path in top.rglob("*")]
        return {str(path): path.read_text() if path.is_file() else "" for path in found}

    def _lab(self, chance: random.Random) -> None:
        name = chance.choice(NAMES)
        if any(path.name.startswith(f"{name}.") for path in locks.made_folder("labs").iterdir()):
            return
        register = Register.begin(name, "netns", {})
        for _ in range(chance.randint(0, 5)):
            self._change(register, chance)
        if chance.random() < 0.3:
            register.keep()
        if chance.random() < 0.2:
            self._held.append(register._lock)
        else:
            register.release()

    def _change(self, register: Register, chance: random.Random) -> None:
        match chance.choice(("namespace", "directory", "outside", "global")):
            case "namespace":
                name = f"ng-{chance.choice(NAMES)}-gateway"
                register.record("namespace", name=name)
                self._namespace(chance, name)
            case "directory":
                path = chance.choice(
                    (register.directory, register.directory / "gateway", register.directory / "gateway" / "x")
                )
                register.record("directory", path=str(path))
                if chance.random() < 0.8:
                    path.mkdir(parents=True, exist_ok=True)
            case "outside":
                register.record("directory", path=str(chance.choice((self.root, self.run / "labs"))))
            case "global":
                knob = self.root / chance.choice(NAMES)
                register.set_global(knob, chance.randint(2, 4))
                if chance.random() < 0.3:
                    knob.write_text("7")

    def _namespace(self, chance: random.Random, name: str = "") -> None:
        name = name or f"ng-{chance.choice(NAMES)}-{chance.choice(('gateway', 'tester'))}"
        if chance.random() < 0.7:
            (self.netns / name).touch()
        if chance.random() < 0.6:
            marks.write(name, marks.cookie())
        if chance.random() < 0.2:
            self.protected.add(name)

    def _lock(self, chance: random.Random) -> None:
        path = Lock(chance.choice(NAMES), chance.choice((None, "a port"))).path
        locks.made_folder("locks" if path.parent.name == "locks" else "labs")
        if not path.exists():
            path.write_text("4194304 77")

    def _folder(self, chance: random.Random) -> None:
        path = locks.made_folder("labs") / chance.choice(NAMES)
        if chance.random() < 0.3 and not path.exists():
            path.symlink_to(self.root)
        elif not path.is_symlink():
            (path / "gateway").mkdir(parents=True, exist_ok=True)

    def _partial(self, chance: random.Random) -> None:
        match chance.choice(("labs", "namespaces", "settings", "uses")):
            case "labs":
                path = locks.made_folder("labs") / f"{chance.choice(NAMES)}.json"
            case "namespaces":
                path = locks.made_folder("namespaces") / f"ng-{chance.choice(NAMES)}-gateway"
            case "settings":
                locks.made_folder("settings")
                path = machine_globals.file_of(str(self.root / chance.choice(NAMES)))
            case _:
                path = locks.made_folder("uses") / "a.uses"
        path.with_name(f"{path.name}.77.new").write_text("{")

    def _damaged(self, chance: random.Random) -> None:
        if chance.random() < 0.15:
            (locks.made_folder("labs") / f"{chance.choice(NAMES)}.json").write_text("{")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """An empty one."""
    yield from _of(tmp_path, monkeypatch)


def _of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    folder.mkdir(exist_ok=True)
    made = Machine(folder)

    def refusal(name: str, *, unmarked: bool = False) -> str:
        if name in made.protected:
            return "it is the network of this machine"
        return "" if unmarked or namespaces.is_marked(name) else "natgauge did not make it"

    monkeypatch.setattr(capabilities, "missing", lambda *_: ())
    monkeypatch.setattr(locks, "RUN", made.run)
    monkeypatch.setattr(registers, "GLOBAL_ROOTS", (f"{made.root}/",))
    monkeypatch.setattr(namespaces, "_RUN", made.netns)
    monkeypatch.setattr(namespaces, "all_processes", tuple)
    monkeypatch.setattr(namespaces, "refusal", refusal)
    monkeypatch.setattr(processes, "name_of", lambda _pid: "sleep")
    yield made
    made.release()


def _cleaned(*, strays: bool) -> list[str]:
    """The lines of cleaning; an error is the last one."""
    lines: list[str] = []
    decisions = cleanup.decide(strays=strays)
    try:
        cleanup.carry_out(decisions, lines.append)
    except Exception as error:  # noqa: BLE001 - compared below
        lines.append(str(error))
    return lines


def _as_done(line: str) -> str:
    """A line of a dry run, as cleaning has it."""
    for would_do, did in (
        ("delete", "deleted"),
        ("restore", "restored"),
        ("take down", "took down"),
        ("leave", "left"),
    ):
        if line.startswith(f"would {would_do} "):
            return line.replace(f"would {would_do}", did, 1)
    raise AssertionError(line)


def test_in_many_states_cleaning_does_what_the_dry_run_said(tmp_path: Path) -> None:
    deleted = failed = 0
    for seed in range(STATES):
        chance = random.Random(seed)  # noqa: S311 - no secret
        with pytest.MonkeyPatch.context() as patch:
            for machine in _of(tmp_path / str(seed), patch):
                machine.plant(chance)
                strays = chance.random() < 0.5
                before = machine.everything()
                said = [_as_done(line) for line in cleanup.would(cleanup.decide(strays=strays))]
                assert machine.everything() == before, f"state {seed}: a dry run changes nothing"
                done = _cleaned(strays=strays)
                # What stays though it was to go is told by the error alone; of several errors the first is raised.
                error = (
                    done.pop() if done and not done[-1].startswith(("deleted ", "restored ", "took ", "left ")) else ""
                )
                untold = [line for line in said if line not in done]
                assert sorted(done) == sorted(line for line in said if line not in untold), f"state {seed}"
                assert bool(untold) == bool(error), f"state {seed}: {untold} {error}"
                assert all(line.startswith("left ") for line in untold), f"state {seed}: {untold}"
                for line in done:
                    if line.startswith("deleted "):
                        assert not os.path.lexists(_path_in(line, machine)), f"state {seed}: {line}"
                        deleted += 1
                failed += bool(error)
                gone = before.keys() - machine.everything().keys()
                named = {str(_path_in(line, machine)) for line in done if line.startswith("deleted ")}
                taken = {line.split()[3].rstrip(",") for line in done if line.startswith("took down lab ")}
                for path in gone:
                    assert _is_named(Path(path), named, taken, machine), f"state {seed}: {path} went unsaid: {said}"
    assert deleted > STATES
    assert failed > STATES // 10


def _path_in(line: str, machine: Machine) -> Path:
    *_, last = line.split()
    return machine.netns / last if "namespace ng-" in line else Path(last)


def _is_named(path: Path, named: set[str], taken: set[str], machine: Machine) -> bool:
    """Whether a line names what went: itself, a folder that it was in, or its lab or namespace."""
    if any(str(each) in named for each in (path, *path.parents)):
        return True
    if path.parent == machine.run / "labs":
        return path.name.partition(".")[0] in taken
    if path.parent == machine.run / "namespaces":
        # A mark goes with its namespace, or with a lab that names it.
        return str(machine.netns / path.name) in named or bool(taken)
    return path.parent == machine.run / "settings"


def test_a_dry_run_lists_locks_and_folders_of_no_lab(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    labs = locks.made_folder("labs")
    (labs / "a.lock").touch()
    (labs / "b" / "gateway").mkdir(parents=True)
    (locks.made_folder("locks") / "port-1.lock").touch()
    marks.write("ng-a-gateway", marks.cookie())
    expected = [f"{machine.run}/namespaces/ng-a-gateway", f"{labs}/a.lock", f"directory {labs}/b"]
    expected.append(f"{machine.run}/locks/port-1.lock")
    assert run(["lab", "clean", "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines() == [f"would delete {what}" for what in expected]
    assert run(["lab", "clean"]) == 0
    assert capsys.readouterr().out.splitlines() == [f"deleted {what}" for what in expected]
    assert run(["lab", "clean"]) == 0
    assert capsys.readouterr().out == "nothing to clean\n"


@pytest.mark.parametrize("why", ["protected", "no capability"])
def test_a_dry_run_says_that_namespaces_stay_that_cleaning_leaves(
    why: str, machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    register = Register.begin("a", "netns", {})
    register.record("namespace", name="ng-a-gateway")
    register.release()
    names = ["ng-a-gateway"] if why == "protected" else ["ng-a-gateway", "ng-b-gateway"]
    for name in names:
        marks.write(name, marks.cookie())
        (machine.netns / name).touch()
    if why == "protected":
        machine.protected.add("ng-a-gateway")
    else:
        monkeypatch.setattr(capabilities, "missing", lambda *_: ("CAP_NET_ADMIN",))
    assert run(["lab", "clean", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    golden(shown)
    assert "would delete namespace" not in shown
    assert run(["lab", "clean"]) == 4
    golden(capsys.readouterr().err)
    assert sorted(path.name for path in machine.netns.iterdir()) == names


def test_a_register_that_cannot_be_read_is_named_by_both_and_all_else_goes(
    machine: Machine, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    path = locks.made_folder("labs") / "a.json"
    path.write_text("{")
    Register.begin("b", "netns", {}).keep()
    lock = Lock("b")
    lock.path.unlink()
    assert json.loads((path.parent / "b.json").read_text())["kept"]
    assert run(["lab", "clean", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    golden(shown)
    assert run(["lab", "clean"]) == 3
    out, err = capsys.readouterr()
    golden(out)
    assert err.startswith(f"natgauge: {path}: is damaged")
    assert sorted(each.name for each in machine.run.glob("labs/*")) == ["a.json"]


def test_of_two_cleanings_at_once_both_end_well(machine: Machine, golden: Golden) -> None:
    """The second one decides before the first one has ended, and carries that out afterwards."""
    register = Register.begin("a", "netns", {})
    register.record("namespace", name="ng-a-gateway")
    marks.write("ng-a-gateway", marks.cookie())
    (machine.netns / "ng-a-gateway").touch()
    register.keep()
    register.release()
    (locks.folder("labs") / "b.lock").touch()
    (locks.folder("labs") / "c").mkdir()
    marks.write("ng-b-gateway", marks.cookie())
    first, second = cleanup.decide(), cleanup.decide()
    lines: list[str] = []
    cleanup.carry_out(first, lines.append)
    assert "deleted namespace ng-a-gateway" in lines
    again: list[str] = []
    cleanup.carry_out(second, again.append)
    golden(again)


def test_a_lab_that_is_taken_meanwhile_is_left_and_its_user_named(machine: Machine, golden: Golden) -> None:
    del machine
    Register.begin("a", "netns", {}).release()
    (locks.folder("labs") / "a.json").write_text(
        '{"version": 1, "name": "a", "kind": "netns", "kept": true, "settings": {}, "items": []}'
    )
    decisions = cleanup.decide()
    lock = Lock("a")
    lock.take()
    lines: list[str] = []
    cleanup.carry_out(decisions, lines.append)
    golden(lines)
    lock.release()


@pytest.mark.parametrize("command", [["clean"], ["down", "a"]])
def test_an_output_that_cannot_be_written_stops_no_cleaning(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    def full(_line: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    register = Register.begin("a", "netns", {})
    register.record("directory", path=str(register.directory))
    register.directory.mkdir()
    register.keep()
    register.release()
    (machine.run / "labs" / "b.lock").touch()
    monkeypatch.setattr(lab, "say", full)
    assert run(["lab", *command]) == 3
    assert sorted(path.name for path in machine.run.glob("labs/*")) == ([] if command == ["clean"] else ["b.lock"])


NOBODY = 65534
AS_ROOT = pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")

#: Reads what another user has, as nobody.
READER = """
import os, sys
from pathlib import Path
import natgauge.cli.lab
from natgauge.cli import SUBCOMMANDS, app, run
from natgauge.cleaning import cleanup
from natgauge.labs.common import locks
# Before it is another user: that one may not be able to read the package. The help lists all commands.
for name in SUBCOMMANDS:
    app.get_command(None, name)
locks.RUN = Path(sys.argv[1])
os.setgroups([]); os.setgid(65534); os.setuid(65534)
for words in sys.argv[2:]:
    print("status", run(words.split()), flush=True)
"""


@pytest.fixture(autouse=True)
def run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands for /run/natgauge."""
    monkeypatch.setattr(locks, "RUN", tmp_path / "run")
    return tmp_path / "run"


def modes(folder: Path) -> dict[str, str]:
    """Modes of a folder and all in it that a user other than the owner could use."""
    found = {str(path): oct(stat.S_IMODE(path.lstat().st_mode)) for path in [folder, *folder.rglob("*")]}
    return {path: mode for path, mode in found.items() if int(mode, 8) & 0o077}


@pytest.mark.parametrize("is_older", [False, True])
def test_everything_is_private_and_an_older_folder_is_tightened(run_folder: Path, *, is_older: bool) -> None:
    for folder in (run_folder, run_folder / "labs") if is_older else ():
        folder.mkdir()
        folder.chmod(0o777)
    register = Register.begin("x", "netns", {})
    register.record("directory", path=str(register.directory))
    lock = Lock("port-1-eth0", "port eth0")
    lock.take()
    assert modes(run_folder) == {}
    lock.release()
    register.release()


def test_a_link_in_place_of_a_folder_is_refused(run_folder: Path, tmp_path: Path, golden: Golden) -> None:
    (tmp_path / "theirs").mkdir(mode=0o755)
    run_folder.symlink_to(tmp_path / "theirs")
    with golden.raises(HostError):
        Register.begin("x", "netns", {})
    assert modes(tmp_path / "theirs") == {str(tmp_path / "theirs"): "0o755"}


@pytest.mark.parametrize("below", ["", "labs", "locks", "namespaces", "settings", "uses"])
@pytest.mark.parametrize("make", [Path.touch, os.mkfifo, lambda path: path.symlink_to("nowhere")])
def test_what_is_in_the_place_of_a_folder_is_named_by_every_command(
    run_folder: Path, below: str, make: Callable[[Path], None], capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    place = run_folder / below
    place.parent.mkdir(mode=0o700, exist_ok=True)
    make(place)
    for arguments in (["status"], ["down", "x"], ["clean"], ["clean", "--dry-run"]):
        assert run(["lab", *arguments]) == 3
        golden(capsys.readouterr().err)
    with golden.raises(HostError) as refused:
        Register.begin("x", "netns", {})
    assert refused.value.mend == f"rm {place}"
    if below in ("", "labs") and place.exists():
        with golden.raises(HostError):
            kept_settings("x", "netns")


def test_a_file_system_that_cannot_be_written_is_said_to_be_that(tmp_path: Path, golden: Golden) -> None:
    refused = unwritable(tmp_path, OSError(errno.EROFS, os.strerror(errno.EROFS)))
    golden(str(refused))


def test_what_is_in_the_place_of_a_file_is_named(
    run_folder: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    Register.begin("x", "netns", {}).release()
    (run_folder / "labs" / "y.lock").symlink_to("nowhere")
    with golden.raises(HostError):
        Register.begin("y", "netns", {})
    (run_folder / "labs" / "y.lock").unlink()
    (run_folder / "labs" / "y.json").mkdir()
    assert run(["lab", "clean"]) == 3
    out, err = capsys.readouterr()
    golden(err)
    assert "y.json" not in out
    assert (run_folder / "labs" / "y.json").is_dir()


@AS_ROOT
def test_a_folder_of_another_user_is_refused(run_folder: Path, golden: Golden) -> None:
    run_folder.mkdir()
    os.chown(run_folder, NOBODY, NOBODY)
    with golden.raises(HostError):
        Register.begin("x", "netns", {})


@pytest.mark.parametrize(
    "name", ["host", "kvm", "guest-image", "labs", "locks", "namespaces", "settings", "uses", "guests", "core", "x"]
)
def test_every_name_of_a_lab_is_harmless(name: str, run_folder: Path) -> None:
    found = run_folder / "host" / "found.json"
    tuned = Changed("thp", "enabled", "always", "never")
    with state(found) as kept:
        kept.take(tuned)
    building = Lock("guest-image", "building a guest")
    building.take()
    register = Register.begin(name, "netns", {})
    register.record("directory", path=str(register.directory))
    register.directory.mkdir()
    register.release()
    assert cleanup.take_down(name) == [f"deleted directory {register.directory}"]
    assert read(found) == (tuned,)
    assert building.is_held()
    building.release()


def test_looking_at_labs_makes_and_changes_nothing(run_folder: Path) -> None:
    assert cleanup.status() == []
    assert not run_folder.exists()
    register = Register.begin("x", "netns", {})
    register.keep()
    register.release()
    (locks.folder("labs") / "x.lock").write_text("1 1")

    def state() -> dict[str, tuple[int, int, int]]:
        """What a change of a file changes: reading it may change the time of its last access."""
        stats = {str(path): path.lstat() for path in run_folder.rglob("*")}
        return {path: (found.st_ino, found.st_mode, found.st_ctime_ns) for path, found in stats.items()}

    before = state()
    (lab,) = cleanup.status()
    assert (lab.state, bool(lab.user)) == ("kept", True)
    assert state() == before


@AS_ROOT
def test_another_user_is_told_that_labs_are_private(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    with tempfile.TemporaryDirectory() as folder:
        # Like /run, which every user can enter.
        Path(folder).chmod(0o755)
        run_folder = Path(folder) / "run"
        monkeypatch.setattr(locks, "RUN", run_folder)
        Register.begin("x", "netns", {}).release()
        command = [sys.executable, "-c", READER, str(run_folder), "lab status", "lab clean", "lab down x"]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        lines = done.stdout.splitlines()
        assert lines[1::2] == ["status 0", "status 3", "status 3"]
        for line in lines[::2]:
            golden(line)
        (run_folder / "labs" / "x.lock").touch(0o666)
        with pytest.raises(PermissionError):
            opened_by_nobody(run_folder / "labs" / "x.lock")


def opened_by_nobody(path: Path) -> None:
    """Open a file as another user; flock(2) needs no more than that."""
    reader, writer = os.pipe()
    if not (pid := os.fork()):
        os.setuid(NOBODY)
        try:
            os.open(path, os.O_RDONLY)
        except OSError as error:
            os.write(writer, bytes([error.errno or 0]))
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(writer)
    with os.fdopen(reader, "rb") as told:
        if code := told.read():
            raise OSError(code[0], os.strerror(code[0]))


def test_a_holder_that_is_dead_is_not_named_as_if_it_lived(golden: Golden) -> None:
    lock = Lock("x")
    lock.take()
    lock.path.write_text("4194304 77")
    assert lock.holder() is None
    other = Lock("x")
    with golden.raises(HostError):
        other.take()
    lock.path.write_text(f"{os.getpid()} 77")
    assert lock.holder() is None, "the process that has this number now began later"
    lock.release()


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
    monkeypatch.setattr(cleanup, "_program_of", lambda pid: seen.get(pid, "natgauge-engine"))
    monkeypatch.setattr(processes, "parent_of", lambda _pid: parent)
    monkeypatch.setattr(locks, "holders", lambda: frozenset({1} if holds else ()))
    assert cleanup._is_orphan(4711) is orphan


def test_the_folder_of_a_lab_whose_damaged_register_was_deleted_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespaces, "all_processes", tuple)
    monkeypatch.setattr(namespaces, "names", tuple)
    register = Register.begin("x", "netns", {})
    register.directory.mkdir()
    (register.directory / "file").touch()
    assert cleanup.clean() == [], "it is in use"
    register.release()
    assert cleanup.clean() == [f"deleted directory {register.directory}"]
    assert cleanup.clean() == []


def test_labs_are_hidden_by_an_error_of_their_own(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    Register.begin("x", "netns", {}).release()
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    with golden.raises(HiddenLabsError):
        cleanup.status()
