# SPDX-License-Identifier: Apache-2.0
"""A question: a metric of a gateway in a lab, with its traffic; command line, plans and Python all build one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from natgauge.inputs.input import ABOUT_RANGE, Text, Unrounded, chosen, in_range
from natgauge.words import MOST_OUTSIDE_ADDRESSES, Order, Side, Transport

DEFAULT_LAB: Final = "netns"
#: Options that draw the space of four tuples.
RANGES: Final = ("source_addresses", "source_ports", "destination_addresses", "destination_ports")
#: Options with mixes of frame sizes.
MIXES: Final = ("frame_sizes", "down_frame_sizes")
_SIZES: Final = Text("SIZE:WEIGHT,...")
_VLAN: Final = Unrounded("VLAN")


@dataclass(frozen=True, slots=True)
class FrameOptions:
    """Options of the test frames that need no planning: the engine's `Frame`, and records, have them by these names.

    Each is a field of `TrafficOptions` too, which describes it as an input.
    """

    transport: Transport = "udp"
    frame_sizes: str | None = None
    down_frame_sizes: str | None = None
    initiator_vlan: str | None = None
    responder_vlan: str | None = None

    @property
    def stated(self) -> dict[str, Any]:
        """The options that have a value, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}


#: Of frames for which nothing was chosen.
USUAL_FRAMES: Final = FrameOptions()


@dataclass(frozen=True, slots=True)
class TrafficOptions:
    """Four tuples and frames; None = chosen by the plan.

    Attributes:
        destination_addresses: "A" or "A-B", the Responder's own (between IPv6 and IPv4: the IPv4 ones).
        transport: with "icmp" the Initiator's ports are identifiers of echo requests, with "tcp" phase 1 opens each
            connection by a handshake.
    """

    connections: int | None = chosen(None, "Number of connections", default="100000, or what the ranges allow")
    subscribers: int | None = chosen(None, "Subscribers, each an address of the Initiator", default="1")
    addresses: Literal["single", "draft"] = chosen(
        "single",
        "Addresses where no range is named: one on each side, or all hosts of both networks, "
        "drawn at random (draft-lencse-bmwg-multiple-ip-addresses)",
        label="preset of addresses",
        moves_figures=False,
    )
    source_addresses: str | None = chosen(
        None, "Addresses of the Initiator", label="source address range", **ABOUT_RANGE
    )
    source_ports: str | None = chosen(
        None, "Ports of the Initiator", default="1024-65535", label="source port range", **ABOUT_RANGE
    )
    destination_addresses: str | None = chosen(
        None, "Addresses of the Responder", label="destination address range", **ABOUT_RANGE
    )
    destination_ports: str | None = chosen(
        None, "Ports of the Responder", default="as few as needed", label="destination port range", **ABOUT_RANGE
    )
    frame_size: int | None = chosen(
        None,
        "Frame size including FCS and VLAN tags",
        "octets",
        default="IPv4 64, IPv6 84; tcp: IPv4 88, IPv6 108; with tags 4 more each",
    )
    frame_sizes: str | None = chosen(
        None,
        "Several frame sizes in these shares, such as 64:7,594:4,1518:1, in place of one",
        type=_SIZES,
        label="mix of frame sizes",
    )
    down_frame_sizes: str | None = chosen(
        None,
        "Frame sizes of the Responder's frames, with shares",
        type=_SIZES,
        default="those of the Initiator's",
        label="mix of the Responder's frame sizes",
    )
    initiator_vlan: str | None = chosen(
        None,
        "VLAN of the Initiator's frames: 100; 9.100 (behind service tag 9); 100+ (one for each source address, from "
        "100 on)",
        type=_VLAN,
        default="no tags",
        label="VLAN of the Initiator's frames",
    )
    responder_vlan: str | None = chosen(
        None,
        "VLAN of the Responder's frames, such as 100, or behind a service tag 9.100",
        type=_VLAN,
        default="no tags",
        label="VLAN of the Responder's frames",
    )
    frame_side: Side = chosen("initiator", "Side whose frames have the frame size", label="side of the frame size")
    transport: Transport = chosen("udp", "Test frames: UDP datagrams, ICMP echo requests and replies, or TCP segments")
    order: Order = chosen(
        "permutation", "Enumeration order of the four tuples in phase 1", label="order of four tuples"
    )

    @property
    def frames(self) -> FrameOptions:
        """The options that need no planning."""
        return FrameOptions(**{item.name: getattr(self, item.name) for item in fields(FrameOptions)})


