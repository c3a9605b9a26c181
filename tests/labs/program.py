# SPDX-License-Identifier: Apache-2.0
"""The command line as a process of its own, which tests can kill."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def command_line(arguments: Sequence[str]) -> list[str]:
    """The command that runs natgauge of this environment, installed or not."""
    program = "import sys; from natgauge.cli import main; sys.argv[0] = 'natgauge'; main()"
    return [sys.executable, "-c", program, *arguments]
