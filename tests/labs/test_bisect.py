# SPDX-License-Identifier: Apache-2.0
"""examples/bisect/search.sh finds the change that made a gateway slower (docs/bisecting.md)."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
from pathlib import Path

import pytest
from tests.labs.nat44 import with_rules

#: On a busy machine a comparison takes minutes; a bisection has seven or eleven of them.
pytestmark = [pytest.mark.soak, pytest.mark.alone, pytest.mark.timeout(3600)]

BISECT = Path(__file__).resolve().parents[2] / "examples" / "bisect"
#: The planted changes cost 60 % and more; nothing else costs anything.
OPTIONS = ("--quantities", "up", "--connections", "1000", "--fail-above", "20%", "--most-seconds", "300")


def _run(*command: str | Path, folder: Path, **environment: str) -> str:
    # The judge starts the natgauge of this interpreter.
    search = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": search, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def _git(folder: Path, *arguments: str) -> str:
    return _run("git", "-c", "user.name=test", "-c", "user.email=test@localhost", *arguments, folder=folder)


def _found(folder: Path, good: str, baseline: Path, **environment: str) -> str:
    """The subject of the commit that git calls the first bad one."""
    ends = (good, "HEAD", baseline, "gateway.toml")
    said = _run(BISECT / "search.sh", *ends, *OPTIONS, folder=folder, **environment)
    (commit,) = re.findall(r"^([0-9a-f]{40}) is the first bad commit$", said, re.MULTILINE)
    return _git(folder, "show", "--no-patch", "--format=%s", commit).strip()


@pytest.mark.slow("makes eleven comparisons, until each is decided")
def test_the_planted_rule_among_five_hundred_is_found(tmp_path: Path) -> None:
    """The planted rule sends every packet through a chain of hundreds of rules, which no packet saw before."""
    planted = "add rule ip site forward jump services"
    rules = [
        "add table ip site",
        "add chain ip site forward { type filter hook forward priority filter; policy accept; }",
        "add chain ip site services",
        *(f"add rule ip site services tcp dport {port} accept" for port in range(1, 498)),
    ]
    rules.insert(300 + secrets.randbelow(200), planted)
    rules.pop()
    listed = tmp_path / "rules.nft"
    listed.write_text("".join(f"{rule}\n" for rule in rules))
    repository, baseline = tmp_path / "rules", tmp_path / "good" / "gateway.toml"
    _run(BISECT / "rules.sh", listed, repository, folder=tmp_path)
    _git(repository, "worktree", "add", "--detach", str(baseline.parent), "no-rule")
    assert _found(repository, "no-rule", baseline) == planted


@pytest.mark.slow("makes seven comparisons, until each is decided")
def test_the_planted_commit_among_thirty_two_is_found_and_one_that_does_not_build_is_skipped(tmp_path: Path) -> None:
    # git cannot tell a commit that is skipped from the bad one right behind it.
    slow = 2 + secrets.randbelow(31)
    unbuilt = secrets.choice([number for number in range(2, 32) if abs(number - slow) > 1])
    repository, baseline = tmp_path / "gateway", tmp_path / "good" / "gateway.toml"
    repository.mkdir()
    _git(repository, "init", "--quiet")
    (repository / ".gitignore").write_text("gateway.toml\n")
    rules = ["counter"]
    for number in range(1, 33):
        rules += ["counter"] * 60 * (number == slow)
        source = with_rules(tmp_path, "gateway", *rules).read_text()
        (repository / "gateway.in").write_text(f"# commit {number}\n{source}")
        build = "false" if number == unbuilt else "cp gateway.in gateway.toml"
        (repository / "Makefile").write_text(f".PHONY: all\nall:\n\t{build}\n")
        _git(repository, "add", ".")
        _git(repository, "commit", "--quiet", "--message", f"commit {number}")
    baseline.parent.mkdir()
    baseline.write_text(_git(repository, "show", "HEAD~31:gateway.in"))
    assert _found(repository, "HEAD~31", baseline, BUILD="make --silent") == f"commit {slow}"
