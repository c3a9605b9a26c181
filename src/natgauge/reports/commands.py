# SPDX-License-Identifier: Apache-2.0
"""Commands that views show: whoever knows all inputs makes the one that measures again, for views know none."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Final

#: Makes the command that measures a stored result again of the command as a folder has it, the metric, the gateway, and
#: the parameters of the record by name, which the command must not contradict. Empty where it cannot be made of typed
#: inputs, for the folder may come from a stranger, and people copy this command into a root shell.
CommandAgain = Callable[[object, str, str, Mapping[str, object]], str]
#: End of the names of options whose values natgauge runs in a shell.
_SHELL: Final = "-command"


def shell_options(command: str) -> list[str]:
    """Return the options of a command whose values natgauge runs in a shell."""
    return [word for word in shlex.split(command) if word.startswith("--") and word.endswith(_SHELL)]
