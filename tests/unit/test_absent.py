# SPDX-License-Identifier: Apache-2.0
"""A test is skipped for a missing program only where `make` could not install the packages that are listed."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.absent import absent
from tools import run_tests

ROOT = Path(__file__).parents[2]


def machine(monkeypatch: pytest.MonkeyPatch, programs: Path, *, user: int, by_make: bool) -> None:
    """Be this user on a machine with these programs only."""
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.delenv(run_tests.FIGURES, raising=False)
    if by_make:
        monkeypatch.setenv(run_tests.FIGURES, "figures")


@pytest.mark.parametrize(
    ("apt", "user", "by_make"), [(False, 0, True), (True, 1000, True), (True, 0, False)], ids=["apt", "root", "make"]
)
def test_a_missing_program_skips_a_test_where_its_package_was_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, apt: bool, user: int, by_make: bool
) -> None:
    for name in ("sh", *(["apt-get"] if apt else [])):
        (tmp_path / name).touch(mode=0o755)
    machine(monkeypatch, tmp_path, user=user, by_make=by_make)
    assert (absent("sh"), absent("no-such-program")) == (False, True)


def test_a_missing_program_fails_a_test_where_all_listed_packages_are_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "apt-get").touch(mode=0o755)
    machine(monkeypatch, tmp_path, user=0, by_make=True)
    with pytest.raises(LookupError, match=r"^no-such-program: "):
        absent("no-such-program")


def test_every_test_that_is_skipped_for_a_missing_program_looks_for_it_with_absent() -> None:
    looks = re.compile(r"which\([^\n]*\) is None")
    found = {path.name for path in (ROOT / "tests").rglob("*.py") if looks.search(path.read_text())}
    # The programs of guests have a purpose of their own in the list, which `make test` does not install.
    assert found == {"test_lab_vm.py", "test_ports_in_guest.py", "victims.py"}


def test_the_targets_that_run_tests_install_the_packages_of_the_list_first() -> None:
    text = (ROOT / "Makefile").read_text()
    for purpose, of in (("build", "build"), ("%", "$*")):
        rule = rf"^\$\(STAMPS\)/{purpose}-packages: .*\n\t(\$\(BESIDE_CARGO\) )?tools/install-packages {re.escape(of)}$"
        assert re.search(rule, text, re.MULTILINE)
    assert " $(STAMPS)/run-packages $(BESIDE)" in text
    targets = re.findall(r"^\S+: (.*)\n\t.*tools\.run_tests", text, re.MULTILINE)
    assert len(targets) == 3
    assert all("setup $(STAMPS)/test-packages" in prerequisites for prerequisites in targets)


def test_two_that_install_at_once_wait_for_each_other(tmp_path: Path) -> None:
    """As make --jobs does; apt refuses a second one."""
    programs = tmp_path / "bin"
    programs.mkdir()
    apt = 'mkdir "$0.busy" || exit 100\nsleep 0.1\nrmdir "$0.busy"'
    for name, script in (("apt-get", apt), ("dpkg-query", "exit 1"), ("id", "echo 0")):
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    found = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    command = [str(ROOT / "tools" / "install-packages")]
    both = [subprocess.Popen([*command, purpose], env=found, stdout=subprocess.DEVNULL) for purpose in ("run", "test")]
    assert [one.wait() for one in both] == [0, 0]
