# SPDX-License-Identifier: Apache-2.0
"""The knobs of the machine: of its cores, of the interrupts of ports, and of each port, such as its queues.

One class per setting, all behind one interface (`TuningKnob`), and the machine as knobs use it. Unlike
`natgauge.host.settings`, which a gateway needs changed while it runs, these stay set until `restore`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from socket import if_nameindex
from typing import ClassVar, Final

from natgauge.errors import HostError
from natgauge.finding import Finding
from natgauge.host import network_ports, process_files
from natgauge.host.network_ports import FIXED, FLOWS, OFFLOADS, Part, uplink_names
from natgauge.inputs.measuring_types import parse_cores


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedSetting(Finding):
    """The finding on one setting, named as its knob; a warning if there is a better value, or if it cannot be read.

    Attributes:
        value: present value; None = this machine has no such setting, or it cannot be read.
        better: value to measure with; None = the present one, or not known.
    """

    value: str | None = None
    better: str | None = None
    source: str

    @property
    def key(self) -> str:
        """The setting among those of its knob; "-" = the knob could not be looked at."""
        return self.at or "-"


class TuningKnob(ABC):
    """A kind of setting of the tester machine, such as the clock governor: how to read, judge and change it.

    Attributes:
        moves_interrupts: whether its change takes interrupts to other cores, or makes them anew.
        is_of_port: whether the first word of its keys is a port; False = its settings are the machine's.
    """

    name: str
    why: str
    source: str
    moves_interrupts: ClassVar[bool] = False
    is_of_port: ClassVar[bool] = False

    @abstractmethod
    def find(self, machine: TunedMachine, ports: Sequence[str]) -> Iterator[CheckedSetting]:
        """Every setting of this kind: of the machine, or of these ports; HostError if it cannot be looked at."""

    @abstractmethod
    def read(self, machine: TunedMachine, key: str) -> str | None:
        """The present value; None = it is gone. HostError if it cannot be looked at."""

    @abstractmethod
    def put(self, machine: TunedMachine, key: str, value: str) -> None:
        """Set it; HostError if the kernel or the driver refuses."""

    def port_of(self, key: str) -> str | None:
        """Return the port of a setting; None = it is one of the machine."""
        return key.split(maxsplit=1)[0] if self.is_of_port else None

    def found(self, key: str, value: str | None, better: str | None = None, remark: str = "") -> CheckedSetting:
        """Return the finding on a setting with this value; of one that the machine does not have, the remark."""
        text = value if better is None else f"{value}; better: {better}"
        return CheckedSetting(
            name=self.name,
            state="ok" if better is None else "warning",
            what=remark if text is None else f"{text} ({remark})" if remark else text,
            at=key,
            cause=self.why,
            value=value,
            better=better,
            source=self.source,
        )


@dataclass(frozen=True, slots=True)
class TunedMachine:
    """The machine whose knobs are read and set; tests use a simulated machine."""

    root: Path = Path("/")

    def path(self, path: str) -> Path:
        """Return the path of a file of this machine."""
        return self.root / path.lstrip("/")

    def text(self, path: str) -> str | None:
        """Return a file's text, stripped; None = it cannot be read."""
        try:
            return self.path(path).read_text().strip()
        except OSError:
            return None

    def write(self, path: str, value: str) -> None:
        """Set a file."""
        try:
            self.path(path).write_text(value)
        except OSError as error:
            raise HostError(f"{path}: cannot be set to {value} ({error.strerror})") from error

    def port_values(self, port: str, part: network_ports.Part) -> Mapping[str, str]:
        """Return the values of a part of a port's settings by name, or nothing; HostError if it cannot be read."""
        return network_ports.read(port, part) or {}

    def set_port(self, port: str, part: network_ports.Part, values: Mapping[str, str]) -> None:
        """Set values of a part of a port's settings."""
        network_ports.write(port, part, values)

    def cpus(self) -> tuple[int, ...]:
        """Cores that the kernel runs on now."""
        return parse_cores(self.text("/sys/devices/system/cpu/online") or "0")

    def uplinks(self) -> frozenset[str]:
        """Ports that have the default route, also by way of a bond, a bridge or a VLAN above them."""
        return uplink_names()

    def has_port(self, port: str) -> bool:
        """Whether there is such an interface."""
        return self.path(f"/sys/class/net/{port}").is_dir()

    def hides_port(self, port: str) -> bool:
        """Whether there is such an interface, though /sys was mounted in another network namespace and lacks it."""
        return self.root == Path("/") and not self.has_port(port) and any(port == name for _, name in if_nameindex())


_GOVERNOR: Final = "performance"


