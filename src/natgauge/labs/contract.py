# SPDX-License-Identifier: Apache-2.0
"""The interface of a lab: two tester ports, a chain of devices between them, and the lab's abilities.

Code asks a lab for its abilities, and never for its kind. A kind is one package of `natgauge.labs`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from pathlib import Path
from typing import Any, Final, Generic, Literal, Protocol, Self, TypeVar

from natgauge.device_work import ObjectCaches, WorkByCore
from natgauge.embedding import NEIGHBOURS_BITS, embedded, extracted
from natgauge.host.settings import MachineSetting
from natgauge.words import Address, Family, Network, Placement

OptionsT = TypeVar("OptionsT")


@dataclass(frozen=True, slots=True)
class Port:
    """One tester port.

    Attributes:
        netns: name of the network namespace that holds it; None = the caller's own.
        gateway_mac: destination of frames, "02:..."; None = the engine resolves `gateway_address` itself.
        tap: whether the port is the tap of a guest. Frames that it refuses met a full queue before the guest. Its
            driver counts frames as dropped whenever a receiver took them (drivers/net/tun.c: XDP_DROP).
    """

    interface: str
    netns: str | None
    gateway_mac: str | None
    gateway_address: str | None
    tap: bool = False


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Result of a snippet: exit status, text of both streams, wall seconds on the device."""

    status: int
    stdout: str
    stderr: str
    seconds: float

    @property
    def said(self) -> str:
        """The last lines of its errors, or else of its output, in one line; empty when there is none."""
        # iptables names the error in the line before its last one, and nft two lines before a last one of "^" signs.
        lines = (self.stderr.strip() or self.stdout.strip()).splitlines()
        return "; ".join(line.strip() for line in lines[-3:])


class Machine(Protocol):
    """The machine on which a device runs; it can be another one than the tester's.

    Attributes:
        system: its `uname -s`, e.g. "Linux".
        has_tester_files: whether its programs see the files of the tester's machine.
    """

    system: str
    has_tester_files: bool

    def free_octets(self) -> int:
        """Octets of available memory.

        Raises:
            HostError: it cannot be read.
        """

    def object_caches(self) -> ObjectCaches:
        """Object caches of its kernel; empty where it does not report them.

        Raises:
            BrokenError: it does not answer in time.
            HostError: it cannot be reached.
        """

    def setting(self, name: str, paths: Sequence[str], module: str | None) -> MachineSetting:
        """A global setting of it; nothing is touched yet."""


class Device(Protocol):
    """One device of the chain.

    Attributes:
        inside: interface towards the Initiator.
        outside: interface towards the Responder.
        environment: variables of every snippet (see docs/recipes.md).
    """

    name: str
    inside: str
    outside: str
    environment: Mapping[str, str]

    @property
    def machine(self) -> Machine:
        """Machine that the device runs on."""

    def run(
        self, snippet: str, *, environment: Mapping[str, str] | None = None, timeout: float = 60.0
    ) -> CommandResult:
        """Run a POSIX shell snippet on the device (in its namespace, as root).

        Raises:
            BrokenError: it did not end within `timeout` seconds (it is killed then).
        """

    def frame_processes(self) -> tuple[str, ...]:
        """Return the names of the processes that handle its frames now; empty where none does, or nobody can see it.

        They work on the device's cores from now on, where this machine gives it some.

        Raises:
            BrokenError: the device is gone.
        """


@dataclass(frozen=True, slots=True)
class Addresses:
    """Neighbouring addresses of one family, both ends included.

    Attributes:
        embedded: length of the IPv6 prefix below 96 bits behind which they have neighbouring IPv4 addresses (RFC 6052
            section 2.2); None = they are neighbours themselves.
    """

    first: Address
    last: Address
    embedded: int | None = None

    @classmethod
    def behind(cls, prefix: IPv6Network, hosts: Addresses) -> Addresses:
        """Return the addresses that a translator has for IPv4 hosts (RFC 6052 section 2.2)."""
        length = prefix.prefixlen
        first, last = (embedded(prefix, IPv4Address(int(end))) for end in (hosts.first, hosts.last))
        return cls(first, last, None if length == NEIGHBOURS_BITS else length)

    def _number(self, address: Address) -> int:
        """Return what differs by one in neighbours."""
        if self.embedded is None or not isinstance(address, IPv6Address):
            return int(address)
        return int(extracted(address, self.embedded))

    @property
    def count(self) -> int:
        """Number of addresses in the range."""
        return self._number(self.last) - self._number(self.first) + 1

    def at(self, index: int) -> Address:
        """Address `index` of the range, from 0."""
        if self.embedded is None or not isinstance(self.first, IPv6Address):
            return self.first + index
        prefix = IPv6Network((self.first, self.embedded), strict=False)
        return embedded(prefix, IPv4Address(self._number(self.first) + index))

    def __contains__(self, address: Address) -> bool:
        if address.version != self.first.version:
            return False
        index = self._number(address) - self._number(self.first)
        return 0 <= index < self.count and self.at(index) == address

    def overlaps(self, other: Addresses) -> bool:
        """Whether both ranges have an address in common."""
        return other.first in self or other.last in self or self.first in other

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


