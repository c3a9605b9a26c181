# SPDX-License-Identifier: Apache-2.0
"""Logs that come as messages are collected, and those of gateways in slices emptied: read as lines, and joined."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.plans import OneTrial, PlanOfTrial
from tests.unit.counted import change_trial
from tests.unit.fake_engine import FakeEngine
from tests.unit.fake_measurer import AROUND, SETTINGS, FakeLab, FakeTable, Recorder
from tests.unit.golden import Golden
from tests.unit.made_logs import START, entry, record
from tests.unit.test_verdicts import CLEAN, lossy
from tests.unit.timed_slices import Engine

from natgauge.agreement.generated import ContestantCounts, TrialRequest, TrialResult
from natgauge.errors import BrokenError, HostError, NatgaugeError, OverrunError, UsageError
from natgauge.gateways.logs import RECORD, IpfixLines, LoggingWay
from natgauge.gateways.recipe import load
from natgauge.host.machine import as_if
from natgauge.inputs.question import TrafficOptions
from natgauge.labs.common.device import NamespaceDevice
from natgauge.labs.contract import CommandResult
from natgauge.notes import Note
from natgauge.paired.ratios import PairedRatios, RoundSums, Seat, Seating, VoidRounds, disturbance_notes
from natgauge.paired.slices import RoundPlan, TimedRound
from natgauge.procedures.kit.results import Attempt, Measurement, with_device_figures
from natgauge.readings import LogCounts, LogError
from natgauge.setup import log_collector
from natgauge.setup.log_collector import Collector, planned
from natgauge.setup.setup import Setup
from natgauge.setup.traffic import make_plan
from natgauge.trial import connection_log, rounds
from natgauge.trial.connection_log import ConnectionLog, LogFile, join, listed
from natgauge.trial.controls import CommandRetries
from natgauge.trial.lab_measurer import MOST_SILENT, LabMeasurer
from natgauge.trial.question import ask
from natgauge.trial.rounds import TimedGateway, perform
from natgauge.trials import Phase2Plan
from natgauge.verdicts import Limits, judge
from natgauge.words import Verdict

#: Elements of RFC 8158 table 2, and their octets.
TIME, EVENT, PROTOCOL, SOURCE, OUTSIDE, PORT, OUTSIDE_PORT = (
    (323, 8),
    (230, 1),
    (4, 1),
    (8, 4),
    (225, 4),
    (7, 2),
    (227, 2),
)
DESTINATION, REMOTE, FIRST, LAST, SOURCE6, OUTSIDE6 = (12, 4), (11, 2), (361, 2), (362, 2), (27, 16), (281, 16)
SESSION = (TIME, EVENT, PROTOCOL, SOURCE, OUTSIDE, PORT, OUTSIDE_PORT, DESTINATION, REMOTE)


def message(*sets: bytes, version: int = 10) -> bytes:
    body = b"".join(sets)
    if version == 9:
        return struct.pack(">HHIIII", 9, len(sets), 0, START, 0, 1) + body
    return struct.pack(">HHIII", 10, 16 + len(body), START, 0, 1) + body


def template(elements: Sequence[tuple[int, int]], number: int = 256, set_: int = 2) -> bytes:
    fields = b"".join(struct.pack(">HH", *element) for element in elements)
    return struct.pack(">HHHH", set_, 8 + len(fields), number, len(elements)) + fields


def data(elements: Sequence[tuple[int, int]], *records: Sequence[int | str], number: int = 256) -> bytes:
    def octets(value: int | str, size: int) -> bytes:
        return ip_address(value).packed if isinstance(value, str) else value.to_bytes(size, "big")

    body = b"".join(
        octets(value, size) for record in records for value, (_, size) in zip(record, elements, strict=True)
    )
    return struct.pack(">HH", number, 4 + len(body)) + body


def session(number: int, event: int = 4) -> Sequence[int | str]:
    port = 1024 + number
    return START * 1000, event, 17, "10.0.0.2", "198.19.0.1", port, port, "198.19.0.2", 1


def lines(*messages: bytes) -> list[str]:
    reader = IpfixLines()
    return [line for each in messages for line in reader.of(START + 0.5, each)]


def joined(known: Sequence[bytes], found: Sequence[str]) -> LogCounts:
    text = "".join(f"{line}\n" for line in found)
    return join(listed(b"".join(known), all_learned=True), text, RECORD, grace=2.0)


def test_the_octets_of_rfc_7011_are_read() -> None:
    # Appendix A: five elements of three flows, which are those of no translation.
    of_appendix = bytes.fromhex(
        "0002001c 01000005 00080004 000c0004 000f0004 00020004 00010004"
        "01000040 c000020c c00002fe c0000201 00001391 00518c81"
        "c000021b c0000217 c0000202 000002ec 0005ef46 c0000238 c0000241 c0000203 00000005 00001986"
    )
    assert lines(message(of_appendix)) == [
        f"{START}.500000 source=192.0.2.12 destination=192.0.2.254",
        f"{START}.500000 source=192.0.2.27 destination=192.0.2.23",
        f"{START}.500000 source=192.0.2.56 destination=192.0.2.65",
    ]


def test_the_octets_of_an_exporter_are_read() -> None:
    # What ulogd 2.0.8 sends of an event, the first of its flows.
    of_ulogd = bytes.fromhex(
        "0002003001 00000a0008 0004000c 00040056 00040055 00040096 00040097 00040007 0002000b 00020004 0001005f 0004"
        "01000025 7f000001 7f000001 00000000 00000000 6b08a36b 00000000 ab48 238c 11 00000000"
    )
    assert lines(message(of_ulogd)) == [
        f"{START}.500000 source=127.0.0.1 source_port=43848 destination=127.0.0.1 destination_port=9100"
    ]


@pytest.mark.parametrize("version", [9, 10])
def test_sessions_of_ipfix_and_netflow_are_joined_as_lines_of_a_file(version: int) -> None:
    described = template(SESSION, set_=2 if version == 10 else 0)
    first = message(described, data(SESSION, *map(session, range(5))), version=version)
    second = message(data(SESSION, *map(session, range(5, 9))), version=version)
    counts = joined([entry(number) for number in range(10)], lines(first, second))
    assert (counts.connections, counts.records, counts.lost, counts.wrong, counts.unparsed) == (10, 9, 1, 0, 0)
    assert counts.outside_named
    assert counts.delay_p50_ms is not None


def test_records_of_ends_are_no_records_of_connections() -> None:
    ended = message(template(SESSION), data(SESSION, session(0), session(0, event=5), session(1, event=5)))
    assert len(lines(ended)) == 1


def test_blocks_and_bindings_of_ipfix_name_no_destination() -> None:
    block = (EVENT, SOURCE, OUTSIDE, FIRST, LAST)
    binding = (EVENT, SOURCE, OUTSIDE, PROTOCOL, PORT, OUTSIDE_PORT)
    found = lines(
        message(template(block), data(block, (16, "10.0.0.2", "198.19.0.1", 1024, 1151))),
        message(template(binding, 257), data(binding, (8, "10.0.0.3", "198.19.0.1", 17, 2000, 3000), number=257)),
    )
    known = [entry(number) for number in range(3)]
    known += [entry(number, source="10.0.0.3", port=2000, seen=3000, remote=number) for number in range(3)]
    counts = joined(known, found)
    assert (counts.connections, counts.records, counts.is_odd) == (6, 2, False)


#: What VPP's NAT44-ED sends of a session, and a BIB entry: neither names the destination.
PORTS = (EVENT, SOURCE, OUTSIDE, PROTOCOL, PORT, OUTSIDE_PORT)


def of_port(event: int, port: int, *, at: float = 0.5) -> Sequence[str]:
    record = (event, "10.0.0.2", "198.19.0.1", 17, port, port)
    return list(IpfixLines().of(START + at, message(template(PORTS), data(PORTS, record))))


#: Three connections of one inside port, and two of another.
TO_MANY = [
    *(entry(number, port=2000, remote=number) for number in range(3)),
    *(entry(number, port=2001, remote=number) for number in range(3, 5)),
]


def test_a_session_without_its_destination_is_one_connection_and_a_binding_is_all_of_its_port() -> None:
    """Seen: one record of a session stood for all connections of its inside port, so that no lost record was seen."""
    of_sessions = [*of_port(4, 2000), *of_port(4, 2000), *of_port(6, 2001)]
    counts = joined(TO_MANY, of_sessions)
    assert (counts.records, counts.lost, counts.wrong, counts.duplicate) == (3, 2, 0, 0)
    whole = joined(TO_MANY, [*of_sessions, *of_port(4, 2000), *of_port(4, 2001)])
    assert (whole.lost, whole.is_odd) == (0, False)
    assert joined(TO_MANY, [*of_port(8, 2000), *of_port(10, 2001)]).lost == 0


def test_sessions_that_no_connection_of_their_port_is_left_for_are_duplicates_or_wrong() -> None:
    more = [*of_port(4, 2001)] * 3
    counts = joined(TO_MANY, [*of_port(8, 2000), *more, *of_port(4, 2002), *of_port(4, 2000, at=-30)])
    assert (counts.duplicate, counts.wrong, counts.lost) == (1, 2, 0)


def test_sessions_whose_outside_port_the_tester_does_not_know_are_one_connection_each() -> None:
    unknown = [entry(number, port=2000, remote=number, known=2) for number in range(3)]
    counts = joined(unknown, [*of_port(4, 2000), *of_port(4, 2000)])
    assert (counts.connections, counts.lost, counts.wrong) == (3, 1, 0)


def test_a_connection_that_has_a_record_of_each_kind_is_recorded_once() -> None:
    """Seen: with events of sessions and of ports, each connection was there twice."""
    known = [entry(number) for number in range(3)]
    sessions = lines(message(template(SESSION), data(SESSION, *map(session, range(3)))))
    bindings = [line for number in range(3) for line in of_port(8, 1024 + number)]
    blocks = [f"{START}.5 source=10.0.0.2 outside=198.19.0.1 first_port=1024 last_port=1151 event=16"]
    for log in ([*sessions, *bindings, *blocks], [*blocks, *bindings, *sessions]):
        assert joined(known, log).is_odd is False
    for twice in (sessions, bindings, blocks):
        assert joined(known, [*sessions, *bindings, *blocks, twice[0]]).duplicate == 1


def test_a_log_with_records_of_ports_and_of_sessions_is_whole_when_it_has_all_of_one_kind(port: int) -> None:
    """Half of the sessions and half of the ports were as many ends as connections, so the rest was not awaited."""
    nowhere: Any = None
    log = ConnectionLog(nowhere, "ipfix", way("ipfix", port), 2.0)
    sessions = lines(message(template(SESSION), data(SESSION, *map(session, range(4)))))
    bindings = [line for number in range(4) for line in of_port(8, 1024 + number)]
    assert not log._has(4, "\n".join([*sessions[:2], *bindings[:2]]))
    assert log._has(4, "\n".join([*sessions[:2], *bindings]))
    assert log._has(4, "\n".join([*sessions, *bindings[:2]]))


def test_many_sessions_of_one_port_are_joined_in_a_moment() -> None:
    known = [entry(number, port=2000, remote=number) for number in range(15_000)]
    assert joined(known, [*of_port(4, 2000, at=60)] * 15_000).lost == 0


def test_a_block_may_name_its_number_of_ports_in_the_place_of_the_last_one() -> None:
    numbered = (SOURCE, OUTSIDE, FIRST, (363, 2), (364, 2))
    block = ("10.0.0.2", "198.19.0.1", 1024, 1, 128)
    with_gaps = ("10.0.0.2", "198.19.0.1", 1024, 4, 128)
    found = lines(message(template(numbered), data(numbered, block, with_gaps)))
    assert "first_port=1024 last_port=1151" in found[0]
    assert joined([entry(0)], found).unparsed == 1


def test_a_sent_record_may_name_the_destinations_address_alone() -> None:
    known = [entry(number, port=5000 + number, seen=1024 + number, remote=9) for number in range(3)]
    lines = [
        f"{START} source=10.0.0.2 source_port={5000 + number} destination=198.19.0.2 outside=198.19.0.1 "
        f"outside_port={1024 + number}"
        for number in range(3)
    ]
    counts = joined(known, lines)
    assert (counts.records, counts.wrong, counts.lost) == (3, 0, 0)


def test_ipv6_addresses_are_read() -> None:
    six = (EVENT, SOURCE6, OUTSIDE6, FIRST, LAST)
    found = lines(message(template(six), data(six, (16, "2001:2::2", "2001:2:0:8000::1", 1024, 1151))))
    block = "source=2001:2::2 outside=2001:2:0:8000::1 first_port=1024 last_port=1151 event=16"
    assert found == [f"{START}.500000 {block}"]


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"\x0a",
        b"<134>Nov 26 21:00:00 gateway NAT",
        message(data(SESSION, session(0), number=300)),
        message(template(SESSION), data(SESSION, session(0)))[:-20],
        message(template((EVENT, PROTOCOL)), data((EVENT, PROTOCOL), (4, 17))),
        message(data(SESSION, session(1), number=255)),
        message(template(SESSION), data(SESSION, number=1)),
        message(template(SESSION, set_=2), version=9),
        message(struct.pack(">HHHH", 2, 12, 300, 9) + bytes(4)),
        message(bytes(8)),
    ],
    ids=[
        "empty",
        "an octet",
        "syslog",
        "no template",
        "cut",
        "no addresses",
        "reserved set",
        "set beside a template",
        "set of another version",
        "cut template",
        "zeros",
    ],
)
def test_what_cannot_be_read_is_counted_shown_and_never_fatal(broken: bytes, golden: Golden) -> None:
    reader = IpfixLines()
    found = [*reader.of(START, broken), *reader.of(START, message(template(SESSION), data(SESSION, session(0))))]
    counts = joined([entry(0)], found)
    assert (counts.records, counts.lost) == (1, 0)
    assert counts.unparsed == 1
    golden(counts.words)


@pytest.mark.parametrize("version", [9, 10])
def test_templates_that_are_sent_again_or_of_options_are_no_unreadable_messages(version: int) -> None:
    ordinary, of_options = (2, 3) if version == 10 else (0, 1)
    once = message(template(SESSION, set_=ordinary), version=version)
    # A scope and an option, as numbers of fields and of octets.
    counts = (2, 1) if version == 10 else (4, 4)
    options = struct.pack(">HHHHH", of_options, 18, 400, *counts) + struct.pack(">HHHH", 149, 4, 34, 4)
    told = message(options, version=version)
    withdrawn = message(struct.pack(">HHHH", ordinary, 8, 256, 0), version=version)
    assert lines(once, once, told, told, message(version=version), withdrawn) == []
    assert len(lines(message(template(SESSION), data(SESSION, session(0)), bytes(8)))) == 1


# Sockets


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NamespaceDevice:
    # Without privileges, and in our own network.
    monkeypatch.setattr(log_collector, "_SO_RCVBUFFORCE", socket.SO_RCVBUF)
    monkeypatch.setattr(log_collector, "_QUEUE", {})
    here: Any = None
    return NamespaceDevice("gateway", here, "in", "out", {"NG_WORK": str(tmp_path)}, here)


@pytest.fixture
def port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def way(records: str, port: int) -> LoggingWay:
    record = load("nftables-nat44").logging["nfct-syslog"].record if records == "syslog" else None
    return LoggingWay.model_validate({"records": records, "record": record, "port": port, "start": "true"})


def awaited(collector: Collector, number: int) -> str:
    deadline = time.monotonic() + 20
    while (text := collector.text()).count("\n") < number and time.monotonic() < deadline:
        time.sleep(0.01)
    return text


#: What ulogd 2.0.8 prints of a flow (PRINTFLOW), after what the C library puts in front.
FLOW = (
    "<133>Nov 26 21:00:00 ulogd[77]: [NEW] ORIG: SRC=10.0.0.2 DST=198.19.0.2 PROTO=UDP SPT={0} DPT=1 PKTS=0 BYTES=0 , "
    "REPLY: SRC=198.19.0.2 DST=198.19.0.1 PROTO=UDP SPT=1 DPT={0} PKTS=0 BYTES=0 \n"
)


def test_syslog_is_collected_from_a_unix_socket_and_from_udp(
    device: NamespaceDevice, port: int, tmp_path: Path
) -> None:
    chosen, begin = way("syslog", port), time.time()
    known = [struct.pack(">Q", int((begin + number / 1000) * 1e9)) + entry(number)[8:] for number in range(4)]
    sent = [FLOW.format(1024 + number).encode() for number in range(4)]
    with Collector(device, "nfct-syslog", chosen) as collector:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as unix:
            unix.sendto(b"of an earlier trial", str(tmp_path / "syslog"))
            awaited(collector, 1)
            collector.empty()
            for each in sent[:2]:
                unix.sendto(each, str(tmp_path / "syslog"))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            for each in sent[2:]:
                udp.sendto(each, ("127.0.0.1", port))
        text = awaited(collector, 4)
        assert collector.size() == sum(map(len, sent))
    counts = join(listed(b"".join(known), all_learned=True), text, chosen.pattern, grace=60.0)
    assert (counts.connections, counts.records, counts.is_odd) == (4, 4, False)
    assert counts.delay_p50_ms is not None
    assert not (tmp_path / "syslog").exists()


def test_templates_outlive_the_records_that_are_forgotten(device: NamespaceDevice, port: int) -> None:
    with (
        Collector(device, "ipfix", way("ipfix", port)) as collector,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
    ):
        udp.sendto(message(template(SESSION), data(SESSION, session(0))), ("127.0.0.1", port))
        assert awaited(collector, 1)
        collector.empty()
        assert (collector.text(), collector.size()) == ("", 0)
        udp.sendto(message(data(SESSION, session(1), session(2))), ("127.0.0.1", port))
        assert awaited(collector, 2).count("source=10.0.0.2") == 2


def test_messages_that_natgauge_itself_drops_are_no_verdict_on_the_device(
    device: NamespaceDevice, port: int, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setattr(log_collector, "_BUFFER", 1)
    monkeypatch.setattr(log_collector, "_messages", lambda _: [])
    with (
        Collector(device, "ipfix", way("ipfix", port)) as collector,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
    ):
        for _ in range(100):
            udp.sendto(bytes(1000), ("127.0.0.1", port))
        with pytest.raises(OverrunError) as refused:
            collector.text()
        collector.empty()
        assert collector.text() == ""
    golden(str(refused.value).replace(str(refused.value).split(" messages")[0].split()[-1], "NUMBER"))


@pytest.mark.parametrize(("waiting", "full"), [(4, False), (5, True)])
def test_a_unix_socket_that_was_full_hindered_the_device(
    device: NamespaceDevice,
    port: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    golden: Golden,
    *,
    waiting: int,
    full: bool,
) -> None:
    """A writer that waits for the socket loses what the gateway tells it meanwhile."""
    monkeypatch.setattr(log_collector, "_QUEUED", 4)
    sent, read = threading.Event(), log_collector._messages

    def late(of: socket.socket) -> Any:
        assert sent.wait(20)
        return read(of)

    monkeypatch.setattr(log_collector, "_messages", late)
    with (
        Collector(device, "nfct-syslog", way("syslog", port)) as collector,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as unix,
    ):
        for _ in range(waiting):
            unix.sendto(b"NAT", str(tmp_path / "syslog"))
        sent.set()
        awaited(collector, waiting)
        if full:
            with pytest.raises(OverrunError) as refused:
                collector.confirm_unhindered()
            golden(str(refused.value))
        else:
            collector.confirm_unhindered()
        collector.empty()
        for number in range(20):
            unix.sendto(b"NAT", str(tmp_path / "syslog"))
            awaited(collector, number + 1)
    collector.confirm_unhindered()


@pytest.mark.parametrize(("nice", "error"), [(-20, None), (-20, PermissionError()), (0, None)])
def test_the_collectors_thread_alone_goes_before_all_others(
    device: NamespaceDevice, port: int, monkeypatch: pytest.MonkeyPatch, nice: int, error: OSError | None
) -> None:
    """Seen: with the usual priority it waited for the device, whose log then waited for it."""
    raised: list[tuple[int, int]] = []

    def set_scheduler(thread: int, policy: int, _param: object) -> None:
        raised.append((thread, policy))
        if error is not None:
            raise error

    monkeypatch.setattr(os, "sched_setscheduler", set_scheduler)
    device.nice = nice
    with Collector(device, "nfct-syslog", way("syslog", port)) as collector:
        (thread,) = (each for each in threading.enumerate() if each.name == "natgauge-log")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            udp.sendto(b"NAT", ("127.0.0.1", port))
            awaited(collector, 1)
        assert raised == ([(thread.native_id, os.SCHED_RR)] if nice else [])


def test_messages_that_nobody_reads_take_no_more_memory_than_those_of_the_largest_trial(
    device: NamespaceDevice, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_collector, "_MOST", 2)
    with (
        Collector(device, "nfct-syslog", way("syslog", port)) as collector,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
    ):
        for _ in range(3):
            udp.sendto(b"NAT", ("127.0.0.1", port))
        deadline = time.monotonic() + 20
        while not collector._overrun and time.monotonic() < deadline:
            time.sleep(0.01)
        with pytest.raises(OverrunError):
            collector.text()
        collector.empty()
        udp.sendto(b"NAT", ("127.0.0.1", port))
        assert awaited(collector, 1).endswith(" NAT\n")


@pytest.mark.parametrize("records", ["syslog", "ipfix"])
def test_a_port_in_use_is_one_line_and_leaves_nothing(
    device: NamespaceDevice, port: int, records: str, tmp_path: Path, golden: Golden
) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", port))
        with pytest.raises(HostError) as refused, Collector(device, "sent", way(records, port)):
            pass
    golden(str(refused.value).replace(str(port), "PORT"))
    assert list(tmp_path.iterdir()) == []
    with Collector(device, "sent", way(records, port)):
        pass


def test_a_device_on_another_machine_is_refused(golden: Golden) -> None:
    elsewhere: Any = type("Elsewhere", (), {"name": "gateway"})()
    assert planned(elsewhere, "conntrack-events", load("nftables-nat44").logging["conntrack-events"]) is None
    with pytest.raises(UsageError) as refused:
        planned(elsewhere, "ipfix", way("ipfix", 4739))
    assert refused.value.at == "logging"
    golden(str(refused.value))


@pytest.mark.parametrize(
    "broken",
    [
        {"records": "syslog", "record": None},
        {"records": "ipfix", "record": "(?P<source>.)"},
        {"records": "ipfix", "record": None, "port": 0},
        {"records": "nat.log", "port": 514},
        {"records": "syslog", "record": "(?P<source>.)(?P<outside>.)(?P<first_port>.)"},
    ],
    ids=str,
)
def test_a_way_that_is_collected_and_breaks_a_rule_is_refused(broken: Mapping[str, Any], golden: Golden) -> None:
    whole = {"records": "syslog", "record": "(?P<source>.)(?P<outside>.)(?P<outside_port>.)(?P<source_port>.)"}
    LoggingWay.model_validate({**whole, "start": "true"})
    with pytest.raises(ValueError, match="LoggingWay") as refused:
        LoggingWay.model_validate({**whole, "start": "true", **broken})
    golden(str(refused.value).split("[type=")[0])


PLAN = RoundPlan(1000, {"up": 1})


class LoggingGateway:
    """A gateway whose log drops some records in each round, and some more while its table is emptied."""

    empties = True

    def __init__(self, dropping: int | None) -> None:
        self.dropping, self.dropped = dropping, 100
        self.did: list[str] = []

    def empty(self) -> None:
        self.did.append("table emptied")
        self.dropped += 5

    def forget(self) -> None:
        self.did.append("log emptied")

    def count(self) -> int:
        return 1000

    def found_changed(self) -> str:
        return ""

    def faults(self) -> dict[str, int]:
        return {"insert_failed": 3} if self.dropping is None else {"log_drops": self.dropped}

    def timed(self, *, logs: bool = True) -> TimedGateway:
        measurer: Any = SimpleNamespace(
            device=self,
            log=self if logs else None,
            asking=CommandRetries(),
            number=0,
            settings=SimpleNamespace(udp_timeout=None),
            request=lambda _plan: None,
        )
        return TimedGateway("x", measurer, 1000)


def performed(*gateways: LoggingGateway, logs: bool = True) -> TimedRound:
    def compare(*_request: Any, **_seconds: Any) -> Any:
        for each in gateways:
            each.did.append("round")
            each.dropped += each.dropping or 0
        forwarded = ContestantCounts.model_validate(Engine().counts("a", 1000))
        return SimpleNamespace(contestants=[forwarded] * len(gateways), blocks=(), wall_ns=1)

    recorder: Any = SimpleNamespace(add_round=lambda _round: None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds, "compare", compare)
        patch.setattr(rounds, "Contestant", SimpleNamespace)
        patch.setattr(rounds, "ComparisonRequest", SimpleNamespace)
        return perform(PLAN, 0, [each.timed(logs=logs) for each in gateways], [], recorder)


def test_the_log_is_emptied_before_each_round_after_the_table() -> None:
    """Seen: a log in memory that grew by 200 octets for each connection of all rounds."""
    gateway = LoggingGateway(0)
    for _ in range(2):
        performed(gateway)
    assert gateway.did == ["table emptied", "log emptied", "round"] * 2
    plain = LoggingGateway(0)
    performed(plain, logs=False)
    assert plain.did == ["table emptied", "round"]


def test_a_round_has_the_records_that_each_log_dropped_in_it() -> None:
    found = performed(LoggingGateway(7), LoggingGateway(0), LoggingGateway(None))
    assert found.log_drops == {0: 7, 1: 0, 2: 0}
    assert performed(LoggingGateway(7), logs=False).log_drops == {}


def noted(*logs: dict[int, int]) -> list[Note]:
    seating = Seating([Seat("a", range(1)), Seat("b", range(1))])
    sums = RoundSums(
        VoidRounds("compare", "round", lambda _: "see"),
        seating,
        PairedRatios([seating.plain(), *seating.places], ("up",)),
    )
    for each in logs:
        sums.add(TimedRound((), {}, 0, 0, log_drops=each))
    return disturbance_notes([sums])[0]


def test_dropped_records_of_a_log_in_slices_are_a_doubt_and_a_log_that_dropped_none_is_a_note(golden: Golden) -> None:
    """Seen: a gateway whose log dropped a third of its records was cheaper, and natgauge said nothing of it."""
    some, none = noted({0: 0, 1: 2}, {0: 0, 1: 3}), noted({0: 0, 1: 0})
    assert [(note.word, note.grade, note.count) for note in (*some, *none)] == [
        ("log dropped", "answer", 5), ("method", None, 1)
    ]  # fmt: skip
    assert noted({}) == []
    golden([*some, *none])


# Trials of a gateway whose records come to a collector


class Clock:
    """Time that passes only while a log sleeps, with what comes later."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, Callable[[], None]]] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        come, self._due = (
            [do for at, do in self._due if at <= self.now],
            [one for one in self._due if one[0] > self.now],
        )
        for do in come:
            do()

    def later(self, seconds: float, do: Callable[[], None]) -> None:
        self._due.append((self.now + seconds, do))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    own = Clock()
    monkeypatch.setattr(connection_log, "time", own)
    return own


