# SPDX-License-Identifier: Apache-2.0
"""A command whose programs are hidden: what it finds, by name and by path, and what of it is known outside."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMESPACE = "ng-test-listed"


def seen_by(*purposes: str, script: str) -> str:
    """What a shell script prints that sees the programs of these purposes only."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.listed_programs", *purposes, "--", "sh", "-euc", script],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    if "hides no program" in done.stderr:
        pytest.skip(done.stderr.strip())
    return done.stdout.partition("\n")[2]


@pytest.fixture
def namespace() -> Iterator[str]:
    yield NAMESPACE
    subprocess.run(["ip", "netns", "delete", NAMESPACE], check=False)


def test_programs_of_other_purposes_are_hidden_by_name_and_by_path() -> None:
    nft = shutil.which("nft")
    assert nft is not None
    script = f"""
        PATH=$PATH:/usr/sbin
        command -v nft || echo no nft
        test -e {nft} || echo no {nft}
        awk 'BEGIN {{ print "awk runs" }}'
        cargo --version | cut -d " " -f 1
    """
    assert seen_by("build", script=script) == f"no nft\nno {nft}\nawk runs\ncargo\n"
    assert nft in seen_by("run", script="command -v nft")
    assert Path(nft).exists()


def test_a_network_namespace_that_it_makes_is_known_outside(namespace: str) -> None:
    seen_by("run", script=f"ip netns add {namespace}")
    subprocess.run(["ip", "netns", "exec", namespace, "true"], check=True)


def test_the_folder_of_network_namespaces_is_mounted_once_however_often_programs_are_hidden() -> None:
    for _ in range(2):
        seen_by("run", script="true")
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    assert mounts.count("/run/netns") == 1
