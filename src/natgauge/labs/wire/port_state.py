# SPDX-License-Identifier: Apache-2.0
"""Whether a port can carry the tester: its state, its driver's abilities, and obstacles.

The `wire` lab refuses a port for the first obstacle; `natgauge probe` lists them all.
"""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any, Final

from pydantic import BaseModel, ConfigDict
from pyroute2 import IPRoute

from natgauge.errors import HostError, NatgaugeError, UsageError
from natgauge.finding import Finding
from natgauge.host import ethtool
from natgauge.host.cpus import online_cpus
from natgauge.host.uplinks import uplinks
from natgauge.labs.common.namespaces import inside
from natgauge.labs.wire import drivers
from natgauge.labs.wire.drivers import Media, driver_of, media_of

#: Octets of a frame besides its IP packet: Ethernet header and FCS.
FRAME_OVERHEAD: Final = 18
#: Longest time of a link that negotiates its speed: after it is set up, and with some drivers (igb, vmxnet3) whenever a
#: program was attached or detached.
LINK_SECONDS: Final = 5.0
_QUEUES: Final[tuple[ethtool.Part, ethtool.Part]] = ("queues", "most queues")
_UP: Final = 0x1  # IFF_UP
_LOOPBACK: Final = 0x8  # IFF_LOOPBACK


class DriverFacts(BaseModel):
    """Known properties of a driver as a port of the tester, from drivers.toml.

    Attributes:
        most_mtu: largest MTU with an XDP program, in octets; None = not known.
        own_queue: whether a core sends through the transmit queue of its own number, and cannot send without one.
        further_queues: whether a program takes a further queue for each core. Without enough of them, the driver shares
            the present ones, of which there must not be more than cores.
        if_refused: action where it refuses an XDP program; empty = none is known.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    takes: bool
    most_mtu: int | None = None
    own_queue: bool = False
    further_queues: bool = False
    counts_taken: bool = False
    note: str = ""
    if_refused: str = ""


def driver_facts(name: str) -> DriverFacts | None:
    """Return what is known of a driver; None = it is not in the table."""
    return _table().get(name)


@cache
def _table() -> Mapping[str, DriverFacts]:
    text = resources.files(__package__).joinpath("drivers.toml").read_text(encoding="utf-8")
    return {row["name"]: DriverFacts(**row) for row in tomllib.loads(text)["driver"]}


@dataclass(frozen=True, slots=True)
class PortState:
    """A port of the calling thread's namespace as the kernel reports it.

    Attributes:
        mtu: largest IP packet, in octets.
        has_default_route: whether the machine's default route leaves through it, also by way of a bond, a bridge or a
            VLAN above it.
        bond: the bond or bridge that it belongs to; None = none.
        features: XDP features of its driver; None = the kernel does not report them.
        transmit_queues: number of its transmit queues; None = not known. A tap has 0 while no program holds it.
        most_queues: largest number of transmit queues that its driver can give it; None = not known.
        peer: name of a veth's other end; None = it is no veth, or the other end is in another namespace.
    """

    name: str
    mac: str
    is_up: bool
    has_carrier: bool
    mtu: int
    has_default_route: bool
    addresses: tuple[str, ...]
    bond: str | None
    programs: tuple[drivers.Attached, ...]
    features: drivers.Features | None
    media: Media
    transmit_queues: int | None
    most_queues: int | None
    is_loopback: bool
    peer: str | None

    @property
    def is_needed(self) -> bool:
        """Whether the machine itself needs it."""
        return self.has_default_route or self.is_loopback

    @property
    def may_negotiate(self) -> bool:
        """Whether its link may come up by itself."""
        return self.is_up and not self.has_carrier and self.media.medium != drivers.VIRTUAL

    @property
    def driver(self) -> DriverFacts | None:
        """Known properties of its driver."""
        return driver_facts(self.media.driver)


def counts_taken(netns: str | None, interface: str) -> bool:
    """Whether the driver of a port in a namespace counts frames as dropped that a receiver took.

    False where the driver, the port or the namespace is not known; None as the namespace = ours.
    """
    try:
        known = driver_facts(inside(netns, lambda: driver_of(interface)))
    except (NatgaugeError, OSError):
        return False
    return known is not None and known.counts_taken


def refuse_missing(interface: str) -> None:
    """Refuse a name that no port of the calling thread's namespace has."""
    with IPRoute() as routes:
        _index_of(routes, interface)


def _index_of(routes: IPRoute, interface: str) -> int:
    if indices := routes.link_lookup(ifname=interface):
        return int(indices[0])
    if known := routes.link_lookup(altname=interface):
        name = routes.get_links(known[0])[0].get_attr("IFLA_IFNAME")
        raise UsageError(f"interface {interface}: is another name of {name}; name that")
    raise UsageError(f'interface {interface}: does not exist; "ip link" lists those there are')


