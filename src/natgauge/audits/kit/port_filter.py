# SPDX-License-Identifier: Apache-2.0
"""The kernel's filter of a tester's port in an audit: frames to the port, ARP, and NDP; classic BPF (bpf(4)).

A frame to another host, of another protocol or with a VLAN tag then costs natgauge nothing.
"""

from __future__ import annotations

import ctypes
import socket
import struct
from typing import Final

_SO_ATTACH_FILTER: Final = 26
#: Instructions: load a word, half or octet at a place; jump if equal, above or equal; return (linux/filter.h).
_LOAD_WORD, _LOAD_HALF, _LOAD_OCTET = 0x20, 0x28, 0x30
_IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x15, 0x35, 0x06
_ALL: Final = 0xFFFFFFFF
#: Place of a value that is not in the frame: whether the kernel took a VLAN tag out of it (SKF_AD_VLAN_TAG_PRESENT).
_VLAN_TAG: Final = 0xFFFFF000 + 48
_ETHERTYPE, _IPV4, _ARP, _IPV6 = 12, 0x0800, 0x0806, 0x86DD
_NEXT_HEADER, _ICMPV6 = 20, 58
#: Place of ICMPv6's type; types of NDP's messages (RFC 4861 section 4).
_ICMPV6_TYPE, _FIRST_NDP, _BEHIND_NDP = 54, 133, 138
_TAKE, _LEAVE = "take", "leave"

#: Instruction, value, and where to go if the comparison holds and if it does not: a label, or "" = to the next one.
_Step = tuple[int, int, str, str]


def _steps(mac: bytes) -> list[tuple[str, _Step]]:
    """Return the steps of the filter, each with its label."""
    high, low = struct.unpack("!HI", mac)
    return [
        ("", (_LOAD_WORD, _VLAN_TAG, "", "")),
        ("", (_IF_EQUAL, 0, "", _LEAVE)),
        ("", (_LOAD_HALF, _ETHERTYPE, "", "")),
        ("", (_IF_EQUAL, _ARP, _TAKE, "")),
        ("", (_IF_EQUAL, _IPV4, "address", "")),
        ("", (_IF_EQUAL, _IPV6, "", _LEAVE)),
        ("", (_LOAD_OCTET, _NEXT_HEADER, "", "")),
        ("", (_IF_EQUAL, _ICMPV6, "", "address")),
        ("", (_LOAD_OCTET, _ICMPV6_TYPE, "", "")),
        ("", (_IF_AT_LEAST, _FIRST_NDP, "", "address")),
        ("", (_IF_AT_LEAST, _BEHIND_NDP, "address", _TAKE)),
        ("address", (_LOAD_WORD, 2, "", "")),
        ("", (_IF_EQUAL, low, "own", "")),
        ("", (_IF_EQUAL, _ALL, "", _LEAVE)),
        ("", (_LOAD_HALF, 0, "", "")),
        ("", (_IF_EQUAL, 0xFFFF, _TAKE, _LEAVE)),
        ("own", (_LOAD_HALF, 0, "", "")),
        ("", (_IF_EQUAL, high, _TAKE, _LEAVE)),
    ]


def program(mac: bytes, *, wanted: bool) -> bytes:
    """Return the filter for a port with this address.

    Args:
        wanted: whether the filter takes what an audit reads, or all other frames. Both leave out frames that are too
            short for a comparison.
    """
    steps = _steps(mac)
    ends = {_TAKE: len(steps), _LEAVE: len(steps) + 1}
    places = {label: number for number, (label, _) in enumerate(steps) if label} | ends
    octets = b""
    for number, (_, (code, value, then, otherwise)) in enumerate(steps):
        jumps = (places[label] - number - 1 if label else 0 for label in (then, otherwise))
        octets += struct.pack("=HBBI", code, *jumps, value)
    taken, left = (_ALL, 0) if wanted else (0, _ALL)
    return octets + struct.pack("=HBBI", _RETURN, 0, 0, taken) + struct.pack("=HBBI", _RETURN, 0, 0, left)


def attach(opened: socket.socket, mac: bytes, *, wanted: bool) -> None:
    """Attach the filter to a packet socket; arguments as of `program`."""
    code = program(mac, wanted=wanted)
    memory = ctypes.create_string_buffer(code)
    instructions = len(code) // 8
    opened.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", instructions, ctypes.addressof(memory)))
