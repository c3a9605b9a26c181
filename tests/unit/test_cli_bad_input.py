# SPDX-License-Identifier: Apache-2.0
"""Every wrong question to the command line: one line that names it, the right exit status, nothing left behind."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, NoReturn

import pytest
from tests.simulated_lab import Simulation, simulated
from tests.unit.conftest import Ran
from tests.unit.golden import Golden

from natgauge.cli import run

MEASURE = ["measure", "throughput", "--gateway", "nftables-nat44"]
SIMULATED = ["measure", "throughput", "--lab", "simulated", "--gateway", "simulated", "--profile", "quick"]


#: A value that nobody wants to see whole.
LONG = "x" * 5000


CHAIN = """
name = "mine"
title = "two devices"
kind = "464xlat"
initiator_family = "ipv4"
responder_family = "ipv4"
stateful = true
source = "translated"
[[chain]]
device = "ce"
recipe = "{}"
[[chain]]
device = "pe"
recipe = "{}"
"""


@pytest.mark.parametrize(
    "recipes",
    [
        ("./mine.toml", "tayga-nat64"),
        ("mine", "tayga-nat64"),
        ("tayga-clat", "464xlat-tayga"),
        ("tayga-clat", "nftables-nat44"),
        ("tayga-siit", "nftables-nat44"),
        ("linux-ipv4", "tayga-clat"),
        ("tayga-clat", "tayga-nat46"),
        ("nftables-nat44", "iptables-nat44"),
        ("tayga-clat", "./nothing.toml"),
    ],
)
def test_a_chain_that_cannot_be_is_refused_in_one_line(
    recipes: tuple[str, str],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    golden: Golden,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gateways").mkdir()
    (tmp_path / "gateways" / "mine.toml").write_text(CHAIN.format(*recipes))
    for named in ("mine", "gateways/mine.toml"):
        assert run(["measure", "throughput", "--gateway", named]) == 2
        shown = capsys.readouterr()
        assert (shown.out, shown.err.count("\n")) == ("", 1)
        assert shown.err.startswith("natgauge: ")
        golden(shown.err)
    assert [path.name for path in tmp_path.iterdir()] == ["gateways"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["measure", LONG, "--gateway", "linux-ipv4"],
        ["measure", "throughput", "--gateway", LONG],
        [*MEASURE, "--connections", LONG],
        [*MEASURE, "--repeat", f"1 {LONG}"],
        [*MEASURE, "--repeat", "x " * 2500],
        [*MEASURE, "--placement", LONG],
        ["report", LONG],
    ],
    ids=["metric", "gateway", "number", "words", "many words", "choice", "folder"],
)
def test_a_long_value_is_repeated_only_in_part(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert len(shown) < 700, shown
    assert "characters" in shown


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    with simulated() as made:
        yield made


def fails(error: OSError) -> Callable[[str], NoReturn]:
    def fail(_lab: str) -> NoReturn:
        raise error

    return fail


def test_a_results_folder_that_cannot_be_made_is_refused_before_any_work(
    simulation: Simulation, ran: Ran, tmp_path: Path
) -> None:
    simulation.enters = lambda _lab: pytest.fail("a lab is made")
    (tmp_path / "file").write_text("in the way")
    shown = ran([*SIMULATED, "--results", str(tmp_path / "file" / "results")], 2).err
    assert shown.count("\n") == 1
    assert "--results" in shown
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("lacking", "instead", "words"),
    [
        ("natgauge.host.programs._candidates", lambda _name: iter(()), ["make setup"]),
        ("natgauge.host.capabilities.missing", lambda *names: names, ["CAP_BPF"]),
        ("platform.release", lambda: "6.1.0-56-amd64", ["6.1.0-56-amd64", "6.6"]),
    ],
    ids=["no engine", "no capabilities", "an old kernel"],
)
def test_what_the_machine_lacks_is_named_before_anything_is_made(
    lacking: str,
    instead: Callable[..., object],
    words: list[str],
    tmp_path: Path,
    *,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lacking, instead)
    assert run([*MEASURE, "--results", str(tmp_path / "results")]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert [word for word in words if word not in line] == []
    assert list(tmp_path.iterdir()) == []


def test_an_output_on_a_full_disk_ends_in_one_line_that_blames_the_disk(tmp_path: Path, golden: Golden) -> None:
    with Path("/dev/full").open("w") as full:
        done = natgauge_printing_to(full, tmp_path)
    assert done.returncode == 3
    golden(done.stderr)
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_has_left_is_no_verdict_and_no_fault(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = natgauge_printing_to(writing, tmp_path)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_pipe_of_its_own_that_broke_is_not_taken_for_a_reader_that_has_left(
    simulation: Simulation, in_an_empty_folder: Path, ran: Ran
) -> None:
    simulation.enters = fails(BrokenPipeError(errno.EPIPE, "Broken pipe"))
    assert "BrokenPipeError" in ran(SIMULATED, 4).err
    assert list(in_an_empty_folder.glob("natgauge-traceback-*.txt"))


@pytest.mark.usefixtures("simulation")
def test_progress_that_nobody_reads_is_a_reader_that_has_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    before = os.dup(2)
    os.dup2(writing, 2)
    unread = os.fdopen(writing, "w")
    monkeypatch.setattr("sys.stderr", unread)
    status = run([*SIMULATED, "--results", str(tmp_path / "results")])
    os.dup2(before, 2)
    os.close(before)
    with suppress(BrokenPipeError):
        unread.close()
    assert status == 141


def natgauge_printing_to(output: int | IO[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a short command whose standard output is `output`."""
    program = "import sys; from natgauge.cli import main; sys.argv[1:] = ['lab', 'status']; main()"
    return subprocess.run(
        [sys.executable, "-c", program], check=False, cwd=folder, stdout=output, stderr=subprocess.PIPE, text=True
    )


