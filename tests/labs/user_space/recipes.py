# SPDX-License-Identifier: Apache-2.0
"""Recipes of the NAT in user space: its process is declared, or `start` leaves a daemon behind; no knob pins it."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

_PROGRAM: Final = Path(__file__).parent / "nat.py"
_COMMAND: Final = f'python3 {_PROGRAM} nat0 "$NG_OUTSIDE_ADDRESS4"'
Start = Literal["process", "daemon"]
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
    started = _ROUTES if is_process else _ROUTES + _DAEMON
    path.write_text(_RECIPE.format(name=name, process=process, start=started, stop=kill + _AWAY))
    return path
