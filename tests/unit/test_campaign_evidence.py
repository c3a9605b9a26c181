# SPDX-License-Identifier: Apache-2.0
"""The evidence of a campaign is written once, what a killed session left of it never counts; its damaged journal."""

from __future__ import annotations

import errno
import itertools
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from tests.plans import OneTrial
from tests.unit.campaigning import (
    ONE_CONNECTION_RATE,
    Benches,
    Dies,
    Killed,
    campaign,
    progress,
    quick_disk,
    results,
    summaries,
)
from tests.unit.counted import change_trial
from tests.unit.golden import Golden
from tests.unit.simulated import Gateway

from natgauge import file_access
from natgauge.campaigns import journal, run, state
from natgauge.campaigns.journal import entries, typed
from natgauge.campaigns.state import EvidenceFile, Extent, status
from natgauge.errors import BrokenError, HostError, UsageError
from natgauge.inputs.question import Cell
from natgauge.measurer import Ability
from natgauge.records.record import read_lines
from natgauge.records.store import ROUND_SCHEMA
from natgauge.stored.find_results import find

__all__ = ["quick_disk"]

NAME = "linux-ipv4-connection-rate"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A campaign that nobody disturbed, and how many trials it took."""
    folder = tmp_path_factory.mktemp("undisturbed")
    benches = Benches()
    campaign(folder, benches, plan=ONE_CONNECTION_RATE)
    return folder, sum(benches.trials.values())


def result(folder: Path) -> Path:
    """The results folder of the campaign's only measurement."""
    (found,) = (folder / "out" / "results").iterdir()
    return found


class Breaks(Dies):
    """A device that is gone after some trials."""

    def moment(self) -> bool:
        """Whether this was the last moment."""
        try:
            return super().moment()
        except Killed:
            raise BrokenError("it broke") from None


def trials(folder: Path) -> list[tuple[int, int, Any]]:
    """Number, repetition and plan of each trial of the result."""
    lines = (result(folder) / "trials.jsonl").read_text().splitlines()
    return [(line["trial"], line["repetition"], line["plan"]) for line in map(json.loads, lines)]


def begun(folder: Path, after: int = 22) -> Path:
    """A campaign that was killed in its last repetition, and the folder in which its evidence grows."""
    with pytest.raises(Killed):
        campaign(folder, Benches(killed=Dies(after)), plan=ONE_CONNECTION_RATE)
    return result(folder)