@dataclass(frozen=True, kw_only=True, slots=True)
class LabOptions:
    """Options of every kind of lab; None = chosen by natgauge."""

    lab: str = chosen(DEFAULT_LAB, "Kind of lab", type=Text("KIND", names="kinds"), parameter="lab_kind")
    lab_name: str = chosen(
        "default",
        "Name of a kept or new lab; two runs at the same time need different names",
        type=Text("NAME", names="labs"),
        parameter="lab",
        moves_figures=False,
    )
    seed: int | None = chosen(
        None, "Seed of all pseudorandom choices", default="random", group="traffic", moves_figures=False
    )
    grace_seconds: float | None = chosen(
        None,
        "Wait for the last frames after each phase",
        "s",
        default="the lab's, 0.3 or 2; at least 2 with profile rfc, and the frame time limit",
        label="grace",
        group="traffic",
    )

    nat64_prefix: str | None = chosen(
        None,
        "NAT64 prefix of 32, 40, 48, 56, 64 or 96 bits, such as 64:ff9b::/96",
        type=Text("PREFIX"),
        default="2001:2:0:1::/96",
        label="NAT64 prefix",
        moves_figures=False,
    )
    outside_addresses: int | None = chosen(
        None,
        "Outside IPv4 addresses of the gateway",
        "addresses",
        partial(in_range, lowest=1, highest=MOST_OUTSIDE_ADDRESSES),
        default="1, or those of the recipe",
    )

    power_command: str | None = chosen(
        None,
        'Shell command on this host that prints the power or the energy of the device, such as "61.5 W" or "950 J"',
        type=Text("CMD"),
        label="command that reads the power meter",
        moves_figures=False,
    )


@dataclass(frozen=True, slots=True)
class DeviceOptions:
    """Settings of the device; None = chosen by natgauge."""

    table_size: int | None = chosen(
        None, "Size limit of the device's connection table", "connections", label="connection table limit"
    )
    hash_size: int | None = chosen(None, "Buckets of the device's connection table", "buckets", label="hash table size")
    timeouts: int | None = chosen(
        None, "All time-outs of the device: UDP, TCP in each state, ICMP", "s", default="those it has"
    )
    udp_timeout: int | None = chosen(
        None,
        "Time-out of the device for the test frames: of UDP, or of the chosen transport and state",
        "s",
        default="longer than any trial",
        label="UDP timeout",
    )
    psid_length: int | None = chosen(
        None,
        "Bits of a port that identify a subscriber's port set (MAP, lw4o6): 5 = 2048 ports",
        "bits",
        partial(in_range, lowest=0, highest=16),
        label="PSID length",
        default="that of the recipe",
    )
    psid_offset: int | None = chosen(
        None,
        "Bits of a port before the PSID; if there are any, ports whose first bits are all 0 belong to no set",
        "bits",
        partial(in_range, lowest=0, highest=15),
        label="PSID offset",
        default="that of the recipe",
    )
    emptying: str | None = chosen(
        None,
        "How the table is emptied: default, restart (the gateway is stopped and started), or another way of the recipe",
        type=Text("WAY"),
        default="default",
    )
    logging: str | None = chosen(
        None,
        "Way of the recipe in which the gateway logs its connections, such as conntrack-events; a trial whose log "
        "lacks one fails",
        type=Text("WAY"),
        default="it does not",
    )
    log_tolerance: float | None = chosen(
        None, "Largest share of connections that the log of a passing trial lacks", "share", (0.0, 0.5), default="0"
    )

    def named(self) -> dict[str, int]:
        """The values that were chosen for knobs, by name."""
        every = {name: getattr(self, name) for name in ("table_size", "hash_size", "timeouts", "udp_timeout")}
        if self.udp_timeout is None:
            every["udp_timeout"] = self.timeouts
        return {name: value for name, value in every.items() if value is not None}


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """A gateway in a lab with its traffic.

    Attributes:
        kind_options: options of that kind of lab, an instance of its dataclass; None = its defaults.
        background: whether the device is to route native IPv6, too.
    """

    gateway: str | Path
    traffic: TrafficOptions = field(default_factory=TrafficOptions)
    lab: LabOptions = field(default_factory=LabOptions)
    kind_options: object = None
    device: DeviceOptions = field(default_factory=DeviceOptions)
    background: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """One measurement to make: its metric, gateway and settings.

    Attributes:
        settings: settings of the procedure, by name, for example {"repeat": 10, "trial_seconds": 2.0}.
    """

    metric: str
    cell: Cell
    settings: Mapping[str, Any] = field(default_factory=dict)
