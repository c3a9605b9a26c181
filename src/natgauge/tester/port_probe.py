# SPDX-License-Identifier: Apache-2.0
"""Can these ports carry the tester? Their state, their settings, and frames across the cable between two of them."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from natgauge.agreement.generated import StreamCounts
from natgauge.cleaning import status
from natgauge.errors import HostError, NatgaugeError, UsageError
from natgauge.ethernet import LARGEST_FRAME, LEAST_OCTETS, ONE_PAGE
from natgauge.finding import Finding
from natgauge.host import capabilities, tuner
from natgauge.host.knobs import TunedMachine
from natgauge.host.machine import usable_cpus
from natgauge.inputs.measuring_types import format_cores, parse_cores
from natgauge.labs.common import namespaces
from natgauge.labs.contract import Port
from natgauge.labs.wire import port_state
from natgauge.labs.wire.lab import port_lock
from natgauge.labs.wire.port_state import LINK_SECONDS, PortState, bpf, findings, harmless, read_port, shell
from natgauge.tester.cable import HANDFUL, handful

#: RFC 2544 section 9.1: the smallest and the largest frame of Ethernet.
FRAME_SIZES: Final = (64, 1518)
#: Low enough for emulated and shared cards, too: no transmit ring overflows.
_RATE: Final = 10_000.0
#: Twisted pair links take three seconds to come back when a driver takes them down to attach a program.
_SECONDS: Final = 30.0
_GRACE_MS: Final = 500
_PROG_LOAD, _TYPE_XDP = 5, 6
#: r0 = XDP_PASS; exit
_PASS: Final = bytes.fromhex("b700000002000000 9500000000000000")
_UPDATE_IF_NOEXIST, _DRV_MODE = 1, 4


@dataclass(frozen=True, slots=True)
class PortReport:
    """What is to be known of a port."""

    name: str
    driver: str
    usable: bool
    findings: tuple[Finding, ...]


def probe(
    names: Sequence[str],
    *,
    frame_sizes: Sequence[int] = FRAME_SIZES,
    allow_addresses: bool = False,
    machine: TunedMachine | None = None,
    sends_frames: bool = True,
) -> tuple[PortReport, ...]:
    """Examine one or two ports of the calling thread's namespace; settings are read, not changed.

    A port without obstacles gets an XDP program for a moment. Two such ports then get 1000 frames each way.

    Args:
        frame_sizes: frame sizes of the planned measurement, in octets with FCS.
    """
    if len(set(names)) < len(names):
        raise UsageError(f"probe: interface {names[0]} is named twice; name two different ones, or one")
    for size in frame_sizes:
        _check_size(size)
    capabilities.require("examining ports", *capabilities.PORTS)
    place = machine or TunedMachine()
    states = [_settled(name) for name in names]
    found = [
        _of_port(
            state, place, [name for name in names if name != state.name], frame_sizes, allow_addresses=allow_addresses
        )
        for state in states
    ]
    if sends_frames:
        for state, each in zip(states, found, strict=True):
            if not _obstacles(each):
                each.extend(_of_attaching(state))
    if sends_frames and len(states) == 2 and not any(_obstacles(each) for each in found):
        for each, across in zip(found, _of_cable(states[0], states[1]), strict=True):
            each.append(across)
    return tuple(_report(state, each) for state, each in zip(states, found, strict=True))


def _settled(name: str) -> PortState:
    """Read a port, again and again while its link may negotiate."""
    deadline = time.monotonic() + LINK_SECONDS
    while (state := read_port(name)).may_negotiate and time.monotonic() < deadline:
        time.sleep(0.05)
    return state


def _check_size(octets: int) -> None:
    least = LEAST_OCTETS["udp"]
    if octets < least:
        raise UsageError(f"frame size: {octets} octets is too small; the least with IPv4 is {least} (FCS included)")
    if octets > LARGEST_FRAME:
        raise UsageError(
            f"frame size: {octets} octets is too large: {ONE_PAGE}; the most is {LARGEST_FRAME} (FCS included)"
        )


def _of_port(
    state: PortState, machine: TunedMachine, others: Sequence[str], frame_sizes: Sequence[int], *, allow_addresses: bool
) -> list[Finding]:
    """Return what can be seen of a port without a program on it."""
    found = [
        *findings(state, sender_cpus=usable_cpus()[:1], frame_sizes=frame_sizes, allow_addresses=allow_addresses),
        *of_peer(state, others),
        *_of_card(state, machine),
        *_of_settings(state, machine),
    ]
    user = _user_of(state)
    if user is None:
        return list(harmless(state, found))
    # Its program is natgauge's own, and a command would disturb what natgauge measures.
    what = f"natgauge uses it (process {user}); wait until that has ended, or use another port"
    others_found = [replace(finding, mend=None) for finding in found if finding.name != "XDP"]
    return [Finding("XDP", "obstacle", what), *others_found]


def _report(state: PortState, found: Sequence[Finding]) -> PortReport:
    order = ("obstacle", "warning", "ok")
    placed = (replace(finding, at=state.name) for finding in found)
    in_order = tuple(sorted(placed, key=lambda finding: order.index(finding.state)))
    return PortReport(state.name, state.media.driver, not _obstacles(found), in_order)


def _obstacles(found: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in found if finding.state == "obstacle"]


def _of_card(state: PortState, machine: TunedMachine) -> Iterator[Finding]:
    """Yield the card's NUMA node, and what lies between the card and the memory."""
    folder = f"/sys/class/net/{state.name}/device"
    node = machine.text(f"{folder}/numa_node")
    if node is not None and int(node) >= 0:
        cores = parse_cores(machine.text(f"/sys/devices/system/node/node{node}/cpulist") or "0")
        sender = usable_cpus()[0]
        if sender in cores:
            yield Finding("NUMA", "ok", f"node {node}, as core {sender}, which sends")
        else:
            what = f"the card is on node {node}, and core {sender}, which sends, is not"
            what += f"; measure with --sender-cores {format_cores(cores[:1])}"
            yield Finding("NUMA", "warning", what)
    kind = machine.text(f"{folder}/iommu_group/type")
    if kind is not None and kind.startswith("DMA"):
        what = f"the IOMMU translates the card's addresses ({kind}), which costs time for each frame"
        yield Finding("IOMMU", "warning", f"{what}; start Linux with iommu=pt")
    elif kind is not None:
        yield Finding("IOMMU", "ok", kind)


