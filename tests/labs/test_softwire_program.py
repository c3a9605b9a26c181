# SPDX-License-Identifier: Apache-2.0
"""The loader of the reference softwire: it comes, counts, goes, and refuses what is wrong in one line."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from natgauge.host import programs
from natgauge.labs.common import namespaces

pytestmark = pytest.mark.calm
GOOD = {
    "technology": "map-t",
    "role": "br",
    "relay": "2001:db8:ffff::/64",
    "rule": "2001:db8::/40,192.0.2.0/24,16",
    "psid-length": "8",
}
LW4O6 = {"technology": "lw4o6", "relay": "2001:db8::1", "rule": None}


def softwire(verb: str, place: str, **choices: str | None) -> subprocess.CompletedProcess[str]:
    options = [f"--{name}={value}" for name, value in choices.items() if value is not None]
    command = [str(programs.find("natgauge-softwire")), verb, "--netns", place, *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    name = f"test-softwire-{os.getpid()}"
    namespaces.create(name)
    try:
        for command in ("link add w0 type veth peer name w1", "link set w0 up", "link set w1 up"):
            subprocess.run(["ip", "-n", name, *command.split()], check=True)
        yield name
    finally:
        namespaces.delete([name])


def test_it_comes_counts_and_goes_and_leaves_nothing(place: str) -> None:
    attached = softwire("attach", place, interface="w0", **GOOD)
    assert (attached.returncode, attached.stdout + attached.stderr) == (0, "")
    again = softwire("attach", place, interface="w0", **GOOD)
    assert (again.returncode, again.stderr) == (2, "interface w0: is the end of a softwire already; detach it first\n")
    read = softwire("read", place, interface="w0")
    assert read.returncode == 0
    counts = dict(line.split() for line in read.stdout.splitlines())
    assert set(counts) >= {"wrapped", "unwrapped", "wrong_port_set", "no_subscriber"}
    assert set(counts.values()) == {"0"}
    assert softwire("detach", place, interface="w0").returncode == 0
    left = subprocess.check_output(["ip", "netns", "exec", place, "tc", "qdisc", "show", "dev", "w0"])
    assert b"clsact" not in left
    for verb in ("read", "detach"):
        answer = softwire(verb, place, interface="w0")
        assert (answer.returncode, answer.stderr) == (
            2,
            "interface w0: is not the end of a softwire; attach one first\n",
        )


def test_a_table_of_100000_bindings_is_taken(place: str, tmp_path: Path) -> None:
    table = tmp_path / "bindings"
    table.write_text(
        "".join(
            f"198.18.{i // 16128}.{i // 63 % 256} {1 + i % 63} 2001:db8::{i >> 8:x}:{i & 255:x}\n"
            for i in range(100_000)
        )
    )
    choices = GOOD | LW4O6 | {"psid-length": "6", "psid-offset": "0", "bindings": str(table)}
    attached = softwire("attach", place, interface="w0", **choices)
    assert (attached.returncode, attached.stderr) == (0, "")
    assert softwire("detach", place, interface="w0").returncode == 0


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"technology": "map-x"}, "map-x"),
        ({"role": "cpe"}, "cpe"),
        ({"rule": None}, "--rule: required for MAP"),
        ({"rule": "2001:db8::/40"}, "--rule 2001:db8::/40: write IPv6-prefix,IPv4-prefix,bits"),
        ({"rule": "2001:db8::/40,192.0.2.0/24,15"}, "15 embedded address bits: the IPv4 suffix of 8 and the PSID of 8"),
        ({"rule": "192.0.2.0/24,2001:db8::/40,16"}, "192.0.2.0/24 is not an IPv6 prefix"),
        ({"rule": "2001:db8:12:3400::/56,192.0.2.18/32,0"}, "port sets have no different addresses"),
        ({"relay": "2001:db8::1"}, "--relay 2001:db8::1: 2001:db8::1 is not a prefix"),
        ({"relay": "2001:db8::/80"}, "must be a prefix of 32, 40, 48, 56, 64 or 96 bits"),
        ({"psid-length": "11"}, "PSID offset 6 and PSID length 11: a port has 16 bits for both"),
        ({"psid-length": "300"}, "300"),
        ({"bindings": "/dev/null"}, "--bindings: only for lw4o6"),
        ({"interface": "w9"}, "interface w9: there is none"),
        (LW4O6, "--bindings: required for lw4o6"),
        (LW4O6 | {"rule": "x"}, "--rule: only for MAP"),
        (LW4O6 | {"bindings": "/nowhere"}, "--bindings /nowhere: No such file"),
    ],
)
def test_a_wrong_choice_is_refused_in_one_line(place: str, change: dict[str, str | None], complaint: str) -> None:
    answer = softwire("attach", place, **({"interface": "w0"} | GOOD | change))
    assert (answer.returncode, answer.stdout) == (2, "")
    assert complaint in answer.stderr
    assert answer.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("192.0.2.1 52", "line 2"),
        ("192.0.2 52 2001:db8::1", "the first word is not an IPv4 address"),
        ("192.0.2.1 256 2001:db8::1", "PSIDs of 8 bits are 0 to 255"),
        ("192.0.2.1 52 2001:db8", "the third word is not an IPv6 address"),
        ("192.0.2.9 1 2001:db8::2", "binding 192.0.2.9 PSID 1: is there twice"),
    ],
)
def test_a_wrong_binding_is_named(place: str, tmp_path: Path, line: str, complaint: str) -> None:
    table = tmp_path / "bindings"
    table.write_text(f"192.0.2.9 1 2001:db8::1\n{line}\n")
    answer = softwire("attach", place, interface="w0", **(GOOD | LW4O6 | {"bindings": str(table)}))
    assert answer.returncode == 2
    assert complaint in answer.stderr
    assert answer.stderr.count("\n") == 1
