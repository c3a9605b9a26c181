# SPDX-License-Identifier: Apache-2.0
"""Asking the kernel what XDP an interface can do (Documentation/netlink/specs/netdev.yaml, Linux >= 6.3)."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntFlag
from typing import Any, Final, Literal

from pyroute2.netlink import NLM_F_REQUEST, genlmsg
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.generic import GenericNetlinkSocket

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
