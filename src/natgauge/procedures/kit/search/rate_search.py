# SPDX-License-Identifier: Apache-2.0
"""The search for a metric's highest rate: its settings, and where it looks."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import ClassVar, Self

from natgauge.errors import BrokenError, UsageError
from natgauge.inputs.input import chosen
from natgauge.inputs.measuring_types import ErrorOfSearch, SearchError
from natgauge.measurer import Ability, Measurer
from natgauge.paired.slices import LEAD_FRAMES, LEAST_FRAMES, RoundPlan, connections_of_block
from natgauge.procedures.kit.runner import TrialRunner
from natgauge.procedures.kit.search import late_frames, queues
from natgauge.procedures.kit.search.binary_search import NEAR, SearchPlan
from natgauge.procedures.kit.settings import TrialSettings
from natgauge.words import Quantity

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
        return queues.limited(self) if self.limits_waits else self

    @property
    def lag_share(self) -> float:
        """No more than a tenth of the error."""
        return late_frames.lag_share(self.error)


def top_rate(measurer: Measurer) -> float:
    """The tester's highest rate in frames/s, all directions together."""
    top = measurer.highest_rate
    if not (math.isfinite(top) and top > 0):
        raise BrokenError(f"the tester's own highest rate is {top!r} frames/s; run `natgauge selftest`")
    return top


@dataclass(frozen=True, slots=True)
class SearchSpan:
    """Range of a search, in frames/s of one direction; in some procedures a frame opens a connection or is a query.

    Attributes:
        expected: expected end of the search, > 0; None = nothing is known.
        step: loads are multiples of it; 0 = any load.
    """

    top: float
    floor: float
    start: float
    expected: float | None = None
    unit: str = "frames/s"
    step: float = 0.0


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
