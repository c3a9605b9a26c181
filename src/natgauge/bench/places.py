# SPDX-License-Identifier: Apache-2.0
"""From what the user names (a recipe, cores, ports) to a lab, and to what that lab fixes for the traffic."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, Protocol, get_args

from natgauge.bench.traffic import Addresses, LinkAddresses, Surroundings, TrafficPlan
from natgauge.duts.recipe import Recipe, load
from natgauge.errors import UsageError
from natgauge.host.cpus import check_cpus, parse_cpus, usable_cpus
from natgauge.labs import addresses
from natgauge.labs.base import Device, Port
from natgauge.labs.links import MTU
from natgauge.labs.netns import NetnsLab
from natgauge.labs.wire import WireLab
from natgauge.words import Address, Family, Placement

LabKind = Literal["netns", "wire"]

#: How long cores are watched to find the least busy one: 20 ticks of /proc/stat.
IDLE_WATCH_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class WirePort:
    """One existing port, as the user names it.

    Attributes:
        interface: its name.
        gateway: MAC or IP address of the device on this link.
        netns: namespace that holds it; None = our own.
    """

    interface: str
    gateway: str
    netns: str | None = None

    def as_port(self, side: str) -> Port:
        """The port, its gateway told apart.

        Raises:
            UsageError: the gateway is neither a MAC nor an IP address.
        """
        if self.gateway.count(":") == 5 and all(len(part) == 2 for part in self.gateway.split(":")):
            return Port(self.interface, self.netns, self.gateway.lower(), None)
        try:
            address = ipaddress.ip_address(self.gateway)
        except ValueError:
            raise UsageError(f"{side} gateway: {self.gateway!r} is neither a MAC nor an IP address") from None
        return Port(self.interface, self.netns, None, str(address))


@dataclass(frozen=True, slots=True)
class PlaceOptions:
    """Where to measure.

    Attributes:
        kind: "netns" (made here) or "wire" (two existing ports, the device is not ours).
        name: the lab's; two runs at one time need two names.
        placement: "shared" or "isolated" for `netns`; None = "shared", but "isolated" for devices with processes of
            their own. `wire` is always "external".
        cores: the device's cores; None = the lab's choice. In `shared` placement they are the sender's, too.
        sender_cores: the tester's sending cores; None = the lab's choice.
        ring: frames that wait in front of each core of an isolated device.
        initiator_port: for `wire`.
        responder_port: for `wire`.
        allow_addresses: `wire` ports may carry IP addresses.
    """

    kind: LabKind = "netns"
    name: str = "default"
    placement: Literal["shared", "isolated"] | None = None
    cores: str | Sequence[int] | None = None
    sender_cores: str | Sequence[int] | None = None
    ring: int = 512
    initiator_port: WirePort | None = None
    responder_port: WirePort | None = None
    allow_addresses: bool = False


class UsableLab(AbstractContextManager["UsableLab"], Protocol):
    """What both kinds of labs give, apart from the way up and down."""

    name: str
    placement: Placement
    initiator: Port
    responder: Port
    devices: Sequence[Device]

    def dropped(self) -> Mapping[str, int]:
        """Frames dropped so far at places of the lab."""


def cpu_list(cores: str | Sequence[int] | None) -> tuple[int, ...] | None:
    """Cores as the user gives them: "0,2-3" or numbers.

    Raises:
        UsageError: malformed.
    """
    if cores is None:
        return None
    return parse_cpus(cores) if isinstance(cores, str) else tuple(cores)


def check_options(options: PlaceOptions) -> None:
    """Refuse contradictions before anything is made.

    Raises:
        UsageError: an unknown lab or placement, or options of the other kind of lab.
    """
    if options.kind not in get_args(LabKind):
        raise UsageError(f"lab: {options.kind!r} is unknown; choose one of {', '.join(get_args(LabKind))}")
    ports = (options.initiator_port, options.responder_port)
    if options.kind == "netns" and any(ports):
        raise UsageError("lab netns: makes its own ports; leave the ports out, or choose --lab wire")
    if options.kind == "wire":
        if not all(ports):
            raise UsageError("lab wire: needs --initiator-port, --responder-port and the device's address on each link")
        if options.placement is not None or options.cores is not None:
            raise UsageError(
                "lab wire: the device is not ours, so placement and cores cannot be chosen; leave them out"
            )


def with_placement(options: PlaceOptions, recipe: Recipe) -> PlaceOptions:
    """The options with a placement, where a lab has one and none was chosen.

    A process in user space does not run in the sender's context: on the sender's core the two would only push each
    other aside. So a device with processes of its own gets cores of its own where there are any.
    """
    if options.kind != "netns" or options.placement is not None:
        return options
    cores = recipe.knobs.cores
    has_processes = cores is not None and cores.scope == "device"
    return replace(options, placement="isolated" if has_processes and len(usable_cpus()) > 1 else "shared")


def with_idle_core(options: PlaceOptions, seconds: float = IDLE_WATCH_SECONDS) -> PlaceOptions:
    """The options with the least busy core for the sender, where no cores were chosen.

    Whatever else runs on the sender's core stalls it, and stalled trials are void; on an idle machine it is the first.
    """
    if options.kind != "netns" or options.cores is not None or options.sender_cores is not None:
        return options
    return replace(options, sender_cores=(idlest_core(usable_cpus(), seconds),))


def idlest_core(cpus: Sequence[int], seconds: float) -> int:
    """The core that idled most for `seconds`; the first one of equals."""
    before = _idle_ticks()
    time.sleep(seconds)
    after = _idle_ticks()
    return max(cpus, key=lambda cpu: (after.get(cpu, 0) - before.get(cpu, 0), -cpu))


def _idle_ticks() -> dict[int, int]:
    """Ticks each core was idle since boot (proc_pid_stat(5): the fourth and fifth figure of its line)."""
    lines = Path("/proc/stat").read_text().splitlines()
    cores = [line.split() for line in lines if line.startswith("cpu") and not line.startswith("cpu ")]
    return {int(words[0].removeprefix("cpu")): int(words[4]) + int(words[5]) for words in cores}


def background_hosts() -> tuple[Addresses, Addresses]:
    """The tester's hosts of native IPv6, one on the Initiator's side and one on the Responder's."""
    return Addresses(*addresses.BACKGROUND_INSIDE.range(1)), Addresses(*addresses.BACKGROUND_OUTSIDE.range(1))


