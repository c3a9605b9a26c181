# SPDX-License-Identifier: Apache-2.0
"""From the evidence of one trial to its verdict: PASS, FAIL, INVALID or COLLAPSED.

Pure: no clock, no lab, no engine. RFC 9693 sections 4.5 and 4.7 pass a trial when every frame came back. What must be
added is whose fault it is when that did not happen, and what "came back" is worth where the device cannot lose frames:

* `shared` placement: the device runs in the sender's context, so an overloaded device slows the sending down and loses
  nothing. It fails when the schedule is not held by the end of the phase, once the time in which the CPU was taken away
  is set aside.
* `isolated` and `external` placement: an overloaded device loses frames. A late sender is the tester's own fault there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from natgauge.measurer import Counts, Direction, Verdict
from natgauge.words import Placement

Role = Literal["sender", "watched"]

#: Share of the nominal sending time by which a sender may be behind at the end. Ten times below the usual error of a
#: search (1 %), so it does not blur the answer; far above the few batches a healthy sender is ever behind.
LAG_SHARE = 0.001
#: Floor of the same in seconds: three batches of 64 frames at 1 M frames/s; below it lag is the batch, not the device.
LEAST_LAG_SECONDS = 200e-6
#: Share of the nominal sending time by which a phase may be over too early: sent faster is not what was asked.
HASTE_SHARE = 0.01
#: A CPU that did nothing of its task for longer than this was disturbed. These are the gaps the engine starts to count
#: at: a sender is never without work, a watched CPU is sampled more coarsely.
STALL_BOUND_SECONDS: Mapping[Role, float] = {"sender": 0.001, "watched": 0.005}
#: Stolen time is read from /proc/stat, whose grain is 10 ms: one tick is the least that can be seen.
STOLEN_BOUND_SECONDS = 0.010
#: Loss that a stall can explain, in multiples of the frames due while it lasted: once for the frames that arrived at a
#: device that stood still (or left in one burst after the sender stood still), and once for the burst's own duration
#: while the sender catches up. A loss beyond that is the device's.
EXPLAINED_BY_STALL = 2.0
#: A count this near the table's limit means that the table is full: per-CPU counters and eviction leave a little room.
FULL_SHARE = 0.999


@dataclass(frozen=True, slots=True)
class CpuStalls:
    """What one CPU of the sender or the device missed during the trial; seconds, all >= 0."""

    cpu: int
    role: Role
    stalls: int
    stalled_seconds: float
    worst_stall_seconds: float
    stolen_seconds: float = 0.0

    @property
    def disturbed(self) -> bool:
        """Whether the CPU was taken away for longer than the bounds allow."""
        stalled = self.stalls > 0 and self.worst_stall_seconds > STALL_BOUND_SECONDS[self.role]
        return stalled or self.stolen_seconds >= STOLEN_BOUND_SECONDS

    @property
    def lost_seconds(self) -> float:
        """Seconds without work: the larger of what was seen as stalls and what the hypervisor admits."""
        return max(self.stalled_seconds, self.stolen_seconds)


@dataclass(frozen=True, slots=True)
class PortFacts:
    """What went wrong at one of the tester's own ports; frames, all >= 0."""

    refused: int = 0
    redirect_errors: int = 0
    rx_dropped: int = 0
    tx_dropped: int = 0


