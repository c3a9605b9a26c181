# SPDX-License-Identifier: Apache-2.0
"""The cause of a failed trial: the counter or the limit that names it, a guess that says so, no contradiction."""

from __future__ import annotations

import random
import subprocess
import tomllib
from bisect import bisect
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import accumulate
from math import exp, lgamma, log, log1p
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.plans import OneTrial, PlanOfTrial
from tests.unit.counted import arrivals, make_counts, make_outcome, make_trial
from tests.unit.fake_engine import FakeEngine
from tests.unit.fake_measurer import FakeLab, Recorder, measurer
from tests.unit.golden import Golden
from tests.unit.made_settings import stored_alone
from tests.unit.simulated import Gateway, reading
from tests.unit.test_explain import ALL, FEWER, FULL, trial
from tests.unit.test_explain import PORTS as PORTS_OF_TRIAL
from tests.unit.test_explain import USED_UP as PORTS
from tests.unit.test_host_limits import OPENED
from tests.unit.test_host_limits import made as of_hosts

from natgauge import causes
from natgauge.causes.cause import Cause, FullTable, Kind, counters, facts_of, kinds, most_frequent, of_share
from natgauge.causes.hops import TableState, cause_of, hops_of
from natgauge.gateways.recipe import load
from natgauge.labs.common.links import counters_of, of_one_machine
from natgauge.labs.contract import LabCounters
from natgauge.measurements.record import make
from natgauge.notes import Note
from natgauge.procedures.kit.procedure import of_search, with_cause
from natgauge.procedures.kit.results import Attempt, Measurement, make_result
from natgauge.readings import Readings
from natgauge.records.parameters import Parameters
from natgauge.reports.failures import refined
from natgauge.reports.main_figure import bottleneck
from natgauge.trial_record import hops_in
from natgauge.trials import Direction, Phase2Plan
from natgauge.verdicts import Limits
from natgauge.words import Verdict

FORGOTTEN = {**FEWER, "UdpNoPorts": 300}
#: Names as in the kernel's file.
CHAINS = {"conntrack chainlength": 300, "conntrack insert_failed": 300}
TOO_BIG = {"Ip6InTooBigErrors": 100, "Ip6FragFails": 100}
FILTERED = {**ALL, "qdisc ng0o clsact": 300}
#: As `FEWER`, and the gateway has frames of both families.
NONE = TableState()
LEAKED = {"untranslated": 300}
BOTH = {"initiator": {"family": "ipv4"}, "responder": {"family": "ipv4"}}


def found(
    network: Mapping[str, int] | None, table: TableState | None = None, *, opens: bool = True, **others: Any
) -> Cause:
    """The cause of a trial that lost 300 of 1000 frames."""
    return cause_of(hops_of(trial(300, network, **others)), table or TableState(), opens=opens)


def told(**counts: int) -> dict[str, Any]:
    """What the gateway counts itself."""
    return {"device_faults": counts}


