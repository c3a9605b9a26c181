# SPDX-License-Identifier: Apache-2.0
"""/run/natgauge: no other user can enter it, and whatever name a lab has, its files meet no others."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.golden import Golden

from natgauge.cleaning import cleanup
from natgauge.cli import run
from natgauge.errors import HostError
from natgauge.host.private_folder import HiddenLabsError, unwritable
from natgauge.host.tuning.tuner import Changed, read, state
from natgauge.labs.common import locks, namespaces, processes
from natgauge.labs.common.locks import Lock
from natgauge.labs.common.register import Register, kept_settings

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
sys.exit(run(sys.argv[2:]))
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


def test_everything_is_private(run_folder: Path) -> None:
    register = Register.begin("x", "netns", {})
    register.record("directory", path=str(register.directory))
    lock = Lock("port-1-eth0", "port eth0")
    lock.take()
    assert modes(run_folder) == {}
    lock.release()
    register.release()


def test_an_older_folder_is_tightened(run_folder: Path) -> None:
    for folder in (run_folder, run_folder / "labs"):
        folder.mkdir()
        folder.chmod(0o777)
    Register.begin("x", "netns", {}).release()
    assert modes(run_folder) == {}


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
        for arguments, status in ((["lab", "status"], 0), (["lab", "clean"], 3), (["lab", "down", "x"], 3)):
            done = as_nobody(run_folder, arguments)
            assert (done.returncode, (done.stdout + done.stderr).count("\n")) == (status, 1)
            golden(done.stdout + done.stderr)
        (run_folder / "labs" / "x.lock").touch(0o666)
        with pytest.raises(PermissionError):
            opened_by_nobody(run_folder / "labs" / "x.lock")


def as_nobody(run_folder: Path, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", READER, str(run_folder), *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True)


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
    ("program", "command", "holds", "orphan"),
    [
        ("python3.11", b"/usr/bin/python3.11\0/usr/local/bin/natgauge\0measure", False, False),
        ("python3.11", b"python\0bench.py", True, False),
        ("python3.11", b"python\0supervisord", False, True),
        ("tini", b"tini\0--\0natgauge", False, True),
    ],
)
def test_the_first_process_of_a_container_may_be_natgauge(
    monkeypatch: pytest.MonkeyPatch, *, program: str, command: bytes, holds: bool, orphan: bool
) -> None:
    real = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda self: command if str(self) == "/proc/1/cmdline" else real(self))
    monkeypatch.setattr(cleanup, "_program_of", lambda pid: program if pid == 1 else "natgauge-engine")
    monkeypatch.setattr(processes, "parent_of", lambda _pid: 1)
    monkeypatch.setattr(locks, "holders", lambda: frozenset({1} if holds else ()))
    assert cleanup._is_orphan(4711) is orphan


def test_a_process_whose_parent_is_outside_of_the_container_is_no_orphan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleanup, "_program_of", lambda _pid: "natgauge-engine")
    monkeypatch.setattr(processes, "parent_of", lambda _pid: 0)
    assert not cleanup._is_orphan(4711)


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


def test_a_dry_run_says_what_would_go_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run_folder: Path, golden: Golden
) -> None:
    monkeypatch.setattr(namespaces, "all_processes", tuple)
    monkeypatch.setattr(namespaces, "names", tuple)
    register = Register.begin("x", "netns", {})
    register.record("directory", path=str(register.directory))
    register.directory.mkdir()
    register.keep()
    register.release()
    before = sorted(run_folder.rglob("*"))
    assert run(["lab", "clean", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    golden(shown)
    assert f"would delete directory {register.directory}\n" in shown
    assert sorted(run_folder.rglob("*")) == before


def test_labs_are_hidden_by_an_error_of_their_own(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    Register.begin("x", "netns", {}).release()
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    with golden.raises(HiddenLabsError):
        cleanup.status()
