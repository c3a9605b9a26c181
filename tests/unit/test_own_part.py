# SPDX-License-Identifier: Apache-2.0
"""A campaign times the tester's receivers and the server alone as `measure` does, and keeps both when it is resumed."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.campaigning import (
    ONE_CONNECTION_RATE,
    Benches,
    Dies,
    Killed,
    Simulated,
    campaign,
    journal_dies,
    quick_disk,
)
from tests.unit.golden import Golden
from tests.unit.made_settings import settings_of

from natgauge import procedures
from natgauge.campaigns.journal import entries
from natgauge.campaigns.run import join
from natgauge.measurements.conditions import RECEIVER_SECONDS, SERVER_ALONE, with_own_part, with_receiver, with_server
from natgauge.measurements.making import make
from natgauge.measurements.prepared import Prepared
from natgauge.records.measurement import Result
from natgauge.records.parameters import Parameters
from natgauge.stored.find_results import read_summary

__all__ = ["quick_disk"]

#: 5 us of 33 us a frame, and a server that does twice the rate.
FOUND = {RECEIVER_SECONDS: 5e-6, SERVER_ALONE: 60_000.0}
PLACE: dict[str, Any] = {"placement": "isolated", "device_cores": 1, "server_version": "Knot 3.2"}


class Isolated(Benches):
    """Benches whose device has a core of its own, and a server behind it."""

    def __call__(self, cell: Any, observer: Any) -> Any:
        return IsolatedStand(super().__call__(cell, observer).benches, cell)


class IsolatedStand(Simulated):
    """Says where its device works, and what answers."""

    def prepare(self, planned: Any, recorder: Any) -> Prepared:
        found = super().prepare(planned, recorder)
        groups: Mapping[str, Any] = found.parameters.model_dump()
        settings = {**groups["settings"], "far_side": "knot"}
        place = {**groups["place"], **PLACE}
        return replace(found, parameters=Parameters(**{**groups, "settings": settings, "place": place}))


def result(folder: Path) -> Result:
    (path,) = (folder / "out" / "results").iterdir()
    return read_summary(path)


def said(found: Result) -> dict[str, str]:
    return {doubt.word: doubt.text for doubt in found.doubts}


def without_numbers(text: str) -> str:
    return re.sub(r"\d[\d,.]*", "N", text)


def without_times(found: Result) -> dict[str, Any]:
    return {name: value for name, value in found.parameters.flat().items() if name != "begun"}


def measured_alone(folder: Path) -> Result:
    """The same repetitions as `measure` records them: figures of the tester's own part are added at the end."""
    ended = [entry for entry in entries(folder / "out") if entry["event"] == "repetition"]
    parameters = Parameters.model_validate(ended[0]["parameters"])
    procedure = procedures.get("connection-rate")
    settings = settings_of(procedure,
        {"error": "30%", "profile": "quick", "repeat": 1},
        connections=1000, placement="isolated", order="permutation", four_tuples=1000,
    )  # fmt: skip
    measured = procedure.measure(Benches().gateway(None), settings)  # type: ignore[arg-type] # it asks for no cell
    parameters = with_server(with_receiver(parameters, FOUND[RECEIVER_SECONDS]), FOUND[SERVER_ALONE])
    return make(join([measured] * 3, replace(settings, repeat=3), settings), parameters)


def test_a_campaign_has_the_parameters_and_doubts_of_a_measurement(tmp_path: Path, golden: Golden) -> None:
    benches = Isolated(own_part=[FOUND])
    # The time-out of a device with cores of its own, which the lab of the campaign is not.
    campaign(tmp_path, benches, plan=f"{ONE_CONNECTION_RATE}\nframe_timeout_seconds = 0.02\n")
    found, alone = result(tmp_path), measured_alone(tmp_path)
    for name in ("receiver_ns", "server_alone"):
        assert found.parameter(name) == alone.parameter(name) is not None
    for word in ("tester on device cores", "real server"):
        # Searches start at places of their own, so their rates differ a little.
        assert without_numbers(said(found)[word]) == without_numbers(said(alone)[word])
    assert "5,000 ns of" in said(found)["tester on device cores"]
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
    given = {one["measurement"]: one["given"] for one in entries(tmp_path / "out") if one["event"] == "repetition"}
    assert given["throughput"]["connection_rate"] > 0
    (path,) = (tmp_path / "out" / "results").glob("*-throughput")
    command = str(read_summary(path).parameter("command"))
    assert command.startswith("natgauge measure throughput --gateway linux-ipv4 ")
    assert "--repeat 3" in command
    assert "--connection-rate" not in command


def test_what_no_repetition_could_tell_is_said_to_be_not_known(tmp_path: Path, golden: Golden) -> None:
    campaign(tmp_path, Isolated(), plan=ONE_CONNECTION_RATE)
    found = result(tmp_path)
    assert found.parameters.place["receiver_ns"] is found.parameters.place["server_alone"] is None
    golden(said(found)["tester on device cores"])
    assert "was not measured" in said(found)["real server"]


def test_a_later_repetition_tells_what_an_earlier_one_could_not(tmp_path: Path) -> None:
    campaign(tmp_path, Isolated(own_part=[{}, {SERVER_ALONE: 60_000.0}, FOUND]), plan=ONE_CONNECTION_RATE)
    assert result(tmp_path).number("receiver_ns") == pytest.approx(5000)
    assert result(tmp_path).number("server_alone") == 60_000


def test_in_shared_placement_and_without_a_server_nothing_is_recorded(tmp_path: Path) -> None:
    campaign(tmp_path, Benches(own_part=[FOUND]), plan=ONE_CONNECTION_RATE)
    assert {"receiver_ns", "server_alone"}.isdisjoint(result(tmp_path).parameters.place)
    parameters = Parameters.grouped(place={"placement": "shared"})
    assert with_own_part(parameters, FOUND) == parameters


def test_a_campaign_that_is_killed_at_any_line_keeps_it(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    undisturbed = Isolated(own_part=[FOUND])
    campaign(whole, undisturbed, plan=ONE_CONNECTION_RATE)
    for number in itertools.count(1, 4):
        folder = tmp_path / str(number)
        folder.mkdir()
        benches = Isolated(own_part=[FOUND])
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
