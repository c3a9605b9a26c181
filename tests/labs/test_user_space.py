# SPDX-License-Identifier: Apache-2.0
"""What a gateway is, is found on the machine: a NAT in user space, of which no knob of its recipe tells."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.labs.program import own
from tests.labs.user_space.recipes import PROGRAM, Start, user_space_nat

from natgauge.errors import UsageError
from natgauge.host import machine
from natgauge.measurements.measure import parameters_of
from natgauge.trial.bench import Bench
from natgauge.trial.controls import Unread
from natgauge.trial.question import ask

NAME = own("e2e-user-space")
CHOSEN = {"lab_name": NAME, "placement": "shared", "connections": 200}


@contextmanager
def neighbour(folder: Path, interface: str) -> Iterator[None]:
    """The same NAT, beside the lab and joined to nothing; it writes a file when it has its interface."""
    command = ["unshare", "-n", "python3", str(PROGRAM), interface, "192.0.2.1"]
    with subprocess.Popen(command, cwd=folder) as process:
        try:
            until = time.monotonic() + 20
            while not (folder / "count").exists():
                assert process.poll() is None
                assert time.monotonic() < until
                time.sleep(0.01)
            yield
        finally:
            process.kill()


@pytest.mark.parametrize("start", ["process", "daemon", "elsewhere"])
def test_a_process_that_handles_frames_is_found_and_works_on_the_devices_core(tmp_path: Path, start: Start) -> None:
    recipe = user_space_nat(tmp_path, f"py-{start}", start)
    bench = Bench(ask("connection-rate", recipe, CHOSEN).cell)
    assert bench.own_processes == (start == "process")
    with bench:
        ready = bench.ready(bench.plan("connection-rate", {}), Unread())
        assert bench.processes == ("python3",)
        assert ready.planned.settings.own_processes
        assert parameters_of(bench, ready, machine.facts()).get("own_processes") is True
        pid = int(bench.lab.devices[0].run('cat "$NG_WORK/nat.pid"').stdout)
        allowed = Path(f"/proc/{pid}/status").read_text().split("Cpus_allowed_list:")[1].split()[0]
        assert allowed == bench.lab.devices[0].environment["NG_CPUS"]
        assert "works in processes of its own" in bench.reasons_not_timed()[0]


def test_costs_of_a_gateway_that_turns_out_to_be_a_process_are_refused(tmp_path: Path) -> None:
    recipe = user_space_nat(tmp_path, "py-daemon", "daemon")
    bench = Bench(ask("cost", recipe, CHOSEN).cell)
    planned = bench.plan("cost", {})
    with bench, pytest.raises(UsageError, match="cost: py-daemon: works in processes of its own"):
        bench.ready(planned, Unread())


def test_the_kernel_alone_has_no_process(tmp_path: Path) -> None:
    """A process of others holds a TUN interface with the name of the device's, in a namespace of its own."""
    with neighbour(tmp_path, "inside"):
        assert_no_process_is_found()


def assert_no_process_is_found() -> None:
    bench = Bench(ask("connection-rate", "nftables-nat44", CHOSEN).cell)
    with bench:
        ready = bench.ready(bench.plan("connection-rate", {}), Unread())
        assert (bench.processes, ready.planned.settings.own_processes) == ((), False)