@pytest.mark.parametrize(
    ("network", "table", "others", "named"),
    [
        (FULL, TableState(700, 700), {}, ("table", "seen", "conntrack drop")),
        (FULL, TableState(700, None), {}, ("table", "seen", "conntrack drop")),
        ({**ALL}, TableState(700, 700), {}, ("table", "seen", "")),
        ({**ALL, "conntrack early_drop": 9}, TableState(700, None), {}, ("table", "guess", "conntrack early_drop")),
        # A known limit that was not reached excludes the table, whatever counts the frames.
        (FULL, TableState(700, 2000), {}, ("not known", "guess", "conntrack drop")),
        # Read before the last connections were opened, which may have filled it.
        (FULL, TableState(700, 740, 50), {}, ("table", "seen", "conntrack drop")),
        (FULL, TableState(700, 800, 50), {}, ("not known", "guess", "conntrack drop")),
        # Read after Linux had removed connections from it: it does so down to 95 %.
        (FULL, TableState(670, 700), {}, ("table", "seen", "conntrack drop")),
        (FULL, TableState(660, 700), {}, ("not known", "guess", "conntrack drop")),
        ({**ALL, "conntrack early_drop": 9}, TableState(670, 700), {}, ("table", "guess", "conntrack early_drop")),
        ({**ALL, "conntrack early_drop": 9}, TableState(700, 2000), {}, ("not known", "guess", "")),
        ({**ALL}, TableState(700, 2000), {}, ("not known", "guess", "")),
        (PORTS, TableState(700, 2000), {}, ("port pool", "seen", "conntrack insert_failed")),
        # Linux removes connections from a table that is nearly full, and their next frames belong to none.
        (FORGOTTEN, TableState(670, 700), {}, ("table", "guess", "UdpNoPorts")),
        (FORGOTTEN, TableState(660, 700), {}, ("forgotten", "seen", "UdpNoPorts")),
        ({}, NONE, {"device_faults": {"out_of_ports": 300}}, ("port pool", "seen", "out_of_ports")),
        ({}, NONE, {"device_faults": {"JSTAT_ENOMEM": 300}}, ("memory", "seen", "JSTAT_ENOMEM")),
        # Jool: a used-up pool4 is an entry that could not be made, and for TCP an error without a name.
        ({}, NONE, {"device_faults": {"JSTAT_BIB6_NOT_FOUND": 300}}, ("port pool", "seen", "JSTAT_BIB6_NOT_FOUND")),
        ({}, NONE, {"device_faults": {"JSTAT_UNKNOWN": 300}}, ("port pool", "guess", "JSTAT_UNKNOWN")),
        ({}, NONE, {"device_faults": {"JSTAT_BIB4_NOT_FOUND": 300}}, ("forgotten", "seen", "JSTAT_BIB4_NOT_FOUND")),
        # Of pf: the limit of a rule; that of all states is "memory".
        ({}, NONE, {"device_faults": {"state-limit": 300}}, ("rule", "seen", "state-limit")),
        ({}, NONE, {"device_faults": {"memory": 300}}, ("table", "seen", "memory")),
        ({}, NONE, {"device_faults": {"translate": 300}}, ("port pool", "seen", "translate")),
        ({}, NONE, {"device_faults": {"map-failed": 300}}, ("port pool", "seen", "map-failed")),
        ({}, NONE, {"device_faults": {"state-insert": 300}}, ("port pool", "seen", "state-insert")),
        ({}, NONE, {"device_faults": {"congestion": 300}}, ("backlog", "seen", "congestion")),
        ({}, NONE, {"device_faults": {"odd": 300}}, ("gateway", "seen", "odd")),
        ({}, NONE, told(no_open_file=300), ("open files", "seen", "no_open_file")),
        # A program that counts what its sockets had no room for, with and without the kernel's counter of the same.
        ({}, NONE, told(socket=300), ("process", "seen", "socket")),
        ({**FEWER, "Udp6RcvbufErrors": 300}, NONE, told(socket=300), ("process", "seen", "Udp6RcvbufErrors")),
        # natgauge-softwire is a filter of tc; its `too_big` is no ICMP error that the tester received.
        (FILTERED, NONE, told(wrong_port_set=300), ("gateway", "seen", "softwire wrong_port_set")),
        (FILTERED, NONE, told(too_big=300), ("path mtu", "seen", "softwire too_big")),
        (FILTERED, NONE, told(no_checksum=9), ("filter", "seen", "qdisc ingress")),
        # Jool gives the kernel the frames of no connection.
        (
            {"UdpNoPorts": 300},
            TableState(690, 700),
            told(JSTAT_BIB4_NOT_FOUND=300),
            ("forgotten", "seen", "JSTAT_BIB4_NOT_FOUND"),
        ),
        # The kernel counts such a frame as one that was not inserted, too, and an IPv6 one that is too big twice.
        ({**FEWER, **CHAINS}, NONE, {}, ("hash chain", "seen", "conntrack chainlength")),
        ({**FEWER, **TOO_BIG}, NONE, {}, ("rule", "seen", "received, but not sent")),
        (FEWER, NONE, {}, ("rule", "seen", "received, but not sent")),
        ({**FEWER, "conntrack invalid": 300}, NONE, {}, ("invalid", "seen", "received, but not sent")),
        ({**ALL, "qdisc ng0o tbf": 300}, NONE, {}, ("queue", "seen", "qdisc tbf")),
        ({**ALL, "qdisc ng0i clsact": 300}, NONE, {}, ("filter", "seen", "qdisc ingress")),
        ({**ALL, "tun tun0:nat in": 1000, "tun tun0:nat out": 700}, NONE, {}, ("process", "seen", "tun kept")),
        ({**ALL, "tun tun0:nat dropped": 300}, NONE, {}, ("process", "seen", "tun full")),
        ({**FEWER, "IpExtInNoRoutes": 300}, NONE, {}, ("route", "seen", "IpExtInNoRoutes")),
        ({**FEWER, "TcpExtIPReversePathFilter": 300}, NONE, {}, ("reverse path", "seen", "TcpExtIPReversePathFilter")),
        ({**FEWER, "IpFragFails": 300}, NONE, {}, ("path mtu", "seen", "IpFragFails")),
        ({**FEWER, "IpOutDiscards": 300}, NONE, {}, ("memory", "guess", "IpOutDiscards")),
        ({**FEWER, "Ip6OutDiscards": 300}, NONE, {}, ("IPv6 off", "guess", "Ip6OutDiscards")),
        ({**ALL}, NONE, {"arrived": {"untranslated": 300}}, ("no translation", "seen", "untranslated")),
        ({**ALL, "conntrack invalid": 300}, NONE, {"arrived": LEAKED}, ("invalid", "seen", "untranslated")),
        (
            {**ALL},
            TableState(700),
            {"arrived": {"untranslated": 300}, "device_count_after": 700},
            ("untracked", "seen", "untranslated"),
        ),
        ({**ALL}, NONE, {"arrived": {"damaged": 300}}, ("checksum", "seen", "damaged")),
        ({**ALL, "IpFragCreates": 600}, NONE, {"arrived": {"damaged": 600}}, ("path mtu", "seen", "damaged")),
        ({**ALL}, NONE, {"arrived": {"mistranslated": 300}}, ("pool address", "seen", "mistranslated")),
        ({**ALL}, NONE, {"arrived": {"late": 300}}, ("late", "seen", "late")),
        ({**ALL}, NONE, {"dropped": {"gateway inside card ring": 300}}, ("ring", "seen", "card ring")),
        (None, NONE, {}, ("not known", "guess", "")),
    ],
)  # fmt: skip
def test_the_cause_is_what_a_counter_or_a_reached_limit_names(
    network: Mapping[str, int] | None, table: TableState, others: Any, named: tuple[str, str, str]
) -> None:
    cause = found(network, table, **others)
    assert (cause.kind, cause.certainty, cause.counter) == named
    assert cause.frames <= cause.lost == 300


