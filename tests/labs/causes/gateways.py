# SPDX-License-Identifier: Apache-2.0
"""Gateways with one planted fault each. All are natgauge's own NAT with something added to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.labs.nat44 import chain, variant, with_rules, with_table

from natgauge.causes.cause import Kind

#: Half of the connections are opened by these sources, and half lead to this destination.
SECOND_SOURCES: Final = "10.0.0.4-10.0.0.5"
SECOND: Final = "198.19.0.3"
TRAFFIC: Final = {
    "--connections": "4000",
    "--source-addresses": "10.0.0.2-10.0.0.5",
    "--destination-addresses": f"198.19.0.2-{SECOND}",
}
_FORWARD: Final = "type filter hook forward priority filter"
_PREROUTING: Final = "type filter hook prerouting priority raw"
_MANGLE: Final = "type filter hook prerouting priority mangle"
_BEFORE_NAT: Final = "type nat hook postrouting priority srcnat - 10"
#: A process between two TUN interfaces' ends: it gets the frames for the second destination, and sends them back.
_PROCESS: Final = Path(__file__).parent / "tun_process.py"


@dataclass(frozen=True)
class Planted:
    """A gateway with a fault.

    Attributes:
        name: of its recipe.
        kind: the cause that natgauge must name.
        make: writes the recipe into a folder under this name.
        options: of the measurement, besides the common ones.
        metric: what is measured.
    """

    name: str
    kind: Kind
    make: Callable[[Path, str], Path]
    options: Mapping[str, str] = field(default_factory=dict)
    metric: str = "connection-rate"


def rules(*lines: str, hook: str = _FORWARD) -> Callable[[Path, str], Path]:
    """A further chain with these rules."""
    return lambda folder, name: with_rules(folder, name, *lines, hook=hook)


def tables(*chains: str) -> Callable[[Path, str], Path]:
    """A further table with these chains."""
    return lambda folder, name: with_table(folder, name, "".join(chains))


def shell(start: str, stop: str = "true") -> Callable[[Path, str], Path]:
    """Commands after the start."""
    more = f"\n[verbs]\nstart = '''\n{start}\n'''\nstop = '''\n{stop}\n'''\n"
    return lambda folder, name: variant(folder, name, more)


def netdev(hook: str, interface: str, rule: str) -> Callable[[Path, str], Path]:
    """A rule at an interface, before or after IP."""
    body = f"type filter hook {hook} device ${interface} priority 0\n{rule}"
    table = f"table netdev more {{\nchain more {{\n{body}\n}}\n}}"
    return shell(f"nft -f - <<RULES\n{table}\nRULES", "nft delete table netdev more 2> /dev/null || true")


def nat(*lines: str, maps: str = "") -> Callable[[Path, str], Path]:
    """These rules for translation in place of natgauge's own; its check looks for the last one, which nothing meets."""
    every = ("type nat hook postrouting priority srcnat;", *lines, "ip saddr 192.0.2.99 masquerade")
    body = "\n".join(every)
    table = f"table ip natgauge {{\n{maps}\nchain postrouting {{\n{body}\n}}\n}}"
    return shell(f"nft delete table ip natgauge; nft -f - <<RULES\n{table}\nRULES")


def process(behaviour: str) -> Callable[[Path, str], Path]:
    """A process that gets the frames for the second destination by a TUN interface, and returns not all of them.

    The rules see its frames only on their way back.
    """
    start = f"""
ip tuntap add dev filter mode tun
ip link set filter txqueuelen 50 up
ip route add {SECOND}/32 dev filter table 77
ip rule add iif "$NG_INSIDE" to {SECOND} lookup 77 priority 77
echo 0 > /proc/sys/net/ipv4/conf/filter/rp_filter
nft -f - <<RULES
table ip more {{
chain more {{
type filter hook prerouting priority raw
iifname "$NG_INSIDE" ip daddr {SECOND} notrack
}}
}}
RULES
setsid python3 {_PROCESS} filter {behaviour} > /dev/null 2>&1 < /dev/null &
echo $! > "$NG_WORK/filter.pid"
sleep 0.3
"""
    stop = 'kill "$(cat "$NG_WORK/filter.pid")" 2> /dev/null || true; ip rule del priority 77 2> /dev/null || true'
    return shell(start, stop)


