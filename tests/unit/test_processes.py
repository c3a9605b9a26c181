# SPDX-License-Identifier: Apache-2.0
"""Gateways that are processes: waited for, watched, ended; and VPP's recipes against a stand-in for VPP."""

from __future__ import annotations

import math
import os
import re
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit import far_vpp
from tests.unit.far_system import SHELLS, FarDevice, far_device, installed, lives
from tests.unit.test_far_recipes import ADDRESSES

from natgauge.errors import BrokenError, HostError, UsageError
from natgauge.gateways import gateway as driver
from natgauge.gateways.gateway import Gateway
from natgauge.gateways.limits import DeviceDemand
from natgauge.gateways.processes import Process
from natgauge.gateways.recipe import Recipe, load
from natgauge.inputs.question import DeviceOptions

PLAN = DeviceDemand(connections=100_000, phase1_seconds=50, after_seconds=50, source_addresses=4, remote_endpoints=50)
NAMES = ("vpp-nat44-ed", "vpp-nat64")
ON_ONE_CORE = {**ADDRESSES, "NG_CPUS": "2"}
MINE = """
name = "mine"
title = "A process of mine"
kind = "routing"
initiator_family = "ipv4"
responder_family = "ipv4"
stateful = false
source = "unchanged"

[[process]]
name = "mine"
command = '''{command}'''
stop_seconds = 1

[verbs]
start = 'rm -f "$NG_WORK/ready"'
check = 'cat "$NG_WORK/ready"'
version = "echo 1"
stop = 'rm -f "$NG_WORK/ready"'
"""


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return installed(request.param)


@pytest.fixture
def device(shell: str, tmp_path: Path) -> FarDevice:
    return far_device(tmp_path, "Linux", shell, **ON_ONE_CORE)


@pytest.fixture
def mine(tmp_path: Path) -> Callable[[str], Recipe]:
    """A recipe of one process."""

    def made(command: str) -> Recipe:
        (tmp_path / "mine.toml").write_text(MINE.format(command=command))
        return load(tmp_path / "mine.toml")

    return made


def links(device: FarDevice) -> dict[str, Any]:
    return far_vpp.kept(device.folder / "bin" / "links")


def vpp(device: FarDevice) -> dict[str, Any]:
    """What VPP was told."""
    return far_vpp.kept(device.work / "cli.sock")


def connect(device: FarDevice, count: int) -> None:
    far_vpp.keep(device.work / "cli.sock", {**vpp(device), "sessions": count})


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize(("name", "shell"), lives(dict.fromkeys(NAMES, "Linux")), indirect=["shell"])
def test_a_whole_life_of_vpp(name: str, device: FarDevice) -> None:
    recipe, before = load(name), links(device)
    with Gateway(recipe, device) as gateway:
        gateway.prepare(PLAN)
        gateway.start()
        told = vpp(device)
        assert told["limit"] >= 106_250
        assert told["pool"] == "198.19.0.1"
        assert set(told["nat_interfaces"]) == {"host-em1 in", "host-em2 out"}
        assert f"create host-interface v2 name em1 hw-addr {before['em1']['mac']}" in told["interfaces"][0]
        assert links(device)["em1"] == {"mac": "06:fe:00:00:00:02", "addresses": [], "promisc": "on"}
        assert gateway.count() == 0
        connect(device, 4321)
        assert gateway.count() == 4321
        gateway.empty()
        assert gateway.count() == 0
        assert gateway.version()[0].startswith("vpp v26.10")
        assert gateway.faults() == {"sessions_exceeded": 39999, "handoff_congestion": 17}
        settings = gateway.settings()
        assert settings.knobs["table_size"] >= 106_250
        assert settings.knobs["cores"] == 1
        if name == "vpp-nat44-ed":
            assert (settings.knobs["udp_timeout"], settings.found["udp_timeout"]) == (300, 300), "never lowered"
        first = told["pid"]
        gateway.restart_under_load()
        assert gone(first)
        assert gateway.settings().knobs == settings.knobs
        last = vpp(device)["pid"]
    assert gone(last)
    assert list(device.work.iterdir()) == []
    assert {name: (one["mac"], one["addresses"]) for name, one in links(device).items()} == {
        name: (one["mac"], one["addresses"]) for name, one in before.items()
    }


