# SPDX-License-Identifier: Apache-2.0
"""From one trial to its verdict: PASS, FAIL, INVALID or COLLAPSED.

These functions are pure: they use no clock, no lab and no engine. By RFC 9693 sections 4.5 and 4.7 a trial passes when
every frame came back. This module also decides who caused a failure, and judges devices that cannot lose frames:

* `shared` placement: the device runs in the sender's context, so an overloaded device slows the sending down and loses
  nothing. The device fails when the phase ends late, after the device's work is done, and the time in which the CPU was
  taken away does not explain the delay.
* `isolated` and `external` placement: an overloaded device loses frames. A late sender is the tester's own fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

from natgauge.agreement.generated import Cpu, StreamCounts
from natgauge.causes.cause import Cause, facts_of
from natgauge.causes.hops import TableState, TrialHops, cause_of
from natgauge.figure_text import in_percent, with_noun
from natgauge.readings import Readings
from natgauge.trial_record import hops_in
from natgauge.trials import (
    LEAST_LAG_SECONDS,
    Direction,
    Modifiers,
    Trial,
    TrialPlan,
    is_disturbed,
    lag_tolerance,
    lost_seconds,
)
from natgauge.words import MAXIMUM_CONNECTIONS, LimitedBy, Verdict, origin

#: Counter of a log's messages, of one or several records each, that found no room on their way to what writes them.
LOG_DROPS = "log_drops"
#: A table that holds more than this multiple of its limit has another one; an entry is counted before it is refused.
_EXCEEDED: Final = 1.001
#: The tester's ports that frames meet on their way up, and on their way down.
_UP: Final = (("Initiator", "sent"), ("Responder", "received"))
_DOWN: Final = (("Responder", "sent"), ("Initiator", "received"))
#: Share of the nominal sending time by which a phase may end early; beyond it the tester sent faster than intended.
HASTE_SHARE = 0.01
#: Loss that stalls can explain where the due times of lost frames are not known, as a multiple of the frames due during
#: the stalls: once for the frames that arrived at a stalled device (or left in one burst after a sender's stall), and
#: once for the duration of that burst while the sender catches up.
EXPLAINED_BY_STALL = 2.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of what a trial can show: of the device's table, where it is known, and of the traffic's four tuples.

    `log_tolerance` is the share of the connections that the device's log may lack.
    """

    table_limit: int | None = None
    four_tuples: int = MAXIMUM_CONNECTIONS
    log_tolerance: float = 0.0


@dataclass(frozen=True)
class _Case:
    trial: Trial
    limits: Limits

    # Several rules ask for these, so they are made once for a trial.
    @cached_property
    def streams(self) -> Sequence[_Stream]:
        return tuple(_streams(self))

    @cached_property
    def tester_drops(self) -> Mapping[str, int]:
        """Lost frames that the tester's own ports explain, by the name of the stream.

        Each drop explains one frame: of the first stream whose frames meet the port that way.
        """
        left = {
            (name, way): frames
            for name, drops in _port_drops(self).items()
            for way, frames in zip(("received", "sent"), drops, strict=True)
        }
        explained = {}
        for stream in self.streams:
            lost = stream.counts.lost
            for place in _met_ports(stream):
                taken = min(lost, left.get(place, 0))
                left[place] = left.get(place, 0) - taken
                lost -= taken
            explained[stream.name] = stream.counts.lost - lost
        return explained

    @cached_property
    def hops(self) -> TrialHops:
        return hops_in(self.trial)

    @property
    def plan(self) -> TrialPlan:
        return self.trial.plan

    @property
    def readings(self) -> Readings:
        return self.trial.readings

    @property
    def modifiers(self) -> Modifiers:
        """Conditions of phase 2 beside its rates."""
        return (self.plan.phase2 and self.plan.phase2.modifiers) or Modifiers()

    @property
    def disturbed(self) -> list[Cpu]:
        """CPUs that were taken away."""
        return list(filter(is_disturbed, self.trial.cpus))

    @property
    def connections(self) -> int:
        """N, the connections phase 1 had to establish; 0 = there was no phase 1."""
        return 0 if self.plan.stateless else min(self.plan.connections, self.limits.four_tuples)

    @property
    def preparation(self) -> bool:
        """Whether phase 1 only prepares phase 2, so that its own lag does not matter."""
        return self.plan.phase2 is not None and self.plan.phase2.reading_order != "once"

    @property
    def each_once(self) -> bool:
        """Whether every frame of phase 1 opens a connection of its own."""
        return self.plan.order != "with-replacement"

    @property
    def churns(self) -> bool:
        """Whether phase 2 opens connections, too."""
        return self.plan.phase2 is not None and self.plan.phase2.churn is not None

    @property
    def restarted(self) -> bool:
        """Whether the device was restarted during phase 2, whose loss is then what the trial measures."""
        return self.plan.restart_at_seconds is not None

    @property
    def established(self) -> int | None:
        """The device's own count, where it is that of phase 1."""
        elsewhere = self.restarted or self.churns or not self.connections
        return None if elsewhere else self.readings.count_after

    @property
    def table_limit(self) -> int | None:
        """The most connections that the device's table holds; None = not known.

        What the device exceeds is no limit of the whole: VPP's is that of each worker, and its count is that of all.
        """
        limit = self.limits.table_limit
        return None if limit is not None and (self.most_counted or 0) > _EXCEEDED * limit else limit

    @property
    def most_counted(self) -> int | None:
        """The device's own highest count; None = it was not read."""
        churn = self.readings.count_in_churn
        counts = (self.readings.count_after, None if churn is None else churn.count)
        return max((count for count in counts if count is not None), default=None)

    @property
    def left_open(self) -> int | None:
        """The device's own number of open TCP connections after connections were closed; None where it is not known."""
        return None if self.plan.close is None else self.readings.established


