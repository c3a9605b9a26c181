# SPDX-License-Identifier: Apache-2.0
"""Programs that tests may call: those of the listed packages, of their dependencies, and of the smallest Debian."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.absent import absent
from tools import listed_programs
from tools.listed_programs import CannotHideError, Layer, Owned

ROOT = Path(__file__).parents[2]

PACKAGES = "\n".join(
    "\t".join(fields)
    for fields in [
        # status, name, name with architecture, essential, priority, provides, pre-depends, depends
        ("installed", "bash", "bash", "yes", "required", "", "libc6 (>= 2.36)", "base-files"),
        ("installed", "libc6", "libc6:amd64", "no", "optional", "", "", "libgcc-s1"),
        ("installed", "libc6", "libc6:i386", "no", "optional", "", "", "libgcc-s1"),
        ("installed", "base-files", "base-files", "no", "required", "", "", ""),
        ("installed", "apt", "apt", "no", "important", "", "", ""),
        ("installed", "tayga", "tayga", "no", "optional", "", "", "iproute2 (>= 5), debconf | cdebconf, python3:any"),
        ("installed", "iproute2", "iproute2", "no", "important", "", "", "awk"),
        ("installed", "cdebconf", "cdebconf", "no", "optional", "debconf-2.0 (= 1)", "", ""),
        ("installed", "mawk", "mawk", "no", "optional", "awk", "", ""),
        ("installed", "python3", "python3", "no", "optional", "", "", "shellcheck-of-the-far-side"),
        ("not-installed", "debconf", "debconf", "no", "optional", "", "", ""),
        ("installed", "cowsay", "cowsay", "no", "optional", "", "", "perl:any"),
        ("installed", "perl", "perl", "no", "optional", "", "", ""),
    ]
)
ALTERNATIVES = """Name: awk
Link: {bin}/awk
Slaves:
 awk.1.gz /usr/share/man/man1/awk.1.gz
 nawk {bin}/nawk
Status: auto
Best: {bin}/gawk
Value: {bin}/gawk

Alternative: {bin}/mawk
Priority: 5
Slaves:
 awk.1.gz /usr/share/man/man1/mawk.1.gz
 nawk {bin}/mawk

Alternative: {bin}/gawk
Priority: 10
Slaves:
 nawk {bin}/gawk

Alternative: {bin}/busybox
Priority: 1
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = Path(tmp_path.resolve() / "bin")
    path.mkdir()
    for name in ("ls", "mawk", "gawk", "cowsay", "python3.11", "pg_config", "pg_config.moved"):
        (path / name).touch(mode=0o755)
    return path


def test_only_what_is_wanted_or_in_every_system_counts_with_its_dependencies() -> None:
    packages = listed_programs.parse_packages(PACKAGES)
    found = listed_programs.with_dependencies({"tayga", "not-there"}, packages)
    # Of debconf | cdebconf the second is installed; awk is a name that mawk provides.
    assert found == {"bash", "libc6", "base-files", "apt", "tayga", "iproute2", "cdebconf", "mawk", "python3"}
    assert packages["libc6"].names == {"libc6:amd64", "libc6:i386"}


def test_a_package_counts_for_its_purpose_only() -> None:
    text = "# words\nrun tayga # why\ntest shellcheck\ncheck shellcheck\nbench dpdk-dev\n"
    assert listed_programs.wanted_packages(text, ["run", "test"]) == {"tayga", "shellcheck"}
    with pytest.raises(ValueError, match="purpose brun"):
        listed_programs.wanted_packages(text, ["brun"])


def test_the_purposes_whose_programs_tests_see_are_those_that_their_targets_install() -> None:
    text = (ROOT / "Makefile").read_text()
    seen = re.search(r"^LISTED := .*tools\.listed_programs (.+) --$", text, re.MULTILINE)
    assert seen is not None
    assert re.search(r"^\$\(STAMPS\)/packages: .*\n\ttools/install-packages build run$", text, re.MULTILINE)
    assert seen[1].split() == ["build", "run", "test"]
    targets = re.findall(r"^\S+: (.*)\n\t\$\(LISTED\)", text, re.MULTILINE)
    assert len(targets) == 3
    assert all("setup $(STAMPS)/test-packages" in prerequisites for prerequisites in targets)


