# SPDX-License-Identifier: Apache-2.0
"""A machine made up of files, for what looks at settings and changes them; and how a lab undoes its changes."""

from __future__ import annotations

import copy
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from natgauge.cli import run
from natgauge.errors import HostError
from natgauge.host import tuner
from natgauge.host.knobs import TunedMachine
from natgauge.host.network_ports import Part
from natgauge.host.settings import LocalSetting
from natgauge.labs.common.register import Register

PORT: dict[str, Any] = {
    "most queues": {"combined": 8},
    "queues": {"combined": 2},
    "coalescing": {"adaptive-rx": "on", "adaptive-tx": "on", "rx-usecs": 50},
    "pause": {"autoneg": "on", "rx": "on", "tx": "on"},
    "hash": {"udp4": "sd", "udp6": "sdfn"},
    "offloads": {"rxvlan": "on", "rx-vlan-filter": "on [fixed]", "lro": "off", "rx-gro-hw": "on [fixed]"},
    "eee": {"eee": "on"},
}
INTERRUPTS = """\
           CPU0       CPU1       CPU2       CPU3
 30:          1          0          0          0 PCI-MSI 1-edge      eth1-TxRx-0
 31:          1          0          0          0 PCI-MSI 2-edge      eth1-TxRx-1
 32:          1          0          0          0 PCI-MSI 3-edge      eth10-TxRx-0
 33:          1          0          0          0 PCI-MSI 4-edge      mlx5_comp0@pci:0000:05:00.0
NMI:          0          0          0          0 Non-maskable interrupts
"""
FILES = {
    "sys/devices/system/cpu/online": "0-3\n",
    "sys/devices/system/cpu/smt/control": "on\n",
    **{f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor": "powersave\n" for cpu in range(4)},
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_available_governors": "performance powersave\n",
    "proc/interrupts": INTERRUPTS,
    "proc/irq/30/smp_affinity_list": "0-3\n",
    "proc/irq/31/smp_affinity_list": "0-3\n",
    "proc/irq/32/smp_affinity_list": "0-3\n",
    "proc/irq/33/smp_affinity_list": "0-3\n",
    "sys/class/net/eth0/device/local_cpulist": "0-3\n",
    "sys/class/net/eth1/device/local_cpulist": "2-3\n",
    "sys/class/net/veth1/address": "x\n",
}


@dataclass(frozen=True, slots=True)
class MadeMachine(TunedMachine):
    """A machine whose kernel answers from a file.

    A port that `refuses` a part of its settings says so, and one that is `deaf` to it does nothing. Each `uplink` has
    the default route, or is below an interface that has it.
    """

    file: Path = Path()

    def port_values(self, port: str, part: Part) -> dict[str, str]:
        found = json.loads(self.file.read_text())[port].get(part, {})
        return {name: str(value) for name, value in found.items()}

    def uplinks(self) -> frozenset[str]:
        """The ports that the machine itself needs."""
        return frozenset(name for name, one in json.loads(self.file.read_text()).items() if one.get("uplink"))

    def set_port(self, port: str, part: Part, values: Mapping[str, str]) -> None:
        """Set it, unless the port refuses or is deaf."""
        ports = json.loads(self.file.read_text())
        one = ports[port]
        if part not in one or one.get("refuses") == part:
            raise HostError(f"port {port}: {part} cannot be set (Operation not supported)")
        if one.get("deaf") != part:
            one[part] |= {name: int(value) if value.isdecimal() else value for name, value in values.items()}
            self.file.write_text(json.dumps(ports))


class Made:
    """A made-up machine, and the file that remembers."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        for name, text in FILES.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.file = folder / "ports.json"
        self.ports = {name: copy.deepcopy(PORT) for name in ("eth0", "eth1")} | {"veth1": {}}
        self.change("eth0", uplink=True)
        self.machine = MadeMachine(self.root, self.file)
        self.path = folder / "run" / "host" / "found.json"

    @property
    def ports(self) -> dict[str, Any]:
        """What the kernel knows, by port."""
        found: dict[str, Any] = json.loads(self.file.read_text())
        return found

    @ports.setter
    def ports(self, ports: dict[str, Any]) -> None:
        self.file.write_text(json.dumps(ports))

    def change(self, port: str, **changed: Any) -> None:
        """Have the kernel know something else of a port."""
        ports = self.ports
        ports[port] |= changed
        self.ports = ports

    def state(self) -> dict[str, Any]:
        files = {name: (self.root / name).read_text().strip() for name in FILES}
        return {**files, **self.ports}

    @contextmanager
    def as_this_machine(self) -> Iterator[None]:
        """Have `natgauge host` look at it for as long as the block lasts."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tuner, "TunedMachine", lambda: self.machine)
            for function in (tuner.tune, tuner.restore):
                patch.setitem(function.__kwdefaults__ or {}, "path", self.path)
            patch.setattr(tuner.read, "__defaults__", (self.path,))
            yield

    def check(self, *ports: str) -> list[Any]:
        """What is found of each setting, of all ports unless these are named."""
        return [SimpleNamespace(**one) for one in self._told(ports)["findings"]]

    def tuned(self) -> list[tuple[str, str]]:
        """Knob and key of each setting that is to be put back."""
        return [(one["knob"], one["key"]) for one in self._told(("eth1",))["tuned"]]

    def tune(self, *ports: str) -> dict[tuple[str, str], Step]:
        """Set what can be better; what was done by knob and key."""
        return _steps("tune", *(("--ports", ",".join(ports)) if ports else ()))

    def restore(self, *, force: bool = False) -> dict[tuple[str, str], Step]:
        """Put everything back; what was done by knob and key."""
        return _steps("restore", *(("--force",) if force else ()))

    def _told(self, ports: Sequence[str]) -> Any:
        status, text = _printed("check", "--json", *(("--ports", ",".join(ports)) if ports else ()))
        told = json.loads(text)
        assert status == any(one["state"] != "ok" for one in told["findings"])
        return told


class Step(NamedTuple):
    """What became of a setting."""

    done: str
    text: str


def _printed(*words: str) -> tuple[int, str]:
    with redirect_stdout(io.StringIO()) as printed:
        status = run(["host", *words])
    return status, printed.getvalue()


def _steps(*words: str) -> dict[tuple[str, str], Step]:
    status, text = _printed(*words)
    lines = [re.split(r" {2,}", line, maxsplit=3) for line in text.splitlines()]
    assert status in {0, 3}
    if len(lines) == 1 and len(lines[0]) == 1:
        assert status == 0, "nothing was to do"
        return {}
    steps = {(knob, key): Step(done, said) for done, knob, key, said in lines}
    assert (status == 3) == any(step.done in {"changed", "failed"} for step in steps.values())
    return steps


class Memory:
    """Remembers settings of the machine as the register of a lab does."""

    def __init__(self) -> None:
        self.known: dict[Path, str] = {}

    def remember_global(self, path: str | Path, value: str) -> None:
        assert Path(path).read_text().strip() == value, "remembered before it is changed"
        self.known.setdefault(Path(path), value)

    def confirm_global(self, path: str | Path, value: str) -> None:
        assert Path(path).read_text().strip() == value, "the value that was accepted"

    def share_global(self, path: str | Path, value: str) -> None:
        """As `natgauge.host.settings.Remembers`: no other lab changes anything here."""

    def value_set(self, _path: str | Path) -> str | None:
        """As `natgauge.host.settings.Remembers`: no other lab has set anything."""
        return None

    def undo(self) -> None:
        """Put back what was found first."""
        for path, value in self.known.items():
            path.write_text(value)
        self.known.clear()


def machine_setting(path: Path) -> LocalSetting:
    """A setting of the machine that is in this file; whoever writes it relies on it."""
    return LocalSetting("table_size", [path], memory=Memory)


def undoing(register: Register) -> list[str]:
    """Undo a lab; return what was done."""
    done: list[str] = []
    register.undo(done.append)
    return done