def refuse_background(around: Surroundings) -> None:
    """Refuse native IPv6 beside the frames under test where the device would not merely route it.

    Raises:
        UsageError: it translates IPv6 to IPv6.
    """
    if around.translated and around.outside.family == "ipv6":
        raise UsageError("foreground share: a NAT66 translates native IPv6, too; leave it out")


def make_lab(
    options: PlaceOptions, recipe: Recipe, traffic: TrafficPlan, *, background: bool = False
) -> NetnsLab | WireLab:
    """Plan the lab for a recipe; nothing is made before its `with` block.

    Args:
        options: of the user.
        recipe: of the device.
        traffic: of the trials.
        background: whether a device of ours routes native IPv6, too.

    Raises:
        UsageError: a name, core, placement or port is wrong.
    """
    check_options(options)
    if options.kind == "wire" and options.initiator_port and options.responder_port:
        return WireLab(
            options.initiator_port.as_port("initiator"),
            options.responder_port.as_port("responder"),
            name=options.name,
            allow_addresses=options.allow_addresses,
        )
    senders, devices = choose_cores(options)
    return NetnsLab(
        options.name,
        initiator_family=recipe.initiator_family,
        responder_family=recipe.responder_family,
        placement=options.placement or "shared",
        sender_cpus=senders,
        device_cpus=devices,
        ring=options.ring,
        hosts=traffic.source_addresses.count + traffic.responder_addresses.count,
        background=background,
    )


