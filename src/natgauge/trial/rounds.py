# SPDX-License-Identifier: Apache-2.0
"""Measurements beside the trials of a procedure: rounds of slices through several devices, and the receiver's run time.

A round of slices goes through devices that run at the same time: the engine's request, and the verdict on its frames.
Costs compare a device with plain forwarding and cables, which are made for the first round.

The kernel receives a frame on the core that sent it. So a device that sends from its own cores (`isolated` placement)
also does the tester's receive work there, and the figure includes that work. It is measured in an additional trial,
like the last trial that passed, while the kernel times the receiver.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from natgauge.agreement.generated import (
    ComparisonRequest,
    Contestant,
    ContestantCounts,
    Phase1,
    ReceiverTime,
    Slices,
    TrialLimits,
    TrialRequest,
)
from natgauge.agreement.process import compare
from natgauge.errors import NatgaugeError
from natgauge.figure_text import with_noun
from natgauge.gateways.recipe import load
from natgauge.host.sampling import Sampling, Stack
from natgauge.inputs.question import USUAL_FRAMES, Cell, FrameOptions
from natgauge.other_traffic import OtherTraffic
from natgauge.paired.ratios import work_of_block
from natgauge.paired.slices import LEAD_FRAMES, HotSpot, RoundPlan, TimedRound
from natgauge.setup.cell import cell_of
from natgauge.tester.cable import CableLab, untranslated_request
from natgauge.tester.own_rates import HighestRates
from natgauge.trial.lab_measurer import LabMeasurer, Recorder
from natgauge.trials import TrialPlan
from natgauge.verdicts import LOG_DROPS
from natgauge.words import QUANTITIES, Family

#: Requests have a rate, which slices do not keep.
RATE: Final = 1e6
NO_SEARCH: Final = HighestRates(RATE, RATE, own_ports=False)
#: Beyond what a round may take the engine gets this long to end.
_SLACK_SECONDS: Final = 15.0
_LONGEST_SECONDS: Final = 600.0
#: The longest name the engine takes.
_LONGEST_NAME: Final = 64
#: This function is on the stack of all processing of a frame by the device, and of no work of the tester.
_RECEIVES: Final = "netif_receive_skb"
#: Functions that are reported.
MOST_FUNCTIONS: Final = 20
#: With fewer samples even the most frequent function would be chance.
LEAST_SAMPLES: Final = 200
#: Neither phase of the trial that times receivers sends for longer, in seconds: enough for ten thousands of frames from
#: any device whose cores the receiver keeps busy at all.
_LONGEST_PHASE_SECONDS: Final = 1.0


class TimedFrames(NamedTuple):
    """Properties of frames on which the cost of the tester and of plain forwarding depends."""

    family: Family
    octets: int
    connections: int
    frames: FrameOptions = USUAL_FRAMES


@dataclass(frozen=True, slots=True)
class TimedGateway:
    """A started gateway whose frames are timed."""

    label: str
    measurer: LabMeasurer
    connections: int

    def request(self) -> TrialRequest:
        """Return the gateway's part of the next round, with its own run mark."""
        self.measurer.number += 1
        return self.measurer.request(TrialPlan(self.connections, RATE))

    def empty(self) -> None:
        """Empty the gateway's table, so that the round's connections are new to it, and its log, which nobody reads."""
        device, log = self.measurer.device, self.measurer.log
        if device is not None and device.empties:
            self.measurer.asking(device.empty)
        if log is not None:
            self.measurer.asking(log.forget)

    def log_drops(self) -> int | None:
        """Number of messages that its log had no room for so far, 0 where it does not tell; None = it does not log."""
        device, log = self.measurer.device, self.measurer.log
        return None if device is None or log is None else self.measurer.asking(device.faults).get(LOG_DROPS, 0)

    def fault(self, counts: ContestantCounts) -> str:
        """Return the error of its frames in a round, or of its settings, which others may have changed."""
        device, asking = self.measurer.device, self.measurer.asking
        counted = None if device is None else asking(device.count)
        changed = "" if device is None else asking(device.found_changed)
        return changed or fault_of(counts, self.connections, counted)


