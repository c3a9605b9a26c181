# SPDX-License-Identifier: Apache-2.0
"""Maximum connection establishment rate (RFC 9693 section 4.5); docs/method/connection-rate.md has the method.

A forwarded frame counts as an established connection (RFC 9693 section 4.6). Where the device reports its own count,
the verdict of the trial compares the two. With TCP the last message of the handshake is the frame that must arrive.

A short trial favours a device with queues before it; `kit.queues` limits this effect. In `shared` placement the
tolerated lag has the same effect; `kit.rate_search` limits it, and refuses trials that would be too short.
"""

from __future__ import annotations

from dataclasses import dataclass

from natgauge.figure_text import number as written
from natgauge.inputs.input import wrong
from natgauge.metrics.catalogue import CONNECTION_RATE, CONNECTIONS_COUNTED, CONNECTIONS_EXPECTED
from natgauge.notes import Note
from natgauge.procedures.kit import rate_search
from natgauge.procedures.kit.phases import DrawSettings
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.results import Measurement, with_handshakes
from natgauge.procedures.kit.runner import TrialRunner
from natgauge.words import DRAWN


@dataclass(frozen=True, kw_only=True)
class ConnectionRateSettings(DrawSettings, rate_search.SearchSettings):
    """Settings of the connection rate: the settings of a search, and of draws."""

    limits_waits = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.order == DRAWN:
            return
        if self.draws is not None:
            raise wrong("draws", f"order {self.order} draws nothing; leave draws out, or choose order {DRAWN}")
        # Nothing is drawn from them, so they move no figure.
        object.__setattr__(self, "four_tuples", None)


class _ConnectionRate(rate_search.SearchedRate[ConnectionRateSettings]):
    """The highest rate in connections/s."""

    def __init__(self, runner: TrialRunner, settings: ConnectionRateSettings) -> None:
        super().__init__(runner, settings)
        self.expected = rate_search.expected_rate(runner, settings, "new")

    def search_once(self, known: float | None) -> Measurement:
        repetition = with_handshakes(super().search_once(known))
        return repetition if self.settings.order != DRAWN else self._with_drawn(repetition)

    def length(self) -> rate_search.Length:
        what = "connections" if self.settings.draws is None else "draws"
        return rate_search.length_of_connections(self.settings.phase1_frames, what)

    def _with_drawn(self, repetition: Measurement) -> Measurement:
        """Add the expected number of connections, and the counted number of the trial that gave the value."""
        settings = self.settings
        counted = [trial.table_count for trial in repetition.passed if trial.table_count is not None]
        figures = {CONNECTIONS_EXPECTED: settings.expected_connections}
        text = (
            f"{settings.phase1_frames} draws out of {settings.space} four tuples open "
            f"{written(settings.expected_connections)} connections on average"
        )
        if counted:
            figures[CONNECTIONS_COUNTED] = float(counted[-1])
            text += f"; the device counted {counted[-1]}"
        return repetition.adding(Note("method", text), **figures)


PROCEDURE = Procedure(
    CONNECTION_RATE,
    settings=ConnectionRateSettings,
    start=_ConnectionRate,
    # RFC 9693 section 6: ten experiments.
    profiles={"rfc": {"repeat": 10}},
)
