# SPDX-License-Identifier: Apache-2.0
"""Logs of gateways, joined with the connections of a trial: records of connections, bindings and blocks of ports."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulated_lab import NAT44, simulated
from tests.unit.counted import change_counts, change_trial, make_cpu, make_stall
from tests.unit.listed import recipe
from tests.unit.made_logs import START, entry, record
from tests.unit.simulated import Gateway

import natgauge
from natgauge.errors import NatgaugeError

#: What conntrack 1.4.7 prints with -E -e NEW -o timestamp.
TCP = (
    "[1764179000.000250]\t    [NEW] tcp      6 120 SYN_SENT src=10.0.0.2 dst=198.19.0.2 sport=1024 dport=1 [UNREPLIED] "
    "src=198.19.0.2 dst=198.19.0.1 sport=1 dport=1024"
)
ICMP = (
    "[1764179000.000250]\t    [NEW] icmp     1 30 src=10.0.0.2 dst=198.19.0.2 type=8 code=0 id=1024 [UNREPLIED] "
    "src=198.19.0.2 dst=198.19.0.1 type=0 code=0 id=1024"
)


def way(gateway: str, name: str) -> Any:
    """A way of logging of a recipe of natgauge."""
    return recipe(gateway)["logging"][name]


EVENTS = way("nftables-nat44", "conntrack-events")["record"]


def joined(
    entries: Sequence[bytes],
    lines: Sequence[str],
    *,
    pattern: str = EVENTS,
    ignore: str | None = None,
    proof: tuple[Sequence[bytes], Sequence[str]] = ((entry(0),), (record(0),)),
    timed: bool = True,
    all_learned: bool = True,
    stalls: Sequence[tuple[float, float]] = (),
    **choices: Any,
) -> Any:
    """The counts of a trial with these connections and this log, and its verdict.

    Args:
        proof: connections and log of the frames before, which prove that the gateway logs.
        stalls: of a core, in seconds of phase 1.
    """
    log, is_proof = {"records": "connections.log", "record": pattern, "start": "true"}, iter([True])
    if ignore is not None:
        log["ignore"] = ignore

    def of_trial(number: int) -> Sequence[bytes]:
        return proof[0] if number == 8 and next(is_proof, False) else entries

    def lost_one(_number: int, trial: Any) -> Any:
        counts = trial.phase1
        return change_trial(trial, phase1=change_counts(counts, received_frames=counts.received_frames - 1))

    worst = [make_stall("phase1", end).model_copy(update={"from_ns": round(begin * 1e9)}) for begin, end in stalls]
    core = make_cpu("sender", len(stalls), 0.01).model_copy(update={"longest_stalls": worst})
    begun = iter([proof[1]])
    truth = Gateway(
        placement="shared", lists=of_trial, logs=lambda *_: next(begun, lines), cpus=(core,) if stalls else (),
        alters=None if all_learned else lost_one,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as name, simulated() as simulation:
        folder = Path(name)
        table = "\n".join(f"{key} = {json.dumps(value)}" for key, value in log.items())
        text = NAT44.read_text().replace('["udp", "tcp"]', '["udp", "icmp", "tcp"]')
        (folder / NAT44.name).write_text(f"{text}\n[logging.mine]\n{table}\n")
        simulation.start, simulation.log = lambda _lab: truth, folder / "connections.log" if timed else None
        asked = {"connections": max(len(entries), 9), "grace_seconds": 2.0, "connection_rate": 1e4, **choices}
        with suppress(NatgaugeError):
            natgauge.measure(
                "latency", folder / NAT44.name, lab="simulated", logging="mine", placement="shared", results=folder,
                way="rfc8219", loads="100%", throughput_rate=1e4, trial_seconds=120.0, repeat=1, **asked,
            )  # fmt: skip
        (results,) = folder.glob("*/trials.jsonl")
        trial = json.loads(results.read_text().splitlines()[-1])
    return SimpleNamespace(**trial["log"], verdict=trial["verdict"])


def faulty(counts: Any) -> int:
    """Connections without a record, and records that lead to another one than they should."""
    return int(counts.lost + counts.wrong)


def odd(counts: Any) -> int:
    """Number of faults and oddities of a log."""
    return sum(getattr(counts, name) for name in ("lost", "wrong", "duplicate", "late", "unparsed", "ambiguous"))


N = 200
ALL = [entry(number) for number in range(N)]
WHOLE = [record(number) for number in range(N)]


# The join


def test_a_complete_log_has_a_record_of_each_connection_and_its_delay() -> None:
    counts = joined(ALL, WHOLE)
    assert (counts.connections, counts.records, faulty(counts), bool(odd(counts))) == (N, N, 0, False)
    assert counts.octets == sum(len(line) + 1 for line in WHOLE)
    assert counts.delay_p50_ms == pytest.approx(0.25, abs=1e-3)
    assert counts.delay_p999_ms == pytest.approx(0.25, abs=1e-3)
    assert counts.verdict == "PASS"


def test_a_filter_that_drops_each_hundredth_record_loses_one_percent() -> None:
    kept = [line for number, line in enumerate(WHOLE, 1) if number % 100]
    counts = joined(ALL, kept)
    assert (counts.lost, counts.wrong, counts.connections) == (2, 0, N)
    assert [joined(ALL, kept, log_tolerance=share).verdict for share in ("0.99%", "1%")] == ["FAIL", "PASS"]


def test_two_swapped_ports_are_two_wrong_records_and_no_lost_connection() -> None:
    swapped = [record(3, seen=1024 + 4), record(4, seen=1024 + 3)]
    counts = joined(ALL, [*WHOLE[:3], *swapped, *WHOLE[5:]])
    assert (counts.wrong, counts.lost, counts.duplicate) == (2, 0, 0)


@pytest.mark.parametrize(
    "line",
    [record(7, inside="10.0.0.3"), record(7, port=60000), record(7, remote=2), record(7, at=START - 30.0)],
    ids=["another host", "another port", "another remote port", "of an earlier trial"],
)
def test_a_record_of_a_connection_that_there_was_not_is_wrong_and_stands_for_none(line: str) -> None:
    counts = joined(ALL, [*WHOLE[:7], line, *WHOLE[8:]])
    assert (counts.wrong, counts.lost) == (1, 1)


def test_further_records_are_duplicates_late_ones_are_late_and_neither_is_lost() -> None:
    known, whole = [entry(number) for number in range(1000)], [record(number) for number in range(1000)]
    late = record(5, at=START + 0.005 + 2.5)
    counts = joined(known, [*whole[:5], late, *whole[6:], whole[0], whole[0]])
    assert (counts.duplicate, counts.late, faulty(counts)) == (2, 1, 0)
    assert counts.delay_p999_ms == pytest.approx(0.25, abs=1e-3)


@pytest.mark.parametrize(
    "line", ["", "[NEW] udp", "\x00\x00", record(1, inside="10.0.0.999"), record(1, port=70000), "ü" * 300]
)
def test_lines_that_are_no_records_are_counted_and_shown_in_part(line: str) -> None:
    counts = joined(ALL, [*WHOLE, line])
    assert (counts.unparsed, counts.records, faulty(counts)) == (1, N, 0)
    assert line.startswith(counts.unparsed_line)
    assert len(counts.unparsed_line) <= 100


def test_lines_that_a_way_ignores_are_neither_records_nor_unreadable_and_records_are_never_ignored() -> None:
    ends = [line.replace("src=", "was=").replace("NEW", "DESTROY") for line in WHOLE[:3]]
    counts = joined(ALL, [*WHOLE, *ends, "?"], ignore="DESTROY|NEW")
    assert (counts.records, counts.unparsed, counts.unparsed_line, faulty(counts)) == (N, 1, "?", 0)
    assert joined(ALL, [*WHOLE, *ends]).unparsed == 3


def test_connections_that_the_responder_did_not_learn_may_be_logged_and_need_not() -> None:
    entries = [entry(0), entry(1, known=0), entry(2, known=0)]
    counts = joined(entries, [record(0), record(1)])
    assert (counts.connections, counts.lost, counts.wrong) == (1, 0, 0)


def test_connections_whose_entry_another_one_took_must_be_logged_where_all_openings_arrived() -> None:
    entries = [entry(0, known=2), entry(1, known=2, seen=9)]
    assert joined(entries, [record(0, seen=5)]).lost == 1
    assert joined(entries, [record(0, seen=5)], all_learned=False).lost == 0


def test_four_tuples_that_were_drawn_twice_are_one_connection() -> None:
    counts = joined([entry(0), entry(1), entry(0, known=0)], [record(0), record(1)])
    assert (counts.connections, counts.duplicate, faulty(counts)) == (2, 0, 0)


def test_an_outside_port_that_two_subscribers_had_within_a_second_cannot_be_read_back() -> None:
    def shared(seconds: float, second: str) -> int:
        entries = [entry(0, known=2), entry(0, known=2, source=second, port=4000)]
        lines = [record(0, seen=5), record(0, inside=second, port=4000, seen=5, at=START + seconds)]
        return int(joined(entries, lines).ambiguous)

    assert (shared(0.9, "10.0.0.3"), shared(1.1, "10.0.0.3"), shared(0.5, "10.0.0.2")) == (1, 0, 0)


def test_lost_records_of_connections_that_were_due_in_stalls_are_excused() -> None:
    kept = [line for number, line in enumerate(WHOLE) if number not in {10, 11, 150}]
    # Each excuses what was due from a ms before it until its length after it.
    stalls = [(0.010, 0.011), (0.160, 0.170)]
    assert (joined(ALL, kept).excused, joined(ALL, kept, stalls=stalls).excused) == (0, 2)


def test_records_of_tcp_and_icmp_are_read() -> None:
    assert not odd(joined([entry(0)], [TCP]))
    # The sequence number of an echo request is in no record.
    assert not odd(joined([entry(0, remote=77)], [ICMP], transport="icmp"))


def test_without_comparable_clocks_there_are_no_delays() -> None:
    counts = joined(ALL, WHOLE, timed=False)
    assert (counts.delay_p50_ms, counts.late, faulty(counts)) == (None, 0, 0)


def test_times_of_whole_seconds_show_no_delay_and_a_record_that_is_late_all_the_same() -> None:
    cut = [record(number, at=float(int(START + number / 1000 + 0.01))) for number in range(N - 1)]
    counts = joined(ALL, [*cut, record(N - 1, at=START + 9.0)])
    assert (counts.delay_p50_ms, counts.delay_p999_ms) == (None, None)
    assert (counts.late, faulty(counts)) == (1, 0)


def test_an_ipv4_address_as_ipv6_sockets_write_it_is_that_address() -> None:
    assert not odd(joined([entry(0)], [record(0, inside="::ffff:10.0.0.2", outside="::ffff:198.19.0.1")]))


def test_records_without_outside_tuples_are_joined_by_the_inside() -> None:
    line = (
        "raw.pktlen=46,oob.time.sec=1764179000,oob.time.usec=250,oob.hook=2,ip.saddr=10.0.0.2,ip.daddr=198.19.0.2,"
        "ip.protocol=17,udp.sport=1024,udp.dport=1,udp.len=26,"
    )
    known, pattern = [entry(0, seen=4)], way("nftables-nat44", "nflog-ulogd")["record"]
    counts = joined(known, [line], pattern=pattern, proof=(known, [line]))
    assert (counts.records, bool(odd(counts)), counts.outside_named) == (1, False, False)
    # The time is that of the packet.
    assert counts.delay_p50_ms is None


@given(lost=st.sets(st.integers(0, 199)), doubled=st.lists(st.integers(0, 199), max_size=20), rubbish=st.integers(0, 5))
@settings(max_examples=8, deadline=None)
def test_whatever_the_order_each_line_is_counted_once(lost: set[int], doubled: list[int], rubbish: int) -> None:
    lines = [record(number) for number in range(199, -1, -1) if number not in lost]
    lines += [record(number) for number in doubled if number not in lost]
    counts = joined(ALL, [*lines, *["?"] * rubbish])
    assert (counts.lost, counts.wrong, counts.unparsed) == (len(lost), 0, rubbish)
    assert counts.records == len(lines) == counts.connections - counts.lost + counts.duplicate


def test_a_message_of_vpp_names_both_tuples_and_one_of_an_end_is_no_record() -> None:
    # What VPP 26.10-rc0 sends.
    message = (
        '1764179000.250000 <134>1 2025-11-26T17:43:20.249991Z 192.0.2.2 NAT 4242 SADD [nsess SSUBIX="0" SVLAN="0" '
        'IATYP="IPv4" ISADDR="10.0.0.2" ISPORT="1024" XATYP="IPv4" XSADDR="198.19.0.1" XSPORT="1025" PROTO="17" '
        'XDADDR="198.19.0.2" XDPORT="1"]'
    )
    syslog = way("vpp-nat44-ed", "syslog")
    found = re.search(syslog["record"], message)
    assert found is not None
    assert found.groupdict() == {
        "time": "1764179000.250000", "source": "10.0.0.2", "source_port": "1024", "outside": "198.19.0.1",
        "outside_port": "1025", "destination": "198.19.0.2", "destination_port": "1",
    }  # fmt: skip
    ended = message.replace("SADD", "SDEL")
    known = [entry(0, seen=1025)]
    form = {"pattern": syslog["record"], "ignore": syslog["ignore"], "proof": (known, [message])}
    counts = joined(known, [message, ended], timed=False, **form)
    octets = len(f"{message}\n{ended}\n")
    assert (counts.records, counts.unparsed, counts.octets, odd(counts)) == (1, 0, octets, 0)


#: What the kernel's log has of Jool 4.1.9 at Linux 6.1, by way and transport; and what others write there.
JOOL = {
    ("session", "udp"): "6,402,41151198,-;Jool: default 2026/11/28 0:12:33 (GMT) - Added session "
    "2001:2::2#22057|2001:2:0:1::c613:2#1|198.19.0.1#23789|198.19.0.2#1|UDP",
    ("session", "icmp"): "6,404,52786554,-;Jool: default 2026/11/28 0:17:50 (GMT) - Added session "
    "2001:2::2#22057|2001:2:0:1::c613:2#22057|198.19.0.1#23789|198.19.0.2#23789|ICMP",
    ("bib", "udp"): "6,405,52500620,-;Jool: default 2026/11/28 0:16:19 (GMT) - Mapped 2001:2::2#22057 to "
    "198.19.0.1#23789 (UDP)",
}  # fmt: skip
OTHERS = (
    "4,10402,70916771,-;hrtimer: interrupt took 37217572 ns",
    "6,390,12320034,-;Jool: Replaced instance 'default'.",
    " SUBSYSTEM=pci",
)


@pytest.mark.parametrize(("name", "transport"), JOOL)
def test_the_kernels_log_has_jools_sessions_and_no_line_of_another_kind_is_a_record(name: str, transport: str) -> None:
    of_jool, line = way("jool-nat64", name), JOOL[name, transport]
    opened = entry(0, source="2001:2::2", port=22057, destination="2001:2:0:1::c613:2", seen=23789)
    ended = re.sub("Added session|Mapped", "Forgot session" if name == "session" else "Forgot", line)

    def counted(*lines: str) -> Any:
        form = {"pattern": of_jool["record"], "ignore": of_jool["ignore"], "proof": ([opened], [line])}
        return joined([opened], lines, timed=False, transport=transport, **form)

    counts = counted(*OTHERS, line, ended)
    assert (counts.records, counts.unparsed, counts.outside_named, bool(odd(counts))) == (1, 0, True, False)
    assert counted(ended, *OTHERS).lost == 1
    assert counted(line.replace("#23789", "#23790")).wrong == 1
    half = counted(line[:90])
    assert (half.unparsed, half.lost) == (1, 1)


BLOCKS = way("cgn-port-blocks", "given-blocks")["record"]
#: What ulogd 2.0.8 prints of a packet with a prefix (GPRINT).
LINE = (
    "raw.pktlen=46,raw.pktcount=1,oob.prefix={outside}:{first}-{last},oob.mark=3,oob.hook=2,oob.family=2,"
    "ip.saddr={inside},ip.daddr=198.19.0.2,ip.protocol=17,udp.sport=1024,udp.dport=1,udp.len=26,"
)
#: With times, and of single ports.
BLOCK_PATTERN = (
    r"^(?P<time>\S+) (?P<source>\S+?)(?::(?P<source_port>\d+))? (?P<outside>\S+?)"
    r"(?::(?P<outside_port>\d+))?(?: (?P<first_port>\d+)-(?P<last_port>\d+))?$"
)
#: Two subscribers with 100 connections each, whose outside ports are of one block each.
HOSTS = ("10.0.0.2", "10.0.0.3")
KNOWN = [
    entry(number, source=HOSTS[number % 2], port=5000 + number, seen=(1024, 1152)[number % 2] + number // 2)
    for number in range(200)
]


def joined_blocks(entries: Sequence[bytes], lines: Sequence[str], pattern: str = BLOCK_PATTERN) -> Any:
    proof = lines if pattern != BLOCK_PATTERN else WHOLE_BLOCKS
    return joined(entries, lines, pattern=pattern, proof=(KNOWN, proof))


def given_block(host: int, first: int, *, at: float = 0.0, outside: str = "198.19.0.1") -> str:
    return f"{START + at:.6f} {HOSTS[host]} {outside} {first}-{first + 127}"


WHOLE_BLOCKS = [given_block(0, 1024, at=0.0005), given_block(1, 1152, at=0.0015)]


def test_a_record_of_each_block_is_a_complete_log_with_fewer_records_than_connections() -> None:
    lines = [LINE.format(outside="198.19.0.1", inside=host, first=1024 + 128 * n, last=1151 + 128 * n)
             for n, host in enumerate(HOSTS)]  # fmt: skip
    counts = joined_blocks(KNOWN, lines, BLOCKS)
    assert (counts.connections, counts.records, bool(odd(counts)), counts.outside_named) == (200, 2, False, True)
    # The time is that of the packet.
    assert counts.delay_p50_ms is None


def test_the_delay_of_a_block_begins_with_its_first_connection() -> None:
    counts = joined_blocks(KNOWN, WHOLE_BLOCKS)
    assert not bool(odd(counts))
    assert counts.delay_p50_ms == pytest.approx(0.5, abs=1e-3)
    assert joined_blocks(KNOWN, [WHOLE_BLOCKS[0], given_block(1, 1152, at=2.5)]).late == 1


def test_connections_outside_of_logged_blocks_are_lost() -> None:
    second_block = [entry(200, source=HOSTS[0], port=9000, seen=4000)]
    counts = joined_blocks([*KNOWN, *second_block], WHOLE_BLOCKS)
    assert (counts.lost, counts.wrong) == (1, 0)
    assert joined_blocks(KNOWN, WHOLE_BLOCKS[:1]).lost == 100
    assert not odd(joined_blocks([*KNOWN, *second_block], [*WHOLE_BLOCKS, given_block(0, 3968)]))


@pytest.mark.parametrize(
    "wrong",
    [given_block(1, 1280), given_block(1, 1152, outside="198.19.0.9"), given_block(1, 1152, at=-30.0)],
    ids=["other ports", "another address", "of an earlier trial"],
)
def test_a_block_that_leads_to_nobody_is_wrong_and_its_connections_are_lost(wrong: str) -> None:
    counts = joined_blocks(KNOWN, [WHOLE_BLOCKS[0], wrong])
    assert (counts.wrong, counts.lost, counts.duplicate) == (1, 100, 0)


def test_a_block_that_is_recorded_twice_is_a_duplicate() -> None:
    counts = joined_blocks(KNOWN, [*WHOLE_BLOCKS, WHOLE_BLOCKS[0]])
    assert (counts.duplicate, faulty(counts), counts.ambiguous) == (1, 0, 0)


def test_ports_that_two_subscribers_have_by_the_log_cannot_be_read_back() -> None:
    # The second subscriber's record reaches into the first one's block.
    counts = joined_blocks(KNOWN, [WHOLE_BLOCKS[0], f"{START:.6f} {HOSTS[1]} 198.19.0.1 1100-1300"])
    assert (counts.ambiguous, counts.lost) == (1, 0)
    # Blocks between which the first one was given up.
    late = [entry(5000, source=HOSTS[1], port=7, seen=1024)]
    assert joined_blocks([*KNOWN[::2], *late], [WHOLE_BLOCKS[0], given_block(1, 1024, at=5.0)]).ambiguous == 0


def test_a_block_is_compared_with_each_one_that_was_given_within_a_second() -> None:
    # The same ports, given to three subscribers: to the second and the third within a second.
    known = [entry(n, source=host, port=7, seen=1024) for n, host in ((0, HOSTS[0]), (5000, HOSTS[1]))]
    lines = [f"{START + at:.6f} {host} 198.19.0.1 1024-1151" for at, host in ((0, HOSTS[0]), (5, HOSTS[1]))]
    third = f"{START + 5.5:.6f} 10.0.0.9 198.19.0.1 1024-1151"
    assert joined_blocks(known, lines).ambiguous == 0
    assert joined_blocks(known, [*lines, third]).ambiguous == 1


def test_a_binding_covers_the_connections_of_one_inside_port() -> None:
    known = [entry(n, port=5000 + n % 2, seen=(7000, 7001)[n % 2], remote=1 + n // 2) for n in range(10)]
    bindings = [f"{START} 10.0.0.2:{5000 + n} 198.19.0.1:{7000 + n}" for n in range(2)]
    assert not odd(joined_blocks(known, bindings))
    counts = joined_blocks(known, [bindings[0], f"{START} 10.0.0.2:5001 198.19.0.1:7009"])
    assert (counts.wrong, counts.lost) == (1, 5)


@pytest.mark.parametrize(
    "line", [f"{START} 10.0.0.2 198.19.0.1", given_block(0, 65500), f"{START} 10.0.0.2 198.19.0.1 9-1"]
)
def test_blocks_without_ports_are_unreadable(line: str) -> None:
    counts = joined_blocks(KNOWN, [*WHOLE_BLOCKS, line])
    assert (counts.unparsed, counts.records, faulty(counts)) == (1, 2, 0)


def test_many_bindings_of_one_subscriber_are_joined_in_a_moment() -> None:
    # Each binding looks at the connections of its inside port only.
    known: list[Any] = [entry(number, port=number, seen=number, remote=1) for number in range(15_000)]
    assert joined_blocks(known, [f"{START + 60} 10.0.0.2:{n} 198.19.0.1:{n}" for n in range(15_000)]).lost == 0
