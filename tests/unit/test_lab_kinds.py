# SPDX-License-Identifier: Apache-2.0
"""Kinds of labs: found by name, planned from options, which cores they take, and which addresses the traffic has."""

from __future__ import annotations

import inspect
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.golden import Golden

from natgauge import labs
from natgauge.audits.request import audit_request
from natgauge.embedding import PREFIX_LENGTHS, embedded, extracted
from natgauge.errors import UsageError
from natgauge.gateways.recipe import available, load
from natgauge.gateways.toml_layers import BUILT_IN
from natgauge.host import machine
from natgauge.host.machine import as_if, check_cpus, idlest_core, usable_cpus
from natgauge.inputs.input import inputs_of
from natgauge.inputs.measuring_types import format_cores, parse_cores
from natgauge.inputs.question import TrafficOptions
from natgauge.labs import kinds, netns, wire
from natgauge.labs.common import locks
from natgauge.labs.common.addresses import (
    INNER_LINKS,
    INSIDE,
    MAPPED,
    NAT64_PREFIX,
    OUTSIDE,
    LinkSide,
    inner_link,
)
from natgauge.labs.common.port_options import PortOptions
from natgauge.labs.contract import LabNeeds, Port
from natgauge.labs.netns.lab import NetnsLab
from natgauge.setup.setup import Setup, need_of
from natgauge.setup.traffic import AddressPlan, make_plan
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask
from natgauge.words import Family

IPV4 = LabNeeds(families=("ipv4", "ipv4"))


