# SPDX-License-Identifier: Apache-2.0
"""Every wrong question to the command line: one line that names it, the right exit status, nothing left behind."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import click
import pytest
from tests.unit.golden import Golden

from natgauge.cli import app, run
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

#: Command lines, and the input that the refusal is about.
WRONG = [
    # Comparisons.
    (["compare"], ""),
    (COMPARE, ""),
    ([*COMPARE, "nftables-nat45"], ""),
    ([*COMPARE, "./nothing.toml"], ""),
    ([*COMPARE, "nftables-nat44:speed=9"], ""),
    ([*COMPARE, "nftables-nat44:connections=many"], "connections"),
    ([*COMPARE, "nftables-nat44:connections=0"], "connections"),
    ([*COMPARE, "nftables-nat44:order=sideways"], "order"),
    ([*COMPARE, "nftables-nat44:hash_size=65536", "--by", "slices"], ""),
    ([*COMPARE, "linux-ipv4"], ""),
    ([*COMPARE, "nftables-nat66"], ""),
    (["compare", "tayga-nat64", "tayga-nat64", "--by", "slices"], ""),
    ([*COMPARE, *["nftables-nat44"] * 14], ""),
    ([*COMPARE, "nftables-nat44", "--quantities", "sideways"], "quantities"),
    ([*COMPARE, "nftables-nat44", "--quantities", ""], "quantities"),
    ([*COMPARE, "nftables-nat44", "--resolve", "1"], "resolve"),
    ([*COMPARE, "nftables-nat44", "--resolve", "0%"], "resolve"),
    ([*COMPARE, "nftables-nat44", "--level", "nan%"], "level"),
    ([*COMPARE, "nftables-nat44", "--fail-above", "-3%"], "fail_above"),
    ([*COMPARE, "nftables-nat44", "--fail-above", "10"], "fail_above"),
    ([*COMPARE, "nftables-nat44", "--most-seconds", "0"], "most_seconds"),
    ([*COMPARE, "nftables-nat44", "--slice-frames", "1"], "slice_frames"),
    ([*COMPARE, "nftables-nat44", "--connections", "100"], "connections"),
    ([*COMPARE, "nftables-nat44", "--core", "9999"], "core"),
    ([*COMPARE, "nftables-nat44", "--seed", "-1"], "seed"),
    # Names.
    (["measure"], ""),
    (["measure", "--gateway", "nftables-nat44", "throughput"], ""),
    ([*MEASURE, "--loads", "50%"], ""),
    ([*MEASURE, "--loss-tolerance", "much"], "loss_tolerance"),
    ([*MEASURE, "--profile", "slow"], "profile"),
    ([*MEASURE, "--most-seconds", "-1"], "most_seconds"),
    ([*COMPARE, "nftables-nat44:cores=0-", "linux-ipv4"], "cores"),
    (["measure", "throughput"], "gateway"),
    (["measure", "thruput", "--gateway", "nftables-nat44"], ""),
    (["measure", "throughput", "--gateway", "nftables-nat45"], ""),
    (["measure", "throughput", "--gateway", "./nothing.toml"], ""),
    (["nonsense"], ""),
    ([*MEASURE, "--nonsense"], ""),
    # Real servers.
    ([*QUERIES, "--far-side", "unbound"], "far_side"),
    ([*QUERIES, "--far-side", "./nothing.toml"], ""),
    ([*QUERIES, "--far-side", "knot", "--lab", "wire", *PORTS, "--device-timeout", "9"], ""),
    ([*QUERIES, "--far-side", "knot", "--server-cores", "9999"], "server_cores"),
    ([*QUERIES, "--far-side", "knot", "--lab", "vm", "--server-cores", "0"], "server_cores"),
    (["gateways", "show", "nothing"], ""),
    (["lab", "down", "ng-none-such"], ""),
    (["lab", "down", "Not A Name"], "lab_name"),
    ([*MEASURE, "--lab-name", "Not A Name"], "lab_name"),
    # Connections and ranges.
    ([*MEASURE, "--connections", "0"], "connections"),
    ([*MEASURE, "--connections", "-1"], "connections"),
    ([*MEASURE, "--connections", "many"], "connections"),
    ([*MEASURE, "--connections", "1e6"], "connections"),
    ([*MEASURE, "--connections", str(2**31 + 1)], "connections"),
    ([*MEASURE, "--source-ports", "0-10"], "source_ports"),
    ([*MEASURE, "--source-ports", "10-1"], "source_ports"),
    ([*MEASURE, "--source-ports", ""], "source_ports"),
    ([*MEASURE, "--destination-ports", "1-70000"], "destination_ports"),
    ([*MEASURE, "--source-addresses", "10.0.0.1-10.0.0.5"], "source_addresses"),
    ([*MEASURE, "--source-addresses", "10.0.0.5-10.0.0.2"], "source_addresses"),
    ([*MEASURE, "--source-addresses", "8.8.8.8"], "source_addresses"),
    ([*MEASURE, "--destination-addresses", "2001:2::9"], "destination_addresses"),
    ([*MEASURE, "--connections", "11", "--source-ports", "1-10", "--destination-ports", "1"], "connections"),
    ([*MEASURE, "--source-addresses", "10.0.0.2-10.0.0.3", "--destination-ports", "1"], "connections"),
    # Frames.
    ([*MEASURE, "--frame-size", "63"], "frame_size"),
    ([*MEASURE, "--frame-size", "9000"], "frame_size"),
    ([*MEASURE, "--frame-sizes", "64,594"], "frame_sizes"),
    ([*MEASURE, "--frame-sizes", "64:7,3413:1"], "frame_sizes"),
    ([*MEASURE, "--frame-sizes", "64:7", "--frame-size", "64"], "frame_sizes"),
    ([*MEASURE, "--down-frame-sizes", "60:1"], "down_frame_sizes"),
    (["measure", "resolution-rate", "--gateway", "nftables-nat44", "--frame-sizes", "64:7"], "frame_sizes"),
    ([*RATE, "--transport", "tcp", "--frame-sizes", "88:1,594:1"], "frame_sizes"),
    (["measure", "throughput", "--gateway", "nftables-nat66", "--frame-size", "64"], "frame_size"),
    ([*MEASURE, "--frame-side", "left"], "frame_side"),
    # Rates, durations, repetitions.
    ([*MEASURE, "--connection-rate", "0"], "connection_rate"),
    ([*MEASURE, "--connection-rate", "-5"], "connection_rate"),
    ([*MEASURE, "--connection-rate", "nan"], "connection_rate"),
    ([*MEASURE, "--connection-rate", "inf"], "connection_rate"),
    ([*MEASURE, "--connection-rate", "1e12"], "connection_rate"),
    ([*MEASURE, "--trial-seconds", "0"], "trial_seconds"),
    ([*MEASURE, "--trial-seconds", "nan"], "trial_seconds"),
    ([*MEASURE, "--trial-seconds", "-1"], "trial_seconds"),
    ([*RATE, "--trial-seconds", "1"], ""),
    ([*RATE, "--direction", "up"], ""),
    ([*MEASURE, "--error", "0"], "error"),
    ([*MEASURE, "--error", "nan"], "error"),
    ([*MEASURE, "--error", "a lot"], "error"),
    ([*MEASURE, "--error", "200%"], "error"),
    ([*MEASURE, "--repeat", "0"], "repeat"),
    ([*MEASURE, "--loss-tolerance", "2"], "loss_tolerance"),
    ([*MEASURE, "--loss-tolerance", "nan"], "loss_tolerance"),
    ([*MEASURE, "--frame-timeout", "0"], "frame_timeout_seconds"),
    ([*MEASURE, "--seed", "-1"], "seed"),
    ([*MEASURE, "--seed", str(2**64)], "seed"),
    ([*MEASURE, "--grace-seconds", "61"], "grace_seconds"),
    ([*MEASURE, "--grace-seconds", "nan"], "grace_seconds"),
    # Places.
    ([*MEASURE, "--cores", "4095"], "sender_cores"),
    ([*MEASURE, "--cores", "0,0"], "cores"),
    ([*MEASURE, "--cores", "zero"], "cores"),
    ([*MEASURE, "--cores", ""], "cores"),
    ([*MEASURE, "--sender-cores", "4095"], "sender_cores"),
    ([*MEASURE, "--placement", "beside"], "placement"),
    ([*MEASURE, "--ring", "0"], "ring"),
    ([*MEASURE, "--lab", "cloud"], "lab"),
    ([*MEASURE, "--initiator-port", "eth0"], "initiator_port"),
    ([*WIRE, "--initiator-port", "eth0"], "initiator_gateway"),
    (WIRE, "initiator_port"),
    ([*WIRE, *PORTS, "--cores", "0"], "cores"),
    ([*WIRE, *PORTS, "--hash-size", "10"], ""),
    ([*WIRE, *PORTS, "--table-size", "10"], "table_size"),
    ([*WIRE[:3], "nftables-nat44", *WIRE[4:], *PORTS], ""),
    ([*WIRE, *PORTS, "--fresh-trials", "never"], "fresh_trials"),
    ([*WIRE, *PORTS[:3], "not-an-address", *PORTS[4:]], "initiator_gateway"),
    # The device's limits.
    ([*MEASURE, "--connections", "1000", "--table-size", "999"], ""),
    ([*MEASURE, "--udp-timeout", "1"], ""),
    ([*MEASURE, "--hash-size", "1"], "hash_size"),
    (["measure", "throughput", "--gateway", "linux-ipv4", "--table-size", "10"], "table_size"),
    # Others.
    (["selftest", "--frames-at-90", "0"], ""),
    (["selftest", "--cores", "4095"], "sender_cores"),
    (["report", "./no-such-folder"], ""),
]

#: A value that nobody wants to see whole.
LONG = "x" * 5000


def at_of(arguments: list[str]) -> str:
    """The input that a refusal names for programs; empty = none."""
    with pytest.raises((NatgaugeError, click.ClickException)) as refused:
        app.main(arguments, prog_name="natgauge", standalone_mode=False)
    if isinstance(refused.value, NatgaugeError):
        return refused.value.at
    parameter = getattr(refused.value, "param", None)
    return parameter.name if parameter else ""


@pytest.mark.usefixtures("four_cores", "in_an_empty_folder")
@pytest.mark.parametrize(("arguments", "at"), WRONG, ids=[" ".join(arguments[1:])[-60:] for arguments, _ in WRONG])
def test_a_wrong_question_is_refused_in_one_line(
    arguments: list[str], at: str, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    assert run(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert shown.err.startswith("natgauge: ")
    golden(shown.err)
    assert at_of(arguments) == at
    assert list(Path.cwd().iterdir()) == []


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


def test_an_output_on_a_full_disk_ends_in_one_line_that_blames_the_disk(tmp_path: Path, golden: Golden) -> None:
    program = "import sys; from natgauge.cli import app, run; sys.exit(run(['lab', 'status']))"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", program], check=False, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 3
    golden(done.stderr)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_during_a_measurement_is_no_fault_of_natgauge(tmp_path: Path, golden: Golden) -> None:
    store = Store.create(tmp_path, "throughput", "nat")
    with golden.raises(HostError), store.evidence():
        raise OSError(errno.ENOSPC, "no room", "results/x")


@pytest.mark.parametrize(("number", "status"), [(errno.ENOSPC, 3), (errno.EDQUOT, 3), (errno.EACCES, 2)])
def test_results_that_cannot_be_written_blame_the_disk_or_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, status: int, golden: Golden
) -> None:
    def full(*_: object) -> None:
        raise OSError(number, "no")

    store = Store.create(tmp_path, "throughput", "nat")
    monkeypatch.setattr("natgauge.files.replace", full)
    with golden.raises(NatgaugeError) as raised:
        store.write_environment({})
    assert raised.value.exit_status == status
