# SPDX-License-Identifier: Apache-2.0
"""`audit` of real gateways whose rules are known; its captures are read by tshark without a warning."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.absent import absent
from tests.labs.external import external_nat
from tests.labs.far import SSHD, TIMEOUT, FarMachine, far_machine, unchanged
from tests.labs.nat44 import variant, with_rules
from tests.unit.simulated_audits import OUT_OF_SIGHT
from tests.unit.test_audit_requirements import WRONG, examined

import natgauge
from natgauge.audits import audit
from natgauge.audits.audit import Audited
from natgauge.audits.kit import crowd, datagrams, examiner
from natgauge.audits.kit.network import pcapng
from natgauge.audits.kit.timers import TIMERS
from natgauge.audits.request import LONG_WAIT_SECONDS
from natgauge.audits.requirements import icmp, requirements
from natgauge.cli import run
from natgauge.labs.common import namespaces
from natgauge.words import Transport

pytestmark = pytest.mark.waits


def audited(gateway: str | Path, folder: Path, **choices: Any) -> Audited:
    few = {"wait": 0.0, "mappings": 512, "lab_name": "audit"}
    return natgauge.audit(gateway, results=folder / "results", **{**few, **choices})


def verdicts(done: Audited) -> dict[tuple[str, str], str]:
    return {(one.key, one.transport): one.verdict for one in done.record.requirements}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lab on one host delivers a frame at once or never, so that an audit need not wait long for a dropped frame."""
    for module in (examiner, crowd, datagrams, icmp):
        monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.3)


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have audits look at these requirements only, and at no classes unless they are wanted."""

    def look_at(*keys: str, classes: bool = False) -> None:
        chosen = [one for one in requirements() if one.key in keys]
        assert {one.key for one in chosen} == {*keys}
        monkeypatch.setattr(audit, "requirements", lambda: chosen)
        monkeypatch.setattr(audit, "classes", audit.classes if classes else lambda _examiner: {})

    return look_at


@pytest.fixture(scope="module")
def linux(tmp_path_factory: pytest.TempPathFactory) -> Audited:
    """Nftables NAT44, without a wait for time-outs."""
    return audited("nftables-nat44", tmp_path_factory.mktemp("linux"))


def test_linux_behaves_as_it_is_known_to(linux: Audited) -> None:
    transports: tuple[Transport, ...] = ("udp", "tcp")
    for transport in transports:
        seen = linux.record.classes[transport]
        assert seen.mapping == seen.filtering == "address and port-dependent"
        assert seen.ports == "overloading"
        assert seen.hairpinning == "none"
    found = verdicts(linux)
    assert found["RFC4787-REQ-12", "udp"] == found["RFC5382-REQ-2a", "tcp"] == found["RFC4787-REQ-14", "udp"] == "meets"
    # Linux answers a SYN for which it has no connection with a reset, as any host does.
    assert found["RFC5382-REQ-4", "tcp"] == "fails"
    # Without time-outs and with few mappings, these have to wait.
    unseen = {requirement.key for requirement in requirements() if requirement.timers}
    unseen |= OUT_OF_SIGHT | {"RFC6888-REQ-5", "RFC6888-REQ-9", "RFC6888-REQ-14"}
    unseen |= {one.key for one in requirements() if one.strain == 2 and one.rfc != 7857}
    # These are about port blocks, and it has none.
    unseen -= {"RFC7422-2", "RFC6888-REQ-8-blocks", "RFC6888-REQ-11d-blocks"}
    assert {key for (key, _), verdict in found.items() if verdict == "not seen"} == unseen
    assert not [name for name in namespaces.names() if name.startswith("ng-audit")]


@pytest.mark.slow("65,000 flows through the gateway")
def test_linux_without_a_free_port_drops_and_keeps_what_there_was(tmp_path: Path, only: Callable[..., None]) -> None:
    only("RFC6888-REQ-4", "RFC6888-REQ-11a", "RFC6888-REQ-11d")
    found = verdicts(audited("nftables-nat44", tmp_path, mappings=64_512))
    assert found["RFC6888-REQ-4", "udp"] == "not seen"
    assert found["RFC6888-REQ-11a", "udp"] == found["RFC6888-REQ-11d", "udp"] == "meets"


def read_by_tshark(captures: bytes) -> list[str]:
    """The comments of the frames, read without a warning; one capture behind the other is one with several sections."""
    command = ["tshark", "-r", "-", "-T", "fields", "-e", "frame.comment"]
    read = subprocess.run(command, input=captures, capture_output=True, check=True)
    assert [line for line in read.stderr.decode().splitlines() if "Running as user" not in line] == []
    return read.stdout.decode().splitlines()


def test_tshark_reads_each_capture_without_a_warning(linux: Audited) -> None:
    evidence = [one.evidence for one in linux.record.requirements if one.evidence.file is not None]
    assert len(evidence) > 20
    captures = b"".join((linux.folder / str(each.file)).read_bytes() for each in evidence)
    assert read_by_tshark(captures) == [sentence for each in evidence for sentence in each.frames]


@pytest.mark.soak
@pytest.mark.parametrize("name", WRONG)
def test_tshark_reads_each_capture_of_each_known_answer(name: str) -> None:
    captures: list[bytes] = []
    found = list(examined(WRONG[name][0], keep=lambda _name, frames: captures.append(pcapng(frames))))
    assert read_by_tshark(b"".join(captures)) == [sentence for one in found for sentence in one.evidence.frames]


@pytest.mark.usefixtures("impatient")
def test_known_rule_sets_are_named(tmp_path: Path, only: Callable[..., None]) -> None:
    """Random ports, a gateway that drops what nobody asked for, and one that drops ICMP errors."""
    only("RFC5382-REQ-4", classes=True)
    rule, hook = 'oifname "$NG_OUTSIDE" masquerade random,fully-random', "type nat hook postrouting priority srcnat - 1"
    random = audited(with_rules(tmp_path, "random-nat", rule, hook=hook), tmp_path).record
    assert random.classes["udp"].ports == random.classes["tcp"].ports == "random"
    only("RFC5382-REQ-4")
    closed = with_rules(tmp_path, "silent-nat", "drop", hook="type filter hook input priority filter")
    silent = verdicts(audited(closed, tmp_path))
    assert silent["RFC5382-REQ-4", "tcp"] == "meets"
    only("RFC5508-REQ-4", "RFC4787-REQ-12", "RFC4787-REQ-12a")
    deaf = verdicts(audited(with_rules(tmp_path, "deaf-nat", "ip protocol icmp ct state related drop"), tmp_path))
    assert deaf["RFC5508-REQ-4", "udp"] == "fails"
    # It drops errors of any source.
    assert deaf["RFC4787-REQ-12a", "udp"] == "not seen"
    assert deaf["RFC4787-REQ-12", "udp"] == "meets"


@pytest.mark.soak
@pytest.mark.parametrize("name", ["pasta-nat44", "slirp4netns-nat44"])
def test_half_closed_sockets_of_a_user_space_nat_do_not_keep_its_lab(name: str, tmp_path: Path) -> None:
    assert verdicts(audited(name, tmp_path))["RFC5382-REQ-8", "tcp"] == "fails"
    assert not [one for one in namespaces.names() if one.startswith("ng-audit")]


def test_nat64_is_audited_in_both_families(tmp_path: Path) -> None:
    done = audited("tayga-iptables-nat64", tmp_path)
    found = verdicts(done)
    assert done.record.classes["udp"].ports == "overloading"
    assert found["RFC5508-REQ-4", "udp"] == found["RFC7915-4.2-MTU", "udp"] == found["RFC4787-REQ-14", "udp"] == "meets"
    # The inside uses IPv6, whose packets have no identification.
    assert found["RFC7857-10", "udp"] == "not applicable"
    # tayga.conf(5): "udp-cksum-mode drop" is the default.
    assert found["RFC6146-3.4-checksum", "udp"] == "fails"


@pytest.mark.usefixtures("impatient")
def test_linux_sends_invalid_segments_untranslated_unless_a_rule_drops_them(
    tmp_path: Path, only: Callable[..., None]
) -> None:
    only(*{one.key for one in requirements() if one.rfc == 1918})
    loose = "/proc/sys/net/netfilter/nf_conntrack_tcp_loose"
    picky = variant(tmp_path, "picky-nat", f"[verbs]\nstart = 'echo 0 > {loose}'\n")
    invalid = {"SYN-ACK", "FIN", "RST", "window", "RST-window"}
    leaks: dict[str | Path, set[str]] = {
        "nftables-nat44": invalid,
        picky: {*invalid, "mid-stream", "ACK"},
        "nftables-strict-nat44": set(),
    }
    for gateway, names in leaks.items():
        found = verdicts(audited(gateway, tmp_path))
        assert {key.removeprefix("RFC1918-3-") for (key, _), verdict in found.items() if verdict == "fails"} == names
        assert set(found.values()) <= {"meets", "fails"}


@pytest.mark.usefixtures("impatient")
def test_a_gateway_that_answers_a_syn_itself_is_named(tmp_path: Path, only: Callable[..., None]) -> None:
    only("RFC5382-REQ-2")
    proxy = "meta l4proto tcp ct state { invalid, untracked } synproxy mss 1460 wscale 7 timestamp sack-perm"
    track = "table ip raw { chain raw { type filter hook prerouting priority raw; tcp flags syn notrack; }; }"
    proxied = with_rules(tmp_path, "proxy-nat", proxy)
    proxied.write_text(proxied.read_text().replace("table ip more {", f"{track}\ntable ip more {{", 1))
    refusing = with_rules(tmp_path, "refusing-nat", "tcp flags syn reject with tcp reset")
    expected = {proxied: "the gateway itself answered with SYN and ACK", refusing: "a reset came back"}
    for gateway, said in expected.items():
        (found,) = audited(gateway, tmp_path).record.requirements
        assert (found.verdict, said in found.measured) == ("not seen", True), found.measured


@pytest.mark.slow("time-outs of five seconds, which must pass; the wait ends by itself")
def test_time_outs_that_were_set_are_measured_without_the_long_wait_that_is_allowed(tmp_path: Path) -> None:
    done = audited("nftables-nat44", tmp_path, timeouts=5, long=True, wait=None)
    assert done.record.wait_seconds == LONG_WAIT_SECONDS
    found = verdicts(done)
    assert found["RFC5382-REQ-5-established", "tcp"] == found["RFC4787-REQ-5", "udp"] == "not seen"
    assert done.record.seconds < 120.0
    refreshed = {kind.name for kind in TIMERS if kind.refresh is not None}
    for name, (alive, dead) in done.record.timeouts.items():
        if name in refreshed:
            continue
        assert alive is not None
        assert dead is not None
        # Linux counts in jiffies; a host that stands still makes a mapping seem to live longer, never shorter.
        assert alive < 5.5
        assert dead > 4.9


def test_a_gateway_on_a_wire_is_audited_with_the_addresses_that_were_named(tmp_path: Path) -> None:
    with external_nat("wire-audit", "nftables-nat44", 30) as (_, ports):
        alone = audited("nftables-nat44", tmp_path, **ports)
        named = {"source_addresses": "10.0.0.2-10.0.0.3", "destination_addresses": "198.19.0.2-198.19.0.3"}
        found = audited("nftables-nat44", tmp_path, **ports, **named)
    (reason,) = {
        one.measured for one in alone.record.requirements if (one.key, one.transport) == ("RFC4787-REQ-9", "udp")
    }
    assert "needs 2 addresses on the initiator's side, the audit has 1; give more with --source-addresses" in reason
    assert found.record.classes["udp"].mapping == "address and port-dependent"
    assert found.record.device is None


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[FarMachine]:
    with far_machine("auditfar", tmp_path / "far") as machine:
        yield machine


@TIMEOUT
@pytest.mark.skipif(absent(SSHD), reason="openssh-server is not installed: make test installs it")
@pytest.mark.slow("takes another machine over ssh, which another test may keep for minutes")
@pytest.mark.usefixtures("impatient")
def test_a_gateway_on_another_machine_is_audited_with_several_addresses(
    tmp_path: Path, only: Callable[..., None], machine: FarMachine
) -> None:
    only("RFC4787-REQ-9", "RFC4787-REQ-12a", "RFC4787-REQ-13", classes=True)
    with unchanged(machine):
        done = audited("nftables-nat44", tmp_path, **machine.chosen, lab_name="sshlab")
    assert done.record.classes["udp"].ports == "overloading"
    assert done.record.device is not None
    # Two inside hosts, two outside hosts, and another MTU of the gateway's interface over there.
    assert [one.verdict for one in done.record.requirements] == ["fails", "meets", "meets"]


@pytest.mark.usefixtures("impatient")
def test_a_gateway_that_forwards_nothing_is_not_seen_and_the_exit_status_is_that_of_the_level(
    tmp_path: Path, only: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    # tests/unit/test_audit_requirements.py looks at all requirements and classes.
    only("RFC4787-REQ-1", "RFC5382-REQ-1", "RFC5508-REQ-1")
    closed = audited(with_rules(tmp_path, "closed-nat", "drop"), tmp_path)
    assert set(verdicts(closed).values()) == {"not seen"}
    assert closed.exit_status == 5
    only("RFC5382-REQ-4")
    asked = [
        "audit",
        "--gateway",
        "nftables-nat44",
        "--wait",
        "0",
        "--mappings",
        "512",
        "--lab-name",
        "audit",
        "--json",
    ]
    assert run([*asked, "--results", str(tmp_path), "--fail-on", "must"]) == 12
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "natgauge-audit-1"
    assert {"rfc", "requirement", "level", "transport", "verdict", "measured", "evidence"} <= set(
        document["requirements"][0]
    )
