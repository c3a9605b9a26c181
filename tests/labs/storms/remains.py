# SPDX-License-Identifier: Apache-2.0
"""What a killed natgauge may have left: processes, namespaces, registers, locks, directories, BPF programs, interfaces.

A storm has a /run of its own (`python -m tests.labs.storms` makes it), so all labs that it finds are its own.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.labs.storms.groups import Group

from natgauge.labs.common import locks, namespaces

#: Time in which the processes of a killed run have to end by themselves, seconds. An engine ends as soon as its parent
#: has; a worker of Dask's looks for its own once in a while.
PATIENCE_SECONDS: Final = 20.0


def values_of(settings: Iterable[str]) -> dict[str, str]:
    """The values of these settings of the host."""
    return {path: Path(path).read_text().strip() for path in settings}


def settings_left(before: Mapping[str, str]) -> Iterator[str]:
    """Settings of the host that are not as they were before."""
    for path, value in values_of(before).items():
        if value != before[path]:
            yield f"{path} is {value}, and was {before[path]}"


#: Namespaces that storms make themselves. Their names begin as natgauge's do, and nothing of natgauge may touch them.
FOREIGN: Final = ("ng-main", "ng-foreign", "ng-other-gateway", "foreign")
#: Subfolders with facts that are valid until the next boot: whether guests start with KVM, and used ports of a wire.
_KNOWN: Final = ("guests", "uses")


def _within(seconds: float, gone: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not gone():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def programs_of(pids: Collection[int]) -> set[int]:
    """The numbers of the BPF programs that these processes hold."""
    found: set[int] = set()
    for pid in pids:
        for path in Path(f"/proc/{pid}/fdinfo").glob("*"):
            try:
                text = path.read_text()
            except OSError:
                continue
            found |= {int(line.split()[1]) for line in text.splitlines() if line.startswith("prog_id:")}
    return found


def _loaded() -> set[int]:
    done = subprocess.run(["bpftool", "-j", "prog", "show"], check=True, capture_output=True, text=True)
    return {int(each["id"]) for each in json.loads(done.stdout)}


def processes_left(group: Group) -> Iterator[str]:
    """The processes of a killed run that do not end by themselves."""
    if not _within(PATIENCE_SECONDS, lambda: not group.members()):
        for pid in group.members():
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            yield f"process {pid} is left: {command[:200]}"


def labs_left() -> Iterator[str]:
    """What labs left in this storm's own /run."""
    yield from (f"namespace {name} is left" for name in namespaces.names() if _is_ours(name))
    yield from (f"{path} is left" for path in sorted(locks.RUN.glob("*/*")) if path.parent.name not in _KNOWN)


def _is_ours(name: str) -> bool:
    return name.startswith(namespaces.PREFIX) and name not in FOREIGN


def programs_left(programs: Collection[int]) -> Iterator[str]:
    """Those of these BPF programs that are still loaded; the kernel removes one a moment after its last user ended."""
    if programs and not _within(PATIENCE_SECONDS, lambda: not _loaded() & set(programs)):
        yield f"BPF programs {sorted(_loaded() & set(programs))} are left"