class _Ruling(NamedTuple):
    """The decision of one rule; its fields are those of a trial."""

    verdict: Verdict
    reason: str
    limited_by: LimitedBy | None = None
    excused: bool = False
    failed_phase: int | None = None
    cause: Cause | None = None


@dataclass(frozen=True, slots=True)
class _Stream:
    """The counts of one direction of one phase, with the phase's name and number; phase 1 has no direction."""

    phase: int
    name: str
    counts: StreamCounts
    lag_matters: bool
    direction: Direction | None = None
    opens: bool = False


def judge(trial: Trial, limits: Limits) -> Trial:
    """Return the trial with its verdict; the first rule that applies decides.

    The order is: the device collapsed; others changed a setting of its machine; the table was not empty before the
    trial; the tester did not offer all intended frames, or the queue before the device was full; wrong frames, loss and
    lag of phase 1; the same of phase 2; connections that were to be closed and are open; connections that the device's
    log lacks. Phase 2 is late because it says nothing after a failed phase 1.
    """
    case = _Case(trial, limits)
    before = (_gone, _changed, _not_empty, _refused, _queue_full, _strayed)
    rules = (*(rule(case) for rule in before), *_streams_judged(case), _left_open(case), _unlogged(case))
    decided = next((ruling for ruling in rules if ruling is not None), _Ruling(Verdict.PASS, ""))
    return replace(
        trial,
        **decided._replace(cause=decided.cause or _cause_of(case, decided))._asdict(),
        disturbed=bool(case.readings.link_losses or case.disturbed)
        or max(case.readings.throttled_seconds, case.readings.read_late_seconds) > 0,
        excused_frames=sum(_excused(case, stream) for stream in case.streams),
        excused_by_direction={
            stream.direction: excused
            for stream in case.streams
            if stream.direction is not None and (excused := _excused(case, stream))
        },
        remarks=tuple(_remarks(case)),
    )


def _cause_of(case: _Case, decided: _Ruling) -> Cause | None:
    """Return the cause of a failure of the device; None where it is not a matter of lost frames."""
    if decided.verdict is not Verdict.FAIL or decided.limited_by == "server":
        return None
    opens = decided.failed_phase == 1 or any(stream.opens and stream.counts.lost for stream in case.streams)
    cause, held = _cause(case, opens=opens), case.established
    unkept = decided.failed_phase == 1 and held is not None and held < case.connections
    # Frames that came twice, connections that are open: nothing was lost that a counter could have.
    return cause if cause.lost or unkept else None


def _cause(case: _Case, *, opens: bool) -> Cause:
    """Return the cause of a loss; that of frames that open connections may be the table."""
    table = _table(case)
    refused = opens and (table.held is None or case.churns or table.held < case.connections)
    return cause_of(case.hops, table, opens=refused)


def _table(case: _Case) -> TableState:
    """The device's table when frames were lost; the last openings of a phase 2 may fill it after it was read."""
    if not case.churns or case.restarted:
        return TableState(case.established, case.table_limit, offered=case.connections)
    opened = [each.offered_frames for each in (case.trial.openings, case.trial.flood) if each is not None]
    return TableState(case.most_counted, case.table_limit, sum(opened))


def _streams(case: _Case) -> Iterable[_Stream]:
    yield _Stream(1, "phase 1", case.trial.phase1, lag_matters=not case.preparation, opens=True)
    churn = (("new connections", case.trial.openings, True), ("closings", case.trial.closings, False))
    for what, counted, opens in churn:
        if counted is not None:
            yield _Stream(2, f"{what} of phase 2", counted, lag_matters=True, opens=opens)
    for direction, counts in case.trial.phase2.items():
        yield _Stream(2, f"phase 2 {origin(direction)}", counts, lag_matters=True, direction=direction)