@pytest.fixture
def busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four cores; 2 is the idlest, 1 does nothing but work. How fast each is is not known."""
    monkeypatch.setattr(machine, "_CPUS", str(tmp_path))
    readings = iter([{0: 100, 1: 50, 2: 70, 3: 0}, {0: 105, 1: 50, 2: 89, 3: 19}])
    monkeypatch.setattr(machine, "_idle_ticks", lambda: next(readings))
    monkeypatch.setattr(machine, "usable_cpus", lambda: (0, 1, 2, 3))


@pytest.mark.usefixtures("busy")
@pytest.mark.parametrize(("usable", "core"), [((0, 1, 2, 3), 2), ((0, 1), 0)])
def test_the_sender_gets_the_least_busy_core_that_may_be_used_and_the_first_of_equals(
    usable: tuple[int, ...], core: int
) -> None:
    assert idlest_core(usable, 0.0) == core


@pytest.mark.usefixtures("busy")
@pytest.mark.parametrize(
    ("speeds", "core"),
    [
        ({"cpu_capacity": (1024, 1024, 446, 446)}, 0),
        ({"cpufreq/cpuinfo_max_freq": (5_200_000, 5_100_000, 3_900_000, 3_900_000)}, 0),
        # What the kernel knows of the work that a core does counts more than its clock.
        ({"cpu_capacity": (300, 1024, 1024, 300), "cpufreq/cpuinfo_max_freq": (5_000_000, 1, 1, 1)}, 2),
        # Of equal cores two are preferred, and may be clocked a little higher.
        ({"cpufreq/cpuinfo_max_freq": (5_200_000, 5_000_000, 5_000_000, 5_200_000)}, 2),
        # Not known of every core.
        ({"cpu_capacity": (1024, 1024, 446)}, 2),
    ],
)
def test_the_sender_gets_no_slow_core_however_idle_it_is(
    tmp_path: Path, speeds: dict[str, tuple[int, ...]], core: int
) -> None:
    for name, values in speeds.items():
        for number, value in enumerate(values):
            file = tmp_path / f"cpu{number}" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{value}\n")
    assert idlest_core((0, 1, 2, 3), 0.0) == core


@pytest.mark.parametrize("options", [{"cores": (0,)}, {"sender_cores": (0,)}])
def test_cores_that_were_chosen_stay(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("natgauge.labs.netns.lab.idlest_core", None)
    lab = netns.plan("x", netns.NetnsOptions(**options), IPV4)
    lab._prepare()
    assert lab.sender_cpus == (0,)


def test_cores_that_nobody_chose_are_chosen_when_the_lab_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    last = usable_cpus()[-1]
    monkeypatch.setattr("natgauge.labs.netns.lab.idlest_core", lambda _cpus: last)
    lab = netns.plan("x", netns.NetnsOptions(), IPV4)
    lab._prepare()
    assert (lab.sender_cpus, lab.device_cpus) == ((last,), (last,))
    assert lab.devices[0].environment["NG_CPUS"] == str(last)
    assert lab.settings["sender_cpus"] == [last]


@pytest.mark.usefixtures("busy")
@pytest.mark.parametrize(
    ("options", "cores"),
    [
        ({"cores": (0, 1)}, ((0, 1), (0, 1))),
        ({"placement": "shared", "sender_cores": (1,)}, ((1,), None)),
        ({"placement": "isolated", "sender_cores": (1,)}, ((1,), None)),
    ],
)
def test_in_shared_placement_the_devices_cores_are_the_senders(
    options: dict[str, Any], cores: tuple[object, object]
) -> None:
    assert netns.choose_cores(netns.NetnsOptions(**options), IPV4) == cores


def wired(**others: str) -> wire.WireOptions:
    given = {
        "initiator_port": "ngnone0",
        "initiator_gateway": "10.0.0.1",
        "responder_port": "ngnone1",
        "responder_gateway": "198.19.0.1",
    }
    return wire.WireOptions(**{**given, **others})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("gateway", "mac", "address"),
    [
        ("02:00:00:00:00:AB", "02:00:00:00:00:ab", None),
        ("10.0.0.1", None, "10.0.0.1"),
        ("2001:2::1", None, "2001:2::1"),
    ],
)
def test_a_wire_ports_gateway_is_a_mac_or_an_address(gateway: str, mac: str | None, address: str | None) -> None:
    assert wire.plan("x", wired(initiator_gateway=gateway), IPV4).initiator == Port("ngnone0", None, mac, address)


@pytest.mark.parametrize("gateway", ["router", "aa:bb:cc:dd:ee:gg", "aa:bb:cc:dd:ee:+1", "aa:bb:cc:dd:ee:ff\n"])
def test_a_wire_ports_gateway_that_is_neither_is_named(gateway: str) -> None:
    with pytest.raises(UsageError, match=r"initiator gateway: '.*' is neither a MAC nor an IP address"):
        wire.plan("x", wired(initiator_gateway=gateway), IPV4)


@pytest.mark.parametrize("interface", ["a/b", "x" * 300])
def test_a_port_whose_name_no_file_can_have_does_not_exist(
    interface: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("natgauge.host.capabilities.require", lambda *_: None)
    monkeypatch.setattr(locks, "RUN", tmp_path / "run")
    lab = wire.plan("x", wired(initiator_port=interface), IPV4)
    with pytest.raises(UsageError, match=f"interface {interface[:9]}.*does not exist"):
        lab.take()
    assert not (tmp_path / "run").exists()


def around(gateway: str, **choices: object) -> AddressPlan:
    return Bench(ask("pdv", gateway, choices).cell).address_plan


WIRE: dict[str, object] = {
    "lab": "wire",
    "initiator_port": "ngnone0",
    "initiator_gateway": "2001:2::1",
    "responder_port": "ngnone1",
    "responder_gateway": "198.19.0.1",
}


def test_a_nat64_has_a_prefix_and_a_pool_of_the_devices_outside_address() -> None:
    found = around("tayga-nat64")
    assert (found.inside.family, found.outside.family) == ("ipv6", "ipv4")
    assert found.prefix is not None
    assert str(found.pool) == "198.19.0.1"
    assert found.mapped is None
    routed = around("linux-ipv4")
    assert (routed.prefix, routed.pool, routed.translated) == (None, None, False)


def test_a_stateless_translator_maps_host_for_host() -> None:
    found = around("tayga-siit")
    assert (found.translated, found.pool, str(found.mapped)) == (False, None, "198.18.0.2-198.18.255.254")
    assert str(found.prefix) == "2001:2:0:1::/96"


def test_a_clat_alone_has_its_responder_behind_the_prefix_and_maps_its_customers() -> None:
    found = around("tayga-clat")
    assert (found.inside.family, found.outside.family, str(found.prefix)) == ("ipv4", "ipv6", "2001:2:0:1::/96")
    assert str(found.mapped).startswith("2001:2:0:9::2-")
    plan = make_plan(TrafficOptions(destination_addresses="198.19.0.9-198.19.0.10", connections=10), found)
    assert str(plan.destination_addresses) == "198.19.0.9-198.19.0.10"
    assert str(plan.responder_addresses) == "2001:2:0:1::c613:9-2001:2:0:1::c613:a"
    assert str(plan.mapped_addresses) == "2001:2:0:9::2"


@pytest.mark.parametrize("lab", ["netns", "wire"])
def test_a_nat64_prefix_is_in_front_of_the_responders_addresses(lab: str) -> None:
    place = {} if lab == "netns" else WIRE
    bench = Bench(ask("pdv", "jool-nat64", {**place, "nat64_prefix": "64:ff9b::/96"}).cell)
    assert str(bench.traffic.destination_addresses) == "64:ff9b::c613:2"
    assert str(bench.traffic.responder_addresses) == "198.19.0.2"
    assert bench.lab.parameters()["nat64_prefix"] == "64:ff9b::/96"
    if lab == "netns":
        assert bench.lab.devices[0].environment["NG_NAT64_PREFIX"] == "64:ff9b::/96"


def test_a_gateway_that_knows_one_prefix_only_gets_it_and_refuses_others(golden: Golden) -> None:
    bench = Bench(ask("connection-rate", "ebpf-nat64", {}).cell)
    assert str(bench.traffic.destination_addresses) == "64:ff9b::c613:2"
    assert bench.lab.devices[0].environment["NG_NAT64_PREFIX"] == "64:ff9b::/96"
    assert Bench(ask("connection-rate", "ebpf-nat64", {"nat64_prefix": "64:ff9b::/96"}).cell).lab.parameters()
    with golden.raises(UsageError):
        Bench(ask("connection-rate", "ebpf-nat64", {"nat64_prefix": "2001:db8::/96"}).cell)


@pytest.mark.parametrize("gateway", ["nftables-nat44", "linux-ipv6", "nftables-nptv6", "ds-lite", "lwaftr", "knot-dns"])
def test_a_prefix_for_a_gateway_without_embedded_addresses_is_refused(gateway: str, golden: Golden) -> None:
    with golden.raises(UsageError):
        around(gateway, nat64_prefix="2001:db8::/96")
    with pytest.raises(UsageError, match="embed"):
        Setup(audit_request(gateway, {"nat64_prefix": "2001:db8::/96"})[0])


def test_a_gateway_whose_snippets_have_the_prefix_takes_one() -> None:
    starts = [(each, "".join(each.verbs.pieces("start"))) for each in map(load, available())]
    # The reference is for several kinds of softwires, of which one has a prefix.
    told = [recipe for recipe, text in starts if "NG_NAT64_PREFIX" in text and "natgauge-softwire" not in text]
    assert len(told) > 10
    assert [recipe.name for recipe in told if not recipe.embeds] == []
    # A chain has it through its devices, whatever its own kind.
    assert load("464xlat-tayga").model_copy(update={"kind": "nat44"}).embeds


@pytest.mark.parametrize(
    ("prefix", "first", "last"),
    [
        ("2001:db8::/32", "2001:db8:c613:9::", "2001:db8:c613:209::"),
        ("2001:db8:100::/40", "2001:db8:1c6:1300:9::", "2001:db8:1c6:1302:9::"),
        ("2001:db8:122::/48", "2001:db8:122:c613:0:900::", "2001:db8:122:c613:2:900::"),
        ("2001:db8:122:300::/56", "2001:db8:122:3c6:13:9::", "2001:db8:122:3c6:13:209::"),
        ("2001:db8:122:344::/64", "2001:db8:122:344:c6:1300:900:0", "2001:db8:122:344:c6:1302:900:0"),
    ],
)
@pytest.mark.parametrize("gateway", ["tayga-nat64", "tayga-clat"])
def test_hosts_behind_a_shorter_prefix_are_embedded_around_a_zero_octet(
    prefix: str, first: str, last: str, gateway: str
) -> None:
    found = around(gateway, nat64_prefix=prefix)
    plan = make_plan(TrafficOptions(destination_addresses="198.19.0.9-198.19.2.9", connections=10), found)
    embedded = plan.destination_addresses if gateway == "tayga-nat64" else plan.responder_addresses
    assert (embedded.first, embedded.last) == (IPv6Address(first), IPv6Address(last))
    assert embedded.count == 513
    assert [embedded.at(index) in embedded for index in (-1, 0, 512, 513)] == [False, True, True, False]
    assert embedded.first + 1 not in embedded


def test_a_gateway_with_xdp_programs_gets_no_cards_made_of_such(golden: Golden) -> None:
    assert Bench(ask("connection-rate", "ebpf-nat64", {}).cell).lab.placement == "shared"
    with golden.raises(UsageError):
        Bench(ask("connection-rate", "ebpf-nat64", {"placement": "isolated"}).cell)


def test_a_stateless_translator_on_a_wire_maps_the_source_addresses_to_those_that_are_named(golden: Golden) -> None:
    sources, mapped = "2001:db8::10-2001:db8::12", "192.0.2.33-192.0.2.35"
    siit = {**WIRE, "source_addresses": sources}
    bench = Bench(ask("throughput", "tayga-siit", {**siit, "mapped_addresses": mapped}).cell)
    assert str(bench.traffic.mapped_addresses) == mapped
    assert not bench.address_plan.translated
    assert not bench.plan("throughput", {"stateless": True}).settings.has_phase1
    assert bench.lab.parameters()["mapped_addresses"] == mapped
    unknown = Bench(ask("throughput", "tayga-siit", siit).cell)
    with golden.raises(UsageError):
        unknown.plan("throughput", {"stateless": True})
    with golden.raises(UsageError):
        Bench(ask("throughput", "tayga-siit", {**siit, "mapped_addresses": "192.0.2.33"}).cell)
    with golden.raises(UsageError):
        Bench(ask("throughput", "tayga-nat64", {**siit, "mapped_addresses": mapped}).cell)


def test_a_clat_on_a_wire_has_its_responder_behind_the_prefix() -> None:
    wire = {**WIRE, "initiator_gateway": "10.0.0.1", "responder_gateway": "2001:2:0:8000::1"}
    named = {"mapped_addresses": "2001:db8:c::2", "nat64_prefix": "64:ff9b::/96"}
    traffic = Bench(ask("pdv", "tayga-clat", {**wire, **named}).cell).traffic
    assert str(traffic.destination_addresses) == "198.19.0.2"
    assert str(traffic.responder_addresses) == "64:ff9b::c613:2"
    assert str(traffic.mapped_addresses) == "2001:db8:c::2"


@pytest.mark.parametrize("part", ["reference-ce", "reference-br", "softwire-ce", "softwire-pe", "tayga-map-br"])
def test_one_end_of_a_softwire_is_no_gateway_alone(part: str, golden: Golden) -> None:
    path = BUILT_IN / "parts" / f"{part}.toml"
    with golden.raises(UsageError):
        around(str(path))


def test_a_border_relay_alone_has_the_customer_edges_of_its_rule_also_on_a_wire() -> None:
    for found in (around("map-t-br"), around("map-t-br", **WIRE)):
        assert (found.half, found.translated, found.mapped) == (True, False, None)
        assert (str(found.inside.tester), str(found.prefix)) == ("2001:2::2", "2001:2:0:1::/96")
        plan = make_plan(TrafficOptions(subscribers=60_000), found)
        assert (plan.sources, str(plan.source_addresses)) == (60_000, "2001:2::2")


def test_customer_edges_on_a_wire_are_those_of_the_recipes_rule() -> None:
    wire = {**WIRE, "initiator_gateway": "10.0.0.1", "responder_gateway": "2001:2:0:8000::1"}
    asked = {**wire, "nat64_prefix": "64:ff9b::/96", "subscribers": 10}
    for gateway in ("map-t-ce", "map-e-ce", "lwb4", "b4"):
        traffic = Bench(ask("throughput", gateway, asked).cell).traffic
        assert (traffic.tested_edges, traffic.sources) == (load(gateway).port_sets, 10)
        assert (str(traffic.destination_addresses), str(traffic.responder_addresses)) == (
            "198.19.0.2",
            "64:ff9b::c613:2",
        )


def test_what_a_foreign_device_maps_to_is_not_known_so_any_source_is_right() -> None:
    found = around("tayga-siit", **WIRE)
    assert (found.translated, found.pool, found.mapped) == (True, None, None)
    found = around("nftables-nat44", **{**WIRE, "initiator_gateway": "10.0.0.1"})
    assert (found.pool, found.mtu, str(found.inside.device)) == (None, 1500, "10.0.0.1")


def test_a_kind_is_found_by_its_modules_name_and_an_unknown_one_is_told_with_the_known_ones(golden: Golden) -> None:
    folders = sorted(file.parent.name for folder in labs.__path__ for file in Path(folder).glob("*/__init__.py"))
    assert list(kinds.kinds()) == [name for name in folders if name != "common"]
    with golden.raises(UsageError):
        kinds.get("cloud")


def test_options_of_another_kind_are_refused_with_the_kind_that_has_them(golden: Golden) -> None:
    having = [name for name, kind in kinds.kinds().items() if issubclass(kind.options, PortOptions)]
    assert having
    with golden.raises(UsageError, at="initiator_port"):
        ask("pdv", "linux-ipv4", {"initiator_port": "eth0"})


def test_the_ring_that_is_told_as_default_is_the_labs() -> None:
    (told,) = [option.default_text for option in inputs_of(netns.NetnsOptions, "place") if option.name == "ring"]
    assert told == str(inspect.signature(NetnsLab).parameters["ring"].default)


def test_a_device_with_processes_of_its_own_asks_for_cores_of_its_own() -> None:
    assert need_of(load("tayga-nat64")).own_processes
    assert not need_of(load("nftables-nat44")).own_processes


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lab of the name "mine" stands and is kept."""
    standing = NetnsLab("mine", initiator_family="ipv4", responder_family="ipv4", placement="shared").settings
    monkeypatch.setattr(
        "natgauge.labs.common.base.kept_settings", lambda name, _kind: dict(standing) if name == "mine" else None
    )


