# SPDX-License-Identifier: Apache-2.0
"""A campaign times the tester's receivers and the server alone as `measure` does, and keeps both when it is resumed."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from tests.unit.campaigning import (
    ONE_CONNECTION_RATE,
    Benches,
    Dies,
    Killed,
    campaign,
    events,
    journal_dies,
    quick_disk,
    summaries,
)
from tests.unit.golden import Golden

from natgauge import Result

__all__ = ["quick_disk"]

RECEIVER_SECONDS, SERVER_ALONE = "receiver_seconds", "server_alone"
#: 5 us of 33 us a frame, and a server that does twice the rate.
FOUND = {RECEIVER_SECONDS: 5e-6, SERVER_ALONE: 60_000.0}
PLACE: dict[str, Any] = {"placement": "isolated", "device_cores": 1, "server_version": "Knot 3.2"}


def isolated(*own_part: dict[str, float]) -> Benches:
    """Benches whose device has a core of its own, and a server behind it."""
    return Benches(own_part=[*own_part], place=PLACE, settings={"far_side": "knot"})


def result(folder: Path) -> Result:
    (found,) = summaries(folder).values()
    return found


def said(found: Result) -> dict[str, str]:
    return {doubt.word: doubt.text for doubt in found.doubts}


def without_times(found: Result) -> dict[str, Any]:
    return {name: value for name, value in found.parameters.flat().items() if name != "begun"}


def test_a_campaign_has_the_parameters_and_doubts_of_a_measurement(tmp_path: Path, golden: Golden) -> None:
    benches = isolated(FOUND)
    # The time-out of a device with cores of its own, which the lab of the campaign is not.
    campaign(tmp_path, benches, plan=f"{ONE_CONNECTION_RATE}\nframe_timeout_seconds = 0.02\n")
    found = result(tmp_path)
    assert found.number("receiver_ns") == pytest.approx(5000)
    assert found.number("server_alone") == 60_000
    golden(said(found)["tester on device cores"])
    golden(said(found)["real server"])
    # One repetition was enough, and each one's last trial that passed was there to be repeated.
    assert benches.timed == [set(), set(FOUND), set(FOUND)]


def test_the_command_of_a_result_measures_all_its_repetitions(tmp_path: Path) -> None:
    campaign(tmp_path, Benches(), plan=ONE_CONNECTION_RATE)
    command = str(result(tmp_path).parameter("command"))
    assert command.startswith("natgauge measure connection-rate --gateway linux-ipv4 ")
    assert "--repeat 3" in command
    assert "--repeat 1" not in command


def test_the_command_of_a_result_has_no_rate_that_the_campaign_found(tmp_path: Path) -> None:
    campaign(tmp_path, Benches(), plan=ONE_CONNECTION_RATE + '\n[[measure]]\nmetric = "throughput"\nerror = "30%"\n')
    given = {one["measurement"]: one["given"] for one in events(tmp_path, "repetition")}
    assert given["throughput"]["connection_rate"] > 0
    (found,) = (each for name, each in summaries(tmp_path).items() if name.endswith("-throughput"))
    command = str(found.parameter("command"))
    assert command.startswith("natgauge measure throughput --gateway linux-ipv4 ")
    assert "--repeat 3" in command
    assert "--connection-rate" not in command


def test_what_no_repetition_could_tell_is_said_to_be_not_known(tmp_path: Path, golden: Golden) -> None:
    campaign(tmp_path, isolated(), plan=ONE_CONNECTION_RATE)
    found = result(tmp_path)
    assert found.parameters.place["receiver_ns"] is found.parameters.place["server_alone"] is None
    golden(said(found)["tester on device cores"])
    assert "was not measured" in said(found)["real server"]


def test_a_later_repetition_tells_what_an_earlier_one_could_not(tmp_path: Path) -> None:
    campaign(tmp_path, isolated({}, {SERVER_ALONE: 60_000.0}, FOUND), plan=ONE_CONNECTION_RATE)
    assert result(tmp_path).number("receiver_ns") == pytest.approx(5000)
    assert result(tmp_path).number("server_alone") == 60_000


def test_in_shared_placement_and_without_a_server_nothing_is_recorded(tmp_path: Path) -> None:
    campaign(tmp_path, Benches(own_part=[FOUND]), plan=ONE_CONNECTION_RATE)
    assert {"receiver_ns", "server_alone"}.isdisjoint(result(tmp_path).parameters.place)
    (tmp_path / "shared").mkdir()
    benches = Benches(own_part=[FOUND], place={"placement": "shared"})
    campaign(tmp_path / "shared", benches, plan=ONE_CONNECTION_RATE)
    assert {"receiver_ns", "server_alone"}.isdisjoint(result(tmp_path / "shared").parameters.place)


def test_a_campaign_that_is_killed_at_any_line_keeps_it(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    undisturbed = isolated(FOUND)
    campaign(whole, undisturbed, plan=ONE_CONNECTION_RATE)
    for number in itertools.count(1, 4):
        folder = tmp_path / str(number)
        folder.mkdir()
        benches = isolated(FOUND)
        try:
            with pytest.MonkeyPatch.context() as patch:
                journal_dies(patch, Dies(number), octets=40 * (number % 3))
                campaign(folder, benches, plan=ONE_CONNECTION_RATE)
        except Killed:
            # What was found in the last moment before the kill is found again.
            benches.own_part = [FOUND]
            campaign(folder, benches, plan=ONE_CONNECTION_RATE)
            assert without_times(result(folder)) == without_times(result(whole))
            assert said(result(folder)) == said(result(whole))
            continue
        assert number > 15
        break
