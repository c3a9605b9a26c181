# SPDX-License-Identifier: Apache-2.0
"""Each rule of the verdict, one row each; then what must hold for any trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plans import OneTrial, PlanOfTrial
from tests.unit.counted import arrivals, change_counts, change_trial, make_counts, make_cpu, make_port, make_trial
from tests.unit.golden import Golden

from natgauge.agreement.generated import Cpu, PortCounters, StreamCounts
from natgauge.causes.hops import TrialHops
from natgauge.readings import Readings
from natgauge.trial_record import hops_in
from natgauge.trials import (
    LAG_SHARE,
    LEAST_LAG_SECONDS,
    Direction,
    Modifiers,
    Phase2Plan,
    Restart,
    Trial,
    is_disturbed,
    lag_tolerance,
)
from natgauge.verdicts import Limits, judge
from natgauge.words import Placement, Verdict

N = 100_000
SECOND = make_counts(intended=N, offered=N, received=N, nominal_seconds=1.0, sending_seconds=1.0)
UP, DOWN = Direction.INITIATOR, Direction.RESPONDER


#: Phase 1 alone; and one that prepares phase 2.
ALONE, PREPARING = PlanOfTrial(N, 1.0 * N), PlanOfTrial(N, 1.0 * N, Phase2Plan(1.0 * N, 1.0 * N, 1.0))
CLEAN = make_trial(ALONE, phase1=SECOND, stored=N, readings=Readings(count_before=0, count_after=N))


@dataclass(frozen=True)
class Given:
    """What is other than in a clean trial of a connection rate, and what limits what it can show."""

    changes: Mapping[str, Any]
    limits: Limits

    def but(self, **others: Any) -> Given:
        """The same, but for what is named."""
        return replace(self, changes={**self.changes, **others})

    @property
    def judged(self) -> OneTrial:
        return judge(change_trial(CLEAN, **self.changes), self.limits)


def clean(placement: Placement = "isolated", table_limit: int | None = None, **others: Any) -> Given:
    """A clean trial of a connection rate, but for what is named."""
    return Given({"placement": placement, **others}, Limits(table_limit))


def lossy(lost: int, **others: Any) -> StreamCounts:
    return change_counts(SECOND, received=N - lost, **others)


def stall(role: str = "sender", seconds: float = 0.1) -> Cpu:
    return make_cpu(role, 1, seconds)


def both_phases(second: StreamCounts, **others: Any) -> Given:
    return clean(plan=PREPARING, phase2={UP: SECOND, DOWN: second}, **others)


def stateless(second: StreamCounts, count_after: int | None = None) -> Given:
    plan = replace(PREPARING, stateless=True)
    return clean(plan=plan, phase1=None, stored=0, phase2={DOWN: second}, count_after=count_after)


def in_groups(second: StreamCounts, placement: Placement) -> Given:
    """The last of ten groups begins 0.9 s after the first, so only a tenth of phase 2 has its whole rate."""
    phase2 = Phase2Plan(1.0 * N, 1.0 * N, 1.0, modifiers=Modifiers(groups=10, group_seconds=0.1))
    return both_phases(second, placement=placement).but(plan=replace(PREPARING, phase2=phase2))


#: A port of the guest that found its queue full for nine frames.
FULL_QUEUE: dict[str, Any] = {"ports": {"responder": make_port(refused=9, tx_dropped=9)}, "taps": True}
LATE = change_counts(SECOND, sending_seconds=1.05, final_lag_seconds=0.05)
STOOD_STILL = change_counts(LATE, stalled_seconds=0.05)
#: 64 frames in 64 us, all made in time; the device needs 2 us for each.
ONE_BATCH = change_counts(SECOND, nominal_seconds=64e-6, sending_seconds=64e-6, settled_lag_seconds=300e-6)
#: Frames of two sizes, of which the longer ones were lost.
MIX = [
    (64, N - 100, N - 100),
    (1518, 100, 91),
]
#: Trials in words, by verdict, what limited them, and the phase that failed.
TRIALS: dict[str, dict[str, Given]] = {
    "PASS": {
        "all came back": clean(),
        "all came back, both phases": both_phases(SECOND),
        "all came back in spite of stalls": clean(cpus=(stall(),)),
        "the device cannot count": clean(count_before=None, count_after=None),
        "a closed connection may be gone from the table": both_phases(
            SECOND, close="fin", established=0, count_after=7
        ),
        "elsewhere the device is not what the sender waits for": clean(phase1=ONE_BATCH),
        "a lag within a tenth of the error": clean(
            phase1=change_counts(SECOND, settled_lag_seconds=0.0009), placement="shared"
        ),
        "loss within the tolerance": both_phases(lossy(10), loss_tolerance=0.0001),
        "queue before the device full within the tolerance": both_phases(
            change_counts(SECOND, offered=N - 9, received=N - 9),
            **FULL_QUEUE,
            loss_tolerance=0.0001,
        ),
        "the tester's link went down and nothing was lost": both_phases(SECOND, link_losses={"Initiator": 1}),
        "natgauge read the device while frames flowed, and nothing was lost": both_phases(
            SECOND, read_late_seconds=0.05
        ),
        "late while preparing": clean(placement="shared", phase1=LATE, plan=PREPARING),
        "sent a little faster than asked": both_phases(change_counts(SECOND, sending_seconds=0.995)),
        "the time of sending is not known": both_phases(change_counts(SECOND, sending_seconds=0.0)),
        "damaged within the tolerance": both_phases(lossy(2, damaged=2), loss_tolerance=0.1),
        "reordered only": both_phases(change_counts(SECOND, reordered=400)),
        "a tolerated loss before the table": clean(
            phase1=lossy(5), stored=N - 5, count_after=N - 5, table_limit=N, loss_tolerance=0.0001
        ),
        "a tolerated loss behind the table": clean(
            phase1=lossy(5), stored=N - 5, count_after=N - 2, loss_tolerance=0.0001
        ),
        "readings of connections that may be missing are excused": both_phases(
            change_counts(SECOND, offered=N - 5, received=N - 5, skipped=5),
            stored=N - 1,
            count_after=N - 1,
            loss_tolerance=0.0001,
        ),
        "enumerated with replacement": clean(stored=63212, count_after=63212, order="with-replacement"),
        "restarted, nothing lost": both_phases(SECOND, restart_at_seconds=0.5, count_after=17),
        "stateless": stateless(SECOND),
        "stateless, the device counts something": stateless(SECOND, count_after=N),
    },
    "INVALID host": {
        "more came back than were sent": clean(phase1=change_counts(SECOND, received=N + 1)),
        "more came back than were sent, from one side, and wrong ones too": both_phases(
            change_counts(SECOND, received=2 * N, duplicates=3, mistranslated=1)
        ),
        "loss beside a stalled device CPU": both_phases(lossy(9), cpus=(stall("watched"),)),
        "loss beside a stalled sender": both_phases(lossy(9), cpus=(stall(),)),
        "loss beside stolen time": both_phases(
            lossy(9), cpus=(make_cpu("watched", 0, 0.0, cpu=1, stolen_seconds=0.02),)
        ),
        "as much loss as 0.1 s explain at 100,000 frames/s": both_phases(lossy(20000), cpus=(stall("watched"),)),
        "a gap shorter than 1 ms that the engine counted: the device's ring was full sooner": both_phases(
            lossy(9, lost_in_stalls=9), cpus=(stall(seconds=0.0009),)
        ),
        "the tester's link went down": both_phases(lossy(9), link_losses={"Responder": 1}),
        "natgauge read the device while frames flowed": both_phases(lossy(9), read_late_seconds=0.05),
        "queue before a device full that natgauge read while frames flowed": both_phases(
            change_counts(SECOND, offered=N - 9, received=N - 9),
            **FULL_QUEUE,
            read_late_seconds=0.05,
        ),
        "a CPU quota stopped the sender": clean(
            phase1=STOOD_STILL, placement="shared", cpus=(stall(seconds=0.05),), throttled_seconds=0.05
        ),
        "frames were lost while a CPU quota stopped the sender": both_phases(
            lossy(9), cpus=(stall(),), throttled_seconds=0.1
        ),
        "all lost in stalls": both_phases(lossy(9, lost_in_stalls=9), cpus=(stall("watched"),)),
        "beyond what is tolerated only because of stalls": both_phases(
            lossy(100, lost_in_stalls=90), cpus=(stall(),), loss_tolerance=0.0001
        ),
        "lost in stalls, `shared`": both_phases(lossy(9, lost_in_stalls=9), placement="shared", cpus=(stall(),)),
        "queue before the device full behind a sender that stood still": clean(
            phase1=change_counts(SECOND, offered=N - 9, received=N - 9, stalled_seconds=0.1),
            **FULL_QUEUE,
            cpus=(stall(),),
        ),
        "refused by the port, whose link went down": clean(
            ports={"initiator": make_port(refused=1)}, link_losses={"Initiator": 1}
        ),
        "late by a stall": clean(placement="shared", phase1=STOOD_STILL, cpus=(stall(),)),
        "late by a stall, `isolated`": clean(phase1=STOOD_STILL, cpus=(stall(),)),
        "not empty before": clean(count_before=5),
        "strangers in the table": clean(count_after=N + 3),
        "all forwarded, and the table is empty": clean(count_after=0),
        "single frames could not be sent": both_phases(SECOND, unprobed="no carrier"),
        "controls silent, single frames could not be sent": both_phases(
            SECOND, device_error="silent", unprobed="no carrier"
        ),
        "strangers in the table beside a tolerated loss": clean(
            phase1=lossy(5), stored=N - 5, count_after=N + 1, loss_tolerance=0.0001
        ),
        "controls silent, but it forwards": both_phases(SECOND, device_error="connection lost", forwards=True),
        "controls silent, frames not tried": both_phases(SECOND, device_error="silent"),
        "restarted after a phase 1 that a stall disturbed": clean(
            phase1=lossy(9),
            stored=N - 9,
            phase2={DOWN: lossy(9)},
            plan=PREPARING,
            restart_at_seconds=0.5,
            count_after=17,
            cpus=(stall("watched"),),
        ),
    },
    "FAIL device 2": {
        "all segments passed, and the device still calls a connection open": both_phases(
            SECOND, close="fin", established=1
        ),
        "one frame lost": both_phases(lossy(1)),
        "late at the whole rate": in_groups(change_counts(SECOND, settled_lag_seconds=0.0009), "shared"),
        "none came back": both_phases(lossy(N)),
        "loss in `shared`": both_phases(lossy(5), placement="shared"),
        "late frames are lost": both_phases(lossy(7, late=7)),
        "all frames are late": both_phases(lossy(N, late=N)),
        "loss beside a queue before the device that refused none": both_phases(lossy(9), taps=True),
        "loss of one size of a mix": both_phases(lossy(9, sizes=MIX)),
        "loss beyond the tolerance": both_phases(lossy(11), loss_tolerance=0.0001),
        "loss in the device's own ring": both_phases(
            lossy(9), dropped_before={"device ring": 4, "switch": 2}, dropped_after={"device ring": 13, "switch": 2}
        ),
        "more loss than 0.1 s explain at 100,000 frames/s": both_phases(lossy(20001), cpus=(stall("watched"),)),
        "loss in `shared` is no stall's": both_phases(lossy(9), placement="shared", cpus=(stall(),)),
        "the device restarted, and with it the link": both_phases(
            lossy(9), link_losses={"Responder": 1}, restart_at_seconds=0.5
        ),
        "the tester's port dropped fewer": both_phases(lossy(9), ports={"initiator": make_port(rx_dropped=8)}),
        "loss outside of every stall, beside stolen time": both_phases(
            lossy(80, lost_in_stalls=0), cpus=(make_cpu("watched", 0, 0.0, cpu=1, stolen_seconds=0.01),)
        ),
        "one frame lost outside of a long stall": both_phases(lossy(1, lost_in_stalls=0), cpus=(stall("watched"),)),
        "all but one lost in stalls": both_phases(lossy(9, lost_in_stalls=8), cpus=(stall("watched"),)),
        "lost outside of stalls, `shared`": both_phases(
            lossy(9, lost_in_stalls=8), placement="shared", cpus=(stall(),)
        ),
        "lost at times that are not known, `shared`": both_phases(
            lossy(9, lost_in_stalls=None), placement="shared", cpus=(stall(),)
        ),
        "lost in stalls while the device was restarted": both_phases(
            lossy(9, lost_in_stalls=9), restart_at_seconds=0.5, cpus=(stall("watched"),)
        ),
        "queue before the device full, phase 2": both_phases(
            change_counts(SECOND, offered=N - 9, received=N - 9),
            **FULL_QUEUE,
        ),
        "queue before the device full, no frame lost": both_phases(SECOND, **FULL_QUEUE),
        "queue before the device full beyond the tolerance": both_phases(
            change_counts(SECOND, offered=N - 9, received=N - 11),
            **FULL_QUEUE,
            loss_tolerance=0.0001,
        ),
        "late in `shared`, phase 2": both_phases(LATE, placement="shared"),
        "leak": both_phases(lossy(3, untranslated=3)),
        "leak beside a stall": both_phases(lossy(3, untranslated=3), cpus=(stall(),)),
        "leak within the tolerance": both_phases(lossy(3, untranslated=3), loss_tolerance=0.1),
        "mistranslated within the tolerance": both_phases(lossy(2, mistranslated=2), loss_tolerance=0.1),
        "mistranslated": both_phases(lossy(2, mistranslated=2)),
        "damaged": both_phases(lossy(2, damaged=2)),
        "duplicated, none lost": both_phases(change_counts(SECOND, duplicates=4)),
        "alive but silent": both_phases(lossy(N), device_error=""),
        "silent, but single frames pass": both_phases(lossy(N), forwards=True),
        "restarted, and a stall cannot excuse the loss": both_phases(
            lossy(9), restart_at_seconds=0.5, cpus=(stall("watched"),)
        ),
        "restarted, leaks while the rules are gone": both_phases(
            lossy(5000, untranslated=40), restart_at_seconds=0.5, count_after=17
        ),
        "stateless, one lost": stateless(lossy(1)),
    },
    "FAIL device 1": {
        "without a phase 2, and the device still calls a connection open": clean(close="fin", established=1),
        "natgauge read the device in a later period": both_phases(SECOND, phase1=lossy(9), read_late_seconds=0.05),
        "a device is behind when its last batch is worked off": clean(phase1=ONE_BATCH, placement="shared"),
        "the same beyond a tenth of a smaller error": clean(
            phase1=change_counts(SECOND, settled_lag_seconds=0.0009), placement="shared", lag_share=0.0001
        ),
        "one lost in phase 1": clean(phase1=lossy(1), stored=N - 1),
        "queue before the device full": clean(
            phase1=change_counts(SECOND, offered=N - 9, received=N - 9),
            **FULL_QUEUE,
        ),
        "late in `shared`": clean(placement="shared", phase1=LATE),
        "late by more than the stall": clean(
            placement="shared", phase1=change_counts(LATE, stalled_seconds=0.04), cpus=(stall(seconds=0.04),)
        ),
        "another CPU's stall": clean(placement="shared", phase1=LATE, cpus=(stall("watched"),)),
        "not full, only overloaded": clean(phase1=lossy(34464), stored=65536, count_after=65536, table_limit=2**20),
        "refused in `shared`, limit unknown": clean(
            placement="shared", phase1=lossy(34464), stored=65536, count_after=65536
        ),
        "learned too few": clean(stored=N - 2),
        "forwarded, not kept, limit unknown": clean(count_after=65536),
        "restarted after a phase 1 that failed: the table's later count is not its": clean(
            phase1=lossy(9), stored=N - 9, phase2={DOWN: SECOND}, restart_at_seconds=0.5, count_after=N, table_limit=N
        ),
        "phase 1 failed before phase 2": both_phases(lossy(9), phase1=lossy(1), stored=N - 1),
    },
    "INVALID tester": {
        "the tester's port dropped them": both_phases(lossy(9), ports={"initiator": make_port(rx_dropped=9)}),
        "lost in stalls and at the tester's port": both_phases(
            lossy(9, lost_in_stalls=5), cpus=(stall(),), ports={"initiator": make_port(rx_dropped=4)}
        ),
        "fewer offered": both_phases(change_counts(SECOND, offered=N - 1, received=N - 1)),
        "refused by the port": clean(ports={"initiator": make_port(refused=1)}),
        "redirect error": clean(ports={"initiator": make_port(redirect_errors=1)}),
        "late in `isolated`": clean(phase1=LATE),
        "sent faster than asked, in phase 1": both_phases(SECOND, phase1=lossy(9, sending_seconds=0.002)),
        "the last group sent faster than asked": in_groups(change_counts(SECOND, sending_seconds=0.995), "isolated"),
        "sent faster than asked, none lost": both_phases(change_counts(SECOND, sending_seconds=0.98)),
        "skipped readings although every connection is stored": both_phases(
            change_counts(SECOND, offered=N - 5, received=N - 5, skipped=5)
        ),
        "restarted, but the tester's port dropped them": both_phases(
            lossy(9), restart_at_seconds=0.5, ports={"initiator": make_port(rx_dropped=9)}
        ),
        "stateless, not all offered": stateless(lossy(1, offered=N - 1)),
    },
    "FAIL table 1": {
        "full": clean(phase1=lossy(34464), stored=65536, count_after=65536, table_limit=65536),
        "full, and a stall cannot excuse it": clean(
            phase1=lossy(34464), stored=65536, count_after=65536, table_limit=65536, cpus=(stall(seconds=9.0),)
        ),
        "evicted: forwarded is not established": clean(count_after=65536, table_limit=65536),
        "evicted beside a tolerated loss": clean(
            phase1=lossy(1), stored=N - 1, count_after=N // 2, table_limit=N // 2, loss_tolerance=0.0001
        ),
        "a full table that lost no more than is tolerated": clean(
            phase1=lossy(5000), stored=N - 5000, count_after=N - 5000, table_limit=N - 5000, loss_tolerance=0.1
        ),
    },
    "COLLAPSED device": {
        "controls and data path dead": both_phases(lossy(N), device_error="silent", forwards=False),
        "alive, but its data path is dead": both_phases(lossy(N), device_error="", forwards=False),
        "a dead data path, controls unknown": both_phases(lossy(N), forwards=False),
        "gone, with its own words": both_phases(
            lossy(N), forwards=False, device_error="gateway: no answer within 60 s"
        ),
        "restarted, and did not come back": both_phases(
            lossy(N), restart_at_seconds=0.5, device_error="start failed", forwards=False
        ),
    },
}
ROWS = [(said, what) for said, trials in TRIALS.items() for what in trials]


@pytest.mark.parametrize(("said", "what"), ROWS, ids=[what for _, what in ROWS])
def test_verdict(said: str, what: str, golden: Golden) -> None:
    judged = TRIALS[said][what].judged
    found = (judged.verdict.name, judged.limited_by, judged.failed_phase)
    assert " ".join(str(one) for one in found if one) == said
    assert bool(judged.reason) == (judged.verdict is not Verdict.PASS)
    golden(judged.reason)


def test_a_stall_of_another_phase_excuses_nothing() -> None:
    """The trial's stalls would explain the lag, but this phase had none of them: the device was too slow."""
    late = change_counts(LATE, stalled_seconds=0.0)
    judged = both_phases(late, placement="shared", cpus=(stall(seconds=0.2),)).judged
    assert (judged.verdict, judged.limited_by) == (Verdict.FAIL, "device")
    excused = both_phases(
        change_counts(LATE, stalled_seconds=0.2), placement="shared", cpus=(stall(seconds=0.2),)
    ).judged
    assert excused.verdict is Verdict.INVALID


