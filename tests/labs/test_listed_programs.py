# SPDX-License-Identifier: Apache-2.0
"""A command whose programs are hidden: what it finds, by name and by path, and what of it is known outside."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.listed_programs import LAYERS

pytestmark = pytest.mark.calm
ROOT = Path(__file__).parents[2]
NAMESPACE = f"ng-test-listed-{os.getpid()}"


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


def times_mounted() -> int:
    """How often the folder of network namespaces is mounted."""
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return mounts.count("/run/netns")


def test_the_folder_of_network_namespaces_is_mounted_no_more_often_the_second_time() -> None:
    seen_by("run", script="true")
    first = times_mounted()
    seen_by("run", script="true")
    assert times_mounted() == first >= 1


#: procfs cannot be part of an overlay, so the second folder cannot be covered.
HALF = """
import os
from tools.listed_programs import CannotHideError, Layer, hide

programs = os.path.realpath("/usr/bin")
try:
    hide([Layer(programs, ("env",), {}), Layer("/proc", (), {})])
except CannotHideError:
    print(os.path.exists(f"{programs}/env"), open("/proc/self/mountinfo").read().count("overlay"))
"""


def test_a_folder_that_was_covered_is_uncovered_where_the_next_one_cannot_be() -> None:
    before = Path("/proc/self/mountinfo").read_text().count("overlay")
    LAYERS.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "unchanged", sys.executable, "-c", HALF],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == f"True {before}\n", done.stderr
