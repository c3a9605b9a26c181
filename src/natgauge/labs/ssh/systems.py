# SPDX-License-Identifier: Apache-2.0
"""What is done differently on the systems that a machine of the `ssh` lab may run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from natgauge.labs.ssh import bsd, facts
from natgauge.labs.ssh.facts import RemoteFacts
from natgauge.labs.ssh.layout import Layout


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


_LINUX: Final = Ways(facts.script, facts.read, Layout.make, Layout.undo)
_BSD: Final = Ways(bsd.script, bsd.read, bsd.make, bsd.undo)


def ways(system: str) -> Ways:
    """Those of a system as `uname -s` calls it; one that nobody knows is looked at as Linux is, and refused then."""
    return _BSD if system.endswith("BSD") else _LINUX
