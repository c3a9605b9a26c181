# SPDX-License-Identifier: Apache-2.0
"""Asking the kernel what XDP an interface can do (Documentation/netlink/specs/netdev.yaml, Linux >= 6.3)."""

from __future__ import annotations

from enum import IntFlag

from pyroute2.netlink import NLM_F_REQUEST, genlmsg
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.generic import GenericNetlinkSocket

_DEVICE_GET = 1


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