def _streams_judged(case: _Case) -> Iterable[_Ruling | None]:
    for stream in case.streams:
        yield from _stream_judged(case, stream)
        if stream.phase == 1:
            yield _incomplete(case)
    if case.trial.flood is not None:
        # Whether it was sent is the tester's matter. What is lost of it fails nothing.
        flood = _Stream(2, "flood of phase 2", case.trial.flood, lag_matters=False)
        yield from (_too_many(flood), _not_offered(case, flood), _hasty(case, flood))


def _stream_judged(case: _Case, stream: _Stream) -> Iterable[_Ruling | None]:
    yield _too_many(stream)
    yield _not_offered(case, stream)
    yield _hasty(case, stream)
    if case.plan.at_rate:
        yield _untimed(case, stream)
    yield _wrong(stream, case)
    yield _lost(case, stream)
    yield _behind(case, stream)


def _gone(case: _Case) -> _Ruling | None:
    """A device that forwards nothing has collapsed. Silent controls alone do not show that."""
    read = case.readings
    silent = read.device_alive is False
    if not silent and read.unprobed:
        reason = f"whether the device still forwards is not known: single frames could not be sent ({read.unprobed})"
        return _Ruling(Verdict.INVALID, reason, limited_by="host")
    if not silent and read.forwards is not False:
        return None
    if not silent:
        controls = ", although it answers its controls" if read.device_alive else ""
        reason = f"the device forwards nothing any more{controls}: {_unreturned(case)}"
        return _Ruling(Verdict.COLLAPSED, reason, limited_by="device")
    what = "did not come back from its restart" if case.restarted else "no longer answers its controls"
    why = f" ({read.device_error})" if read.device_error else ""
    if read.forwards is False:
        came = case.trial.phase1.received_frames + sum(counts.received_frames for counts in case.trial.phase2.values())
        back = f"{with_noun(came, 'frames')} had come back" if came else "no frame had come back"
        reason = f"the device {what}{why} and forwards nothing: {_unreturned(case)}; {back}"
        return _Ruling(Verdict.COLLAPSED, reason, limited_by="device")
    forwards = ", although it forwards" if read.forwards else ""
    if read.unprobed:
        forwards = f"; whether it forwards is not known, since single frames could not be sent ({read.unprobed})"
    return _Ruling(Verdict.INVALID, f"the device {what}{why}{forwards}", limited_by="host")


def _unreturned(case: _Case) -> str:
    """Return how it shows that the device forwards nothing; between periods no single frames can be sent."""
    if case.plan.phase2 is not None and case.plan.phase2.periods > 1:
        return "no frame came back in the period, after the link of a tester's port had gone down"
    return "no single frame came back after the trial"


def _changed(case: _Case) -> _Ruling | None:
    """Judge nothing of a device whose machine had other settings than the result states."""
    changed = case.readings.found_changed
    return _Ruling(Verdict.INVALID, changed, limited_by="host") if changed else None


def _not_empty(case: _Case) -> _Ruling | None:
    if not case.readings.count_before:
        return None
    reason = (
        f"the device's table held {with_noun(case.readings.count_before, 'connections')} before phase 1 instead of none"
    )
    return _Ruling(Verdict.INVALID, reason, limited_by="host")


def _strayed(case: _Case) -> _Ruling | None:
    """Fail a chain that keeps connections in a part that must be stateless: it is not the chain under test."""
    if not case.readings.strays:
        return None
    held = ", ".join(f"{with_noun(count, 'connections')} at {name}" for name, count in case.readings.strays.items())
    return _Ruling(Verdict.FAIL, f"the device keeps {held}, which must hold none", limited_by="device")


def _refused(case: _Case) -> _Ruling | None:
    # A tap refuses the frames that find the queue before the device full, a port those of a link that is down.
    refused = sum(port.refused for port in case.trial.ports.values()) - case.trial.device_refused
    errors = sum(port.redirect_errors for port in case.trial.ports.values())
    if refused == 0 and errors == 0:
        return None
    reason = (
        f"the tester's own ports refused {with_noun(refused, 'frames')}, with {with_noun(errors, 'redirect errors')}"
    )
    if links := _links(case):
        return _Ruling(Verdict.INVALID, f"{reason}, which {links} can explain", limited_by="host")
    return _Ruling(Verdict.INVALID, reason, limited_by="tester")