def test_a_disk_that_is_full_during_a_measurement_is_no_fault_of_natgauge(
    simulation: Simulation, in_an_empty_folder: Path, ran: Ran, golden: Golden
) -> None:
    simulation.enters = fails(OSError(errno.ENOSPC, "no room", "results/x"))
    golden(ran(SIMULATED, 3).err)
    assert not list(in_an_empty_folder.glob("natgauge-traceback-*.txt"))


@pytest.mark.parametrize(("number", "status"), [(errno.ENOSPC, 3), (errno.EDQUOT, 3), (errno.EACCES, 2)])
def test_results_that_cannot_be_written_blame_the_disk_or_the_folder(  # noqa: PLR0917 - fixtures
    simulation: Simulation,
    number: int,
    status: int,
    tmp_path: Path,
    ran: Ran,
    monkeypatch: pytest.MonkeyPatch,
    golden: Golden,
) -> None:
    def fill(_lab: str) -> None:
        monkeypatch.setattr(os, "fsync", fails(OSError(number, "no")))

    simulation.enters = fill
    golden(ran([*SIMULATED, "--results", str(tmp_path / "results")], status).err)


PLAN = """
name = "small"
gateways = ["linux-ipv4"]
repetitions = 2
[traffic]
connections = 1000
[[measure]]
metric = "throughput"
"""


@pytest.mark.parametrize(
    "change",
    [
        ("repetitions = 2", "repetitions = 0"),
        ("repetitions = 2", 'repetitions = "often"'),
        ('["linux-ipv4"]', "[]"),
        ('["linux-ipv4"]', '"linux-ipv4"'),
        ('["linux-ipv4"]', "[3]"),
        ('"small"', "3"),
        ("[traffic]", "[[traffic]]"),
        ("[[measure]]", "[measure]"),
    ],
    ids=" to ".join,
)
def test_a_plan_with_a_value_of_another_type_is_refused_in_one_line_of_plain_words(
    change: tuple[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    golden: Golden,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.toml").write_text(PLAN.replace(*change))
    assert run(["run", "p.toml"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    golden(said)
