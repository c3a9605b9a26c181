# SPDX-License-Identifier: Apache-2.0
"""A journal that was edited or damaged: `status` and `--resume` refuse it in one line, and change nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.campaigning import ONE_CONNECTION_RATE, Benches, Dies, Killed, campaign, quick_disk
from tests.unit.golden import Golden

from natgauge.campaigns.journal import entries
from natgauge.campaigns.journal_lines import typed
from natgauge.campaigns.status import status
from natgauge.errors import UsageError

__all__ = ["quick_disk"]
#: Trials after which two repetitions have ended, and the third has not.
AFTER = 22
Line = dict[str, Any]


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> list[Line]:
    """The lines of a campaign of three repetitions that was killed in the last one."""
    folder = tmp_path_factory.mktemp("killed")
    with pytest.raises(Killed):
        campaign(folder, Benches(killed=Dies(AFTER)), plan=ONE_CONNECTION_RATE)
    lines = [json.loads(line) for line in (folder / "out" / "journal.jsonl").read_text().splitlines()]
    assert {line["event"] for line in lines} >= {"session", "visit", "repetition", "trial"}
    return lines


def begun(folder: Path) -> Path:
    """Begin the campaign, and return the path of its journal."""
    with pytest.raises(Killed):
        campaign(folder, Benches(killed=Dies(AFTER)), plan=ONE_CONNECTION_RATE)
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


def of(event: str, change: Callable[[Line], object]) -> Callable[[list[Line]], list[Line]]:
    """Change the first line of an event."""

    def changed(lines: list[Line]) -> list[Line]:
        copies: list[Line] = json.loads(json.dumps(lines))
        change(next(line for line in copies if line["event"] == event))
        return copies

    return changed


def lasting(event: str, change: Callable[[Line], object]) -> Callable[[list[Line]], list[Line]]:
    """Change the last line of an event."""
    return lambda lines: of(event, change)(lines[::-1])[::-1]


def without(event: str) -> Callable[[list[Line]], list[Line]]:
    """Remove the first line of an event."""

    def changed(lines: list[Line]) -> list[Line]:
        at = next(at for at, line in enumerate(lines) if line["event"] == event)
        return [*lines[:at], *lines[at + 1 :]]

    return changed


def twice(event: str) -> Callable[[list[Line]], list[Line]]:
    """Repeat the first line of an event."""

    def changed(lines: list[Line]) -> list[Line]:
        at = next(at for at, line in enumerate(lines) if line["event"] == event)
        return [*lines[: at + 1], *lines[at:]]

    return changed


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
        (without("repetition"), "repetition 2 of linux-ipv4"),
        (lasting("repetition", lambda line: line["stored"].update(trials=0)), "repetition 2 of linux-ipv4"),
        (twice("repetition"), "repetition 1 of linux-ipv4"),
    ],
)
def test_a_damaged_line_is_refused_by_status_and_by_resume(
    change: Callable[[list[Line]], list[Line]], words: str, journal: list[Line], tmp_path: Path
) -> None:
    assert words in refusal(begun(tmp_path), change(journal))


def test_a_broken_line_names_what_is_broken(journal: list[Line], tmp_path: Path, golden: Golden) -> None:
    broken = {"schema": journal[0]["schema"], "event": "broken", "at": 1.0, "cause": "x", "device": "linux-ipv4"}
    path = begun(tmp_path)
    golden(refusal(path, [*journal, {**broken, "scope": "host"}]))
    assert "measurement: Field required" in refusal(path, [*journal, {**broken, "scope": "measurement", "cell": "c"}])


def test_repetitions_that_are_no_result_are_refused(tmp_path: Path, golden: Golden) -> None:
    path = begun(tmp_path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    ended = next(line for line in lines if line["event"] == "repetition")
    ended["measured"]["measurements"][0]["trials"]["PASS"] = -1
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with golden.raises(UsageError):
        campaign(tmp_path, Benches(), plan=ONE_CONNECTION_RATE)


def test_any_octets_in_a_last_line_that_was_cut_off_are_left_out(tmp_path: Path) -> None:
    path = begun(tmp_path)
    before = list(entries(tmp_path / "out"))
    with path.open("ab") as file:
        file.write(b'{"schema":"\xff\xfe')
    assert list(entries(tmp_path / "out")) == before
    assert status(tmp_path / "out").measurements[0].done == 2


def test_a_repetition_of_a_device_that_natgauge_does_not_start_is_read_again(journal: list[Line]) -> None:
    """Seen: the journal had no device, and the campaign could not be resumed."""
    line = next(line for line in journal if line["event"] == "repetition")
    typed({**line, "device": None}, "journal.jsonl:4")
