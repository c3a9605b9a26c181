# SPDX-License-Identifier: Apache-2.0
"""The version of natgauge that runs: its release, and between two releases the commit, which may measure otherwise."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

#: Beside this module in a wheel: what `commit_of` said of the sources that it was built of.
COMMIT_FILE: Final = "commit.txt"
_SECONDS: Final = 10.0  # far more than git needs for all files of a checkout


def _installed() -> str:
    try:
        return version("natgauge")
    except PackageNotFoundError:
        # Used from a checkout that was never installed.
        return "0+unknown"


#: The release, which many commits share.
VERSION: Final = _installed()


def commit_of(checkout: Path) -> str:
    """Return "g" and the commit of a checkout unless it is the release's, and "changed" if a file differs from it.

    Empty where the sources are no checkout, "unknown" where git is missing or cannot read it.
    """
    if not (checkout / ".git").exists():
        return ""
    try:
        nearest = _git(checkout, "describe", "--always", "--tags", "--abbrev=12", f"--match=v{VERSION}")
        changed = _git(checkout, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    commit = [] if nearest == f"v{VERSION}" else [f"g{nearest.rpartition('-g')[2]}"]
    return ".".join([*commit, *(["changed"] if changed else [])])


def _git(checkout: Path, *words: str) -> str:
    command = ["git", "-c", f"safe.directory={checkout}", "-C", str(checkout), *words]
    # It reads only: otherwise root would leave an index that the owner of the checkout cannot write.
    environment = os.environ | {"GIT_OPTIONAL_LOCKS": "0"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=True)
    return done.stdout.strip()


@cache
def exact_version() -> str:
    """Return the release, and after "+" the commit where it is not the release itself (PEP 440: a local version)."""
    built = Path(__file__).with_name(COMMIT_FILE)
    commit = built.read_text(encoding="utf-8") if built.is_file() else commit_of(Path(__file__).parents[2])
    return f"{VERSION}{'.' if '+' in VERSION else '+'}{commit}" if commit else VERSION
