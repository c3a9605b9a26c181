# SPDX-License-Identifier: Apache-2.0
"""Ports of this machine: settings of their drivers, and those by which this machine reaches all others.

A change of an uplink may cut this machine off.

Settings are as the kernel has them (Linux: networking/ethtool-netlink), in the words of ethtool(8). Two things go by
ioctl (linux/ethtool.h): the fields of a frame that choose its queue, which netlink has only from Linux 6.17 on, and
off-loads, as pyroute2 does it. A port is one of the calling thread's network namespace.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, Literal

from pyroute2 import IPRoute
from pyroute2.ethtool.ioctl import EthtoolError, IoctlEthtool, NotSupportedError
from pyroute2.netlink import NLM_F_ACK, NLM_F_REQUEST, genlmsg
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.generic import GenericNetlinkSocket
from pyroute2.netlink.generic.ethtool import ethtoolheader

from natgauge.errors import HostError


def uplinks(routes: IPRoute) -> set[Any]:
    """Return the indices of the interfaces of default routes, and of the interfaces below these."""
    interfaces = set()
    for route in routes.get_default_routes():
        hops = route.get_attr("RTA_MULTIPATH") or ()
        interfaces |= {route.get_attr("RTA_OIF"), *(hop["oif"] for hop in hops)}
    lower = set(_lower_interfaces(routes))
    while further := {below for above, below in lower if above in interfaces} - interfaces:
        interfaces |= further
    return interfaces


def _lower_interfaces(routes: IPRoute) -> Iterator[tuple[int, int]]:
    """Yield an interface and one below it: a bond or bridge and its port, a VLAN and its card."""
    for link in routes.get_links():
        if master := link.get_attr("IFLA_MASTER"):
            yield master, link["index"]
        info = link.get_attr("IFLA_LINKINFO")
        # The other end of a veth is not below it.
        is_veth = info is not None and info.get_attr("IFLA_INFO_KIND") == "veth"
        if (below := link.get_attr("IFLA_LINK")) and not is_veth and link.get_attr("IFLA_LINK_NETNSID") is None:
            yield link["index"], below


def uplink_names() -> frozenset[str]:
    """Return the names of the uplinks of the calling thread's network namespace; HostError if they cannot be read."""
    try:
        with IPRoute() as routes:
            found = uplinks(routes)
            return frozenset(str(link.get_attr("IFLA_IFNAME")) for link in routes.get_links() if link["index"] in found)
    except (NetlinkError, OSError) as error:
        raise HostError(f"default routes: cannot be read ({_reason(error)})") from error


#: Parts of the settings of a port; each has values by name, such as "rx-usecs": "50".
Part = Literal["queues", "most queues", "coalescing", "pause", "eee", "offloads", "hash"]

_SIOCETHTOOL: Final = 0x8946
_REQUEST: Final = struct.Struct("16sP16x")  # struct ifreq with a pointer
#: Flows whose hash can be chosen: UDP_V4_FLOW and UDP_V6_FLOW.
FLOWS: Final[Mapping[str, int]] = {"udp4": 0x02, "udp6": 0x06}
#: Fields of a frame in the letters of ethtool: RXH_L2DA, RXH_VLAN and so on.
_FIELDS: Final = {
    "m": 1 << 1, "v": 1 << 2, "t": 1 << 3, "s": 1 << 4, "d": 1 << 5, "f": 1 << 6, "n": 1 << 7, "r": 1 << 31,
}  # fmt: skip
_GET_HASH, _SET_HASH = 0x29, 0x2A
#: Off-loads by the name that ethtool sets, and the kernel's name of the feature.
OFFLOADS: Final[Mapping[str, str]] = {
    "rxvlan": "rx-vlan-hw-parse",
    # Service tags (IEEE 802.1ad), and frames of VLANs that the port does not know, which it drops.
    "rx-vlan-stag-hw-parse": "rx-vlan-stag-hw-parse",
    "rx-vlan-filter": "rx-vlan-filter",
    "lro": "rx-lro",
    "rx-gro-hw": "rx-gro-hw",
}
#: Errors of a driver that has nothing of a part, also of one without a PHY (and the kernel's own ENOTSUPP, 524, which
#: drivers let out), and of a kernel without the family ethtool.
_ABSENT: Final = frozenset({errno.EOPNOTSUPP, errno.EPROTONOSUPPORT, errno.ENOENT, 524})
#: Ends the value of an off-load that the driver does not let go of.
FIXED: Final = " [fixed]"


class _HashRequest(ctypes.Structure):
    """Begin of struct ethtool_rxnfc, with room for its rest."""

    _fields_ = (
        ("cmd", ctypes.c_uint32),
        ("flow", ctypes.c_uint32),
        ("fields", ctypes.c_uint64),
        ("rest", ctypes.c_uint8 * 256),
    )


class _Message(genlmsg):  # type: ignore[misc]  # pyroute2 has no types
    ethtoolheader = ethtoolheader


def _message(*attributes: tuple[str, str]) -> type[Any]:
    """Return the type of a message with these attributes behind its header."""
    return type("Message", (_Message,), {"nla_map": (("UNSPEC", "none"), ("HEADER", "ethtoolheader"), *attributes)})


@dataclass(frozen=True, slots=True)
class _Asked:
    """A part of the settings that netlink knows: numbered `get` is the message that asks, the next one sets."""

    get: int
    message: type[Any]
    names: Mapping[str, str]


