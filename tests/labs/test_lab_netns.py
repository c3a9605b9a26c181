# SPDX-License-Identifier: Apache-2.0
"""Labs of network namespaces, made for real. Needs root; every name begins with "ngtest"."""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any

import pytest
from pyroute2 import IPRoute
from tests.labs.datagrams import Datagram, checksum
from tests.labs.known_costs.devices import BUSY_SOURCE, program
from tests.plans import PlanOfTrial

from natgauge import cleaning
from natgauge.errors import BrokenError, HostError, UsageError
from natgauge.host import capabilities, programs
from natgauge.host.machine import online_cpus, usable_cpus
from natgauge.labs.common import links, locks, namespaces
from natgauge.labs.common.port_options import BootCommand
from natgauge.labs.common.undoing import Gone
from natgauge.labs.contract import Port
from natgauge.labs.netns.lab import FRONT, NetnsLab
from natgauge.labs.wire.lab import WireLab
from natgauge.procedures.kit.results import imbalance
from natgauge.records.store import Memory
from natgauge.tester.cable import CableLab
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask
from natgauge.trials import Phase2Plan

MISSING = capabilities.missing(*capabilities.MEASURING)
pytestmark = [
    pytest.mark.waits,
    pytest.mark.skipif(bool(MISSING), reason=f"needs root: {', '.join(MISSING)} missing"),
]

NAME = f"ngtest-{os.getpid()}"
#: A lab of another test may change the same setting of the machine meanwhile.
alone = pytest.mark.alone


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    """Whatever a test does, the machine is as it was: namespaces of ours, the host's interfaces, registers."""
    before = _traces()
    yield
    assert _traces() == before


def _traces() -> tuple[list[str], list[str], list[str]]:
    with IPRoute() as routes:
        interfaces = [link.get_attr("IFLA_IFNAME") for link in routes.get_links()]
    own = [name for name in namespaces.names() if "ngtest" in name]
    return own, interfaces, sorted(str(path) for path in locks.RUN.glob("*/*ngtest*"))


@pytest.fixture
def lab() -> Iterator[NetnsLab]:
    with NetnsLab(NAME, initiator_family="ipv4", responder_family="ipv4") as made:
        yield made


def _run(lab: NetnsLab, snippet: str) -> str:
    result = lab.devices[0].run(snippet)
    assert result.status == 0, result.stderr
    return result.stdout


# --- what is made ---------------------------------------------------------------------------------------------------


def test_only_the_namespaces_of_the_plan_are_made(lab: NetnsLab) -> None:
    assert [name for name in namespaces.names() if "ngtest" in name] == [f"ng-{NAME}-gateway", f"ng-{NAME}-tester"]
    (status,) = [found for found in cleaning.status() if found.name == NAME]
    assert (status.state, status.pid) == ("in use", os.getpid())
    assert sorted(status.namespaces) == [f"ng-{NAME}-gateway", f"ng-{NAME}-tester"]
    assert lab.initiator.netns == lab.responder.netns == f"ng-{NAME}-tester"


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_ports_are_up_silent_and_wide_enough(family: str) -> None:
    with NetnsLab(NAME, initiator_family=family, responder_family=family) as lab:  # type: ignore[arg-type]
        for port in (lab.initiator, lab.responder):
            assert port.netns
            link, addresses = namespaces.inside(port.netns, lambda port=port: _look(port.interface))  # type: ignore[misc]
            assert link.get_attr("IFLA_OPERSTATE") == "UP"
            assert link.get_attr("IFLA_MTU") == links.MTU
            assert link.get_attr("IFLA_NUM_RX_QUEUES") > max(online_cpus())
            assert link.get_attr("IFLA_NUM_TX_QUEUES") > max(online_cpus())
            assert addresses == []


