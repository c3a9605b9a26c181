# SPDX-License-Identifier: Apache-2.0
"""Measurements that end after a few trials: they show that all parts work together, and no figure is judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import pytest

from natgauge.procedures import procedures
from natgauge.procedures.kit.procedure import make_settings
from natgauge.tester.own_rates import HighestRates
from natgauge.trial import bench

#: A rate in frames/s that any device of these tests reaches on a busy host, too: a search that may go no higher ends at
#: once, and always with an answer.
SLOW = 5_000.0
SLOW_RATES = HighestRates(SLOW, SLOW)
#: What is known of the device; an overload is more than that, and the tester must reach it.
_KNOWN = SLOW / 2
#: Phase 1 runs at half of it.
_CONNECTION_RATE = 2 * SLOW
#: A rough search, rates that are known beforehand, and as many further tries as a busy host needs.
ROUGH: Mapping[str, Any] = {
    "profile": "quick", "repeat": 1, "confirm": False, "error": "50%", "most_seconds": 0.0, "invalid_repeats": 1000,
    "connection_rate": _CONNECTION_RATE, "throughput_rate": _KNOWN, "full_rate": _KNOWN, "download_rate": _KNOWN,
    "trial_seconds": 0.2, "loads": "100%",
}  # fmt: skip
#: A restart takes longer than the other metrics' trials.
_OWN: Mapping[str, Mapping[str, Any]] = {
    "reset": {"before_seconds": 0.1, "trial_seconds": 1.0},
    "stability": {"hours": 1 / 3600},
}


def decided(metric: str) -> str:
    """The verdict of a trial that ends the metric's work: a restart is there to lose frames."""
    return "FAIL" if metric == "reset" else "PASS"


def settings_of(metric: str) -> dict[str, Any]:
    """Those of the rough settings that a metric has, and that have an effect beside the others."""
    procedure = procedures()[metric]
    known = {field.name for field in fields(procedure.settings)}
    asked = {name: value for name, value in {**ROUGH, **_OWN.get(metric, {})}.items() if name in known}
    made = make_settings(
        procedure,
        procedure.taken(asked),
        connections=1000,
        placement="isolated",
        order="permutation",
        four_tuples=1000,
    )
    return {name: value for name, value in asked.items() if name not in made.unused}


@contextmanager
def slow_tester(rates: HighestRates = SLOW_RATES) -> Iterator[None]:
    """Have every measurement of this process search no higher than `SLOW`, or than these rates."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench, "highest_rates", lambda *_: rates)
        yield
