# SPDX-License-Identifier: Apache-2.0
"""Every wrong question to the command line: one line that names it, the right exit status, nothing left behind."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from natgauge.cli import run
from natgauge.errors import HostError, NatgaugeError
from natgauge.records.store import Store

MEASURE = ["measure", "throughput", "--gateway", "nftables-nat44"]
RATE = ["measure", "connection-rate", "--gateway", "nftables-nat44"]
QUERIES = ["measure", "resolution-rate", "--gateway", "nftables-nat44"]
WIRE = ["measure", "throughput", "--gateway", "linux-ipv4", "--lab", "wire"]
PORTS = [
    *("--initiator-port", "ngnone0", "--initiator-gateway", "02:00:00:00:00:01"),
    *("--responder-port", "ngnone1", "--responder-gateway", "02:00:00:00:00:02"),
]

COMPARE = ["compare", "nftables-nat44"]

WRONG = [
    # Comparisons.
    (["compare"], "nothing alone"),
    (COMPARE, "nftables-nat44 alone"),
    ([*COMPARE, "nftables-nat45"], "nftables-nat45"),
    ([*COMPARE, "./nothing.toml"], "nothing.toml"),
    ([*COMPARE, "nftables-nat44:speed=9"], "speed"),
    ([*COMPARE, "nftables-nat44:connections=many"], "many"),
    ([*COMPARE, "nftables-nat44:connections=0"], "connections: 0"),
    ([*COMPARE, "nftables-nat44:order=sideways"], "sideways"),
    ([*COMPARE, "nftables-nat44:hash_size=65536", "--by", "slices"], "a setting of the whole machine"),
    ([*COMPARE, "linux-ipv4"], "--unlike"),
    ([*COMPARE, "nftables-nat66"], "--unlike"),
    (["compare", "tayga-nat64", "tayga-nat64", "--by", "slices"], "processes of its own"),
    ([*COMPARE, *["nftables-nat44"] * 14], "at most 16"),
    ([*COMPARE, "nftables-nat44", "--quantities", "sideways"], "sideways"),
    ([*COMPARE, "nftables-nat44", "--quantities", ""], "quantities"),
    ([*COMPARE, "nftables-nat44", "--resolve", "1"], "resolve"),
    ([*COMPARE, "nftables-nat44", "--resolve", "0%"], "resolve"),
    ([*COMPARE, "nftables-nat44", "--level", "nan%"], "level"),
    ([*COMPARE, "nftables-nat44", "--fail-above", "-3%"], "fail above"),
    ([*COMPARE, "nftables-nat44", "--fail-above", "10"], "fail above: '10' is unclear without a % sign; write 10% or"),
    ([*COMPARE, "nftables-nat44", "--most-seconds", "0"], "most seconds"),
    ([*COMPARE, "nftables-nat44", "--slice-frames", "1"], "slice frames"),
    ([*COMPARE, "nftables-nat44", "--connections", "100"], "too few for the cost of new ones"),
    ([*COMPARE, "nftables-nat44", "--core", "9999"], "9999"),
    ([*COMPARE, "nftables-nat44", "--seed", "-1"], "seed"),
    # Names.
    (["measure"], "METRIC"),
    (["measure", "--gateway", "nftables-nat44", "throughput"], "METRIC comes before the options"),
    ([*MEASURE, "--loads", "50%"], "loads: the metric throughput has no such setting"),
    ([*MEASURE, "--loss-tolerance", "much"], "loss tolerance: 'much' is not a share; write it like 1% or 0.01"),
    ([*MEASURE, "--profile", "slow"], "profile: 'slow' is unknown; choose one of default, quick"),
    ([*MEASURE, "--most-seconds", "-1"], "most seconds: -1.0 is not"),
    ([*COMPARE, "nftables-nat44:cores=0-", "linux-ipv4"], 'cores "0-"'),
    (["measure", "throughput"], "--gateway"),
    (["measure", "thruput", "--gateway", "nftables-nat44"], "thruput"),
    (["measure", "throughput", "--gateway", "nftables-nat45"], "nftables-nat45"),
    (["measure", "throughput", "--gateway", "./nothing.toml"], "nothing.toml"),
    (["nonsense"], "nonsense"),
    ([*MEASURE, "--nonsense"], "--nonsense"),
    # Real servers.
    ([*QUERIES, "--far-side", "unbound"], 'far side "unbound": unknown'),
    ([*QUERIES, "--far-side", "./nothing.toml"], "nothing.toml: cannot be read"),
    ([*QUERIES, "--far-side", "knot", "--lab", "wire", *PORTS, "--device-timeout", "9"], "a place for a real server"),
    ([*QUERIES, "--far-side", "knot", "--server-cores", "9999"], "server cores: core 9999 cannot be used here"),
    ([*QUERIES, "--far-side", "knot", "--lab", "vm", "--server-cores", "0"], "lab vm has no such option"),
    (["gateways", "show", "nothing"], "nothing"),
    (["lab", "down", "ng-none-such"], "ng-none-such"),
    (["lab", "down", "Not A Name"], "Not A Name"),
    ([*MEASURE, "--lab-name", "Not A Name"], "Not A Name"),
    # Connections and ranges.
    ([*MEASURE, "--connections", "0"], "connections"),
    ([*MEASURE, "--connections", "-1"], "connections"),
    ([*MEASURE, "--connections", "many"], "many"),
    ([*MEASURE, "--connections", "1e6"], "1e6"),
    ([*MEASURE, "--connections", str(2**31 + 1)], str(2**31 + 1)),
    ([*MEASURE, "--source-ports", "0-10"], "port 0"),
    ([*MEASURE, "--source-ports", "10-1"], "reversed"),
    ([*MEASURE, "--source-ports", ""], "source ports"),
    ([*MEASURE, "--destination-ports", "1-70000"], "70000"),
    ([*MEASURE, "--source-addresses", "10.0.0.1-10.0.0.5"], "device's own"),
    ([*MEASURE, "--source-addresses", "10.0.0.5-10.0.0.2"], "reversed"),
    ([*MEASURE, "--source-addresses", "8.8.8.8"], "not a test address"),
    ([*MEASURE, "--destination-addresses", "2001:2::9"], "IPv6"),
    ([*MEASURE, "--connections", "11", "--source-ports", "1-10", "--destination-ports", "1"], "10 four tuples"),
    ([*MEASURE, "--source-addresses", "10.0.0.2-10.0.0.3", "--destination-ports", "1"], "outside ports"),
    # Frames.
    ([*MEASURE, "--frame-size", "63"], "63"),
    ([*MEASURE, "--frame-size", "9000"], "9000"),
    (["measure", "throughput", "--gateway", "nftables-nat66", "--frame-size", "64"], "84"),
    ([*MEASURE, "--frame-side", "left"], "left"),
    # Rates, durations, repetitions.
    ([*MEASURE, "--connection-rate", "0"], "connection rate"),
    ([*MEASURE, "--connection-rate", "-5"], "connection rate"),
    ([*MEASURE, "--connection-rate", "nan"], "connection rate"),
    ([*MEASURE, "--connection-rate", "inf"], "connection rate"),
    ([*MEASURE, "--connection-rate", "1e12"], "connection rate"),
    ([*MEASURE, "--trial-seconds", "0"], "trial seconds"),
    ([*MEASURE, "--trial-seconds", "nan"], "trial seconds"),
    ([*MEASURE, "--trial-seconds", "-1"], "trial seconds"),
    ([*RATE, "--trial-seconds", "1"], "trial seconds"),
    ([*RATE, "--direction", "up"], "directions"),
    ([*MEASURE, "--error", "0"], "error"),
    ([*MEASURE, "--error", "nan"], "error"),
    ([*MEASURE, "--error", "a lot"], "a lot"),
    ([*MEASURE, "--error", "200%"], "error"),
    ([*MEASURE, "--repeat", "0"], "repeat"),
    ([*MEASURE, "--loss-tolerance", "2"], "loss tolerance"),
    ([*MEASURE, "--loss-tolerance", "nan"], "loss tolerance"),
    ([*MEASURE, "--frame-timeout", "0"], "frame timeout"),
    ([*MEASURE, "--seed", "-1"], "seed"),
    ([*MEASURE, "--seed", str(2**64)], "seed"),
    ([*MEASURE, "--grace-seconds", "61"], "grace"),
    ([*MEASURE, "--grace-seconds", "nan"], "grace"),
    # Places.
    ([*MEASURE, "--cores", "4095"], "4095"),
    ([*MEASURE, "--cores", "0,0"], "twice"),
    ([*MEASURE, "--cores", "zero"], "zero"),
    ([*MEASURE, "--cores", ""], "cores"),
    ([*MEASURE, "--sender-cores", "4095"], "4095"),
    ([*MEASURE, "--placement", "beside"], "beside"),
    ([*MEASURE, "--ring", "0"], "ring"),
    ([*MEASURE, "--lab", "cloud"], "cloud"),
    ([*MEASURE, "--initiator-port", "eth0"], "choose another --lab"),
    ([*WIRE, "--initiator-port", "eth0"], "--initiator-gateway"),
    (WIRE, "--initiator-port"),
    ([*WIRE, *PORTS, "--cores", "0"], "lab wire has no such option"),
    ([*WIRE, *PORTS, "--hash-size", "10"], "does not control the device"),
    ([*WIRE, *PORTS, "--table-size", "10"], "keeps no connections"),
    ([*WIRE[:3], "nftables-nat44", *WIRE[4:], *PORTS], "--device-timeout"),
    ([*WIRE, *PORTS, "--fresh-trials", "never"], "never"),
    ([*WIRE, *PORTS[:3], "not-an-address", *PORTS[4:]], "not-an-address"),
    # The device's limits.
    ([*MEASURE, "--connections", "1000", "--table-size", "999"], "999"),
    ([*MEASURE, "--udp-timeout", "1"], "time-out"),
    ([*MEASURE, "--hash-size", "1"], "hash_size"),
    (["measure", "throughput", "--gateway", "linux-ipv4", "--table-size", "10"], "table_size"),
    # Others.
    (["selftest", "--frames-at-90", "0"], "frames at 90"),
    (["selftest", "--cores", "4095"], "4095"),
    (["report", "./no-such-folder"], "no-such-folder"),
]

#: A value that nobody wants to see whole.
LONG = "x" * 5000


@pytest.mark.parametrize(("arguments", "words"), WRONG, ids=[" ".join(arguments[1:])[-60:] for arguments, _ in WRONG])
def test_a_wrong_question_is_refused_in_one_line(
    arguments: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert shown.err.startswith("natgauge: ")
    assert words in shown.err
    assert "Traceback" not in shown.err
    assert list(tmp_path.iterdir()) == []


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
    ("recipes", "words"),
    [
        (
            ("./mine.toml", "tayga-nat64"),
            "chain.0: recipe: './mine.toml' is a chain itself; name its devices one by one",
        ),
        (("mine", "tayga-nat64"), "chain.0: recipe: 'mine' is a chain itself; name its devices one by one"),
        (("tayga-clat", "464xlat-tayga"), "chain.1: recipe: '464xlat-tayga' is a chain itself"),
        (("tayga-clat", "nftables-nat44"), "pe takes ipv4, but ce sends ipv6"),
        (("tayga-siit", "nftables-nat44"), "ce takes ipv6, but the Initiator sends ipv4"),
        (("linux-ipv4", "tayga-clat"), "pe sends ipv6, but the Responder takes ipv4"),
        (("tayga-clat", "tayga-nat46"), 'recipe "tayga-nat46": unknown; did you mean tayga-nat64'),
        (("tayga-clat", "./nothing.toml"), "nothing.toml: cannot be read"),
    ],
)
def test_a_chain_that_cannot_be_is_refused_in_one_line(
    recipes: tuple[str, str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gateways").mkdir()
    (tmp_path / "gateways" / "mine.toml").write_text(CHAIN.format(*recipes))
    for named in ("mine", "gateways/mine.toml"):
        assert run(["measure", "throughput", "--gateway", named]) == 2
        shown = capsys.readouterr()
        assert (shown.out, shown.err.count("\n")) == ("", 1)
        assert shown.err.startswith("natgauge: ")
        assert words in shown.err
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


def test_a_results_folder_that_cannot_be_made_is_refused_before_any_work(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("natgauge.measurements.measure.check_host", lambda: None)
    monkeypatch.setattr("natgauge.trial.bench.Bench.__enter__", None)
    (tmp_path / "file").write_text("in the way")
    assert run([*MEASURE, "--results", str(tmp_path / "file" / "results")]) == 2
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert "--results" in shown
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_without_the_engine_the_line_says_how_to_build_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("natgauge.host.programs._candidates", lambda _name: iter(()))
    assert run([*MEASURE, "--results", str(tmp_path / "results")]) == 3
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert "make setup" in shown
    assert not (tmp_path / "results").exists()


def test_without_capabilities_the_line_names_them(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("natgauge.host.programs.find", Path)
    monkeypatch.setattr("natgauge.host.capabilities.missing", lambda *names: names)
    assert run([*MEASURE, "--results", str(tmp_path / "results")]) == 3
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert "CAP_BPF" in shown
    assert not (tmp_path / "results").exists()


def test_a_kernel_that_is_too_old_is_named_with_the_least_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.release", lambda: "6.1.0-56-amd64")
    assert run([*MEASURE, "--results", str(tmp_path / "results")]) == 3
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert "6.1.0-56-amd64" in shown
    assert "6.6" in shown
    assert list(tmp_path.iterdir()) == []


def test_an_output_on_a_full_disk_ends_in_one_line_that_blames_the_disk(tmp_path: Path) -> None:
    program = "import sys; from natgauge.cli import run; sys.exit(run(['lab', 'status']))"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", program], check=False, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True
        )
    line = "natgauge: standard output or a temporary file: cannot be written: No space left on device; make room, then"
    assert (done.returncode, done.stderr) == (3, f"{line} try again\n")
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_during_a_measurement_is_no_fault_of_natgauge(tmp_path: Path) -> None:
    store = Store.create(tmp_path, "throughput", "nat")
    line = r"^results/x: cannot be written: no room; make room, then try again$"
    with pytest.raises(HostError, match=line), store.evidence():
        raise OSError(errno.ENOSPC, "no room", "results/x")


@pytest.mark.parametrize(
    ("number", "status", "remedy"),
    [(errno.ENOSPC, 3, "make room"), (errno.EDQUOT, 3, "make room"), (errno.EACCES, 2, "see that its folder can be")],
)
def test_results_that_cannot_be_written_blame_the_disk_or_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, status: int, remedy: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(number, "no")

    store = Store.create(tmp_path, "throughput", "nat")
    monkeypatch.setattr("natgauge.files.replace", full)
    with pytest.raises(NatgaugeError, match=f"results: cannot write .*: no; {remedy}") as raised:
        store.write_environment({})
    assert raised.value.exit_status == status