@dataclass
class LogDevice:
    """Runs snippets in a folder of this machine."""

    folder: Path
    here: bool = True
    ran: list[str] = field(default_factory=list)

    @property
    def machine(self) -> Any:
        return SimpleNamespace(has_tester_files=self.here)

    @property
    def environment(self) -> dict[str, str]:
        return {"NG_WORK": str(self.folder)}

    def run(self, snippet: str, **_others: object) -> CommandResult:
        self.ran.append(snippet)
        made = subprocess.run(
            ["/bin/sh", "-euc", snippet], env={"PATH": "/usr/bin:/bin", **self.environment}, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        return CommandResult(made.returncode, made.stdout, made.stderr, 0.0)


@dataclass
class LoggingEngine(FakeEngine):
    """Writes the list of connections, while the device logs them through `filtered`."""

    log: Path = Path()
    filtered: Callable[[list[str]], list[str]] = list

    def __call__(self, request: TrialRequest, *others: Any) -> TrialResult:
        if request.connections_file is not None:
            entries = [entry(number) for number in range(request.connections)]
            Path(request.connections_file).write_bytes(b"".join(entries))
        lines = self.filtered([record(number) for number in range(request.connections)])
        with self.log.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)
        return super().__call__(request, *others)


#: The way in which devices of Linux print events of connections.
EVENTS = load("nftables-nat44").logging["conntrack-events"]
#: Seconds, in place of whole ones.
QUIET = 0.4


