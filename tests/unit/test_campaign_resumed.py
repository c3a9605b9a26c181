# SPDX-License-Identifier: Apache-2.0
"""Campaigns that were killed go on; repetitions of several devices or machines are no measurement of one."""

from __future__ import annotations

import errno
import itertools
import json
import os
import platform
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue
from tests.unit.campaigning import (
    OF_SUBSCRIBERS,
    ONE_CONNECTION_RATE,
    OTHER_SUBSCRIBER,
    SUBSCRIBER,
    Benches,
    Dies,
    Killed,
    Simulated,
    asked,
    campaign,
    events,
    journal_dies,
    progress,
    quick_disk,
    results,
    summaries,
)
from tests.unit.golden import Golden
from tests.unit.made_registers import left_behind, own_labs
from tests.unit.made_results import made
from tests.unit.simulated import Gateway

from natgauge import cleaning, procedures
from natgauge.analysis.derived import comparable
from natgauge.campaigns import journal
from natgauge.campaigns.campaign import RunOrder
from natgauge.campaigns.campaign import run as run_campaign
from natgauge.campaigns.run import join
from natgauge.errors import EndedBySignal, HostError, UsageError
from natgauge.inputs.question import Cell
from natgauge.labs.common import namespaces
from natgauge.labs.common.register import Register
from natgauge.measurements.measure import Prepared
from natgauge.measurements.record import make, with_neighbours
from natgauge.procedures.kit.procedure import make_settings
from natgauge.records.measurement import Result
from natgauge.records.parameters import Parameters, differing, joined
from natgauge.reports.text import table, verdict
from natgauge.trial.controls import Silent
from natgauge.version import exact_version

__all__ = ["own_labs", "quick_disk"]

