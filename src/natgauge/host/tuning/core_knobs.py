# SPDX-License-Identifier: Apache-2.0
"""Knobs of the cores of the machine: their threads, their clocks, and the interrupts of ports that they take."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from natgauge.host import process_files
from natgauge.host.tuning.contract import CheckedSetting, TunedMachine, TuningKnob
from natgauge.inputs.cores import parse_cores

_GOVERNOR: Final = "performance"


class Governor(TuningKnob):
    """The governor of each core's clock frequency."""

    name = "governor"
    why = "a core that slows down between trials is slow at the beginning of each, and two runs differ"
    source = "Linux: admin-guide/pm/cpufreq; a constant test system, RFC 8219 section 5"

    def find(self, machine: TunedMachine, ports: Sequence[str]) -> Iterator[CheckedSetting]:
        """Yield one setting for each core whose frequency the kernel may lower."""
        del ports
        governors = [(f"cpu{cpu}", value) for cpu in machine.cpus() if (value := self.read(machine, f"cpu{cpu}"))]
        if not governors:
            yield self.found("machine", None, remark="clock frequencies are not the kernel's to change here")
        for key, value in governors:
            known = (machine.text(f"{_folder(key)}/scaling_available_governors") or _GOVERNOR).split()
            if value == _GOVERNOR or _GOVERNOR in known:
                yield self.found(key, value, None if value == _GOVERNOR else _GOVERNOR)
            else:
                yield self.found(key, value, remark=f"the kernel has no governor {_GOVERNOR}, only {', '.join(known)}")

    def read(self, machine: TunedMachine, key: str) -> str | None:
        """Return the governor's name."""
        return machine.text(f"{_folder(key)}/scaling_governor")

    def put(self, machine: TunedMachine, key: str, value: str) -> None:
        """Set the governor."""
        machine.write(f"{_folder(key)}/scaling_governor", value)


def _folder(key: str) -> str:
    return f"/sys/devices/system/cpu/{key}/cpufreq"


_SMT: Final = "/sys/devices/system/cpu/smt/control"


class Smt(TuningKnob):
    """Whether two hardware threads share a core (SMT)."""

    name = "smt"
    moves_interrupts = True
    why = "two threads share one core's units, so what one does slows the other"
    source = "Linux: ABI/testing/sysfs-devices-system-cpu; a constant test system, RFC 8219 section 5"

    def find(self, machine: TunedMachine, ports: Sequence[str]) -> Iterator[CheckedSetting]:
        """Yield the machine's only SMT switch."""
        del ports
        value = self.read(machine, "machine")
        if value is None or value.startswith("not"):
            yield self.found("machine", None, remark="no two threads share a core here")
        else:
            yield self.found("machine", value, "off" if value == "on" else None)

    def read(self, machine: TunedMachine, key: str) -> str | None:
        """Return "on", "off", "forceoff", "notsupported" or "notimplemented"."""
        del key
        return machine.text(_SMT)

    def put(self, machine: TunedMachine, key: str, value: str) -> None:
        """Switch; cores go offline, or come back."""
        del key
        machine.write(_SMT, value)


class IrqAffinity(TuningKnob):
    """Pins each interrupt of a port to one core, and interrupts of its queues to different cores."""

    name = "irq-affinity"
    why = "an interrupt that moves takes its queue's frames to another core, away from the caches, within a trial"
    source = "Linux: core-api/irq/irq-affinity; networking/scaling, RSS IRQ configuration"

    def port_of(self, key: str) -> str | None:
        """Return the port that has the interrupt."""
        return key.split(maxsplit=1)[0]

    def find(self, machine: TunedMachine, ports: Sequence[str]) -> Iterator[CheckedSetting]:
        """Yield a setting for each interrupt of these ports, assigned in turn to the cores near the port."""
        moved = _balanced(machine)
        for port in ports:
            numbers = _interrupts(machine, port)
            if not numbers:
                yield self.found(port, None, remark="it has no interrupts of its own")
            cores = _near(machine, port)
            present = {number: self.read(machine, _key(port, number)) for number in numbers}
            known = {number: value for number, value in present.items() if value is not None}
            # The user has probably pinned each interrupt to a core of its own on purpose.
            apart = len(set(known.values())) >= min(len(known), len(cores)) and all(map(_is_single_cpu, known.values()))
            for turn, (number, value) in enumerate(known.items()):
                core = str(cores[turn % len(cores)])
                yield self.found(_key(port, number), value, None if apart or value == core else core, moved)

    def read(self, machine: TunedMachine, key: str) -> str | None:
        """Cores as the kernel writes them, such as "0-3"."""
        return machine.text(_file(key))

    def put(self, machine: TunedMachine, key: str, value: str) -> None:
        """Bind it; the kernel refuses to move interrupts that a driver manages."""
        machine.write(_file(key), value)


def _key(port: str, number: int) -> str:
    return f"{port} irq {number}"


def _file(key: str) -> str:
    return f"/proc/irq/{key.rsplit(' ', 1)[1]}/smp_affinity_list"


def _is_single_cpu(value: str) -> bool:
    return value.isdecimal()


def _near(machine: TunedMachine, port: str) -> Sequence[int]:
    """Online cores of the port's own memory node; all where that is not known."""
    online = machine.cpus()
    local = machine.text(f"/sys/class/net/{port}/device/local_cpulist")
    near = [cpu for cpu in parse_cores(local) if cpu in online] if local else []
    return near or online


def _interrupts(machine: TunedMachine, port: str) -> Sequence[int]:
    """Return the interrupts with the port's name, or else with its card's name; a card may have several ports."""
    lines = (machine.text("/proc/interrupts") or "").splitlines()
    named = {int(match[1]): line.split()[-1] for line in lines if (match := re.match(r"\s*(\d+):", line))}
    for name in (port, machine.path(f"/sys/class/net/{port}/device").resolve().name):
        token = re.compile(rf"(^|[-@:]){re.escape(name)}($|[-@:.])")
        if ours := [number for number, action in named.items() if token.search(action)]:
            return sorted(ours)
    folder = machine.path(f"/sys/class/net/{port}/device/msi_irqs")
    return sorted(int(path.name) for path in folder.glob("*") if path.name.isdecimal())


def _balanced(machine: TunedMachine) -> str:
    """Return a remark where a running program moves interrupts by itself; empty otherwise."""
    names = (_name_of(path) for path in machine.path("/proc").glob("[0-9]*"))
    return "irqbalance runs and will move it again; run: systemctl stop irqbalance" if "irqbalance" in names else ""


def _name_of(process: Path) -> str:
    """Name of a process; empty where it has ended since the folder was listed."""
    try:
        return process_files.name_of(process)
    except OSError:
        return ""
