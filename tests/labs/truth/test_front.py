# SPDX-License-Identifier: Apache-2.0
"""The device's card of the isolated placement: frames reach their CPU's ring, and what a full ring loses is counted."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from natgauge.host import programs
from natgauge.labs.common import namespaces

if TYPE_CHECKING:
    from tests.labs.datagrams import Datagram
    from tests.labs.truth.conftest import Programs, Wire

CPUS = sorted(os.sched_getaffinity(0))
LEFT_MAC = "02:00:00:00:00:01"
DEVICE_MAC = "02:00:00:00:00:02"

both_families = pytest.mark.parametrize("family", [4, 6])


def front(verb: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(programs.find("natgauge-front")), verb, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


@contextmanager
def card(wire: Wire, cpus: Sequence[int], ring: int) -> Iterator[Callable[[], dict[str, Any]]]:
    place = ("--netns", wire.device, "--interface", "d0")
    attached = front("attach", *place, "--cpus", ",".join(map(str, cpus)), "--ring", str(ring))
    assert attached.returncode == 0, attached.stderr
    assert not attached.stdout + attached.stderr

    def read() -> dict[str, Any]:
        answer = front("read", *place)
        assert answer.returncode == 0, answer.stderr
        counts: dict[str, Any] = json.loads(answer.stdout)
        return counts

    try:
        yield read
    finally:
        assert front("detach", *place).returncode == 0


def frames(datagrams: Sequence[Datagram]) -> list[bytes]:
    return [datagram.frame(LEFT_MAC, DEVICE_MAC) for datagram in datagrams]


@both_families
def test_frames_pass_through_the_rings_and_the_device_unchanged(wire: Wire, family: int) -> None:
    sent = wire.datagrams(500, family=family)
    with card(wire, CPUS, 2048) as read:
        received = wire.through(sent)
        counts = read()
    assert sorted(received, key=lambda datagram: datagram.number) == sent
    assert counts["ring"] == 2048
    assert (counts["redirected"], counts["processed"], counts["dropped"]) == (500, 500, 0)
    assert [share["cpu"] for share in counts["per_cpu"]] == CPUS
    for key in ("redirected", "processed"):
        assert sum(share[key] for share in counts["per_cpu"]) == 500


@both_families
def test_four_tuples_are_spread_evenly_and_each_keeps_its_cpu(wire: Wire, family: int) -> None:
    """Six standard deviations of a fair draw: a good hash fails this once in 10^9 runs."""
    if len(CPUS) < 2:
        pytest.skip("one CPU is no choice")
    sent = wire.datagrams(4000, family=family)
    with card(wire, CPUS, 16384) as read:
        wire.send(frames(sent))
        once = [share["redirected"] for share in read()["per_cpu"]]
        wire.send(frames(sent))
        twice = [share["redirected"] for share in read()["per_cpu"]]
    fair = 1 / len(CPUS)
    assert sum(once) == 4000
    assert all(abs(share - 4000 * fair) < 6 * (4000 * fair * (1 - fair)) ** 0.5 for share in once)
    assert twice == [2 * share for share in once]


def test_frames_of_a_connection_stay_in_order(wire: Wire) -> None:
    sent = [datagram.differs(source_port=4000, destination_port=5000) for datagram in wire.datagrams(300)]
    with card(wire, CPUS, 2048) as read:
        assert wire.through(sent) == sent
        assert max(share["redirected"] for share in read()["per_cpu"]) == 300


def test_address_resolution_and_what_is_not_udp_reach_the_device(wire: Wire) -> None:
    ask = bytes.fromhex("ffffffffffff" + LEFT_MAC.replace(":", "") + "08060001080006040001")
    ask += bytes.fromhex(LEFT_MAC.replace(":", "")) + bytes([198, 18, 0, 2]) + bytes(6) + bytes([198, 18, 0, 1])
    with card(wire, CPUS[-1:], 64) as read, wire.capture(wire.left, "l0") as capture:
        wire.send([ask.ljust(60, b"\0")])
        assert read()["redirected"] == 1
        assert any(frame[12:14] == b"\x08\x06" and frame[20:22] == b"\0\2" for frame in capture.frames())


# A ring is full only as long as its core is busy with nothing else.
@pytest.mark.alone
@pytest.mark.parametrize("ring", [8, pytest.param(64, marks=pytest.mark.soak), 512])  # between the two
def test_what_a_full_ring_loses_is_counted_to_the_frame(wire: Wire, ring: int) -> None:
    """The sender keeps the ring's CPU to itself, so nothing is taken out of the ring while it sends.

    Where the host takes the CPU away from it, the kernel thread runs in between: one of three bursts was left alone.
    """
    processed = []
    for _ in range(3):
        sent = wire.datagrams(1000)
        with card(wire, CPUS[:1], ring) as read:
            with wire.capture(wire.right, "r0") as capture:
                wire.send(frames(sent), cpu=CPUS[0])
                received = capture.datagrams()
            counts = read()
        assert counts["redirected"] == 1000
        assert counts["dropped"] > 0
        assert counts["processed"] == len(received) == 1000 - counts["dropped"] >= ring
        processed.append(counts["processed"])
    # The kernel thread may hold a bulk of 8 in its hands besides the ring.
    assert min(processed) <= ring + 8, processed
    assert [one.differs() for one in received][:ring] == sent[:ring]


# Counts the card's programs, which other labs load and unload, too.
@pytest.mark.alone
def test_a_card_goes_with_its_interface_and_keeps_nothing(loaded: Callable[..., Programs]) -> None:
    watch = loaded("natgauge_front", "natgauge_ring")
    name = f"truth-{os.getpid()}-card"
    namespaces.create(name)
    try:
        cable = ["link", "add", "a0", "type", "veth", "peer", "name", "a1"]
        subprocess.run(["ip", "-n", name, *cable], check=True)
        attached = front("attach", "--netns", name, "--interface=a0", "--cpus", str(CPUS[0]), "--ring=64")
        assert attached.returncode == 0, attached.stderr
        both = watch.new()
        assert len(both) == 2
        subprocess.run(["ip", "-n", name, "link", "delete", "a0"], check=True)
        watch.await_unloaded(both)
    finally:
        namespaces.delete([name])


def test_a_second_program_on_the_interface_is_refused(wire: Wire) -> None:
    with card(wire, CPUS, 64) as read:
        again = front("attach", "--netns", wire.device, "--interface=d0", f"--cpus={CPUS[0]}", "--ring=64")
        assert (again.returncode, again.stdout) == (2, "")
        assert again.stderr == "interface d0: has the XDP program natgauge_front already; detach it first\n"
        assert read()["ring"] == 64


@pytest.mark.parametrize("verb", ["read", "detach"])
def test_an_interface_without_a_card_is_told(wire: Wire, verb: str) -> None:
    answer = front(verb, "--netns", wire.device, "--interface=d0")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr == "interface d0: has no card; attach one first\n"


@pytest.mark.parametrize(
    ("change", "status", "complaint"),
    [
        ({"netns": "nowhere"}, 2, "--netns nowhere: there is no such namespace"),
        ({"netns": "../run"}, 2, "must be a name"),
        ({"interface": "d9"}, 2, "interface d9: there is none"),
        ({"cpus": "4095"}, 2, "--cpus 4095: is not online"),
        ({"cpus": f"{CPUS[0]},{CPUS[0]}"}, 2, "is named twice"),
        ({"cpus": "one"}, 2, "'one' for '--cpus <CPUS>'"),
        ({"cpus": ""}, 2, "--cpus"),
        ({"ring": "0"}, 2, "0 is not in 1..=16384"),
        ({"ring": "16385"}, 2, "16385 is not in 1..=16384"),
        ({"ring": "-1"}, 2, "--ring"),
        ({"ring": "99999999999999999999"}, 2, "99999999999999999999"),
        ({"interface": "lo"}, 3, "interface lo: its driver does not accept an XDP program"),
    ],
)
def test_a_wrong_choice_is_refused_in_one_line(wire: Wire, change: dict[str, str], status: int, complaint: str) -> None:
    choices = {"netns": wire.device, "interface": "d0", "cpus": str(CPUS[0]), "ring": "64"} | change
    answer = front("attach", *(f"--{name}={value}" for name, value in choices.items()))
    assert (answer.returncode, answer.stdout) == (status, "")
    assert complaint in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_what_is_missing_is_named() -> None:
    answer = front("attach")
    assert (answer.returncode, answer.stderr.count("\n")) == (2, 1)
    assert all(name in answer.stderr for name in ("--interface", "--cpus", "--ring"))


def test_without_capabilities_it_says_so(wire: Wire) -> None:
    command = ["setpriv", "--inh-caps=-all", "--bounding-set=-all", str(programs.find("natgauge-front")), "read"]
    answer = subprocess.run(
        [*command, "--netns", wire.device, "--interface=d0"], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 3
    assert answer.stderr == (
        f"--netns {wire.device}: cannot be entered (EPERM: Operation not permitted); root is needed\n"
    )
