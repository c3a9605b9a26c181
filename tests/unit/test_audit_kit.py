# SPDX-License-Identifier: Apache-2.0
"""The parts of an audit by themselves: hosts that open flows, time-outs that were seen, examinations in odd states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address
from itertools import cycle, pairwise
from random import Random

import pytest
from tests.unit.golden import Golden
from tests.unit.simulated_audits import KEYS, WAIT, SimulatedAudit
from tests.unit.simulated_nat import COMPUTED, OUTSIDE, Behaviour, examiner_of, forgetful, of_host, to_second
from tests.unit.simulated_nat64 import Nat64

from natgauge.audits.audit import examine
from natgauge.audits.kit import crowd
from natgauge.audits.kit.classes import MAPPING_FLOWS, PortsSeen, are_random, hairpinned
from natgauge.audits.kit.crowd import Crowd
from natgauge.audits.kit.examiner import Examiner, NotApplicableError, NotSeenError
from natgauge.audits.kit.hosts import LEAST_ALLOWANCE, RESERVED, TEAM, Flows, InsideHosts, hosts_needed
from natgauge.audits.kit.packets import SYN, Endpoint, ErrorMessage, Flow, Packet, TcpSegment, described, read_packet
from natgauge.audits.kit.timers import (
    ICMP_ERROR,
    ICMP_QUERY,
    REFRESHED_OUT,
    TIMERS,
    UDP_BOTH,
    UDP_ERROR,
    UDP_OUT,
    Refreshed,
    TimerKind,
    TimerSeen,
    expected,
    idle_times,
    plan,
    watch,
)
from natgauge.audits.requirements import NO_FLOWS, Requirement, port_rules, requirements, unknown
from natgauge.audits.requirements import classes as class_rules
from natgauge.records.audit import AuditedRequirement
from natgauge.words import Side


def of(*keys: str) -> list[Requirement]:
    """These requirements, for UDP where it is one of their transports."""
    chosen = [one for one in requirements() if one.key in keys]
    return [replace(one, transports=("udp",)) if "udp" in one.transports else one for one in chosen]


#: Behaviour in which examinations open the most flows; each of it is the one in which some do.
BUSY = (
    Behaviour(nat64=Nat64()),
    Behaviour(udp_seconds=30.0),
    Behaviour(ports="preserving", udp_seconds=180.0),
    Behaviour(addresses=2, host_ports=1600),
    Behaviour(filtering="address-dependent"),
)


def test_each_examination_opens_as_many_flows_as_it_declares_at_most() -> None:
    most: dict[str, int] = {}
    few = [one for one in requirements() if not one.flows.are_many]
    for behaviour in BUSY:
        for one in few:
            examiner = examiner_of(behaviour)
            if one.timers and one.flows.each and behaviour.udp_seconds < WAIT / 2:
                watched = [kind for kind in TIMERS if kind.name in one.timers]
                examiner.timers.update(watch(examiner, watched, WAIT))
            for transport in one.transports:
                examiner.begin(transport)
                before = {host: examiner.inside.opened(host) for host in examiner.inside.every}
                with suppress(NotSeenError, NotApplicableError):
                    one.examine(examiner)
                opened = (examiner.inside.opened(host) - number for host, number in before.items())
                most[one.key] = max(most.get(one.key, 0), *opened)
    # Where ports come from a narrow range, flows are opened until a clash of ports is likely.
    ranged = {one.key for one in few if one.flows == Flows(MAPPING_FLOWS)}
    assert {one.key: most[one.key] for one in few if most[one.key] > one.flows.each and one.key not in ranged} == {}
    # Nor does it declare twice as many.
    assert {one.key: most[one.key] for one in few if one.flows.each > 2 * most[one.key]} == {}


def test_a_range_of_a_host_and_a_remote_host_is_none_of_the_host() -> None:
    """Both hosts have ranges apart, but that of the second one is elsewhere to the second remote host."""
    block = Behaviour(mapping="address and port-dependent", host_ports=1200)
    other = replace(block, host_ports=1500)
    moved = replace(block, elsewhere=other, is_elsewhere=lambda packet: of_host(32)(packet) and to_second(packet))
    for behaviour, verdict in ((block, "meets"), (moved, "not seen")):
        examiner = examiner_of(behaviour)
        for _ in range(10):
            examiner.inside.go_on(for_many=False)
        (one,) = examine(examiner, of("RFC4787-REQ-3"))
        assert one.verdict == verdict, one.measured


def test_an_inside_endpoint_with_a_mapping_shows_no_limit_of_a_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """The crowd has the inside ports from which other examinations choose."""
    monkeypatch.setattr(crowd, "_FIRST_PORT", 20_000)
    examiner = examiner_of(Behaviour(host_ports=5000, port_range=60_000), inside_hosts=3)
    examiner.mappings = 3000
    (one,) = examine(examiner, of("RFC6888-REQ-4"))
    assert one.verdict == "meets", one.measured


def test_errors_are_examined_on_a_link_whose_gateway_has_no_known_address() -> None:
    examiner = examiner_of(Behaviour())
    examiner.network.sides = {side: replace(link, gateway=None) for side, link in examiner.network.sides.items()}
    (one,) = examine(examiner, of("RFC5508-REQ-4"))
    assert one.verdict == "meets", one.measured


def test_hosts_are_kept_for_each_examination_that_opens_many_flows() -> None:
    assert len({one.flows for one in requirements() if one.flows.are_many}) == RESERVED


def test_hosts_that_open_no_more_flows_show_nothing_of_their_computed_blocks() -> None:
    examiner = examiner_of(replace(COMPUTED, host_flows=1))
    for host in examiner.every_host:
        examiner.open(Endpoint(host, 20_000), examiner.remote())
    (one,) = examine(examiner, [replace(each, needs_forwarding=False) for each in requirements() if each.rfc == 7422])
    assert one.verdict == "not seen"
    assert "opened another flow" in one.measured


def test_what_fills_the_gateway_is_examined_last() -> None:
    strain = {one.key: one.strain for one in requirements()}
    strains = [strain[one.key] for one in SimulatedAudit(Behaviour(forwards=False)).judge(*KEYS)]
    assert strains == sorted(strains)
    assert strains[-1] == 2


def test_what_failed_once_and_was_met_once_is_not_seen() -> None:
    answers = iter([(False, "it was dropped"), (True, "it passed")])
    once = Requirement(4787, "once", "MUST", "something passes", ("udp",), lambda _: next(answers), NO_FLOWS)
    (found,) = examine(examiner_of(Behaviour()), [once])
    assert found.verdict == "not seen"
    assert found.measured == "failed once: it was dropped; not failed when examined again: it passed"


def test_random_ports_are_hard_to_guess_although_two_hosts_share_them(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = tuple((30_000 + index, 1024 + index * index) for index in range(64))
    monkeypatch.setattr(port_rules, "ports", lambda *_: PortsSeen("overloading", pairs, overloads=True, entropy=6.0))
    found = examine(examiner_of(Behaviour()), [one for one in requirements() if one.key == "RFC6888-REQ-15"])
    assert {one.verdict for one in found} == {"meets"}


def test_ports_that_may_be_random_or_not_are_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 63 steps, 16 are the same: so many are more than random ones, and fewer than those of a few that count."""
    outside = [*range(2000, 2017), *(2015 + number * (number + 1) // 2 for number in range(2, 49))]
    pairs = tuple((30_000 + index, port) for index, port in enumerate(outside))
    seen = PortsSeen(None, pairs, overloads=False, entropy=5.0)
    assert seen.words.startswith("predictable or random: 0 of 64 flows kept their port")
    monkeypatch.setattr(port_rules, "ports", lambda *_: seen)
    found = list(examine(examiner_of(Behaviour()), of("RFC6888-REQ-15", "RFC7857-9")))
    assert [one.verdict for one in found] == ["not seen", "not seen"]
    assert all("64 flows do not show whether ports are random" in one.measured for one in found)


def obscurity(changed: Callable[[int], int], monkeypatch: pytest.MonkeyPatch) -> Iterator[AuditedRequirement]:
    """Judge a gateway that keeps free ports, and changes each one that another host has as the function says."""
    free = tuple((port, port) for port in range(30_000, 30_064))
    monkeypatch.setattr(port_rules, "ports", lambda *_: PortsSeen("preserving", free, overloads=False, entropy=None))

    def compete(_: Examiner, flow: Flow, _remote: Endpoint) -> Flow:
        return replace(flow, mapped=replace(flow.mapped, port=changed(flow.inside.port)))

    monkeypatch.setattr(port_rules, "compete", compete)
    return examine(examiner_of(Behaviour(ports="preserving")), of("RFC7857-9"))


def test_changed_ports_next_to_those_of_other_hosts_are_no_random_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway keeps free ports, and where another host has one, it takes the next."""
    (found,) = obscurity(lambda port: port + 1, monkeypatch)
    assert found.verdict == "fails", found.measured


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("workers", [4, 8])
def test_changed_ports_that_a_few_workers_count_are_no_random_ones(
    workers: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, random = [1024 + 6000 * worker + 31 * worker**2 for worker in range(workers)], Random(seed)  # noqa: S311 - a simulation

    def counted(_: int) -> int:
        worker = random.randrange(workers)
        rows[worker] += 1
        return rows[worker]

    (found,) = obscurity(counted, monkeypatch)
    assert found.verdict in ("fails", "not seen"), found.measured


@pytest.mark.parametrize(("number", "verdict"), [(48, "meets"), (30, "not seen")])
def test_changed_ports_must_be_many_to_show_that_they_are_random(
    number: int, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(1).sample(range(1024, 1024 + 128), number)  # noqa: S311 - a simulation
    every = cycle([*random, *[None] * (48 - number)])
    (found,) = obscurity(lambda port: next(every) or port, monkeypatch)
    assert found.verdict == verdict, found.measured
    assert found.measured.startswith(f"{number} ports") or f"{number} flows do not show" in found.measured


def test_no_two_requirements_have_one_key() -> None:
    pairs = [(one.key, transport) for one in requirements() for transport in one.transports]
    assert len(pairs) == len(set(pairs))


def test_each_requirement_that_waits_names_known_timers() -> None:
    names = {kind.name for kind in TIMERS}
    assert {name for one in requirements() for name in one.timers} <= names


def test_an_unknown_requirement_that_a_recipe_declares_is_not_seen_with_what_is_near() -> None:
    (one,) = examine(examiner_of(Behaviour()), list(unknown(["RFC4787-REQ-88", "RFC4787-REQ-8"])))
    assert (one.key, one.verdict) == ("RFC4787-REQ-88", "not seen")
    assert "natgauge knows no such requirement; did you mean RFC4787-REQ-8" in one.measured


def test_a_syn_that_is_lost_hides_no_gateway_that_answers_it(monkeypatch: pytest.MonkeyPatch) -> None:
    examiner = examiner_of(Behaviour(unsolicited_syn="reset"))
    send, lost = examiner.network.ports.send, list[bytes]()

    def losing(side: Side, octets: bytes) -> None:
        packet = read_packet(octets[14:])
        segment = None if packet is None else packet.segment
        is_first = side == "responder" and isinstance(segment, TcpSegment) and segment.flags == SYN and not lost
        if is_first:
            lost.append(octets)
        else:
            send(side, octets)

    monkeypatch.setattr(examiner.network.ports, "send", losing)
    (one,) = examine(examiner, of("RFC5382-REQ-4"))
    assert lost
    assert one.verdict == "fails", one.measured


def test_an_error_of_the_inside_may_come_from_any_outside_address_of_the_gateway() -> None:
    """RFC 5508 REQ-5 wants the NAT's own address, which need not be that of the mapping."""
    of_link = Behaviour(addresses=2, paired_by_transport=True, inside_errors_from=OUTSIDE)
    examiner = examiner_of(of_link)
    assert examiner.flow().mapped.address != OUTSIDE
    (linked,) = examine(examiner, of("RFC5508-REQ-5"))
    assert linked.verdict == "meets", linked.measured
    other = examiner_of(Behaviour(addresses=2, inside_errors_from=OUTSIDE + 256))
    assert other.flow().mapped.address == OUTSIDE
    (unknown,) = examine(other, of("RFC5508-REQ-5"))
    assert unknown.verdict == "not seen", unknown.measured
    assert other.open(other.endpoint(1), other.remote()).mapped.address == OUTSIDE + 256
    (used,) = examine(other, of("RFC5508-REQ-5"))
    assert used.verdict == "meets", used.measured


def test_hairpinned_errors_are_examined_with_mappings_that_are_there() -> None:
    examiner = examiner_of(Behaviour(udp_seconds=10.0))
    examiner.begin("udp")
    assert examiner.once(hairpinned).dropped is None
    examiner.network.pause(examiner.network.now() + 20.0)
    (one,) = examine(examiner, of("RFC5508-REQ-7"))
    assert one.verdict == "meets", one.measured


def test_extensions_of_errors_are_not_called_impossible_over_ipv6() -> None:
    (one,) = of("RFC5508-REQ-3d")
    examiner = examiner_of(Behaviour())
    sides = examiner.network.sides
    sides["responder"] = replace(sides["responder"], hosts=(IPv6Address("2001:db8:1::2"),))
    with pytest.raises(NotSeenError, match="not examined over IPv6"):
        one.examine(examiner)


def test_mappings_that_were_never_made_had_no_other_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Crowd, "grow", lambda *_: None)
    (one,) = examine(examiner_of(Behaviour()), of("RFC4787-REQ-11"))
    assert one.verdict == "not seen"
    assert one.measured.endswith("; no further mapping was made")


def test_packets_that_are_dropped_show_no_identification(monkeypatch: pytest.MonkeyPatch) -> None:
    examiner = examiner_of(Behaviour())
    send = examiner.network.ports.send

    def dropping(side: Side, octets: bytes) -> None:
        packet = read_packet(octets[14:])
        if packet is None or packet.identification != 4660:
            send(side, octets)

    monkeypatch.setattr(examiner.network.ports, "send", dropping)
    (one,) = examine(examiner, of("RFC7857-10"))
    assert one.verdict == "not seen", one.measured
    assert "was dropped, which shows no identification" in one.measured


PAIRED = ("RFC4787-REQ-2", "RFC6888-REQ-2", "RFC7857-4-paired", "RFC7857-4")


@pytest.mark.parametrize("known", ["a pool that was asked for", "an address of another host"])
def test_hosts_that_all_got_one_address_of_a_pool_show_nothing_of_it(known: str) -> None:
    """The gateway fills its first address first, or gives three hosts one address by chance."""
    examiner = examiner_of(Behaviour())
    if known == "a pool that was asked for":
        examiner.pool = 4
    else:
        examiner.inside.opens(examiner.every_host[-1], OUTSIDE + 256)
    found = list(examine(examiner, of(*PAIRED)))
    assert len(found) == len(PAIRED)
    assert {one.verdict for one in found} == {"not seen"}
    assert all("outside addresses" in one.measured for one in found)


def test_a_host_that_reached_its_own_limit_before_shows_no_full_address() -> None:
    examiner = examiner_of(Behaviour(addresses=2, host_flows=200))
    examiner.begin("udp")
    used_up = examiner.endpoint(1)
    for _ in range(166):
        examiner.open(replace(used_up, port=examiner.endpoint().port), examiner.remote())
    (one,) = examine(examiner, of("RFC7857-4"))
    assert one.verdict == "not seen", one.measured
    assert "another host was refused" in one.measured


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [128, 256, 64_512])
def test_random_ports_of_a_block_are_called_random(size: int, seed: int) -> None:
    outside = Random(seed).sample(range(1024, 1024 + size), 64)  # noqa: S311 - a simulation
    assert are_random([(30_000 + 389 * index, port) for index, port in enumerate(outside)]) is True


