# SPDX-License-Identifier: Apache-2.0
"""Native IPv6 beside translated frames (RFC 8219 section 5.3), and prefixes of RFC 6052, with the real engine."""

from __future__ import annotations

from typing import Any

import pytest
from tests.labs.rough import SLOW_RATES
from tests.labs.test_gateways_measured import CONNECTIONS, FORWARDING_RATE, OPENING_RATE, SECONDS, phase2_of, tried
from tests.labs.test_measure import NAME
from tests.labs.trying import decided, passing
from tests.plans import PlanOfTrial

from natgauge.records.store import Memory
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask
from natgauge.trials import Phase2Plan

soak = pytest.mark.soak
BOTH_WAYS = Phase2Plan(FORWARDING_RATE, FORWARDING_RATE, SECONDS)


#: A filter that drops native IPv6; tunnels have another next header.
DROP = """
nft add table ip6 t
nft add chain ip6 t c '{ type filter hook forward priority 0; }'
nft add rule ip6 t c ip6 nexthdr udp drop
"""


def bench(gateway: str, **choices: Any) -> Bench:
    """Return a gateway that is not yet started."""
    return Bench(
        ask(
            "throughput", gateway, {"connections": CONNECTIONS, "lab_name": NAME, "placement": "shared", **choices}
        ).cell,
        rates=SLOW_RATES,
    )


@pytest.mark.parametrize(
    "gateway",
    [
        pytest.param("464xlat-tayga", marks=soak),
        "nftables-nat66",
        *(
            pytest.param(name, marks=soak)
            for name in ("ds-lite", "iptables-nat66", "map-e", "map-t", "lw4o6", "lwaftr")
        ),
        *(pytest.param(name, marks=soak) for name in ("aftr", "lwb4", "map-t-br", "map-t-ce", "tayga-clat")),
    ],
)
def test_it_passes_chains_tunnels_and_a_nat66(gateway: str) -> None:
    kept = Memory()
    with bench(gateway, foreground_share=0.9) as made:
        measurer = made.ready(made.plan("throughput", {"foreground_share": 0.9}), kept).measurer
        passing(measurer, PlanOfTrial(CONNECTIONS, OPENING_RATE, BOTH_WAYS, foreground_share=0.9))
    trial = kept.trials[-1]
    for counts in phase2_of(trial).values():
        assert counts.background_frames == counts.made_frames // 10
        assert counts.background_received == counts.background_frames
        assert counts.received_frames == counts.made_frames
    if gateway.endswith("nat66"):
        assert trial["device_count_after"] == CONNECTIONS, "a background frame opens no connection"


def test_a_customers_edge_that_drops_ipv6_loses_the_background_alone() -> None:
    kept = Memory()
    with bench("ds-lite", foreground_share=0.9) as made:
        measurer = made.ready(made.plan("throughput", {"foreground_share": 0.9}), kept).measurer
        assert made.lab.devices[0].run(DROP).status == 0
        decided(measurer, PlanOfTrial(CONNECTIONS, OPENING_RATE, BOTH_WAYS, foreground_share=0.9))
    for counts in phase2_of(kept.trials[-1]).values():
        assert counts.background_received == 0
        assert counts.lost == counts.background_frames == counts.made_frames // 10


@pytest.mark.parametrize(
    ("gateway", "prefix"),
    [
        ("tayga-nat64", "2001:db8:100::/40"),
        *(pytest.param("tayga-nat64", prefix, marks=soak) for prefix in ("2001:db8::/32", "2001:db8:122::/48")),
        *(pytest.param("tayga-nat64", each, marks=soak) for each in ("2001:db8:122:300::/56", "2001:db8:122:344::/64")),
        *(
            pytest.param(gateway, prefix, marks=soak)
            for gateway, prefix in (
                ("tayga-siit", "2001:db8:100::/40"),
                ("tayga-clat", "2001:db8::/32"),
                ("464xlat-tayga", "2001:db8:122:300::/56"),
                ("map-t", "2001:db9:100::/40"),
                ("map-t", "2001:db9:122:344::/64"),
                ("map-t-br", "2001:db9::/32"),
            )
        ),
    ],
)
def test_hosts_are_behind_a_prefix_of_any_length_of_rfc_6052(gateway: str, prefix: str) -> None:
    choices = {"nat64_prefix": prefix, "destination_addresses": "198.19.0.9-198.19.2.9"}
    with bench(gateway, **choices) as made:
        trial = tried(made, "throughput", BOTH_WAYS)
    for counts in phase2_of(trial).values():
        assert counts.received_frames == counts.made_frames
        assert counts.mistranslated == 0
    assert trial["result"].state_table.stored == CONNECTIONS
