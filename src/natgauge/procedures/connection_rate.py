# SPDX-License-Identifier: Apache-2.0
"""Maximum connection establishment rate (RFC 9693 section 4.5).

One trial: the table is empty, the Initiator sends N frames with N different four tuples at R frames/s, and passes when
all N arrive at the Responder. N is fixed, so a trial lasts N/R. Binary search finds the highest R.

A forwarded frame counts as an established connection (RFC 9693 section 4.6). Where the device reports its own count,
the verdict of the trial compares the two.

A short trial favours a device with queues before it; `kit.queues` limits this effect. In `shared` placement the
tolerated lag has the same effect; `kit.search.late_frames` limits it, and refuses trials that would be too short.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from natgauge.measurer import TrialOutcome
from natgauge.procedures.kit.events import Bounds
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.result.frame_counts import forwarding_rate
from natgauge.procedures.kit.result.results import Measurement
from natgauge.procedures.kit.runner import TrialRunner
from natgauge.procedures.kit.search import late_frames, queues
from natgauge.procedures.kit.search.binary_search import search
from natgauge.procedures.kit.search.expected import expected_rate
from natgauge.procedures.kit.search.rate_search import SearchSettings, establishing_span, search_plan
from natgauge.procedures.kit.search.searched_rate import SearchedRate

METRIC = "connection-rate"
UNIT = "connections/s"


@dataclass(frozen=True, kw_only=True)
class ConnectionRateSettings(SearchSettings):
    """Settings of the connection rate: the settings of a search."""

    def as_run(self) -> ConnectionRateSettings:
        """Return these settings, with a time limit for each frame where there are queues before the device."""
        return queues.limited(self)


class _ConnectionRate(SearchedRate[ConnectionRateSettings]):
    """The highest rate in connections/s."""

    def __init__(self, runner: TrialRunner, settings: ConnectionRateSettings) -> None:
        super().__init__(runner, settings)
        self._expected = expected_rate(runner, settings, "new")

    def search_once(self, known: float | None) -> Measurement:
        def trial(rate: float, _short: bool, bounds: Bounds) -> TrialOutcome:  # noqa: FBT001 - the search's signature
            return self.runner.run(self.settings.phase1_plan(rate), rate, bounds)

        def fewer(rate: float, connections: int, bounds: Bounds) -> TrialOutcome:
            return self.runner.run(replace(self.settings.phase1_plan(rate), connections=connections), rate, bounds)

        span = establishing_span(self.runner.measurer, self.settings.connections, self._expected)
        plan = search_plan(self.settings, span, known, short_probes=False)
        return search(plan, trial, lambda outcome: forwarding_rate([outcome.phase1]), fewer)

    def length(self) -> late_frames.Length:
        return late_frames.of_connections(self.settings.connections)

    def seconds(self, rate: float) -> float:
        return self.settings.connections / rate


PROCEDURE = Procedure(
    metric=METRIC,
    unit=UNIT,
    better="higher",
    summary="highest rate at which every new connection is established",
    source="RFC 9693 section 4.5",
    settings=ConnectionRateSettings,
    start=_ConnectionRate,
    # RFC 9693 section 6: ten experiments.
    profiles={"rfc": {"repeat": 10}},
)
