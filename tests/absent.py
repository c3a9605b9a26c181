# SPDX-License-Identifier: Apache-2.0
"""Programs without which a test is skipped, but not where all packages of tools/debian-packages.txt are installed."""

from __future__ import annotations

import os
import shutil

from tools import listed_programs


def absent(program: str) -> bool:
    """Whether a program is not installed.

    Raises:
        LookupError: it is not installed, although this machine has the packages of the list and shows only their
            programs (tools/listed_programs.py): the list lacks its package.
    """
    if shutil.which(program) is not None:
        return False
    if listed_programs.in_force(os.environ):
        raise LookupError(f"{program}: no package of {listed_programs.LIST.name} has it, and a test needs it")
    return True
