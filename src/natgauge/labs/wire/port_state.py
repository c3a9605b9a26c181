# SPDX-License-Identifier: Apache-2.0
"""Whether a port can carry the tester: what the kernel tells of its driver and link, its state, and obstacles.

The `wire` lab refuses a port for the first obstacle; `natgauge probe` lists them all.

Of the driver: its XDP programs and features (Documentation/netlink/specs/netdev.yaml, Linux >= 6.3). Of the link: its
medium, speed and flow control (linux/ethtool.h). RFC 8219 section 5.1 requires a report of the medium, RFC 2544 section
26.1 the theoretical maximum of the link.
"""

from __future__ import annotations

import ctypes
import os
import platform
import shlex
import struct
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from enum import IntFlag
from functools import cache
from importlib import resources
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict
from pyroute2 import IPRoute
from pyroute2.ethtool.common import LINK_PORT_NAMES, PORT_NONE, PORT_OTHER
from pyroute2.ethtool.ioctl import EthtoolError, IoctlEthtool
from pyroute2.netlink import genlmsg
from pyroute2.netlink.exceptions import NetlinkError

from natgauge.errors import HostError, NatgaugeError, UsageError
from natgauge.ethernet import FRAME_OVERHEAD
from natgauge.finding import Finding
from natgauge.host import network_ports
from natgauge.host.machine import online_cpus
from natgauge.host.network_ports import uplinks
from natgauge.labs.common.links import link_attribute
from natgauge.labs.common.namespaces import inside

_DEVICE_GET = 1
#: Number of the system call bpf(); most architectures have that of include/uapi/asm-generic/unistd.h.
_BPF: Final = {"x86_64": 321}.get(platform.machine(), 280)
_OBJECT_INFO, _LINK_BY_ID, _NEXT_LINK, _LINK_XDP = 15, 30, 31, 6

#: Where a program runs, in the words of `ip link set`: in the driver, in the kernel behind it, on the card.
Mode = Literal["xdp", "xdpgeneric", "xdpoffload"]
_MODES: Final[tuple[tuple[str, Mode], ...]] = (
    ("IFLA_XDP_DRV_PROG_ID", "xdp"),
    ("IFLA_XDP_SKB_PROG_ID", "xdpgeneric"),
    ("IFLA_XDP_HW_PROG_ID", "xdpoffload"),
)


@dataclass(frozen=True, slots=True)
class Attached:
    """An XDP program that is attached to an interface.

    Attributes:
        links: numbers of the BPF links that may attach it, which netlink cannot detach; none = none, or not known.
    """

    number: int
    mode: Mode
    links: tuple[int, ...] = ()


class Features(IntFlag):
    """Current XDP features of an interface's driver; some drivers have more once a program is attached."""

    BASIC = 1
    REDIRECT = 2
    NDO_XMIT = 4


class _Message(genlmsg):  # type: ignore[misc]  # pyroute2 has no types
    prefix = "NETDEV_A_DEV_"
    nla_map = (
        ("NETDEV_A_DEV_UNSPEC", "none"),
        ("NETDEV_A_DEV_IFINDEX", "uint32"),
        ("NETDEV_A_DEV_PAD", "none"),
        ("NETDEV_A_DEV_XDP_FEATURES", "uint64"),
    )


def features(index: int) -> Features | None:
    """XDP features of the interface with this number in the calling thread's namespace; None = cannot be asked."""
    try:
        answer = network_ports.ask_netlink("netdev", _Message, _DEVICE_GET, [("NETDEV_A_DEV_IFINDEX", index)])
    except NetlinkError:
        return None
    features = None if answer is None else answer.get_attr("NETDEV_A_DEV_XDP_FEATURES")
    return None if features is None else Features(features & 7)


def attached(link: Any) -> tuple[Attached, ...]:
    """Return the XDP programs in the kernel's description of an interface (rtnetlink, IFLA_XDP)."""
    described = link.get_attr("IFLA_XDP")
    numbers = [(described and described.get_attr(attribute), mode) for attribute, mode in _MODES]
    if not any(number for number, _ in numbers):
        return ()
    links = tuple(_links(link["index"]))
    return tuple(
        Attached(number, mode, tuple(one for program, one in links if program == number))
        for number, mode in numbers
        if number
    )


def _links(index: int) -> Iterator[tuple[int, int]]:
    """Yield the program's and the BPF link's number of the XDP links of interfaces with this number in any namespace.

    Without CAP_SYS_ADMIN there are none.
    """
    number = 0
    while number := _next_link(number):
        handle, _ = bpf(_LINK_BY_ID, struct.pack("I", number))
        if handle < 0:
            # It has gone, or it may not be read.
            continue
        try:
            # struct bpf_link_info: type, id, prog_id, padding, and for XDP the interface.
            info = ctypes.create_string_buffer(128)
            done, _ = bpf(_OBJECT_INFO, struct.pack("IIQ", handle, len(info), ctypes.addressof(info)))
        finally:
            os.close(handle)
        kind, program, interface = struct.unpack_from("I4xI4xI", info)
        if done >= 0 and (kind, interface) == (_LINK_XDP, index):
            yield program, number


