# SPDX-License-Identifier: Apache-2.0
"""Reset time (RFC 6201, named by RFC 8219 section 7.7): how long a restarted device forwards nothing.

Both sides send at half of the throughput; meanwhile the device is restarted by its own software. Its connections are
gone then: the Initiator's frames come through as soon as it forwards again, the Responder's only when their connection
has been opened anew by a frame of the Initiator. So there are two instants, and both are told.

Two methods: the time stamps' (longest silence at the receiver, RFC 6201 section 3.2) and the loss's (lost frames over
the offered rate). Where single frames are lost besides, or connections come back one by one, the second is longer.

Loss is what the trial is for, so its verdict is FAIL, and what is read are its counts. A device whose rules come back
after its forwarding leaks meanwhile: frames that it did not translate are not forwarded ones, but they are told.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from natgauge.errors import BrokenError, UsageError
from natgauge.measurer import Ability, Counts, Measurer, TrialPlan
from natgauge.procedures import loaded
from natgauge.procedures.loaded import Loaded, LoadedSettings
from natgauge.procedures.procedure import Procedure
from natgauge.procedures.progress import Observer, ignore
from natgauge.procedures.rates import disturbed_note, repeat
from natgauge.procedures.results import Measurement, MeasurementResult, make_result
from natgauge.procedures.settings import about, in_range, refuse_unable

METRIC = "reset"
UNIT = "ms"
#: RFC 6201 section 4.1: traffic flows for 15 s before the reset.
RFC_BEFORE_SECONDS = 15.0
#: Silences that end this near to the end of the trial mean that nothing came back.
TAIL_SHARE = 0.05


@dataclass(frozen=True, kw_only=True)
class Settings(LoadedSettings):
    """Settings of the reset time; `trial_seconds` is the length of the whole phase 2.

    Attributes:
        before_seconds: frames are sent for so long before the reset, below `trial_seconds`; RFC 6201 wants 15.
        load: rate as a share of the throughput, 0.01 to 1.
    """

    trial_seconds: float = field(default=12.0, metadata=about("length of phase 2", "s"))
    before_seconds: float = field(default=2.0, metadata=about("time for which frames are sent before the reset", "s"))
    load: float = field(default=0.5, metadata=about("rate as a share of the throughput", "share"))

    def __post_init__(self) -> None:
        """Refuse what is out of range or contradictory."""
        super().__post_init__()
        in_range("before seconds", self.before_seconds, 0.1, 3600, "s")
        in_range("load", self.load, 0.01, 1)
        if self.before_seconds >= self.trial_seconds:
            raise UsageError(
                f"before seconds: {self.before_seconds:g} s leave nothing of the trial's {self.trial_seconds:g} s; "
                "give more trial seconds"
            )

    def needs(self) -> frozenset[Ability]:
        """A restart while frames flow, and when none came."""
        return super().needs() | {Ability.RESTART_IN_TRIAL, Ability.LOSS_TIMES}

    def reset_plan(self, phase1_rate: float, rate: float) -> TrialPlan:
        """A trial in which the device is restarted."""
        plan = self.plan(phase1_rate, rate, self.trial_seconds)
        return replace(plan, restart_at_seconds=self.before_seconds, record_loss_times=True)


def run(measurer: Measurer, settings: Settings, observe: Observer = ignore) -> MeasurementResult:
    """Measure the reset time in ms, of the direction that comes back later.

    Raises:
        BrokenError: no phase 1 works, the device forwards at no rate, it does not come back from its restart, or
            nothing comes through within the trial.
        NatgaugeError: a trial could not be run at all.
    """
    refuse_unable(measurer.abilities, METRIC, settings)
    ready = loaded.start(measurer, METRIC, settings, observe)
    rate = ready.throughput * settings.load
    measurements = repeat(ready.runner, settings.repeat, lambda _: _once(ready, settings, rate))
    notes = [
        f"{rate:.0f} frames/s in each direction; the reset is one of the device's software, not of its power",
        *_before_note(settings),
        *ready.preparation.note(),
        *disturbed_note(measurements),
    ]
    return make_result(METRIC, UNIT, settings.parameters(), measurements, notes)


def _before_note(settings: Settings) -> list[str]:
    if settings.before_seconds >= RFC_BEFORE_SECONDS:
        return []
    return [f"{settings.before_seconds:g} s before the reset; RFC 6201 section 4 wants {RFC_BEFORE_SECONDS:g} s"]


def _once(ready: Loaded, settings: Settings, rate: float) -> Measurement:
    ready.start_repetition()
    outcome = ready.must(rate, settings.reset_plan(ready.preparation.rate, rate), 1)
    if outcome.restart is None:
        raise BrokenError(f"{METRIC}: the device was not restarted in the trial")
    reset = _Reset(outcome.restart.began, settings.trial_seconds, rate)
    figures: dict[str, float] = {"restart_ms": (outcome.restart.ended - outcome.restart.began) * 1000}
    silences = {}
    notes = []
    for direction, counts in outcome.phase2.items():
        who, name = direction.value.capitalize(), direction.value
        begin, end = _silence(who, counts, reset)
        silences[direction] = end - begin
        figures[f"silence_ms_from_{name}"] = (end - begin) * 1000
        figures[f"back_after_ms_from_{name}"] = (end - reset.began) * 1000
        figures[f"loss_ms_from_{name}"] = counts.lost / rate * 1000
        figures[f"untranslated_frames_from_{name}"] = float(counts.untranslated)
        if counts.untranslated:
            notes.append(f"{counts.untranslated} frames from the {who} left the device untranslated while it was reset")
    return ready.measurement(max(silences.values()) * 1000, figures=figures, notes=notes)


@dataclass(frozen=True, slots=True)
class _Reset:
    """When the device was told to stop and when the trial was over, in seconds of phase 2; frames/s of a direction."""

    began: float
    over: float
    rate: float

    @property
    def left(self) -> float:
        """Seconds of the trial after the reset."""
        return self.over - self.began


def _silence(who: str, counts: Counts, reset: _Reset) -> tuple[float, float]:
    """When the longest silence began and ended, in seconds of phase 2.

    Raises:
        BrokenError: frames did not come back, or the silence has nothing to do with the reset.
    """
    if counts.longest_silence is None:
        raise BrokenError(f"{METRIC}: nothing came from the {who}")
    begin, end = counts.longest_silence
    # A silence that nothing ends is none between two arrivals, but it loses all that is sent after the reset.
    if end >= (1 - TAIL_SHARE) * reset.over or counts.lost >= (1 - TAIL_SHARE) * reset.left * reset.rate:
        raise BrokenError(
            f"{METRIC}: frames from the {who} were not back {reset.left:.3g} s after the reset; give more trial seconds"
        )
    if end < reset.began:
        raise BrokenError(f"{METRIC}: the longest silence from the {who} was before the reset: it did not interrupt")
    return begin, end


PROCEDURE = Procedure(
    metric=METRIC,
    unit=UNIT,
    summary="time for which a restarted device forwards nothing, in each direction",
    source="RFC 6201, RFC 8219 section 7.7",
    settings=Settings,
    run=run,
)
