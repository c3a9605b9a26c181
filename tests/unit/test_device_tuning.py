# SPDX-License-Identifier: Apache-2.0
"""Queues, flow hash and governor of a machine reached over ssh: read by one script, set and restored by shell text."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.unit import fake_ethtool
from tests.unit.golden import Golden

from natgauge.host.tuning import recorded

PORTS = ("eth1", "eth2")
#: A card with four of eight queues that hashes addresses alone, and one whose driver has nothing to choose.
CARDS: dict[str, Any] = {
    "eth1": {"most": {"combined": 8}, "queues": {"combined": 4}, "hash": {"udp4": "sd", "udp6": "sdfn"}},
    "eth2": {},
}


class Machine:
    """A machine with a stand-in for ethtool and for the folder of its processors."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "ethtool.json").write_text(json.dumps(CARDS))
        shutil.copy(fake_ethtool.__file__, folder / "fake.py")
        (folder / "ethtool").write_text(f'#!/bin/sh\n{sys.executable} {folder}/fake.py "$@" && echo\n')
        (folder / "ip").write_text("#!/bin/sh\n")
        for program in ("ethtool", "ip"):
            (folder / program).chmod(0o755)
        for cpu, governor in enumerate(("powersave", "performance")):
            place = folder / f"cpu{cpu}" / "cpufreq"
            place.mkdir(parents=True)
            (place / "scaling_governor").write_text(f"{governor}\n")
            (place / "scaling_available_governors").write_text("performance powersave\n")
        (folder / "online").write_text("0-1\n")

    def run(self, script: str, *options: str) -> str:
        """Run shell text there; the lab runs what changes something with `-eu`."""
        text = script.replace("/sys/devices/system/cpu", str(self.folder))
        path = f"{self.folder}:{os.environ['PATH']}"
        done = subprocess.run(
            ["/bin/sh", *options], input=text, env={"PATH": path}, capture_output=True, text=True, check=True
        )
        return done.stdout.replace(str(self.folder), "/sys/devices/system/cpu")

    def now(self) -> str:
        return self.run(recorded.script(PORTS))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


FOUND = {
    "device_governor": "performance, powersave",
    "device_queues": ["combined 4", None],
    "device_flow_hash": ["sd, sdfn", None],
}


def test_the_settings_are_read_by_one_script(machine: Machine) -> None:
    assert recorded.values(machine.now(), PORTS) == FOUND


def test_a_machine_without_such_settings_reports_none() -> None:
    assert recorded.values("", PORTS) == {
        "device_governor": None,
        "device_queues": [None, None],
        "device_flow_hash": [None, None],
    }
    assert list(recorded.changes("", PORTS)) == []


def test_they_are_set_for_measuring_and_restored(machine: Machine, golden: Golden) -> None:
    changes = list(recorded.changes(machine.now(), PORTS))
    golden([what for what, _, _ in changes])
    for _, sets, _ in changes:
        machine.run(sets, "-eu")
    assert recorded.values(machine.now(), PORTS) == {
        "device_governor": "performance",
        "device_queues": ["combined 2", None],
        "device_flow_hash": ["sdfn, sdfn", None],
    }
    assert list(recorded.changes(machine.now(), PORTS)) == []
    for _, _, undoes in reversed(changes):
        machine.run(undoes, "-eu")
    assert recorded.values(machine.now(), PORTS) == FOUND


def test_what_is_gone_is_not_restored(machine: Machine) -> None:
    """A core was taken away, and an interface was removed."""
    changes = list(recorded.changes(machine.now(), PORTS))
    shutil.rmtree(machine.folder / "cpu0")
    (machine.folder / "ip").write_text("#!/bin/sh\nexit 1\n")
    (machine.folder / "ethtool").write_text("#!/bin/sh\nexit 9\n")
    for _, _, undoes in changes:
        machine.run(undoes, "-eu")
    assert not (machine.folder / "cpu0").exists()