@pytest.mark.usefixtures("kept")
def test_a_kept_lab_is_used_where_nothing_else_is_asked_for() -> None:
    lab = netns.plan("mine", netns.NetnsOptions(placement="shared"), LabNeeds(families=("ipv4", "ipv4"), hosts=9))
    assert lab._adopts
    assert lab.hosts == 9
    assert not netns.plan("other", netns.NetnsOptions(), IPV4)._adopts


def test_the_cores_of_a_real_server_are_those_that_are_left_or_named() -> None:
    def cpus(**asked: object) -> str:
        lab = NetnsLab("planned", initiator_family="ipv4", responder_family="ipv4", **asked)  # type: ignore[arg-type]
        assert lab.server is not None
        return lab.server.environment["NG_CPUS"]

    with as_if(4):
        assert cpus(placement="isolated", sender_cpus=[0], device_cpus=[1]) == "2,3"
        assert cpus(placement="isolated", sender_cpus=[0], device_cpus=[1, 2], server_cpus=[2]) == "2"
        assert cpus(placement="isolated") == ""
        assert cpus() == "1,2,3"


def test_a_lab_has_room_for_all_hosts_of_both_networks_as_neighbours() -> None:
    lab: Any = Bench(ask("connection-rate", "nftables-nat44", {"addresses": "draft"}).cell).lab
    assert lab.hosts == 2 * 65_533


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize(
    ("options", "need"),
    [
        ({"placement": "isolated"}, IPV4),
        ({"ring": 1024}, IPV4),
        ({"sender_cores": "4095"}, IPV4),
        ({}, LabNeeds(families=("ipv6", "ipv4"))),
        ({}, LabNeeds(families=("ipv4", "ipv4"), background=True)),
        ({}, LabNeeds(families=("ipv4", "ipv4"), nat64_prefix=IPv6Network("64:ff9b::/96"))),
    ],
)
def test_a_kept_lab_that_is_another_one_than_asked_for_is_refused(
    options: dict[str, Any], need: LabNeeds, golden: Golden
) -> None:
    with pytest.raises(UsageError) as refused:
        netns.plan("mine", netns.NetnsOptions(**options), need)
    golden(refused.value, passing=r"(?<=with sender cores )\d+")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", (0,)), ("2,0", (0, 2)), ("0-3", (0, 1, 2, 3)), (" 1-2 , 8\n", (1, 2, 8)), ("5-5", (5,))],
)
def test_reading(text: str, expected: tuple[int, ...]) -> None:
    assert parse_cores(text) == expected