class Governor(TuningKnob):
    """The governor of each core's clock frequency."""

    name = "governor"
    why = "a core that slows down between trials is slow at the beginning of each, and two runs differ"
    source = "Linux: admin-guide/pm/cpufreq; a constant test system, RFC 8219 section 5"

    def find(self, machine: TunedMachine, _ports: Sequence[str]) -> Iterator[CheckedSetting]:
        """Yield one setting for each core whose frequency the kernel may lower."""
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

    def find(self, machine: TunedMachine, _ports: Sequence[str]) -> Iterator[CheckedSetting]:
        """Yield the machine's only SMT switch."""
        value = self.read(machine, "machine")
        if value is None or value.startswith("not"):
            yield self.found("machine", None, remark="no two threads share a core here")
        else:
            yield self.found("machine", value, "off" if value == "on" else None)

    def read(self, machine: TunedMachine, _key: str) -> str | None:
        """Return "on", "off", "forceoff", "notsupported" or "notimplemented"."""
        return machine.text(_SMT)

    def put(self, machine: TunedMachine, _key: str, value: str) -> None:
        """Switch; cores go offline, or come back."""
        machine.write(_SMT, value)


class IrqAffinity(TuningKnob):
    """Pins each interrupt of a port to one core, and interrupts of its queues to different cores."""

    name = "irq-affinity"
    is_of_port = True
    why = "an interrupt that moves takes its queue's frames to another core, away from the caches, within a trial"
    source = "Linux: core-api/irq/irq-affinity; networking/scaling, RSS IRQ configuration"

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
            single = all(value.isdecimal() for value in known.values())
            apart = single and len(set(known.values())) >= min(len(known), len(cores))
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
    for process in machine.path("/proc").glob("[0-9]*"):
        # It may have ended since the folder was listed.
        with suppress(OSError):
            if process_files.name_of(process) == "irqbalance":
                return "irqbalance runs and will move it again; run: systemctl stop irqbalance"
    return ""


#: Fields of a frame that choose its queue: addresses and ports of both ends, in the letters of ethtool.
_HASHED: Final = "sdfn"
#: Drivers that refuse an XDP program with more than half of the queues that they could have (ena_xdp_allowed).
_HALVED: Final = frozenset({"DRIVER=ena"})


class PortKnob(TuningKnob):
    """A part of the settings of a port, in words such as "rx 1 tx 1"; most drivers take the link down and up for it."""

    is_of_port = True
    part: Part
    absent: str

    def find(self, machine: TunedMachine, ports: Sequence[str]) -> Iterator[CheckedSetting]:
        """Yield each port's settings with their present and better values."""
        for key in (key for port in ports for key in self.keys(port)):
            value = self.read(machine, key)
            if not value:
                yield self.found(key, None, remark=self.absent)
                continue
            better = self.better(machine, key, value)
            yield self.found(key, value, None if better == value else better, self.remark(machine, key))

    def keys(self, port: str) -> Sequence[str]:
        """Return the keys of this knob's settings of a port; the port's name where it has one setting."""
        return (port,)

    def remark(self, _machine: TunedMachine, _key: str) -> str:
        """Return further information on a setting for people; empty = none."""
        return ""

    @abstractmethod
    def better(self, machine: TunedMachine, key: str, value: str) -> str:
        """The value to measure with; the present one where it is as good."""

    def read(self, machine: TunedMachine, key: str) -> str | None:
        """Return the values in words; what the driver does not have is left out."""
        return _in_words(machine.port_values(key, self.part)) or None

    def put(self, machine: TunedMachine, key: str, value: str) -> None:
        """Set the values; `value` as `read` returns it."""
        words = value.split()
        machine.set_port(key, self.part, dict(zip(words[::2], words[1::2], strict=True)))


def _in_words(values: Mapping[str, object]) -> str:
    return " ".join(f"{name} {value}" for name, value in values.items())


class _SplitKnob(PortKnob):
    """A part whose values are settings of their own; the key has the port and the value's name, one of `names`."""

    names: Iterable[str]

    def keys(self, port: str) -> Sequence[str]:
        return [f"{port} {name}" for name in self.names]

    def read(self, machine: TunedMachine, key: str) -> str | None:
        port, name = key.split()
        return machine.port_values(port, self.part).get(name)

    def put(self, machine: TunedMachine, key: str, value: str) -> None:
        port, name = key.split()
        machine.set_port(port, self.part, {name: value})