@pytest.fixture
def logging(tmp_path: Path, clock: Clock) -> Callable[..., LabMeasurer]:
    def made(filtered: Callable[[list[str]], list[str]] = list, *, here: bool = True, tolerance: float = 0.0) -> Any:
        (tmp_path / EVENTS.records).write_text("a line of an earlier trial\n")
        engine = LoggingEngine(log=tmp_path / EVENTS.records, filtered=filtered)
        device: Any = LogDevice(tmp_path, here)
        table: Any = FakeTable(engine)
        way = EVENTS.model_copy(update={"quiet_seconds": QUIET})
        log = ConnectionLog(device, "conntrack-events", way, 2.0, tolerance, sleep=clock.sleep)
        traffic = make_plan(TrafficOptions(connections=200), AROUND)
        return LabMeasurer(
            place=FakeLab(), device=table, traffic=traffic, settings=SETTINGS, recorder=Recorder(),
            runner=engine, log=log,
        )  # fmt: skip

    return made


TRIAL = PlanOfTrial(200, 1000.0)


@dataclass
class Unread:
    """A collector whose records nobody can read."""

    error: NatgaugeError

    def empty(self) -> None: ...

    def size(self) -> int:
        return 0

    def text(self) -> str:
        """Refuse, as a collector does that ended or dropped messages."""
        raise self.error

    def confirm_unhindered(self) -> None: ...


