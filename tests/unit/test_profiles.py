# SPDX-License-Identifier: Apache-2.0
"""Profiles: every one fits every metric, what is given goes first, and `repeat` "auto" ends."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.golden import Golden
from tests.unit.made_settings import alone, metrics_with, settings_for
from tests.unit.simulated import Gateway

from natgauge.errors import UsageError

#: More than these "auto" never repeats.
MOST_AUTO_REPETITIONS = 20


@pytest.mark.parametrize("profile", ["default", "quick", "standard", "rfc"])
@pytest.mark.parametrize("metric", metrics_with("profile"))
def test_every_profile_makes_valid_settings_of_every_metric(metric: str, profile: str) -> None:
    assert settings_for(metric, profile=profile).parameters()["profile"] == profile


def test_what_is_given_goes_before_the_profile() -> None:
    settings = settings_for("throughput", profile="quick", repeat=7)
    assert (settings.repeat, settings.trial_seconds) == (7, 0.5)


def test_without_a_profile_the_settings_own_defaults_hold() -> None:
    settings = settings_for("throughput")
    assert (settings.profile, settings.trial_seconds, settings.repeat) == ("default", 2.0, 3)
    assert settings == settings_for("throughput", profile="default")


def test_an_unknown_profile_is_refused(golden: Golden) -> None:
    with golden.raises(UsageError):
        settings_for("throughput", profile="slow")


@pytest.mark.parametrize("repeat", ["5", "auto"])
@pytest.mark.parametrize("error", ["1%", 0.01])
def test_texts_of_the_command_line_are_read(repeat: str, error: object) -> None:
    settings = settings_for("throughput", repeat=repeat, error=error)
    assert (settings.repeat, settings.error.share) == (5 if repeat == "5" else "auto", 0.01)


def test_a_number_of_repetitions_that_is_none_is_refused(golden: Golden) -> None:
    with golden.raises(UsageError):
        settings_for("throughput", repeat="many")


def measured(gateway: Gateway, **others: Any) -> int:
    """How often "auto" repeats the measurement."""
    return len(alone("connection-rate", gateway, connections=100_000, repeat="auto", **others).measurements)


def test_auto_ends_when_the_median_is_known_well_and_not_before_seven() -> None:
    assert measured(Gateway(establishes=3e5)) == 7
    assert 7 < measured(Gateway(establishes=3e5, noise=0.1, seed=3)) <= MOST_AUTO_REPETITIONS


def test_auto_ends_at_its_cap() -> None:
    assert measured(Gateway(establishes=3e5, noise=0.5, seed=1), confirm=False) == MOST_AUTO_REPETITIONS