def _queue_full(case: _Case) -> _Ruling | None:
    """Judge frames lost to a full queue before the device; a stalled sender catches up in bursts, which fill it."""
    full = sum(port.refused for port in case.trial.ports.values())
    if not full or not case.readings.taps:
        return None
    streams, tolerance = case.streams, case.plan.loss_tolerance
    stream = next((each for each in streams if each.counts.lost > tolerance * each.counts.due_frames), None)
    if stream is None and tolerance:
        return None
    stream = stream or streams[-1]
    reason = f"{stream.name}: {full} of {stream.counts.intended_frames} frames found the queue before the device full"
    stalled = _stalled(case, stream.counts)
    rate = _whole_rate(case, stream, stream.counts.intended_frames)
    if full <= rate * stalled:
        excuse = f"{reason}, which a sender stalled for {stalled * 1000:.1f} ms can explain"
        return _Ruling(Verdict.INVALID, excuse, limited_by="host", excused=True)
    if reading := _read_late(case, stream.phase):
        return _Ruling(Verdict.INVALID, f"{reason}, which {reading} can explain", limited_by="host", excused=True)
    return _Ruling(Verdict.FAIL, reason, limited_by="device", failed_phase=stream.phase)


def _too_many(stream: _Stream) -> _Ruling | None:
    """Refuse counts that cannot be: each frame is counted once, so no device can return more of them than were sent."""
    counts = stream.counts
    if counts.received_frames <= counts.offered_frames:
        return None
    reason = (
        f"{stream.name}: more frames arrived than were sent: {counts.received_frames} arrived, "
        f"{counts.offered_frames} were sent"
    )
    return _Ruling(Verdict.INVALID, reason, limited_by="host")


def _not_offered(case: _Case, stream: _Stream) -> _Ruling | None:
    """A trial whose frames did not all reach the port never passes (RFC 2544 section 26.1 is about offered frames)."""
    counts = stream.counts
    # Skipped frames are excused only where loss was tolerated and connections really are missing.
    missing = case.trial.stored < case.connections or case.churns
    due = counts.intended_frames - (counts.unopened or 0) - (counts.skipped if missing else 0)
    if counts.offered_frames == due:
        return None
    reason = f"{stream.name}: {with_noun(counts.offered_frames, 'frames were', 'frame was')} offered instead of {due}"
    return _Ruling(Verdict.INVALID, reason, limited_by="tester")


def _whole_seconds(case: _Case, stream: _Stream) -> float:
    """Return the nominal length of a phase without the time in which groups of its connections begin."""
    return stream.counts.nominal_seconds - (case.modifiers.ramp_seconds if stream.phase == 2 else 0.0)


def _whole_rate(case: _Case, stream: _Stream, frames: int) -> float:
    """Return the rate in frames/s of so many frames of a phase while all groups of its connections send."""
    whole, seconds = _whole_seconds(case, stream), stream.counts.nominal_seconds
    # While the groups begin, half of the rate is sent, on average.
    return 2 * frames / (whole + seconds) if seconds > 0 else 0.0


def _hasty(case: _Case, stream: _Stream) -> _Ruling | None:
    """Refuse a trial in which the tester sent faster than intended; no device can cause that."""
    counts = stream.counts
    early = counts.nominal_seconds - counts.sending_seconds
    if not counts.sending_seconds or early <= max(HASTE_SHARE * _whole_seconds(case, stream), LEAST_LAG_SECONDS):
        return None
    reason = (
        f"{stream.name}: the tester sent {counts.nominal_seconds:.3f} s of frames in {counts.sending_seconds:.3f} s"
    )
    return _Ruling(Verdict.INVALID, reason, limited_by="tester")


def _wrong(stream: _Stream, case: _Case) -> _Ruling | None:
    """Judge wrong frames: no stall explains them, and untranslated frames fail a trial whatever loss is tolerated."""
    counts = stream.counts
    wrong = {
        **counts.wrong_in_words,
        "duplicated": counts.duplicates,
        "with wrong content": counts.wrong_content,
    }
    faults = {name: number for name, number in wrong.items() if number}
    leaked = counts.untranslated + counts.mistranslated
    # A disturbance explains frames that did not come, and none that came back wrong.
    spoiled = min(counts.lost, sum(wrong.values()) - counts.duplicates)
    lost_frames = max(counts.lost - _excused(case, stream), spoiled)
    tolerated = lost_frames + counts.duplicates <= case.plan.loss_tolerance * counts.due_frames
    if not faults or (not leaked and tolerated):
        return None
    named = ", ".join(f"{number} {name}" for name, number in faults.items())
    lost = f"{counts.lost} lost in all{_icmp_errors(case)}"
    reason = f"{stream.name}: {named} of {counts.due_frames} frames, {lost}"
    return _Ruling(Verdict.FAIL, reason, limited_by="device", failed_phase=stream.phase)


