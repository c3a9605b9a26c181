# SPDX-License-Identifier: Apache-2.0
"""Repetitions of several devices or machines are no measurement of one: they say so, and are compared with nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue
from tests.unit.campaigning import ONE_CONNECTION_RATE, Benches, Dies, Killed, Simulated, campaign
from tests.unit.golden import Golden
from tests.unit.simulated import Gateway

from natgauge import procedures
from natgauge.analysis.comparing import comparable
from natgauge.campaigns.run import join
from natgauge.errors import HostError
from natgauge.measurements.conditions import with_neighbours
from natgauge.measurements.making import make
from natgauge.measurements.prepared import Prepared
from natgauge.procedures.kit.procedure import make_settings
from natgauge.records.measurement import Result
from natgauge.records.parameters import Parameters, differing, joined
from natgauge.reports.text import table, verdict
from natgauge.stored.find_results import read_summary

PLACE: dict[str, JsonValue] = {"placement": "shared", "kernel": "6.18", "lab_kind": "netns", "seed": 1}


def parameters(version: str = "tayga 0.9.2", **place: JsonValue) -> Parameters:
    device: dict[str, JsonValue] = {"gateway": "tayga-nat64", "version": [version]}
    return Parameters.grouped(place={**PLACE, **place}, device=device)


def series(every: Sequence[Parameters]) -> Result:
    """A connection rate of as many repetitions."""
    procedure = procedures.get("connection-rate")
    asked: dict[str, Any] = {"connections": 100_000, "placement": "shared", "order": "permutation"}
    whole, one = (
        make_settings(procedure, {"repeat": repeat}, four_tuples=100_000, **asked) for repeat in (len(every), 1)
    )
    gateways = [Gateway(establishes=300e3 + number, placement="shared") for number in range(len(every))]
    results = [procedure.measure(gateway, one) for gateway in gateways]
    return make(join(results, whole, one), joined(every, "connection-rate"))


def words(result: Result) -> list[str]:
    return [doubt.word for doubt in result.doubts]


PURE = series([parameters()] * 4)


@pytest.mark.parametrize(
    ("changed", "name", "values"),
    [
        (parameters("tayga 0.9.5"), "version", [["tayga 0.9.2"], ["tayga 0.9.5"]]),
        (parameters(governor="performance"), "governor", [None, "performance"]),
        (parameters(kernel_parameters=["isolcpus=1"]), "kernel_parameters", [None, ["isolcpus=1"]]),
        (parameters(microcode="0x2"), "microcode", [None, "0x2"]),
        (parameters(cpus_online=[0]), "cpus_online", [None, [0]]),
    ],
)
def test_a_series_that_is_not_of_one_device_and_machine_is_mixed_and_like_nothing(
    changed: Parameters, name: str, values: list[JsonValue]
) -> None:
    mixed = series([parameters(), changed, changed, changed])
    assert words(mixed)[0] == "mixed"
    assert list(differing(mixed.parameter(name))) == values
    assert "several" in str(mixed.parameter(name))
    for other in (PURE, series([changed] * 4), mixed):
        assert name in [one.name for one in comparable(mixed, other)]
        assert name in [one.name for one in comparable(other, mixed)]
    assert "mixed" in verdict(mixed)
    assert "mixed" in table([mixed])
    assert Result.from_document(mixed.document()).document() == mixed.document()


def test_a_series_of_one_device_is_not_mixed_whatever_its_seeds_and_cores() -> None:
    every = [parameters(sender_cpus=[core]) for core in range(4)]
    every = [one.model_copy(update={"traffic": {**one.traffic, "seed": core}}) for core, one in enumerate(every)]
    assert "mixed" not in words(series(every))
    assert comparable(series(every), PURE) == []


#: They offer a share of the tester's highest rate, or that rate itself.
BY_HIGHEST = {"back-to-back", "frame-loss", "system-recovery"}


@pytest.mark.parametrize("metric", sorted(procedures.procedures()))
def test_a_highest_rate_of_the_tester_that_was_measured_again_mixes_only_what_was_offered_by_it(metric: str) -> None:
    every = [parameters(tester_highest_phase1_rate=rate, tester_highest_phase2_rate=rate) for rate in (6e6, 6.1e6)]
    mixed = [name for _, name, value in joined(every, metric).items() if differing(value)]
    assert len(mixed) == (2 if metric in BY_HIGHEST else 0)


def test_a_worker_that_joined_later_makes_a_series_mixed_and_shared(golden: Golden) -> None:
    alone, beside = parameters(), with_neighbours(parameters(), {"beside": 1})
    for every in ([alone, beside, beside, beside], [beside, alone, alone, alone]):
        found = series(every)
        assert {"mixed", "machine shared"} <= set(words(found))
        assert [one.name for one in comparable(found, PURE)] == ["beside"]
        golden(found.doubts)


class Versioned(Benches):
    """Benches whose devices are of a version, and stand on a machine with a governor."""

    version = "tayga 0.9.2"
    governors: Sequence[str] = ()

    def __call__(self, cell: Any, observer: Any) -> Any:
        self.visits = getattr(self, "visits", 0) + 1
        plain = super().__call__(cell, observer)
        return VersionedStand(plain.benches, cell)


class VersionedStand(Simulated):
    """Tells version and governor."""

    def prepare(self, planned: Any, recorder: Any) -> Prepared:
        benches: Any = self.benches
        found = super().prepare(planned, recorder)
        groups: Mapping[str, Any] = found.parameters.model_dump()
        device = {**groups["device"], "version": [benches.version]}
        place: dict[str, Any] = dict(groups["place"])
        if benches.governors:
            place["governor"] = benches.governors[min(benches.visits, len(benches.governors)) - 1]
        return replace(found, parameters=Parameters(**{**groups, "device": device, "place": place}))


def test_what_a_machine_is_counts_for_each_repetition(tmp_path: Path) -> None:
    benches = Versioned()
    benches.governors = ["powersave", "performance"]
    campaign(tmp_path, benches, plan=ONE_CONNECTION_RATE)
    (folder,) = (tmp_path / "out" / "results").iterdir()
    found = read_summary(folder)
    assert list(differing(found.parameter("governor"))) == ["powersave", "performance"]
    assert "mixed" in words(found)


def test_a_campaign_is_not_gone_on_with_on_another_version_of_the_device(tmp_path: Path, golden: Golden) -> None:
    first = Versioned(killed=Dies(14))  # in the second repetition
    with pytest.raises(Killed):
        campaign(tmp_path, first, plan=ONE_CONNECTION_RATE)
    upgraded = Versioned()
    upgraded.version = "tayga 0.9.5"
    with golden.raises(HostError):
        campaign(tmp_path, upgraded, plan=ONE_CONNECTION_RATE)
    # With the old version again it goes on to its end.
    campaign(tmp_path, Versioned(), plan=ONE_CONNECTION_RATE)
    (folder,) = (tmp_path / "out" / "results").iterdir()
    assert "mixed" not in words(read_summary(folder))


def test_a_new_version_is_not_measured_in_cells_that_the_old_one_has_not_reached(tmp_path: Path) -> None:
    """Seen: it was, and then no version could end the campaign."""
    plan = ONE_CONNECTION_RATE.replace("[traffic]\nconnections = 1000", "[series]\nconnections = [1000, 2000]")
    with pytest.raises(Killed):
        campaign(tmp_path, Versioned(killed=Dies(12)), plan=plan)  # in the first repetition of the second cell
    upgraded = Versioned()
    upgraded.version = "tayga 0.9.5"
    with pytest.raises(HostError, match=r"is of version tayga 0\.9\.5 now"):
        campaign(tmp_path, upgraded, plan=plan)
    assert not upgraded.trials
    campaign(tmp_path, Versioned(), plan=plan)
    found = [read_summary(folder) for folder in (tmp_path / "out" / "results").iterdir()]
    assert [len(result.repetitions) for result in found] == [3, 3]
    assert not [result for result in found if "mixed" in words(result)]
