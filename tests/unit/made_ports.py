# SPDX-License-Identifier: Apache-2.0
"""Ports of the tester as the kernel would report them."""

from __future__ import annotations

from typing import Any

from natgauge.labs.wire.port_state import Features, Media, PortState

FULL = Features.BASIC | Features.REDIRECT | Features.NDO_XMIT


def port_state(name: str = "eth1", **changed: Any) -> PortState:
    """A port that can be used; fields by name."""
    fields: dict[str, Any] = {
        "mac": "02:00:00:00:00:01",
        "is_up": True,
        "has_carrier": True,
        "mtu": 1500,
        "has_default_route": False,
        "addresses": (),
        "bond": None,
        "programs": (),
        "features": FULL,
        "media": Media(),
        "transmit_queues": 4,
        "most_queues": 8,
        "is_loopback": False,
        "peer": None,
    }
    return PortState(name=name, **{**fields, **changed})