def beside_flood(lost: int, of_flood: int, network: Mapping[str, int]) -> Cause:
    """The cause of a trial that lost so many of 1000 openings, beside a flood of 1000 frames that lost others."""
    record = trial(0, network)
    counts = {"intended_frames": 1000, "offered_frames": 1000}
    streams = {"openings": lost, "flood": of_flood}
    record["result"]["phase2"] = {name: {**counts, "received_frames": 1000 - each} for name, each in streams.items()}
    return cause_of(hops_of(record), NONE, opens=True)


@pytest.mark.parametrize(
    ("lost", "of_flood", "counted", "named"),
    [
        # All that was counted may be of the flood.
        (5, 900, {"conntrack insert_failed": 900}, ("not known", "guess", "conntrack insert_failed")),
        (5, 900, {"conntrack drop": 905}, ("table", "seen", "conntrack drop")),
        (0, 900, {"conntrack drop": 900}, ("not known", "guess", "")),
        (5, 0, {"conntrack insert_failed": 5}, ("clash", "guess", "conntrack insert_failed")),
        (500, 0, {"conntrack insert_failed": 500}, ("port pool", "seen", "conntrack insert_failed")),
        (5, 900, {"IpInNoRoutes": 900}, ("route", "guess", "IpInNoRoutes")),
    ],
)
def test_counters_that_fit_the_loss_of_a_flood_name_no_limit_of_the_others(
    lost: int, of_flood: int, counted: Mapping[str, int], named: tuple[str, str, str]
) -> None:
    """A flood that its own host's limit refused made the table the bottleneck of all."""
    cause = beside_flood(lost, of_flood, counted)
    assert (cause.kind, cause.certainty, cause.counter) == named
    assert cause.lost == lost


@pytest.mark.parametrize(
    ("network", "faults"),
    [
        ({"Udp6RcvbufErrors": 300}, {"socket": 300}),
        ({"qdisc ng0o clsact": 300}, {"too_big": 200, "no_subscriber": 100}),
        ({"UdpNoPorts": 300}, {"JSTAT_BIB4_NOT_FOUND": 300}),
    ],
)
def test_a_frame_that_a_gateway_and_its_kernel_count_is_one_lost_frame(
    network: Mapping[str, int], faults: Mapping[str, int]
) -> None:
    assert sum(hop.lost for hop in hops_of(trial(300, network, device_faults=faults)).hops) == 300


