# SPDX-License-Identifier: Apache-2.0
"""The gateway that all testers measure: an nftables NAT44 with limits of known value, so the true figures are known."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from benchmarks.place import DEVICE, DEVICE_INSIDE, DEVICE_OUTSIDE, Place, sh

#: One value for all namespaces, writable only in the first one. Each namespace compares its own count with it.
_TABLE_LIMIT: Final = Path("/proc/sys/net/netfilter/nf_conntrack_max")
#: Longer than any trial, in seconds.
_UDP_TIMEOUT: Final = 600


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits that the gateway's rules state.

    Attributes:
        rate: frames/s in each direction that the gateway forwards for as long as one likes.
        burst: frames that may exceed the rate at any moment (the bucket's size).
    """

    rate: int
    burst: int

    def opening_rate(self, connections: int) -> float:
        """Highest rate in connections/s at which `connections` frames pass: they last connections / rate seconds."""
        return self.rate / (1 - self.burst / connections)

    def forwarding_rate(self, seconds: float) -> float:
        """Highest rate in frames/s at which a trial of `seconds` loses no frame."""
        return self.rate + self.burst / seconds


def _rules(limits: Limits | None) -> str:
    """The gateway as a ruleset of nftables."""
    over = (
        "accept"
        if limits is None
        else f"limit rate over {limits.rate}/second burst {limits.burst} packets counter name refused drop"
    )
    return f"""
table ip opinion {{
    counter refused {{ }}
    chain forward {{
        type filter hook forward priority filter; policy accept;
        iifname "{DEVICE_INSIDE}" {over}
        iifname "{DEVICE_OUTSIDE}" {over}
    }}
    chain postrouting {{
        type nat hook postrouting priority srcnat; policy accept;
        oifname "{DEVICE_OUTSIDE}" masquerade
    }}
}}
"""


class Gateway(Place):
    """A namespace with NAT44 and `limits` (None: without) between the two tester ports."""

    def __init__(self, limits: Limits | None) -> None:
        super().__init__(forwards=True)
        self.limits = limits

    def __enter__(self) -> Self:
        super().__enter__()
        try:
            nft = ["ip", "netns", "exec", DEVICE, "nft", "-f", "-"]
            subprocess.run(nft, input=_rules(self.limits), text=True, check=True)
            for name in ("", "_stream"):
                sh(f"sysctl -qw net.netfilter.nf_conntrack_udp_timeout{name}={_UDP_TIMEOUT}", netns=DEVICE)
        except BaseException:
            self._remove()
            raise
        return self

    def empty(self) -> None:
        """Remove every connection, and set the count of refused frames to 0."""
        subprocess.run(EMPTY.split(), check=True, capture_output=True)
        self.refused()

    def refused(self) -> int:
        """Frames that the limits have dropped since the last call."""
        listed = json.loads(sh("nft -j reset counters table ip opinion", netns=DEVICE))["nftables"]
        return sum(int(one["counter"]["packets"]) for one in listed if "counter" in one)

    def count(self) -> int:
        """Connections in the table."""
        return int(subprocess.run(COUNT.split(), check=True, capture_output=True, text=True).stdout)


#: The same for a tester that runs commands itself.
EMPTY: Final = f"ip netns exec {DEVICE} conntrack -F"
COUNT: Final = f"ip netns exec {DEVICE} conntrack -C"


@contextmanager
def table_of(connections: int | None) -> Iterator[None]:
    """Limit every connection tracking table of this machine (None: do not), and restore the limit afterwards."""
    if connections is None:
        yield
        return
    before = _TABLE_LIMIT.read_text()
    _TABLE_LIMIT.write_text(str(connections))
    try:
        yield
    finally:
        _TABLE_LIMIT.write_text(before)