@dataclass(frozen=True, slots=True)
class TrialEvidence:
    """All that a verdict is made of.

    Attributes:
        placement: where the device's work is done.
        connections: N, the connections phase 1 had to establish; 0 = there was no phase 1.
        stored: connections the Responder learned in phase 1.
        phase1: counts of phase 1.
        phase2: counts of each active direction of phase 2.
        preparation: phase 1 only prepares phase 2, so its own lag does not matter.
        each_once: every frame of phase 1 opens a connection of its own; False for enumeration with replacement.
        table_count_before: the device's own count before phase 1; None where it cannot tell.
        table_count_after: the same after phase 1.
        table_limit: the most connections the device is set to hold; None where unknown.
        strays: connections that parts of the device hold which must hold none, by their names.
        cpus: stalls of the senders' and the device's CPUs.
        ports: the tester's own ports by name.
        dropped_before: frames dropped at the device's places of the lab before the trial, by the place's name; the
            tester's own ports are in `ports`.
        dropped_after: the same after the trial.
        loss_tolerance: share of the offered frames that may be lost; 0 <= share < 1.
        device_alive: whether the device still answers its controls; None where it has none.
        device_error: what it said instead of answering; empty when it did.
        restarted: the device was restarted during phase 2, so its own count says nothing of phase 1, and what phase 2
            lost is what the trial is for.
    """

    placement: Placement
    connections: int
    stored: int
    phase1: Counts
    phase2: Mapping[Direction, Counts] = field(default_factory=dict)
    preparation: bool = False
    each_once: bool = True
    table_count_before: int | None = None
    table_count_after: int | None = None
    table_limit: int | None = None
    strays: Mapping[str, int] = field(default_factory=dict)
    cpus: tuple[CpuStalls, ...] = ()
    ports: Mapping[str, PortFacts] = field(default_factory=dict)
    dropped_before: Mapping[str, int] = field(default_factory=dict)
    dropped_after: Mapping[str, int] = field(default_factory=dict)
    loss_tolerance: float = 0.0
    device_alive: bool | None = None
    device_error: str = ""
    restarted: bool = False

    @property
    def dropped(self) -> dict[str, int]:
        """Frames dropped during the trial at the device's places of the lab, only where any were."""
        new = {place: count - self.dropped_before.get(place, 0) for place, count in self.dropped_after.items()}
        return {place: count for place, count in sorted(new.items()) if count > 0}

    @property
    def established(self) -> int | None:
        """The device's own count, where it speaks of phase 1."""
        return None if self.restarted or not self.connections else self.table_count_after


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict and why; fields as in `TrialOutcome`."""

    verdict: Verdict
    reason: str = ""
    limited_by: str | None = None
    failed_phase: Literal[1, 2] | None = None
    disturbed: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Stream:
    """The counts of one direction of one phase, with its name and number."""

    phase: Literal[1, 2]
    name: str
    counts: Counts
    lag_matters: bool


def judge(evidence: TrialEvidence) -> Judgement:
    """Decide how a trial ended; the first rule that applies decides.

    The order is: the device is gone; the trial did not start from an empty table; the tester did not offer what was
    intended; then phase 1 and after it phase 2 (wrong frames, loss, lag), because a phase 2 after a failed phase 1
    says nothing.
    """
    rules = (_gone(evidence), _not_empty(evidence), _refused(evidence), _strayed(evidence), *_streams_judged(evidence))
    decided = next((judgement for judgement in rules if judgement is not None), Judgement(Verdict.PASS))
    return Judgement(
        verdict=decided.verdict,
        reason=decided.reason,
        limited_by=decided.limited_by,
        failed_phase=decided.failed_phase,
        disturbed=any(cpu.disturbed for cpu in evidence.cpus),
        notes=tuple(_notes(evidence)),
    )


def lag_tolerance(nominal_seconds: float) -> float:
    """Seconds a sender may be behind its schedule at the end of a phase of this nominal length."""
    return max(LAG_SHARE * nominal_seconds, LEAST_LAG_SECONDS)


def _streams_judged(evidence: TrialEvidence) -> Iterable[Judgement | None]:
    first = _Stream(1, "phase 1", evidence.phase1, lag_matters=not evidence.preparation)
    yield from _stream_judged(evidence, first)
    yield _incomplete(evidence)
    for direction, counts in evidence.phase2.items():
        name = f"phase 2 from the {direction.value.capitalize()}"
        yield from _stream_judged(evidence, _Stream(2, name, counts, lag_matters=True))


def _stream_judged(evidence: TrialEvidence, stream: _Stream) -> Iterable[Judgement | None]:
    yield _not_offered(evidence, stream)
    yield _hasty(stream)
    yield _wrong(stream, evidence)
    yield _lost(evidence, stream)
    yield _behind(evidence, stream)


def _gone(evidence: TrialEvidence) -> Judgement | None:
    if evidence.device_alive is not False:
        return None
    came = evidence.phase1.received + sum(counts.received for counts in evidence.phase2.values())
    back = f"{came} frames had come back" if came else "no frame came back"
    what = "did not come back from its restart" if evidence.restarted else "no longer answers its controls"
    said = f" ({evidence.device_error})" if evidence.device_error else ""
    return Judgement(Verdict.COLLAPSED, f"the device {what}{said}; {back}", limited_by="device")


def _not_empty(evidence: TrialEvidence) -> Judgement | None:
    if not evidence.table_count_before:
        return None
    reason = f"the device's table held {evidence.table_count_before} connections before phase 1 instead of none"
    return Judgement(Verdict.INVALID, reason, limited_by="host")


def _strayed(evidence: TrialEvidence) -> Judgement | None:
    """A chain that keeps state where it should have none is not the one that was to be measured."""
    if not evidence.strays:
        return None
    held = ", ".join(f"{count} connections at {name}" for name, count in evidence.strays.items())
    return Judgement(Verdict.FAIL, f"the device keeps {held}, which must hold none", limited_by="device")


def _refused(evidence: TrialEvidence) -> Judgement | None:
    refused = sum(port.refused for port in evidence.ports.values())
    errors = sum(port.redirect_errors for port in evidence.ports.values())
    if refused == 0 and errors == 0:
        return None
    reason = f"the tester's own ports refused {refused} frames, with {errors} redirect errors"
    return Judgement(Verdict.INVALID, reason, limited_by="tester")


def _not_offered(evidence: TrialEvidence, stream: _Stream) -> Judgement | None:
    """A trial whose frames did not all reach the port never passes (RFC 2544 section 26.1 speaks of offered frames)."""
    counts = stream.counts
    # A reading that found no connection is excused only where loss was tolerated and some really are missing.
    missing = evidence.stored < evidence.connections
    due = counts.intended - (counts.skipped if missing else 0)
    if counts.offered == due:
        return None
    reason = f"{stream.name}: {counts.offered} frames were offered instead of {due}"
    return Judgement(Verdict.INVALID, reason, limited_by="tester")


def _hasty(stream: _Stream) -> Judgement | None:
    """A tester that sent faster than asked; no device can make it."""
    counts = stream.counts
    early = counts.nominal_seconds - counts.sending_seconds
    if not counts.sending_seconds or early <= max(HASTE_SHARE * counts.nominal_seconds, LEAST_LAG_SECONDS):
        return None
    reason = (
        f"{stream.name}: the tester sent {counts.nominal_seconds:.3f} s of frames in {counts.sending_seconds:.3f} s"
    )
    return Judgement(Verdict.INVALID, reason, limited_by="tester")


def _wrong(stream: _Stream, evidence: TrialEvidence) -> Judgement | None:
    """Frames that came back wrong: no stall explains them, and a leak is a finding whatever loss is tolerated."""
    counts = stream.counts
    wrong = {
        "untranslated": counts.untranslated,
        "mistranslated": counts.mistranslated,
        "damaged": counts.damaged,
        "duplicated": counts.duplicates,
    }
    found = {name: number for name, number in wrong.items() if number}
    leaked = counts.untranslated + counts.mistranslated
    tolerated = counts.lost + counts.duplicates <= evidence.loss_tolerance * counts.offered
    if not found or (not leaked and tolerated):
        return None
    named = ", ".join(f"{number} {name}" for name, number in found.items())
    reason = f"{stream.name}: {named} of {counts.offered} frames, {counts.lost} lost in all"
    return Judgement(Verdict.FAIL, reason, limited_by="device", failed_phase=stream.phase)


def _lost(evidence: TrialEvidence, stream: _Stream) -> Judgement | None:
    counts = stream.counts
    if counts.received >= (1 - evidence.loss_tolerance) * counts.offered:
        return None
    limited_by = _loss_limit(evidence, stream)
    reason = f"{stream.name}: {_loss_figures(evidence, stream)}"
    if limited_by == "device":
        explained = _explained_loss(evidence, stream)
        if counts.lost <= explained:
            disturbance = _disturbance(evidence)
            cause = "tester" if _tester_drops(evidence) else "host"
            return Judgement(
                Verdict.INVALID, f"{reason}, which {disturbance} can explain (up to {explained:.0f})", limited_by=cause
            )
    return Judgement(Verdict.FAIL, reason, limited_by=limited_by, failed_phase=stream.phase)


def _loss_figures(evidence: TrialEvidence, stream: _Stream) -> str:
    counts = stream.counts
    if counts.received == 0:
        return f"none of {counts.offered} frames came back{_table_figures(evidence)}"
    late = f", {counts.late} of them late" if counts.late else ""
    share = counts.lost / counts.offered
    tolerance = f", tolerated {evidence.loss_tolerance:.3%}" if evidence.loss_tolerance else ""
    places = "".join(f", {count} at {place}" for place, count in evidence.dropped.items())
    table = _table_figures(evidence) if stream.phase == 1 else ""
    return f"{counts.lost} of {counts.offered} frames lost ({share:.3%}{late}{tolerance}{places}){table}"


def _table_figures(evidence: TrialEvidence) -> str:
    if evidence.established is None:
        return ""
    limit = "" if evidence.table_limit is None else f" of at most {evidence.table_limit}"
    return f"; the device's table held {evidence.established} connections{limit}"


def _loss_limit(evidence: TrialEvidence, stream: _Stream) -> str:
    """Whether a loss of phase 1 is the table's: it is full, or nothing but the table can have dropped the frames."""
    count = evidence.established
    if stream.phase != 1 or count is None or count >= evidence.connections:
        return "device"
    if evidence.table_limit is not None:
        return "table" if count >= FULL_SHARE * evidence.table_limit else "device"
    # In `shared` placement no queue stands before the device, so what was not forwarded was refused by it.
    refused_by_table = evidence.placement == "shared" and count == evidence.stored and count > 0
    return "table" if refused_by_table else "device"