def choose_cores(options: PlaceOptions) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    """Sender and device cores as asked for; in `shared` placement one choice is both, in `isolated` they differ."""
    senders, devices = cpu_list(options.sender_cores), cpu_list(options.cores)
    if options.placement != "isolated":
        return (senders if senders is not None else devices), devices
    if senders is None and devices is not None:
        left = [cpu for cpu in usable_cpus() if cpu not in check_cpus(devices, "device cores")]
        senders = tuple(left[:1]) or None
    return senders, devices


def sender_cpus(lab: NetnsLab | WireLab, options: PlaceOptions) -> tuple[int, ...]:
    """The tester's sending cores in this lab.

    Raises:
        UsageError: a core cannot be used.
    """
    if isinstance(lab, NetnsLab):
        return lab.sender_cpus
    chosen = cpu_list(options.sender_cores)
    return check_cpus(usable_cpus()[:1] if chosen is None else chosen, "sender cores")


def device_cpus(lab: NetnsLab | WireLab) -> tuple[int, ...]:
    """The device's cores; none when they are not known to us."""
    return lab.device_cpus if isinstance(lab, NetnsLab) else ()


def surroundings(options: PlaceOptions, recipe: Recipe) -> Surroundings:
    """What the lab will fix for the traffic, before it is made.

    Raises:
        UsageError: contradictory options, or a wire port's gateway is of the wrong family.
    """
    check_options(options)
    inside = _link(addresses.INSIDE[recipe.initiator_family], options.initiator_port)
    outside = _link(addresses.OUTSIDE[recipe.responder_family], options.responder_port)
    ours = options.kind == "netns"
    mapped = Addresses(*addresses.MAPPED.range(addresses.MAPPED.hosts)) if recipe.source == "mapped" and ours else None
    # A mapping that is not known is judged like any translation.
    translated = recipe.source != "unchanged" and mapped is None
    crosses = recipe.initiator_family != recipe.responder_family
    return Surroundings(
        inside=inside,
        outside=outside,
        prefix=addresses.NAT64_PREFIX if crosses else None,
        translated=translated,
        pool=Addresses(outside.device, outside.device) if translated and ours else None,
        mtu=MTU if ours else min(_mtu(options.initiator_port), _mtu(options.responder_port)),
        mapped=mapped,
    )


def _link(side: addresses.LinkSide, port: WirePort | None) -> LinkAddresses:
    """A link of our own labs, or one we know only the device's address of."""
    device: Address = side.device.ip
    if port is None:
        return LinkAddresses(side.device.network, device, side.host(0))
    given = port.as_port("wire").gateway_address
    if given is not None:
        device = ipaddress.ip_address(given)
    everything = ipaddress.ip_network("0.0.0.0/0" if side.device.version == 4 else "::/0")
    return LinkAddresses(everything, device, side.host(0))


def _mtu(port: WirePort | None) -> int:
    """Of a wire port; Ethernet's own where it cannot be read (the lab refuses a missing port itself)."""
    try:
        return int(Path(f"/sys/class/net/{port.interface if port else ''}/mtu").read_text())
    except (OSError, ValueError):
        return 1500


def keep_lab(name: str, *, dut: str | None, placement: str, cores: str | None) -> NetnsLab:
    """Make a lab of namespaces and keep it up.

    Raises:
        NatgaugeError: as making labs does.
    """
    families: tuple[Family, Family] = ("ipv4", "ipv4")
    if dut is not None:
        recipe = load(dut)
        families = (recipe.initiator_family, recipe.responder_family)
    where: Literal["shared", "isolated"] = "isolated" if placement == "isolated" else "shared"
    options = PlaceOptions(name=name, placement=where, cores=cores)
    senders, devices = choose_cores(options)
    lab = NetnsLab(
        name,
        initiator_family=families[0],
        responder_family=families[1],
        placement=where,
        sender_cpus=senders,
        device_cpus=devices,
    )
    with lab:
        lab.keep()
    return lab
