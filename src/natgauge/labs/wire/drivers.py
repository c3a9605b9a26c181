# SPDX-License-Identifier: Apache-2.0
"""What the kernel tells of a port: its driver, its XDP programs and features, its medium, speed and flow control.

XDP: Documentation/netlink/specs/netdev.yaml, Linux >= 6.3; the link: linux/ethtool.h. RFC 8219 section 5.1 requires a
report of the medium, RFC 2544 section 26.1 the theoretical maximum of the link.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from enum import IntFlag
from typing import Any, Final, Literal

from pyroute2.ethtool.common import LINK_PORT_NAMES, PORT_NONE, PORT_OTHER
from pyroute2.ethtool.ioctl import EthtoolError, IoctlEthtool
from pyroute2.netlink import NLM_F_REQUEST, genlmsg
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.generic import GenericNetlinkSocket

from natgauge.host import ethtool
from natgauge.labs.common.links import link_attribute

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
    message = _Message()
    message["cmd"] = _DEVICE_GET
    message["version"] = 1
    message["attrs"] = [("NETDEV_A_DEV_IFINDEX", index)]
    try:
        with GenericNetlinkSocket() as netdev:
            netdev.bind("netdev", _Message)
            (answer,) = netdev.nlm_request(message, msg_type=netdev.prid, msg_flags=NLM_F_REQUEST)
            features = answer.get_attr("NETDEV_A_DEV_XDP_FEATURES")
    except NetlinkError:
        return None
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
    pause = ethtool.read(interface, "pause")
    flow: FlowControl = "not known" if pause is None else _FLOW[pause["rx"] == "on", pause["tx"] == "on"]
    if not _has_card(interface):
        return Media(driver, firmware, VIRTUAL, None, flow)
    medium, megabits = _medium_and_speed(interface)
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
        ethtool.ask(interface, described)
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
