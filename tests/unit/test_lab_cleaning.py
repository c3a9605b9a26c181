# SPDX-License-Identifier: Apache-2.0
"""/run/natgauge is private, and lab clean does what its dry run said, in whatever state a machine is left."""

from __future__ import annotations

import errno
import io
import json
import os
import random
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.conftest import Ran
from tests.unit.golden import Golden
from tests.unit.made_labs import NOBODY, USER, Item, Machine, machine_in

from natgauge.cli import run

NAMES = ("a", "b", "c")
STATES = 60
AS_ROOT = pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")


class Planter:
    """Leaves things behind on a machine, several of which contradict each other."""

    def __init__(self, machine: Machine, chance: random.Random) -> None:
        self._machine, self._chance = machine, chance
        for knob in NAMES:
            (machine.root / knob).write_text("1")

    def plant(self) -> None:
        """Leave some of each kind."""
        plants = [self._lab, self._namespace, self._lock, self._folder, self._partial]
        for _ in range(self._chance.randint(0, 7)):
            self._chance.choice(plants)()
        # Nobody makes a lab while there is a damaged register.
        if self._chance.random() < 0.15:
            (self._machine.folder("labs") / f"{self._chance.choice(NAMES)}.json").write_text("{")

    def _lab(self) -> None:
        name, chance = self._chance.choice(NAMES), self._chance
        if any(path.name.startswith(f"{name}.") for path in self._machine.folder("labs").iterdir()):
            return
        items = [self._change(name) for _ in range(chance.randint(0, 5))]
        let_go = self._machine.use(name, *items, kept=chance.random() < 0.3)
        for item in items:
            if isinstance(item, str):
                self._namespace(item)
            elif isinstance(item, Path):
                if chance.random() < 0.8:
                    item.mkdir(parents=True, exist_ok=True)
            elif chance.random() < 0.3:
                item[0].write_text("7")
        if chance.random() > 0.2:
            let_go()

    def _change(self, name: str) -> Item:
        chance, folder = self._chance, self._machine.labs / name
        outside = chance.choice((self._machine.root, self._machine.labs))
        changes: tuple[Item, ...] = (
            f"ng-{chance.choice(NAMES)}-gateway",
            chance.choice((folder, folder / "gateway", folder / "gateway" / "x")),
            outside,
            (self._machine.root / chance.choice(NAMES), chance.randint(2, 4)),
        )
        return chance.choice(changes)

    def _namespace(self, name: str = "") -> None:
        chance = self._chance
        name = name or f"ng-{chance.choice(NAMES)}-{chance.choice(('gateway', 'tester'))}"
        if chance.random() < 0.7:
            (self._machine.netns / name).touch()
        if chance.random() < 0.6:
            self._machine.mark(name)
        if chance.random() < 0.2:
            self._machine.protected.add(name)

    def _lock(self) -> None:
        path = self._machine.folder(self._chance.choice(("labs", "locks"))) / f"{self._chance.choice(NAMES)}.lock"
        if not path.exists():
            path.write_text("4194304 77")

    def _folder(self) -> None:
        path = self._machine.folder("labs") / self._chance.choice(NAMES)
        if self._chance.random() < 0.3 and not path.exists():
            path.symlink_to(self._machine.root)
        elif not path.is_symlink():
            (path / "gateway").mkdir(parents=True, exist_ok=True)

    def _partial(self) -> None:
        machine, name = self._machine, self._chance.choice(NAMES)
        path = self._chance.choice((
            machine.folder("labs") / f"{name}.json",
            machine.folder("namespaces") / f"ng-{name}-gateway",
            machine.file_of_setting(machine.root / name),
            machine.folder("uses") / "a.uses",
        ))  # fmt: skip
        path.with_name(f"{path.name}.77.new").write_text("{")


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


def _lines(shown: str) -> list[str]:
    return [line for line in shown.splitlines() if line != "nothing to clean"]


