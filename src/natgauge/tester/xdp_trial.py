# SPDX-License-Identifier: Apache-2.0
"""Whether a driver takes an XDP program, found out by giving it one for a moment."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
from typing import Final

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from natgauge.labs.wire.xdp import bpf

_PROG_LOAD, _TYPE_XDP = 5, 6
#: r0 = XDP_PASS; exit
_PASS: Final = bytes.fromhex("b700000002000000 9500000000000000")
_UPDATE_IF_NOEXIST, _DRV_MODE = 1, 4


def refusal(interface: str) -> str | None:
    """Attach a program that passes all frames to an interface of the calling thread's namespace, and detach it.

    Returns:
        The kernel's reason if the driver refuses the program; None = it does not.
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
    code, licence = ctypes.create_string_buffer(_PASS), ctypes.create_string_buffer(b"GPL")
    asked = struct.pack("IIQQ", _TYPE_XDP, len(_PASS) // 8, ctypes.addressof(code), ctypes.addressof(licence))
    program, _ = bpf(_PROG_LOAD, asked)
    if program < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return program