def test_a_stall_excuses_a_loss_of_a_table_that_has_room_for_all_connections() -> None:
    """A table of as many connections as were opened was called full, and then no stall excused the loss."""

    def judged(limit: int) -> OneTrial:
        few: dict[str, Any] = {"phase1": lossy(9, lost_in_stalls=9), "stored": N - 9, "count_after": N - 9}
        return clean(table_limit=limit, cpus=(stall(),), **few).judged

    enough, short = judged(N), judged(N - 9)
    assert (enough.verdict, enough.limited_by, enough.excused) == (Verdict.INVALID, "host", True)
    assert (short.verdict, short.limited_by) == (Verdict.FAIL, "table")


def test_what_is_excused_of_a_loss_is_named_also_behind_numbers_of_connections() -> None:
    """Seen: "the device's table held 95634 connections of at most 262144, 656 of them excused by ..."."""
    few: dict[str, Any] = {"phase1": lossy(9, lost_in_stalls=6), "stored": N - 9, "count_after": N - 9}
    judged = clean(table_limit=2**20, cpus=(stall(),), **few).judged
    assert judged.verdict is Verdict.FAIL
    assert f"held {N - 9} connections of at most {2**20}, 6 of the lost frames excused by CPU 0" in judged.reason


def test_disturbance_is_told_whatever_the_verdict(golden: Golden) -> None:
    for given_trial in (clean(), clean(phase1=lossy(1)), clean(placement="shared", phase1=LATE)):
        assert not given_trial.judged.disturbed
        judged = given_trial.but(cpus=(stall("watched", 0.25),)).judged
        assert judged.disturbed
        golden(judged.remarks)