HOSTS = tuple(IPv4Address("10.0.0.2") + index for index in range(5 * TEAM))
FIRST, SECOND, THIRD = HOSTS[:TEAM]
POOL = tuple(IPv4Address("198.18.0.10") + index for index in range(4))


def test_there_is_a_team_for_each_allowance_one_for_each_examination_with_many_flows_and_a_spare_one() -> None:
    few = [Flows(LEAST_ALLOWANCE), Flows(1)]
    assert hosts_needed(few) == 3 * TEAM
    many = [Flows(4, are_many=True)] * 3
    assert hosts_needed([*few, *many, Flows(5, are_many=True)]) == 5 * TEAM


def test_the_last_teams_are_left_for_many_flows() -> None:
    inside = InsideHosts(HOSTS)
    for _ in range(4 - RESERVED):
        assert inside.has_next("udp", for_many=False)
        inside.go_on(for_many=False)
    assert not inside.has_next("udp", for_many=False)
    for _ in range(RESERVED):
        assert inside.has_next("udp", for_many=True)
        inside.go_on(for_many=True)
    assert inside.team == HOSTS[-TEAM:]
    assert not inside.has_next("udp", for_many=True)


def test_a_transport_that_another_team_does_not_have_is_tried_with_no_further_one() -> None:
    inside = InsideHosts(HOSTS)
    inside.go_on(for_many=False)
    inside.go_back("icmp")
    assert inside.team == HOSTS[:TEAM]
    assert not inside.has_next("icmp", for_many=False)
    assert inside.has_next("udp", for_many=False)