def _look(interface: str) -> tuple[Any, list[str]]:
    with IPRoute() as routes:
        (index,) = routes.link_lookup(ifname=interface)
        addresses = [address.get_attr("IFA_ADDRESS") for address in routes.get_addr(index=index)]
        return routes.get_links(index)[0], addresses


def test_the_device_has_its_offloads_and_addresses_and_nothing_else(lab: NetnsLab) -> None:
    for interface in ("inside", "outside"):
        shown = _run(lab, f"ethtool -k {interface} | tail -n +2").splitlines()
        features = dict(line.strip().split(": ", 1) for line in shown)
        assert (features["tx-checksumming"], features["generic-receive-offload"]) == ("off", "on")
    assert _run(lab, "ip -br -4 addr show inside").split()[2:] == ["10.0.0.1/16"]
    assert _run(lab, "ip -br -4 addr show outside").split()[2:] == ["198.19.0.1/16"]
    assert _run(lab, "ip -6 addr show inside; ip -6 addr show outside") == ""
    assert _run(lab, "cat /proc/sys/net/ipv4/conf/inside/rp_filter /proc/sys/net/ipv4/ip_forward").split() == ["0", "1"]


def test_an_ipv6_device_can_speak_at_once() -> None:
    with NetnsLab(NAME, initiator_family="ipv6", responder_family="ipv6") as lab:
        shown = _run(lab, "ip -6 addr show inside")
        assert "inet6 2001:2::1/64 scope global" in shown
        assert "inet6 fe80::6e:67ff:fe00:2/64 scope link" in shown
        assert "tentative" not in shown


# A device of IPv6 alone has more reasons to send something.
@pytest.mark.parametrize("family", [pytest.param("ipv4", marks=pytest.mark.soak), "ipv6"])
def test_an_idle_device_says_nothing(family: str) -> None:
    with (
        NetnsLab(NAME, initiator_family=family, responder_family=family) as lab,  # type: ignore[arg-type]
        _socket(lab.initiator) as inside,
        _socket(lab.responder) as outside,
    ):
        ready, _, _ = select.select([inside, outside], [], [], 2.5)
        assert [handle.recv(2048).hex() for handle in ready] == []


# --- it forwards ----------------------------------------------------------------------------------------------------


def _socket(port: Port) -> socket.socket:
    def make() -> socket.socket:
        handle = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        handle.bind((port.interface, 0))
        return handle

    handle = namespaces.inside(port.netns, make)
    handle.settimeout(2.0)
    return handle


def _mac(text: str | None) -> bytes:
    assert text
    return bytes.fromhex(text.replace(":", ""))


def _frame4(gateway: bytes) -> bytes:
    datagram = Datagram(IPv4Address("10.0.0.2"), 1024, IPv4Address("198.19.0.2"), 2048, bytes(18))
    return datagram.frame("02:00:00:00:00:01", gateway.hex())


def _frame6(gateway: bytes) -> bytes:
    datagram = Datagram(IPv6Address("2001:2::2"), 1024, IPv6Address("2001:2:0:8000::2"), 2048, bytes(18))
    return datagram.frame("02:00:00:00:00:01", gateway.hex())


OWN = b"\x02\0\0\0\0\x02"


def _answer_arp(request: bytes) -> bytes | None:
    if request[12:14] != b"\x08\x06":
        return None
    return request[6:12] + OWN + request[12:20] + b"\0\x02" + OWN + request[38:42] + request[22:32]


def _answer_solicitation(request: bytes) -> bytes | None:
    if request[12:14] != b"\x86\xdd" or request[20] != 58 or request[54] != 135:
        return None
    device, own = request[22:38], request[62:78]
    body = b"\x88\0" + b"\0\0" + b"\x60\0\0\0" + own + b"\x02\x01" + OWN
    check = checksum(own + device + struct.pack("!II", len(body), 58) + body)
    body = body[:2] + struct.pack("!H", check) + body[4:]
    return request[6:12] + OWN + b"\x86\xdd" + struct.pack("!IHBB", 6 << 28, len(body), 58, 255) + own + device + body


