# SPDX-License-Identifier: Apache-2.0
"""The version in a result is that of the program that ran: its own word, its package, or a checksum of its file."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from natgauge.gateways.recipe import load

#: What the snippet needs besides the program and dpkg-query.
_TOOLS = ("sh", "readlink", "head", "sed", "cut", "sha256sum")
#: Owns every file in folders that end so, and knows one version.
_DPKG = """#!/bin/sh
case "$1 $2" in
"-S "*/packaged/*) echo "mine:amd64: $2" ;;
"-W "*) printf 1.2-3 ;;
*) exit 1 ;;
esac
"""


def version(path: Path, said: str, *, dpkg: bool, recipe: str = "tayga-siit") -> str:
    """The version of a tayga at `path` that prints this."""
    folder = path.parent / "bin"
    folder.mkdir(parents=True)
    for name in _TOOLS:
        (folder / name).symlink_to(shutil.which(name) or name)
    path.mkdir()
    for file, text in ((path / "tayga", f'#!/bin/sh\necho "{said}"\n'), (folder / "dpkg-query", _DPKG)):
        if file.name == "tayga" or dpkg:
            file.write_text(text)
            file.chmod(0o755)
    found = load(recipe)
    pieces = [piece for piece in found.verbs.version if "PROGRAM" in piece]
    run = subprocess.run(
        ["/bin/sh", "-euc", "\n".join(pieces)],
        env={**found.environment, "PATH": f"{path}:{folder}"},
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout.strip()


@pytest.mark.parametrize(
    ("folder", "said", "dpkg", "expected"),
    [
        ("own", "tayga 0.9.6", True, "tayga 0.9.6"),
        ("packaged", "tayga 0.9.6", True, "tayga 0.9.6"),
        ("packaged", "unknown version", True, "tayga 1.2-3"),
        ("packaged", "Usage:\n\tTAYGA version 0.9.6", True, "tayga 0.9.6"),
        ("own", "unknown version", True, "tayga, SHA-256 of the program "),
        ("packaged", "unknown version", False, "tayga, SHA-256 of the program "),
    ],
)
def test_the_program_that_runs_says_its_version(
    folder: str, said: str, expected: str, tmp_path: Path, *, dpkg: bool
) -> None:
    assert version(tmp_path / folder, said, dpkg=dpkg).startswith(expected)
