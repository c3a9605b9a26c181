# SPDX-License-Identifier: Apache-2.0
"""Memory of a connection at the device, over all trials of a repetition that show it."""

from __future__ import annotations

import statistics
from dataclasses import replace

from natgauge.metrics.shared_figures import OCTETS_PER_CONNECTION
from natgauge.procedures.kit.result.results import Measurement


def with_table_octets(measurement: Measurement) -> Measurement:
    """Return the repetition with the figure `OCTETS_PER_CONNECTION`, of which each trial is a value of the sample."""
    reported = [attempt.outcome.readings.octets_per_connection for attempt in measurement.attempts]
    octets = tuple(value for value in reported if value is not None)
    if not octets:
        return measurement
    return replace(
        measurement,
        figures={**measurement.figures, OCTETS_PER_CONNECTION: statistics.median(octets)},
        sample={**measurement.sample, OCTETS_PER_CONNECTION: octets},
    )
