# SPDX-License-Identifier: Apache-2.0
"""The `ssh` lab against a real sshd whose connection is cut during `count`: the measured rate is as without the cut."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.absent import absent
from tests.labs.far import SSHD, TIMEOUT, FarMachine, far_machine

import natgauge
from natgauge.agreement.generated import Progress
from natgauge.procedures.kit.runner import Event
from natgauge.records.record import read_lines
from natgauge.records.store import TRIAL_SCHEMA
from natgauge.trial.controls import Silent
from natgauge.words import Verdict

pytestmark = [
    TIMEOUT,
    pytest.mark.slow("measures over ssh, and a search is repeated after each cut of the connection"),
    pytest.mark.skipif(absent(SSHD), reason="openssh-server is not installed: make test installs it"),
]
SEED = 20261123
#: A bucket of tokens decides the rate, so that it is the same however busy the machine is.
LIMIT, BUCKET, CONNECTIONS = 5_000, 500, 2_000
ASKED: dict[str, Any] = {
    "connections": CONNECTIONS, "error": "5%", "seed": 5, "lab_name": "sshlab", "grace_seconds": 0.1,
    "most_seconds": 1200.0,
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
    """Has the count after one trial of each repetition cut the connection.

    Attributes:
        file: says so over there, where the file system is the same.
        trials: of the repetitions, from the second one on: the number of the trial within the repetition, from 1.
        cut: the number of the trial within the measurement, by repetition.
    """

    file: Path
    trials: Sequence[int]
    cut: dict[int, int] = field(default_factory=dict)
    _began: dict[int, int] = field(default_factory=dict)
    _now: Event | None = None

    def event(self, event: Event) -> None:
        self._began.setdefault(event.repetition, event.trial)
        self._now = event

    def running(self, _progress: Progress) -> None:
        """The table was emptied and counted before; the next count is the one after the trial."""
        now = self._now
        if now is None or now.repetition == 1 or now.repetition in self.cut:
            return
        if now.trial - self._began[now.repetition] + 1 == self.trials[now.repetition - 2]:
            self.cut[now.repetition] = now.trial
            self.file.touch()


@pytest.mark.soak
@pytest.mark.timeout(1800, func_only=True)
@pytest.mark.parametrize("times", [1, 20])
def test_a_cut_during_count_leaves_the_rate_as_it_is(times: int, far: FarMachine, tmp_path: Path) -> None:
    """The first repetition is undisturbed; each further one loses its connection after a trial drawn by the seed."""
    draw = random.Random(SEED)  # noqa: S311 - nothing secret
    cut, recipe = tmp_path / "cut", tmp_path / "policed.toml"
    recipe.write_text(RECIPE.format(cut=cut))
    observer = Cutting(cut, [draw.randint(1, 4) for _ in range(times)])
    asked = {**ASKED, "repeat": times + 1}
    answer = natgauge.measure("connection-rate", recipe, results=tmp_path, observe=observer, **far.chosen, **asked)
    records = list(read_lines(answer.folder / "trials.jsonl", TRIAL_SCHEMA))
    failed = {
        number: record["command_failures"] for number, record in enumerate(records, 1) if record["command_failures"]
    }
    values = ", ".join(f"{one.value:,.0f} (error {one.error:,.0f})" for one in answer.repetitions if one.error)
    sys.stdout.write(
        f"\nseed {SEED}, cut after trials {[*observer.cut.values()]}, commands failed {failed}: {values}\n"
    )
    undisturbed, *others = answer.repetitions
    assert len(others) == times
    assert undisturbed.value == pytest.approx(LIMIT / (1 - BUCKET / CONNECTIONS), rel=0.1)
    assert sorted(observer.cut.values()) == sorted(failed)
    assert answer.trials[Verdict.COLLAPSED] == 0
    for one in others:
        assert one.error is not None
        assert undisturbed.error is not None
        assert abs(one.value - undisturbed.value) <= one.error + undisturbed.error
