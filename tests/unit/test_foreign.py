# SPDX-License-Identifier: Apache-2.0
"""Files of strangers are read with limits and without waiting, by one reader; others are refused in one line."""

from __future__ import annotations

import ast
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.golden import Golden

import natgauge
from natgauge import file_access
from natgauge.cli import run
from natgauge.errors import UsageError

ROOT = Path(natgauge.__file__).parent
SMALL = file_access.FileKind("plan", "name a plan's file", 1000, line_octets=100)
#: Modules that open files of the kernel, of natgauge itself, or that they made; no path of them is somebody else's.
OWN_FILES = {
    "bounded_output.py", "host/capabilities.py", "causes/hops.py", "causes/cause.py",
    "records/parameters.py", "notes.py", "errors.py", "reports/html/drawings.py",
    "trial/connection_log.py", "setup/log_collector.py",
    "spread/worker.py", "cli/__init__.py", "file_access.py", "host/machine.py",
    "host/process_files.py", "gateways/support.py", "host/private_files.py",
    "labs/common/register.py", "labs/common/namespaces.py",
    "labs/common/processes.py", "host/sampling.py",
    "host/settings.py",
    "host/tuner.py", "host/knobs.py", "labs/common/port_options.py",
    "cleaning.py", "labs/common/device.py", "labs/common/links.py", "labs/common/locks.py",
    "labs/netns/lab.py",
    "labs/ssh/remote.py", "labs/vm/lab.py", "labs/wire/port_state.py", "reports/html/page.py",
    "published/printed.py", "version.py", "tester/doctor.py", "tester/own_rates.py", "guest_building.py",
    # It appends to a folder that it made, and opens a journal for writing without following a link.
    "records/store.py", "campaigns/journal.py", "campaigns/state.py",
    # An image, and regular files of the user's folder, whose size it has checked.
    "labs/vm/image.py",
}  # fmt: skip
#: Calls that open a file; `load` of json and tomllib read from one.
OPENERS = {"read_text", "read_bytes", "open", "fdopen"}
READERS = {"json", "tomllib"}


def opened(path: Path) -> list[int]:
    """Lines on which a module opens a file by itself."""
    found = []
    source = path.read_text(encoding="utf-8")
    # To parse a module takes longer than all else; most open nothing.
    for node in ast.walk(ast.parse(source if any(f"{name}(" in source for name in (*OPENERS, "load")) else "")):
        if not isinstance(node, ast.Call):
            continue
        match node.func:
            case ast.Name(id="open"):
                found.append(node.lineno)
            case ast.Attribute(value=ast.Name(id="file_access")):
                continue
            case ast.Attribute(attr="load", value=ast.Name(id=module)) if module in READERS:
                found.append(node.lineno)
            case ast.Attribute(attr=name, value=ast.Name(id=owner)) if name == "open" and owner in {
                "examiner",
                "kind",
                "self",
            }:
                continue
            case ast.Attribute(attr=name) if name in OPENERS:
                found.append(node.lineno)
    return found


def test_no_other_module_opens_a_file_that_somebody_else_may_have_made() -> None:
    opening = {str(path.relative_to(ROOT)) for path in ROOT.glob("**/*.py") if opened(path)}
    assert opening - OWN_FILES == set()


def refused(path: Path, kind: file_access.FileKind = SMALL) -> str:
    with pytest.raises(UsageError) as error:
        file_access.read_text(path, kind)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_regular_file_is_read_with_or_without_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "plan"
    for octets in ("näher\n".encode(), b"\xef\xbb\xbf" + "näher\n".encode()):
        path.write_bytes(octets)
        assert file_access.read_text(path, SMALL) == "näher\n"
        assert list(file_access.read_lines(path, SMALL)) == ["näher"]


