# SPDX-License-Identifier: Apache-2.0
"""Repetitions measured one by one come to the same result as those measured in one go."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.golden import Golden
from tests.unit.made_settings import settings_of
from tests.unit.simulated import Gateway

from natgauge.campaigns.run import join
from natgauge.campaigns.state import MeasurementState
from natgauge.procedures import get
from natgauge.procedures.kit.result.results import Measurement, MeasurementResult, make_result
from natgauge.procedures.kit.time_budget import TIME
from natgauge.words import LimitedBy, Verdict

DECIDED: dict[str, Any] = {"connections": 1000, "placement": "isolated", "order": "permutation", "four_tuples": 1000}


@pytest.mark.parametrize("metric", ["connection-rate", "throughput", "frame-loss"])
@pytest.mark.parametrize("profile", ["default", "quick", "rfc"])
def test_they_are_summed_up_alike(metric: str, profile: str) -> None:
    procedure = get(metric)

    def measured(repeat: int) -> MeasurementResult:
        asked = {"profile": profile, "repeat": repeat, "error": "10%", "confirm": False}
        known = {item.name for item in procedure.inputs()}
        settings = settings_of(procedure, {name: value for name, value in asked.items() if name in known}, **DECIDED)
        gateway = Gateway(establishes=30_000, forwards=60_000)
        return procedure.measure(gateway, settings, clock=gateway.clock)

    whole = settings_of(procedure, {"profile": profile, "repeat": 3}, **DECIDED)
    single = settings_of(procedure, {"profile": profile, "repeat": 1}, **DECIDED)
    joined, in_one_go = join([measured(1) for _ in range(3)], whole, single), measured(3)
    assert joined.summary.median == pytest.approx(in_one_go.summary.median, rel=0.1)
    assert len(joined.measurements) == 3
    assert joined.parameters["repeat"] == 3
    # Each repetition begins elsewhere, so that figures in the notes differ a little.
    assert {note.word for note in joined.notes} == {note.word for note in in_one_go.notes}
    assert len(set(joined.notes)) == len(set(in_one_go.notes))


def single(value: float, limited_by: LimitedBy = "device") -> MeasurementResult:
    measurement = Measurement(value, None, limited_by, {Verdict.PASS: 1})
    return make_result("connection-rate", "connections/s", {"repeat": 1}, [measurement])


def test_one_that_its_time_cut_off_counts_only_where_there_is_no_other(golden: Golden) -> None:
    settings = settings_of(get("connection-rate"), {"repeat": 3}, **DECIDED)
    once = settings_of(get("connection-rate"), {"repeat": 1}, **DECIDED)
    joined = join([single(10.0), single(3.0, TIME), single(12.0)], settings, once)
    assert joined.values == (10.0, 12.0)
    golden(joined.notes)
    joined = join([single(4.0, TIME), single(3.0, TIME)], settings, once)
    assert joined.values == (4.0,)
    assert joined.limited_by == TIME


def ended(*results: MeasurementResult) -> MeasurementState:
    """A measurement of which these repetitions have ended."""
    lines: Any = [SimpleNamespace(result=result) for result in results]
    return MeasurementState(ended=lines)


def test_auto_goes_on_until_the_median_of_the_repetitions_that_count_is_known() -> None:
    """Seen: seven repetitions were enough of which time had cut off three, and the result had four."""
    whole, cut = [single(10.0)] * 7, [single(10.0, TIME)]
    assert ended(*whole).is_done("auto", 20)
    assert not ended(*whole[:6], *cut * 3).is_done("auto", 20)
    assert not ended(*cut * 6).is_done("auto", 20)
    assert ended(*cut * 7).is_done("auto", 20)
    assert ended(*whole[:6], *cut * 14).is_done("auto", 20)
    assert ended(*cut * 3).is_done(3, 3)
