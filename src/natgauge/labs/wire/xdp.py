# SPDX-License-Identifier: Apache-2.0
"""Asking the kernel what XDP an interface can do (Documentation/netlink/specs/netdev.yaml, Linux >= 6.3)."""

from __future__ import annotations

import ctypes
import os
import platform
import socket
import struct
from enum import IntFlag
from typing import Final

from pyroute2 import IPRoute
from pyroute2.netlink import NLM_F_REQUEST, genlmsg
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.generic import GenericNetlinkSocket

_DEVICE_GET = 1
#: Number of the system call bpf(); most architectures have that of include/uapi/asm-generic/unistd.h.
_BPF: Final = {"x86_64": 321}.get(platform.machine(), 280)
_PROG_LOAD, _TYPE_XDP = 5, 6
#: r0 = XDP_PASS; exit
_PASS: Final = bytes.fromhex("b700000002000000 9500000000000000")
_UPDATE_IF_NOEXIST, _DRV_MODE = 1, 4


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


def refusal(interface: str) -> str | None:
    """Attach a program that passes all frames to an interface of the calling thread's namespace, and detach it.

    Returns:
        The kernel's reason if the driver refuses the program; None = it does not.

    Raises:
        OSError: the kernel loads no programs, or there is no such interface.
    """
    index, program = socket.if_nametoindex(interface), _load()
    try:
        with IPRoute(ext_ack=True) as routes:
            try:
                _attach(routes, index, program)
            except NetlinkError as error:
                words = error.args[1] if len(error.args) > 1 else None
                return str(words or os.strerror(error.code))
            _attach(routes, index, -1)
    finally:
        os.close(program)
    return None


def _attach(routes: IPRoute, index: int, program: int) -> None:
    """Give the interface this program in its driver; -1 = none."""
    flags = _DRV_MODE if program == -1 else _DRV_MODE | _UPDATE_IF_NOEXIST
    wanted = {"attrs": [("IFLA_XDP_FD", program), ("IFLA_XDP_FLAGS", flags)]}
    routes.link("set", index=index, IFLA_XDP=wanted)


def _load() -> int:
    """Descriptor of a program that passes all frames."""
    libc = ctypes.CDLL(None, use_errno=True)
    code, licence = ctypes.create_string_buffer(_PASS), ctypes.create_string_buffer(b"GPL")
    # The first fields of union bpf_attr; the others are 0.
    attributes = struct.pack("IIQQ96x", _TYPE_XDP, len(_PASS) // 8, ctypes.addressof(code), ctypes.addressof(licence))
    program = int(libc.syscall(_BPF, _PROG_LOAD, ctypes.create_string_buffer(attributes), len(attributes)))
    if program < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return program