def test_a_full_table_that_has_room_for_all_connections_is_no_cause_of_a_small_loss() -> None:
    """50 frames of 100,000 that a ring lost were the table's, where --table-size was the number of connections."""
    lossy: dict[str, Any] = {"dropped": {"gateway inside card ring": 300}}
    enough, short = (TableState(999_700, 1_000_000, offered=number) for number in (1_000_000, 1_000_001))
    assert found(ALL, enough, **lossy).kind == "ring"
    assert found(ALL, enough).kind == "not known"
    assert found(ALL, short, **lossy).kind == "table"
    assert (found(FULL, enough).kind, found(FULL, enough).certainty) == ("table", "seen")


def test_an_old_kernel_accuses_no_rule_of_frames_that_a_translator_takes_before_it_forwards() -> None:
    """Jool on Linux 6.6: IP receives all frames and forwards none, and all that were lost were a rule's."""
    taken = {"Ip6InReceives": 1000}
    assert found(taken).kind == "not known"
    assert found({**taken, "IpForwDatagrams": 699}).kind == "not known"
    assert found({"IpInReceives": 1000, "IpForwDatagrams": 700}).kind == "rule"
    # IP receives what a flow table does not take.
    assert found({"IpInReceives": 310, "IpForwDatagrams": 10}).kind == "rule"


def test_a_process_that_sends_frames_another_way_than_it_reads_them_keeps_none() -> None:
    """Open vSwitch reads its own port and sends out of another one: every lost frame was its process's."""
    switch = {"tun switch:ovs-vswitchd in": 1000, "tun switch:ovs-vswitchd out": 3}
    assert found({**ALL, **switch}).kind == "not known"
    # Frames the other way are written to the port.
    assert found({**ALL, **switch, "tun switch:ovs-vswitchd out": 350}).kind == "not known"
    assert found({**ALL, "tun tun0:nat in": 1000, "tun tun0:nat out": 700}).kind == "process"
    # Each exchange has two packets: the requests went another way.
    asked = {"messages": [{"name": "query", "received": 1000}, {"name": "response", "received": 700}]}
    assert found({**ALL, "tun tun0:nat in": 1300, "tun tun0:nat out": 700}, arrived=asked).kind == "not known"
    # Native IPv6 in the background is no packet of the process.
    beside = {**ALL, "tun tun0:nat in": 900, "tun tun0:nat out": 600}
    assert found(beside, arrived={"background_received": 100}).kind == "process"
    every = trial(1000, {**ALL, "tun tun0:nat in": 1000})
    assert cause_of(hops_of(every), NONE, opens=True).kind == "process", "it wrote nothing, and nothing arrived"


def test_the_messages_of_a_trial_that_has_just_ended_are_packets_as_those_of_its_record() -> None:
    """Its cause was found without the messages of phase 2, and differed from what `natgauge explain` said."""
    asked = make_counts(1000, 1000, 700, messages=(arrivals("query", 1000), arrivals("response", 700)))
    network = {"gateway": {**ALL, "tun tun0:nat in": 1300, "tun tun0:nat out": 700}}
    ended = make_trial(
        PlanOfTrial(1000, 1000.0, Phase2Plan(1000.0, 0.0, 1.0)),
        phase1=make_counts(0, 0, 0),
        phase2={Direction.INITIATOR: asked},
        readings=Readings(network_counters=network),
    )
    assert "tun kept" not in {counter.name for hop in hops_in(ended).hops for counter in hop.counters}


def test_ports_that_linux_did_not_find_are_not_called_used_up() -> None:
    """Of a range of more than 128 ports it tries 248, then gives up."""
    assert "found none free" in kinds()["port pool"].words
    assert "248" in facts_of("conntrack insert_failed").also


@pytest.mark.parametrize(("held", "kind"), [(700, "untracked"), (990, "no translation")])
def test_connections_without_an_entry_are_compared_with_the_frames_that_opened(held: int, kind: str) -> None:
    """Seen where chance had more untranslated frames in phase 2 than in phase 1: the cause was a missing rule."""
    record = trial(300, ALL, arrived=LEAKED, device_count_after=held)
    again = {"intended_frames": 1000, "offered_frames": 1000, "received_frames": 500, "untranslated": 500}
    record["result"]["phase2"] = {"initiator": again}
    assert cause_of(hops_of(record), TableState(held), opens=True).kind == kind


def test_what_else_leaves_connections_without_an_entry_is_not_said_where_they_were_not_translated() -> None:
    """Seen: rules "which keep frames out of connection tracking", then "entries that ended before the count"."""
    leaked = hops_of(trial(300, ALL, arrived=LEAKED, device_count_after=700))
    (facts,) = (each.facts for hop in leaked.hops for each in hop.counters if each.name == "without entry")
    assert not facts.also
    assert facts_of("without entry").also
    assert "rules" not in kinds()["untracked"].words, "nobody knows of any"