@dataclass(frozen=True, slots=True)
class Link:
    """Addresses of one link between tester and device.

    Attributes:
        network: the link's subnet; the tester's own addresses must lie in it.
        device: the device's own address on the link.
        tester: the tester's first address if the user chose none.
    """

    network: Network
    device: Address
    tester: Address

    @property
    def family(self) -> Family:
        """Address family of this link."""
        return "ipv4" if self.network.version == 4 else "ipv6"


@dataclass(frozen=True, slots=True)
class Ground:
    """Conditions of a lab for the traffic, known before anything is made.

    Attributes:
        mtu: MTU of the interfaces, in octets.
        nat64_prefix: where a translator finds the IPv4 hosts of the outside (RFC 6052).
        pool: outside addresses of a device that translates; None = not known.
        mapped: where a stateless translator has the Initiator's hosts, from the first one on; None = not known.
        mapped_in_order: whether `mapped` are the addresses of the user's source addresses, one by one, instead of those
            of the inside's hosts.
        embedded: the IPv4 network whose hosts the outside has behind `nat64_prefix`, where the Initiator uses IPv4
            and the Responder IPv6; None = it is not so, or not known.
        background: the tester's hosts of native IPv6 on the Initiator's and the Responder's side; None = the devices
            do not route it.
    """

    inside: Link
    outside: Link
    mtu: int
    nat64_prefix: IPv6Network
    pool: Addresses | None = None
    mapped: Addresses | None = None
    mapped_in_order: bool = False
    background: tuple[Addresses, Addresses] | None = None
    embedded: Link | None = None


@dataclass(frozen=True, slots=True)
class DeviceCores:
    """Cores on which the devices of a lab work.

    Attributes:
        count: number of cores, >= 1; None = not known.
        numbers: the cores, in the numbering of their machine; empty = not known.
        caches: octets of the data caches that the cores use, by level, such as "L2"; empty = not known.
    """

    count: int | None = None
    numbers: tuple[int, ...] = ()
    caches: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, numbers: Sequence[int], caches: Mapping[str, int] | None = None) -> DeviceCores:
        """Return known cores; an empty sequence means that nothing is known."""
        return cls(len(numbers) or None, tuple(numbers), caches or {})


#: Counters of the network stack of each device's kernel: device -> name of the counter -> events so far. Of several
#: devices on one machine an empty name has the counters of the whole machine.
NetworkCounters = Mapping[str, Mapping[str, int]]


#: Places of a lab's counters of drops: the tester's own ports, the Initiator's first. All others are the devices'.
TESTER_PLACES: Final = ("initiator port", "responder port")


@dataclass(frozen=True, slots=True)
class LabCounters:
    """Counters of a lab.

    Attributes:
        core_work: work so far of each core of the devices; empty where it is not known, or where they have one core.
        error: reason why the work could not be read; empty = it was read, or the lab does not report it.
        network: counters of the devices' network stacks; None = the lab does not read them.
    """

    dropped: Mapping[str, int]
    core_work: WorkByCore = field(default_factory=dict)
    error: str = ""
    network: NetworkCounters | None = None


