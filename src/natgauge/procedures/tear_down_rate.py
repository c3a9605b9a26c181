# SPDX-License-Identifier: Apache-2.0
"""Connection tear-down rate (RFC 9693 section 4.8): N connections, one command that empties the table, its time.

docs/method/tear-down.md has the method, also by segments of TCP. The command costs time on an empty table, too, so that
is measured with the same settings, after every full one, and subtracted, of unrounded times. Where a full table was
emptied no slower than an empty one, the host's noise hides the rate.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from natgauge.errors import BrokenError
from natgauge.figure_text import number as written
from natgauge.figure_text import with_noun
from natgauge.inputs.input import chosen
from natgauge.measurer import Ability, TearDown
from natgauge.metrics.catalogue import ENTRIES_LEFT, TEAR_DOWN_RATE
from natgauge.notes import Note
from natgauge.procedures.kit import queues
from natgauge.procedures.kit.held_connections import HeldConnections
from natgauge.procedures.kit.phases import Phase1Settings, left_in
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.rate_search import SearchedRate, SearchSettings
from natgauge.procedures.kit.results import Measurement
from natgauge.procedures.kit.runner import Bounds, TimeUpError, TrialRunner, left_out
from natgauge.procedures.kit.settings import ABOUT_REPEAT, Repeat
from natgauge.trials import Trial
from natgauge.words import Close, LimitedBy, Verdict

#: Of fewer times nothing is known of their spread.
LEAST_SAMPLE = 2


@dataclass(frozen=True, kw_only=True)
class TearDownRateSettings(Phase1Settings, SearchSettings):
    """Settings of the tear-down rate. Those of a search belong to "fin" and "rst".

    Each repetition has a sample of its own.
    """

    repeat: Repeat = field(default=1, metadata=ABOUT_REPEAT)
    tear_down_by: Literal["command", "fin", "rst"] = chosen(
        "command", "what tears connections down: a command that empties the table, or FINs or resets of TCP"
    )
    sample: int = chosen(
        10, "number of times that a full table, and an empty one, are cleared", "times", (LEAST_SAMPLE, 1000)
    )

    def needs(self) -> frozenset[Ability]:
        """Return the required abilities: the time of emptying, in addition to those of all trials."""
        return super().needs() | (set() if self.close else {Ability.EMPTY_TIMED})

    @property
    def close(self) -> Close | None:
        """The segment with which the Initiator closes connections; None = a command removes them."""
        return None if self.tear_down_by == "command" else self.tear_down_by

    @property
    def unused(self) -> dict[str, str]:
        """Settings of a search, where a command is timed, and the number of times, where a rate is searched."""
        if self.close:
            return super().unused | {"sample": f"a rate is searched at which {self.close} closes connections"}
        names = ("error", "loss_verifications", "confirm")
        return super().unused | dict.fromkeys(names, "a command is timed, and no rate is searched")

    def as_run(self) -> TearDownRateSettings:
        """Return these settings, with a time limit for segments where there are queues before the device."""
        return queues.with_wait_limit(self) if self.close else self


class _TearDownRate(HeldConnections[TearDownRateSettings]):
    """Runs a repetition; the value is the tear down rate in connections/s."""

    def once(self, _known: float | None) -> Measurement:
        settings, measurer = self.settings, self.runner.measurer
        full, empty = [], []
        for number in range(settings.sample):
            rate = self.preparation.rate
            try:
                outcome = self.must(rate, settings.phase1_plan(rate), settings.sample - number)
            except TimeUpError as error:
                if number < LEAST_SAMPLE:
                    raise
                missing = f"{settings.sample - number} of {settings.sample} times"
                self.repetition_notes.append(left_out(missing, error))
                break
            full.append(_checked(measurer.empty_timed(), outcome.stored))
            empty.append(_checked(measurer.empty_timed(), 0))
        value, figures, notes = tear_down(settings.connections, full, empty)
        rows = [
            {"full_seconds": full_seconds, "empty_seconds": empty_seconds}
            for full_seconds, empty_seconds in zip(full, empty, strict=True)
        ]
        sample = {"full_seconds": tuple(full), "empty_seconds": tuple(empty)}
        limited_by: LimitedBy = "device" if figures["difference_seconds"] > 0 else "host"
        repetition = self.measurement(value, limited_by=limited_by, figures=figures, notes=notes, series=rows)
        return replace(repetition, sample=sample, is_sampled=True)


class _ClosingRate(HeldConnections[TearDownRateSettings], SearchedRate[TearDownRateSettings]):
    """The highest rate in connections/s at which segments close the connections."""

    phase = 2

    def search_once(self, known: float | None) -> Measurement:
        repetition = super().search_once(known)
        passed = [one.outcome for one in repetition.attempts if one.outcome.verdict is Verdict.PASS]
        left = [one.table_count for one in passed if one.table_count is not None]
        return repetition.adding(**{ENTRIES_LEFT: float(left[-1])}) if left else repetition

    def notes(self, measurements: Sequence[Measurement]) -> Sequence[Note]:
        how = "FIN, FIN-ACK and ACK" if self.settings.close == "fin" else "a reset"
        text = f"connections are closed by {how}; the device may keep an entry of each for a while"
        return [Note("method", text), *super().notes(measurements)]

    def probe(self, rate: float, _short: bool, bounds: Bounds) -> Trial:  # noqa: FBT001 - the search's signature
        plan = self.settings.phase1_plan(self.preparation.rate)
        return self.trial(rate, left_in(self.settings.close or "established", plan, rate), bounds)


def _start(runner: TrialRunner, settings: TearDownRateSettings) -> _TearDownRate | _ClosingRate:
    return _ClosingRate(runner, settings) if settings.close else _TearDownRate(runner, settings)


def _checked(torn: TearDown, expected: int) -> float:
    """The time, when the device's own counts say that it did what was timed."""
    if torn.count_after not in {None, 0}:
        left = with_noun(torn.count_after, "connections were", "connection was")
        raise BrokenError(
            f"{TEAR_DOWN_RATE}: {left} left after emptying {expected}; look at the gateway's verbs empty and count"
        )
    if torn.count_before is not None and torn.count_before != expected:
        raise BrokenError(
            f"{TEAR_DOWN_RATE}: the device's table held {with_noun(torn.count_before, 'connections')} before emptying "
            f"instead of {expected}; end other traffic through the gateway, or look at its verbs empty and count"
        )
    return torn.seconds


