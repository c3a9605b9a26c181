# SPDX-License-Identifier: Apache-2.0
"""DNS servers as devices: what they answer against RFC 6147 and RFC 6052, a known loss, and a known limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.labs.last_runs import record
from tests.labs.test_resolution import asking, queries_of
from tests.labs.trying import decided
from tests.plans import PlanOfTrial

from natgauge.errors import BrokenError
from natgauge.gateways.toml_layers import BUILT_IN
from natgauge.host.cpus import usable_cpus
from natgauge.trials import Phase2Plan

pytestmark = pytest.mark.skipif(len(usable_cpus()) < 2, reason="a server wants a core of its own")
soak = pytest.mark.soak

QUERIES = 400
EXTENDS = 'extends = ["dns-server", "dns-sockets", "nsd"]'
PLAN = PlanOfTrial(
    64, 0.0, Phase2Plan(1_000.0, 0.0, QUERIES / 1_000), stateless=True, query="aaaa", frame_timeout_seconds=1.0
)
SERVERS = [
    "unbound-dns64",
    "knot-dns",
    *(pytest.param(n, marks=soak) for n in ("bind9-dns64", "pdns-recursor-dns64", "nsd-dns")),
]


def changed(folder: Path, name: str, gateway: str, changes: Mapping[str, str]) -> Path:
    """A recipe as another one, with texts replaced."""
    text = (BUILT_IN / f"{gateway}.toml").read_text().replace(f'name = "{gateway}"', f'name = "{name}"')
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    path = folder / f"{name}.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("gateway", SERVERS)
def test_each_query_is_answered_once_with_the_one_right_address(gateway: str) -> None:
    """Of a DNS64 server: the prefix and the IPv4 address (RFC 6052 section 2.2), because no name has an AAAA record."""
    with asking(gateway, connections=64, placement="shared", connection_rate=None) as (bench, measurer):
        for query in ("aaaa", "a"):
            outcome = decided(measurer, replace(PLAN, query=query))
            counts = queries_of(outcome)
            assert (counts.offered_frames, counts.received_frames, counts.duplicates) == (QUERIES, QUERIES, 0)
            assert [message.wrong for message in counts.messages] == [0, 0]
        assert bench.device is not None
        record(gateway, "here", bench.device.settings().version)


def test_addresses_with_another_prefix_are_wrong_answers(tmp_path: Path) -> None:
    wrong = changed(
        tmp_path, "wrong-dns64", "unbound-dns64", {"dns64-prefix: $NG_NAT64_PREFIX": "dns64-prefix: 64:ff9b::/96"}
    )
    with (
        pytest.raises(BrokenError, match="0 of 8"),
        asking(wrong, connections=64, placement="shared", connection_rate=None),
    ):
        pass


def test_a_known_loss_before_the_server_is_counted(tmp_path: Path) -> None:
    drops = """start = \"\"\"
nft -f - <<RULES
table ip6 natgauge
delete table ip6 natgauge
table ip6 natgauge {
    chain received {
        type filter hook input priority filter; policy accept;
        iifname "$NG_INSIDE" udp dport 53 numgen inc mod 100 0 drop
    }
}
RULES
"""
    lossy = changed(tmp_path, "lossy-dns", "nsd-dns", {EXTENDS: f'{EXTENDS}\n[verbs]\n{drops}"""'})
    with asking(lossy, connections=64, placement="shared", connection_rate=None) as (_, measurer):
        counts = queries_of(decided(measurer, replace(PLAN, loss_tolerance=0.02)))
    assert counts.offered_frames == QUERIES
    assert counts.lost == pytest.approx(QUERIES / 100, abs=1)