@pytest.mark.parametrize(
    ("family", "frame", "answer", "hops"),
    [("ipv4", _frame4, _answer_arp, 22), ("ipv6", _frame6, _answer_solicitation, 21)],
)
@pytest.mark.parametrize("devices", [("gateway",), ("one", "two")])
def test_a_frame_goes_through(
    family: str,
    frame: Callable[[bytes], bytes],
    answer: Callable[[bytes], bytes | None],
    hops: int,
    devices: tuple[str, ...],
) -> None:
    with NetnsLab(NAME, initiator_family=family, responder_family=family, devices=devices) as lab:  # type: ignore[arg-type]
        version = family[-1]
        if len(devices) == 2:
            route = f'ip route add "$NG_RESPONDER_NETWORK{version}" via "$NG_OUTSIDE_PEER{version}"'
            assert lab.devices[0].run(route).status == 0
        sent = frame(_mac(lab.initiator.gateway_mac))
        with _socket(lab.initiator) as inside, _socket(lab.responder) as outside:
            inside.send(sent)
            request = outside.recv(2048)
            reply = answer(request)
            assert reply, request.hex()
            outside.send(reply)
            received = outside.recv(2048)
            while received == reply:
                received = outside.recv(2048)
        assert received[:6] == OWN
        assert received[6:12] == _mac(lab.responder.gateway_mac)
        assert received[hops] == 64 - len(devices)
        assert received[-26:] == sent[-26:]
        assert all(count == 0 for count in lab.dropped().values()), lab.dropped()


# --- devices --------------------------------------------------------------------------------------------------------