def test_flows_are_lacking_where_a_new_host_would_have_enough() -> None:
    inside = InsideHosts(HOSTS)
    for _ in range(60):
        inside.opens(FIRST, POOL[0])
    assert not inside.lack(Flows(50))
    for _ in range(100):
        inside.opens(SECOND, POOL[0])
    inside.learn(SECOND)
    assert inside.allowance == 100
    assert inside.lack(Flows(50))
    assert not inside.lack(Flows(0))
    assert not inside.lack(Flows(101))
    inside.go_on(for_many=False)
    assert not inside.lack(Flows(100))


def test_a_host_that_never_had_a_flow_shows_no_limit() -> None:
    inside = InsideHosts(HOSTS)
    inside.opens(FIRST, FIRST)
    inside.learn(FIRST)
    assert inside.allowance is None


def test_rivals_are_those_with_the_address_then_those_with_none_known_and_last_those_that_were_refused() -> None:
    inside = InsideHosts(HOSTS[: 2 * TEAM])
    fourth, fifth, sixth = HOSTS[TEAM : 2 * TEAM]
    inside.opens(FIRST, POOL[0])
    inside.opens(SECOND, POOL[1])
    inside.opens(fourth, POOL[0])
    inside.note_refusal(fourth)
    inside.opens(fifth, POOL[0])
    inside.note_refusal(sixth)
    # The sixth host was refused, and never had a flow.
    assert inside.rivals(FIRST, POOL[0]) == (fifth, THIRD, SECOND, fourth)