def _explained_loss(evidence: TrialEvidence, stream: _Stream) -> float:
    """Frames whose loss disturbances of the tester or the host can explain.

    No stall explains any in `shared`, where nothing queues, nor what is lost while the device is restarted.
    """
    drops, counts = _tester_drops(evidence), stream.counts
    if evidence.placement == "shared" or (evidence.restarted and stream.phase == 2):
        return float(drops)
    rate = counts.offered / counts.nominal_seconds if counts.nominal_seconds > 0 else 0.0
    stalled = sum(cpu.lost_seconds for cpu in evidence.cpus if cpu.disturbed)
    return drops + EXPLAINED_BY_STALL * rate * stalled


def _tester_drops(evidence: TrialEvidence) -> int:
    return sum(port.rx_dropped + port.tx_dropped for port in evidence.ports.values())


def _disturbance(evidence: TrialEvidence) -> str:
    found = [f"{drops} frames dropped at the tester's own ports"] if (drops := _tester_drops(evidence)) else []
    found += [
        f"CPU {cpu.cpu} ({cpu.role}) standing still for {cpu.lost_seconds * 1000:.1f} ms"
        for cpu in evidence.cpus
        if cpu.disturbed
    ]
    return " and ".join(found)


def _stalled(evidence: TrialEvidence, counts: Counts) -> float:
    """Seconds the senders stood still in this phase; over the whole trial where the phase's own are not known."""
    senders = [cpu for cpu in evidence.cpus if cpu.role == "sender" and cpu.disturbed]
    if counts.stalled_seconds is None or not senders:
        return max((cpu.lost_seconds for cpu in senders), default=0.0)
    return counts.stalled_seconds


