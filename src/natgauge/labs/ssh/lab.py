# SPDX-License-Identifier: Apache-2.0
"""The `ssh` lab: real ports here, and between them devices on other machines, which are worked on over OpenSSH.

A segment is one of these machines, with the neighbouring devices of the chain that work on it.
"""

from __future__ import annotations

import re
import secrets
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, Self

from natgauge.device_work import CoreWork, WorkByCore
from natgauge.errors import BrokenError, HostError, NatgaugeError, UsageError
from natgauge.host.programs import SECTION, sections_of
from natgauge.inputs.input import wrong
from natgauge.inputs.measuring_types import format_cores
from natgauge.interruption import uninterrupted
from natgauge.labs.common.addresses import pool_parameter, prefix_parameter
from natgauge.labs.common.links import (
    COUNTER_FILES,
    End,
    counters_of,
    neighbour_limits,
    of_one_machine,
    queues_shown,
    read_drops,
)
from natgauge.labs.common.locks import check_name, directory_of
from natgauge.labs.common.port_options import BootCommand
from natgauge.labs.common.register import Register
from natgauge.labs.contract import Device, DeviceCores, FarSettings, Ground, Lab, LabCounters, LabNeeds, Port
from natgauge.labs.netns.lab import NetnsLab, arguments_of
from natgauge.labs.ssh import bsd, facts
from natgauge.labs.ssh.facts import Layout, RemoteFacts, layout, private_directory, refuse_unfit
from natgauge.labs.ssh.remote import Remember, Remote, RemoteDevice, RemoteMachine, SshHost, control_of
from natgauge.labs.wire.lab import GRACE_SECONDS, WireLab
from natgauge.words import EACH_ITS_OWN, Placement


@dataclass(frozen=True, slots=True)
class ChosenMachine:
    """A machine as the user names it, with its number of devices, neighbours in the chain; None = all."""

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
    f"echo '{SECTION}{name}'; cat /proc/net/{name} 2> /dev/null || true\n" for name in ("dev", *COUNTER_FILES)
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
        """Look at the machine, take it and make its devices; `cores` processors must be online, None = any number."""
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


#: More cores than any machine has.
_CORES_APART: Final = 10_000


def numbered_apart(every: Sequence[tuple[str, WorkByCore]]) -> dict[int, CoreWork]:
    """Return the work of the cores of several machines, each with its devices.

    The number of a core of machine k, from 0, is k * `_CORES_APART` + its own number.
    """
    return {
        at * _CORES_APART + core: CoreWork(of_core.frames, of_core.busy_seconds, name)
        for at, (name, work_of) in enumerate(every)
        for core, of_core in work_of.items()
    }


#: Twisted pair takes about three seconds to agree on a speed, and a bridge on the way listens longer.
_CARRIER_SECONDS: Final = 10.0
_INTERFACE: Final = re.compile(r"[A-Za-z0-9_.-]{1,15}")


