# SPDX-License-Identifier: Apache-2.0
"""`natgauge explain` on planted faults: a real gateway loses frames at a known hop, and this hop is named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.labs.nat44 import with_rules
from tests.labs.program import own
from tests.plans import PlanOfTrial

from natgauge.cli import run
from natgauge.host.machine import usable_cpus
from natgauge.records.store import Store
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask

NAME = own("e2e-explain")
LIMIT = Path("/proc/sys/net/netfilter/nf_conntrack_max")
CONNECTIONS = 2000
#: Half of the connections lead to the second address, to which the planted faults apply.
SECOND = "198.19.0.3"
#: What is planted in the gateway, the command that takes it away, the hop, the counter that must say so, and the cause.
RULES = """
nft -f - <<RULES
table {family} planted {{
    chain planted {{
        type filter hook {hook} priority 0
        ip daddr {second} {verdict}
    }}
}}
RULES
"""
RULE = RULES.format(family="ip", hook="forward", second=SECOND, verdict="drop")
#: The header's checksum is its 80th bit, that of UDP the 48th of its own header.
HEADER_CHECKSUM = RULES.format(
    family="netdev", hook="ingress device $NG_INSIDE", second=SECOND, verdict="@nh,80,16 set 0xbad"
)
UDP_CHECKSUM = RULES.format(
    family="netdev", hook="egress device $NG_OUTSIDE", second=SECOND, verdict="@th,48,16 set 0xbad"
)
#: Frames leave the gateway as they came, without an entry in its table.
NOTRACK = RULES.format(family="ip", hook="prerouting", second=SECOND, verdict="notrack").replace(
    "priority 0", "priority raw"
)
#: 64-octet frames at 20,000/s are ten times as much.
QUEUE = 'tc qdisc replace dev "$NG_OUTSIDE" root tbf rate 1mbit burst 2kb limit 2kb'
QUEUE_AWAY = 'tc qdisc del dev "$NG_OUTSIDE" root'
ROUTE = 'ip route del 198.19.0.0/16 dev "$NG_OUTSIDE" && ip route add 198.19.0.2/32 dev "$NG_OUTSIDE"'
ROUTE_BACK = 'ip route del 198.19.0.2/32 dev "$NG_OUTSIDE" && ip route add 198.19.0.0/16 dev "$NG_OUTSIDE"'
FAULTS = (
    (RULE, "nft delete table ip planted", "rules", "received, but not sent", "rule"),
    (HEADER_CHECKSUM, "nft delete table netdev planted", "header", "IpExtInCsumErrors", "header"),
    (UDP_CHECKSUM, "nft delete table netdev planted", "out", "damaged", "checksum"),
    (ROUTE, ROUTE_BACK, "routing", "IpExtInNoRoutes", "route"),
    (NOTRACK, "nft delete table ip planted", "out", "untranslated", "untracked"),
    (QUEUE, QUEUE_AWAY, "out", "qdisc tbf", "queue"),
)


@pytest.fixture
def limit() -> Iterator[Path]:
    """The machine's limit of connections, which is restored."""
    before = LIMIT.read_text()
    yield LIMIT
    LIMIT.write_text(before)


def bench_of(**choices: Any) -> Bench:
    traffic = {"connections": CONNECTIONS, "destination_addresses": f"198.19.0.2-{SECOND}"}
    return Bench(ask("connection-rate", "nftables-nat44", {"lab_name": NAME, **traffic, **choices}).cell)


def explained(folder: Path, number: int, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What the command prints of a trial."""
    capsys.readouterr()
    assert run(["explain", str(folder), str(number), "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_the_hop_of_each_planted_fault_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench = bench_of()
    with bench:
        measurer = bench.ready(bench.plan("connection-rate", {}), Store(tmp_path)).measurer
        (device,) = bench.lab.devices
        for plant, mend, *_ in FAULTS:
            assert not (planted := device.run(plant)).status, planted.stderr
            measurer.measure(PlanOfTrial(CONNECTIONS, 20_000.0))
            assert not (mended := device.run(mend)).status, mended.stderr
        measurer.measure(PlanOfTrial(CONNECTIONS, 20_000.0))
    for number, (*_, hop, counter, kind) in enumerate(FAULTS, start=1):
        document = explained(tmp_path, number, capsys)
        named = document["losing"]
        assert (named["hop"], named["device"]) == (hop, "gateway"), document
        assert counter in [each["name"] for each in named["counters"]]
        assert named["lost"] == document["lost"] > 0
        assert (document["cause"]["kind"], document["cause"]["certainty"]) == (kind, "seen")
    assert explained(tmp_path, len(FAULTS) + 1, capsys)["losing"] is None, "the last trial had no fault"


def test_a_gateway_that_forwards_nothing_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    closed = str(with_rules(tmp_path, "closed-nat", "drop"))
    asked = ["connection-rate", "--gateway", closed, "--lab-name", NAME, "--results", str(tmp_path / "results")]
    assert run(["measure", *asked]) == 4
    (folder,) = (tmp_path / "results").iterdir()
    document = explained(folder, 1, capsys)
    assert (document["losing"]["hop"], document["losing"]["device"]) == ("rules", "gateway"), document
    assert document["failure"].startswith("device does not forward")
    assert "the forward chain accepts no UDP to the outside" in document["failure"]


@pytest.mark.alone
def test_a_full_connection_tracking_table_is_named(
    limit: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = bench_of()
    with bench:
        measurer = bench.ready(bench.plan("connection-rate", {}), Store(tmp_path)).measurer
        limit.write_text(str(CONNECTIONS // 4))
        measurer.measure(PlanOfTrial(CONNECTIONS, 20_000.0))
    document = explained(tmp_path, 1, capsys)
    assert document["losing"]["hop"] == "conntrack", document
    assert "conntrack drop" in [each["name"] for each in document["losing"]["counters"]]
    assert document["without_counter"] == 0
    assert (document["cause"]["kind"], document["cause"]["certainty"]) == ("table", "seen")


@pytest.mark.skipif(len(usable_cpus()) < 2, reason="an isolated device needs a core of its own")
def test_a_ring_that_is_too_short_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # The ring takes all frames of the first check, and not those of a trial.
    bench = bench_of(placement="isolated", ring=8, connections=20_000)
    with bench:
        measurer = bench.ready(bench.plan("connection-rate", {}), Store(tmp_path)).measurer
        measurer.measure(PlanOfTrial(20_000, 1_500_000.0))
    document = explained(tmp_path, 1, capsys)
    assert document["losing"]["hop"] == "ring", document
    counters = [(each["name"], each["place"]) for each in document["losing"]["counters"]]
    # Both cards have the short ring. The one on the way in always overflows, the one on the way out on some hosts.
    assert ("card ring", "inside") in counters
    assert {name for name, _place in counters} == {"card ring"}
