# SPDX-License-Identifier: Apache-2.0
"""What is done differently on the systems that a machine of the `ssh` lab may run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from natgauge.labs import remote_bsd, remote_facts
from natgauge.labs.remote_facts import RemoteFacts
from natgauge.labs.remote_layout import Layout


@dataclass(frozen=True, slots=True)
class Ways:
    """How a machine of one system is looked at and worked on.

    Attributes:
        script: shell text that prints what is to be known, of these interfaces in particular.
        read: understands it.
        make: shell text that makes the devices.
        undo: shell text that undoes them, also half of them.
    """

    script: Callable[[Sequence[str]], str]
    read: Callable[[str], RemoteFacts]
    make: Callable[[Layout, RemoteFacts], str]
    undo: Callable[[Layout, RemoteFacts], str]


_LINUX: Final = Ways(remote_facts.script, remote_facts.read, Layout.make, Layout.undo)
_BSD: Final = Ways(remote_bsd.script, remote_bsd.read, remote_bsd.make, remote_bsd.undo)


def ways(system: str) -> Ways:
    """Those of a system as `uname -s` calls it; one that nobody knows is looked at as Linux is, and refused then."""
    return _BSD if system.endswith("BSD") else _LINUX