def test_a_diversion_moves_the_file_unless_a_listed_package_made_it(folder: Path) -> None:
    text = f"""/.
{folder}/ls

{folder}/pg_config
diverted by postgresql-common to: {folder}/pg_config.moved
{folder}/perf
diverted by linux-perf to: {folder}/perf.wrapper
"""
    owned = listed_programs.parse_files(text, {"linux-perf"})
    assert owned.moved == {f"{folder}/pg_config": f"{folder}/pg_config.moved"}
    assert {f"{folder}/ls", f"{folder}/pg_config.moved", f"{folder}/perf.wrapper"} <= owned.paths
    layer = listed_programs.layer(folder, owned, (), {})
    assert layer.replaced == {"pg_config": f"{folder}/pg_config.moved"}
    assert layer.hidden == ("cowsay", "gawk", "mawk", "python3.11")


def test_a_program_of_no_listed_package_is_hidden_unless_it_is_kept(folder: Path) -> None:
    # A link by which an administrator gives a listed program another name is no part of a new machine.
    (folder / "list").symlink_to(folder / "ls")
    owned = Owned(frozenset({f"{folder}/{name}" for name in ("ls", "mawk", "gawk", "pg_config", "pg_config.moved")}))
    layer = listed_programs.layer(folder, owned, {f"{folder}/python3.11"}, {})
    assert layer.hidden == ("cowsay", "list")
    assert layer.replaced == {}