def read_port(interface: str) -> PortState:
    """Read a port of the calling thread's namespace."""
    with IPRoute() as routes:
        index = _index_of(routes, interface)
        link = routes.get_links(index)[0]
        master = link.get_attr("IFLA_MASTER")
        above = routes.get_links(master)[0].get_attr("IFLA_IFNAME") if master else None
        queues, most_queues = _transmit_queues(interface)
        media = media_of(interface)
        return PortState(
            name=interface,
            mac=str(link.get_attr("IFLA_ADDRESS")),
            is_up=bool(link["flags"] & _UP),
            has_carrier=bool(link.get_attr("IFLA_CARRIER")),
            mtu=int(link.get_attr("IFLA_MTU")),
            has_default_route=index in uplinks(routes),
            addresses=tuple(str(one.get_attr("IFA_ADDRESS")) for one in routes.get_addr(index=index)),
            bond=above,
            programs=drivers.attached(link),
            features=drivers.features(index),
            media=media,
            transmit_queues=queues,
            most_queues=most_queues,
            is_loopback=bool(link["flags"] & _LOOPBACK),
            peer=_peer_of(routes, link) if media.driver == "veth" else None,
        )


def findings(
    port: PortState,
    *,
    sender_cpus: Sequence[int] = (),
    frame_sizes: Sequence[int] = (),
    allow_addresses: bool = False,
    may_wait: bool = False,
) -> Iterator[Finding]:
    """Yield what is to be known of a port, in the order in which obstacles are to be removed.

    Args:
        sender_cpus: cores of the tester's senders; none = not checked against the queues.
        frame_sizes: frame sizes of the measurement, in octets with FCS; none = not checked against the MTU.
    """

    def found() -> Iterator[Finding]:
        yield from _of_link(port, may_wait=may_wait)
        yield from _of_use(port, allow_addresses=allow_addresses)
        yield from _of_programs(port)
        yield from _of_driver(port)
        yield from _of_sizes(port, frame_sizes)
        if not port.programs:
            # With a program attached, the number of virtio-net's queues includes those of the program.
            yield from _of_queues(port, sender_cpus)

    return harmless(port, found())