#: Ports of the VyOS CGNAT: as many for each inside host.
_PORTS: Final = ", ".join(
    f"10.0.0.{2 + host} : 198.19.0.1 . {1024 + 200 * host}-{1223 + 200 * host}" for host in range(4)
)
_MAP: Final = f"""map ports {{
type ipv4_addr : interval ipv4_addr . inet_service; flags interval; elements = {{ {_PORTS} }}
}}"""
_BAD_UDP: Final = f"ip daddr {SECOND} @th,48,16 set 0xbad"
_BIG: Final = {"--frame-size": "1518"}
#: All connections lead to one destination, so that each needs an outside port of its own.
_ONE: Final = {"--destination-addresses": "198.19.0.2", "--destination-ports": "7"}
#: Interfaces of the gateway.
_IN, _OUT = '"$NG_INSIDE"', '"$NG_OUTSIDE"'
_HTB: Final = f"""tc qdisc replace dev {_OUT} root handle 1: htb default 1
tc class add dev {_OUT} parent 1: classid 1:1 htb rate 8mbit burst 4kb
tc qdisc add dev {_OUT} parent 1:1 pfifo limit 20"""
_REVERSE: Final = f"""for i in all {_IN} {_OUT}; do echo 1 > /proc/sys/net/ipv4/conf/$i/rp_filter; done
ip link add wg0 type veth peer name wg1
ip link set wg0 up
ip link set wg1 up
ip route replace 10.0.0.4/30 dev wg0"""
_ONE_WAY: Final = f"ip route del 198.19.0.0/16 dev {_OUT}; ip route add 198.19.0.2/32 dev {_OUT}"
_EACH: Final = "    set each { type ipv4_addr; flags dynamic; size 100; }\n"
_FEW_EACH: Final = _EACH + chain(_FORWARD, "ct state new add @each { ip saddr ct count over 500 } drop")
_REJECT_EACH: Final = _EACH + chain(_FORWARD, "ct state new add @each { ip saddr ct count over 300 } reject")
_SOME_EACH: Final = _EACH + chain(
    _FORWARD, f"ip saddr {SECOND_SOURCES} ct state new add @each {{ ip saddr ct count over 500 }} drop"
)
_BEFORE_EACH: Final = _EACH + chain(_MANGLE, "add @each { ip saddr limit rate over 4000/second burst 20 packets } drop")
#: All connections lead to the process.
_ALL: Final = {"--destination-addresses": SECOND}
_SLOW_EACH: Final = _EACH + chain(
    _FORWARD, "ct state new add @each { ip saddr limit rate over 5000/second burst 50 packets } drop"
)
_TO_ITSELF: Final = rules(f"ip daddr {SECOND} redirect", hook="type nat hook prerouting priority dstnat")
_ELSEWHERE: Final = f"oifname {_OUT} ip daddr {SECOND} snat to 198.18.0.99"


_INVALID: Final = f"""nft -f - <<RULES
table netdev bad {{
chain bad {{
type filter hook ingress device $NG_INSIDE priority 0
ip daddr {SECOND} @th,32,16 set 5000
}}
}}
table ip more {{
{chain(_FORWARD, "ct state invalid drop")}}}
RULES"""
_INVALID_AWAY: Final = "nft delete table netdev bad 2> /dev/null; nft delete table ip more 2> /dev/null || true"

