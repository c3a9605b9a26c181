# SPDX-License-Identifier: Apache-2.0
"""Every gateway of the folder, really started in namespaces: it forwards, counts, empties, and leaves nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import IPv6Network, ip_address
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from tests.labs.datagrams import Datagram
from tests.labs.last_runs import playable, playable_of, record
from tests.labs.wire import Tap

from natgauge.errors import BrokenError
from natgauge.gateways.gateway import Gateway
from natgauge.gateways.limits import DeviceDemand
from natgauge.gateways.recipe import Recipe, load
from natgauge.host.machine import usable_cpus
from natgauge.inputs.question import DeviceOptions
from natgauge.labs.common import namespaces
from natgauge.labs.common.addresses import INSIDE, MAPPED, NAT64_PREFIX, OUTSIDE
from natgauge.labs.common.device import NamespaceDevice
from natgauge.labs.contract import Addresses, Device
from natgauge.labs.netns.lab import NetnsLab
from natgauge.setup.traffic.plan import behind_prefix
from natgauge.words import Address

pytestmark = pytest.mark.calm
HERE = Path(__file__).parent
FILES = (HERE.parents[1] / "src" / "natgauge" / "gateways" / "recipes").glob("*.toml")
#: Chains have tests of their own; what this machine's kernel or disk has not is tried in a guest, or by whoever has it.
#: Those that forward frames; test_dns_servers.py has the others.
NAMES = sorted(
    recipe.name for recipe in map(load, FILES) if not recipe.chain and not recipe.answers_queries and playable(recipe)
)
SOURCES = 4
FLOWS = 200
PLAN = DeviceDemand(connections=FLOWS, phase1_seconds=5, after_seconds=5, source_addresses=SOURCES, remote_endpoints=2)
TABLE_SIZE = Path("/proc/sys/net/netfilter/nf_conntrack_max")
HASH_SIZE = Path("/sys/module/nf_conntrack/parameters/hashsize")


@dataclass
class Bench:
    """A lab with one device, and the recipe to play there; `before` = what was in the device at first.

    `cpus` = cores that the device's snippets see instead of the lab's.
    """

    recipe: Recipe
    lab: NetnsLab
    before: dict[str, str] = field(default_factory=dict)
    cpus: str | None = None

    @property
    def plan(self) -> DeviceDemand:
        """Its subscribers are the sources, where it has any."""
        return replace(PLAN, source_addresses=self.sources, port_sets=self.recipe.port_sets)

    @property
    def sources(self) -> int:
        """Hosts that it serves, of the tester's."""
        most = self.recipe.port_sets.most if self.recipe.port_sets else self.recipe.limits.source_addresses
        return min(SOURCES, most or SOURCES)

    @property
    def device(self) -> Device:
        device = self.lab.devices[0]
        if self.cpus is None:
            return device
        assert isinstance(device, NamespaceDevice)
        return replace(device, environment={**device.environment, "NG_CPUS": self.cpus})

    @property
    def has_vpp(self) -> bool:
        """Whether the device is VPP, which has neighbours, sessions and time-outs of its own."""
        return any(process.name == "vpp" for process in self.recipe.process)

    @property
    def has_switch(self) -> bool:
        """Whether a port of Open vSwitch took the outside interface's place."""
        return any(process.name == "vswitchd" for process in self.recipe.process)

    @property
    def pause(self) -> float:
        """Seconds between new connections: ebpf-nat64 has 16 free ports at a time, and its process supplies more."""
        return 0.002 if self.recipe.name == "ebpf-nat64" else 0.0

    def gateway(self, emptying: str | None = None, **wishes: int) -> Gateway:
        """A gateway not yet prepared."""
        return Gateway(self.recipe, self.device, DeviceOptions(**wishes, emptying=emptying, logging=None))

    def introduce(self, initiator: Tap, responder: Tap) -> None:
        """Tell the device the tester's hosts; with the engine they answer for themselves."""
        side = INSIDE[self.recipe.initiator_family]
        for tap, hosts, interface in (
            (initiator, [side.host(index) for index in range(SOURCES)], self.device.inside),
            (responder, [self.responders()[1]], self.device.outside),
        ):
            for host in hosts:
                mac = tap.mac.hex(":")
                tell = f"ip neigh replace {host} lladdr {mac} dev {interface} nud permanent"
                if self.has_vpp:
                    # VPP has neighbours of its own.
                    tell = f'vppctl -s "$NG_WORK/cli.sock" set ip neighbor host-{interface} {host} {mac} static'
                elif self.has_switch and interface == self.device.outside:
                    # The switch took the interface; its own port has the address.
                    tell = f"ip neigh replace {host} lladdr {mac} dev switch nud permanent"
                assert self.device.run(tell).status == 0

    def responders(self) -> tuple[Address, Address]:
        """The Responder's address as the Initiator writes it, and its own."""
        families = (self.recipe.initiator_family, self.recipe.responder_family)
        if families[0] == families[1] or (self.recipe.tunnelled and self.recipe.relay_alone):
            own = OUTSIDE[families[1]].host(0)
            return own, own
        host = OUTSIDE["ipv4"].host(0)
        behind = behind_prefix(Addresses(host, host), IPv6Network(self.recipe.nat64_prefix or NAT64_PREFIX)).first
        return (behind, host) if families[1] == "ipv4" else (host, behind)

    def datagrams(self) -> list[Datagram]:
        """One for each connection: four sources where the device serves so many, and two destination ports."""
        destination, _ = self.responders()
        sources = self.sources
        return [
            Datagram(
                *self.source(i % sources, i // (2 * sources)),
                destination,
                7 + (i // sources) % 2,
                b"connection %04d" % i,
                self.tunnel(i % sources) if self.recipe.relay_alone else None,
            )
            for i in range(FLOWS)
        ]

    def tunnel(self, number: int) -> tuple[Address, Address] | None:
        """The tunnel of a customer edge, where it has one."""
        sets = self.recipe.port_sets
        if sets is None or not self.recipe.tunnelled:
            return None
        return sets.map_address(number), ip_address(sets.relay)

    def source(self, number: int, port: int) -> tuple[Address, int]:
        """Address and one of the ports of a host, or of a customer edge where the device is behind such."""
        sets = self.recipe.port_sets
        if sets is None or not self.recipe.relay_alone:
            return INSIDE[self.recipe.initiator_family].host(number), 2000 + port
        psid = sets.of(number)[1]
        ports = (own for own in range(65536) if sets.psid(own) == psid)
        own = sets.of(number)[0] if self.recipe.tunnelled else sets.map_address(number)
        return own, next(islice(ports, port, None))

    def outside_of(self, datagram: Datagram) -> tuple[str, int | None]:
        """Address and port a datagram of the Initiator's has outside; None = any port."""
        if self.recipe.edges_alone:
            sets, number = self.recipe.port_sets, self.number(datagram)
            assert sets is not None
            own = sets.of(number)[0] if self.recipe.tunnelled else sets.map_address(number)
            return str(own), None if self.recipe.stateful else datagram.source_port
        if self.recipe.source == "translated":
            own = OUTSIDE[self.recipe.responder_family].device.ip
            return str(self.lab.pool.first if self.lab.pool else own), None
        inside = datagram.source
        if self.recipe.port_sets is not None and not self.recipe.tunnelled:
            sets = self.recipe.port_sets
            inside = next(sets.of(number)[0] for number in range(SOURCES) if sets.map_address(number) == inside)
        elif self.recipe.source == "mapped" and not self.recipe.tunnelled:
            number = int(inside) - int(INSIDE[self.recipe.initiator_family].host(0))
            inside = MAPPED[self.recipe.responder_family].host(number)
        return str(inside), datagram.source_port

    def number(self, datagram: Datagram) -> int:
        """The number of the host that sent it."""
        return int(datagram.source) - int(INSIDE[self.recipe.initiator_family].host(0))

    def leaves_its_edge(self, sent: Datagram, seen: Datagram) -> bool:
        """Whether a datagram left customer edges on a port or through a tunnel that is not its sender's."""
        sets, number = self.recipe.port_sets, self.number(sent)
        if sets is None or not self.recipe.edges_alone:
            return False
        right = sets.psid(seen.source_port) == sets.of(number)[1] or not self.recipe.stateful
        return not right or seen.tunnel != self.tunnel(number)


def make_bench(name: str | Path, lab: str = "test-gateways") -> Bench:
    recipe = load(name)
    if "SERVICES" in recipe.environment:
        # 5000 services take seconds to load, at each start.
        recipe = recipe.model_copy(update={"environment": {**recipe.environment, "SERVICES": "50"}})
    families = (recipe.initiator_family, recipe.responder_family)
    prefix = recipe.nat64_prefix
    return Bench(
        recipe,
        NetnsLab(
            lab, initiator_family=families[0], responder_family=families[1], nat64_prefix=prefix, pool=recipe.pool4
        ),
    )


@pytest.fixture(params=NAMES)
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    bench = make_bench(request.param, "test-each-gateway")
    with bench.lab:
        # The first look loads what the kernel makes on demand (conntrack's settings).
        traces(bench.device)
        bench.before = traces(bench.device)
        yield bench


def traces(device: Device) -> dict[str, str]:
    """All a gateway could leave in its namespace."""
    snippets = {
        "rules": "nft list ruleset | grep -v '^#' || :",
        "links": "ip -o link show | cut -d: -f2",
        "routes": "ip route; ip -6 route",
        "programs": "tc qdisc show | grep clsact || :",
        "time-outs": "cat /proc/sys/net/netfilter/nf_conntrack_udp_timeout* || :",
        "files": 'ls -A "$NG_WORK"',
    }
    # One process in the namespace for all of them: starting it takes longer than what it does.
    answer = device.run("\n".join(f"echo '== {what}'\n{snippet}" for what, snippet in snippets.items()))
    assert answer.status == 0, answer.stderr
    return {"found": answer.stdout, "processes": str(namespaces.processes(f"ng-{device.environment['NG_NAME']}"))}


def test_it_translates_both_ways_counts_exactly_empties_and_leaves_nothing(bench: Bench) -> None:
    """At its second start; forwarding is the lab's choice before the first one, and off afterwards."""
    recipe, device = bench.recipe, bench.device
    with bench.gateway() as gateway, Tap(bench.lab.initiator) as initiator, Tap(bench.lab.responder) as responder:
        gateway.prepare(bench.plan)
        gateway.start()
        gateway.stop()
        assert traces(device) == bench.before
        gateway.prepare(bench.plan)
        gateway.start()
        bench.introduce(initiator, responder)
        assert gateway.count() == (0 if recipe.stateful else None)

        sent = bench.datagrams()
        initiator.send(sent, bench.pause)
        seen = responder.receive(FLOWS)
        assert sorted(one.payload for one in seen) == sorted(one.payload for one in sent)
        outside = {one.payload: bench.outside_of(one) for one in sent}
        for one in seen:
            source, port = outside[one.payload]
            assert (str(one.source), port or one.source_port) == (source, one.source_port)
        by_payload = {one.payload: one for one in sent}
        assert not any(bench.leaves_its_edge(by_payload[one.payload], one) for one in seen)
        assert len({(one.source, one.source_port, one.destination_port) for one in seen}) == FLOWS
        assert gateway.count() == (FLOWS if recipe.stateful else None)

        responder.send(one.reply() for one in seen)
        back = initiator.receive(FLOWS)
        assert len(back) == FLOWS
        assert all(one == by_payload[one.payload].reply() for one in back)
        assert gateway.count() == (FLOWS if recipe.stateful else None)

        gateway.empty()
        assert gateway.count() == (0 if recipe.stateful else None)
        if recipe.source == "translated":
            responder.send(one.reply() for one in seen)
            assert initiator.receive(1, seconds=0.3) == [], "an emptied gateway still knows connections"
        record(recipe.name, "here", gateway.version())
        check_settings(bench, gateway.settings().as_dict())
        gateway.stop()
        assert traces(device) == bench.before


def check_settings(bench: Bench, settings: Mapping[str, Any]) -> None:
    """The settings of a started gateway name what runs, and fit the plan."""
    assert settings["version"][0].startswith("vpp v" if bench.has_vpp else "Linux ")
    if not bench.recipe.stateful:
        cores = bench.recipe.knobs.cores
        assert settings["knobs"] == ({"cores": 1} if cores and cores.scope == "device" else {})
        return
    assert len(settings["version"]) > 1 or bench.has_vpp
    if bench.recipe.knobs.table_size:
        assert settings["knobs"]["table_size"] >= FLOWS
    if bench.recipe.knobs.udp_timeout:
        assert settings["knobs"]["udp_timeout"] > PLAN.needed_seconds
    if not bench.recipe.knobs.hash_size:
        return
    assert settings["connections_per_bucket"] == FLOWS / settings["knobs"]["hash_size"]
    timeouts = [settings["files"].get(f"nf_conntrack_udp_timeout{end}", 0) for end in ("", "_stream")]
    assert timeouts == sorted(timeouts)


@pytest.mark.parametrize("workers", ["", "1"])
@pytest.mark.parametrize("name", playable_of("vpp-nat44-ed", "vpp-nat64", "vpp-det44"))
def test_vpps_workers_translate_count_exactly_and_have_the_devices_cores(name: str, workers: str) -> None:
    """VPP's threads have the first five cores of this machine, or as many as there are."""
    cores = usable_cpus()[: SOURCES + 1]
    bench = make_bench(name)
    bench.cpus = ",".join(map(str, cores))
    bench.recipe = bench.recipe.model_copy(update={"environment": {**bench.recipe.environment, "VPP_WORKERS": workers}})
    expected = 1 if workers else len(cores) - 1
    with bench.lab, bench.gateway() as gateway, Tap(bench.lab.initiator) as one, Tap(bench.lab.responder) as other:
        gateway.prepare(PLAN)
        gateway.start()
        assert gateway.version()[1:] == ((f"{expected} workers",) if expected else ())
        assert gateway.settings().knobs["cores"] == (1 if workers else len(cores))
        bench.introduce(one, other)
        for _ in range(2):
            one.send(bench.datagrams())
            seen = other.receive(FLOWS)
            assert len(seen) == gateway.count() == FLOWS
            other.send(datagram.reply() for datagram in seen)
            assert len(one.receive(FLOWS)) == FLOWS
            gateway.empty()
            assert gateway.count() == 0


def test_the_page_on_gateways_has_an_example_that_works(tmp_path: Path) -> None:
    example = re.search(r"```toml\n(.*?)```", (HERE.parents[1] / "docs" / "recipes.md").read_text(), re.DOTALL)
    assert example
    path = tmp_path / "nftables-snat44.toml"
    path.write_text(example[1])
    bench = make_bench(path)
    with bench.lab, bench.gateway() as gateway, Tap(bench.lab.initiator) as one, Tap(bench.lab.responder) as other:
        gateway.prepare(PLAN)
        gateway.start()
        bench.introduce(one, other)
        one.send(bench.datagrams())
        seen = other.receive(FLOWS)
        assert len(seen) == gateway.count() == FLOWS
        assert {datagram.source_port // 10000 for datagram in seen} <= {2, 3}, "ports outside of the recipe's pool"
        gateway.stop()
        assert "natgauge" not in bench.device.run("nft list ruleset").stdout


@pytest.mark.alone  # other labs rely on what it changes for the whole machine
def test_global_knobs_are_raised_for_the_plan_and_put_back() -> None:
    found = TABLE_SIZE.read_text(), HASH_SIZE.read_text()
    connections = max(int(value) for value in found) + 1
    plan = DeviceDemand(connections=connections, phase1_seconds=1, remote_endpoints=1000)
    bench = make_bench("nftables-nat44")
    with bench.lab as lab:
        (device,) = lab.devices
        with Gateway(bench.recipe, device) as gateway:
            gateway.prepare(plan)
            assert (TABLE_SIZE.read_text(), HASH_SIZE.read_text()) == found, "preparing changes nothing"
            gateway.start()
            assert int(TABLE_SIZE.read_text()) >= connections
            assert int(HASH_SIZE.read_text()) >= connections
            assert gateway.settings().found["table_size"] == int(found[0])
    assert (TABLE_SIZE.read_text(), HASH_SIZE.read_text()) == found


def test_a_daemon_that_died_is_noticed() -> None:
    bench = make_bench("tayga-nat64")
    with bench.lab, bench.gateway() as gateway:
        gateway.prepare(PLAN)
        gateway.start()
        bench.device.run('kill -KILL "$(cat "$NG_WORK/tayga.pid")"; sleep 0.2')
        with pytest.raises(BrokenError, match="is not ready any more"):
            gateway.confirm_ready()