def test_killed_while_the_evidence_of_any_repetition_is_written_each_trial_is_there_once(
    undisturbed: tuple[Path, int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Of the evidence nothing, a part or all has reached the disk, and the line of the journal has not."""
    reference, _ = undisturbed
    whole = journal.write
    for number, octets in itertools.product((1, 2, 3), (0, 40, 10**6)):
        folder, dies = tmp_path_factory.mktemp("cut"), Dies(number)

        def write(file: int, lines: bytes, dies: Dies = dies, octets: int = octets) -> None:
            last = dies.moment()
            whole(file, lines[:octets] if last else lines)
            if last:
                raise Killed

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(state, "write", write)
            with pytest.raises(Killed):
                campaign(folder, Benches(), plan=ONE_CONNECTION_RATE)
        campaign(folder, Benches(), plan=ONE_CONNECTION_RATE)
        assert results(folder) == results(reference)
        assert trials(folder) == trials(reference)


@pytest.mark.parametrize("moment", ["before the result", "in the result", "between the folders", "before its line"])
def test_killed_while_the_result_is_made_the_result_is_made_again(
    moment: str, undisturbed: tuple[Path, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference, _ = undisturbed
    publish = EvidenceFile.publish

    def publishing(self: EvidenceFile) -> None:
        if moment == "between the folders":
            shutil.rmtree(self.result, ignore_errors=True)
        elif moment == "before its line":
            publish(self)
        raise Killed

    def settling(_self: EvidenceFile, _known: Extent) -> Path:
        raise Killed

    with monkeypatch.context() as patch:
        if moment == "before the result":
            patch.setattr(EvidenceFile, "settle", settling)
        else:
            patch.setattr(EvidenceFile, "publish", publishing)
        with pytest.raises(Killed):
            campaign(tmp_path, Benches(), plan=ONE_CONNECTION_RATE)
    campaign(tmp_path, Benches(), plan=ONE_CONNECTION_RATE)
    assert results(tmp_path) == results(reference)
    assert trials(tmp_path) == trials(reference)
    assert sorted(path.name for path in result(tmp_path).iterdir()) == sorted(
        path.name for path in result(reference).iterdir()
    )


def test_no_evidence_is_in_the_journal(undisturbed: tuple[Path, int]) -> None:
    folder, number_of = undisturbed
    repetitions = [entry for entry in entries(folder / "out") if entry["event"] == "repetition"]
    assert not [entry for entry in repetitions if "evidence" in entry]
    assert [entry["stored"]["trials"] for entry in repetitions][-1] == len(trials(folder)) == number_of


def test_an_incomplete_result_keeps_its_evidence_until_a_complete_one_takes_its_place(
    undisturbed: tuple[Path, int], tmp_path: Path
) -> None:
    """A device that broke in the second repetition is tried again; the session that does is killed in between."""
    reference, _ = undisturbed
    ended = [number for _, number, _ in trials(reference)].count(1)
    campaign(tmp_path, Benches(killed=Breaks(ended + 3)), plan=ONE_CONNECTION_RATE)
    assert [number for _, number, _ in trials(tmp_path)] == [1] * ended + [2] * 3
    incomplete = (result(tmp_path) / "trials.jsonl").read_bytes()
    with pytest.raises(Killed):
        campaign(tmp_path, Benches(killed=Dies(3)), plan=ONE_CONNECTION_RATE, retry_broken=True)
    assert (tmp_path / "out" / "results" / NAME / "trials.jsonl").read_bytes() == incomplete
    campaign(tmp_path, Benches(), plan=ONE_CONNECTION_RATE)
    assert trials(tmp_path) == trials(reference)
    assert results(tmp_path) == results(reference)


@pytest.mark.parametrize("left", [0, 100, None])
def test_evidence_that_is_less_than_the_journal_counts_is_refused_in_one_line(
    left: int | None, tmp_path: Path, golden: Golden
) -> None:
    path = begun(tmp_path) / "trials.jsonl"
    if left is None:
        path.unlink()
    else:
        os.truncate(path, left)
    with pytest.raises(UsageError) as refused:
        campaign(tmp_path, Benches(), plan=ONE_CONNECTION_RATE)
    golden(str(refused.value))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("of", ["folder", "file"])
def test_a_link_in_the_place_of_the_evidence_changes_nothing_elsewhere(of: str, tmp_path: Path) -> None:
    making = begun(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    if of == "folder":
        making.rename(elsewhere)
        making.symlink_to(elsewhere)
        target = elsewhere / "trials.jsonl"
    else:
        target = elsewhere
        (making / "trials.jsonl").rename(target)
        (making / "trials.jsonl").symlink_to(target)
    before = target.read_bytes()
    with pytest.raises((UsageError, HostError)) as refused:
        campaign(tmp_path, Benches(), plan=ONE_CONNECTION_RATE)
    assert str(making) in str(refused.value)
    assert target.read_bytes() == before


def test_a_link_in_the_place_of_all_results_is_refused_by_its_target_and_changes_nothing_there(tmp_path: Path) -> None:
    making, elsewhere = begun(tmp_path), tmp_path / "elsewhere"
    making.parent.rename(elsewhere)
    making.parent.symlink_to(elsewhere)
    before = {path: path.read_bytes() for path in elsewhere.rglob("*") if path.is_file()}
    with pytest.raises(HostError) as refused:
        campaign(tmp_path, Benches(), plan=ONE_CONNECTION_RATE)
    assert f"{making.parent}: is a link to {elsewhere}, outside of the campaign" in str(refused.value)
    assert {path: path.read_bytes() for path in elsewhere.rglob("*") if path.is_file()} == before


def test_a_campaign_reached_by_a_link_goes_on(undisturbed: tuple[Path, int], tmp_path: Path) -> None:
    reference, _ = undisturbed
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    begun(tmp_path / "link")
    campaign(tmp_path / "link", Benches(), plan=ONE_CONNECTION_RATE)
    assert trials(tmp_path / "real") == trials(reference)


def test_a_disk_that_is_full_for_the_evidence_ends_in_one_line_and_loses_nothing(
    undisturbed: tuple[Path, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    reference, number_of = undisturbed
    left = [1]

    def write(file: int, lines: bytes) -> None:
        left[0] -= 1
        if left[0] < 0:
            os.write(file, lines[:30])
            raise OSError(errno.ENOSPC, "No space left on device")
        os.write(file, lines)

    benches = Benches()
    with monkeypatch.context() as patch:
        patch.setattr(state, "write", write)
        with golden.raises(HostError):
            campaign(tmp_path, benches, plan=ONE_CONNECTION_RATE)
    assert len(find([tmp_path / "out"]).results) == 1
    assert (tmp_path / "out" / "results" / f".making-{NAME}" / "trials.jsonl").read_text().endswith("}\n")
    campaign(tmp_path, benches, plan=ONE_CONNECTION_RATE)
    assert sum(benches.trials.values()) == number_of + [number for _, number, _ in trials(reference)].count(2)
    assert trials(tmp_path) == trials(reference)


def test_evidence_that_a_kill_cut_off_does_not_keep_the_rest_from_being_reported(tmp_path: Path) -> None:
    """Seen: no result of the campaign could be read until it was resumed."""
    making = begun(tmp_path)
    with (making / "trials.jsonl").open("a") as file:
        file.write('{"schema": "natgauge-tri')
    (found,) = find([tmp_path / "out"]).results
    assert len(found.repetitions) == 2


#: Of which nothing but rounds of slices is recorded.
COST = (
    ONE_CONNECTION_RATE.replace("linux-ipv4", "nftables-nat44").replace(
        'metric = "connection-rate"\nerror = "30%"', 'metric = "cost"'
    )
    + '[lab]\nplacement = "shared"\n'
)


def test_the_rounds_of_a_cost_are_kept_like_trials(tmp_path: Path) -> None:
    """Seen: the folder of a cost had neither rounds nor trials, though all slices were promised."""

    def gateway(_cell: Cell) -> Gateway:
        return Gateway(placement="shared", abilities=frozenset({Ability.COSTS}), slice_noise=0.05)

    # Killed in the second of three rounds of the second repetition.
    with pytest.raises(Killed):
        campaign(tmp_path, Benches(gateway=gateway, killed=Dies(4)), plan=COST)
    path = result(tmp_path) / "rounds.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:10])
    with pytest.raises(UsageError, match=r"rounds\.jsonl: has 10 octets, but the journal counts .* of 3 rounds; "):
        campaign(tmp_path, Benches(gateway=gateway), plan=COST)
    path.write_bytes(whole + b'{"schema": "natgauge-comp')
    campaign(tmp_path, Benches(gateway=gateway), plan=COST)
    lines = read_lines(result(tmp_path) / "rounds.jsonl", ROUND_SCHEMA)
    found = [(line["round"], line["repetition"]) for line in lines]
    assert found == [(number, 1 + (number - 1) // 3) for number in range(1, 10)]
    assert not (result(tmp_path) / "trials.jsonl").exists()
    assert len(find([tmp_path / "out"]).results) == 1


#: 432 periods of a second.
PERIODS = """
name = "small"
gateways = ["nftables-nat44"]
profile = "quick"
repetitions = 1
seed = 5

[traffic]
connections = 1000

[[measure]]
metric = "stability"
hours = 0.12
throughput_rate = 1e6
connection_rate = 1e6
"""


def test_very_many_periods_are_few_in_the_journal_and_say_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen: a day of them was a line of more than 64 MiB, which status, --resume and report refused for ever."""

    def gateway(_cell: Cell) -> Gateway:
        abilities = frozenset({Ability.PERIODS})
        return Gateway(abilities=abilities, disturbed=0.1, alters=foreign_in_some)

    def foreign_in_some(number: int, trial: OneTrial) -> OneTrial:
        return change_trial(trial, foreign=20_000 + number) if number % 50 == 3 else trial

    said, longest = [], []
    # A fifth of the periods, and of the most attempts that are kept one by one.
    for most in (run.MOST_ATTEMPTS // 5, 10_000):
        monkeypatch.setattr(run, "MOST_ATTEMPTS", most)
        folder = tmp_path / str(most)
        folder.mkdir()
        campaign(folder, Benches(gateway=gateway), plan=PERIODS)
        (found,) = summaries(folder).values()
        assert found.figures["periods"].median == 432
        said.append((found.median, found.trials, found.disturbed, found.figures, found.doubts, found.notes))
        longest.append(max(map(len, (folder / "out" / "journal.jsonl").read_text().splitlines())))
    assert said[0] == said[1]
    assert {doubt.word for doubt in said[0][4]} >= {"other traffic", "disturbed trials", "INVALID trials"}
    # The rows of the periods stay.
    assert longest[0] < longest[1] / 3


def test_a_line_that_nobody_could_read_is_refused_before_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_access, "LINES", replace(file_access.LINES, line_octets=8000))
    with pytest.raises(UsageError, match=r"the most of a line is .* MiB; give it fewer trials or periods$"):
        campaign(tmp_path, Benches(), plan=ONE_CONNECTION_RATE)
    assert [entry["event"] for entry in entries(tmp_path / "out")][-2:] == ["trial", "session-ended"]


# A journal that was edited or damaged: `status` and `--resume` refuse it in one line, and change nothing.

Line: TypeAlias = dict[str, Any]


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> list[Line]:
    """The lines of a campaign of three repetitions that was killed in the last one."""
    folder = tmp_path_factory.mktemp("killed")
    with pytest.raises(Killed):
        campaign(folder, Benches(killed=Dies(22)), plan=ONE_CONNECTION_RATE)
    lines = [json.loads(line) for line in (folder / "out" / "journal.jsonl").read_text().splitlines()]
    assert {line["event"] for line in lines} >= {"session", "visit", "repetition", "trial"}
    return lines


def begun_journal(folder: Path) -> Path:
    """Begin the campaign, and return the path of its journal."""
    begun(folder)
    return folder / "out" / "journal.jsonl"


def refusal(path: Path, lines: list[Line]) -> str:
    """What is said to these lines, by status and by --resume alike."""
    text = "".join(json.dumps(line) + "\n" for line in lines)
    path.write_text(text)
    said = []
    for read in (lambda: status(path.parent), lambda: campaign(path.parents[1], Benches(), plan=ONE_CONNECTION_RATE)):
        with pytest.raises(UsageError) as raised:
            read()
        said.append(str(raised.value))
    assert said[0] == said[1]
    assert "\n" not in said[0]
    assert "the journal is damaged; restore it, or begin a new campaign: --out" in said[0]
    assert path.read_text() == text
    return said[0]


def of(event: str, change: Callable[[Line], object], at: int = 0) -> Callable[[list[Line]], object]:
    """Change a line of an event, the first one if no other is named."""
    return lambda lines: change([line for line in lines if line["event"] == event][at])


def again(lines: list[Line], times: int) -> None:
    """Have the first repetition so many times."""
    at = next(at for at, line in enumerate(lines) if line["event"] == "repetition")
    lines[at : at + 1] = lines[at : at + 1] * times


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (of("session", lambda line: line.pop("event")), ":1: event: None: there is none of this name"),
        (of("session", lambda line: line.update(event=["x"])), ":1: event: ['x']: there is none of this name"),
        (of("visit", lambda line: line.pop("at")), ":2: at: Field required"),
        (of("visit", lambda line: line.update(cell=7)), ":2: cell: 7: Input should be a valid string"),
        (of("repetition", lambda line: line.update(repetition=0)), "repetition: 0: Input should be greater than"),
        (of("repetition", lambda line: line.update(given={"loss": 1.0})), "given.loss"),
        (of("repetition", lambda line: line.update(began="now")), "began: 'now': Input should be"),
        (of("repetition", lambda line: line.update(parameters=[])), "parameters: []: Input should be"),
        (of("trial", lambda line: line["bounds"].pop("lower")), "bounds.lower: Field required"),
        (of("trial", lambda line: line["plan"].pop("phase2")), "plan.phase2: Field required"),
        (of("repetition", lambda line: line.pop("stored")), "stored: Field required"),
        (
            of("repetition", lambda line: line["stored"].update(octets=-1)),
            "stored.octets: -1: Input should be greater than",
        ),
        (of("repetition", lambda line: line.update(seconds=-1)), "seconds: -1: Input should be greater than"),
        (of("repetition", lambda line: line.update(seconds=1e308)), "seconds: 1e+308: Input should be less than"),
        (of("session", lambda line: line.update(at=1e308)), ":1: at: 1e+308: Input should be less than"),
        (of("repetition", lambda line: line["measured"].pop("metric")), "measured.metric: Field required"),
        (of("repetition", lambda line: line["measured"].update(unit=[])), "measured.unit: []: Input should be"),
        (lambda lines: again(lines, 0), "repetition 2 of linux-ipv4"),
        (of("repetition", lambda line: line["stored"].update(trials=0), -1), "repetition 2 of linux-ipv4"),
        (lambda lines: again(lines, 2), "repetition 1 of linux-ipv4"),
    ],
)
def test_a_damaged_line_is_refused_by_status_and_by_resume(
    change: Callable[[list[Line]], object], words: str, damaged: list[Line], tmp_path: Path
) -> None:
    lines: list[Line] = json.loads(json.dumps(damaged))
    change(lines)
    assert words in refusal(begun_journal(tmp_path), lines)


