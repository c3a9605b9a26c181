# SPDX-License-Identifier: Apache-2.0
"""Files are replaced whole; the journal of changes to undo, and the folder of results, which are made of them."""

from __future__ import annotations

import errno
import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.counted import make_counts
from tests.unit.golden import Golden

from natgauge import file_access
from natgauge.errors import HostError, UsageError, fault
from natgauge.host.private_files import Content, Item, Strict, UndoJournal
from natgauge.host.tuner import Changed, State
from natgauge.records.record import read_lines
from natgauge.records.store import TRIAL_SCHEMA, Store, plain
from natgauge.trials import Direction
from natgauge.words import Verdict


def test_a_file_is_replaced_and_nothing_stays_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    for text in ("old", "näher"):
        file_access.replace(path, text)
        assert path.read_text(encoding="utf-8") == text
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "found.json"
    path.write_text("old")

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        file_access.replace(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_goes_with_the_partial_ones_of_killed_processes(tmp_path: Path) -> None:
    path, other = tmp_path / "a.json", tmp_path / "b.json"
    for one in (path, other, tmp_path / "a.json.123.new"):
        one.write_text("x")
    file_access.remove(path)
    file_access.remove(path)
    assert list(tmp_path.iterdir()) == [other]


def trap(tmp_path: Path, link: Path) -> Path:
    """A file of somebody, to which a link of another user leads."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    link.symlink_to(victim)
    return victim


def test_a_link_with_the_name_of_a_partial_file_is_not_followed(tmp_path: Path) -> None:
    victim = trap(tmp_path, tmp_path / f"found.json.{os.getpid()}.new")
    file_access.replace(tmp_path / "found.json", "new")
    assert (victim.read_text(), (tmp_path / "found.json").read_text()) == ("precious", "new")


def test_a_link_with_the_name_of_a_traceback_is_not_followed(tmp_path: Path) -> None:
    victim = trap(tmp_path, tmp_path / "traceback.txt")
    told = fault(ValueError("strange"), [tmp_path / "traceback.txt"])
    assert str(told).endswith(str(tmp_path / "traceback.txt"))
    assert victim.read_text() == "precious"
    assert "strange" in (tmp_path / "traceback.txt").read_text()


def test_a_private_file_is_its_owners_alone_also_where_a_link_or_a_public_file_was(tmp_path: Path) -> None:
    path = tmp_path / "key"
    victim = trap(tmp_path, path)
    file_access.write_private(path, b"secret")
    assert (victim.read_text(), path.read_bytes(), path.stat().st_mode & 0o777) == ("precious", b"secret", 0o600)
    path.chmod(0o644)
    file_access.write_private(path, b"other")
    assert path.stat().st_mode & 0o777 == 0o600


# The journal of changes to undo: what it promises to labs and to tuning alike.


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
    monkeypatch.setattr(file_access, "replace", full_disk)
    with pytest.raises(HostError, match="is full"):
        one.record({"what": "second"})
    assert one.items == written(path) == [{"what": "first"}]


def test_undoing_needs_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "journal"
    one = journal(path)
    for what in ("first", "second"):
        one.record({"what": what})
    with monkeypatch.context() as patched:
        patched.setattr(file_access, "replace", full_disk)
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


# The results folder: complete lines, schema versions, refusals.

NOW = datetime(2026, 11, 21, 8, 0, 0, tzinfo=UTC)


def test_two_runs_in_one_second_get_folders_of_their_own(tmp_path: Path) -> None:
    first = Store.create(tmp_path / "deep" / "results", "throughput", "nftables-nat44", now=NOW)
    second = Store.create(tmp_path / "deep" / "results", "throughput", "nftables-nat44", now=NOW)
    assert first.folder.name == "2026-11-21-080000-throughput-nftables-nat44"
    assert second.folder != first.folder


def test_a_path_through_a_file_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="--results"):
        Store.create(tmp_path / "file" / "results", "throughput", "x", now=NOW)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_every_trial_is_one_whole_line_with_its_schema_and_number(tmp_path: Path) -> None:
    store = Store.create(tmp_path, "throughput", "x", now=NOW)
    counts = make_counts(intended=3, offered=3, received=2)
    store.add_trial({"verdict": Verdict.INVALID, "counts": {Direction.INITIATOR: counts}})
    store.add_trial({"verdict": Verdict.PASS})
    lines = list(read_lines(store.folder / "trials.jsonl", TRIAL_SCHEMA))
    assert [line["trial"] for line in lines] == [1, 2]
    assert lines[0]["verdict"] == "INVALID"
    assert lines[0]["counts"]["initiator"]["received_frames"] == 2


def test_a_line_cut_off_by_a_crash_is_left_out(tmp_path: Path) -> None:
    store = Store.create(tmp_path, "throughput", "x", now=NOW)
    store.add_trial({"verdict": Verdict.PASS})
    path = store.folder / "trials.jsonl"
    path.write_text(path.read_text() + '{"schema": "natgauge-tr')
    assert len(list(read_lines(path, TRIAL_SCHEMA))) == 1


@pytest.mark.parametrize(
    "line", ["{}", '{"schema": "natgauge-trial-1"}', '{"schema": "natgauge-trial-9"}', "nonsense", "[]"]
)
def test_lines_of_another_schema_are_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "trials.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(UsageError, match=r"trials\.jsonl:1"):
        list(read_lines(path, TRIAL_SCHEMA))


def test_a_figure_that_is_no_number_is_never_written(tmp_path: Path) -> None:
    store = Store.create(tmp_path, "throughput", "x", now=NOW)
    with pytest.raises(ValueError, match="JSON"):
        store.add_trial({"rate": float("nan")})


def test_a_discarded_folder_goes_with_those_made_for_it_and_no_others(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "deep" / "results", "throughput", "x", now=NOW)
    store.write_plan({"connections": 1})
    plan = {"schema": "natgauge-plan-1", "metric": "throughput", "gateway": "x", "connections": 1}
    assert json.loads((store.folder / "plan.json").read_text()) == plan
    store.discard()
    assert list(tmp_path.iterdir()) == []
    kept = Store.create(tmp_path / "results", "throughput", "x", now=NOW)
    Store.create(tmp_path / "results", "throughput", "x", now=NOW).discard()
    assert list((tmp_path / "results").iterdir()) == [kept.folder]


def test_paths_sets_and_mappings_become_json(tmp_path: Path) -> None:
    assert plain({Verdict.PASS: (tmp_path, {1})}) == {"PASS": [str(tmp_path), [1]]}
