# SPDX-License-Identifier: Apache-2.0
"""Compare two gateways: connection rate and throughput of the kernel's NAT44 with nftables and with iptables.

Needs root and a few minutes: `sudo .venv/bin/python examples/compare_gateways.py`. Arguments name other gateways.
"""

from __future__ import annotations

import sys

import natgauge
from natgauge.errors import NatgaugeError

CONNECTIONS = 100_000


def main(gateways: list[str]) -> int:
    """Measure each gateway with both metrics and print one line for each."""
    print(f"{'gateway':20} {'connections/s':>15} {'frames/s each way':>18}  limited by")
    for gateway in gateways:
        try:
            rate = natgauge.measure("connection-rate", gateway, connections=CONNECTIONS)
            known = rate.median
            throughput = natgauge.measure("throughput", gateway, connections=CONNECTIONS, connection_rate=known or None)
        except NatgaugeError as error:
            print(f"{gateway}: {error}", file=sys.stderr)
            return error.exit_status
        limits = f"{rate.limited_by}, {throughput.limited_by}"
        print(f"{gateway:20} {known:15,.0f} {throughput.median:18,.0f}  {limits}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["nftables-nat44", "iptables-nat44"]))
