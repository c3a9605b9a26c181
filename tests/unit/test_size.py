# SPDX-License-Identifier: Apache-2.0
"""Subscribers of a gateway: arithmetic whose answer is known beforehand."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.golden import Golden
from tests.unit.made_comparisons import compared
from tests.unit.made_results import keep, made
from tests.unit.pages import lines_of

from natgauge.analysis.contrast import Span
from natgauge.analysis.sizing import (
    Ended,
    Fits,
    SubscriberLimit,
    Subscribers,
    addresses_for,
    keeps_connections,
    sizes_in_words,
    sizings,
)
from natgauge.analysis.unit_frames import Way, bits_of_unit
from natgauge.cli import run
from natgauge.errors import UsageError
from natgauge.gateways.recipe import load
from natgauge.gateways.toml_layers import BUILT_IN
from natgauge.metrics.loads import FORGETS
from natgauge.records.measurement import Result
from natgauge.records.parameters import OWN_TIMEOUT, Parameters
from natgauge.records.store import Store
from natgauge.reports.html import page as html_page
from natgauge.reports.sizing.answer import answer_of, exit_status, text
from natgauge.reports.sizing.chosen import sized
from natgauge.reports.sizing.document import document
from natgauge.stored.find_results import find

NEW = made([1000.0, 1000.0], metric="connection-rate", unit="connections/s")
OPEN = made([50_000.0, 50_000.0], metric="table-capacity", unit="connections", limited_by="table")
FRAMES = made([10_000.0, 10_000.0], parameters={"directions": "both", "frame_octets": {"initiator": 84}})
#: 84 octets with FCS are 66 of the packet: so many Mbit/s are one frame a second.
A_FRAME = 66 * 8 / 1e6


def limits(results: list[Result], asked: Subscribers) -> dict[Ended, Span]:
    (sizing,) = sizings(results, asked)
    return {limit.ended: limit.subscribers for limit in sizing.limits}


@pytest.mark.parametrize(
    ("asked", "ended", "most"),
    [
        (Subscribers(800, new=1.0, megabits=2 * A_FRAME), "new connections", 1000),
        (Subscribers(2400, new=0.1, megabits=2 * A_FRAME), "frames", 5000),
        (Subscribers(8300, connections=6.0, new=0.1, kept=60), "open connections", 50_000 / 6),
        (Subscribers(10_000, connections=6.0, outside_addresses=1), "open connections", 50_000 / 6),
        (Subscribers(10_000, connections=6.0, new=0.1, outside_addresses=4, kept=60), "open connections", 50_000 / 6),
    ],
)
def test_the_limit_that_comes_first_is_the_least_number_of_subscribers(
    asked: Subscribers, ended: Ended, most: float
) -> None:
    (sizing,) = sizings([NEW, OPEN, FRAMES], asked)
    first = sizing.limits[0]
    assert first.ended == ended
    assert first.subscribers.lower == pytest.approx(most)
    assert sizing.fits(asked.number) == ("carries" if asked.number <= most else "does not carry")


@pytest.mark.parametrize(("directions", "ends"), [("both", (5000, 10_000)), ("up", (2500, 5000))])
def test_frames_of_the_other_direction_are_between_none_and_as_many(directions: str, ends: tuple[int, int]) -> None:
    """Seen: 315 to 485 subscribers by both ways alike, where 830 with few frames up were carried."""
    frames = made([10_000.0, 10_000.0], parameters={"directions": directions, "frame_octets": {"initiator": 84}})
    asked = Subscribers(1, megabits=2 * A_FRAME)
    found = limits([frames], asked)["frames"]
    assert (found.lower, found.upper) == pytest.approx(ends)
    (sizing,) = sizings([frames], asked)
    said = [sizing.fits(number) for number in (ends[0] - 1, ends[0] + 1, ends[1] + 1)]
    assert said == ["carries", "cannot tell", "does not carry"]


def test_what_is_below_each_limit_is_not_said_to_be_carried_where_all_are_used_at_once(golden: Golden) -> None:
    """Seen: "x carries 900 subscribers", whose new connections and frames needed 108 % of its cores."""
    asked = Subscribers(900, connections=2.0, new=1.0, megabits=2 * A_FRAME, kept=2)
    (sizing,) = found = sizings([NEW, OPEN, FRAMES], asked)
    assert {limit.fits(900) for limit in sizing.limits} == {"carries"}
    assert sizing.most_of_cores(900) == pytest.approx(900 / 1000 + 900 / 5000)
    assert [sizing.fits(number) for number in (830, 900, 1001)] == ["carries", "cannot tell", "does not carry"]
    assert [exit_status(found, number) for number in (830, 900, 1001)] == [0, 5, 1]
    for number in (830, 900):
        of_number = replace(asked, number=number)
        golden(document(sizings([NEW, OPEN, FRAMES], of_number), of_number)["gateways"][0]["text"])
    (alone,) = sizings([NEW], Subscribers(900, new=1.0))
    assert (alone.most_of_cores(900), alone.fits(900)) == (0, "carries")


def test_frames_of_unequal_directions_say_as_much_of_subscribers_as_all_of_them_together() -> None:
    """10,000 frames/s on average are 16,000 one way and 4,000 back: 20,000 in all, not 32,000."""
    unequal = {"directions": "both", "down_share": 0.8, "frame_size": 84}
    frames, asked = made([10_000.0] * 3, parameters=unequal), Subscribers(1, megabits=A_FRAME)
    found = limits([frames], asked)["frames"]
    assert (found.lower, found.upper) == pytest.approx((10_000, 20_000))
    said = text(sizings([frames], asked), asked)
    assert "80 % of them in the busier direction." in said


def test_ports_of_the_outside_addresses_are_a_limit_of_what_translates_ports() -> None:
    asked = Subscribers(20_000, connections=10.0, outside_addresses=2)
    assert limits([OPEN], asked)["outside ports"].upper == 2 * 64_512 / 10
    plain = made(
        [50_000.0], metric="table-capacity", unit="connections", parameters={"kind": "routing", "emptying": "default"}
    )
    assert "outside ports" not in limits([plain], asked)
    (translating,), (keeping,) = sizings([OPEN], asked), sizings([plain], asked)
    assert (addresses_for(translating), addresses_for(keeping)) == (math.ceil(200_000 / 64_512), None)


#: A subscriber that opens a connection a second, ten of which are open.
OPENING: dict[str, Any] = {"connections": 10.0, "new": 1.0}


@pytest.mark.parametrize(
    "known",
    [
        made([500.0], metric="subscribers", unit="subscribers", parameters={FORGETS: 120}),
        made([1000.0], metric="connection-rate", unit="connections/s", parameters={OWN_TIMEOUT: 120}),
        made([1000.0], metric="latency", unit="us", parameters={"device_timeout": 120}),
    ],
    ids=["as subscribers say", "before it was raised", "as stated"],
)
def test_a_subscriber_fills_the_table_for_as_long_as_the_gateway_keeps_what_it_opened(known: Result) -> None:
    """Seen: 10 open connections each were all, of a gateway that kept 120 of them: 12 times too many subscribers."""
    (sizing,) = sizings([OPEN, NEW, known], Subscribers(400, **OPENING))
    assert (sizing.asked.entries, sizing.fits(400), sizing.fits(417)) == (120, "carries", "does not carry")
    assert addresses_for(sizing) == 1
    (many,) = sizings([OPEN, NEW, known], Subscribers(5000, **OPENING, outside_addresses=9))
    assert addresses_for(many) == math.ceil(5000 * 120 / 64_512)
    ports = next(limit for limit in many.limits if limit.ended == "outside ports")
    assert ports.subscribers.upper == 9 * 64_512 / 120
    (chosen,) = sizings([OPEN, NEW, known], Subscribers(400, **OPENING, kept=5))
    assert chosen.asked.entries == 10


def test_without_a_time_out_nobody_can_tell_how_much_of_the_table_is_filled(golden: Golden) -> None:
    asked = Subscribers(400, **OPENING)
    (sizing,) = found = sizings([OPEN, NEW], asked)
    assert [sizing.fits(number) for number in (1, 400, 5001)] == ["cannot tell", "cannot tell", "does not carry"]
    golden(text(found, asked))
    (blocks,) = sizings([OPEN, NEW], replace(asked, outside_addresses=100))
    assert next(limit for limit in blocks.limits if limit.ended == "outside ports").subscribers.lower == 0
    # Nothing is opened, or nothing of the table is asked: nothing is unknown.
    for known in (replace(asked, new=None), Subscribers(400, new=1.0)):
        assert sizings([OPEN, NEW], known)[0].fits(400) == "carries"


def test_a_table_that_was_not_looked_at_is_named_with_the_answer(golden: Golden) -> None:
    """Seen: "carries 400 subscribers", of a gateway whose table was full with a tenth of them."""
    kept = made([1000.0] * 2, metric="connection-rate", unit="connections/s", parameters={OWN_TIMEOUT: 120})
    for asked, results, unseen in (
        (Subscribers(400, new=1.0), [NEW], True),
        (Subscribers(400, new=0.1, megabits=A_FRAME), [NEW, FRAMES], True),
        (Subscribers(400, new=1.0, connections=1.0), [NEW], False),
        (Subscribers(400, new=1.0, kept=1.0), [NEW], False),
        (Subscribers(400, new=1.0), [kept], False),
        (Subscribers(400, connections=1.0), [OPEN], False),
        (Subscribers(400, new=1.0, megabits=A_FRAME), [NEW_OF_PLAIN, FRAMES_OF_PLAIN], False),
    ):
        found = sizings(results, asked)
        (shown,) = document(found, asked)["gateways"]
        assert shown["not_looked_at"] == (["open connections"] if unseen else [])
        if unseen:
            golden(shown["text"])


def test_no_digit_is_of_the_arithmetic_of_floats() -> None:
    """Seen: "0.30000000000000004 connections each", and of 33 connections room for 29 times 1.1."""
    parameters = {"table_size": 33, "placement": "external"}
    rate = made([1000.0] * 2, metric="connection-rate", unit="connections/s", parameters=parameters)
    asked = Subscribers(30, new=1.1, kept=1)
    (sizing,) = found = sizings([rate], asked)
    assert ("table entries", "up to 30") in answer_of(found).tables[0]
    assert [limit.subscribers.upper for limit in sizing.limits if limit.ended == "open connections"] == [30]
    small = Subscribers(10, new=0.1, kept=3, connections=0.1)
    (shown,) = document(sizings([rate], small), small)["gateways"]
    assert shown["entries_each"] == 0.3
    assert "0.30000" not in text(sizings([rate], small), small)
    (many,) = document(sizings([NEW], replace(small, number=3)), replace(small, number=3))["gateways"]
    assert [limit["all"] for limit in many["limits"]] == [0.3]
    needed = Subscribers(10, new=1.1, kept=1)
    assert "--connections 11" in text(sizings([NEW], needed), needed)


def test_new_connections_fill_a_table_of_which_nothing_else_is_asked() -> None:
    asked = Subscribers(400, new=1.0, kept=120)
    (sizing,) = sizings([OPEN, NEW], asked)
    assert (sizing.fits(416), sizing.fits(417)) == ("carries", "does not carry")
    assert sizings([NEW], asked)[0].missing == ("open connections",)


@pytest.mark.parametrize(
    ("parameters", "fits"),
    [
        ({"table_size": 60_000, "of_host": {"table_size": 48_000}}, "does not carry"),
        ({"table_size": 48_000, "placement": "external"}, "does not carry"),
        ({"table_size": 48_000}, "cannot tell"),
    ],
    ids=["before it was raised", "as stated", "raised by natgauge"],
)
def test_a_limit_of_the_table_that_is_known_ends_it_where_nobody_filled_the_table(
    parameters: dict[str, Any], fits: Fits, golden: Golden
) -> None:
    rate = made([1000.0] * 2, metric="connection-rate", unit="connections/s", parameters=parameters)
    asked = Subscribers(401, **OPENING, kept=120)
    (sizing,) = found = sizings([rate], asked)
    assert sizing.missing == ("open connections",)
    assert [sizing.fits(number) for number in (401, 400)] == [fits, "cannot tell"]
    golden(text(found, asked))


def test_a_capacity_that_ranges_ended_is_at_most_the_limit_and_its_command_is_complete(golden: Golden) -> None:
    """Seen: "10,000 or more subscribers" of a table with room for 262,144 connections, and a list of options."""
    doubts = [{"word": "range limited", "text": "x", "grade": "answer"}]
    held = made(
        [100_000.0], metric="table-capacity", unit="connections", limited_by="ranges", doubts=doubts,
        parameters={"table_size": 262_144},
    )  # fmt: skip
    asked = Subscribers(5000, connections=120.0)
    (sizing,) = found = sizings([held], asked)
    assert [sizing.fits(number) for number in (833, 834, 2185)] == ["carries", "cannot tell", "does not carry"]
    golden(text(found, asked))
    command = "natgauge measure table-capacity --gateway x --connections"
    within, carried = replace(asked, number=1000), replace(asked, number=100)
    commands = [document(sizings([held], own), own)["gateways"][0]["commands"] for own in (asked, within, carried)]
    assert commands == [[f"{command} 600000 --table-size 660000"], [f"{command} 120000"], []]
    assert "To raise the limit" not in text(sizings([held], within), within)
    # All connections that were tried fitted, and more would change nothing of these subscribers.
    assert "†" in text(sizings([held], within), within)
    assert "range limited" not in text(sizings([held], carried), carried)


def test_the_table_of_a_measured_capacity_is_the_one_that_it_was_measured_with() -> None:
    """Seen: "its limit is 262,144: at most 4,369 subscribers" below a capacity of 1.9 million."""
    rate = made([10_000.0] * 3, parameters={"table_size": 262_144, "of_host": {"table_size": 262_144}})
    capacity = made(
        [1_900_000.0] * 3, metric="table-capacity", unit="connections", parameters={"table_size": 2_000_000}
    )
    (sizing,) = sizings([rate, capacity], Subscribers(1, connections=60.0, megabits=A_FRAME))
    assert sizing.table_limit in (None, 2_000_000)


def test_where_nothing_passed_no_subscriber_is_carried() -> None:
    asked = Subscribers(10, new=1.0)
    said = text(sizings([made([0.0] * 3, metric="connection-rate", unit="connections/s")], asked), asked)
    assert "does not carry" in said
    assert "at less than 1 subscriber." in said


def test_one_of_what_subscribers_take_is_said_in_the_singular() -> None:
    """Seen: "1 subscribers with 1 open connections and 1 new connections/s each"."""
    one, few = (
        Subscribers(1, connections=1.0, new=1.0, kept=1),
        made([1.0] * 3, metric="table-capacity", unit="connections"),
    )
    said = text(sizings([NEW, few], one), one)
    assert said.startswith("1 subscriber with 1 open connection and 1 new connection/s.\n")
    assert re.findall(r"\b1 (?:open |new )?(?:connections|subscribers|ports|ones)\b", said) == []


def test_cores_that_are_needed_are_a_multiple_of_those_that_were_measured(golden: Golden) -> None:
    frames = made(
        [10_000.0] * 2,
        parameters={"directions": "both", "frame_octets": {"initiator": 84}, "device_cores": 2},
    )
    asked = Subscribers(26_000, megabits=2 * A_FRAME)
    found = sizings([frames], asked)
    golden(text(found, asked))
    # 5,000 subscribers of two cores, or 10,000 where the other direction is idle.
    assert found[0].cores_for(26_000) == Span(6, 11)
    (gateway,) = document(found, asked)["gateways"]
    assert [gateway[name] for name in ("cores", "cores_both_ways_busy", "cores_one_way_idle")] == [
        [6, 11], [11, 11], [6, 11]
    ]  # fmt: skip
    assert "All 26,000 need 11 cores (at least 6 if no frames go up), " in gateway["text"]
    rows = {row[0]: row[1:] for row in answer_of(found).tables[1]}
    assert rows["cores for all, up as down"] == ("11",)
    assert rows["cores for all, none up"] == ("6 to 11",)
    (limit,) = gateway["limits"]
    assert (limit["both_ways_busy"], limit["one_way_idle"]) == ([5000, 5000], [5000, 10_000])


@pytest.mark.parametrize(("number", "fits"), [(90, "carries"), (100, "cannot tell"), (111, "does not carry")])
def test_a_number_within_the_range_of_a_limit_cannot_be_told(number: int, fits: Fits) -> None:
    limit = SubscriberLimit("frames", "frames/s", 1.0, Span(90.0, 110.0))
    assert limit.fits(number) == fits


def test_a_lower_bound_never_says_that_subscribers_are_too_many() -> None:
    bound = made([1000.0], metric="connection-rate", unit="connections/s", limited_by="tester")
    (sizing,) = sizings([bound], Subscribers(10**6, new=1.0))
    assert (sizing.fits(1000), sizing.fits(10**6)) == (
        "cannot tell" if sizing.limits[0].subscribers.lower < 1000 else "carries",
        "cannot tell",
    )


def _of_rule(connections: float, hosts: int, **changed: Any) -> Result:
    """A capacity that no full table ended."""
    parameters = {"source_address_count": hosts}
    return made([connections] * 3, metric="table-capacity", unit="connections", parameters=parameters, **changed)


def test_what_a_rule_refuses_fewer_hosts_than_subscribers_is_no_full_table(golden: Golden) -> None:
    """Seen: 500 connections for each host, measured with one, were those of all subscribers."""
    asked = Subscribers(101, connections=5.0)
    (one,), (four,) = sizings([_of_rule(500.0, 1)], asked), sizings([_of_rule(2000.0, 4), _of_rule(500.0, 1)], asked)
    assert (one.fits(100), one.fits(101), four.fits(101), four.fits(500)) == (
        "carries", "cannot tell", "carries", "cannot tell"
    )  # fmt: skip
    golden(text([one], asked))


@pytest.mark.parametrize(
    "limit",
    [_of_rule(500.0, 101), _of_rule(500.0, 1, limited_by="table"), _of_rule(500.0, 1, trials={"COLLAPSED": 1})],
    ids=["as many hosts", "full table", "collapsed"],
)
def test_a_capacity_that_more_hosts_do_not_raise_ends_subscribers(limit: Result) -> None:
    asked = Subscribers(101, connections=5.0)
    (sizing,) = sizings([limit], asked)
    assert sizing.fits(101) == "does not carry"
    is_table = limit.limited_by == "table"
    assert ("a table for 505 entries" in text([sizing], asked)) == is_table


@pytest.mark.parametrize(
    ("word", "fits"),
    [
        ("one address pair", ("carries", "cannot tell")),
        ("table not emptied", ("carries", "cannot tell")),
        ("flow control", ("cannot tell", "does not carry")),
        ("unreliable", ("cannot tell", "cannot tell")),
    ],
)
def test_a_doubt_that_could_change_the_answer_rules_nothing_in_or_out_beyond_the_end_that_it_leaves(
    word: str, fits: tuple[Fits, Fits]
) -> None:
    doubts = [{"word": word, "text": "x", "grade": "answer"}]
    doubted = made([1000.0] * 3, metric="connection-rate", unit="connections/s", doubts=doubts)
    (sizing,) = sizings([doubted], Subscribers(900, new=1.0))
    assert (sizing.fits(900), sizing.fits(2000)) == fits
    said = text([sizing], Subscribers(2000, new=1.0))
    assert ("To raise the limit" in said) == (word == "flow control")
    assert "any number subscribers" not in said
    assert "up to 0" not in said


def _with_log(metric: str, value: float, limited_by: str = "device", **parameters: Any) -> Result:
    unit = "connections" if metric == "table-capacity" else "connections/s"
    return made([value] * 3, metric=metric, unit=unit, limited_by=limited_by, parameters=parameters)


def test_a_log_that_lacked_connections_is_no_full_table(golden: Golden) -> None:
    """Seen: "does not carry; change: a larger table", although a slow writer of the log had ended it."""
    asked = Subscribers(101, connections=5.0)
    (sizing,) = sizings([_with_log("table-capacity", 500.0, "log", logging="nfct-syslog", log_tolerance=0.0)], asked)
    assert (sizing.fits(100), sizing.fits(101)) == ("carries", "cannot tell")
    golden(text([sizing], asked))


def test_a_capacity_that_its_log_ended_says_nothing_beside_one_that_the_table_ended() -> None:
    """Seen: 500 connections of the log were the tightest, beside 2,000 of a full table."""
    way: dict[str, Any] = {"logging": "nfct-syslog", "log_tolerance": 0.0}
    results = [
        _with_log("table-capacity", 500.0, "log", **way),
        _with_log("table-capacity", 2000.0, "table", **way),
    ]
    asked = Subscribers(300, connections=5.0)
    found = limits(results, asked)["open connections"]
    assert (found.lower, found.upper) == pytest.approx((400.0, 400.0))
    (both,) = sizings(results, asked)
    assert both.fits(300) == "carries"


def test_a_capacity_that_its_log_ended_with_more_hosts_counts_where_only_fewer_hosts_are_beside_it() -> None:
    asked = Subscribers(300, connections=5.0)
    way: dict[str, Any] = {"logging": "nfct-syslog", "log_tolerance": 0.0}
    results = [
        _with_log("table-capacity", 1000.0, "log", source_address_count=100, **way),
        _with_log("table-capacity", 500.0, source_address_count=1, **way),
    ]
    found = limits(results, asked)["open connections"]
    assert (found.lower, found.upper) == (200.0, math.inf)


def test_a_rate_that_the_log_ended_names_the_log_as_what_to_change() -> None:
    asked = Subscribers(2000, new=1.0)
    (sizing,) = sizings([_with_log("connection-rate", 1000.0, "log", logging="nfct-syslog", log_tolerance=0.0)], asked)
    (change,) = (line for line in text([sizing], asked).splitlines() if line.startswith("To raise "))
    assert change.startswith("To raise the limit of new connections: a faster program that writes the log")


def test_results_with_a_log_and_without_one_have_an_answer_each_which_names_the_way(golden: Golden) -> None:
    """Seen: a capacity without a log and a rate with one were those of one gateway."""
    asked = Subscribers(10, new=1.0)
    rates = [
        _with_log("connection-rate", 3000.0),
        _with_log("connection-rate", 2000.0, logging="nfct-ulogd", log_tolerance=0.0),
        _with_log("connection-rate", 1000.0, logging="nfct-ulogd", log_tolerance=0.01),
    ]
    found = sizings(rates, asked)
    assert [sizing.limits[0].subscribers.lower for sizing in found] == [3000, 2000, 1000]
    gateways = document(found, asked)["gateways"]
    assert [(each["logging"], each["log_tolerance"]) for each in gateways] == [
        (None, None), ("nfct-ulogd", 0.0), ("nfct-ulogd", 0.01)
    ]  # fmt: skip
    golden("\n".join(each["text"] for each in gateways))
    (missing,) = sizings([rates[1]], Subscribers(10, new=1.0, connections=1.0))
    wanted = " --gateway x --logging nfct-ulogd --connections 10"
    assert text([missing], Subscribers(10, new=1.0, connections=1.0)).endswith(wanted)
    (tolerant,) = sizings([rates[2]], Subscribers(10, new=1.0, connections=1.0))
    wanted = " --gateway x --logging nfct-ulogd --log-tolerance 0.01 --connections 10"
    assert text([tolerant], Subscribers(10, new=1.0, connections=1.0)).endswith(wanted)


def test_what_no_result_measured_is_missing_and_nothing_is_carried() -> None:
    (sizing,) = sizings([NEW], Subscribers(1, connections=1.0, new=1.0))
    assert (sizing.missing, sizing.fits(1), sizing.fits(10**9)) == (
        ("open connections",),
        "cannot tell",
        "does not carry",
    )


def test_the_throughput_of_the_next_larger_frames_counts() -> None:
    sizes = {64: 10_000.0, 594: 8000.0, 1518: 5000.0}
    every = [made([rate], parameters={"directions": "both", "frame_size": size}) for size, rate in sizes.items()]

    def rate(mean: int) -> tuple[float, bool]:
        (sizing,) = sizings(every, Subscribers(1, megabits=1.0, mean_frame=mean))
        (limit,) = sizing.limits
        assert limit.each == pytest.approx(1e6 / 8 / (mean - 18))
        return limit.measured.lower, sizing.larger_frames

    assert [rate(mean) for mean in (64, 65, 594, 1000, 1518, 1519)] == [
        (10_000, False), (8000, False), (8000, False), (5000, False), (5000, False), (5000, True)
    ]  # fmt: skip


MIX = {
    "frame_sizes": "64:7,594:4,1518:1",
    "mean_frame_octets": {way: {"initiator": 361.8, "responder": 361.8} for way in ("up", "down")},
}


@pytest.mark.parametrize(
    ("mixes", "mean", "frames"),
    [
        ([MIX], None, ["64, 594 and 1,518 octets (7:4:1)", "64 octets", "1,518 octets"]),
        ([], None, ["64 octets", "1,518 octets"]),
        ([], 500, ["1,518 octets", "64 octets"]),
        ([MIX], 500, ["1,518 octets", "64 octets", "64, 594 and 1,518 octets (7:4:1)"]),
    ],
)
def test_of_several_throughputs_a_mix_counts_and_the_answer_names_the_frames(
    mixes: list[dict[str, Any]], mean: int | None, frames: list[str], golden: Golden
) -> None:
    """Seen: results of 64 octets were taken where those of a mix were there, too."""
    results = [
        made([rate, rate], parameters={"directions": "both", **sizes})
        for rate, sizes in zip(
            (9000.0, 5000.0, 8000.0), [{"frame_size": 64}, {"frame_size": 1518}, *mixes], strict=False
        )
    ]
    asked = Subscribers(10, megabits=1.0, mean_frame=mean)
    (sizing,) = sizings(results, asked)
    golden(text([sizing], asked))
    assert sizing.limits[0].result is not None
    assert [sizes_in_words(sizing.limits[0].result), *sizing.other_frames] == frames


def test_the_first_line_names_what_a_limit_was_measured_with_where_that_is_unusual() -> None:
    """Results with 10 % loss, of TCP, or of half-open connections gave a plain "carries"."""

    def first(*results: Result) -> str:
        asked = Subscribers(1, connections=1.0, new=0.001, megabits=A_FRAME)
        (sizing,) = sizings(results, asked)
        answer = str(document([sizing], asked)["gateways"][0]["text"])
        verdict = text([sizing], asked).splitlines()[2]
        assert answer.startswith(verdict)
        return verdict

    def of(plain: Result, **settings: Any) -> Result:
        return plain.model_copy(update={"parameters": plain.parameters.with_settings(settings)})

    assert "measured:" not in first(NEW, OPEN, FRAMES)
    said = first(of(NEW, transport="tcp"), of(OPEN, transport="tcp", state="half-open"), of(FRAMES, loss_tolerance=0.1))
    for part in (
        "; measured: ",
        "new connections by TCP",
        "table entries by TCP, half-open",
        "frames, where a passing trial may lose up to 10% of its frames",
    ):
        assert part in said
    searched = of(FRAMES, search="mlrsearch", goals="ndr-pdr", trial_seconds=1.0)
    assert "measured: frames by MLRsearch (" in first(NEW, OPEN, searched)


def test_a_number_of_cores_that_is_not_known_is_not_said_to_be_0() -> None:
    asked = Subscribers(1, new=1.0)
    wired = made([1000.0] * 2, metric="connection-rate", unit="connections/s", parameters={"placement": "external"})
    found = document(sizings([wired], asked), asked)["gateways"][0]
    assert found["text"].startswith("x (cores not known) ")
    assert found["device_cores"] is None


def test_gateways_and_numbers_of_cores_have_an_answer_each() -> None:
    two = made([2000.0], metric="connection-rate", unit="connections/s", parameters={"device_cores": 2})
    other = made([3000.0], metric="connection-rate", unit="connections/s", parameters={"gateway": "y"})
    found = sizings([NEW, two, other, OPEN], Subscribers(1, new=1.0))
    assert [sizing.limits[0].subscribers.lower for sizing in found] == [1000, 2000, 3000]


@pytest.mark.parametrize(
    ("metric", "traffic", "octets", "frames", "way"),
    [
        ("throughput", {"frame_size": 64, "directions": "both"}, 64, 1, "each"),
        ("throughput", {"frame_size": 1518, "directions": "down"}, 1518, 1, "one"),
        ("throughput", {"frame_size": 64, "directions": "both", "down_share": 0.75}, 96, 1.5, "busier"),
        ("throughput", {"frame_octets": {"initiator": 84, "responder": 64}, "directions": "up"}, 84, 1, "one"),
        ("connection-rate", {"frame_size": 64}, 64, 1, "one"),
        # SYN of 78 octets and ACK of 70 from the Initiator.
        ("connection-rate", {"transport": "tcp"}, 148, 2, "busier"),
    ],
)
def test_bits_are_those_of_the_busier_direction(
    metric: str, traffic: dict[str, Any], octets: float, frames: float, way: Way
) -> None:
    bits = bits_of_unit(metric, Parameters.grouped(traffic=traffic))
    assert bits is not None
    assert (bits.wire, bits.packets) == (8 * (octets + 20 * frames), 8 * (octets - 18 * frames))
    assert (bits.frames, bits.way) == (frames, way)


@pytest.mark.parametrize(("vlan", "tags"), [(None, 0), ("100", 4), ("9.100", 8), ("9.100+", 8)])
def test_vlan_tags_are_on_the_wire_and_no_part_of_packets(vlan: str | None, tags: int) -> None:
    octets = {"initiator": 1518 + tags, "responder": 1518}
    traffic: dict[str, Any] = {"directions": "up", "frame_octets": octets, "initiator_vlan": vlan}
    bits = bits_of_unit("throughput", Parameters.grouped(traffic=traffic))
    assert bits is not None
    assert (bits.wire, bits.packets, bits.frame_octets) == (8 * (1538 + tags), 8 * 1500, 1518)


def test_what_is_no_rate_of_known_frames_has_no_bits() -> None:
    assert bits_of_unit("table-capacity", Parameters.grouped(traffic={"frame_size": 64})) is None
    assert bits_of_unit("throughput", Parameters.grouped(traffic={})) is None


PLAIN = {"gateway": "linux-ipv4", "kind": "routing"}
FRAMES_OF_PLAIN = made(
    [10_000.0, 10_000.0], parameters={**PLAIN, "directions": "both", "frame_octets": {"initiator": 84}}
)
NEW_OF_PLAIN = made([1000.0, 1000.0], metric="connection-rate", unit="connections/s", parameters=PLAIN)


def test_a_gateway_that_keeps_no_connections_is_limited_by_none_and_no_table_is_asked_of_it(golden: Golden) -> None:
    """Seen: its table-capacity was asked for, which natgauge refuses to measure, so that there never was an answer."""
    asked = Subscribers(4000, connections=60.0, new=0.5, megabits=2 * A_FRAME)
    results = [FRAMES_OF_PLAIN, NEW_OF_PLAIN]
    found = sized(results, asked)
    assert [(sizing.missing, sizing.no_limit, sizing.fits(4000)) for sizing in found] == [
        ((), ("new connections", "open connections"), "carries")
    ]
    golden(text(found, asked, results))


def test_without_bits_there_is_nothing_to_ask_of_a_gateway_that_keeps_no_connections(golden: Golden) -> None:
    with golden.raises(UsageError):
        sized([FRAMES_OF_PLAIN, NEW_OF_PLAIN], Subscribers(1, new=1.0))
    with golden.raises(UsageError):
        sized([NEW_OF_PLAIN], Subscribers(1, new=1.0, megabits=1.0))


def test_the_kind_of_each_gateway_says_whether_it_keeps_connections() -> None:
    names = [path.stem for path in BUILT_IN.glob("*.toml")]
    for recipe in map(load, names):
        result = made([1.0], parameters={"gateway": recipe.name, "kind": recipe.kind})
        assert keeps_connections(result) == recipe.stateful, recipe.name


@pytest.mark.parametrize(
    ("named", "command", "given"),
    [
        ("nftables-nat44 (1efa1c)", None, "nftables-nat44"),
        ("mine (unknown recipe)", "natgauge measure cost --gateway ./own/mine.toml --seed 1", "./own/mine.toml"),
        ("nftables-nat44", "natgauge measure cost --gateway another", "nftables-nat44"),
        ("mine", "natgauge measure cost --gateway './a;b/mine.toml'", "mine"),
        ("a;b", "natgauge measure cost --gateway a;b", "'a;b'"),
    ],
)
def test_a_command_has_the_gateway_as_a_command_line_takes_it(named: str, command: str | None, given: str) -> None:
    """Seen: with the digest behind the name, which no command line takes."""
    parameters = {"gateway": named, **({} if command is None else {"command": command})}
    asked = Subscribers(1, new=1.0, connections=1.0)
    result = made([1000.0], metric="connection-rate", unit="connections/s", parameters=parameters)
    (shown,) = document(sizings([result], asked), asked)["gateways"]
    assert shown["commands"] == [f"natgauge measure table-capacity --gateway {given} --connections 1"]


def test_results_that_are_left_out_are_named_with_the_reason_in_one_line(golden: Golden) -> None:
    routed = made([9000.0], parameters={"frame_size": 64, "foreground_share": 0.1})
    unknown = made([9000.0], parameters={"frame_size": None})
    latency = made([1.0], metric="latency", unit="us")
    results = [NEW, OPEN, routed, unknown, latency, latency]
    asked = Subscribers(1, connections=1.0, megabits=1.0)
    found = sized(results, asked)
    said = text(found, asked, results)
    golden(said.splitlines()[-1])
    assert [each["metric"] for each in document(found, asked, results)["not_used"]] == [
        "connection-rate", "throughput", "throughput", "latency", "latency"
    ]  # fmt: skip
    assert found[0].missing == ("frames",)
    assert "Not used" not in text(found, asked, [OPEN])


def test_a_measured_number_of_subscribers_is_left_out_as_the_answer_for_its_own_profile() -> None:
    """Seen: "subscribers (no measure of subscribers)"."""
    carried = made([500.0], metric="subscribers", unit="subscribers")
    asked = Subscribers(100, new=1.0)
    said = "subscribers (its number is the answer for subscribers of its own profile)"
    assert f"Not used: {said}." in text(sized([NEW, carried], asked), asked, [NEW, carried])
    with pytest.raises(UsageError) as refused:
        sized([carried], asked)
    assert f"given: {said};" in str(refused.value)


def test_frames_that_drew_their_four_tuples_are_no_connections_of_subscribers() -> None:
    """Seen: a gateway carried 1,000 subscribers with one new connection/s each, of 1,000 frames/s that opened 632."""
    drawn = made(
        [1000.0, 1000.0], metric="connection-rate", unit="connections/s", parameters={"order": "with-replacement"}
    )
    asked = Subscribers(1, new=1.0, connections=1.0)
    found = sized([drawn, OPEN], asked)
    assert found[0].missing == ("new connections",)
    assert "its frames drew their four tuples" in text(found, asked, [drawn, OPEN]).splitlines()[-1]
    assert sizings([NEW, OPEN], asked)[0].missing == ()


def test_octets_of_tagged_frames_are_without_the_tags_and_say_so(golden: Golden) -> None:
    """Seen: the tags were counted in one place and not in another."""
    one = {"frame_size": 68, "frame_octets": {"initiator": 68, "responder": 64}, "initiator_vlan": "100"}
    mix = {
        "frame_sizes": "68:7,598:4,1522:1",
        "mean_frame_octets": {"up": {"initiator": 365.8, "responder": 361.8}},
        "initiator_vlan": "100",
    }
    tagged = [made([5000.0, 5000.0], parameters={"directions": "up", **sizes}) for sizes in (one, mix)]
    for asked in (Subscribers(1, megabits=A_FRAME), Subscribers(1, megabits=A_FRAME, mean_frame=64)):
        found = sized(tagged, asked)
        golden(text(found, asked))
    # 64 octets without the tag have 46 of the packet.
    assert found[0].limits[0].each == pytest.approx(66 / 46)
    assert found[0].limits[0].result is tagged[0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for result in (NEW, OPEN, FRAMES):
        keep(Store.create(tmp_path, result.metric, result.gateway), result)
    return tmp_path


@pytest.mark.parametrize(("number", "status"), [(900, 0), (1001, 1)])
def test_the_exit_status_says_whether_they_fit(
    number: int, status: int, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["size", str(folder), "--subscribers", str(number), "--new-each", "1", "--connections-each", "2"]
    asked += ["--device-timeout", "2"]
    assert run([*asked, "--json"]) == status
    (gateway,) = json.loads(capsys.readouterr().out)["gateways"]
    assert gateway["limits"][0]["ended"] == "new connections"
    assert run(asked) == status
    question, answer, *_ = capsys.readouterr().out.split("\n\n")
    together = f"together {2 * number:,} table entries, {number:,} new connections/s."
    assert question == f"{number:,} subscribers, each with 2 open connections and 1 new connection/s: {together}"
    assert " ".join(answer.splitlines()) == gateway["text"]


def test_numbers_of_one_output_are_rounded_alike_and_the_columns_that_decide_come_first() -> None:
    """Seen: "up to 814" beside "250 to 820" for the same number, and 263 k beside 262,144."""
    capacity = made([262_144.0] * 3, metric="table-capacity", unit="connections", limited_by="table")
    rate = made([250_123.4, 814_999.9], metric="connection-rate", unit="connections/s")
    asked = Subscribers(5000, connections=322.0, new=1.0)
    found = sizings([capacity, rate], asked)
    said = text(found, asked)
    assert said.count(", at up to 814 subscribers.") == 1
    head, *rows = (re.split("  +", line) for line in said.splitlines() if "  " in line)
    assert head == ["subscribers at most", "x"]
    assert rows == [["table entries", "up to 814"], ["new connections", "250 k to 815 k"]]
    # What is near to the subscribers has all digits.
    near = text(sizings([capacity, rate], replace(asked, number=30_000)), asked)
    assert "250,123 to 814,999" in near
    assert not re.search(r"\d [kMG]\b", near)


def _three(number: int) -> tuple[list[Result], Subscribers]:
    """Results of three gateways on one core each, of which the frames of the first are doubtful."""
    doubts = [{"word": "undecided", "text": "x", "grade": "answer"}]
    results = []
    for name, frames in (("a", 10_000.0), ("b", 8000.0), ("c", 6000.0)):
        of = {"gateway": name, "device_cores": 1}
        own = {"tester_highest_phase1_rate": 20_000.0, "tester_highest_phase2_rate": 200_000.0}
        table = {"of_host": {"table_size": 48_000}, "table_size": 10**6, OWN_TIMEOUT: 120}
        sent = {"directions": "both", **MIX}
        results += [
            made([frames] * 2, parameters={**of, **own, **sent}, doubts=doubts if name == "a" else []),
            made([1000.0] * 2, metric="connection-rate", unit="connections/s", parameters={**of, **own, **table}),
        ]
    uppers = [replace(one, upper=1.1 * one.value) for one in results[0].repetitions]
    results[0] = results[0].model_copy(update={"repetitions": tuple(uppers), "error": 1000.0})
    return results, Subscribers(number, **OPENING, megabits=1.0)


def test_gateways_with_the_same_answer_are_told_together_and_what_they_share_once(golden: Golden) -> None:
    """Seen: 988 words on three gateways, of which two thirds were the same but for numbers."""
    results, asked = _three(401)
    found = sized(results, asked)
    said = text(found, asked, results)
    golden(said)
    assert max(said.count(line) for line in said.splitlines() if line) == 1
    assert text(found, asked, results, width=60) == said
    assert max(map(len, said.partition("\nTo raise")[0].partition("subscribers at most")[2].splitlines())) <= 80
    for name in "abc":
        assert said.count(f"\n  natgauge measure table-capacity --gateway {name} --connections 48120 ") == 1


def test_what_holds_for_some_gateways_names_them_and_a_gateway_without_a_result_says_so(golden: Golden) -> None:
    results, asked = _three(20)
    found = sized([*results[:3], FRAMES_OF_PLAIN], asked)
    golden(text(found, asked))
    head, *rows = answer_of(found).tables[0]
    assert head[1:] == ("a", "b", "linux-ipv4")
    cells = {row[0]: row[1:] for row in rows}
    assert cells["new connections"] == ("1,000", "not measured", "no limit")
    assert cells["table entries"] == ("up to 400", "not measured", "no limit")


def test_a_command_that_one_of_several_gateways_needs_names_it() -> None:
    table = made([50_000.0] * 2, metric="table-capacity", unit="connections", parameters={"gateway": "y"})
    asked = Subscribers(2000, connections=1.0, new=1.0, kept=1)
    rate = made([1000.0] * 2, metric="connection-rate", unit="connections/s", parameters={"gateway": "y"})
    found = sizings([NEW, table, rate], asked)
    assert [each["commands"] for each in document(found, asked)["gateways"]] == [
        ["natgauge measure table-capacity --gateway x --connections 2000"], []
    ]  # fmt: skip
    ((_, commands),) = answer_of(found).commands
    assert commands == ("natgauge measure table-capacity --gateway x --connections 2000",)


def test_more_gateways_than_a_page_has_room_for_are_rows_of_its_table() -> None:
    rates = [
        made([1000.0] * 2, metric="connection-rate", unit="connections/s", parameters={"gateway": f"g{at}"})
        for at in range(5)
    ]
    asked = Subscribers(10, new=1.0)
    four, five = (answer_of(sizings(rates[:number], asked)) for number in (4, 5))
    assert four.page_tables == four.tables
    rows = ["subscribers at most", "g0", "g1", "g2", "g3", "g4"]
    assert [row[0] for row in five.page_tables[0]] == rows
    # A table that is wider than the terminal has the form that is narrower.
    wide, narrow = (text(sizings(rates, asked), asked, width=width).splitlines() for width in (200, 50))
    assert "subscribers at most     g0     g1     g2     g3     g4" in wide
    assert [line.split("  ")[0] for line in narrow if "  " in line] == rows


def test_gateways_of_one_name_are_told_by_what_distinguishes_them() -> None:
    rates = [
        made([1000.0 * cores] * 2, metric="connection-rate", unit="connections/s", parameters={"device_cores": cores})
        for cores in (1, 2)
    ]
    asked = Subscribers(1500, new=1.0, kept=1)
    said = answer_of(sizings(rates, asked))
    assert said.tables[0][0][1:] == ("x, 1 core", "x, 2 cores")
    assert said.title == "Does x carry 1,500 subscribers?"
    assert [lines[0] for lines in said.verdicts] == [
        "Cannot tell of x, 2 cores; x, 1 core does not carry all 1,500.",
        "On one core x carries the new connections of 1,000 of the 1,500 subscribers.",
        "Cannot tell whether x (2 cores) carries 1,500 subscribers.",
    ]


@pytest.mark.parametrize(
    ("results", "asked", "cores"),
    [
        ([("new", 1000.0)], {"new": 1.0}, (4, 4)),
        # Frames need 0.35 to 0.7 of what new connections need: alone, or beside them.
        ([("new", 1000.0), ("frames", 10_000.0)], {"new": 1.0, "megabits": 2 * A_FRAME}, (4, 5)),
        ([("new", 1000.0)], {"new": 1.0, "megabits": 2 * A_FRAME}, (4, math.inf)),
    ],
)
def test_cores_are_those_of_the_larger_need_and_no_more_than_of_both(
    results: list[tuple[str, float]], asked: dict[str, Any], cores: tuple[float, float]
) -> None:
    of = {"device_cores": 1, "directions": "both", "frame_octets": {"initiator": 84}}
    metrics = {"new": ("connection-rate", "connections/s"), "frames": ("throughput", "frames/s")}
    every = [made([rate] * 2, metric=metrics[name][0], unit=metrics[name][1], parameters=of) for name, rate in results]
    (sizing,) = sizings(every, Subscribers(3500, kept=1, **asked))
    assert sizing.cores_for(3500) == Span(*cores)


def _with_table(connections: int, rate: float = 10_000.0, size: int = 84, **parameters: Any) -> Result:
    """A throughput with so many connections in the table."""
    sent = {"directions": "both", "frame_octets": {"initiator": size}, "connections": connections}
    return made([rate] * 2, parameters={**sent, **parameters})


@pytest.mark.parametrize(
    ("results", "asked", "fewer"),
    [
        ([_with_table(1000)], {"connections": 14.0}, {}),
        ([_with_table(1000)], {"connections": 15.0}, {"frames": 1000}),
        ([_with_table(1000), _with_table(2000, 20_000.0)], {"connections": 15.0}, {}),
        ([_with_table(1000), _with_table(2000, 20_000.0)], {"connections": 60.0}, {"frames": 2000}),
        # Frames of another size with as many connections say nothing of these.
        ([_with_table(1000), _with_table(9000, 20_000.0, 1518)], {"connections": 15.0}, {"frames": 1000}),
        # Who moves bits has a connection.
        ([_with_table(60)], {}, {"frames": 60}),
        ([_with_table(70)], {}, {}),
        ([_with_table(1000, kind="routing")], {"connections": 15.0}, {}),
        # A connection a second, each kept for 120 s.
        ([_with_table(1000), NEW], {"new": 1.0, "kept": 120.0}, {"frames": 1000, "new connections": 1000}),
    ],
)
def test_a_rate_that_was_measured_with_an_emptier_table_than_subscribers_fill_says_so(
    results: list[Result], asked: dict[str, Any], fewer: dict[Ended, int]
) -> None:
    """Seen: "carries", by rates with 50,000 connections, of subscribers who fill a table with 600,000."""
    own = Subscribers(100, megabits=2 * A_FRAME, **asked)
    (sizing,) = found = sizings(results, own)
    assert sizing.with_fewer == fewer
    (gateway,) = document(found, own)["gateways"]
    assert set(gateway["with_fewer_connections"]) == set(fewer)
    said = text(found, own)
    assert said.count("entries in the table; with ") == bool(fewer)


@pytest.mark.parametrize(
    ("entries", "used", "left"),
    [
        (0.5, 1000, (5000, 90_000)),
        (10.0, 1000, (5000, 90_000)),
        (10.1, 5000, (1000, 90_000)),
        (901.0, 90_000, (1000, 5000)),
    ],
)
def test_of_rates_with_several_tables_the_next_fuller_one_counts(
    entries: float, used: int, left: tuple[int, ...]
) -> None:
    """Seen: the rate with 1,000,000 connections was that of subscribers who fill a table with 6,000."""
    rates = {1000: 10_000.0, 5000: 8000.0, 90_000: 2000.0}
    results = [_with_table(table, rate) for table, rate in rates.items()]
    other, no_table = (
        _with_table(2000, 9000.0, 1518),
        made([9500.0] * 2, parameters={"directions": "both", "frame_size": 84}),
    )
    asked = Subscribers(100, connections=entries, megabits=2 * A_FRAME, mean_frame=84)
    (sizing,) = sizings([*results, other], asked)
    (limit,) = sizing.limits
    assert (limit.measured.lower, sizing.other_tables) == (rates[used], left)
    assert f"Rates with {left[0]:,} and {left[1]:,} entries in the table were not used: " in text([sizing], asked)
    # A rate that does not say with how many connections it was measured always counts.
    (unsaid,) = sizings([*results, no_table], asked)
    assert unsaid.limits[0].measured.lower == min(rates[used], 9500.0)


def test_where_nobody_knows_how_far_subscribers_fill_the_table_the_lowest_rate_counts() -> None:
    results = [_with_table(1000), _with_table(5000, 8000.0)]
    for asked in (Subscribers(10, megabits=A_FRAME), Subscribers(10, megabits=A_FRAME, new=1.0)):
        (sizing,) = sizings(results, asked)
        assert (sizing.limits[0].measured.lower, sizing.other_tables) == (8000, ())


def test_an_emptier_table_is_said_with_the_answer_that_it_could_change_and_changes_none_by_itself() -> None:
    rate, capacity = _with_table(1000), made([10**6], metric="table-capacity", unit="connections", limited_by="table")
    said = "Frames were measured with 1,000 entries in the table; with {} they can be slower (not measured)."
    for number, fits in ((4000, "carries"), (12_000, "does not carry")):
        asked = Subscribers(number, megabits=2 * A_FRAME, connections=2.0)
        found = sizings([rate, capacity], asked)
        (gateway,) = document(found, asked)["gateways"]
        of_table = said.format(f"{2 * number:,}")
        assert gateway["answer"] == fits
        assert (of_table in gateway["text"]) == (fits == "carries")
        assert text(found, asked).count(of_table) == 1


def test_where_answers_differ_the_first_line_names_who_carries_all() -> None:
    def of(*rates: float) -> list[str]:
        asked, each = Subscribers(1000, new=1.0), []
        for name, rate in zip("abc", rates, strict=False):
            of_name = {"gateway": name, "device_cores": 1}
            ends = [0.9 * rate, 1.1 * rate]
            each.append(made(ends, metric="connection-rate", unit="connections/s", parameters=of_name))
        return [lines[0] for lines in answer_of(sizings(each, asked)).verdicts]

    assert of(2000, 500)[0] == "All 1,000 stay within each known limit of a, not of b."
    assert of(2000, 1000, 500)[0] == "All 1,000 stay within each known limit of a, not of c; cannot tell of b."
    assert of(1000, 500)[0] == "Cannot tell of a; b does not carry all 1,000."
    # None of those with this answer carries them, but another gateway does.
    assert not any("none carries" in line or "neither" in line for line in of(2000, 500, 600))
    assert of(500, 600)[0].startswith("On one core neither carries all 1,000: a carries the new connections of 450 ")


def test_what_was_not_measured_is_named_with_the_first_limit() -> None:
    """Seen: "Frames are the first limit; open connections were not measured" below "up to 2,184 subscribers"."""
    results, asked = _three(401)
    assert answer_of(sized(results, asked)).verdicts[0][4] == (
        "Frames per second are the first limit on one core; with as many cores as all need, table entries are the "
        "first limit, at up to 400 subscribers with the configured limit of 48,000 (whether memory lets it grow was "
        "not measured)."
    )
    unknown = [one for one in results if one.metric == "throughput"]
    assert answer_of(sized(unknown, asked)).verdicts[0][4] == (
        "Frames per second are the first limit of what was measured on one core; new connections and table entries "
        "were not measured."
    )


def test_the_answer_says_for_how_many_subscribers_the_cores_work_and_how_many_cores_all_need() -> None:
    """Seen: "do not carry (placement shared)", and "all need" of which a reader took all for gateways."""
    results, asked = _three(401)
    found = sized(results, asked)
    carried, needed, *beside = answer_of(found).verdicts[0]
    assert carried == (
        "On one core none carries all 401: a carries the frames of 24 to 30 subscribers, b of 22, c of 16, if as many "
        "frames go up as down."
    )
    assert needed == (
        "All 401 need 14 to 17 cores (at least 7 if no frames go up) with a, 19 (at least 10) with b, 25 (at least 13) "
        "with c, if cores add up (not measured), and a table of 48,120 entries."
    )
    # What the number of cores does not contain is beside it, and nowhere else.
    assert beside[:2] == [
        (
            "Frames and new connections were measured with 1,000 entries in the table; with 48,120 they can be slower "
            "(not measured)."
        ),
        "Each limit was measured alone: used together, they may carry fewer.",
    ]
    assert all(text(found, asked).count(line) == 1 for line in beside[:2])
    assert (
        "together 48,120 table entries (at least 120 each: those that it opens in 120 s), " in answer_of(found).question
    )
    (each, *_) = document(found, asked)["gateways"]
    assert each["answer"] == "does not carry"
    # Where the cores are not what ends it first, whether they are carried is the answer.
    (table,) = sizings([OPEN, NEW], Subscribers(600, connections=100.0, new=0.1, kept=1))
    assert answer_of([table]).verdicts[0][0] == "x (cores not known) does not carry 600 subscribers."


@pytest.mark.parametrize(("vlan", "wire"), [(None, 104), ("100", 108)])
def test_all_subscribers_together_take_these_bits_and_frames(vlan: str | None, wire: int) -> None:
    """A frame of 84 octets has 66 of the packet, and 104 on the wire, or 108 with a tag."""
    octets = {"initiator": 84 + (4 if vlan else 0), "responder": 84}
    frames = made([10_000.0] * 2, parameters={"directions": "both", "frame_octets": octets, "initiator_vlan": vlan})
    asked = Subscribers(1000, megabits=2 * A_FRAME)
    together = document(sizings([frames], asked), asked)["all"]
    assert together["megabits"] == pytest.approx(1000 * 2 * A_FRAME)
    assert together["wire_megabits"] == pytest.approx(1000 * 2 * wire * 8 / 1e6)
    assert (together["frames_per_second"], together["mean_frame"]) == (pytest.approx(2000), 84)


def test_a_doubt_that_leaves_the_answer_has_its_mark_alone_and_another_one_its_words() -> None:
    for number, words in ((5000, False), (10, True)):
        results, asked = _three(number)
        found = sized(results[:1], asked)
        said = text(found, asked)
        assert "† may be another value: " in said
        assert ("Could change the answer: undecided" in said) == words
        assert document(found, asked)["gateways"][0]["doubts"] == [
            {"metric": "throughput", "word": "undecided", "grade": "answer", "text": "x"}
        ]


def test_a_page_has_the_costs_below_the_answer_and_then_the_rates(tmp_path: Path) -> None:
    results, asked = _three(5000)
    for result in results:
        keep(Store.create(tmp_path, result.metric, result.gateway), result)
    Store.create(tmp_path, "compare", "nat").write_comparison(compared().document())
    path = tmp_path / "size.html"
    of = ["--subscribers", "5000", "--connections-each", "10", "--new-each", "1", "--mbit-each", "1"]
    assert run(["size", str(tmp_path), *of, "--html", str(path)]) == 1
    lines = lines_of(path.read_text(encoding="utf-8"))
    assert lines[1] == "Which gateway carries 5,000 subscribers?"
    at = [
        next(number for number, line in enumerate(lines) if part in line)
        for part in (
            "5,000 subscribers, each with",
            "On one core none carries all 5,000: ",
            "Subscribers at most",
            "Needed and carried",
            "Cost of a frame",
            "Frames per second without loss",
            "To raise the limit of frames",
        )
    ]
    assert at == sorted(at)
    # The figure of what limits first comes first.
    figures = [
        lines.index(part)
        for part in (
            "Frames per second without loss (frames/s in each direction)",
            "New connections per second (connections/s)",
        )
    ]
    assert figures == sorted(figures)
    assert asked.number == 5000


def test_a_page_begins_with_the_answer(folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "size.html"
    asked = ["size", str(folder), "--subscribers", "1001", "--new-each", "1"]
    assert run([*asked, "--html", str(page)]) == 1
    out, err = capfd.readouterr()
    question, _, answer, *_ = out.splitlines()
    assert err == f"{page}\n"
    html = page.read_text(encoding="utf-8").replace("\u00a0", " ")
    answers = html.partition('<section id="answers">')[2]
    assert answers.lstrip().startswith(f"<p>{question}</p>")
    assert "<h1>Does x carry 1,001 subscribers?</h1>" in html
    assert f'<ul class="answers"><li class="lead">{answer}</li>' in answers
    assert "To raise the limit of new connections" in answers
    assert run([*asked, "--html", "-"]) == 1
    assert capfd.readouterr().out.startswith("<!DOCTYPE html>")
    assert run([*asked, "--html", "-", "--json"]) == 2


def test_the_caption_of_a_table_begins_with_a_capital_and_its_units_keep_theirs(folder: Path) -> None:
    """Seen: "In cores and gbit/s"."""
    collected, asked = find([folder]), Subscribers(1001, new=1.0)
    said = answer_of(sized(collected.results, asked))
    size = replace(said, tables=((("carried, in Gbit/s", "x"), ("frames", "1")),))
    html = html_page.page(collected, lambda *_: "", folder, size=size)
    assert "<caption>Carried, in Gbit/s</caption>" in html


def test_a_folder_that_is_named_twice_counts_once(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    link = tmp_path_factory.mktemp("elsewhere") / "link"
    link.symlink_to(folder)
    once = find([folder])
    children = sorted(folder.iterdir())
    assert len(once.stored) == 3
    for folders in ([folder, folder], [folder, *children], [folder, link], [folder, folder / ".." / folder.name]):
        assert find(folders) == once
    assert [each.folder for each in find([children[2], folder]).stored] == [children[2], *children[:2]]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--mean-frame", "500"], "--mean-frame: 500 says nothing without bits"),
        (["--outside-addresses", "4"], "--outside-addresses: 4 limits nothing here"),
        (["--device-timeout", "1e-10"], "--device-timeout: 1e-10 is outside of its range"),
    ],
)
def test_a_number_that_no_limit_takes_is_refused_in_one_line(
    options: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["size", str(folder), "--subscribers", "10", "--new-each", "1", *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"natgauge: {said}")


@pytest.mark.parametrize("option", ["--connections-each", "--new-each", "--mbit-each"])
def test_less_than_any_subscriber_takes_is_refused_in_one_line(
    option: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With 1e-305 of something each, a result was more subscribers than a float holds: a traceback."""
    asked = ["size", str(folder), "--subscribers", "10", option]
    assert run([*asked, "1e-305"]) == 2
    assert capsys.readouterr().err == f"natgauge: {option}: 1e-305 is outside of its range: 1e-09 to 1e+09\n"
    # The least is carried out; a resource that no result measured is refused with its metric.
    run([*asked, "1e-9"])
    assert "range" not in capsys.readouterr().err
