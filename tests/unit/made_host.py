# SPDX-License-Identifier: Apache-2.0
"""A healthy host made of files, as `natgauge doctor` finds it, with whatever a test takes from it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.unit.made_labs import Machine

from natgauge.agreement.generated import StreamCounts
from natgauge.errors import HostError
from natgauge.finding import Finding
from natgauge.host import capabilities
from natgauge.host import machine as this_machine
from natgauge.tester import doctor

FILES = {
    "sys/kernel/btf/vmlinux": "",
    "proc/sys/net/core/bpf_jit_enable": "1\n",
    "proc/sys/net/netfilter/nf_conntrack_max": "262144\n",
    "sys/module/nf_conntrack/parameters/hashsize": "262144\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet acpi_pm \n",
    "sys/devices/system/cpu/smt/active": "0\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n",
    "proc/sys/kernel/sched_rt_runtime_us": "950000\n",
    "proc/2/comm": "kthreadd\n",
    "proc/stat": "cpu  1000 0 1000 9000 0 0 0 1 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n",
    "proc/meminfo": "MemTotal:       16777216 kB\nMemAvailable:    8388608 kB\n",
}


class MadeHost:
    """The host, and what is not in its files.

    Attributes:
        root: where its files are.
        programs: folder of natgauge's own programs.
        release: of its kernel.
        cores: that can be used.
        came: frames that were sent over a cable, and those that came; a text is why none can be sent.
        lacks: programs and modules that it does not have; None = it has the programs of the machine of the test.
        found: what the doctor finds, in place of all that the host is; None = what the host is.
        asked: the gateways that each doctor was asked for.
    """

    def __init__(self, root: Path) -> None:
        self.root, self.programs = root, root / "programs"
        self.release = "6.12.1-amd64"
        self.cores: tuple[int, ...] = (0, 1)
        self.came: tuple[int, int] | str = (1000, 1000)
        self.lacks: set[str] | None = set()
        self.found: list[tuple[Any, ...]] | None = None
        self.asked: list[tuple[str, ...]] = []
        self.write(FILES)
        (root / "proc" / str(os.getpid())).mkdir()
        (root / "proc/self").symlink_to(str(os.getpid()))
        for name in ("natgauge-engine", "natgauge-front", "natgauge-softwire"):
            self.write({f"programs/{name}": "#!/bin/sh\necho program 1\n"})
            (self.programs / name).chmod(0o755)

    def write(self, files: dict[str, str]) -> None:
        """Have it these files."""
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def prove(self) -> StreamCounts:
        """Send frames over a cable."""
        if isinstance(self.came, str):
            raise HostError(self.came)
        offered, received = self.came
        return StreamCounts.model_construct(offered_frames=offered, received_frames=received)

    def has(self, name: str) -> bool:
        """Whether it has a program or a module."""
        return name not in (self.lacks or ())


@contextmanager
def host_with(machine: Machine) -> Iterator[MadeHost]:
    """Have the doctor look at such a host, on which the labs are those of the machine, for as long as the block lasts.

    A lab is in use there.
    """
    made = MadeHost(machine.root.with_name("host"))
    machine.use("mine", "ng-mine-tester")
    machine.namespace("ng-mine-tester")
    machine.namespace("somebody-elses", marked=False)
    examine, shows, real = doctor.examine, capabilities.shows_kernel_threads, doctor.Host

    def host(gateways: tuple[str, ...]) -> doctor.Host:
        made.asked.append(gateways)
        facts: dict[str, Any] = {"root": made.root, "release": made.release, "prove": made.prove, "has": made.has}
        if made.lacks is not None:
            facts["find"] = lambda name: f"/usr/bin/{name}" if made.has(name) else None
        return real(gateways=gateways, **facts)

    def examined(place: doctor.Host) -> list[Finding]:
        return examine(place) if made.found is None else [Finding(*each) for each in made.found]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NATGAUGE_PROGRAMS", str(made.programs))
        patch.setattr(capabilities, "in_user_namespace", lambda: False)
        patch.setattr(capabilities, "shows_kernel_threads", lambda root=made.root: shows(root))
        patch.setattr(os, "sched_getaffinity", lambda _: set(made.cores))
        patch.setattr(this_machine, "online_cpus", lambda: made.cores)
        patch.setattr(doctor, "Host", host)
        patch.setattr(doctor, "examine", examined)
        yield made
