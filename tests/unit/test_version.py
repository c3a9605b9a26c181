# SPDX-License-Identifier: Apache-2.0
"""Two builds of natgauge that may measure otherwise never have one version."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from natgauge import version


def _git(checkout: Path, *words: str) -> str:
    who = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
    command = ["git", "-c", f"safe.directory={checkout}", *who, "-C", str(checkout), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A checkout of natgauge with one commit, from which natgauge seems to run."""
    package = tmp_path / "src" / "natgauge"
    package.mkdir(parents=True)
    (package / "version.py").write_text("# the first\n")
    _git(tmp_path, "init", "--quiet")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "--quiet", "--message", "first")
    monkeypatch.setattr(version, "__file__", str(package / "version.py"))
    version.exact_version.cache_clear()
    yield tmp_path
    version.exact_version.cache_clear()


def test_a_commit_between_releases_is_named_and_so_is_a_change_of_it(checkout: Path) -> None:
    commit = _git(checkout, "rev-parse", "--short=12", "HEAD")
    assert version.exact_version() == f"{version.VERSION}+g{commit}"
    (checkout / "src" / "natgauge" / "version.py").write_text("# another\n")
    assert version.commit_of(checkout) == f"g{commit}.changed"


def test_the_commit_of_a_release_is_the_release_and_the_next_one_is_not(checkout: Path) -> None:
    _git(checkout, "tag", f"v{version.VERSION}")
    assert version.exact_version() == version.VERSION
    (checkout / "src" / "natgauge" / "version.py").write_text("# another\n")
    assert version.commit_of(checkout) == "changed"
    _git(checkout, "commit", "--quiet", "--all", "--message", "second")
    assert version.commit_of(checkout) == f"g{_git(checkout, 'rev-parse', '--short=12', 'HEAD')}"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: gives the checkout to another user")
def test_the_checkout_of_another_user_is_read_and_its_index_stays_his(checkout: Path) -> None:
    for path in (checkout, *checkout.rglob("*")):
        os.chown(path, 65534, 65534)
    (checkout / "src" / "natgauge" / "version.py").touch()
    assert version.commit_of(checkout).startswith("g")
    assert {path.stat().st_uid for path in checkout.rglob("*")} == {65534}


def test_a_wheel_has_the_commit_that_it_was_built_of(checkout: Path) -> None:
    (checkout / "src" / "natgauge" / version.COMMIT_FILE).write_text("g0123456789ab")
    assert version.exact_version() == f"{version.VERSION}+g0123456789ab"


@pytest.mark.usefixtures("checkout")
def test_a_checkout_that_cannot_be_read_is_of_unknown_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert version.exact_version() == f"{version.VERSION}+unknown"


def test_sources_without_git_are_a_release(checkout: Path) -> None:
    (checkout / ".git").rename(checkout / "elsewhere")
    assert version.exact_version() == version.VERSION


def test_it_is_a_version_by_the_rules_of_python_packages() -> None:
    assert re.fullmatch(r"\d+(\.\d+)*(\+[a-z0-9]+(\.[a-z0-9]+)*)?", version.exact_version())