GATEWAYS: Final[tuple[Planted, ...]] = (
    Planted("ports-per-host", "port block", nat("ip protocol udp snat ip to ip saddr map @ports", maps=_MAP), _ONE),
    Planted("few-ports", "port pool", nat(f"oifname {_OUT} ip protocol udp masquerade to :2000-2999"), _ONE),
    Planted("few-snat-ports", "port pool", nat(f"oifname {_OUT} ip protocol udp snat to 198.19.0.1:5000-5499"), _ONE),
    Planted("left-out-subnet", "no translation", nat(f"oifname {_OUT} ip saddr 10.0.0.0/30 masquerade")),
    Planted("left-out-ports", "no translation", nat(f"oifname {_OUT} udp sport 1024-32767 masquerade")),
    Planted("notrack", "untracked", rules(f"ip saddr {SECOND_SOURCES} notrack", hook=_PREROUTING)),
    Planted("shaper-tbf", "queue", shell(f"tc qdisc replace dev {_OUT} root tbf rate 10mbit burst 8kb limit 8kb")),
    Planted("shaper-htb", "queue", shell(_HTB)),
    Planted("small-mtu", "path mtu", shell(f"ip link set {_OUT} mtu 1420"), _BIG),
    Planted("pppoe-mtu", "path mtu", shell(f"ip link set {_OUT} mtu 1492"), _BIG),
    Planted("bad-checksum", "checksum", netdev("egress", "NG_OUTSIDE", _BAD_UDP)),
    Planted("changed-content", "checksum", netdev("egress", "NG_OUTSIDE", f"ip daddr {SECOND} @th,176,16 set 0xbad")),
    Planted("bad-ip-checksum", "header", netdev("ingress", "NG_INSIDE", f"ip daddr {SECOND} @nh,80,16 set 0xbad")),
    Planted("ttl-1", "header", rules(f"ip daddr {SECOND} ip ttl set 1", hook=_MANGLE)),
    Planted("netdev-drop", "not known", netdev("ingress", "NG_INSIDE", f"ip daddr {SECOND} drop")),
    Planted("reverse-path", "reverse path", shell(_REVERSE, "ip link del wg0 2> /dev/null || true")),
    Planted("no-route", "route", shell(_ONE_WAY)),
    Planted("unreachable-route", "rule", shell(f"ip route add unreachable {SECOND}/32")),
    Planted("blackhole-route", "rule", shell(f"ip route add blackhole {SECOND}/32")),
    Planted("no-forwarding", "forwarding", shell(f"echo 0 > /proc/sys/net/ipv4/conf/{_IN}/forwarding")),
    Planted("rule-drop", "rule", rules(f"ip daddr {SECOND} drop")),
    Planted("rule-of-ports", "rule", rules("udp sport 40000-50000 drop")),
    Planted("rule-reject", "rule", rules(f"ip saddr {SECOND_SOURCES} reject with icmp admin-prohibited")),
    Planted("one-percent", "rule", rules("numgen inc mod 100 0 drop")),
    Planted("connlimit", "host limit", tables(_FEW_EACH)),
    Planted("policy-block", "rule", shell(f"ip xfrm policy add dir fwd dst {SECOND}/32 action block")),
    Planted("new-flow-rate", "rate limit", rules("ct state new limit rate over 20000/second burst 100 packets drop")),
    Planted("hashlimit", "rate limit", tables(_SLOW_EACH)),
    Planted("invalid-drop", "invalid", shell(_INVALID, _INVALID_AWAY)),
    Planted("wrong-address", "pool address", nat(_ELSEWHERE, f"oifname {_OUT} masquerade")),
    Planted("to-itself", "forgotten", _TO_ITSELF),
    Planted("lossy-process", "process", process("drop")),
    Planted("connlimit-reject", "host limit", tables(_REJECT_EACH)),
    Planted("connlimit-of-some", "host limit", tables(_SOME_EACH)),
    Planted("limit-of-a-process-by-host", "host limit", process("each"), _ALL),
    Planted("limit-of-a-process", "process", process("limit"), _ALL),
    Planted("one-host", "rule", rules("ip saddr 10.0.0.3 drop")),
    Planted("rate-by-source", "rate limit", tables(_BEFORE_EACH)),
    Planted("slow-process", "process", process("slow")),
)


def named(*names: str) -> list[Planted]:
    """Gateways of these names; all without names."""
    return [each for each in GATEWAYS if not names or each.name in names]


def arguments(planted: Planted, recipe: Path, results: Path) -> list[str]:
    """Return the arguments of `natgauge` that measure a gateway."""
    options: dict[str, Any] = {**TRAFFIC, **planted.options, "--gateway": recipe, "--results": results}
    flat = [str(part) for option in options.items() for part in option]
    return ["measure", planted.metric, *flat, "--placement", "shared", "--repeat", "1", "--profile", "quick"]