def test_a_broken_line_names_what_is_broken(damaged: list[Line], tmp_path: Path, golden: Golden) -> None:
    broken = {"schema": damaged[0]["schema"], "event": "broken", "at": 1.0, "cause": "x", "device": "linux-ipv4"}
    path = begun_journal(tmp_path)
    golden(refusal(path, [*damaged, {**broken, "scope": "host"}]))
    assert "measurement: Field required" in refusal(path, [*damaged, {**broken, "scope": "measurement", "cell": "c"}])


def test_repetitions_that_are_no_result_are_refused(tmp_path: Path, golden: Golden) -> None:
    path = begun_journal(tmp_path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    ended = next(line for line in lines if line["event"] == "repetition")
    ended["measured"]["measurements"][0]["trials"]["PASS"] = -1
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with golden.raises(UsageError):
        campaign(tmp_path, Benches(), plan=ONE_CONNECTION_RATE)


def test_any_octets_in_a_last_line_that_was_cut_off_are_left_out(tmp_path: Path) -> None:
    path = begun_journal(tmp_path)
    before = list(entries(tmp_path / "out"))
    with path.open("ab") as file:
        file.write(b'{"schema":"\xff\xfe')
    assert list(entries(tmp_path / "out")) == before
    assert progress(tmp_path).measurements[0].done == 2


def test_a_repetition_of_a_device_that_natgauge_does_not_start_is_read_again(damaged: list[Line]) -> None:
    """Seen: the journal had no device, and the campaign could not be resumed."""
    line = next(line for line in damaged if line["event"] == "repetition")
    typed({**line, "device": None}, "journal.jsonl:4")