def _next_link(number: int) -> int:
    """Return the next BPF link's number; 0 = there is none."""
    done, attributes = bpf(_NEXT_LINK, struct.pack("I", number))
    return int(struct.unpack_from("4xI", attributes)[0]) if done >= 0 else 0


def bpf(command: int, attributes: bytes) -> tuple[int, bytes]:
    """Make the system call with the first fields of union bpf_attr; the others are 0.

    Return what the call returns (negative = it failed, see errno), and the attributes after it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    both = ctypes.create_string_buffer(attributes, 120)
    return int(libc.syscall(_BPF, command, both, len(both))), both.raw


NOT_KNOWN: Final = "not known"
VIRTUAL: Final = "virtual"

FlowControl = Literal["off", "received", "sent", "received and sent", "not known"]
#: By whether PAUSE frames (IEEE 802.3 annex 31B) are obeyed, and whether they are sent.
_FLOW: Final[dict[tuple[bool, bool], FlowControl]] = {
    (False, False): "off",
    (True, False): "received",
    (False, True): "sent",
    (True, True): "received and sent",
}

#: A driver that does not know its speed says 0 or one of these.
_NO_SPEED: Final = frozenset({0, 0xFFFF, 0xFFFF_FFFF})


_GET_DRIVER: Final = 0x03


class _DriverInfo(ctypes.Structure):
    """Begin of struct ethtool_drvinfo, with room for its rest."""

    _fields_ = (
        ("cmd", ctypes.c_uint32),
        ("driver", ctypes.c_char * 32),
        ("version", ctypes.c_char * 32),
        ("firmware", ctypes.c_char * 32),
        ("rest", ctypes.c_uint8 * 96),
    )


@dataclass(frozen=True, slots=True)
class Media:
    """One port and its link.

    Attributes:
        firmware: firmware of the card; None where there is none, or it is not known.
        megabits: speed of the link in Mbit/s; None = not known. A virtual port's speed is fictitious and not reported.
    """

    driver: str = NOT_KNOWN
    firmware: str | None = None
    medium: str = NOT_KNOWN
    megabits: int | None = None
    flow_control: FlowControl = "not known"


def media_of(interface: str) -> Media:
    """Return the media of a port of the calling thread's namespace; "not known" where the driver reports nothing."""
    driver, firmware = _driver(interface)
    pause = network_ports.read(interface, "pause")
    flow: FlowControl = "not known" if pause is None else _FLOW[pause["rx"] == "on", pause["tx"] == "on"]
    medium, megabits = _medium_and_speed(interface) if _has_card(interface) else (VIRTUAL, None)
    return Media(driver, firmware, medium, megabits, flow)


def _has_card(interface: str) -> bool:
    """Whether there is a device on a bus behind the port; what a veth or tap says of speed and medium is made up."""
    return bool(link_attribute(None, interface, "IFLA_PARENT_DEV_NAME"))


def driver_of(interface: str) -> str:
    """Return the driver of a port of the calling thread's namespace; "not known" where it cannot be asked."""
    return _driver(interface)[0]


def _driver(interface: str) -> tuple[str, str | None]:
    described = _DriverInfo(_GET_DRIVER)
    try:
        network_ports.ask(interface, described)
    except OSError:
        return NOT_KNOWN, None
    return _text(described.driver) or NOT_KNOWN, _text(described.firmware) or None


def _medium_and_speed(interface: str) -> tuple[str, int | None]:
    """Return medium, and speed in Mbit/s."""
    try:
        with closing(IoctlEthtool(interface)) as tool:
            answer = tool.get_link_settings()
    except (EthtoolError, OSError):
        return NOT_KNOWN, None
    medium = NOT_KNOWN if answer.port in (PORT_NONE, PORT_OTHER) else LINK_PORT_NAMES.get(answer.port, NOT_KNOWN)
    return medium, None if answer.speed in _NO_SPEED else int(answer.speed)


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode(errors="replace").strip()


#: Longest time of a link that negotiates its speed: after it is set up, and with some drivers (igb, vmxnet3) whenever a
#: program was attached or detached.
LINK_SECONDS: Final = 5.0
_QUEUES: Final[tuple[network_ports.Part, network_ports.Part]] = ("queues", "most queues")
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
    programs: tuple[Attached, ...]
    features: Features | None
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
        return self.is_up and not self.has_carrier and self.media.medium != VIRTUAL

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
            programs=attached(link),
            features=features(index),
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
    elif Features.BASIC not in features:
        what = f"its driver has no XDP ({port.media.driver}); use a port whose driver has (natgauge doctor)"
        yield Finding("XDP", "obstacle", what)
    elif known is not None and not known.takes:
        what = f"its driver takes no redirected frames ({port.media.driver}); use a port of another driver"
        yield Finding("XDP", "obstacle", what)
    elif Features.NDO_XMIT not in features:
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
        sum(int(number) for kind, number in (network_ports.read(interface, part) or {}).items() if kind != "rx")
        for part in _QUEUES
    )
    return now if most else None, most or None
