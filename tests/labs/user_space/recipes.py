# SPDX-License-Identifier: Apache-2.0
"""Recipes of the NAT in user space; no knob pins it.

Its process is declared, or `start` leaves a daemon behind: in the device's namespace, or in a further one, where
its parent has ended, and it has none of the device's variables.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

PROGRAM: Final = Path(__file__).parent / "nat.py"
_COMMAND: Final = f'python3 {PROGRAM} nat0 "$NG_OUTSIDE_ADDRESS4"'
Start = Literal["process", "daemon", "elsewhere"]
#: Packets of both sides go to the process, those for the device's own outside address, too.
_ROUTES: Final = """
ip tuntap add dev nat0 mode tun
ip link set nat0 up
for i in all nat0 "$NG_INSIDE" "$NG_OUTSIDE"; do echo 0 > "/proc/sys/net/ipv4/conf/$i/rp_filter"; done
echo 1 > /proc/sys/net/ipv4/conf/nat0/accept_local
ip route add default dev nat0 table 77
ip rule add pref 5 iif "$NG_INSIDE" ipproto udp lookup 77
ip rule add pref 6 iif "$NG_OUTSIDE" ipproto udp lookup 77
ip rule add pref 10 lookup local
ip rule del pref 0
"""
_AWAY: Final = """
ip rule add pref 0 lookup local 2> /dev/null || true
for pref in 5 6 10; do ip rule del pref "$pref" 2> /dev/null || true; done
ip link del nat0 2> /dev/null || true
"""
_DAEMON: Final = f'setsid {_COMMAND} > /dev/null 2>&1 < /dev/null &\necho $! > "$NG_WORK/nat.pid"\n'
#: In a further namespace, packets of its link go to the process, and what that sends goes back.
_FAR_SIDE: Final = f"""
until ip link show inside > /dev/null 2>&1; do sleep 0.01; done
ip addr add 169.254.7.2/30 dev inside
ip link set inside up
ip tuntap add dev nat7 mode tun
ip link set nat7 up
echo 1 > /proc/sys/net/ipv4/ip_forward
for i in all inside nat7; do echo 0 > "/proc/sys/net/ipv4/conf/$i/rp_filter"; done
ip rule add pref 5 iif inside lookup 77
ip route add default dev nat7 table 77
ip route add default via 169.254.7.1
exec python3 {PROGRAM} nat7 "$1"
"""
_ELSEWHERE: Final = f"""
ip link add nat0 type veth peer name far
ip addr add 169.254.7.1/30 dev nat0
(
    setsid env -i PATH="$PATH" unshare -n sh -euc '{_FAR_SIDE}' far "$NG_OUTSIDE_ADDRESS4" \
        > /dev/null 2> "$NG_WORK/far.log" < /dev/null &
    echo $! > "$NG_WORK/nat.pid"
)
pid=$(cat "$NG_WORK/nat.pid")
while [ "$(readlink /proc/self/ns/net)" = "$(readlink "/proc/$pid/ns/net")" ]; do sleep 0.01; done
ip link set far netns "$pid" name inside
ip link set nat0 up
for i in all nat0 "$NG_INSIDE" "$NG_OUTSIDE"; do echo 0 > "/proc/sys/net/ipv4/conf/$i/rp_filter"; done
echo 1 > /proc/sys/net/ipv4/conf/nat0/accept_local
ip route add default via 169.254.7.2 dev nat0 table 77
ip rule add pref 5 iif "$NG_INSIDE" ipproto udp lookup 77
ip rule add pref 6 iif "$NG_OUTSIDE" ipproto udp lookup 77
ip rule add pref 10 lookup local
ip rule del pref 0
"""
_RECIPE: Final = """
name = "{name}"
title = "NAT44 in user space, in Python"
kind = "nat44"
initiator_family = "ipv4"
responder_family = "ipv4"
stateful = true
source = "translated"
transports = ["udp"]
extends = ["linux-ipv4"]
{process}
[verbs]
start = '''{start}'''
check = '[ -e "$NG_WORK/count" ]'
version = "python3 --version"
empty = 'kill -USR1 "$(cat "$NG_WORK/nat.pid")"'
count = '''
rm -f "$NG_WORK/count"
kill -USR2 "$(cat "$NG_WORK/nat.pid")"
while [ ! -e "$NG_WORK/count" ]; do sleep 0.01; done
cat "$NG_WORK/count"
'''
stop = '''{stop}'''
"""


def user_space_nat(folder: Path, name: str, start: Start) -> Path:
    """Write the recipe into a folder."""
    is_process = start == "process"
    process = f"[[process]]\nname = \"nat\"\ncommand = '{_COMMAND}'\n" if is_process else ""
    kill = "" if is_process else 'kill "$(cat "$NG_WORK/nat.pid")" 2> /dev/null || true\n'
    path = folder / f"{name}.toml"
    started = {"process": _ROUTES, "daemon": _ROUTES + _DAEMON, "elsewhere": _ELSEWHERE}[start]
    path.write_text(_RECIPE.format(name=name, process=process, start=started, stop=kill + _AWAY))
    return path