def test_an_alternative_leads_to_the_best_file_of_a_listed_package(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alternatives = tmp_path.resolve() / "alternatives"
    alternatives.mkdir()
    monkeypatch.setattr(listed_programs, "_ALTERNATIVES", str(alternatives))
    for name, target in {"awk": "gawk", "nawk": "gawk", "editor": "cowsay", "list": "ls"}.items():
        (alternatives / name).symlink_to(folder / target)
        (folder / name).symlink_to(alternatives / name)
    choices = listed_programs.parse_choices(ALTERNATIVES.format(bin=folder))
    assert choices[f"{folder}/awk"] == [f"{folder}/gawk", f"{folder}/mawk", f"{folder}/busybox"]
    assert choices[f"{folder}/nawk"] == [f"{folder}/gawk", f"{folder}/mawk"]
    owned = Owned(frozenset({f"{folder}/ls", f"{folder}/mawk"}))
    layer = listed_programs.layer(folder, owned, (), choices)
    assert layer.replaced == {"awk": f"{folder}/mawk", "nawk": f"{folder}/mawk"}
    assert {"editor", "gawk", "cowsay"} <= set(layer.hidden)
    assert "list" not in layer.hidden


def test_every_link_between_a_name_and_its_program_is_kept(tmp_path: Path) -> None:
    folder = tmp_path.resolve()
    (folder / "python3.11").touch()
    (folder / "python3").symlink_to("python3.11")
    (folder / "venv").mkdir()
    (folder / "venv" / "python").symlink_to(folder / "python3")
    assert list(listed_programs.chain(str(folder / "venv" / "python"))) == [
        f"{folder}/venv/python",
        f"{folder}/python3",
        f"{folder}/python3.11",
    ]


def test_on_another_system_one_line_says_that_nothing_is_hidden(tmp_path: Path) -> None:
    script = "import os; print(os.environ['PATH'])"
    done = subprocess.run(
        [sys.executable, "-m", "tools.listed_programs", "build", "run", "--", sys.executable, "-c", script],
        cwd=ROOT,
        env={"PATH": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == f"{tmp_path}\n"
    (line,) = done.stderr.splitlines()
    assert line == "tools/listed_programs: hides no program of this machine: it has no package database of Debian's"


#: Stand for the programs that mount: each notes what it was asked, and the second overlay fails.
MOUNTING = {
    "findmnt": "echo /",
    "mount": 'case "$*" in *second) echo "mount: second: wrong fs type" >&2; exit 32 ;; esac',
    "umount": "",
    "dpkg-query": "",
    "unshare": "",
}


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs that mount nothing; returns the file in which they note what they were asked."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, script in MOUNTING.items():
        (programs / name).write_text(f'#!/bin/sh\necho "{name} $*" >> {tmp_path}/asked\n{script}\n')
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr(listed_programs, "LAYERS", tmp_path / "layers")
    (tmp_path / "layers").mkdir()
    return tmp_path / "asked"


def test_where_a_later_folder_cannot_be_covered_the_earlier_ones_are_uncovered(asked: Path) -> None:
    planned = [Layer(f"/{name}", (), {}) for name in ("first", "second", "third")]
    with pytest.raises(CannotHideError, match="mount: second: wrong fs type"):
        listed_programs.hide(planned)
    mounted, undone = [], []
    for line in asked.read_text().splitlines():
        program, *words = line.split()
        if program == "mount" and words[0] == "-t" and words[-1] != "/second":
            mounted.append(words[-1])
        elif program == "umount":
            undone.append(words[-1])
    assert mounted == [str(listed_programs.LAYERS), "/first"]
    assert undone == mounted[::-1]


class _BecameError(Exception):
    """The process has become a command; its environment."""


@pytest.fixture
def outcome(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Runs the program as root up to the command; returns what the command finds in its environment."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)

    def become(file: str, words: list[str], environment: dict[str, str]) -> None:
        assert (file, words) == ("true", ["true"])
        raise _BecameError(environment[listed_programs.OUTCOME])

    monkeypatch.setattr(os, "execvpe", become)

    def run(*options: str) -> str:
        with pytest.raises(_BecameError) as found:
            listed_programs.main([*options, "build", "--", "true"])
        return str(found.value)

    return run


@pytest.mark.usefixtures("asked")
def test_a_folder_of_network_namespaces_that_cannot_be_made_hides_nothing(
    outcome: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run").touch()
    monkeypatch.setattr(listed_programs, "NETWORK_NAMESPACES", tmp_path / "run" / "netns")
    assert outcome().startswith("not hidden: [Errno 20] Not a directory")


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize("script", ["echo 'no such mount point' >&2; exit 1", None], ids=["fails", "is absent"])
def test_a_machine_that_does_not_know_its_mount_points_hides_nothing(
    script: str | None, outcome: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listed_programs, "layers", lambda _: [Layer("/first", (), {})])
    program = tmp_path / "programs" / "findmnt"
    if script is None:
        program.unlink()
        monkeypatch.setenv("PATH", str(program.parent))
    else:
        program.write_text(f"#!/bin/sh\n{script}\n")
    assert outcome("--inside").startswith("not hidden: ")


@pytest.mark.usefixtures("asked")
def test_a_machine_without_mount_namespaces_hides_nothing(
    outcome: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listed_programs, "NETWORK_NAMESPACES", tmp_path)
    (tmp_path / "programs" / "unshare").write_text("#!/bin/sh\necho 'Operation\nnot permitted' >&2\nexit 1\n")
    assert outcome() == "not hidden: unshare: Operation not permitted"


@pytest.mark.usefixtures("asked")
def test_the_command_is_told_how_many_programs_are_hidden(
    outcome: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listed_programs, "layers", lambda _: [Layer("/first", (), {}), Layer("/last", (), {})])
    assert outcome("--inside") == "0 hidden"


def test_a_missing_program_skips_a_test_only_where_programs_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(listed_programs.OUTCOME, "not hidden: that needs root")
    assert (absent("sh"), absent("no-such-program")) == (False, True)
    monkeypatch.setenv(listed_programs.OUTCOME, "812 hidden")
    assert not absent("sh")
    with pytest.raises(LookupError, match=r"^no-such-program: no package of debian-packages\.txt has it"):
        absent("no-such-program")


def test_every_test_that_is_skipped_for_a_missing_program_looks_for_it_with_absent() -> None:
    looks = re.compile(r"which\([^\n]*\) is None")
    found = {path.name for path in (ROOT / "tests").rglob("*.py") if looks.search(path.read_text())}
    # The programs of guests have a purpose of their own in the list, which `make test` does not install.
    assert found == {"test_lab_vm.py", "test_ports_in_guest.py", "victims.py"}