@pytest.mark.parametrize(
    ("lost", "tolerance", "verdict", "excused"),
    [(9, 0.0, Verdict.FAIL, False), (6, 0.0, Verdict.INVALID, True), (9, 1e-4, Verdict.PASS, False)],
)
def test_excused_frames_are_told_whatever_the_verdict(
    lost: int, tolerance: float, verdict: Verdict, golden: Golden, *, excused: bool
) -> None:
    judged = both_phases(lossy(lost, lost_in_stalls=6), cpus=(stall("watched"),), loss_tolerance=tolerance).judged
    assert (judged.verdict, judged.excused, judged.excused_frames) == (verdict, excused, 6)
    golden(judged.remarks)


def test_a_queue_that_something_of_the_host_filled_is_excused() -> None:
    full = [given.judged for what, given in TRIALS["INVALID host"].items() if what.startswith("queue before")]
    assert [judged.excused for judged in full] == [True, True]


@pytest.mark.parametrize("forwards", [True, False])
def test_a_stall_excuses_no_frame_of_a_device_that_forwards_nothing_any_more(*, forwards: bool) -> None:
    judged = both_phases(lossy(9, lost_in_stalls=9), cpus=(stall(),), forwards=forwards).judged
    assert (judged.verdict is Verdict.COLLAPSED, judged.excused_frames) == (not forwards, 9 if forwards else 0)


