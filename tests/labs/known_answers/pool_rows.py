# SPDX-License-Identifier: Apache-2.0
"""Rows of the known-answer table for pools: to one remote endpoint each outside address has its ports once.

Five inside hosts translate to four of five addresses, the last host to that of the first one. Source ports vary fastest
in increasing order, so four hosts fill the four addresses with the ports that they have anyway. The fifth finds none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from tests.labs.known_answers.devices import Device, Home, Standing
from tests.labs.known_answers.rows import Look, Row, value

from natgauge.inputs.question import DeviceOptions
from natgauge.trial.lab_measurer import LabMeasurer
from natgauge.words import OUTSIDE_PORTS

_ADDRESSES: Final = 4
_HOSTS: Final = [*range(_ADDRESSES), 0]


@dataclass(frozen=True, kw_only=True)
class Pooled(Device):
    """Translates each of five hosts to its address of the pool, with the ports that the hosts use."""

    @contextmanager
    def acting(self, home: Home, measurer: LabMeasurer) -> Iterator[Standing]:
        """Tells nothing: the rules say it."""
        each = ", ".join(f"10.0.0.{2 + host} : 198.19.128.{at} . {self.source_ports}" for host, at in enumerate(_HOSTS))
        home.must(f"""
nft flush chain ip natgauge postrouting
nft -f - <<RULES
table ip natgauge {{
    map ports {{
        type ipv4_addr : interval ipv4_addr . inet_service; flags interval; elements = {{ {each} }}
    }}
    chain postrouting {{
        oifname "$NG_OUTSIDE" ip protocol udp snat ip to ip saddr map @ports
    }}
}}
RULES
""")
        yield home.standing(measurer, dict)


def _row(first: int, last: int, error: int) -> Row:
    kept = _ADDRESSES * (last - first + 1)
    return Row(
        f"capacity of {_ADDRESSES} outside addresses with {last - first + 1} ports",
        Pooled(
            words=f"translates to {_ADDRESSES} addresses, ports {first} to {last}",
            source_ports=f"{first}-{last}",
            connections=kept + (last - first + 1) // 2,
            wishes=DeviceOptions(table_size=2 * kept),
            highest_rate=400_000.0,
        ),
        "table-capacity",
        (
            Look("", "connections", value, float(kept), (error - 1.0, 0.0), f"error of the search ({error})"),
            Look("limited by", "", lambda evidence: evidence.limited_by, "port pool"),
        ),
        {
            "outside_addresses": _ADDRESSES + 1,
            "source_addresses": f"10.0.0.2-10.0.0.{1 + len(_HOSTS)}",
            "destination_ports": "7",
            "order": "increasing",
            "safe_connections": kept - 2 * error,
            "capacity_error": error,
            "rate_error": 0.5,
        },
    )


POOL_ROWS: Final = (_row(5000, 5099, 1), _row(65_536 - OUTSIDE_PORTS, 65_535, 64))