def _lost(case: _Case, stream: _Stream) -> _Ruling | None:
    counts = stream.counts
    if counts.received_frames >= (1 - case.plan.loss_tolerance) * counts.due_frames:
        return None
    limited_by = _loss_limit(case, stream)
    reason = f"{stream.name}: {_loss_figures(case, stream)}"
    excused = _excused(case, stream) if limited_by == "device" else 0
    if excused and counts.received_frames + excused >= (1 - case.plan.loss_tolerance) * counts.due_frames:
        cause: LimitedBy = "tester" if case.tester_drops[stream.name] else "host"
        excuse = f"{reason}, which {_disturbance(case, stream)} can explain ({_explained(case, stream)})"
        return _Ruling(Verdict.INVALID, excuse, limited_by=cause, excused=True)
    if excused and counts.lost_in_stalls is not None:
        reason += f", {excused} of the lost frames excused by {_disturbance(case, stream)}"
    return _Ruling(Verdict.FAIL, reason, limited_by=limited_by, failed_phase=stream.phase)


def _loss_figures(case: _Case, stream: _Stream) -> str:
    counts = stream.counts
    late_delays = counts.late_delays(case.plan.frame_timeout_seconds)
    if counts.received_frames == 0 and counts.late:
        late = f"{counts.late} came back later{'' if late_delays is None else f': {late_delays}'}"
        return f"none of {counts.offered_frames} frames came back in time, {late}{_table_figures(case)}"
    if counts.received_frames == 0:
        return f"none of {counts.offered_frames} frames came back{_table_figures(case)}{_icmp_errors(case)}"
    late = f", {counts.late} of them late" if counts.late else ""
    share = counts.lost / counts.due_frames
    unopened = f", {counts.unopened} of them to connections whose opening did not arrive" if counts.unopened else ""
    tolerance = f", tolerated {in_percent(case.plan.loss_tolerance)}" if case.plan.loss_tolerance else ""
    dropped = {
        **{place: count for place, count in sorted(case.readings.dropped.items()) if count > 0},
        **({"the server's sockets": case.readings.server_dropped} if case.readings.server_dropped else {}),
    }
    places = "".join(f", {count} at {place}" for place, count in dropped.items())
    rest = f"{_table_figures(case) if stream.phase == 1 else ''}{_icmp_errors(case)}"
    rest += "" if late_delays is None else f"; late frames: {late_delays}"
    rest = f"{_loss_by_size(counts)}{rest}"
    of = f"{in_percent(share)}{late}{unopened}{tolerance}{places}"
    return f"{counts.lost} of {counts.due_frames} frames lost ({of}){rest}"


def _loss_by_size(counts: StreamCounts) -> str:
    """The lost frames of each size of a mix, as the end of a sentence; empty where all frames have one size."""
    lost = [size for size in counts.sizes or () if size.received_frames < size.made_frames]
    each = [f"{one.made_frames - one.received_frames} of {one.made_frames} of {one.octets} octets" for one in lost]
    return f"; by size: {', '.join(each)}" if each else ""


def _icmp_errors(case: _Case) -> str:
    """ICMP errors about the tester's frames, as the end of a sentence; empty without errors."""
    ports = case.trial.ports.values()
    mtu = min((port.path_mtu for port in ports if port.path_mtu), default=None)
    named = "" if mtu is None else f", of an MTU of {mtu}"
    too_big, others = sum(port.too_big for port in ports), sum(port.icmp_errors for port in ports)
    words = f"; {too_big} ICMP errors said that a frame is too big{named}" if too_big else ""
    return f"{words}; {others} ICMP errors were about other faults" if others else words


def _table_figures(case: _Case) -> str:
    if case.established is None:
        return ""
    limit = "" if case.table_limit is None else f" of at most {case.table_limit}"
    return f"; the device's table held {with_noun(case.established, 'connections')}{limit}"


def _loss_limit(case: _Case, stream: _Stream) -> LimitedBy:
    """Return what caused a loss: the device, the real server, or in phase 1 the full table or the outside ports.

    The server caused it when the trial would have passed without the queries that the server dropped or read late; both
    had passed the device. Of a device that asks the server and did not read all itself, late answers say nothing of the
    server. The table caused it when its limit is known and reached, or a counter says so. Without either, a single
    trial cannot distinguish a full table from a device that opens only a share of the connections
    (`natgauge.procedures.kit.losses`).
    """
    counts, count = stream.counts, case.established
    read_late = 0 if counts.asked is not None and case.readings.unread else counts.late
    behind = case.readings.server_dropped + read_late if case.readings.server_dropped else 0
    if behind and counts.received_frames + behind >= (1 - case.plan.loss_tolerance) * counts.due_frames:
        return "server"
    if not stream.opens or (count is not None and count >= case.connections):
        return "device"
    cause = _cause(case, opens=True)
    # A search ends where no rate cures a loss, so a guess is not enough.
    return "device" if cause.is_doubtful else cause.limited_by