def test_stolen_time_is_not_named_as_an_excuse_where_the_stalls_are_known(golden: Golden) -> None:
    stolen = make_cpu("watched", 0, 0.0, cpu=3, stolen_seconds=0.5)
    both = make_cpu("watched", 1, 0.1, stolen_seconds=0.4)
    reason = both_phases(lossy(9, lost_in_stalls=9), cpus=(stolen, both)).judged.reason
    golden(reason)


def test_a_lag_that_a_stall_explains_is_excused() -> None:
    judged = clean(placement="shared", phase1=STOOD_STILL, cpus=(stall(),)).judged
    assert (judged.verdict, judged.excused, judged.excused_frames) == (Verdict.INVALID, True, 0)
    assert not clean(placement="shared", phase1=LATE).judged.excused
    assert not clean(phase1=STOOD_STILL, cpus=(stall(),)).judged.excused, (
        "a late sender in `isolated` is no device's fault"
    )


@pytest.mark.parametrize(("frames", "verdict"), [(15, Verdict.INVALID), (25, Verdict.FAIL)])
def test_a_lag_shorter_than_the_time_between_two_frames_is_the_senders(
    frames: int, verdict: Verdict, golden: Golden
) -> None:
    """One late wake-up made 4 connections/s of a gateway that opens 200,000."""
    slow = change_counts(LATE, intended=frames, offered=frames, received=frames)
    trial = make_trial(
        PlanOfTrial(frames, 1.0 * frames),
        phase1=slow,
        stored=frames,
        readings=Readings(count_before=0, count_after=frames),
        placement="shared",
    )
    judged = judge(trial, Limits())
    assert judged.verdict is verdict
    golden(judged.reason)


