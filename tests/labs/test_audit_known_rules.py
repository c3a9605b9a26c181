# SPDX-License-Identifier: Apache-2.0
"""Rule sets of nftables whose behaviour is known: an audit names each behaviour, three times, and none wrong."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from tests.labs.nat44 import chain, with_table
from tests.labs.test_audit import audited, verdicts

from natgauge.audits.kit.hosts import LEAST_ALLOWANCE
from natgauge.audits.requirements import requirements

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]
RUNS: Final = pytest.mark.parametrize("run", [1, 2, 3])
HOSTS: Final = (2, 3, 4)
INSIDE, OUTSIDE = ("10.0.0.{}", "198.19.0.{}")
#: Classes of mapping and filtering: endpoint-independent, address-dependent, address and port-dependent.
EI, AD, APD = ("endpoint-independent", "address-dependent", "address and port-dependent")


def pairs(key: str, value: str) -> str:
    return ", ".join(f"{key.format(host)} : {value.format(f'1{host}')}" for host in HOSTS)


def source(*rules: str) -> str:
    return chain("type nat hook postrouting priority srcnat - 1", *rules, name="source")


def destination(rule: str) -> str:
    return chain("type nat hook prerouting priority dstnat", rule, name="destination")


def filtered(*rules: str) -> str:
    return chain("type filter hook forward priority filter", *rules, name="filtered")


#: Each inside host has an outside address of its own.
OWN_ADDRESS: Final = f"snat to ip saddr map {{ {pairs(INSIDE, OUTSIDE)} }}"
TO_OUTSIDE: Final = f'oifname "$NG_OUTSIDE" {OWN_ADDRESS}'
ENTERS: Final = "dnat to ip daddr map { %s }" % ", ".join(  # noqa: UP031 - braces belong to nftables
    f"{OUTSIDE.format(f'1{host}')} : {INSIDE.format(host)}" for host in HOSTS
)
#: Each inside host has an outside address of its own for each remote address.
BY_REMOTE: Final = ", ".join(
    f"{INSIDE.format(host)} . {OUTSIDE.format(remote)} : {OUTSIDE.format(10 * host + remote)}"
    for host in HOSTS
    for remote in HOSTS
)
#: Remote addresses to which an inside endpoint has sent.
ADMITTED: Final = "    set admitted { type ipv4_addr . inet_service . ipv4_addr; flags dynamic; size 65535; }\n"
PORTS: Final = "meta l4proto { tcp, udp }"


@dataclass(frozen=True)
class Known:
    """A rule set, its classes (mapping, filtering, ports, hairpinning), and requirements with their verdicts.

    Where each inside host has an outside address of its own, no two hosts compete for a port. So mapping and ports are
    not seen.
    """

    rules: str
    classes: tuple[str | None, str, str | None, str]
    fails: frozenset[str] = frozenset()
    meets: frozenset[str] = frozenset()
    unseen: frozenset[str] = frozenset()


KNOWN: Final = {
    "one address for each host": Known(
        source(TO_OUTSIDE),
        (None, APD, None, "none"),
        frozenset({"RFC4787-REQ-8", "RFC4787-REQ-9", "RFC5382-REQ-3", "RFC5382-REQ-8"}),
        frozenset({"RFC4787-REQ-2", "RFC4787-REQ-14"}),
        frozenset({"RFC4787-REQ-1", "RFC4787-REQ-3", "RFC5382-REQ-1", "RFC5382-REQ-7"}),
    ),
    "full cone, external source": Known(
        source(TO_OUTSIDE, f"ct status dnat {OWN_ADDRESS}") + destination(ENTERS),
        (None, EI, None, "external source"),
        meets=frozenset({"RFC4787-REQ-8", "RFC4787-REQ-9", "RFC4787-REQ-9a", "RFC5382-REQ-8a", "RFC6888-REQ-7"}),
    ),
    "full cone, internal source": Known(
        source(TO_OUTSIDE) + destination(ENTERS),
        (None, EI, None, "internal source"),
        frozenset({"RFC4787-REQ-9a", "RFC5382-REQ-8a"}),
        frozenset({"RFC4787-REQ-8", "RFC4787-REQ-9"}),
    ),
    "full cone, no hairpinning": Known(
        source(TO_OUTSIDE) + destination(f'iifname "$NG_OUTSIDE" {ENTERS}'),
        (None, EI, None, "none"),
        frozenset({"RFC4787-REQ-9", "RFC5382-REQ-8"}),
        frozenset({"RFC4787-REQ-8"}),
    ),
    "restricted cone": Known(
        ADMITTED
        + source(TO_OUTSIDE)
        + destination(f'iifname "$NG_OUTSIDE" {ENTERS}')
        + filtered(
            f'oifname "$NG_OUTSIDE" {PORTS} add @admitted {{ ip saddr . th sport . ip daddr }}',
            f'iifname "$NG_OUTSIDE" ct state new {PORTS} ip daddr . th dport . ip saddr != @admitted drop',
        ),
        (None, AD, None, "none"),
        frozenset({"RFC6888-REQ-7"}),
        frozenset({"RFC4787-REQ-8", "RFC5382-REQ-3"}),
    ),
    "one address for each remote host": Known(
        source(f'oifname "$NG_OUTSIDE" snat to ip saddr . ip daddr map {{ {BY_REMOTE} }}'),
        (AD, APD, None, "none"),
        frozenset({"RFC4787-REQ-1", "RFC4787-REQ-2", "RFC5382-REQ-1"}),
    ),
    "masquerade": Known(
        "", (APD, APD, "overloading", "none"), frozenset({"RFC4787-REQ-1", "RFC4787-REQ-3", "RFC5382-REQ-7"})
    ),
    "random ports": Known(
        source('oifname "$NG_OUTSIDE" masquerade random,fully-random'),
        (APD, APD, "random", "none"),
        meets=frozenset({"RFC6888-REQ-15"}),
    ),
    "ports of a range": Known(
        source(f'oifname "$NG_OUTSIDE" {PORTS} snat to $NG_OUTSIDE_ADDRESS4:1024-2031'),
        (APD, APD, "random", "none"),
        # Linux keeps a source port that lies in the range, although another host has it, to another remote endpoint.
        frozenset({"RFC4787-REQ-1", "RFC4787-REQ-3", "RFC4787-REQ-11", "RFC5382-REQ-1", "RFC5382-REQ-7"}),
    ),
    "no fragments": Known(
        chain("type filter hook prerouting priority -450", "ip frag-off & 0x3fff != 0 drop"),
        (APD, APD, "overloading", "none"),
        frozenset({"RFC4787-REQ-14"}),
    ),
    # Right towards the first hosts, of the usual kind and size, and wrong towards others.
    "right in the first case": Known(
        source(TO_OUTSIDE, f"ct status dnat {OWN_ADDRESS}")
        + destination(f"ip saddr != {INSIDE.format(2)} {ENTERS}")
        + filtered(
            f"icmp type echo-request ip daddr {OUTSIDE.format(3)} drop",
            'iifname "$NG_INSIDE" icmp type time-exceeded drop',
        )
        + chain(
            "type filter hook prerouting priority -450", "ip frag-off & 0x3fff != 0 ip length > 1000 drop", name="cut"
        ),
        (None, EI, None, "none"),
        frozenset({"RFC4787-REQ-9", "RFC5382-REQ-8", "RFC4787-REQ-14", "RFC5508-REQ-1", "RFC5508-REQ-5"}),
        frozenset({"RFC4787-REQ-8", "RFC5382-REQ-3", "RFC4787-REQ-12"}),
    ),
    "an ICMP error ends a mapping": Known(
        "    set ended { typeof ct id; flags dynamic; size 65535; }\n"
        + filtered("ip protocol icmp ct state related add @ended { ct id } accept", "ct id @ended drop"),
        (APD, APD, "overloading", "none"),
        frozenset({"RFC4787-REQ-12", "RFC5382-REQ-10"}),
        frozenset({"RFC4787-REQ-12b", "RFC5508-REQ-4"}),
    ),
}


@RUNS
@pytest.mark.parametrize("name", KNOWN)
def test_each_behaviour_of_a_known_rule_set_is_named(name: str, run: int, tmp_path: Path) -> None:
    known = KNOWN[name]
    done = audited(with_table(tmp_path, "known-nat", known.rules), tmp_path, lab_name=f"known{run}")
    for transport in ("udp", "tcp"):
        seen = done.record.classes[transport]
        assert (seen.mapping, seen.filtering, seen.ports, seen.hairpinning) == known.classes, transport
    found = verdicts(done)
    for keys, verdict in ((known.fails, "fails"), (known.meets, "meets"), (known.unseen, "not seen")):
        assert {key: each for (key, _), each in found.items() if key in keys} == dict.fromkeys(keys, verdict)


@RUNS
def test_a_limit_of_connections_for_each_host_hides_no_requirement(run: int, tmp_path: Path) -> None:
    """After as many connections of a host as each gateway should allow, this one serves others only."""
    hosts = "    set hosts { type ipv4_addr; flags dynamic; size 65535; }\n"
    rule = f'iifname "$NG_INSIDE" ct state new add @hosts {{ ip saddr ct count over {LEAST_ALLOWANCE} }} drop'
    limited = with_table(tmp_path, "limited-nat", hosts + filtered(rule))
    free, few = (audited(gateway, tmp_path, lab_name=f"limit{run}") for gateway in ("nftables-nat44", limited))
    assert few.record.classes == free.record.classes
    filling = {one.key for one in requirements() if one.strain}
    first, second = ({key: one for key, one in verdicts(done).items() if key[0] not in filling} for done in (free, few))
    assert second == first
    assert verdicts(few)["RFC6888-REQ-4", "udp"] == "meets"


@pytest.mark.minutes
@RUNS
@pytest.mark.parametrize(("seconds", "verdict"), [(30, "not seen"), (300, "meets")])
def test_a_time_out_of_a_known_rule_set_is_measured(seconds: int, verdict: str, run: int, tmp_path: Path) -> None:
    choices = {"udp_timeout": seconds, "wait": 330.0, "lab_name": f"waits{seconds}x{run}"}
    done = audited("nftables-nat44", tmp_path, **choices)
    assert {verdicts(done)[f"RFC4787-REQ-{name}", "udp"] for name in ("5", "5c")} == {verdict}
    for name in ("UDP, one frame out", "UDP, one frame each way", "UDP, several frames each way"):
        alive, dead = done.record.timeouts[name]
        assert alive is not None
        # Linux counts in jiffies.
        assert 0.9 * seconds < alive < seconds + 0.5
        assert dead is None or seconds - 0.5 < dead < 1.1 * seconds
