# SPDX-License-Identifier: Apache-2.0
"""Logs of real gateways, with known faults: what is missing, wrong or dropped is found, and nothing else."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from tests.labs import log_exporter
from tests.labs.last_runs import playable_of
from tests.labs.nat44 import variant
from tests.labs.program import own
from tests.labs.trying import decided
from tests.plans import OneTrial, PlanOfTrial

import natgauge
from natgauge.gateways.recipe import load
from natgauge.readings import LogCounts
from natgauge.records.store import Memory
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask
from natgauge.trials import Phase2Plan
from natgauge.words import Verdict

NAME = own("e2e-logging")
_EVENTS: Final = load("nftables-nat44").logging["conntrack-events"]
#: Of records of the ordinary way through a filter.
_FILTERED: Final = """
[logging.filtered]
records = "connections.log"
record = '{record}'
check = "awk '$2 == 12 && $4 !~ /^0+$/ {{ found = 1 }} END {{ exit !found }}' /proc/net/netlink"
dropped = "awk '$2 == 12 {{ sum += $9 }} END {{ print \\"log_drops\\", sum + 0 }}' /proc/net/netlink"

[[logging.filtered.process]]
name = "log"
command = '''
sh -c "conntrack -E -e NEW -o timestamp -b {buffer} | {filter} >> $NG_WORK/connections.log"'''
"""
#: Of records that an exporter sends to the collector.
_SENT: Final = '''
[logging.sent]
records = "{kind}"
{record}
start = """
nft -f - <<RULES
table inet sent
delete table inet sent
table inet sent {{
    chain sent {{
        type filter hook output priority raw; policy accept;
        oifname "lo" udp dport $NG_LOG_PORT notrack
    }}
}}
RULES
"""
check = "awk '$2 == 12 && $4 !~ /^0+$/ {{ found = 1 }} END {{ exit !found }}' /proc/net/netlink"

[[logging.sent.process]]
name = "log"
command = """
sh -c "conntrack -E -e NEW -o timestamp -b 8388608 | {python} -u {exporter} {kind} $NG_LOG_PORT 100"
"""
'''
_EACH_HUNDREDTH: Final = "sed -u 100~100d"
#: From each thousandth record on, the first two neighbouring ones with different outside ports exchange these. A trial
#: that is repeated meets the fault as often as the first one.
_SWAP: Final = (
    r"sed -u -E -e '100~1000{:again' -e 'N;/dport=([0-9]+)\n.*dport=\1$/{P;s/^[^\n]*\n//;bagain' -e '}'"
    r" -e 's/(dport=)([0-9]+)(\n.*dport=)([0-9]+)$/\1\4\3\2/' -e '}'"
)


#: Of the messages that VPP sends to the collector, each hundredth does not arrive.
_LOSING: Final = """
nft -f - <<RULES
table inet losing
delete table inet losing
table inet losing {
    chain losing {
        type filter hook input priority filter; policy accept;
        iifname "klog" numgen inc mod 100 == 0 drop
    }
}
RULES
"""


def filtered(folder: Path, filter_: str, buffer: int = 8388608) -> Path:
    script = folder / "filter.sh"
    script.write_text(f"exec {filter_}\n")
    return variant(folder, "filtered", _FILTERED.format(record=_EVENTS.record, buffer=buffer, filter=f"sh {script}"))


def traced(gateway: str | Path, way: str, plan: PlanOfTrial, **inputs: Any) -> tuple[OneTrial, LogCounts]:
    question = ask("connection-rate", gateway, {"lab_name": NAME, "connections": 20_000, "logging": way, **inputs})
    with Bench(question.cell) as bench:
        measurer = bench.ready(bench.plan(question.metric, {}), Memory()).measurer
        trial = decided(measurer, plan)
    assert trial.readings.log is not None
    return trial, trial.readings.log


@pytest.mark.parametrize(
    ("filter_", "missing", "wrong"),
    [("cat", 0, 0), (_EACH_HUNDREDTH, 20, 0), (_SWAP, 0, 4)],
    ids=["complete", "each 100th dropped", "two ports swapped in each 1000"],
)
def test_a_filter_between_gateway_and_log_is_found_to_the_record(
    tmp_path: Path, filter_: str, missing: int, wrong: int
) -> None:
    plan = PlanOfTrial(2000, 4000.0)
    trial, log = traced(filtered(tmp_path, filter_), "filtered", plan, source_addresses="10.0.0.2-10.0.0.5")
    assert (log.lost, log.wrong, log.connections) == (missing, wrong, 2000), trial.reason
    assert (log.duplicate, log.unparsed, log.ambiguous) == (0, 0, 0)
    assert log.delay_p50_ms is not None
    assert 0 < log.delay_p50_ms < 1000
    assert trial.verdict is (Verdict.FAIL if missing or wrong else Verdict.PASS)
    assert trial.limited_by == ("log" if missing or wrong else None)


@pytest.mark.parametrize("kind", [pytest.param("syslog", marks=pytest.mark.soak), "ipfix"])
def test_each_hundredth_record_that_a_gateway_does_not_send_is_missing(tmp_path: Path, kind: str) -> None:
    # The record of `conntrack -E` behind the header of a message; its time is the arrival.
    record = str(_EVENTS.record).replace(r"^\[(?P<time>\d+\.\d+)\]", r"^(?P<time>\S+) <134>.*")
    more = _SENT.format(
        kind=kind,
        record=f"record = '{record}'" if kind == "syslog" else "",
        python=sys.executable,
        exporter=log_exporter.__file__,
    )
    plan = PlanOfTrial(2000, 4000.0)
    trial, log = traced(variant(tmp_path, "sent", more), "sent", plan, source_addresses="10.0.0.2-10.0.0.5")
    assert (log.lost, log.wrong, log.connections, log.records) == (20, 0, 2000, 1980), trial.reason
    assert (log.duplicate, log.unparsed, log.ambiguous, log.outside_named) == (0, 0, 0, True)
    assert (trial.verdict, trial.limited_by) == (Verdict.FAIL, "log")


@pytest.mark.parametrize("name", playable_of("vpp-nat44-ed"))
def test_each_hundredth_message_of_vpp_that_does_not_arrive_is_missing(tmp_path: Path, name: str) -> None:
    gateway, before = variant(tmp_path, "losing", of=name), "ip address add 192.0.2.1/30 dev klog\n"
    text = gateway.read_text()
    assert text.count(before) == 1
    gateway.write_text(text.replace(before, before + _LOSING))
    hosts = "10.0.0.2-10.0.0.5"
    trial, log = traced(gateway, "syslog", PlanOfTrial(2000, 2000.0), connections=2000, source_addresses=hosts)
    assert (log.lost, log.wrong, log.connections, log.records) == (20, 0, 2000, 1980), trial.reason
    assert (log.duplicate, log.unparsed, log.ambiguous, log.outside_named) == (0, 0, 0, True)
    assert (trial.verdict, trial.limited_by) == (Verdict.FAIL, "log")


def test_a_log_of_blocks_is_complete_with_a_record_for_each_block() -> None:
    # 200 connections of each of eight hosts fill a block of 128 ports, and a part of a second one.
    hosts = {"connections": 1600, "source_addresses": "10.0.0.2-10.0.0.9", "source_ports": "1024-1223"}
    trial, log = traced("cgn-port-blocks", "given-blocks", PlanOfTrial(1600, 2000.0), **hosts)
    assert (trial.verdict, trial.reason) == (Verdict.PASS, "")
    assert (log.connections, log.records, log.is_odd) == (1600, 16, False)


def test_a_log_without_room_in_its_socket_loses_records_and_the_counter_is_named(tmp_path: Path) -> None:
    # Who reads the program's records stops again and again, so that the program stops to read its socket.
    way, plan = filtered(tmp_path, "sed -u '50~500e sleep 3'", 4096), PlanOfTrial(20_000, 20_000.0)
    trial, log = traced(way, "filtered", plan, connections=20_000)
    assert log.lost > 0
    assert (trial.verdict, trial.limited_by) == (Verdict.FAIL, "log")
    assert trial.cause is not None
    assert trial.cause.counter == "log_drops"


@pytest.mark.soak
@pytest.mark.parametrize("transport", ["udp", "tcp", "icmp"])
@pytest.mark.parametrize(
    ("gateway", "way"),
    [
        ("nftables-nat44", "conntrack-events"),
        ("iptables-nat44", "conntrack-events"),
        ("nftables-strict-nat44", "nflog-ulogd"),
        ("iptables-nat44", "nflog-ulogd"),
        ("nftables-nat44", "nfct-ulogd"),
        ("nftables-nat44", "nfct-syslog"),
        *((name, way) for name in playable_of("vpp-nat44-ed") for way in ("syslog", "ipfix")),
    ],
)
def test_each_way_of_our_gateways_has_a_complete_log_at_a_low_rate(gateway: str, way: str, transport: str) -> None:
    if way.startswith("nfct") and transport == "icmp":
        pytest.skip("ulogd's events of ICMP have no identifier")
    # Connections get further frames before any reply, and none of these is logged.
    plan = PlanOfTrial(1000, 1000.0, Phase2Plan(2000.0, 0.0, 0.5))
    trial, log = traced(gateway, way, plan, transport=transport)
    assert (trial.verdict, trial.reason) == (Verdict.PASS, "")
    if way == "ipfix":
        # VPP keeps its last message until it looks again.
        log = replace(log, late=0)
    assert (log.connections, log.records, log.is_odd) == (1000, 1000, False)
    assert (log.delay_p50_ms is None) == (way == "nflog-ulogd")


@pytest.mark.soak
def test_a_limit_before_the_log_is_the_highest_rate_with_a_complete_log(tmp_path: Path) -> None:
    gateway = variant(tmp_path, "limited")
    text = (Path(natgauge.__file__).parent / "gateways" / "recipes" / "common" / "conntrack-log.toml").read_text()
    (tmp_path / "common").mkdir()
    limited = text.replace("log group 7\n", "limit rate 1000/second burst 50 packets log group 7\n")
    (tmp_path / "common" / "conntrack-log.toml").write_text(limited)
    outcome = natgauge.measure(
        "connection-rate", gateway, connections=5000, logging="nflog-ulogd", error="2%", repeat=1, profile="quick",
        most_seconds=0, lab_name=NAME, results=tmp_path / "results",
    )  # fmt: skip
    found = outcome.document()
    # The burst lets a tester be late by 50 ms; N connections pass at 1000 N / (N - 50).
    assert found["median"] == pytest.approx(1010, rel=0.03)
    assert found["limited_by"] == "log"
    assert found["figures"]["log_lost_percent"]["median"] == 0
    assert found["figures"]["log_records_per_connection"]["median"] == 1