@pytest.mark.parametrize("text", ["", "a", "0,", "-1", "1-", "0x1", "1.5", "3-1", "0,0", "0-2,1", "999999"])
def test_bad_lists_are_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError) as refusal:
        parse_cores(text)
    assert f'"{text}"' in str(refusal.value)
    assert "\n" not in str(refusal.value)


@given(st.sets(st.integers(0, 4095), min_size=1))
def test_what_is_written_can_be_read(chosen: set[int]) -> None:
    assert parse_cores(format_cores(chosen)) == tuple(sorted(chosen))


def test_a_usable_core_is_accepted_and_its_time_is_read() -> None:
    first = usable_cpus()[0]
    assert check_cpus([first], "sender cores") == (first,)
    assert set(usable_cpus()) <= set(machine._idle_ticks())


@pytest.mark.parametrize("chosen", [(), (0, 0), (7,)])
def test_bad_choices_are_refused(chosen: tuple[int, ...], monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    monkeypatch.setattr(machine, "usable_cpus", lambda: (0, 1))
    with golden.raises(UsageError):
        check_cpus(chosen, "sender cores")


@pytest.mark.parametrize(("isolated", "is_named"), [("2-3\n", True), ("2\n", False), ("\n", False), (None, False)])
def test_the_way_to_a_core_that_the_kernel_isolates_is_named(
    isolated: str | None,
    is_named: bool,  # noqa: FBT001
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`isolcpus=` takes it from all processes, also where docs/host.md advises it."""
    file = tmp_path / "isolated"
    if isolated is not None:
        file.write_text(isolated)
    monkeypatch.setattr(machine, "_ISOLATED", file)
    monkeypatch.setattr(machine, "usable_cpus", lambda: (0, 1))
    monkeypatch.setattr(machine, "online_cpus", lambda: (0, 1, 2, 3))
    with pytest.raises(UsageError, match="core 3 cannot be used here; choose from 0,1") as refused:
        check_cpus([3], "sender cores")
    assert ("taskset -c 0,1,2,3" in str(refused.value)) is is_named
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("side", "device", "first", "last"),
    [
        (INSIDE["ipv4"], "10.0.0.1", "10.0.0.2", "10.0.255.254"),
        (OUTSIDE["ipv4"], "198.19.0.1", "198.19.0.2", "198.19.255.254"),
        (MAPPED["ipv4"], "198.18.0.1", "198.18.0.2", "198.18.255.254"),
        (INSIDE["ipv6"], "2001:2::1", "2001:2::2", "2001:2::ffff:ffff:ffff:fffe"),
        (OUTSIDE["ipv6"], "2001:2:0:8000::1", "2001:2:0:8000::2", "2001:2:0:8000:ffff:ffff:ffff:fffe"),
    ],
)
def test_sides(side: LinkSide, device: str, first: str, last: str) -> None:
    assert side.device.ip == ip_address(device)
    assert side.range(side.hosts) == (ip_address(first), ip_address(last))


@pytest.mark.parametrize("side", [*INSIDE.values(), *OUTSIDE.values(), *MAPPED.values()])
@pytest.mark.parametrize("beyond", [-1, 0])
def test_no_host_beyond_the_network(side: LinkSide, beyond: int) -> None:
    index = side.hosts if beyond == 0 else beyond
    with pytest.raises(UsageError, match="use fewer addresses"):
        side.host(index)
    with pytest.raises(UsageError):
        side.range(0)


def test_no_two_networks_overlap() -> None:
    networks = [side.device.network for side in (*INSIDE.values(), *OUTSIDE.values(), *MAPPED.values())]
    networks += [NAT64_PREFIX]
    networks += [inner_link(index, family)[0].network for index in range(INNER_LINKS) for family in INSIDE]
    for index, one in enumerate(networks):
        assert not any(one.version == other.version and one.overlaps(other) for other in networks[index + 1 :])


@pytest.mark.parametrize(
    ("family", "first"),
    [("ipv4", ["192.0.2.1/30", "192.0.2.2/30"]), ("ipv6", ["2001:2:0:64::1/64", "2001:2:0:64::2/64"])],
)
def test_inner_links_join_two_addresses_of_one_network_and_the_first_is_the_documented_one(
    family: Family, first: list[str]
) -> None:
    near, far = inner_link(63, family)
    assert near.network == far.network
    assert near.ip + 1 == far.ip
    with pytest.raises(UsageError, match="use fewer devices"):
        inner_link(64, family)
    assert [str(end) for end in inner_link(0, family)] == first


def test_outside_networks_are_for_benchmarking_only() -> None:
    assert OUTSIDE["ipv4"].device in ip_network("198.18.0.0/15")
    assert MAPPED["ipv4"].device in ip_network("198.18.0.0/15")
    assert OUTSIDE["ipv6"].device in ip_network("2001:2::/48")


#: RFC 6052 section 2.4, table 2: of 192.0.2.33.
TABLE2 = {
    "2001:db8::/32": "2001:db8:c000:221::",
    "2001:db8:100::/40": "2001:db8:1c0:2:21::",
    "2001:db8:122::/48": "2001:db8:122:c000:2:2100::",
    "2001:db8:122:300::/56": "2001:db8:122:3c0:0:221::",
    "2001:db8:122:344::/64": "2001:db8:122:344:c0:2:2100::",
    "2001:db8:122:344::/96": "2001:db8:122:344::192.0.2.33",
}


@pytest.mark.parametrize("prefix", TABLE2)
def test_embedding_as_in_rfc6052_section_2_4(prefix: str) -> None:
    assert embedded(IPv6Network(prefix), IPv4Address("192.0.2.33")) == IPv6Address(TABLE2[prefix])


@given(st.sampled_from(PREFIX_LENGTHS), st.integers(0, 2**32 - 1))
def test_the_octets_of_the_address_follow_the_prefix_around_a_zero_octet_u(length: int, value: int) -> None:
    octets = embedded(IPv6Network((0x20010DB8_01220344 << 64, length), strict=False), IPv4Address(value)).packed
    assert octets[8] == 0
    without_u = octets if length == 96 else octets[:8] + octets[9:]
    first = length // 8
    assert without_u[first : first + 4] == value.to_bytes(4, "big")
    assert not any(without_u[first + 4 :])
    assert extracted(IPv6Address(octets), length) == IPv4Address(value)


def test_a_gateway_that_forwards_nothing_can_be_looked_at_in_a_lab_that_can_be_kept(golden: Golden) -> None:
    golden(Bench(ask("throughput", "nftables-nat44", {"transport": "icmp"}).cell).dropped_traffic(None))
