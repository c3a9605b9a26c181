# SPDX-License-Identifier: Apache-2.0
"""Resets by a command of the user, and failovers: silences of known length, and connections that survive or do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.labs.last_runs import playable_of

import natgauge
from natgauge.procedures.reset import ResetKind

IN_DEVICE = "ip netns exec ng-$NG_NAME sh"
FORWARDING = "/proc/sys/net/ipv4/ip_forward"


def reset(gateway: str, folder: Path, kind: ResetKind, command: str) -> natgauge.Result:
    given: dict[str, Any] = {
        "connections": 1000,
        "connection_rate": 6000.0,
        "throughput_rate": 10_000.0,
        "trial_seconds": 2.0,
        "before_seconds": 0.5,
        "repeat": 1,
        # As many as a busy host needs.
        "invalid_repeats": 100,
        "placement": "shared",
    }
    return natgauge.measure(
        "reset", gateway, reset_kind=kind, reset_command=command, results=folder, lab_name="failover", **given
    )


def test_a_command_that_sleeps_300_ms_is_300_ms_of_silence(tmp_path: Path) -> None:
    command = f'{IN_DEVICE} -c "echo 0 > {FORWARDING}; sleep 0.3; echo 1 > {FORWARDING}"'
    result = reset("linux-ipv4", tmp_path, "system", command)
    # No longer than the command, but for a frame of each direction that is late.
    assert 300 <= result.median <= result.figures["restart_ms"].median + 50
    assert any("operating system" in note.text for note in result.notes)


@pytest.mark.parametrize(
    "gateway",
    [pytest.param("nftables-pair-nat44", marks=pytest.mark.soak), *playable_of("conntrackd-pair-nat44")],
)
def test_downloads_survive_a_failover_where_the_connections_are_synchronised(gateway: str, tmp_path: Path) -> None:
    result = reset(gateway, tmp_path, "failover", f"{IN_DEVICE} $NG_WORK/fail-over")
    surviving = result.figures["surviving_percent"].median
    assert surviving < 2 if gateway == "nftables-pair-nat44" else surviving > 98
