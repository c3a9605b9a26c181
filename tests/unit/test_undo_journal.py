# SPDX-License-Identifier: Apache-2.0
"""The journal of changes to undo: what it promises to labs and to tuning alike."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
from tests.unit.golden import Golden

from natgauge import files
from natgauge.errors import HostError
from natgauge.host.tuning.tuner import Changed, State
from natgauge.host.undo_journal import Content, Item, Strict, UndoJournal


class _Made(Strict):
    what: str


class _Journal(Content):
    items: list[_Made]


def journal(path: Path) -> UndoJournal:
    return UndoJournal(path, _Journal, "delete it", mend=f"rm {path}")


def written(path: Path) -> list[Item]:
    found: list[Item] = json.loads(path.read_text())["items"]
    return found


def full_disk(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/run")


def test_a_change_is_in_the_file_when_record_returns_and_another_process_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    one = journal(path)
    for what in ("first", "second"):
        one.record({"what": what})
        assert written(path) == one.items
    other = journal(path)
    assert other.read() is not None
    assert other.items == [{"what": "first"}, {"what": "second"}]


def test_a_change_that_cannot_be_written_down_is_in_neither_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal"
    one = journal(path)
    one.record({"what": "first"})
    monkeypatch.setattr(files, "replace", full_disk)
    with pytest.raises(HostError, match="is full"):
        one.record({"what": "second"})
    assert one.items == written(path) == [{"what": "first"}]


def test_undoing_needs_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "journal"
    one = journal(path)
    for what in ("first", "second"):
        one.record({"what": what})
    with monkeypatch.context() as patched:
        patched.setattr(files, "replace", full_disk)
        one.shorten([{"what": "first"}])
    # The file may name more than is left, and never less.
    assert one.items == [{"what": "first"}]
    assert len(written(path)) == 2


@pytest.mark.parametrize(
    "text", ["{", '{"version": 1}', '{"version": 1, "items": [{"what": 1}]}', '{"version": 2, "items": []}']
)
def test_nothing_of_a_file_with_one_wrong_field_is_believed(tmp_path: Path, text: str, golden: Golden) -> None:
    path = tmp_path / "journal"
    path.write_text(text)
    one = journal(path)
    with golden.raises(HostError) as refused:
        one.read()
    assert one.items == []
    assert "\n" not in str(refused.value)


def test_whatever_else_is_in_the_place_of_the_file_of_tuning_is_refused_and_left(tmp_path: Path) -> None:
    link, pipe = tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(tmp_path / "nowhere")
    os.mkfifo(pipe)
    for path in (link, pipe):
        with pytest.raises(HostError, match=path.name):
            State(path)
    assert link.is_symlink()
    assert pipe.is_fifo()


def test_a_setting_that_tuning_changes_twice_is_one_change(tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    kept = State(path)
    kept.take(Changed("governor", "cpu0", "powersave", "performance"))
    kept.take(Changed("smt", "machine", "on", "off"))
    kept.take(Changed("governor", "cpu0", "powersave", "schedutil"))
    assert [(each.knob, each.set) for each in State(path).items] == [("smt", "off"), ("governor", "schedutil")]
    for each in State(path).items:
        kept.drop(each)
    assert not path.exists()
