# SPDX-License-Identifier: Apache-2.0
"""The scripts that make a clean root: which mirror they take, and what they refuse before anything is made."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def bash(script: str, apt: str, folder: Path, **variables: str) -> str:
    """What a script prints on a machine whose apt-get is the shell script `apt`."""
    program = folder / "apt-get"
    program.write_text(f"#!/bin/sh\n{apt}\n")
    program.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name != "DEBIAN_MIRROR"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f". tools/clean-root.sh; {script}"],
        cwd=ROOT,
        env=environment | {"PATH": f"{folder}:{os.environ['PATH']}"} | variables,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("apt", "mirror"),
    [
        ("echo http://mirror.example/debian/; echo http://second.example/debian/", "http://mirror.example/debian/"),
        ("echo cdrom:disc; echo https://mirror.example/debian/", "https://mirror.example/debian/"),
        ("exit 0", "http://deb.debian.org/debian"),
        ("exit 100", "http://deb.debian.org/debian"),
    ],
    ids=["the first one", "no disc", "another release", "no apt"],
)
def test_the_mirror_is_the_one_of_the_hosts_apt(tmp_path: Path, apt: str, mirror: str) -> None:
    assert bash("mirror", apt, tmp_path) == mirror


def test_a_mirror_that_the_user_names_is_taken(tmp_path: Path) -> None:
    own = "http://own.example/debian"
    assert bash("mirror", "echo http://mirror.example/debian/", tmp_path, DEBIAN_MIRROR=own) == own


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["try-wheel"], "wants [--install-only] and one wheel"),
        (["try-wheel", "dist/none.whl"], "wants [--install-only] and one wheel"),
        (["try-wheel", "--instal-only", "README.md"], "wants [--install-only] and one wheel"),
        (["try-wheel", "README.md", "README.md"], "wants [--install-only] and one wheel"),
        (["try-clean", "demo", "tests"], "tests: no such target; make help lists them"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(words: list[str], complaint: str) -> None:
    done = subprocess.run([f"tools/{words[0]}", *words[1:]], cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"tools/{words[0]}: {complaint}")
    assert done.stdout == ""


@pytest.mark.parametrize(("wanted", "release"), [("make", "bookworm"), ("qemu-system-x86 trixie", "trixie")])
def test_a_root_is_made_of_signed_packages_only(tmp_path: Path, wanted: str, release: str) -> None:
    (tmp_path / "debootstrap").write_text('#!/bin/sh\necho "$*" > "$ASKED"\n')
    (tmp_path / "debootstrap").chmod(0o755)
    (tmp_path / "root").mkdir()
    bash(f"ROOT=$NEW bootstrap {wanted}", "exit 0", tmp_path, NEW=str(tmp_path / "root"), ASKED=str(tmp_path / "asked"))
    words = (tmp_path / "asked").read_text().split()
    assert words[:2] == ["--force-check-gpg", "--keyring=/usr/share/keyrings/debian-archive-keyring.gpg"]
    assert words[-3:-1] == [release, str(tmp_path / "root")]