def tear_down(
    connections: int, full: Sequence[float], empty: Sequence[float]
) -> tuple[float, dict[str, float], list[Note]]:
    """The rate in connections/s, the figures it is made of in seconds, and how far it is to be trusted.

    If the difference is not positive, the rate is a lower bound. `full` and `empty` are the times of emptying a table
    of N, and an empty one, in seconds.
    """
    difference = statistics.median(full) - statistics.median(empty)
    spread = max(max(full) - min(full), max(empty) - min(empty))
    figures = {
        "full_seconds": statistics.median(full),
        "empty_seconds": statistics.median(empty),
        "difference_seconds": difference,
    }
    if difference <= 0:
        text = "a full table was emptied no slower than an empty one: the rate is at least this"
        return connections / figures["full_seconds"], figures, [Note("unreliable", text)]
    for name, seconds in (("lowest", max(full) - min(empty)), ("highest", min(full) - max(empty))):
        if seconds > 0:
            figures[f"rate_{name}"] = connections / seconds
    if difference > spread:
        return connections / difference, figures, []
    text = (
        f"the difference of {written(difference * 1000)} ms is not larger than the spread of the times, "
        f"{written(spread * 1000)} ms"
    )
    return connections / difference, figures, [Note("unreliable", text)]


PROCEDURE = Procedure(
    TEAR_DOWN_RATE,
    settings=TearDownRateSettings,
    start=_start,
    profiles={"quick": {"sample": 3}, "standard": {"repeat": 3}, "rfc": {"repeat": 10}},
)