def test_in_many_states_cleaning_does_what_the_dry_run_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deleted = failed = 0
    for seed in range(STATES):
        chance = random.Random(seed)  # noqa: S311 - no secret
        with machine_in(tmp_path / str(seed)) as machine:
            Planter(machine, chance).plant()
            words = ["lab", "clean", *(["--strays"] if chance.random() < 0.5 else [])]
            before = machine.everything()
            assert run([*words, "--dry-run"]) == 0, f"state {seed}"
            said = list(map(_as_done, _lines(capsys.readouterr().out)))
            assert machine.everything() == before, f"state {seed}: a dry run changes nothing"
            status = run(words)
            shown = capsys.readouterr()
            done = _lines(shown.out)
            # What stays though it was to go is told by the error alone; of several errors the first is raised.
            untold = [line for line in said if line not in done]
            assert sorted(done) == sorted(line for line in said if line not in untold), f"state {seed}"
            assert bool(untold) == bool(status) == bool(shown.err), f"state {seed}: {untold} {shown.err}"
            assert all(line.startswith("left ") for line in untold), f"state {seed}: {untold}"
            for line in done:
                if line.startswith("deleted "):
                    assert not os.path.lexists(_path_in(line, machine)), f"state {seed}: {line}"
                    deleted += 1
            failed += bool(status)
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
    if path.parent == machine.labs:
        return path.name.partition(".")[0] in taken
    if path.parent == machine.run / "namespaces":
        # A mark goes with its namespace, or with a lab that names it.
        return str(machine.netns / path.name) in named or bool(taken)
    return path.parent == machine.run / "settings"


def test_a_dry_run_lists_locks_and_folders_of_no_lab(machine: Machine, ran: Ran) -> None:
    labs = machine.folder("labs")
    (labs / "a.lock").touch()
    (labs / "b" / "gateway").mkdir(parents=True)
    (machine.folder("locks") / "port-1.lock").touch()
    machine.mark("ng-a-gateway")
    expected = [f"{machine.run}/namespaces/ng-a-gateway", f"{labs}/a.lock", f"directory {labs}/b"]
    expected.append(f"{machine.run}/locks/port-1.lock")
    assert ran(["lab", "clean", "--dry-run"]).out.splitlines() == [f"would delete {what}" for what in expected]
    assert ran(["lab", "clean"]).out.splitlines() == [f"deleted {what}" for what in expected]
    assert ran(["lab", "clean"]).out == "nothing to clean\n"


@pytest.mark.parametrize("why", ["protected", "no capability"])
def test_a_dry_run_says_that_namespaces_stay_that_cleaning_leaves(
    why: str, machine: Machine, ran: Ran, golden: Golden
) -> None:
    machine.leave("a", "ng-a-gateway")
    names = ["ng-a-gateway"] if why == "protected" else ["ng-a-gateway", "ng-b-gateway"]
    for name in names:
        machine.namespace(name)
    if why == "protected":
        machine.protected.add("ng-a-gateway")
    else:
        machine.lacks = ("CAP_NET_ADMIN",)
    shown = ran(["lab", "clean", "--dry-run"]).out
    golden(shown)
    assert "would delete namespace" not in shown
    golden(ran(["lab", "clean"], status=4).err)
    assert sorted(path.name for path in machine.netns.iterdir()) == names


def test_a_register_that_cannot_be_read_is_named_by_both_and_all_else_goes(
    machine: Machine, ran: Ran, golden: Golden
) -> None:
    path = machine.folder("labs") / "a.json"
    path.write_text("{")
    machine.leave("b", kept=True)
    golden(ran(["lab", "clean", "--dry-run"]).out)
    out, err = ran(["lab", "clean"], status=3)
    golden(out)
    assert err.startswith(f"natgauge: {path}: is damaged")
    assert machine.left() == ["a.json"]


