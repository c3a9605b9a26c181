# SPDX-License-Identifier: Apache-2.0
"""The search for a metric's highest rate: its settings, where it looks, and what the length of its trials does to it.

Short trials flatter a device: one with queues before it (`queues`), and in `shared` placement every one. A rate that
the tolerated lag may have made by itself is refused (docs/method/search.md).

In `shared` placement lateness decides instead of loss. A trial whose sending lasts T seconds passes when the device's
work ends at most the tolerated lag L later. So a passing rate may exceed the device's own by the share L/T: negligible
in a trial of a second, but dominant in a trial of a hundred microseconds. This rule applies to every search for a rate.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Self, TypeVar

from natgauge.errors import BrokenError, UsageError
from natgauge.figure_text import in_percent
from natgauge.figure_text import number as written
from natgauge.inputs.input import chosen
from natgauge.inputs.measuring_types import ErrorOfSearch, SearchError
from natgauge.measurer import Ability, Measurer
from natgauge.metrics.metric import TRIAL_SECONDS
from natgauge.notes import Note
from natgauge.paired.slices import LEAD_FRAMES, LEAST_FRAMES, RoundPlan, connections_of_block
from natgauge.procedures.kit.binary_search import NEAR, SearchPlan, SearchSpan, search
from natgauge.procedures.kit.frame_counts import forwarding_rate
from natgauge.procedures.kit.procedure import Repetitions
from natgauge.procedures.kit.queues import grade_of, queue_note, with_wait_limit
from natgauge.procedures.kit.results import Measurement, tolerance_note
from natgauge.procedures.kit.runner import Bounds, TrialRunner
from natgauge.procedures.kit.settings import TrialSettings
from natgauge.trials import LAG_SHARE, LEAST_LAG_SECONDS, Trial
from natgauge.words import Quantity

#: The lag may be no more than this share of the requested error.
ERROR_SHARE: Final = 0.1
#: A rate that may be too high by more than this share, and by more than the requested error, is refused.
REFUSED_SHARE: Final = 0.05


class ShortTrialsError(UsageError):
    """The trials of a rate are too short for the tester to determine the rate.

    The device reaches `least_rate` for certain. With `enough` of the setting that decides, trials are long enough.
    """

    def __init__(self, text: str, least_rate: float, enough: float) -> None:
        super().__init__(text)
        self.least_rate, self.enough = least_rate, enough


@dataclass(frozen=True, slots=True)
class Length:
    """Setting that decides how long the trials of a search last.

    Attributes:
        setting: name for the user of the setting that the length is proportional to.
        amount: value of the setting, > 0.
    """

    symbol: str
    setting: str
    amount: float
    unit: str
    advice: str


def length_of_connections(frames: int, what: str = "connections") -> Length:
    """The length of trials whose phase 1 decides: N/R for N frames, which are connections or draws."""
    return Length("N/R", what, frames, what, f"use more {what}")


def length_of_trials(seconds: float) -> Length:
    """The length of trials whose phase 2 decides: T, in seconds."""
    return Length("T", "trial seconds", seconds, "s", "use longer trials")


def lag_share(error: SearchError) -> float:
    """Share of a phase's length by which its sending may be late, where a rate is searched to this error."""
    return LAG_SHARE if error.share is None else min(LAG_SHARE, ERROR_SHARE * error.share)


def most_late_share(seconds: float, error: SearchError) -> float:
    """The largest share by which a rate may be too high whose trial lasted so long."""
    return max(lag_share(error), LEAST_LAG_SECONDS / seconds)


def refuse_short(seconds: float, rate: float, error: SearchError, length: Length) -> None:
    """Refuse a rate that says more of the tester than of the device.

    The seconds are those of the shortest phase whose lateness decided; the rate is the highest that passed.
    """
    too_high = most_late_share(seconds, error)
    wanted = error.width(rate) / rate
    if too_high <= max(REFUSED_SHARE, wanted):
        return
    least = length.amount * LEAST_LAG_SECONDS / (seconds * wanted)
    enough = rounded_up(least) if isinstance(length.amount, int) else math.ceil(least * 1000) / 1000
    needed = f"{enough:,}".removesuffix(".0")
    raise ShortTrialsError(
        f"{length.setting}: with {length.amount:,} a trial sends for {written(seconds * 1000)} ms, and the tester "
        f"notices a lag from {LEAST_LAG_SECONDS * 1000:g} ms on, so the rate could be too high by "
        f"{in_percent(too_high)}; choose at least {needed} {length.unit}",
        rate * seconds / (seconds + LEAST_LAG_SECONDS),
        enough,
    )


def rounded_up(number: float) -> int:
    """Return the number rounded up to two digits."""
    grain = int(10 ** max(math.floor(math.log10(number)) - 1, 0))
    return math.ceil(number / grain) * grain