UDP = [kind for kind in TIMERS if kind.transport == "udp" and kind.refresh is None]


def test_a_mapping_that_outlives_the_wait_is_said_to_be_there(golden: Golden) -> None:
    found = watch(examiner_of(Behaviour(udp_seconds=300.0)), UDP[:1], 60.0)
    seen = found[UDP[0].name]
    assert seen.dead is None
    golden(seen.words)
    assert seen.lives(60.0)
    assert seen.lives(120.0) is None


def test_idle_times_grow_by_five_percent_up_to_what_is_required_or_allowed() -> None:
    times = idle_times(TIMERS[0], 330.0)
    assert times[-1] == pytest.approx(306.0)
    assert all(after <= 1.051 * before for before, after in pairwise(times) if before >= 5.0)
    assert idle_times(TIMERS[0], 20.0)[-1] == 20.0
    number, longest = plan(TIMERS, 330.0)
    assert longest == 330.0
    assert number < 1500


def test_frames_whose_sentences_nobody_reads_have_none_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """To say of each frame what it is took an eighth of the time of a watch."""
    made: list[Packet] = []

    def counted(packet: Packet) -> str:
        made.append(packet)
        return described(packet)

    monkeypatch.setattr("natgauge.audits.kit.network.described", counted)
    examiner = examiner_of(Behaviour(udp_seconds=30.0))
    watch(examiner, UDP[:1], 60.0)
    told = [frame for frame in examiner.network.frames if frame.is_told]
    assert told
    assert made == []
    assert described(told[0].packet) in told[0].sentence


