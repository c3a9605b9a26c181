# SPDX-License-Identifier: Apache-2.0
"""What a user names for output is a file or a stream of this process; all else is refused in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.golden import Golden
from tests.unit.made_results import made

from natgauge import outputs
from natgauge.cli import run
from natgauge.errors import HostError, UsageError
from natgauge.records.store import Store

NAMED = {"what": "report", "remedy": "name another"}


@pytest.fixture(name="results")
def a_results_folder(tmp_path: Path) -> Path:
    (tmp_path / "results").mkdir()
    Store(tmp_path / "results").write_summary(made([1.0]).document())
    return tmp_path / "results"


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/full", "/dev/null", "fifo", "folder", "nowhere/file"])
def test_a_page_is_written_to_no_device_pipe_or_folder(
    path: str, results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    assert run(["report", str(results), "--html", str(tmp_path / path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"cannot write {tmp_path / path}: " in line
    assert sorted(each.name for each in tmp_path.iterdir()) == ["fifo", "folder", "results"]


def test_a_data_frame_replaces_no_pipe(results: Path, tmp_path: Path) -> None:
    pytest.importorskip("polars")
    (results / "trials.jsonl").write_text("")
    document = made([1.0], trials={}).document()
    document["repetitions"][0]["trials"] = {}
    Store(results).write_summary(document)
    (tmp_path / "frames").mkdir()
    os.mkfifo(tmp_path / "frames" / "trials.parquet")
    assert run(["report", str(results), "--parquet", str(tmp_path / "frames")]) == 2


def test_a_file_is_replaced_behind_its_link_and_is_whole(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    for content in ("one", b"two"):
        outputs.write(tmp_path / "link", content, **NAMED)
        assert (tmp_path / "file").read_text() == (content if isinstance(content, str) else content.decode())
    assert (tmp_path / "link").is_symlink()


#: Names of standard output, and whether it is a pipe or a file; `make soak` has the other pairs.
OUTPUTS = [
    pytest.param(name, piped, marks=() if (name, piped) in {("-", True), ("/dev/stdout", False)} else pytest.mark.soak)
    for name in ("-", "/dev/stdout", "/dev/fd/1")
    for piped in (True, False)
]


@pytest.mark.parametrize(("name", "piped"), OUTPUTS)
def test_standard_output_takes_the_page_and_nothing_else(
    name: str, results: Path, tmp_path: Path, *, piped: bool
) -> None:
    words = [str(Path(sys.executable).with_name("natgauge")), "report", str(results), "--html", name]
    if piped:
        text = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout
    else:
        with (tmp_path / "page").open("w") as file:
            subprocess.run(words, stdout=file, check=True, timeout=60)
        text = (tmp_path / "page").read_text()
    assert text.startswith("<!DOCTYPE html>")
    assert text.rstrip().endswith("</html>")


@pytest.mark.parametrize("form", ["json", "csv", "text"])
def test_paths_of_written_files_are_no_part_of_a_printed_table(
    form: str, results: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    page, tests = str(tmp_path / "page.html"), str(tmp_path / "tests.xml")
    assert run(["report", str(results), "--format", form]) == 0
    alone = capfd.readouterr().out
    assert run(["report", str(results), "--format", form, "--html", page, "--junit", tests]) == 0
    assert capfd.readouterr() == (alone, f"{page}\n{tests}\n")
    assert run(["report", str(results), "--html", page, "--junit", tests]) == 0
    assert capfd.readouterr() == (f"{page}\n{tests}\n", "")


def test_the_path_of_a_written_page_is_no_part_of_a_printed_xml(
    results: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    page = str(tmp_path / "page.html")
    assert run(["report", str(results), "--html", page, "--junit", "-"]) == 0
    said = capfd.readouterr()
    assert said.err == f"{page}\n"
    assert said.out.startswith("<?xml")


def test_a_full_stream_is_one_line(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(outputs, "_own_handle", lambda _path: full.fileno())
        with golden.raises(HostError):
            outputs.write(Path("-"), "x" * 100_000, **NAMED)


def test_a_path_that_cannot_be_looked_at_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot write"):
        outputs.write(tmp_path / ("x" * 300), "x", **NAMED)
