# SPDX-License-Identifier: Apache-2.0
"""The `netns` lab: tester and devices in network namespaces of this machine, veths between them."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from natgauge.device_work import CoreWork, WorkByCore, total
from natgauge.errors import BrokenError, HostError, UsageError
from natgauge.host import capabilities, programs
from natgauge.host.machine import caches_of, check_cpus, idlest_core, usable_cpus
from natgauge.inputs.input import wrong
from natgauge.inputs.measuring_types import cores_in, format_cores
from natgauge.labs.common.addresses import (
    BACKGROUND_INSIDE,
    BACKGROUND_OUTSIDE,
    INNER_LINKS,
    INSIDE,
    MAPPED,
    NAT64_PREFIX,
    OUTSIDE,
    LinkSide,
    inner_link,
    parse_range,
    pool_parameter,
    prefix_parameter,
    prefixes_of,
)
from natgauge.labs.common.addresses import nat64_prefix as parse_prefix
from natgauge.labs.common.base import FIRST, FIRST_INDEX, INITIATOR_PORT, RESPONDER_PORT, MadeLab
from natgauge.labs.common.device import NamespaceDevice, ThisMachine
from natgauge.labs.common.links import (
    MTU,
    End,
    VethCable,
    exceeds_neighbour_limits,
    neighbour_limits,
    of_one_machine,
    read_counters,
    refuse_neighbour_limits,
)
from natgauge.labs.common.locks import check_name, directory_of
from natgauge.labs.common.namespaces import PREFIX
from natgauge.labs.contract import Addresses, DeviceCores, Ground, Lab, LabCounters, LabNeeds, Link, Port
from natgauge.words import EACH_ITS_OWN, FAMILIES, Address, Family, Interface, Network

#: The device's interfaces, in its namespace.
_INSIDE_INTERFACE: Final = "inside"
_OUTSIDE_INTERFACE: Final = "outside"
#: Why placement `isolated` cannot be had in a PID namespace.
_NO_KERNEL_THREADS: Final = (
    "placement isolated: the kernel's threads that work for the device need a high priority, and a PID namespace, as a "
    "container has it, does not show them; start natgauge in the machine's PID namespace (docker run --pid=host), or "
    "use --placement shared"
)
#: The program that acts as a device's network card in the `isolated` placement.
FRONT: Final = "natgauge-front"
#: Largest ring of a cpumap entry the kernel allows (kernel/bpf/cpumap.c).
_MAXIMUM_RING: Final = 16384
DEFAULT_RING: Final = 512

#: The stack spreads flows over an interface's queues by hash, and each queue is emptied by itself, so frames of
#: different flows would overtake each other. A queue for each CPU keeps the device's order
#: (Documentation/networking/scaling.rst). The kernel reads a mask in groups of 32 bits, with commas between them.
_ONE_QUEUE_PER_CPU: Final = """
for interface in "$NG_INSIDE" "$NG_OUTSIDE"; do
    for queue in /sys/class/net/"$interface"/queues/tx-*; do
        number=${queue##*-}
        if [ "$number" -lt "$(nproc --all)" ]; then
            mask=$(printf '%x' "$((1 << (number % 32)))")
            while [ "$number" -ge 32 ]; do
                mask=$mask,00000000
                number=$((number - 32))
            done
            printf '%s' "$mask" > "$queue/xps_cpus"
        fi
    done
done
"""

BACKGROUND_HOSTS: Final = (Addresses(*BACKGROUND_INSIDE.range(1)), Addresses(*BACKGROUND_OUTSIDE.range(1)))
#: Between namespaces nothing waits longer than a full ring takes to be worked off.
GRACE_SECONDS: Final = 0.3

_NATIVE: Final = (BACKGROUND_INSIDE.device, BACKGROUND_OUTSIDE.device)
_NATIVE_NETWORKS: Final = tuple(str(address.network) for address in _NATIVE)
_DEVICE_NAME = re.compile(r"[a-z0-9]{1,16}")
_FRONT_SECONDS = 20.0


class NetnsLab(MadeLab, Lab):
    """A tester namespace with both ports, and a chain of devices, each in a namespace of its own.

    Placement `shared`: a device works in the sender's context, on the sender's core. It cannot lose frames; overload
    shows as lateness. Placement `isolated`: an XDP program in front of each device acts as its network card: it passes
    frames to rings of set depth on the device's own cores, hashed over the four tuple. Overload shows as loss.
    """

    kind = "netns"
    virtual = True
    grace_seconds = GRACE_SECONDS

    def __init__(  # noqa: PLR0913 - one argument per choice, all but the name by keyword
        self,
        name: str = "default",
        *,
        initiator_family: Family,
        responder_family: Family,
        devices: Sequence[str] = ("gateway",),
        placement: Literal["shared", "isolated"] = "shared",
        sender_cpus: Sequence[int] | None = None,
        device_cpus: Sequence[int] | None = None,
        cores_of: Mapping[str, Sequence[int]] | None = None,
        server_cpus: Sequence[int] | None = None,
        ring: int = DEFAULT_RING,
        hosts: int = 1,
        background: bool = False,
        idle_core: bool = False,
        nat64_prefix: str | None = None,
        pool: str | None = None,
        asks_server: bool = False,
    ) -> None:
        """Plan a lab; nothing is made before `up` or the `with` block.

        Args:
            devices: names of the devices from the Initiator to the Responder, 1 to 65, each 1 to 16 of a-z and 0-9.
            cores_of: cores of each device by its name, in the isolated placement; they replace `device_cpus`. Only
                here a device may have a core of named senders. None = each device works on all of `device_cpus`.
            server_cpus: cores of a real server behind the devices, none of them a sender's; default: cores that neither
                senders nor devices have.
            hosts: addresses the tester uses on both sides together. The devices must hold them all in their neighbour
                tables, whose limits are global settings of the machine: raised when too low, restored at the end.
            idle_core: without named cores, the sender gets the least busy core when the lab is made: other work on its
                core stalls the sender, and stalled trials are void.
        """
        check_name(name)
        for family in (initiator_family, responder_family):
            if family not in FAMILIES:
                raise UsageError(f'family "{family}": choose ipv4 or ipv6')
        self.families: tuple[Family, Family] = (initiator_family, responder_family)
        self._names = _check_devices(devices)
        self.placement = placement
        self.cores_of = None if cores_of is None else _check_cores_of(cores_of, self._names, placement)
        if self.cores_of is not None:
            device_cpus = cores_in(self.cores_of)
        if len(self._names) == 1:
            # A single device has all cores, whichever way they are named.
            self.cores_of = None
        self.sender_cpus, self.device_cpus = _choose_cpus(
            placement, sender_cpus, device_cpus, may_meet=self.cores_of is not None and sender_cpus is not None
        )
        self._idle_core = idle_core and sender_cpus is None and device_cpus is None
        self._chosen_server_cpus = (
            None if server_cpus is None else check_cpus(server_cpus, "server cores", "server_cores")
        )
        self.asks_server = asks_server
        self._refuse_server_cpus()
        if not 1 <= ring <= _MAXIMUM_RING:
            raise UsageError(f"ring {ring}: choose 1 to {_MAXIMUM_RING} frames", at="ring")
        self.ring = ring
        if hosts < 1:
            raise UsageError(f"hosts {hosts}: the tester uses at least one address")
        self.hosts = hosts
        self.background = background
        self.nat64_prefix = NAT64_PREFIX if nat64_prefix is None else parse_prefix(nat64_prefix)
        self.pool = None if pool is None else parse_range("pool", pool, "ipv4")
        super().__init__(name, self._settings())
        self._plan()

    def _settings(self) -> Mapping[str, Any]:
        return {
            "initiator_family": self.families[0],
            "responder_family": self.families[1],
            "devices": list(self._names),
            "placement": self.placement,
            "sender_cpus": list(self.sender_cpus),
            "device_cpus": list(self.device_cpus),
            "cores_of": None if self.cores_of is None else {name: list(cpus) for name, cpus in self.cores_of.items()},
            "server_cpus": None if self._chosen_server_cpus is None else list(self._chosen_server_cpus),
            "ring": self.ring,
            "hosts": self.hosts,
            "background": self.background,
            "nat64_prefix": str(self.nat64_prefix),
            "pool": None if self.pool is None else str(self.pool),
            "asks_server": self.asks_server,
        }

    def _prepare(self) -> None:
        if self.placement == "isolated" and not capabilities.shows_kernel_threads():
            raise HostError(_NO_KERNEL_THREADS)
        if self._idle_core:
            free = [cpu for cpu in usable_cpus() if cpu not in (self._chosen_server_cpus or ())]
            self.sender_cpus, self.device_cpus = _choose_cpus(self.placement, (idlest_core(free),), None)
            self.settings = dict(self._settings())
            self._plan()

    @property
    def device_cores(self) -> DeviceCores:
        """The devices' cores; the number is that of each device where each has as many cores of its own.

        Of devices with cores of their own it is not known whose cores' caches hold the connections.
        """
        if self.cores_of is None:
            return DeviceCores.of(self.device_cpus, caches_of(tuple(self.device_cpus)))
        each = len(self.device_cpus) // len(self._names) if self._are_alike else len(self.device_cpus)
        return DeviceCores(each, self.device_cpus)

    def _cores_of(self, device: str) -> tuple[int, ...]:
        return self.device_cpus if self.cores_of is None else self.cores_of[device]

    @property
    def _are_alike(self) -> bool:
        """Whether each device has cores of its own, and as many as each other device."""
        numbers = [len(cpus) for cpus in (self.cores_of or {}).values()]
        return sum(numbers) == len(self.device_cpus) and len({*numbers}) == 1

    def _devices_on(self, cpu: int) -> str:
        """Return the names of the devices that work on a core; empty where all devices share the cores."""
        return " and ".join(name for name in self._names if cpu in (self.cores_of or {}).get(name, ()))

    @property
    def server_cpus(self) -> tuple[int, ...]:
        """Cores of a real server. Where none is left, it has none, or those of a device that cannot do without it."""
        if self._chosen_server_cpus is not None:
            return self._chosen_server_cpus
        left = tuple(cpu for cpu in usable_cpus() if cpu not in {*self.sender_cpus, *self.device_cpus})
        return left or (self.device_cpus if self.asks_server else ())

    def _refuse_server_cpus(self) -> None:
        """Refuse a server on a core that the senders keep busy; then an idle core is looked for as well."""
        server_cpus = set(self._chosen_server_cpus or ())
        if self._idle_core:
            if not set(usable_cpus()) - server_cpus:
                raise UsageError(
                    f"server cores {format_cores(sorted(server_cpus))}: leave none for the sender; use fewer",
                    at="server_cores",
                )
        elif both := server_cpus & set(self.sender_cpus):
            raise wrong("server_cores", f"core {min(both)} is a sender's, which keeps it busy; name others")

    @property
    def ground(self) -> Ground:
        """The address plan of `natgauge.labs.common.addresses`."""
        outside, mapped = OUTSIDE[self.families[1]], MAPPED[self.families[1]]
        return Ground(
            inside=_link(INSIDE[self.families[0]]),
            outside=_link(outside),
            mtu=MTU,
            nat64_prefix=self.nat64_prefix,
            pool=self.pool or Addresses(outside.device.ip, outside.device.ip),
            mapped=Addresses(*mapped.range(mapped.hosts)),
            background=BACKGROUND_HOSTS if self.background else None,
            embedded=_link(OUTSIDE["ipv4"]) if self.families == ("ipv4", "ipv6") else None,
        )

    def parameters(self) -> Mapping[str, Any]:
        """The ring, where there is one, whose cores are whose, and addresses that are not the plan's usual ones."""
        ring = {"ring": self.ring} if self.placement == "isolated" else {}
        plan = {**prefix_parameter(self.nat64_prefix), **pool_parameter(self.pool)}
        return {**ring, **self._division(), **plan}

    def _division(self) -> Mapping[str, Any]:
        """Return how the cores are divided among the devices; empty where they share all of them."""
        if self.cores_of is None:
            return {}
        numbers = dict(Counter(map(self._devices_on, self.device_cpus)))
        return {"cores_of_devices": EACH_ITS_OWN if self._are_alike else numbers, "cpus_of_devices": self.cores_of}

    def _plan(self) -> None:
        """Name all ends, ports and devices. Pure arithmetic: the same arguments give the same lab."""
        cables = self._cables()
        first, last = cables[0], cables[-1]
        self.initiator = _port(first.ends[0], first.ends[1])
        self.responder = _port(last.ends[1], last.ends[0])
        self._homes = tuple(
            self._device(index, cables[index].ends, cables[index + 1].ends) for index in range(len(self._names))
        )
        self.devices = self._homes
        self.server = self._home_of_server(last.ends[0].mac, self.server_cpus)

    def _cables(self) -> Sequence[VethCable]:
        count = len(self._names) + 1
        return tuple(
            VethCable((self._end(index, 0), self._end(index, 1)), FIRST_INDEX + index) for index in range(count)
        )

    def _end(self, link: int, end: int) -> End:
        """End 0 (towards the Initiator) or 1 of link 0 (at the Initiator) to len(devices) (at the Responder)."""
        owner = link - 1 + end
        # "ng" in the second and third octet; locally administered, so no manufacturer's.
        mac = f"02:6e:67:00:{link:02x}:{end + 1:02x}"
        if owner < 0:
            return End(self.tester, INITIATOR_PORT, mac)
        if owner == len(self._names):
            return End(self.tester, RESPONDER_PORT, mac)
        interface = _INSIDE_INTERFACE if end else _OUTSIDE_INTERFACE
        pool = () if self.pool is None or link < len(self._names) else prefixes_of(self.pool)
        name = self._netns(self._names[owner])
        return End(name, interface, mac, self._addresses(link, end), pool, self._routes(link, end))

    def _routes(self, link: int, end: int) -> tuple[tuple[Network, Address], ...]:
        """Return the way to native IPv6 behind the other end of a link between two devices."""
        if not self.background or link in (0, len(self._names)):
            return ()
        behind = BACKGROUND_INSIDE if end else BACKGROUND_OUTSIDE
        return ((behind.device.network, inner_link(link - 1, "ipv6")[1 - end].ip),)

    def _addresses(self, link: int, end: int) -> tuple[Interface, ...]:
        if link == 0:
            return (INSIDE[self.families[0]].device, *self._native(BACKGROUND_INSIDE))
        if link == len(self._names):
            return (OUTSIDE[self.families[1]].device, *self._native(BACKGROUND_OUTSIDE))
        return tuple(inner_link(link - 1, family)[end] for family in FAMILIES)

    def _native(self, side: LinkSide) -> tuple[Interface, ...]:
        return (side.device,) if self.background else ()

    def _netns(self, device: str) -> str:
        return f"{PREFIX}{self.name}-{device}"

    def _device(self, index: int, before: tuple[End, End], after: tuple[End, End]) -> NamespaceDevice:
        name = self._names[index]
        environment = {
            "NG_NAME": f"{self.name}-{name}",
            "NG_WORK": str(directory_of(self.name) / name),
            "NG_CPUS": format_cores(self._cores_of(name)),
            "NG_INSIDE": _INSIDE_INTERFACE,
            "NG_OUTSIDE": _OUTSIDE_INTERFACE,
            "NG_NAT64_PREFIX": str(self.nat64_prefix),
            **_network("NG_MAPPED_NETWORK", MAPPED[self.families[1]]),
            **_network("NG_INITIATOR_NETWORK", INSIDE[self.families[0]]),
            **_network("NG_RESPONDER_NETWORK", OUTSIDE[self.families[1]]),
            # Its hosts are behind the prefix there.
            **(_network("NG_RESPONDER_NETWORK", OUTSIDE["ipv4"]) if self.families == ("ipv4", "ipv6") else {}),
            **_plain_addresses("NG_INSIDE_ADDRESS", before[1]),
            **(_plain_addresses("NG_INSIDE_PEER", before[0]) or _host("NG_INSIDE_PEER", INSIDE[self.families[0]])),
            **_plain_addresses("NG_OUTSIDE_ADDRESS", after[0]),
            **({"NG_BACKGROUND_NETWORKS6": " ".join(_NATIVE_NETWORKS)} if self.background else {}),
            **self._pool_of(index, after[0]),
            **(_plain_addresses("NG_OUTSIDE_PEER", after[1]) or self._responder()),
        }
        # Like the threads that empty its rings, or the sender, which go first too: of the two none pushes the other
        # aside.
        machine = ThisMachine(lambda: self.register)
        ends = _INSIDE_INTERFACE, _OUTSIDE_INTERFACE
        return NamespaceDevice(name, self._netns(name), *ends, environment, machine, FIRST)

    def _pool_of(self, index: int, outside: End) -> Mapping[str, str]:
        """Return the outside IPv4 addresses of a device: its own, or those of the pool at the last one."""
        own = next((Addresses(each.ip, each.ip) for each in outside.addresses if each.version == 4), None)
        pool = self.pool if self.pool is not None and index == len(self._names) - 1 else own
        if pool is None:
            return {}
        prefixes = " ".join(map(str, prefixes_of(pool)))
        return {"NG_POOL4_FIRST": str(pool.first), "NG_POOL4_LAST": str(pool.last), "NG_POOL4": prefixes}

    def _responder(self) -> Mapping[str, str]:
        """Return the Responder's first address, the neighbour of the last device."""
        if self.families == ("ipv4", "ipv6"):
            host = OUTSIDE["ipv4"].host(0)
            return {"NG_OUTSIDE_PEER6": str(Addresses.behind(self.nat64_prefix, Addresses(host, host)).first)}
        return _host("NG_OUTSIDE_PEER", OUTSIDE[self.families[1]])

    def _finish(self) -> None:
        for device in self._homes:
            answer = device.run(_ONE_QUEUE_PER_CPU)
            if answer.status:
                raise BrokenError(f"{device.name}: its queues cannot be bound to CPUs: {answer.stderr.strip()}")
        if self.placement == "isolated":
            for device, interface in self._cards():
                arguments = ["--cpus", format_cores(self._cores_of(device.name)), "--ring", str(self.ring)]
                _front("attach", device, interface, *arguments)

    @property
    def changes_machine(self) -> bool:
        """Whether its devices need larger neighbour tables than the kernel's own."""
        return exceeds_neighbour_limits(self.hosts)

    def _fit(self) -> None:
        hidden = {}
        for name, least in neighbour_limits(self.families, self.hosts):
            path = Path(name)
            if not path.exists():
                hidden[name] = least
            elif not self._relies_on(path, least):
                self.register.set_global(path, least)
        if hidden:
            refuse_neighbour_limits(hidden, self.hosts)

    def _relies_on(self, path: Path, least: int) -> bool:
        """Whether a limit is enough now and, where another lab raised it, stays until this lab has ended, too."""
        present = path.read_text().strip()
        if int(present) < least:
            return False
        self.register.share_global(path, present)
        # The other lab may have ended, and restored the limit, before this one shared it.
        return int(path.read_text()) >= least

    def _cards(self) -> Iterator[tuple[NamespaceDevice, str]]:
        return ((device, card) for device in self._homes for card in (device.inside, device.outside))

    def dropped(self) -> Mapping[str, int]:
        """Frames dropped so far, by place: ports, interfaces of devices and, when isolated, the rings before them."""
        return self._dropped(self._read_cards())

    def counters(self) -> LabCounters:
        """Drops as in `dropped`, the work of the cores, and counters of the devices' network stacks.

        The work is the frames that the cards passed to each core so far, dropped ones included.
        """
        cards = self._read_cards()
        several = any(len(self._cores_of(device.name)) > 1 for device in self._homes)
        work = total(card.work for card in cards.values()) if several else {}
        network = {device.name: read_counters(device.netns) for device in self._homes}
        return LabCounters(self._dropped(cards), work, network=of_one_machine(network, len(self._homes)))

    def _read_cards(self) -> Mapping[str, _CardCounts]:
        """Counts of each card, by the place of its ring; empty in the shared placement."""
        cards = self._cards() if self.placement == "isolated" else ()
        return {f"{device.name} {card} card ring": self._read_card(device, card) for device, card in cards}

    def _read_card(self, device: NamespaceDevice, card: str) -> _CardCounts:
        answer = _front("read", device, card)
        try:
            read = json.loads(answer)
            work = {
                counted["cpu"]: CoreWork(counted["redirected"], devices=self._devices_on(counted["cpu"]))
                for counted in read["per_cpu"]
            }
            return _CardCounts(int(read["dropped"]), work)
        except (ValueError, TypeError, KeyError) as error:
            raise BrokenError(f"{FRONT} read {device.netns} {card}: answered {answer[:80]!r}") from error

    def _dropped(self, cards: Mapping[str, _CardCounts]) -> Mapping[str, int]:
        return {**super().dropped(), **{place: card.dropped for place, card in cards.items()}}

    def _counted(self) -> Mapping[str, str]:
        return {self.tester: "", **{device.netns: f"{device.name} " for device in self._homes}}


def arguments_of(need: LabNeeds) -> dict[str, Any]:
    """Return the arguments of a lab that meets these needs, but for its placement and cores."""
    return {
        "initiator_family": need.families[0],
        "responder_family": need.families[1],
        "devices": need.devices,
        "hosts": need.hosts,
        "background": need.background,
        "nat64_prefix": None if need.nat64_prefix is None else str(need.nat64_prefix),
        "pool": None if need.pool is None else str(need.pool),
    }


def _check_devices(devices: Sequence[str]) -> tuple[str, ...]:
    if not 1 <= len(devices) <= INNER_LINKS + 1:
        raise UsageError(f"{len(devices)} devices: a chain has 1 to {INNER_LINKS + 1}")
    for device in devices:
        if not _DEVICE_NAME.fullmatch(device) or device == "tester":
            raise UsageError(f'device name "{device}": use 1 to 16 of a-z and 0-9, and not "tester"')
    if len(set(devices)) != len(devices):
        raise UsageError(f"devices {', '.join(devices)}: a name occurs twice; name each device differently")
    return tuple(devices)


def _check_cores_of(
    cores_of: Mapping[str, Sequence[int]], names: Sequence[str], placement: str
) -> Mapping[str, tuple[int, ...]]:
    """Return the cores of each device, in the order of the chain."""
    devices = f"the chain has {', '.join(names)}" if len(names) > 1 else f"the only device is {names[0]}"
    if unknown := sorted(cores_of.keys() - set(names)):
        raise UsageError(f"device cores: {unknown[0]} is no device; {devices}", at="cores")
    if without := [name for name in names if name not in cores_of]:
        raise UsageError(f"device cores: {without[0]} has none; {devices}, name the cores of each", at="cores")
    if placement != "isolated":
        raise UsageError(
            "device cores: devices have cores of their own only in placement isolated; choose it", at="cores"
        )
    return {name: check_cpus(cores_of[name], f"cores of {name}", "cores") for name in names}


def _choose_cpus(
    placement: str, sender_cpus: Sequence[int] | None, device_cpus: Sequence[int] | None, *, may_meet: bool = False
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sender and device cores; `shared` means the same ones, `isolated` means different ones unless they may meet."""
    if placement not in ("shared", "isolated"):
        raise UsageError(f'placement "{placement}": choose shared or isolated', at="placement")
    senders = check_cpus(usable_cpus()[:1] if sender_cpus is None else sender_cpus, "sender cores", "sender_cores")
    if placement == "shared":
        chosen = check_cpus(senders if device_cpus is None else device_cpus, "device cores", "cores")
        if set(chosen) != set(senders):
            raise UsageError(
                f"device cores {format_cores(chosen)}: in the shared placement a device works on the senders' cores "
                f"({format_cores(senders)}); leave them out, or choose placement isolated",
                at="cores",
            )
        return senders, senders
    others = tuple(cpu for cpu in usable_cpus() if cpu not in senders)
    if not others and not may_meet:
        raise UsageError(
            f"sender cores {format_cores(senders)}: leave none for an isolated device; use fewer, or placement shared",
            at="sender_cores",
        )
    chosen = check_cpus(others if device_cpus is None else device_cpus, "device cores", "cores")
    if (both := set(chosen) & set(senders)) and not may_meet:
        raise UsageError(
            f"device cores {format_cores(chosen)}: core {min(both)} is a sender's; "
            "in the isolated placement a device has cores of its own",
            at="cores",
        )
    return senders, chosen


def _link(side: LinkSide) -> Link:
    return Link(side.device.network, side.device.ip, side.host(0))


def _port(own: End, peer: End) -> Port:
    return Port(own.interface, own.netns, peer.mac, str(peer.addresses[0].ip))


def _network(variable: str, side: LinkSide) -> Mapping[str, str]:
    return {f"{variable}{side.device.version}": str(side.device.network)}


def _plain_addresses(variable: str, end: End) -> Mapping[str, str]:
    """Return the addresses of the frames under test; recipes need no knowledge of background traffic."""
    tested = [address for address in end.addresses if address not in _NATIVE]
    return {f"{variable}{address.version}": str(address.ip) for address in tested}


def _host(variable: str, side: LinkSide) -> Mapping[str, str]:
    """Return the tester's first address, the neighbour of the first or last device."""
    host = side.host(0)
    return {f"{variable}{host.version}": str(host)}


@dataclass(frozen=True, slots=True)
class _CardCounts:
    """Frames of a card so far: dropped at its rings, and passed to each core."""

    dropped: int
    work: WorkByCore


def _front(verb: str, device: NamespaceDevice, interface: str, *arguments: str) -> str:
    command = [str(programs.find(FRONT)), verb, "--netns", device.netns, "--interface", interface, *arguments]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_FRONT_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise BrokenError(
            f"{FRONT} {verb} {device.netns} {interface}: no answer within {_FRONT_SECONDS:g} s"
        ) from error
    if answer.returncode:
        lines = answer.stderr.strip().splitlines() or [f"exit status {answer.returncode}"]
        raise HostError(f"{FRONT} {verb} {device.netns} {interface}: {lines[-1]}")
    return answer.stdout
