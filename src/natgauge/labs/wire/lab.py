# SPDX-License-Identifier: Apache-2.0
"""The `wire` lab: two existing ports of this machine; what is between them is not ours to touch."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from ipaddress import IPv6Network, ip_address, ip_network
from typing import Any, Final, Self

from natgauge.errors import BrokenError, HostError, UsageError
from natgauge.host import capabilities
from natgauge.host.machine import check_cpus, usable_cpus
from natgauge.labs.common import locks
from natgauge.labs.common.addresses import INSIDE, NAT64_PREFIX, OUTSIDE, LinkSide, prefix_parameter
from natgauge.labs.common.links import drop_counters, link_attribute
from natgauge.labs.common.locks import Lock
from natgauge.labs.common.namespaces import exists, inode_of, inside
from natgauge.labs.common.port_options import BootCommand
from natgauge.labs.contract import (
    TESTER_PLACES,
    Addresses,
    Device,
    DeviceCores,
    ExternalDevice,
    Ground,
    Lab,
    LabCounters,
    Link,
    Port,
)
from natgauge.labs.wire.port_state import LINK_SECONDS, Media, findings, media_of, read_port, refuse, refuse_missing
from natgauge.words import Address, Family, Placement

#: RFC 2544 section 23: receivers stay open 2 s after the last frame.
GRACE_SECONDS: Final = 2.0
_ETHERNET_MTU: Final = 1500
#: Begins the name of the lock of a port.
_PORT_LOCK: Final = "port-"
#: The Responder's IPv4 addresses as an Initiator with IPv4 writes them, where the Responder has them behind the prefix.
_HOSTS4: Final = Link(ip_network("0.0.0.0/0"), OUTSIDE["ipv4"].device.ip, OUTSIDE["ipv4"].host(0))


class WireLab(Lab):
    """Two named ports. They are examined and locked, nothing of them is changed.

    Attributes:
        remarks: remarks on the ports that a reader of the result should see; none before the `with` block.
    """

    placement: Placement = "external"
    devices: Sequence[Device] = ()
    grace_seconds = GRACE_SECONDS
    device_cores = DeviceCores()
    is_reused = True

    def __init__(  # noqa: PLR0913 - one argument per choice, all but the ports by keyword
        self,
        initiator: Port,
        responder: Port,
        *,
        name: str = "wire",
        families: tuple[Family, Family] = ("ipv4", "ipv4"),
        sender_cpus: Sequence[int] | None = None,
        allow_addresses: bool = False,
        pool: Addresses | None = None,
        external: ExternalDevice | None = None,
        device_cores: int | None = None,
        boot: BootCommand | None = None,
        nat64_prefix: IPv6Network = NAT64_PREFIX,
        mapped: Addresses | None = None,
        background: tuple[Addresses, Addresses] | None = None,
    ) -> None:
        """Choose the ports; they are looked at by the `with` block.

        Choices are as in `WireOptions`, `LabNeeds` and `Ground`; None = not stated, or not known. Packets to addresses
        of a port would mix with the test's frames, and while a trial runs the host does not get them. `boot` restarts
        the device with `device_cores` cores each time the lab is entered.
        """
        if (initiator.interface, initiator.netns) == (responder.interface, responder.netns):
            raise UsageError(f"interface {initiator.interface}: is named for both ports; name two different ones")
        for port in (initiator, responder):
            if port.gateway_mac is None and port.gateway_address is None:
                raise UsageError(
                    f"interface {port.interface}: the device's MAC or IP address on this link is missing; name one"
                )
        self.name = name
        self.initiator = initiator
        self.responder = responder
        self.remarks: tuple[str, ...] = ()
        self.media: tuple[Media, Media] = (Media(), Media())
        senders = usable_cpus()[:1] if sender_cpus is None else sender_cpus
        self.sender_cpus = check_cpus(senders, "sender cores", "sender_cores")
        self.external: ExternalDevice | None = external or ExternalDevice()
        self.device_cores = DeviceCores(device_cores)
        self._boot = boot
        self._boot_seconds: float | None = None
        self._pool = pool
        self._nat64_prefix = nat64_prefix
        self._mapped = mapped
        self._background = background
        self._families = families
        self._allow_addresses = allow_addresses
        self._locks: list[Lock] = []

    @property
    def _ports(self) -> tuple[Port, Port]:
        return self.initiator, self.responder

    @property
    def ground(self) -> Ground:
        """The address plan of our own labs, as far as the ports' gateways and the pool do not say otherwise."""
        return Ground(
            inside=_link(INSIDE[self._families[0]], self.initiator),
            outside=_link(OUTSIDE[self._families[1]], self.responder),
            mtu=min(_mtu(self.initiator), _mtu(self.responder)),
            nat64_prefix=self._nat64_prefix,
            pool=self._pool,
            mapped=self._mapped,
            mapped_in_order=self._mapped is not None,
            background=self._background,
            # The Responder has the addresses of these hosts behind the prefix.
            embedded=_HOSTS4 if self._families == ("ipv4", "ipv6") else None,
        )

    def keep(self) -> None:
        """Refuse to keep the lab up."""
        raise UsageError(f"lab {self.name}: its ports were not made by natgauge, so there is nothing to keep up")

    def parameters(self) -> Mapping[str, Any]:
        """Both ports with their links, and what the user states of the device."""
        known = {} if self.external is None else self.external.parameters()
        native = zip(("initiator_background", "responder_background"), map(str, self._background or ()), strict=False)
        return {
            "ports": [self.initiator.interface, self.responder.interface],
            "port_drivers": [port.driver for port in self.media],
            "port_firmware": [port.firmware for port in self.media],
            "media": [port.medium for port in self.media],
            "link_speeds": [port.megabits for port in self.media],
            "flow_control": [port.flow_control for port in self.media],
            **prefix_parameter(self._nat64_prefix),
            **({"mapped_addresses": str(self._mapped)} if self._mapped is not None else {}),
            **dict(native),
            **({"allow_addresses": True} if self._allow_addresses else {}),
            **({"port_remarks": list(self.remarks)} if self.remarks else {}),
            **known,
            **({} if self._boot is None else {**self._boot.parameters(), "boot_took_seconds": self._boot_seconds}),
        }

    def up(self) -> Self:
        """Examine and lock both ports, and restart the device if there is a command for it."""
        try:
            self.take()
            if self._boot is not None:
                self._boot_seconds = self._boot.run(self.device_cores.count, self._why_not_back)
            states = (inside(port.netns, partial(read_port, port.interface)) for port in self._ports)
            self.await_carrier(LINK_SECONDS if any(state.may_negotiate for state in states) else 0.0)
        except BaseException:
            self.down()
            raise
        return self

    def _without_carrier(self) -> str:
        """Return the first port whose link is not up; empty when both are."""
        down = (port for port in self._ports if not link_attribute(port.netns, port.interface, "IFLA_CARRIER"))
        return next((port.interface for port in down), "")

    def _why_not_back(self) -> str:
        without = self._without_carrier()
        return f"interface {without} has no carrier" if without else ""

    def take(self) -> None:
        """Lock both ports and check that they can be used once their links are up; `down` if it fails."""
        capabilities.require("using ports", *capabilities.PORTS)
        # Not added to those of the lab's last use.
        remarks: list[str] = []
        for port in self._ports:
            if port.netns is not None and not exists(port.netns):
                raise UsageError(f'namespace {port.netns}: does not exist; "ip netns" lists those there are')
            # Before the lock, which is a file of the port's name.
            inside(port.netns, partial(refuse_missing, port.interface))
            lock = port_lock(port.interface, port.netns)
            lock.take()
            self._locks.append(lock)
            remarks += inside(port.netns, partial(self._examine, port))
        self.remarks = tuple(remarks)

    def await_carrier(self, seconds: float) -> None:
        """Wait for both links, at most for these seconds; their properties are known then. `down` if it fails."""
        deadline = time.monotonic() + seconds
        while without := self._without_carrier():
            if time.monotonic() >= deadline:
                raise HostError(f"interface {without}: has no carrier; see to the cable and the device's port")
            time.sleep(0.05)
        self.media = (_media(self.initiator), _media(self.responder))

    def _examine(self, port: Port) -> tuple[str, ...]:
        """Refuse a port that cannot or should not be used; called in its namespace."""
        state = read_port(port.interface)
        allowed = self._allow_addresses
        # The device may restart; the user of the lab waits for the carrier.
        found = tuple(findings(state, sender_cpus=self.sender_cpus, allow_addresses=allowed, may_wait=True))
        refuse(state, found)
        return tuple(f"interface {state.name}: {finding.what}" for finding in found if finding.state == "warning")

    def down(self) -> None:
        """Release the locks on the ports."""
        while self._locks:
            self._locks.pop().rest()

    def counters(self) -> LabCounters:
        """Return the drops of the ports alone: natgauge does not reach the device."""
        return LabCounters(self.dropped())

    def dropped(self) -> Mapping[str, int]:
        """Frames the two ports dropped since they exist: "initiator port received", "initiator port sent" ..."""
        figures: dict[str, int] = {}
        for place, port in zip(TESTER_PLACES, self._ports, strict=True):
            counters = drop_counters(port.netns)
            if port.interface not in counters:
                raise HostError(f"interface {port.interface}: is gone; plug it in and begin again")
            figures |= counters[port.interface].at(place)
        return figures

    def __enter__(self) -> Self:
        return self.up()

    def __exit__(self, *exception: object) -> None:
        self.down()