def short_note(
    measurements: Iterable[Measurement], placement: object, error: SearchError, advice: str, what: str = "the rate"
) -> list[Note]:
    """Return a note on how much rates may be too high, where that is more than the error of the search.

    The repetitions have the figure `TRIAL_SECONDS`; `what` names the rate for the reader.
    """
    known = [
        (repetition.figures[TRIAL_SECONDS], repetition.value)
        for repetition in measurements
        if TRIAL_SECONDS in repetition.figures
    ]
    if placement != "shared" or not known:
        return []
    seconds, value = min(known)
    return late_note(seconds, value, error, advice, what) if value > 0 else []


def late_note(seconds: float, rate: float, error: SearchError, advice: str, what: str = "the rate") -> list[Note]:
    """Return a note on how much a rate in `shared` placement may be too high, where that is more than the error.

    The seconds are those of the deciding trial, the rate is the highest that passed, both > 0. The error is that of the
    search, or the distance between the rates tried.
    """
    too_high = most_late_share(seconds, error)
    if too_high <= error.width(rate) / rate:
        return []
    text = (
        f"the sending lasted {written(seconds * 1000)} ms, of which {LEAST_LAG_SECONDS * 1000:g} ms are tolerated as "
        f"lag, so {what} may be too high by up to {in_percent(too_high)}; {advice}"
    )
    return [Note("short trials", text, value=too_high, grade=grade_of(too_high))]


#: A repetition starts this far below the answer of the one before and first steps up this much; the bounds that come
#: of it are tried as any others.
RESTART = 0.9
RESTART_STRIDE = 1.25
#: Each start is off by up to this share: more than a step of the halved bounds, so that its place on them is a draw.
RESTART_APART = 0.05
#: Where slices or an earlier answer show what to expect, the search begins up to this number of its errors away from
#: it, and no farther than this share: an earlier answer is one of the loads that the device passes.
ERRORS_APART = 2.0
MOST_APART = 0.25
#: The first trial that establishes connections lasts about this long: slow enough for most devices, over soon.
FIRST_TRIAL_SECONDS = 2.0
#: The slowest one of a downward search lasts this long; a device below N in 10 minutes gets the answer 0.
LONGEST_TRIAL_SECONDS = 600.0
#: The search goes down from the tester's highest rate by this factor at least, however large N is.
LEAST_SPAN = 1024.0
#: No more connections than these are opened for it: with more of them the device may be slower.
MOST_IN_SLICES = 200_000
#: Frames of one slice: no cable is timed with them, so the cost of the call itself must be small.
SLICE_FRAMES = 512
#: Number of blocks; the rate follows from their median.
SLICE_BLOCKS = 32


@dataclass(frozen=True, kw_only=True)
class SearchSettings(TrialSettings):
    """Settings of a procedure that searches for a rate.

    A PASS among the repeats of a FAIL replaces it (RFC 9004 section 5 allows repeats). The final bounds are confirmed a
    second time, and a third time where the two differ.
    """

    error: SearchError = chosen(
        SearchError(share=0.01),
        "largest distance of the final bounds, as a share such as 1%, or a rate such as 1000 (frames/s)",
        type=ErrorOfSearch(),
        section="Search",
    )
    loss_verifications: int = chosen(
        0, "repetitions of a failed trial before its load counts as failed", "trials", (0, 100), section="Search"
    )
    confirm: bool = chosen(True, "repeat the trials of both final bounds", section="Search")

    #: Whether frames have a time limit where there are queues before the device.
    limits_waits: ClassVar[bool] = False

    def as_run(self) -> Self:
        """Return these settings, with that time limit."""
        return with_wait_limit(self) if self.limits_waits else self

    @property
    def lag_share(self) -> float:
        """No more than a tenth of the error."""
        return lag_share(self.error)


def top_rate(measurer: Measurer) -> float:
    """The tester's highest rate in frames/s, all directions together."""
    top = measurer.highest_rate
    if not (math.isfinite(top) and top > 0):
        raise BrokenError(f"the tester's own highest rate is {top!r} frames/s; run `natgauge selftest`")
    return top


def lowest_rate(connections: int, top: float) -> float:
    """Return the lowest rate of a downward search for the rate of this many connections, in connections/s."""
    return min(connections / LONGEST_TRIAL_SECONDS, top / LEAST_SPAN)


def near(hint: float, error: SearchError, draw: float) -> float:
    """Return a start near a hint, but not at it: a search that begins at the last answer finds the same again.

    The draw is -1 to 1, another for each repetition.
    """
    share = min(ERRORS_APART * error.width(hint) / hint, MOST_APART)
    return hint * (1 + draw * share)


def own_grid(start: float, draw: float) -> float:
    """Return a start up to a factor of 2 higher, so that repetitions do not halve their bounds at the same loads."""
    return start * math.pow(NEAR, (1 + draw) / 2)


