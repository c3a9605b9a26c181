# SPDX-License-Identifier: Apache-2.0
"""Subscribers who share addresses: their ports, plans that sets are too small for, and those that nobody serves."""

from __future__ import annotations

import ipaddress
import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plans import PlanOfTrial
from tests.unit.golden import Golden

from natgauge.errors import BrokenError, UsageError
from natgauge.gateways.port_sets import PortSets
from natgauge.gateways.recipe import load
from natgauge.inputs.question import DeviceOptions, TrafficOptions
from natgauge.labs.contract import Addresses, Link
from natgauge.setup.traffic import AddressPlan, chosen_sets, hosts_of, make_plan, with_pool
from natgauge.trial.bench import Bench
from natgauge.trial.forwarding import Missing, check_each, traffic_of
from natgauge.trial.question import ask
from natgauge.trial.requests import Requests, TrialConstants, pacing
from natgauge.trial.server import refuse_server


def link(network: str, device: str, tester: str) -> Link:
    return Link(ipaddress.ip_network(network), ipaddress.ip_address(device), ipaddress.ip_address(tester))


def pool(first: str, last: str | None = None) -> Addresses:
    return Addresses(ipaddress.ip_address(first), ipaddress.ip_address(last or first))


INSIDE4 = link("10.0.0.0/16", "10.0.0.1", "10.0.0.2")
OUTSIDE4 = link("198.19.0.0/16", "198.19.0.1", "198.19.0.2")
INSIDE6 = link("2001:2::/64", "2001:2::1", "2001:2::2")
NAT44 = AddressPlan(INSIDE4, OUTSIDE4, pool=pool("198.19.0.1"), mtu=3498)
NAT64 = AddressPlan(
    INSIDE6, OUTSIDE4, prefix=ipaddress.IPv6Network("2001:2:0:1::/96"), pool=pool("198.19.0.1"), mtu=3498
)


def refusal(options: TrafficOptions, around: AddressPlan = NAT44) -> str:
    with pytest.raises(UsageError) as caught:
        make_plan(options, around)
    message = str(caught.value)
    assert "\n" not in message
    return message


SETS = PortSets(network="198.18.0.0/16", psid_length=6)
MAP = replace(NAT44, port_sets=SETS, pool=None)


#: Offsets, and lengths of a set's number behind them; `make soak` has all others.
ENDS = {(offset, length) for offset in (0, 1, 6, 15) for length in (0, 1, 8, 16 - offset) if length <= 16 - offset}
PAIRS = [(offset, length) for offset in range(16) for length in range(17 - offset)]


@pytest.mark.parametrize(
    ("offset", "length"), [pytest.param(*pair, marks=() if pair in ENDS else pytest.mark.soak) for pair in PAIRS]
)
def test_every_port_is_in_exactly_one_set_or_left_out_by_the_offset(offset: int, length: int) -> None:
    sets = PortSets.model_construct(network="198.18.0.0/16", psid_length=length, psid_offset=offset)
    found = Counter(map(sets.psid, range(65536)))
    left_out = found.pop(None, 0)
    assert left_out == (1 << (16 - offset) if offset else 0)
    assert found == dict.fromkeys(range(1 << length), sets.ports)


def test_the_standards_example_has_its_ports() -> None:
    """RFC 7597 appendix A, example 1: PSID 0x34 of 8 bits behind an offset of 6 has 63 ranges of 4 ports."""
    sets = PortSets(network="192.0.2.0/24", psid_length=8, psid_offset=6)
    own = [port for port in range(65536) if sets.psid(port) == 0x34]
    assert len(own) == sets.ports == 63 * 4
    assert own[:8] == [1232, 1233, 1234, 1235, 2256, 2257, 2258, 2259]
    assert own[-4:] == [64720, 64721, 64722, 64723]


