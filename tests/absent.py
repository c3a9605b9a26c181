# SPDX-License-Identifier: Apache-2.0
"""Programs without which a test is skipped, but not where all packages of tools/debian-packages.txt are installed."""

from __future__ import annotations

import os
import shutil

from tools import run_tests


def absent(program: str) -> bool:
    """Whether a program is not installed.

    Raises:
        LookupError: it is not installed, although `make` has installed the packages of the list: the list lacks its
            package.
    """
    if shutil.which(program) is not None:
        return False
    if run_tests.FIGURES in os.environ and os.geteuid() == 0 and shutil.which("apt-get") is not None:
        raise LookupError(f"{program}: no package of tools/debian-packages.txt has it, and a test needs it")
    return True
