# SPDX-License-Identifier: Apache-2.0
"""The `ssh` lab: real ports here, and between them devices on another machine, which is worked on over OpenSSH."""

from __future__ import annotations

import re
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final, Self

from natgauge.core_work import WorkByCore
from natgauge.errors import BrokenError, HostError, NatgaugeError, UsageError
from natgauge.inputs.types import format_cores
from natgauge.labs.common.addresses import prefix_parameter
from natgauge.labs.common.boot import BootCommand
from natgauge.labs.common.links import neighbour_limits, read_drops
from natgauge.labs.common.locks import check_name, directory_of
from natgauge.labs.common.register import Register
from natgauge.labs.contract import Device, DeviceCores, ExternalDevice, Ground, LabNeeds, Port
from natgauge.labs.netns.lab import NetnsLab
from natgauge.labs.ssh import bsd, facts, tuning, work
from natgauge.labs.ssh.facts import RemoteFacts, refuse_unfit
from natgauge.labs.ssh.layout import Layout, layout, private_directory
from natgauge.labs.ssh.machine import RemoteDevice, RemoteMachine
from natgauge.labs.ssh.openssh import CONTROL, SshHost
from natgauge.labs.ssh.remote import Remote
from natgauge.labs.ssh.tuning import Snapshot
from natgauge.labs.wire.lab import GRACE_SECONDS, WireLab
from natgauge.words import Placement

#: Twisted pair takes about three seconds to agree on a speed, and a bridge on the way listens longer.
_CARRIER_SECONDS: Final = 10.0
_INTERFACE: Final = re.compile(r"[A-Za-z0-9_.-]{1,15}")