def test_few_failed_entries_may_be_two_cores_at_once() -> None:
    hops = hops_of(trial(5, {**ALL, "IpOutTransmits": 995, "conntrack drop": 5, "conntrack insert_failed": 5}))
    cause = cause_of(hops, TableState(995, 2000), opens=True)
    assert (cause.kind, cause.certainty, cause.limited_by) == ("clash", "guess", "device")


def test_frames_that_open_nothing_are_refused_by_no_table() -> None:
    assert found(FULL, opens=False).certainty == found(PORTS, opens=False).certainty == "guess"


def test_ipv6_that_natgauge_switched_off_loses_no_ipv4_frame() -> None:
    chatter = {**ALL, "Ip6InReceives": 300, "Ip6InDiscards": 300}
    assert found(chatter, request=BOTH).kind == "not known"
    assert found({**chatter, "Ip6OutTransmits": 9}, request=BOTH).kind == "IPv6 off", "it is one part of a chain"
    over6 = {side: {"family": "ipv6"} for side in BOTH}
    assert found({"Ip6InReceives": 300, "Ip6InDiscards": 300}, request=over6).kind == "IPv6 off"


def test_what_was_seen_of_a_mistranslated_frame_is_told_with_what_was_expected(golden: Golden) -> None:
    strayed = {"mistranslated_address": "198.18.0.99", "mistranslated_port": 1024}
    ports = {**PORTS_OF_TRIAL, "responder": {**PORTS_OF_TRIAL["responder"], **strayed}}
    pool = {"translation": {"pool": {"first": "198.19.0.1", "last": "198.19.0.4"}}}
    cause = found(ALL, arrived={"mistranslated": 300}, ports=ports, request=pool)
    golden(cause.words)
    assert found(ALL, arrived={"mistranslated": 300}, ports=ports).words.endswith("(source 198.18.0.99, port 1024)")


def test_events_are_never_more_frames_than_were_lost() -> None:
    hops = hops_of(trial(300, ALL, arrived={"damaged": 600}))
    assert hops.losing is not None
    assert (hops.losing.lost, hops.lost_at(hops.losing)) == (600, 300)
    assert cause_of(hops, TableState(), opens=True).frames == 300


@pytest.mark.parametrize("known", [None, 2000])
def test_a_number_that_is_held_at_every_rate_is_no_full_table_below_a_known_limit(known: int | None) -> None:
    causes = [Cause("not known", lost=300, held=700, limit=known)] * 4
    cause = of_share(causes, kept=700, is_number=True)
    assert (cause.kind, cause.held) == ("table" if known is None else "not known", 700)
    assert cause.certainty == "guess"
    assert of_share(causes, kept=700, is_number=False).kind == "not known"
    named = [Cause("port pool", "seen"), *causes]
    assert of_share(named, kept=700, is_number=True).kind == "port pool"


def test_rules_that_a_lower_rate_passes_limit_the_rate() -> None:
    rule = Cause("rule", "seen", hop="rules")
    assert of_search([rule], passed=True).kind == "rate limit"
    assert of_search([rule], passed=False) == rule
    assert refined(rule, of_search([rule], passed=True)).kind == "rate limit"
    assert refined(rule, Cause("table")) == rule, "a measurement changes no counter's word"
    assert most_frequent([Cause("not known"), Cause("not known"), rule]) == rule


def searched(value: float, upper: float, *tried: tuple[float, OneTrial], notes: Sequence[Note] = ()) -> Measurement:
    """A repetition that ended so, with the cause of its trials."""
    attempts = tuple(Attempt(load, short=False, outcome=outcome) for load, outcome in tried)
    return with_cause(Measurement(value, upper, "device", {}, attempts=attempts, notes=tuple(notes)))


def failed_by(cause: Cause) -> OneTrial:
    """A trial that lost one of 1000 frames for this cause."""
    return make_outcome(Verdict.FAIL, "", phase1=make_counts(1000, 1000, 999), cause=cause, limited_by="device")


PASSED = make_outcome(Verdict.PASS, "", phase1=make_counts(1000, 1000, 1000))


@pytest.mark.parametrize(("rare", "kind"), [(False, "rate limit"), (True, "rule")])
def test_a_rule_that_drops_a_frame_now_and_then_limits_no_rate(rare: bool, kind: str) -> None:  # noqa: FBT001
    """A NAT that drops every 20,000th frame was told to have a rule that limits the rate."""
    tried = (100.0, PASSED), (200.0, failed_by(Cause("rule", "seen", hop="rules")))
    measurement = searched(100.0, 200.0, *tried, notes=[Note("rare loss", "x")] * rare)
    assert measurement.cause is not None
    assert measurement.cause.kind == kind