def with_workers(name: str, workers: str) -> Recipe:
    recipe = load(name)
    return recipe.model_copy(update={"environment": {**recipe.environment, "VPP_WORKERS": workers}})


@pytest.mark.parametrize(
    ("name", "cores", "wanted", "named", "moved"),
    [
        ("vpp-nat44-ed", "2-5", "", [3, 4, 5], []),
        ("vpp-nat64", "2,4", "3", [], ["2", "4", "2"]),
        pytest.param("vpp-nat44-ed", "2", "", [], [], marks=pytest.mark.soak),
        pytest.param("vpp-nat64", "2,4", "", [4], [], marks=pytest.mark.soak),
        pytest.param("vpp-nat44-ed", "2-5", "0", [], [], marks=pytest.mark.soak),
        pytest.param("vpp-nat44-ed", "2,4", "1", [], ["2"], marks=pytest.mark.soak),
    ],
)
def test_vpp_has_a_worker_on_each_core_but_the_first_or_as_many_as_wanted(  # noqa: PLR0917 - a table
    name: str, cores: str, wanted: str, named: list[int], moved: list[str], tmp_path: Path
) -> None:
    device = far_device(tmp_path, "Linux", **{**ADDRESSES, "NG_CPUS": cores})
    workers = len(named or moved)
    with Gateway(with_workers(name, wanted), device) as gateway:
        gateway.prepare(PLAN)
        gateway.start()
        told = vpp(device)
        assert (told["main"], told["workers"], told["cores"]) == (2, workers, named)
        file = device.folder / "bin" / "pinned"
        moves = dict(line.split() for line in file.read_text().splitlines()) if file.exists() else {}
        assert moves == {f"vpp_wk_{number}": core for number, core in enumerate(moved)}
        assert gateway.version()[1:] == ((f"{workers} workers",) if workers else ())
        queues = f" num-rx-queues {workers} num-tx-queues {workers}" if workers > 1 else ""
        assert told["interfaces"][0].endswith(f"tx-size 2048{queues}")
        connect(device, 4321)
        assert gateway.count() == 4321, "the sum of all threads"
        gateway.empty()
        assert gateway.count() == 0
    assert list(device.work.iterdir()) == []


@pytest.mark.parametrize(
    ("cores", "addresses", "share"),
    [
        ("0-2", 3, 2 / 3),
        *(
            pytest.param(*row, marks=pytest.mark.soak)
            for row in (("2,4", 1, 1), ("0-3", 4, 1 / 2), ("0-4", 4000, 1 / 4))
        ),
    ],
)
def test_the_limit_of_vpps_table_is_that_of_all_workers_together(
    cores: str, addresses: int, share: float, tmp_path: Path
) -> None:
    """VPP's own limit is that of each worker, and addresses go to workers in turn."""
    device = far_device(tmp_path, "Linux", **{**ADDRESSES, "NG_CPUS": cores})
    plan = replace(PLAN, source_addresses=addresses)
    with Gateway(load("vpp-nat44-ed"), device) as gateway:
        gateway.prepare(plan)
        gateway.start()
        assert vpp(device)["limit"] == math.ceil(106_250 * share)
        assert 106_250 <= gateway.settings().knobs["table_size"] <= 106_250 + addresses
    with Gateway(load("vpp-nat44-ed"), device, DeviceOptions(table_size=120_000)) as gateway:
        gateway.prepare(plan)
        gateway.start()
        assert vpp(device)["limit"] == 120_000 * share
        assert gateway.settings().knobs["table_size"] == 120_000


def test_vpps_workers_need_an_inside_address_each(tmp_path: Path) -> None:
    device = far_device(tmp_path, "Linux", **{**ADDRESSES, "NG_CPUS": "0-4"})
    gateway = Gateway(load("vpp-nat64"), device)
    gateway.prepare(replace(PLAN, source_addresses=3))
    with pytest.raises(
        BrokenError, match=r"source addresses: 3, but VPP gives each .* 4 workers; use at least 4 source addresses, or"
    ):
        gateway.start()
    gateway.stop()
    assert list(device.work.iterdir()) == []


