# SPDX-License-Identifier: Apache-2.0
"""Records that cover many connections: blocks of outside ports, and outside ports of inside ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from tests.unit.test_logging import START, entry

from natgauge.gateways.ipfix_lines import RECORD
from natgauge.gateways.recipe import load
from natgauge.log_counts import LogCounts
from natgauge.trial.log_join import join, listed

BLOCKS = load("cgn-port-blocks").logging["given-blocks"].pattern
#: What ulogd 2.0.8 prints of a packet with a prefix (GPRINT).
LINE = (
    "raw.pktlen=46,raw.pktcount=1,oob.prefix={outside}:{first}-{last},oob.mark=3,oob.hook=2,oob.family=2,"
    "ip.saddr={inside},ip.daddr=198.19.0.2,ip.protocol=17,udp.sport=1024,udp.dport=1,udp.len=26,"
)
#: With times, and of single ports.
PATTERN = re.compile(
    r"^(?P<time>\S+) (?P<source>\S+?)(?::(?P<source_port>\d+))? (?P<outside>\S+?)"
    r"(?::(?P<outside_port>\d+))?(?: (?P<first_port>\d+)-(?P<last_port>\d+))?$"
)
#: Two subscribers with 100 connections each, whose outside ports are of one block each.
HOSTS = ("10.0.0.2", "10.0.0.3")
KNOWN = [
    entry(number, source=HOSTS[number % 2], port=5000 + number, seen=(1024, 1152)[number % 2] + number // 2)
    for number in range(200)
]


def joined(entries: Sequence[bytes], lines: Sequence[str], pattern: re.Pattern[str] = PATTERN) -> LogCounts:
    text = "".join(f"{line}\n" for line in lines)
    return join(listed(b"".join(entries), all_learned=True), text, pattern, grace=2.0)


def given(host: int, first: int, *, at: float = 0.0, outside: str = "198.19.0.1") -> str:
    return f"{START + at:.6f} {HOSTS[host]} {outside} {first}-{first + 127}"


WHOLE = [given(0, 1024, at=0.0005), given(1, 1152, at=0.0015)]


def test_a_record_of_each_block_is_a_complete_log_with_fewer_records_than_connections() -> None:
    lines = [LINE.format(outside="198.19.0.1", inside=host, first=1024 + 128 * n, last=1151 + 128 * n)
             for n, host in enumerate(HOSTS)]  # fmt: skip
    counts = joined(KNOWN, lines, BLOCKS)
    assert (counts.connections, counts.records, counts.is_odd, counts.outside_named) == (200, 2, False, True)
    # The time is that of the packet.
    assert counts.delay_p50_ms is None


def test_the_delay_of_a_block_begins_with_its_first_connection() -> None:
    counts = joined(KNOWN, WHOLE)
    assert not counts.is_odd
    assert counts.delay_p50_ms == pytest.approx(0.5, abs=1e-3)
    assert joined(KNOWN, [WHOLE[0], given(1, 1152, at=2.5)]).late == 1


def test_connections_outside_of_logged_blocks_are_lost() -> None:
    second_block = [entry(200, source=HOSTS[0], port=9000, seen=4000)]
    counts = joined([*KNOWN, *second_block], WHOLE)
    assert (counts.lost, counts.wrong) == (1, 0)
    assert joined(KNOWN, WHOLE[:1]).lost == 100
    assert joined([*KNOWN, *second_block], [*WHOLE, given(0, 3968)]).is_odd is False


@pytest.mark.parametrize(
    "wrong",
    [given(1, 1280), given(1, 1152, outside="198.19.0.9"), given(1, 1152, at=-30.0)],
    ids=["other ports", "another address", "of an earlier trial"],
)
def test_a_block_that_leads_to_nobody_is_wrong_and_its_connections_are_lost(wrong: str) -> None:
    counts = joined(KNOWN, [WHOLE[0], wrong])
    assert (counts.wrong, counts.lost, counts.duplicate) == (1, 100, 0)


def test_a_block_that_is_recorded_twice_is_a_duplicate() -> None:
    counts = joined(KNOWN, [*WHOLE, WHOLE[0]])
    assert (counts.duplicate, counts.faulty, counts.ambiguous) == (1, 0, 0)


def test_ports_that_two_subscribers_have_by_the_log_cannot_be_read_back() -> None:
    # The second subscriber's record reaches into the first one's block.
    counts = joined(KNOWN, [WHOLE[0], f"{START:.6f} {HOSTS[1]} 198.19.0.1 1100-1300"])
    assert (counts.ambiguous, counts.lost) == (1, 0)
    # Blocks between which the first one was given up.
    late = [entry(5000, source=HOSTS[1], port=7, seen=1024)]
    assert joined([*KNOWN[::2], *late], [WHOLE[0], given(1, 1024, at=5.0)]).ambiguous == 0


def test_a_block_is_compared_with_each_one_that_was_given_within_a_second() -> None:
    # The same ports, given to three subscribers: to the second and the third within a second.
    known = [entry(n, source=host, port=7, seen=1024) for n, host in ((0, HOSTS[0]), (5000, HOSTS[1]))]
    lines = [f"{START + at:.6f} {host} 198.19.0.1 1024-1151" for at, host in ((0, HOSTS[0]), (5, HOSTS[1]))]
    third = f"{START + 5.5:.6f} 10.0.0.9 198.19.0.1 1024-1151"
    assert joined(known, lines).ambiguous == 0
    assert joined(known, [*lines, third]).ambiguous == 1


def test_a_binding_covers_the_connections_of_one_inside_port() -> None:
    known = [entry(n, port=5000 + n % 2, seen=(7000, 7001)[n % 2], remote=1 + n // 2) for n in range(10)]
    bindings = [f"{START} 10.0.0.2:{5000 + n} 198.19.0.1:{7000 + n}" for n in range(2)]
    assert joined(known, bindings).is_odd is False
    counts = joined(known, [bindings[0], f"{START} 10.0.0.2:5001 198.19.0.1:7009"])
    assert (counts.wrong, counts.lost) == (1, 5)


@pytest.mark.parametrize("line", [f"{START} 10.0.0.2 198.19.0.1", given(0, 65500), f"{START} 10.0.0.2 198.19.0.1 9-1"])
def test_blocks_without_ports_are_unreadable(line: str) -> None:
    counts = joined(KNOWN, [*WHOLE, line])
    assert (counts.unparsed, counts.records, counts.faulty) == (1, 2, 0)


def test_many_bindings_of_one_subscriber_are_joined_in_a_moment() -> None:
    # Each binding looks at the connections of its inside port only.
    known: list[Any] = [entry(number, port=number, seen=number, remote=1) for number in range(60_000)]
    assert joined(known, [f"{START + 60} 10.0.0.2:{n} 198.19.0.1:{n}" for n in range(60_000)]).lost == 0


def test_a_sent_record_may_name_the_destinations_address_alone() -> None:
    known = [entry(number, port=5000 + number, seen=1024 + number, remote=9) for number in range(3)]
    lines = [
        f"{START} source=10.0.0.2 source_port={5000 + number} destination=198.19.0.2 outside=198.19.0.1 "
        f"outside_port={1024 + number}"
        for number in range(3)
    ]
    counts = joined(known, lines, RECORD)
    assert (counts.records, counts.wrong, counts.lost) == (3, 0, 0)
