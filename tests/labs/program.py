# SPDX-License-Identifier: Apache-2.0
"""What tests and tools of labs begin with: the command line as a process of its own, a campaign that is soon over."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

import click

from natgauge.host.machine import usable_cpus


def command_line(arguments: Sequence[str]) -> list[str]:
    """The command that runs natgauge of this environment, installed or not."""
    program = "import sys; from natgauge.cli import main; sys.argv[0] = 'natgauge'; main()"
    return [sys.executable, "-c", program, *arguments]


def begins(name: str, cores: int = 1) -> bool:
    """Whether a tool of these folders can work here; says why not. Ended from outside, it will undo what it made."""
    if os.geteuid() != 0 or len(usable_cpus()) < cores:
        own = ", and the device a core of its own" if cores > 1 else ""
        click.echo(f"{name}: network namespaces and BPF need root{own}", err=True)
        return False
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    return True


def own(name: str) -> str:
    """The name of a lab that no other worker of pytest-xdist uses at the same time."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    return f"{name}-{worker}" if worker else name


def small_plan(name: str, lab: str, devices: Sequence[str], connections: int, *, throughput: bool = True) -> str:
    """A plan of two rough repetitions in `shared` placement."""
    named = ", ".join(f'"{device}"' for device in devices)
    plan = f"""
name = "{name}"
gateways = [{named}]
profile = "quick"
repetitions = 2

[lab]
lab_name = "{lab}"
placement = "shared"

[traffic]
connections = {connections:_}

[[measure]]
metric = "connection-rate"
error = "50%"
"""
    if not throughput:
        return plan
    return f"""{plan}
[[measure]]
metric = "throughput"
error = "50%"
trial_seconds = 0.2
"""
