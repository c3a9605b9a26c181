# SPDX-License-Identifier: Apache-2.0
"""The state of the host before and after a run: settings, links, rule sets, BPF programs, mounts, IRQ affinities.

What changes by itself is found by looking several times before anything is disturbed, and is left out.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

#: Settings that count, name random numbers, or change whenever any process does something.
_COUNTING: Final = (
    "fs.dentry-state",
    "fs.file-nr",
    "fs.inode-nr",
    "fs.inode-state",
    "fs.quota.",
    "kernel.ns_last_pid",
    "kernel.pty.nr",
    "kernel.random.",
    "net.netfilter.nf_conntrack_count",
    "vm.stat_refresh",
)
_LOOKS: Final = 3
_BETWEEN_SECONDS: Final = 0.3
#: The kernel removes programs and namespaces a moment after their last user has ended.
_PATIENCE_SECONDS: Final = 20.0
#: Facts of a link that its users did not set.
_LINK_FACTS: Final = ("ifindex", "mtu", "flags", "master", "address", "link_netnsid", "xdp", "qdisc", "altnames")


def _output(*command: str) -> str:
    # `sysctl -a` reports keys that it may not read by its exit status.
    return subprocess.run(command, check=False, capture_output=True, text=True).stdout


def _settings() -> Iterator[tuple[str, str]]:
    for line in _output("sysctl", "-a").splitlines():
        name, separator, value = line.partition(" = ")
        if separator and not name.startswith(_COUNTING):
            yield f"sysctl {name}", value
    for path in Path("/sys/module").glob("nf_*/parameters/*"):
        with suppress(OSError):
            yield str(path), path.read_text().strip()
    for path in Path("/proc/irq").glob("*/smp_affinity"):
        with suppress(OSError):
            yield str(path), path.read_text().strip()


def _links() -> Iterator[tuple[str, str]]:
    for link in json.loads(_output("ip", "-json", "-details", "link", "show") or "[]"):
        yield f"link {link['ifname']}", json.dumps({name: link[name] for name in _LINK_FACTS if name in link})


def _rules() -> Iterator[tuple[str, str]]:
    yield "nft list ruleset", _output("nft", "list", "ruleset")
    yield "ip rule", _output("ip", "rule")
    yield "ip route", _output("ip", "route", "show", "table", "all")


def _programs() -> Iterator[tuple[str, str]]:
    for kind in ("prog", "map", "link"):
        for each in json.loads(_output("bpftool", "--json", kind, "show") or "[]"):
            # An object that ended while it was listed has an error in place of its number.
            if "id" not in each:
                continue
            yield f"bpftool {kind} {each['id']}", str(each.get("name", each.get("type")))
    for path in Path("/sys/fs/bpf").rglob("*"):
        yield str(path), "pinned"


def _mounts() -> Iterator[tuple[str, str]]:
    for line in Path("/proc/self/mounts").read_text().splitlines():
        source, place, kind, *_ = line.split()
        yield f"mount {place} {source}", kind


_PARTS: Final[tuple[Callable[[], Iterator[tuple[str, str]]], ...]] = (_settings, _links, _rules, _programs, _mounts)


def _now() -> dict[str, str]:
    return {name: value for part in _PARTS for name, value in part()}


class HostState:
    """The host's state at one moment."""

    def __init__(self) -> None:
        """Look several times, and remember what stays the same."""
        seen = []
        for _ in range(_LOOKS):
            seen.append(_now())
            time.sleep(_BETWEEN_SECONDS)
        self._volatile = {name for look in seen for name in look if any(each.get(name) != look[name] for each in seen)}
        self._known: Mapping[str, str] = {name: seen[0][name] for name in seen[0] if name not in self._volatile}

    def __len__(self) -> int:
        """Number of facts that are compared."""
        return len(self._known)

    def changed(self) -> list[str]:
        """What is not as it was, one sentence each, once the kernel has had time to remove what has ended."""
        until = time.monotonic() + _PATIENCE_SECONDS
        while (faults := list(self._differences())) and time.monotonic() < until:
            time.sleep(_BETWEEN_SECONDS)
        return faults

    def _differences(self) -> Iterator[str]:
        now = _now()
        for name, value in self._known.items():
            if now.get(name) != value:
                yield f"{name} is {now.get(name, 'gone')!r}, and was {value!r}"
        yield from (f"{name} is new: {now[name]!r}" for name in now.keys() - self._known.keys() - self._volatile)