OVERRUN = "logging ipfix: natgauge's own socket dropped 7 messages"


def unread(measurer: LabMeasurer, error: NatgaugeError) -> LabMeasurer:
    assert measurer.log is not None
    measurer.log.collector = Unread(error)
    return measurer


def test_a_log_that_is_lost_for_good_ends_the_search_with_its_own_error(logging: Callable[..., LabMeasurer]) -> None:
    measurer = unread(logging(), BrokenError("logging ipfix: natgauge's own collector ended"))
    for _ in range(MOST_SILENT - 1):
        assert measurer.measure(TRIAL).limited_by == "host"
    with pytest.raises(BrokenError, match=r"^in 5 trials in a row the log was not compared; the last one: logging "):
        measurer.measure(TRIAL)


def test_a_rate_that_natgauges_own_collector_cannot_follow_is_too_fast_for_the_tester(
    logging: Callable[..., LabMeasurer],
) -> None:
    """Five such trials ended a search with the advice to look at the gateway's controls."""
    measurer = unread(logging(), OverrunError(OVERRUN))
    for _ in range(MOST_SILENT + 1):
        trial = measurer.measure(TRIAL)
        assert (trial.verdict, trial.limited_by, trial.reason) == (Verdict.INVALID, "tester", OVERRUN)
        assert trial.readings.device_error == ""