class RemoteLab:
    """Devices in namespaces of another machine, whose own interfaces are cabled to ports of this one.

    OpenBSD and FreeBSD have no such namespaces: there the machine itself is the only device.

    The addresses are those of the `netns` lab. The machine's own namespace is not changed, so its connections,
    including natgauge's own, are neither counted nor translated. Global settings (the size of the connection table ...)
    are set there and restored at the end.
    """

    kind: ClassVar[str] = "ssh"
    placement: Placement = "external"
    external: ExternalDevice | None = None
    server: Device | None = None
    device_cpus: tuple[int, ...] = ()
    grace_seconds = GRACE_SECONDS
    virtual = False
    is_reused = False

    def __init__(  # noqa: PLR0913 - one argument per choice, all but the name by keyword
        self,
        name: str,
        need: LabNeeds,
        *,
        host: SshHost,
        interfaces: tuple[str, str],
        ports: tuple[tuple[str, str | None], tuple[str, str | None]],
        sender_cpus: Sequence[int] | None = None,
        allow_addresses: bool = False,
        device_cores: int | None = None,
        boot: BootCommand | None = None,
        tune_device: bool = False,
    ) -> None:
        """Plan the lab; nothing is looked at before the `with` block but the ports' MTU.

        Args:
            name: 1 to 32 of a-z, 0-9 and "-".
            need: requirements on the lab.
            host: the machine.
            interfaces: interfaces of the machine, towards the Initiator and the Responder.
            ports: the tester's: interface, and the namespace that holds it.
            sender_cpus: cores of the tester's senders; default: the first usable one.
            allow_addresses: whether the tester's ports may carry IP addresses, see `WireLab`.
            device_cores: number of processors that the machine must have online; None = any number.
            boot: boots the machine with `device_cores` processors if it has another number online.
            tune_device: whether queues, flow hash and governor of the machine are set for measuring.

        Raises:
            UsageError: a name, core, port or host is wrong.
        """
        self.name = check_name(name)
        self.host = host
        for interface in interfaces:
            if not _INTERFACE.fullmatch(interface):
                raise UsageError(f"ssh host {host}: {interface!r} is no interface; name one as `ip link` there does")
        if interfaces[0] == interfaces[1]:
            raise UsageError(f"ssh host {host}: interface {interfaces[0]} is named for both sides; name two of them")
        # A lab of namespaces is the blueprint: the same addresses and the same environment of the snippets.
        self._blueprint = NetnsLab(
            name,
            initiator_family=need.families[0],
            responder_family=need.families[1],
            devices=need.devices,
            hosts=need.hosts,
            background=need.background,
            nat64_prefix=None if need.nat64_prefix is None else str(need.nat64_prefix),
        )
        self._hosts = need.hosts
        self._layout = layout(name, need.devices, self._blueprint.cables, interfaces)
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
        self.emulated = False
        tester = re.sub("[^A-Za-z0-9.-]", "-", socket.gethostname())
        self._token = f"{tester}:{name}:{secrets.token_hex(8)}"
        self._remote = Remote(self.host, self._token, directory_of(name) / CONTROL)
        self._machine = RemoteMachine(self._remote, self._remember)
        self._homes = tuple(
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
                self._remote,
                self._machine,
            )
            for device, (inside, outside) in zip(self._blueprint.devices, self._layout.ends, strict=True)
        )
        self.devices: Sequence[Device] = self._homes
        self._ways = ways("Linux")
        if boot is not None and device_cores is None:
            raise UsageError("boot command: the number of processors is missing; give --device-cores N, too")
        self._wanted_cores = device_cores
        self._boot = boot
        self._tunes = tune_device
        #: Settings of the machine that decide which core works on a frame, and what could not be set.
        self._device_settings: Mapping[str, object] = {}
        self._device_remarks: tuple[str, ...] = ()
        self._boot_seconds: float | None = None
        self._facts: RemoteFacts | None = None
        self._register: Register | None = None

    @property
    def device_cores(self) -> DeviceCores:
        """The processors of the devices' machine that are online; not known before the `with` block."""
        return DeviceCores() if self._facts is None else DeviceCores.of(self._facts.cpus, self._facts.caches)

    @property
    def ground(self) -> Ground:
        """The address plan of our own labs; frames are as long as the ports carry."""
        return replace(self._blueprint.ground, mtu=self._ports.ground.mtu)

    def keep(self) -> None:
        """Refuse to keep the lab up.

        Raises:
            UsageError: always.
        """
        raise UsageError(f"lab {self.name}: another machine is taken only while it is measured; it cannot be kept up")

    def parameters(self) -> Mapping[str, Any]:
        """Ports and links, and what the device's machine is."""
        facts = self._facts
        kernel = "" if facts is None else facts.kernel if facts.system == "Linux" else f"{facts.system} {facts.kernel}"
        known = {} if facts is None else {"device_kernel": kernel, "device_cpu": facts.cpu or None}
        ports = {name: value for name, value in self._ports.parameters().items() if name != "fresh_trials"}
        boot = {} if self._boot is None else {**self._boot.parameters(), "boot_took_seconds": self._boot_seconds}
        tuned = {"tune_device": True} if self._tunes else {}
        remarks = {"device_remarks": list(self._device_remarks)} if self._device_remarks else {}
        prefix = prefix_parameter(self._blueprint.nat64_prefix)
        return {**ports, **prefix, **known, **boot, **self._device_settings, **tuned, **remarks}

    def up(self) -> Self:
        """Take ports and machine, and lay the devices there; when that fails half way, it is undone.

        Raises:
            HostError: a port or the machine cannot be used, or another natgauge uses one of them.
            UsageError: a port or an interface does not exist or is in use.
        """
        self._register = register = Register.begin(self.name, self.kind, self._settings())
        try:
            register.record("directory", path=str(register.directory))
            register.directory.mkdir(exist_ok=True)
            self._prepare(register)
            self._boot_machine()
            self._ports.take()
            self._lay()
            self._ports.await_carrier(_CARRIER_SECONDS)
        except BaseException:
            with suppress(NatgaugeError):
                self.down()
            raise
        return self

    def _settings(self) -> Mapping[str, Any]:
        """Return the values that are needed to undo the lab."""
        config = None if self.host.config is None else str(Path(self.host.config).absolute())
        return {"host": asdict(replace(self.host, config=config)), "token": self._token}

    def _prepare(self, register: Register) -> None:
        """Make what must exist before the machine is reached."""

    def _boot_machine(self) -> None:
        """Boot the machine if it has another number of processors online than the devices shall have.

        The machine is taken before, so that no other natgauge uses it. A reboot ends that, and `_lay` takes it again.

        Raises:
            HostError: the machine cannot be reached or is in use, the command fails, or the machine is not back.
        """
        wanted, boot = self._wanted_cores, self._boot
        if boot is None or len(self._look().cpus) == wanted:
            return
        self._remember(":", f"let go of {self.host}")
        self._remote.take()
        self._boot_seconds = boot.run(wanted, self._other_processors)

    def _other_processors(self) -> str:
        """Return why the machine is not back with the wanted processors; empty when it is."""
        # A connection from before the reboot would only be noticed as lost after a while.
        self._remote.close()
        try:
            online = len(self._look().cpus)
        except (BrokenError, HostError) as error:
            return str(error)
        return "" if online == self._wanted_cores else f"it has {online} processors online, not {self._wanted_cores}"

    def _look(self) -> RemoteFacts:
        """Read the facts of the machine.

        Raises:
            BrokenError: it cannot be looked at.
            HostError: it cannot be reached.
        """
        self._ways = ways(self._remote.ask("uname -s").strip())
        return self._ways.read(self._remote.ask(self._ways.script(self._layout.interfaces)))

    def _remember(self, undo: str, says: str) -> None:
        """Write down what undoes something over there."""
        if self._register is not None:
            self._register.record("remote", undo=undo, says=says)

    def _lay(self) -> None:
        """Look at the machine, take it, and make the devices."""
        laid = self._layout
        facts = self._look()
        refuse_unfit(facts, f"ssh host {self.host}", laid.interfaces, self._ports.ground.mtu, laid.names)
        self._refuse_other_cores(facts)
        self._facts = facts
        self._machine.system = facts.system
        for home in self._homes:
            home.environment = {**home.environment, "NG_CPUS": format_cores(facts.cpus or (0,))}
            if not facts.namespaces:
                home.netns = None
        self._read_settings(facts)
        self._remember(self._ways.undo(laid, facts), f"gave back {' and '.join(laid.interfaces)} of {self.host}")
        self._make(facts)
        self._remote.forgotten = lambda: self._make_again(facts)
        self._raise_neighbour_limits()

    def _refuse_other_cores(self, facts: RemoteFacts) -> None:
        if self._wanted_cores not in (None, len(facts.cpus)):
            number = f"{len(facts.cpus)} online" if facts.cpus else "a number that it does not report"
            raise UsageError(
                f"device cores: {self._wanted_cores} asked for, ssh host {self.host} has {number}; leave it out, or "
                "give --boot-command, which boots that machine with $NG_CORES processors"
            )

    def _make_again(self, facts: RemoteFacts) -> None:
        """Make the devices on a machine that was rebooted."""
        self._read_settings(facts)
        self._make(facts)

    def _read_settings(self, facts: RemoteFacts) -> None:
        """Read the settings of the machine that decide which core works on a frame; set them before, if asked for.

        Raises:
            HostError: the machine cannot be reached or is in use.
            UsageError: its settings cannot be set.
        """
        if facts.system != "Linux":
            if self._tunes:
                raise UsageError(
                    f"tune device: ssh host {self.host} runs {facts.system}; only Linux is tuned, leave it out"
                )
            return
        interfaces = self._layout.interfaces
        snapshot = Snapshot.read(self._remote.ask(tuning.script(interfaces)))
        if self._tunes:
            self._device_remarks = tuple(self._tune(snapshot))
            snapshot = Snapshot.read(self._remote.ask(tuning.script(interfaces)))
        self._device_settings = snapshot.values(interfaces)

    def _tune(self, snapshot: Snapshot) -> Iterator[str]:
        """Set what is not set for measuring; yield what the machine refused."""
        self._remember(":", f"let go of {self.host}")
        self._remote.take()
        for change in snapshot.changes(self._layout.interfaces):
            self._remember(change.undo, f"restored {change.what} on {self.host}")
            result = self._remote.run(change.set, 60.0)
            if result.status:
                yield f"{change.what} could not be set on {self.host}: {result.said or f'exit status {result.status}'}"

    def _make(self, facts: RemoteFacts) -> None:
        self._remote.take()
        directories = " ".join(private_directory(name) for name in self._layout.names)
        result = self._remote.run(f"mkdir -p {directories}\n{self._ways.make(self._layout, facts)}", 60.0)
        if result.status:
            raise HostError(f"ssh host {self.host}: the devices cannot be made there ({result.said})")

    def _raise_neighbour_limits(self) -> None:
        if self._machine.system != "Linux":
            return
        for path, least in neighbour_limits(self._blueprint.families, self._hosts):
            setting = self._machine.setting("neighbour limit", [path], None)
            if setting.available() and setting.read() < least:
                setting.write(least)

    def down(self) -> list[str]:
        """Give back machine and ports; nothing happens when nothing is up.

        Returns:
            What was done, one sentence each.

        Raises:
            BrokenError: something could not be undone.
            HostError: the machine cannot be reached any more.
        """
        register, self._register = self._register, None
        self._ports.down()
        try:
            self._remote.close()
            return [] if register is None else register.undo()
        finally:
            if register is not None:
                register.release()

    def dropped(self) -> Mapping[str, int]:
        """Frames dropped so far at the tester's ports and, while the machine answers, at the devices' interfaces.

        Raises:
            HostError: a port is gone.
        """
        figures = dict(self._ports.dropped())
        for home in self._homes:
            # A machine that is gone shows when its device is asked.
            with suppress(BrokenError, ValueError):
                drops = read_drops(home.run("cat /proc/net/dev", timeout=20.0).stdout)
                for interface, side in ((home.inside, "inside"), (home.outside, "outside")):
                    if interface in drops:
                        figures[f"{home.name} {side} received"] = drops[interface].received
                        figures[f"{home.name} {side} sent"] = drops[interface].sent
        return figures

    def core_work(self) -> WorkByCore:
        """Work so far of each processor of a Linux machine with several; empty for others.

        Raises:
            BrokenError: the machine's counts cannot be read.
            HostError: the machine cannot be reached.
        """
        if self._facts is None or self._facts.system != "Linux" or len(self._facts.cpus) < 2:
            return {}
        answer = self._remote.run(work.SCRIPT, 20.0)
        try:
            return work.read(answer.stdout, self._facts.cpus)
        except ValueError as error:
            raise BrokenError(
                f"ssh host {self._remote.host}: its counts of frames cannot be read ({answer.said or error})"
            ) from error

    def __enter__(self) -> Self:
        return self.up()

    def __exit__(self, *exception: object) -> None:
        if exception[:1] in {(), (None,)}:
            self.down()
        else:
            # What broke first is what the user must read; what is left `natgauge lab clean` undoes.
            with suppress(NatgaugeError):
                self.down()


@dataclass(frozen=True, slots=True)
class Ways:
    """Inspection and changes of a machine of one operating system.

    Attributes:
        script: shell text that prints facts about the machine and these interfaces.
        read: parses the output of the script.
        make: shell text that makes the devices.
        undo: shell text that undoes them, also where they are incomplete.
    """

    script: Callable[[Sequence[str]], str]
    read: Callable[[str], RemoteFacts]
    make: Callable[[Layout, RemoteFacts], str]
    undo: Callable[[Layout, RemoteFacts], str]


_LINUX: Final = Ways(facts.script, facts.read, Layout.make, Layout.undo)
_BSD: Final = Ways(bsd.script, bsd.read, bsd.make, bsd.undo)


def ways(system: str) -> Ways:
    """Return the ways for a system by its `uname -s`; an unknown system is inspected like Linux, and refused then."""
    return _BSD if system.endswith("BSD") else _LINUX