def test_of_two_cleanings_at_once_both_end_well(machine: Machine, ran: Ran, golden: Golden) -> None:
    """One of them decides before the other one has begun, and carries that out after its end."""
    machine.leave("a", "ng-a-gateway", kept=True)
    machine.namespace("ng-a-gateway")
    (machine.labs / "b.lock").touch()
    (machine.labs / "c").mkdir()
    machine.mark("ng-b-gateway")
    between: list[str] = []

    def other() -> None:
        between.extend(ran(["lab", "clean"]).out.splitlines())

    machine.meanwhile = other
    golden(ran(["lab", "clean"]).out)
    assert "deleted namespace ng-a-gateway" in between


def test_a_lab_that_is_taken_meanwhile_is_left_and_its_user_named(machine: Machine, ran: Ran, golden: Golden) -> None:
    machine.leave("a", kept=True)
    machine.meanwhile = lambda: machine.lock("a")
    golden(ran(["lab", "clean"]).out)
    assert machine.left() == ["a.json", "a.lock"]


class Full(io.StringIO):
    """An output whose disk is full."""

    def write(self, _text: str) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("command", [["clean"], ["down", "a"]])
def test_an_output_that_cannot_be_written_stops_no_cleaning(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    folder = machine.labs / "a"
    machine.leave("a", folder, kept=True)
    folder.mkdir()
    (machine.labs / "b.lock").touch()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Full())
        assert run(["lab", *command]) == 3
    assert machine.left() == ([] if command == ["clean"] else ["b.lock"])


def modes(folder: Path) -> dict[str, str]:
    """Modes of a folder and all in it that a user other than the owner could use."""
    found = {str(path): oct(stat.S_IMODE(path.lstat().st_mode)) for path in [folder, *folder.rglob("*")]}
    return {path: mode for path, mode in found.items() if int(mode, 8) & 0o077}


@pytest.mark.parametrize("is_older", [False, True])
def test_everything_is_private_and_an_older_folder_is_tightened(machine: Machine, *, is_older: bool) -> None:
    for folder in (machine.run, machine.labs) if is_older else ():
        folder.mkdir()
        folder.chmod(0o777)
    machine.use("x", machine.labs / "x")
    machine.lock("port-1-eth0", "port eth0")
    assert machine.left() == ["port-1-eth0.lock", "x.json", "x.lock"]
    assert modes(machine.run) == {}


def test_a_link_in_place_of_a_folder_is_refused(machine: Machine, tmp_path: Path, ran: Ran, golden: Golden) -> None:
    (tmp_path / "theirs").mkdir(mode=0o755)
    machine.run.symlink_to(tmp_path / "theirs")
    golden(ran(["lab", "up", "x"], status=3).err)
    assert modes(tmp_path / "theirs") == {str(tmp_path / "theirs"): "0o755"}


@pytest.mark.parametrize("below", ["", "labs", "locks", "namespaces", "settings", "uses"])
@pytest.mark.parametrize("make", [Path.touch, os.mkfifo, lambda path: path.symlink_to("nowhere")])
def test_what_is_in_the_place_of_a_folder_is_named_by_every_command(
    machine: Machine, below: str, make: Callable[[Path], None], ran: Ran, golden: Golden
) -> None:
    place = machine.run / below
    place.parent.mkdir(mode=0o700, exist_ok=True)
    make(place)
    for arguments in (["status"], ["down", "x"], ["clean"], ["clean", "--dry-run"], ["up", "x"]):
        golden(ran(["lab", *arguments], status=3).err)
    if below in ("", "labs") and place.exists():
        golden(ran(["measure", "throughput", "--gateway", "linux-ipv4", "--lab-name", "x"], status=3).err)