@pytest.mark.parametrize("kind", ["checksum", "not known"])
def test_rare_loss_has_the_cause_of_its_trials_and_what_changes_that(kind: Kind, golden: Golden) -> None:
    """Seen: UDP checksums of 0, which --zero-checksum accepts. The advice was to find the cause, or to tolerate it."""
    checksum = facts_of("without_checksum")
    cause = Cause(kind, "seen", hop="out", counter=checksum.name, remedy=checksum.knob, frames=1, lost=1)
    late = Cause("late", "seen", hop="tester in")
    tried = [(100.0, PASSED), (200.0, failed_by(cause)), *((load, failed_by(late)) for load in (210.0, 220.0))]
    of_rate = Note("queues", "x", grade="interval")
    measurement = searched(100.0, 200.0, *tried, notes=[Note("rare loss", "1 of 1,000 frames was lost"), of_rate])
    assert measurement.cause is not None
    assert measurement.cause.kind == kind
    assert measurement.notes[1] == of_rate
    result = make(make_result("throughput", "frames/s", {}, [measurement]), Parameters())
    golden([measurement.notes[0].text, bottleneck(result)])


def test_a_failure_that_other_trials_of_its_load_outvoted_is_no_cause() -> None:
    """One FAIL at a quarter of the answer, by a single frame, named the cause of the whole search."""
    chance, ring = (Cause("rule", "seen", hop="rules"), Cause("ring", "seen", hop="gateway", counter="card ring"))
    passed = ((load, PASSED) for load in (100.0, 100.0, 400.0))
    measurement = searched(400.0, 404.0, (100.0, failed_by(chance)), *passed, (404.0, failed_by(ring)))
    assert measurement.cause is not None
    assert measurement.cause.kind == "ring"


class _Ports(Gateway):
    """Refuses connections beyond 16,000 for lack of outside ports, at a known limit of far more."""

    refused_by: tuple[str, ...] = ()

    def limits(self) -> Limits:
        return Limits(262_144)

    def _trial(self, plan: PlanOfTrial) -> Any:
        trial = super()._trial(plan)
        return reading(trial, network_counters={"gateway": dict.fromkeys(self.refused_by, trial.phase1.lost)})


def ports(*counters: str) -> Gateway:
    """A gateway of 16,000 connections whose limit is known to be higher; these counters rise."""
    gateway = _Ports(table_size=16_000, knows_limit=True)
    gateway.refused_by = counters
    return gateway


def test_no_search_calls_a_table_full_below_its_known_limit(golden: Golden) -> None:
    silent, named = (
        stored_alone("connection-rate", gateway, connections=24_000)
        for gateway in (ports(), ports("conntrack insert_failed"))
    )
    assert (silent.median, silent.limited_by) == (0, "device")
    assert (named.median, named.limited_by) == (0, "port pool")
    assert named.cause is not None
    assert (named.cause.kind, named.cause.certainty, named.cause.limit) == ("port pool", "seen", 262_144)
    golden(bottleneck(named))
    assert "table" not in bottleneck(silent)
    (doubt,) = (one for one in silent.doubts if one.word == "loss at every rate")
    golden(doubt.text)


def test_a_guess_says_so_in_the_headline(golden: Golden) -> None:
    result = stored_alone("connection-rate", Gateway(table_size=16_000, knows_limit=False), connections=24_000)
    assert (result.limited_by, result.cause and result.cause.certainty) == ("table", "guess")
    golden(bottleneck(result))