#: How a trial avoids connections that earlier trials left at a device that natgauge cannot empty.
FreshTrials = Literal["new-tuples", "wait", "no-wait"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ExternalDevice:
    """Method by which an external device forgets the connections of earlier trials, as the user states it.

    Attributes:
        timeout: seconds after which it has certainly forgotten a connection; None = not stated.
        fresh_trials: "new-tuples": each trial uses four tuples that no trial used for `timeout` seconds, and waits
            where none are left; "no-wait": natgauge refuses such a trial; "wait": each trial begins after `timeout`.
        empty_command: shell command on the tester's host that makes the device forget all connections; None = there
            is none.
        count_command: shell command on the tester's host that prints the device's number of connections; None = none.
    """

    timeout: int | None = None
    fresh_trials: FreshTrials = "new-tuples"
    empty_command: str | None = None
    count_command: str | None = None

    def parameters(self) -> dict[str, Any]:
        """The stated values by name; empty if nothing was stated."""
        of_trials = None if self.timeout is None else self.fresh_trials
        every = {
            "fresh_trials": of_trials if self.empty_command is None else "empty-command",
            "device_timeout": self.timeout,
            "empty_command": self.empty_command,
            "count_command": self.count_command,
        }
        return {name: value for name, value in every.items() if value is not None}


class FarSettings(Protocol):
    """Settings of another machine that decide which core works on a frame; the lab runs the shell text there."""

    def script(self, interfaces: Sequence[str]) -> str:
        """Return shell text that prints what the others read."""

    def values(self, text: str, interfaces: Sequence[str]) -> Mapping[str, object]:
        """Return the settings by the name of the lab's parameter; None where the machine does not report one."""

    def changes(self, text: str, interfaces: Sequence[str]) -> Iterable[tuple[str, str, str]]:
        """Yield each setting with a better value: its words, and shell text that sets and undoes it."""


#: What the device is called where there is only one.
DEVICES = ("gateway",)


@dataclass(frozen=True, kw_only=True, slots=True)
class LabNeeds:
    """Requirements that a lab must meet.

    Attributes:
        own_processes: whether a device works in processes of its own, by its recipe or as found on the machine; they
            need cores of their own.
        nat64_prefix: where a translator finds the IPv4 hosts of the outside (RFC 6052); None = the lab's.
        pool: outside addresses that the gateway translates to, at the last device; None = that device's own.
        own_xdp: whether a device has XDP programs at its interfaces, so that the lab must have none there.
        asks_server: whether a device asks a real server, which has to share its cores where it has none of its own.
        far_settings: settings of a device's machine that a lab reads, and sets where the user wants it; None = none.
    """

    families: tuple[Family, Family]
    devices: tuple[str, ...] = DEVICES
    own_processes: bool = False
    hosts: int = 1
    background: bool = False
    nat64_prefix: IPv6Network | None = None
    pool: Addresses | None = None
    own_xdp: bool = False
    asks_server: bool = False
    far_settings: FarSettings | None = None


class Lab(Protocol):
    """A lab. Use it as a context manager: on leaving, all changes are undone in reverse order.

    A kind inherits the values given here: those of a device on another machine.

    Attributes:
        devices: devices from the Initiator to the Responder; empty when natgauge does not control the device.
        external: how a device that natgauge does not control loses connections; None = it controls it, or not known.
        server: home of a real server that answers at the Responder's port; None = it has none here. Its variables are
            NG_WORK, NG_PORT, NG_GATEWAY_MAC, and NG_CPUS, its cores: empty = none is left for it.
        device_cpus: the devices' cores on the tester's machine; empty when the devices work on another machine.
        grace_seconds: longest time from the last frame sent to the last arrival; an option overrides it.
        virtual: whether the ports are virtual, so that a virtual cable shows what the tester itself can do on them.
        emulated: whether a device runs on an emulated processor, so that its figures show only that it works.
        is_reused: whether every use has the same lab: the lab is kept up, or its device is external.
    """

    name: str
    placement: Placement
    initiator: Port
    responder: Port
    devices: Sequence[Device]
    external: ExternalDevice | None = None
    server: Device | None = None
    sender_cpus: tuple[int, ...]
    device_cpus: tuple[int, ...] = ()
    grace_seconds: float
    virtual: bool = False
    emulated: bool = False

    @property
    def device_cores(self) -> DeviceCores:
        """The devices' cores; of another machine, they are known inside the `with` block."""

    @property
    def is_reused(self) -> bool:
        """Whether every use has the same lab."""
        return False

    @property
    def changes_machine(self) -> bool:
        """Whether it changes settings of the tester's whole machine, whatever the gateway needs."""
        return False

    @property
    def ground(self) -> Ground:
        """Properties of the traffic that the lab fixes."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...

    def dropped(self) -> Mapping[str, int]:
        """Frames dropped so far at places of the lab, by a readable name (a device's card ring, a tester's port)."""

    def counters(self) -> LabCounters:
        """Drops and the work of the cores so far, read at the same time.

        Raises:
            BrokenError: the drops cannot be read.
            HostError: a port is gone.
        """

    def keep(self) -> None:
        """Let the lab stay when this process ends; `natgauge lab down` takes it down.

        Raises:
            UsageError: it is no lab that can be kept.
        """

    def parameters(self) -> Mapping[str, Any]:
        """Choices by name that may affect a figure and that no other attribute holds."""


@dataclass(frozen=True, slots=True)
class Kind(Generic[OptionsT]):
    """A kind of lab: what the user may choose of it, and how one is planned.

    Attributes:
        options: a dataclass; its fields are described by `natgauge.inputs.input.chosen`.
        plan: a lab of this name; nothing is made before its `with` block. Raises UsageError for what cannot be.
        quick: whether a lab that does not stay is made in a fraction of a second, so that each repetition can have its
            own.
        shares_core: whether a device can work on the sender's core, and the user chooses its placement.
        cores_option: option that takes the number of the device's cores, which a plan's `cores = N` sets; empty = the
            option `cores`, which takes a list of this machine's cores.
        cores_command: option with the command that changes the number of the device's cores, without which a series of
            several numbers is refused; empty = the lab changes it itself.
        can_be_kept: whether `natgauge lab up` makes labs of this kind, which `Lab.keep` then keeps up.
        undo: undoes what the kind's labs recorded as "remote"; None = they record nothing of this kind. It takes the
            lab's directory, the settings in its register and the recorded items in the order in which they are to be
            undone, and returns one sentence for each thing that it undid.
    """

    summary: str
    options: type[OptionsT]
    plan: Callable[[str, OptionsT, LabNeeds], Lab]
    quick: bool = False
    shares_core: bool = False
    cores_option: str = ""
    cores_command: str = ""
    can_be_kept: bool = False
    undo: Callable[[Path, Mapping[str, Any], Sequence[Mapping[str, str]]], list[str]] | None = None