def perform(
    plan: RoundPlan, cpu: int, devices: Sequence[TimedGateway], cables: Sequence[Contestant], recorder: Recorder
) -> TimedRound:
    """Empty all tables, run the round, judge every frame, and record the evidence."""
    for device in devices:
        device.empty()
    timeouts = [device.measurer.settings.udp_timeout for device in devices]
    # A round must end before the device forgets its first connection, also where time-outs are short.
    limit = min([_LONGEST_SECONDS, *(max(timeout - 1, timeout / 2) for timeout in timeouts if timeout is not None)])
    blocks = {quantity: plan.blocks.get(quantity, 0) for quantity in QUANTITIES}
    own = [Contestant(name=device.label[-_LONGEST_NAME:], trial=device.request()) for device in devices]
    request = ComparisonRequest(
        seed=plan.seed % 2**64,
        cpu=cpu,
        contestants=(*own, *cables),
        slices=Slices(frames=plan.frames, lead=LEAD_FRAMES, **blocks),
        limits=TrialLimits(seconds=limit),
    )
    dropped = [device.log_drops() for device in devices]
    result = compare(request, seconds=limit + _SLACK_SECONDS)
    drops = {
        position: max(0, now - before)
        for position, (device, before) in enumerate(zip(devices, dropped, strict=True))
        if before is not None and (now := device.log_drops()) is not None
    }
    counts = result.contestants
    found = [device.fault(own_counts) for device, own_counts in zip(devices, counts, strict=False)]
    found += [
        fault_of(cable_counts, cable.trial.connections, None)
        for cable, cable_counts in zip(cables, counts[len(devices) :], strict=True)
    ]
    faults = {position: fault for position, fault in enumerate(found) if fault}
    recorder.add_round({"request": request, "result": result, "void": faults})
    offered = sum(one.offered_frames for one in counts)
    return TimedRound(
        work=tuple(work_of_block(block.quantity, block.order, block.ns, plan.frames) for block in result.blocks),
        faults=faults,
        slices=sum(len(block.ns) for block in result.blocks),
        interrupted=sum(block.interrupted for block in result.blocks),
        waited=sum(block.waited for block in result.blocks),
        log_drops=drops,
        other_traffic=OtherTraffic(sum(one.foreign for one in counts), offered, result.wall_ns / 1e9),
    )


def fault_of(counts: ContestantCounts, connections: int, counted: int | None) -> str:
    """Return the error of a contestant's frames in a round; empty = there is none.

    `counted` is the device's number of connections after the round; None = not reported.
    """
    for name, stream in (("new", counts.new), ("up", counts.initiator), ("down", counts.responder)):
        wrong = {"duplicated": stream.duplicates, "late": stream.late, **stream.wrong_in_words}
        if stream.received_frames != stream.made_frames or any(wrong.values()):
            more = "".join(f", {number} {kind}" for kind, number in wrong.items() if number)
            return f"{name}: {stream.received_frames} of {stream.made_frames} frames came back{more}"
    if counts.refused_frames or counts.damaged_unmarked:
        refused = with_noun(counts.refused_frames, "frames")
        return f"{refused} refused by the tester's ports, {counts.damaged_unmarked} damaged"
    if counts.stored != connections:
        return f"{counts.stored} of {connections} connections were learned"
    if counts.remapped:
        return f"{with_noun(counts.remapped, 'frames of established connections')} came with another outside source"
    if counted is not None and counted < connections:
        return f"it counts {counted} connections after {connections} were opened"
    return ""


def forwarding_of(frames: TimedFrames, place: Mapping[str, object]) -> Cell:
    """Return the cell of plain forwarding of such frames, in a lab with these options."""
    # A mix is in place of the size.
    size = {} if frames.frames.frame_sizes else {"frame_size": frames.octets}
    traffic: Mapping[str, object] = {"connections": frames.connections, **size, **frames.frames.stated}
    return cell_of(load(f"linux-{frames.family}").origin, {**traffic, **place})[0]


def over_cable(frames: TimedFrames, lab: CableLab, cpu: int, connections: int | None = None) -> Contestant:
    """Return a cable's part of a round; `connections` None = the number of `frames`."""
    trial = untranslated_request(
        lab.initiator,
        lab.responder,
        family=frames.family,
        frame_size=frames.octets,
        connections=frames.connections if connections is None else connections,
        phase1=Phase1(rate=RATE),
        phase2=None,
        sender_cpus=(cpu,),
        frames=frames.frames,
    )
    return Contestant(name="cable", trial=trial)