def _excused(case: _Case, stream: _Stream) -> int:
    """Return the number of lost frames that disturbances of the tester or the host explain.

    In `shared` placement nothing queues, so a stall explains only frames that were due in it: what the tester sends to
    catch up comes faster than the rate, and a device that limits rates drops it. Stalls explain no loss while the
    device restarts. Stolen time has a resolution of 10 ms and no position in time; it counts only where the lost
    frames' times are not known.
    """
    return min(stream.counts.lost, int(_explained_loss(case, stream)))


def _explained_loss(case: _Case, stream: _Stream) -> float:
    drops, counts = case.tester_drops[stream.name], stream.counts
    if case.readings.forwards is False:
        # Whatever went down with the device, it would have forwarded nothing.
        return 0
    if _takes_unknown(case, stream):
        return counts.lost
    if case.restarted and stream.phase == 2:
        # A port whose link the restart took down drops frames, too.
        return 0 if case.readings.link_losses else drops
    if counts.lost_in_stalls is not None:
        return drops + counts.lost_in_stalls
    if case.trial.placement == "shared":
        return drops
    rate = _whole_rate(case, stream, counts.offered_frames)
    stalled = sum(map(lost_seconds, case.disturbed))
    return drops + EXPLAINED_BY_STALL * rate * stalled


def _takes_unknown(case: _Case, stream: _Stream) -> bool:
    """Whether something took frames of which it is not known when, or how many: a link that was down, or a reading."""
    return not case.restarted and bool(case.readings.link_losses or _read_late(case, stream.phase))


def _explained(case: _Case, stream: _Stream) -> str:
    """Number of explained frames, as a part of a sentence."""
    if _takes_unknown(case, stream):
        return "how many is not known"
    if stream.counts.lost_in_stalls:
        return f"{stream.counts.lost_in_stalls} were due during or shortly after the stalls"
    return f"up to {_explained_loss(case, stream):.0f} frames"


def _port_drops(case: _Case) -> dict[str, tuple[int, int]]:
    """Received and sent frames that each of the tester's own ports dropped."""
    ports = case.trial.ports
    if case.readings.taps:
        # The port's drops include the frames that found its queue full, and frames that receivers took.
        return {name: (0, max(0, port.tx_dropped - port.refused)) for name, port in ports.items()}
    taken = case.readings.counts_taken
    return {name: (0 if name in taken else port.rx_dropped, port.tx_dropped) for name, port in ports.items()}


def _met_ports(stream: _Stream) -> Sequence[tuple[str, str]]:
    """Ports that frames of a stream meet, and which way; reactions go back the other way."""
    there, back = (_DOWN, _UP) if stream.direction is Direction.RESPONDER else (_UP, _DOWN)
    return (*there, *back) if len(stream.counts.messages) > 1 else there


def _disturbance(case: _Case, stream: _Stream) -> str:
    placed = stream.counts.lost_in_stalls is not None
    drops = case.tester_drops[stream.name]
    causes = [f"{with_noun(drops, 'frames')} dropped at the tester's own ports"] if drops else []
    causes += [links] if (links := _links(case)) else []
    causes += [reading] if (reading := _read_late(case, stream.phase)) else []
    if case.readings.throttled_seconds:
        causes += [f"a CPU quota that stopped the tester for {case.readings.throttled_seconds * 1000:.0f} ms"]
    causes += [
        f"CPU {cpu.cpu} ({cpu.role}) stalled for "
        f"{(cpu.stalled_ns / 1e9 if placed else lost_seconds(cpu)) * 1000:.1f} ms"
        for cpu in case.disturbed
        if cpu.stalls or not placed
    ]
    return " and ".join(causes)


def _links(case: _Case) -> str:
    """Links of the tester's own ports that went down, as a part of a sentence; empty where none did."""
    losses = case.readings.link_losses.items()
    return " and ".join(f"the link of the {name}'s port going down ({times} x)" for name, times in losses)


def _read_late(case: _Case, phase: int = 2) -> str:
    """Reading of the device that reached into a phase, as a part of a sentence; empty where none did."""
    # Phase 1 is before the first reading.
    seconds = case.readings.read_late_seconds if phase == 2 else 0.0
    text = "natgauge's own reading of gateway and lab"
    return f"{text} ({seconds * 1000:.0f} ms longer than the pause)" if seconds else ""


def _stalled(case: _Case, counts: StreamCounts) -> float:
    """Return the senders' stalls in this phase, in s; 0 where no sender was disturbed."""
    return counts.stalled_seconds if any(cpu.role == "sender" for cpu in case.disturbed) else 0.0


