# SPDX-License-Identifier: Apache-2.0
"""Inside hosts of an audit: whose turn it is, who has flows left, and who may have the outside address of another."""

from __future__ import annotations

from ipaddress import IPv4Address

from natgauge.audits.kit.hosts import LEAST_ALLOWANCE, RESERVED, TEAM, Flows, InsideHosts, hosts_needed

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
    inside.is_refused(fourth)
    inside.opens(fifth, POOL[0])
    inside.is_refused(sixth)
    # The sixth host was refused, and never had a flow.
    assert inside.rivals(FIRST, POOL[0]) == (fifth, THIRD, SECOND, fourth)