@dataclass(slots=True)
class CostRounds:
    """Rounds of a device, plain forwarding and cables; the references have labs of their own on the device's core.

    `start_forwarding` takes the name of such a lab. What ends the references is put on `made`.
    """

    frames: Sequence[TimedFrames]
    cpu: int
    start_forwarding: Callable[[TimedFrames, str], LabMeasurer]
    made: ExitStack
    _references: list[tuple[LabMeasurer, CableLab]] = field(default_factory=list, init=False)

    def round(self, measurer: LabMeasurer, plan: RoundPlan) -> TimedRound:
        """Perform one round of slices through this measurer's device, and record it."""
        devices = [TimedGateway("device", measurer, plan.connections)]
        if plan.settle_seconds:
            devices[0].empty()
            measurer.sleep(plan.settle_seconds)
        cables = []
        if not plan.alone:
            for frames in self.frames[len(self._references) :]:
                cable = self.made.enter_context(CableLab(_lab_name(f"cable-{frames.family}")))
                forwarding = self.start_forwarding(frames, _lab_name(f"plain-{frames.family}"))
                self._references.append((forwarding, cable))
            for frames, (forwarding, cable) in zip(self.frames, self._references, strict=True):
                devices.append(TimedGateway("plain forwarding", forwarding, plan.connections))
                cables.append(over_cable(frames, cable, self.cpu, plan.connections))
        sampling = Sampling(self.cpu) if plan.sampled else None
        with sampling or nullcontext():
            done = perform(plan, self.cpu, devices, cables, measurer.recorder)
        if sampling is None:
            return done
        return replace(done, hot_spots=hot_spots(sampling.stacks, _established_seconds(done, plan.frames)))


def _established_seconds(done: TimedRound, frames: int) -> float | None:
    """Return the seconds of slices over open connections, leads included; None where all slices opened connections."""
    established = [sum(work.nanoseconds) for work in done.work if work.quantity != "new"]
    # Two slices of each place.
    return sum(established) / 1e9 * 2 * (LEAD_FRAMES + frames) if established else None


def _lab_name(what: str) -> str:
    return f"cost-{os.getpid()}-{what}"


def hot_spots(stacks: Sequence[Stack], seconds: float | None = None) -> tuple[HotSpot, ...]:
    """Return the functions with most samples of the device's work, most first; none where samples are too few.

    The stacks are in the order of time. Only the last `seconds` of the device's work count; None = all.
    """
    own = [stack for stack in stacks if any(_RECEIVES in function for function in stack.functions)]
    if own and seconds is not None:
        own = [stack for stack in own if stack.seconds >= own[-1].seconds - seconds]
    if len(own) < LEAST_SAMPLES:
        return ()
    samples = Counter(stack.functions[0] for stack in own)
    return tuple(HotSpot(function, number / len(own)) for function, number in samples.most_common(MOST_FUNCTIONS))


def receiver_seconds(measurer: LabMeasurer) -> float | None:
    """Return the receiver's seconds per frame on the device's cores; None = no trial passed, or not measurable.

    One trial is run, like the measurer's last one that passed; it is neither judged nor recorded.
    """
    plan = measurer.passed
    if plan is None or measurer.place.placement != "isolated":
        return None
    measurer.observer.stage("timing the tester's receivers on the device's cores")
    try:
        return seconds_of(measurer.time_receivers(shortened(plan)))
    except NatgaugeError:
        # What was measured before is worth more than this; the result says that it is not known.
        return None


def seconds_of(time: ReceiverTime | None) -> float | None:
    """Return the seconds of one run, without the cost of timing; None = no run, or too short to measure."""
    if time is None or not time.runs or not time.empty_runs:
        return None
    nanoseconds = time.runs_ns / time.runs - time.empty_runs_ns / time.empty_runs
    return nanoseconds / 1e9 if nanoseconds > 0 else None


def shortened(plan: TrialPlan) -> TrialPlan:
    """Return a plan with the same frames and rates, at most `_LONGEST_PHASE_SECONDS` per phase, without a pause."""
    phase2 = plan.phase2
    if phase2 is not None:
        phase2 = replace(phase2, seconds=min(phase2.seconds, _LONGEST_PHASE_SECONDS), step=None, periods=1)
    connections = plan.connections
    if plan.has_phase1:
        connections = min(connections, max(1, round(plan.phase1_rate * _LONGEST_PHASE_SECONDS)))
    return replace(
        plan,
        connections=connections,
        phase2=phase2,
        delays_from_seconds=0.0,
        delay_samples=None,
        record_loss_times=False,
        restart_at_seconds=None,
        settle_seconds=0.0,
    )
