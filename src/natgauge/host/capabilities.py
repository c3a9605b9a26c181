# SPDX-License-Identifier: Apache-2.0
"""Linux capabilities of this process, and the refusal where one is missing (capabilities(7))."""

from __future__ import annotations

import re
from pathlib import Path

from natgauge.errors import HostError

#: Bit numbers of the capabilities that natgauge needs (include/uapi/linux/capability.h).
BITS = {
    "CAP_KILL": 5,
    "CAP_NET_ADMIN": 12,
    "CAP_NET_RAW": 13,
    "CAP_SYS_ADMIN": 21,
    "CAP_PERFMON": 38,
    "CAP_BPF": 39,
}


def missing(*names: str) -> tuple[str, ...]:
    """Return the capabilities of `names` that are not in this process's effective set."""
    status = Path("/proc/self/status").read_text()
    match = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)
    effective = int(match[1], 16) if match else 0
    return tuple(name for name in names if not effective >> BITS[name] & 1)


def require(purpose: str, *names: str) -> None:
    """Refuse at once when a capability is missing.

    Args:
        purpose: purpose of the capabilities, e.g. "making network namespaces".
        names: keys of `BITS`.

    Raises:
        HostError: at least one is missing; the message names all that are.
    """
    absent = missing(*names)
    if absent:
        raise HostError(
            f"{purpose} needs {', '.join(absent)}, which this process lacks; run it as root, e.g. with sudo"
        )