def test_vpp_has_an_mtu_of_its_own_which_an_audit_sets(tmp_path: Path) -> None:
    """VPP does not look at the kernel's interface, so an audit that narrowed that one saw no ICMP error."""
    device = far_device(tmp_path, "Linux", **ON_ONE_CORE)
    recipe = load("vpp-nat44-ed")
    (snippet,) = recipe.verbs.outside_mtu
    with Gateway(recipe, device) as gateway:
        gateway.prepare(PLAN)
        gateway.start()
        assert device.run(snippet, environment={"NG_VALUE": "1300"}).status == 0
        assert vpp(device)["mtu"] == 1300
        refused = device.run(snippet.replace("host-", ""), environment={"NG_VALUE": "1300"})
        assert (refused.status, "unknown input" in refused.said) == (1, True)


def test_vpps_time_outs_of_other_frames_are_their_own(tmp_path: Path) -> None:
    device = far_device(tmp_path, "Linux", **ON_ONE_CORE)
    recipe = load("vpp-nat44-ed")
    assert "tcp" in recipe.transports
    with Gateway(recipe.carrying("tcp"), device) as gateway:
        gateway.prepare(PLAN)
        gateway.start()
        assert gateway.lingering() == {"fin": 240, "rst": 240}
        assert gateway.settings().knobs["udp_timeout"] == 7440, "never lowered"
        far_vpp.keep(device.work / "cli.sock", {**vpp(device), "sessions": 30, "open": 21})
        assert (gateway.count(), gateway.count_established()) == (30, 21)
        gateway.fit(replace(PLAN, phase1_seconds=500, state="fin"))
        told = {"udp": 300, "tcp-established": 7440, "tcp-transitory": 1130, "icmp": 60}
        assert vpp(device)["timeouts"] == told
        assert gateway.settings().knobs["udp_timeout"] == 1130
    with Gateway(recipe.carrying("icmp"), device) as gateway:
        gateway.prepare(PLAN)
        gateway.start()
        assert vpp(device)["timeouts"]["icmp"] == 230
        assert gateway.settings().found["udp_timeout"] == 60
    with Gateway(recipe, device, DeviceOptions(timeouts=10)) as gateway:
        gateway.prepare(replace(PLAN, phase1_seconds=1, after_seconds=1, as_found=True))
        gateway.start()
        assert set(vpp(device)["timeouts"].values()) == {10}


def test_a_vpp_whose_memory_does_not_suffice_collapses_and_comes_back(tmp_path: Path) -> None:
    device = far_device(tmp_path, "Linux", FAR_CORE="1", **ON_ONE_CORE)
    with Gateway(load("vpp-nat44-ed"), device) as gateway:
        gateway.prepare(PLAN)
        gateway.start()
        connect(device, 5)
        far_vpp.keep(device.work / "cli.sock", {**vpp(device), "limit": 3_000_000})
        deadline = time.monotonic() + 20
        while not (device.work / "vpp.end").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        with pytest.raises(BrokenError) as died:
            gateway.count()
        assert "count failed with exit status" in str(died.value)
        assert re.search(r"vpp was ended by SIGABRT \(core dump: \S*/work/core\.vpp\)", str(died.value))
        assert str(died.value).endswith("; it last said: Out-of-memory, calling os_panic().")
        with pytest.raises(BrokenError) as again:
            gateway.confirm_ready()
        assert str(again.value) == str(died.value)
        (device.work / "core.vpp").unlink()
        gateway.restart()
        assert gateway.count() == 0
    assert list(device.work.iterdir()) == []


def test_a_process_that_dies_while_it_is_waited_for_is_told_at_once(
    device: FarDevice, mine: Callable[[str], Recipe]
) -> None:
    gateway = Gateway(mine("sh -c 'echo no such card >&2; exit 3'"), device)
    (device.folder / "bin" / "sh").symlink_to(shutil.which("sh") or "")
    gateway.prepare(PLAN)
    began = time.monotonic()
    with pytest.raises(BrokenError, match=r"mine ended with exit status 3; it last said: no such card$"):
        gateway.start()
    assert time.monotonic() - began < 5
    gateway.stop()
    assert list(device.work.iterdir()) == []