class Hindered(LogFile):
    """A log whose writer had to wait for natgauge."""

    def confirm_unhindered(self) -> None:
        """Refuse, as a collector does whose socket was full."""
        raise OverrunError(OVERRUN)


def test_records_that_are_missing_where_the_writer_waited_for_natgauge_are_no_verdict_on_the_device(
    logging: Callable[..., LabMeasurer],
) -> None:
    """Seen: FAIL, limited by the log, for what natgauge's own thread was too slow to take."""

    def hindered(measurer: LabMeasurer) -> LabMeasurer:
        assert measurer.log is not None
        measurer.log.collector = Hindered(measurer.log.device, "nfct-syslog", EVENTS.records)
        return measurer

    trial = hindered(logging(lambda lines: lines[1:])).measure(TRIAL)
    assert (trial.verdict, trial.limited_by, trial.reason) == (Verdict.INVALID, "tester", OVERRUN)
    assert hindered(logging()).measure(TRIAL).verdict is Verdict.PASS
    assert hindered(logging(lambda lines: lines[1:], tolerance=0.01)).measure(TRIAL).verdict is Verdict.PASS


def test_a_log_that_was_not_compared_leaves_all_periods(logging: Callable[..., LabMeasurer]) -> None:
    """Hours of periods ended without a result, because the log was read after the last of them."""
    plan = PlanOfTrial(200, 1000.0, Phase2Plan(100.0, 100.0, 0.1, periods=3))
    periods = unread(logging(), OverrunError(OVERRUN)).periods(plan, lambda _: True)
    assert [period.outcome.verdict for period in periods] == [Verdict.PASS, Verdict.PASS, Verdict.INVALID]
    assert periods[-1].outcome.reason == OVERRUN