def _of_settings(state: PortState, machine: TunedMachine) -> Iterator[Finding]:
    """Yield the settings of the port that `natgauge host tune` would change."""
    own = (
        setting
        for setting in tuner.check([state.name], machine=machine)
        if setting.better is not None and setting.key.split()[0] == state.name
    )
    for (name, cause, mend), settings in groupby(own, lambda setting: (setting.name, setting.cause, setting.mend)):
        values = [
            f"{setting.key.removeprefix(state.name)} is {setting.value}, better: {setting.better}".strip()
            for setting in settings
        ]
        yield Finding("tuning", "warning", f"{name} {', '.join(values)}; {cause}", mend, cause=cause)


def _of_attaching(state: PortState) -> list[Finding]:
    """Return the obstacle if the driver refuses an XDP program, as the kernel gives the reason."""
    try:
        with _locked(state):
            reason = refusal(state.name)
    except NatgaugeError as error:
        return [Finding("XDP", "obstacle", f"cannot be tried: {error}")]
    except OSError as error:
        reason = str(error)
    if reason is None:
        return []
    what = f"its driver accepts no XDP program now ({reason})"
    action = state.driver.if_refused if state.driver else ""
    return [Finding("XDP", "obstacle", f"{what}; {action}" if action else what)]


def _of_cable(first: PortState, second: PortState) -> tuple[Finding, Finding]:
    """Send frames each way with the tester itself: its programs are attached, frames redirected and received."""
    try:
        with _locked(first, second):
            counts = [(here.name, far.name, _sent(here, far)) for here, far in ((first, second), (second, first))]
    except NatgaugeError as error:
        faulty = [state for state in (first, second) if state.name == error.at] or [first, second]
        return (_of_start(first, faulty, error), _of_start(second, faulty, error))
    across = _of_counts(counts)
    return across, across


def _of_start(state: PortState, faulty: Sequence[PortState], error: NatgaugeError) -> Finding:
    """Return the finding on a port where the tester does not start on the faulty ones."""
    if state in faulty:
        return Finding("cable", "obstacle", f"the tester does not start: {error}")
    return Finding("cable", "warning", f"no frame was sent: the tester does not start on {faulty[0].name}")