def port_lock(interface: str, netns: str | None) -> Lock:
    """Return the lock of a port, the same by any name of its namespace; None = the calling thread's."""
    place = f" in {netns}" if netns else ""
    return Lock(f"{_PORT_LOCK}{inode_of(netns)}-{interface}", f"port {interface}{place}")


def used_ports() -> Iterator[tuple[str, str]]:
    """Yield each port that a natgauge of this machine uses, and its process in words; nothing is made or changed."""
    for lock in locks.every():
        name = lock.path.name
        # A lab may have such a name, too.
        if lock.path.parent == locks.folder("locks") and name.startswith(_PORT_LOCK) and lock.is_held():
            yield name.removesuffix(".lock").split("-", 2)[2], lock.holder_in_words()


def _link(side: LinkSide, port: Port) -> Link:
    """A link of which only the device's address is known, if at all."""
    device: Address = side.device.ip if port.gateway_address is None else ip_address(port.gateway_address)
    return Link(ip_network("0.0.0.0/0" if side.device.version == 4 else "::/0"), device, side.host(0))


def _media(port: Port) -> Media:
    return inside(port.netns, lambda: media_of(port.interface))


def _mtu(port: Port) -> int:
    """Ethernet's own where it cannot be read; a missing port is refused when the lab is entered."""
    try:
        return link_attribute(port.netns, port.interface, "IFLA_MTU") or _ETHERNET_MTU
    except BrokenError:
        return _ETHERNET_MTU