def test_subscribers_follow_each_other_and_nobody_has_the_systems_ports() -> None:
    assert (SETS.ports, SETS.first, SETS.per_address) == (1024, 1, 63)
    assert [str(SETS.of(number)[0]) for number in (0, 62, 63, 999)] == ["198.18.0.1"] * 2 + [
        "198.18.0.2",
        "198.18.0.16",
    ]
    assert [SETS.of(number)[1] for number in (0, 62, 63)] == [1, 63, 1]
    assert len({SETS.of(number) for number in range(10_000)}) == 10_000
    assert PortSets(network="198.18.0.0/16", psid_length=8).first == 4
    assert PortSets(network="198.18.0.0/16", psid_length=8, psid_offset=6).first == 0
    assert PortSets(network="198.18.0.0/30", psid_length=6).most == 2 * 63
    assert PortSets(network="198.18.0.0/16", psid_length=6, most_subscribers=1).most == 1


@pytest.mark.parametrize(
    "change",
    [
        'network = "198.18.0.0/33"',
        'network = "198.18.0.1/16"',
        'network = "198.18.0.0/31"',
        "psid_length = 17",
        "psid_length = 10\npsid_offset = 7",
        "psid_length = 0",
    ],
)
def test_sets_that_cannot_be_are_refused_in_one_line(change: str, tmp_path: Path, golden: Golden) -> None:
    lines = load("map-t").origin.read_text().splitlines()
    field = change.split(" ", maxsplit=1)[0]
    path = tmp_path / "map-t.toml"
    path.write_text("\n".join(change if line.startswith(f"{field} =") else line for line in lines))
    with pytest.raises(UsageError) as error:
        load(path)
    golden(str(error.value))
    assert "\n" not in str(error.value)


def test_only_kinds_that_share_addresses_have_port_sets(tmp_path: Path, golden: Golden) -> None:
    path = tmp_path / "map-t.toml"
    text = load("map-t").origin.read_text()
    path.write_text(text.replace('kind = "map-t"', 'kind = "ds-lite"'))
    with golden.raises(UsageError):
        load(path)
    path.write_text(text.replace('[port_sets]\nnetwork = "198.18.0.0/16"\npsid_length = 5\n', ""))
    with pytest.raises(UsageError, match="come together"):
        load(path)


def test_a_single_subscriber_uses_half_its_set_and_enough_destination_ports() -> None:
    plan = make_plan(TrafficOptions(connections=100_000), MAP)
    assert (plan.source_addresses.count, plan.destination_ports.count) == (1, 196)
    assert plan.source_ports.count <= SETS.ports // 2
    assert plan.space >= 100_000


def test_a_single_subscriber_that_needs_most_of_its_set_has_the_ports_of_its_set() -> None:
    """Linux keeps a source port that is in the set; its search for another one gives up near the end of a set."""
    for gateway, first in (("map-t", 2048), ("lw4o6", 2048)):
        plan = Bench(ask("resolution-rate", gateway, {}).cell).traffic
        assert (plan.source_ports.first, plan.source_ports.count) == (first, 1600)
    # Ranges behind an offset are searched whole, and several subscribers have several sets.
    for choices in ({"psid_offset": 6}, {"subscribers": 2, "connections": 3200}):
        plan = Bench(ask("resolution-rate", "map-t", choices).cell).traffic
        assert (plan.source_ports.first, plan.source_ports.count) == (1024, 1600)


@given(subscribers=st.integers(1, 5000), connections=st.integers(1, 1_000_000))
def test_no_subscriber_needs_more_than_half_its_set(subscribers: int, connections: int) -> None:
    plan = make_plan(TrafficOptions(subscribers=subscribers, connections=connections), MAP)
    assert plan.source_addresses.count == subscribers
    assert plan.source_ports.count <= SETS.ports // 2
    assert plan.connections == connections <= plan.space
    pool = with_pool(MAP, plan).pool
    assert pool == Addresses(SETS.of(0)[0], SETS.of(subscribers - 1)[0])


def test_a_thousand_subscribers_have_a_hundred_connections_each() -> None:
    plan = make_plan(TrafficOptions(subscribers=1000), MAP)
    assert str(plan.source_addresses) == "10.0.0.2-10.0.3.233"
    assert (plan.source_ports.count, plan.destination_ports.count) == (100, 1)
    assert plan.space == 100_000
    assert hosts_of(TrafficOptions(subscribers=1000), ("ipv4", "ipv4")) == 1001


