# SPDX-License-Identifier: Apache-2.0
"""Logs of gateways, joined with the connections of a trial: records of connections, bindings and blocks of ports."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.made_logs import START, entry, record

from natgauge.gateways.ipfix_lines import RECORD
from natgauge.gateways.recipe import load
from natgauge.log_counts import LogCounts
from natgauge.trial.log_join import join, listed

#: What conntrack 1.4.7 prints with -E -e NEW -o timestamp.
TCP = (
    "[1764179000.000250]\t    [NEW] tcp      6 120 SYN_SENT src=10.0.0.2 dst=198.19.0.2 sport=1024 dport=1 [UNREPLIED] "
    "src=198.19.0.2 dst=198.19.0.1 sport=1 dport=1024"
)
ICMP = (
    "[1764179000.000250]\t    [NEW] icmp     1 30 src=10.0.0.2 dst=198.19.0.2 type=8 code=0 id=1024 [UNREPLIED] "
    "src=198.19.0.2 dst=198.19.0.1 type=0 code=0 id=1024"
)
EVENTS = load("nftables-nat44").logging["conntrack-events"]
PATTERN = EVENTS.pattern


def joined(entries: Sequence[bytes], lines: Sequence[str], *, all_learned: bool = True, **others: Any) -> LogCounts:
    has_ports = others.get("has_ports", True)
    known = listed(b"".join(entries), all_learned=all_learned, has_ports=has_ports)
    return join(known, "".join(f"{line}\n" for line in lines), PATTERN, **{"grace": 2.0, **others})


ALL = [entry(number) for number in range(1000)]
WHOLE = [record(number) for number in range(1000)]


# The join


def test_a_complete_log_has_a_record_of_each_connection_and_its_delay() -> None:
    counts = joined(ALL, WHOLE)
    assert (counts.connections, counts.records, counts.faulty, counts.is_odd) == (1000, 1000, 0, False)
    assert counts.octets == sum(len(line) + 1 for line in WHOLE)
    assert counts.delay_p50_ms == pytest.approx(0.25, abs=1e-3)
    assert counts.delay_p999_ms == pytest.approx(0.25, abs=1e-3)
    assert not counts.exceeds(0)


def test_a_filter_that_drops_each_hundredth_record_loses_one_percent() -> None:
    kept = [line for number, line in enumerate(WHOLE, 1) if number % 100]
    counts = joined(ALL, kept)
    assert (counts.lost, counts.wrong, counts.connections) == (10, 0, 1000)
    assert counts.exceeds(0.0099)
    assert not counts.exceeds(0.01)


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
    late = record(5, at=START + 0.005 + 2.5)
    counts = joined(ALL, [*WHOLE[:5], late, *WHOLE[6:], WHOLE[0], WHOLE[0]])
    assert (counts.duplicate, counts.late, counts.faulty) == (2, 1, 0)
    assert counts.delay_p999_ms == pytest.approx(0.25, abs=1e-3)


@pytest.mark.parametrize(
    "line", ["", "[NEW] udp", "\x00\x00", record(1, inside="10.0.0.999"), record(1, port=70000), "ü" * 300]
)
def test_lines_that_are_no_records_are_counted_and_shown_in_part(line: str) -> None:
    counts = joined(ALL, [*WHOLE, line])
    assert (counts.unparsed, counts.records, counts.faulty) == (1, 1000, 0)
    assert line.startswith(counts.unparsed_line)
    assert len(counts.unparsed_line) <= 100


def test_lines_that_a_way_ignores_are_neither_records_nor_unreadable_and_records_are_never_ignored() -> None:
    ignored = re.compile(r"DESTROY|NEW")
    ends = [line.replace("src=", "was=").replace("NEW", "DESTROY") for line in WHOLE[:3]]
    counts = joined(ALL, [*WHOLE, *ends, "?"], ignored=ignored)
    assert (counts.records, counts.unparsed, counts.unparsed_line, counts.faulty) == (1000, 1, "?", 0)
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
    assert (counts.connections, counts.duplicate, counts.faulty) == (2, 0, 0)


def test_an_outside_port_that_two_subscribers_had_within_a_second_cannot_be_read_back() -> None:
    def shared(seconds: float, second: str) -> int:
        entries = [entry(0, known=2), entry(0, known=2, source=second, port=4000)]
        lines = [record(0, seen=5), record(0, inside=second, port=4000, seen=5, at=START + seconds)]
        return joined(entries, lines).ambiguous

    assert (shared(0.9, "10.0.0.3"), shared(1.1, "10.0.0.3"), shared(0.5, "10.0.0.2")) == (1, 0, 0)


def test_lost_records_of_connections_that_were_due_in_stalls_are_excused() -> None:
    kept = [line for number, line in enumerate(WHOLE) if number not in {10, 11, 500}]
    stalls = [(START + 0.009, START + 0.012), (START + 0.600, START + 0.700)]
    assert (joined(ALL, kept).excused, joined(ALL, kept, stalls=stalls).excused) == (0, 2)


def test_records_of_tcp_and_icmp_are_read() -> None:
    assert joined([entry(0)], [TCP]).is_odd is False
    # The sequence number of an echo request is in no record.
    assert joined([entry(0, remote=77)], [ICMP], has_ports=False).is_odd is False


def test_without_comparable_clocks_there_are_no_delays() -> None:
    counts = joined(ALL, WHOLE, timed=False)
    assert (counts.delay_p50_ms, counts.late, counts.faulty) == (None, 0, 0)


def test_times_of_whole_seconds_show_no_delay_and_a_record_that_is_late_all_the_same() -> None:
    cut = [record(number, at=float(int(START + number / 1000 + 0.01))) for number in range(999)]
    counts = joined(ALL, [*cut, record(999, at=START + 9.0)])
    assert (counts.delay_p50_ms, counts.delay_p999_ms) == (None, None)
    assert (counts.late, counts.faulty) == (1, 0)


def test_an_ipv4_address_as_ipv6_sockets_write_it_is_that_address() -> None:
    assert joined([entry(0)], [record(0, inside="::ffff:10.0.0.2", outside="::ffff:198.19.0.1")]).is_odd is False


def test_records_without_outside_tuples_are_joined_by_the_inside() -> None:
    pattern = load("nftables-nat44").logging["nflog-ulogd"].pattern
    line = (
        "raw.pktlen=46,oob.time.sec=1764179000,oob.time.usec=250,oob.hook=2,ip.saddr=10.0.0.2,ip.daddr=198.19.0.2,"
        "ip.protocol=17,udp.sport=1024,udp.dport=1,udp.len=26,"
    )
    counts = join(listed(entry(0, seen=4), all_learned=True), f"{line}\n", pattern, grace=2.0)
    assert (counts.records, counts.is_odd, counts.outside_named) == (1, False, False)
    # The time is that of the packet.
    assert counts.delay_p50_ms is None


@given(lost=st.sets(st.integers(0, 199)), doubled=st.lists(st.integers(0, 199), max_size=20), rubbish=st.integers(0, 5))
def test_whatever_the_order_each_line_is_counted_once(lost: set[int], doubled: list[int], rubbish: int) -> None:
    lines = [record(number) for number in range(199, -1, -1) if number not in lost]
    lines += [record(number) for number in doubled if number not in lost]
    counts = joined(ALL[:200], [*lines, *["?"] * rubbish])
    assert (counts.lost, counts.wrong, counts.unparsed) == (len(lost), 0, rubbish)
    assert counts.records == len(lines) == counts.connections - counts.lost + counts.duplicate


def test_a_message_of_vpp_names_both_tuples_and_one_of_an_end_is_no_record() -> None:
    # What VPP 26.10-rc0 sends.
    message = (
        '1764179000.250000 <134>1 2025-11-26T17:43:20.249991Z 192.0.2.2 NAT 4242 SADD [nsess SSUBIX="0" SVLAN="0" '
        'IATYP="IPv4" ISADDR="10.0.0.2" ISPORT="1024" XATYP="IPv4" XSADDR="198.19.0.1" XSPORT="1025" PROTO="17" '
        'XDADDR="198.19.0.2" XDPORT="1"]'
    )
    way = load("vpp-nat44-ed").logging["syslog"]
    found = way.pattern.search(message)
    assert found is not None
    assert found.groupdict() == {
        "time": "1764179000.250000", "source": "10.0.0.2", "source_port": "1024", "outside": "198.19.0.1",
        "outside_port": "1025", "destination": "198.19.0.2", "destination_port": "1",
    }  # fmt: skip
    ended = message.replace("SADD", "SDEL")
    log = f"{message}\n{ended}\n"
    counts = join(
        listed(entry(0, seen=1025), all_learned=True), log, way.pattern, grace=2.0, timed=False, ignored=way.ignored
    )
    assert (counts.records, counts.unparsed, counts.octets, counts.is_odd) == (1, 0, len(log), False)


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
    way, line = load("jool-nat64").logging[name], JOOL[name, transport]
    is_udp = transport == "udp"
    opened = entry(0, source="2001:2::2", port=22057, destination="2001:2:0:1::c613:2", seen=23789)
    ended = re.sub("Added session|Mapped", "Forgot session" if name == "session" else "Forgot", line)

    def counted(*lines: str) -> LogCounts:
        known = listed(opened, all_learned=True, has_ports=is_udp)
        text = "".join(f"{each}\n" for each in lines)
        return join(known, text, way.pattern, grace=2.0, has_ports=is_udp, timed=False, ignored=way.ignored)

    counts = counted(*OTHERS, line, ended)
    assert (counts.records, counts.unparsed, counts.outside_named, counts.is_odd) == (1, 0, True, False)
    assert counted(ended, *OTHERS).lost == 1
    assert counted(line.replace("#23789", "#23790")).wrong == 1
    half = counted(line[:90])
    assert (half.unparsed, half.lost) == (1, 1)


BLOCKS = load("cgn-port-blocks").logging["given-blocks"].pattern
#: What ulogd 2.0.8 prints of a packet with a prefix (GPRINT).
LINE = (
    "raw.pktlen=46,raw.pktcount=1,oob.prefix={outside}:{first}-{last},oob.mark=3,oob.hook=2,oob.family=2,"
    "ip.saddr={inside},ip.daddr=198.19.0.2,ip.protocol=17,udp.sport=1024,udp.dport=1,udp.len=26,"
)
#: With times, and of single ports.
BLOCK_PATTERN = re.compile(
    r"^(?P<time>\S+) (?P<source>\S+?)(?::(?P<source_port>\d+))? (?P<outside>\S+?)"
    r"(?::(?P<outside_port>\d+))?(?: (?P<first_port>\d+)-(?P<last_port>\d+))?$"
)
#: Two subscribers with 100 connections each, whose outside ports are of one block each.
HOSTS = ("10.0.0.2", "10.0.0.3")
KNOWN = [
    entry(number, source=HOSTS[number % 2], port=5000 + number, seen=(1024, 1152)[number % 2] + number // 2)
    for number in range(200)
]


def joined_blocks(
    entries: Sequence[bytes], lines: Sequence[str], pattern: re.Pattern[str] = BLOCK_PATTERN
) -> LogCounts:
    text = "".join(f"{line}\n" for line in lines)
    return join(listed(b"".join(entries), all_learned=True), text, pattern, grace=2.0)


def given_block(host: int, first: int, *, at: float = 0.0, outside: str = "198.19.0.1") -> str:
    return f"{START + at:.6f} {HOSTS[host]} {outside} {first}-{first + 127}"


WHOLE_BLOCKS = [given_block(0, 1024, at=0.0005), given_block(1, 1152, at=0.0015)]


def test_a_record_of_each_block_is_a_complete_log_with_fewer_records_than_connections() -> None:
    lines = [LINE.format(outside="198.19.0.1", inside=host, first=1024 + 128 * n, last=1151 + 128 * n)
             for n, host in enumerate(HOSTS)]  # fmt: skip
    counts = joined_blocks(KNOWN, lines, BLOCKS)
    assert (counts.connections, counts.records, counts.is_odd, counts.outside_named) == (200, 2, False, True)
    # The time is that of the packet.
    assert counts.delay_p50_ms is None


def test_the_delay_of_a_block_begins_with_its_first_connection() -> None:
    counts = joined_blocks(KNOWN, WHOLE_BLOCKS)
    assert not counts.is_odd
    assert counts.delay_p50_ms == pytest.approx(0.5, abs=1e-3)
    assert joined_blocks(KNOWN, [WHOLE_BLOCKS[0], given_block(1, 1152, at=2.5)]).late == 1


def test_connections_outside_of_logged_blocks_are_lost() -> None:
    second_block = [entry(200, source=HOSTS[0], port=9000, seen=4000)]
    counts = joined_blocks([*KNOWN, *second_block], WHOLE_BLOCKS)
    assert (counts.lost, counts.wrong) == (1, 0)
    assert joined_blocks(KNOWN, WHOLE_BLOCKS[:1]).lost == 100
    assert joined_blocks([*KNOWN, *second_block], [*WHOLE_BLOCKS, given_block(0, 3968)]).is_odd is False


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
    assert (counts.duplicate, counts.faulty, counts.ambiguous) == (1, 0, 0)


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
    assert joined_blocks(known, bindings).is_odd is False
    counts = joined_blocks(known, [bindings[0], f"{START} 10.0.0.2:5001 198.19.0.1:7009"])
    assert (counts.wrong, counts.lost) == (1, 5)


@pytest.mark.parametrize(
    "line", [f"{START} 10.0.0.2 198.19.0.1", given_block(0, 65500), f"{START} 10.0.0.2 198.19.0.1 9-1"]
)
def test_blocks_without_ports_are_unreadable(line: str) -> None:
    counts = joined_blocks(KNOWN, [*WHOLE_BLOCKS, line])
    assert (counts.unparsed, counts.records, counts.faulty) == (1, 2, 0)


def test_many_bindings_of_one_subscriber_are_joined_in_a_moment() -> None:
    # Each binding looks at the connections of its inside port only.
    known: list[Any] = [entry(number, port=number, seen=number, remote=1) for number in range(15_000)]
    assert joined_blocks(known, [f"{START + 60} 10.0.0.2:{n} 198.19.0.1:{n}" for n in range(15_000)]).lost == 0


def test_a_sent_record_may_name_the_destinations_address_alone() -> None:
    known = [entry(number, port=5000 + number, seen=1024 + number, remote=9) for number in range(3)]
    lines = [
        f"{START} source=10.0.0.2 source_port={5000 + number} destination=198.19.0.2 outside=198.19.0.1 "
        f"outside_port={1024 + number}"
        for number in range(3)
    ]
    counts = joined_blocks(known, lines, RECORD)
    assert (counts.records, counts.wrong, counts.lost) == (3, 0, 0)