@pytest.mark.parametrize(
    "seconds", [1.0, 2.9, 3.1, *(pytest.param(one, marks=pytest.mark.soak) for one in (2.0, 3.0, 5.0))]
)
def test_time_outs_shorter_than_a_stream_takes_to_begin_keep_no_other_mapping_waiting(seconds: float) -> None:
    """Seen: with time-outs of 3 s each of 95 streams was tried for 3 s, and the others seemed to live for 285 s."""
    examiner = examiner_of(forgetful(seconds))
    began = examiner.network.now()
    found = watch(examiner, TIMERS, 7600.0)
    assert examiner.network.now() - began < expected(TIMERS, 7600.0, seconds) + 5.0
    for seen in found.values():
        if seen.kind.refresh is None and not seen.gone_early:
            assert seen.alive is None or seen.alive < seconds + 0.1
            assert seen.dead is not None
            assert seconds < seen.dead + 0.1 < 1.3 * seconds + 1.5, seen.words


def test_streams_that_cannot_be_kept_are_given_up_and_that_is_said(golden: Golden) -> None:
    (kind,) = (kind for kind in UDP if kind.again_after)
    examiner = examiner_of(forgetful(0.4))
    began = examiner.network.now()
    (seen,) = watch(examiner, [kind], 330.0).values()
    assert examiner.network.now() - began < 10.0
    assert (seen.alive, seen.dead) == (None, None)
    golden(seen.words)