def _sent(here: PortState, far: PortState) -> StreamCounts:
    ends = Port(here.name, None, far.mac, None), Port(far.name, None, here.mac, None)
    try:
        return handful(*ends, rate=_RATE, grace_ms=_GRACE_MS, seconds=_SECONDS)
    except NatgaugeError as error:
        # The engine names a port by its side of the trial, which is another one each way.
        error.at = {"initiator": here.name, "responder": far.name}.get(error.at, error.at)
        raise


def _of_counts(counts: Sequence[tuple[str, str, StreamCounts]]) -> Finding:
    ways = ", ".join(
        f"{sent.received_frames} of {sent.offered_frames} from {here} to {far}" for here, far, sent in counts
    )
    arrived = sum(sent.received_frames for *_, sent in counts)
    offered = sum(sent.offered_frames for *_, sent in counts)
    if arrived == 0:
        what = f"no frame arrived ({ways}): there is no cable between these ports, or something that does not pass them"
        return Finding("cable", "warning", what)
    if arrived < offered:
        return Finding(
            "cable", "obstacle", f"frames were lost on the cable; what arrived: {ways}; see to the cable and both ports"
        )
    if offered < 2 * HANDFUL:
        what = f"all frames that the ports accepted arrived ({ways}); the transmit rings had no room for the others"
        return Finding("cable", "warning", f"{what} of {HANDFUL} at {_RATE:g} frames/s")
    return Finding("cable", "ok", f"all frames arrived: {ways}")


@contextmanager
def _locked(*states: PortState) -> Iterator[None]:
    with ExitStack() as taken:
        for state in states:
            lock = port_lock(state.name, None)
            lock.take()
            taken.callback(lock.release)
        yield


def _user_of(state: PortState) -> str | None:
    """Return the process of natgauge that uses a port or its lab; None = there is none, or that cannot be known."""
    try:
        lock = port_lock(state.name, None)
        if lock.is_held():
            return str(lock.holder() or "unknown")
        here = set(namespaces.here())
        users = (lab.pid for lab in (status() if here else ()) if here & set(lab.namespaces))
        return next((str(pid or "unknown") for pid in users if pid is not None), None)
    except HostError:
        # The locks cannot be seen. Where frames are sent, that is reported then.
        return None


def of_peer(port: PortState, others: Sequence[str]) -> Iterator[Finding]:
    """Yield whether the other end of a veth takes the frames that the tester sends.

    A veth passes redirected frames on only if its other end has GRO on or an XDP program attached. The wire lab does
    not check this: the command that restarts the device may do either.
    """
    features = port.features
    if port.media.driver != "veth" or features is None or port_state.Features.BASIC not in features:
        return
    if port_state.Features.NDO_XMIT in features or port.peer in others:
        return
    end = "in another namespace" if port.peer is None else port.peer
    mend = None if port.peer is None else shell(["ethtool", "-K", port.peer, "gro", "on"])
    what = f"its other end ({end}) takes no redirected frames: GRO is off there, and no XDP program is attached"
    if port.peer is None:
        what += "; turn GRO on there (ethtool -K)"
    if others or port.peer is None:
        yield Finding("XDP", "obstacle", what, mend)
    else:
        yield Finding("XDP", "warning", f"{what}; this is no obstacle if the other end is a port of the tester", mend)


def refusal(interface: str) -> str | None:
    """Attach a program that passes all frames to an interface of the calling thread's namespace, and detach it.

    Returns:
        The kernel's reason if the driver refuses the program; None = it does not.
    """
    index, program = socket.if_nametoindex(interface), _load()
    try:
        with IPRoute(ext_ack=True) as routes:
            try:
                _attach(routes, index, program)
            except NetlinkError as error:
                words = error.args[1] if len(error.args) > 1 else None
                return str(words or os.strerror(error.code))
            _attach(routes, index, -1)
    finally:
        os.close(program)
    return None


def _attach(routes: IPRoute, index: int, program: int) -> None:
    """Give the interface this program in its driver; -1 = none."""
    flags = _DRV_MODE if program == -1 else _DRV_MODE | _UPDATE_IF_NOEXIST
    wanted = {"attrs": [("IFLA_XDP_FD", program), ("IFLA_XDP_FLAGS", flags)]}
    routes.link("set", index=index, IFLA_XDP=wanted)


def _load() -> int:
    code, licence = ctypes.create_string_buffer(_PASS), ctypes.create_string_buffer(b"GPL")
    asked = struct.pack("IIQQ", _TYPE_XDP, len(_PASS) // 8, ctypes.addressof(code), ctypes.addressof(licence))
    program, _ = bpf(_PROG_LOAD, asked)
    if program < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return program
