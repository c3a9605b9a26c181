# SPDX-License-Identifier: Apache-2.0
"""The questions that all testers are asked, and the true answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from benchmarks.second_opinion import testers
from benchmarks.second_opinion.gateway import Limits
from benchmarks.second_opinion.search import Range
from benchmarks.second_opinion.siitperf import Siitperf
from benchmarks.second_opinion.testers import PREPARING_RATE, SECONDS, Tester

LIMITS: Final = Limits(rate=4000, burst=100)
#: Connections of the rate measurements: one second at the limit; and a fraction of a second where there is none.
OPENED, OPENED_UNLIMITED = 4000, 50_000
#: Connections of the throughput measurements.
KEPT: Final = 1000
#: Connections that the gateway's table holds in the capacity measurement.
TABLE: Final = 1000
#: A search for a rate ends when its bounds are 1 % of the limit apart.
_RATES: Final = Range(0, 2 * LIMITS.rate, LIMITS.rate // 100, tries=3)
#: trafgen sends more slowly than it is asked to.
_RATES_OF_TRAFGEN: Final = replace(_RATES, upper=4 * LIMITS.rate)
#: Four lcores of siitperf share two processors, so it rejects most trials; more tries would not help.
_RATES_OF_FOUR: Final = replace(_RATES, tries=1)
_CAPACITIES: Final = Range(TABLE // 2, 2 * TABLE, 1, tries=3)
_UNLIMITED_RATES: Final = Range(0, 1_000_000, 4000, tries=3)


@dataclass(frozen=True, slots=True)
class Question:
    """A figure that several testers measure.

    Attributes:
        words: what is measured.
        unit: of the figure.
        true: the figure that follows from the gateway's rules; None = not known.
        testers: by name, in the order of the first repetition.
        limits: of the gateway's rules; None = no limit.
        table: connections that the gateway's table holds; None = this machine's setting.
    """

    words: str
    unit: str
    true: float | None
    testers: Mapping[str, Tester]
    limits: Limits | None = LIMITS
    table: int | None = None


def questions(siitperf: Siitperf, sender: int) -> dict[str, Question]:
    """All questions by name.

    Args:
        siitperf: the tester of that name.
        sender: the processor on which the other testers send.
    """
    prepared = {"connections": KEPT, "trial_seconds": SECONDS, "connection_rate": 2 * PREPARING_RATE}
    forwarding_rate = LIMITS.forwarding_rate(SECONDS)
    return {
        "connection-rate": Question(
            f"connection rate, N = {OPENED:,}",
            "connections/s",
            LIMITS.opening_rate(OPENED),
            {
                "natgauge": testers.by_natgauge("connection-rate", sender, connections=OPENED),
                "siitperf": testers.opening_by_siitperf(siitperf, OPENED, _RATES),
                "trafgen": testers.opening_by_trafgen(sender, OPENED, _RATES_OF_TRAFGEN),
            },
        ),
        "throughput-up": Question(
            "throughput, Initiator to Responder",
            "frames/s",
            forwarding_rate,
            {
                "natgauge": testers.by_natgauge("throughput", sender, **prepared, directions="up"),
                "siitperf": testers.forwarding_by_siitperf(siitperf, KEPT, _RATES, up=True),
                "iperf3": testers.forwarding_by_iperf3(_RATES),
            },
        ),
        "throughput-both": Question(
            "throughput in each direction, both at once",
            "frames/s",
            forwarding_rate,
            {
                "natgauge": testers.by_natgauge("throughput", sender, **prepared),
                "siitperf": testers.forwarding_by_siitperf(siitperf, KEPT, _RATES_OF_FOUR, up=True, down=True),
            },
        ),
        "capacity": Question(
            "table capacity",
            "connections",
            TABLE,
            {
                "natgauge": testers.by_natgauge("table-capacity", sender, 2 * TABLE, safe_connections=TABLE // 2),
                "siitperf": testers.capacity_by_siitperf(siitperf, _CAPACITIES),
                "trafgen": testers.capacity_by_trafgen(sender, _CAPACITIES),
            },
            table=TABLE,
        ),
        "unlimited": Question(
            f"connection rate without a limit, N = {OPENED_UNLIMITED:,}",
            "connections/s",
            None,
            {
                "natgauge": testers.by_natgauge("connection-rate", sender, connections=OPENED_UNLIMITED),
                "siitperf": testers.opening_by_siitperf(siitperf, OPENED_UNLIMITED, _UNLIMITED_RATES),
            },
            limits=None,
        ),
    }
