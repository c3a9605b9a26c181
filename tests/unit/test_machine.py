# SPDX-License-Identifier: Apache-2.0
"""What is told of a machine: what moves figures, and nothing that only names it."""

from __future__ import annotations

import platform

from natgauge.host import machine

COMMAND_LINE = (
    "BOOT_IMAGE=/vmlinuz-6.18 root=UUID=0b5c-11 ro isolcpus=managed_irq,1-3 nohz-full=1-3 rcu_nocbs=1-3 "
    "mitigations=off spectre_v2=off intel_idle.max_cstate=1 systemd.hostname=secret ip=10.0.0.7 luks.uuid=99 quiet "
    '"init_on_alloc=0" dyndbg="file x isolcpus=9" -- token=secret mitigations=auto'
)


def test_of_the_command_line_only_what_moves_figures_is_told() -> None:
    assert machine.moving_parameters(COMMAND_LINE) == [
        "isolcpus=managed_irq,1-3",
        "nohz-full=1-3",
        "rcu_nocbs=1-3",
        "mitigations=off",
        "spectre_v2=off",
        "intel_idle.max_cstate=1",
        '"init_on_alloc=0"',
    ]


def test_the_hosts_name_is_told_only_when_asked_for() -> None:
    assert "host" not in machine.facts()
    assert machine.facts(host_name=True)["host"] == platform.node()
    assert "command_line" not in machine.facts()
