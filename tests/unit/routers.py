# SPDX-License-Identifier: Apache-2.0
"""Rule sets of routers, of which gateways are made; and root's nft, which answers from files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from natgauge.cli import run

#: What every rule set of these tests has.
PORTS = ["--inside", "lan0", "--outside", "wan0"]
#: Programs in place of those of root; nft prints one answer of rules that have the lab's network, and one of others.
PROGRAMS = {
    "unshare": 'shift; exec "$@"',
    "ip": "",
    "nft": r"""case "$*" in
"--check --file -") cat > /dev/null ;;
"--file -") cat > loaded ;;
*) if grep -q -F 10.0.0.0/16 loaded; then cat of_lab.json; else cat own.json; fi ;;
esac""",
}


def have_nft(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Let root's nft answer from files of the working folder, see `nft_prints`; its programs are in this folder."""
    folder.mkdir()
    for name, script in PROGRAMS.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    patch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    patch.setattr(os, "geteuid", lambda: 0)


def nft_prints(own: str, of_lab: str | None = None) -> None:
    """What nft prints of rules; `of_lab`: of those with the network of a lab."""
    Path("own.json").write_text(own)
    Path("of_lab.json").write_text(own if of_lab is None else of_lab)


def new(name: str, *words: str, text: str | None = None, file: str = "router.conf") -> int:
    """Make a gateway of a rule set, of this text unless it is there; the exit status."""
    if text is not None:
        Path(file).write_text(text)
    return run(["gateways", "new", name, "--from-nft", file, *(words or PORTS)])
