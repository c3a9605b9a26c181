# SPDX-License-Identifier: Apache-2.0
"""What a user names for output is a file or a stream of this process; all else is refused in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.conftest import Ran
from tests.unit.golden import Golden
from tests.unit.made_results import kept, made

from natgauge import Result
from natgauge.cli import run


@pytest.fixture(name="results")
def a_results_folder(tmp_path: Path) -> Path:
    return kept(tmp_path / "results", made([1.0]))


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


@pytest.fixture(name="frames")
def a_folder_for_data_frames(tmp_path: Path) -> list[str]:
    """Command line that writes those of a result without trials into the folder "frames"."""
    pytest.importorskip("polars")
    document = made([1.0]).document()
    repetitions = [{**one, "trials": {}} for one in document["repetitions"]]
    without_trials = Result.from_document({**document, "trials": {}, "repetitions": repetitions})
    (folder,) = kept(tmp_path / "untried", without_trials).iterdir()
    (folder / "trials.jsonl").write_text("")
    (tmp_path / "frames").mkdir()
    return ["report", str(folder), "--parquet", str(tmp_path / "frames")]


def test_a_data_frame_replaces_no_pipe(frames: list[str], tmp_path: Path, ran: Ran) -> None:
    os.mkfifo(tmp_path / "frames" / "trials.parquet")
    assert f"cannot write {tmp_path / 'frames' / 'trials.parquet'}: " in ran(frames, status=2).err


def test_a_file_is_replaced_behind_its_link_and_is_whole(results: Path, tmp_path: Path, ran: Ran) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "file").write_text("old")
    ran(["report", str(results), "--html", str(tmp_path / "link")])
    assert (tmp_path / "link").is_symlink()
    page = (tmp_path / "file").read_text()
    assert (page[:15], page.rstrip()[-7:]) == ("<!DOCTYPE html>", "</html>")


def test_octets_replace_those_behind_a_link_as_text_does(frames: list[str], tmp_path: Path, ran: Ran) -> None:
    link = tmp_path / "frames" / "trials.parquet"
    (tmp_path / "file").write_bytes(b"old")
    link.symlink_to(tmp_path / "file")
    ran(frames)
    assert link.is_symlink()
    octets = (tmp_path / "file").read_bytes()
    assert (octets[:4], octets[-4:]) == (b"PAR1", b"PAR1")


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


def test_a_full_stream_is_one_line(results: Path, golden: Golden) -> None:
    words = [str(Path(sys.executable).with_name("natgauge")), "report", str(results), "--html", "-"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert done.returncode == 3
    golden(done.stderr)


def test_a_path_that_cannot_be_looked_at_is_one_line(results: Path, tmp_path: Path, ran: Ran) -> None:
    (line,) = ran(["report", str(results), "--html", str(tmp_path / ("x" * 300))], status=2).err.splitlines()
    assert "cannot write" in line