def test_trials_of_more_connections_than_are_compared_are_refused(
    logging: Callable[..., LabMeasurer], golden: Golden
) -> None:
    measurer = logging()
    with pytest.raises(UsageError) as refused:
        measurer.measure(PlanOfTrial(5_000_000, 1e6))
    assert refused.value.at == "connections"
    golden(str(refused.value))


def verdict(log: LogCounts, tolerance: float = 0.0, **others: Any) -> OneTrial:
    return judge(change_trial(CLEAN, log=log, placement="shared", **others), Limits(log_tolerance=tolerance))


def test_lost_frames_fail_a_trial_whose_log_was_not_compared() -> None:
    dropped = LogError("dropped", "tester")
    outcome = judge(change_trial(CLEAN, log_error=dropped, placement="shared", phase1=lossy(10)), Limits())
    assert (outcome.verdict, outcome.limited_by) == (Verdict.FAIL, "device")


LACKING = LogCounts(connections=100_000, records=99_000, octets=12_000_000, lost=1000)


def figures_of(trials: Mapping[float, LogCounts]) -> Mapping[str, float]:
    """Figures of a search that ended at 500, of the logs of its trials by their loads."""
    attempts = tuple(Attempt(load, short=False, outcome=verdict(log, 0.001)) for load, log in trials.items())
    repetition = Measurement(value=500.0, upper=800.0, limited_by="log", trials={}, attempts=attempts)
    return with_device_figures(repetition).figures


def test_a_lucky_trial_above_the_answer_decides_no_figure() -> None:
    answer, lucky = (replace(LACKING, records=100_000, lost=0, wrong=wrong) for wrong in (3, 0))
    assert figures_of({500.0: answer, 800.0: LACKING, 900.0: lucky})["log_wrong"] == 3


@pytest.mark.parametrize(("placement", "cpus"), [("shared", "0,1,2,3"), ("isolated", None)])
def test_what_writes_a_log_keeps_off_the_core_of_a_sender_where_the_device_has_that(
    placement: str, cpus: str | None
) -> None:
    played: list[Any] = []

    def play(recipe: Any, *_: object) -> Any:
        played.append(recipe)

    choices = {"logging": "conntrack-events", "placement": placement, "connections": 1000}
    with as_if(4):
        setup = Setup(ask("connection-rate", "nftables-nat44", choices).cell, play=play)
        setup._gateways()
    assert [recipe.environment.get("NG_LOG_CPUS") for recipe in played] == [cpus]
    assert setup.lab.placement == placement
