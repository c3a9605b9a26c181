# SPDX-License-Identifier: Apache-2.0
"""Whether a port can carry the tester: its state, its driver's abilities, and obstacles.

The `wire` lab refuses a port for the first obstacle; `natgauge probe` lists them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, Literal

from pyroute2 import IPRoute
from pyroute2.ethtool.ioctl import EthtoolError, IoctlEthtool

from natgauge.errors import HostError, NatgaugeError, UsageError
from natgauge.host.cpus import online_cpus
from natgauge.labs.wire import xdp
from natgauge.labs.wire.drivers import DriverFacts, driver_facts
from natgauge.labs.wire.media import Media, media_of

FindingState = Literal["ok", "warning", "obstacle"]
#: Subject of a finding on a port.
FindingWord = Literal[
    "link", "default route", "addresses", "bond", "XDP", "driver", "MTU", "queues", "NUMA", "IOMMU", "tuning", "cable",
]  # fmt: skip

#: Octets of a frame besides its IP packet: Ethernet header and FCS.
FRAME_OVERHEAD: Final = 18
_UP: Final = 0x1  # IFF_UP


@dataclass(frozen=True, slots=True)
class PortFinding:
    """One finding on a port.

    Attributes:
        word: subject.
        state: "ok"; "warning": the tester works, but figures may be worse or doubtful; "obstacle": it cannot work.
        what: the finding with its value.
        mend: command or action that removes the problem; None where there is none.
        is_choice: whether an obstacle is the user's choice of port, not a fault of the host.
    """

    word: FindingWord
    state: FindingState
    what: str
    mend: str | None = None
    is_choice: bool = False


@dataclass(frozen=True, slots=True)
class PortState:
    """A port of the calling thread's namespace as the kernel reports it.

    Attributes:
        name: name of the interface.
        mac: its link-layer address.
        is_up: whether it is administratively up.
        has_carrier: whether its link is up.
        mtu: largest IP packet, in octets.
        has_default_route: whether the machine's default route leaves through it.
        addresses: its IP addresses.
        bond: the bond or bridge that it belongs to; None = none.
        program: kernel's number of the XDP program that is attached to it; None = none is.
        features: XDP features of its driver; None = the kernel does not report them.
        media: driver, speed and medium.
        transmit_queues: number of its transmit queues; None = not known.
        most_queues: largest number of transmit queues that its driver can give it; None = not known.
    """

    name: str
    mac: str
    is_up: bool
    has_carrier: bool
    mtu: int
    has_default_route: bool
    addresses: tuple[str, ...]
    bond: str | None
    program: int | None
    features: xdp.Features | None
    media: Media
    transmit_queues: int | None
    most_queues: int | None

    @property
    def driver(self) -> DriverFacts | None:
        """Known properties of its driver."""
        return driver_facts(self.media.driver)


def read_port(interface: str) -> PortState:
    """Read a port of the calling thread's namespace.

    Raises:
        UsageError: there is no such interface.
    """
    with IPRoute() as routes:
        indices = routes.link_lookup(ifname=interface)
        if not indices:
            raise UsageError(f'interface {interface}: does not exist; "ip link" lists those there are')
        index = int(indices[0])
        link = routes.get_links(index)[0]
        master = link.get_attr("IFLA_MASTER")
        above = routes.get_links(master)[0].get_attr("IFLA_IFNAME") if master else None
        queues, most_queues = _transmit_queues(interface)
        return PortState(
            name=interface,
            mac=str(link.get_attr("IFLA_ADDRESS")),
            is_up=bool(link["flags"] & _UP),
            has_carrier=bool(link.get_attr("IFLA_CARRIER")),
            mtu=int(link.get_attr("IFLA_MTU")),
            has_default_route=index in _default_route_interfaces(routes),
            addresses=tuple(str(one.get_attr("IFA_ADDRESS")) for one in routes.get_addr(index=index)),
            bond=above,
            program=_program_of(link),
            features=xdp.features(index),
            media=media_of(interface),
            transmit_queues=queues,
            most_queues=most_queues,
        )


def findings(
    port: PortState,
    *,
    sender_cpus: Sequence[int] = (),
    frame_sizes: Sequence[int] = (),
    allow_addresses: bool = False,
    may_wait: bool = False,
) -> Iterator[PortFinding]:
    """Yield what is to be known of a port, in the order in which obstacles are to be removed.

    Args:
        port: the port.
        sender_cpus: cores of the tester's senders; none = not checked against the queues.
        frame_sizes: frame sizes of the measurement, in octets with FCS; none = not checked against the MTU.
        allow_addresses: whether the port may carry IP addresses.
        may_wait: whether the link may come up later, because the device restarts.
    """
    name = port.name
    if not port.is_up:
        yield PortFinding("link", "obstacle", "is down", f"ip link set {name} up")
    elif not port.has_carrier and not may_wait:
        yield PortFinding("link", "obstacle", "has no carrier; see to the cable and the device's port")
    if port.has_default_route:
        what = "has the default route; a test would cut the machine off, use another"
        yield PortFinding("default route", "obstacle", what, is_choice=True)
    if port.addresses and not allow_addresses:
        mend = f"ip addr flush dev {name}; sysctl net.ipv6.conf.{name}.disable_ipv6=1 (or allow addresses)"
        what = f"carries IP address {port.addresses[0]}"
        yield PortFinding("addresses", "obstacle", what, mend, is_choice=True)
    if port.bond is not None:
        what = f"belongs to {port.bond}, which takes its frames"
        yield PortFinding("bond", "obstacle", what, f"ip link set {name} nomaster", is_choice=True)
    if port.program is not None:
        # natgauge attaches its own programs for a trial only.
        what = f"has an XDP program of another process (number {port.program}); end that process, or detach its program"
        yield PortFinding("XDP", "obstacle", what, f"ip link set {name} xdp off")
    yield from _of_driver(port)
    yield from _of_sizes(port, frame_sizes)
    if port.program is None:
        # With a program attached, the number of virtio-net's queues includes those of the program.
        yield from _of_queues(port, sender_cpus)


def refuse(port: PortState, found: Sequence[PortFinding]) -> None:
    """Refuse a port for its first obstacle.

    Raises:
        UsageError: the obstacle is the choice of the port.
        HostError: the obstacle is the host's or the driver's.
    """
    for finding in found:
        if finding.state == "obstacle":
            error: type[NatgaugeError] = UsageError if finding.is_choice else HostError
            mend = "" if finding.mend is None else f"; run: {finding.mend}"
            raise error(f"interface {port.name}: {finding.what}{mend}")


def _of_driver(port: PortState) -> Iterator[PortFinding]:
    """Yield what the kernel reports of the driver's XDP, and else what the table contains."""
    known, features = port.driver, port.features
    if features is None:
        yield PortFinding("XDP", "warning", "this kernel does not report whether it accepts redirected frames")
    elif xdp.Features.BASIC not in features:
        what = f"its driver has no XDP ({port.media.driver}); use a port whose driver has (natgauge doctor)"
        yield PortFinding("XDP", "obstacle", what)
    elif known is not None and not known.takes:
        what = f"its driver takes no redirected frames ({port.media.driver}); use a port of another driver"
        yield PortFinding("XDP", "obstacle", what)
    elif xdp.Features.NDO_XMIT not in features:
        what = "its driver takes redirected frames only once a program is attached"
        yield PortFinding("XDP", "warning" if known is None else "ok", what)
    else:
        yield PortFinding("XDP", "ok", "its driver runs XDP programs and takes redirected frames")
    if known is not None and known.note:
        yield PortFinding("driver", "warning", f"{port.media.driver}: {known.note}")