def test_a_setting_that_others_changed_decides_before_what_the_trial_counted(golden: Golden) -> None:
    for counts in (lossy(0), lossy(500)):
        changed = clean(phase1=counts, found_changed="table_size: was 300001 and is 262144 now").judged
        assert (changed.verdict, changed.limited_by) == (Verdict.INVALID, "host")
        golden(changed.reason)


def test_a_device_that_cannot_count_is_noted() -> None:
    assert any("does not report" in remark for remark in clean(count_after=None).judged.remarks)
    assert stateless(SECOND).judged.remarks == ()


@pytest.mark.parametrize(
    ("nominal", "tolerance"), [(0.01, LEAST_LAG_SECONDS), (0.2, LEAST_LAG_SECONDS), (1.0, LAG_SHARE), (60.0, 0.06)]
)
def test_lag_tolerance(nominal: float, tolerance: float) -> None:
    assert lag_tolerance(nominal) == pytest.approx(tolerance)


placements = st.sampled_from(["shared", "isolated", "external"])
cpus = st.builds(
    make_cpu,
    st.sampled_from(["sender", "watched"]),
    st.integers(0, 3),
    st.floats(0, 1),
    cpu=st.integers(0, 3),
    worst_stall_seconds=st.floats(0, 1),
    stolen_seconds=st.floats(0, 1),
)
ports = st.builds(
    make_port,
    refused=st.integers(0, 2),
    redirect_errors=st.integers(0, 2),
    rx_dropped=st.integers(0, 20),
    tx_dropped=st.integers(0, 20),
)