class RemoteLab(Lab):
    """Devices in namespaces of other machines, whose own interfaces are cabled to ports of this one and to each other.

    One machine has all devices of a chain, or each has neighbouring ones. OpenBSD and FreeBSD have no such namespaces:
    there the machine itself is the only device.

    The addresses are those of the `netns` lab. Global settings (the size of the connection table ...) are set on the
    machines and restored at the end.
    """

    kind: ClassVar[str] = "ssh"
    placement: Placement = "external"
    grace_seconds = GRACE_SECONDS

    def __init__(  # noqa: PLR0913 - one argument per choice, all but the name by keyword
        self,
        name: str,
        need: LabNeeds,
        *,
        machines: Sequence[ChosenMachine],
        ports: tuple[tuple[str, str | None], tuple[str, str | None]],
        sender_cpus: Sequence[int] | None = None,
        allow_addresses: bool = False,
        device_cores: int | None = None,
        boot: BootCommand | None = None,
        tune_device: bool = False,
    ) -> None:
        """Plan the lab; nothing is looked at before the `with` block but the ports' MTU.

        Choices are as in `SshOptions`. The `machines` are in order from the Initiator to the Responder, and have all
        devices together; each must have `device_cores` processors online (None = any number), and `boot` boots them if
        one has not. `ports` are the tester's: interface, and the namespace that holds it.
        """
        self.name = check_name(name)
        for machine in machines:
            _refuse_interfaces(machine)
        # A lab of namespaces is the blueprint: the same addresses and the same environment of the snippets.
        self._blueprint = NetnsLab(name, **arguments_of(need))
        ground = self._blueprint.ground
        gateways = (str(ground.inside.device), str(ground.outside.device))
        self.initiator, self.responder = (
            Port(interface, netns, None, gateway) for (interface, netns), gateway in zip(ports, gateways, strict=True)
        )
        self._ports = WireLab(
            self.initiator,
            self.responder,
            name=name,
            families=need.families,
            sender_cpus=sender_cpus,
            allow_addresses=allow_addresses,
        )
        self.sender_cpus = self._ports.sender_cpus
        tester = re.sub("[^A-Za-z0-9.-]", "-", socket.gethostname())
        token = f"{tester}:{name}:{secrets.token_hex(8)}"
        self._segments = self._planned(machines, need.far_settings, token)
        self.devices: Sequence[Device] = [home for segment in self._segments for home in segment.homes]
        if boot is not None and device_cores is None:
            raise wrong("boot_command", "the number of processors is missing; give --device-cores N, too")
        self._wanted_cores = device_cores
        self._boot = boot
        self._tunes = tune_device
        self._boot_seconds: float | None = None
        self._register: Register | None = None

    def _planned(self, machines: Sequence[ChosenMachine], far: FarSettings | None, token: str) -> tuple[Segment, ...]:
        """Plan the devices of each machine; nothing is sent."""
        limits = dict(neighbour_limits(self._blueprint.families, self._blueprint.hosts))
        segments: list[Segment] = []
        first = 0
        for at, chosen in enumerate(machines):
            count = len(self._blueprint.devices) if chosen.devices is None else chosen.devices
            devices = self._blueprint.devices[first : first + count]
            cables = self._blueprint.cables[first : first + count + 1]
            laid = layout(self.name, [device.name for device in devices], cables, chosen.interfaces)
            remember = partial(self._remember, at)
            remote = Remote(chosen.host, f"{token}:{at}", control_of(directory_of(self.name), at))
            machine = RemoteMachine(remote, remember)
            homes = tuple(_home(device, *ends, machine) for device, ends in zip(devices, laid.ends, strict=True))
            segments.append(Segment(remote, laid, homes, machine, remember, far, limits))
            first += count
        return tuple(segments)

    @property
    def device_cores(self) -> DeviceCores:
        """The processors of the machines that are online; not known before the `with` block.

        Of several machines it is the number of each if all have the same number, otherwise the sum of all.
        """
        known = [segment.facts for segment in self._segments if segment.facts is not None]
        if len(known) == len(self._segments) == 1:
            return DeviceCores.of(known[0].cpus, known[0].caches)
        numbers = [segment.cores for segment in self._segments]
        if not all(numbers):
            # Not looked at yet, or a machine that does not report them.
            return DeviceCores()
        return DeviceCores(numbers[0] if len({*numbers}) == 1 else sum(numbers))

    @property
    def ground(self) -> Ground:
        """The address plan of our own labs; frames are as long as the ports carry."""
        return replace(self._blueprint.ground, mtu=self._ports.ground.mtu)

    def keep(self) -> None:
        """Refuse to keep the lab up."""
        raise UsageError(f"lab {self.name}: another machine is taken only while it is measured; it cannot be kept up")

    def parameters(self) -> Mapping[str, Any]:
        """Ports and links, and what the devices' machines are."""
        ports = {name: value for name, value in self._ports.parameters().items() if name != "fresh_trials"}
        boot = {} if self._boot is None else {**self._boot.parameters(), "boot_took_seconds": self._boot_seconds}
        tuned = {"tune_device": True} if self._tunes else {}
        refused = [remark for segment in self._segments for remark in segment.remarks]
        remarks = {"device_remarks": refused} if refused else {}
        plan = {**prefix_parameter(self._blueprint.nat64_prefix), **pool_parameter(self._blueprint.pool)}
        return {**ports, **plan, **self._division(), **self._of_machines(), **boot, **tuned, **remarks}

    def _division(self) -> dict[str, Any]:
        """Return how the processors are divided among the devices; empty for a single machine."""
        if len(self._segments) == 1:
            return {}
        numbers = {segment.name: segment.cores or None for segment in self._segments}
        alike = len({*numbers.values()}) == 1 and len(numbers) == len(self.devices)
        return {"cores_of_devices": EACH_ITS_OWN if alike else numbers}

    def _of_machines(self) -> dict[str, Any]:
        """Return the facts and settings of the machines: of several that differ, by the names of the devices."""
        known = {segment.name: _facts_of(segment) for segment in self._segments}
        names = dict.fromkeys(name for values in known.values() for name in values)
        found = {}
        for name in names:
            each = {device: values.get(name) for device, values in known.items()}
            first, *others = each.values()
            found[name] = first if all(value == first for value in others) else each
        return found

    def up(self) -> Self:
        """Take ports and machines, and lay the devices there; when that fails half way, it is undone."""
        self._register = register = Register.begin(self.name, self.kind, self._settings())
        try:
            register.make_directory(register.directory)
            self._prepare(register)
            self._boot_machine()
            self._ports.take()
            for segment in self._segments:
                segment.lay(self._ports.ground.mtu, self._wanted_cores, tunes=self._tunes)
            self._ports.await_carrier(_CARRIER_SECONDS)
        except BaseException as error:
            self._down_after(error)
            raise
        return self

    def _settings(self) -> Mapping[str, Any]:
        hosts = [segment.host for segment in self._segments]
        configs = [None if host.config is None else str(Path(host.config).absolute()) for host in hosts]
        named = [asdict(replace(host, config=config)) for host, config in zip(hosts, configs, strict=True)]
        return {"hosts": named, "tokens": [segment.remote.token for segment in self._segments]}

    def _prepare(self, register: Register) -> None:
        """Make what must exist before the machines are reached."""

    def _boot_machine(self) -> None:
        """Boot the machines if one has another number of processors online than each shall have.

        They are taken before, so that no other natgauge uses them. A reboot ends that, and `Segment.lay` takes them
        again.
        """
        wanted, boot = self._wanted_cores, self._boot
        if boot is None or all(len(segment.look().cpus) == wanted for segment in self._segments):
            return
        for segment in self._segments:
            segment.take()

        def why_not_back() -> str:
            return next(filter(None, (segment.other_processors(wanted) for segment in self._segments)), "")

        self._boot_seconds = boot.run(wanted, why_not_back)

    def _remember(self, at: int, undo: str, says: str) -> None:
        """Write down what undoes something on machine `at`, from 0."""
        if self._register is not None:
            self._register.record("remote", undo=undo, says=says, at=str(at))

    @uninterrupted()
    def down(self) -> None:
        """Give back machines and ports; nothing happens when nothing is up."""
        register, self._register = self._register, None
        self._ports.down()
        with nullcontext() if register is None else register.ended():
            for segment in self._segments:
                segment.remote.close()
            if register is not None:
                register.undo()

    def dropped(self) -> Mapping[str, int]:
        """Frames dropped so far at the tester's ports and, while the machines answer, at the devices' interfaces."""
        return self._read().dropped

    def counters(self) -> LabCounters:
        """Drops and network stacks, and the work so far of each processor of Linux machines with several.

        The processors of several machines are numbered apart.
        """
        counters = self._read()
        try:
            works = [(segment.name, segment.core_work()) for segment in self._segments]
            return replace(counters, core_work=works[0][1] if len(works) == 1 else numbered_apart(works))
        except (BrokenError, HostError) as error:
            return replace(counters, error=str(error))

    def _read(self) -> LabCounters:
        dropped = dict(self._ports.dropped())
        network: dict[str, Counter[str]] = {}
        for counters in (segment.counters() for segment in self._segments):
            dropped |= counters.dropped
            for device, own in (counters.network or {}).items():
                # Those of no device are of several machines.
                network.setdefault(device, Counter()).update(own)
        return LabCounters(dropped, network=network)

    def __enter__(self) -> Self:
        return self.up()

    def __exit__(self, *exception: object) -> None:
        self._down_after(next((one for one in exception if isinstance(one, BaseException)), None))

    def _down_after(self, error: BaseException | None) -> None:
        """Give all back; after an error, None = there was none, the user must read it, and what is left follows it."""
        try:
            self.down()
        except NatgaugeError as left:
            if error is None:
                raise
            error.add_note(str(left))


def _refuse_interfaces(machine: ChosenMachine) -> None:
    for interface in machine.interfaces:
        if not _INTERFACE.fullmatch(interface):
            raise UsageError(
                f"ssh host {machine.host}: {interface!r} is no interface; name one as `ip link` there does",
                at="ssh_host",
            )
    if machine.interfaces[0] == machine.interfaces[1]:
        raise UsageError(
            f"ssh host {machine.host}: interface {machine.interfaces[0]} is named for both sides; name two of them",
            at="ssh_host",
        )


def _home(device: Device, inside: End, outside: End, machine: RemoteMachine) -> RemoteDevice:
    own = {"NG_WORK": private_directory(device.name), "NG_INSIDE": inside.interface, "NG_OUTSIDE": outside.interface}
    environment = {**device.environment, **own}
    return RemoteDevice(device.name, inside.netns, inside.interface, outside.interface, environment, machine)


def _facts_of(segment: Segment) -> dict[str, Any]:
    facts = segment.facts
    if facts is None:
        return {}
    kernel = facts.kernel if facts.system == "Linux" else f"{facts.system} {facts.kernel}"
    return {"device_kernel": kernel, "device_cpu": facts.cpu or None, **segment.settings}
