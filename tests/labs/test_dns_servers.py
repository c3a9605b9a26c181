# SPDX-License-Identifier: Apache-2.0
"""DNS servers as devices: what they answer against RFC 6147 and RFC 6052, a known loss, and a known limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from pathlib import Path

import pytest
from tests.labs.last_runs import record
from tests.labs.test_resolution import NAME, asking, queries_of
from tests.labs.trying import decided
from tests.plans import PlanOfTrial

import natgauge
from natgauge.embedding import PREFIX_LENGTHS, embedded
from natgauge.errors import BrokenError
from natgauge.gateways.far_side import ADDRESS4
from natgauge.gateways.toml_layers import BUILT_IN
from natgauge.host.machine import usable_cpus
from natgauge.records.store import Memory
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask
from natgauge.trials import Phase2Plan
from natgauge.words import Address, Query

pytestmark = pytest.mark.skipif(len(usable_cpus()) < 2, reason="a server wants a core of its own")
soak = pytest.mark.soak

QUERIES = 400
EXTENDS = 'extends = ["dns-server", "dns-sockets", "nsd"]'
PLAN = PlanOfTrial(
    64, 0.0, Phase2Plan(1_000.0, 0.0, QUERIES / 1_000), stateless=True, query="aaaa", frame_timeout_seconds=1.0
)
CACHED = replace(PLAN, phase1_rate=200.0)
DROPS = """
nft -f - <<RULES
table ip6 natgauge
delete table ip6 natgauge
table ip6 natgauge {{
    chain received {{
        type filter hook input priority filter; policy accept;
        iifname "$NG_INSIDE" udp dport 53 {} drop
    }}
}}
RULES
"""
SERVERS = [
    "unbound-dns64",
    "knot-dns",
    *(pytest.param(n, marks=soak) for n in ("bind9-dns64", "pdns-recursor-dns64", "knot-resolver-dns64", "nsd-dns")),
]
DNS64 = [server for server in SERVERS if "dns64" in str(server)]
#: Names that phase 1 asks for.
NAMES = 64


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


@pytest.mark.parametrize("gateway", DNS64)
def test_with_everything_cached_the_far_side_sees_each_name_once(gateway: str) -> None:
    """A DNS64 server asks for AAAA and for A, once for each name, and for none again."""
    with asking(gateway, connections=NAMES, placement="shared", connection_rate=None) as (_, measurer):
        outcome = decided(measurer, replace(CACHED, cached_share=1.0))
    counts = queries_of(outcome)
    assert (outcome.phase1.received_frames, counts.received_frames, counts.duplicates) == (NAMES, QUERIES, 0)
    assert (outcome.phase1.asked, counts.asked) == (2 * NAMES, 0)


@pytest.mark.parametrize("gateway", DNS64)
def test_a_name_with_an_aaaa_record_is_asked_for_once_and_answered_with_that(gateway: str) -> None:
    """A quarter of the names has one, of the cached ones, too; half of the queries are for new names."""
    with asking(gateway, connections=NAMES, placement="shared", connection_rate=None) as (_, measurer):
        outcome = decided(measurer, replace(CACHED, cached_share=0.5, aaaa_share=0.25))
    counts = queries_of(outcome)
    assert (counts.received_frames, sum(message.wrong for message in counts.messages)) == (QUERIES, 0)
    assert outcome.phase1.asked == pytest.approx(1.75 * NAMES, abs=2)
    assert counts.asked == pytest.approx(1.75 * QUERIES / 2, abs=4)


@soak
@pytest.mark.parametrize("length", PREFIX_LENGTHS)
@pytest.mark.parametrize(
    ("gateway", "setting", "written"),
    [
        ("unbound-dns64", "dns64-prefix: $NG_NAT64_PREFIX", "dns64-prefix: {}"),
        ("bind9-dns64", "dns64 $NG_NAT64_PREFIX {", "dns64 {} {{"),
    ],
)
def test_addresses_are_made_with_each_embedding_of_rfc6052(
    gateway: str, setting: str, written: str, length: int, tmp_path: Path
) -> None:
    prefix = IPv6Network((int(IPv6Address("64:ff9b:1:fffe::")) >> (128 - length) << (128 - length), length))
    recipe = changed(tmp_path, "other-dns64", gateway, {setting: written.format(prefix)})
    asked = {"lab_name": NAME, "connections": NAMES, "placement": "shared"}
    question = ask("resolution-rate", recipe, asked)
    bench = Bench(question.cell)
    planned = bench.plan("resolution-rate", question.settings)
    with bench:
        measurer = bench.ready(planned, Memory(), prove=False).measurer
        answers: dict[Query, Address] = {"aaaa": embedded(prefix, IPv4Address(ADDRESS4))}
        measurer.settings = replace(measurer.settings, answers=answers)
        counts = queries_of(decided(measurer, PLAN))
    assert (counts.received_frames, [message.wrong for message in counts.messages]) == (QUERIES, [0, 0])


@soak
@pytest.mark.alone
def test_a_limit_of_4000_queries_a_second_before_the_server_is_the_result(tmp_path: Path) -> None:
    """A full bucket lets `BURST` more through in each trial."""
    limit, burst, seconds = 4_000, 100, 2.0
    drops = DROPS.format(f"limit rate over {limit}/second burst {burst} packets")
    start = 'start = """\ncat > "$NG_WORK/unbound.conf"'
    limited = changed(
        tmp_path, "limited-dns64", "unbound-dns64", {start: f'start = """{drops}cat > "$NG_WORK/unbound.conf"'}
    )
    found = natgauge.measure(
        "resolution-rate",
        str(limited),
        lab_name=NAME,
        placement="shared",
        repeat=1,
        trial_seconds=seconds,
        results=tmp_path,
    )
    assert limit * 0.98 <= found.median <= (limit + burst / seconds) * 1.02


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
    drops = DROPS.format("numgen inc mod 100 0")
    lossy = changed(tmp_path, "lossy-dns", "nsd-dns", {EXTENDS: f'{EXTENDS}\n[verbs]\nstart = """{drops}"""'})
    with asking(lossy, connections=64, placement="shared", connection_rate=None) as (_, measurer):
        counts = queries_of(decided(measurer, replace(PLAN, loss_tolerance=0.02)))
    assert counts.offered_frames == QUERIES
    assert counts.lost == pytest.approx(QUERIES / 100, abs=1)
