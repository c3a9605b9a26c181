# SPDX-License-Identifier: Apache-2.0
"""`natgauge probe`: obstacles of a port, each with what removes it; the wire lab refuses the same ones."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.made_machine import Made
from tests.unit.made_ports import FULL, port_state

from natgauge.cli import run
from natgauge.errors import HostError, UsageError
from natgauge.host import capabilities
from natgauge.host.cpus import as_if
from natgauge.labs.common import locks
from natgauge.labs.wire import xdp
from natgauge.labs.wire.drivers import driver_facts
from natgauge.labs.wire.media import Media
from natgauge.labs.wire.port_state import PortFinding, findings, refuse
from natgauge.tester import port_probe
from natgauge.tester.port_probe import probe
from natgauge.trials import StreamCounts


def driver(name: str) -> Media:
    return Media(driver=name)


def obstacles(**changed: Any) -> list[PortFinding]:
    sizes = changed.pop("frame_sizes", (64, 1518))
    cpus = changed.pop("sender_cpus", (0,))
    found = findings(port_state(**changed), frame_sizes=sizes, sender_cpus=cpus)
    return [finding for finding in found if finding.state == "obstacle"]


def test_an_ordinary_port_has_no_obstacle() -> None:
    assert obstacles() == []


@pytest.mark.parametrize(
    ("changed", "word", "what", "mend"),
    [
        ({"is_up": False}, "link", "is down", "ip link set eth1 up"),
        ({"has_carrier": False}, "link", "has no carrier; see to the cable", None),
        ({"has_default_route": True}, "default route", "would cut the machine off", None),
        ({"addresses": ("192.0.2.1",)}, "addresses", "carries IP address 192.0.2.1", "ip addr flush dev eth1"),
        ({"bond": "bond0"}, "bond", "belongs to bond0", "ip link set eth1 nomaster"),
        (
            # Of four queues, two are the program's.
            {"program": 7, "transmit_queues": 4, "most_queues": 4, "media": driver("virtio_net")},
            "XDP",
            r"has an XDP program of another process \(number 7\)",
            "ip link set eth1 xdp off",
        ),
        ({"features": xdp.Features(0), "media": driver("e1000e")}, "XDP", r"has no XDP \(e1000e\)", None),
        ({"features": FULL, "media": driver("nfp")}, "XDP", r"takes no redirected frames \(nfp\)", None),
        ({"mtu": 9000, "media": driver("ixgbe")}, "MTU", "XDP programs up to 3050 only", "ip link set eth1 mtu 1500"),
        ({"frame_sizes": (9000,)}, "MTU", "frames of 9000 octets need 8982", "ip link set eth1 mtu 8982"),
        ({"frame_sizes": (1522,), "media": driver("igc")}, "MTU", "with XDP its driver has 1500 at most", None),
        (
            {"sender_cpus": (1, 5), "media": driver("i40e")},
            "queues",
            "core 5 cannot send: it has no transmit queue, the driver has 4",
            "ethtool -L eth1 combined 6",
        ),
    ],
)  # fmt: skip
def test_each_obstacle_is_named_with_what_removes_it(
    changed: dict[str, Any], word: str, what: str, mend: str | None
) -> None:
    (found,) = obstacles(**changed)
    assert found.word == word
    with pytest.raises((HostError, UsageError), match=f"^interface eth1: .*{what}") as refused:
        refuse(port_state(), [found])
    assert "\n" not in str(refused.value)
    assert (found.mend is None) == (mend is None)
    assert (mend or "") in str(refused.value)


@pytest.mark.parametrize(
    ("queues", "most", "mend"),
    [
        (2, 4, None),
        (2, 2, None),
        (4, 6, None),
        (4, 4, "ethtool -L eth1 combined 2"),
        (3, 4, "ethtool -L eth1 combined 2"),
    ],
)
def test_a_virtio_card_with_more_queues_than_cores_needs_further_ones(queues: int, most: int, mend: str | None) -> None:
    with as_if(2):
        found = obstacles(transmit_queues=queues, most_queues=most, media=driver("virtio_net"))
        others = obstacles(transmit_queues=queues, most_queues=most, media=driver("ice"))
    assert [finding.mend for finding in found] == ([] if mend is None else [mend])
    assert others == []


def test_a_sender_whose_driver_shares_its_queues_needs_none_of_its_own() -> None:
    assert obstacles(sender_cpus=(5,), media=driver("igb")) == []


def test_allowed_addresses_are_no_obstacle() -> None:
    port = port_state(addresses=("192.0.2.1",))
    assert not [finding for finding in findings(port, allow_addresses=True) if finding.state == "obstacle"]


def test_a_driver_that_gains_redirects_with_a_program_is_not_doubted_where_it_is_known() -> None:
    def state(name: str) -> str:
        port = port_state(features=xdp.Features.BASIC, media=driver(name))
        return next(finding.state for finding in findings(port) if finding.word == "XDP")

    assert (state("ice"), state("unheard-of")) == ("ok", "warning")


def test_the_table_of_drivers_knows_what_it_does_not_take() -> None:
    for name in ("e1000e", "tg3", "r8169", "nfp", "ixgbevf"):
        known = driver_facts(name)
        assert known is not None
        assert not known.takes
    assert driver_facts("unheard-of") is None


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    """A machine with the port eth1, whose settings are not the best ones."""
    monkeypatch.setattr(port_probe, "read_port", port_state)
    monkeypatch.setattr(capabilities, "require", lambda *_: None)
    monkeypatch.setattr(xdp, "refusal", lambda _: None)
    monkeypatch.setattr(locks, "RUN", tmp_path / "run")
    one = Made(tmp_path)
    one.answer_here(monkeypatch)
    return one


def test_settings_that_tuning_would_change_are_warnings(made: Made) -> None:
    (report,) = probe(["eth1"], machine=made.machine)
    tuned = [finding for finding in report.findings if finding.word == "tuning"]
    assert report.usable
    assert {finding.state for finding in tuned} == {"warning"}
    assert {finding.mend for finding in tuned} == {"natgauge host tune --ports eth1"}
    assert [finding.what.split()[0] for finding in tuned] == [
        "queues", "rss", "coalescing", "pause", "offloads", "eee", "irq-affinity",
    ]  # fmt: skip
    (offloads,) = (finding.what for finding in tuned if finding.what.startswith("offloads"))
    assert "rxvlan is on, better: off" in offloads


def test_a_card_on_another_node_and_an_iommu_are_warnings(made: Made) -> None:
    for name, text in {
        "sys/class/net/eth1/device/numa_node": "1",
        "sys/devices/system/node/node1/cpulist": "1000-1001",
        "sys/class/net/eth1/device/iommu_group/type": "DMA-FQ",
    }.items():
        path = made.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (report,) = probe(["eth1"], machine=made.machine)
    what = {finding.word: finding.what for finding in report.findings if finding.state == "warning"}
    assert what["NUMA"].startswith("the card is on node 1, and core ")
    assert "DMA-FQ" in what["IOMMU"]


def test_a_driver_that_refuses_programs_is_an_obstacle_with_the_kernels_reason(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = "virtio_net: Can't set XDP while host is implementing GRO_HW/CSUM, disable GRO_HW/CSUM first"
    monkeypatch.setattr(xdp, "refusal", lambda _: reason)
    monkeypatch.setattr(port_probe, "read_port", lambda name: port_state(name, media=driver("virtio_net")))
    monkeypatch.setattr(port_probe, "_of_cable", lambda *_: pytest.fail("a frame was sent"))
    for report in probe(["eth0", "eth1"], machine=made.machine):
        (found,) = (finding for finding in report.findings if finding.state == "obstacle")
        assert (found.word, report.usable) == ("XDP", False)
        assert reason in found.what
        assert (found.mend or "").startswith("start the guest with ctrl_guest_offloads=on")


def test_nothing_is_attached_where_nothing_is_sent(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xdp, "refusal", lambda _: pytest.fail("a program was attached"))
    probe(["eth1"], machine=made.machine, sends_frames=False)
    monkeypatch.setattr(port_probe, "read_port", lambda name: port_state(name, is_up=False))
    probe(["eth1"], machine=made.machine)


def test_one_port_named_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="probe: interface eth1 is named twice"):
        probe(["eth1", "eth1"])


def test_no_frame_is_sent_between_ports_with_an_obstacle(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port_probe, "read_port", lambda name: port_state(name, is_up=name != "eth1"))
    monkeypatch.setattr(port_probe, "_of_cable", lambda *_: pytest.fail("a frame was sent"))
    reports = probe(["eth0", "eth1"], machine=made.machine)
    assert [report.usable for report in reports] == [True, False]


@pytest.mark.parametrize(
    ("there", "back", "state", "says"),
    [
        (1000, 1000, "ok", "all frames arrived: 1000 of 1000 from eth0 to eth1, 1000 of 1000 from eth1 to eth0"),
        (1000, 999, "obstacle", "frames were lost on the cable: 1000 of 1000 from eth0 to eth1, 999 of 1000 from eth1"),
        (
            (384, 384),
            (989, 989),
            "warning",
            "384 of 384 from eth0 to eth1, 989 of 989 from eth1 to eth0); the transmit",
        ),
        ((384, 384), (989, 988), "obstacle", "frames were lost on the cable: 384 of 384"),
        (0, 0, "warning", "no frame arrived"),
        (0, None, "warning", "no frame arrived"),
    ],
)
def test_frames_across_the_cable_decide(
    made: Made,
    monkeypatch: pytest.MonkeyPatch,
    *,
    there: int | tuple[int, int],
    back: int | tuple[int, int] | None,
    state: str,
    says: str,
) -> None:
    def counts(frames: int | tuple[int, int] | None) -> StreamCounts | None:
        offered, received = frames if isinstance(frames, tuple) else (1000, frames)
        if received is None:
            return None
        return StreamCounts.model_construct(offered_frames=offered, received_frames=received)

    result = SimpleNamespace(phase2=SimpleNamespace(responder=counts(back)))
    monkeypatch.setattr(port_probe, "run", lambda *_, **__: result)
    monkeypatch.setattr(port_probe, "phase1_of", lambda _: counts(there))
    reports = probe(["eth0", "eth1"], machine=made.machine)
    for report in reports:
        (cable,) = (finding for finding in report.findings if finding.word == "cable")
        assert cable.state == state
        assert says in cable.what
        assert report.usable == (state != "obstacle")


def test_the_command_answers_in_its_first_line_and_by_its_exit_status(
    made: Made, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(port_probe, "TunedMachine", lambda: made.machine)
    assert run(["probe", "eth1"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "eth1 (not known) can carry the tester."
    monkeypatch.setattr(port_probe, "read_port", lambda name: port_state(name, is_up=False, media=driver("ice")))
    assert run(["probe", "eth1", "--json"]) == 3
    (port,) = json.loads(capsys.readouterr().out)["ports"]
    assert {"name", "driver", "usable", "findings"} == set(port)
    assert (port["name"], port["driver"], port["usable"]) == ("eth1", "ice", False)
    assert port["findings"][0]["mend"] == "ip link set eth1 up"