def _behind(case: _Case, stream: _Stream) -> _Ruling | None:
    counts = stream.counts
    tolerance = lag_tolerance(_whole_seconds(case, stream), case.plan.lag_share)
    lag = counts.final_lag_seconds
    if case.trial.placement == "shared":
        # The device's work is included.
        lag = max(lag, counts.settled_lag_seconds)
    if not stream.lag_matters or lag <= tolerance:
        return None
    stalled = _stalled(case, counts)
    own_lag = lag - stalled
    figures = (
        f"{stream.name}: {lag * 1000:.2f} ms behind the schedule at the end "
        f"(tolerated {tolerance * 1000:.2f} ms, nominal {counts.nominal_seconds:.3f} s)"
    )
    between = _between_frames(case, stream)
    if own_lag <= max(tolerance, between):
        quota = f" ({stopped})" if (stopped := _quota(case)) else ""
        reason = f"{figures}, which {stalled * 1000:.2f} ms of a stalled sender explain{quota}"
        if own_lag > tolerance:
            # The device had no work left before the last frame.
            reason = f"{figures}, no more than the {between * 1000:.3g} ms between two frames: the sender woke up late"
        # Elsewhere a late sender would not have been held against the device.
        return _Ruling(Verdict.INVALID, reason, limited_by="host", excused=case.trial.placement == "shared")
    if case.trial.placement != "shared":
        return _Ruling(Verdict.INVALID, f"{figures}: the tester is too slow", limited_by="tester")
    slow = Cause("slow", "seen", remedy="a lower rate")
    return _Ruling(Verdict.FAIL, figures, limited_by="device", failed_phase=stream.phase, cause=slow)


def _untimed(case: _Case, stream: _Stream) -> _Ruling | None:
    """Refuse a time at a rate that was not sent, whatever was lost; frames were due long before they were sent."""
    late = _behind(case, stream)
    if late is None or late.verdict is Verdict.INVALID:
        return late
    # A restart is timed, and lost frames are known by when they were due. Else a device that slows the sender fails.
    reason = f"{late.reason}, so lost frames cannot be compared with the restart"
    return _Ruling(Verdict.INVALID, reason, limited_by="host") if case.restarted else None


def _between_frames(case: _Case, stream: _Stream) -> float:
    """Return the mean time between two frames of a phase, in s: its streams leave together, from the same senders."""
    together = [each.counts for each in case.streams if each.phase == stream.phase]
    if stream.phase == 2 and case.trial.flood is not None:
        together.append(case.trial.flood)
    seconds = max(counts.nominal_seconds for counts in together)
    return seconds / max(1, sum(counts.intended_frames for counts in together))


def _quota(case: _Case) -> str:
    """Time for which a CPU quota stopped the tester, in words; empty where none did."""
    seconds = case.readings.throttled_seconds
    return f"a CPU quota stopped the tester for {seconds * 1000:.0f} ms" if seconds else ""


def _incomplete(case: _Case) -> _Ruling | None:
    """Compare the device's table with the forwarded frames of a phase 1 whose loss is tolerated.

    A forwarded frame is not yet an established connection (RFC 9693 section 4.6). The device may have stored
    connections whose frames were lost behind it, so its count may exceed the Responder's by the loss, and is never
    below it.
    """
    if case.each_once and case.trial.stored < (1 - case.plan.loss_tolerance) * case.connections:
        reason = f"phase 1: the Responder learned {case.trial.stored} of {case.connections} connections"
        return _Ruling(Verdict.FAIL, reason, limited_by="device", failed_phase=1)
    count = None if case.plan.close is not None else case.established
    return None if count is None else _contradicted(case, count) or _missing(case, count)


def _left_open(case: _Case) -> _Ruling | None:
    """Fail a trial whose segments all arrived, but after which the device still calls closed connections open."""
    tolerated = case.plan.loss_tolerance * case.connections
    if case.left_open is None or case.left_open <= tolerated:
        return None
    reason = f"{case.left_open} of {case.connections} closed connections are open by the device's own list"
    return _Ruling(Verdict.FAIL, reason, limited_by="device", failed_phase=2 if case.trial.phase2 else 1)