def _runs(pid: int) -> bool:
    """Whether a process is there and is more than a zombie that nobody has waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_snippet_is_told_where_it_is_and_ends_with_its_status(lab: NetnsLab) -> None:
    assert _run(lab, 'echo "$NG_INSIDE $NG_OUTSIDE_ADDRESS4 $NG_NAME"; pwd').splitlines() == [
        f"inside 198.19.0.1 {NAME}-gateway",
        f"/run/natgauge/labs/{NAME}/gateway",
    ]
    assert _run(lab, "ls /sys/class/net").split() == ["inside", "lo", "outside"]
    assert lab.devices[0].run('echo "$X"', environment={"X": "y"}).stdout == "y\n"
    assert _run(lab, 'echo "$RES_OPTIONS"') == "timeout:1 attempts:1\n"
    for snippet, status in (("exit 7", 7), ("false; echo on", 1), ('echo "$UNKNOWN"', 2)):
        failed = lab.devices[0].run(snippet)
        assert (failed.status, failed.stdout) == (status, "")


def test_a_gateway_may_load_programs_of_its_own(lab: NetnsLab, tmp_path: Path) -> None:
    """Tc, which looks for where programs are pinned, loaded none on hosts that have that mounted."""
    with mounted_bpffs():
        _run(lab, "tc qdisc add dev $NG_OUTSIDE clsact")
        busy = program(tmp_path, BUSY_SOURCE, LOOPS=0)
        _run(lab, f"tc filter add dev $NG_OUTSIDE egress bpf da obj {busy} sec tc")
        assert "busy" in _run(lab, "tc filter show dev $NG_OUTSIDE egress")
        _run(lab, "tc qdisc del dev $NG_OUTSIDE clsact")
        assert _run(lab, "stat -f -c %T /sys/fs/bpf") == "bpf_fs\n"


@contextmanager
def mounted_bpffs() -> Iterator[None]:
    """As systemd mounts it."""
    there = Path("/sys/fs/bpf").is_mount()
    if not there:
        subprocess.run(["mount", "-t", "bpf", "bpf", "/sys/fs/bpf"], check=True)
    try:
        yield
    finally:
        if not there:
            subprocess.run(["umount", "/sys/fs/bpf"], check=True)


def test_a_snippet_that_hangs_is_killed(lab: NetnsLab) -> None:
    begin = time.monotonic()
    with pytest.raises(BrokenError, match=r"snippet 'sleep 60' did not end within 0\.3 s"):
        lab.devices[0].run("\n  sleep 60\n", timeout=0.3)
    assert time.monotonic() - begin < 3
    # What it started was killed with it; the kernel takes a moment to bury it.
    while namespaces.processes(f"ng-{NAME}-gateway") and time.monotonic() - begin < 3:
        time.sleep(0.01)
    assert namespaces.processes(f"ng-{NAME}-gateway") == ()


def test_daemons_live_until_the_lab_goes() -> None:
    with NetnsLab(NAME, initiator_family="ipv4", responder_family="ipv4") as lab:
        stubborn = "trap '' TERM; while :; do sleep 1; done"
        assert lab.devices[0].run(f"setsid sleep 61 & setsid sh -c {stubborn!r} & echo started").stdout == "started\n"
        daemons = namespaces.processes(f"ng-{NAME}-gateway")
        assert len(daemons) >= 2
    assert not any(map(_runs, daemons))


def test_the_callers_namespace_never_changes(lab: NetnsLab) -> None:
    before = [Path(f"/proc/thread-self/ns/{kind}").readlink() for kind in ("net", "mnt")]
    lab.devices[0].run("true")
    lab.dropped()
    assert [Path(f"/proc/thread-self/ns/{kind}").readlink() for kind in ("net", "mnt")] == before


# --- one user at a time, and what killed ones leave -----------------------------------------------------------------

USER = """
import sys, time
from natgauge.labs.netns.lab import NetnsLab
with NetnsLab(sys.argv[1], initiator_family="ipv4", responder_family="ipv6", hosts=100_000) as lab:
    lab.devices[0].run("setsid sleep 62 &")
    print("up", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def user() -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen([sys.executable, "-c", USER, NAME], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline() == "up\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()
    cleaning.clean({NAME})


@alone
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_what_a_signal_leaves(user: subprocess.Popen[str], number: signal.Signals) -> None:
    (daemon,) = namespaces.processes(f"ng-{NAME}-gateway")
    limit = Path("/proc/sys/net/ipv6/neigh/default/gc_thresh3")
    assert limit.read_text() == "400000\n"
    user.send_signal(number)
    user.wait()
    done = cleaning.clean({NAME})
    assert bool(done) is (number == signal.SIGKILL)
    assert not _runs(daemon)
    assert int(limit.read_text()) < 400_000
    assert not namespaces.exists(f"ng-{NAME}-gateway")


@pytest.mark.parametrize(
    "milliseconds", [0, 75, 150, *(pytest.param(one, marks=pytest.mark.soak) for one in (25, 50, 100, 125, 175))]
)
def test_a_kill_at_any_moment_can_be_cleaned(milliseconds: int) -> None:
    process = subprocess.Popen([sys.executable, "-c", USER, NAME], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while not (locks.folder("labs") / f"{NAME}.json").exists() and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(milliseconds / 1000)
    process.kill()
    process.wait()
    # A process that it was starting holds the lab's lock until it runs a program of its own.
    while not cleaning.clean({NAME}):
        time.sleep(0.01)


def test_what_no_lab_has_goes_by_its_mark_and_not_by_its_name() -> None:
    marked, theirs, half_made = (f"ng-ngtest{os.getpid()}-{name}" for name in ("marked", "theirs", "half"))
    subprocess.run(["ip", "netns", "add", theirs], check=True)
    try:
        namespaces.create(marked)
        # A kill in the middle leaves the mark, and an ordinary file where the name belongs.
        namespaces.write_mark(half_made, namespaces.cookie())
        namespaces.path_of(half_made).touch()
        present = (marked, theirs, half_made)
        lines: list[str] = []
        cleaning.carry_out(cleaning._of_ownerless(present, Gone()), lines.append)
        assert sorted(lines) == [f"deleted namespace {half_made}", f"deleted namespace {marked}"]
        (stray,) = cleaning.find_strays(present)
        assert (stray.name, stray.processes, stray.why) == (theirs, (), "")
        with pytest.raises(BrokenError, match="natgauge did not make it"):
            namespaces.delete([theirs])
    finally:
        subprocess.run(["ip", "netns", "delete", theirs], check=True)


def test_a_namespace_that_only_has_the_name_of_a_deleted_one_is_left() -> None:
    """The kernel gives the number of a deleted namespace's inode to the next namespace."""
    name = f"ng-{NAME}-gateway"
    with NetnsLab(NAME, initiator_family="ipv4", responder_family="ipv4") as lab:
        lab.keep()
    for command in ("delete", "add"):
        subprocess.run(["ip", "netns", command, name], check=True)
    try:
        assert f"left namespace {name}: it is not the one that natgauge made" in cleaning.take_down(NAME)
        assert namespaces.exists(name)
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


def test_a_device_that_deletes_natgauges_own_files_leaves_nothing_behind() -> None:
    with NetnsLab(NAME, initiator_family="ipv4", responder_family="ipv4") as lab:
        lab.devices[0].run(f"rm -r {locks.folder('namespaces')}/ng-{NAME}-* {locks.folder('labs')}/{NAME}*")
        with pytest.raises(BrokenError, match=r"its private directory .* is gone"):
            lab.devices[0].run("true")
    assert not namespaces.exists(f"ng-{NAME}-gateway")


def test_somebody_elses_namespace_is_not_taken() -> None:
    namespaces.create(f"ng-{NAME}-gateway")
    try:
        with (
            pytest.raises(HostError, match=f"namespace ng-{NAME}-gateway: exists already"),
            NetnsLab(NAME, initiator_family="ipv4", responder_family="ipv4"),
        ):
            pass
        assert namespaces.exists(f"ng-{NAME}-gateway")
    finally:
        namespaces.delete([f"ng-{NAME}-gateway"])


def test_deleting_waits_for_the_kernel(lab: NetnsLab) -> None:
    name = f"ng-{NAME}-extra"
    namespaces.create(name)
    handle = os.open(namespaces.path_of(name), os.O_RDONLY)
    try:
        with pytest.raises(BrokenError, match="still in use"):
            namespaces.delete([name], timeout=0.2)
    finally:
        os.close(handle)
    assert lab.devices[0].run("true").status == 0


# --- the other kinds ------------------------------------------------------------------------------------------------


@pytest.fixture
def cable() -> Iterator[CableLab]:
    with CableLab(NAME) as made:
        yield made


def _wire(
    cable: CableLab, initiator: str = "ng0i", responder: str = "ng0r", *, allow_addresses: bool = False
) -> WireLab:
    first, second = (Port(name, cable.tester, None, "10.0.0.1") for name in (initiator, responder))
    return WireLab(first, second, allow_addresses=allow_addresses)


def _configure(cable: CableLab, **change: object) -> None:
    def work() -> None:
        with IPRoute() as routes:
            (index,) = routes.link_lookup(ifname="ng0r")
            if "address" in change:
                routes.addr("add", index=index, address=change["address"], prefixlen=24)
            if "state" in change:
                routes.link("set", index=index, state=change["state"])
            if "gateway" in change:
                routes.route("add", dst="default", gateway=change["gateway"])

    namespaces.inside(cable.tester, work)


def test_a_wire_uses_ports_as_they_are(cable: CableLab) -> None:
    with _wire(cable) as lab:
        assert (lab.placement, list(lab.devices), lab.remarks) == ("external", [], ())
        assert lab.dropped()["responder port received"] == 0
        # Read in the ports' namespace, where /sys is another's.
        assert lab.ground.mtu == links.MTU
        told = lab.parameters()
        assert (told["port_drivers"], told["media"]) == (["veth", "veth"], ["virtual", "virtual"])
        assert (told["link_speeds"], told["flow_control"]) == ([None, None], ["not known", "not known"])
        with pytest.raises(HostError, match=f"port ng0i in {cable.tester}: in use by process {os.getpid()}"):
            _wire(cable, "ng0i", "ng0r").up()
    with _wire(cable):
        pass


def test_a_wires_device_is_restarted_with_its_cores_each_time(cable: CableLab, tmp_path: Path) -> None:
    first, second = (Port(name, cable.tester, None, "10.0.0.1") for name in ("ng0i", "ng0r"))

    def wire(command: str) -> WireLab:
        return WireLab(first, second, device_cores=4, boot=BootCommand("reboot command", command, 5.0, 0.0))

    note = f"echo $NG_CORES >> {tmp_path}/cores"
    for _ in range(2):
        with wire(note) as lab:
            told = lab.parameters()
            assert (lab.device_cores.count, told["reboot_command"], told["boot_settle_seconds"]) == (4, note, 0.0)
            assert told["boot_took_seconds"] >= 0
    assert (tmp_path / "cores").read_text() == "4\n4\n"
    with pytest.raises(HostError, match=r"^reboot command: 'false': failed with exit status 1"):
        wire("false").up()
    # The ports are free again.
    with _wire(cable):
        pass


def test_a_wire_of_one_port_is_refused(cable: CableLab) -> None:
    with pytest.raises(UsageError, match="named for both ports"):
        _wire(cable, "ng0i", "ng0i")
    with pytest.raises(UsageError, match="MAC or IP address"):
        WireLab(Port("a", None, None, None), Port("b", None, "02:00:00:00:00:01", None))


def test_an_unknown_port_is_refused(cable: CableLab) -> None:
    with pytest.raises(UsageError, match="interface nosuch: does not exist"):
        _wire(cable, "ng0i", "nosuch").up()
    with pytest.raises(UsageError, match="namespace nowhere: does not exist"):
        WireLab(Port("a", "nowhere", None, "10.0.0.1"), Port("b", "nowhere", None, "10.0.0.1")).up()


def test_a_port_that_is_down_is_refused(cable: CableLab) -> None:
    _configure(cable, state="down")
    # Said of either port before the other one's carrier is waited for.
    for ports in (("ng0i", "ng0r"), ("ng0r", "ng0i")):
        with pytest.raises(HostError, match="interface ng0r: is down; run: ip link set ng0r up"):
            _wire(cable, *ports).up()


def test_a_port_with_an_address_is_refused_unless_allowed(cable: CableLab) -> None:
    _configure(cable, address="192.168.77.1")
    with pytest.raises(UsageError, match=r"interface ng0r: carries IP address 192\.168\.77\.1"):
        _wire(cable).up()
    with _wire(cable, allow_addresses=True):
        pass
    _configure(cable, gateway="192.168.77.2")
    with pytest.raises(UsageError, match="has the default route"):
        _wire(cable, allow_addresses=True).up()


def test_the_loopback_interface_is_refused(cable: CableLab) -> None:
    with pytest.raises(UsageError, match="interface lo: is the loopback interface, which has no link; use another"):
        namespaces.inside(cable.tester, lambda: _wire(cable, "lo", "ng0i", allow_addresses=True).up())


# --- isolated -------------------------------------------------------------------------------------------------------


def _has_front() -> bool:
    try:
        programs.find(FRONT)
    except HostError:
        return False
    return len(usable_cpus()) > 1


@pytest.mark.skipif(not _has_front(), reason=f"needs {FRONT} (make setup) and two cores")
def test_frames_of_one_flow_come_to_one_core_of_an_isolated_device_and_those_of_many_to_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sender shares a core with the device, which a user may not choose: two cores suffice."""
    first, *others = usable_cpus()
    chosen = ((first,), (first, others[0]))
    monkeypatch.setattr("natgauge.labs.netns.lab._choose_cpus", lambda *_, **__: chosen)
    asked = {"placement": "isolated", "lab_name": NAME, "connections": 2000, "seed": 3}
    with Bench(ask("throughput", "nftables-nat44", asked).cell) as bench:
        assert bench.lab.device_cores.count == 2
        measurer = bench.ready(bench.plan("throughput", {}), Memory()).measurer
        for connections, least, most in ((1, 1.95, 2.0), (2000, 1.0, 1.2)):
            outcome = measurer.measure(PlanOfTrial(connections, 2000.0, Phase2Plan(4000.0, 0.0, 0.5)))
            assert set(outcome.readings.core_work) == set(chosen[1])
            assert sum(one.frames for one in outcome.readings.core_work.values()) >= 2000
            found = imbalance(outcome.readings.core_work)
            assert found is not None
            assert least <= found <= most, connections


@pytest.mark.skipif(not _has_front(), reason=f"needs {FRONT} (make setup) and two cores")
def test_each_device_of_a_chain_works_on_its_own_cores() -> None:
    """The CE has the tester's core, because this machine may have only two."""
    first, second = usable_cpus()[:2]
    with NetnsLab(
        NAME,
        initiator_family="ipv4",
        responder_family="ipv4",
        devices=("ce", "pe"),
        placement="isolated",
        sender_cpus=(first,),
        cores_of={"ce": (first,), "pe": (second,)},
    ) as lab:
        ce, pe = lab._homes
        assert [device.environment["NG_CPUS"] for device in (ce, pe)] == [str(first), str(second)]
        before = lab._read_cards()
        cores = {place.split(" ")[0]: set(card.work) for place, card in before.items()}
        assert len(before) == 4
        assert cores == {"ce": {first}, "pe": {second}}
        assert lab.device_cores.count == 1
        # What the CE sends is taken up on the PE's core.
        peer = ce.environment["NG_OUTSIDE_PEER4"]
        outgoing = namespaces.inside(ce.netns, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        with outgoing:
            for _ in range(2):
                outgoing.sendto(b"on its way", (peer, 9))
                time.sleep(0.1)
        (place,) = (place for place in before if place.startswith("pe inside"))
        work = lab._read_cards()[place].work[second]
        assert work.frames - before[place].work[second].frames >= 2
        assert work.devices == "pe"


@pytest.mark.skipif(not _has_front(), reason=f"needs {FRONT} (make setup) and two cores")
def test_what_works_on_an_isolated_devices_cores_goes_before_the_rest_of_the_machine() -> None:
    """A busy process on the device's core took half of it, and 2,821 connections/s were told of a device of 20,000."""
    senders = usable_cpus()[:1]
    before = card_threads()
    with NetnsLab(
        NAME, initiator_family="ipv4", responder_family="ipv4", placement="isolated", sender_cpus=senders
    ) as lab:
        threads = card_threads() - before
        assert len(threads) == 2 * len(lab.device_cpus)
        assert {os.getpriority(os.PRIO_PROCESS, thread) for thread in threads} == {-20}
        assert lab.devices[0].run("nice").stdout == "-20\n"
    assert os.getpriority(os.PRIO_PROCESS, 0) == 0, "what is ours stays as it was"


def card_threads() -> set[int]:
    """The kernel's threads that empty rings."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/comm"):
        with suppress(OSError):
            if path.read_text().startswith("cpumap/"):
                found.add(int(path.parent.name))
    return found


def test_an_isolated_lab_without_the_program_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    if len(usable_cpus()) < 2:
        pytest.skip("needs two cores")
    monkeypatch.setattr("natgauge.labs.netns.lab.FRONT", "natgauge-no-such-program")
    lab = NetnsLab(NAME, initiator_family="ipv4", responder_family="ipv4", placement="isolated")
    with pytest.raises(HostError, match="program natgauge-no-such-program: not found"):
        lab.up()