@st.composite
def streams(draw: st.DrawFn) -> StreamCounts:
    intended = draw(st.integers(1, 100))
    offered = draw(st.integers(0, intended))
    received = draw(st.integers(0, offered))
    return make_counts(
        intended=intended,
        offered=offered,
        received=received,
        lost_in_stalls=draw(st.none() | st.integers(0, offered - received)),
        duplicates=draw(st.integers(0, 2)),
        damaged=draw(st.integers(0, 2)),
        untranslated=draw(st.integers(0, 2)),
        nominal_seconds=draw(st.floats(1e-6, 10)),
        final_lag_seconds=draw(st.floats(0, 1)),
    )


@given(placements, streams(), streams(), st.lists(cpus, max_size=2), ports, st.integers(0, 100))
def test_what_no_pass_can_hide(  # noqa: PLR0917 - hypothesis hands them over in order
    placement: Placement, first: StreamCounts, second: StreamCounts, stalls: list[Cpu], port: PortCounters, count: int
) -> None:
    """A PASS always means: all offered, all back, nothing wrong, on time where that counts, and the table agrees."""
    trial = make_trial(
        PlanOfTrial(first.intended_frames, 1.0),
        phase1=first,
        phase2={DOWN: second},
        stored=first.received_frames,
        readings=Readings(count_before=0, count_after=count),
        cpus=stalls,
        ports={"initiator": port},
        placement=placement,
    )
    judged = judge(trial, Limits())
    assert judged.disturbed == any(map(is_disturbed, stalls))
    assert 0 <= judged.excused_frames <= first.lost + second.lost
    assert judged.verdict is Verdict.INVALID or not judged.excused
    if judged.verdict is Verdict.PASS:
        for counts in (first, second):
            assert counts.intended_frames == counts.offered_frames == counts.received_frames
            assert counts.duplicates == counts.damaged == counts.untranslated == 0
            assert counts.final_lag_seconds <= lag_tolerance(counts.nominal_seconds)
        assert port.refused == port.redirect_errors == 0
        assert count == first.received_frames
    else:
        assert judged.reason
        assert judged.limited_by
    if judged.verdict is Verdict.FAIL:
        assert judged.failed_phase in {1, 2}