def harmless(port: PortState, found: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings at this port, without commands where the machine itself needs it: they could cut it off."""
    return (replace(each, at=port.name, mend=None if port.is_needed else each.mend) for each in found)


def shell(*commands: Sequence[object]) -> str:
    """Return a line for `sh` that runs these commands, each if the one before it succeeded."""
    return " && ".join(shlex.join(str(word) for word in command) for command in commands)


def refuse(port: PortState, found: Sequence[Finding]) -> None:
    """Refuse a port for its first obstacle."""
    for finding in found:
        if finding.state == "obstacle":
            error: type[NatgaugeError] = UsageError if finding.is_choice else HostError
            mend = "" if finding.mend is None else f"; run: {finding.mend}"
            raise error(f"interface {port.name}: {finding.what}{mend}")


def _of_link(port: PortState, *, may_wait: bool) -> Iterator[Finding]:
    if port.is_loopback:
        yield Finding("link", "obstacle", "is the loopback interface, which has no link; use another", is_choice=True)
    elif not port.is_up:
        yield Finding("link", "obstacle", "is down", shell(["ip", "link", "set", port.name, "up"]))
    elif port.has_carrier or may_wait:
        return
    elif port.media.driver == "tun":
        what = "has no carrier: no program holds this tap; start the program that does (the guest, for example)"
        if port.transmit_queues != 0:
            what = "has no carrier: no program holds this tap, or the program that does keeps the link down"
        yield Finding("link", "obstacle", what)
    elif port.peer is not None:
        what = f"has no carrier: its other end, {port.peer}, is down"
        yield Finding("link", "obstacle", what, shell(["ip", "link", "set", port.peer, "up"]))
    else:
        yield Finding("link", "obstacle", "has no carrier; see to the cable and the device's port")


def _of_use(port: PortState, *, allow_addresses: bool) -> Iterator[Finding]:
    if port.has_default_route:
        what = "has the default route; a test would cut the machine off, use another"
        yield Finding("default route", "obstacle", what, is_choice=True)
    if port.addresses and not allow_addresses:
        commands = [["ip", "addr", "flush", "dev", port.name]]
        if any(":" in address for address in port.addresses):
            # A name may contain dots; sysctl takes it as it is between slashes.
            commands.append(["sysctl", "-w", f"net/ipv6/conf/{port.name}/disable_ipv6=1"])
        what = f"carries IP address {port.addresses[0]}"
        if not port.is_needed:
            what += "; remove its addresses, or use --allow-addresses"
        yield Finding("addresses", "obstacle", what, shell(*commands), is_choice=True)
    if port.bond is not None:
        what = f"belongs to {port.bond}, which takes its frames"
        mend = shell(["ip", "link", "set", port.name, "nomaster"])
        yield Finding("bond", "obstacle", what, mend, is_choice=True)


def _of_programs(port: PortState) -> Iterator[Finding]:
    """Yield the attached XDP programs: natgauge attaches its own programs for a trial only."""
    for program in port.programs:
        what = f"has BPF program {program.number} attached ({program.mode})"
        mend: str | None = shell(["ip", "link", "set", port.name, program.mode, "off"])
        if program.links:
            what += f" by BPF link {program.links[0]}; end the process that holds the link, or detach it"
            # Interfaces of several namespaces may have the same number.
            only = len(program.links) == 1
            mend = shell(["bpftool", "link", "detach", "id", program.links[0]]) if only else None
        else:
            what += "; end what attached it, or detach it"
        yield Finding("XDP", "obstacle", what, mend)


def _of_driver(port: PortState) -> Iterator[Finding]:
    """Yield what the kernel reports of the driver's XDP, and else what the table contains."""
    known, features = port.driver, port.features
    if features is None:
        yield Finding("XDP", "warning", "this kernel does not report whether it accepts redirected frames")
    elif drivers.Features.BASIC not in features:
        what = f"its driver has no XDP ({port.media.driver}); use a port whose driver has (natgauge doctor)"
        yield Finding("XDP", "obstacle", what)
    elif known is not None and not known.takes:
        what = f"its driver takes no redirected frames ({port.media.driver}); use a port of another driver"
        yield Finding("XDP", "obstacle", what)
    elif drivers.Features.NDO_XMIT not in features:
        what = "its driver takes redirected frames only once a program is attached"
        yield Finding("XDP", "warning" if known is None else "ok", what)
    else:
        yield Finding("XDP", "ok", "its driver runs XDP programs and takes redirected frames")
    if known is not None and known.note:
        yield Finding("driver", "warning", f"{port.media.driver}: {known.note}")


def _of_sizes(port: PortState, frame_sizes: Sequence[int]) -> Iterator[Finding]:
    needed, most = max(frame_sizes, default=0) - FRAME_OVERHEAD, port.driver and port.driver.most_mtu
    if most and port.mtu > most:
        what = f"its MTU is {port.mtu}, and its driver runs XDP programs up to {most} only"
        yield Finding("MTU", "obstacle", what, shell(["ip", "link", "set", port.name, "mtu", min(most, 1500)]))
    elif most and needed > most:
        what = f"frames of {max(frame_sizes)} octets need an MTU of {needed}; with XDP its driver has {most} at most"
        yield Finding("MTU", "obstacle", what, is_choice=True)
    elif needed > port.mtu:
        what = f"its MTU is {port.mtu}, and frames of {max(frame_sizes)} octets need {needed}"
        yield Finding("MTU", "obstacle", what, shell(["ip", "link", "set", port.name, "mtu", needed]))
    else:
        yield Finding("MTU", "ok", f"{port.mtu} octets")


def _of_queues(port: PortState, sender_cpus: Sequence[int]) -> Iterator[Finding]:
    queues, most, cores = port.transmit_queues, port.most_queues, len(online_cpus())
    if not queues:
        return
    if port.driver and port.driver.further_queues and queues > cores and most is not None and queues + cores > most:
        what = (
            f"has {queues} queues for {cores} cores, of {most} at most: XDP finds no further queue for each core, and "
            "its driver would send through queues that do not exist"
        )
        yield Finding("queues", "obstacle", what, shell(["ethtool", "-L", port.name, "combined", cores]))
        return
    without = [cpu for cpu in sender_cpus if cpu >= queues]
    if without and port.driver is not None and port.driver.own_queue:
        what = f"core {without[0]} cannot send: it has no transmit queue, the driver has {queues}"
        mend = shell(["ethtool", "-L", port.name, "combined", max(sender_cpus) + 1])
        yield Finding("queues", "obstacle", what, mend)
    else:
        yield Finding("queues", "ok", f"{queues} to send")


def _peer_of(routes: IPRoute, link: Any) -> str | None:
    """Return the name of a veth's other end; None = it is in another namespace."""
    number = link.get_attr("IFLA_LINK")
    if not number or link.get_attr("IFLA_LINK_NETNSID") is not None:
        return None
    return str(routes.get_links(number)[0].get_attr("IFLA_IFNAME"))


def _transmit_queues(interface: str) -> tuple[int | None, int | None]:
    """Return the present and the largest number; None where the driver does not report it, 0 only for a tap."""
    now, most = (
        sum(int(number) for kind, number in (ethtool.read(interface, part) or {}).items() if kind != "rx")
        for part in _QUEUES
    )
    return now if most else None, most or None
