# SPDX-License-Identifier: Apache-2.0
"""One machine of the `ssh` lab, with the neighbouring devices of the chain that work on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from natgauge.core_work import CoreWork, WorkByCore
from natgauge.errors import BrokenError, HostError
from natgauge.host.sections import SECTION, sections_of
from natgauge.inputs.checks import wrong
from natgauge.inputs.cores import format_cores
from natgauge.labs.common.links import VethCable, read_drops
from natgauge.labs.common.network_counters import FILES, counters_of, of_one_machine, queues_shown
from natgauge.labs.contract import Device, FarSettings, LabCounters
from natgauge.labs.ssh import bsd, facts
from natgauge.labs.ssh.facts import RemoteFacts, refuse_unfit
from natgauge.labs.ssh.layout import Layout, layout, private_directory
from natgauge.labs.ssh.openssh import SshHost
from natgauge.labs.ssh.remote import Remember, Remote, RemoteDevice, RemoteMachine


@dataclass(frozen=True, slots=True)
class ChosenMachine:
    """A machine as the user names it.

    Attributes:
        devices: number of devices on it, which are neighbours in the chain; None = all.
    """

    host: SshHost
    interfaces: tuple[str, str]
    devices: int | None = None


@dataclass(frozen=True, slots=True)
class SystemWork:
    """Inspection and changes of a machine of one operating system."""

    script: Callable[[Sequence[str]], str]
    read: Callable[[str], RemoteFacts]
    make: Callable[[Layout, RemoteFacts], str]
    undo: Callable[[Layout, RemoteFacts], str]


#: Counters of dropped frames, which BSD does not have.
_COUNTERS: Final = "".join(
    f"echo '{SECTION}{name}'; cat /proc/net/{name} 2> /dev/null || true\n" for name in ("dev", *FILES)
)
_QUEUES: Final = f"echo '{SECTION}qdisc'; tc -s qdisc show 2> /dev/null || true\n"
_WORK: Final = f"""echo '{SECTION}softnet'; cat /proc/net/softnet_stat
echo '{SECTION}stat'; grep '^cpu[0-9]' /proc/stat
"""
#: Column of the processor's number in /proc/net/softnet_stat (net/core/net-procfs.c), since Linux 5.10.
_NUMBER: Final = 12
#: Units of /proc/stat per second: USER_HZ, which is 100 on every architecture (proc(5)).
_TICKS: Final = 100
#: Columns of idle time in /proc/stat after the name: idle, iowait; the time of guests is part of the user time.
_IDLE: Final = (3, 4)
_COLUMNS: Final = 8
_LINUX: Final = SystemWork(facts.script, facts.read, Layout.make, Layout.undo)
_BSD: Final = SystemWork(bsd.script, bsd.read, bsd.make, bsd.undo)


def work_of(system: str) -> SystemWork:
    """Return the work for a system by its `uname -s`; an unknown system is inspected like Linux, and refused then."""
    return _BSD if system.endswith("BSD") else _LINUX


@dataclass(slots=True)
class Segment:
    """A machine, locked by the lab, and its devices.

    Attributes:
        far: settings that decide which core works on a frame: how they are read and set; None = they are left alone.
        limits: least values of the neighbour limits of a Linux machine, by their files, the first to be set first.
    """

    remote: Remote
    layout: Layout
    homes: tuple[RemoteDevice, ...]
    machine: RemoteMachine
    remember: Remember
    far: FarSettings | None
    limits: Mapping[str, int]
    facts: RemoteFacts | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    _work: SystemWork = _LINUX

    @classmethod
    def of(  # noqa: PLR0913 - one argument per part, all by keyword
        cls,
        *,
        lab: str,
        token: str,
        control: Path,
        chosen: ChosenMachine,
        devices: Sequence[Device],
        cables: Sequence[VethCable],
        remember: Remember,
        far: FarSettings | None,
        limits: Mapping[str, int],
    ) -> Segment:
        """Plan the devices of a machine; nothing is sent."""
        remote = Remote(chosen.host, token, control)
        machine = RemoteMachine(remote, remember)
        laid = layout(lab, [device.name for device in devices], cables, chosen.interfaces)
        homes = tuple(
            RemoteDevice(
                device.name,
                inside.netns,
                inside.interface,
                outside.interface,
                {
                    **device.environment,
                    "NG_WORK": private_directory(device.name),
                    "NG_INSIDE": inside.interface,
                    "NG_OUTSIDE": outside.interface,
                },
                remote,
                machine,
            )
            for device, (inside, outside) in zip(devices, laid.ends, strict=True)
        )
        return cls(remote, laid, homes, machine, remember, far, limits)

    @property
    def host(self) -> SshHost:
        """The machine."""
        return self.remote.host

    @property
    def name(self) -> str:
        """Names of its devices, joined."""
        return " and ".join(self.layout.names)

    @property
    def cores(self) -> int:
        """Number of processors that are online; 0 = not known."""
        return 0 if self.facts is None else len(self.facts.cpus)

    def take(self) -> None:
        """Take the machine before it is changed."""
        self.remember(":", f"let go of {self.host}")
        self.remote.take()

    def look(self) -> RemoteFacts:
        """Read the facts of the machine."""
        self._work = work_of(self.remote.ask("uname -s").strip())
        return self._work.read(self.remote.ask(self._work.script(self.layout.interfaces)))

    def other_processors(self, wanted: int | None) -> str:
        """Return why the machine is not back with the wanted processors; empty when it is."""
        # A connection from before the reboot would only be noticed as lost after a while.
        self.remote.close()
        try:
            online = len(self.look().cpus)
        except (BrokenError, HostError) as error:
            return str(error)
        return "" if online == wanted else f"it has {online} processors online, not {wanted}"

    def lay(self, mtu: int, cores: int | None, *, tunes: bool) -> None:
        """Look at the machine, take it, and make its devices.

        Args:
            cores: number of processors that must be online; None = any number.
        """
        laid = self.layout
        found = self.look()
        refuse_unfit(found, f"ssh host {self.host}", laid.interfaces, mtu, laid.names)
        self._refuse_other_cores(found, cores)
        self.facts = found
        self.machine.system = found.system
        for home in self.homes:
            home.environment = {**home.environment, "NG_CPUS": format_cores(found.cpus or (0,))}
            if not found.namespaces:
                home.netns = None
        self._read_settings(found, tunes=tunes)
        self.remember(self._work.undo(laid, found), f"gave back {' and '.join(laid.interfaces)} of {self.host}")
        self._make(found)
        self.remote.forgotten = lambda: self._make_again(found, tunes=tunes)

    def _refuse_other_cores(self, found: RemoteFacts, wanted: int | None) -> None:
        if wanted not in (None, len(found.cpus)):
            number = f"{len(found.cpus)} online" if found.cpus else "a number that it does not report"
            raise wrong(
                "device_cores",
                f"{wanted} asked for, ssh host {self.host} has {number}; leave it out, or give --boot-command, which "
                "boots that machine with $NG_CORES processors",
            )

    def _make_again(self, found: RemoteFacts, *, tunes: bool) -> None:
        self._read_settings(found, tunes=tunes)
        self._make(found)

    def _read_settings(self, found: RemoteFacts, *, tunes: bool) -> None:
        """Read the settings of the machine that decide which core works on a frame; set them before, if asked for."""
        if found.system != "Linux" and tunes:
            raise wrong("tune_device", f"ssh host {self.host} runs {found.system}; only Linux is tuned, leave it out")
        if found.system != "Linux" or self.far is None:
            return
        interfaces = self.layout.interfaces
        text = self.remote.ask(self.far.script(interfaces))
        if tunes:
            self.take()
            self.remarks = tuple(self._tune(self.far.changes(text, interfaces)))
            text = self.remote.ask(self.far.script(interfaces))
        self.settings = self.far.values(text, interfaces)

    def _tune(self, changes: Iterable[tuple[str, str, str]]) -> Iterator[str]:
        """Set what is not set for measuring; yield what the machine refused."""
        for what, sets, undoes in changes:
            self.remember(undoes, f"restored {what} on {self.host}")
            result = self.remote.run(sets, 60.0)
            if result.status:
                yield f"{what} could not be set on {self.host}: {result.said or f'exit status {result.status}'}"

    def _make(self, found: RemoteFacts) -> None:
        self.remote.take()
        directories = " ".join(private_directory(name) for name in self.layout.names)
        result = self.remote.run(f"mkdir -p {directories}\n{self._work.make(self.layout, found)}", 60.0)
        if result.status:
            raise HostError(f"ssh host {self.host}: the devices cannot be made there ({result.said})")
        self._raise_neighbour_limits()

    def _raise_neighbour_limits(self) -> None:
        """Raise the limits of a Linux machine's neighbour tables to the tester's number of addresses."""
        if self.machine.system != "Linux":
            return
        for path, least in self.limits.items():
            setting = self.machine.setting("neighbour limit", [path], None)
            if setting.available() and setting.read() < least:
                setting.write(least)

    def counters(self) -> LabCounters:
        """Return the drops at the devices' interfaces and backlogs, and the network stacks' counters, as far as known.

        The backlogs are those of the machine's processors: of several devices on it, it is not known whose they are.
        Only Linux reports counters, and a machine that is gone shows when its device is asked.
        """
        figures: dict[str, int] = {}
        network: dict[str, Mapping[str, int]] = {}
        for home in self.homes if self.machine.system == "Linux" else ():
            with suppress(BrokenError, ValueError):
                texts = sections_of(home.run(_COUNTERS + _QUEUES, timeout=20.0).stdout)
                drops = read_drops("\n".join(texts.pop("dev", ())))
                queues = queues_shown("\n".join(texts.pop("qdisc", ())))
                counters = counters_of(texts)
                network[home.name] = {**counters, **queues}
                if len(self.homes) == 1:
                    figures[f"{home.name} backlog"] = counters["softnet dropped"]
                for interface, side in ((home.inside, "inside"), (home.outside, "outside")):
                    if interface in drops:
                        figures |= drops[interface].at(f"{home.name} {side}")
        return LabCounters(figures, network=of_one_machine(network, len(self.homes)))

    def core_work(self) -> WorkByCore:
        """Work so far of each processor of a Linux machine with several; empty for others."""
        if self.facts is None or self.facts.system != "Linux" or self.cores < 2:
            return {}
        answer = self.remote.run(_WORK, 20.0)
        try:
            return read_work(answer.stdout, self.facts.cpus)
        except ValueError as error:
            raise BrokenError(
                f"ssh host {self.host}: its counts of frames cannot be read ({answer.said or error})"
            ) from error


def read_work(text: str, online: Sequence[int]) -> dict[int, CoreWork]:
    """Return the work of each processor of a Linux machine, from the kernel's own counts.

    Frames are those that the network stack of a processor processed, of all interfaces and namespaces.

    Args:
        online: processors that are online, ascending; an old kernel prints their lines in this order.
    """
    sections = sections_of(text)
    rows = [[int(word, 16) for word in line.split()] for line in sections.get("softnet", ())]
    numbered = rows and all(len(row) > _NUMBER for row in rows)
    numbers = [row[_NUMBER] for row in rows] if numbered else list(online)
    seconds = dict(_busy(sections.get("stat", ())))
    return {number: CoreWork(row[0], seconds.get(number)) for number, row in zip(numbers, rows, strict=True)}


def _busy(lines: Sequence[str]) -> Iterator[tuple[int, float]]:
    """Yield the number of each processor and the seconds in which it was not idle."""
    for line in lines:
        name, *words = line.split()
        ticks = [int(word) for word in words[:_COLUMNS]]
        yield int(name.removeprefix("cpu")), (sum(ticks) - sum(ticks[at] for at in _IDLE)) / _TICKS


def numbered_apart(every: Sequence[tuple[str, WorkByCore]]) -> dict[int, CoreWork]:
    """Return the work of the cores of several machines, each with its devices.

    The number of a core of machine k, from 0, is k * `_MACHINE` + its own number.
    """
    return {
        at * _MACHINE + core: CoreWork(of_core.frames, of_core.busy_seconds, name)
        for at, (name, work_of) in enumerate(every)
        for core, of_core in work_of.items()
    }


#: More cores than any machine has.
_MACHINE: Final = 10_000
