# SPDX-License-Identifier: Apache-2.0
"""Facts of a port and its link from the kernel (linux/ethtool.h): driver, medium, speed, flow control.

RFC 8219 section 5.1 requires a report of the medium, RFC 2544 section 26.1 the theoretical maximum of the link.
"""

from __future__ import annotations

import array
import fcntl
import socket
import struct
from contextlib import closing
from dataclasses import dataclass
from typing import Final, Literal

from pyroute2 import IPRoute
from pyroute2.ethtool.common import LINK_PORT_NAMES, PORT_NONE, PORT_OTHER
from pyroute2.ethtool.ioctl import EthtoolError, IoctlEthtool

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

_SIOCETHTOOL: Final = 0x8946
_REQUEST: Final = struct.Struct("16sP16x")  # struct ifreq with a pointer
_GET_DRIVER, _GET_PAUSE = 0x03, 0x12
_DRIVER: Final = struct.Struct("I32s32s32s96x")  # struct ethtool_drvinfo, to its firmware
_PAUSE: Final = struct.Struct("4I")  # struct ethtool_pauseparam
#: A driver that does not know its speed says 0 or one of these.
_NO_SPEED: Final = frozenset({0, 0xFFFF, 0xFFFF_FFFF})


@dataclass(frozen=True, slots=True)
class Media:
    """One port and its link.

    Attributes:
        driver: name of the driver; "not known" where it is not reported.
        firmware: firmware of the card; None where there is none, or it is not known.
        medium: "Twisted Pair", "FIBRE" ...; "virtual" where no card is behind the port.
        megabits: speed of the link in Mbit/s; None = not known. A virtual port's speed is fictitious and not reported.
        flow_control: directions in which PAUSE frames work.
    """

    driver: str = NOT_KNOWN
    firmware: str | None = None
    medium: str = NOT_KNOWN
    megabits: int | None = None
    flow_control: FlowControl = "not known"


def media_of(interface: str) -> Media:
    """Return the media of a port of the calling thread's namespace; "not known" where the driver reports nothing."""
    driver, firmware = _driver(interface)
    flow = _flow_control(interface)
    if not _has_card(interface):
        return Media(driver, firmware, VIRTUAL, None, flow)
    medium, megabits = _link(interface)
    return Media(driver, firmware, medium, megabits, flow)


def _has_card(interface: str) -> bool:
    """Whether there is a device on a bus behind the port; what a veth or tap says of speed and medium is made up."""
    with IPRoute() as routes:
        return any(link.get_attr("IFLA_PARENT_DEV_NAME") for link in routes.get_links(ifname=interface))


def _driver(interface: str) -> tuple[str, str | None]:
    """Name of the driver, and firmware."""
    answer = _ask(interface, _GET_DRIVER, _DRIVER.size)
    if answer is None:
        return NOT_KNOWN, None
    _, driver, _, firmware = _DRIVER.unpack(answer)
    return _text(driver) or NOT_KNOWN, _text(firmware) or None


def _link(interface: str) -> tuple[str, int | None]:
    """Return medium, and speed in Mbit/s."""
    try:
        with closing(IoctlEthtool(interface)) as tool:
            answer = tool.get_link_settings()
    except (EthtoolError, OSError):
        return NOT_KNOWN, None
    medium = NOT_KNOWN if answer.port in (PORT_NONE, PORT_OTHER) else LINK_PORT_NAMES.get(answer.port, NOT_KNOWN)
    return medium, None if answer.speed in _NO_SPEED else int(answer.speed)


def _flow_control(interface: str) -> FlowControl:
    answer = _ask(interface, _GET_PAUSE, _PAUSE.size)
    if answer is None:
        return "not known"
    _, _, received, sent = _PAUSE.unpack(answer)
    return _FLOW[bool(received), bool(sent)]


def _ask(interface: str, command: int, octets: int) -> bytes | None:
    """Return the driver's answer; None where it does not support the request."""
    answer = array.array("B", struct.pack("I", command) + bytes(octets - 4))
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as opened:
        try:
            fcntl.ioctl(opened, _SIOCETHTOOL, _REQUEST.pack(interface.encode(), answer.buffer_info()[0]))
        except OSError:
            return None
    return answer.tobytes()


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode(errors="replace").strip()
