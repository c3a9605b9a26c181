# SPDX-License-Identifier: Apache-2.0
"""Settings changed on a real kernel: queues of a veth of our own, and nothing of the machine's own interfaces."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from natgauge.errors import HostError
from natgauge.host import tuner
from natgauge.host.knobs import IrqAffinity, Queues, TunedMachine

#: It is one of the machine's own interfaces, which tests of labs count.
with_a_port = pytest.mark.alone
PORT = "ng-tune-a"
KILLED = """
import os, signal, sys
from pathlib import Path
from natgauge.host import tuner
from natgauge.host.knobs import TunedMachine
from natgauge.host.knobs import Queues

set_port = TunedMachine.set_port
def killed(self, *arguments):
    set_port(self, *arguments)
    os.kill(os.getpid(), signal.SIGKILL)
TunedMachine.set_port = killed
tuner.KNOBS = (Queues(),)
tuner.tune([sys.argv[1]], path=Path(sys.argv[2]))
"""


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A veth with as many queues as there may be cores in use, one of each kind in use."""
    monkeypatch.setattr(tuner, "KNOBS", (Queues(),))
    made = ["ip", "link", "add", PORT, "numrxqueues", "2", "numtxqueues", "2", "type", "veth", "peer", "ng-tune-b"]
    subprocess.run([*made, "numrxqueues", "2", "numtxqueues", "2"], check=True)
    try:
        subprocess.run(["ethtool", "-L", PORT, "rx", "1", "tx", "1"], check=True)
        yield PORT
    finally:
        subprocess.run(["ip", "link", "delete", PORT], check=True)


@with_a_port
def test_queues_of_a_port_are_set_and_put_back(port: str, tmp_path: Path) -> None:
    path = tmp_path / "run" / "found.json"
    knob, machine = Queues(), TunedMachine()
    if len(machine.cpus()) < 2:
        pytest.skip("one core needs one queue")
    (step,) = tuner.tune([port], path=path)
    assert (step.done, step.text) == ("set", "rx 1 tx 1 -> rx 2 tx 2")
    assert knob.read(machine, port) == "rx 2 tx 2"
    assert tuner.tune([port], path=path) == []
    assert [one.done for one in tuner.restore(path=path)] == ["restored"]
    assert knob.read(machine, port) == "rx 1 tx 1"


@with_a_port
def test_a_tuning_that_was_killed_is_put_back(port: str, tmp_path: Path) -> None:
    path = tmp_path / "run" / "found.json"
    knob, machine = Queues(), TunedMachine()
    if len(machine.cpus()) < 2:
        pytest.skip("one core needs one queue")
    done = subprocess.run([sys.executable, "-c", KILLED, port, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert knob.read(machine, port) == "rx 2 tx 2"
    assert [one.done for one in tuner.restore(path=path)] == ["restored"]
    assert knob.read(machine, port) == "rx 1 tx 1"


def test_a_real_interrupt_is_read_and_written() -> None:
    """With the value that it has."""
    knob, machine = IrqAffinity(), TunedMachine()
    numbers = sorted(int(path.name) for path in Path("/proc/irq").glob("[0-9]*"))
    for number in numbers:
        key = f"x irq {number}"
        value = knob.read(machine, key)
        assert value
        try:
            knob.put(machine, key, value)
        except HostError:
            # A driver manages it.
            continue
        assert knob.read(machine, key) == value
        return
    pytest.skip("no interrupt can be moved here")
