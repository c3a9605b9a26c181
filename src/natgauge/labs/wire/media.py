# SPDX-License-Identifier: Apache-2.0
"""Facts of a port and its link from the kernel (linux/ethtool.h): driver, medium, speed, flow control.

RFC 8219 section 5.1 requires a report of the medium, RFC 2544 section 26.1 the theoretical maximum of the link.
"""

from __future__ import annotations

import ctypes
from contextlib import closing
from dataclasses import dataclass
from typing import Final, Literal

from pyroute2.ethtool.common import LINK_PORT_NAMES, PORT_NONE, PORT_OTHER
from pyroute2.ethtool.ioctl import EthtoolError, IoctlEthtool

from natgauge.host import ethtool
from natgauge.labs.common.links import link_attribute

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


class _Driver(ctypes.Structure):
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
    flow = _flow_control(interface)
    if not _has_card(interface):
        return Media(driver, firmware, VIRTUAL, None, flow)
    medium, megabits = _link(interface)
    return Media(driver, firmware, medium, megabits, flow)


def _has_card(interface: str) -> bool:
    """Whether there is a device on a bus behind the port; what a veth or tap says of speed and medium is made up."""
    return bool(link_attribute(None, interface, "IFLA_PARENT_DEV_NAME"))


def _driver(interface: str) -> tuple[str, str | None]:
    """Name of the driver, and firmware."""
    described = _Driver(_GET_DRIVER)
    try:
        ethtool.ask(interface, described)
    except OSError:
        return NOT_KNOWN, None
    return _text(described.driver) or NOT_KNOWN, _text(described.firmware) or None


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
    pause = ethtool.read(interface, "pause")
    return "not known" if pause is None else _FLOW[pause["rx"] == "on", pause["tx"] == "on"]


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode(errors="replace").strip()