def test_a_process_is_waited_for_and_killed_when_it_does_not_end(
    device: FarDevice, mine: Callable[[str], Recipe]
) -> None:
    (device.folder / "bin" / "sh").symlink_to(shutil.which("sh") or "")
    recipe = mine("sh -c 'trap \"\" TERM; sleep 0.3; echo up > ready; while :; do sleep 0.2; done'")
    gateway = Gateway(recipe, device)
    gateway.prepare(PLAN)
    gateway.start()
    pid = int((device.work / "mine.pid").read_text())
    assert not gone(pid)
    gateway.confirm_ready()
    began = time.monotonic()
    gateway.stop()
    assert 0.9 < time.monotonic() - began < 6
    assert gone(pid)
    assert list(device.work.iterdir()) == []


def test_a_process_that_was_killed_is_noticed(device: FarDevice, mine: Callable[[str], Recipe]) -> None:
    recipe = mine("sleep 600")
    gateway = Gateway(recipe, device)
    gateway.prepare(PLAN)
    (device.work / "mine.end").write_text("0\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "_READY_SECONDS", 0.3)
        quick = gateway.recipe.process[0].model_copy(update={"ready_seconds": 1})
        gateway.recipe = recipe.model_copy(update={"process": (quick,)})
        with pytest.raises(BrokenError, match="is not ready within 1 s: cat: "):
            gateway.start()
    gateway.stop()
    again = Gateway(gateway.recipe, device)
    again.prepare(PLAN)
    device.run(quick.start)
    time.sleep(0.3)
    (device.work / "ready").write_text("")
    again.confirm_ready()
    os.kill(int((device.work / "mine.pid").read_text()), signal.SIGKILL)
    time.sleep(0.3)
    with pytest.raises(BrokenError, match="mine was ended by SIGKILL; it said nothing"):
        again.confirm_ready()
    device.run(quick.stop)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ("", None),
        ("natgauge-end 0\n|/usr/lib/systemd/systemd-coredump %P\n", "p ended with exit status 0; it said nothing"),
        ("natgauge-end \ncore\nhello\n", "p is gone, and nobody saw how; it last said: hello"),
        (
            "natgauge-end 139\n|/usr/lib/systemd/systemd-coredump %P\na\nb\n",
            "p was ended by SIGSEGV (core dump handed to /usr/lib/systemd/systemd-coredump %P); it last said: b",
        ),
        (
            "natgauge-end 134\ncore.%p\n",
            "p was ended by SIGABRT (no core dump found; pattern core.%p); it said nothing",
        ),
        ("natgauge-end 143\ncore\n", "p was ended by SIGTERM; it said nothing"),
        ("natgauge-end 255\ncore\n", "p was ended by signal 127; it said nothing"),
    ],
)
def test_an_end_is_told_in_words(told: str, words: str | None) -> None:
    assert Process(name="p", command="p").ended(told) == words


def test_a_missing_vpp_is_refused_with_what_mends_it(tmp_path: Path) -> None:
    device = far_device(tmp_path, "Linux", **ON_ONE_CORE)
    (tmp_path / "bin" / "vppctl").unlink()
    with pytest.raises(HostError, match=r'"vppctl" is missing on device gateway; install VPP \(fd.io\), which Debian'):
        Gateway(load("vpp-nat64"), device).prepare(PLAN)


def test_a_table_size_that_was_asked_for_is_rounded_to_buckets_and_told(tmp_path: Path) -> None:
    device = far_device(tmp_path, "Linux", **ON_ONE_CORE)
    with Gateway(load("vpp-nat64"), device, DeviceOptions(table_size=100_003)) as gateway:
        gateway.prepare(PLAN)
        gateway.start()
        assert gateway.settings().knobs["table_size"] == vpp(device)["limit"] == 100_010


def test_a_knob_that_prints_nothing_is_told_by_name(tmp_path: Path) -> None:
    device = far_device(tmp_path, "Linux", **ON_ONE_CORE)
    recipe = load("vpp-nat44-ed")
    silent = recipe.knobs.table_size
    assert silent
    knobs = recipe.knobs.model_copy(update={"table_size": silent.model_copy(update={"read": "true"})})
    gateway = Gateway(recipe.model_copy(update={"knobs": knobs}), device)
    gateway.prepare(PLAN)
    with pytest.raises(BrokenError, match="read of table_size printed '', which is no whole number"):
        gateway.start()
    gateway.stop()


def test_a_process_without_a_command_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(MINE.format(command=""))
    with pytest.raises(UsageError, match=r"process\.0\.command: '': string should have at least 1 character"):
        load(tmp_path / "mine.toml")