def test_what_is_no_regular_file_is_refused_by_its_kind_without_waiting(tmp_path: Path, golden: Golden) -> None:
    fifo, link = tmp_path / "fifo", tmp_path / "gateway.toml"
    os.mkfifo(fifo)
    link.symlink_to("/dev/zero")
    golden(refused(fifo))
    golden(refused(link))
    assert "a folder" in refused(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        assert "a socket" in refused(tmp_path / "socket")
    assert "No such file" in refused(tmp_path / "nothing")
    assert "File name too long" in refused(tmp_path / ("x" * 300))


@pytest.mark.parametrize("name", ["/proc/self/maps", "/proc/uptime", "/sys/kernel/uevent_seqnum"])
def test_files_of_the_kernel_are_refused_also_behind_a_link(name: str, tmp_path: Path, golden: Golden) -> None:
    link = tmp_path / "trials.jsonl"
    link.symlink_to(name)
    golden(refused(link, file_access.DOCUMENT))
    with golden.raises(UsageError):
        list(file_access.read_lines(link, file_access.LINES))


@pytest.mark.parametrize("name", ["a\0b", "a\ud800"])
def test_nothing_is_where_no_file_can_be(tmp_path: Path, name: str) -> None:
    assert not file_access.is_there(tmp_path / name)


def test_sizes_and_lines_have_a_limit(tmp_path: Path, golden: Golden) -> None:
    path = tmp_path / "plan"
    with path.open("wb") as file:
        file.truncate(10 << 30)
    assert "10,240 MiB" in refused(path, file_access.PLAN)
    path.write_bytes(b"a" * 100 + b"\n" + b"b" * 200 + b"\n")
    lines = file_access.read_lines(path, SMALL)
    assert next(lines) == "a" * 100
    with golden.raises(UsageError):
        next(lines)


def test_octets_that_are_no_text_are_named_and_a_cut_off_line_is_left_out(tmp_path: Path, golden: Golden) -> None:
    path = tmp_path / "plan"
    path.write_bytes(b"a\n\xff\n")
    golden(refused(path))
    with golden.raises(UsageError):
        list(file_access.read_lines(path, SMALL))
    path.write_bytes(b"a\n\xff")
    assert list(file_access.read_lines(path, SMALL)) == ["a"]


def natgauge_in(folder: Path, *words: str, script: str = "") -> subprocess.CompletedProcess[str]:
    """Run natgauge in a folder, through a shell line before it; it must end within seconds."""
    begun = f"{sys.executable} -c 'from natgauge.cli import main; main()' {' '.join(words)}"
    return subprocess.run(
        ["sh", "-c", f"{script} {begun}"], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("words", [("plan", "check"), ("gateways", "show"), ("status",), ("report",), ("explain",)])
def test_no_command_waits_for_a_pipe_or_reads_without_end(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("x.toml", "campaign.json", "summary.json", "trials.jsonl"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    of_file = words in {("plan", "check"), ("gateways", "show")}
    for name in ("./x.toml", "./zero.toml") if of_file else (".",):
        assert run([*words, name]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_gateways_of_the_folder_that_cannot_be_read_are_left_out_of_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gateways").mkdir()
    os.mkfifo(tmp_path / "gateways" / "pipe.toml")
    (tmp_path / "gateways" / "zero.toml").symlink_to("/dev/zero")
    assert run(["gateways"]) == 2
    shown = capsys.readouterr()
    assert "nftables-nat44" in shown.out
    assert [("it is a FIFO" in shown.err), ("it is a device" in shown.err)] == [True, True]


def test_a_folder_that_was_removed_is_one_line_and_help_needs_none(tmp_path: Path, golden: Golden) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"rmdir {gone};"
    done = natgauge_in(gone, "gateways", script=script)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1), done.stderr
    golden(done.stderr)
    gone.mkdir()
    assert natgauge_in(gone, "--version", script=script).returncode == 0


def test_a_closed_standard_output_or_error_is_no_fault(tmp_path: Path) -> None:
    for closed in (">&-", "2>&-", "<&-", ">&- 2>&-"):
        done = natgauge_in(tmp_path, "gateways", closed)
        assert done.returncode == 0, (closed, done.stderr)
    # A refusal is all that goes to the error output.
    for closed in ("2>&-", ">&- 2>&-"):
        done = natgauge_in(tmp_path, "report", "nothing", closed)
        assert (done.returncode, "Traceback" in done.stderr) == (2, False), (closed, done.stderr)


def test_names_that_no_record_can_hold_are_refused_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    assert run(["report", "x\udcff"]) == 2
    golden(capsys.readouterr().err)
    assert run(["report", "x" * 300]) == 2
    golden(capsys.readouterr().err)
    shutil.rmtree(tmp_path)


def test_a_pipe_in_place_of_a_file_is_refused_as_such_and_not_taken_for_a_missing_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    for name in ("summary.json", "comparison.json", "audit.json"):
        (tmp_path / name).symlink_to("/dev/zero")
        assert run(["report", str(tmp_path)]) == 2
        golden(capsys.readouterr().err)
        (tmp_path / name).unlink()
    os.mkfifo(tmp_path / "trials.jsonl")
    assert run(["explain", str(tmp_path)]) == 2
    golden(capsys.readouterr().err)


def test_a_page_waits_for_no_reader_of_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "page")
    with pytest.raises(OSError, match="No such device"):
        file_access.write_through(tmp_path / "page", "x")
    reader = os.open(tmp_path / "page", os.O_RDONLY | os.O_NONBLOCK)
    file_access.write_through(tmp_path / "page", "x")
    assert os.read(reader, 10) == b"x"
    os.close(reader)


def test_an_output_for_reading_only_and_narrow_terminals_are_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    done = natgauge_in(tmp_path, "gateways", "1</dev/null")
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    golden(done.stderr)
    for columns in ("1", "2", "0", "-3", "x"):
        monkeypatch.setenv("COLUMNS", columns)
        assert run(["measure", "--help"]) == 0
    monkeypatch.setenv("_NATGAUGE_COMPLETE", "bash_complete")
    done = natgauge_in(tmp_path, "gateways")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