def test_a_gateway_that_dies_during_the_wait_makes_it_little_longer_than_was_told() -> None:
    """Each mapping of a dead gateway costs seconds, for control frames are tried several times."""
    behaviour = Behaviour(udp_seconds=300.0, loses=lambda frame: frame > 1000)
    examiner = examiner_of(behaviour)
    began = examiner.network.now()
    watch(examiner, UDP, 60.0)
    assert examiner.network.now() - began < plan(UDP, 60.0)[1] + 80.0


def test_how_long_a_kind_lives_is_not_known_where_one_mapping_was_gone_before_another() -> None:
    """The results folder was refused, because its time-outs contradicted each other."""
    seen = TimerSeen(UDP[0])
    seen.add(40.0, [], there=False)
    seen.add(300.0, [], there=True)
    assert [seen.lives(seconds) for seconds in (120.0, 40.0, 310.0)] == [None, True, False]
    many = seen.bounds
    assert seen.is_odd
    seen.few = TimerSeen(UDP[0], alive=118.0, dead=124.0)
    assert (many, seen.bounds) == ((None, None), (118.0, 124.0))


def kinds_of(*names: str) -> list[TimerKind]:
    return [kind for kind in TIMERS if kind.name in names]


def judged(examiner: Examiner, key: str, kinds: Sequence[TimerKind] = (), wait: float = 60.0) -> AuditedRequirement:
    """The verdict on one requirement, with the time-outs of these kinds."""
    examiner.timers.update(watch(examiner, kinds, wait))
    (one,) = examine(examiner, [each for each in requirements() if each.key == key])
    return one


def test_a_time_out_of_just_the_required_seconds_is_no_failure_where_the_probe_before_it_came_late() -> None:
    """Mappings of 60 s were there after 57.4 s and gone after 60.4 s: that contradicts 60 s by nothing."""
    (kind,) = kinds_of(ICMP_QUERY)
    seen = TimerSeen(kind)
    seen.add(57.4, [], there=True)
    seen.add(60.4, [], there=False)
    assert seen.lives(60.0) is None
    assert seen.lives(61.0) is False
    examiner = examiner_of(Behaviour())
    examiner.timers[ICMP_QUERY] = seen
    one = judged(examiner, "RFC5508-REQ-2")
    assert one.verdict == "not seen"
    assert "gone between 57.4 and 60.4 s" in one.measured
    assert "--wait" not in one.measured


def test_a_refresh_that_is_lost_is_no_gateway_that_does_not_refresh() -> None:
    def lost(examiner: Examiner, _flow: Flow) -> bytes:
        return examiner.tag()

    plain, refreshed = kinds_of(UDP_OUT, REFRESHED_OUT)
    examiner = examiner_of(Behaviour(udp_seconds=20.0))
    began = examiner.network.now()
    one = judged(examiner, "RFC4787-REQ-6", [plain, replace(refreshed, refresh=lost)], 7600.0)
    assert one.verdict == "not seen", one.measured
    assert examiner.network.now() - began < 60.0, "nor is it waited for without end"


