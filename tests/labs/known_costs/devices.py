# SPDX-License-Identifier: Apache-2.0
"""Plain forwarding and a NAT64 with a program on an interface that is busy for a known time, calibrated alone."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Final

from natgauge.labs.common.addresses import INSIDE, NAT64_PREFIX, OUTSIDE

#: Writes a recipe into a folder, with this name, whose frames from the Initiator are held up by so many loops.
Recipe = Callable[[Path, str, int], Path]
#: Loops of the two programs that tell how long one loop takes.
_MANY: Final = 4_000
_REPEATS: Final = 20_000
_RUNS: Final = 9
_FORWARDING: Final = """
name = "{name}"
title = "Linux IPv4 forwarding, busy for {loops} loops a frame"
kind = "routing"
initiator_family = "ipv4"
responder_family = "ipv4"
stateful = false
source = "unchanged"
extends = ["linux-ipv4"]

[verbs]
start = \"\"\"
tc qdisc replace dev $NG_OUTSIDE clsact
tc filter replace dev $NG_OUTSIDE egress pref 1 handle 1 bpf da obj {busy} sec tc
\"\"\"
stop = \"\"\"
tc qdisc del dev $NG_OUTSIDE clsact || true
\"\"\"
"""
# The kernel receives packets whose source is its own address only where accept_local is set, and IPv6 only where it is
# not disabled.
_NAT64: Final = """
name = "{name}"
title = "NAT64 for one host, busy for {loops} loops a frame"
kind = "nat64"
initiator_family = "ipv6"
responder_family = "ipv4"
stateful = false
source = "translated"
extends = ["linux-ipv4", "linux-ipv6"]

[verbs]
start = \"\"\"
for name in all $NG_INSIDE; do echo 0 > /proc/sys/net/ipv4/conf/$name/rp_filter; done
echo 1 > /proc/sys/net/ipv4/conf/$NG_INSIDE/accept_local
echo 0 > /proc/sys/net/ipv6/conf/$NG_OUTSIDE/disable_ipv6
ip link set dev $NG_OUTSIDE addrgenmode none
for name in $NG_INSIDE $NG_OUTSIDE; do
    tc qdisc replace dev $name clsact
    tc filter replace dev $name ingress pref 1 handle 1 bpf da obj {nat64} sec tc
done
tc filter replace dev $NG_OUTSIDE egress pref 1 handle 1 bpf da obj {busy} sec tc
\"\"\"
stop = \"\"\"
for name in $NG_INSIDE $NG_OUTSIDE; do tc qdisc del dev $name clsact || true; done
\"\"\"
"""


BUSY_SOURCE, NAT64_SOURCE = (Path(__file__).with_name(f"{name}.bpf.c") for name in ("busy", "nat64"))


def program(folder: Path, source: Path, **values: object) -> Path:
    """A program of the kernel, compiled with these macros into a folder."""
    target = folder / f"{source.name.removesuffix('.bpf.c')}{values.get('LOOPS', '')}.o"
    options = ["-O2", "-g", "-target", "bpf", "-mcpu=v3", f"-I/usr/include/{os.uname().machine}-linux-gnu"]
    options += [f"-D{name}={value}" for name, value in values.items()]
    subprocess.run(["clang", *options, "-c", str(source), "-o", str(target)], check=True)
    return target


def forwarding(folder: Path, name: str, loops: int) -> Path:
    """Plain forwarding; see `Recipe`."""
    return _written(folder, _FORWARDING, name, loops)


def nat64(folder: Path, name: str, loops: int) -> Path:
    """NAT64 for the Initiator's first host; see `Recipe`."""
    outside = OUTSIDE["ipv4"].device.ip
    assert isinstance(outside, IPv4Address)
    words = {"HOST": _words(INSIDE["ipv6"].host(0)), "PREFIX": _words(NAT64_PREFIX.network_address)}
    compiled = program(folder, NAT64_SOURCE, **words, OUTSIDE=int(outside))
    return _written(folder, _NAT64, name, loops, nat64=compiled)


def _words(address: object) -> str:
    assert isinstance(address, IPv6Address)
    return ",".join(str(int(address) >> shift & 0xFFFF_FFFF) for shift in (96, 64, 32, 0))


def _written(folder: Path, text: str, name: str, loops: int, **programs: Path) -> Path:
    path = folder / f"{name}.toml"
    busy = program(folder, BUSY_SOURCE, LOOPS=loops)
    path.write_text(text.format(name=name, loops=loops, busy=busy, **programs))
    return path


def loop_ns(folder: Path, cpu: int) -> float:
    """How long one loop takes on this core, by itself."""
    long, short = (_run_ns(program(folder, BUSY_SOURCE, LOOPS=loops), cpu) for loops in (_MANY, 0))
    return (long - short) / _MANY


def _run_ns(compiled: Path, cpu: int) -> float:
    """Mean time of one run of a program, median of some calls, as the kernel tells it."""
    pinned = Path(f"/sys/fs/bpf/natgauge-{os.getpid()}")
    frame = compiled.with_suffix(".frame")
    frame.write_bytes(bytes(64))
    subprocess.run(["bpftool", "prog", "load", str(compiled), str(pinned), "type", "classifier"], check=True)
    try:
        return statistics.median(_call(pinned, frame, cpu) for _ in range(_RUNS))
    finally:
        pinned.unlink()


def _call(pinned: Path, frame: Path, cpu: int) -> float:
    command = ["taskset", "-c", str(cpu), "bpftool", "prog", "run", "pinned", str(pinned)]
    command += ["data_in", str(frame), "repeat", str(_REPEATS)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.search(r"duration \(average\): (\d+)ns", said)
    assert found is not None, said
    return float(found[1])