def search_plan(
    settings: SearchSettings, span: SearchSpan, known: float | None, *, draw: float, short_probes: bool
) -> SearchPlan:
    """The search's limits, with start and floor moved between the ends where they lie outside.

    `known` is the answer of an earlier repetition, no more than a hint; None = there was none. `draw` is -1 to 1,
    another for each repetition: its place on the grid of loads.
    """
    lowest = min(span.floor, span.top)
    start = known * RESTART * (1 + draw * RESTART_APART) if known else own_grid(span.start, draw)
    return SearchPlan(
        top=span.top,
        start=min(max(start, lowest), span.top),
        floor=lowest,
        stride=RESTART_STRIDE if known else NEAR,
        error=settings.error,
        short_probes=short_probes,
        invalid_repeats=settings.invalid_repeats,
        loss_verifications=settings.loss_verifications,
        confirm=settings.confirm,
        expected=None if span.expected is None else near(known or span.expected, settings.error, draw),
        unit=span.unit,
        step=span.step,
        tester_top=span.tester_top,
    )


def expected_rate(runner: TrialRunner, settings: TrialSettings, quantity: Quantity) -> float | None:
    """Return the expected rate of the device, frames/s of all directions together; None where slices cannot be used.

    The time per frame of a core limits its frames per second. Slices are not paced, and they last a second in total, so
    that only chooses where the search starts; trials alone decide the result.
    """
    measurer = runner.measurer
    if settings.placement != "shared" or Ability.COSTS not in measurer.abilities or runner.budget.left == 0:
        return None
    connections = min(settings.connections, MOST_IN_SLICES)
    frames = min(SLICE_FRAMES, connections // 2 - LEAD_FRAMES)
    if frames < LEAST_FRAMES:
        return None
    blocks = min(SLICE_BLOCKS, connections // connections_of_block(frames)) if quantity == "new" else SLICE_BLOCKS
    try:
        cost_round = measurer.costs(RoundPlan(connections, {quantity: blocks}, frames=frames, alone=True))
    except (BrokenError, UsageError):
        # Trials report a fault of the device better than slices do.
        return None
    if cost_round.faults:
        return None
    return 1e9 / statistics.median(block.nanoseconds[0] for block in cost_round.work)


SearchT = TypeVar("SearchT", bound=SearchSettings)


class SearchedRate(Repetitions[SearchT]):
    """The highest rate that passes, and how far the length of its trials lets it be too high.

    It is the rate of phase 1, whose frames decide alone, unless a metric says otherwise.
    """

    #: Phase whose frames are what the device forwards; where it is 1, fewer connections may be tried, too.
    phase = 1
    #: Whether the bracket may be found with short trials.
    short_probes = False
    unit = "connections/s"
    #: Expected value; None = no expectation.
    expected: float | None = None

    def search_once(self, known: float | None) -> Measurement:
        """Search once for the rate; arguments and errors as in `once`."""
        plan = search_plan(self.settings, self.span(), known, draw=self.runner.draw, short_probes=self.short_probes)
        return search(plan, self.probe, self._forwarded, self.fewer if self.phase == 1 else None)

    def span(self) -> SearchSpan:
        """Return the range of rates to search."""
        top, frames = top_rate(self.runner.measurer), self.settings.phase1_frames
        start = frames / FIRST_TRIAL_SECONDS
        floor = lowest_rate(frames, top)
        return SearchSpan(top=top, floor=floor, start=start, unit=self.unit, expected=self.expected)

    def probe(self, rate: float, _short: bool, bounds: Bounds) -> Trial:  # noqa: FBT001 - the search's signature
        """Run the trial of a rate."""
        return self.runner.run(self.settings.phase1_plan(rate), rate, bounds)

    def fewer(self, rate: float, connections: int, bounds: Bounds) -> Trial:
        """Run the trial of a rate with fewer connections."""
        return self.runner.run(replace(self.settings.phase1_plan(rate), connections=connections), rate, bounds)

    def _forwarded(self, outcome: Trial) -> float | None:
        return forwarding_rate([outcome.phase1] if self.phase == 1 else outcome.phase2.values())

    def length(self) -> Length:
        """Return the setting that decides how long the trials last."""
        return length_of_connections(self.settings.phase1_frames)

    def seconds(self, rate: float) -> float:
        """Length of the shortest phase of a trial at this rate (> 0) whose lateness decides, in seconds."""
        return self.settings.phase1_frames / rate

    def once(self, known: float | None) -> Measurement:
        """Search once; the figure `TRIAL_SECONDS` is the length of the trial that gave the value.

        ShortTrialsError: the tolerated lag alone may explain the rate.
        """
        repetition = self.search_once(known)
        if not repetition.value:
            return repetition
        seconds = self.seconds(repetition.value)
        if self.settings.placement == "shared":
            refuse_short(seconds, repetition.value, self.settings.error, self.length())
        return repetition.adding(**{TRIAL_SECONDS: seconds})

    def notes(self, measurements: Sequence[Measurement]) -> Sequence[Note]:
        """Return notes on the effects of the tolerated loss, queues and the tolerated lag on the rate."""
        length, settings = self.length(), self.settings
        queued = queue_note(measurements, settings, length.symbol, length.advice)
        short = short_note(measurements, settings.placement, settings.error, length.advice)
        return [*tolerance_note(settings.loss_tolerance), *queued, *short]