def _unlogged(case: _Case) -> _Ruling | None:
    """Fail a trial that forwarded every frame, but whose log lacks connections or leads to others (RFC 6888 section 4).

    A lost frame is no lost record: only connections that the Responder learned must be in the log. A log that was not
    compared decides nothing.
    """
    if (error := case.readings.log_error) is not None:
        return _Ruling(Verdict.INVALID, error.text, limited_by=error.limited_by)
    log, tolerance = case.readings.log, case.limits.log_tolerance
    if log is None or not log.exceeds(tolerance):
        return None
    if log.excused and log.faulty - log.excused <= tolerance * log.connections:
        excuse = f"{log.words}, which stalls can explain: {log.excused:,} were due during or shortly after them"
        return _Ruling(Verdict.INVALID, excuse, limited_by="host", excused=True)
    tolerated = f" (tolerated {in_percent(tolerance)})" if tolerance else ""
    dropped = max(0, case.readings.faults.get(LOG_DROPS, 0))
    seen = f"; {dropped:,} of its messages found no room" if dropped else ""
    cause = Cause(
        "log",
        "seen",
        hop="gateway",
        counter=LOG_DROPS if dropped else "",
        remedy=facts_of(LOG_DROPS).knob,
        # Nobody knows how many connections a dropped message named: IPFIX has several in one, a block many.
        lost=log.faulty,
    )
    phase = 2 if case.churns else 1
    return _Ruling(Verdict.FAIL, f"{log.words}{tolerated}{seen}", limited_by="log", failed_phase=phase, cause=cause)


def _contradicted(case: _Case, count: int) -> _Ruling | None:
    """Refuse a count that the trial's traffic cannot cause."""
    lost = case.trial.phase1.lost
    text = f"phase 1: {case.trial.stored} connections were forwarded, but the device's table holds {count}"
    if count == 0 and case.trial.stored and not lost:
        return _Ruling(Verdict.INVALID, f"{text}: count and traffic contradict each other", limited_by="host")
    if count > case.trial.stored + lost + case.modifiers.entries:
        return _Ruling(Verdict.INVALID, f"{text}: something else opens connections too", limited_by="host")
    return None


def _missing(case: _Case, count: int) -> _Ruling | None:
    """Judge connections that were forwarded, or at least tried, and are missing in the table."""
    lost = case.trial.phase1.lost
    # With replacement, the Responder learned frames of the same four tuple as several connections; the device has one.
    if count < case.trial.stored and case.each_once:
        reason = f"phase 1: {case.trial.stored} connections were forwarded, but the device's table holds {count}"
        limited_by: LimitedBy = "table" if _full(case, count) else "device"
        return _Ruling(Verdict.FAIL, reason, limited_by=limited_by, failed_phase=1)
    if lost and _full(case, count):
        reason = f"phase 1: {lost} of {case.trial.phase1.offered_frames} frames lost{_table_figures(case)}: it was full"
        return _Ruling(Verdict.FAIL, reason, limited_by="table", failed_phase=1)
    return None


def _full(case: _Case, count: int) -> bool:
    """Whether the table is too small for all connections, and full."""
    limit = case.table_limit
    return limit is not None and case.connections > limit and TableState(count, limit).is_full


def _stream_remarks(case: _Case) -> Iterable[str]:
    for stream in case.streams:
        if excused := _excused(case, stream):
            yield f"{stream.name}: {excused} of {stream.counts.lost} lost frames are excused"
        if stream.counts.asked is not None:
            yield f"{stream.name}: the device asked the far side {with_noun(stream.counts.asked, 'times')}"


def _remarks(case: _Case) -> Iterable[str]:
    for cpu in case.disturbed:
        yield (
            f"CPU {cpu.cpu} ({cpu.role}) stalled {with_noun(cpu.stalls, 'times')}, "
            f"{cpu.stalled_ns / 1e9 * 1000:.1f} ms in all, {cpu.worst_stall_ns / 1e9 * 1000:.1f} ms at worst; "
            f"{cpu.stolen_ns / 1e9 * 1000:.0f} ms stolen"
        )
    yield from _stream_remarks(case)
    if links := _links(case):
        yield f"disturbed by {links}"
    if reading := _read_late(case):
        yield f"disturbed by {reading}"
    if quota := _quota(case):
        yield quota
    for name, (received, sent) in _port_drops(case).items():
        if received or sent:
            yield f"port {name} dropped {received} received and {sent} sent frames"
    counted = case.readings.count_in_churn
    if counted is not None and counted.expected is not None and counted.deviates:
        yield (
            f"{counted.seconds:.1f} s after the start of phase 2 the device held {counted.count} connections, where "
            f"{counted.expected:.0f} are expected"
        )
    yield from _log_remarks(case)
    if case.readings.count_after is None and case.connections and not case.restarted:
        yield "the device does not report its number of connections, so phase 1 is not checked against it"


def _log_remarks(case: _Case) -> Iterable[str]:
    """What a log that is complete enough lacks all the same, and what its records lack."""
    log = case.readings.log
    if log is None:
        return
    if not log.exceeds(case.limits.log_tolerance) and log.is_odd:
        yield log.words
    if not log.outside_named:
        yield "records name no outside address and port, so the log alone leads nobody back to a subscriber"