def _of_sizes(port: PortState, frame_sizes: Sequence[int]) -> Iterator[PortFinding]:
    needed, most = max(frame_sizes, default=0) - FRAME_OVERHEAD, port.driver and port.driver.most_mtu
    if most and port.mtu > most:
        what = f"its MTU is {port.mtu}, and its driver runs XDP programs up to {most} only"
        yield PortFinding("MTU", "obstacle", what, f"ip link set {port.name} mtu {min(most, 1500)}")
    elif most and needed > most:
        what = f"frames of {max(frame_sizes)} octets need an MTU of {needed}; with XDP its driver has {most} at most"
        yield PortFinding("MTU", "obstacle", what, is_choice=True)
    elif needed > port.mtu:
        what = f"its MTU is {port.mtu}, and frames of {max(frame_sizes)} octets need {needed}"
        yield PortFinding("MTU", "obstacle", what, f"ip link set {port.name} mtu {needed}")
    else:
        yield PortFinding("MTU", "ok", f"{port.mtu} octets")


def _of_queues(port: PortState, sender_cpus: Sequence[int]) -> Iterator[PortFinding]:
    queues, most, cores = port.transmit_queues, port.most_queues, len(online_cpus())
    if queues is None:
        return
    if port.driver and port.driver.further_queues and queues > cores and most is not None and queues + cores > most:
        what = (
            f"has {queues} queues for {cores} cores, of {most} at most: XDP finds no further queue for each core, and "
            "its driver would send through queues that do not exist"
        )
        yield PortFinding("queues", "obstacle", what, f"ethtool -L {port.name} combined {cores}")
        return
    without = [cpu for cpu in sender_cpus if cpu >= queues]
    if without and port.driver is not None and port.driver.own_queue:
        what = f"core {without[0]} cannot send: it has no transmit queue, the driver has {queues}"
        yield PortFinding("queues", "obstacle", what, f"ethtool -L {port.name} combined {max(sender_cpus) + 1}")
    else:
        yield PortFinding("queues", "ok", f"{queues} to send")


def _program_of(link: Any) -> int | None:
    """Return the number of the XDP program that a link's description contains; None = none is attached."""
    described = link.get_attr("IFLA_XDP")
    number = described and described.get_attr("IFLA_XDP_PROG_ID")
    return None if number is None else int(number)


def _transmit_queues(interface: str) -> tuple[int | None, int | None]:
    """Return the present and the largest number; None where the driver does not report it."""
    try:
        with closing(IoctlEthtool(interface)) as tool:
            channels = tool.get_channels()
    except (EthtoolError, OSError):
        return None, None
    now, most = channels.tx_count + channels.combined_count, channels.max_tx + channels.max_combined
    return int(now) or None, int(most) or None


def _default_route_interfaces(routes: IPRoute) -> set[Any]:
    interfaces = set()
    for route in routes.get_default_routes():
        hops = route.get_attr("RTA_MULTIPATH") or ()
        interfaces |= {route.get_attr("RTA_OIF"), *(hop["oif"] for hop in hops)}
    return interfaces