_QUEUES: Final = _message(
    *((name, "uint32") for name in ("MOST_RX", "MOST_TX", "MOST_OTHER", "MOST_BOTH", "RX", "TX", "OTHER", "BOTH"))
)
_COALESCING: Final = _message(
    *((f"USECS_{number}", "uint32") for number in range(2, 11)), ("ADAPTIVE_RX", "uint8"), ("ADAPTIVE_TX", "uint8")
)
_NETLINK: Final[Mapping[Part, _Asked]] = {
    "queues": _Asked(17, _QUEUES, {"rx": "RX", "tx": "TX", "combined": "BOTH"}),
    "most queues": _Asked(17, _QUEUES, {"rx": "MOST_RX", "tx": "MOST_TX", "combined": "MOST_BOTH"}),
    "coalescing": _Asked(
        19, _COALESCING, {"adaptive-rx": "ADAPTIVE_RX", "adaptive-tx": "ADAPTIVE_TX", "rx-usecs": "USECS_2"}
    ),
    "pause": _Asked(
        21,
        _message(("AUTONEG", "uint8"), ("RX", "uint8"), ("TX", "uint8")),
        {"autoneg": "AUTONEG", "rx": "RX", "tx": "TX"},
    ),
    "eee": _Asked(
        23, _message(("OURS", "none"), ("PEER", "none"), ("ACTIVE", "uint8"), ("ENABLED", "uint8")), {"eee": "ENABLED"}
    ),
}


def read(port: str, part: Part) -> dict[str, str] | None:
    """Return the values of a part that the driver has; None = it has nothing of it. HostError if it does not say."""
    try:
        if part == "hash":
            return {flow: _hashed(port, number) for flow, number in FLOWS.items()}
        if part == "offloads":
            return _offloads(port)
        asked = _NETLINK[part]
        answer = _exchange(port, asked, asked.get)
    except (NetlinkError, EthtoolError, OSError) as error:
        if _is_absent(part, error):
            return None
        raise HostError(f"port {port}: {part} cannot be read ({_reason(error)})") from error
    kinds = dict(asked.message.nla_map)
    values = {name: answer.get_attr(attribute) for name, attribute in asked.names.items()}
    return {
        name: str(value) if kinds[asked.names[name]] == "uint32" else "on" if value else "off"
        for name, value in values.items()
        if value is not None
    } or None


def write(port: str, part: Part, values: Mapping[str, str]) -> None:
    """Set values of a part; most drivers take the link down and up for queues, pause and EEE."""
    try:
        if part == "hash":
            for flow, letters in values.items():
                ask(port, _HashRequest(_SET_HASH, FLOWS[flow], sum(_FIELDS[letter] for letter in letters)))
        elif part == "offloads":
            _set_offloads(port, values)
        else:
            asked = _NETLINK[part]
            numbers = {"on": 1, "off": 0}
            attributes = [
                (asked.names[name], numbers[value] if value in numbers else int(value))
                for name, value in values.items()
            ]
            _exchange(port, asked, asked.get + 1, attributes)
    except (NetlinkError, EthtoolError, OSError) as error:
        wanted = " ".join(f"{name} {value}" for name, value in values.items())
        raise HostError(f"port {port}: {part} cannot be set to {wanted} ({_reason(error)})") from error


def _is_absent(part: Part, error: Exception) -> bool:
    """Whether an error of a request says that the driver has nothing of a part: of a hash, of this kind of flow."""
    code = error.code if isinstance(error, NetlinkError) else getattr(error, "errno", None)
    return isinstance(error, NotSupportedError) or code in _ABSENT or (part == "hash" and code == errno.EINVAL)


def _reason(error: Exception) -> str:
    if isinstance(error, NetlinkError):
        return os.strerror(error.code)
    return getattr(error, "strerror", None) or type(error).__name__


def ask(port: str, request: Any) -> None:
    """Have the driver fill in, or obey, a structure of linux/ethtool.h."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as opened:
        fcntl.ioctl(opened, _SIOCETHTOOL, _REQUEST.pack(port.encode(), ctypes.addressof(request)))


def _exchange(port: str, asked: _Asked, command: int, attributes: list[tuple[str, int]] | None = None) -> Any:
    header = ("HEADER", {"attrs": [("ETHTOOL_A_HEADER_DEV_NAME", port)]})
    flags = NLM_F_REQUEST if attributes is None else NLM_F_REQUEST | NLM_F_ACK
    return ask_netlink("ethtool", asked.message, command, [header, *(attributes or ())], flags)


def ask_netlink(family: str, kind: type[Any], command: int, attributes: list[Any], flags: int = NLM_F_REQUEST) -> Any:
    """Return the first answer of a family of generic netlink to a message of this kind; None = there is none."""
    message = kind()
    message["cmd"] = command
    message["version"] = 1
    message["attrs"] = attributes
    with GenericNetlinkSocket() as netlink:
        netlink.bind(family, kind)
        return next(iter(netlink.nlm_request(message, msg_type=netlink.prid, msg_flags=flags)), None)


def _hashed(port: str, flow: int) -> str:
    request = _HashRequest(_GET_HASH, flow)
    ask(port, request)
    return "".join(letter for letter, bit in _FIELDS.items() if request.fields & bit)


def _offloads(port: str) -> dict[str, str] | None:
    with closing(IoctlEthtool(port)) as tool:
        features = tool.get_features()
    return {
        name: ("on" if features.is_active(feature) else "off")
        + ("" if features.is_available(feature) and not features.is_never_changed(feature) else FIXED)
        for name, feature in OFFLOADS.items()
        if feature in features
    } or None


def _set_offloads(port: str, values: Mapping[str, str]) -> None:
    with closing(IoctlEthtool(port)) as tool:
        features = tool.get_features()
        for name, value in values.items():
            features[OFFLOADS[name]] = value == "on"
        tool.set_features(features)
