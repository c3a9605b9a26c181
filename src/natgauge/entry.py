# SPDX-License-Identifier: Apache-2.0
"""Entry point of the command `natgauge`: it takes care of Ctrl-C before it loads the command line.

Loading takes longer than Python itself needs to start, and Python answers a Ctrl-C in this time with a traceback. This
module must import nothing else of natgauge at its top.
"""

from __future__ import annotations

import signal


def main() -> None:
    """Load the command line and run it.

    Nothing has been made before it is loaded, so until then a Ctrl-C just ends the process.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from natgauge.cli import main as command_line  # noqa: PLC0415 - see above

    command_line()