def test_every_cause_of_a_counter_has_its_words() -> None:
    text = resources.files(causes).joinpath("counters.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(text)["counters"]
    named = [row["cause"] for row in rows] + [case["cause"] for row in rows for case in row.get("cases", ())]
    assert set(named) <= set(kinds()) == set(get_args(Kind))
    assert {facts_of(row["name"]).name for row in rows} == {row["name"] for row in rows}
    assert all(row.words for row in kinds().values())


def test_jools_counters_of_lost_frames_are_read_and_no_others(tmp_path: Path) -> None:
    read = {"JSTAT_ENOMEM": "2", "JSTAT_BIB6_NOT_FOUND": "300", "JSTAT_BIB4_NOT_FOUND": "4", "JSTAT_UNKNOWN": "5"}
    said = {**read, "JSTAT_SUCCESS": "9", "JSTAT_UNKNOWN_L4_PROTO": "9", "JSTAT64_TTL": "9"}
    jool = tmp_path / "jool"
    lines = [f"echo {name},{number}" for name, number in said.items()]
    jool.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    jool.chmod(0o755)
    (snippet,) = load("jool-nat64").verbs.pieces("faults")
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(["/bin/sh", "-euc", snippet], env=environment, check=True, capture_output=True, text=True)
    assert dict(line.split() for line in done.stdout.splitlines()) == read
    assert all(facts_of(name).name == name for name in read)


def test_who_is_sent_to_the_log_of_invalid_frames_is_told_all_that_it_needs() -> None:
    """In a namespace nothing is logged without the setting of the machine, and nothing anywhere without a logger."""
    rows = counters().values()
    knobs = [*(row.knob for row in rows), *(case.knob for row in rows for case in row.cases)]
    told = [knob for knob in knobs if "nf_conntrack_log_invalid" in knob]
    assert len(told) == 3
    for needed in ("nf_conntrack_log_invalid=255", "nf_log_all_netns=1", "modprobe nf_log_syslog"):
        assert all(needed in knob for knob in told)


def test_counters_of_the_kernel_are_explained_as_it_counts() -> None:
    # IPv4 has an error of its own for routes of these types, and a counter of its own for the reverse path filter.
    assert facts_of("IpInNoRoutes").also == "IPv6 routes of the types unreachable and prohibit"
    # IP does not learn of a neighbour that does not answer.
    assert "neigh" not in facts_of("IpOutDiscards").meaning + facts_of("IpOutDiscards").knob
    assert "conf.all.rp_filter" in facts_of("TcpExtIPReversePathFilter").knob
    assert "younger than 2 s" in facts_of("conntrack early_drop").meaning


def test_a_capacity_that_ports_limit_is_not_the_table() -> None:
    found = stored_alone("table-capacity", ports("conntrack insert_failed"), connections=24_000)
    assert found.limited_by == "port pool"


def test_an_outcome_keeps_its_cause() -> None:
    outcome = ports("conntrack insert_failed").measure(PlanOfTrial(24_000, 1000.0))
    assert isinstance(outcome, OneTrial)
    assert outcome.cause is not None
    assert outcome.limited_by == outcome.cause.limited_by == "port pool"


def test_a_syn_proxy_is_the_cause_of_what_conntrack_then_calls_invalid() -> None:
    """The check named the proxy, and then `ct state invalid` as the cause."""
    messages = [{"name": "syn", "received": 0, "wrong": 0}, {"name": "syn-ack", "received": 0, "wrong": 1000}]
    network = {**ALL, "IpOutTransmits": 0, "conntrack invalid": 2000}
    proxied = cause_of(hops_of(trial(1000, network, arrived={"messages": messages})), NONE, opens=True)
    assert (proxied.kind, proxied.certainty) == ("answers", "seen")
    messages = [{"name": "syn", "received": 1000, "wrong": 0}, {"name": "syn-ack", "received": 0, "wrong": 1000}]
    renumbered = cause_of(hops_of(trial(1000, network, arrived={"messages": messages})), NONE, opens=True)
    assert renumbered.kind == "invalid"


@pytest.mark.parametrize(
    ("table", "thrown_out", "numbers"),
    [
        (
            FullTable(19_968, 18_731, 16_384, {"early_drop": 4585, "drop": 2305, "insert_failed": 0}),
            2347,
            "1,237 2,347",
        ),
        (FullTable(20_000, 16_384, 16_384, {"drop": 3616}), 0, "3,616"),
        (FullTable(20_000, 20_000, 16_384, {}), 3616, "3,616"),
        (FullTable(10, 10, 12, {}), 0, ""),
    ],
)
def test_refused_and_thrown_out_connections_are_told_apart(table: FullTable, thrown_out: int, numbers: str) -> None:
    assert table.thrown_out == thrown_out
    text = str(table)
    assert all(number in text for number in numbers.split())
    assert "insert_failed" not in text


# Counters


def test_each_counter_is_read_from_its_file_and_cpus_are_added_up() -> None:
    texts = {
        "snmp": ["Ip: Forwarding InReceives", "Ip: 1 466", "Icmp: InMsgs", "Icmp: 4", "Tcp: MaxConn", "Tcp: -1"],
        "netstat": ["IpExt: InNoRoutes", "IpExt: 3"],
        "snmp6": ["Ip6InReceives  \t7", "Udp6NoPorts 2"],
        "softnet_stat": ["000000ff 00000010 00000000 00", "00000001 00000001 00000002 00"],
        "stat/nf_conntrack": ["entries drop invalid", "00000009 0000000a 00000000", "00000009 00000001 00000001"],
    }
    assert counters_of(texts) == {
        "IpForwarding": 1,
        "IpInReceives": 466,
        "IcmpInMsgs": 4,
        "TcpMaxConn": -1,
        "IpExtInNoRoutes": 3,
        "Ip6InReceives": 7,
        "Udp6NoPorts": 2,
        "conntrack drop": 11,
        "conntrack invalid": 1,
        "softnet processed": 256,
        "softnet dropped": 17,
        "softnet time_squeeze": 2,
    }
    assert counters_of({"stat/nf_conntrack": [], "snmp": []}) == {}


def test_a_trial_stores_the_counters_that_rose_during_it() -> None:
    class Counting(FakeLab):
        reads = 0

        def counters(self) -> LabCounters:
            self.reads += 1
            return LabCounters(self.drops, network={"gateway": {"IpInReceives": 10 * self.reads, "IpDefaultTTL": 64}})

    recorder, engine = Recorder(), FakeEngine()
    counting = measurer(engine, recorder=recorder, place=Counting())
    counting.measure(PlanOfTrial(1000, 500.0))
    assert recorder.trials[0]["network_counters"] == {"gateway": {"IpInReceives": 10}}
    without = Recorder()
    measurer(FakeEngine(), recorder=without).measure(PlanOfTrial(1000, 500.0))
    assert without.trials[0]["network_counters"] is None, "this lab reads none"


def test_the_backlogs_of_a_machine_are_those_of_no_single_device_on_it() -> None:
    assert of_one_machine({"gateway": {"softnet dropped": 300}}, 1) == {"gateway": {"softnet dropped": 300}}
    assert of_one_machine({}, 2) == {}, "no kernel was read"
    read = {device: {**ALL, "softnet dropped": 300, "softnet processed": 2000} for device in ("ce", "pe")}
    of_all = {"softnet dropped": 300, "softnet processed": 2000}
    assert of_one_machine(read, 2) == {"": of_all, "ce": ALL, "pe": ALL}


def test_each_row_of_the_table_is_found_by_its_own_name(golden: Golden) -> None:
    assert facts_of("Ip6InNoRoutes").name == facts_of("IpExtInNoRoutes").name == "IpInNoRoutes"
    golden(facts_of("odd_frames"))


# A limit for each inside host


def kept_of(opened: Sequence[int], stored: Sequence[int], network: Mapping[str, int] = FEWER) -> Cause:
    """The cause of a trial of hosts of which each opened some connections, and kept some of these."""
    return cause_of(hops_of(of_hosts(opened, stored, network)), TableState(), opens=True)


@cache
def up_to(number: int, share: float) -> Sequence[float]:
    """Probabilities that of this number of connections at most 0, 1, 2 ... are kept where this share is lost."""
    ways = (lgamma(number + 1) - lgamma(kept + 1) - lgamma(number - kept + 1) for kept in range(number))
    chances = (way + (number - kept) * log(share) + kept * log1p(-share) for kept, way in enumerate(ways))
    return list(accumulate(map(exp, chances)))


@pytest.mark.parametrize("share", [0.01, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("hosts", [4, 16])
def test_a_loss_by_share_is_hardly_ever_taken_for_a_limit(share: float, hosts: int) -> None:
    chance, wrong = random.Random(hosts), 0  # noqa: S311 - made up
    for _ in range(200):
        opened = [1000 + chance.randrange(-30, 31) for _ in range(hosts)]
        stored = [bisect(up_to(number, share), chance.random()) for number in opened]
        wrong += kept_of(opened, stored).kind == "host limit"
    assert wrong <= 4


def test_where_a_lower_rate_passes_the_limit_is_one_of_the_rate_of_each_host(golden: Golden) -> None:
    cause = kept_of(OPENED, (500, 501, 500, 500))
    assert cause.limited_by == "device"
    whole = of_search([cause], passed=True)
    assert whole.kind == "rate limit"
    golden(whole.words)
    assert refined(cause, whole).kind == "rate limit"
    assert of_search([cause], passed=False).kind == "host limit"
    assert of_share([cause], kept=2000, is_number=True).kind == "host limit"
    unseen = kept_of(OPENED, (500, 500, 500, 500), ALL)
    assert of_search([unseen], passed=True).kind == "not known"