def test_addresses_that_are_named_are_subscribers() -> None:
    plan = make_plan(TrafficOptions(source_addresses="10.0.0.2-10.0.0.11", connections=1000), MAP)
    assert plan.source_addresses.count == 10
    both = TrafficOptions(source_addresses="10.0.0.2-10.0.0.11", subscribers=10, connections=1000)
    assert make_plan(both, MAP) == plan


def test_a_plan_that_needs_more_ports_than_a_set_has_is_refused_with_the_numbers(golden: Golden) -> None:
    said = refusal(TrafficOptions(connections=100_000, destination_ports="80"), MAP)
    golden(said)
    said = refusal(TrafficOptions(source_ports="1024-65535", connections=2000), MAP)
    golden(said)
    assert make_plan(TrafficOptions(connections=1024, destination_ports="80"), MAP).source_ports.count == 1024
    assert "need 1025 ports" in refusal(TrafficOptions(connections=1025, destination_ports="80"), MAP)


def test_a_device_that_serves_one_says_so(golden: Golden) -> None:
    sets = load("map-t-tayga").port_sets
    said = refusal(TrafficOptions(subscribers=2), replace(MAP, port_sets=sets))
    golden(said)


HALF = replace(NAT64, port_sets=SETS, pool=None, translated=False, half=True)


@pytest.mark.parametrize("every", [101, pytest.param(1, marks=pytest.mark.soak)])
def test_a_subscribers_map_address_is_that_of_the_standards(every: int) -> None:
    """RFC 7597 appendix A, example 1: PSID 0x34 of 192.0.2.18; subscriber 0 has PSID 0 of 192.0.2.1."""
    sets = PortSets(network="192.0.2.0/24", psid_length=8, psid_offset=6)
    assert str(sets.map_address(17 * 256 + 0x34)) == "2001:db8:12:3400:0:c000:212:34"
    numbers = range(0, sets.most, every)
    assert len({sets.map_address(number) for number in numbers}) == len(numbers)
    assert sets.most == 254 * 256


def test_emulated_edges_send_from_every_port_of_their_sets() -> None:
    for edges, connections in ((1, 100_000), (1000, 100_000), (60_000, 960_000)):
        plan = make_plan(TrafficOptions(subscribers=edges), HALF)
        assert (plan.sources, plan.source_ports.count, plan.connections) == (edges, SETS.ports, connections)
        assert plan.connections <= plan.space
    chosen = make_plan(TrafficOptions(subscribers=10, connections=5_000_000), HALF)
    assert (chosen.connections, chosen.destination_ports.count) == (5_000_000, 489)
    named = make_plan(TrafficOptions(subscribers=10, destination_ports="80"), HALF)
    assert (named.connections, named.space) == (10_240, 10_240)
    pool = with_pool(HALF, make_plan(TrafficOptions(subscribers=64), HALF)).pool
    assert str(pool) == "198.18.0.1-198.18.0.2"


TUNNEL = replace(HALF, prefix=None, tunnelled=True)
AFTR = replace(
    TUNNEL, port_sets=PortSets(network="10.0.0.0/8", psid_length=0, psid_offset=6), translated=True, pool=NAT44.pool
)


def test_frames_in_a_tunnel_are_forty_octets_longer(golden: Golden) -> None:
    plan = make_plan(TrafficOptions(), TUNNEL)
    assert (plan.frame_size, plan.frame_side) == (104, "initiator")
    assert str(plan.destination_addresses) == str(plan.responder_addresses) == "198.19.0.2"
    outside = make_plan(TrafficOptions(frame_side="responder", frame_size=128), TUNNEL)
    assert (outside.frame_size, TUNNEL.octets(128, "ipv6")) == (128, 168)
    golden(refusal(TrafficOptions(frame_size=103), TUNNEL))
    with golden.raises(UsageError):
        make_plan(TrafficOptions(frame_side="responder", frame_size=1479), replace(TUNNEL, mtu=1500))


