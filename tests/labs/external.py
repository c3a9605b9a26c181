# SPDX-License-Identifier: Apache-2.0
"""A NAT that is not ours, as one on a wire: the tester knows two ports; the device itself tells what was new to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from natgauge.gateways.recipe import load
from natgauge.labs.contract import Device
from natgauge.labs.netns.lab import NetnsLab


@contextmanager
def external_nat(
    name: str, recipe: str, timeout: int, prefix: str | None = None
) -> Iterator[tuple[NetnsLab, dict[str, Any]]]:
    """A gateway in a lab of its own; the lab, and its ports as a user names them.

    Args:
        name: of the lab.
        recipe: of the gateway, of which only the start is used.
        timeout: after which it forgets a connection, in seconds.
        prefix: NAT64 prefix of the lab.
    """
    played = load(recipe)
    with NetnsLab(
        name,
        initiator_family=played.initiator_family,
        responder_family=played.responder_family,
        placement="isolated",
        nat64_prefix=prefix,
    ) as lab:
        device = lab.devices[0]
        for piece in played.verbs.pieces("start"):
            assert device.run(piece, environment=played.environment).status == 0
        timeouts = (
            f"for one in '' _stream; do echo {timeout} > /proc/sys/net/netfilter/nf_conntrack_udp_timeout$one; done"
        )
        assert device.run(timeouts).status == 0
        ports: dict[str, Any] = {"lab": "wire", "sender_cores": str(lab.sender_cpus[0])}
        for side, port in (("initiator", lab.initiator), ("responder", lab.responder)):
            ports[f"{side}_port"] = port.interface
            ports[f"{side}_gateway"] = port.gateway_address
            ports[f"{side}_netns"] = port.netns
        yield lab, ports


#: Counts, by destination port, the first packet of each entry of the device's own table: the others bear its mark.
#: `ct state new` would not do, for it holds until the first answer, and events get lost when nobody has time to read.
COUNTER = """
table ip counted {
    set opened { type inet_service; flags dynamic; counter; size 65535; }
    chain forward {
        type filter hook forward priority 0; policy accept;
        iifname inside ct mark 0 update @opened { udp dport } ct mark set 1
    }
}
"""


def count_new(device: Device) -> None:
    """Begin to count."""
    assert device.run(f"nft -f - <<'RULES'\n{COUNTER}\nRULES").status == 0


def opened_by(device: Device) -> dict[int, int]:
    """Connections that were new to the device, by destination port."""
    found = device.run("nft -j list set ip counted opened")
    assert found.status == 0, found.stderr
    elements = json.loads(found.stdout)["nftables"][1]["set"]["elem"]
    return {element["elem"]["val"]: element["elem"]["counter"]["packets"] for element in elements}