def _behind(evidence: TrialEvidence, stream: _Stream) -> Judgement | None:
    counts = stream.counts
    tolerance = lag_tolerance(counts.nominal_seconds)
    if not stream.lag_matters or counts.final_lag_seconds <= tolerance:
        return None
    stalled = _stalled(evidence, counts)
    own_lag = counts.final_lag_seconds - stalled
    figures = (
        f"{stream.name}: {counts.final_lag_seconds * 1000:.2f} ms behind the schedule at the end "
        f"(tolerated {tolerance * 1000:.2f} ms, nominal {counts.nominal_seconds:.3f} s)"
    )
    if own_lag <= tolerance:
        reason = f"{figures}, which {stalled * 1000:.2f} ms of a stalled sender explain"
        return Judgement(Verdict.INVALID, reason, limited_by="host")
    if evidence.placement != "shared":
        return Judgement(Verdict.INVALID, f"{figures}: the tester is too slow", limited_by="tester")
    return Judgement(Verdict.FAIL, figures, limited_by="device", failed_phase=stream.phase)


def _incomplete(evidence: TrialEvidence) -> Judgement | None:
    """Phase 1 lost nothing, but did it establish the connections? RFC 9693 section 4.6 warns: forwarded is not that."""
    if evidence.each_once and evidence.stored < (1 - evidence.loss_tolerance) * evidence.connections:
        reason = f"phase 1: the Responder learned {evidence.stored} of {evidence.connections} connections"
        return Judgement(Verdict.FAIL, reason, limited_by="device", failed_phase=1)
    count = evidence.established
    if count is None or count == evidence.stored or evidence.phase1.lost:
        return None
    if not evidence.each_once and count < evidence.stored:
        # Frames with the same four tuple were learned as connections of their own; the device rightly has one.
        return None
    reason = f"phase 1: {evidence.stored} connections were forwarded, but the device's table holds {count}"
    if count == 0:
        return Judgement(Verdict.INVALID, f"{reason}: count and traffic contradict each other", limited_by="host")
    if count > evidence.stored:
        return Judgement(Verdict.INVALID, f"{reason}: something else opens connections too", limited_by="host")
    return Judgement(Verdict.FAIL, reason, limited_by="table", failed_phase=1)


def _notes(evidence: TrialEvidence) -> Iterable[str]:
    for cpu in evidence.cpus:
        if cpu.disturbed:
            yield (
                f"CPU {cpu.cpu} ({cpu.role}) stalled {cpu.stalls} times, {cpu.stalled_seconds * 1000:.1f} ms in all, "
                f"{cpu.worst_stall_seconds * 1000:.1f} ms at worst; {cpu.stolen_seconds * 1000:.0f} ms stolen"
            )
    for name, port in evidence.ports.items():
        if port.rx_dropped or port.tx_dropped:
            yield f"port {name} dropped {port.rx_dropped} received and {port.tx_dropped} sent frames"
    if evidence.table_count_after is None and evidence.connections and not evidence.restarted:
        yield "the device cannot tell its own number of connections, so phase 1 is not checked against it"
