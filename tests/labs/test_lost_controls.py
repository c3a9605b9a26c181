# SPDX-License-Identifier: Apache-2.0
"""The `ssh` lab against a real sshd whose connection is cut during `count`: the measured rate is as without the cut."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.labs.far import SSHD, FarMachine, far_machine

import natgauge
from natgauge.bench.watch import Silent
from natgauge.campaigns.store import TRIAL_SCHEMA, read_lines
from natgauge.procedures.kit.events import Event
from natgauge.procedures.kit.results import MeasurementResult
from natgauge.trials import Progress

pytestmark = [
    pytest.mark.slow,
    pytest.mark.alone,
    pytest.mark.skipif(not Path(SSHD).exists(), reason="openssh-server is not installed: make test installs it"),
]
SEED = 20261123
#: A bucket of tokens decides the rate, so that it is the same however busy the machine is.
LIMIT, BUCKET, CONNECTIONS = 5_000, 500, 2_000
ASKED: dict[str, Any] = {
    "connections": CONNECTIONS, "repeat": 1, "error": "5%", "seed": 5, "lab_name": "sshlab", "grace_seconds": 0.1,
    "most_seconds": 60.0,
}  # fmt: skip
#: `sshd` runs the shell that runs the count; without it the connection is gone in the middle of the command.
RECIPE = f"""
name = "policed"
title = "NAT44 that opens {LIMIT} connections/s, and whose count cuts its own ssh connection where a file says so"
kind = "nat44"
initiator_family = "ipv4"
responder_family = "ipv4"
stateful = true
source = "translated"
extends = ["linux-ipv4", "nftables-masquerade"]

[environment]
NFT_FAMILY = "ip"
CUT = "{{cut}}"

[verbs]
start = '''
nft -f - <<RULES
table ip policed {{{{
    chain leaving {{{{
        type filter hook postrouting priority srcnat + 100;
        oifname "$NG_OUTSIDE" limit rate over {LIMIT}/second burst {BUCKET} packets drop
    }}}}
}}}}
RULES
'''
empty = "conntrack -F"
count = '''
if rm "$CUT" 2> /dev/null; then
    read -r _ _ _ sshd _ < "/proc/$PPID/stat"
    kill -s KILL "$sshd"
    sleep 20
fi
cat /proc/sys/net/netfilter/nf_conntrack_count
'''
stop = '''
conntrack -F
nft delete table ip policed
'''
"""


@pytest.fixture
def far(tmp_path: Path) -> Iterator[FarMachine]:
    """A machine on which nothing may be left, whatever the test did."""
    with far_machine("sshcut", tmp_path / "keys") as machine:
        yield machine
        assert machine.left() == []


@dataclass(slots=True)
class Cutting(Silent):
    """Has the count after one trial cut the connection.

    Attributes:
        file: says so over there, where the file system is the same.
        trial: its number, from 1; 0 = none.
    """

    file: Path
    trial: int
    now: int = field(default=0)

    def event(self, event: Event) -> None:
        """Which trial it is."""
        self.now = event.trial

    def running(self, _progress: Progress) -> None:
        """The table was emptied and counted before; the next count is the one after the trial."""
        if self.now == self.trial:
            self.file.touch()
            self.trial = 0


def rate(far: FarMachine, folder: Path, trial: int) -> tuple[MeasurementResult, list[dict[str, Any]]]:
    """The connection rate with a cut after this trial, and the records of the trials."""
    folder.mkdir()
    cut, recipe = folder / "cut", folder / "policed.toml"
    recipe.write_text(RECIPE.format(cut=cut))
    watch = Cutting(cut, trial)
    answer = natgauge.measure("connection-rate", recipe, results=folder, observe=watch, **far.chosen, **ASKED)
    assert not cut.exists()
    assert watch.trial == 0, f"there was no trial {trial}"
    return answer.result, list(read_lines(answer.folder / "trials.jsonl", TRIAL_SCHEMA))


def tell(text: str) -> None:
    """Shown with `pytest -s`, and where the test fails."""
    sys.stdout.write(f"{text}\n")


@pytest.mark.parametrize("times", [1, pytest.param(20, marks=[pytest.mark.soak, pytest.mark.timeout(1800)])])
def test_a_cut_during_count_leaves_the_rate_as_it_is(times: int, far: FarMachine, tmp_path: Path) -> None:
    """Each measurement takes some seconds over ssh, and loses its connection once, after a trial drawn by the seed."""
    draw = random.Random(SEED)  # noqa: S311 - nothing secret
    undisturbed, trials = rate(far, tmp_path / "undisturbed", 0)
    assert undisturbed.summary.median == pytest.approx(LIMIT / (1 - BUCKET / CONNECTIONS), rel=0.1)
    assert undisturbed.error is not None
    tell(f"seed {SEED}, undisturbed: {undisturbed.summary.median:,.0f} connections/s, error {undisturbed.error:,.0f}")
    for number in range(times):
        trial = draw.randrange(len(trials) - 2) + 1
        found, records = rate(far, tmp_path / f"cut-{number}", trial)
        assert found.error is not None
        failed = {at: record["asked_again"] for at, record in enumerate(records, 1) if record["asked_again"]}
        tell(
            f"cut after trial {trial} of {len(records)}: {found.summary.median:,.0f} connections/s, "
            f"error {found.error:,.0f}, asked again {failed}, {dict(found.trials)}"
        )
        assert sum(failed.values()) >= 1
        assert abs(found.summary.median - undisturbed.summary.median) <= found.error + undisturbed.error
        assert found.trials["COLLAPSED"] == 0
