# SPDX-License-Identifier: Apache-2.0
"""Hot spots: what perf prints is read, only the device's work counts, and the cost tells the functions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.golden import Golden
from tests.unit.test_procedure_cost import gateway, measured

from natgauge.errors import HostError
from natgauge.host.sampling import PROGRAM, Sampling, Stack, read
from natgauge.paired.slices import HotSpot, RoundPlan, TimedRound
from natgauge.trial.rounds import LEAST_SAMPLES, MOST, hot_spots

# perf ends the line of the time with a space.
PRINTED = (
    " 3628.231278: \n"
    "\tffffffff81601cb5 nf_conntrack_in\n"
    "\tffffffff815e6501 nf_hook_slow\n"
    "\tffffffff81f00000 __netif_receive_skb_list_core\n"
    "\n"
    " 3628.231478: \n"
    "\tffffffffc0001234 bpf_prog_6deef7357e7b4530_generate\n"
    "\tffffffff81f00001 bpf_test_run_xdp_live\n"
    "\n"
    "perf-exec: nothing to see\n"
)
RECEIVED = "netif_receive_skb_list_internal"


def of_device(function: str, number: int, begin: float = 0.0) -> list[Stack]:
    return [Stack(begin + at / 5000, (function, "ip_rcv", RECEIVED)) for at in range(number)]


def test_stacks_are_read_as_perf_prints_them() -> None:
    first, second = read(PRINTED)
    assert first == Stack(3628.231278, ("nf_conntrack_in", "nf_hook_slow", "__netif_receive_skb_list_core"))
    assert second.functions[0] == "bpf_prog_6deef7357e7b4530_generate"


def test_only_what_happens_to_received_frames_counts() -> None:
    tester = [Stack(0.0, ("bpf_prog_generate", "bpf_test_run_xdp_live"))] * 5000
    found = hot_spots([*tester, *of_device("nf_conntrack_in", 300), *of_device("veth_xmit", 100, 1.0)])
    assert found == (HotSpot("nf_conntrack_in", 0.75), HotSpot("veth_xmit", 0.25))


def test_opening_the_connections_is_no_part_of_what_standing_ones_cost() -> None:
    opening, standing = of_device("init_conntrack", 2000), of_device("nf_ct_get_tuple", 1000, begin=10.0)
    assert hot_spots([*opening, *standing], seconds=1.0) == (HotSpot("nf_ct_get_tuple", 1.0),)


def test_few_samples_say_nothing_and_many_functions_are_cut() -> None:
    assert hot_spots(of_device("nf_conntrack_in", LEAST_SAMPLES - 1)) == ()
    many = [stack for number in range(60) for stack in of_device(f"function_{number}", 10 + number)]
    assert len(hot_spots(many)) == MOST


def test_the_cost_tells_them_for_each_quantity_from_a_round_that_is_not_timed(
    monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    simulated = gateway()
    usual = simulated.costs

    def costs(plan: RoundPlan) -> TimedRound:
        found = usual(plan)
        spots = (HotSpot("nf_conntrack_in", 0.125), HotSpot("veth_xmit", 0.06)) if plan.sampled else ()
        return replace(found, hot_spots=spots)

    monkeypatch.setattr(type(simulated), "costs", lambda _self, plan: costs(plan))
    told = measured(simulated, hot_spots=True, repeat=1, quantities="new,up")
    notes = [note.text for note in told.notes if note.text.startswith("hot spots of ")]
    golden(notes[0])
    assert len(notes) == 2
    sampled = [plan for plan in simulated.rounds if plan.sampled]
    assert [list(plan.blocks) for plan in sampled] == [["new"], ["up"]]
    assert all(plan.alone for plan in sampled)
    assert not any(plan.sampled for plan in simulated.rounds[2:])


def test_without_perf_it_is_refused_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, golden: Golden
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with golden.raises(HostError):
        Sampling(0)


def test_a_perf_that_cannot_sample_is_told_with_its_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, golden: Golden
) -> None:
    perf = tmp_path / PROGRAM
    perf.write_text("#!/bin/sh\necho 'Error: no permission' >&2; exit 1\n")
    perf.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with golden.raises(HostError), Sampling(0):
        pass


#: Samples as long as the command after "--" runs, as perf does, and notes that it has ended.
SAMPLING_PERF = """#!/bin/sh
[ "$1" = record ] || exit 0
while [ "$1" != -o ]; do shift || exit; done
file=$2
while [ "$1" != -- ]; do shift || exit; done
shift
trap '' INT
echo samples > "$file"
"$@"
echo "$file" > "$ENDED"
"""
SAMPLER = """
import time
from natgauge.host.sampling import Sampling
with Sampling(0):
    print("samples", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_perf_ends_with_natgauge_however_that_ends(tmp_path: Path, sent: signal.Signals) -> None:
    perf, ended = tmp_path / PROGRAM, tmp_path / "ended"
    perf.write_text(SAMPLING_PERF)
    perf.chmod(0o755)
    around = {**os.environ, "PATH": f"{tmp_path}:/usr/bin:/bin", "ENDED": str(ended), "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", SAMPLER], env=around, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as natgauge:
        assert natgauge.stdout is not None
        assert natgauge.stdout.readline() == b"samples\n"
        natgauge.send_signal(sent)
        natgauge.wait(30)
    end = time.monotonic() + 30
    while not ended.exists() and time.monotonic() < end:
        time.sleep(0.01)
    assert ended.exists()