def test_a_mapping_that_was_looked_at_long_after_its_refresh_may_have_expired_again() -> None:
    """The host stood still between the refresh and the probe for longer than the time-out."""
    plain, refreshed = (TimerSeen(kind) for kind in kinds_of(UDP_OUT, REFRESHED_OUT))
    plain.add(19.0, [], there=True)
    plain.add(20.0, [], there=False)
    refreshed.refreshed.append(Refreshed(14.0, 40.0, there=False, frames=()))
    examiner = examiner_of(Behaviour())
    examiner.timers.update({UDP_OUT: plain, REFRESHED_OUT: refreshed})
    assert judged(examiner, "RFC4787-REQ-6").verdict == "not seen"
    refreshed.refreshed.append(Refreshed(14.0, 28.0, there=False, frames=()))
    one = judged(examiner, "RFC4787-REQ-6")
    assert one.verdict == "fails"
    assert "after 14 s: the mapping was gone after 28 s" in one.measured


def test_a_mapping_that_a_gateway_had_not_yet_purged_was_not_refreshed() -> None:
    """A gateway that looks for old mappings now and then ended one after 20 s, and another one after 38 s."""
    examiner = examiner_of(Behaviour())
    for name in (UDP_OUT, UDP_BOTH):
        (kind,) = kinds_of(name)
        plain = TimerSeen(kind)
        plain.add(20.0, [], there=False)
        plain.add(38.0, [], there=True)
        examiner.timers[name] = plain
    refreshed, error = (TimerSeen(kind) for kind in kinds_of(REFRESHED_OUT, UDP_ERROR))
    examiner.timers.update({UDP_ERROR: error, REFRESHED_OUT: refreshed})
    error.refreshed.append(Refreshed(15.0, 30.0, there=True, frames=()))
    refreshed.refreshed.append(Refreshed(15.0, 30.0, there=True, frames=()))
    for key in ("RFC7857-7.1", "RFC4787-REQ-6"):
        one = judged(examiner, key)
        assert one.verdict == "not seen", one.measured
        assert "gone between 20.0 and 38.0 s, not always at the same time" in one.measured
    for seen in (error, refreshed):
        seen.refreshed.append(Refreshed(18.0, 41.0, there=True, frames=()))
    assert judged(examiner, "RFC7857-7.1").verdict == "fails"
    assert judged(examiner, "RFC4787-REQ-6").verdict == "meets"


def test_an_error_that_is_lost_is_sent_a_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    examiner = examiner_of(Behaviour(icmp_seconds=20.0, errors_refresh_queries=True))
    send, lost = examiner.network.ports.send, set[bytes]()

    def losing(side: Side, octets: bytes) -> None:
        packet = read_packet(octets[14:])
        error = None if packet is None else packet.segment
        if isinstance(error, ErrorMessage) and error.quoted not in lost:
            lost.add(error.quoted)
        else:
            send(side, octets)

    monkeypatch.setattr(examiner.network.ports, "send", losing)
    one = judged(examiner, "RFC5508-REQ-6", kinds_of(ICMP_QUERY, ICMP_ERROR))
    assert lost
    assert one.verdict == "fails", one.measured


#: What filtering seems to be at a look; at others nothing is seen.
LOOKS = {"i": "endpoint-independent", "a": "address-dependent"}


@pytest.mark.parametrize(
    ("looks", "verdict"),
    [
        ("iii", "meets"),
        ("iiaa", "fails"),
        *((looks, "not seen") for looks in ("iiai", "iaii", "aiaa", "ii-", "iia-")),
    ],
)
def test_filtering_changed_where_two_looks_before_the_crowd_and_two_beside_it_show_that(
    looks: str, verdict: str, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    """Seen: a frame that was lost at one look failed the MUST."""
    kinds = iter(looks)

    def look(_: Examiner) -> str:
        if (seen := next(kinds)) not in LOOKS:
            raise NotSeenError("no frame came back")
        return LOOKS[seen]

    monkeypatch.setattr(class_rules, "filtering", look)
    examiner = examiner_of(Behaviour())
    examiner.mappings = 64
    (one,) = examine(examiner, of("RFC4787-REQ-11"))
    assert (one.verdict, list(kinds)) == (verdict, []), one.measured
    golden(one.measured)


def test_beside_a_crowd_without_mappings_nothing_is_looked_at_once_more(
    monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    kinds = iter("iia")
    monkeypatch.setattr(class_rules, "filtering", lambda _: LOOKS[next(kinds)])
    monkeypatch.setattr(Crowd, "grow", lambda *_: None)
    (one,) = examine(examiner_of(Behaviour()), of("RFC4787-REQ-11"))
    assert (one.verdict, list(kinds)) == ("not seen", [])
    golden(one.measured)