def answered(phase2: StreamCounts, placement: Placement, tolerance: float = 0.0001, **read: Any) -> OneTrial:
    """What is said of a stateless trial of queries with these counts and readings."""
    plan = PlanOfTrial(N, 1.0, Phase2Plan(1.0, 0.0, 1.0), stateless=True, loss_tolerance=tolerance)
    counts = {Direction.INITIATOR: phase2}
    return judge(make_trial(plan, phase2=counts, readings=Readings(**read), placement=placement), Limits())


def test_a_wrong_answer_is_told_apart_from_a_lost_one(golden: Golden) -> None:
    phase2 = make_counts(
        intended=1000, offered=1000, received=990, messages=(arrivals("query", 996), arrivals("response", 990, 4))
    )
    found = answered(phase2, "shared")
    assert (found.verdict, found.limited_by) == (Verdict.FAIL, "device")
    golden(found.reason)
    assert answered(phase2, "shared", tolerance=0.01).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("received", "late", "dropped", "limited_by"),
    [(900, 0, 100, "server"), (890, 10, 100, "server"), (900, 0, 50, "device"), (900, 100, 0, "device")],
)
def test_what_a_server_did_not_read_in_time_is_not_the_devices(
    received: int, late: int, dropped: int, limited_by: str, golden: Golden
) -> None:
    phase2 = make_counts(intended=1000, offered=1000, received=received, late=late)
    found = answered(phase2, "isolated", server_refused={"socket": dropped})
    assert (found.verdict, found.limited_by) == (Verdict.FAIL, limited_by)
    golden(found.reason)


@pytest.mark.parametrize(
    ("asked", "unread", "dropped", "limited_by"),
    [
        (2000, 0, 1, "server"),
        # It lost datagrams itself, so its answers may be late for its own reasons.
        (2000, 50, 1, "device"),
        (2000, 50, 100, "server"),
        # A gateway hands queries on, and such a counter is not that of its path.
        (None, 50, 1, "server"),
    ],
)
def test_late_answers_of_a_device_that_did_not_read_all_itself_are_not_the_servers(
    asked: int | None, unread: int, dropped: int, limited_by: str
) -> None:
    phase2 = make_counts(intended=1000, offered=1000, received=900, late=99, asked=asked)
    found = answered(phase2, "isolated", server_refused={"socket": dropped}, faults={"socket": unread})
    assert (found.verdict, found.limited_by) == (Verdict.FAIL, limited_by)


def test_a_tolerated_wrong_frame_beside_losses_that_a_stall_explains_is_no_failure() -> None:
    def judged(lost: int, damaged: int) -> OneTrial:
        second = lossy(lost, damaged=damaged, lost_in_stalls=lost - damaged)
        return both_phases(second, cpus=(stall("watched"),), loss_tolerance=0.0001).judged

    assert (judged(11, 2).verdict, judged(11, 2).excused) == (Verdict.INVALID, True)
    # 11 frames are more than the tolerated 10 of 100,000, and no stall damages one.
    assert judged(20, 11).verdict is Verdict.FAIL


def test_a_driver_that_counts_what_receivers_took_as_dropped_explains_no_loss() -> None:
    """virtio_net counts every frame that an XDP program takes, so every loss was excused as the tester's own."""
    lossy_down = both_phases(lossy(9), ports={"initiator": make_port(rx_dropped=N), "responder": make_port()})
    assert (lossy_down.judged.verdict, lossy_down.judged.limited_by) == (Verdict.INVALID, "tester")
    assert any("dropped" in remark for remark in lossy_down.judged.remarks)
    judged = lossy_down.but(counts_taken=("Initiator",)).judged
    assert (judged.verdict, judged.limited_by) == (Verdict.FAIL, "device")
    assert judged.cause is not None
    assert judged.cause.kind == "not known"
    assert not any("dropped" in remark for remark in judged.remarks)
    # What the port drops when it sends is still the tester's.
    sent = {"responder": make_port(rx_dropped=N, tx_dropped=9)}
    assert lossy_down.but(ports=sent, counts_taken=("Initiator", "Responder")).judged.limited_by == "tester"