def test_the_subscribers_of_an_aftr_have_private_addresses_and_it_translates_to_its_own() -> None:
    for edges, connections in ((1, 100_000), (100_000, 1_600_000)):
        plan = make_plan(TrafficOptions(subscribers=edges), AFTR)
        assert (plan.sources, plan.source_ports.count, plan.connections) == (edges, 64_512, connections)
        # Towards each remote endpoint half of the ports of its outside addresses stay free, where several edges share
        # them.
        assert plan.destination_ports.count == -(-connections // (64_512 if edges == 1 else 32_256))
    assert with_pool(AFTR, plan).pool == NAT44.pool


@pytest.mark.parametrize(("gateway", "octets"), [("map-t-ce", 84), ("map-e-ce", 104), ("lwb4", 104), ("b4", 104)])
def test_customer_edges_alone_have_the_subscribers_as_hosts_and_the_responder_as_relay(
    gateway: str, octets: int
) -> None:
    translated, tunnelled = gateway != "b4", gateway != "map-t-ce"
    bench = Bench(ask("throughput", gateway, {"subscribers": 100}).cell)
    around, plan = bench.address_plan, bench.traffic
    sets = around.port_sets
    assert (plan.tested_edges, plan.edges, plan.tunnelled, plan.sources) == (sets, None, tunnelled, 100)
    assert (load(gateway).edges_alone, around.half, around.translated) == (True, False, translated)
    assert str(plan.source_addresses) == "10.0.0.2-10.0.0.101"
    # The address of the router before a relay is behind the prefix, as the hosts behind a relay of MAP-T are.
    assert (str(plan.destination_addresses), str(plan.responder_addresses)) == ("198.19.0.2", "2001:2:0:1::c613:2")
    assert (plan.frame_size, bench.octets_on("ipv6")) == (64, octets)
    assert around.seen_pool is None
    part = traffic_of(plan, 30, 10, seed=1)
    assert (str(part.source_addresses), part.first_edge) == ("10.0.0.32-10.0.0.41", 30)
    assert plan.mapping_known is not translated


@pytest.mark.parametrize("gateway", ["map-t", "map-e-kernel", "lw4o6", "lw4o6-tunnels"])
def test_a_chain_is_held_to_the_port_sets_of_its_recipe(gateway: str) -> None:
    """Its frames at the Responder are IPv4, in no tunnel."""
    plan = Bench(ask("throughput", gateway, {}).cell).traffic
    assert (plan.tested_edges, plan.edges, plan.tunnelled) == (load(gateway).port_sets, None, False)
    assert not plan.mapping_known


@pytest.mark.parametrize("gateway", ["464xlat-tayga", "ds-lite", "nftables-nat44", "map-t-br"])
def test_a_device_whose_edges_have_no_port_sets_or_are_emulated_is_held_to_none(gateway: str) -> None:
    assert Bench(ask("throughput", gateway, {}).cell).traffic.tested_edges is None


@pytest.mark.parametrize(("length", "prefix"), [(5, "2001:db8::/40"), (8, "2001:db8::/40"), (10, "2001:db8::/38")])
def test_sets_that_no_map_address_has_have_a_shorter_rule_in_frames_and_in_devices(length: int, prefix: str) -> None:
    """A binding table may have them (RFC 7596), and behind the relay no IPv6 address is seen."""
    bench = Bench(ask("throughput", "lw4o6", {"psid_length": length, "subscribers": 3}).cell)
    constants = TrialConstants(
        initiator_family="ipv4", responder_family="ipv4", translated=True, pool=None, sender_cpus=(0,), watch_cpus=(),
        seed=1, first_mark=1, grace_seconds=0.1, table_limit=None, udp_timeout=None, highest_phase1_rate=1e6,
        highest_phase2_rate=1e6,
    )  # fmt: skip
    plan = PlanOfTrial(100, 1000.0)
    requests = Requests(constants, bench.traffic, bench.lab.initiator, bench.lab.responder)
    edges = requests.of(plan, 1, pacing(plan, bench.lab.placement)).responder.customer_edges
    assert edges is not None
    assert (edges.number, edges.psid_length, edges.relay) == (3, length, None)
    assert f"{edges.ipv6_prefix}/{edges.ipv6_prefix_length}" == prefix
    sets = chosen_sets(load("lw4o6"), DeviceOptions(psid_length=length))
    assert sets is not None
    assert sets.environment(3)["NG_RULE_PREFIX6"] == prefix


@pytest.mark.parametrize("gateway", ["map-t-br", "lw4o6"])
def test_the_first_subscribers_have_the_first_edges_and_their_four_tuples(gateway: str) -> None:
    traffic = Bench(ask("throughput", gateway, {"subscribers": 100}).cell).traffic
    part = traffic.of_first(3, 20)
    assert (traffic.sources, part.sources) == (100, 3)
    assert part.source_addresses.first == traffic.source_addresses.first
    assert (part.edges, part.tested_edges) == (traffic.edges, traffic.tested_edges)
    assert 3 * 20 <= part.space <= 3 * (20 + traffic.destination_ports.count)


def test_a_b4_is_that_of_a_host_and_keeps_its_ports(golden: Golden) -> None:
    bench = Bench(ask("throughput", "b4", {"source_ports": "1-65535", "subscribers": 3, "stateless": True}).cell)
    sets = bench.traffic.tested_edges
    assert sets is not None
    assert [str(sets.of(number)[0]) for number in range(3)] == ["10.0.0.2", "10.0.0.3", "10.0.0.4"]
    bench.plan("throughput", {"stateless": True})
    with golden.raises(UsageError):
        Bench(ask("throughput", "b4-kernel", {"subscribers": 2}).cell)


@pytest.mark.parametrize("gateway", ["map-t-ce", "map-e-ce", "lwb4", "aftr"])
def test_a_half_that_chooses_ports_has_no_stateless_trials(gateway: str) -> None:
    with pytest.raises(UsageError, match="leave stateless out"):
        Bench(ask("throughput", gateway, {}).cell).plan("throughput", {"stateless": True})


def test_a_real_server_cannot_be_behind_customer_edges_that_tunnel(golden: Golden) -> None:
    bench = Bench(ask("resolution-rate", "map-e-ce", {}).cell)
    with golden.raises(UsageError):
        refuse_server("knot", bench.lab, bench.traffic)


def test_echoes_of_emulated_edges_have_the_identifiers_of_their_sets() -> None:
    plan = make_plan(TrafficOptions(subscribers=10, transport="icmp"), HALF)
    assert (plan.source_ports.count, plan.destination_ports.count) == (SETS.ports, 1)
    assert plan.connections == 10 * SETS.ports


def test_a_rule_whose_addresses_are_too_long_is_refused(tmp_path: Path, golden: Golden) -> None:
    path = tmp_path / "map-t-br.toml"
    path.write_text(load("map-t-br").origin.read_text() + 'rule_prefix = "2001:db8::/44"\n')
    with golden.raises(UsageError):
        load(path)
    path.write_text(load("map-t-br").origin.read_text() + 'rule_prefix = "198.18.0.0/16"\n')
    with golden.raises(UsageError):
        load(path)
    path.write_text(load("map-t-br").origin.read_text() + 'relay = "198.18.0.1"\n')
    with golden.raises(UsageError):
        load(path)


def test_without_shared_addresses_a_subscriber_is_an_address_and_one_outside_address_is_enough() -> None:
    plan = make_plan(TrafficOptions(subscribers=5000, connections=200_000), NAT44)
    assert plan.subscribers == plan.sources == 5000
    assert plan.destination_ports.count == 7
    assert make_plan(TrafficOptions(), NAT44).subscribers is None


@pytest.mark.parametrize(
    ("choices", "customer"),
    [
        # By RFC 7597 section 5.2: 40 bits of the rule, 16 of the address, then the PSID of subscriber 0.
        ({}, ("2001:db8:0:108:0:c612:1:1", "2001:db8:0:108::/61")),
        ({"psid_length": 6}, ("2001:db8:0:104:0:c612:1:1", "2001:db8:0:104::/62")),
        ({"psid_length": 5, "psid_offset": 6}, ("2001:db8:0:100:0:c612:1:0", "2001:db8:0:100::/61")),
        ({"psid_offset": 6}, ("2001:db8:0:100:0:c612:1:0", "2001:db8:0:100::/61")),
    ],
)
def test_the_user_chooses_the_length_and_the_offset_of_the_psid(
    choices: dict[str, int], customer: tuple[str, str], golden: Golden
) -> None:
    for gateway in ("map-t", "map-e", "map-t-tayga"):
        sets = Bench(ask("throughput", gateway, choices).cell).address_plan.port_sets
        assert sets is not None
        golden(str(sets))
        variables = sets.environment(1)
        assert (variables["NG_CUSTOMER_ADDRESS6"], variables["NG_CUSTOMER_PREFIX6"]) == customer


def test_a_binding_has_no_rule_and_so_any_length() -> None:
    sets = Bench(ask("throughput", "lw4o6", {"psid_length": 12}).cell).address_plan.port_sets
    assert sets is not None
    assert sets.ports == 16
    assert "NG_CUSTOMER_ADDRESS6" not in sets.environment(1)


def test_an_external_chain_has_no_port_sets_that_are_known(golden: Golden) -> None:
    place = {
        "lab": "wire", "initiator_port": "ngnone0", "initiator_gateway": "10.0.0.1", "responder_port": "ngnone1",
        "responder_gateway": "198.19.0.1",
    }  # fmt: skip
    assert Bench(ask("throughput", "map-t", place).cell).address_plan.port_sets is None
    with golden.raises(UsageError):
        Bench(ask("throughput", "map-t", {**place, "psid_length": 5}).cell)


class Relay:
    """Serves each subscriber but those for which `fault` is true; counts trials and frames."""

    def __init__(self, fault: Callable[[int], bool], kind: str = "lost to the Responder") -> None:
        self.fault, self.kind = fault, kind
        self.trials = self.largest = 0

    def __call__(self, first: int, number: int) -> Missing:
        self.trials += 1
        self.largest = max(self.largest, number)
        missing = sum(self.fault(one) for one in range(first, first + number))
        return Missing(missing, (self.kind,) if missing else (), {"no_subscriber": missing} if missing else {})


def named_by(relay: Relay, number: int = 1000, most: int = 30_000) -> str:
    with pytest.raises(BrokenError) as caught:
        check_each(SETS, number, most, relay)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_relay_without_faults_takes_one_trial_for_each_part() -> None:
    for number, trials in ((1000, 1), (60_000, 2), (100_000, 4)):
        relay = Relay(lambda _: False)
        check_each(SETS, number, 30_000, relay)
        assert (relay.trials, relay.largest) == (trials, min(number, 30_000))


def test_a_forgotten_port_set_is_named_with_its_addresses_and_the_devices_own_count(golden: Golden) -> None:
    for one in (0, 70, 999):
        address, psid = SETS.of(one)
        said = named_by(Relay(lambda number, one=one: number == one))  # type: ignore[misc]
        assert f"subscriber {one} ({address}, PSID {psid}, {SETS.map_address(one)})" in said
        golden(said)


def test_of_many_the_first_three_are_named(golden: Golden) -> None:
    said = named_by(Relay(lambda number: number % 10 == 3, "mistranslated to the Initiator"))
    assert "100 of 1000 subscribers" in said
    assert [f"subscriber {one} (" in said for one in (3, 13, 23, 33)] == [True, True, True, False]
    golden(said)
    assert "; ...; look at" in said


def test_a_subscriber_beyond_the_first_part_is_found(golden: Golden) -> None:
    said = named_by(Relay(lambda number: number == 99_998), 100_000)
    golden(said)


def test_frames_lost_now_and_then_are_no_fault_of_a_subscriber() -> None:
    frames = itertools.count(1)
    check_each(SETS, 1000, 30_000, Relay(lambda _: next(frames) % 97 == 0))