#: Few trials, but a search that builds on another one.
ONLY_SEARCHES = """
name = "small"
gateways = ["nftables-nat44"]
profile = "quick"
seed = 5

[traffic]
connections = 1000

[[measure]]
metric = "connection-rate"
error = "50%"

[[measure]]
metric = "throughput"
error = "50%"
"""
TWO_DEVICES = ONLY_SEARCHES.replace('"nftables-nat44"', '"nftables-nat44", "linux-ipv4"')


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A campaign that nobody disturbed, and how many trials it took."""
    folder = tmp_path_factory.mktemp("undisturbed")
    benches = Benches()
    campaign(folder, benches, plan=ONLY_SEARCHES)
    return folder, sum(benches.trials.values())


def test_killed_in_any_trial_every_repetition_that_ended_is_kept_and_only_the_running_one_is_repeated(
    undisturbed: tuple[Path, int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    reference, trials = undisturbed
    most = max(map(len, asked(reference).values()))
    assert trials > 8
    for number in range(trials):
        folder = tmp_path_factory.mktemp("killed")
        benches = Benches(killed=Dies(number))
        with pytest.raises(Killed):
            campaign(folder, benches, plan=ONLY_SEARCHES)
        assert sum(benches.trials.values()) == number
        benches.killed = Dies()
        campaign(folder, benches, plan=ONLY_SEARCHES)
        assert trials <= sum(benches.trials.values()) <= trials + most
        assert asked(folder) == asked(reference)
        assert results(folder) == results(reference)


@pytest.mark.parametrize("by", [EndedBySignal(signal.SIGTERM), HostError("the disk is full")])
def test_what_had_ended_is_stored_when_a_session_is_ended_within_its_turn(
    by: BaseException, undisturbed: tuple[Path, int], tmp_path: Path
) -> None:
    reference = undisturbed[0]
    (name,) = (name for name in results(reference) if "connection-rate" in name)
    benches = Benches(killed=Dies(len(asked(reference)[name, 1]), by=by))
    with pytest.raises(type(by)):
        campaign(tmp_path, benches, plan=ONLY_SEARCHES)
    assert results(tmp_path) == {name: results(reference)[name]}


def test_what_a_killed_session_left_of_any_cell_is_stored_by_the_next_one_whatever_it_measures(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    campaign(tmp_path / "whole", Benches(), plan=TWO_DEVICES)
    first, other = (line["cell"] for line in events(tmp_path / "whole", "visit"))
    name = next(name for name in results(tmp_path / "whole") if name.startswith(first) and "connection-rate" in name)
    benches = Benches(killed=Dies(len(asked(tmp_path / "whole")[name, 1])))
    with pytest.raises(Killed):
        campaign(tmp_path / "killed", benches, plan=TWO_DEVICES)
    assert results(tmp_path / "killed") == {}
    benches.killed = Dies(0)
    with pytest.raises(Killed):
        campaign(tmp_path / "killed", benches, plan=TWO_DEVICES, only=[other])
    assert results(tmp_path / "killed") == {name: results(tmp_path / "whole")[name]}


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.soak)])
def test_killed_while_any_line_is_written_at_most_one_repetition_is_run_again(
    step: int, undisturbed: tuple[Path, int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """An odd step takes lines that are lost whole and lines that are cut off in turn."""
    reference, trials = undisturbed
    most = max(map(len, asked(reference).values()))
    for number in itertools.count(1, step):
        folder = tmp_path_factory.mktemp("cut")
        benches = Benches()
        try:
            with pytest.MonkeyPatch.context() as patch:
                journal_dies(patch, Dies(number), octets=40 * (number % 2))
                campaign(folder, benches, plan=ONLY_SEARCHES)
        except Killed:
            campaign(folder, benches, plan=ONLY_SEARCHES)
            assert trials <= sum(benches.trials.values()) <= trials + most
            assert asked(folder) == asked(reference)
            assert results(folder) == results(reference)
            continue
        assert number > trials
        break


def test_killed_in_every_repetition_it_ends_all_the_same(tmp_path: Path) -> None:
    """Two devices and two repetitions, a session for each repetition at least."""
    plan = TWO_DEVICES.replace("seed = 5", "seed = 5\nrepetitions = 2")
    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    campaign(tmp_path / "whole", Benches(), plan=plan)
    repetitions = asked(tmp_path / "whole")
    benches, sessions = Benches(), 0
    while True:
        benches.killed = Dies(max(map(len, repetitions.values())) + 1)
        sessions += 1
        try:
            campaign(tmp_path / "killed", benches, plan=plan)
        except Killed:
            continue
        break
    assert sessions > len(repetitions) / 2
    assert asked(tmp_path / "killed") == repetitions
    assert results(tmp_path / "killed") == results(tmp_path / "whole")


def test_a_full_disk_ends_in_one_line_and_loses_nothing(
    undisturbed: tuple[Path, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    reference, trials = undisturbed
    left = [12]

    def write(file: int, line: bytes) -> None:
        left[0] -= 1
        if left[0] < 0:
            os.write(file, line[:30])
            raise OSError(errno.ENOSPC, "No space left on device")
        os.write(file, line)

    most = max(map(len, asked(reference).values()))
    benches = Benches()
    with monkeypatch.context() as patch:
        patch.setattr(journal, "write", write)
        with golden.raises(HostError):
            campaign(tmp_path, benches, plan=ONLY_SEARCHES)
    assert (tmp_path / "out" / "journal.jsonl").read_text().endswith("}\n")
    campaign(tmp_path, benches, plan=ONLY_SEARCHES)
    assert trials < sum(benches.trials.values()) <= trials + most
    assert results(tmp_path) == results(reference)


def test_the_evidence_of_every_trial_is_kept_once(undisturbed: tuple[Path, int]) -> None:
    folder, trials = undisturbed
    kept = [line for path in (folder / "out").rglob("trials.jsonl") for line in path.read_text().splitlines()]
    assert len(kept) == trials
    assert sum(entry["stored"]["trials"] for entry in events(folder, "repetition")) == trials


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """The folder of a campaign that was killed in its fourth trial."""
    with pytest.raises(Killed):
        campaign(tmp_path, Benches(killed=Dies(3)), plan=ONLY_SEARCHES)
    return tmp_path / "out"


def test_a_journal_of_an_older_schema_is_refused_in_one_line(begun: Path, golden: Golden) -> None:
    """Notes were sentences in 1, the remarks of trials notes in 2; 3 had the evidence, 4 a line for each trial.

    6 did not name the cells that are tried again.
    """
    path = begun / "journal.jsonl"
    newest, text = max(re.findall(r"natgauge-journal-\d+", path.read_text())), path.read_text()
    for number in range(1, 7):
        path.write_text(text.replace(newest, f"natgauge-journal-{number}"))
        with golden.raises(UsageError) as raised:
            campaign(begun.parent, Benches(), plan=ONLY_SEARCHES)
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "change",
    [
        {"natgauge": "0.0.1"},
        {"sha256": "0" * 64},
        {"schema": "natgauge-campaign-9"},
        {"recipes": {}},
        {"cells": [{"name": "x"}]},
        {"plan": ONLY_SEARCHES.replace("1000", "1001")},
        {"kernel": "5.0"},
    ],
    ids=" ".join,
)
def test_a_campaign_of_another_version_plan_recipe_or_machine_is_not_gone_on_with(
    begun: Path, change: dict[str, Any], golden: Golden
) -> None:
    """A changed key of the plan is named."""
    plan = change.get("plan", ONLY_SEARCHES)
    path = begun / ("environment.json" if "kernel" in change else "campaign.json")
    document = json.loads(path.read_text())
    if "plan" not in change:
        (document["machine"] if "kernel" in change else document).update(change)
    path.write_text(json.dumps(document))
    golden.places |= {platform.release(): "RELEASE", exact_version(): "THE PRESENT ONE"}
    before = (begun / "journal.jsonl").read_bytes()
    with golden.raises(UsageError) as refused:
        campaign(begun.parent, Benches(), plan=plan)
    assert "\n" not in str(refused.value)
    assert (begun / "journal.jsonl").read_bytes() == before


@pytest.mark.parametrize("first", ["", '[lab]\nlab_name = "old"\n', "[lab]\ngrace_seconds = 0.3\n"])
def test_a_campaign_goes_on_in_a_lab_of_another_name_and_under_another_name_of_its_plan(
    tmp_path: Path, first: str
) -> None:
    """Seen: the lab was in use, its name was changed, and natgauge refused to go on."""
    plan = ONLY_SEARCHES.replace("[traffic]", f"{first}[traffic]")
    assert plan.count(first) == 1 or not first
    with pytest.raises(Killed):
        campaign(tmp_path, Benches(killed=Dies(3)), plan=plan)
    kept = [line for line in first.splitlines() if "grace" in line]
    named = "\n".join(["[lab]", 'lab_name = "new"', *kept, "[traffic]"])
    other = ONLY_SEARCHES.replace("[traffic]", named).replace('name = "small"', 'name = "large"')
    for changed in (other.replace("1000", "1001"), other.replace("[lab]", '[lab]\nplacement = "isolated"')):
        with pytest.raises(UsageError, match=r"\((traffic|lab) changed\)"):
            campaign(tmp_path, Benches(), plan=changed)
    labs = []

    def gateway(cell: Cell) -> Gateway:
        labs.append(cell.lab.lab_name)
        return Gateway(establishes=30_000, forwards=60_000)

    campaign(tmp_path, Benches(gateway=gateway), plan=other, lab_name="third")
    assert set(labs) == {"third"}
    assert results(tmp_path)


def test_a_campaign_is_not_gone_on_with_where_the_profile_of_its_subscribers_has_changed(
    tmp_path: Path, golden: Golden
) -> None:
    """One result would be of two loads."""
    profile = tmp_path / "mine.toml"
    profile.write_text(SUBSCRIBER)
    with pytest.raises(Killed):
        campaign(tmp_path, Benches(killed=Dies(1)), plan=OF_SUBSCRIBERS)
    profile.write_text(OTHER_SUBSCRIBER)
    with golden.raises(UsageError):
        campaign(tmp_path, Benches(), plan=OF_SUBSCRIBERS)
    profile.write_text(SUBSCRIBER)
    campaign(tmp_path, Benches(), plan=OF_SUBSCRIBERS)
    assert len(results(tmp_path)) == 1


def test_a_campaign_ends_where_the_profile_of_its_subscribers_changes_while_it_runs(
    tmp_path: Path, golden: Golden
) -> None:
    profile = tmp_path / "mine.toml"
    profile.write_text(SUBSCRIBER)

    def gateway(_cell: Cell) -> Gateway:
        profile.write_text(OTHER_SUBSCRIBER)
        return Gateway(establishes=30_000, forwards=60_000)

    with golden.raises(UsageError):
        campaign(tmp_path, Benches(gateway=gateway), plan=OF_SUBSCRIBERS)
    assert len(events(tmp_path, "repetition")) == 1


@pytest.fixture
def go_on(begun: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., object]:
    """Go on with the campaign as the command line does, which undoes first what was left behind."""
    monkeypatch.setattr("natgauge.campaigns.campaign.check_host", lambda: None)
    monkeypatch.setattr("natgauge.campaigns.campaign.LabBench", Benches())
    return partial(run_campaign, RunOrder(plan=begun.parent / "small.toml", out=begun, resume=True))


def test_a_campaign_that_is_gone_on_with_undoes_what_the_killed_session_left(
    go_on: Callable[..., object], own_labs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(namespaces, "all_processes", tuple)
    gone = [left_behind("selftest-4711"), left_behind("cost-4711-cable")]
    kept, used = left_behind("mine", kept=True), Register.begin("other", "netns", {})
    try:
        go_on()
    finally:
        used.release()
    assert [path for path in gone if path.exists()] == []
    assert sorted(path.name for path in own_labs.iterdir()) == ["mine", "mine.json"]
    assert kept.exists()
    assert progress(tmp_path).measurements[0].folder


def test_what_cannot_be_undone_does_not_end_the_campaign_that_goes_on(
    go_on: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    shown: list[str] = []

    def refuse() -> list[str]:
        raise HostError("run/x.json: is damaged")

    monkeypatch.setattr(cleaning, "undo_left_behind", refuse)
    observer = Silent()
    monkeypatch.setattr(observer, "stage", shown.append)
    go_on(observer)
    golden(shown[0])
    assert progress(tmp_path).measurements[0].folder


# Repetitions of several devices or machines say so, and are compared with nothing.

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


def test_results_of_two_metrics_or_units_are_never_comparable(golden: Golden) -> None:
    golden([str(one) for one in comparable(made([1.0]), made([1.0], metric="latency", unit="us"))])


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
    (found,) = summaries(tmp_path).values()
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
    (found,) = summaries(tmp_path).values()
    assert "mixed" not in words(found)


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
    found = summaries(tmp_path).values()
    assert [len(result.repetitions) for result in found] == [3, 3]
    assert not [result for result in found if "mixed" in words(result)]


#: One measurement on each of two machines.
TWO_MACHINES = """
name = "small"
gateways = ["nftables-nat44"]
profile = "quick"
seed = 5

[lab]
lab = "ssh"
boot_seconds = 60.0
boot_command = "boot $NG_CORES"
device_inside = "x"
device_outside = "y"
initiator_port = "a"
responder_port = "b"

[[point]]
name = "a"
ssh_host = "root@a"
cores = 1

[[point]]
name = "b"
ssh_host = "root@b"
cores = 1

[[measure]]
metric = "connection-rate"
error = "50%"
"""


def test_a_device_on_two_machines_is_two_devices(tmp_path: Path) -> None:
    """They may be of different versions."""
    benches = Versioned()

    def gateway(cell: Cell) -> Gateway:
        benches.version = str(getattr(cell.kind_options, "ssh_host", None))
        return Gateway(establishes=30_000, forwards=60_000)

    benches.gateway = gateway
    campaign(tmp_path, benches, plan=TWO_MACHINES)
    found = [result.parameter("version") for result in summaries(tmp_path).values()]
    assert found == [["root@a"], ["root@b"]]