class Queues(PortKnob):
    """Number of receive and transmit queues of a port (its channels)."""

    name = "queues"
    moves_interrupts = True
    part = "queues"
    why = "with fewer queues than cores some cores receive nothing and the others limit the tester"
    source = "Linux: networking/scaling, RSS configuration"
    absent = "its driver has no queues to choose"

    def better(self, machine: TunedMachine, key: str, _value: str) -> str:
        """Return the number of cores, or the most that the port has with an XDP program where that is smaller."""
        most, cores = machine.port_values(key, "most queues"), len(machine.cpus())
        facts = machine.text(f"/sys/class/net/{key}/device/uevent") or ""
        part = 2 if _HALVED & set(facts.splitlines()) else 1
        return _in_words({kind: min(cores, max(1, int(most[kind]) // part)) for kind in self._present(machine, key)})

    def read(self, machine: TunedMachine, key: str) -> str | None:
        """For example "combined 4", or "rx 1 tx 1"."""
        return _in_words(self._present(machine, key)) or None

    def _present(self, machine: TunedMachine, port: str) -> Mapping[str, str]:
        # The queues of a tap are those of the program that holds it.
        if machine.text(f"/sys/class/net/{port}/tun_flags") is not None:
            return {}
        most = machine.port_values(port, "most queues")
        found = {kind: now for kind, now in machine.port_values(port, self.part).items() if int(most.get(kind, 0))}
        # A driver that could have queues of both ways, and of each way, refuses or adds these beside those (ice, bnxt).
        return {kind: now for kind, now in found.items() if int(now)} or found


class FlowHash(_SplitKnob):
    """Fields of a UDP frame that choose its queue (receive side scaling), in ethtool's letters."""

    name = "rss"
    part = "hash"
    names = FLOWS
    why = "frames of two addresses and many ports all fall into one queue unless ports are hashed, too"
    source = "Linux: networking/scaling; pseudorandom ports, RFC 4814 section 4"
    absent = "its driver does not report what it hashes"

    def better(self, _machine: TunedMachine, _key: str, value: str) -> str:
        """Return the fields for measurements: addresses and ports."""
        return value if set(value) == set(_HASHED) else _HASHED

    def put(self, machine: TunedMachine, key: str, value: str) -> None:
        """Set the fields."""
        if not value:
            raise HostError(f"{self.name}: {key} cannot hash nothing")
        super().put(machine, key, value)


class Coalescing(PortKnob):
    """Whether a port changes with the load for how long it collects frames before it interrupts."""

    name = "coalescing"
    part = "coalescing"
    why = "a port that adapts its wait to the load makes the delay of one trial unlike that of the next"
    source = "Linux: networking/ethtool-netlink, COALESCE_GET; delays, RFC 8219 sections 7.2 and 7.3"
    absent = "its driver does not adapt when it interrupts"

    def better(self, _machine: TunedMachine, _key: str, value: str) -> str:
        """A wait that stays; how long it is depends on the rate, and is left as it is."""
        return value.replace(" on", " off")

    def remark(self, machine: TunedMachine, key: str) -> str:
        """Return the wait of the port, as a remark."""
        wait = self.wait(machine, key)
        return f"each delay may include {wait} us of it: ethtool -C {key} rx-usecs" if wait else ""

    def wait(self, machine: TunedMachine, key: str) -> int | None:
        """Return the wait of the port in us; None = its driver does not report it."""
        usecs = machine.port_values(key, self.part).get("rx-usecs")
        return None if usecs is None else int(usecs)

    def read(self, machine: TunedMachine, key: str) -> str | None:
        """For example "adaptive-rx on adaptive-tx off"."""
        values = machine.port_values(key, self.part).items()
        return _in_words({name: value for name, value in values if name.startswith("adaptive")}) or None


class Pause(PortKnob):
    """Whether a port obeys PAUSE frames and sends them (flow control)."""

    name = "pause"
    part = "pause"
    why = "with flow control, frames that the device has no room for wait instead of being lost"
    source = "IEEE 802.3 annex 31B; loss decides a trial, RFC 2544 section 26.1 and RFC 8219 section 7.1"
    absent = "it has no flow control"

    def better(self, _machine: TunedMachine, _key: str, value: str) -> str:
        """Off, and not what the other end would negotiate."""
        return "autoneg off rx off tx off" if " on" in value.removeprefix("autoneg on") else value


class Offloads(_SplitKnob):
    """Whether a port removes VLAN tags, drops frames and joins frames that it receives, before a program sees them."""

    name = "offloads"
    part = "offloads"
    names = OFFLOADS
    why = (
        "a port that removes VLAN tags, drops frames of other VLANs or joins frames hands the tester other frames than "
        "came over the link"
    )
    source = "Linux: networking/segmentation-offloads; XDP programs see frames after these offloads"
    absent = "its driver has no such offload"

    def better(self, machine: TunedMachine, key: str, value: str) -> str:
        """Off, unless the driver fixes it."""
        fixed = (super().read(machine, key) or "").endswith(FIXED)
        return value if fixed else "off"

    def read(self, machine: TunedMachine, key: str) -> str | None:
        """Return "on" or "off"."""
        value = super().read(machine, key)
        return None if value is None else value.removesuffix(FIXED)


class EnergySaving(PortKnob):
    """Whether a link sleeps between frames (Energy Efficient Ethernet)."""

    name = "eee"
    part = "eee"
    why = "a link that sleeps between frames delays the frame that wakes it by microseconds"
    source = "IEEE 802.3 clause 78"
    absent = "its link cannot sleep"

    def better(self, _machine: TunedMachine, _key: str, _value: str) -> str:
        """Off."""
        return "off"

    def read(self, machine: TunedMachine, key: str) -> str | None:
        """Return "on" or "off"."""
        return machine.port_values(key, self.part).get("eee")

    def put(self, machine: TunedMachine, key: str, value: str) -> None:
        """Switch it."""
        machine.set_port(key, self.part, {"eee": value})
