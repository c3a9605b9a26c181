# SPDX-License-Identifier: Apache-2.0
"""Profiles: every one fits every metric, what is given goes first, and `repeat` "auto" ends."""

from __future__ import annotations

import dataclasses
import math
import random
import statistics
from typing import Any, get_args

import pytest
from tests.unit.golden import Golden
from tests.unit.simulated import Gateway

from natgauge.errors import UsageError
from natgauge.inputs.measuring_types import SearchError
from natgauge.procedures import connection_rate, get, procedures
from natgauge.procedures.kit.procedure import with_profile
from natgauge.procedures.kit.repetitions import is_enough, well_known
from natgauge.procedures.kit.settings import COMMON, MOST_AUTO_REPETITIONS, Profile
from natgauge.statistics.order_statistics import median_interval

PROFILES = get_args(Profile)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("metric", sorted(procedures()))
def test_every_profile_makes_valid_settings_of_every_metric(metric: str, profile: str) -> None:
    procedure = get(metric)
    settings = procedure.settings(
        connections=1000, placement="isolated", **with_profile(procedure, {"profile": profile})
    )
    assert settings.parameters()["profile"] == profile


def test_profiles_speak_of_settings_and_metrics_that_there_are() -> None:
    known = {item.name for procedure in procedures().values() for item in dataclasses.fields(procedure.settings)}
    assert set(COMMON) == set(PROFILES)
    for values in COMMON.values():
        assert set(values) <= known
    for procedure in procedures().values():
        assert set(procedure.profiles) <= set(PROFILES)
        for values in procedure.profiles.values():
            assert set(values) <= {item.name for item in dataclasses.fields(procedure.settings)}


def test_what_is_given_goes_before_the_profile() -> None:
    values = with_profile(get("throughput"), {"profile": "quick", "repeat": 7})
    assert (values["repeat"], values["trial_seconds"]) == (7, 0.5)


def test_without_a_profile_the_settings_own_defaults_hold() -> None:
    assert with_profile(get("throughput"), {}) == {}


def test_an_unknown_profile_is_refused(golden: Golden) -> None:
    with golden.raises(UsageError):
        with_profile(get("throughput"), {"profile": "slow"})


def test_texts_of_the_command_line_are_read(golden: Golden) -> None:
    taken = get("throughput").taken
    assert taken({"repeat": "5", "error": "1%"}) == {"repeat": 5, "error": SearchError(share=0.01)}
    assert taken({"repeat": "auto", "error": 0.01}) == {"repeat": "auto", "error": SearchError(share=0.01)}
    with golden.raises(UsageError):
        taken({"repeat": "many"})


def measure(gateway: Gateway, **others: Any) -> int:
    settings = connection_rate.ConnectionRateSettings(
        connections=100_000, placement="isolated", repeat="auto", **others
    )
    return len(connection_rate.PROCEDURE.measure(gateway, settings).measurements)


def test_auto_ends_when_the_median_is_known_well_and_not_before_seven() -> None:
    assert measure(Gateway(establishes=3e5)) == 7
    assert 7 < measure(Gateway(establishes=3e5, noise=0.1, seed=3)) <= MOST_AUTO_REPETITIONS


def test_auto_ends_at_its_cap() -> None:
    assert measure(Gateway(establishes=3e5, noise=0.5, seed=1), confirm=False) == MOST_AUTO_REPETITIONS


def test_the_median_is_well_known_when_the_interval_is_narrow() -> None:
    assert not well_known([100.0] * 6)
    assert well_known([100.0] * 7)
    assert well_known([98, 99, 100, 100, 100, 101, 102])
    assert not well_known([90, 99, 100, 100, 100, 101, 110])


def test_the_stated_interval_holds_although_a_narrow_one_ends_the_repetitions() -> None:
    """Of values that are spread evenly by 4 %, an interval of 95 % that ended them missed the median in 8 %."""
    chance = random.Random(3)  # noqa: S311 - made up

    def misses() -> bool:
        values: list[float] = []
        while not is_enough(values, "auto", MOST_AUTO_REPETITIONS):
            values.append(chance.uniform(100 - 4 * math.sqrt(3), 100 + 4 * math.sqrt(3)))
        interval = median_interval(values)
        return interval is None or 100 not in interval

    assert statistics.fmean(misses() for _ in range(3000)) <= 0.06