def test_a_file_system_that_cannot_be_written_is_said_to_be_that(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, ran: Ran, golden: Golden
) -> None:
    def refuse(path: Path, *_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(Path, "mkdir", refuse)
    golden(ran(["lab", "up", "x"], status=3).err)
    assert not machine.run.exists()


def test_what_is_in_the_place_of_a_file_is_named(machine: Machine, ran: Ran, golden: Golden) -> None:
    machine.leave("x")
    (machine.labs / "y.lock").symlink_to("nowhere")
    golden(ran(["lab", "up", "y"], status=3).err)
    (machine.labs / "y.lock").unlink()
    (machine.labs / "y.json").mkdir()
    out, err = ran(["lab", "clean"], status=3)
    golden(err)
    assert "y.json" not in out
    assert (machine.labs / "y.json").is_dir()


@AS_ROOT
def test_a_folder_of_another_user_is_refused(machine: Machine, ran: Ran, golden: Golden) -> None:
    machine.run.mkdir()
    os.chown(machine.run, NOBODY, NOBODY)
    golden(ran(["lab", "up", "x"], status=3).err)


@pytest.mark.parametrize(
    "name", ["host", "kvm", "guest-image", "labs", "locks", "namespaces", "settings", "uses", "guests", "core", "x"]
)
def test_every_name_of_a_lab_is_harmless(name: str, machine: Machine, ran: Ran) -> None:
    machine.lock("guest-image", "building a guest")
    found = machine.run / "host" / "found.json"
    found.parent.mkdir(mode=0o700)
    found.write_text("what `natgauge host` found")
    others = machine.everything()
    folder = machine.labs / name
    machine.leave(name, folder)
    folder.mkdir()
    assert ran(["lab", "down", name]).out == f"deleted directory {folder}\n"
    left = machine.everything()
    assert {path: left.get(path) for path in others} == others
    assert left.keys() - others.keys() == {str(machine.labs)}


def test_looking_at_labs_makes_and_changes_nothing(machine: Machine, ran: Ran) -> None:
    assert ran(["lab", "status"]).out == "no labs\n"
    assert not machine.run.exists()
    machine.leave("x", kept=True)
    (machine.labs / "x.lock").write_text("1 1")

    def state() -> dict[str, tuple[int, int, int]]:
        """What a change of a file changes: reading it may change the time of its last access."""
        stats = {str(path): path.lstat() for path in machine.run.rglob("*")}
        return {path: (found.st_ino, found.st_mode, found.st_ctime_ns) for path, found in stats.items()}

    before = state()
    assert len(before) > 2
    (lab,) = json.loads(ran(["lab", "status", "--json"]).out)["labs"]
    assert (lab["state"], lab["user"]) == ("kept", USER)
    assert state() == before


@AS_ROOT
def test_another_user_is_told_that_labs_are_private(golden: Golden) -> None:
    with tempfile.TemporaryDirectory() as folder, machine_in(Path(folder)) as machine:
        # Like /run, which every user can enter.
        Path(folder).chmod(0o755)
        machine.leave("x")
        lines = machine.as_nobody("lab status", "lab clean", "lab down x")
        assert lines[1::2] == ["status 0", "status 3", "status 3"]
        for line in lines[::2]:
            golden(line)
        (machine.labs / "x.lock").touch(0o666)
        with pytest.raises(PermissionError):
            opened_by_nobody(machine.labs / "x.lock")


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


def test_the_folder_of_a_lab_whose_damaged_register_was_deleted_goes(machine: Machine, ran: Ran) -> None:
    let_go = machine.use("x")
    folder = machine.labs / "x"
    folder.mkdir()
    (folder / "file").touch()
    assert ran(["lab", "clean"]).out == "nothing to clean\n", "it is in use"
    let_go()
    assert ran(["lab", "clean"]).out == f"deleted directory {folder}\n"
    assert ran(["lab", "clean"]).out == "nothing to clean\n"


def test_labs_are_hidden_by_an_error_of_their_own(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, ran: Ran, golden: Golden
) -> None:
    machine.leave("x", kept=True)
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    golden(ran(["lab", "status"]).out)
    found = json.loads(ran(["lab", "status", "--json"]).out)
    golden(found["hidden"])
    assert found["labs"] == []