@pytest.mark.parametrize(
    ("direction", "port", "dropped"),
    [
        (UP, "initiator", "tx_dropped"),
        (UP, "responder", "rx_dropped"),
        (DOWN, "responder", "tx_dropped"),
        (DOWN, "initiator", "rx_dropped"),
    ],
)
def test_a_drop_explains_only_a_frame_that_meets_the_port_that_way(
    direction: Direction, port: str, dropped: str
) -> None:
    ports = {port: make_port(**{dropped: 9})}
    for each in Direction:
        phase2 = {one: lossy(9) if one is each else SECOND for one in Direction}
        judged = clean(plan=PREPARING, phase2=phase2, ports=ports).judged
        found = Verdict.INVALID if each is direction else Verdict.FAIL
        assert (judged.verdict, judged.excused_frames) == (found, 9 if each is direction else 0)


def test_a_drop_explains_one_frame_of_all_streams() -> None:
    """9 drops excused 9 frames of each stream."""
    ports = {"responder": make_port(rx_dropped=12)}
    phase2 = {UP: lossy(9), DOWN: SECOND}
    judged = clean(
        plan=PREPARING, phase1=lossy(9), stored=N - 9, count_after=N - 9, phase2=phase2, ports=ports, loss_tolerance=0.5
    ).judged
    assert (judged.excused_frames, judged.excused_by_direction) == (12, {UP: 3})


def test_an_exchange_of_messages_meets_every_port_both_ways() -> None:
    asked = lossy(9, messages=(arrivals("query", N), arrivals("response", N - 9)))
    for port in ({"responder": make_port(tx_dropped=9)}, {"initiator": make_port(rx_dropped=9)}):
        assert clean(plan=PREPARING, phase2={UP: asked}, ports=port).judged.limited_by == "tester"


def test_frames_that_a_port_refused_while_the_restarted_device_had_the_link_down_are_its_loss() -> None:
    refused = both_phases(
        change_counts(SECOND, offered=N - 9, received=N - 20),
        ports={"responder": make_port(refused=9, tx_dropped=20)},
        link_losses={"Responder": 1},
    )
    assert refused.judged.limited_by == "host"
    restarted = refused.but(restart_at_seconds=0.5, restart=Restart(0.5, 0.7))
    judged = restarted.judged
    assert (judged.verdict, judged.limited_by, judged.failed_phase) == (Verdict.FAIL, "device", 2)
    assert judged.phase2[DOWN].lost == 20
    assert judged.cause is not None
    assert judged.cause.kind != "tester"
    assert hops_in(judged).without_counter == 20
    # The restart did not take the link of that port down.
    other = restarted.but(link_losses={"Initiator": 1}).judged
    assert (other.verdict, other.device_refused) == (Verdict.INVALID, 0)
    assert "ports refused 9 frames" in other.reason
    assert hops_in(other).hops[0].lost > 0


@pytest.mark.parametrize(("limit", "limited_by"), [(65_536, "table"), (65_500, "table"), (40_000, "device")])
def test_a_limit_that_the_device_exceeds_is_none_of_the_whole_table(limit: int, limited_by: str) -> None:
    """VPP's limit is that of each worker, and its count is that of all: two workers were full at half of their room."""
    judged = clean(phase1=lossy(34_464), stored=65_536, count_after=65_536, table_limit=limit).judged
    assert (judged.verdict, judged.limited_by) == (Verdict.FAIL, limited_by)
    assert ("of at most" in judged.reason) == (limited_by == "table")
    kept = clean(count_after=65_536, table_limit=limit).judged
    assert (kept.verdict, kept.limited_by) == (Verdict.FAIL, limited_by)
    assert kept.cause is not None
    assert (kept.cause.kind == "table") == (limited_by == "table")


def test_the_hops_of_a_failed_trial_are_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cause says what limits a loss and what is told of it, and was sought for each."""
    sought: list[Trial] = []

    def once(trial: Trial) -> TrialHops:
        sought.append(trial)
        return hops_in(trial)

    monkeypatch.setattr("natgauge.verdicts.hops_in", once)
    failed = clean(phase1=lossy(10), count_after=N - 10).judged
    assert (failed.verdict, failed.failed_phase) == (Verdict.FAIL, 1)
    assert len(sought) == 1
